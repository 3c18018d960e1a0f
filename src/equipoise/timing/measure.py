"""Run commands in turn until the mean time of each is known."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.base.errors import EquipoiseError
from equipoise.base.inputs import LONGEST_NAME, check_names, integer, number_of_seconds, printable, shown
from equipoise.inference.arm_intervals import reached_by_arm
from equipoise.ledger.goal import Precision
from equipoise.ledger.goal import precision as precision_of
from equipoise.result import Result
from equipoise.run.commands import CommandError
from equipoise.run.estimate import estimate
from equipoise.run.progress import Progress
from equipoise.timing import margins
from equipoise.timing.timer import Run, Timer, program_of, shell_for, words_of
from equipoise.timing.timings import LEVEL, SHARP, MarginKind, Overhead, Timing, Timings

# Runs of a shell that does nothing: those before any that count, those before the commands, and where these are not
# enough, those that tell how many are, the most, and the most seconds that they may take.
_CALIBRATION_WARMUP, _CALIBRATION = 3, 50
_CALIBRATION_TELLING, _CALIBRATION_MOST, _CALIBRATION_SECONDS = 200, 5000, 10.0
# The fewest runs of a command that tell whether the shell's own time hides how long it takes, and by what factor they
# grow from one look to the next.
_TELLING, _GROWTH = 20, 1.25
# The most runs that may be asked for.
_MOST: Final = 10**9
# Short commands are run for about this many seconds before anything is computed from what they took: a command that
# takes 1 ms takes 3% longer if 0.6 ms have passed since the last one (docs/reference/bench.md).
_BLOCK: Final = 0.02
# Seconds from one time to the next that somebody is told how far a block has come.
_TELL: Final = 0.2
# Times drift as the machine does, so that every command that is not known yet is run at least once in this many rounds.
_ROUNDS: Final = 1
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
    min_runs
        Run each command this many times at least.
    max_runs
        The most runs, as a mean over commands; at least 2 with a precision.
    max_seconds
        Start no more runs after this many seconds of measuring, once every command has been run.
    warmup
        Runs of each command before those that count.
    setup, cleanup
        Command lines to run before the first run of any command, and after the last one, however it ended.
    prepare
        Command lines to run before each run, the warm-up included: one for all commands, or one for each.
    shell
        As in `shell_for`.
    ignore_failure
        Whether commands may end with another exit code than 0.
    parameters
        The values of the parameters of each command, by its name, which the results repeat.
    watch
        A function that is called with each `Stage`.
    clock
        Returns the seconds by which `max_seconds` is kept.

    Attributes
    ----------
    unclean
        How each cleanup that failed did so, in a sentence.
    """

    def __init__(
        self,
        commands: Mapping[str, str],
        timer: Timer,
        *,
        precision: str | float = "5%",
        runs: int | None = None,
        min_runs: int = 1,
        max_runs: int = 1000,
        max_seconds: float | None = None,
        warmup: int = 0,
        setup: Sequence[str] = (),
        prepare: Sequence[str] = (),
        cleanup: Sequence[str] = (),
        shell: str = "auto",
        ignore_failure: bool = False,
        parameters: Mapping[str, Mapping[str, str]] | None = None,
        watch: Callable[[BenchStage], Any] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._commands = _checked(commands)
        _check_encodable(*commands.values(), *commands, *setup, *prepare, *cleanup)
        self._timer, self._watch, self._clock = timer, watch, clock
        self._runs = None if runs is None else integer("runs", runs, 1, _MOST)
        self._precision = precision if runs is None else None
        self._min_runs, self._max_runs = (
            integer("min_runs", min_runs, 1, _MOST),
            integer("max_runs", max_runs, 1, _MOST),
        )
        if runs is None and self._max_runs < 2:
            raise ValueError(
                f"max_runs must be at least 2 with a precision, got {self._max_runs}; for one run, use --runs 1"
            )
        if self._min_runs > self._max_runs:
            raise ValueError(f"min_runs must be at most max_runs, {self._max_runs:,}, got {self._min_runs:,}")
        self._max_seconds = None if max_seconds is None else number_of_seconds("max_seconds", max_seconds)
        self._warmup = integer("warmup", warmup, 0, _MOST)
        if len(prepare) not in (0, 1, len(commands)):
            raise ValueError(
                f"prepare must be given once or once for each of the {len(commands)} commands, got {len(prepare)} times"
            )
        self._prepare = dict(zip(commands, list(prepare) * (len(commands) if len(prepare) == 1 else 1), strict=False))
        self._setup, self._cleanup = setup, cleanup
        self.unclean: list[str] = []
        self._shell = shell_for(commands.values(), shell)
        self._words = {name: words_of(command, self._shell) for name, command in commands.items()}
        self._ignore_failure, self._parameters = ignore_failure, parameters or {}
        # What the study is asked for: with a shell a little more, as the error of its time is added.
        self._asked = None if self._precision is None else _asked(self._precision, 1 if self._shell is None else SHARP)
        # Runs of the shell itself: some before all others, then one in each round. And what the study subtracts.
        self._calibration: list[Run] = []
        self._subtracted = 0.0
        # All runs in their order, and by command; those that the study has not asked for yet, by command; and which
        # commands it has asked for since the last block of runs.
        self._record: list[tuple[str, Run]] = []
        self._by_command: dict[str, list[Run]] = {arm: [] for arm in commands}
        self._ready: dict[str, deque[Run]] = {arm: deque() for arm in commands}
        self._wanted = set[str]()
        # Whether the next round is in reverse order.
        self._reverse = False
        # At how many runs of a command to look whether the shell hides it.
        self._next_look = dict.fromkeys(commands, float(max(_TELLING, self._min_runs)))
        # Seconds of the last run of each command, and what ended the last block before its end.
        self._latest: dict[str, float] = {}
        self._broken: BaseException | None = None
        self._told = -math.inf
        self._last: Progress | None = None
        self._failure = ""
        # Whether a command failed; whether a person or a signal ended it.
        self._failed, self._interrupted = False, False
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
            for command in self._setup:
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
        run = self._timer(words_of(command, self._shell or "/bin/sh"), arm)
        if run.code != 0:
            raise CommandError(f"the {what} command {command!r} failed: {run.said}")

    def _clean_up(self) -> None:
        """Run every cleanup command; those that fail hide neither each other nor what ended the benchmark."""
        for command in self._cleanup:
            try:
                self._aside("cleanup", command)
            except CommandError as error:
                self.unclean.append(str(error))

    def _time(self, arm: str) -> Run:
        if self._prepare:
            self._aside("prepare", self._prepare[arm], arm)
        run = self._timer(self._words[arm], arm)
        if run.code != 0 and not self._ignore_failure:
            raise CommandError(
                f"{arm!r} failed: {run.said} (-i ignores exit codes, --show-output shows what it prints)"
            )
        return run

    def _calibrate(self) -> None:
        """
        Time the shell itself until it is known well enough for the commands.

        That is first a number of times, and once the commands were run, so often as they need. Where that would take
        too long, it is not begun.

        From then on it is run once in each round, as it drifts as everything does.
        """
        if self._shell is None:
            return
        begun, more = self._clock(), not self._calibration or self._vague
        if more:
            # Once: to draw a bar between two runs would make the second one slower.
            self._tell("calibrate", 0, _CALIBRATION)
            for _ in range(_CALIBRATION_WARMUP):
                self._run_shell()
        while more:
            self._calibration += [self._run_shell() for _ in range(_CALIBRATION)]
            more = self._vague
        if self._last_start is not None:
            self._last_start += self._clock() - begun
        # The study goes on with what is known now.
        self._subtracted = self._overhead_now().seconds

    def _run_shell(self) -> Run:
        assert self._shell is not None
        run = self._timer(words_of("", self._shell), "")
        if run.code != 0:
            raise CommandError(f"the shell {self._shell!r} failed: {run.said}")
        return run

    def _overhead_now(self) -> Overhead:
        """Return the shell's own time, by its runs while the commands were run if there are enough of them."""
        assert self._shell is not None
        enough = len(self._calibration) >= 2 * _CALIBRATION
        return Overhead.of(self._shell, self._calibration[_CALIBRATION if enough else 0 :])

    @property
    def _vague(self) -> bool:
        """Whether the shell's own time is not known well enough for a command, and can be."""
        overhead, few = self._overhead_now(), len(self._calibration) < _CALIBRATION_TELLING
        means = [float(_nets(each, overhead).mean()) for each in self._by_command.values() if each]
        blurs = [overhead.blur(mean, self._target(mean)) for mean in means]
        return any(blur > 1 and (few or self._attainable(blur, overhead)) for blur in blurs)

    def _attainable(self, blur: float, overhead: Overhead) -> bool:
        """Return whether more runs of the shell would make its error small enough for a command."""
        most = min(_CALIBRATION_MOST, _CALIBRATION_SECONDS / max(overhead.seconds, 1e-6))
        # Errors fall as the square root of the number of runs.
        return blur**2 * len(self._calibration) < most

    def _target(self, mean: float) -> float:
        """Return the margin that is wanted of a mean; NaN if none is."""
        if self._precision is None:
            return math.nan
        return float(_asked(self._precision, 1.0).targets(np.array([max(mean, 0.0)]))[0])

    def _warm_up(self) -> None:
        total = self._warmup * len(self._commands)
        for i in range(self._warmup):
            for k, arm in enumerate(self._commands):
                self._tell("warm up", i * len(self._commands) + k, total)
                self._latest[arm] = self._time(arm).seconds

    def _measure(self) -> None:
        fixed: dict[str, Any] = {"budget": self._most}
        if self._asked is None:
            fixed["strategy"] = "uniform"
        else:
            fixed |= {"precision": _as_text(self._asked), "rounds": _ROUNDS}
        self._begin()
        if self._broken is None:
            self._calibrate()
        try:
            for _ in range(_AGAIN):
                estimate(
                    {arm: self._samples(arm) for arm in self._commands},
                    level=LEVEL,
                    progress=self._follow,
                    about={"measure": "seconds"},
                    **fixed,
                )
                if self._broken is not None:
                    raise self._broken
                self._calibrate()
                if not self._moved():
                    break
                self._ready = {arm: deque(runs) for arm, runs in self._by_command.items()}
        except EquipoiseError:
            if not self._failure:
                raise
            raise EquipoiseError(self._failure) from None

    def _moved(self) -> bool:
        """Whether a mean that was known well enough is not, now that the shell's own time is known better."""
        found = self.so_far()
        if found is None or self._last is None or self._shell is None or self._asked is None or self._over:
            return False
        known = zip(reached_by_arm(self._last.result.known).tolist(), found.commands, strict=True)
        wide = [each for reached, each in known if reached and not each.reached]
        return any(each not in found.too_short for each in wide)

    def _samples(self, arm: str) -> Iterator[float]:
        """Yield the times of a command until time is up, or more runs would not help."""
        while True:
            if not self._ready[arm] and not self._hidden(arm):
                self._block(arm)
            if not self._ready[arm]:
                return
            self._wanted.add(arm)
            yield self._ready[arm].popleft().seconds - self._subtracted

    def _begin(self) -> None:
        """Make the first runs, before the study begins, so that they follow the warm-up at once."""
        arms = [*self._commands]
        self._make(arms, max(self._rounds(arms), self._min_runs) if self._runs is None else self._runs)

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
        return self._most - len(self._record)

    @property
    def _most(self) -> int:
        """How many runs there may be, of all commands together."""
        return (self._max_runs if self._runs is None else self._runs) * len(self._commands)

    def _make(self, arms: Sequence[str], rounds: int) -> None:
        """
        Run commands in rounds, every other one in reverse, until time is up or there may be no more runs.

        A shell is run by itself in each round. A failure waits until the study has the runs before it.
        """
        alone = [] if self._shell is None else [None]
        try:
            for _ in range(rounds):
                turn, self._reverse = [*arms, *alone][:: -1 if self._reverse else 1], not self._reverse
                for arm in turn:
                    if self._over or not self._left:
                        return
                    if arm is None:
                        self._calibration.append(self._run_shell())
                    else:
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
        self._by_command[arm].append(run)
        self._latest[arm] = run.seconds
        return run

    def _hidden(self, arm: str) -> bool:
        """Return whether the shell's own time is found to hide that of a command, however often it is run."""
        runs = self._by_command[arm]
        if self._shell is None or self._precision is None or len(runs) < self._next_look[arm]:
            return False
        # Each look takes longer, and would be a pause between runs.
        self._next_look[arm] = _GROWTH * len(runs)
        overhead = self._overhead_now()
        times = _nets(runs, overhead)
        largest = float(times.mean()) + 2 * float(times.std(ddof=1)) / math.sqrt(len(times))
        blur = overhead.blur(largest, self._target(largest))
        return blur > 1 and not self._attainable(blur, overhead)

    # ---- what is known

    def _follow(self, progress: Progress) -> None:
        self._last = progress
        self._tell_runs(progress.samples)

    def _tell_runs(self, done: int) -> None:
        self._tell("measure", done, None if self._runs is None else self._runs * len(self._commands))

    def _tell(self, stage: str, done: int, of: int | None) -> None:
        if self._watch is not None:
            self._watch(BenchStage(stage, done, of, self._last))

    def _timings(self, result: Result) -> Timings:
        overhead = None if self._shell is None else self._overhead_now()
        places = {arm: k for k, arm in enumerate(self._commands)}
        runs: list[list[Run]] = [[] for _ in places]
        order = []
        for arm, run in self._record:
            k = places[arm]
            # The last ones may not be in the result yet, or never be, if the precision was reached before.
            if len(runs[k]) < max(result.counts.array[k], self._min_runs):
                runs[k].append(run)
                order.append(k)
        return Timings(
            tuple(self._timing(result, arm, k, runs[k], overhead) for arm, k in places.items()),
            tuple(order),
            self._precision,
            self._runs,
            self._over,
            self._failed or self._interrupted,
            overhead,
            self._warmup,
            self._parameters,
        )

    def _timing(self, result: Result, arm: str, k: int, runs: Sequence[Run], overhead: Overhead | None) -> Timing:
        times = _nets(runs, overhead)
        target, alpha = self._target(float(times.mean())), (1 - LEVEL) / len(self._commands)
        known = self._precision is not None and bool(reached_by_arm(result.known)[k])
        kind: MarginKind = "fixed-n"
        if known and len(runs) == result.counts.array[k]:
            margin = float(result.intervals().margins[k])
            kind = "fixed-width" if result.intervals().fixed[k] else "anytime"
        elif self._interrupted and math.isfinite(looked := margins.anytime(times, alpha, self._planned)):
            margin, kind = looked, "anytime"
        else:
            # Also of a benchmark that was stopped before there was any precision to look at.
            margin = margins.student(times, alpha)
        if overhead is not None:
            margin = math.hypot(margin, 2 * overhead.error)
            known = known and not overhead.blurs(float(times.mean()), target)
        known = known and margin <= target
        return Timing(arm, self._commands[arm], tuple(runs), times, margin, target, known, kind)

    @property
    def _planned(self) -> float:
        """How many runs of each command were going to be made at most, by the times of the first of each."""
        first = dict(reversed(self._record))
        each = math.fsum(run.seconds for run in first.values())
        return min(
            self._most / len(first), math.inf if self._max_seconds is None else self._max_seconds / max(each, 1e-6)
        )


def _nets(runs: Sequence[Run], overhead: Overhead | None) -> Floats:
    """Return the times of runs without the shell's own."""
    return np.array([run.seconds for run in runs]) - (0.0 if overhead is None else overhead.seconds)


def _asked(given: str | float, share: float) -> Precision:
    """Return what to ask of each mean: a share of the precision that was given."""
    found = precision_of(given, LEVEL, [""])
    return replace(found, wanted=(share * found.wanted[0],))


def _as_text(asked: Precision) -> str | float:
    """Return a precision as `estimate` takes it."""
    return f"{100 * asked.wanted[0]!r}%" if asked.relative[0] else asked.wanted[0]


def _checked(commands: Mapping[str, str]) -> dict[str, str]:
    if not commands:
        raise ValueError("at least one command is needed, as in equipoise bench 'gzip -c data.bin'")
    check_names(commands)
    for command in commands.values():
        if not isinstance(command, str) or not command.strip():
            raise ValueError(f"a command must not be empty, got {shown(command)}")
    return dict(commands)


def _check_encodable(*texts: str) -> None:
    """Refuse bytes that are not UTF-8, which no export could hold."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"a command and its name must be UTF-8, got {shown(text)}") from None


def names_of(commands: Sequence[str], given: Sequence[str]) -> dict[str, str]:
    """
    Return the commands by name.

    Parameters
    ----------
    commands
        The command lines.
    given
        Names for all of them, or none: then each goes by its program where those differ, and else by all of its words,
        as far as a name has room for them.
    """
    if given and len(given) != len(commands):
        raise ValueError(f"name must be given once for each of the {len(commands)} commands, got {len(given)} times")
    if not all(name.strip() for name in given):
        raise ValueError("a name must not be empty, got ''")
    programs = [*map(program_of, commands)]
    names = given or (programs if len(set(programs)) == len(commands) and all(programs) else commands)
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise ValueError(f"every command needs a name of its own, got {shown(twice)} twice; use --name")
    return dict(zip(given or [_as_name(name, i) for i, name in enumerate(names, 1)], commands, strict=True))


def _as_name(command: str, number: int) -> str:
    """Return a command that can be a name: line breaks are escaped, and what is too long ends with its number."""
    text, end = printable(command), f"… ({number})"
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - len(end)] + end
