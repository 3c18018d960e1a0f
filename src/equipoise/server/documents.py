"""
JSON from outside, read within limits that hold before any of it becomes an object.

What it takes to refuse a text is then bounded by what its sender may ask for, not by what was sent.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

from equipoise.base.inputs import shown

# A text in quotes, closed or not, or what a value or a member follows. It never goes back, so that it is linear.
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{,]', re.DOTALL)
_BEFORE: Final = (b"[", b"{", b",")
# The most digits of an integer that may fit into 64 bits.
_DIGITS: Final = 20
_INTEGERS: Final = 1 << 63


class Size(NamedTuple):
    """
    How large a document may be.

    Attributes
    ----------
    bytes, values
        The most bytes of its text, and the most JSON values in it: it takes fewer bytes to send one than to hold it.
    """

    bytes: int
    values: int


# What every sender may send, and most need: it is read in no time.
SMALL: Final = Size(1 << 14, 100)


class TooMany(ValueError):
    """A document has more values than allowed."""


def parsed(text: bytes, values: int) -> Any:
    """
    Return what a JSON text says.

    Names that are given twice in an object are refused: of their values, some programs read the first and some the
    last. Integers beyond 64 bits become floats, as they are in most programs that read JSON. NaN and infinities are
    left to whoever says what a number may be.

    Parameters
    ----------
    text
        The text, in UTF-8.
    values
        The most values that it may have.

    Raises
    ------
    TooMany
        Where it has more.
    ValueError
        Where it is not JSON.
    """
    if not fits(text, values):
        raise TooMany(values)
    try:
        return _DECODER.decode(text.decode())
    except UnicodeDecodeError:
        raise ValueError("it is not a text in UTF-8") from None
    except json.JSONDecodeError as error:
        what = error.msg.partition(" (")[0].removesuffix(" at")
        what = what[:1].lower() + what[1:]
        raise ValueError(f"{what} at line {error.lineno:,}, column {error.colno:,}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def fits(text: bytes, values: int) -> bool:
    """Return whether a JSON text has at most so many values; in other texts, each bracket and comma counts as one."""
    # Each value but the first follows one of these, or its name does; those in texts are told apart only if need be.
    if sum(map(text.count, _BEFORE)) < values:
        return True
    many = 1
    # With names and values in quotes, a document of so many values has less than three times as many tokens.
    for tokens, found in enumerate(_TOKEN.finditer(text)):
        many += found[0] in _BEFORE
        if many > values or tokens > 3 * values:
            return False
    return many <= values


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"the name {shown(twice)} is given twice in an object")
    return found


def _integer(text: str) -> int | float:
    if len(text) > _DIGITS:
        return float(text)
    found = int(text)
    return found if -_INTEGERS <= found < _INTEGERS else float(found)


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_members, parse_int=_integer)
