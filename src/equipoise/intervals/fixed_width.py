"""
Fixed-width intervals, for an arm that is sampled until its interval is narrow enough, and for no other reason.

Such a study looks at widths alone, and never at where an interval lies. So it does not need an interval that holds at
all times: as the width asked for becomes small, mean ± z s/sqrt(T) with the plain normal quantile z keeps its level at
the random T at which it is narrow enough [1]_, [2]_. What is of second order in 1/T is put into the half-width::

    h = z s sqrt( (1 + (a + b γ²)/T)/T ),    a = (z² + 1)/2 + 2.5,    b = (z⁴ + 2z² - 3)/9 + 4

with the skewness γ of the arm's samples. (z² + 1)/2 turns z into Student's quantile, and (z⁴ + 2z² - 3)/9 is what
skewness costs at a fixed T, both by Edgeworth's expansion [3]_; 2.5 and 4 are what stopping early by chance costs, and
were fitted to simulations (docs/explanation/inference.md). The square of a skewness that is 0 is about 6/T in samples,
which is subtracted.

The expansion is trusted where b γ²/T <= 0.08 and T is at least 5z², and at least 30. Elsewhere there is no
interval of this kind, and a confidence sequence decides: h is infinite. A sequence that is asymptotic itself is taken
with `caution` where samples are few.

For a binary arm with s ones, s² is q(1-q) and γ² is (1-2q)²/(q(1-q)) with q = (s + z²/2)/(T + z²), as if z²/2 ones and
z²/2 zeros had been seen before [4]_, so that a run of zeros does not pass for certainty; 1/(2T) is added for values
that are T apart, and b γ²/T <= 0.3 is trusted. For a finite population of N, T/(1 - T/N) takes the place of T.

If h is to be a share r of the mean, the study stops when the mean is z/r standard errors from 0. Where that is few, a
mean of 0 gets there by chance, and a value has decided rather than a width. So no more than z/sqrt(z² + 12) of the mean
is trusted, 0.49 for one arm at 95%: a mean of 0 is sqrt(z² + 12) standard errors from 0 at some T from 30 to 10,000
with about a tenth of the probability of an error, φ(c)((c - 1/c) log(10,000/30) + 4/c) for c of them [5]_.

References
----------
.. [1] C. Stein (1945), A two-sample test for a linear hypothesis whose power is independent of the variance. Annals of
   Mathematical Statistics 16.
.. [2] Y. S. Chow, H. Robbins (1965), On the asymptotic theory of fixed-width sequential confidence intervals for the
   mean. Annals of Mathematical Statistics 36; with a correction of order 1/T, F. J. Anscombe (1953), Sequential
   estimation. Journal of the Royal Statistical Society B 15.
.. [3] P. Hall (1992), The Bootstrap and Edgeworth Expansion, Springer, section 2.6.
.. [4] A. Agresti, B. A. Coull (1998), Approximate is better than "exact" for interval estimation of binomial
   proportions. The American Statistician 52.
.. [5] D. Siegmund (1985), Sequential Analysis, Springer, section 4.2.
"""

from __future__ import annotations

import math
from typing import Any

from equipoise.compiled import jit
from equipoise.numeric import moments

COUNT, MEAN, M2, SHIFT, M3 = range(5)
COLUMNS = 5
LOW, HIGH, BINARY = range(3)

# What stopping early by chance costs: added to a and to b.
EARLY, EARLY_SKEWED = 2.5, 4.0
# b γ²/T up to which the expansion is trusted, for a binary arm and for others.
TRUSTED_BINARY, TRUSTED = 0.3, 0.08
# The fewest samples, and the same in units of z².
LEAST, FEWEST = 30.0, 5.0
# How far from 0 a mean must be that h is a share of: in units of standard errors, the square beyond z².
CLEAR = 12.0

_add = jit(moments.add_shifted)


@jit
def update(state: Any, arm: int, x: float, settings: Any) -> None:
    """Add a sample of an arm to the state."""
    row = state[arm]
    count, m2, shift = row[COUNT], row[M2], row[SHIFT]
    step = (x - shift) - row[MEAN]
    row[COUNT], row[SHIFT], row[MEAN], row[M2] = _add(count, shift, row[MEAN], m2, x)
    t = row[COUNT]
    # Relative to the mean, the sum of cubes does not change with the shift.
    row[M3] += step * step * step * (count * (t - 2) / (t * t)) - 3 * step * m2 / t


