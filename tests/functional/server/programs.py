"""Programs in processes of their own, which can be stopped, killed and started again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.serving import ADMIN
from tests.waiting import HANG

# From which modules of the tests can be run.
_ROOT = Path(__file__).parents[3]


class Program:
    """
    A module that runs as a program.

    Parameters
    ----------
    command
        The module and its arguments.
    """

    def __init__(self, *command: str) -> None:
        self._command = (sys.executable, "-m", *command)
        self.start()

    def start(self) -> None:
        """Start it, once more."""
        environment = os.environ | {"EQUIPOISE_ADMIN_TOKEN": ADMIN}
        self.process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=_ROOT
        )

    def kill(self) -> None:
        """End it without a chance to tidy up."""
        self.process.send_signal(signal.SIGKILL)
        self.ended()

    def ended(self) -> tuple[int, str]:
        """Wait for its end, without any more steps to wait for; return the exit code and what it said."""
        _, said = self.process.communicate(timeout=HANG)
        return self.process.returncode, said.decode()

    def nudge(self) -> None:
        """Let it go on by a step, if it is alive."""
        assert self.process.stdin is not None
        with suppress(OSError, ValueError):
            self.process.stdin.write(b".")
            self.process.stdin.flush()


class Server(Program):
    """
    A server at a free port.

    Parameters
    ----------
    db
        The database.
    version
        The module to run, and its arguments before the command.
    """

    def __init__(self, db: str, *version: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = int(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{port}"
        super().__init__(*(version or ("equipoise",)), "serve", "--db", db, "--port", str(port))
