"""Wait for what another process does, with a limit that only a hang reaches."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

# Seconds. Whatever a test waits for comes in a fraction of one on an idle machine.
HANG: Final = 300.0


def until(condition: Callable[[], object], what: str) -> None:
    """Return once `condition` holds, and fail where it never does."""
    last = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < last, f"waited {HANG:g} seconds in vain until {what}"
        time.sleep(0.01)


def pause(seconds: float) -> None:
    """Let others work for a while. Nothing may depend on how far they come."""
    time.sleep(seconds)
