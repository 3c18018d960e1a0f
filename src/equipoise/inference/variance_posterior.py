"""
What the arms' variances may be, given the samples.

The largest of several sample variances is too large on average, even if the variances are all the same. So variances
are drawn from a posterior that pools the arms. On a scale with about constant noise, x_k is what is seen of arm k and
θ_k what is true::

    x_k ~ N(θ_k, e_k²),   θ_k ~ N(μ, τ²)

- In general x = log s². T samples of kurtosis κ are worth ν = 2T/(κ - 1) Gaussian ones: s²/σ² is about χ²_ν/ν, whose
  logarithm has the mean ψ(ν/2) - log(ν/2) and the variance ψ'(ν/2).
- κ is shrunk toward what the arm's skewness and the other arms suggest. Skewness is pooled in the same way, on the
  scale of what samples show of it (`skewness`), but is not taken to be the same for all arms.
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
from typing import Final, NamedTuple, Protocol

import numpy as np

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.inference import skewness as of_gamma
from equipoise.inference.corrections import moderate
from equipoise.inference.known import Known

# The prior of τ: the probability of 0, and the scale of the half-Cauchy law, for logarithms, for binary arms and for
# skewness.
EQUAL: Final = 0.5
LOG_SCALE: Final = 0.5
ANGLE_SCALE: Final = 0.125
SKEWNESS_SCALE: Final = 1.0
# Degrees of freedom of Student's law of the arms' skewness.
UNLIKE: Final = 2
_TAU: Final = np.concatenate([[0.0], np.geomspace(0.01, 8, 48)])
# An arm's own kurtosis counts as much as that of all arms together at this many samples.
OWN: Final = 500
# With fewer samples a kurtosis is not looked at.
_LEAST: Final = 8
# μ and τ are fitted to at most this many arms.
FITTED: Final = 2_000


class LawDraws(NamedTuple):
    """
    What the arms' laws may be, by draw and arm.

    Attributes
    ----------
    variances, skewness
        σ² and γ.
    noise
        κ - 1.
    """

    variances: Floats
    skewness: Floats
    noise: Floats


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

    def laws(self, runs: int, rng: np.random.Generator) -> LawDraws:
        """Return the variances of the arms' laws with their skewness and κ - 1, from the posterior."""


def spread(known: Known) -> Spread | None:
    """
    Return what is known of the variances.

    None if an arm has fewer than two samples, if only moments are kept, if no arm varies, or if fourth moments would
    overflow: then nobody knows.
    """
    counts, evidence = known.counts, known.evidence
    if evidence is None or counts.min() < 2:
        return None
    if known.support == "binary" or known.recognised:
        return Binary(counts, known.means)
    if not (known.variances > 0).any() or not moderate(known.variances):
        return None
    one_by_one, fourth = evidence.powers.count, evidence.powers.m4
    units = known.objective.units(len(counts))
    return General(counts, known.variances, units, one_by_one, evidence.skewness, fourth)


