"""How the strategies do, against what was measured for them before, on the paper's two Gaussian arms and on polls."""

from __future__ import annotations

import math

import numpy as np
import pytest

import equipoise as eq
from benchmarks.bounds import mean_and_error, simulate
from equipoise import demo

CHAS, BAS, GAFSMAX = eq.strategies.CHAS, eq.strategies.BAS, eq.strategies.GAFSMAX


@pytest.mark.parametrize(
    ("strategy", "n", "known"),
    [
        (CHAS(), 50, 8.1),
        (CHAS(), 200, 10.5),
        (BAS(exploration=0.25), 50, 11.4),
        (BAS(exploration=0.25), 200, 1.5),
        (BAS(exploration=0.5), 50, 3.05),
        (BAS(exploration=0.5), 200, 3.05),
        (BAS(exploration=1.0), 50, 5.4),
        (BAS(exploration=1.0), 200, 5.7),
        (BAS(c1=10.0, c2=1.0), 50, 21.1),
        (BAS(c1=10.0, c2=1.0), 200, 40.2),
        (GAFSMAX(), 50, 1.0),
        (GAFSMAX(), 200, 9.1),
    ],
)
def test_rescaled_regret_on_the_papers_gaussian_arms(strategy: eq.strategies.Strategy, n: int, known: float) -> None:
    """
    N(0, 4) and N(0, 1), 4,000 runs, by the Gaussian lemma: within 5 standard errors of the value known from a far
    longer simulation by another program, which is good to its last digit or 0.1.
    """
    problem = eq.Problem([eq.Gaussian(0, 4), eq.Gaussian(0, 1)])
    runs = simulate(problem, strategy, n, 4000, seed=n)
    losses, errors = zip(*(mean_and_error(column) for column in (problem.variances / runs.pulls).T), strict=True)
    worst = int(np.argmax(losses))
    error = math.hypot(n**1.5 * errors[worst], 0.1 if known < 15 else 0.5)
    assert abs(problem.rescaled_regret(losses, n) - known) <= 5 * error


def test_the_default_beats_uniform_on_polls() -> None:
    """
    100 polls of 600 customers: the largest variance over pulls, with the true variances, is on average below three
    quarters of what spreading evenly has, by 5 standard errors.
    """
    variances = np.array([p * (1 - p) for p in demo.TASTE.values()])
    losses = np.array([variances / demo.poll("auto", customers=600, seed=seed).counts.array for seed in range(100)])
    mean, error = mean_and_error(losses.max(axis=1))
    uniform = variances.max() / 100
    assert mean + 5 * error < 0.75 * uniform
