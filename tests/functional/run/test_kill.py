"""kill -9 at moments that chance chooses: nothing that was acknowledged is lost, and nothing is counted twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import HANG

ROOT = Path(__file__).parents[3]


def kill(where: str, moments: int, seed: int) -> dict[str, Any]:
    """What `killing` found; it fails itself where something is wrong."""
    command = [sys.executable, "-m", "tests.functional.run.killing", where, str(moments), str(seed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=10 * HANG, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["kills"] >= moments
    return found


def test_killed_on_sqlite(tmp_path: Path) -> None:
    assert kill(f"{tmp_path}/study", moments=6, seed=11)["acknowledgements"] > 0


def test_killed_on_postgresql(postgres: str) -> None:
    assert kill(f"{postgres}#killed", moments=6, seed=12)["acknowledgements"] > 0


@pytest.mark.slow
def test_killed_a_hundred_times_on_sqlite(tmp_path: Path) -> None:
    print(kill(f"{tmp_path}/study", moments=100, seed=13))


@pytest.mark.slow
def test_killed_a_hundred_times_on_postgresql(postgres: str) -> None:
    print(kill(f"{postgres}#killed-often", moments=100, seed=14))
