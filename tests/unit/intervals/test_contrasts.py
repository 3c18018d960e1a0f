"""Intervals of contrasts: their formulas by another route, fair bets, and ends that no possible mean is beyond."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from equipoise.intervals import Intervals, asymptotic, bounded_betting, contrast_betting, contrasts, fixed_n

WEIGHTS = np.array([1.0, -0.5, -0.25])


def state_of(*arms: Any) -> Any:
    """Return the state of betting on bounded arms with these samples, already in [0, 1]."""
    logs = [np.log1p(np.outer(bounded_betting.BETS, x)).sum(1) for x in arms]
    return np.array([[len(x), *each] for x, each in zip(arms, logs, strict=True)], float)


def log_capital(state: Any, weights: Any, m: Any) -> float:
    shifts = np.array([round(math.log2(np.abs(weights).max() / abs(c))) for c in weights])
    arms = len(m)
    sort = contrast_betting.BOUNDED if state.shape[1] == bounded_betting.COLUMNS else contrast_betting.POOLS
    return sort.capital(state, weights, shifts, np.asarray(m, float), np.empty(arms), np.empty((arms, arms)))  # type: ignore[no-any-return]


# The asymptotic kind


def test_the_ellipsoid_by_matrices() -> None:
    """The formula is the largest d'z over the ellipsoid of the docstring, worked out with whole matrices."""
    clocks, deviations, rho2, alpha = np.array([40.0, 300.0, 90.0]), np.array([1.0, 2.0, 0.5]), 0.03, 0.02
    e = WEIGHTS / np.linalg.norm(WEIGHTS)
    P = rho2 * (0.6 / 3 * np.eye(3) + (1 - 0.6 / 3) * np.outer(e, e))
    V = np.diag(clocks)
    d = WEIGHTS * deviations / clocks
    level = 2 * math.log(1 / alpha) + math.log(np.linalg.det(np.eye(3) + P @ V))
    form = d @ (np.linalg.inv(P) + V) @ d
    found = contrasts.asymptotic(WEIGHTS[None], clocks[None], deviations[None], rho2, alpha)
    assert found[0] == pytest.approx(math.sqrt(form * level), rel=1e-12)
    # A point of the ellipsoid reaches it, where the mixture over θ is 1/α: its exponent by the same matrices.
    z = (np.linalg.inv(P) + V) @ d
    z *= math.sqrt(level / form)
    assert d @ z == pytest.approx(found[0])
    mixture = math.exp(z @ np.linalg.inv(np.linalg.inv(P) + V) @ z / 2) / math.sqrt(np.linalg.det(np.eye(3) + P @ V))
    assert mixture == pytest.approx(1 / alpha)


def test_the_mixture_by_integration() -> None:
    """The mean of exp(θ'z - θ'Vθ/2) over θ with covariance P is what the ellipsoid's bound takes it to be."""
    P, V, z = np.array([[0.02, -0.011], [-0.011, 0.02]]), np.diag([30.0, 50.0]), np.array([9.0, -4.0])
    step = 0.004
    grid = np.arange(-1.2, 1.2, step)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    theta = np.stack([a.ravel(), b.ravel()])
    density = np.exp(-(theta * (np.linalg.inv(P) @ theta)).sum(0) / 2) / (2 * math.pi * math.sqrt(np.linalg.det(P)))
    mean = (density * np.exp(z @ theta - (theta * (V @ theta)).sum(0) / 2)).sum() * step**2
    inner = np.linalg.inv(np.linalg.inv(P) + V)
    closed = math.exp(z @ inner @ z / 2) / math.sqrt(np.linalg.det(np.eye(2) + P @ V))
    assert mean == pytest.approx(closed, rel=1e-9)


def test_one_arm_has_its_own_interval() -> None:
    half = contrasts.asymptotic(np.array([[-2.0]]), np.array([[70.0]]), np.array([[3.0]]), 0.01, 0.05)
    assert half[0] == pytest.approx(6 * asymptotic.radius(70.0, 0.01, 0.05))
    rule = Intervals(2, (0, 1))
    state = state_of([0.2, 0.9, 0.4] * 20, [0.5] * 7)
    assert rule.contrast(state, {0: 2, 1: 0}) == pytest.approx(tuple(2 * end for end in rule.alone(state, 0)))


