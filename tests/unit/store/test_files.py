"""A database and the log beside it: refused where they do not belong together, and used where they do."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import equipoise as eq
from equipoise import report
from equipoise.store import Log, Turn, replay
from equipoise.store.files import Note
from tests.unit.store.living import header

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this kills a forked writer"),
]
BEFORE, AFTER = 5, 6


def sample(log: Log, many: int) -> None:
    """Take some turns of one sample each."""

    def work(turn: Turn) -> None:
        (ticket,) = turn.ask(1)
        turn.tell(ticket, float(ticket % 7))

    for _ in range(many):
        log.turn(work)


def killed(where: Path, many: int, halfway: Callable[[], object] = lambda: None) -> None:
    """Let a process take samples and be killed; do something after half of them."""
    child = os.fork()
    if child == 0:
        log = Log(where, header())
        sample(log, many // 2)
        halfway()
        sample(log, many - many // 2)
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL


def beside(where: Path, suffix: str) -> Path:
    return where.with_name(where.name + suffix)


@pytest.fixture
def where(tmp_path: Path) -> Path:
    """A store with some samples that was closed, and some more of a process that was killed, with copies on the way."""
    (tmp_path / "store").mkdir()
    where, aside = tmp_path / "store" / "study.db", tmp_path / "aside"
    aside.mkdir()
    with Log(where, header()) as log:
        sample(log, BEFORE)
    shutil.copy(where, aside / "backup.db")
    killed(where, AFTER, lambda: shutil.copy(beside(where, "-wal"), aside / "older-wal"))
    with Log(aside / "other.db", header()) as log:
        sample(log, BEFORE)
    killed(aside / "other.db", AFTER)
    return where


def remove_the_log(where: Path, aside: Path) -> None:
    beside(where, "-wal").unlink()


def remove_all_but_the_gate(where: Path, aside: Path) -> None:
    for suffix in ("-wal", "-shm"):
        beside(where, suffix).unlink()


def empty_the_log(where: Path, aside: Path) -> None:
    beside(where, "-wal").write_bytes(b"")


def cut_the_log(where: Path, aside: Path) -> None:
    path = beside(where, "-wal")
    os.truncate(path, path.stat().st_size - 5000)


def cut_half_of_the_log(where: Path, aside: Path) -> None:
    path = beside(where, "-wal")
    os.truncate(path, path.stat().st_size // 2)


def put_an_older_log(where: Path, aside: Path) -> None:
    shutil.copy(aside / "older-wal", beside(where, "-wal"))


def move_an_older_log(where: Path, aside: Path) -> None:
    (aside / "older-wal").rename(beside(where, "-wal"))


def put_the_log_of_another(where: Path, aside: Path) -> None:
    shutil.copy(aside / "other.db-wal", beside(where, "-wal"))


def move_another_store(where: Path, aside: Path) -> None:
    (aside / "other.db").rename(where)


def move_a_backup(where: Path, aside: Path) -> None:
    (aside / "backup.db").rename(where)


def put_a_backup_and_remove_the_log(where: Path, aside: Path) -> None:
    shutil.copy(aside / "backup.db", where)
    beside(where, "-wal").unlink()


def empty_the_store(where: Path, aside: Path) -> None:
    os.truncate(where, 0)


MISPAIRED = (
    remove_the_log, remove_all_but_the_gate, empty_the_log, cut_the_log, cut_half_of_the_log, put_an_older_log,
    move_an_older_log, put_the_log_of_another, move_another_store, move_a_backup,
    put_a_backup_and_remove_the_log, empty_the_store,
)  # fmt: skip

LOOKS: dict[str, Callable[[Path], object]] = {
    "continue": lambda where: Log(where, header()),
    "open": eq.open,
    "report": report.read,
    "replay": replay,
}


def test_a_backup_that_is_copied_over_a_store_is_what_the_log_began_with(where: Path, tmp_path: Path) -> None:
    """The file has the same bytes as before, and with the log all samples."""
    shutil.copy(tmp_path / "aside" / "backup.db", where)
    assert report.read(where).result.samples == BEFORE + AFTER


@pytest.mark.parametrize("way", MISPAIRED, ids=lambda way: way.__name__)
def test_files_that_do_not_belong_together_are_refused(where: Path, way: Callable[[Path, Path], None]) -> None:
    """By everybody and again and again; the files stay as they are, and with the right ones the study goes on."""
    whole = where.parent.with_name("whole")
    shutil.copytree(where.parent, whole)
    way(where, where.parent.parent / "aside")
    files = {path: path.read_bytes() for path in (where, beside(where, "-wal")) if path.exists()}
    for name, look in [*LOOKS.items()] * 2:
        with pytest.raises(eq.EquipoiseError, match=r"study\.db (was replaced|lacks turn 11|is empty)") as said:
            look(where)
        assert "\n" not in str(said.value), name
        assert {path: path.read_bytes() for path in files} == files, name
    for suffix in ("", "-wal"):
        shutil.copy(beside(whole / where.name, suffix), beside(where, suffix))
    if way is not move_a_backup and way is not move_another_store:  # those left another file
        beside(where, "-shm").unlink(missing_ok=True)
        assert report.read(where).result.samples == BEFORE + AFTER
        with Log(where, header()) as log:
            sample(log, 1)
            assert log.study.ledger.samples == BEFORE + AFTER + 1
        assert os.listdir(where.parent) == [where.name]


def test_files_that_belong_together_are_used(where: Path, tmp_path: Path) -> None:
    """Copied with the gate's file or without, moved, under a link, without what SQLite makes again."""
    for name, left_out in (("all", ()), ("two", ("-shm", ".gate")), ("no gate", (".gate",)), ("no index", ("-shm",))):
        copy = tmp_path / name / "other name.db"
        copy.parent.mkdir()
        for suffix in ("", "-wal", "-shm", ".gate"):
            if suffix not in left_out:
                shutil.copy(beside(where, suffix), beside(copy, suffix))
        assert report.read(copy).result.samples == BEFORE + AFTER
        with Log(copy, header()) as log:
            sample(log, 1)
        assert replay(copy).study.ledger.samples == BEFORE + AFTER + 1
    moved = where.parent.rename(tmp_path / "moved")
    (tmp_path / "link.db").symlink_to(moved / where.name)
    with Log(tmp_path / "link.db", header()) as log:
        sample(log, 1)
    assert replay(tmp_path / "link.db").study.ledger.samples == BEFORE + AFTER + 1
    assert os.listdir(moved) == [where.name]


