"""The problem suite: what it covers, and what is known of each problem."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from equipoise.lab import suite as problems
from equipoise.lab.board.cells import EntryRun
from equipoise.lab.suite import Case, case, claims, left_out, mixture, suite
from equipoise.problem import Bernoulli, Constant, Empirical, Exponential, Gaussian, Laplace, Law, Problem, Rademacher
from equipoise.strategies import EvenSplit


def test_it_covers_the_axes() -> None:
    cases = suite()
    assert len(cases) >= 60
    assert len({each.name for each in cases}) == len(cases)
    arms = [len(each.problem) for each in cases]
    assert (min(arms), max(arms)) == (2, 100)
    assert (min(each.per_arm for each in cases), max(each.per_arm for each in cases)) == (15, 3000)
    assert sum(each.kind == "continuous" and each.per_arm == 1000 for each in cases) >= 5
    ratios = [v.max() / v[v > 0].min() for v in (each.problem.variances for each in cases)]
    assert min(ratios) == 1
    assert max(ratios) == pytest.approx(1e4)
    laws = {type(law).__name__ for each in cases for law in each.problem.arms}
    assert laws >= {
        "Gaussian",
        "Rademacher",
        "Uniform",
        "Exponential",
        "Laplace",
        "LogNormal",
        "StudentT",
        "Empirical",
    }
    p = [law.p for each in cases for law in each.problem.arms if isinstance(law, Bernoulli) and 0 < law.p < 1]
    assert (min(p), max(p)) == (0.002, 0.998)
    assert any(isinstance(law, Constant) for each in cases for law in each.problem.arms)
    assert all(each.why for each in cases)


@pytest.mark.parametrize("each", suite(), ids=lambda each: each.name)
def test_every_problem_has_an_exact_best_loss(each: Case) -> None:
    exact = math.fsum(law.variance for law in each.problem.arms) / each.budget
    assert each.optimal_loss == pytest.approx(exact, rel=1e-14)
    assert 0 < exact < math.inf
    for law in each.problem.arms:
        if each.support == "binary":
            assert isinstance(law, Bernoulli)
        elif each.support is not None:
            drawn = law.sample(np.random.default_rng(1), 1000)
            assert each.support[0] <= drawn.min() <= drawn.max() <= each.support[1]


def limit(*laws: Law) -> float:
    """N times the limit of the excess."""
    return 10 * Case("", "", Problem(laws), 10, "light").limit


def test_the_limit_is_that_of_the_laws() -> None:
    """The sum over arms of (1 - lambda) (5 - kurtosis + (6 - 2 lambda) skewness²)."""
    assert limit(Gaussian(0, 1), Gaussian(3, 1)) == pytest.approx(2)
    assert limit(*[Gaussian(0, 4)] * 7) == pytest.approx(2 * 6)
    assert limit(Gaussian(0, 1), Gaussian(0, 100), Gaussian(0, 4)) == pytest.approx(2 * 2)
    # Exponential arms have kurtosis 9 and skewness 2.
    assert limit(Exponential(1), Exponential(1)) == pytest.approx(16)
    assert limit(Exponential(1), Exponential(3)) == pytest.approx(0.9 * (-4 + 5.8 * 4) + 0.1 * (-4 + 4.2 * 4))
    assert limit(*[Rademacher(1)] * 5) == pytest.approx(4 * 4)
    assert limit(*[Laplace(0, 1)] * 5) == pytest.approx(-4)
    # Of arms that never vary nothing is to be learned; of a quarter and three quarters, 4 (1 - 1/4) + 2 (1 - 3/4).
    assert limit(Gaussian(0, 1), Constant(1)) == 0
    assert limit(Rademacher(1), Gaussian(0, 3)) == pytest.approx(4 * 3 / 4 + 2 / 4)
    assert case("gauss-30-long").limit == pytest.approx(2 * 29 / 6000)


@pytest.mark.parametrize("name", ["gauss-2", "mixed-10-short", "exponential-100-short", "bounded-6"])
def test_the_loss_of_an_even_split_is_known(name: str) -> None:
    """A budget that is no multiple of the arms, too: the first arms have one sample more, as in a simulation."""
    for more in (0, 1, 3):
        each = replace(case(name), budget=case(name).budget + more)
        simulated = EntryRun("even", EvenSplit(), each, 64, estimator="wald").measure()
        assert (1 + simulated.excess / 100) * each.optimal_loss == pytest.approx(each.even_loss, rel=1e-9)
        assert simulated.ratio == pytest.approx(1, rel=1e-9)


def values(name: str) -> list[int]:
    """How many values each arm is resampled from."""
    return [len(arm.values) for arm in case(name).problem.arms if isinstance(arm, Empirical)]


def test_data_are_resampled() -> None:
    assert values("engel-5") == [47] * 5
    assert sum(values("visits-5")) == 20_190
    assert len(values("visits-5")) == 5
    assert sum(values("digits-10")) == 1797


def test_mixtures() -> None:
    two = mixture((0.5, -3, 0.5), (0.5, 3, 0.5))
    assert two.mean == pytest.approx(0, abs=1e-9)
    assert two.variance == pytest.approx(9.25, rel=1e-3)
    paid = claims(0.8, 2.0)
    assert paid.mean == pytest.approx(0.4, rel=1e-2)
    assert sum(value == 0 for value in paid.values) == 1600


def test_a_name_that_is_none() -> None:
    with pytest.raises(ValueError, match="there is no problem 'gauss-3' in the suite; did you mean 'gauss-2'"):
        case("gauss-3")
    with pytest.raises(ValueError, match=r"no problem 'zzz' in the suite; its \d+ problems are 'gauss-2', "):
        case("zzz")


def test_missing_data_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert left_out() == ""
    monkeypatch.setattr(problems, "_data", list)
    assert left_out() == "the six problems on real data are left out; to add them: pip install statsmodels scikit-learn"
