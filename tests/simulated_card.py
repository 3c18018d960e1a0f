"""A program on Numba's simulator of a card, in a process of its own, as a process has either that or a card."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any


def reported(script: str) -> dict[str, Any]:
    """Run a program that prints one JSON object, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found
