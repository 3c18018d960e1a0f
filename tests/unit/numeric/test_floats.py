"""Logarithm and exponential that vectorise: right in every binade, and the same bits in a loop as alone."""

from __future__ import annotations

import math
import sys

import mpmath
import numpy as np
import pytest

from equipoise.base.arrays import Floats
from equipoise.compiled import jit
from equipoise.numeric import floats


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


def some_exponents() -> Floats:
    """Return numbers whose exponentials are normal doubles, small ones, and those at the ends of a reduction."""
    rng = np.random.default_rng(5)
    small = rng.uniform(-1, 1, 1000) * 2.0 ** rng.uniform(-60, 0, 1000)
    halves = [math.nextafter((n + 0.5) * math.log(2), to) for n in range(-5, 5) for to in (-9, 9)]
    return np.concatenate([rng.uniform(-708, 709, 2000), small, halves, [0.0, -0.0, -708.0, 709.0]])


def test_exponentials() -> None:
    """Against 30 digits: within 4e-16 of itself."""
    assert floats.exp(0.0) == 1.0
    with mpmath.workdps(30):
        for x in some_exponents().tolist():
            assert floats.exp(x) == pytest.approx(float(mpmath.exp(mpmath.mpf(x))), rel=4e-16, abs=0), x


def test_exponentials_beyond_the_range() -> None:
    assert floats.exp(-math.inf) == floats.exp(-1e300) == floats.exp(-708.0)
    assert floats.exp(math.inf) == floats.exp(1e300) == floats.exp(709.0)


@pytest.mark.parametrize(("name", "numbers"), [("log", some_numbers()), ("exp", some_exponents())])
def test_a_loop_gives_the_same_bits(name: str, numbers: Floats) -> None:
    function = getattr(floats, name)

    @jit
    def loop(x: Floats, out: Floats) -> None:
        for i in range(len(x)):
            out[i] = function(x[i])

    found = np.empty_like(numbers)
    loop(numbers, found)
    assert found.tolist() == [function(one) for one in numbers.tolist()]
