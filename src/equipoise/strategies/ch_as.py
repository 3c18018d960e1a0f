"""CH-AS, the Chernoff-Hoeffding allocation strategy."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from equipoise.base.errors import InvalidInput
from equipoise.strategies.registry import register
from equipoise.strategies.strategy import Numbers, Strategy, Support, require_positive, require_probability, width


@register("ch-as")
@dataclass(frozen=True)
class CHAS(Strategy):
    """
    Pull the arm with the largest Hoeffding bound on its variance, over its pulls.

    The index of arm k at round t is::

        B_{k,t} = ( σ̂²_{k,t-1} + 3 b² sqrt( log(1/δ) / (2 T_{k,t-1}) ) ) / T_{k,t-1}

    with the biased variance σ̂² = M2/T and samples in an interval of width b (b = 1 in the paper).

    Parameters
    ----------
    delta
        δ, in (0, 1). The default is the paper's n^{-5/2}, with n the budget.
    width
        b. The default is the width of the declared support, or 1 without one.

    References
    ----------
    .. [1] Carpentier et al., Upper-Confidence-Bound Algorithms for Active Learning in Multi-Armed Bandits, Section
       3.1 and the figure with its pseudo-code; δ from Theorem 1.
    """

    delta: float | None = None
    width: float | None = None

    scale_invariant = False

    def __post_init__(self) -> None:
        require_probability(self, "delta")
        require_positive(self, "width")

    def params(self, budget: int | None, arms: int, support: Support) -> Numbers:
        if self.delta is None and budget is None:
            raise InvalidInput("ch-as: without a budget, delta must be given, as in eq.strategies.CHAS(delta=1e-6)")
        delta = self.delta if self.delta is not None else default_delta(budget or 1)
        return (radius(1.0, delta, self.width or width(support) or 1.0),)

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return m2 / count + params[0] / math.sqrt(count)

    def rescaled(self, c: float) -> CHAS:
        return replace(self, width=(self.width or 1.0) * c)


def default_delta(n: float) -> float:
    """Return δ = n^{-5/2}, the choice of Theorem 1."""
    return float(n) ** -2.5


def radius(t: float, delta: float, width: float = 1.0) -> float:
    """
    Return 3 b² sqrt(log(1/δ)/(2t)), the radius of Lemma 1 and Proposition 1.

    It bounds the distance of the biased variance of t samples from σ².
    """
    return 3 * width**2 * math.sqrt(-math.log(delta) / (2 * t))
