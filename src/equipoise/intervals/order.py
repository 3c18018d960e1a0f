"""
Each arm's samples in the order in which they were asked for.

A confidence sequence covers the mean at every length of one stream of samples that each have that mean, given those
before. The samples of an arm in the order of asking are such a stream, and what has been answered so far is a beginning
of it, whatever the strategy did and whoever looks whenever. In the order of arrival they need not be: if large values
take longer, the first to come in are too small, and no interval can know. So a value that comes early waits until all
that were asked for before it are in or given up.

A sample that was given up is passed over. What is estimated is then the mean of those that answer in time, which is
that of all only if giving up has nothing to do with the value. An answer after its turn has passed does not enter:
to let it in late would be to take samples by when they came.
"""

from __future__ import annotations

import math
from array import array

from equipoise.inputs import integer


class InOrder:
    """
    Hands the values of each arm on in the order of asking, as soon as their turn has come.

    Parameters
    ----------
    arms
        How many there are.

    Notes
    -----
    Two whole numbers for each arm, and the values that wait. A value in its turn costs O(1).

    Examples
    --------
    >>> line = InOrder(arms=2)
    >>> first, second, third = line.ask(0), line.ask(0), line.ask(0)
    >>> line.tell(0, second, 0.8)
    []
    >>> line.tell(0, first, 0.3)
    [0.3, 0.8]
    >>> line.give_up(0, third)
    []
    """

    def __init__(self, arms: int) -> None:
        arms = integer("arms", arms, 1)
        self._asked = array("q", bytes(8 * arms))
        self._next = array("q", bytes(8 * arms))
        # By arm, the values that wait by their place; NaN for one that was given up.
        self._waiting: dict[int, dict[int, float]] = {}

    def ask(self, arm: int) -> int:
        """A sample of the arm is asked for: its place in the arm's line, from zero."""
        self._check(arm)
        place = self._asked[arm]
        self._asked[arm] += 1
        return place

    def tell(self, arm: int, place: int, value: float) -> list[float]:
        """The sample at this place is in: the values whose turn it is now, in order. Too late, it is left out."""
        if math.isnan(value):
            raise ValueError(f"arm {arm}, sample {place}: {value!r} will not do; a sample is a finite number")
        if not math.isnan(self._waiting.get(arm, {}).get(place, math.nan)):
            raise ValueError(f"arm {arm}, sample {place}: a value is waiting there already; each sample has one")
        return self._enter(arm, place, value)

    def give_up(self, arm: int, place: int) -> list[float]:
        """The sample at this place is waited for no longer: the values whose turn it is now, in order."""
        if not math.isnan(self._waiting.get(arm, {}).get(place, math.nan)):
            raise ValueError(f"arm {arm}, sample {place}: its value is in; only a sample without one is given up")
        return self._enter(arm, place, math.nan)

    def waiting(self, arm: int) -> int:
        """How many values of the arm wait for their turn."""
        return sum(not math.isnan(value) for value in self._waiting.get(arm, {}).values())

    def _check(self, arm: int) -> None:
        if not 0 <= arm < len(self._asked):
            raise ValueError(f"there is no arm {arm}; there are arms 0 to {len(self._asked) - 1}")

    def _enter(self, arm: int, place: int, value: float) -> list[float]:
        self._check(arm)
        if not 0 <= place < self._asked[arm]:
            raise ValueError(f"arm {arm} has no sample {place}; it was asked for {self._asked[arm]} so far")
        turn = self._next[arm]
        if place < turn:
            return []
        if place > turn:
            self._waiting.setdefault(arm, {})[place] = value
            return []
        waiting = self._waiting.get(arm, {})
        ready = []
        while True:
            if not math.isnan(value):
                ready.append(value)
            waiting.pop(turn, None)
            turn += 1
            if turn not in waiting:
                break
            value = waiting[turn]
        if not waiting:
            self._waiting.pop(arm, None)
        self._next[arm] = turn
        return ready
