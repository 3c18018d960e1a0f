"""
The measurement of one cell of the leaderboard: a strategy on a problem.

**Runs** follow from the problem and from the error of the runs so far, by a fixed rule (`first_runs`, `more_runs`),
never from the clock: the same seed gives the same board on any machine. An error that is estimated from runs knows of
no failure that none of them had. So 64 runs of each of seven strata are added, in which an arm starts as quietly as in
the quietest 64, 128, 256, ... 4,096 of 131,072 runs (`starts.py`), and weighted by the size of the stratum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.engine import cpu
from equipoise.engine.setup import Ends, Setup
from equipoise.lab.board.rare_starts import starts
from equipoise.lab.board.split_half import Members, crossed, halves
from equipoise.lab.suite import Case
from equipoise.simulation import estimators
from equipoise.simulation.simulator import first_ends, setups
from equipoise.strategies import Strategy

SEED = 4
# Runs to begin with: this many steps of all runs together, within the fewest and most runs.
FIRST_STEPS, FEWEST, MOST = 1 << 21, 2048, 8192
# Runs are added until the standard error is at this percentage of the loss, with at most this many steps; where a
# strategy loses more than twice the best, until it is at the rougher one.
AIM, ROUGH_AIM, MORE_STEPS = 1.0, 5.0, 1 << 26
# Above this standard error, in percent of the loss, few runs decide (arms that starve): controls, fitted on runs that
# include few of those, would add noise, and squared errors are averaged as they are.
RARE = 10.0


@dataclass(frozen=True)
class Cell:
    """
    The result of a strategy on a problem.

    Attributes
    ----------
    strategy, case
        The name of the entry, and the problem.
    excess, error
        The excess and its standard error, in percent of Sigma/n.
    runs
        How many runs were simulated.
    pool
        How many runs those stand for: more, where some were chosen by the quiet start of an arm.
    """

    strategy: str
    case: Case
    excess: float
    error: float
    runs: int
    pool: int

    @property
    def limit(self) -> float:
        """The problem's limit, in percent."""
        return 100 * self.case.limit

    @property
    def ratio(self) -> float:
        """The loss over that of an even split."""
        return (1 + self.excess / 100) * self.case.optimal_loss / self.case.even_loss

    @property
    def ratio_error(self) -> float:
        """The standard error of the ratio."""
        return self.error / 100 * self.case.optimal_loss / self.case.even_loss

    def row(self) -> dict[str, Any]:
        """Return all of it as strings and numbers."""
        return {
            "strategy": self.strategy,
            "problem": self.case.name,
            "kind": self.case.kind,
            "tails": self.case.tails,
            "K": len(self.case.problem),
            "n": self.case.budget,
            "n/K": self.case.per_arm,
            "limit": self.limit,
            "excess": self.excess,
            "error": self.error,
            "ratio": self.ratio,
            "runs": self.runs,
            "pool": self.pool,
        }


def first_runs(case: Case) -> int:
    """Return the runs to begin with: so many that they take a fixed number of steps, within the fewest and most."""
    return min(MOST, max(FEWEST, 1 << round(math.log2(FIRST_STEPS / case.budget))))


def more_runs(case: Case, excess: float, doubt: float, runs: int) -> int:
    """Return the runs to continue to, from the doubt so far: a power of two, no fewer than there were."""
    # A loss that noise has put below the best possible one counts as the best possible.
    aim = (AIM if excess <= 100 else ROUGH_AIM) / 100 * max(100 + excess, 100)
    wanted = math.ceil(math.log2(max(1.0, runs * (doubt / aim) ** 2)))
    return max(runs, 1 << min(wanted, math.floor(math.log2(MORE_STEPS / case.budget))))


@dataclass(frozen=True)
class Stage:
    """How far a measurement is: how many consecutive runs, and how losses are estimated from them."""

    runs: int
    estimator: str


@dataclass(frozen=True)
class EntryRun:
    """
    The measurement of one cell: an entry on a problem.

    Attributes
    ----------
    entry, strategy, case
        The name of the entry, its strategy for the problem, and the problem.
    runs
        How many consecutive runs; None for as many as the standard error asks for, and runs with quiet starts.
    estimator, in_flight
        As in `simulate`.
    one_kernel
        Whether to use the kernel for any number of arms, which is compiled once for a strategy.
    """

    entry: str
    strategy: Strategy
    case: Case
    runs: int | None = None
    estimator: str = "auto"
    in_flight: int = 1
    one_kernel: bool = False

    def setup(self, seed: int) -> Setup:
        """Return what is simulated."""
        case = self.case
        [setup] = setups(
            case.problem, self.strategy, [case.budget], case.support, seed, self.in_flight, one_kernel=self.one_kernel
        )
        return setup

    def first(self) -> Stage:
        """Return what to begin with."""
        return Stage(self.runs or first_runs(self.case), self.estimator)

    def after(self, stage: Stage, excess: float, error: float, doubt: float) -> Stage | None:
        """Return what to continue with after these results, in percent of the best loss; None if that is all."""
        runs = self.runs or more_runs(self.case, excess, doubt, stage.runs)
        if runs <= stage.runs:
            return None
        rare = error > RARE / 100 * max(100 + excess, 100)
        return Stage(runs, "naive" if rare else stage.estimator)

    def chosen(self, stage: Stage) -> tuple[estimators.Estimator, ...]:
        """Return the estimator of each arm."""
        return estimators.choose(stage.estimator, self.case.problem, self.strategy)

    def percent(self, loss: float, error: float, doubt: float) -> tuple[float, float, float]:
        """Return the excess, its standard error and the doubt about it, in percent of the best loss."""
        loss, error, doubt = (100 * each / self.case.optimal_loss for each in (loss, error, doubt))
        return loss - 100, error, doubt

    def cell(self, excess: float, error: float, both: Sequence[Members]) -> Cell:
        """Return the cell, measured on two halves of the runs."""
        simulated, of = sum(len(half.numbers) for half in both), sum(int(half.sizes.sum()) for half in both)
        return Cell(self.entry, self.case, excess, error, simulated, of)

    def measure(self, seed: int = SEED) -> Cell:
        """Simulate the cell in this thread."""
        setup, stage = self.setup(seed), self.first()
        ends = first_ends(cpu.simulate, setup, 0, stage.runs)
        pool = starts(setup.problem, self.case.budget, seed) if self.runs is None else None
        further = cpu.simulate_numbered(setup, pool.simulated) if pool else None
        while True:
            both = halves(ends, pool, further)
            found = self.percent(*crossed(setup.problem, both, self.chosen(stage)))
            then = self.after(stage, *found)
            if then is None:
                return self.cell(*found[:2], [half.members for half in both])
            ends = Ends.join([ends, cpu.simulate(setup, stage.runs, then.runs - stage.runs)])
            stage = then
