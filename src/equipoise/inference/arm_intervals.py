"""
The arms' intervals: confidence sequences, or where a precision is asked for, those that decide when an arm is done.

By default the fixed-width interval decides (`intervals.fixed_width`), and where that cannot be trusted the arm's
confidence sequence: the arm is stopped by whichever is narrow enough first. A sequence that is asymptotic is widened
where samples are few. Only widths decide, never where an interval lies, and what an arm's stop depends on
are its own samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from equipoise.base.arrays import Bools, Floats
from equipoise.base.inputs import probability
from equipoise.inference import linear_targets
from equipoise.inference.known import Known, remembered
from equipoise.inference.sequence_bounds import bounds, widened
from equipoise.intervals import Kind, fixed_width


class ArmIntervals(NamedTuple):
    """
    Intervals of some arms, which hold for all arms at once.

    Attributes
    ----------
    means
        The means of the samples.
    low, high, half_widths
        The ends, infinite where too little is known, and half of high - low.
    fixed
        Which are of fixed width.
    kind, level
        The kind of the others, and the probability that all hold.
    """

    means: Floats
    low: Floats
    high: Floats
    half_widths: Floats
    fixed: Bools
    kind: Kind
    level: float

    @property
    def margins(self) -> Floats:
        """The larger of mean - low and high - mean; the mean of no samples may be anywhere."""
        with np.errstate(invalid="ignore"):
            apart = np.maximum(self.means - self.low, self.high - self.means)
            return np.where(np.isnan(self.means), self.high - self.low, apart)


def intervals(
    known: Known, places: Sequence[int] | None = None, level: float | None = None, kind: Kind | None = None
) -> ArmIntervals:
    """
    Return the intervals of some arms, None for all.

    Parameters
    ----------
    known, places
        The study, and some of its arms.
    level
        The probability that the intervals of all arms hold; by default that of the study.
    kind
        By default the one that decides, with arms whose samples are all equal widened; one that is named is given as
        it is.
    """
    if places is None and level is None and kind is None:
        return _of_all(known)
    return _intervals(known, places, level, kind)


@remembered
def _of_all(known: Known) -> ArmIntervals:
    return _intervals(known, None, None, None)


def _intervals(known: Known, places: Sequence[int] | None, level: float | None, kind: Kind | None) -> ArmIntervals:
    level = known.level if level is None else probability("level", level)
    sequences = known.sequences_of(kind)
    low, high = bounds(known, sequences, places, level)
    with np.errstate(invalid="ignore"):
        half = (high - low) / 2
    if kind is None:
        low, high, half = widened(known, sequences, places, level, low, high, half)
    fixed = np.zeros(len(low), bool)
    if kind is None and by_width(known):
        low, high, fixed = _deciding(known, places, low, high, level)
        with np.errstate(invalid="ignore"):
            half = (high - low) / 2
    means = known.means if places is None else known.means[np.asarray(places)]
    return ArmIntervals(means, low, high, half, fixed, sequences.kind, level)


# ---- those that decide whether a precision is reached


class Widths(NamedTuple):
    """
    Inputs of the fixed-width intervals of some arms.

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


def by_width(known: Known) -> bool:
    """Return whether arms are stopped by fixed-width intervals of their own."""
    wanted = known.precision
    if wanted is None or wanted.sums is not None:
        return False
    return wanted.interval == "fixed-width" and known.evidence is not None


def widths(known: Known, places: Sequence[int] | None = None, level: float | None = None) -> Widths:
    """Return the fixed-width inputs of some arms, None for all, at a level; by default that of the study."""
    state = known.state_of("fixed-width", places)
    where = slice(None) if places is None else np.asarray(places)
    sizes = known.sizes[where]
    alpha = (1 - (known.level if level is None else level)) / len(known.arms)
    half, plain, caution = np.empty((3, len(state)))
    fixed_width.over_arms(state, sizes, alpha, known.sequences.support == "binary", half, plain, caution)
    counts = state[:, fixed_width.COUNT]
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.sqrt(state[:, fixed_width.M2] / counts * np.maximum(1 / counts - 1 / sizes, 0))
    return Widths(
        np.where(counts > 0, state[:, fixed_width.SHIFT] + state[:, fixed_width.MEAN], math.nan),
        half,
        plain,
        caution if known.sequences.kind == "asymptotic" else np.ones(len(state)),
        np.where(counts > 0, fixed_width.quantile(alpha) * errors, math.inf),
    )


@remembered
def reached_by_arm(known: Known) -> Bools:
    """
    Return which arms have reached their precision, in the arms' order; all False without a precision.

    Their intervals lie within their mean ± the precision, or did when the arm was stopped for that.
    """
    found = _narrow_enough(known)
    return found if known.settled is None else found | known.settled


def _narrow_enough(known: Known) -> Bools:
    """Return which arms' intervals are narrow enough now."""
    if known.precision is not None and known.precision.sums is not None:
        return linear_targets.reached_by_arm(known.precision.sums, linear_targets.sums_found(known).reached)
    if not by_width(known):
        with np.errstate(invalid="ignore"):
            return np.asarray(intervals(known).margins <= known.targets)
    found = widths(known)
    with np.errstate(invalid="ignore"):
        fixed = found.half <= _targets(known)
        # Of the others, sequences are followed only where they can be narrow enough.
        places = np.flatnonzero(~fixed & (found.least <= known.targets)).tolist()
        if places:
            fixed[places] = intervals(known, places).margins <= known.targets[places]
    return fixed


def reached(known: Known) -> bool | None:
    """Return whether every interval that the precision is asked of is narrow enough; None if none was asked for."""
    return None if known.precision is None else bool(reached_by_arm(known).all())


def _targets(known: Known) -> Floats:
    """Return the half-widths that fixed-width intervals must have, in the arms' order."""
    assert known.precision is not None
    alpha = (1 - known.level) / len(known.arms)
    return known.precision.targets(known.means, fixed_width.largest_share(alpha))


def _deciding(
    known: Known, places: Sequence[int] | None, low: Floats, high: Floats, level: float
) -> tuple[Floats, Floats, Bools]:
    """
    Return the ends of the intervals that decide, and which of them are of fixed width.

    Parameters
    ----------
    known, places
        The study, and some of its arms; None for all.
    low, high, level
        The ends of their confidence sequences, and the level. Which intervals are of fixed width was decided at that of
        the study.
    """
    found = widths(known, places)
    where = slice(None) if places is None else np.asarray(places)
    targets = _targets(known)[where]
    least, most = known.sequences.limits
    with np.errstate(invalid="ignore"):
        fixed = found.half <= targets
        if known.settled is not None and known.precision is not None:
            # An arm that was stopped keeps its fixed-width interval, where that is trusted for a target of this kind.
            whole = targets >= known.precision.targets(known.means)[where]
            fixed |= known.settled[where] & whole & np.isfinite(found.half)
        half = found.half if level == known.level else widths(known, places, level).plain
        wide = np.nan_to_num(found.caution - 1, nan=0.0, posinf=0.0)
        low = low - wide * np.maximum(found.centres - low, 0)
        high = high + wide * np.maximum(high - found.centres, 0)
        low = np.where(fixed, found.centres - half, np.where(np.isnan(low), -math.inf, low))
        high = np.where(fixed, found.centres + half, np.where(np.isnan(high), math.inf, high))
    return np.maximum(low, least), np.minimum(high, most), fixed
