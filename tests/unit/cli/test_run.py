"""`equipoise run`, as a person or a program runs it."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import equipoise as eq
from equipoise.cli import exits, main
from equipoise.cli.run import _kept
from equipoise.result.summary import what_is_left
from equipoise.run import spec
from equipoise.run.commands import Command, CommandError, Running
from equipoise.run.progress import Progress
from tests.logs import events, kinds
from tests.waiting import HANG, until


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a study of this text in a folder of its own."""

    def call(text: str, *words: str) -> Done:
        file = tmp_path / "study.toml"
        file.write_text(text, encoding="utf-8")
        monkeypatch.setattr(sys, "argv", ["equipoise", "run", str(file), *words])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, printed.out, printed.err)

    return call


@pytest.fixture
def never(tmp_path: Path) -> Iterator[Path]:
    """A pipe that nobody writes to: `cat never` ends with the test, if nobody ends it before."""
    path = tmp_path / "never"
    os.mkfifo(path)
    yield path
    writer = os.open(path, os.O_RDWR)
    path.unlink()  # so that who comes later does not wait
    os.close(writer)


DICE = """
budget = 60
measure = "stdout"
seed = 1
[arms]
coin = "echo $((EQUIPOISE_SEED % 2))"
die = "echo rolling; echo $((EQUIPOISE_SEED % 6 + 1))"
"""


def test_commands_that_print_numbers(run: Run) -> None:
    done = run(DICE, "--json")
    assert done.code == 0, done.err
    assert done.err == ""  # no live table without a terminal
    known = done.json
    assert known["counts"].keys() == known["means"].keys() == known["variances"].keys() == {"coin", "die"}
    assert sum(known["counts"].values()) == known["samples"] == 60
    assert known["counts"]["die"] > 2 * known["counts"]["coin"]
    low, high = known["intervals"]["die"]
    assert low < known["means"]["die"] < high
    assert known["reached"] is known["precision_reached"] is None
    # A seed of the file decides every $EQUIPOISE_SEED.
    assert run(DICE, "--json").json == known
    shown = run(DICE)
    for text in ("die", "mean", "interval", "share", "60 samples"):
        assert text in shown.out
    assert "best allocation" not in shown.out
    assert "best allocation" in " ".join(run(DICE, "--verbose").out.split())


def test_seconds_are_those_of_the_command(run: Run, tmp_path: Path) -> None:
    """By a clock that reads 10 before it starts and 12.5 when the file is there that it makes at its end."""
    read: list[float] = []

    def clock() -> float:
        read.append(12.5 if (tmp_path / "ended").exists() else 10.0)
        return read[-1]

    assert Command("a", "touch ended", "seconds", tmp_path, clock=clock)() == 2.5
    assert read == [10.0, 12.5]
    means = run('budget = 6\nmeasure = "seconds"\n[arms]\na = "true"\nb = "true"\n', "--json").json["means"]
    assert min(means.values()) > 0


def test_exit_codes_of_commands_are_pass_or_fail(run: Run) -> None:
    text = """
    budget = 40
    measure = "exit"
    timeout = 300
    [arms]
    never = "exit 3"
    always = "true"
    killed = "kill -9 $$"
    half = "test $((EQUIPOISE_SEED % 2)) = 0"
    """
    known = run(text, "--json").json
    assert (known["means"]["never"], known["means"]["always"], known["means"]["killed"]) == (0, 1, 0)
    assert 0 < known["means"]["half"] < 1
    # What the shell could not run has neither passed nor failed.
    wrong = run('budget = 9\nmeasure = "exit"\n[arms]\na = "no-such-program-here"\n')
    assert wrong.code == 3
    assert "exit code 127" in wrong.err
    assert "no-such-program-here" in wrong.err


def test_commands_run_in_the_folder_of_the_file_and_know_their_arm(run: Run, tmp_path: Path) -> None:
    (tmp_path / "number.txt").write_text("7\n")
    text = 'budget = 4\nmeasure = "stdout"\n[arms]\nhere = "cat number.txt"\nx3 = "echo ${EQUIPOISE_ARM#x}"\n'
    assert run(text, "--json").json["means"] == {"here": 7, "x3": 3}


# ---- when it stops


def test_exit_code_1_where_the_precision_is_not_reached(run: Run) -> None:
    done = run(DICE, "--precision", "1%")
    assert done.code == 1
    assert "✗ 2 of 2 arms are still wider than ±1% of their mean" in done.out
    known = run(DICE, "--precision", "1%", "--json").json
    assert known["reached"] is known["precision_reached"] is False


def test_exit_code_0_where_it_is(run: Run) -> None:
    done = run(DICE, "--precision", "1.5", "--budget", "100")
    assert done.code == 0
    assert "✓ Every mean is known to ±1.5 (" in done.out
    assert "100%" not in done.out


