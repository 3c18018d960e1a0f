"""
The leaderboard: every strategy on every problem of the suite, and how far it stays behind the best allocation.

**The number** is the excess, max_k L_k over Sigma/n less one, in percent, with its standard error. The largest of K
noisy losses is too large on average, and by a lot for a hundred arms. So the worst arm is found on one half of the runs
and its loss taken from the other half, both ways round, and the two are averaged (`crossed`). That number is no larger
than the true one on average; it is smaller where runs are too few to tell the worst arm from others near it, by no more
than those differ.

**Constants in the unit of the samples** are known to nobody who knows nothing of the samples. Strategies that have them
are given the scale of the problem, which their user could not know: one unit is sqrt(Sigma/K), the root mean square of
the arms' standard deviations. So every strategy that is not scale invariant and has an `exploration` enters with A =
0.5 and with A = 2 of those units, and the others, such as CH-AS with its width of 1, with their defaults in those
units. Where a support is declared they enter once more, with the constants that their own theory takes from it; these
entries are on such problems only, and are listed last. Oracles do not take part.

**Runs** follow from the problem and from the error of the runs so far, by a fixed rule (`first_runs`, `more_runs`),
never from the clock: the same seed gives the same board on any machine.
"""

from __future__ import annotations

import fnmatch
import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from equipoise import chart, strategies
from equipoise.arrays import Floats
from equipoise.inputs import integer
from equipoise.lab import cpu, cuda, estimators, texts
from equipoise.lab.estimators import Estimator, Evidence
from equipoise.lab.setup import Ends
from equipoise.lab.simulation import check_formula, label, plans
from equipoise.lab.suite import Case, suite, tuning_half, unknown
from equipoise.problem import Gaussian, Problem
from equipoise.strategies import Strategy

SEED = 4
# A, in units of sqrt(Sigma/K), of strategies that have one.
EXPLORATIONS = (0.5, 2)
# Runs to begin with: so many steps of all runs together, where losses are noisy, between the fewest and the most.
FIRST_STEPS, FEWEST, MOST = 1 << 21, 2048, 8192
# More runs are made until the error is at this aim, in percent of the loss, with so many steps at most; where a
# strategy loses more than as much again as it must, at the other.
AIM, ROUGH_AIM, MORE_STEPS = 1.0, 5.0, 1 << 26
# Above this error, in percent of the loss, few runs decide (arms that starve): controls, fitted on runs among which are
# few of those, then add noise, and from there on squared errors are averaged as they are.
RARE = 10.0


@dataclass(frozen=True)
class Entry:
    """
    A line of the board: a strategy, made for each problem.

    Attributes
    ----------
    name
        How the line is called.
    make
        The strategy for a problem; None where it does not take part.
    """

    name: str
    make: Callable[[Case], Strategy | None]


@dataclass(frozen=True)
class Cell:
    """What a strategy had on a problem: excess and its standard error in percent of Sigma/n, from so many runs."""

    strategy: str
    case: Case
    excess: float
    error: float
    runs: int

    @property
    def half(self) -> str:
        """Whether the default strategy was tuned on the problem."""
        return "tuning" if self.case.name in tuning_half() else "held-out"

    @property
    def limit(self) -> float:
        """The problem's limit, in percent."""
        return 100 * self.case.limit

    def row(self) -> dict[str, Any]:
        """All of it as texts and numbers."""
        return {
            "strategy": self.strategy,
            "problem": self.case.name,
            "kind": self.case.kind,
            "tails": self.case.tails,
            "K": len(self.case.problem),
            "n": self.case.budget,
            "n/K": self.case.per_arm,
            "half": self.half,
            "limit": self.limit,
            "excess": self.excess,
            "error": self.error,
            "runs": self.runs,
        }


@dataclass(frozen=True)
class Summary:
    """Of the excesses of one strategy on some problems: the worst and where it is, 90th percentile, median."""

    worst: float
    error: float
    where: str
    ninth: float
    median: float
    problems: int

    @classmethod
    def of(cls, cells: Sequence[Cell]) -> Summary | None:
        """The summary of these cells; None of none."""
        if not cells:
            return None
        worst = max(cells, key=lambda cell: cell.excess)
        excesses = [cell.excess for cell in cells]
        ninth, median = (float(np.quantile(excesses, level)) for level in (0.9, 0.5))
        return cls(worst.excess, worst.error, worst.case.name, ninth, median, len(cells))


