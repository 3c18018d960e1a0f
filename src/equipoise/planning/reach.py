"""
Half-widths at planned counts, and the fewest samples at which a study meets the stop rule (`intervals.stop_rule`).

The half-width of an arm with the loss σ²/T is a multiple of its square root: the normal quantile z for counts that are
fixed beforehand; z sqrt(1 + a/T) for a study that is stopped by fixed-width intervals (`intervals.fixed_width`, for
arms that are not skewed), which needs some thirty samples at least; and more for one that is stopped by confidence
sequences, the asymptotic ones. Sums of means have half-widths of the same three kinds, and binary arms and sums of
their means have their own (`binary`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, get_args

import numpy as np

from equipoise.base.arrays import Bools, Floats
from equipoise.intervals import Intervals, asymptotic, fixed_width, stop_rule
from equipoise.intervals import contrasts as sequences
from equipoise.intervals.sequences import TARGET
from equipoise.intervals.stop_rule import Moments, StopRule, Widths
from equipoise.planning import binary
from equipoise.problem.allocation import Allocation, Terms, allocate
from equipoise.problem.contrasts import balanced
from equipoise.problem.objective import MOST

Interval = Literal["fixed-width", "anytime", "fixed-n"]
INTERVALS: Final[tuple[Interval, ...]] = get_args(Interval)
# How far rounding may carry a half-width past the one that was asked for.
CLOSE: Final = 1e-9
# Rounds in which the factors of half-widths and the weights of losses are found, each from the other.
_ROUNDS: Final = 3
# Spends this close, as a part of the larger, are not told apart in a search for the fewest samples of sums.
_OF_SPEND: Final = 1e-4


@dataclass(frozen=True, eq=False)
class PlannedSums:
    """
    Weighted sums of means that a precision is asked of.

    Attributes
    ----------
    weights
        With a row for each sum and a column for each arm.
    half_width
        That is wanted of each.
    every
        What they are, such as "every difference to control".
    """

    weights: Floats
    half_width: float
    every: str


@dataclass(frozen=True)
class Reach:
    """
    The kind of the intervals, and the probability with which each may miss.

    Attributes
    ----------
    interval, alpha
        The kind, and the probability.
    each
        The number of samples of an arm to which sequences are tuned.
    binary
        Whether samples are 0 or 1.
    """

    interval: Interval
    alpha: float
    each: float = TARGET
    binary: bool = False

    @property
    def z(self) -> float:
        """The normal quantile."""
        return fixed_width.quantile(self.alpha)

    @cached_property
    def rule(self) -> StopRule:
        """The rule that stops a study."""
        return StopRule(Intervals(1, "binary" if self.binary else None), self.alpha, self.interval == "fixed-width")

    @property
    def fewest(self) -> float:
        """The fewest samples of which there is an interval."""
        if self.binary or self.interval == "fixed-n":
            return 1.0
        return fixed_width.fewest(self.z) if self.interval == "fixed-width" else float(asymptotic.START)

    @property
    def _rho2(self) -> float:
        return asymptotic.settings(-math.inf, math.inf, max(self.each, asymptotic.START), self.alpha)[asymptotic.RHO2]

    def half_widths(self, terms: Terms, counts: Floats) -> Floats:
        """Return the half-width of each arm's interval."""
        if self.binary and self.interval == "fixed-width":
            return binary.fixed_width_of_arms(terms, counts, self.rule)
        if self.binary and self.interval == "anytime":
            return binary.sequences_of_arms(terms, counts, self.alpha)
        clocks = _clocks(counts, terms.populations)
        if self.interval == "fixed-n":
            factors = np.full(len(counts), self.z)
        elif self.interval == "fixed-width":
            factors = self.z * np.sqrt(1 + fixed_width.student_term(self.z) / clocks)
        else:
            rho2 = self._rho2
            factors = np.array(
                [asymptotic.radius(t, rho2, self.alpha) * math.sqrt(t) for t in np.minimum(clocks, 1e18)]
            )
        return np.asarray(factors * np.sqrt(terms.losses(counts)))

    def of_sums(self, terms: Terms, counts: Floats, sums: PlannedSums) -> Floats:
        """Return the half-width of each sum's interval."""
        if self.interval == "anytime":
            return self._sequences(terms, counts, sums.weights)
        if self.interval == "fixed-n":
            return np.asarray(self.z * np.sqrt((sums.weights**2 * terms.losses(counts)).sum(1)))
        found = self._fixed_width(terms, counts, sums)
        trusted = np.isfinite(found.half)
        if not self.binary or trusted.all():
            return found.plain
        # As a study does, which is stopped by the sequence of a sum where ones or zeros are too rare.
        half = found.plain.copy()
        half[~trusted] = self._sequences(terms, counts, sums.weights[~trusted])
        return half

    def trusts(self, terms: Terms, counts: Floats, sums: PlannedSums) -> bool:
        """Return whether there are enough samples for the interval of each sum."""
        if self.binary or self.interval != "fixed-width":
            return True
        return bool(np.isfinite(self._fixed_width(terms, counts, sums).half).all())

    def _fixed_width(self, terms: Terms, counts: Floats, sums: PlannedSums) -> Widths:
        """Return the fixed-width intervals of sums whose samples vary as expected, and are not skewed if not binary."""
        state = np.zeros((len(counts), fixed_width.COLUMNS))
        state[:, fixed_width.COUNT] = drawn = np.maximum(counts, np.minimum(2, terms.populations))
        weights = sums.weights
        if self.binary:
            state[:, fixed_width.MEAN] = binary.shares(terms)
        else:
            state[:, fixed_width.M2] = terms.variances * (drawn - 1)
            # What does not vary needs no sample.
            weights = np.where(terms.variances > 0, weights, 0.0)
        moments, values = Moments(state, terms.populations), np.full(len(weights), math.nan)
        return stop_rule.of_sums(self.rule, moments, weights, values)

    def _sequences(self, terms: Terms, counts: Floats, weights: Floats) -> Floats:
        clocks, deviations = _clocks(counts, terms.populations), np.sqrt(terms.variances)
        several = (weights != 0).sum(1)
        found = np.empty(len(weights))
        for m in np.unique(several):
            rows = np.flatnonzero(several == m)
            places = np.nonzero(weights[rows])[1].reshape(len(rows), m)
            own = np.take_along_axis(weights[rows], places, axis=1)
            if self.binary:
                found[rows] = binary.sequences_of_sums(terms, counts, self.alpha, places, own)
                continue
            known = clocks[places] == math.inf
            ran = np.minimum(clocks, 1e18)[places]
            found[rows] = sequences.asymptotic(own, ran, deviations[places], self._rho2, self.alpha, known)
        return found


