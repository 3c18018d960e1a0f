"""Snapshots are written when they are due, and nothing but time is saved by them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.base.errors import EquipoiseError
from equipoise.store import Header, Log, Turn, differences, replay, snapshots
from equipoise.store.log import connect
from equipoise.store.memory import Memory
from equipoise.strategies import BAS, resolve
from tests.unit.store.living import header, live


def kept(where: str) -> list[int]:
    """The turns of the snapshots that a store has."""
    database = connect(where)
    database.find()
    found = [turn for turn, _ in database.snapshots()]
    database.close()
    return found


def test_when_one_is_due() -> None:
    """Once the turns since the last one outweigh the state, and not before a megabyte."""
    small = Memory(Header(("a", "b"), resolve("auto"), None, None, 1)).replica
    assert not snapshots.due(1 << 20, small)
    assert snapshots.due((1 << 20) + 1, small)
    small.study.ledger.ask(200_000)
    assert not snapshots.due((1 << 20) + 1, small)
    assert snapshots.due(200_000 * 40, small)


def many(turn: Turn, m: int = 10_000) -> None:
    ids = np.array(turn.ask(m))
    turn.tell_many(ids, np.sin(ids), np.zeros(len(ids)))


def test_they_are_written_outside_turns(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every 220 kB of a turn count; the snapshot is in a transaction of its own, after that of the turn."""
    with Log(where, Header(("a", "b"), resolve("auto"), None, None, 1)) as log:
        for expected in ([], [], [], [], [5], [5], [5]):
            log.turn(many)
            assert kept(where) == expected
        commits: list[int] = []
        commit = log._database.commit

        def counted() -> None:
            commits.append(log._tail)
            commit()

        monkeypatch.setattr(log._database, "commit", counted)
        while len(kept(where)) == 1:
            commits.clear()
            log.turn(many)
        assert len(commits) == 2
        assert kept(where) == [log.replica.turns, 5]
    with Log(where) as log:
        assert log._snapshot == log.replica.turns
        assert differences(replay(where).study, log.study) == []
        log.turn(many)
        assert differences(replay(where).study, log.study) == []


def test_who_follows_writes_none_that_is_there(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two processes for which one is due, one writes it."""
    monkeypatch.setattr(snapshots, "due", lambda tail, replica: tail > 1000)
    with Log(where, header()) as one, Log(where) as two:
        one.turn(lambda turn: turn.ask(300))
        assert kept(where) == [1]
        two.turn(lambda turn: turn.ask(1))
        assert kept(where) == [1]
        two.turn(lambda turn: turn.ask(300))
        assert kept(where) == [3, 1]


def test_one_that_cannot_be_written_does_no_harm(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "due", lambda tail, replica: tail > 0)

    def full(*given: Any) -> None:
        raise EquipoiseError("the disk is full")

    with Log(where, header()) as log:
        monkeypatch.setattr(log._database, "keep_snapshot", full)
        for _ in range(3):
            log.turn(lambda turn: turn.ask(1))
        assert (log.replica.turns, kept(where)) == (3, [])


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"populations": (40, None, 3000)},
        {"options": {"costs": [1, 2, 3.5]}},
        {"options": {"objective": 2, "weights": [1, 2, 3]}},
    ],
    ids=["plain", "populations", "costs", "weights"],
)
@pytest.mark.parametrize("strategy", ["auto", "two-stage", "b-as"])
def test_it_goes_on_from_one_to_the_bit(tmp_path: Path, strategy: str, more: dict[str, Any]) -> None:
    """Whatever a strategy keeps, and whatever is retired, in flight, given back or paid."""
    where = str(tmp_path / "study.db")
    with Log(where, header(strategy, support=(-50, 50), **more)) as log:
        live(log, 200, seed=1, value=lambda rng: rng.gauss(0, 3))
        log._write_snapshot()
        live(log, 60, seed=2, value=lambda rng: rng.gauss(0, 3))
    with Log(where) as log:
        assert log._snapshot == kept(where)[0] > 0
        assert differences(replay(where).study, log.study) == []
        live(log, 60, seed=3, value=lambda rng: rng.gauss(0, 3))
        truth = replay(where)
        assert differences(truth.study, log.study) == []
        assert truth.counts == log.replica.counts
        for name in ("judged", "settled"):
            assert getattr(truth, name).tolist() == getattr(log.replica, name).tolist()
        issued = np.arange(truth.study.ledger.issued)
        assert np.array_equal(truth.numbers(issued), log.replica.numbers(issued))
        assert np.array_equal(truth.seconds[issued], log.replica.seconds[issued], equal_nan=True)
        assert (truth.began, truth.latest) == (log.replica.began, log.replica.latest)
        assert truth.study.result().to_dict() == log.study.result().to_dict()


def test_what_a_stamp_depends_on() -> None:
    """The strategy and its parameters, not the budget or the arms."""
    one = header()
    assert snapshots.stamp(one) == snapshots.stamp(dataclasses.replace(one, budget=7, arms=("x",)))
    others = [header("uniform"), header("b-as"), header(BAS(exploration=0.25))]
    assert len({snapshots.stamp(each) for each in (one, *others)}) == 4


def test_every_bit_counts(tmp_path: Path) -> None:
    """A snapshot with any bit flipped, or cut anywhere, is passed over."""
    where = str(tmp_path / "study.db")
    with Log(where, header()) as log:
        live(log, 30, seed=1)
        replica = log.replica
        good = snapshots.write(replica)
        turn, chain = replica.turns, replica.chain
        assert snapshots.read(log.header, turn, chain, good) is not None
        assert snapshots.read(log.header, turn + 1, chain, good) is None
        assert snapshots.read(log.header, turn, bytes(8), good) is None
        assert snapshots.read(header("uniform"), turn, chain, good) is None
        for at in range(0, len(good), 101):
            flipped = bytearray(good)
            flipped[at] ^= 1 << at % 8
            assert snapshots.read(log.header, turn, chain, bytes(flipped)) is None
            assert snapshots.read(log.header, turn, chain, good[:at]) is None
