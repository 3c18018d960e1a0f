"""Lines over a budget: regret, error against spend, and what else is measured at growing sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import choice
from equipoise.base.tables import json_ready
from equipoise.chart.files import altair
from equipoise.chart.style import COLOURS, DASHES, GREY, SHAPES, Rows

RegretScale = Literal["excess", "paper"]


@dataclass(frozen=True)
class X:
    """The horizontal axis of `lines`: the name of its numbers in the rows, and its title."""

    field: str
    title: str


@dataclass(frozen=True)
class Y:
    """
    The vertical axis of `lines`.

    Attributes
    ----------
    field, title
        The name of its numbers in the rows, and its title.
    error
        The name of their errors in the rows: a band from field - error to field + error lies behind each line.
    log
        Whether it is logarithmic.
    domain, ticks
        Its two ends, and the places of its ticks; by default round ones.
    """

    field: str
    title: str
    error: str = ""
    log: bool = False
    domain: tuple[float, float] | None = None
    ticks: Sequence[float] = ()


@dataclass(frozen=True)
class Series:
    """
    Which rows of `lines` belong together.

    Attributes
    ----------
    field
        The name of their series in the rows.
    dashed
        The series that are not measurements: dashed grey lines without points.
    joined
        Whether a line joins the points of a measurement.
    """

    field: str = "strategy"
    dashed: Sequence[str] = ()
    joined: bool = True


@dataclass(frozen=True)
class Noise:
    """A grey band behind the lines: rows of x, low and high, and its caption below the chart's title."""

    rows: Rows = ()
    text: str = ""


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
        x=X("n", "budget n"),
        y=Y(y, y_title, error),
        noise=Noise(noise, noise_text),
        title=title,
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
        raise InvalidInput("a chart of error against spend must have a positive error, got 0 in every row")
    errors = sorted(row["error"] for row in data)
    ends = (errors[0] / 1.1, errors[-1] * 1.1)
    drawn = lines(
        data,
        x=X("spend", titles[0]),
        y=Y("error", titles[1], log=True, domain=ends, ticks=_ticks([ends[0], *errors, ends[1]])),
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
    x: X,
    y: Y,
    series: Series | None = None,
    noise: Noise | None = None,
    title: str = "",
    width: int = 480,
    height: int = 300,
) -> Any:
    """
    Draw lines of y against a logarithmic x, in one colour and shape for each series.

    Bands of one error lie behind the lines of `series`, and the grey band of `noise` behind everything.
    """
    alt = altair()
    data = [json_ready(row) for row in rows]
    if not data:
        raise InvalidInput("a chart must have at least one row, got none")
    noise, series = noise or Noise(), series or Series()
    noisy = [json_ready(row) for row in noise.rows]
    look = _Look.of(series, [str(row[series.field]) for row in data])
    across, up = _across(x, [float(row[x.field]) for row in data]), _up(y)
    layers = [_noise(noisy, across, y)] if noisy else []
    if y.error:
        layers.append(_bands(data, across, y, look))
    layers += _predictions(data, across, up, look) + _measurements(data, across, up, y, look, series.joined)
    heading: dict[str, Any] = {"subtitle": noise.text, "subtitleColor": GREY} if noisy and noise.text else {}
    drawn = alt.layer(*layers).properties(width=width, height=height)
    return drawn.properties(title=alt.Title(title, anchor="start", **heading)) if title else drawn


@dataclass(frozen=True)
class _Look:
    """
    How the series of a chart look.

    Attributes
    ----------
    field
        The name of the series in the rows.
    measured, predicted
        The series with points, and those with dashed grey lines.
    colour, shape, dash
        What tells them apart, as encodings of Altair.
    """

    field: str
    measured: list[str]
    predicted: list[str]
    colour: Any
    shape: Any
    dash: Any

    @classmethod
    def of(cls, series: Series, given: Sequence[str]) -> _Look:
        """Return the look of the series whose names are given, in the order in which they first occur."""
        alt = altair()
        names, predicted = list(dict.fromkeys(given)), list(series.dashed)
        measured = [name for name in names if name not in predicted]
        places = {name: i for i, name in enumerate(measured)}
        colours = [COLOURS[places[name] % len(COLOURS)] if name in places else GREY for name in names]
        shapes = [SHAPES[places[name] % len(SHAPES)] if name in places else "stroke" for name in names]
        dashes = [[1, 0] if name in places else DASHES[predicted.index(name) % len(DASHES)] for name in names]
        key = alt.Legend(
            title=None,
            orient="bottom",
            columns=2,
            labelLimit=400,
            symbolSize=70,
            symbolOpacity=1,
            symbolStrokeWidth=1.6,
        )
        return cls(
            series.field,
            measured,
            predicted,
            alt.Color(f"{series.field}:N", scale=alt.Scale(domain=names, range=colours), legend=key),
            alt.Shape(f"{series.field}:N", scale=alt.Scale(domain=names, range=shapes), legend=key),
            alt.StrokeDash(f"{series.field}:N", scale=alt.Scale(domain=names, range=dashes), legend=key),
        )

    def among(self, data: list[dict[str, Any]], chosen: Sequence[str]) -> list[dict[str, Any]]:
        """Return the rows of the chosen series."""
        return [row for row in data if str(row[self.field]) in chosen]


