"""What samples really cost: the budget is charged with it, and the arm is planned with its mean."""

from __future__ import annotations

import copy
import json
import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import equipoise as eq


def test_the_budget_is_charged_with_real_costs() -> None:
    study = eq.Study(["a", "b"], 100, "uniform", costs={"a": 2, "b": 5})
    a, b, more, last = study.ask(4)
    assert study.spent == 14
    study.tell(a, 1.0, cost=3)
    # The first real cost replaces the declared one, for the ticket of a that is in flight too.
    assert study.spent == 3 + 5 + 3 + 5
    study.tell(more, 2.0, cost=4)
    assert study.spent == 3 + 5 + 4 + 5
    study.tell(b, 0.0)  # nobody knows: as expected
    assert study.spent == 3 + 5 + 4 + 5
    study.decline(last, cost=0.5)
    assert study.spent == 3 + 0.5 + 4 + 0.5
    study.ask(1)
    result = study.result()
    assert dict(result.costs or {}) == {"a": 3.5, "b": 0.5}
    assert result.spent == 3 + 0.5 + 4 + 0.5
    assert json.loads(result.to_json())["costs"] == {"a": 3.5, "b": 0.5}
    assert result.to_dict()["spent"] == 8
    assert list(result.to_frame("pandas")["cost"]) == [3.5, 0.5]
    assert study.objective.costs == (2, 5)


def test_samples_in_flight_and_forgotten_follow_the_mean() -> None:
    study = eq.Study(2, 1000, "uniform", costs=[1, 1])
    tickets = study.ask(10)
    for ticket, cost in zip(tickets[:6:2], (10, 20, 30), strict=True):
        study.tell(ticket, 0.0, cost=cost)
    assert study.spent == pytest.approx(5 + 60 + 2 * 20)
    study.forget(tickets[6])
    assert study.spent == pytest.approx(5 + 60 + 20)
    study.tell(tickets[6], 0.0)  # late, and nobody says what it cost
    assert study.spent == pytest.approx(5 + 60 + 2 * 20)
    study.forget(tickets[8])
    study.tell(tickets[8], 0.0, cost=100)
    assert study.spent == pytest.approx(5 + 160 + 40)
    assert study.result().costs[0] == 40  # type: ignore[index]


def test_the_same_answer_again_is_not_paid_twice() -> None:
    study = eq.Study(2, 100, costs=[1, 1])
    ticket = study.ask()
    study.tell(ticket, 0.5, cost=7)
    before = study.ledger.fingerprint()
    study.tell(ticket, 0.5, cost=7)
    study.tell(ticket, 0.5)
    study.tell_many([(ticket, 0.5, 9), (ticket, 0.5)])
    assert study.ledger.fingerprint() == before
    other = study.ask()
    study.tell_many([(other, 0.5, 2), (other, 0.5, 3)])
    assert study.spent == 9


def test_many_at_once_are_as_one_by_one() -> None:
    rng = random.Random(1)
    one, many = (eq.Study(3, 500, objective=1, costs=[1, 2, 3]) for _ in range(2))
    for _ in range(20):
        answers = [(rng.gauss(0, 1), rng.choice([None, 0.5, 4.0])) for _ in range(5)]
        a, b = one.ask(5), many.ask(5)
        assert [ticket.arm for ticket in a] == [ticket.arm for ticket in b]
        for ticket, (value, cost) in zip(a, answers, strict=True):
            one.tell(ticket, value, cost=cost)
        many.tell_many((ticket, *answer) for ticket, answer in zip(b, answers, strict=True))
        assert one.ledger.fingerprint() == many.ledger.fingerprint()


