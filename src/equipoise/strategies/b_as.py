"""B-AS, the Bernstein allocation strategy, and its presets."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from equipoise.base.errors import InvalidInput
from equipoise.strategies.registry import register
from equipoise.strategies.strategy import Numbers, Strategy, Support, require_positive, require_probability, width


@register("b-as")
@dataclass(frozen=True)
class BAS(Strategy):
    """
    Pull the arm with the largest Bernstein bound on its variance, over its pulls.

    The index of arm k at round t is::

        B_{k,t} = ( σ̂_{k,t-1} + 2A / sqrt(T_{k,t-1}) )² / T_{k,t-1},        A = a sqrt(log(2/δ))

    with σ̂ the unbiased standard deviation. A has the unit of the samples, so it has no safe default: give
    `exploration`, or `c1` and `c2`, or declare a bounded support.

    Parameters
    ----------
    exploration
        A itself, the one number that needs tuning (Remark 2 after Theorem 3).
    c1, c2
        The constants of Assumption 1, P(|X - μ_k| >= ε) <= c2 exp(-ε²/c1) for every arm. They determine a, together
        with δ and the budget. The default, if a bounded support is declared, is its width squared, and e.
    delta
        δ, in (0, 1). The default is the paper's n^{-7/2}, with n the budget.

    Notes
    -----
    The second term of a grows with n, the largest number of samples an arm can have. Without a budget it is evaluated
    at the arm's own number of samples, as in Lemma 5, and adds a constant to the bound on the standard deviation.

    References
    ----------
    .. [1] Carpentier et al., Upper-Confidence-Bound Algorithms for Active Learning in Multi-Armed Bandits, Section
       4.1 and the figure with its pseudo-code; δ from Theorem 2.
    .. [2] A. Maurer, M. Pontil (2009), Empirical Bernstein bounds and sample-variance penalization, Theorem 10.
    """

    exploration: float | None = None
    c1: float | None = None
    c2: float | None = None
    delta: float | None = None

    scale_invariant = False

    def __post_init__(self) -> None:
        require_positive(self, "exploration", "c1", "c2")
        require_probability(self, "delta")
        if (self.c1 is None) != (self.c2 is None):
            raise InvalidInput(f"{self.name}: c1 and c2 must be given together, got c1={self.c1!r} and c2={self.c2!r}")
        if self.exploration is not None and (self.c1 is not None or self.delta is not None):
            raise InvalidInput(f"{self.name}: give either exploration or c1, c2 and delta, not both")

    @staticmethod
    def default_delta(n: float) -> float:
        """Return the δ that is used for a budget of n samples if none is given."""
        return default_delta(n)

    def params(self, budget: int | None, arms: int, support: Support) -> Numbers:
        """Return A, and a constant that is added to the bound on the standard deviation."""
        if self.exploration is not None:
            return (self.exploration, 0.0)
        c1, c2, b = self.c1, self.c2, width(support)
        if (c1 is None or c2 is None) and b is not None:
            c1, c2 = bounded_constants(b)
        kind = type(self).__name__
        if c1 is None or c2 is None:
            raise InvalidInput(
                f"{self.name}: exploration has the unit of the samples and no safe default; give "
                f"eq.strategies.{kind}(exploration=A), or c1 and c2, or declare a bounded support"
            )
        if self.delta is None and budget is None:
            raise InvalidInput(
                f"{self.name}: without a budget, delta must be given, as in {kind}(c1=1, c2=1, delta=1e-6)"
            )
        delta = self.delta if self.delta is not None else self.default_delta(budget or 1)
        if not delta < c2:
            raise InvalidInput(f"{self.name}: delta must be less than c2 = {c2:g}, got {delta:g}")
        root = math.sqrt(math.log(2 / delta))
        if budget is None:
            return (a(c1, c2, delta, 0.0) * root, 2 * root * (a(c1, c2, delta, 1.0) - a(c1, c2, delta, 0.0)))
        return (a(c1, c2, delta, budget) * root, 0.0)

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        bound = math.sqrt(m2 / (count - 1)) + 2 * params[0] / math.sqrt(count) + params[1]
        return bound * bound

    def rescaled(self, c: float) -> BAS:
        if self.exploration is not None:
            return replace(self, exploration=self.exploration * c)
        return replace(self, c1=None if self.c1 is None else self.c1 * c * c)


@register("mc-ucb")
class MCUCB(BAS):
    """
    B-AS with the default δ = n^{-9/2}, for stratified Monte Carlo.

    With `objective=eq.Stratified(shares)`, which is p = 1 with the weights W_k², the engine's key for the variance of
    B-AS is the index of MC-UCB::

        B_{k,t} = W_k / T_{k,t-1} · ( σ̂_{k,t-1} + 2β / sqrt(T_{k,t-1}) ),        β = A

    The parameters are those of `BAS`, with β for A. Any other objective is accepted too.

    Notes
    -----
    Only the abstract of Carpentier and Munos was at hand. The index and the default δ are quoted from memory, and β is
    the A of B-AS, whose first term has the constant 2 that its proof gives; theirs may have sqrt(2) there.

    References
    ----------
    .. [1] A. Carpentier, R. Munos (2011), Finite time analysis of stratified sampling for Monte Carlo. Advances in
       Neural Information Processing Systems 24.
    """

    @staticmethod
    def default_delta(n: float) -> float:
        """Return n^{-9/2}."""
        return float(n) ** -4.5


@register("variance-ucb")
class VarianceUCB(BAS):
    """
    B-AS under another name, for any p-norm of the losses.

    With `objective=p`, the engine's key for the variance of B-AS is the index of Variance-UCB::

        ( σ̂_{k,t-1} + C / sqrt(T_{k,t-1}) )^{2p/(p+1)} / T_{k,t-1},        C = 2A

    With p = inf, the default objective, the two strategies decide alike. The parameters are those of `BAS`.

    Notes
    -----
    Only the abstract of Aznag, Cummings and Elmachtoub was at hand. It says that groups are selected by an upper bound
    on the variance, adjusted to the p-norm. The width A and the default δ = n^{-7/2} are those of B-AS; the paper's may
    differ.

    References
    ----------
    .. [1] A. Aznag, R. Cummings, A. N. Elmachtoub (2023), An active learning framework for multi-group mean estimation.
       Advances in Neural Information Processing Systems 36.
    """


def default_delta(n: float) -> float:
    """Return δ = n^{-7/2}, the choice of Theorem 2."""
    return float(n) ** -3.5


def bounded_constants(width: float) -> tuple[float, float]:
    """
    Return (c1, c2) = (b², e) for samples in an interval of width b.

    Assumption 1 holds with them.
    """
    return width**2, math.e


def a(c1: float, c2: float, delta: float, n: float) -> float:
    """
    Return the width a of Lemma 2 and Lemma 4.

    It is::

        a = 2 sqrt(c1 log(c2/δ)) + sqrt(c1 δ (1 + c2 + log(c2/δ))) / ((1-δ) sqrt(2 log(2/δ))) · sqrt(n)

    The first term is the appendix's; the main text has sqrt(2 c1 log(c2/δ)), which the proof does not give.
    """
    deviation = math.log(c2 / delta)
    truncation = math.sqrt(c1 * delta * (1 + c2 + deviation)) / ((1 - delta) * math.sqrt(2 * math.log(2 / delta)))
    return 2 * math.sqrt(c1 * deviation) + truncation * math.sqrt(n)
