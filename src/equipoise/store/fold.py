"""Rebuild a study from its log."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import groupby
from operator import attrgetter

import numpy as np

from equipoise.errors import EquipoiseError
from equipoise.store.log import Event, Header, Store
from equipoise.store.plain import loads
from equipoise.study import Study


def begin(header: Header) -> Study:
    """Return the study of a header, before anything has happened."""
    study = Study(
        header.arms,
        budget=header.budget,
        strategy=header.strategy,
        support=header.support,
        populations=header.populations,
        **header.options,
    )
    # The same in every process that opens the log, so that a ticket from before a restart is known after it.
    if header.first_number is not None:
        study.first_number = header.first_number
    return study


def replay(store: Store) -> Study:
    """
    Return the study as the log's writer had it, to the bit: the fold of its events.

    The arms of tickets are read from the log rather than decided again, so that a log that was written by another
    version of a strategy still says what happened.
    """
    if store.header is None:
        raise ValueError(f"there is no study in {store.name}")
    study = begin(store.header)
    fold(study, store.events())
    return study


def fold(study: Study, events: Iterable[Event]) -> None:
    """Apply events to a study."""
    for kind, group in groupby(events, key=attrgetter("kind")):
        lines = list(group)
        if kind == "ask":
            study.ledger.ask_for(np.array([line.arm for line in lines]))
        elif kind == "tell":
            ids = np.array([line.ticket for line in lines])
            # A strategy that returned an invalid variance did so when the log was written, and the sample was kept.
            with suppress(EquipoiseError):
                study.ledger.tell(ids, np.array([line.value for line in lines], dtype=float))
        else:
            for line in lines:
                _apply(study, line)


def _apply(study: Study, line: Event) -> None:
    with suppress(EquipoiseError):
        if line.kind == "forget":
            study.ledger.forget(_number(line.ticket))
        elif line.kind == "close":
            study.ledger.retire(_number(line.arm))
        elif line.kind == "open":
            study.ledger.reopen(_number(line.arm))
        elif line.kind == "budget":
            study.set_budget(loads(line.text or "null"))
        elif line.kind == "weights":
            study.set_weights(loads(line.text or "null"))
        elif line.kind == "more":
            study.tell_moments(study.arms[_number(line.arm)], *loads(line.text or "null"))


def reweighed(study: Study, header: Header) -> bool:
    """Whether the weights of a study were set while it ran, rather than given by its header."""
    goal = study.objective
    return goal.weights is not None and goal.shares is None and header.options.get("weights") is None


def _number(found: int | None) -> int:
    if found is None:
        raise EquipoiseError("an event of the log has no ticket or no arm")
    return found


def differences(a: Study, b: Study) -> list[str]:
    """Return in what two studies differ, of all that decisions and results depend on; nothing if they agree."""
    one, other = a.ledger.fingerprint(), b.ledger.fingerprint()
    return [name for name in one if one[name] != other[name]]
