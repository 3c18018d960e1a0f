"""
The default strategy's mathematics, written a second time.

The formulas here are those of the docstrings, in plain NumPy and over whole arrays of samples: nothing is updated
sample by sample, and no function under test is called to make an expectation.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.base.arrays import Floats
from equipoise.numeric import moments
from equipoise.problem.objective import objective
from equipoise.strategies import Numbers, Support, auto, key, zeros
from equipoise.testing import Scan
from tests.mutation import mutants

Auto = eq.strategies.Auto
CONTINUOUS = Auto().params(None, 2, None)
UNPOOLED = zeros(Auto.pooled)


class Pooled(NamedTuple):
    """What is pooled, as the docstring of `Auto` calls it: β in place of 2/(β - 1), and 1/samples as a number."""

    location: float
    dispersion: float
    d: float
    r: float
    centre: float
    beta: float
    gamma2: float
    varying: float
    samples: float

    def numbers(self) -> Numbers:
        return (*self[:5], 2 / (self.beta - 1), self.gamma2, self.varying, 1 / self.samples)


# ---- the definitions


def m2_so_far(x: Floats) -> Floats:
    """Return the sum of squared deviations of each beginning of the samples."""
    return np.array([x[:i].var() * i for i in range(1, x.size + 1)])


def kept(x: Floats, weight: float = 1.0) -> Numbers:
    """Return weight, M3/M2 and Σδ²/(Σδ)², or 0 if all samples are equal, by their definitions."""
    return (weight, *_kept(x.tobytes()))


@cache
def _kept(data: bytes) -> tuple[float, float]:
    x = np.frombuffer(data)
    if (x == x[0]).all():
        return (0.0, 0.0)
    deviations, growth = x - x.mean(), np.diff(m2_so_far(x))
    unit = np.abs(deviations).max()
    third = unit * float(((deviations / unit) ** 3).sum() / ((deviations / unit) ** 2).sum())
    return (third, float(((growth / growth.sum()) ** 2).sum()))


def varies(q: float, nu: float) -> float:
    """Return Bayes' rule for an arm that varies with probability q, and then shows none with (1 + ν)^{-1/2}."""
    none = 1 / math.sqrt(1 + nu)
    return q * none / (q * none + 1 - q)


def shape(x: Floats) -> tuple[float, float]:
    """Return the kurtosis b and the squared skewness g² of an arm's samples, as the strategy estimates them."""
    _, third, tail = kept(x)
    return (x.size - 1) * tail, (third / x.std()) ** 2


def planned(x: Floats, of: Pooled, weight: float = 1.0, wide: float = math.inf) -> float:
    """Return the planning variance of an arm: the docstring of `Auto`, line by line."""
    T = x.size
    beta, nu, share = of.beta, 2 * (T - 1) / (of.beta - 1), min(T / of.samples, 1)
    if (x == x[0]).all():
        h, g2, seen, unseen = 1.0, 0.0, 0.0, of.centre * varies(of.varying, nu)
    else:
        b, g2 = shape(x)
        fade = 2500 / (2500 + T**2) * max(1, (b - 1) / (beta - 1))
        d = of.d * fade
        # (T - 1) s, with s unbiased for Gaussian samples.
        ts = math.sqrt(weight * x.var() * T * (T - 0.5))
        seen = ((d * of.r + ts) / (d + T - 1)) ** 2 + fade * of.centre / (d + nu)
        h = min(max(1 - (b - 1) / (beta - 1) * (1 + beta / T), 0), 1)
        unseen = h * (beta - 3) / (beta - 1) * max(of.centre - seen, 0) / math.sqrt(1 + nu)
    c = 3.183 + (1 - share) * (6 - 2 * share) * (h * of.gamma2 + (1 - h) * g2)
    most = weight * wide**2 / (T + 2) if weight else 0.0
    return (seen + min(unseen, most)) * (1 + c / T) / (weight or 1) + 1e-300


def psi(x: Floats) -> tuple[Floats, Floats]:
    """Return ψ(x) - log(x) and ψ'(x), by the recurrence and the first terms at x + 1, as `log_gamma` says."""
    y = x + 1
    mean = np.log(y) - 1 / (2 * y) - 1 / (12 * y**2) - 1 / x - np.log(x)
    return mean, 1 / y + 1 / (2 * y**2) + 1 / (6 * y**3) + 1 / x**2


