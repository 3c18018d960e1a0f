"""The command, as a person or a program runs it."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import equipoise as eq
from equipoise.base import tables
from equipoise.cli import app, main
from equipoise.lab.paper import PaperDesign
from tests.waiting import HANG, until


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "equipoise", *words], capture_output=True, text=True, check=False)


def test_demo() -> None:
    done = run("demo")
    assert done.returncode == 0, done.stderr
    assert "cardamom coffee" in done.stdout
    assert "90.8 to 100.0" in done.stdout
    *_, ending = " ".join(done.stdout.split()).partition("With 3,000 customers, ")
    assert ending.startswith("the widest interval is 12.8 percentage points wide instead of 17.8. An even split")
    needed = "would have needed about 5,800 customers (5,200 to 6,400) for the same largest standard error."
    assert ending.endswith(needed)
    assert done.stderr == ""  # no progress bar without a terminal


def completions(*words: str) -> list[str]:
    asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1), "_EQUIPOISE_COMPLETE": "complete_bash"}
    command = [sys.executable, "-c", "from equipoise.cli import app; app(prog_name='equipoise')"]
    done = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, check=False)
    return done.stdout.split()


def test_a_shell_can_complete_commands_and_options() -> None:
    assert completions("equipoise", "be") == ["bench"]
    assert completions("equipoise", "bench", "--max-") == ["--max-runs", "--max-seconds"]
    assert completions("equipoise", "simulate", "--strategy", "g") == ["gafs-max", "greedy"]
    assert completions("equipoise", "leaderboard", "--strategy", "au") == ["auto"]


@pytest.mark.parametrize("command", [[], ["bench"]])
def test_help_shows_no_value_for_options_that_take_none(command: list[str]) -> None:
    assert "<bool>" not in run(*command, "--help").stdout


def test_demo_with_too_few_customers_to_differ() -> None:
    assert run("demo", "--customers", "12").stdout.endswith(
        "With 12 customers there is no difference yet; try 300 or more.\n"
    )


def test_demo_json() -> None:
    done = run("demo", "--json", "--customers", "600", "--seed", "4")
    both = json.loads(done.stdout)
    assert both.keys() == {"auto", "uniform"}
    assert sum(both["auto"]["counts"].values()) == 600
    assert set(both["uniform"]["counts"].values()) == {100}
    assert {"means", "variances", "standard_errors"} <= both["auto"].keys()
    # The same seed gives the same customers.
    assert run("demo", "--json", "--customers", "600", "--seed", "4").stdout == done.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["demo", "--customers", "5"], "customers must be an integer of at least 12, got 5"),
        (["demo", "--customers", "many"], "--customers must be an integer, got 'many'"),
        (["demo", "--customers", "1000000000000"], "customers must be at most 1,000,000, got 1,000,000,000,000"),
        (["demo", "--seed", "-1"], "seed must be a non-negative integer, got -1"),
        (["demo", "--nope"], "--nope"),
        (["dmo"], "'dmo'"),
        (["paper", "--out", "/dev/null/here"], "/dev/null"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_code_2(words: list[str], sentence: str) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("equipoise: ")
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["simulate"], "LAW"),
        (["simulate", "gausian:0,4"], "did you mean 'gaussian'?"),
        (["simulate", "bernoulli"], "bernoulli must have the parameters p"),
        (["simulate", "rademacher", "--strategy", "b-sa"], "there is no strategy 'b-sa'"),
        (["simulate", "rademacher", "--strategy", "b-as"], "no safe default"),
        (
            ["simulate", "rademacher", "--strategy", "b-as:A=1"],
            "a parameter of b-as must be one of exploration, c1, c2, delta, got 'A'",
        ),
        (["simulate", "rademacher", "--budget", "0"], "budget must be a positive integer, got 0"),
        (["simulate", "rademacher", "--runs", "1"], "runs must be an integer of at least 2, got 1"),
        (
            ["simulate", "rademacher", "--runs", "999999999999999999999"],
            "runs must be at most 1,000,000,000, got 999,999,999,999,999,999,999",
        ),
        (["simulate", "rademacher", "--budget", "1e18"], "budget must be at most 1,000,000,000,000, got 1,000,000,000"),
        (["leaderboard", "--runs", "9999999"], "runs must be at most 1,000,000, got 9,999,999"),
        (
            ["simulate", "gaussian:0,1", "--support", "binary"],
            "support must contain the values of every law, got 'binary' with Gaussian(mean=0.0, variance=1.0)",
        ),
        (["simulate", "rademacher", "--support", "1,0"], "support must be"),
        (
            ["simulate", "rademacher", "--estimator", "best"],
            "estimator must be one of 'auto', 'naive', 'wald', 'controls', 'gaussian', got 'best'",
        ),
        (["simulate", "rademacher", "--plot", "a.jpg"], "must end in .png, .svg or .html, got 'a.jpg'"),
        (["simulate", "rademacher", "--budget", "10.5"], "budget must be a positive integer, got 10.5"),
        (["simulate", "rademacher", "--in-flight", "0"], "in_flight must be a positive integer, got 0"),
        (
            ["simulate", "rademacher", "--objective", "most"],
            "objective must be a positive number p, inf for the largest loss, or strata",
        ),
        (["simulate", "rademacher", "--objective", "0"], "objective must be a positive number p"),
        (["simulate", "rademacher", "--objective", "stratified:0.4"], "shares must sum to 1, got a sum of 0.4"),
        (["simulate", "rademacher", "--weights", "1,2"], "weights must have one value for each of the 1 arms, got 2"),
        (["simulate", "rademacher", "--weights", "1;2"], "'1;2' in '1;2' must be a number"),
        (["simulate", "rademacher", "--costs", "0"], "costs[0] must be positive, got 0"),
        (
            ["simulate", "rademacher", "--costs", "3", "--budget", "5.5"],
            "budget must be at least 6, got 5.5: auto starts with 2 samples of each arm",
        ),
        (["simulate", "rademacher", "--csv", "no/such/folder/a.csv"], "there is no folder"),
        (["paper", "--runs", "5"], "runs must be an integer of at least 100, got 5"),
        (["paper", "--out", __file__], "--out must be a folder, got the file"),
    ],
)
def test_wrong_input_of_the_lab(
    words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["equipoise", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("equipoise: ")
    assert sentence in printed.err
    assert len(printed.err.strip().splitlines()) == 1


def test_without_the_plot_extra_a_chart_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    for words in (["simulate", "rademacher", "--plot", "a.png"], ["paper"]):
        monkeypatch.setattr(sys, "argv", ["equipoise", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        assert "pip install '.[plot]'" in capsys.readouterr().err


def test_help_and_version() -> None:
    assert run("--version").stdout == f"equipoise {eq.__version__}\n"
    assert "demo" in run("--help").stdout
    assert "--customers" in run("demo", "--help").stdout
    nothing = run()
    assert nothing.returncode == 2
    assert "Usage" in nothing.stdout


def test_simulate(tmp_path: Path) -> None:
    words = ["simulate", "gaussian:0,4", "rademacher", "--strategy", "auto", "--strategy", "b-as:exploration=0.5"]
    words += ["--budget", "50", "--budget", "100", "--runs", "200", "--support", "-50,50"]
    table, chart = tmp_path / "regret.csv", tmp_path / "regret.svg"
    done = run(*words, "--csv", str(table), "--plot", str(chart))
    assert done.returncode == 0, done.stderr
    # No progress bar where nobody watches, and no word on compiling.
    assert done.stderr == ""
    for text in ("auto", "exploration", "(arm 2)", "regret", "excess", "±", "gaussian and controls"):
        assert text in " ".join(done.stdout.split())
    assert chart.read_text().startswith("<svg")
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["strategy"], row["n"]) for row in rows] == [
        (name, n) for name in ("auto", "b-as (exploration=0.5)") for n in ("50", "100")
    ]
    printed = json.loads(run(*words, "--json").stdout)
    assert [sim["regret"] for sim in printed] == [float(row["regret"]) for row in rows]
    arms = eq.Problem([eq.Gaussian(0, 4), eq.Rademacher()])
    assert printed[0]["regret"] == eq.simulate_budgets(arms, ["auto"], [50, 100], runs=200, support=(-50, 50))[0].regret


@pytest.mark.parametrize(("width", "losses"), [("120", True), ("100", True), ("70", False), ("50", False)])
def test_simulate_never_cuts_a_number(
    width: str, losses: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the losses of the arms do not fit, they are left out."""
    monkeypatch.setenv("COLUMNS", width)
    words = ["simulate", "gaussian:0,1", "gaussian:0,4", "exponential:1", "--budget", "300", "--runs", "50"]
    app([*words, "--json"], standalone_mode=False)
    [sim] = json.loads(capsys.readouterr().out)
    app(words, standalone_mode=False)
    printed = capsys.readouterr().out
    assert "…" not in printed
    assert ("(arm 1)" in printed) == losses
    assert f" {tables.cell(sim['regret'])} " in printed