def test_what_is_spent_is_spent() -> None:
    study = eq.Study(2, 10, "uniform", costs=[1, 1])
    tickets = study.ask(4)
    study.tell(tickets[0], 1.0, cost=50)
    assert (study.spent, study.remaining, study.done) == (50 + 1 + 50 + 1, 0, True)
    assert study.ask(3) == []
    with pytest.raises(eq.EquipoiseError, match="0 of the budget of 10 is left and the cheapest sample costs 1;"):
        study.ask()
    study.forget(tickets[2])
    study.set_budget(60)
    assert [ticket.arm for ticket in study.ask(99)] == [1] * 8


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_the_strategy_plans_with_the_mean_cost_seen(p: float) -> None:
    """Declared alike, and arm 1 costs nine times as much: as many samples as a study has that was told at the start."""
    counts = []
    for declared in ([1.0, 1.0], [1.0, 9.0]):
        study = eq.Study(2, 20_000, eq.strategies.Oracle([1, 1]), objective=p, costs=declared)
        while not study.done:
            ticket = study.ask()
            study.tell(ticket, 0.0, cost=[1.0, 9.0][int(ticket.arm)])  # type: ignore[call-overload]
        counts.append(np.array(list(study.result().counts.values())))
        assert study.spent <= 20_000 * (1 + 1e-9)
    assert counts[0] / counts[1] == pytest.approx(1, rel=0.01)
    assert counts[0][0] / counts[0][1] == pytest.approx(9 ** (1 / (p + 1)), rel=0.01)


def test_weights_that_are_set_later_keep_the_real_costs() -> None:
    study, told = (eq.Study(2, 10_000, eq.strategies.Oracle([1, 1]), objective=1, costs=c) for c in ([1, 1], [1, 16]))
    for each in (study, told):
        each.tell_many([(ticket, 0.0, [1, 16][int(ticket.arm)]) for ticket in each.ask(2)])  # type: ignore[call-overload]
        each.set_weights([1, 4])
    arms = [Counter(ticket.arm for ticket in each.ask(300)) for each in (study, told)]
    assert arms[0] == arms[1]


@pytest.mark.parametrize("p", [1.0, math.inf])
def test_samples_that_cost_nothing(p: float) -> None:
    """They are planned with a millionth of what was declared: nothing is divided by zero, and a batch has an end."""
    study = eq.Study(["free", "dear"], 50, objective=p, costs={"free": 1, "dear": 1})
    rng = random.Random(1)
    for _ in range(2000):
        ticket = study.ask()
        study.tell(ticket, rng.gauss(0, 1), cost=0 if ticket.arm == "free" else 1)
        if study.done:
            break
    result = study.result()
    # The sum of squared errors has its best proportions at a thousand to one: cost^{-1/2}.
    assert 1 <= study.spent <= 50
    assert (result.counts["dear"] < 5) if p == 1 else (result.counts["dear"] == 50)
    assert result.costs is not None
    assert (result.costs["free"], result.costs["dear"]) == (0, 1)
    assert result.spent == study.spent
    assert result.oracle_loss > 0
    assert math.isfinite(result.uniform_loss)
    assert str(result.certificate)
    free = eq.Study(1, 1e-3, "uniform", costs=[1e-3])
    free.tell(free.ask(), 0.0, cost=0)
    assert len(free.ask(10**8)) == 10**6
    assert free.done


@pytest.mark.parametrize(
    ("costs", "cost", "error", "words"),
    [
        (None, 812, ValueError, r"cost needs a study with costs=\.\.\., such as the costs you expect, got 812"),
        ([1, 1], -1, ValueError, "cost must be a number between 0 and 1e.100, got -1"),
        ([1, 1], math.nan, ValueError, "cost must be a number between 0 and 1e.100, got nan"),
        ([1, 1], math.inf, ValueError, "cost must be a number between 0 and 1e.100, got inf"),
        ([1, 1], "3", TypeError, "cost must be a number, got '3'"),
    ],
)
def test_a_cost_that_is_refused_changes_nothing(costs: Any, cost: Any, error: type[Exception], words: str) -> None:
    study = eq.Study(2, 100, costs=costs)
    ticket, other = study.ask(2)
    before = study.ledger.fingerprint()
    calls: list[Callable[[], None]] = [
        lambda: study.tell(ticket, 1.0, cost=cost),
        lambda: study.tell_many([(other, 1.0), (ticket, 1.0, cost)]),
        lambda: study.decline(ticket, cost=cost),
    ]
    for call in calls:
        with pytest.raises(error, match=words):
            call()
        assert study.ledger.fingerprint() == before


