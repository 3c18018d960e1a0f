"""Memory of a process that runs for months."""

from __future__ import annotations

import ctypes
import sys
from typing import Final

# mallopt's number for the size from which a block is a mapping of its own, and that size in bytes.
_M_MMAP_THRESHOLD: Final = -3
_LARGE: Final = 1 << 18


def return_large_blocks() -> None:
    """
    Have the C library return large blocks to the system as soon as they are freed, where it is glibc.

    By default it raises the size from which it does so to that of the largest block freed so far, up to 32 MiB. Smaller
    ones then come from heaps that shrink only from their ends, so that what arrays that a study has outgrown and
    snapshots of its state have left behind stays there.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE)
