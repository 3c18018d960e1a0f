"""
Tuples of numbers in kernels: read from memory, written to it, and combined number by number.

A compiled tuple has a fixed length and no loop over it, so each of these functions is written out for a length. They
run on the CPU and as device functions. `loader`, `storer` and `accumulator` are for the CPU alone: they write out the
instructions, so that there is no function to compile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import TypingError, types
from numba.extending import intrinsic

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


def loader(n: int) -> Any:
    """Return `read` as `reader` does, of a flat array or of a pointer; places must not be negative."""

    @intrinsic
    def read(typing: Any, memory: Any, at: Any, step: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            found = [builder.load(place) for place in _pointers(context, builder, signature, args, n)]
            zero = ir.Constant(ir.DoubleType(), 0.0)
            return context.make_tuple(builder, signature.return_type, found or [zero])

        return types.UniTuple(types.float64, max(n, 1))(memory, types.intp, types.intp), code

    return read


def storer(n: int) -> Any:
    """Return `write` as `writer` does, in the way of `loader`."""

    @intrinsic
    def write(typing: Any, memory: Any, at: Any, step: Any, values: Any) -> Any:
        _check_length(n, values)

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            for place, value in zip(*_pairs(context, builder, signature, args, n), strict=True):
                builder.store(value, place)
            return context.get_dummy_value()

        return types.void(memory, types.intp, types.intp, values), code

    return write


def accumulator(n: int) -> Any:
    """Return `add(memory, at, step, values)`, which adds a tuple of n numbers to those that `read` finds."""

    @intrinsic
    def add(typing: Any, memory: Any, at: Any, step: Any, values: Any) -> Any:
        _check_length(n, values)

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            for place, value in zip(*_pairs(context, builder, signature, args, n), strict=True):
                builder.store(builder.fadd(builder.load(place), value), place)
            return context.get_dummy_value()

        return types.void(memory, types.intp, types.intp, values), code

    return add


def _check_length(n: int, values: Any) -> None:
    """Refuse anything but a tuple of n numbers: there is no room for more."""
    if not isinstance(values, types.BaseTuple) or max(len(values), 1) != max(n, 1):
        raise TypingError(f"it returns {values}, not a tuple of {n} numbers")


def _pointers(context: Any, builder: Any, signature: Any, args: Any, n: int) -> list[Any]:
    """Return where n numbers are, the first at args[1] and each args[2] after the other; inside an intrinsic."""
    memory, at, step = args[:3]
    if isinstance(signature.args[0], types.Array):
        memory = context.make_array(signature.args[0])(context, builder, memory).data
    found = []
    for _ in range(n):
        found.append(builder.gep(memory, [at], inbounds=True))
        at = builder.add(at, step)
    return found


def _pairs(context: Any, builder: Any, signature: Any, args: Any, n: int) -> tuple[list[Any], list[Any]]:
    """Return where n numbers are, and those of the tuple args[3] as floats; inside an intrinsic."""
    numbers = [
        context.cast(builder, builder.extract_value(args[3], i), signature.args[3][i], types.float64) for i in range(n)
    ]
    return _pointers(context, builder, signature, args, n), numbers


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
