"""
What a study asks for besides its strategy: the order of a guess, rounds, and a precision.

Options and a ledger in, decisions out: which arms come first, which are due in this round, when to look, which arms are
known well enough, and the weights under which errors approach their targets together. All of it follows from the log,
so that every process that takes a turn decides the same. A turn (`store.turn`) or a study in memory (`study.aim`)
applies the decisions.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from equipoise.base.arrays import Bools, Ints
from equipoise.base.inputs import number
from equipoise.inference import target_weights
from equipoise.inference.arm_intervals import reached_by_arm
from equipoise.inference.known import Known
from equipoise.intervals.asymptotic import START
from equipoise.ledger import Goal, looks
from equipoise.ledger.goal import Stopping
from equipoise.ledger.goal import precision as precision_of
from equipoise.ledger.ledger import Ledger
from equipoise.problem.objective import numbers_by_arm
from equipoise.problem.objective import objective as objective_of
from equipoise.study.options import StudyOptions

# Weights that follow the means are set again whenever the samples have grown by this factor.
WEIGH: Final = 1.25

# Why an arm is retired where the user did not ask for it. A precise one is reopened when another precision is asked
# for, an exhausted one when it has samples again.
PRECISE, EXHAUSTED = JUDGEMENTS = ("precise enough", "exhausted")


class Standing(Protocol):
    """How a study stands, as a replica knows it."""

    @property
    def ledger(self) -> Ledger:
        """The state of the study."""

    @property
    def precision(self) -> Any:
        """The precision that is asked for now."""

    @property
    def level(self) -> float:
        """The level that is asked for now."""

    @property
    def interval(self) -> Stopping:
        """Which intervals decide."""

    @property
    def followed(self) -> bool:
        """Whether the weights follow the precision."""

    @property
    def weighed(self) -> int:
        """The number of samples at which they were set for this precision; -1 if they were not."""

    @property
    def judged(self) -> Bools:
        """Which arms the policy retired."""

    @property
    def settled(self) -> Bools:
        """Which of them it retired because they had reached the precision that is asked for now."""


class Acting(Protocol):
    """What a policy acts on: a turn, or a study in memory."""

    def ask(self, m: int, /) -> range:
        """Hand out up to m tickets of the strategy's choice; return their ids."""

    def ask_for(self, places: Ints, /) -> range:
        """Hand out tickets for these arms, up to the first without a place in the budget; return their ids."""

    def set_weights(self, weights: Any, /, followed: bool = False) -> None:
        """Change the weights, and whether they follow the precision."""

    def retire(self, place: int, why: str, /) -> None:
        """Retire an arm."""

    def reopen(self, place: int, /) -> None:
        """Reopen an arm."""


@dataclass(frozen=True)
class Decisions:
    """
    What to do after a look, in this order.

    Attributes
    ----------
    drop_weights
        Whether to remove weights that follow a precision which is no longer asked for.
    weights
        New weights that follow the precision; None to leave them.
    retire
        Places of arms to retire, and why.
    reopen
        Places of arms to reopen.
    """

    drop_weights: bool
    weights: tuple[float, ...] | None
    retire: tuple[tuple[int, str], ...]
    reopen: tuple[int, ...]

    def apply(self, acting: Acting) -> None:
        """Carry them out."""
        if self.drop_weights:
            acting.set_weights(None)
        if self.weights is not None:
            acting.set_weights(list(self.weights), followed=True)
        for k, why in self.retire:
            acting.retire(k, why)
        for k in self.reopen:
            acting.reopen(k)


