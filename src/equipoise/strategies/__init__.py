"""
Strategies: which arm to sample next, as arithmetic about evidence.

Every module of this folder is imported here, so a new strategy takes one new file that registers it.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from equipoise.strategies.checks import (
    check_compiles,
    check_formula,
    check_numbers,
    check_params,
    check_strategy,
    compile_error,
)
from equipoise.strategies.registry import available, deserialise, get, label, register, resolve, serialise
from equipoise.strategies.strategy import Numbers, Strategy, Support, check_support, initial_own, zeros

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "Numbers",
    "Strategy",
    "Support",
    "available",
    "check_compiles",
    "check_formula",
    "check_numbers",
    "check_params",
    "check_strategy",
    "check_support",
    "compile_error",
    "deserialise",
    "get",
    "initial_own",
    "label",
    "register",
    "resolve",
    "serialise",
    "zeros",
]

# What users need; the other names above are for the rest of the package.
_PUBLIC = ("Strategy", "Support", "available", "get", "label", "register", "resolve")


def __getattr__(name: str) -> Any:
    """Return the class of a registered strategy, such as `strategies.BAS`."""
    for strategy in map(get, available()):
        if strategy.__name__ == name:
            return strategy
    raise AttributeError(f"there is no strategy class {name!r}; the strategies are {', '.join(available())}")


def __dir__() -> list[str]:
    return sorted([*_PUBLIC, *(get(name).__name__ for name in available())])
