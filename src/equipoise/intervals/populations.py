"""
Intervals for the mean of a finite population, drawn without replacement.

They shrink to the exact mean when the population is exhausted.

**Binary items.** Of N items n are ones. Any one order of s ones and f zeros among the first t = s + f draws has the
probability [n]_s [N-n]_f / [N]_t, with falling factorials [n]_s = n (n-1) ... (n-s+1). The mixture of these over all
n, with the weights of a Beta(1/2, 1/2) prior, is B(s + 1/2, f + 1/2)/π, as with replacement, and::

    R_t(n) = B(s + 1/2, f + 1/2)/π · [N]_t / ([n]_s [N-n]_f)

is a martingale if n is the true number. So {n/N: R_t(n) < 1/α} is a confidence sequence.

**Other items.** (Σ_{i<=t} X_i - tμ)/(1 - t/N) is a martingale too, whose variance is that of τ = t/(1 - t/N) draws with
replacement. So the asymptotic sequence has the half-width σ̂ times its radius at τ instead of t. Before START samples,
that of `t_mixture` is multiplied by the ratio of these radii, with ρ² = 1/g.

**Binary items, at a fixed t.** S, the ones among t draws, is hypergeometric. As Clopper and Pearson do for draws with
replacement, {n: P_n(S >= s) > α/2 and P_n(S <= s) > α/2} covers the true number of ones at least as often as it says.

Items with a bounded support have `pool_betting`.

References
----------
.. [1] I. Waudby-Smith, A. Ramdas (2020), Confidence sequences for sampling without replacement. NeurIPS 33: section 2,
   the prior-posterior-ratio martingale.
.. [2] R. J. Serfling (1974), Probability inequalities for the sum in sampling without replacement. Annals of Statistics
   2: the martingale of sums.
.. [3] W. Wang (2015), Exact optimal confidence intervals for hypergeometric parameters. Journal of the American
   Statistical Association 110: tail intervals such as `exact`, and narrower ones.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from equipoise.compiled import jit
from equipoise.intervals.asymptotic import COUNT, M2, MEAN, SHIFT, START, radius
from equipoise.intervals.binary_betting import mixture
from equipoise.intervals.t_mixture import SHARE, G, first, half_width


@jit
def _falling(n: float, s: float) -> float:
    """Return the logarithm of n (n-1) ... (n-s+1)."""
    return math.lgamma(n + 1) - math.lgamma(n - s + 1)


@jit
def _possible(n: float, s: float, f: float, size: float, enough: float) -> bool:
    """Whether R_t(n) is below 1/alpha; `enough` is the logarithm that [n]_s [N-n]_f must exceed for that."""
    return _falling(n, s) + _falling(size - n, f) > enough


@jit
def binary(s: float, f: float, size: float, alpha: float) -> tuple[float, float]:
    """
    Return the interval at level 1 - alpha after s ones and f zeros.

    `size` is that of the population.
    """
    enough = mixture(s, f) + math.log(alpha) + _falling(size, s + f)
    # The likelihood has its only peak here, so the possible n are an interval around it.
    peak = min(max(math.floor((size + 1) * s / (s + f)), s), size - f) if s + f > 0 else 0.0
    low, high = s - 1, peak
    while high - low > 1:
        middle = math.floor((low + high) / 2)
        if _possible(middle, s, f, size, enough):
            high = middle
        else:
            low = middle
    least = high
    low, high = peak, size - f + 1
    if s + f == 0:
        return 0.0, 1.0
    while high - low > 1:
        middle = math.floor((low + high) / 2)
        if _possible(middle, s, f, size, enough):
            low = middle
        else:
            high = middle
    return least / size, low / size


@jit
def _at_least(s: float, t: float, n: float, size: float) -> float:
    """Return the probability of at least s ones among t draws from `size` items, n of which are ones."""
    if s <= max(0.0, t - (size - n)):
        return 1.0
    if s > min(t, n):
        return 0.0
    first = math.exp(
        (_falling(n, s) - math.lgamma(s + 1))
        + (_falling(size - n, t - s) - math.lgamma(t - s + 1))
        - (_falling(size, t) - math.lgamma(t + 1))
    )
    # From s away from the most likely number: terms fall, and those that are left out are below the rounding.
    up = s * (size + 2) > (t + 1) * (n + 1)
    total, term, j = 0.0, first, s
    while term > 1e-18 * total and term > 0:
        total += term
        if up:
            term *= (n - j) * (t - j) / ((j + 1) * (size - n - t + j + 1))
            j += 1
        else:
            term *= j * (size - n - t + j) / ((n - j + 1) * (t - j + 1))
            j -= 1
    return min(total if up else 1 - total + first, 1.0)


@jit
def exact(s: float, f: float, size: float, alpha: float) -> tuple[float, float]:
    """Return the interval at level 1 - alpha after s ones and f zeros, if their number was fixed beforehand."""
    ends = np.empty(2)
    for side in range(2):
        ones, others = (s, f) if side == 0 else (f, s)
        # The least number of ones with which as many as these are not too unlikely.
        low, high = ones - 1, size - others
        while high - low > 1:
            middle = math.floor((low + high) / 2)
            if _at_least(ones, s + f, middle, size) > alpha / 2:
                high = middle
            else:
                low = middle
        ends[side] = high / size
    return ends[0], 1 - ends[1]


@jit
def asymptotic(t: float, mean: float, m2: float, size: float, rho2: float, alpha: float) -> tuple[float, float]:
    """
    Return the interval at asymptotic level 1 - alpha.

    It is unbounded before `t_mixture.first` samples, and before START as long as all are equal.
    """
    if t >= size:
        return mean, mean
    if t < START and (m2 == 0 or t < first(alpha)):
        return -math.inf, math.inf
    clock = t / (1 - t / size)
    if t < START:
        few = SHARE * alpha
        unit = half_width(t, alpha) * radius(clock, 1 / G, few) / radius(t, 1 / G, few)
    else:
        unit = radius(clock, rho2, alpha)
    half = math.sqrt(m2 / (t - 1)) * unit
    return mean - half, mean + half


@jit
def over_binary(state: Any, sizes: Any, alpha: float) -> Any:
    """Return `binary` for each arm, from counts and ones."""
    ends = np.empty((2, len(state)))
    for k in range(len(state)):
        ends[0, k], ends[1, k] = binary(state[k, 1], state[k, 0] - state[k, 1], sizes[k], alpha)
    return ends


@jit
def over_exact(state: Any, sizes: Any, alpha: float) -> Any:
    """Return `exact` for each arm, from counts, means, M2 and shifts."""
    ends = np.empty((2, len(state)))
    for k in range(len(state)):
        ones = float(round(state[k, COUNT] * (state[k, SHIFT] + state[k, MEAN])))
        ends[0, k], ends[1, k] = exact(ones, state[k, COUNT] - ones, sizes[k], alpha)
    return ends


@jit
def over_moments(state: Any, sizes: Any, rho2: float, alpha: float) -> Any:
    """Return `asymptotic` for each arm, from counts, means, M2 and shifts."""
    ends = np.empty((2, len(state)))
    for k in range(len(state)):
        row = state[k]
        low, high = asymptotic(row[COUNT], row[MEAN], row[M2], sizes[k], rho2, alpha)
        ends[0, k], ends[1, k] = row[SHIFT] + low, row[SHIFT] + high
    return ends
