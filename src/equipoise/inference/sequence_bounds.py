"""Ends of the arms' confidence sequences, as their kind, finite populations and equal samples have them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.inference import finite
from equipoise.inference.known import Known
from equipoise.intervals import Intervals, asymptotic, t_mixture
from equipoise.intervals.asymptotic import START


def bounds(known: Known, sequences: Intervals, places: Sequence[int] | None, level: float) -> tuple[Floats, Floats]:
    """Return the ends of the intervals of some arms, None for all, which hold together at a level."""
    return bounds_of(known, sequences, places, (1 - level) / len(known.arms))


def bounds_of(known: Known, sequences: Intervals, places: Sequence[int] | None, alpha: float) -> tuple[Floats, Floats]:
    """Return the ends of the intervals of some arms, None for all, each at level 1 - alpha."""
    return _bounds_at(known, sequences, known.state_of(sequences.kind, places), places, alpha)


def _bounds_at(
    known: Known, sequences: Intervals, state: Floats, places: Sequence[int] | None, alpha: float
) -> tuple[Floats, Floats]:
    """Return the ends of the intervals of some arms, None for all, from the rows of their state."""
    low, high = sequences.bounds_at(state, alpha)
    where: Ints = np.arange(len(known.arms)) if places is None else np.asarray(places)
    if known.populations is not None:
        counts, means, sizes = known.counts[where], known.means[where], known.populations[where]
        low, high = finite.bounds(sequences, state, alpha, counts, means, sizes, np.array([low, high]))
    few = too_few(known, sequences, state, where, alpha)
    return np.where(few, -math.inf, low), np.where(few, math.inf, high)


def widened(
    known: Known,
    sequences: Intervals,
    places: Sequence[int] | None,
    level: float,
    low: Floats,
    high: Floats,
    half: Floats,
) -> tuple[Floats, Floats, Floats]:
    """
    Widen the intervals of arms whose samples are all equal; return ends and half-widths.

    Equal samples are no proof that an arm never varies. One of n samples takes the half-width of the most varying arm,
    times the square root of that arm's number of samples over n.
    """
    where = slice(None) if places is None else np.asarray(places)
    counts, variances = known.counts, known.variances
    equal = variances[where] == 0
    if known.populations is not None:
        equal &= counts[where] < known.populations[where]
    if sequences.kind not in ("asymptotic", "fixed-n") or not equal.any():
        return low, high, half
    most = int(np.nanargmax(variances))
    if not variances[most] > 0:
        return low, high, half
    its_low, its_high = (low[most], high[most]) if places is None else bounds(known, sequences, [most], level)
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = (its_high - its_low) / 2 * np.sqrt(counts[most] / counts[where])
        few = equal & ~np.isfinite(half)  # before START; these begin with the interval of that variance
        if few.any():
            state = known.state_of(sequences.kind, places)
            varied = asymptotic.with_deviations(state, np.full(len(state), math.sqrt(variances[most])))
            below, above = _bounds_at(known, sequences, varied, places, (1 - level) / len(known.arms))
            scaled = np.where(few, np.maximum(scaled, (above - below) / 2), scaled)
        wider = equal & np.where(few, np.isfinite(scaled), scaled > half)
        centre = np.where(wider, np.where(few, known.means[where], (low + high) / 2), 0.0)
    return (
        np.where(wider, centre - scaled, low),
        np.where(wider, centre + scaled, high),
        np.where(wider, scaled, half),
    )


def too_few(known: Known, sequences: Intervals, state: Floats, places: Ints, alpha: float) -> Bools:
    """Return which arms have too few samples to tell whether all of theirs are 0 or 1, as those so far are."""
    if not known.recognised or sequences.kind == "fixed-n":
        return np.zeros(len(places), bool)
    sizes = math.inf if known.populations is None else known.populations[places]
    return np.asarray(state[:, asymptotic.COUNT] < np.minimum(first_interval(known, alpha), sizes))


def first_interval(known: Known, alpha: float) -> int:
    """
    Return with how many samples of an arm its interval at level 1 - alpha begins, if it rests on the samples alone.

    That is so where no support was declared. As long as all samples of each arm are equal, START are needed.
    """
    if not (known.variances > 0).any():
        return START
    return int(min(START, t_mixture.first(alpha)))
