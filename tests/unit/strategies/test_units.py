"""Strategies that pool in the unit of the objective: an own number called "weight", in studies and simulations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import equipoise as eq
from equipoise.engine import cpu
from equipoise.engine.cpu import Tuning
from equipoise.engine.setup import Setup
from equipoise.problem import Objective
from equipoise.problem.objective import objective
from equipoise.store import Header, Log, Turn, differences, replay
from equipoise.strategies import Numbers, Strategy
from equipoise.testing import StrategyLaws
from tests.unit.engine.replay import replay as by_definition


@eq.strategies.register("test-weighing")
@dataclass(frozen=True)
class Weighing(Strategy):
    """Shrinks toward the pooled variance in the unit of the objective, with ten pseudo-observations."""

    own = ("kept", "weight")
    sums = ("variance", "arms")
    pooled = ("mean",)

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        typical = pooled[0] / own[1] if own[1] > 0 else 0.0
        return (m2 + 10 * typical) / (count + 9)

    @staticmethod
    def keep(
        sample: float, count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers
    ) -> Numbers:
        return (m2, own[1])

    @staticmethod
    def share(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> Numbers:
        return (own[1] * own[0] / (count - 1), 1.0 if own[1] > 0 else 0.0)

    @staticmethod
    def pool(sums: Numbers, arms: float, pooled: Numbers, params: Numbers) -> Numbers:
        return (sums[0] / max(sums[1], 1.0),)


class TestWeighing(StrategyLaws):
    """The laws compare a study with weights to a scan."""

    strategy = Weighing()


def own_weights(study: eq.Study) -> list[float]:
    found: list[float] = study.ledger._state.own[:, 1].tolist()
    return found


def test_units() -> None:
    """A power of two is divided out, so that equal weights are no weights; strata have one unit."""
    assert Objective().units(3).tolist() == [1, 1, 1]
    assert Objective(weights=(7.0, 7.0)).units(2).tolist() == [1, 1]
    assert Objective(2.0, (12.0, 3.0, 0.0)).units(3).tolist() == [1.5, 0.375, 0]
    strata = objective(["a", "b"], eq.Stratified([0.9, 0.1]))
    assert strata.units(2).tolist() == [1, 1]
    assert strata.scales(2).tolist() != [1, 1]


def test_a_study_fills_weights_in() -> None:
    study = eq.Study(["a", "b", "c"], strategy=Weighing(), weights={"c": 0, "a": 4, "b": 1})
    assert own_weights(study) == [1, 0.25, 0]
    for _ in range(20):
        study.tell(study.ask(), 1.0)
    assert own_weights(study) == [1, 0.25, 0]
    study.set_weights([1, 1, 2])
    assert own_weights(study) == [0.5, 0.5, 1]
    study.set_weights(None)
    assert own_weights(study) == [1, 1, 1]


def test_what_is_pooled_follows_new_weights() -> None:
    """Variances 2 and 8: their mean is 5, and with weights of 1 and 1/4 it is 2 at once."""
    study = eq.Study(2, strategy=Weighing())
    for arm, values in enumerate(([0.0, 2.0], [0.0, 4.0])):
        for value in values:
            study.tell(arm=arm, value=value)
    assert study.ledger._state.pooled.tolist() == [5.0]
    study.set_weights([1, 0.25])
    assert study.ledger._state.pooled.tolist() == [2.0]


def test_arms_of_other_units_are_sampled_evenly() -> None:
    """Deviations 1 and 100 with weights that make up for it, and 16 samples in: pooled in one unit, they are alike."""

    def counts(unit: float) -> list[float]:
        rng = np.random.default_rng(1)
        study = eq.Study(2, 60, Weighing(), weights=[1, unit**-2])
        while not study.done:
            ticket = study.ask()
            study.tell(ticket, float(rng.normal()) * (unit if ticket.arm else 1.0))
        return list(study.result().counts.values())

    # Powers of two round nothing.
    assert counts(1.0) == counts(64.0) == counts(2.0**-9)


STRATA = Objective(1.0, (0.16, 0.09, 0.04, 0.01), shares=(0.4, 0.3, 0.2, 0.1))


@pytest.mark.parametrize(
    "goal",
    [Objective(weights=(1.0, 5.0, 0.0, 0.3)), pytest.param(STRATA, marks=pytest.mark.slow)],
    ids=["weights", "strata"],
)
def test_simulations_fill_weights_in(goal: Objective) -> None:
    """Every kernel, against the definition in plain Python."""
    problem = eq.Problem([eq.Gaussian(0, 4), eq.Exponential(2), eq.Rademacher(), eq.Laplace()])
    given = Setup(problem, Weighing(), (90,), (), 3, objective=goal)
    for tuning in (Tuning(few=9), Tuning(few=0), Tuning(few=0, many=0), Tuning(few=0, many=0, scanned=0)):
        ends = cpu.simulate(given, 0, 65, tuning)
        for run in (0, 64):
            for part, wanted in zip((ends.counts, ends.means, ends.m2s), by_definition(given, run), strict=True):
                np.testing.assert_array_equal(part[-1, :, run], wanted)


@pytest.mark.parametrize("options", [{"objective": eq.Stratified([0.7, 0.3])}, {"weights": [1, 9]}])
def test_a_log_keeps_units(options: dict[str, object], tmp_path: Path) -> None:
    """A study folded from its log has the same own and pooled numbers, to the bit."""
    where = str(tmp_path / "study.db")
    rng = np.random.default_rng(2)

    def work(turn: Turn) -> None:
        ids = np.array(turn.ask(6))
        turn.tell_many(ids, rng.normal(0, 3, 6), np.zeros(6))

    with Log(where, Header(("a", "b"), Weighing(), None, 100, 1, options)) as log:
        for _ in range(5):
            log.turn(work)
        live = log.study
    folded = replay(where).study
    assert differences(live, folded) == []
    assert own_weights(folded) == ([1, 1] if "objective" in options else [0.125, 1.125])
    assert [ticket.arm for ticket in folded.ask(9)] == [ticket.arm for ticket in live.ask(9)]
