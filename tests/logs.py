"""What the log of a study says."""

from __future__ import annotations

import os

from equipoise.store import Event, Log


def events(where: str | os.PathLike[str]) -> list[Event]:
    """Return all events of a log, in order."""
    with Log(where, write=False) as log:
        return list(log.events())


def kinds(where: str | os.PathLike[str]) -> list[str]:
    """Return the kinds of all events of a log, in order."""
    return [event.kind for event in events(where)]
