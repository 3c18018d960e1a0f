"""
Sample for a study of a service: ask, have the samples taken, tell.

The study decides; this only keeps workers busy. What has arrived is told in one call, and short samples go out in
chunks, so that a sample costs little more than itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import queue
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from equipoise.base.errors import EquipoiseError, InvalidInput, SamplerFailed
from equipoise.base.inputs import Names, printable, shown
from equipoise.ledger.ledger import TooLate
from equipoise.run.drive import DriverOptions
from equipoise.run.samplers import ENDLESS, Outcome, Samplers
from equipoise.run.workers import Answer, Workers, workers_for

# A chunk should take about this long, which is long compared with a request; and no more samples than this.
CHUNK_SECONDS: Final = 0.2
LARGEST: Final = 1000


@dataclass(frozen=True)
class Source:
    """
    Where tickets come from and answers go.

    Attributes
    ----------
    arms
        The names of the arms.
    ask
        Takes a number of tickets and the seconds of their lease; returns as many tickets, or fewer at the end.
    tell
        Takes pairs (ticket, value), each by itself; raises TooLate for those whose place was taken, and takes the rest.
    forget
        Takes tickets that will not be answered.
    """

    arms: Sequence[Hashable]
    ask: Callable[[int, float | None], list[Any]]
    tell: Callable[[list[tuple[Any, float]]], None]
    forget: Callable[[list[Any]], None]


def sample(
    source: Source,
    samplers: Any,
    settings: DriverOptions,
    executor: Any = None,
    seed: int = 0,
    clock: Callable[[], float] = time.perf_counter,
) -> None:
    """
    Sample until the source hands out no more tickets.

    Parameters
    ----------
    source
        Where tickets come from and answers go.
    samplers
        Functions for all arms, as in `estimate`. The seed of a sample follows from its ticket.
    settings, executor, seed
        As in `estimate`.
    clock
        Seconds.
    """
    drawn = Samplers(samplers, source.arms if callable(samplers) else None, None, seed)
    if set(drawn.arms) != set(source.arms):
        raise InvalidInput(f"samplers must have the arms of the study, {shown(list(source.arms))}")
    if drawn.local or bool((drawn.limits < ENDLESS).any()):
        raise InvalidInput("every arm must have a function, got a list of samples or another iterable")
    workers = workers_for(executor, drawn)
    driver = _Driver(source, drawn, workers, settings, clock)
    try:
        driver.run()
    except BaseException:
        driver.give_back()
        raise
    finally:
        workers.close()


class _Driver:
    def __init__(
        self, source: Source, samplers: Samplers, workers: Workers, settings: DriverOptions, clock: Callable[[], float]
    ) -> None:
        self._source, self._samplers, self._workers, self._settings = source, samplers, workers, settings
        self._clock = clock
        self._place = Names.of(samplers.arms).place
        self._last = math.inf if settings.max_seconds is None else clock() + settings.max_seconds
        self._running: dict[Answer, list[Any]] = {}
        self._done: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._again: deque[Any] = deque()
        self._attempts: dict[Any, int] = {}
        self._told, self._each = 0, 0.0

    def run(self) -> None:
        over = False
        while True:
            while not over and self._room() > 0:
                tickets = self._next()
                if not tickets:
                    over = True
                    break
                self._submit(tickets)
            if not self._running:
                return
            arrived = [self._done.get()]
            with contextlib.suppress(queue.Empty):
                while True:
                    arrived.append(self._done.get_nowait())
            self._absorb(arrived)
            over = over and not self._again

    def give_back(self) -> None:
        """Give back the tickets without an answer, so that others need not wait for their leases to end."""
        left = [ticket for tickets in self._running.values() for ticket in tickets] + list(self._again)
        with contextlib.suppress(EquipoiseError, ValueError):
            self._source.forget(left)

    def _room(self) -> int:
        """How many samples may be submitted now."""
        if len(self._running) >= self._workers.width * (2 if 0 < self._each < CHUNK_SECONDS else 1):
            return 0
        if self._settings.in_flight is None:
            return self._chunk()
        return min(self._chunk(), self._settings.in_flight - sum(map(len, self._running.values())))

    def _chunk(self) -> int:
        if not self._workers.chunks or self._each == 0:
            return 1
        # No more than a share of the evidence there is, as what is in flight was decided without it.
        return int(max(1, min(CHUNK_SECONDS / self._each, self._told // (8 * self._workers.width), LARGEST)))

    def _next(self) -> list[Any]:
        if self._again:
            return [self._again.popleft()]
        if self._clock() >= self._last:
            return []
        return self._source.ask(self._room(), self._settings.lease)

    def _submit(self, tickets: list[Any]) -> None:
        calls = [self._samplers.call(self._place(ticket.arm), _index(ticket)) for ticket in tickets]
        try:
            answer = self._workers.submit(calls)
        except (BrokenExecutor, RuntimeError) as error:
            self._again.extend(tickets)
            raise SamplerFailed(f"the executor takes no more work: {error}") from error
        self._running[answer] = tickets
        answer.add_done_callback(self._done.put)

    def _absorb(self, arrived: list[Answer]) -> None:
        """Tell what has arrived; what has failed is sampled again, or ends the run."""
        answers, failure = [], None
        for answer in arrived:
            tickets = self._running.pop(answer)
            for ticket, outcome in zip(tickets, _outcomes(answer, len(tickets)), strict=True):
                if outcome.wrong is None:
                    answers.append((ticket, float(np.ravel(outcome.values)[0])))
                    self._each = outcome.seconds if self._told == 0 else 0.9 * self._each + 0.1 * outcome.seconds
                    continue
                self._attempts[ticket] = self._attempts.get(ticket, 0) + 1
                self._again.append(ticket)
                if self._attempts[ticket] > self._settings.retries:
                    failure = f"sampling arm {shown(ticket.arm)} failed: {outcome.wrong}"
        if answers:
            with contextlib.suppress(TooLate):  # of some, whose places others took; the rest is taken
                self._source.tell(answers)
            self._told += len(answers)
        if failure is not None:
            raise SamplerFailed(failure)


def _outcomes(answer: Answer, tickets: int) -> list[Outcome]:
    try:
        return answer.result()
    except (Exception, CancelledError) as error:
        wrong = printable(f"{type(error).__name__}: {' '.join(str(error).split())}")
        return [Outcome(None, 0.0, wrong, "")] * tickets


def _index(ticket: Any) -> int:
    """Return a ticket's index among the seeds, the same in every process that samples it."""
    return int.from_bytes(hashlib.blake2b(str(ticket[0]).encode(), digest_size=8).digest(), "little") >> 2
