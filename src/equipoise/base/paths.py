"""Paths that users name: what is there, before it is opened, and texts that can be read."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import shown

FOLDER: Final = "a folder"
# What is not a file, by how its mode is told.
_OTHERS: Final = (
    (stat.S_ISDIR, FOLDER),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
# What a system says of a path that it could not give to a file.
_IMPOSSIBLE: Final = (errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL, getattr(errno, "EILSEQ", errno.EINVAL))


@contextmanager
def opened(what: str, path: Path, most: float = float("inf")) -> Iterator[TextIO]:
    """
    Open a text file in UTF-8, with or without a byte order mark; line ends are left as they are.

    Refused is what has no end, such as a device, and what waits for somebody, such as a pipe. A file without a size is
    empty, or made by the kernel as it is read, which may do either.

    Parameters
    ----------
    what, path
        What it holds, for messages, and where it is.
    most
        How many bytes it may have.
    """
    found = kind_of(what, path)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    if found:
        raise InvalidInput(f"{what} must be a file, got {path}, which is {found}")
    try:
        size = path.stat().st_size
        if not size:
            raise InvalidInput(f"cannot read {path}: it is empty")
        if size > most:
            raise InvalidInput(f"{what} must have at most {most:,} bytes, got {path}, which has {size:,}")
        with path.open(newline="", encoding="utf-8-sig") as file:
            yield file
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


def kind_of(what: str, path: Path) -> str | None:
    """
    Return what is at a path: "a folder", "a device" and so on, empty for a file, and None where there is nothing.

    A path that no file can have is refused.
    """
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:  # a null character, or half of a surrogate pair
        raise InvalidInput(f"{what} must be the path of a file, got {shown(str(path))}") from None
    except OSError as error:
        if error.errno not in _IMPOSSIBLE:
            raise
        raise InvalidInput(f"{what} must be the path of a file, got {shown(str(path))}: {error.strerror}") from None
    return next((words for is_one, words in _OTHERS if is_one(mode)), "")