def test_a_file_with_a_byte_order_mark(run: Run) -> None:
    assert run("\ufeff" + DICE, "--json").json["samples"] == 60


def test_no_sample_in_time(run: Run) -> None:
    done = run(DICE.replace("budget = 60", "budget = 60\nmax_seconds = 1e-9"))
    assert done.out.startswith("0 samples.")


def test_nothing_says_when_to_stop(run: Run) -> None:
    done = run(DICE.replace("budget = 60", ""))
    assert (done.code, done.out) == (2, "")
    assert "no limit was given; set budget, precision or max_seconds" in done.err


def test_options_go_before_the_file(run: Run) -> None:
    assert run(DICE, "--json", "--budget", "20").json["samples"] == 20
    assert run(DICE, "--json", "--jobs", "3").json["samples"] == 60
    assert run(DICE, "--budget", "many").code == 2
    assert "jobs must be a positive integer, got 0" in run(DICE, "--jobs", "0").err
    assert "jobs must be at most 1,000, got 100,000" in run(DICE, "--jobs", "100000").err


# ---- failures


def test_a_command_that_fails_is_tried_again_then_named(run: Run, tmp_path: Path) -> None:
    text = """
    budget = 20
    measure = "stdout"
    retries = 2
    store = "kept.db"
    [arms]
    good = "echo 1"
    bad = "test -e mended && echo 2 && exit; echo $EQUIPOISE_SEED >> tries; seq 1 4 >&2; exit 4"
    """
    done = run(text)
    assert done.code == 3
    [line] = done.err.splitlines()
    assert "sampling arm 'bad' failed 3 times" in line
    assert "the last time: exit code 4; its stderr ends with: 2 / 3 / 4;" in line
    assert "1 sample saved in" in line
    assert line.endswith("kept.db; run the same command to continue")
    tries = (tmp_path / "tries").read_text().split()
    assert len(tries) == 3
    assert len(set(tries)) == 1  # the same sample each time
    (tmp_path / "mended").touch()
    assert run(text, "--json").json["samples"] == 20


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("true", "failed: a sample must be a number that the command prints, got nothing"),
        ("echo 3 4", "failed: a sample must be a number on the last line printed, got '3 4'"),
        ("echo nan", "nan"),
        ("kill -TERM $$", "failed: the command was killed by SIGTERM"),
        ("printf 'error code %05000d' 7", "a sample must be a number on the last line printed, got 'error code 000"),
        (r"printf 'error\\f7'", r"a sample must be a number on the last line printed, got 'error\x0c7'"),
        ("yes | head -c 17000000; echo 7", "failed: the command printed more than 16 MB and was killed"),
    ],
)
def test_output_that_is_not_a_number(run: Run, command: str, sentence: str) -> None:
    done = run(f'budget = 9\nmeasure = "stdout"\n[arms]\nodd = "{command}"\n')
    assert done.code == 3
    assert "arm 'odd'" in done.err
    assert sentence in done.err
    assert done.err.endswith("; no samples were taken\n")


@pytest.mark.parametrize(
    "command",
    [
        "yes | head -c 1000000; echo 7",
        "echo 7; yes '' | head -c 1000000",
        "yes | head -c 20000000 >&2; echo 7",
        "printf '%05000d' 7",
        r"printf '1%%\r7'",
        "echo 7; kill -0 $$",
    ],
)
def test_numbers_after_and_before_much_else(tmp_path: Path, command: str) -> None:
    """However long the last line is, all of it is the number; and stderr may say what it likes."""
    assert Command("a", command, "stdout", tmp_path)() == 7


@pytest.mark.usefixtures("never")
def test_a_command_that_prints_too_much_is_killed_at_once(tmp_path: Path) -> None:
    """It would not end by itself."""
    with pytest.raises(CommandError, match=r"^the command printed more than 16 MB and was killed$"):
        Command("a", "yes | head -c 17000000; cat never", "stdout", tmp_path)()
    assert list(tmp_path.glob("**/*")) == [tmp_path / "never"]


@pytest.mark.usefixtures("never")
def test_a_command_that_is_late_is_killed(run: Run) -> None:
    text = 'budget = 9\nmeasure = "seconds"\ntimeout = 0.1\n[arms]\nlate = "cat never"\n'
    done = run(text)
    assert done.code == 3
    assert "the command took longer than 0.1 seconds and was killed" in done.err
    # Where passing is asked for, one that hangs has not passed.
    assert run(text.replace('"seconds"', '"exit"'), "--budget", "2", "--json").json["means"] == {"late": 0}


