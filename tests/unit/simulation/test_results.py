"""eq.simulate: what it takes, what it gives back, what it refuses before anything runs."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.engine import cpu
from equipoise.engine.setup import Setup
from equipoise.problem import Objective
from equipoise.simulation import Comparison, Curve, Simulation, blocks, engines
from equipoise.simulation.blocks import RunSums
from equipoise.simulation.results import without_noise
from equipoise.strategies import Numbers

PAIR = eq.Problem([eq.Gaussian(0, 4), eq.Gaussian(0, 1)])
MIXED = eq.Problem([eq.Exponential(2), eq.Empirical([0.0, 1.0, 4.0])])


def numbers(sim: Simulation) -> dict[str, Any]:
    return sim.to_dict() | {"batches": sim.batches.tolist()}


# ---- one, or a curve


def test_one_strategy_at_one_budget_is_one_simulation() -> None:
    sim = eq.simulate(PAIR, "b-as", 50, runs=100, support=(-99, 99))
    assert isinstance(sim, Simulation)
    assert (sim.budget, sim.runs, sim.seed, sim.strategy.name) == (50, 100, 1, "b-as")
    assert sim.losses.shape == sim.loss_errors.shape == sim.mean_pulls.shape == (2,)
    assert sim.mean_pulls.sum() == pytest.approx(50)
    assert sim.problem is PAIR
    assert sim.estimator == ("gaussian", "gaussian")


def test_several_are_a_curve_in_the_order_given_then_by_budget() -> None:
    strategies = ["uniform", eq.strategies.BAS(exploration=0.5), "oracle"]
    curve = eq.simulate_budgets(PAIR, strategies, [80, 20, 40, 20], runs=10)
    assert isinstance(curve, Curve)
    assert [(sim.strategy.name, sim.budget) for sim in curve] == [
        (name, n) for name in ("uniform", "b-as", "oracle") for n in (20, 40, 80)
    ]
    assert len(curve) == 9
    assert isinstance(curve[2:4], Curve)
    assert [sim.budget for sim in curve[2:4]] == [80, 20]
    assert curve[-1].strategy.name == "oracle"
    few = eq.simulate_budgets(PAIR, ["uniform"], [20], runs=2)
    assert isinstance(few, Curve)
    assert len(few) == 1


def test_a_curve_is_its_simulations_one_by_one() -> None:
    """Also where budgets share their runs (auto) and where they do not (ch-as)."""
    curve = eq.simulate_budgets(MIXED, ["auto", "ch-as"], [40, 90], runs=70, seed=5)
    for sim in curve:
        assert numbers(sim) == numbers(eq.simulate(MIXED, sim.strategy, sim.budget, runs=70, seed=5))


def test_rows_and_frames() -> None:
    curve = eq.simulate_budgets(PAIR, ["uniform", eq.strategies.BAS(exploration=0.5)], [20, 40], runs=10)
    frame = curve.to_frame()
    assert frame["strategy"].tolist() == ["uniform", "uniform", "b-as (exploration=0.5)", "b-as (exploration=0.5)"]
    assert frame["n"].tolist() == [20, 40, 20, 40]
    assert frame["rescaled_regret"].tolist() == [sim.rescaled_regret for sim in curve]
    assert json.loads(curve.to_json())[3]["excess"] == curve[3].excess
    polars = curve.to_frame("polars")
    assert polars.columns == list(frame.columns)
    assert polars["excess"].to_list() == [sim.excess for sim in curve]
    with pytest.raises(ValueError, match="library must be one of 'pandas', 'polars', got 'excel'"):
        curve.to_frame("excel")  # type: ignore[arg-type]


# ---- as text and in a notebook


def test_what_is_printed() -> None:
    """± is a half-width of 95% everywhere, so that a standard error is called one."""
    curve = eq.simulate_budgets(PAIR, ["uniform", "gafs-max"], [100, 200], runs=50)
    assert repr(curve[0]) == (
        "uniform, n = 100: excess 60% (standard error 0%), rescaled regret 30 (standard error 0); "
        "50 runs, estimated by gaussian"
    )
    lines = repr(curve).splitlines()
    assert lines[0].split("  ")[0] == "strategy"
    assert [line.split()[:2] for line in lines[1:]] == [
        ["uniform", "100"],
        ["uniform", "200"],
        ["gafs-max", "100"],
        ["gafs-max", "200"],
    ]
    difference = curve[2] - curve[0]
    assert repr(difference).startswith("gafs-max minus uniform, n = 100: regret -0.0")
    apart = curve[2] - curve[3]
    assert repr(apart).startswith("gafs-max (n = 100) minus gafs-max (n = 200): regret 0.")
    titles = [title.strip() for title in lines[0].split("  ") if title.strip()]
    assert len(set(titles)) == len(titles)  # each column has its own title
    for shown in (curve, curve[0], difference):
        assert ("std. error" if shown is curve else "standard error") in repr(shown)
        html = shown._repr_html_()
        assert "±" not in repr(shown) + html
        assert "<table>" in html
        assert html.count("<tr>") == (5 if isinstance(shown, Curve) else 3)
    assert "Gaussian(mean=0, variance=4)" in curve[0]._repr_html_()


def test_long_tables_are_cut() -> None:
    many = eq.Problem([eq.Gaussian()] * 30)
    curve = eq.simulate_budgets(many, ["uniform"], range(60, 85), runs=2)
    for text in (repr(curve), curve._repr_html_()):
        assert "and 5 more simulations" in text
    assert repr(curve).count("\n") == 21
    assert "and 10 more arms" in curve[0]._repr_html_()


def test_a_result_cannot_be_changed() -> None:
    sim = eq.simulate(PAIR, "uniform", 100, runs=50)
    with pytest.raises(AttributeError):
        sim.runs = 3  # type: ignore[misc]
    for array in (sim.losses, sim.mean_pulls, sim.batches):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_plots_show_the_excess_unless_asked_for_the_papers_scale() -> None:
    curve = eq.simulate_budgets(PAIR, ["uniform"], [20, 40], runs=10)
    excess, paper = (json.dumps(chart.to_dict()) for chart in (curve.plot(), curve.plot(scale="paper")))
    assert "excess over the best possible loss, %" in excess
    assert "rescaled regret" in paper
    with pytest.raises(ValueError, match="scale must be one of 'excess', 'paper', got 'log'"):
        curve.plot(scale="log")  # type: ignore[arg-type]
    one = eq.simulate(PAIR, "uniform", 20, runs=10)
    assert (
        one.plot(scale="paper").to_dict()
        == eq.simulate_budgets(PAIR, ["uniform"], [20], runs=10).plot("paper").to_dict()
    )
    assert one.plot().to_dict() != one.plot("paper").to_dict()


# ---- numbers


def test_uniform_and_oracle_are_exact() -> None:
    """On N(0,4), N(0,1) at n = 100: uniform has 4/50 where 5/100 is best, 60% too much; the oracle nothing."""
    uniform, oracle = eq.simulate_budgets(PAIR, ["uniform", "oracle"], [100], runs=2)
    assert uniform.losses.tolist() == [4 / 50, 1 / 50]
    assert uniform.excess == pytest.approx(60)
    assert uniform.regret == pytest.approx(0.03)
    assert uniform.rescaled_regret == pytest.approx(30)
    assert uniform.expected_max_regret == pytest.approx(0.03)
    assert oracle.losses == pytest.approx([0.05, 0.05])
    assert oracle.excess == pytest.approx(0, abs=1e-12)
    for sim in (uniform, oracle):
        assert sim.regret_error == sim.rescaled_error == sim.excess_error == sim.expected_max_error == 0
        assert sim.regret_bias == 0
    assert uniform.worst == 0


def test_errors_are_standard_errors() -> None:
    """The naive estimate from its runs, worked out here."""
    runs = 1500
    sim = eq.simulate(MIXED, "greedy", 30, runs=runs, estimator="naive")
    ends = cpu.simulate(Setup(MIXED, sim.strategy, (30,), sim.strategy.params(30, 2, None), 1), 0, runs)
    squares = (ends.means[0] - MIXED.means[:, None]) ** 2
    assert sim.losses == pytest.approx(squares.mean(axis=1))
    assert sim.loss_errors == pytest.approx(squares.std(axis=1, ddof=1) / math.sqrt(runs))
    assert sim.mean_pulls == pytest.approx(ends.counts[0].mean(axis=1))
    worst = (MIXED.variances[:, None] / ends.counts[0]).max(axis=0)
    assert sim.expected_max_regret == pytest.approx(worst.mean() - MIXED.Sigma / 30)
    assert sim.expected_max_error == pytest.approx(worst.std(ddof=1) / math.sqrt(runs))


def simulated(losses: list[float], errors: list[float], problem: eq.Problem = PAIR, runs: int = 100) -> Simulation:
    """A simulation that found these losses with these errors."""
    K = len(problem)
    mean = np.array([*losses, *[1.0] * K, 1.0])
    m2 = np.array([*[e * e * runs * (runs - 1) for e in errors], *[0.0] * (K + 1)])
    return Simulation(
        problem, eq.strategies.EvenSplit(), 10, runs, 1, ("naive",) * K, RunSums(runs, mean, m2), mean[None]
    )


def test_the_bias_of_a_largest() -> None:
    """Two equal with correlation -1: se sqrt(2/pi). Three with -1/2: 3/2 sqrt(3/(2 pi)) se. Far apart: none."""
    two = simulated([1, 1], [0.1, 0.1]).regret_bias
    assert two == pytest.approx(0.1 * math.sqrt(2 / math.pi), rel=1e-3)
    assert simulated([1, 1], [0.1, 0.0]).regret_bias == pytest.approx(0.1 / math.sqrt(math.pi), rel=0.02)
    assert simulated([1, 5], [0.1, 0.1]).regret_bias == 0
    assert simulated([1, 2.4], [0.1, 0.1]).regret_bias == pytest.approx(0, abs=1e-3)
    three = eq.Problem([eq.Gaussian()] * 3)
    by_hand = 0.15 * math.sqrt(1.5 / math.pi)
    assert simulated([1, 1, 1], [0.1] * 3, three).regret_bias == pytest.approx(by_hand, rel=1e-3)
    assert simulated([1], [0.1], eq.Problem([eq.Gaussian()])).regret_bias == 0
    # Up to three standard errors of a difference, 3 sqrt(2) sqrt(2) 0.1, two losses may be equal.
    assert simulated([1, 1.59], [0.1, 0.1]).regret_bias == pytest.approx(two)
    assert simulated([1, 1.8], [0.1, 0.1]).regret_bias < 0.5 * two


@pytest.mark.parametrize(("law", "budget"), [(eq.Gaussian(), 100), (eq.Exponential(), 60)])
def test_the_largest_of_equal_losses_is_too_large_by_no_more_than_stated(law: eq.Law, budget: int) -> None:
    """
    The largest of two, less the mean of all that were found, in 300 simulations: at least a third of what is stated.

    At five standard errors.
    """
    problem = eq.Problem([law, law])
    sims = [eq.simulate(problem, "auto", budget, runs=256, seed=seed, threads=1) for seed in range(300)]
    largest = np.array([sim.losses.max() for sim in sims])
    actual, error = largest.mean() - np.mean([sim.losses for sim in sims]), largest.std() / math.sqrt(300)
    stated = float(np.mean([sim.regret_bias for sim in sims]))
    assert actual - 5 * error <= stated <= 3 * actual
    assert actual + 5 * error <= 2 * stated


# ---- objectives

FOUR = eq.Problem([eq.Gaussian(1, 4), eq.Exponential(2), eq.Bernoulli(0.3), eq.Rademacher(0.5)])


# Losses of the first and of the last arm, regret and expected_max_regret, printed by the version before objectives.
@pytest.mark.parametrize(
    ("arms", "strategy", "losses", "regret", "expected_max"),
    [
        (2, "b-as", [0.0698560005290377, 0.06889358613830407], -0.019429713756676584, 0.01265691253263597),
        (4, "b-as", [0.08097432495507426, 0.09063377651407786], 0.0647344468948778, 0.09103966469464607),
        (4, "gafs-max", [0.11879284475370447, 0.030468750000000006], 0.09988269608313767, 0.13298734841580018),
        (40, "b-as", [0.20539757211810927, 0.42250043324827535], 0.20027821102605314, 0.8820188492063489),
        (40, "two-stage", [0.31744434327538634, 0.95003702633459], 0.8131445117718862, 1.7673611111111112),
        (400, "gafs-max", [0.13737770687951298, 0.3258275013143111], 0.4247857803774668, 0.19135802469135804),
    ],
)
def test_the_papers_objective_is_as_it_was(
    arms: int, strategy: str, losses: list[float], regret: float, expected_max: float
) -> None:
    problem = {
        2: PAIR,
        4: FOUR,
        40: eq.Problem([eq.Gaussian(0, 1 + k % 4) if k % 2 else eq.Exponential(1) for k in range(40)]),
        400: eq.Problem([eq.Gaussian(0, 1 + k % 4) for k in range(400)]),
    }[arms]
    chosen = eq.strategies.BAS(exploration=0.5) if strategy == "b-as" else strategy
    sim = eq.simulate(problem, chosen, 8 * arms + 40, runs=64, seed=7, estimator="naive")
    assert sim.losses[[0, -1]] == pytest.approx(losses, rel=1e-13)
    assert sim.regret == pytest.approx(regret, rel=1e-12)
    assert sim.expected_max_regret == pytest.approx(expected_max, rel=1e-12)
    same = eq.simulate(
        problem, chosen, 8 * arms + 40, runs=64, seed=7, estimator="naive", objective=math.inf, in_flight=1
    )
    assert numbers(same) == numbers(sim)


def test_neymans_allocation() -> None:
    """With p = 1 on N(0, 4), N(0, 1) at n = 90: 60 and 30 pulls, a loss of 4/60 + 1/30 = (2 + 1)²/90."""
    sim = eq.simulate(PAIR, "oracle", 90, runs=4, objective=1)
    assert sim.mean_pulls.tolist() == [60, 30]
    assert sim.best == pytest.approx(0.1)
    assert sim.excess == pytest.approx(0, abs=1e-12)
    even = eq.simulate(PAIR, "uniform", 90, runs=4, objective=1)
    assert even.regret == pytest.approx(4 / 45 + 1 / 45 - 0.1)
    assert even.excess == pytest.approx(100 / 9)
    assert even.expected_max_regret == pytest.approx(even.regret)
    assert even.regret_error == pytest.approx(0, abs=1e-15)
    squares = eq.simulate(PAIR, "uniform", 90, runs=4, objective=2)
    assert squares.regret == squares.expected_max_regret == pytest.approx(math.hypot(4, 1) / 45 - squares.best)


def test_strata() -> None:
    """Shares 0.3 and 0.7 of N(0, 4), N(0, 1): pulls by share times standard deviation, 0.6 to 0.7."""
    strata = eq.simulate(PAIR, "oracle", 130, runs=4, objective=eq.Stratified([0.3, 0.7]))
    assert strata.mean_pulls.tolist() == [60, 70]
    assert strata.best == pytest.approx(1.3**2 / 130)
    assert strata.objective.weights == pytest.approx((0.09, 0.49))
    by_weights = eq.simulate(PAIR, "oracle", 130, runs=4, objective=1, weights=strata.objective.weights)
    assert numbers(strata) == numbers(by_weights)


def test_weights() -> None:
    """Largest weighted loss: w σ² = 1, 1 asks for even pulls; a weight of 0 leaves an arm at its first pulls."""
    even = eq.simulate(PAIR, "oracle", 100, runs=4, weights=[0.25, 1])
    assert even.mean_pulls.tolist() == [50, 50]
    assert even.regret == pytest.approx(0, abs=1e-12)
    assert even.worst in (0, 1)
    lone = eq.simulate(PAIR, "oracle", 100, runs=4, weights={0: 0, 1: 2})
    assert lone.mean_pulls.tolist() == [1, 99]
    assert lone.worst == 1
    assert lone.regret == pytest.approx(2 / 99 - 2 / 100)
    assert lone.expected_max_regret == pytest.approx(lone.regret)


def test_money() -> None:
    """With p = 1, costs 4 and 1: T_k by σ_k/sqrt(c_k), so as many of each, 100 for a budget of 500."""
    sim = eq.simulate(PAIR, "oracle", 500, runs=4, objective=1, costs=[4, 1])
    assert sim.mean_pulls.tolist() == [100, 100]
    assert sim.best == pytest.approx((4 + 1) ** 2 / 500)
    assert sim.regret == pytest.approx(0, abs=1e-12)
    # Parameters that depend on the budget go by the samples that it buys evenly: here a fifth of 300, for two arms.
    pilot, given = eq.simulate_budgets(
        PAIR, ["two-stage", eq.strategies.TwoStage(pilot=30)], [90], runs=30, objective=1, costs=[0.1, 0.5]
    )
    assert pilot.losses.tolist() == given.losses.tolist()
    half, whole = eq.simulate_budgets(PAIR, ["auto"], [250.5, 500.25], runs=30, costs=[0.5, 0.25], in_flight=4)
    spent = np.array([0.5, 0.25]) @ whole.mean_pulls
    assert 500.25 - 0.25 < spent <= 500.25 + 1e-9
    assert (half.budget, whole.budget) == (250.5, 500.25)
    assert "budget 500.25, 4 in flight" in repr(whole)


@pytest.mark.parametrize(
    "given",
    [{"objective": 1}, {"objective": 3, "weights": [1, 2, 3, 0]}, {"objective": 0.5}, {"weights": [1, 2, 3, 0]}],
)
def test_the_error_of_a_norm(given: dict[str, Any]) -> None:
    """
    The regret's error is that of 400 independent simulations of 200 runs, to a fifth.

    The spread of 400 has a standard error of 3.5%, the mean of their stated errors of at most 1%.
    """
    sims = [
        eq.simulate(FOUR, "greedy", 60, runs=200, seed=s, estimator="naive", threads=1, **given) for s in range(400)
    ]
    regrets = np.array([sim.regret for sim in sims])
    assert float(np.mean([sim.regret_error for sim in sims])) == pytest.approx(regrets.std(ddof=1), rel=0.2)


@pytest.mark.slow
def test_the_bias_of_a_norm() -> None:
    """
    The 3-norm of two losses of 1, known from 8 batches of error 0.3 each: it is too large by the stated bias.

    20,000 times: 0.0071 to second order, with a standard error of 0.0007.
    """
    rng = np.random.default_rng(1)
    found, stated = [], []
    for _ in range(20_000):
        batches = np.hstack([rng.normal(1, 0.3, (8, 2)), np.full((8, 4), 10.0)])
        sums = RunSums(80, batches[:, :5].mean(axis=0), np.ones(5))
        sim = Simulation(PAIR, eq.strategies.EvenSplit(), 10, 80, 1, ("naive",) * 2, sums, batches, Objective(3.0))
        found.append(sim.regret + sim.best - 2 ** (1 / 3))
        stated.append(sim.regret_bias)
    error = float(np.std(np.array(found) - stated)) / math.sqrt(20_000)
    assert np.mean(found) == pytest.approx(np.mean(stated), abs=5 * error)
    assert np.mean(stated) == pytest.approx(0.0071, rel=0.1)
    assert eq.simulate(FOUR, "greedy", 60, runs=60, objective=1).regret_bias == pytest.approx(0, abs=1e-15)


def test_norms_of_losses_that_came_out_negative() -> None:
    """An estimate below zero counts as nothing in a norm, and every number is one."""
    mean = np.array([0.5, -0.1, 1, 1, 1])
    batches = np.array([[0.4, -0.2, 1, 1, 1, 50], [0.6, 0.0, 1, 1, 1, 50]])
    for p in (0.5, 1.0, 2.5):
        sums = RunSums(100, mean, np.ones(5))
        sim = Simulation(PAIR, eq.strategies.EvenSplit(), 10, 100, 1, ("naive",) * 2, sums, batches, Objective(p))
        assert sim.regret == pytest.approx(0.5 - sim.best)
        assert sim.regret_error == pytest.approx(0.1)
        assert math.isfinite(sim.regret_bias)


@pytest.mark.parametrize(
    ("law", "support", "inside"),
    [
        (eq.Bernoulli(0.3), "binary", True),
        (eq.Constant(1), "binary", True),
        (eq.Empirical([0, 1, 1]), "binary", True),
        (eq.Uniform(0, 1), "binary", False),
        (eq.Constant(0.5), "binary", False),
        (eq.Empirical([0, 0.5]), "binary", False),
        (eq.Rademacher(), "binary", False),
        (eq.Rademacher(), (-1, 1), True),
        (eq.Rademacher(2), (-1, 1), False),
        (eq.Bernoulli(0.3), (0, 1), True),
        (eq.Uniform(0, 1.1), (0, 1), False),
        (eq.Gaussian(0, 4), (-12, 12), True),
        (eq.Gaussian(0, 4), (-11, 12), False),
        (eq.Exponential(2), (0, 42), True),
        (eq.Exponential(2), (0, 41), False),
        (eq.Laplace(1, 2), (-20, 22), True),
        (eq.Laplace(1, 2), (-20, 21), False),
        (eq.LogNormal(0, 1), (0, 404), True),
        (eq.LogNormal(0, 1), (0, 403), False),
        (eq.StudentT(5), (-1e9, 1e9), False),
    ],
)
def test_a_support_contains_the_values_of_every_law(law: eq.problem.Law, support: Any, inside: bool) -> None:
    problem = eq.Problem([eq.Constant(1), law])
    if inside:
        assert eq.simulate(problem, "uniform", 4, runs=2, support=support).runs == 2
        return
    with pytest.raises(ValueError, match=rf"support must contain the .*, got .* with {re.escape(repr(law))}"):
        eq.simulate(problem, "uniform", 4, runs=2, support=support)


@pytest.mark.parametrize(
    ("losses", "errors"),
    [
        ([1.0, 1.05, 1.07], [0.003, 0.002, 0.05]),
        ([1.0, 1.0], [0.01, 0.01]),
        ([1.0] * 30, [0.01] * 30),
        ([1.0, 0.98, 0.5], [0.001, 0.02, 0.02]),
    ],
)
def test_the_interval_of_a_largest_loss(losses: list[float], errors: list[float]) -> None:
    """
    The largest of several losses with normal noise is within 1.96 regret errors of the truth, 95% of the time or more.

    4,000 draws, with a standard error of 0.34%. The error of the arm that came out largest holds the truth 63% of the
    time in the first case, and 47% in the third.
    """
    rng, arms = np.random.default_rng(1), len(losses)
    problem = eq.Problem([eq.Gaussian(0, 1)] * arms)
    m2 = np.append(np.square(errors) * 100 * 99, np.ones(arms + 1))
    covered = []
    for drawn in rng.normal(losses, errors, (4000, arms)):
        sums = RunSums(100, np.append(drawn, np.ones(arms + 1)), m2)
        sim = Simulation(problem, eq.strategies.EvenSplit(), 10, 100, 1, ("naive",) * arms, sums, np.ones((1, arms)))
        covered.append(abs(sim.regret + sim.best - max(losses)) <= 1.96 * sim.regret_error)
    assert np.mean(covered) > 0.95 - 5 * 0.0034


def test_an_arm_far_below_does_not_widen_the_interval_of_the_largest_loss() -> None:
    m2 = np.array([0.01, 0.05, 1, 1, 1]) ** 2 * 100 * 99
    for loss, error in ((0.5, 0.01), (0.99, (0.05 * 2.2414 - 0.01) / 1.96)):
        sums = RunSums(100, np.array([1, loss, 1, 1, 1]), m2)
        sim = Simulation(PAIR, eq.strategies.EvenSplit(), 10, 100, 1, ("naive",) * 2, sums, np.ones((1, 5)))
        assert sim.regret_error == pytest.approx(error, rel=1e-3)


# ---- comparisons


@pytest.mark.parametrize("runs", [2, 100, 1025, 2100, 10_000, 70_000])
def test_a_difference_is_taken_pair_by_pair(runs: int) -> None:
    """Its error is near that of the differences of single runs, for any number of runs."""
    one, other = eq.simulate_budgets(PAIR, ["gafs-max", "uniform"], [20], runs=runs, estimator="naive")
    difference = one - other
    assert difference.losses == pytest.approx(one.losses - other.losses)
    assert difference.regret == pytest.approx(one.regret - other.regret)
    assert np.isfinite(difference.loss_errors).all()
    if runs >= 100:
        pairs = []
        for sim in (one, other):
            plan = Setup(PAIR, sim.strategy, (20,), sim.strategy.params(20, 2, None), 1)
            pairs.append((cpu.simulate(plan, 0, runs).means[0] - PAIR.means[:, None]) ** 2)
        exact = (pairs[0] - pairs[1]).std(axis=1, ddof=1) / math.sqrt(runs)
        # An error from 63 degrees of freedom is itself unsure by a tenth.
        assert difference.loss_errors == pytest.approx(exact, rel=0.45)
        assert difference.regret_error > 0
    assert isinstance(difference, Comparison)
    assert "gafs-max minus uniform" in repr(difference)


def test_a_difference_is_more_precise_than_its_parts() -> None:
    """The same samples: what two B-AS that differ little lose in common goes away."""
    one, other = eq.simulate_budgets(
        PAIR, [eq.strategies.BAS(exploration=a) for a in (0.5, 0.51)], [500], runs=6400, estimator="naive"
    )
    assert (one - other).regret_error < 0.2 * one.regret_error


def test_what_cannot_be_compared() -> None:
    sim = eq.simulate(PAIR, "uniform", 20, runs=64)
    for other, name in (
        (eq.simulate(MIXED, "uniform", 20, runs=64), "problem"),
        (eq.simulate(PAIR, "uniform", 20, runs=64, seed=2), "seed, got 1 and 2"),
        (eq.simulate(PAIR, "uniform", 20, runs=65), "runs, got 64 and 65"),
    ):
        with pytest.raises(ValueError, match=f"compared simulations must have the same {name}"):
            sim - other
    with pytest.raises(ValueError, match=r"the same objective, got Objective\(p=inf.* and Objective\(p=1.0"):
        sim - eq.simulate(PAIR, "uniform", 20, runs=64, objective=1)
    with pytest.raises(TypeError):
        sim - 1.0  # type: ignore[operator]


# ---- files


def test_saved_and_loaded(tmp_path: Path) -> None:
    """The same numbers, and differences can still be taken."""
    curve = eq.simulate_budgets(
        MIXED, ["auto", eq.strategies.CHAS(delta=0.01), eq.strategies.Oracle([1, 2])], [30, 60], runs=100
    )
    path = tmp_path / "curve.json"
    curve.save(path)
    loaded = Curve.load(path)
    assert loaded.to_json() == curve.to_json()
    assert [sim.strategy for sim in loaded] == [sim.strategy for sim in curve]
    for one, two in zip(curve, loaded, strict=True):
        assert numbers(one) == numbers(two)
        assert one.problem == two.problem
    assert (loaded[0] - curve[2]).loss_errors.tolist() == (curve[0] - curve[2]).loss_errors.tolist()
    assert repr(loaded) == repr(curve)


def test_an_objective_is_saved_and_loaded(tmp_path: Path) -> None:
    """With the pulls in flight; a file from before there were objectives has the paper's."""
    path = tmp_path / "curve.json"
    given: dict[str, Any] = {"objective": 2, "weights": [1, 0], "costs": [0.5, 2], "in_flight": 3}
    curve = eq.simulate_budgets(PAIR, ["auto"], [30, 60], runs=50, **given)
    curve.save(path)
    loaded = Curve.load(path)
    assert loaded.to_json() == curve.to_json()
    for one, two in zip(curve, loaded, strict=True):
        assert numbers(one) == numbers(two)
        assert (two.objective, two.in_flight) == (Objective(2.0, (1.0, 0.0), (0.5, 2.0)), 3)
    assert json.loads(curve.to_json())[0]["objective"] == {"p": 2.0, "weights": [1.0, 0.0], "costs": [0.5, 2.0]}
    plain = eq.simulate_budgets(PAIR, ["auto"], [30], runs=50)
    plain.save(path)
    saved = json.loads(path.read_text())
    assert saved["simulations"][0].pop("objective") == {"p": "inf", "weights": None, "costs": None}
    assert saved["simulations"][0].pop("in_flight") == 1
    path.write_text(json.dumps(saved))
    assert Curve.load(path).to_json() == plain.to_json()


