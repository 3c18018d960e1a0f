"""Replays of a study: when there is one, that it is lazy and always the same, and the formulas in its place."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from benchmarks.inference import same
from benchmarks.inference_tables import Row
from equipoise.engine import cpu, streams
from equipoise.inference import corrections, replay, stop_corrections
from equipoise.inference.errors import errors
from equipoise.inference.replay import adaptivity
from equipoise.inference.stop_replay import Target, stops
from equipoise.inference.target_weights import weights
from equipoise.intervals import asymptotic
from equipoise.intervals.stop_rule import StopRule
from equipoise.ledger import Goal
from equipoise.ledger.goal import precision
from equipoise.simulation.simulator import setups
from tests.unit.ledger.moments import of_populations, result_of_moments


def study(arms: int = 3, n: int = 90, seed: int = 1, **options: Any) -> eq.Study:
    """A study of exponential arms that has spent its budget."""
    rng = np.random.default_rng(seed)
    found = eq.Study(arms, budget=n, **options)
    while not found.done:
        found.tell(found.ask(), float(rng.exponential()))
    return found


# ---- what a result says


def test_a_result_accounts_for_how_its_samples_were_chosen() -> None:
    result = study().result()
    found = adaptivity(result.known)
    assert found.how == "replay"
    assert result.plain_errors.array == pytest.approx(np.sqrt(result.losses.array))
    assert result.standard_errors.array == pytest.approx(np.sqrt(result.losses.array * found.inflations))
    assert (result.biases.array == found.biases).all()
    assert result.corrected_means.array == pytest.approx(result.means.array - result.biases.array)
    # Exponential arms: the mean is too low, and its error larger than s/sqrt(T).
    assert found.inflations.mean() > 1.05
    assert found.biases.mean() < -0.005
    known = result.to_dict()
    assert known["biases"] == dict(result.biases)
    assert known["corrected_means"] == dict(result.corrected_means)
    assert known["plain_errors"] == dict(result.plain_errors)
    frame: Any = result.to_frame("pandas")
    assert frame["bias"].tolist() == result.biases.array.tolist()


def test_a_combined_mean_is_that_of_the_corrected_means() -> None:
    shares = [0.5, 0.3, 0.2]
    result = study(objective=eq.Stratified(shares)).result()
    found = result.combine()
    assert adaptivity(result.known).how == "replay"
    assert found.value == pytest.approx(np.dot(shares, result.corrected_means.array))
    assert found.error == pytest.approx(math.sqrt(np.dot(np.square(shares), result.standard_errors.array**2)))
    assert found.error > math.sqrt(result.loss)


# ---- always the same, and only when it is needed


def test_the_same_result_has_the_same_numbers() -> None:
    one, other = study().result(), study().result()
    assert (one.standard_errors.array == other.standard_errors.array).all()
    assert (one.biases.array == other.biases.array).all()
    assert (study(seed=2).result().biases.array != one.biases.array).any()


def test_later_samples_do_not_change_it() -> None:
    found, twin = study(), study()
    before, same = found.result(), twin.result()
    found.set_budget(120)
    while not found.done:
        found.tell(found.ask(), 100.0)
    assert (before.standard_errors.array == same.standard_errors.array).all()


def test_it_is_replayed_once_and_only_if_somebody_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    replayed = replay.replayed

    def counted(*given: Any) -> corrections.Adaptivity:
        calls.append(1)
        return replayed(*given)

    monkeypatch.setattr(replay, "replayed", counted)
    found = study()
    result = found.result(goal=Goal(precision=precision("10%", 0.95, found.arms)))
    # What is judged at every look.
    assert result.precision is not None
    weights(result.known)
    result = found.result()
    _ = result.means, result.plain_errors, result.losses, result.worst, result.loss, result.intervals()
    assert not calls
    _ = result.standard_errors, result.biases, result.corrected_means, result.certificate, repr(result)
    assert len(calls) == 1


def test_a_result_that_was_pickled_has_the_same_numbers() -> None:
    result, twin = study().result(), study().result()
    sent = pickle.loads(pickle.dumps(result))
    assert (sent.standard_errors.array == twin.standard_errors.array).all()
    assert adaptivity(sent.known).how == "replay"


# ---- where there is nothing to replay


def test_what_did_not_depend_on_the_samples_needs_no_correction() -> None:
    elsewhere = eq.Study(["a", "b"])
    for x in (1.0, 2.0, 7.0):
        elsewhere.tell(arm="a", value=x)
    elsewhere.tell_moments(arm="b", count=50, mean=0.3, m2=1.9)
    for result in (
        study(strategy="uniform").result(),
        study(arms=1).result(),
        elsewhere.result(),
        result_of_moments([10, 20], [1.0, 4.0]),
        eq.Study(2, budget=10).result(),
    ):
        assert adaptivity(result.known).how == "not needed"
        assert result.standard_errors.array == pytest.approx(result.plain_errors.array, nan_ok=True)
        assert result.corrected_means.array == pytest.approx(result.means.array, nan_ok=True)


def by_hand(result: eq.Result, power: float, rest: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    assert result.known.snapshot.evidence is not None
    skewness, T = result.known.snapshot.evidence.skewness, result.counts.array
    c = power * rest * (3.5 + (1.5 + 4.5 * power) * np.maximum(skewness**2 - 6 / T, 0))
    return 1 + c / (T + c), -power * rest * skewness * np.sqrt(result.variances.array) / T


def test_formulas_take_over_where_a_study_cannot_be_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = study()
    closed.retire(0)
    result = closed.result()
    share = 1 - result.counts.array / 90
    inflations, biases = by_hand(result, 1.0, share)
    assert adaptivity(result.known).how == "formula"
    assert adaptivity(result.known).inflations == pytest.approx(inflations)
    assert adaptivity(result.known).biases == pytest.approx(biases)
    # Of a finite population, only what is not sampled can be off.
    sizes = np.array([50, 60, 1e9])
    some = of_populations(study().result(), sizes)
    inflations, biases = by_hand(some, 1.0, share * (1 - result.counts.array / sizes))
    assert adaptivity(some.known).inflations == pytest.approx(inflations, rel=0.01)
    assert adaptivity(some.known).biases == pytest.approx(biases, rel=0.05)
    whole = of_populations(study().result(), result.counts.array)
    assert not whole.standard_errors.array.any()
    assert not whole.biases.array.any()
    # Very many samples, strata, and a share of the money.
    monkeypatch.setattr(replay, "MOST_SAMPLES", 50)
    paid = study(objective=1, costs=[1, 2, 1]).result()
    spent = np.array([1, 2, 1]) * paid.counts.array
    inflations, biases = by_hand(paid, 0.5, 1 - spent / spent.sum())
    assert adaptivity(paid.known).how == "formula"
    assert adaptivity(paid.known).inflations == pytest.approx(inflations)
    assert adaptivity(paid.known).biases == pytest.approx(biases)


def test_an_arm_that_stops_at_a_precision_is_replayed_alone() -> None:
    for options in ({"strategy": "uniform"}, {"arms": 1}, {}):
        found = study(n=300, **options)
        half = 1.001 * float(
            found.result(goal=Goal(precision=precision(9.0, 0.95, found.arms))).intervals().margins.max()
        )
        result = found.result(goal=Goal(precision=precision(half, 0.95, found.arms)))
        assert adaptivity(result.known).how == "replay"
        # Twenty thousand stops of the same law; a replay has some hundreds, and its standard error is below 0.05.
        evidence = result.known.snapshot.evidence
        assert evidence is not None
        (own, *_) = evidence.samples() or []
        rule = StopRule(result.known.sequences, 0.05 / len(result.arms))
        many = stops(own, Target(half), rule, 20_000, 1).against(own)
        assert adaptivity(result.known).inflations[0] == pytest.approx(many.inflation, abs=0.25)
        assert adaptivity(result.known).biases[0] == pytest.approx(
            many.bias, abs=0.3 * abs(many.bias) + 0.02 * own.std()
        )
        again = found.result(goal=Goal(precision=precision(half, 0.95, found.arms)))
        assert (adaptivity(again.known).inflations == adaptivity(result.known).inflations).all()


def test_the_formula_of_an_arm_that_stops_at_a_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_corrections, "MOST_STOPPED", 0)
    for options in ({"strategy": "uniform"}, {"arms": 1}):
        found = study(n=300, **options)
        fixed = found.result(goal=Goal(precision=precision(100.0, 0.95, found.arms)))
        inflations, biases = by_hand(fixed, 1.0, np.ones(len(found.arms)))
        assert adaptivity(fixed.known).inflations == pytest.approx(inflations)
        assert adaptivity(fixed.known).biases == pytest.approx(biases)
        wide = found.result(goal=Goal(precision=precision(100.0, 0.95, found.arms, "anytime")))
        # The samples that a width takes grow with s² to the power -1/slope, by the slope of log r² in log T.
        evidence, t = wide.known.snapshot.evidence, wide.counts.array
        assert evidence is not None
        rho2, alpha = evidence.intervals("asymptotic").kernel.settings[asymptotic.RHO2], 0.05 / len(t)
        squared = [math.log(asymptotic.radius(near * t[0], rho2, alpha)) * 2 for near in (0.999, 1.001)]
        power = -math.log(1.001 / 0.999) / (squared[1] - squared[0])
        assert 0.5 < power < 1.2
        inflations, biases = by_hand(wide, power, np.ones(len(found.arms)))
        assert adaptivity(wide.known).how == "formula"
        assert adaptivity(wide.known).inflations == pytest.approx(inflations, rel=1e-4)
        assert adaptivity(wide.known).biases == pytest.approx(biases, rel=1e-4)
        # Not reached, so that nothing was stopped.
        narrow = found.result(goal=Goal(precision=precision(1e-6, 0.95, found.arms)))
        assert (adaptivity(narrow.known).inflations == 1).all()


def test_too_few_samples_are_not_replayed() -> None:
    early = eq.Study(3, budget=90)
    for x in (1.0, 4.0, 2.0, 0.5):
        early.tell(early.ask(), x)
    result = early.result()
    assert adaptivity(result.known).how == "formula"
    assert np.isnan(result.standard_errors.array).sum() == 2
    assert np.isnan(result.biases.array).sum() == 2
    assert np.isfinite(result.corrected_means.array).all()


def test_arms_that_never_vary_are_replayed_too() -> None:
    found = eq.Study(2, budget=60)
    rng = np.random.default_rng(3)
    while not found.done:
        ticket = found.ask()
        found.tell(ticket, 5.0 if ticket.arm == 0 else float(rng.normal()))
    result = found.result()
    assert adaptivity(result.known).how == "replay"
    assert errors(result.known)[0] == 0
    assert result.biases[0] == 0
    assert result.standard_errors[1] > 0


@pytest.mark.parametrize("strategy", ["gafs-max", "two-stage", "greedy"])
def test_every_strategy_can_be_replayed(strategy: str) -> None:
    found = study(strategy=strategy).result()
    assert adaptivity(found.known).how == "replay"
    assert np.isfinite(found.standard_errors.array).all()
    assert np.isfinite(found.biases.array).all()


@pytest.mark.parametrize("law", [eq.Exponential(1), eq.Bernoulli(0.3)])
def test_the_samples_of_a_run_are_those_that_the_simulator_saw(law: eq.Law) -> None:
    problem = eq.Problem([law, eq.Bernoulli(0.9), eq.Empirical([0, 1, 5])])
    setup = setups(problem, eq.strategies.resolve("auto"), [60], None, 7)[0]
    ends = cpu.simulate(setup, 0, 3)
    for run in range(3):
        own = streams.samples_of_run(setup.problem, 7, run, ends.counts[0, :, run])
        assert [len(each) for each in own] == ends.counts[0, :, run].tolist()
        assert [each.mean() for each in own] == pytest.approx(ends.means[0, :, run])


@pytest.mark.parametrize(
    "row",
    [
        Row("", "exponential", 3, 30),
        Row("", "binary 0.1", 3, 30),
        Row("", "Gaussian", 3, 30, "b-as", "sum"),
        Row("", "log-normal", 4, 20, "auto", "unequal strata", costs=True),
    ],
    ids=lambda row: row.name,
)
def test_a_simulated_study_is_replayed_as_a_real_one_is(row: Row) -> None:
    """What benchmarks/inference.py rests on."""
    assert same(row)


@pytest.mark.parametrize(("strategy", "least", "most"), [("auto", 1.0, 1.03), (eq.strategies.BAS(30.0), 1.2, 2.0)])
def test_the_price_of_not_knowing_the_variances(strategy: Any, least: float, most: float) -> None:
    """The loss over that of the best allocation, next to that of 4,000 simulated runs with the true laws."""
    rng = np.random.default_rng(4)
    known = eq.Study(2, budget=600, strategy=strategy)
    while not known.done:
        ticket = known.ask()
        known.tell(ticket, rng.normal(0, 1 if ticket.arm == 0 else 3))
    found = adaptivity(known.result().known).price
    problem = eq.Problem([eq.Gaussian(0, 1), eq.Gaussian(0, 9)])
    right = eq.simulate(problem, strategy, budget=600, runs=4000, seed=1)
    assert least <= found < most
    assert found == pytest.approx(right.losses.max() / right.best, rel=0.06)
    assert math.isnan(adaptivity(eq.Study(2, budget=10).result().known).price)


def test_variances_too_small_to_be_squared_are_replayed() -> None:
    found, rng = eq.Study(3, budget=90), np.random.default_rng(1)
    while not found.done:
        ticket = found.ask()
        found.tell(ticket, float(rng.normal()) * (1e-90 if ticket.arm == 0 else 1.0))
    assert adaptivity(found.result().known).how == "replay"
    assert np.isfinite(adaptivity(found.result().known).inflations).all()
