"""
Drive a study: ask, have it sampled, tell; until the budget is spent, the precision is reached or time is up.

There are two loops. `here` samples in this thread, one at a time or, where samplers give arrays, in batches whose sizes
depend on the number of samples alone, so that the study does not depend on the clock. `elsewhere` keeps workers full:
each answer that comes is followed by the next ask, and short samples go out in chunks.

All that happens to the study happens in turns (`store.turn`). What was sampled is told and what comes next is asked for
in one turn, and an ask is committed before it is sampled; only samples that are known to be quick are taken within a
turn, for a short time. Several drivers may work on one study, each with its own workers. What a driver remembers
between turns is of its own samplers; what it knows of the study, it reads in the turn.
"""

from __future__ import annotations

import contextlib
import math
import queue
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.base.errors import EquipoiseError, SamplerFailed
from equipoise.base.inputs import integer, number_of_seconds, printable
from equipoise.ledger.ledger import InvalidVariance, Ledger, TooLate
from equipoise.ledger.state import IN_FLIGHT
from equipoise.result import Result
from equipoise.run import seeds
from equipoise.run.progress import Display, Progress, so_far
from equipoise.run.samplers import ENDLESS, Outcome, Samplers, perform
from equipoise.run.workers import Answer, Workers
from equipoise.store import Log, Replica, Turn
from equipoise.store.inside import turns_tried
from equipoise.store.leases import Owner, sweep
from equipoise.store.memory import Memory
from equipoise.study import Study
from equipoise.study.pace import Pace
from equipoise.study.policy import EXHAUSTED

T = TypeVar("T")

# A turn with sampling in it takes this long, and only calls that take less than QUICK are made in it.
TURN: Final = 0.05
QUICK: Final = 0.005
# An arm that was not sampled yet counts as quick after this many calls of others that all were.
QUICK_CALLS: Final = 8
# A chunk of short samples should take about this long, which is long compared with the time it takes to hand it over.
CHUNK_SECONDS: Final = 0.1
# Where a chunk is over sooner than this, a second one waits for each worker.
SHORT: Final = 0.2
# An arm that lets this many leases in a row expire is given up.
HOPELESS: Final = 10
LARGEST_BATCH: Final = 2**16
# How often to look for what other drivers did, while one waits for them.
POLL: Final = 0.1
# The most times that a sample is tried again.
_MOST_RETRIES: Final = 1_000_000


class Jobs(NamedTuple):
    """Tickets to be sampled: their ids, the places of their arms, and the i of their arm's i-th sample."""

    ids: Ints
    places: Ints
    indices: Ints


class Ending(NamedTuple):
    """
    Why a study cannot go on.

    Attributes
    ----------
    reason
        In a sentence.
    trace
        The traceback of the sampler; empty where it raised nothing.
    kind
        The exception that is raised.
    """

    reason: str
    trace: str
    kind: type[EquipoiseError]


class Arrived(NamedTuple):
    """What came of some jobs: the outcomes of calls, and which of the jobs each call was for; late if given up."""

    jobs: Jobs
    which: list[Ints]
    outcomes: list[Outcome]
    late: bool


@dataclass(frozen=True)
class DriverOptions:
    """When to stop, and what to do when sampling fails."""

    max_seconds: float | None = None
    retries: int = 0
    lease: float | None = None
    in_flight: int | None = None

    @classmethod
    def checked(cls, max_seconds: Any, retries: Any, lease: Any, in_flight: Any) -> DriverOptions:
        """Return the options that were given, or refuse them."""
        return cls(
            max_seconds=None if max_seconds is None else number_of_seconds("max_seconds", max_seconds),
            retries=integer("retries", retries, least=0, most=_MOST_RETRIES),
            lease=None if lease is None else number_of_seconds("lease", lease),
            in_flight=None if in_flight is None else integer("in_flight", in_flight, least=1),
        )


