"""Misspelt and misplaced arguments, refused by name and with a suggestion."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from equipoise.base.inputs import did_you_mean, shown, spoken

P = ParamSpec("P")
R = TypeVar("R")


def suggests_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """
    Decorate a function so that an unknown keyword is refused with the nearest one, and what is given twice by name.

    The signature, the docstring and the types stay those of the function. For a class, decorate `__init__`.

    Examples
    --------
    >>> @suggests_keywords
    ... def measure(arm, *, budget=10): ...
    >>> measure("a", bugdet=20)
    Traceback (most recent call last):
    ...
    TypeError: measure() has no argument 'bugdet'; did you mean 'budget'?
    """
    parameters = inspect.signature(function).parameters.values()
    known = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name != "self"]
    # With `self`, where there is one: it is among the arguments by position.
    first = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    endless = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    name = function.__qualname__.rpartition("<locals>.")[2].removesuffix(".__init__")

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for keyword in kwargs:
            if keyword not in known:
                raise TypeError(f"{name}() has no argument {keyword!r}{did_you_mean(keyword, known)}")
        for argument, given in zip(first, args, strict=False):
            if argument in kwargs:
                raise TypeError(
                    f"{name}() must be given {argument} once, got {shown(given)} by position and "
                    f"{shown(kwargs[argument])} by name"
                )
        if len(args) > len(first) and not endless:
            others = [each for each in known if each not in first]
            by_name = f"; give the others by name, as in {others[0]}=..." if others else ""
            raise TypeError(
                f"{name}() must be given at most {spoken([each for each in first if each != 'self'])} by position, "
                f"got {shown(args[len(first)])} besides{by_name}"
            )
        return function(*args, **kwargs)

    return checked
