"""What a study knew at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.base.inputs import Names
from equipoise.ledger.evidence import Evidence
from equipoise.problem import Objective
from equipoise.strategies import Strategy, Support


@dataclass(frozen=True)
class Design:
    """
    How a study decides which arm comes next.

    Attributes
    ----------
    strategy, params
        The strategy, and its parameters for the budget.
    retired
        Which arms are retired, in the arms' order.
    """

    strategy: Strategy
    params: tuple[float, ...]
    retired: Bools


@dataclass(frozen=True)
class Snapshot:
    """
    A copy of what a study knows, which later events do not change: all that a result is made from.

    Attributes
    ----------
    names
        The arms.
    strategy, support, objective
        What the study was set up with; the objective has weights in the arms' order, and what samples are expected to
        cost by what is known.
    counts, means, m2s
        Of each arm: samples in, their mean, and the sum of squared deviations from it.
    budget
        How many samples might be asked for, or with costs how much they might cost; None for no limit.
    spent
        What the tickets that were handed out cost, less those that were forgotten; their number without costs.
    bill
        The part of that for tickets that were answered or declined: what is spent, less what is in flight.
    declined, replies
        Of each arm: tickets that were declined, and tickets that were answered or declined; None where none was
        declined.
    costs
        The mean of each arm's real costs, or the declared cost where none is known; None without costs.
    evidence
        The samples in the order of asking; None where only moments are known.
    populations
        The sizes of the arms' populations, where samples are drawn without replacement; None if all are infinite.
    design
        How arms were chosen; None where that is not known.
    pace
        Seconds that a sample of each arm takes by the clock on the wall, whatever is sampled at the same time; None
        where that is not known.
    """

    names: Names
    strategy: str
    support: Support
    objective: Objective
    counts: Ints
    means: Floats
    m2s: Floats
    spent: float
    bill: float
    declined: Ints | None = None
    replies: Ints | None = None
    costs: Floats | None = None
    evidence: Evidence | None = None
    populations: Floats | None = None
    design: Design | None = None
    pace: Floats | None = None
    budget: float | None = None
