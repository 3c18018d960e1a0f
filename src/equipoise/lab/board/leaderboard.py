"""
The leaderboard: how far every strategy stays behind the best allocation, on the suite or on drawn problems.

**The number** is the excess, max_k L_k over Sigma/n minus one, in percent, with its standard error. The largest of K
noisy losses is too large on average, and by a lot for a hundred arms. So the worst arm is found on one half of the runs
and its loss is taken from the other half, both ways round, and the two are averaged (`crossed`). On average that number
is not above the true one; it is below it where runs are too few to tell the worst arm from others close to it, by no
more than those differ.

**Constants in the unit of the samples** cannot be chosen without knowing the samples. Strategies that have them are
given the scale of the problem, which their user could not know: one unit is sqrt(Sigma/K), the root mean square of the
arms' standard deviations. Every strategy that is not scale invariant and has an `exploration` enters with A = 0.5 and
with A = 2 of those units, and the others, such as CH-AS with its width of 1, with their defaults in those units. Where
a support is declared they enter a second time, with the constants that their own theory takes from it; these entries
exist on such problems only, and are listed last. Oracles do not take part.

**The even split** has fixed counts, so that its loss is known exactly. The ratio is a strategy's loss over it: where it
is above one, an even split would have been better.

How a cell is measured, and on how many runs, is in `cells.py`.
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
from equipoise.base.inputs import choice, integer, several, shown
from equipoise.base.tables import json_ready
from equipoise.lab.board.cells import SEED, Cell, EntryRun
from equipoise.lab.suite import Case, suite, unknown
from equipoise.problem import Gaussian, Problem
from equipoise.simulation import texts
from equipoise.simulation.simulator import support_for
from equipoise.strategies import Strategy, Support, label

# All runs of a cell are in memory at once.
MOST_RUNS = 1_000_000
# The samples of a study of a problem that comes without a budget.
BUDGET = 1000

# The values of A, in units of sqrt(Sigma/K), with which strategies that have one enter.
EXPLORATIONS = (0.5, 2)
# Called with the number of cells done so far and their total.
Progress = Callable[[int, int], Any]


@dataclass(frozen=True)
class Entry:
    """
    A line of the board: a strategy, made for each problem.

    Attributes
    ----------
    name
        The name of the line.
    make
        Returns the strategy for a problem; None where it does not take part.
    """

    name: str
    make: Callable[[Case], Strategy | None]


@dataclass(frozen=True)
class Summary:
    """
    The results of one strategy on some problems.

    Attributes
    ----------
    worst, error, where
        The largest excess, its standard error, and the name of the problem.
    ninth, median
        The 90th percentile and the median of the excesses.
    ratio, ratio_error, ratio_where
        The largest loss over that of an even split, its standard error, and the name of the problem.
    problems
        How many problems there are.
    """

    worst: float
    error: float
    where: str
    ninth: float
    median: float
    ratio: float
    ratio_error: float
    ratio_where: str
    problems: int

    @classmethod
    def of(cls, cells: Sequence[Cell]) -> Summary | None:
        """Return the summary of these cells; None if there are none."""
        if not cells:
            return None
        worst, behind = max(cells, key=lambda cell: cell.excess), max(cells, key=lambda cell: cell.ratio)
        ninth, median = (float(np.quantile([cell.excess for cell in cells], level)) for level in (0.9, 0.5))
        return cls(
            worst=worst.excess,
            error=worst.error,
            where=worst.case.name,
            ninth=ninth,
            median=median,
            ratio=behind.ratio,
            ratio_error=behind.ratio_error,
            ratio_where=behind.case.name,
            problems=len(cells),
        )


# Groups of problems to summarise. "enough" and "ones" are those on which a strategy should do well.
GROUPS: dict[str, tuple[str, Callable[[Cell], bool]]] = {
    "continuous": ("continuous", lambda cell: cell.case.kind == "continuous"),
    "binary": ("binary", lambda cell: cell.case.kind == "binary"),
    "plain": (
        "continuous, no rare large values",
        lambda cell: cell.case.kind == "continuous" and cell.case.tails != "rare",
    ),
    "rare": ("continuous, rare large values", lambda cell: cell.case.tails == "rare"),
    "enough": (
        "continuous, n/K ≥ 50, tails no heavier than exponential",
        lambda cell: (
            cell.case.kind == "continuous" and cell.case.per_arm >= 50 and cell.case.tails in ("light", "exponential")
        ),
    ),
    "ones": (
        "binary, n p (1-p)/K ≥ 5 on every arm",
        lambda cell: cell.case.kind == "binary" and cell.case.least_ones >= 5,
    ),
}


@dataclass(frozen=True)
class Board:
    """
    All cells of a leaderboard, and their summaries.

    Attributes
    ----------
    cells
        By strategy, then by problem, in the order of the problems.
    seed
        Which samples.
    """

    cells: tuple[Cell, ...]
    seed: int

    def strategies(self, group: str | None = None) -> list[str]:
        """Return the entries by their worst excess, on one of GROUPS if given; incomplete entries come last."""
        cells: dict[str, list[Cell]] = {}
        for cell in self.cells if group is None else self.group(group):
            cells.setdefault(cell.strategy, []).append(cell)
        most = max(map(len, cells.values()), default=0)
        return sorted(cells, key=lambda name: (len(cells[name]) < most, max(cell.excess for cell in cells[name])))

    def group(self, group: str) -> list[Cell]:
        """Return the cells of one of GROUPS."""
        return [cell for cell in self.cells if GROUPS[group][1](cell)]

    def hardest(self, strategy: str, group: str, problems: int = 5) -> list[tuple[Cell, Cell | None]]:
        """Return the problems of a group on which a strategy is at its worst, each with the best other strategy."""
        cells = self.group(group)
        mine = sorted((cell for cell in cells if cell.strategy == strategy), key=lambda cell: -cell.excess)
        return [
            (
                cell,
                min(
                    (other for other in cells if other.case is cell.case and other.strategy != strategy),
                    key=lambda other: other.excess,
                    default=None,
                ),
            )
            for cell in mine[:problems]
        ]

    def of(self, strategy: str) -> list[Cell]:
        """Return the cells of a strategy."""
        return [cell for cell in self.cells if cell.strategy == strategy]

    def summary(self, strategy: str, group: str) -> Summary | None:
        """Return the summary of a strategy on one of GROUPS; None where it has no problem there."""
        return Summary.of([cell for cell in self.of(strategy) if GROUPS[group][1](cell)])

    def over_limit(self, strategy: str, gaussian: bool = False) -> float | None:
        """
        Return the median of excess over the problem's limit, on continuous problems with n/K of at least 200.

        Problems whose limit is not above zero are left out; with `gaussian`, so are those that have an arm of another
        law. None without such a problem.
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
        """Return a row for each strategy and problem."""
        return [cell.row() for cell in self.cells]

    def summaries(self) -> list[dict[str, Any]]:
        """Return a row for each strategy and group, the best strategy first."""
        return [
            {"strategy": name, "group": group} | {f.name: getattr(found, f.name) for f in fields(found)}
            for name in self.strategies()
            for group in GROUPS
            if (found := self.summary(name, group))
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it, ready for JSON."""
        return {
            "seed": self.seed,
            "strategies": self.strategies(),
            "cells": json_ready(self.rows()),
            "summaries": json_ready(self.summaries()),
            "over_limit": {
                kind: {name: self.over_limit(name, kind == "gaussian") for name in self.strategies()}
                for kind in ("continuous", "gaussian")
            },
        }

    def plot(self) -> Any:
        """Return an Altair chart of all cells with a column for each strategy; `chart.save` writes it to a file."""
        return chart.board(self.rows(), self.strategies())


def unit(case: Case) -> float:
    """Return sqrt(Sigma/K), the root mean square of the arms' standard deviations."""
    return math.sqrt(float(case.problem.variances.mean()))


def entries(texts_given: Iterable[str] | None = None) -> list[Entry]:
    """
    Return the lines of the board, of all registered strategies or of those named.

    A name alone stands for all of its entries. With parameters, as in b-as:exploration=0.5, it is that strategy alone;
    parameters in the unit of the samples are in units of sqrt(Sigma/K) here as well.
    """
    if texts_given is None:
        everyone = [name for name in strategies.available() if "variance" not in strategies.get(name).own]
        return [entry for name in everyone for entry in _named(name)]
    found = []
    for text in texts_given:
        if ":" in text:
            strategy = texts.strategy(text)
            found.append(Entry(_title(strategy), partial(_scaled, strategy)))
        else:
            found += _named(texts.strategy(text).name)
    if not found:
        raise ValueError("at least one strategy must be given, such as auto or b-as:exploration=0.5, got none")
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
    if "variance" not in made.own:
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
    """The strategy unscaled, where a support is declared and gives it its constants."""
    if case.support is None:
        return None
    try:
        strategy.params(case.budget, len(case.problem), case.support)
    except ValueError:
        return None
    return strategy


def problems(patterns: Iterable[str] | None = None) -> list[Case]:
    """Return the problems of the suite whose names match one of the patterns, such as gauss-2 or binary-*."""
    if patterns is None:
        return list(suite())
    wanted: set[str] = set()
    for pattern in patterns:
        names = fnmatch.filter([case.name for case in suite()], pattern)
        if not names:
            raise ValueError(unknown(pattern))
        wanted.update(names)
    return [case for case in suite() if case.name in wanted]


def entry_runs(lines: Sequence[Entry], cases: Sequence[Case], runs: int | None = None) -> list[EntryRun]:
    """
    Return the cells to measure, strategy by strategy.

    The first cell of each strategy is moved ahead, among the cells of the one before: so one thread compiles a strategy
    while the others have work.
    """
    by_entry = []
    for entry in lines:
        made = ((case, entry.make(case)) for case in cases)
        # One kernel for a strategy instead of one for each number of arms: compiling those takes longer than the runs.
        by_entry.append([EntryRun(entry.name, each, case, runs, one_kernel=True) for case, each in made if each])
    ordered: list[EntryRun] = []
    for each in filter(None, by_entry):
        ahead = len(ordered) and max(1, len(ordered) - len(each) // 2)
        ordered.insert(ahead, each[0])
        ordered += each[1:]
    return ordered


def leaderboard(
    cases: Iterable[Case | Problem | str] | None = None,
    lines: Iterable[Entry | Strategy | str] | None = None,
    runs: int | None = None,
    seed: int = SEED,
    engine: Any = "cpu",
    threads: int | None = None,
    progress: Progress | None = None,
    *,
    budget: int = BUDGET,
    support: Support = None,
) -> Board:
    """
    Measure every strategy on every problem.

    Parameters
    ----------
    cases
        The problems: all of the suite by default, or names as `problems` takes them, cases, and problems of your own.
    lines
        The strategies: all by default, or names as `entries` takes them, entries, and strategies.
    runs
        The runs of every cell, which are consecutive and count alike; by default as many as its standard error asks
        for, and further ones in which an arm has a quiet start.
    seed
        Which samples; the same for all strategies.
    engine
        "cpu" or "cuda".
    threads
        How many cells the CPU measures at the same time; by default as many as there are cores. The result does not
        depend on it.
    progress
        Called with the number of cells done so far and their total.
    budget, support
        The number of samples in a study of a problem of your own, and what it declares: "binary", (low, high) or None.

    Examples
    --------
    >>> board = leaderboard(["gauss-2"], ["auto", "uniform"], runs=1024)
    >>> [f"{cell.strategy} {cell.excess:.1f}" for cell in board.cells]
    ['auto 0.3', 'uniform 60.0']
    >>> import equipoise as eq
    >>> mine = eq.Problem([eq.Gaussian(0, 9), eq.Exponential(1)])
    >>> leaderboard([mine], ["uniform"], runs=64, budget=100).cells[0].case.name
    'problem-1'
    """
    chosen, entered = _cases(cases, budget, support), _lines(lines)
    if runs is not None:
        runs = integer("runs", runs, 4, MOST_RUNS)
    on_card = choice("engine", engine, ("cpu", "cuda")) == "cuda"
    workers = os.cpu_count() or 1 if threads is None else integer("threads", threads, 1)
    todo = entry_runs(entered, chosen, runs)
    if not todo:
        raise ValueError("at least one of the strategies must take part in one of the problems, got none that does")
    measured = _on_card(todo, seed, progress) if on_card else _on_cpu(todo, seed, workers, progress)
    found = {(cell.strategy, cell.case.name): cell for cell in measured}
    names = [line.name for line in entered]
    return Board(tuple(found[n, c.name] for n in names for c in chosen if (n, c.name) in found), seed)


def _cases(given: Iterable[Case | Problem | str] | None, budget: int, support: Support) -> list[Case]:
    """Return the problems that `leaderboard` was given, with laws that can be simulated and a name each."""
    if given is None:
        return problems()
    if not several(given):
        raise TypeError(f"cases must be a list of problems, got {shown(given)}")
    found: list[Case] = []
    for each in given:
        if isinstance(each, str):
            found += problems([each])
        elif isinstance(each, Problem):
            case = Case.of(each, f"problem-{len(found) + 1}", budget, support)
            support_for(case.support, case.problem)
            found.append(case)
        elif isinstance(each, Case):
            found.append(replace(each, problem=each.problem.simulable()))
        else:
            raise TypeError(f"cases must be problems or names of problems of the suite, got {shown(each)}")
    by_name = {case.name: case for case in found}
    if len(by_name) < len(found):
        twice = next(case.name for i, case in enumerate(found) if case.name in {other.name for other in found[:i]})
        raise ValueError(f"cases must have different names, got {twice!r} twice")
    return found


def _lines(given: Iterable[Entry | Strategy | str] | None) -> list[Entry]:
    """Return the lines that `leaderboard` was given."""
    if given is None:
        return entries()
    if not several(given):
        raise TypeError(f"lines must be a list of strategies, got {shown(given)}")
    found: list[Entry] = []
    for each in given:
        if isinstance(each, str):
            found += entries([each])
        elif isinstance(each, Strategy):
            found.append(Entry(_title(each), partial(_scaled, each)))
        elif isinstance(each, Entry):
            found.append(each)
        else:
            raise TypeError(f"lines must be strategies or their names, got {shown(each)}")
    return list({entry.name: entry for entry in found}.values())


def _on_cpu(todo: Sequence[EntryRun], seed: int, workers: int, progress: Progress | None) -> list[Cell]:
    found = []
    with ThreadPoolExecutor(workers) as pool:
        for cell in pool.map(lambda each: each.measure(seed), todo):
            found.append(cell)
            if progress:
                progress(len(found), len(todo))
    return found


def _on_card(todo: Sequence[EntryRun], seed: int, progress: Progress | None) -> list[Cell]:
    from equipoise.lab.cuda import cells as cuda_cells

    return cuda_cells.measure(todo, seed, progress)