@pytest.mark.parametrize(
    "content", [b"[1, 2]", b"[" * 100_000, b'{"format": "another"}', b"\xff\xfe\x00", b"plain text"]
)
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"other.json is not a file that Curve.save wrote"):
        Curve.load(path)


# ---- progress


@pytest.mark.parametrize(
    ("estimator", "runs", "pilot"),
    [
        ("gaussian", 100, 384),  # the fewest
        ("gaussian", 10_000, 448),  # sqrt(16 · 10,000) = 400, in whole lanes
        ("gaussian", 10**6, 2048),  # the most
        ("controls", 100, 2048),
        ("wald", 10**6, 64),
    ],
)
def test_a_pilot_is_as_long_as_it_pays_off(estimator: Any, runs: int, pilot: int) -> None:
    setup = Setup(PAIR, eq.strategies.Auto(), (100,), (1.0,), 1)
    assert blocks.pilot_runs(setup, (estimator,) * 2, runs) == pilot


def test_how_many_blocks_are_summed_at_once_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 1,024 runs, the last of which is smaller: one by one and all at once, to the bit."""
    together = eq.simulate(PAIR, eq.strategies.BAS(exploration=0.5), 20, runs=5000, threads=1)
    monkeypatch.setattr(engines, "AT_ONCE", 1)
    alone = eq.simulate(PAIR, eq.strategies.BAS(exploration=0.5), 20, runs=5000, threads=1)
    assert together.losses.tolist() == alone.losses.tolist()
    assert together.regret_error == alone.regret_error
    assert (together.batches == alone.batches).all()


def test_progress() -> None:
    """Runs done and runs in all, never falling, to the end; the same numbers with and without."""
    told: list[tuple[int, int]] = []
    curve = eq.simulate_budgets(PAIR, ["uniform", "ch-as"], [20, 40], runs=3000, progress=lambda *now: told.append(now))
    done, totals = zip(*told, strict=True)
    assert set(totals) == {9000}  # both budgets of uniform are one set of runs
    assert list(done) == sorted(set(done))
    assert told[-1] == (9000, 9000)
    plain = eq.simulate_budgets(PAIR, ["uniform", "ch-as"], [20, 40], runs=3000)
    assert curve.to_json() == plain.to_json()


# ---- what is refused


@pytest.mark.parametrize(
    ("changed", "kind", "message"),
    [
        ({"problem": [eq.Gaussian()]}, TypeError, r"problem must be a problem such as eq.Problem\("),
        ({"problem": None}, TypeError, "problem must be .*, got None"),
        (
            {"problem": eq.Problem([eq.Gaussian(0, 1e300)])},
            ValueError,
            r"a variance of 0, or from 1e-150 to 1e\+150, got Gaussian",
        ),
        ({"strategy": "bas"}, ValueError, "'bas'.*did you mean 'b-as'"),
        ({"strategy": eq.strategies.BAS}, TypeError, r"BAS\(\)"),
        ({"strategies": ["auto", 3]}, TypeError, "3"),
        ({"strategies": "auto"}, TypeError, "strategies must be a list, got 'auto'; simulate takes a single one"),
        ({"strategy": ["auto"]}, TypeError, r"strategy must be a single one, got \['auto'\]; simulate_budgets takes"),
        ({"budget": [100]}, TypeError, r"budget must be a single one, got \[100\]; simulate_budgets takes several"),
        ({"strategies": []}, ValueError, "strategies must have at least one value, got none"),
        ({"strategy": "b-as"}, ValueError, "b-as.*exploration"),
        ({"budgets": []}, ValueError, "budgets must have at least one value, got none"),
        (
            {"budget": 3},
            ValueError,
            "budget must be at least 4, got 3: auto starts with 2 samples of each arm",
        ),
        ({"budgets": [100, 3]}, ValueError, "budget must be at least 4, got 3"),
        ({"budget": 0}, ValueError, "budget must be a positive integer, got 0"),
        ({"budget": 10.5}, TypeError, "budget must be a positive integer, got 10.5"),
        ({"budget": "many"}, TypeError, "budget must be a positive integer, got 'many'"),
        ({"runs": 1}, ValueError, "runs must be an integer of at least 2, got 1"),
        ({"runs": True}, TypeError, "runs must be an integer of at least 2, got True"),
        ({"seed": -1}, ValueError, "seed must be a non-negative integer, got -1"),
        ({"seed": 2**64}, ValueError, r"seed must be below 2\^64, got 18446744073709551616"),
        ({"seed": 0.5}, TypeError, "seed must be a non-negative integer, got 0.5"),
        ({"estimator": "best"}, ValueError, "estimator must be one of 'auto', 'naive', .*, got 'best'"),
        ({"engine": "gpu"}, ValueError, "engine must be 'cpu', 'cuda' or a Dask client, got 'gpu'"),
        ({"engine": None}, ValueError, "engine must be .*, got None"),
        ({"engine": "cud"}, ValueError, r"got 'cud'; did you mean 'cuda'\?"),
        ({"precision": "half"}, ValueError, "precision must be one of 'double', 'single', got 'half'"),
        ({"precision": "single"}, ValueError, "precision must be 'double' unless engine='cuda', got 'single'"),
        ({"threads": 0}, ValueError, "threads must be a positive integer, got 0"),
        ({"support": (1, 0)}, ValueError, r"support.*\(1, 0\)"),
        (
            {"strategy": eq.strategies.Oracle([1.0])},
            ValueError,
            "variances must have one value for each of the 2 arms, got 1",
        ),
        ({"in_flight": 0}, ValueError, "in_flight must be a positive integer, got 0"),
        ({"in_flight": 2.5}, TypeError, "in_flight must be a positive integer, got 2.5"),
        ({"in_flight": 2, "engine": "cuda"}, ValueError, "cuda.*in_flight"),
        ({"costs": [1, 2], "engine": "cuda"}, ValueError, "cuda.*costs"),
        ({"objective": 0}, ValueError, "objective"),
        ({"weights": [1, 2, 3]}, ValueError, "weights must have one value for each of the 2 arms, got 3"),
        ({"weights": [0, 0]}, ValueError, "weight"),
        ({"weights": {0: 1, 2: 1}}, ValueError, "got one for 2, which is not an arm"),
        (
            {"objective": eq.Stratified([0.2, 0.3, 0.5])},
            ValueError,
            "shares must have one value for each of the 2 arms, got 3",
        ),
        ({"costs": [1, 0]}, ValueError, "cost"),
        ({"costs": [1, 2], "budget": "much"}, TypeError, "budget must be a positive amount of money, got 'much'"),
        ({"costs": [1, 2], "budget": math.inf}, ValueError, "budget must be a positive amount of money, got inf"),
        ({"costs": [1, 2], "budget": 1e300}, ValueError, "budget must buy at most 1,000,000,000,000 samples in a run"),
        (
            {"costs": [1, 2], "budget": 5.9},
            ValueError,
            "budget must be at least 6, got 5.9: auto starts with 2 samples",
        ),
    ],
)
def test_wrong_input_is_told_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], kind: type[Exception], message: str
) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("it ran")

    monkeypatch.setattr(blocks, "collect", never)
    monkeypatch.setattr(cpu, "kernel", never)
    one, several = {"strategy": "auto", "budget": 100}, {"strategies": ["auto"], "budgets": [100]}
    call: Any
    call, given = (eq.simulate_budgets, several) if set(changed) & set(several) else (eq.simulate, one)
    with pytest.raises(kind, match=message):
        call(**({"problem": PAIR, "runs": 10} | given | changed))


class Triangle:
    """A law of one's own: the sum of two uniform numbers, times `scale`."""

    third = 0.0

    def __init__(self, scale: float = 1.0, stated: float = 1.0) -> None:
        self.scale, self.mean = scale, stated * scale

    @property
    def variance(self) -> float:
        return self.scale**2 / 6

    @property
    def fourth(self) -> float:
        return self.scale**4 / 15

    def sample(self, rng: np.random.Generator, size: int) -> Any:
        return self.scale * rng.random((2, size)).sum(axis=0)