def pooled(arms: Sequence[Floats], weights: Sequence[float] | None = None, before: Pooled | None = None) -> Pooled:
    """
    Return what is pooled over arms, of which at least one varies.

    The logarithms of the variances, less the bias of a chi-square's, are taken to be normal around `location` with the
    variance `dispersion`, which counts like log(4)² with one arm's worth of evidence a priori.
    """
    weight = np.ones(len(arms)) if weights is None else np.array(weights)
    moving = np.array([bool((x != x[0]).any()) for x in arms]) & (weight > 0)
    some = [x for x, moves in zip(arms, moving, strict=True) if moves]
    beta0, dispersion0 = (3.0, math.log(4) ** 2) if before is None else (before.beta, before.dispersion)
    T = np.array([x.size for x in some])
    s2 = np.array([x.var(ddof=1) for x in some]) * weight[moving]
    b, g2 = np.array([shape(x) for x in some]).T
    bias, noise = psi((T - 1) / (beta0 - 1))
    logs, known = np.log(s2) - bias, dispersion0 / (dispersion0 + noise)
    location = float((known * logs).sum() / known.sum())
    real = max(float((known**2 * ((logs - location) ** 2 - noise)).sum()), 0)
    dispersion = (real + math.log(4) ** 2) / (float((known**2).sum()) * (1 - 1 / T.size) + 1)
    centre = min(math.exp(location + dispersion / 2), float(s2.mean()))
    quiet = np.array([x.size for x, moves, w in zip(arms, moving, weight, strict=True) if not moves and w > 0])
    chances = [0.5 if before is None else varies(before.varying, 2 * (t - 1) / (beta0 - 1)) for t in quiet]
    return Pooled(
        location,
        dispersion,
        # Of a log-normal σ: E[σ²]/(2 Var[σ]) and E[σ].
        0.5 / (1 - math.exp(-dispersion / 4)),
        math.sqrt(centre) * math.exp(-dispersion / 8),
        centre,
        max(float((T * b**2).sum() + 20 * 9) / float((T * b).sum() + 20 * 3), 3.0),
        float((T * g2).sum() / (T.sum() + 20)),
        (T.size + sum(chances) + 0.5) / (len(arms) + 1),
        float(T.sum() + quiet.sum()),
    )


# ---- the strategy's own


def of_arms(
    arms: Sequence[Floats],
    weights: Sequence[float] | None = None,
    before: Numbers = UNPOOLED,
    params: Numbers = CONTINUOUS,
) -> Numbers:
    """Return what the strategy pools over arms with these samples."""
    each = weights or [1.0] * len(arms)
    return key.pooled(
        Auto(),
        params,
        [x.size for x in arms],
        [float(x.mean()) for x in arms],
        [float(x.var() * x.size) for x in arms],
        [kept(x, w) for x, w in zip(arms, each, strict=True)],
        before,
    )


def variance(x: Floats, of: Numbers, weight: float = 1.0, wide: float = math.inf) -> float:
    """Return the variance that the strategy plans with."""
    params = Auto().params(None, 2, None if wide == math.inf else (-wide / 2, wide / 2))
    return float(Auto.variance(float(x.size), float(x.mean()), float(x.var() * x.size), of, kept(x, weight), params))


def followed(x: Sequence[float] | Floats, weight: float = 1.0) -> tuple[float, float, float, Numbers]:
    """Return count, mean, M2 and own numbers after these samples, one by one."""
    count, mean, m2, own = 0.0, 0.0, 0.0, (weight, 0.0, 0.0)
    for value in x:
        count, mean, m2 = moments.add(count, mean, m2, float(value))
        own = Auto.keep(float(value), count, mean, m2, UNPOOLED, own, CONTINUOUS)
    return count, mean, m2, own


# ---- the arms of these tests: light, Gaussian and heavy tails, skewed ones, many and few samples


@cache
def drawn() -> dict[str, Floats]:
    rng = np.random.default_rng(11)
    return {
        "light": rng.choice([-1.0, 1.0], 12),
        "gaussian": rng.normal(1, 2, 12),
        "quiet": rng.normal(-3, 0.3, 12),
        "skewed": rng.exponential(1, 12) ** 2,
        "spiky": np.append(rng.normal(0, 0.1, 11), 4.0),
        "few": rng.normal(0, 1, 4),
        "many": rng.normal(0, 3, 700),
        "many skewed": rng.exponential(2, 300),
    }


@cache
def pools() -> dict[str, Pooled]:
    """Made-up pooled numbers."""
    return {
        "gaussian": Pooled(0.1, 0.7, 3.0, 0.9, 1.2, 3.0, 0.0, 0.9, 100.0),
        "heavy": Pooled(0.5, 1.5, 1.6, 1.5, 4.0, 9.0, 5.0, 0.8, 60.0),
        "spiky": Pooled(-1.0, 2.5, 1.1, 0.4, 0.5, 25.0, 16.0, 0.3, 900.0),
        "loud": Pooled(4.0, 1.0, 2.0, 7.0, 60.0, 6.0, 1.0, 0.95, 5000.0),
    }


def equal(count: int, value: float = 3.0) -> Floats:
    return np.full(count, value)


# ---- tests


