"""Compiled functions by their addresses: kernels call them without being compiled for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import sigutils

from equipoise.compiled.jit import compiled

_KEPT: list[Any] = []


def address(function: Callable[..., Any], signature: Any, borrows: bool = False) -> int:
    """
    Return the address of `function`, compiled, for kernels that take it as a number and call it with `call_address`.

    The function stays compiled for as long as the process lives. With `borrows` it only borrows arrays, as one that is
    compiled by `borrowing` does.
    """
    arguments, _ = sigutils.normalize_signature(signature)
    dispatcher: Any = compiled(function, no_cpython_wrapper=True, _nrt=not borrows)
    dispatcher.compile(arguments)
    _KEPT.append(dispatcher)
    result = dispatcher.overloads[arguments]
    return int(result.library.get_pointer_to_function(result.fndesc.llvm_func_name))


def call_address(context: Any, builder: Any, where: Any, signature: Any, arguments: Any) -> Any:
    """Write a call of the function at an address, inside an intrinsic; NaN where the function raises."""
    convention = context.call_conv
    kind = convention.get_function_type(signature.return_type, signature.args)
    pointer = builder.inttoptr(where, kind.as_pointer())
    status, value = convention.call_function(builder, pointer, signature.return_type, signature.args, arguments)
    return builder.select(status.is_error, ir.Constant(ir.DoubleType(), math.nan), value)
