"""
The arms of a study in memory, and the compiled steps that change them.

State lies in a few flat arrays, so that a step is one call of a compiled function with little to unpack:

- `floats[row, arm]`: mean, M2, own; the keys, in the order of their heap; minus the pulls, in the order of theirs;
- `ints[row, arm]`: count and pulls; whether the arm is closed; the arms and the positions in the heap of keys; the same
  in the heap of pulls;
- `settings`: addresses and whole numbers; `numbers`: the support, the pooled variance, then the strategy's parameters;
- `tickets[id]`: the arm and the value of each ticket. No value yet is NaN; a forgotten ticket's is infinite.

The heap of pulls, the least pulled arm on top, serves the floor. Without a floor its rows are not there.

A strategy's functions come as addresses, so that these kernels are compiled once and a new strategy compiles only
its own few lines.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.unsafe.ndarray import to_fixed_tuple

from equipoise import moments
from equipoise.compiled import address, jit
from equipoise.heap import change, heapify
from equipoise.strategies import Strategy
from equipoise.strategies import key as keys

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MEAN, M2, OWN, KEY, LEAST_SCORE = range(5)
COUNT, PULLS, CLOSED, HEAP, WHERE, LEAST, LEAST_WHERE = range(7)
VARIANCE, FLOOR, FREEZE, WARMUP, POOL, SAMPLES, NEXT_REFRESH = range(7)
LOW, HIGH, BINARY, POOLED, PARAMS = range(5)
ARM, VALUE = range(2)

# What a step answers: taken; the same was told before; outside the support; another value was told before; taken, but
# the strategy gave a variance that is none.
DONE, KNOWN, OUTSIDE, CONFLICT, BAD_VARIANCE = range(5)

_POINTER = types.CPointer(types.float64)
_OF_ARM = types.float64(*[types.float64] * 5, _POINTER)
_OF_TIME = types.float64(*[types.float64] * 2, _POINTER)

_key = jit(keys.key)
_warmup_key = jit(keys.warmup_key)
_pooled = jit(keys.pooled)
_next_refresh = jit(keys.next_refresh)
_add = jit(moments.add)
_merge = jit(moments.merge)


# ---- a strategy's functions, by address


def addresses(strategy: Strategy, params: int) -> tuple[int, int, int]:
    """Where variance, floor and freeze are, compiled; 0 for a floor or freeze that the strategy does not have."""
    return (
        _address(strategy.variance, _of_arm, _OF_ARM, params),
        _address(strategy.floor, _of_time, _OF_TIME, params) if strategy.has_floor() else 0,
        _address(strategy.freeze, _of_arm, _OF_ARM, params) if strategy.own == "frozen" else 0,
    )


_KNOWN: dict[tuple[Callable[..., float], int], int] = {}


def _address(function: Callable[..., float], wrap: Callable[..., Any], signature: Any, params: int) -> int:
    if (function, params) not in _KNOWN:
        _KNOWN[function, params] = address(wrap(jit(function), params), signature)
    return _KNOWN[function, params]


def _of_arm(function: Callable[..., float], params: int) -> Callable[..., float]:
    def of_arm(count: float, mean: float, m2: float, pooled: float, own: float, pointer: Any) -> float:
        return function(count, mean, m2, pooled, own, to_fixed_tuple(numba.carray(pointer, params), params))

    return of_arm


def _of_time(function: Callable[..., float], params: int) -> Callable[..., float]:
    def of_time(t: float, arms: float, pointer: Any) -> float:
        return function(t, arms, to_fixed_tuple(numba.carray(pointer, params), params))

    return of_time


def _call(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Call the function at address args[0] with the numbers that follow and a pointer to args[-1][PARAMS]."""
    array = context.make_array(signature.args[-1])(context, builder, args[-1])
    params = builder.gep(array.data, [ir.Constant(ir.IntType(64), PARAMS)])
    double = ir.DoubleType()
    kind = ir.FunctionType(double, [double] * (len(args) - 2) + [double.as_pointer()])
    return builder.call(builder.inttoptr(args[0], kind.as_pointer()), [*args[1:-1], params])


@intrinsic
def _call_of_arm(typing: Any, where: Any, count: Any, mean: Any, m2: Any, pooled: Any, own: Any, numbers: Any) -> Any:
    return types.float64(types.int64, *[types.float64] * 5, numbers), _call


