"""
The CPU engine: whole studies, simulated many at a time.

Runs go side by side in lanes, all at the same step, so that what a step does to one lane it does to the others and the
compiler makes vectors of it. All state lies in one flat workspace with constant offsets. Samples are drawn ahead for
all lanes of an arm at once, into a ring of the last H samples; a lane that has fallen behind the ring draws its own.

Two kernels make the same decisions in the same arithmetic as a study does: `lanes`, compiled for the number of arms if
that is a handful, else for any number that is still scanned at every step; and `heap` for very many arms, one run at a
time. Each is compiled for the form of the objective: the paper's, with key v/T, pays nothing for the scales and the
exponent that the keys of others have.
A third kernel, in `delayed.py`, is for answers that come late and for samples that have prices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from equipoise.compiled import jit
from equipoise.lab.delayed import one_by_one
from equipoise.lab.heap_rows import change, heapify, replace_top
from equipoise.lab.rule import NORM, PLAIN, WEIGHTED, Numbers, Rule, steps
from equipoise.lab.setup import Ends, Setup
from equipoise.lab.streams import Laws, U, encode, fill_of, pair_of, select
from equipoise.strategies import key as keys

# Runs side by side; samples of an arm that are kept, at least; steps between two looks at the rings.
LANES = 64
RING = 128
STRETCH = 16
# Up to here the kernel is compiled for the number of arms, and up to here arms are scanned; from there on a heap is
# faster. Up to SELECTED the chosen arm's numbers are found by selects, from there on by their index.
FEW, MANY = 16, 320
SELECTED = 6
# As MANY, for runs that go one at a time.
SCANNED = 64


_next_refresh = jit(keys.next_refresh)


def ring_size(arms: int) -> int:
    """Samples of an arm that are kept: more where there are few arms, as lanes drift apart in long runs."""
    return RING * max(1, 4 // 2 ** max(0, (arms - 1).bit_length() - 2))


def lanes(rule: Rule, arms: int) -> Callable[..., None]:
    """
    The kernel for arms that are scanned at every step: for so many of them, or for any number if `arms` is 0.

    For a number that is known, samples are drawn some steps ahead, and choosing is done by selects in one go over the
    lanes. For any number, samples are drawn when the first lane needs them, and choosing goes arm by arm.
    """
    W = LANES
    few, selected = arms > 0, 0 < arms <= SELECTED
    few_H, most_H = ring_size(arms) if few else 0, RING
    # Rows for the lanes, then a block of rows for each arm, then the rings.
    CHOSEN, BEST, COUNT_, MEAN_, M2_, OWN_, KEY_, SAMPLE, POOLED = (row * W for row in range(9))
    ARMS = 9 * W
    COUNT, MEAN, M2, KEY, OWN = (row * W for row in range(5))
    BLOCK = 5 * W
    has_floor, has_freeze, has_pool = rule.floor is not None, rule.freeze is not None, rule.pool != 0
    has_scale, has_power = rule.form != PLAIN, rule.form == NORM
    take, variance, weigh, key_of, floor, pool_arm, pooled_of = steps(rule, jit, jit)

    @jit
    def ring_of_many(K: int) -> int:
        """Samples of an arm that are kept where any number of arms may come: fewer for many."""
        H = 8
        while most_H >= 2 * H and 2 * H * K <= 4096:
            H *= 2
        return H

    @jit
    def choose_few(S: Any, K: int) -> None:
        """The largest key of each lane, the lowest arm among equals, and how many samples that arm has."""
        for i in range(W):
            best, chosen, count = S[ARMS + KEY + i], 0.0, S[ARMS + COUNT + i]
            for k in range(1, K):
                at = ARMS + k * BLOCK + i
                better = S[at + KEY] > best
                best = select(better, S[at + KEY], best)
                chosen = select(better, float(k), chosen)
                count = select(better, S[at + COUNT], count)
            S[CHOSEN + i] = chosen
            S[COUNT_ + i] = count

    @jit
    def choose_many(S: Any, K: int) -> None:
        """The same, without the samples."""
        for i in range(W):
            S[BEST + i] = S[ARMS + KEY + i]
            S[CHOSEN + i] = 0.0
        for k in range(1, K):
            row = ARMS + k * BLOCK + KEY
            for i in range(W):
                better = S[row + i] > S[BEST + i]
                S[BEST + i] = select(better, S[row + i], S[BEST + i])
                S[CHOSEN + i] = select(better, float(k), S[CHOSEN + i])

    choose = choose_few if few else choose_many

    @jit
    def force(S: Any, K: int, least: float) -> float:
        """Lanes in which an arm has fewer pulls than `least` take the least pulled; the fewest pulls of all lanes."""
        for i in range(W):
            S[BEST + i] = S[ARMS + COUNT + i]
            S[KEY_ + i] = 0.0
        for k in range(1, K):
            row = ARMS + k * BLOCK + COUNT
            for i in range(W):
                fewer = S[row + i] < S[BEST + i]
                S[BEST + i] = select(fewer, S[row + i], S[BEST + i])
                S[KEY_ + i] = select(fewer, float(k), S[KEY_ + i])
        lowest = math.inf
        for i in range(W):
            under = S[BEST + i] < least
            S[CHOSEN + i] = select(under, S[KEY_ + i], S[CHOSEN + i])
            S[COUNT_ + i] = select(under, S[BEST + i], S[COUNT_ + i])
            lowest = min(lowest, S[BEST + i])
        return lowest

    @jit
    def update_by_selects(S: Any, params: Any, scales: Any, exponent: float) -> None:
        """The sample of each lane's chosen arm comes in."""
        for i in range(W):
            chosen, pooled = S[CHOSEN + i], S[POOLED + i]
            mean, m2, own = S[ARMS + MEAN + i], S[ARMS + M2 + i], S[ARMS + OWN + i]
            scale = scales[0]
            for k in range(1, arms):
                this = chosen == float(k)
                at = ARMS + k * BLOCK + i
                mean = select(this, S[at + MEAN], mean)
                m2 = select(this, S[at + M2], m2)
                own = select(this, S[at + OWN], own)
                if has_scale:
                    scale = select(this, scales[k], scale)
            count, mean, m2, own = take(S[SAMPLE + i], S[COUNT_ + i], mean, m2, own, pooled, params)
            key = key_of(count, mean, m2, own, pooled, params, scale, exponent)
            for k in range(arms):
                this = chosen == float(k)
                at = ARMS + k * BLOCK + i
                S[at + COUNT] = select(this, count, S[at + COUNT])
                S[at + MEAN] = select(this, mean, S[at + MEAN])
                S[at + M2] = select(this, m2, S[at + M2])
                S[at + KEY] = select(this, key, S[at + KEY])
                if has_freeze:
                    S[at + OWN] = select(this, own, S[at + OWN])

    @jit
    def update_by_index(S: Any, offsets: Any, params: Any, scales: Any, exponent: float) -> None:
        """The same; the arms' numbers come and go one by one, and only the arithmetic is done in vectors."""
        for i in range(W):
            at = offsets[i]
            S[COUNT_ + i], S[MEAN_ + i], S[M2_ + i] = S[at + U(COUNT)], S[at + U(MEAN)], S[at + U(M2)]
            S[OWN_ + i] = S[at + U(OWN)]
            # The row is free until arms are chosen again.
            S[BEST + i] = scales[int(S[CHOSEN + i])] if has_scale else 1.0
        for i in range(W):
            pooled = S[POOLED + i]
            count, mean, m2, own = take(
                S[SAMPLE + i], S[COUNT_ + i], S[MEAN_ + i], S[M2_ + i], S[OWN_ + i], pooled, params
            )
            if has_power:
                S[KEY_ + i] = variance(count, mean, m2, pooled, own, params)
            else:
                S[KEY_ + i] = key_of(count, mean, m2, own, pooled, params, S[BEST + i], exponent)
            S[COUNT_ + i], S[MEAN_ + i], S[M2_ + i], S[OWN_ + i] = count, mean, m2, own
        # Apart, as a power makes no vectors.
        if has_power:
            for i in range(W):
                S[KEY_ + i] = weigh(S[KEY_ + i], S[COUNT_ + i], S[BEST + i], exponent)
        for i in range(W):
            at = offsets[i]
            S[at + U(COUNT)], S[at + U(MEAN)], S[at + U(M2)] = S[COUNT_ + i], S[MEAN_ + i], S[M2_ + i]
            S[at + U(KEY)] = S[KEY_ + i]
            if has_freeze:
                S[at + U(OWN)] = S[OWN_ + i]

    @jit
    def rekey(S: Any, K: int, params: Any, scales: Any, exponent: float) -> None:
        """The pooled variance and every key anew."""
        for i in range(W):
            S[BEST + i], S[KEY_ + i], S[POOLED + i] = 0.0, 0.0, 0.0
        for k in range(K):
            row = ARMS + k * BLOCK
            for i in range(W):
                S[BEST + i], S[POOLED + i], S[KEY_ + i] = pool_arm(
                    S[row + COUNT + i],
                    S[row + MEAN + i],
                    S[row + M2 + i],
                    S[row + OWN + i],
                    params,
                    S[BEST + i],
                    S[POOLED + i],
                    S[KEY_ + i],
                )
        for i in range(W):
            S[POOLED + i] = pooled_of(S[BEST + i], S[POOLED + i], S[KEY_ + i])
        for k in range(K):
            for i in range(W):
                at = ARMS + k * BLOCK + i
                S[at + KEY] = key_of(
                    S[at + COUNT],
                    S[at + MEAN],
                    S[at + M2],
                    S[at + OWN],
                    S[POOLED + i],
                    params,
                    scales[k],
                    exponent,
                )

    @jit
    def draw_ahead(S: Any, laws: Any, first: Any, drawn: Any, K: int, H: int, X: int) -> bool:
        """Fill the rings for the next steps; whether a lane is behind the ring of an arm."""
        lagging = False
        for k in range(K):
            most, fewest = 0.0, math.inf
            for i in range(W):
                most = max(most, S[ARMS + k * BLOCK + COUNT + i])
                fewest = min(fewest, S[ARMS + k * BLOCK + COUNT + i])
            while drawn[k] < most + STRETCH:
                fill_of(laws, first, k, drawn[k] >> 1, S, X + (k * H + (drawn[k] & (H - 1))) * W, W)
                drawn[k] += 2
            lagging = lagging or fewest < drawn[k] - H
        return lagging

    @jit
    def sample_few(S: Any, laws: Any, first: Any, drawn: Any, lagging: bool, H: int, X: int, offsets: Any) -> None:
        """The sample each lane takes from the rings, or draws."""
        for i in range(W):
            ring = U(S[CHOSEN + i]) * U(H) + (U(S[COUNT_ + i]) & U(H - 1))
            offsets[i] = U(X) + ring * U(W) + U(i)
        for i in range(W):
            S[SAMPLE + i] = S[offsets[i]]
        if lagging:
            for i in range(W):
                k, j = int(S[CHOSEN + i]), int(S[COUNT_ + i])
                if j < drawn[k] - H:
                    x0, x1 = pair_of(laws, first + U(i), k, j >> 1)
                    S[SAMPLE + i] = x1 if j & 1 else x0
        if not selected:
            for i in range(W):
                offsets[i] = U(ARMS) + U(S[CHOSEN + i]) * U(BLOCK) + U(i)

    @jit
    def sample_many(S: Any, laws: Any, first: Any, drawn: Any, lagging: bool, H: int, X: int, offsets: Any) -> None:
        """The same, filling rings where need be."""
        for i in range(W):
            offsets[i] = U(ARMS) + U(S[CHOSEN + i]) * U(BLOCK) + U(i)
        for i in range(W):
            k = int(S[CHOSEN + i])
            j = int(S[offsets[i] + U(COUNT)])
            if j >= drawn[k]:
                fill_of(laws, first, k, j >> 1, S, X + (k * H + (drawn[k] & (H - 1))) * W, W)
                drawn[k] += 2
            if j >= drawn[k] - H:
                S[SAMPLE + i] = S[X + (k * H + (j & (H - 1))) * W + i]
            else:
                x0, x1 = pair_of(laws, first + U(i), k, j >> 1)
                S[SAMPLE + i] = x1 if j & 1 else x0

    sample = sample_few if few else sample_many

    def run(laws: Any, first: Any, checkpoints: Any, numbers: Any, ends: Any, column: int) -> None:
        params, scales, exponent = numbers.params, numbers.scales, numbers.exponent
        K = arms if few else len(laws.kinds)
        H = few_H if few else ring_of_many(K)
        X = ARMS + K * BLOCK
        S = np.zeros(X + K * H * W)
        offsets = np.zeros(W, np.uint64)
        drawn = np.zeros(K, np.int64)
        lagging = False
        lowest = 0.0
        refresh = _next_refresh(0, K)
        for k in range(K):
            for i in range(W):
                S[ARMS + k * BLOCK + OWN + i] = numbers.own[k]
        t = 0
        for c in range(len(checkpoints)):
            while t < checkpoints[c]:
                if few and t % STRETCH == 0:
                    lagging = draw_ahead(S, laws, first, drawn, K, H, X)
                if t < numbers.warmup * K:
                    for i in range(W):
                        S[CHOSEN + i] = float(t % K)
                        S[COUNT_ + i] = S[ARMS + (t % K) * BLOCK + COUNT + i]
                else:
                    choose(S, K)
                    if has_floor:
                        least = floor(float(t), float(K), params)
                        if lowest < least:
                            lowest = force(S, K, least)
                sample(S, laws, first, drawn, lagging, H, X, offsets)
                if selected:
                    update_by_selects(S, params, scales, exponent)
                else:
                    update_by_index(S, offsets, params, scales, exponent)
                t += 1
                if has_pool and t >= refresh:
                    refresh = _next_refresh(t, K)
                    rekey(S, K, params, scales, exponent)
            for k in range(K):
                row = ARMS + k * BLOCK
                for i in range(W):
                    ends[0, c, k, column + i] = S[row + COUNT + i]
                    ends[1, c, k, column + i] = S[row + MEAN + i]
                    ends[2, c, k, column + i] = S[row + M2 + i]

    return jit(run, nogil=True)


