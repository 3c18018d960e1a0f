"""Lines over a budget: regret, error against spend, and what else is measured at growing sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from equipoise.base.inputs import choice
from equipoise.base.tables import json_ready
from equipoise.chart.files import altair
from equipoise.chart.style import COLOURS, DASHES, GREY, SHAPES, Rows

RegretScale = Literal["excess", "paper"]


def regret(
    rows: Rows,
    *,
    scale: RegretScale = "paper",
    title: str = "",
    noise: Rows = (),
    noise_text: str = "",
    width: int = 480,
    height: int = 300,
) -> Any:
    """
    Draw regret against the budget n, a line for each strategy with a band of one standard error to each side.

    Parameters
    ----------
    rows
        As `Curve.rows()` gives them: strategy and n; for "excess" also excess and excess_error, for "paper"
        rescaled_regret and rescaled_error.
    scale
        "excess": the regret over the best possible loss, in percent. "paper": the regret times n^(3/2).
    noise, noise_text
        Rows n, low, high of a grey band behind the lines, and its caption.
    """
    if choice("scale", scale, ("excess", "paper")) == "excess":
        y, error, y_title = "excess", "excess_error", "excess over the best possible loss, %"
    else:
        y, error, y_title = "rescaled_regret", "rescaled_error", "rescaled regret, n^(3/2) R"
    return lines(
        rows,
        x="n",
        y=y,
        error=error,
        titles=("budget n", y_title),
        title=title,
        noise=noise,
        noise_text=noise_text,
        width=width,
        height=height,
    )


def spend(rows: Rows, *, at: float, titles: tuple[str, str], width: int = 480, height: int = 300) -> Any:
    """
    Draw the error to expect against the spend, with that of an even split, both on logarithmic axes.

    Parameters
    ----------
    rows
        As `Plan.curve()` gives them: spend, error, uniform_error.
    at
        The spend to mark with a vertical line.
    titles
        Titles of the two axes.
    """
    alt = altair()
    given = list(rows)
    # An error of 0 has no place on a logarithmic axis.
    data = [
        {"spend": row["spend"], "error": row[name], "strategy": what}
        for name, what in (("error", "plan"), ("uniform_error", "even split"))
        for row in given
        if row[name] > 0
    ]
    if not data:
        raise ValueError("a chart of error against spend must have a positive error, got 0 in every row")
    errors = sorted(row["error"] for row in data)
    ends = (errors[0] / 1.1, errors[-1] * 1.1)
    drawn = lines(
        data,
        x="spend",
        y="error",
        titles=titles,
        log_y=True,
        y_domain=ends,
        y_ticks=_ticks([ends[0], *errors, ends[1]]),
        width=width,
        height=height,
    )
    here = alt.Chart(alt.Data(values=[{"spend": at}])).encode(x="spend:Q")
    rule = here.mark_rule(color=GREY, strokeDash=DASHES[0])
    name = here.mark_text(color=GREY, text="this plan", align="left", baseline="top", dx=5, dy=6).encode(y=alt.value(0))
    return alt.layer(rule, name, drawn)


def lines(
    rows: Rows,
    *,
    x: str,
    y: str,
    titles: tuple[str, str],
    error: str = "",
    series: str = "strategy",
    dashed: Sequence[str] = (),
    joined: bool = True,
    title: str = "",
    noise: Rows = (),
    noise_text: str = "",
    log_y: bool = False,
    y_domain: tuple[float, float] | None = None,
    y_ticks: Sequence[float] = (),
    legend: str = "bottom",
    width: int = 480,
    height: int = 300,
) -> Any:
    """
    Draw lines of y against a logarithmic x, in one colour and shape for each of `series`.

    Parameters
    ----------
    x, y, error, series
        Names in the rows. With `error`, a band from y - error to y + error lies behind each line.
    titles
        Titles of the two axes.
    dashed
        The series that are not measurements: dashed grey lines without points.
    joined
        Whether a line joins the points of a measurement.
    title, noise, noise_text
        A title, and rows x, low, high of a grey band behind the lines with its caption.
    log_y, y_domain, y_ticks
        Whether y is logarithmic too, its two ends, and the places of its ticks.
    legend
        The place of the legend: "bottom" or "right".
    """
    alt = altair()
    data = [json_ready(row) for row in rows]
    if not data:
        raise ValueError("a chart must have at least one row, got none")
    names = list(dict.fromkeys(str(row[series]) for row in data))
    measured = [name for name in names if name not in dashed]
    colours = [GREY if name in dashed else COLOURS[measured.index(name) % len(COLOURS)] for name in names]
    shapes = ["stroke" if name in dashed else SHAPES[measured.index(name) % len(SHAPES)] for name in names]
    xs = sorted({float(row[x]) for row in data})
    # A single x is in the middle.
    ends = [xs[0], xs[-1]] if len(xs) > 1 else [xs[0] / 2, xs[0] * 2]
    axis = alt.X(
        f"{x}:Q",
        title=titles[0],
        scale=alt.Scale(type="log", domain=ends, nice=False),
        axis=alt.Axis(values=_ticks(xs), format="~s" if xs[-1] >= 1e4 else ",", grid=False, labelOverlap=True),
    )
    scale = alt.Scale(
        type="log" if log_y else "linear", nice=y_domain is None, **({"domain": list(y_domain)} if y_domain else {})
    )
    ticks: dict[str, Any] = {"values": [10.0**e for e in range(-12, 13)]} if log_y else {"tickCount": 6}
    if y_ticks:
        ticks = {"values": list(y_ticks), "format": "~g"}
    up = alt.Y(f"{y}:Q", title=titles[1] or None, scale=scale, axis=alt.Axis(gridColor="#e4e4e4", **ticks))
    key: Any = alt.Legend(
        title=None,
        orient=legend,
        columns=2 if legend == "bottom" else 1,
        labelLimit=400,
        symbolSize=70,
        symbolOpacity=1,
        symbolStrokeWidth=1.6,
    )
    colour = alt.Color(f"{series}:N", scale=alt.Scale(domain=names, range=colours), legend=key)
    shape = alt.Shape(f"{series}:N", scale=alt.Scale(domain=names, range=shapes), legend=key)
    dashes = [DASHES[list(dashed).index(name) % len(DASHES)] if name in dashed else [1, 0] for name in names]
    dash = alt.StrokeDash(f"{series}:N", scale=alt.Scale(domain=names, range=dashes), legend=key)
    low = alt.Y("low:Q", scale=scale, title=titles[1] or None)
    layers = []
    if band := [json_ready(row) for row in noise]:
        layers.append(
            alt.Chart(alt.Data(values=band)).mark_area(color=GREY, opacity=0.18).encode(x=axis, y=low, y2="high:Q")
        )
    if error:
        banded = [
            row | {"low": row[y] - row[error], "high": row[y] + row[error]}
            for row in data
            if row.get(error) is not None and row[y] is not None and not (log_y and row[y] <= row[error])
        ]
        layers.append(
            alt.Chart(alt.Data(values=banded)).mark_area(opacity=0.25).encode(x=axis, y=low, y2="high:Q", color=colour)
        )
    for chosen in (list(dashed), measured):
        part = [row for row in data if str(row[series]) in chosen]
        if not part:
            continue
        base = alt.Chart(alt.Data(values=part)).encode(x=axis, y=up, color=colour)
        if joined or chosen is not measured:
            layers.append(base.mark_line(strokeWidth=1.6).encode(strokeDash=dash))
        if chosen is measured:
            tips = [alt.Tooltip(f"{series}:N"), alt.Tooltip(f"{x}:Q"), alt.Tooltip(f"{y}:Q", format=".4~g")]
            tips += [alt.Tooltip(f"{error}:Q", format=".2~g")] if error else []
            layers.append(base.mark_point(filled=True, size=42, opacity=1).encode(shape=shape, tooltip=tips))
    heading: dict[str, Any] = {"subtitle": noise_text, "subtitleColor": GREY} if band and noise_text else {}
    drawn = alt.layer(*layers).properties(width=width, height=height)
    return drawn.properties(title=alt.Title(title, anchor="start", **heading)) if title else drawn


def beside(charts: Sequence[Any], *, below: bool = False, one_legend: bool = False) -> Any:
    """
    Return charts side by side, or one below the other; with one legend if they share their series.

    Their settings become those of the whole, in which they must agree.
    """
    alt = altair()
    resolve: Any = "shared" if one_legend else "independent"
    parts = [chart.copy(deep=False) for chart in charts]
    settings = [(part.config, part.background) for part in parts]
    for part in parts:
        part.config = part.background = part.autosize = alt.Undefined
    together = alt.vconcat(*parts) if below else alt.hconcat(*parts)
    together.config, together.background = settings[0]
    return together.resolve_scale(color=resolve, shape=resolve, strokeDash=resolve)


def _ticks(xs: Sequence[float]) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten between the ends, or the powers if they are many; else all of xs."""
    low, high = math.floor(math.log10(xs[0])), math.ceil(math.log10(xs[-1]))
    steps = (1, 2, 5) if high - low <= 3 else (1,)
    found = [s * 10.0**e for e in range(low, high + 1) for s in steps if xs[0] <= s * 10.0**e <= xs[-1]]
    return found if len(found) > 1 else list(xs)
