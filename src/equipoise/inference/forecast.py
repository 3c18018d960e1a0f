"""
How many more samples a precision needs, as a range.

An arm stops at the T at which its interval, of half-width s r(T), is as narrow as the target. Its s² is then that of
the T samples there are and of the M that are still to come::

    s² = (T s²_now + M v (1 + ε)) / (T + M),   Var(ε) = (κ - 1)/M

The law of those to come is drawn from its posterior (`spread`): v, κ and the skewness, on which fixed-width intervals
depend. Then ε is drawn; the M that solves the equation comes from a few iterations. Where the target is a share of the
mean, the mean at the stop is drawn too, with its correlation to s². An arm is found to be precise at the next look, by
which time it has had a few more samples. The draws of all arms add up, and the range leaves out the largest and the
smallest sums.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.inference import skewness as of_gamma
from equipoise.inference.arm_intervals import reached, reached_by_arm
from equipoise.inference.known import Known, remembered
from equipoise.inference.linear_targets import sums_found
from equipoise.inference.needed import MOST, Needed, of_arms, of_sums
from equipoise.inference.variance_posterior import LawDraws, Spread, spread
from equipoise.ledger import looks
from equipoise.ledger.goal import Sums

# Draws, fewer where there are many arms, and the quantiles of their sums that are reported. Those of nine draws in ten
# would be too close: laws need not be like gamma laws, most of which would take more samples, and quantiles of so few
# draws scatter.
DRAWS: Final = 300
_NUMBERS: Final = 100_000
_RANGE: Final = (0.02, 0.5, 0.99)
_ITERATIONS: Final = 10
# How the samples will be divided among the arms of sums is not foreseen: what they take varies by this share.
_DIVIDED: Final = 0.06
# Ranges whose upper end is this many times the lower say nothing.
_WIDEST: Final = 1000


class Left(NamedTuple):
    """
    The samples and the time that a precision still needs.

    Attributes
    ----------
    samples, low, high
        The median number of samples still needed, and a range for nine cases in ten.
    seconds_low, seconds_high
        How long that takes at the pace of the last samples; NaN where the pace is not known.
    """

    samples: float
    low: float
    high: float
    seconds_low: float = math.nan
    seconds_high: float = math.nan


class ToCome(NamedTuple):
    """The places of the arms that have not reached their precision, and draws, by row, of the samples each needs."""

    places: Ints
    more: Floats


class OpenTargets(NamedTuple):
    """
    Means, or sums of them, that have not reached their precision.

    Attributes
    ----------
    counts, means, variances
        Samples, their mean, and their variance now.
    skewness
        Of the samples.
    wanted, relative
        The half-width that is wanted, or the share of the mean where `relative` is true.
    """

    counts: Floats
    means: Floats
    variances: Floats
    skewness: Floats
    wanted: Floats
    relative: Bools


@remembered
def left(known: Known) -> Left | None:
    """Return the samples and the time that the precision still needs; None without one, or if too little is known."""
    if known.precision is None:
        return None
    if reached(known):
        return Left(0.0, 0.0, 0.0, 0.0, 0.0)
    drawn = to_come(known)
    if drawn is None:
        return None
    low, samples, high = np.quantile(drawn.more.sum(axis=1), _RANGE)
    if not high < min(MOST, _WIDEST * max(low, 1)):
        return None
    pace = known.snapshot.pace
    if pace is None:
        return Left(float(samples), float(low), float(high))
    seconds = np.quantile(drawn.more @ pace[drawn.places], _RANGE[::2])
    return Left(float(samples), float(low), float(high), *map(float, seconds))


def samples_left(known: Known) -> float | None:
    """Return about how many more samples the precision needs: infinite if too little is known, None without one."""
    if known.precision is None:
        return None
    found = left(known)
    return math.inf if found is None else found.samples


@remembered
def to_come(known: Known) -> ToCome | None:
    """Return draws of the samples that the precision still needs; None if too little is known."""
    if known.precision is None:
        return None
    design = known.snapshot.design
    closed = np.zeros(len(known.arms), bool) if design is None else design.retired
    places = np.flatnonzero(~reached_by_arm(known) & ~closed)
    posterior = spread(known) if len(places) else None
    if posterior is None:
        return None
    rng = np.random.default_rng([known.samples, len(places)])
    if known.precision.sums is None:
        more = _of_arms(known, posterior, places, rng)
    else:
        more = _of_sums(known, posterior, known.precision.sums, rng)[:, places]
    return ToCome(places, _at_the_next_look(known, more, rng))


@remembered
def left_by_arm(known: Known) -> Floats:
    """Return the median number of samples each arm still needs: 0 if it is precise, infinite if too little is known."""
    found = np.where(reached_by_arm(known), 0.0, math.inf)
    drawn = to_come(known)
    if drawn is not None:
        typical = np.median(drawn.more, axis=0)
        found[drawn.places] = np.where(typical < MOST, typical, math.inf)
    return found


def _runs(known: Known) -> int:
    return min(max(_NUMBERS // len(known.arms), 30), DRAWS)


def _of_arms(known: Known, posterior: Spread, places: Ints, rng: np.random.Generator) -> Floats:
    """Return draws of the samples that some arms still need, one draw a row."""
    assert known.precision is not None
    assert known.evidence is not None
    laws = posterior.laws(_runs(known), rng)
    # An arm whose samples are all equal has the interval of the most varying one.
    likely = np.where(laws.variances > 0, laws.variances, laws.variances.max(axis=1, keepdims=True))
    laws = LawDraws(*(each[:, places] for each in laws._replace(variances=likely)))
    variances = known.variances[places]
    waiting = OpenTargets(
        known.counts[places].astype(float),
        known.means[places],
        np.where(variances > 0, variances, laws.variances.mean(axis=0)),
        known.evidence.skewness[places],
        np.array(known.precision.wanted)[places],
        np.array(known.precision.relative)[places],
    )
    return _until_stop(waiting, laws, of_arms(known, places, waiting.variances), rng)


def _of_sums(known: Known, posterior: Spread, asked: Sums, rng: np.random.Generator) -> Floats:
    """
    Return draws of the samples that each arm still needs for the sums of means, one draw a row.

    All arms of a sum are taken to grow by one factor, so that it is like a mean of n samples with the variance
    n Σ_k c_k² σ²_k/T_k. An arm of several sums has the mean of their factors.
    """
    assert known.precision is not None
    assert known.evidence is not None
    laws = posterior.laws(_runs(known), rng)
    counts, n = known.counts, float(known.samples)
    variances = np.where(known.variances > 0, known.variances, laws.variances.mean(axis=0))
    open_ones = np.flatnonzero(~sums_found(known).reached)
    # The parts of the arms in the variance of each sum, for each unit of their own.
    parts = n * asked.weights[open_ones] ** 2 / counts
    now = parts @ variances
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = laws.noise @ ((parts * variances / now[:, None]) ** 2 / counts).T * n
    waiting = OpenTargets(
        np.full(len(open_ones), n),
        sums_found(known).values[open_ones],
        now,
        np.zeros(len(open_ones)),
        np.array(known.precision.wanted)[open_ones],
        np.array(known.precision.relative)[open_ones],
    )
    have = counts.astype(float)
    seen, normal = known.evidence.skewness, rng.standard_normal(laws.skewness.shape)
    needed = of_sums(
        known, asked, open_ones, now, lambda growth: _later(seen, laws.skewness, have, (growth - 1) * have, normal)
    )
    of_all = LawDraws(laws.variances @ parts.T, np.zeros_like(noise), noise)
    more = _until_stop(waiting, of_all, needed, rng)
    # The largest would be too large: sums that take longest will get more of the samples than they have had so far.
    inside = asked.weights[open_ones] != 0
    typical = (more @ inside) / np.maximum(inside.sum(axis=0), 1) * counts / n
    return np.asarray(typical * np.exp(_DIVIDED * rng.standard_normal((len(more), 1))))


def _at_the_next_look(known: Known, more: Floats, rng: np.random.Generator) -> Floats:
    """Return draws of the samples that arms get until the look that retires them."""
    step = looks.step(known.samples + int(min(np.median(more.sum(axis=1)), MOST)), len(known.arms))
    if known.precision is not None and known.precision.sums is not None:
        # All arms are closed at the last look.
        return np.asarray(more + step / more.shape[1] * rng.random((len(more), 1)))
    # At the last looks few arms are open, and these get all the samples between two looks.
    shares = 1 / (1 + np.argsort(np.argsort(-more, axis=1), axis=1))
    return np.asarray(more + step * shares * rng.random(more.shape))


def _until_stop(waiting: OpenTargets, laws: LawDraws, needed: Needed, rng: np.random.Generator) -> Floats:
    """
    Return draws of the samples that are taken until intervals are narrow enough.

    Parameters
    ----------
    waiting
        The means or sums.
    laws
        Draws of the laws of samples to come.
    needed
        The number of samples at which intervals are narrow enough.
    rng
        The generator of the draws.
    """
    counts, means, now, skewness, wanted, relative = waiting
    v, likely, noise = laws
    normal, other, third = rng.standard_normal((3, *v.shape))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        along = np.clip(np.nan_to_num(skewness / np.sqrt(noise)), -0.95, 0.95)
        across = np.sqrt(1 - along**2)
        more = np.tile(counts, (len(v), 1))
        for _ in range(_ITERATIONS):
            part = more / (counts + more)
            at_stop = (1 - part) * now + part * v * np.exp(np.sqrt(noise / more) * normal - noise / (2 * more))
            # How far s² will move, and with it the mean of a skewed arm, in standard deviations.
            moved = np.clip(np.nan_to_num((at_stop / now - 1) / np.sqrt(noise * part / counts)), -4, 4)
            mean = means + np.sqrt(v * part / counts) * (along * moved + across * other)
            target = np.where(relative, wanted * np.abs(mean), wanted)
            with_it = of_gamma.correlation(likely)
            squared = _later(skewness, likely, counts, more, with_it * moved + np.sqrt(1 - with_it**2) * third)
            more = np.sqrt(more * np.clip(np.nan_to_num(needed(at_stop, target, squared)) - counts, 1.0, MOST))
    return np.asarray(more)


def _later(skewness: Floats, likely: Floats, counts: Floats, more: Floats, normal: Floats) -> Floats:
    """
    Return draws of the squared skewness of samples, less its noise, when there will be more of them.

    Parameters
    ----------
    skewness, counts
        That of the samples there are, and their number.
    likely, more
        That of the law, and the number of samples to come.
    normal
        How far those to come are from what is likely, in standard deviations.
    """
    part, n = more / (counts + more), counts + more
    # By chance it is above or below what is likely now, which becomes less by and by.
    chance = (1 - part) * (skewness - of_gamma.shown(likely, counts))
    apart = part * np.sqrt(of_gamma.variance(likely, more)) * normal
    return np.asarray(np.maximum((of_gamma.shown(likely, n) + chance + apart) ** 2 - 6 / n, 0))
