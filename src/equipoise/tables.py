"""Small tables of texts, for a terminal and for a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


def percent(level: float) -> str:
    """A probability, such as 95% or 99.9%."""
    return f"{100 * level:.6g}%"


def text(rows: Sequence[Sequence[str]], notes: Iterable[str]) -> str:
    """A title row and others in columns, the first to the left and all others to the right; then the notes."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    )
    return "\n".join([*(line.rstrip() for line in lines), *notes])


def page(rows: Sequence[Sequence[str]], notes: Iterable[str]) -> str:
    """The same as HTML."""
    head, *others = rows
    cell = '<td style="text-align:{}">{}</td>'
    body = "".join(
        "<tr>" + "".join(cell.format("right" if i else "left", html.escape(c)) for i, c in enumerate(row)) + "</tr>"
        for row in others
    )
    titles = "".join(f"<th>{html.escape(title)}</th>" for title in head)
    said = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>{said}"
