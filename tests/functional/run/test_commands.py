"""Timing real commands, and whether what drifts hits all arms alike."""

from __future__ import annotations

import itertools
import json
import math
import random
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import equipoise as eq

# With levels at which the times of whole processes differ by half or more, so that the order is no matter of chance.
COMPRESSORS = {"zlib": "data, 1", "bz2": "data", "lzma": "data, preset=3"}
REPEATS = 5


def test_compressors_are_timed_to_ten_percent_in_the_order_that_others_find(tmp_path: Path) -> None:
    rng = random.Random(1)
    words = [bytes(rng.choices(range(97, 123), k=rng.randint(2, 9))) for _ in range(500)]
    (tmp_path / "data.txt").write_bytes(b" ".join(rng.choices(words, k=120_000)))
    run = "{} -I -c \"import {}; data = open('data.txt', 'rb').read(); {}.compress({})\""
    commands = {name: run.format(sys.executable, name, name, given) for name, given in COMPRESSORS.items()}
    lines = "".join(f"{name} = {json.dumps(command)}\n" for name, command in commands.items())
    study = tmp_path / "study.toml"
    study.write_text(
        f'budget = 300\nprecision = "10%"\nmeasure = "seconds"\nwarmup = 1\nstore = "study.db"\n[arms]\n{lines}'
    )
    done = subprocess.run(
        [sys.executable, "-m", "equipoise", "run", str(study), "--jobs", "1", "--json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    known = json.loads(done.stdout)
    assert known["precision_reached"] is True
    # What is measured is how long an answer takes: no cause for a warning.
    assert "slow answers" not in known["certificate"]
    for name, (low, high) in known["intervals"].items():
        assert (high - low) / 2 <= 0.1 * known["means"][name]
    means = known["means"]
    assert sorted(COMPRESSORS, key=means.__getitem__) == sorted(COMPRESSORS, key=_times(commands, tmp_path).__getitem__)
    print(f"{known['samples']} runs; seconds: {means}")


def _times(commands: dict[str, str], folder: Path) -> dict[str, float]:
    """Median seconds: hyperfine's where it is there, else of runs in turn."""
    if shutil.which("hyperfine"):
        found = folder / "hyperfine.json"
        words = ["hyperfine", "--warmup", "1", "--runs", str(REPEATS), "--export-json", str(found), *commands.values()]
        subprocess.run(words, cwd=folder, check=True, capture_output=True)
        results = json.loads(found.read_text())["results"]
        return {name: each["median"] for name, each in zip(commands, results, strict=True)}
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(REPEATS):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, shell=True, cwd=folder, check=True)
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(each) for name, each in seconds.items()}


def _spread(drift: float, rounds: int | None, seed: int) -> float:
    """How far apart the means of three like arms are found when all rise by `drift` in the course of 999 samples."""
    order = itertools.count()

    def sample(arm: int, seed: int) -> float:
        return drift * next(order) / 999 + random.Random(seed).gauss(0, 1)

    means = eq.estimate(sample, 999, arms=3, seed=seed, rounds=rounds).means.array
    return float(means.max() - means.min())


def test_drift_hits_all_arms_alike() -> None:
    """
    Three like arms with a standard deviation of 1, over 20 studies of 999 samples.

    The means of independent arms lie 1.69 * sqrt(1/333) = 0.093 apart on average (standard deviation 0.049, so that an
    average of 20 has a standard error of 0.011). A drift by one standard deviation adds nothing that is seen. One by 30
    leaves an arm that rests behind: with rounds of two, the means lie less than half as far apart as without.
    """
    found: dict[tuple[float, int | None], float] = {}
    for drift in (0, 1, 3, 30):
        for rounds in (2, None):
            spreads = [_spread(drift, rounds, seed) for seed in range(20)]
            found[drift, rounds] = statistics.mean(spreads)
            error = statistics.stdev(spreads) / math.sqrt(20)
            print(f"a rise by {drift}, rounds={rounds}: means {found[drift, rounds]:.3f} ± {error:.3f} apart")
    assert abs(found[0, 2] - 0.093) < 5 * 0.011
    assert found[1, 2] < 0.093 + 5 * 0.011
    assert found[30, 2] < found[30, None] / 2
