"""Betting on finite populations: the laws it keeps, exactly, over all orders of the items."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.inference.arm_intervals import intervals
from equipoise.intervals import Intervals, bounded_betting, contrast_betting, fixed_n, pool_betting, populations
from tests.unit.ledger.test_evidence import told

ITEMS = st.lists(st.integers(0, 20).map(lambda i: i / 20), min_size=1, max_size=40)
ALPHAS = st.floats(1e-4, 0.5)
UNIT = (0.0, 1.0)


def row_of(drawn: Any, size: float) -> Any:
    state = np.zeros((1, pool_betting.COLUMNS))
    state[0, pool_betting.SIZE] = size
    for x in drawn:
        pool_betting.update(state, 0, float(x), UNIT)
    return state[0]


@pytest.mark.parametrize(
    "items", [(0, 0.2, 0.9, 1, 0.6, 0.1, 0.1), (0, 0, 0, 0, 0, 1, 1), (0.5, 0.5, 0.5, 0.4, 0.7, 1)]
)
def test_the_capital_never_grows_on_average(items: tuple[float, ...]) -> None:
    """Its mean over all orders of the items, against their mean, begins at 1 and falls; so Ville's inequality holds."""
    size, mean = len(items), sum(items) / len(items)
    capital = np.zeros((math.factorial(size), size))
    for i, order in enumerate(itertools.permutations(items)):
        state = np.zeros((1, pool_betting.COLUMNS))
        state[0, pool_betting.SIZE] = size
        for t, x in enumerate(order):
            pool_betting.update(state, 0, float(x), UNIT)
            capital[i, t] = math.exp(pool_betting.capital(state[0], mean)[0])
    means = capital.mean(0)
    assert (np.diff(np.append(1.0, means)) <= 1e-9).all()
    assert means[0] > 0.75  # what the tangents take
    for alpha in (0.5, 0.2, 0.05):
        assert (capital.max(1) >= 1 / alpha).mean() <= alpha
    # Not by being vacuous: against other means it does grow.
    assert capital.max() > 1


@given(ITEMS, st.integers(0, 40), ALPHAS, ALPHAS)
def test_a_higher_level_is_wider_and_both_are_possible(items: list[float], more: int, one: float, other: float) -> None:
    size = len(items) + more
    row = row_of(items, size)
    inner = pool_betting.bounds(row, max(one, other), UNIT)
    outer = pool_betting.bounds(row, min(one, other), UNIT)
    least, most = sum(items) / size, (sum(items) + more) / size
    assert least - 1e-9 <= outer[0] <= inner[0] + 1e-9
    assert inner[0] <= inner[1]
    assert inner[1] - 1e-9 <= outer[1] <= most + 1e-9


@given(ITEMS, st.integers(0, 40), ALPHAS)
def test_mirrored_items_have_the_mirrored_interval(items: list[float], more: int, alpha: float) -> None:
    size = len(items) + more
    low, high = pool_betting.bounds(row_of(items, size), alpha, UNIT)
    mirrored = pool_betting.bounds(row_of([1 - x for x in items], size), alpha, UNIT)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-7)


@given(ITEMS, ALPHAS)
def test_a_population_that_is_used_up_is_known(items: list[float], alpha: float) -> None:
    assert pool_betting.bounds(row_of(items, len(items)), alpha, UNIT) == pytest.approx([np.mean(items)] * 2, abs=1e-12)


@settings(max_examples=25)
@given(ITEMS, ALPHAS)
def test_a_large_population_is_as_good_as_an_infinite_one(items: list[float], alpha: float) -> None:
    """And hardly wider than betting with replacement, which has no tangents; never narrower."""
    infinite = pool_betting.bounds(row_of(items, math.inf), alpha, UNIT)
    assert pool_betting.bounds(row_of(items, 1e12), alpha, UNIT) == pytest.approx(infinite, abs=1e-6)
    state = np.zeros((1, bounded_betting.COLUMNS))
    for x in items:
        bounded_betting.update(state, 0, x, UNIT)
    low, high = bounded_betting.bounds(state[0], alpha, UNIT)
    assert infinite[0] <= low + 1e-9
    assert infinite[1] >= high - 1e-9


