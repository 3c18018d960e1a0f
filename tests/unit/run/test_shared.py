"""`eq.open`: ask and tell in a store, alone and together with drivers; precision, leases."""

from __future__ import annotations

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

import equipoise as eq
from equipoise import report
from equipoise.ledger import looks
from equipoise.store import differences, replay
from tests.driving import Clock, drive
from tests.logs import events, expire_leases, kinds
from tests.waiting import HANG

ARMS = ["calm", "rough"]


def sample(arm: str, seed: int) -> float:
    return random.Random(seed).gauss(10, 4 if arm == "rough" else 1)


def answer(study: Any, most: int, rng: random.Random) -> int:
    """Ask and tell until nothing is left to ask for, or this often; how often."""
    for number in range(most):
        tickets = study.ask(1)
        if not tickets:
            return number
        study.tell(tickets[0], rng.gauss(10, 4 if tickets[0].arm == "rough" else 1))
    return most


# ---- together with drivers


def test_a_visitor_before_a_driver(where: str) -> None:
    """The driver does not wait for visitors, whose answers are taken whenever they come; the budget is one."""
    with eq.open(where, arms=ARMS, budget=100) as study:
        tickets = study.ask(5)
        driven = eq.estimate(sample, 100, arms=ARMS, store=where)
        assert driven.samples == 95
        assert study.done
        assert (study.in_flight, study.remaining) == (5, 0)
        study.tell_many([(ticket, 10.0) for ticket in tickets])
        assert study.result().samples == 100
        assert eq.estimate(sample, 100, arms=ARMS, store=where).samples == 100
    assert Counter(kinds(where)) == {"ask": 100, "tell": 100}


@pytest.mark.parametrize("executor", [None, 2])
def test_a_visitor_in_the_middle_of_a_driver(where: str, executor: int | None) -> None:
    """Asked and told while the driver samples, slowly by its own clock; both see all of it."""
    clock, lock, calls = Clock(), threading.Lock(), 0

    def measure(arm: str, seed: int) -> float:
        nonlocal calls
        with lock:
            calls += 1
            clock.now += 0.01
            if calls % 10 == 1:
                with eq.open(where) as visitor:
                    visitor.tell_many((ticket, 10.0) for ticket in visitor.ask(1))
        return sample(arm, seed)

    result = drive(measure, 100, arms=ARMS, seed=1, store=where, clock=clock, executor=executor)
    assert result.samples == 100
    assert calls < 100
    assert Counter(kinds(where)) == {"ask": 100, "tell": 100}
    assert sum(line.value == 10.0 for line in events(where)) == 100 - calls


def test_visitors_in_threads_and_drivers(where: str) -> None:
    """Two visitors on one study object, one on another, and two drivers: the budget is handed out exactly."""
    with eq.open(where, arms=ARMS, budget=200) as one, eq.open(where) as other, ThreadPoolExecutor(5) as pool:
        visits = [pool.submit(answer, each, 30, random.Random(n)) for n, each in enumerate((one, one, other))]
        drives = [pool.submit(partial(eq.estimate, sample, 200, arms=ARMS, store=where)) for _ in range(2)]
        assert sum(visit.result(HANG) for visit in visits) <= 90
        for call in drives:
            call.result(HANG)
        assert one.result().samples == other.result().samples == 200
        assert one.in_flight == 0
    assert Counter(kinds(where)) == {"ask": 200, "tell": 200}
    assert sorted(line.ticket or 0 for line in events(where) if line.kind == "tell") == list(range(200))


# ---- precision


def test_a_precision_retires_arms(where: str) -> None:
    rng = random.Random(1)
    with eq.open(where, arms=ARMS, precision=0.8) as study:
        taken = answer(study, 5000, rng)
        assert taken < 5000
        assert set(study.retired) == set(ARMS)
        coarse = study.result()
        assert coarse.reached is True
        assert (coarse.intervals(0.95).half_widths <= 0.8).all()
    with eq.open(where) as again:
        assert differences(replay(where).study, again._log.study) == []
    assert report.read(where).reached