# Which problems a summary is of. "enough" and "ones" are those on which a strategy should do well.
GROUPS: dict[str, tuple[str, Callable[[Cell], bool]]] = {
    "continuous": ("continuous", lambda cell: cell.case.kind == "continuous"),
    "binary": ("binary", lambda cell: cell.case.kind == "binary"),
    "tuning, continuous": (
        "continuous, tuned on",
        lambda cell: cell.case.kind == "continuous" and cell.half == "tuning",
    ),
    "held-out, continuous": (
        "continuous, held out",
        lambda cell: cell.case.kind == "continuous" and cell.half == "held-out",
    ),
    "tuning, binary": ("binary, tuned on", lambda cell: cell.case.kind == "binary" and cell.half == "tuning"),
    "held-out, binary": ("binary, held out", lambda cell: cell.case.kind == "binary" and cell.half == "held-out"),
    "enough": (
        "continuous, n/K ≥ 50, tails no heavier than exponential",
        lambda cell: cell.case.kind == "continuous" and cell.case.per_arm >= 50 and cell.case.tails != "heavy",
    ),
    "ones": (
        "binary, n p (1-p)/K ≥ 5 on every arm",
        lambda cell: cell.case.kind == "binary" and cell.case.least_ones >= 5,
    ),
}


@dataclass(frozen=True)
class Board:
    """
    All cells, and what they come to.

    Attributes
    ----------
    cells
        By strategy, then by problem, in the order of the suite.
    seed
        Of the samples.
    """

    cells: tuple[Cell, ...]
    seed: int

    def strategies(self, kind: str | None = None) -> list[str]:
        """The entries by their worst excess, of a kind if given; last those that did not take part everywhere."""
        cells: dict[str, list[Cell]] = {}
        for cell in self.cells:
            if kind in (None, cell.case.kind):
                cells.setdefault(cell.strategy, []).append(cell)
        most = max(map(len, cells.values()), default=0)
        return sorted(cells, key=lambda name: (len(cells[name]) < most, max(cell.excess for cell in cells[name])))

    def of(self, strategy: str) -> list[Cell]:
        """The cells of a strategy."""
        return [cell for cell in self.cells if cell.strategy == strategy]

    def summary(self, strategy: str, group: str) -> Summary | None:
        """What a strategy had on one of GROUPS; None where it has no problem there."""
        return Summary.of([cell for cell in self.of(strategy) if GROUPS[group][1](cell)])

    def over_limit(self, strategy: str, gaussian: bool = False) -> float | None:
        """
        The median of excess over the problem's limit, of continuous problems with n/K of 200 or more.

        Those whose limit is not above zero are left out; with `gaussian`, all that have an arm of another law as well.
        None is without such a problem.
        """
        long = [cell for cell in self.of(strategy) if cell.case.per_arm >= 200 and cell.case.kind == "continuous"]
        ratios = [
            cell.excess / cell.limit
            for cell in long
            if cell.limit > 0
            and not (gaussian and any(not isinstance(law, Gaussian) for law in cell.case.problem.arms))
        ]
        return float(np.median(ratios)) if ratios else None

    def rows(self) -> list[dict[str, Any]]:
        """A row for each strategy and problem."""
        return [cell.row() for cell in self.cells]

    def summaries(self) -> list[dict[str, Any]]:
        """A row for each strategy and group, the best strategy first."""
        return [
            {"strategy": name, "group": group} | {f.name: getattr(found, f.name) for f in fields(found)}
            for name in self.strategies()
            for group in GROUPS
            if (found := self.summary(name, group))
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {
            "seed": self.seed,
            "strategies": self.strategies(),
            "cells": [chart.plain(row) for row in self.rows()],
            "summaries": [chart.plain(row) for row in self.summaries()],
            "over_limit": {
                kind: {name: self.over_limit(name, kind == "gaussian") for name in self.strategies()}
                for kind in ("continuous", "gaussian")
            },
        }

    def plot(self) -> Any:
        """An Altair chart of all cells, a column for each strategy; `chart.save` keeps it."""
        return chart.board(self.rows(), self.strategies())


def unit(case: Case) -> float:
    """sqrt(Sigma/K), the root mean square of the arms' standard deviations."""
    return math.sqrt(float(case.problem.variances.mean()))


def entries(texts_given: Iterable[str] | None = None) -> list[Entry]:
    """
    The lines of the board: of all registered strategies, or of those named.

    A name alone stands for all of its entries. With parameters, as in b-as:exploration=0.5, it is that strategy alone;
    what is in the unit of the samples is in units of sqrt(Sigma/K) here as well.
    """
    if texts_given is None:
        everyone = [name for name in strategies.available() if strategies.get(name).own != "variance"]
        return [entry for name in everyone for entry in _named(name)]
    found = []
    for text in texts_given:
        if ":" in text:
            strategy = texts.strategy(text)
            found.append(Entry(_title(strategy), partial(_scaled, strategy)))
        else:
            found += _named(texts.strategy(text).name)
    if not found:
        raise ValueError("no strategy was given; auto, or b-as:exploration=0.5, would do")
    return list({entry.name: entry for entry in found}.values())


def _named(name: str) -> list[Entry]:
    made: Any = strategies.get(name)
    if made.scale_invariant or not _follows_scale(made):
        return [Entry(name, lambda case: made())]
    if any(f.name == "exploration" for f in fields(made)):
        scaled = [made(exploration=A) for A in EXPLORATIONS]
    else:
        scaled = [made()]
    # MC-UCB and Variance-UCB are B-AS by the same A here: it is their objectives that set them apart.
    same = made is not strategies.BAS and made.variance is strategies.BAS.variance
    found = [] if same else [Entry(_title(strategy), partial(_scaled, strategy)) for strategy in scaled]
    if made.own != "variance":
        found.append(Entry(f"{name}, theory", partial(_theory, made())))
    return found


def _follows_scale(made: type[Strategy]) -> bool:
    return made.rescaled is not Strategy.rescaled


def _title(strategy: Strategy) -> str:
    text = label(strategy).replace("exploration=", "A=")
    return text if "(" not in text else text.replace(" (", ", ")[:-1]


def _scaled(strategy: Strategy, case: Case) -> Strategy | None:
    if strategy.scale_invariant or not _follows_scale(type(strategy)):
        return strategy
    return strategy.rescaled(unit(case))


def _theory(strategy: Strategy, case: Case) -> Strategy | None:
    """The strategy as it is where a support is declared, if that gives it its constants."""
    if case.support is None:
        return None
    try:
        strategy.params(case.budget, len(case.problem), case.support)
    except ValueError:
        return None
    return strategy


def problems(patterns: Iterable[str] | None = None) -> list[Case]:
    """The problems of the suite whose names match any of these, as in gauss-2 or binary-*; all if none is given."""
    if patterns is None:
        return list(suite())
    wanted: set[str] = set()
    for pattern in patterns:
        names = fnmatch.filter([case.name for case in suite()], pattern)
        if not names:
            raise ValueError(unknown(pattern))
        wanted.update(names)
    return [case for case in suite() if case.name in wanted]


def crossed(problem: Problem, ends: Ends, chosen: Sequence[Estimator]) -> tuple[float, float, float]:
    """
    The largest loss, its standard error and the doubt about it, from where runs ended, without the bias of a maximum.

    The worst arm of one half of the runs is looked at in the other half, and the other way round; what is found is
    averaged. The half that names an arm, and on which the multiples of its controls are fitted, has no say in what its
    loss is, so that the mean of each is the true loss of some arm and not above the largest.

    The doubt is the standard error, or more where an arm that was not named may well be the worst: half of how far two
    errors of its own take it above what was found.
    """
    halves = [Evidence.of(problem, half, 0) for half in ends.split(-(-ends.counts.shape[-1] // 2))]
    fits = [estimators.fit(half, chosen) for half in halves]
    seen = [estimators.estimates(half, chosen, fit) for half, fit in zip(halves, fits, strict=True)]
    found = [
        estimators.estimates(half, chosen, fit, [int(there.mean(axis=1).argmax())])[0]
        for half, fit, there in zip(halves, reversed(fits), reversed(seen), strict=True)
    ]
    loss = float(np.mean([each.mean() for each in found]))
    error = math.sqrt(_variance(found))
    highest = np.mean([each.mean(axis=1) for each in seen], axis=0) + 2 * np.sqrt(_variance(seen))
    return loss, error, max(error, (float(highest.max()) - loss) / 2)


def _variance(halves: Sequence[Floats]) -> Any:
    """Of the average of the means of two halves of the runs."""
    return sum(each.var(axis=-1, ddof=1) / each.shape[-1] for each in halves) / 4


def first_runs(case: Case) -> int:
    """Runs to begin with: a fixed number of steps where tails make losses noisy, else the fewest."""
    if case.tails == "light":
        return FEWEST
    return min(MOST, max(FEWEST, 1 << round(math.log2(FIRST_STEPS / case.budget))))


def more_runs(case: Case, excess: float, doubt: float, runs: int) -> int:
    """Runs to go on to, from the doubt so far: a power of two, no fewer than there were."""
    # A loss that noise has put below the best possible one is taken for that one.
    aim = (AIM if excess <= 100 else ROUGH_AIM) / 100 * max(100 + excess, 100)
    wanted = math.ceil(math.log2(max(1.0, runs * (doubt / aim) ** 2)))
    return max(runs, 1 << min(wanted, math.floor(math.log2(MORE_STEPS / case.budget))))


@dataclass(frozen=True)
class Task:
    """A cell to be measured, with so many runs or as many as its error asks for."""

    entry: str
    strategy: Strategy
    case: Case
    runs: int | None = None
    estimator: str = "auto"
    in_flight: int = 1

    def measure(self, seed: int = SEED, engine: Any = "cpu") -> Cell:
        """Simulate the cell, in this thread on a CPU."""
        case, estimator = self.case, self.estimator
        [plan] = plans(case.problem, self.strategy, [case.budget], case.support, seed, self.in_flight)
        # One kernel for a strategy instead of one for each number of arms: compiling those takes longer than the runs.
        plan = replace(plan, one_kernel=True)
        simulate = cuda.simulate if engine == "cuda" else cpu.simulate
        ends = simulate(plan, 0, self.runs or first_runs(case))
        check_formula(plan, ends)
        while True:
            chosen = estimators.choose(estimator, case.problem, self.strategy)
            runs = ends.counts.shape[-1]
            loss, error, doubt = (100 * each / case.optimal_loss for each in crossed(case.problem, ends, chosen))
            more = self.runs or more_runs(case, loss - 100, doubt, runs)
            if more <= runs:
                return Cell(self.entry, case, loss - 100, error, runs)
            if error > RARE / 100 * max(loss, 100):
                estimator = "naive"
            ends = Ends.join([ends, simulate(plan, runs, more - runs)])


def tasks(lines: Sequence[Entry], cases: Sequence[Case], runs: int | None = None) -> list[Task]:
    """
    The cells, strategy by strategy.

    The first cell of each goes ahead into the midst of the one before: so one thread compiles a strategy while the
    others have work.
    """
    by_entry = []
    for entry in lines:
        made = ((case, entry.make(case)) for case in cases)
        by_entry.append([Task(entry.name, each, case, runs) for case, each in made if each])
    ordered: list[Task] = []
    for each in filter(None, by_entry):
        ahead = len(ordered) and max(1, len(ordered) - len(each) // 2)
        ordered.insert(ahead, each[0])
        ordered += each[1:]
    return ordered


def leaderboard(
    given: Sequence[Entry] | None = None,
    cases: Sequence[Case] | None = None,
    runs: int | None = None,
    seed: int = SEED,
    engine: Any = "cpu",
    threads: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> Board:
    """
    Every strategy on every problem.

    Parameters
    ----------
    given, cases
        Lines and problems: all by default. `entries` and `problems` find them by name.
    runs
        Runs of every cell. By default as many as its error asks for.
    seed
        Which samples; all strategies meet the same.
    engine
        "cpu" or "cuda".
    threads
        Cells measured side by side; as many as there are cores by default. The result does not depend on it. On a GPU
        one at a time is on the card, while others are made ready and summed up.
    progress
        Called with the cells done so far and the cells in all.

    Examples
    --------
    >>> board = leaderboard(entries(["auto", "uniform"]), problems(["gauss-2"]), runs=1024)
    >>> [f"{cell.strategy} {cell.excess:.1f}" for cell in board.cells]
    ['auto 0.3', 'uniform 60.0']
    """
    lines = entries() if given is None else list(given)
    chosen = problems() if cases is None else list(cases)
    if runs is not None:
        runs = integer("runs", runs, 4)
    if engine == "cuda":
        cuda.check()
    elif engine != "cpu":
        raise ValueError(f"engine={engine!r} will not do; it must be 'cpu' or 'cuda'")
    workers = os.cpu_count() or 1 if threads is None else integer("threads", threads, 1)
    found: dict[tuple[str, str], Cell] = {}
    work = tasks(lines, chosen, runs)
    if not work:
        raise ValueError("none of these strategies takes part in any of these problems")
    with ThreadPoolExecutor(workers) as pool:
        for done, cell in enumerate(pool.map(lambda task: task.measure(seed, engine), work), 1):
            found[cell.strategy, cell.case.name] = cell
            if progress:
                progress(done, len(work))
    names = [line.name for line in lines]
    return Board(tuple(found[n, c.name] for n in names for c in chosen if (n, c.name) in found), seed)
