"""Run commands in turn until the mean time of each is known."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.base.errors import EquipoiseError
from equipoise.inference.arm_intervals import reached_by_arm
from equipoise.result import Result
from equipoise.run.commands import CommandError
from equipoise.run.estimate import estimate
from equipoise.run.progress import Progress
from equipoise.timing.calibration import BLOCK, Calibration
from equipoise.timing.options import BenchOptions
from equipoise.timing.timer import Run, Timer, words_of
from equipoise.timing.timings import LEVEL, MarginKind, Overhead, Timing, Timings

# The fewest runs of a command that tell whether the shell's own time hides how long it takes, and by what factor they
# grow from one look to the next.
_TELLING, _GROWTH = 20, 1.25
# Short commands are run for about this many seconds before anything is computed from what they took: a command that
# takes 1 ms takes 3% longer if 0.6 ms have passed since the last one (docs/reference/bench.md).
_BLOCK: Final = 0.02
# Seconds from one call of `watch` to the next within a block of runs.
_TELL: Final = 0.2
# How often the study is done again, with the runs there are, because the shell's own time has changed what is known.
_AGAIN: Final = 10


@dataclass(frozen=True)
class BenchStage:
    """
    How far a benchmark has come.

    Attributes
    ----------
    name
        "calibrate", "warm up" or "measure".
    done, of
        How many runs of this stage there were, and of how many; None if that is not known.
    progress
        That of the study, while it measures.
    """

    name: str
    done: int
    of: int | None
    progress: Progress | None = None


class Bench:
    """
    A benchmark of commands: how long each of them takes.

    Commands are interleaved, in reverse order in every other round: A B B A A B B A. What happens to the machine in the
    meantime happens to all of them, and what changes steadily, to all of them alike.

    Parameters
    ----------
    options
        The commands, how precisely to time them, and what else to run.
    timer
        What runs a command and times it.
    watch
        A function that is called with each `BenchStage`.
    clock
        Returns the seconds by which `max_seconds` is kept.

    Attributes
    ----------
    unclean
        How each cleanup that failed did so, in a sentence.
    """

    def __init__(
        self,
        options: BenchOptions,
        timer: Timer,
        *,
        watch: Callable[[BenchStage], Any] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._options, self._timer, self._watch, self._clock = options, timer, watch, clock
        self.unclean: list[str] = []
        # The shell's own time, if there is a shell, and what the study subtracts for it.
        self._calibration = None if options.program is None else Calibration(options.program, timer)
        self._subtracted = 0.0
        self._record = _Record([*options.commands])
        # Which commands the study has asked for since the last block, and whether the next round is in reverse order.
        self._wanted, self._reverse = set[str](), False
        # At how many runs of a command to look whether the shell hides it.
        self._next_look = dict.fromkeys(options.commands, float(max(_TELLING, options.min_runs)))
        # What ended the last block before its end, and whether the benchmark was stopped: by a failure or a signal.
        self._broken: BaseException | None = None
        self._failed, self._interrupted = False, False
        # What the study found last, and when `watch` was called last within a block.
        self._last: Progress | None = None
        self._told = -math.inf
        # When to start no more runs: known once every command has been run.
        self._last_start: float | None = None

    def run(self) -> Timings:
        """
        Run the commands, and return their times.

        Raises
        ------
        EquipoiseError
            If a command fails; its message says how. `so_far` has what was known by then. A cleanup that fails is
            raised if nothing else is, and `unclean` has all of them.
        """
        try:
            for command in self._options.setup:
                self._aside("setup", command)
            self._calibrate()
            self._warm_up()
            self._measure()
        except EquipoiseError as error:
            self._failed = True
            if isinstance(error, CommandError):
                raise EquipoiseError(str(error)) from None
            raise
        except KeyboardInterrupt:
            self._interrupted = True
            raise
        finally:
            self._clean_up()
        if self.unclean:
            raise EquipoiseError(self.unclean[0])
        found = self.so_far()
        assert found is not None  # a study that ends without an error has samples
        return found

    def so_far(self) -> Timings | None:
        """Return what is known; None as long as some command has not been run."""
        if self._last is None or not self._last.result.counts.array.all():
            return None
        return self._timings(self._last.result)

    # ---- what is run

    def _aside(self, what: str, command: str, arm: str = "") -> None:
        """Run a command that is not timed, with the shell."""
        run = self._timer(words_of(command, self._options.program or "/bin/sh"), arm)
        if run.code != 0:
            raise CommandError(f"the {what} command {command!r} failed: {run.said}")

    def _clean_up(self) -> None:
        """Run every cleanup command; those that fail hide neither each other nor what ended the benchmark."""
        for command in self._options.cleanup:
            try:
                self._aside("cleanup", command)
            except CommandError as error:
                self.unclean.append(str(error))

    def _time(self, arm: str) -> Run:
        if self._options.before:
            self._aside("prepare", self._options.before[arm], arm)
        run = self._timer(self._options.words[arm], arm)
        if run.code != 0 and not self._options.ignore_failure:
            raise CommandError(
                f"{arm!r} failed: {run.said} (-i ignores exit codes, --show-output shows what it prints)"
            )
        self._record.latest[arm] = run.seconds
        return run

    def _calibrate(self) -> None:
        """
        Time the shell itself until it is known well enough for the commands.

        That is first a number of times, and once the commands were run, as often as they need.
        """
        if self._calibration is None:
            return
        begun = self._clock()
        # `watch` is called once: to draw a bar between two runs would make the second one slower.
        overhead = self._calibration.refine(self._blurs, lambda: self._tell("calibrate", 0, BLOCK))
        if self._last_start is not None:
            self._last_start += self._clock() - begun
        # The study goes on with what is known now.
        self._subtracted = overhead.seconds

    def _blurs(self, overhead: Overhead) -> list[float]:
        """Return how large the error of the shell's time is for each command that has been run."""
        value, some = self._options.statistic.value, filter(None, self._record.by_command.values())
        means = [value(_nets(runs, overhead)) for runs in some]
        return [overhead.blur(mean, self._options.target(mean)) for mean in means]

    @property
    def _overhead(self) -> Overhead | None:
        return None if self._calibration is None else self._calibration.overhead

    def _warm_up(self) -> None:
        commands = self._options.commands
        total = self._options.warmup * len(commands)
        for i in range(self._options.warmup):
            for k, arm in enumerate(commands):
                self._tell("warm up", i * len(commands) + k, total)
                self._time(arm)

    def _measure(self) -> None:
        """Sample the commands as a study asks for them, and again while the shell's time changes what is known."""
        self._begin()
        if self._broken is None:
            self._calibrate()
        try:
            for _ in range(_AGAIN):
                estimate(
                    {arm: self._samples(arm) for arm in self._options.commands},
                    level=LEVEL,
                    progress=self._follow,
                    about={"measure": "seconds"},
                    **self._options.study,
                )
                if self._broken is not None:
                    raise self._broken
                self._calibrate()
                if not self._moved():
                    break
                self._record.again()
        except EquipoiseError:
            if not isinstance(self._broken, CommandError):
                raise
            raise EquipoiseError(str(self._broken)) from None

    def _moved(self) -> bool:
        """Whether a mean that was known well enough is not, now that the shell's own time is known better."""
        found = self.so_far()
        if found is None or self._last is None or self._calibration is None or self._options.goal is None or self._over:
            return False
        known = zip(reached_by_arm(self._last.result.known).tolist(), found.commands, strict=True)
        wide = [each for reached, each in known if reached and not each.reached]
        return any(each not in found.too_short for each in wide)

    def _samples(self, arm: str) -> Iterator[float]:
        """Yield the times of a command until time is up, or more runs would not help."""
        ready = self._record.ready
        while True:
            if not ready[arm] and not self._hidden(arm):
                self._block(arm)
            if not ready[arm]:
                return
            self._wanted.add(arm)
            yield ready[arm].popleft().seconds - self._subtracted

    def _begin(self) -> None:
        """Make the first runs, before the study begins, so that they follow the warm-up at once."""
        arms, options = [*self._options.commands], self._options
        self._make(arms, max(self._rounds(arms), options.min_runs) if options.runs is None else options.runs)

    def _block(self, first: str) -> None:
        """
        Make a round of runs: of the command that the study asks for, and of others that it has asked for lately.

        Short commands are run in several rounds.
        """
        if self._broken is not None:
            raise self._broken
        ready = self._record.ready
        due = [arm for arm in self._options.commands if arm == first or (arm in self._wanted and not ready[arm])]
        self._wanted.clear()
        self._make(due, self._rounds(due))

    def _rounds(self, arms: Sequence[str]) -> int:
        """Return in how many rounds to run some commands before anything is computed: 1 unless they are short."""
        took = math.fsum(self._record.latest.get(arm, math.inf) for arm in arms)
        return 1 if self._options.before else max(1, min(int(_BLOCK / max(took, 1e-6)), self._left // len(arms)))

    @property
    def _left(self) -> int:
        """How many more runs there may be, of all commands together."""
        return self._options.most - len(self._record.order)

    def _make(self, arms: Sequence[str], rounds: int) -> None:
        """
        Run commands in rounds, every other one in reverse, until time is up or there may be no more runs.

        A shell is run by itself in each round. A failure waits until the study has the runs before it.
        """
        alone: list[Calibration | str] = [] if self._calibration is None else [self._calibration]
        try:
            for _ in range(rounds):
                turn, self._reverse = [*arms, *alone][:: -1 if self._reverse else 1], not self._reverse
                for each in turn:
                    if self._over or not self._left:
                        return
                    if isinstance(each, Calibration):
                        each.add()
                    else:
                        self._record.add(each, self._time(each))
                    self._tell_at_times()
        except BaseException as error:
            self._broken = error

    def _tell_at_times(self) -> None:
        """Say how many runs there are, a few times a second."""
        now = self._clock()
        if self._watch is not None and now - self._told >= _TELL:
            self._tell_runs(len(self._record.order))
            self._told = self._clock()

    @property
    def _over(self) -> bool:
        """Whether time is up. What a first study compiles until every command has been run does not count."""
        if self._options.max_seconds is None:
            return False
        if self._last_start is None and all(self._record.by_command.values()):
            spent = math.fsum(run.seconds for _, run in self._record.order)
            self._last_start = self._clock() + self._options.max_seconds - spent
        return self._last_start is not None and self._clock() >= self._last_start

    def _hidden(self, arm: str) -> bool:
        """Return whether the shell's own time is found to hide that of a command, however often it is run."""
        runs, statistic = self._record.by_command[arm], self._options.statistic
        if self._calibration is None or self._options.goal is None or len(runs) < self._next_look[arm]:
            return False
        # Each look takes longer, and would be a pause between runs.
        self._next_look[arm] = _GROWTH * len(runs)
        overhead = self._calibration.overhead
        times = _nets(runs, overhead)
        largest = statistic.value(times) + 2 * statistic.error(times)
        return self._calibration.hides(overhead.blur(largest, self._options.target(largest)), overhead)

    # ---- what is known

    def _follow(self, progress: Progress) -> None:
        self._last = progress
        self._tell_runs(progress.samples)

    def _tell_runs(self, done: int) -> None:
        self._tell("measure", done, None if self._options.runs is None else self._options.most)

    def _tell(self, stage: str, done: int, of: int | None) -> None:
        if self._watch is not None:
            self._watch(BenchStage(stage, done, of, self._last))

    def _timings(self, result: Result) -> Timings:
        """Return the times of the runs that are in a result."""
        options, overhead = self._options, self._overhead
        # The last ones may not be in the result yet, or never be, if the precision was reached before.
        most = {arm: max(n, options.min_runs) for arm, n in zip(options.commands, result.counts.array, strict=True)}
        taken = self._record.first(most)
        places = {arm: k for k, arm in enumerate(options.commands)}
        runs: dict[str, list[Run]] = {arm: [run for name, run in taken if name == arm] for arm in places}
        return Timings(
            tuple(self._timing(result, arm, k, runs[arm], overhead) for arm, k in places.items()),
            tuple(places[arm] for arm, _ in taken),
            options.goal,
            options.runs,
            self._over,
            self._failed or self._interrupted,
            overhead,
            options.warmup,
            options.parameters,
        )

    def _timing(self, result: Result, arm: str, k: int, runs: Sequence[Run], overhead: Overhead | None) -> Timing:
        times, statistic = _nets(runs, overhead), self._options.statistic
        value, alpha = statistic.value(times), (1 - LEVEL) / len(self._options.commands)
        target = self._options.target(value)
        known = self._options.goal is not None and bool(reached_by_arm(result.known)[k])
        kind: MarginKind = "fixed-n"
        if known and len(runs) == result.counts.array[k]:
            margin = float(result.intervals().margins[k])
            kind = "fixed-width" if result.intervals().fixed[k] else "anytime"
        elif self._interrupted and math.isfinite(looked := statistic.anytime(times, alpha, self._planned)):
            margin, kind = looked, "anytime"
        else:
            # Also of a benchmark that was stopped before there was any precision to look at.
            margin = statistic.fixed(times, alpha)
        if overhead is not None:
            margin = math.hypot(margin, 2 * overhead.error)
            known = known and not overhead.blurs(value, target)
        known = known and margin <= target
        return Timing(arm, self._options.commands[arm], tuple(runs), times, margin, target, known, kind)

    @property
    def _planned(self) -> float:
        """How many runs of each command were going to be made at most, by the times of the first of each."""
        first = [runs[0].seconds for runs in self._record.by_command.values() if runs]
        limit = self._options.max_seconds
        in_time = math.inf if limit is None else limit / max(math.fsum(first), 1e-6)
        return min(self._options.most / len(first), in_time)


class _Record:
    """
    The runs of a benchmark.

    Attributes
    ----------
    order
        All of them in their order, with the commands.
    by_command
        Those of each command.
    ready
        Those of each command that the study has not asked for yet.
    latest
        Seconds of the last run of each command, those of the warm-up included.
    """

    def __init__(self, commands: Sequence[str]) -> None:
        self.order: list[tuple[str, Run]] = []
        self.by_command: dict[str, list[Run]] = {arm: [] for arm in commands}
        self.ready: dict[str, deque[Run]] = {arm: deque() for arm in commands}
        self.latest: dict[str, float] = {}

    def add(self, arm: str, run: Run) -> None:
        """Add a run of a command."""
        self.order.append((arm, run))
        self.by_command[arm].append(run)
        self.ready[arm].append(run)

    def again(self) -> None:
        """Make all runs ready, for a study that begins again."""
        self.ready.update((arm, deque(runs)) for arm, runs in self.by_command.items())

    def first(self, most: dict[str, int]) -> list[tuple[str, Run]]:
        """Return the first runs of each command, at most a number of each, in the order of all runs."""
        left = dict(most)
        found = []
        for arm, run in self.order:
            if left[arm] > 0:
                left[arm] -= 1
                found.append((arm, run))
        return found


def _nets(runs: Sequence[Run], overhead: Overhead | None) -> Floats:
    """Return the times of runs without the shell's own."""
    return np.array([run.seconds for run in runs]) - (0.0 if overhead is None else overhead.seconds)
