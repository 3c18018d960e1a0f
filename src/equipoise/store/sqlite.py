"""A store in a SQLite file, for all processes of one machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Final

from equipoise.base.errors import EquipoiseError, InvalidInput, StoreUnavailable
from equipoise.base.inputs import printable
from equipoise.store import files
from equipoise.store.database import Database, Head, Row, Values
from equipoise.store.files import NO_TURN, FileWatch, Note
from equipoise.store.gate import LOCKS_NEEDED, Gate

# A row of a hundred samples fits on a page several times; of those of 4096 bytes, half would be left empty.
_PAGE: Final = 16384
_WAL: Final = 1 << 22
# Seconds that SQLite tries for a lock of its own: who opens a file to read it is kept waiting only for moments.
_PATIENCE: Final = 30.0
_READERS_PATIENCE: Final = 10.0

# What it may mean that a system call of SQLite has failed, by the names of its error codes.
_FULL: Final = {"SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE"}
_UNLOCKABLE: Final = {
    "SQLITE_IOERR_LOCK", "SQLITE_IOERR_UNLOCK", "SQLITE_IOERR_RDLOCK", "SQLITE_IOERR_CHECKRESERVEDLOCK",
    "SQLITE_IOERR_SHMLOCK", "SQLITE_IOERR_BLOCKED", "SQLITE_PERM",
}  # fmt: skip
_APART: Final = {
    "SQLITE_IOERR_SHORT_READ", "SQLITE_IOERR_FSTAT", "SQLITE_IOERR_SHMOPEN", "SQLITE_IOERR_SHMMAP",
    "SQLITE_IOERR_DELETE_NOENT", "SQLITE_READONLY_DBMOVED",
}  # fmt: skip


class SQLite(Database):
    """
    One file in WAL mode, so that others can read while one writes; every commit is synced to the disk.

    Parameters
    ----------
    path
        The file.
    study_name
        The name of the study in it.
    write, create
        Whether to write, and to create the file if there is none. A reader changes nothing, and can read a file in a
        folder that it cannot write to. A file that is created can be read and written by its owner alone.
    """

    table_options = "without rowid"
    clock = "((julianday('now') - 2440587.5) * 86400.0)"

    def __init__(self, path: Path, study_name: str, write: bool, create: bool = False) -> None:
        super().__init__(str(path), study_name)
        self._path = path.absolute()
        self._gate: Gate | None = None
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._watch: FileWatch | None = None
        self._saved: Note | None = None
        self._keep_gate = False
        folder = files.stat(str(self._path.parent))
        if create and not (folder is not None and S_ISDIR(folder.st_mode)):
            raise InvalidInput(f"cannot create {self.name}: there is no folder {self._path.parent}")
        if not create and files.stat(str(self._path)) is None:
            raise InvalidInput(f"there is no store {self.name}")
        known = files.stat(os.fspath(path)) if write else None
        if known is not None and known.st_nlink > 1:
            raise StoreUnavailable(
                f"{self.name} has {known.st_nlink} names (hard links), and SQLite keeps what was written last next to "
                "one of them: remove the others, or make a copy"
            )
        try:
            if write:
                self._open(create)
            else:
                self._check_began(files.stat(files.beside(self._path, ".gate")) is not None)
                self._connection = self._reader()
        except BaseException:
            self.close()
            raise

    def _open(self, create: bool) -> None:
        empty, gate = self._is_empty(), Gate.of(self._path)
        begun = files.stat(str(gate.path)) is not None  # looked at later: who creates a store enters the gate first
        self._gate = gate
        # One process at a time: SQLite does not wait where two of them put a file in WAL mode.
        gate.enter(self)
        try:
            if empty:
                self._check_began(begun)
            self._check_together(gate)
            with self._explained(), self._begun():
                if create:
                    # An empty file is an empty database; SQLite gives those beside it the same permissions. It may hold
                    # secrets, and single answers: who shares it with others gives it other permissions.
                    with contextlib.suppress(OSError):
                        os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
                self._connection = self._connect("rwc" if create else "rw")
                if all(name.startswith("equipoise_") for name in self.tables()):
                    if self.execute("pragma journal_mode") != [("wal",)]:
                        self.execute(f"pragma page_size = {_PAGE}")  # of a new file
                        self.execute("pragma journal_mode = wal")
                    self.execute(f"pragma wal_autocheckpoint = {_WAL // _PAGE}")
                    self.execute("pragma synchronous = full")
                    self.tables()  # reads, and so all files are there
            self._watch = FileWatch(self._path)
            if not files.is_noted(self._watch, gate):
                self._leave_note(Note(0, 0, 0, NO_TURN, b""))
        finally:
            gate.exit(self)

    @contextlib.contextmanager
    def _begun(self) -> Iterator[None]:
        """Leave no empty file where a store could not be created; where that fails too, a gate says why it is there."""
        try:
            yield
        except BaseException:
            keep, self._keep_gate = self._keep_gate, True
            with contextlib.suppress(OSError, EquipoiseError):
                if self._is_empty():
                    if hasattr(self, "_connection"):
                        self._connection.close()
                        del self._connection
                    self._path.unlink()
                self._keep_gate = keep
            raise

    def _is_empty(self) -> bool:
        found = files.stat(str(self._path))
        return found is not None and S_ISREG(found.st_mode) and found.st_size == 0

    def _check_began(self, begun: bool) -> None:
        """Refuse an empty file, unless a process was killed that created a store there, and left a gate and no log."""
        if self._is_empty() and not (begun and files.size(files.beside(self._path, "-wal")) == 0):
            raise StoreUnavailable(
                f"{self.name} is empty, and what it may have held is lost: restore a copy of it, or remove it to begin "
                "a new study"
            )

    def _check_together(self, gate: Gate) -> None:
        try:
            files.check_together(self._path, self.name, gate)
        except EquipoiseError:
            self._keep_gate = True
            raise

    def _connect(self, mode: str, path: Path | None = None, patience: float = _PATIENCE) -> sqlite3.Connection:
        # Autocommit, because sqlite3 would otherwise begin transactions at statements of its own choosing.
        uri = f"{(path or self._path).as_uri()}?mode={mode}"
        return sqlite3.connect(uri, uri=True, timeout=patience, isolation_level=None, check_same_thread=False)

    def _reader(self) -> sqlite3.Connection:
        gate = Gate.of(self._path)
        try:
            self._check_together(gate)
        finally:
            gate.leave()
        # For writing too if possible, so that SQLite can repair the file after its writer was killed.
        for mode in ("rw", "ro"):
            try:
                connection = self._connect(mode, patience=_READERS_PATIENCE)
                connection.execute("pragma query_only = on")
                connection.execute("select count(*) from sqlite_master").fetchall()
                self._watch = FileWatch(self._path)
                return connection
            except sqlite3.OperationalError as error:
                if _is_busy(error):  # a copy of what somebody writes may be of two states
                    raise self._words(error) from error
                continue
            except (sqlite3.Error, UnicodeDecodeError):
                break
        # In a folder that cannot be written to, SQLite may not be able to read what was written last: a copy is.
        self._watch = FileWatch(self._path, ("",))
        with self._explained():
            self._copy = tempfile.TemporaryDirectory(prefix="equipoise-")
            try:
                for suffix in ("", "-wal"):
                    if files.stat(source := files.beside(self._path, suffix)) is not None:
                        shutil.copyfile(source, Path(self._copy.name) / f"study.db{suffix}")
            except OSError as error:
                raise StoreUnavailable(f"cannot read {self.name}: {error.strerror}") from error
            connection = self._connect("rw", Path(self._copy.name) / "study.db")
            connection.execute("pragma query_only = on")
            return connection

    def execute(self, sql: str, values: Values = ()) -> Sequence[Values]:
        with self._explained():
            return self._connection.execute(sql, values).fetchall()

    def execute_many(self, sql: str, rows: Sequence[Values]) -> None:
        with self._explained():
            self._connection.executemany(sql, rows)

    def tables(self) -> set[str]:
        return {name for (name,) in self.execute("select name from sqlite_master where type = 'table'")}

    def check_foreign(self, tables: set[str]) -> None:
        if tables:
            raise InvalidInput(f"{self.name} is not an equipoise store: it is a database with other tables")

    def delete(self) -> None:
        self.execute("pragma secure_delete = on")  # overwrites what is deleted
        super().delete()
        # Earlier versions of pages are in the WAL until it is emptied; somebody who reads now may hold that up.
        with contextlib.suppress(EquipoiseError):
            self.execute("pragma wal_checkpoint(truncate)")

    def _drop_rows(self) -> None:
        super()._drop_rows()
        self._saved = Note(0, 0, 0, NO_TURN, b"")

    def keep_snapshot(self, turn: int, body: bytes, kept: int) -> None:
        super().keep_snapshot(turn, body, kept)
        # The connection keeps its statements, and each of them what was bound to it last: a copy of the whole body. The
        # row is there, so that this binds something else and changes nothing.
        super().keep_snapshot(turn, b"", kept)

    def head(self) -> Head:
        if not self._connection.in_transaction:  # they were looked at before it began
            self._check_files()
        return super().head()

    def _write_row(self, study: int, row: Row) -> None:
        super()._write_row(study, row)
        self._saved = Note(0, 0, study, row.turn, row.chain)

    def begin(self) -> Head:
        self.begin_creating()
        try:
            return self.head()
        except BaseException:
            self.rollback()
            raise

    def begin_creating(self) -> None:
        assert self._gate is not None
        try:
            self._saved = None
            self._gate.enter(self)
            self._check_files()
            self.execute("begin immediate")
        except BaseException:
            self._leave_gate()
            raise

    def commit(self) -> None:
        # If this fails, the transaction goes on, and `rollback` follows.
        self.execute("commit")
        self._check_files()  # who is told that it is saved must find it
        if self._saved is not None:
            self._leave_note(self._saved)
        self._leave_gate()

    def _leave_note(self, note: Note) -> None:
        assert self._gate is not None
        assert self._watch is not None
        self._gate.write_note(note._replace(file=self._watch.main, gate=self._gate.inode).pack())

    def rollback(self) -> None:
        try:
            if self._connection.in_transaction:
                self.execute("rollback")
        finally:
            self._leave_gate()

    def _leave_gate(self) -> None:
        if self._gate is not None:
            self._gate.exit(self)

    def _check_files(self) -> None:
        """Refuse to go on in a file that was removed or replaced: nobody would see what is written there."""
        changed = None if self._watch is None else self._watch.changed()
        if changed is None:
            return
        saved = "; what was committed is saved" if self._keeps_all(changed) else ""
        raise StoreUnavailable(
            f"{self.name}{changed} was removed or replaced while the store was in use{saved}; end all processes that "
            "use a store before you move, replace or remove its files"
        )

    def _keeps_all(self, changed: str) -> bool:
        """Return whether the file has all that was committed, copied from a removed log if need be."""
        if self._gate is None or changed != "-wal":
            return changed == "-shm"
        if self._connection.in_transaction or files.stat(files.beside(self._path, "-wal")) is not None:
            return False
        with contextlib.suppress(EquipoiseError):
            ((busy, frames, copied),) = self.execute("pragma wal_checkpoint(passive)")
            return not busy and frames == copied
        return False

    @property
    def can_write(self) -> bool:
        return self._gate is not None

    def hold(self, owner: int) -> None:
        assert self._gate is not None
        self._gate.hold(owner)

    def release(self, owner: int) -> None:
        assert self._gate is not None
        self._gate.release(owner)

    def alive(self, owner: int) -> bool:
        return self._gate is None or self._gate.alive(owner)

    def close(self) -> None:
        changed, others = None, False
        with contextlib.suppress(EquipoiseError):
            changed = None if self._watch is None else self._watch.changed()
            # Others may have gone on in files that this connection does not have, and it would remove them.
            others = changed is not None and files.stat(files.beside(self._path, "-wal")) is not None
        if hasattr(self, "_connection"):
            with contextlib.suppress(EquipoiseError):
                self.rollback()
            with files.kept(self._path) if others else contextlib.nullcontext():
                self._connection.close()
        if self._gate is not None:
            self._gate.leave(keep=changed is not None or self._keep_gate)
            self._gate = None
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._words(error) from error
        except (OverflowError, UnicodeDecodeError) as error:  # of a damaged row
            raise self.damaged(str(error)) from None

    def _words(self, error: sqlite3.Error) -> Exception:
        # It may quote a damaged schema, of several lines.
        message = printable(" ".join(str(error).split()))[:200]
        code = getattr(error, "sqlite_errorname", "")
        if code in _FULL:
            return StoreUnavailable(
                f"cannot write to {self.name}: {message}; what was committed is saved, free some space to continue"
            )
        if code in _UNLOCKABLE:
            return StoreUnavailable(f"cannot lock {self.name}: {message} ({code}); {LOCKS_NEEDED}")
        if _is_busy(error):
            return StoreUnavailable(
                f"cannot lock {self.name}: another program keeps it locked, or its file system has no locks that work"
            )
        if code in _APART:
            return StoreUnavailable(
                f"cannot use {self.name}: {message} ({code}): a file of this store was removed, renamed, replaced or "
                "cut off while in use; end all processes that use it, and keep the database, -wal and -shm together"
            )
        if code.startswith("SQLITE_IOERR"):
            return StoreUnavailable(
                f"cannot use {self.name}: {message} ({code}); what was committed is saved, check the disk"
            )
        if "malformed" in message or "corrupt" in message:
            return self.damaged(message)
        if "not a database" in message:
            return InvalidInput(f"{self.name} is not an equipoise store: {message}")
        return StoreUnavailable(f"cannot use {self.name}: {message}")


def _is_busy(error: sqlite3.Error) -> bool:
    """Whether SQLite waited in vain for a lock; also where the system said that it has none left."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
