"""
From pulls to losses: Wald's identity and the Gaussian lemma.

Also the constants of Assumption 1.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import shown
from equipoise.problem import Gaussian
from equipoise.strategies import b_as
from equipoise.theory import assumptions


def wald(variance: float, expected_pulls: float) -> float:
    """
    Return E[T] σ², by Wald's identity (Proposition 2).

    It is E[(sum of the first T samples - T μ)²], where T is a stopping time, as the pulls of an arm are under any
    strategy that depends only on the past.
    """
    assumptions.at_least(variance=(variance, 0), expected_pulls=(expected_pulls, 0))
    return expected_pulls * variance


def loss_on_event(variance: float, least_pulls: float, expected_pulls: float) -> float:
    """
    Return the bound of equation (st2.1) on the loss of an arm on an event.

    E[(μ̂ - μ)² 1{ξ}] <= sup_ξ(σ²/T²) E[T], with T >= least_pulls on ξ, turns a bound on pulls into a bound on the loss
    of an arm with any law.
    """
    assumptions.positive(least_pulls=least_pulls)
    return wald(variance, expected_pulls) / least_pulls**2


def lemma3(variance: float, pulls: npt.ArrayLike) -> float:
    """
    Return the loss of a Gaussian arm, σ² E[1/T], by Lemma 3 (the Gaussian lemma).

    The expectation is over the given pulls, one for each run. The lemma holds under every strategy that depends only on
    past variances (`uses_mean` false). This arm must be Gaussian; the others need not be.
    """
    assumptions.at_least(variance=(variance, 0))
    counts = np.asarray(pulls, dtype=float)
    if counts.size == 0 or not (counts >= 1).all():
        raise InvalidInput(f"pulls must have one value of at least 1 for each run, got {shown(pulls)}")
    return variance * float((1 / counts).mean())


def lemma7(mean: float, variance: float, t: int) -> Gaussian:
    """
    Return the law of the mean of t Gaussian samples, N(μ, σ²/t), of Lemma 7.

    It is the law given all past standard deviations s_2, ..., s_t: the variances carry no information about the mean.
    Proposition 3 says the same given s_t alone.
    """
    assumptions.at_least(t=(t, 2), variance=(variance, 0))
    return Gaussian(mean, variance / t)


def bounded_constants(low: float, high: float) -> tuple[float, float]:
    """
    Return (c1, c2) = ((high-low)², e) for samples in [low, high].

    Assumption 1 holds with them.
    """
    assumptions.positive(width=high - low)
    return b_as.bounded_constants(high - low)


def gaussian_constants(variances: npt.ArrayLike) -> tuple[float, float]:
    """
    Return (c1, c2) = (2Σ, 1) for Gaussian arms of these variances.

    Assumption 1 holds with them for all arms.
    """
    return 2 * assumptions.variances(variances).Sigma, 1.0


def subgaussian_tail(epsilon: float, c1: float, c2: float) -> float:
    """Return c2 exp(-ε²/c1), the bound of Assumption 1 on P(|X - μ| >= ε)."""
    assumptions.positive(c1=c1, c2=c2)
    assumptions.at_least(epsilon=(epsilon, 0))
    return c2 * math.exp(-(epsilon**2) / c1)
