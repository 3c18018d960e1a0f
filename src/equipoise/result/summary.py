"""A result as it is printed: a verdict in one line, a table, and at most three remarks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from equipoise.base.inputs import named, text_of
from equipoise.base.tables import MOST_ROWS, PLAIN, Unit, about, amount, between, count, duration, percent, rounded
from equipoise.inference.comparisons import BINARY, interval
from equipoise.intervals import describe, describe_each
from equipoise.problem.money import limit
from equipoise.result.certificate import (
    declines,
    heavy,
    heavy_tails,
    largest_error,
    no_interval,
    ranked_by,
    skewed,
    too_few,
    too_narrow,
    used_up,
    who_declined,
    with_interval,
    without_error,
)

if TYPE_CHECKING:
    from equipoise.ledger.goal import Precision, Sums
    from equipoise.result.by_arm import IntervalsByArm
    from equipoise.result.result import Result

# An even split is mentioned if it would have needed at least this many times what was spent.
CLEARLY: Final = 1.05
_REMARKS: Final = 3
# What the interval of a combined mean is valid for, if not at any time.
_COMBINED: Final = {"fixed-n": "for one planned look", "fixed-width": "of fixed width"}


def verdict(result: Result, unit: Unit = PLAIN) -> str:
    """Return a result in one line: whether the precision was reached, or what is least precise."""
    if result.precision is None:
        return f"{_samples(result)}. {least_precise(result, unit)}"
    if result.precision.sums is not None:
        return _verdict_of_sums(result, result.precision, result.precision.sums, unit)
    if result.reached:
        to = result.precision.words("", unit) or "the precision asked for"
        return f"✓ Every mean is known to {to} ({_samples(result)})."
    short = int((~result.reached_by_arm).sum())
    are, whose = ("is", "its mean") if short == 1 else ("are", "their mean")
    than = result.precision.words(whose, unit) or "asked for"
    left = what_is_left(result)
    needed = f"; {left}" if left else ""
    return f"✗ {short:,} of {count(len(result.arms), 'arm')} {are} still wider than {than}{needed}.{_too_much(result)}"


def what_is_left(result: Result) -> str:
    """Return the samples that are left, as "1,900 to 4,300 more samples needed (3 to 6 minutes)"; empty if unknown."""
    left = result.left
    if left is None or result.reached:
        return ""
    more = f"{between(left.low, left.high)} more samples needed"
    if math.isnan(left.seconds_high):
        return more
    return f"{more} ({duration(left.seconds_low, left.seconds_high)})"


def _verdict_of_sums(result: Result, wanted: Precision, asked: Sums, unit: Unit) -> str:
    """Return the verdict of a result whose precision is asked of the combined mean, or of contrasts."""
    to = wanted.words("its value" if asked.combined else "", unit)
    if result.reached:
        every = asked.every[0].upper() + asked.every[1:]
        return f"✓ {every} is known to {to} ({_samples(result)})."
    short, of = int((~result.sums_found.reached).sum()), len(wanted.wanted)
    which = f"{short:,} of {count(of, asked.noun)} {'is' if short == 1 else 'are'}"
    if asked.combined:
        which = "The combined mean is"
    left = what_is_left(result)
    needed = f"; {left}" if left else ""
    return f"✗ {which} still wider than {to}{needed}.{_too_much(result)}"


def _decided_by(result: Result, asked: Sums, unit: Unit) -> str:
    """Return what the intervals of the sums promise that the precision is asked of."""
    if not asked.combined:
        return describe_each(result.interval_kind, result.level, result.sums_found.fixed, f"{asked.noun}s")
    found = result.combine()
    half = (found.high - found.low) / 2
    if not math.isfinite(half):
        return ""
    value, low, high = (unit.mean(each, half) for each in (found.value, found.low, found.high))
    return f"Combined mean: {value}, {low} to {high}. {describe(result.combined_kind, result.level, '')}"


def _widest(result: Result, unit: Unit) -> str:
    """Return in a sentence which contrast is the least precise relative to its target."""
    found = result.contrasts()
    with np.errstate(invalid="ignore"):
        margins = np.array([max(each.value - each.low, each.high - each.value) for each in found])
        wide = np.nan_to_num(margins / result.sums_found.targets, nan=math.inf)
    j = int(wide.argmax())
    if not math.isfinite(margins[j]):
        return f"{found[j].words} has no {percent(result.level)} interval yet."
    margin, target = unit.half(float(margins[j])), unit.half(float(result.sums_found.targets[j]))
    return f"Least precise relative to its target: {found[j].words}, {margin} (target {target})."


def least_precise(result: Result, unit: Unit = PLAIN) -> str:
    """Return in a sentence how large the error is: that of one arm, of the strata's mean, or the norm."""
    if result.precision is not None and result.precision.sums is not None and not result.precision.sums.combined:
        return _widest(result, unit)
    unknown = np.flatnonzero(np.isnan(result.weighted_losses))
    if len(unknown) == 1:
        k = int(unknown[0])
        return too_few(result.arms[k], int(result.counts.array[k]))
    if len(unknown):
        return (
            f"{len(unknown):,} of {len(result.arms):,} arms have fewer than 2 samples; at least 2 are needed for a "
            "standard error."
        )
    if result.objective.shares is not None:
        return _combined(result, unit)
    if result.objective.p < math.inf:
        what = "losses" if result.objective.weights is None else "weighted losses"
        return f"{result.objective.p:g}-norm of the {what}: {amount(result.loss, 3)}."
    if same := without_error(result):
        return same
    k = result.least_precise()
    margin = float(result.intervals_of([k]).margins[0])
    if not math.isfinite(margin):
        return f"{no_interval(result)} {largest_error(result, unit)}".rstrip()
    if margin == 0 and used_up(result)[k]:
        known = "known exactly"
    elif result.by_precision:
        known = f"{unit.half(margin)} (target {unit.half(float(result.targets[k]))})"
    else:
        known = f"{unit.half(margin)} ({percent(result.level)})"
    return f"Least precise{ranked_by(result)}: {named(result.arms[k])}, {known}."


