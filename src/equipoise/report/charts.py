"""The charts of a view: for a page, as drawings, and as one picture."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from equipoise import chart
from equipoise.base.errors import InvalidInput
from equipoise.chart import PAGE, PRINT, Theme
from equipoise.chart.arms import Width

# The names of the charts, and what is above them.
HEADINGS: Final = {
    "estimates": "Estimates",
    "allocation": "Where the samples went",
    "precision": "Widest interval so far",
    "drift": "What changed along the way",
}

# What a screen reader says of each chart.
_DESCRIPTIONS: Final = {
    "estimates": "Chart of the mean and the interval of each arm; the table of arms has the numbers.",
    "allocation": "Chart of the samples of each arm; the table of arms has the numbers.",
    "precision": "Chart of the widest interval against the number of samples.",
    "drift": "Chart of the means of neighbouring samples of arms that drift.",
}


def charts(
    view: Mapping[str, Any],
    *,
    theme: Theme = PRINT,
    width: Width = 480,
    labels: int = 200,
    columns: int = 4,
    titles: bool = True,
) -> dict[str, Any]:
    """
    Return the charts of a view, by name; without those that have nothing to show.

    Parameters
    ----------
    view
        What `view` returned.
    theme
        The colours.
    width, labels, columns
        The width of a chart and the most room for names of arms, in pixels, and the columns of a legend.
    titles
        Whether charts have titles.
    """
    rows, shape = view["charts"], view["shape"]
    heights: dict[str, Any] = {"step": _step(len(shape["arms"])), "labels": labels}
    same: dict[str, Any] = {"theme": theme, "width": width}
    above = {name: heading if titles else "" for name, heading in HEADINGS.items()}
    drawn = {
        "estimates": chart.intervals(
            rows["estimates"],
            x_title=shape["mean"] if titles else "",
            title=above["estimates"],
            percent=shape["percent"],
            **heights,
            **same,
        ),
        "allocation": chart.allocation(rows["allocation"], title=above["allocation"], **heights, **same),
    }
    if shape["precision"]:
        drawn["precision"] = chart.precision(
            rows["precision"],
            titles=("samples of all arms", shape["half"]) if titles else ("", ""),
            title=above["precision"],
            series=shape["precision"],
            factor=shape["factor"],
            columns=columns,
            **same,
        )
    if shape["drifting"]:
        drawn["drift"] = chart.drift(
            rows["drift"], arms=shape["drifting"], title=above["drift"], percent=shape["percent"], **same
        )
    return {name: each.properties(description=_DESCRIPTIONS[name]) for name, each in drawn.items()}


def _step(arms: int) -> int:
    """Return the height of an arm: the fewer, the more."""
    return 44 if arms <= 8 else 34 if arms <= 12 else 28


def specs(view: Mapping[str, Any]) -> dict[str, Any]:
    """Return the charts of a page as Vega-Lite has them, without their rows."""
    return json.loads(_specs(json.dumps(view["shape"])))  # type: ignore[no-any-return]


@lru_cache(maxsize=64)
def _specs(shape: str) -> str:
    """Return the charts of a shape: whatever the rows are, they are the same."""
    known = json.loads(shape)
    arms = [{"arm": arm} for arm in known["arms"]]
    rows = {"estimates": arms, "allocation": arms, "precision": [{}], "drift": [{}]}
    drawn = charts({"shape": known, "charts": rows}, theme=PAGE, width="container", titles=False)
    found = {name: each.to_dict() for name, each in drawn.items()}
    for spec in found.values():
        spec["data"].pop("values")
    return json.dumps(chart.drawable(found))


def png(view: Mapping[str, Any], path: Path) -> Path:
    """Write the charts of a view as one PNG picture."""
    if path.suffix.lower() != ".png":
        raise InvalidInput(f"the name of a picture must end in .png, got {str(path)!r}")
    drawn = list(charts(view, width=360).values())
    pairs = [chart.beside(drawn[i : i + 2]) for i in range(0, len(drawn), 2)]
    picture = chart.beside(pairs, below=True)
    return chart.save(picture.properties(background="white", padding=12), path)