@intrinsic
def _call_of_time(typing: Any, where: Any, t: Any, arms: Any, numbers: Any) -> Any:
    return types.float64(types.int64, *[types.float64] * 2, numbers), _call


# ---- the steps


@jit
def arm_key(floats: Any, ints: Any, settings: Any, numbers: Any, k: int) -> float:
    """The key of arm k as it stands; NaN if the strategy's variance is not a number >= 0; -1 if it is closed."""
    if ints[CLOSED, k] != 0:
        return -1.0
    pulls = float(ints[PULLS, k])
    if ints[COUNT, k] < settings[WARMUP]:
        return _warmup_key(pulls)
    v = _call_of_arm(
        settings[VARIANCE],
        float(ints[COUNT, k]),
        floats[MEAN, k],
        floats[M2, k],
        numbers[POOLED],
        floats[OWN, k],
        numbers,
    )
    return _key(v, pulls, 1.0, 1.0) if v >= 0 else math.nan


@jit
def rekey(floats: Any, ints: Any, settings: Any, numbers: Any, k: int) -> int:
    """Put arm k where its key belongs."""
    s = arm_key(floats, ints, settings, numbers, k)
    change(floats, ints, KEY, HEAP, k, 0.0 if math.isnan(s) else s)
    return BAD_VARIANCE if math.isnan(s) else DONE


@jit
def under_floor(floats: Any, ints: Any, settings: Any, numbers: Any, t: int) -> int:
    """
    The least pulled arm, if it has fewer pulls than the floor, else -1.

    The heap of pulls is put right here and only as far as needed: pulls grow, so that no arm has fewer than its
    entry says.
    """
    floor = _call_of_time(settings[FLOOR], float(t), float(floats.shape[1]), numbers)
    while -floats[LEAST_SCORE, 0] < floor:
        k = ints[LEAST, 0]
        if -floats[LEAST_SCORE, 0] == ints[PULLS, k]:
            return k
        change(floats, ints, LEAST_SCORE, LEAST, k, -float(ints[PULLS, k]))
    return -1


@jit
def refresh(floats: Any, ints: Any, settings: Any, numbers: Any) -> int:
    """Compute the pooled variance and every key anew."""
    arms = floats.shape[1]
    numbers[POOLED] = _pooled(settings[POOL], ints[COUNT], floats[M2])
    answer = DONE
    for i in range(arms):
        s = arm_key(floats, ints, settings, numbers, ints[HEAP, i])
        if math.isnan(s):
            s = 0.0
            answer = BAD_VARIANCE
        floats[KEY, i] = s
    heapify(floats, ints, KEY, HEAP)
    return answer


@jit
def ask(floats: Any, ints: Any, settings: Any, numbers: Any, tickets: Any, first: int, t: int, m: int) -> int:
    """Hand out m tickets from the id `first` on, after t pulls; the arm of the last one."""
    k = 0
    for j in range(m):
        k = under_floor(floats, ints, settings, numbers, t + j) if settings[FLOOR] != 0 else -1
        if k < 0:
            k = ints[HEAP, 0]
        ints[PULLS, k] += 1
        rekey(floats, ints, settings, numbers, k)
        tickets[first + j, ARM] = k
        tickets[first + j, VALUE] = math.nan
    return k


@jit
def inside(numbers: Any, value: float) -> bool:
    """Whether a value may be told; NaN and infinities may not."""
    if numbers[BINARY] != 0.0:
        return value == 0.0 or value == 1.0
    return numbers[LOW] <= value and value <= numbers[HIGH]


@jit
def evidence(
    floats: Any,
    ints: Any,
    settings: Any,
    numbers: Any,
    k: int,
    count: int,
    mean: float,
    m2: float,
    landed: int,
) -> int:
    """Samples of arm k came in, `landed` of which were in flight."""
    if count == 1:
        _, floats[MEAN, k], floats[M2, k] = _add(ints[COUNT, k], floats[MEAN, k], floats[M2, k], mean)
    else:
        _, floats[MEAN, k], floats[M2, k] = _merge(ints[COUNT, k], floats[MEAN, k], floats[M2, k], count, mean, m2)
    ints[COUNT, k] += count
    ints[PULLS, k] += count - landed
    if settings[FREEZE] != 0:
        floats[OWN, k] = _call_of_arm(
            settings[FREEZE],
            float(ints[COUNT, k]),
            floats[MEAN, k],
            floats[M2, k],
            numbers[POOLED],
            floats[OWN, k],
            numbers,
        )
    settings[SAMPLES] += count
    if settings[POOL] != 0 and settings[SAMPLES] >= settings[NEXT_REFRESH]:
        settings[NEXT_REFRESH] = _next_refresh(settings[SAMPLES], floats.shape[1])
        return refresh(floats, ints, settings, numbers)
    return rekey(floats, ints, settings, numbers, k)


