"""
Four writers of one study, and faults that chance chooses: what was acknowledged stays, and the order of calls holds.

In the spirit of Jepsen: writers record what they call and what they are answered, and `checking` compares the histories
with the log. Twenty faults in each run, five hundred in the slow suite.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import HANG

ROOT = Path(__file__).parents[3]
CREWS = (
    ("visitor", "threads", "here", "processes"),
    ("visitor", "visitor", "visitor", "visitor"),
    ("here", "here", "workers", "processes"),
    ("threads", "threads", "workers", "here"),
    ("visitor", "here", "workers", "workers"),
)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that a server can be started in, as another user where the tests are run by root."""
    with tempfile.TemporaryDirectory(prefix="equipoise-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def broken(folder: Path, database: str, faults: int, seed: int, crew: tuple[str, ...]) -> dict[str, Any]:
    """Return what `faulting` found; it fails itself where something is wrong."""
    command = [sys.executable, "-m", "tests.functional.store.faulting", str(folder), database, str(faults), str(seed)]
    done = subprocess.run(
        [*command, *crew],
        cwd=ROOT,
        env={"XDG_RUNTIME_DIR": str(folder), **os.environ},
        capture_output=True,
        text=True,
        timeout=10 * HANG,
        check=False,
    )
    assert done.returncode == 0, f"seed {seed}, crew {crew}: {done.stderr}"
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["faults"] == faults
    assert found["tickets"] > 0
    return found


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_20_faults(folder: Path, database: str) -> None:
    broken(folder, database, 10, 1, CREWS[0])


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize("crew", CREWS, ids=" ".join)
def test_500_faults(folder: Path, database: str, crew: tuple[str, ...]) -> None:
    print(broken(folder, database, 50, 100 + CREWS.index(crew), crew))