def test_an_arm_that_is_known_only_widens_the_logarithm() -> None:
    shape = (np.array([[1.0, -1.0]]), np.array([[50.0, 2450.0]]), np.array([[1.0, 5.0]]), 0.02, 0.05)
    known = contrasts.asymptotic(*shape, known=np.array([[False, True]]))
    assert known[0] < contrasts.asymptotic(*shape)[0]
    assert known[0] > asymptotic.radius(50.0, 0.02, 0.05)
    assert contrasts.asymptotic(*shape, known=np.array([[True, True]]))[0] == 0


@pytest.mark.parametrize("scale", [1, 3])
def test_narrower_than_the_box(scale: float) -> None:
    """Two arms sampled until their errors are equal: at most 0.75 of the box where it is tuned to, 0.82 elsewhere."""
    for each in (100, 500, 1000, 4000):
        rule = Intervals(2, None, budget=2000)
        counts = np.array([scale**2, 1.0]) * 2 * each / (scale**2 + 1)
        state = np.array([[t, 0.0, s**2 * (t - 1), 0.0] for t, s in zip(counts, (scale, 1), strict=True)])
        low, high = rule.bounds(state)
        ends = rule.difference(state, 0, 1)
        assert (ends.high - ends.low) / (high - low).sum() < (0.75 if each == 1000 else 0.82)
        assert ends.low == pytest.approx(-ends.high)


# Betting


def test_capital_round_by_round() -> None:
    """The capital is the mean over all bets of the products of their rounds."""
    arms, m = ([0.1, 0.9, 0.35], [1.0, 0.0], [0.6]), [0.3, 0.55, 0.8]
    thetas = [8 / 2**j for j in range(16)]
    shares = [1 / (9 + (j - 4) ** 2) for j in range(16)]
    offsets = {o: 0.3 ** abs(o) for o in range(-4, 5)}
    total = 0.0
    for sign in (1, -1):
        for level in range(16):
            product = shares[level] / (2 * sum(shares))
            for samples, mean, weight, shift in zip(arms, m, WEIGHTS, (0, 1, 2), strict=True):
                part = 0.0
                for o, share in offsets.items():
                    theta = thetas[min(max(level + shift + o, 0), 15)] * sign * (1 if weight > 0 else -1)
                    won = math.prod(1 + math.expm1(theta) * x for x in samples)
                    part += share / sum(offsets.values()) * won / (1 + math.expm1(theta) * mean) ** len(samples)
                product *= part
            total += product
    assert log_capital(state_of(*arms), WEIGHTS, m) == pytest.approx(math.log(total), rel=1e-10)


@pytest.mark.parametrize("arm", [0, 1])
def test_the_bets_are_fair_whichever_arm_is_next(arm: int) -> None:
    """Against the true means, the capital after one more coin is on average what it was: exactly, for two outcomes."""
    arms, m = [[1.0] * 4 + [0.0] * 3, [0.0] * 5 + [1.0]], [0.3, 0.6]
    weights = np.array([1.0, -1.0])
    before = math.exp(log_capital(state_of(*arms), weights, m))
    after = 0.0
    for x, p in ((1.0, m[arm]), (0.0, 1 - m[arm])):
        more = [samples + [x] * (k == arm) for k, samples in enumerate(arms)]
        after += p * math.exp(log_capital(state_of(*more), weights, m))
    assert after == pytest.approx(before, rel=1e-12)
    assert log_capital(state_of([], []), weights, m) == pytest.approx(0, abs=1e-12)


