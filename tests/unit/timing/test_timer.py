"""Running a command once, with and without a shell."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from equipoise.run.commands import CommandError
from equipoise.timing import ProcessTimer
from equipoise.timing import timer as timer_module
from equipoise.timing.timer import needs_shell, shell_for, words_of


def test_seconds_are_those_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that reads 10 before it starts and 12.5 when the file is there that it makes at its end."""
    monkeypatch.chdir(tmp_path)

    def clock() -> float:
        return 12.5 if (tmp_path / "ended").exists() else 10.0

    run = ProcessTimer(clock=clock)(["touch", "ended"], "a")
    assert (run.seconds, run.code, run.said) == (2.5, 0, "")
    assert run.user >= 0
    assert run.system >= 0


def test_how_a_command_failed() -> None:
    timer = ProcessTimer()
    run = timer(["sh", "-c", "echo out; echo one >&2; echo two >&2; exit 3"], "a")
    assert (run.code, run.said) == (3, "exit code 3; its stderr ends with: one / two")
    assert timer(["sh", "-c", "kill -TERM $$"], "a").said == "the command was killed by SIGTERM"
    with pytest.raises(
        CommandError, match=r"^cannot run 'no-such-program': No such file or directory; quote a command"
    ):
        timer(["no-such-program"], "a")
    with pytest.raises(CommandError, match=r"^cannot run 'no-such-program': No such file or directory$"):
        timer(["no-such-program", "with", "arguments"], "a")


def test_each_command_has_an_stderr_of_its_own() -> None:
    """However much is printed: more than a pipe holds, or nothing."""
    timer = ProcessTimer()
    run = timer(["sh", "-c", "yes | head -c 300000 >&2; echo last >&2; exit 1"], "a")
    assert run.said.endswith("y / y / last")
    assert timer(["sh", "-c", "echo fine >&2"], "a").said == ""
    assert timer(["false"], "a").said == "exit code 1"


