"""Columns and groups of a CSV or Parquet table as populations."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.arrays import Floats
from equipoise.inputs import did_you_mean, shown

Columns = dict[str, list[Any]]


def read(path: Path) -> Columns:
    """The columns of a table; cells of a CSV file are texts, empty ones None."""
    kind = path.suffix.lower()
    if kind not in (".csv", ".tsv", ".parquet"):
        raise ValueError(f"table={path.name!r} will not do; a .csv, .tsv or .parquet file will")
    if not path.is_file():
        raise ValueError(f"there is no table {path}")
    if kind == ".parquet":
        try:
            import polars
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                'a Parquet table needs polars, which is not installed: pip install "equipoise[tables]"'
            ) from None
        try:
            frame = polars.read_parquet(path)
        except Exception as error:  # polars has an exception of its own for each kind of damage
            raise ValueError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from None
        return {name: frame.get_column(name).to_list() for name in frame.columns}
    with path.open(newline="", encoding="utf-8-sig") as file:
        try:
            head, *rows = csv.reader(file, delimiter="\t" if kind == ".tsv" else ",", strict=True)
        except (ValueError, csv.Error) as error:
            said = f": {error}" if isinstance(error, csv.Error | UnicodeDecodeError) else "; it is empty"
            raise ValueError(f"{path} cannot be read as a table with a line of titles{said}") from None
    rows = [row for row in rows if row]
    for line, row in enumerate(rows, start=2):
        if len(row) != len(head):
            raise ValueError(f"row {line} of {path} has {len(row)} cells, and there are {len(head)} titles")
    if len(set(head)) < len(head):
        twice = next(name for name in head if head.count(name) > 1)
        raise ValueError(f"two columns of {path} are called {twice!r}; titles must differ")
    return {name: [row[j].strip() or None for row in rows] for j, name in enumerate(head)}


def groups(table: Columns, group: str, value: str, arms: Sequence[Any] | None, drop: bool) -> dict[Any, Floats]:
    """The numbers of one column for each value of another, in the order of appearance or of `arms`."""
    keys, cells = _column(table, "group", group), _column(table, "value", value)
    places: dict[Any, list[int]] = {}
    for i, key in enumerate(keys):
        places.setdefault(key, []).append(i)
    if None in places:
        if not drop:
            raise ValueError(
                f'row {places[None][0] + 2} has no {group!r}; fill it in, or leave such rows out by missing = "drop"'
            )
        del places[None]
    if arms is not None:
        unknown = [arm for arm in arms if arm not in places]
        if unknown:
            raise ValueError(f"no row has {group} = {shown(unknown[0])}{did_you_mean(unknown[0], map(str, places))}")
        places = {arm: places[arm] for arm in arms}
    return {key: _numbers([(i, cells[i]) for i in rows], value, key, drop) for key, rows in places.items()}


def columns(table: Columns, names: Sequence[str], drop: bool) -> dict[Any, Floats]:
    """The numbers of some columns."""
    return {name: _numbers(list(enumerate(_column(table, "columns", name))), name, name, drop) for name in names}


def _column(table: Columns, key: str, name: Any) -> list[Any]:
    if name not in table:
        titles = "; there are " + ", ".join(map(repr, list(table)[:8])) + ", ..." * (len(table) > 8)
        raise ValueError(f"{key}: there is no column {shown(name)}{did_you_mean(name, table) or titles}")
    return table[name]


def _numbers(cells: list[tuple[int, Any]], column: str, arm: Any, drop: bool) -> Floats:
    found = []
    for i, cell in cells:
        try:
            value = math.nan if cell is None else float(cell)
        except (TypeError, ValueError):
            raise ValueError(f"row {i + 2} has {column} = {shown(cell)}, which is no number") from None
        if math.isfinite(value):
            found.append(value)
        elif not (drop and math.isnan(value)):
            said = "no number" if math.isnan(value) else shown(cell)
            raise ValueError(
                f'row {i + 2} has {said} in {column!r}; fill it in, or leave such rows out by missing = "drop"'
            )
    if not found:
        raise ValueError(f"arm {arm!r} has no rows with a number in {column!r}; it needs one at least")
    return np.array(found)
