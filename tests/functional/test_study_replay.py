"""Standard errors and biases of real studies against what simulations of the true laws have."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

import equipoise as eq
from equipoise.engine import cpu
from equipoise.problem.objective import objective as objective_of
from equipoise.simulation.simulator import setups
from equipoise.strategies import Support


class Truth(NamedTuple):
    """Of equal arms: the squared error over the mean s²/T, the bias of a mean, and its standard error."""

    inflation: float
    bias: float
    error: float


def support_of(law: eq.Law) -> Support:
    return "binary" if isinstance(law, eq.Bernoulli) else None


def truth(law: eq.Law, arms: int, n: int, objective: Any, runs: int) -> Truth:
    """Simulate the true law; Wald's controls take out most of the noise."""
    aim = objective_of(range(arms), objective)
    setup = setups(eq.Problem([law] * arms), eq.strategies.resolve("auto"), [n], support_of(law), 3, 1, aim)[0]
    ends = cpu.simulate(setup, 0, runs)
    counts, off = ends.counts[0], ends.means[0] - law.mean
    sums, typical = off * counts, counts.mean()
    squared = off**2 - (sums**2 - law.variance * counts) / typical**2
    reported = ends.m2s[0] / (counts - 1) / counts
    bias = (off - sums / typical).mean(axis=0)
    return Truth(squared.mean() / reported.mean(), float(bias.mean()), float(bias.std() / math.sqrt(runs)))


def lived(law: eq.Law, arms: int, n: int, objective: Any, rng: np.random.Generator) -> eq.Result:
    study = eq.Study(arms, budget=n, objective=objective, support=support_of(law))
    samples = law.sample(rng, n).tolist()
    while not study.done:
        study.tell(study.ask(), samples.pop())
    return study.result()


@pytest.mark.parametrize(
    ("law", "margin"), [(eq.Gaussian(0, 1), 0.02), (eq.Exponential(1), 0.1)], ids=["gaussian", "exponential"]
)
def test_standard_errors_are_true(law: eq.Law, margin: float) -> None:
    """
    30 studies of ten equal arms, 30 samples an arm. The reported squared errors over s²/T are the true ratio, 1.10 and
    1.30, within 2% and 10% and five standard errors, which are 0.4% and 1%.
    """
    rng = np.random.default_rng(8)
    right = truth(law, 10, 300, math.inf, 10_000)
    results = [lived(law, 10, 300, math.inf, rng) for _ in range(30)]
    squared = np.array([(result.standard_errors.array**2).sum() for result in results])
    plain = np.array([result.losses.array.sum() for result in results])
    found = squared.sum() / plain.sum()
    error = float((squared - found * plain).std(ddof=1) / plain.mean() / math.sqrt(len(results)))
    assert error < 0.015
    assert abs(found / right.inflation - 1) <= margin + 5 * error / found
    assert found > 1 + 5 * error


def test_the_bias_of_a_combined_mean_is_taken_out() -> None:
    """
    15 studies of 40 equal exponential strata, 20 samples each, whose combined mean is about 0.7 standard errors too
    low. What is taken out of it is the true bias, within 25% and five standard errors, which are 2%.
    """
    rng, strata = np.random.default_rng(9), eq.Stratified([1 / 40] * 40)
    right = truth(eq.Exponential(1), 40, 800, strata, 2_000)
    found = []
    for _ in range(15):
        result = lived(eq.Exponential(1), 40, 800, strata, rng)
        found.append(float(result.means.array.mean()) - result.combine().value)
    error = math.hypot(np.std(found, ddof=1) / math.sqrt(len(found)), right.error)
    assert right.bias < -0.01
    assert abs(np.mean(found) - right.bias) <= 0.25 * abs(right.bias) + 5 * error


def test_the_bias_of_binary_arms_that_do_not_differ_is_not_overstated() -> None:
    """
    30 studies of 40 equal binary arms with p = 0.1, 30 samples an arm. Their shares of ones differ by chance; laws that
    differ as much would be sampled more adaptively, and have twice the bias. The reported one is the true one within
    25% and five standard errors, which are 9%.
    """
    rng = np.random.default_rng(10)
    right = truth(eq.Bernoulli(0.1), 40, 1200, math.inf, 4_000)
    found = [float(lived(eq.Bernoulli(0.1), 40, 1200, math.inf, rng).biases.array.mean()) for _ in range(30)]
    error = math.hypot(np.std(found, ddof=1) / math.sqrt(len(found)), right.error)
    assert error < 0.12 * abs(right.bias)
    assert abs(np.mean(found) - right.bias) <= 0.25 * abs(right.bias) + 5 * error
