"""
Whole samples for known variances: the best allocation of a budget, with floors, caps, finite populations and costs.

An allocation is reached by steps, one more sample for one arm. A step's *urgency* is its gain per cost, put as a number
that falls like 1/T; for the largest loss it is the arm's loss itself::

    urgency = ( (L(T)^p - L(T+1)^p) / c )^{1/(p+1)}        p = inf:  L(T),     L(T) = w σ² (1/T - 1/N)

This is the key of a study with the exact gain in place of its first order. Taking the most urgent step that can be paid
for, again and again, is the greedy allocation. It is found here without walking: bisect over a level of urgency for
what lies above it, then sort the few steps in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from equipoise.arrays import Bools, Floats, Ints
from equipoise.problem.objective import Objective

# Sums of money are right up to this part of the budget, and this part of the cheapest sample if that is less: three
# samples at 0.1 can be paid with 0.3.
OF_BUDGET, OF_SAMPLE = 1e-9, 1e-6
# Two sums of losses are equal up to this part.
TOLERANCE = 1e-12
# Counts are kept as floats, which are exact so far.
MOST = 1e15
# Steps that are sorted one by one when the bisection is done: so many, or two for each arm.
SORTED = 1024
# How many partial allocations the search behind `_knapsack` looks at before it gives up.
SEARCHED = 2_000_000


@dataclass(frozen=True, eq=False)
class Terms:
    """
    What an allocation has to keep to, as arrays with a number for each arm.

    Parameters
    ----------
    variances
        σ²_k; of a finite population, with its size less one as the denominator.
    objective
        What is to be small, and what a sample costs.
    floors, caps
        The least and the most samples, whole numbers from 1; a cap may be infinite.
    populations
        N_k, of which samples are drawn without replacement; infinite for those drawn from a law. No cap is above it.
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
        """What may be spent: the budget, with room for the rounding of sums of money."""
        if self.objective.costs is None:
            return budget + 0.5
        return budget + min(OF_BUDGET * budget, OF_SAMPLE * min(self.objective.costs))

    def spend(self, counts: Floats) -> float:
        """Σ_k c_k T_k."""
        return math.fsum(self.cost * counts)

    def each(self, count: float) -> Floats:
        """So many samples of every arm, within floors and caps."""
        return np.asarray(np.clip(count, self.floors, self.caps))

    def losses(self, counts: Floats) -> Floats:
        """σ²/T (1 - T/N) of each arm; 0 where a population was sampled as a whole."""
        return _losses(self.variances, counts, self.populations)

    def loss(self, counts: Floats) -> float:
        """The objective at these counts."""
        return self.objective.loss(self.losses(counts))


def _losses(variances: Floats, counts: Floats, populations: Floats) -> Floats:
    return np.asarray(variances / counts * (1 - counts / populations))


@dataclass(frozen=True, eq=False)
class Allocation:
    """Whole samples, and a number below which no allocation of whole samples has its loss; the loss, if it is best."""

    counts: Floats
    bound: float


def allocate(terms: Terms, budget: float) -> Allocation:
    """
    The best allocation of whole samples within a budget that pays for the floors.

    For the largest loss (p = inf), and for any other p where all samples cost the same, no allocation of whole samples
    is better. Where costs differ the sum of losses is a knapsack: the greedy allocation is improved by a search that
    ends with the best of all, or gives up, and then `bound` says how far from it this may be.

    What is left when the best is reached goes on by the same rule, and to arms without variance in the end, evenly. So
    less is left over than the cheapest sample costs, unless every arm is at its cap.
    """
    limit = terms.limit(budget)
    counts, first = _fill(_Steps.of(terms), terms.floors, limit)
    bound = terms.loss(counts)
    if terms.objective.p < math.inf and np.unique(terms.cost).size > 1 and bound > 0:
        counts, bound = _knapsack(terms, counts, first, limit)
    endless = np.full(terms.arms, math.inf)
    evenly = _Steps(np.ones(terms.arms), terms.cost, terms.caps, endless, math.inf)
    return Allocation(_fill(evenly, counts, limit)[0], bound)


