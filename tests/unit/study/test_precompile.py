"""What a first study compiles in a fork."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.compiled import fork
from equipoise.inference.replay import adaptivity
from equipoise.ledger import steps
from equipoise.study import precompile as ahead

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are made on Linux alone")


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would be done in a fork, on a machine where nothing is compiled yet."""
    found: list[Any] = []
    monkeypatch.setattr(ahead, "is_kept", lambda step, signature: False)
    monkeypatch.setattr(fork, "possible", lambda: True)
    monkeypatch.setattr(fork, "begin", found.append)
    monkeypatch.setattr(steps, "FIRST", [(Compiles(), ())])
    return found


class Compiles:
    """A step that is compiled when it is told to be."""

    def __init__(self) -> None:
        self.overloads: list[Any] = []

    def compile(self, signature: Any) -> None:
        self.overloads.append(signature)


@pytest.mark.parametrize("support", [None, "binary", (-2.0, 5.0)])
def test_a_fork_makes_a_result_with_a_replay(
    forks: list[Any], support: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []

    class Result(eq.Result):
        def __str__(self) -> str:
            found.append(self)
            return super().__str__()

    monkeypatch.setattr(ahead, "Result", Result)
    ahead.compile_ahead(eq.strategies.resolve("auto"), support)
    [work] = forks
    work()
    [result] = found
    assert adaptivity(result.known).how == "replay"
    assert result.samples == ahead.ARMS * ahead.SAMPLES
    assert "confidence sequences" in capsys.readouterr().out


def test_steps_are_compiled_here_and_once(forks: list[Any]) -> None:
    for _ in range(2):
        ahead.compile_ahead(eq.strategies.resolve("auto"), None)
    [(step, signature)] = steps.FIRST
    assert step.overloads == [signature]
    assert len(forks) == 1


def test_there_is_no_fork_where_it_could_file_nothing(
    forks: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("EQUIPOISE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    ahead.compile_ahead(eq.strategies.resolve("auto"), None)
    assert not forks


def test_the_steps_are_those_that_a_study_takes() -> None:
    """The types that are compiled ahead are the only ones that a study asks for."""
    study = eq.Study(2, budget=12)
    while not study.done:
        study.tell(study.ask(), 1.5)
    for step, signature in steps.FIRST:
        assert [tuple(each) for each in step.signatures] == [signature]
