"""
How many times faster one command is than another: ratios of mean times, with intervals.

The interval is made for the logarithm of the ratio, so that it is the same for a over b and for b over a, by the delta
method; its quantile is Student's, with Welch's degrees of freedom [1]_. Where times drift, it is made from pairs of
rounds in which every command was run, by the ratio estimator of survey sampling [2]_: what slows down all commands by
the same factor cancels. The second round of a pair is in reverse order, so that a steady drift cancels too; from single
rounds, which of the two commands was first would look like noise.

A command that is run until it is known stops a little too soon where its times look alike by chance; for n runs,
1 + 2.5/n times the variance makes up for it (docs/reference/bench.md).

References
----------
.. [1] B. L. Welch (1947), The generalization of "Student's" problem when several different population variances are
   involved. Biometrika 34.
.. [2] W. G. Cochran (1977), Sampling Techniques, Wiley, chapter 6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.intervals.fixed_n import student_quantile

# By how much of 1/n the variance of a mean of n runs is enlarged where a precision stopped them.
STOPPED: Final = 2.5


@dataclass(frozen=True)
class RatioInterval:
    """A ratio of means with the ends of its interval; the interval is infinite where too little is known."""

    value: float
    low: float
    high: float

    @property
    def margin(self) -> float:
        """The distance from the value to the farther end."""
        return max(self.high - self.value, self.value - self.low)

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out 1."""
        return self.low > 1 or self.high < 1


def of_means(a: Floats, b: Floats, alpha: float, offset: float = 0.0, stopped: bool = False) -> RatioInterval:
    """
    Return the ratio of the mean of a to the mean of b, with an interval at level 1 - alpha.

    Parameters
    ----------
    a, b
        Independent samples.
    alpha
        The probability that the interval misses the ratio.
    offset
        The standard error of a number that was subtracted from all samples.
    stopped
        Whether each was sampled until it was known.
    """
    means = float(a.mean()), float(b.mean())
    if min(means) <= 0 or min(len(a), len(b)) < 2:
        return _unknown(*means)
    early = STOPPED if stopped else 0.0
    parts = [
        float(x.var(ddof=1)) / len(x) / mean**2 * (1 + early / len(x)) for x, mean in zip((a, b), means, strict=True)
    ]
    common = (offset * (1 / means[0] - 1 / means[1])) ** 2
    degrees = sum(parts) ** 2 / max(sum(p**2 / (len(x) - 1) for x, p in zip((a, b), parts, strict=True)), 1e-300)
    return _around(means[0] / means[1], math.sqrt(sum(parts) + common), max(degrees, 1.0), alpha)


def of_pairs(a: Floats, b: Floats, alpha: float) -> RatioInterval:
    """
    Return the ratio of the mean of a to the mean of b from pairs of rounds, with an interval at level 1 - alpha.

    Parameters
    ----------
    a, b
        The means of two commands in each pair.
    alpha
        The probability that the interval misses the ratio.
    """
    n, means = len(a), (float(np.mean(a)) if len(a) else math.nan, float(np.mean(b)) if len(b) else math.nan)
    if n < 2 or not min(means) > 0:
        return _unknown(*means)
    left = a - means[0] / means[1] * b
    error = math.sqrt(float(np.square(left).sum()) / (n * (n - 1))) / means[0]
    return _around(means[0] / means[1], error, n - 1, alpha)


def _around(value: float, error: float, degrees: float, alpha: float) -> RatioInterval:
    """Return the interval of a ratio whose logarithm has this standard error."""
    half = student_quantile(float(degrees), alpha) * error
    return (
        RatioInterval(value, value * math.exp(-half), value * math.exp(half))
        if half < 700
        else RatioInterval(value, 0, math.inf)
    )


def _unknown(a: float, b: float) -> RatioInterval:
    return RatioInterval(a / b if b > 0 else math.nan, 0.0, math.inf)
