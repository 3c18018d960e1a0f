"""
What a log says besides what is known in the end, kept while it is folded: how intervals shrank, and how fast.

Every turn is looked at once, however often somebody looks, and however many turns are folded at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.ledger import Goal
from equipoise.result import Result
from equipoise.store import Replica, events
from equipoise.store.database import Row
from equipoise.store.events import Events

# With more arms than this, the history keeps only the largest half-width.
FOLLOWED: Final = 1000
# The history has a point whenever the number of samples has grown by this factor: 160 of them by a million samples.
STEP: Final = 2 ** (1 / 8)
# Samples are counted in spans of this many seconds, of which the last ones are remembered.
SPAN: Final = 10.0
SPANS: Final = 30


@dataclass(frozen=True)
class Moment:
    """
    The half-widths at one moment of a study.

    Attributes
    ----------
    samples
        How many samples were in.
    widest, arms
        The largest half-width of an arm's interval, and those of all arms; None if there are too many.
    """

    samples: int
    widest: float
    arms: Floats | None


class History:
    """
    Notes the half-widths of a study while its log is folded, once any is known.

    Parameters
    ----------
    replica
        What the log is folded into.
    level
        The level of all half-widths.

    Attributes
    ----------
    moments
        The half-widths so far.
    """

    def __init__(self, replica: Replica, level: float) -> None:
        self.moments: list[Moment] = []
        self._replica, self._goal, self._due = replica, Goal(level), 1

    @property
    def level(self) -> float:
        """The level of the half-widths."""
        return self._goal.level

    def parts(self, found: Events) -> Iterator[Events]:
        """Divide events where a moment is due, however many samples one turn took."""
        told, ledger = np.cumsum(found.kinds == events.TELL), self._replica.study.ledger
        done = 0
        while done < len(told):
            before = int(told[done - 1]) if done else 0
            end = min(int(np.searchsorted(told, before + self._due - ledger.samples)) + 1, len(told))
            yield found.part(done, end)
            done = end
            if ledger.samples >= self._due:
                self._look()

    def _look(self) -> None:
        result = self._replica.study.result(goal=self._goal)
        self._due = max(result.samples + 1, math.ceil(result.samples * STEP))
        self.moments += moment(result)

    def until(self, result: Result) -> tuple[Moment, ...]:
        """Return the moments so far and, as the last one, how it stands now."""
        now = [] if self.moments and self.moments[-1].samples >= result.samples else moment(result)
        return (*self.moments, *now)


def moment(result: Result) -> Sequence[Moment]:
    """Return the half-widths of a result; nothing if none is known yet."""
    widths = result.intervals().margins
    if not np.isfinite(widths).any():
        return ()
    return (Moment(result.samples, float(widths.max()), widths if len(widths) <= FOLLOWED else None),)


class RecentPace:
    """How many samples came in the last minutes."""

    def __init__(self) -> None:
        self._told: dict[int, int] = {}

    def add(self, rows: Sequence[Row]) -> None:
        """Count the samples of turns that follow."""
        newest = max((int(row.at // SPAN) for row in rows), default=0)
        for row in rows:
            span = int(row.at // SPAN)
            if span > newest - SPANS:
                kinds = row.body[4 : 4 + int.from_bytes(row.body[:4], "little")]
                self._told[span] = self._told.get(span, 0) + kinds.count(events.TELL)
        last = max(self._told, default=0)
        self._told = {span: told for span, told in self._told.items() if span > last - SPANS}

    def per_second(self, began: float, now: float) -> float:
        """Return the samples a second in the last five minutes before now, or since it began; NaN before that."""
        if not now > began:
            return math.nan
        span = int(now // SPAN) - SPANS + 1
        told = sum(told for each, told in self._told.items() if each >= span)
        return told / (now - max(SPAN * span, began))
