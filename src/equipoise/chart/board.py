"""The leaderboard as a heat map."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from equipoise.base.errors import InvalidInput
from equipoise.base.tables import json_ready
from equipoise.chart.files import altair
from equipoise.chart.style import Rows

# The colours of excesses in percent, darker with each, so that any kind of colour vision ranks them; constant beyond.
EXCESSES = (1.0, 10.0, 40.0, 200.0, 1000.0)
HEAT = ("#ffffff", "#fde5c0", "#f6a864", "#c8381f", "#4d0011")
GROUPS = {
    "light": "continuous, light tails",
    "exponential": "continuous, tails to exponential",
    "heavy": "continuous, heavy tails",
    "rare": "continuous, rare large values",
    "binary": "binary",
}


def board(rows: Rows, order: Sequence[str], *, cell: tuple[int, int] = (38, 14)) -> Any:
    """
    Draw excesses as a heat map: a column for each strategy, a row for each problem, the darker the worse.

    Problems are grouped by tails and kind and ordered by samples per arm, the fewest first. Colours follow the
    logarithm of the excess from 1% to 1,000%. A frame marks the worst of each strategy, on continuous and on binary
    problems.

    Parameters
    ----------
    rows
        As `Board.rows()` gives them: strategy, problem, kind, tails, K, n/K, excess.
    order
        The strategies, from left to right.
    cell
        The width and height of a cell.
    """
    data = [json_ready(row) for row in rows]
    if not data:
        raise InvalidInput("a chart must have at least one row, got none")
    worst: dict[tuple[str, str], float] = {}
    for row in data:
        key = (row["strategy"], row["kind"])
        worst[key] = max(worst.get(key, -math.inf), row["excess"])
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(data, key=lambda row: (row["n/K"], row["problem"])):
        excess = row["excess"]
        shown = {
            "strategy": row["strategy"],
            "problem": f"{row['problem']}  {row['n/K']:,.0f}",
            "excess": excess,
            "colour": min(max(excess, EXCESSES[0]), EXCESSES[-1]),
            "text": f"{round(excess):,}" if excess < 9_999.5 else f"{excess / 1000:,.0f}k",
            "worst": excess == worst[row["strategy"], row["kind"]],
        }
        groups.setdefault("binary" if row["kind"] == "binary" else row["tails"], []).append(shown)
    panels = [
        _map(groups[name], list(order), f"{title}: samples per arm, and excess in %", cell)
        for name, title in GROUPS.items()
        if name in groups
    ]
    heights = [len({row["problem"] for row in groups[name]}) + 7 for name in GROUPS if name in groups]

    def height(right: Sequence[bool]) -> int:
        return max(
            sum(h for h, is_right in zip(heights, right, strict=True) if is_right is side) for side in (False, True)
        )

    # Two columns of about the same height, the first panel on the left.
    sides = min(product([False], *[[False, True]] * (len(panels) - 1)), key=height)
    columns = [
        [panel for panel, is_right in zip(panels, sides, strict=True) if is_right is side] for side in (False, True)
    ]
    alt = altair()
    return alt.hconcat(*(alt.vconcat(*column, spacing=14) for column in columns if column), spacing=24)


def _map(rows: Sequence[Mapping[str, Any]], order: list[str], title: str, cell: tuple[int, int]) -> Any:
    alt = altair()
    names = list(dict.fromkeys(row["problem"] for row in rows))
    base = alt.Chart(alt.Data(values=list(rows))).encode(
        x=alt.X(
            "strategy:N",
            title=None,
            scale=alt.Scale(domain=order, paddingInner=0, paddingOuter=0),
            axis=alt.Axis(orient="top", labelAngle=-40, labelLimit=160, domain=False, ticks=False, labelPadding=4),
        ),
        y=alt.Y(
            "problem:N",
            title=None,
            scale=alt.Scale(domain=names, paddingInner=0, paddingOuter=0),
            axis=alt.Axis(labelLimit=260, domain=False, ticks=False, labelFontSize=10),
        ),
        tooltip=[alt.Tooltip("strategy:N"), alt.Tooltip("problem:N"), alt.Tooltip("excess:Q", format=",.1f")],
    )
    scale = alt.Scale(type="log", domain=list(EXCESSES), range=list(HEAT), clamp=True)
    colour = alt.Color("colour:Q", scale=scale, legend=None)
    ink = alt.condition("datum.colour > 100", alt.value("#ffffff"), alt.value("#1c1c1c"))
    tiles = base.mark_rect(stroke="#ffffff", strokeWidth=0.5).encode(color=colour)
    marks = base.transform_filter("datum.worst").mark_rect(fillOpacity=0, stroke="#000000", strokeWidth=1.8)
    numbers = base.mark_text(fontSize=9).encode(text="text:N", color=ink)
    heading = alt.Title(title, anchor="start", fontSize=12, offset=6)
    return alt.layer(tiles, marks, numbers).properties(
        width=cell[0] * len(order), height=cell[1] * len(names), title=heading
    )
