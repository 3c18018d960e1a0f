"""Sweeps over very many arms pull them as one decision after the other does, bit for bit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import equipoise as eq
from equipoise.engine import cpu
from equipoise.engine.cpu import Tuning
from equipoise.engine.setup import Setup
from equipoise.strategies import Numbers, Strategy

SCANNED, SWEPT = Tuning(few=0, many=10**9), Tuning(many=0)


@dataclass(frozen=True)
class Odd(Strategy):
    """A third party's whose keys do what no sweep expects, by `kind`."""

    kind: float = 0.0
    uses_mean = True

    def params(self, budget: object, arms: int, support: object) -> Numbers:
        return (self.kind,)

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        if params[0] == 0.0:
            return 0.0  # all keys are equal, and the level with them
        if params[0] == 1.0:
            return count * (1.0 + 0.1 * abs(mean))  # keys do not fall: one arm takes all that is left
        if params[0] == 2.0:
            return 1e300 * count * count if mean > 0.0 else 1.0  # far too many pulls for any level
        return float(np.floor(4 * mean) + 8)  # keys that are equal for many arms


@pytest.mark.parametrize("kind", range(4))
def test_keys_that_do_not_fall(kind: int) -> None:
    """Levels that no pull reaches, that one arm never reaches, and that many arms reach at once."""
    problem = eq.Problem([eq.Gaussian(0, 1 + k % 3) for k in range(70)])
    strategy = Odd(float(kind))
    given = Setup(problem, strategy, (140, 150, 777, 2000), strategy.params(2000, 70, None), 5)
    scanned, swept = (cpu.simulate(given, 0, 5, tuning) for tuning in (SCANNED, SWEPT))
    for name in ("counts", "means", "m2s"):
        np.testing.assert_array_equal(getattr(scanned, name), getattr(swept, name))
    assert (scanned.counts.sum(axis=1) == np.array([140, 150, 777, 2000])[:, None]).all()


@pytest.mark.parametrize("name", ["b-as", "auto", "gafs-max", "uniform"])
def test_a_thousand_arms(name: str) -> None:
    """Several limits, with and without a pool and a floor; the last limit is in the middle of a sweep."""
    strategy = eq.strategies.BAS(exploration=0.5) if name == "b-as" else eq.strategies.get(name)()
    laws = [eq.Gaussian(0, 1 + k % 4) if k % 3 else eq.Exponential(1 + k % 2) for k in range(1000)]
    given = Setup(eq.Problem(laws), strategy, (2001, 5000, 9990), strategy.params(9990, 1000, None), 8)
    scanned, swept = (cpu.simulate(given, 3, 2, tuning) for tuning in (SCANNED, SWEPT))
    for part in ("counts", "means", "m2s"):
        np.testing.assert_array_equal(getattr(scanned, part), getattr(swept, part))
