"""
Whole samples for known variances: the best allocation of a budget, with floors, caps, finite populations and costs.

An allocation is reached by steps, one more sample for one arm. A step's *urgency* is its gain per cost, put as a number
that falls like 1/T; for the largest loss it is the arm's loss itself::

    urgency = ( (L(T)^p - L(T+1)^p) / c )^{1/(p+1)}        p = inf:  L(T),     L(T) = w σ² (1/T - 1/N)

This is the key of a study with the exact gain in place of its first order. The greedy allocation repeatedly takes the
most urgent step that can be paid for. It is found here without walking: bisect over a level of urgency for what lies
above it, then sort the few steps in between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.problem import money
from equipoise.problem.objective import Objective

# Two sums of losses are equal up to this part.
TOLERANCE = 1e-12
# The bisection ends when this number of steps, or two for each arm, is left to sort.
SORTED = 1024


@dataclass(frozen=True, eq=False)
class Terms:
    """
    The variances, objective and limits of an allocation, as arrays with a number for each arm.

    Parameters
    ----------
    variances
        σ²_k; of a finite population, with its size less one as the denominator.
    objective
        The norm of the losses to minimise, and what a sample costs.
    floors, caps
        The fewest and the most samples, integers from 1; a cap may be infinite.
    populations
        N_k, from which samples are drawn without replacement; infinite for draws from a law. No cap is above it.
    """

    variances: Floats
    objective: Objective
    floors: Floats
    caps: Floats
    populations: Floats

    @property
    def arms(self) -> int:
        return self.variances.size

    @property
    def cost(self) -> Floats:
        return self.objective.cost(self.arms)

    def limit(self, budget: float) -> float:
        """Return the most that may be spent: the budget, with room for rounding."""
        return money.limit(budget, float(self.cost.min()))

    def spend(self, counts: Floats) -> float:
        """Return Σ_k c_k T_k."""
        return math.fsum(self.cost * counts)

    def each(self, count: float) -> Floats:
        """Return the same count for every arm, within floors and caps."""
        return np.asarray(np.clip(count, self.floors, self.caps))

    def losses(self, counts: Floats) -> Floats:
        """Return σ²/T (1 - T/N) of each arm; 0 where the whole population is sampled."""
        return _losses(self.variances, counts, self.populations)

    def loss(self, counts: Floats) -> float:
        """Return the objective at these counts."""
        return self.objective.loss(self.losses(counts))


def _losses(variances: Floats, counts: Floats, populations: Floats) -> Floats:
    return np.asarray(variances / counts * (1 - counts / populations))


@dataclass(frozen=True, eq=False)
class Allocation:
    """
    Whole samples, and how good they could be.

    Attributes
    ----------
    counts
        Samples of each arm.
    bound
        No allocation of whole samples within the budget has a smaller loss than this. Equal to the loss of `counts`
        where these are known to be the best.
    """

    counts: Floats
    bound: float


def allocate(terms: Terms, budget: float) -> Allocation:
    """
    Return the greedy allocation of whole samples within a budget that pays for the floors.

    For the largest loss (p = inf), and for any other p where all samples cost the same, no allocation of whole samples
    is better. Where costs differ the sum of losses is a knapsack problem, and the best allocation is better by less
    than the gain of one further sample (see `_bound`).

    What is left when the best loss is reached is spent by the same rule, and finally on arms without variance, evenly.
    So less is left over than the cheapest sample costs, unless every arm is at its cap.
    """
    limit = terms.limit(budget)
    counts, first = _fill(_Steps.of(terms), terms.floors, limit)
    bound = terms.loss(counts)
    if terms.objective.p < math.inf and np.unique(terms.cost).size > 1 and bound > 0:
        bound = _bound(terms, counts, first, budget)
    endless = np.full(terms.arms, math.inf)
    evenly = _Steps(np.ones(terms.arms), terms.cost, terms.caps, endless, math.inf)
    return Allocation(_fill(evenly, counts, limit)[0], bound)


def _bound(terms: Terms, greedy: Floats, first: Floats, budget: float) -> float:
    """
    Return a number below which no whole samples within the budget have their loss.

    `first` is the greedy allocation up to the first step that could not be paid for, of gain g and cost c. Since gains
    fall, `first` minimises Σ_k L_k^p + m · spend with m = g/c. So all that the rest of the budget, r < c, can take from
    its Σ_k L_k^p is at most m r < g: less than that one step.
    """
    steps, p = _Steps.of(terms), terms.objective.p
    loss, scale = terms.loss(greedy), terms.loss(first)
    # An arm of which no sample can be paid for beyond the floors stays at its floor.
    within = terms.cost <= terms.limit(budget) - terms.spend(terms.floors)
    free = np.flatnonzero(within & (steps.worth > 0) & (first < terms.caps))
    if not free.size:
        return loss
    # Sums of (L/scale)^p, which stay clear of infinity.
    losses = (steps.losses(first) / scale) ** p
    gains = losses[free] * steps.some(free).drop(first[free])
    rest = max(budget - terms.spend(first), 0.0)
    lowest = math.fsum(losses) - float((gains / terms.cost[free]).max()) * rest
    reached = (loss / scale) ** p
    return loss if reached - lowest <= TOLERANCE * reached else scale * max(lowest, 0.0) ** (1 / p)


def even(terms: Terms, budget: float) -> Floats:
    """
    Return the same number of samples for every arm, as far as floors and caps allow.

    The rest of the budget buys one more of each arm in their order, until the next cannot be paid for.
    """
    limit = terms.limit(budget)
    if terms.spend(terms.caps) <= limit:
        return terms.caps.copy()
    low, high = 0.0, 1.0
    while terms.spend(terms.each(high)) <= limit:
        low, high = high, 2 * high
    while high - low > 1:
        middle = math.floor((low + high) / 2)
        low, high = (middle, high) if terms.spend(terms.each(middle)) <= limit else (low, middle)
    counts = terms.each(low)
    next_ = np.flatnonzero(terms.each(low + 1) > counts)
    paid = np.searchsorted(np.cumsum(terms.cost[next_]), limit - terms.spend(counts), side="right")
    counts[next_[:paid]] += 1
    return counts


def relaxed(terms: Terms, budget: float) -> Floats:
    """Return the best allocation if samples could be divided."""
    steps = _Steps.of(terms)
    matter = steps.worth > 0
    counts = terms.floors.copy()
    left = budget - math.fsum((terms.cost * counts)[~matter])
    some, floors, caps = steps.some(matter), terms.floors[matter], terms.caps[matter]
    if not matter.any() or math.fsum(some.cost * caps) <= left:
        counts[matter] = caps
        return counts
    # Logarithms of urgency, beyond those of any variance, weight and cost.
    low, high = -2000.0, 2000.0
    while low < (level := (low + high) / 2) < high:
        if float(some.cost @ np.clip(some.at_level(level), floors, caps)) <= left:
            high = level
        else:
            low = level
    counts[matter] = np.clip(some.at_level(high), floors, caps)
    return counts


@dataclass(frozen=True, eq=False)
class _Steps:
    """Steps of one more sample, of arms with worth w σ², and how urgent each is."""

    worth: Floats
    cost: Floats
    caps: Floats
    populations: Floats
    p: float

    @classmethod
    def of(cls, terms: Terms) -> _Steps:
        worth = terms.objective.weight(terms.arms) * terms.variances
        return cls(worth, terms.cost, terms.caps, terms.populations, terms.objective.p)

    def some(self, arms: Bools | Ints) -> _Steps:
        return _Steps(self.worth[arms], self.cost[arms], self.caps[arms], self.populations[arms], self.p)

    def losses(self, counts: Floats) -> Floats:
        return _losses(self.worth, counts, self.populations)

    def drop(self, counts: Floats) -> Floats:
        """Return 1 - (L(T+1)/L(T))^p, the part of L(T)^p that one more sample takes away."""
        part = np.minimum(1 / ((counts + 1) * (1 - counts / self.populations)), 1.0)
        with np.errstate(divide="ignore"):  # the last of a population takes all of it
            return part if self.p == 1 else -np.expm1(self.p * np.log1p(-part))

    def urgency(self, counts: Floats) -> Floats:
        """Return the logarithm of the urgency of one more sample."""
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = np.log(self.worth / counts) + np.log1p(-counts / self.populations)
            if self.p == math.inf:
                return np.asarray(loss)
            return np.asarray((self.p * loss + np.log(self.drop(counts)) - np.log(self.cost)) / (self.p + 1))

    def at_level(self, level: float) -> Floats:
        """Return the counts, not whole, at which one more sample is exactly as urgent as this (a logarithm)."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            inverse = 1 / self.populations
            if self.p == math.inf:
                return np.asarray(1 / (np.exp(level - np.log(self.worth)) + inverse))
            # With v = 1/T - 1/N:  (p-1) log v + 2 log(v + 1/N) = right. The left is convex in log v, of slope p+1 and
            # then p-1, so Newton's steps from the right end are few and never overshoot.
            right = (self.p + 1) * level - self.p * np.log(self.worth) - math.log(self.p) + np.log(self.cost)
            if self.p == 1:
                return np.asarray(np.exp(-right / 2))
            log_v = right / (self.p + 1)
            if inverse.any():
                for _ in range(12):
                    log_v = np.clip(log_v, -700, 700)  # v and 1/v stay finite
                    v = np.exp(log_v)
                    left = (self.p - 1) * log_v + 2 * np.log(v + inverse)
                    log_v = log_v - (left - right) / (self.p - 1 + 2 * v / (v + inverse))
            return np.asarray(1 / (np.exp(log_v) + inverse))

    def down_to(self, level: float, low: Floats, high: Floats) -> Floats:
        """Return the smallest whole counts from `low` to `high` at which no further step is above the level."""
        low, high = low.copy(), high.copy()
        guess = np.clip(np.floor(self.at_level(level)), low, high)
        for _ in range(2):  # the guess and its neighbour settle it for nearly all
            above = (guess < high) & (self.urgency(np.maximum(np.minimum(guess, high - 1), 1)) > level)
            low, high = np.where(above, guess + 1, low), np.where(above, high, guess)
            guess = np.clip(np.where(above, guess + 1, guess - 1), low, high)
        while (open_ := np.flatnonzero(low < high)).size:
            middle = np.floor((low[open_] + high[open_]) / 2)
            above = self.some(open_).urgency(middle) > level
            low[open_] = np.where(above, middle + 1, low[open_])
            high[open_] = np.where(above, high[open_], middle)
        return low


