"""How fast samples come."""

from __future__ import annotations

import math

import numpy as np
import pytest

import equipoise as eq
from equipoise.study.pace import Pace, by_arm
from tests.driving import Clock, drive


def test_the_pace_of_the_last_half() -> None:
    pace = Pace(100.0, 50)
    assert pace.seconds is None
    for i in range(1, 1001):
        # Two seconds each at first, later half a second.
        pace.note(100 + (2 * i if i <= 400 else 800 + (i - 400) / 2), 50 + i)
    assert pace.seconds == pytest.approx(0.5)
    assert len(pace._times) < 500


def test_pauses_do_not_count() -> None:
    pace = Pace(0.0, 0)
    for i in range(1, 1001):
        pace.note(i + (3600 if i > 700 else 0), i)
    assert pace.seconds == pytest.approx(1, rel=0.05)


def test_bursts_are_spread() -> None:
    pace = Pace(0.0, 0)
    for i in range(1, 65):
        pace.note(10.0 * i, 100 * i)
    assert pace.seconds == pytest.approx(0.1, rel=0.05)


def test_arms_that_take_longer() -> None:
    """Two samples at a time: those of 4 seconds come every 2 seconds, those of 1 second every half a second."""
    arms, seconds = np.array([0, 1] * 10 + [1] * 8), np.array([4.0, 1.0] * 10 + [1.0] * 8)
    lately = seconds[14:].mean()
    assert by_arm(lately / 2, arms, seconds, 3) == pytest.approx([2, 0.5, lately / 2])
    assert by_arm(0.1, arms, np.full(28, math.nan), 2).tolist() == [0.1, 0.1]


def test_a_study_says_how_long_a_precision_takes() -> None:
    """One sample a second, by the clock of the test."""
    told: list[eq.Progress] = []
    clock = Clock()

    def measure(arm: str, seed: int) -> float:
        clock.now += 1
        return float(np.random.default_rng(seed).normal(0, 1 if arm == "calm" else 3))

    drive(measure, arms=["calm", "rough"], clock=clock, precision=0.3, progress=told.append)
    middle = next(p for p in told if p.samples >= 200)
    left = middle.result.left
    assert left is not None
    assert (left.seconds_low, left.seconds_high) == pytest.approx((left.low, left.high), rel=0.02)
    assert middle.seconds_left == pytest.approx((left.low + left.high) / 2, rel=0.02)
    assert left.low < told[-1].samples - middle.samples < left.high
