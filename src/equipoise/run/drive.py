"""
Drive a study: ask, have it sampled, tell; until the budget is spent, the precision is reached or time is up.

There are two loops. `here` samples in this thread, one at a time or, where samplers give arrays, in batches whose sizes
depend on the number of samples alone, so that the study does not depend on the clock. `elsewhere` keeps workers full:
each answer that comes is followed by the next ask, and short samples go out in chunks.

What is told and asked in one turn of a loop is committed together. Elsewhere an ask is committed before it is sampled;
here, commits are at most `COMMIT` seconds of fast sampling apart.
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
from typing import Final, NamedTuple

import numpy as np

from equipoise.arrays import Bools, Floats, Ints
from equipoise.errors import EquipoiseError
from equipoise.run.progress import Display, Progress
from equipoise.run.samplers import ENDLESS, Outcome, Samplers, perform
from equipoise.run.workers import Answer, Workers
from equipoise.store import Journal
from equipoise.study import Goal, Precision, Result
from equipoise.study.state import IN_FLIGHT

COMMIT: Final = 0.05
# A chunk of short samples should take about this long, which is long compared with the time it takes to hand it over.
CHUNK_SECONDS: Final = 0.1
# Where a chunk is over sooner than this, a second one waits for each worker.
SHORT: Final = 0.2
# An arm that lets this many leases in a row expire is given up.
HOPELESS: Final = 10
LARGEST_BATCH: Final = 2**16
# Weights that follow the means are set again whenever the samples have grown by this factor.
WEIGH: Final = 1.25


class Jobs(NamedTuple):
    """Tickets to be sampled: their ids, the places of their arms, and the i of their arm's i-th sample."""

    ids: Ints
    places: Ints
    indices: Ints


@dataclass(frozen=True)
class Settings:
    """When to stop, and what to do when sampling fails."""

    precision: Precision | None
    max_seconds: float | None
    retries: int
    lease: float | None
    in_flight: int | None
    rounds: int | None = None
    # Whether weights follow the means, and whether those there are do so for this precision.
    weigh: bool = False
    weighed: bool = False
    level: float = 0.95
    timed: bool = False


