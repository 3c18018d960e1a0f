"""The CSV file of a plan: what is read from it, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.base.tables import csv_text
from equipoise.planning import read


def test_a_table_of_guesses(tmp_path: Path) -> None:
    table = tmp_path / "guesses.csv"
    table.write_text("\ufeffArm, SD ,cost,population,floor,mean\nż=ó,2,0.5,,,9\nb,1,,50,4,8\n", encoding="utf-8")
    assert read(table) == {
        "variances": {"ż=ó": 4.0, "b": 1.0},
        "costs": {"ż=ó": 0.5, "b": 1.0},
        "populations": {"b": 50},
        "floors": {"b": 4},
    }
    assert eq.plan(**read(table), budget=30).cost == 30


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", r"cannot read .*guesses\.csv: it is empty"),
        ("\n", r"must be a CSV file with the columns arm and variance \(or sd\), each once, got none"),
        ("arm,variance\na,1_000\n", "variance in row 2 of .* must be a number, got '1_000'"),
        ("arm,variance,cap\na,1,\uff12\n", "cap in row 2 of .* must be an integer, got '\uff12'"),
        ("arm,variance\n", "must have a row for each arm, got none"),
        ("arm\na\n", r"must be a CSV file with the columns arm and variance \(or sd\), each once, got arm"),
        ("arm,variance,sd\na,1,1\n", "must be a CSV file with the columns"),
        ("arm,variance,variance\na,1,1\n", "each once"),
        ("arm,variance\na,1\nb,2\na,3\n", "each arm must have one row, got 'a' in rows 2 and 4"),
        ("arm,variance\na,one\n", "variance in row 2 of .* must be a number, got 'one'"),
        ("arm,variance\na,\n", "row 2 of .* has no variance"),
        ("arm,variance\n,3\n", "row 2 of .* has no arm"),
        ("arm,sd\na,-1\n", "sd in row 2 of .* must be non-negative, got '-1'"),
        ("arm,variance,cap\na,1,2.5\n", "cap in row 2 of .* must be an integer, got '2.5'"),
        ("arm,variance,weights\na,1,2\n", "unknown column 'weights'; did you mean 'weight'"),
        (
            "arm,variance,notes\na,1,2\n",
            "unknown column 'notes'; the columns are 'arm', 'variance', 'sd', 'weight', 'cost', 'floor', ",
        ),
        ("arm,variance\na,4\nb,1,2\n", "row 3 of .*guesses.csv must have 2 cells like the header, got 3"),
        ("arm,variance,cost\na,4\n", "row 2 of .*guesses.csv must have 3 cells like the header, got 2"),
        ("arm;variance\na;1\n", "guesses.csv must be separated by commas, got semicolons"),
    ],
)
def test_tables_that_are_refused(text: str, sentence: str, tmp_path: Path) -> None:
    table = tmp_path / "guesses.csv"
    table.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=sentence):
        read(table)


def test_a_file_that_is_not_a_table(tmp_path: Path) -> None:
    table = tmp_path / "guesses.csv"
    table.write_bytes(b"arm,variance\n\xff,1\n")
    with pytest.raises(ValueError, match=r"cannot read .*guesses\.csv: it is not a text file in UTF-8"):
        read(table)


def test_names_that_were_quoted_for_spreadsheets(tmp_path: Path) -> None:
    names = ["=1+1", "-2", "\uff1d1", "'=1", "plain"]
    table = tmp_path / "guesses.csv"
    table.write_text(csv_text([["arm", "variance"], *([name, 1.0] for name in names)]), encoding="utf-8", newline="")
    assert list(read(table)["variances"]) == names


def test_the_table_of_a_result_is_read_as_it_is(tmp_path: Path) -> None:
    """And that of a plan."""
    result = eq.estimate({"a": [1.0, 3.0], "b": [1.0, 5.0]}, costs=[1, 2], budget=6, progress=False)
    table = tmp_path / "guesses.csv"
    frame: Any = result.to_frame("pandas")
    table.write_text(frame.to_csv(), encoding="utf-8")
    assert read(table)["variances"] == {"a": 2.0, "b": 8.0}
    table.write_text(eq.plan({"a": 2, "b": 8}, budget=10).to_frame("pandas").to_csv(index=False), encoding="utf-8")
    assert read(table)["variances"] == {"a": 2.0, "b": 8.0}
