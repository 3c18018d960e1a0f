"""
Count, mean and M2 of the samples of one arm.

M2 is the sum of squared deviations from the mean. The functions are plain arithmetic: they take Python numbers, NumPy
arrays (element by element) and, compiled, the numbers inside a kernel. None of them sums squares of raw samples, which
would lose all digits of a small variance around a large mean.

References
----------
.. [1] B. P. Welford (1962), Note on a method for calculating corrected sums of squares and products. Technometrics 4.
.. [2] T. F. Chan, G. H. Golub, R. J. LeVeque (1983), Algorithms for computing the sample variance. The American
   Statistician 37.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.inputs import masked

# A number, or an array of numbers: the functions below accept both.
Number = Any


def add(count: Number, mean: Number, m2: Number, x: Number) -> tuple[Number, Number, Number]:
    """
    Add one sample `x` (Welford [1]_).

    Returns
    -------
    count, mean, m2
    """
    count = count + 1
    step = x - mean
    mean = mean + step / count
    return count, mean, m2 + step * (x - mean)


def merge(
    count_a: Number, mean_a: Number, m2_a: Number, count_b: Number, mean_b: Number, m2_b: Number
) -> tuple[Number, Number, Number]:
    """
    Merge the moments of two sets of samples (Chan, Golub and LeVeque [2]_).

    Either may be empty.

    Returns
    -------
    count, mean, m2
    """
    count = count_a + count_b
    share = count_b / (count + (count == 0))
    step = mean_b - mean_a
    return count, mean_a + step * share, m2_a + m2_b + step * step * count_a * share


def unbiased(count: Number, m2: Number) -> Number:
    """Return m2/(count - 1), equation (estim-var2) of the paper."""
    return m2 / (count - 1)


def biased(count: Number, m2: Number) -> Number:
    """Return m2/count, equation (estim-var1) of the paper."""
    return m2 / count


def next_variance(t: Number, variance: Number, mean: Number, x: Number) -> Number:
    """
    Return the next unbiased variance by the recursion of the paper's Lemma 8.

    It is::

        s²_{t+1} = (t-1)/t · s²_t + (x - m_t)²/(t+1)

    `variance` and `mean` are those of the first `t` >= 1 samples. It holds for any sequence of numbers.
    """
    return (t - 1) / t * variance + (x - mean) ** 2 / (t + 1)


def of(samples: npt.ArrayLike) -> tuple[int, float, float]:
    """Return count, mean and M2 of a batch, for `Study.tell_moments`."""
    if missing := masked(samples):
        raise ValueError(f"samples must not be masked, got {missing:,} masked")
    values = np.asarray(samples, dtype=float).ravel()
    if values.size == 0:
        return 0, 0.0, 0.0
    mean = float(values.mean())
    deviations = values - mean
    return values.size, mean, float(deviations @ deviations)
