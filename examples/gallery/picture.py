"""How the gallery's pictures look: one palette, which follows the reader's preference for light or dark."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import altair as alt

from equipoise import chart

INK, SOFT, FAINT, LINE = chart.PAGE.ink, chart.PAGE.soft, chart.PAGE.faint, chart.PAGE.line
CARD, BLUE, ORANGE, GREEN = chart.PAGE.card, chart.PAGE.accent, chart.PAGE.warn, chart.PAGE.good

# Pictures are about 600 pixels wide, so that letters of these sizes can be read on a phone, which shows them at 0.6.
SMALL, LABEL = 15, 16

STYLE = """<style>
:root { --ink: #1b1d21; --soft: #5d6470; --faint: #b9bec7; --line: #e4e4df; --card: #ffffff;
  --accent: #2f5fd0; --warn: #c2590a; --good: #1a7f4b; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececec; --soft: #a3abb8; --faint: #596170; --line: #2c2f36;
  --card: #1b1d22; --accent: #8db0ff; --warn: #f0a35e; --good: #6fd3a0; } }
text { font-family: Inter, system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; }
</style>"""


def names(arms: Iterable[str]) -> alt.Axis:
    """Return the axis of the names of arms, with room for the longest in a wide font: readers have different ones."""
    return alt.Axis(labelColor=INK, labelFontSize=LABEL, minExtent=0.62 * LABEL * max(map(len, arms)))


def save(drawn: Any, name: str, title: str, subtitle: str = "") -> Path:
    """Write a chart, under a headline, as an SVG file into the folder named on the command line, or into this one."""
    axis = {"domain": False, "ticks": False, "labelPadding": 6, "titleFontWeight": "normal"}
    colours = {"labelColor": SOFT, "titleColor": SOFT, "gridColor": LINE}
    fonts = {"labelFontSize": SMALL, "titleFontSize": SMALL}
    lines = [line for part in subtitle.split("\n") for line in textwrap.wrap(part, 64)]
    finished = drawn.properties(
        title=alt.Title(textwrap.wrap(title, 42), subtitle=lines, anchor="start", frame="bounds", offset=18),
        background=CARD,
        padding=20,
    ).configure(
        axis=alt.AxisConfig(**axis, **colours, **fonts),
        legend=alt.LegendConfig(labelColor=SOFT, labelFontSize=SMALL, title=None, orient="top", columnPadding=16),
        header=alt.HeaderConfig(labelColor=INK, labelFontSize=LABEL, labelFontWeight="bold", title=None),
        title=alt.TitleConfig(color=INK, fontSize=21, subtitleColor=SOFT, subtitleFontSize=LABEL, subtitlePadding=6),
        view=alt.ViewConfig(stroke=None),
        aria=False,  # a page says in the picture's alternative text what can be seen; a label of every mark is too long
    )
    return write(chart.svg(finished), name)


def write(svg: str, name: str) -> Path:
    """Write an SVG picture with the style of the gallery."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else ".") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    head, body = svg.split(">", 1)
    path.write_text(f"{head}>{STYLE}{body}\n", encoding="utf-8")
    return path