def test_a_timeout_of_centuries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is cut to what a thread can wait for."""
    waits: list[float] = []

    class Timer(threading.Timer):
        def start(self) -> None:
            waits.append(self.interval)

    monkeypatch.setattr(threading, "Timer", Timer)
    assert Command("a", "echo 7", "stdout", tmp_path, timeout=1e300)() == 7
    assert waits == [threading.TIMEOUT_MAX]


# How a command starts a child: in its group, in a session of its own, and as an orphan in one.
CHILDREN = [
    "cat never & echo $! > started; mv started child; wait",
    "setsid cat never & echo $! > started; mv started child; wait",
    "(setsid cat never & echo $! > started; mv started child); cat never",
    "(env -u EQUIPOISE_COMMAND setsid sh -c 'echo $$ > started; mv started child; cat never' & wait)",
]


@pytest.mark.usefixtures("never")
@pytest.mark.parametrize("command", CHILDREN)
@pytest.mark.parametrize("end", [Running.stop, lambda running: running.kill("mark")], ids=["stop", "timeout"])
def test_a_command_is_killed_with_all_that_it_started(
    tmp_path: Path, command: str, end: Callable[[Running], None]
) -> None:
    running, child = Running(), tmp_path / "child"
    with (tmp_path / "err").open("wb") as err:
        process = running.start("mark", command, tmp_path, subprocess.DEVNULL, err, dict(os.environ))
        until(child.exists, "the command has started a child")
        end(running)
        assert process.wait(HANG) == -signal.SIGKILL
    _wait_for_the_end(int(child.read_text()))


@pytest.mark.usefixtures("never")
def test_other_commands_are_left_alone(tmp_path: Path) -> None:
    running = Running()
    with (tmp_path / "err").open("wb") as err:
        start = partial(running.start, folder=tmp_path, out=subprocess.DEVNULL, err=err, env=dict(os.environ))
        first, second = start("one", "cat never"), start("two", "cat never")
        running.kill("one")
        assert first.wait(HANG) == -signal.SIGKILL
        assert second.poll() is None
        running.stop()
        assert second.wait(HANG) == -signal.SIGKILL


def _state(process: int) -> str:
    """R for running, S for sleeping; Z for ended, also where nobody has waited for it and where nothing is left."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


def _wait_for_the_end(process: int) -> None:
    until(lambda: _state(process) == "Z", f"process {process} has ended")


@pytest.mark.usefixtures("never")
def test_a_child_that_stays_behind_keeps_nobody_waiting(tmp_path: Path) -> None:
    """It never ends by itself."""
    assert Command("a", "cat never & echo 5", "stdout", tmp_path)() == 5


def test_no_command_starts_once_all_are_stopped(tmp_path: Path) -> None:
    command = Command("a", "echo 5", "stdout", tmp_path)
    command.running.stop()
    with pytest.raises(CommandError, match="the study was stopped"):
        command()


def test_warm_up_runs_are_not_counted(run: Run, tmp_path: Path) -> None:
    text = (
        'budget = 4\nwarmup = 2\nmeasure = "stdout"\n[arms]\na = "echo a >> ran; echo 1"\nb = "echo b >> ran; echo 2"\n'
    )
    assert run(text, "--json").json["counts"] == {"a": 2, "b": 2}
    assert (tmp_path / "ran").read_text().split()[:4] == ["a", "b", "a", "b"]
    assert len((tmp_path / "ran").read_text().split()) == 8
    failed = run(text.replace("echo 2", "exit 1"))
    assert failed.code == 3
    assert "the warm-up run of arm 'b' failed: exit code 1" in failed.err


# ---- Ctrl-C, and going on

HANGING = """
budget = 40
measure = "stdout"
store = "kept.db"
[arms]
a = "echo $$ >> processes; echo 1; test $(wc -l < processes) -lt 16 -o -e go || cat never"
b = "echo $$ >> processes; echo 2; test $(wc -l < processes) -lt 16 -o -e go || cat never"
"""


