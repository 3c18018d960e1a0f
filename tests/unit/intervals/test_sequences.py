"""The interface of the intervals: every kind keeps the laws that all share, and wrong arguments are refused."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import coverage
from equipoise.compiled import jit
from equipoise.intervals import (
    KINDS,
    PROMISES,
    Intervals,
    Kind,
    asymptotic,
    binary_betting,
    bounded_betting,
    default_kind,
    describe,
    fixed_n,
    simultaneous,
)
from equipoise.numeric import moments

RULES = [(kind, support) for kind in KINDS for support in ("binary", (0, 1), None)]
RULES = [(k, s) for k, s in RULES if s is not None or k in ("asymptotic", "fixed-n", "fixed-width")]
each_rule = pytest.mark.parametrize(("kind", "support"), RULES, ids=str)
numbers = st.lists(st.floats(0, 1), min_size=1, max_size=60)


def told(rule: Intervals, samples: Any, arm: int = 0) -> Any:
    state = rule.start()
    for x in samples:
        rule.update(state, arm, x)
    return state


def draws(support: Any, count: int = 200) -> Any:
    values = np.random.default_rng(1).random(count)
    return (values < 0.3).astype(float) if support == "binary" else values


@each_rule
def test_the_interval_narrows_with_samples_and_widens_with_the_level(kind: Kind, support: Any) -> None:
    rule = Intervals(2, support, kind)
    few, many = (told(rule, draws(support, count)) for count in (200, 2000))
    (low, high), (lower, higher) = rule.bounds(many), rule.bounds(many, level=0.999)
    assert lower[0] < low[0] < draws(support, 2000).mean() < high[0] < higher[0]
    assert 0 < high[0] - low[0] < 0.5 * (rule.bounds(few)[1][0] - rule.bounds(few)[0][0])


@each_rule
def test_an_arm_without_samples_can_have_any_mean(kind: Kind, support: Any) -> None:
    rule = Intervals(2, support, kind)
    low, high = rule.bounds(told(rule, draws(support)))
    unknown = (-math.inf, math.inf) if support is None else (0, 1)
    assert (low[1], high[1]) == unknown
    assert rule.alone(rule.start(), 0) == unknown


@each_rule
def test_bounds_of_all_arms_are_those_of_each_at_the_simultaneous_level(kind: Kind, support: Any) -> None:
    rule = Intervals(5, support, kind)
    state = told(rule, draws(support))
    low, high = rule.bounds(state, level=0.9)
    alone = rule.alone(state, 0, level=simultaneous(0.9, 5))
    assert (low[0], high[0]) == pytest.approx(alone, rel=1e-12)
    assert simultaneous(0.9, 5) == pytest.approx(0.98)


@pytest.mark.parametrize("kind", ["betting", "fixed-n"])
def test_another_unit_of_the_samples_is_another_unit_of_the_ends(kind: Kind) -> None:
    rule, other = Intervals(2, (0, 1), kind), Intervals(2, (-3, 7), kind)
    values = draws((0, 1))
    ends, others = rule.bounds(told(rule, values)), other.bounds(told(other, 10 * values - 3))
    for a, b in zip(ends, others, strict=True):
        assert b == pytest.approx(10 * a - 3, rel=1e-9)


@given(numbers, st.floats(1e-6, 0.9))
@settings(max_examples=60, deadline=None)
def test_betting_keeps_the_sample_mean_and_all_means_against_which_little_was_won(
    xs: list[float], alpha: float
) -> None:
    rule = Intervals(1, (0, 1), "betting")
    row = told(rule, xs)[0]
    low, high = bounded_betting.bounds(row, alpha, rule.kernel.settings)
    assert 0 <= low <= np.mean(xs) + 1e-9
    assert np.mean(xs) - 1e-9 <= high <= 1
    for m in (low, high, *np.linspace(0, 1, 21)):
        won = bounded_betting.capital(row, m)[0] + math.log(alpha)
        assert won <= 1e-9 if low <= m <= high else won >= -1e-9
        # The shortcut of benchmarks/coverage.py says the same.
        if min(abs(m - low), abs(m - high)) > 1e-9:
            assert coverage._by_capital(row, m, alpha, (0.0, 1.0)) == (low <= m <= high)


@given(st.integers(0, 60), st.integers(0, 60), st.floats(1e-6, 0.9), st.floats(0.001, 0.999))
@settings(max_examples=100, deadline=None)
def test_the_shortcuts_of_the_coverage_benchmark_agree_with_the_bounds(s: int, f: int, alpha: float, p: float) -> None:
    row = np.array([s + f, s / max(s + f, 1), 0.0, 0.0])
    row[2] = s * (1 - row[1]) ** 2 + f * row[1] ** 2
    low, high = fixed_n.clopper_pearson(row, alpha, (0.0, 1.0))
    if min(abs(p - low), abs(p - high)) > 1e-9:
        limits = coverage.limits(p, alpha, s + f)
        assert coverage._by_count(row, p, alpha, limits) == (low <= p <= high)
    if s + f >= 2:
        low, high = fixed_n.student(row, alpha, (-math.inf, math.inf))
        quantiles = coverage.quantiles(alpha, s + f)
        if min(abs(p - low), abs(p - high)) > 1e-9:
            assert coverage._by_quantile(row, p, alpha, quantiles) == (low <= p <= high)


@pytest.mark.parametrize("values", [(0.2, 0.9), (0.0, 0.3), (0.0, 1.0)])
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_the_capital_against_the_true_mean_stays_one_on_average(values: tuple[float, float], share: float) -> None:
    """Over all sequences of nine samples of a law with two values: no simulation, no error."""
    mean = share * values[1] + (1 - share) * values[0]
    rule = Intervals(1, (0, 1), "betting")
    total = 0.0
    for ups in product((0, 1), repeat=9):
        row = told(rule, [values[up] for up in ups])[0]
        total += share ** sum(ups) * (1 - share) ** (9 - sum(ups)) * math.exp(bounded_betting.capital(row, mean)[0])
    assert total == pytest.approx(1, rel=1e-11)


def ever_outside(bounds: Any, state: Any, p: float, alpha: float, steps: int) -> float:
    """The exact probability that a coin's interval leaves out p at any of so many times."""
    alive = np.array([1.0])
    for t in range(1, steps + 1):
        alive = np.append(alive * (1 - p), 0.0) + np.append(0.0, alive * p)
        for ones in range(t + 1):
            if alive[ones] > 0:
                low, high = bounds(state(t, ones), alpha, (0.0, 1.0))
                alive[ones] *= low <= p <= high
    return 1 - float(alive.sum())


