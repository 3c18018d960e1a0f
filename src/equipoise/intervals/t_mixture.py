"""
The interval of the asymptotic kind before START samples: a mixture of t-tests, with a tenth of the error probability.

For Gaussian samples with an unknown variance, the ratio of likelihoods that depend on neither mean nor scale, mixed
over standardised effects with a Gaussian law of variance 1/g, is::

    sqrt(g/(t + g)) · ( S / (S - (t d)²/(t + g)) )^(t/2),     S = m2 + t d²

with d the mean of t samples less a candidate mean, and m2 their squared deviations. It is a martingale if the candidate
is the mean, and begins at 1: by Ville's inequality it reaches 1/α' at any time with probability at most α'. Solved for
d, the half-width for samples with a standard deviation of one is::

    sqrt( (t - 1)/t · (r - 1)/(1 - r g/(t + g)) ),     r = ( (t + g)/(g α'²) )^(1/t)

For other samples it is an approximation, and there are two safeguards. Its level is 1 - α' with α' = α/10, so that
both it and the asymptotic sequence that follows hold with probability 1 - 1.1 α. And it begins with the first t for
which 2^(1-t) <= α': if samples come from two narrow groups of equal size, all of fewer samples might be in one of them,
and say nothing about the other.

References
----------
.. [1] T. L. Lai (1976), On confidence sequences. Annals of Statistics 4.
.. [2] H. Wang, A. Ramdas (2025), Anytime-valid t-tests and confidence sequences for Gaussian means with unknown
   variance. Sequential Analysis 44: the Gaussian mixture of scale-invariant likelihood ratios.
"""

from __future__ import annotations

import math

from equipoise.compiled import callable_compiled, jit

# g: with it, the interval is about as narrow as with any other from 9 to 19 samples at the levels of 1 to 1,000 arms.
G = 0.15
# α'/α.
SHARE = 0.1


@callable_compiled
def first(alpha: float) -> float:
    """Return the number of samples with which intervals at level 1 - alpha begin."""
    return float(math.ceil(1 - math.log2(SHARE * alpha)))


@jit
def half_width(t: float, alpha: float) -> float:
    """Return the half-width for samples whose standard deviation is one; t must be at least `first(alpha)`."""
    r = math.exp((math.log((t + G) / G) - 2 * math.log(SHARE * alpha)) / t)
    return math.sqrt((t - 1) / t * (r - 1) / (1 - r * G / (t + G)))
