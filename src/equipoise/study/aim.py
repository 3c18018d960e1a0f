"""The precision of a study in memory: how the study stands, and its policy carried out after each answer."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from equipoise.base.arrays import Ints
from equipoise.ledger.goal import Goal
from equipoise.ledger.ledger import Ledger
from equipoise.study.options import StudyOptions
from equipoise.study.policy import JUDGEMENTS, PRECISE, Policy


class Aim:
    """
    The precision that a study in memory is sampled to, as a replica has it for a study in a store.

    Parameters
    ----------
    options
        The options of the study, with a precision.
    ledger
        The state of the study.

    Attributes
    ----------
    precision, level, interval, followed, weighed, judged, settled
        As in `store.replica.Replica`.
    """

    def __init__(self, options: StudyOptions, ledger: Ledger) -> None:
        self.ledger, self._policy = ledger, Policy(options)
        self.precision, self.level, self.interval = options.precision, options.level, options.interval
        self.followed, self.weighed = False, -1
        self.judged, self.settled = np.zeros((2, len(options.arms)), bool)
        self._next_look = self._policy.next_look(self, 0)

    @property
    def goal(self) -> Goal:
        """What the study is asked to reach."""
        return self._policy.goal(self)

    def hand_out(self, m: int) -> range:
        """Hand out up to m tickets; return their ids."""
        return self._policy.hand_out(self, self, m)

    def look(self) -> None:
        """Carry out what the policy decides, if a look is due."""
        samples = self.ledger.samples
        if samples >= self._next_look:
            self._next_look = self._policy.next_look(self, samples)
            self._policy.look(self).apply(self)

    def copied(self, ledger: Ledger) -> Aim:
        """Return the same for a copy of the study, with this state."""
        other = copy.copy(self)
        other.ledger, other._policy = ledger, copy.copy(self._policy)
        other.judged, other.settled = self.judged.copy(), self.settled.copy()
        return other

    # ---- what the policy acts on

    def ask(self, m: int) -> range:
        """Hand out up to m tickets of the strategy's choice; return their ids."""
        return self.ledger.latest(self.ledger.ask(m))

    def ask_for(self, places: Ints) -> range:
        """Hand out tickets for these arms, up to the first without a place in the budget; return their ids."""
        return self.ledger.latest(self.ledger.ask_for(places))

    def set_weights(self, weights: Any, followed: bool = False) -> None:
        """Change the weights, and whether they follow the precision."""
        self.ledger.set_weights(weights)
        self.followed, self.weighed = followed, self.ledger.samples if followed else -1

    def retire(self, place: int, why: str) -> None:
        """Retire an arm."""
        self.ledger.retire(place)
        self.judged[place], self.settled[place] = why in JUDGEMENTS, why == PRECISE

    def reopen(self, place: int) -> None:
        """Reopen an arm."""
        self.ledger.reopen(place)
        self.settled[place] = False
