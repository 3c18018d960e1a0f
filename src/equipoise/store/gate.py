"""
A fair gate before a SQLite file: writers pass one at a time, and nobody passes twice while another waits.

Of writers that try `begin immediate` until it works, one may try in vain for seconds. So there are two locks, on a file
next to the database: who wants to pass takes the first, then waits for the second, and gives the first back once it has
the second. Who comes out and wants to pass again finds the first lock taken by the one who waits.

The locks are record locks of an open file description (`F_OFD_SETLK`) on Linux, and POSIX record locks, which belong
to the process, elsewhere. Both kinds end with the process and exclude each other. Neither excludes threads of one
process, which two locks in memory do. Locks of a process have two faults: to the system, two processes that hold a lock
in one thread and wait for the other's in another thread are a deadlock (EDEADLK); and all of them end as soon as any
code in the process closes the file. A description is shared with a forked child, which therefore closes it at once.

The file is open once for all users of a path. A third range of it has a byte for each owner of tickets (`hold`), by
which others see whether it is alive.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from equipoise.base.errors import EquipoiseError, StoreUnavailable

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl
    import struct

# The bytes of the file: the two locks of the gate, a note, and from here on the owners.
_FIRST, _SECOND, _NOTE, _OWNERS = 0, 1, 64, 1024
_OWNER_BITS = 48
# What is said where a lock cannot be taken.
LOCKS_NEEDED = "a SQLite store needs a file system with record locks: a local disk, or use a postgresql:// URL"
# Seconds between two tries where the system does not wait for a lock.
_PAUSE = 0.001


class Gate:
    """The gate before one file, for all threads of this process; made by `Gate.of`."""

    _known: ClassVar[dict[str, Gate]] = {}
    # Whoever opens or closes a file of a gate holds it, and whoever forks: a child knows all files that it inherits.
    _guard: ClassVar[threading.RLock] = threading.RLock()

    def __init__(self, database: str) -> None:
        self._database = database
        self.path = Path(f"{database}.gate")
        self._file = -1
        # Open for reading alone, until the last user leaves: closing it earlier would end the locks of the process.
        self._reading = -1
        self._users = 0
        self._keep = False
        self._reset()

    def _reset(self) -> None:
        self._owners: set[int] = set()
        # The second can be given back only by the thread that has it, so that whoever was interrupted can try.
        self._first, self._second = threading.Lock(), threading.RLock()
        self._inside: object | None = None
        self._thread = 0

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
            if self._known.get(self._database) is self:
                del self._known[self._database]
            if self._file >= 0 and not self._keep:
                with contextlib.suppress(OSError):
                    # Of the whole file, so that nobody has any lock of it.
                    if _lock(self._file, _FIRST, 0, wait=False) and self._is_at_path(self._file):
                        self.path.unlink()
            self._close()
            self._close_reading()

    # ---- passing

    def enter(self, user: object) -> None:
        """Wait for the turn of a user."""
        if self._thread == threading.get_ident():
            raise EquipoiseError(f"a turn of {self._database} cannot begin within another one")
        try:
            with self._first:
                self._second.acquire()
            self._inside, self._thread = user, threading.get_ident()
            with self._explained():
                self._pass()
        except BaseException:
            if self._inside is user:  # perhaps interrupted as soon as it had the first lock
                with contextlib.suppress(OSError):
                    self._unlock(_FIRST)
            self.exit(user)
            with contextlib.suppress(RuntimeError):  # it was interrupted before it was inside
                self._second.release()
            raise

    def _pass(self) -> None:
        while True:
            self._open()
            _lock(self._file, _FIRST)
            try:
                _lock(self._file, _SECOND)
            finally:
                self._unlock(_FIRST)
            # Its last user may have removed the file meanwhile, and a lock on a removed file excludes nobody.
            if self._is_at_path(self._file):
                return
            self._close()

    def exit(self, user: object) -> None:
        """Let the next one in; does nothing where this user is not inside."""
        if self._inside is user:
            with contextlib.suppress(OSError):
                self._unlock(_SECOND)
            self._inside, self._thread = None, 0
            self._second.release()

    # ---- who is alive

    def hold(self, owner: int) -> None:
        """Show that an owner of tickets is alive, until the process ends or `release`."""
        self.enter(owner)
        try:
            with self._explained():
                _lock(self._file, _byte(owner))
            self._owners.add(owner)
        finally:
            self.exit(owner)

    def release(self, owner: int) -> None:
        """Say that an owner is gone."""
        self._owners.discard(owner)
        with contextlib.suppress(OSError):
            self._unlock(_byte(owner))

    def alive(self, owner: int) -> bool:
        """Return whether an owner is alive; to be called inside the gate."""
        if owner in self._owners:
            return True
        with self._explained():
            free = _lock(self._file, _byte(owner), wait=False)
            if free:
                self._unlock(_byte(owner))
        return not free

    # ---- the note

    def note(self, size: int) -> tuple[bytes, int]:
        """Return the note of the last commit, empty where there is none, and the inode of the file that has it."""
        with self._guard:
            try:
                if self._file < 0 and not self._is_at_path(self._reading):
                    self._close_reading()
                    self._reading = os.open(self.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
                file = self._reading if self._file < 0 else self._file
                return _read_at(file, size, _NOTE), os.fstat(file).st_ino
            except (FileNotFoundError, PermissionError):  # there is none, or it is for others
                return b"", 0
            except OSError as error:
                raise StoreUnavailable(f"cannot use {self._database}: {error.strerror}") from error

    def write_note(self, note: bytes) -> None:
        """Leave a note; to be called inside the gate. Where the disk is full, the one before stays."""
        with contextlib.suppress(OSError):
            _write_at(self._file, note, _NOTE)

    @property
    def inode(self) -> int:
        """The inode of the file, 0 where the system does not say; to be called inside the gate."""
        try:
            return os.fstat(self._file).st_ino
        except OSError:
            return 0

    # ---- the file

    def _open(self) -> None:
        with self._guard:
            if self._file >= 0:
                return
            try:
                self._file = _opened(self.path, self._database)
            except OSError as error:
                raise StoreUnavailable(f"cannot write to {self._database}: {error.strerror}") from error
            try:
                for owner in self._owners:
                    _lock(self._file, _byte(owner))
            except BaseException:
                self._close()
                raise

    def _close(self) -> None:
        with self._guard:
            self._file = _closed(self._file)

    def _close_reading(self) -> None:
        with self._guard:
            self._reading = _closed(self._reading)

    def _unlock(self, at: int) -> None:
        """Give a lock back; where that fails, all of them by closing the file: who passes next takes the owners'."""
        if self._file >= 0:
            try:
                _unlock(self._file, at)
            except OSError:
                self._close()
                raise

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreUnavailable(f"cannot lock {self._database}: {error.strerror}; {LOCKS_NEEDED}") from error

    def _is_at_path(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), os.stat(self.path))
        except OSError:
            return False

    @classmethod
    def _forget_all(cls) -> None:
        """
        Start without gates in a forked child: what it inherited belongs to its parent.

        Closing the files here ends no lock of the parent, and as nobody else has them, its end does.
        """
        cls._guard = threading.RLock()
        for gate in cls._known.values():
            gate._close()
            gate._close_reading()
            gate._reset()
        cls._known.clear()


