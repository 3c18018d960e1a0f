"""
Compile plain functions with Numba, and keep the machine code on disk.

Numba's own disk cache looks at the file of the function it compiles and at nothing else: a kernel that calls a strategy
from another file would go on running the old formula after that file has changed, and a kernel that closes over one
never finds itself again. Here a compiled function is filed under a fingerprint of everything it is made of: its byte
code and constants, and those of every function it calls. A changed formula has another fingerprint. Where something
that a compiled function refers to is changed while the process lives, old code may be in memory under the new
description: such a function is neither filed nor looked up from then on.
"""

from __future__ import annotations

import contextlib
import dis
import gc
import hashlib
import itertools
import math
import os
import pickle
import platform
import secrets
import sys
import time
import types
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir
from numba.core import bytecode, caching, codegen, compiler, registry, serialize, sigutils
from numba.extending import intrinsic
from numba.np import arrayobj

from equipoise.people import watched

Function = TypeVar("Function", bound=Callable[..., Any])


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

# What Numba can be told from outside (NUMBA_BOUNDSCHECK and the like) that changes the code it makes.
_FLAGS = ("BOUNDSCHECK", "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO_DEFAULT", "USING_SVML")

# How code is kept; another number where old files must not be read.
FORMAT = 3

# Compiled code that nobody has used for so long is thrown away; its last use is known to the day.
KEPT_DAYS = 90
_DAY = 24 * 3600.0


class _NoFingerprint(Exception):
    """Something a function refers to has no lasting description."""


def jit(function: Function, *, nogil: bool = False) -> Function:
    """
    Compile `function` on first use, from disk when the very same code was compiled before.

    It is inlined wherever other compiled code calls it. With `nogil` other threads run while it does.
    """
    return _compiled(function, nogil=nogil, forceinline=True)


def borrowing(function: Function) -> Function:
    """
    Compile a function that only borrows the arrays it is given: it makes none and keeps none.

    References to arrays are not counted, as the counting is most of a short call. Other compiled code calls it.
    """
    return _compiled(function, _nrt=False)


def internal(function: Function) -> Function:
    """Compile a `borrowing` function that only other compiled code calls, where it is inlined."""
    return _compiled(function, _nrt=False, no_cpython_wrapper=True, forceinline=True)


def inlined(function: Function) -> Function:
    """Write a function out wherever compiled code calls it, as if it stood there; it is never compiled by itself."""
    return numba.njit(inline="always", _nrt=False, **OPTIONS)(function)


def callable_compiled(function: Function) -> Function:
    """Let compiled code call a plain function by its name, where it is inlined; in Python it stays as it is."""
    dispatcher: Any = jit(function)
    # What Numba, and a card (`lab.cuda_device`), take the function for.
    vars(function).update(_numba_type_=dispatcher._type, py_func=function, dispatcher=dispatcher)
    return function


def _compiled(function: Function, **options: bool) -> Function:
    """Compile a function, for Python as a whole and for other compiled code as a part of that."""
    options = OPTIONS | options
    dispatcher: Any = numba.njit(pipeline_class=_Compiler, **options)(function)
    dispatcher._cache = _Cache(function, options)
    # What other compiled code finds where it calls the function.
    dispatcher.part = part = _part(function, options | {"no_cpython_wrapper": True})
    dispatcher.get_call_template, dispatcher.get_overload = part.get_call_template, part.get_overload
    return dispatcher


def _part(function: Function, options: dict[str, Any]) -> Any:
    """Compile a function as far as other compiled code needs it."""
    part = numba.njit(pipeline_class=_PartCompiler, **options)(function)
    part._cache = _PartCache(function, options | {"part": True})
    return part


class _Library(codegen.JITCodeLibrary):  # type: ignore[misc]
    """Compiled code, as Numba keeps it."""

    def _optimize_functions(self, module: Any) -> None:
        # As Numba does, but with one pass manager for all functions, and without a look at declarations.
        module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)


class _Part(_Library):
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
    def read(cls, codegen: Any, state: tuple[str, bytes]) -> _Part:
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


