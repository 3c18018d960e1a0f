"""
The CPU engine: whole studies, simulated many at a time.

Runs go side by side in lanes, all at the same step, so that what a step does to one lane it does to the others and the
compiler makes vectors of it. All state lies in one flat workspace with constant offsets. Samples are drawn ahead for
all lanes of an arm at once, into a ring of the last H samples; a lane that has fallen behind the ring draws its own.

Three kernels make the same decisions in the same arithmetic as a study does: `lanes_few` for a handful of arms,
where choosing among arms is done by selects, `lanes_many`, where the chosen arm's state is gathered and scattered,
and `heap` for very many arms, one run at a time. Each is compiled for the form of the objective: the paper's, with key
v/T, pays nothing for the scales and the exponent that the keys of others have.
A fourth kernel, in `delayed.py`, is for answers that come late and for samples that have prices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise import moments
from equipoise.compiled import jit
from equipoise.heap import change, heapify, replace_top
from equipoise.lab.delayed import one_by_one
from equipoise.lab.streams import U, encode, fill, pair, select
from equipoise.problem import Objective, Problem
from equipoise.strategies import Strategy
from equipoise.strategies import key as keys

Floats = npt.NDArray[np.float64]

# Runs side by side; samples of an arm that are kept, at least; steps between two looks at the rings.
LANES = 64
RING = 128
STRETCH = 16


def ring_size(arms: int) -> int:
    """Samples of an arm that are kept: more where there are few arms, as lanes drift apart in long runs."""
    return RING * max(1, 4 // 2 ** max(0, (arms - 1).bit_length() - 2))


ANNOUNCE = "compiling the simulator for this strategy, once"

_add = jit(moments.add)
_unbiased = jit(moments.unbiased)
_next_refresh = jit(keys.next_refresh)
_key = jit(keys.key)
_pooled = jit(keys.pooled)

# Forms of objectives: the paper's; the largest loss with weights; other norms.
PLAIN, WEIGHTED, NORM = range(3)


def _weigh(form: int) -> Callable[[float, float, float, float], float]:
    """The key from a variance, pulls, the arm's scale and the exponent, of which the form may need neither."""

    @jit
    def plain(v: float, pulls: float, scale: float, exponent: float) -> float:
        return _key(v, pulls, 1.0, 1.0)

    @jit
    def weighted(v: float, pulls: float, scale: float, exponent: float) -> float:
        return _key(v, pulls, scale, 1.0)

    return (plain, weighted, _key)[form]


