"""The command `equipoise plan`."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

import equipoise as eq
from equipoise.cli import main


def run(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["equipoise", "plan", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


TWO = ["--variance", "a=4", "--variance", "b=1"]


def test_table_files_and_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counts, curve, picture = tmp_path / "counts.csv", tmp_path / "curve.csv", tmp_path / "curve.svg"
    words = [*TWO, "--budget", "1000", "--csv", str(counts), "--curve", str(curve), "--plot", str(picture)]
    assert run(words, monkeypatch) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.startswith(repr(eq.plan({"a": 4, "b": 1}, 1000)))
    assert "Expected error by budget" in printed.out
    assert "  1,000 │ 0.07071 │     0.1585 │     0.08944 │" in printed.out
    with counts.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["arm"], row["count"]) for row in rows] == [("a", "800"), ("b", "200")]
    with curve.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["spend"] for row in rows][-5:] == ["1000", "1780", "3160", "5620", "10000"]
    assert picture.read_text().startswith("<svg")


def test_json_with_everything(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--variance", "ż=ó=4", "--variance", "b=1", "--variance", "c=2", "--budget", "50.5", "--cost", "b=0.5"]
    words += ["--weight", "c=3", "--floor", "2", "--cap", "b=9", "--population", "ż=ó=30", "--objective", "1", "--json"]
    assert run(words, monkeypatch) == 0
    found = json.loads(capsys.readouterr().out)
    same = eq.plan(
        {"ż=ó": 4, "b": 1, "c": 2},
        50.5,
        costs=[1, 0.5, 1],
        weights=[1, 1, 3],
        floors=2,
        caps={"b": 9},
        populations={"ż=ó": 30},
        objective=1,
    )
    assert {name: value for name, value in found.items() if name != "curve"} == json.loads(same.to_json())
    assert found["curve"] == same.curve()


def test_precision(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*TWO, "--precision", "0.1", "--level", "0.9", "--json"], monkeypatch) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["counts"] == eq.plan({"a": 4, "b": 1}, precision=0.1, level=0.9).counts
    assert run([*TWO, "--precision", "a=0.1", "--precision", "b=0.2", "--budget", "100"], monkeypatch) == 0
    assert "✗ Precision not reached with 100 samples for 2 of 2 arms;" in capsys.readouterr().out


def test_the_curve_has_the_plans_own_row(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan for a precision has other counts than one for as large a budget, and reaches it."""
    assert run([*TWO, "--precision", "0.1"], monkeypatch) == 0
    printed = capsys.readouterr().out
    assert "2,524 samples: every half-width is at most 0.1." in printed
    [own] = [line for line in printed.splitlines() if line.startswith("│   2,524 │")]
    assert "│    0.09998 │" in own


def test_without_variance_there_is_no_curve(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--variance", "a=0", "--variance", "b=0", "--budget", "9"], monkeypatch) == 0
    assert "Expected error" not in capsys.readouterr().out


def test_a_file_of_guesses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "guesses.csv"
    table.write_text("arm,sd,cost\na,2,2\nb,1,\n", encoding="utf-8")
    assert run([str(table), "--budget", "900", "--json"], monkeypatch) == 0
    assert json.loads(capsys.readouterr().out)["counts"] == eq.plan({"a": 4, "b": 1}, 900, costs=[2, 1]).counts
    # What is typed stands above the file.
    assert run([str(table), "--variance", "b=4", "--variance", "c=1", "--budget", "900", "--json"], monkeypatch) == 0
    same = eq.plan({"a": 4, "b": 4, "c": 1}, 900, costs=[2, 1, 1])
    assert json.loads(capsys.readouterr().out)["counts"] == same.counts


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "no variances were given"),
        (TWO, "budget"),
        (["--variance", "a", "--budget", "9"], "--variance must name an arm, as in --variance a=4, got 'a'"),
        (["--variance", "=4", "--budget", "9"], "--variance must name an arm"),
        (["--variance", "a=x", "--budget", "9"], "--variance of arm 'a' must be a number, got 'x'"),
        (["--variance", "a=nan", "--budget", "9"], "variance"),
        ([*TWO, "--variance", "a=5", "--budget", "9"], "--variance must be given once for each arm, got 'a' twice"),
        ([*TWO, "--budget", "many"], "--budget must be a number, got 'many'"),
        ([*TWO, "--budget", "1"], "budget"),
        ([*TWO, "--budget", "9.5"], "budget must be a positive integer, got 9.5"),
        ([*TWO, "--budget", "9", "--floor", "a=9"], "floors"),
        ([*TWO, "--budget", "9", "--floor", "1.5"], "--floor must be an integer, got '1.5'"),
        (
            [*TWO, "--budget", "9", "--floor", "3", "--floor", "4"],
            "--floor must name an arm, as in --floor a=4, got '3'",
        ),
        ([*TWO, "--budget", "9", "--cap", "0"], "caps must be a positive integer, got 0"),
        ([*TWO, "--budget", "9", "--cost", "c=2"], "got one for 'c', which is not an arm"),
        ([*TWO, "--budget", "9", "--objective", "max"], "--objective must be a number, got 'max'"),
        (
            [*TWO, "--budget", "9", "--objective", "0"],
            "--objective must be a positive number, or inf for the largest loss, got '0'",
        ),
        ([*TWO, "--budget", "9", "--support", "foo"], "--support must be binary, got 'foo'"),
        ([*TWO, "--budget", "9", "--level", "95"], "level"),
        ([*TWO, "--budget", "9", "--plot", "a.jpg"], "a.jpg"),
        ([*TWO, "--budget", "9", "--csv", "no/such/folder/a.csv"], "there is no folder"),
        (["no-such-file.csv", "--budget", "9"], "no-such-file.csv: No such file"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_code_2(
    words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words, monkeypatch) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("equipoise: ")
    assert sentence in printed.err
    assert len(printed.err.strip().splitlines()) == 1
