"""
When an arm has reached its precision, and with which interval.

By default the fixed-width interval decides (`intervals.fixed_width`), and where that cannot be trusted the arm's
confidence sequence: the arm is stopped by whichever is narrow enough first. A sequence that is asymptotic is widened
where samples are few. Only widths decide, never where an interval lies, and what an arm's stop depends on
are its own samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.base.arrays import Bools, Floats
from equipoise.inference import linear_targets as sums
from equipoise.intervals import fixed_width

if TYPE_CHECKING:
    from equipoise.result.result import Result


class Widths(NamedTuple):
    """
    What the samples of some arms say, for their fixed-width intervals.

    Attributes
    ----------
    centres
        The means that the intervals are around, of the samples in the order of asking.
    half, plain
        The half-widths: infinite where they cannot be trusted, and as they would be.
    caution
        By how much to widen sequences.
    least
        Half-widths of fixed n, which those of sequences are never below.
    """

    centres: Floats
    half: Floats
    plain: Floats
    caution: Floats
    least: Floats


def by_width(result: Result) -> bool:
    """Return whether arms of the result are stopped by fixed-width intervals of their own."""
    wanted = result.precision
    if wanted is None or wanted.sums is not None:
        return False
    return wanted.interval == "fixed-width" and result.snapshot.evidence is not None


def widths(result: Result, places: Sequence[int] | None = None, level: float | None = None) -> Widths:
    """Return what the samples of some arms, None for all, say at a level; by default that of the result."""
    state = result.state_of("fixed-width", places)
    where = slice(None) if places is None else np.asarray(places)
    sizes = np.full(len(state), math.inf) if result.populations is None else result.populations[where]
    alpha = (1 - (result.level if level is None else level)) / len(result.arms)
    half, plain, caution = np.empty((3, len(state)))
    fixed_width.over_arms(state, sizes, alpha, result.sequences.support == "binary", half, plain, caution)
    counts = state[:, fixed_width.COUNT]
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.sqrt(state[:, fixed_width.M2] / counts * np.maximum(1 / counts - 1 / sizes, 0))
    return Widths(
        np.where(counts > 0, state[:, fixed_width.SHIFT] + state[:, fixed_width.MEAN], math.nan),
        half,
        plain,
        caution if result.sequences.kind == "asymptotic" else np.ones(len(state)),
        np.where(counts > 0, fixed_width.quantile(alpha) * errors, math.inf),
    )


def reached(result: Result) -> Bools:
    """Return which arms have reached their precision, in the arms' order."""
    if result.precision is not None and result.precision.sums is not None:
        return sums.reached_by_arm(result.precision.sums, result.sums_found.reached)
    if not by_width(result):
        with np.errstate(invalid="ignore"):
            return np.asarray(result.intervals().margins <= result.targets)
    found = widths(result)
    with np.errstate(invalid="ignore"):
        fixed = found.half <= _targets(result)
        # Of the others, sequences are followed only where they can be narrow enough.
        places = np.flatnonzero(~fixed & (found.least <= result.targets)).tolist()
        if places:
            fixed[places] = result.intervals_of(places).margins <= result.targets[places]
    return fixed


def _targets(result: Result) -> Floats:
    """Return the half-widths that fixed-width intervals must have, in the arms' order."""
    assert result.precision is not None
    alpha = (1 - result.level) / len(result.arms)
    return result.precision.targets(result.means.array, fixed_width.largest_share(alpha))


def ends(
    result: Result, places: Sequence[int] | None, low: Floats, high: Floats, level: float
) -> tuple[Floats, Floats, Bools]:
    """
    Return the ends of the intervals that decide, and which of them are of fixed width.

    Parameters
    ----------
    result, places
        The result, and some of its arms; None for all.
    low, high, level
        The ends of their confidence sequences, and the level. Which intervals are of fixed width was decided at that of
        the result.
    """
    found = widths(result, places)
    targets = _targets(result) if places is None else _targets(result)[np.asarray(places)]
    least, most = result.sequences.limits
    with np.errstate(invalid="ignore"):
        fixed = found.half <= targets
        half = found.half if level == result.level else widths(result, places, level).plain
        wide = np.nan_to_num(found.caution - 1, nan=0.0, posinf=0.0)
        low = low - wide * np.maximum(found.centres - low, 0)
        high = high + wide * np.maximum(high - found.centres, 0)
        low = np.where(fixed, found.centres - half, np.where(np.isnan(low), -math.inf, low))
        high = np.where(fixed, found.centres + half, np.where(np.isnan(high), math.inf, high))
    return np.maximum(low, least), np.minimum(high, most), fixed