def test_simulate_with_an_objective(capsys: pytest.CaptureFixture[str]) -> None:
    """Late answers, a norm, weights and money, to the same numbers as in Python; the table says what is measured."""
    words = ["simulate", "gaussian:0,4", "rademacher", "--runs", "50", "--in-flight", "3", "--objective", "2"]
    words += ["--weights", "1,2.5", "--costs", "0.5,2", "--budget", "70.5"]
    app([*words, "--json"], standalone_mode=False)
    [printed] = json.loads(capsys.readouterr().out)
    sim = eq.simulate(
        eq.Problem([eq.Gaussian(0, 4), eq.Rademacher()]),
        budget=70.5,
        runs=50,
        in_flight=3,
        objective=2,
        weights=[1, 2.5],
        costs=[0.5, 2],
    )
    assert printed == json.loads(json.dumps(sim.to_dict()))
    done = run(*words)
    text = " ".join(done.stdout.split())
    assert "50 runs, 3 in flight, estimator: " in text
    assert "the weighted 2-norm of the losses minus the smallest possible" in text
    assert "70.5" in text
    app(
        ["simulate", "rademacher", "rademacher", "--runs", "9", "--objective", "stratified:0.3,0.7", "--json"],
        standalone_mode=False,
    )
    assert json.loads(capsys.readouterr().out)[0]["objective"]["weights"] == pytest.approx([0.09, 0.49])