class _Compiler(compiler.Compiler):  # type: ignore[misc]
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

    def library(self, function: Any) -> _Library:
        """Return where the code goes."""
        library = _Library(self.state.targetctx.codegen(), function.__qualname__)
        library.enable_object_caching()
        return library


class _PartCompiler(_Compiler):
    """The same for a part."""

    def library(self, function: Any) -> _Part:
        library = _Part(self.state.targetctx.codegen(), function.__qualname__)
        loops = any(each.opname == "FOR_ITER" for each in dis.get_instructions(function))
        library.has_loops = loops and self.state.flags.nrt
        return library


@intrinsic
def records(typing: Any, memory: Any, first: Any, count: Any, record: Any) -> Any:
    """View `count` records in a flat array of words, from the word `first` on: nearly free inside a kernel."""
    array = numba.types.Array(record.dtype, 1, "C")

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        size = context.get_constant(numba.types.intp, record.dtype.size)
        return _view(context, builder, signature, args[0], args[1], args[2], size)

    return array(memory, numba.types.intp, numba.types.intp, record), code


@intrinsic
def spaced_records(typing: Any, memory: Any, first: Any, count: Any, words: Any, record: Any) -> Any:
    """View `count` records that begin `words` words after one another, with other numbers in between."""
    array = numba.types.Array(record.dtype, 1, "A")

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        size = builder.mul(args[3], context.get_constant(numba.types.intp, 8))
        return _view(context, builder, signature, args[0], args[1], args[2], size)

    return array(memory, *[numba.types.intp] * 3, record), code


def _view(context: Any, builder: Any, signature: Any, memory: Any, first: Any, count: Any, stride: Any) -> Any:
    """Write out the view of a flat array of words as records at this stride in bytes, inside an intrinsic."""
    words = context.make_array(signature.args[0])(context, builder, memory)
    found = context.make_array(signature.return_type)(context, builder)
    size = context.get_constant(numba.types.intp, signature.return_type.dtype.size)
    data = builder.bitcast(builder.gep(words.data, [first]), found.data.type)
    arrayobj.populate_array(found, data, [count], [stride], size, words.meminfo)
    return found._getvalue()


def address(function: Callable[..., Any], signature: Any, borrows: bool = False) -> int:
    """
    Return the address of `function`, compiled, for kernels that take it as a number and call it with `call_address`.

    The function stays compiled for as long as the process lives. With `borrows` it only borrows arrays, as one that is
    compiled by `borrowing` does.
    """
    arguments, _ = sigutils.normalize_signature(signature)
    dispatcher: Any = _compiled(function, no_cpython_wrapper=True, _nrt=not borrows)
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


_KEPT: list[Any] = []


