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
from functools import cached_property
from typing import Any

import numpy as np

from equipoise.base.arrays import Floats, Ints
from equipoise.engine.setup import Ends
from equipoise.lab.board.rare_starts import Starts, Strata
from equipoise.problem import Problem
from equipoise.simulation import estimators
from equipoise.simulation.estimators import ArmSums, Estimator


@dataclass(frozen=True)
class Members:
    """
    Which runs are simulated of a half.

    Attributes
    ----------
    numbers
        The numbers of the runs: consecutive ones, then further ones.
    consecutive
        How many of them are consecutive.
    strata
        The stratum of each.
    sizes
        How many runs each stratum has in the pool.
    """

    numbers: Ints
    consecutive: int
    strata: Strata
    sizes: Ints

    def counts(self) -> Ints:
        """Return how many runs of each stratum are simulated."""
        return np.bincount(self.strata, minlength=len(self.sizes))


def members(runs: int, starts: Starts | None = None) -> list[Members]:
    """Return the halves of runs 0, 1, 2, ... and of those that are simulated of a pool, if there is one."""
    if starts is None or runs >= len(starts.strata):
        parts = [np.arange(half, runs, 2) for half in (0, 1)]
        return [Members(each, len(each), np.zeros(len(each), np.int8), np.array([len(each)])) for each in parts]
    found = []
    for half, sizes in enumerate(starts.sizes):
        first = np.arange(half, runs, 2)
        # Runs that are among the first do not count again.
        further = starts.simulated[(starts.simulated >= runs) & (starts.simulated % 2 == half)]
        numbers = np.append(first, further)
        found.append(Members(numbers, len(first), starts.strata[numbers], sizes))
    return found


@dataclass(frozen=True)
class ByStratum:
    """
    What is known of a half: counts, means and variances of the simulated runs of each stratum (last axis).

    Attributes
    ----------
    sizes, counts
        How many runs each stratum has in the pool, and how many of those are simulated.
    means, variances
        Of what is known for each run; a variance is 0 where the run is all that its stratum has.
    """

    sizes: Ints
    counts: Ints
    means: Floats
    variances: Floats

    def arm(self, k: int) -> ByStratum:
        """Return what is known of an arm (first axis)."""
        return ByStratum(self.sizes, self.counts, self.means[k], self.variances[k])

    @cached_property
    def mean(self) -> Any:
        """The mean over all strata."""
        return sum(share * self.means[..., s] for s, share in self._shares())

    @cached_property
    def variance(self) -> Any:
        """The variance of that mean."""
        mean = self.mean
        return sum(
            share**2 * self.variances[..., s] / self.counts[s]
            + share * (self.means[..., s] - mean) ** 2 / self.sizes.sum()
            for s, share in self._shares()
        )

    def _shares(self) -> list[tuple[int, float]]:
        return [(s, size / self.sizes.sum()) for s, size in enumerate(self.sizes) if size]


@dataclass(frozen=True)
class Half:
    """A half of the runs, and where they ended."""

    members: Members
    ends: Ends

    def seen(self, y: Floats) -> ByStratum:
        """Return what is known by stratum of numbers for each simulated run (last axis)."""
        sizes, counts = self.members.sizes, self.members.counts()
        means, variances = (np.zeros((*y.shape[:-1], len(sizes))) for _ in range(2))
        for s in np.flatnonzero(counts):
            part = y[..., self.members.strata == s] if len(sizes) > 1 else y
            means[..., s] = part.mean(axis=-1)
            if counts[s] > 1:
                variances[..., s] = part.var(axis=-1, ddof=1)
        return ByStratum(sizes, counts, means, variances)


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
    found = []
    for half, each in enumerate(members(runs, starts)):
        mine = ends.take(slice(half, None, 2))
        if starts is not None and further is not None and len(each.numbers) > each.consecutive:
            beyond = (starts.simulated >= runs) & (starts.simulated % 2 == half)
            mine = Ends.join([mine, further.take(beyond)])
        found.append(Half(each, mine))
    return found


def crossed(problem: Problem, both: Sequence[Half], chosen: Sequence[Estimator]) -> tuple[float, float, float]:
    """
    Return the largest loss, its standard error and the doubt about it, without the bias of a maximum.

    The worst arm of one half of the runs is measured on the other half, and the other way round, and the two results
    are averaged. The half that names an arm, and on which the multiples of its controls are fitted, has no influence on
    its measured loss, so that the mean of each is the true loss of some arm and not above the largest.

    The doubt is the standard error, or more where an arm that was not named may well be the worst: half of how far two
    standard errors of its own take it above the result.
    """
    sums = [ArmSums.of(problem, half.ends, 0, chosen) for half in both]
    # Multiples are fitted on the consecutive runs, which are like all others.
    fits, seen = [], []
    for half, each in zip(both, sums, strict=True):
        fit, losses = estimators.fit_and_estimate(each, chosen, half.members.consecutive)
        fits.append(fit)
        seen.append(half.seen(losses))
    found = [
        half.seen(estimators.estimates(each, chosen, fit, [arm])[0])
        for half, each, fit, arm in zip(both, sums, reversed(fits), named(seen), strict=True)
    ]
    return judged(seen, found)


def named(seen: Sequence[ByStratum]) -> list[int]:
    """Return the arm to measure on each half: the worst of the other half."""
    return [int(np.argmax(other.mean)) for other in reversed(seen)]


def judged(seen: Sequence[ByStratum], found: Sequence[ByStratum]) -> tuple[float, float, float]:
    """Return loss, standard error and doubt, from all arms of each half and from the named arm by the other's fit."""
    loss = float(np.mean([half.mean for half in found]))
    error = math.sqrt(_of_average(found))
    highest = np.mean([half.mean for half in seen], axis=0) + 2 * np.sqrt(_of_average(seen))
    return loss, error, max(error, (float(highest.max()) - loss) / 2)


def _of_average(both: Sequence[ByStratum]) -> Any:
    """The variance of the average of the means of two halves."""
    return sum(half.variance for half in both) / 4
