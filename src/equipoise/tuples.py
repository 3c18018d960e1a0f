"""
Tuples of numbers in kernels: read from memory, written to it, and combined number by number.

A compiled tuple has a fixed length and no loop over it, so each of these functions is built for a length, from the one
for a number less. They run on the CPU and as device functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Compile = Callable[[Any], Any]


def reader(n: int, compiled: Compile, zero: Any = 0.0) -> Any:
    """
    Return `read(memory, at, step)`: the n numbers in memory[at], memory[at + step], ...

    With n = 0 it is the tuple with a single 0 that strategies get in place of an empty one.
    """
    if n == 0:

        @compiled
        def none(memory: Any, at: Any, step: Any) -> Any:
            return (zero,)

        return none
    if n == 1:

        @compiled
        def last(memory: Any, at: Any, step: Any) -> Any:
            return (memory[at],)

        return last
    rest = reader(n - 1, compiled)

    @compiled
    def read(memory: Any, at: Any, step: Any) -> Any:
        return (memory[at],) + rest(memory, at + step, step)  # noqa: RUF005

    return read


def writer(n: int, compiled: Compile, first: int = 0) -> Any:
    """Return `write(memory, at, step, values)`, which stores a tuple of n numbers where `read` finds them."""
    if first >= n:

        @compiled
        def none(memory: Any, at: Any, step: Any, values: Any) -> None:
            pass

        return none
    rest = writer(n, compiled, first + 1)

    @compiled
    def write(memory: Any, at: Any, step: Any, values: Any) -> None:
        memory[at] = values[first]
        rest(memory, at + step, step, values)

    return write


def adder(n: int, compiled: Compile, first: int = 0) -> Any:
    """Return `add(a, b)`: the sums of two tuples of n numbers, one or more."""
    if first + 1 >= n:

        @compiled
        def last(a: Any, b: Any) -> Any:
            return (a[first] + b[first],)

        return last
    rest = adder(n, compiled, first + 1)

    @compiled
    def add(a: Any, b: Any) -> Any:
        return (a[first] + b[first],) + rest(a, b)  # noqa: RUF005

    return add


def selector(n: int, select: Any, compiled: Compile, first: int = 0) -> Any:
    """Return `pick(condition, a, b)`: a where the condition holds, else b, for tuples of n numbers, by selects."""
    if first + 1 >= n:

        @compiled
        def last(condition: Any, a: Any, b: Any) -> Any:
            return (select(condition, a[first], b[first]),)

        return last
    rest = selector(n, select, compiled, first + 1)

    @compiled
    def pick(condition: Any, a: Any, b: Any) -> Any:
        return (select(condition, a[first], b[first]),) + rest(condition, a, b)  # noqa: RUF005

    return pick
