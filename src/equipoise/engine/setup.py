"""What every engine takes and returns: a setup to simulate, and where the runs ended."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.engine.rule import NORM, PLAIN, WEIGHTED
from equipoise.problem import Objective, Problem
from equipoise.strategies import Strategy, initial_own


@dataclass(frozen=True)
class Setup:
    """
    A simulation as the engines take it.

    Attributes
    ----------
    problem, strategy, params
        The arms, the strategy, and its parameters for the largest budget.
    checkpoints
        Budgets at which runs are recorded: pulls, or money where the objective has costs.
    seed
        Which samples the runs see.
    in_flight
        Pulls that are asked for before the first answer comes.
    objective
        What is minimised, with weights and costs.
    one_kernel
        Whether a kernel for any number of arms is used even for few. It is slower there and is compiled once for a
        strategy, not for each number of arms; results are the same.
    replay
        Whether this is a replay of a study, whose strategy is compiled but in no kernel. A kernel that takes it by
        address is used until there have been enough replays to compile another; results are the same.
    """

    problem: Problem
    strategy: Strategy
    checkpoints: tuple[float, ...]
    params: tuple[float, ...]
    seed: int
    in_flight: int = 1
    objective: Objective = field(default_factory=Objective)
    one_kernel: bool = False
    replay: bool = False

    @property
    def one_by_one(self) -> bool:
        """Whether each run and budget is simulated on its own: answers come late, or samples have prices."""
        return self.in_flight > 1 or self.objective.costs is not None

    @property
    def initial_own(self) -> Floats:
        """The own numbers that each arm starts with, by arm; an oracle without variances takes those of the problem."""
        # Variances of very many arms take long to gather, and only an oracle asks for them.
        variances = self.problem.variances if "variance" in self.strategy.own else None
        return initial_own(self.strategy, len(self.problem), self.objective.units(len(self.problem)), variances)

    @property
    def form(self) -> int:
        """What the objective adds to keys: nothing, scales, or scales and an exponent."""
        if self.objective.p != math.inf:
            return NORM
        return PLAIN if self.objective.weights is None else WEIGHTED


@dataclass(frozen=True)
class Ends:
    """Where runs stood at each checkpoint: counts, means and M2, by checkpoint, arm and run."""

    counts: Floats
    means: Floats
    m2s: Floats

    def take(self, runs: Any) -> Ends:
        """Return the ends of some of the runs, given as NumPy takes them: a slice, their places or a mask."""
        return Ends(self.counts[..., runs], self.means[..., runs], self.m2s[..., runs])

    def split(self, runs: int) -> list[Ends]:
        """Return the ends in parts of `runs` runs, the last of which may be smaller."""
        return [self.take(slice(first, first + runs)) for first in range(0, self.counts.shape[-1], runs)]

    @classmethod
    def join(cls, parts: Sequence[Ends]) -> Ends:
        """Return the runs of all parts together, in their order."""
        return cls(*(np.concatenate([getattr(part, f.name) for part in parts], axis=-1) for f in fields(cls)))
