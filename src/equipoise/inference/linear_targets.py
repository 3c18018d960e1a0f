"""
The weighted sums of means that a precision is asked of: the combined mean of strata, and contrasts.

A sum has reached its precision when its interval is narrow enough: by default the fixed-width interval
(`intervals.fixed_width_sums`), and where that cannot be trusted a confidence sequence for the sum itself, as
`arm_intervals` has it for means. An arm is sampled until every sum that it is part of has reached its precision.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.inference.contrast_bounds import bounds
from equipoise.inference.known import Known, remembered
from equipoise.intervals import fixed_width, fixed_width_sums

if TYPE_CHECKING:
    from equipoise.ledger.goal import Sums


class Found(NamedTuple):
    """
    What is known of the sums, each at its share of the result's level.

    Attributes
    ----------
    values, targets
        The sums of the means, and the half-widths asked for.
    low, high
        The ends of the intervals that decide; infinite where no sequence was followed, as it cannot be narrow enough.
    fixed, reached
        Which have fixed-width intervals that are narrow enough, and which have reached their precision.
    """

    values: Floats
    targets: Floats
    low: Floats
    high: Floats
    fixed: Bools
    reached: Bools

    @property
    def margins(self) -> Floats:
        """The larger of value - low and high - value."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.maximum(self.values - self.low, self.high - self.values))


@remembered
def sums_found(known: Known) -> Found:
    """Return what is known of the sums that the precision is asked of, as far as it decides."""
    assert known.precision is not None
    assert known.precision.sums is not None
    return look(known, known.precision.sums)


def look(known: Known, asked: Sums, everything: bool = False) -> Found:
    """
    Return what is known of the sums.

    Parameters
    ----------
    known, asked
        The known, and the sums that its precision is asked of.
    everything
        Whether to follow the sequences of sums that cannot have reached their precision, too.
    """
    assert known.precision is not None
    weights, alpha = asked.weights, (1 - known.level) / len(asked.weights)
    inside = weights != 0
    means = known.means
    values = np.where(inside, weights * np.where(inside, means, 0.0), 0.0).sum(1)
    targets = known.precision.targets(values)
    half, caution, least = np.full((3, len(weights)), math.inf)
    if known.evidence is not None:
        state = known.state_of("fixed-width", None)
        sizes = np.full(len(means), math.inf) if known.populations is None else known.populations
        binary, power = known.sequences.support == "binary", known.objective.exponent
        found = fixed_width_sums.half_widths(weights, state, sizes, alpha, binary, power)
        # Of nothing at all, a sequence is the whole support.
        caution = found.caution if known.sequences.kind == "asymptotic" else np.ones(len(weights))
        least = found.least
        if known.precision.interval == "fixed-width":
            half = np.where(found.trusted, found.plain, math.inf)
        else:
            caution = np.ones(len(weights))
    with np.errstate(invalid="ignore"):
        fixed = half <= known.precision.targets(values, fixed_width.largest_share(alpha))
        low, high = np.where(fixed, values - half, -math.inf), np.where(fixed, values + half, math.inf)
        follow = ~fixed & (everything | (least <= targets))
        _sequences(known, weights, alpha, np.flatnonzero(follow), np.nan_to_num(caution, nan=1.0), low, high)
        reached = fixed | (np.maximum(values - low, high - values) <= targets)
    if known.settled is not None:
        # Its arms are stopped once all of their sums have reached their precision.
        reached |= (inside & known.settled).any(1)
    return Found(values, targets, low, high, fixed, reached)


def _sequences(
    known: Known, weights: Floats, alpha: float, which: Ints, caution: Floats, low: Floats, high: Floats
) -> None:
    """Put the ends of the sequences of some of the sums into `low` and `high`, with caution."""
    several = (weights != 0).sum(1)
    for m in np.unique(several[which]):
        rows = which[several[which] == m]
        places = np.nonzero(weights[rows])[1].reshape(len(rows), m)
        own = np.take_along_axis(weights[rows], places, axis=1)
        ends = bounds(known, places, own, alpha)
        means = known.means[places]
        centres = (own * means).sum(1)
        wide = np.minimum(caution[rows] - 1, 1e6)
        below, above = np.maximum([centres - ends[0], ends[1] - centres], 0)
        low[rows] = ends[0] - np.where(wide > 0, wide * below, 0.0)
        high[rows] = ends[1] + np.where(wide > 0, wide * above, 0.0)


def reached_by_arm(asked: Sums, reached: Bools) -> Bools:
    """Return which arms are in no sum that has not reached its precision."""
    return np.asarray(~(asked.weights[~reached] != 0).any(0))


def stopping_shares(known: Known) -> Floats:
    """
    Return π_k = c_k² s_k²/T_k / V, the arms' shares of the squared error V of the sum whose stop ended their sampling.

    All arms of a sum stop when V is small enough, so that the number of samples is in proportion to s_k² to the power
    π_k. An arm of several sums stops with the last of them, which is taken to be the nearest to its target. π is 0 for
    arms that did not stop so, and is taken to be 0 for binary arms, whose interval is less in proportion to s.
    """
    asked, nothing = None if known.precision is None else known.precision.sums, np.zeros(len(known.arms))
    if asked is None or known.evidence is None or known.sequences.support == "binary":
        return nothing
    found = sums_found(known)
    with np.errstate(divide="ignore", invalid="ignore"):
        near = np.where(found.reached, np.nan_to_num(found.margins / found.targets, posinf=0.0), -1.0)
        variances = np.where(asked.weights != 0, known.variances, 0.0) / known.counts
        errors = np.abs(asked.weights) * np.sqrt(variances)
        parts = np.square(errors / errors.max(axis=1, keepdims=True))
        shares = np.nan_to_num(parts / parts.sum(axis=1, keepdims=True))
    last = np.where(asked.weights != 0, near[:, None], -2.0).argmax(axis=0)
    arms = np.arange(len(known.arms))
    return np.asarray(np.where(reached_by_arm(asked, found.reached), shares[last, arms], 0.0))
