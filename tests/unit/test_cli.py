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
from equipoise.cli import app, main
from equipoise.lab import cpu, paper
from tests.waiting import HANG, until


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "equipoise", *words], capture_output=True, text=True, check=False)


def test_demo() -> None:
    done = run("demo")
    assert done.returncode == 0, done.stderr
    assert "cardamom coffee" in done.stdout
    assert done.stdout.rstrip().endswith("customers for that.")
    assert done.stderr == ""  # no progress bar where nobody watches


def test_demo_json() -> None:
    done = run("demo", "--json", "--customers", "600", "--seed", "4")
    both = json.loads(done.stdout)
    assert both.keys() == {"auto", "uniform"}
    assert sum(both["auto"]["counts"].values()) == 600
    assert set(both["uniform"]["counts"].values()) == {100}
    assert {"means", "variances", "standard_errors"} <= both["auto"].keys()
    # The same seed, the same customers.
    assert run("demo", "--json", "--customers", "600", "--seed", "4").stdout == done.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["demo", "--customers", "5"], "budget=5 is too small"),
        (["demo", "--customers", "many"], "--customers"),
        (["demo", "--customers", "1000000000000"], "customers=1000000000000 will not do; 1,000,000 are the most"),
        (["demo", "--seed", "-1"], "seed=-1"),
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
        (["simulate", "bernoulli"], "bernoulli takes p"),
        (["simulate", "rademacher", "--strategy", "b-sa"], "there is no strategy 'b-sa'"),
        (["simulate", "rademacher", "--strategy", "b-as"], "no safe default"),
        (["simulate", "rademacher", "--strategy", "b-as:A=1"], "no parameter 'A'"),
        (["simulate", "rademacher", "--budget", "0"], "budget=0 will not do"),
        (["simulate", "rademacher", "--runs", "1"], "runs=1 will not do"),
        (["simulate", "rademacher", "--support", "1,0"], "will not do"),
        (["simulate", "rademacher", "--estimator", "best"], "estimator='best' will not do"),
        (["simulate", "rademacher", "--plot", "a.jpg"], "'a.jpg' will not do"),
        (["simulate", "rademacher", "--budget", "10.5"], "budget=10.5 will not do; it must be a whole number"),
        (["simulate", "rademacher", "--in-flight", "0"], "in_flight=0 will not do"),
        (["simulate", "rademacher", "--objective", "most"], "objective='most' will not do"),
        (["simulate", "rademacher", "--objective", "0"], "objective=0 will not do"),
        (["simulate", "rademacher", "--objective", "stratified:0.4"], "the shares sum to 0.4"),
        (["simulate", "rademacher", "--weights", "1,2"], "2 weights were given for 1 arms"),
        (["simulate", "rademacher", "--weights", "1;2"], "'1;2' is not a number"),
        (["simulate", "rademacher", "--costs", "0"], "0.0 is among the costs"),
        (["simulate", "rademacher", "--costs", "3", "--budget", "5.5"], "starts with 2 samples of 1 arms, for 6"),
        (["simulate", "rademacher", "--csv", "no/such/folder/a.csv"], "there is no folder"),
        (["paper", "--runs", "5"], "runs=5 will not do"),
        (["paper", "--out", __file__], "it is a file"),
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
        assert 'pip install "equipoise[plot]"' in capsys.readouterr().err


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
    # No progress bar where nobody watches; on a new machine the first call says that it compiles.
    assert {*done.stderr.splitlines()} <= {f"equipoise: {cpu.ANNOUNCE}"}
    for text in ("auto", "exploration", "loss 2", "regret", "excess", "±", "gaussian and controls"):
        assert text in done.stdout
    assert chart.read_text().startswith("<svg")
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["strategy"], row["n"]) for row in rows] == [
        (name, n) for name in ("auto", "b-as (exploration=0.5)") for n in ("50", "100")
    ]
    printed = json.loads(run(*words, "--json").stdout)
    assert [sim["regret"] for sim in printed] == [float(row["regret"]) for row in rows]
    arms = eq.Problem([eq.Gaussian(0, 4), eq.Rademacher()])
    assert printed[0]["regret"] == eq.simulate(arms, "auto", [50, 100], runs=200, support=(-50, 50))[0].regret


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
    assert "50 runs, 3 in flight, estimated by" in text
    assert "the 2-norm of the losses times weights less the smallest possible" in text
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
    assert "loss 1" not in done.stdout


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
        f"equipoise: stopped; what is done is kept in {tmp_path / 'out'}, and the same command goes on from there"
    )
    assert {*before} <= {f"equipoise: {cpu.ANNOUNCE}"}
    assert len(list(kept.glob("*.json"))) >= 2


def test_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    small = partial(
        paper.Design,
        budgets=(50, 200),
        ratios=(2, 5, 10),
        n=100,
        lemma=(50,),
        quiet=(100, 300),
        far=(1000,),
        long=(100,),
    )
    monkeypatch.setattr(paper, "Design", small)
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
    assert f"{sum(claim['holds'] for claim in found['claims'])} of 22 hold." in printed.out
    assert printed.err == ""
