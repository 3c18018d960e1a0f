"""What a precision still needs, for each kind of interval, and in words."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.inference.arm_intervals import reached_by_arm
from equipoise.inference.forecast import Left, left_by_arm, to_come
from equipoise.intervals import asymptotic
from equipoise.ledger import Goal
from equipoise.ledger.goal import precision
from equipoise.result.summary import what_is_left


def study_of(samples: Any, **options: Any) -> eq.Study:
    """A study that was asked for these samples, by arm."""
    study = eq.Study(len(samples), **options)
    for k, own in enumerate(samples):
        first = study.ledger.issued
        study.ledger.ask_for(np.full(len(own), k))
        study.ledger.tell(np.arange(first, study.ledger.issued), np.asarray(own, float))
    return study


def asked(study: eq.Study, wanted: Any, interval: Any = "anytime", pace: Any = None, **options: Any) -> eq.Result:
    """What is known of a study of which this precision is asked."""
    return study.result(goal=Goal(0.95, precision(wanted, 0.95, study.arms, interval, **options)), pace=pace)


def known(result: eq.Result) -> Left:
    assert result.left is not None
    return result.left


def normal(size: int, mean: float = 0.0, deviation: float = 1.0, seed: int = 1) -> Any:
    """Samples with exactly this mean and this standard deviation."""
    x = np.random.default_rng(seed).normal(size=size)
    return mean + deviation * (x - x.mean()) / x.std(ddof=1)


def test_nothing_is_said_where_no_arm_varies() -> None:
    """As a benchmark's or a simulator's samples may do; numpy's warnings are errors here."""
    study = study_of([[3.0] * 5, [2.5] * 4])
    found = asked(study, 0.01)
    assert (found.left, found.baseline) == (None, None)
    assert to_come(found.known) is None


def test_an_arm_that_does_not_vary_beside_one_that_does() -> None:
    """It has the half-width of the other one, had that as many samples; so it gets there, and that is foreseen."""
    rng = np.random.default_rng(5)
    found = eq.estimate({"same": lambda: 5.0, "varies": lambda: float(rng.normal())}, precision=0.2, budget=5000)
    assert found.reached is True
    assert found.counts["same"] < 2000
    result = asked(study_of([[5.0] * 200, normal(150)]), 0.2, "fixed-width")
    assert reached_by_arm(result.known).tolist() == [False, True]
    ends = result.intervals()
    sequence = result.intervals(kind="asymptotic").half_widths[1]
    assert ends.half_widths[0] == pytest.approx(sequence * math.sqrt(150 / 200))
    needed = 200 * (float(ends.margins[0]) / 0.2) ** 2 - 200
    assert known(result).low <= needed <= known(result).high


def test_an_arm_half_way() -> None:
    """
    200 samples, and as narrow as is asked with 600, by the formula of the intervals.

    The 600 at which it stops has a relative standard deviation of about sqrt(2 · 400/(600 · 200)) = 8%.
    """
    study = study_of([normal(200)])
    rho2 = study.result().known.sequences.kernel.settings[asymptotic.RHO2]
    found = known(asked(study, asymptotic.radius(600, rho2, 0.05)))
    assert found.samples == pytest.approx(400, rel=0.06)
    assert found.low < 400 < found.high
    assert 120 < found.high - found.low < 260
    # The nearer it is, the more is known.
    near = known(asked(study, asymptotic.radius(210, rho2, 0.05)))
    assert near.low < 10 < near.high < 30
    # Two arms of 600 need twice as many, and their scatter is 1.4 times as large.
    both = study_of([normal(200), normal(200)])
    pair = known(asked(both, asymptotic.radius(600, rho2, 0.025)))
    assert pair.samples == pytest.approx(800, rel=0.15)
    assert 1.0 < (pair.high - pair.low) / (found.high - found.low) < 2.0


def test_fixed_widths() -> None:
    """The normal quantile and s/sqrt(T), with a little more for few samples: 1.96² · 1.01/0.1² = 388 Gaussian ones."""
    found = known(asked(study_of([normal(130)]), 0.1, "fixed-width"))
    assert found.low < 388 - 130 < found.high
    assert found.samples == pytest.approx(388 - 130, rel=0.1)
    coins = known(asked(study_of([[0, 0, 0, 0, 0, 0, 0, 1, 1, 1] * 10], support="binary"), 0.05, "fixed-width"))
    assert coins.low < 0.21 * (1.96 / 0.05) ** 2 - 100 < coins.high
    # An arm that is too skewed for so few samples is sampled until it is not, or until its sequence is narrow enough.
    skewed = known(asked(study_of([([0] * 9 + [10]) * 6]), 0.6, "fixed-width"))
    assert skewed.samples > 1.5 * (1.96 * 3 / 0.6) ** 2 - 60


def test_chance_does_not_add_up() -> None:
    """
    Twenty Gaussian arms, 46 samples of each, with exactly the variance 1: each stops at about 137, as for one arm.

    Their skewness is there by chance. Taken for that of their laws, it would add 7%.
    """
    z = 3.023
    found = known(asked(study_of([normal(46, seed=k) for k in range(20)]), z / math.sqrt(130), "fixed-width"))
    assert found.samples == pytest.approx(20 * (137 - 46) + 40, rel=0.03)


def test_a_combined_mean() -> None:
    """Shares of 1/2 each, variances 1: the combined mean has half the variance of a mean of as many samples."""
    study = study_of([normal(100), normal(100)], objective=eq.Stratified([0.5, 0.5]))
    found = known(asked(study, 0.1, "fixed-width", objective=eq.Stratified([0.5, 0.5])))
    assert found.low < (1.96 / 0.1) ** 2 - 200 < found.high
    assert found.samples == pytest.approx((1.96 / 0.1) ** 2 - 200, rel=0.25)


