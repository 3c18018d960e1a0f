"""Numba's compiler, as equipoise uses it."""

from __future__ import annotations

import dis
import gc
import itertools
import os
import secrets
from typing import Any

from numba.core import bytecode, compiler, registry

from equipoise.compiled.library import Library, Part


def _number_anew() -> None:
    """
    Let Numba number functions from somewhere else.

    It numbers them from 1 in every process, and machine code refers to them by name and number. Code from disk keeps
    the numbers of the process that made it, where the same one may have been another function of that name: the wrong
    one would be called. So every process begins somewhere else, one that was forked too.
    """
    bytecode.FunctionIdentity._unique_ids = itertools.count(secrets.randbits(60))


_number_anew()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_number_anew)

# Divisions by zero give infinities, as in NumPy. No fast mathematics: compiled or not, a formula gives the same bits.
# Nobody calls compiled code through Numba's C wrappers.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}


def start_compiler() -> None:
    """Load what Numba loads before it compiles for the first time, so that a fork has it too."""
    for context in (registry.cpu_target.typing_context, registry.cpu_target.target_context):
        context.refresh()


class Compiler(compiler.Compiler):  # type: ignore[misc]
    """
    Numba's compiler, without the garbage collector.

    It makes millions of objects, most of which are there to stay: looking for garbage among them takes a tenth of the
    time. Numba lets one thread compile at a time.
    """

    def compile_extra(self, function: Any) -> Any:
        collects = gc.isenabled()
        gc.disable()
        try:
            self.state.library = self.library(function)
            return super().compile_extra(function)
        finally:
            if collects:
                gc.enable()

    def library(self, function: Any) -> Library:
        """Return where the code goes."""
        library = Library(self.state.targetctx.codegen(), function.__qualname__)
        library.enable_object_caching()
        return library


class PartCompiler(Compiler):
    """The same for a part."""

    def library(self, function: Any) -> Part:
        library = Part(self.state.targetctx.codegen(), function.__qualname__)
        loops = any(each.opname == "FOR_ITER" for each in dis.get_instructions(function))
        library.has_loops = loops and self.state.flags.nrt
        return library
