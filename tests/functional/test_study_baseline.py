"""What an even split would have needed, and what a precision still needs, next to what is true."""

from __future__ import annotations

import math

import numpy as np
import pytest

import equipoise as eq
from benchmarks.baseline import Arms, studied, to_precision, truth

G, X, B = eq.Gaussian, eq.Exponential, eq.Bernoulli


@pytest.mark.parametrize(
    "arms",
    [Arms("exponential", (X(1),) * 10), Arms("coins", (B(0.3),) * 10, "binary")],
    ids=lambda arms: arms.name,
)
def test_an_even_split_of_equal_arms_needs_as_many(arms: Arms) -> None:
    """30 studies of ten equal arms, 30 samples each: n within 3% and five standard errors, which are 1% or less."""
    found = [result.baseline for result in (studied(arms, 300, seed) for seed in range(30))]
    ratios = np.array([each.samples / 300 for each in found if each is not None])
    error = float(ratios.std(ddof=1)) / math.sqrt(30)
    assert len(ratios) == 30
    assert error < 0.015
    assert abs(ratios.mean() - 1) < 0.03 + 5 * error


@pytest.mark.slow
@pytest.mark.parametrize(
    "arms",
    [
        Arms("Gaussian and exponential", (G(0, 1), G(0, 9), X(1), X(4))),
        Arms("coins", (B(0.5), B(0.3), B(0.1), B(0.05)), "binary"),
    ],
    ids=lambda arms: arms.name,
)
def test_the_range_covers_the_truth(arms: Arms) -> None:
    """
    25 studies of 60 samples an arm. About nine in ten ranges cover what an even split needs, with a standard error of
    6%; and the middle is right within 15%.
    """
    n = 60 * len(arms.laws)
    right = truth(arms, n, 4000)
    found = [result.baseline for result in (studied(arms, n, seed) for seed in range(25))]
    covers = [each is not None and each.low <= right <= each.high for each in found]
    assert np.mean(covers) > 0.9 - 5 * 0.06
    assert np.median([each.samples for each in found if each is not None]) == pytest.approx(right, rel=0.15)
    assert right > 1.1 * n


@pytest.mark.parametrize(
    "arms",
    [
        Arms("Gaussian and exponential", (G(0, 1), X(1.5)), None, 0.5),
        Arms("coins", (B(0.5), B(0.1)), "binary", 0.12),
    ],
    ids=lambda arms: arms.name,
)
def test_what_is_left_of_a_precision(arms: Arms) -> None:
    """
    15 studies, at a third of the way and at three quarters. About nine in ten ranges cover what is left, with a
    standard error of 8% if those of a study are no better than one. So many baselines cover what `uniform` takes, on
    other samples.
    """
    covers = []
    even = []
    for seed in range(15):
        end, on_the_way = to_precision(arms, "auto", seed, 1.05)
        for share in (1 / 3, 3 / 4):
            now = next(each for each in on_the_way if each.samples >= share * end.samples)
            assert now.left is not None
            if not now.reached:
                covers.append(now.left.low <= end.samples - now.samples <= now.left.high)
        assert end.baseline is not None
        taken = to_precision(arms, "uniform", 1000 + seed)[0].samples
        even.append(end.baseline.low <= taken <= end.baseline.high)
    assert np.mean(covers) > 0.9 - 5 * 0.08
    assert np.mean(even) > 0.9 - 5 * 0.08
