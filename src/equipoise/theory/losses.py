"""From pulls to losses: Wald's identity for any arm, the Gaussian lemma, and the constants of Assumption 1."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from equipoise.problem import Gaussian
from equipoise.strategies import b_as
from equipoise.theory import assumptions


def wald(variance: float, expected_pulls: float) -> float:
    """
    Proposition 2, Wald's identity: E[(sum of the first T samples - T μ)²] = E[T] σ².

    T is a stopping time, as the pulls of an arm are under any strategy that looks at the past only.
    """
    assumptions.at_least(variance=(variance, 0), expected_pulls=(expected_pulls, 0))
    return expected_pulls * variance


def loss_on_event(variance: float, least_pulls: float, expected_pulls: float) -> float:
    """
    Equation (st2.1): E[(μ̂ - μ)² 1{ξ}] <= sup_ξ(σ²/T²) E[T], with T >= least_pulls on ξ.

    This is what turns a bound on pulls into a bound on loss for an arm of any law.
    """
    assumptions.positive(least_pulls=least_pulls)
    return wald(variance, expected_pulls) / least_pulls**2


def lemma3(variance: float, pulls: npt.ArrayLike) -> float:
    """
    Lemma 3, the Gaussian lemma: the loss of a Gaussian arm is σ² E[1/T].

    The expectation is taken over the given pulls, one for each run. It holds under every strategy that looks at the
    past variances only (`uses_mean` false), and asks that this arm be Gaussian, not the others.
    """
    assumptions.at_least(variance=(variance, 0))
    counts = np.asarray(pulls, dtype=float)
    if counts.size == 0 or not (counts >= 1).all():
        raise ValueError(f"pulls={pulls!r} will not do; give the pulls of one run or more, each at least 1")
    return variance * float((1 / counts).mean())


def lemma7(mean: float, variance: float, t: int) -> Gaussian:
    """
    Lemma 7: given all past standard deviations s_2, ..., s_t, the mean of t Gaussian samples has the law N(μ, σ²/t).

    Knowing the variances tells nothing about the mean. Proposition 3 is the same given s_t alone.
    """
    assumptions.at_least(t=(t, 2), variance=(variance, 0))
    return Gaussian(mean, variance / t)


def bounded_constants(low: float, high: float) -> tuple[float, float]:
    """(c1, c2) = ((high-low)², e), with which Assumption 1 holds for samples in [low, high]."""
    assumptions.positive(width=high - low)
    return b_as.bounded_constants(high - low)


def gaussian_constants(variances: npt.ArrayLike) -> tuple[float, float]:
    """(c1, c2) = (2Σ, 1), with which Assumption 1 holds for Gaussian arms of these variances, all at once."""
    return 2 * assumptions.variances(variances).Sigma, 1.0


def subgaussian_tail(epsilon: float, c1: float, c2: float) -> float:
    """Assumption 1: P(|X - μ| >= ε) <= c2 exp(-ε²/c1)."""
    assumptions.positive(c1=c1, c2=c2)
    assumptions.at_least(epsilon=(epsilon, 0))
    return c2 * math.exp(-(epsilon**2) / c1)
