"""
What can happen to a study, and how one turn's events are packed.

======== ============================ ==================================================================
kind     place, numbers, text         what happened
======== ============================ ==================================================================
ask      arm                          a ticket was handed out: they are numbered 0, 1, 2, ...
tell     ticket, value, seconds       its answer arrived, after these seconds of sampling (NaN: unknown)
cost     ticket, value                what the sample really cost; its answer or decline follows
decline  ticket                       who was asked did not want to answer
forget   ticket, text: why            the ticket was given back
fail     ticket, text: the error      sampling failed; the ticket stays in flight
retire   arm, text: why               no more samples of the arm are asked for
reopen   arm                          they are asked for again
budget   text: JSON                   the budget was changed
weights  text: JSON                   the weights of the losses were changed
goal     text: JSON                   the precision, its level or its intervals were changed
moments  arm, text: JSON              samples taken elsewhere were added: count, mean, M2
======== ============================ ==================================================================

A turn's events are packed column by column, little-endian: how many there are (4 bytes), the kind of each (1), the
place of each (4), the values of those that have one (8), the seconds of those that have some (4), and the texts of
those that have one, as a JSON list. So an ask takes 5 bytes and a tell 17, and many turns are read at once.
"""

from __future__ import annotations

import json
import math
import struct
import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from equipoise.base.arrays import Bools, Floats, Ints

KINDS: Final = (
    "ask", "tell", "cost", "decline", "forget", "fail", "retire", "reopen", "budget", "weights", "goal", "moments",
)  # fmt: skip
ASK, TELL, COST, DECLINE, FORGET, FAIL, RETIRE, REOPEN, BUDGET, WEIGHTS, GOAL, MOMENTS = range(len(KINDS))

# Which kinds have a value, seconds and a text; and whether their place is an arm, a ticket or nothing.
VALUED: Final = (TELL, COST)
TIMED: Final = (TELL,)
WORDED: Final = (FORGET, FAIL, RETIRE, BUDGET, WEIGHTS, GOAL, MOMENTS)
OF_ARM: Final = (ASK, RETIRE, REOPEN, MOMENTS)
OF_TICKET: Final = (TELL, COST, DECLINE, FORGET, FAIL)
# Those that a cost belongs to.
SETTLING: Final = (TELL, DECLINE)

_WORDLESS: Final = bytes(kind for kind in range(len(KINDS)) if kind not in WORDED)

# By kind, a flag for each value of a byte.
_TABLES: Final[dict[tuple[int, ...], Bools]] = {
    kinds: np.isin(np.arange(256), kinds) for kinds in (VALUED, TIMED, SETTLING)
}

_COUNT: Final = struct.Struct("<I")
_SWAP: Final = sys.byteorder == "big"


class Damaged(ValueError):
    """A turn that no version of equipoise has written."""


class Event(NamedTuple):
    """
    One event of a log, for readers.

    Attributes
    ----------
    turn, at
        The turn that wrote it, and when, in seconds since 1970.
    kind
        One of `KINDS`.
    ticket, arm
        The id of the ticket or the place of the arm that it is about; an ask has both.
    value, seconds, text
        What else it says; None where it does not.
    """

    turn: int
    at: float
    kind: str
    ticket: int | None
    arm: int | None
    value: float | None
    seconds: float | None
    text: str | None


class Draft:
    """The events of a turn while it is taken."""

    def __init__(self) -> None:
        self.kinds = bytearray()
        self._places = array("I")
        self._values = array("d")
        self._seconds = array("f")
        self._texts: list[str] = []

    def add(self, kind: int, place: int = 0, text: str | None = None) -> None:
        """Add an event without numbers."""
        self.kinds.append(kind)
        self._places.append(place)
        if text is not None:
            self._texts.append(text)

    def asked(self, arms: Sequence[int]) -> None:
        """Add an ask for each of these arms."""
        self.kinds.extend(bytes(len(arms)))
        self._places.extend(arms)

    def told(self, ticket: int, value: float, seconds: float) -> None:
        """Add an answer."""
        self.kinds.append(TELL)
        self._places.append(ticket)
        self._values.append(value)
        self._seconds.append(seconds)

    def told_many(self, tickets: Sequence[int], values: Sequence[float], seconds: Sequence[float]) -> None:
        """Add many answers."""
        self.kinds.extend(bytes([TELL]) * len(tickets))
        self._places.extend(tickets)
        self._values.extend(values)
        self._seconds.extend(seconds)

    def cost(self, ticket: int, cost: float) -> None:
        """Add what a sample cost."""
        self.kinds.append(COST)
        self._places.append(ticket)
        self._values.append(cost)

    def pack(self) -> bytes:
        """Return all of it as bytes."""
        columns = (self._places, self._values, self._seconds)
        if _SWAP:
            columns = tuple(array(column.typecode, column) for column in columns)  # type: ignore[assignment]
            for column in columns:
                column.byteswap()
        texts = json.dumps(self._texts, separators=(",", ":")).encode() if self._texts else b""
        return b"".join((_COUNT.pack(len(self.kinds)), self.kinds, *(column.tobytes() for column in columns), texts))


