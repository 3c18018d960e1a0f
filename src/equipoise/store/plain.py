"""Names and options as JSON, and back to equal objects."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import MOST_ARMS, shown
from equipoise.problem import Contrasts, Stratified

# What a text that `dumps` did not write may raise, here or where its content is used.
UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


def dumps(thing: Any) -> str:
    """Return JSON of strings, numbers, None, and of lists, tuples, ranges and mappings of them."""
    return json.dumps(_plain(thing), separators=(",", ":"))


def loads(text: str) -> Any:
    """Return what `dumps` was given; NumPy numbers come back as Python numbers."""
    try:
        return _thing(json.loads(text))
    except RecursionError:
        raise InvalidInput("it is nested too deeply") from None


def _range(start: int, stop: int, step: int) -> range:
    """Return a range that names arms: a few bytes say how much memory a study of them takes."""
    found = range(start, stop, step)
    if found[MOST_ARMS:]:
        raise InvalidInput(f"{shown(found)} has more than {MOST_ARMS:,} arms")
    return found


def _plain(thing: Any) -> Any:
    if isinstance(thing, np.generic):
        thing = thing.item()
    if isinstance(thing, float) and not math.isfinite(thing):
        return {"float": repr(thing)}
    if thing is None or isinstance(thing, str | int | float):
        return thing
    if isinstance(thing, list | np.ndarray):
        return [_plain(each) for each in thing]
    if isinstance(thing, range):
        return {"range": [thing.start, thing.stop, thing.step]}
    if isinstance(thing, tuple):
        return {"tuple": [_plain(each) for each in thing]}
    if isinstance(thing, Mapping):
        # As pairs: keys need not be strings.
        return {"map": [[_plain(key), _plain(value)] for key, value in thing.items()]}
    if isinstance(thing, Stratified):
        return {"stratified": _plain(thing.shares)}
    if isinstance(thing, Contrasts):
        return {"contrasts": _plain([thing.half_width, thing.to, None if thing.of is None else list(thing.of)])}
    raise TypeError(f"a store can hold strings, numbers and tuples of them, got {shown(thing)}")


def _thing(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_thing(each) for each in plain]
    if not isinstance(plain, dict):
        return plain
    ((kind, content),) = plain.items()
    if kind == "float":
        return float(content)
    if kind == "range":
        return _range(*content)
    if kind == "tuple":
        return tuple(_thing(each) for each in content)
    if kind == "map":
        return {_thing(key): _thing(value) for key, value in content}
    if kind == "stratified":
        return Stratified(_thing(content))
    if kind == "contrasts":
        half_width, to, of = _thing(content)
        return Contrasts(half_width, to=to, of=of)
    raise InvalidInput(kind)
