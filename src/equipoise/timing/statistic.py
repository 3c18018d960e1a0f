"""What is estimated of the times of a command, with its margins."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from equipoise.base.arrays import Floats
from equipoise.timing import margins


@dataclass(frozen=True)
class Statistic:
    """
    A number that is estimated of the times of a command, as functions of the times that were measured.

    Attributes
    ----------
    value
        Times to the estimate.
    error
        Times to its standard error; NaN where there are too few.
    fixed
        Times and alpha to the margin at level 1 - alpha where nothing was decided by looking at them.
    anytime
        Times, alpha and the number of times that were planned to the margin that holds whenever one looks.
    """

    value: Callable[[Floats], float]
    error: Callable[[Floats], float]
    fixed: Callable[[Floats, float], float]
    anytime: Callable[[Floats, float, float], float]


def _mean(times: Floats) -> float:
    return float(times.mean())


def _error_of_mean(times: Floats) -> float:
    return float(times.std(ddof=1)) / math.sqrt(len(times)) if len(times) > 1 else math.nan


MEAN: Final = Statistic(_mean, _error_of_mean, margins.student, margins.anytime)
