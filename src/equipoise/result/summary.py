"""A result as it is printed: a verdict in one line, a table, and at most three remarks."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from equipoise.base import tables
from equipoise.base.inputs import named, text_of
from equipoise.base.tables import MOST_ROWS, PLAIN, Unit, about, amount, between, count, percent, rounded
from equipoise.inference import forecast, ranking
from equipoise.inference.arm_intervals import intervals, reached, reached_by_arm
from equipoise.inference.baseline import baseline
from equipoise.inference.comparisons import contrasts_of
from equipoise.inference.contrasts import BINARY, interval
from equipoise.inference.errors import standard_errors
from equipoise.inference.known import Known
from equipoise.inference.linear_targets import sums_found
from equipoise.inference.strata import combine, combined_kind
from equipoise.intervals import describe, describe_each
from equipoise.ledger.goal import Precision, Sums
from equipoise.problem.money import limit
from equipoise.result.by_arm import IntervalsByArm
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
    who_declined,
    with_interval,
    without_error,
)

# An even split is mentioned if it would have needed at least this many times what was spent.
CLEARLY: Final = 1.05
_REMARKS: Final = 3
# What the interval of a combined mean is valid for, if not at any time.
_COMBINED: Final = {"fixed-n": "for one planned look", "fixed-width": "of fixed width"}


def verdict(known: Known, unit: Unit = PLAIN) -> str:
    """Return a result in one line: whether the precision was reached, or what is least precise."""
    if known.precision is None:
        return f"{_samples(known)}. {least_precise(known, unit)}"
    if known.precision.sums is not None:
        return _verdict_of_sums(known, known.precision, known.precision.sums, unit)
    if reached(known):
        to = known.precision.words("", unit) or "the precision asked for"
        return f"✓ Every mean is known to {to} ({_samples(known)})."
    short = int((~reached_by_arm(known)).sum())
    are, whose = ("is", "its mean") if short == 1 else ("are", "their mean")
    than = known.precision.words(whose, unit) or "asked for"
    left = what_is_left(known)
    needed = f"; {left}" if left else ""
    return f"✗ {short:,} of {count(len(known.arms), 'arm')} {are} still wider than {than}{needed}.{_too_much(known)}"


def what_is_left(known: Known) -> str:
    """Return the samples that are left, as "1,900 to 4,300 more samples needed (3 to 6 minutes)"; empty if unknown."""
    left = forecast.left(known)
    if left is None or reached(known):
        return ""
    more = f"{between(left.low, left.high)} more samples needed"
    if math.isnan(left.seconds_high):
        return more
    return f"{more} ({tables.duration_range(left.seconds_low, left.seconds_high)})"


def _verdict_of_sums(known: Known, wanted: Precision, asked: Sums, unit: Unit) -> str:
    """Return the verdict of a result whose precision is asked of the combined mean, or of contrasts."""
    to = wanted.words("its value" if asked.combined else "", unit)
    if reached(known):
        every = asked.every[0].upper() + asked.every[1:]
        return f"✓ {every} is known to {to} ({_samples(known)})."
    short, of = int((~sums_found(known).reached).sum()), len(wanted.wanted)
    which = f"{short:,} of {count(of, asked.noun)} {'is' if short == 1 else 'are'}"
    if asked.combined:
        which = "The combined mean is"
    left = what_is_left(known)
    needed = f"; {left}" if left else ""
    return f"✗ {which} still wider than {to}{needed}.{_too_much(known)}"


def _decided_by(known: Known, asked: Sums, unit: Unit) -> str:
    """Return what the intervals of the sums promise that the precision is asked of."""
    if not asked.combined:
        return describe_each(known.interval_kind, known.level, sums_found(known).fixed, f"{asked.noun}s")
    found = combine(known)
    half = (found.high - found.low) / 2
    if not math.isfinite(half):
        return ""
    value, low, high = (unit.mean(each, half) for each in (found.value, found.low, found.high))
    return f"Combined mean: {value}, {low} to {high}. {describe(combined_kind(known), known.level, '')}"


def _widest(known: Known, asked: Sums, unit: Unit) -> str:
    """Return in a sentence which contrast is the least precise relative to its target."""
    found = contrasts_of(known, asked)
    with np.errstate(invalid="ignore"):
        margins = np.array([max(each.value - each.low, each.high - each.value) for each in found])
        wide = np.nan_to_num(margins / sums_found(known).targets, nan=math.inf)
    j = int(wide.argmax())
    if not math.isfinite(margins[j]):
        return f"{found[j].words} has no {percent(known.level)} interval yet."
    margin, target = unit.half(float(margins[j])), unit.half(float(sums_found(known).targets[j]))
    return f"Least precise relative to its target: {found[j].words}, {margin} (target {target})."


def least_precise(known: Known, unit: Unit = PLAIN) -> str:
    """Return in a sentence how large the error is: that of one arm, of the strata's mean, or the norm."""
    asked = None if known.precision is None else known.precision.sums
    if asked is not None and not asked.combined:
        return _widest(known, asked, unit)
    unknown = np.flatnonzero(np.isnan(known.weighted_losses))
    if len(unknown) == 1:
        k = int(unknown[0])
        return too_few(known.arms[k], int(known.counts[k]))
    if len(unknown):
        return (
            f"{len(unknown):,} of {len(known.arms):,} arms have fewer than 2 samples; at least 2 are needed for a "
            "standard error."
        )
    if known.objective.shares is not None:
        return _combined(known, unit)
    if known.objective.p < math.inf:
        what = "losses" if known.objective.weights is None else "weighted losses"
        return f"{known.objective.p:g}-norm of the {what}: {amount(known.loss, 3)}."
    if same := without_error(known):
        return same
    k = ranking.least_precise(known)
    margin = float(intervals(known, [k]).margins[0])
    if not math.isfinite(margin):
        return f"{no_interval(known)} {largest_error(known, unit)}".rstrip()
    if margin == 0 and known.used_up[k]:
        wide = "known exactly"
    elif known.by_precision:
        wide = f"{unit.half(margin)} (target {unit.half(float(known.targets[k]))})"
    else:
        wide = f"{unit.half(margin)} ({percent(known.level)})"
    return f"Least precise{ranked_by(known)}: {named(known.arms[k])}, {wide}."


