"""Timers of commands that are never run: their times are decided by a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from equipoise.timing import Run

Draw = Callable[[np.random.Generator], float]


@dataclass
class Drawn:
    """
    A timer whose times are drawn at random from a fixed seed.

    `by_arm` has a function for each command; whatever else is run, such as a shell that does nothing, takes `other`
    seconds. What was run is noted in `ran`, by arm and command line.
    """

    by_arm: Mapping[str, Draw]
    seed: int = 1
    other: float = 0.0
    ran: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)

    def __call__(self, words: Sequence[str], arm: str) -> Run:
        """Return a run that takes as long as the test says."""
        self.ran.append((arm, words[-1]))
        return Run(self.by_arm[arm](self._rng) if arm in self.by_arm else self.other, 0.5, 0.25)


def normal(mean: float, share: float) -> Draw:
    """Return times with this mean, and a standard deviation that is this share of it."""
    return lambda rng: float(rng.normal(mean, share * mean))


class Heating:
    """
    A timer of a machine that heats up: each run takes longer by a share of its time than the one before it.

    Times are normal, with a standard deviation that is a share `noise` of them.
    """

    def __init__(self, seconds: Mapping[str, float], per_run: float, noise: float = 0.0, seed: int = 1) -> None:
        self._seconds, self._per_run, self._noise = seconds, per_run, noise
        self._rng = np.random.default_rng(seed)
        self._runs = 0

    def __call__(self, words: Sequence[str], arm: str) -> Run:
        """Return a run that takes as long as the machine is hot."""
        hot = 1 + self._per_run * self._runs
        self._runs += 1
        return Run(self._seconds[arm] * hot * float(self._rng.normal(1, self._noise)))
