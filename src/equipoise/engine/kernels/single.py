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
from typing import Any

import numba
import numpy as np

from equipoise.compiled import inlined, jit
from equipoise.engine.rule import Rule, steps
from equipoise.engine.streams import U, pair_of
from equipoise.numeric.heap import ENTRY, NO_ARM, arm_at, change, heapify, least_pulled, replace_top
from equipoise.numeric.tuples import reader, writer
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


def single(rule: Rule, *, scanned: bool, priced: bool, late: bool) -> Callable[..., None]:
    """
    Return the kernel, not compiled yet.

    `scanned` says that every decision looks at all arms instead of the top of a heap, `priced` that samples have costs
    and the limits are money, and `late` that more than one pull is in flight; one of the last two holds.
    """
    has_floor, has_keep, has_pool = rule.floor is not None, rule.keep is not None, rule.pool is not None
    nothing_pooled, OWN = (0.0,) * max(rule.pooled, 1), rule.own
    Arm, Entry = arm_record(late), numba.from_dtype(ENTRY)
    # Only the arm on top of the heap of keys ever gets another key.
    only_top = not has_floor and not late
    found = steps(rule, jit, jit)
    take, variance, weigh, floor = found.take, found.variance, found.weigh, found.floor
    add_share, pool, no_sums = found.add_share, found.pool, (0.0,) * rule.sums
    read_own, write_own = reader(OWN, inlined), writer(OWN, inlined)

    @jit
    def pulls_of(arm: Any) -> float:
        return arm.pulls if late else arm.count

    @jit
    def evaluate(arms: Any, own: Any, k: int, pooled: Any, numbers: Any) -> float:
        """Ask the strategy about arm k: its key times its pulls."""
        arm = arms[k]
        v = variance(arm.count, arm.mean, arm.m2, pooled, read_own(own, k * OWN, 1), numbers.params)
        return weigh(v, 1.0, numbers.scales[k], numbers.exponent)

    @jit
    def arm_key(arms: Any, own: Any, k: int, pooled: Any, closed: Any, numbers: Any) -> float:
        """Return the key of arm k; a closed arm's is below all others."""
        if priced and closed[k]:
            return -math.inf
        pulls = pulls_of(arms[k])
        if arms[k].count < numbers.warmup or pulls == 0:
            return _warmup_key(pulls)
        return (arms[k].top if late else evaluate(arms, own, k, pooled, numbers)) / pulls

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

    @jit
    def pool_all(arms: Any, own: Any, pooled: Any, params: Any) -> Any:
        """Return what is pooled over arms."""
        sums, known = no_sums, 0.0
        for k in range(len(arms)):
            arm, its_own = arms[k], read_own(own, k * OWN, 1)
            sums, known = add_share(arm.count, arm.mean, arm.m2, its_own, pooled, params, sums, known)
        return pool(sums, known, pooled, params)

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

    def run(laws: Any, limits: Any, numbers: Any, ends: Any, costs: Any, in_flight: int) -> None:
        for place in range(len(laws.runs)):
            simulate(laws, place, limits, numbers, ends, costs, in_flight)

    return run
