"""Laws, strategies and supports from texts."""

from __future__ import annotations

import pytest

import equipoise as eq
from equipoise.simulation import texts


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
        (
            "gausian:0,4",
            "a law must be one of gaussian, rademacher, bernoulli, uniform, exponential, laplace, lognormal, student, "
            "constant, empirical, got 'gausian'; did you mean 'gaussian'?",
        ),
        ("zzz", "constant, empirical, got 'zzz'"),
        ("", "empirical, got ''"),
        (
            "gaussian:0,4,5",
            "gaussian must have the parameters mean (0), variance (1), as in gaussian:0,4, got 'gaussian:0,4,5'",
        ),
        ("bernoulli", "bernoulli must have the parameters p, as in bernoulli:0.3, got 'bernoulli'"),
        ("student", "student must have the parameters df, scale (1), as in student:5,2"),
        ("gaussian:0,four", "'four' in 'gaussian:0,four' must be a number"),
        ("gaussian:0,,4", "'' in 'gaussian:0,,4' must be a number"),
        ("bernoulli:2", "p"),
        ("gaussian:0,nan", "variance"),
        ("empirical", "values"),
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
        (
            "b-as:explore=0.5",
            "a parameter of b-as must be one of exploration, c1, c2, delta, got 'explore'; did you mean 'exploration'?",
        ),
        ("uniform:alpha=2", "uniform has no parameters, got 'alpha'"),
        ("b-as:exploration", "each parameter must be given once with its value, as in b-as:exploration=0.5"),
        ("b-as:exploration=1,exploration=2", "each parameter must be given once"),
        ("b-as:exploration=much", "'much' in 'b-as:exploration=much' must be a number"),
        ("b-as:exploration=-1", "exploration"),
        ("oracle:variances=3", "oracle has no parameters, got 'variances'"),
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
        with pytest.raises(ValueError, match=r"support|must be a number"):
            texts.support(wrong)
