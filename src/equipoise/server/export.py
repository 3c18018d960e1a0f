"""The log of a study as a file: one event a row, made in parts."""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from pydantic_core import to_json

from equipoise.base.inputs import install_hint
from equipoise.base.tables import csv_text
from equipoise.server.commands import plain_arm
from equipoise.store import Event, Log
from equipoise.store.database import Database

TYPES: Final = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl",
    "parquet": "application/vnd.apache.parquet",
}
FORMATS: Final = tuple(TYPES)
COLUMNS: Final = ("turn", "at", "kind", "ticket", "arm", "value", "seconds", "text")

# Events of one part; and of one row group of Parquet.
_PART: Final = 4096
_ROWS: Final = 1 << 16
_BYTES: Final = 1 << 16


def chunks(where: str | Database, kind: str) -> Generator[bytes, None, None]:
    """
    Return the log in parts, up to its last turn now.

    Parameters
    ----------
    where
        The study, as a log takes it.
    kind
        One of FORMATS. Parquet is written to temporary files first, as its table of contents is at its end.
    """
    if kind == "parquet":
        try:
            import polars  # noqa: F401
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                f"Parquet needs polars, which is not installed; {install_hint('tables')}"
            ) from None
    made = _written(where, kind)
    next(made)  # opens the log: a study that is not there is refused before a response begins
    return made


def _written(where: str | Database, kind: str) -> Generator[bytes, None, None]:
    with Log(where, write=False) as log:
        yield b""
        arms = [plain_arm(arm) for arm in log.header.arms]
        found = (_row(event, arms) for event in log.events())
        parts = iter(lambda: list(itertools.islice(found, _ROWS if kind == "parquet" else _PART)), [])
        if kind == "parquet":
            yield from _parquet(parts)
        elif kind == "csv":
            yield _csv([COLUMNS])
            yield from map(_csv, parts)
        else:
            for part in parts:
                yield b"".join(to_json(dict(zip(COLUMNS, row, strict=True))) + b"\n" for row in part)


def _row(event: Event, arms: list[Any]) -> tuple[Any, ...]:
    arm = None if event.arm is None else arms[event.arm]
    seconds = None if event.seconds is None or math.isnan(event.seconds) else event.seconds
    return (*event[:4], arm, event.value, seconds, event.text)


def _csv(rows: Iterable[tuple[Any, ...]]) -> bytes:
    return csv_text(rows).encode("utf-8", "replace")


def _parquet(parts: Iterator[list[tuple[Any, ...]]]) -> Iterator[bytes]:
    """Write parts to files of their own, then all of them into one, so that no more than a part is in memory."""
    import polars as pl

    kinds = {
        "turn": pl.Int64, "at": pl.Float64, "kind": pl.String, "ticket": pl.Int64, "arm": pl.String,
        "value": pl.Float64, "seconds": pl.Float64, "text": pl.String,
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="equipoise-") as folder:
        written: list[Path] = []
        for part in itertools.chain(parts, [[]]):  # the last one is empty, for a log without events
            rows = [(*row[:4], None if row[4] is None else str(row[4]), *row[5:]) for row in part]
            written.append(Path(folder, f"{len(written)}.parquet"))
            pl.DataFrame(rows, kinds, orient="row").write_parquet(written[-1])
            del part, rows
        whole = Path(folder, "log.parquet")
        pl.scan_parquet(written).sink_parquet(whole)
        with whole.open("rb") as file:
            while chunk := file.read(_BYTES):
                yield chunk
