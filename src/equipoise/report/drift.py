"""
Samples that change in the course of a study.

References
----------
.. [1] J. von Neumann (1941), Distribution of the ratio of the mean square successive difference to the variance. Annals
   of Mathematical Statistics 12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.numeric import moments
from equipoise.result import Result

# Samples drift if neighbours are too alike by this many standard errors, and there are at least this many of them.
DRIFT: Final = 4.0
LEAST: Final = 20
# Of more arms than this, the first are looked at.
FOLLOWED: Final = 1000
# Up to this many means of neighbouring samples are kept of each arm.
BLOCKS: Final = 64


@dataclass(frozen=True)
class Drift:
    """
    Whether an arm's samples changed in the course of a study.

    Attributes
    ----------
    place
        Of the arm.
    score
        By how many standard errors neighbouring samples are more alike than chance has it: of n independent samples,
        the squared differences of neighbours over the squared deviations from the mean are 2 on average, with a
        variance of 4 (n - 2)/(n² - 1) [1]_. NaN where there are too few, or all are equal.
    size, means
        Means of as many neighbouring samples each, in the order of asking.
    """

    place: int
    score: float
    size: int
    means: Floats

    @property
    def drifts(self) -> bool:
        """Whether that is more than chance explains."""
        return self.score > DRIFT


class Drifts:
    """Looks at each arm's samples, in the order of asking, as far as somebody looked."""

    def __init__(self, arms: int) -> None:
        self._arms = [_Arm() for _ in range(min(arms, FOLLOWED))]
        self._seen = 0

    def look(self, result: Result) -> tuple[Drift, ...]:
        """Take the samples since the last look, and return how each arm stands."""
        evidence = result.known.snapshot.evidence
        if evidence is not None:
            places, values = evidence.since(self._seen)
            self._seen += len(places)
            order = np.argsort(places, kind="stable")
            arms, starts = np.unique(places[order], return_index=True)
            for k, own in zip(arms.tolist(), np.split(values[order], starts[1:]), strict=False):
                if k < len(self._arms):
                    self._arms[k].add(own)
        return tuple(arm.drift(k) for k, arm in enumerate(self._arms))


class _Arm:
    """What is kept of one arm's samples: moments, squared differences of neighbours, and sums of blocks."""

    def __init__(self) -> None:
        self._count, self._mean, self._m2, self._steps = 0, 0.0, 0.0, 0.0
        self._last = math.nan
        self._size, self._sums = 1, np.zeros(0)
        self._sum, self._filled = 0.0, 0

    def add(self, values: Floats) -> None:
        steps = np.diff(values, prepend=self._last)[0 if self._count else 1 :]
        self._steps += float(np.square(steps).sum())
        self._last = float(values[-1])
        more = moments.of(values)
        self._count, self._mean, self._m2 = moments.merge(self._count, self._mean, self._m2, *more)
        while len(values):
            some, values = np.split(values, [self._size - self._filled])
            self._sum, self._filled = self._sum + float(some.sum()), self._filled + len(some)
            if self._filled == self._size:
                self._close()

    def _close(self) -> None:
        """End a block; of too many, two become one."""
        self._sums = np.append(self._sums, self._sum)
        self._sum, self._filled = 0.0, 0
        if len(self._sums) == BLOCKS:
            self._sums, self._size = self._sums.reshape(-1, 2).sum(axis=1), 2 * self._size

    def drift(self, place: int) -> Drift:
        n, score = self._count, math.nan
        if n >= LEAST and self._m2 > 0:
            score = (2 - self._steps / self._m2) / math.sqrt(4 * (n - 2) / (n * n - 1))
        return Drift(place, score, self._size, self._sums / self._size)
