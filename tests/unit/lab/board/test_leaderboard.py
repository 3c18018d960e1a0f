"""The leaderboard: who takes part with what, the worst arm without bias, runs by rule, and what cells come to."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.lab.board.cells import FEWEST, MORE_STEPS, MOST, Cell, EntryRun, first_runs, more_runs
from equipoise.lab.board.leaderboard import Board, Entry, entries, leaderboard, problems, unit
from equipoise.lab.board.rare_starts import MOST_RUNS
from equipoise.lab.suite import Case, case, suite

PAIR = eq.Problem([eq.Gaussian(0, 4), eq.Gaussian(0, 1)])


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
    with pytest.raises(ValueError, match=r"'b-sa'.*did you mean 'b-as'"):
        entries(["b-sa"])
    with pytest.raises(ValueError, match="at least one strategy must be given"):
        entries([])


def test_problems_by_name() -> None:
    assert problems() == list(suite())
    assert [each.name for each in problems(["binary-2*", "gauss-2"])][:3] == ["gauss-2", "binary-2", "binary-2-rare"]
    with pytest.raises(ValueError, match="there is no problem 'gauss-3' in the suite; did you mean 'gauss-2'"):
        problems(["gauss-2", "gauss-3"])


def test_the_runs_follow_from_problem_and_error_alone() -> None:
    assert first_runs(case("gauss-2")) == FEWEST
    assert first_runs(case("gauss-2-short")) == MOST
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
    one = leaderboard(chosen, lines, runs=4096, threads=1)
    assert leaderboard(chosen, lines, runs=4096, threads=2) == one
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
        ["gauss-2-short", "rademacher-2-short"],
        ["greedy", "uniform"],
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(done, 4) for done in range(1, 5)]
    cells = {(cell.strategy, cell.case.name): cell for cell in board.cells}
    coins = cells["greedy", "rademacher-2-short"]
    assert coins.runs > MOST
    assert coins.error < 0.05 * (100 + coins.excess)
    # There are more runs than in the pool, and all count alike. Those that were added are the next ones.
    assert coins.pool == coins.runs > MOST_RUNS
    [again] = leaderboard(["rademacher-2-short"], ["greedy"], runs=coins.runs).cells
    assert (again.excess, again.error) == (coins.excess, coins.error)
    # Of the same few throws of a coin none is quieter than many others; of normals 64 in each of eight strata are.
    assert [cells["uniform", name].runs for name in ("gauss-2-short", "rademacher-2-short")] == [8448, MOST]
    assert {cells["uniform", name].pool for name in ("gauss-2-short", "rademacher-2-short")} == {MOST_RUNS}


class Starver(eq.strategies.Strategy):
    """An even split that gives an arm up if its first eight samples have an M2 below 0.365: once in 5,160 runs."""

    scale_invariant = False

    @staticmethod
    def variance(
        count: float,
        mean: float,
        m2: float,
        pooled: tuple[float, ...],
        own: tuple[float, ...],
        params: tuple[float, ...],
    ) -> float:
        return 1e-30 if count == 8 and m2 < 0.365 else 1.0


def chi_square_7(x: float) -> float:
    """P(chi-square with 7 degrees < x)."""
    tail = math.sqrt(2 * x / math.pi) * math.exp(-x / 2) * (1 + x / 3 + x * x / 15)
    return math.erf(math.sqrt(x / 2)) - tail


@pytest.mark.parametrize(("arms", "budget"), [(2, 4096), pytest.param(10, 8192, marks=pytest.mark.slow)])
def test_a_rare_failure_is_seen(arms: int, budget: int) -> None:
    """
    Arms that starve once in 5,160 runs: the board says so, within five standard errors of the exact excess.

    With q the probability, the loss of an arm of variance 1 is q/8 + (1 - q)/(n/K), as mean and M2 of Gaussian samples
    are independent, up to the few samples that an arm gets when another starves. Consecutive runs alone, as many as
    the rule began with, tell of no failure and no error.
    """
    q = chi_square_7(0.365)
    assert q == pytest.approx(1 / 5160, rel=1e-3)
    exact = 100 * ((q / 8 + (1 - q) * arms / budget) * budget / arms - 1)
    equal = Case("equal", "", eq.Problem([eq.Gaussian(0, 1)] * arms), budget, "light")
    run = EntryRun("starver", Starver(), equal, one_kernel=True)
    missed = 0
    for seed in (1, 2):
        cell = run.measure(seed)
        assert abs(cell.excess - exact) < 5 * cell.error
        assert cell.excess > exact / 3
        plain = replace(run, runs=FEWEST).measure(seed)
        assert plain.pool == plain.runs == FEWEST
        missed += plain.excess < exact / 5
    assert missed


def cell(strategy: str, problem: str, excess: float, error: float = 1.0) -> Cell:
    return Cell(strategy, case(problem), excess, error, 1024, 4096)


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
    assert board.strategies("rare") == []
    assert Board((*board.cells[:-1], cell("c", "gauss-2", 0.0)), 4).strategies() == ["a", "b", "c"]
    b = board.summary("b", "continuous")
    assert b is not None
    assert (b.worst, b.error, b.where, b.median, b.problems) == (50.0, 3.0, "stars-8", 30.0, 3)
    assert b.ninth == pytest.approx(46.0)
    # The even split has an excess of 60% on gauss-2.
    assert board.of("b")[0].ratio == pytest.approx(1.02 / 1.6)
    assert board.of("b")[0].ratio_error == pytest.approx(0.01 / 1.6)
    ratios = {each.case.name: each.ratio for each in board.of("b") if each.case.kind == "continuous"}
    assert (b.ratio, b.ratio_where) == (max(ratios.values()), max(ratios, key=lambda name: ratios[name]))
    hardest = board.hardest("b", "continuous", 2)
    assert [(mine.case.name, best and best.strategy) for mine, best in hardest] == [
        ("stars-8", "a"),
        ("lognormal-5", "a"),
    ]
    assert board.hardest("theory", "continuous") == []
    assert Board(board.cells[-1:], 4).hardest("theory", "binary") == [(board.cells[-1], None)]
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
    assert {row["group"] for row in board.summaries() if row["strategy"] == "theory"} >= {"binary", "ones"}
    assert board.rows()[0] == {
        "strategy": "b",
        "problem": "gauss-2",
        "kind": "continuous",
        "tails": "light",
        "K": 2,
        "n": 1000,
        "n/K": 500.0,
        "limit": pytest.approx(0.2),
        "excess": 2.0,
        "error": 1.0,
        "ratio": pytest.approx(1.02 / 1.6),
        "runs": 1024,
        "pool": 4096,
    }


def test_wrong_input() -> None:
    few = problems(["gauss-2"])
    with pytest.raises(ValueError, match="runs must be an integer of at least 4, got 3"):
        leaderboard(few, ["auto"], runs=3)
    with pytest.raises(ValueError, match="engine must be one of 'cpu', 'cuda', got 'tpu'"):
        leaderboard(few, ["auto"], engine="tpu")
    with pytest.raises(ValueError, match="must take part in one of the problems"):
        leaderboard(few, [Entry("none", lambda case: None)])


class Steps:
    """A law of one's own: -1, 0 or 1."""

    mean, variance, third, fourth = 0.0, 2 / 3, 0.0, 2 / 3

    def sample(self, rng: np.random.Generator, size: int) -> Any:
        return rng.integers(-1, 2, size)


