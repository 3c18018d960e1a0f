"""
The functions of the CPU on a card: `on_device` takes their Python code and binds the names in it to device functions.

So every formula stands once. With single precision asked for, the numbers in the code become single too.
"""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from equipoise import compiled
from equipoise.numeric import floats

# Whether numba-cuda is installed and found no libraries of CUDA.
no_toolkit = False
try:
    from numba import cuda as cuda
except ImportError:
    cuda = None
except RuntimeError:
    cuda, no_toolkit = None, True


def _in_simulator() -> bool:
    import numba

    return bool(numba.config.ENABLE_CUDASIM)


def kept(kernel: Any) -> Any:
    """Return a kernel whose machine code is kept on disk, as that of the CPU is; Numba's simulator has none."""
    return kernel if _in_simulator() else compiled.kept(kernel)


@contextmanager
def launching() -> Iterator[None]:
    """Launch kernels without a warning: few runs leave most of a card idle, which is nobody's mistake."""
    with warnings.catch_warnings():
        # The class of the warning has changed its place, and its words may begin with a colour.
        warnings.filterwarnings("ignore", ".*Grid size")
        yield


@lru_cache(maxsize=1)
def _primitives() -> dict[int, Any]:
    """Return what replaces the CPU's intrinsics on the device, by their identity."""
    if _in_simulator():
        names = {
            "fma": lambda a, b, c: float(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))),
            "as_float": lambda bits: float(np.uint64(bits).view(np.float64)),
            "as_bits": lambda x: np.float64(x).view(np.uint64),
            "select": lambda condition, a, b: a if condition else b,
        }
    else:
        from numba.cuda import libdevice

        @cuda.jit(device=True)
        def as_float(bits: Any) -> Any:
            return libdevice.longlong_as_double(np.int64(bits))

        @cuda.jit(device=True)
        def as_bits(x: Any) -> Any:
            return np.uint64(libdevice.double_as_longlong(x))

        @cuda.jit(device=True)
        def select(condition: Any, a: Any, b: Any) -> Any:
            return a if condition else b

        @cuda.jit(device=True)
        def fma(a: Any, b: Any, c: Any) -> Any:
            return libdevice.fma(a, b, c)

        names = {"fma": fma, "as_float": as_float, "as_bits": as_bits, "select": select}
    return {id(getattr(floats, name)): function for name, function in names.items()}


@lru_cache(maxsize=1)
def selects() -> Any:
    """Return `select(condition, a, b)` as a device function without a branch."""
    if _in_simulator():
        # Numba's simulator knows names of `cuda` in the module of a kernel alone.
        return lambda condition, a, b: a if condition else b

    @cuda.jit(device=True)
    def select(condition: Any, a: Any, b: Any) -> Any:
        return cuda.selp(condition, a, b)

    return select


def on_device(function: Any, single: bool = False) -> Any:
    """
    Return a function, and every function that it calls, as a device function.

    With `single`, numbers in its text and those that it refers to are single precision, as one double would make all
    arithmetic around it double.
    """
    known: dict[int, Any] = {}

    def convert(thing: Any) -> Any:
        if single and thing in (floats.log, floats.exp):
            # Ours are made of the bits of a double.
            return cuda.jit(device=True, fastmath=True)(_log32 if thing is floats.log else _exp32)
        if id(thing) in _primitives():
            return _primitives()[id(thing)]
        plain = getattr(thing, "py_func", thing)
        if not isinstance(plain, types.FunctionType):
            return thing
        if id(plain) not in known:
            plain_code = _singled(plain) if single else plain.__code__
            scope = {name: value for name, value in plain.__globals__.items() if name in _names(plain_code)}
            cells = dict(
                zip(plain.__code__.co_freevars, (c.cell_contents for c in plain.__closure__ or ()), strict=True)
            )
            # A name that is free in the function is a global of its copy.
            scope |= cells | {"__builtins__": __builtins__, "_single": np.float32}
            copy = types.FunctionType(_without_cells(plain_code), scope, plain.__name__, plain.__defaults__)
            known[id(plain)] = None
            for name, value in list(scope.items()):
                if hasattr(value, "py_func") or id(value) in _primitives():
                    scope[name] = convert(value)
                elif single and type(value) is float:
                    # A finite constant stays finite: fast mathematics may assume that there are no infinities.
                    largest = float(np.finfo(np.float32).max) if math.isfinite(value) else math.inf
                    scope[name] = np.float32(min(max(value, -largest), largest))
            known[id(plain)] = cuda.jit(device=True, fastmath=single)(copy)
        return known[id(plain)]

    return convert(function)


def _names(code: types.CodeType) -> set[str]:
    return set(code.co_names) | set(code.co_freevars)


def _without_cells(code: types.CodeType) -> types.CodeType:
    if code.co_freevars:
        raise ValueError(f"{code.co_name} must take what it refers to as parameters to run on a GPU")
    return code


class _Singles(ast.NodeTransformer):
    """Make numbers single precision, except for those that index."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) not in (int, float):
            return node
        call = ast.Call(ast.Name("_single", ast.Load()), [node], [])
        return ast.copy_location(call, node)


def _singled(function: types.FunctionType) -> types.CodeType:
    """Return the code of a function with its numbers in single precision."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    [definition] = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    definition.decorator_list, definition.returns = [], None
    for argument in definition.args.args:
        argument.annotation = None
    module = ast.fix_missing_locations(_Singles().visit(ast.Module([definition], [])))
    scope: dict[str, Any] = {}
    exec(compile(module, function.__code__.co_filename, "exec"), {}, scope)
    code: types.CodeType = scope[definition.name].__code__
    return code


def _log32(x: Any) -> Any:
    """Return the natural logarithm in single precision."""
    return math.log(x)


def _exp32(x: Any) -> Any:
    """Return the exponential in single precision."""
    return math.exp(x)