def test_simulate_many_arms_shows_the_regret_alone() -> None:
    done = run("simulate", *["bernoulli:0.3"] * 6, "--support", "binary", "--runs", "100", "--seed", "3")
    assert done.returncode == 0, done.stderr
    assert "regret" in done.stdout
    assert "(arm 1)" not in done.stdout


def test_simulate_of_constants_is_still_json(capsys: pytest.CaptureFixture[str]) -> None:
    app(["simulate", "constant:3", "constant:1", "--runs", "100", "--budget", "20", "--json"], standalone_mode=False)
    [sim] = json.loads(capsys.readouterr().out)
    assert sim["regret"] == 0
    assert sim["excess"] is None  # there is no loss to be in excess of


def test_paper_stops_with_a_sentence_and_keeps_what_is_done(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "equipoise", "paper", "--runs", "400", "--out", str(tmp_path / "out")]
    kept = tmp_path / "out" / "simulations"
    # A program started in the background may have been told to ignore interrupts, and would pass that on.
    listen = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=listen) as begun:
        until(lambda: begun.poll() is not None or len(list(kept.glob("*.json"))) >= 2, "two simulations are kept")
        begun.send_signal(signal.SIGINT)
        out, error = begun.communicate(timeout=HANG)
    assert begun.returncode == 130, error
    assert out == ""
    *before, last = error.splitlines()
    assert last == (
        f"equipoise: stopped; the experiments that are done are saved in {tmp_path / 'out'}; "
        "run the same command to continue"
    )
    assert before == []
    assert len(list(kept.glob("*.json"))) >= 2


def test_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    small = partial(
        PaperDesign,
        budgets=(50, 200),
        ratios=(2, 5, 10),
        n=100,
        lemma=(50,),
        quiet=(100, 300),
        far=(1000,),
        long=(100,),
    )
    monkeypatch.setattr("equipoise.lab.paper.PaperDesign", small)
    words = ["paper", "--runs", "100", "--out", str(tmp_path / "out")]
    app([*words, "--json"], standalone_mode=False)
    found = json.loads(capsys.readouterr().out)
    assert len(found["claims"]) == 22
    assert {"left", "right", "shape", "remark3", "lemma", "bounds", "long"} == found["tables"].keys()
    assert all(os.path.getsize(path) > 200 for path in found["files"])
    # From what is kept, the same as a table.
    app(words, standalone_mode=False)
    printed = capsys.readouterr()
    assert "GAFS-MAX" in printed.out
    assert f"{sum(claim['holds'] for claim in found['claims'])} of 22 claims hold." in printed.out
    assert printed.err == ""