class Driver:
    """One run of a study, from where it stands. All its seconds are read off `clock`."""

    def __init__(
        self,
        log: Log | Memory,
        samplers: Samplers,
        settings: DriverOptions,
        display: Display | None,
        owner: Owner | None = None,
        clock: Callable[[], float] = time.perf_counter,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock, self._pause = clock, pause
        self._log, self._owner = log, owner
        self._samplers, self._settings, self._display = samplers, settings, display
        arms = len(samplers.arms)
        self._finite = bool((samplers.limits < ENDLESS).any())
        # Tickets of each arm so far, in a replica, up to some ticket: the next one's i.
        self._followed: Replica | None = None
        self._asked, self._scanned = np.zeros(arms, np.int64), 0
        self._resumed: deque[tuple[int, int, int]] = deque()
        self._arrived: list[Arrived] = []
        self._dry = np.zeros(arms, bool)  # iterables that have ended
        self._silent = np.zeros(arms, np.int64)
        self._attempts: dict[int, int] = {}
        # Seconds of each arm's last call, NaN before the first; the slowest of all, and how many there were.
        self._last_call = np.full(arms, math.nan)
        self._slowest, self._calls = 0.0, 0
        self._each = 0.0  # seconds that a sample takes
        self._ending: Ending | None = None
        self._before, self._spent_before = self._ledger.samples, self._study.spent
        self._start = self._clock()
        self._pace = Pace(self._start, self._before)
        self._last = math.inf if settings.max_seconds is None else self._start + settings.max_seconds
        self._next_show = self._start
        self._next_sweep = -math.inf
        self._running: dict[Answer, tuple[Jobs, list[Ints], float]] = {}
        self._lost: dict[Answer, tuple[Jobs, list[Ints]]] = {}
        self._done: queue.SimpleQueue[Answer] = queue.SimpleQueue()

    # Read from the log each time: a replica in doubt is replaced by another one.

    @property
    def _study(self) -> Study:
        return self._log.study

    @property
    def _ledger(self) -> Ledger:
        return self._log.study.ledger

    # ---- in this thread

    def here(self) -> None:
        """Sample in this thread."""
        while True:
            jobs = self._log.turn(self._repeatable(self._turn_here))
            self._arrived.clear()
            self._tick()
            if jobs is None:
                if self._wait_for_others():
                    continue
                return
            if len(jobs.ids):
                self._arrived.append(self._perform(jobs)[0])

    def _turn_here(self, turn: Turn) -> Jobs | None:
        """Return what to sample outside the turn: nothing where the turn has taken long enough; None at the end."""
        self._begin(turn)
        until = self._clock() + TURN
        while True:
            if self._samplers.vectorised or self._resumed or turn.replica.policy.leads(turn.ledger):
                jobs = self._next_jobs(turn, self._batch())
                if self._quick(jobs):
                    self._sample(turn, jobs)
                elif len(jobs.ids):
                    return jobs
                over = not len(jobs.ids)
            else:
                job = self._next_job(turn)
                if job is not None and not self._quick_arm(job[1]):
                    return Jobs(*np.array([job]).T)
                over = job is None
                if job is not None:
                    self._sample_one(turn, *job)
            if over and not (self._ending is None and self._clock() < self._last and self._judge(turn)):
                return None
            if self._clock() >= until:
                return _NONE

    def _sample(self, turn: Turn, jobs: Jobs) -> None:
        """Take samples within the turn."""
        arrived, turned = self._perform(jobs)
        if turned and self._owner is not None:
            self._outside(jobs)
        else:
            self._absorb(turn, arrived)

    def _sample_one(self, turn: Turn, ticket: int, k: int, i: int) -> None:
        """Take one sample within the turn: what a study of cheap samples spends its time with."""
        tried = turns_tried()
        (outcome,) = perform((self._samplers.call(k, i),), self._clock)
        if self._owner is not None and turns_tried() != tried:
            self._last_call[k] = self._slowest = math.inf
            self._outside(Jobs(*np.array([(ticket, k, i)]).T))
            return
        value = outcome.values
        self._last_call[k] = seconds = outcome.seconds
        if seconds > self._slowest:
            self._slowest = seconds
        self._calls += 1
        if type(value) is not float or not turn.ledger.possible(value):
            self._absorb(turn, Arrived(Jobs(*np.array([(ticket, k, i)]).T), [np.zeros(1, np.int64)], [outcome], False))
            return
        try:
            turn.tell(ticket, value, seconds)
        except InvalidVariance as error:  # the sample is kept
            self._end(str(error), kind=EquipoiseError)
        turn.look(self._exhausted)

    def _outside(self, jobs: Jobs) -> None:
        """Queue jobs whose samplers were refused a turn within this one: they are sampled again outside of it."""
        self._resumed.extendleft(reversed([*zip(*(each.tolist() for each in jobs), strict=True)]))

    def _quick_arm(self, k: int) -> bool:
        """Whether a sample of an arm may be taken within a turn: without a log always."""
        if self._owner is None:
            return True
        seconds = self._last_call[k]
        return bool(seconds < QUICK) or (math.isnan(seconds) and self._calls >= QUICK_CALLS and self._slowest < QUICK)

    def _quick(self, jobs: Jobs) -> bool:
        """Whether there are jobs that may be sampled within a turn."""
        if not len(jobs.ids) or self._owner is None:
            return len(jobs.ids) > 0
        if len(jobs.ids) == 1:
            return self._quick_arm(int(jobs.places[0]))
        if np.isinf(self._last_call[jobs.places]).any():
            return False
        return 0 < self._each * len(jobs.ids) < QUICK

    def _perform(self, jobs: Jobs) -> tuple[Arrived, bool]:
        """
        Take samples in this thread; return also whether a sampler took turns of some store, or tried to.

        Such a one counts as slow, so that it is called outside of turns from then on: within one it is refused others.
        """
        calls, which = self._samplers.calls(jobs.places, jobs.indices)
        tried = turns_tried()
        outcomes = perform(calls, self._clock)
        turned = turns_tried() != tried
        for part, outcome in zip(which, outcomes, strict=True):
            seconds = math.inf if turned else outcome.seconds
            self._last_call[jobs.places[part]] = seconds
            self._slowest = max(self._slowest, seconds)
            self._calls += 1
        return Arrived(jobs, which, outcomes, False), turned

    # ---- on workers

    def elsewhere(self, workers: Workers) -> None:
        """Keep workers busy."""
        while True:
            ready = self._log.turn(self._repeatable(lambda turn: self._turn_elsewhere(turn, workers)))
            self._arrived.clear()
            self._tick()
            self._submit(ready, workers)
            if not self._running:
                if self._arrived or self._wait_for_others():
                    continue
                return
            with contextlib.suppress(queue.Empty):
                self._settle(self._done.get(timeout=self._patience()), workers)
                while True:
                    self._settle(self._done.get_nowait(), workers)

    def _turn_elsewhere(self, turn: Turn, workers: Workers) -> list[Jobs]:
        """Tell what has arrived, and return what to submit next."""
        self._begin(turn)
        if self._settings.lease is not None:
            self._expire(turn, workers)
        ready = self._fill(turn, workers)
        if not ready and not self._running and self._ending is None and self._judge(turn):
            ready = self._fill(turn, workers)
        return ready

    def _fill(self, turn: Turn, workers: Workers) -> list[Jobs]:
        settings = self._settings
        size = self._chunk(workers)
        depth = workers.width * (2 if 0 < self._each * size < SHORT and workers.chunks and not settings.lease else 1)
        in_flight = sum(len(jobs.ids) for jobs, _, _ in self._running.values()) if settings.in_flight else 0
        ready: list[Jobs] = []
        while len(self._running) + len(ready) < depth:
            room = size if settings.in_flight is None else min(size, settings.in_flight - in_flight)
            jobs = self._next_jobs(turn, room) if room > 0 else _NONE
            if not len(jobs.ids):
                break
            in_flight += len(jobs.ids)
            ready.append(jobs)
        return ready

    def _submit(self, ready: list[Jobs], workers: Workers) -> None:
        for jobs in ready:
            calls, which = self._samplers.calls(jobs.places, jobs.indices)
            try:
                answer = workers.submit(calls)
            except BrokenExecutor:  # the tickets stay in flight, for another run
                self._died(jobs)
                return
            except RuntimeError as error:
                self._end(f"the executor takes no more work: {error}")
                return
            self._running[answer] = jobs, which, self._clock() + (self._settings.lease or math.inf)
            answer.add_done_callback(self._done.put)

    def _settle(self, answer: Answer, workers: Workers) -> None:
        late = answer not in self._running
        if late:
            if answer not in self._lost:
                return
            jobs, which = self._lost.pop(answer)
            if answer.cancelled():
                return
            workers.came_back()
        else:
            jobs, which, _ = self._running.pop(answer)
        try:
            outcomes = answer.result()
        except BrokenExecutor:
            self._died(jobs)
            return
        except (Exception, CancelledError) as error:
            wrong = printable(f"{type(error).__name__}: {' '.join(str(error).split())}")
            outcomes = [Outcome(None, 0.0, wrong, "")] * len(which)
        self._arrived.append(Arrived(jobs, which, outcomes, late))

    def _died(self, jobs: Jobs) -> None:
        """An executor is broken; which of the samples in flight it was that broke it, nobody knows."""
        in_flight = [jobs, *(jobs for jobs, _, _ in self._running.values())]
        names = sorted({repr(self._study.arms[k]) for jobs in in_flight for k in jobs.places.tolist()})
        more = ", ..." * (len(names) > 5)
        self._end(f"a worker died while sampling {', '.join(names[:5])}{more}, and the executor with it")

    def _expire(self, turn: Turn, workers: Workers) -> None:
        now = self._clock()
        for answer in [answer for answer, (_, _, until) in self._running.items() if until <= now]:
            jobs, which, _ = self._running[answer]
            if answer.done():
                continue
            if not workers.started(answer):
                self._running[answer] = jobs, which, now + (self._settings.lease or math.inf)
                continue
            del self._running[answer]
            self._lost[answer] = jobs, which
            for ticket, k in zip(jobs.ids.tolist(), jobs.places.tolist(), strict=True):
                if not turn.ledger.is_in_flight(ticket):
                    continue
                turn.forget(ticket, f"no answer in {self._settings.lease:g} seconds")
                self._silent[k] += 1
                if self._silent[k] == HOPELESS:
                    arm = self._study.arms[k]
                    self._end(
                        f"arm {arm!r} gave no answer in {self._settings.lease:g} seconds, {HOPELESS} times in a row"
                    )
            try:
                workers.give_up(answer)
            except EquipoiseError as error:
                self._end(str(error))

    # ---- sizes

    def _batch(self) -> int:
        """How many samples to take at once in this thread; a function of their number alone."""
        if not self._samplers.vectorised:
            return 1
        if self._settings.in_flight is not None:
            return self._settings.in_flight
        return min(max(1, self._ledger.samples // 32), LARGEST_BATCH)

    def _chunk(self, workers: Workers) -> int:
        """How many samples to hand to a worker at once."""
        if not workers.chunks or self._settings.lease is not None or self._each == 0:
            return 1
        # No more than a share of the evidence there is, as what is in flight was decided without it; and towards the
        # end less, so that all workers end at the same time.
        samples = self._ledger.samples
        known = samples // (8 * workers.width)
        left = self._study.remaining * samples / max(self._study.spent, 1e-300)
        end = left / (2 * workers.width) if math.isfinite(left) else math.inf
        return int(max(1, min(CHUNK_SECONDS / max(self._each, 1e-9), known, end, LARGEST_BATCH)))

    def _patience(self) -> float:
        """How long to wait for an answer before looking at the clock again."""
        now = self._clock()
        until = min(until for _, _, until in self._running.values())
        return max(0.0, min(until - now, 1.0))

    # ---- turns

    def _repeatable(self, work: Callable[[Turn], T]) -> Callable[[Turn], T]:
        """Return work that starts from the same state each time, as a turn is taken again if its commit was lost."""
        if self._owner is None:
            return work
        before = list(self._resumed), dict(self._attempts), self._dry.copy(), self._silent.copy(), self._ending

        def again(turn: Turn) -> T:
            resumed, attempts, dry, silent, self._ending = before
            self._resumed, self._attempts = deque(resumed), dict(attempts)
            self._dry, self._silent = dry.copy(), silent.copy()
            return work(turn)

        return again

    def _begin(self, turn: Turn) -> None:
        """Begin a turn: take over what others left behind, and tell what has arrived."""
        if self._owner is not None:
            turn.own(self._owner.number, self._owner.seconds)
        first = self._followed is None
        self._follow(turn.replica)
        now = self._clock()
        if self._owner is not None and now >= self._next_sweep:
            self._next_sweep = now + self._owner.seconds / 4
            self._resume(turn, sweep(turn, self._owner.number, self._owner.seconds))
        self._absorb_all(turn)
        if first:
            self._judge(turn)
        else:
            turn.look(self._exhausted)

    def _resume(self, turn: Turn, tickets: list[int]) -> None:
        """Queue tickets that are to be sampled again, as the very samples they were."""
        if not tickets:
            return
        places = turn.ledger.arms_of(slice(0, turn.ledger.issued))
        ranks = seeds.ranks(places)
        known = {ticket for ticket, _, _ in self._resumed}
        self._resumed.extend(
            (ticket, int(places[ticket]), int(ranks[ticket])) for ticket in tickets if ticket not in known
        )

    def _wait_for_others(self) -> bool:
        """
        Where nothing is left to do here, wait a moment for other drivers; False where there is no reason to.

        Those that die meanwhile are replaced. A ticket that is this driver's without being sampled, as after a lost
        connection, is sampled now.
        """
        if self._owner is None or self._ending is not None or self._clock() >= self._last:
            return False
        mine = self._owner.number

        def look(turn: Turn) -> tuple[bool, list[int]]:
            leases = turn.leases()
            forgotten = [each.ticket for each in leases if each.owner == mine]
            self._resume(turn, forgotten)
            return any(each.owner > 0 or each.over for each in leases), forgotten

        waits, forgotten = self._log.turn(look)
        if waits and not forgotten:
            self._pause(POLL)
            self._next_sweep = -math.inf
        return waits

    def _follow(self, replica: Replica) -> None:
        """Count the tickets of each arm up to the latest one."""
        ledger = replica.study.ledger
        if replica is not self._followed:
            self._followed, self._scanned = replica, 0
            self._asked[:] = 0
        if self._scanned < ledger.issued:
            places = ledger.arms_of(slice(self._scanned, ledger.issued))
            self._asked += np.bincount(places, minlength=len(self._asked))
            self._scanned = ledger.issued

    # ---- asking

    def _next_jobs(self, turn: Turn, m: int) -> Jobs:
        """Up to m tickets to sample: those to be tried again first; none when it is time to stop."""
        while True:
            if self._ending is not None or self._clock() >= self._last:
                return _NONE
            if self._resumed:
                rows = [self._resumed.popleft() for _ in range(min(m, len(self._resumed)))]
                rows = [row for row in rows if turn.ledger.is_in_flight(row[0])]
                if not rows:
                    continue
                return Jobs(*np.array(rows, np.int64).T)
            found = turn.ask_next(m)
            if not found:
                return _NONE
            ids = np.arange(found.start, found.stop)
            places = turn.ledger.arms_of(slice(found.start, found.stop))
            indices = self._asked[places] + (seeds.ranks(places) if len(ids) > 1 else 0)
            self._follow(turn.replica)
            if self._finite:
                fits = self._shut_exhausted(turn, ids, places, indices)
                ids, places, indices = ids[fits], places[fits], indices[fits]
            if len(ids):
                return Jobs(ids, places, indices)

    def _next_job(self, turn: Turn) -> tuple[int, int, int] | None:
        """Return what `_next_jobs` does for one ticket, where none is to be tried again or comes first."""
        while self._ending is None and self._clock() < self._last:
            found = turn.ask(1)
            if not found:
                return None
            ticket = found[0]
            k = turn.ledger.arm_of[ticket]
            i = int(self._asked[k])
            self._asked[k] = i + 1
            self._scanned = ticket + 1
            limit = self._samplers.limits[k]
            if i + 1 >= limit and not turn.ledger.retired[k]:
                turn.retire(k, EXHAUSTED)
            if i < limit:
                return ticket, k, i
            turn.forget(ticket, EXHAUSTED)
        return None

    def _shut_exhausted(self, turn: Turn, ids: Ints, places: Ints, indices: Ints) -> Bools:
        """Close the arms without more samples and give back the tickets for which there is none; which are good."""
        limits = self._samplers.limits[places]
        fits = indices < limits
        for ticket in ids[~fits].tolist():
            turn.forget(ticket, EXHAUSTED)
        for k in np.unique(places[self._asked[places] >= limits]).tolist():
            if not turn.ledger.retired[k]:
                turn.retire(k, EXHAUSTED)
        return np.asarray(fits)

    # ---- telling

    def _absorb_all(self, turn: Turn) -> None:
        for each in self._arrived:
            self._absorb(turn, each)

    def _absorb(self, turn: Turn, arrived: Arrived) -> None:
        """Take what came of some calls."""
        jobs, which, outcomes, late = arrived
        told: list[Ints] = []
        values: list[Floats] = []
        seconds: list[Floats] = []
        for part, outcome in zip(which, outcomes, strict=True):
            if outcome.wrong is not None:
                for j in part.tolist():
                    self._fail(turn, jobs, j, outcome.wrong, outcome.trace or "", late)
                continue
            if outcome.values is None:
                self._ran_dry(turn, jobs, part, late)
                continue
            found = np.atleast_1d(np.asarray(outcome.values, dtype=float))
            good = turn.ledger.possible(found)
            if not good.all():
                for j, value in zip(part[~good].tolist(), found[~good].tolist(), strict=True):
                    self._fail(turn, jobs, j, turn.ledger.refusal(value), "", late)
                part, found = part[good], found[good]
            told.append(part)
            values.append(found)
            seconds.append(np.full(len(part), outcome.seconds / max(len(part), 1)))
        if not told:
            return
        parts, numbers, took = (each[0] if len(each) == 1 else np.concatenate(each) for each in (told, values, seconds))
        ids = jobs.ids[parts]
        # Whoever took a ticket over may have been faster; its answer is as good as this one.
        new = np.isnan(turn.ledger.answers(ids))
        waited_for = turn.ledger.status(ids) == IN_FLIGHT
        # Those that were given back one by one: another sample may have taken the place of each.
        for each in (np.flatnonzero(new & waited_for), *np.flatnonzero(new & ~waited_for)[:, np.newaxis]):
            try:
                with contextlib.suppress(TooLate):
                    turn.tell_many(ids[each], numbers[each], took[each])
            except InvalidVariance as error:  # the samples are kept
                self._end(str(error), kind=EquipoiseError)
        self._silent[jobs.places[parts]] = 0
        if len(parts):
            each = float(took.mean())
            self._each = each if self._each == 0 else 0.8 * self._each + 0.2 * each
        turn.look(self._exhausted)

    def _fail(self, turn: Turn, jobs: Jobs, j: int, wrong: str, trace: str, late: bool) -> None:
        """Sampling went wrong: try again, or end."""
        ticket, k = int(jobs.ids[j]), int(jobs.places[j])
        if not late and not turn.ledger.is_in_flight(ticket):
            return  # whoever took it over was luckier
        attempt = self._attempts.pop(ticket, 0) + 1
        turn.failed(ticket, wrong[:1000])
        if late:
            return
        if attempt <= self._settings.retries:
            self._attempts[ticket] = attempt
            self._resumed.append((ticket, k, int(jobs.indices[j])))
            return
        # The ticket stays in flight: another run tries this very sample again. One that came in its place would make
        # the estimate speak of the samples that do not fail.
        times = f"failed {attempt} times, the last time" if attempt > 1 else "failed"
        self._end(f"sampling arm {self._study.arms[k]!r} {times}: {wrong}", trace)

    def _ran_dry(self, turn: Turn, jobs: Jobs, part: Ints, late: bool) -> None:
        """An iterable has ended."""
        for j in part.tolist():
            k = int(jobs.places[j])
            if not late:
                turn.forget(int(jobs.ids[j]), EXHAUSTED)
            if not self._dry[k]:
                self._dry[k] = True
                turn.retire(k, EXHAUSTED)

    def _end(self, reason: str, trace: str = "", kind: type[EquipoiseError] = SamplerFailed) -> None:
        """Ask for no more, and say so when all that is in flight has come."""
        if self._ending is None:
            self._ending = Ending(reason, trace, kind)

    def _judge(self, turn: Turn) -> bool:
        """Retire the arms that are known well enough or used up, reopen the others; whether any was reopened."""
        self._follow(turn.replica)
        return turn.judge(self._exhausted())

    def _exhausted(self) -> Bools:
        """Return which arms have no more samples."""
        return self._dry | (self._asked >= self._samplers.limits)

    # ---- what is known, and who is told

    def result(self) -> Result:
        """What is known now."""
        return self._log.replica.result(self._pace.seconds)

    def finish(self) -> None:
        """Take what has come, and commit."""
        while not self._done.empty():
            answer = self._done.get()
            if answer in self._running and not answer.cancelled() and answer.exception() is None:
                jobs, which, _ = self._running.pop(answer)
                self._arrived.append(Arrived(jobs, which, answer.result(), False))
        for answer in self._running:
            answer.cancel()
        if self._arrived:
            self._log.turn(self._absorb_all)
            self._arrived.clear()

    def show(self) -> None:
        """Say where it stands, after a commit."""
        if self._display is not None:
            self._display.show(self._progress(self._clock()))

    @property
    def ending(self) -> Ending | None:
        """Why the study could not go on, if it could not."""
        return self._ending

    def _tick(self) -> None:
        now = self._clock()
        self._pace.note(now, self._ledger.samples)
        if self._display is not None and now >= self._next_show:
            self._display.show(self._progress(now))
            # However many arms there are, watching takes a tenth of the time at most.
            end = self._clock()
            # The first look compiles what it needs, and says nothing about the next.
            self._next_show = end + min(9 * (end - now), 5.0)

    def _progress(self, now: float) -> Progress:
        limit = self._last - self._start
        return so_far(self._study, self.result(), now - self._start, self._spent_before, limit)


_NONE = Jobs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))
