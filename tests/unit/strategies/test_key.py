"""From a variance to a key, the pooled numbers, and when it is refreshed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.problem.objective import Objective
from equipoise.strategies import Numbers, Strategy
from equipoise.strategies.key import HUGE, key, next_refresh, pooled, warmup_key


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, math.inf])
def test_equal_keys_minimise_the_p_norm(p: float) -> None:
    """
    The pulls that make all keys equal for a given cost are the best: any small exchange at equal cost makes the
    p-norm of the losses larger.
    """
    v, weight, cost = np.array([4.0, 1.0, 0.3]), np.array([1.0, 2.0, 5.0]), np.array([1.0, 3.0, 0.5])
    objective = Objective(p, tuple(weight), tuple(cost))
    pulls = np.array([key(x, 1.0, s, objective.exponent) for x, s in zip(v, objective.scales(3), strict=True)])
    pulls *= 1000 / (cost * pulls).sum()

    def norm(T: np.ndarray) -> float:
        losses = weight * v / T
        return float(losses.max()) if p == math.inf else float((losses**p).sum() ** (1 / p))

    best = norm(pulls)
    for i in range(3):
        for j in range(3):
            if i != j:
                moved = pulls.copy()
                moved[i] += 1 / cost[i]
                moved[j] -= 1 / cost[j]
                assert norm(moved) > best


def test_the_papers_key_is_the_index_over_the_pulls() -> None:
    assert key(6.0, 4.0, 1.0, 1.0) == 1.5
    # Keys are in a unit of their own: it is their ratios that decide.
    scales = Objective(weights=(2.0, 1.0), costs=(7.0, 5.0)).scales(2)
    assert key(6.0, 4.0, scales[0], 1.0) / key(6.0, 4.0, scales[1], 1.0) == 2.0
    # Neyman's allocation: standard deviations, weights and costs under the root.
    neyman = Objective(1.0, (4.0, 1.0), (25.0, 1.0))
    first, second = (key(9.0, 4.0, scale, neyman.exponent) for scale in neyman.scales(2))
    assert first / second == pytest.approx((2 / 5) / 1)


def test_warm_up_goes_before_everything() -> None:
    assert warmup_key(0.0) == math.inf
    assert warmup_key(1.0) == HUGE
    assert warmup_key(3.0) < warmup_key(2.0)
    assert warmup_key(1e6) > 1e300


def test_pooled() -> None:
    """Sums over the arms with two samples or more; shares and the pool see what was pooled last time."""

    class Pooling(Strategy):
        sums = ("mean", "own")
        pooled = ("total", "own", "before")

        @staticmethod
        def share(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> Numbers:
            return (mean + pooled[0], own[1] * params[0])

        @staticmethod
        def pool(sums: Numbers, arms: float, pooled: Numbers, params: Numbers) -> Numbers:
            return (sums[0], sums[1] / max(arms, 1.0), pooled[0])

    def found(strategy: Strategy, counts: list[int], before: Numbers) -> Numbers:
        means, m2s = [1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 0.0, 4.0, 40.0, 12.0]
        return pooled(strategy, (100.0,), counts, means, m2s, [(9.0, k / 10) for k in range(5)], before)

    assert found(Pooling(), [0, 1, 3, 5, 2], (7.0, 0.0, 0.0)) == pytest.approx((12.0 + 3 * 7.0, 30.0, 7.0))
    assert found(Pooling(), [1, 0, 0, 0, 0], (7.0, 0.0, 0.0)) == (0.0, 0.0, 7.0)
    assert found(Strategy(), [0, 1, 3, 5, 2], (0.0,)) == (0.0,)


@pytest.mark.parametrize("arms", [1, 2, 10, 1000, 10**6])
def test_refreshing_is_cheap_and_never_late(arms: int) -> None:
    """At most 4 looks at an arm per sample, and never more than a quarter of the samples (or of the arms) behind."""
    samples, looks = 0, 0
    while samples < 20 * arms + 100:
        later = next_refresh(samples, arms)
        assert 1 <= later - samples <= max(1, max(arms, samples) / 4)
        samples, looks = later, looks + arms
        assert looks <= 4 * samples + 4 * arms
