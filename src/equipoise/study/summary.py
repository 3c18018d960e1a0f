"""A result as it is printed: a verdict in one line, a table, and at most three remarks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from equipoise.intervals import describe
from equipoise.study.certificate import too_few
from equipoise.tables import MOST_ROWS, amount, count, percent, plus_minus, rounded

if TYPE_CHECKING:
    from equipoise.study.by_arm import IntervalsByArm
    from equipoise.study.result import Result


def verdict(result: Result) -> str:
    """Return a result in one line: whether the precision was reached, or what is least precise."""
    if result.precision is None:
        return f"{_samples(result)}. {least_precise(result)}"
    if result.reached:
        to = result.precision.words("") or "the precision asked for"
        return f"✓ Every mean is known to {to} ({_samples(result)})."
    short = int((~result.reached_by_arm).sum())
    are, whose = ("is", "its mean") if short == 1 else ("are", "their mean")
    than = result.precision.words(whose) or "asked for"
    left = result.samples_left or 0.0
    needed = f"; about {count(_about(left), 'more sample')} needed" if math.isfinite(left) else ""
    return f"✗ {short:,} of {count(len(result.arms), 'arm')} {are} still wider than {than}{needed}."


def least_precise(result: Result) -> str:
    """Return in a sentence how large the error is: that of the worst arm, of the strata's mean, or the norm."""
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
        value, error = result.combine()
        return f"Mean of all strata: {amount(value)}, standard error {amount(error, 3)}."
    if result.objective.p < math.inf:
        what = "losses" if result.objective.weights is None else "weighted losses"
        return f"{result.objective.p:g}-norm of the {what}: {amount(result.loss, 3)}."
    k = result.names.place(result.worst)
    half = float(result.intervals_of([k]).half_widths[0])
    if not math.isfinite(half):
        error = float(result.standard_errors.array[k])
        known = f"standard error {amount(error, 3)} (too few samples for a {percent(result.level)} interval)"
    elif result.by_precision:
        known = f"{plus_minus(half)} (target {plus_minus(float(result.targets[k]))})"
    else:
        known = f"{plus_minus(half)} ({percent(result.level)})"
    return f"Least precise{ranked_by(result)}: {result.worst}, {known}."


def ranked_by(result: Result) -> str:
    """Return what makes an arm the least precise, if not its error alone."""
    if result.by_precision:
        return " relative to its target"
    return "" if result.objective.weights is None else " by weighted error"


def remarks(result: Result) -> list[str]:
    """Return what the intervals promise, what is still least precise, and what an even split would have needed."""
    found = [describe(result.interval_kind, result.level)]
    if result.reached is False:
        found.append(least_precise(result))
    if result.loss > 0 and len(result.arms) > 1:
        paid = "" if result.objective.costs is None else f" (cost {amount(result.uniform_spent)})"
        what = "worst-case precision" if result.objective.p == math.inf else "loss"
        if result.objective.shares is not None:
            what = "standard error"
        needed = count(round(result.uniform_samples), "sample")
        found.append(f"Uniform sampling would have needed about {needed}{paid} for the same {what}.")
    return found


def rows(result: Result, places: Sequence[int], intervals: IntervalsByArm) -> list[list[str]]:
    """Return a title row, and a row for each of the arms at these places, whose intervals are given."""
    found = [["arm", "count", "mean", f"{percent(intervals.level)} interval", "std. error"]]
    for i, k in enumerate(places):
        half, low, high = (float(ends[i]) for ends in (intervals.half_widths, intervals.low, intervals.high))
        error = float(result.standard_errors.array[k])
        found.append(
            [
                str(result.arms[k]),
                f"{result.counts.array[k]:,}",
                rounded(float(result.means.array[k]), half),
                f"{rounded(low, half)} to {rounded(high, half)}" if math.isfinite(half) else "—",
                rounded(error, error),
            ]
        )
    return found


def left_out(result: Result) -> list[str]:
    """Return a note on the arms that the table does not show, if there are any."""
    more = len(result.arms) - MOST_ROWS
    return [f"{count(more, 'more arm')}, all at least as precise as these."] if more > 0 else []


def _samples(result: Result) -> str:
    paid = "" if result.objective.costs is None else f" (cost {amount(result.spent)})"
    return f"{count(result.samples, 'sample')}{paid}"


def _about(n: float) -> int:
    """Return a number to two digits, and a whole one; at least 1."""
    return max(1, int(float(f"{n:.2g}")))