def lanes_few(variance: Any, floor: Any, freeze: Any, arms: int, pool: int, form: int) -> Callable[..., None]:
    """The kernel for a handful of arms, compiled for their number."""
    W, H, K = LANES, ring_size(arms), arms
    COUNT, MEAN, M2, KEY, OWN = 0, K * W, 2 * K * W, 3 * K * W, 4 * K * W
    CHOSEN, PULLS, SAMPLE, POOLED, X = 5 * K * W, (5 * K + 1) * W, (5 * K + 2) * W, (5 * K + 3) * W, (5 * K + 4) * W
    size = X + K * H * W
    has_floor, has_freeze, has_pool = floor is not None, freeze is not None, pool != 0
    variance = jit(variance)
    floor = jit(floor) if has_floor else None
    freeze = jit(freeze) if has_freeze else None
    weigh = _weigh(form)

    @jit
    def choose(S: Any) -> None:
        """The largest key of each lane, the lowest arm among equals."""
        for i in range(W):
            best, chosen, pulls = S[KEY + i], 0.0, S[COUNT + i]
            for k in range(1, K):
                other = S[KEY + k * W + i]
                better = other > best
                best = select(better, other, best)
                chosen = select(better, float(k), chosen)
                pulls = select(better, S[COUNT + k * W + i], pulls)
            S[CHOSEN + i] = chosen
            S[PULLS + i] = pulls

    @jit
    def force(S: Any, least: float) -> float:
        """Lanes in which an arm has fewer pulls than `least` take the least pulled; the fewest pulls of all lanes."""
        lowest = math.inf
        for i in range(W):
            fewest, arm = S[COUNT + i], 0.0
            for k in range(1, K):
                other = S[COUNT + k * W + i]
                fewer = other < fewest
                fewest = select(fewer, other, fewest)
                arm = select(fewer, float(k), arm)
            under = fewest < least
            S[CHOSEN + i] = select(under, arm, S[CHOSEN + i])
            S[PULLS + i] = select(under, fewest, S[PULLS + i])
            lowest = min(lowest, fewest)
        return lowest

    @jit
    def update(S: Any, params: Any, scales: Any, exponent: float) -> None:
        """The sample of each lane's chosen arm comes in."""
        for i in range(W):
            chosen, count, x, pooled = S[CHOSEN + i], S[PULLS + i], S[SAMPLE + i], S[POOLED + i]
            mean, m2, own = S[MEAN + i], S[M2 + i], S[OWN + i]
            for k in range(1, K):
                this = chosen == float(k)
                mean = select(this, S[MEAN + k * W + i], mean)
                m2 = select(this, S[M2 + k * W + i], m2)
                own = select(this, S[OWN + k * W + i], own)
            count, mean, m2 = _add(count, mean, m2, x)
            if has_freeze:
                own = freeze(x, count, mean, m2, pooled, own, params)
            scale = scales[0]
            if form != PLAIN:
                for k in range(1, K):
                    scale = select(chosen == float(k), scales[k], scale)
            key = weigh(variance(count, mean, m2, pooled, own, params), count, scale, exponent)
            for k in range(K):
                this = chosen == float(k)
                at = k * W + i
                S[COUNT + at] = select(this, count, S[COUNT + at])
                S[MEAN + at] = select(this, mean, S[MEAN + at])
                S[M2 + at] = select(this, m2, S[M2 + at])
                S[KEY + at] = select(this, key, S[KEY + at])
                if has_freeze:
                    S[OWN + at] = select(this, own, S[OWN + at])

    @jit
    def rekey(S: Any, params: Any, scales: Any, exponent: float) -> None:
        """The pooled variance and every key anew."""
        for i in range(W):
            largest, total, known = 0.0, 0.0, 0.0
            for k in range(K):
                count = S[COUNT + k * W + i]
                v = select(count >= 2.0, _unbiased(count, S[M2 + k * W + i]), 0.0)
                largest = max(largest, v)
                total += v
                known += select(count >= 2.0, 1.0, 0.0)
            S[POOLED + i] = largest if pool == 1 else total / max(known, 1.0)
        for k in range(K):
            for i in range(W):
                at = k * W + i
                v = variance(S[COUNT + at], S[MEAN + at], S[M2 + at], S[POOLED + i], S[OWN + at], params)
                S[KEY + at] = weigh(v, S[COUNT + at], scales[k], exponent)

    @jit
    def gather(S: Any, offsets: Any) -> None:
        """The sample each lane takes from the rings."""
        for i in range(W):
            ring = U(S[CHOSEN + i]) * U(H) + (U(S[PULLS + i]) & U(H - 1))
            offsets[i] = U(X) + ring * U(W) + U(i)
        for i in range(W):
            S[SAMPLE + i] = S[offsets[i]]

    def run(
        kinds: Any,
        parameters: Any,
        table: Any,
        seed: Any,
        first: Any,
        checkpoints: Any,
        params: Any,
        own: Any,
        warmup: int,
        counts: Any,
        means: Any,
        m2s: Any,
        column: int,
        scales: Any,
        exponent: float,
    ) -> None:
        S = np.zeros(size)
        offsets = np.zeros(W, np.uint64)
        drawn = np.zeros(K, np.int64)
        lagging = False
        lowest = 0.0
        refresh = _next_refresh(0, K)
        for k in range(K):
            for i in range(W):
                S[OWN + k * W + i] = own[k]
        t = 0
        for c in range(len(checkpoints)):
            while t < checkpoints[c]:
                if t % STRETCH == 0:
                    lagging = False
                    for k in range(K):
                        most, fewest = 0.0, math.inf
                        for i in range(W):
                            most = max(most, S[COUNT + k * W + i])
                            fewest = min(fewest, S[COUNT + k * W + i])
                        while drawn[k] < most + STRETCH:
                            at = X + (k * H + (drawn[k] & (H - 1))) * W
                            fill(
                                kinds[k],
                                parameters[k, 0],
                                parameters[k, 1],
                                table,
                                seed,
                                first,
                                U(k),
                                U(drawn[k] >> 1),
                                S,
                                at,
                                W,
                            )
                            drawn[k] += 2
                        lagging = lagging or fewest < drawn[k] - H
                if t < warmup * K:
                    arm = t % K
                    for i in range(W):
                        S[CHOSEN + i] = float(arm)
                        S[PULLS + i] = S[COUNT + arm * W + i]
                else:
                    choose(S)
                    if has_floor:
                        least = floor(float(t), float(K), params)
                        if lowest < least:
                            lowest = force(S, least)
                gather(S, offsets)
                if lagging:
                    for i in range(W):
                        k, j = int(S[CHOSEN + i]), int(S[PULLS + i])
                        if j < drawn[k] - H:
                            x0, x1 = pair(
                                kinds[k], parameters[k, 0], parameters[k, 1], table, seed, first + U(i), U(k), U(j >> 1)
                            )
                            S[SAMPLE + i] = x1 if j & 1 else x0
                update(S, params, scales, exponent)
                t += 1
                if has_pool and t >= refresh:
                    refresh = _next_refresh(t, K)
                    rekey(S, params, scales, exponent)
            for k in range(K):
                for i in range(W):
                    counts[c, k, column + i] = S[COUNT + k * W + i]
                    means[c, k, column + i] = S[MEAN + k * W + i]
                    m2s[c, k, column + i] = S[M2 + k * W + i]

    return jit(run, nogil=True, announce=ANNOUNCE)


