"""Rows of a log as bytes, for a replica elsewhere."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from equipoise.store.database import Row
from equipoise.store.events import Damaged

# Turn, id, time, chain, and the length of the body that follows.
_HEAD: Final = struct.Struct("<q8sd8sI")


def pack(rows: Iterable[Row]) -> bytes:
    """Return rows as bytes."""
    return b"".join(_HEAD.pack(row.turn, row.id, row.at, row.chain, len(row.body)) + row.body for row in rows)


def unpack(packed: bytes) -> list[Row]:
    """Return the rows that `pack` was given; Damaged where the bytes cannot be some."""
    rows, at = [], 0
    while at < len(packed):
        if at + _HEAD.size > len(packed):
            raise Damaged("it is too short")
        turn, identity, when, chain, length = _HEAD.unpack_from(packed, at)
        at += _HEAD.size
        if at + length > len(packed):
            raise Damaged("it is too short")
        rows.append(Row(turn, identity, when, packed[at : at + length], chain))
        at += length
    return rows