class Coarse(eq.Gaussian):
    """A law whose formula is not that of its base."""

    def sample(self, rng: np.random.Generator, size: int) -> Any:
        return np.sign(super().sample(rng, size))


def test_a_law_of_ones_own_is_simulated_by_values_drawn_from_it() -> None:
    law = Triangle(3.0)
    problem = eq.Problem([law, eq.Gaussian(0, 1), law, Coarse(0, 1)])
    curve = eq.simulate_budgets(problem, ["uniform", "auto"], [40, 80], runs=400, support=(-6, 6))
    sim = curve[0]
    one, other, same, coarse = sim.problem.arms
    assert (sim.drawn, other) == ((0, 2, 3), eq.Gaussian(0, 1))
    assert isinstance(one, eq.Empirical)
    assert isinstance(coarse, eq.Empirical)
    assert one is same
    assert len(one.values) == 65_536
    assert set(coarse.values) == {-1.0, 1.0}
    # The standard errors of 65,536 values: 0.3% of the variance at most.
    assert sim.problem.variances == pytest.approx(problem.variances, rel=0.03)
    # An even split is exact for the values.
    assert sim.losses == pytest.approx(sim.problem.variances / 10, abs=5 * sim.loss_errors.max() + 1e-9)
    words = "65,536 drawn values stand for the laws of arm 0, arm 2 and arm 3"
    assert repr(sim).endswith(f"; {words}")
    assert repr(curve).splitlines()[-1] == f"{words}."
    assert sim.to_dict()["drawn"] == [0, 2, 3]
    again = eq.simulate(problem, "uniform", 40, runs=400, support=(-6, 6))
    assert (again - sim).regret == 0
    assert eq.simulate(eq.Problem([Triangle()]), "uniform", 10, runs=2, support=(0, 2)).drawn == (0,)
    with pytest.raises(ValueError, match="support must contain the values of every law, got 'binary'"):
        eq.simulate(eq.Problem([Triangle()]), "uniform", 10, runs=2, support="binary")


