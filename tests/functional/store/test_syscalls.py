"""The n-th system call fails, for every n: nothing acknowledged is lost or counted twice, one sentence or none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.functional.store.syscalls import WAYS
from tests.waiting import HANG

ROOT = Path(__file__).parents[3]
COMPILER = shutil.which("cc")
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the calls are those of Linux"),
    pytest.mark.skipif(COMPILER is None, reason="there is no C compiler to build syscalls.c with"),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory, if there is one: what the disk itself does is not looked at."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        yield Path(name)


def fail(folder: Path, step: int, *ways: str) -> int:
    """Let one of so many calls fail, in each of these ways; return how many calls failed."""
    library = folder / "syscalls.so"
    words = [str(COMPILER), "-shared", "-fPIC", "-O1", "-o", str(library), str(Path(__file__).with_name("syscalls.c"))]
    subprocess.run([*words, "-ldl"], check=True, timeout=HANG)
    done = subprocess.run(
        [sys.executable, "-m", "tests.functional.store.syscalls", str(folder), str(step), *ways],
        cwd=ROOT,
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        timeout=10 * HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    cases = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = [case for case in cases if "wrong" in case]
    first = "\n".join(f"{case['how']}, call {case['n']}: {case['wrong']}" for case in wrong[:3])
    assert not wrong, f"{len(wrong)} of {len(cases)} cases:\n{first}\n{done.stderr}"
    assert {case["how"] for case in cases} == set(ways)
    return sum(bool(case["failed"]) for case in cases)


def test_some_calls_fail(folder: Path) -> None:
    assert fail(folder, 83, *WAYS) > 20


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_every_call_fails(folder: Path, way: str) -> None:
    assert fail(folder, 1, way) > 50
