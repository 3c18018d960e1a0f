"""The objective: a norm of the arms' losses, with weights and costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.base.arrays import Floats
from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import by_arm, in_order, integer, labelled, number, several, shown
from equipoise.problem import money

# What a user gives per arm: by name, or in the arms' order.
PerArm = Iterable[float] | Mapping[Any, float]

# Whole numbers per arm: one for all, one for each, or some by name; None is the default.
Wholes = int | Iterable[float | None] | Mapping[Any, float | None]

# Counts are floats, in which steps of one sample are exact well beyond this.
MOST = 10**15

# Weights and costs between these keep every key and every loss a finite number.
SMALLEST, GREATEST = 1e-100, 1e100


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
        w_k >= 0 on the losses (squared errors), one for each arm; None for 1 each. An arm of weight 0 does not count.
    costs
        c_k > 0 of one sample; None for 1 each.
    shares
        W_k where the weights are the W_k² of strata: with them `Result.combine` averages the strata. They affect no
        key, only what a strategy knows of the arms' units (`units`).
    """

    p: float = math.inf
    weights: tuple[float, ...] | None = None
    costs: tuple[float, ...] | None = None
    shares: tuple[float, ...] | None = None

    @property
    def plain(self) -> bool:
        """Whether this is the paper's objective: the largest loss, every sample at a cost of 1."""
        return self.p == math.inf and self.weights is None and self.costs is None

    @property
    def exponent(self) -> float:
        """p/(p+1), the power of a variance in the best allocation."""
        return 1.0 if self.p == math.inf else self.p / (self.p + 1)

    @property
    def finite_exponent(self) -> float:
        """(p-1)/(p+1), the power of the part of a finite population that is not sampled yet, in the best allocation."""
        return 1.0 if self.p == math.inf else (self.p - 1) / (self.p + 1)

    @property
    def cost_power(self) -> float:
        """-1/(p+1), the power of a cost in the best allocation."""
        return 0.0 if self.p == math.inf else -1 / (self.p + 1)

    @property
    def measure(self) -> str:
        """What two allocations are compared by, in words: a standard error where the loss is the square of one."""
        if self.shares is not None:
            return "standard error"
        return "largest standard error" if self.p == math.inf and self.weights is None else "loss"

    def check_populations(self, sizes: Floats) -> None:
        """Refuse finite populations for p < 1, where their losses are not convex."""
        if self.p < 1 and np.isfinite(sizes).any():
            raise InvalidInput(f"objective must be at least 1 with populations, got {self.p!r}")

    def weight(self, arms: int) -> Floats:
        """Return w_k for each arm, given their number."""
        return np.ones(arms) if self.weights is None else np.array(self.weights)

    def cost(self, arms: int) -> Floats:
        """Return c_k for each arm, given their number."""
        return np.ones(arms) if self.costs is None else np.array(self.costs)

    def scales(self, arms: int) -> Floats:
        """
        Return w_k^{p/(p+1)} c_k^{-1/(p+1)}, the factor of a variance to the power `exponent` in a key.

        Decisions depend on ratios of keys only, so weights and costs are first divided by a power of two: keys stay
        clear of infinity, and neither equal weights nor another currency changes a bit of them.
        """
        weight = _in_own_unit(self.weight(arms))
        if self.p == math.inf:
            return weight
        return np.asarray(weight**self.exponent * _in_own_unit(self.cost(arms)) ** self.cost_power)

    def units(self, arms: int) -> Floats:
        """
        Return w_k for each arm as the unit of its samples: w_k σ²_k of different arms can be compared, and pooled.

        Users give weights where arms are measured in different units, or where some matter more than others. Strata are
        samples of one quantity in one unit, and W_k² says how much a stratum counts: theirs are 1 each. As in `scales`,
        weights are divided by a power of two.
        """
        return np.ones(arms) if self.shares is not None else _in_own_unit(self.weight(arms))

    def loss(self, losses: npt.ArrayLike) -> float:
        """Return || w L ||_p of the arms' losses."""
        values = np.asarray(losses, dtype=float)
        weight = self.weight(values.size)
        with np.errstate(over="ignore"):  # what is too large for a float is infinite
            values = np.where(weight > 0, weight * values, 0.0)  # the loss of an arm without weight may be NaN
        top = float(values.max())
        if self.p == math.inf or not 0 < top < math.inf:
            return top
        return float(top * math.fsum((values / top) ** self.p) ** (1 / self.p))

    def optimal_pulls(self, variances: npt.ArrayLike, budget: float) -> Floats:
        """Return the best T_k, not rounded; equal numbers where no weighted variance is positive."""
        values = np.asarray(variances, dtype=float)
        cost = self.cost(values.size)
        parts = self.scales(values.size) * values**self.exponent
        total = math.fsum(cost * parts)
        return budget * parts / total if total > 0 else np.full(values.shape, budget / math.fsum(cost))

    def optimal_loss(self, variances: npt.ArrayLike, budget: float) -> float:
        """
        Return the smallest possible norm, if samples could be divided::

            ( Σ_k (c_k w_k σ²_k)^{p/(p+1)} )^{(p+1)/p} / budget        p = inf:  Σ_k c_k w_k σ²_k / budget
        """
        values = np.asarray(variances, dtype=float)
        with np.errstate(over="ignore"):
            each = self.cost(values.size) * self.weight(values.size) * values
        top = float(each.max())
        if self.p == math.inf or not 0 < top < math.inf:
            return math.fsum(each) / budget
        return float(top * math.fsum((each / top) ** self.exponent) ** (1 / self.exponent) / budget)

    def slopes(self, variances: Floats) -> Floats:
        """
        Return the derivatives of the norm by the arms' losses at the best allocation, for one set of variances or rows.

        They are w_k (x_k/||x||_p)^{p-1}, where the best allocation has the losses x_k ∝ (c_k w_k σ²_k)^{1/(p+1)}: for
        p = 1 the weights, for p = inf the weights times the arms' shares of the budget. For p >= 1 no allocation has a
        smaller Σ_k slope_k σ²_k/T_k for what it costs, and that of the best one is its norm. An arm that never varies
        has 0.
        """
        arms = variances.shape[-1]
        # In units of the largest, which keeps the powers from overflowing.
        each = _in_own_unit(self.cost(arms)) * _in_own_unit(self.weight(arms)) * variances
        each = each / np.maximum(each.max(axis=-1, keepdims=True), SMALLEST)
        with np.errstate(divide="ignore"):
            parts = np.where(each > 0, each**self.finite_exponent, 0.0)
        norm = (each**self.exponent).sum(axis=-1, keepdims=True)
        return np.asarray(self.weight(arms) * parts / norm ** (1.0 if self.p == math.inf else 1 - 1 / self.p))

    def samples(self, budget: float, arms: int) -> int:
        """Return how many samples a budget buys when it is spread evenly over this number of arms."""
        if self.costs is None:
            return int(budget)
        return int(money.limit(budget, min(self.costs)) * arms / math.fsum(self.costs))


