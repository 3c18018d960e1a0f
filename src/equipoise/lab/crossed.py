"""
The largest loss of all arms, from two halves of the runs, without the bias of a maximum.

The halves are the runs with even and with odd numbers. Where there is a pool of runs (`starts.py`), those simulated are
runs 0, 1, 2, ... and further ones from its strata, and each half is a case of double sampling for stratification [1]_:
with p_s the share of a stratum in the half's R runs of the pool, and y_s, v_s the mean and the variance of its n_s
simulated runs,

    mean      y = sum of p_s y_s
    variance  sum of p_s² v_s / n_s  +  sum of p_s (y_s - y)² / R.

Which runs of a stratum are simulated depends on their numbers alone, and the strata do not depend on those. So the
simulated runs are as good as drawn at random, and the mean is free of bias. Without a pool, all runs are one stratum.

References
----------
.. [1] W. G. Cochran (1977), Sampling Techniques, third edition, Chapter 12.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import Floats, Ints
from equipoise.lab import estimators
from equipoise.lab.estimators import ArmSums, Estimator
from equipoise.lab.setup import Ends
from equipoise.lab.starts import Starts, Strata
from equipoise.problem import Problem


@dataclass(frozen=True)
class Half:
    """
    A half of the runs.

    Attributes
    ----------
    ends
        Where the simulated runs ended: consecutive ones, then further ones.
    consecutive
        How many of them are consecutive.
    strata
        The stratum of each.
    sizes
        How many runs each stratum has in the pool.
    """

    ends: Ends
    consecutive: int
    strata: Strata
    sizes: Ints

    def mean(self, y: Floats) -> Any:
        """Return the mean of what is known for each simulated run (columns)."""
        return sum(share * each.mean(axis=-1) for share, each in self._parts(y))

    def variance(self, y: Floats) -> Any:
        """Return the variance of that mean."""
        mean = self.mean(y)
        return sum(
            share**2 * _variance(each) / each.shape[-1] + share * (each.mean(axis=-1) - mean) ** 2 / self.sizes.sum()
            for share, each in self._parts(y)
        )

    def _parts(self, y: Floats) -> list[tuple[float, Floats]]:
        """The share and the simulated runs of each stratum."""
        return [
            (size / self.sizes.sum(), y[..., self.strata == s] if len(self.sizes) > 1 else y)
            for s, size in enumerate(self.sizes)
            if size
        ]


def _variance(y: Floats) -> Any:
    """The sample variance; 0 for one run, which is then all that its stratum has."""
    return y.var(axis=-1, ddof=1) if y.shape[-1] > 1 else 0.0


def halves(ends: Ends, starts: Starts | None = None, further: Ends | None = None) -> list[Half]:
    """
    Return the two halves of the runs that were simulated.

    Parameters
    ----------
    ends
        Where runs 0, 1, 2, ... ended.
    starts, further
        The strata of a pool, and where `starts.simulated` ended. By default there is no pool.
    """
    runs = ends.counts.shape[-1]
    numbers, strata = np.arange(runs), np.zeros(runs, np.int8)
    if starts is not None and further is not None and runs < len(starts.strata):
        # Runs that are among the first do not count again.
        beyond = starts.simulated >= runs
        ends = Ends.join([ends, _take(further, beyond)])
        numbers, strata = np.append(numbers, starts.simulated[beyond]), starts.strata
    found = []
    for half in (0, 1):
        mine = numbers % 2 == half
        consecutive = int(mine[:runs].sum())
        found.append(Half(_take(ends, mine), consecutive, strata[numbers[mine]], np.bincount(strata[half::2])))
    return found


def _take(ends: Ends, runs: Any) -> Ends:
    return Ends(ends.counts[..., runs], ends.means[..., runs], ends.m2s[..., runs])


def crossed(problem: Problem, both: Sequence[Half], chosen: Sequence[Estimator]) -> tuple[float, float, float]:
    """
    Return the largest loss, its standard error and the doubt about it, without the bias of a maximum.

    The worst arm of one half of the runs is measured on the other half, and the other way round, and the two results
    are averaged. The half that names an arm, and on which the multiples of its controls are fitted, has no influence on
    its measured loss, so that the mean of each is the true loss of some arm and not above the largest.

    The doubt is the standard error, or more where an arm that was not named may well be the worst: half of how far two
    standard errors of its own take it above the result.
    """
    sums = [ArmSums.of(problem, half.ends, 0) for half in both]
    # Multiples are fitted on the consecutive runs, which are like all others.
    pilots = [ArmSums.of(problem, _take(half.ends, slice(half.consecutive)), 0) for half in both]
    fits = [estimators.fit(pilot, chosen) for pilot in pilots]
    seen = [estimators.estimates(each, chosen, fit) for each, fit in zip(sums, fits, strict=True)]
    means = [half.mean(y) for half, y in zip(both, seen, strict=True)]
    found = [
        estimators.estimates(each, chosen, fit, [int(there.argmax())])[0]
        for each, fit, there in zip(sums, reversed(fits), reversed(means), strict=True)
    ]
    loss = float(np.mean([half.mean(y) for half, y in zip(both, found, strict=True)]))
    error = math.sqrt(_of_average(both, found))
    highest = np.mean(means, axis=0) + 2 * np.sqrt(_of_average(both, seen))
    return loss, error, max(error, (float(highest.max()) - loss) / 2)


def _of_average(both: Sequence[Half], found: Sequence[Floats]) -> Any:
    """The variance of the average of the means of two halves."""
    return sum(half.variance(y) for half, y in zip(both, found, strict=True)) / 4
