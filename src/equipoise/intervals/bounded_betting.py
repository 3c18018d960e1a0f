"""
Betting on the mean of an arm with a bounded support.

It is a mixture of constant bets, at a fixed cost per sample.

A gambler who believes that the mean is not m bets against it, in a game that is fair if it is. With the samples scaled
to [0, 1], each round multiplies the capital by (1 + κX)/(1 + κm) for some κ > -1: positive, and 1 on average if the
mean is m. The initial capital is split over bets κ_j, and after t rounds it is::

    capital_t(m) = sum_j w_j exp( L_j - t log(1 + κ_j m) ),     L_j = sum_{i<=t} log(1 + κ_j X_i)

By Ville's inequality it reaches 1/α at any time with probability at most α if m is the mean, so the m for which it
has not done so are a confidence sequence. κ does not depend on m, so the sums L_j are the whole state: there is no grid
of means, and nothing is approximated. Each term is log-convex in m, and at most w_j at the sample mean (Jensen). So the
set is an interval around the sample mean, whose ends Newton's method finds from outside when they are asked for.

The bet 1 + λ(X - m) of the paper is this one with λ = κ/(1 + κm), the two-horse race of Ryu and Bhatt with odds that
are e^θ = 1 + κ times those of m. θ runs over ±8/2^j for j = 0..15, with shares w ∝ 1/(9 + (j-4)²). The best θ is near
sqrt(2 log(1/α)/t)/σ: large ones suit few samples and small variances, the smallest an arm with 10^9 samples. Beyond
that the interval stays valid but shrinks no further. The shares fall slowly to both sides of θ = 1/2, and make the
interval a few percent narrower than equal shares would.

References
----------
.. [1] I. Waudby-Smith, A. Ramdas (2024), Estimating means of bounded random variables by betting. Journal of the Royal
   Statistical Society B 86: Section 4, the capital process (Proposition 2) and Theorem 1; numbers quoted from memory.
.. [2] T. M. Cover (1991), Universal portfolios. Mathematical Finance 1: a mixture of constant bets.
.. [3] J. J. Ryu, A. Bhatt (2022), On confidence sequences for bounded random processes via universal gambling
   strategies. arXiv:2207.12382.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from equipoise.compiled import jit
from equipoise.intervals.newton import edge_of

COUNT, LOGS = range(2)
LOW, WIDTH = range(2)

_HALVINGS = np.arange(16)
_THETAS = 8.0 / 2.0**_HALVINGS
_SHARES = 1 / (9.0 + (_HALVINGS - 4) ** 2)
BETS = np.expm1(np.concatenate([_THETAS, -_THETAS]))
LOG_SHARES = np.log(np.concatenate([_SHARES, _SHARES]) / (2 * _SHARES.sum()))
COLUMNS = LOGS + len(BETS)

# Capital e^40 times smaller than another is not worth its exponential; leaving it out only widens the interval.
_NEGLIGIBLE = 40.0


def settings(low: float, width: float, alpha: float) -> tuple[float, ...]:
    """Return the support; the bets are not tuned to a level."""
    return low, width


@jit
def update(state: Any, arm: int, x: float, settings: Any) -> None:
    """Add a sample of an arm to the state."""
    y = (x - settings[LOW]) / settings[WIDTH]
    row = state[arm]
    row[COUNT] += 1
    for j in range(len(BETS)):
        row[LOGS + j] += math.log1p(BETS[j] * y)


@jit
def capital(row: Any, m: float) -> tuple[float, float]:
    """Return the log-capital after betting against a mean of m, and its slope."""
    t = row[COUNT]
    largest, total, slope = -math.inf, 0.0, 0.0
    for j in range(len(BETS)):
        won = LOG_SHARES[j] + row[LOGS + j] - t * math.log1p(BETS[j] * m)
        if won > largest:
            scale = math.exp(largest - won)
            largest, total, slope = won, total * scale, slope * scale
        if won > largest - _NEGLIGIBLE:
            share = math.exp(won - largest)
            total += share
            slope -= share * t * BETS[j] / (1 + BETS[j] * m)
    return largest + math.log(total), slope / total


edge = edge_of(capital)


@jit
def bounds(row: Any, alpha: float, settings: Any) -> tuple[float, float]:
    """Return the interval at level 1 - alpha; the support before any sample."""
    limit = -math.log(alpha)
    low, high = edge(row, 0.0, 1.0, limit), edge(row, 1.0, -1.0, limit)
    return settings[LOW] + settings[WIDTH] * low, settings[LOW] + settings[WIDTH] * high