@jit
def check(numbers: Any, tickets: Any, ticket: int, value: float) -> int:
    """Whether this value may be told for this ticket."""
    if not inside(numbers, value):
        return OUTSIDE
    before = tickets[ticket, VALUE]
    if math.isfinite(before):
        return KNOWN if before == value else CONFLICT
    return DONE


@jit
def tell(floats: Any, ints: Any, settings: Any, numbers: Any, tickets: Any, ticket: int, value: float) -> int:
    """The value of one ticket came in; a forgotten ticket's counts too, and was no longer in flight."""
    answer = check(numbers, tickets, ticket, value)
    if answer != DONE:
        return answer
    landed = 1 if math.isnan(tickets[ticket, VALUE]) else 0
    tickets[ticket, VALUE] = value
    return evidence(floats, ints, settings, numbers, int(tickets[ticket, ARM]), 1, value, 0.0, landed)


@jit
def tell_many(
    floats: Any, ints: Any, settings: Any, numbers: Any, tickets: Any, told: Any, values: Any
) -> tuple[int, int]:
    """All of them, in order, or none: the answer, and the first that would not do or the last that was taken."""
    earlier = np.empty(len(told))
    for j in range(len(told)):
        answer = check(numbers, tickets, told[j], values[j])
        if answer in (OUTSIDE, CONFLICT):
            # Undo, last first, so that a ticket that came twice ends as it was.
            for i in range(j - 1, -1, -1):
                tickets[told[i], VALUE] = earlier[i]
            return answer, j
        earlier[j] = tickets[told[j], VALUE]
        tickets[told[j], VALUE] = values[j]
    worst = DONE
    bad = -1
    for j in range(len(told)):
        if math.isfinite(earlier[j]):
            continue
        k = int(tickets[told[j], ARM])
        landed = 1 if math.isnan(earlier[j]) else 0
        if evidence(floats, ints, settings, numbers, k, 1, values[j], 0.0, landed) == BAD_VARIANCE:
            worst = BAD_VARIANCE
            bad = j
    return worst, bad


@jit
def forget(floats: Any, ints: Any, settings: Any, numbers: Any, tickets: Any, ticket: int) -> int:
    """Give a ticket back; CONFLICT if it was answered, KNOWN if it was given back before."""
    before = tickets[ticket, VALUE]
    if not math.isnan(before):
        return KNOWN if math.isinf(before) else CONFLICT
    tickets[ticket, VALUE] = math.inf
    k = int(tickets[ticket, ARM])
    ints[PULLS, k] -= 1
    if settings[FLOOR] != 0 and ints[CLOSED, k] == 0:
        change(floats, ints, LEAST_SCORE, LEAST, k, -float(ints[PULLS, k]))
    return rekey(floats, ints, settings, numbers, k)


@jit
def ask_arms(floats: Any, ints: Any, settings: Any, numbers: Any, tickets: Any, first: int, t: int, arms: Any) -> None:
    """As `ask`, for arms that somebody else chose."""
    for j in range(len(arms)):
        if settings[FLOOR] != 0:
            # Puts the heap of pulls right as far as `ask` does, so that the state is the same to the bit.
            under_floor(floats, ints, settings, numbers, t + j)
        k = arms[j]
        ints[PULLS, k] += 1
        rekey(floats, ints, settings, numbers, k)
        tickets[first + j, ARM] = k
        tickets[first + j, VALUE] = math.nan


@jit
def shut(floats: Any, ints: Any, settings: Any, numbers: Any, k: int, closed: int) -> int:
    """Close arm k, so that it comes last in both heaps, or open it again."""
    ints[CLOSED, k] = closed
    if settings[FLOOR] != 0:
        change(floats, ints, LEAST_SCORE, LEAST, k, -math.inf if closed != 0 else -float(ints[PULLS, k]))
    return rekey(floats, ints, settings, numbers, k)
