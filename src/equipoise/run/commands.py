"""Shell commands as samplers: what they print, how long they take, or whether they pass."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

MEASURES: Final = ("stdout", "seconds", "exit")
# By these a shell says that it could not run the command at all, which is no answer of the command.
_NOT_RUN: Final = (126, 127)
# How much of what a command printed goes into a message.
_LINES, _LETTERS = 3, 300

Process = subprocess.Popen[bytes]


class CommandError(Exception):
    """A command gave no sample."""


class Running:
    """The commands that run now, so that none outlives the study."""

    def __init__(self) -> None:
        self._processes: set[Process] = set()
        self._guard = threading.Lock()
        self._stopped = False

    def start(self, command: str, folder: Path, out: IO[bytes] | int, err: IO[bytes], env: dict[str, str]) -> Process:
        """Start a command, unless all were stopped."""
        with self._guard:
            if self._stopped:
                raise CommandError("the study was stopped")
            # A session of its own, so that it can be stopped with all that it starts, and so that Ctrl-C reaches this
            # process alone, which decides.
            process = subprocess.Popen(
                command,
                shell=True,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=env,
                start_new_session=True,
            )
            self._processes.add(process)
        return process

    def ended(self, process: Process) -> None:
        """A command is over."""
        with self._guard:
            self._processes.discard(process)

    def stop(self) -> None:
        """End all of them, and start none any more."""
        with self._guard:
            self._stopped = True
            for process in self._processes:
                kill(process)


def kill(process: Process) -> None:
    """End a process with all that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


@dataclass(frozen=True)
class Command:
    """
    A sampler that runs a shell command.

    Parameters
    ----------
    arm, command
        Whose it is, and what the shell is given. It finds the arm and a seed in EQUIPOISE_ARM and EQUIPOISE_SEED.
    measure
        "stdout", the number on the last line that it prints; "seconds", from its start to its end; "exit", 1 if its
        exit code is 0, else 0.
    folder
        Where it runs.
    timeout
        Seconds after which it is killed, with all that it started: a failure, or a 0 where the exit code is measured.
    running
        The commands that run now, of which it becomes one.
    clock
        What "seconds" are read off.
    """

    arm: str
    command: str
    measure: str
    folder: Path
    timeout: float | None = None
    running: Running = field(default_factory=Running, repr=False)
    clock: Callable[[], float] = field(default=time.perf_counter, repr=False)

    def __call__(self, seed: int = 0) -> float:
        # 31 bits of the seed: shells and many programs take no larger number.
        env = os.environ | {"EQUIPOISE_ARM": self.arm, "EQUIPOISE_SEED": str(seed >> 33)}
        # Files and no pipes: a child that stays behind would keep a pipe open, and a reader waiting.
        with tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as out:
            start = self.clock()
            process = self.running.start(
                self.command, self.folder, out if self.measure == "stdout" else subprocess.DEVNULL, err, env
            )
            late = self._wait(process)
            seconds = self.clock() - start
            if self.measure == "exit" and (late or process.returncode not in _NOT_RUN):
                return float(process.returncode == 0 and not late)
            if late:
                raise CommandError(f"it took longer than {self.timeout:g} seconds and was stopped{_end_of(err)}")
            if process.returncode != 0:
                raise CommandError(f"{_ended(process.returncode)}{_end_of(err)}")
            return seconds if self.measure == "seconds" else _number(out, err)

    def _wait(self, process: Process) -> bool:
        """Wait for its end; whether it had to be killed for being late."""
        late = threading.Event()

        def end() -> None:
            late.set()
            kill(process)

        # Popen.wait with a timeout looks at intervals, which would be seen in the seconds.
        timer = threading.Timer(self.timeout, end) if self.timeout is not None else None
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            process.wait()
        except BaseException:
            kill(process)
            process.wait()
            raise
        finally:
            if timer is not None:
                timer.cancel()
            self.running.ended(process)
        return late.is_set()


def _ended(code: int) -> str:
    return f"it ended with exit code {code}" if code >= 0 else f"it was ended by {signal.Signals(-code).name}"


def _number(out: IO[bytes], err: IO[bytes]) -> float:
    lines = _lines(out)
    if not lines:
        raise CommandError(f"it printed nothing, and a number is needed{_end_of(err)}")
    try:
        return float(lines[-1])
    except ValueError:
        raise CommandError(f"the last line it printed is no number: {lines[-1][:80]!r}{_end_of(err)}") from None


def _end_of(err: IO[bytes]) -> str:
    lines = _lines(err)
    return f"; its stderr ends with: {' / '.join(lines[-_LINES:])[-_LETTERS:]}" if lines else ""


def _lines(file: IO[bytes]) -> list[str]:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 4096))
    text = file.read().decode(errors="replace")
    return [line.strip() for line in text.splitlines() if line.strip()]
