"""
Each arm's answers in the order of asking, and what can be said of them.

Confidence sequences need each arm's samples in the order in which they were asked for (`intervals.Intervals`). A
study keeps all its tickets in that order, so that nothing need be done when one is asked for or answered: whoever looks
lines up the answers since the last look. An arm's line ends at its first ticket in flight. A ticket that was given up
or declined is passed over, for good: what comes later does not enter, whether somebody looked meanwhile or not. So a
line only grows, and is the same whenever one looks.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from equipoise import moments
from equipoise.arrays import Floats, Ints
from equipoise.compiled import jit
from equipoise.intervals import Intervals, Kind, default_kind
from equipoise.strategies import Support
from equipoise.study.state import ANSWERED, IN_FLIGHT

# What sequences are tuned to; any other level may be asked for.
LEVEL = 0.95
# A state of more numbers than this is not made for the sake of a few arms.
MANY = 1_000_000

_add = jit(moments.add_shifted)


@cache
def _follower(update: Callable[..., None]) -> Any:
    def follow(tickets: Any, order: Any, start: int, stop: int, rows: Any, state: Any, settings: Any) -> None:
        for i in range(start, stop):
            ticket = tickets[order[i]]
            if rows[ticket.arm] >= 0:
                update(state, rows[ticket.arm], ticket.value, settings)

    return jit(follow, nogil=True)


@jit
def _cubes(tickets: Any, order: Any, size: int, arms: int) -> Any:
    """By arm: count, and the sums of squared and cubed deviations from the mean; twice through, for the digits."""
    count, shift, mean = np.zeros(arms), np.zeros(arms), np.zeros(arms)
    spread, m2, m3 = np.zeros(arms), np.zeros(arms), np.zeros(arms)
    for i in range(size):
        ticket = tickets[order[i]]
        k = ticket.arm
        count[k], shift[k], mean[k], spread[k] = _add(count[k], shift[k], mean[k], spread[k], ticket.value)
    for i in range(size):
        ticket = tickets[order[i]]
        e = (ticket.value - shift[ticket.arm]) - mean[ticket.arm]
        m2[ticket.arm] += e * e
        m3[ticket.arm] += e * e * e
    return count, m2, m3


class Lines:
    """The lines of a study's arms, as far as somebody looked."""

    def __init__(self, arms: int, support: Support, budget: int | None) -> None:
        self.arms, self.support, self.budget = arms, support, budget
        # The tickets in line, in the order of asking; and those that wait for one before them.
        self._order = np.empty(0, np.int64)
        self._size = self._scanned = 0
        self._waiting = np.empty(0, np.int64)
        # By kind, a state and how many tickets of the order are in it; for one thread at a time.
        self.lock = threading.Lock()
        self.states: dict[Kind, tuple[Floats, int]] = {}

    def look(self, tickets: Any, answered: Answered, seconds: Floats | None) -> Evidence:
        """Return what the tickets say now."""
        self._line_up(tickets, answered.asked)
        return Evidence(self, tickets, self._order, self._size, answered, seconds)

    def _line_up(self, tickets: Any, stop: int) -> None:
        """Append the tickets before the id `stop` whose turn has come."""
        ids = np.concatenate([self._waiting, np.arange(self._scanned, stop)])
        self._scanned = stop
        status, arms = tickets["status"][ids], tickets["arm"][ids]
        # A ticket that was declined or ever given up is passed over, for good.
        kept = (status == IN_FLIGHT) | (status == ANSWERED)
        ids, arms, in_flight = ids[kept], arms[kept], (status == IN_FLIGHT)[kept]
        # The line of an arm ends at its first ticket in flight.
        waiting_from = np.full(self.arms if in_flight.any() else 0, len(ids))
        np.minimum.at(waiting_from, arms[in_flight], np.flatnonzero(in_flight))
        waits = np.arange(len(ids)) >= waiting_from[arms] if len(waiting_from) else in_flight
        self._append(ids[~waits])
        self._waiting = ids[waits]

    def _append(self, ids: Ints) -> None:
        size = self._size + len(ids)
        if size > len(self._order):
            # A new array, as the evidence of earlier looks holds on to the old one.
            order = np.empty(max(size, 2 * len(self._order)), np.int64)
            order[: self._size] = self._order[: self._size]
            self._order = order
        self._order[self._size : size] = ids
        self._size = size


@dataclass(frozen=True)
class Answered:
    """
    How many tickets were handed out, and what became of those that were not answered.

    Attributes
    ----------
    asked
        Tickets handed out: as many were answered as are none of the following.
    given_up, in_flight, declined
        Tickets that were forgotten and never answered; that are waited for; that were declined.
    """

    asked: int
    given_up: int
    in_flight: int
    declined: int

    @property
    def share(self) -> float:
        """The share of those that are not in flight that was given up."""
        settled = self.asked - self.in_flight
        return self.given_up / settled if settled else 0.0


