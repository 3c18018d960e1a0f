"""Options that several commands share, and the values that are typed for them."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated, Any

import typer

from equipoise.base.inputs import integer_in, number_in, shown

Json = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON instead of a table.")]
CsvFile = Annotated[Path | None, typer.Option("--csv", help="Also write the table to this CSV file.")]


def strategy_names(incomplete: str) -> list[str]:
    """Return the strategies whose names begin like this, for a shell that completes them."""
    from equipoise import strategies

    return [name for name in strategies.available() if name.startswith(incomplete)]


def strategy_files(typed: list[str] | None) -> list[Path]:
    """Return the files of the strategies that were typed as FILE.py:CLASS."""
    return [Path(f"{text.partition('.py:')[0]}.py") for text in typed or [] if ".py:" in text]


def with_own_strategies(typed: list[str] | None) -> list[str] | None:
    """
    Return strategies as they were typed; those in files, such as optimist.py:Optimist:c=2, by their names.

    A strategy in a file is registered: under the name that the file gives it, else under that of its class.
    """
    return None if typed is None else [_registered(text) for text in typed]


def _registered(text: str) -> str:
    if not (files := strategy_files([text])):
        return text
    from equipoise import strategies
    from equipoise.run.spec import imported

    [path] = files
    if not path.is_file():
        raise ValueError(f"cannot read the strategy {text!r}: there is no file {path}")
    name, colon, parameters = text.partition(".py:")[2].partition(":")
    found = imported("strategy", f"{path.stem}:{name}", path.resolve().parent)
    if not isinstance(found, type) or not issubclass(found, strategies.Strategy):
        raise TypeError(f"strategy must be FILE.py:CLASS of a subclass of eq.strategies.Strategy, got {text!r}")
    if "name" not in vars(found):
        strategies.register(name.lower())(found)
    return f"{found.name}{colon}{parameters}"


def number_or_text(text: str | None) -> int | float | str | None:
    """Return a number if the text is one; anything else is left for the command to judge."""
    for read in (integer_in, number_in):
        with contextlib.suppress(ValueError):
            return read(text) if text is not None else None
    return text


def number(what: str, text: str, whole: bool = False) -> float:
    """Return the number that was typed for an option."""
    try:
        return integer_in(text) if whole else number_in(text)
    except ValueError:
        raise ValueError(f"{what} must be {'an integer' if whole else 'a number'}, got {shown(text.strip())}") from None


def by_arm(option: str, typed: list[str] | None, alone: bool = False, whole: bool = False) -> Any:
    """
    Return {arm: number} from texts such as a=4, or None if there are none.

    Parameters
    ----------
    option
        The name of the option, such as --variance.
    typed
        What was typed, one text for each time the option was given.
    alone
        Whether a single number without an arm is allowed; it is returned as it is, for all arms.
    whole
        Whether the numbers must be integers.
    """
    typed = typed or []
    found: dict[str, float] = {}
    for text in typed:
        name, equals, value = text.rpartition("=")  # a name may contain one too
        name = name.strip()
        if not equals and alone and len(typed) == 1:
            return number(option, text, whole)
        if not equals or not name:
            raise ValueError(f"{option} must name an arm, as in {option} a=4, got {text!r}")
        if name in found:
            raise ValueError(f"{option} must be given once for each arm, got {name!r} twice")
        found[name] = number(f"{option} of arm {name!r}", value, whole)
    return found or None