def exact_psi(x: float) -> tuple[float, float]:
    """Return ψ(x) and ψ'(x) by their series, summed to 2,000,000 terms, with the integral for the rest."""
    n = np.arange(2_000_000)
    rest = n.size + x - 0.5
    psi_x = -0.5772156649015329 + float((1 / (n + 1) - 1 / (n + x)).sum()) + math.log(rest / (n.size + 0.5))
    return psi_x, float((1 / (n + x) ** 2).sum()) + 1 / rest


def test_the_series_of_these_tests_is_right() -> None:
    for x, values in (
        (1.0, (-0.5772156649015329, math.pi**2 / 6)),
        (0.5, (-0.5772156649015329 - 2 * math.log(2), math.pi**2 / 2)),
        (2.0, (1 - 0.5772156649015329, math.pi**2 / 6 - 1)),
    ):
        assert exact_psi(x) == pytest.approx(values, rel=1e-9)


@pytest.mark.parametrize("x", [0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 4.0, 7.5, 30.0, 200.0])
def test_log_gamma(x: float) -> None:
    """To 0.1%, rounded: a gamma variable of shape x and mean 1 has E log = ψ(x) - log(x) and Var log = ψ'(x)."""
    factor, rest, noise = auto.log_gamma(x)
    psi_x, trigamma = exact_psi(x)
    assert -math.log(factor) - rest == pytest.approx(psi_x - math.log(x), rel=1.1e-3)
    assert noise == pytest.approx(trigamma, rel=1.1e-3)


def test_the_constant_of_second_order() -> None:
    """
    4 less the mean overshoot ρ of a walk with steps X = 2 - z², E X = 1 and E X² = 3.

    By Spitzer's identity ρ = E[X²]/(2 E[X]) - Σ_n E[S_n⁻]/n, and S_n = 2n - χ²_n, so that E[S_n⁻] = n P(χ²_{n+2} > 2n)
    - 2n P(χ²_n > 2n). The tails follow from those for one and two degrees of freedom.
    """

    def above(dof: int, x: float) -> float:
        start = 1 if dof % 2 else 2
        tail = math.erfc(math.sqrt(x / 2)) if dof % 2 else math.exp(-x / 2)
        return tail + sum(
            math.exp(a * math.log(x / 2) - x / 2 - math.lgamma(a + 1)) for a in np.arange(start, dof, 2) / 2
        )

    overshoot = 1.5 - sum(above(n + 2, 2 * n) - 2 * above(n, 2 * n) for n in range(1, 200))
    assert pytest.approx(4 - overshoot, abs=5e-4) == auto.SECOND_ORDER


@pytest.mark.parametrize("count", [1.0, 2.0, 3.0, 50.0, 1e6, 2.0**53])
def test_inverses(count: float) -> None:
    exact = [1 / count, 1 / max(count - 1, 1), 1 / (count + 2), 1 / (2500 + count**2)]
    assert auto.inverses(count) == pytest.approx(exact, rel=1e-15, abs=0)


def test_the_probability_that_an_arm_varies() -> None:
    # Of two arms one varies; after ν = 3 degrees of freedom it would have shown nothing half the time.
    assert auto.varies(0.5, 3.0) == pytest.approx(1 / 3)
    assert auto.varies(0.9, 0.0) == pytest.approx(0.9)
    assert auto.varies(0.9, 99.0) == pytest.approx(varies(0.9, 99.0)) == pytest.approx(0.09 / 0.19)


@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=30), st.sampled_from([1.0, 1e140, 1e-140]))
def test_keep_is_its_definition(samples: list[int], unit: float) -> None:
    x = np.array(samples, dtype=float)
    _, third, tail = kept(x)
    m2 = float(x.var() * x.size)
    assume(m2 == 0 or m2 > 1e-6 * float((x**2).sum()))
    _, _, _, own = followed(x * unit, 0.3)
    assert own[0] == 0.3
    assert own[1] / unit == pytest.approx(third, rel=1e-6, abs=1e-6 * math.sqrt(m2))
    assert own[2] == pytest.approx(tail, rel=1e-6)
    assert (own[2] == 0) == (tail == 0)


def test_ties_within_an_arm_that_varies_are_not_equal_samples() -> None:
    for row in ([1.0, 1.0, 2.0, 1.5], [0.0, 1.0] * 20, [3.0] * 50 + [3.0 + 2e-15], [0.1] * 1000 + [0.2]):
        assert followed(row)[3][2] > 0
    # The squares of these are 0 in floats, and M2 with them.
    _, _, m2, own = followed([0.0, 0.0, 1e-200, 1e-200, 0.0])
    assert (m2, own[2]) == (0.0, 1.0)
    for value in (0.1, -1e150, 1e-150, 0.0, 1 / 3):
        assert followed([value] * 1000)[3] == (1.0, 0.0, 0.0)


