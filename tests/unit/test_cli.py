"""The command, as a person or a program runs it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import equipoise as eq


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
        (["demo", "--seed", "-1"], "seed=-1"),
        (["demo", "--nope"], "--nope"),
        (["dmo"], "'dmo'"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_code_2(words: list[str], sentence: str) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("equipoise: ")
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_help_and_version() -> None:
    assert run("--version").stdout == f"equipoise {eq.__version__}\n"
    assert "demo" in run("--help").stdout
    assert "--customers" in run("demo", "--help").stdout
    nothing = run()
    assert nothing.returncode == 2
    assert "Usage" in nothing.stdout
