"""What is to be simulated, and where the runs ended: what every engine takes and gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from equipoise.arrays import Floats
from equipoise.lab.rule import NORM, PLAIN, WEIGHTED
from equipoise.problem import Objective, Problem
from equipoise.strategies import Strategy, initial_own


@dataclass(frozen=True)
class Setup:
    """
    What is to be simulated, as the kernels take it.

    The checkpoints are budgets: pulls, or money where the objective has costs.
    """

    problem: Problem
    strategy: Strategy
    checkpoints: tuple[float, ...]
    params: tuple[float, ...]
    seed: int
    in_flight: int = 1
    objective: Objective = field(default_factory=Objective)
    # Whether a kernel for any number of arms is used, which is compiled once for a strategy, with the same results.
    one_kernel: bool = False

    @property
    def one_by_one(self) -> bool:
        """Whether runs go one at a time, as answers come late or samples have prices, and each budget on its own."""
        return self.in_flight > 1 or self.objective.costs is not None

    @property
    def initial_own(self) -> Floats:
        """The number each arm starts with; an oracle without variances goes by those of the problem."""
        return initial_own(self.strategy, len(self.problem), self.problem.variances)

    @property
    def form(self) -> int:
        """What the objective asks of keys: nothing, scales, or scales and an exponent."""
        if self.objective.p != math.inf:
            return NORM
        return PLAIN if self.objective.weights is None else WEIGHTED


@dataclass(frozen=True)
class Ends:
    """Where runs stood at each checkpoint: samples, means and M2, by checkpoint, arm and run."""

    counts: Floats
    means: Floats
    m2s: Floats

    def split(self, runs: int) -> list[Ends]:
        """The same in parts of so many runs."""
        return [
            Ends(*(each[..., first : first + runs] for each in (self.counts, self.means, self.m2s)))
            for first in range(0, self.counts.shape[-1], runs)
        ]

    @classmethod
    def join(cls, parts: Sequence[Ends]) -> Ends:
        """The runs of all parts."""
        return cls(*(np.concatenate([getattr(part, f.name) for part in parts], axis=-1) for f in fields(cls)))
