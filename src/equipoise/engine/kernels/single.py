"""
The CPU kernel that simulates one run at a time: late answers, and samples that have prices.

A fixed number of pulls is kept in flight: they are asked for first, then the answers come one at a time, the oldest
first, and after each the next pull is asked for; at the end all answers come in. The variance of an arm sees the
samples that are in, its pulls also count those in flight, and the floor goes by the pulls asked for, as in a study.

With prices the budget is money. An arm that is wanted and costs more than is left is closed, as there will never be
more, and the rule is asked again about the others, until all are closed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np

from equipoise.compiled import jit
from equipoise.engine.kernels.own import Own
from equipoise.engine.rule import Rule, Steps, steps
from equipoise.engine.streams import U, pair_of
from equipoise.numeric.heap import ENTRY, NO_ARM, arm_at, change, heapify, least_pulled, replace_top
from equipoise.problem import money
from equipoise.strategies import key as formulas

_warmup_key = jit(formulas.warmup_key)
_next_refresh = jit(formulas.next_refresh)
_in_turn = jit(formulas.in_turn)
_spend = jit(money.spend)
_affordable = jit(money.affordable)


def arm_record(late: bool) -> Any:
    """
    Return the record of an arm, as Numba's type.

    An arm's numbers lie together, in half a line of memory or in a whole one. `spare` is the second sample of a pair;
    with late answers `pulls` also counts those in flight, and `top` is the key times the pulls, which changes with
    answers alone. The strategy's own numbers are in an array next to it.
    """
    names = ["count", "mean", "m2", "spare", *(["pulls", "top"] if late else [])]
    record: Any = {"names": names, "formats": ["f8"] * len(names), "itemsize": 32 if len(names) <= 4 else 64}
    return numba.from_dtype(np.dtype(record))


class Variant(NamedTuple):
    """
    What the kernel is compiled for besides the rule; `priced` or `late` holds.

    Attributes
    ----------
    scanned
        Whether every decision looks at all arms instead of the top of a heap.
    priced
        Whether samples have costs and the limits are money.
    late
        Whether more than one pull is in flight.
    """

    scanned: bool
    priced: bool
    late: bool


def single(rule: Rule, variant: Variant) -> Callable[..., None]:
    """Return the kernel, not compiled yet."""
    found, own = steps(rule, jit, jit), Own.of(rule)
    pulls_of, evaluate = _pulls_of(variant), _evaluate(found, own)
    arm_key = _arm_key(pulls_of, evaluate, variant)
    queue = Queue(
        _rekey(arm_key, variant, found.floor), _rekey_all(arm_key, variant), _choose(found, pulls_of, variant)
    )
    pool_all = _pool_all(found, own, rule.sums) if rule.pool is not None else None
    simulate = _simulate(rule, found, own, variant, evaluate, queue, pool_all)

    def run(laws: Any, limits: Any, numbers: Any, ends: Any, costs: Any, in_flight: int) -> None:
        for place in range(len(laws.runs)):
            simulate(laws, place, limits, numbers, ends, costs, in_flight)

    return run


class Queue(NamedTuple):
    """What finds the next arm, compiled: `rekey` one arm or `rekey_all`, and `choose` the arm."""

    rekey: Any
    rekey_all: Any
    choose: Any


def _pulls_of(variant: Variant) -> Any:
    """Return the function that counts an arm's pulls, those in flight among them."""
    late = variant.late

    @jit
    def pulls_of(arm: Any) -> float:
        return arm.pulls if late else arm.count

    return pulls_of


def _evaluate(found: Steps, own: Own) -> Any:
    """Return the function that asks the strategy about an arm."""
    variance, weigh, read_own, OWN = found.variance, found.weigh, own.read, own.size

    @jit
    def evaluate(arms: Any, own: Any, k: int, pooled: Any, numbers: Any) -> float:
        """Ask the strategy about arm k: its key times its pulls."""
        arm = arms[k]
        v = variance(arm.count, arm.mean, arm.m2, pooled, read_own(own, k * OWN, 1), numbers.params)
        return weigh(v, 1.0, numbers.scales[k], numbers.exponent)

    return evaluate


def _arm_key(pulls_of: Any, evaluate: Any, variant: Variant) -> Any:
    """Return the function that finds the key of an arm."""
    priced, late = variant.priced, variant.late

    @jit
    def arm_key(arms: Any, own: Any, k: int, pooled: Any, closed: Any, numbers: Any) -> float:
        """Return the key of arm k; a closed arm's is below all others."""
        if priced and closed[k]:
            return -math.inf
        pulls = pulls_of(arms[k])
        if arms[k].count < numbers.warmup or pulls == 0:
            return _warmup_key(pulls)
        return (arms[k].top if late else evaluate(arms, own, k, pooled, numbers)) / pulls

    return arm_key


