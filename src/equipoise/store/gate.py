"""
A fair gate before a SQLite file: writers pass one at a time, and nobody passes twice while another waits.

Of writers that try `begin immediate` until it works, one may try in vain for seconds. So there are two locks, on a file
next to the database: who wants to pass takes the first, then waits for the second, and gives the first back once it has
the second. Who comes out and wants to pass again finds the first lock taken by the one who waits.

The locks are POSIX record locks: they end with their process, and a forked child does not inherit them. They do not
exclude threads of one process, which two locks of the same kind in memory do; and all of them would end if the process
closed the file, which therefore is open once for all users of a path. A third range of the file has a byte for each
owner of tickets (`hold`), by which others see whether it is alive.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from pathlib import Path
from typing import ClassVar

from equipoise.errors import EquipoiseError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# The bytes of the file: the two locks of the gate, a note, and from here on the owners.
_FIRST, _SECOND, _NOTE, _OWNERS = 0, 1, 64, 1024
_OWNER_BITS = 48


class Gate:
    """The gate before one file, for all threads of this process; made by `Gate.of`."""

    _known: ClassVar[dict[str, Gate]] = {}
    _guard: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, database: str) -> None:
        self._database = database
        self.path = Path(f"{database}.gate")
        self._file = -1
        self._users = 0
        self._keep = False
        self._owners: set[int] = set()
        # The second can be given back only by the thread that has it, so that whoever was interrupted can try.
        self._first, self._second = threading.Lock(), threading.RLock()
        self._inside: object | None = None
        self._thread = 0
        # Open for reading alone, until the last user leaves: closing it earlier would end the locks.
        self._reading = -1

    @classmethod
    def of(cls, path: Path) -> Gate:
        """Return the gate before a file, for one more user, who calls `leave` in the end."""
        key = os.path.realpath(path)
        with cls._guard:
            gate = cls._known.setdefault(key, Gate(key))
            gate._users += 1
            return gate

    def leave(self, keep: bool = False) -> None:
        """
        Say that one user less needs the gate; the last one removes its file, unless another process uses it.

        With `keep`, the file stays, for the note that it holds.
        """
        with self._guard:
            self._keep |= keep
            self._users -= 1
            if self._users > 0:
                return
            self._known.pop(self._database, None)
            if self._reading >= 0:
                os.close(self._reading)
                self._reading = -1
            if self._file < 0:
                return
            # Of the whole file, so that nobody has any lock of it.
            if not self._keep and _lock(self._file, _FIRST, 0, wait=False):
                with contextlib.suppress(OSError):
                    if self._is_at_path(self._file):
                        self.path.unlink()
            os.close(self._file)
            self._file = -1

    # ---- passing

    def enter(self, user: object) -> None:
        """Wait for the turn of a user."""
        if self._thread == threading.get_ident():
            raise EquipoiseError(f"a turn of {self._database} cannot begin within another one")
        try:
            with self._first:
                self._second.acquire()
            self._inside, self._thread = user, threading.get_ident()
            while True:
                self._open()
                _lock(self._file, _FIRST)
                try:
                    _lock(self._file, _SECOND)
                finally:
                    _unlock(self._file, _FIRST)
                # Its last user may have removed the file meanwhile, and a lock on a removed file excludes nobody.
                if self._is_at_path(self._file):
                    return
                self._reopen()
        except BaseException:
            self.exit(user)
            with contextlib.suppress(RuntimeError):  # it was interrupted before it was inside
                self._second.release()
            raise

    def exit(self, user: object) -> None:
        """Let the next one in; does nothing where this user is not inside."""
        if self._inside is user:
            if self._file >= 0:
                _unlock(self._file, _SECOND)
            self._inside, self._thread = None, 0
            self._second.release()

    # ---- who is alive

    def hold(self, owner: int) -> None:
        """Show that an owner of tickets is alive, until the process ends or `release`."""
        self.enter(owner)
        try:
            _lock(self._file, _byte(owner))
            self._owners.add(owner)
        finally:
            self.exit(owner)

    def release(self, owner: int) -> None:
        """Say that an owner is gone."""
        self._owners.discard(owner)
        if self._file >= 0:
            _unlock(self._file, _byte(owner))

    def alive(self, owner: int) -> bool:
        """Return whether an owner is alive; to be called inside the gate."""
        if owner in self._owners:
            return True
        free = _lock(self._file, _byte(owner), wait=False)
        if free:
            _unlock(self._file, _byte(owner))
        return not free

    # ---- the note

    def note(self, size: int) -> tuple[bytes, int]:
        """Return the note of the last commit, empty where there is none, and the inode of the file that has it."""
        with self._guard, contextlib.suppress(OSError):
            if self._file < 0 and not self._is_at_path(self._reading):
                if self._reading >= 0:
                    os.close(self._reading)
                    self._reading = -1
                self._reading = os.open(self.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            file = self._reading if self._file < 0 else self._file
            return _read_at(file, size, _NOTE), os.fstat(file).st_ino
        return b"", 0

    def write_note(self, note: bytes) -> None:
        """Leave a note; to be called inside the gate. Where the disk is full, the one before stays."""
        with contextlib.suppress(OSError):
            _write_at(self._file, note, _NOTE)

    @property
    def inode(self) -> int:
        """The inode of the file; to be called inside the gate."""
        return os.fstat(self._file).st_ino

    # ---- the file

    def _open(self) -> None:
        if self._file >= 0:
            return
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        except OSError as error:
            raise EquipoiseError(f"cannot write to {self._database}: {error.strerror}") from error
        for owner in self._owners:
            _lock(self._file, _byte(owner))

    def _reopen(self) -> None:
        os.close(self._file)
        self._file = -1

    def _is_at_path(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), os.stat(self.path))
        except OSError:
            return False

    @classmethod
    def _forget_all(cls) -> None:
        """Start without gates in a forked child: what it inherited belongs to its parent."""
        cls._known.clear()
        cls._guard = threading.Lock()


def _byte(owner: int) -> int:
    return _OWNERS + (owner & ((1 << _OWNER_BITS) - 1))


if sys.platform == "win32":

    def _read_at(file: int, size: int, at: int) -> bytes:
        os.lseek(file, at, os.SEEK_SET)
        return os.read(file, size)

    def _write_at(file: int, what: bytes, at: int) -> None:
        os.lseek(file, at, os.SEEK_SET)
        os.write(file, what)

    def _lock(file: int, at: int, length: int = 1, wait: bool = True) -> bool:
        while True:
            os.lseek(file, at, os.SEEK_SET)
            try:
                msvcrt.locking(file, msvcrt.LK_NBLCK, max(length, 1))
                return True
            except OSError:
                if not wait:
                    return False
                time.sleep(0.001)

    def _unlock(file: int, at: int) -> None:
        os.lseek(file, at, os.SEEK_SET)
        with contextlib.suppress(OSError):
            msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    _read_at, _write_at = os.pread, os.pwrite

    def _lock(file: int, at: int, length: int = 1, wait: bool = True) -> bool:
        """Lock some bytes of a file (0: all from there on); False where they are taken and `wait` is false."""
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), length, at)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _unlock(file: int, at: int) -> None:
        with contextlib.suppress(OSError):
            fcntl.lockf(file, fcntl.LOCK_UN, 1, at)

    os.register_at_fork(after_in_child=Gate._forget_all)
