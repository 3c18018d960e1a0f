"""The tree of exceptions: what callers can tell apart, each raised by what it is for."""

from __future__ import annotations

import contextlib
import pickle
import sqlite3
from pathlib import Path

import pytest

import equipoise as eq

KINDS = (eq.InvalidInput, eq.StoreUnavailable, eq.StoreDamaged, eq.SamplerFailed, eq.Refused)


def some_store(path: Path) -> str:
    with eq.open(path, arms=["a", "b"], budget=20) as study:
        for _ in range(4):
            study.tell(study.ask(), 1.0)
    return str(path)


def test_all_are_of_one_kind_and_apart() -> None:
    assert all(kind.__mro__[1] is eq.EquipoiseError for kind in KINDS)
    assert [kind for kind in KINDS if issubclass(kind, ValueError)] == [eq.InvalidInput]


def test_a_name_in_a_traceback_is_that_in_the_package() -> None:
    for kind in (eq.EquipoiseError, *KINDS):
        assert (kind.__module__, kind) == ("equipoise", getattr(eq, kind.__name__))


@pytest.mark.parametrize(
    "error",
    [
        eq.EquipoiseError("no", reason="because"),
        eq.InvalidInput("no"),
        eq.SamplerFailed("no; 3 samples were taken before", reason="no"),
        eq.Refused("no", 409, True),
    ],
)
def test_an_error_crosses_processes(error: eq.EquipoiseError) -> None:
    found = pickle.loads(pickle.dumps(error))
    assert (type(found), str(found), vars(found)) == (type(error), str(error), vars(error))


def test_invalid_input_changes_nothing() -> None:
    with pytest.raises(eq.InvalidInput, match="budget must be"):
        eq.Study(["a", "b"], budget=-5)
    study = eq.Study(["a", "b"], budget=20, support="binary")
    ticket = study.ask()
    with pytest.raises(eq.InvalidInput):
        study.tell(ticket, 0.5)
    study.tell(ticket, 1)
    with pytest.raises(eq.InvalidInput):
        study.tell(ticket, 0)
    assert study.result().samples == 1


def test_a_store_that_cannot_be_read(tmp_path: Path) -> None:
    path = some_store(tmp_path / "study.db")
    with pytest.raises(eq.InvalidInput, match="arms must be"):
        eq.open(path, arms=["a", "c"], budget=20)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update equipoise_turn set body = x'00' where turn = 2")
    with pytest.raises(eq.StoreDamaged, match="is damaged: turn 2"):
        eq.open(path)


def test_a_store_of_another_format(tmp_path: Path) -> None:
    path = some_store(tmp_path / "study.db")
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update equipoise_study set format = 1")
    with pytest.raises(
        eq.StoreUnavailable,
        match=r"has format 1, which an earlier version of equipoise reads; this version reads format 3$",
    ):
        eq.open(path)


def test_a_sampler_that_fails() -> None:
    def broken() -> float:
        raise OSError("no line")

    with pytest.raises(
        eq.SamplerFailed, match=r"the last time: OSError: no line; no samples were taken before$|no line"
    ) as caught:
        eq.estimate({"a": broken, "b": lambda: 1.0}, budget=20)
    assert caught.value.reason == "sampling arm 'a' failed: OSError: no line"
    assert str(caught.value).startswith(f"{caught.value.reason}; ")
    assert "in broken" in caught.value.__notes__[0]


def test_invalid_input_of_a_sampler_is_a_failure_of_the_sampler() -> None:
    def wrong() -> float:
        eq.plan([], budget=10)
        return 1.0

    with pytest.raises(eq.SamplerFailed, match="failed: InvalidInput: "):
        eq.estimate({"a": wrong, "b": lambda: 1.0}, budget=20)