def _clocks(counts: Floats, sizes: Floats) -> Floats:
    """Return the samples with replacement that are worth as much as these; infinite of a whole population."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(counts < sizes, counts / (1 - counts / sizes), math.inf)


def of_arms(terms: Terms, wanted: Floats, reach: Reach) -> Allocation:
    """Return the fewest samples at which each arm has its half-width, within floors and caps."""
    least = np.where(terms.variances > 0, np.clip(reach.fewest, terms.floors, terms.caps), terms.floors)
    with np.errstate(divide="ignore"):
        # What fixed counts need, which is no more than any other kind does.
        high = np.ceil(1 / ((wanted / reach.z) ** 2 / terms.variances + 1 / terms.populations))
    if ((high > MOST) & (terms.caps >= MOST)).any():  # refused by the caller
        return Allocation(high, math.nan)

    def enough(counts: Floats) -> Bools:
        return reach.half_widths(terms, counts) <= wanted * (1 + CLOSE / 2)

    low, high = least - 1, np.clip(high, least, terms.caps)
    while (short := ~enough(high) & (high < terms.caps)).any():
        low, high = np.where(short, high, low), np.where(short, np.minimum(2 * high, terms.caps), high)
    # Enough at `high`, or capped; not at `low`, or below the least.
    while (high - low > 1).any():
        middle = np.maximum(np.floor((low + high) / 2), least)
        done = (high - low <= 1) | (middle >= high)
        good = enough(middle)
        low, high = np.where(done | good, low, middle), np.where(~done & good, middle, high)
        low = np.where(done, high - 1, low)
    return Allocation(high, terms.loss(high))


def terms_of_sums(terms: Terms, sums: PlannedSums, reach: Reach) -> Terms:
    """
    Return the terms with the weights on losses with which the widest of the sums is as narrow as it can be.

    Half-widths are not quite in proportion to standard errors: each sum has a factor, which is found in a few rounds.
    """
    factors = np.ones(len(sums.weights))
    for _ in range(_ROUNDS):
        found = _weighted(terms, sums, factors, reach)
        if len(factors) == 1:
            break
        precise = of_sums(found, sums, reach)
        if precise is None:
            break
        errors = np.sqrt((sums.weights**2 * terms.losses(precise.counts)).sum(1))
        half = reach.of_sums(terms, precise.counts, sums)
        usable = (errors > 0) & np.isfinite(half)
        factors = np.where(usable, half / np.where(usable, errors, 1.0), 1.0)
    return found


def _weighted(terms: Terms, sums: PlannedSums, factors: Floats, reach: Reach) -> Terms:
    """Return the terms with the weights on losses that narrow sums with these factors together."""
    relative = np.square(factors[:, None] / factors.max() * sums.weights)
    weights = balanced(relative, _reckoned_with(terms, sums, reach).variances, terms.cost)
    objective = replace(terms.objective, p=1.0, weights=tuple((weights / weights.max()).tolist()))
    return replace(terms, objective=objective)


def _reckoned_with(terms: Terms, sums: PlannedSums, reach: Reach) -> Terms:
    """
    Return the terms with the variances that the intervals of sums reckon with.

    However few ones a binary arm has, its part of an interval shrinks with its samples: by one more one and one more
    zero, among about as many samples as the widest sum needs.
    """
    if not reach.binary:
        return terms
    needed = (reach.z / sums.half_width) ** 2 * float((sums.weights**2 @ terms.variances).max())
    samples = min(max(needed, fixed_width.LEAST), MOST)
    share = (samples * binary.shares(terms) + 1) / (samples + 2)
    return replace(terms, variances=np.maximum(terms.variances, share * (1 - share)))


def within(terms: Terms, budget: float, sums: PlannedSums | None, reach: Reach) -> Allocation:
    """Return the allocation of a budget; where sums are to be narrow, what their intervals need."""
    found = allocate(terms, budget)
    if sums is None or (likely := _reckoned_with(terms, sums, reach)) is terms:
        return found
    return Allocation(allocate(likely, budget).counts, found.bound)


def of_sums(terms: Terms, sums: PlannedSums, reach: Reach) -> Allocation | None:
    """
    Return about the fewest samples with which each sum has its half-width, within floors and caps.

    If no counts within the caps have it, it is as many as the caps allow; None if that is without a limit.
    """
    likely = _reckoned_with(terms, sums, reach)

    def enough(spend: float) -> bool:
        found = allocate(likely, spend).counts
        narrow = bool((reach.of_sums(terms, found, sums) <= sums.half_width * (1 + CLOSE / 2)).all())
        return narrow and reach.trusts(terms, found, sums)

    low, most, step = terms.spend(terms.floors), terms.spend(terms.caps), float(terms.cost.min())
    if enough(low):
        return within(terms, low, sums, reach)
    high = low
    while not enough(high := min(max(4 * high, 64 * step), most)):
        low = high
        if high >= most:
            return None if (terms.caps >= MOST).any() else within(terms, most, sums, reach)
    # The middle need not be a whole number of samples: what it leaves buys none.
    while high - low > max(step, _OF_SPEND * high):
        middle = low + (high - low) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return within(terms, high, sums, reach)