class Policy:
    """
    The policy of a study.

    Parameters
    ----------
    options
        The options of the study.
    """

    def __init__(self, options: StudyOptions) -> None:
        self._options = options
        self._guessed = _first_arms(options)
        # The same, and then a few rounds of all arms, for a precision.
        self._in_rounds = np.concatenate([self._guessed, _first_rounds(options)])
        # Caches: of the goal, and of the arms that are due in a round.
        self._goal: tuple[Any, Any, Goal] | None = None
        self._round, self._due, self._seen = -1, np.zeros(0, np.int64), 0

    # ---- what is asked for

    def goal(self, standing: Standing) -> Goal:
        """Return what the study is asked to reach."""
        objective = standing.ledger.objective
        others = not standing.followed and objective.weights is not None and objective.shares is None
        known = self._goal
        setting = standing.level, standing.interval, others
        if known is None or known[0] is not standing.precision or known[1] != setting:
            wanted, weigh = None, False
            if standing.precision is not None:
                given, options = standing.precision, self._options
                norm = options.options.get("objective", math.inf)
                wanted = precision_of(given, standing.level, options.arms, standing.interval, norm)
                weigh = wanted.followed(options.strategy, options.options) and not others
            known = self._goal = standing.precision, setting, Goal(standing.level, wanted, weigh)
        return known[2]

    # ---- who comes first

    def leads(self, ledger: Ledger) -> bool:
        """Return whether the policy may name arms to sample first."""
        return self._options.rounds is not None or ledger.issued < len(self._in_rounds)

    def first(self, standing: Standing) -> Ints:
        """Return the places of the arms to ask for before the strategy's choice; none of them is retired."""
        ledger = standing.ledger
        order = self._in_rounds if self.goal(standing).by_precision else self._guessed
        places = order[ledger.issued :]
        if not len(places):
            places = self._due_in_round(ledger)
        # Looking at very many arms takes a while, and few studies retire any.
        return places[~ledger.retired[places]] if len(places) and ledger.retired.any() else places

    def ask_next(self, standing: Standing, acting: Acting, most: int) -> range:
        """Hand out tickets, none only where none is left: for arms that come first, or of the strategy's choice."""
        places = self.first(standing)[:most]
        return (acting.ask_for(places) if len(places) else range(0)) or acting.ask(most)

    def hand_out(self, standing: Standing, acting: Acting, m: int) -> range:
        """Hand out up to m tickets: for the arms that come first, then of the strategy's choice; return their ids."""
        ledger = standing.ledger
        first = ledger.issued
        while (left := m - (ledger.issued - first)) > 0 and self.ask_next(standing, acting, left):
            pass
        return range(first, ledger.issued)

    def _due_in_round(self, ledger: Ledger) -> Ints:
        """Return the arms that were not asked in the last round, nor since."""
        rounds = self._options.rounds
        if not rounds:
            return self._due
        size = rounds * len(self._options.arms)
        current = ledger.issued // size
        if current != self._round:
            idle = np.ones(len(self._options.arms), bool)
            idle[ledger.arms_of(slice(max(current - 1, 0) * size, current * size))] = False
            self._due = np.flatnonzero(idle) if current else np.zeros(0, np.int64)
            self._round, self._seen = current, current * size
            if len(self._due) > ledger.remaining:
                self._due = np.zeros(0, np.int64)
        if self._seen < ledger.issued and len(self._due):
            self._due = self._due[~np.isin(self._due, ledger.arms_of(slice(self._seen, ledger.issued)))]
        self._seen = ledger.issued
        return self._due

    # ---- who is known well enough

    def next_look(self, standing: Standing, samples: int) -> int:
        """Return the number of samples at which to look, if the study was looked at when it had `samples`."""
        if standing.precision is None:
            return looks.NEVER
        due = looks.next_look(samples, len(self._options.arms))
        if self.goal(standing).by_precision:
            due = min(due, math.ceil(WEIGH ** (_stage(samples) + 1)))
        return due

    def look(self, standing: Standing, exhausted: Bools | None = None) -> Decisions:
        """
        Decide which arms to retire (precise enough, or no more samples) and which to reopen.

        An arm that has reached its precision is reopened if another one is asked for, and otherwise stays retired, even
        where late answers widen its interval. The interval of a sum changes as long as one of its arms is sampled:
        until all of them have stopped, an arm of a sum is reopened where the sum is no longer narrow enough. An arm
        that had no more samples is reopened when it has some again.

        Parameters
        ----------
        standing
            The study.
        exhausted
            For each arm, whether it has no more samples, as far as its sampler knows.
        """
        ledger, goal = standing.ledger, self.goal(standing)
        gone = np.zeros(len(self._options.arms), bool) if exhausted is None else exhausted
        enough, weights = np.zeros_like(gone), None
        if goal.precision is not None:
            known = Known(ledger.snapshot(), goal, settled=standing.settled.copy())
            enough = reached_by_arm(known)
            if goal.by_precision and (standing.weighed < 0 or _stage(ledger.samples) > _stage(standing.weighed)):
                weights = target_weights.weights(known, enough | gone)
        retired = ledger.retired
        retire = np.flatnonzero((enough | gone) & ~retired).tolist()
        return Decisions(
            drop_weights=standing.followed and not goal.by_precision,
            weights=None if weights is None else tuple(weights.tolist()),
            retire=tuple((k, EXHAUSTED if gone[k] else PRECISE) for k in retire),
            reopen=tuple(np.flatnonzero(~enough & ~gone & retired & standing.judged).tolist()),
        )


def _stage(samples: int) -> int:
    """Return how often weights were set by this number of samples, up to a constant."""
    return int(math.log(max(samples, 1), WEIGH))


def _first_arms(options: StudyOptions) -> Ints:
    """Return the places of the arms to sample first, by guessed variances."""
    if options.guess is None:
        return np.zeros(0, np.int64)
    arms = len(options.arms)
    variances = np.array(numbers_by_arm("guess", options.guess, options.arms))
    chosen = {name: options.options.get(name) for name in ("weights", "costs")}
    goal = objective_of(options.arms, options.options.get("objective", math.inf), **chosen)
    most = 10 * arms
    if options.budget is not None:
        most = min(most, int(number("budget", options.budget) / goal.cost(arms).max() / 10))
    # As an oracle with these variances would choose: the largest key, as if each arm had had one pull.
    scores = goal.scales(arms) * variances**goal.exponent
    heap = [(-score, k, 1) for k, score in enumerate(scores.tolist())]
    heapq.heapify(heap)
    order = []
    for _ in range(most):
        _, k, pulls = heap[0]
        order.append(k)
        heapq.heapreplace(heap, (-float(scores[k]) / (pulls + 1), k, pulls + 1))
    return np.array(order, np.int64)


def _first_rounds(options: StudyOptions) -> Ints:
    """
    Return the places of the arms for the first rounds, as many as an interval that rests on the sample variance needs.

    An arm of small weight would otherwise be left without one. Nothing if these rounds would take half of the budget.
    """
    arms = len(options.arms)
    most = math.inf
    if options.budget is not None:
        costs = objective_of(options.arms, costs=options.options.get("costs")).cost(arms)
        most = number("budget", options.budget) / costs.sum() / 2
    return np.tile(np.arange(arms), START if options.support is None and most >= START else 0)
