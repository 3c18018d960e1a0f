"""
Cells of the leaderboard on a card, many at a time.

Cells whose kernels and numbers of arms are the same share a launch, and launches go side by side in streams. A round
simulates every cell that is not done, on as many runs as the error of the last round asks for, and reduces them on the
card (`cuda_crossed.py`). Runs of the last round are simulated again rather than kept: they are at most half of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.engine.setup import Setup
from equipoise.lab.board.cells import Cell, EntryRun, Stage
from equipoise.lab.board.rare_starts import Starts
from equipoise.lab.board.split_half import Members, members
from equipoise.lab.cuda import many as cuda_many
from equipoise.lab.cuda import rare_starts as cuda_starts
from equipoise.lab.cuda.device import cuda, launching
from equipoise.lab.cuda.engine import ONE_AT_A_TIME, check, refuse
from equipoise.lab.cuda.split_half import Pieces, Reduction
from equipoise.simulation.simulator import check_ends

# Numbers that are on the card at once, at most: two gigabytes, and enough runs to keep any card busy.
AT_ONCE = 1 << 28


@dataclass(frozen=True)
class Task:
    """
    A cell in a round.

    Attributes
    ----------
    place
        The cell's place among all.
    run, setup, pool
        The cell, what is simulated, and its runs by their starts.
    stage
        How many runs, and how losses are estimated.
    both
        The two halves of the runs.
    """

    place: int
    run: EntryRun
    setup: Setup
    pool: Starts | None
    stage: Stage
    both: tuple[Members, Members]

    @classmethod
    def of(cls, place: int, run: EntryRun, setup: Setup, pool: Starts | None, stage: Stage) -> Task:
        """Return the task of a cell at a stage."""
        even, odd = members(stage.runs, pool)
        return cls(place, run, setup, pool, stage, (even, odd))

    @property
    def columns(self) -> int:
        """How many runs are simulated."""
        return sum(len(half.numbers) for half in self.both)

    @property
    def steps(self) -> int:
        """How long one run takes: arms are looked at one after the other at each step."""
        return int(self.run.case.budget) * (16 + len(self.setup.problem))


def measure(
    runs: Sequence[EntryRun],
    seed: int,
    progress: Callable[[int, int], Any] | None = None,
    at_once: int = AT_ONCE,
    threads: int = cuda_many.THREADS,
) -> list[Cell]:
    """
    Measure cells on the card.

    Parameters
    ----------
    runs
        The cells.
    seed
        Which samples.
    progress
        Called with the number of cells done so far and their total.
    at_once
        How many numbers may be on the card at once.
    threads
        Threads of a block.
    """
    check()
    done: dict[int, Cell] = {}
    with ONE_AT_A_TIME, launching():
        tasks = [_first(place, run, seed) for place, run in enumerate(runs)]
        first = True
        while tasks:
            left = []
            for wave in _waves(tasks, at_once):
                # Giving memory back waits for all that the card is doing.
                with cuda.defer_cleanup():
                    results = _round(wave, threads, first)
                for task, found in results:
                    then = task.run.after(task.stage, *found)
                    if then is None:
                        done[task.place] = task.run.cell(*found[:2], task.both)
                    else:
                        left.append(Task.of(task.place, task.run, task.setup, task.pool, then))
                if progress:
                    progress(len(done), len(runs))
            tasks, first = left, False
    return [done[place] for place in range(len(runs))]


def _first(place: int, run: EntryRun, seed: int) -> Task:
    setup = run.setup(seed)
    refuse(setup.in_flight, setup.objective)
    pool = cuda_starts.starts(setup.problem, run.case.budget, seed) if run.runs is None else None
    return Task.of(place, run, setup, pool, run.first())


def _waves(tasks: Sequence[Task], at_once: int) -> list[list[Task]]:
    """Tasks that are on the card at the same time; the longest come first."""
    waves: list[list[Task]] = [[]]
    room = at_once
    for task in sorted(tasks, key=lambda task: -task.steps):
        size = task.columns * cuda_many.size(task.setup)
        if waves[-1] and size > room:
            waves.append([])
            room = at_once
        waves[-1].append(task)
        room -= size
    return waves


def _round(wave: Sequence[Task], threads: int, first: bool) -> list[tuple[Task, tuple[float, float, float]]]:
    """Simulate the cells of a wave; return excess, error and doubt of each, in percent."""
    groups: dict[Any, list[Task]] = {}
    for task in wave:
        groups.setdefault(cuda_many.alike(task.setup), []).append(task)
    reductions = [(group, _launched(group, threads)) for group in groups.values()]
    for group, reduction in reductions:
        reduction.fit()
        if first:
            for task, ends in zip(group, reduction.first_ends(), strict=True):
                check_ends(task.setup, ends)
    return [
        (task, task.run.percent(*found))
        for group, reduction in reductions
        for task, found in zip(group, reduction.results(), strict=True)
    ]


def _launched(group: Sequence[Task], threads: int) -> Reduction:
    """Start simulating and reducing cells that are alike."""
    stream = cuda.stream()
    numbers = [np.concatenate([half.numbers for half in task.both]) for task in group]
    launch = cuda_many.prepare([task.setup for task in group], numbers, threads=threads, stream=stream)
    pieces = Pieces(
        [task.setup.problem for task in group],
        [task.run.chosen(task.stage) for task in group],
        [half for task in group for half in task.both],
    )
    return Reduction(pieces, launch(), stream, threads)
