"""Charts as files and texts: PNG, SVG, HTML."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import install_hint, printable

SUFFIXES = (".png", ".svg", ".html")

# What every object in JavaScript has.
_PROPERTIES = frozenset({
    "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf",
    "__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__",
})  # fmt: skip


def svg(chart: Any) -> str:
    """Return a chart as the text of an SVG file."""
    return str(_converter().vegalite_to_svg(_specification(chart), vl_version=_version()))


def save(chart: Any, path: str | Path, scale: float = 2.0) -> Path:
    """
    Write a chart to a PNG, SVG or HTML file, by the suffix of its name; the HTML file needs no network.

    `scale` is the number of pixels of a PNG for each pixel of the chart.
    """
    [target] = save_all(chart, [path], scale)
    return target


def save_all(chart: Any, paths: Iterable[str | Path], scale: float = 2.0) -> list[Path]:
    """Write a chart to several files, as `save` does, and draw it once for all PNG and SVG files."""
    targets = [Path(path) for path in paths]
    kinds = [suffix(target) for target in targets]
    converter = _converter()
    drawn = svg(chart) if set(kinds) - {".html"} else ""
    for target, kind in zip(targets, kinds, strict=True):
        if kind == ".html":
            target.write_text(_drawable(chart).to_html(inline=True), encoding="utf-8")
        elif kind == ".svg":
            target.write_text(drawn, encoding="utf-8")
        else:
            target.write_bytes(converter.svg_to_png(drawn, scale=scale))
    return targets


def suffix(path: str | Path) -> str:
    """Return the suffix of a path that `save` can write to, or refuse the path."""
    found = Path(path).suffix.lower()
    if found not in SUFFIXES:
        raise InvalidInput(f"the name of a chart's file must end in .png, .svg or .html, got {str(path)!r}")
    return found


def require() -> None:
    """Refuse at once, rather than after the work, if charts cannot be drawn and saved."""
    altair()
    _converter()


def start() -> None:
    """Start what draws charts: it takes a second, in which other work can go on in other threads."""
    _converter().vegalite_to_svg({"mark": "point", "data": {"values": [{}]}}, vl_version=_version())


def altair() -> ModuleType:
    """Return Altair, or say how to install it."""
    try:
        import altair
    except ModuleNotFoundError:
        raise ModuleNotFoundError(f"charts need Altair, which is not installed; {install_hint('plot')}") from None
    return altair


@cache
def javascript() -> str:
    """
    Return a JavaScript module that sets `window.vegaEmbed`: Vega, Vega-Lite and Vega-Embed in one.

    About 0.9 MB, or 0.3 MB compressed. It takes some seconds to put together, once in a process.
    """
    return str(_converter().javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=_version()))


def javascript_version() -> str:
    """Return what changes with `javascript`, without putting it together."""
    return f"{_converter().__version__}-{_version()}"


def _version() -> str:
    """Return the version of Vega-Lite that Altair writes."""
    return ".".join(altair().SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def _converter() -> Any:
    try:
        import vl_convert
    except ModuleNotFoundError:
        hint = install_hint("plot")
        raise ModuleNotFoundError(f"saving charts needs vl-convert, which is not installed; {hint}") from None
    return vl_convert


def drawable(rows: Any) -> Any:
    """Return rows, or any other part of a chart, with texts that renderers can draw."""
    return _cleaned(rows)


def _specification(chart: Any) -> Any:
    """
    Return a chart in the words of Vega-Lite, with texts that the renderer can draw.

    Altair would compare it with the schema of all charts first, which takes longer than drawing it.
    """
    return _cleaned(chart.to_dict(validate=False))


def _drawable(chart: Any) -> Any:
    """Return a chart with texts that the renderer can draw: it aborts the whole process at control characters."""
    given = chart.to_dict()
    cleaned = _cleaned(given)
    return chart if cleaned == given else altair().Chart.from_dict(cleaned)


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
