"""A study that writes its log."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from equipoise.arrays import Floats, Ints
from equipoise.inputs import shown
from equipoise.store.fold import begin, fold
from equipoise.store.log import PATIENCE, Event, Header, Patience, Store
from equipoise.store.plain import dumps


class Journal:
    """
    A study that writes what happens to its log or, without a store, one that does not.

    What happens is in `study` at once and is acknowledged by `commit`. A study that exists in the store continues as it
    was: its tickets in flight are in flight again, to be sampled again. Another budget than it had is an event of its
    log; nothing else about the study can change.

    Parameters
    ----------
    header
        What the study is made of. Without a seed, it has that of the store or, if it is new, a random one.
    where
        A path or a URL, as `Store` takes it; None for no store.
    patience
        As in `Store`.
    """

    def __init__(
        self, header: Header, where: str | os.PathLike[str] | None = None, patience: Patience = PATIENCE
    ) -> None:
        self.store: Store | None = None
        # By the tickets' ids.
        self._seconds = np.full(256, math.nan)
        fresh = secrets.randbits(63) if header.seed is None else header.seed
        if where is None:
            self.study, self.seed = begin(header), fresh
            return
        header = Header.from_json(header.to_json())  # so that it compares equal to the one in the store
        self.store = Store(where, write=True, patience=patience)
        try:
            if self.store.header is None:
                # The study first: if it refuses the header, nothing is left behind in the store.
                self.study = begin(header)
                self.seed = fresh
                self.store.begin(replace(header, seed=fresh, first_number=self.study.first_number))
            else:
                self.seed = self.store.header.seed or 0
                self._same(self.store.header, header if header.seed is not None else replace(header, seed=self.seed))
                self.study = begin(self.store.header)
                fold(self.study, self._noted(self.store.events()))
                if header.budget != self.study.budget:
                    self.set_budget(header.budget)
        except BaseException:
            self.store.close()
            raise

    @staticmethod
    def _same(kept: Header, given: Header) -> None:
        for field in fields(Header):
            if not field.compare or field.name == "budget":
                continue
            was, now = getattr(kept, field.name), getattr(given, field.name)
            if was != now and not (field.name == "arms" and tuple(was) == tuple(now)):
                raise ValueError(
                    f"{field.name} must be {shown(was)} to continue the study in the store, got {shown(now)}; "
                    "change it back or use another store"
                )

    # ---- durations of samples

    @property
    def seconds(self) -> Floats:
        """How long each ticket's sample took, by its id; NaN if that is not known."""
        return self._seconds

    def _note(self, tickets: int | Ints, seconds: Any) -> None:
        largest = tickets if isinstance(tickets, int) else int(tickets.max(initial=0))
        if largest >= len(self._seconds):
            more = np.full(2 * largest, math.nan)
            more[: len(self._seconds)] = self._seconds
            self._seconds = more
        self._seconds[tickets] = seconds

    def _noted(self, events: Iterable[Event]) -> Iterator[Event]:
        for line in events:
            if line.kind == "tell" and line.ticket is not None and line.seconds is not None:
                self._note(line.ticket, line.seconds)
            yield line

    # ---- what happens

    def ask(self, m: int) -> range:
        """Hand out up to m tickets of the strategy's choice; return their ids."""
        return self._asked(self.study.ledger.ask(m))

    def ask_for(self, places: Ints) -> range:
        """Hand out tickets for these arms; return their ids."""
        return self._asked(self.study.ledger.ask_for(places))

    def _asked(self, tickets: int) -> range:
        ledger = self.study.ledger
        ids = ledger.latest(tickets)
        if self.store is not None and tickets:
            self.store.asked(ids, ledger.arm_of[ids.start : ids.stop].tolist())
        return ids

    def tell(self, tickets: int | Sequence[int] | Ints, values: Any, seconds: Any) -> None:
        """
        Record the answer of a ticket, or of several (all or none), with the seconds each took.

        A ticket that was answered before with the same value is skipped.
        """
        if not isinstance(tickets, int):
            tickets = np.asarray(tickets, np.int64)
        self._note(tickets, seconds)
        if self.store is None:
            self.study.ledger.tell(tickets, values)
            return
        values = values + 0.0  # SQLite does not keep the sign of a zero
        before = self.study.ledger.answers(tickets)
        refused = False
        try:
            self.study.ledger.tell(tickets, values)
        except ValueError:
            refused = True
            raise
        finally:  # also where the strategy failed, as the samples are then kept
            if not refused:
                self._told(tickets, values, seconds, before)

    def _told(self, tickets: int | Ints, values: Any, seconds: Any, before: Any) -> None:
        """Append the answers of the tickets that had none before."""
        assert self.store is not None
        if isinstance(tickets, int):
            if math.isnan(before):
                self.store.append("tell", ticket=tickets, value=values, seconds=seconds)
            return
        new = np.isnan(before)
        self.store.told(tickets[new].tolist(), values[new].tolist(), seconds[new].tolist())

    def failed(self, ticket: int, attempt: int, text: str) -> None:
        """Record that sampling failed for a ticket; it stays in flight."""
        if self.store is not None:
            self.store.append("fail", ticket=ticket, value=float(attempt), text=text)

    def forget(self, ticket: int, why: str) -> None:
        """Give up a ticket; an answer that arrives later is still recorded."""
        self.study.ledger.forget(ticket)
        if self.store is not None:
            self.store.append("forget", ticket=ticket, text=why)

    def retire(self, place: int, why: str) -> None:
        """Retire an arm: no more of its samples are asked for."""
        self.study.ledger.retire(place)
        if self.store is not None:
            self.store.append("close", arm=place, text=why)

    def reopen(self, place: int) -> None:
        """Reopen a retired arm."""
        self.study.ledger.reopen(place)
        if self.store is not None:
            self.store.append("open", arm=place)

    def set_budget(self, budget: Any) -> None:
        """Change the budget."""
        self.study.set_budget(budget)
        if self.store is not None:
            self.store.append("budget", text=dumps(budget))

    def set_weights(self, weights: Floats | None) -> None:
        """Change the weights of the losses, in the arms' order; None for 1 each."""
        self.study.set_weights(None if weights is None else weights.tolist())
        if self.store is not None:
            self.store.append("weights", text=dumps(weights))

    def more(self, arm: Hashable, count: int, mean: float, m2: float) -> None:
        """Add samples that were taken elsewhere, by their moments."""
        mean, m2 = float(mean) + 0.0, float(m2) + 0.0
        place = self.study.arms.index(arm)
        self.study.tell_moments(arm, count, mean, m2)
        if self.store is not None:
            self.store.append("more", arm=place, text=dumps([count, mean, m2]))

    def started(self, settings: dict[str, Any]) -> None:
        """Record that a run begins, with its settings."""
        if self.store is not None:
            self.store.append("start", text=dumps(settings))

    def commit(self) -> None:
        """Acknowledge everything so far: it is saved when this returns."""
        if self.store is not None:
            self.store.commit()

    def close(self) -> None:
        """Close the store; what was not committed is lost."""
        if self.store is not None:
            self.store.close()