@dataclass(frozen=True, init=False)
class Stratified:
    """
    The objective of stratified Monte Carlo: the variance of the mean of strata with these shares.

    With W_k the share of stratum k in the whole, the stratified mean Σ_k W_k μ̂_k has the variance Σ_k W_k² σ²_k/T_k:
    the norm with p = 1 and the weights W_k². Its best allocation is T_k ∝ W_k σ_k (Neyman).

    Parameters
    ----------
    shares
        W_k, one for each arm; they must sum to 1. A mapping or a pandas Series is aligned with the arms by its labels,
        anything else is taken in the arms' order.

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

    def __init__(self, shares: PerArm) -> None:
        labels = labelled(shares)
        given = in_order("shares", shares) if labels is None else list(labels.values())
        values = [number("a share", value) for value in given]
        for value in values:
            if not 0 <= value <= 1:
                raise InvalidInput(f"shares must be between 0 and 1, got {shown(value)}")
        total = math.fsum(values)
        if not values or abs(total - 1) > 1e-6:
            raise InvalidInput(f"shares must sum to 1, got a sum of {total:.9g}")
        object.__setattr__(self, "shares", tuple(values) if labels is None else dict(zip(labels, values, strict=True)))


def objective(
    names: Sequence[Any],
    p: float | Stratified = math.inf,
    weights: PerArm | None = None,
    costs: PerArm | None = None,
) -> Objective:
    """Return the objective for arms of these names, from what a user gives: p or strata, weights and costs."""
    prices = None if costs is None else numbers_by_arm("costs", costs, names, positive=True)
    if isinstance(p, Stratified):
        if weights is not None:
            raise InvalidInput("weights must be None with objective=Stratified(shares), which sets them itself")
        shares = numbers_by_arm("shares", p.shares, names)
        return Objective(1.0, tuple(share * share for share in shares), prices, shares)
    wanted = "objective must be a positive number p, math.inf for the largest loss, or Stratified(shares)"
    try:
        power = number("objective", p)
    except TypeError:
        raise TypeError(f"{wanted}, got {shown(p)}") from None
    if not power > 0:
        raise InvalidInput(f"{wanted}, got {shown(p)}")
    # K equal losses have K^(1/p) times the norm of one: at most 1e100 times.
    least = math.ceil(100 * math.log10(max(len(names), 1))) / 10_000
    if power < least:
        raise InvalidInput(f"objective must be at least {least:g} for {len(names):,} arms, got {shown(p)}")
    found = None if weights is None else numbers_by_arm("weights", weights, names)
    if found is not None and not any(found):
        raise InvalidInput("weights must be positive for at least one arm, got 0 for each")
    return Objective(power, found, prices)


def shares_of_some(names: Sequence[Any], given: PerArm) -> tuple[float, ...]:
    """Return the shares of strata in the arms' order; arms that are not named have none."""
    labels = labelled(given)
    shares = Stratified(given if labels is None else by_arm("shares", labels, names, default=0.0)).shares
    return numbers_by_arm("shares", shares, names)


