"""
Errors, intervals and best allocations for arms that are finite populations, sampled without replacement.

Losses and errors carry the correction 1 - count/size: a population that is used up is known exactly. Intervals are
those of drawing without replacement: betting for binary and bounded arms, which is exact at all times; the asymptotic
kind for all others; and fixed-n, exact for binary arms and with the same correction for others. Contrasts are direct:
by bets on all of their arms together, or with the same clock as the intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from equipoise.base.arrays import Floats, Ints
from equipoise.intervals import Intervals, asymptotic, fixed_width, populations
from equipoise.intervals import contrasts as direct
from equipoise.problem import Objective

# Contrasts are not tuned to less than this share of a population that is left in the end.
LEFT = 0.1


def corrected(losses: Floats, counts: Ints, sizes: Floats) -> Floats:
    """Return losses of drawing with replacement, corrected for populations of these sizes."""
    with np.errstate(invalid="ignore"):
        return np.where(counts >= sizes, 0.0, losses * (1 - counts / sizes))


def losses(variances: Floats, pulls: Floats, sizes: Floats) -> Floats:
    """Return the losses v (1/T - 1/N) of arms with T pulls out of populations of size N."""
    return np.asarray(np.maximum(variances * (1 / pulls - 1 / sizes), 0))


def bounds(
    sequences: Intervals, state: Floats, alpha: float, counts: Ints, means: Floats, sizes: Floats, whole: Floats
) -> tuple[Floats, Floats]:
    """
    Return the lower and upper ends of the intervals of some arms, each at level 1 - alpha.

    Parameters
    ----------
    sequences, state
        The intervals of the study, and the rows of their state for these arms.
    counts, means, sizes
        Of these arms.
    whole
        The lower and the upper ends by `sequences`: for drawing with replacement, unless they bet on bounded arms.
    """
    if sequences.kind == "betting" and sequences.support != "binary":
        low, high = whole
    elif sequences.kind == "betting":
        low, high = populations.over_binary(state, sizes, alpha)
    elif sequences.kind == "asymptotic":
        low, high = populations.over_moments(state, sizes, sequences.kernel.settings[0], alpha)
    elif sequences.kind == "fixed-width":
        half, plain, caution = np.empty((3, len(state)))
        fixed_width.over_arms(state, sizes, alpha, sequences.support == "binary", half, plain, caution)
        low, high = means - half, means + half
    elif sequences.support == "binary":
        low, high = whole
        some = np.flatnonzero(sizes < math.inf)
        low[some], high[some] = populations.over_exact(state[some], sizes[some], alpha)
    else:
        shrink = np.sqrt(np.maximum(0, 1 - counts / sizes))
        with np.errstate(invalid="ignore"):
            low, high = means - (means - whole[0]) * shrink, means + (whole[1] - means) * shrink
        low, high = (np.where(np.isnan(end), wide, end) for end, wide in zip((low, high), whole, strict=True))
    least, most = (0.0, 1.0) if sequences.support == "binary" else sequences.support or (-math.inf, math.inf)
    used_up = counts >= sizes
    low, high = (np.clip(np.where(used_up, means, end), least, most) for end in (low, high))
    return low, high


def contrasts(
    sequences: Intervals,
    places: Ints,
    weights: Floats,
    alpha: float,
    state: Floats,
    deviations: Floats | None,
    sizes: Floats,
    ends: Callable[[float], tuple[Floats, Floats]],
) -> tuple[Floats, Floats]:
    """
    Return the lower and upper ends of several contrasts, each at level 1 - alpha.

    Parameters
    ----------
    sequences, places, weights
        The intervals of the study; a row for each contrast, as `Intervals.contrasts` takes them.
    state, deviations, sizes
        Of the arms: rows of the state, standard deviations, and sizes of the populations. Without deviations, the kind
        is one that needs none.
    ends
        Returns the ends of all arms' intervals, each at level 1 - the alpha it is given.
    """
    if sequences.kind == "fixed-width":
        return sequences.sums(state, places, weights, alpha, sizes)
    if sequences.kind == "betting":  # of one arm
        low, high = ends(alpha)
        return direct.box(weights, low[places], high[places])
    counts, means = state[:, asymptotic.COUNT], state[:, asymptotic.SHIFT] + state[:, asymptotic.MEAN]
    if sequences.kind == "fixed-n" and (sequences.support == "binary" or places.shape[1] == 1):
        low, high = ends(alpha)
        return direct.newcombe(weights, means[places], low[places], high[places])
    assert deviations is not None
    support = sequences.support if isinstance(sequences.support, tuple) else (-math.inf, math.inf)
    least, most = direct.box(weights, *support)
    if sequences.kind == "fixed-n":
        variances = deviations**2 * np.maximum(1 - counts / sizes, 0)
        enough = (counts >= np.minimum(2, sizes))[places].all(1)
        half = direct.welch(weights, np.maximum(counts, 2)[places], variances[places], alpha)
        centre, half = (weights * means[places]).sum(1), np.where(enough, half, math.inf)
        return np.maximum(centre - half, least), np.minimum(centre + half, most)
    known, enough = counts >= sizes, counts >= np.minimum(asymptotic.START, sizes)
    # A population that is used up had one item left when its clock last ran.
    drawn = np.clip(counts, 1, sizes - 1)
    clocks = np.maximum(drawn / (1 - drawn / sizes), 1)
    rho2 = sequences.kernel.settings[asymptotic.RHO2]
    # Clocks in the unit of what they are expected to be in the end, so that none is far from what ρ² is tuned to.
    unit = np.maximum(1 - sequences.target / sizes, LEFT)[places]
    half = direct.asymptotic(
        weights * np.sqrt(unit), clocks[places] * unit, deviations[places], rho2, alpha, known[places]
    )
    centre = (weights * means[places]).sum(1)
    low, high = centre - half, centre + half
    few = ~enough[places].all(1)
    if few.any():
        varied = asymptotic.with_deviations(state, deviations)
        box = populations.over_moments(varied, sizes, rho2, alpha / places.shape[1])
        low[few], high[few] = direct.box(weights[few], box[0][places[few]], box[1][places[few]])
    return np.maximum(low, least), np.minimum(high, most)


def oracle_loss(objective: Objective, variances: Floats, sizes: Floats, spent: float) -> float:
    """
    Return the smallest loss that could have been had for what was spent; NaN for norms other than 1 and infinity.

    For the largest loss, it is the least L for which the arms' v/(L/w + v/N), the pulls that make w v (1/T - 1/N) = L,
    can be paid for. For the sum of the losses, and so for strata, it is that of the pulls min(N, κ sqrt(w v/c)) that
    cost what was spent. It is 0 where all that varies can be paid for.
    """
    K = len(variances)
    weights, costs = objective.weight(K), objective.cost(K)
    v = np.where(weights > 0, variances, 0.0)
    if np.isnan(v).any() or objective.p not in (1, math.inf):
        return math.nan
    if spent >= math.fsum((costs * sizes)[v > 0]):
        return 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        if objective.p == 1:
            parts = np.sqrt(weights * v / costs)
            most = float(np.max(sizes / parts, where=parts > 0, initial=0.0))
            times = _least(lambda times: bool(costs @ np.minimum(sizes, times * parts) >= spent), most)
            return objective.loss(losses(variances, np.where(parts > 0, times * parts, sizes), sizes))
        return _least(
            lambda loss: np.nan_to_num(costs * v / (loss / weights + v / sizes)).sum() <= spent,
            float((weights * v * costs).sum()) / spent,
        )


def _least(enough: Callable[[float], bool], high: float) -> float:
    """Return the least number that is enough by bisection, if `high` and everything above it is."""
    low = 0.0
    for _ in range(64):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
