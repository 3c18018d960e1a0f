"""`estimate` by a clock that the test sets: what depends on seconds then depends on nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equipoise as eq
from equipoise.run.drive import DriverOptions
from equipoise.run.estimate import _drive
from equipoise.run.samplers import Samplers
from equipoise.store import Header, Log
from equipoise.store.memory import Memory
from equipoise.strategies import resolve


class Clock:
    """A clock that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 0.0
        self._jump: float | None = None
        self._due = False

    def __call__(self) -> float:
        if self._due and self._jump is not None:
            self.now, self._jump = self.now + self._jump, None
        self._due = self._jump is not None
        return self.now

    def jump(self, seconds: float) -> None:
        """
        Move on by so many seconds at the reading after the next.

        A sampler that calls this may have begun before the driver has noted when: that is the next reading.
        """
        self._due, self._jump = False, seconds


def drive(
    sampler: Callable[..., Any],
    budget: int | None = None,
    *,
    arms: list[str],
    clock: Clock,
    executor: int | None = None,
    lease: float | None = None,
    max_seconds: float | None = None,
    precision: float | None = None,
    strategy: str = "auto",
    seed: int = 1,
    store: str | None = None,
    progress: Callable[[eq.Progress], Any] | None = None,
) -> eq.Result:
    """What `estimate` does with these arguments, by another clock."""
    samplers = Samplers(sampler, arms, None, seed)
    settings = DriverOptions(max_seconds, retries=0, lease=lease, in_flight=None)
    header = Header(samplers.arms, resolve(strategy), None, budget, seed, precision=precision)
    log = Memory(header) if store is None else Log(store, header)
    try:
        return _drive(log, store, samplers, executor, settings, progress or False, clock)
    finally:
        log.close()
