"""
Fixed-width intervals for weighted sums Σ c_k μ_k of the means of several arms, such as differences and strata.

Each arm's part of the squared error is p_k = c_k² v_k/T_k, and π_k = p_k/Σp its share. As for one arm (`fixed_width`),
what is of second order is put into the half-width::

    h = z sqrt( Σ_k p_k (1 + (a π_k + e (5 + 8 γ_k²) (1 - π_k))/T_k) + b G² Σp ),
    G = Σ sign(c_k) γ_k π_k^1.5/T_k^0.5

G is the skewness of the sum's error. The squared error of one of many arms is larger than s²/T because its samples were
chosen by its variance to the power e, by e (3.5 + (1.5 + 4.5 e) γ²)/T to second order (`study.formulas`). 5 and 8 make
up for what few samples show too little of, and were fitted to simulations (benchmarks/precision.py). Binary arms have a
prior, and 1.75 + 1.875 γ² will do. In contrasts, whose weights have both signs, skewness cancels, but not what stopping
early costs a skewed arm, 4 γ² of b: there Σ π_k² γ_k²/T_k takes the place of G² in 4 G².

The interval is trusted where b G² is at most 0.15, or as for one arm if it is one or binary; where the sum rests on
enough samples, 1/Σ(π_k²/T_k) of them, and its arms on about 15 each, 1/Σ(π_k/T_k); and where no arm's samples are all
equal, unless there are at least 30. A binary arm of m has z²/(2m) ones and zeros seen before, which is Agresti and
Caffo's rule [1]_ for a difference, and at least one half.

For one arm this is `fixed_width`.

References
----------
.. [1] A. Agresti, B. Caffo (2000), Simple and effective confidence intervals for proportions and differences of
   proportions result from adding two successes and two failures. The American Statistician 54.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from equipoise.base.arrays import Bools, Floats
from equipoise.intervals.fixed_width import (
    COUNT,
    EARLY_SKEWED,
    LEAST,
    M2,
    M3,
    MEAN,
    SHIFT,
    TRUSTED,
    TRUSTED_BINARY,
    fewest,
    quantile,
    skewness_term,
    student_term,
)

# What choosing samples by their variances to the power e adds to the squared error of one of many arms: e (5 + 8 γ²)/T.
CHOSEN, CHOSEN_SKEWED = 5.0, 8.0
CHOSEN_BINARY, CHOSEN_BINARY_SKEWED = 1.75, 1.875
# b G² up to which the expansion is trusted for several arms that are not binary.
TRUSTED_SUMS = 0.15
# The fewest samples of each of several arms, weighted by their shares.
LEAST_EACH = 15.0


class HalfWidths(NamedTuple):
    """
    Half-widths of sums.

    Attributes
    ----------
    plain
        h, whether it can be trusted or not; infinite or NaN where an arm has fewer than two samples.
    trusted
        Which of them can be.
    least
        Half-widths of fixed n, which those of sequences are never below.
    caution
        By how much to widen asymptotic sequences, as `fixed_width.caution` has it.
    """

    plain: Floats
    trusted: Bools
    least: Floats
    caution: Floats


def half_widths(
    weights: Floats, state: Floats, sizes: Floats, alpha: float, binary: bool, power: float = 0.5
) -> HalfWidths:
    """
    Return the half-widths of several sums, each at level 1 - alpha.

    Parameters
    ----------
    weights
        With a row for each sum and a column for each arm; 0 for an arm that is not in it.
    state, sizes
        Of the arms: rows of the state of `fixed_width`, and sizes of the populations, infinite if there are none.
    binary
        Whether the arms are binary.
    power
        e, the power of a variance in the allocation: 1/2 where the sum of the losses is made small, as strata and
        contrasts do by default; 1 for the largest of them.
    """
    z = quantile(alpha)
    counts = state[:, COUNT]
    inside = weights != 0
    several = inside.sum(1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        clocks = np.where(counts < sizes, counts / (1 - counts / sizes), math.inf)
        variances, skewness, squared, varies = _spread(state, several, z, binary)
        known = clocks == math.inf
        errors = np.where(inside & ~known, np.abs(weights) * np.sqrt(variances / clocks), 0.0)
        # In units of the largest, whose square could be no float.
        largest = errors.max(1)
        squared_errors = np.square(errors / np.where(largest > 0, largest, 1.0)[:, None])
        sums = squared_errors.sum(1)
        total = largest * np.sqrt(sums)
        shares = squared_errors / np.where(sums == 0, 1.0, sums)[:, None]
        cubes = np.where(shares > 0, np.sign(weights) * shares**1.5 * skewness / np.sqrt(clocks), 0.0).sum(1)
        noise = 0.0 if binary else (shares**3 * 6 / np.maximum(counts, 1) ** 2).sum(1)
        squares = np.maximum(cubes**2 - noise, 0.0)
        chosen = power * (CHOSEN + CHOSEN_SKEWED * squared)
        if binary:
            chosen = CHOSEN_BINARY + CHOSEN_BINARY_SKEWED * squared
        own = student_term(z) * shares + chosen * (1 - shares)
        contrast = (weights > 0).any(1) & (weights < 0).any(1)
        early = np.where(contrast, (shares**2 * squared / np.maximum(clocks, 1)).sum(1), squares)
        lattice = np.where(several == 1, np.where(inside, np.abs(weights) / clocks, 0.0).sum(1) / 2, 0.0) * binary
        more = np.where(shares > 0, shares * own / np.maximum(clocks, 1), 0.0).sum(1)
        skewed = (skewness_term(z) - EARLY_SKEWED) * squares + EARLY_SKEWED * early
        plain = z * total * np.sqrt(1 + more + skewed) + lattice
        rests_on = 1 / (shares**2 / np.maximum(counts, 1)).sum(1)
    few = (inside & (counts < np.minimum(2, sizes))).any(1)
    equal = (inside & ~varies & ~known & (counts < LEAST)).any(1)
    enough = (rests_on >= np.minimum(fewest(z), _drawn(inside, shares, sizes))) | (total == 0)
    enough &= (shares * np.minimum(LEAST_EACH, sizes) / np.maximum(counts, 1)).sum(1) <= 1
    limit = np.where(several == 1, TRUSTED, TRUSTED_SUMS) if not binary else TRUSTED_BINARY
    trusted = (skewness_term(z) * squares <= limit) & enough & ~few & ~equal
    # Nothing varies: there is no telling how much it might.
    trusted &= (total > 0) | (known | ~inside).all(1)
    seen = np.abs(weights) * np.sqrt(state[:, M2] / np.maximum(counts, 1) / np.maximum(clocks, 1))
    seen = np.hypot.reduce(np.where(inside & ~known, seen, 0.0), axis=1)
    wider = np.maximum(1.0, np.where(total > 0, fewest(z) / rests_on, 1.0))
    return HalfWidths(np.where(few, math.inf, plain), trusted, z * seen, np.sqrt(wider))


def _spread(state: Floats, several: Floats, z: float, binary: bool) -> tuple[Floats, Floats, Floats, Bools]:
    """Return variances, skewness and its square less its noise, by sum and arm; and which arms' samples vary."""
    counts, m2 = state[:, COUNT], state[:, M2]
    if binary:
        prior = np.maximum(0.5, z * z / (2 * several))[:, None]
        q = (counts * (state[:, SHIFT] + state[:, MEAN]) + prior) / (counts + 2 * prior)
        variances = q * (1 - q)
        skewness = (1 - 2 * q) / np.sqrt(variances)
        return variances, skewness, skewness**2, np.ones(len(counts), bool)
    varies = m2 > 0
    skewness = np.where(varies, state[:, M3] / counts / (np.where(varies, m2, 1.0) / counts) ** 1.5, 0.0)
    squared = np.maximum(skewness**2 - 6 / counts, 0.0)
    return (m2 / (counts - 1))[None], skewness[None], squared[None], varies


def _drawn(inside: Bools, shares: Floats, sizes: Floats) -> Floats:
    """Return how many samples a sum would rest on if all its populations were used up."""
    with np.errstate(divide="ignore"):
        return np.asarray(1 / np.where(inside, shares**2 / sizes, 0.0).sum(1))
