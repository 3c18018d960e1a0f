"""Cells of the leaderboard on a card, in Numba's simulator of one: the same cells, starts and sums as on the CPU."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulated_card import reported

SCRIPT = """
import json
import numpy as np
import equipoise as eq
from equipoise.engine import cpu
from equipoise.lab.cuda import cells as cuda_cells, rare_starts as cuda_starts
from equipoise.lab.board import rare_starts as starts
from equipoise.lab.board.cells import EntryRun
from equipoise.lab.board.split_half import crossed, halves
from equipoise.lab.cuda.split_half import Pieces, Reduction
from equipoise.lab.cuda.device import cuda
from equipoise.engine.setup import Setup
from equipoise.lab.board.rare_starts import Starts
from equipoise.engine.streams import Laws
from equipoise.lab.suite import Case

s = eq.strategies
report = {}

# Three cells of two kernels and two numbers of arms, in waves of one cell and in one of all.
two = Case("two", "", eq.Problem([eq.Gaussian(0, 1), eq.Exponential()]), 9, "light")
three = Case("three", "", eq.Problem([eq.Gaussian(0, 1), eq.Rademacher(), eq.Bernoulli(0.5)]), 8, "light")
runs = [
    EntryRun("auto", s.Auto(), two, 4, one_kernel=True),
    EntryRun("b-as", s.BAS(exploration=1), two, 7, one_kernel=True),
    EntryRun("wider", s.BAS(exploration=2), two, 6, one_kernel=True),
    EntryRun("three", s.BAS(exploration=1), three, 4, one_kernel=True),
]
told = []
for at_once in (1, 1 << 16):
    there = cuda_cells.measure(runs, 4, lambda *done: told.append(done), at_once, threads=2)
    report[f"cells {at_once}"] = [
        [cell.strategy, cell.runs == one.runs, cell.excess - one.excess, cell.error - one.error]
        for cell, one in zip(there, (run.measure(4) for run in runs))
    ]
report["told"] = told

# Two cells with strata: every estimator, arms without a fourth moment, and runs of one stratum alone.
laws = [eq.Gaussian(1, 4), eq.Rademacher(), eq.StudentT(3)]
problems = [eq.Problem(laws), eq.Problem([eq.Gaussian(0, k + 1) for k in range(3)])]
chosen = [("gaussian", "controls", "wald"), ("gaussian", "naive", "gaussian")]
rng = np.random.default_rng(5)
strata = (np.arange(400) % 5 == 0).astype(np.int8)
pool = Starts(strata, np.sort(rng.choice(np.arange(90, 400), 40, replace=False)))
both, columns = [], []
for problem, each in zip(problems, (pool, None)):
    setup = Setup(problem, s.BAS(exploration=1), (40,), s.BAS(exploration=1).params(40, 3, None), 3, one_kernel=True)
    further = cpu.simulate_numbered(setup, pool.simulated) if each else None
    both.append(halves(cpu.simulate(setup, 0, 101), each, further))
    columns += [np.array([half.ends.counts, half.ends.means, half.ends.m2s]) for half in both[-1]]
pieces = Pieces(problems, chosen, [half.members for pair in both for half in pair])
reduction = Reduction(pieces, cuda.to_device(np.concatenate(columns, axis=-1)), threads=2)
reduction.fit()
report["crossed"] = [
    float(np.abs(np.subtract(there, crossed(*here)) / np.abs(crossed(*here))).max())
    for there, here in zip(reduction.results(), zip(problems, both, chosen))
]
report["first"] = all(
    np.array_equal(there.means[0, :, 0], pair[0].ends.means[0, :, 0])
    for there, pair in zip(reduction.first_ends(), both)
)

# The starts of 96 runs, of which 16 are quiet; ties of a coin stay together.
problem, after, pool = eq.Problem([eq.Gaussian(0, 4), eq.Rademacher(), eq.Gaussian(1, 1)]), [[4, 6, 8], [4], []], 96
here, laws = np.full(pool, pool), Laws.of(problem, 3, np.arange(pool), True)
for arm, each in enumerate(after):
    for values in starts.variations(laws, arm, each):
        starts.lower(here, values, 16)
there = cuda_starts.ranks(problem, after, 3, pool, 16, drawing=4, ranking=2)
report["starts"] = [here.tolist(), there.tolist()]
print(json.dumps(report))
"""


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return reported(SCRIPT)


def test_cells_are_those_of_the_cpu_however_many_are_at_once(report: dict[str, Any]) -> None:
    for at_once in (1, 1 << 16):
        cells = report[f"cells {at_once}"]
        assert cells == [
            [name, True, pytest.approx(0, abs=1e-9), pytest.approx(0, abs=1e-9)]
            for name in ("auto", "b-as", "wider", "three")
        ]
    assert report["told"] == [[1, 4], [2, 4], [3, 4], [4, 4], [4, 4]]


def test_losses_are_crossed_as_on_the_cpu(report: dict[str, Any]) -> None:
    """Loss, error and doubt with strata and without, whatever the estimators; the first run comes back."""
    assert report["crossed"] == [pytest.approx(0, abs=1e-9)] * 2
    assert report["first"] is True


def test_starts_have_the_ranks_of_the_cpu(report: dict[str, Any]) -> None:
    here, there = report["starts"]
    assert here == there
    assert min(here) == 1
    assert sum(rank < 96 for rank in here) > 16
