"""A writer that is stopped within a turn does not hold the study for ever, however far it has come."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from equipoise.store import Header, Log
from equipoise.store import postgres as room
from equipoise.store.postgres import Postgres
from equipoise.strategies import resolve
from tests.waiting import until

HEADER = Header(("a", "b"), resolve("auto"), None, 100, 1)


def settle_and_grant(database: Postgres) -> None:
    database.settle([1, 2, 3])
    database.grant([(4, 5, 30.0), (5, 5, 30.0)])


STEPS: dict[str, Callable[[Postgres], object]] = {
    "begun": lambda database: None,
    "read": lambda database: database.leases(),
    "settled": lambda database: database.settle([1, 2, 3]),
    "granted": lambda database: database.grant([(ticket, 5, 30.0) for ticket in range(300)]),
    "both": settle_and_grant,
    "remembered": lambda database: database.remember([(b"a call", range(2))]),
}


@pytest.mark.parametrize("step", STEPS)
def test_an_idle_transaction_is_ended(postgres: str, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = f"{postgres}#{uuid.uuid4().hex}"
    with Log(place, HEADER) as log, Log(place) as other:
        database = log._database
        assert isinstance(database, Postgres)
        with monkeypatch.context() as patch:
            patch.setattr(room, "_BEGIN", room._BEGIN.replace("10s", "100ms"))
            database.begin()
        STEPS[step](database)
        mine = database._connection.info.backend_pid
        sql = "select 1 from pg_stat_activity where pid = ?"
        until(lambda: not other._database.execute(sql, (mine,)), "the server has ended the transaction")
        other.turn(lambda turn: turn.ask(1))
        assert log.turn(lambda turn: turn.ask(1)) == range(1, 2)
