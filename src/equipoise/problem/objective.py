"""What is to be made small: a norm of the arms' losses, with weights and costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.arrays import Floats
from equipoise.inputs import by_arm as each_arm
from equipoise.inputs import number

# Weights and costs between these keep every key and every loss a finite number.
SMALLEST, GREATEST = 1e-100, 1e100

# Money is summed in floats: a budget of 1 buys ten samples at 0.1, though ten times 0.1 is not quite 1.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Objective:
    """
    The p-norm of the weighted losses, for a budget that may be money::

        minimise  || w_1 σ²_1/T_1, ..., w_K σ²_K/T_K ||_p     where  c_1 T_1 + ... + c_K T_K <= budget

    Its best allocation is T_k ∝ ((w_k σ²_k)^p / c_k)^{1/(p+1)}. p = inf is the largest loss, the paper's objective, in
    whose proportions the costs drop out; p = 1 is the sum of the losses, Neyman's allocation.

    Parameters
    ----------
    p
        A positive number or infinity.
    weights
        w_k >= 0 on the losses (squared errors), one for each arm; None for 1 each. An arm of weight 0 is of no concern.
    costs
        c_k > 0 of one sample; None for 1 each.
    shares
        W_k where the weights are the W_k² of strata; they decide nothing, and combine the strata's means.
    """

    p: float = math.inf
    weights: tuple[float, ...] | None = None
    costs: tuple[float, ...] | None = None
    shares: tuple[float, ...] | None = field(default=None, compare=False)

    @property
    def plain(self) -> bool:
        """Whether this is the paper's objective: the largest loss, every sample at a cost of 1."""
        return self.p == math.inf and self.weights is None and self.costs is None

    @property
    def exponent(self) -> float:
        """p/(p+1), the power of a variance in the best allocation."""
        return 1.0 if self.p == math.inf else self.p / (self.p + 1)

    def weight(self, arms: int) -> Floats:
        """w_k for each of so many arms."""
        return np.ones(arms) if self.weights is None else np.array(self.weights)

    def cost(self, arms: int) -> Floats:
        """c_k for each of so many arms."""
        return np.ones(arms) if self.costs is None else np.array(self.costs)

    def scales(self, arms: int) -> Floats:
        """
        w_k^{p/(p+1)} c_k^{-1/(p+1)}, what a variance to the power `exponent` is multiplied with in a key.

        Decisions look at ratios of keys alone, so that weights and costs are taken in units of a power of two first:
        keys stay clear of infinity, and neither equal weights nor another currency changes a bit of them.
        """
        weight = _in_own_unit(self.weight(arms))
        if self.p == math.inf:
            return weight
        return np.asarray(weight**self.exponent * _in_own_unit(self.cost(arms)) ** (-1 / (self.p + 1)))

    def loss(self, losses: npt.ArrayLike) -> float:
        """|| w L ||_p of the arms' losses."""
        values = np.asarray(losses, dtype=float)
        weight = self.weight(values.size)
        values = np.where(weight > 0, weight * values, 0.0)  # what is of no concern need not be known
        top = float(values.max())
        if self.p == math.inf or not 0 < top < math.inf:
            return top
        return float(top * math.fsum((values / top) ** self.p) ** (1 / self.p))

    def optimal_pulls(self, variances: npt.ArrayLike, budget: float) -> Floats:
        """The best T_k, not rounded; equal numbers where no arm has a variance that matters."""
        values = np.asarray(variances, dtype=float)
        cost = self.cost(values.size)
        parts = self.scales(values.size) * values**self.exponent
        total = math.fsum(cost * parts)
        return budget * parts / total if total > 0 else np.full(values.shape, budget / math.fsum(cost))

    def optimal_loss(self, variances: npt.ArrayLike, budget: float) -> float:
        """
        The smallest possible norm, up to rounding::

            ( Σ_k (c_k w_k σ²_k)^{p/(p+1)} )^{(p+1)/p} / budget        p = inf:  Σ_k c_k w_k σ²_k / budget
        """
        values = np.asarray(variances, dtype=float)
        each = self.cost(values.size) * self.weight(values.size) * values
        return float(math.fsum(each**self.exponent) ** (1 / self.exponent) / budget)

    def samples(self, budget: float, arms: int) -> int:
        """How many samples a budget buys when it is spread evenly over so many arms."""
        return int(budget if self.costs is None else budget * (1 + ROUNDING) * arms / math.fsum(self.costs))


