"""Commands whose numbers are scripted, and whether what drifts hits all arms alike."""

from __future__ import annotations

import itertools
import json
import math
import random
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import equipoise as eq


def study(folder: Path, text: str) -> dict[str, Any]:
    """What `equipoise run --json` prints for a study of this text."""
    path = folder / "study.toml"
    path.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "equipoise", "run", str(path), "--jobs", "1", "--json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    known: dict[str, Any] = json.loads(done.stdout)
    return known


def test_commands_are_known_to_ten_percent_in_their_order(tmp_path: Path) -> None:
    """
    Uniform on whole numbers from c - c/4 to c + c/4, for c = 100, 300, 900: means that are c, known to a tenth of it.

    The intervals hold at all times at once with 95% for all three, so that with this seed they do hold.
    benchmarks/commands.py does the same with the seconds of real programs.
    """
    centres = {"small": 100, "middle": 300, "large": 900}
    lines = [f'{name} = "echo $(({c - c // 4} + EQUIPOISE_SEED % {c // 2 + 1}))"\n' for name, c in centres.items()]
    text = 'budget = 600\nprecision = "10%"\nmeasure = "stdout"\nwarmup = 1\nseed = 1\nstore = "study.db"\n[arms]\n'
    known = study(tmp_path, text + "".join(lines))
    assert known["precision_reached"] is True
    assert known["samples"] < 600
    for name, (low, high) in known["intervals"].items():
        assert (high - low) / 2 <= 0.1 * known["means"][name]
        assert low < centres[name] < high
    assert sorted(centres, key=known["means"].__getitem__) == ["small", "middle", "large"]


def test_where_seconds_are_measured_slow_answers_are_no_cause_for_a_warning(tmp_path: Path) -> None:
    """The samples are the seconds: they always rise with them."""
    known = study(tmp_path, 'budget = 60\nmeasure = "seconds"\n[arms]\na = "true"\nb = "exit 0"\n')
    assert known["samples"] == 60
    assert "slow answers" not in known["certificate"]


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
            print(f"a rise by {drift}, rounds={rounds}: means {found[drift, rounds]:.3f} apart ({error:.3f})")
    assert abs(found[0, 2] - 0.093) < 5 * 0.011
    assert found[1, 2] < 0.093 + 5 * 0.011
    assert found[30, 2] < found[30, None] / 2
