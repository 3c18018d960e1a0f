"""Everything that inference starts from: what a study saw, and what it is asked to reach."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import Names
from equipoise.inference import finite
from equipoise.intervals import Intervals, Kind, default_kind
from equipoise.intervals.stop_rule import Moments, StopRule
from equipoise.ledger.evidence import Bets, Evidence
from equipoise.ledger.goal import Goal, Precision
from equipoise.ledger.snapshot import Snapshot
from equipoise.problem.objective import Objective
from equipoise.strategies import Support

T = TypeVar("T")


@dataclass(frozen=True, eq=False, repr=False)
class Known:
    """
    What is known of a study: the input of every function of this room, and the numbers that follow at once.

    Arrays are in the arms' order. A variance needs two samples, a mean needs one; what is not known is NaN.

    Parameters
    ----------
    snapshot
        What the study saw.
    goal
        The level of the intervals, and the precision that was asked for, if any.
    cost_unit
        The unit of costs, such as "tokens"; empty where none was given.
    settled
        Which arms were stopped because they had reached the precision; None for none.
    """

    snapshot: Snapshot
    goal: Goal = field(default_factory=Goal)
    cost_unit: str = ""
    settled: Bools | None = None
    # What functions found that are `remembered`, by their names.
    found: dict[str, Any] = field(default_factory=dict, init=False)

    # ---- the study

    @property
    def names(self) -> Names:
        """The arms' names, and the place of each."""
        return self.snapshot.names

    @property
    def arms(self) -> Sequence[Hashable]:
        """The arms' names, in order."""
        return self.snapshot.names.names

    @property
    def strategy(self) -> str:
        """The name of the strategy."""
        return self.snapshot.strategy

    @property
    def support(self) -> Support:
        """Which values are possible, as declared."""
        return self.snapshot.support

    @property
    def evidence(self) -> Evidence | None:
        """The samples in the order of asking; None where only moments are known."""
        return self.snapshot.evidence

    @property
    def recognised(self) -> bool:
        """Whether no support was declared and all samples are 0 or 1: intervals are those of binary arms."""
        return self.evidence is not None and self.evidence.recognised

    @property
    def populations(self) -> Floats | None:
        """The sizes of the arms' populations; None if all are infinite."""
        return self.snapshot.populations

    @property
    def level(self) -> float:
        """The level of the intervals."""
        return self.goal.level

    @property
    def precision(self) -> Precision | None:
        """The precision that was asked for; None without one."""
        return self.goal.precision

    @cached_property
    def objective(self) -> Objective:
        """What is minimised; where the weights follow a precision, with those of the targets now."""
        if not self.goal.by_precision or self.precision is None or self.precision.sums is not None:
            return self.snapshot.objective
        return replace(self.snapshot.objective, weights=self.precision.judging_weights(self.means))

    @property
    def by_precision(self) -> bool:
        """Whether errors are judged relative to the half-widths that were asked for."""
        if self.precision is None or self.precision.sums is not None:
            return False
        return self.goal.by_precision and self.objective.weights is not None

    @property
    def by_target(self) -> bool:
        """Whether arms are compared by their half-widths relative to those that were asked for, rather than by loss."""
        weighted = self.objective.shares is not None or (self.objective.weights is not None and not self.by_precision)
        return not weighted and bool(np.isfinite(self.targets).all())

    @cached_property
    def targets(self) -> Floats:
        """The half-widths that were asked for; NaN if none was asked of arms."""
        if self.precision is None or self.precision.sums is not None:
            return np.full(len(self.arms), math.nan)
        return self.precision.targets(self.means)

    # ---- by arm

    @property
    def counts(self) -> Ints:
        """The samples of each arm."""
        return self.snapshot.counts

    @cached_property
    def means(self) -> Floats:
        """The mean of each arm's samples."""
        return np.where(self.counts >= 1, self.snapshot.means, math.nan)

    @cached_property
    def variances(self) -> Floats:
        """The unbiased variance of each arm's samples."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.counts >= 2, self.snapshot.m2s / (self.counts - 1), math.nan)

    @cached_property
    def losses(self) -> Floats:
        """The squared error s²/count of each mean, as if counts had been fixed; corrected for finite populations."""
        with np.errstate(divide="ignore", invalid="ignore"):
            losses = self.variances / self.counts
        return losses if self.populations is None else finite.corrected(losses, self.counts, self.populations)

    @cached_property
    def plain_errors(self) -> Floats:
        """The square root of each loss."""
        return np.sqrt(self.losses)

    @property
    def weighted_losses(self) -> Floats:
        """The losses times their weights; 0 for an arm of weight 0, even if its loss is unknown."""
        weight = self.objective.weight(len(self.arms))
        with np.errstate(over="ignore"):
            return np.where(weight > 0, weight * self.losses, 0.0)

    @property
    def sizes(self) -> Floats:
        """The sizes of the populations, infinite where there is none."""
        return np.full(len(self.arms), math.inf) if self.populations is None else self.populations

    @property
    def declined(self) -> Ints:
        """How many tickets of each arm were declined."""
        declined = self.snapshot.declined
        return np.zeros(len(self.arms), np.int64) if declined is None else declined

    @property
    def declined_shares(self) -> Floats:
        """The share of declines among the tickets of each arm that were answered or declined; 0 of none."""
        if self.snapshot.replies is None:
            return np.zeros(len(self.arms))
        return np.asarray(self.declined / np.maximum(self.snapshot.replies, 1))

    @property
    def used_up(self) -> Bools:
        """Which arms' populations are used up."""
        return np.asarray(self.counts >= self.sizes)

    @property
    def equal_samples(self) -> Bools:
        """Which arms' samples are all equal so far, so that their error is not known."""
        return np.asarray((self.counts >= 2) & (self.variances == 0) & ~self.used_up)

    # ---- all arms together

    @property
    def samples(self) -> int:
        """How many samples are in."""
        return int(self.counts.sum())

    @property
    def spent(self) -> float:
        """What the budget was charged for answers and declines; their number without costs."""
        return self.snapshot.bill if self.objective.costs is not None else int(self.snapshot.bill)

    @property
    def price(self) -> float:
        """
        The cost of the samples taken, at the mean cost of each arm; their number without costs.

        Other ways of sampling are compared at this price: their samples would have been declined as often.
        """
        if self.objective.costs is None:
            return self.samples
        return math.fsum(self.objective.cost(len(self.arms)) * self.counts)

    @property
    def loss(self) -> float:
        """The objective of the losses; NaN if that of any arm with a weight is."""
        return self.objective.loss(self.losses)

    # ---- confidence sequences

    @cached_property
    def sequences(self) -> Intervals:
        """The confidence sequences of the arms, of the default kind."""
        return self.sequences_of(None)

    @property
    def moments(self) -> Moments:
        """The evidence of all arms that decides when a precision is reached."""
        return Moments(self.state_of("fixed-width", None), self.sizes)

    @cached_property
    def stop_rule(self) -> StopRule:
        """The rule that decides when a precision is reached, at its share of the level for each arm or sum."""
        wanted = self.precision
        among = len(self.arms) if wanted is None or wanted.sums is None else len(wanted.sums.weights)
        fixed_width = wanted is not None and wanted.interval == "fixed-width" and self.evidence is not None
        return StopRule(self.sequences, (1 - self.level) / among, fixed_width)

    @property
    def interval_kind(self) -> Kind:
        """The kind of the confidence sequences."""
        return self.sequences.kind

    def sequences_of(self, kind: Kind | None) -> Intervals:
        """Return the sequences of a kind; None for the default."""
        if kind is None and self.populations is not None and self.evidence is not None:
            kind = default_kind("binary" if self.recognised else self.support)
        if self.evidence is not None:
            return self.evidence.intervals(kind)
        if kind not in (None, "fixed-n"):
            raise InvalidInput(f"kind must be 'fixed-n' for a result that was made of moments alone, got {kind!r}")
        return Intervals(len(self.arms), self.support, "fixed-n")

    def pools(self, sequences: Intervals, places: Sequence[int] | None) -> tuple[Intervals, Floats] | None:
        """
        Return the bets on finite populations that intervals of sums rest on, and the rows of some arms' state.

        None without populations, and for sequences of another kind. `places` is None for all arms.
        """
        if self.populations is None or sequences.kind != "betting" or self.evidence is None:
            return None
        bets: Bets = "pools" if sequences.support == "binary" else "betting"
        return self.evidence.intervals(bets), self.state_of(bets, places)

    def state_of(self, kind: Bets, places: Sequence[int] | None) -> Floats:
        """Return the rows of some arms, None for all, of the state of a kind of intervals."""
        if kind != "fixed-n" and self.evidence is not None:
            return self.evidence.state(kind) if places is None else self.evidence.state_of(kind, places)
        means = np.where(self.counts >= 1, self.means, 0.0)
        state = np.array([self.counts, means, self.snapshot.m2s, np.zeros(len(means))]).T
        return state if places is None else state[np.asarray(places)]


def remembered(function: Callable[[Known], T]) -> Callable[[Known], T]:
    """Compute what a function finds once for each `Known`, such as a replay."""
    name = f"{function.__module__}.{function.__qualname__}"

    @functools.wraps(function)
    def found(known: Known) -> T:
        if name not in known.found:
            known.found[name] = function(known)
        answer: T = known.found[name]
        return answer

    return found
