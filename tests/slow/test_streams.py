"""A billion normals: the moments and the tails that a small sample cannot see."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.compiled import jit
from equipoise.engine.streams import Laws, U, fill_of

LANES, BLOCKS, CHUNKS = 64, 7813, 1000
COUNT = 2 * LANES * BLOCKS * CHUNKS
POWERS = range(1, 9)
SIGMAS = (3.0, 4.0, 5.0, 6.0)


@jit
def tally(laws: Any, sums: Any, beyond: Any) -> None:
    """Add the first eight powers of a chunk's normals to `sums`, and those beyond 3, 4, 5, 6 to `beyond`."""
    x = np.empty(2 * LANES)
    for block in range(BLOCKS):
        fill_of(laws, U(0), 0, block, 1, x, 0, LANES)
        for i in range(2 * LANES):
            power = 1.0
            for p in range(8):
                power *= x[i]
                sums[p] += power
            size = abs(x[i])
            if size > 3.0:
                for j in range(4):
                    beyond[j] += size > 3.0 + j


@pytest.mark.slow
def test_a_billion_normals() -> None:
    """
    1.000064e9 samples: the mean of x^p for p up to 8 within 5 standard errors of 0 or (p-1)!!.

    P(|x| > s) for s = 3, 4, 5, 6 within 5 standard errors, which are those of a Poisson count.
    """
    sums, beyond, problem = np.zeros((CHUNKS, 8)), np.zeros(4, np.int64), eq.Problem([eq.Gaussian(0, 1)])
    for chunk in range(CHUNKS):
        laws = Laws.of(problem, 20, np.arange(LANES * chunk, LANES * (chunk + 1), dtype=U), side_by_side="runs")
        tally(laws, sums[chunk], beyond)

    def moment(p: int) -> float:
        return 0.0 if p % 2 else float(math.prod(range(p - 1, 0, -2)))

    for p in POWERS:
        mean = math.fsum(sums[:, p - 1]) / COUNT
        error = math.sqrt((moment(2 * p) - moment(p) ** 2) / COUNT)
        print(f"x^{p}: {mean:.7f}, exact {moment(p):g}, {(mean - moment(p)) / error:+.2f} standard errors")
        assert abs(mean - moment(p)) <= 5 * error
    for sigma, count in zip(SIGMAS, beyond, strict=True):
        expected = COUNT * math.erfc(sigma / math.sqrt(2))
        off = (count - expected) / math.sqrt(expected)
        print(f"beyond {sigma:g}: {count:,}, expected {expected:,.1f}, {off:+.2f} standard errors")
        assert abs(off) <= 5
