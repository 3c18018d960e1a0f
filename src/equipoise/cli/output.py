"""What commands print and write: tables, JSON, CSV files and progress bars."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from equipoise.base import paths, tables
from equipoise.base import terminal as people

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


def replace_unprintable() -> None:
    """Print ? for characters that the encoding of standard output or standard error lacks, as σ in Latin-1."""
    for stream in (sys.stdout, sys.stderr):
        # In an ASCII locale, Python has "surrogateescape", which fails just the same.
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="replace")


def console() -> Console:
    """Return the console that tables and sentences are printed on."""
    from rich.console import Console

    # No columns at all is how some programs say that they do not know.
    unknown = os.environ.get("COLUMNS") == "0"
    return Console(highlight=False, width=80 if unknown else None)


def print_json(value: Any) -> None:
    """Print a value as one line of JSON; NaN and infinities become null."""
    ready = tables.json_ready(value)
    text = json.dumps(ready, ensure_ascii=False, allow_nan=False)
    print(text if _encodable(text) else json.dumps(ready, allow_nan=False))


def _encodable(text: str) -> bool:
    """Return whether the encoding of standard output has all characters of a text."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Name the file in the error of whatever cannot be written in this context, as on a full disk."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"cannot write {error.filename or path}: {error.strerror or error}") from None


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows with the same columns as CSV, below their titles."""
    titles = list(rows[0])
    return tables.csv_text([titles, *([row[title] for title in titles] for row in rows)])


def replace_file(path: Path, text: str) -> None:
    """Write a text to a file, and keep what was there until all of it is written."""
    with writing(path):
        path = path.resolve()
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            part.write_text(text, encoding="utf-8")
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows with the same columns to a CSV file."""
    with writing(path):
        path.write_text(csv_text(rows), encoding="utf-8", newline="")


def check_writable(*to_write: Path | None, chart: Path | None = None, inputs: Iterable[Path | None] = ()) -> None:
    """
    Refuse what cannot be written, or must not be, before the work rather than after it.

    Parameters
    ----------
    *to_write
        The files to write; None for those that were not asked for.
    chart
        One more, with a chart in it.
    inputs
        What the command reads, none of which may be overwritten.
    """
    if chart:
        from equipoise import chart as charts

        charts.suffix(chart)
        charts.require()
    read = [path for path in inputs if path and paths.kind_of("a file to read", path) is not None]
    written: set[Path] = set()
    for path in filter(None, (*to_write, chart)):
        if paths.kind_of("a file to write", path) == paths.FOLDER:
            raise ValueError(f"cannot write {path}: it is a folder")
        place = path.resolve()
        if not place.parent.is_dir():
            raise ValueError(f"cannot write {path}: there is no folder {path.parent}")
        if not os.access(place if place.exists() else place.parent, os.W_OK):
            raise ValueError(f"cannot write {path}: permission denied")
        if place.exists() and any(map(place.samefile, read)):
            raise ValueError(f"cannot write {path}: this command reads it")
        if place in written:
            raise ValueError(f"cannot write {path} twice: give each output a file of its own")
        written.add(place)


def progress_bar(counts: bool = True, thread: bool = True) -> Progress:
    """
    Return a progress bar on standard error, which is shown if a person waits.

    A thread redraws it, or else its `refresh` does: what a program compiles first, it compiles in two processes only
    while it has one thread (`fork`).
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description:>8}"),
        BarColumn(),
        *((MofNCompleteColumn(),) if counts else ()),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        auto_refresh=thread,
        disable=not people.terminal(),
    )


def half_width(error: float) -> float:
    """Return the half-width of the 95% interval of a mean over simulated runs with this standard error."""
    return NormalDist().inv_cdf(0.975) * error
