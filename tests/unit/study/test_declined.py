"""Tickets that were asked for and not answered: counted by arm, paid for, and no samples."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.ledger.state import ANSWERED, DECLINED, FORGOTTEN
from equipoise.result.summary import rows


def with_a_silent_arm(strategy: Any, batch: int = 1, **options: Any) -> tuple[eq.Study, Counter[Any]]:
    """500 samples of 5 arms, the second of which never answers; how many were asked of each."""
    study = eq.Study(5, 500, strategy, **options)
    rng, asked = random.Random(1), Counter[Any]()
    while tickets := study.ask(batch):
        for ticket in tickets:
            asked[ticket.arm] += 1
            if ticket.arm == 1:
                study.decline(ticket)
            else:
                study.tell(ticket, rng.gauss(0, 1 + int(ticket.arm)))  # type: ignore[call-overload]
    return study, asked


@pytest.mark.parametrize("batch", [1, 20])
@pytest.mark.parametrize(
    "strategy", ["auto", "greedy", "gafs-max", "uniform", "two-stage", "ch-as", eq.strategies.Oracle([1, 4, 9, 16, 25])]
)
def test_an_arm_that_never_answers_gets_an_even_share_at_most(strategy: Any, batch: int) -> None:
    """A fifth of 500, and what a batch adds to it; the others share the rest as they would without it."""
    study, asked = with_a_silent_arm(strategy, batch)
    assert sum(asked.values()) == 500
    assert 40 <= asked[1] <= 100 + batch + 5
    others = [k for k in range(5) if k != 1]
    if isinstance(strategy, eq.strategies.Oracle):
        strategy = eq.strategies.Oracle([1, 9, 16, 25])
    alone = eq.Study(others, 500 - asked[1], strategy)
    rng = random.Random(1)
    while tickets := alone.ask(batch):
        alone.tell_many((ticket, rng.gauss(0, 1 + int(ticket.arm))) for ticket in tickets)  # type: ignore[call-overload]
    counts = study.result().counts
    for k in others:
        assert counts[k] == pytest.approx(alone.result().counts[k], abs=25 + batch)


def test_arms_none_of_which_answers_are_asked_in_turn() -> None:
    study = eq.Study(3, 60)
    asked = Counter[Any]()
    while not study.done:
        ticket = study.ask()
        asked[ticket.arm] += 1
        study.decline(ticket)
    assert asked == {0: 20, 1: 20, 2: 20}


def test_where_nothing_varies_a_silent_arm_is_not_asked_for() -> None:
    study = eq.Study(2, 100, eq.strategies.Greedy(2))
    while not study.done:
        ticket = study.ask()
        study.decline(ticket) if ticket.arm == 0 else study.tell(ticket, 1.0)
    assert study.result().declined[0] < 10


def test_an_arm_that_seldom_answers_is_as_precise_as_the_others() -> None:
    """The key is about answers: an arm that declines every other ticket is asked twice as often."""
    study = eq.Study(2, 3000, "uniform")
    for i in range(3000):
        ticket = study.ask()
        study.decline(ticket) if ticket.arm == 0 and i % 2 else study.tell(ticket, 1.0)
    result = study.result()
    assert abs(result.counts[0] - result.counts[1]) <= 1
    assert result.samples + result.declined[0] == 3000


def test_a_decline_is_counted_once_and_uses_budget() -> None:
    study = eq.Study(["a", "b"], 10)
    tickets = study.ask(10)
    study.decline(tickets[0])
    assert (study.remaining, study.in_flight, study.spent) == (0, 9, 10)
    before = study.ledger.fingerprint()
    study.decline(tickets[0])
    assert study.ledger.fingerprint() == before
    study.tell(tickets[1], 1.0)
    study.forget(tickets[2])
    before = study.ledger.fingerprint()
    calls: list[tuple[Callable[[], None], str]] = [
        (lambda: study.tell(tickets[0], 1.0), "ticket 0 of arm 'a' was already declined, got 1.0"),
        (lambda: study.tell_many([(tickets[3], 1.0), (tickets[0], 1.0)]), "ticket 0 of arm 'a' was already declined"),
        (lambda: study.forget(tickets[0]), "cannot forget ticket 0 of arm 'a': it has already been declined"),
        (lambda: study.decline(tickets[1]), "cannot decline ticket 1 of arm 'b': it has already been answered, with 1"),
        (lambda: study.decline(eq.Ticket((tickets[4].number, "b"))), "was handed out for arm 'a', not for 'b'"),
        (lambda: study.ledger.decline(4, 1), "ticket 4 was handed out for arm 'a', not for 'b'"),
    ]
    for call, words in calls:
        with pytest.raises(ValueError, match=words):
            call()
        assert study.ledger.fingerprint() == before
    # A forgotten ticket can be declined late: it takes its place in the budget again.
    assert (study.spent, study.remaining) == (9, 1)
    study.decline(tickets[2])
    assert (study.spent, study.remaining) == (10, 0)
    assert study.ledger.tickets["status"][:4].tolist() == [DECLINED, ANSWERED, DECLINED, 0]
    assert study.ledger.declined.tolist() == [2, 0]
    assert FORGOTTEN not in study.ledger.tickets["status"]


def test_a_late_decline_is_charged_as_any_other() -> None:
    study = eq.Study(2, 100, "uniform", costs=[2, 2])
    tickets = study.ask(4)
    study.forget(tickets[0])
    study.forget(tickets[1])
    study.decline(tickets[0])
    assert study.spent == 6
    study.decline(tickets[1], cost=9)
    assert study.spent == 2 + 2 + 9 + 9


def test_declined_items_of_a_population_are_used_up() -> None:
    """They were drawn, so they do not come again; but their values are not known, and so the mean is not."""
    study = eq.Study(["few", "many"], 100, populations={"few": 4})
    asked = Counter[Any]()
    while not study.done:
        ticket = study.ask()
        asked[ticket.arm] += 1
        if ticket.arm == "few" and asked["few"] == 1:
            study.decline(ticket)
        else:
            study.tell(ticket, float(ticket.id % 3))
    assert asked == {"few": 4, "many": 96}
    result = study.result()
    assert (result.counts["few"], result.declined["few"]) == (3, 1)
    assert result.losses["few"] == pytest.approx(result.variances["few"] / 3 * (1 - 3 / 4))
    whole = eq.Study(1, populations=3)
    tickets = whole.ask(9)
    assert len(tickets) == 3
    whole.forget(tickets[0])
    whole.decline(tickets[0])
    whole.decline(tickets[1])
    assert whole.done
    with pytest.raises(eq.EquipoiseError, match="every population is used up"):
        whole.ask()


def test_intervals_pass_over_declined_tickets() -> None:
    """As if they had not been asked for; answers behind them do not wait."""
    some, none = eq.Study(1, support="binary"), eq.Study(1, support="binary")
    for i in range(60):
        if i % 3 == 0:
            some.decline(some.ask())
        ticket, other = some.ask(), none.ask()
        some.tell(ticket, i % 2)
        none.tell(other, i % 2)
        if i == 20:
            some.result().intervals()
    assert some.result().intervals()[0] == none.result().intervals()[0]


def test_a_result_says_who_declined() -> None:
    study = eq.Study(["a", "b", "c"], 300, "uniform", support="binary")
    for i, ticket in enumerate(study.ask(300)):
        if (ticket.arm == "b" and i % 2) or (ticket.arm == "c" and i % 50 == 2):
            study.decline(ticket)
        elif i < 290:
            study.tell(ticket, i % 2)
    study.tell_moments("b", 100, 0.5, 25.0)  # from elsewhere: nobody was asked
    result = study.result()
    assert dict(result.declined) == {"a": 0, "b": 50, "c": 2}
    found = result.certificate.answered
    assert found is not None
    assert (found.asked, found.declined, found.in_flight, found.given_up) == (300, 52, 9, 0)
    assert result.certificate.declined == (("b", 50 / 98), ("c", 2 / 96))
    words = "Declined: b 51%, c 2.1%; non-response can bias a mean."
    assert words in str(result.certificate)
    assert words in result.remarks()
    assert rows(result.known)[0][:3] == ["arm", "count", "declined"]
    assert [row[2] for row in rows(result.known)[1:]] == ["0", "50", "2"]
    assert result.to_dict()["declined"] == json.loads(result.to_json())["declined"] == {"a": 0, "b": 50, "c": 2}
    assert list(result.to_frame("pandas")["declined"]) == [0, 50, 2]
    assert result.spent == result.samples - 100 + 52
    nobody = eq.Study(2).result()
    assert nobody.certificate.declined == ()
    assert "declined" not in rows(nobody.known)[0]
    np.testing.assert_array_equal(nobody.declined.array, [0, 0])


def test_many_arms_that_declined_are_not_all_named() -> None:
    study = eq.Study(9, strategy="uniform")
    for ticket in study.ask(9 * 20):
        if ticket.id // 9 <= ticket.arm:  # type: ignore[operator]
            study.decline(ticket)
        else:
            study.tell(ticket, math.sin(ticket.id))
    words = "Declined: arm 8 45%, arm 7 40%, arm 6 35%, arm 5 30%, arm 4 25% and 4 other arms; non-response"
    assert words in str(study.result().certificate)


def test_a_larger_weight_reaches_silent_arms_too() -> None:
    """Their keys are compared with the others' after new weights, as before."""
    study, _ = with_a_silent_arm("greedy")
    study.set_budget(1000)
    study.set_weights([1e6] * 5)
    asked = Counter(ticket.arm for ticket in study.ask(400))
    assert 50 <= asked[1] <= 110


def test_a_retired_arm_has_no_say_in_what_a_silent_one_gets() -> None:
    """With the arm gone that varies a thousand times as much, the silent arm is compared with the one that is left."""
    study = eq.Study(3, 3000, eq.strategies.Greedy(2))
    rng = random.Random(2)
    for _ in range(200):
        ticket = study.ask()
        study.decline(ticket) if ticket.arm == 1 else study.tell(ticket, rng.gauss(0, [1000, 0, 1][int(ticket.arm)]))  # type: ignore[call-overload]
    study.retire(0)
    asked = Counter[Any]()
    for _ in range(400):
        ticket = study.ask()
        asked[ticket.arm] += 1
        study.decline(ticket) if ticket.arm == 1 else study.tell(ticket, rng.gauss(0, 1))
    assert asked[1] <= 200
