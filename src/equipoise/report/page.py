"""A view as one HTML page: templates, and the drawings for readers without JavaScript."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

from equipoise import chart
from equipoise.base.inputs import install_hint
from equipoise.chart import PAGE
from equipoise.report.charts import HEADINGS, charts, specs

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER: Final = Path(__file__).parent
# The columns of the table that a phone shows.
NARROW: Final = (0, 1, 2, 4)
# The drawings are made for a wide window and for a phone: widths without the names of arms, in pixels.
_WIDE: Final = {"estimates": 460, "allocation": 240, "precision": 580, "drift": 1000}
_PHONE: Final = {"estimates": 190, "allocation": 190, "precision": 270, "drift": 270}
_SVG: Final = "http://www.w3.org/2000/svg"


def environment(*folders: Path) -> Environment:
    """Return what templates are rendered with: those of these folders, and those of a report."""
    try:
        import jinja2
    except ModuleNotFoundError:
        raise ModuleNotFoundError(f"pages need Jinja2, which is not installed; {install_hint('plot')}") from None
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, FOLDER / "templates"]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["sentence"] = _sentence
    made.globals.update(headings=HEADINGS, narrow=NARROW)
    return made


def _sentence(text: str) -> str:
    """Return a text with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}."


@cache
def _environment() -> Environment:
    return environment()


def static(name: str) -> str:
    """Return the text of a static file of the page."""
    return (FOLDER / "static" / name).read_text(encoding="utf-8")


def page(view: Mapping[str, Any]) -> str:
    """Return a view as one HTML page that needs no other file."""
    from markupsafe import Markup

    chart.require()
    return (
        _environment()
        .get_template("report.html")
        .render(
            view=view,
            specs=specs(view),
            drawings={name: Markup(drawing) for name, drawing in drawings(view).items()},
            style=Markup(static("style.css")),
            vega=Markup(_inline(chart.javascript())),
            code=Markup(_inline(static("page.js"))),
        )
    )


def _inline(code: str) -> str:
    """Return JavaScript that does not end the element that it is in."""
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def drawings(view: Mapping[str, Any]) -> dict[str, str]:
    """Return the charts of a view as SVG, by name, each for a wide window and for a phone."""
    found = dict.fromkeys(HEADINGS, "")
    for kind, widths, labels, columns in (("wide", _WIDE, 140, 4), ("narrow", _PHONE, 110, 2)):
        for name, drawn in charts(view, theme=PAGE, labels=labels, columns=columns, titles=False).items():
            # Fonts differ: a name may be longer than it was measured.
            fitted = drawn.properties(width=widths[name], padding={"left": 14, "right": 14, "top": 5, "bottom": 5})
            found[name] += drawing(fitted, f"{name}-{kind}", kind)
    return found


def drawing(drawn: Any, prefix: str, kind: str) -> str:
    """Return a chart as an SVG element whose ids no other drawing on the page has."""
    root = ElementTree.fromstring(chart.svg(drawn))
    ids = {node.attrib["id"] for node in root.iter() if "id" in node.attrib}
    for node in root.iter():
        for key, value in node.attrib.items():
            if key == "id":
                node.attrib[key] = f"{prefix}-{value}"
            elif value.startswith("url(#") and value[5:-1] in ids:
                node.attrib[key] = f"url(#{prefix}-{value[5:-1]})"
    root.attrib["class"] = kind
    ElementTree.register_namespace("", _SVG)
    return ElementTree.tostring(root, encoding="unicode")