class Driver:
    """One run of a study, from where it stands. All its seconds are read off `clock`."""

    def __init__(
        self,
        journal: Journal,
        samplers: Samplers,
        settings: Settings,
        first: Ints,
        display: Display | None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._clock = clock
        self._journal, self._study = journal, journal.study
        self._samplers, self._settings, self._display = samplers, settings, display
        self._ledger = self._study.ledger
        tickets = self._ledger.tickets
        places = tickets["arm"].astype(np.int64)
        arms = len(self._study.arms)
        self._asked = np.bincount(places, minlength=arms)
        # Tickets that were in flight when an earlier run ended are sampled again, as the very samples they were.
        waiting = np.flatnonzero(tickets["status"] == IN_FLIGHT)
        self._resumed = deque(
            zip(waiting.tolist(), places[waiting].tolist(), _ranks(places)[waiting].tolist(), strict=True)
        )
        # The arms whom a guess sends the first tickets to, in order.
        self._first = first[len(places) :]
        # Where every arm is to be asked in each round: how many asks that is, and who had had how many as it began.
        self._round = arms * (settings.rounds or 0)
        begun = len(places) // self._round * self._round if self._round else 0
        self._round_ends, self._asked_before = begun + self._round, np.bincount(places[:begun], minlength=arms)
        self._finite = bool((samplers.limits < ENDLESS).any())
        self._dry = np.zeros(arms, bool)  # iterables that have ended
        self._silent = np.zeros(arms, np.int64)
        self._attempts: dict[int, int] = {}
        self._samples = self._before = self._study.result().samples
        self._spent_before = self._spent()
        self._next_check = 0
        # A function of the number of samples, so that a run that goes on does what one without a break would have done.
        self._weighed = _stage(self._samples) if settings.weighed else -1
        self._ending: EquipoiseError | None = None
        self._each = 0.0  # seconds that a sample takes
        self._start = self._clock()
        self._last = math.inf if settings.max_seconds is None else self._start + settings.max_seconds
        self._next_tick = self._next_show = self._start
        self._running: dict[Answer, tuple[Jobs, list[Ints], float]] = {}
        self._lost: dict[Answer, tuple[Jobs, list[Ints]]] = {}
        self._done: queue.SimpleQueue[Answer] = queue.SimpleQueue()

    # ---- the two loops

    def here(self) -> None:
        """Sample in this thread."""
        self._sort_arms()
        turn = self._batch_here if self._samplers.vectorised else self._one_here
        while turn() or (self._ending is None and self._sort_arms()):
            now = self._clock()
            if now >= self._next_tick:
                self._tick(now)

    def _batch_here(self) -> bool:
        jobs = self._next_jobs(self._batch())
        if not len(jobs.ids):
            return False
        calls, which = self._samplers.calls(jobs.places, jobs.indices)
        self._absorb(jobs, which, perform(calls, self._clock))
        return True

    def _one_here(self) -> bool:
        """As `_batch_here`, for one sample: what a study of cheap samples spends its time with."""
        self._end_round()
        if self._resumed or len(self._first):
            jobs = self._next_jobs(1)
            job = (int(jobs.ids[0]), int(jobs.places[0]), int(jobs.indices[0])) if len(jobs.ids) else None
        else:
            job = self._next_job()
        if job is None:
            return False
        ticket, k, i = job
        (outcome,) = perform((self._samplers.call(k, i),), self._clock)
        value = outcome.values
        if type(value) is not float or not self._ledger.possible(value):
            self._absorb(Jobs(*np.array([job]).T), [np.zeros(1, np.int64)], [outcome])
            return True
        try:
            self._journal.tell(ticket, value, outcome.seconds)
        except EquipoiseError as error:  # the strategy failed; the sample is kept
            self._end(str(error))
        self._samples += 1
        if self._settings.precision is not None and self._samples >= self._next_check:
            self._sort_arms()
        return True

    def elsewhere(self, workers: Workers) -> None:
        """Keep workers busy."""
        self._sort_arms()
        while True:
            self._fill(workers)
            if not self._running:
                if self._ending is None and self._sort_arms():
                    continue
                return
            with contextlib.suppress(queue.Empty):
                self._settle(self._done.get(timeout=self._patience()), workers)
                while True:
                    self._settle(self._done.get_nowait(), workers)
            if self._settings.lease is not None:
                self._expire(workers)

    def _fill(self, workers: Workers) -> None:
        settings = self._settings
        size = self._chunk(workers)
        depth = workers.width * (2 if 0 < self._each * size < SHORT and workers.chunks and not settings.lease else 1)
        in_flight = sum(len(jobs.ids) for jobs, _, _ in self._running.values()) if settings.in_flight else 0
        ready: list[Jobs] = []
        while len(self._running) + len(ready) < depth:
            room = size if settings.in_flight is None else min(size, settings.in_flight - in_flight)
            jobs = self._next_jobs(room) if room > 0 else None
            if jobs is None or not len(jobs.ids):
                break
            in_flight += len(jobs.ids)
            ready.append(jobs)
        self._tick(self._clock())
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
            self._running[answer] = jobs, which, self._clock() + (settings.lease or math.inf)
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
            wrong = f"{type(error).__name__}: {' '.join(str(error).split())}"
            outcomes = [Outcome(None, 0.0, wrong, "")] * len(which)
        self._absorb(jobs, which, outcomes, late)

    def _died(self, jobs: Jobs) -> None:
        """An executor is broken; which of the samples in flight it was that broke it, nobody knows."""
        in_flight = [jobs, *(jobs for jobs, _, _ in self._running.values())]
        names = sorted({repr(self._study.arms[k]) for jobs in in_flight for k in jobs.places.tolist()})
        more = ", ..." * (len(names) > 5)
        self._end(f"a worker died while sampling {', '.join(names[:5])}{more}, and the executor with it")

    def _expire(self, workers: Workers) -> None:
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
                self._journal.forget(ticket, f"no answer in {self._settings.lease:g} seconds")
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
        return min(max(1, self._samples // 32), LARGEST_BATCH)

    def _chunk(self, workers: Workers) -> int:
        """How many samples to hand to a worker at once."""
        if not workers.chunks or self._settings.lease is not None or self._each == 0:
            return 1
        # No more than a share of the evidence there is, as what is in flight was decided without it; and towards the
        # end less, so that all workers end at the same time.
        known = self._samples // (8 * workers.width)
        left = self._study.remaining * self._samples / max(self._spent(), 1e-300)
        end = left / (2 * workers.width) if math.isfinite(left) else math.inf
        return int(max(1, min(CHUNK_SECONDS / max(self._each, 1e-9), known, end, LARGEST_BATCH)))

    def _patience(self) -> float:
        """How long to wait for an answer before looking at the clock again."""
        now = self._clock()
        until = min(until for _, _, until in self._running.values())
        return max(0.0, min(until - now, 1.0))

    # ---- asking

    def _next_jobs(self, m: int) -> Jobs:
        """Up to m tickets to sample: those to be tried again first; none when it is time to stop."""
        self._end_round()
        while True:
            if self._ending is not None or self._clock() >= self._last:
                return _NONE
            if self._resumed:
                rows = [self._resumed.popleft() for _ in range(min(m, len(self._resumed)))]
                return Jobs(*np.array(rows, np.int64).T)
            if len(self._first):
                places, self._first = self._first[:m], self._first[m:]
                places = places[~self._ledger.retired[places]]
                found = self._journal.ask_for(places)
            else:
                found = self._journal.ask(m)
                if not found:
                    return _NONE
                places = self._ledger.arms_of(slice(found.start, found.stop))
            ids = np.arange(found.start, found.stop)
            if len(ids) == 1:
                k = places[0]
                indices = self._asked[places]
                self._asked[k] += 1
            else:
                indices = self._asked[places] + _ranks(places)
                self._asked += np.bincount(places, minlength=len(self._asked))
            if self._finite:
                fits = self._shut_exhausted(ids, places, indices)
                ids, places, indices = ids[fits], places[fits], indices[fits]
            if len(ids):
                return Jobs(ids, places, indices)

    def _end_round(self) -> None:
        """At the end of a round, queue the open arms that were not asked in it."""
        if not self._round or self._asked.sum() < self._round_ends:
            return
        idle = np.flatnonzero((self._asked == self._asked_before) & ~self._ledger.retired)
        self._asked_before, self._round_ends = self._asked.copy(), self._round_ends + self._round
        if len(self._first) + len(idle) <= self._study.remaining:
            self._first = np.r_[self._first, idle]

    def _next_job(self) -> tuple[int, int, int] | None:
        """As `_next_jobs(1)`, where no ticket is to be tried again."""
        while self._ending is None and self._clock() < self._last:
            found = self._journal.ask(1)
            if not found:
                return None
            ticket = found[0]
            k = self._ledger.arm_of[ticket]
            i = int(self._asked[k])
            self._asked[k] = i + 1
            limit = self._samplers.limits[k]
            if i + 1 >= limit:
                self._journal.retire(k, "exhausted")
            if i < limit:
                return ticket, k, i
            self._journal.forget(ticket, "exhausted")
        return None

    def _shut_exhausted(self, ids: Ints, places: Ints, indices: Ints) -> Bools:
        """Close the arms without more samples and give back the tickets for which there is none; which are good."""
        limits = self._samplers.limits[places]
        fits = indices < limits
        for ticket in ids[~fits].tolist():
            self._journal.forget(ticket, "exhausted")
        for k in np.unique(places[self._asked[places] >= limits]).tolist():
            self._journal.retire(k, "exhausted")
        return np.asarray(fits)

    # ---- telling

    def _absorb(self, jobs: Jobs, which: list[Ints], outcomes: list[Outcome], late: bool = False) -> None:
        """Take what came of some calls."""
        told: list[Ints] = []
        values: list[Floats] = []
        seconds: list[Floats] = []
        for part, outcome in zip(which, outcomes, strict=True):
            if outcome.wrong is not None:
                for j in part.tolist():
                    self._fail(jobs, j, outcome.wrong, outcome.trace or "", late)
                continue
            if outcome.values is None:
                self._ran_dry(jobs, part, late)
                continue
            found = np.atleast_1d(np.asarray(outcome.values, dtype=float))
            good = self._ledger.possible(found)
            if not good.all():
                for j, value in zip(part[~good].tolist(), found[~good].tolist(), strict=True):
                    self._fail(jobs, j, self._ledger.refusal(value), "", late)
                part, found = part[good], found[good]
            told.append(part)
            values.append(found)
            seconds.append(np.full(len(part), outcome.seconds / max(len(part), 1)))
        if not told:
            return
        parts, took = (told[0], seconds[0]) if len(told) == 1 else (np.concatenate(told), np.concatenate(seconds))
        try:
            self._journal.tell(jobs.ids[parts], values[0] if len(values) == 1 else np.concatenate(values), took)
        except EquipoiseError as error:  # the strategy failed; the samples are kept
            self._end(str(error))
        self._samples += len(parts)
        self._silent[jobs.places[parts]] = 0
        if len(parts):
            each = float(took.mean())
            self._each = each if self._each == 0 else 0.8 * self._each + 0.2 * each
        if self._settings.precision is not None and self._samples >= self._next_check:
            self._sort_arms()

    def _fail(self, jobs: Jobs, j: int, wrong: str, trace: str, late: bool) -> None:
        """Sampling went wrong: try again, or end."""
        ticket, k = int(jobs.ids[j]), int(jobs.places[j])
        attempt = self._attempts.pop(ticket, 0) + 1
        self._journal.failed(ticket, attempt, wrong[:1000])
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

    def _ran_dry(self, jobs: Jobs, part: Ints, late: bool) -> None:
        """An iterable has ended."""
        for j in part.tolist():
            k = int(jobs.places[j])
            if not late:
                self._journal.forget(int(jobs.ids[j]), "exhausted")
            if not self._dry[k]:
                self._dry[k] = True
                self._journal.retire(k, "exhausted")

    def _end(self, reason: str, trace: str = "") -> None:
        """Ask for no more, and say so when all that is in flight has come."""
        if self._ending is None:
            self._ending = EquipoiseError(reason)
            if trace:
                self._ending.add_note(trace)

    # ---- which arms are asked for

    def _sort_arms(self) -> bool:
        """Close the arms that are known well enough or used up, open the others; whether any was opened."""
        arms = len(self._study.arms)
        # A look takes time for each arm: so one a round, or less often where that is a small share of the samples.
        self._next_check = self._samples + max(1, arms // 2, self._samples // 128)
        if self._settings.weigh:
            self._next_check = min(self._next_check, math.ceil(WEIGH ** (_stage(self._samples) + 1)))
        wanted = self._settings.precision
        enough = np.zeros(arms, bool)
        gone = self._dry | (self._asked >= self._samplers.limits)
        if wanted is not None:
            result = self.result()
            enough = result.reached_by_arm
            if self._settings.weigh and _stage(self._samples) > self._weighed:
                self._weigh(wanted.weights(result, enough | gone))
        closed = self._ledger.retired
        for k in np.flatnonzero((enough | gone) & ~closed).tolist():
            self._journal.retire(k, "exhausted" if gone[k] else "precise enough")
        opened = np.flatnonzero(~enough & ~gone & closed).tolist()
        for k in opened:
            self._journal.reopen(k)
        return bool(opened)

    def _weigh(self, weights: Floats | None) -> None:
        """Let the strategy minimise errors relative to the target of each arm."""
        if weights is not None:
            self._weighed = _stage(self._samples)
            self._journal.set_weights(weights)

    # ---- what is known, and who is told

    def result(self) -> Result:
        """What is known now."""
        settings = self._settings
        return self._study.result(
            goal=Goal(settings.level, settings.precision, settings.weigh),
            # Where durations are what is measured, slow ones differ from fast ones by their nature.
            seconds=None if settings.timed else self._journal.seconds,
        )

    def finish(self) -> None:
        """Take what has come, and commit."""
        while not self._done.empty():
            answer = self._done.get()
            if answer in self._running and not answer.cancelled() and answer.exception() is None:
                jobs, which, _ = self._running.pop(answer)
                self._absorb(jobs, which, answer.result())
        for answer in self._running:
            answer.cancel()
        self._journal.commit()

    def show(self) -> None:
        """Say where it stands, after a commit."""
        if self._display is not None:
            self._display.show(self._progress(self._clock()))

    @property
    def ending(self) -> EquipoiseError | None:
        """Why the study could not go on, if it could not."""
        return self._ending

    def _tick(self, now: float) -> None:
        self._journal.commit()
        self._next_tick = now + COMMIT
        if self._display is not None and now >= self._next_show:
            self._display.show(self._progress(now))
            # However many arms there are, watching takes a tenth of the time at most.
            end = self._clock()
            # The first look compiles what it needs, and says nothing about the next.
            self._next_show = end + min(9 * (end - now), 5.0)

    def _spent(self) -> float:
        return self._study.spent

    def _progress(self, now: float) -> Progress:
        result = self.result()
        return Progress(
            samples=self._samples,
            in_flight=self._study.in_flight,
            spent=self._spent(),
            budget=self._study.budget,
            seconds=now - self._start,
            seconds_left=self._seconds_left(now - self._start, result),
            result=result,
        )

    def _seconds_left(self, seconds: float, result: Result) -> float:
        left = [self._last - self._start - seconds]
        spent = self._spent() - self._spent_before
        if spent > 0:
            left.append(self._study.remaining / spent * seconds)
        samples = self._samples - self._before
        if self._settings.precision is not None and samples > 0:
            more = result.samples_left_by_arm[~self._ledger.retired]
            left.append(float(more.sum()) / samples * seconds if np.isfinite(more).all() else math.inf)
        return max(0.0, min(left))


_NONE = Jobs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


def _stage(samples: int) -> int:
    """Return how often weights were set by this number of samples, up to a constant."""
    return int(math.log(max(samples, 1), WEIGH))


def _ranks(places: Ints) -> Ints:
    """For each entry, how many equal ones come before it."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(places) else np.zeros(0, np.int64)
    ranks = np.empty(len(places), np.int64)
    ranks[order] = np.arange(len(places)) - np.repeat(starts, np.diff(np.r_[starts, len(places)]))
    return ranks