def lanes_many(variance: Any, floor: Any, freeze: Any, pool: int, form: int) -> Callable[..., None]:
    """The kernel for any number of arms that are still scanned at every step."""
    W = LANES
    # Rows for the lanes, then a block of rows for each arm, then the rings.
    CHOSEN, BEST, COUNT_, MEAN_, M2_, OWN_, KEY_, SAMPLE, POOLED = (row * W for row in range(9))
    ARMS = 9 * W
    COUNT, MEAN, M2, KEY, OWN = (row * W for row in range(5))
    BLOCK = 5 * W
    has_floor, has_freeze, has_pool = floor is not None, freeze is not None, pool != 0
    variance = jit(variance)
    floor = jit(floor) if has_floor else None
    freeze = jit(freeze) if has_freeze else None
    weigh = _weigh(form)

    @jit
    def choose(S: Any, K: int) -> None:
        for i in range(W):
            S[BEST + i] = S[ARMS + KEY + i]
            S[CHOSEN + i] = 0.0
        for k in range(1, K):
            row = ARMS + k * BLOCK + KEY
            for i in range(W):
                better = S[row + i] > S[BEST + i]
                S[BEST + i] = select(better, S[row + i], S[BEST + i])
                S[CHOSEN + i] = select(better, float(k), S[CHOSEN + i])

    @jit
    def force(S: Any, K: int, least: float) -> float:
        for i in range(W):
            S[BEST + i] = S[ARMS + COUNT + i]
            S[COUNT_ + i] = 0.0
        for k in range(1, K):
            row = ARMS + k * BLOCK + COUNT
            for i in range(W):
                fewer = S[row + i] < S[BEST + i]
                S[BEST + i] = select(fewer, S[row + i], S[BEST + i])
                S[COUNT_ + i] = select(fewer, float(k), S[COUNT_ + i])
        lowest = math.inf
        for i in range(W):
            S[CHOSEN + i] = select(S[BEST + i] < least, S[COUNT_ + i], S[CHOSEN + i])
            lowest = min(lowest, S[BEST + i])
        return lowest

    @jit
    def update(S: Any, offsets: Any, params: Any, scales: Any, exponent: float) -> None:
        for i in range(W):
            at = offsets[i]
            S[COUNT_ + i], S[MEAN_ + i], S[M2_ + i] = S[at + U(COUNT)], S[at + U(MEAN)], S[at + U(M2)]
            S[OWN_ + i] = S[at + U(OWN)]
        for i in range(W):
            count, mean, m2 = _add(S[COUNT_ + i], S[MEAN_ + i], S[M2_ + i], S[SAMPLE + i])
            own = S[OWN_ + i]
            if has_freeze:
                own = freeze(S[SAMPLE + i], count, mean, m2, S[POOLED + i], own, params)
            v = variance(count, mean, m2, S[POOLED + i], own, params)
            S[KEY_ + i] = weigh(v, count, scales[int(S[CHOSEN + i])], exponent)
            S[COUNT_ + i], S[MEAN_ + i], S[M2_ + i], S[OWN_ + i] = count, mean, m2, own
        for i in range(W):
            at = offsets[i]
            S[at + U(COUNT)], S[at + U(MEAN)], S[at + U(M2)] = S[COUNT_ + i], S[MEAN_ + i], S[M2_ + i]
            S[at + U(KEY)] = S[KEY_ + i]
            if has_freeze:
                S[at + U(OWN)] = S[OWN_ + i]

    @jit
    def rekey(S: Any, K: int, params: Any, scales: Any, exponent: float) -> None:
        # BEST counts the arms with two samples here.
        for i in range(W):
            S[POOLED + i] = 0.0
            S[BEST + i] = 0.0
        for k in range(K):
            block = ARMS + k * BLOCK
            for i in range(W):
                count = S[block + COUNT + i]
                v = select(count >= 2.0, _unbiased(count, S[block + M2 + i]), 0.0)
                S[POOLED + i] = max(S[POOLED + i], v) if pool == 1 else S[POOLED + i] + v
                S[BEST + i] += select(count >= 2.0, 1.0, 0.0)
        if pool == 2:
            for i in range(W):
                S[POOLED + i] /= max(S[BEST + i], 1.0)
        for k in range(K):
            block = ARMS + k * BLOCK
            for i in range(W):
                count = S[block + COUNT + i]
                v = variance(count, S[block + MEAN + i], S[block + M2 + i], S[POOLED + i], S[block + OWN + i], params)
                S[block + KEY + i] = weigh(v, count, scales[k], exponent)

    def run(
        kinds: Any,
        parameters: Any,
        table: Any,
        seed: Any,
        first: Any,
        checkpoints: Any,
        params: Any,
        own: Any,
        warmup: int,
        counts: Any,
        means: Any,
        m2s: Any,
        column: int,
        scales: Any,
        exponent: float,
    ) -> None:
        K = len(kinds)
        H = 8
        while 2 * H <= RING and 2 * H * K <= 4096:
            H *= 2
        X = ARMS + K * BLOCK
        S = np.zeros(X + K * H * W)
        offsets = np.zeros(W, np.uint64)
        drawn = np.zeros(K, np.int64)
        lowest = 0.0
        refresh = _next_refresh(0, K)
        for k in range(K):
            for i in range(W):
                S[ARMS + k * BLOCK + OWN + i] = own[k]
        t = 0
        for c in range(len(checkpoints)):
            while t < checkpoints[c]:
                if t < warmup * K:
                    for i in range(W):
                        S[CHOSEN + i] = float(t % K)
                else:
                    choose(S, K)
                    if has_floor:
                        least = floor(float(t), float(K), params)
                        if lowest < least:
                            lowest = force(S, K, least)
                for i in range(W):
                    offsets[i] = U(ARMS) + U(S[CHOSEN + i]) * U(BLOCK) + U(i)
                for i in range(W):
                    k = int(S[CHOSEN + i])
                    j = int(S[offsets[i] + U(COUNT)])
                    if j >= drawn[k]:
                        at = X + (k * H + (drawn[k] & (H - 1))) * W
                        fill(
                            kinds[k], parameters[k, 0], parameters[k, 1], table, seed, first, U(k), U(j >> 1), S, at, W
                        )
                        drawn[k] += 2
                    if j >= drawn[k] - H:
                        S[SAMPLE + i] = S[X + (k * H + (j & (H - 1))) * W + i]
                    else:
                        x0, x1 = pair(
                            kinds[k], parameters[k, 0], parameters[k, 1], table, seed, first + U(i), U(k), U(j >> 1)
                        )
                        S[SAMPLE + i] = x1 if j & 1 else x0
                update(S, offsets, params, scales, exponent)
                t += 1
                if has_pool and t >= refresh:
                    refresh = _next_refresh(t, K)
                    rekey(S, K, params, scales, exponent)
            for k in range(K):
                block = ARMS + k * BLOCK
                for i in range(W):
                    counts[c, k, column + i] = S[block + COUNT + i]
                    means[c, k, column + i] = S[block + MEAN + i]
                    m2s[c, k, column + i] = S[block + M2 + i]

    return jit(run, nogil=True, announce=ANNOUNCE)


