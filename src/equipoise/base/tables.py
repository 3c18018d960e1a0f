"""Numbers, tables and frames for people and for programs: text, HTML, JSON, pandas and polars."""

from __future__ import annotations

import csv
import html as escaping
import importlib
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from equipoise.base.inputs import choice, install_hint, plain_name, texts

FrameLibrary = Literal["pandas", "polars"]

# A table in a terminal or a notebook shows at most this many arms.
MOST_ROWS = 20


# ---- numbers in words


def count(n: float, noun: str) -> str:
    """Return a number of things, such as "1 sample" or "1,200 samples"."""
    number = f"{n:,}" if isinstance(n, int) else amount(n)
    return f"{number} {noun}" if n == 1 else f"{number} {noun}s"


def amount(x: float, digits: int = 4) -> str:
    """Return a number to `digits` significant digits, or as an integer; with commas, not an exponent, below 10^15."""
    if not math.isfinite(x):
        return str(float(x))
    rounded = abs(float(f"{x:.{digits}g}"))
    if abs(x) < 1e15 and (x == int(x) or rounded >= 10**digits):
        return f"{x:,.0f}"
    return f"{x:,.{digits}g}"


def cell(x: float, digits: int = 4) -> str:
    """Return a number for a table; a dash for NaN."""
    return "—" if math.isnan(x) else amount(x, digits)


def rounded(value: float, half: float, digits: int = 2) -> str:
    """Return a number to the given digit of its half-width, such as 9.87 for ±0.75; a dash for NaN."""
    if math.isnan(value) or not 0 < half < math.inf:
        return cell(value)
    decimals = digits - 1 - math.floor(math.log10(half))
    # Python's z: what is rounded to 0 has no sign.
    return f"{value:z,.{max(decimals, 0)}f}" if decimals <= 9 and abs(value) < 1e12 else f"{value:.4g}"


def plus_minus(half: float, digits: int = 2) -> str:
    """Return a half-width to a number of digits, such as ±0.030 or ±12."""
    return f"±{rounded(half, half, digits)}"


def about(n: float, low: float, high: float) -> str:
    """Return a whole number, at least 1, to as many digits as a range for it is worth: two, or more if narrow."""
    digit = min(math.floor(math.log10(max(high - low, 1) / 4)), math.floor(math.log10(max(n, 1))) - 1)
    return f"{max(1, round(n, -max(digit, 0))):,.0f}"


def between(low: float, high: float) -> str:
    """Return a range of whole numbers in words, such as "1,900 to 4,300"; "about 1,900" where its ends are the same."""
    ends = [about(n, low, high) for n in (low, high)]
    return f"about {ends[0]}" if ends[0] == ends[1] else " to ".join(ends)


# Units of time: name, symbol, seconds, and the shortest time that is given in it.
_TIMES: Final = (
    ("day", "d", 86400.0, 3 * 86400.0),
    ("hour", "h", 3600.0, 3 * 3600.0),
    ("minute", "min", 60.0, 3 * 60.0),
    ("second", "s", 1.0, 1.0),
    ("millisecond", "ms", 1e-3, 0.0),
)


def duration(seconds: float, digits: int = 2) -> str:
    """Return a time in a unit that suits it, such as "25.3 ms", "45 s", "12 min" or "3.5 h"."""
    _, symbol, each = _unit_of_time(seconds)
    return f"{amount(seconds / each, digits)} {symbol}"


def duration_range(low: float, high: float) -> str:
    """Return a range of seconds in words, such as "3 to 6 minutes", in whole units that include it."""
    unit, _, each = _unit_of_time(max(high, 1.0))
    first, last = math.floor(low / each), max(1, math.ceil(high / each))
    units = unit if last == 1 else f"{unit}s"
    if first == 0:
        return f"up to {last:,} {units}"
    return f"about {last:,} {units}" if first == last else f"{first:,} to {last:,} {units}"


def _unit_of_time(seconds: float) -> tuple[str, str, float]:
    """Return the name, the symbol and the length of the unit that suits a time."""
    return next((name, symbol, each) for name, symbol, each, shortest in _TIMES if max(seconds, 0.0) >= shortest)


def percent(level: float) -> str:
    """Return a probability in percent, such as 95% or 99.9%."""
    return f"{100 * level:.10g}%"