def test_samples_told_as_moments_are_taken_for_gaussian_ones() -> None:
    first, second, last = np.array([0.0, 2.0, 2.0, 2.0]), np.array([1.0, 5.0, -3.0]), 4.0
    count, mean, m2, own = followed(first)
    assert own == pytest.approx(kept(first))
    count, mean, m2 = moments.merge(count, mean, m2, 3.0, float(second.mean()), float(second.var() * 3))
    told = Auto.keep(math.nan, count, mean, m2, UNPOOLED, own, CONTINUOUS)
    assert told == (1.0, own[1], 3 / 8)
    # The kurtosis b = (T - 1) tail is 3 after very many.
    assert Auto.keep(math.nan, 1e9, mean, m2, UNPOOLED, own, CONTINUOUS)[2] * 1e9 == pytest.approx(3.0)
    grown = np.append(np.concatenate([first, second]), last)
    before, after = m2_so_far(grown)[-2:]
    w = 1 - before / after
    count, mean, m2 = moments.add(count, mean, m2, last)
    assert Auto.keep(last, count, mean, m2, UNPOOLED, told, CONTINUOUS)[2] == pytest.approx(3 / 8 * (1 - w) ** 2 + w**2)
    study = eq.Study(["a", "b"], budget=60)
    study.tell_moments("a", count=50, mean=3.0, m2=40.0)
    while not study.done:
        study.tell(study.ask(), 1.0)
    assert study.result().counts["a"] > 50


def test_a_variance_worked_out_by_hand() -> None:
    """Four samples -1, 1, -1, 1. M2 grows by 2, 2/3 and 4/3, so that b = 3 · 56/9 / 4² = 7/6; g = 0."""
    x = np.array([-1.0, 1.0, -1.0, 1.0])
    of = Pooled(0.0, 0.0, d=2.0, r=1.5, centre=6.0, beta=5.0, gamma2=0.5, varying=0.9, samples=40.0)
    fade = 2500 / 2516
    seen = ((2 * fade * 1.5 + math.sqrt(4 * 3.5)) / (2 * fade + 3)) ** 2 + fade * 6 / (2 * fade + 1.5)
    # Of the excess kurtosis half is beyond a Gaussian's; 1/24 of the tail times 1 + 5/4 has been shown.
    missing = 1 - 1 / 24 * 9 / 4
    unseen = missing / 2 * (6 - seen) / math.sqrt(2.5)
    c = 3.183 + 0.9 * 5.8 * missing * 0.5
    assert variance(x, of.numbers()) == pytest.approx((seen + unseen) * (1 + c / 4), rel=1e-12)
    # A value not seen in four samples comes one time in six, and lies at most 1 away.
    assert unseen > 1 / 6
    assert variance(x, of.numbers(), wide=1.0) == pytest.approx((seen + 1 / 6) * (1 + c / 4), rel=1e-12)
    assert variance(x, of.numbers(), wide=1e200) == variance(x, of.numbers())
    # In another unit, with a weight that makes up for it.
    assert variance(10 * x, of.numbers(), 0.01) == pytest.approx(100 * variance(x, of.numbers()), rel=1e-12)


def test_equal_samples_worked_out_by_hand() -> None:
    """Nine equal samples, ν = 2 · 8/4 = 4, of arms of which nine in ten vary: P = 9/(9 + sqrt(5))."""
    of = Pooled(0.0, 0.0, d=2.0, r=1.5, centre=3.0, beta=5.0, gamma2=0.0, varying=0.9, samples=40.0)
    usual = 3 * 9 / (9 + math.sqrt(5)) * (1 + 3.183 / 9)
    assert variance(equal(9), of.numbers()) == pytest.approx(usual, rel=1e-12)
    assert variance(equal(9), of.numbers(), wide=2.0) == pytest.approx(4 / 11 * (1 + 3.183 / 9), rel=1e-12)


@pytest.mark.parametrize("of", pools())
@pytest.mark.parametrize("arm", [*drawn(), "equal"])
def test_a_variance_is_its_formula(arm: str, of: str) -> None:
    x, pool = equal(7) if arm == "equal" else drawn()[arm], pools()[of]
    for weight, wide in ((1.0, math.inf), (0.02, 30.0), (8.0, 0.5)):
        assert variance(x, pool.numbers(), weight, wide) == pytest.approx(planned(x, pool, weight, wide), rel=1e-9)


@pytest.mark.parametrize(("g2", "b"), [(0.0, 9.0), (4.0, 9.0), (0.0, 20.0)])
def test_many_samples_are_believed(g2: float, b: float) -> None:
    """With s² = 1, T (v - 1) is 3.183 + (1 - λ)(6 - 2λ) g² and 1/2 for the bias of s, where the usual tail was seen."""
    of = pools()["heavy"]._replace(samples=4e6)
    own = (1.0, -math.sqrt(g2), b / 1e6)
    v = Auto.variance(1e6, 0.0, 1e6 - 1, of.numbers(), own, CONTINUOUS)
    assert 1e6 * (v - 1) == pytest.approx(3.183 + 0.75 * 5.5 * g2 + 0.5, rel=2e-3)


