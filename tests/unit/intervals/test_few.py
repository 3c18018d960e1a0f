"""Intervals of the asymptotic kind before 20 samples: when they begin, and the laws they keep."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.inference.arm_intervals import intervals as of_some
from equipoise.inference.sequence_bounds import bounds_of
from equipoise.intervals import Interval, Intervals, populations, t_mixture
from equipoise.intervals.asymptotic import START

VALUES = st.lists(st.integers(-50, 50), min_size=2, max_size=START - 1)
ALPHAS = st.floats(1e-4, 0.5)


def interval(values: list[float], alpha: float = 0.05) -> Interval:
    rule = Intervals(1, kind="asymptotic")
    state = rule.start()
    for x in values:
        rule.update(state, 0, x)
    return rule.alone(state, 0, 1 - alpha)


def test_when_they_begin() -> None:
    """With a half-width of about two standard deviations: at that number of samples, not one before."""
    for arms, first in ((1, 9), (10, 12), (100, 16), (1000, 19)):
        values = [float(i % 2) for i in range(first)]
        alpha = 0.05 / arms
        assert t_mixture.first(alpha) == first
        assert all(map(math.isfinite, interval(values, alpha)))
        assert interval(values[:-1], alpha) == (-math.inf, math.inf)
    assert t_mixture.first(0.05 / 2000) == START


@given(VALUES, ALPHAS, ALPHAS)
def test_a_higher_level_is_wider(values: list[float], one: float, other: float) -> None:
    inner, outer = interval(values, max(one, other)), interval(values, min(one, other))
    assert outer.low <= inner.low <= np.mean(values) + 1e-9
    assert np.mean(values) - 1e-9 <= inner.high <= outer.high


@given(VALUES, ALPHAS, st.randoms(use_true_random=False), st.integers(-20, 20), st.integers(1, 20))
def test_order_shift_and_scale(values: list[float], alpha: float, random: object, shift: int, scale: int) -> None:
    """The order makes no difference, and other units give the same interval in these units."""
    found = interval(values, alpha)
    mixed = list(values)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert interval(mixed, alpha) == pytest.approx(found, rel=1e-9, abs=1e-9)
    moved = interval([shift + scale * x for x in values], alpha)
    assert moved == pytest.approx([shift + scale * end for end in found], rel=1e-9, abs=1e-7)
    assert interval([-x for x in values], alpha) == pytest.approx((-found.high, -found.low), rel=1e-9, abs=1e-9)


@given(ALPHAS)
def test_more_samples_of_the_same_deviation_are_narrower(alpha: float) -> None:
    widths = [t_mixture.half_width(float(t), alpha) for t in range(int(t_mixture.first(alpha)), 200)]
    assert all(later < earlier for earlier, later in itertools.pairwise(widths))
    # Wider than Student's, which is for one look.
    for t, width in zip(range(int(t_mixture.first(alpha)), 200), widths, strict=False):
        assert width > eq.intervals.fixed_n.student_quantile(t - 1.0, alpha) / math.sqrt(t)


def test_equal_samples_say_nothing() -> None:
    assert interval([3.0] * (START - 1)) == (-math.inf, math.inf)
    assert interval([3.0] * START) == (3.0, 3.0)


def test_a_support_is_not_left() -> None:
    rule = Intervals(1, (0, 1), "asymptotic")
    state = rule.start()
    for i in range(12):
        rule.update(state, 0, i % 2)
    assert rule.alone(state, 0) == (0, 1)


@settings(max_examples=30)
@given(st.integers(9, START - 1), st.integers(1, 60))
def test_of_a_finite_population(t: int, left: int) -> None:
    """Narrower than with replacement, the more so the less is left, and the same if much is."""
    m2, size = 7.0, float(t + left)
    half = math.sqrt(m2 / (t - 1)) * t_mixture.half_width(float(t), 0.05)
    low, high = populations.asymptotic(float(t), 0.0, m2, size, 0.01, 0.05)
    assert -low == high < half
    assert populations.asymptotic(float(t), 0.0, m2, size - 1, 0.01, 0.05)[1] < high
    # Nearly in proportion to the standard error.
    assert math.sqrt(1 - t / size) * half < high < 1.3 * math.sqrt(1 - t / size) * half or left == 1
    assert populations.asymptotic(float(t), 0.0, m2, 1e12, 0.01, 0.05)[1] == pytest.approx(half)
    assert populations.asymptotic(float(t), 0.0, 0.0, size, 0.01, 0.05) == (-math.inf, math.inf)
    assert populations.asymptotic(8.0, 0.0, m2, size, 0.01, 0.05) == (-math.inf, math.inf)


# ---- in a study


def told(values: list[list[float]], **options: Any) -> eq.Study:
    """A study of arms with these samples, which need not be as many of each."""
    study = eq.Study(len(values), budget=sum(map(len, values)), strategy="uniform", **options)
    left = {arm: list(samples) for arm, samples in zip(study.arms, values, strict=True)}
    while not study.done:
        ticket = study.ask()
        study.tell(ticket, left[ticket.arm].pop(0))
        if not left[ticket.arm]:
            study.retire(ticket.arm)
    return study


def test_an_arm_with_equal_samples_takes_the_variance_of_the_others() -> None:
    varied = [0.0, 3.0, 1.0, 2.5] * 4
    found = told([varied, [2.0] * 12, [2.0] * 8]).result()
    intervals = found.intervals()
    alpha, deviation = 0.05 / 3, math.sqrt(found.variances[0])
    assert intervals.half_widths[0] == pytest.approx(deviation * t_mixture.half_width(16.0, alpha))
    assert intervals.half_widths[1] == pytest.approx(deviation * t_mixture.half_width(12.0, alpha))
    assert intervals[1] == pytest.approx((2 - intervals.half_widths[1], 2 + intervals.half_widths[1]))
    assert intervals.half_widths[2] == math.inf
    # Asked for by name, it is as it is.
    assert found.intervals(kind="asymptotic").half_widths.tolist()[1:] == [math.inf, math.inf]
    # Some arms alone have the same.
    assert of_some(found.known, [1]).half_widths[0] == intervals.half_widths[1]


def test_equal_samples_everywhere_have_no_interval() -> None:
    found = told([[2.0] * 19, [3.0] * 19]).result()
    assert found.intervals().half_widths.tolist() == [math.inf, math.inf]
    assert "—" in repr(found)


def test_contrasts_of_few_samples_are_boxes() -> None:
    few, many = [0.0, 3.0, 1.0, 2.5] * 3, [1.0, 2.0, 4.0] * 10
    found = told([few, many, [5.0] * 12, [1.0] * 4]).result()
    low, high = found.difference(0, 1).low, found.difference(0, 1).high
    rule, state = found.known.sequences, found.known.state_of("asymptotic", None)
    ends = rule.bounds_at(state, 0.05 / 2)
    assert (low, high) == pytest.approx((ends[0][0] - ends[1][1], ends[1][0] - ends[0][1]))
    # Equal samples have the deviation of the most varying arm.
    equal = found.difference(2, 1)
    half = math.sqrt(found.variances.array[:2].max()) * t_mixture.half_width(12.0, 0.025)
    assert equal.low == pytest.approx(5 - half - ends[1][1])
    assert found.difference(0, 3).low == -math.inf
    assert math.isfinite(found.compare(0.8)[0, 1].low)


def test_contrasts_of_few_samples_of_finite_populations() -> None:
    few, many = [0.0, 3.0, 1.0, 2.5] * 3, [1.0, 2.0, 4.0] * 10
    found = told([few, many], populations=[15, 60]).result()
    low, high = bounds_of(found.known, found.known.sequences, None, 0.05 / 2)
    difference = found.difference(0, 1)
    assert (difference.low, difference.high) == pytest.approx((low[0] - high[1], high[0] - low[1]))
    assert math.isfinite(difference.low)
