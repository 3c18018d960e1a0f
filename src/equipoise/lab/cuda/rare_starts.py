"""
Runs by how quiet their starts are, on a card: the same strata as `starts.py`, where all samples are drawn.

One kernel draws the starts of each arm and keeps their M2 in single precision. Another, with a block for each arm and
number of samples, finds the value below which the quietest runs are by bisecting its bits, and ranks those by counting.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from equipoise.base.arrays import Ints
from equipoise.engine import streams
from equipoise.engine.streams import U, encode
from equipoise.lab.board.rare_starts import LENGTHS, QUIETEST, Starts, lengths, pool_size
from equipoise.lab.cuda.device import cuda, kept, on_device
from equipoise.numeric import moments
from equipoise.problem import Problem

# Threads of a block that draws, and of one that ranks.
DRAWING, RANKING = 128, 1024
# The bits of infinity in single precision: no M2 has more.
_INFINITY = 0x7F800000


@lru_cache(maxsize=1)
def _scan() -> Any:
    """Return the kernel of the M2 of starts: a thread for each run and arm."""
    pair, add = on_device(streams.pair), on_device(moments.add)

    @cuda.jit
    def kernel(kinds: Any, parameters: Any, table: Any, seed: Any, after: Any, firsts: Any, out: Any) -> None:
        run, arm = cuda.grid(1), cuda.blockIdx.y
        if run >= out.shape[1]:
            return
        row, end = firsts[arm], firsts[arm + 1]
        count, mean, m2, block, at = 0.0, 0.0, 0.0, 0, 0
        while row < end:
            kind, a, b = kinds[arm], parameters[arm, 0], parameters[arm, 1]
            x0, x1 = pair(kind, a, b, table, seed, U(run), U(arm), U(block))
            count, mean, m2 = add(count, mean, m2, x0)
            count, mean, m2 = add(count, mean, m2, x1)
            block += 1
            # All lengths are even.
            if 2 * block == after[at]:
                out[row, run] = np.float32(m2)
                row += 1
                at += 1

    return kept(kernel)


@lru_cache(maxsize=4)
def _rank(threads: int, quietest: int) -> Any:
    """Return the kernel of ranks: a block for each row of M2, as bits; the lowest rank of a run is kept."""
    lanes, most, top = threads, quietest, _INFINITY

    @cuda.jit
    def kernel(bits: Any, ranks: Any) -> None:
        row, lane = cuda.blockIdx.x, cuda.threadIdx.x
        found = cuda.shared.array(1, np.int32)
        low = cuda.shared.array(most, np.int32)
        who = cuda.shared.array(most, np.int32)
        runs = bits.shape[1]
        # The least value that more than `most` runs do not exceed; the quietest are below it.
        under, limit = 0, top
        while under < limit:
            middle = (under + limit) // 2
            if lane == 0:
                found[0] = 0
            cuda.syncthreads()
            mine = 0
            for r in range(lane, runs, lanes):
                if bits[row, r] <= middle:
                    mine += 1
            cuda.atomic.add(found, 0, mine)
            cuda.syncthreads()
            if found[0] > most:
                limit = middle
            else:
                under = middle + 1
            cuda.syncthreads()
        if lane == 0:
            found[0] = 0
        cuda.syncthreads()
        for r in range(lane, runs, lanes):
            if bits[row, r] < limit:
                at = cuda.atomic.add(found, 0, 1)
                low[at] = bits[row, r]
                who[at] = r
        cuda.syncthreads()
        quiet = found[0]
        for i in range(lane, quiet, lanes):
            rank, mine = 0, low[i]
            for j in range(quiet):
                if low[j] <= mine:
                    rank += 1
            cuda.atomic.min(ranks, who[i], rank)

    return kept(kernel)


def ranks(
    problem: Problem,
    after: list[list[int]],
    seed: int,
    pool: int,
    quietest: int = QUIETEST,
    drawing: int = DRAWING,
    ranking: int = RANKING,
) -> Ints:
    """
    Return the lowest rank that each run of a pool has for any arm and number of samples; `pool` for all the others.

    Parameters
    ----------
    problem, seed
        Whose samples.
    after
        For each arm after how many samples its starts are looked at: the first of LENGTHS.
    pool
        How many runs.
    quietest
        How many runs have ranks, at most, for an arm and a number of samples.
    drawing, ranking
        Threads of a block.
    """
    firsts = np.cumsum([0, *map(len, after)])
    kinds, parameters, table = encode(problem.arms)
    variations = cuda.device_array((int(firsts[-1]), pool), np.float32)
    found = cuda.to_device(np.full(pool, pool, np.int32))
    sent = [cuda.to_device(each) for each in (kinds, parameters, table)]
    _scan()[(-(-pool // drawing), len(after)), drawing](
        *sent, U(seed), cuda.to_device(np.array(LENGTHS)), cuda.to_device(firsts), variations
    )
    _rank(ranking, quietest)[int(firsts[-1]), ranking](variations.view(np.int32), found)
    return np.asarray(found.copy_to_host(), np.int64)


@lru_cache(maxsize=1024)
def starts(problem: Problem, budget: int, seed: int) -> Starts | None:
    """Return the runs of a pool by their starts; None if the budget is too small for any, or arms are too many."""
    after = lengths(problem, budget)
    pool = pool_size(after)
    return Starts.of(ranks(problem, after, seed, pool)) if pool > QUIETEST else None