def even(terms: Terms, budget: float) -> Floats:
    """
    The same number of samples for every arm, as far as floors and caps allow.

    What is left of the budget buys one more of each arm in their order, until the next cannot be paid.
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
    """The best allocation if a sample could be divided."""
    steps = _Steps.of(terms)
    matter = steps.worth > 0
    counts = terms.floors.copy()
    left = budget - math.fsum((terms.cost * counts)[~matter])
    some, floors, caps = steps.some(matter), terms.floors[matter], terms.caps[matter]
    if not matter.any() or math.fsum(some.cost * caps) <= left:
        counts[matter] = caps
        return counts
    # Logarithms of urgency, far beyond what any variance, weight and cost can give.
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
    """The steps of arms with worth w σ², and how urgent they are."""

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
        """1 - (L(T+1)/L(T))^p, the part of L(T)^p that one more sample takes away."""
        part = np.minimum(1 / ((counts + 1) * (1 - counts / self.populations)), 1.0)
        return part if self.p == 1 else -np.expm1(self.p * np.log1p(-part))

    def urgency(self, counts: Floats) -> Floats:
        """The logarithm of the urgency of one more sample."""
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = np.log(self.worth / counts) + np.log1p(-counts / self.populations)
            if self.p == math.inf:
                return np.asarray(loss)
            return np.asarray((self.p * loss + np.log(self.drop(counts)) - np.log(self.cost)) / (self.p + 1))

    def at_level(self, level: float) -> Floats:
        """The counts, not whole, at which one more sample is just so urgent (a logarithm)."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            inverse = 1 / self.populations
            if self.p == math.inf:
                return np.asarray(1 / (np.exp(level - np.log(self.worth)) + inverse))
            # With v = 1/T - 1/N:  (p-1) log v + 2 log(v + 1/N) = right. The left is convex in log v, of slope p+1 and
            # then p-1, so that Newton's steps from the right end are few and pass nothing.
            right = (self.p + 1) * level - self.p * np.log(self.worth) - math.log(self.p) + np.log(self.cost)
            if self.p == 1:
                return np.asarray(np.exp(-right / 2))
            log_v = right / (self.p + 1)
            if inverse.any():
                for _ in range(12):
                    log_v = np.clip(log_v, -700, 700)  # v is a number, and so is 1/v
                    v = np.exp(log_v)
                    left = (self.p - 1) * log_v + 2 * np.log(v + inverse)
                    log_v = log_v - (left - right) / (self.p - 1 + 2 * v / (v + inverse))
            return np.asarray(1 / (np.exp(log_v) + inverse))

    def down_to(self, level: float, low: Floats, high: Floats) -> Floats:
        """The least whole counts between `low` and `high` at which no further step is above the level."""
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
    The greedy allocation from these counts on, and what it was when a step could not be paid for the first time.

    An arm whose sample costs more than is left is out for good; the others go on.
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
    """The most urgent steps from these counts on, up to the first that cannot be paid; each alone could be."""
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
    # The losses themselves, where they decide: logarithms could make equals of unequals.
    urgency = rows.losses(at) if steps.p == math.inf else rows.urgency(at)
    order = np.argsort(-urgency, kind="stable")
    spent = float(steps.cost @ (below - counts)) + np.cumsum(rows.cost[order])
    taken = arm[order[: np.searchsorted(spent, left, side="right")]]
    return below + np.bincount(taken, minlength=counts.size)


