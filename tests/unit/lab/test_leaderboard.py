"""The leaderboard: who takes part with what, the worst arm without bias, runs by rule, and what cells come to."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import equipoise as eq
from equipoise.lab import cpu
from equipoise.lab.leaderboard import (
    FEWEST,
    MORE_STEPS,
    MOST,
    Board,
    Cell,
    Entry,
    Task,
    again,
    crossed,
    entries,
    first_runs,
    leaderboard,
    more_runs,
    problems,
    tasks,
    unit,
)
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


def test_the_largest_of_noisy_losses_is_not_too_large() -> None:
    """
    A hundred arms of loss 1 in 64 batches of noise 0.3: the largest mean is 1.094 on average, the crossed one 1.

    Over 2,000 boards the mean of the crossed one has a standard error of 0.3/8/sqrt(2000) = 0.00084, and its own
    standard errors are right on average: 0.0375.
    """
    rng = np.random.default_rng(3)
    found, errors, naive = [], [], []
    for _ in range(2000):
        batches = np.hstack([1 + 0.3 * rng.standard_normal((64, 100)), np.full((64, 1), 16.0)])
        loss, error = crossed(batches, 100)
        found.append(loss)
        errors.append(error)
        naive.append(batches[:, :100].mean(axis=0).max())
    sem = 0.3 / 8 / math.sqrt(2000)
    assert np.std(found) == pytest.approx(0.3 / 8, rel=5 / math.sqrt(2 * 2000))
    assert abs(np.mean(found) - 1) < 5 * sem
    assert np.mean(naive) > 1 + 50 * sem
    assert math.sqrt(np.mean(np.square(errors))) == pytest.approx(0.3 / 8, rel=0.02)


def test_the_worst_arm_is_found_where_it_stands_out() -> None:
    rng = np.random.default_rng(3)
    losses = 1 + 0.01 * rng.standard_normal((64, 5))
    losses[:, 3] += 1
    runs = np.full((64, 1), 16.0)
    runs[-1] = 4.0
    losses[-1, 3] += 50  # a small batch weighs little
    loss, error = crossed(np.hstack([losses, runs]), 5)
    odd = np.average(losses[1::2, 3], weights=runs[1::2, 0])
    assert loss == pytest.approx((losses[::2, 3].mean() + odd) / 2, rel=1e-12)
    assert 0.1 < error < 1


def test_the_runs_follow_from_problem_and_error_alone() -> None:
    assert first_runs(case("gauss-2")) == FEWEST
    assert first_runs(case("exponential-10-row")) == 4096
    assert first_runs(case("exponential-3-short")) == MOST
    assert first_runs(case("mixed-10-long")) == FEWEST
    noisy = case("exponential-10-row")
    assert more_runs(noisy, 100, 3.0, 1024) == 1024  # 1.5% of the loss: as aimed at
    assert more_runs(noisy, 100, 7.0, 1024) == 8192  # 5.4 times as many, up to a power of two
    assert more_runs(noisy, 300, 20.0, 1024) == 1024  # 5% of a large loss will do
    assert more_runs(noisy, 300, 40.0, 1024) == 4096
    assert more_runs(noisy, 100, 1e6, 1024) == 1 << int(math.log2(MORE_STEPS / 500))
    assert more_runs(noisy, 100, 0.0, 1024) == 1024
    assert more_runs(noisy, -300, 3.0, 1024) == 4096  # as at 0


def test_a_second_pass_of_what_is_noisy() -> None:
    first = tasks(entries(["auto", "uniform"]), problems(["gauss-2", "exponential-10-row", "lognormal-2"]))
    assert len(first) == 6
    errors = {"gauss-2": 0.1, "exponential-10-row": 8.0, "lognormal-2": 30.0}
    found = {(t.entry, t.case.name): Cell(t.entry, t.case, 50, errors[t.case.name], t.runs) for t in first}
    second = again(first, found)
    assert {(t.entry, t.case.name, t.estimator) for t in second} == {
        (name, problem, estimator)
        for name in ("auto", "uniform")
        for problem, estimator in (("exponential-10-row", "auto"), ("lognormal-2", "naive"))
    }
    work = [t.runs * t.case.budget for t in second]
    assert work == sorted(work, reverse=True)


def test_cells_are_those_of_simulate_whatever_the_kernel_and_the_threads() -> None:
    chosen = problems(["exponential-2", "mixed-5-equal"])
    lines = entries(["auto", "b-as:exploration=0.5"])
    one = leaderboard(lines, chosen, runs=256, threads=1)
    assert leaderboard(lines, chosen, runs=256, threads=2) == one
    assert cpu.FEW == 16  # put back
    for cell in one.cells:
        [line] = [each for each in lines if each.name == cell.strategy]
        strategy = line.make(cell.case)
        assert strategy is not None
        sim = eq.simulate(cell.case.problem, strategy, cell.case.budget, runs=256, seed=one.seed)
        loss, error = crossed(sim._batches, len(cell.case.problem))
        assert cell.excess == 100 * (loss / cell.case.optimal_loss - 1)
        assert cell.error == 100 * error / cell.case.optimal_loss
        assert cell.error == pytest.approx(sim.excess_error, rel=0.5)


def test_passes_and_progress() -> None:
    told: list[tuple[int, int]] = []
    board = leaderboard(
        entries(["greedy", "uniform"]),
        problems(["gauss-2-short", "rademacher-2-short"]),
        progress=lambda done, total: told.append((done, total)),
    )
    assert [done for done, _ in told] == list(range(1, len(told) + 1))
    assert told[3] == (4, 4)
    assert told[-1] == (5, 5)  # greedy on the coins again
    runs = {(cell.strategy, cell.case.name): cell.runs for cell in board.cells}
    assert runs["greedy", "rademacher-2-short"] > FEWEST
    assert {runs["uniform", "rademacher-2-short"], runs["greedy", "gauss-2-short"]} == {FEWEST}


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
    # 2(K-1)/n is 0.2% for gauss-2 and 0.16% for lognormal-5.
    assert board.over_limit("a") == pytest.approx((1 / 0.2 + 20 / 0.16) / 2)
    assert board.over_limit("a", "binary") is None
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
