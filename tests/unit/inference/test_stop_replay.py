"""The replay of one arm's stop: it ends where the rule says, and as often as the law makes it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.base.arrays import Floats
from equipoise.inference.stop_replay import Stops, Target, samples_of, stops
from equipoise.intervals import Intervals
from equipoise.intervals.stop_rule import StopRule

RULES = [
    StopRule(Intervals(1), 0.05),
    StopRule(Intervals(1), 0.05, fixed_width=False),
    StopRule(Intervals(4, (0, 1)), 0.01),
    StopRule(Intervals(1, "binary"), 0.05),
]


def law(rule: StopRule) -> Floats:
    values = np.random.default_rng(3).random(200)
    return (values < 0.2).astype(float) if rule.sequences.support == "binary" else values**3


@pytest.mark.parametrize("rule", RULES)
def test_an_arm_stops_when_its_interval_is_narrow_enough(rule: StopRule) -> None:
    found = stops(law(rule), Target(0.06), rule, 40, 1)
    margins = np.maximum(found.means - found.low, found.high - found.means)
    assert (margins <= 0.06).all()
    assert (margins > 0.05).any()
    assert len(set(found.counts)) > 3
    assert found.fixed.all() == rule.fixed_width
    again, other = stops(law(rule), Target(0.06), rule, 40, 1), stops(law(rule), Target(0.06), rule, 40, 2)
    assert (again.counts == found.counts).all()
    assert (other.counts != found.counts).any()


def test_a_share_of_the_mean_is_a_target() -> None:
    found = stops(law(RULES[0]), Target(0.2, relative=True), RULES[0], 40, 1)
    assert (found.high - found.means <= 0.2 * found.means).all()
    assert (found.high - found.means > 0.15 * found.means).any()


def test_a_large_share_of_a_mean_near_zero_takes_a_sequence_or_a_mean_that_is_clear_of_zero() -> None:
    values = np.random.default_rng(1).normal(size=500)
    found = stops(values - values.mean() + 0.1 * values.std(), Target(0.8, relative=True), RULES[0], 200, 1)
    clear = np.abs(found.means) / np.sqrt(found.variances / found.counts)
    assert (clear[found.fixed > 0] >= math.sqrt(1.96**2 + 12)).all()
    assert found.fixed.sum() > 0


def test_fixed_width_intervals_need_less_than_half_of_the_samples() -> None:
    # 200 stops each; the standard error of a mean count is below 1%.
    gaussian = np.random.default_rng(1).normal(size=4000)
    fixed, anytime = (stops(gaussian, Target(0.1), rule, 200, 1) for rule in RULES[:2])
    assert fixed.counts.mean() / anytime.counts.mean() < 0.47
    # 1.96²/0.01 samples, and 4.9 for what is of second order.
    assert fixed.counts.mean() == pytest.approx(gaussian.var() * 384 + 5, rel=0.03)
    assert abs(fixed.means.mean() - gaussian.mean()) < 5 * fixed.means.std() / math.sqrt(200)


def test_a_replay_that_does_not_end_is_cut() -> None:
    assert stops(np.array([0.0, 1.0]), Target(1e-6), RULES[0], 1, 1).counts[0] == 10_000


def test_the_samples_of_replays_are_those_that_they_stopped_at() -> None:
    for rule in RULES:
        found = stops(law(rule), Target(0.06), rule, 12, 5)
        drawn = samples_of(law(rule), found.counts[:7], 5)
        assert [len(own) for own in drawn] == found.counts[:7].tolist()
        assert [own.mean() for own in drawn] == pytest.approx(found.means[:7])
        assert [own.var(ddof=1) for own in drawn] == pytest.approx(found.variances[:7])


def test_what_few_replays_say_is_not_biased_by_their_number() -> None:
    """Of 4,000 replays, the mean over pairs of them is that of all within five standard errors of their difference."""
    values = np.random.default_rng(3).random(200) ** 3
    found = stops(values, Target(0.06), RULES[0], 4000, 1)
    pairs = [Stops(*(column[i : i + 2] for column in found)).against(values).bias for i in range(0, 4000, 2)]
    error = float(np.std(pairs)) / math.sqrt(2000)
    assert abs(np.mean(pairs) - found.against(values).bias) < 5 * error