def heap(rule: Rule) -> Callable[..., None]:
    """The kernel for very many arms: one run at a time, decisions in O(log K)."""
    # An arm's numbers lie together, so that they come in one line of memory. SPARE is the second sample of a pair.
    COUNT, MEAN, M2, SPARE, OWN = range(5)
    row = 8 if rule.uses_own else 4
    # Scores and arms of the heap of keys, then of the heap of pulls.
    KEY, LEAST = 0, 1
    uses_own = rule.uses_own
    has_floor, has_freeze, has_pool = rule.floor is not None, rule.freeze is not None, rule.pool != 0
    take, _, _, key_of, floor, pool_arm, pooled_of = steps(rule, jit, jit)

    @jit
    def pool(A: Any, params: Any) -> float:
        largest, total, arms = 0.0, 0.0, 0.0
        for k in range(len(A)):
            own = A[k, OWN] if uses_own else 0.0
            largest, total, arms = pool_arm(A[k, COUNT], A[k, MEAN], A[k, M2], own, params, largest, total, arms)
        return pooled_of(largest, total, arms)

    @jit
    def arm_key(A: Any, k: int, pooled: float, numbers: Any) -> float:
        own = A[k, OWN] if uses_own else 0.0
        return key_of(
            A[k, COUNT], A[k, MEAN], A[k, M2], own, pooled, numbers.params, numbers.scales[k], numbers.exponent
        )

    @jit
    def all_keys(A: Any, floats: Any, ints: Any, pooled: float, numbers: Any) -> None:
        for i in range(len(A)):
            floats[KEY, i] = arm_key(A, ints[2 * KEY, i], pooled, numbers)
        heapify(floats, ints, KEY, 2 * KEY)

    def run(laws: Any, first: Any, checkpoints: Any, numbers: Any, ends: Any, column: int) -> None:
        K, warm = len(laws.kinds), numbers.warmup * len(laws.kinds)
        A = np.zeros((K, row))
        floats = np.zeros((2 if has_floor else 1, K))
        ints = np.zeros((4 if has_floor else 2, K), np.int32)
        pooled = 0.0
        refresh = _next_refresh(0, K)
        for k in range(K):
            if uses_own:
                A[k, OWN] = numbers.own[k]
            for i in range(len(ints)):
                ints[i, k] = k
        t = 0
        for c in range(len(checkpoints)):
            while t < checkpoints[c]:
                k = t % K
                if t >= warm:
                    k = ints[2 * KEY, 0]
                    if has_floor:
                        # As in the study: entries are put right when they are looked at, as pulls only grow.
                        least = floor(float(t), float(K), numbers.params)
                        while -floats[LEAST, 0] < least:
                            j = ints[2 * LEAST, 0]
                            if -floats[LEAST, 0] == A[j, COUNT]:
                                k = j
                                break
                            change(floats, ints, LEAST, 2 * LEAST, j, -A[j, COUNT])
                i = int(A[k, COUNT])
                x = A[k, SPARE]
                if i & 1 == 0:
                    x, A[k, SPARE] = pair_of(laws, first, k, i >> 1)
                own = A[k, OWN] if uses_own else 0.0
                A[k, COUNT], A[k, MEAN], A[k, M2], own = take(
                    x, A[k, COUNT], A[k, MEAN], A[k, M2], own, pooled, numbers.params
                )
                if has_freeze:
                    A[k, OWN] = own
                t += 1
                refreshed = False
                if has_pool and t >= refresh:
                    refresh = _next_refresh(t, K)
                    pooled = pool(A, numbers.params)
                    refreshed = True
                if t == warm or (refreshed and t > warm):
                    all_keys(A, floats, ints, pooled, numbers)
                elif t > warm:
                    key = arm_key(A, k, pooled, numbers)
                    if has_floor:
                        change(floats, ints, KEY, 2 * KEY, k, key)
                    else:
                        replace_top(floats, ints, KEY, 2 * KEY, key)
            for k in range(K):
                ends[0, c, k, column], ends[1, c, k, column], ends[2, c, k, column] = A[k, COUNT], A[k, MEAN], A[k, M2]

    return jit(run, nogil=True)


