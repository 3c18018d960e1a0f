"""Validation of what users pass in. Every message follows one pattern: "`x` must be ..., got ..."."""

from __future__ import annotations

import difflib
import itertools
import math
import numbers
import operator
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

import numpy as np

from equipoise.base.errors import InvalidInput


class _Missing:
    """Stands for an argument that was not given, where None could be one."""

    def __repr__(self) -> str:
        return "<not given>"


MISSING: Any = _Missing()

# The square of a larger value could overflow.
LARGEST: Final = 1e150

# Some thirty years: longer than anybody waits, and short enough for every clock, timer and database.
MOST_SECONDS: Final = 1e9

# The most characters of an arm's name.
LONGEST_NAME: Final = 200

# The most arms of a study, and the most tickets handed out at once: about a gigabyte each.
MOST_ARMS: Final = 10_000_000
MOST_TICKETS: Final = 10_000_000

# What moves the cursor of a terminal, reorders a line or cannot be drawn: control characters, separators of lines and
# paragraphs, overrides of the direction of writing, halves of surrogate pairs, and what is not a character.
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")

# A password, after what says that it is one: user: in a URL, up to the last @ of the word; password= in a query or a
# connection string; or libpq, which quotes what it cannot decode.
_PASSWORD: Final = re.compile(
    r"(://[^\s:/@]*:)[^\s]*(?=@)|(\bpassword\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&'\"]+)"
    r"|((?:percent-encoded (?:token|value): |unexpected spaces found in )\")[^\"]*",
    re.IGNORECASE,
)


# ---- one value


def integer(name: str, value: Any, least: int, most: float = math.inf) -> int:
    """Return `value` as an int, or refuse what is not an integer of at least `least` and at most `most`."""
    wanted = {0: "a non-negative integer", 1: "a positive integer"}.get(least, f"an integer of at least {least:,}")
    try:
        found = operator.index(value)
    except TypeError:
        found = None
    if found is None or isinstance(value, bool) or masked(value):
        raise TypeError(f"{name} must be {wanted}, got {shown(value)}")
    if found < least:
        raise InvalidInput(f"{name} must be {wanted}, got {shown(value)}")
    if found > most:
        raise InvalidInput(
            f"{name} must be at most {most:,.0f}, got {f'{found:,}' if found < 10**30 else shown(found)}"
        )
    return found


def number(name: str, value: Any) -> float:
    """Return `value` as a float, or refuse what is not a number; texts, complex and masked numbers are not."""
    if value is MISSING:
        raise TypeError(f"{name} is required")
    text_or_complex = isinstance(value, str | bytes | complex)  # NumPy's have __float__ all the same
    if not text_or_complex and (hasattr(value, "__float__") or hasattr(value, "__index__")):
        try:
            if not masked(value):
                return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    raise TypeError(f"{name} must be a number, got {shown(value)}")


def positive(name: str, value: Any, unit: str = "number") -> float:
    """Return `value` as a float, or refuse what is not a positive finite number."""
    try:
        found = math.nan if isinstance(value, bool) else number(name, value)
    except TypeError:
        raise TypeError(f"{name} must be a positive {unit}, got {shown(value)}") from None
    if not 0 < found < math.inf:
        raise InvalidInput(f"{name} must be a positive {unit}, got {shown(value)}")
    return found


def number_of_seconds(name: str, value: Any) -> float:
    """Return a number of seconds as a float, or refuse what is not positive or more than clocks and timers take."""
    found = positive(name, value, "number of seconds")
    if found > MOST_SECONDS:
        raise InvalidInput(f"{name} must be at most {MOST_SECONDS:,.0f} seconds, got {shown(value)}")
    return found


def probability(name: str, value: Any) -> float:
    """Return `value` as a float, or refuse what does not lie strictly between 0 and 1."""
    found = number(name, value)
    if not 0 < found < 1:
        raise InvalidInput(f"{name} must be strictly between 0 and 1, got {shown(value)}")
    return found


def choice(name: str, value: Any, known: Iterable[str]) -> str:
    """Return `value` if it is one of the known names; otherwise refuse it and suggest the nearest one."""
    known = tuple(known)
    if not isinstance(value, str) or value not in known:
        names = ", ".join(map(repr, known))
        raise InvalidInput(f"{name} must be one of {names}, got {shown(value)}{did_you_mean(value, known)}")
    return value


