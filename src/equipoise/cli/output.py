"""What commands print and write: tables, JSON, CSV files and progress bars."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from equipoise import people, tables

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


def console() -> Console:
    """Return the console that tables and sentences are printed on."""
    from rich.console import Console

    return Console(highlight=False)


def print_json(value: Any) -> None:
    """Print a value as one line of JSON; NaN and infinities become null."""
    print(json.dumps(tables.json_ready(value), ensure_ascii=False, allow_nan=False))


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows with the same columns as CSV."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows with the same columns to a CSV file."""
    path.write_text(csv_text(rows), encoding="utf-8", newline="")


def check_writable(*paths: Path | None) -> None:
    """Refuse a file in a folder that does not exist, before the work rather than after it."""
    for path in paths:
        if path and not path.absolute().parent.is_dir():
            raise ValueError(f"cannot write {path}: there is no folder {path.parent}")


def check_chart(path: Path | None) -> None:
    """Refuse a chart that cannot be drawn, before the work rather than after it."""
    if path:
        from equipoise import chart

        check_writable(path)
        chart.suffix(path)
        chart.require()


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
