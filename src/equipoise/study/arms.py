"""
The arms of a study in memory, and the compiled steps that change them.

State lies in a few flat arrays, so that a step is one call of a compiled function with little to unpack:

- `floats[row, arm]`: mean, M2, own, the objective's scale; the key times the pulls, which changes with evidence alone;
  the keys, in the order of their heap; minus the pulls, in the order of theirs;
- `ints[row, arm]`: count and pulls; whether the arm is closed; the arms and the positions in the heap of keys; the same
  in the heap of pulls;
- `settings`: addresses and whole numbers; `numbers`: the support, the pooled variance, the objective's exponent, then
  the strategy's parameters;
- `costs` of each arm's sample and `money`, what is spent (a sum and what rounding took from it) and may be spent, where
  samples have costs;
- `tickets[id]`: the arm and the value of each ticket. No value yet is NaN; a forgotten ticket's is infinite. The arm of
  a ticket that was ever forgotten has a half added, by which it is known after a late answer too.

The heap of pulls, the least pulled arm on top, serves the floor. Without a floor its rows are not there.

A strategy's functions come as addresses, so that these kernels are compiled once and a new strategy compiles only
its own few lines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core.errors import NumbaError
from numba.extending import intrinsic
from numba.np.unsafe.ndarray import to_fixed_tuple

from equipoise import moments
from equipoise.compiled import address, borrowing, jit
from equipoise.errors import EquipoiseError
from equipoise.heap import change, heapify
from equipoise.strategies import Strategy
from equipoise.strategies import key as keys

MEAN, M2, OWN, SCALE, TOP, KEY, LEAST_SCORE = range(7)
COUNT, PULLS, CLOSED, HEAP, WHERE, LEAST, LEAST_WHERE = range(7)
VARIANCE, FLOOR, FREEZE, SHARE, WARMUP, POOL, SAMPLES, NEXT_REFRESH = range(8)
LOW, HIGH, BINARY, POOLED, EXPONENT, PARAMS = range(6)
ARM, VALUE = range(2)
SPENT, CARRY, LIMIT = range(3)

# Instead of an arm under the floor.
NONE, NO_FLOOR = -1, -2

# What a step answers: taken; the same was told before; outside the support; another value was told before; the ticket
# is of another arm; taken, but the strategy gave a variance that is none.
DONE, KNOWN, OUTSIDE, CONFLICT, OTHER_ARM, BAD_VARIANCE = range(6)

_POINTER = types.CPointer(types.float64)
_OF_MOMENTS = types.float64(*[types.float64] * 4, _POINTER)
_OF_ARM = types.float64(*[types.float64] * 5, _POINTER)
_OF_SAMPLE = types.float64(*[types.float64] * 6, _POINTER)
_OF_TIME = types.float64(*[types.float64] * 2, _POINTER)

_key = jit(keys.key)
_warmup_key = jit(keys.warmup_key)
_pool_arm = jit(keys.pool_arm)
_pooled_of = jit(keys.pooled_of)
_next_refresh = jit(keys.next_refresh)
_add = jit(moments.add)
_merge = jit(moments.merge)


# ---- a strategy's functions, by address


def addresses(strategy: Strategy, params: int) -> tuple[int, int, int, int]:
    """Where variance, floor, freeze and share are, compiled; 0 for those that the strategy has no use for."""
    return (
        _address(strategy, "variance", _of_arm, _OF_ARM, params),
        _address(strategy, "floor", _of_time, _OF_TIME, params) if strategy.has_floor() else 0,
        _address(strategy, "freeze", _of_sample, _OF_SAMPLE, params) if strategy.own == "frozen" else 0,
        _address(strategy, "share", _of_moments, _OF_MOMENTS, params) if strategy.pool != "none" else 0,
    )


_KNOWN: dict[tuple[Callable[..., float], int], int] = {}


def _address(strategy: Strategy, name: str, wrap: Callable[..., Any], signature: Any, params: int) -> int:
    function = getattr(strategy, name)
    if (function, params) not in _KNOWN:
        try:
            _KNOWN[function, params] = address(wrap(jit(function), params), signature)
        except NumbaError as error:
            raise EquipoiseError(
                f"{type(strategy).__name__}.{name} cannot be compiled; it may use numbers, math and functions compiled "
                f"with Numba, and params, a tuple of {params} here: {_reason(error)}"
            ) from error
    return _KNOWN[function, params]


def _reason(error: Exception) -> str:
    """What is wrong, out of the pages that Numba says about it: the first line that is not about its own stages."""
    lines = (line.strip() for line in re.sub(r"\x1b\[\d*m", "", str(error)).splitlines())
    return next((line for line in lines if line and not line.startswith("Failed in")), type(error).__name__)


def _of_arm(function: Callable[..., float], params: int) -> Callable[..., float]:
    def of_arm(count: float, mean: float, m2: float, pooled: float, own: float, pointer: Any) -> float:
        # An exception cannot leave a C function: it would be printed, and zero returned.
        try:
            return function(count, mean, m2, pooled, own, to_fixed_tuple(numba.carray(pointer, params), params))
        except Exception:
            return math.nan

    return of_arm


def _of_sample(function: Callable[..., float], params: int) -> Callable[..., float]:
    def of_sample(
        sample: float, count: float, mean: float, m2: float, pooled: float, own: float, pointer: Any
    ) -> float:
        try:
            return function(sample, count, mean, m2, pooled, own, to_fixed_tuple(numba.carray(pointer, params), params))
        except Exception:
            return math.nan

    return of_sample


def _of_moments(function: Callable[..., float], params: int) -> Callable[..., float]:
    def of_moments(count: float, mean: float, m2: float, own: float, pointer: Any) -> float:
        try:
            return function(count, mean, m2, own, to_fixed_tuple(numba.carray(pointer, params), params))
        except Exception:
            return math.nan

    return of_moments


def _of_time(function: Callable[..., float], params: int) -> Callable[..., float]:
    def of_time(t: float, arms: float, pointer: Any) -> float:
        try:
            return function(t, arms, to_fixed_tuple(numba.carray(pointer, params), params))
        except Exception:
            return math.nan

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
def _call_of_sample(
    typing: Any, where: Any, sample: Any, count: Any, mean: Any, m2: Any, pooled: Any, own: Any, numbers: Any
) -> Any:
    return types.float64(types.int64, *[types.float64] * 6, numbers), _call


@intrinsic
def _call_of_moments(typing: Any, where: Any, count: Any, mean: Any, m2: Any, own: Any, numbers: Any) -> Any:
    return types.float64(types.int64, *[types.float64] * 4, numbers), _call


@intrinsic
def _call_of_time(typing: Any, where: Any, t: Any, arms: Any, numbers: Any) -> Any:
    return types.float64(types.int64, *[types.float64] * 2, numbers), _call


# ---- the steps


@borrowing
def evaluate(floats: Any, ints: Any, settings: Any, numbers: Any, k: int) -> int:
    """Ask the strategy about arm k anew, if it is open; BAD_VARIANCE if its variance is not a finite number >= 0."""
    if ints[COUNT, k] < settings[WARMUP] or ints[CLOSED, k] != 0:
        return DONE
    # Read before the call, after which the compiler would wait for them: measured, twice as fast a step.
    scale = floats[SCALE, k]
    exponent = numbers[EXPONENT]
    v = _call_of_arm(
        settings[VARIANCE],
        float(ints[COUNT, k]),
        floats[MEAN, k],
        floats[M2, k],
        numbers[POOLED],
        floats[OWN, k],
        numbers,
    )
    fine = 0 <= v < math.inf
    floats[TOP, k] = _key(v, 1.0, scale, exponent) if fine else 0.0
    return DONE if fine else BAD_VARIANCE


@borrowing
def arm_key(floats: Any, ints: Any, settings: Any, k: int) -> float:
    """The key of arm k; -1 if the arm is closed."""
    if ints[CLOSED, k] != 0:
        return -1.0
    pulls = float(ints[PULLS, k])
    return _warmup_key(pulls) if ints[COUNT, k] < settings[WARMUP] or pulls == 0 else floats[TOP, k] / pulls


@borrowing
def rekey(floats: Any, ints: Any, settings: Any, k: int) -> None:
    """Put arm k where its key belongs."""
    change(floats, ints, KEY, HEAP, k, arm_key(floats, ints, settings, k))


@borrowing
def under_floor(floats: Any, ints: Any, settings: Any, numbers: Any, t: int) -> int:
    """
    The least pulled arm, if it has fewer pulls than the floor, else NONE; NO_FLOOR if the floor is not a number.

    The heap of pulls is put right here and only as far as needed: pulls grow, so that no arm has fewer than its
    entry says.
    """
    floor = _call_of_time(settings[FLOOR], float(t), float(floats.shape[1]), numbers)
    if math.isnan(floor):
        return NO_FLOOR
    while -floats[LEAST_SCORE, 0] < floor:
        k = ints[LEAST, 0]
        if -floats[LEAST_SCORE, 0] == ints[PULLS, k]:
            return k
        change(floats, ints, LEAST_SCORE, LEAST, k, -float(ints[PULLS, k]))
    return NONE


@borrowing
def rekey_all(floats: Any, ints: Any, settings: Any, numbers: Any) -> int:
    """Ask the strategy about every arm anew, and make the heap of keys anew."""
    answer = DONE
    for i in range(floats.shape[1]):
        k = ints[HEAP, i]
        if evaluate(floats, ints, settings, numbers, k) == BAD_VARIANCE:
            answer = BAD_VARIANCE
        floats[KEY, i] = arm_key(floats, ints, settings, k)
    heapify(floats, ints, KEY, HEAP)
    return answer


@borrowing
def refresh(floats: Any, ints: Any, settings: Any, numbers: Any) -> int:
    """Compute what is pooled and every key anew."""
    largest, total, arms = 0.0, 0.0, 0.0
    for k in range(floats.shape[1] if settings[SHARE] != 0 else 0):
        count = float(ints[COUNT, k])
        if count >= 2:
            share = _call_of_moments(settings[SHARE], count, floats[MEAN, k], floats[M2, k], floats[OWN, k], numbers)
            largest, total, arms = _pool_arm(share, largest, total, arms)
    numbers[POOLED] = _pooled_of(settings[POOL], largest, total, arms)
    return rekey_all(floats, ints, settings, numbers)


@borrowing
def ask(floats: Any, ints: Any, settings: Any, numbers: Any, tickets: Any, first: int, t: int, m: int) -> int:
    """
    Hand out m tickets from the id `first` on, after t pulls; the arm of the last one.

    Where the strategy's floor is not a number it stops, and returns -1 less the number of those handed out.
    """
    k = 0
    for j in range(m):
        k = under_floor(floats, ints, settings, numbers, t + j) if settings[FLOOR] != 0 else NONE
        if k == NO_FLOOR:
            return -1 - j
        if k == NONE:
            k = ints[HEAP, 0]
        ints[PULLS, k] += 1
        rekey(floats, ints, settings, k)
        tickets[first + j, ARM] = k
        tickets[first + j, VALUE] = math.nan
    return k


@borrowing
def spend(money: Any, amount: float) -> None:
    """Add to what is spent; what rounding takes from the sum is kept beside it (Neumaier), so that it never adds up."""
    before = money[SPENT]
    money[SPENT] = before + amount
    if abs(before) >= abs(amount):
        money[CARRY] += (before - money[SPENT]) + amount
    else:
        money[CARRY] += (amount - money[SPENT]) + before


@borrowing
def spend_on(money: Any, costs: Any, arms: Any) -> None:
    """Pay for a sample of each of these arms, one after the other."""
    for k in arms:
        spend(money, costs[k])


@borrowing
def affordable(money: Any, cost: float) -> bool:
    """Whether so much may still be spent."""
    return cost <= money[LIMIT] - money[SPENT] - money[CARRY]


@borrowing
def best_affordable(floats: Any, ints: Any, settings: Any, numbers: Any, costs: Any, money: Any, t: int) -> int:
    """What `under_floor` and the heap of keys say, among the open arms that can be paid for; NONE if there are none."""
    least = NONE
    best = NONE
    best_key = 0.0
    for i in range(floats.shape[1]):
        k = ints[HEAP, i]
        if ints[CLOSED, k] != 0 or not affordable(money, costs[k]):
            continue
        if least == NONE or ints[PULLS, k] < ints[PULLS, least] or (ints[PULLS, k] == ints[PULLS, least] and k < least):
            least = k
        if best == NONE or floats[KEY, i] > best_key or (floats[KEY, i] == best_key and k < best):
            best = k
            best_key = floats[KEY, i]
    if best == NONE or settings[FLOOR] == 0:
        return best
    floor = _call_of_time(settings[FLOOR], float(t), float(floats.shape[1]), numbers)
    return least if ints[PULLS, least] < floor else best


@borrowing
def ask_paid(
    floats: Any,
    ints: Any,
    settings: Any,
    numbers: Any,
    tickets: Any,
    costs: Any,
    money: Any,
    cheapest: float,
    first: int,
    t: int,
    m: int,
) -> int:
    """
    Hand out m tickets as `ask` does and pay for them, or fewer when the money is spent; how many.

    `cheapest` is what a sample costs of the cheapest open arm.

    Looking for the best arm that can be paid for takes a look at every arm, and is done only where the one that is
    wanted cannot be, near the end. Where the strategy's floor is not a number it returns as `ask` does.
    """
    for j in range(m):
        # Before the heap of pulls is touched, as a log knows nothing of asks that came to nothing.
        if not affordable(money, cheapest):
            return j
        k = under_floor(floats, ints, settings, numbers, t + j) if settings[FLOOR] != 0 else NONE
        if k == NO_FLOOR:
            return -1 - j
        if k == NONE:
            k = ints[HEAP, 0]
        if not affordable(money, costs[k]):
            k = best_affordable(floats, ints, settings, numbers, costs, money, t + j)
        spend(money, costs[k])
        ints[PULLS, k] += 1
        rekey(floats, ints, settings, k)
        tickets[first + j, ARM] = k
        tickets[first + j, VALUE] = math.nan
    return m


@borrowing
def inside(numbers: Any, value: float) -> bool:
    """Whether a value may be told; NaN and infinities may not."""
    if numbers[BINARY] != 0.0:
        return value == 0.0 or value == 1.0
    return numbers[LOW] <= value and value <= numbers[HIGH]


@borrowing
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
        floats[OWN, k] = _call_of_sample(
            settings[FREEZE],
            mean if count == 1 else math.nan,
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
    answer = evaluate(floats, ints, settings, numbers, k)
    rekey(floats, ints, settings, k)
    return answer


@borrowing
def check(numbers: Any, tickets: Any, ticket: int, arm: int, value: float) -> int:
    """Whether this value may be told for this ticket, which says that it is of this arm."""
    if int(tickets[ticket, ARM]) != arm:
        return OTHER_ARM
    if not inside(numbers, value):
        return OUTSIDE
    before = tickets[ticket, VALUE]
    if math.isfinite(before):
        return KNOWN if before == value else CONFLICT
    return DONE


@borrowing
def tell(floats: Any, ints: Any, settings: Any, numbers: Any, tickets: Any, ticket: int, arm: int, value: float) -> int:
    """The value of one ticket came in; a forgotten ticket's counts too, and was no longer in flight."""
    answer = check(numbers, tickets, ticket, arm, value)
    if answer != DONE:
        return answer
    landed = 1 if math.isnan(tickets[ticket, VALUE]) else 0
    tickets[ticket, VALUE] = value
    return evidence(floats, ints, settings, numbers, arm, 1, value, 0.0, landed)


