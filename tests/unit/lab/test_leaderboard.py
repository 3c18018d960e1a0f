"""The leaderboard: who takes part with what, the worst arm without bias, runs by rule, and what cells come to."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

import equipoise as eq
from equipoise.lab import cpu
from equipoise.lab.estimators import Estimator, Evidence, choose, estimates, fit
from equipoise.lab.leaderboard import (
    FEWEST,
    MORE_STEPS,
    MOST,
    Board,
    Cell,
    Entry,
    Task,
    crossed,
    entries,
    first_runs,
    leaderboard,
    more_runs,
    problems,
    unit,
)
from equipoise.lab.setup import Ends, Setup
from equipoise.lab.suite import case, suite


def made(name: str, problem: str) -> object:
    [entry] = [each for each in entries() if each.name == name]
    return entry.make(case(problem))


def test_every_strategy_but_oracles_takes_part() -> None:
    names = [entry.name for entry in entries()]
    assert len(set(names)) == len(names)
    assert {name.partition(",")[0] for name in names} == set(eq.strategies.available()) - {"oracle"}
    assert {"auto", "ch-as", "b-as, A=0.5", "b-as, A=2", "b-as, theory", "ch-as, theory", "gafs-max"} <= set(names)


def test_constants_are_in_units_of_the_problem() -> None:
    sd = math.sqrt((1 + 25) / 2)
    assert unit(case("uniform-2")) == pytest.approx(sd)
    assert made("b-as, A=2", "uniform-2") == eq.strategies.BAS(exploration=2 * unit(case("uniform-2")))
    assert made("ch-as", "uniform-2") == eq.strategies.CHAS(width=unit(case("uniform-2")))
    assert made("auto", "uniform-2") == eq.strategies.Auto()
    # The theory's own constants need a support.
    assert made("b-as, theory", "uniform-2") is None
    assert made("ch-as, theory", "gauss-2") is None
    assert made("b-as, theory", "binary-2") == eq.strategies.BAS()
    assert made("ch-as, theory", "stars-8") == eq.strategies.CHAS()


def test_entries_by_name() -> None:
    assert [entry.name for entry in entries(["b-as"])] == ["b-as, A=0.5", "b-as, A=2", "b-as, theory"]
    [entry] = entries(["b-as:exploration=0.25", "b-as:exploration=0.25"])
    assert entry.name == "b-as, A=0.25"
    assert entry.make(case("uniform-2")) == eq.strategies.BAS(exploration=0.25 * unit(case("uniform-2")))
    [entry] = entries(["gafs-max:alpha=2"])
    assert entry.make(case("gauss-2")) == eq.strategies.GAFSMAX(alpha=2)
    [entry] = entries(["oracle"])
    assert entry.make(case("gauss-2")) == eq.strategies.Oracle()
    with pytest.raises(ValueError, match="no strategy 'b-sa'"):
        entries(["b-sa"])
    with pytest.raises(ValueError, match="no strategy was given"):
        entries([])


def test_problems_by_name() -> None:
    assert problems() == list(suite())
    assert [each.name for each in problems(["binary-2*", "gauss-2"])][:3] == ["gauss-2", "binary-2", "binary-2-rare"]
    with pytest.raises(ValueError, match="no problem of the suite is called 'gauss-3'; did you mean 'gauss-2'"):
        problems(["gauss-2", "gauss-3"])


def of_losses(squares: npt.ArrayLike) -> tuple[eq.Problem, Ends, Sequence[Estimator]]:
    """Runs (rows) of arms of mean 0 whose means came out so that these are their squared errors, taken as they are."""
    means = np.sqrt(np.asarray(squares, dtype=float).T)[None]
    arms = means.shape[1]
    return eq.Problem([eq.Gaussian(0, 1)] * arms), Ends(np.ones_like(means), means, 0 * means), ("naive",) * arms


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
    losses[:, 1] -= losses[:32, 1].mean() - 0.9  # below 1 in this half, so that the other is looked at in the arm at 1
    losses[32:, 1] -= losses[32:, 1].mean() - 0.9
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
    one, other = (Evidence.of(case_.problem, half, 0) for half in ends.split(201))
    worst = [int(estimates(half, chosen, fit(half, chosen)).mean(axis=1).argmax()) for half in (one, other)]
    found = [
        estimates(one, chosen, fit(other, chosen))[worst[1]],
        estimates(other, chosen, fit(one, chosen))[worst[0]],
    ]
    loss, error, _ = crossed(case_.problem, ends, chosen)
    assert loss == pytest.approx((found[0].mean() + found[1].mean()) / 2, rel=1e-12)
    assert error == pytest.approx(math.sqrt(found[0].var(ddof=1) / 201 + found[1].var(ddof=1) / 200) / 2, rel=1e-12)


def test_the_runs_follow_from_problem_and_error_alone() -> None:
    assert first_runs(case("gauss-2")) == FEWEST
    assert first_runs(case("exponential-10-row")) == 4096
    assert first_runs(case("exponential-3-short")) == MOST
    assert first_runs(case("mixed-10-long")) == FEWEST
    noisy = case("exponential-10-row")
    assert more_runs(noisy, 100, 2.0, 1024) == 1024  # 1% of the loss: as aimed at
    assert more_runs(noisy, 100, 5.0, 1024) == 8192  # 6.25 times as many, up to a power of two
    assert more_runs(noisy, 300, 20.0, 1024) == 1024  # 5% of a large loss will do
    assert more_runs(noisy, 300, 40.0, 1024) == 4096
    assert more_runs(noisy, 100, 1e6, 1024) == 1 << int(math.log2(MORE_STEPS / 500))
    assert more_runs(noisy, 100, 0.0, 1024) == 1024
    assert more_runs(noisy, -300, 2.0, 1024) == 4096  # as at 0


def test_cells_are_as_exact_as_they_say_whatever_the_kernel_and_the_threads() -> None:
    """Within five errors of a simulation of 20,000 other runs; the same by every number of threads."""
    chosen = problems(["exponential-2", "mixed-3-wide"])
    lines = entries(["ch-as", "b-as:exploration=0.5"])
    one = leaderboard(lines, chosen, runs=4096, threads=1)
    assert leaderboard(lines, chosen, runs=4096, threads=2) == one
    for cell in one.cells:
        [line] = [each for each in lines if each.name == cell.strategy]
        strategy = line.make(cell.case)
        assert strategy is not None
        sim = eq.simulate(cell.case.problem, strategy, cell.case.budget, runs=20_000, seed=one.seed + 1)
        assert abs(cell.excess - sim.excess) < 5 * math.hypot(cell.error, sim.excess_error)
        assert cell.error == pytest.approx(sim.excess_error * math.sqrt(20_000 / 4096), rel=0.5)


def test_runs_until_there_is_no_doubt() -> None:
    told: list[tuple[int, int]] = []
    board = leaderboard(
        entries(["greedy", "uniform"]),
        problems(["gauss-2-short", "rademacher-2-short"]),
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(done, 4) for done in range(1, 5)]
    cells = {(cell.strategy, cell.case.name): cell for cell in board.cells}
    coins = cells["greedy", "rademacher-2-short"]
    assert coins.runs > FEWEST
    assert coins.error < 0.05 * (100 + coins.excess)
    assert {cells["uniform", name].runs for name in ("gauss-2-short", "rademacher-2-short")} == {FEWEST}
    # Runs that are added are the next ones: the same as so many at once.
    [again] = leaderboard(entries(["greedy"]), problems(["rademacher-2-short"]), runs=coins.runs).cells
    assert again == coins


def cell(strategy: str, problem: str, excess: float, error: float = 1.0) -> Cell:
    return Cell(strategy, case(problem), excess, error, 1024)


def test_what_cells_come_to() -> None:
    board = Board(
        (
            cell("b", "gauss-2", 2.0),
            cell("b", "stars-8", 50.0, 3.0),
            cell("b", "lognormal-5", 30.0),
            cell("b", "binary-2", 10.0),
            cell("b", "binary-10-rare-short", 90.0),
            cell("a", "gauss-2", 1.0),
            cell("a", "stars-8", 10.0),
            cell("a", "lognormal-5", 20.0),
            cell("a", "binary-2", 30.0),
            cell("a", "binary-10-rare-short", 40.0),
            cell("theory", "binary-2", 0.0),
        ),
        4,
    )
    assert board.strategies() == ["a", "b", "theory"]
    assert board.strategies("continuous") == ["a", "b"]
    assert Board((*board.cells[:-1], cell("c", "gauss-2", 0.0)), 4).strategies() == ["a", "b", "c"]
    b = board.summary("b", "continuous")
    assert b is not None
    assert (b.worst, b.error, b.where, b.median, b.problems) == (50.0, 3.0, "stars-8", 30.0, 3)
    assert b.ninth == pytest.approx(46.0)
    enough, ones = board.summary("b", "enough"), board.summary("b", "ones")
    assert enough is not None
    assert ones is not None
    assert (enough.problems, ones.problems) == (2, 1)  # without the lognormal, and without the short one
    assert board.summary("theory", "continuous") is None
    # The limit of gauss-2 is 2(K-1)/n, 0.2%.
    assert board.over_limit("a", gaussian=True) == pytest.approx(1 / 0.2)
    assert board.over_limit("a") == pytest.approx((1 / 0.2 + 0.2 / case("lognormal-5").limit) / 2)
    assert board.over_limit("theory") is None
    assert Board((cell("a", "laplace-5-long", 1.0),), 4).over_limit("a") is None
    halves = [board.summary("a", f"{half}, continuous") for half in ("tuning", "held-out")]
    assert sum(half.problems for half in halves if half) == 3
    assert {row["group"] for row in board.summaries() if row["strategy"] == "theory"} >= {"binary", "ones"}
    assert board.rows()[0] == {
        "strategy": "b",
        "problem": "gauss-2",
        "kind": "continuous",
        "tails": "light",
        "K": 2,
        "n": 1000,
        "n/K": 500.0,
        "half": "tuning",
        "limit": pytest.approx(0.2),
        "excess": 2.0,
        "error": 1.0,
        "runs": 1024,
    }


def test_wrong_input() -> None:
    few = problems(["gauss-2"])
    with pytest.raises(ValueError, match="runs=3 will not do"):
        leaderboard(entries(["auto"]), few, runs=3)
    with pytest.raises(ValueError, match="engine='tpu' will not do; it must be 'cpu' or 'cuda'"):
        leaderboard(entries(["auto"]), few, engine="tpu")
    with pytest.raises(ValueError, match="takes part in any"):
        leaderboard([Entry("none", lambda case: None)], few)


def test_a_task_is_measured_alone() -> None:
    task = Task("even", eq.strategies.Uniform(), case("gauss-2"), 64)
    assert task.measure().excess == pytest.approx(60, abs=1e-9)
    assert replace(task, estimator="naive").measure().error > 1


def test_on_cuda_by_the_simulator() -> None:
    """The CUDA engine, by Numba's simulator of a GPU, has the same board to rounding."""
    script = """
import numpy as np
from equipoise.lab.leaderboard import entries, leaderboard, problems
few = entries(["auto"]), problems(["binary-2-short"])
one, other = (leaderboard(*few, runs=8, engine=engine).cells[0] for engine in ("cpu", "cuda"))
assert np.isclose(one.excess, other.excess, rtol=1e-9), (one, other)
assert np.isclose(one.error, other.error, rtol=1e-9), (one, other)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