def test_a_law_of_ones_own_is_saved(tmp_path: Path) -> None:
    curve = eq.simulate_budgets(eq.Problem([Triangle(), Triangle(2)]), ["uniform"], [10], runs=4)
    curve.save(tmp_path / "curve.json")
    assert type(curve).load(tmp_path / "curve.json")[0].drawn == (0, 1)


def test_laws_that_cannot_be_simulated() -> None:
    class Alien:
        mean, variance, third, fourth = 0.0, 1.0, 0.0, 3.0

    class Short(Triangle):
        def sample(self, rng: np.random.Generator, size: int) -> Any:
            return [1.0, 2.0]

    for law, error, message in (
        (Alien(), TypeError, r"a law must have a method sample\(rng, size\) to be simulated, got"),
        (Short(), ValueError, r"sample\(rng, 65536\) of a law must return 65,536 numbers, got \[1\.0, 2\.0\]"),
        (Triangle(2, 1.1), ValueError, r"mean of a law must be that of its samples, got .* 2\.2, where 65,536 samples"),
        (
            Coarse(0, 2),
            ValueError,
            "variance of a law must be that of its samples, got .* 2, where 65,536 samples have 1",
        ),
    ):
        with pytest.raises(error, match=message):
            eq.simulate(eq.Problem([law]), "uniform", 10, runs=2)  # type: ignore[list-item]
    with pytest.raises(ValueError, match="must have at most 4,096 laws of your own to be simulated, got 4,097"):
        eq.simulate(eq.Problem([Triangle() for _ in range(4097)]), "uniform", 9000, runs=2)


