"""Credibility for binary arms: against integrals, enumerations and a case worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.strategies import credibility
from tests.mutation import mutants

# The middles of a fine grid of angles: p = sin²(θ) makes the density of a Beta law smooth at 0 and 1.
THETA = (np.arange(200_000) + 0.5) / 200_000 * math.pi / 2
P = np.sin(THETA) ** 2


def posterior_mean(a: float, b: float) -> float:
    """Return E[p(1 - p)] under Beta(a, b), by numerical integration."""
    logs = (2 * a - 1) * np.log(np.sin(THETA)) + (2 * b - 1) * np.log(np.cos(THETA))
    density = np.exp(logs - logs.max())
    return float((density * P * (1 - P)).sum() / density.sum())


CASES = [(0, 2), (2, 0), (1, 1), (3, 17), (40, 0), (5, 5), (400, 100)]


@pytest.mark.parametrize(("mean_variance", "kappa"), [(0.0, 0.0), (0.05, 0.0), (0.05, 3.5), (0.25, 1e6)])
@pytest.mark.parametrize(("ones", "zeros"), CASES)
def test_the_variance_is_a_posterior_mean(ones: int, zeros: int, mean_variance: float, kappa: float) -> None:
    """The mean of p(1-p) given the answers counts like T + 2a + 1 observations, the mean variance like κ."""
    count = ones + zeros
    typical = count * mean_variance
    a = 0.5 + 1.5 * typical / (1 + typical)
    answers = count + 2 * a + 1
    expected = (answers * posterior_mean(a + ones, a + zeros) + kappa * mean_variance) / (answers + kappa)
    found = credibility.variance(count, ones * zeros / count, mean_variance, kappa)
    assert found == pytest.approx(expected, rel=1e-5)


def test_the_prior_goes_from_jeffreys_to_two_successes() -> None:
    """Without typical variance, Beta(1/2, 1/2); with much of it, Beta(2, 2)."""
    assert credibility.variance(10, 0.0, 0.0, 0.0) == pytest.approx(posterior_mean(0.5, 10.5), rel=1e-8)
    assert credibility.variance(10, 0.0, 1e9, 0.0) == pytest.approx(posterior_mean(2.0, 12.0), rel=1e-8)


@pytest.mark.parametrize("p", [0.02, 0.2, 0.4])
@pytest.mark.parametrize("count", [2, 5, 30])
def test_the_noise_is_the_variance_of_the_variance(p: float, count: int) -> None:
    """Over all numbers of ones, with their binomial probabilities, the unbiased variance varies as `share` says."""
    ones = np.arange(count + 1)
    chances = np.array([math.comb(count, s) for s in ones]) * p**ones * (1 - p) ** (count - ones)
    v = ones * (count - ones) / count / (count - 1)
    assert chances @ v == pytest.approx(p * (1 - p))
    found, square, noise = credibility.share(count, p * (1 - p) * (count - 1))
    assert (found, square) == pytest.approx((p * (1 - p), (p * (1 - p)) ** 2))
    assert noise == pytest.approx(chances @ (v - p * (1 - p)) ** 2)


def test_a_variance_above_a_quarter_has_the_noise_of_a_fair_coin_only() -> None:
    # One of two is 1: s² = 1/2, more than any p(1 - p).
    assert credibility.share(2.0, 0.5) == pytest.approx((0.5, 0.25, 2 * 0.25 / 2))


def test_what_is_assumed_is_a_uniform_p() -> None:
    """The variance of p(1-p) with p uniform on (0, 1) is a fifth of its mean squared: 1/180 and 1/36."""
    p = (np.arange(1_000_000) + 0.5) / 1_000_000
    v = p * (1 - p)
    assert v.var() == pytest.approx(v.mean() ** 2 / 5, rel=1e-9)
    # Of one arm nothing is known but that.
    mean, kappa = credibility.pool(1 / 6, 1 / 36, 0.0, 1.0)
    assert mean == pytest.approx(1 / 6)
    assert kappa == pytest.approx((v * (1 - 4 * v)).mean() / v.var(), rel=1e-6)


def test_buhlmanns_credibility_by_hand() -> None:
    """Variances 0.09, 0.25, 0.16 and 0.1: s̄² = 0.15, Σ(s² - s̄²)² = 0.0162; noise 0.0017; 0.15²/5 = 0.0045."""
    v = np.array([0.09, 0.25, 0.16, 0.1])
    assert ((v - v.mean()) ** 2).sum() == pytest.approx(0.0162)
    tau2 = (0.0162 - 0.0017 + 0.0045) / 4
    mean, kappa = credibility.pool(float(v.sum()), float(v @ v), 0.0017, 4.0)
    assert mean == pytest.approx(0.15)
    assert kappa == pytest.approx((0.15 - 4 * (0.0225 + tau2)) / tau2, rel=1e-12)
    # Noise that explains more than there is: only what is assumed remains, as one arm among four.
    tau2 = 0.0045 / 4
    assert credibility.pool(0.6, float(v @ v), 1.0, 4.0)[1] == pytest.approx((0.15 - 4 * (0.0225 + tau2)) / tau2)


def test_pooling_nothing() -> None:
    assert credibility.pool(0.0, 0.0, 0.0, 0.0) == (0.0, 0.0)
    assert credibility.pool(0.0, 0.0, 0.0, 3.0) == (0.0, 0.0)
    # A mean variance above a quarter leaves no chance error: nothing is shrunk.
    assert credibility.pool(1.0, 0.5, 0.0, 2.0) == (0.5, 0.0)


def noticed() -> bool:
    """Whether a test above fails."""
    try:
        for ones, zeros in CASES:
            test_the_variance_is_a_posterior_mean(ones, zeros, 0.05, 3.5)
        test_the_noise_is_the_variance_of_the_variance(0.2, 5)
        test_a_variance_above_a_quarter_has_the_noise_of_a_fair_coin_only()
        test_what_is_assumed_is_a_uniform_p()
        test_buhlmanns_credibility_by_hand()
        test_pooling_nothing()
    except Exception:
        return True
    return False


@pytest.mark.parametrize("name", ["variance", "share", "pool"])
def test_no_mutant_goes_unnoticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not noticed()
    survivors = []
    for change, mutant in mutants(credibility, name):
        with monkeypatch.context() as patch:
            patch.setattr(credibility, name, mutant)
            if not noticed():
                survivors.append(change)
    assert survivors == []
