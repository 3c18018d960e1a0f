"""Where a store can be, and of which format."""

from __future__ import annotations

from pathlib import Path

import pytest

import equipoise as eq
from equipoise.store import STORE_FORMAT, Log, Turn
from equipoise.store.log import connect
from tests.unit.store.living import by_hand, header


def test_places_that_are_none() -> None:
    for place in (":memory:", "", "sqlite:///", "#name"):
        with pytest.raises(
            ValueError, match=r"^store must be a file that outlives the process, such as 'study\.db', got '.*'$"
        ):
            Log(place, header())
    with pytest.raises(
        ValueError, match=r"store must be a path such as 'study\.db' or a postgresql:// URL, got mysql://\.\.\.$"
    ):
        Log("mysql://host/db", header())


@pytest.mark.parametrize("write", [False, True])
def test_a_newer_store(tmp_path: Path, write: bool) -> None:
    """Another study in the same place is refused too: its tables may be others."""
    where = str(tmp_path / "study.db")
    Log(where, header()).close()
    by_hand(where, f"update equipoise_study set format = {STORE_FORMAT + 1} where study = ?")
    for name in ("", "#other"):
        said = f"has format {STORE_FORMAT + 1}, which a later version of equipoise reads; this version reads format "
        with pytest.raises(eq.StoreUnavailable, match=f"{said}{STORE_FORMAT}$"):
            Log(f"{where}{name}", header() if write else None, write=write)


def test_a_newer_study_on_a_server(postgres: str) -> None:
    where = f"{postgres}#newer"
    Log(where, header()).close()
    by_hand(where, f"update equipoise_study set format = {STORE_FORMAT + 1} where study = ?")
    try:
        for write in (False, True):
            with pytest.raises(eq.StoreUnavailable, match=f"has format {STORE_FORMAT + 1}, which a later version"):
                Log(where, write=write)
    finally:
        connection = connect(postgres)
        connection.execute("update equipoise_study set format = ? where name = 'newer'", (STORE_FORMAT,))
        connection.close()


def test_a_study_is_numbered_past_the_remains_of_others(where: str) -> None:
    """Whoever deletes a study by hand may leave its leases, which are not those of the next one."""
    with Log(where, header()) as log:

        def work(turn: Turn) -> None:
            turn.own(0, 1000.0)
            turn.remember(b"call", turn.ask(2))

        log.turn(work)
    by_hand(where, "delete from equipoise_turn where study = ?", "delete from equipoise_study where study = ?")
    with Log(where, header()) as log:
        assert (log.replica.turns, log.turn(lambda turn: turn.called([b"call"]))) == (0, {})
        assert list(log._database.leases()) == []