def _fill(steps: _Steps, counts: Floats, limit: float) -> tuple[Floats, Floats]:
    """
    Return the greedy allocation from these counts on, and what it was before the first step that could not be paid for.

    From then on an arm whose sample costs more than is left gets no more; the others do.
    """
    counts, first = counts.copy(), None
    while True:
        left = limit - math.fsum(steps.cost * counts)
        active = np.flatnonzero((steps.worth > 0) & (counts < steps.caps) & (steps.cost <= left))
        if not active.size:
            return counts, counts if first is None else first
        counts[active] = _round(steps.some(active), counts[active], left)
        first = counts.copy() if first is None else first


def _round(steps: _Steps, counts: Floats, left: float) -> Floats:
    """Take the most urgent steps from these counts on, up to the first that cannot be paid for; each alone could be."""
    below, above = counts, np.minimum(steps.caps, counts + np.floor(left / steps.cost))
    if float(steps.cost @ (above - counts)) <= left:
        return above
    low, high = float(steps.urgency(above - 1).min()) - 1, float(steps.urgency(counts).max())
    while float((above - below).sum()) > max(SORTED, 2 * counts.size):
        level = (low + high) / 2
        if not low < level < high:
            break
        middle = steps.down_to(level, below, above)
        if float(steps.cost @ (middle - counts)) <= left:
            below, high = middle, level
        else:
            above, low = middle, level
    number = (above - below).astype(np.int64)
    arm = np.repeat(np.arange(counts.size), number)
    at = below[arm] + (np.arange(arm.size) - np.repeat(np.cumsum(number) - number, number))
    rows = steps.some(arm)
    # For p = inf the losses themselves: logarithms could make different losses equal.
    urgency = rows.losses(at) if steps.p == math.inf else rows.urgency(at)
    order = np.argsort(-urgency, kind="stable")
    spent = float(steps.cost @ (below - counts)) + np.cumsum(rows.cost[order])
    taken = arm[order[: np.searchsorted(spent, left, side="right")]]
    return below + np.bincount(taken, minlength=counts.size)