# ---- from one arm to very many


def test_one_arm() -> None:
    """All pulls are its own, and the loss is s²/n under any strategy."""
    for law in (eq.Gaussian(3, 2), eq.Exponential(2)):
        for strategy in ("auto", eq.strategies.BAS(exploration=0.5)):
            sim = eq.simulate(eq.Problem([law]), strategy, 40, runs=3000)
            assert sim.mean_pulls.tolist() == [40]
            assert sim.losses[0] == pytest.approx(law.variance / 40, abs=5 * sim.loss_errors[0] + 1e-15)
            assert sim.regret_bias == 0


def test_a_thousand_arms() -> None:
    """Half of variance 4 and half of 1, by the heap; the default beats uniform, whose loss is known exactly."""
    problem = eq.Problem([eq.Gaussian(0, 4), eq.Gaussian(0, 1)] * 500)
    auto, uniform = eq.simulate_budgets(problem, ["auto", "uniform"], [20_000], runs=20)
    assert set(auto.estimator) == {"gaussian"}
    assert uniform.losses.tolist() == [0.2, 0.05] * 500
    assert auto.mean_pulls.sum() == pytest.approx(20_000)
    assert auto.losses[::2].mean() < 0.18


def test_arms_without_variance() -> None:
    """Nothing to lose: the excess over nothing is not a number, all else is zero."""
    sim = eq.simulate(eq.Problem([eq.Constant(3), eq.Constant(-1)]), "auto", 40, runs=10)
    assert sim.losses.tolist() == [0, 0]
    assert sim.regret == sim.regret_error == sim.rescaled_regret == 0
    assert math.isnan(sim.excess)
    assert math.isnan(sim.excess_error)
    one = eq.simulate(eq.Problem([eq.Constant(3), eq.Gaussian()]), "auto", 40, runs=2000)
    assert one.losses[0] == 0
    assert one.worst == 1


