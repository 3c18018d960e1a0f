"""The margins of means that no precision stopped."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.intervals import Intervals
from equipoise.timing import margins

TIMES = np.random.default_rng(1).normal(1, 0.1, 30)


def test_students_margin_by_hand() -> None:
    """t(4) at 95%."""
    assert margins.student(np.array([1.0, 2, 3, 4, 5]), 0.05) == pytest.approx(2.776445 * math.sqrt(2.5 / 5))
    assert margins.student(np.ones(1), 0.05) == math.inf


def test_the_margin_of_a_confidence_sequence_is_that_of_intervals() -> None:
    """Of one arm, tuned to the same number of samples."""
    tuned = Intervals(1, budget=40)
    state = tuned.start()
    for time in TIMES:
        tuned.update(state, 0, time)
    low, high = tuned.bounds(state)
    assert margins.anytime(TIMES, 0.05, 40) == pytest.approx((high[0] - low[0]) / 2)
    assert [margins.anytime(TIMES[:n], 0.05, 40) for n in (0, 1, 4)] == [math.inf] * 3


def test_it_is_wider_than_students_and_narrower_where_it_is_tuned_to_what_there_is() -> None:
    fits, far = margins.anytime(TIMES, 0.05, 30), margins.anytime(TIMES, 0.05, 1e6)
    assert margins.student(TIMES, 0.05) < fits < 2 * margins.student(TIMES, 0.05) < far
