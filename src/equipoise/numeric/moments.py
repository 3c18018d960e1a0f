"""
Count, mean and M2 of the samples of one arm.

M2 is the sum of squared deviations from the mean. The functions are plain arithmetic: they take Python numbers, NumPy
arrays (element by element) and, compiled, the numbers inside a kernel. None of them sums squares of raw samples, which
would lose all digits of a small variance around a large mean.

A running mean has a rounding error at each step, of at most 2^-53 |mean|. After n samples with standard deviation σ
they come to about 2^-53 n |mean|/(3σ) standard errors. Once 2^-53 n |mean|/σ passes 1, most steps are too small to
change the mean at all: timestamps in seconds, near 1.7e9, with deviations of a millisecond, are there after 5,000
samples. So `add_shifted` and `merge_shifted` keep the mean relative to a `shift`, which is 0 until the mean is `far`,
with n |mean|/σ above 2^40. By then, rounding has come to some 0.00004 standard errors if it is random, as it is while
steps are large: at most 0.00007 was measured, with |mean|/σ from 1 to 2^42 and n up to 2^24. An arm with |mean| = σ is
far after 10^12 samples. Until an arm is far, its moments are those of `add` and `merge` to the bit.

References
----------
.. [1] B. P. Welford (1962), Note on a method for calculating corrected sums of squares and products. Technometrics 4.
.. [2] T. F. Chan, G. H. Golub, R. J. LeVeque (1983), Algorithms for computing the sample variance. The American
   Statistician 37.
.. [3] D. E. Knuth (1997), The Art of Computer Programming 2, section 4.2.2, theorem B: the rounding error of a sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.base.inputs import masked
from equipoise.compiled import callable_compiled

# A number, or an array of numbers: the functions below accept both.
Number = Any

# A mean is far from 0 where n |mean|/σ is above this.
FAR = 2.0**40


@callable_compiled
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


@callable_compiled
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


@callable_compiled
def far(count: Number, mean: Number, m2: Number) -> Number:
    """
    Return whether a mean is so far from 0 that rounding would soon show in it.

    It is where count |mean|/σ > FAR with σ² = m2/count. The mean of samples that are all equal is exact, however far.
    """
    part = mean * (count / FAR)
    return (m2 > 0) & (m2 < part * part * count)


@callable_compiled
def recentre(shift: Number, mean: Number) -> tuple[Number, Number]:
    """
    Move a mean into the shift, as far as a float can hold it (Knuth [3]_).

    Returns
    -------
    shift, mean
        Their sum is the same, without any rounding.
    """
    total = shift + mean
    moved = total - shift
    return total, (shift - (total - moved)) + (mean - moved)


def add_shifted(
    count: Number, shift: Number, mean: Number, m2: Number, x: Number
) -> tuple[Number, Number, Number, Number]:
    """
    Add one sample `x`, with the mean relative to a shift; for numbers, not for arrays.

    Where the mean turns out to be far, the mean before the sample becomes the shift, and the sample is added once more:
    relative to it, its step is not rounded to the digits of the mean.

    Returns
    -------
    count, shift, mean, m2
    """
    after, moved, spread = add(count, mean, m2, x - shift)
    if far(after, moved, spread):
        shift, mean = recentre(shift, mean)
        after, moved, spread = add(count, mean, m2, x - shift)
    return after, shift, moved, spread


def merge_shifted(
    count_a: Number, shift: Number, mean_a: Number, m2_a: Number, count_b: Number, mean_b: Number, m2_b: Number
) -> tuple[Number, Number, Number, Number]:
    """
    Merge moments whose mean is relative to a shift with others', `mean_b` as it is; for numbers, not for arrays.

    Where the mean turns out to be far, that of the larger set becomes the shift.

    Returns
    -------
    count, shift, mean, m2
    """
    count, mean, m2 = merge(count_a, mean_a, m2_a, count_b, mean_b - shift, m2_b)
    if far(count, mean, m2):
        if count_a < count_b:
            shift, mean_a = mean_b, (shift - mean_b) + mean_a
        else:
            shift, mean_a = recentre(shift, mean_a)
        count, mean, m2 = merge(count_a, mean_a, m2_a, count_b, mean_b - shift, m2_b)
    return count, shift, mean, m2


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
    m2 = float(deviations @ deviations)
    if far(values.size, mean, m2):
        # The sum of far values is rounded to fewer digits than their mean has.
        rest = float(deviations.mean())
        return values.size, mean + rest, float(np.square(deviations - rest).sum())
    return values.size, mean, m2