def test_the_interval_shrinks_to_the_mean() -> None:
    """In an order of chance, seed 1: widths at 20, 50, 75, 90 and 100% of 400 items fall, and end at 0."""
    items = np.random.default_rng(1).random(400)
    found = [pool_betting.bounds(row_of(items[:t], 400), 0.05, UNIT) for t in (80, 200, 300, 360, 400)]
    widths = [high - low for low, high in found]
    assert all(later < 0.75 * earlier for earlier, later in itertools.pairwise(widths))
    assert widths[-1] == 0
    assert all(low - 1e-12 <= items.mean() <= high + 1e-12 for low, high in found)
    # Sooner than with replacement.
    state = np.zeros((1, bounded_betting.COLUMNS))
    for x in items[:360]:
        bounded_betting.update(state, 0, x, UNIT)
    low, high = bounded_betting.bounds(state[0], 0.05, UNIT)
    assert widths[3] < 0.4 * (high - low)


# ---- by Intervals, and in a study


def test_units_and_sizes() -> None:
    rng = np.random.default_rng(2)
    values = rng.random(30)
    rule = Intervals(2, (0, 1), "betting", populations=(40, math.inf))
    wide = Intervals(2, (-10, 30), "betting", populations=(40, math.inf))
    state, other = rule.start(), wide.start()
    for x in values:
        for arm in range(2):
            rule.update(state, arm, x)
            wide.update(other, arm, 40 * x - 10)
    low, high = rule.bounds(state)
    assert high[0] - low[0] < 0.7 * (high[1] - low[1])
    assert wide.bounds(other)[0] == pytest.approx(40 * low - 10)
    assert rule.start(np.array([1]))[0].tolist() == rule.start()[1].tolist()
    # A difference is narrower than the box, in any unit.
    ends, difference = rule.bounds_at(state, 0.025), rule.difference(state, 0, 1)
    assert difference.high - difference.low < 0.8 * (ends[1] - ends[0]).sum()
    assert wide.difference(other, 0, 1) == pytest.approx((40 * difference.low, 40 * difference.high))
    for x in values[:10]:
        rule.update(state, 0, x)
    with pytest.raises(ValueError, match="all 40 items of arm 0 have been drawn"):
        rule.update(state, 0, 0.5)


# Sums of the means of several populations


def state_of(*arms: tuple[Any, float]) -> Any:
    """Return the state after these draws from populations of these sizes."""
    return np.array([row_of(values, size) for values, size in arms])


def log_capital(state: Any, weights: Any, m: Any) -> float:
    shifts, arms = np.round(np.log2(np.abs(weights).max() / np.abs(weights))).astype(np.int64), len(m)
    found = contrast_betting.POOLS.capital(
        state, weights, shifts, np.array(m, float), np.empty(arms), np.empty((arms, arms))
    )
    return float(found)


@pytest.mark.parametrize("arm", [0, 1])
@pytest.mark.parametrize("drawn", [(0, 0), (1, 0), (3, 2), (4, 1), (4, 3)])
def test_the_capital_of_sums_never_grows_on_average(arm: int, drawn: tuple[int, int]) -> None:
    """Against the true means, over the items that are left of the next arm, whichever that is and in whatever state."""
    items, weights = ([0.0, 0.2, 0.9, 1.0, 0.6], [0.0, 0.0, 1.0, 1.0]), np.array([1.0, -0.5])
    means = [float(np.mean(values)) for values in items]
    arms = [(values[:t], len(values)) for values, t in zip(items, drawn, strict=True)]
    before, after = log_capital(state_of(*arms), weights, means), []
    for x in items[arm][drawn[arm] :]:
        more = [(values + [x] * (k == arm), size) for k, (values, size) in enumerate(arms)]
        after.append(math.exp(log_capital(state_of(*more), weights, means)))
    assert 0.5 * math.exp(before) < np.mean(after) <= math.exp(before) * (1 + 1e-12)
    if drawn == (0, 0):
        assert before == pytest.approx(0, abs=1e-12)


