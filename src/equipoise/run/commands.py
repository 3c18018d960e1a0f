"""Shell commands as samplers: the number they print, the time they take, or whether they succeed."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, Protocol, TypeVar

from equipoise.base.errors import SamplerFailed
from equipoise.base.inputs import number_in, printable, shown
from equipoise.store import inside

MEASURES: Final = ("stdout", "seconds", "exit")
# Exit codes of a shell that could not run the command at all, which says nothing about the command.
_NOT_RUN: Final = (126, 127)
# How much a command may print where the number is on the last line, and how much of its stderr is looked at, in bytes.
_MOST, _TAIL = 16_000_000, 4096
# How much of that goes into a message.
_LINES, _CHARACTERS = 3, 300
# The name of the environment variable by which the processes of a command are known.
MARK: Final = "EQUIPOISE_COMMAND"

Process = subprocess.Popen[bytes]


class Started(Protocol):
    """The interface of a process that was started: its exit code is None until it was waited for."""

    pid: int
    returncode: int | None

    def kill(self) -> None: ...


S = TypeVar("S", bound=Started)


class CommandError(SamplerFailed):
    """A command did not give a sample; the message goes on from "failed: "."""


class Running:
    """
    The commands that are running, so that none outlives the study.

    Each has a mark of its own in its environment, which every process has that it starts, wherever that process goes.
    """

    def __init__(self) -> None:
        # By their marks, which are here before the processes are.
        self._processes: dict[str, Started | None] = {}
        self._guard = threading.Lock()
        self._stopped = False

    def start(
        self,
        mark: str,
        command: str | Sequence[str],
        folder: Path,
        out: IO[bytes] | int | None,
        err: IO[bytes] | int | None,
        env: dict[str, str],
    ) -> Process:
        """Start a command line with the shell, or a program with its arguments; raise CommandError after `stop`."""
        # A session of its own, so that it can be killed with every process it starts, and so that Ctrl-C reaches this
        # process alone.
        return self.launch(
            mark,
            lambda: subprocess.Popen(
                command,
                shell=isinstance(command, str),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=env | inside.environment() | {MARK: mark},
                start_new_session=True,
            ),
        )

    def launch(self, mark: str, begin: Callable[[], S]) -> S:
        """Start a process, which must lead a group and have the mark; raise CommandError after `stop`."""
        with self._guard:
            if self._stopped:
                raise CommandError("the study was stopped")
            self._processes[mark] = None
            process = self._processes[mark] = begin()
        return process

    def ended(self, mark: str) -> None:
        """Forget a command that has ended."""
        with self._guard:
            self._processes.pop(mark, None)

    def kill(self, mark: str) -> None:
        """Kill a command, and every process it started."""
        with self._guard:
            if mark in self._processes:
                _kill({mark: self._processes[mark]})

    def stop(self) -> None:
        """Kill all commands, and start no more."""
        with self._guard:
            self._stopped = True
            _kill(self._processes)


def _kill(processes: Mapping[str, Started | None]) -> None:
    """Kill commands, by their marks, and all that they started: their groups and, on Linux, those who left them."""
    running = [process for process in processes.values() if process is not None and process.returncode is None]
    found = _family({process.pid for process in running}, processes)
    # The groups first, each at once: a shell would go on with its next command when one of its children is killed.
    for process in running:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
    killed: set[int] = set()
    while found:
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed |= found
        # Again, as what was killed may just have started another one.
        found = _family(killed, processes) - killed


def _family(ancestors: Set[int], marks: Iterable[str]) -> set[int]:
    """Return the processes that descend from some or have one of the marks; empty where there is no /proc."""
    wanted = {f"{MARK}={mark}".encode() for mark in marks}
    parents: dict[int, int] = {}
    found: set[int] = set()
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile, or is another user's
            # Before them is the name of the program, in parentheses, which may contain anything.
            state, parent, *_ = (path / "stat").read_bytes().rpartition(b")")[2].split()
            if state != b"Z":
                pid = int(path.name)
                parents[pid] = int(parent)
                if pid in ancestors or not wanted.isdisjoint((path / "environ").read_bytes().split(b"\0")):
                    found.add(pid)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


class Output:
    """
    What a command prints, read from a pipe as it comes: however much that is, it fills no disk.

    Parameters
    ----------
    most
        How many bytes to keep, the last ones.
    too_much
        What to do once there are more, if anything.

    Attributes
    ----------
    pipe
        Where the command prints to.
    """

    def __init__(self, most: int, too_much: Callable[[], None] | None = None) -> None:
        self._most, self._too_much = most, too_much
        self._kept = bytearray()
        # Written to the pipe when the command has ended: a process it leaves behind may hold the pipe open for ever.
        self._end = secrets.token_bytes(16)
        self._reader, self.pipe = os.pipe()
        self._thread = threading.Thread(target=self._read, daemon=True, name="equipoise-output")

    def __enter__(self) -> Output:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.text()
        os.close(self.pipe)
        os.close(self._reader)

    def text(self) -> bytes:
        """Return what was printed, or the last of it, when the command has ended."""
        if self._thread.is_alive():
            os.write(self.pipe, self._end)
            self._thread.join()
        return bytes(self._kept[-self._most :])

    def _read(self) -> None:
        kept, most = self._kept, self._most + len(self._end)
        while True:
            before = len(kept)
            kept += os.read(self._reader, 2**16)
            at = kept.find(self._end, max(0, before - len(self._end)))
            if at >= 0:
                del kept[at:]
                return
            if len(kept) > most:
                del kept[:-most]
                if self._too_much is not None:
                    self._too_much()
                    self._too_much = None


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
        "stdout", the number that is the last line of the output, of at most 16 MB; "seconds", the time from start to
        end; "exit", 1 if the exit code is 0, else 0.
    folder
        The folder that the command runs in.
    timeout
        Seconds after which the command is killed, with every process it started (on other systems than Linux, with
        those that did not leave its process group): a failure, or a 0 where the exit code is measured.
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
        mark, flooded = secrets.token_hex(16), threading.Event()

        def end_flood() -> None:
            flooded.set()
            self.running.kill(mark)

        printed = Output(_MOST, end_flood) if self.measure == "stdout" else contextlib.nullcontext()
        with Output(_TAIL) as err, printed as out:
            start = self.clock()
            try:
                process = self.running.start(
                    mark, self.command, self.folder, subprocess.DEVNULL if out is None else out.pipe, err.pipe, env
                )
                late = self._wait(process, mark)
            except BaseException:
                self.running.kill(mark)
                raise
            finally:
                self.running.ended(mark)
            seconds = self.clock() - start
            if self.measure == "exit" and (late or process.returncode not in _NOT_RUN):
                return float(process.returncode == 0 and not late)
            if flooded.is_set():
                raise CommandError(f"the command printed more than {_MOST // 10**6} MB and was killed")
            if late:
                raise CommandError(
                    f"the command took longer than {self.timeout:g} seconds and was killed{end_of(err.text())}"
                )
            if process.returncode != 0:
                raise CommandError(f"{ended_by(process.returncode)}{end_of(err.text())}")
            return seconds if out is None else _number(out, err)

    def _wait(self, process: Process, mark: str) -> bool:
        """Wait for the end of a command; return whether it was killed after the timeout."""
        late = threading.Event()

        def end() -> None:
            late.set()
            self.running.kill(mark)

        # Popen.wait with a timeout polls, which would show in the measured seconds.
        timer = None if self.timeout is None else threading.Timer(min(self.timeout, threading.TIMEOUT_MAX), end)
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            process.wait()
        except BaseException:
            self.running.kill(mark)
            process.wait()
            raise
        finally:
            if timer is not None:
                timer.cancel()
        return late.is_set()


def ended_by(code: int) -> str:
    """Return how a command ended, in words."""
    return f"exit code {code}" if code >= 0 else f"the command was killed by {_signal(-code)}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal has no name
        return f"signal {number}"


def _number(out: Output, err: Output) -> float:
    text = out.text().rstrip()
    line = text[max(text.rfind(b"\n"), text.rfind(b"\r")) + 1 :].strip().decode(errors="replace")
    if not line:
        raise CommandError(f"a sample must be a number that the command prints, got nothing{end_of(err.text())}")
    try:
        return number_in(line)
    except ValueError:
        raise CommandError(
            f"a sample must be a number on the last line printed, got {shown(line)}{end_of(err.text())}"
        ) from None


def end_of(printed: bytes) -> str:
    """Return the last lines of a command's stderr, to add to a sentence; nothing if there are none."""
    lines = [line.strip() for line in printed.decode(errors="replace").splitlines() if line.strip()]
    return f"; its stderr ends with: {printable(' / '.join(lines[-_LINES:])[-_CHARACTERS:])}" if lines else ""