def _rekey(arm_key: Any, variant: Variant, floor: Any) -> Any:
    """Return the function that puts one arm where it belongs."""
    scanned = variant.scanned
    # Only the arm on top of the heap of keys ever gets another key.
    only_top = floor is None and not variant.late

    @jit
    def rekey(arms: Any, own: Any, keys: Any, by_key: Any, k: int, pooled: Any, closed: Any, numbers: Any) -> None:
        """Find the key of arm k, and put the arm where it belongs."""
        key = arm_key(arms, own, k, pooled, closed, numbers)
        if scanned:
            keys[k] = key
        elif only_top:
            replace_top(by_key, key)
        else:
            change(by_key, k, key)

    return rekey


def _rekey_all(arm_key: Any, variant: Variant) -> Any:
    """Return the function that finds every key."""
    scanned = variant.scanned

    @jit
    def rekey_all(arms: Any, own: Any, keys: Any, by_key: Any, pooled: Any, closed: Any, numbers: Any) -> None:
        """Find every key."""
        if scanned:
            for k in range(len(arms)):
                keys[k] = arm_key(arms, own, k, pooled, closed, numbers)
        else:
            for i in range(len(arms)):
                by_key[i].score = arm_key(arms, own, arm_at(by_key, i), pooled, closed, numbers)
            heapify(by_key)

    return rekey_all


def _pool_all(found: Steps, own: Own, sums_of: int) -> Any:
    """Return the function that pools over arms."""
    add_share, pool, no_sums = found.add_share, found.pool, (0.0,) * sums_of
    read_own, OWN = own.read, own.size

    @jit
    def pool_all(arms: Any, own: Any, pooled: Any, params: Any) -> Any:
        """Return what is pooled over arms."""
        sums, known = no_sums, 0.0
        for k in range(len(arms)):
            arm, its_own = arms[k], read_own(own, k * OWN, 1)
            sums, known = add_share(arm.count, arm.mean, arm.m2, its_own, pooled, params, sums, known)
        return pool(sums, known, pooled, params)

    return pool_all


def _choose(found: Steps, pulls_of: Any, variant: Variant) -> Any:
    """Return the function that chooses the arm to pull."""
    floor, has_floor, scanned, priced = found.floor, found.floor is not None, variant.scanned, variant.priced

    @jit
    def largest_key(keys: Any, by_key: Any) -> int:
        """Return the arm with the largest key, the lowest among equals."""
        if not scanned:
            return arm_at(by_key, 0)
        best, k = keys[0], 0
        for j in range(1, len(keys)):
            if keys[j] > best:
                best, k = keys[j], j
        return k

    @jit
    def scan_least_pulled(arms: Any, closed: Any) -> tuple[int, float]:
        """Return the open arm with the fewest pulls, the lowest among equals, and how many it has."""
        k, fewest = 0, math.inf
        for j in range(len(arms)):
            if pulls_of(arms[j]) < fewest and not (priced and closed[j]):
                k, fewest = j, pulls_of(arms[j])
        return k, fewest

    @jit
    def choose(
        arms: Any, keys: Any, by_key: Any, by_pulls: Any, closed: Any, t: float, fewest: float, params: Any
    ) -> Any:
        """
        Return the arm to pull after t pulls, and the fewest pulls of an open arm, as far as known.

        No open arm has fewer pulls than the given `fewest`, so that arms are looked at only once the floor has passed
        it. In the heap, too, entries are put right only when they are looked at: pulls only grow.
        """
        if has_floor:
            least = floor(t, float(len(arms)), params)
            if scanned:
                if fewest < least:
                    k, fewest = scan_least_pulled(arms, closed)
                    if fewest < least:
                        return k, fewest
            else:
                k = least_pulled(by_pulls, arms, pulls_of, least)
                if k != NO_ARM:
                    return k, fewest
        return largest_key(keys, by_key), fewest

    return choose


