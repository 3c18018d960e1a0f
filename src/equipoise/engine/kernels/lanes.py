"""
The CPU kernel that simulates many runs side by side, for arms that can be scanned at every step.

Runs go in lanes, all at the same step, so that what a step does to one lane it does to the others and the compiler
vectorises it. All state lies in one flat workspace with constant offsets. Where the number of arms is known, samples
are drawn ahead for all lanes of an arm at once, into a ring of its latest samples; a lane that has fallen behind the
ring draws its own. Where it is not, each lane draws a chunk of an arm's samples when it has used up the last.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types

from equipoise.compiled import inlined, jit
from equipoise.engine.rule import NORM, PLAIN, Rule, steps
from equipoise.engine.streams import U, fill_of
from equipoise.numeric.floats import select
from equipoise.numeric.tuples import loader, selector, storer
from equipoise.strategies import key as keys

_next_refresh = jit(keys.next_refresh)
_in_turn = jit(keys.in_turn)
# Beyond this number of arms, lanes draw shorter chunks.
MANY = 32


@dataclass(frozen=True)
class Layout:
    """
    How lanes and rings are laid out, which matters to the speed alone.

    Attributes
    ----------
    lanes
        Runs side by side.
    ring
        Samples of an arm that are kept, a power of two, where the kernel is compiled for the number of arms; by default
        more for fewer arms.
    stretch
        Steps between two checks of the rings.
    selected
        Up to this number of arms the chosen arm's numbers are found by selects, above it by their index.
    scanned
        So many arms are compared at once where their number is not known.
    chunk
        Samples of an arm that a lane draws at once there, a power of two; half as many beyond MANY arms.
    """

    lanes: int = 64
    ring: int | None = None
    stretch: int = 16
    selected: int = 6
    scanned: int = 4
    chunk: int = 32

    def ring_size(self, arms: int) -> int:
        """Return how many samples of an arm are kept: more where there are few arms, as lanes drift apart."""
        return self.ring or 128 * max(1, 4 // 2 ** max(0, (arms - 1).bit_length() - 2))


def strategy_parts(run: Callable[..., None], params: int) -> list[tuple[Any, tuple[Any, ...]]]:
    """
    Return the parts of a kernel that have the strategy in them, with the types that they are compiled for.

    Parameters
    ----------
    run
        The kernel, not compiled yet.
    params
        How many parameters the strategy takes, at least 1.
    """
    names = inspect.getclosurevars(run).nonlocals
    row = types.Array(types.float64, 1, "C")
    numbers = types.UniTuple(types.float64, params), row, types.float64
    found: list[tuple[Any, tuple[Any, ...]]]
    if names["selected"]:
        found = [(names["update_by_selects"].part, (row, *numbers))]
    else:
        found = [(names["update_by_index"].part, (row, types.Array(types.uint64, 1, "C"), *numbers))]
    if names["has_pool"]:
        arms = types.literal(names["arms"]) if names["few"] else types.int64
        found.append((names["rekey"].part, (row, arms, *numbers)))
    return found


def lanes(rule: Rule, arms: int, layout: Layout) -> Callable[..., None]:
    """
    Return the kernel that scans the arms at every step, for this number of arms or, with 0, for any; not compiled yet.

    For a number that is known, samples are drawn some steps ahead, and choosing is done by selects in one go over the
    lanes. For any number, samples are drawn in chunks for each lane, and choosing goes a few arms at a time.
    """
    W, STRETCH = layout.lanes, layout.stretch
    few, selected = arms > 0, 0 < arms <= layout.selected
    few_H = layout.ring_size(arms) if few else 0
    SCANNED, CHUNK = layout.scanned, layout.chunk
    # The workspace S: rows for the lanes, then a block of rows for each arm, then the rings. A row is one number for
    # each lane. First what the lanes know of the arms they chose and of all arms, then the arms' own rows, within a
    # block. Where a strategy has several own, pooled or summed numbers, their rows follow one another.
    CHOSEN, BEST, ITS_COUNT, ITS_MEAN, ITS_M2, ITS_KEY, SAMPLE, ITS_OWN = (row * W for row in range(8))
    POOLED = ITS_OWN + rule.own * W
    SUMS = POOLED + rule.pooled * W
    # Odd numbers of rows here and in a block: rows a power of two apart compete for the same lines of cache.
    ARMS = (SUMS // W + rule.sums | 1) * W
    COUNT, MEAN, M2, KEY, OWN = (row * W for row in range(5))
    BLOCK = (4 + rule.own | 1) * W
    # Rows that are free at other times serve a second purpose: the scale of the chosen arm; the fewest pulls and the
    # arm that has them; the number of arms in the sums; the two samples that a lane behind the ring draws.
    ITS_SCALE = BEST
    FEWEST, LEAST_PULLED = BEST, ITS_KEY
    KNOWN = ITS_KEY
    # Not Python's integers, which are literals: `fill_of` would be compiled for each of them.
    PAIR, ALL, ALONE = (np.int64(number) for number in (BEST, W, 1))
    has_floor, has_keep, has_pool = rule.floor is not None, rule.keep is not None, rule.pool is not None
    own_numbers, has_scale, has_power = rule.own, rule.form != PLAIN, rule.form == NORM
    take, variance, weigh, key_of, floor, add_share, pool = steps(rule, jit, jit)
    read_own, read_pooled, read_sums = map(loader, (rule.own, rule.pooled, rule.sums))
    write_own, write_pooled, write_sums = map(storer, (rule.own, rule.pooled, rule.sums))
    pick_own = selector(rule.own, select, inlined)

    @jit
    def choose_few(S: Any, K: int) -> None:
        """Find the arm with the largest key in each lane, the lowest among equals, and its count."""
        for i in range(W):
            best, chosen, count = S[ARMS + KEY + i], 0.0, S[ARMS + COUNT + i]
            for k in range(1, K):
                at = ARMS + k * BLOCK + i
                better = S[at + KEY] > best
                best = select(better, S[at + KEY], best)
                chosen = select(better, float(k), chosen)
                count = select(better, S[at + COUNT], count)
            S[CHOSEN + i] = chosen
            S[ITS_COUNT + i] = count

    @jit
    def choose_many(S: Any, K: int) -> None:
        """Find the arm with the largest key in each lane, the lowest among equals."""
        for i in range(W):
            S[BEST + i] = S[ARMS + KEY + i]
            S[CHOSEN + i] = 0.0
        # Several arms at a time, so that what is best so far is seldom read and written.
        for k in range(1, K - SCANNED + 1, SCANNED):
            row = ARMS + k * BLOCK + KEY
            keys = S[row : row + SCANNED * BLOCK]
            for i in range(W):
                best, chosen = S[BEST + i], S[CHOSEN + i]
                for j in range(SCANNED):
                    better = keys[j * BLOCK + i] > best
                    best = select(better, keys[j * BLOCK + i], best)
                    chosen = select(better, float(k + j), chosen)
                S[BEST + i], S[CHOSEN + i] = best, chosen
        for k in range(K - (K - 1) % SCANNED, K):
            row = ARMS + k * BLOCK + KEY
            for i in range(W):
                better = S[row + i] > S[BEST + i]
                S[BEST + i] = select(better, S[row + i], S[BEST + i])
                S[CHOSEN + i] = select(better, float(k), S[CHOSEN + i])

    choose = choose_few if few else choose_many

    @jit
    def force(S: Any, K: int, least: float) -> float:
        """Choose the least pulled arm where it has fewer pulls than `least`; return the fewest pulls over all lanes."""
        for i in range(W):
            S[FEWEST + i] = S[ARMS + COUNT + i]
            S[LEAST_PULLED + i] = 0.0
        for k in range(1, K):
            row = ARMS + k * BLOCK + COUNT
            for i in range(W):
                fewer = S[row + i] < S[FEWEST + i]
                S[FEWEST + i] = select(fewer, S[row + i], S[FEWEST + i])
                S[LEAST_PULLED + i] = select(fewer, float(k), S[LEAST_PULLED + i])
        lowest = math.inf
        for i in range(W):
            under = S[FEWEST + i] < least
            S[CHOSEN + i] = select(under, S[LEAST_PULLED + i], S[CHOSEN + i])
            S[ITS_COUNT + i] = select(under, S[FEWEST + i], S[ITS_COUNT + i])
            lowest = min(lowest, S[FEWEST + i])
        return lowest

    @jit
    def update_by_selects(S: Any, params: Any, scales: Any, exponent: float) -> None:
        """Take in the sample of each lane's chosen arm, by selects over all arms."""
        for i in range(W):
            chosen, pooled = S[CHOSEN + i], read_pooled(S, POOLED + i, W)
            mean, m2, own = S[ARMS + MEAN + i], S[ARMS + M2 + i], read_own(S, ARMS + OWN + i, W)
            scale = scales[0]
            for k in range(1, arms):
                this = chosen == float(k)
                at = ARMS + k * BLOCK + i
                mean = select(this, S[at + MEAN], mean)
                m2 = select(this, S[at + M2], m2)
                own = pick_own(this, read_own(S, at + OWN, W), own)
                if has_scale:
                    scale = select(this, scales[k], scale)
            count, mean, m2, own = take(S[SAMPLE + i], S[ITS_COUNT + i], mean, m2, own, pooled, params)
            key = key_of(count, mean, m2, own, pooled, params, scale, exponent)
            for k in range(arms):
                this = chosen == float(k)
                at = ARMS + k * BLOCK + i
                S[at + COUNT] = select(this, count, S[at + COUNT])
                S[at + MEAN] = select(this, mean, S[at + MEAN])
                S[at + M2] = select(this, m2, S[at + M2])
                S[at + KEY] = select(this, key, S[at + KEY])
                if has_keep:
                    write_own(S, at + OWN, W, pick_own(this, own, read_own(S, at + OWN, W)))

    @jit
    def update_by_index(S: Any, offsets: Any, params: Any, scales: Any, exponent: float) -> None:
        """Take in the sample of each lane's chosen arm: numbers move one by one, only the arithmetic is in vectors."""
        for i in range(W):
            at = offsets[i]
            S[ITS_COUNT + i], S[ITS_MEAN + i], S[ITS_M2 + i] = S[at + U(COUNT)], S[at + U(MEAN)], S[at + U(M2)]
            write_own(S, ITS_OWN + i, W, read_own(S, at + U(OWN), U(W)))
            S[ITS_SCALE + i] = scales[int(S[CHOSEN + i])] if has_scale else 1.0
        for i in range(W):
            pooled, own = read_pooled(S, POOLED + i, W), read_own(S, ITS_OWN + i, W)
            count, mean, m2, own = take(
                S[SAMPLE + i], S[ITS_COUNT + i], S[ITS_MEAN + i], S[ITS_M2 + i], own, pooled, params
            )
            if has_power:
                S[ITS_KEY + i] = variance(count, mean, m2, pooled, own, params)
            else:
                S[ITS_KEY + i] = key_of(count, mean, m2, own, pooled, params, S[ITS_SCALE + i], exponent)
            S[ITS_COUNT + i], S[ITS_MEAN + i], S[ITS_M2 + i] = count, mean, m2
            if has_keep:
                write_own(S, ITS_OWN + i, W, own)
        # In a loop of its own, as a power does not vectorise.
        if has_power:
            for i in range(W):
                S[ITS_KEY + i] = weigh(S[ITS_KEY + i], S[ITS_COUNT + i], S[ITS_SCALE + i], exponent)
        for i in range(W):
            at = offsets[i]
            S[at + U(COUNT)], S[at + U(MEAN)], S[at + U(M2)] = S[ITS_COUNT + i], S[ITS_MEAN + i], S[ITS_M2 + i]
            S[at + U(KEY)] = S[ITS_KEY + i]
            if has_keep:
                write_own(S, at + U(OWN), U(W), read_own(S, ITS_OWN + i, W))

    @jit
    def rekey(S: Any, K: int, params: Any, scales: Any, exponent: float) -> None:
        """Refresh the pooled numbers and every key."""
        for row in range(SUMS, ARMS):
            S[row] = 0.0
        for i in range(W):
            S[KNOWN + i] = 0.0
        for k in range(K):
            row = ARMS + k * BLOCK
            # Copied first: of rows at constant offsets the compiler knows that they are not those of the sums.
            for i in range(W):
                at = row + i
                S[ITS_COUNT + i], S[ITS_MEAN + i], S[ITS_M2 + i] = S[at + COUNT], S[at + MEAN], S[at + M2]
                write_own(S, ITS_OWN + i, W, read_own(S, at + OWN, W))
            for i in range(W):
                sums, S[KNOWN + i] = add_share(
                    S[ITS_COUNT + i],
                    S[ITS_MEAN + i],
                    S[ITS_M2 + i],
                    read_own(S, ITS_OWN + i, W),
                    read_pooled(S, POOLED + i, W),
                    params,
                    read_sums(S, SUMS + i, W),
                    S[KNOWN + i],
                )
                write_sums(S, SUMS + i, W, sums)
        for i in range(W):
            found = pool(read_sums(S, SUMS + i, W), S[KNOWN + i], read_pooled(S, POOLED + i, W), params)
            write_pooled(S, POOLED + i, W, found)
        for k in range(K):
            for i in range(W):
                at = ARMS + k * BLOCK + i
                S[at + KEY] = key_of(
                    S[at + COUNT],
                    S[at + MEAN],
                    S[at + M2],
                    read_own(S, at + OWN, W),
                    read_pooled(S, POOLED + i, W),
                    params,
                    scales[k],
                    exponent,
                )

    @jit
    def draw_ahead(S: Any, laws: Any, first: Any, drawn: Any, K: int, H: int, X: int, ahead: int) -> bool:
        """Fill the rings for so many steps; return whether a lane is behind the ring of an arm."""
        lagging = False
        for k in range(K):
            most, fewest = 0.0, math.inf
            for i in range(W):
                most = max(most, S[ARMS + k * BLOCK + COUNT + i])
                fewest = min(fewest, S[ARMS + k * BLOCK + COUNT + i])
            while drawn[k] < most + ahead:
                # As many as are needed, or as there are to the end of the ring.
                at = drawn[k] & (H - 1)
                blocks = min(int(most) + ahead + 1 - drawn[k], H - at) >> 1
                fill_of(laws, first, k, drawn[k] >> 1, blocks, S, X + (k * H + at) * W, ALL)
                drawn[k] += 2 * blocks
            lagging = lagging or fewest < drawn[k] - H
        return lagging

    @jit
    def sample_few(S: Any, laws: Any, first: Any, drawn: Any, lagging: bool, H: int, X: int, offsets: Any) -> None:
        """Take each lane's sample from the rings, or draw it where the lane is behind."""
        for i in range(W):
            ring = U(S[CHOSEN + i]) * U(H) + (U(S[ITS_COUNT + i]) & U(H - 1))
            offsets[i] = U(X) + ring * U(W) + U(i)
        for i in range(W):
            S[SAMPLE + i] = S[offsets[i]]
        if lagging:
            for i in range(W):
                k, j = int(S[CHOSEN + i]), int(S[ITS_COUNT + i])
                if j < drawn[k] - H:
                    fill_of(laws, first + U(i), k, j >> 1, ALONE, S, PAIR, ALONE)
                    S[SAMPLE + i] = S[PAIR + (j & 1)]
        if not selected:
            for i in range(W):
                offsets[i] = U(ARMS) + U(S[CHOSEN + i]) * U(BLOCK) + U(i)

    @jit
    def sample_many(S: Any, laws: Any, first: Any, drawn: Any, lagging: bool, H: int, X: int, offsets: Any) -> None:
        """Take each lane's sample from its own chunk of the arm's samples, and draw the next chunk where it is due."""
        for i in range(W):
            offsets[i] = U(ARMS) + U(S[CHOSEN + i]) * U(BLOCK) + U(i)
        for i in range(W):
            k = int(S[CHOSEN + i])
            j = int(S[offsets[i] + U(COUNT)])
            chunk = X + (k * W + i) * H
            if j & (H - 1) == 0:
                fill_of(laws, first + U(i), k, j >> 1, ALONE, S, chunk, H >> 1)
            S[SAMPLE + i] = S[chunk + ((j & (H - 1)) >> 1) + (j & 1) * (H >> 1)]

    sample = sample_few if few else sample_many

    def run(laws: Any, checkpoints: Any, numbers: Any, ends: Any) -> None:
        params, scales, exponent = numbers.params, numbers.scales, numbers.exponent
        K = arms if few else len(laws.kinds)
        # Many arms have few samples each, and what is left of a chunk in the end is drawn in vain.
        H = few_H if few else (CHUNK if K <= MANY else CHUNK // 2)
        X = ARMS + K * BLOCK
        S = np.empty(X + K * H * W)
        offsets = np.empty(W, np.uint64)
        drawn = np.empty(K, np.int64)
        # A function for the runs of one round would be optimised twice: by itself, and here.
        for place in range(0, len(laws.runs), W):
            first = U(place)
            for row in range(X):
                S[row] = 0.0
            for k in range(K):
                drawn[k] = 0
                for row in range(own_numbers):
                    for i in range(W):
                        S[ARMS + k * BLOCK + OWN + row * W + i] = numbers.own[k, row]
            lagging = False
            lowest = 0.0
            in_turn = _in_turn(numbers.warmup, K)
            refresh = _next_refresh(0, K)
            t = 0
            for c in range(len(checkpoints)):
                while t < checkpoints[c]:
                    if few and t % STRETCH == 0:
                        ahead = min(STRETCH, checkpoints[len(checkpoints) - 1] - t)
                        lagging = draw_ahead(S, laws, first, drawn, K, H, X, ahead)
                    if t < in_turn:
                        for i in range(W):
                            S[CHOSEN + i] = float(t % K)
                            S[ITS_COUNT + i] = S[ARMS + (t % K) * BLOCK + COUNT + i]
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
                        column = first + U(i)
                        ends[0, c, k, column] = S[row + COUNT + i]
                        ends[1, c, k, column] = S[row + MEAN + i]
                        ends[2, c, k, column] = S[row + M2 + i]

    return run
