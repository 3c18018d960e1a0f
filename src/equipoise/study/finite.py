"""A result for arms that are finite populations, sampled without replacement."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from equipoise.study.result import ByArm, Floats, Result


class FiniteResult(Result):
    """
    What a study knows about arms that are finite populations.

    Losses and errors carry the correction 1 - count/size: a population that is used up is known exactly.

    Attributes
    ----------
    populations
        The sizes of the populations, in the arms' order.
    """

    populations: Floats

    def __init__(self, result: Result, populations: Sequence[float]) -> None:
        self.__dict__.update(result.__dict__)
        sizes = self.populations = np.asarray(populations, dtype=float)
        counts = self.counts.array
        with np.errstate(invalid="ignore"):
            losses = np.where(counts >= sizes, 0.0, result.losses.array * (1 - counts / sizes))
        self.losses = ByArm(self.arms, losses, self._index)
        self.standard_errors = ByArm(self.arms, np.sqrt(losses), self._index)

    @property
    def oracle_loss(self) -> float:
        """The least L for which the arms' v/(L + v/N), the pulls that make v (1/T - 1/N) = L, fit into the samples."""
        v, sizes, samples = self.variances.array, self.populations, self.samples
        if not samples or np.isnan(v).any():
            return math.nan
        low, high = 0.0, float(v.sum()) / samples
        for _ in range(100):
            middle = (low + high) / 2
            with np.errstate(invalid="ignore"):
                pulls = np.nan_to_num(v / (middle + v / sizes)).sum()
            low, high = (middle, high) if pulls > samples else (low, middle)
        return high

    @property
    def uniform_loss(self) -> float:
        if not self.samples:
            return math.nan
        each = self.samples / len(self.arms)
        return float(np.maximum(self.variances.array * (1 / each - 1 / self.populations), 0).max())

    @property
    def uniform_samples(self) -> float:
        v = self.variances.array
        with np.errstate(invalid="ignore"):
            return len(self.arms) * float((v / (self.loss + v / self.populations)).max())