def test_slopes_and_curves_of_sums_by_differences() -> None:
    rng, step = np.random.default_rng(6), 1e-5
    state = state_of((rng.random(30), 50), (rng.random(20) < 0.3, 400), (rng.random(40), 41))
    weights, m = np.array([1.0, -0.5, -0.25]), np.array([0.45, 0.35, 0.5])
    shifts, slope, curve = np.array([0, 1, 2]), np.empty(3), np.empty((3, 3))
    capital = contrast_betting.POOLS.capital
    capital(state, weights, shifts, m, slope, curve)
    for k in range(3):
        sides, slopes = [], np.empty((2, 3))
        for i, sign in enumerate((-1, 1)):
            beside = m + sign * step * np.eye(3)[k]
            sides.append(capital(state, weights, shifts, beside, slopes[i], np.empty((3, 3))))
        assert slope[k] == pytest.approx((sides[1] - sides[0]) / (2 * step), rel=1e-5, abs=1e-4)
        assert curve[k] == pytest.approx((slopes[1] - slopes[0]) / (2 * step), rel=1e-4, abs=1e-3)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (([0.2, 0.9, 0.4] * 30, 100), ([0.5, 0.1, 0.3, 0.7] * 20, 2000)),
        (([1.0, 0.0, 0.0] * 200, 610), ([0.0] * 9 + [1.0], 10_000)),
        (([0.0] * 50, 60), ([1.0] * 8, 9)),
        (([0.5] * 700, 701), ([0.49, 0.51] * 60, 130)),
        (([0.5, 0.1], 2), ([0.49, 0.51] * 20, 130)),
    ],
    ids=["scores", "coins", "equal and at the ends", "nearly equal", "used up"],
)
def test_ends_of_sums_are_those_of_the_possible_means(a: Any, b: Any) -> None:
    """Against a grid of both means within what is possible for them."""
    state, weights, alpha = state_of(a, b), np.array([1.0, -1.0]), 0.05
    [low], [high] = contrast_betting.POOLS.bounds(state, np.array([[0, 1]]), weights[None], alpha)
    least = state[:, pool_betting.SUM] / state[:, pool_betting.SIZE]
    most = least + 1 - state[:, pool_betting.COUNT] / state[:, pool_betting.SIZE]
    centre = np.clip(state[:, pool_betting.SUM] / state[:, pool_betting.COUNT], least, most)
    # From the sample means out in many directions, as far as the capital allows.
    values = []
    for angle in np.linspace(0, 2 * math.pi, 721):
        way, near, far = np.array([math.cos(angle), math.sin(angle)]), 0.0, 1.5
        for _ in range(30):
            middle = (near + far) / 2
            m = np.clip(centre + middle * way, least, most)
            near, far = (middle, far) if log_capital(state, weights, m) < -math.log(alpha) else (near, middle)
        values.append(float(weights @ np.clip(centre + near * way, least, most)))
    assert low - 1e-9 <= min(values) < max(values) <= high + 1e-9
    assert (min(values), max(values)) == pytest.approx((low, high), abs=4e-3 * (high - low))


@given(st.lists(ITEMS, min_size=2, max_size=4), st.lists(st.integers(0, 40), min_size=4, max_size=4), ALPHAS, ALPHAS)
@settings(max_examples=25, deadline=None)
def test_sums_keep_the_laws_of_means(items: Any, more: list[int], one: float, other: float) -> None:
    """A higher level is wider, the opposite is the mirror image, and populations that are used up are known."""
    sizes = [len(values) + extra for values, extra in zip(items, more, strict=False)]
    state, places = state_of(*zip(items, sizes, strict=True)), np.arange(len(items))[None]
    weights = np.array([[1.0, -0.5, -0.25, 0.7][: len(items)]])
    bounds = contrast_betting.POOLS.bounds
    inner, outer = (
        np.array(bounds(state, places, weights, alpha)).ravel() for alpha in (max(one, other), min(one, other))
    )
    assert outer[0] - 1e-7 <= inner[0] <= inner[1] <= outer[1] + 1e-7
    opposite = np.array(bounds(state, places, -weights, min(one, other))).ravel()
    assert opposite == pytest.approx(-outer[::-1], abs=1e-6)
    used_up = state_of(*((values, len(values)) for values in items))
    exact = float(weights[0] @ [np.mean(values) for values in items])
    assert np.ravel(bounds(used_up, places, weights, one)) == pytest.approx([exact, exact], abs=1e-9)


def test_a_sum_of_many_populations_is_narrow() -> None:
    """24 arms of 2,000 zeros and ones, 100 drawn of each: 4.2 standard errors; the arms' intervals add up to 19."""
    rng, arms = np.random.default_rng(1), 24
    drawn = [(rng.random(100) < p).astype(float) for p in np.linspace(0.2, 0.9, arms)]
    state, weights = state_of(*((values, 2000) for values in drawn)), np.tile([1.0, -1.0], 12) / 12
    rule = Intervals(arms, (0, 1), populations=(2000.0,) * arms)
    low, high = rule.contrast(state, dict(enumerate(weights)))
    error = math.sqrt(sum(w * w * x.var(ddof=1) / 100 * 0.95 for w, x in zip(weights, drawn, strict=True)))
    assert (high - low) / 2 / error == pytest.approx(4.2, abs=0.1)
    assert low < sum(w * x.mean() for w, x in zip(weights, drawn, strict=True)) < high
    # As of endless arms, where little is drawn.
    endless = Intervals(arms, "binary").contrast(np.array([[100.0, x.sum()] for x in drawn]), dict(enumerate(weights)))
    assert high - low == pytest.approx(endless.high - endless.low, rel=0.06)


