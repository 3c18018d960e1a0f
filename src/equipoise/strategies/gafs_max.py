"""GAFS-MAX, greedy allocation with forced selection."""

from __future__ import annotations

import math
from dataclasses import dataclass

from equipoise.strategies.registry import register
from equipoise.strategies.strategy import Numbers, Strategy, Support, require_positive


@register("gafs-max")
@dataclass(frozen=True)
class GAFSMAX(Strategy):
    """
    Pull the arm with the largest variance over its pulls, but no arm too rarely.

    At round t, pull::

        the least pulled arm U at round t     if T_{U,t-1} < α sqrt(t-1) + 1
        the largest σ̂²_{k,t-1} / T_{k,t-1}     otherwise

    with the biased variance σ̂² = M2/T, after one pull of each arm. It needs no budget.

    Parameters
    ----------
    alpha
        α, how strongly arms with few pulls are forced.

    Notes
    -----
    The paper describes GAFS-MAX in words only. The rule above is quoted from memory of Antos, Grover and Szepesvári,
    whose text was not at hand; the constant of the forced selection in particular may differ from theirs.

    References
    ----------
    .. [1] A. Antos, V. Grover, C. Szepesvári (2010), Active learning in heteroscedastic noise. Theoretical Computer
       Science 411, 2712-2728.
    """

    alpha: float = 1.0

    warmup = 1

    def __post_init__(self) -> None:
        require_positive(self, "alpha")

    def params(self, budget: int | None, arms: int, support: Support) -> Numbers:
        return (self.alpha,)

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return m2 / count

    @staticmethod
    def floor(t: float, arms: float, params: Numbers) -> float:
        return params[0] * math.sqrt(t) + 1