@pytest.mark.usefixtures("never")
@pytest.mark.parametrize(
    ("number", "jobs", "said"),
    [
        (signal.SIGINT, "1", "stopped"),
        (signal.SIGINT, "3", "stopped"),
        (signal.SIGTERM, "1", "ended by SIGTERM"),
        (signal.SIGTERM, "3", "ended by SIGTERM"),
        (signal.SIGHUP, "1", "ended by SIGHUP"),
        (signal.SIGQUIT, "3", "ended by SIGQUIT"),
    ],
)
def test_a_signal_stops_and_the_same_command_goes_on(
    run: Run, tmp_path: Path, number: signal.Signals, jobs: str, said: str
) -> None:
    file, processes = tmp_path / "study.toml", tmp_path / "processes"
    file.write_text(HANGING)
    words = [sys.executable, "-m", "equipoise", "run", str(file), "--jobs", jobs, "--json"]
    listen = partial(signal.signal, number, signal.SIG_DFL)  # some are ignored in the background of a shell
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=listen)
    try:
        until(lambda: processes.exists() and len(processes.read_text().split()) >= 16, "a command hangs")
        until(lambda: _state(child.pid) == "S", "its main thread waits for it")
        child.send_signal(number)
        out, err = child.communicate(timeout=HANG)
    finally:
        child.kill()
    assert child.returncode == 128 + number
    [line] = err.splitlines()
    so_far = json.loads(out)
    assert line.startswith(f"equipoise: {said}; {so_far['samples']} samples saved in ")
    assert line.endswith("kept.db; run the same command to continue")
    assert 10 < so_far["samples"] < 20
    assert so_far["exit"] == 128 + number
    for process in processes.read_text().split():
        _wait_for_the_end(int(process))
    (tmp_path / "go").touch()
    done = run(HANGING, "--jobs", jobs, "--json")
    assert done.code == 0, done.err
    assert done.json["samples"] == 40
    assert done.json["means"] == {"a": 1, "b": 2}
    found = kinds(tmp_path / "kept.db")
    assert found.count("ask") == found.count("tell") == 40


def test_signals_are_as_they_were_afterwards() -> None:
    """The first raises and the others do not; one that is ignored, as by nohup, stays so."""
    given = {signal.SIGHUP: signal.SIG_IGN, signal.SIGTERM: signal.SIG_DFL, signal.SIGQUIT: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in given.items()}
    try:
        with exits.Signals() as signals:
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            with pytest.raises(exits.Ended, match=r"^ended by SIGTERM$") as ended:
                signal.raise_signal(signal.SIGTERM)
            assert ended.value.code == 143
            signal.raise_signal(signal.SIGQUIT)
            signals.ignore()
            signal.raise_signal(signal.SIGTERM)
        assert {number: signal.getsignal(number) for number in given} == given
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_it_goes_on_where_it_was(run: Run, tmp_path: Path) -> None:
    text = DICE.replace("[arms]", 'store = "kept.db"\n[arms]')
    assert run(text, "--budget", "25", "--json").json["samples"] == 25
    whole, afresh = run(text, "--json").json, run(DICE, "--json").json
    # But for the intervals: they are tuned to the budget that there was before the first sample.
    for known in (whole, afresh):
        assert known.pop("intervals").keys() == {"coin", "die"}
        assert known.pop("certificate").startswith("60 samples. Least precise: ")
    assert whole == afresh
    found = kinds(tmp_path / "kept.db")
    assert found.count("tell") == found.count("ask") == 60
    # Nothing is left to do, and the same is said again.
    assert run(text, "--json").json | whole == run(text, "--json").json
    elsewhere = tmp_path / "elsewhere.db"
    assert run(text, "--budget", "20", "--store", str(elsewhere), "--json").json["samples"] == 20
    assert elsewhere.exists()


def test_samples_of_different_commands_are_not_mixed(run: Run) -> None:
    text = DICE.replace("[arms]", 'store = "kept.db"\n[arms]')
    assert run(text).code == 0
    done = run(text.replace("% 6 + 1", "% 20 + 1"), "--budget", "80")
    assert done.code == 2
    assert "the command of arm 'die' must stay " in done.err
    assert "% 20 + 1" in done.err
    assert "coin" not in done.err  # which is as it was
    assert "change it back or use another store" in done.err
    renamed = run(text.replace("die =", "dice ="), "--budget", "80")
    assert "arms must stay 'die', 'coin' to continue" in renamed.err
    assert "got 'dice', 'coin'; change it back" in renamed.err


# ---- tables

VISITS = "plan,visits,age\n" + "".join(
    f"{plan},{(i * 7) % spread},{20 + i % 30}\n"
    for plan, spread, size in (("free", 3, 200), ("paid", 50, 300))
    for i in range(size)
)


