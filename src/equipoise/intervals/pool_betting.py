"""
Betting on the mean of a finite population with a bounded support, drawn from without replacement.

It is a mixture of bets whose winnings are straight lines in the mean, at a fixed cost per sample.

Let the population have N items with mean μ, scaled to [0, 1], and let S be the sum of those drawn before draw i. If μ
is the mean, the next item is (Nμ - S)/(N - i + 1) on average, which is m_i(μ). So each draw multiplies the capital of a
gambler by a factor that is 1 on average, as in `bounded_betting`::

    (1 + κX_i) / (1 + κ m_i(μ)),     κ > -1

κ may depend on what was drawn before. Here e^θ = 1 + κ with θ = θ_j N/(N - i + 1) for each θ_j of `bounded_betting`,
but at most 8: the bets grow as the population is used up, in proportion to what an item tells about μ.

The product over m_i(μ) would need all draws for every μ. But log(1 + κm) is concave in m and lies below its tangent at
any c_i::

    log(1 + κ m) <= log(1 + κ c_i) + κ (m - c_i)/(1 + κ c_i)

and m_i is linear in μ. With the tangents in place of the logarithms the gambler has less, and the log-capital of bet j
is a line A_j - μ B_j: two sums, and no grid of means. What is lost is least where c_i is close to the m_i that bet j
is best against. c_i is m_i of a μ half-way between there and an estimate of the mean, which is made of the items drawn
before::

    μ̂ - κ_j σ̂²/(1 + κ_j (1 - μ̂))/2,     1 + κ_j = e^θ_j

Sums of the means of several populations (`contrast_betting`) bet with the constant θ_j as well. What is known of the
mean of a population that is nearly used up adds little to the error of a sum, and bets that had grown would have lost
most of the capital there.

By Ville's inequality the μ with a capital below 1/α are a confidence sequence. The capital is log-convex in μ, so they
are an interval, whose ends Newton's method finds from outside. They lie between S/N and (S + N - t)/N, which meet when
all is drawn.

References
----------
.. [1] I. Waudby-Smith, A. Ramdas (2024), Estimating means of bounded random variables by betting. Journal of the Royal
   Statistical Society B 86: section 5, betting without replacement; number quoted from memory.
.. [2] I. Waudby-Smith, A. Ramdas (2020), Confidence sequences for sampling without replacement. NeurIPS 33.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from equipoise.compiled import jit
from equipoise.intervals.bounded_betting import BETS, LOG_SHARES
from equipoise.intervals.newton import edge_of

COUNT, SIZE, SUM, SQUARES, LINES = range(5)
# Lines of the bets that grow, of which the intervals of means are made, and then of those that do not.
STEADY = LINES + 2 * len(BETS)
COLUMNS = STEADY + 2 * len(BETS)
LOW, WIDTH = range(2)

THETAS = np.log1p(BETS)
# The largest bet, as a θ.
MOST = 8.0


def settings(low: float, width: float, alpha: float) -> tuple[float, ...]:
    """Return the support; the bets are not tuned to a level."""
    return low, width


@jit
def update(state: Any, arm: int, x: float, settings: Any) -> None:
    """Add a sample of an arm to the state; the row must have the size of the population, and fewer samples."""
    y = (x - settings[LOW]) / settings[WIDTH]
    row = state[arm]
    t = row[COUNT]
    # N/(N - t), which is 1 for an infinite population, and S/(N - t).
    growth = 1 / (1 - t / row[SIZE])
    drawn = row[SUM] / row[SIZE] * growth
    # From earlier samples only, with half a pseudo-observation at 1/2: a bet must not depend on this sample.
    mean = (0.5 + row[SUM]) / (t + 1)
    variance = (0.25 + row[SQUARES]) / (t + 1)
    for j in range(len(BETS)):
        between = mean - BETS[j] * variance / (1 + BETS[j] * (1 - mean)) / 2
        c = min(max(between * growth - drawn, 0.0), 1.0)
        grown = math.expm1(min(max(THETAS[j] * growth, -MOST), MOST))
        for start, bet in ((LINES, grown), (STEADY, BETS[j])):
            slope = bet / (1 + bet * c)
            row[start + 2 * j] += math.log1p(bet * y) - math.log1p(bet * c) + slope * (c + drawn)
            row[start + 2 * j + 1] += slope * growth
    row[COUNT] = t + 1
    row[SUM] += y
    row[SQUARES] += (y - (0.5 + row[SUM]) / (t + 2)) ** 2


@jit
def capital(row: Any, m: float) -> tuple[float, float]:
    """Return the log-capital after betting against a mean of m, and its slope."""
    largest = -math.inf
    for j in range(len(BETS)):
        largest = max(largest, LOG_SHARES[j] + row[LINES + 2 * j] - m * row[LINES + 2 * j + 1])
    total, slope = 0.0, 0.0
    for j in range(len(BETS)):
        share = math.exp(LOG_SHARES[j] + row[LINES + 2 * j] - m * row[LINES + 2 * j + 1] - largest)
        total += share
        slope -= share * row[LINES + 2 * j + 1]
    return largest + math.log(total), slope / total


edge = edge_of(capital)


@jit
def bounds(row: Any, alpha: float, settings: Any) -> tuple[float, float]:
    """
    Return the interval at level 1 - alpha; the support before any sample, the exact mean when all is drawn.

    If the capital has reached 1/alpha against every mean that is still possible, it is the nearest one of them.
    """
    limit = -math.log(alpha)
    # The items that are not drawn yet could all be 0, or all be 1.
    least = row[SUM] / row[SIZE]
    most = least + (1 - row[COUNT] / row[SIZE])
    one, other = min(edge(row, least, 1.0, limit), most), max(edge(row, most, -1.0, limit), least)
    low, high = min(one, other), max(one, other)
    return settings[LOW] + settings[WIDTH] * low, settings[LOW] + settings[WIDTH] * high
