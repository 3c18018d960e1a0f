"""Colours, shapes and dashes of charts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

Rows = Iterable[Mapping[str, Any]]

# The colours of M. Okabe and K. Ito, which people with any kind of colour vision can tell apart, without the yellow
# one, which is too pale for lines. Shapes repeat what the colours show.
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke")
GREY: Final = "#6b6b6b"
DASHES: Final = ([5, 3], [1, 2], [1, 0])


@dataclass(frozen=True)
class Theme:
    """
    The colours of a chart of a study by what they are for.

    Attributes
    ----------
    ink, soft, faint, line
        Of names and numbers; of axes and what is secondary; of what is in the background; of grid lines.
    card
        Of what is behind the chart.
    accent, warn, good
        Of what was measured; of what is not precise enough yet; of a target.
    """

    ink: str
    soft: str
    faint: str
    line: str
    card: str
    accent: str
    warn: str
    good: str


PRINT: Final = Theme("#1b1d21", "#5d6470", "#b9bec7", "#e4e4df", "#ffffff", "#2f5fd0", "#9c4a08", "#166b40")
# The variables of the page's style sheet, which change with the reader's preference for light or dark.
PAGE: Final = Theme(*(f"var(--{each.name}, {getattr(PRINT, each.name)})" for each in fields(PRINT)))

_FONT: Final = "Inter, system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"


def config(theme: Theme) -> dict[str, Any]:
    """Return the settings of Vega-Lite for a theme."""
    axis = {
        "aria": False,
        "domain": False,
        "ticks": False,
        "gridColor": theme.line,
        "labelColor": theme.soft,
        "labelFontSize": 12,
        "labelPadding": 6,
        "titleColor": theme.soft,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
    }
    legend = {"labelColor": theme.soft, "labelFontSize": 12, "labelLimit": 200, "title": None}
    title = {"color": theme.ink, "fontSize": 14, "anchor": "start"}
    return {"font": _FONT, "axis": axis, "legend": legend, "title": title, "view": {"stroke": None}}
