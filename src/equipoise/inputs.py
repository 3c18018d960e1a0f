"""What a user hands in, checked: each refusal names the value and says what would do."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

# Stands for an argument that was not given, where None could be one.
MISSING: Any = object()

# The square of a larger value could overflow.
LARGEST: Final = 1e150


def whole(name: str, value: Any, least: int) -> int:
    """A whole number, and not below `least`."""
    try:
        found = operator.index(value)
    except TypeError:
        found = None
    if found is None or isinstance(value, bool):
        raise TypeError(f"{name}={value!r} will not do; it must be a whole number")
    if found < least:
        raise ValueError(f"{name}={value!r} will not do; it must be at least {least}")
    return found


def number(value: Any, wanted: str = "a sample is a finite number") -> float:
    """Anything that is a number as a float; a text that looks like one is none."""
    text_or_complex = isinstance(value, str | bytes | complex)  # NumPy's have __float__ all the same
    if value is not MISSING and not text_or_complex and (hasattr(value, "__float__") or hasattr(value, "__index__")):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    given = "no value was given" if value is MISSING else f"{shown(value)} is not a number"
    raise TypeError(f"{given}; {wanted}")


def shown(thing: Any) -> str:
    """Something that was handed in, short enough for a message."""
    text = "nothing" if thing is MISSING else repr(thing)
    return text if len(text) <= 80 else f"{text[:77]}..."


def near(word: Any, known: Iterable[str]) -> str:
    """The question what was meant, for the end of a sentence, if a word is nearly a known one; else nothing."""
    found = difflib.get_close_matches(str(word), list(known), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""


def by_arm(what: str, given: Any, names: Sequence[Any]) -> list[Any]:
    """One value for each arm, from a mapping by name or from values in the arms' order."""
    if isinstance(given, Mapping):
        known = names if isinstance(names, range) else frozenset(names)
        unknown = [name for name in given if name not in known]
        missing = [name for name in names if name not in given]
        if unknown or missing:
            wrong = f"there is no arm {unknown[0]!r}" if unknown else f"arm {missing[0]!r} has none"
            raise ValueError(f"{what} will not do: {wrong}; one for each arm is needed")
        return [given[name] for name in names]
    values = list(given)
    if len(values) != len(names):
        raise ValueError(f"{len(values)} {what} were given for {len(names)} arms; one for each is needed")
    return values