def test_looks_follow_from_the_log(where: str, tmp_path: Any) -> None:
    """A study that is opened again for each call is looked at when one that stays open is, at the same samples."""
    other, arms = str(tmp_path / "other.db"), [*ARMS, *map(str, range(8))]
    with eq.open(where, arms=arms, precision=1.5) as study:
        answered = answer(study, 2000, random.Random(3))
    eq.open(other, arms=arms, precision=1.5).close()
    rng = random.Random(3)
    for _ in range(answered):
        with eq.open(other) as study:
            answer(study, 1, rng)
    one, two = ([(line.kind, line.ticket, line.arm, line.text) for line in events(each)] for each in (where, other))
    assert one == two
    retired = [sum(line[0] == "tell" for line in one[:place]) for place, line in enumerate(one) if line[0] == "retire"]
    assert len(retired) == len(arms)
    assert all(looks.next_look(samples - 1, len(arms)) == samples for samples in retired)


def test_another_precision(where: str) -> None:
    """A finer one reopens arms, a coarser one retires them at once, none reopens all; arms retired by hand stay so."""
    rng = random.Random(2)
    with eq.open(where, arms=[*ARMS, "left out"], precision=0.8) as study, eq.open(where) as other:
        study.retire("left out")
        answer(study, 5000, rng)
        before = study.result().samples
        study.set_precision(0.5)
        assert other.precision == 0.5
        assert other.retired == ("left out",) or set(other.retired) == {"calm", "left out"}
        assert "rough" not in other.retired
        answer(other, 5000, rng)
        assert other.result().samples > 1.5 * before
        assert set(study.retired) == {*ARMS, "left out"}
        study.set_precision(None)
        assert other.precision is None
        assert other.retired == ("left out",)
        study.set_precision(5.0, level=0.9)
        assert set(other.retired) == {*ARMS, "left out"}
        assert other.result().level == 0.9


@pytest.mark.parametrize("wanted", [0.8, eq.Contrasts(0.8)])
def test_an_arm_that_reached_its_precision_stays_retired_until_another_one_is_asked_for(
    where: str, wanted: Any
) -> None:
    """Late answers widen its interval beyond the precision, which it has reached all the same."""
    rng = random.Random(4)
    with eq.open(where, arms=ARMS, precision=wanted) as study:
        late = 0
        while tickets := study.ask(30):
            for ticket in tickets:
                stopped = ticket.arm in study.retired
                study.tell(
                    ticket, [-30.0, 50.0][late % 2] if stopped else rng.gauss(10, 4 if ticket.arm == "rough" else 1)
                )
                late += stopped
        assert late > 0
        assert set(study.retired) == set(ARMS)
        found = study.result()
        assert found.reached is True
        assert found.samples_left == 0
        if wanted == 0.8:
            assert found.intervals().kinds == ("fixed-width", "fixed-width")
            assert found.intervals().half_widths.max() > 0.8
        with eq.open(where, arms=ARMS, precision=wanted) as same:
            assert set(same.retired) == set(ARMS)
            assert same.result().reached is True
        study.set_precision(0.7)
        assert study.result().reached is False
        assert len(study.retired) < 2


def test_a_precision_that_is_refused_changes_nothing(where: str) -> None:
    with eq.open(where, arms=ARMS, budget=50, precision=0.8) as study:
        for wanted, level in ((-1, 0.95), ("much", 0.95), ([1.0], 0.95), (0.5, 95)):
            with pytest.raises((ValueError, TypeError), match=r"precision|level|one value for each"):
                study.set_precision(wanted, level)
        assert study.precision == 0.8
    assert kinds(where) == []