class Unit(NamedTuple):
    """
    In what means are written: as they are, or shares in percent, with half-widths and errors in points.

    Attributes
    ----------
    factor
        What numbers are multiplied with.
    sign, points
        What follows a mean, and what follows a half-width or an error.
    """

    factor: float = 1.0
    sign: str = ""
    points: str = ""

    def mean(self, mean: float, half: float) -> str:
        """Return a mean to the digits that its half-width leaves it."""
        text = rounded(self.factor * mean, self.factor * half)
        return text if math.isnan(mean) else text + self.sign

    def half(self, half: float, digits: int = 2) -> str:
        """Return a half-width, such as ±0.064 or ±6.4 points."""
        return plus_minus(self.factor * half, digits) + self.points

    def size(self, x: float, digits: int = 3) -> str:
        """Return an error or a difference, such as 0.033 or 3.3 points."""
        return amount(self.factor * x, digits) + self.points


PLAIN: Final = Unit()
SHARES: Final = Unit(100.0, "%", " points")


# ---- tables


def text(rows: Sequence[Sequence[str]], notes: Iterable[str] = ()) -> str:
    """
    Return a table in aligned columns, the first to the left and the others to the right, and notes below it.

    The first row holds the titles.
    """
    from rich.cells import cell_len  # which knows that a Chinese character is as wide as two letters

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        gaps = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        first, *others = zip(row, gaps, strict=True)
        lines.append("  ".join(["".join(first), *(gap + cell for cell, gap in others)]))
    return "\n".join([*(line.rstrip() for line in lines), *notes])


def html(rows: Sequence[Sequence[str]], notes: Iterable[str] = (), before: Iterable[str] = ()) -> str:
    """Return a table as HTML, with paragraphs `before` and `notes` after it; the first row holds the titles."""
    head, *others = rows
    titles = "".join(f"<th>{escaping.escape(title)}</th>" for title in head)
    body = "".join("<tr>" + "".join(_cell(i, cell) for i, cell in enumerate(row)) + "</tr>" for row in others)
    first, last = ("".join(f"<p>{escaping.escape(note)}</p>" for note in some) for some in (before, notes))
    return f"{first}<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>{last}"


def _cell(column: int, cell: str) -> str:
    return f'<td style="text-align:{"right" if column else "left"}">{escaping.escape(cell)}</td>'


# ---- for programs

# What a spreadsheet takes for the beginning of a formula, also in the full-width forms of Chinese and Japanese
# keyboards; and cells that were quoted for that.
_FORMULA: Final = re.compile("'*[=+@\\t\\r\\n\uff1d\uff0b\uff0d\uff20-]")


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV in which a spreadsheet finds no formula: a text that begins like one gets an apostrophe."""
    file = io.StringIO(newline="")
    csv.writer(file).writerows([_harmless(cell) for cell in row] for row in rows)
    return file.getvalue()


def _harmless(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def unquoted(cell: str) -> str:
    """Return a cell of a CSV file as it was before `csv_text` quoted it."""
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell


def json_ready(value: Any) -> Any:
    """Return plain Python data that JSON can hold: NumPy as Python, NaN and infinities as None."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {plain_name(key): json_ready(each) for key, each in value.items()}
    if isinstance(value, list | tuple | range):
        return [json_ready(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_text(value: Any) -> str:
    """
    Return data as a JSON text, in which names of arms that are keys become texts.

    Where two names have the same text, as 1 and "1" have, all are written as Python writes them: 1 and '1'.
    """
    return json.dumps(_with_text_keys(json_ready(value)), default=str, ensure_ascii=False, allow_nan=False)


def _with_text_keys(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_text_keys(each) for each in value]
    if not isinstance(value, dict):
        return value
    return dict(zip(texts(list(value)), map(_with_text_keys, value.values()), strict=True))


def frame(columns: Mapping[str, Any], library: FrameLibrary | None = None) -> Any:
    """Return the columns as a DataFrame of pandas or polars: the one asked for, or whichever is installed."""
    wanted = ("pandas", "polars") if library is None else (choice("library", library, ("pandas", "polars")),)
    for name in wanted:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        return module.DataFrame(dict(columns))
    absent = "which is not" if len(wanted) == 1 else "neither of which is"
    hint = f"; {install_hint('tables')}" if "polars" in wanted else ""
    raise ModuleNotFoundError(f"to_frame needs {' or '.join(wanted)}, {absent} installed{hint}")
