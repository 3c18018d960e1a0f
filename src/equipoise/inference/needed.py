"""
After how many samples the stop rule will be met, by the formulas of its intervals (`intervals.stop_rule`).

For each kind there is a function of variances, targets and squared skewnesses, which have a row for each draw and a
column for each arm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from equipoise.base.arrays import Floats, Ints
from equipoise.inference import arm_intervals
from equipoise.inference import linear_targets as sums
from equipoise.inference.known import Known
from equipoise.intervals import fixed_width, stop_rule
from equipoise.intervals.asymptotic import RHO2, START
from equipoise.intervals.stop_rule import Moments, Widths

if TYPE_CHECKING:
    from equipoise.ledger.goal import Sums

Needed = Callable[[Floats, Floats, Floats], Floats]

# More samples than this are not predicted.
MOST: Final = 1e12
# By how much the samples of all arms of a sum may grow; beyond that, half-widths are in proportion to 1/sqrt(n).
_GROWTH: Final = np.geomspace(1, 1000, 37)


def of_arms(known: Known, places: Ints, now: Floats) -> Needed:
    """
    Return the number of samples at which some arms stop, by fixed-width interval or sequence, whichever is first.

    Parameters
    ----------
    known, places
        The study, and the places of the arms.
    now
        The variances of the arms now.
    """
    sizes = np.full(len(places), math.inf) if known.populations is None else known.populations[places]
    endless = _of_sequences(known, places, now, sizes)
    if arm_intervals.by_width(known):
        sooner, later = _of_fixed_width(known), endless
        # Fixed-width intervals of samples that are all equal are not trusted.
        equal = (known.variances[places] == 0) & (known.sequences.support != "binary")
        smaller = _smaller(known, places)

        def needed(variances: Floats, targets: Floats, squared: Floats) -> Floats:
            fixed = np.where(equal, math.inf, sooner(variances, targets * smaller, squared))
            return np.asarray(1 / (1 / np.minimum(fixed, later(variances, targets, squared)) + 1 / sizes))

        return needed
    return lambda *then: 1 / (1 / endless(*then) + 1 / sizes)


def _smaller(known: Known, which: Ints) -> Floats:
    """Return by which factors fixed-width intervals of some arms or sums must be narrower than the targets."""
    assert known.precision is not None
    return known.precision.asked.narrower(known.stop_rule)[which]


def in_proportion(counts: Floats, margins: Floats, now: Floats) -> Needed:
    """Return the number of samples at which half-widths that fall as s/sqrt(T) from now on are narrow enough."""
    return lambda variances, targets, _: counts * (margins / targets) ** 2 * variances / now


def of_sums(known: Known, asked: Sums, which: Ints, now: Floats, skewed: Callable[[float], Floats]) -> Needed:
    """
    Return the number of samples at which some sums of means stop, if all arms grow by one factor.

    Parameters
    ----------
    known, asked
        The study, and the sums that its precision is asked of.
    which, now
        Some of the sums, and the variances of each for one sample of all arms together.
    skewed
        Draws of the squared skewness of the arms' samples, less its noise, when they have grown by a factor.
    """
    n = np.full(len(which), float(known.samples))
    sequences = in_proportion(n, sums.look(known, asked, everything=True).margins[which], now)
    if not known.stop_rule.fixed_width:
        return sequences
    weights, values = asked.weights[which], sums.sums_found(known).values[which]
    plain, by_one = (np.square(_grown(known, weights, values, skewness).plain) for skewness in (0.0, 1.0))
    trusted = np.isfinite(_grown(known, weights, values, None).half)
    # By how much the squared skewness of the arms widens an interval, about where that is narrow enough.
    typical = np.clip((plain > sums.sums_found(known).targets[which] ** 2).sum(axis=0), 1, len(_GROWTH) - 1)
    parts = weights**2 * known.variances / known.counts
    with np.errstate(divide="ignore", invalid="ignore"):
        widens = np.nan_to_num((by_one / plain - 1)[typical, np.arange(len(which))], posinf=0.0)
        shares = np.nan_to_num(parts / parts.sum(axis=1, keepdims=True))
    smaller = _smaller(known, which)
    wider = 1 + skewed(float(np.median(_GROWTH[typical]))) @ shares.T * widens

    def needed(variances: Floats, targets: Floats, squared: Floats) -> Floats:
        # The square of a half-width is in proportion to the variance.
        wanted = np.log(np.broadcast_to(targets * smaller, variances.shape) ** 2 * now / (variances * wider))
        found = np.full(variances.shape, math.inf)
        for j in range(len(which)):
            usable = trusted[:, j] & np.isfinite(plain[:, j])
            if usable.any():
                squares, growth = np.log(np.maximum(plain[usable, j], 1e-300)), np.log(_GROWTH[usable])
                beyond = np.maximum(squares[-1] - wanted[:, j], 0)
                found[:, j] = n[j] * np.exp(np.interp(-wanted[:, j], -squares, growth) + beyond)
        return np.asarray(np.minimum(found, sequences(variances, targets, squared)))

    return needed


def _grown(known: Known, weights: Floats, values: Floats, skewness: float | None) -> Widths:
    """Return the widths of sums, by growth and sum, with more samples of the same moments, or of this skewness."""
    found, (now, sizes) = [], known.moments
    for growth in _GROWTH:
        state = now.copy()
        state[:, [fixed_width.COUNT, fixed_width.M2, fixed_width.M3]] *= growth
        if skewness is not None:
            counts, m2 = state[:, fixed_width.COUNT], state[:, fixed_width.M2]
            # 6/T of its square are taken for noise.
            state[:, fixed_width.M3] = counts * (m2 / counts) ** 1.5 * np.sqrt(skewness**2 + 6 / counts)
        moments = Moments(state, sizes)
        found.append(stop_rule.of_sums(known.stop_rule, moments, weights, values, known.objective.exponent))
    return Widths(*map(np.array, zip(*found, strict=True)))


def _of_fixed_width(known: Known) -> Needed:
    """Return when fixed-width intervals are narrow enough, and can be trusted."""
    z = fixed_width.quantile(known.stop_rule.alpha)
    a, b, fewest = fixed_width.student_term(z), fixed_width.skewness_term(z), fixed_width.fewest(z)

    def needed(variances: Floats, targets: Floats, squared: Floats) -> Floats:
        # The root of targets² T² = z² v (T + a + b γ²).
        part = z * z * variances / 2
        found = (part + np.sqrt(part**2 + 2 * part * targets**2 * (a + b * squared))) / targets**2
        return np.asarray(np.maximum(np.maximum(found, fewest), b * squared / fixed_width.TRUSTED))

    def needed_of_binary(variances: Floats, targets: Floats, _: Floats) -> Floats:
        found = np.maximum(z * z * variances / targets**2, fewest)
        for _step in range(8):
            # z²/2 ones and zeros seen before.
            prior = z * z / (found + z * z)
            v = variances + prior * (2 - prior) * (0.25 - variances)
            skewed = b * np.maximum(1 / v - 4, 0)
            half = np.maximum(targets - 0.5 / found, targets / 100)
            narrow = z * z * v * (1 + (a + skewed) / found) / half**2
            found = np.maximum(np.maximum(narrow, fewest), skewed / fixed_width.TRUSTED_BINARY)
        return found

    return needed_of_binary if known.sequences.support == "binary" else needed


def _of_sequences(known: Known, places: Ints, now: Floats, sizes: Floats) -> Needed:
    """Return when confidence sequences are narrow enough."""
    counts, alpha = known.counts[places].astype(float), known.stop_rule.alpha
    varies = known.variances[places] > 0
    care = fixed_width.fewest(fixed_width.quantile(alpha)) if known.stop_rule.cautious else 0.0
    if known.sequences.kind == "asymptotic" and varies.all():
        return _of_asymptotic(known.sequences.kernel.settings[RHO2], alpha, care)
    margins = arm_intervals.intervals(known, places.tolist()).margins
    # Those of arms with too few samples for an interval are not far from what they will be.
    margins = np.where(np.isfinite(margins), margins, np.sqrt(2 * now * math.log(14 / alpha) / counts))
    if known.sequences.kind == "asymptotic":
        of_equal = in_proportion(counts, margins, now)
        of_others = _of_asymptotic(known.sequences.kernel.settings[RHO2], alpha, care)
        return lambda *then: np.where(varies, of_others(*then), of_equal(*then))
    clocks = 1 / np.maximum(1 / counts - 1 / sizes, 1 / MOST)
    binary = known.sequences.support == "binary"
    return _of_binary(clocks, margins, now) if binary else _of_bounded(clocks, margins, now, alpha)


def _of_asymptotic(rho2: float, alpha: float, care: float) -> Needed:
    """Return when asymptotic sequences are narrow enough, with caution below `care` samples."""
    t = np.geomspace(START, MOST, 1000)
    u = t * rho2 + 1
    widths = np.log(2 * u / (t * t * rho2) * (np.log(u) / 2 - math.log(alpha)) * np.maximum(care / t, 1))
    return lambda variances, targets, _: np.exp(np.interp(-np.log(targets**2 / variances), -widths, np.log(t)))


def _of_binary(counts: Floats, margins: Floats, now: Floats) -> Needed:
    """
    Return when betting on binary arms is narrow enough.

    The half-width is about sqrt(2 v L/T) + L/(3 T), as by Bernstein's inequality, with an L that grows as log(T)/2 and
    is now what makes it the margin.
    """
    root, linear = np.sqrt(2 * now / counts), 1 / (3 * counts)
    level = ((np.sqrt(root**2 + 4 * linear * margins) - root) / (2 * linear)) ** 2

    def needed(variances: Floats, targets: Floats, _: Floats) -> Floats:
        found = counts
        for _step in range(6):
            then = level + np.log(np.maximum(found / counts, 1)) / 2
            slope = np.sqrt(2 * variances * then)
            # The square of the root x of targets x² - slope x - then/3.
            found = ((slope + np.sqrt(slope**2 + 4 / 3 * targets * then)) / (2 * targets)) ** 2
        return np.asarray(found)

    return needed


def _of_bounded(counts: Floats, margins: Floats, now: Floats, alpha: float) -> Needed:
    """
    Return when other sequences are narrow enough.

    The square of T times the half-width is about f + 2 v L T, with L as of many samples, and an f that makes it now
    what it is.
    """
    total = (margins * counts) ** 2
    level = np.minimum(total / (2 * now * counts), math.log(14 / alpha))
    fixed = total - 2 * now * level * counts

    def needed(variances: Floats, targets: Floats, _: Floats) -> Floats:
        part = variances * level
        return np.asarray((part + np.sqrt(part**2 + targets**2 * fixed)) / targets**2)

    return needed
