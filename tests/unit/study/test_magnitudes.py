"""Whatever numbers a study takes, there is a result: no exception, no warning, and a number where one is due."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.ledger.goal import Goal, precision

KINDS = ["plain", "strata", "norm", "weights", "costs", "populations", "range", "strata of populations"]
STRATEGIES = ["auto", "auto", "uniform", "ch-as", "gafs-max", "two-stage", "greedy"]


def options_of(kind: str, arms: int, scale: float, rng: random.Random) -> dict[str, Any]:
    shares = [rng.uniform(0.1, 1) for _ in range(arms)]
    strata = eq.Stratified([share / math.fsum(shares) for share in shares])
    populations = [rng.choice([30, 60, 1000]) for _ in range(arms)]
    options: dict[str, dict[str, Any]] = {
        "plain": {},
        "strata": {"objective": strata},
        "norm": {"objective": rng.choice([0.5, 1, 2, 7])},
        "weights": {"weights": [10 ** rng.uniform(-100, 100) for _ in range(arms)]},
        "costs": {"costs": [10 ** rng.uniform(-3, 3) for _ in range(arms)]},
        "populations": {"populations": populations},
        "range": {"support": (-8 * scale, 8 * scale)},
        "strata of populations": {"objective": strata, "populations": populations},
    }
    return options[kind]


def lived(kind: str, power: float, seed: int) -> tuple[eq.Study, float]:
    """A study of up to five arms of values about 10 to this power, some far from 0 and some all equal."""
    rng, scale = random.Random(seed), 10**power
    arms = rng.choice([1, 2, 3, 5])
    options = options_of(kind, arms, scale, rng)
    budget = rng.choice([2, 8, 25, 40]) * arms * max(options.get("costs", [1]))
    study = eq.Study(arms, budget=budget, strategy=rng.choice(STRATEGIES), **options)
    centre = 0.0 if kind == "range" else rng.choice([0, 0, 1, 1e6 if power < 140 else 1]) * scale
    deviations: dict[Any, float] = {arm: rng.choice([0, 1, 1, 3, 1e-3]) for arm in range(arms)}
    for _ in range(200):
        if study.done:
            break
        ticket = study.ask()
        study.tell(ticket, centre + scale * deviations[ticket.arm] * max(-2, min(2, rng.gauss(0, 1))))
    return study, scale


def goals(study: eq.Study, scale: float, rng: random.Random) -> Goal:
    asked = [scale, "3%", *([eq.Contrasts(scale), eq.Contrasts(scale, to=0)] if len(study.arms) > 1 else [])]
    wanted = precision(rng.choice(asked), 0.95, study.arms, rng.choice(["fixed-width", "anytime"]))
    return Goal(precision=wanted, by_precision=rng.random() < 0.5)


def known(result: eq.Result) -> None:
    """Every number that is due is there."""
    counts, varies = result.counts.array, result.variances.array > 0
    two, arms = counts >= 2, len(result.arms)
    assert np.isfinite(result.means.array[counts >= 1]).all()
    for each in (result.variances, result.losses, result.plain_errors, result.biases, result.corrected_means):
        assert np.isfinite(each.array[two]).all()
    assert np.isfinite(result.standard_errors.array[varies]).all()
    for kind in (None, "fixed-n", "asymptotic"):
        ends = result.intervals(kind=kind)
        assert (ends.low <= ends.high).all()
        assert not np.isnan([ends.half_widths, ends.margins]).any()
    if not two.all():
        return
    # Weights may make more of a loss than a float can hold.
    most = math.inf if result.objective.weights is not None and result.objective.shares is None else 1e308
    assert 0 <= result.oracle_loss <= most
    for loss in (result.loss, result.uniform_loss, result.regret + result.oracle_loss):
        assert 0 <= loss <= most
    if varies.all():
        found = result.combine([1 / arms] * arms)
        assert found.low <= found.value <= found.high
        assert found.error >= 0
    if arms > 1:
        assert not np.isnan(result.compare().low).any()
        assert not math.isnan(result.difference(0, 1).low)
        assert not math.isnan(result.contrast({0: 1e90, 1: -1e-90}).low)


def check(kind: str, power: float, seed: int) -> None:
    study, scale = lived(kind, power, seed)
    for goal in (Goal(), goals(study, scale, random.Random(seed))):
        result = study.result(goal=goal)
        known(result)
        assert result.contrasts() or goal.precision is None or goal.precision.sums is None
        assert str(result)
        assert str(result.certificate)
        assert result.to_json()
        assert result.samples_left is None or result.samples_left >= 0


# From values whose squares are 0 in floats to the largest that are allowed.
POWERS = st.sampled_from([-300.0, -160.0, -153.0, -110.0, -79.0, -40.0, 0.0, 40.0, 79.0, 110.0, 143.0]) | st.floats(
    -300, 143
)


@settings(max_examples=20)
@given(kind=st.sampled_from(KINDS), power=POWERS, seed=st.integers(0, 10**9))
@example(kind="strata", power=79.0, seed=2)
@example(kind="weights", power=55.0, seed=6)
@pytest.mark.filterwarnings("error")
def test_every_number_that_is_allowed_gives_a_result(kind: str, power: float, seed: int) -> None:
    check(kind, power, seed)


@pytest.mark.slow
@settings(max_examples=800)
@given(kind=st.sampled_from(KINDS), power=POWERS, seed=st.integers(0, 10**9))
@pytest.mark.filterwarnings("error")
def test_any_number_that_is_allowed_gives_a_result(kind: str, power: float, seed: int) -> None:
    check(kind, power, seed)


def test_weights_far_apart_do_not_make_a_variance_infinite() -> None:
    """Pooled variances are divided by the weight of an arm: 1e110 by 1e-200."""
    study = eq.Study(["heavy", "light"], budget=60, weights=[1e100, 1e-100])
    rng = random.Random(1)
    while not study.done:
        ticket = study.ask()
        study.tell(ticket, 1e55 * rng.gauss(0, 1))
    assert sum(study.result().counts.values()) == 60


def test_strata_of_large_values_have_the_interval_of_small_ones() -> None:
    def combined(scale: float) -> eq.Result:
        study = eq.Study(2, budget=80, objective=eq.Stratified([0.5, 0.5]), strategy="uniform")
        rng = random.Random(1)
        while not study.done:
            study.tell(study.ask(), scale * rng.gauss(0, 1))
        return study.result()

    small, large = combined(1.0).combine(), combined(2.0**260).combine()
    assert np.array(large) / 2.0**260 == pytest.approx(np.array(small), rel=1e-9)
