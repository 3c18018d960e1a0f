"""What is simulated to reproduce the paper's experiments: problems, strategies, budgets and runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from equipoise import theory
from equipoise.base.inputs import integer
from equipoise.engine import cpu
from equipoise.problem import Bernoulli, Constant, Exponential, Gaussian, Law, Problem, Rademacher, Uniform
from equipoise.strategies import Strategy
from equipoise.strategies.auto import Auto
from equipoise.strategies.b_as import BAS
from equipoise.strategies.ch_as import CHAS
from equipoise.strategies.gafs_max import GAFSMAX

# What a simulation is for, such as ("left", "CH-AS", 50_000), with its runs, or ("long", "Gaussian", 20).
Key = tuple[Any, ...]

# The paper's number of runs.
PAPER_RUNS = 50_000
# Values of the parameters that the paper does not name, and those shown in the main panels.
EXPLORATIONS, ALPHAS = (0.25, 0.5, 1.0, 2.0), (0.5, 1.0, 2.0)
A, ALPHA = 0.5, 1.0

PAIR = Problem([Gaussian(0, 4), Gaussian(0, 1)])
QUIET = Problem([Bernoulli(0.5), Constant(0.5)])
BOUNDED = Problem([Bernoulli(0.5), Bernoulli(0.2)])
# Second arms of variance 1; the first is N(0, 1/lambda_min - 1).
PARTNERS: dict[str, Law] = {
    "Gaussian": Gaussian(0, 1),
    "Rademacher": Rademacher(),
    "uniform": Uniform(-math.sqrt(3), math.sqrt(3)),
    "exponential": Exponential(1),
}


@dataclass(frozen=True)
class PaperDesign:
    """
    Runs, budgets and values of 1/lambda_min to simulate.

    Where controls leave the least noise, `half` of the runs are enough: beyond `n` in the left figure, and in the right
    one for B-AS with A = 2 or a uniform arm, and for auto up to the `quiet_ratios` of a second arm. Side questions take
    fewer: `few` at long budgets and with a constant arm, where runs hardly differ, and `one` for the pulls of that arm
    at very long budgets.
    """

    runs: int = PAPER_RUNS
    seed: int = 1
    budgets: tuple[int, ...] = (50, 70, 100, 150, 200, 300, 500, 1000, 2000, 5000)
    ratios: tuple[int, ...] = (2, 5, 10, 20, 50, 100)
    quiet_ratios: tuple[tuple[str, int], ...] = (("uniform", 10), ("Rademacher", 5))
    n: int = 1000
    lemma: tuple[int, ...] = (50, 150, 500, 1000)
    quiet: tuple[int, ...] = (100, 300, 1000, 3000, 10_000)
    far: tuple[int, ...] = (30_000, 100_000, 300_000, 1_000_000)
    long: tuple[int, ...] = (1000, 3000, 10_000, 30_000)

    def __post_init__(self) -> None:
        integer("runs", self.runs, 100)

    @property
    def half(self) -> int:
        return self.runs // 2

    @property
    def few(self) -> int:
        return max(100, self.runs // 25)

    @property
    def one(self) -> int:
        return cpu.LANES


@dataclass(frozen=True)
class CurveJob:
    """One strategy on one problem, simulated at several budgets."""

    problem: Problem
    strategy: Strategy
    budgets: tuple[int, ...]
    runs: int
    estimator: str = "auto"

    def work(self) -> float:
        """Return how much there is to simulate, in pulls."""
        passes: dict[tuple[float, ...], int] = {}
        for n in self.budgets:
            passes[self.strategy.params(n, len(self.problem), None)] = n
        return float(sum(passes.values()) * self.runs)


@dataclass(frozen=True)
class StatisticsJob:
    """Statistics of where the single runs of a strategy ended at one budget: "pulls" or "shape"."""

    what: str
    problem: Problem
    strategy: Strategy
    budget: int
    runs: int

    def work(self) -> float:
        """Return how much there is to simulate, in pulls."""
        return float(self.budget * self.runs)


Job = CurveJob | StatisticsJob


def pair(partner: str, ratio: float) -> Problem:
    """Return the problem of N(0, 1/lambda_min - 1) and an arm of variance 1."""
    return Problem([Gaussian(0, ratio - 1), PARTNERS[partner]])


def b_as(exploration: float) -> str:
    """Return the name of B-AS with this exploration."""
    return f"B-AS, A = {exploration:g}"


def gafs_max(alpha: float) -> str:
    """Return the name of GAFS-MAX with this alpha."""
    return f"GAFS-MAX, α = {alpha:g}"


AUTO = "auto (not in the paper)"
# The loss without the Gaussian lemma, and with it.
LEMMA_ESTIMATORS = ("controls", "gaussian")


def jobs(design: PaperDesign) -> dict[Key, Job]:
    """Return everything to simulate, by what it is for."""
    d = design
    gaussian = theory.gaussian_constants(PAIR.variances)
    shown: dict[str, Strategy] = {
        "CH-AS": CHAS(),
        **{b_as(each): BAS(exploration=each) for each in EXPLORATIONS},
        **{gafs_max(each): GAFSMAX(alpha=each) for each in ALPHAS},
        AUTO: Auto(),
    }
    found: dict[Key, Job] = {}
    for name, strategy in shown.items():
        for runs, beyond in ((d.runs, False), (d.half, True)):
            if budgets := tuple(n for n in d.budgets if (n > d.n) == beyond):
                found["left", name, runs] = CurveJob(PAIR, strategy, budgets, runs)
    for partner in PARTNERS:
        paper = partner in ("Gaussian", "Rademacher")
        for ratio in d.ratios:
            problem = pair(partner, ratio)
            for each in (0.5, 1.0, 2.0) if paper else (1.0,):
                quiet = ratio > 2 and (each == 2.0 or partner == "uniform")
                runs = d.half if quiet else d.runs
                found["share", partner, ratio, b_as(each)] = CurveJob(problem, BAS(exploration=each), (d.n,), runs)
            runs = d.half if ratio <= dict(d.quiet_ratios).get(partner, 0) else d.runs
            found["share", partner, ratio, AUTO] = CurveJob(problem, Auto(), (d.n,), runs)
            if ratio in (5, 20) or (ratio == 100 and partner == "Gaussian"):
                found["long", partner, ratio] = CurveJob(problem, Auto(), d.long, d.few)
            if paper and ratio > 2:
                for each in (A, 1.0):
                    found["shape", partner, ratio, each] = StatisticsJob(
                        "shape", problem, BAS(exploration=each), d.n, d.runs
                    )
    named: dict[str, Strategy] = {
        "CH-AS": CHAS(),
        b_as(A): BAS(exploration=A),
        gafs_max(ALPHA): GAFSMAX(alpha=ALPHA),
    }
    for name in ("CH-AS", gafs_max(ALPHA)):
        found["quiet", name] = CurveJob(QUIET, named[name], d.quiet, d.few, "controls")
        found["far", name] = CurveJob(QUIET, named[name], d.far, d.one, "naive")
    for name in (b_as(A), gafs_max(ALPHA)):
        for estimator in LEMMA_ESTIMATORS:
            found["lemma", name, estimator] = CurveJob(PAIR, named[name], d.lemma, d.runs, estimator)
    bernstein = BAS(c1=gaussian[0], c2=gaussian[1])
    found["bound", "CH-AS"] = CurveJob(BOUNDED, CHAS(), (d.n,), d.runs)
    found["bound", "B-AS"] = CurveJob(PAIR, bernstein, (d.n,), d.runs)
    found["pulls", "CH-AS"] = StatisticsJob("pulls", BOUNDED, CHAS(), d.n, d.runs)
    found["pulls", "B-AS"] = StatisticsJob("pulls", PAIR, bernstein, d.n, d.runs)
    return found