def _opened(path: Path, database: str) -> int:
    """Open the file of a gate, which can be used by those who can use the database."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    if sys.platform != "win32":
        with contextlib.suppress(OSError):  # there is none yet, or the file is not ours
            known, own = os.stat(database), os.fstat(file)
            if own.st_mode & 0o777 != known.st_mode & 0o666:
                os.fchmod(file, known.st_mode & 0o666)
            if os.geteuid() == 0 and (own.st_uid, own.st_gid) != (known.st_uid, known.st_gid):
                os.fchown(file, known.st_uid, known.st_gid)
    return file


def _closed(file: int) -> int:
    """Close a file if it is open, which it is no longer where the system says that it failed; return -1."""
    if file >= 0:
        with contextlib.suppress(OSError):
            os.close(file)
    return -1


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
                time.sleep(_PAUSE)

    def _unlock(file: int, at: int) -> None:
        os.lseek(file, at, os.SEEK_SET)
        with contextlib.suppress(OSError):
            msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    _read_at, _write_at = os.pread, os.pwrite
    # Of Linux, by number: Python has no names for them where it was built for an older system than it runs on.
    _OFD_SETLK, _OFD_SETLKW = 37, 38

    def _set(file: int, kind: int, at: int, length: int, wait: bool) -> None:
        if sys.platform == "linux":
            flock = struct.pack("hhqqi4x", kind, os.SEEK_SET, at, length, 0)
            try:
                fcntl.fcntl(file, _OFD_SETLKW if wait else _OFD_SETLK, flock)
                return
            except OSError as error:
                if error.errno != errno.EINVAL:  # said by kernels and file systems that have only the other kind
                    raise
        manner = 0 if wait else fcntl.LOCK_NB
        fcntl.lockf(file, fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_EX | manner, length, at)

    def _lock(file: int, at: int, length: int = 1, wait: bool = True) -> bool:
        """Lock some bytes of a file (0: all from there on); False where they are taken and `wait` is false."""
        try:
            _set(file, fcntl.F_WRLCK, at, length, wait)
            return True
        except OSError as error:
            if not wait and error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            if not wait or error.errno != errno.EDEADLK:
                raise
        # No thread that is inside a gate waits for another one, so that no two wait for each other.
        while not _lock(file, at, length, wait=False):
            time.sleep(_PAUSE)
        return True

    def _unlock(file: int, at: int) -> None:
        _set(file, fcntl.F_UNLCK, at, 1, False)

    os.register_at_fork(
        before=lambda: Gate._guard.acquire(),
        after_in_parent=lambda: Gate._guard.release(),
        after_in_child=Gate._forget_all,
    )