def masked(given: Any) -> int:
    """
    Return how many values are masked in a NumPy masked array, or in a list with such arrays in it; 0 for all else.

    A masked value is a missing one, and `np.asarray` silently returns the number below the mask.
    """
    ma = sys.modules.get("numpy.ma")  # NumPy imports it on demand; before that, nothing is masked
    array = getattr(ma, "MaskedArray", None)  # while another thread imports it, it is not there yet
    if ma is None or array is None:
        return 0
    if isinstance(given, array):
        return int(ma.count_masked(given))
    if isinstance(given, list | tuple) and any(issubclass(kind, array) for kind in set(map(type, given))):
        return sum(map(masked, given))
    return 0


# ---- numbers in texts

_NUMBER: Final = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)", re.I | re.A)
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


def number_in(text: str) -> float:
    """
    Return the number in a text as programs print them; ValueError if there is none.

    Python would also read 1_000 and digits of other scripts, which a program, a table or a person means otherwise: a
    line that merely resembles a number must not become a sample.
    """
    if not _NUMBER.fullmatch(text.strip()):
        raise InvalidInput(f"a number must be written in the digits 0 to 9, got {shown(text)}")
    return float(text)


def integer_in(text: str) -> int:
    """Return the integer in a text, as `number_in` does."""
    if not _INTEGER.fullmatch(text.strip()):
        raise InvalidInput(f"an integer must be written in the digits 0 to 9, got {shown(text)}")
    return int(text)


# ---- words in messages

# The most characters of a value in a message.
_SHOWN: Final = 80


def shown(thing: Any) -> str:
    """Return the repr of what a user passed in, in one short line for a message; NumPy scalars as plain ones."""
    if isinstance(thing, list | tuple) and len(thing) > _SHOWN:
        thing = thing[:_SHOWN]  # the rest would not fit
    text = "nothing" if thing is MISSING else printable(" ".join(_repr(plain_name(thing)).splitlines()))
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _repr(thing: Any) -> str:
    try:
        return repr(thing)
    except ValueError:  # Python writes no integers of thousands of digits, wherever they are
        return "an integer of thousands of digits" if isinstance(thing, int) else f"a {type(thing).__name__}"


def printable(text: str) -> str:
    r"""Return a text of a user as a terminal and a chart can show it, with \x1b and the like for control characters."""
    return _UNPRINTABLE.sub(lambda found: repr(found[0])[1:-1], text)


def is_printable(text: str) -> bool:
    """Whether a terminal and a chart show a text as it is."""
    return _UNPRINTABLE.search(text) is None


def without_password(text: str) -> str:
    """Return a text with *** for every password in a URL or a connection string of PostgreSQL."""
    return _PASSWORD.sub(r"\1\2\4***", text)


def text_of(arm: Any) -> str:
    """Return an arm's name as text, the parts of a tuple with slashes between them: big/law."""
    return "/".join(map(text_of, arm)) if isinstance(arm, tuple) and arm else str(arm)


def texts(names: Sequence[Any]) -> list[str]:
    """Return the text of each name: as Python writes it, such as 1 and '1', where two would have the same."""
    for written in (text_of, repr):
        found = [written(name) for name in names]
        if len(set(found)) == len(found):
            return found
    raise InvalidInput("two arms have the same text and would become one in JSON; use to_dict")


def named(arm: Any) -> str:
    """Return an arm's name for a sentence: as it is where it reads as a word, else quoted; "arm 3" for a number."""
    arm = text_of(arm) if isinstance(arm, tuple) else arm
    if not isinstance(arm, str):
        return f"arm {shown(arm)}"
    if re.fullmatch(r"[^\W\d][\w./:+-]*", arm):
        return arm
    # Not its repr, which would double a backslash: people copy commands.
    plain = "\\" in arm and arm.isprintable() and len(arm) < 78 and "'" not in arm
    return f"'{arm}'" if plain else shown(arm)


def spoken(arms: Sequence[Any]) -> str:
    """Return arms for a sentence, the last after an "and"."""
    *others, last = map(named, arms)
    return f"{', '.join(others)} and {last}" if others else last


