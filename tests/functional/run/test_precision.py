"""A share of the mean that is asked for under a budget that does not suffice."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import equipoise as eq

SIZES = {"one": 1.0, "ten": 10.0, "hundred": 100.0}
STUDIES = {600: 20, 3000: 10}  # by budget


def measure(arm: str, seed: int) -> float:
    return random.Random(seed).gauss(SIZES[arm], SIZES[arm])


WAYS: dict[str, dict[str, Any]] = {
    "following": {},
    "absolute": {"weights": [1, 1, 1]},
    "as many of each": {"strategy": "uniform"},
}


def worst(budget: int, **options: Any) -> tuple[float, float]:
    """The worst standard error, in percent of its mean, over all studies, with a standard error of its own."""
    errors = []
    for seed in range(STUDIES[budget]):
        result = eq.estimate(measure, budget, arms=list(SIZES), precision="5%", seed=seed, **options)
        errors.append(100 * float((result.standard_errors.array / np.abs(result.means.array)).max()))
    return float(np.mean(errors)), float(np.std(errors, ddof=1)) / math.sqrt(len(errors))


@pytest.mark.slow
def test_weights_that_follow_the_means() -> None:
    """
    Three arms with means 1, 10 and 100 and standard deviations as large, 5% asked for; 20 studies of 600 samples and 10
    of 3,000.

    The worst standard error relative to its mean is less than half of what it is where the strategy equalises absolute
    errors, and less than an eighth above that of the best allocation, as many of each; at five standard errors.
    """
    for budget in STUDIES:
        found = {how: worst(budget, **options) for how, options in WAYS.items()}
        print(budget, {how: f"{mean:.2f} ({error:.2f})" for how, (mean, error) in found.items()})
        (following, error), (absolute, error_before), (best, error_best) = found.values()
        assert absolute - 2 * following > 5 * math.hypot(error_before, 2 * error)
        assert following - 9 / 8 * best < 5 * math.hypot(error, 9 / 8 * error_best)
