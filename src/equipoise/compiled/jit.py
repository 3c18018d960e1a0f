"""Compile plain functions with Numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

from equipoise.compiled.cache import Cache, PartCache
from equipoise.compiled.compiler import OPTIONS, Compiler, PartCompiler

Function = TypeVar("Function", bound=Callable[..., Any])


def jit(function: Function, *, nogil: bool = False) -> Function:
    """
    Compile `function` on first use, from disk when the very same code was compiled before.

    It is inlined wherever other compiled code calls it. With `nogil` other threads run while it does.
    """
    return compiled(function, nogil=nogil, forceinline=True)


def borrowing(function: Function) -> Function:
    """
    Compile a function that only borrows the arrays it is given: it makes none and keeps none.

    References to arrays are not counted, as the counting is most of a short call. Other compiled code calls it.
    """
    return compiled(function, _nrt=False)


def internal(function: Function) -> Function:
    """Compile a `borrowing` function that only other compiled code calls, where it is inlined."""
    return compiled(function, _nrt=False, no_cpython_wrapper=True, forceinline=True)


def inlined(function: Function) -> Function:
    """Write a function out wherever compiled code calls it, as if it stood there; it is never compiled by itself."""
    return numba.njit(inline="always", _nrt=False, **OPTIONS)(function)


def callable_compiled(function: Function) -> Function:
    """Let compiled code call a plain function by its name, where it is inlined; in Python it stays as it is."""
    dispatcher: Any = jit(function)
    # What Numba, and a card (`lab.cuda_device`), take the function for.
    vars(function).update(_numba_type_=dispatcher._type, py_func=function, dispatcher=dispatcher)
    return function


def compiled(function: Function, **options: bool) -> Function:
    """Compile a function, for Python as a whole and for other compiled code as a part of that."""
    options = OPTIONS | options
    dispatcher: Any = numba.njit(pipeline_class=Compiler, **options)(function)
    dispatcher._cache = Cache(function, options)
    # What other compiled code finds where it calls the function.
    dispatcher.part = part = _part(function, options | {"no_cpython_wrapper": True})
    dispatcher.get_call_template, dispatcher.get_overload = part.get_call_template, part.get_overload
    return dispatcher


def _part(function: Function, options: dict[str, Any]) -> Any:
    """Compile a function as far as other compiled code needs it."""
    part = numba.njit(pipeline_class=PartCompiler, **options)(function)
    part._cache = PartCache(function, options | {"part": True})
    return part