def test_contrasts() -> None:
    """The difference of two means of variance 1 needs four times as many samples in all as a mean."""
    study = study_of([normal(200), normal(200)])
    found = known(asked(study, eq.Contrasts(0.15), "fixed-width"))
    assert found.low < 4 * (1.96 / 0.15) ** 2 - 400 < found.high
    assert left_by_arm(asked(study, eq.Contrasts(0.15), "fixed-width").known).sum() == pytest.approx(
        found.samples, rel=0.1
    )


def test_a_share_of_the_mean() -> None:
    """With a mean of 1.5 standard deviations, κ - 1 = 2 becomes 2 + 4/1.5² = 3.8: the range is 1.4 times as wide."""
    study = study_of([normal(200, 1.5)])
    absolute, relative = known(asked(study, 0.12)), known(asked(study, "8%"))
    assert relative.samples == pytest.approx(absolute.samples, rel=0.1)
    assert (relative.high - relative.low) / (absolute.high - absolute.low) == pytest.approx(1.4, abs=0.2)


def test_binary_arms() -> None:
    """By betting: 200 samples of which 30% are ones, and the half-width that 600 such samples have."""
    study = study_of([[0, 0, 0, 0, 0, 0, 0, 1, 1, 1] * 20], support="binary")
    then = study_of([[0, 0, 0, 0, 0, 0, 0, 1, 1, 1] * 60], support="binary").result()
    found = known(asked(study, float(then.intervals().margins[0])))
    assert found.low < 400 < found.high
    assert found.samples == pytest.approx(400, rel=0.08)
    # Of zeros alone, the interval falls as 1/T, unless a one comes.
    zeros = study_of([[0] * 300], support="binary")
    half = float(study_of([[0] * 600], support="binary").result().intervals().margins[0])
    rare = known(asked(zeros, half))
    assert rare.samples == pytest.approx(300, rel=0.25)
    assert rare.high > 600


def test_bounded_arms() -> None:
    rng = np.random.default_rng(4)
    samples = rng.uniform(size=900)
    study = study_of([samples[:300]], support=(0, 1))
    then = study_of([samples], support=(0, 1)).result()
    found = known(asked(study, float(then.intervals().margins[0])))
    assert found.low < 600 < found.high
    assert found.high < 2 * found.low


def test_a_population_needs_no_more_than_it_has() -> None:
    study = study_of([normal(100)], populations=[150])
    found = known(asked(study, 0.001))
    assert found.samples == pytest.approx(50, abs=2)
    assert found.high < 53


def test_an_arm_without_an_interval_yet() -> None:
    """Ten samples are too few for an interval, but not for a guess."""
    study = study_of([normal(10), normal(400)])
    found = known(asked(study, 0.2))
    assert 100 < found.low < found.samples < found.high < 2000
    # Recognised as binary too.
    few = known(asked(study_of([[0, 1] * 5, [0, 1] * 300]), 0.1))
    assert 100 < few.low < few.samples < few.high < 2000


def test_where_nothing_can_be_said() -> None:
    study = study_of([normal(100)])
    assert study.result().left is None
    assert study.result().samples_left is None
    done = asked(study, 10.0)
    assert done.left == Left(0, 0, 0, 0, 0)
    assert done.samples_left == 0
    for unknown in (
        asked(study_of([normal(100), [1.0]]), 0.1),  # too few samples
        asked(study_of([[-1.0, 1.0] * 50]), "1%"),  # a share of nothing
    ):
        assert unknown.left is None
        assert unknown.samples_left == math.inf
        assert "it takes" not in unknown.verdict
    retired = study_of([normal(100), normal(100)])
    before = known(asked(retired, 0.1)).samples
    retired.retire(1)
    assert known(asked(retired, 0.1)).samples == pytest.approx(before / 2, rel=0.2)
    retired.retire(0)
    assert asked(retired, 0.1).left is None


def test_seconds() -> None:
    """They are those of the arms that are not done: a second for the slow one, ten milliseconds for the other."""
    study = study_of([normal(200), normal(200, deviation=0.01)])
    found = known(asked(study, 0.1, pace=np.array([1.0, 0.01])))
    assert (found.seconds_low, found.seconds_high) == pytest.approx((found.low, found.high))
    assert math.isnan(known(asked(study, 0.1)).seconds_low)


def test_words() -> None:
    study = study_of([normal(200)])
    result = asked(study, 0.1, pace=np.array([60.0]))
    found = known(result)
    low, high = (f"{round(float(f'{end:.2g}')):,}" for end in (found.low, found.high))
    hours = f"{math.floor(found.low / 60)} to {math.ceil(found.high / 60)} hours"
    assert what_is_left(result.known) == f"{low} to {high} more samples needed ({hours})"
    assert result.verdict == f"✗ 1 of 1 arm is still wider than ±0.1; {what_is_left(result.known)}."
    assert what_is_left(asked(study, 0.1).known) == f"{low} to {high} more samples needed"
    assert what_is_left(asked(study, 10).known) == ""


def test_it_is_kept() -> None:
    study = study_of([normal(200)])
    result = asked(study, 0.1)
    found = known(result)
    plain = json.loads(result.to_json())["left"]
    assert (plain["samples"], plain["low"], plain["high"]) == pytest.approx(found[:3])
    assert plain["seconds_low"] is None
    assert known(asked(study, 0.1))[:3] == found[:3]
    again = pickle.loads(pickle.dumps(asked(study, 0.1)))
    assert again.left[:3] == found[:3]
