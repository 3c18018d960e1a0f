"""
What the arms' variances may be, given the samples.

The largest of several sample variances is too large on average, even if the variances are all the same. So variances
are drawn from a posterior that pools the arms. On a scale with about constant noise, x_k is what is seen of arm k and
θ_k what is true::

    x_k ~ N(θ_k, e_k²),   θ_k ~ N(μ, τ²)

- In general x = log s². T samples of kurtosis κ are worth ν = 2T/(κ - 1) Gaussian ones: s²/σ² is about χ²_ν/ν, whose
  logarithm has the mean ψ(ν/2) - log(ν/2) and the variance ψ'(ν/2).
- For binary arms x = arcsin sqrt(p̂) of the rarer value, with the variance 1/(4T) [1]_, and σ² = sin²(2θ)/4.

μ has a flat prior. τ is 0 with probability `EQUAL`, as arms that look alike often are, else half-Cauchy [2]_. An arm
whose samples are all equal has the variance 0, unless it is binary.

References
----------
.. [1] F. J. Anscombe (1948), The transformation of Poisson, binomial and negative-binomial data. Biometrika 35.
.. [2] A. Gelman (2006), Prior distributions for variance parameters in hierarchical models. Bayesian Analysis 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from equipoise.arrays import Bools, Floats, Ints

if TYPE_CHECKING:
    from equipoise.study.result import Result

# The prior of τ: the probability of 0, and the scale of the half-Cauchy law, for logarithms and for binary arms.
EQUAL: Final = 0.5
LOG_SCALE: Final = 0.5
ANGLE_SCALE: Final = 0.125
_TAU: Final = np.concatenate([[0.0], np.geomspace(0.01, 8, 48)])
# An arm's own kurtosis counts as much as that of all arms together at this many samples.
OWN: Final = 500
# With fewer samples a kurtosis is not looked at.
_LEAST: Final = 8
# μ and τ are fitted to at most this many arms.
FITTED: Final = 2_000


class Spread(Protocol):
    """What is known of the arms' variances."""

    @property
    def noise(self) -> Floats:
        """By arm: κ - 1, the relative variance of s² times the number of samples."""

    def draws(self, runs: int, rng: np.random.Generator, equal: float = EQUAL) -> Floats:
        """
        Return variances from the posterior, a row for each draw.

        Parameters
        ----------
        runs
            The number of draws.
        rng
            Decides them.
        equal
            The prior probability that all variances are the same.
        """


def spread(result: Result) -> Spread | None:
    """Return what is known of the variances; None if an arm has fewer than two samples, or if only moments are kept."""
    counts, evidence = result.counts.array, result.snapshot.evidence
    if evidence is None or counts.min() < 2:
        return None
    if result.support == "binary" or result.recognised:
        return Binary(counts, result.means.array)
    known, _, _, fourth = evidence.powers
    return General(counts, result.variances.array, result.objective.units(len(counts)), known, fourth)


class General:
    """
    The variances of any arms, on the scale of log s².

    Parameters
    ----------
    counts, variances
        By arm: samples, and their variance s².
    units
        By arm: what makes variances comparable.
    known, fourth
        By arm: samples that are known one by one, and the sum of their deviations from the mean to the fourth power.
    """

    def __init__(self, counts: Ints, variances: Floats, units: Floats, known: Floats, fourth: Floats) -> None:
        self._vary, self._units = variances > 0, units
        logs = np.log(np.where(self._vary, variances * units, 1.0))
        likely = variances
        # First relative to an arm's own variance, which for few samples gives too small a kurtosis; then relative to
        # the variance that is likely, given the other arms.
        for _ in range(3):
            kurtoses = _kurtoses(likely, self._vary, known, fourth)
            half = np.maximum(counts / np.maximum(kurtoses - 1, 0.05), 0.5)
            # ψ and ψ' of ν/2, by their asymptotic series.
            x = logs + 1 / (2 * half) + 1 / (12 * half**2)
            self._level = _Level(x, 1 / half + 1 / (2 * half**2) + 1 / (6 * half**3), self._vary, LOG_SCALE)
            likely = np.exp(self._level.means()) / units
        self.noise: Floats = kurtoses - 1

    def draws(self, runs: int, rng: np.random.Generator, equal: float = EQUAL) -> Floats:
        """Return variances from the posterior, as `Spread` says."""
        return np.where(self._vary, np.exp(self._level.draws(runs, rng, equal)) / self._units, 0.0)