class Events(NamedTuple):
    """
    Many events by column, in order.

    Attributes
    ----------
    kinds, places
        Of each event; the place is that of an arm or the id of a ticket.
    values, seconds
        Of each event; NaN for those that have none.
    texts
        By the position of the event.
    """

    kinds: npt.NDArray[np.uint8]
    places: Ints
    values: Floats
    seconds: Floats
    texts: dict[int, str]

    def part(self, start: int, stop: int) -> Events:
        """Return those from one position up to another."""
        cut = slice(start, stop)
        texts = {j - start: text for j, text in self.texts.items() if start <= j < stop}
        return Events(self.kinds[cut], self.places[cut], self.values[cut], self.seconds[cut], texts)


def are(kinds: npt.NDArray[np.uint8], some: tuple[int, ...]) -> Bools:
    """Return which events are of some kinds; a turn is short, and this is quicker than `numpy.isin`."""
    return _TABLES[some][kinds]


def asks_in(body: bytes) -> int:
    """Return how many tickets a turn hands out, whose body can be unpacked."""
    return body.count(ASK, 4, 4 + _COUNT.unpack_from(body)[0])


def unpack(bodies: Iterable[bytes]) -> Events:
    """Return the events of several turns, in order; Damaged where a body cannot be one."""
    all_kinds, all_places, all_values, all_seconds = [], [], [], []
    texts: dict[int, str] = {}
    done = 0
    for body in bodies:
        if len(body) < 4:
            raise Damaged("it is too short")
        (n,) = _COUNT.unpack_from(body)
        kinds = body[4 : 4 + n]
        places_end = 4 + 5 * n
        told = kinds.count(TELL)
        values_end = places_end + 8 * (told + kinds.count(COST))
        end = values_end + 4 * told
        if len(kinds) < n or len(body) < end:
            raise Damaged("it is too short")
        all_kinds.append(kinds)
        all_places.append(body[4 + n : places_end])
        all_values.append(body[places_end:values_end])
        all_seconds.append(body[values_end:end])
        if len(body) > end or kinds.translate(None, _WORDLESS):
            texts |= _texts(kinds, body[end:], done)
        done += n
    of_kind = np.frombuffer(b"".join(all_kinds), np.uint8)
    if len(of_kind) and of_kind.max() >= len(KINDS):
        raise Damaged(f"it has an event of the unknown kind {int(of_kind.max())}")
    values, seconds = np.full(done, math.nan), np.full(done, math.nan)
    values[are(of_kind, VALUED)] = np.frombuffer(b"".join(all_values), "<f8")
    seconds[are(of_kind, TIMED)] = np.frombuffer(b"".join(all_seconds), "<f4")
    places = np.frombuffer(b"".join(all_places), "<u4").astype(np.int64)
    return Events(of_kind, places, values, seconds, texts)


def _texts(kinds: bytes, packed: bytes, first: int) -> dict[int, str]:
    """Return the texts of a turn's events by their positions, of which the first is `first`."""
    try:
        found: Any = json.loads(packed or b"[]")
    except (ValueError, RecursionError):
        raise Damaged("its texts cannot be read") from None
    where = [first + j for j, kind in enumerate(kinds) if kind in WORDED]
    if not isinstance(found, list) or len(found) != len(where) or not all(isinstance(text, str) for text in found):
        raise Damaged("its texts do not match its events")
    return dict(zip(where, found, strict=True))
