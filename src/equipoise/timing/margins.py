"""
The margin of a mean time that no precision stopped.

Where nothing was decided by looking at the times, as at the end of a time limit, it is Student's. Where a person who
saw how precise the means were may have ended the benchmark, it is that of a confidence sequence, which holds whenever
one looks, tuned to as many runs as were going to be made.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.intervals import asymptotic
from equipoise.intervals.fixed_n import student_quantile


def student(times: Floats, alpha: float) -> float:
    """Return the margin of Student's interval at level 1 - alpha; infinite below two times."""
    n = len(times)
    return student_quantile(n - 1.0, alpha) * float(times.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf


def anytime(times: Floats, alpha: float, planned: float) -> float:
    """
    Return the margin of a confidence sequence at level 1 - alpha; infinite where there are too few times for one.

    Parameters
    ----------
    times
        Those so far.
    alpha
        The probability that an interval ever misses the mean.
    planned
        How many times were planned, for which the sequence is tuned.
    """
    n = len(times)
    if n < 2:
        return math.inf
    settings = asymptotic.settings(-math.inf, math.inf, max(planned, asymptotic.START), alpha)
    row = np.zeros(asymptotic.COLUMNS)
    row[asymptotic.COUNT], row[asymptotic.M2] = n, np.square(times - times.mean()).sum()
    return float(asymptotic.bounds(row, alpha, settings)[1])
