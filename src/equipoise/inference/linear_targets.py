"""
The weighted sums of means that a precision is asked of: the combined mean of strata, and contrasts.

The rule is in `intervals.stop_rule`; this module gives it the evidence of the sums. An arm is sampled until every sum
that it is part of has reached its precision.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.inference.contrast_bounds import bounds
from equipoise.inference.known import Known, remembered
from equipoise.intervals import stop_rule

if TYPE_CHECKING:
    from equipoise.ledger.goal import Sums


class Found(NamedTuple):
    """
    Values, targets and deciding intervals of the sums, each at its share of the study's level.

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
    """Return the intervals that decide for the sums that the precision is asked of."""
    assert known.precision is not None
    assert known.precision.sums is not None
    return look(known, known.precision.sums)


def look(known: Known, asked: Sums, everything: bool = False) -> Found:
    """
    Apply the stop rule to the sums.

    Parameters
    ----------
    known, asked
        The study, and the sums that its precision is asked of.
    everything
        Whether to follow the sequences of sums that cannot have reached their precision, too.
    """
    assert known.precision is not None
    weights, rule, targets = asked.weights, known.stop_rule, known.precision.asked
    inside = weights != 0
    means = known.means
    values = np.where(inside, weights * np.where(inside, means, 0.0), 0.0).sum(1)
    if known.evidence is None:
        widths = stop_rule.none_of(values, caution=math.inf, least=math.inf)
    else:
        widths = stop_rule.of_sums(rule, known.moments, weights, values, known.objective.exponent)
    # While an arm is sampled for other sums, the interval may still change: a stop is final when all arms have stopped.
    settled = None if known.settled is None else (known.settled | ~inside).all(1)
    found = stop_rule.look(
        rule, targets, values, widths, lambda which: _sequences(known, weights, rule.alpha, which), settled, everything
    )
    # A sum has reached nothing before each of its arms has a sample.
    return Found(
        values, targets.half_widths(values), found.low, found.high, found.fixed, found.reached & ~np.isnan(values)
    )


def _sequences(known: Known, weights: Floats, alpha: float, which: Ints) -> tuple[Floats, Floats]:
    """Return the ends of the confidence sequences of some of the sums."""
    several = (weights != 0).sum(1)
    low, high = np.empty((2, len(weights)))
    for m in np.unique(several[which]):
        rows = which[several[which] == m]
        places = np.nonzero(weights[rows])[1].reshape(len(rows), m)
        own = np.take_along_axis(weights[rows], places, axis=1)
        low[rows], high[rows] = bounds(known, places, own, alpha)
    return low[which], high[which]


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
