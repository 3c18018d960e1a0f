"""
The stop of one arm at a precision, replayed.

An arm that is sampled until its own interval is narrow enough stops at a number of samples that depends on its own
samples alone, whatever the strategy does to the others. So it can be replayed alone, with its samples as its law: draw
until the interval is narrow enough, look as often as a study does, and see where it ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.compiled import jit
from equipoise.intervals import Intervals, fixed_width
from equipoise.ledger import looks

# A replay ends after this many times the samples that it draws from, or after this many if those are few.
_MOST_TIMES, _MOST = 20, 10_000


@dataclass(frozen=True)
class StopRule:
    """
    When an arm is stopped.

    Attributes
    ----------
    sequences
        The confidence sequences of the study, which decide where a fixed-width interval cannot be trusted.
    alpha
        The probability with which the arm's interval may miss.
    fixed_width
        Whether fixed-width intervals decide where they can be trusted.
    """

    sequences: Intervals
    alpha: float
    fixed_width: bool = True


class Target(NamedTuple):
    """The half-width that is wanted of an arm, or the share of its mean if `relative` is true."""

    wanted: float
    relative: bool = False


@dataclass(frozen=True)
class Bias:
    """
    What stopping has done to the mean of an arm.

    Attributes
    ----------
    inflation, noise
        The expected squared error over the expected s²/T, and the square of its standard error.
    bias
        By how much the mean is off on average.
    """

    inflation: float
    noise: float
    bias: float


class Stops(NamedTuple):
    """
    Where the replays of an arm ended.

    Attributes
    ----------
    counts, means, variances
        Of each replay: samples, their mean, and their unbiased variance.
    low, high
        The interval that was narrow enough.
    fixed
        Whether it was the fixed-width interval.
    """

    counts: Floats
    means: Floats
    variances: Floats
    low: Floats
    high: Floats
    fixed: Floats

    def against(self, law: Floats) -> Bias:
        """
        Return what stopping has done to the mean, given the law: values that are equally likely.

        S = Σ (X - μ), S² - σ² T and Σ (X - μ)² - σ² T have the mean 0 (Wald), and take out much of the noise. Each is
        divided by the mean T of the other replays, on which it does not depend.
        """
        mean, variance = float(law.mean()), float(law.var())
        if variance == 0:  # too small for a float
            return Bias(1.0, 0.0, 0.0)
        counts = self.counts
        others = (counts.sum() - counts) / max(len(counts) - 1, 1) if len(counts) > 1 else counts
        off = self.means - mean
        sums = off * counts
        squares = self.variances * (counts - 1) + off * sums - variance * counts
        errors = off**2 - (sums**2 - variance * counts) / others**2
        plain = self.variances / counts - squares / others**2
        inflation = float(errors.mean() / plain.mean())
        noise = float(((errors - inflation * plain) / plain.mean()).var() / len(counts))
        return Bias(inflation, noise, float((off - sums / others).mean()))


def stops(samples: Floats, target: Target, rule: StopRule, runs: int, seed: int) -> Stops:
    """
    Return where an arm stops whose samples are drawn from these, with replacement.

    Parameters
    ----------
    samples
        The law: each of these values is as likely as any other.
    target, rule
        When it is stopped.
    runs, seed
        How many replays, and the seed of their draws.
    """
    law = np.ascontiguousarray(samples, float)
    found = np.empty((6, runs))
    sequences, kernel = rule.sequences, rule.sequences.kernel
    most = max(_MOST, _MOST_TIMES * len(law))
    # The cautious widening is for sequences that rest on the sample variance.
    cautious = rule.fixed_width and sequences.kind == "asymptotic"
    replay = _replayer(kernel.update, kernel.bounds)
    binary = sequences.support == "binary"
    settings = (rule.alpha, float(rule.fixed_width), float(cautious), float(binary), float(target.relative))
    replay(law, target.wanted, settings, kernel.settings, kernel.columns, most, seed % 2**32, found)
    return Stops(*found)


def samples_of(samples: Floats, counts: Floats, seed: int) -> list[Floats]:
    """
    Return what the first replays of an arm drew.

    Parameters
    ----------
    samples, seed
        Those of `stops`.
    counts
        How many samples each of the replays drew.
    """
    ends = np.cumsum(counts.astype(np.int64))
    return np.split(_draws(np.ascontiguousarray(samples, float), ends[-1], seed % 2**32), ends[:-1])


@jit
def _draws(law: Any, count: int, seed: int) -> Any:
    """Return the first draws of the compiled loop, all replays together."""
    np.random.seed(seed)
    found = np.empty(count)
    for i in range(count):
        found[i] = law[np.random.randint(len(law))]
    return found


@cache
def _replayer(update: Any, bounds: Any) -> Any:
    """Return the compiled loop for sequences with these functions."""

    def replay(
        law: Any, target: float, settings: Any, tuned: Any, columns: int, most: int, seed: int, found: Any
    ) -> None:
        alpha, by_width, cautious, binary, relative = settings
        z = fixed_width.quantile(alpha)
        narrow = min(target, fixed_width.largest_share(alpha)) if relative > 0 else target
        np.random.seed(seed)
        drawn = np.empty(most)
        for run in range(found.shape[1]):
            own, other = np.zeros((1, fixed_width.COLUMNS)), np.zeros((1, columns))
            row = own[0]
            t, look, fed = 0, 2, 0
            while True:
                drawn[t] = law[np.random.randint(len(law))]
                fixed_width.update(own, 0, drawn[t], tuned)
                t += 1
                if t < look:
                    continue
                look = min(t + looks.step(t, 1), most)
                mean = row[fixed_width.SHIFT] + row[fixed_width.MEAN]
                wanted = target * abs(mean) if relative > 0 else target
                half = math.inf
                if by_width > 0:
                    half = fixed_width.half_width(row, math.inf, z, binary > 0)
                fixed = half <= (narrow * abs(mean) if relative > 0 else narrow)
                low, high = (mean - half, mean + half) if fixed else (-math.inf, math.inf)
                # A sequence is wider than the plain interval, and takes longer to follow.
                if not fixed and z * math.sqrt(row[fixed_width.M2] / (t * t)) <= wanted:
                    for i in range(fed, t):
                        update(other, 0, drawn[i], tuned)
                    fed = t
                    low, high = bounds(other[0], alpha, tuned)
                    care = fixed_width.caution(float(t), math.inf, z) if cautious > 0 else 1.0
                    low, high = mean - care * (mean - low), mean + care * (high - mean)
                if max(mean - low, high - mean) <= wanted or t >= most:
                    break
            found[0, run], found[1, run], found[2, run] = t, mean, row[fixed_width.M2] / (t - 1)
            found[3, run], found[4, run], found[5, run] = low, high, 1.0 if fixed else 0.0

    return jit(replay, nogil=True)