@pytest.mark.parametrize("p", [0.5, 0.3, 0.05])
def test_betting_on_a_coin_misses_as_seldom_as_it_says_and_fixed_n_far_more_often(p: float) -> None:
    """Exactly, over all outcomes of 200 tosses looked at one by one."""
    betting = ever_outside(binary_betting.bounds, lambda t, s: np.array([t, s], float), p, 0.05, 200)
    assert 0.005 < betting <= 0.05
    fixed = ever_outside(fixed_n.clopper_pearson, lambda t, s: np.array([t, s / t, 0.0, 0.0]), p, 0.05, 120)
    assert fixed > 0.1
    # At one time, the last, it does what it says.
    count = 120
    laws = [math.comb(count, s) * p**s * (1 - p) ** (count - s) for s in range(count + 1)]
    ends = [fixed_n.clopper_pearson(np.array([count, s / count, 0.0, 0.0]), 0.05, (0.0, 1.0)) for s in range(count + 1)]
    assert sum(w for w, (low, high) in zip(laws, ends, strict=True) if not low <= p <= high) <= 0.05


@each_rule
def test_widths_fall_as_one_over_the_root_of_the_samples_but_for_a_logarithm(kind: Kind, support: Any) -> None:
    rule = Intervals(1, support, kind)
    state, widths = rule.start(), []
    block = draws(support, 1000)
    for _ in range(10):
        for x in block:
            rule.kernel.update(state, 0, x, rule.kernel.settings)
        low, high = rule.alone(state, 0)
        widths.append(high - low)
    # At 1,000 and 10,000 samples: sqrt(10) is 3.16.
    least = 3.1 if kind == "fixed-n" else 2.75
    assert least < widths[0] / widths[-1] < 3.4


def test_fixed_n_and_asymptotic_states_are_moments() -> None:
    values = draws(None)
    for kind in ("fixed-n", "asymptotic"):
        assert told(Intervals(1, None, kind), values)[0] == pytest.approx((*moments.of(values), 0))


