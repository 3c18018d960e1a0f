"""
The arms of a study: estimates, where the samples went, how the intervals shrank, what changed along the way.

The data of each chart have a name, under which a page replaces them while the study runs. What depends on them is
decided by Vega when it draws, except what the arguments say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from equipoise.base.errors import InvalidInput
from equipoise.base.tables import json_ready
from equipoise.chart.files import altair
from equipoise.chart.style import PAGE, PRINT, Rows, Theme, config

Width = int | Literal["container"]

# The series of `precision`, in the order of the legend.
WIDEST, EVEN, TARGET, EACH = SERIES = ("widest interval", "even split", "target", "each arm")
# Of the ticks of a logarithmic axis those at 1, 2 and 5 times a power of ten count, where there are enough of them.
_ROUND: Final = (
    "(domain('{axis}')[1] < 8 * domain('{axis}')[0] || "
    "indexof([1, 2, 5, 10], round(datum.value / pow(10, floor(log(datum.value) / LN10 + 1e-9)))) >= 0)"
)
_COUNTS: Final = "datum.value >= 1e4 ? format(datum.value, '~s') : format(datum.value, ',~f')"


def intervals(
    rows: Rows,
    *,
    x_title: str = "mean, with its interval",
    title: str = "",
    percent: bool = False,
    width: Width = 360,
    step: int = 26,
    labels: int = 220,
    theme: Theme = PRINT,
) -> Any:
    """
    Draw a point with its interval for each arm, from top to bottom in the order of the rows.

    Parameters
    ----------
    rows
        arm, mean, low, high; None for a number that is not known. Where `wide` is true, the interval is wider than it
        should be and has another colour.
    x_title
        The title of the axis of means.
    percent
        Whether means are shares, to be shown in percent.
    step, labels
        The height of an arm, and the most room for its name, in pixels.
    """
    alt = altair()
    data = _rows(rows)
    shown = alt.Axis(tickCount=6, **({"format": "~%"} if percent else {}))
    scale = alt.Scale(zero=False, nice=False, padding=12)
    colour = alt.condition("datum.wide", alt.value(theme.warn), alt.value(theme.accent))
    numbers = [alt.Tooltip(f"{name}:Q", format=".3~%" if percent else ".4~g") for name in ("mean", "low", "high")]
    base = alt.Chart().encode(y=_names(data, labels, theme), color=colour, tooltip=[alt.Tooltip("arm:N"), *numbers])
    rules = base.transform_filter("isValid(datum.low) && isValid(datum.high)").mark_rule(
        strokeWidth=3, strokeCap="round"
    )
    points = base.transform_filter("isValid(datum.mean)").mark_point(
        filled=True, size=120, opacity=1, stroke=theme.card, strokeWidth=2
    )
    drawn = alt.layer(
        rules.encode(x=alt.X("low:Q", title=x_title or None, scale=scale, axis=shown), x2="high:Q"),
        points.encode(x=alt.X("mean:Q", title=x_title or None, scale=scale, axis=shown)),
        data=_named("estimates", data),
    )
    return _finished(drawn, theme, title, width, step * len(data))


def allocation(
    rows: Rows,
    *,
    title: str = "",
    width: Width = 240,
    step: int = 26,
    labels: int = 220,
    theme: Theme = PRINT,
) -> Any:
    """
    Draw a bar with the number of its samples for each arm, and a tick where the best split has it.

    Parameters
    ----------
    rows
        arm, samples, best (None where it is not known).
    step, labels
        The height of an arm, and the most room for its name, in pixels.
    """
    alt = altair()
    data = _rows(rows)
    across = alt.X("samples:Q", title=None, scale=alt.Scale(nice=False), axis=None)
    tips = [alt.Tooltip("arm:N"), *(alt.Tooltip(f"{name}:Q", format=",.0f") for name in ("samples", "best"))]
    base = alt.Chart().encode(y=_names(data, labels, theme), tooltip=tips)
    # A number stands behind the bar, or behind the tick where that is close.
    close = "datum.best > datum.samples && datum.best < datum.samples + 0.2 * datum.most"
    texts = base.transform_joinaggregate(most="max(samples)").transform_calculate(
        end=f"{close} ? datum.best : datum.samples", room="1.22 * max(datum.end, datum.best)"
    )
    drawn = alt.layer(
        base.mark_bar(color=theme.accent, opacity=0.65, cornerRadius=4, height=alt.RelativeBandSize(0.45)).encode(
            x=across
        ),
        base.transform_filter("isValid(datum.best)")
        .mark_tick(color=theme.ink, thickness=2, size=0.65 * step)
        .encode(x=alt.X("best:Q", axis=None)),
        texts.mark_text(aria=False, align="left", dx=8, color=theme.ink, fontSize=13).encode(
            x=alt.X("end:Q", axis=None), text=alt.Text("samples:Q", format=",")
        ),
        # Nothing to see: room for the numbers.
        texts.mark_point(aria=False, opacity=0).encode(x=alt.X("room:Q", axis=None)),
        data=_named("allocation", data),
    )
    return _finished(drawn, theme, title, width, step * len(data))


def precision(
    rows: Rows,
    *,
    titles: tuple[str, str] = ("samples", "half-width"),
    title: str = "",
    series: Sequence[str] = SERIES,
    factor: float = 1.0,
    width: Width = 460,
    height: int = 230,
    columns: int = 4,
    theme: Theme = PRINT,
) -> Any:
    """
    Draw how half-widths fell with the number of samples, on logarithmic axes.

    Parameters
    ----------
    rows
        samples, width, series, kind: the kind is one of `SERIES`, and arms are told apart by their series.
    titles
        Titles of the two axes.
    series
        The kinds in the legend.
    factor
        What half-widths are multiplied with to be shown: 100 for percent.
    columns
        Of the legend.
    """
    alt = altair()
    data = _rows(rows)
    colours = dict(zip(SERIES, (theme.accent, theme.soft, theme.good, theme.faint), strict=True))
    x = alt.X(
        "samples:Q",
        title=titles[0] or None,
        scale=alt.Scale(type="log", nice=False),
        axis=_log_axis("x", _COUNTS, grid=False, tickCount=5),
    )
    y = alt.Y(
        "width:Q",
        title=titles[1] or None,
        scale=alt.Scale(type="log", nice=False, padding=6),
        axis=_log_axis("y", f"'±' + format({factor:g} * datum.value, '~g')", tickCount=8),
    )
    key = alt.Legend(orient="top", symbolType="stroke", symbolSize=300, symbolStrokeWidth=3, columns=columns, offset=6)
    shown = [kind for kind in SERIES if kind in series]
    scale: dict[str, list[Any]] = {
        "color": [colours[kind] for kind in shown],
        "strokeDash": [[5, 5] if kind == EVEN else [1, 0] for kind in shown],
    }
    encoded = {
        name: kind("kind:N", scale=alt.Scale(domain=shown, range=scale[name]), legend=key)
        for name, kind in (("color", alt.Color), ("strokeDash", alt.StrokeDash))
    }
    tips = [
        alt.Tooltip("series:N"),
        alt.Tooltip("samples:Q", format=","),
        alt.Tooltip("width:Q", format=".3~g", title="half-width"),
    ]
    base = alt.Chart().encode(x=x, y=y, detail="series:N", tooltip=tips, **encoded)
    layers = [
        base.transform_filter(f"datum.kind === '{kind}'").mark_line(strokeWidth=thick, interpolate="linear")
        for kind, thick in ((EACH, 1.5), (EVEN, 2), (TARGET, 2), (WIDEST, 3))
        if kind in shown
    ]
    return _finished(alt.layer(*layers, data=_named("precision", data)), theme, title, width, height)


def drift(
    rows: Rows,
    *,
    arms: Sequence[str],
    titles: tuple[str, str] = ("samples of the arm", "mean of neighbouring samples"),
    title: str = "",
    percent: bool = False,
    width: Width = 460,
    height: int = 200,
    theme: Theme = PRINT,
) -> Any:
    """
    Draw the means of neighbouring samples of each arm in the order of asking.

    Parameters
    ----------
    rows
        arm, sample, mean.
    arms
        The arms' names, in the order of the legend.
    titles
        Titles of the two axes.
    percent
        Whether means are shares, to be shown in percent.
    """
    alt = altair()
    shown = alt.Axis(tickCount=5, **({"format": "~%"} if percent else {}))
    key = alt.Legend(orient="top", symbolType="stroke", symbolSize=300, columns=2)
    drawn = (
        alt.Chart(_named("drift", _rows(rows)))
        .mark_line(strokeWidth=2, point=True)
        .encode(
            x=alt.X("sample:Q", title=titles[0] or None, axis=alt.Axis(grid=False, tickCount=5, format=",d")),
            y=alt.Y("mean:Q", title=titles[1] or None, scale=alt.Scale(zero=False), axis=shown),
            color=alt.Color(
                "arm:N",
                scale=alt.Scale(domain=list(arms), range=[theme.accent, theme.warn, theme.good, theme.soft]),
                legend=key,
            ),
            tooltip=[alt.Tooltip("arm:N"), alt.Tooltip("sample:Q"), alt.Tooltip("mean:Q", format=".4~g")],
        )
    )
    return _finished(drawn, theme, title, width, height)


def _log_axis(axis: str, label: str, **more: Any) -> Any:
    """Return a logarithmic axis with labels and grid lines at round numbers only."""
    alt = altair()
    is_round = _ROUND.format(axis=axis)
    lines = {"condition": {"test": is_round, "value": 1}, "value": 0}
    return alt.Axis(
        labelExpr=f"{is_round} ? {label} : ''", gridOpacity=lines, labelOverlap="greedy", labelSeparation=6, **more
    )


def _rows(rows: Rows) -> list[dict[str, Any]]:
    data = [{**json_ready(row), **({"arm": str(row["arm"])} if "arm" in row else {})} for row in rows]
    if not data:
        raise InvalidInput("a chart must have at least one row, got none")
    return data


def _named(name: str, data: list[dict[str, Any]]) -> Any:
    return altair().InlineData(values=data, name=name)


def _names(data: list[dict[str, Any]], labels: int, theme: Theme) -> Any:
    """Return the axis of arms: all of them, in their order; one without a number has an empty line."""
    alt = altair()
    names = [row["arm"] for row in data]
    axis = alt.Axis(labelLimit=labels, labelColor=theme.ink, labelFontSize=13, grid=False)
    return alt.Y("arm:N", sort=names, scale=alt.Scale(domain=names), title=None, axis=axis)


def _finished(drawn: Any, theme: Theme, title: str, width: Width, height: Any) -> Any:
    alt = altair()
    behind = "transparent" if theme is PAGE else theme.card
    fitted = drawn.properties(width=width, height=height, config=alt.Config(**config(theme)), background=behind)
    return fitted.properties(title=alt.Title(title, anchor="start")) if title else fitted