def test_a_reader_beside_a_writer_leaves_nothing(tmp_path: Path) -> None:
    with Log(tmp_path / "study.db", header()) as log:
        sample(log, 1)
        assert replay(tmp_path / "study.db").study.ledger.samples == 1
    assert os.listdir(tmp_path) == ["study.db"]


def test_a_backup_is_restored(where: Path, tmp_path: Path) -> None:
    """As the page on services says: without the log of the file that was there."""
    for suffix in ("", "-wal", "-shm"):
        beside(where, suffix).unlink()
    (tmp_path / "aside" / "backup.db").rename(where)
    assert report.read(where).result.samples == BEFORE
    killed(where, 3)
    with Log(where, header()) as log:
        assert log.study.ledger.samples == BEFORE + 3


def test_what_is_left_is_used_without_the_gate(where: Path) -> None:
    beside(where, "-wal").unlink()
    with pytest.raises(eq.EquipoiseError, match=r"or remove .*study\.db\.gate to go on without what is lost"):
        Log(where, header())
    beside(where, ".gate").unlink()
    with Log(where, header()) as log:
        assert log.study.ledger.samples == BEFORE


def test_a_second_writer_is_refused_where_the_first_has_lost_its_log(where: Path) -> None:
    """It would begin another log; the first one copies its own into the file, and all of it is there."""
    with Log(where, header()) as log:
        sample(log, 5)
        beside(where, "-wal").unlink()
        with pytest.raises(eq.EquipoiseError, match="lacks turn 16, which was committed"):
            Log(where, header())
        with pytest.raises(eq.EquipoiseError, match=r"db-wal was removed .*; what was committed is saved; end all"):
            sample(log, 1)
        assert replay(where).study.ledger.samples == BEFORE + AFTER + 5
    assert replay(where).study.ledger.samples == BEFORE + AFTER + 5


