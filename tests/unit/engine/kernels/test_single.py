"""One run at a time, with late answers and with prices: the kernel does what a study does, and what the rule says."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.engine import cpu, streams
from equipoise.engine.cpu import Tuning
from equipoise.engine.setup import Ends, Setup
from equipoise.problem import Objective
from equipoise.strategies import Support
from tests.unit.engine.replay import replay
from tests.unit.engine.test_cpu import STRATEGIES, Moments, assert_equal, mixed, moments_at, moments_of, plan

SCANNED, HEAPED = Tuning(scanned=10**9), Tuning(scanned=0)


def study(given: Setup, run: int, support: Support = None) -> Moments:
    """Where a study ends that keeps `in_flight` pulls out and is told the samples of this run, the oldest first."""
    budget, arms, objective = given.checkpoints[-1], len(given.problem), given.objective
    strategy = given.strategy
    if "variance" in strategy.own:
        strategy = eq.strategies.Oracle(given.problem.variances)
    told = eq.Study(
        arms,
        budget=budget,
        strategy=strategy,
        support=support,
        objective=objective.p,
        weights=objective.weights,
        costs=objective.costs,
    )
    most = int(budget / objective.cost(arms).min()) + 1
    values = [streams.samples(given.problem, given.seed, run, k, most).tolist() for k in range(arms)]
    asked = [0] * arms
    waiting: deque[tuple[Any, float]] = deque()
    while True:
        while len(waiting) < given.in_flight and not told.done:
            ticket = told.ask()
            k: Any = ticket.arm
            waiting.append((ticket, values[k][asked[k]]))
            asked[k] += 1
        if not waiting:
            break
        told.tell(*waiting.popleft())
    found = moments_of(told)
    assert found[0].tolist() == asked
    return found


def assert_ends(ends: Ends, column: int, expected: Moments) -> None:
    for part, wanted in zip(moments_at(ends, column), expected, strict=True):
        np.testing.assert_array_equal(part, wanted)


# ---- late answers


def slowly(*values: Any) -> Any:
    """Parameters for `make test-slow`: they compile kernels of their own."""
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize("name", [name if name in ("auto", "b-as", "icy") else slowly(name) for name in STRATEGIES])
def test_the_kernel_is_the_study(name: str) -> None:
    """Pulls, means and M2 with any number in flight, on arms of every law, also with more in flight than the budget."""
    strategy = STRATEGIES[name]
    for arms, in_flight in ((5, 2), (5, 64), (11, 7), (11, 10_000)):
        given = replace(plan(strategy, mixed(arms), 16 * arms), in_flight=in_flight)
        ends = cpu.simulate(given, 70, 3, SCANNED)
        for run in (70, 72):
            assert_ends(ends, run - 70, study(given, run))


@pytest.mark.parametrize("name", ["auto", slowly("icy")])
def test_heaps_are_scans(name: str) -> None:
    for arms in (1, 2, 3, 33):
        given = replace(plan(STRATEGIES[name], mixed(arms), 12 * arms), in_flight=9)
        assert_equal(cpu.simulate(given, 5, 20, HEAPED), cpu.simulate(given, 5, 20, SCANNED))
    assert_ends(cpu.simulate(given, 8, 1), 0, study(given, 8))


def test_very_many_arms() -> None:
    given = replace(plan(STRATEGIES["auto"], mixed(400), 3000), in_flight=64)
    assert_ends(cpu.simulate(given, 1, 1), 0, study(given, 1))


def test_binary_arms() -> None:
    problem = eq.Problem([eq.Bernoulli(0.5), eq.Bernoulli(0.02)])
    given = replace(plan(STRATEGIES["auto"], problem, 200, support="binary"), in_flight=16)
    assert_ends(cpu.simulate(given, 3, 1), 0, study(given, 3, support="binary"))


@pytest.mark.parametrize("name", ["auto", slowly("icy")])
def test_one_in_flight_is_the_usual(name: str) -> None:
    """At equal prices of 1 the kernel gives what the lanes do."""
    for arms in (2, 20):
        usual = plan(STRATEGIES[name], mixed(arms), 15 * arms)
        priced = replace(usual, objective=Objective(costs=(1.0,) * arms))
        assert_equal(cpu.simulate(usual, 2, 10), cpu.simulate(priced, 2, 10))


def test_each_budget_ends_with_all_answers_in() -> None:
    points = (20, 57, 58, 100)
    along = cpu.simulate(replace(plan(STRATEGIES["auto"], mixed(3), *points), in_flight=16), 4, 5)
    for c, n in enumerate(points):
        alone = cpu.simulate(replace(plan(STRATEGIES["auto"], mixed(3), n), in_flight=16), 4, 5)
        np.testing.assert_array_equal(along.counts[c], alone.counts[0])
        np.testing.assert_array_equal(along.m2s[c], alone.m2s[0])
        assert (along.counts[c].sum(axis=0) == n).all()


# ---- prices


@pytest.mark.parametrize(
    ("name", "tuning"),
    [
        ("auto", SCANNED),
        ("icy", SCANNED),
        slowly("nosy", HEAPED),
    ],
)
def test_money_by_the_rule(name: str, tuning: Tuning) -> None:
    """Costs, weights and norms, one and more in flight, against the definition in plain Python and a study."""
    strategy = STRATEGIES[name]
    arms = 6
    costs = (1.0, 0.1, 2.5, 7.0, 0.3, 1.7)
    weights = (1.0, 0.0, 3.0, 0.5, 2.0, 1.0)
    for objective, in_flight in (
        (Objective(costs=costs), 1),
        (Objective(1.0, None, costs), 1),
        (Objective(2.0, weights, costs), 5),
    ):
        given = Setup(mixed(arms), strategy, (120.0,), strategy.params(120, arms, None), 3, in_flight, objective)
        ends = cpu.simulate(given, 0, 12, tuning)
        spent = np.array(costs) @ ends.counts[0]
        assert (spent <= 120 * (1 + 1e-9)).all()
        # Not even the cheapest arm could be pulled once more.
        assert (spent > 120 - 0.1).all()
        for run in range(0, 12, 3):
            for part, wanted in zip((ends.counts, ends.means, ends.m2s), replay(given, run), strict=True):
                np.testing.assert_array_equal(part[-1, :, run], wanted)
            assert_ends(ends, run, study(given, run))


def test_ten_at_a_tenth_cost_one() -> None:
    """
    0.1 ten times is not 1 in floating point, and is affordable all the same; eleven times is not.

    A study and a simulation agree, down to a budget that is a rounding error short of another sample.
    """
    for cost, budget, pulls in ((0.1, 1.0, 10), (0.1, 0.3, 3), (1e-6, 0.7, 700_000), (3.0, 10.0, 3)):
        objective = Objective(costs=(cost,))
        given = Setup(mixed(1), STRATEGIES["uniform"], (budget,), (), 1, 1, objective)
        assert cpu.simulate(given, 0, 1).counts.tolist() == [[[pulls]]]
    costs = (0.1, 0.7)
    for short in (0.0, 1e-12, 5e-11, 2e-10, 1e-7, 1e-6):
        given = Setup(mixed(2), STRATEGIES["uniform"], (8.0 - short,), (), 1, 1, Objective(costs=costs))
        assert_ends(cpu.simulate(given, 0, 1), 0, study(given, 0))
