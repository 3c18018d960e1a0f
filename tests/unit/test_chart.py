"""Charts: what is drawn, and the files."""

from __future__ import annotations

import builtins
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise import chart
from equipoise.simulation import Curve
from tests.waiting import HANG

ROWS = [
    {"strategy": name, "n": n, "rescaled_regret": y * n**0.1, "rescaled_error": 0.1}
    for name, y in (("ch-as", 8.0), ("b-as", 3.0))
    for n in (50, 200, 1000)
]


def layers(drawn: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = drawn.to_dict()["layer"]
    return found


def marks(drawn: Any) -> list[str]:
    return [layer["mark"]["type"] for layer in layers(drawn)]


def test_regret_has_lines_points_and_bands_of_one_error() -> None:
    drawn = chart.regret(ROWS)
    assert marks(drawn) == ["area", "line", "point"]
    band = layers(drawn)[0]["data"]["values"]
    assert [(row["low"], row["high"]) for row in band] == [
        (row["rescaled_regret"] - 0.1, row["rescaled_regret"] + 0.1) for row in ROWS
    ]
    for layer in layers(drawn):
        assert layer["encoding"]["x"]["scale"]["type"] == "log"
        assert layer["encoding"]["x"]["title"] == "budget n"
        assert layer["encoding"]["y"]["title"] == "rescaled regret, n^(3/2) R"
    colour = layers(drawn)[1]["encoding"]["color"]["scale"]
    assert colour["domain"] == ["ch-as", "b-as"]
    assert colour["range"] == list(chart.COLOURS[:2])


def test_regret_on_the_scale_of_the_best_loss() -> None:
    rows = [row | {"excess": 12.0, "excess_error": 1.5} for row in ROWS]
    drawn = chart.regret(rows, scale="excess")
    assert marks(drawn) == ["area", "line", "point"]
    assert {(row["low"], row["high"]) for row in layers(drawn)[0]["data"]["values"]} == {(10.5, 13.5)}
    assert layers(drawn)[1]["encoding"]["y"]["title"] == "excess over the best possible loss, %"
    with pytest.raises(
        ValueError, match="scale must be one of 'excess', 'paper', got 'excesss'; did you mean 'excess'"
    ):
        chart.regret(rows, scale="excesss")  # type: ignore[arg-type]


def test_intervals_have_a_line_for_every_arm() -> None:
    rows: list[dict[str, Any]] = [
        {"arm": "b", "mean": np.float64(2.0), "low": 1.0, "high": 3.0},
        {"arm": 1, "mean": 5.0, "low": -math.inf, "high": math.inf},
        {"arm": "none", "mean": math.nan, "low": None, "high": None},
    ]
    drawn = chart.intervals(rows, x_title="points", title="Estimates", width=200)
    assert marks(drawn) == ["rule", "point"]
    spec = drawn.to_dict()
    assert spec["data"]["name"] == "estimates"
    assert [(row["arm"], row["mean"], row["low"]) for row in spec["data"]["values"]] == [
        ("b", 2.0, 1.0),
        ("1", 5.0, None),
        ("none", None, None),
    ]
    assert {layer["encoding"]["y"]["scale"]["domain"][-1] for layer in layers(drawn)} == {"none"}
    assert {layer["encoding"]["x"]["title"] for layer in layers(drawn)} == {"points"}
    assert spec["title"]["text"] == "Estimates"
    # One interval, two means, and a name for each arm.
    svg = chart.svg(drawn)
    assert svg.count('aria-roledescription="rule mark"') == 1
    assert svg.count('aria-roledescription="point"') == 2
    assert all(f">{name}<" in svg for name in ("b", "1", "none"))
    # Nothing is known yet: the arms are there, and no points.
    assert 'aria-roledescription="point"' not in chart.svg(chart.intervals(rows[2:]))
    with pytest.raises(ValueError, match="a chart must have at least one row"):
        chart.intervals([])


def test_shares_are_in_percent_and_wide_intervals_in_another_colour() -> None:
    rows = [{"arm": name, "mean": 0.5, "low": 0.4, "high": 0.6, "wide": name == "a"} for name in ("a", "b")]
    svg = chart.svg(chart.intervals(rows, percent=True))
    assert ">50%<" in svg
    assert svg.count(f'stroke="{chart.PRINT.warn}"') == svg.count(f'stroke="{chart.PRINT.accent}"') == 1
    assert f'stroke="{chart.PAGE.warn}"' in chart.svg(chart.intervals(rows, theme=chart.PAGE))
    assert chart.PAGE.warn == "var(--warn, #9c4a08)"


def test_allocation_has_bars_numbers_and_the_best_split() -> None:
    rows = [{"arm": "a", "samples": 1200, "best": 1000.0}, {"arm": "b", "samples": 30, "best": None}]
    svg = chart.svg(chart.allocation(rows))
    assert svg.count('aria-roledescription="bar"') == 2
    assert svg.count('aria-roledescription="tick"') == 1
    assert ">1,200<" in svg
    assert ">30<" in svg


def test_half_widths_have_round_ticks_on_logarithmic_axes() -> None:
    rows = [
        {"samples": n, "width": times / math.sqrt(n), "series": kind, "kind": kind}
        for kind, times in (("widest interval", 3.5), ("even split", 4.7))
        for n in (100, 300, 3000)
    ]
    svg = chart.svg(chart.precision(rows, series=["widest interval", "even split"], factor=100))
    assert svg.count('aria-roledescription="line mark"') == 2
    assert re.findall(r">([±\d,]+)</text>", svg) == ["100", "200", "500", "1,000", "2,000", "±10", "±20"]
    assert ">target<" not in svg
    narrow = [{"samples": n, "width": 0.061 + 1 / n, "series": "a", "kind": "each arm"} for n in (130, 190)]
    assert len(re.findall(r">[±\d,.]+</text>", chart.svg(chart.precision(narrow)))) > 3


def test_drift_is_drawn_by_arm() -> None:
    rows = [{"arm": arm, "sample": i, "mean": float(i)} for arm in ("a", "b") for i in (50, 150)]
    svg = chart.svg(chart.drift(rows, arms=["b", "a"]))
    assert svg.count('aria-roledescription="line mark"') == 2
    assert svg.index(">b<") < svg.index(">a<")


def test_a_curve_draws_itself() -> None:
    curve = eq.simulate_budgets(
        eq.Problem([eq.Gaussian(0, 4), eq.Rademacher()]), ["auto", "uniform"], [50, 100], runs=100
    )
    assert isinstance(curve, Curve)
    points = [row for layer in layers(curve.plot())[-1:] for row in layer["data"]["values"]]
    assert [(row["strategy"], row["n"]) for row in points] == [
        (name, n) for name in ("auto", "uniform") for n in (50, 100)
    ]


def test_noise_and_predictions_are_grey() -> None:
    noise = [{"n": n, "low": 2.0, "high": 4.0} for n in (50, 1000)]
    drawn = chart.regret(ROWS, title="a title", noise=noise, noise_text="what it is")
    assert marks(drawn) == ["area", "area", "line", "point"]
    assert drawn.to_dict()["title"] | {"anchor": ""} == {
        "text": "a title",
        "anchor": "",
        "subtitle": "what it is",
        "subtitleColor": chart.GREY,
    }
    drawn = chart.lines(
        ROWS,
        x=chart.X("n", "n"),
        y=chart.Y("rescaled_regret", "y", log=True),
        series=chart.Series(dashed=("b-as",), joined=False),
    )
    assert marks(drawn) == ["line", "point"]  # the prediction's line, the measurement's points
    assert layers(drawn)[0]["encoding"]["color"]["scale"]["range"] == [chart.COLOURS[0], chart.GREY]
    assert layers(drawn)[0]["encoding"]["y"]["scale"]["type"] == "log"


def test_numbers_of_numpy_and_what_is_not_finite() -> None:
    rows = [
        {"strategy": "a", "n": np.int64(10), "rescaled_regret": np.float64(1.0), "rescaled_error": math.nan},
        {"strategy": "a", "n": 20, "rescaled_regret": math.inf, "rescaled_error": 0.1},
    ]
    drawn = chart.regret(rows)
    assert layers(drawn)[0]["data"]["values"] == []
    assert layers(drawn)[1]["data"]["values"][0] == {
        "strategy": "a",
        "n": 10,
        "rescaled_regret": 1.0,
        "rescaled_error": None,
    }


@pytest.mark.parametrize(
    ("ns", "domain", "ticks"),
    [
        ((50, 1000), [50, 1000], [50, 100, 200, 500, 1000]),
        ((100, 10**6), [100, 10**6], [100, 10**3, 10**4, 10**5, 10**6]),
        ((700,), [350, 1400], [700]),
        ((60, 70), [60, 70], [60, 70]),
    ],
)
def test_the_axis_of_n(ns: tuple[int, ...], domain: list[float], ticks: list[float]) -> None:
    rows = [{"strategy": "a", "n": n, "rescaled_regret": 1.0, "rescaled_error": 0.1} for n in ns]
    axis = layers(chart.regret(rows))[1]["encoding"]["x"]
    assert axis["scale"]["domain"] == domain
    assert axis["axis"]["values"] == ticks


def test_no_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="a chart must have at least one row"):
        chart.regret([])


