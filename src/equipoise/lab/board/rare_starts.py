"""
Quiet starts: in which runs of a problem a strategy is most likely to starve an arm.

A strategy that goes by sample variances starves an arm whose first samples happen to vary far too little. That may be
rare and still be most of the loss: an arm that is left with j samples where the best allocation has m loses m/j times
as much as it should, so that a failure of probability q adds about q m/j to the excess. With m/j = 1,000, one run in
10,000 adds 10%, and a few thousand runs are likely to miss it.

But a sample is a pure function of its address, so that the start of a run can be looked at without simulating the run.
For every arm and several j, the runs of a large pool are ranked by the sample variance of the arm's first j samples. A
run's rank is the lowest that it has for any arm and j, and the pool is divided into strata by it: the quietest 64
runs, the next 64, the next 128, 256 and so on, and the rest. Simulating 64 of each finds failures of any probability
from a few runs of the pool on. The strategy has no part in this: all are measured on the same runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.base.arrays import Ints
from equipoise.compiled import jit
from equipoise.engine.streams import Laws, U, fill_of
from equipoise.numeric import moments
from equipoise.problem import Problem

# Starts are looked at after so many samples of an arm, as long as the best allocation has at least twice as many.
LENGTHS = (4, 6, 8, 12, 16, 24, 32, 48, 64)
# So many samples are drawn for a pool, of at most so many runs.
SAMPLES, MOST_RUNS = 1 << 27, 1 << 17
# How many runs of a stratum are simulated at least; the first stratum has no more. The quietest 4,096 runs are in
# strata of their own: the next 4,096 would have 64 among the first 2,048 runs of the largest pool anyway.
SIMULATED, QUIETEST = 64, 4096

# One small integer for each run: the pools of hundreds of problems are kept.
Strata = npt.NDArray[np.int8]
Singles = npt.NDArray[np.float32]

# Runs side by side, and how many samples of each are drawn at once.
_LANES, _AHEAD = 64, 4
_add = jit(moments.add)


@dataclass(frozen=True)
class Starts:
    """
    The runs of a pool, which are numbered from 0 on, by how quiet their starts are.

    Attributes
    ----------
    strata
        The stratum of each run: 0 for the quietest.
    simulated
        The numbers of the runs to simulate: of the even and of the odd runs of each stratum, the first 32.
    """

    strata: Strata
    simulated: Ints

    @classmethod
    def of(cls, ranks: Ints) -> Starts:
        """Return the strata of runs by their ranks; low ranks are quiet."""
        # Runs of one rank are in one stratum, so that strata do not depend on the numbers of the runs.
        at_most = np.cumsum(np.bincount(ranks))
        rest = np.log2(QUIETEST / SIMULATED) + 1
        by_rank = np.ceil(np.log2(np.maximum(at_most / SIMULATED, 1))).clip(max=rest).astype(np.int8)
        strata = by_rank[ranks]
        parts = [
            half + 2 * np.flatnonzero(strata[half::2] == s)[: SIMULATED // 2]
            for s in range(int(rest) + 1)
            for half in (0, 1)
        ]
        return cls(strata, np.sort(np.concatenate(parts)))

    @cached_property
    def sizes(self) -> list[Ints]:
        """How many even and how many odd runs each stratum has."""
        return [np.bincount(self.strata[half::2]) for half in (0, 1)]


def lengths(problem: Problem, budget: int) -> list[list[int]]:
    """Return for each arm after how many samples its starts are looked at."""
    return [[j for j in LENGTHS if 2 * j <= best] for best in problem.lambdas * budget]


@lru_cache(maxsize=1024)
def starts(problem: Problem, budget: int, seed: int) -> Starts | None:
    """Return the runs of a pool by their starts; None if the budget is too small for any, or arms are too many."""
    found = lengths(problem, budget)
    pool = pool_size(found)
    if pool <= QUIETEST:
        return None
    laws = Laws.of(problem, seed, np.arange(pool), side_by_side="runs")
    ranks = np.full(pool, pool)
    for arm, each in enumerate(found):
        for values in variations(laws, arm, each):
            lower(ranks, values, QUIETEST)
    return Starts.of(ranks)


def lower(ranks: Ints, values: Singles, quietest: int) -> None:
    """Lower the ranks of runs to those that they have by these values, where that is among the quietest."""
    # Every 16th value says about where the quietest end, so that few values have to be looked at.
    some = values[::16]
    likely = min(2 * quietest // 16, len(some) - 1)
    near = np.flatnonzero(values < np.partition(some, likely)[likely])
    limit = np.sort(values[near] if len(near) > quietest else values)[quietest]
    low = np.flatnonzero(values < limit)
    low = low[np.argsort(values[low])]
    found = values[low]
    ranks[low] = np.minimum(ranks[low], np.searchsorted(found, found, "right"))


def pool_size(found: list[list[int]]) -> int:
    """Return how many runs are looked at, given the `lengths` of the starts."""
    drawn = sum(each[-1] for each in found if each)
    return min(MOST_RUNS, 1 << math.floor(math.log2(SAMPLES / drawn))) if drawn else 0


def variations(laws: Laws, arm: int, after: list[int]) -> Singles:
    """
    Return the M2 of an arm's first samples: a row for each number of samples, a column for each run.

    They are in single precision, so that those of discrete samples that differ by rounding alone are equal.
    """
    out = np.empty((len(after), len(laws.runs)), np.float32)
    if after:
        _scan(laws, arm, np.array(after), out)
    return out


def _scan_runs(laws: Any, arm: int, after: Any, out: Any) -> None:
    x, mean, m2 = np.empty(_AHEAD * _LANES), np.empty(_LANES), np.empty(_LANES)
    for place in range(0, len(laws.runs), _LANES):
        lanes = min(_LANES, len(laws.runs) - place)
        mean[:], m2[:] = 0.0, 0.0
        count, row = 0, 0
        while row < len(after):
            if count % _AHEAD == 0:
                fill_of(laws, U(place), arm, count >> 1, _AHEAD >> 1, x, 0, lanes)
            at = (count % _AHEAD) * lanes
            for i in range(lanes):
                _, mean[i], m2[i] = _add(float(count), mean[i], m2[i], x[at + i])
            count += 1
            if count == after[row]:
                for i in range(lanes):
                    out[row, place + i] = m2[i]
                row += 1


_scan = jit(_scan_runs, nogil=True)
