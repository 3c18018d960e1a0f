"""
The files of compiled code, which only their user can write, each with a digest.

Whatever is read here is run. So a folder or a file that another user owns or can write is not used, and a file begins
with a digest of its content under the key that it is filed by: damaged code, and code of something else under this
name, are found out before anything looks into them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import time
import uuid
from pathlib import Path
from typing import Final

from equipoise.base.inputs import printable

# Compiled code that nobody has used for so long is thrown away; its last use is known to the day.
KEPT_DAYS = 90
_DAY: Final = 24 * 3600.0

_DIGEST: Final = 32
_OURS: Final = (".nbc", ".tmp")

# Windows has no owners and modes of this kind: a folder there has the permissions of the one it is in.
_OWNERS: Final = hasattr(os, "geteuid")
# A link is not followed, and a pipe not waited for.
_PLAIN: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def cache_directory() -> Path:
    """Where compiled code is kept: EQUIPOISE_CACHE_DIR, or `equipoise` in the user's cache folder."""
    chosen = os.environ.get("EQUIPOISE_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "equipoise"


def can_keep() -> bool:
    """Return whether compiled code can be kept on disk; makes the folder for it."""
    with contextlib.suppress(Exception):
        folder = _folder()
        _make(folder)
        return _usable(folder) and os.access(folder, os.R_OK | os.W_OK | os.X_OK)
    return False


def anything_kept() -> bool:
    """Return whether there is compiled code on disk, of whatever make."""
    with contextlib.suppress(Exception):
        return _usable(_folder()) and any(_folder().glob("*.nbc"))
    return False


def exists(name: str) -> bool:
    """Return whether there is a file of this name in the folder."""
    return _usable(_folder()) and (_folder() / name).exists()


def read(name: str, key: str) -> bytes | None:
    """Return what `write` filed by this name and key; None where it did not, or anything has changed since."""
    path = _folder() / name
    if not _usable(path.parent):
        return None
    with open(path, "rb", buffering=0, opener=lambda name, flags: os.open(name, flags | _PLAIN)) as file:
        found = os.fstat(file.fileno())
        if not (stat.S_ISREG(found.st_mode) and _private(found)):
            return None
        content = file.read()
    digest, content = content[:_DIGEST], content[_DIGEST:]
    if digest != _digest(key, content):
        return None
    if time.time() - found.st_mtime > _DAY:
        with contextlib.suppress(OSError):
            os.utime(path)
    return content


def write(name: str, key: str, content: bytes) -> None:
    """File content by a name and a key, all at once: a reader finds all of it or nothing."""
    path = _folder() / name
    _make(path.parent)
    if not _usable(path.parent):
        return
    partial = path.with_suffix(f".{uuid.uuid4().hex}.tmp")
    try:
        with open(partial, "xb", opener=lambda name, flags: os.open(name, flags | _PLAIN, 0o600)) as file:
            file.write(_digest(key, content))
            file.write(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    _prune_once(path.parent)


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.blake2b(content, key=hashlib.sha256(key.encode()).digest(), digest_size=_DIGEST).digest()


def _folder() -> Path:
    return cache_directory().absolute()


def _make(folder: Path) -> None:
    """Make the folder and those that it is in, for this user alone; root makes none in that of another user."""
    if os.path.lexists(folder) or folder.parent == folder:  # such as a drive that is not there
        return
    _make(folder.parent)
    # As under sudo with the home of the caller, who could not use the folder then.
    if _OWNERS and os.geteuid() == 0 and folder.parent.stat().st_uid != 0:
        _refuse_once(folder.parent, "belongs to another user")
        return
    with contextlib.suppress(FileExistsError):  # another process was quicker
        folder.mkdir(mode=0o700)


def _usable(folder: Path) -> bool:
    """Return whether a folder is there and this user's own; one that others can look into is closed to them."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(found.st_mode):
        return _refuse_once(folder, "is not a folder")
    if _OWNERS and found.st_uid != os.geteuid():
        return _refuse_once(folder, "belongs to another user")
    if _OWNERS and found.st_mode & 0o077:
        _close(folder)
        if not _private(folder.lstat()):
            return _refuse_once(folder, "can be written by others")
    return True


def _private(found: os.stat_result) -> bool:
    """Return whether a file or a folder is this user's own, and nobody else can write it."""
    return not _OWNERS or (found.st_uid == os.geteuid() and not found.st_mode & 0o022)


def _close(folder: Path) -> None:
    """Close a folder to others if it has nothing but compiled code in it, and is not one for everybody as /tmp is."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            with os.scandir(descriptor) as entries:
                alone = all(entry.name.endswith(_OURS) for entry in entries)
            if alone and not os.fstat(descriptor).st_mode & stat.S_ISVTX:
                os.fchmod(descriptor, 0o700)
        finally:
            os.close(descriptor)


_refused = False


def _refuse_once(folder: Path, why: str) -> bool:
    """Return False; the first time in a process, say why a folder is not used."""
    global _refused
    if not _refused and sys.stderr is not None:
        _refused = True
        advice = "so compiled code is not kept; set EQUIPOISE_CACHE_DIR to a folder of your own"
        print(f"equipoise: {printable(str(folder))} {why}, {advice}", file=sys.stderr)
    return False


_pruned = False


def _prune_once(folder: Path) -> None:
    """The first time in a process that something is filed, which took a compilation anyway: throw old files away."""
    global _pruned
    if not _pruned:
        _pruned = True
        prune(folder)


def prune(folder: Path) -> None:
    """Remove compiled code that was not used for KEPT_DAYS, and what writers that died left behind."""
    oldest = time.time() - KEPT_DAYS * _DAY
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            # Another process may have been quicker.
            with contextlib.suppress(OSError):
                if entry.name.endswith(_OURS) and entry.stat(follow_symlinks=False).st_mtime < oldest:
                    os.unlink(entry.path)
