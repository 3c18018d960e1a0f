"""Values of each arm in the order of asking: what `study/evidence.py` does with arrays, written plainly."""

from __future__ import annotations

import math


class InOrder:
    """Passes values on in the order in which they were asked for, as soon as all earlier ones are settled."""

    def __init__(self, arms: int) -> None:
        # By arm and place: None while it is waited for, NaN if it was given up.
        self._values: list[list[float | None]] = [[] for _ in range(arms)]
        self._next = [0] * arms

    def ask(self, arm: int) -> int:
        """Return the place of a new sample in its arm's line."""
        self._values[arm].append(None)
        return len(self._values[arm]) - 1

    def tell(self, arm: int, place: int, value: float) -> list[float]:
        """Return the values whose turn it is now that this one has come; one that comes too late is left out."""
        values = self._values[arm]
        if place >= self._next[arm]:
            values[place] = value
        ready = []
        while self._next[arm] < len(values) and (first := values[self._next[arm]]) is not None:
            ready.append(first)
            self._next[arm] += 1
        return [each for each in ready if not math.isnan(each)]

    def give_up(self, arm: int, place: int) -> list[float]:
        """Return the values whose turn it is now that this one is no longer waited for."""
        return self.tell(arm, place, math.nan)
