"""The PostgreSQL server of the tests does not outlive them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from tests.postgres import alive
from tests.waiting import HANG, until

_PROGRAM = """
import sys
from tests.postgres import running

with running() as url:
    print(url, flush=True)
    sys.stdin.read()
"""


def test_it_ends_with_a_process_that_is_killed() -> None:
    command = [sys.executable, "-c", _PROGRAM]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        folder = Path(str(conninfo_to_dict(process.stdout.readline().strip())["host"]))
        server = int((folder / "postmaster.pid").read_text().split()[0])
        assert alive(server)
        process.send_signal(signal.SIGKILL)
        process.wait(HANG)
    until(lambda: not alive(server) and not folder.exists(), "the server and its folder are gone")
