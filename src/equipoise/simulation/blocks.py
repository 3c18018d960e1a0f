"""From runs to sums: a measurement in blocks of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.base.arrays import Floats, Ints
from equipoise.engine import cpu
from equipoise.engine.setup import Ends, Setup
from equipoise.numeric import moments
from equipoise.problem import Objective
from equipoise.simulation import estimators

# Runs whose sums are formed together on every engine, so that results do not depend on how the work was split.
BLOCK = 1024
# A thread simulates several blocks at once up to this many numbers of arms, checkpoints and runs: they fit into cache.

# Two simulations are compared by the means of this many batches of runs.
BATCHES = 64
# The multiples of the controls are fitted on a pilot of at most this many runs, far from the runs that are counted.
PILOT, PILOT_FIRST = 2048, 1 << 62
# Multiples that are fitted on P runs add about c/P to the variance of an estimate, with c = 16 where all arms are
# Gaussian. So a pilot of sqrt(c runs) costs least for a given error. Those of other arms are far noisier.
NOISE, SHORTEST_PILOT = 16, 384


@dataclass(frozen=True)
class RunSums:
    """Count, mean and M2 over runs: losses and pulls by arm, and the objective of variances over pulls."""

    count: int
    mean: Floats
    m2: Floats

    def __add__(self, other: RunSums) -> RunSums:
        return RunSums(*moments.merge(self.count, self.mean, self.m2, other.count, other.mean, other.m2))

    @classmethod
    def of(cls, rows: Floats) -> RunSums:
        """Sum each row over its columns, one for each run."""
        mean = rows.mean(axis=1)
        return cls(rows.shape[1], mean, ((rows - mean[:, None]) ** 2).sum(axis=1))


# For each checkpoint: the sums of all runs, and the means of batches of runs with their number in the last column.
Results = list[tuple[RunSums, Floats]]
# Called with the number of runs done so far.
Done = Callable[[int], Any]


@dataclass(frozen=True)
class Measurement:
    """
    Everything a worker needs to measure one setup.

    Attributes
    ----------
    setup
        One strategy with one set of parameters on one problem, at one or more budgets.
    estimator
        How the loss of each arm is estimated.
    multiples
        The multiples of the controls, for each checkpoint and arm.
    runs
        How many runs are measured.
    """

    setup: Setup
    estimator: tuple[estimators.Estimator, ...]
    multiples: list[list[Floats]]
    runs: int

    def block_runs(self) -> int:
        """Return the runs in a block: fewer where there are many arms, so that a block fits into memory."""
        return max(1, min(BLOCK, 2**22 // (len(self.setup.problem) * len(self.setup.checkpoints))))

    def blocks(self) -> int:
        """Return the number of blocks."""
        return -(-self.runs // self.block_runs())

    def block(self, b: int, blocks: int = 1) -> list[list[RunSums]]:
        """Simulate blocks from b on and return their sums for each checkpoint, in enough pieces to fill the batches."""
        size = self.block_runs()
        first = b * size
        return self.sums(cpu.simulate(self.setup, first, min(blocks * size, self.runs - first)))

    def sums(self, ends: Ends) -> list[list[RunSums]]:
        """Return the sums of blocks of runs for each checkpoint, in enough pieces to fill the batches."""
        return [self._sums(ends, c) for c in range(len(self.setup.checkpoints))]

    def _sums(self, ends: Ends, c: int) -> list[RunSums]:
        problem = self.setup.problem
        sums = estimators.ArmSums.of(problem, ends, c, self.estimator)
        losses = estimators.estimates(sums, self.estimator, self.multiples[c])
        norm = _norms(self.setup.objective, problem.variances[:, None] / sums.T)
        rows = np.vstack([losses, sums.T, norm[None]])
        return [RunSums.of(piece) for piece in np.split(rows, self.pieces_of_blocks(rows.shape[1])[1:-1], axis=1)]

    def pieces(self, runs: int) -> Ints:
        """Return where the pieces of a block of runs begin, and where the last one ends."""
        pieces = min(runs, -(-BATCHES // self.blocks()))
        each, longer = divmod(runs, pieces)
        places = np.arange(pieces + 1)
        return places * each + np.minimum(places, longer)

    def pieces_of_blocks(self, runs: int) -> Ints:
        """Return where the pieces of several blocks begin, and where the last one ends."""
        size = self.block_runs()
        if self.blocks() >= BATCHES:
            return np.append(np.arange(0, runs, size), runs)
        parts = [first + self.pieces(min(size, runs - first))[:-1] for first in range(0, runs, size)]
        return np.append(np.concatenate(parts), runs)

    def merged(self, first: int, firsts: Ints, found: Floats) -> list[list[RunSums]]:
        """
        Return the sums of pieces for each checkpoint, those of a batch merged.

        Parameters
        ----------
        first
            The first of the runs.
        firsts
            Where the pieces begin, counted from it, and where the last one ends.
        found
            Mean and M2, by piece, checkpoint and row.
        """
        batches = (first + firsts[:-1]) * BATCHES // self.runs
        starts = np.flatnonzero(np.diff(batches, prepend=-1))
        counts = np.diff(firsts)
        each = counts[:, None, None]
        totals = np.add.reduceat(counts, starts)
        means = np.add.reduceat(each * found[..., 0], starts) / totals[:, None, None]
        apart = found[..., 0] - np.repeat(means, np.diff(starts, append=len(counts)), axis=0)
        m2s = np.add.reduceat(found[..., 1] + each * apart**2, starts)
        return [
            [RunSums(int(n), mean[c], m2[c]) for n, mean, m2 in zip(totals, means, m2s, strict=True)]
            for c in range(found.shape[1])
        ]


def _norms(objective: Objective, losses: Floats) -> Floats:
    """|| w L ||_p of each column of losses by arm."""
    values = objective.weight(len(losses))[:, None] * losses
    top = values.max(axis=0)
    if objective.p == math.inf:
        return top
    # Over the largest, so that no power overflows.
    scale = np.where(top > 0, top, 1.0)
    return np.asarray(top * ((values / scale) ** objective.p).sum(axis=0) ** (1 / objective.p))


def pilot_runs(setup: Setup, chosen: tuple[estimators.Estimator, ...], runs: int) -> int:
    """
    Return how many runs a pilot has, for this many runs that are counted.

    A few are enough for Wald's multiples, and no others are fitted on them.
    """
    if len(chosen) > estimators.MOST_CONTROLLED or not any(each in ("controls", "gaussian") for each in chosen):
        return cpu.kernel(setup).at_once
    if "controls" in chosen:
        return PILOT
    wanted = max(SHORTEST_PILOT, math.ceil(math.sqrt(NOISE * runs)))
    return min(PILOT, -(-wanted // cpu.LANES) * cpu.LANES)


def multiples(setup: Setup, chosen: tuple[estimators.Estimator, ...], pilot: Ends) -> list[list[Floats]]:
    """Return the multiples of the controls for each checkpoint and arm, fitted on a pilot of other runs."""
    return [
        estimators.fit(estimators.ArmSums.of(setup.problem, pilot, c, chosen), chosen)
        for c in range(len(setup.checkpoints))
    ]


# ---- blocks together


def collect(measurement: Measurement, blocks: Iterable[list[list[RunSums]]], done: Done | None = None) -> Results:
    """Add the blocks up in their order, over all runs and in batches."""
    checkpoints = range(len(measurement.setup.checkpoints))
    totals: list[RunSums | None] = [None] * len(checkpoints)
    parts: list[list[RunSums | None]] = [[None] * BATCHES for _ in checkpoints]
    runs = 0
    for block in blocks:
        for c in checkpoints:
            first = runs
            for sums in block[c]:
                batch = first * BATCHES // measurement.runs
                total, part = totals[c], parts[c][batch]
                totals[c] = sums if total is None else total + sums
                parts[c][batch] = sums if part is None else part + sums
                first += sums.count
        runs += sum(sums.count for sums in block[0])
        if done:
            done(runs)
    return [
        (total, np.array([[*part.mean, part.count] for part in parts[c] if part is not None]))
        for c, total in enumerate(totals)
        if total is not None
    ]
