"""Compiled code as LLVM has it: kernels with machine code, and parts that are linked into them."""

from __future__ import annotations

from typing import Any

from llvmlite import binding as llvm
from numba.core import codegen


class Library(codegen.JITCodeLibrary):  # type: ignore[misc]
    """Compiled code, as Numba keeps it."""

    def _optimize_functions(self, module: Any) -> None:
        # As Numba does, but with one pass manager for all functions, and without a look at declarations.
        module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)


class Part(Library):
    """
    Code that is there to be linked into other code.

    It is optimised there, with everything else, and has no machine code of its own: making that for each of a hundred
    small functions would take longer than making the kernel that they are parts of. Only a part with loops is optimised
    by itself before: loops that the compiler finds alone become vectors, others may not. Those of `internal` functions,
    which go from record to record, are no vectors.
    """

    has_loops = False

    @property
    def codegen(self) -> Any:
        return _NoEnvironments(self._codegen)

    def _optimize_final_module(self) -> None:
        if self.has_loops:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> tuple[str, bytes]:
        return self.name, self._final_module.as_bitcode()

    @classmethod
    def read(cls, codegen: Any, state: tuple[str, bytes]) -> Part:
        """Return the part that `serialize_using_object_code` wrote."""
        name, bitcode = state
        part = cls(codegen, name)
        part._final_module = llvm.parse_bitcode(bitcode)
        part._finalize_final_module()
        return part


class _NoEnvironments:
    """A code generator for parts: their environments, which are for Python's objects, are nowhere in memory."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None: ...


class PartReader:
    """Numba's context for a target, but for reading parts."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def codegen(self) -> PartReader:
        return self

    def unserialize_library(self, state: tuple[str, bytes]) -> Part:
        return Part.read(self._context.codegen(), state)
