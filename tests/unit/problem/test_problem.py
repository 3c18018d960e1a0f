"""The best static allocation, in proportions and in whole pulls, and the regret against it."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.problem.problem import integer_counts


def test_the_papers_two_arms() -> None:
    problem = eq.Problem([eq.Gaussian(0, 4), eq.Gaussian(0, 1)])
    assert problem.Sigma == 5
    assert problem.lambdas.tolist() == [0.8, 0.2]
    assert problem.lambda_min == 0.2
    assert problem.optimal_pulls(1000).tolist() == [800, 200]
    assert problem.optimal_loss(1000) == 0.005
    assert problem.regret([0.006, 0.004], 1000) == pytest.approx(0.001)
    assert problem.rescaled_regret([0.006, 0.004], 1000) == pytest.approx(0.001 * 1000**1.5)
    assert problem.loss([0.006, 0.004]) == 0.006


def test_remark_3_one_pull_for_an_arm_of_zero_variance() -> None:
    problem = eq.Problem([eq.Bernoulli(0.5), eq.Constant(3)])
    assert problem.optimal_counts(100).tolist() == [99, 1]
    assert problem.lambda_min == 0


def test_no_variance_anywhere() -> None:
    problem = eq.Problem([eq.Constant(1), eq.Constant(2)])
    assert problem.lambdas.tolist() == [0.5, 0.5]
    assert problem.optimal_counts(10).sum() == 10
    assert problem.optimal_loss(10) == 0


@settings(deadline=None, derandomize=True)
@given(
    variances=st.lists(
        st.one_of(st.just(0.0), st.floats(1e-6, 1e3), st.integers(1, 9).map(float)), min_size=1, max_size=4
    ),
    extra=st.integers(0, 9),
)
def test_whole_pulls_are_the_best_there_are(variances: list[float], extra: int) -> None:
    """Against every allocation of n pulls with one pull or more for each arm."""
    K, n = len(variances), len(variances) + extra

    def loss(counts: tuple[int, ...]) -> float:
        return max(v / c for v, c in zip(variances, counts, strict=True))

    counts = integer_counts(variances, n)
    assert counts.sum() == n
    assert counts.min() >= 1
    every = (c for c in product(range(1, extra + 2), repeat=K) if sum(c) == n)
    assert loss(tuple(counts.tolist())) == min(map(loss, every))


def test_whole_pulls_of_many_arms_are_quick_and_sum_to_n() -> None:
    rng = np.random.default_rng(3)
    variances = rng.lognormal(0, 3, 20_000)
    counts = integer_counts(variances, 1_000_003)
    assert counts.sum() == 1_000_003
    # No single pull moved from one arm to another makes the largest loss smaller.
    worst = (variances / counts).max()
    with np.errstate(divide="ignore"):
        assert (variances / (counts - 1))[counts > 1].min() >= worst * (1 - 1e-12)


def test_whole_pulls_of_the_largest_budget() -> None:
    counts = integer_counts([3.0, 2.0, 1.0, 0.0], 10**15)
    assert counts.sum() == 10**15
    assert counts[3] == 1
    assert counts[:3] / 10**15 == pytest.approx([1 / 2, 1 / 3, 1 / 6])


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: eq.Problem([]), ValueError, "arms of a Problem must have at least one law"),
        (lambda: eq.Problem([eq.StudentT(2)]), ValueError, r"must have a finite variance, got StudentT\(df=2"),
        (lambda: eq.Problem([0.3]), TypeError, r"must be laws, such as eq\.Gaussian\(0, 4\), got 0\.3"),  # type: ignore[list-item]
        (
            lambda: eq.Problem([eq.Gaussian(), eq.Gaussian()]).optimal_counts(1),
            ValueError,
            "n must be between 2, .*, got 1",
        ),
        (
            lambda: eq.Problem([eq.Gaussian(), eq.Gaussian()]).regret([1.0], 10),
            ValueError,
            "losses must have one value for each of the 2 arms, got 1",
        ),
        (lambda: integer_counts([1.0, math.nan], 5), ValueError, "variances must be non-negative and finite"),
        (lambda: integer_counts([1.0, 2.0], 10**18), ValueError, "and 1,000,000,000,000,000, got 1,000"),
        (lambda: eq.Problem([eq.LogNormal(0, 40)]), ValueError, "must have a finite variance"),
        (lambda: eq.Problem(eq.Gaussian()), TypeError, "must be a list of laws, got Gaussian"),  # type: ignore[arg-type]
    ],
)
def test_what_is_refused(make: object, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()  # type: ignore[operator]
