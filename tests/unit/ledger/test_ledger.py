"""The ledger: tickets by ids, arms by places, records with names."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence

import numpy as np
import pytest

import equipoise as eq
from equipoise.ledger.ledger import Ledger
from equipoise.ledger.state import ANSWERED, ANSWERED_LATE, FORGOTTEN, IN_FLIGHT


def ledger(arms: int = 3, budget: int | None = None) -> Ledger:
    return eq.Study(arms, budget).ledger


def test_a_ticket_has_a_status() -> None:
    book = ledger()
    assert book.ask(4) == 4
    book.tell(0, 1.5)
    book.forget(1)
    book.forget(2)
    book.tell(2, 2.5)
    tickets = book.tickets
    assert tickets["status"].tolist() == [ANSWERED, FORGOTTEN, ANSWERED_LATE, IN_FLIGHT]
    assert tickets["arm"].tolist() == [0, 1, 2, 0] == [book.arm_of[i] for i in range(4)]
    np.testing.assert_equal(tickets["value"], [1.5, math.nan, 2.5, math.nan])
    assert (book.in_flight, book.spent, book.issued) == (1, 3, 4)


def test_what_is_refused_changes_nothing() -> None:
    book = ledger()
    book.ask(6)
    book.tell(np.array([0, 1]), np.array([1.0, 2.0]))
    before = book.fingerprint()
    for ids, values, words in (
        ([2, 0], [3.0, 9.0], "was already answered with 1.0, got 9.0"),
        ([3, 4, 3], [1.0, 2.0, 1.5], "twice in one call|was already answered with 1.0, got 1.5"),
        ([5, 2], [0.5, math.nan], "a sample must be a finite number, got nan"),
    ):
        with pytest.raises(ValueError, match=words):
            book.tell(ids, np.array(values))
        assert book.fingerprint() == before
    with pytest.raises(ValueError, match="it has already been answered, with 1"):
        book.forget(0)
    with pytest.raises(ValueError, match="ticket 2 was handed out for arm 2, not for 0"):
        book.tell(2, 1.0, 0)
    assert book.fingerprint() == before


def test_a_snapshot_stays_as_it_was() -> None:
    book = ledger()
    book.ask(6)
    book.tell(range(6), np.arange(6.0))
    seen = book.snapshot()
    book.ask(3)
    book.tell(range(6, 9), np.arange(3.0))
    assert seen.counts.tolist() == [2, 2, 2]
    assert seen.means.tolist() == [1.5, 2.5, 3.5]
    assert seen.spent == 6


def test_a_budget_is_handed_out_to_the_last_ticket() -> None:
    """However asks, forgotten tickets, retired arms and room for tickets follow one another."""
    book = ledger(4, 1000)
    asked = 0
    for m in (1, 250, 1, 7):
        asked += book.ask(m)
    book.forget(3)
    book.retire(0)
    book.reopen(0)
    assert asked == 259
    assert book.ask(10_000) == 1000 - 259 + 1
    assert book.ask(1) == 0
    assert book.done
    book.forget(900)
    assert not book.done
    assert (book.ask(5), book.issued) == (1, 1002)


def test_a_saved_ledger_is_the_same_to_the_bit() -> None:
    book = ledger()
    book.ask(300)  # more than there was room for
    book.tell(range(0, 300, 2), np.random.default_rng(1).normal(size=150))
    again = pickle.loads(pickle.dumps(book))
    assert again.fingerprint() == book.fingerprint()
    assert (again.ask(20), book.ask(20)) == (20, 20)
    assert again.fingerprint() == book.fingerprint()


@pytest.mark.parametrize("count", [2**52, 2**40, 10**8])
@pytest.mark.parametrize("strategy", ["auto", "gafs-max", "greedy", "uniform"])
def test_moments_that_would_overflow_are_refused_and_change_nothing(strategy: str, count: int) -> None:
    study = eq.Study(["a", "b"], strategy=strategy)
    study.tell_moments("a", count, 1e150, 0.0)
    before = study.ledger.fingerprint()
    with pytest.raises(
        ValueError, match=r"must not make the variance of arm 'a' overflow, got mean -1e\+150 and m2 0.0"
    ):
        study.tell_moments("a", count, -1e150, 0.0)
    assert study.ledger.fingerprint() == before
    study.tell_moments("a", count, 1e150, 0.0)
    for ticket in study.ask(60):
        study.tell(ticket, (-1.0) ** ticket.id * 1e150)
    assert np.isfinite(study.result().variances.array).all()


@pytest.mark.parametrize("samples", [0, 1, 300, 5000])
def test_a_saved_study_has_nothing_but_its_tickets(samples: int) -> None:
    """16 bytes each, and no room for those to come; which has been grown in other steps in a study of equal history."""

    def saved(steps: Sequence[int]) -> bytes:
        study = eq.Study(["a", "b"])
        study.first_number = 1 << 40
        for step in steps:
            assert len(study.ask(step)) == step
        for ticket in range(samples):
            study.ledger.tell(ticket, float(ticket % 7))
        return pickle.dumps(study)

    one_by_one = saved([1] * samples)
    assert len(one_by_one) <= 3000 + 16 * samples
    if samples > 1:
        assert saved([samples]) == saved([2, samples - 2]) == one_by_one
    again = pickle.loads(one_by_one)
    assert again.ledger.issued == samples
    tickets = [again.ask() for _ in range(600)]
    again.tell_many([(ticket, 1.0) for ticket in tickets])
    assert again.result().samples == samples + 600
