"""`equipoise serve`, as a person runs it."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import equipoise as eq
from equipoise.cli import main
from tests.waiting import HANG, until

TOKEN = "a token of our own"


@contextmanager
def serving(tmp_path: Path, *words: str, token: str = "") -> Iterator[tuple[subprocess.Popen[bytes], str, Path]]:
    """Run the command in a folder until the end of the context; yields it, its URL, and what it says."""
    said = tmp_path / "said.txt"
    with said.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "equipoise", "serve", "--port", "0", *words],
            cwd=tmp_path,
            stderr=file,
            env=os.environ | {"EQUIPOISE_ADMIN_TOKEN": token, "TMPDIR": str(tmp_path)},
        )
    try:
        until(lambda: b"http://" in said.read_bytes() or process.poll() is not None, "it says where it is")
        found = re.search(r"http://[^/]+", said.read_text())
        assert found is not None, said.read_text()
        until(lambda: _ready(found[0]) or process.poll() is not None, "it is ready")
        yield process, found[0], said
    finally:
        process.kill()
        process.wait(HANG)


def _ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=HANG).status_code == 200
    except httpx.TransportError:
        return False


def test_the_first_start(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, url, said):
        token = re.search(r"eqa_\S+", said.read_text())
        assert token is not None
        with eq.connect(url, token[0]) as service:
            study = service.create("poll", arms=["a", "b"])
            study.tell(study.ask(), 1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG) == 0
    with eq.open(f"{tmp_path}/studies.db#poll") as saved:
        assert saved.result().samples == 1


def test_two_workers_of_the_demonstration_leave_nothing_behind(tmp_path: Path) -> None:
    with serving(tmp_path, "--demo", "--workers", "2", token=TOKEN) as (process, url, said):
        assert "/studies/demo" in said.read_text()
        assert "token" not in said.read_text()
        with eq.connect(url, TOKEN) as service:
            assert service.studies() == ["demo"]
            until(lambda: service.study("demo").spent > 0, "visitors come")
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["said.txt"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--workers", "0"], "--workers must be a positive integer, got 0"),
        (["--workers", "two"], "--workers must be an integer, got 'two'"),
        (["--port", "99999"], "--port must be an integer between 0 and 65,535, got 99999"),
        (["--port", "-1"], "--port must be an integer between 0 and 65,535, got -1"),
        (["--root-path", "polls"], "--root-path must be a path such as /polls, got 'polls'"),
        (["--trusted-proxies", "10.0.0.1,proxy"], "--trusted-proxies must be addresses such as 127.0.0.1"),
        (["--db", "nowhere/studies.db"], "there is no folder"),
        (
            ["--db", "mysql://user:secret@host/db"],
            "--db must be a path such as 'study.db' or a postgresql:// URL, got mysql://...",
        ),
        (["--db", "studies.db#poll"], "--db must be a SQLite file or a postgresql:// URL, without the name of a study"),
        (["--db", "postgresql://user:secret@host/db#poll"], "got 'postgresql://user:***@host/db#poll'"),
        (["--db", ""], "without the name of a study, got ''"),
        (["--host", "203.0.113.7"], "cannot listen at 203.0.113.7"),
    ],
)
def test_wrong_input(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    said = refused(monkeypatch, capsys, words)
    assert sentence in said
    assert "secret" not in said


def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]) -> str:
    """Run the command with input that it refuses, and return its one sentence."""
    monkeypatch.setattr(sys, "argv", ["equipoise", "serve", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert len(said.strip().splitlines()) == 1
    return said


def test_a_token_that_is_too_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EQUIPOISE_ADMIN_TOKEN", "secret")
    said = refused(monkeypatch, capsys, [])
    assert "EQUIPOISE_ADMIN_TOKEN must have at least 16 characters, got 6" in said


def test_nobody_connects_to_workers_that_stop(tmp_path: Path) -> None:
    """While a request is under way, it is finished, and new connections are refused."""
    head = b"POST /login HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 7\r\n\r\n"
    with serving(tmp_path, "--workers", "2", token=TOKEN) as (process, url, _):
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        with socket.create_connection(address, HANG) as under_way:
            under_way.sendall(head)
            assert under_way.recv(1 << 16).startswith(b"HTTP/1.1 100")  # a worker waits for the rest
            process.send_signal(signal.SIGTERM)
            until(lambda: not _listens(address), "nobody can connect")
            assert process.poll() is None
            under_way.sendall(b"token=x")
            assert under_way.recv(1 << 16).startswith(b"HTTP/1.1 401")
        assert process.wait(HANG) == 0


def _listens(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, HANG).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.skipif(os.name != "posix", reason="permissions of files are otherwise on Windows")
def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    with serving(tmp_path, token=TOKEN) as (_, url, _):
        with eq.connect(url, TOKEN) as service:
            service.create("poll", arms=["a", "b"])
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("studies.db*")}
    assert {"studies.db", "studies.db-wal", "studies.db-shm"} <= modes.keys()
    assert {modes[name] for name in ("studies.db", "studies.db-wal", "studies.db-shm")} == {0o600}
