"""
The CPU kernel for studies whose answers come late, or whose samples have prices: one run at a time.

So many pulls are kept in flight: they are asked for first, then the answers come one at a time, the oldest first, and
after each the next pull is asked for; at the end all answers come in. The variance of an arm sees the samples that
are in, its pulls are those and the ones in flight, the floor goes by the pulls handed out: as in a study.

With prices the budget is money. An arm that is wanted and costs more than is left is closed, as there will never be
more, and the rule is asked again among the others, until all are closed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from equipoise.compiled import jit
from equipoise.lab.heap_rows import change, heapify
from equipoise.lab.rule import PLAIN, Rule, steps
from equipoise.lab.streams import pair_of
from equipoise.problem.objective import ROUNDING
from equipoise.strategies import key as keys

_key = jit(keys.key)
_warmup_key = jit(keys.warmup_key)
_next_refresh = jit(keys.next_refresh)

# An arm's numbers lie together, so that they come in one line of memory. SPARE is the second sample of a pair; a key
# is TOP over the pulls.
COUNT, PULLS, MEAN, M2, SPARE, OWN, TOP, SCALE = range(8)
# Scores and arms of the heap of keys, then of the heap of pulls.
KEY, LEAST = 0, 1


def one_by_one(rule: Rule, scanned: bool, priced: bool) -> Callable[..., None]:
    """
    The kernel.

    `scanned` says that every decision looks at all arms, `priced` that samples have costs.
    """
    scaled = rule.form != PLAIN
    has_floor, has_pool = rule.floor is not None, rule.pool != 0
    take, variance, _, _, floor, pool_arm, pooled_of = steps(rule, jit, jit)

    @jit
    def evaluate(A: Any, k: int, pooled: float, numbers: Any) -> None:
        """The key of arm k before it is divided by the pulls, which change more often than what is known of the arm."""
        v = variance(A[k, COUNT], A[k, MEAN], A[k, M2], pooled, A[k, OWN], numbers.params)
        A[k, TOP] = _key(v, 1.0, A[k, SCALE], numbers.exponent) if scaled else v

    @jit
    def arm_key(A: Any, k: int, warmup: int, closed: Any) -> float:
        if priced and closed[k]:
            return -math.inf
        if A[k, COUNT] < warmup:
            return _warmup_key(A[k, PULLS])
        return A[k, TOP] / A[k, PULLS]

    @jit
    def rekey(A: Any, floats: Any, ints: Any, k: int, warmup: int, closed: Any) -> None:
        if scanned:
            floats[KEY, k] = arm_key(A, k, warmup, closed)
        else:
            change(floats, ints, KEY, 2 * KEY, k, arm_key(A, k, warmup, closed))

    @jit
    def rekey_all(A: Any, floats: Any, ints: Any, warmup: int, closed: Any) -> None:
        for i in range(len(A)):
            floats[KEY, i] = arm_key(A, i if scanned else ints[2 * KEY, i], warmup, closed)
        if not scanned:
            heapify(floats, ints, KEY, 2 * KEY)

    @jit
    def largest(floats: Any, ints: Any) -> int:
        """The arm with the largest key, the lowest among equals."""
        if not scanned:
            return ints[2 * KEY, 0]
        best, k = floats[KEY, 0], 0
        for j in range(1, floats.shape[1]):
            if floats[KEY, j] > best:
                best, k = floats[KEY, j], j
        return k

    @jit
    def least_pulled(A: Any, floats: Any, ints: Any, least: float, closed: Any) -> int:
        """The least pulled arm, if it has fewer pulls than `least`, else -1; floats[LEAST, 0] remembers how few."""
        if not scanned:
            # As in the study: entries are put right when they are looked at, as pulls only grow.
            while -floats[LEAST, 0] < least:
                k = ints[2 * LEAST, 0]
                if -floats[LEAST, 0] == A[k, PULLS]:
                    return k
                change(floats, ints, LEAST, 2 * LEAST, k, -A[k, PULLS])
            return -1
        if -floats[LEAST, 0] >= least:
            return -1
        fewest, k = math.inf, -1
        for j in range(len(A)):
            if A[j, PULLS] < fewest and not (priced and closed[j]):
                fewest, k = A[j, PULLS], j
        floats[LEAST, 0] = -fewest
        return k if fewest < least else -1

    def run(
        laws: Any, first: Any, checkpoints: Any, numbers: Any, ends: Any, column: int, costs: Any, in_flight: int
    ) -> None:
        K, warmup = len(laws.kinds), numbers.warmup
        A = np.empty((K, 8))
        floats = np.empty((2 if has_floor else 1, K))
        ints = np.empty((1 if scanned else 4 if has_floor else 2, 1 if scanned else K), np.int32)
        closed = np.empty(K if priced else 1, np.bool_)
        flying = np.empty(in_flight, np.int64)
        # Answers that are still out at one budget are in at its end, so that a larger one is another run.
        for c in range(len(checkpoints)):
            budget = checkpoints[c]
            A[:] = 0.0
            closed[:] = False
            for k in range(K):
                A[k, OWN], A[k, SCALE] = numbers.own[k], numbers.scales[k]
                floats[KEY, k] = math.inf
                if has_floor:
                    floats[LEAST, k] = 0.0
                if not scanned:
                    for i in range(len(ints)):
                        ints[i, k] = k
            pooled, left, slack = 0.0, float(budget), ROUNDING * budget
            refresh = _next_refresh(0, K)
            asked, told, opened = 0, 0, K
            while True:
                while asked - told < in_flight and (opened > 0 if priced else asked < budget):
                    k = -1
                    if has_floor:
                        k = least_pulled(A, floats, ints, floor(float(asked), float(K), numbers.params), closed)
                    if k < 0:
                        k = largest(floats, ints)
                    if priced:
                        if costs[k] > left + slack:
                            opened -= 1
                            closed[k] = True
                            rekey(A, floats, ints, k, warmup, closed)
                            if has_floor and not scanned:
                                change(floats, ints, LEAST, 2 * LEAST, k, -math.inf)
                            continue
                        left -= costs[k]
                    A[k, PULLS] += 1.0
                    rekey(A, floats, ints, k, warmup, closed)
                    flying[asked % in_flight] = k
                    asked += 1
                if told == asked:
                    break
                k = flying[told % in_flight]
                told += 1
                # Answers of an arm come in the order of asking, so that the next of its samples is this one.
                i = int(A[k, COUNT])
                x = A[k, SPARE]
                if i & 1 == 0:
                    x, A[k, SPARE] = pair_of(laws, first, k, i >> 1)
                A[k, COUNT], A[k, MEAN], A[k, M2], A[k, OWN] = take(
                    x, A[k, COUNT], A[k, MEAN], A[k, M2], A[k, OWN], pooled, numbers.params
                )
                if has_pool and told >= refresh:
                    refresh = _next_refresh(told, K)
                    most, total, known = 0.0, 0.0, 0.0
                    for j in range(K):
                        most, total, known = pool_arm(
                            A[j, COUNT], A[j, MEAN], A[j, M2], A[j, OWN], numbers.params, most, total, known
                        )
                    pooled = pooled_of(most, total, known)
                    for j in range(K):
                        if A[j, COUNT] >= warmup:
                            evaluate(A, j, pooled, numbers)
                    rekey_all(A, floats, ints, warmup, closed)
                else:
                    if A[k, COUNT] >= warmup:
                        evaluate(A, k, pooled, numbers)
                    rekey(A, floats, ints, k, warmup, closed)
            for k in range(K):
                ends[0, c, k, column], ends[1, c, k, column], ends[2, c, k, column] = A[k, COUNT], A[k, MEAN], A[k, M2]

    return run
