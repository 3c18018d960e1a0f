"""Run a command once, and time it."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from equipoise.run.commands import MARK, CommandError, Output, Process, Running, end_of, ended_by

# How much of a command's stderr is looked at, in bytes.
_TAIL: Final = 4096
# Parts of a command line that mean the same with and without a shell: in quotes, and nothing in them to expand.
_QUOTED: Final = re.compile(r"""'[^']*'|"[^"$`\\]*\"""")
# Commands that only a shell has; those which are also programs, such as echo, are run as programs.
_BUILT_IN: Final = frozenset(
    [".", ":", "alias", "bg", "break", "cd", "command", "continue", "eval", "exec", "exit", "export", "fc", "fg",
     "getopts", "hash", "jobs", "local", "read", "readonly", "return", "set", "shift", "source", "times", "trap",
     "type", "ulimit", "umask", "unalias", "unset", "wait"]
)  # fmt: skip
_SHELL_SYNTAX: Final = re.compile(r"[|&;<>()$`\\*?\[\]{}#~!\"'\n]")


@dataclass(frozen=True)
class Run:
    """
    One run of a command.

    Attributes
    ----------
    seconds
        From its start to its end.
    user, system
        Seconds of processor time in the program and in the kernel, its children included; NaN where they are unknown.
    code
        Its exit code; negative if a signal ended it.
    said
        How it failed, in words; empty if the exit code is 0.
    """

    seconds: float
    user: float = math.nan
    system: float = math.nan
    code: int = 0
    said: str = ""


class Timer(Protocol):
    """The interface of whatever runs a program and times it."""

    def __call__(self, words: Sequence[str], arm: str) -> Run: ...


@dataclass(frozen=True)
class ProcessTimer:
    """
    A timer of real processes.

    Parameters
    ----------
    show
        Whether what a command prints is shown; otherwise its stdout is dropped, and the end of its stderr is kept for
        the sentence that says how it failed.
    running
        The commands that are running now.
    clock
        The clock that seconds are read from.
    """

    show: bool = False
    running: Running = field(default_factory=Running, repr=False)
    clock: Callable[[], float] = field(default=time.perf_counter, repr=False)

    def __call__(self, words: Sequence[str], arm: str) -> Run:
        """Run a program with its arguments; the environment variable EQUIPOISE_ARM holds the arm."""
        mark = secrets.token_hex(16)
        env = os.environ | {"EQUIPOISE_ARM": arm, MARK: mark}
        with contextlib.nullcontext() if self.show else Output(_TAIL) as err:
            begin = _beginning(words, env, None if err is None else err.pipe)
            start = self.clock()
            try:
                process = self.running.launch(mark, begin)
                user, system = _wait(process, mark, self.running)
                seconds = self.clock() - start
            except OSError as error:
                raise CommandError(f"cannot run {words[0]!r}: {error.strerror}") from None
            except BaseException:
                self.running.kill(mark)
                raise
            finally:
                self.running.ended(mark)
            code = process.returncode
            assert code is not None
            said = "" if code == 0 else ended_by(code) + ("" if err is None else end_of(err))
            return Run(seconds, user, system, code, said)


@dataclass
class Spawned:
    """A process that was started with `posix_spawn`."""

    pid: int
    returncode: int | None = None

    def kill(self) -> None:
        """Kill it."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Wait for its end."""
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _beginning(words: Sequence[str], env: dict[str, str], pipe: int | None) -> Callable[[], Process | Spawned]:
    """
    Return a function that starts a program in a session of its own; its stderr goes to the pipe, if there is one.

    All that can be done before the clock starts is done here. `posix_spawn` adds as little to the time of a program as
    hyperfine does, and 0.1 ms less than `subprocess`.
    """
    if sys.platform != "linux":
        out = None if pipe is None else subprocess.DEVNULL
        return lambda: subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=out, stderr=pipe, env=env, start_new_session=True
        )
    program, given = shutil.which(words[0]), tuple(words)
    if program is None:
        if os.sep not in words[0]:  # posix_spawn would look for it in the current folder
            raise CommandError(f"cannot run {words[0]!r}: {os.strerror(errno.ENOENT)}")
        program = words[0]
    files: list[Any] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
    if pipe is not None:
        files += [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0), (os.POSIX_SPAWN_DUP2, pipe, 2)]
    # Python ignores these, and a program should not.
    signals = [signal.SIGPIPE, signal.SIGXFSZ]
    return lambda: Spawned(os.posix_spawn(program, given, env, file_actions=files, setsid=True, setsigdef=signals))


def _wait(process: Process | Spawned, mark: str, running: Running) -> tuple[float, float]:
    """Wait for the end of a process; return the seconds that it and its children computed."""
    try:
        if not hasattr(os, "wait4"):  # Windows
            process.wait()
            return math.nan, math.nan
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_utime, usage.ru_stime
    except BaseException:
        running.kill(mark)
        process.wait()
        raise


def needs_shell(command: str) -> bool:
    """Return whether a command line means something else without a shell."""
    if _SHELL_SYNTAX.search(_QUOTED.sub("", command)):
        return True
    first = shlex.split(command)[0]
    return "=" in first or (first in _BUILT_IN and shutil.which(first) is None)


def shell_for(commands: Iterable[str], wanted: str) -> str | None:
    """
    Return the shell that runs these commands, or None where they are run without one.

    Parameters
    ----------
    commands
        The command lines.
    wanted
        The name of a shell, "none", or "auto" for /bin/sh if any command needs one: either all are run by a shell or
        none is, so that their times can be compared.
    """
    if wanted == "none":
        return None
    if wanted == "auto":
        return "/bin/sh" if any(map(needs_shell, commands)) else None
    if shutil.which(wanted) is None:
        raise ValueError(f"shell must be a program, 'none' or 'auto', got {wanted!r}")
    return wanted


def words_of(command: str, shell: str | None) -> list[str]:
    """Return the program and the arguments that run a command line."""
    if shell is not None:
        return [shell, "-c", command]
    try:
        return shlex.split(command)
    except ValueError as error:  # a quotation mark that is not closed
        raise ValueError(f"cannot split {command!r} into words: {error}") from None
