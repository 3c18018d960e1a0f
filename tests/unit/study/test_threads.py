"""One study, several threads: nothing is handed out twice, nothing is lost, nothing is seen half done."""

from __future__ import annotations

import pickle
import random
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.ledger.state import ANSWERED, ANSWERED_LATE, DECLINED, FORGOTTEN
from tests.waiting import HANG

THREADS = 8


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    """Let threads take turns after every few instructions, so that what can go wrong does."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def together(*work: Callable[[], None]) -> None:
    """Do several things at once, and raise what any of them raised."""
    barrier, errors = threading.Barrier(len(work)), list[BaseException]()

    def one(part: Callable[[], None]) -> None:
        try:
            barrier.wait(HANG)
            part()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(part,)) for part in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def test_asks_and_tells_of_many_threads() -> None:
    """4,000 samples, more than there is room for at first: each ticket once, the budget to the last, every value."""
    study = eq.Study(5, budget=4000)
    told: list[list[tuple[eq.Ticket, float]]] = [[] for _ in range(THREADS)]
    ended = threading.Event()

    def worker(mine: list[tuple[eq.Ticket, float]]) -> None:
        while True:
            try:
                ticket = study.ask()
            except eq.EquipoiseError:
                return
            mine.append((ticket, float(ticket.id % 7)))
            study.tell(*mine[-1])

    def looker() -> None:
        while not ended.is_set():
            found = study.result().known.snapshot
            assert found.evidence is not None
            # Nobody forgets: a ticket is answered or in flight.
            assert found.evidence.answered.given_up == 0
            assert 0 <= found.evidence.answered.in_flight <= THREADS

    def workers() -> None:
        try:
            together(*(lambda mine=mine: worker(mine) for mine in told))
        finally:
            ended.set()

    together(workers, looker, looker)
    tickets = [ticket for mine in told for ticket, _ in mine]
    assert sorted(ticket.id for ticket in tickets) == list(range(4000))
    assert (study.in_flight, study.remaining, study.done) == (0, 0, True)
    result = study.result()
    for arm in study.arms:
        values = [value for mine in told for ticket, value in mine if ticket.arm == arm]
        assert result.counts[arm] == len(values)
        assert result.means[arm] == pytest.approx(np.mean(values))


@pytest.mark.parametrize("costs", [None, [1.0, 2.0, 0.5]], ids=["plain", "priced"])
def test_everything_at_once(costs: Any) -> None:
    """Batches, declines, forgotten tickets, real costs, results, copies and budgets: in the end all adds up."""
    study = eq.Study(["a", "b", "c"], budget=1000, costs=costs)
    asked: list[list[eq.Ticket]] = [[] for _ in range(THREADS)]
    ended, raising = threading.Event(), study._lock

    def worker(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(150):
            tickets = study.ask(rng.choice([1, 3])) if rng.random() < 0.7 else []
            if not tickets:
                try:
                    tickets = [study.ask()]
                except eq.EquipoiseError:
                    with raising:
                        study.set_budget(study.spent + 200)
                    continue
            asked[seed] += tickets
            for ticket in tickets:
                match rng.randrange(8):
                    case 0:
                        study.decline(ticket)
                    case 1:
                        study.forget(ticket)
                    case 2:
                        study.tell_many([(ticket, rng.gauss(0, 1), 1.5 if costs else None)])
                    case 3:
                        with raising:  # or another thread may take its place
                            study.forget(ticket)
                            study.tell(ticket, 0.5)
                    case _:
                        study.tell(ticket, rng.gauss(0, 1))

    def looker() -> None:
        while not ended.is_set():
            result = study.result()
            found = result.certificate.answered
            assert found is not None
            assert min(found.given_up, found.in_flight, found.declined) >= 0
            assert result.samples + found.given_up + found.in_flight + found.declined == found.asked
            result.intervals()
            copied = pickle.loads(pickle.dumps(study))
            assert copied.in_flight >= 0
            assert repr(study).startswith("<Study of 3 arms")

    def workers() -> None:
        try:
            together(*(lambda seed=seed: worker(seed) for seed in range(THREADS)))
        finally:
            ended.set()

    together(workers, looker, looker)
    numbers = [ticket.number for mine in asked for ticket in mine]
    ledger = study.ledger
    assert len(set(numbers)) == len(numbers) == ledger.issued
    tickets = ledger.tickets
    status, answered = tickets["status"], np.isin(tickets["status"], (ANSWERED, ANSWERED_LATE))
    assert study.in_flight == 0
    assert ledger.declined.sum() == (status == DECLINED).sum()
    result = study.result()
    for k in range(3):
        values = tickets["value"][answered & (tickets["arm"] == k)]
        assert result.counts.array[k] == len(values)
        assert result.means.array[k] == pytest.approx(values.mean())
        assert result.variances.array[k] == pytest.approx(values.var(ddof=1))
    if costs is None:
        assert study.spent == ledger.issued - (status == FORGOTTEN).sum() == answered.sum() + ledger.declined.sum()
    # The intervals are those of a study that looks for the first time.
    fresh = pickle.loads(pickle.dumps(study)).result()
    np.testing.assert_array_equal(np.asarray(result.intervals()), np.asarray(fresh.intervals()))


def test_results_that_are_looked_at_together() -> None:
    """Intervals are made when somebody looks, from what earlier looks made: one look at a time."""
    study = eq.Study(2, support="binary")
    results: list[Any] = []
    for i in range(THREADS):
        study.tell_many((ticket, float(ticket.id % (2 + i) == 0)) for ticket in study.ask(40))
        results.append(study.result())
    together(*(lambda result=result: result.intervals() for result in results))
    fresh = pickle.loads(pickle.dumps(study)).result()
    np.testing.assert_array_equal(np.asarray(results[-1].intervals()), np.asarray(fresh.intervals()))


def test_the_lock_is_neither_saved_nor_copied() -> None:
    study = eq.Study(2)
    with study._lock:
        for other in (pickle.loads(pickle.dumps(study)), pickle.loads(pickle.dumps(study.result()))):
            assert other is not None
        copied = study.__copy__()
        assert copied._lock is not study._lock
        together(lambda: copied.tell(copied.ask(), 1.0), lambda: copied.set_budget(9))
    assert copied.result().samples == 1


def test_answers_may_come_from_an_iterator_that_waits_for_another_thread() -> None:
    """`tell_many` reads all answers before it takes the lock."""
    study = eq.Study(2)
    tickets = study.ask(4)
    asked, go_on = threading.Event(), threading.Event()

    def answers() -> Iterator[tuple[eq.Ticket, float]]:
        for ticket in tickets:
            asked.set()
            assert go_on.wait(HANG)
            yield ticket, 1.0

    def other() -> None:
        assert asked.wait(HANG)
        study.forget(study.ask(2)[0])
        go_on.set()

    together(lambda: study.tell_many(answers()), other)
    assert study.result().samples == 4
