"""What an even split would have needed, in cases that can be done by hand."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.inference.baseline import Baseline
from equipoise.inference.linear_targets import sums_found
from equipoise.inference.replay import adaptivity
from equipoise.ledger import Goal
from equipoise.ledger.goal import precision
from equipoise.result.summary import even_split


def lived(deviations: Any, n: float, seed: int = 1, **options: Any) -> eq.Result:
    """The result of a study of Gaussian arms."""
    rng = np.random.default_rng(seed)
    study = eq.Study(len(deviations), budget=n, **options)
    while not study.done:
        ticket = study.ask()
        study.tell(ticket, rng.normal(5, deviations[ticket.arm]))
    return study.result()


def given(samples: dict[str, Any], **options: Any) -> eq.Result:
    """The result of a study that was told these samples, which it did not ask for."""
    study = eq.Study(samples, **options)
    for arm, values in samples.items():
        for value in values:
            study.tell(arm=arm, value=float(value))
    return study.result()


def spreads(counts: Any, deviations: Any, seed: int = 2) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {f"{k}": rng.normal(0, sd, count) for k, (count, sd) in enumerate(zip(counts, deviations, strict=True))}


def known(result: eq.Result) -> Baseline:
    assert result.baseline is not None
    return result.baseline


def test_arms_that_differ() -> None:
    """Variances 1 and 9, n = 2,000: K max σ² / Σσ² = 1.8 times as many, less a percent or two for learning them."""
    found = known(lived([1, 3], 2000, seed=2))
    assert found.samples == pytest.approx(3600, rel=0.04)
    assert 0.9 * found.samples < found.low < found.samples < found.high < 1.1 * found.samples
    assert found.low < 3560 < found.high
    assert found.spent == found.samples


def test_arms_that_are_equal() -> None:
    result = lived([2] * 10, 600)
    found = known(result)
    assert found.samples == pytest.approx(600, rel=0.03)
    assert found.low < 600 < found.high
    assert even_split(result.known) == ""


def test_own_counts_where_a_study_cannot_be_replayed() -> None:
    """2,000 and 6,000 samples of variances 1 and 9: 9/6000 is the loss, for which 6,000 of each are needed."""
    result = given(spreads([2000, 6000], [1, 3]))
    found = known(result)
    assert adaptivity(result.known).how == "not needed"
    # Whatever the variances are, as long as that of the second arm is more than three times that of the first.
    assert found == pytest.approx((12_000, 12_000, 12_000, 12_000))
    # Fewer of the arm that varies more is worse than an even split, which is not said to need less than were taken.
    worse = known(given(spreads([6000, 2000], [1, 3])))
    assert worse.samples == 8000
    assert worse.low == pytest.approx(4000, rel=0.03)


@pytest.mark.parametrize(("p", "ratio"), [(1, 2 * (1 / 3000 + 9 / 9000)), (2, 2 * math.hypot(1 / 3000, 9 / 9000))])
def test_norms(p: float, ratio: float) -> None:
    """(K/N) ||σ²||_p is the loss of N samples, spread evenly."""
    found = known(given(spreads([3000, 9000], [1, 3]), objective=p))
    norm = 10 if p == 1 else math.hypot(1, 9)
    assert found.samples == pytest.approx(max(4 * norm / ratio, 12_000), rel=0.03)


def test_weights() -> None:
    """With the weights 81 and 1 on variances 1 and 9, it is the first arm that calls for more: 81/8000 to 9/4000."""
    found = known(given(spreads([8000, 4000], [1, 3]), weights=[81, 1]))
    assert found.samples == pytest.approx(16_000, rel=0.03)


def test_costs() -> None:
    """Costs 1 and 3: an even split pays 2 for a sample on average."""
    result = given(spreads([2000, 6000], [1, 3]), costs=[1, 3])
    found = known(result)
    assert found.samples == pytest.approx(12_000, rel=0.02)
    assert found.spent == pytest.approx(2 * found.samples)
    assert even_split(result.known).startswith(
        "An even split would have needed about 12,000 samples, at a cost of 24,000"
    )
    assert ", at a cost of 24,000, for the same largest standard error." in even_split(result.known)
    # 10,000 samples of each arm cost less than what was spent on those of the dear one: nothing to boast of.
    dear = given(spreads([100, 10_000], [1, 3]), costs=[1, 100])
    assert known(dear).spent >= dear.known.price
    assert "even split" in repr(lived([1, 5], 3000.0, costs=[1.0, 2.0]))


def test_finite_populations() -> None:
    """400 of 500 items with variance 1 and 900 endless samples of variance 9: 9/900 calls for 900, of 500 for all."""
    result = given(spreads([400, 900], [1, 3]), populations={"0": 500})
    assert known(result).samples == pytest.approx(500 + 900, rel=0.02)
    # Of both 1,000 items: 1 (1/200 - 1/1000) and 9 (1/600 - 1/1000) = 0.006, for which 600 of each are needed.
    result = given(spreads([200, 600], [1, 3]), populations={"0": 1000, "1": 1000})
    assert known(result).samples == pytest.approx(1200, rel=0.03)


def test_strata() -> None:
    """Shares 0.5 each, variances 1 and 9, Neyman's counts: 2 (1 + 9)/(1 + 3)² = 1.25 times as many."""
    result = lived([1, 3], 2000, objective=eq.Stratified([0.5, 0.5]))
    assert known(result).samples == pytest.approx(2500, rel=0.04)
    assert even_split(result.known).endswith(" for the same standard error.")