def _combined(known: Known, unit: Unit) -> str:
    """Return the combined mean of strata, with its interval, what that is valid for, and its standard error."""
    found = combine(known)
    half = (found.high - found.low) / 2
    value, low, high = (unit.mean(each, half) for each in (found.value, found.low, found.high))
    valid = _COMBINED.get(combined_kind(known), "valid at any time")
    ends = f"{low} to {high} ({percent(known.level)}, {valid}), " if math.isfinite(half) else ""
    return f"Combined mean of the strata: {value}, {ends}standard error {unit.size(found.error)}."


def remarks(known: Known, unit: Unit = PLAIN) -> list[str]:
    """
    Return at most three remarks.

    They are on what the intervals promise, on arms that look binary, have heavy tails or are skewed, on what is still
    least precise, on who declined, and on what an even split would have needed.
    """
    found = [IntervalsByArm.shown(known).promise] if with_interval(known).any() else []
    asked = None if known.precision is None else known.precision.sums
    if asked is not None:
        found = [_decided_by(known, asked, unit), *found]
    if found and known.recognised:
        found.append(BINARY)
    found += [heavy_tails(heavy(known)), too_narrow(skewed(known))]
    if reached(known) is False and not (asked and asked.combined):  # that is in the first sentence
        found.append(least_precise(known, unit))
    return list(filter(None, (*found, who_declined(declines(known)), even_split(known))))[:_REMARKS]


def even_split(known: Known, noun: str = "samples") -> str:
    """
    Return in a sentence how many samples an even split would have needed; empty if not clearly more than were taken.

    Parameters
    ----------
    known
        What the sentence is about.
    noun
        What the samples are called.
    """
    found = baseline(known)
    # In money where samples have costs.
    if found is None or not found.spent / found.samples * found.low > CLEARLY * known.price:
        return ""
    cost = (
        ""
        if known.objective.costs is None
        else f", at a cost of {priced(known, about(found.spent, found.low, found.high))},"
    )
    what = known.objective.measure if known.precision is None else "precision"
    needed = about(found.samples, found.low, found.high)
    ends = between(found.low, found.high)
    # Of whole populations there is one number.
    ends = f" ({ends})" if " to " in ends else ""
    return f"An even split would have needed about {needed} {noun}{ends}{cost} for the same {what}."


