"""
Whether times drift: a machine that heats up, a cache that fills, another program that begins to work.

References
----------
.. [1] R. Bartels (1982), The rank version of von Neumann's ratio test for randomness. Journal of the American
   Statistical Association 77.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from equipoise.base.arrays import Floats

# Times drift where neighbours are too alike by this many standard errors, over all arms together.
DRIFT: Final = 4.0
# The fewest samples of an arm that say anything.
LEAST: Final = 8


def score(samples: Iterable[Floats]) -> float:
    """
    Return by how many standard errors neighbouring samples are more alike than chance explains, over all arms.

    Of n independent samples with ranks R, Σ(R_i - R_{i+1})² over Σ(R_i - mean)² is 2 on average, with a variance of
    4(n-2)(5n²-2n-9) / (5n(n+1)(n-1)²) [1]_. Ranks, as times have outliers; all arms together, as whatever happens to
    the machine happens to all of them, and each may have few samples. 0 where no arm has enough of them.

    Parameters
    ----------
    samples
        Those of each arm, in the order in which they were taken.
    """
    scores = [_score(own) for own in samples if len(own) >= LEAST and np.ptp(own) > 0]
    return sum(scores) / math.sqrt(len(scores)) if scores else 0.0


def _score(own: Floats) -> float:
    n = len(own)
    _, places, counts = np.unique(own, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    ratio = float(np.square(np.diff(ranks)).sum() / np.square(ranks - ranks.mean()).sum())
    variance = 4 * (n - 2) * (5 * n * n - 2 * n - 9) / (5 * n * (n + 1) * (n - 1) ** 2)
    return (2 - ratio) / math.sqrt(variance)


def pairs(order: Sequence[int], values: Floats, arms: int) -> Floats:
    """
    Return the mean of each arm in each pair of rounds, a row for a pair.

    A round ends as soon as every arm has been sampled in it; what comes after the last pair is left out. The second
    round of a pair is in the reverse order of the first, so that a steady drift changes the means of a pair alike.

    Parameters
    ----------
    order, values
        The arm and the value of each sample, as they were taken.
    arms
        How many arms there are.
    """
    means: list[list[float]] = []
    current: list[list[float]] = [[] for _ in range(arms)]
    for arm, value in zip(order, values.tolist(), strict=True):
        current[arm].append(value)
        if all(current):
            means.append([sum(each) / len(each) for each in current])
            current = [[] for _ in range(arms)]
    many = len(means) // 2
    found: Floats = np.array(means[: 2 * many]).reshape(many, 2, arms).mean(axis=1)
    return found
