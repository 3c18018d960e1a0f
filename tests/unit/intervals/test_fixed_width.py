"""Fixed-width intervals: their formulas, and where they are not trusted."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from equipoise.intervals import Intervals, fixed_width, fixed_width_sums
from equipoise.intervals.fixed_width import caution, half_width, plain, quantile

Z = NormalDist().inv_cdf(0.975)


def told(samples: Any, support: Any = None) -> Any:
    rule = Intervals(1, support, "fixed-width")
    state = rule.start()
    for x in samples:
        rule.update(state, 0, x)
    return state


def drawn(count: int, skewed: bool = False, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    return rng.exponential(1, count) if skewed else rng.normal(3, 2, count)


@pytest.mark.parametrize("alpha", [0.9, 0.3, 0.05, 1e-3, 1e-9])
def test_quantile_is_that_of_the_normal_distribution(alpha: float) -> None:
    assert quantile(alpha) == pytest.approx(-NormalDist().inv_cdf(alpha / 2), rel=1e-9)


@pytest.mark.parametrize("shift", [0.0, 1e9])
def test_state_has_the_third_moment(shift: float) -> None:
    samples = drawn(500, skewed=True)
    (row,) = told(samples + shift)
    assert row[fixed_width.M3] == pytest.approx(((samples - samples.mean()) ** 3).sum(), rel=1e-5)


@pytest.mark.parametrize(("count", "size"), [(60, math.inf), (1000, math.inf), (60, 100.0)])
def test_half_width_is_the_formula(count: int, size: float) -> None:
    samples = drawn(count)
    m2, m3 = (((samples - samples.mean()) ** p).mean() for p in (2, 3))
    squared = max(m3**2 / m2**3 - 6 / count, 0)
    tau = count / (1 - count / size)
    a, b = (Z**2 + 1) / 2 + 2.5, (Z**4 + 2 * Z**2 - 3) / 9 + 4
    expected = Z * math.sqrt(samples.var(ddof=1) / tau * (1 + (a + b * squared) / tau))
    (row,) = told(samples)
    assert half_width(row, size, Z, False) == pytest.approx(expected, rel=1e-9)
    assert plain(row, size, Z, False)[1] == pytest.approx(b * squared / tau, rel=1e-6, abs=1e-12)


def test_half_width_of_a_binary_arm_has_ones_and_zeros_seen_before() -> None:
    samples = np.array([1.0] * 60 + [0.0] * 140)
    q = (60 + Z**2 / 2) / (200 + Z**2)
    a, b = (Z**2 + 1) / 2 + 2.5, (Z**4 + 2 * Z**2 - 3) / 9 + 4
    skewed = b * (1 - 2 * q) ** 2 / (q * (1 - q)) / 200
    (row,) = told(samples, "binary")
    expected = Z * math.sqrt(q * (1 - q) / 200 * (1 + a / 200 + skewed)) + 1 / 400
    assert half_width(row, math.inf, Z, True) == pytest.approx(expected, rel=1e-9)


def test_nothing_is_trusted_of_few_skewed_equal_or_rare_samples() -> None:
    few, enough = told(np.arange(29))[0], told(np.arange(30))[0]
    assert half_width(few, math.inf, Z, False) == math.inf > half_width(enough, math.inf, Z, False)
    # 5z² samples where many intervals hold at once.
    assert half_width(told(np.arange(54))[0], math.inf, quantile(0.001), False) == math.inf
    assert half_width(told(np.arange(55))[0], math.inf, quantile(0.001), False) < math.inf
    skewed, many = told(drawn(100, skewed=True))[0], told(drawn(3000, skewed=True))[0]
    assert half_width(skewed, math.inf, Z, False) == math.inf > half_width(many, math.inf, Z, False)
    assert half_width(told([2.0] * 500)[0], math.inf, Z, False) == math.inf
    zeros, some = told([0.0] * 40, "binary")[0], told([0.0, 1.0] * 20, "binary")[0]
    assert half_width(zeros, math.inf, Z, True) == math.inf > half_width(some, math.inf, Z, True)


def test_a_population_that_is_used_up_is_known() -> None:
    (row,) = told(drawn(25))
    assert half_width(row, 25.0, Z, False) == 0.0
    assert half_width(row, 26.0, Z, False) == math.inf
    assert caution(25.0, 25.0, Z) == 1.0


def test_caution_widens_where_samples_are_few() -> None:
    assert caution(30.0, math.inf, Z) == 1.0
    assert caution(20.0, math.inf, Z) == math.sqrt(30 / 20)
    assert caution(22.0, 22.0, quantile(0.001)) == 1.0
    assert caution(20.0, math.inf, quantile(0.001)) == math.sqrt(55 / 20)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("size", [math.inf, 500.0])
def test_a_sum_of_one_arm_is_that_arm(binary: bool, size: float) -> None:
    samples = (drawn(200) > 3.5).astype(float) if binary else drawn(200)
    state = told(samples, "binary" if binary else None)
    found = fixed_width_sums.half_widths(np.array([[-2.0]]), state, np.array([size]), 0.01, binary)
    assert found.plain[0] == pytest.approx(2 * half_width(state[0], size, quantile(0.01), binary), rel=1e-9)
    assert found.trusted[0]


def test_a_sum_of_one_skewed_arm_is_that_arm() -> None:
    state = told(drawn(1000, skewed=True))
    found = fixed_width_sums.half_widths(np.array([[1.0]]), state, np.array([math.inf]), 0.05, False)
    whole, skewed = fixed_width.plain(state[0], math.inf, Z, False)
    assert skewed > 0.01
    assert found.plain[0] == pytest.approx(whole, rel=1e-9)


def test_a_sum_adds_the_squares_of_its_parts() -> None:
    state = np.concatenate([told(drawn(4000, seed=seed)) for seed in (1, 2, 3)])
    weights = np.array([[1.0, -1.0, 0.0], [1.0, -0.5, -0.5]])
    found = fixed_width_sums.half_widths(weights, state, np.full(3, math.inf), 0.05, False)
    errors = state[:, fixed_width.M2] / 3999 / 4000
    assert found.plain == pytest.approx(Z * np.sqrt((weights**2 * errors).sum(1)), rel=0.002)
    assert (found.plain > Z * np.sqrt((weights**2 * errors).sum(1))).all()
    assert found.trusted.all()


def test_skewness_cancels_in_a_difference_and_adds_in_a_mean() -> None:
    state = np.concatenate([told(drawn(150, skewed=True))] * 2)
    found = fixed_width_sums.half_widths(np.array([[1.0, -1.0], [1.0, 1.0]]), state, np.full(2, math.inf), 0.05, False)
    assert found.trusted.tolist() == [True, False]
    assert found.plain[0] < found.plain[1]
    # What stopping early costs does not cancel: 4 γ² for each of two arms with half of the squared error.
    t, m2, m3 = state[0, [fixed_width.COUNT, fixed_width.M2, fixed_width.M3]]
    total, squared = 2 * m2 / (t - 1) / t, (m3 / t) ** 2 / (m2 / t) ** 3 - 6 / t
    more = (fixed_width.student_term(Z) / 2 + 0.5 * (5 + 8 * squared) / 2 + 4 * squared / 2) / t
    assert found.plain[0] == pytest.approx(Z * math.sqrt(total * (1 + more)), rel=1e-6)


def test_a_sum_is_not_trusted_where_an_arm_has_few_samples_or_equal_ones() -> None:
    state = np.concatenate([told(drawn(100)), told([1.0]), told([1.0] * 20), told([1.0] * 30)])
    weights = np.array([[1.0, -1.0, 0, 0], [1.0, 0, -1.0, 0], [1.0, 0, 0, -1.0], [0, 0, 0, 1.0]])
    found = fixed_width_sums.half_widths(weights, state, np.full(4, math.inf), 0.05, False)
    assert found.trusted.tolist() == [False, False, True, False]
    assert found.plain[0] == math.inf


def test_a_sum_is_not_trusted_where_its_arms_have_fewer_than_15_samples_each() -> None:
    weights, sizes = np.full((1, 4), 0.25), np.full(4, math.inf)
    for binary in (False, True):
        for count, trusted in ((14, False), (15, True)):
            samples = [
                (drawn(count, seed=seed) > 3).astype(float) if binary else drawn(count, seed=2) for seed in (1, 2, 3, 4)
            ]
            state = np.concatenate([told(own, "binary" if binary else None) for own in samples])
            found = fixed_width_sums.half_widths(weights, state, sizes, 0.05, binary)
            assert found.trusted.tolist() == [trusted]
    # Whole populations that are smaller are enough.
    state = np.concatenate([told(drawn(200))] * 3 + [told(drawn(9))])
    weights = np.array([[0.01, 0.01, 0.01, 0.97]])
    for size, trusted in ((math.inf, False), (9.0, True)):
        found = fixed_width_sums.half_widths(weights, state, np.array([math.inf] * 3 + [size]), 0.05, False)
        assert found.trusted.tolist() == [trusted]


def test_a_sum_may_be_more_skewed_than_one_arm() -> None:
    """Two arms are trusted up to b G² = 0.15, one arm alone up to 0.08."""
    limits = {}
    for count in (150, 200, 600):
        state = np.concatenate([told(drawn(count, skewed=True))] * 2)
        t, m2, m3 = state[0, [fixed_width.COUNT, fixed_width.M2, fixed_width.M3]]
        squared = (m3 / t) ** 2 / (m2 / t) ** 3
        weights = np.array([[1.0, 1.0], [1.0, 0.0]])
        sums = fixed_width_sums.half_widths(weights, state, np.full(2, math.inf), 0.05, False).trusted
        limits[count] = fixed_width.skewness_term(Z) * squared / (2 * t), *sums.tolist()
    assert all(trusted == (skewed < 0.15) for skewed, trusted, _ in limits.values())
    assert all(alone == (2 * skewed < 0.08) for skewed, _, alone in limits.values())
    assert {trusted for _, trusted, _ in limits.values()} == {True, False}
    assert any(0.08 < skewed < 0.14 for skewed, _, _ in limits.values())


def test_contrasts_of_this_kind_are_sums_within_the_support() -> None:
    rule = Intervals(2, (0, 1), "fixed-width")
    state = rule.start()
    for x in np.random.default_rng(1).random(40):
        rule.update(state, 0, x)
        rule.update(state, 1, x / 2)
    low, high = rule.difference(state, 0, 1)
    assert -1 <= low < 0.25 < high <= 1
    assert rule.difference(rule.start(), 0, 1) == (-1, 1)