def test_costs_of_the_ledger() -> None:
    """By ids: a float, or an array with NaN where a cost is not known."""
    ledger = eq.Study(2, 100, "uniform", costs=[1, 1]).ledger
    ledger.ask(6)
    ledger.tell(0, 1.0, None, 3.0)
    ledger.tell(np.array([1, 2, 3]), np.zeros(3), costs=np.array([math.nan, 5.0, 7.0]))
    ledger.tell(4, 0.0, 0, math.nan)
    assert ledger.costs is not None
    assert ledger.costs.tolist() == [4, 7]
    assert ledger.spent == 3 + 5 + 7 + 4 + 7 + 7
    before = ledger.fingerprint()
    with pytest.raises(ValueError, match=r"cost must be a number between 0 and 1e.100, got -2\.0"):
        ledger.tell([5], np.zeros(1), costs=[-2.0])
    with pytest.raises(ValueError, match="costs must have one value for each of the 1 tickets"):
        ledger.tell([5], np.zeros(1), costs=[1.0, 2.0])
    with pytest.raises(ValueError, match="ticket 5 was handed out for arm 1, not for 0"):
        ledger.tell(5, 0.0, 0, 1.0)
    assert ledger.fingerprint() == before
    plain = eq.Study(2).ledger
    plain.ask(2)
    plain.tell([0, 1], np.zeros(2), costs=[math.nan, math.nan])
    assert plain.costs is None


def test_a_sample_from_elsewhere_has_no_cost() -> None:
    study = eq.Study(2, 100, costs=[1, 1])
    with pytest.raises(TypeError, match="cost needs a ticket: a sample from elsewhere uses no budget, got 3"):
        study.tell(arm=0, value=1.0, cost=3)


def test_copies_know_the_real_costs() -> None:
    study = eq.Study(3, 300, objective=1, costs=[1, 1, 1])
    rng = random.Random(3)
    for _ in range(30):
        study.tell(study.ask(), rng.gauss(0, 1), cost=rng.choice([0.5, 2.0]))
    other = copy.deepcopy(study)
    assert other.ledger.fingerprint() == study.ledger.fingerprint()
    assert [ticket.arm for ticket in study.ask(99)] == [ticket.arm for ticket in other.ask(99)]
    assert other.spent == study.spent


def test_the_cost_of_a_decline_is_planned_with_at_once() -> None:
    study = eq.Study(2, 10_000, eq.strategies.Oracle([1, 1]), objective=1, costs=[1, 1])
    study.tell_many((ticket, 0.0) for ticket in study.ask(100))
    ticket = study.ask()
    assert ticket.arm == 0
    study.decline(ticket, cost=100)
    assert {ticket.arm for ticket in study.ask(10)} == {1}


def test_a_study_and_its_result_have_spent_the_same() -> None:
    """But for what is in flight: late answers are free, and so are samples from elsewhere."""
    study = eq.Study(["a", "b"], budget=100, costs=[2, 3], strategy="uniform")
    tickets = study.ask(9)
    for ticket in tickets[:4]:
        study.tell(ticket, 1.0 * ticket.id)
    assert (study.spent, study.result().spent) == (22, 10)
    study.forget(tickets[4])
    study.tell(tickets[4], 3.0)
    study.tell(tickets[5], 3.0, cost=9)
    study.tell(arm="a", value=3.0)
    study.decline(tickets[6])
    study.decline(tickets[8], cost=1)
    assert study.spent - study.result().spent == 9  # a ticket of b, of which one did cost 9
    study.tell(tickets[7], 1.0)
    result = study.result()
    assert result.spent == study.spent == json.loads(result.to_json())["spent"]
    assert result.verdict.startswith(f"8 samples (cost {result.spent:g})")
