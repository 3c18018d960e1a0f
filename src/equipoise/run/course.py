"""
What a study asks for besides its strategy: the order of a guess, rounds, and a precision.

All of it follows from the log alone, so that every process that takes a turn decides the same: which arms come first,
which are due in this round, which are known well enough, and with which weights errors are made small.
"""

from __future__ import annotations

import heapq
import math
from typing import Any, Final

import numpy as np

from equipoise.base.arrays import Bools, Ints
from equipoise.base.inputs import number
from equipoise.inference import target_weights
from equipoise.inference.arm_intervals import reached_by_arm
from equipoise.intervals.asymptotic import START
from equipoise.ledger import Goal
from equipoise.ledger.goal import precision as precision_of
from equipoise.ledger.goal import until_next_look
from equipoise.ledger.ledger import Ledger
from equipoise.problem.objective import numbers_by_arm
from equipoise.problem.objective import objective as objective_of
from equipoise.result import Result
from equipoise.run.pace import by_arm
from equipoise.store import Header, Replica, Turn
from equipoise.store.replica import EXHAUSTED, PRECISE

# Weights that follow the means are set again whenever the samples have grown by this factor.
WEIGH: Final = 1.25


class Course:
    """
    The course of a study.

    Parameters
    ----------
    header
        What the study is made of.
    """

    def __init__(self, header: Header) -> None:
        self._header = header
        self._guessed = _first_arms(header)
        # The same, and then a few rounds of all arms, for a precision.
        self._in_rounds = np.concatenate([self._guessed, _first_rounds(header)])
        self._goal: tuple[Any, Any, Goal] | None = None
        # Remembered, not decided: the samples at which to look again, and the arms that are due in a round.
        self._next_look = 0
        self._round, self._due, self._seen = -1, np.zeros(0, np.int64), 0

    # ---- what is asked for

    def goal(self, replica: Replica) -> Goal:
        """Return what the study is asked to reach."""
        study = replica.study
        others = not replica.followed and study.objective.weights is not None and study.objective.shares is None
        known = self._goal
        setting = replica.level, replica.interval, others
        if known is None or known[0] is not replica.precision or known[1] != setting:
            wanted, weigh = None, False
            if replica.precision is not None:
                objective = self._header.options.get("objective", math.inf)
                wanted = precision_of(replica.precision, replica.level, self._header.arms, replica.interval, objective)
                weigh = wanted.followed(self._header.strategy, self._header.options) and not others
            known = self._goal = replica.precision, setting, Goal(replica.level, wanted, weigh)
        return known[2]

    def result(self, replica: Replica, each: float | None = None) -> Result:
        """
        Return what is known now.

        Parameters
        ----------
        replica
            The study.
        each
            Seconds from one sample to the next lately, if that is known.
        """
        about, seconds, pace = self._header.about or {}, replica.seconds if replica.timed else np.empty(0), None
        if each is not None:
            pace = by_arm(each, replica.study.ledger.arms_of(slice(len(seconds))), seconds, len(self._header.arms))
        # Where durations are what is measured, slow ones differ from fast ones by their nature.
        compared = None if about.get("measure") == "seconds" or not len(seconds) else seconds
        unit = str(about.get("cost_unit", ""))
        return replica.study.result(
            goal=self.goal(replica), seconds=compared, pace=pace, cost_unit=unit, settled=replica.settled.copy()
        )

    # ---- who comes first

    def leads(self, ledger: Ledger) -> bool:
        """Return whether it may say which arms come first."""
        return self._header.rounds is not None or ledger.issued < len(self._in_rounds)

    def first(self, replica: Replica) -> Ints:
        """Return the places of the arms to ask for now, whatever the strategy says; none of them is retired."""
        ledger = replica.study.ledger
        order = self._in_rounds if self.goal(replica).by_precision else self._guessed
        places = order[ledger.issued :]
        if not len(places):
            places = self._due_in_round(ledger)
        # Looking at very many arms takes a while, and few studies retire any.
        return places[~ledger.retired[places]] if len(places) and ledger.retired.any() else places

    def _due_in_round(self, ledger: Ledger) -> Ints:
        """Return the arms that were not asked in the last round, nor since."""
        rounds = self._header.rounds
        if not rounds:
            return self._due
        size = rounds * len(self._header.arms)
        current = ledger.issued // size
        if current != self._round:
            idle = np.ones(len(self._header.arms), bool)
            idle[ledger.arms_of(slice(max(current - 1, 0) * size, current * size))] = False
            self._due = np.flatnonzero(idle) if current else np.zeros(0, np.int64)
            self._round, self._seen = current, current * size
            if len(self._due) > ledger.remaining:
                self._due = np.zeros(0, np.int64)
        if self._seen < ledger.issued and len(self._due):
            self._due = self._due[~np.isin(self._due, ledger.arms_of(slice(self._seen, ledger.issued)))]
        self._seen = ledger.issued
        return self._due

    def hand_out(self, turn: Turn, many: int) -> range:
        """Hand out up to so many tickets: those that come first, then those of the strategy's choice."""
        first = turn.ledger.issued
        while (left := many - (turn.ledger.issued - first)) > 0 and self.ask(turn, left):
            pass
        return range(first, turn.ledger.issued)

    def ask(self, turn: Turn, most: int) -> range:
        """Hand out some tickets, none only where none is left: those that come first, or those of the strategy."""
        places = self.first(turn.replica)[:most]
        return (turn.ask_for(places) if len(places) else range(0)) or turn.ask(most)

    # ---- who is known well enough

    def look_due(self, replica: Replica) -> bool:
        """Return whether it is time to judge."""
        return replica.precision is not None and replica.study.ledger.samples >= self._next_look

    def judge(self, turn: Turn, gone: Bools | None = None) -> bool:
        """
        Retire the arms that have reached their precision or have no more samples, and reopen arms that may go on.

        An arm that has reached its precision is reopened if another one is asked for, and otherwise stays retired, even
        where late answers widen its interval; one that had no more samples is reopened when it has some again.

        Parameters
        ----------
        turn
            The turn in which this is done.
        gone
            For each arm, whether it has no more samples.

        Returns
        -------
        bool
            Whether any arm was reopened.
        """
        replica, ledger = turn.replica, turn.ledger
        arms, samples = len(turn.study.arms), ledger.samples
        goal = self.goal(replica)
        self._next_look = samples + until_next_look(samples, arms)
        if goal.by_precision:
            self._next_look = min(self._next_look, math.ceil(WEIGH ** (_stage(samples) + 1)))
        if replica.followed and not goal.by_precision:
            turn.set_weights(None)  # they followed a precision that is no longer asked for
        gone = np.zeros(arms, bool) if gone is None else gone
        enough = np.zeros(arms, bool)
        if goal.precision is not None:
            result = self.result(replica)
            enough = reached_by_arm(result.known)
            if goal.by_precision and (replica.weighed < 0 or _stage(samples) > _stage(replica.weighed)):
                weights = target_weights.weights(result.known, enough | gone)
                if weights is not None:
                    turn.set_weights(weights.tolist(), followed=True)
        retired = ledger.retired
        for k in np.flatnonzero((enough | gone) & ~retired).tolist():
            turn.retire(k, EXHAUSTED if gone[k] else PRECISE)
        reopened = np.flatnonzero(~enough & ~gone & retired & replica.judged).tolist()
        for k in reopened:
            turn.reopen(k)
        return bool(reopened)


