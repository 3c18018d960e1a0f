"""
The arms' intervals: confidence sequences, or where a precision is asked for, those that decide when an arm is done.

The rule is in `intervals.stop_rule`; this module gives it the evidence of the arms, and shows the intervals that
decided. An arm's stop depends on its own samples alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.base.inputs import probability
from equipoise.inference import linear_targets
from equipoise.inference.known import Known, remembered
from equipoise.inference.sequence_bounds import bounds, widened
from equipoise.intervals import Intervals, Kind, stop_rule
from equipoise.intervals.stop_rule import Moments, Targets, Widths


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
    low, high, half = _sequences(known, sequences, places, level, kind is None)
    fixed = np.zeros(len(low), bool)
    if kind is None and by_width(known):
        low, high, fixed = _deciding(known, places, low, high, level)
        with np.errstate(invalid="ignore"):
            half = (high - low) / 2
    means = known.means if places is None else known.means[np.asarray(places)]
    return ArmIntervals(means, low, high, half, fixed, sequences.kind, level)


def _sequences(
    known: Known, sequences: Intervals, places: Sequence[int] | None, level: float, widen: bool
) -> tuple[Floats, Floats, Floats]:
    """Return ends and half-widths of confidence sequences; `widen` those of arms whose samples are all equal."""
    low, high = bounds(known, sequences, places, level)
    with np.errstate(invalid="ignore"):
        half = (high - low) / 2
    return widened(known, sequences, places, level, low, high, half) if widen else (low, high, half)


# ---- those that decide whether a precision is reached


def by_width(known: Known) -> bool:
    """Return whether arms are stopped by fixed-width intervals of their own."""
    wanted = known.precision
    return wanted is not None and wanted.sums is None and known.stop_rule.fixed_width


def widths(known: Known, places: Sequence[int] | None = None, level: float | None = None) -> Widths:
    """Return the fixed-width intervals of some arms, None for all, at a level; by default that of the study."""
    rule = known.stop_rule
    if level is not None:
        rule = replace(rule, alpha=(1 - level) / len(known.arms))
    where = slice(None) if places is None else np.asarray(places)
    return stop_rule.of_arms(rule, Moments(known.state_of("fixed-width", places), known.sizes[where]))


@remembered
def reached_by_arm(known: Known) -> Bools:
    """
    Return which arms have reached their precision, in the arms' order; all False without a precision.

    Their intervals lie within their mean ± the precision, or did when the arm was stopped for that.
    """
    wanted = known.precision
    if wanted is None:
        return np.zeros(len(known.arms), bool)
    if wanted.sums is not None:
        return linear_targets.reached_by_arm(wanted.sums, linear_targets.sums_found(known).reached)
    own = by_width(known)

    def sequences(places: Ints) -> tuple[Floats, Floats]:
        if not own:
            found = intervals(known)
            return found.low[places], found.high[places]
        low, high, _ = _sequences(known, known.sequences, places.tolist(), known.level, True)
        return np.maximum(low, known.sequences.limits[0]), np.minimum(high, known.sequences.limits[1])

    found = widths(known) if own else stop_rule.none_of(known.means)
    return stop_rule.look(known.stop_rule, wanted.asked, known.means, found, sequences, known.settled).reached


def reached(known: Known) -> bool | None:
    """Return whether every arm, or every sum, has reached its precision; None if none was asked for."""
    return None if known.precision is None else bool(reached_by_arm(known).all())


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
    assert known.precision is not None
    where = slice(None) if places is None else np.asarray(places)
    found, rule = widths(known, places), known.stop_rule
    targets = Targets(*(each[where] for each in known.precision.asked))
    settled = None if known.settled is None else known.settled[where]
    fixed, _ = stop_rule.fixed_width_decides(rule, targets, known.means[where], found, settled)
    least, most = known.sequences.limits
    with np.errstate(invalid="ignore"):
        half = found.half if level == known.level else widths(known, places, level).plain
        low, high = stop_rule.cautious(found.centres, low, high, found.caution)
        low, high = np.where(fixed, found.centres - half, low), np.where(fixed, found.centres + half, high)
    return np.maximum(low, least), np.minimum(high, most), fixed
