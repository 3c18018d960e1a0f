"""Numbers, tables and frames for people and for programs: text, HTML, JSON, pandas and polars."""

from __future__ import annotations

import html as escaping
import importlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from equipoise.inputs import choice

FrameLibrary = Literal["pandas", "polars"]

# A table in a terminal or a notebook shows at most this many arms.
MOST_ROWS = 20


# ---- numbers in words


def count(n: float, noun: str) -> str:
    """Return a number of things, such as "1 sample" or "1,200 samples"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def amount(x: float, digits: int = 4) -> str:
    """Return a number to so many significant digits, with commas instead of an exponent below 10^15."""
    if not math.isfinite(x):
        return str(x)
    if x == int(x) and abs(x) < 1e15:
        return f"{int(x):,}"
    if 10**digits <= abs(x) < 1e15:
        return f"{x:,.0f}"
    return f"{x:.{digits}g}"


def cell(x: float, digits: int = 4) -> str:
    """Return a number for a table; a dash for NaN."""
    return "—" if math.isnan(x) else amount(x, digits)


def rounded(value: float, half: float, digits: int = 2) -> str:
    """Return a number to the given digit of its half-width, such as 9.87 for ±0.75; a dash for NaN."""
    if math.isnan(value) or not 0 < half < math.inf:
        return cell(value)
    decimals = digits - 1 - math.floor(math.log10(half))
    return f"{value:,.{max(decimals, 0)}f}" if decimals <= 9 and abs(value) < 1e12 else f"{value:.4g}"


def plus_minus(half: float, digits: int = 2) -> str:
    """Return a half-width to a number of digits, such as ±0.030 or ±12."""
    return f"±{rounded(half, half, digits)}"


def percent(level: float) -> str:
    """Return a probability in percent, such as 95% or 99.9%."""
    return f"{100 * level:.6g}%"


# ---- tables


def text(rows: Sequence[Sequence[str]], notes: Iterable[str] = ()) -> str:
    """Return a title row and others in aligned columns, the first to the left, the others to the right; then notes."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    )
    return "\n".join([*(line.rstrip() for line in lines), *notes])


def html(rows: Sequence[Sequence[str]], notes: Iterable[str] = (), before: Iterable[str] = ()) -> str:
    """Return the same table as HTML, with paragraphs before and after it."""
    head, *others = rows
    titles = "".join(f"<th>{escaping.escape(title)}</th>" for title in head)
    body = "".join("<tr>" + "".join(_cell(i, cell) for i, cell in enumerate(row)) + "</tr>" for row in others)
    first, last = ("".join(f"<p>{escaping.escape(note)}</p>" for note in some) for some in (before, notes))
    return f"{first}<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>{last}"


def _cell(column: int, cell: str) -> str:
    return f'<td style="text-align:{"right" if column else "left"}">{escaping.escape(cell)}</td>'


# ---- for programs


def json_ready(value: Any) -> Any:
    """Return plain Python data that JSON can hold: NumPy as Python, NaN and infinities as None."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key.item() if isinstance(key, np.generic) else key: json_ready(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def frame(columns: Mapping[str, Any], library: FrameLibrary | None = None) -> Any:
    """Return the columns as a DataFrame of pandas or polars: the one asked for, or whichever is installed."""
    wanted = ("pandas", "polars") if library is None else (choice("library", library, ("pandas", "polars")),)
    for name in wanted:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        return module.DataFrame(dict(columns))
    raise ModuleNotFoundError(f"to_frame needs {' or '.join(wanted)}, which is not installed")
