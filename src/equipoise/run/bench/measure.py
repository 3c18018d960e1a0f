"""Run commands in turn until the mean time of each is known."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from equipoise.arrays import Bools, Floats
from equipoise.errors import EquipoiseError
from equipoise.inputs import check_names, integer, named, positive, shown
from equipoise.run.bench.timer import Run, Timer, shell_for, words_of
from equipoise.run.bench.timings import LEVEL, Overhead, Timing, Timings
from equipoise.run.commands import CommandError
from equipoise.run.estimate import estimate
from equipoise.run.progress import Progress
from equipoise.study import Result
from equipoise.study.goal import precision as precision_of

# Runs of a shell that does nothing, those that count and those before.
_CALIBRATION, _CALIBRATION_WARMUP = 50, 3
# Short commands are run for about this many seconds before anything is computed from what they took: a command that
# takes 1 ms takes 3% longer if 0.6 ms have passed since the last one (docs/reference/bench.md).
_BLOCK: Final = 0.02
# Seconds from one time to the next that somebody is told how far a block has come.
_TELL: Final = 0.2
# Times drift as the machine does, so that every command that is not known yet is run at least once in this many rounds.
_ROUNDS: Final = 1


@dataclass(frozen=True)
class Stage:
    """
    How far a benchmark has come.

    Attributes
    ----------
    name
        "calibrate", "warm up" or "measure".
    done, of
        How many runs of this stage there were, and of how many; None if nobody knows.
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
    commands
        The command lines, by name.
    timer
        What runs a command and times it.
    precision
        Run each command until the 95% interval of its mean time lies within the mean ± this: a share of the mean such
        as "5%", or seconds.
    runs
        Run each command this many times instead.
    max_runs
        The most runs, as a mean over commands.
    max_seconds
        Start no more runs after this many seconds of measuring, once every command has been run.
    warmup
        Runs of each command before those that count.
    setup, cleanup
        Command lines to run before the first run, and after the last one, however it ended.
    prepare
        Command lines to run before each run, the warm-up included: one for all commands, or one for each.
    shell
        As in `shell_for`.
    ignore_failure
        Whether commands may end with another exit code than 0.
    watch
        A function that is called with each `Stage`.
    clock
        Returns the seconds by which `max_seconds` is kept.
    """

    def __init__(
        self,
        commands: Mapping[str, str],
        timer: Timer,
        *,
        precision: str | float = "5%",
        runs: int | None = None,
        max_runs: int = 1000,
        max_seconds: float | None = None,
        warmup: int = 0,
        setup: str | None = None,
        prepare: Sequence[str] = (),
        cleanup: str | None = None,
        shell: str = "auto",
        ignore_failure: bool = False,
        watch: Callable[[Stage], Any] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._commands = _checked(commands)
        self._timer, self._watch, self._clock = timer, watch, clock
        self._runs = None if runs is None else integer("runs", runs, least=1)
        self._precision = precision if runs is None else None
        self._max_runs = integer("max_runs", max_runs, least=1)
        self._max_seconds = None if max_seconds is None else positive("max_seconds", max_seconds, "number of seconds")
        if self._precision is not None:
            precision_of(self._precision, LEVEL, list(commands))
        self._warmup = integer("warmup", warmup, least=0)
        if len(prepare) not in (0, 1, len(commands)):
            raise ValueError(
                f"prepare must be given once or once for each of the {len(commands)} commands, got {len(prepare)} times"
            )
        self._prepare = dict(zip(commands, list(prepare) * (len(commands) if len(prepare) == 1 else 1), strict=False))
        self._setup, self._cleanup = setup, cleanup
        self._shell = shell_for(commands.values(), shell)
        self._words = {name: words_of(command, self._shell) for name, command in commands.items()}
        self._ignore_failure = ignore_failure
        self._overhead: Overhead | None = None
        # All runs in their order; those that the study has not asked for yet, by command; and which commands it has
        # asked for since the last block of runs.
        self._record: list[tuple[str, Run]] = []
        self._ready: dict[str, deque[Run]] = {arm: deque() for arm in commands}
        self._wanted = set[str]()
        # Whether the next round is in reverse order.
        self._reverse = False
        # Seconds of the last run of each command, and what ended the last block before its end.
        self._latest: dict[str, float] = {}
        self._broken: BaseException | None = None
        self._told = -math.inf
        self._last: Progress | None = None
        self._failure = ""
        # When to start no more runs: known once every command has been run.
        self._last_start: float | None = None

    def run(self) -> Timings:
        """
        Run the commands, and return their times.

        Raises
        ------
        EquipoiseError
            If a command fails; its message says how. `so_far` has what was known by then.
        """
        try:
            self._aside("setup", self._setup)
            self._calibrate()
            self._warm_up()
            self._measure()
        except CommandError as error:
            raise EquipoiseError(str(error)) from None
        finally:
            self._aside("cleanup", self._cleanup)
        found = self.so_far()
        assert found is not None  # a study that ends without an error has samples
        return found

    def so_far(self) -> Timings | None:
        """Return what is known; None as long as some command has not been run."""
        if self._last is None or not self._last.result.counts.array.all():
            return None
        return self._timings(self._last.result)

    # ---- what is run

    def _aside(self, what: str, command: str | None, arm: str = "") -> None:
        """Run a command that is not timed, with the shell."""
        if command is not None:
            run = self._timer(words_of(command, self._shell or "/bin/sh"), arm)
            if run.code != 0:
                raise CommandError(f"the {what} command failed: {run.said}")

    def _time(self, arm: str) -> Run:
        self._aside("prepare", self._prepare.get(arm), arm)
        run = self._timer(self._words[arm], arm)
        if run.code != 0 and not self._ignore_failure:
            raise CommandError(
                f"{named(arm)} failed: {run.said} (-i ignores exit codes, --show-output shows what it prints)"
            )
        return run

    def _calibrate(self) -> None:
        """Time the shell itself, which does nothing."""
        if self._shell is None:
            return
        words, seconds = words_of("", self._shell), []
        # Once: to draw a bar between two runs would make the second one slower.
        self._tell("calibrate", 0, _CALIBRATION)
        for i in range(-_CALIBRATION_WARMUP, _CALIBRATION):
            run = self._timer(words, "")
            if run.code != 0:
                raise CommandError(f"the shell {self._shell} failed: {run.said}")
            seconds += [run.seconds] if i >= 0 else []
        self._overhead = Overhead(
            self._shell, float(np.mean(seconds)), float(np.std(seconds, ddof=1)) / math.sqrt(len(seconds))
        )

    def _warm_up(self) -> None:
        total = self._warmup * len(self._commands)
        for i in range(self._warmup):
            for k, arm in enumerate(self._commands):
                self._tell("warm up", i * len(self._commands) + k, total)
                self._latest[arm] = self._time(arm).seconds

    def _measure(self) -> None:
        arms = len(self._commands)
        fixed: dict[str, Any] = (
            {"precision": self._precision, "rounds": _ROUNDS, "budget": self._max_runs * arms}
            if self._runs is None
            else {"strategy": "uniform", "budget": self._runs * arms}
        )
        self._begin()
        try:
            estimate(
                {arm: self._samples(arm) for arm in self._commands},
                level=LEVEL,
                progress=self._follow,
                about={"measure": "seconds"},
                **fixed,
            )
            if self._broken is not None:
                raise self._broken
        except EquipoiseError:
            if not self._failure:
                raise
            raise EquipoiseError(self._failure) from None

    def _samples(self, arm: str) -> Iterator[float]:
        """Yield the times of a command until time is up."""
        while True:
            if not self._ready[arm]:
                self._block(arm)
            if not self._ready[arm]:
                return
            self._wanted.add(arm)
            yield self._net(self._ready[arm].popleft())

    def _begin(self) -> None:
        """Make the first runs, before the study begins, so that they follow the warm-up at once."""
        self._make([*self._commands], self._rounds([*self._commands]) if self._runs is None else self._runs)

    def _block(self, first: str) -> None:
        """
        Make a round of runs: of the command that the study asks for, and of others that it has asked for lately.

        Short commands are run in several rounds.
        """
        if self._broken is not None:
            raise self._broken
        due = [arm for arm in self._commands if arm == first or (arm in self._wanted and not self._ready[arm])]
        self._wanted.clear()
        self._make(due, self._rounds(due))

    def _rounds(self, arms: Sequence[str]) -> int:
        """Return in how many rounds to run some commands before anything is computed: 1 unless they are short."""
        took = math.fsum(self._latest.get(arm, math.inf) for arm in arms)
        return 1 if self._prepare else max(1, min(int(_BLOCK / max(took, 1e-6)), self._left // len(arms)))

    @property
    def _left(self) -> int:
        """How many more runs there may be, of all commands together."""
        return (self._max_runs if self._runs is None else self._runs) * len(self._commands) - len(self._record)

    def _make(self, arms: Sequence[str], rounds: int) -> None:
        """
        Run commands in rounds, every other one in reverse, until time is up or there may be no more runs.

        A failure waits until the study has the runs before it.
        """
        try:
            for _ in range(rounds):
                turn, self._reverse = arms[:: -1 if self._reverse else 1], not self._reverse
                for arm in turn:
                    if self._over or not self._left:
                        return
                    self._ready[arm].append(self._run(arm))
                    self._tell_at_times()
        except BaseException as error:
            self._broken = error

    def _tell_at_times(self) -> None:
        """Say how many runs there are, a few times a second."""
        now = self._clock()
        if self._watch is not None and now - self._told >= _TELL:
            self._tell_runs(len(self._record))
            self._told = self._clock()

    @property
    def _over(self) -> bool:
        """Whether time is up. What a first study compiles until every command has been run does not count."""
        if self._max_seconds is None:
            return False
        if self._last_start is None and len({arm for arm, _ in self._record}) == len(self._commands):
            spent = math.fsum(run.seconds for _, run in self._record)
            self._last_start = self._clock() + self._max_seconds - spent
        return self._last_start is not None and self._clock() >= self._last_start

    def _run(self, arm: str) -> Run:
        try:
            run = self._time(arm)
        except CommandError as error:
            self._failure = str(error)
            raise
        self._record.append((arm, run))
        self._latest[arm] = run.seconds
        return run

    def _net(self, run: Run) -> float:
        return run.seconds - (0.0 if self._overhead is None else self._overhead.seconds)

    # ---- what is known

    def _follow(self, progress: Progress) -> None:
        self._last = progress
        self._tell_runs(progress.samples)

    def _tell_runs(self, done: int) -> None:
        self._tell("measure", done, None if self._runs is None else self._runs * len(self._commands))

    def _tell(self, stage: str, done: int, of: int | None) -> None:
        if self._watch is not None:
            self._watch(Stage(stage, done, of, self._last))

    def _timings(self, result: Result) -> Timings:
        margins, targets, reached = self._precisions(result)
        places = {arm: k for k, arm in enumerate(self._commands)}
        runs: list[list[Run]] = [[] for _ in places]
        order = []
        for arm, run in self._record:
            k = places[arm]
            if len(runs[k]) < result.counts.array[k]:  # the last one may not be in the result yet
                runs[k].append(run)
                order.append(k)
        return Timings(
            tuple(
                Timing(
                    arm,
                    self._commands[arm],
                    tuple(runs[k]),
                    np.array([self._net(run) for run in runs[k]]),
                    float(margins[k]),
                    float(targets[k]),
                    bool(reached[k]),
                )
                for arm, k in places.items()
            ),
            tuple(order),
            self._precision,
            self._runs,
            self._over,
            self._overhead,
        )

    def _precisions(self, result: Result) -> tuple[Floats, Floats, Bools]:
        """Return of each command the margin of its interval, its target, and whether that is reached."""
        arms = len(self._commands)
        if self._precision is None:
            # Where the number of runs was given, nothing was decided by looking at them.
            whole = result.samples == (self._runs or 0) * arms
            found = result.intervals(kind="fixed-n") if whole else result.intervals()
            targets, reached = np.full(arms, math.nan), np.zeros(arms, bool)
        else:
            found = result.intervals()
            targets, reached = result.targets, result.reached_by_arm
        if self._overhead is None:
            return found.margins, targets, reached
        blurred = [
            self._overhead.blurs(mean, target)
            for mean, target in zip(result.means.array.tolist(), targets.tolist(), strict=True)
        ]
        return np.hypot(found.margins, 2 * self._overhead.error), targets, reached & ~np.array(blurred)


def _checked(commands: Mapping[str, str]) -> dict[str, str]:
    if not commands:
        raise ValueError("at least one command is needed, as in equipoise bench 'gzip -c data.bin'")
    check_names(commands)
    for command in commands.values():
        if not isinstance(command, str) or not command.strip():
            raise ValueError(f"a command must not be empty, got {shown(command)}")
    return dict(commands)


def names_of(commands: Sequence[str], given: Sequence[str]) -> dict[str, str]:
    """
    Return the commands by name.

    Parameters
    ----------
    commands
        The command lines.
    given
        Names for all of them, or none: then each goes by its program where those differ, and else by all of its words.
    """
    if given and len(given) != len(commands):
        raise ValueError(f"name must be given once for each of the {len(commands)} commands, got {len(given)} times")
    programs = [" ".join(command.split()[:1]).rpartition("/")[2] for command in commands]
    names = given or (programs if len(set(programs)) == len(commands) and all(programs) else commands)
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise ValueError(f"every command needs a name of its own, got {twice!r} twice; use --name")
    return dict(zip(names, commands, strict=True))