def rows(known: Known) -> list[list[str]]:
    """Return a title row, and a row for each of the arms that are shown."""
    ends, errors = IntervalsByArm.shown(known), standard_errors(known)
    declines = bool(known.declined.any())
    found = [["arm", "count", "mean", f"{percent(ends.level)} interval", "std. error"]]
    if declines:
        found[0].insert(2, "declined")
    for i, k in enumerate(ranking.shown(known)):
        half, low, high = (float(each[i]) for each in (ends.half_widths, ends.low, ends.high))
        error = float(errors[k])
        found.append(
            [
                text_of(known.arms[k]) + " *" * bool(ends.marked[i]),
                f"{known.counts[k]:,}",
                rounded(float(known.means[k]), half),
                f"{rounded(low, half)} to {rounded(high, half)}" if math.isfinite(half) else "—",
                rounded(error, error),
            ]
        )
        if declines:
            found[-1].insert(2, f"{known.declined[k]:,}")
    return found


def contrast_rows(known: Known) -> list[list[str]]:
    """Return a title row, and a row for each contrast that the precision is asked of; none where it is not."""
    asked = None if known.precision is None else known.precision.sums
    if asked is None or asked.combined:
        return []
    found = [[asked.noun, "value", f"{percent(known.level)} interval", "std. error"]]
    fixed = sums_found(known).fixed
    marks = np.where(fixed | ~fixed.any(), "", " *")
    for each, mark in zip(contrasts_of(known, asked)[:MOST_ROWS], marks, strict=False):
        half, ends = each.half_width, interval(each.low, each.high)
        found.append([f"{each.words}{mark}", rounded(each.value, half), ends, rounded(each.error, each.error)])
    return found


def left_out(known: Known) -> list[str]:
    """Return notes on which arms and contrasts the tables show, if not all."""
    arms, asked = len(known.arms), None if known.precision is None else known.precision.sums
    found = [f"Showing the {MOST_ROWS} least precise of {arms:,} arms."] if arms > MOST_ROWS else []
    if asked is not None and len(asked.weights) > MOST_ROWS:
        found.append(f"Showing the first {MOST_ROWS} of {len(asked.weights):,} {asked.noun}s; contrasts() has all.")
    return found


def text(known: Known) -> str:
    """Return a result as it is printed."""
    contrasts = contrast_rows(known)
    lines = [verdict(known), *([tables.text(contrasts)] if contrasts else [])]
    return "\n".join([*lines, tables.text(rows(known), [*left_out(known), *remarks(known)])])


def html(known: Known) -> str:
    """Return a result as a notebook shows it."""
    contrasts, notes = contrast_rows(known), [*left_out(known), *remarks(known)]
    if not contrasts:
        return tables.html(rows(known), notes, before=[verdict(known)])
    return tables.html(contrasts, before=[verdict(known)]) + tables.html(rows(known), notes)


def priced(known: Known, cost: str) -> str:
    """Return a cost with its unit, if it has one."""
    return f"{cost} {known.cost_unit}".rstrip()


def _samples(known: Known) -> str:
    samples = count(known.samples, "sample")
    return samples if known.objective.costs is None else f"{samples} ({_cost(known)})"


def _too_much(known: Known) -> str:
    """Return a sentence with the cost if the budget was exceeded; empty if not."""
    return f" The samples {_cost(known)}." if _over(known) else ""


def _cost(known: Known) -> str:
    """Return what samples cost, and how much of it is over the budget."""
    too_much = f", {amount(_over(known))} over the budget" if _over(known) else ""
    return f"cost {priced(known, amount(known.spent))}{too_much}"


def _over(known: Known) -> float:
    """Return by how much the budget was exceeded: by 0 if it was not, but for rounding."""
    costs, budget = known.objective.costs, known.snapshot.budget
    if costs is None or budget is None or known.spent <= limit(budget, min(costs)):
        return 0.0
    return known.spent - budget
