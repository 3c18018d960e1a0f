"""Half-widths, and what may be asked for."""

from __future__ import annotations

import math

import numpy as np
import pytest

import equipoise as eq
from equipoise.run import half_width, precision
from equipoise.study import FiniteResult


def result(counts: list[int], variances: list[float], means: list[float] | None = None) -> eq.Result:
    n = np.array(counts)
    m2s = np.array(variances) * np.maximum(n - 1, 0)
    return eq.Result([f"arm {k}" for k in range(len(counts))], n, np.array(means or [1.0] * len(counts)), m2s)


def test_half_widths() -> None:
    """A study's is that of its sequences; of moments alone there is the fixed-n interval."""
    rng = np.random.default_rng(1)
    study = eq.Study(2, budget=400)
    while not study.done:
        ticket = study.ask()
        study.tell(ticket, rng.normal(0, 1 if ticket.arm else 2))
    for level in (0.9, 0.95):
        intervals = study.result().intervals(level)
        assert intervals.kind == "asymptotic"
        assert half_width(study.result(), level).tolist() == ((intervals.high - intervals.low) / 2).tolist()
    # Student's quantile at 1 - 0.05/2/2 with 99 degrees of freedom, from tables: 2.276.
    found = half_width(result([100, 25], [4.0, 1.0]), 0.95)
    assert found[0] == pytest.approx(2.276 * 0.2, rel=1e-4)


def test_few_samples_say_nothing() -> None:
    study = eq.Study(2)
    for i in range(19):
        study.tell(study.ask(), float(i % 3))
    assert half_width(study.result(), 0.95).tolist() == [math.inf, math.inf]
    assert half_width(result([0, 1], [0.0, 0.0]), 0.95).tolist() == [math.inf, math.inf]


def test_equal_samples_are_not_taken_at_their_word() -> None:
    found = half_width(result([16, 100], [0.0, 4.0]), 0.95)
    assert found[0] == pytest.approx(found[1] * math.sqrt(100 / 16))
    assert half_width(result([400, 100], [0.0, 4.0]), 0.95)[0] == pytest.approx(found[1])
    assert half_width(result([16, 16], [0.0, 0.0]), 0.95).tolist() == [0.0, 0.0]


def test_finite_populations() -> None:
    found = half_width(FiniteResult(result([20, 50], [4.0, 4.0]), [20, 100]), 0.95)
    assert found == pytest.approx([0.0, half_width(result([20, 50], [4.0, 4.0]), 0.95)[1] * math.sqrt(0.5)])
    # A small population that is used up is known.
    assert half_width(FiniteResult(result([3], [4.0]), [3]), 0.95).tolist() == [0.0]
    assert half_width(FiniteResult(result([1], [4.0]), [3]), 0.95).tolist() == [math.inf]


def test_absolute_and_relative() -> None:
    wanted = precision([0.3, "10%"], 0.95, ["a", "b"])
    found = result([100, 100], [1.0, 1.0], [0.0, -3.0])
    assert wanted.targets(found).tolist() == pytest.approx([0.3, 0.3])
    assert wanted.reached(found).tolist() == [True, True]
    assert wanted.reached(result([100, 100], [1.0, 1.0], [0.0, -2.0])).tolist() == [True, False]
    # A mean of zero is never known to a share of itself; a mean that is not known is not known well enough.
    assert wanted.reached(result([100, 0], [1.0, 0.0])).tolist() == [True, False]


def test_weights_that_make_all_arms_come_near_together() -> None:
    """By hand: 1 over the square of what is wanted, where a mean may be larger by its standard error."""
    found = result([100, 100, 100], [1.0, 1.0, 4.0], [1.0, -10.0, 100.0])
    wanted = precision(["10%", "10%", 0.5], 0.95, "abc")
    assert wanted.weights(found) == pytest.approx([1, (1.1 / 10.1) ** 2, (0.11 / 0.5) ** 2])
    assert precision("10%", 0.95, "ab").weights(result([100, 1], [1.0, 0.0])) is None
    assert not precision("10%", 0.95, "ab").alike
    assert not precision([1, 2], 0.95, "ab").alike
    assert precision([2, 2.0], 0.95, "ab").alike


