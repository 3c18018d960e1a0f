"""
The files of a SQLite store: whether they are those that were opened, and whether they belong together.

What was committed last is in the write-ahead log (`-wal`) alone until SQLite copies it into the database. SQLite cannot
tell whose log it is: it takes whatever has the name, and where there is none, it goes on without. So each commit leaves
a note in the gate's file, which stays there if the process is killed: which file was written to, and the last turn. The
note is not synced. It never says more than what was: it is written when the turn is on the disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from equipoise.base.errors import StoreDamaged, StoreUnavailable
from equipoise.store.gate import Gate

SUFFIXES: Final = ("", "-wal", "-shm")
# The file, the gate's file, the study, its last turn and the chain of that; and a checksum.
_NOTE: Final = struct.Struct("<QQqq8s")
_CHECK: Final = 8
# What a note says before the first turn.
NO_TURN: Final = -1


class FileWatch:
    """Whether the files at a path are still those that a connection has open."""

    def __init__(self, path: Path, suffixes: tuple[str, ...] = SUFFIXES) -> None:
        self._paths = {suffix: beside(path, suffix) if suffix else os.fspath(path) for suffix in suffixes}
        self._opened = {
            suffix: (found.st_ino, found.st_dev)
            for suffix in suffixes
            if (found := stat(self._paths[suffix])) is not None
        }

    def changed(self) -> str | None:
        """Return the end of the name of the first file that was removed or replaced; None where there is none."""
        for suffix, opened in self._opened.items():
            found = stat(self._paths[suffix])
            if found is None or (found.st_ino, found.st_dev) != opened:
                return suffix
        return None

    @property
    def main(self) -> int:
        """The inode of the database."""
        return self._opened[""][0]


class Note(NamedTuple):
    """
    What the last commit leaves for those who come after a crash.

    Attributes
    ----------
    file, gate
        The inodes of the database and of the file that has the note, which is a copy if it has another one.
    study, turn, chain
        The last turn.
    """

    file: int
    gate: int
    study: int
    turn: int
    chain: bytes

    def pack(self) -> bytes:
        """Return it as bytes."""
        body = _NOTE.pack(*self)
        return body + hashlib.blake2b(body, digest_size=_CHECK).digest()

    @staticmethod
    def unpack(packed: bytes) -> Note | None:
        """Return the note that `pack` was given; None where there is none."""
        body = packed[: _NOTE.size]
        check = hashlib.blake2b(body, digest_size=_CHECK).digest()
        if len(body) < _NOTE.size or packed[_NOTE.size : _NOTE.size + _CHECK] != check:
            return None
        return Note(*_NOTE.unpack(body))


NOTE_SIZE: Final = _NOTE.size + _CHECK


def check_together(path: Path, name: str, gate: Gate) -> None:
    """
    Refuse a database that the log beside it does not belong to, or that has lost a turn that was acknowledged.

    This opens the database so that SQLite changes none of its files: by default, it would copy the log into the
    database, and remove it.
    """
    note, noted_in = gate.note(NOTE_SIZE)
    known = Note.unpack(note)
    main, has_log = stat(os.fspath(path)), size(beside(path, "-wal")) > 0
    if known is None or known.gate != noted_in or main is None:
        return
    if main.st_ino != known.file:
        if has_log:
            raise StoreDamaged(
                f"{name} was replaced, and {name}-wal belongs to the file that was there before; end all processes "
                f"that use it, then remove {name}-wal, {name}-shm and {name}.gate, or put the other file back"
            )
        return
    # With an empty database, SQLite removes the log.
    if known.turn != NO_TURN and (main.st_size == 0 or _lacks(path, known, "mode=ro" if has_log else "immutable=1")):
        raise StoreDamaged(
            f"{name} lacks turn {known.turn:,}, which was committed: {name}-wal was removed or replaced, or {name} is "
            f"an older copy; end all processes that use it, then put back both files, or remove {name}.gate to go on "
            "without what is lost"
        )


def is_noted(watch: FileWatch, gate: Gate) -> bool:
    """Return whether there is a note about the database that a connection has open."""
    note, noted_in = gate.note(NOTE_SIZE)
    known = Note.unpack(note)
    return known is not None and (known.file, known.gate) == (watch.main, noted_in)


def _lacks(path: Path, known: Note, how: str) -> bool:
    """Return whether a turn is not in a database; not if it cannot be read, which whoever opens it will notice."""
    has = "select 1 from sqlite_master where name = 'equipoise_turn'"
    with (
        contextlib.suppress(sqlite3.Error, UnicodeDecodeError),
        contextlib.closing(sqlite3.connect(f"{path.as_uri()}?{how}", uri=True)) as connection,
    ):
        if not connection.execute(has).fetchall():
            return True
        sql = "select chain from equipoise_turn where study = ? and turn = ?"
        return connection.execute(sql, (known.study, known.turn)).fetchall() != [(known.chain,)]
    return False


@contextlib.contextmanager
def kept(path: Path) -> Iterator[None]:
    """Let a connection be closed as if it was not the last one, which would write to the database and end the log."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(sqlite3.Error):
            other = stack.enter_context(contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)))
            other.execute("select count(*) from sqlite_master").fetchall()
        yield


def beside(path: Path, suffix: str) -> str:
    """Return the path of another file of a store: SQLite has it next to the file that a link leads to."""
    return os.path.realpath(path) + suffix


def stat(path: str) -> os.stat_result | None:
    """Return what the system says of a file; None where there is none."""
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StoreUnavailable(f"cannot use {path}: {error.strerror}") from error


def size(path: str) -> int:
    """Return how many bytes a file has; 0 where there is none."""
    found = stat(path)
    return 0 if found is None else found.st_size