def _in_own_unit(values: Floats) -> Floats:
    """Divide values by the power of two next to the largest of them, which is exact; 1 each where all are equal."""
    if (values == values[0]).all():
        return np.ones(values.size)
    return values / 2.0 ** math.floor(math.log2(values.max()))


def real_cost(given: Any) -> float:
    """Return what a sample really cost, or refuse what no sample can cost."""
    cost = number("cost", given)
    if not 0 <= cost <= GREATEST:
        raise InvalidInput(f"cost must be a number between 0 and {GREATEST:g}, got {shown(given)}")
    return cost


def numbers_by_arm(what: str, given: PerArm, names: Sequence[Any], *, positive: bool = False) -> tuple[float, ...]:
    """Return one non-negative, or positive, number for each arm, aligned by label where there are labels."""
    values = by_arm(what, given, names)
    found = []
    for k, value in enumerate(values):
        try:
            each = number(what, value)
        except TypeError:
            raise TypeError(f"{what}[{shown(names[k])}] must be a number, got {shown(value)}") from None
        if not (SMALLEST <= each <= GREATEST or (each == 0 and not positive)):
            wanted = "between 1e-100 and 1e100" if each > 0 else "positive" if positive else "non-negative"
            raise InvalidInput(f"{what}[{shown(names[k])}] must be {wanted}, got {shown(value)}")
        found.append(each)
    return tuple(found)


def wholes_by_arm(what: str, given: Wholes | None, names: Sequence[Any], default: float) -> Floats:
    """Return a whole number for each arm: from one for all, one for each, or some by name; None is the default."""
    found = np.full(len(names), default)
    if given is None:
        return found
    if not several(given):
        found[:] = _whole(what, given, default)
        return found
    for k, value in enumerate(by_arm(what, given, names, default=None)):
        if value is not None:
            found[k] = _whole(f"{what}[{shown(names[k])}]", value, default)
    return found


def _whole(name: str, value: Any, default: float) -> float:
    if isinstance(value, float) and value == default == math.inf:
        return value
    return integer(name, value, least=1, most=MOST)
