"""Large blocks go back to the system when they are freed, however large those before them were."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from tests.waiting import HANG

# Prints by how many bytes the memory has grown once a block was freed that is smaller than one that was freed before.
# It is 16 MiB as a rule if the C library does as it likes.
_PROGRAM = """
import os
from equipoise.server.memory import return_large_blocks

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

return_large_blocks()
before = resident()
for size in (20, 16):
    block = b"x" * (size << 20)
    pin = bytearray(1 << 16)  # behind it, so that the heap cannot shrink
    del block
print(resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="this is about glibc's malloc")
def test_large_blocks_are_returned() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, check=True, timeout=HANG)
    assert int(done.stdout) < 4 << 20
