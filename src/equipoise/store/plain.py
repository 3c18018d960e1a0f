"""Names, options and strategies as JSON, and back to the very same objects."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from equipoise import strategies
from equipoise.errors import EquipoiseError
from equipoise.inputs import shown
from equipoise.problem import Stratified
from equipoise.strategies import Strategy


def dumps(thing: Any) -> str:
    """JSON of texts, numbers, None, and of lists, tuples, ranges and mappings of such."""
    return json.dumps(_plain(thing), ensure_ascii=False, separators=(",", ":"))


def loads(text: str) -> Any:
    """What `dumps` was given; NumPy's numbers come back as Python's."""
    return _thing(json.loads(text))


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
        # As pairs: keys need not be texts.
        return {"map": [[_plain(key), _plain(value)] for key, value in thing.items()]}
    if isinstance(thing, Stratified):
        return {"stratified": _plain(thing.shares)}
    raise TypeError(f"{shown(thing)} cannot be kept in a store; texts, numbers and tuples of them can")


def _thing(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_thing(each) for each in plain]
    if not isinstance(plain, dict):
        return plain
    ((kind, content),) = plain.items()
    if kind == "float":
        return float(content)
    if kind == "range":
        return range(*content)
    if kind == "tuple":
        return tuple(_thing(each) for each in content)
    if kind == "map":
        return {_thing(key): _thing(value) for key, value in content}
    if kind == "stratified":
        return Stratified(_thing(content))
    raise ValueError(kind)


def plain_strategy(strategy: Strategy) -> list[Any]:
    """A strategy as its name and its parameters."""
    if strategy.name not in strategies.available() or strategies.get(strategy.name) is not type(strategy):
        raise EquipoiseError(
            f"{strategy!r} is not registered, so that a store could not find it again; "
            "eq.strategies.register('name') does it"
        )
    return [strategy.name, {field.name: getattr(strategy, field.name) for field in dataclasses.fields(strategy)}]


def strategy_of(name: str, parameters: dict[str, Any]) -> Strategy:
    """The strategy that `plain_strategy` was given."""
    return strategies.get(name)(**parameters)
