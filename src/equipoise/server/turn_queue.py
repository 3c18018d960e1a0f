"""
The desk of a study: one thread that takes turns, and a queue before it.

Whatever has arrived is served in one turn and answered after its commit (group commit): first changes and answers, then
asks, so that an arm that has just become precise enough is not asked for. What is refused is answered alone, and hurts
nobody else in the turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from equipoise.base.errors import EquipoiseError
from equipoise.base.patience import Patience
from equipoise.server.commands import Ask, Change, Handed, Work
from equipoise.server.problems import HTTPProblem, deleted, unavailable
from equipoise.server.tickets import Signer
from equipoise.store import Log, Replica, Turn
from equipoise.store.database import Database, Missing
from equipoise.store.leases import sweep

T = TypeVar("T")

# The most requests that are served in one turn.
_TURN: Final = 1000
# Where so many requests shared a turn, the next one waits for others: for so many seconds, so often at most.
_SEVERAL: Final = 4
_MOMENT: Final = 0.001
_PAUSES: Final = 4
# Seconds between two looks for tickets that are waited for in vain.
_SWEEP: Final = 1.0

_REFUSALS: Final = (ValueError, TypeError, EquipoiseError)


class Waiting(NamedTuple):
    """A piece of work, and who waits for it."""

    work: Work
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class Count:
    """What the desks of a process have done so far, for metrics."""

    def __init__(self) -> None:
        self.turns = self.served = self.refused = 0


class _Broken(EquipoiseError):
    """Some work was interrupted in the middle, and the turn with it."""


class Desk:
    """
    Serves one study in this process.

    Parameters
    ----------
    where, secret
        The study, as a log takes it, and the secret with which its tickets are signed.
    most_waiting
        How many requests may wait.
    patience
        Seconds to wait for a database that is away.
    count
        Where to count what is done.
    clock, pause
        Seconds, by which tickets that are waited for in vain are looked for; and how to wait for a moment, by default
        until all who are expected are here.
    """

    def __init__(
        self,
        where: str | Database,
        secret: str,
        most_waiting: int,
        patience: float,
        count: Count | None = None,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        self._log = Log(where, patience=Patience(patience))
        header = self._log.header
        self.arms, self.support = header.arms, header.support
        self.signer, self.hashed = Signer(secret), header.hashed
        self._count = count or Count()
        self._most, self._retired = most_waiting, False
        self._clock, self._next_sweep = clock, -math.inf
        # Whether as many as are expected wait, where a turn waits for them.
        self._all_here, self._expected = threading.Event(), math.inf
        self._pause = pause or self._all_here.wait
        # Tickets in flight by who waits for them, as of the last sweep and what this desk did since; those of them that
        # this turn handed out; and how many other processes handed out since, to whoever it was.
        self._open: Counter[int] = Counter()
        self._handed: Counter[int] = Counter()
        self._others, self._issued = 0, 0
        self._changed = False
        self._queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._ending = False
        self._thread = threading.Thread(target=self._serve, name="equipoise-desk", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return self._queue.qsize()

    async def do(self, work: Work) -> Any:
        """Do some work in the next turn, and return what came of it once that is committed."""
        if self._retired:
            raise unavailable("the study has just been closed; try again in a second")
        if self._queue.qsize() >= self._most:
            raise unavailable("the study is busy; try again in a second")
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._queue.put(Waiting(work, loop, future))
        if self._queue.qsize() >= self._expected:
            self._all_here.set()
        return await future

    async def change(self, change: Callable[[Turn], T]) -> T:
        """Change the study in the next turn."""
        return await self.do(Change(change))  # type: ignore[no-any-return]

    def look(self, view: Callable[[Replica], T]) -> T:
        """Return what is to be seen of the study now; it may wait for a turn to end."""
        return self._log.look(view)

    def retire(self) -> None:
        """Take no more work; to be called by the event loop that gives it some."""
        self._retired = True

    def close(self) -> None:
        """Serve whoever waits, and close the log."""
        self.retire()
        self._queue.put(None)
        self._all_here.set()
        self._thread.join()
        self._log.close()

    # ---- the thread

    def _serve(self) -> None:
        last = 0
        while not self._ending and (first := self._queue.get()) is not None:
            batch = [first]
            self._wait_for_more(batch, last)
            _deliver(batch, self._outcomes(batch, self._take_in))
            last = len(batch)

    def _take_in(self, batch: list[Waiting]) -> None:
        """Add what has arrived meanwhile."""
        while len(batch) < _TURN and not self._ending and not self._queue.empty():
            found = self._queue.get()
            if found is None:
                self._ending = True
            else:
                batch.append(found)

    def _wait_for_more(self, batch: list[Waiting], last: int) -> None:
        """
        Add what has arrived, and what is coming.

        Clients that were answered together come back one after the other. So where there were several, a turn waits for
        a moment, as long as more are coming and there are fewer than the last time.
        """
        self._take_in(batch)
        for _ in range(_PAUSES if last >= _SEVERAL else 0):
            before = len(batch)
            if before >= last or self._ending:
                break
            self._all_here.clear()
            self._expected = last - before
            if self._queue.qsize() < self._expected:
                self._pause(_MOMENT)
            self._expected = math.inf
            self._take_in(batch)
            if len(batch) == before:
                break

    def _outcomes(self, batch: list[Waiting], join: Callable[[list[Waiting]], None] = lambda batch: None) -> list[Any]:
        """
        Return what came of each piece of work: what it returned, or the error that refused it.

        Parameters
        ----------
        batch
            The work.
        join
            Adds to it what has arrived until the turn begins, which may be a while where other processes take turns.
        """

        def work(turn: Turn) -> list[Any]:
            join(batch)
            return self._turn(turn, [each.work for each in batch])

        found: list[Any]
        try:
            found = self._log.turn(work)
        except _Broken as error:
            if len(batch) > 1:
                return [outcome for each in batch for outcome in self._outcomes([each])]
            found = [error]
        except Missing:
            found = [deleted()] * len(batch)
        except Exception as error:  # of the database: nothing was committed
            found = [unavailable(str(error))] * len(batch)
        else:
            self._count.refused += sum(isinstance(each, Exception) for each in found)
        self._count.turns += 1
        self._count.served += len(batch)
        return found

    def _turn(self, turn: Turn, works: Sequence[Work]) -> list[Any]:
        self._handed.clear()
        self._others += max(turn.first - self._issued, 0)
        outcomes: list[Any] = [None] * len(works)
        asks = []
        for j, work in enumerate(works):
            if isinstance(work, Ask):
                asks.append((j, work))
            else:
                outcomes[j] = self._alone(turn, lambda work=work: work.do(turn))  # type: ignore[misc]
                self._changed = True
        turn.look()
        if asks:
            if self._clock() >= self._next_sweep:
                self._sweep(turn)
            turn.called([call for _, ask in asks for call in ask.calls])  # all at once, so that each finds it at hand
            for j, ask in asks:
                outcomes[j] = self._alone(turn, lambda ask=ask: self._ask(turn, ask))  # type: ignore[misc]
        self._issued = turn.ledger.issued
        return outcomes

    def _alone(self, turn: Turn, do: Callable[[], Any]) -> Any:
        """Return what came of one piece of work; what is refused is no matter to the others."""
        try:
            return do()
        except _REFUSALS as error:
            if not turn.whole:
                raise _Broken(str(error)) from error
            return error
        except HTTPProblem as error:
            return error

    def _ask(self, turn: Turn, ask: Ask) -> Handed:
        handed = ask.repeated(turn)
        if handed is not None:
            return handed
        if ask.closed is not None:
            return Handed([], ask.closed)
        if turn.ledger.issued + ask.many > ask.most_spare + turn.ledger.bought:
            raise HTTPProblem(
                409,
                f"the study has handed out {turn.ledger.issued:,} tickets, the most that a key of role 'ask' can use; "
                "a larger budget allows more",
                "tickets",
            )
        # Some may have been answered since they were counted, and what others handed out may be this caller's.
        if self._most_open(ask) > ask.most_open and (self._changed or self._others):
            self._sweep(turn)
        if self._most_open(ask) > ask.most_open:
            raise HTTPProblem(429, f"this key has too many open tickets (limit {ask.most_open:,})", "open-tickets")
        handed = ask.do(turn)
        if not handed.tickets and self._sweep(turn):
            handed = ask.do(turn)
        self._open[ask.owner] += len(handed.tickets)
        self._handed[ask.owner] += len(handed.tickets)
        return handed

    def _most_open(self, ask: Ask) -> int:
        """Return how many tickets may be open for the owner of an ask after it."""
        return self._open[ask.owner] + self._others + ask.many

    def _sweep(self, turn: Turn) -> bool:
        """Forget tickets that are waited for in vain, and count the others; return whether any was forgotten."""
        self._next_sweep = self._clock() + _SWEEP
        leases = turn.leases()
        sweep(turn, leases=leases)
        self._open = Counter(lease.owner for lease in leases if not lease.over) + self._handed
        self._changed, self._others = False, 0
        return any(lease.over and lease.visiting for lease in leases)


def _deliver(batch: Sequence[Waiting], outcomes: Sequence[Any]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
    for each, outcome in zip(batch, outcomes, strict=True):
        by_loop.setdefault(each.loop, []).append((each.future, outcome))
    for loop, pairs in by_loop.items():
        with contextlib.suppress(RuntimeError):  # a loop that is closed waits for nothing
            loop.call_soon_threadsafe(_settle, pairs)


def _settle(pairs: Sequence[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, outcome in pairs:
        if future.done():  # whoever asked is gone
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
