"""B-AS, the Bernstein allocation strategy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from equipoise.strategies.strategy import Strategy, Support, register, require_delta, require_positive, width


@register("b-as")
@dataclass(frozen=True)
class BAS(Strategy):
    """
    Pull the arm with the largest upper bound on its variance, by Maurer and Pontil, over its pulls::

        B_{k,t} = ( σ̂_{k,t-1} + 2A / sqrt(T_{k,t-1}) )² / T_{k,t-1},        A = a sqrt(log(2/δ))

    with σ̂ the unbiased standard deviation. A is in the unit of the samples, so that it has no safe default: give
    `exploration`, or `c1` and `c2`, or a bounded support.

    Parameters
    ----------
    exploration
        A itself, the one number that need be tuned (Remark 2 after Theorem 3).
    c1, c2
        The constants of Assumption 1, P(|X - μ_k| >= ε) <= c2 exp(-ε²/c1) for every arm. From them, δ and the budget
        comes a. By default those of a bounded support, if one is declared: its width squared, and e.
    delta
        δ, in (0, 1). By default the paper's n^{-7/2}, with n the budget.

    Notes
    -----
    The second term of a grows with n, the most samples an arm can have. Without a budget it is taken at the samples
    the arm has, as in Lemma 5, and adds a constant to the bound on the standard deviation.

    References
    ----------
    .. [1] Carpentier et al., Upper-Confidence-Bound Algorithms for Active Learning in Multi-Armed Bandits, Section
    4.1 and
       the figure with its pseudo-code; δ from Theorem 2.
    .. [2] A. Maurer, M. Pontil (2009), Empirical Bernstein bounds and sample-variance penalization, Theorem 10.
    """

    exploration: float | None = None
    c1: float | None = None
    c2: float | None = None
    delta: float | None = None

    scale_invariant = False

    def __post_init__(self) -> None:
        require_constants(self)

    def params(self, budget: int | None, arms: int, support: Support) -> tuple[float, ...]:
        return widths(self, budget, support, default_delta)

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: float, own: float, params: tuple[float, ...]) -> float:
        bound = math.sqrt(m2 / (count - 1)) + 2 * params[0] / math.sqrt(count) + params[1]
        return bound * bound

    def rescaled(self, c: float) -> BAS:
        return in_other_unit(self, c)


def require_constants(strategy: Any) -> None:
    """Refuse constants that are none, or too few or too many of them."""
    require_positive(strategy, exploration=strategy.exploration, c1=strategy.c1, c2=strategy.c2)
    require_delta(strategy, strategy.delta)
    name = strategy.name
    if (strategy.c1 is None) != (strategy.c2 is None):
        raise ValueError(f"{name}: c1={strategy.c1!r} and c2={strategy.c2!r}; give both of them or neither")
    if strategy.exploration is not None and (strategy.c1 is not None or strategy.delta is not None):
        raise ValueError(f"{name}: exploration sets the width by itself; give it, or c1, c2 and delta, not both")


def widths(
    strategy: Any, budget: int | None, support: Support, usual_delta: Callable[[float], float]
) -> tuple[float, ...]:
    """
    What `BAS.variance` takes: A, and a constant that is added to the bound on the standard deviation.

    From the strategy's constants or a bounded support; `usual_delta(n)` is its δ where none is given.
    """
    name, kind = strategy.name, type(strategy).__name__
    if strategy.exploration is not None:
        return (strategy.exploration, 0.0)
    c1, c2, b = strategy.c1, strategy.c2, width(support)
    if (c1 is None or c2 is None) and b is not None:
        c1, c2 = bounded_constants(b)
    if c1 is None or c2 is None:
        raise ValueError(
            f"{name}: its exploration is in the unit of the samples and has no safe default; give "
            f"eq.strategies.{kind}(exploration=A), or c1 and c2, or declare a bounded support"
        )
    if strategy.delta is None and budget is None:
        raise ValueError(f"{name}: without a budget, delta must be given, as in {kind}(c1=1, c2=1, delta=1e-6)")
    delta = strategy.delta if strategy.delta is not None else usual_delta(budget or 1)
    if not delta < c2:
        raise ValueError(f"{name}: delta={delta:g} must be below c2={c2:g}")
    root = math.sqrt(math.log(2 / delta))
    if budget is None:
        return (a(c1, c2, delta, 0.0) * root, 2 * root * (a(c1, c2, delta, 1.0) - a(c1, c2, delta, 0.0)))
    return (a(c1, c2, delta, budget) * root, 0.0)


def in_other_unit(strategy: Any, c: float) -> Any:
    """The strategy for samples that are c times as large."""
    if strategy.exploration is not None:
        return replace(strategy, exploration=strategy.exploration * c)
    return replace(strategy, c1=None if strategy.c1 is None else strategy.c1 * c * c)


def default_delta(n: float) -> float:
    """Theorem 2's δ = n^{-7/2}."""
    return float(n) ** -3.5


def bounded_constants(width: float) -> tuple[float, float]:
    """(c1, c2) = (b², e): Assumption 1 for samples in an interval of width b, where it is trivially true."""
    return width**2, math.e


def a(c1: float, c2: float, delta: float, n: float) -> float:
    """
    The width a of Lemma 2 and Lemma 4::

        a = 2 sqrt(c1 log(c2/δ)) + sqrt(c1 δ (1 + c2 + log(c2/δ))) / ((1-δ) sqrt(2 log(2/δ))) · sqrt(n)

    The first term is the appendix's; the main text has sqrt(2 c1 log(c2/δ)), which the proof does not give.
    """
    deviation = math.log(c2 / delta)
    truncation = math.sqrt(c1 * delta * (1 + c2 + deviation)) / ((1 - delta) * math.sqrt(2 * math.log(2 / delta)))
    return 2 * math.sqrt(c1 * deviation) + truncation * math.sqrt(n)
