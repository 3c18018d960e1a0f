"""Laws, strategies and supports from texts."""

from __future__ import annotations

import pytest

import equipoise as eq
from equipoise.lab import texts


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("gaussian:0,4", eq.Gaussian(0, 4)),
        ("gaussian:-1.5, 4e-2", eq.Gaussian(-1.5, 0.04)),
        ("Gaussian", eq.Gaussian(0, 1)),
        ("rademacher", eq.Rademacher()),
        ("rademacher:3", eq.Rademacher(3)),
        ("bernoulli:0.3", eq.Bernoulli(0.3)),
        ("uniform:0,1", eq.Uniform(0, 1)),
        ("exponential:2", eq.Exponential(2)),
        ("laplace:0,2", eq.Laplace(0, 2)),
        ("lognormal:0,1", eq.LogNormal(0, 1)),
        ("student:5", eq.StudentT(5)),
        ("student:5,2", eq.StudentT(5, 2)),
        ("constant:3", eq.Constant(3)),
        ("empirical:1,2,5", eq.Empirical([1, 2, 5])),
    ],
)
def test_laws(text: str, law: eq.Law) -> None:
    assert texts.law(text) == law


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("gausian:0,4", "there is no law 'gausian'; did you mean 'gaussian'? there are gaussian, rademacher"),
        ("zzz", "there is no law 'zzz'; there are gaussian"),
        ("", "there is no law ''"),
        ("gaussian:0,4,5", r"'gaussian:0,4,5' will not do; gaussian takes mean (0), variance (1), as in gaussian:0,4"),
        ("bernoulli", "'bernoulli' will not do; bernoulli takes p, as in bernoulli:0.3"),
        ("student", "student takes df, scale (1), as in student:5,2"),
        ("gaussian:0,four", "'gaussian:0,four' will not do; 'four' is not a number"),
        ("gaussian:0,,4", "'' is not a number"),
        ("bernoulli:2", "p of Bernoulli must be between 0 and 1, got 2.0"),
        ("gaussian:0,nan", "variance of Gaussian must be non-negative and finite, got nan"),
        ("empirical", "values of Empirical must have at least one number, got none"),
    ],
)
def test_what_is_no_law_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ValueError) as refused:
        texts.law(text)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("auto", eq.strategies.Auto()),
        ("b-as:exploration=0.5", eq.strategies.BAS(exploration=0.5)),
        ("B-AS:c1=8, c2=1", eq.strategies.BAS(c1=8, c2=1)),
        ("gafs-max:alpha=2", eq.strategies.GAFSMAX(alpha=2)),
        ("two-stage:pilot=20", eq.strategies.TwoStage(pilot=20)),
        ("oracle", eq.strategies.Oracle()),
    ],
)
def test_strategies(text: str, strategy: eq.strategies.Strategy) -> None:
    assert texts.strategy(text) == strategy


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("b-az", "did you mean 'b-as'?"),
        ("b-as:explore=0.5", "b-as has no parameter 'explore'; did you mean 'exploration'? there are exploration, c1"),
        ("uniform:alpha=2", "uniform has no parameter 'alpha'; it has none"),
        ("b-as:exploration", "give each parameter once, as in b-as:exploration=0.5"),
        ("b-as:exploration=1,exploration=2", "give each parameter once"),
        ("b-as:exploration=much", "'much' is not a number"),
        ("b-as:exploration=-1", "exploration=-1 will not do"),
        ("oracle:variances=3", "oracle has no parameter 'variances'"),
    ],
)
def test_what_is_no_strategy_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ValueError) as refused:
        texts.strategy(text)
    assert sentence in str(refused.value)


def test_supports() -> None:
    assert texts.support(None) is None
    assert texts.support("binary") == "binary"
    assert texts.support("-1,2.5") == (-1.0, 2.5)
    for wrong in ("0", "0,1,2", "1,0", "a,b", "Binary"):
        with pytest.raises(ValueError, match="will not do"):
            texts.support(wrong)