def _knapsack(terms: Terms, greedy: Floats, first: Floats, limit: float) -> tuple[Floats, float]:
    """
    The allocation of the least Σ_k L_k^p within the budget, where costs differ; the greedy one if the search gives up.

    `first` minimises Σ_k L_k^p + m · cost for the multiplier m of the first step that could not be paid. So any other
    allocation has a regret against that sum, arm by arm, and one that beats the greedy allocation has a total regret
    below the greedy one's gap. That leaves each arm few counts. Partial allocations are extended arm by arm, and one
    that costs no less and gains no more than another is dropped.
    """
    loss, scale = terms.loss(greedy), terms.loss(first)
    steps = _Steps.of(terms)
    p, cost = steps.p, terms.cost

    def gain(arms: Ints, counts: Floats) -> Floats:
        """What one more sample takes from Σ (L/scale)^p."""
        some = steps.some(arms)
        with np.errstate(divide="ignore", under="ignore", over="ignore"):
            return np.asarray((some.losses(counts) / scale) ** p * some.drop(counts))

    left = limit - terms.spend(first)
    # An arm whose sample cannot be paid beside the floors stays at its own.
    caps = np.where(cost <= limit - terms.spend(terms.floors), terms.caps, terms.floors)
    caps = np.where(steps.worth > 0, caps, first)
    free = np.flatnonzero(first < caps)
    if not free.size:
        return greedy, loss
    m = float((gain(free, first[free]) / cost[free]).max())
    lowest = math.fsum((steps.losses(first) / scale) ** p) - m * left
    reached = (loss / scale) ** p
    bound = scale * max(lowest, 0.0) ** (1 / p)
    gap = reached - lowest
    if gap <= TOLERANCE * reached:
        return greedy, loss if reached > 0 else bound
    options = _options(gain, first, terms.floors, caps, cost, m, gap)
    chosen = None if options is None else _search(options, m, gap, left)
    if options is None or chosen is None:
        return greedy, bound
    best = first.copy()
    best[options.arms[chosen]] += options.moves[chosen]
    return (best, terms.loss(best)) if terms.loss(best) < loss else (greedy, loss)


@dataclass(frozen=True, eq=False)
class _Options:
    """Other counts that arms may have: the arm, samples more or less, money more or less, and the regret."""

    arms: Ints
    moves: Floats
    costs: Floats
    regrets: Floats


def _options(
    gain: Callable[[Ints, Floats], Floats],
    counts: Floats,
    floors: Floats,
    caps: Floats,
    cost: Floats,
    m: float,
    gap: float,
) -> _Options | None:
    """All moves of one arm from `counts` with a regret up to `gap`; None if they are too many to search."""
    rows: list[tuple[Ints, Floats, Floats]] = []
    for sign in (1, -1):
        arms = np.arange(counts.size)
        at, regret = counts.copy(), np.zeros(counts.size)
        while arms.size:
            arms = arms[at[arms] < caps[arms]] if sign > 0 else arms[at[arms] > floors[arms]]
            step = gain(arms, at[arms] - (sign < 0)) - m * cost[arms]
            regret[arms] += np.maximum(-sign * step, 0.0)
            at[arms] += sign
            arms = arms[regret[arms] <= gap]
            rows.append((arms, at[arms] - counts[arms], regret[arms]))
            if sum(row[0].size for row in rows) > SORTED:
                return None
    arms, moves, regrets = (np.concatenate(column) for column in zip(*rows, strict=True))
    return _Options(arms, moves, moves * cost[arms], regrets)


def _search(options: _Options, m: float, gap: float, left: float) -> Ints | None:
    """The options of the least Σ regret - m Σ cost that cost at most `left`, one for an arm; None if it gave up."""
    each = [np.flatnonzero(options.arms == arm) for arm in np.unique(options.arms)]
    # What the arms still to come can give back at most.
    back = np.cumsum([max(0.0, -options.costs[own].min()) for own in each][::-1])[::-1]
    costs, regrets = np.zeros(1), np.zeros(1)
    trail, looked = [], 0
    for i, own in enumerate(each):
        looked += costs.size * (own.size + 1)
        if looked > SEARCHED:
            return None
        with_none = np.append(own, -1)
        new_costs = (costs[:, None] + np.append(options.costs[own], 0.0)).ravel()
        new_regrets = (regrets[:, None] + np.append(options.regrets[own], 0.0)).ravel()
        later = back[i + 1] if i + 1 < len(each) else 0.0
        kept = np.flatnonzero((new_regrets <= gap * (1 + TOLERANCE)) & (new_costs - later <= left))
        worth = new_regrets[kept] - m * new_costs[kept]
        order = np.lexsort((worth, new_costs[kept]))
        better = np.append(True, worth[order][1:] < np.minimum.accumulate(worth[order])[:-1])
        kept = kept[order[better]]
        trail.append((kept // with_none.size, with_none[kept % with_none.size]))
        costs, regrets = new_costs[kept], new_regrets[kept]
    # The states are in the order of their cost and of their worth: the last is the best.
    at, chosen = costs.size - 1, []
    for parents, taken in reversed(trail):
        chosen.append(taken[at])
        at = parents[at]
    return np.array([one for one in chosen if one >= 0], dtype=np.int64)
