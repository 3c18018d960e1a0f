"""
A strategy's functions as addresses of compiled code.

The steps of a study (`study.steps`) take them as numbers, so that the steps are compiled once and a new strategy
compiles only its own few lines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.unsafe.ndarray import to_fixed_tuple

from equipoise.arrays import Floats
from equipoise.compiled import address, call_address, jit
from equipoise.strategies import Strategy, compile_error

# The addresses, by name; 0 where a strategy has no use for a function.
FUNCTIONS = np.dtype([("variance", np.int64), ("floor", np.int64), ("freeze", np.int64), ("share", np.int64)])

FUNCTION_WORDS = FUNCTIONS.itemsize // 8

# How many numbers each function takes before the parameters.
_NUMBERS = {"variance": 5, "floor": 2, "freeze": 6, "share": 4}


def compile_rule(strategy: Strategy, params: tuple[float, ...]) -> Floats:
    """Return a strategy as the steps take it: the addresses of its functions, as FUNCTIONS, then its parameters."""
    params = params or (0.0,)  # a compiled tuple cannot be empty
    rule = np.empty(FUNCTION_WORDS + len(params))
    functions = rule[:FUNCTION_WORDS].view(FUNCTIONS)
    functions["variance"] = _address(strategy, "variance", len(params))
    functions["floor"] = _address(strategy, "floor", len(params)) if strategy.has_floor() else 0
    functions["freeze"] = _address(strategy, "freeze", len(params)) if strategy.own == "frozen" else 0
    functions["share"] = _address(strategy, "share", len(params)) if strategy.pool != "none" else 0
    rule[FUNCTION_WORDS:] = params
    return rule


_KNOWN: dict[tuple[Callable[..., float], int], int] = {}


def _address(strategy: Strategy, name: str, params: int) -> int:
    function = getattr(strategy, name)
    if (function, params) not in _KNOWN:
        try:
            _KNOWN[function, params] = address(_WRAPPERS[name](jit(function), params), _signature(_NUMBERS[name]))
        except Exception as error:  # most are Numba's own, but its passes raise others too
            raise compile_error(strategy, name, params, error) from error
    return _KNOWN[function, params]


def _signature(numbers: int) -> Any:
    return types.float64(*[types.float64] * numbers, types.CPointer(types.float64))


# ---- functions of numbers and a pointer to the parameters, which return a float whatever the strategy returns


def _variance(function: Callable[..., float], params: int) -> Callable[..., float]:
    def variance(count: float, mean: float, m2: float, pooled: float, own: float, pointer: Any) -> float:
        return float(function(count, mean, m2, pooled, own, to_fixed_tuple(numba.carray(pointer, params), params)))

    return variance


def _floor(function: Callable[..., float], params: int) -> Callable[..., float]:
    def floor(t: float, arms: float, pointer: Any) -> float:
        return float(function(t, arms, to_fixed_tuple(numba.carray(pointer, params), params)))

    return floor


def _freeze(function: Callable[..., float], params: int) -> Callable[..., float]:
    def freeze(sample: float, count: float, mean: float, m2: float, pooled: float, own: float, pointer: Any) -> float:
        return float(
            function(sample, count, mean, m2, pooled, own, to_fixed_tuple(numba.carray(pointer, params), params))
        )

    return freeze


def _share(function: Callable[..., float], params: int) -> Callable[..., float]:
    def share(count: float, mean: float, m2: float, own: float, pointer: Any) -> float:
        return float(function(count, mean, m2, own, to_fixed_tuple(numba.carray(pointer, params), params)))

    return share


_WRAPPERS = {"variance": _variance, "floor": _floor, "freeze": _freeze, "share": _share}


# ---- calls by address, inside compiled code: the address, the numbers, then the rule with its parameters


def _call(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    where, *numbers, rule = args
    words = context.make_array(signature.args[-1])(context, builder, rule)
    params = builder.gep(words.data, [ir.Constant(ir.IntType(64), FUNCTION_WORDS)])
    return call_address(context, builder, where, _signature(len(numbers)), [*numbers, params])


@intrinsic
def call_variance(typing: Any, where: Any, count: Any, mean: Any, m2: Any, pooled: Any, own: Any, rule: Any) -> Any:
    return types.float64(types.int64, *[types.float64] * 5, rule), _call


@intrinsic
def call_floor(typing: Any, where: Any, t: Any, arms: Any, rule: Any) -> Any:
    return types.float64(types.int64, *[types.float64] * 2, rule), _call


@intrinsic
def call_freeze(
    typing: Any, where: Any, sample: Any, count: Any, mean: Any, m2: Any, pooled: Any, own: Any, rule: Any
) -> Any:
    return types.float64(types.int64, *[types.float64] * 6, rule), _call


@intrinsic
def call_share(typing: Any, where: Any, count: Any, mean: Any, m2: Any, own: Any, rule: Any) -> Any:
    return types.float64(types.int64, *[types.float64] * 4, rule), _call