def did_you_mean(word: Any, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the end of a message if a known word is close to this one, else nothing."""
    found = difflib.get_close_matches(str(word), list(known), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""


def listed(names: Iterable[Any], most: int = 5) -> str:
    """Return the first few names for a message, with an ellipsis if there are more."""
    names = list(names)
    return ", ".join(map(shown, names[:most])) + ", ..." * (len(names) > most)


# ---- arms and their labels


def plain_name(name: Any) -> Any:
    """Return a NumPy scalar, alone or in a tuple, as the Python object it stands for, anything else as it is."""
    if type(name) is tuple:
        return tuple(map(plain_name, name))
    return name.item() if isinstance(name, np.generic) else name


@dataclass(frozen=True)
class Names:
    """
    The names of arms, in order, and the place of each.

    Attributes
    ----------
    names
        All different: a tuple, or a range.
    index
        The place of each name; None where the names are 0, 1, 2, ... and each is its own place.
    """

    names: Sequence[Hashable]
    index: dict[Hashable, int] | None

    @classmethod
    def of(cls, arms: int | Iterable[Hashable]) -> Names:
        """Return the names that a user gave as `arms`: an iterable of them, or how many arms there are."""
        if isinstance(arms, str | bytes):
            raise TypeError(
                f"arms must be a list of names or the number of arms, got {shown(arms)}; write [{shown(arms)}]"
            )
        if isinstance(arms, int | np.integer) and not isinstance(arms, bool):
            return cls(range(integer("arms", arms, least=1, most=MOST_ARMS)), None)
        if isinstance(arms, set | frozenset):
            raise TypeError(f"arms must be in an order, such as a list, got the set {shown(arms)}")
        try:
            # One more than there may be shows that there are too many, however long the iterable is.
            if isinstance(arms, range):
                names: Sequence[Hashable] = arms[: MOST_ARMS + 1]
            else:
                names = tuple(map(plain_name, itertools.islice(arms, MOST_ARMS + 1)))  # type: ignore[arg-type]
        except TypeError:
            raise TypeError(f"arms must be a list of names or the number of arms, got {shown(arms)}") from None
        if not len(names):
            raise InvalidInput("arms must have at least one name, got an empty list")
        if len(names) > MOST_ARMS:
            raise InvalidInput(f"arms must be at most {MOST_ARMS:,}, got {shown(arms)}")
        if names == range(len(names)):
            return cls(names, None)
        check_names(names)
        try:
            index = dict(zip(names, range(len(names)), strict=True))
        except TypeError:
            wrong = next(name for name in names if not _hashes(name))
            raise TypeError(f"the name of an arm must be hashable, such as a string, got {shown(wrong)}") from None
        if len(index) < len(names):
            twice = next(name for k, name in enumerate(names) if index[name] != k)
            raise InvalidInput(f"arm names must be unique, got {shown(twice)} twice")
        return cls(names, index)

    def place(self, arm: Hashable) -> int:
        """Return where an arm stands; KeyError if there is none of that name."""
        if self.index is not None:
            return self.index[arm]
        # A range would compare what is not an int, as NumPy's are not, with every arm.
        if isinstance(arm, numbers.Real) and 0 <= arm < len(self.names) and arm == int(arm):
            return int(arm)
        raise KeyError(arm)

    def find(self, arm: Hashable) -> int:
        """Return where an arm that a user named stands; ValueError with the arms there are if there is none."""
        try:
            return self.place(arm)
        except (KeyError, TypeError):
            near = did_you_mean(arm, map(str, self.names[:1000])) if isinstance(arm, str) else ""
            raise InvalidInput(f"there is no arm {shown(arm)}; the arms are {listed(self.names[:6])}{near}") from None

    def __len__(self) -> int:
        return len(self.names)


def check_names(names: Collection[Any]) -> None:
    """
    Refuse names of arms that cannot be shown or told apart.

    They are those that are too long, that a terminal or a chart would not show as they are, and two spellings of é in
    Unicode.
    """
    try:
        together = "".join(names)
        fine = max(map(len, names), default=0) <= LONGEST_NAME
        fine = fine and together.isascii() and is_printable(together)
    except TypeError:  # not all of them are strings
        fine = isinstance(names, range)
    seen: set[str] = set()
    for name in () if fine else names:
        if isinstance(name, int | float) and -LARGEST < name < LARGEST:
            continue
        try:
            text = str(name)
        except ValueError:  # Python writes no integers of thousands of digits
            raise InvalidInput(
                f"the name of an arm must have at most {LONGEST_NAME} characters, got {shown(name)}"
            ) from None
        # What holds a range for a sequence of names, as JSON and tables do, would never come to its end.
        if "range(" in text and any(isinstance(part, range) for part in _parts(name)):
            raise TypeError(
                f"the name of an arm must not be a range, got {shown(name)}; arms=range(...) names arms by its numbers"
            )
        if isinstance(name, str):
            composed = unicodedata.normalize("NFC", name)
            if composed in seen:
                raise InvalidInput(f"arm names must be unique, got {shown(composed)} twice")
            seen.add(composed)
        # A tuple has its texts quoted, with a backslash in them where there is something to look for.
        if not is_printable(text) or ("\\" in text and not all(is_printable(str(part)) for part in _parts(name))):
            raise InvalidInput(f"the name of an arm must not contain control characters, got {shown(name)}")
        if len(text) > LONGEST_NAME:
            raise InvalidInput(
                f"the name of an arm must have at most {LONGEST_NAME} characters, got {shown(name)}, "
                f"which has {len(text):,}"
            )


def check_study_name(name: str) -> None:
    """Refuse the name of a study that a database cannot hold or a page cannot show."""
    if not is_printable(name):
        raise InvalidInput(f"the name of a study must not contain control characters, got {shown(name)}")
    if len(name) > LONGEST_NAME:
        many = f"{shown(name)}, which has {len(name):,}"
        raise InvalidInput(f"the name of a study must have at most {LONGEST_NAME} characters, got {many}")


def _parts(name: Any) -> Iterator[Any]:
    """Iterate over what a name is made of: a tuple of its items, and of theirs."""
    if isinstance(name, tuple):
        for item in name:
            yield from _parts(item)
    else:
        yield name


def _hashes(name: Any) -> bool:
    """Whether a name has a hash; a tuple's type has one even where its items have none."""
    try:
        hash(name)
    except TypeError:
        return False
    return True


def labelled(given: Any) -> Mapping[Any, Any] | None:
    """Return what a user gave per arm as a mapping if it has labels: a mapping, or a pandas Series; else None."""
    if isinstance(given, Mapping):
        return given
    if not _is_series(given):
        return None
    labels = [plain_name(label) for label in given.index]
    found = dict(zip(labels, list(given), strict=True))
    if len(found) < len(labels):
        twice = next(label for label, many in Counter(labels).items() if many > 1)
        raise InvalidInput(f"arm labels must be unique, got {shown(twice)} twice")
    return found


def _is_series(given: Any) -> bool:
    """Whether this is a pandas Series, without importing pandas."""
    index = getattr(given, "index", None)
    # A list's `index` is a method.
    return index is not None and not callable(index) and hasattr(given, "items") and getattr(given, "ndim", 0) == 1


def several(given: Any) -> TypeGuard[Iterable[Any]]:
    """Whether a user gave several values rather than one."""
    return isinstance(given, Iterable) and not isinstance(given, str | bytes) and getattr(given, "ndim", 1) != 0


def by_arm(what: str, given: Any, names: Sequence[Any], default: Any = MISSING) -> list[Any]:
    """
    Return one value for each arm, in the arms' order.

    What has labels (a mapping, a pandas Series) is aligned by them; what has none is taken in the arms' order. What
    can be aligned in neither way is refused: other labels, a set, a table. With a `default`, labels may be missing.
    """
    labels = labelled(given)
    if labels is not None:
        known = names if isinstance(names, range) else frozenset(names)
        unknown = [name for name in labels if name not in known]
        missing = [name for name in names if name not in labels] if default is MISSING else []
        if unknown or missing:
            wrong = f"one for {shown(unknown[0])}, which is not an arm" if unknown else f"none for {shown(missing[0])}"
            fix = "" if isinstance(given, Mapping) else "; .to_numpy() passes the values in the arms' order"
            raise InvalidInput(f"{what} must have one value for each arm, got {wrong}{fix}")
        return [labels.get(name, default) for name in names]
    # Of a range, before a list of it is made: it may have any length.
    values = given[: len(names) + 1] if isinstance(given, range) else in_order(what, given)
    if len(values) != len(names):
        raise InvalidInput(f"{what} must have one value for each of the {len(names):,} arms, got {len(values):,}")
    return list(values)


def in_order(what: str, given: Any) -> list[Any]:
    """Return values without labels as a list, or refuse what does not say which value belongs to which arm."""
    dimensions = len(getattr(given, "shape", (1,)))
    if dimensions > 1:
        wrong = f"a table of {dimensions} dimensions"
    elif isinstance(given, Set):
        wrong = f"the set {shown(given)}, which has no order"
    elif not several(given):
        wrong = shown(given)
    else:
        return list(given)
    raise TypeError(f"{what} must have one value for each arm, by name or in the arms' order, got {wrong}")


# ---- what is not installed

# How to install an extra of equipoise. A release on a package index makes it "pip install 'equipoise[{extra}]'";
# tests/unit/test_docs.py then names the pages that still install from a checkout or say "is not on PyPI yet".
INSTALL: Final = "pip install '.[{extra}]' in a checkout, or with the path of a wheel instead of the dot"


def install_hint(extra: str) -> str:
    """Return how to install an optional part of equipoise, for the end of a message."""
    return f"to install it: {INSTALL.format(extra=extra)}"
