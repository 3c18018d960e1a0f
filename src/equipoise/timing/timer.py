"""Run a command once, and time it."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import re
import secrets
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from equipoise.base.errors import InvalidInput
from equipoise.run.commands import MARK, CommandError, Process, Running, end_of, ended_by

# Where the stdout of commands can go besides a file.
OUTPUTS: Final = ("null", "pipe", "inherit")
# How much of a command's stderr is looked at, in bytes.
_TAIL: Final = 4096
# How much a pipe holds, in bytes.
_PIPE: Final = 2**16
# After this many seconds of computing, a command waits so many seconds for its start.
_COMPUTED, _REST = 0.05, 0.25
# Parts of a command line that mean the same with and without a shell: in quotes, and nothing in them to expand.
_QUOTED: Final = re.compile(r"""'[^']*'|"[^"$`\\]*\"""")
# Commands that only a shell has; those which are also programs, such as echo, are run as programs.
_BUILT_IN: Final = frozenset(
    [".", ":", "alias", "bg", "break", "cd", "command", "continue", "eval", "exec", "exit", "export", "fc", "fg",
     "getopts", "hash", "jobs", "local", "read", "readonly", "return", "set", "shift", "source", "times", "trap",
     "type", "ulimit", "umask", "unalias", "unset", "wait"]
)  # fmt: skip
# The pieces of a command line: what lies between words, a line that is continued, and parts of words in single quotes,
# after a backslash, without either, and in double quotes, where few characters can be escaped.
_PIECE: Final = re.compile(
    r"""(?P<break>[ \t\r\n]+)|\\\n|'(?P<single>[^']*)'|"(?P<double>(?:[^"\\]|\\.)*)"|\\(?P<escaped>.)"""
    r"""|(?P<plain>[^ \t\r\n'"\\]+)""",
    re.DOTALL,
)
_ESCAPED: Final = re.compile(r"""\\([$`"\\\n])""")
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


