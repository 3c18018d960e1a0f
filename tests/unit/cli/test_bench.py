"""`equipoise bench`, as a person or a program runs it."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from equipoise.cli import main
from equipoise.cli.bench_progress import BenchBar, known, title
from equipoise.timing import Bench, BenchOptions, BenchStage
from tests.timers import Drawn, normal
from tests.unit.cli.test_run import Done, never
from tests.waiting import HANG, until

__all__ = ["never"]

Run = Callable[..., Done]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run it in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["equipoise", "bench", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, printed.out, printed.err)

    return call


def test_two_commands(bench: Run) -> None:
    done = bench("true", "echo 1", "--runs", "3")
    assert done.code == 0, done.err
    assert done.err == ""  # no bar without a terminal
    verdict, titles, first, second, *_ = done.out.splitlines()
    assert verdict == "6 runs of 2 commands."
    assert titles.split()[:4] == ["command", "mean", "±", "95%"]
    assert (first.split()[0], second.split()[0]) == ("true", "echo")


def test_runs_are_in_turn_and_prepared(bench: Run, tmp_path: Path) -> None:
    note = "echo {} >> ran"
    words = [note.format("a"), note.format("b"), "--name", "x", "--name", "y", "-r", "2", "-w", "1"]
    done = bench(
        *words, "-s", note.format("setup"), "-p", "echo prepare $EQUIPOISE_ARM >> ran", "-c", "echo end >> ran"
    )
    assert done.code == 0, done.err
    x, y = ["prepare x", "a"], ["prepare y", "b"]
    assert (tmp_path / "ran").read_text().splitlines() == ["setup", *x, *y, *x, *y, *y, *x, "end"]
    assert "/bin/sh takes by itself" in done.out


def test_exports(bench: Run, tmp_path: Path) -> None:
    files = [word for kind in ("json", "csv", "markdown") for word in (f"--export-{kind}", f"out.{kind}")]
    done = bench("true", "echo 1", "--runs", "3", "--json", *files)
    printed, written = done.json, json.loads((tmp_path / "out.json").read_text())
    assert (printed.pop("exit"), printed.pop("error")) == (0, None)
    assert printed == written
    assert [len(each["times"]) for each in written["results"]] == [3, 3]
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["command"] for row in rows] == ["true", "echo 1"]
    assert float(rows[0]["mean"]) == written["results"][0]["mean"] > 0
    assert "| command | mean ± 95% |" in (tmp_path / "out.markdown").read_text()
    refused = bench("true", "--export-csv", "no-folder/out.csv")
    assert (refused.code, "there is no folder no-folder" in refused.err) == (2, True)


def test_an_export_that_fails_leaves_the_others(bench: Run, tmp_path: Path) -> None:
    done = bench("true", "-r", "2", "--export-json", "/dev/full", "--export-csv", "out.csv")
    assert (done.code, done.err) == (2, "equipoise: cannot write /dev/full: No space left on device\n")
    assert (tmp_path / "out.csv").exists()
    assert done.out.startswith("2 runs of 1 command.")


def test_an_encoding_without_sigma_loses_nothing(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "equipoise", "bench", "echo σ", "-r", "2", "--export-json", "kept.json"]
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    run = partial(subprocess.run, cwd=tmp_path, env=environment, capture_output=True, encoding="latin-1")
    printed, exported = run(words), run([*words, "--json"])
    assert (printed.returncode, printed.stderr) == (0, "")
    assert printed.stdout.splitlines()[1].split()[:5] == ["command", "mean", "±", "95%", "?"]
    kept = json.loads((tmp_path / "kept.json").read_text(encoding="utf-8"))
    assert kept["results"][0]["command"] == json.loads(exported.stdout)["results"][0]["command"] == "echo σ"


def test_bytes_that_are_not_utf_8_are_refused_and_leave_the_export(bench: Run, tmp_path: Path) -> None:
    (tmp_path / "kept.json").write_text("earlier")
    done = bench("touch a; echo \udcff", "-r", "2", "--export-json", "kept.json")
    assert (done.code, "must be UTF-8, got" in done.err) == (2, True)
    assert (tmp_path / "kept.json").read_text() == "earlier"
    assert not (tmp_path / "a").exists()


def test_an_export_to_stdout_is_alone_there(bench: Run) -> None:
    done = bench("true", "-r", "2", "--export-json", "-")
    assert (done.code, len(json.loads(done.out)["results"])) == (0, 1)
    assert done.err.startswith("2 runs of 1 command.")


def test_what_commands_print_is_no_part_of_the_json(bench: Run, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "equipoise", "bench", "echo shown", "-r", "1", "--json", "--show-output"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert json.loads(done.stdout)["results"][0]["runs"] == 1
    assert done.stderr == "shown\n"
    assert bench("echo written", "-r", "1", "--output", "out").code == 0
    assert (tmp_path / "out").read_text() == "written\n"


def test_parameters(bench: Run, tmp_path: Path) -> None:
    words = ["-L", "x", "a,b", "-P", "n", "0.5", "1", "-D", "0.5", "-r", "1", "-p", "echo {n} >> ran"]
    done = bench("echo {x} {n}", *words, "-s", "touch {x}", "-c", "rm {x}", "--json")
    assert done.code == 0, done.err
    names = ["echo a 0.5", "echo b 0.5", "echo a 1.0", "echo b 1.0"]
    assert [each["name"] for each in done.json["results"]] == names
    assert done.json["results"][1]["parameters"] == {"n": "0.5", "x": "b"}
    assert (tmp_path / "ran").read_text().split() == ["0.5", "0.5", "1.0", "1.0"]
    assert not (tmp_path / "a").exists()
    named = bench("echo {x}", "-L", "x", "a,b", "-n", "say {x}", "-r", "1", "-u", "microsecond")
    assert [line.split()[:2] for line in named.out.splitlines()[2:4]] == [["say", "a"], ["say", "b"]]
    assert "µs" in named.out
    each = bench("echo {x}", "-L", "x", "a,b", "-n", "one", "-n", "two", "-r", "1")
    assert [line.split()[0] for line in each.out.splitlines()[2:4]] == ["one", "two"]
    few = bench("echo {x}", "-L", "x", "a,b,c", "-n", "one", "-n", "two", "-r", "1")
    assert few.err == "equipoise: name must be given once for each of the 3 commands, got 2 times\n"


def test_a_command_that_fails_is_named_in_one_sentence(bench: Run) -> None:
    done = bench("true", "cat no-such-file", "--precision", "50%")
    assert (done.code, done.out) == (3, "")
    [line] = done.err.splitlines()
    assert line.startswith("equipoise: 'cat' failed: exit code 1; its stderr ends with: cat: no-such-file")
    as_json = bench("false", "--json")
    assert (as_json.code, as_json.json["exit"], as_json.json["results"]) == (3, 3, [])
    assert as_json.err == f"equipoise: {as_json.json['error']}\n"
    ignored = bench("false", "-i", "--runs", "2")
    assert ignored.code == 0
    assert "2 runs of 'false' failed, and the time is included; the last one: exit code 1." in ignored.out
    missing = bench("no-such-program-here", "true")
    assert (missing.code, missing.err) == (
        3,
        "equipoise: cannot run 'no-such-program-here': No such file or directory; quote a command and its arguments as "
        "one\n",
    )


def test_a_cleanup_that_fails_is_told_after_what_failed_before(bench: Run, tmp_path: Path) -> None:
    done = bench("false", "--cleanup", "exit 9")
    first, second = done.err.splitlines()
    assert (done.code, second) == (3, "equipoise: the cleanup command 'exit 9' failed: exit code 9")
    assert first.startswith("equipoise: 'false' failed: exit code 1")
    every = bench("true {x}", "-L", "x", "1,2", "-r", "2", "--cleanup", "echo {x} >> log; false")
    assert (every.code, (tmp_path / "log").read_text().split()) == (3, ["1", "2"])
    assert every.out.startswith("4 runs of 2 commands.")


def test_exit_code_1_where_the_precision_is_not_reached(bench: Run) -> None:
    done = bench("true", "--precision", "0.0001%", "--max-runs", "25")
    assert done.code == 1
    verdict, *_ = done.out.splitlines()
    assert verdict.startswith("✗ The mean of true is not known to ±0.0001% yet (25 runs); about ")
    assert verdict.endswith("): raise --max-runs.")
    reached = bench("true", "--precision", "9min")
    assert reached.code == 0
    assert reached.out.startswith("✓ The mean is known to ±9 min (")
    assert "The precision is larger than the mean time of true; give" in reached.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["true", "--precision", "much"], "precision must be a share of the mean such as 2%, or a time such as 10ms"),
        (["true", "--precision", "2"], "precision must be a share of the mean such as 2%, or a time such as 10ms"),
        (["true", "--precision", "0ms"], "precision must be a positive number, got 0"),
        (["true", "--precision", "-2%"], "precision must be a positive number"),
        (["true", "--precision", "0%"], "with % or a unit of time, such as 2% or 10ms, got '0%'"),
        (["true", "--precision", "x%"], "precision must be a number, got 'x'"),
        (["true", "--json", "--export-csv", "-"], "stdout must be for --json or for one export, got several"),
        (["true", "--export-json", "-", "--export-csv", "-"], "stdout must be for --json or for one export"),
        (["echo {n}{m}", "-P", "n", "1", "2", "-P", "m", "1", "2"], "parameter-scan must be given once, got it twice"),
        (["true", "-r", "9" * 21], "runs must be at most 1,000,000,000, got 999,999,999,999,999,999,999"),
        (["true", "-w", "9" * 21], "warmup must be at most 1,000,000,000, got 999,999,999,999,999,999,999"),
        (["true", "-n", ""], "a name must not be empty, got ''"),
        (["true", "--export-json", "."], "cannot write .: it is a folder"),
        (["true", "--output", "no-folder/out"], "cannot write no-folder/out: there is no folder no-folder"),
        (["true", "-u", "hour"], "time-unit must be"),
        (["true", "--style=full"], "--style is an option of hyperfine that equipoise bench does not have: the bar"),
        (["echo {n}", "-L", "n"], "parameter-list must be given a name and values, as in -L VAR a,b,c, got 'n'"),
        (
            ["echo {n}", "-L", "n", "--cleanup", "touch OOPS"],
            "parameter-list must be given a name and values, as in -L VAR a,b,c, got the option --cleanup after -L n",
        ),
        (["echo {n}", "-L", "n", "-r", "1"], "got the option -r after -L n"),
        (["echo {n}", "-L", "n", "--runs=2"], "got the option --runs after -L n"),
        (["echo {n}", "-L", "-r", "1"], "got the option -r after -L"),
        (["echo {n}", "-L", "n", "1", "-P", "n", "1", "2"], "every parameter must be given once, got 'n' twice"),
        (["echo {n}", "-D", "2"], "parameter-step-size is for --parameter-scan, which is not given, got '2'"),
        (["true", "true"], "every command needs a name of its own, got 'true' twice; use --name"),
        (["true", "--shell", "no-such-shell"], "shell must be a program, 'none' or 'auto', got 'no-such-shell'"),
        ([""], "a command must not be empty, got ''"),
    ],
)
def test_bad_input(bench: Run, words: list[str], sentence: str) -> None:
    done = bench(*words)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err


@pytest.mark.usefixtures("never")
def test_ctrl_c_prints_what_is_known(tmp_path: Path) -> None:
    command = "echo $$ >> processes; test $(wc -l < processes) -lt 12 || cat never"
    words = [sys.executable, "-m", "equipoise", "bench", command, "-r", "99", "--cleanup", "touch cleaned", "--json"]
    listen = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    child = subprocess.Popen(
        words,
        cwd=tmp_path,
        env=os.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=listen,
    )
    processes = tmp_path / "processes"
    try:
        until(lambda: processes.exists() and len(processes.read_text().split()) >= 12, "a command hangs")
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=HANG)
    finally:
        child.kill()
    assert child.returncode == 130
    assert err == "equipoise: stopped\n"
    assert len(json.loads(out)["results"][0]["times"]) == 11
    assert (tmp_path / "cleaned").exists()


# ---- while it runs


def test_progress_in_words() -> None:
    seen: list[BenchStage] = []
    times = {"a": normal(1, 0.1), "": normal(0.01, 0.1)}
    Bench(BenchOptions({"a": "true | true"}, warmup=2), Drawn(times), watch=seen.append).run()
    assert [title(stage) for stage in seen if stage.name == "warm up"] == ["warm up 1/2", "warm up 2/2"]
    assert title(seen[0]) == "calibrate 1/50"
    assert title(seen[-1]).startswith("measure, ")
    assert known(seen[0].progress) == ""
    assert known(seen[-1].progress).startswith("least precise: a ±")


def test_the_bar_is_drawn_between_runs(capsys: pytest.CaptureFixture[str]) -> None:
    watch = BenchBar(shown=True)
    with watch:
        watch(BenchStage("warm up", 1, 4))
        watch(BenchStage("measure", 7, None))
    assert "measure, 7 runs" in capsys.readouterr().err