def test_before_anything_is_pooled() -> None:
    """The unit says nothing, equal samples have next to no variance, and the arms take turns."""
    x = drawn()["gaussian"]
    first = variance(x, UNPOOLED)
    b, g2 = shape(x)
    c = 3.183 + 6 * (b - 1) / 12 * g2
    assert first == pytest.approx(x.var(ddof=1) * (1 + 0.5 / 11) * (1 + c / 12))
    assert variance(1e-20 * x, UNPOOLED) == pytest.approx(1e-40 * first, rel=1e-12)
    assert 0 < variance(equal(5), UNPOOLED) < 1e-290
    assert Auto().floor(1000.0, 2.0, CONTINUOUS) == 4


# ---- what is pooled

# Arms with as many samples each.
ALIKE = ("light", "gaussian", "quiet", "skewed", "spiky")


def sets() -> dict[str, tuple[list[Floats], list[float] | None]]:
    arms = drawn()
    return {
        "one": ([arms["gaussian"]], None),
        "two": ([arms["gaussian"], arms["quiet"]], None),
        "five": ([arms[name] for name in ALIKE], None),
        "with equal ones": ([arms["gaussian"], equal(12), equal(12, 0.0), arms["quiet"]], None),
        "weighted": ([arms["gaussian"], 100 * arms["quiet"], arms["light"]], [1.0, 1e-3, 0.0]),
        "one loud": ([20 * arms["quiet"], *np.random.default_rng(5).normal(0, 0.3, (9, 12))], None),
        "gaussian, many": (list(np.random.default_rng(4).normal(0, 2, (40, 12))), None),
    }


UNEVEN = {
    **sets(),
    "uneven": (list(drawn().values()), None),
    "uneven, with equal ones": ([*drawn().values(), equal(5), equal(400)], None),
    "uneven, weighted": (list(drawn().values()), [1.0, 2.0, 0.1, 0.0, 3.0, 5.0, 0.01, 0.5]),
}


@pytest.mark.parametrize("unit", [1.0, 1e3, 1e-6])
@pytest.mark.parametrize("name", UNEVEN)
def test_what_is_pooled_first(name: str, unit: float) -> None:
    arms, weights = [unit * x for x in UNEVEN[name][0]], UNEVEN[name][1]
    assert of_arms(arms, weights) == pytest.approx(pooled(arms, weights).numbers(), rel=1e-9, abs=1e-12)


@cache
def settled(name: str) -> Pooled:
    arms, weights = UNEVEN[name]
    found = pooled(arms, weights)
    for _ in range(200):
        found = pooled(arms, weights, found)
    return found


@pytest.mark.parametrize("name", UNEVEN)
def test_pooling_the_same_samples_again_settles_where_the_equations_hold(name: str) -> None:
    arms, weights = UNEVEN[name]
    found = of_arms(arms, weights)
    for _ in range(200):
        found = of_arms(arms, weights, found)
    assert found == pytest.approx(settled(name).numbers(), rel=1e-9, abs=1e-12)


def test_pooling_worked_out_by_hand() -> None:
    """One arm says nothing of how different arms are: log(4)², as assumed; its centre is its own variance."""
    x = drawn()["gaussian"]
    b, g2 = shape(x)
    location, dispersion, d, r, centre, dofs, gamma2, varying, per_sample = of_arms([x])
    assert dispersion == pytest.approx(math.log(4) ** 2)
    assert math.exp(location + dispersion / 2) > x.var(ddof=1)
    assert centre == pytest.approx(x.var(ddof=1))
    assert (d, r) == pytest.approx((0.5 / (1 - 4 ** (-math.log(4) / 4)), math.sqrt(centre) * 4 ** (-math.log(4) / 8)))
    assert 1 + 2 / dofs == pytest.approx(max(3, (12 * b * b + 180) / (12 * b + 60)))
    assert (gamma2, varying, per_sample) == pytest.approx((12 * g2 / 32, 1.5 / 2, 1 / 12))
    # Equal samples change nothing, whatever was pooled before.
    assert of_arms([equal(9), equal(4)]) == UNPOOLED
    before = pools()["heavy"].numbers()
    assert of_arms([equal(9), equal(4)], before=before) == before
    assert Auto.pool((0.0,) * len(Auto.sums), 0.0, UNPOOLED, CONTINUOUS) == UNPOOLED


def test_arms_that_are_alike_are_found_alike() -> None:
    """The dispersion of arms with the same samples is what was assumed, as one arm among K: the rest is noise."""
    x = drawn()["gaussian"]
    known = math.log(4) ** 2 / (math.log(4) ** 2 + float(psi(np.array([5.5]))[1][0]))
    for arms in (2, 10, 100):
        dispersion = of_arms([x] * arms)[1]
        assert dispersion == pytest.approx(math.log(4) ** 2 / (1 + known**2 * (arms - 1)))