def cache_directory() -> Path:
    """Where compiled code is kept: EQUIPOISE_CACHE_DIR, or `equipoise` in the user's cache folder."""
    chosen = os.environ.get("EQUIPOISE_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "equipoise"


def start_compiler() -> None:
    """Load what Numba loads before it compiles for the first time, so that a fork has it too."""
    for context in (registry.cpu_target.typing_context, registry.cpu_target.target_context):
        context.refresh()


def can_keep() -> bool:
    """Return whether compiled code can be kept on disk; makes the folder for it."""
    with contextlib.suppress(Exception):
        cache_directory().mkdir(parents=True, exist_ok=True)
        return os.access(cache_directory(), os.R_OK | os.W_OK | os.X_OK)
    return False


def anything_kept() -> bool:
    """Return whether there is compiled code on disk, of whatever make."""
    with contextlib.suppress(Exception):
        return any(cache_directory().glob("*.nbc"))
    return False


def is_kept(function: Any, signature: tuple[Any, ...]) -> bool:
    """Return whether the code of a compiled function for these types is on disk."""
    with contextlib.suppress(Exception):
        return bool(function._cache._path(signature, function.targetctx.codegen()).exists())
    return False


def fingerprint(function: Callable[..., Any]) -> str:
    """
    A hash of the code of `function` and of all it refers to.

    Equal for equal code in any process; different when a constant, an operator or a called function differs.
    """
    digest = hashlib.sha256()
    _feed_function(digest, function, [], [])
    return digest.hexdigest()


def _current(function: Callable[..., Any]) -> str:
    """The fingerprint of `function`, if every compiled function that it calls is still what it was compiled from."""
    digest = hashlib.sha256()
    called: list[_Cache] = []
    _feed_function(digest, function, [], called)
    for cache in called:
        if cache.compiled_from is not None and cache.compiled_from != fingerprint(cache.function):
            raise _NoFingerprint(cache.function.__name__)
    return digest.hexdigest()


def _feed(digest: Any, *texts: Any) -> None:
    """Each with its length, so that no two sequences of them run into one."""
    for text in texts:
        data = text if isinstance(text, bytes) else str(text).encode()
        digest.update(f"{len(data)}:".encode() + data)


def _feed_function(digest: Any, function: Any, seen: list[Any], called: list[_Cache]) -> None:
    if isinstance(getattr(function, "_cache", None), _Cache):
        called.append(function.part._cache)
    options = getattr(function, "targetoptions", None)
    function = getattr(function, "py_func", function)
    if any(function is each for each in seen):
        _feed(digest, "again", next(i for i, each in enumerate(seen) if function is each))
        return
    seen.append(function)
    if str(function.__module__).split(".")[0] in ("numba", "numpy"):  # the cache is keyed by their versions
        _feed(digest, "library", function.__module__, function.__qualname__)
        return
    names: set[str] = set()
    _feed(digest, "function", sorted((k, str(v)) for k, v in options.items()) if options else "")
    _feed_code(digest, function.__code__, names)
    _feed_value(digest, function.__defaults__, names, seen, called)
    for name, value in sorted((function.__kwdefaults__ or {}).items()):
        _feed(digest, name)
        _feed_value(digest, value, names, seen, called)
    for cell in function.__closure__ or ():
        _feed_value(digest, cell.cell_contents, names, seen, called)
    for name in sorted(names & function.__globals__.keys()):
        _feed(digest, "global", name)
        _feed_value(digest, function.__globals__[name], names, seen, called)


def _feed_code(digest: Any, code: types.CodeType, names: set[str]) -> None:
    _feed(digest, "code", code.co_code, code.co_names, code.co_varnames, code.co_freevars, len(code.co_consts))
    names.update(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _feed_code(digest, constant, names)
        else:
            _feed(digest, type(constant).__name__, repr(constant))


def _feed_value(digest: Any, value: Any, names: set[str], seen: list[Any], called: list[_Cache]) -> None:
    _feed(digest, type(value).__name__)
    if isinstance(value, types.FunctionType) or hasattr(value, "py_func"):
        _feed_function(digest, value, seen, called)
    elif hasattr(value, "_defn"):  # a Numba intrinsic
        _feed_function(digest, value._defn, seen, called)
    elif isinstance(value, types.ModuleType):
        _feed(digest, value.__name__)
        if value.__name__.split(".")[0] not in ("numba", "numpy", "math"):
            for name in sorted(names & vars(value).keys()):
                _feed(digest, "attribute", name)
                _feed_value(digest, vars(value)[name], names, seen, called)
    elif isinstance(value, np.ndarray):
        _feed(digest, value.shape, value.dtype.str, value.tobytes())
    elif isinstance(value, tuple):
        _feed(digest, len(value))
        for item in value:
            _feed_value(digest, item, names, seen, called)
    elif isinstance(value, type | types.BuiltinFunctionType):
        _feed(digest, value.__module__, value.__qualname__)
    elif isinstance(value, int | float | complex | str | bytes | np.generic | None):
        _feed(digest, repr(value))
    elif isinstance(value, numba.types.Type | np.dtype):
        _feed(digest, str(value))
    else:
        raise _NoFingerprint(type(value).__name__)


class _Cache(caching._Cache):  # type: ignore[misc]
    """Numba's interface to a cache: here one file for each function, signature, machine and version."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function = function
        # The fingerprint at the first compilation; None before it.
        self.compiled_from: str | None = None
        self._options = options

    @property
    def cache_path(self) -> str:
        return str(cache_directory())

    def _path(self, signature: Any, codegen: Any) -> Path:
        """Where the code for a signature is kept; raises where code in memory may be older than what it is made of."""
        now = _current(self.function)
        if self.compiled_from is None:
            self.compiled_from = now
        if now != self.compiled_from:
            raise _NoFingerprint(self.function.__name__)
        built_with = (
            FORMAT,
            numba.__version__,
            np.__version__,
            platform.python_version(),
            sorted(map(str, self._options.items())),
            [(flag, getattr(numba.config, flag, None)) for flag in _FLAGS],
        )
        key = repr((now, str(signature), codegen.magic_tuple(), built_with))
        return cache_directory() / f"{self.function.__name__}-{hashlib.sha256(key.encode()).hexdigest()[:40]}.nbc"

    def _rebuild(self, target_context: Any, payload: Any) -> Any:
        return compiler.CompileResult._rebuild(target_context, *payload)

    def _reduce(self, result: Any) -> Any:
        """What to file; None where code cannot be filed."""
        return None if result.library.has_dynamic_globals or result.lifted else result._reduce()

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        target_context.refresh()
        # A file that is missing, cut short or of another make costs a compilation, never a wrong answer.
        with contextlib.suppress(Exception):
            path = self._path(signature, target_context.codegen())
            result = self._rebuild(target_context, pickle.loads(path.read_bytes()))
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _DAY:
                    os.utime(path)
            return result
        # Numba asks here right before it compiles.
        _announce_once()
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        # No room on the disk, or nowhere to write: the code is compiled again next time.
        with contextlib.suppress(Exception):
            payload = self._reduce(result)
            if payload is None:
                return
            path = self._path(signature, result.codegen)
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(f".{uuid.uuid4().hex}.tmp")
            try:
                partial.write_bytes(serialize.dumps(payload))
                partial.replace(path)
            finally:
                partial.unlink(missing_ok=True)
            _prune_once(path.parent)

    def enable(self) -> None: ...

    def disable(self) -> None: ...

    def flush(self) -> None: ...


class _PartCache(_Cache):
    """The same for parts."""

    def _rebuild(self, target_context: Any, payload: Any) -> Any:
        library, *rest = payload
        loaded = compiler.CompileResult._rebuild(_Reader(target_context), library, *rest)
        return loaded._replace(target_context=target_context)


class _Reader:
    """Numba's context for a target, but for reading parts."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def codegen(self) -> _Reader:
        return self

    def unserialize_library(self, state: tuple[str, bytes]) -> _Part:
        return _Part.read(self._context.codegen(), state)


class _KernelCache(_Cache):
    """The same for kernels of a GPU, whose code is that of its model."""

    def _rebuild(self, target_context: Any, payload: Any) -> Any:
        from numba.cuda.dispatcher import _Kernel

        return _Kernel._rebuild(**payload)

    def _reduce(self, result: Any) -> Any:
        return result._reduce_states()


def kept(kernel: Any) -> Any:
    """Let a kernel of numba.cuda keep its machine code on disk, under a fingerprint of everything it is made of."""
    kernel._cache = _KernelCache(kernel.py_func, {**kernel.targetoptions, "numba-cuda": _cuda_version()})
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


_pruned = False


def _prune_once(folder: Path) -> None:
    """The first time in a process that something is filed, which took a compilation anyway: throw old files away."""
    global _pruned
    if not _pruned:
        _pruned = True
        prune(folder)


def prune(folder: Path) -> None:
    """Remove compiled code that was not used for KEPT_DAYS, and what writers that died left behind."""
    oldest = time.time() - KEPT_DAYS * _DAY
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            # Another process may have been quicker.
            with contextlib.suppress(OSError):
                if entry.name.endswith((".nbc", ".tmp")) and entry.stat().st_mtime < oldest:
                    os.unlink(entry.path)
