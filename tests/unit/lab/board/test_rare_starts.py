"""Quiet starts: which runs they are, whatever the law."""

from __future__ import annotations

import numpy as np
import pytest

import equipoise as eq
from equipoise.engine import streams
from equipoise.engine.streams import Laws
from equipoise.lab.board.rare_starts import LENGTHS, MOST_RUNS, QUIETEST, SIMULATED, Starts, lengths, starts, variations


def test_starts_matter_where_the_arm_should_have_twice_as_many_samples() -> None:
    problem = eq.Problem([eq.Gaussian(0, 9), eq.Gaussian(0, 1)])
    assert lengths(problem, 100) == [[4, 6, 8, 12, 16, 24, 32], [4]]
    assert lengths(problem, 10_000) == [list(LENGTHS)] * 2
    assert lengths(problem, 20) == [[4, 6, 8], []]
    assert starts(problem, 8, 1) is None
    assert starts(eq.Problem([eq.Rademacher()] * 700), 700 * 128, 1) is None


def test_variations_are_those_of_the_samples() -> None:
    """The M2 of the first samples of runs that are not consecutive and no multiple of the lanes."""
    problem = eq.Problem([eq.Rademacher(), eq.Exponential(2)])
    runs = [5, 2**40, *range(100, 180)]
    found = variations(Laws.of(problem, 7, runs, side_by_side="runs"), 1, [4, 6, 16])
    for column in (0, 1, 2, 81):
        x = streams.samples(problem, 7, runs[column], 1, 16)
        assert found[:, column] == pytest.approx([n * np.var(x[:n]) for n in (4, 6, 16)])
    assert variations(Laws.of(problem, 7, runs, side_by_side="runs"), 1, []).shape == (0, 82)


def test_strata_double() -> None:
    found = Starts.of(np.random.default_rng(1).permutation(20_000))
    sizes = [SIMULATED, *(SIMULATED << s for s in range(6)), 20_000 - QUIETEST]
    assert np.bincount(found.strata).tolist() == sizes
    # Of each stratum the first even and the first odd runs.
    parts = [np.flatnonzero((found.strata == s) & (np.arange(20_000) % 2 == half)) for s in range(8) for half in (0, 1)]
    first = np.concatenate([part[: SIMULATED // 2] for part in parts])
    assert found.simulated.tolist() == sorted(first)


def test_runs_of_one_rank_stay_together() -> None:
    found = Starts.of(np.array([1] * 30 + [50] * 100 + [900] * 1000))
    assert [len(set(found.strata[part])) for part in (slice(30), slice(30, 130), slice(130, None))] == [1, 1, 1]
    assert found.strata[[0, 30, 130]].tolist() == [0, 2, 5]


def test_the_quietest_runs_are_found() -> None:
    """Those whose first eight samples of an arm vary least are in the first strata; so is a run of equal coins."""
    problem = eq.Problem([eq.Gaussian(0, 4), eq.Rademacher()])
    found = starts(problem, 200, 3)
    assert found is not None
    assert len(found.strata) == MOST_RUNS
    laws = Laws.of(problem, 3, np.arange(MOST_RUNS), side_by_side="runs")
    [normal] = variations(laws, 0, [8])
    [coins] = variations(laws, 1, [16])
    assert found.strata[np.argsort(normal)[:8]].max() <= 1
    assert (coins == 0).sum() > 0
    assert found.strata[coins == 0].max() <= 1
    # The median run has nothing quiet about it.
    assert np.median(found.strata) == 7


def test_a_start_that_is_not_rare_is_none() -> None:
    """Of four throws of a coin all are equal once in eight: too often to be looked for."""
    found = starts(eq.Problem([eq.Rademacher()] * 2), 16, 3)
    assert found is not None
    assert len(set(found.strata)) == 1
