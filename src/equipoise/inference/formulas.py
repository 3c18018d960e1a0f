"""
What choosing the samples by looking at samples has done to the means, by formulas of second order in 1/T.

They take over where neither the study (`replay`) nor an arm's stop (`stop_replay`) can be replayed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.inference import finite
from equipoise.inference import skewness as of_gamma
from equipoise.inference.corrections import BLIND, Adaptivity
from equipoise.inference.known import Known
from equipoise.intervals.asymptotic import RHO2


def formulas(known: Known, stopped: Bools, together: Floats) -> Adaptivity:
    """
    Return the inflations and biases of second order::

        f = 1 + c/(T + c),   c = e (1 - λ) (3.5 + (1.5 + 4.5 e) γ²)         b = -e (1 - λ) γ s/T

    with the arm's share λ of the samples or, with costs, of the money, its skewness γ, standard deviation s and count
    T, and e = p/(p+1), the power of a variance in the allocation. An arm that was sampled until its own interval was
    narrow enough has λ = 0, and the power of a variance in the samples that this takes. For arms that stopped together,
    when the interval of a sum of means was narrow enough, the same with λ = 0 and e = π is added to c and b, with the
    arm's share π of the sum's squared error. For a finite population of N, c and b have the factor 1 - T/N.

    Parameters
    ----------
    result
        The result.
    stopped
        Which arms were sampled until their own interval was narrow enough.
    together
        π of arms that stopped together with others; 0 for other arms.
    """
    counts, evidence, arms = known.counts, known.evidence, len(known.arms)
    blind = known.strategy in BLIND or arms == 1
    price = known.objective.cost(arms) * counts
    power = np.where(stopped, stopping_power(known), 0.0 if blind else known.objective.exponent)
    skewness = np.zeros(arms) if evidence is None else evidence.skewness
    with np.errstate(divide="ignore", invalid="ignore"):
        rest, others = np.where(stopped, 1.0, 1 - price / price.sum()), np.ones(arms)
        if known.populations is not None:
            others = finite.corrected(np.ones(arms), counts, known.populations)
        inflations = second_order(counts, skewness, (power, rest * others), (together, others))
        biases = -power * rest * others * _skewness(known) * np.sqrt(known.variances) / counts
        biases += others * stopping_biases(known, together)
    return Adaptivity(
        np.where(np.isfinite(inflations), inflations, 1.0), np.where(np.isfinite(biases), biases, 0.0), "formula"
    )


def stopping_power(known: Known) -> Floats:
    """
    Return e, where the samples after which an arm's interval has a given width are in proportion to s² to the power e.

    It is 1 for widths in proportion to s/sqrt(T). Of the asymptotic sequence, s r(T) wide, it is 1/(-d log r²/d log T),
    which is 1/2 long before the number of samples to which the sequence is tuned. Fixed-width intervals have about 1,
    and other kinds are taken to have it.
    """
    counts, evidence = known.counts, known.evidence
    fixed = known.precision is not None and known.precision.interval == "fixed-width"
    if evidence is None or fixed or known.populations is not None or known.interval_kind != "asymptotic":
        return np.ones(len(counts))
    tuned = counts * evidence.intervals("asymptotic").kernel.settings[RHO2]
    logarithm = np.log1p(tuned) / 2 - math.log((1 - known.level) / len(counts))
    return np.asarray(1 / (2 - tuned / (1 + tuned) * (1 + 1 / (2 * logarithm))))


def _skewness(known: Known) -> Floats:
    """
    Return the skewness that biases are in proportion to.

    With contrasts it is that of the law, of which samples show too little; elsewhere that of the samples, with which
    biases were measured to agree better.
    """
    evidence, asked = known.evidence, None if known.precision is None else known.precision.sums
    if evidence is None:
        return np.zeros(len(known.arms))
    if asked is None or asked.combined:
        return evidence.skewness
    return of_gamma.unfolded(evidence.skewness, known.counts)


def stopping_biases(known: Known, together: Floats) -> Floats:
    """
    Return what stopping together has done to the arms' means: -π γ s/T, given π.

    The squared error V that has to be small enough is correlated with the mean of a skewed arm: -Cov(mean, V)/V.
    """
    evidence = known.evidence
    if evidence is None or not together.any():
        return np.zeros(len(together))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = -together * _skewness(known) * np.sqrt(known.variances) / known.counts
    return np.where(together > 0, found, 0.0)


def second_order(counts: Floats | Ints, skewness: Floats, *parts: tuple[Any, Floats]) -> Floats:
    """Return f = 1 + c/(T + c) as `formulas` has it, given e and 1 - λ of each part of c."""
    # The square of a skewness that is 0 is about 6/T in samples.
    squared = np.maximum(skewness**2 - 6 / counts, 0)
    c = sum(power * rest * (3.5 + (1.5 + 4.5 * power) * squared) for power, rest in parts)
    return np.asarray(1 + c / (counts + c))
