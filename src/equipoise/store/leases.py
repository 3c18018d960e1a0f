"""Leases: who samples which ticket, and what becomes of the tickets of the dead."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections.abc import Sequence

from equipoise.base.errors import EquipoiseError
from equipoise.store.database import VISITOR, Lease
from equipoise.store.log import Log, connect
from equipoise.store.turn import Turn

# How long a driver is waited for that shows no sign of life; and a visitor, unless an ask says otherwise.
DRIVER_SECONDS = 30.0
VISITOR_SECONDS = 3600.0


def sweep(
    turn: Turn, owner: int = VISITOR, seconds: float = DRIVER_SECONDS, leases: Sequence[Lease] | None = None
) -> list[int]:
    """
    Forget the tickets of visitors who are waited for in vain, and take over those of drivers who are dead.

    Parameters
    ----------
    turn
        The turn.
    owner, seconds
        The driver who takes over, and for how long; a visitor takes over nothing.
    leases
        Of this turn, where they are known already.

    Returns
    -------
    list of int
        The tickets that were taken over, in the order of asking: to be sampled again, under the same ticket and with
        the same seed.
    """
    taken = []
    for lease in turn.leases() if leases is None else leases:
        if not lease.over or lease.owner == owner != VISITOR:  # what is one's own is being sampled, however late
            continue
        if lease.visiting:
            turn.forget(lease.ticket, "no answer in time")
        elif owner != VISITOR:
            taken.append(lease.ticket)
    if taken:
        turn.take_over(taken, owner, seconds)
    return taken


class Owner:
    """
    A driver as an owner of tickets, who is alive until it is closed or its process ends.

    A thread with a connection of its own renews the leases, so that a sampler may take as long as it likes.

    Parameters
    ----------
    log, where
        The log, and where it is.
    seconds
        How long the driver is waited for without a sign of life.

    Attributes
    ----------
    number
        By which others know it.
    """

    def __init__(self, log: Log, where: str | os.PathLike[str], seconds: float) -> None:
        self.number, self.seconds = secrets.randbits(47) + 1, seconds
        self._log, self._where = log, where
        self._ended = threading.Event()
        log.hold(self.number)
        threading.Thread(target=self._renew, daemon=True, name="equipoise-leases").start()

    def _renew(self) -> None:
        database = None
        while not self._ended.wait(self.seconds / 3):
            try:
                if database is None:
                    database = connect(self._where)
                    database.find()
                database.begin()
                try:
                    database.renew(self.number, self.seconds)
                    database.commit()
                finally:
                    database.rollback()
            except Exception:  # the driver notices for itself that a store is away
                if database is not None:
                    database.close()
                database = None
        if database is not None:
            database.close()

    def close(self) -> None:
        """Let others have the tickets at once."""
        self._ended.set()
        with contextlib.suppress(EquipoiseError):  # then they wait until the lease is over
            self._log.release(self.number)
