"""
The laws that stand for the arms of a study when it is replayed.

They are the samples, unless these are all 0 or 1. Observed variances of arms differ by themselves and by chance, more
than the true ones do, and a strategy that asks how much the arms differ, as `auto` does of binary ones, would follow
them too far in a replay. So the observed variances v_k of binary arms are shrunk toward their mean by the square root
of τ²/(τ² + e_k²), with τ² how much the arms differ by themselves and e_k² the squared sampling error of v_k. Then they
differ as much as the true ones [1]_.

References
----------
.. [1] T. A. Louis (1984), Estimating a population of parameter values using Bayes and empirical Bayes methods. Journal
   of the American Statistical Association 79.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.problem import Bernoulli, Empirical, Problem
from equipoise.strategies import credibility


def fitted(samples: Sequence[Floats], as_they_are: bool) -> Problem:
    """
    Return the problem whose laws stand for arms with these samples.

    Parameters
    ----------
    samples
        The samples of each arm.
    as_they_are
        Whether the strategy looks at means. If it does not, samples are taken relative to theirs, for the digits.
    """
    if all(bool(((own == 0) | (own == 1)).all()) for own in samples):
        counts, means = np.array([len(own) for own in samples]), np.array([own.mean() for own in samples])
        return Problem([Bernoulli(p) for p in chances(counts, means).tolist()])
    return Problem([Empirical(own if as_they_are else own - own.mean()) for own in samples])


def chances(counts: Floats, means: Floats) -> Floats:
    """Return probabilities p, on the means' side of 1/2, whose p(1 - p) are the shrunk variances of binary arms."""
    m2s = counts * means * (1 - means)
    counts = np.maximum(counts, 2)  # a single sample does not vary
    shares = [credibility.share(count, m2) for count, m2 in zip(counts.tolist(), m2s.tolist(), strict=True)]
    own, _, errors = np.array(shares).T
    mean = float(counts @ own / counts.sum())
    real = max(float(((own - mean) ** 2 - errors).sum()) / max(len(own) - 1, 1), 0.0)
    # Variances that are small by chance look as if they were known well: the error of a sample is that of all arms.
    error = float((counts * errors).mean()) / counts
    with np.errstate(invalid="ignore"):
        part = np.nan_to_num(np.sqrt(real / (real + error)))
    variances = np.clip(mean + part * (own - mean), 0.0, 0.25)
    rare = 0.5 - np.sqrt(0.25 - variances)
    return np.asarray(np.where(means > 0.5, 1 - rare, rare))
