"""MC-UCB, for stratified Monte Carlo."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.strategies.b_as import BAS, in_other_unit, require_constants, widths
from equipoise.strategies.strategy import Strategy, Support, register


@register("mc-ucb")
@dataclass(frozen=True)
class MCUCB(Strategy):
    """
    Pull the stratum with the largest upper bound on its share of the error, over its pulls::

        B_{k,t} = W_k / T_{k,t-1} · ( σ̂_{k,t-1} + 2β / sqrt(T_{k,t-1}) )

    That is the key of `objective=eq.Stratified(shares)`, p = 1 with the weights W_k², when the variance to plan with is
    (σ̂ + 2β/sqrt(T))². It is B-AS's, with β for A, and is meant for that objective; it takes any other as well.

    Parameters
    ----------
    exploration
        β itself.
    c1, c2
        The constants of P(|X - μ_k| >= ε) <= c2 exp(-ε²/c1). From them, δ and the budget comes β. By default those of a
        bounded support, if one is declared: its width squared, and e.
    delta
        δ, in (0, 1). By default n^{-9/2}, with n the budget.

    Notes
    -----
    The index and δ are recalled from Carpentier and Munos, of whose text only the abstract was at hand. β is B-AS's A,
    whose first term has the constant that its proof gives; theirs is recalled to have sqrt(2) in place of 2 there.

    References
    ----------
    .. [1] A. Carpentier, R. Munos (2011), Finite time analysis of stratified sampling for Monte Carlo. Advances in
       Neural Information Processing Systems 24.
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

    variance = staticmethod(BAS.variance)

    def rescaled(self, c: float) -> MCUCB:
        return in_other_unit(self, c)


def default_delta(n: float) -> float:
    """δ = n^{-9/2}."""
    return float(n) ** -4.5
