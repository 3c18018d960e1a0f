"""What the log of a study says, and who waits for its tickets."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing

from equipoise.store import Event, Log
from equipoise.store.log import connect


def events(where: str | os.PathLike[str]) -> list[Event]:
    """Return all events of a log, in order."""
    with Log(where, write=False) as log:
        return list(log.events())


def kinds(where: str | os.PathLike[str]) -> list[str]:
    """Return the kinds of all events of a log, in order."""
    return [event.kind for event in events(where)]


def owners(where: str | os.PathLike[str]) -> set[int]:
    """Return the numbers of those who wait for tickets."""
    with closing(connect(where, write=False)) as database:
        assert database.find()
        sql = "select distinct owner from equipoise_lease where study = ?"
        return {owner for (owner,) in database.execute(sql, (database._study,))}


def leases_over(where: str | os.PathLike[str], after: float) -> list[int]:
    """Return the tickets whose leases are over so many seconds from now, by the database's clock."""
    with closing(connect(where, write=False)) as database:
        assert database.find()
        sql = f"select ticket from equipoise_lease where study = ? and deadline < {database.clock} + ? order by ticket"
        return [ticket for (ticket,) in database.execute(sql, (database._study, after))]


def expire_leases(where: str | os.PathLike[str], of: Iterable[int] | None = None) -> None:
    """End the leases of some owners, or all, by the database's clock, as time would."""
    ended = owners(where) if of is None else of
    with closing(connect(where)) as database:
        assert database.find()
        database.begin()
        for owner in ended:
            database.renew(owner, -1.0)
        database.commit()