def test_the_order_and_the_unit_do_not_matter_for_what_is_pooled() -> None:
    arms, _ = UNEVEN["uneven"]
    one = settled("uneven")
    found = of_arms([1e3 * x + 7 for x in reversed(arms)], before=one.numbers())
    for _ in range(200):
        found = of_arms([1e3 * x + 7 for x in reversed(arms)], before=found)
    want = one._replace(location=one.location + 2 * math.log(1e3), r=1e3 * one.r, centre=1e6 * one.centre).numbers()
    assert found == pytest.approx(want, rel=1e-6)


# ---- mutants


class Point(NamedTuple):
    """A call and what must come out of it."""

    name: str
    arguments: tuple[Any, ...]
    value: Any


def of_keep() -> list[Point]:
    found = []
    for x in (drawn()["skewed"], np.array([2.0, 2.0, 2.0, 5.0, 2.0]), 1e-140 * drawn()["gaussian"]):
        for row in (x[:i] for i in range(3, x.size + 1)):
            moment = (float(row[-1]), float(row.size), float(row.mean()), float(row.var() * row.size))
            found.append(Point("keep", (*moment, UNPOOLED, kept(row[:-1]), CONTINUOUS), kept(row)))
    told = (math.nan, 9.0, 1.0, 4.0, UNPOOLED, (2.0, 0.7, 0.3), CONTINUOUS)
    found.append(Point("keep", told, (2.0, 0.7, 3 / 10)))
    quiet = (math.nan, 9.0, 1.0, 0.5, UNPOOLED, (2.0, 0.7, 0.3), CONTINUOUS)
    found.append(Point("keep", quiet, (2.0, 0.7, 3 / 10)))
    alone = (math.nan, 1.0, 5.0, 0.0, UNPOOLED, (2.0, 0.0, 0.0), CONTINUOUS)
    found.append(Point("keep", alone, (2.0, 0.0, 0.0)))
    first = (5.0, 1.0, 5.0, 0.0, UNPOOLED, (2.0, 0.0, 0.0), CONTINUOUS)
    found.append(Point("keep", first, (2.0, 0.0, 0.0)))
    second = (4.0, 2.0, 3.0, 2.0, UNPOOLED, (2.0, 0.0, 0.0), CONTINUOUS)
    found.append(Point("keep", second, (2.0, 0.0, 1.0)))
    # At 1e16 a mean is rounded to even numbers, and a sample's share of M2 would be twice all of it: M3 is 0.
    count, mean, m2 = moments.add(*moments.add(0.0, 0.0, 0.0, 1e16), 1e16 + 2)
    lost = (1e16 + 2, count, mean, m2, UNPOOLED, (1.0, 0.0, 0.0), CONTINUOUS)
    found.append(Point("keep", lost, (1.0, 0.0, 1.0)))
    return found


