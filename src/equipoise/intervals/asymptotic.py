"""
The asymptotic confidence sequence, for any arm that has a variance.

Around the mean of t samples with standard deviation σ̂_t::

    μ̂_t ± σ̂_t sqrt( 2 (tρ² + 1)/(t²ρ²) · log( sqrt(tρ² + 1)/α ) )

It is to a confidence sequence what the interval of the central limit theorem is to a confidence interval: the mean
stays inside at all times from a late enough start on with probability tending to 1 - α. For no given number of samples
is that a guarantee, and there cannot be one: whatever was seen, a rare and huge value may still come.

So it begins with START samples: with fewer, σ̂ may be near zero by chance, and the interval is that of `t_mixture`,
unless all samples are equal. ρ determines the number of samples at
which the interval is narrowest, and is fixed before the first sample: for `target` samples and the level α it solves
u - log u = 1 - 2 log α with u = target ρ² + 1.

References
----------
.. [1] I. Waudby-Smith, D. Arbour, R. Sinha, E. H. Kennedy, A. Ramdas (2024), Time-uniform central limit theory and
   asymptotic confidence sequences. Annals of Statistics 52: Theorem 2.2; ρ as in its appendix on tuning, where u is
   -W_{-1}(-α²/e) with Lambert's W; numbers quoted from memory.
.. [2] R. R. Bahadur, L. J. Savage (1956), The nonexistence of certain statistical procedures in nonparametric problems.
   Annals of Mathematical Statistics 27: why there is no guarantee.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.compiled import jit
from equipoise.intervals import t_mixture
from equipoise.numeric import moments

COUNT, MEAN, M2, SHIFT = range(4)
COLUMNS = 4
RHO2, LOW, HIGH = range(3)

START = 20

_add = jit(moments.add_shifted)
_first, _half_width = t_mixture.first, t_mixture.half_width


def settings(low: float, high: float, target: float, alpha: float) -> tuple[float, ...]:
    """
    Return ρ² and the support.

    With this ρ² the interval at level 1 - alpha is narrowest at `target` samples.
    """
    level = 1 - 2 * math.log(alpha)
    u = level + math.log(level)
    for _ in range(20):
        u -= (u - math.log(u) - level) / (1 - 1 / u)
    return (u - 1) / target, low, high


@jit
def update(state: Any, arm: int, x: float, settings: Any) -> None:
    """Add a sample of an arm to the state."""
    row = state[arm]
    row[COUNT], row[SHIFT], row[MEAN], row[M2] = _add(row[COUNT], row[SHIFT], row[MEAN], row[M2], x)


def with_deviations(state: Floats, deviations: Floats) -> Floats:
    """Return a copy of the state as if the samples of its rows had these standard deviations."""
    found = state.copy()
    found[:, M2] = deviations**2 * np.maximum(state[:, COUNT] - 1, 0)
    return found


@jit
def radius(t: float, rho2: float, alpha: float) -> float:
    """Return the half-width of the interval for samples of variance one."""
    spread = t * rho2 + 1
    return math.sqrt(2 * spread / (t * t * rho2) * (math.log(spread) / 2 - math.log(alpha)))


@jit
def bounds(row: Any, alpha: float, settings: Any) -> tuple[float, float]:
    """
    Return the interval at asymptotic level 1 - alpha, within the support.

    It is the whole support before `t_mixture.first` samples, and before START as long as all are equal.
    """
    t = row[COUNT]
    if t < START and (row[M2] == 0 or t < _first(alpha)):
        return settings[LOW], settings[HIGH]
    unit = _half_width(t, alpha) if t < START else radius(t, settings[RHO2], alpha)
    half = math.sqrt(row[M2] / (t - 1)) * unit
    low, high = row[SHIFT] + (row[MEAN] - half), row[SHIFT] + (row[MEAN] + half)
    return max(low, settings[LOW]), min(high, settings[HIGH])
