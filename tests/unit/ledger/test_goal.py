"""Precisions that may be asked for, and the weights that follow them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas
import pytest

import equipoise as eq
from equipoise.inference import target_weights
from equipoise.inference.arm_intervals import reached_by_arm
from equipoise.inference.known import Known
from equipoise.ledger import Goal
from equipoise.ledger.goal import Precision, precision
from tests.unit.ledger.moments import result_of_moments as result


def weights_for(wanted: Precision, found: eq.Result, closed: Any = None) -> Any:
    """Return the weights that a study with this precision has."""
    return target_weights.weights(Known(found.known.snapshot, Goal(wanted.level, wanted)), closed)


def reached(given: object, of: eq.Result) -> list[bool]:
    """Return which arms of a result have this precision."""
    found = eq.Result(replace(of.known, goal=Goal(precision=precision(given, 0.95, of.arms))))
    return [bool(each) for each in reached_by_arm(found.known)]


def test_absolute_and_relative() -> None:
    wanted = [0.3, "10%"]
    found = result([100, 100], [1.0, 1.0], [0.0, -3.0])
    assert precision(wanted, 0.95, "ab").targets(found.means.array).tolist() == pytest.approx([0.3, 0.3])
    assert reached(wanted, found) == [True, True]
    assert reached(wanted, result([100, 100], [1.0, 1.0], [0.0, -2.0])) == [True, False]
    # A mean of zero is never known to a share of itself; a mean that is not known is not known well enough.
    assert reached(wanted, result([100, 0], [1.0, 0.0])) == [True, False]


def test_one_for_each_arm_is_aligned_by_its_label() -> None:
    names = ["city", "country"]
    for labelled in ({"country": "3%", "city": 0.2}, pandas.Series({"country": "3%", "city": 0.2})):
        found = precision(labelled, 0.95, names)
        assert (found.wanted, found.relative) == ((0.2, 0.03), (False, True))
    assert precision(np.array([0.2, 0.3]), 0.95, names).wanted == (0.2, 0.3)
    assert precision(np.array(0.2), 0.95, names).wanted == (0.2, 0.2)
    with pytest.raises(
        ValueError, match="precision must have one value for each arm, got one for 'town', which is not an arm"
    ):
        precision({"town": 1, "city": 1}, 0.95, names)
    with pytest.raises(ValueError, match="precision must have one value for each of the 2 arms, got 3"):
        precision([1, 2, 3], 0.95, names)


@pytest.mark.parametrize("wrong", [0, -1, math.nan, math.inf, "3", "-3%", "much", None, True, np.True_])
def test_what_is_not_a_precision(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"precision must be a positive number such as 0\.01 or a share"):
        precision(wrong, 0.95, "ab")


def test_a_goal_has_one_level() -> None:
    with pytest.raises(ValueError, match=r"level must be strictly between 0 and 1, got 1\.5"):
        precision(0.1, 1.5, "ab")
    with pytest.raises(ValueError, match="precision must have the level of the goal"):
        Goal(0.9, precision(0.1, 0.95, "ab"))
    with pytest.raises(ValueError, match="by_precision needs a precision"):
        Goal(by_precision=True)


def test_weights_that_make_all_arms_come_near_together() -> None:
    """By hand: 1 over the square of what is wanted, where a mean may be larger by its standard error."""
    found = result([100, 100, 100], [1.0, 1.0, 4.0], [1.0, -10.0, 100.0])
    wanted = precision(["10%", "10%", 0.5], 0.95, "abc")
    assert weights_for(wanted, found) == pytest.approx([1, (1.1 / 10.1) ** 2, (0.11 / 0.5) ** 2])
    assert weights_for(precision("10%", 0.95, "ab"), result([100, 1], [1.0, 0.0])) is None
    assert not precision("10%", 0.95, "ab").alike
    assert not precision([1, 2], 0.95, "ab").alike
    assert precision([2, 2.0], 0.95, "ab").alike


def test_weights_do_without_arms_that_are_closed() -> None:
    """By hand: what is not known of an arm that is asked for no more is waited for no more."""
    wanted = precision("10%", 0.95, "abc")
    for count in (0, 1):
        few = result([100, 100, count], [1.0, 1.0, 0.0], [1.0, -10.0, 3.0])
        assert weights_for(wanted, few, np.array([True, False, False])) is None
        assert weights_for(wanted, few, np.array([False, False, True])) == pytest.approx([1, (1.1 / 10.1) ** 2, 1])
        assert weights_for(wanted, few, np.array([True, True, True])) is not None
        judged = eq.Result(replace(few.known, goal=Goal(0.95, wanted, by_precision=True)))
        assert judged.known.by_precision
        assert judged.objective.weights == pytest.approx([100, 1, [100, 100 / 9][count]])
        assert math.isnan(judged.loss)
    assert weights_for(wanted, result([0, 0, 1], [0.0] * 3), np.array([True, True, True])) is None
    # An even share is one of those that are asked for: the arm whose part is 9 times as large is not.
    vague = result([100] * 3, [1.0, 1.0, 9.0], [0.1, 1.0, 1.2])
    assert weights_for(wanted, vague, np.array([False, False, True])) == pytest.approx([1, 1, (1.1 / 1.5) ** 2])
    nothing = result([0, 0, 0], [0.0] * 3, goal=Goal(0.95, wanted, by_precision=True))
    assert nothing.objective.plain
    assert not nothing.known.by_precision


@pytest.mark.parametrize("unit", [1e-120, 1e-60, 1e60, 1e120])
def test_weights_are_free_of_the_unit(unit: float) -> None:
    variances, means = [4.0, 1.0, 9.0], [1.0, 10.0, 0.1]
    plain, other = (
        weights_for(
            precision(["10%", "5%", 0.5 * u], 0.95, "abc"),
            result([100, 100, 100], [v * u**2 for v in variances], [mean * u for mean in means]),
        )
        for u in (1.0, unit)
    )
    assert other == pytest.approx(plain)


def test_an_arm_that_cannot_be_told_from_zero_has_its_even_share() -> None:
    """By hand: its weight times its variance is the mean of these of the arms that can be told from it."""
    wanted = precision("10%", 0.95, "ab")
    for counts in ([64, 100], [400, 100]):
        vague = result(counts, [1.0, 1.0], [0.1, 5.0])
        assert weights_for(wanted, vague) == pytest.approx([1, 1])
    assert weights_for(wanted, result([400, 100], [1.0, 1.0], [0.16, 5.0])) == pytest.approx([1, (0.21 / 5.1) ** 2])
    # However much it varies: the others' targets are 0.11 and 0.13, their variances 1 and 9.
    several = precision("10%", 0.95, "abcd")
    weights = weights_for(several, result([100] * 4, [1e4, 1e-4, 1.0, 9.0], [5.0, 0.001, 1.0, 1.0]))
    assert weights is not None
    ratio = (1.1 / 1.3) ** 2
    parts = np.array([(1 + 9 * ratio) / 2] * 2 + [1, 9 * ratio])
    expected = parts / [1e4, 1e-4, 1.0, 9.0]
    assert weights == pytest.approx(expected / expected.max())
    # It has no more than what was asked for either.
    modest = precision(["10000%", 0.01], 0.95, "ab")
    assert weights_for(modest, result([100, 100], [1.0, 1.0], [0.1, 5.0])) == pytest.approx([(0.01 / 20) ** 2, 1])
    # Where there are only such arms, each has as many.
    assert weights_for(wanted, result([100, 100], [4.0, 1.0], [0.1, 0.1])) == pytest.approx([0.25, 1])
    # Of nothing but zeros there is no share; they are taken to be as small as the smallest.
    assert weights_for(wanted, result([64, 100], [0.0, 1.0], [0.0, 5.0])) == pytest.approx([1, 1])
    assert weights_for(wanted, result([64, 64], [0.0, 0.0], [0.0, 0.0])) is None
