"""Read the arguments of a plan from a CSV file, a row for each arm."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, Final

from equipoise.base import paths
from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import did_you_mean, integer_in, listed, number_in, shown
from equipoise.base.tables import count, unquoted

COLUMNS = ("arm", "variance", "sd", "weight", "cost", "floor", "cap", "population")
INTEGERS = ("floor", "cap", "population")
# The other columns of the tables of results and plans.
IGNORED: Final = (
    "count", "declined", "mean", "corrected_mean", "bias", "standard_error", "plain_error", "loss", "low", "high",
    "half_width", "interval_kind", "interval_level", "",
)  # fmt: skip


def read(path: str | Path) -> dict[str, Any]:
    """
    Return the arguments of `plan` that a CSV file holds, a row for each arm.

    Columns: arm, variance or sd, and any of weight, cost, floor, cap, population. An empty cell means the default of
    `plan`. Other columns of a result's table are ignored, so that such a table can be read as it is; unknown ones are
    refused.
    """
    titles, rows = _table(path)
    found: dict[str, dict[str, Any]] = {}
    lines: dict[str, int] = {}
    for line, row in enumerate(rows, 2):
        where = f"row {line} of {path}"
        name = unquoted(row.get("arm", "").strip())
        if not name:
            raise InvalidInput(f"{where} has no arm")
        if name in lines:
            raise InvalidInput(f"each arm must have one row, got {name!r} in rows {lines[name]} and {line} of {path}")
        lines[name] = line
        for title in COLUMNS[1:]:
            text = row.get(title, "").strip()
            if text:
                value = parse(f"{title} in {where}", text, title in INTEGERS)
                if title == "sd" and value < 0:
                    raise InvalidInput(f"sd in {where} must be non-negative, got {text!r}")
                found.setdefault(title, {})[name] = value
            elif title in titles and title in ("variance", "sd"):
                raise InvalidInput(f"{where} has no {title}")
    if "sd" in found:
        found["variance"] = {name: value * value for name, value in found.pop("sd").items()}
    for title in ("weight", "cost"):
        if title in found:
            found[title] = {name: found[title].get(name, 1.0) for name in lines}
    return {f"{title}s": values for title, values in found.items()}


def parse(what: str, text: str, is_integer: bool) -> float:
    """Return the number in a text; `what` says in the message what it is for."""
    try:
        return integer_in(text) if is_integer else number_in(text)
    except ValueError:
        wanted = "an integer" if is_integer else "a number"
        raise InvalidInput(f"{what} must be {wanted}, got {shown(text)}") from None


def _table(path: str | Path) -> tuple[list[str], list[dict[str, str]]]:
    """Return the titles, in lower case, and the rows by title of a file with the columns that a plan needs."""
    try:
        with paths.opened("a plan", Path(path)) as file:
            reader = csv.reader(file)
            titles = [title.strip().lower() for title in next(reader, [])]
            if len(titles) == 1 and ";" in titles[0]:
                raise InvalidInput(f"{path} must be separated by commas, got semicolons")
            rows = [row for row in reader if row]
    except UnicodeDecodeError:
        raise InvalidInput(f"cannot read {path}: it is not a text file in UTF-8") from None
    except csv.Error as error:
        raise InvalidInput(f"cannot read {path} as CSV: {error}") from None
    if "arm" not in titles or ("variance" in titles) == ("sd" in titles) or len(set(titles)) < len(titles):
        got = ", ".join(titles) or "none"
        raise InvalidInput(f"{path} must be a CSV file with the columns arm and variance (or sd), each once, got {got}")
    for title in titles:
        if title not in (*COLUMNS, *IGNORED):
            known = did_you_mean(title, COLUMNS) or f"; the columns are {listed(COLUMNS, len(COLUMNS))}"
            raise InvalidInput(f"{path} has an unknown column {title!r}{known}")
    if not rows:
        raise InvalidInput(f"{path} must have a row for each arm, got none")
    for line, row in enumerate(rows, 2):
        if len(row) != len(titles):
            cells = count(len(titles), "cell")
            raise InvalidInput(f"row {line} of {path} must have {cells} like the header, got {len(row):,}")
    return titles, [dict(zip(titles, row, strict=True)) for row in rows]
