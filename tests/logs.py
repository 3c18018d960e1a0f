"""What the log of a study says, and who waits for its tickets."""

from __future__ import annotations

import os

from equipoise.store import Event, Log
from equipoise.store.log import connect


def events(where: str | os.PathLike[str]) -> list[Event]:
    """Return all events of a log, in order."""
    with Log(where, write=False) as log:
        return list(log.events())


def kinds(where: str | os.PathLike[str]) -> list[str]:
    """Return the kinds of all events of a log, in order."""
    return [event.kind for event in events(where)]


def expire_leases(where: str | os.PathLike[str]) -> None:
    """End all leases by the database's clock, as time would."""
    database = connect(where)
    try:
        assert database.find()
        database.begin()
        database.execute("update equipoise_lease set deadline = 0 where study = ?", (database._study,))
        database.commit()
    finally:
        database.close()
