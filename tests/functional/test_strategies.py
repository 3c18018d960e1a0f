"""How the strategies do, against what was measured for them before, on the paper's two Gaussian arms and on polls."""

from __future__ import annotations

import math
from typing import Any

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
    N(0, 4) and N(0, 1), 1,000 studies, by the Gaussian lemma: within 5 standard errors of the value known from a far
    longer simulation by another program, which is good to its last digit or 0.1.

    The simulator, which makes the same decisions, is held to most of these values with 20,000 runs in
    lab/test_estimators.py.
    """
    problem = eq.Problem([eq.Gaussian(0, 4), eq.Gaussian(0, 1)])
    runs = simulate(problem, strategy, n, 1000, seed=n)
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


# Share, mean, standard deviation.
STRATA = {"many": (0.6, 1.0, 1.0), "some": (0.3, 4.0, 3.0), "few": (0.1, 9.0, 20.0)}


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["auto", eq.strategies.MCUCB(exploration=0.5)], ids=["auto", "mc-ucb"])
def test_strata_reach_neymans_proportions_and_beat_proportional_sampling(strategy: Any) -> None:
    """
    400 studies of 2,000 samples of three Gaussian strata. Mean pulls are within 10% and 5 standard errors of Neyman's,
    in proportion to W s. The mean squared error of the combined mean is below that of pulls in proportion to W, by 5
    standard errors of their difference: (Σ W s)²/n = 12.25/2000 is the best, Σ W s²/n = 43.3/2000 the proportional one.
    """
    shares, means, sds = (np.array(column) for column in zip(*STRATA.values(), strict=True))
    n, truth = 2000, float(shares @ means)
    mean: dict[Any, float] = dict(zip(STRATA, means.tolist(), strict=True))
    sd: dict[Any, float] = dict(zip(STRATA, sds.tolist(), strict=True))
    rng = np.random.default_rng(11)
    errors: dict[Any, list[float]] = {strategy: [], "uniform": []}
    pulls, said = [], []
    for _ in range(400):
        for each, found in errors.items():
            study = eq.Study(STRATA, n, each, objective=eq.Stratified(dict(zip(STRATA, shares, strict=True))))
            while tickets := study.ask(50):
                drawn = rng.standard_normal(len(tickets)).tolist()
                study.tell_many(
                    (ticket, mean[ticket.arm] + sd[ticket.arm] * z) for ticket, z in zip(tickets, drawn, strict=True)
                )
            result = study.result()
            # Gaussian strata have no bias, so that the plain means do; what is stated takes a replay, for one in five.
            found.append((float(shares @ result.means.array) - truth) ** 2)
            if each == strategy:
                pulls.append(result.counts.array)
                if len(pulls) % 5 == 0:
                    said.append(result.combine().error ** 2)
            else:
                assert (abs(result.counts.array - n * shares) <= 1).all()
    neyman = n * shares * sds / (shares @ sds)
    for column, best in zip(np.array(pulls).T, neyman, strict=True):
        pulled, error = mean_and_error(column)
        assert abs(pulled - best) <= 0.1 * best + 5 * error
    gain, error = mean_and_error(np.array(errors["uniform"]) - np.array(errors[strategy]))
    assert gain > 5 * error
    # The error it states is the one it has.
    squared, error = mean_and_error(np.array(errors[strategy]))
    assert abs(squared - np.mean(said)) <= 5 * error
    assert np.mean(said) == pytest.approx((shares @ sds) ** 2 / n, rel=0.05)