@pytest.mark.parametrize("size", [7, 20])
def test_exact_intervals_of_binary_items(size: int) -> None:
    """Their ends, and how often they cover, by adding up probabilities in whole numbers."""
    for t in range(size + 1):
        for alpha in (0.05, 0.4):
            ends = [populations.exact(float(s), float(t - s), float(size), alpha) for s in range(t + 1)]
            for n in range(size + 1):
                ways = [math.comb(n, s) * math.comb(size - n, t - s) for s in range(t + 1)]
                for s, (low, high) in enumerate(ends):
                    if not ways[s]:
                        continue
                    tails = min(sum(ways[s:]), sum(ways[: s + 1])) / math.comb(size, t)
                    if abs(tails - alpha / 2) > 1e-12:
                        assert (tails > alpha / 2) == (low - 1e-9 <= n / size <= high + 1e-9)
                covered = sum(
                    w for w, (low, high) in zip(ways, ends, strict=True) if low - 1e-9 <= n / size <= high + 1e-9
                )
                assert covered / math.comb(size, t) >= 1 - alpha - 1e-12
    large = populations.exact(300.0, 700.0, 1e9, 0.05)
    assert large == pytest.approx(fixed_n.clopper_pearson(np.array([1000.0, 0.3, 0.0, 0.0]), 0.05, UNIT), abs=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"support": "binary", "populations": (3.0,)}, "populations need kind='betting' and a support .low, high."),
        ({"support": (0, 1), "kind": "asymptotic", "populations": (3.0,)}, "populations need kind='betting'"),
        ({"support": (0, 1), "populations": (3.0, 4.0)}, "populations must be a positive size for each of 1 arms"),
        ({"support": (0, 1), "populations": (0.0,)}, "populations must be a positive size for each of 1 arms"),
    ],
)
def test_what_is_refused(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Intervals(1, **options)


def test_scores_of_finite_populations_have_exact_intervals() -> None:
    rng = np.random.default_rng(3)
    scores = [rng.choice([0.0, 0.5, 1.0], 60).tolist(), rng.random(60).tolist()]
    study = told(scores, populations=[60, 100], support=(0, 1))
    result = study.result()
    found = result.intervals()
    assert found.kind == result.interval_kind == "betting"
    mean = np.mean(scores[0])
    assert found[0] == pytest.approx((mean, mean))
    assert found[1] == pytest.approx(pool_betting.bounds(row_of(scores[1], 100), 0.025, UNIT))
    assert "guaranteed for any number of samples" in repr(result)
    # Of every arm there is an interval from the first sample on.
    one = told([[0.5], [0.25]], populations=[60, 100], support=(0, 1)).result()
    assert np.isfinite(one.intervals().half_widths).all()
    difference = result.difference(0, 1)
    assert (difference.low, difference.high) == result.known.sequences.difference(
        result.known.state_of("betting", None), 0, 1
    )
    # Asked for by name, the asymptotic one is there too.
    assert result.intervals(kind="asymptotic").kind == "asymptotic"


def test_an_estimate_of_scores_to_a_precision() -> None:
    """It stops before the items are used up, and sooner for those that vary little."""
    rng = np.random.default_rng(4)
    items = {"wide": rng.random(800), "narrow": rng.uniform(0.4, 0.6, 800)}
    found = eq.estimate(lambda item: item, populations=items, support=(0, 1), precision=0.05, seed=1)
    assert found.reached
    assert found.interval_kind == "betting"
    assert found.counts["narrow"] < found.counts["wide"] < 600
    for arm, values in items.items():
        low, high = found.intervals()[arm]
        assert low <= values.mean() <= high


def test_a_result_keeps_its_intervals_without_the_samples() -> None:
    rng = np.random.default_rng(5)
    result = told([rng.random(30).tolist(), rng.random(30).tolist()], populations=[50, 40], support=(0, 1)).result()
    kept = pickle.loads(pickle.dumps(result))
    assert np.asarray(kept.intervals()).tolist() == np.asarray(result.intervals()).tolist()


def test_some_of_very_many_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of some arms, which are followed alone where there are many, have the sizes of these arms."""
    values = [[0.2, 0.4, 0.9, 0.1], [0.5, 0.6, 0.4, 0.3], [1.0, 0.7, 0.2, 0.0]]
    study = told(values, populations=[4, 6, 50], support=(0, 1))
    whole = study.result().intervals()
    monkeypatch.setattr("equipoise.ledger.evidence.MANY", 0)
    some = intervals(told(values, populations=[4, 6, 50], support=(0, 1)).result().known, [2, 1])
    assert some.low.tolist() == whole.low[[2, 1]].tolist()
    assert some.high.tolist() == whole.high[[2, 1]].tolist()