def _combined(result: Result, unit: Unit) -> str:
    """Return the combined mean of strata, with its interval, what that is valid for, and its standard error."""
    found = result.combine()
    half = (found.high - found.low) / 2
    value, low, high = (unit.mean(each, half) for each in (found.value, found.low, found.high))
    valid = _COMBINED.get(result.combined_kind, "valid at any time")
    ends = f"{low} to {high} ({percent(result.level)}, {valid}), " if math.isfinite(half) else ""
    return f"Combined mean of the strata: {value}, {ends}standard error {unit.size(found.error)}."


def remarks(result: Result, unit: Unit = PLAIN) -> list[str]:
    """
    Return at most three remarks.

    They are on what the intervals promise, on arms that look binary, have heavy tails or are skewed, on what is still
    least precise, on who declined, and on what an even split would have needed.
    """
    found = [result.intervals_shown(result.shown()).promise] if with_interval(result).any() else []
    asked = None if result.precision is None else result.precision.sums
    if asked is not None:
        found = [_decided_by(result, asked, unit), *found]
    if found and result.recognised:
        found.append(BINARY)
    found += [heavy_tails(heavy(result)), too_narrow(skewed(result))]
    if result.reached is False and not (asked and asked.combined):  # that is in the first sentence
        found.append(least_precise(result, unit))
    return list(filter(None, (*found, who_declined(declines(result)), even_split(result))))[:_REMARKS]


