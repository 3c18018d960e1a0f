"""
What the skewness of a few samples says of their law, and of more samples.

The formulas are those of gamma laws, which have any skewness γ and for it the kurtosis 3 + 1.5 γ². The skewness of n
samples is too small and bounded; means, variances and correlations in simulations are close to::

    E[γ_n] = γ/sqrt(1 + 6.5 γ²/n)        Var(γ_n) = V/(n + 2 V),   V = 6 + 9 γ² + 15/8 γ⁴
    Corr(γ_n, s²) = γ (3 + 3/4 γ²)/sqrt((2 + 3/2 γ²) V)

V and the correlation are those of many samples, by the moments of gamma laws up to the sixth. 6.5 and 2 were fitted to
Gaussian, gamma and Weibull laws of skewness 0 to 2.8 and 15 to 1,350 samples.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from equipoise.base.arrays import Floats

# How fast the skewness of samples approaches that of their law.
SMALL: Final = 6.5


def shown(skewness: Any, counts: Any) -> Floats:
    """Return the skewness that samples of a law of this skewness have on average."""
    return np.asarray(skewness / np.sqrt(1 + SMALL * np.square(skewness) / counts))


def unfolded(seen: Any, counts: Any) -> Floats:
    """Return the skewness of the law whose samples have this one on average; at most twice as much."""
    return np.asarray(seen / np.sqrt(np.maximum(1 - SMALL * np.square(seen) / counts, 0.25)))


def variance(skewness: Any, counts: Any) -> Floats:
    """Return the variance of the skewness of samples."""
    v = _of_many(skewness)
    return np.asarray(v / (counts + 2 * v))


def correlation(skewness: Any) -> Floats:
    """Return the correlation of the skewness of samples with their variance."""
    squared = np.square(skewness)
    return np.asarray(skewness * (3 + 0.75 * squared) / np.sqrt((2 + 1.5 * squared) * _of_many(skewness)))


def _of_many(skewness: Any) -> Floats:
    squared = np.square(skewness)
    return np.asarray(6 + 9 * squared + 15 / 8 * squared**2)
