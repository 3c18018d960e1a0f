"""
The largest loss of all arms on a card (`crossed.py`): from where runs ended to a few numbers of each half and stratum.

Runs of many cells end in one array, the two halves of a cell one after the other, each a piece of consecutive columns.
Three kernels reduce them: the sums over all arms of each run, the normal equations of the controls for each piece and
arm, and means and variances of the losses in each stratum, once with the multiples fitted on the same half and once
with those of the other. Between the last two the host solves the equations, all of them at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.engine.setup import Ends
from equipoise.lab.board.split_half import ByStratum, Members, judged, named
from equipoise.lab.cuda.device import cuda, kept, on_device
from equipoise.lab.cuda.sums import TOTALS, functions, laws_of
from equipoise.numeric import moments
from equipoise.problem import Problem
from equipoise.simulation import estimators
from equipoise.simulation.estimators import CONTROLS, Estimator

# Threads of a block: a power of two.
THREADS = 128
# What is summed for each piece and arm: products of controls with the loss, the runs whose loss is not the first one's,
# pulls, and products of controls with one another.
_DIFFER, _PULLS, _GRAM = CONTROLS, CONTROLS + 1, CONTROLS + 2
_PRODUCTS = CONTROLS * (CONTROLS + 1) // 2
# So many are added up together, and their number is a multiple of that.
_TOGETHER = 16
_SUMS = -(-(_GRAM + _PRODUCTS) // _TOGETHER) * _TOGETHER
# Where the first run ended follows, and then the means of the controls.
_ENDS = 3


@dataclass(frozen=True)
class Pieces:
    """
    The halves of several cells with the same number of arms, in the order of their columns, two for each cell.

    Attributes
    ----------
    problems, chosen
        The problem of each cell, and the estimator of each of its arms.
    members
        The runs of each half.
    """

    problems: Sequence[Problem]
    chosen: Sequence[tuple[Estimator, ...]]
    members: Sequence[Members]

    @property
    def firsts(self) -> Ints:
        """The first column of each piece, and the end of the last one."""
        return np.cumsum([0, *(len(each.numbers) for each in self.members)])

    @property
    def fitted_ends(self) -> Ints:
        """Where the consecutive runs of each piece end, on which multiples are fitted."""
        return self.firsts[:-1] + np.array([each.consecutive for each in self.members])

    @property
    def strata(self) -> int:
        """How many strata there are at most."""
        return max(len(each.sizes) for each in self.members)

    @property
    def laws(self) -> Floats:
        """What `laws_of` says of each arm, by cell and arm."""
        return np.array([laws_of(problem).T for problem in self.problems])

    @property
    def known(self) -> Bools:
        """Which arms have a finite fourth moment, by cell."""
        return np.array([estimators.known_fourth(problem) for problem in self.problems])

    @property
    def expected(self) -> Bools:
        """Whether s²/T is averaged for an arm, in place of squared errors, by cell."""
        return np.array([[each == "gaussian" for each in chosen] for chosen in self.chosen])


@lru_cache(maxsize=4)
def _totals() -> Any:
    """Return the kernel of the sums over arms of each run."""
    squares, add_arm, _ = functions()
    number, SUMMED = np.float64, TOTALS

    @cuda.jit
    def kernel(ends: Any, cells: Any, laws: Any, known: Any, expected: Any, totals: Any) -> None:
        r = cuda.grid(1)
        if r >= len(cells):
            return
        cell = cells[r]
        sums = cuda.local.array(SUMMED, number)
        for j in range(SUMMED):
            sums[j] = 0.0
        for k in range(ends.shape[2]):
            T, law = ends[0, 0, k, r], laws[cell, k]
            S, Q = squares(T, ends[1, 0, k, r], ends[2, 0, k, r], law, known[cell, k], expected[cell, k])
            add_arm(T, S, Q, law, known[cell, k], expected[cell, k], sums)
        for j in range(SUMMED):
            totals[r, j] = sums[j]

    return kept(kernel)


@lru_cache(maxsize=1)
def _observed() -> Any:
    """Return the device function that finds the loss and the controls of an arm in a run."""
    squares, _, controls = functions()

    @cuda.jit(device=True)
    def observed(ends: Any, k: Any, r: Any, law: Any, known: Any, expected: Any, totals: Any, row: Any) -> Any:
        T = ends[0, 0, k, r]
        S, Q = squares(T, ends[1, 0, k, r], ends[2, 0, k, r], law, known, expected)
        return controls(T, S, Q, law, expected, totals[r], row)

    return observed


@lru_cache(maxsize=4)
def _fit(threads: int) -> Any:
    """Return the kernel of the normal equations, a block for each piece and arm."""
    observed, number, lanes = _observed(), np.float64, threads
    ALL, DIFFER, PULLS, GRAM, SUMS = CONTROLS, _DIFFER, _PULLS, _GRAM, _SUMS
    ENDS, TOGETHER = _ENDS, _TOGETHER

    @cuda.jit(device=True)
    def add_up(lane: Any, sums: Any, first: Any, shared: Any) -> None:
        """Add up some of the sums of all threads, from the first on, in the first column of `shared`."""
        cuda.syncthreads()
        for j in range(TOGETHER):
            shared[j, lane] = sums[first + j]
        cuda.syncthreads()
        step = lanes // 2
        while step > 0:
            if lane < step:
                for j in range(TOGETHER):
                    shared[j, lane] += shared[j, lane + step]
            cuda.syncthreads()
            step //= 2

    @cuda.jit
    def kernel(
        ends: Any, firsts: Any, fitted_ends: Any, laws: Any, known: Any, expected: Any, totals: Any, found: Any
    ) -> None:
        piece, k, lane = cuda.blockIdx.x, cuda.blockIdx.y, cuda.threadIdx.x
        shared = cuda.shared.array((TOGETHER, lanes), number)
        row = cuda.local.array(ALL, number)
        mean = cuda.local.array(ALL, number)
        sums = cuda.local.array(SUMS, number)
        cell = piece // 2
        law, fourth, gaussian = laws[cell, k], known[cell, k], expected[cell, k]
        first, end = firsts[piece], fitted_ends[piece]
        for j in range(SUMS):
            sums[j] = 0.0
        for r in range(first + lane, end, lanes):
            sums[ALL] += observed(ends, k, r, law, fourth, gaussian, totals, row)
            for j in range(ALL):
                sums[j] += row[j]
        add_up(lane, sums, 0, shared)
        runs = number(end - first)
        for j in range(ALL):
            mean[j] = shared[j, 0] / runs
            sums[j] = 0.0
        mean_loss = shared[ALL, 0] / runs
        sums[ALL] = 0.0
        one = observed(ends, k, first, law, fourth, gaussian, totals, row)
        for r in range(first + lane, end, lanes):
            loss = observed(ends, k, r, law, fourth, gaussian, totals, row)
            sums[DIFFER] += 1.0 if loss != one else 0.0
            sums[PULLS] += ends[0, 0, k, r]
            at = GRAM
            for i in range(ALL):
                row[i] -= mean[i]
                sums[i] += row[i] * (loss - mean_loss)
                for j in range(i + 1):
                    sums[at] += row[i] * row[j]
                    at += 1
        for part in range(0, SUMS, TOGETHER):
            add_up(lane, sums, part, shared)
            for j in range(lane, TOGETHER, lanes):
                found[piece, k, part + j] = shared[j, 0]
        for i in range(lane, ENDS, lanes):
            found[piece, k, SUMS + i] = ends[i, 0, k, first]
        for i in range(lane, ALL, lanes):
            found[piece, k, SUMS + ENDS + i] = mean[i]

    return kept(kernel)


@lru_cache(maxsize=4)
def _strata(threads: int) -> Any:
    """Return the kernel of means and M2 of losses by stratum, a block for each piece and arm."""
    observed, number, lanes = _observed(), np.float64, threads
    add, merge = on_device(moments.add), on_device(moments.merge)
    ALL = CONTROLS

    @cuda.jit
    def kernel(
        ends: Any,
        firsts: Any,
        strata: Any,
        laws: Any,
        known: Any,
        expected: Any,
        totals: Any,
        multiples: Any,
        found: Any,
    ) -> None:
        piece, k, lane = cuda.blockIdx.x, cuda.blockIdx.y, cuda.threadIdx.x
        counts = cuda.shared.array(lanes, number)
        means = cuda.shared.array(lanes, number)
        m2s = cuda.shared.array(lanes, number)
        row = cuda.local.array(ALL, number)
        cell = piece // 2
        law, fourth, gaussian = laws[cell, k], known[cell, k], expected[cell, k]
        for fit in range(2):
            # The multiples of this half, then those of the other.
            by = multiples[piece if fit == 0 else 4 * cell + 1 - piece, k]
            for s in range(found.shape[3]):
                n, mean, m2 = 0.0, 0.0, 0.0
                for r in range(firsts[piece] + lane, firsts[piece + 1], lanes):
                    if strata[r] == s:
                        loss = observed(ends, k, r, law, fourth, gaussian, totals, row)
                        for j in range(ALL):
                            loss -= by[j] * row[j]
                        n, mean, m2 = add(n, mean, m2, loss)
                counts[lane], means[lane], m2s[lane] = n, mean, m2
                cuda.syncthreads()
                step = lanes // 2
                while step > 0:
                    other = lane + step
                    if lane < step and counts[other] > 0.0:
                        counts[lane], means[lane], m2s[lane] = merge(
                            counts[lane], means[lane], m2s[lane], counts[other], means[other], m2s[other]
                        )
                    cuda.syncthreads()
                    step //= 2
                if lane == 0:
                    found[piece, k, fit, s, 0] = means[0]
                    found[piece, k, fit, s, 1] = m2s[0]
                cuda.syncthreads()

    return kept(kernel)


class Reduction:
    """
    The reduction of one launch, in steps that wait for the card as late as possible.

    Parameters
    ----------
    pieces
        The halves of the cells.
    ends
        Where their runs will have ended, on the card.
    stream
        The stream in which they are simulated.
    threads
        Threads of a block.
    """

    def __init__(self, pieces: Pieces, ends: Any, stream: Any = 0, threads: int = THREADS) -> None:
        self._pieces, self._ends, self._stream, self._threads = pieces, ends, stream, threads
        self._grid = (len(pieces.members), ends.shape[2])
        firsts = pieces.firsts
        self._firsts = self._sent(firsts)
        self._laws, self._known, self._expected = map(self._sent, (pieces.laws, pieces.known, pieces.expected))
        self._totals = cuda.device_array((ends.shape[3], TOTALS), np.float64)
        self._sums = cuda.device_array((*self._grid, _SUMS + _ENDS + CONTROLS), np.float64)
        cells = np.repeat(np.arange(len(pieces.members), dtype=np.int32) // 2, np.diff(firsts))
        laws = self._laws, self._known, self._expected
        blocks = -(-ends.shape[3] // threads)
        _totals()[blocks, threads, stream](ends, self._sent(cells), *laws, self._totals)
        fitted_ends = self._sent(pieces.fitted_ends)
        _fit(threads)[self._grid, threads, stream](ends, self._firsts, fitted_ends, *laws, self._totals, self._sums)

    def _sent(self, values: Any) -> Any:
        return cuda.to_device(np.ascontiguousarray(values), stream=self._stream)

    def _received(self, values: Any) -> Floats:
        found = values.copy_to_host(stream=self._stream)
        if self._stream:
            self._stream.synchronize()
        return np.asarray(found)

    def fit(self) -> None:
        """Fit the multiples of the controls, and start forming the sums by stratum."""
        sums = self._received(self._sums)
        self._first_ends = sums[::2, :, _SUMS : _SUMS + _ENDS]
        multiples = fitted(self._pieces, sums)
        strata = np.concatenate([each.strata for each in self._pieces.members])
        self._found = cuda.device_array((*self._grid, 2, self._pieces.strata, 2), np.float64)
        _strata(self._threads)[self._grid, self._threads, self._stream](
            self._ends,
            self._firsts,
            self._sent(strata),
            self._laws,
            self._known,
            self._expected,
            self._totals,
            self._sent(multiples),
            self._found,
        )

    def first_ends(self) -> list[Ends]:
        """Return where the first run of each cell ended, once the multiples are fitted."""
        return [Ends(*each.T[:, None, :, None]) for each in self._first_ends]

    def results(self) -> list[tuple[float, float, float]]:
        """Return loss, standard error and doubt of each cell."""
        found = self._received(self._found)
        return [
            _judged(self._pieces.members[p : p + 2], found[p : p + 2]) for p in range(0, len(self._pieces.members), 2)
        ]


def fitted(pieces: Pieces, sums: Floats) -> Floats:
    """Return the multiples of the controls by piece and arm, from what was summed; 0 where an estimator has none."""
    gram = np.zeros((*sums.shape[:2], CONTROLS, CONTROLS))
    rows, columns = np.tril_indices(CONTROLS)
    gram[..., rows, columns] = gram[..., columns, rows] = sums[..., _GRAM : _GRAM + _PRODUCTS]
    runs = np.array([each.consecutive for each in pieces.members])
    # By arm, as halves have the estimators of their cell.
    chosen = np.repeat(np.array(pieces.chosen), 2, axis=0)
    used = np.zeros((*sums.shape[:2], CONTROLS), bool)
    if chosen.shape[1] <= estimators.MOST_CONTROLLED:
        for estimator, places in estimators.PLACES.items():
            if estimator != "wald":
                enough = (runs >= 4 * len(places)) & (len(places) > 0)
                used[..., places] |= ((chosen == estimator) & enough[:, None])[..., None]
    used &= sums[..., _DIFFER, None] > 0
    found = estimators.solved(
        used.reshape(-1, CONTROLS),
        gram.reshape(-1, CONTROLS, CONTROLS),
        sums[..., :CONTROLS].reshape(-1, CONTROLS),
        sums[..., _SUMS + _ENDS :].reshape(-1, CONTROLS),
        np.repeat(runs, sums.shape[1]),
    ).reshape(used.shape)
    pulls = sums[..., _PULLS] / runs[:, None]
    [wald] = estimators.PLACES["wald"]
    units = np.repeat([estimators.units(problem) for problem in pieces.problems], 2, axis=0)
    found[..., wald] = np.where(chosen == "wald", (units / pulls) ** 2, found[..., wald])
    return np.asarray(found)


def _judged(both: Sequence[Members], found: Floats) -> tuple[float, float, float]:
    """Loss, error and doubt of a cell, from mean and M2 by half, arm, fit and stratum."""
    seen, crossed = [], []
    for half, each in zip(both, found, strict=True):
        sizes, counts = half.sizes, half.counts()
        means, m2s = (each[..., : len(sizes), i] for i in (0, 1))
        variances = m2s / np.maximum(counts - 1, 1)
        seen.append(ByStratum(sizes, counts, means[:, 0], variances[:, 0]))
        crossed.append(ByStratum(sizes, counts, means[:, 1], variances[:, 1]))
    return judged(seen, [half.arm(arm) for half, arm in zip(crossed, named(seen), strict=True)])