def test_slopes_and_curves_by_differences() -> None:
    state, m, step = state_of([0.1, 0.9, 0.35] * 9, [1.0, 0.0] * 8, [0.6] * 11), np.array([0.4, 0.45, 0.62]), 1e-5
    shifts, slope, curve = np.array([0, 1, 2]), np.empty(3), np.empty((3, 3))
    capital = contrast_betting.BOUNDED.capital
    capital(state, WEIGHTS, shifts, m, slope, curve)
    for k in range(3):
        sides, slopes = [], np.empty((2, 3))
        for i, sign in enumerate((-1, 1)):
            beside = m + sign * step * np.eye(3)[k]
            sides.append(capital(state, WEIGHTS, shifts, beside, slopes[i], np.empty((3, 3))))
        assert slope[k] == pytest.approx((sides[1] - sides[0]) / (2 * step), rel=1e-6)
        assert curve[k] == pytest.approx((slopes[1] - slopes[0]) / (2 * step), rel=1e-5)


def test_cut_is_the_largest_over_the_half_space() -> None:
    rng = np.random.default_rng(2)
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 101)] * 2), -1).reshape(-1, 2)
    for _ in range(40):
        weights, slope = rng.normal(size=2), rng.normal(size=2)
        limit = float(slope @ rng.random(2))
        inside = grid[grid @ slope <= limit + 1e-12]
        found = contrast_betting.cut(weights, slope, limit)
        # A grid of steps of 0.01 misses at most one of them in each direction; where slopes are flat, a little more.
        assert (inside @ weights).max() - 1e-9 <= found
        fine = inside[np.argmax(inside @ weights)] + np.stack(np.meshgrid(*[np.linspace(-0.01, 0.01, 201)] * 2), -1)
        fine = np.clip(fine.reshape(-1, 2), 0, 1)
        close = fine[fine @ slope <= limit + 1e-12]
        assert found <= (close @ weights).max() + 0.01 * np.abs(weights).sum()


def farthest(state: Any, weights: Any, alpha: float) -> float:
    """Return the largest weights'm of possible means, by going out from the sample means in 2,000 directions."""
    centre = np.clip(state[:, 16] / bounded_betting.BETS[15] / state[:, 0], 0, 1)
    best, limit = -math.inf, -math.log(alpha)
    for angle in np.linspace(0, 2 * math.pi, 2001):
        way = np.array([math.cos(angle), math.sin(angle)])
        if weights @ way <= 0:
            continue
        near, far = 0.0, 1.5
        for _ in range(30):
            middle = (near + far) / 2
            m = centre + middle * way
            possible = bool(((m >= -1e-9) & (m <= 1 + 1e-9)).all()) and log_capital(state, weights, m) < limit
            near, far = (middle, far) if possible else (near, middle)
        best = max(best, float(weights @ (centre + near * way)))
    return best


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([0.2, 0.9, 0.4] * 30, [0.5, 0.1, 0.3, 0.7] * 20),
        ([1.0, 0.0, 0.0] * 200, [0.0] * 9 + [1.0]),
        ([0.0] * 50, [1.0] * 8),
        ([0.5] * 700, [0.49, 0.51] * 60),
    ],
    ids=["bounded", "coins", "equal and at the ends", "nearly equal"],
)
def test_ends_are_those_of_the_possible_means(a: Any, b: Any) -> None:
    state, weights, alpha = state_of(a, b), np.array([1.0, -1.0]), 0.05
    low, high = contrast_betting.BOUNDED.bounds(state, np.array([[0, 1]]), weights[None], alpha)
    assert high[0] == pytest.approx(farthest(state, weights, alpha), abs=3e-4 * (high[0] - low[0]))
    assert low[0] == pytest.approx(-farthest(state, -weights, alpha), abs=3e-4 * (high[0] - low[0]))


def test_no_possible_means_of_three_arms_are_beyond_the_ends() -> None:
    rng = np.random.default_rng(3)
    state = state_of(rng.random(80), rng.random(50) * 0.3, (rng.random(60) < 0.2).astype(float))
    low, high = contrast_betting.BOUNDED.bounds(state, np.array([[0, 1, 2]]), WEIGHTS[None], 0.05)
    points = rng.random((4000, 3)) * [0.5, 0.4, 0.6] + [0.25, 0, 0]
    possible = [m for m in points if log_capital(state, WEIGHTS, m) < math.log(20)]
    assert len(possible) > 200
    values = np.array(possible) @ WEIGHTS
    assert low[0] <= values.min() < values.max() <= high[0]
    assert values.max() - values.min() > 0.7 * (high[0] - low[0])