def test_problems_of_ones_own() -> None:
    pair = eq.Problem([eq.Gaussian(0, 4), eq.Gaussian(0, 1)])
    own = Case("own", "", eq.Problem([Steps(), eq.Rademacher(2)]), 30, "light")
    given: list[Any] = ["gauss-2-short", pair, eq.Problem([eq.Bernoulli(0.5), eq.Bernoulli(0.1)]), own]
    lines: list[Any] = ["auto", eq.strategies.BAS(exploration=2), Entry("even", lambda case: eq.strategies.EvenSplit())]
    board = leaderboard(given, lines, runs=64, budget=30)
    assert board.strategies() and {cell.strategy for cell in board.cells} == {"auto", "b-as, A=2", "even"}  # noqa: PT018
    by_name = {cell.case.name: cell for cell in board.of("even")}
    assert list(by_name) == ["gauss-2-short", "problem-2", "problem-3", "own"]
    # The problem and the budget of the suite's, and so the same cells.
    assert [cell.excess for cell in board.cells if cell.case.name == "problem-2"] == [
        cell.excess for cell in board.cells if cell.case.name == "gauss-2-short"
    ]
    assert [cell.case.tails for cell in by_name.values()] == ["light", "light", "exponential", "light"]
    assert isinstance(by_name["own"].case.problem.arms[0], eq.Empirical)
    binary = leaderboard([given[2]], ["auto"], runs=64, budget=30, support="binary").cells[0].case
    assert (binary.kind, binary.tails) == ("binary", "light")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"cases": PAIR}, TypeError, "cases must be a list of problems, got Problem"),
        (
            {"cases": entries(["auto"])},
            TypeError,
            "cases must be problems or names of problems of the suite, got Entry",
        ),
        ({"cases": [PAIR], "lines": "auto"}, TypeError, "lines must be a list of strategies, got 'auto'"),
        ({"cases": [PAIR], "lines": [PAIR]}, TypeError, "lines must be strategies or their names, got Problem"),
        ({"cases": ["gauss-2"] * 2}, ValueError, "cases must have different names, got 'gauss-2' twice"),
        ({"cases": [PAIR], "budget": 0}, ValueError, "budget must be a positive integer, got 0"),
        ({"cases": [PAIR], "budget": 1, "lines": ["auto"]}, ValueError, "budget must be at least"),
        ({"cases": [PAIR], "support": (0, 1)}, ValueError, r"support must contain the values of every law, got \(0"),
        ({"cases": [eq.Problem([eq.Constant(1)])]}, ValueError, "a problem must have an arm whose samples vary"),
    ],
)
def test_problems_and_strategies_that_are_none(given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        leaderboard(**given)


def test_a_cell_is_measured_alone() -> None:
    run = EntryRun("even", eq.strategies.EvenSplit(), case("gauss-2"), 64)
    assert run.measure().excess == pytest.approx(60, abs=1e-9)
    assert replace(run, estimator="naive").measure().error > 1
    assert replace(run, one_kernel=True).measure() == run.measure()