def test_another_process_goes_on_in_files_that_this_one_does_not_have(where: Path) -> None:
    """Without the index that it shares with others, whoever closes a store would remove what they have written."""
    log = Log(where, header())
    sample(log, 1)
    beside(where, "-shm").unlink()
    killed(where, 10)
    with pytest.raises(eq.EquipoiseError, match=r"db-shm was removed .*; what was committed is saved; end all"):
        sample(log, 1)
    log.close()
    assert replay(where).study.ledger.samples == BEFORE + AFTER + 11


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
@pytest.mark.parametrize("again", [False, True], ids=["removed", "replaced"])
def test_no_answer_comes_from_files_that_are_gone(where: Path, suffix: str, again: bool) -> None:
    study, reader = eq.open(where), Log(where, write=False)
    study.tell(study.ask(), 1.0)
    path = beside(where, suffix)
    content = path.read_bytes()
    path.unlink()
    if again:
        path.write_bytes(content)
    looks: list[Callable[[], object]] = [
        study.result, lambda: study.remaining, lambda: study.in_flight, study.ask, lambda: study.retire("calm"),
        lambda: reader.look(lambda replica: replica.turns),
    ]  # fmt: skip
    for look in looks:
        with pytest.raises(eq.EquipoiseError, match=rf"study\.db{suffix} was removed or replaced while the store"):
            look()
    study.close()
    reader.close()


def test_a_deleted_study_is_not_missed(where: Path) -> None:
    with Log(where, header()) as log:
        log._database.delete()
        beside(where, "-wal").unlink()
    with pytest.raises(eq.EquipoiseError, match="there is no study 'study'"):
        eq.open(where)


def test_another_study_of_the_file_is_missed(where: Path) -> None:
    child = os.fork()
    if child == 0:
        sample(Log(f"{where}#another", header()), 3)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    remove_the_log(where, where)
    with pytest.raises(eq.EquipoiseError, match="lacks turn 3, which was committed"):
        eq.open(where)


# ---- empty files


def test_an_empty_file_is_refused(where: Path) -> None:
    with closing(sqlite3.connect(where)) as connection:
        connection.execute("select count(*) from sqlite_master").fetchall()
    beside(where, ".gate").unlink()
    for size in (len(where.read_bytes()), 0):
        os.truncate(where, size)
    for look in LOOKS.values():
        with pytest.raises(eq.EquipoiseError, match=r"study\.db is empty, and what it may have held is lost: restore"):
            look(where)
        assert os.listdir(where.parent) == [where.name]
    where.unlink()
    with Log(where, header()) as log:
        assert log.study.ledger.samples == 0


def test_a_store_whose_creation_was_cut_short_is_begun(tmp_path: Path) -> None:
    """A killed process may have made the gate and an empty file."""
    where = tmp_path / "study.db"
    where.touch()
    beside(where, ".gate").touch()
    with pytest.raises(eq.EquipoiseError, match="there is no study 'study'"):
        report.read(where)
    with Log(where, header()) as log:
        sample(log, 1)
    assert replay(where).study.ledger.samples == 1


# ---- the note


def test_a_note_that_is_cut_or_changed_is_none() -> None:
    note = Note(1, 2, 3, 4, b"a chain.")
    packed = note.pack()
    assert Note.unpack(packed + b"more") == note
    for at in range(len(packed)):
        assert Note.unpack(packed[:at]) is None
        assert Note.unpack(packed[:at] + bytes([packed[at] ^ 1]) + packed[at + 1 :]) is None
