"""Files that commands write: what is refused before the work, and what is said when writing fails."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.cli import main
from equipoise.cli.output import check_writable, console, replace_file, replace_unprintable, writing

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this system")


def refused(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one sentence with which a command refuses its input."""
    monkeypatch.setattr(sys, "argv", ["equipoise", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    [sentence] = printed.err.splitlines()
    return sentence.removeprefix("equipoise: ")


def test_check_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d").mkdir()
    Path("input.csv").write_text("arm,variance\na,1\n")
    Path("link.csv").symlink_to("input.csv")
    read = [Path("input.csv"), Path("not-there.csv"), None]
    check_writable(Path("new.csv"), None, Path("d/new.csv"), chart=Path("new.svg"), inputs=read)
    for paths, sentence in [
        (["d"], "cannot write d: it is a folder"),
        (["no/a.csv"], "cannot write no/a.csv: there is no folder no"),
        (["d/../input.csv"], "cannot write d/../input.csv: this command reads it"),
        (["link.csv"], "cannot write link.csv: this command reads it"),
        (["a.csv", "d/../a.csv"], "cannot write d/../a.csv twice: give each output a file of its own"),
    ]:
        with pytest.raises(ValueError, match="cannot write") as wrong:
            check_writable(*map(Path, paths), inputs=read)
        assert str(wrong.value) == sentence
    with pytest.raises(ValueError, match=r"must end in \.png, \.svg or \.html, got 'a\.pdf'"):
        check_writable(chart=Path("a.pdf"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d", "input.csv", "link.csv"]


def test_check_writable_asks_for_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    for path in (tmp_path / "new.csv", Path(__file__)):
        with pytest.raises(ValueError, match=f"cannot write {path}: permission denied"):
            check_writable(path)


def test_what_was_there_is_kept_until_all_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.html"
    replace_file(page, "first")
    write = Path.write_text

    def full(path: Path, text: str, **named: Any) -> int:
        write(path, text[:2], **named)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(page))

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(ValueError, match=r"cannot write .*page\.html: No space left on device"):
        replace_file(page, "second")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("page.html", "first")]


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_characters_that_the_terminal_lacks(errors: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors=errors))
    replace_unprintable()
    print("±1")
    sys.stdout.flush()
    assert sys.stdout.buffer.getvalue() == b"?1\n"  # type: ignore[union-attr]


def test_no_columns_are_an_unknown_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    assert console().width == 80


@needs_full
def test_a_full_disk_is_named_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="cannot write /dev/full: No space left on device"), writing(FULL):
        FULL.write_text("a", encoding="utf-8")
    words = ["plan", "--variance", "a=4", "--budget", "10", "--csv", str(FULL)]
    assert refused(words, monkeypatch, capsys) == "cannot write /dev/full: No space left on device"


@needs_full
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_standard_output_on_a_full_disk(unbuffered: str) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "equipoise", "run", "--example"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert done.returncode == 2
    assert done.stderr == "equipoise: cannot write to standard output: No space left on device\n"


def test_a_report_does_not_overwrite_its_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with eq.open("study.html", arms=["a"], budget=5) as study:
        study.tell(study.ask(), 1.0)
    before = Path("study.html").read_bytes()
    for store, option, path, sentence in [
        ("study.html", "--html", "study.html", "cannot write study.html: this command reads it"),
        ("sqlite:///study.html#study", "--html", "./study.html", "cannot write study.html: this command reads it"),
        ("study.html", "--html", "a.txt", "--html must be a file whose name ends in .html, got 'a.txt'"),
        ("study.html", "--png", "a.html", "--png must be a file whose name ends in .png, got 'a.html'"),
    ]:
        assert refused(["report", store, option, path], monkeypatch, capsys) == sentence
    assert Path("study.html").read_bytes() == before
    assert not Path("a.txt").exists()


def test_no_output_overwrites_an_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.csv").write_text("arm,variance\na,1\n")
    Path("own.py").write_text("raise AssertionError('read before the check')\n")
    for words in (["plan", "p.csv", "--budget", "9", "--csv"], ["plan", "p.csv", "--budget", "9", "--curve"]):
        assert refused([*words, "p.csv"], monkeypatch, capsys) == "cannot write p.csv: this command reads it"
    for words in (["simulate", "rademacher"], ["leaderboard"]):
        words += ["--strategy", "own.py:Own", "--csv", "own.py"]
        assert refused(words, monkeypatch, capsys) == "cannot write own.py: this command reads it"
