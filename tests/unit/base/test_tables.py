"""Numbers in words, tables as text and HTML, and data for JSON, pandas and polars."""

from __future__ import annotations

import csv
import importlib
import io
import json
import math
from typing import Any

import numpy as np
import pytest

from equipoise.base import tables


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (0, "0 samples"),
        (1, "1 sample"),
        (2, "2 samples"),
        (1_000_000, "1,000,000 samples"),
        (10**18, "1,000,000,000,000,000,000 samples"),
        (np.int64(1200), "1,200 samples"),
        (1.0, "1 sample"),
        (1e6, "1,000,000 samples"),
    ],
)
def test_a_number_of_things(n: float, words: str) -> None:
    assert tables.count(n, "sample") == words


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (0, "0"),
        (0.5, "0.5"),
        (0.07071067, "0.07071"),
        (-12.3456, "-12.35"),
        (9999.6, "10,000"),  # not 1e+04
        (12345.678, "12,346"),
        (1e6, "1,000,000"),
        (999_999.7, "1,000,000"),
        (-1e6, "-1,000,000"),
        (np.float64(2.5e9), "2,500,000,000"),
        (1.5e-7, "1.5e-07"),
        (2.5e18, "2.5e+18"),
        (math.inf, "inf"),
        (np.float64(math.nan), "nan"),
    ],
)
def test_an_amount(x: float, words: str) -> None:
    assert tables.amount(x) == words


def test_an_amount_to_more_digits_has_commas_too() -> None:
    assert tables.amount(1362.5, 10) == "1,362.5"
    assert tables.amount(1362.5, 3) == "1,362"


def test_cells_and_percents() -> None:
    assert tables.cell(math.nan) == "—"
    assert tables.cell(0.123456) == "0.1235"
    assert [tables.percent(level) for level in (0.95, 0.999, 0.07, 0.9999999)] == ["95%", "99.9%", "7%", "99.99999%"]


def test_a_table_as_text() -> None:
    rows = [["arm", "count"], ["a", "1,000"], ["long name", "2"]]
    assert tables.text(rows, ["a note"]) == "arm        count\na          1,000\nlong name      2\na note"
    wide = [["arm", "日数"], ["日本", "1"], ["a", "2"]]
    assert tables.text(wide) == "arm   日数\n日本     1\na        2"


def test_a_table_as_html_is_escaped() -> None:
    page = tables.html([["arm", "n"], ["<b>", "1"]], ["a & b"], before=["first"])
    assert page == (
        "<p>first</p><table><thead><tr><th>arm</th><th>n</th></tr></thead><tbody>"
        '<tr><td style="text-align:left">&lt;b&gt;</td><td style="text-align:right">1</td></tr>'
        "</tbody></table><p>a &amp; b</p>"
    )


def test_data_that_json_can_hold() -> None:
    given = {
        np.int64(3): np.float64(0.5),
        "array": np.array([1.0, math.nan]),
        "nested": ({"x": math.inf}, range(2)),
        "flag": np.True_,
    }
    ready = tables.json_ready(given)
    assert ready == {3: 0.5, "array": [1.0, None], "nested": [{"x": None}, [0, 1]], "flag": True}
    assert json.loads(json.dumps(ready, allow_nan=False))["3"] == 0.5


def test_names_become_texts_in_json() -> None:
    assert tables.json_text({"counts": {"ż": 1, ("b", 1): 2}}) == '{"counts": {"ż": 1, "b/1": 2}}'
    # 1 and "1" stay two.
    assert json.loads(tables.json_text({1: 2, "1": 3})) == {"1": 2, "'1'": 3}

    class Same:
        def __repr__(self) -> str:
            return "same"

    with pytest.raises(ValueError, match="two arms have the same text"):
        tables.json_text({Same(): 1, Same(): 2})


def test_frames_of_either_library(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"arm": ["a", "b"], "count": np.array([1, 2])}
    for library, found in (
        ("pandas", tables.frame(columns, "pandas")),
        ("polars", tables.frame(columns, "polars")),
        ("pandas", tables.frame(columns)),
    ):
        assert type(found).__module__.startswith(library)
        assert list(found.columns) == ["arm", "count"]
        assert list(found["count"]) == [1, 2]
    with pytest.raises(
        ValueError, match="library must be one of 'pandas', 'polars', got 'panda'; did you mean 'pandas'"
    ):
        tables.frame(columns, "panda")  # type: ignore[arg-type]

    real = importlib.import_module
    absent = {"pandas"}

    def without(name: str, *rest: Any) -> Any:
        if name in absent:
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", without)
    assert type(tables.frame(columns)).__module__.startswith("polars")
    with pytest.raises(ModuleNotFoundError, match=r"^to_frame needs pandas, which is not installed$"):
        tables.frame(columns, "pandas")
    absent.add("polars")
    with pytest.raises(
        ModuleNotFoundError, match=r"^to_frame needs pandas or polars, neither of which .*; to install it: pip"
    ):
        tables.frame(columns)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (1873, 4338, "1,900 to 4,300"),
        (1118, 1233, "1,120 to 1,230"),
        (12_340, 12_360, "12,340 to 12,360"),
        (3.2, 430, "3 to 430"),
        (0.2, 0.4, "about 1"),
        (99_600, 1_004_000, "100,000 to 1,000,000"),
    ],
)
def test_a_range_of_whole_numbers(low: float, high: float, words: str) -> None:
    """Two digits, or as many as tell the ends apart by more than a tenth of the range."""
    assert tables.between(low, high) == words


def test_a_number_has_the_digits_of_its_range() -> None:
    assert tables.about(5123, 4433, 6040) == "5,100"
    assert tables.about(369.4, 352, 376) == "369"
    assert tables.about(369.4, 200, 600) == "370"


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (185, 350, "3 to 6 minutes"),
        (0.2, 0.9, "up to 1 second"),
        (20, 170, "20 to 170 seconds"),
        (30, 200, "up to 4 minutes"),
        (5, 5, "about 5 seconds"),
        (7201, 20_000, "2 to 6 hours"),
        (86400, 9 * 86400 + 1, "1 to 10 days"),
    ],
)
def test_a_range_of_seconds(low: float, high: float, words: str) -> None:
    """In whole units that include it, of which there are three at least."""
    assert tables.duration_range(low, high) == words


def test_a_time_is_in_the_unit_that_suits_it() -> None:
    """From a millisecond to a day; of those from the minute on there are three at least."""
    times = (0.0, 0.02534, 0.78, 1.0, 45, 119, 190, 7199, 10_800, 200_000, 300_000)
    assert [tables.duration(seconds) for seconds in times] == [
        "0 ms", "25 ms", "780 ms", "1 s", "45 s", "119 s", "3.2 min", "120 min", "3 h", "56 h", "3.5 d",
    ]  # fmt: skip
    assert tables.duration(0.02534, 3) == "25.3 ms"


ASCII = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "'=1", "''=1"]
FORMULAS = [*ASCII, "\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20SUM(A1)"]


@pytest.mark.parametrize("cell", FORMULAS)
def test_a_spreadsheet_finds_no_formula(cell: str) -> None:
    ((written, other),) = csv.reader(io.StringIO(tables.csv_text([[cell, "plain"]]), newline=""))
    assert (written, other) == (f"'{cell}", "plain")
    assert tables.unquoted(written) == cell


def test_other_cells_are_as_they_are() -> None:
    assert tables.csv_text([["a", "'b'", "1=1", -1, -0.5, None, "x,y"]]) == "a,'b',1=1,-1,-0.5,,\"x,y\"\r\n"
    assert tables.unquoted("'b'") == "'b'"