@lru_cache(maxsize=256)
def _kernel(rule: Rule, arms: int) -> tuple[Callable[..., None], int]:
    """The kernel for a rule and a number of arms, 0 for many, -1 for very many; how many runs it does at once."""
    return (heap(rule), 1) if arms < 0 else (lanes(rule, arms), LANES)


@lru_cache(maxsize=256)
def _delayed(rule: Rule, priced: bool, scanned: bool) -> tuple[Callable[..., None], int]:
    return jit(one_by_one(rule, scanned, priced), nogil=True), 1


def kernel(setup: Setup) -> tuple[Callable[..., None], int]:
    """The kernel for a setup, and how many runs it does at once."""
    rule, arms = Rule.of(setup.strategy, setup.form), len(setup.problem)
    if setup.one_by_one:
        # There a power of one costs nothing to speak of.
        rule = rule._replace(form=min(rule.form, WEIGHTED))
        return _delayed(rule, setup.objective.costs is not None, arms <= SCANNED)
    return _kernel(rule, arms if arms <= FEW else 0 if arms <= MANY else -1)


def simulate(setup: Setup, first: int, runs: int) -> Ends:
    """Runs `first` to `first + runs` of the setup, in this thread."""
    arms, objective = len(setup.problem), setup.objective
    run, at_once = kernel(setup)
    laws = Laws(*encode(setup.problem.arms), U(setup.seed))
    numbers = Numbers(
        setup.params or (0.0,), setup.initial_own, setup.strategy.warmup, objective.scales(arms), objective.exponent
    )
    whole = -(-runs // at_once) * at_once
    ends = np.empty((3, len(setup.checkpoints), arms, whole))
    priced = objective.costs is not None
    checkpoints = np.array(setup.checkpoints, dtype=float if priced else np.int64)
    costs = objective.cost(arms)
    # No more can be in flight than the budget has pulls.
    late = (costs, min(setup.in_flight, 1 + int(checkpoints.max() / costs.min()))) if setup.one_by_one else ()
    for column in range(0, whole, at_once):
        run(laws, U(first + column), checkpoints, numbers, ends, column, *late)
    return Ends(*ends[..., :runs])


@contextmanager
def one_kernel() -> Iterator[None]:
    """
    Within it a handful of arms is simulated by the kernel for any number of them, with the same results.

    That kernel is slower there and compiled once for a strategy, not for each number of arms: better for simulations of
    many problems that are short.
    """
    global FEW
    before, FEW = FEW, 0
    try:
        yield
    finally:
        FEW = before
