"""
Tuples of numbers in kernels: read from memory, written to it, and combined number by number.

A compiled tuple has a fixed length and no loop over it, so each of these functions is written out for a length. They
run on the CPU and as device functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Compile = Callable[[Any], Any]


def reader(n: int, compiled: Compile, zero: Any = 0.0) -> Any:
    """
    Return `read(memory, at, step)`: the n numbers in memory[at], memory[at + step], ...

    With n = 0 it is the tuple with a single 0 that strategies get in place of an empty one.
    """
    values = [f"memory[at_{i}]" for i in range(n)] or ["zero"]
    return compiled(_written("read", "memory, at_0, step", [*_places(n), f"return {_tuple(values)}"], zero=zero))


def writer(n: int, compiled: Compile) -> Any:
    """Return `write(memory, at, step, values)`, which stores a tuple of n numbers where `read` finds them."""
    lines = [*_places(n), *(f"memory[at_{i}] = values[{i}]" for i in range(n))]
    return compiled(_written("write", "memory, at_0, step, values", lines))


def adder(n: int, compiled: Compile) -> Any:
    """Return `add(a, b)`: the sums of two tuples of n numbers, one or more."""
    return compiled(_written("add", "a, b", [f"return {_tuple([f'a[{i}] + b[{i}]' for i in range(max(n, 1))])}"]))


def selector(n: int, select: Any, compiled: Compile) -> Any:
    """Return `pick(condition, a, b)`: a where the condition holds, else b, for tuples of n numbers, by selects."""
    values = [f"select(condition, a[{i}], b[{i}])" for i in range(max(n, 1))]
    return compiled(_written("pick", "condition, a, b", [f"return {_tuple(values)}"], select=select))


def _places(n: int) -> list[str]:
    """Return the lines that name the places of n numbers, one step after the other."""
    return [f"at_{i} = at_{i - 1} + step" for i in range(1, n)]


def _tuple(values: Sequence[str]) -> str:
    return f"({', '.join(values)},)"


def _written(name: str, parameters: str, lines: Sequence[str], **given: Any) -> Any:
    """Return the function with these lines, in which the given names are known."""
    scope = {"__name__": __name__, **given}
    exec(f"def {name}({parameters}):\n    " + "\n    ".join(lines or ["pass"]), scope)
    return scope[name]
