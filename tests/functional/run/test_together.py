"""Several calls of `estimate` on one store at the same time: one study, whose samples are those of one call alone."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.store import replay
from tests.functional.run.together import ARMS, SEED, check_whole, value
from tests.waiting import HANG

ROOT = Path(__file__).parents[3]


def together(where: str, folder: Path) -> None:
    """Run the drivers of `together`, which fails itself where something is wrong."""
    command = [sys.executable, "-m", "tests.functional.run.together", where, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3 * HANG, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 10


def test_processes_on_sqlite(tmp_path: Path) -> None:
    together(f"{tmp_path}/study", tmp_path)


def test_processes_on_postgresql(postgres: str, tmp_path: Path) -> None:
    together(f"{postgres}#together", tmp_path)


@pytest.mark.parametrize("drivers", [2, 4])
@pytest.mark.parametrize("executor", [None, 2])
def test_threads(where: str, executor: int | None, drivers: int) -> None:
    """All have begun a sample before any goes on."""
    barrier = threading.Barrier(drivers)

    def call() -> eq.Result:
        lock, first = threading.Lock(), [barrier]

        def sample(arm: str, seed: int) -> float:
            with lock:
                mine = first.pop() if first else None
            if mine is not None:
                mine.wait(HANG)
            return value(arm, seed)

        return eq.estimate(sample, 300, arms=ARMS, seed=SEED, store=where, executor=executor)

    with ThreadPoolExecutor(drivers) as pool:
        results = [call.result(HANG) for call in [pool.submit(call) for _ in range(drivers)]]
    assert [result.samples for result in results] == [300] * drivers
    known = replay(where).study.result()
    assert all(dict(result.means) == dict(known.means) for result in results)
    check_whole(where, 300)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning")
def test_threads_with_processes_of_their_own(where: str) -> None:
    with ExitStack() as stack:
        pools = [stack.enter_context(ProcessPoolExecutor(2)) for _ in range(2)]
        for each in pools:
            each.submit(int).result(HANG)  # they fork now, before there are threads
        calls = stack.enter_context(ThreadPoolExecutor(2))
        options: dict[str, Any] = {"arms": ARMS, "seed": SEED, "store": where}
        found = [calls.submit(partial(eq.estimate, value, 300, executor=pool, **options)) for pool in pools]
        assert [call.result(HANG).samples for call in found] == [300, 300]
    check_whole(where, 300)
