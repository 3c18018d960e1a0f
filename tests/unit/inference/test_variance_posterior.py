"""What variances may be: pooled where arms look alike, each on its own where they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.inference import variance_posterior as spread
from equipoise.inference.variance_posterior import Binary, General


def told(samples: Any, **options: Any) -> eq.Result:
    """The result of a study that was asked for these samples, by arm."""
    study = eq.Study(len(samples), strategy="uniform", **options)
    for row in zip(*samples, strict=True):
        for ticket, value in zip(study.ask(len(row)), row, strict=True):
            study.tell(ticket, float(value))
    return study.result()


def draws(result: eq.Result, **options: Any) -> Any:
    found = spread.spread(result.known)
    assert found is not None
    return found.draws(4000, np.random.default_rng(1), **options)


def test_arms_that_look_alike_are_pooled() -> None:
    """50 arms of 30 Gaussian samples: the largest of the sample variances is 1.6, the largest that is likely near 1."""
    result = told(np.random.default_rng(2).normal(size=(50, 30)))
    assert result.variances.array.max() > 1.5
    found = draws(result)
    assert np.median(found.max(axis=1)) < 1.15
    assert np.median(found) == pytest.approx(1, abs=0.05)
    # If they cannot be equal, they differ by a little.
    apart = draws(result, equal=0.0)
    assert np.median(found.max(axis=1)) < np.median(apart.max(axis=1)) < result.variances.array.max()


def test_arms_that_differ_are_not() -> None:
    """Variances 1, 4 and 100 of 400 samples each: s² has a standard deviation of 7%, and so has the posterior."""
    result = told(np.array([[1], [2], [10]]) * np.random.default_rng(3).normal(size=(3, 400)))
    found = draws(result)
    assert np.median(found, axis=0) == pytest.approx(result.variances.array, rel=0.03)
    assert np.log(found).std(axis=0) == pytest.approx([np.sqrt(2 / 400)] * 3, rel=0.15)


@pytest.mark.parametrize(
    ("law", "kurtosis"), [(eq.Gaussian(3, 4), 3), (eq.Exponential(2), 9), (eq.Uniform(0, 1), 1.8)], ids=str
)
def test_the_kurtosis_of_all_arms_together(law: eq.Law, kurtosis: float) -> None:
    """Of 40 arms with 60 samples each, whose own kurtoses are far off."""
    found = spread.spread(told(law.sample(np.random.default_rng(4), 2400).reshape(40, 60)).known)
    assert found is not None
    assert np.median(found.noise) == pytest.approx(kurtosis - 1, rel=0.2)


def test_units_are_those_of_the_weights() -> None:
    """Arms in metres and millimetres look alike with units that say so."""
    counts, variances, fourth = np.array([40, 40]), np.array([1.0, 1.4]), np.array([120.0, 240.0])
    metres = General(counts, variances, np.ones(2), counts.astype(float), np.zeros(2), fourth)
    scale = np.array([1, 1e6])
    both = General(counts, variances * scale, 1 / scale, counts.astype(float), np.zeros(2), fourth * scale**2)
    found, plain = (each.draws(200, np.random.default_rng(1)) for each in (both, metres))
    assert found == pytest.approx(plain * scale)
    assert np.median(plain[:, 1] / plain[:, 0]) < 1.2


def test_an_arm_that_never_varies() -> None:
    result = told(np.array([[0.0, 1.0, 5.0] * 10, [7.0] * 30]))
    assert (draws(result)[:, 1] == 0).all()
    assert (draws(result)[:, 0] > 0).all()


def test_binary_arms() -> None:
    """The variance of arms without a single one is not 0, whichever way round they are told."""
    samples = np.array([[0] * 30, [0] * 27 + [1] * 3, [0, 1] * 15])
    found = draws(told(samples, support="binary"))
    assert (found > 0).all()
    assert (found <= 0.25).all()
    assert 0.001 < np.median(found[:, 0]) < np.median(found[:, 1]) < np.median(found[:, 2])
    assert draws(told(1 - samples, support="binary")) == pytest.approx(found)
    assert draws(told(samples)) == pytest.approx(found)  # recognised
    noise = Binary(np.array([10_000]), np.array([0.1])).noise
    assert noise == pytest.approx([0.64 / 0.09], rel=0.01)  # (1 - 4v)/v


def test_nothing_is_known_of_too_few() -> None:
    study = eq.Study(2)
    for ticket in study.ask(3):
        study.tell(ticket, float(ticket.id))
    assert spread.spread(study.result().known) is None
    # With so few, the kurtosis is taken to be a Gaussian's.
    few = General(
        np.array([3, 3]), np.array([1.0, 2.0]), np.ones(2), np.array([3.0, 3.0]), np.zeros(2), np.array([9.0, 9.0])
    )
    assert few.noise.tolist() == [2, 2]


def test_very_many_arms_are_fitted_by_some_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    result = told(np.random.default_rng(6).normal(size=(300, 20)))
    whole = draws(result)
    monkeypatch.setattr(spread, "FITTED", 100)
    assert np.median(draws(result)) == pytest.approx(np.median(whole), rel=0.05)


def test_skewness_by_chance_is_pooled() -> None:
    """Twenty Gaussian arms of 50 samples show skewnesses of ±0.33, in which one would believe if there were one arm."""
    rng = np.random.default_rng(5)
    known = spread.spread(told([rng.normal(size=50) for _ in range(20)]).known)
    assert known is not None
    laws = known.laws(500, rng)
    assert abs(laws.skewness).mean() < 0.2
    assert laws.noise.mean() == pytest.approx(2, abs=0.5)


def test_a_skewed_arm_among_others() -> None:
    """An exponential arm, γ = 2 and κ = 9, among seven uniform ones, γ = 0 and κ = 1.8."""
    rng = np.random.default_rng(6)
    result = told([rng.exponential(size=200), *rng.uniform(size=(7, 200))])
    known, evidence = spread.spread(result.known), result.known.snapshot.evidence
    assert known is not None
    assert evidence is not None
    laws = known.laws(500, rng)
    assert laws.skewness[:, 0].mean() == pytest.approx(evidence.skewness[0], rel=0.25)
    assert abs(laws.skewness[:, 1:].mean(axis=0)).max() < 0.3
    assert known.noise[0] > 4 > 1.5 > known.noise[1:].max()
    # Where its variance is larger than it seems, so is its skewness.
    assert np.corrcoef(laws.variances[:, 0], laws.skewness[:, 0])[0, 1] > 0.3
    assert abs(np.corrcoef(laws.variances[:, 1], laws.skewness[:, 1])[0, 1]) < 0.2
