"""Intervals for ratios of mean times."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.timing import ratios

A, B = np.array([8.0, 9, 10, 11, 12]), np.array([1.5, 2.0, 2.5])


def test_the_interval_of_two_means_by_hand() -> None:
    """Relative variances of the means: 2.5/5/100 and 0.25/3/4; Welch's degrees of freedom; t(2.989) at 95%."""
    parts = 2.5 / 5 / 100, 0.25 / 3 / 4
    degrees = sum(parts) ** 2 / (parts[0] ** 2 / 4 + parts[1] ** 2 / 2)
    found = ratios.of_means(A, B, 0.05)
    half = math.log(found.high / found.value)
    assert found.value == 5
    assert degrees == pytest.approx(2.9891, abs=1e-4)
    assert half / math.sqrt(sum(parts)) == pytest.approx(3.18901, abs=1e-5)
    assert found.low == pytest.approx(5 * math.exp(-half))
    assert found.margin == found.high - 5
    assert found.differs


def test_a_over_b_and_b_over_a_agree() -> None:
    one, other = ratios.of_means(A, B, 0.05), ratios.of_means(B, A, 0.05)
    assert (1 / other.high, 1 / other.value, 1 / other.low) == pytest.approx((one.low, one.value, one.high))


def test_an_error_common_to_both_counts_by_how_much_they_differ() -> None:
    """What is subtracted from two equal times does not change their ratio."""
    assert ratios.of_means(A, A + 0, 0.05, offset=1.0) == ratios.of_means(A, A + 0, 0.05)
    wider = ratios.of_means(A, B, 0.05, offset=0.1)
    error = math.log(wider.high / 5) / math.log(ratios.of_means(A, B, 0.05).high / 5)
    parts = 2.5 / 5 / 100 + 0.25 / 3 / 4
    assert error == pytest.approx(math.sqrt(1 + (0.1 * (1 / 10 - 1 / 2)) ** 2 / parts))


def test_what_slows_down_both_cancels_in_pairs() -> None:
    hot = np.linspace(1, 3, 12)
    found = ratios.of_pairs(2.2 * hot, 2.0 * hot, 0.05)
    assert (found.low, found.value, found.high) == pytest.approx((1.1, 1.1, 1.1))
    assert not ratios.of_means(2.2 * hot, 2.0 * hot, 0.05).differs


def test_pairs_by_hand() -> None:
    """Ratio 2, residuals 0.5, -1, 0.5, and t(2) at 95%."""
    found = ratios.of_pairs(np.array([2.5, 3, 6.5]), np.array([1.0, 2, 3]), 0.05)
    assert found.value == 2
    assert math.log(found.high / 2) == pytest.approx(4.3027 * math.sqrt(1.5 / 6) / 4, rel=1e-4)


@pytest.mark.parametrize(("a", "b"), [([1.0], [1.0, 2.0]), ([-1.0, 0.5], [1.0, 2.0]), ([1.0, 2.0], [-1.0, 1.0])])
def test_too_little_is_known(a: list[float], b: list[float]) -> None:
    for found in (
        ratios.of_means(np.array(a), np.array(b), 0.05),
        ratios.of_pairs(np.array(a[:1]), np.array(b[:1]), 0.05),
    ):
        assert (found.low, found.high, found.differs) == (0, math.inf, False)


def test_runs_that_a_precision_stopped_count_for_less() -> None:
    """The same as if the variances were 1 + 2.5/5 and 1 + 2.5/3 times as large."""
    wider = ratios.of_means(A, B, 0.05, stopped=True)
    stretched = 10 + (A - 10) * math.sqrt(1 + 2.5 / 5), 2 + (B - 2) * math.sqrt(1 + 2.5 / 3)
    assert wider.high == pytest.approx(ratios.of_means(*stretched, 0.05).high)


def test_the_interval_holds_as_often_as_it_says() -> None:
    """In 95% of 4,000 pairs of 20 and 40 times, with standard deviations of 15% and 5%; standard error 0.34%."""
    rng, runs = np.random.default_rng(1), 4000
    held = 0
    for _ in range(runs):
        found = ratios.of_means(rng.normal(3, 0.45, 20), rng.normal(2, 0.1, 40), 0.05)
        held += found.low <= 1.5 <= found.high
    assert abs(held / runs - 0.95) < 5 * math.sqrt(0.95 * 0.05 / runs)


def test_pairs_hold_as_often_as_they_say_while_times_drift() -> None:
    """In 95% of 4,000 pairs of 15 times that double meanwhile; standard error 0.34%."""
    rng, runs, hot = np.random.default_rng(1), 4000, np.linspace(1, 2, 15)
    held = 0
    for _ in range(runs):
        a, b = 3 * hot * rng.normal(1, 0.05, 15), 2 * hot * rng.normal(1, 0.05, 15)
        found = ratios.of_pairs(a, b, 0.05)
        held += found.low <= 1.5 <= found.high
    assert abs(held / runs - 0.95) < 5 * math.sqrt(0.95 * 0.05 / runs)
