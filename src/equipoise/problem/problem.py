"""The problem of the paper's Section 2: K arms of known law, the best static allocation, and the regret against it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise.arrays import Floats, Ints
from equipoise.problem.allocation import Terms, allocate
from equipoise.problem.laws import Law
from equipoise.problem.objective import Objective

Counts = Ints


@dataclass(frozen=True, init=False)
class Problem:
    """
    K arms with known laws.

    Parameters
    ----------
    arms
        One law per arm, each of finite variance.

    Attributes
    ----------
    means, variances
        mu_k and sigma²_k.
    Sigma
        The sum of the variances.
    lambdas
        lambda_k = sigma²_k / Sigma, the best share of the budget for arm k.
    lambda_min
        The smallest of them.

    Examples
    --------
    >>> import equipoise as eq
    >>> problem = eq.Problem([eq.Gaussian(0, 4), eq.Rademacher()])
    >>> problem.optimal_counts(1000)
    array([800, 200])
    >>> problem.optimal_loss(1000)
    0.005

    References
    ----------
    .. [1] A. Carpentier, A. Lazaric, M. Ghavamzadeh, R. Munos, P. Auer, A. Antos, Upper-Confidence-Bound Algorithms for
       Active Learning in Multi-Armed Bandits, Section 2.
    """

    arms: tuple[Law, ...]

    def __init__(self, arms: Iterable[Law]) -> None:
        laws = tuple(arms)
        if not laws:
            raise ValueError("a problem needs at least one arm, and none was given")
        for law in laws:
            if not (hasattr(law, "mean") and hasattr(law, "variance")):
                raise TypeError(f"{law!r} is not a law; eq.Gaussian(0, 4) or eq.Bernoulli(0.3) would be")
            if not math.isfinite(law.variance):
                raise ValueError(f"{law!r} has no finite variance, so that no allocation has a finite loss")
        object.__setattr__(self, "arms", laws)

    def __len__(self) -> int:
        return len(self.arms)

    @property
    def means(self) -> Floats:
        return np.array([law.mean for law in self.arms])

    @property
    def variances(self) -> Floats:
        return np.array([law.variance for law in self.arms])

    @property
    def Sigma(self) -> float:
        return math.fsum(self.variances)

    @property
    def lambdas(self) -> Floats:
        return proportions(self.variances)

    @property
    def lambda_min(self) -> float:
        return float(self.lambdas.min())

    def optimal_pulls(self, n: float) -> Floats:
        """T*_k = n lambda_k, not rounded."""
        return n * self.lambdas

    def optimal_counts(self, n: int) -> Counts:
        """T*_k in whole pulls; see `integer_counts`."""
        return integer_counts(self.variances, n)

    def optimal_loss(self, n: float) -> float:
        """L_n(A*) = Sigma/n, up to rounding."""
        return self.Sigma / n

    def loss(self, losses: Sequence[float] | Floats) -> float:
        """L_n(A), equation (global-loss): the largest of the arms' losses L_{k,n}."""
        values = np.asarray(losses, dtype=float)
        if values.shape != (len(self),):
            raise ValueError(f"{values.size} losses were given for {len(self)} arms; one for each arm is needed")
        return float(values.max())

    def regret(self, losses: Sequence[float] | Floats, n: float) -> float:
        """R_n(A) = L_n(A) - L_n(A*), equation (regret)."""
        return self.loss(losses) - self.optimal_loss(n)

    def rescaled_regret(self, losses: Sequence[float] | Floats, n: float) -> float:
        """n^{3/2} R_n(A), what the paper's figures show."""
        return n**1.5 * self.regret(losses, n)


def proportions(variances: npt.ArrayLike) -> Floats:
    """lambda_k = sigma²_k / Sigma. With no variance anywhere every arm is as good as another: equal shares."""
    values = np.asarray(variances, dtype=float)
    total = math.fsum(values)
    return values / total if total > 0 else np.full(values.shape, 1 / values.size)


def integer_counts(variances: npt.ArrayLike, n: int) -> Counts:
    """
    Whole pulls that sum to `n`, one at least for every arm, and make the largest sigma²_k/T_k as small as it can be.

    An arm of zero variance gets its one pull (the paper's T* = (n-1, 1)) while another arm has variance. What is left
    after the best is reached goes on by the same rule, the largest sigma²_k/T_k first and the lowest arm among equals.
    With no variance anywhere the pulls are spread evenly.
    """
    values = np.asarray(variances, dtype=float)
    arms = values.size
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError("a variance must be finite and not negative")
    if n > 10**15:
        raise ValueError(f"n={n} will not do; 10**15 pulls are the most")
    if n < arms:
        raise ValueError(f"n={n} pulls cannot give each of {arms} arms one; n={arms} is the least")
    ones, endless = np.ones(arms), np.full(arms, math.inf)
    terms = Terms(values, Objective(), ones, endless, endless)
    return allocate(terms, n).counts.astype(np.int64)
