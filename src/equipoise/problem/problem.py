"""The problem of the paper's Section 2: K arms of known law, the best static allocation, and the regret."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from equipoise.base.arrays import Floats, Ints
from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import shown
from equipoise.problem.allocation import Terms, allocate
from equipoise.problem.laws import Law, centred, simulable
from equipoise.problem.objective import MOST, Objective


@dataclass(frozen=True, init=False)
class Problem:
    """
    A problem: K arms with known laws.

    Parameters
    ----------
    arms
        One law per arm, each of finite variance.

    Attributes
    ----------
    means, variances, thirds, fourths
        mu_k, sigma²_k, and the third and fourth central moments of arm k.
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
        if not isinstance(arms, Iterable):
            raise TypeError(f"arms of a Problem must be a list of laws, got {shown(arms)}")
        laws = tuple(arms)
        if not laws:
            raise InvalidInput("arms of a Problem must have at least one law, got none")
        for law in laws:
            if not (hasattr(law, "mean") and hasattr(law, "variance")):
                raise TypeError(f"arms of a Problem must be laws, such as eq.Gaussian(0, 4), got {shown(law)}")
            if not math.isfinite(law.variance):
                raise InvalidInput(f"arms of a Problem must have a finite variance, got {shown(law)}")
        object.__setattr__(self, "arms", laws)

    def __len__(self) -> int:
        return len(self.arms)

    def centred(self) -> Problem:
        """Return the problem with laws that are far from 0 moved there (`laws.centred`); itself if there are none."""
        arms = tuple(map(centred, self.arms))
        return self if all(a is b for a, b in zip(arms, self.arms, strict=True)) else Problem(arms)

    def simulable(self) -> Problem:
        """Return the problem with laws that simulations can sample (`laws.simulable`); itself if all are such."""
        arms = simulable(self.arms)
        return self if arms is self.arms else Problem(arms)

    @cached_property
    def means(self) -> Floats:
        return _constants(law.mean for law in self.arms)

    @cached_property
    def variances(self) -> Floats:
        return _constants(law.variance for law in self.arms)

    @cached_property
    def thirds(self) -> Floats:
        return _constants(law.third for law in self.arms)

    @cached_property
    def fourths(self) -> Floats:
        return _constants(law.fourth for law in self.arms)

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
        """Return T*_k = n lambda_k, not rounded."""
        return n * self.lambdas

    def optimal_counts(self, n: int) -> Ints:
        """Return T*_k in whole pulls; see `integer_counts`."""
        return integer_counts(self.variances, n)

    def optimal_loss(self, n: float) -> float:
        """Return L_n(A*) = Sigma/n, the best loss if pulls could be divided."""
        return self.Sigma / n

    def loss(self, losses: Sequence[float] | Floats) -> float:
        """Return L_n(A), equation (global-loss): the largest of the arms' losses L_{k,n}."""
        values = np.asarray(losses, dtype=float)
        if values.shape != (len(self),):
            raise InvalidInput(f"losses must have one value for each of the {len(self):,} arms, got {values.size:,}")
        return float(values.max())

    def regret(self, losses: Sequence[float] | Floats, n: float) -> float:
        """Return R_n(A) = L_n(A) - L_n(A*), equation (regret)."""
        return self.loss(losses) - self.optimal_loss(n)

    def rescaled_regret(self, losses: Sequence[float] | Floats, n: float) -> float:
        """Return n^{3/2} R_n(A), the quantity in the paper's figures."""
        return n**1.5 * self.regret(losses, n)


def _constants(values: Iterable[float]) -> Floats:
    """Return an array that nobody can change, as it is kept."""
    found = np.fromiter(values, float)
    found.flags.writeable = False
    return found


def proportions(variances: npt.ArrayLike) -> Floats:
    """Return lambda_k = sigma²_k / Sigma; equal shares where every variance is 0."""
    values = np.asarray(variances, dtype=float)
    total = math.fsum(values)
    return values / total if total > 0 else np.full(values.shape, 1 / values.size)


def integer_counts(variances: npt.ArrayLike, n: int) -> Ints:
    """
    Return whole pulls with the smallest possible max_k sigma²_k/T_k, that sum to `n`, at least one for each arm.

    An arm of zero variance gets one pull (the paper's T* = (n-1, 1)) if another arm has variance. What is left when the
    best is reached is spent by the same rule: the largest sigma²_k/T_k first, the lowest arm among equals. If every
    variance is 0, the pulls are spread evenly.
    """
    values = np.asarray(variances, dtype=float)
    arms = values.size
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise InvalidInput("variances must be non-negative and finite")
    if not arms <= n <= MOST:
        raise InvalidInput(f"n must be between {arms:,}, one pull of each arm, and {MOST:,}, got {n:,}")
    ones, endless = np.ones(arms), np.full(arms, math.inf)
    terms = Terms(values, Objective(), ones, endless, endless)
    return allocate(terms, n).counts.astype(np.int64)
