"""
The stop of one arm at a precision, replayed.

An arm that is sampled until its own interval is narrow enough stops at a number of samples that depends on its own
samples alone, whatever the strategy does to the others. So it can be replayed alone, with its samples as its law: draw
until the stop rule is met (`intervals.stop_rule`, compiled), with looks as often as a study has them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.compiled import jit
from equipoise.intervals import fixed_width
from equipoise.intervals.stop_rule import StopRule, by_fixed_width, by_sequence, cautious, least_half_width
from equipoise.ledger import looks

# A replay ends after this many times the samples that it draws from, or after this many if those are few.
_MOST_TIMES, _MOST = 20, 10_000


class Target(NamedTuple):
    """The half-width that is wanted of an arm, or the share of its mean if `relative` is true."""

    wanted: float
    relative: bool = False

    @property
    def parts(self) -> tuple[float, float]:
        """The absolute half-width and the share of the mean, one of which is 0 (`stop_rule.Targets`)."""
        return (0.0, self.wanted) if self.relative else (self.wanted, 0.0)


@dataclass(frozen=True)
class Bias:
    """
    Bias and error inflation of an arm's mean from stopping.

    Attributes
    ----------
    inflation, noise
        The expected squared error over the expected s²/T, and the square of its standard error.
    bias
        The expected error of the mean.
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
        Return the bias and inflation under a law of equally likely values.

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
    Replay the stop of an arm whose samples are drawn from these with replacement.

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
    kernel = rule.sequences.kernel
    most = max(_MOST, _MOST_TIMES * len(law))
    replay = _replayer(kernel.update, kernel.bounds)
    decides = rule.alpha, rule.fixed_width, rule.cautious, rule.binary
    replay(law, target.parts, decides, kernel.settings, kernel.columns, most, seed % 2**32, found)
    return Stops(*found)


def samples_of(samples: Floats, counts: Floats, seed: int) -> list[Floats]:
    """
    Return the samples that the first replays of an arm drew.

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

    def replay(law: Any, target: Any, rule: Any, tuned: Any, columns: int, most: int, seed: int, found: Any) -> None:
        absolute, share = target
        alpha, trusts, careful, binary = rule
        z, largest = fixed_width.quantile(alpha), fixed_width.largest_share(alpha)
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
                half = fixed_width.half_width(row, math.inf, z, binary) if trusts else math.inf
                least = least_half_width(t, row[fixed_width.M2], math.inf, z)
                fixed, follow = by_fixed_width(half, least, mean, absolute, share, largest)
                reached = fixed
                low, high = (mean - half, mean + half) if fixed else (-math.inf, math.inf)
                if follow:
                    for i in range(fed, t):
                        update(other, 0, drawn[i], tuned)
                    fed = t
                    low, high = bounds(other[0], alpha, tuned)
                    if careful:
                        low, high = cautious(mean, low, high, fixed_width.caution(float(t), math.inf, z))
                    reached = by_sequence(mean, low, high, absolute, share)
                if reached or t >= most:
                    break
            found[0, run], found[1, run], found[2, run] = t, mean, row[fixed_width.M2] / (t - 1)
            found[3, run], found[4, run], found[5, run] = low, high, 1.0 if fixed else 0.0

    return jit(replay, nogil=True)