def of_variance() -> list[Point]:
    found = []
    for of in pools().values():
        for x in (*drawn().values(), equal(2), equal(30)):
            for weight, wide in ((1.0, math.inf), (0.02, 30.0), (8.0, 0.5), (1.0, 1.0), (0.0, 1.0)):
                moment = (float(x.size), float(x.mean()), float(x.var() * x.size))
                params = Auto().params(None, 2, None if wide == math.inf else (0.0, wide))
                arguments = (*moment, of.numbers(), kept(x, weight), params)
                found.append(Point("variance", arguments, planned(x, of, weight, wide)))
    # An arm that is all of the samples, and one that has more than there were at the last refresh.
    x = drawn()["gaussian"]
    for samples in (12.0, 8.0):
        of = pools()["heavy"]._replace(samples=samples)
        moment = (12.0, float(x.mean()), float(x.var() * 12))
        found.append(Point("variance", (*moment, of.numbers(), kept(x), CONTINUOUS), planned(x, of)))
    # Before anything is pooled the arms take turns.
    found.append(Point("variance", (5.0, 1.0, 0.0, UNPOOLED, (1.0, 0.0, 0.0), CONTINUOUS), 1e-300))
    binary = Auto().params(None, 2, "binary")
    # One of four is 1: a is 1/2 + 3/2 · 0.8/1.8 = 7/6, so that 13/6 · 25/6 over 19/3, and 5 times 0.2, over 22/3 + 5.
    seen = 13 / 6 * 25 / 6 / (19 / 3)
    of_answers = (0.2, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    found.append(Point("variance", (4.0, 0.25, 0.75, of_answers, kept(x), binary), (seen + 1) / (22 / 3 + 5)))
    return found


def of_pooling() -> list[Point]:
    """Pooling, as one point for `share` and `pool` together: arms, weights, parameters, how often."""
    found = [
        Point("pooling", (arms, weights, CONTINUOUS, 1), pooled(arms, weights).numbers())
        for arms, weights in sets().values()
    ]
    found += [
        Point("pooling", (*UNEVEN[name], CONTINUOUS, 60), settled(name).numbers())
        for name in UNEVEN
        if name.startswith("uneven")  # the others take longer to settle
    ]
    # An M2 that is not 0 by rounding does not make samples differ.
    small = [1e-6 * x for x in sets()["with equal ones"][0]]
    found.append(Point("pooling", (small, None, CONTINUOUS, 1), pooled(small).numbers()))
    loud = [1e148 * drawn()[name] for name in ALIKE]
    found.append(Point("pooling", (loud, None, CONTINUOUS, 1), pooled(loud).numbers()))
    found.append(Point("pooling", ([equal(5), equal(3)], None, CONTINUOUS, 1), UNPOOLED))
    arms = [drawn()["gaussian"], drawn()["quiet"]]
    bounded = Auto().params(None, 2, (-9.5, -8.5))
    found.append(Point("pooling", (arms, None, bounded, 1), pooled(arms).numbers()))
    # One, two and none of ten answers are 1: variances 9/90, 16/90 and 0. The rest is in test_credibility.py.
    answers = [np.repeat([1.0, 0.0], [ones, 10 - ones]) for ones in (1, 2, 0)]
    v = np.array([9, 16, 0]) / 90
    real = v @ v - 3 * v.mean() ** 2 - (v * (1 - 4 * v) / 10 + v**2 / 45).sum()
    spread = (real + v.mean() ** 2 / 5) / 3
    kappa = (v.mean() - 4 * (v.mean() ** 2 + spread)) / spread
    binary = Auto().params(None, 3, "binary")
    found.append(Point("pooling", (answers, None, binary, 1), (v.mean(), kappa, *[0.0] * 7)))
    return found


def found_at(point: Point) -> Any:
    if point.name != "pooling":
        return getattr(Auto, point.name)(*point.arguments)
    arms, weights, params, times = point.arguments
    found = UNPOOLED
    for _ in range(times):
        found = of_arms(arms, weights, found, params)
    return found


@cache
def points(name: str) -> list[Point]:
    return {"keep": of_keep, "variance": of_variance}.get(name, of_pooling)()


def unnoticed(name: str) -> bool:
    """Whether all points still agree; a result that cannot be compared is as good as a wrong one."""
    try:
        return all(found_at(point) == pytest.approx(point.value, rel=1e-7, abs=0.0) for point in points(name))
    except Exception:
        return False


# Mutants that compute the same function, or differ beyond the digits that are compared: how many, and why.
EQUIVALENT = {
    "keep: 1e-300  ->  1.5e-300": (1, "a variance that is lost in either case"),
    "keep: 1.0  ->  1.5": (1, "in place of an M2 of 0, of which the sample's share is 0"),
    "share: 1e-300  ->  1.5e-300": (1, "a variance that is lost in either case"),
    "share: 1e-290  ->  1.5000000000000002e-290": (1, "a variance that is lost in either case"),
    "share: 1.0  ->  1.5": (1, "in place of an M2 of 0"),
    "share: 0.0  ->  1": (11, "sums that binary arms do not need"),
    "variance: 1e-300  ->  1.5e-300": (1, "a variance that is lost in either case"),
    "variance: 1e-30  ->  1.5000000000000001e-30": (1, "against a division by 0"),
    "variance: d + nu + 1e-30  ->  d + nu - 1e-30": (1, "against a division by 0"),
    "variance: 1.0  ->  1.5": (
        2,
        "in place of an M2 of 0; and b is at least 1, but for rounding, so that h is at most 1",
    ),
}


def survivors(owner: Any, name: str, agrees: Callable[[str], bool]) -> list[str]:
    """Return the mutants of a function under which all points still agree."""
    found = []
    for (before, after), mutant in mutants(owner, name):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, mutant)
            if agrees(name):
                found.append(f"{name}: {before}  ->  {after}")
    return found


def test_without_a_mutant_all_points_agree() -> None:
    for name in ("keep", "variance", "share", "pool"):
        for point in points(name):
            assert found_at(point) == pytest.approx(point.value, rel=1e-7, abs=0.0)


@pytest.mark.parametrize("name", ["keep", "variance", "share", "pool"])
def test_no_mutant_goes_unnoticed(name: str) -> None:
    excused = {mutant: times for mutant, (times, _) in EQUIVALENT.items() if mutant.startswith(name)}
    assert Counter(survivors(Auto, name, unnoticed)) == Counter(excused)


@pytest.mark.parametrize("name", ["TAU2", "SHAPE", "ENOUGH", "SECOND_ORDER", "GAUSSIAN_KURTOSIS"])
def test_no_constant_goes_unnoticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for factor in (1.1, 0.9):
        monkeypatch.setattr(auto, name, factor * getattr(auto, name))
        assert not all(unnoticed(each) for each in ("keep", "variance", "share", "pool"))
        monkeypatch.undo()