def _across(x: X, given: Sequence[float]) -> Any:
    """Return the horizontal axis for the values given; a single one is in the middle."""
    alt = altair()
    xs = sorted(set(given))
    ends = [xs[0], xs[-1]] if len(xs) > 1 else [xs[0] / 2, xs[0] * 2]
    numbers = "~s" if xs[-1] >= 1e4 else ","
    return alt.X(
        f"{x.field}:Q",
        title=x.title,
        scale=alt.Scale(type="log", domain=ends, nice=False),
        axis=alt.Axis(values=_ticks(xs), format=numbers, grid=False, labelOverlap=True),
    )


def _up(y: Y) -> Any:
    """Return the vertical axis."""
    alt = altair()
    ticks: dict[str, Any] = {"tickCount": 6}
    if y.ticks:
        ticks = {"values": list(y.ticks), "format": "~g"}
    elif y.log:
        ticks = {"values": [10.0**e for e in range(-12, 13)]}
    axis = alt.Axis(gridColor="#e4e4e4", **ticks)
    return alt.Y(f"{y.field}:Q", title=y.title or None, scale=_scale(y), axis=axis)


def _scale(y: Y) -> Any:
    """Return the scale of the vertical axis: with the ends given, or with round ones."""
    ends = {} if y.domain is None else {"domain": list(y.domain)}
    return altair().Scale(type="log" if y.log else "linear", nice=y.domain is None, **ends)


def _low(y: Y) -> Any:
    """Return the lower edge of a band."""
    return altair().Y("low:Q", scale=_scale(y), title=y.title or None)


def _noise(rows: list[dict[str, Any]], across: Any, y: Y) -> Any:
    """Return the grey band."""
    alt = altair()
    area = alt.Chart(alt.Data(values=rows)).mark_area(color=GREY, opacity=0.18)
    return area.encode(x=across, y=_low(y), y2="high:Q")


def _bands(data: list[dict[str, Any]], across: Any, y: Y, look: _Look) -> Any:
    """Return the bands of one error to each side; where one would reach 0 on a logarithmic axis, it is left out."""
    alt = altair()
    banded = [
        row | {"low": row[y.field] - row[y.error], "high": row[y.field] + row[y.error]}
        for row in data
        if row.get(y.error) is not None and row[y.field] is not None and not (y.log and row[y.field] <= row[y.error])
    ]
    area = alt.Chart(alt.Data(values=banded)).mark_area(opacity=0.25)
    return area.encode(x=across, y=_low(y), y2="high:Q", color=look.colour)


def _predictions(data: list[dict[str, Any]], across: Any, up: Any, look: _Look) -> list[Any]:
    """Return the layer of the series that are not measurements, if there are any."""
    part = look.among(data, look.predicted)
    return [_joined(_encoded(part, across, up, look), look)] if part else []


def _measurements(data: list[dict[str, Any]], across: Any, up: Any, y: Y, look: _Look, joined: bool) -> list[Any]:
    """Return the layers of the measurements, if there are any: lines, and points that say what they are."""
    alt = altair()
    part = look.among(data, look.measured)
    if not part:
        return []
    tips = [alt.Tooltip(f"{look.field}:N"), alt.Tooltip(across.shorthand), alt.Tooltip(up.shorthand, format=".4~g")]
    tips += [alt.Tooltip(f"{y.error}:Q", format=".2~g")] if y.error else []
    encoded = _encoded(part, across, up, look)
    points = encoded.mark_point(filled=True, size=42, opacity=1).encode(shape=look.shape, tooltip=tips)
    return [_joined(encoded, look), points] if joined else [points]


def _encoded(part: list[dict[str, Any]], across: Any, up: Any, look: _Look) -> Any:
    alt = altair()
    return alt.Chart(alt.Data(values=part)).encode(x=across, y=up, color=look.colour)


def _joined(encoded: Any, look: _Look) -> Any:
    return encoded.mark_line(strokeWidth=1.6).encode(strokeDash=look.dash)


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
