"""
Betting on the mean of a binary arm: Robbins' beta-binomial mixture.

It is exact, with two numbers per arm.

For zeros and ones, every constant bet against a mean of m is a ratio of likelihoods: that of another probability over
that of m. Mixed over that probability with a Beta(1/2, 1/2) prior, the capital after s ones and f zeros is::

    capital(m) = B(s + 1/2, f + 1/2) / B(1/2, 1/2) / ( m^s (1-m)^f ),     B(1/2, 1/2) = π

If m is the mean, the capital starts at 1, stays 1 on average, and by Ville's inequality reaches 1/α at any time with
probability at most α. So the m for which it has not done so are a confidence sequence at level 1 - α. Its logarithm is
convex in m and at most 0 at the sample mean, so this set is an interval around the sample mean.

References
----------
.. [1] H. Robbins (1970), Statistical methods related to the law of the iterated logarithm. Annals of Mathematical
   Statistics 41.
.. [2] I. Waudby-Smith, A. Ramdas (2024), Estimating means of bounded random variables by betting. Journal of the Royal
   Statistical Society B 86, Section 4, of which this is the binary case.
.. [3] R. E. Krichevsky, V. K. Trofimov (1981), The performance of universal encoding. IEEE Transactions on Information
   Theory 27: why 1/2.
"""

from __future__ import annotations

import math
from typing import Any

from equipoise.compiled import jit

COUNT, ONES = range(2)
COLUMNS = 2

_STEPS = 100


def settings(low: float, width: float, alpha: float) -> tuple[float, ...]:
    """Return the support; there is nothing to tune."""
    return low, width


@jit
def update(state: Any, arm: int, x: float, settings: Any) -> None:
    """Add a zero or a one of an arm to the state."""
    state[arm, COUNT] += 1
    state[arm, ONES] += x


@jit
def mixture(s: float, f: float) -> float:
    """
    Return log(B(s + 1/2, f + 1/2)/π).

    This is the mixture's log-likelihood of one sequence of s ones and f zeros.
    """
    return math.lgamma(s + 0.5) + math.lgamma(f + 0.5) - math.lgamma(s + f + 1) - math.log(math.pi)


@jit
def lower(s: float, f: float, alpha: float) -> float:
    """Return the smallest mean with a capital below 1/alpha after s ones, f zeros."""
    if s == 0:
        return 0.0
    excess = mixture(s, f) + math.log(alpha)
    # Without the factor of the zeros, which only adds to the capital, the edge has a closed form: a start outside.
    m = math.exp(excess / s)
    if m == 0:  # a plan expects less than one of many samples to be a one
        return 0.0
    for _ in range(_STEPS):
        value = excess - s * math.log(m) - f * math.log1p(-m)
        if value <= 0:
            break
        nearer = m - value / (f / (1 - m) - s / m)
        if nearer == m:
            break
        m = nearer
    return m


@jit
def bounds(row: Any, alpha: float, settings: Any) -> tuple[float, float]:
    """Return the interval at level 1 - alpha; all of [0, 1] before the first sample."""
    ones, zeros = row[ONES], row[COUNT] - row[ONES]
    return lower(ones, zeros, alpha), 1 - lower(zeros, ones, alpha)
