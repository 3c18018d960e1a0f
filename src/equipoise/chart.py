"""
Charts: plain rows in, an Altair chart out.

Rows are mappings of texts and numbers. Altair is imported when a chart is drawn; everything else works without it.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from equipoise.inputs import choice, install_hint, printable
from equipoise.tables import json_ready

Rows = Iterable[Mapping[str, Any]]
RegretScale = Literal["excess", "paper"]

# The colours of M. Okabe and K. Ito, which people with any kind of colour vision can tell apart, without the yellow
# one, which is too pale for lines. Shapes repeat what the colours show.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke")
GREY = "#6b6b6b"
DASHES = ([5, 3], [1, 2], [1, 0])

SUFFIXES = (".png", ".svg", ".html")

# What every object in JavaScript has.
_PROPERTIES = frozenset({
    "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf",
    "__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__",
})  # fmt: skip


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
    alt = _altair()
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
    alt = _altair()
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
        raise ValueError("a chart must have at least one row, got none")
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
    alt = _altair()
    return alt.hconcat(*(alt.vconcat(*column, spacing=14) for column in columns if column), spacing=24)


def _map(rows: Sequence[Mapping[str, Any]], order: list[str], title: str, cell: tuple[int, int]) -> Any:
    alt = _altair()
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


def intervals(rows: Rows, *, x_title: str = "mean, with its interval", title: str = "", width: int = 360) -> Any:
    """
    Draw a point with its interval for each arm, from top to bottom in the order of the rows.

    Parameters
    ----------
    rows
        arm, mean, low, high; None for a number that is not known.
    x_title
        The title of the axis of means.
    """
    alt = _altair()
    data = [json_ready(row) | {"arm": str(row["arm"])} for row in rows]
    if not data:
        raise ValueError("a chart must have at least one row, got none")
    names = [row["arm"] for row in data]
    # All arms, in their order: one without a mean has an empty line rather than none.
    up = alt.Y("arm:N", sort=names, scale=alt.Scale(domain=names), title=None, axis=alt.Axis(labelLimit=220))
    scale = alt.Scale(zero=False, nice=True, padding=8)
    across = alt.X("mean:Q", title=x_title, scale=scale, axis=alt.Axis(gridColor="#e4e4e4", tickCount=6))
    known = [row for row in data if row["low"] is not None and row["high"] is not None]
    rules = alt.Chart(alt.Data(values=known)).mark_rule(strokeWidth=2.2, color=COLOURS[0])
    points = alt.Chart(alt.Data(values=[row for row in data if row["mean"] is not None]))
    numbers = [alt.Tooltip(f"{name}:Q", format=".4~g") for name in ("mean", "low", "high")]
    drawn = alt.layer(
        rules.encode(x=alt.X("low:Q", title=x_title, scale=scale), x2="high:Q", y=up),
        points.mark_point(filled=True, size=60, opacity=1, color=COLOURS[0]).encode(
            x=across, y=up, tooltip=[alt.Tooltip("arm:N"), *numbers]
        ),
    ).properties(width=width, height=alt.Step(26))
    return drawn.properties(title=alt.Title(title, anchor="start")) if title else drawn


def bars(rows: Rows, *, x: str, y: str, title: str = "", width: int = 240) -> Any:
    """Draw a bar of length x with its number for each y, from top to bottom in the order of the rows."""
    alt = _altair()
    data = [json_ready(row) for row in rows]
    up = alt.Y(f"{y}:N", sort=[str(row[y]) for row in data], title=None, axis=alt.Axis(labelLimit=220))
    room = alt.Scale(domain=[0, 1.2 * max((row[x] for row in data), default=0) or 1], nice=False)  # for the numbers
    base = alt.Chart(alt.Data(values=data)).encode(
        x=alt.X(f"{x}:Q", title=x, scale=room, axis=alt.Axis(gridColor="#e4e4e4", tickCount=5)), y=up
    )
    drawn = alt.layer(
        base.mark_bar(color=COLOURS[0], height=alt.RelativeBandSize(0.62)),
        base.mark_text(align="left", dx=4, color="#333").encode(text=alt.Text(f"{x}:Q", format=",")),
    )
    return drawn.properties(width=width, height=alt.Step(26), title=alt.Title(title, anchor="start"))


def svg(chart: Any) -> str:
    """Return a chart as the text of an SVG file."""
    _converter()
    file = io.StringIO()
    _drawable(chart).save(file, format="svg")
    return file.getvalue()


def beside(charts: Sequence[Any], *, below: bool = False, one_legend: bool = False) -> Any:
    """Return charts side by side, or one below the other; with one legend if they share their series."""
    alt = _altair()
    resolve: Any = "shared" if one_legend else "independent"
    together = alt.vconcat(*charts) if below else alt.hconcat(*charts)
    return together.resolve_scale(color=resolve, shape=resolve, strokeDash=resolve)


def save(chart: Any, path: str | Path, scale: float = 2.0) -> Path:
    """
    Write a chart to a PNG, SVG or HTML file, by the suffix of its name; the HTML file needs no network.

    `scale` is the number of pixels of a PNG for each pixel of the chart.
    """
    target = Path(path)
    kind = suffix(target)
    _converter()
    chart = _drawable(chart)
    if kind == ".html":
        target.write_text(chart.to_html(inline=True), encoding="utf-8")
    elif kind == ".svg":
        chart.save(str(target), format="svg")
    else:
        chart.save(str(target), format="png", scale_factor=scale)
    return target


def suffix(path: str | Path) -> str:
    """Return the suffix of a path that `save` can write to, or refuse the path."""
    found = Path(path).suffix.lower()
    if found not in SUFFIXES:
        raise ValueError(f"the name of a chart's file must end in .png, .svg or .html, got {str(path)!r}")
    return found


def require() -> None:
    """Refuse at once, rather than after the work, if charts cannot be drawn and saved."""
    _altair()
    _converter()


def _altair() -> ModuleType:
    try:
        import altair
    except ModuleNotFoundError:
        raise ModuleNotFoundError(f"charts need Altair, which is not installed; {install_hint('plot')}") from None
    return altair


def _converter() -> None:
    try:
        import vl_convert  # noqa: F401
    except ModuleNotFoundError:
        hint = install_hint("plot")
        raise ModuleNotFoundError(f"saving charts needs vl-convert, which is not installed; {hint}") from None


def _drawable(chart: Any) -> Any:
    """Return a chart with texts that the renderer can draw: it aborts the whole process at control characters."""
    given = chart.to_dict()
    cleaned = _cleaned(given)
    return chart if cleaned == given else _altair().Chart.from_dict(cleaned)


def _cleaned(part: Any, key: str = "") -> Any:
    if isinstance(part, dict):
        return {name: _cleaned(each, name) for name, each in part.items()}
    if isinstance(part, list):
        return [_cleaned(each) for each in part]
    if not isinstance(part, str):
        return part
    text = printable(part)
    if key == "title":
        # Vega-Lite copies the titles of axes into a program, in which a backslash begins an escape.
        text = text.replace("\\", "\N{SET MINUS}")
    # Vega looks texts up in objects that have these properties already; a space of no width makes them others.
    return f"\N{ZERO WIDTH SPACE}{text}" if text in _PROPERTIES else text


def _ticks(xs: Sequence[float]) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten between the ends, or the powers if they are many; else all of xs."""
    low, high = math.floor(math.log10(xs[0])), math.ceil(math.log10(xs[-1]))
    steps = (1, 2, 5) if high - low <= 3 else (1,)
    found = [s * 10.0**e for e in range(low, high + 1) for s in steps if xs[0] <= s * 10.0**e <= xs[-1]]
    return found if len(found) > 1 else list(xs)