def test_side_by_side() -> None:
    both = [chart.regret(ROWS, width=200), chart.regret(ROWS, width=200)]
    assert len(chart.beside(both).to_dict()["hconcat"]) == 2
    assert len(chart.beside(both, below=True).to_dict()["vconcat"]) == 2
    assert chart.beside(both, one_legend=True).to_dict()["resolve"]["scale"]["color"] == "shared"


def test_files(tmp_path: Path) -> None:
    drawn = chart.regret(ROWS)
    png = chart.save(drawn, tmp_path / "a.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert len(png) > 5000
    svg = chart.save(drawn, str(tmp_path / "a.SVG")).read_text()
    assert svg.startswith("<svg")
    assert "budget n" in svg
    page = chart.save(drawn, tmp_path / "a.html").read_text()
    assert "rescaled_regret" in page
    chart.start()
    both = chart.save_all(drawn, [tmp_path / "b.png", tmp_path / "b.svg"])
    assert [path.read_bytes() for path in both] == [png, svg.encode()]
    assert not re.search(r'<(script|link)[^>]+(src|href)="http', page)  # nothing is fetched


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"the name of a chart's file must end in \.png, \.svg or \.html, got 'a\.jpg'"
    ):
        chart.save(chart.regret(ROWS), "a.jpg")


