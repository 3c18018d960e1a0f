"""
The weighted sums of means that a precision is asked of: the combined mean of strata, and contrasts.

A sum has reached its precision when its interval is narrow enough: by default the fixed-width interval
(`intervals.fixed_width_sums`), and where that cannot be trusted a confidence sequence for the sum itself, as `stopping`
has it for means. An arm is sampled until every sum that it is part of has reached its precision.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.base.inputs import plain_name
from equipoise.inference import comparisons as contrasts
from equipoise.intervals import fixed_width, fixed_width_sums
from equipoise.problem.contrasts import balanced

if TYPE_CHECKING:
    from equipoise.ledger.goal import Sums
    from equipoise.result.result import Result


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


def look(result: Result, asked: Sums, everything: bool = False) -> Found:
    """
    Return what is known of the sums.

    Parameters
    ----------
    result, asked
        The result, and the sums that its precision is asked of.
    everything
        Whether to follow the sequences of sums that cannot have reached their precision, too.
    """
    assert result.precision is not None
    weights, alpha = asked.weights, (1 - result.level) / len(asked.weights)
    inside = weights != 0
    means = result.means.array
    values = np.where(inside, weights * np.where(inside, means, 0.0), 0.0).sum(1)
    targets = result.precision.targets(values)
    half, caution, least = np.full((3, len(weights)), math.inf)
    if result.snapshot.evidence is not None:
        state = result.state_of("fixed-width", None)
        sizes = np.full(len(means), math.inf) if result.populations is None else result.populations
        binary, power = result.sequences.support == "binary", result.objective.exponent
        found = fixed_width_sums.half_widths(weights, state, sizes, alpha, binary, power)
        # Of nothing at all, a sequence is the whole support.
        caution = found.caution if result.sequences.kind == "asymptotic" else np.ones(len(weights))
        least = found.least
        if result.precision.interval == "fixed-width":
            half = np.where(found.trusted, found.plain, math.inf)
        else:
            caution = np.ones(len(weights))
    with np.errstate(invalid="ignore"):
        fixed = half <= result.precision.targets(values, fixed_width.largest_share(alpha))
        low, high = np.where(fixed, values - half, -math.inf), np.where(fixed, values + half, math.inf)
        follow = ~fixed & (everything | (least <= targets))
        _sequences(result, weights, alpha, np.flatnonzero(follow), np.nan_to_num(caution, nan=1.0), low, high)
        reached = fixed | (np.maximum(values - low, high - values) <= targets)
    return Found(values, targets, low, high, fixed, reached)


def _sequences(
    result: Result, weights: Floats, alpha: float, which: Ints, caution: Floats, low: Floats, high: Floats
) -> None:
    """Put the ends of the sequences of some of the sums into `low` and `high`, with caution."""
    several = (weights != 0).sum(1)
    for m in np.unique(several[which]):
        rows = which[several[which] == m]
        places = np.nonzero(weights[rows])[1].reshape(len(rows), m)
        own = np.take_along_axis(weights[rows], places, axis=1)
        ends = contrasts.bounds(result, places, own, alpha)
        means = result.means.array[places]
        centres = (own * means).sum(1)
        wide = np.minimum(caution[rows] - 1, 1e6)
        below, above = np.maximum([centres - ends[0], ends[1] - centres], 0)
        low[rows] = ends[0] - np.where(wide > 0, wide * below, 0.0)
        high[rows] = ends[1] + np.where(wide > 0, wide * above, 0.0)


def reached_by_arm(asked: Sums, reached: Bools) -> Bools:
    """Return which arms are in no sum that has not reached its precision."""
    return np.asarray(~(asked.weights[~reached] != 0).any(0))


def weights(result: Result) -> Floats | None:
    """
    Return weights on the losses with which contrasts approach their targets together.

    They are those of `problem.contrasts.balanced`, for the contrasts that are still too wide. None as long as an arm
    that is not closed has no variance.
    """
    assert result.precision is not None
    asked = result.precision.sums
    assert asked is not None
    found = look(result, asked)
    open_ones = ~found.reached if (~found.reached).any() else np.ones(len(found.reached), bool)
    relative = np.square(asked.weights[open_ones] / found.targets[open_ones, None])
    needed = relative.any(0)
    variances = np.where(needed, result.variances.array, 0.0)
    if np.isnan(variances).any():
        return None
    most = variances.max()
    if not most > 0:
        return None
    # An arm whose samples are all equal may vary after all: as much as the next sample, of the largest variance, shows.
    variances = np.where(needed, np.where(variances > 0, variances, most / (result.counts.array + 1)), 0.0)
    chosen = balanced(relative, variances, result.objective.cost(len(result.arms)))
    # An arm that no open contrast needs has next to no weight, and one that none needs at all has none.
    return np.where(asked.weights.any(0), np.maximum(chosen / chosen.max(), 1e-9), 0.0)


def contrasts_of(result: Result, asked: Sums) -> list[contrasts.Contrast]:
    """Return the sums with their standard errors and intervals."""
    found = look(result, asked, everything=True)
    of_arms = result.errors_of_strata if asked.combined else result.standard_errors.array
    errors = np.hypot.reduce(np.where(asked.weights != 0, asked.weights * of_arms, 0.0), axis=1)
    return [
        contrasts.Contrast(
            float(found.values[j]),
            float(errors[j]),
            float(found.low[j]),
            float(found.high[j]),
            result.level,
            "fixed-width" if found.fixed[j] else result.interval_kind,
            # Positive weights first, as in a - control.
            {plain_name(result.arms[k]): float(row[k]) for k in np.argsort(-row, kind="stable").tolist() if row[k]},
        )
        for j, row in enumerate(asked.weights)
    ]


def pairs(result: Result, first: Ints, second: Ints) -> contrasts.ContrastEnds | None:
    """Return the intervals of the differences first - second if the precision is asked of just these; else None."""
    asked = None if result.precision is None else result.precision.sums
    if asked is None or len(asked.weights) != len(first):
        return None
    plain = (np.sort(asked.weights, axis=1)[:, [0, -1]] == [-1, 1]).all(1) & ((asked.weights != 0).sum(1) == 2)
    if not plain.all():
        return None
    up, down = asked.weights.argmax(1), asked.weights.argmin(1)
    rows = {pair: j for j, pair in enumerate(zip(up.tolist(), down.tolist(), strict=True))}
    found = look(result, asked, everything=True)
    low, high = np.empty((2, len(first)))
    fixed = np.zeros(len(first), bool)
    for i, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        if (a, b) in rows:
            j = rows[a, b]
            low[i], high[i], fixed[i] = found.low[j], found.high[j], found.fixed[j]
        elif (b, a) in rows:
            j = rows[b, a]
            low[i], high[i], fixed[i] = -found.high[j], -found.low[j], found.fixed[j]
        else:
            return None
    return contrasts.ContrastEnds(low, high, fixed)


def the_one_asked(result: Result, places: Ints, own: Floats) -> contrasts.Contrast | None:
    """Return the contrast with these weights if the precision is asked of it, or of its opposite; else None."""
    asked = None if result.precision is None else result.precision.sums
    if asked is None:
        return None
    wanted = np.zeros(len(result.arms))
    wanted[places] = own
    for sign in (1, -1):
        rows = np.flatnonzero((asked.weights == sign * wanted).all(1))
        if len(rows):
            found = contrasts_of(result, asked)[int(rows[0])]
            return found if sign > 0 else found.opposite
    return None


def stopping_shares(result: Result) -> Floats:
    """
    Return π_k = c_k² s_k²/T_k / V, the arms' shares of the squared error V of the sum whose stop ended their sampling.

    All arms of a sum stop when V is small enough, so that the number of samples is in proportion to s_k² to the power
    π_k. An arm of several sums stops with the last of them, which is taken to be the nearest to its target. π is 0 for
    arms that did not stop so, and is taken to be 0 for binary arms, whose interval is less in proportion to s.
    """
    asked, nothing = None if result.precision is None else result.precision.sums, np.zeros(len(result.arms))
    if asked is None or result.snapshot.evidence is None or result.sequences.support == "binary":
        return nothing
    found = result.sums_found
    with np.errstate(divide="ignore", invalid="ignore"):
        near = np.where(found.reached, np.nan_to_num(found.margins / found.targets, posinf=0.0), -1.0)
        variances = np.where(asked.weights != 0, result.variances.array, 0.0) / result.counts.array
        errors = np.abs(asked.weights) * np.sqrt(variances)
        parts = np.square(errors / errors.max(axis=1, keepdims=True))
        shares = np.nan_to_num(parts / parts.sum(axis=1, keepdims=True))
    last = np.where(asked.weights != 0, near[:, None], -2.0).argmax(axis=0)
    arms = np.arange(len(result.arms))
    return np.asarray(np.where(reached_by_arm(asked, found.reached), shares[last, arms], 0.0))
