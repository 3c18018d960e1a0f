"""A study as its log describes it, up to now: folded once, looked at as often as somebody likes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.ledger import Goal
from equipoise.ledger.state import FORGOTTEN
from equipoise.report.drift import Drift, Drifts
from equipoise.report.history import History, Moment, RecentPace
from equipoise.result import Result
from equipoise.result.certificate import Certificate
from equipoise.store import Header, Log, Replica
from equipoise.store.database import Row

# The account is given again when the samples have grown by this factor: it takes a replay of the study.
AGAIN: Final = 1.05


@dataclass(frozen=True)
class Account:
    """
    What takes a while to find out about a result.

    Attributes
    ----------
    samples, price, goal
        Of the result.
    standard_errors
        In the arms' order.
    certificate
        How good it is.
    """

    samples: int
    price: float
    goal: Goal
    standard_errors: Floats
    certificate: Certificate

    @staticmethod
    def of(result: Result) -> Account:
        """Return the account of a result."""
        return Account(
            result.samples, result.known.price, result.known.goal, result.standard_errors.array, result.certificate
        )

    def holds(self, result: Result) -> bool:
        """Return whether it is still good enough for a later result of the same study."""
        return self.goal is result.known.goal and self.samples <= result.samples < AGAIN * self.samples


@dataclass(frozen=True)
class Report:
    """
    A study as its log describes it.

    Attributes
    ----------
    name
        Where the log is.
    header, result, account
        The study's settings, what it knows, and what may be wrong with that.
    budget, spent, in_flight
        What may be spent; what the samples cost that are in or in flight; and how many are in flight.
    waiting
        How many are in flight, in the arms' order.
    done
        Whether nothing more is asked for, and nothing is in flight.
    failures, given_up
        How often sampling failed, and how many tickets were given up without an answer.
    precision, level
        What the last run was asked for.
    about
        What is sampled, if the log says so.
    began, latest
        The times of the first and the last event, in seconds since 1970.
    history, drifts
        How the half-widths fell, and whether samples changed in the course of the study.
    pace
        How many samples came in the last minutes.
    """

    name: str
    header: Header
    result: Result
    account: Account
    budget: float | None
    spent: float
    in_flight: int
    waiting: Sequence[int]
    done: bool
    failures: int
    given_up: int
    precision: Any
    level: float
    about: dict[str, Any]
    began: float
    latest: float
    history: tuple[Moment, ...]
    drifts: tuple[Drift, ...]
    pace: RecentPace = field(repr=False)

    @property
    def reached(self) -> bool | None:
        """Whether the precision was reached; None if none was asked for."""
        return self.result.reached

    @property
    def drifting(self) -> tuple[Hashable, ...]:
        """The arms whose samples changed in the course of the study."""
        return tuple(self.result.arms[drift.place] for drift in self.drifts if drift.drifts)


class Watch:
    """
    Folds the log of a study, and reports on it at any time.

    Parameters
    ----------
    first
        Row 0 of the log.
    level
        The level of the half-widths in the history; by default that of the header.

    Attributes
    ----------
    replica
        The study as far as it is folded.
    """

    def __init__(self, first: Row, level: float | None = None) -> None:
        self.replica = Replica.begin(first)
        self._history = History(self.replica, self.replica.level if level is None else level)
        self._drifts = Drifts(len(self.replica.study.arms))
        self._pace = RecentPace()
        self._account: Account | None = None

    @property
    def stale(self) -> bool:
        """Whether the history is at another level than is asked for now: a new watch has the right one."""
        return self._history.level != self.replica.level

    def fold(self, rows: Sequence[Row]) -> None:
        """Fold the turns that follow."""
        self.replica.fold(rows, self._history.parts)
        self._pace.add(rows)

    def result(self, running: bool = True) -> Result:
        """Return what is known now; how long the rest takes only if the study goes on as it did."""
        pace = self._pace.per_second(self.replica.began, self.replica.latest)
        return self.replica.result(1 / pace if running and pace > 0 else None)

    def report(self, name: str, running: bool = True) -> Report:
        """Return how it stands."""
        replica, study = self.replica, self.replica.study
        result = self.result(running)
        if self._account is None or not self._account.holds(result):
            self._account = Account.of(result)
        return Report(
            name=name,
            header=replica.header,
            result=result,
            account=self._account,
            budget=study.budget,
            spent=study.spent,
            in_flight=study.in_flight,
            waiting=study.ledger.waiting.tolist(),
            done=study.done,
            failures=replica.counts["fail"],
            given_up=int(np.count_nonzero(study.ledger.status(slice(study.ledger.issued)) == FORGOTTEN)),
            precision=replica.precision,
            level=replica.level,
            about=replica.header.about or {},
            began=replica.began,
            latest=replica.latest,
            history=self._history.until(result),
            drifts=self._drifts.look(result),
            pace=self._pace,
        )


def read(where: str | os.PathLike[str]) -> Report:
    """Return the report of the study in a store, up to its last turn."""
    with Log(where, write=False) as log:
        # From the beginning, whatever snapshots say: the history is in the log.
        with log.checked():
            pages = log.pages()
            first, *rest = next(pages)
            watch = Watch(first, log.replica.level)
            for rows in itertools.chain([rest], pages):
                watch.fold(rows)
        # A run has samples in flight, at least between its turns.
        return watch.report(log.label, running=watch.replica.study.in_flight > 0)
