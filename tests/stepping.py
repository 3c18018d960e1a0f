"""Limit a computation by the lines of the package that it runs, so that one that never ends fails on any machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import equipoise

_PACKAGE = str(Path(equipoise.__file__).parent)
T = TypeVar("T")


def within(steps: int, compute: Callable[[], T]) -> T:
    """Return what a function computes, and fail where that takes more lines of the package's Python than `steps`."""
    left = steps

    def line(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal left
        left -= event == "line"
        assert left > 0, f"not done after {steps:,} lines, at {frame.f_code.co_filename}:{frame.f_lineno}"
        return line

    def call(frame: FrameType, event: str, argument: Any) -> Any:
        return line if frame.f_code.co_filename.startswith(_PACKAGE) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        return compute()
    finally:
        sys.settrace(before)