class ProcessTimer:
    """
    A timer of real processes.

    What need not be done between two runs is done once: the next run follows the last one at once, so that it finds
    the processor's caches nearly as the last one left them. Between the two readings of the clock is nothing but the
    start of the program and its end.

    A process that has computed for a while is remembered for it: threads of its libraries turn for a tenth of a second
    before they sleep, and Linux starts its children where it takes the load to be less, which may be behind another
    program. So a run waits for a moment if this process has computed since the last one.

    Each command has a process group of its own, so that all that it starts can be killed with it. Where this process
    has a terminal, it has a session of its own: a group in the background would be stopped when it reads from the
    terminal. Linux schedules each session on its own, which takes about 10 µs.

    Parameters
    ----------
    output
        Where the stdout of a command goes: "null" for nowhere, "pipe" for a pipe that is read and dropped, "inherit"
        for where this process prints, or the path of a file. With "inherit" its stderr goes where that of this process
        goes; otherwise its end is kept for the sentence that says how the command failed.
    aside
        Whether "inherit" prints what goes to stdout on stderr too, so that stdout is left to this process.
    clock
        The clock that seconds are read from.

    Attributes
    ----------
    running
        The commands that are running now.
    """

    def __init__(
        self, output: str = "null", aside: bool = False, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.running = Running()
        self._clock = clock
        # Seconds that this process had computed by the end of the last run.
        self._computed = 0.0
        self._env = dict(os.environ)
        self._programs: dict[str, str] = {}
        self._output, self._aside = output, aside
        self._terminal = sys.platform == "linux" and _has_terminal()
        self._tail = Tail() if output != "inherit" and hasattr(select, "poll") else None  # Windows has none
        self._sink = Tail() if output == "pipe" and hasattr(select, "poll") else None

    def __call__(self, words: Sequence[str], arm: str) -> Run:
        """Run a program with its arguments; the environment variable EQUIPOISE_ARM holds the arm."""
        if time.process_time() - self._computed > _COMPUTED:
            time.sleep(_REST)
        mark = secrets.token_hex(16)
        spawn, start = self._spawning(tuple(words), self._env | {"EQUIPOISE_ARM": arm, MARK: mark}), math.nan

        def begin() -> Process | Spawned:
            nonlocal start
            start = self._clock()
            return spawn()

        try:
            process = self.running.launch(mark, begin)
            end, user, system = self._wait(process, mark)
        except OSError as error:
            raise CommandError(_cannot_run(words, error.strerror)) from None
        except BaseException:
            self.running.kill(mark)
            raise
        finally:
            self.running.ended(mark)
            self._computed = time.process_time()
            printed = b"" if self._tail is None else self._tail.take()
            if self._sink is not None:
                self._sink.take()
        code = process.returncode
        assert code is not None
        return Run(end - start, user, system, code, "" if code == 0 else ended_by(code) + end_of(printed))

    def _spawning(self, words: tuple[str, ...], env: dict[str, str]) -> Callable[[], Process | Spawned]:
        """
        Return a function that starts a program in a session or a group of its own.

        All that can be done before the clock starts is done here. `posix_spawn` adds as little to the time of a program
        as hyperfine does, and 0.1 ms less than `subprocess`.
        """
        if sys.platform != "linux":
            return lambda: self._popen(words, env)
        program = self._program(words)
        files: list[Any] = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        if self._tail is not None:
            files.append((os.POSIX_SPAWN_DUP2, self._tail.pipe, 2))
        if self._sink is not None:
            files.append((os.POSIX_SPAWN_DUP2, self._sink.pipe, 1))
        elif self._output != "inherit":
            path = os.devnull if self._output == "null" else self._output
            files.append((os.POSIX_SPAWN_OPEN, 1, path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666))
        elif self._aside:
            files.append((os.POSIX_SPAWN_DUP2, 2, 1))
        # Python ignores these, and a program should not.
        signals = [signal.SIGPIPE, signal.SIGXFSZ]
        own: dict[str, Any] = {"setsid": True} if self._terminal else {"setpgroup": 0}
        return lambda: Spawned(os.posix_spawn(program, words, env, file_actions=files, setsigdef=signals, **own))

    def _popen(self, words: tuple[str, ...], env: dict[str, str]) -> Process:
        """Start a program where `posix_spawn` cannot do all that is needed."""
        with contextlib.ExitStack() as opened:
            inherited = 2 if self._aside else None
            out: Any = {"null": subprocess.DEVNULL, "inherit": inherited, "pipe": subprocess.DEVNULL}.get(self._output)
            if self._sink is not None:
                out = self._sink.pipe
            elif self._output not in OUTPUTS:
                out = opened.enter_context(open(self._output, "wb"))
            err = subprocess.DEVNULL if self._output != "inherit" else None
            return subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err if self._tail is None else self._tail.pipe,
                env=env,
                start_new_session=True,
            )

    def _wait(self, process: Process | Spawned, mark: str) -> tuple[float, float, float]:
        """Wait for the end of a process; return the clock then, and the seconds that it and its children computed."""
        try:
            if not hasattr(os, "wait4"):  # Windows
                process.wait()
                return self._clock(), math.nan, math.nan
            _, status, usage = os.wait4(process.pid, 0)
            end = self._clock()
            process.returncode = os.waitstatus_to_exitcode(status)
            return end, usage.ru_utime, usage.ru_stime
        except BaseException:
            self.running.kill(mark)
            process.wait()
            raise

    def _program(self, words: Sequence[str]) -> str:
        """Return the path of the program that a command begins with."""
        name = words[0]
        found = self._programs.get(name) or shutil.which(name)
        if found is None:
            if os.sep not in name:  # posix_spawn would look for it in the current folder
                raise CommandError(_cannot_run(words, os.strerror(errno.ENOENT)))
            return name
        self._programs[name] = found
        return found


