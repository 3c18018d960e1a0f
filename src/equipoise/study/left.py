"""
What is left to do: how many more samples a precision needs, as a range.

An arm stops at the T at which its interval, of half-width s r(T), is as narrow as the target. Its s² is then that of
the T samples there are and of the M that are still to come::

    s² = (T s²_now + M v (1 + ε)) / (T + M),   Var(ε) = (κ - 1)/M

The variance v of those to come is drawn from its posterior (`spread`), and so is ε; the M that solves the equation
comes from a few iterations. Where the target is a share of the mean, the mean at the stop is drawn too, with its
correlation to s². An arm is found to be precise at the next look, by which time it has had a few more samples. The
draws of all arms add up, and the range leaves out the largest and the smallest sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from equipoise.arrays import Floats, Ints
from equipoise.intervals.asymptotic import RHO2, START
from equipoise.study.goal import until_next_look
from equipoise.study.spread import spread

if TYPE_CHECKING:
    from equipoise.study.result import Result

Needed = Callable[[Floats, Floats], Floats]

# Draws, fewer where there are many arms, and the quantiles of their sums that are reported. Those of nine draws in ten
# would be too close, as kurtoses are not known either.
DRAWS: Final = 300
_NUMBERS: Final = 100_000
_RANGE: Final = (0.025, 0.5, 0.975)
_ITERATIONS: Final = 10
# More samples than this are not predicted, nor ranges whose upper end is this many times the lower.
_MOST: Final = 1e12
_WIDEST: Final = 1000


class Left(NamedTuple):
    """
    What a precision still needs.

    Attributes
    ----------
    samples, low, high
        About how many more samples, and a range for nine cases in ten.
    seconds_low, seconds_high
        How long that takes at the pace of the last samples; NaN where the pace is not known.
    """

    samples: float
    low: float
    high: float
    seconds_low: float = math.nan
    seconds_high: float = math.nan


def left(result: Result) -> Left | None:
    """Return what the precision of a result still needs; None without one, or where that cannot be said."""
    if result.precision is None:
        return None
    if result.reached:
        return Left(0.0, 0.0, 0.0, 0.0, 0.0)
    design = result.snapshot.design
    closed = np.zeros(len(result.arms), bool) if design is None else design.retired
    open_arms = np.flatnonzero(~result.reached_by_arm & ~closed)
    more = _draws(result, open_arms) if len(open_arms) else None
    if more is None:
        return None
    low, samples, high = np.quantile(more.sum(axis=1), _RANGE)
    if not high < min(_MOST, _WIDEST * max(low, 1)):
        return None
    pace = result.snapshot.pace
    seconds = (math.nan, math.nan) if pace is None else np.quantile(more @ pace[open_arms], _RANGE[::2])
    return Left(float(samples), float(low), float(high), *map(float, seconds))


def _draws(result: Result, places: Ints) -> Floats | None:
    """Return draws of how many more samples some arms need, a row for each; None where too little is known."""
    known = spread(result)
    if known is None or not np.isfinite(result.targets[places]).all():
        return None
    rng = np.random.default_rng([result.samples, len(places)])
    runs = min(max(_NUMBERS // len(result.arms), 30), DRAWS)
    more = _until_stop(result, places, known.draws(runs, rng)[:, places], known.noise[places], rng)
    # At the last looks few arms are open, and these get all the samples between two looks.
    step = until_next_look(result.samples + int(min(np.median(more.sum(axis=1)), _MOST)), len(result.arms))
    shares = np.minimum(1 / (1 + np.argsort(np.argsort(-more, axis=1), axis=1)), 1.0)
    return np.asarray(more + step * shares * rng.random(more.shape))


def _until_stop(result: Result, places: Ints, v: Floats, noise: Floats, rng: np.random.Generator) -> Floats:
    """
    Return draws of how many more samples some arms take until their intervals are narrow enough.

    Parameters
    ----------
    result, places
        The result, and the places of the arms.
    v, noise
        Draws of the arms' variances, a row for each; κ - 1 by arm.
    rng
        Decides what is to come.
    """
    assert result.precision is not None
    assert result.snapshot.evidence is not None
    counts, means = result.counts.array[places].astype(float), result.means.array[places]
    now = np.where(result.variances.array[places] > 0, result.variances.array[places], v.mean(axis=0))
    wanted, relative = (np.array(each)[places] for each in (result.precision.wanted, result.precision.relative))
    needed = _needed(result, places, now)
    normal, other = rng.standard_normal((2, *v.shape))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        along = np.clip(np.nan_to_num(result.snapshot.evidence.skewness[places] / np.sqrt(noise)), -0.95, 0.95)
        across = np.sqrt(1 - along**2)
        more = np.tile(counts, (len(v), 1))
        for _ in range(_ITERATIONS):
            part = more / (counts + more)
            at_stop = (1 - part) * now + part * v * np.exp(np.sqrt(noise / more) * normal - noise / (2 * more))
            # How far s² will move, and with it the mean of a skewed arm, in standard deviations.
            moved = np.nan_to_num((at_stop / now - 1) / np.sqrt(noise * part / counts))
            mean = means + np.sqrt(v * part / counts) * (along * np.clip(moved, -4, 4) + across * other)
            target = np.where(relative, wanted * np.abs(mean), wanted)
            more = np.sqrt(more * np.clip(np.nan_to_num(needed(at_stop, target)) - counts, 1.0, _MOST))
    return np.asarray(more)


def _needed(result: Result, places: Ints, now: Floats) -> Needed:
    """
    Return a function of variances and targets: after how many samples the intervals of some arms are as narrow.

    Parameters
    ----------
    result, places, now
        The result, the places of the arms, and their variances now.
    """
    sizes = np.full(len(places), math.inf) if result.populations is None else result.populations[places]
    counts, alpha = result.counts.array[places].astype(float), (1 - result.level) / len(result.arms)
    if result.interval_kind == "asymptotic" and result.variances.array[places].all():
        endless = _of_asymptotic(result.sequences.kernel.settings[RHO2], alpha)
    else:
        margins = result.intervals_of(places.tolist()).margins
        # Those of arms with too few samples for an interval are not far from what they will be.
        margins = np.where(np.isfinite(margins), margins, np.sqrt(2 * now * math.log(14 / alpha) / counts))
        clocks = 1 / np.maximum(1 / counts - 1 / sizes, 1 / _MOST)
        binary = result.support == "binary" or result.recognised
        endless = _of_binary(clocks, margins, now) if binary else _of_bounded(clocks, margins, now, alpha)
    return lambda variances, targets: 1 / (1 / endless(variances, targets) + 1 / sizes)


def _of_asymptotic(rho2: float, alpha: float) -> Needed:
    """Return when asymptotic sequences are as narrow as targets."""
    t = np.geomspace(START, _MOST, 1000)
    u = t * rho2 + 1
    widths = np.log(2 * u / (t * t * rho2) * (np.log(u) / 2 - math.log(alpha)))
    return lambda variances, targets: np.exp(np.interp(-np.log(targets**2 / variances), -widths, np.log(t)))


def _of_binary(counts: Floats, margins: Floats, now: Floats) -> Needed:
    """
    Return when intervals of binary arms are as narrow as targets.

    Their half-width is about sqrt(2 v L/T) + L/(3 T), as by Bernstein's inequality, with an L that grows as log(T)/2
    and is now what makes it the margin.
    """
    root, linear = np.sqrt(2 * now / counts), 1 / (3 * counts)
    level = ((np.sqrt(root**2 + 4 * linear * margins) - root) / (2 * linear)) ** 2

    def needed(variances: Floats, targets: Floats) -> Floats:
        found = counts
        for _ in range(6):
            then = level + np.log(np.maximum(found / counts, 1)) / 2
            slope = np.sqrt(2 * variances * then)
            # The square of the root x of targets x² - slope x - then/3.
            found = ((slope + np.sqrt(slope**2 + 4 / 3 * targets * then)) / (2 * targets)) ** 2
        return np.asarray(found)

    return needed


def _of_bounded(counts: Floats, margins: Floats, now: Floats, alpha: float) -> Needed:
    """
    Return when intervals of other arms are as narrow as targets.

    The square of T times their half-width is about a² + 2 v L T, with L as of many samples, and an a that makes it now
    what it is.
    """
    total = (margins * counts) ** 2
    level = np.minimum(total / (2 * now * counts), math.log(14 / alpha))
    fixed = total - 2 * now * level * counts

    def needed(variances: Floats, targets: Floats) -> Floats:
        part = variances * level
        return np.asarray((part + np.sqrt(part**2 + targets**2 * fixed)) / targets**2)

    return needed
