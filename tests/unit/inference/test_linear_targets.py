"""A precision that is asked of sums of means: the combined mean of strata, and contrasts."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.inference import linear_targets as sums
from equipoise.inference.formulas import stopping_biases
from equipoise.inference.replay import adaptivity
from equipoise.inference.skewness import unfolded
from equipoise.inference.target_weights import weights
from equipoise.ledger import Goal
from equipoise.ledger.goal import Stopping, precision

SD = {"control": 1.0, "a": 2.0, "b": 3.0, "c": 1.0}
SHARES = {"control": 0.4, "a": 0.3, "b": 0.2, "c": 0.1}


def sample(arm: str, size: int, seed: Any) -> Any:
    return np.array([np.random.default_rng(each).normal(5, SD[arm]) for each in seed])


def estimate(wanted: Any, **options: Any) -> eq.Result:
    return eq.estimate(sample, precision=wanted, arms=list(SD), **{"seed": 1} | options)


def test_a_precision_of_strata_is_that_of_the_combined_mean() -> None:
    strata = eq.Stratified(SHARES)
    found = estimate(0.1, objective=strata)
    assert found.reached is True
    # Neyman: z² (Σ Wσ)²/h² is 1,110, and some percent more for variances that are not known.
    assert found.samples == pytest.approx(1110, rel=0.1)
    combined = found.combine()
    assert 0.09 < combined.high - combined.value <= 0.1
    assert repr(found).startswith("✓ The combined mean is known to ±0.1 (")
    assert "Combined mean: " in repr(found)
    assert "95% confidence interval, valid where width alone decides when to stop" in repr(found)
    assert adaptivity(found.known).how == "replay"
    anytime = estimate(0.1, objective=strata, interval="anytime")
    assert anytime.samples > 2 * found.samples
    short = estimate("1%", objective=strata, budget=200)
    assert repr(short).startswith("✗ The combined mean is still wider than ±1% of its value; ")
    assert short.samples_left == pytest.approx(1110 * 4 - 200, rel=0.3)
    # For each stratum by asking for it.
    each = estimate(dict.fromkeys(SD, 0.5), objective=strata)
    assert (each.intervals().margins <= 0.5).all()
    assert each.contrasts() == []


def test_contrasts_to_a_control() -> None:
    found = estimate(eq.Contrasts(0.3, to="control"))
    assert found.reached is True
    compared = found.compare(to="control")
    assert compared.kind == "fixed-width"
    assert (compared.half_widths <= 0.3).all()
    assert {each.words for each in found.contrasts()} == {"a - control", "b - control", "c - control"}
    assert compared["control", "a"].high == pytest.approx(-compared["a", "control"].low)
    assert found.compare(to="control", level=0.9).kind == found.compare().kind == "asymptotic"
    assert repr(found).startswith("✓ Every difference to control is known to ±0.3 (")
    assert "simultaneous over differences, valid where width alone decides" in repr(found)
    # The control serves every difference, and has more samples than c, which varies as much.
    assert found.counts["control"] > 2 * found.counts["c"]
    even = estimate(eq.Contrasts(0.3, to="control"), strategy="uniform")
    assert found.samples < 0.95 * even.samples


def test_allocation_of_contrasts_is_optimal() -> None:
    """For differences of K - 1 arms of one variance to a control, the control has sqrt(K - 1) times the samples."""
    study = eq.Study(10, objective=1)
    for k in range(10):
        study.tell_moments(k, 100, 0.0, 99.0)
    result = study.result(goal=Goal(precision=precision(eq.Contrasts(0.01, to=0), 0.95, study.arms)))
    found = weights(result.known)
    assert found is not None
    pulls = np.sqrt(found)
    assert pulls[0] / pulls[1:] == pytest.approx(3.0, rel=1e-3)
    # Of one contrast, samples go by |weight| times deviation; an arm that is in none has no weight.
    one = precision(eq.Contrasts(0.01, of=[{0: 1, 1: -0.5, 2: -0.5}]), 0.95, study.arms)
    found = weights(study.result(goal=Goal(precision=one)).known)
    assert found is not None
    assert np.sqrt(found[:4]) == pytest.approx([1, 0.5, 0.5, 0])


def test_an_arm_whose_samples_are_all_equal_is_not_left_alone() -> None:
    """Four equal samples: a fifth may be of the largest variance, which makes it 1/5 of that."""
    study = eq.Study(3, objective=1)
    for k in range(2):
        study.tell_moments(k, 100, 0.0, 99.0)
    study.tell_moments(2, 4, 0.0, 0.0)
    found = weights(study.result(goal=Goal(precision=precision(eq.Contrasts(0.01), 0.95, study.arms))).known)
    assert found == pytest.approx([1, 1, 1 / 5], rel=1e-4)


def test_an_arm_is_retired_with_its_last_contrast() -> None:
    found = estimate(eq.Contrasts(0.5, of=[{"a": 1, "c": -1}, {"b": 1, "c": -1}]))
    assert found.reached is True
    assert found.counts["control"] == 0
    short = estimate(eq.Contrasts(0.05), budget=400)
    assert short.reached is False
    assert repr(short).startswith("✗ 6 of 6 differences are still wider than ±0.05; ")
    assert "Least precise relative to its target: " in repr(short)


def test_contrasts_for_programs(tmp_path: Any) -> None:
    found = estimate(eq.Contrasts(0.5, to="control"), store=str(tmp_path / "study.db"))
    plain = json.loads(found.to_json())["contrasts"]
    assert [each["kind"] for each in plain] == ["fixed-width"] * 3
    assert plain[0]["weights"] == [["a", 1.0], ["control", -1.0]]
    again = estimate(eq.Contrasts(0.5, to="control"), store=str(tmp_path / "study.db"), seed=None)
    assert again.samples == found.samples
    finer = estimate(eq.Contrasts(0.4, to="control"), store=str(tmp_path / "study.db"), seed=None)
    assert finer.samples > found.samples


@pytest.mark.parametrize("support", ["binary", (0, 1)])
def test_contrasts_of_bounded_arms(support: Any) -> None:
    def coin(arm: str, size: int, seed: Any) -> Any:
        p = {"rare": 0.02, "even": 0.5, "often": 0.6}[arm]
        return np.array([float(np.random.default_rng(each).random() < p) for each in seed])

    found = eq.estimate(coin, precision=eq.Contrasts(0.1), arms=["rare", "even", "often"], support=support, seed=1)
    assert found.reached is True
    assert (found.compare().half_widths <= 0.1 + 1e-9).all()
    assert all(each.low >= -1 for each in found.contrasts())


def test_a_sum_of_unsampled_arms_is_not_reached() -> None:
    study = eq.Study(["a", "b"])
    result = study.result(goal=Goal(precision=precision(eq.Contrasts(9.0), 0.95, study.arms)))
    assert result.reached is False
    assert result.samples_left == math.inf
    assert weights(result.known) is None


def test_stopping_biases_the_means_of_skewed_strata() -> None:
    """By hand: -W² γ s³/T² over the squared error of the sum; and nothing where the width did not decide."""
    shares = {"a": 0.7, "b": 0.3}
    draws = {arm: np.random.default_rng(seed).exponential(size=2000) for seed, arm in enumerate(shares)}
    options: dict[str, Any] = {"objective": eq.Stratified(shares)}
    stopped = eq.estimate(draws, precision=0.15, **options)
    assert stopped.reached is True
    evidence, T, s2 = stopped.known.snapshot.evidence, stopped.counts.array, stopped.variances.array
    assert evidence is not None
    W = np.array([0.7, 0.3])
    by_hand = -(W**2) * evidence.skewness * s2**1.5 / T**2 / (W**2 * s2 / T).sum()
    assert stopping_biases(stopped.known, sums.stopping_shares(stopped.known)) == pytest.approx(by_hand)
    assert (by_hand < 0).all()
    # They are part of what is reported: the replay alone has a budget.
    alone = eq.estimate(draws, budget=stopped.samples, **options)
    assert not sums.stopping_shares(alone.known).any()
    assert (stopped.counts.array == alone.counts.array).all()
    assert stopped.biases.array == pytest.approx(alone.biases.array + by_hand)
    shares = W**2 * s2 / T / (W**2 * s2 / T).sum()
    c = shares * (3.5 + (1.5 + 4.5 * shares) * np.maximum(evidence.skewness**2 - 6 / T, 0))
    assert adaptivity(stopped.known).inflations == pytest.approx(adaptivity(alone.known).inflations * (1 + c / (T + c)))
    assert not sums.stopping_shares(eq.estimate(draws, precision=0.01, budget=200, **options).known).any()
    coins = {arm: (values > 1).astype(float) for arm, values in draws.items()}
    assert not sums.stopping_shares(eq.estimate(coins, precision=0.1, support="binary", **options).known).any()


@pytest.mark.parametrize("precise", [eq.Contrasts(0.4), eq.Contrasts(0.4, to="a")])
def test_stopping_biases_where_nothing_else_does(precise: eq.Contrasts) -> None:
    """`uniform` does not look at samples, but the stop does: -π γ s/T and 1 + c/(T + c), with the last sum's shares."""
    draws = {arm: np.random.default_rng(ord(arm)).exponential(size=2000) for arm in "abc"}
    found = eq.estimate(draws, precision=precise, strategy="uniform")
    assert found.reached is True
    evidence, T, s2 = found.known.snapshot.evidence, found.counts.array, found.variances.array
    assert evidence is not None
    nearest = max(found.contrasts(), key=lambda each: each.half_width)
    shares = sums.stopping_shares(found.known)
    errors = {arm: s2[k] / T[k] for k, arm in enumerate(found.arms)}
    for k, arm in enumerate(found.arms):
        if arm in nearest.weights:
            assert shares[k] == pytest.approx(errors[arm] / sum(errors[each] for each in nearest.weights))
    assert ((shares > 0) & (shares < 1)).all()
    assert found.biases.array == pytest.approx(-shares * unfolded(evidence.skewness, T) * np.sqrt(s2) / T)
    squared = np.maximum(evidence.skewness**2 - 6 / T, 0)
    c = shares * (3.5 + (1.5 + 4.5 * shares) * squared)
    assert adaptivity(found.known).inflations == pytest.approx(1 + c / (T + c))


