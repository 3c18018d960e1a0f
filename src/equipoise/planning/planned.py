"""The numbers of a plan: counts, errors and intervals to expect, by arm and together."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.base.arrays import Floats, Ints
from equipoise.base.inputs import probability
from equipoise.planning.reach import CLOSE, PlannedSums, Reach
from equipoise.problem.allocation import Allocation, Terms, even, relaxed
from equipoise.problem.objective import MOST


@dataclass(frozen=True, eq=False, repr=False)
class Planned:
    """
    The number of samples of each arm to take, and the errors to expect if the variances are as given.

    Attributes
    ----------
    arms
        The names of the arms.
    budget, precision, level
        The arguments of `plan`; None for a budget that was not given, and where no precision was asked of the arms.
    terms, allocation
        The plan as arrays: variances, objective, floors, caps and populations; and the counts.
    reach, sums
        The intervals; and the sums that the precision was asked of, None if of none.
    """

    arms: Sequence[Hashable]
    terms: Terms
    allocation: Allocation
    budget: float | None
    precision: tuple[float, ...] | None
    level: float
    reach: Reach
    sums: PlannedSums | None = None

    @cached_property
    def counts(self) -> dict[Hashable, int]:
        """The number of samples by arm."""
        return self._by_arm(self.allocation.counts.astype(np.int64))

    @cached_property
    def variances(self) -> dict[Hashable, float]:
        """The variances by arm, as they were given."""
        return self._by_arm(self.terms.variances)

    @cached_property
    def losses(self) -> dict[Hashable, float]:
        """The expected squared error of each arm's mean, σ²/T (1 - T/N), without its weight."""
        return self._by_arm(self._losses)

    @cached_property
    def errors(self) -> dict[Hashable, float]:
        """The standard error of each arm's mean."""
        return self._by_arm(np.sqrt(self._losses))

    def half_widths(self, level: float | None = None) -> dict[Hashable, float]:
        """Return the half-width of each arm's interval; all hold together with at least the probability `level`."""
        return self._by_arm(self._half_widths(self.level if level is None else probability("level", level)))

    @property
    def samples(self) -> int:
        """The number of samples of all arms together."""
        return int(self.allocation.counts.sum())

    @property
    def cost(self) -> float:
        """The cost of all samples; their number if no costs were given."""
        found = self.terms.spend(self.allocation.counts)
        return int(found) if self.terms.objective.costs is None else found

    @property
    def left(self) -> float:
        """The part of the budget that is left; 0 without a budget."""
        return 0 if self.budget is None else max(self.budget - self.cost, 0)

    @property
    def capped(self) -> bool:
        """Whether every arm is at its cap or its whole population is sampled, so that no budget could buy more."""
        return bool((self.allocation.counts >= self.terms.caps).all())

    @property
    def reached(self) -> bool | None:
        """Whether each arm, or each sum, has the precision that was asked for; None if none was."""
        if self.sums is not None:
            return bool((self.half_widths_of_sums <= self.sums.half_width * (1 + CLOSE)).all())
        return None if self.precision is None else not self.too_wide.size

    @property
    def half_widths_of_sums(self) -> Floats:
        """The half-widths of the sums that the precision was asked of; none if of none."""
        if self.sums is None:
            return np.zeros(0)
        return self.reach.of_sums(self.terms, self.allocation.counts, self.sums)

    @property
    def worst(self) -> Hashable:
        """The arm with the largest standard error."""
        return self.arms[int(self._losses.argmax())]

    @cached_property
    def loss(self) -> float:
        """The value of the objective: the p-norm of the weighted losses."""
        return self.terms.loss(self.allocation.counts)

    @property
    def bound(self) -> float:
        """A proven lower bound on the loss of whole counts within the budget; `loss` itself where that is the best."""
        return self.allocation.bound

    @cached_property
    def optimal_loss(self) -> float:
        """The best loss for the same budget and limits if samples could be divided."""
        return self.terms.loss(relaxed(self.terms, self.spend))

    @cached_property
    def uniform_loss(self) -> float:
        """The loss of an even split of the same budget, as far as floors and caps allow one."""
        return self.terms.loss(even(self.terms, self.spend))

    @cached_property
    def uniform_cost(self) -> float:
        """The cost of an even split with the same loss; infinite if none has it."""
        terms, enough = self.terms, self.loss * (1 + CLOSE)
        low, high = 0.0, 1.0
        while terms.loss(terms.each(high)) > enough:
            low, high = high, 2 * high
            if high > 2 * MOST:
                return math.inf
        while high - low > 1:
            middle = math.floor((low + high) / 2)
            low, high = (middle, high) if terms.loss(terms.each(middle)) > enough else (low, middle)
        found = terms.spend(terms.each(high))
        return int(found) if terms.objective.costs is None else found

    @cached_property
    def _losses(self) -> Floats:
        return self.terms.losses(self.allocation.counts)

    def _half_widths(self, level: float) -> Floats:
        return self._reach(level).half_widths(self.terms, self.allocation.counts)

    def _reach(self, level: float) -> Reach:
        return replace(self.reach, alpha=(1 - level) / len(self.arms))

    @cached_property
    def too_wide(self) -> Ints:
        """The places of the arms whose half-width exceeds the precision, the worst first; none without a precision."""
        if self.precision is None:
            return np.zeros(0, np.int64)
        over = self._half_widths(self.level) / np.array(self.precision)
        order = np.argsort(-over, kind="stable")
        return np.asarray(order[over[order] > 1 + CLOSE])

    @property
    def spend(self) -> float:
        """The spend at which it is compared: the budget, or its own cost where the precision was reached with less."""
        return self.cost if self.budget is None or self.reached else self.budget

    def _by_arm(self, array: npt.NDArray[Any]) -> dict[Hashable, Any]:
        return dict(zip(self.arms, array.tolist(), strict=True))

    def columns(self) -> dict[str, Any]:
        """Return the columns of the table of arms: names as a list, numbers as arrays."""
        return {
            "arm": list(self.arms),
            "variance": self.terms.variances,
            "count": self.allocation.counts.astype(np.int64),
            "cost": self.terms.cost * self.allocation.counts,
            "standard_error": np.sqrt(self._losses),
            "half_width": self._half_widths(self.level),
            "loss": self._losses,
        }