@pytest.mark.parametrize("missing", ["altair", "vl_convert"])
def test_without_the_plot_extra_the_message_says_what_to_install(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any, **more: Any) -> Any:
        if name == missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(
        ModuleNotFoundError,
        match=r"which is not installed; to install it: pip install '\.\[plot\]'",
    ):
        chart.require()


def cells(*given: tuple[str, str, str, float, float]) -> list[dict[str, object]]:
    keys = ("strategy", "problem", "tails", "n/K", "excess")
    return [
        dict(zip(keys, row, strict=True)) | {"kind": "binary" if row[1].startswith("b") else "continuous"}
        for row in given
    ]


def data(spec: Any) -> list[Any]:
    """All rows in a chart, by panel; Altair puts them as high up as it can."""
    if isinstance(spec, list):
        return [found for part in spec for found in data(part)]
    if not isinstance(spec, dict):
        return []
    here = [spec["data"]["values"]] if "data" in spec else []
    return here + [found for key, part in spec.items() if key != "data" for found in data(part)]


def test_a_board_has_a_panel_for_each_group_and_marks_the_worst() -> None:
    rows = cells(
        ("auto", "long", "light", 500.0, 0.2),
        ("auto", "short", "light", 15.0, 30.0),
        ("auto", "heavy", "heavy", 50.0, 12.0),
        ("auto", "binary", "light", 50.0, -0.2),
        ("greedy", "short", "light", 15.0, 12_345.0),
        ("greedy", "binary", "light", 50.0, 120.0),
    )
    spec = chart.board(rows, ["auto", "greedy"]).to_dict()
    panels = [panel for column in spec["hconcat"] for panel in column["vconcat"]]
    titles = [panel["title"]["text"] for panel in panels]
    assert [title.partition(":")[0] for title in titles] == [
        "continuous, light tails",
        "continuous, heavy tails",
        "binary",
    ]
    light, heavy, binary = data(spec)
    assert [row["problem"] for row in light] == ["short  15", "short  15", "long  500"]  # the scarcest first
    assert [row["text"] for row in light] == ["30", "12k", "0"]
    assert [row["colour"] for row in light] == [30.0, 1000.0, 1.0]  # capped at both ends
    assert [row["worst"] for row in light] == [True, True, False]
    assert [row["worst"] for row in heavy + binary] == [False, True, True]
    with pytest.raises(ValueError, match="a chart must have at least one row"):
        chart.board([], ["auto"])


def test_texts_that_the_renderer_cannot_draw_are_escaped(tmp_path: Path) -> None:
    """In a process of its own, as the renderer would take the whole process with it."""
    program = """
import sys
from equipoise import chart
for text in ("a\\x1bb", "a\\0b", "a\\ud800b", "a\\u2028b", "a\\uffffb", r"a\\x1bb", "constructor"):
    row = {"arm": text, "mean": 1.0, "low": 0.5, "high": 1.5}
    drawn = chart.intervals([row], title=text, x_title=text)
    print(ascii(chart.svg(drawn)))
    chart.save(drawn, sys.argv[1])
"""
    words = [sys.executable, "-c", program, str(tmp_path / "chart.png")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr
    *drawings, _ = done.stdout.splitlines()
    for drawing, escape in zip(drawings, ("x1b", "x00", "ud800", "u2028", "uffff", "x1b"), strict=True):
        assert rf">a\\{escape}b<" in drawing  # the arm
        assert rf">a\u2216{escape}b<" in drawing  # the title of the axis, with another backslash
