"""
Strategies: which arm to sample next, as arithmetic about evidence.

Every module of this folder is imported here, so that a file that registers a strategy is all it takes to add one.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from equipoise.strategies.strategy import (
    Strategy,
    Support,
    available,
    check_params,
    check_strategy,
    check_support,
    deserialise,
    get,
    initial_own,
    register,
    resolve,
    serialise,
)

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "Strategy",
    "Support",
    "available",
    "check_params",
    "check_strategy",
    "check_support",
    "deserialise",
    "get",
    "initial_own",
    "register",
    "resolve",
    "serialise",
]


def __getattr__(name: str) -> Any:
    """The class of a built-in strategy, by its name: `strategies.BAS`."""
    for strategy in map(get, available()):
        if strategy.__name__ == name:
            return strategy
    raise AttributeError(f"there is no strategy class {name!r}; the strategies are {', '.join(available())}")


def __dir__() -> list[str]:
    return sorted([*__all__, *(get(name).__name__ for name in available())])
