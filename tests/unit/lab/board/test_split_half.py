"""The largest loss without the bias of a maximum, from halves of runs that may be drawn from strata."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

import equipoise as eq
from equipoise.engine import cpu
from equipoise.engine.setup import Ends, Setup
from equipoise.lab.board.rare_starts import Starts
from equipoise.lab.board.split_half import Half, crossed, halves
from equipoise.lab.suite import case
from equipoise.simulation.estimators import ArmSums, Estimator, choose, estimates, fit


def ends_of(squares: npt.ArrayLike) -> Ends:
    """Runs (rows) of arms of mean 0 whose means came out so that these are their squared errors."""
    means = np.sqrt(np.asarray(squares, dtype=float).T)[None]
    return Ends(np.ones_like(means), means, 0 * means)


def of_losses(squares: npt.ArrayLike) -> tuple[eq.Problem, list[Half], Sequence[Estimator]]:
    """The halves of runs with these squared errors, taken as they are."""
    ends = ends_of(squares)
    arms = ends.counts.shape[1]
    return eq.Problem([eq.Gaussian(0, 1)] * arms), halves(ends), ("naive",) * arms


def test_the_largest_of_noisy_losses_is_not_too_large() -> None:
    """
    A hundred arms of loss 1 in 64 runs of noise 0.3: the largest mean is 1.094 on average, the crossed one 1.

    Over 2,000 boards the mean of the crossed one has a standard error of 0.3/8/sqrt(2000) = 0.00084, and its own
    standard errors are right on average: 0.0375.
    """
    rng = np.random.default_rng(3)
    found, errors, doubts, naive = [], [], [], []
    for _ in range(2000):
        losses = 1 + 0.3 * rng.uniform(-math.sqrt(3), math.sqrt(3), (64, 100))
        loss, error, doubt = crossed(*of_losses(losses))
        found.append(loss)
        errors.append(error)
        doubts.append(doubt)
        naive.append(losses.mean(axis=0).max())
    sem = 0.3 / 8 / math.sqrt(2000)
    assert np.std(found) == pytest.approx(0.3 / 8, rel=5 / math.sqrt(2 * 2000))
    assert abs(np.mean(found) - 1) < 5 * sem
    assert np.mean(naive) > 1 + 50 * sem
    assert math.sqrt(np.mean(np.square(errors))) == pytest.approx(0.3 / 8, rel=0.02)
    # Any of the hundred may be the worst: two errors above the largest mean, over two.
    assert np.mean(doubts) == pytest.approx((np.mean(naive) + 2 * 0.3 / 8 - 1) / 2, rel=0.05)


def test_the_worst_arm_is_found_where_it_stands_out() -> None:
    rng = np.random.default_rng(3)
    losses = 1 + 0.01 * rng.uniform(-1, 1, (64, 5))
    losses[:, 3] += 1
    loss, error, doubt = crossed(*of_losses(losses))
    assert loss == pytest.approx(losses[:, 3].mean(), rel=1e-12)
    assert error == pytest.approx(losses[:, 3].std() / 8, rel=0.1)
    assert doubt == pytest.approx(error, rel=1e-6)


def test_an_arm_that_may_be_the_worst_is_a_doubt() -> None:
    """One arm is surely at 1; another is at 0.9 on average and has an error of 0.3/8."""
    rng = np.random.default_rng(3)
    losses = np.hstack([np.ones((64, 1)), 0.9 + 0.3 * np.sign(rng.uniform(-1, 1, (64, 1)))])
    for half in (0, 1):  # below 1 in each half, so that the other is looked at in the arm at 1
        losses[half::2, 1] -= losses[half::2, 1].mean() - 0.9
    loss, error, doubt = crossed(*of_losses(losses))
    assert (loss, error) == (1, 0)
    assert doubt == 0
    losses[:, 1] += 0.05
    _, _, doubt = crossed(*of_losses(losses))
    assert doubt == pytest.approx((0.95 + 2 * 0.3 / 8 - 1) / 2, rel=0.05)


def test_each_half_has_the_controls_of_the_other() -> None:
    case_ = case("exponential-2")
    strategy = eq.strategies.Auto()
    plan = Setup(case_.problem, strategy, (case_.budget,), strategy.params(case_.budget, 2, None), 3)
    ends = cpu.simulate(plan, 0, 401)
    chosen = choose("auto", case_.problem, strategy)
    one, other = (ArmSums.of(case_.problem, half.ends, 0, chosen) for half in halves(ends))
    worst = [int(estimates(half, chosen, fit(half, chosen)).mean(axis=1).argmax()) for half in (one, other)]
    found = [
        estimates(one, chosen, fit(other, chosen))[worst[1]],
        estimates(other, chosen, fit(one, chosen))[worst[0]],
    ]
    loss, error, _ = crossed(case_.problem, halves(ends), chosen)
    assert loss == pytest.approx((found[0].mean() + found[1].mean()) / 2, rel=1e-12)
    assert error == pytest.approx(math.sqrt(found[0].var(ddof=1) / 201 + found[1].var(ddof=1) / 200) / 2, rel=1e-12)


def pool_of(rng: np.random.Generator, runs: int) -> tuple[Starts, npt.NDArray[np.float64]]:
    """
    A pool in which one run in fifty fails, and loses 100 instead of 1; it is among the quieter ones.

    A run's rank is a random order of all runs, except that those that fail are in the lower half.
    """
    fails = rng.uniform(size=runs) < 0.02
    ranks = np.argsort(np.argsort(rng.uniform(size=runs) * np.where(fails, 0.5, 1)))
    return Starts.of(ranks + 1), np.where(fails, 100.0, rng.uniform(0, 2, size=runs))


def test_strata_have_no_bias_and_honest_errors() -> None:
    """
    The mean over 1,000 pools of 1,024 runs, of which 200 and some of the quietest are simulated, is that of the law.

    It is 0.98 + 2 = 2.98. The spread of the 1,000 means says how exact their mean is, and the errors that they claim
    agree with it: their mean square is within 25% of the variance, whose own standard error is 5%.
    """
    rng = np.random.default_rng(8)
    found, errors, runs = [], [], []
    for _ in range(1000):
        starts, losses = pool_of(rng, 1024)
        ends, further = ends_of(losses[:200, None]), ends_of(losses[starts.simulated, None])
        both = halves(ends, starts, further)
        loss, error, _ = crossed(eq.Problem([eq.Gaussian(0, 1)]), both, ("naive",))
        found.append(loss)
        errors.append(error)
        runs.append(sum(len(half.members.numbers) for half in both))
        assert sum(half.members.sizes.sum() for half in both) == 1024
        assert [half.members.consecutive for half in both] == [100, 100]
    assert abs(np.mean(found) - 2.98) < 5 * np.std(found) / math.sqrt(1000)
    assert np.mean(np.square(errors)) == pytest.approx(np.var(found), rel=0.25)
    assert max(runs) < 600


def test_runs_that_are_in_a_stratum_and_among_the_first_count_once() -> None:
    """Strata of 4 and 12 runs; the mean weighs them by their sizes in the pool, and the first four are simulated."""
    starts = Starts(np.array([0, 1, 1, 1] * 4, np.int8), np.array([0, 4, 1, 5]))
    losses = np.arange(16.0)[:, None]
    even, odd = halves(ends_of(losses[:4]), starts, ends_of(losses[starts.simulated]))
    np.testing.assert_allclose(even.ends.means[0, 0] ** 2, [0, 2, 4])
    np.testing.assert_allclose(odd.ends.means[0, 0] ** 2, [1, 3, 5])
    assert even.members.strata.tolist() == [0, 1, 0]
    assert even.members.sizes.tolist() == [4, 4]
    assert odd.members.sizes.tolist() == [0, 8]
    y = np.array([0.0, 2.0, 4.0])
    assert even.seen(y).mean == pytest.approx((2 + 2) / 2)
    assert even.seen(y).variance == pytest.approx(8 / 4 / 2)
    assert odd.seen(y).mean == pytest.approx(2)
    assert odd.seen(y).variance == pytest.approx(4 / 3)
    y = np.array([0.0, 4.0, 4.0])
    assert even.seen(y).mean == pytest.approx((2 + 4) / 2)
    assert even.seen(y).variance == pytest.approx(8 / 4 / 2 + (1 + 1) / 2 / 8)


def test_a_pool_that_is_all_simulated_has_no_strata() -> None:
    starts = Starts(np.array([0, 1, 1, 1] * 4, np.int8), np.array([0, 4, 1, 5]))
    losses = np.arange(16.0)[:, None]
    for half in halves(ends_of(losses), starts, ends_of(losses[starts.simulated])):
        assert half.members.sizes.tolist() == [8]
        assert half.members.consecutive == 8
