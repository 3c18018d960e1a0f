"""Weights on the losses with which all arms, or sums of them, approach their targets together."""

from __future__ import annotations

import math

import numpy as np

from equipoise.base.arrays import Bools, Floats
from equipoise.inference.known import Known
from equipoise.inference.linear_targets import look
from equipoise.ledger.goal import WEIGHTS, Sums
from equipoise.problem.contrasts import balanced


def weights(known: Known, closed: Bools | None = None) -> Floats | None:
    """
    Return weights on the losses with which all arms approach their targets together.

    The weight of an arm is 1 over the square of its target, in units of the smallest. A mean with a large standard
    error may be larger than its estimate by that much, so that no target is near zero by chance. An arm whose mean
    is within three standard errors of zero can hardly be known to a share of it: its weight is limited to what
    gives it an even share of the samples. None as long as an arm that is not closed has no standard error.

    For contrasts they are those with which the sum of the weighted losses is smallest where the largest error of a
    contrast relative to its target is (`_of_sums`).
    """
    precision = known.precision
    assert precision is not None
    if precision.sums is not None:
        return _of_sums(known, precision.sums)
    means, errors, variances = np.abs(known.means), known.plain_errors, known.variances
    asked = np.ones(len(means), bool) if closed is None else ~closed
    measured = np.isfinite(errors)
    if (asked & ~measured).any():
        return None
    wanted, relative = np.array(precision.wanted), np.array(precision.relative)
    targets = np.where(relative, wanted * (means + errors), wanted)
    some = measured & (targets > 0)
    if not some.any():
        return None
    vague = relative & (means <= 3 * errors) & some
    told = some & ~vague & asked
    weights = np.square(targets[some].min() / np.where(some, targets, 1))
    # An arm has samples in proportion to its weight times its variance.
    parts = weights * variances
    even = parts[told].mean() if parts[told].any() else parts[some & (parts > 0)].min(initial=math.inf)
    with np.errstate(divide="ignore"):
        weights = np.where(vague, np.minimum(weights, even / variances), weights)
    # A share of a mean of exactly zero, or of an unknown one, is no target: such an arm has the largest weight.
    weights = np.where(some, weights, weights[some].max())
    return np.asarray(np.maximum(weights / weights.max(), WEIGHTS[0]))


def _of_sums(known: Known, asked: Sums) -> Floats | None:
    """
    Return weights on the losses with which contrasts approach their targets together.

    They are those of `problem.contrasts.balanced`, for the contrasts that are still too wide. None as long as an arm
    that is not closed has no variance.
    """
    found = look(known, asked)
    open_ones = ~found.reached if (~found.reached).any() else np.ones(len(found.reached), bool)
    relative = np.square(asked.weights[open_ones] / found.targets[open_ones, None])
    needed = relative.any(0)
    variances = np.where(needed, known.variances, 0.0)
    if np.isnan(variances).any():
        return None
    most = variances.max()
    if not most > 0:
        return None
    # An arm whose samples are all equal may vary after all: as much as the next sample, of the largest variance, shows.
    variances = np.where(needed, np.where(variances > 0, variances, most / (known.counts + 1)), 0.0)
    chosen = balanced(relative, variances, known.objective.cost(len(known.arms)))
    # An arm that no open contrast needs has next to no weight, and one that none needs at all has none.
    return np.where(asked.weights.any(0), np.maximum(chosen / chosen.max(), 1e-9), 0.0)
