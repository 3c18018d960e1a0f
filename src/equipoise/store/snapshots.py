"""
Snapshots: the state of a replica as plain arrays, from which another one may start.

A snapshot is a line of JSON and the bytes of some arrays, with a checksum before it. It says of which format, strategy
and platform it is, and after which turn; one that does not fit is passed over. The log stays the truth.
"""

from __future__ import annotations

import hashlib
import json
import platform
import struct
import sys
from typing import Any, Final

import numpy as np

from equipoise.base.errors import EquipoiseError
from equipoise.base.inputs import integer
from equipoise.compiled import fingerprint
from equipoise.ledger.state import ARM, HEADER, TICKET
from equipoise.numeric import moments
from equipoise.store.database import STORE_FORMAT, Row
from equipoise.store.header import Header
from equipoise.store.plain import UNREADABLE, dumps, loads
from equipoise.store.replica import Replica

_CHECK: Final = 16
_ROW: Final = 64
_LENGTH: Final = struct.Struct("<I")


def stamp(header: Header) -> str:
    """Return what a snapshot must have been made with to be of use."""
    strategy = header.strategy
    functions = (strategy.variance, strategy.floor, strategy.keep, strategy.share, strategy.pool, moments.add_shifted)
    made_with = [
        repr(strategy),
        [fingerprint(function) for function in functions],
        [strategy.own, strategy.sums, strategy.pooled, strategy.warmup],
        [repr(record) for record in (HEADER, ARM, TICKET)],
        [platform.machine(), sys.byteorder],
    ]
    return f"{STORE_FORMAT} {hashlib.blake2b(repr(made_with).encode(), digest_size=16).hexdigest()}"


def write(replica: Replica) -> bytes:
    """Return a snapshot of a replica."""
    arrays: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for name, value in {**replica.study.ledger.arrays(), **replica.arrays()}.items():
        (arrays if isinstance(value, np.ndarray) else rest)[name] = value
    head = {
        "made with": stamp(replica.header),
        "turn": replica.turns,
        "chain": replica.chain.hex(),
        "arrays": [[name, _kind(array.dtype), len(array)] for name, array in arrays.items()],
        "rest": dumps(rest),
    }
    line = json.dumps(head).encode()
    views = (np.ascontiguousarray(array).view(np.uint8).data for array in arrays.values())
    parts: list[bytes | memoryview] = [_LENGTH.pack(len(line)), line, *views]
    check = hashlib.blake2b(digest_size=_CHECK)
    for part in parts:
        check.update(part)
    return b"".join([check.digest(), *parts])  # the only copy: the state may be large


def read(header: Header, turn: int, chain: bytes, snapshot: bytes) -> Replica | None:
    """Return the replica that a snapshot holds; None where it is not one of this study after this turn."""
    if hashlib.blake2b(memoryview(snapshot)[_CHECK:], digest_size=_CHECK).digest() != snapshot[:_CHECK]:
        return None
    try:
        return _read(header, turn, chain, snapshot)
    except (*UNREADABLE, struct.error, SyntaxError, EquipoiseError):
        return None  # nothing that this version has written


def _read(header: Header, turn: int, chain: bytes, snapshot: bytes) -> Replica | None:
    start = _CHECK + _LENGTH.size
    (length,) = _LENGTH.unpack_from(snapshot, _CHECK)
    head = json.loads(snapshot[start : start + length])
    if (head["made with"], head["turn"], head["chain"]) != (stamp(header), turn, chain.hex()):
        return None
    saved: dict[str, Any] = loads(head["rest"])
    replica, at = Replica(header, turn, chain), start + length
    known = {**replica.study.ledger.arrays(), **replica.arrays()}
    for name, kind, size in head["arrays"]:
        dtype = known[name].dtype
        if json.dumps(kind) != json.dumps(_kind(dtype)):
            return None
        saved[name] = np.frombuffer(snapshot, dtype, integer("size", size, least=0), at)
        at += size * dtype.itemsize
    replica.study.ledger.restore(saved)
    replica.restore(saved)
    return replica


def _kind(dtype: np.dtype[Any]) -> Any:
    return dtype.descr if dtype.names else dtype.str


def weight(row: Row) -> int:
    """Return how many bytes a turn weighs, with what its row has besides the events."""
    return _ROW + len(row.body)


def due(tail: int, replica: Replica) -> bool:
    """Return whether the turns since the last snapshot, of so many bytes, outweigh the state."""
    ledger = replica.study.ledger
    return tail > max(1 << 20, TICKET.itemsize * ledger.issued + 8 * len(ledger.arrays()["memory"]))
