"""Commands with parameters: what stands for {VAR} in them, in all combinations, as hyperfine has it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import number_in, shown

# The most values of a parameter, and the most commands that may come of all of them.
_MOST: Final = 1000
# The most digits of a number in a scan, before the point and after it: 28 are computed with.
_PLACES: Final = 14


@dataclass(frozen=True)
class Filled:
    """
    Command lines, with values in the places of parameters: the commands, and what is run around them.

    `chosen` has the values of each command.
    """

    commands: list[str]
    names: list[str]
    prepare: list[str]
    setup: list[str]
    cleanup: list[str]
    chosen: list[dict[str, str]]


def scan(low: str, high: str, step: str | None = None) -> list[str]:
    """Return the numbers from one to another, both included, as texts with as many decimals as they need."""
    first, last, each = (
        _decimal(what, text) for what, text in (("MIN", low), ("MAX", high), ("the step", step or "1"))
    )
    if each <= 0 or last < first:
        raise InvalidInput(
            f"a parameter must be scanned from MIN up to MAX by a positive step, got {first} to {last} by {each}"
        )
    many = int((last - first) / each) + 1
    if many > _MOST:
        raise InvalidInput(f"a parameter must have at most {_MOST:,} values, got {many:,}")
    return [f"{first + i * each:f}" for i in range(many)]


def _decimal(what: str, text: str) -> Decimal:
    try:
        number_in(text)
        found = Decimal(text)
    except (ValueError, InvalidOperation):
        found = Decimal("nan")
    if not found.is_finite():
        raise InvalidInput(f"{what} of a parameter must be a number, got {shown(text)}")
    if max(found.adjusted() + 1, -int(found.as_tuple().exponent)) > _PLACES:
        raise InvalidInput(
            f"{what} of a parameter must have at most {_PLACES} digits before and after the point, got {shown(text)}"
        )
    return found


def listed(text: str) -> list[str]:
    r"""Return the values of a list such as "a,b,c"; a comma in a value is written as "\,"."""
    return [value.replace("\\,", ",") for value in re.split(r"(?<!\\),", text)]


def fill(
    values: Mapping[str, Sequence[str]],
    commands: Sequence[str],
    names: Sequence[str] = (),
    prepare: Sequence[str] = (),
    setup: Sequence[str] = (),
    cleanup: Sequence[str] = (),
) -> Filled:
    """
    Return command lines with every combination of values.

    Parameters
    ----------
    values
        The values of each parameter, by its name.
    commands, names, prepare
        The commands, with a name and what is run before each; names and the latter may be left out, be one for all, one
        for each, or one for each command that comes of the values.
    setup, cleanup
        What is run before and after all commands: once for each text that comes of it.
    """
    for name in values:
        if not any(f"{{{name}}}" in text for text in (*commands, *prepare)):
            raise InvalidInput(
                f"a command must have {{{name}}} in it for the parameter {name!r}, got {shown(commands[0])}"
            )
    combined = [dict(zip(values, some, strict=True)) for some in itertools.product(*values.values())]
    if len(combined) * len(commands) > _MOST:
        raise InvalidInput(f"there must be at most {_MOST:,} commands, got {len(combined) * len(commands):,}")

    chosen = [values_of for values_of in combined for _ in commands]

    def for_each(texts: Sequence[str]) -> list[str]:
        if len(texts) == 1 and values:
            texts = [*texts] * len(commands)
        if len(texts) == len(commands):
            texts = [*texts] * len(combined)
        # Another number than there are commands is refused as it was given.
        return [*map(_in, texts, chosen)] if len(texts) == len(chosen) else [*texts]

    def once(texts: Sequence[str]) -> list[str]:
        return [*dict.fromkeys(_in(text, chosen) for chosen in combined for text in texts)]

    return Filled(for_each(commands), for_each(names), for_each(prepare), once(setup), once(cleanup), chosen)


def _in(text: str, chosen: Mapping[str, str]) -> str:
    """Return a text with values in the places of parameters; what is in braces in a value stays as it is."""
    if not chosen:
        return text
    places = re.compile("|".join(re.escape(f"{{{name}}}") for name in chosen))
    return places.sub(lambda found: chosen[found[0][1:-1]], text)
