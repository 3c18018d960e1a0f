"""Studies that stop at a precision: what they cover, and that the compiled loop of stops is what `estimate` does."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from benchmarks import precision
from equipoise.base.arrays import Floats
from equipoise.inference.stop_replay import Target, samples_of, stops
from equipoise.intervals import Intervals
from equipoise.intervals.stop_rule import StopRule

STUDIES = 16


@pytest.mark.parametrize("interval", ["fixed-width", "anytime"])
@pytest.mark.parametrize(
    ("name", "support", "half"), [("exponential", None, 0.2), ("uniform", (0, 1), 0.04), ("coin 0.1", "binary", 0.06)]
)
def test_the_loop_of_stops_is_a_study_of_one_arm(name: str, support: Any, half: float, interval: Any) -> None:
    """The very samples of the loop, told to `estimate`: three studies each stop at the same sample, by one interval."""
    law: Floats = precision.law(name)
    rule = StopRule(Intervals(1, support), 0.05, interval == "fixed-width")
    for seed in range(3):
        loop = stops(law, Target(half), rule, 1, seed)
        (samples,) = samples_of(law, loop.counts + 50, seed)
        result = eq.estimate({"arm": list(samples)}, precision=half, support=support, interval=interval)
        assert result.counts["arm"] == loop.counts[0]
        assert result.intervals()["arm"] == pytest.approx((loop.low[0], loop.high[0]), abs=1e-12)
        assert (result.intervals().kind == "fixed-width") == bool(loop.fixed[0])


def test_arms_of_one_study_stop_as_if_alone() -> None:
    """
    Three arms under `auto`, 16 studies: the mean numbers of samples are those of the loop, at five standard errors.

    A study of several arms looks at other moments than one of a single arm, which is within the 3% allowed.
    """
    names = ("Gaussian", "exponential", "uniform")
    laws = {name: precision.law(name) for name in names}
    targets = {name: 2.4 * math.sqrt(laws[name].var() / 300) for name in names}

    def sample(arm: str, seed: int) -> float:
        return float(laws[arm][random.Random(seed).randrange(len(laws[arm]))])

    studies = [eq.estimate(sample, arms=list(names), precision=targets, seed=seed) for seed in range(STUDIES)]
    found = np.array([result.counts.array for result in studies])
    for k, name in enumerate(names):
        loop = stops(laws[name], Target(targets[name]), StopRule(Intervals(3), 0.05 / 3), 2000, 1).counts
        error = math.hypot(found[:, k].std() / math.sqrt(STUDIES), loop.std() / math.sqrt(2000))
        assert abs(found[:, k].mean() - loop.mean()) < 5 * error + 0.03 * loop.mean()


@pytest.mark.parametrize("row", [2, 7, 10, 15])
def test_coverage(row: int) -> None:
    """
    Of 1,000 studies, at least 94% have all intervals around the true means, or not fewer by five standard errors.

    benchmarks/precision.py measures 4,000 studies of twenty problems.
    """
    found = precision.measure(precision.PROBLEMS[row], 1000, seed=3)
    assert float(found["coverage"]) > 0.94 - 5 * math.sqrt(0.94 * 0.06 / 1000) + 0.025


def test_a_plan_and_a_study_agree() -> None:
    """The samples planned for a precision are those that 16 studies take on average, within 3% and five errors."""
    rng = np.random.default_rng(5)
    deviations = {"a": 1.0, "b": 2.0}
    for interval in ("fixed-width", "anytime"):
        planned = eq.plan({arm: sd**2 for arm, sd in deviations.items()}, precision=0.25, interval=interval)
        samplers = {arm: (lambda sd=sd: float(rng.normal(0, sd))) for arm, sd in deviations.items()}
        taken = [eq.estimate(samplers, precision=0.25, interval=interval).samples for _ in range(STUDIES)]
        error = float(np.std(taken)) / math.sqrt(len(taken))
        assert abs(float(np.mean(taken)) - planned.samples) < 5 * error + 0.03 * planned.samples
