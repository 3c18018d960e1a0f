"""
Sums of runs on the card, where the runs ended, so that only a few numbers of each thousand runs come back.

A block of threads takes a piece of the runs at a checkpoint. For each arm it forms the estimates of the loss, less the
multiples of the controls (`estimators.py`), and merges count, mean and M2 of them in a tree; the same for the arm's
pulls, and for the objective of variances over pulls. All of it is in double precision, also where runs are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from equipoise import moments
from equipoise.arrays import Bools, Floats, Ints
from equipoise.lab import estimators
from equipoise.lab.cuda import CARD, ONE_AT_A_TIME, Card, prepare
from equipoise.lab.cuda_device import cuda, kept, launching, on_device
from equipoise.lab.setup import Setup

# Threads of a block: a power of two.
THREADS = 256
# Runs in a piece, at most.
MOST_RUNS = 1024
# The controls of an arm, and how many of them follow variances alone.
CONTROLS, OF_VARIANCES = 11, 5


@dataclass(frozen=True)
class Estimates:
    """
    What is estimated of each run, on the card.

    Attributes
    ----------
    laws
        Mean, variance, mu3 and kappa, by arm.
    known
        Which arms have a finite fourth moment.
    expected
        Whether s²/T is averaged for an arm, in place of squared errors.
    multiples
        Those of the controls, by checkpoint and arm; 0 where an estimator has none.
    weights, p
        Of the objective.
    """

    laws: Floats
    known: Bools
    expected: Bools
    multiples: Floats
    weights: Floats
    p: float

    @classmethod
    def of(
        cls, setup: Setup, chosen: Sequence[estimators.Estimator], multiples: Sequence[Sequence[Floats]]
    ) -> Estimates:
        """Return what is estimated of a setup, with these multiples of the controls for each checkpoint and arm."""
        problem = setup.problem
        padded = np.zeros((len(multiples), len(chosen), CONTROLS))
        for c, by_arm in enumerate(multiples):
            for k, (estimator, found) in enumerate(zip(chosen, by_arm, strict=True)):
                padded[c, k, estimators.PLACES[estimator][: len(found)]] = found
        return cls(
            np.array([problem.means, problem.variances, estimators.third(problem), estimators.kappa(problem)]),
            estimators.known_fourth(problem),
            np.array([estimator == "gaussian" for estimator in chosen]),
            padded,
            setup.objective.weight(len(problem)),
            setup.objective.p,
        )


@lru_cache(maxsize=1)
def squares_of() -> Any:
    """Return the device function that finds S and Q of an arm in a run."""

    @cuda.jit(device=True)
    def squares(count: Any, mean: Any, m2: Any, mu: Any, variance: Any, known: Any) -> Any:
        off = mean - mu
        S = count * off
        return S, (m2 + S * off - variance * count if known else 0.0)

    return squares


@lru_cache(maxsize=8)
def _kernel(threads: int, largest: bool) -> Any:
    """Return the kernel for this number of threads, and for the largest loss or any other norm."""
    THREADS, AHEAD = threads, -(-MOST_RUNS // threads)
    ALL, FIRST = CONTROLS, OF_VARIANCES
    add, merge = on_device(moments.add), on_device(moments.merge)
    wald, of_variances, of_means = map(on_device, (estimators.wald, estimators.of_variances, estimators.of_means))
    squares, number = squares_of(), np.float64

    @cuda.jit(device=True)
    def write(lane: Any, count: Any, mean: Any, m2: Any, counts: Any, means: Any, m2s: Any, found: Any) -> None:
        """Merge the moments of all threads, and keep mean and M2."""
        counts[lane], means[lane], m2s[lane] = count, mean, m2
        cuda.syncthreads()
        step = THREADS // 2
        while step > 0:
            if lane < step:
                other = lane + step
                counts[lane], means[lane], m2s[lane] = merge(
                    counts[lane], means[lane], m2s[lane], counts[other], means[other], m2s[other]
                )
            cuda.syncthreads()
            step //= 2
        if lane == 0:
            found[0], found[1] = means[0], m2s[0]
        cuda.syncthreads()

    @cuda.jit
    def kernel(
        ends: Any, firsts: Any, laws: Any, known: Any, expected: Any, multiples: Any, weights: Any, p: Any, found: Any
    ) -> None:
        piece, c, lane = cuda.blockIdx.x, cuda.blockIdx.y, cuda.threadIdx.x
        counts = cuda.shared.array(THREADS, number)
        means = cuda.shared.array(THREADS, number)
        m2s = cuda.shared.array(THREADS, number)
        all_Q = cuda.local.array(AHEAD, number)
        all_kappa = cuda.local.array(AHEAD, number)
        K = ends.shape[2]
        first, end = firsts[piece] + lane, firsts[piece + 1]
        i, n, mean, m2 = 0, 0.0, 0.0, 0.0
        for r in range(first, end, THREADS):
            Q_sum, kappa_sum, top, norm = 0.0, 0.0, 0.0, 0.0
            for k in range(K):
                T, variance = number(ends[0, c, k, r]), laws[1, k]
                _, Q = squares(T, number(ends[1, c, k, r]), number(ends[2, c, k, r]), laws[0, k], variance, known[k])
                Q_sum += Q
                kappa_sum += laws[3, k] * T
                top = max(top, weights[k] * variance / T)
            all_Q[i], all_kappa[i] = Q_sum, kappa_sum
            i += 1  # noqa: SIM113
            if largest:
                norm = top
            elif top > 0.0:
                # Over the largest, so that no power overflows.
                for k in range(K):
                    norm += (weights[k] * laws[1, k] / number(ends[0, c, k, r]) / top) ** p
                norm = top * norm ** (1.0 / p)
            n, mean, m2 = add(n, mean, m2, norm)
        write(lane, n, mean, m2, counts, means, m2s, found[piece, c, 2 * K])
        for k in range(K):
            mu, variance, mu3, kappa = laws[0, k], laws[1, k], laws[2, k], laws[3, k]
            i, n, mean, m2, pulls, mean_pulls, m2_pulls = 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for r in range(first, end, THREADS):
                T = number(ends[0, c, k, r])
                S, Q = squares(T, number(ends[1, c, k, r]), number(ends[2, c, k, r]), mu, variance, known[k])
                loss = variance / T if expected[k] else (S / T) * (S / T)
                P, others = all_Q[i] - Q, all_kappa[i] - kappa * T
                i += 1  # noqa: SIM113
                M = wald(T, S, variance)
                rows = of_variances(T, Q, kappa, P, others)
                for j in range(FIRST):
                    loss -= multiples[c, k, j] * rows[j]
                more = of_means(T, S, Q, M, kappa, mu3, P)
                for j in range(ALL - FIRST):
                    loss -= multiples[c, k, FIRST + j] * more[j]
                n, mean, m2 = add(n, mean, m2, loss)
                pulls, mean_pulls, m2_pulls = add(pulls, mean_pulls, m2_pulls, T)
            write(lane, n, mean, m2, counts, means, m2s, found[piece, c, k])
            write(lane, pulls, mean_pulls, m2_pulls, counts, means, m2s, found[piece, c, K + k])

    return kept(kernel)


def sums(ends: Any, firsts: Ints, wanted: Estimates) -> Floats:
    """
    Return mean and M2 of what is estimated, by piece and checkpoint.

    Parameters
    ----------
    ends
        Where runs ended, on the card.
    firsts
        The first run of each piece, and the end of the last one. A piece has at most MOST_RUNS runs.
    wanted
        What to estimate.

    Returns
    -------
    numpy.ndarray
        By piece, checkpoint and row: losses by arm, pulls by arm, and the objective.
    """
    checkpoints, arms = ends.shape[1:3]
    pieces = len(firsts) - 1
    found = cuda.device_array((pieces, checkpoints, 2 * arms + 1, 2), np.float64)
    _kernel(THREADS, wanted.p == math.inf)[(pieces, checkpoints), THREADS](
        ends,
        cuda.to_device(np.asarray(firsts, np.int64)),
        cuda.to_device(wanted.laws),
        cuda.to_device(wanted.known),
        cuda.to_device(wanted.expected),
        cuda.to_device(wanted.multiples),
        cuda.to_device(np.asarray(wanted.weights, np.float64)),
        wanted.p,
        found,
    )
    return np.asarray(found.copy_to_host())


def measure(
    setup: Setup,
    first: int,
    runs: int,
    single: bool,
    firsts: Ints,
    wanted: Estimates,
    card: Card = CARD,
) -> Floats:
    """Simulate runs `first` to `first + runs` on the card; return their `sums`, where `firsts` counts from `first`."""
    with ONE_AT_A_TIME, launching():
        launch, _ = prepare(setup, first, runs, single, card)
        return sums(launch(), firsts, wanted)