def test_a_program_is_looked_for_as_the_shell_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").write_text("#!/bin/sh\n")
    (tmp_path / "here").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert ProcessTimer()(["./here"], "a").code == 0
    with pytest.raises(CommandError, match=r"^cannot run 'here': No such file or directory; quote a command"):
        ProcessTimer()(["here"], "a")
    (tmp_path / "here").chmod(0o644)
    with pytest.raises(CommandError, match=r"^cannot run './here': Permission denied; quote a command"):
        ProcessTimer()(["./here"], "a")


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("terminal", [False, True])
def test_a_command_has_a_group_of_its_own_or_a_session(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    monkeypatch.setattr(timer_module, "_has_terminal", lambda: terminal)
    timer = ProcessTimer()
    own = "read pid name state parent group session rest < /proc/$$/stat; test ${} = $$"
    assert timer(["sh", "-c", own.format("group")], "a").code == 0
    assert timer(["sh", "-c", own.format("session")], "a").code == (0 if terminal else 1)


@pytest.mark.skipif(sys.platform != "linux", reason="subprocess does so elsewhere")
def test_a_command_does_not_ignore_sigpipe() -> None:
    assert ProcessTimer()(["sh", "-c", "kill -PIPE $$"], "a").code == -signal.SIGPIPE


def test_nothing_but_the_command_is_timed() -> None:
    """The clock is read when all is ready for its start, and before anything is made of its end."""
    read: list[int] = []

    def clock() -> float:
        read.append(len(vars(timer.running)["_processes"]))
        return float(len(read))

    timer = ProcessTimer(clock=clock)
    assert timer(["true"], "a").seconds == 1
    assert read == [1, 1]  # its place is taken before, and given back after


def test_a_run_waits_if_this_process_has_computed_since_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    computed, rests = [0.01, 0.01, 0.02, 0.02, 0.4, 0.4, 0.5, 0.5], list[float]()
    own = SimpleNamespace(process_time=lambda: computed.pop(0), sleep=rests.append, perf_counter=lambda: 0.0)
    monkeypatch.setattr(timer_module, "time", own)
    timer = ProcessTimer(clock=lambda: 0.0)
    found = []
    for _ in range(4):
        timer(["true"], "a")
        found.append(len(rests))
    assert found == [0, 0, 1, 2]


def test_what_it_prints_is_shown_or_dropped(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["sh", "-c", "echo out; echo $EQUIPOISE_ARM >&2"]
    ProcessTimer()(words, "x")
    assert capfd.readouterr() == ("", "")
    ProcessTimer("inherit")(words, "x")
    assert capfd.readouterr() == ("out\n", "x\n")
    ProcessTimer("inherit", aside=True)(words, "x")
    assert capfd.readouterr() == ("", "out\nx\n")


@pytest.mark.parametrize("platform", [sys.platform, "other"])
def test_where_stdout_goes(
    platform: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file has what the last run printed; a pipe is read, however much is printed."""
    monkeypatch.setattr(sys, "platform", platform)
    words = ["sh", "-c", "head -c 300000 /dev/zero; echo x >&2; test -p /dev/stdout"]
    timer = ProcessTimer(str(tmp_path / "out"))
    assert [timer(words, "x").said for _ in range(2)] == ["exit code 1; its stderr ends with: x"] * 2
    assert (tmp_path / "out").stat().st_size == 300_000
    assert ProcessTimer("pipe")(words, "x").code == 0
    assert ProcessTimer("null")(words, "x").said == "exit code 1; its stderr ends with: x"
    assert capfd.readouterr() == ("", "")
    ProcessTimer("inherit", aside=True)(["echo", "1"], "x")
    assert capfd.readouterr() == ("", "1\n")


@pytest.mark.parametrize(
    "command",
    ["true", "env -i true", "echo 'a | b; $c'", 'echo "a & b (c)"', "touch 'it is' here", "no-such-program-here -x"],
)
def test_plain_commands_need_no_shell(command: str) -> None:
    assert not needs_shell(command)


@pytest.mark.parametrize(
    "command",
    ["a | b", "true; true", "true > x", "echo $HOME", 'echo "$HOME"', "ls *.py", "X=1 true", "exit 3", "echo 'open",
     "true && true", "echo `true`", "cd ~", "ulimit -n"],
)  # fmt: skip
def test_others_do(command: str) -> None:
    assert needs_shell(command)


def test_all_commands_have_the_same_shell_or_none() -> None:
    assert shell_for(["true", "echo 1"], "auto") is None
    assert shell_for(["true", "echo $X"], "auto") == "/bin/sh"
    assert shell_for(["true; true"], "none") is None
    assert shell_for(["true"], "default") == "/bin/sh"
    assert shell_for(["true"], "sh -e") == "sh -e"
    assert shutil.which("sh")
    with pytest.raises(ValueError, match=r"^shell must be a program, 'none' or 'auto', got 'no-such-shell'$"):
        shell_for(["true"], "no-such-shell")


@pytest.mark.parametrize(
    "command",
    [
        r'''printf '%s|' "\$HOME" "a\`b" "c\"d" "e\\f" "g\h"''',
        "printf '%s|' \"a\\\nb\" c\\\nd \\\n e",
        r"printf '%s|' a\ b 'c'\''d' '' x''y '\n' \$X",
        " printf\t'%s|'  a\n",
    ],
)
def test_words_are_those_of_a_shell(command: str) -> None:
    shell = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True)
    program, layout, *words = words_of(command, None)
    assert (program, layout) == ("printf", "%s|")
    assert "".join(f"{word}|" for word in words) == shell.stdout


def test_words() -> None:
    assert words_of("echo 'a b' c", None) == ["echo", "a b", "c"]
    assert words_of("a | b", "bash --norc") == ["bash", "--norc", "-c", "a | b"]
    with pytest.raises(ValueError, match=r"^cannot split \"echo 'a\" into words: No closing quotation$"):
        words_of("echo 'a", None)
    with pytest.raises(ValueError, match=r"into words: No escaped character$"):
        words_of("echo a\\", None)
