"""Strategies by name: register one, find it, print it, save it and make it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from equipoise.base.errors import EquipoiseError, InvalidInput
from equipoise.base.inputs import did_you_mean, plain_name, shown
from equipoise.strategies.checks import warn_if_pool_is_undeclared
from equipoise.strategies.strategy import Strategy

StrategyClass = TypeVar("StrategyClass", bound=type[Strategy])

_REGISTER: dict[str, type[Strategy]] = {}


def register(name: str) -> Callable[[StrategyClass], StrategyClass]:
    """
    Register a strategy under a name; a class decorator.

    Examples
    --------
    >>> import equipoise as eq
    >>> @eq.strategies.register("plug-in")
    ... class PlugIn(eq.strategies.Strategy):
    ...     @staticmethod
    ...     def variance(count, mean, m2, pooled, own, params):
    ...         return m2 / (count - 1)
    >>> eq.Study(["a", "b"], budget=100, strategy="plug-in").ask().arm
    'a'
    """
    if not name or name != name.strip().lower():
        raise InvalidInput(f"the name of a strategy must be in lower case, such as 'my-strategy', got {shown(name)}")

    def enter(strategy: StrategyClass) -> StrategyClass:
        if not (isinstance(strategy, type) and issubclass(strategy, Strategy)):
            raise TypeError(f"a strategy must be a subclass of eq.strategies.Strategy, got {shown(strategy)}")
        known = _REGISTER.get(name)
        # Running a notebook's cell again defines the same class again; anything else under the same name is a mistake.
        if known and (known.__module__, known.__qualname__) != (strategy.__module__, strategy.__qualname__):
            raise InvalidInput(f"a strategy {name!r} is already registered, by {known.__module__}.{known.__qualname__}")
        warn_if_pool_is_undeclared(strategy, stacklevel=3)
        strategy.name = name
        _REGISTER[name] = strategy
        return strategy

    return enter


def available() -> tuple[str, ...]:
    """Return the names of all registered strategies, sorted."""
    return tuple(sorted(_REGISTER))


def get(name: str) -> type[Strategy]:
    """Return the class that is registered under a name."""
    if name in _REGISTER:
        return _REGISTER[name]
    # Whoever types the name of the class, such as "GAFSMAX", means its strategy.
    by_class = {strategy.__name__.lower(): known for known, strategy in _REGISTER.items()}
    word = by_class.get(name.lower(), name.lower())
    hint = did_you_mean(word, _REGISTER) or f"; the strategies are {', '.join(available())}"
    raise InvalidInput(f"there is no strategy {name!r}{hint}")


def resolve(strategy: str | Strategy) -> Strategy:
    """Return a strategy as it is, or the one of this name with its defaults."""
    if isinstance(strategy, Strategy):
        return strategy
    if isinstance(strategy, str):
        return get(strategy)()
    if isinstance(strategy, type) and issubclass(strategy, Strategy):
        raise TypeError(f"strategy must be an instance, got the class {strategy.__name__}; write {strategy.__name__}()")
    raise TypeError(
        "strategy must be a name such as 'auto' or an object such as eq.strategies.BAS(exploration=0.5), "
        f"got {shown(strategy)}"
    )


def label(strategy: Strategy) -> str:
    """
    Return a strategy's name with the parameters that are not its defaults.

    For example "b-as (exploration=0.5)".
    """
    given = [f"{name}={plain_name(value)!r}" for name, value, default in _parameters(strategy) if value != default]
    name = strategy.name or type(strategy).__name__
    return f"{name} ({', '.join(given)})" if given else name


def serialise(strategy: Strategy) -> dict[str, Any]:
    """
    Return a registered strategy as its name and its parameters.

    `deserialise` makes the strategy from them.
    """
    if _REGISTER.get(strategy.name) is not type(strategy):
        raise EquipoiseError(
            f"{strategy!r} must be registered so that it can be saved; use @eq.strategies.register('name')"
        )
    return {"name": strategy.name, "parameters": {name: value for name, value, _ in _parameters(strategy)}}


def deserialise(saved: dict[str, Any]) -> Strategy:
    """Return the strategy that `serialise` was given."""
    return get(saved["name"])(**saved["parameters"])


def _parameters(strategy: Strategy) -> list[tuple[str, Any, Any]]:
    """Return the name, the value and the default of each parameter; the default is MISSING if there is none."""
    return [
        (
            field.name,
            getattr(strategy, field.name),
            field.default if field.default_factory is MISSING else field.default_factory(),
        )
        for field in fields(strategy)
        if field.init
    ]