def test_where_nothing_can_be_said() -> None:
    assert lived([1], 100).baseline is None
    assert lived([1, 3], 100, strategy="uniform").baseline is None
    assert given({"a": [1.0, 2.0], "b": [1.0]}).baseline is None
    assert given({"a": [1.0, 1.0], "b": [2.0, 2.0]}).baseline is None
    assert eq.Study(2).result().baseline is None


def test_with_a_precision() -> None:
    """Every strategy takes every arm to its own stop: as many samples as were taken, give or take their scatter."""
    rng = np.random.default_rng(3)
    arms = {"calm": lambda: rng.normal(0, 1), "rough": lambda: rng.normal(0, 3)}
    result = eq.estimate(arms, precision=0.4)
    found = known(result)
    assert found.samples == result.samples
    even = eq.estimate(arms, precision=0.4, strategy="uniform")
    assert found.low < even.samples < found.high
    assert found.high - found.low < 0.5 * found.samples
    assert even_split(result.known) == ""
    # One that is not reached says nothing.
    asked = eq.Result(replace(result.known, goal=Goal(0.95, precision(0.1, 0.95, result.arms)), settled=None))
    assert asked.baseline is None


@pytest.mark.parametrize("interval", ["fixed-width", "anytime"])
def test_with_a_precision_of_contrasts(interval: Any) -> None:
    """
    Differences of nine arms to a control with three times the samples: 1/300 + 1/100 = 2/150.

    So an even split takes 150 of each arm, and of the control as many as the last difference.
    """
    study = eq.Study(10, objective=1)
    for k in range(10):
        x = np.random.default_rng(k).normal(size=100 if k else 300)
        first = study.ledger.issued
        study.ledger.ask_for(np.full(len(x), k))
        study.ledger.tell(np.arange(first, study.ledger.issued), (x - x.mean()) / x.std(ddof=1))

    def asked(half: float) -> eq.Result:
        return study.result(goal=Goal(0.95, precision(eq.Contrasts(half, to=0), 0.95, study.arms, interval)))

    margin = float(sums_found(asked(9.0).known).margins.max())
    found = known(asked(1.0001 * margin))
    assert found.samples == pytest.approx(1500, rel=0.05)
    assert 0.85 * found.samples < found.low < found.samples < found.high < 1.15 * found.samples
    assert asked(0.9 * margin).baseline is None


def test_with_a_precision_of_the_combined_mean() -> None:
    """Shares of 1/2 each, 100 and 300 samples of deviations 1 and 3: 1/100 + 9/300 = 10/250."""
    study = eq.Study(2, objective=eq.Stratified([0.5, 0.5]))
    for k, count in enumerate((100, 300)):
        x = np.random.default_rng(k).normal(size=count)
        study.ledger.ask_for(np.full(count, k))
        study.ledger.tell(np.arange(100 * k, 100 * k + count), (1 + 2 * k) * (x - x.mean()) / x.std(ddof=1))
    shares = eq.Stratified([0.5, 0.5])

    def asked(half: float) -> eq.Result:
        return study.result(goal=Goal(0.95, precision(half, 0.95, study.arms, objective=shares)))

    margin = float(sums_found(asked(9.0).known).margins.max())
    found = known(asked(1.0001 * margin))
    assert found.samples == pytest.approx(500, rel=0.04)
    assert 0.75 * found.samples < found.low < found.samples < found.high < 1.3 * found.samples


def test_it_is_kept() -> None:
    result = lived([1, 3], 400)
    found = known(result)
    assert json.loads(result.to_json())["baseline"] == pytest.approx(found._asdict())
    assert lived([1, 3], 400).baseline == found
    again = pickle.loads(pickle.dumps(lived([1, 3], 400)))
    assert again.baseline == found
    assert lived([1], 100).to_dict()["baseline"] is None
