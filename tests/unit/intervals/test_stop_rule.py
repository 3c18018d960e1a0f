"""When a precision is reached, in plain Python and compiled."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from equipoise.base.arrays import Floats, Ints
from equipoise.compiled import jit
from equipoise.intervals import Intervals, fixed_width
from equipoise.intervals.stop_rule import (
    Look,
    Moments,
    StopRule,
    Targets,
    Widths,
    by_fixed_width,
    by_sequence,
    cautious,
    least_half_width,
    look,
    none_of,
    of_arms,
    of_sums,
)

RULE = StopRule(Intervals(3), 0.05)


@jit
def compiled(half: float, least: float, value: float, low: float, high: float, care: float, target: Any) -> Any:
    absolute, share = target
    ends = cautious(value, low, high, care)
    decided = by_fixed_width(half, least, value, absolute, share, 0.5)
    return decided, ends, by_sequence(value, ends[0], ends[1], absolute, share)


def test_the_rule_gives_the_same_bits_for_arrays_and_compiled_for_one_arm() -> None:
    cases = itertools.product(
        [0.3, 0.31, math.inf], [0.2, math.inf], [1.0, -0.4], [-math.inf, -1.7], [1.3, math.inf], [1.0, 1.2, 2e6],
        [(0.3, 0.0), (0.0, 0.3), (0.0, 0.9)],
    )  # fmt: skip
    for half, least, value, low, high, care, (absolute, share) in cases:
        at = [np.array([each]) for each in (value, low, high, care)]
        with np.errstate(invalid="ignore"):
            below, above = cautious(*at)
            decided = by_fixed_width(np.array([half]), np.array([least]), at[0], absolute, share, 0.5)
            narrow = by_sequence(at[0], below, above, absolute, share)
        found = compiled(half, least, value, low, high, care, (absolute, share))
        assert found == (tuple(each[0] for each in decided), (below[0], above[0]), narrow[0])


def decided(widths: Widths, targets: Targets, values: Floats, **options: Any) -> tuple[Look, list[int]]:
    """Return what a look finds, and the places of which it followed sequences, of half-width 1."""
    followed: list[int] = []

    def sequences(which: Ints) -> tuple[Floats, Floats]:
        followed.extend(which.tolist())
        return values[which] - 1, values[which] + 1

    return look(RULE, targets, values, widths, sequences, **options), followed


def widths_of(half: list[float], least: float = 0.5, caution: float = 1.0) -> Widths:
    count = len(half)
    return Widths(np.zeros(count), np.array(half), np.array(half), np.full(count, caution), np.full(count, least))


def test_the_fixed_width_interval_decides_first_and_then_the_sequence() -> None:
    targets = Targets(np.array([0.9, 1.2, 0.4, 0.9]), np.zeros(4))
    found, followed = decided(widths_of([0.8, math.inf, math.inf, math.inf]), targets, np.zeros(4))
    assert found.fixed.tolist() == [True, False, False, False]
    assert found.reached.tolist() == [True, True, False, False]
    # Where an interval of fixed n is too wide, no sequence is followed.
    assert followed == [1, 3]
    assert found.low.tolist() == [-0.8, -1.0, -math.inf, -1.0]
    assert decided(widths_of([0.8, *[math.inf] * 3]), targets, np.zeros(4), everything=True)[1] == [1, 2, 3]


def test_a_sequence_is_taken_with_caution() -> None:
    targets = Targets(np.full(2, 1.2), np.zeros(2))
    for care, reached in ((1.1, True), (1.3, False)):
        found, _ = decided(widths_of([math.inf] * 2, caution=care), targets, np.zeros(2))
        assert found.reached.tolist() == [reached] * 2
        assert found.high == pytest.approx(np.full(2, care))


def test_a_large_share_of_a_mean_is_not_left_to_fixed_width() -> None:
    most = RULE.largest_share
    assert 0.45 < most < 0.5
    targets, values = Targets(np.zeros(2), np.array([0.3, 0.8])), np.array([-2.0, 2.0])
    found, _ = decided(widths_of([0.59, 2 * most + 0.01]), targets, values)
    assert found.fixed.tolist() == [True, False]
    assert found.reached.tolist() == [True, True]
    assert targets.half_widths(values) == pytest.approx([0.6, 1.6])
    assert targets.narrower(RULE) == pytest.approx([1, most / 0.8])


def test_a_stop_is_final() -> None:
    targets, settled = Targets(np.full(3, 0.3), np.zeros(3)), np.array([True, True, False])
    found, _ = decided(widths_of([0.4, math.inf, 0.4]), targets, np.zeros(3), settled=settled)
    assert found.reached.tolist() == [True, True, False]
    assert found.fixed.tolist() == [True, False, False]


def test_an_absolute_target_needs_no_mean_and_a_share_does() -> None:
    targets, unknown = Targets(np.array([3.0, 0.0]), np.array([0.0, 0.3])), np.full(2, math.nan)
    assert targets.half_widths(unknown).tolist() == pytest.approx([3.0, math.nan], nan_ok=True)

    def whole(which: Ints) -> tuple[Floats, Floats]:
        return np.zeros(len(which)), np.ones(len(which))

    found = look(RULE, targets, unknown, none_of(unknown), whole)
    assert found.reached.tolist() == [True, False]


def test_a_sum_of_one_arm_is_that_arm() -> None:
    rng, kernel = np.random.default_rng(1), Intervals(2, kind="fixed-width").kernel
    state = np.zeros((2, fixed_width.COLUMNS))
    for x in rng.exponential(size=300):
        kernel.update(state, 0, x, kernel.settings)
        kernel.update(state, 1, x**0.5, kernel.settings)
    moments = Moments(state, np.full(2, math.inf))
    alone = of_arms(RULE, moments)
    sums = of_sums(RULE, moments, np.eye(2), alone.centres)
    for one, other in zip(alone, sums, strict=True):
        assert one == pytest.approx(other, rel=1e-9)
    counts, m2 = state[:, fixed_width.COUNT], state[:, fixed_width.M2]
    z = fixed_width.quantile(RULE.alpha)
    rows = zip(counts, m2, moments.sizes, strict=True)
    assert alone.least.tolist() == [least_half_width(*row, z) for row in rows]
