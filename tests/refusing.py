"""
System calls that fail with an error of the test's choice, in one thread and those it starts: a seccomp filter.

The kernel itself refuses them, whoever makes them: Python, SQLite or any other library. A filter cannot be taken off,
and ends with its thread.
"""

from __future__ import annotations

import ctypes
import fcntl
import platform
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

import pytest

from tests.waiting import HANG

T = TypeVar("T")

# What a filter compares: the number of `fcntl`, and the architecture for which it is the number.
_FCNTL: Final = {"x86_64": (72, 0xC000003E), "aarch64": (25, 0xC00000B7)}
# The commands of `fcntl` that take or give back a record lock: those of processes, and those of open file descriptions.
OF_PROCESS: Final = (fcntl.F_SETLK, fcntl.F_SETLKW)
OF_DESCRIPTION: Final = (37, 38)

possible = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in _FCNTL, reason="this needs seccomp on Linux"
)


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("k", ctypes.c_uint))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Instruction)))


def refuse_locks(error: int, commands: Sequence[int] = OF_PROCESS + OF_DESCRIPTION) -> None:
    """Let these commands of `fcntl` fail with this errno from now on, in this thread and those it will start."""
    number, architecture = _FCNTL[platform.machine()]
    load, equal, finish = 0x20, 0x15, 0x06  # ld [k], jeq k, ret k
    allow, refusal = 0x7FFF0000, 0x00050000 | error
    comparisons = [(equal, len(commands) - j, 0, command) for j, command in enumerate(commands)]
    lines = [
        (load, 0, 0, 4),  # the architecture
        (equal, 0, len(commands) + 3, architecture),
        (load, 0, 0, 0),  # the number of the call
        (equal, 0, len(commands) + 1, number),
        (load, 0, 0, 24),  # the lower half of the second argument
        *comparisons,
        (finish, 0, 0, allow),
        (finish, 0, 0, refusal),
    ]
    instructions = (_Instruction * len(lines))(*(_Instruction(*line) for line in lines))
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)
    program = _Program(len(lines), instructions)
    # No new privileges, without which a filter needs some; and the filter.
    for words in ((38, 1, 0, 0, 0), (22, 2, ctypes.addressof(program), 0, 0)):
        if library.prctl(*words):
            pytest.skip(f"this system allows no seccomp filter: error {ctypes.get_errno()}")


def where_locks_fail(do: Callable[[], T], error: int, commands: Sequence[int] = OF_PROCESS + OF_DESCRIPTION) -> T:
    """Return what `do` returns in a thread in which these commands of `fcntl` fail."""

    def work() -> T:
        refuse_locks(error, commands)
        return do()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(HANG)
