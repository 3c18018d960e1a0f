"""Numba's interface to a cache, for compiled code that is kept on disk under what it is made of."""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import platform
import sys
from collections.abc import Callable
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import caching, compiler, serialize

from equipoise.base.terminal import watched
from equipoise.compiled import files
from equipoise.compiled.content import Content
from equipoise.compiled.library import PartReader

# What Numba can be told from outside (NUMBA_BOUNDSCHECK and the like) that changes the code it makes.
_FLAGS = ("BOUNDSCHECK", "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO_DEFAULT", "USING_SVML")

# How code is kept; another number where old files must not be read.
CODE_FORMAT = 4


def is_kept(function: Any, signature: tuple[Any, ...]) -> bool:
    """Return whether the code of a compiled function for these types is on disk."""
    with contextlib.suppress(Exception):
        return files.exists(function._cache.filed(signature, function.targetctx.codegen())[0])
    return False


class Cache(caching._Cache):  # type: ignore[misc]
    """Numba's interface to a cache: here one file for each function, signature, machine and version."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.content = Content(function)
        self._options = options

    @property
    def cache_path(self) -> str:
        return str(files.cache_directory())

    def filed(self, signature: Any, codegen: Any) -> tuple[str, str]:
        """Name and key of the file for a signature; raises where code in memory may be older than its source."""
        built_with = (
            CODE_FORMAT,
            numba.__version__,
            llvmlite.__version__,
            np.__version__,
            platform.python_version(),
            sorted(map(str, self._options.items())),
            [(flag, getattr(numba.config, flag, None)) for flag in _FLAGS],
        )
        key = repr((self.content.current(), str(signature), codegen.magic_tuple(), built_with))
        return f"{self.content.function.__name__}-{hashlib.sha256(key.encode()).hexdigest()[:40]}.nbc", key

    def _rebuild(self, target_context: Any, payload: Any) -> Any:
        return compiler.CompileResult._rebuild(target_context, *payload)

    def _reduce(self, result: Any) -> Any:
        """What to file; None where code cannot be filed."""
        return None if result.library.has_dynamic_globals or result.lifted else result._reduce()

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        target_context.refresh()
        # A file that is missing or of another make costs a compilation, never a wrong answer.
        with contextlib.suppress(Exception):
            content = files.read(*self.filed(signature, target_context.codegen()))
            if content is not None:
                return self._rebuild(target_context, pickle.loads(content))
        # Numba asks here right before it compiles.
        _announce_once()
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        # No room on the disk, or nowhere to write: the code is compiled again next time.
        with contextlib.suppress(Exception):
            payload = self._reduce(result)
            if payload is None:
                return
            files.write(*self.filed(signature, result.codegen), serialize.dumps(payload))

    def enable(self) -> None: ...

    def disable(self) -> None: ...

    def flush(self) -> None: ...


class PartCache(Cache):
    """The same for parts."""

    def _rebuild(self, target_context: Any, payload: Any) -> Any:
        library, *rest = payload
        loaded = compiler.CompileResult._rebuild(PartReader(target_context), library, *rest)
        return loaded._replace(target_context=target_context)


class KernelCache(Cache):
    """The same for kernels of a GPU, whose code is that of its model."""

    def _rebuild(self, target_context: Any, payload: Any) -> Any:
        from numba.cuda.dispatcher import _Kernel

        return _Kernel._rebuild(**payload)

    def _reduce(self, result: Any) -> Any:
        return result._reduce_states()


def kept(kernel: Any) -> Any:
    """Let a kernel of numba.cuda keep its machine code on disk, under a fingerprint of everything it is made of."""
    kernel._cache = KernelCache(kernel.py_func, {**kernel.targetoptions, "numba-cuda": _cuda_version()})
    return kernel


def _cuda_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("numba-cuda")
    except PackageNotFoundError:
        return "numba"


_announced = False


def _announce_once() -> None:
    """The first time in a process that something is compiled, tell a person who waits."""
    global _announced
    if not _announced:
        _announced = True
        if watched():
            print("equipoise: compiling, once for this machine; it takes a few seconds", file=sys.stderr, flush=True)
