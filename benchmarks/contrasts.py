"""
Measure how often intervals of differences miss, and how wide they are next to the box of two intervals.

`make docs` runs this. It writes the table of contrasts in docs/explanation/intervals.md; the last line printed is one
JSON object. A run is a study that is looked at with every 5% more samples. It misses if at any look the interval of any
pair, all of them simultaneous, does not contain the difference of the means.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

import equipoise as eq
from benchmarks.coverage import fill, percent, table
from equipoise.base.arrays import Floats
from equipoise.strategies import Support

PAGE = Path(__file__).parent.parent / "docs" / "explanation" / "intervals.md"
LEVEL, EACH, RUNS, SEED = 0.95, 500, 400, 5

Draw = Callable[[np.random.Generator, int, int], Floats]


@dataclass(frozen=True)
class Law:
    """Arms of one kind: the support that is declared, the mean of arm k, and a draw of samples of it."""

    support: Support
    means: tuple[float, ...]
    draw: Draw


def _bounded(rng: np.random.Generator, k: int, size: int) -> Floats:
    return np.asarray(rng.beta(2 + k, 6 - k, size))


LAWS = {
    "Gaussian, standard deviations 1 to 2": Law(None, (0.0,) * 5, lambda rng, k, size: rng.normal(0, 1 + k / 4, size)),
    "exponential, means 1 to 2": Law(
        None, (1.0, 1.25, 1.5, 1.75, 2.0), lambda rng, k, size: rng.exponential(1 + k / 4, size)
    ),
    "coins, 0.1 to 0.5": Law(
        "binary", (0.1, 0.2, 0.3, 0.4, 0.5), lambda rng, k, size: (rng.random(size) < (1 + k) / 10).astype(float)
    ),
    "Beta(2, 6) to Beta(6, 2)": Law((0, 1), tuple((2 + k) / 8 for k in range(5)), _bounded),
}


@dataclass(frozen=True)
class Cell:
    """
    What was found of one law, number of arms and strategy.

    Attributes
    ----------
    missed, box_missed
        Shares of the runs in which the interval of any pair missed at any look: directly, and as a box of the arms'
        simultaneous intervals.
    ratio
        The mean width of the direct intervals over that of the boxes, at the end.
    """

    law: str
    arms: int
    strategy: str
    missed: float
    box_missed: float
    ratio: float


def looks(budget: int) -> set[int]:
    """Return the numbers of samples at which a study is looked at."""
    found, t = set(), 10.0
    while t < budget:
        found.add(int(t))
        t = max(t * 1.05, t + 1)
    return found | {budget}


def one_run(law: Law, arms: int, strategy: str, seed: int) -> tuple[bool, bool, float]:
    """Return whether any pair's interval ever missed, directly and by the box, and the ratio of widths at the end."""
    rng = np.random.default_rng(seed)
    budget = EACH * arms
    samples = np.array([law.draw(rng, k, budget) for k in range(arms)])
    means, when = np.array(law.means[:arms]), looks(budget)
    study = eq.Study(arms, budget=budget, support=law.support, strategy=strategy)
    taken = [0] * arms
    pairs = np.array(list(combinations(range(arms), 2)))
    true = means[pairs[:, 0]] - means[pairs[:, 1]]
    missed = boxed = False
    for t in range(1, budget + 1):
        ticket = study.ask()
        k: Any = ticket.arm
        study.tell(ticket, samples[k, taken[k]])
        taken[k] += 1
        if t not in when:
            continue
        result = study.result()
        found = result.compare(LEVEL)
        gaps = means[found.first] - means[found.second]
        missed |= bool(((gaps < found.low) | (found.high < gaps)).any())
        ends = result.intervals(LEVEL)
        low, high = ends.low[pairs[:, 0]] - ends.high[pairs[:, 1]], ends.high[pairs[:, 0]] - ends.low[pairs[:, 1]]
        boxed |= bool(((true < low) | (high < true)).any())
    return missed, boxed, float((found.high - found.low).sum() / (high - low).sum())


def cell(job: tuple[str, int, str, int]) -> Cell:
    """Measure one law, number of arms and strategy, in a number of runs."""
    law, arms, strategy, runs = job
    found: Any = np.array([one_run(LAWS[law], arms, strategy, SEED + run) for run in range(runs)])
    return Cell(law, arms, strategy, *map(float, found.mean(0)))


def summary(found: list[Cell]) -> str:
    """Return the table of the page."""
    head = ["arms", "K", "strategy", "direct misses", "box misses", "direct width / box width"]
    rows = [
        [each.law, str(each.arms), each.strategy, percent(each.missed), percent(each.box_missed), f"{each.ratio:.2f}"]
        for each in found
    ]
    return table(head, rows)


def main(runs: int = RUNS) -> None:
    """Measure, and write the table."""
    jobs = [(*each, runs) for each in product(LAWS, (2, 5), ("auto", "uniform"))]
    with ProcessPoolExecutor() as pool:
        found = list(pool.map(cell, jobs))
    PAGE.write_text(fill(PAGE.read_text(), contrasts=summary(found)))
    error = math.sqrt(LEVEL * (1 - LEVEL) / runs)
    print(json.dumps({"runs": runs, "standard_error_at_5_percent": error, "cells": [asdict(each) for each in found]}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
