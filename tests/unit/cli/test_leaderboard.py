"""The command `equipoise leaderboard`."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

from equipoise.cli import main
from equipoise.lab.board.leaderboard import leaderboard
from equipoise.lab.random_problems import drawn


def run(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["equipoise", "leaderboard", *words])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


FEW = ["--strategy", "uniform", "--strategy", "auto", "--strategy", "b-as", "--runs", "64"]
FEW += ["--problem", "gauss-2*", "--problem", "binary-2"]


def test_table_files_and_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table, picture = tmp_path / "board.csv", tmp_path / "board.svg"
    assert run([*FEW, "--csv", str(table), "--plot", str(picture)], monkeypatch) == 0
    out = capsys.readouterr().out
    board = leaderboard(["gauss-2*", "binary-2"], ["uniform", "auto", "b-as"], runs=64)
    lines = out.splitlines()
    assert any("7 problems, continuous:" in line for line in lines)
    assert any("1 problem, binary:" in line for line in lines)
    assert "half-width of the 95% interval; 64 runs, seed 4" in out
    # The best first, and where each is worst.
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    order = [row[0] for row in cells if row[0]]
    assert order[:4] == board.strategies("continuous")
    assert order[4:9] == board.strategies("binary")
    even = order.index("uniform") * 2
    assert cells[even][1:] == ["668 ±0.0", "327", "60.0", "1.00 ±0.00"]
    assert cells[even + 1][1] == "gauss-20-wide"
    assert "Worst excess: problems with enough samples" in out
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    # b-as with A = 0.5 and 2 everywhere, and its theory where the support is declared.
    assert len(rows) == 4 * 8 + 1
    assert list(rows[0]) == [
        "strategy",
        "problem",
        "kind",
        "tails",
        "K",
        "n",
        "n/K",
        "limit",
        "excess",
        "error",
        "ratio",
        "runs",
        "pool",
    ]
    assert [float(row["excess"]) for row in rows] == [cell.excess for cell in board.cells]
    drawn = picture.read_text()
    assert drawn.startswith("<svg")
    assert "gauss-20-wide" in drawn


def test_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*FEW, "--json"], monkeypatch) == 0
    found = json.loads(capsys.readouterr().out)
    assert found.keys() == {"seed", "strategies", "cells", "summaries", "over_limit", "unseen"}
    assert found["unseen"] is None
    assert found["strategies"][0] == "auto"
    assert found["strategies"][-1] == "b-as, theory"
    assert found["over_limit"]["continuous"]["uniform"] > 100
    assert found["over_limit"]["gaussian"]["b-as, theory"] is None


OPTIMIST = """
import equipoise as eq
from dataclasses import dataclass

@dataclass(frozen=True)
class {name}(eq.strategies.Strategy):
    c: float = 2.0

    def params(self, budget, arms, support):
        return (self.c,)

    @staticmethod
    def variance(count, mean, m2, pooled, own, params):
        return (m2 + params[0]) / count
"""


def test_a_strategy_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By file and class, with parameters or without, whether the file registers it or not."""
    registered = OPTIMIST.replace("@dataclass", '@eq.strategies.register("leader")\n@dataclass')
    (tmp_path / "leading.py").write_text(registered.format(name="Leader"))
    (tmp_path / "plainer.py").write_text(OPTIMIST.format(name="Plainer"))
    monkeypatch.chdir(tmp_path)
    own = [f"{tmp_path}/leading.py:Leader", "plainer.py:Plainer:c=1"]
    words = ["--problem", "gauss-2", "--runs", "64", "--json"]
    assert run([*words, "--strategy", own[0], "--strategy", own[1], "--strategy", "uniform"], monkeypatch) == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert [cell["strategy"] for cell in cells] == ["leader", "plainer, c=1", "uniform"]
    assert cells[0]["excess"] < cells[2]["excess"]


UNSEEN = ["--strategy", "uniform", "--strategy", "auto", "--runs", "128", "--unseen", "7", "--problems", "8"]


def test_drawn_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    table, picture = tmp_path / "board.csv", tmp_path / "board.svg"
    assert run([*UNSEEN, "--csv", str(table), "--plot", str(picture)], monkeypatch) == 0
    out = capsys.readouterr().out
    for title in ("3 problems, continuous, no rare", "2 problems, continuous, rare large", "3 problems, binary:"):
        assert title in out
    assert out.count("Hardest for auto") == 3
    assert "enough samples" not in out
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    cases = drawn(7, 8)
    assert [row["problem"] for row in rows] == [case.name for case in cases] * 2
    assert all(float(row["ratio"]) == pytest.approx(1) for row in rows[:8])
    # The hardest come first, each with the best of the others.
    binary = [row for row in rows if row["strategy"] == "auto" and row["kind"] == "binary"]
    hardest = max(binary, key=lambda row: float(row["excess"]))["problem"]
    after = out[out.rindex("Hardest for auto") :]
    assert f"│ {hardest}" in after.splitlines()[4]
    assert "rare large values" in picture.read_text()
    assert run([*UNSEEN, "--json"], monkeypatch) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["unseen"] == 7
    assert {each["group"] for each in found["summaries"]} >= {"plain", "rare", "binary"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--strategy", "b-sa"], "there is no strategy 'b-sa'"),
        (["--strategy", "b-as:A=1"], "a parameter of b-as must be one of exploration, c1, c2, delta, got 'A'"),
        (["--strategy", "no.py:Such"], "cannot read the strategy 'no.py:Such': there is no file no.py"),
        (
            ["--strategy", f"{__file__}:Such"],
            "strategy 'test_leaderboard:Such' does not exist: test_leaderboard has no",
        ),
        (["--strategy", f"{__file__}:run"], "strategy must be FILE.py:CLASS of a subclass of eq.strategies.Strategy"),
        (["--problem", "gauss-3"], "there is no problem 'gauss-3' in the suite"),
        (["--runs", "2"], "runs must be an integer of at least 4, got 2"),
        (["--engine", "tpu"], "engine must be one of 'cpu', 'cuda', got 'tpu'"),
        (["--csv", "no/such/folder/a.csv"], "there is no folder"),
        (["--plot", "a.jpg"], "a.jpg"),
        (["--runs", "many"], "--runs must be an integer, got 'many'"),
        (["--unseen", "1", "--problem", "gauss-2"], "--unseen draws all problems and must be given without --problem"),
        (["--problems", "5"], "--problems must be given with --unseen, got --problems 5 alone"),
        (["--unseen", "1", "--problems", "0"], "problems must be a positive integer, got 0"),
        (["--unseen", "-1"], "seed must be a non-negative integer, got -1"),
    ],
)
def test_wrong_input(
    words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words, monkeypatch) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("equipoise: ")
    assert sentence in printed.err
    assert len(printed.err.strip().splitlines()) == 1


def test_without_the_plot_extra_the_table_is_still_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    few = ["--strategy", "uniform", "--problem", "gauss-2", "--runs", "64"]
    assert run([*few, "--plot", "a.png"], monkeypatch) == 2
    assert "pip install '.[plot]'" in capsys.readouterr().err
    assert run(few, monkeypatch) == 0
    assert "gauss-2" in capsys.readouterr().out
