"""
Fixed-n intervals, as in textbooks; not valid under adaptive stopping.

Student's interval is exact for Gaussian samples and approximate for others. Clopper and Pearson's, for binary arms,
covers at least as often as it says if the number of samples was fixed beforehand. Both are computed from the incomplete
beta function.

References
----------
.. [1] Student (1908), The probable error of a mean. Biometrika 6.
.. [2] C. J. Clopper, E. S. Pearson (1934), The use of confidence or fiducial limits illustrated in the case of the
   binomial. Biometrika 26.
.. [3] NIST Digital Library of Mathematical Functions, 8.17.22: the continued fraction. https://dlmf.nist.gov/8.17
"""

from __future__ import annotations

import math
from typing import Any

from equipoise.compiled import jit
from equipoise.numeric import moments

COUNT, MEAN, M2, SHIFT = range(4)
COLUMNS = 4

_add = jit(moments.add_shifted)

_TINY = 1e-300


@jit
def update(state: Any, arm: int, x: float, settings: Any) -> None:
    """Add a sample of an arm to the state."""
    row = state[arm]
    row[COUNT], row[SHIFT], row[MEAN], row[M2] = _add(row[COUNT], row[SHIFT], row[MEAN], row[M2], x)


@jit
def log_density(x: float, a: float, b: float) -> float:
    """Return the logarithm of x^a (1-x)^b / B(a, b)."""
    return math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)


@jit
def fraction(x: float, a: float, b: float) -> float:
    """
    Return the continued fraction of the incomplete beta function.

    By Lentz's method, which is fast for x < (a+1)/(a+b+2).
    """
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for i in range(1, 100_000):
        for term in (
            i * (b - i) * x / ((a + 2 * i - 1) * (a + 2 * i)),
            -(a + i) * (a + b + i) * x / ((a + 2 * i) * (a + 2 * i + 1)),
        ):
            d = 1 / _away(1 + term * d)
            c = _away(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value


@jit
def _away(x: float) -> float:
    """Return x, or a tiny number if x is too close to zero to divide by."""
    return x if abs(x) > _TINY else _TINY


@jit
def upper_tail(x: float, a: float, b: float) -> float:
    """Return 1 - I_x(a, b), the probability that a Beta(a, b) variable is above x."""
    if x <= 0 or x >= 1:
        return 1.0 if x <= 0 else 0.0
    if x < (a + 1) / (a + b + 2):
        return 1 - math.exp(log_density(x, a, b)) / a * fraction(x, a, b)
    return math.exp(log_density(x, a, b)) / b * fraction(1 - x, b, a)


@jit
def upper_quantile(p: float, a: float, b: float) -> float:
    """
    Return the x that a Beta(a, b) variable exceeds with probability p.

    By Newton's method, with bisection where it strays.
    """
    low, high = 0.0, 1.0
    x = a / (a + b)
    for _ in range(200):
        tail = upper_tail(x, a, b)
        if tail > p:
            low = x
        else:
            high = x
        step = x
        if tail > 0:
            # On the logarithm, which is closer to linear than the tail itself.
            x += (math.log(tail) - math.log(p)) * tail * x * (1 - x) / math.exp(log_density(x, a, b))
        if not low < x < high:
            x = (low + high) / 2
        if abs(x - step) <= 1e-15 * x:
            break
    return x


@jit
def student_quantile(df: float, alpha: float) -> float:
    """Return what |t| exceeds with probability alpha, for a Student variable t."""
    if df <= 2:  # far out in these tails y rounds to 1
        return 1 / math.tan(math.pi * alpha / 2) if df == 1 else math.sqrt(2 / (alpha * (2 - alpha)) - 2)
    y = upper_quantile(alpha, 0.5, df / 2)
    return math.sqrt(df * y / (1 - y))


@jit
def student(row: Any, alpha: float, settings: Any) -> tuple[float, float]:
    """
    Return Student's interval at level 1 - alpha, within the support.

    It is the whole support below two samples.
    """
    t = row[COUNT]
    if t < 2:
        return settings[0], settings[1]
    half = student_quantile(t - 1, alpha) * math.sqrt(row[M2] / (t - 1) / t)
    low, high = row[SHIFT] + (row[MEAN] - half), row[SHIFT] + (row[MEAN] + half)
    return max(low, settings[0]), min(high, settings[1])


@jit
def clopper_pearson(row: Any, alpha: float, settings: Any) -> tuple[float, float]:
    """
    Return Clopper and Pearson's interval at level 1 - alpha.

    It is all of [0, 1] before the first sample.
    """
    ones = float(round(row[COUNT] * (row[SHIFT] + row[MEAN])))
    zeros = row[COUNT] - ones
    low = 1 - upper_quantile(alpha / 2, zeros + 1, ones) if ones > 0 else 0.0
    high = upper_quantile(alpha / 2, ones + 1, zeros) if zeros > 0 else 1.0
    return low, high