def test_a_driver_goes_on_with_the_precision_of_a_visitor(where: str) -> None:
    """Whoever answers, arms are retired by the same rule; a driver that asks for another precision changes it."""
    with eq.open(where, arms=ARMS, precision=0.8) as study:
        answer(study, 60, random.Random(3))
        driven = eq.estimate(sample, arms=ARMS, precision=0.8, store=where)
        assert driven.reached is True
        assert study.done
        assert "goal" not in kinds(where)
        eq.estimate(sample, arms=ARMS, precision=0.7, store=where)
        assert study.precision == 0.7
        assert kinds(where).count("goal") == 1
        assert study.done


# ---- leases


def test_a_visitor_who_is_waited_for_in_vain(where: str) -> None:
    """Its ticket is given back at the next ask of anybody, and its late answer is still taken."""
    with eq.open(where, arms=ARMS, budget=20, lease=HANG) as study, eq.open(where) as other:
        ticket = study.ask()
        assert isinstance(ticket, eq.Ticket)
        other.ask(19)
        assert other.remaining == 0
        expire_leases(where)
        again = other.ask(3)
        assert len(again) == 3
        assert Counter(kinds(where)) == {"ask": 23, "forget": 20}
        assert {line.text for line in events(where) if line.kind == "forget"} == {"no answer in time"}
        study.tell(ticket, 1.0)
        assert study.result().samples == 1
        read = report.read(where)
        assert 23 == read.result.samples + read.in_flight + read.given_up == 1 + 3 + 19


def test_tickets_of_retired_arms_are_withdrawn_in_the_log_too(where: str) -> None:
    with eq.open(where, arms=ARMS, budget=20, strategy="uniform") as study:
        tickets = study.ask(20)
        study.retire(ARMS[0])
        for ticket in tickets[:10]:
            study.forget(ticket)
        answered = study.result().certificate.answered
    assert answered is not None
    assert (answered.given_up, answered.withdrawn) == (10 - answered.withdrawn, len(range(0, 10, len(ARMS))))
    assert replay(where).study.result().certificate.answered == answered
    assert report.read(where).given_up == answered.given_up


def test_a_driver_takes_the_place_of_visitors_who_are_gone(where: str) -> None:
    with eq.open(where, arms=ARMS, budget=40) as study:
        tickets = study.ask(10)
        expire_leases(where)
        assert eq.estimate(sample, 40, arms=ARMS, store=where).samples == 40
        with pytest.raises(ValueError, match="ticket 3 of arm 'rough' was given back"):
            study.tell(tickets[3], 10.0)
        study.set_budget(41)
        study.tell(tickets[3], 10.0)
        assert (study.result().samples, study.remaining) == (41, 0)
    assert Counter(kinds(where)) == {"ask": 50, "tell": 41, "forget": 10, "budget": 1}


def test_a_lease_of_one_ask(where: str) -> None:
    """It ends before those of the others, by the clock of the database."""
    with eq.open(where, arms=ARMS, budget=20, lease=2 * HANG) as study:
        study.ask()
        study.ask(lease=1.0)
        study.ask()
        database = study._log._database
        sql = "select ticket from equipoise_lease where study = ? order by deadline"
        assert database.execute(sql, (database._study,))[0][0] == 1


def test_a_respondent_gets_one_ticket(where: str) -> None:
    with eq.open(where, arms=["a", "b"], budget=10) as study:
        with pytest.raises(ValueError, match="the number of tickets must be 1 with a respondent, got 5"):
            study.ask(5, respondent="ann")
        assert (study.in_flight, replay(where).turns) == (0, 0)
        ticket = study.ask(respondent="ann")
        assert study.ask(1, respondent="ann") == [ticket]
        with pytest.raises(ValueError, match="must be 1 with a respondent"):
            study.ask(2, respondent="ann", idempotency_key="again")
        assert study.in_flight == 1
        with pytest.raises(TypeError, match="idempotency_key must be a text that is not empty, got ''"):
            study.ask(idempotency_key="")
