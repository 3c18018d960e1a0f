"""Columns and groups of a CSV or Parquet table as populations."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from equipoise.base import paths
from equipoise.base.arrays import Floats
from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import did_you_mean, install_hint, listed, number_in, printable, shown
from equipoise.base.tables import count

Columns = dict[str, list[Any]]

# Words for 1 and 0, in capital letters or not: those of pandas, of R and of forms.
PAIRS: Final = (("true", "false"), ("t", "f"), ("yes", "no"), ("y", "n"))
WORDS: Final = {word: (pair, value) for pair in PAIRS for word, value in zip(pair, (1.0, 0.0), strict=True)}
# What R writes where there is no value.
MISSING: Final = "NA"


def read(path: Path) -> Columns:
    """Read the columns of a table; cells of a CSV file are strings, or None if empty."""
    kind = path.suffix.lower()
    if kind not in (".csv", ".tsv", ".parquet"):
        raise InvalidInput(f"table must be a .csv, .tsv or .parquet file, got {path.name!r}")
    found = paths.kind_of("table", path)
    if found is None:
        raise InvalidInput(f"there is no table {path}")
    if kind == ".parquet":
        if found:
            raise InvalidInput(f"table must be a file, got {path}, which is {found}")
        try:
            import polars
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                f"a Parquet table needs polars, which is not installed; {install_hint('tables')}"
            ) from None
        try:
            frame = polars.read_parquet(path)
        except Exception as error:  # polars has an exception of its own for each kind of damage
            raise InvalidInput(f"cannot read {path} as Parquet: {str(error).splitlines()[0]}") from None
        _refuse_empty(path, frame.height)
        return {name: frame.get_column(name).to_list() for name in frame.columns}
    with paths.opened("table", path) as file:
        try:
            head, *rows = csv.reader(file, delimiter="\t" if kind == ".tsv" else ",", strict=True)
        except (ValueError, csv.Error) as error:
            why = str(error) if isinstance(error, csv.Error | UnicodeDecodeError) else "it is empty"
            raise InvalidInput(f"cannot read {path} as a table with a header row: {why}") from None
    rows = [row for row in rows if row]
    _refuse_empty(path, len(rows))
    for line, row in enumerate(rows, start=2):
        if len(row) != len(head):
            raise InvalidInput(
                f"row {line} of {path} must have {count(len(head), 'cell')} like the header, got {len(row):,}"
            )
    if len(set(head)) < len(head):
        twice = next(name for name in head if head.count(name) > 1)
        raise InvalidInput(f"columns of {path} must have different titles, got {twice!r} twice")
    return {name: [row[j].strip() or None for row in rows] for j, name in enumerate(head)}


def _refuse_empty(path: Path, rows: int) -> None:
    if not rows:
        raise InvalidInput(f"{path} must have at least one row of data, got none")


def groups(table: Columns, group: str, value: str, arms: Sequence[Any] | None, drop: bool) -> dict[Any, Floats]:
    """Return the numbers of one column for each value of another, in order of appearance or in that of `arms`."""
    keys, cells = _column(table, "group", group), _column(table, "value", value)
    places: dict[Any, list[int]] = {}
    for i, key in enumerate(keys):
        places.setdefault(key, []).append(i)
    if None in places:
        if not drop:
            raise InvalidInput(
                f'row {places[None][0] + 2} has no value for {group!r}; use missing = "drop" to leave out such rows'
            )
        del places[None]
    if arms is not None:
        unknown = [arm for arm in arms if arm not in places]
        if unknown:
            raise InvalidInput(
                f"there is no row with {group} = {shown(unknown[0])}{did_you_mean(unknown[0], map(str, places))}"
            )
        places = {arm: places[arm] for arm in arms}
    values = _values(sorted(i for rows in places.values() for i in rows), cells, value)
    return {key: _finite({i: values[i] for i in rows}, cells, value, key, drop) for key, rows in places.items()}


def columns(table: Columns, names: Sequence[str], drop: bool) -> dict[Any, Floats]:
    """Return the numbers of some columns."""
    found = {}
    for name in names:
        cells = _column(table, "columns", name)
        found[name] = _finite(_values(range(len(cells)), cells, name), cells, name, name, drop)
    return found


def _column(table: Columns, key: str, name: Any) -> list[Any]:
    if name not in table:
        titles = f"; the columns are {listed(table, most=8)}"
        raise InvalidInput(f"{key}: there is no column {shown(name)}{did_you_mean(name, table) or titles}")
    if printable(name) != name:  # it becomes the title of an axis
        raise InvalidInput(f"{key}: the title of a column must not contain control characters, got {shown(name)}")
    return table[name]


def _values(rows: Iterable[int], cells: list[Any], column: str) -> dict[int, float]:
    """Return the numbers in some rows of a column, NaN where there is none; refuse words that are mixed with others."""
    found: dict[int, float] = {}
    first: tuple[int, Any] | None = None
    for i in rows:
        cell = cells[i]
        if cell is None or cell == MISSING:
            found[i] = math.nan
            continue
        kind, value = WORDS.get(str(cell).lower(), (None, cell))
        try:
            found[i] = number_in(value) if isinstance(value, str) else float(value)
        except (TypeError, ValueError):
            raise InvalidInput(f"row {i + 2}: {column} must be a number, yes or no, got {shown(cell)}") from None
        first = first or (i, kind)
        if kind != first[1]:
            raise InvalidInput(
                f"{column} must be all numbers, or all one pair of words such as yes and no, got "
                f"{shown(cells[first[0]])} in row {first[0] + 2} and {shown(cell)} in row {i + 2}"
            )
    return found


def _finite(values: dict[int, float], cells: list[Any], column: str, arm: Any, drop: bool) -> Floats:
    """Return the values of an arm, without those that are missing if these are to be dropped."""
    for i, value in values.items():
        if math.isnan(value) and not drop:
            raise InvalidInput(f'row {i + 2} has no value for {column!r}; use missing = "drop" to leave out such rows')
        if math.isinf(value):
            raise InvalidInput(f"row {i + 2}: {column} must be a finite number, got {shown(cells[i])}")
    found = [value for value in values.values() if not math.isnan(value)]
    if not found:
        raise InvalidInput(f"arm {arm!r} must have at least one row with a number in {column!r}, got none")
    return np.array(found)
