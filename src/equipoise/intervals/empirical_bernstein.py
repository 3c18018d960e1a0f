"""
The predictable plug-in empirical Bernstein confidence sequence.

It is for arms with a bounded support.

With the samples scaled to [0, 1], at level 1 - α and at all t at once, the mean lies within::

    sum λ_i X_i / sum λ_i  ±  ( log(2/α) + sum v_i ψ(λ_i) ) / sum λ_i

    v_i = 4 (X_i - μ̂_{i-1})²,   ψ(λ) = (-log(1-λ) - λ)/4
    μ̂_t = (1/2 + sum X_i)/(t+1),   σ̂²_t = (1/4 + sum (X_i - μ̂_i)²)/(t+1)
    λ_t = min( sqrt(2 log(2/α') / (σ̂²_{t-1} t log(1+t))), c )

with sums over i = 1..t. Any λ in (0, 1) that depends only on earlier samples is valid; α' is the level that the λ are
tuned to, and another α may be asked for later. The state is six running sums per arm.

References
----------
.. [1] I. Waudby-Smith, A. Ramdas (2024), Estimating means of bounded random variables by betting. Journal of the Royal
   Statistical Society B 86: Theorem 2 with equations (13) to (15), numbers quoted from memory; c = 1/2 is one of the
   two values they propose.
"""

from __future__ import annotations

import math
from typing import Any

from equipoise.compiled import jit

COUNT, SUM, SQUARES, BETS, WEIGHTED, PENALTY = range(6)
COLUMNS = 6
LOW, WIDTH, LOG = range(3)

# c, the largest bet.
MOST = 0.5


@jit
def psi(bet: float) -> float:
    """Return ψ(λ), the factor of a bet's penalty: about λ²/8 for a small λ."""
    return (-math.log1p(-bet) - bet) / 4


def settings(low: float, width: float, alpha: float) -> tuple[float, ...]:
    """Return the support, and log(2/α') of the level that the bets are tuned to."""
    return low, width, math.log(2 / alpha)


@jit
def update(state: Any, arm: int, x: float, settings: Any) -> None:
    """Add a sample of an arm to the state."""
    y = (x - settings[LOW]) / settings[WIDTH]
    row = state[arm]
    t = row[COUNT] + 1
    # From earlier samples only, with half a pseudo-observation at 1/2: the bet must not depend on this sample.
    mean = (0.5 + row[SUM]) / t
    variance = (0.25 + row[SQUARES]) / t
    bet = min(math.sqrt(2 * settings[LOG] / (variance * t * math.log1p(t))), MOST)
    row[COUNT] = t
    row[SUM] += y
    row[SQUARES] += (y - (0.5 + row[SUM]) / (t + 1)) ** 2
    row[BETS] += bet
    row[WEIGHTED] += bet * y
    row[PENALTY] += 4 * (y - mean) ** 2 * psi(bet)


@jit
def bounds(row: Any, alpha: float, settings: Any) -> tuple[float, float]:
    """Return the interval at level 1 - alpha; the support before any sample."""
    low, high = 0.0, 1.0
    if row[COUNT] > 0:
        centre = row[WEIGHTED] / row[BETS]
        radius = (math.log(2 / alpha) + row[PENALTY]) / row[BETS]
        low, high = max(centre - radius, low), min(centre + radius, high)
    return settings[LOW] + settings[WIDTH] * low, settings[LOW] + settings[WIDTH] * high
