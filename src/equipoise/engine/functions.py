"""
A strategy's functions as addresses of compiled code.

The steps of a study (`study.steps`) and the kernel for replays (`lab.lean`) take them as numbers, so that these are
compiled once and a new strategy compiles only its own few lines. Tuples are passed as pointers to where their numbers
lie, and those that a function returns are written to where they belong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from equipoise.base.arrays import Floats
from equipoise.compiled import address, call_address, jit
from equipoise.numeric.tuples import accumulator, loader, storer
from equipoise.strategies import Numbers, Strategy, compile_error

# The addresses, by name; 0 where a strategy has no use for a function.
FUNCTIONS = np.dtype([(name, np.int64) for name in ("variance", "floor", "keep", "share", "pool")])

FUNCTION_WORDS = FUNCTIONS.itemsize // 8

# How many numbers each function takes, and then how many pointers.
_TAKES = {"variance": (3, 3), "floor": (2, 1), "keep": (4, 3), "share": (3, 4), "pool": (1, 3)}


def compile_rule(strategy: Strategy, params: Numbers) -> Floats:
    """Return a strategy as the steps take it: the addresses of its functions, as FUNCTIONS, then its parameters."""
    used = {"variance": True, "floor": strategy.has_floor(), "keep": strategy.keeps()}
    used |= dict.fromkeys(("share", "pool"), bool(strategy.pooled))
    rule = np.zeros(FUNCTION_WORDS + len(params))
    functions = rule[:FUNCTION_WORDS].view(FUNCTIONS)
    for name in FUNCTIONS.names or ():
        functions[name] = _address(strategy, name, params) if used[name] else 0
    rule[FUNCTION_WORDS:] = params
    return rule


_KNOWN: dict[tuple[Any, ...], int] = {}


def _address(strategy: Strategy, name: str, params: Numbers) -> int:
    function = getattr(strategy, name)
    sizes = (len(strategy.pooled), len(strategy.own), len(strategy.sums), len(params))
    if (function, sizes) not in _KNOWN:
        try:
            _KNOWN[function, sizes] = address(_WRAPPERS[name](jit(function), *sizes), _signature(*_TAKES[name]))
        except Exception as error:  # most are Numba's own, but its passes raise others too
            raise compile_error(strategy, name, params, error) from error
    return _KNOWN[function, sizes]


def _signature(numbers: int, pointers: int) -> Any:
    return types.float64(*[types.float64] * numbers, *[types.CPointer(types.float64)] * pointers)


# ---- functions of numbers and of pointers to the tuples, built for their lengths; they return a float


def _variance(function: Callable[..., float], pooled: int, own: int, sums: int, params: int) -> Callable[..., float]:
    read_pooled, read_own, read_params = loader(pooled), loader(own), loader(params)

    def variance(count: float, mean: float, m2: float, shared: Any, kept: Any, given: Any) -> float:
        numbers = read_params(given, 0, 1)
        return float(function(count, mean, m2, read_pooled(shared, 0, 1), read_own(kept, 0, 1), numbers))

    return variance


def _floor(function: Callable[..., float], pooled: int, own: int, sums: int, params: int) -> Callable[..., float]:
    read_params = loader(params)

    def floor(t: float, arms: float, given: Any) -> float:
        return float(function(t, arms, read_params(given, 0, 1)))

    return floor


def _keep(function: Callable[..., Numbers], pooled: int, own: int, sums: int, params: int) -> Callable[..., float]:
    """Build the function that replaces an arm's own numbers."""
    read_pooled, read_own, read_params, write_own = loader(pooled), loader(own), loader(params), storer(own)

    def keep(sample: float, count: float, mean: float, m2: float, shared: Any, kept: Any, given: Any) -> float:
        numbers = read_params(given, 0, 1)
        found = function(sample, count, mean, m2, read_pooled(shared, 0, 1), read_own(kept, 0, 1), numbers)
        write_own(kept, 0, 1, found)
        return 0.0

    return keep


