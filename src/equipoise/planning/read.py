"""Read the arguments of a plan from a CSV file, a row for each arm."""

from __future__ import annotations

import csv
import difflib
from pathlib import Path
from typing import Any

COLUMNS = ("arm", "variance", "sd", "weight", "cost", "floor", "cap", "population")
INTEGERS = ("floor", "cap", "population")


def read(path: str | Path) -> dict[str, Any]:
    """
    Return the arguments of `plan` that a CSV file holds, a row for each arm.

    Columns: arm, variance or sd, and any of weight, cost, floor, cap, population. An empty cell means the default of
    `plan`. Other columns are ignored, so the table of a result can be read as it is.
    """
    titles, rows = _table(path)
    found: dict[str, dict[str, Any]] = {}
    lines: dict[str, int] = {}
    for line, row in enumerate(rows, 2):
        where = f"row {line} of {path}"
        name = row.get("arm", "").strip()
        if not name:
            raise ValueError(f"{where} has no arm")
        if name in lines:
            raise ValueError(f"each arm must have one row, got {name!r} in rows {lines[name]} and {line} of {path}")
        lines[name] = line
        for title in COLUMNS[1:]:
            text = row.get(title, "").strip()
            if text:
                value = parse(f"{title} in {where}", text, title in INTEGERS)
                if title == "sd" and value < 0:
                    raise ValueError(f"sd in {where} must be non-negative, got {text!r}")
                found.setdefault(title, {})[name] = value
            elif title in titles and title in ("variance", "sd"):
                raise ValueError(f"{where} has no {title}")
    if "sd" in found:
        found["variance"] = {name: value * value for name, value in found.pop("sd").items()}
    for title in ("weight", "cost"):
        if title in found:
            found[title] = {name: found[title].get(name, 1.0) for name in lines}
    return {f"{title}s": values for title, values in found.items()}


def parse(what: str, text: str, is_integer: bool) -> float:
    """Return the number in a text; `what` says in the message what it is for."""
    try:
        return int(text) if is_integer else float(text)
    except ValueError:
        wanted = "an integer" if is_integer else "a number"
        raise ValueError(f"{what} must be {wanted}, got {text!r}") from None


def _table(path: str | Path) -> tuple[list[str], list[dict[str, str]]]:
    """Return the titles, in lower case, and the rows by title of a file with the columns that a plan needs."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            titles = [(title or "").strip().lower() for title in reader.fieldnames or []]
            rows = [dict(zip(titles, (v or "" for v in row.values()), strict=False)) for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} must be a CSV file in UTF-8 with the columns arm and variance: {error}") from None
    for title in titles:
        # A word such as "value" or "count" is not a misspelt column, so only near ones are.
        if title and title not in COLUMNS and (close := difflib.get_close_matches(title, COLUMNS, 1, 0.8)):
            raise ValueError(f"{path} has an unknown column {title!r}; did you mean {close[0]!r}?")
    if "arm" not in titles or ("variance" in titles) == ("sd" in titles) or len(set(titles)) < len(titles):
        got = ", ".join(titles) or "none"
        raise ValueError(f"{path} must be a CSV file with the columns arm and variance (or sd), each once, got {got}")
    if not rows:
        raise ValueError(f"{path} must have a row for each arm, got none")
    return titles, rows
