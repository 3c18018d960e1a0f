"""eq.simulate: what it takes, what it gives back, what it refuses before anything runs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.lab import Curve, Simulation, cpu, simulation
from equipoise.lab.simulation import Sums

PAIR = eq.Problem([eq.Gaussian(0, 4), eq.Gaussian(0, 1)])
MIXED = eq.Problem([eq.Exponential(2), eq.Empirical([0.0, 1.0, 4.0])])


def numbers(sim: Simulation) -> dict[str, Any]:
    return sim.to_dict() | {"batches": sim._batches.tolist()}


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
    curve = eq.simulate(PAIR, strategies, [80, 20, 40, 20], runs=10)
    assert isinstance(curve, Curve)
    assert [(sim.strategy.name, sim.budget) for sim in curve] == [
        (name, n) for name in ("uniform", "b-as", "oracle") for n in (20, 40, 80)
    ]
    assert len(curve) == 9
    assert isinstance(curve[2:4], Curve)
    assert [sim.budget for sim in curve[2:4]] == [80, 20]
    assert curve[-1].strategy.name == "oracle"
    for few in (eq.simulate(PAIR, ["uniform"], 20, runs=2), eq.simulate(PAIR, "uniform", [20], runs=2)):
        assert isinstance(few, Curve)
        assert len(few) == 1


def test_a_curve_is_its_simulations_one_by_one() -> None:
    """Also where budgets share their runs (auto) and where they do not (ch-as)."""
    curve = eq.simulate(MIXED, ["auto", "ch-as"], [40, 90], runs=70, seed=5)
    for sim in curve:
        assert numbers(sim) == numbers(eq.simulate(MIXED, sim.strategy, sim.budget, runs=70, seed=5))


def test_rows_and_frames() -> None:
    curve = eq.simulate(PAIR, ["uniform", eq.strategies.BAS(exploration=0.5)], [20, 40], runs=10)
    frame = curve.to_frame()
    assert frame["strategy"].tolist() == ["uniform", "uniform", "b-as (exploration=0.5)", "b-as (exploration=0.5)"]
    assert frame["n"].tolist() == [20, 40, 20, 40]
    assert frame["rescaled_regret"].tolist() == [sim.rescaled_regret for sim in curve]
    assert json.loads(curve.to_json())[3]["excess"] == curve[3].excess
    assert "n = 40: rescaled regret" in repr(curve)


# ---- numbers


def test_uniform_and_oracle_are_exact() -> None:
    """On N(0,4), N(0,1) at n = 100: uniform has 4/50 where 5/100 is best, 60% too much; the oracle nothing."""
    uniform, oracle = eq.simulate(PAIR, ["uniform", "oracle"], 100, runs=2)
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
    ends = cpu.simulate(cpu.Plan(MIXED, sim.strategy, (30,), sim.strategy.params(30, 2, None), 1), 0, runs)
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
    return Simulation(problem, eq.strategies.Uniform(), 10, runs, 1, ("naive",) * K, Sums(runs, mean, m2), mean[None])


def test_the_bias_of_a_largest() -> None:
    """Two equal: se/sqrt(pi). Far apart: none. Three equal: 3/(2 sqrt(pi)) se. Never negative."""
    assert simulated([1, 1], [0.1, 0.1]).regret_bias == pytest.approx(0.1 / math.sqrt(math.pi), rel=1e-3)
    assert simulated([1, 1], [0.1, 0.0]).regret_bias == pytest.approx(0.1 / math.sqrt(2 * math.pi), rel=0.02)
    assert simulated([1, 5], [0.1, 0.1]).regret_bias == 0
    assert simulated([1, 1.9], [0.1, 0.1]).regret_bias == pytest.approx(0, abs=1e-6)
    three = eq.Problem([eq.Gaussian()] * 3)
    assert simulated([1, 1, 1], [0.1] * 3, three).regret_bias == pytest.approx(0.15 / math.sqrt(math.pi), rel=1e-3)
    assert simulated([1], [0.1], eq.Problem([eq.Gaussian()])).regret_bias == 0
    assert simulated([1, 0.95], [0.1, 0.1]).regret_bias < simulated([1, 1], [0.1, 0.1]).regret_bias


# ---- comparisons


@pytest.mark.parametrize("runs", [2, 100, 1025, 2100, 10_000, 70_000])
def test_a_difference_is_taken_pair_by_pair(runs: int) -> None:
    """Its error is near that of the differences of single runs, for any number of runs."""
    one, other = eq.simulate(PAIR, ["gafs-max", "uniform"], 20, runs=runs, estimator="naive")
    difference = one - other
    assert difference.losses == pytest.approx(one.losses - other.losses)
    assert difference.regret == pytest.approx(one.regret - other.regret)
    assert np.isfinite(difference.loss_errors).all()
    if runs >= 100:
        pairs = []
        for sim in (one, other):
            plan = cpu.Plan(PAIR, sim.strategy, (20,), sim.strategy.params(20, 2, None), 1)
            pairs.append((cpu.simulate(plan, 0, runs).means[0] - PAIR.means[:, None]) ** 2)
        exact = (pairs[0] - pairs[1]).std(axis=1, ddof=1) / math.sqrt(runs)
        # An error from 63 degrees of freedom is itself unsure by a tenth.
        assert difference.loss_errors == pytest.approx(exact, rel=0.45)
        assert difference.regret_error > 0
    assert "gafs-max less uniform" in repr(difference)


def test_a_difference_is_more_precise_than_its_parts() -> None:
    """The same samples: what two B-AS that differ little lose in common goes away."""
    one, other = eq.simulate(
        PAIR, [eq.strategies.BAS(exploration=a) for a in (0.5, 0.51)], 500, runs=6400, estimator="naive"
    )
    assert (one - other).regret_error < 0.2 * one.regret_error


def test_what_cannot_be_compared() -> None:
    sim = eq.simulate(PAIR, "uniform", 20, runs=64)
    for other, name in (
        (eq.simulate(MIXED, "uniform", 20, runs=64), "problem"),
        (eq.simulate(PAIR, "uniform", 20, runs=64, seed=2), "seed is 1 here and 2 there"),
        (eq.simulate(PAIR, "uniform", 20, runs=65), "runs is 64 here and 65 there"),
    ):
        with pytest.raises(ValueError, match=f"on the same samples; {name}"):
            sim - other
    with pytest.raises(TypeError):
        sim - 1.0


# ---- files


def test_saved_and_loaded(tmp_path: Path) -> None:
    """The same numbers, and differences can still be taken."""
    curve = eq.simulate(
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


@pytest.mark.parametrize("content", [b"", b"[1, 2]", b'{"format": "another"}', b"\xff\xfe\x00", b"plain text"])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"other.json is not a file that Curve.save wrote"):
        Curve.load(path)


# ---- progress


def test_progress() -> None:
    """Runs done and runs in all, never falling, to the end; the same numbers with and without."""
    told: list[tuple[int, int]] = []
    curve = eq.simulate(PAIR, ["uniform", "ch-as"], [20, 40], runs=3000, progress=lambda *now: told.append(now))
    done, totals = zip(*told, strict=True)
    assert set(totals) == {9000}  # both budgets of uniform are one set of runs
    assert list(done) == sorted(set(done))
    assert told[-1] == (9000, 9000)
    plain = eq.simulate(PAIR, ["uniform", "ch-as"], [20, 40], runs=3000)
    assert curve.to_json() == plain.to_json()


# ---- what is refused


@pytest.mark.parametrize(
    ("changed", "kind", "message"),
    [
        ({"problem": [eq.Gaussian()]}, TypeError, r"is not a problem; eq.Problem\("),
        ({"problem": None}, TypeError, "None is not a problem"),
        ({"strategy": "bas"}, ValueError, "there is no strategy 'bas'; did you mean 'b-as'"),
        ({"strategy": eq.strategies.BAS}, TypeError, r"BAS is a class; BAS\(\) is a strategy"),
        ({"strategy": ["auto", 3]}, TypeError, "3 is not a strategy"),
        ({"strategy": []}, ValueError, "no strategy or no budget"),
        ({"strategy": "b-as"}, ValueError, "b-as: its exploration is in the unit of the samples"),
        ({"budget": []}, ValueError, "no strategy or no budget"),
        ({"budget": 3}, ValueError, "budget=3 is too small: auto starts with 4 samples of 2 arms"),
        ({"budget": [100, 3]}, ValueError, "budget=3 is too small"),
        ({"budget": 0}, ValueError, "budget=0 will not do"),
        ({"budget": 10.5}, TypeError, "budget=10.5 will not do; it must be a whole number"),
        ({"budget": "many"}, TypeError, "budget='m"),
        ({"runs": 1}, ValueError, "runs=1 will not do; it must be at least 2"),
        ({"runs": True}, TypeError, "runs=True will not do"),
        ({"seed": -1}, ValueError, "seed=-1 will not do"),
        ({"seed": 2**64}, ValueError, r"it must be below 2\^64"),
        ({"seed": 0.5}, TypeError, "seed=0.5 will not do"),
        ({"estimator": "best"}, ValueError, "estimator='best' will not do; it must be 'auto', 'naive'"),
        ({"engine": "gpu"}, ValueError, "engine='gpu' will not do"),
        ({"engine": None}, ValueError, "engine=None will not do"),
        ({"threads": 0}, ValueError, "threads=0 will not do"),
        ({"support": (1, 0)}, ValueError, r"support=\(1, 0\) will not do"),
        ({"strategy": eq.strategies.Oracle([1.0])}, ValueError, "1 variances were given for 2 arms"),
    ],
)
def test_wrong_input_is_told_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], kind: type[Exception], message: str
) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("it ran")

    monkeypatch.setattr(simulation, "_collect", never)
    monkeypatch.setattr(cpu, "kernel", never)
    given: dict[str, Any] = {"problem": PAIR, "strategy": "auto", "budget": 100, "runs": 10} | changed
    with pytest.raises(kind, match=message):
        eq.simulate(**given)


def test_a_law_of_ones_own_is_refused() -> None:
    class Odd(eq.Gaussian):
        """A law that the streams do not know."""

    class Alien:
        mean, variance, third, fourth = 0.0, 1.0, 0.0, 3.0

    with pytest.raises(TypeError, match=r"is not a law that can be simulated; eq.Empirical\(values\)"):
        eq.simulate(eq.Problem([Alien()]), "uniform", 10, runs=2)  # type: ignore[list-item]
    assert eq.simulate(eq.Problem([Odd(0, 1)]), "uniform", 10, runs=2).mean_pulls.tolist() == [10]


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
    auto, uniform = eq.simulate(problem, ["auto", "uniform"], 20_000, runs=20)
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


def test_a_strategy_that_gives_no_variance_is_refused() -> None:
    """A study refuses it at the sample where it happens, a simulation before it starts."""

    class Broken(eq.strategies.Strategy):
        @staticmethod
        def variance(
            count: float, mean: float, m2: float, pooled: float, own: float, params: tuple[float, ...]
        ) -> float:
            return m2 / count - 1e9

    with pytest.raises(eq.EquipoiseError, match=r"Broken.* gave -.* as the variance of an arm"):
        eq.simulate(eq.Problem([eq.Gaussian(), eq.Gaussian()]), Broken(), 20, runs=10)