def _simulate(rule: Rule, found: Steps, own: Own, variant: Variant, evaluate: Any, queue: Queue, pool_all: Any) -> Any:
    """Return the function that simulates one run; `pool_all` is None where nothing is pooled."""
    scanned, priced, late = variant
    rekey, rekey_all, choose = queue
    take, has_floor, has_pool = found.take, found.floor is not None, pool_all is not None
    read_own, write_own, has_keep, OWN = own.read, own.write, own.kept, own.size
    Arm, Entry, nothing_pooled = arm_record(late), numba.from_dtype(ENTRY), (0.0,) * max(rule.pooled, 1)

    @jit
    def simulate(laws: Any, run: int, limits: Any, numbers: Any, ends: Any, costs: Any, in_flight: int) -> None:
        """Simulate the run at this place."""
        K = len(laws.kinds)
        arms = np.empty(K, Arm)
        own = np.empty(K * OWN)
        keys = np.empty(K if scanned else 1)
        by_key = np.empty(1 if scanned else K, Entry)
        by_pulls = np.empty(1 if scanned or not has_floor else K, Entry)
        closed = np.empty(K if priced else 1, np.bool_)
        waiting = np.empty(in_flight if late else 1, np.int64)
        # Until then the arms go in turn, and no key is needed.
        in_turn = 0 if priced else _in_turn(numbers.warmup, K)
        # At a limit all answers come in and arms are closed, so that the next limit is a run of its own.
        for c in range(len(limits)):
            # `stale` says that all keys have to be found again before the next one is needed.
            asked, told, opened, k, stale = 0, 0, K, 0, True
            pooled = nothing_pooled
            fewest, spent, carry = 0.0, 0.0, 0.0
            refresh = _next_refresh(0, K)
            for j in range(K):
                arm = arms[j]
                arm.count, arm.mean, arm.m2 = 0.0, 0.0, 0.0
                for i in range(OWN):
                    own[j * OWN + i] = numbers.own[j, i]
                if late:
                    arm.pulls = 0.0
                    if numbers.warmup == 0:
                        arm.top = evaluate(arms, own, j, pooled, numbers)
                if priced:
                    closed[j] = False
                if not scanned:
                    by_key[j].arm = by_key[j].place = j
                if not scanned and has_floor:
                    by_pulls[j].score, by_pulls[j].arm, by_pulls[j].place = 0.0, j, j
            while True:
                while asked - told < (in_flight if late else 1) and (opened > 0 if priced else asked < limits[c]):
                    if asked < in_turn:
                        k = asked % K
                    else:
                        if stale:
                            rekey_all(arms, own, keys, by_key, pooled, closed, numbers)
                            stale = False
                        k, fewest = choose(arms, keys, by_key, by_pulls, closed, float(asked), fewest, numbers.params)
                    if priced:
                        if not _affordable(costs[k], spent, carry, limits[c]):
                            opened -= 1
                            closed[k] = True
                            rekey(arms, own, keys, by_key, k, pooled, closed, numbers)
                            if has_floor and not scanned:
                                change(by_pulls, k, -math.inf)
                            continue
                        spent, carry = _spend(spent, carry, costs[k])
                    if late:
                        waiting[asked % in_flight] = k
                        arms[k].pulls += 1.0
                        if not stale:
                            rekey(arms, own, keys, by_key, k, pooled, closed, numbers)
                    asked += 1
                if told == asked:
                    break
                if late:
                    k = waiting[told % in_flight]
                told += 1
                arm = arms[k]
                # Answers of an arm come in the order of asking, so that the next of its samples is this one.
                i = int(arm.count)
                x = arm.spare
                if i & 1 == 0:
                    x, arm.spare = pair_of(laws, U(run), k, i >> 1)
                arm.count, arm.mean, arm.m2, its_own = take(
                    x, arm.count, arm.mean, arm.m2, read_own(own, k * OWN, 1), pooled, numbers.params
                )
                if has_keep:
                    write_own(own, k * OWN, 1, its_own)
                if has_pool and told >= refresh:
                    refresh = _next_refresh(told, K)
                    pooled = pool_all(arms, own, pooled, numbers.params)
                    stale = True
                    if late:
                        for j in range(K):
                            if arms[j].count >= numbers.warmup:
                                arms[j].top = evaluate(arms, own, j, pooled, numbers)
                elif late and arm.count >= numbers.warmup:
                    arm.top = evaluate(arms, own, k, pooled, numbers)
                if not stale:
                    rekey(arms, own, keys, by_key, k, pooled, closed, numbers)
            for j in range(K):
                ends[0, c, j, run], ends[1, c, j, run], ends[2, c, j, run] = (
                    arms[j].count,
                    arms[j].mean,
                    arms[j].m2,
                )

    return simulate