def test_binary_arms_are_bounded_arms() -> None:
    a, b = np.array([1.0, 0, 0] * 20), np.array([1.0, 1, 0, 0] * 10)
    coins = Intervals(2, "binary").difference(np.array([[60.0, 20.0], [40.0, 20.0]]), 0, 1)
    assert coins == pytest.approx(Intervals(2, (0, 1)).difference(state_of(a, b), 0, 1))
    # On [-1, 3] instead of [0, 1].
    wide = Intervals(2, (-1, 3)).contrast(state_of(a, b), {0: 1, 1: -0.5})
    plain = Intervals(2, (0, 1)).contrast(state_of(a, b), {0: 1, 1: -0.5})
    assert wide == pytest.approx(tuple(-0.5 + 4 * end for end in plain))
    # The other way round.
    assert Intervals(2, "binary").difference(np.array([[60.0, 20.0], [40.0, 20.0]]), 1, 0) == pytest.approx(
        (-coins.high, -coins.low)
    )


def test_no_sample_says_nothing() -> None:
    assert Intervals(2, "binary").difference(np.zeros((2, 2)), 0, 1) == pytest.approx((-1, 1))
    assert Intervals(2, (0, 2)).difference(np.zeros((2, 33)), 0, 1) == pytest.approx((-2, 2))
    for kind in ("asymptotic", "fixed-n"):
        assert Intervals(2, None, kind).difference(np.zeros((2, 4)), 0, 1) == (-math.inf, math.inf)
        assert Intervals(2, (0, 2), kind).difference(np.zeros((2, 4)), 0, 1) == (-2, 2)


# Other kinds, and all arms against one


def test_fixed_n_is_welchs_interval() -> None:
    """Degrees of freedom by Welch and Satterthwaite; equal counts and variances have twice those of one arm."""
    state = np.array([[10.0, 1.0, 9 * 4.0, 5.0], [10.0, 2.0, 9 * 4.0, 1.0]])
    found = Intervals(2, None, "fixed-n").difference(state, 0, 1)
    half = fixed_n.student_quantile(18, 0.05) * math.sqrt(4 / 10 + 4 / 10)
    assert found == pytest.approx((3 - half, 3 + half))
    state[1, 2] = 9 * 1e-12  # of an arm that hardly varies, nothing is added
    found = Intervals(2, None, "fixed-n").difference(state, 0, 1)
    assert (found.high - found.low) / 2 == pytest.approx(fixed_n.student_quantile(9, 0.05) * math.sqrt(4 / 10))


def test_fixed_n_of_coins_adds_squares() -> None:
    rule = Intervals(2, "binary", "fixed-n")
    state = np.array([[50.0, 0.4, 12.0, 0.0], [80.0, 0.25, 15.0, 0.0]])
    a, b = (rule.alone(state, arm) for arm in (0, 1))
    found = rule.difference(state, 0, 1)
    assert found.low == pytest.approx(0.15 - math.hypot(0.4 - a.low, b.high - 0.25))
    assert found.high == pytest.approx(0.15 + math.hypot(a.high - 0.4, 0.25 - b.low))


def test_against_a_control_each_pair_has_its_share_of_the_level() -> None:
    rule = Intervals(3, "binary")
    state = np.array([[100.0, 20.0], [100.0, 50.0], [100.0, 80.0]])
    below, above = rule.against(state, control=0, level=0.9)
    assert (below[0], above[0]) == (0, 0)
    for arm in (1, 2):
        assert (below[arm], above[arm]) == pytest.approx(rule.difference(state, arm, 0, level=0.95))
    assert below[2] > 0
    assert [end.tolist() for end in Intervals(1).against(np.zeros((1, 4)), 0)] == [[0], [0]]


@pytest.mark.parametrize("weights", [{0: 0.0}, {0: math.inf, 1: 1.0}, {}])
def test_weights_that_are_no_contrast_are_refused(weights: Any) -> None:
    with pytest.raises(ValueError, match="weights must be finite and not all zero, got"):
        Intervals(2).contrast(np.zeros((2, 4)), weights)
