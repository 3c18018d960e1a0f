"""The laws that stand for arms in a replay."""

from __future__ import annotations

import numpy as np
import pytest

import equipoise as eq
from equipoise.inference.replay_laws import chances, fitted


def coins(p: float, counts: list[int]) -> list[np.ndarray]:
    """Samples with as many ones as p says."""
    return [np.repeat([1.0, 0.0], [round(p * count), count - round(p * count)]) for count in counts]


def test_samples_are_laws() -> None:
    samples = [np.array([0.0, 1.0, 5.0]), np.array([2.0, 4.0])]
    assert [law.mean for law in fitted(samples, True).arms] == [2, 3]
    assert [law.mean for law in fitted(samples, False).arms] == [0, 0]
    assert fitted(samples, False).variances.tolist() == pytest.approx([np.var(own) for own in samples])


def test_binary_arms_that_differ_by_chance_have_one_law() -> None:
    """The shares of ones scatter less than their errors, 0.055, so that nothing says that the arms differ."""
    shares, counts = np.array([0.08, 0.10, 0.12, 0.14]), np.full(4, 50)
    found = chances(counts, shares)
    assert found.std() == pytest.approx(0, abs=1e-12)
    variance = (shares * (1 - shares)).mean() * 50 / 49
    assert found[0] * (1 - found[0]) == pytest.approx(variance)
    problem = fitted([own for p in shares for own in coins(p, [50])], False)
    assert problem.arms == (eq.Bernoulli(found[0]),) * 4


def test_binary_arms_that_differ_keep_their_differences() -> None:
    counts = np.full(4, 10_000)
    shares = np.array([0.05, 0.1, 0.3, 0.95])
    assert chances(counts, shares) == pytest.approx(shares, rel=0.01)


def test_the_laws_of_binary_arms_differ_as_much_as_the_true_ones() -> None:
    """
    400 studies of 50 arms with variances of 0.05 and 0.2, 20 samples each: the laws' variances have the true standard
    deviation of 0.075 within 5%, with a standard error of 0.3%; the observed ones have a sixth more.
    """
    rng = np.random.default_rng(3)
    true = 0.5 - np.sqrt(0.25 - np.repeat([0.05, 0.2], 25))
    means = rng.binomial(20, true, (400, 50)) / 20
    found = np.array([chances(np.full(50, 20), each) for each in means])
    spread = (found * (1 - found)).var(axis=1).mean() ** 0.5
    observed = (means * (1 - means) * 20 / 19).var(axis=1).mean() ** 0.5
    assert observed > 1.15 * 0.075
    assert spread == pytest.approx(0.075, rel=0.05)


def test_arms_that_never_vary_and_single_samples_have_laws() -> None:
    assert chances(np.array([30, 30]), np.array([0.0, 0.0])).tolist() == [0, 0]
    assert chances(np.array([30, 30]), np.array([1.0, 0.0])).tolist() == [1, 0]
    assert np.isfinite(chances(np.array([1, 30, 1]), np.array([1.0, 0.1, 0.0]))).all()
