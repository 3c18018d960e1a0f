"""Variance-UCB, for any p-norm of the losses."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.strategies.b_as import BAS, default_delta, in_other_unit, require_constants, widths
from equipoise.strategies.strategy import Strategy, Support, register


@register("variance-ucb")
@dataclass(frozen=True)
class VarianceUCB(Strategy):
    """
    Pull the arm with the largest upper bound on its variance, to the power that the p-norm asks for, over its pulls::

        ( σ̂_{k,t-1} + C / sqrt(T_{k,t-1}) )^{2p/(p+1)} / T_{k,t-1},        C = 2A

    `objective=p` sets the power; with p = inf, the default, this is B-AS.

    Parameters
    ----------
    exploration
        A = C/2.
    c1, c2
        The constants of P(|X - μ_k| >= ε) <= c2 exp(-ε²/c1). From them, δ and the budget comes A. By default those of a
        bounded support, if one is declared: its width squared, and e.
    delta
        δ, in (0, 1). By default n^{-7/2}, with n the budget.

    Notes
    -----
    The rule is recalled from Aznag, Cummings and Elmachtoub, of whose text only the abstract was at hand; it says that
    groups are selected by an upper bound on the variance, adjusted to the p-norm. The width and the default δ are those
    of B-AS, and should be held against the paper's.

    References
    ----------
    .. [1] A. Aznag, R. Cummings, A. N. Elmachtoub (2023), An active learning framework for multi-group mean estimation.
       Advances in Neural Information Processing Systems 36.
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

    def rescaled(self, c: float) -> VarianceUCB:
        return in_other_unit(self, c)