class Binary:
    """
    The variances of binary arms, on the scale of arcsin sqrt(p).

    Parameters
    ----------
    counts, means
        By arm: samples, and their mean.
    """

    def __init__(self, counts: Ints, means: Floats) -> None:
        ones = np.rint(means * counts)
        rarer = np.minimum(ones, counts - ones)
        x = np.arcsin(np.sqrt((rarer + 0.375) / (counts + 0.75)))
        self._level = _Level(x, 1 / (4 * counts + 2), np.ones(len(counts), bool), ANGLE_SCALE)
        self.noise: Floats = 1 / _binary_variance(self._level.means()) - 4

    def draws(self, runs: int, rng: np.random.Generator, equal: float = EQUAL) -> Floats:
        """Return variances from the posterior, as `Spread` says."""
        return _binary_variance(self._level.draws(runs, rng, equal))


def _binary_variance(angle: Floats) -> Floats:
    return np.maximum(np.sin(2 * np.clip(angle, 0, math.pi / 2)) ** 2 / 4, 1e-12)


def _kurtoses(variances: Floats, vary: Bools, known: Floats, fourth: Floats) -> Floats:
    """Return the kurtosis of each arm relative to a variance, shrunk toward that of all arms together."""
    use = vary & (known >= _LEAST)
    if not use.any():
        return np.full(len(variances), 3.0)
    n = np.where(use, known, _LEAST)
    # Unbiased for Gaussian samples, relative to their own s².
    own = np.where(use, fourth * n * (n + 1) / (n - 1) ** 3 / np.where(use, variances, 1.0) ** 2, 0.0)
    weight = np.where(use, known, 0.0)
    pooled = float((own * weight).sum() / weight.sum())
    return np.asarray(np.maximum((weight * own + OWN * pooled) / (weight + OWN), 1.0))


class _Level:
    """The posterior of what is true of the arms, given what is seen of each, its noise, and the scale of τ."""

    def __init__(self, x: Floats, noise: Floats, use: Bools, scale: float) -> None:
        self._x, self._noise, self._scale = x, noise, scale
        which = np.flatnonzero(use)
        which = which[:: max(1, math.ceil(len(which) / FITTED))]
        # For each τ of the grid: the mean of μ, its precision, and the logarithm of the likelihood.
        total = _TAU[:, None] ** 2 + noise[which]
        self._precision = np.maximum((1 / total).sum(axis=1), 1e-300)
        self._mean = (x[which] / total).sum(axis=1) / self._precision
        squares = ((x[which] - self._mean[:, None]) ** 2 / total).sum(axis=1)
        self._logs = -(np.log(total).sum(axis=1) + np.log(self._precision) + squares) / 2

    def _weights(self, equal: float) -> Floats:
        """Return the posterior probability of each τ."""
        slab = _TAU[1:] / (1 + (_TAU[1:] / self._scale) ** 2)  # on a grid of logarithms
        prior = np.concatenate([[equal], (1 - equal) * slab / slab.sum()])
        weights = prior * np.exp(self._logs - self._logs[prior > 0].max())
        return np.asarray(weights / weights.sum())

    def means(self) -> Floats:
        """Return the posterior means."""
        own = self._own(_TAU)
        return np.asarray(self._weights(EQUAL) @ (own * self._x + (1 - own) * self._mean[:, None]))

    def draws(self, runs: int, rng: np.random.Generator, equal: float) -> Floats:
        """Return draws from the posterior, a row for each."""
        which = rng.choice(len(_TAU), runs, p=self._weights(equal))
        mean = self._mean[which] + rng.standard_normal(runs) / np.sqrt(self._precision[which])
        own = self._own(_TAU[which])
        noise = np.sqrt(own * self._noise) * rng.standard_normal(own.shape)
        return np.asarray(own * self._x + (1 - own) * mean[:, None] + noise)

    def _own(self, tau: Floats) -> Floats:
        """Return the weight of what is seen of each arm itself, for each τ."""
        return np.asarray(tau[:, None] ** 2 / (tau[:, None] ** 2 + self._noise))
