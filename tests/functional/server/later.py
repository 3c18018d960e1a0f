"""The command line of a later version: one whose strategy decides otherwise, or whose store has another format."""

from __future__ import annotations

import sys

from equipoise import cli
from equipoise.store import database
from equipoise.strategies import EvenSplit, Numbers


def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
    """Let arms of large means have more samples."""
    return 1.0 + mean * mean


if __name__ == "__main__":
    if sys.argv.pop(1) == "format":
        database.STORE_FORMAT += 1  # type: ignore[misc]
    else:
        EvenSplit.variance = staticmethod(variance)
    cli.main()