class Given(eq.strategies.Strategy):
    """A strategy whose variance subclasses choose."""

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return 1.0


class Negative(Given):
    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return m2 / count - 1e9


class NotANumber(Given):
    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return math.nan


class Infinite(Given):
    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return math.inf


class DividesByZero(Given):
    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return m2 / (m2 - m2)


class Vague(Given):
    sums = ("variance",)
    pooled = ("mean",)

    @staticmethod
    def share(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> Numbers:
        return (math.nan,)

    @staticmethod
    def pool(sums: Numbers, arms: float, pooled: Numbers, params: Numbers) -> Numbers:
        return sums


class Wordy(Given):
    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return f"{m2}"  # type: ignore[return-value]


class Short(Given):
    @staticmethod
    def variance(count: float, mean: float) -> float:  # type: ignore[override]
        return mean


class Endless(Given):
    def params(self, budget: int | None, arms: int, support: Any) -> tuple[float, ...]:
        return (math.inf,)


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (Negative(), r"Negative.variance must return a finite number .* got -"),
        (NotANumber(), r"NotANumber.variance must return a finite number .* got nan"),
        (Infinite(), r"Infinite.variance must return a finite number .* got inf"),
        (DividesByZero(), r"DividesByZero.variance must return a finite number .* got inf"),
        (Vague(), r"Vague.share must return a tuple of 1 finite number, variance, got \(nan\)"),
        (Wordy(), r"Wordy.* cannot be compiled"),
        (Short(), "Short.variance"),
        (Endless(), "Endless.params"),
        (eq.strategies.Strategy(), "Strategy"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_strategy_that_does_not_work_is_refused_in_one_sentence(
    strategy: eq.strategies.Strategy, message: str
) -> None:
    """A study refuses it at the sample where it happens, a simulation before it starts."""
    for in_flight in (1, 3):
        with pytest.raises(eq.EquipoiseError) as refused:
            eq.simulate(PAIR, strategy, 20, runs=10, in_flight=in_flight)
        assert re.match(message, str(refused.value))
        assert "\n" not in str(refused.value)


def test_a_first_sample_can_be_kept() -> None:
    """A formula that only works on samples, not on NaN, is fine: no simulated sample is NaN."""

    class First(Given):
        own = ("square",)

        @staticmethod
        def keep(
            sample: float, count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers
        ) -> Numbers:
            return (sample * sample,) if count == 1 or math.isnan(sample) else own

        @staticmethod
        def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
            return own[0]

    assert eq.simulate(PAIR, First(), 20, runs=10).mean_pulls.sum() == pytest.approx(20)


def test_rounding_noise_is_printed_as_0() -> None:
    assert without_noise(1.0, 2e-19, 6e-16) == (0, 0)
    assert without_noise(1e-9, -2e-19, 6e-16) == (-2e-19, 6e-16)
    assert "e-1" not in repr(eq.simulate(PAIR, "oracle", 100, runs=50))


# ---- arms far from 0

FAR = eq.Problem([eq.Gaussian(1.7e9, 4e-6), eq.Laplace(-1.7e9, 1e-6), eq.Gaussian(5, 1e-6)])
NEAR = eq.Problem([eq.Gaussian(0, 4e-6), eq.Laplace(0, 1e-6), eq.Gaussian(5, 1e-6)])


@pytest.mark.parametrize("options", [{}, {"in_flight": 3}, {"costs": [1, 2, 1]}, {"objective": 1}])
def test_arms_far_from_0_are_simulated_around_it(options: dict[str, Any]) -> None:
    far, near = (eq.simulate(each, "auto", 300, runs=20, estimator="naive", **options) for each in (FAR, NEAR))
    assert far.problem is FAR
    assert (numbers(far)["losses"], far.batches.tolist()) == (numbers(near)["losses"], near.batches.tolist())
    # No run has a mean that is off by a digit of 1.7e9, far more than its standard error.
    assert (far.losses < 100 * FAR.variances / far.mean_pulls).all()


class Relative(eq.strategies.Strategy):
    """Plans with the square of the mean."""

    uses_mean = True

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return mean * mean


def test_a_strategy_that_uses_means_sees_those_of_the_laws() -> None:
    problem = eq.Problem([eq.Gaussian(1.7e9, 1e-6), eq.Gaussian(3.4e9, 1e-6)])
    assert eq.simulate(problem, Relative(), 100, runs=4).mean_pulls.tolist() == [20, 80]
