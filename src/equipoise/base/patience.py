"""For how long to repeat what fails because something else cannot be reached."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Patience:
    """For how many seconds to repeat a connection or a request that fails: soon, then less and less often."""

    seconds: float = 60.0
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