class General:
    """
    The variances of any arms, on the scale of log s².

    Parameters
    ----------
    counts, variances
        By arm: samples, and their variance s².
    units
        By arm: what makes variances comparable.
    known, seen, fourth
        By arm: samples that are known one by one, their skewness, and the sum of their deviations from the mean to the
        fourth power.
    """

    def __init__(
        self, counts: Ints, variances: Floats, units: Floats, known: Floats, seen: Floats, fourth: Floats
    ) -> None:
        self._vary, self._units = variances > 0, units
        self._skewness = _Skewness(seen, known, self._vary & (known >= _LEAST))
        logs = np.log(np.where(self._vary, variances * units, 1.0))
        likely = variances
        # First relative to an arm's own variance, which for few samples gives too small a kurtosis; then relative to
        # the variance that is likely, given the other arms.
        for _ in range(3):
            kurtoses = _kurtoses(likely, self._vary, known, self._skewness.likely, fourth)
            half = np.maximum(counts / np.maximum(kurtoses - 1, 0.05), 0.5)
            # ψ and ψ' of ν/2, by their asymptotic series.
            x = logs + 1 / (2 * half) + 1 / (12 * half**2)
            self._level = _Level(x, 1 / half + 1 / (2 * half**2) + 1 / (6 * half**3), self._vary, LOG_SCALE)
            likely = np.exp(self._level.means()) / units
        self.noise: Floats = kurtoses - 1
        # How much of a kurtosis follows from the skewness.
        self._shared = OWN / (known + OWN)

    def draws(self, runs: int, rng: np.random.Generator, equal: float = EQUAL) -> Floats:
        """Return variances from the posterior, as `Spread` says."""
        return self._variances(self._level.draws(_Chance.drawn(runs, len(self._vary), rng), equal))

    def laws(self, runs: int, rng: np.random.Generator) -> LawDraws:
        """Return what the laws may be, as `Spread` says."""
        chance = _Chance.drawn(runs, len(self._vary), rng)
        variances = self._variances(self._level.draws(chance, EQUAL))
        # Samples whose variance is too small by chance have a skewness that is too small, and so a kurtosis.
        along = of_gamma.correlation(self._skewness.likely)
        skewness = self._skewness.draws(chance.turned(along, rng))
        more = 1.5 * (skewness**2 - self._skewness.likely**2) * self._shared
        return LawDraws(variances, skewness, np.maximum(self.noise + more, 0.05))

    def _variances(self, logs: Floats) -> Floats:
        return np.where(self._vary, np.exp(logs) / self._units, 0.0)


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
        return _binary_variance(self._level.draws(_Chance.drawn(runs, len(self.noise), rng), equal))

    def laws(self, runs: int, rng: np.random.Generator) -> LawDraws:
        """Return what the laws may be, as `Spread` says."""
        variances = self.draws(runs, rng)
        return LawDraws(variances, np.sqrt(np.maximum(1 / variances - 4, 0)), np.tile(self.noise, (runs, 1)))


def _binary_variance(angle: Floats) -> Floats:
    return np.maximum(np.sin(2 * np.clip(angle, 0, math.pi / 2)) ** 2 / 4, 1e-12)


class _Skewness:
    """
    The skewness of the arms' laws, on the scale of what their samples show of it.

    Parameters
    ----------
    seen, known
        By arm: the skewness of the samples, and their number.
    use
        Which arms have enough samples that vary. The skewness of the others is taken to be 0.
    """

    def __init__(self, seen: Floats, known: Floats, use: Bools) -> None:
        self._use, self._counts = use, np.where(use, known, _LEAST)
        self.likely = np.zeros(len(seen))
        if not use.any():
            return
        mean = np.average(seen[use], weights=known[use])
        self.likely = of_gamma.unfolded(np.full(len(seen), mean), self._counts)
        # The noise depends on the skewness itself, and so does which arms are unlike the others.
        stretch = np.ones(len(seen))
        for _ in range(4):
            self._level = _Level(seen, of_gamma.variance(self.likely, self._counts), use, SKEWNESS_SCALE, stretch)
            self.likely = np.where(use, of_gamma.unfolded(self._level.means(equal=0.0), self._counts), 0.0)
            stretch = (UNLIKE + self._level.apart()) / (UNLIKE + 1)

    def draws(self, chance: _Chance) -> Floats:
        """Return draws from the posterior, a row for each."""
        if not self._use.any():
            return np.zeros(chance.own.shape)
        drawn = self._level.draws(chance, equal=0.0)
        return np.where(self._use, of_gamma.unfolded(drawn, self._counts), 0.0)


