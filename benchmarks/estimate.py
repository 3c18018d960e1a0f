"""
What `estimate` costs beside the samples: microseconds a sample in this thread, in arrays, with a store, on Dask.

Run it with `make bench`. The last line is one JSON object. Times are the best of five rounds, and beside each stands
the same sampler called in a bare loop. It fails beyond 30 microseconds a sample in this thread or 1 in arrays, and
below 80% of the ideal on a Dask cluster of two workers with samples of a millisecond, and where the first rounds of a
study with a precision take more than three times as long for 200,000 arms as for 200.
"""

from __future__ import annotations

import contextlib
import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import equipoise as eq

ROUNDS = 5
ARMS = [f"arm {k}" for k in range(10)]


def best(work: Callable[[], Any], samples: int) -> float:
    """Microseconds a sample, the best of the rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) / samples * 1e6)
    return round(min(times), 3)


def beside(work: Callable[[], Any], bare: Callable[[], Any], samples: int) -> dict[str, float]:
    ours, theirs = best(work, samples), best(bare, samples)
    return {
        "microseconds": ours,
        "bare_microseconds": theirs,
        "overhead": round(ours - theirs, 3),
        "ratio": round(ours / theirs, 2),
    }


def one_at_a_time(store: str | None = None, samples: int = 20_000) -> dict[str, float]:
    drawn: list[float] = np.random.default_rng(1).normal(size=(4 * ROUNDS) * samples).tolist()
    values = iter(drawn)

    def measure(arm: str) -> float:
        return next(values)

    def bare() -> None:
        for _ in range(samples):
            measure("arm 0")

    rounds = iter(range(ROUNDS))

    def work() -> None:
        path = None if store is None else f"{store}{next(rounds)}.db"
        eq.estimate(measure, budget=samples, arms=ARMS, progress=False, store=path)

    return beside(work, bare, samples)


def arrays(store: str | None = None, samples: int = 1_000_000) -> dict[str, float]:
    rng = np.random.default_rng(1)

    def measure(arm: str, size: int) -> Any:
        return rng.normal(size=size)

    rounds = iter(range(ROUNDS))

    def work() -> None:
        path = None if store is None else f"{store}{next(rounds)}.db"
        eq.estimate(measure, budget=samples, arms=ARMS, progress=False, store=path)

    return beside(work, lambda: measure("arm 0", samples), samples)


def first_rounds(arms: int) -> float:
    """Microseconds a sample of a study with a precision, in the best hundred of its first thousand samples."""
    at: list[float] = []

    def measure(arm: int) -> float:
        at.append(time.perf_counter())
        if len(at) > 1000:
            raise OSError("enough")
        return 10.0 + arm % 7

    with contextlib.suppress(eq.EquipoiseError):
        eq.estimate(measure, arms=arms, precision="5%", progress=False)
    return round(float(np.diff(at[::100]).min()) / 100 * 1e6, 3)


def nap(arm: str, seed: int) -> float:
    time.sleep(0.001)
    return (seed % 1000) / 1000


def naps(samples: int) -> int:
    for i in range(samples):
        nap("arm 0", i)
    return samples


def dask(samples: int = 10_000) -> dict[str, float]:
    """Beside a bare loop of half the samples on each of the two workers at once, which is the ideal."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        eq.estimate(nap, budget=200, arms=ARMS, executor=client, progress=False)  # so that the workers have it all
        ideals, times = [], []
        for _ in range(3):
            start = time.perf_counter()
            client.gather(client.map(naps, [samples // 2] * 2, pure=False))
            ideals.append(time.perf_counter() - start)
            start = time.perf_counter()
            eq.estimate(nap, budget=samples, arms=ARMS, executor=client, progress=False)
            times.append(time.perf_counter() - start)
    return {
        "seconds": round(min(times), 3),
        "ideal_seconds": round(min(ideals), 3),
        "share": round(min(ideals) / min(times), 3),
    }


def main() -> None:
    eq.estimate(lambda arm: 1.0, budget=100, arms=ARMS, progress=False)  # compile
    with tempfile.TemporaryDirectory() as folder:
        report: dict[str, Any] = {
            "one_at_a_time": one_at_a_time(),
            "arrays": arrays(),
            "one_at_a_time_sqlite": one_at_a_time(str(Path(folder) / "one")),
            "arrays_sqlite": arrays(str(Path(folder) / "many"), samples=100_000),
            "first_rounds": {str(arms): first_rounds(arms) for arms in (200, 200_000)},
            "dask_two_workers_1ms": dask(),
            "versions": {"equipoise": eq.__version__, "python": platform.python_version(), "numpy": np.__version__},
        }
    for name, value in report.items():
        print(name, value)
    print(json.dumps(report))
    too_slow = [
        report["one_at_a_time"]["overhead"] > 30,
        report["arrays"]["overhead"] > 1,
        report["dask_two_workers_1ms"]["share"] < 0.8,
        report["first_rounds"]["200000"] > 3 * report["first_rounds"]["200"],
    ]
    sys.exit(int(any(too_slow)))


if __name__ == "__main__":
    main()