class Tail:
    """
    The end of what commands print, one command after the other, in a pipe that is read by a thread.

    The thread sleeps until something is printed. Where nothing is, it takes no time from the command that is timed.

    Attributes
    ----------
    pipe
        Where the commands print to.
    """

    def __init__(self) -> None:
        self._reader, self.pipe = os.pipe()
        os.set_blocking(self._reader, False)
        self._kept, self._guard = bytearray(), threading.Lock()
        weakref.finalize(self, os.close, self.pipe)
        reading = threading.Thread(
            target=_follow, args=(self._reader, self._kept, self._guard), daemon=True, name="equipoise-output"
        )
        reading.start()

    def take(self) -> bytes:
        """Return the end of what was printed since this was called last."""
        with self._guard:
            _read(self._reader, self._kept)
            found = bytes(self._kept)
            self._kept.clear()
        return found


def _follow(reader: int, kept: bytearray, guard: threading.Lock) -> None:
    """Read what is printed as it comes, until nobody can print any more."""
    printed = select.poll()
    printed.register(reader, select.POLLIN)
    while True:
        printed.poll()
        with guard:
            if _read(reader, kept):
                os.close(reader)
                return


def _read(reader: int, kept: bytearray) -> bool:
    """Read what a pipe holds, and keep the end of it; return whether nothing can follow."""
    try:
        more = os.read(reader, _PIPE)
    except BlockingIOError:
        return False
    kept += more
    del kept[:-_TAIL]
    return not more


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


def _cannot_run(words: Sequence[str], reason: str | None) -> str:
    """Say that a command cannot be run; one that is a single word may have been meant as an argument."""
    hint = "; quote a command and its arguments as one" if len(words) == 1 else ""
    return f"cannot run {words[0]!r}: {reason}{hint}"


def _has_terminal() -> bool:
    """Return whether this process has a terminal that a program could open."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def program_of(command: str) -> str:
    """Return the name of the program that a command line begins with; all of it, where the first word is none."""
    first = " ".join(command.split()[:1])
    return command.strip() if "=" in first or _SHELL_SYNTAX.search(first) else first.rpartition("/")[2]


def needs_shell(command: str) -> bool:
    """Return whether a command line means something else without a shell."""
    if _SHELL_SYNTAX.search(_QUOTED.sub("", command)):
        return True
    first = _split(command)[0]
    return "=" in first or (first in _BUILT_IN and shutil.which(first) is None)


def shell_for(commands: Iterable[str], wanted: str) -> str | None:
    """
    Return the shell that runs these commands, or None where they are run without one.

    Parameters
    ----------
    commands
        The command lines.
    wanted
        A shell, which may have arguments such as "bash --norc", or "default" for /bin/sh, or "none", or "auto" for
        /bin/sh if any command needs one: either all are run by a shell or none is, so that their times can be compared.
    """
    if wanted == "none":
        return None
    if wanted in ("default", "auto"):
        return "/bin/sh" if wanted == "default" or any(map(needs_shell, commands)) else None
    words = _split(wanted)
    if not words or shutil.which(words[0]) is None:
        raise InvalidInput(f"shell must be a program, 'none' or 'auto', got {wanted!r}")
    return wanted


def words_of(command: str, shell: str | None) -> list[str]:
    """Return the program and the arguments that run a command line."""
    if shell is not None:
        return [*_split(shell), "-c", command]
    return _split(command)


def _split(command: str) -> list[str]:
    """Return the words of a command line, as a shell has them."""
    words: list[str] = []
    word: str | None = None
    place = 0
    while place < len(command):
        found = _PIECE.match(command, place)
        if found is None:
            lacks = "No escaped character" if command[place] == "\\" else "No closing quotation"
            raise InvalidInput(f"cannot split {command!r} into words: {lacks}")
        place = found.end()
        kind = found.lastgroup
        if kind == "break":
            words, word = words if word is None else [*words, word], None
        elif kind == "double":
            word = (word or "") + _ESCAPED.sub(lambda escaped: escaped[1].strip("\n"), found[kind])
        elif kind is not None:  # else the line is continued
            word = (word or "") + found[kind]
    return words if word is None else [*words, word]