def _stage(samples: int) -> int:
    """Return how often weights were set by this number of samples, up to a constant."""
    return int(math.log(max(samples, 1), WEIGH))


def _first_arms(header: Header) -> Ints:
    """Return the places of the arms to sample first, by guessed variances."""
    if header.guess is None:
        return np.zeros(0, np.int64)
    arms = len(header.arms)
    variances = np.array(numbers_by_arm("guess", header.guess, header.arms))
    chosen = {name: header.options.get(name) for name in ("weights", "costs")}
    goal = objective_of(header.arms, header.options.get("objective", math.inf), **chosen)
    most = 10 * arms
    if header.budget is not None:
        most = min(most, int(number("budget", header.budget) / goal.cost(arms).max() / 10))
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


def _first_rounds(header: Header) -> Ints:
    """
    Return the places of the arms for the first rounds, as many as an interval that rests on the sample variance needs.

    An arm of small weight would otherwise be left without one. Nothing if these rounds would take half of the budget.
    """
    arms = len(header.arms)
    most = math.inf
    if header.budget is not None:
        costs = objective_of(header.arms, costs=header.options.get("costs")).cost(arms)
        most = number("budget", header.budget) / costs.sum() / 2
    return np.tile(np.arange(arms), START if header.support is None and most >= START else 0)
