"""A study's own intervals hold whenever one looks, with many in flight and answers in any order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import equipoise as eq

RUNS = 500
ERROR = math.sqrt(0.05 * 0.95 / RUNS)


@pytest.mark.parametrize("support", ["binary", (0, 1), None], ids=str)
def test_coverage_with_64_in_flight_and_answers_shuffled(support: Any) -> None:
    """
    500 studies of three arms under `auto`, 64 in flight, large values later than small ones; looked at 12 times each.

    At most 5% may ever miss, standard error 1%; it fails at five. Gaussian arms for the asymptotic kind.
    """
    rng = np.random.default_rng(5)
    means = np.array([0.1, 0.5, 0.7])
    slowness = 1 if support is None else 20
    missed = 0
    for _ in range(RUNS):
        study = eq.Study(3, budget=600, support=support)
        flying: list[tuple[float, int, float]] = []
        bad = False
        for turn in range(36):
            ids = np.array(study.ledger.latest(study.ledger.ask(64 - len(flying))), np.int64)
            arms = study.ledger.arms_of(ids)
            if support == "binary":
                values = (rng.random(len(ids)) < means[arms]).astype(float)
            elif support is None:
                values = rng.normal(means[arms], 1 + arms)
            else:
                values = rng.random(len(ids)) * 2 * np.minimum(means[arms], 1 - means[arms])
                values += np.maximum(0, 2 * means[arms] - 1)
            late = turn + slowness * (values - means[arms]) + rng.exponential(size=len(ids))
            flying += zip(late.tolist(), ids.tolist(), values.tolist(), strict=True)
            flying.sort()
            come, flying = flying[:18], flying[18:]
            study.ledger.tell(np.array([each[1] for each in come], np.int64), np.array([each[2] for each in come]))
            if turn % 3 == 2:
                found = study.result().intervals()
                bad |= bool(((means < found.low) | (found.high < means)).any())
        missed += bad
    assert missed / RUNS <= 0.05 + 5 * ERROR
    assert np.isfinite(found.half_widths).all()


def test_coverage_of_finite_populations() -> None:
    """500 populations of 300 numbers, a third of them skewed; 18 looks until they are used up. Standard error 1%."""
    rng = np.random.default_rng(6)
    missed = 0
    for run in range(RUNS):
        items = rng.exponential(size=300) if run % 3 == 0 else rng.normal(size=300)
        study = eq.Study(1, populations=[300])
        bad = False
        for part in np.split(rng.permutation(items), range(30, 300, 16)):
            study.ledger.tell(study.ledger.latest(study.ledger.ask(len(part))), part)
            low, high = study.result().intervals()[0]
            bad |= not low - 1e-9 <= items.mean() <= high + 1e-9
        missed += bad
    assert missed / RUNS <= 0.05 + 5 * ERROR
    assert low == high
