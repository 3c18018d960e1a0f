"""What benchmarks.inference measures: rows, what was found of each, and the tables of the pages on inference."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

import equipoise as eq
from benchmarks.coverage import table
from equipoise.engine.setup import Setup
from equipoise.problem.objective import objective as objective_of
from equipoise.simulation.simulator import setups
from equipoise.strategies import Strategy, Support, resolve

SEED: Final = 31

LAWS: dict[str, eq.Law] = {
    "Gaussian": eq.Gaussian(0, 1),
    "exponential": eq.Exponential(1),
    "log-normal": eq.LogNormal(0, 0.8),
    "binary 0.1": eq.Bernoulli(0.1),
    "binary 0.5": eq.Bernoulli(0.5),
}
STRATEGIES = ("auto", "b-as", "uniform")
COSTS = (1.0, 3.0)


@dataclass(frozen=True)
class Row:
    """
    Equal arms, and how they are sampled.

    Attributes
    ----------
    table
        The table that the row stands in.
    law, arms, each
        The arms' law and number, and how many samples of each an even split takes.
    strategy
        Its name; B-AS explores with A = one standard deviation. With half of it, two binary arms with p = 0.1 and 30
        samples an arm had a ratio of variances of 1.07 (0.02) and 0.74 of the bias reported, in 958 studies; an error
        of 0.4% would take some 20,000.
    objective
        "max", "sum", "p = 2", "strata" (equal ones), "unequal strata" or "weights".
    costs
        Whether a sample of every other arm costs three times as much as one of the others.
    """

    table: str
    law: str
    arms: int
    each: int
    strategy: str = "auto"
    objective: str = "max"
    costs: bool = False

    @property
    def name(self) -> str:
        """What `--only` looks for."""
        costs = "with costs" if self.costs else "no costs"
        return f"{self.table}: {self.law}, {self.arms}, {self.each}, {self.strategy}, {self.objective}, {costs}"

    @property
    def support(self) -> Support:
        """What the studies declare."""
        return "binary" if self.law.startswith("binary") else None

    @property
    def options(self) -> dict[str, Any]:
        """The objective, weights and costs, as a study takes them."""
        unequal = 1.0 + np.arange(self.arms) % 4
        aims: dict[str, Any] = {
            "max": math.inf,
            "sum": 1,
            "p = 2": 2,
            "strata": eq.Stratified([1 / self.arms] * self.arms),
            "unequal strata": eq.Stratified((unequal / unequal.sum()).tolist()),
            "weights": math.inf,
        }
        return {
            "objective": aims[self.objective],
            "weights": unequal.tolist() if self.objective == "weights" else None,
            "costs": [COSTS[k % 2] for k in range(self.arms)] if self.costs else None,
        }

    @property
    def budget(self) -> int:
        """What an even split of `each` samples an arm costs."""
        return self.each * self.arms if not self.costs else round(self.each * sum(self.options["costs"]))

    @property
    def problem(self) -> eq.Problem:
        """The arms."""
        return eq.Problem([LAWS[self.law]] * self.arms)

    def sampling(self) -> Strategy:
        """Return the strategy."""
        explore = eq.strategies.BAS(exploration=math.sqrt(LAWS[self.law].variance))
        return explore if self.strategy == "b-as" else resolve(self.strategy)

    def setup(self) -> Setup:
        """Return the simulation of such studies."""
        aim = objective_of(range(self.arms), *self.options.values())
        return setups(self.problem, self.sampling(), [self.budget], self.support, SEED, 1, aim, one_kernel=True)[0]


def rows() -> list[Row]:
    """Return all rows of all tables."""
    found = [
        Row("variance", law, arms, each, strategy, objective, costs)
        for strategy, arms, law, each, objective, costs in product(
            STRATEGIES, (2, 10, 100), LAWS, (30, 100), ("max", "sum"), (False, True)
        )
    ]
    found += [
        Row("bias", law, arms, each, "auto", objective)
        for law in ("exponential", "binary 0.1")
        for objective in ("max", "sum", "p = 2", "weights", "strata", "unequal strata")
        for arms, each in ((10, 30), (10, 100))
    ]
    found += [
        Row("coverage", law, arms, each, "auto", "strata")
        for arms, each in ((50, 100), (100, 30))
        for law in ("exponential", "Gaussian", "binary 0.1", "log-normal")
    ]
    return found + [
        Row("remark", law, arms, 100) for arms in (2, 10, 100) for law in ("Gaussian", "exponential", "log-normal")
    ]


# ---- what is found


@dataclass(frozen=True)
class Found:
    """
    A row with what was measured.

    Attributes
    ----------
    inflation, reported, ratio, ratio_error
        f, true and reported; true over reported variance, and its standard error.
    bias, bias_error, reported_bias, reported_bias_error
        Of a mean, the average over the arms.
    studies, seconds
        How many were replayed, and what the row took on one core.
    """

    row: Row
    inflation: float
    reported: float
    ratio: float
    ratio_error: float
    bias: float
    bias_error: float
    reported_bias: float
    reported_bias_error: float
    studies: int
    seconds: float


@dataclass(frozen=True)
class Covered:
    """
    What was found of combined means.

    Attributes
    ----------
    studies, seconds
        How many were replayed, and what the row took on one core.
    coverage, plain
        How often the interval of `combine()` covers the mean, and how often the plain mean ± 1.96 plain errors does.
    bias, corrected, bias_error
        Of the plain mean and of the corrected one, with the standard error of the latter.
    spread
        The standard deviation of the corrected mean's error over its reported standard error.
    """

    row: Row
    studies: int
    coverage: float
    plain: float
    bias: float
    corrected: float
    bias_error: float
    seconds: float
    spread: float = math.nan


@dataclass(frozen=True)
class Remarked:
    """How many studies were warned of heavy tails, and about which share of the arms."""

    row: Row
    studies: int
    of_studies: float
    of_arms: float


# ---- tables


def bracketed(value: float, error: float, digits: int = 3) -> str:
    """Return a value with its standard error."""
    return f"{value:.{digits}f} ({error:.{digits}f})"


def short(value: float) -> str:
    """Return a bias with two digits that matter."""
    return f"{value:.2g}" if abs(value) >= 1e-4 else f"{value:.1g}"


def sampling(row: Row) -> str:
    """Return how the arms of a row are sampled."""
    return f"{row.strategy}, {row.objective}" + (", costs" if row.costs else "")


def variance_table(found: Sequence[Found]) -> str:
    """Return true over reported variance: a line for each law and way of sampling, by arms and samples an arm."""
    known = {each.row: each for each in found}
    columns = sorted({(row.arms, row.each) for row in known})
    head = ["arms", "sampling", *(f"K = {arms}, {each}" for arms, each in columns)]
    lines = []
    for law, strategy, objective, costs in product(LAWS, STRATEGIES, ("max", "sum"), (False, True)):
        here = [known.get(Row("variance", law, *column, strategy, objective, costs)) for column in columns]
        if any(here):
            shown = [f"{each.ratio:.3f}" if each else "" for each in here]
            lines.append([law, sampling(Row("", law, 2, 30, strategy, objective, costs)), *shown])
    return table(head, lines)


def bias_table(found: Sequence[Found]) -> str:
    """Return biases, true and reported, of the rows of each objective."""
    head = ["arms", "samples an arm", "objective", "true bias", "reported", "reported / true"]
    lines = []
    for each in found:
        ratio = each.reported_bias / each.bias
        error = abs(ratio) * math.hypot(each.reported_bias_error / each.reported_bias, each.bias_error / each.bias)
        arms, biases = f"{each.row.arms} {each.row.law}", (short(each.bias), short(each.reported_bias))
        lines.append([arms, str(each.row.each), each.row.objective, *biases, bracketed(ratio, error, 2)])
    return table(head, lines)


def coverage_table(found: Sequence[Covered]) -> str:
    """Return the coverage of combined means."""
    head = [
        "strata",
        "studies",
        "mean ± 1.96 plain errors",
        "`combine()`",
        "bias of the plain mean",
        "of the corrected",
    ]
    lines = [
        [
            f"{each.row.arms} {each.row.law}, n = {each.row.budget:,}",
            f"{each.studies:,}",
            f"{100 * each.plain:.1f}%",
            f"{100 * each.coverage:.1f}% ({100 * math.sqrt(each.coverage * (1 - each.coverage) / each.studies):.1f})",
            short(each.bias),
            f"{short(each.corrected)} ({short(each.bias_error)})",
        ]
        for each in found
    ]
    return table(head, lines)


def remark_table(found: Sequence[Remarked]) -> str:
    """Return how often results warn of heavy tails."""
    head = ["arms, 100 samples each", "studies", "warned", "arms named"]
    lines = []
    for each in found:
        shares = [f"{100 * share:.1f}%" for share in (each.of_studies, each.of_arms)]
        lines.append([f"{each.row.arms} {each.row.law}", f"{each.studies:,}", *shares])
    return table(head, lines)


def summary(found: Sequence[Found]) -> str:
    """Return the largest deviations by law and samples an arm."""
    head = ["distribution", "samples an arm", "rows", "true over reported variance", "largest error"]
    head.append("bias, reported / true")
    lines = []
    for law, each in product(LAWS, (30, 100)):
        here = [one for one in found if (one.row.law, one.row.each) == (law, each) and one.row.strategy != "uniform"]
        if here:
            ratios, errors = [one.ratio for one in here], [one.ratio_error for one in here]
            biases = [one.reported_bias / one.bias for one in here]
            skewed = law not in ("Gaussian", "binary 0.5")
            lines.append(
                [
                    law,
                    str(each),
                    str(len(here)),
                    f"{min(ratios):.3f} to {max(ratios):.3f}",
                    f"{100 * max(errors):.2f}%",
                    f"{min(biases):.2f} to {max(biases):.2f}" if skewed else "",
                ]
            )
    return table(head, lines)


def tables(known: dict[str, list[Any]]) -> dict[str, str]:
    """Return the tables of what was found, by their names in the page."""
    found = known["found"]
    parts: dict[str, tuple[list[Any], Callable[[Any], str]]] = {
        "summary": (found, summary),
        "variance": ([each for each in found if each.row.table == "variance"], variance_table),
        "bias": ([each for each in found if each.row.table == "bias"], bias_table),
        "combined": (known["covered"], coverage_table),
        "remark": (known["remarked"], remark_table),
    }
    return {name: make(some) for name, (some, make) in parts.items() if some}


def read(files: Sequence[Path]) -> dict[str, list[Any]]:
    """Return what earlier runs found: lines of these files that begin with a brace, the last one for each row."""
    kinds: dict[str, Any] = {"found": Found, "covered": Covered, "remarked": Remarked}
    known: dict[str, dict[Row, Any]] = {name: {} for name in kinds}
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("{")]
    for line in lines:
        given = json.loads(line)
        for name, kind in kinds.items():
            for each in given.get(name, []):
                row = Row(**each["row"])
                known[name][row] = kind(**each | {"row": row})
    place = {row: i for i, row in enumerate(rows())}
    return {name: sorted(found.values(), key=lambda each: place[each.row]) for name, found in known.items()}