def even_split(result: Result, noun: str = "samples") -> str:
    """
    Return in a sentence how many samples an even split would have needed; empty if not clearly more than were taken.

    Parameters
    ----------
    result
        The result.
    noun
        What the samples are called.
    """
    found = result.baseline
    # In money where samples have costs.
    if found is None or not found.spent / found.samples * found.low > CLEARLY * result.price:
        return ""
    cost = (
        ""
        if result.objective.costs is None
        else f", at a cost of {priced(result, about(found.spent, found.low, found.high))},"
    )
    what = result.objective.measure if result.precision is None else "precision"
    needed = about(found.samples, found.low, found.high)
    ends = between(found.low, found.high)
    # Of whole populations there is one number.
    ends = f" ({ends})" if " to " in ends else ""
    return f"An even split would have needed about {needed} {noun}{ends}{cost} for the same {what}."


def rows(result: Result, places: Sequence[int], intervals: IntervalsByArm) -> list[list[str]]:
    """Return a title row, and a row for each of the arms at these places, whose intervals are given."""
    somebody = bool(result.declined.array.any())
    found = [["arm", "count", "mean", f"{percent(intervals.level)} interval", "std. error"]]
    if somebody:
        found[0].insert(2, "declined")
    for i, k in enumerate(places):
        half, low, high = (float(ends[i]) for ends in (intervals.half_widths, intervals.low, intervals.high))
        error = float(result.standard_errors.array[k])
        found.append(
            [
                text_of(result.arms[k]) + " *" * bool(intervals.marked[i]),
                f"{result.counts.array[k]:,}",
                rounded(float(result.means.array[k]), half),
                f"{rounded(low, half)} to {rounded(high, half)}" if math.isfinite(half) else "—",
                rounded(error, error),
            ]
        )
        if somebody:
            found[-1].insert(2, f"{result.declined.array[k]:,}")
    return found


def contrast_rows(result: Result) -> list[list[str]]:
    """Return a title row, and a row for each contrast that the precision is asked of; none where it is not."""
    asked = None if result.precision is None else result.precision.sums
    if asked is None or asked.combined:
        return []
    found = [[asked.noun, "value", f"{percent(result.level)} interval", "std. error"]]
    fixed = result.sums_found.fixed
    marks = np.where(fixed | ~fixed.any(), "", " *")
    for each, mark in zip(result.contrasts()[:MOST_ROWS], marks, strict=False):
        half, ends = each.half_width, interval(each.low, each.high)
        found.append([f"{each.words}{mark}", rounded(each.value, half), ends, rounded(each.error, each.error)])
    return found


def left_out(result: Result) -> list[str]:
    """Return notes on which arms and contrasts the tables show, if not all."""
    arms, asked = len(result.arms), None if result.precision is None else result.precision.sums
    found = [f"Showing the {MOST_ROWS} least precise of {arms:,} arms."] if arms > MOST_ROWS else []
    if asked is not None and len(asked.weights) > MOST_ROWS:
        found.append(f"Showing the first {MOST_ROWS} of {len(asked.weights):,} {asked.noun}s; contrasts() has all.")
    return found


def priced(result: Result, cost: str) -> str:
    """Return a cost with its unit, if it has one."""
    return f"{cost} {result.cost_unit}".rstrip()


def _samples(result: Result) -> str:
    samples = count(result.samples, "sample")
    return samples if result.objective.costs is None else f"{samples} ({_cost(result)})"


def _too_much(result: Result) -> str:
    """Return a sentence with the cost if the budget was exceeded; empty if not."""
    return f" The samples {_cost(result)}." if _over(result) else ""


def _cost(result: Result) -> str:
    """Return what samples cost, and how much of it is over the budget."""
    too_much = f", {amount(_over(result))} over the budget" if _over(result) else ""
    return f"cost {priced(result, amount(result.spent))}{too_much}"


def _over(result: Result) -> float:
    """Return by how much the budget was exceeded: by 0 if it was not, but for rounding."""
    costs, budget = result.objective.costs, result.snapshot.budget
    if costs is None or budget is None or result.spent <= limit(budget, min(costs)):
        return 0.0
    return result.spent - budget