def test_groups_of_a_table(run: Run, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text(VISITS)
    text = 'table = "visits.csv"\ngroup = "plan"\nvalue = "visits"\nseed = 3\n'
    everything = run(text, "--json").json
    truth = {
        plan: np.mean([float(row.split(",")[1]) for row in VISITS.split() if row.startswith(plan)])
        for plan in ("free", "paid")
    }
    assert everything["counts"] == {"free": 200, "paid": 300}
    assert everything["means"] == pytest.approx(truth)
    assert everything["standard_errors"] == {"free": 0, "paid": 0}
    some = run(text, "--budget", "120", "--json").json
    assert some["samples"] == 120
    assert some["counts"]["paid"] > 3 * some["counts"]["free"]
    assert some["means"]["paid"] == pytest.approx(truth["paid"], abs=5 * some["standard_errors"]["paid"])
    # With replacement there is no end, and no correction for one.
    again = run("replacement = true\n" + text, "--budget", "2000", "--json").json
    assert again["samples"] == 2000
    assert again["means"]["paid"] == pytest.approx(truth["paid"], abs=5 * again["standard_errors"]["paid"])
    assert again["plain_errors"]["paid"] == pytest.approx((again["variances"]["paid"] / again["counts"]["paid"]) ** 0.5)
    assert run('arms = ["paid"]\n' + text, "--json").json["counts"] == {"paid": 300}


def test_intervals_and_contrasts_of_a_table(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    lines = [f"{plan},{rng.normal(k):.4f}" for k, plan in enumerate(["free", "basic", "pro"]) for _ in range(4000)]
    (tmp_path / "visits.csv").write_text("\n".join(["plan,visits", *lines]))
    table = 'table = "visits.csv"\ngroup = "plan"\nvalue = "visits"\nseed = 1\n'
    fixed = run(f"{table}precision = 0.1", "--json").json
    assert set(fixed["interval_kinds"].values()) == {"fixed-width"}
    for anytime in (
        run(f"{table}precision = 0.1", "--interval", "anytime"),
        run(f'{table}precision = 0.1\ninterval = "anytime"'),
    ):
        assert anytime.code == 0
        assert "valid at any time" in " ".join(anytime.out.split())
    differences = run(f'{table}precision = {{contrasts = 0.15, to = "free"}}', "--json")
    assert differences.code == 0, differences.err
    assert differences.json["precision"] == {"contrasts": 0.15, "to": "free"}
    assert [each["kind"] for each in differences.json["contrasts"]] == ["fixed-width", "fixed-width"]
    wrong = run(f"{table}precision = {{contrasts = 0.15, too = 1}}")
    assert (wrong.code, "precision with contrasts takes to and of, got 'too'" in wrong.err) == (2, True)
    wrong = run(f"{table}precision = 0.1", "--interval", "always")
    assert wrong.code == 2
    assert "interval must be one of 'fixed-width', 'anytime', got 'always'" in " ".join(wrong.err.split())


def test_words_for_zero_and_one_in_a_table(run: Run, tmp_path: Path) -> None:
    cells = "pandas,r,form,short\nTrue,TRUE,yes,Y\nFalse,FALSE,No,n\ntrue,NA,YES,y\nTrue,TRUE,yes,\n"
    (tmp_path / "t.csv").write_text(cells)
    text = 'table = "t.csv"\nmissing = "drop"\ncolumns = ["pandas", "r", "form", "short"]\n'
    means = run(text, "--json").json["means"]
    assert means == {"pandas": 0.75, "r": pytest.approx(2 / 3), "form": 0.75, "short": pytest.approx(2 / 3)}
    (tmp_path / "t.csv").write_text("plan,passed\na,T\nb,F\na,t\nb,f\nb,T\n")
    text = 'table = "t.csv"\ngroup = "plan"\nvalue = "passed"\n'
    assert run(text, "--json").json["means"] == {"a": 1, "b": pytest.approx(1 / 3)}
    polars.DataFrame({"passes": [True, False, True, True]}).write_parquet(tmp_path / "t.parquet")
    assert run('table = "t.parquet"\ncolumns = ["passes"]\n', "--json").json["means"] == {"passes": 0.75}


@pytest.mark.parametrize(
    ("cells", "what"),
    [
        ("yes\nno\n0.3", "'yes' in row 2 and '0.3' in row 4"),
        ("1\nTRUE", "'1' in row 2 and 'TRUE' in row 3"),
        ("true\nno", "'true' in row 2 and 'no' in row 3"),
        ("NA\nT\nfalse", "'T' in row 3 and 'false' in row 4"),
    ],
)
def test_words_that_are_mixed_with_others_are_refused(run: Run, tmp_path: Path, cells: str, what: str) -> None:
    (tmp_path / "t.csv").write_text(f"passes\n{cells}\n")
    found = run('table = "t.csv"\ncolumns = ["passes"]\n')
    assert found.code == 2
    assert f"passes must be all numbers, or all one pair of words such as yes and no, got {what}" in found.err


def test_words_are_not_mixed_over_the_arms_of_one_column(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("plan,passed\na,yes\nb,1\na,no\nb,0\nc,2\n")
    text = 'table = "t.csv"\ngroup = "plan"\nvalue = "passed"\n'
    assert "got 'yes' in row 2 and '1' in row 3" in run(text).err
    # Rows of other arms are not looked at.
    assert run('arms = ["b", "c"]\n' + text, "--json").json["means"] == {"b": 0.5, "c": 2}


def test_columns_of_a_parquet_table(run: Run, tmp_path: Path) -> None:
    polars.DataFrame({"a": [1.0, 2.0, 3.0, None], "b": [4, 5, 6, 7], "c": ["x", "y", "z", ""]}).write_parquet(
        tmp_path / "t.parquet"
    )
    text = 'table = "t.parquet"\ncolumns = ["a", "b"]\n'
    known = run(text + 'missing = "drop"\n', "--json").json
    assert known["means"] == {"a": 2, "b": 5.5}
    assert known["counts"] == {"a": 3, "b": 4}
    assert "row 5 has no value for 'a'" in run(text).err


def test_a_table_that_has_changed_is_not_gone_on_with(run: Run, tmp_path: Path) -> None:
    text = 'table = "visits.csv"\ngroup = "plan"\nvalue = "visits"\nbudget = 40\nstore = "kept.db"\n'
    (tmp_path / "visits.csv").write_text(VISITS)
    assert run(text).code == 0
    (tmp_path / "visits.csv").write_text(VISITS.replace("paid,7,", "paid,8,"))
    done = run(text, "--budget", "60")
    assert done.code == 2
    assert "contents" in done.err


# ---- functions


def test_a_function(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sampling_here.py").write_text(
        "import random\n"
        "def sample(arm, seed):\n    return random.Random(seed).gauss(0, 5 if arm == 'rough' else 1)\n"
        "def item(arm, item):\n    return item\n"
        "def broken(arm):\n    raise OSError('the line is dead')\n"
        "number = 3\n"
    )
    text = 'function = "sampling_here:{}"\narms = ["calm", "rough"]\nbudget = 200\nseed = 5\n'
    known = run(text.format("sample"), "--json").json
    assert known["counts"]["rough"] > 3 * known["counts"]["calm"]
    pools = 'function = "sampling_here:item"\n[populations]\nfew = 4\nmany = 101\n'
    assert run(pools, "--json").json["means"] == pytest.approx({"few": 1.5, "many": 50})
    broken = run(text.format("broken"))
    assert broken.code == 3
    assert "arm 'calm' failed: OSError: the line is dead" in broken.err
    assert "line 7, in broken" in broken.err  # where it happened
    assert "did you mean 'sample'?" in run(text.format("sampel")).err
    assert "function must be module:name of something callable" in run(text.format("number")).err
    assert "there is no module 'nowhere_at_all'" in run('function = "nowhere_at_all:f"\narms = ["a"]\nbudget = 9\n').err


def test_arms_take_turns(run: Run, tmp_path: Path) -> None:
    """The first samples go round, and however quiet a command is, when times are measured it is not left to rest."""
    (tmp_path / "sampling_in_turn.py").write_text(
        "def sample(arm, seed):\n    return seed % 1000 if arm == 'rough' else seed % 7 / 100\n"
    )
    text = 'function = "sampling_in_turn:sample"\narms = ["a", "rough", "c"]\nbudget = 300\nstore = "{}.db"\n'
    assert run(text.format("without")).code == 0
    assert run("rounds = 2\n" + text.format("with")).code == 0
    longest = {}
    for name in ("with", "without"):
        asked = [event.arm for event in events(tmp_path / f"{name}.db") if event.kind == "ask"]
        assert asked[:6] == [0, 1, 2, 0, 1, 2]
        assert len(asked) == 300
        longest[name] = max(len(list(run)) for _, run in groupby(asked))
    # A round of six asks, less the two for the others in the one before and this.
    assert longest["with"] <= 2 * 6 - 2
    assert longest["without"] > 20
    assert spec.load(_written(tmp_path, 'measure = "seconds"\n[arms]\na = "true"\n')).settings["rounds"] == 2
    assert "rounds" not in spec.load(_written(tmp_path, DICE)).settings


def _written(folder: Path, text: str) -> Path:
    (folder / "other.toml").write_text(text)
    return folder / "other.toml"


# ---- bad files


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("budget = ", "study.toml as TOML: end of document: invalid value"),
        ("arm,variance\na,4", "study.toml as TOML: line 1, column 4: expected '=' after a key in a key/value pair"),
        ("", "it is empty"),
        ("\n", "no arms were given"),
        (f"a = {'[' * 5000}{']' * 5000}", "as TOML: it is nested too deeply"),
        (f"budget = {'9' * 5000}", "as TOML: it has an integer of thousands of digits"),
        (
            f'measure = "exit"\nbudget = 9\nretries = 1{"0" * 400}\n[arms]\na = "true"',
            "retries must be at most 1,000,000",
        ),
        ("budget = 9\n[arms]\n", "no arms were given"),
        ('bugdet = 9\n[arms]\na = "true"', "there is no key 'bugdet'; did you mean 'budget'?"),
        ('zzz = 9\n[arms]\na = "true"', "there is no key 'zzz'; the keys are budget, precision"),
        ('budget = 9\n[arms]\na = "true"', "measure is required: one of 'stdout', 'seconds', 'exit'"),
        ('budget = 9\nmeasure = "second"\n[arms]\na = "true"', "did you mean 'seconds'?"),
        ('measure = "exit"\n[arms]\na = "true"\nbudget = 9', "to set budget for the study, move it above [arms]"),
        ('measure = "exit"\n[arms]\na = 3', "arm 'a' must be a command, got 3"),
        (
            'measure = "exit"\nsupport = [0, 9]\n[arms]\na = "true"',
            "support must be 'binary' where exit codes are measured, got [0, 9]",
        ),
        ('measure = "exit"\ntimeout = 0\n[arms]\na = "true"', "timeout must be a positive number of seconds, got 0"),
        ('measure = "exit"\nwarmup = -1\n[arms]\na = "true"', "warmup must be a non-negative integer, got -1"),
        ('measure = "exit"\nbudget = 1\n[arms]\na = "true"', "budget"),
        ('measure = "exit"\nprecision = "much"\n[arms]\na = "true"', "'much'"),
        ('measure = "exit"\nbudget = 9\nstrategy = "b-sa"\n[arms]\na = "true"', "there is no strategy 'b-sa'"),
        ('measure = "exit"\nbudget = 9\nstore = 3\n[arms]\na = "true"', "store must be a string, got 3"),
        ('table = "t.csv"\ntimeout = 3', "timeout applies to studies of shell commands; this is a study of a table"),
        ('table = "t.csv"', "a table needs either columns, or group and value"),
        ('table = "t.csv"\ngroup = "plan"', "a table needs either columns, or group and value"),
        ('table = "no.csv"\ncolumns = ["a"]', "there is no table"),
        ('table = "t.txt"\ncolumns = ["a"]', "table must be a .csv, .tsv or .parquet file, got 't.txt'"),
        ('table = "t.csv"\ngroup = "pan"\nvalue = "visits"', "there is no column 'pan'; did you mean 'plan'?"),
        ('table = "t.csv"\ncolumns = ["zz"]', "there is no column 'zz'; the columns are 'plan', 'visits'"),
        ('table = "t.csv"\ncolumns = "visits"', "columns must be a list of names, got 'visits'"),
        ('table = "t.csv"\ncolumns = ["plan"]', "row 2: plan must be a number, yes or no, got 'free'"),
        ('table = "t.csv"\ngroup = "plan"\nvalue = "visits"\narms = ["fre"]', "did you mean 'free'?"),
        (
            'table = "t.csv"\ngroup = "plan"\nvalue = "visits"\nmissing = "no"',
            "missing must be one of 'refuse', 'drop', got 'no'",
        ),
        ('table = "gaps.csv"\ngroup = "plan"\nvalue = "visits"', "row 3 has no value for 'visits'"),
        ('table = "ragged.csv"\ncolumns = ["a"]', "must have 2 cells like the header, got 1"),
        ('table = "empty.csv"\ncolumns = ["a"]', "it is empty"),
        (
            'table = "header.csv"\ngroup = "plan"\nvalue = "visits"',
            "header.csv must have at least one row of data",
        ),
        ('table = "header.parquet"\ncolumns = ["a"]', "header.parquet must have at least one row of data"),
        (
            'measure = "exit"\nwarmup = 1\n[arms]\n"a\\u001b[2J" = "touch ran"',
            r"the name of an arm must not contain control characters, got 'a\x1b[2J'",
        ),
        (
            'table = "loud.csv"\ngroup = "plan"\nvalue = "visits"',
            r"must not contain control characters, got '\x1bfree'",
        ),
        ('table = "loud.csv"\ngroup = "plan"\nvalue = "a\\u0007"', r"must not contain control characters, got 'a\x07'"),
        ('arms = ["x"]', 'needs the function that samples them, as in function = "module:name"'),
        ('function = "f"\narms = ["a"]', "function must be module:name, got 'f'"),
        ('function = "os:open"\narms = ["a", ""]', "the name of an arm must not be empty, got ''"),
        ('measure = "seconds"\n[arms]\n" " = "true"', "the name of an arm must not be empty, got ' '"),
        (
            'function = "os:opn"\narms = ["a"]',
            "function 'os:opn' does not exist: os has no 'opn'; did you mean 'open'?",
        ),
        ('function = "math:sin"', "needs a list of its arms"),
    ],
)
def test_bad_files(run: Run, tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "t.csv").write_text("plan,visits\nfree,1\nfree,2\npaid,3\npaid,5\n")
    (tmp_path / "gaps.csv").write_text("plan,visits\nfree,1\nfree,\npaid,3\n")
    (tmp_path / "ragged.csv").write_text("a,b\n1\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("plan,visits\n")
    polars.DataFrame({"a": []}).write_parquet(tmp_path / "header.parquet")
    (tmp_path / "loud.csv").write_text("plan,visits,a\a\n\x1bfree,1,1\npaid,3,1\n")
    done = run(text)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/dev/zero", "a study must be a file, got /dev/zero, which is a device"),
        ("/proc/self/mem", "cannot read /proc/self/mem: it is empty"),
        ("pipe", "a study must be a file, got pipe, which is a pipe"),
        (".", "a study must be a file, got ., which is a folder"),
        ("x" * 300, "a study must be the path of a file, got 'xxxx"),
        ("no.toml", "no.toml: No such file or directory"),
    ],
)
def test_what_is_not_a_file(
    path: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    monkeypatch.setattr(sys, "argv", ["equipoise", "run", path])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("printed", ["1_000", "\uff11\uff12", "\u0661\u0662", "1e1_0", "0x10", "1,000"])
def test_what_resembles_a_number(run: Run, printed: str) -> None:
    done = run(f'measure = "stdout"\nbudget = 9\n[arms]\na = "echo {printed}"')
    assert done.code == 3
    assert f"a sample must be a number on the last line printed, got '{printed}'" in done.err


@pytest.mark.parametrize("store", ["mysql://u:secret@host/db", "postgresql://u:secret@127.0.0.1:1/db"])
def test_a_password_is_not_printed(run: Run, store: str) -> None:
    done = run(DICE, "--store", store)
    assert done.code == 2
    assert "://" in done.err
    assert "secret" not in done.out + done.err


def test_a_password_is_not_printed_where_samples_are_saved(run: Run, tmp_path: Path, postgres: str) -> None:
    """The server lets anybody in, so that any password will do."""
    user, _, rest = postgres.partition("@")
    assert user.startswith("postgresql://postgres:")
    store = f"postgresql://postgres:secret@{rest}#{tmp_path.name}"
    failing = DICE.replace('"echo rolling;', '"test -e go || exit 1; echo rolling;')
    done = run(failing, "--store", store)
    assert done.code == 3
    assert "saved in postgresql://postgres:***@" in done.err
    other = run(DICE.replace("% 2", "% 3"), "--store", store)
    assert other.code == 2
    assert "to continue the study in postgresql://postgres:***@" in other.err
    assert "secret" not in done.out + done.err + other.out + other.err


def test_what_a_sample_prints_and_raises_cannot_control_the_terminal(run: Run, tmp_path: Path) -> None:
    done = run('budget = 9\nmeasure = "exit"\n[arms]\na = "printf \'\\\\033[2Jgone\' >&2; exit 127"\n')
    assert done.code == 3
    assert r"its stderr ends with: \x1b[2Jgone" in done.err
    (tmp_path / "raising_loudly.py").write_text("def sample(arm):\n    raise OSError('\\x1b[2Jgone')\n")
    raised = run('function = "raising_loudly:sample"\narms = ["a"]\nbudget = 9\n')
    assert raised.code == 3
    assert r"OSError: \x1b[2Jgone" in raised.err
    assert "\x1b" not in done.err + raised.err


def test_no_file(run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for words, sentence in ((["run"], "no study was given"), (["run", "nowhere.toml"], "nowhere.toml: No such file")):
        monkeypatch.setattr(sys, "argv", ["equipoise", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        assert sentence in capsys.readouterr().err


# ---- the example, and the live table


def test_the_example_works(run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["equipoise", "run", "--example"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert text == spec.EXAMPLE
    known = run(text.replace("python3", "true"), "--budget", "12", "--json").json
    assert known["counts"].keys() == {"zlib", "bz2", "lzma"}
    assert known["samples"] == 12


def test_a_live_table_on_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(DICE)
    master, slave = pty.openpty()
    words = [sys.executable, "-m", "equipoise", "run", str(tmp_path / "study.toml")]
    env = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=slave, env=env)
    os.close(slave)
    seen = b""
    try:
        while part := os.read(master, 4096):
            seen += part
    except OSError:  # the terminal's other end is closed
        pass
    out, _ = child.communicate(timeout=HANG)
    os.close(master)
    assert child.returncode == 0
    text = seen.decode()
    assert "of 60 samples, " in text
    assert "Ctrl-C stops" in text
    assert "interval" in text
    assert "60 samples" in out.decode()


def test_the_last_sentence_says_what_is_left() -> None:
    """As on the page and in the verdict; nothing where no precision was asked for."""
    draws = {arm: np.random.default_rng(ord(arm)).normal(size=400) for arm in "ab"}
    told: list[Progress] = []
    eq.estimate(draws, precision=0.2, budget=150, progress=told.append)
    left = what_is_left(told[-1].result.known)
    assert "more samples" in left
    assert _kept(told[-1], "study.db") == (f"150 samples saved in study.db; {left}; run the same command to continue")
    eq.estimate(draws, budget=150, progress=told.append)
    assert (
        _kept(told[-1], None) == "150 samples taken, none saved; with --store study.db the same command would continue"
    )
    assert _kept(None, None) == "no samples were taken"