# ---- one sample in the last bit


@pytest.mark.parametrize("others", [1, 9])
@pytest.mark.parametrize("count", [8, 30, 100])
def test_one_sample_that_differs_in_its_last_bit(count: int, others: int) -> None:
    """
    Of `count` equal samples one is moved by one unit in the last place, among Gaussian arms.

    The arm then varies, which is news at any size. Over ten seeds its variance falls by a factor of 6.5 at most where
    the sample comes early, and grows by one of 2.0 where it comes in the middle and of 4.2 where it comes last; those
    of the other arms change by a factor of 2.0. It was 68 once.
    """
    rest = np.random.default_rng(7).normal(0, 1, (others, count))

    def variances(where: int | None) -> Floats:
        row = equal(count)
        if where is not None:
            row[where] = np.nextafter(3.0, math.inf)
        scan = Scan(Auto(), others + 1, None)
        for i in range(count):
            for k, x in enumerate([row, *rest]):
                scan.tell(k, float(x[i]), in_flight=False)
        return np.array([scan.variance(k) for k in range(others + 1)])

    before = variances(None)
    for where, most in ((1, 8.0), (count // 2, 3.0), (count - 1, 5.0)):
        factors = np.exp(np.abs(np.log(variances(where) / before)))
        assert 1 < factors[0] < most
        assert factors.max() < most
        assert (factors[1:] < 2).all()


# ---- extreme inputs


def rows(arms: int, count: int) -> Floats:
    return np.random.default_rng(8).normal(0, 1, (arms, count))


EXTREMES: dict[str, tuple[Floats, Support, list[float] | None]] = {
    "huge": (1e150 * np.tanh(rows(3, 40)), None, None),
    "tiny": (1e-150 * rows(3, 40), None, None),
    "lost": (1e-200 * rows(3, 40), None, None),
    "huge and tiny": (np.array([[1e150], [1.0], [1e-150]]) * np.tanh(rows(3, 40)), None, None),
    "far from zero": (1e12 + rows(2, 40), None, None),
    "all constant": (np.repeat([[1.0], [-1e150], [0.0]], 40, axis=1), None, None),
    "one arm": (rows(1, 40), None, None),
    "one constant arm": (equal(40)[None], None, None),
    "without weight": (rows(4, 40), None, [0.0, 1.0, 0.0, 5.0]),
    "extreme weights": (rows(3, 40), None, [1e-100, 1.0, 1e100]),
    "a narrow support": (np.clip(1e-9 * rows(3, 40), -1e-9, 1e-9), (-1e-9, 1e-9), None),
    "a narrow support far away": (1.0 + np.array([[0.0, 2.0**-52] * 20, [0.0] * 40]), (1.0, 1.0 + 2.0**-52), None),
    "a wide support": (rows(3, 40), (-1e150, 1e150), None),
    "binary, constant": (np.repeat([[1.0], [0.0]], 40, axis=1), "binary", None),
    "binary, once": (np.array([[1.0] * 39 + [0.0], [0.0, 1.0] * 20]), "binary", [1.0, 0.0]),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_extreme_samples(name: str) -> None:
    """In plain Python and compiled: no exception, finite positive variances, and the same choices."""
    samples, support, weights = EXTREMES[name]
    arms = len(samples)
    goal = objective(range(arms), weights=weights)
    scan = Scan(Auto(), arms, 40, support, goal)
    study = eq.Study(arms, 40, support=support, weights=weights)
    while not study.done:
        ticket = study.ask()
        k: Any = ticket.arm
        assert k == scan.choice()
        scan.pull(k)
        value = float(samples[k][scan.counts[k]])
        scan.tell(k, value)
        study.tell(ticket, value)
        for j in range(arms):
            if scan.counts[j] >= 2:
                assert 0 < scan.variance(j) < math.inf
        assert all(math.isfinite(each) for each in scan.pooled)
    assert study.result().counts.array.tolist() == scan.counts
    if weights:
        assert all(scan.counts[k] == 4 for k, weight in enumerate(weights) if weight == 0)


def test_samples_that_are_refused() -> None:
    study = eq.Study(["a", "b"])
    for wrong in (math.nan, math.inf, -math.inf, 1e200):
        with pytest.raises(ValueError, match="a sample must be a finite number"):
            study.tell(arm="a", value=wrong)
    assert study.result().samples == 0


def test_a_million_arms_take_their_first_samples() -> None:
    study = eq.Study(10**6, budget=10**7)
    tickets = study.ask(1000)
    study.tell_many([(ticket, float(i % 7)) for i, ticket in enumerate(tickets)])
    for i in range(500):
        study.tell(arm=i % 5, value=float(i % 11))
    # Every arm has four pulls first.
    assert len({ticket.arm for ticket in study.ask(1000)}) == 1000
    assert study.remaining == 10**7 - 2000
