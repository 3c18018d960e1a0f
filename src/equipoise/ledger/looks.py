"""
When a study looks whether arms are known well enough: at a fixed sequence of numbers of samples.

The sequence follows from the number of arms alone: 0, and from each look the next one a `step` later. So every process
that folds a log knows at which samples its study was looked at and when the next look is due, and the replay of a stop
(`inference.stop_replay`) looks as a study of one arm does.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from functools import lru_cache
from typing import Final

from equipoise.compiled import callable_compiled

# No study has as many samples as this.
NEVER: Final = 2**62


@callable_compiled
def step(samples: int, arms: int) -> int:
    """
    Return the number of samples from the look at `samples` to the next.

    A look takes time for each arm: so there is one every half round, or every 1/128 of the samples if that is longer.
    """
    return max(1, arms // 2, samples // 128)


def next_look(samples: int, arms: int) -> int:
    """Return the first look of the sequence after this number of samples."""
    looks = _looks(arms)
    return looks[bisect_right(looks, samples)]


@lru_cache(maxsize=16)
def _looks(arms: int) -> array[int]:
    """Return the whole sequence: about 128 looks, and 89 more for each doubling of the samples."""
    looks = array("q", [0])
    while looks[-1] < NEVER:
        looks.append(looks[-1] + step(looks[-1], arms))
    return looks
