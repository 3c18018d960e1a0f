"""The logarithm that vectorises: right in every binade, and the same bits in a loop as alone."""

from __future__ import annotations

import math
import sys

import mpmath
import numpy as np
import pytest

from equipoise import floats
from equipoise.arrays import Floats
from equipoise.compiled import jit


def some_numbers() -> Floats:
    """Return positive normal doubles of all magnitudes, most of them near 1, and those at the ends of a reduction."""
    rng = np.random.default_rng(4)
    units = 1 - rng.random(1000)
    wide = np.exp(rng.uniform(-708, 709, 1000))
    ends = [sys.float_info.min, sys.float_info.max, 2.0**-52, math.sqrt(0.5), math.sqrt(2), 1e-300, 1e300, 3.0]
    beside = [math.nextafter(x, to) for x in (0.5, 1.0, math.sqrt(2), 2.0) for to in (0, 4)]
    return np.concatenate([units, 1 / units, wide, ends, beside])


def test_logarithms() -> None:
    """Against 30 digits: within 1e-15 and 2e-15 of itself."""
    assert floats.log(1.0) == 0.0
    with mpmath.workdps(30):
        for x in some_numbers().tolist():
            exact = float(mpmath.log(mpmath.mpf(x)))
            assert floats.log(x) == pytest.approx(exact, rel=2e-15, abs=1e-15), x


def test_a_loop_gives_the_same_bits() -> None:
    @jit
    def logs(x: Floats, out: Floats) -> None:
        for i in range(len(x)):
            out[i] = floats.log(x[i])

    x = some_numbers()
    found = np.empty_like(x)
    logs(x, found)
    assert found.tolist() == [floats.log(one) for one in x.tolist()]
