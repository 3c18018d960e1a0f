"""A store in a file: what is refused, what survives, and what a reader can do."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise import report
from equipoise.base.inputs import install_hint
from equipoise.store import Log, Turn, replay
from tests.unit.store.living import header

ROOT = Path(__file__).parents[3]

# Opens the store for writing, writes a little, says so, and waits to be killed, or until the test has ended.
WRITER = """
import os, sys
from equipoise.store import Log
from tests.unit.store.living import header
log = Log(sys.argv[1], header())
log.turn(lambda turn: turn.ask(10))
if sys.argv[2] == "fork" and os.fork() == 0:
    print(os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
if sys.argv[2] != "fork":
    print("ready", flush=True)
sys.stdin.read()
"""


def writer(where: Path, how: str = "") -> tuple[subprocess.Popen[str], str]:
    words = [sys.executable, "-c", WRITER, str(where), how]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert child.stdout is not None
    return child, child.stdout.readline().strip()


def end(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.communicate()


@pytest.fixture
def where(tmp_path: Path) -> Path:
    return tmp_path / "study.db"


def asked(where: Path, m: int = 5) -> None:
    with Log(where, header()) as log:
        log.turn(lambda turn: turn.ask(m))


@pytest.mark.skipif(os.name != "posix", reason="permissions of files are otherwise on Windows")
@pytest.mark.parametrize(("given", "wanted"), [(None, 0o600), (0o660, 0o660), (0o640, 0o640)])
def test_a_store_is_for_its_owner_alone(where: Path, given: int | None, wanted: int) -> None:
    """Unless its permissions were changed; the files beside it then have the same, whatever the umask says."""
    before = os.umask(0o022)
    try:
        if given is not None:
            asked(where)
            where.chmod(given)
        with Log(where, header()) as log:
            log.turn(lambda turn: turn.ask(1))
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in where.parent.iterdir()}
        assert modes == dict.fromkeys(("study.db", "study.db-wal", "study.db-shm", "study.db.gate"), wanted)
        os.umask(0o277)
        other = where.with_name("other.db")
        if os.geteuid() == 0:  # others could not write to what they have made
            asked(other)
            assert stat.S_IMODE(other.stat().st_mode) == 0o400
    finally:
        os.umask(before)


def test_a_store_that_was_cut_off(tmp_path: Path) -> None:
    cut = tmp_path / "cut.db"
    asked(cut, 100)
    with sqlite3.connect(cut) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    for write in (False, True):
        with pytest.raises(
            eq.EquipoiseError, match=r"cut\.db is damaged: .*; restore a copy of it or use another store$"
        ):
            Log(cut, header() if write else None, write=write)


def test_files_that_are_no_store(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("This is a letter, and long enough to have a header of its own. " * 20)
    before = text.read_bytes()
    for write in (False, True):
        with pytest.raises(ValueError, match=r"text\.db is not an equipoise store: file is not a database$"):
            Log(text, header() if write else None, write=write)
    assert text.read_bytes() == before

    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("create table letters (text)")
    connection.commit()
    connection.close()
    before = other.read_bytes()
    for write in (False, True):
        with pytest.raises(
            ValueError, match=r"other\.db is not an equipoise store: it is a database with other tables"
        ):
            Log(other, header() if write else None, write=write)
    assert other.read_bytes() == before

    for write in (False, True):
        with pytest.raises(ValueError, match=r"there is no store .*nothing\.db$"):
            Log(tmp_path / "nothing.db", write=write)
    with pytest.raises(ValueError, match=r"store must be a file, got .*, which is a folder"):
        Log(tmp_path, header())
    with pytest.raises(ValueError, match=r"cannot create .*: there is no folder"):
        Log(tmp_path / "nowhere" / "study.db", header())
    (tmp_path / "empty.db").touch()
    for write in (False, True):
        with pytest.raises(eq.EquipoiseError, match=r"empty\.db is empty, and what it may have held is lost"):
            Log(tmp_path / "empty.db", header() if write else None, write=write)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.db", "other.db", "text.db"]


def test_nothing_lies_about_after_a_clean_end(where: Path) -> None:
    asked(where)
    eq.open(where).close()
    replay(where)
    assert [path.name for path in where.parent.iterdir()] == ["study.db"]


def test_every_commit_is_synced(where: Path) -> None:
    """WAL with full sync: what survives a power cut."""
    asked(where)
    for given in (header(), None):
        with Log(where, given) as log:
            assert list(log._database.execute("pragma journal_mode")) == [("wal",)]
            assert list(log._database.execute("pragma synchronous")) == [(2,)]


def test_it_needs_nothing_but_python(where: Path) -> None:
    """Without the library that PostgreSQL needs, a file is a store, and a URL is refused in one sentence."""
    script = (
        "import sys\n"
        "sys.modules['sqlalchemy'] = sys.modules['psycopg'] = None\n"
        "import equipoise as eq\n"
        "print(eq.estimate(lambda arm: 1.0, 20, arms=['a', 'b'], store=sys.argv[1]).samples)\n"
        "try:\n    eq.estimate(lambda arm: 1.0, 20, arms=['a', 'b'], store='postgresql://u@h/d')\n"
        "except ModuleNotFoundError as error:\n    print(error)\n"
    )
    found = subprocess.run([sys.executable, "-c", script, str(where)], capture_output=True, text=True, check=True)
    assert found.stdout == (
        f"20\na store in PostgreSQL needs psycopg, which is not installed; {install_hint('postgres')}\n"
    )


def test_a_copy_of_the_file_is_a_store(where: Path) -> None:
    asked(where)
    shutil.copy(where, where.parent / "copy.db")
    assert replay(where.parent / "copy.db").study.in_flight == 5


# ---- readers


def test_a_reader_changes_nothing(where: Path) -> None:
    asked(where)
    before = where.read_bytes()
    with Log(where, write=False) as log, pytest.raises(eq.EquipoiseError, match="readonly"):
        log._database.execute("delete from equipoise_turn")
    assert where.read_bytes() == before


def test_many_readers_while_one_writes(where: Path) -> None:
    with Log(where, header()) as log:
        log.turn(lambda turn: turn.ask(1))
        readers = [Log(where, write=False) for _ in range(5)]

        def work(turn: Turn) -> None:
            turn.ask(1)
            assert {reader.look(lambda replica: replica.turns) for reader in readers} == {1}

        log.turn(work)
        assert {reader.look(lambda replica: replica.turns) for reader in readers} == {2}
        for reader in readers:
            reader.close()


def test_what_a_killed_writer_left_is_put_right_by_a_reader(where: Path) -> None:
    """A hot journal of a killed writer is rolled back by whoever comes next, a reader as well."""
    asked(where)
    # A writer that was killed while it wrote pages into the file itself, which a journal next to it can undo.
    script = (
        "import os, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('pragma journal_mode = delete')\n"
        "c.execute('pragma cache_size = 1')\n"
        "c.execute('begin immediate')\n"
        "c.executemany('insert into equipoise_turn values (1, ?, ?, 0.0, ?, ?)',"
        " [(i, b'id', b'body' * 50, b'chain') for i in range(1000, 3000)])\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(where)], check=False)
    assert (where.parent / "study.db-journal").exists()
    assert replay(where).study.in_flight == 5


def test_a_killed_writer_leaves_all_that_it_committed(where: Path) -> None:
    child, _ = writer(where)
    end(child)
    assert (where.parent / "study.db-wal").exists()
    assert replay(where).study.in_flight == 10
    asked(where)
    assert replay(where).study.in_flight == 15


def test_a_child_of_a_dead_writer_holds_nothing(where: Path) -> None:
    """As the workers of a pool do that outlive the process that was killed."""
    child, orphan = writer(where, "fork")
    end(child)
    try:
        os.kill(int(orphan), 0)  # it lives
        asked(where)
    finally:
        os.kill(int(orphan), signal.SIGKILL)


READER = """
import os, sys
from equipoise import report
report.read(sys.argv[1])  # with all that has to be imported and compiled
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for path in (sys.argv[2], os.path.dirname(sys.argv[2])):
    assert not os.access(path, os.W_OK), path
print(report.read(sys.argv[2]).result.samples, flush=True)
try:
    import equipoise as eq
    eq.open(sys.argv[2]).ask()
except eq.EquipoiseError as error:
    print(error)
"""


@pytest.mark.parametrize("killed", [False, True], ids=["closed", "killed"])
def test_a_folder_that_cannot_be_written_to(where: Path, killed: bool) -> None:
    """It can be reported all the same, also where its writer was killed and its last turns are not in the file."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        log = Log(where, header())

        def work(turn: Turn) -> None:
            ids = np.array(turn.ask(20))
            turn.tell_many(ids, np.sin(ids), np.zeros(20))

        log.turn(work)
        if not killed:
            log.close()
        for path in where.parent.glob("study.db*"):
            if not path.name.endswith(("-shm", ".gate")):
                shutil.copy(path, folder)
        log.close()
        assert (folder / "study.db-wal").exists() == killed
        for path in folder.iterdir():
            path.chmod(0o444)
        folder.chmod(0o555)
        words = [sys.executable, "-c", READER, str(where), str(folder / "study.db")]
        found = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
        folder.chmod(0o755)
    assert found.returncode == 0, found.stderr
    samples, refusal = found.stdout.splitlines()
    assert samples == "20"
    assert re.search(r"cannot (write to|use) .*study\.db: ", refusal)


# ---- disks and files


def test_a_disk_that_fills(where: Path) -> None:
    """No file of this process may grow past 1 MB, for a while: one sentence, and what was committed is there."""

    def work(turn: Turn) -> None:
        ids = np.array(turn.ask(100))
        turn.tell_many(ids, np.arange(100.0), np.zeros(100))

    with Log(where, header(budget=100_000)) as log:
        told = 0
        said = ""
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
        try:
            for _ in range(900):
                log.turn(work)
                told += 100
        except eq.EquipoiseError as error:
            said = str(error)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert re.fullmatch(
            r"cannot write to .*study\.db: .*; what was committed is saved, free some space to continue", said
        )
        assert told > 500
        assert replay(where).study.result().samples == told
        # There is room again.
        log.turn(work)
        assert log.study.result().samples == told + 100
        assert replay(where).study.result().samples == told + 100


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_removed_while_it_is_used(where: Path, replaced: bool) -> None:
    """What would be written there, nobody would find."""
    with Log(where, header()) as log:
        log.turn(lambda turn: turn.ask(1))
        for path in where.parent.iterdir():
            path.unlink()
        if replaced:
            asked(where)
        for _ in range(2):
            with pytest.raises(
                eq.EquipoiseError,
                match=r"study\.db was removed or replaced while the store was in use; end all processes",
            ):
                log.turn(lambda turn: turn.ask(1))


def test_a_file_that_is_removed_while_samples_are_taken(where: Path) -> None:
    calls = 0

    def sampler(arm: Any) -> float:
        nonlocal calls
        calls += 1
        if calls == 20:
            where.unlink()
        return float(calls % 7)

    with pytest.raises(eq.EquipoiseError, match="was removed or replaced while the store was in use"):
        eq.estimate(sampler, 100_000, arms=["a", "b"], store=where)
    assert calls < 100_000


def test_a_damaged_file(where: Path) -> None:
    """A page of zeros, of letters or of another file: one sentence, for whoever opens it."""
    asked(where, 3000)
    whole = where.read_bytes()
    for page in range(len(whole) // 4096):
        for content in (bytes(4096), b"letter, " * 512, whole[:4096]):
            where.write_bytes(whole[: 4096 * page] + content + whole[4096 * (page + 1) :])
            try:
                found: Any = replay(where).study.in_flight
            except (eq.EquipoiseError, ValueError) as error:
                found = str(error).split("study.db", 1)[1]
            assert found == 3000 or found.startswith((" is not an equipoise store", " is damaged", ": ")), found
    where.write_bytes(whole)
    assert report.read(where).result.samples == 0


@pytest.mark.skipif(sys.platform != "linux", reason="this reads /proc")
def test_a_snapshot_does_not_stay_in_memory(where: Path) -> None:
    """The file has it, and the connection no copy of it; the other snapshots are as they were."""

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    size = 40 << 20  # large enough to be a mapping of its own, which goes back to the system
    with Log(where, header()) as log:
        log.turn(lambda turn: turn.ask(1))
        log._write_snapshot()
        database, (_, small) = log._database, next(iter(log._database.snapshots()))
        before = resident()
        database.begin()
        database.keep_snapshot(2, bytes(size), kept=2)
        database.commit()
        assert resident() - before < size // 2
        assert [(turn, len(body)) for turn, body in database.snapshots()] == [(2, size), (1, len(small))]