def test_weights_do_without_arms_that_are_closed() -> None:
    """By hand: what is not known of an arm that is asked for no more is waited for no more."""
    wanted = precision("10%", 0.95, "abc")
    for count in (0, 1):
        few = result([100, 100, count], [1.0, 1.0, 0.0], [1.0, -10.0, 3.0])
        assert wanted.weights(few, np.array([True, False, False])) is None
        assert wanted.weights(few, np.array([False, False, True])) == pytest.approx([1, (1.1 / 10.1) ** 2, 1])
        assert wanted.weights(few, np.array([True, True, True])) is not None
        wanted.judge(few)
        assert few.by_precision
        assert few.objective.weights == pytest.approx([100, 1, [100, 100 / 9][count]])
        assert math.isnan(few.loss)
    assert wanted.weights(result([0, 0, 1], [0.0] * 3), np.array([True, True, True])) is None
    # An even share is one of those that are asked for: the arm whose part is 9 times as large is not.
    vague = result([100] * 3, [1.0, 1.0, 9.0], [0.1, 1.0, 1.2])
    assert wanted.weights(vague, np.array([False, False, True])) == pytest.approx([1, 1, (1.1 / 1.5) ** 2])
    nothing = result([0, 0, 0], [0.0] * 3)
    wanted.judge(nothing)
    assert nothing.objective.plain
    assert not nothing.by_precision


@pytest.mark.parametrize("unit", [1e-120, 1e-60, 1e60, 1e120])
def test_weights_are_free_of_the_unit(unit: float) -> None:
    moments = [4.0, 1.0, 9.0], [1.0, 10.0, 0.1]
    plain, other = (
        precision(["10%", "5%", 0.5 * u], 0.95, "abc").weights(
            result([100, 100, 100], *([x * u**power for x in xs] for xs, power in zip(moments, (2, 1), strict=True)))
        )
        for u in (1.0, unit)
    )
    assert other == pytest.approx(plain)


def test_an_arm_that_cannot_be_told_from_zero_has_its_even_share() -> None:
    """By hand: its weight times its variance is the mean of these of the arms that can be told from it."""
    wanted = precision("10%", 0.95, "ab")
    for counts in ([64, 100], [400, 100]):
        vague = result(counts, [1.0, 1.0], [0.1, 5.0])
        assert wanted.weights(vague) == pytest.approx([1, 1])
    assert wanted.weights(result([400, 100], [1.0, 1.0], [0.16, 5.0])) == pytest.approx([1, (0.21 / 5.1) ** 2])
    # However much it varies: the others' targets are 0.11 and 0.13, their variances 1 and 9.
    several = precision("10%", 0.95, "abcd")
    weights = several.weights(result([100] * 4, [1e4, 1e-4, 1.0, 9.0], [5.0, 0.001, 1.0, 1.0]))
    assert weights is not None
    ratio = (1.1 / 1.3) ** 2
    parts = np.array([(1 + 9 * ratio) / 2] * 2 + [1, 9 * ratio])
    expected = parts / [1e4, 1e-4, 1.0, 9.0]
    assert weights == pytest.approx(expected / expected.max())
    # It has no more than what was asked for either.
    modest = precision(["10000%", 0.01], 0.95, "ab")
    assert modest.weights(result([100, 100], [1.0, 1.0], [0.1, 5.0])) == pytest.approx([(0.01 / 20) ** 2, 1])
    # Where there are only such arms, each has as many.
    assert wanted.weights(result([100, 100], [4.0, 1.0], [0.1, 0.1])) == pytest.approx([0.25, 1])
    # Of nothing but zeros there is no share; they are taken to be as small as the smallest.
    assert wanted.weights(result([64, 100], [0.0, 1.0], [0.0, 5.0])) == pytest.approx([1, 1])
    assert wanted.weights(result([64, 64], [0.0, 0.0], [0.0, 0.0])) is None
