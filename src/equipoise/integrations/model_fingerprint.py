"""Texts that tell one model with its settings from another, so that a store is continued with the same one only."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence, Set
from types import CellType, CodeType
from typing import Any, Final

# What lies deeper is known by its type alone.
_DEEPEST: Final = 12

Inner = Callable[[Any], str]
# Returns the text of what a package knows more about, given a function for its parts; None for anything else.
Special = Callable[[Any, Inner], str | None]


def text(given: Any, special: Special, depth: int = 0) -> str:
    """Return a text that is the same in every process, and differs where what is described does."""
    if depth > _DEEPEST:
        return type(given).__qualname__
    inner = functools.partial(text, special=special, depth=depth + 1)
    if (found := special(given, inner)) is not None:
        return found
    if given is None or isinstance(given, bool | int | float | str | bytes):
        return ascii(given)
    if isinstance(given, Mapping):
        return f"({', '.join(sorted(f'{inner(key)}={inner(each)}' for key, each in given.items()))})"
    if isinstance(given, Set):
        return f"[{', '.join(sorted(map(inner, given)))}]"
    if isinstance(given, Sequence):
        return f"[{', '.join(map(inner, given))}]"
    if isinstance(given, functools.partial):
        return f"partial{inner([given.func, given.args, given.keywords])}"
    if callable(given):
        return _function(given, inner)
    printed = ascii(given)
    return type(given).__qualname__ if " at 0x" in printed else printed


def short_hash(described: str) -> str:
    """Return a hash of a text, short enough to be read."""
    return hashlib.blake2b(described.encode(), digest_size=4).hexdigest()


def _function(function: Any, inner: Inner) -> str:
    """Return a function's name with a hash of what it does; of an object that can be called, its type."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return name
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()]
    given = inner([function.__defaults__, function.__kwdefaults__, cells])
    return f"{name} {short_hash(_instructions(code, inner) + given)}"


def _instructions(code: CodeType, inner: Inner) -> str:
    """Return what a function does, whatever it and its lines are called."""
    constants = [_instructions(each, inner) if isinstance(each, CodeType) else inner(each) for each in code.co_consts]
    return ascii((code.co_code, code.co_names, constants))
