"""Shell commands as samplers: the number they print, the time they take, or whether they succeed."""

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

from equipoise.errors import EquipoiseError
from equipoise.inputs import printable

MEASURES: Final = ("stdout", "seconds", "exit")
# Exit codes of a shell that could not run the command at all, which says nothing about the command.
_NOT_RUN: Final = (126, 127)
# How much of what a command printed goes into a message.
_LINES, _CHARACTERS = 3, 300

Process = subprocess.Popen[bytes]


class CommandError(EquipoiseError):
    """A command did not give a sample; the message goes on from "failed: "."""


class Running:
    """The commands that are running, so that none outlives the study."""

    def __init__(self) -> None:
        self._processes: set[Process] = set()
        self._guard = threading.Lock()
        self._stopped = False

    def start(self, command: str, folder: Path, out: IO[bytes] | int, err: IO[bytes], env: dict[str, str]) -> Process:
        """Start a command; raise CommandError after `stop`."""
        with self._guard:
            if self._stopped:
                raise CommandError("the study was stopped")
            # A session of its own, so that it can be killed with every process it starts, and so that Ctrl-C reaches
            # this process alone.
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
        """Forget a command that has ended."""
        with self._guard:
            self._processes.discard(process)

    def stop(self) -> None:
        """Kill all commands, and start no more."""
        with self._guard:
            self._stopped = True
            for process in self._processes:
                kill(process)


def kill(process: Process) -> None:
    """Kill a process and every process it started."""
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
        The name of the arm, and the command line for the shell. The environment variables EQUIPOISE_ARM and
        EQUIPOISE_SEED hold the arm and a seed.
    measure
        "stdout", the number on the last line of the output; "seconds", the time from start to end; "exit", 1 if the
        exit code is 0, else 0.
    folder
        The folder that the command runs in.
    timeout
        Seconds after which the command is killed, with every process it started: a failure, or a 0 where the exit code
        is measured.
    running
        The commands that are running now; it becomes one of them.
    clock
        The clock that "seconds" are read from.
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
        # Files rather than pipes: a child that keeps running would hold a pipe open, and its reader would wait.
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
                raise CommandError(
                    f"the command took longer than {self.timeout:g} seconds and was killed{_end_of(err)}"
                )
            if process.returncode != 0:
                raise CommandError(f"{_ended(process.returncode)}{_end_of(err)}")
            return seconds if self.measure == "seconds" else _number(out, err)

    def _wait(self, process: Process) -> bool:
        """Wait for the end of a command; return whether it was killed after the timeout."""
        late = threading.Event()

        def end() -> None:
            late.set()
            kill(process)

        # Popen.wait with a timeout polls, which would show in the measured seconds.
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
    return f"exit code {code}" if code >= 0 else f"the command was killed by {_signal(-code)}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal has no name
        return f"signal {number}"


def _number(out: IO[bytes], err: IO[bytes]) -> float:
    lines = _lines(out)
    if not lines:
        raise CommandError(f"a sample must be a number that the command prints, got nothing{_end_of(err)}")
    try:
        return float(lines[-1])
    except ValueError:
        raise CommandError(
            f"a sample must be a number on the last line printed, got {lines[-1][:80]!r}{_end_of(err)}"
        ) from None


def _end_of(err: IO[bytes]) -> str:
    lines = _lines(err)
    return f"; its stderr ends with: {printable(' / '.join(lines[-_LINES:])[-_CHARACTERS:])}" if lines else ""


def _lines(file: IO[bytes]) -> list[str]:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 4096))
    text = file.read().decode(errors="replace")
    return [line.strip() for line in text.splitlines() if line.strip()]