def test_kernels_run_in_compiled_loops() -> None:
    rule = Intervals(1, (0, 1), "betting")
    update = rule.kernel.update

    def loop(state: Any, values: Any, settings: Any) -> None:
        for x in values:
            update(state, 0, x, settings)

    state = rule.start()
    jit(loop)(state, draws(None), rule.kernel.settings)
    assert state.tolist() == told(rule, draws(None)).tolist()


def test_the_asymptotic_kind_is_tightest_where_it_is_tuned_to() -> None:
    widths = {budget: Intervals(2, None, budget=budget).kernel.settings[0] for budget in (100, 600, 4000)}
    radii = {budget: asymptotic.radius(300.0, rho2, 0.025) for budget, rho2 in widths.items()}
    assert radii[600] < min(radii[100], radii[4000])
    assert Intervals(2, None).kernel.settings == Intervals(2, None, budget=2000).kernel.settings
    # Never tuned to a time before there is an interval.
    assert Intervals(2, None, budget=4).kernel.settings == Intervals(2, None, budget=40).kernel.settings


def test_defaults_and_promises() -> None:
    assert [default_kind(s) for s in ("binary", (0, 1), None)] == ["betting", "betting", "asymptotic"]
    assert [Intervals(1, s).kind for s in ("binary", (0, 1), None)] == ["betting", "betting", "asymptotic"]
    assert set(PROMISES) == set(KINDS)
    assert Intervals(1, None).promise == PROMISES["asymptotic"]
    assert describe("asymptotic", 0.95) == (
        "95% confidence sequences, simultaneous over arms and valid at any time (asymptotic; approximate below ~50 "
        "samples)."
    )
    assert describe("betting", 0.999) == (
        "99.9% confidence sequences, simultaneous over arms and valid at any time (betting; guaranteed for any number "
        "of samples)."
    )
    assert describe("fixed-n", 0.9) == (
        "90% confidence intervals, simultaneous over arms, not valid under adaptive stopping (fixed n)."
    )


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Intervals(0), "arms must be a positive integer, got 0"),
        (lambda: Intervals(2, kind="exact"), "kind must be one of 'betting', 'asymptotic', .* got 'exact'"),  # type: ignore[arg-type]
        (lambda: Intervals(2, None, "betting"), "kind='betting' needs a bounded support"),
        (lambda: Intervals(2, (1, 0)), r"support must be .* got \(1, 0\)"),
        (lambda: Intervals(2, level=95), "level must be strictly between 0 and 1, got 95"),
        (lambda: Intervals(2, level="high"), "level must be a number, got 'high'"),  # type: ignore[arg-type]
        (lambda: Intervals(2, budget=0), "budget must be a positive integer, got 0"),
        (lambda: simultaneous(0.95, 0), "K must be a positive integer, got 0"),
        (lambda: default_kind("unit"), "support must be .* got 'unit'"),  # type: ignore[arg-type]
        (
            lambda: Intervals(2).bounds(np.zeros((3, 3))),
            r"state must have the shape of start\(\), \(2, 4\), got \(3, 3\)",
        ),
        (lambda: Intervals(2).bounds(np.zeros((2, 4)), level=1.0), "level must be strictly between 0 and 1, got 1.0"),
        (lambda: Intervals(2).alone(np.zeros((2, 4)), 2), "arm must be between 0 and 1, got 2"),
        (lambda: Intervals(2).difference(np.zeros((2, 4)), 1, 1), "arm and other must be different arms, got 1 twice"),
    ],
)
def test_wrong_arguments_are_refused(make: Any, sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        make()


@pytest.mark.parametrize(
    ("support", "x"), [("binary", 0.5), ((0, 1), 1.5), ((0, 1), math.nan), (None, math.inf), (None, math.nan)]
)
def test_a_sample_outside_the_support_leaves_the_state_as_it_was(support: Any, x: float) -> None:
    rule = Intervals(1, support)
    state = rule.start()
    with pytest.raises(ValueError, match=f"^x must be .*, got {x}$"):
        rule.update(state, 0, x)
    assert not state.any()
    with pytest.raises(TypeError, match=r"x must be a number, got '0.5'"):
        rule.update(state, 0, "0.5")  # type: ignore[arg-type]
