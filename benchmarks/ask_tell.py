"""
What a decision costs: nanoseconds per ask + tell, one by one and in batches, beside adaptive's BalancingLearner.

Run it with `make bench`. The last line is one JSON object. Times are the best of five rounds with the garbage
collector off, as `timeit` has it; for a million arms, the mean over rounds long enough to hold the refreshes of the
pooled variance. adaptive does the same work: one average per arm, samples asked and told one at a time.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import adaptive
import numba
import numpy as np

import equipoise as eq

ROUNDS = 5
VALUES = np.random.default_rng(0).normal(size=100_000).tolist()


def best(work: Callable[[], int]) -> float:
    """Nanoseconds per unit, the best of the rounds; `work` does some units and says how many."""
    times = []
    for _ in range(ROUNDS):
        gc.collect()
        gc.disable()
        start = time.perf_counter()
        units = work()
        times.append((time.perf_counter() - start) / units * 1e9)
        gc.enable()
    return round(min(times), 1)


def settled(arms: int) -> eq.Study:
    """A study with the default strategy in which every arm has its first samples."""
    study = eq.Study(arms)
    for _ in range(max(1, 5 * arms // len(VALUES))):
        study.tell_many(zip(study.ask(len(VALUES)), VALUES, strict=True))
    return study


def pairs(arms: int) -> float:
    study = settled(arms)

    def work() -> int:
        for value in VALUES:
            study.tell(study.ask(), value)
        return len(VALUES)

    return best(work)


def batches(arms: int, size: int = 1000) -> float:
    study = settled(arms)
    values = VALUES[:size]

    def work() -> int:
        for _ in range(50):
            study.tell_many(zip(study.ask(size), values, strict=True))
        return 50 * size

    return best(work)


def with_garbage_collection(arms: int) -> dict[str, float]:
    """The same in batches for as long as a real program would run, with the collector on and off."""
    study = settled(arms)
    values = VALUES[:1000]

    def per_sample() -> float:
        start = time.perf_counter()
        for _ in range(1000):
            study.tell_many(zip(study.ask(1000), values, strict=True))
        return round((time.perf_counter() - start) / 1e6 * 1e9, 1)

    on = per_sample()
    gc.disable()
    off = per_sample()
    gc.enable()
    return {"on": on, "off": off}


def adaptive_pairs(arms: int, samples: int) -> float:
    learners = [adaptive.AverageLearner(lambda seed: 0.0, atol=1e-6) for _ in range(arms)]
    learner = adaptive.BalancingLearner(learners)
    # Two of each arm, so that every variance is defined.
    for k in range(arms):
        for seed in range(2):
            learner.tell((k, seed), VALUES[2 * k + seed])

    def work() -> int:
        for value in VALUES[:samples]:
            (point,), _ = learner.ask(1)
            learner.tell(point, value)
        return samples

    return best(work)


def a_million_named_arms() -> dict[str, float]:
    names = [f"arm {k}" for k in range(10**6)]
    start = time.perf_counter()
    study = eq.Study(names, budget=10**7)
    study.ask()
    seconds = time.perf_counter() - start
    del study
    tracemalloc.start()
    eq.Study(names, budget=10**7)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {"seconds_to_start": round(seconds, 3), "megabytes": round(peak / 1e6, 1)}


FIRST = """
import time
start = time.perf_counter()
import equipoise as eq
study = eq.Study(["a", "b"], budget=200)
for value in (1.0, 2.0, 3.0, 5.0, 8.0, 13.0):
    study.tell(study.ask(), value)
str(study.result())
print(time.perf_counter() - start)
"""


def first_study() -> dict[str, float]:
    """Seconds from the import to a printed result, in a new process: with nothing compiled, and with all on disk."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"EQUIPOISE_CACHE_DIR": folder}
        cold, warm = (
            float(
                subprocess.run([sys.executable, "-c", FIRST], env=environment, check=True, capture_output=True).stdout
            )
            for _ in range(2)
        )
    return {"cold_seconds": round(cold, 2), "warm_seconds": round(warm, 2)}


def main() -> None:
    eq.Study(2).ask()  # compile
    report: dict[str, Any] = {
        "ns_per_pair": {str(arms): pairs(arms) for arms in (2, 10, 1000, 10**6)},
        "ns_per_sample_in_batches_of_1000": {str(arms): batches(arms) for arms in (2, 10, 1000, 10**6)},
        "ns_per_sample_in_batches_10_arms_by_garbage_collection": with_garbage_collection(10),
        "adaptive_ns_per_pair": {
            "2": adaptive_pairs(2, 20_000),
            "10": adaptive_pairs(10, 10_000),
            "1000": adaptive_pairs(1000, 500),
        },
        "a_million_named_arms": a_million_named_arms(),
        "first_study": first_study(),
        "versions": {
            "equipoise": eq.__version__,
            "adaptive": adaptive.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "numba": numba.__version__,
        },
    }
    report["adaptive_over_equipoise"] = {
        arms: round(ns / report["ns_per_pair"][arms], 1) for arms, ns in report["adaptive_ns_per_pair"].items()
    }
    for name, value in report.items():
        print(name, value)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
