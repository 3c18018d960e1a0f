"""A driver and its turns: when it samples, what an interrupt leaves, and whose tickets it takes."""

from __future__ import annotations

import functools
import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise import report
from equipoise.store import Log, differences, replay
from tests.driving import Clock, drive
from tests.logs import events, expire_leases, kinds, owners
from tests.waiting import HANG, until

ARMS = ["calm", "rough"]


def sample(arm: str, seed: int) -> float:
    return random.Random(seed).gauss(10, 4 if arm == "rough" else 1)


def brief(result: eq.Result) -> tuple[Any, ...]:
    return dict(result.counts), dict(result.means), dict(result.variances)


# ---- inside and outside turns


class Elsewhere:
    """A connection of somebody else, which takes turns in a thread of its own."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._log: Log | None = None
        self._pool = ThreadPoolExecutor(1)
        self.turns = 0

    def _take(self) -> None:
        self._log = self._log or Log(self._where)
        self._log.turn(lambda turn: turn.ledger.samples)
        self.turns += 1

    def take_turn(self) -> None:
        """Return once a turn was taken: at once, unless somebody is in one."""
        self._pool.submit(self._take).result(HANG)

    def close(self) -> None:
        self._pool.shutdown()
        if self._log is not None:
            self._log.close()


@pytest.mark.parametrize("quick", [0, 20])
def test_a_slow_sample_is_not_taken_in_a_turn(where: str, quick: int) -> None:
    """Somebody else takes a turn during each sample of 6 ms, once it is known that the arm is slow."""
    clock, other, calls = Clock(), Elsewhere(where), 0
    surprising: set[str] = set()

    def measure(arm: str, seed: int) -> float:
        nonlocal calls
        calls += 1
        if calls > quick:
            clock.now += 0.006
            if quick == 0 or arm in surprising:
                other.take_turn()
            surprising.add(arm)
        return sample(arm, seed)

    result = drive(measure, 60, arms=ARMS, seed=1, store=where, clock=clock)
    other.close()
    assert result.samples == 60
    assert other.turns == 60 - quick - (2 if quick else 0)


def test_quick_samples_share_a_turn(where: str) -> None:
    """By a clock on which a sample takes 1 ms, a turn has 50 of them, once the first eight have shown that."""
    clock = Clock()

    def measure(arm: str, seed: int) -> float:
        clock.now += 0.001
        return sample(arm, seed)

    drive(measure, 1000, arms=ARMS, seed=1, store=where, clock=clock)
    assert 1000 / 51 <= replay(where).turns <= 1000 / 50 + 10


def test_arrays_are_taken_in_a_turn_while_they_are_quick(where: str) -> None:
    """Each takes 1 ms for a value: arrays of 5 and more are slow."""
    clock, other = Clock(), Elsewhere(where)

    def measure(arm: str, size: int, seed: Any) -> Any:
        clock.now += 0.001 * size
        if size >= 10:
            other.take_turn()
        return np.array([sample(arm, int(each)) for each in seed])

    samplers: Any = measure
    result = drive(samplers, 800, arms=ARMS, seed=1, store=where, clock=clock)
    other.close()
    assert result.samples == 800
    assert other.turns > 5


@pytest.mark.parametrize("executor", [None, 3])
def test_one_in_flight_is_the_same_study_with_a_store_and_in_parts(where: str, executor: int | None) -> None:
    options: dict[str, Any] = {"arms": ARMS, "seed": 9, "executor": executor, "in_flight": 1}
    alone = brief(eq.estimate(sample, 150, **options))
    assert brief(eq.estimate(sample, 150, store=where, **options)) == alone
    parts = f"{where}-parts"
    for budget in (70, 71, 150):
        result = eq.estimate(sample, budget, store=parts, **options)
    assert brief(result) == alone
    assert differences(replay(where).study, replay(parts).study) == []


# ---- interrupts


@pytest.mark.parametrize("call", [1, 3, 50])
def test_an_interrupt_keeps_what_was_told_and_the_ticket_is_resumed_at_once(where: str, call: int) -> None:
    """
    Outside a turn as long as eight calls have not shown that samples are quick, inside one from then on.

    By a clock that stands still, all that is quick is one turn.
    """
    clock, seen = Clock(), list[tuple[str, int]]()

    def measure(arm: str, seed: int) -> float:
        seen.append((arm, seed))
        if len(seen) == call:
            raise KeyboardInterrupt
        return sample(arm, seed)

    with pytest.raises(KeyboardInterrupt):
        drive(measure, 100, arms=ARMS, seed=1, store=where, clock=clock)
    study = replay(where).study
    assert (study.ledger.samples, study.in_flight) == (call - 1, 1)
    # Nobody is waited for: the lease is over, as who had it said goodbye.
    result = drive(measure, 100, arms=ARMS, seed=1, store=where, clock=clock)
    assert seen[call] == seen[call - 1]
    assert len(seen) == 101
    assert Counter(kinds(where)) == {"ask": 100, "tell": 100}
    assert brief(result) == brief(eq.estimate(sample, 100, arms=ARMS, seed=1))


def test_an_interrupt_with_workers(where: str) -> None:
    """In the main thread, between an ask and its samples: the next run takes exactly the rest."""
    interrupts = iter([KeyboardInterrupt])

    def watch(progress: eq.Progress) -> None:
        if progress.samples >= 30 and progress.in_flight:
            for interrupt in interrupts:
                raise interrupt

    with pytest.raises(KeyboardInterrupt):
        drive(sample, 60, arms=ARMS, seed=1, store=where, clock=Clock(), executor=2, progress=watch)
    study = replay(where).study
    assert study.ledger.samples >= 30
    assert study.in_flight >= 1
    assert eq.estimate(sample, 60, arms=ARMS, seed=1, store=where).samples == 60
    assert Counter(kinds(where)) == {"ask": 60, "tell": 60}


# ---- whose tickets


def test_the_late_answer_of_a_ticket_that_was_taken_over_is_counted_once(where: str) -> None:
    """
    One driver hangs, another one is told that its lease is over, samples its ticket, and waits no longer.

    The value that comes first is kept, whatever the other one is.
    """
    hanging, go = threading.Event(), threading.Event()

    def slow(arm: str, seed: int) -> float:
        hanging.set()
        assert go.wait(HANG)
        return -1.0

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(functools.partial(eq.estimate, slow, 40, arms=ARMS, seed=1, store=where))
        assert hanging.wait(HANG)
        (owner,) = owners(where)
        second = pool.submit(functools.partial(eq.estimate, sample, 40, arms=ARMS, seed=1, store=where))

        def taken_over() -> bool:
            expire_leases(where, [owner])  # again and again, as it is renewed
            return second.done()

        until(taken_over, "the other one has all of it")
        assert second.result().samples == 40
        go.set()
        assert first.result(HANG).samples == 40
    assert Counter(kinds(where)) == {"ask": 40, "tell": 40}
    assert -1.0 not in {line.value for line in events(where)}


def test_a_late_failure_of_a_ticket_that_was_taken_over_is_none(where: str) -> None:
    hanging, go = threading.Event(), threading.Event()

    def broken(arm: str, seed: int) -> float:
        hanging.set()
        assert go.wait(HANG)
        raise OSError("the line is dead")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(functools.partial(eq.estimate, broken, 40, arms=ARMS, seed=1, store=where))
        assert hanging.wait(HANG)
        (owner,) = owners(where)
        second = pool.submit(functools.partial(eq.estimate, sample, 40, arms=ARMS, seed=1, store=where))

        def taken_over() -> bool:
            expire_leases(where, [owner])
            return second.done()

        until(taken_over, "the other one has all of it")
        go.set()
        assert first.result(HANG).samples == 40
    assert Counter(kinds(where)) == {"ask": 40, "tell": 40}


def test_a_driver_does_not_take_over_its_own_tickets(where: str) -> None:
    """Its lease is over while it samples, as on a machine that was asleep: the sample is not taken twice."""
    calls = Counter[int]()

    def measure(arm: str, seed: int) -> float:
        calls[seed] += 1
        if len(calls) % 10 == 0:
            expire_leases(where)
        return sample(arm, seed)

    clock = Clock()

    def passing(arm: str, seed: int) -> float:
        clock.now += 10.0  # a sweep is due in every turn
        return measure(arm, seed)

    assert drive(passing, 60, arms=ARMS, seed=1, store=where, executor=2, clock=clock).samples == 60
    assert set(calls.values()) == {1}


def test_a_late_answer_does_not_exceed_the_budget(where: str) -> None:
    """One that comes when another sample has its place is dropped; one that comes earlier is charged."""
    clock, early, last = Clock(), threading.Event(), threading.Event()
    calls, late = 0, dict[int, threading.Thread]()

    def measure(arm: str) -> float:
        nonlocal calls
        calls += 1
        mine = calls
        if mine in (5, 9):
            late[mine] = threading.current_thread()
            clock.jump(0.5)
            assert (early if mine == 5 else last).wait(HANG)
        if mine == 20:
            early.set()
            late[5].join(HANG)
        if mine == 31:
            last.set()
            late[9].join(HANG)
        return float(mine)

    found = drive(measure, 30, arms=ARMS, lease=0.5, store=where, clock=clock)
    assert (calls, found.samples, found.spent) == (31, 30, 30)
    told = [event.value or 0.0 for event in events(where) if event.kind == "tell"]
    assert sorted(told) == [float(mine) for mine in range(1, 32) if mine != 9]


# ---- the four numbers


def test_with_a_lease_the_four_numbers_add_up(where: str) -> None:
    """Some answers never come, one comes late, one is in flight: handed out = samples + in flight + given up."""
    clock, forever, given_up = Clock(), threading.Event(), threading.Event()
    calls, late = 0, threading.current_thread()

    def measure(arm: str) -> float:
        nonlocal calls, late
        calls += 1
        mine = calls
        if mine in (5, 9, 14):
            late = threading.current_thread() if mine == 9 else late
            clock.jump(0.5)
            assert (given_up if mine == 9 else forever).wait(HANG)
        if mine == 30:
            given_up.set()
            late.join(HANG)
        if mine == 40:
            raise OSError("no more")
        return float(mine)

    with pytest.raises(eq.EquipoiseError, match="no more"):
        drive(measure, 60, arms=ARMS, lease=0.5, store=where, clock=clock)
    forever.set()
    read = report.read(where)
    handed_out = kinds(where).count("ask")
    assert (handed_out, read.result.samples, read.in_flight, read.given_up) == (40, 37, 1, 2)
    answered = read.result.certificate.answered
    assert answered is not None
    assert (answered.asked - read.in_flight, answered.given_up) == (39, 2)
