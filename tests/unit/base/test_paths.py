"""Paths that users name: what is no file is refused before it is opened, as it may have no end or never begin."""

from __future__ import annotations

import os
import socket
from contextlib import closing
from pathlib import Path

import pytest

import equipoise as eq
from equipoise.base import paths
from equipoise.planning.read import read
from equipoise.simulation.results import Curve


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a pipe in it, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/dev/zero", "a device"),
        ("/dev/null", "a device"),
        ("pipe", "a pipe"),
        (".", "a folder"),
        ("nothing", None),
        ("pipe/nothing", None),
        (__file__, ""),
    ],
)
def test_what_is_there(path: str, kind: str | None) -> None:
    assert paths.kind_of("x", Path(path)) == kind


def test_a_socket() -> None:
    with closing(socket.socket(socket.AF_UNIX)) as server:
        server.bind("socket")
        assert paths.kind_of("x", Path("socket")) == "a socket"


IMPOSSIBLE = ["x" * 300, "x/" * 3000, "a\0b", "\ud800"]


@pytest.mark.parametrize("path", IMPOSSIBLE)
def test_paths_that_no_file_has(path: str) -> None:
    for use in (read, Curve.load, eq.open, lambda path: eq.open(path, arms=["a"], budget=9)):
        with pytest.raises(ValueError, match=r"must be the path of a file, got '.{1,80}") as caught:
            use(path)
        assert len(str(caught.value)) < 200
    assert os.listdir() == ["pipe"]


@pytest.mark.parametrize("path", ["/dev/zero", "pipe", "."])
def test_what_is_no_file_is_not_opened(path: str) -> None:
    for use in (read, Curve.load, eq.open, lambda path: eq.open(path, arms=["a"], budget=9)):
        with pytest.raises(ValueError, match=rf"must be a file, got {path}, which is a (device|pipe|folder)"):
            use(path)
    assert os.listdir() == ["pipe"]


def test_a_file_is_opened() -> None:
    Path("text").write_bytes(b"\xef\xbb\xbfa\r\nb")
    with paths.opened("x", Path("text"), most=7) as file:
        assert file.read() == "a\r\nb"
    with (
        pytest.raises(ValueError, match="x must have at most 6 bytes, got text, which has 7"),
        paths.opened("x", Path("text"), 6),
    ):
        pass
    Path("text").write_bytes(b"")
    for path in ("text", "/proc/self/mem"):
        with pytest.raises(ValueError, match=f"cannot read {path}: it is empty"), paths.opened("x", Path(path)):
            pass
    with (
        pytest.raises(FileNotFoundError, match="No such file or directory: 'nothing'"),
        paths.opened("x", Path("nothing")),
    ):
        pass


def test_an_error_names_the_file() -> None:
    """A disk that fails tells only what went wrong."""
    Path("text").write_text("a")
    with pytest.raises(OSError, match="Input/output error: 'text'"), paths.opened("x", Path("text")):
        raise OSError(5, "Input/output error")
