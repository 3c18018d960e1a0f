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
from typing import Any, NamedTuple

import numpy as np

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.engine.setup import Setup
from equipoise.lab.cuda.device import cuda, kept, launching, on_device
from equipoise.lab.cuda.engine import CARD, ONE_AT_A_TIME, Card, prepare
from equipoise.numeric import moments
from equipoise.problem import Problem
from equipoise.simulation import estimators

# Threads of a block: a power of two.
THREADS = 256
# Runs in a piece, at most.
MOST_RUNS = 1024
# Sums over arms that the controls of each run take: Q and kappa D over all arms, the same over those for which the
# Gaussian lemma is used, and M and S over the others.
TOTALS = 6


@dataclass(frozen=True)
class Estimates:
    """
    What is estimated of each run, on the card.

    Attributes
    ----------
    laws
        Mean, variance, unit, variance in that unit, mu3 and kappa, by arm.
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
        padded = np.zeros((len(multiples), len(chosen), estimators.CONTROLS))
        for c, by_arm in enumerate(multiples):
            for k, (estimator, found) in enumerate(zip(chosen, by_arm, strict=True)):
                padded[c, k, estimators.PLACES[estimator][: len(found)]] = found
        return cls(
            laws_of(problem),
            estimators.known_fourth(problem),
            np.array([estimator == "gaussian" for estimator in chosen]),
            padded,
            setup.objective.weight(len(problem)),
            setup.objective.p,
        )


def laws_of(problem: Problem) -> Floats:
    """Return mean, variance, unit, variance in that unit, mu3 and kappa (rows) of each arm."""
    parts = (estimators.units, estimators.relative, estimators.third, estimators.kappa)
    return np.array([problem.means, problem.variances, *(part(problem) for part in parts)])


class Functions(NamedTuple):
    """
    Device functions that find the controls of a run.

    - `squares(count, mean, m2, law, known, expected)`: S and Q of an arm;
    - `add_arm(count, S, Q, law, known, expected, totals)`: adds an arm to the sums over arms;
    - `observed(count, S, Q, law, expected, totals, row)`: the loss of an arm, and its controls in `row`.
    """

    squares: Any
    add_arm: Any
    observed: Any


@lru_cache(maxsize=1)
def functions() -> Functions:
    """Return the device functions that find the controls of a run."""
    shared = (estimators.wald, estimators.of_variances, estimators.of_cubes, estimators.of_means)
    wald, of_variances, of_cubes, of_means = map(on_device, shared)
    ALL, FIRST = estimators.CONTROLS, estimators.OF_VARIANCES

    @cuda.jit(device=True)
    def squares(count: Any, mean: Any, m2: Any, law: Any, known: Any, expected: Any) -> Any:
        mu, unit, variance = law[0], law[2], law[3]
        off = (mean - mu) / unit
        S = count * off
        if not known:
            return S, 0.0
        grown = m2 / (unit * unit)
        return S, (grown - variance * (count - 1.0) if expected else grown + S * off - variance * count)

    @cuda.jit(device=True)
    def add_arm(count: Any, S: Any, Q: Any, law: Any, known: Any, expected: Any, totals: Any) -> None:
        kappa = law[5] * (count - 1.0 if expected else count)
        totals[0] += Q
        totals[1] += kappa
        if expected:
            totals[2] += Q
            totals[3] += kappa
        elif known:
            totals[4] += wald(count, S, law[3])
            totals[5] += S

    @cuda.jit(device=True)
    def observed(count: Any, S: Any, Q: Any, law: Any, expected: Any, totals: Any, row: Any) -> Any:
        variance, mu3, kappa = law[3], law[4], law[5]
        D = count - 1.0 if expected else count
        own = kappa * D
        P, others = totals[0] - Q, totals[1] - own
        first = of_variances(D, Q, kappa, P, others)
        for j in range(FIRST):
            row[j] = first[j]
        if expected:
            cubes = of_cubes(own, Q, totals[3] - own, totals[2] - Q)
            for j in range(ALL - FIRST - 2):
                row[FIRST + j] = cubes[j]
            row[ALL - 2] = totals[4]
            row[ALL - 1] = totals[5]
            return law[1] / count
        more = of_means(count, S, Q, wald(count, S, variance), kappa, mu3, P)
        for j in range(ALL - FIRST):
            row[FIRST + j] = more[j]
        off = law[2] * S / count
        return off * off

    return Functions(squares, add_arm, observed)


@lru_cache(maxsize=8)
def _kernel(threads: int, largest: bool) -> Any:
    """Return the kernel for this number of threads, and for the largest loss or any other norm."""
    THREADS, AHEAD = threads, -(-MOST_RUNS // threads)
    ALL, SUMMED = estimators.CONTROLS, TOTALS
    add, merge = on_device(moments.add), on_device(moments.merge)
    squares, add_arm, observed = functions()
    number = np.float64

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
        totals = cuda.local.array((AHEAD, SUMMED), number)
        row = cuda.local.array(ALL, number)
        K = ends.shape[2]
        first, end = firsts[piece] + lane, firsts[piece + 1]
        i, n, mean, m2 = 0, 0.0, 0.0, 0.0
        for r in range(first, end, THREADS):
            top, norm = 0.0, 0.0
            for j in range(SUMMED):
                totals[i, j] = 0.0
            for k in range(K):
                T, law = number(ends[0, c, k, r]), laws[k]
                S, Q = squares(T, number(ends[1, c, k, r]), number(ends[2, c, k, r]), law, known[k], expected[k])
                add_arm(T, S, Q, law, known[k], expected[k], totals[i])
                top = max(top, weights[k] * law[1] / T)
            i += 1  # noqa: SIM113
            if largest:
                norm = top
            elif top > 0.0:
                # Over the largest, so that no power overflows.
                for k in range(K):
                    norm += (weights[k] * laws[k, 1] / number(ends[0, c, k, r]) / top) ** p
                norm = top * norm ** (1.0 / p)
            n, mean, m2 = add(n, mean, m2, norm)
        write(lane, n, mean, m2, counts, means, m2s, found[piece, c, 2 * K])
        for k in range(K):
            law = laws[k]
            i, n, mean, m2, pulls, mean_pulls, m2_pulls = 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for r in range(first, end, THREADS):
                T = number(ends[0, c, k, r])
                S, Q = squares(T, number(ends[1, c, k, r]), number(ends[2, c, k, r]), law, known[k], expected[k])
                loss = observed(T, S, Q, law, expected[k], totals[i], row)
                i += 1  # noqa: SIM113
                for j in range(ALL):
                    loss -= multiples[c, k, j] * row[j]
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
        cuda.to_device(np.ascontiguousarray(wanted.laws.T)),
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