def _share(function: Callable[..., Numbers], pooled: int, own: int, sums: int, params: int) -> Callable[..., float]:
    """Build the function that adds an arm's shares to the sums."""
    read_pooled, read_own, read_params = loader(pooled), loader(own), loader(params)
    add = accumulator(sums)

    def share(count: float, mean: float, m2: float, shared: Any, kept: Any, totals: Any, given: Any) -> float:
        numbers = read_params(given, 0, 1)
        add(totals, 0, 1, function(count, mean, m2, read_pooled(shared, 0, 1), read_own(kept, 0, 1), numbers))
        return 0.0

    return share


def _pool(function: Callable[..., Numbers], pooled: int, own: int, sums: int, params: int) -> Callable[..., float]:
    """Build the function that replaces the pooled numbers."""
    read_pooled, read_sums, read_params, write_pooled = loader(pooled), loader(sums), loader(params), storer(pooled)

    def pool(arms: float, totals: Any, shared: Any, given: Any) -> float:
        found = function(read_sums(totals, 0, 1), arms, read_pooled(shared, 0, 1), read_params(given, 0, 1))
        write_pooled(shared, 0, 1, found)
        return 0.0

    return pool


_WRAPPERS: dict[str, Callable[..., Callable[..., float]]] = {
    "variance": _variance,
    "floor": _floor,
    "keep": _keep,
    "share": _share,
    "pool": _pool,
}


# ---- calls by address, inside compiled code: the address, the numbers, the buffer and the places of the tuples in it,
# then the rule with its parameters. A function that raises an error gives NaN: as its value, or in place of the first
# number that it would have written.


def _code(written: int | None = None) -> Callable[..., Any]:
    """Return what writes a call out; the function writes to the tuple at the place `written`, if to any."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        numbers = signature.args.count(types.float64)
        memory, rule = (context.make_array(signature.args[i])(context, builder, args[i]) for i in (numbers + 1, -1))
        tuples = [builder.gep(memory.data, [place]) for place in args[numbers + 2 : -1]]
        params = builder.gep(rule.data, [ir.Constant(ir.IntType(64), FUNCTION_WORDS)])
        given = [*args[1 : numbers + 1], *tuples, params]
        value = call_address(context, builder, args[0], _signature(numbers, len(tuples) + 1), given)
        if written is not None:
            with builder.if_then(builder.fcmp_unordered("uno", value, value), likely=False):
                builder.store(ir.Constant(ir.DoubleType(), math.nan), tuples[written])
        return value

    return code


@intrinsic
def call_variance(
    typing: Any, where: Any, count: Any, mean: Any, m2: Any, memory: Any, pooled_at: Any, own_at: Any, rule: Any
) -> Any:
    return types.float64(types.int64, *[types.float64] * 3, memory, types.intp, types.intp, rule), _code()


@intrinsic
def call_floor(typing: Any, where: Any, t: Any, arms: Any, memory: Any, rule: Any) -> Any:
    return types.float64(types.int64, *[types.float64] * 2, memory, rule), _code()


@intrinsic
def call_keep(
    typing: Any,
    where: Any,
    sample: Any,
    count: Any,
    mean: Any,
    m2: Any,
    memory: Any,
    pooled_at: Any,
    own_at: Any,
    rule: Any,
) -> Any:
    return types.float64(types.int64, *[types.float64] * 4, memory, types.intp, types.intp, rule), _code(written=1)


@intrinsic
def call_share(
    typing: Any,
    where: Any,
    count: Any,
    mean: Any,
    m2: Any,
    memory: Any,
    pooled_at: Any,
    own_at: Any,
    sums_at: Any,
    rule: Any,
) -> Any:
    return types.float64(types.int64, *[types.float64] * 3, memory, *[types.intp] * 3, rule), _code(written=2)


@intrinsic
def call_pool(typing: Any, where: Any, arms: Any, memory: Any, sums_at: Any, pooled_at: Any, rule: Any) -> Any:
    return types.float64(types.int64, types.float64, memory, types.intp, types.intp, rule), _code(written=1)