def heap(variance: Any, floor: Any, freeze: Any, pool: int, uses_own: bool, form: int) -> Callable[..., None]:
    """The kernel for very many arms: one run at a time, decisions in O(log K)."""
    # An arm's numbers lie together, so that they come in one line of memory. SPARE is the second sample of a pair.
    COUNT, MEAN, M2, SPARE, OWN = range(5)
    row = 8 if uses_own else 4
    # Scores and arms of the heap of keys, then of the heap of pulls.
    KEY, LEAST = 0, 1
    has_floor, has_freeze, has_pool = floor is not None, freeze is not None, pool != 0
    variance = jit(variance)
    floor = jit(floor) if has_floor else None
    freeze = jit(freeze) if has_freeze else None
    weigh = _weigh(form)

    @jit
    def arm_key(A: Any, k: int, pooled: float, params: Any, scales: Any, exponent: float) -> float:
        count = A[k, COUNT]
        own = A[k, OWN] if uses_own else 0.0
        v = variance(count, A[k, MEAN], A[k, M2], pooled, own, params)
        return weigh(v, count, scales[k], exponent)

    @jit
    def all_keys(A: Any, floats: Any, ints: Any, pooled: float, params: Any, scales: Any, exponent: float) -> None:
        for i in range(len(A)):
            floats[KEY, i] = arm_key(A, ints[2 * KEY, i], pooled, params, scales, exponent)
        heapify(floats, ints, KEY, 2 * KEY)

    def run(
        kinds: Any,
        parameters: Any,
        table: Any,
        seed: Any,
        first: Any,
        checkpoints: Any,
        params: Any,
        own: Any,
        warmup: int,
        counts: Any,
        means: Any,
        m2s: Any,
        column: int,
        scales: Any,
        exponent: float,
    ) -> None:
        K = len(kinds)
        A = np.zeros((K, row))
        floats = np.zeros((2 if has_floor else 1, K))
        ints = np.zeros((4 if has_floor else 2, K), np.int32)
        pooled = 0.0
        refresh = _next_refresh(0, K)
        for k in range(K):
            if uses_own:
                A[k, OWN] = own[k]
            for i in range(len(ints)):
                ints[i, k] = k
        t = 0
        for c in range(len(checkpoints)):
            while t < checkpoints[c]:
                k = t % K
                if t >= warmup * K:
                    k = ints[2 * KEY, 0]
                    if has_floor:
                        # As in the study: entries are put right when they are looked at, as pulls only grow.
                        least = floor(float(t), float(K), params)
                        while -floats[LEAST, 0] < least:
                            j = ints[2 * LEAST, 0]
                            if -floats[LEAST, 0] == A[j, COUNT]:
                                k = j
                                break
                            change(floats, ints, LEAST, 2 * LEAST, j, -A[j, COUNT])
                count = A[k, COUNT]
                x = A[k, SPARE]
                if int(count) & 1 == 0:
                    x, A[k, SPARE] = pair(
                        kinds[k], parameters[k, 0], parameters[k, 1], table, seed, first, U(k), U(int(count) >> 1)
                    )
                A[k, COUNT], A[k, MEAN], A[k, M2] = _add(count, A[k, MEAN], A[k, M2], x)
                if has_freeze:
                    A[k, OWN] = freeze(x, A[k, COUNT], A[k, MEAN], A[k, M2], pooled, A[k, OWN], params)
                t += 1
                refreshed = False
                if has_pool and t >= refresh:
                    refresh = _next_refresh(t, K)
                    pooled = _pooled(pool, A[:, COUNT], A[:, M2])
                    refreshed = True
                if t == warmup * K or (refreshed and t > warmup * K):
                    all_keys(A, floats, ints, pooled, params, scales, exponent)
                elif t > warmup * K:
                    key = arm_key(A, k, pooled, params, scales, exponent)
                    if has_floor:
                        change(floats, ints, KEY, 2 * KEY, k, key)
                    else:
                        replace_top(floats, ints, KEY, 2 * KEY, key)
            for k in range(K):
                counts[c, k, column], means[c, k, column], m2s[c, k, column] = A[k, COUNT], A[k, MEAN], A[k, M2]

    return jit(run, nogil=True, announce=ANNOUNCE)


