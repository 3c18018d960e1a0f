"""Each law's moments, against the integral of its density at high precision, and against its own samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import mpmath
import numpy as np
import pytest

import equipoise as eq
from equipoise.problem.laws import centred

INF = mpmath.inf


def integral(density: Callable[[Any], Any], *ends: Any) -> Callable[[Callable[[Any], Any]], Any]:
    return lambda f: mpmath.quad(lambda x: f(x) * density(x), list(ends))


def points(*weighted: tuple[float, float]) -> Callable[[Callable[[Any], Any]], Any]:
    return lambda f: sum(f(mpmath.mpf(x)) * mpmath.mpf(w) for x, w in weighted)


def normal(mean: float, variance: float) -> Callable[[Any], Any]:
    return lambda x: mpmath.npdf(x, mean, mpmath.sqrt(variance))


def student(df: float, scale: float) -> Callable[[Any], Any]:
    norm = mpmath.gamma((df + 1) / 2) / (mpmath.sqrt(df * mpmath.pi) * mpmath.gamma(df / 2) * scale)
    return lambda x: norm * (1 + (x / scale) ** 2 / df) ** (-(df + 1) / 2)


# A law, and its expectation worked out another way.
LAWS: list[tuple[eq.Law, Callable[[Callable[[Any], Any]], Any]]] = [
    (eq.Gaussian(3, 4), integral(normal(3, 4), -INF, 3, INF)),
    (eq.Gaussian(-1, 0.25), integral(normal(-1, 0.25), -INF, -1, INF)),
    (eq.Rademacher(), points((-1, 0.5), (1, 0.5))),
    (eq.Rademacher(2.5), points((-2.5, 0.5), (2.5, 0.5))),
    (eq.Bernoulli(0.125), points((0, 0.875), (1, 0.125))),
    (eq.Bernoulli(1), points((1, 1))),
    (eq.Uniform(-1, 4), integral(lambda x: mpmath.mpf(1) / 5, -1, 4)),
    (eq.Exponential(2), integral(lambda x: mpmath.exp(-x / 2) / 2, 0, 2, 20, INF)),
    (eq.Laplace(1, 8), integral(lambda x: mpmath.exp(-abs(x - 1) / 2) / 4, -INF, -20, 1, 20, INF)),
    # In the logarithm's own variable, where the density is Gaussian.
    (
        eq.LogNormal(0.25, 0.5),
        lambda f: mpmath.quad(lambda z: f(mpmath.exp(0.25 + z / 2)) * mpmath.npdf(z), [-INF, 0, 4, INF]),
    ),
    (eq.StudentT(9, 2), integral(student(9, 2), -INF, -20, 0, 20, INF)),
    (eq.Constant(-7), points((-7, 1))),
    (eq.Empirical([1, 1, 2, 8]), points((1, 0.5), (2, 0.25), (8, 0.25))),
]


@pytest.mark.parametrize(("law", "expectation"), LAWS, ids=[repr(law) for law, _ in LAWS])
def test_moments_are_those_of_the_density(law: eq.Law, expectation: Callable[[Callable[[Any], Any]], Any]) -> None:
    with mpmath.workdps(30):
        assert float(expectation(lambda x: 1)) == pytest.approx(1, rel=1e-12)
        mean = expectation(lambda x: x)
        assert law.mean == pytest.approx(float(mean), rel=1e-12, abs=1e-15)
        for moment, power in ((law.variance, 2), (law.third, 3), (law.fourth, 4)):
            central = float(expectation(partial(lambda p, x: (x - mean) ** p, power)))
            assert moment == pytest.approx(central, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("law", [law for law, _ in LAWS], ids=repr)
def test_samples_have_the_laws_mean_and_variance(law: eq.Law) -> None:
    """200,000 samples, seed 5: the mean within 5 of its standard errors, the variance within 5 of its own."""
    n = 200_000
    x = law.sample(np.random.default_rng(5), n)
    assert x.shape == (n,)
    assert x.dtype == float
    assert abs(x.mean() - law.mean) <= 5 * math.sqrt(law.variance / n)
    error = math.sqrt(max(law.fourth - law.variance**2, 0) / n)
    assert abs(((x - law.mean) ** 2).mean() - law.variance) <= 5 * error + 1e-12


def test_heavy_tails_have_infinite_moments() -> None:
    assert eq.StudentT(4.5).fourth < math.inf
    assert eq.StudentT(4).fourth == math.inf
    assert eq.StudentT(3.5).third == 0
    assert eq.StudentT(3).third == math.inf
    assert eq.StudentT(2.5).variance == pytest.approx(5)
    assert eq.StudentT(2).variance == math.inf
    assert eq.StudentT(1.5).mean == 0


def test_moments_too_large_for_a_float_are_infinite() -> None:
    law = eq.LogNormal(0, 40)
    assert (law.mean, law.variance, law.third, law.fourth) == (math.inf,) * 4
    large = eq.LogNormal(400, 1)
    assert large.mean == pytest.approx(math.exp(400.5))
    assert large.variance == math.inf
    assert eq.LogNormal(800, 0).variance == math.inf  # 0 times infinity is not known to be 0
    for wide in (eq.Gaussian(0, 1e160), eq.Laplace(0, 1e160), eq.Uniform(0, 1e100), eq.StudentT(9, 1e100)):
        assert (wide.variance < math.inf, wide.fourth) == (True, math.inf)
    for wider in (eq.Rademacher(1e160), eq.Exponential(1e160), eq.Uniform(0, 1e160), eq.StudentT(9, 1e160)):
        assert (wider.variance, wider.fourth) == (math.inf, math.inf)
    assert eq.Exponential(1e110).third == math.inf


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: eq.Gaussian(0, -1), "variance of Gaussian must be non-negative and finite, got -1"),
        (lambda: eq.Gaussian(math.nan, 1), "mean of Gaussian must be a finite number, got nan"),
        (lambda: eq.Gaussian(0, math.inf), "variance of Gaussian must be .*, got inf"),
        (lambda: eq.Rademacher(0), "scale of Rademacher must be positive and finite, got 0"),
        (lambda: eq.Bernoulli(1.5), r"p of Bernoulli must be between 0 and 1, got 1\.5"),
        (lambda: eq.Uniform(1, 1), "high of Uniform must be greater than low=1, got 1"),
        (lambda: eq.Exponential(-2), "scale of Exponential must be positive and finite, got -2"),
        (lambda: eq.Laplace(0, -2), "variance of Laplace must be .*, got -2"),
        (lambda: eq.LogNormal(0, -1), "log_sd of LogNormal must be .*, got -1"),
        (lambda: eq.StudentT(1), "df of StudentT must be greater than 1 and finite, got 1"),
        (lambda: eq.Constant(math.inf), "value of Constant must be a finite number, got inf"),
        (lambda: eq.Empirical([]), "values of Empirical must have at least one number, got none"),
        (lambda: eq.Empirical([1.0, math.nan]), "values of Empirical must be finite, got nan"),
    ],
)
def test_parameters_that_are_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: eq.Gaussian(0, "4"), "variance of Gaussian must be a number, got '4'"),  # type: ignore[arg-type]
        (lambda: eq.Uniform(None, 1), "low of Uniform must be a number, got None"),  # type: ignore[arg-type]
        (lambda: eq.Empirical(["x"]), r"values of Empirical must be numbers, got \['x'\]"),
    ],
)
def test_parameters_that_are_not_numbers(make: Callable[[], object], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        make()


FAR: list[eq.Law] = [
    eq.Gaussian(1.7e9, 1e-6),
    eq.Laplace(-1.7e9, 1e-6),
    eq.Uniform(1.7e9, 1.7e9 + 1e-3),
    eq.Empirical([1.7e9, 1.7e9 + 1e-3, 1.7e9 + 5e-3]),
]


@pytest.mark.parametrize("law", FAR, ids=repr)
def test_a_law_that_is_far_from_0_is_moved_there(law: eq.Law) -> None:
    found = centred(law)
    assert type(found) is type(law)
    assert abs(found.mean) < 1e-6  # half of the last digit of 1.7e9 is 1e-7
    # The moments of the values given are those around their rounded mean.
    for name in ("variance", "third", "fourth"):
        assert getattr(found, name) == pytest.approx(getattr(law, name), rel=1e-3)
    assert centred(found) is found
    far, near = (each.sample(np.random.default_rng(1), 1000) for each in (law, found))
    np.testing.assert_allclose(far - law.mean, near, atol=1e-6)


def test_a_law_that_is_not_far_stays_as_it_is() -> None:
    near: list[eq.Law] = [
        eq.Gaussian(2.0**20 * 0.999, 1),
        eq.Gaussian(1e9, 0),
        eq.Constant(1.7e9),
        eq.Uniform(1e6, 1e6 + 4),
    ]
    near += [
        eq.Bernoulli(0.999),
        eq.Rademacher(1e9),
        eq.Exponential(1e9),
        eq.StudentT(5, 1e9),
        eq.Empirical([3e9, 3e9]),
    ]
    assert [law for law in near if centred(law) is not law] == []
    assert centred(eq.Gaussian(2.0**20 * 1.001, 1)) == eq.Gaussian(0, 1)
    problem = eq.Problem(near)
    assert problem.centred() is problem
    assert eq.Problem([near[0], FAR[0]]).centred() == eq.Problem([near[0], eq.Gaussian(0, 1e-6)])
