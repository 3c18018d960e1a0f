"""
What a compiled function is made of, as a fingerprint.

Numba's own disk cache looks at the file of the function it compiles and at nothing else: a kernel that calls a strategy
from another file would go on running the old formula after that file has changed, and a kernel that closes over one
never finds itself again. The fingerprint is of the byte code and constants of a function, and of those of every
function it calls: a changed formula has another one.
"""

from __future__ import annotations

import hashlib
import types
from collections.abc import Callable
from typing import Any

import numba
import numpy as np


class NoFingerprint(Exception):
    """Something a function refers to has no lasting description."""


class Content:
    """
    What one function is compiled from.

    Where something that a compiled function refers to is changed while the process lives, old code may be in memory
    under the new description: such a function has no fingerprint from then on.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        # The fingerprint at the first compilation; None before it.
        self.compiled_from: str | None = None

    def current(self) -> str:
        """Return the fingerprint; raise where code in memory may be older than what it is made of."""
        now = _current(self.function)
        if self.compiled_from is None:
            self.compiled_from = now
        if now != self.compiled_from:
            raise NoFingerprint(self.function.__name__)
        return now


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
    called: list[Content] = []
    _feed_function(digest, function, [], called)
    for content in called:
        if content.compiled_from is not None and content.compiled_from != fingerprint(content.function):
            raise NoFingerprint(content.function.__name__)
    return digest.hexdigest()


def _feed(digest: Any, *texts: Any) -> None:
    """Each with its length, so that no two sequences of them run into one."""
    for text in texts:
        data = text if isinstance(text, bytes) else str(text).encode()
        digest.update(f"{len(data)}:".encode() + data)


def _feed_function(digest: Any, function: Any, seen: list[Any], called: list[Content]) -> None:
    if isinstance(getattr(getattr(function, "_cache", None), "content", None), Content):
        called.append(function.part._cache.content)
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


def _feed_value(digest: Any, value: Any, names: set[str], seen: list[Any], called: list[Content]) -> None:
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
        raise NoFingerprint(type(value).__name__)