@dataclass(frozen=True)
class Plan:
    """
    What is to be simulated, as the kernels take it.

    The checkpoints are budgets: pulls, or money where the objective has costs.
    """

    problem: Problem
    strategy: Strategy
    checkpoints: tuple[float, ...]
    params: tuple[float, ...]
    seed: int
    in_flight: int = 1
    objective: Objective = field(default_factory=Objective)

    @property
    def one_by_one(self) -> bool:
        """Whether runs go one at a time, as answers come late or samples have prices, and each budget on its own."""
        return self.in_flight > 1 or self.objective.costs is not None

    @property
    def form(self) -> int:
        """What the objective asks of keys: nothing, scales, or scales and an exponent."""
        if self.objective.p != math.inf:
            return NORM
        return PLAIN if self.objective.weights is None else WEIGHTED


@dataclass(frozen=True)
class Ends:
    """Where runs stood at each checkpoint: samples, means and M2, by checkpoint, arm and run."""

    counts: Floats
    means: Floats
    m2s: Floats

    def split(self, runs: int) -> list[Ends]:
        """The same in parts of so many runs."""
        return [
            Ends(*(each[..., first : first + runs] for each in (self.counts, self.means, self.m2s)))
            for first in range(0, self.counts.shape[-1], runs)
        ]

    @classmethod
    def join(cls, parts: Sequence[Ends]) -> Ends:
        """The runs of all parts."""
        return cls(*(np.concatenate([getattr(part, f.name) for part in parts], axis=-1) for f in fields(cls)))


