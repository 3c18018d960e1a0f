"""A study and its log, in step."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np

from equipoise.arrays import Floats, Ints
from equipoise.errors import EquipoiseError
from equipoise.inputs import shown
from equipoise.store.fold import begin, fold
from equipoise.store.log import PATIENCE, Event, Header, Patience, Store
from equipoise.store.plain import dumps


class Journal:
    """
    A study that writes down what happens to it, or, without a store, one that does not.

    What happens is in `study` at once and is acknowledged by `commit`. A study in a store that was begun before goes on
    as it was: its tickets in flight are in flight again, to be sampled anew. A larger or smaller budget than it had is
    an event of its log; anything else about it cannot change.

    Parameters
    ----------
    header
        What the study is made of; without a seed, that of the store, or one of chance for a new study.
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
        header = Header.from_json(header.to_json())  # so that what was kept and what is given compare as equals
        self.store = Store(where, write=True, patience=patience)
        try:
            if self.store.header is None:
                # The study first: what it refuses leaves nothing behind in the store.
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
                    f"the study in the store has {field.name}={shown(was)}, and {shown(now)} was given; it goes on "
                    "with what it has, or begins anew in another store"
                )

    # ---- how long samples took

    @property
    def seconds(self) -> Floats:
        """How long each ticket's sample took, by its id; NaN where that is not known."""
        return self._seconds

    def _note(self, largest: int, ids: Any, seconds: Any) -> None:
        if largest >= len(self._seconds):
            more = np.full(2 * largest, math.nan)
            more[: len(self._seconds)] = self._seconds
            self._seconds = more
        self._seconds[ids] = seconds

    def _noted(self, events: Iterable[Event]) -> Iterator[Event]:
        for line in events:
            if line.kind == "tell" and line.ticket is not None and line.seconds is not None:
                self._note(line.ticket, line.ticket, line.seconds)
            yield line

    # ---- what happens

    def hand_out(self, m: int) -> tuple[Ints, Ints]:
        """Up to m tickets of the strategy's choice: their ids and their arms' places."""
        ids, arms = self.study.hand_out(m)
        if self.store is not None:
            self.store.asked(ids.tolist(), arms.tolist())
        return ids, arms

    def hand_out_one(self) -> tuple[int, int] | None:
        """One ticket: its id and its arm's place; None if there is none."""
        found = self.study.hand_out_one()
        if found is not None and self.store is not None:
            self.store.append("ask", ticket=found[0], arm=found[1])
        return found

    def hand_out_to(self, arms: Ints) -> Ints:
        """Tickets for these arms: their ids."""
        ids = self.study.hand_out_to(arms)
        if self.store is not None:
            self.store.asked(ids.tolist(), arms.tolist())
        return ids

    def take(self, ids: Ints, values: Floats, seconds: Floats) -> None:
        """
        Answers, each with the seconds it took; all or none.

        A ticket that was answered before with the same value is passed over.
        """
        if len(ids):
            self._note(int(ids.max()), ids, seconds)
        if self.store is None:
            self.study.take(ids, values)
            return
        values = values + 0.0  # SQLite does not keep the sign of a zero
        unanswered = ~np.isfinite(self.study.answers(ids))
        try:
            self.study.take(ids, values)
        except EquipoiseError:  # the strategy failed, and the samples are kept
            self.store.told(ids[unanswered].tolist(), values[unanswered].tolist(), seconds[unanswered].tolist())
            raise
        self.store.told(ids[unanswered].tolist(), values[unanswered].tolist(), seconds[unanswered].tolist())

    def take_one(self, ticket: int, value: float, seconds: float) -> None:
        """One answer, as `take` takes it."""
        self._note(ticket, ticket, seconds)
        if self.store is None:
            self.study.take_one(ticket, value)
            return
        value += 0.0
        answered = math.isfinite(self.study.answer(ticket))
        try:
            self.study.take_one(ticket, value)
        except ValueError:
            answered = True
            raise
        finally:  # also where the strategy failed, as the sample is then kept
            if not answered:
                self.store.append("tell", ticket=ticket, value=value, seconds=seconds)

    def failed(self, ticket: int, attempt: int, text: str) -> None:
        """Sampling for a ticket failed; it stays in flight."""
        if self.store is not None:
            self.store.append("fail", ticket=ticket, value=float(attempt), text=text)

    def forget(self, ticket: int, why: str) -> None:
        """Give a ticket up; should its answer come, `take` takes it."""
        self.study.forget(self.study.ticket(ticket))
        if self.store is not None:
            self.store.append("forget", ticket=ticket, text=why)

    def close_arm(self, place: int, why: str) -> None:
        """Ask for no more of an arm."""
        self.study.close(self.study.arms[place])
        if self.store is not None:
            self.store.append("close", arm=place, text=why)

    def open_arm(self, place: int) -> None:
        """Ask for an arm again."""
        self.study.open(self.study.arms[place])
        if self.store is not None:
            self.store.append("open", arm=place)

    def set_budget(self, budget: Any) -> None:
        """Change the budget."""
        self.study.set_budget(budget)
        if self.store is not None:
            self.store.append("budget", text=dumps(budget))

    def set_weights(self, weights: Floats | None) -> None:
        """Change how much each arm's loss matters, in the arms' order; None for 1 each."""
        self.study.set_weights(None if weights is None else weights.tolist())
        if self.store is not None:
            self.store.append("weights", text=dumps(weights))

    def more(self, arm: Hashable, count: int, mean: float, m2: float) -> None:
        """Samples from elsewhere."""
        mean, m2 = float(mean) + 0.0, float(m2) + 0.0
        place = self.study.arms.index(arm)
        self.study.tell_moments(arm, count, mean, m2)
        if self.store is not None:
            self.store.append("more", arm=place, text=dumps([count, mean, m2]))

    def started(self, settings: dict[str, Any]) -> None:
        """A run begins, or begins again."""
        if self.store is not None:
            self.store.append("start", text=dumps(settings))

    def commit(self) -> None:
        """Acknowledge: all that happened is kept when this returns."""
        if self.store is not None:
            self.store.commit()

    def close(self) -> None:
        """Let go of the store, with what was not committed."""
        if self.store is not None:
            self.store.close()
