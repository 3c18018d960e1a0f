"""Misspelt keyword arguments, refused by name and with a suggestion."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from equipoise.inputs import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")


def suggests_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """
    Decorate a function so that an unknown keyword is refused with the nearest one that it has.

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
    name = function.__qualname__.rpartition("<locals>.")[2].removesuffix(".__init__")

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for keyword in kwargs:
            if keyword not in known:
                raise TypeError(f"{name}() has no argument {keyword!r}{did_you_mean(keyword, known)}")
        return function(*args, **kwargs)

    return checked