@jit
def quantile(alpha: float) -> float:
    """Return what a standard normal variable exceeds in absolute value with probability alpha."""
    z = math.sqrt(max(-2 * math.log(alpha), 1e-12))
    for _ in range(60):
        tail = math.erfc(z / math.sqrt(2))
        # On the logarithm, which is concave: steps from above never pass the quantile.
        step = (math.log(tail) - math.log(alpha)) * tail / (math.sqrt(2 / math.pi) * math.exp(-z * z / 2))
        z += step
        if abs(step) < 1e-14 * z:
            break
    return z


@jit
def student_term(z: float) -> float:
    """Return a, by which 1/T of the squared half-width is added for a variance that is estimated."""
    return (z * z + 1) / 2 + EARLY


@jit
def skewness_term(z: float) -> float:
    """Return b, by which γ²/T of the squared half-width is added for a skewed arm."""
    return (z**4 + 2 * z**2 - 3) / 9 + EARLY_SKEWED


@jit
def fewest(z: float) -> float:
    """Return the fewest samples of which an interval is given."""
    return max(LEAST, math.ceil(FEWEST * z * z))


@jit
def largest_share(alpha: float) -> float:
    """Return the largest share of a mean that may be asked for at 1 - alpha: with less, the mean is clear of 0."""
    z = quantile(alpha)
    return z / math.sqrt(z * z + CLEAR)


@jit
def spread(t: float, ones: float, prior: float) -> tuple[float, float]:
    """Return the variance and the squared skewness of a binary arm, with this many ones and zeros seen before."""
    q = (ones + prior) / (t + 2 * prior)
    return q * (1 - q), (1 - 2 * q) ** 2 / (q * (1 - q))


@jit
def clock(t: float, size: float) -> float:
    """Return the samples that are worth as much as t of a finite population; infinite if it is used up."""
    return t if size == math.inf else t / (1 - t / size) if t < size else math.inf


@jit
def plain(row: Any, size: float, z: float, binary: bool) -> tuple[float, float]:
    """
    Return the half-width h, whether it can be trusted or not, and b γ²/T.

    Both are infinite below two samples.

    Parameters
    ----------
    row
        The arm's row of the state.
    size
        Of the arm's population; infinite where samples are drawn with replacement.
    z
        The normal quantile.
    binary
        Whether the arm is binary.
    """
    t = row[COUNT]
    if t < 2:
        return math.inf, math.inf
    tau = clock(t, size)
    if tau == math.inf:
        return 0.0, 0.0
    lattice = 0.0
    if binary:
        variance, squared = spread(t, t * (row[SHIFT] + row[MEAN]), z * z / 2)
        lattice = 0.5 / tau
    else:
        variance, m2 = row[M2] / (t - 1), row[M2] / t
        if not m2 > 0:
            return 0.0, math.inf
        squared = max((row[M3] / t) ** 2 / m2**3 - 6 / t, 0.0)
    skewed = skewness_term(z) * squared / tau
    return z * math.sqrt(variance * (1 + student_term(z) / tau + skewed) / tau) + lattice, skewed


@jit
def half_width(row: Any, size: float, z: float, binary: bool) -> float:
    """Return the half-width h; infinite where it cannot be trusted. The parameters are those of `plain`."""
    half, skewed = plain(row, size, z, binary)
    enough = row[COUNT] >= min(fewest(z), size)
    return half if enough and skewed <= (TRUSTED_BINARY if binary else TRUSTED) else math.inf


@jit
def caution(t: float, size: float, z: float) -> float:
    """
    Return by how much to widen an asymptotic sequence that decides where this interval cannot be trusted.

    It is sqrt(T'/T) below the T' samples that this interval needs: so few may seem to vary less than they do, and the
    sequence rests on how much they vary.
    """
    return math.sqrt(max(1.0, min(fewest(z), size) / max(t, 1.0)))


@jit
def bounds(row: Any, alpha: float, settings: Any) -> tuple[float, float]:
    """Return the interval at level 1 - alpha, within the support; the whole support where it cannot be trusted."""
    half = half_width(row, math.inf, quantile(alpha), settings[BINARY] > 0)
    low, high = row[SHIFT] + (row[MEAN] - half), row[SHIFT] + (row[MEAN] + half)
    return max(low, settings[LOW]), min(high, settings[HIGH])


@jit
def over_arms(state: Any, sizes: Any, alpha: float, binary: bool, half: Any, whole: Any, care: Any) -> None:
    """Put `half_width`, `plain` and `caution` of each arm, at level 1 - alpha, into three arrays."""
    z = quantile(alpha)
    for k in range(len(state)):
        half[k] = half_width(state[k], sizes[k], z, binary)
        whole[k] = plain(state[k], sizes[k], z, binary)[0]
        care[k] = caution(state[k, COUNT], sizes[k], z)