class Evidence:
    """
    What was seen up to one look, in the order of asking; later answers do not change it.

    Pickled, it keeps what can be asked of it and not the samples.
    """

    def __init__(
        self, lines: Lines, tickets: Any, order: Ints, size: int, answered: Answered, seconds: Floats | None
    ) -> None:
        self._lines: Lines | None = lines
        self.arms, self.support, self._budget = lines.arms, lines.support, lines.budget
        self._tickets, self._order, self._size = tickets, order, size
        self.answered = answered
        self._seconds = seconds
        self._states: dict[Kind, Floats] = {}
        self._skewness: Floats | None = None
        self._slow: Floats | None = None

    def intervals(self, kind: Kind | None = None) -> Intervals:
        """The sequences of a kind, as they were tuned before the first sample."""
        return Intervals(self.arms, self.support, kind or default_kind(self.support), LEVEL, self._budget)

    def state(self, kind: Kind) -> Floats:
        """The state of the sequences of this kind. Each sample enters once, however often one looks."""
        if kind not in self._states:
            assert self._lines is not None
            with self._lines.lock:
                state, done = self._lines.states.get(kind, (None, 0))
                if state is None or done > self._size:  # by a later look
                    state, done = self.intervals(kind).start(), 0
                self._follow(kind, state, done, np.arange(self.arms))
                known = self._lines.states.get(kind, (None, 0))[1]
                if self._size >= known:
                    self._lines.states[kind] = state, self._size
                self._states[kind] = state.copy()
        return self._states[kind]

    def state_of(self, kind: Kind, places: Sequence[int]) -> Floats:
        """The rows of some arms: where there are very many, the others' need not be made."""
        columns = self.intervals(kind).kernel.columns
        if kind in self._states or self._lines is None or self.arms * columns <= MANY:
            return np.asarray(self.state(kind)[np.asarray(places)])
        rows = np.full(self.arms, -1)
        # The same place twice has the same row.
        some, which = np.unique(np.asarray(places), return_inverse=True)
        rows[some] = np.arange(len(some))
        state = np.zeros((len(some), columns))
        self._follow(kind, state, 0, rows)
        return np.asarray(state[which])

    def _follow(self, kind: Kind, state: Floats, start: int, rows: Ints) -> None:
        kernel = self.intervals(kind).kernel
        _follower(kernel.update)(self._tickets, self._order, start, self._size, rows, state, kernel.settings)

    def samples(self) -> list[Floats] | None:
        """Return the samples of each arm, in the order of asking; None where they are not known any more."""
        if self._tickets is None:
            return None
        ids = self._order[: self._size]
        arms = self._tickets["arm"][ids]
        sizes = np.bincount(arms, minlength=self.arms)
        return np.split(self._tickets["value"][ids[np.argsort(arms, kind="stable")]], np.cumsum(sizes)[:-1])

    @property
    def skewness(self) -> Floats:
        """The skewness of each arm's samples; 0 where there are fewer than three or they are all equal."""
        if self._skewness is None:
            count, m2, m3 = _cubes(self._tickets, self._order, self._size, self.arms)
            with np.errstate(divide="ignore", invalid="ignore"):
                skewness = np.sqrt(count) * m3 / m2**1.5
            self._skewness = np.where((count >= 3) & (m2 > 0) & np.isfinite(skewness), skewness, 0.0)
        return np.asarray(self._skewness)

    @property
    def slow(self) -> Floats | None:
        """
        For each arm, the probability that values that have nothing to do with how long they took look as these do.

        By Spearman's rank correlation of values and seconds, whose variance is 1/(n-1) whatever the ties; of two values
        it is the test of Mann and Whitney. NaN where there are fewer than 20 samples, or where all are alike; None
        where nobody told how long samples took.
        """
        if self._slow is None and self._seconds is not None:
            ids = self._order[: self._size]
            ids = np.sort(ids[ids < len(self._seconds)])
            arms, values = self._tickets["arm"][ids].astype(np.int64), self._tickets["value"][ids]
            self._slow = _rank_tests(arms, values, self._seconds[ids], self.arms)
        return self._slow

    def __getstate__(self) -> dict[str, Any]:
        kinds: list[Kind] = ["asymptotic"] if self.support is None else ["asymptotic", "betting", "empirical-bernstein"]
        for kind in kinds:
            self.state(kind)
        known = {"_skewness": self.skewness, "_slow": self.slow}
        return self.__dict__ | known | {"_lines": None, "_tickets": None, "_order": None, "_seconds": None}


def _ranks(values: Floats) -> Floats:
    """Ranks from 1 on; equal values share the mean of theirs."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[which], dtype=float)


def _rank_tests(arms: Ints, values: Floats, seconds: Floats, K: int) -> Floats:
    found = np.full(K, math.nan)
    keep = np.isfinite(seconds)
    arms, values, seconds = arms[keep], values[keep], seconds[keep]
    order = np.argsort(arms, kind="stable")
    ends = np.searchsorted(arms[order], np.arange(K + 1))
    for k in np.flatnonzero(np.diff(ends) >= 20).tolist():
        part = order[ends[k] : ends[k + 1]]
        x, y = (_ranks(each[part]) - (len(part) + 1) / 2 for each in (values, seconds))
        spread = math.sqrt(float(x @ x) * float(y @ y))
        if spread > 0:
            found[k] = math.erfc(abs(float(x @ y)) / spread * math.sqrt((len(part) - 1) / 2))
    return found