@borrowing
def tell_many(
    floats: Any, ints: Any, settings: Any, numbers: Any, tickets: Any, told: Any, values: Any, earlier: Any
) -> tuple[int, int]:
    """
    All of them, in order, or none: the answer, and the first that would not do or the last that was taken.

    `earlier` is room for as many values.
    """
    for j in range(len(told)):
        answer = check(numbers, tickets, told[j], int(tickets[told[j], ARM]), values[j])
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


@borrowing
def forget(floats: Any, ints: Any, settings: Any, numbers: Any, tickets: Any, ticket: int, arm: int) -> int:
    """Give a ticket back; CONFLICT if it was answered, KNOWN if it was given back before."""
    if int(tickets[ticket, ARM]) != arm:
        return OTHER_ARM
    before = tickets[ticket, VALUE]
    if not math.isnan(before):
        return KNOWN if math.isinf(before) else CONFLICT
    tickets[ticket, ARM] = arm + 0.5
    tickets[ticket, VALUE] = math.inf
    ints[PULLS, arm] -= 1
    if settings[FLOOR] != 0 and ints[CLOSED, arm] == 0:
        change(floats, ints, LEAST_SCORE, LEAST, arm, -float(ints[PULLS, arm]))
    rekey(floats, ints, settings, arm)
    return DONE


@borrowing
def ask_arms(floats: Any, ints: Any, settings: Any, numbers: Any, tickets: Any, first: int, t: int, arms: Any) -> None:
    """As `ask`, for arms that somebody else chose."""
    for j in range(len(arms)):
        if settings[FLOOR] != 0:
            # Puts the heap of pulls right as far as `ask` does, so that the state is the same to the bit.
            under_floor(floats, ints, settings, numbers, t + j)
        k = arms[j]
        ints[PULLS, k] += 1
        rekey(floats, ints, settings, k)
        tickets[first + j, ARM] = k
        tickets[first + j, VALUE] = math.nan


@borrowing
def shut(floats: Any, ints: Any, settings: Any, numbers: Any, k: int, closed: int) -> int:
    """Close arm k, so that it comes last in both heaps, or open it again."""
    ints[CLOSED, k] = closed
    if settings[FLOOR] != 0:
        change(floats, ints, LEAST_SCORE, LEAST, k, -math.inf if closed != 0 else -float(ints[PULLS, k]))
    answer = evaluate(floats, ints, settings, numbers, k)
    rekey(floats, ints, settings, k)
    return answer
