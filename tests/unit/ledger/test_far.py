"""Arms whose values are far from 0, such as timestamps: means and intervals are as exact as they are near 0."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.numeric import moments

N, SD, WHERE = 100_000, 1e-3, 1.7e9


@cache
def timestamps() -> list[float]:
    return [float(x) for x in WHERE + np.random.default_rng(5).normal(0, SD, N)]


@cache
def exact() -> Fraction:
    return sum(map(Fraction, timestamps()), Fraction(0)) / N


def standard_error() -> float:
    return SD / math.sqrt(N)


def told(how: str, **options: Any) -> eq.Study:
    """A study of one arm with all the samples in."""
    study = eq.Study(["a"], budget=N, **options)
    if how == "one by one":
        for x in timestamps():
            study.tell(study.ask(), x)
    elif how == "together":
        study.tell_many(zip(study.ask(N), timestamps(), strict=True))
    elif how == "around 0":
        study.tell_many(zip(study.ask(N), (np.array(timestamps()) - WHERE).tolist(), strict=True))
    else:
        for part in np.split(np.array(timestamps()), 100):
            count, mean, m2 = moments.of(part)
            study.tell_moments(arm="a", count=count, mean=mean, m2=m2)
    return study


def off(study: eq.Study) -> float:
    """By how many standard errors the mean that the study keeps is off."""
    arm = study.ledger._state.arms[0]
    return abs(float(Fraction(float(arm["shift"])) + Fraction(float(arm["mean"])) - exact())) / standard_error()


@pytest.mark.parametrize("how", ["one by one", "together"])
def test_the_mean_of_timestamps_does_not_stagnate(how: str) -> None:
    study = told(how)
    result = study.result()
    # The nearest float, which is within 0.04 standard errors here.
    assert result.means["a"] == float(exact())
    assert result.variances["a"] == pytest.approx(np.var(np.array(timestamps()) - WHERE, ddof=1), rel=1e-9)
    assert off(study) < 1e-6


def test_means_told_as_moments_are_as_good_as_the_floats_they_come_as() -> None:
    study = told("as moments")
    # A hundred means, each rounded to within half of the last digit of 1.7e9.
    assert off(study) * standard_error() < math.ulp(WHERE) / 2 / math.sqrt(100)
    assert study.result().means["a"] == pytest.approx(float(exact()), abs=math.ulp(WHERE))


@pytest.mark.parametrize("kind", ["asymptotic", "fixed-n"])
@pytest.mark.parametrize("populations", [None, 2 * N])
def test_intervals_are_around_the_mean(kind: Any, populations: int | None) -> None:
    given = {} if populations is None else {"populations": {"a": populations}}
    there, near = (told(how, **given).result() for how in ("together", "around 0"))
    low, high = there.intervals(kind=kind)["a"]
    ends = near.intervals(kind=kind)["a"]
    # Every end is rounded to the last digit of 1.7e9.
    assert low - WHERE == pytest.approx(ends[0], abs=math.ulp(WHERE))
    assert high - WHERE == pytest.approx(ends[1], abs=math.ulp(WHERE))


def test_the_skewness_of_timestamps() -> None:
    there, near = (told(how).result().known.snapshot.evidence for how in ("together", "around 0"))
    assert there is not None
    assert near is not None
    assert there.skewness == pytest.approx(near.skewness, abs=1e-9)


def test_the_shift_is_saved() -> None:
    study = eq.Study(["a", "b"])
    for i, ticket in enumerate(study.ask(40)):
        study.tell(ticket, (WHERE if ticket.arm == "a" else 0.0) + i % 5 * SD)
    shifts = study.ledger._state.arms["shift"]
    assert shifts[0] == pytest.approx(WHERE)
    assert shifts[1] == 0
    again = pickle.loads(pickle.dumps(study))
    assert again.ledger.fingerprint() == study.ledger.fingerprint()
    for each in (study, again):
        ticket = each.ask()
        each.tell(ticket, WHERE if ticket.arm == "a" else 0.0)
    assert again.ledger.fingerprint() == study.ledger.fingerprint()
    study.ledger._state.arms["shift"][0] += 1
    assert again.ledger.fingerprint() != study.ledger.fingerprint()


def test_a_strategy_is_given_the_mean_itself() -> None:
    seen = eq.Study(2, budget=40, strategy=ByMean())
    for ticket in seen.ask(8):
        seen.tell(ticket, (WHERE if ticket.arm == 1 else 0.0) + ticket.id % 3 * SD)
    # It plans with the mean, so that the far arm is asked for from then on.
    assert [ticket.arm for ticket in seen.ask(20)] == [1] * 20


class ByMean(eq.strategies.Strategy):
    uses_mean = True

    @staticmethod
    def variance(count: Any, mean: Any, m2: Any, pooled: Any, own: Any, params: Any) -> float:
        return abs(float(mean))