# Up to here the arms' states are chosen by selects, and up to here they are scanned; from there on a heap is faster.
FEW, MANY = 16, 320
# The same for runs that go one at a time.
SCANNED = 64


@lru_cache(maxsize=256)
def _kernel(
    variance: Any, floor: Any, freeze: Any, pool: int, own: bool, form: int, arms: int
) -> tuple[Callable[..., None], int]:
    """The kernel for a strategy and a number of arms, 0 for many, -1 for very many; how many runs it does at once."""
    if arms == 0:
        return lanes_many(variance, floor, freeze, pool, form), LANES
    if arms > 0:
        return lanes_few(variance, floor, freeze, arms, pool, form), LANES
    return heap(variance, floor, freeze, pool, own, form), 1


@lru_cache(maxsize=256)
def _delayed(
    variance: Any, floor: Any, freeze: Any, pool: int, scaled: bool, priced: bool, scanned: bool
) -> tuple[Callable[..., None], int]:
    return jit(one_by_one(variance, floor, freeze, pool, scanned, scaled, priced), nogil=True, announce=ANNOUNCE), 1


def kernel(plan: Plan) -> tuple[Callable[..., None], int]:
    """The kernel for a plan, and how many runs it does at once."""
    strategy, arms = plan.strategy, len(plan.problem)
    functions = (
        strategy.variance,
        strategy.floor if strategy.has_floor() else None,
        strategy.freeze if strategy.own == "frozen" else None,
        keys.POOLS.index(strategy.pool),
    )
    if plan.one_by_one:
        return _delayed(*functions, plan.form != PLAIN, plan.objective.costs is not None, arms <= SCANNED)
    return _kernel(*functions, strategy.own != "none", plan.form, arms if arms <= FEW else 0 if arms <= MANY else -1)


def own_numbers(plan: Plan) -> Floats:
    """The number each arm starts with: nothing, nothing frozen yet, or the variance that an oracle goes by."""
    arms = len(plan.problem)
    if plan.strategy.own != "variance":
        return np.full(arms, -1.0 if plan.strategy.own == "frozen" else 0.0)
    given = getattr(plan.strategy, "variances", None)
    if given is None:
        return plan.problem.variances
    if len(given) != arms:
        raise ValueError(f"{len(given)} variances were given for {arms} arms")
    return np.array(given, dtype=float)


def simulate(plan: Plan, first: int, runs: int) -> Ends:
    """Runs `first` to `first + runs` of the plan, in this thread."""
    arms, objective = len(plan.problem), plan.objective
    run, lanes = kernel(plan)
    kinds, parameters, table = encode(plan.problem.arms)
    own = own_numbers(plan)
    whole = -(-runs // lanes) * lanes
    ends = np.empty((3, len(plan.checkpoints), arms, whole))
    priced = objective.costs is not None
    checkpoints = np.array(plan.checkpoints, dtype=float if priced else np.int64)
    scales, costs = objective.scales(arms), objective.cost(arms)
    # No more can be in flight than the budget has pulls.
    late = (costs, min(plan.in_flight, 1 + int(checkpoints.max() / costs.min()))) if plan.one_by_one else ()
    for column in range(0, whole, lanes):
        run(
            kinds,
            parameters,
            table,
            U(plan.seed),
            U(first + column),
            checkpoints,
            plan.params or (0.0,),
            own,
            plan.strategy.warmup,
            *ends,
            column,
            scales,
            objective.exponent,
            *late,
        )
    return Ends(*ends[..., :runs])


@contextmanager
def one_kernel() -> Iterator[None]:
    """
    Within it a handful of arms is simulated by `lanes_many` too, with the same results.

    That kernel is slower there and compiled once for a strategy, not for each number of arms: better for simulations of
    many problems that are short.
    """
    global FEW
    before, FEW = FEW, 0
    try:
        yield
    finally:
        FEW = before