def _kurtoses(variances: Floats, vary: Bools, known: Floats, likely: Floats, fourth: Floats) -> Floats:
    """
    Return the kurtosis of each arm relative to a variance, shrunk toward what its skewness and the other arms suggest.

    Skewed arms have large kurtoses, and a skewness is known sooner than a kurtosis. So what the arms have in common is
    taken to be what their kurtoses are above 1.5 γ², which is 3 for gamma laws of any skewness.

    Parameters
    ----------
    variances, vary, known, fourth
        As in `General`: a variance of each arm, which arms vary, samples, and the sum of their fourth powers.
    likely
        The arms' skewness.
    """
    use = vary & (known >= _LEAST)
    if not use.any():
        return np.full(len(variances), 3.0)
    n = np.where(use, known, _LEAST)
    # Unbiased for Gaussian samples, relative to their own s².
    own = np.where(use, fourth * n * (n + 1) / (n - 1) ** 3 / np.where(use, variances, 1.0) ** 2, 0.0)
    weight = np.where(use, known, 0.0)
    above = own - 1.5 * of_gamma.shown(likely, n) ** 2
    pooled = max(float((above * weight).sum() / weight.sum()), 1.0)
    return np.asarray(np.maximum((weight * own + OWN * (pooled + 1.5 * likely**2)) / (weight + OWN), 1.0))


class _Chance(NamedTuple):
    """What decides draws: a uniform variable for τ, and standard normal ones, one for μ and one for each arm."""

    tau: Floats
    mean: Floats
    own: Floats

    @classmethod
    def drawn(cls, runs: int, arms: int, rng: np.random.Generator) -> _Chance:
        return cls(rng.random(runs), rng.standard_normal(runs), rng.standard_normal((runs, arms)))

    def turned(self, along: Floats, rng: np.random.Generator) -> _Chance:
        """Return others whose normal variables have these correlations with them; that for μ has their mean."""
        other, mean = _Chance.drawn(len(self.own), len(along), rng), float(along.mean())
        return _Chance(
            other.tau,
            mean * self.mean + math.sqrt(1 - mean**2) * other.mean,
            along * self.own + np.sqrt(1 - along**2) * other.own,
        )


class _Level:
    """The posterior of what is true of the arms, given what is seen of each, its noise, and the scale of τ."""

    def __init__(self, x: Floats, noise: Floats, use: Bools, scale: float, stretch: Floats | float = 1.0) -> None:
        self._x, self._noise, self._scale, self._stretch = x, noise, scale, stretch * np.ones(len(x))
        which = np.flatnonzero(use)
        which = which[:: max(1, math.ceil(len(which) / FITTED))]
        # For each τ of the grid: the mean of μ, its precision, and the logarithm of the likelihood.
        total = _TAU[:, None] ** 2 * self._stretch[which] + noise[which]
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

    def means(self, equal: float = EQUAL) -> Floats:
        """Return the posterior means, given the prior probability that all are the same."""
        own = self._own(_TAU)
        return np.asarray(self._weights(equal) @ (own * self._x + (1 - own) * self._mean[:, None]))

    def apart(self) -> Floats:
        """Return the expected square of (θ_k - μ)/τ of each arm, if τ is not 0."""
        weights, tau = self._weights(0.0)[1:], _TAU[1:]
        own = self._own(tau)
        squares = (own * (self._x - self._mean[1:, None])) ** 2 + own * self._noise
        return np.asarray(weights @ (squares / tau[:, None] ** 2))

    def draws(self, chance: _Chance, equal: float) -> Floats:
        """Return draws from the posterior, a row for each."""
        shares = self._weights(equal).cumsum()
        which = np.searchsorted(shares / shares[-1], chance.tau, side="right")
        mean = self._mean[which] + chance.mean / np.sqrt(self._precision[which])
        own = self._own(_TAU[which])
        noise = np.sqrt(own * self._noise) * chance.own
        return np.asarray(own * self._x + (1 - own) * mean[:, None] + noise)

    def _own(self, tau: Floats) -> Floats:
        """Return the weight of what is seen of each arm itself, for each τ."""
        squared = tau[:, None] ** 2 * self._stretch
        return np.asarray(squared / (squared + self._noise))
