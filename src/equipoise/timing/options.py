"""The options of a benchmark of commands, parsed once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import LONGEST_NAME, check_names, integer, number_of_seconds, printable, shown
from equipoise.ledger.goal import Precision
from equipoise.ledger.goal import precision as precision_of
from equipoise.timing.statistic import MEAN, Statistic
from equipoise.timing.timer import program_of, shell_for, words_of
from equipoise.timing.timings import LEVEL, SHARP

# The most runs that may be asked for.
_MOST: Final = 10**9
# Times drift as the machine does, so that every command that is not known yet is run at least once in this many rounds.
_ROUNDS: Final = 1


@dataclass(frozen=True)
class BenchOptions:
    """
    What to measure, how precisely, and what to run besides the commands.

    Attributes
    ----------
    commands
        The command lines, by name.
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
    statistic
        What is estimated of the times of a command.
    """

    commands: Mapping[str, str]
    precision: str | float = "5%"
    runs: int | None = None
    min_runs: int = 1
    max_runs: int = 1000
    max_seconds: float | None = None
    warmup: int = 0
    setup: Sequence[str] = ()
    prepare: Sequence[str] = ()
    cleanup: Sequence[str] = ()
    shell: str = "auto"
    ignore_failure: bool = False
    parameters: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    statistic: Statistic = MEAN

    def __post_init__(self) -> None:
        _check_commands(self.commands)
        _check_encodable(*self.commands.values(), *self.commands, *self.setup, *self.prepare, *self.cleanup)
        if self.runs is not None:
            integer("runs", self.runs, 1, _MOST)
        integer("min_runs", self.min_runs, 1, _MOST)
        integer("max_runs", self.max_runs, 1, _MOST)
        if self.runs is None and self.max_runs < 2:
            raise InvalidInput(
                f"max_runs must be at least 2 with a precision, got {self.max_runs}; for one run, use --runs 1"
            )
        if self.min_runs > self.max_runs:
            raise InvalidInput(f"min_runs must be at most max_runs, {self.max_runs:,}, got {self.min_runs:,}")
        if self.max_seconds is not None:
            number_of_seconds("max_seconds", self.max_seconds)
        integer("warmup", self.warmup, 0, _MOST)
        arms, given = len(self.commands), len(self.prepare)
        if given not in (0, 1, arms):
            raise InvalidInput(f"prepare must be given once or once for each of the {arms} commands, got {given} times")
        # Both may refuse what was given.
        _ = self.words, self.asked

    @cached_property
    def program(self) -> str | None:
        """The shell that runs the commands; None without one."""
        return shell_for(self.commands.values(), self.shell)

    @cached_property
    def words(self) -> dict[str, list[str]]:
        """The program and the arguments of each command, by its name."""
        return {name: words_of(command, self.program) for name, command in self.commands.items()}

    @cached_property
    def before(self) -> dict[str, str]:
        """What to run before each run of a command, by its name; empty for nothing."""
        each = list(self.prepare) * (len(self.commands) if len(self.prepare) == 1 else 1)
        return dict(zip(self.commands, each, strict=False))

    @property
    def goal(self) -> str | float | None:
        """The precision to reach; None where the number of runs is given."""
        return self.precision if self.runs is None else None

    @property
    def most(self) -> int:
        """How many runs there may be, of all commands together."""
        return (self.max_runs if self.runs is None else self.runs) * len(self.commands)

    @cached_property
    def asked(self) -> Precision | None:
        """What the study is asked for: with a shell a little more than the goal, as the error of its time is added."""
        return None if self.goal is None else _asked(self.goal, 1 if self.program is None else SHARP)

    @property
    def study(self) -> dict[str, Any]:
        """The arguments of `estimate` that say when the study ends."""
        if self.asked is None:
            return {"budget": self.most, "strategy": "uniform"}
        return {"budget": self.most, "precision": _as_text(self.asked), "rounds": _ROUNDS}

    def target(self, mean: float) -> float:
        """Return the margin that is wanted of a mean; NaN if none is."""
        if self.goal is None:
            return math.nan
        return float(_asked(self.goal, 1.0).targets(np.array([max(mean, 0.0)]))[0])


def _asked(given: str | float, share: float) -> Precision:
    """Return what to ask of each mean: a share of the precision that was given."""
    found = precision_of(given, LEVEL, [""])
    return replace(found, wanted=(share * found.wanted[0],))


def _as_text(asked: Precision) -> str | float:
    """Return a precision as `estimate` takes it."""
    return f"{100 * asked.wanted[0]!r}%" if asked.relative[0] else asked.wanted[0]


def _check_commands(commands: Mapping[str, str]) -> None:
    if not commands:
        raise InvalidInput("at least one command is needed, as in equipoise bench 'gzip -c data.bin'")
    check_names(commands)
    for command in commands.values():
        if not isinstance(command, str) or not command.strip():
            raise InvalidInput(f"a command must not be empty, got {shown(command)}")


def _check_encodable(*texts: str) -> None:
    """Refuse bytes that are not UTF-8, which no export could hold."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidInput(f"a command and its name must be UTF-8, got {shown(text)}") from None


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
        raise InvalidInput(f"name must be given once for each of the {len(commands)} commands, got {len(given)} times")
    if not all(name.strip() for name in given):
        raise InvalidInput("a name must not be empty, got ''")
    programs = [*map(program_of, commands)]
    names = given or (programs if len(set(programs)) == len(commands) and all(programs) else commands)
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise InvalidInput(f"every command needs a name of its own, got {shown(twice)} twice; use --name")
    return dict(zip(given or [_as_name(name, i) for i, name in enumerate(names, 1)], commands, strict=True))


def _as_name(command: str, number: int) -> str:
    """Return a command that can be a name: line breaks are escaped, and what is too long ends with its number."""
    text, end = printable(command), f"… ({number})"
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - len(end)] + end