@dataclass(frozen=True, init=False)
class Stratified:
    """
    The objective of stratified Monte Carlo: the variance of the mean of strata with these shares.

    With W_k the share of stratum k in the whole, the stratified mean Σ_k W_k μ̂_k has the variance Σ_k W_k² σ²_k/T_k:
    the norm with p = 1 and the weights W_k². Its best allocation is T_k ∝ W_k σ_k (Neyman).

    Parameters
    ----------
    shares
        W_k, one for each arm in their order, or a mapping from their names; they must sum to 1.

    Examples
    --------
    >>> import equipoise as eq
    >>> study = eq.Study(["city", "country"], budget=400, objective=eq.Stratified({"city": 0.7, "country": 0.3}))

    References
    ----------
    .. [1] J. Neyman (1934), On the two different aspects of the representative method. Journal of the Royal Statistical
       Society 97.
    """

    shares: tuple[float, ...] | Mapping[Any, float]

    def __init__(self, shares: Iterable[float] | Mapping[Any, float]) -> None:
        given = shares if isinstance(shares, Mapping) else tuple(_several("shares", shares))
        values = list(given.values()) if isinstance(given, Mapping) else list(given)
        for value in values:
            if not 0 <= number("a share", value) <= 1:
                raise ValueError(f"the share {value!r} will not do; a stratum's share of the whole lies in [0, 1]")
        if not values or abs(math.fsum(map(float, values)) - 1) > 1e-6:
            raise ValueError(f"the shares sum to {math.fsum(map(float, values)):.9g}; strata make up a whole, 1")
        object.__setattr__(self, "shares", dict(given) if isinstance(given, Mapping) else tuple(map(float, given)))


def objective(
    names: Sequence[Any],
    p: float | Stratified = math.inf,
    weights: Iterable[float] | Mapping[Any, float] | None = None,
    costs: Iterable[float] | Mapping[Any, float] | None = None,
) -> Objective:
    """The objective for arms of these names, from what a user gives: p or strata, weights and costs."""
    if isinstance(p, Stratified):
        if weights is not None:
            raise ValueError("Stratified sets the weights itself; give it, or weights, not both")
        shares = by_arm("shares", p.shares, names, least=0.0)
        return Objective(1.0, tuple(share * share for share in shares), _costs(costs, names), shares)
    power = number("objective", p)
    if not power > 0:
        raise ValueError(f"objective={p!r} will not do; it must be p > 0, infinity for the largest loss, or Stratified")
    found = None if weights is None else by_arm("weights", weights, names, least=0.0)
    if found is not None and not any(found):
        raise ValueError("every weight is 0; at least one arm must be of concern")
    return Objective(power, found, _costs(costs, names))


def _in_own_unit(values: Floats) -> Floats:
    """Values over the power of two next to the largest of them, which is exact; 1 each where they are all the same."""
    if (values == values[0]).all():
        return np.ones(values.size)
    return values / 2.0 ** math.floor(math.log2(values.max()))


def _several(what: str, given: Any) -> list[Any]:
    try:
        return list(given)
    except TypeError:
        raise TypeError(
            f"{what}={given!r} will not do; give one for each arm, as a mapping or in their order"
        ) from None


def _costs(costs: Iterable[float] | Mapping[Any, float] | None, names: Sequence[Any]) -> tuple[float, ...] | None:
    return None if costs is None else by_arm("costs", costs, names, least=SMALLEST)


def by_arm(
    what: str, given: Iterable[float] | Mapping[Any, float], names: Sequence[Any], least: float
) -> tuple[float, ...]:
    """One number for each arm, from a mapping by name or from numbers in the arms' order."""
    values = each_arm(what, given if isinstance(given, Mapping) else _several(what, given), names)
    found = tuple(number(what, value) for value in values)
    for value in found:
        if not (value == least == 0 or max(least, SMALLEST) <= value <= GREATEST):
            wanted = "not negative" if least == 0 else "positive"
            raise ValueError(f"{value!r} is among the {what}; each must be {wanted} and between 1e-100 and 1e100")
    return found
