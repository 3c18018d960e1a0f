"""Whether times drift, and the rounds that cancel it."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.timing import drift


def test_score_of_a_known_order() -> None:
    """Of the ranks 1 to 8 in order, the ratio is 7/42 and the variance is that of Bartels (1982)."""
    variance = 4 * 6 * (5 * 64 - 16 - 9) / (5 * 8 * 9 * 49)
    assert drift.score([np.arange(8.0)]) == pytest.approx((2 - 7 / 42) / variance**0.5)
    # Ranks: an outlier does not hide the order.
    assert drift.score([np.array([0, 1, 2, 3, 4, 5, 6, 1e9])]) == drift.score([np.arange(8.0)])


def test_two_arms_say_more_than_one() -> None:
    rising = np.arange(10.0)
    assert drift.score([rising, rising]) == pytest.approx(2**0.5 * drift.score([rising]))
    assert drift.score([rising]) < drift.DRIFT < drift.score([rising, rising])


def test_ties_share_a_rank() -> None:
    """By hand: ranks 1.5, 1.5, 3.5, 3.5, ... rise by 2 every other time."""
    given = np.repeat(np.arange(4.0), 2)
    ratio = 3 * 4 / np.square(np.repeat([1.5, 3.5, 5.5, 7.5], 2) - 4.5).sum()
    variance = 4 * 6 * (5 * 64 - 16 - 9) / (5 * 8 * 9 * 49)
    assert drift.score([given]) == pytest.approx((2 - ratio) / variance**0.5)


def test_too_few_and_equal_samples_say_nothing() -> None:
    assert drift.score([np.arange(7.0), np.ones(50)]) == 0


def test_false_alarms_are_rare() -> None:
    """
    In at most 4 of 4,000 benchmarks of two commands, with a skewed law.

    A normal variable exceeds 4 with probability 3e-5, and ranks of few samples have lighter tails; 4 or more of 4,000
    would be five standard errors above 0.12.
    """
    rng = np.random.default_rng(1)
    found = sum(drift.score(list(rng.exponential(size=(2, 20)))) > drift.DRIFT for _ in range(4000))
    assert found < 4


def test_pairs_are_of_rounds_in_which_every_arm_was_sampled() -> None:
    """The rounds have the means 2 and 5, 7 and 6, 1 and 2; the third has no other."""
    order, values = [0, 0, 1, 1, 0, 0, 1, 1], np.array([1.0, 3, 5, 6, 7, 1, 2, 9])
    assert drift.pairs(order, values, 2).tolist() == [[4.5, 5.5]]
    assert drift.pairs([0, 1, 0], np.ones(3), 2).shape == (0, 2)


def test_a_steady_drift_changes_the_means_of_a_pair_alike() -> None:
    found = drift.pairs([0, 1, 2, 2, 1, 0] * 3, np.arange(18.0), 3)
    assert found.tolist() == [[mean] * 3 for mean in (2.5, 8.5, 14.5)]