def test_contrasts_that_were_asked_for_have_the_intervals_that_decided() -> None:
    """Of two kinds here, each of which is named; also where one of them is asked for by name, either way round."""
    rng = np.random.default_rng(2)
    draws = {"control": rng.normal(size=9000), "b": rng.normal(size=9000), "c": rng.lognormal(0, 1.2, 9000)}
    found = eq.estimate(draws, precision=eq.Contrasts(0.9, to="control"))
    decided = {tuple(each.weights): each for each in found.contrasts()}
    assert {each.kind for each in decided.values()} == {"fixed-width", "asymptotic"}
    compared = found.compare(to="control")
    for arm in "bc":
        each = decided[arm, "control"]
        assert found.difference(arm, "control") == each
        back = found.difference("control", arm)
        assert (back.value, back.low, back.high) == (-each.value, -each.high, -each.low)
        assert list(back.weights.items()) == [("control", 1.0), (arm, -1.0)]
        assert compared[arm, "control"].kind == back.kind == each.kind
        assert (compared[arm, "control"].low, compared[arm, "control"].high) == (each.low, each.high)
        assert each.words in repr(found)
    assert found.difference("b", "control", level=0.9).kind == "asymptotic"
    assert [line for line in compared.remarks() if "Pairs marked *: confidence sequences" in line]
    assert "Differences marked *: confidence sequences" in repr(found)
    for each in decided.values():
        assert (f"{each.words} *" in repr(found)) == (each.kind != "fixed-width")
    for each in compared:
        assert (f"{each.words} *" in repr(compared)) == (each.kind != "fixed-width")
    assert repr(decided["b", "control"]).count("(fixed width)") == (decided["b", "control"].kind == "fixed-width")


def test_the_combined_mean_has_the_interval_that_decided() -> None:
    rng = np.random.default_rng(1)
    draws = {arm: rng.normal(size=3000) for arm in "ab"}
    options: dict[str, Any] = {"objective": eq.Stratified([0.5, 0.5]), "precision": 0.2}
    kinds: dict[Stopping, str] = {"fixed-width": "fixed-width", "anytime": "asymptotic"}
    for interval, kind in kinds.items():
        found = eq.estimate(draws, interval=interval, **options)
        [decided] = found.contrasts()
        assert found.combined_kind == decided.kind == kind
        combined = found.combine()
        assert combined.high - combined.low >= decided.high - decided.low - 1e-12
        assert combined.low <= combined.value <= combined.high
        assert f"Combined mean: {combined.value:.2f}" in repr(found)
    far = eq.estimate(draws, budget=60, **options)
    assert repr(far).count("Combined mean") == 1
    assert (far.combined_kind, far.combine()[2:]) == ("asymptotic", (far.contrasts()[0].low, far.contrasts()[0].high))
