"""Newton's method, for the ends of intervals of a log-capital that is convex in the mean."""

from __future__ import annotations

from typing import Any

from equipoise import compiled

# Newton's method needs about ten steps.
_STEPS = 100


def edge_of(capital: Any) -> Any:
    """
    Return a compiled function that finds where a log-capital falls to a limit.

    `capital(row, m)` is the log-capital against a mean of m, and its slope. `edge(row, m, way, limit)` goes from m
    upwards if `way` is 1 and downwards if it is -1. m is returned as it is if the log-capital is low enough there, or
    rises that way. The function is convex, so that steps never pass the edge: if they were cut short, the interval
    would be too wide, never too narrow.
    """

    def edge(row: Any, m: float, way: float, limit: float) -> float:
        for _ in range(_STEPS):
            value, slope = capital(row, m)
            if value <= limit:
                break
            nearer = m + (limit - value) / slope
            if way * (nearer - m) <= 0:
                break
            m = nearer
        return m

    return compiled.jit(edge)
