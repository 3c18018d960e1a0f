"""
When a precision is reached: one rule for means and for weighted sums of them, wherever the question is asked.

A mean, or a sum, has reached its precision as soon as the interval that decides lies within its value ± the target:

1. the fixed-width interval decides where it is trusted (`fixed_width`, `fixed_width_sums`), of shares of a mean only up
   to the largest that can be trusted;
2. elsewhere a confidence sequence decides, widened by `fixed_width.caution` if it is asymptotic and samples are few.
   Sequences are followed only where an interval of fixed n is narrow enough, as theirs are never narrower;
3. a stop is final: what was stopped stays precise, whatever late answers say, until another precision is asked for.

Only widths decide, never where an interval lies. `look` is the rule for all means or sums of a study. The replay of one
arm's stop compiles the same functions, `by_fixed_width` and `by_sequence`; the forecast and the plan have the same
half-widths, of moments that are expected.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.compiled import callable_compiled
from equipoise.intervals import fixed_width, fixed_width_sums
from equipoise.intervals.sequences import Intervals

# Sequences are not widened by more than this factor.
_MOST_CAUTION: Final = 1e6


@dataclass(frozen=True)
class StopRule:
    """
    Which intervals decide that a precision is reached.

    Attributes
    ----------
    sequences
        The confidence sequences, which decide where a fixed-width interval cannot be trusted.
    alpha
        The probability with which the interval of each mean, or each sum, may miss.
    fixed_width
        Whether fixed-width intervals decide where they can be trusted; else sequences alone decide.
    """

    sequences: Intervals
    alpha: float
    fixed_width: bool = True

    @property
    def binary(self) -> bool:
        """Whether samples are 0 or 1."""
        return self.sequences.support == "binary"

    @property
    def cautious(self) -> bool:
        """Whether sequences are widened where samples are few: those that rest on the sample variance."""
        return self.fixed_width and self.sequences.kind == "asymptotic"

    @property
    def largest_share(self) -> float:
        """The largest share of a mean that a fixed-width interval is trusted for."""
        return fixed_width.largest_share(self.alpha)


class Targets(NamedTuple):
    """
    The half-widths that are wanted of means or sums, absolute + share · |value|: one of the two is 0.

    Attributes
    ----------
    absolute, share
        A half-width, and a share of the mean or sum.
    """

    absolute: Floats
    share: Floats

    def half_widths(self, values: Floats, largest_share: float = math.inf) -> Floats:
        """Return the wanted half-widths of these means or sums; no larger share of them than this."""
        return np.asarray(target(self.absolute, np.minimum(self.share, largest_share), self._valued(values)))

    def narrower(self, rule: StopRule) -> Floats:
        """Return the factors by which half-widths of fixed width must be smaller than the targets to be trusted."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.where(self.share > 0, np.minimum(rule.largest_share / self.share, 1.0), 1.0))

    def _valued(self, values: Floats) -> Floats:
        # An absolute target is known before the mean is.
        return np.where(self.share > 0, values, 0.0)


class Widths(NamedTuple):
    """
    What fixed-width intervals say of means or sums.

    Attributes
    ----------
    centres
        What the intervals are around, NaN where there are no samples.
    half, plain
        The half-widths: infinite where they cannot be trusted, and as they would be.
    caution
        By how much to widen sequences.
    least
        Half-widths of fixed n, which those of sequences are never below.
    """

    centres: Floats
    half: Floats
    plain: Floats
    caution: Floats
    least: Floats


class Moments(NamedTuple):
    """
    The evidence of all arms.

    Attributes
    ----------
    state
        A row of the state of `fixed_width` for each arm.
    sizes
        The sizes of the populations, infinite where there are none.
    """

    state: Floats
    sizes: Floats


class Look(NamedTuple):
    """
    Which means or sums have reached their precision, and the intervals that say so.

    Attributes
    ----------
    low, high
        The ends; infinite where no sequence was followed, as it cannot be narrow enough.
    fixed, reached
        Which are of fixed width, and which have reached their precision.
    """

    low: Floats
    high: Floats
    fixed: Bools
    reached: Bools


# ---- the rule, for arrays, and compiled for one arm


@callable_compiled
def target(absolute: Any, share: Any, value: Any) -> Any:
    """Return the half-width that is wanted of a mean or sum."""
    return absolute + share * np.abs(value)


@callable_compiled
def least_half_width(t: Any, m2: Any, size: Any, z: float) -> Any:
    """Return the half-width of fixed n after t samples with this sum of squares; a sequence is never narrower."""
    return z * np.sqrt(m2 / t * np.maximum(1 / t - 1 / size, 0))


@callable_compiled
def by_fixed_width(half: Any, least: Any, value: Any, absolute: Any, share: Any, largest: float) -> Any:
    """Return whether a trusted half-width is narrow enough; and if not, whether to follow the sequence."""
    fixed = half <= target(absolute, np.minimum(share, largest), value)
    return fixed, np.logical_not(fixed) & (least <= target(absolute, share, value))


@callable_compiled
def cautious(centre: Any, low: Any, high: Any, caution: Any) -> Any:
    """Return the ends of a sequence widened by a factor from a centre."""
    wide = np.minimum(caution - 1, _MOST_CAUTION)
    # An end that is infinite stays so, and where no centre is known there is nothing to widen from.
    below, above = np.fmax(centre - low, 0.0), np.fmax(high - centre, 0.0)
    return np.fmax(low - wide * below, -np.inf), np.fmin(high + wide * above, np.inf)


@callable_compiled
def by_sequence(value: Any, low: Any, high: Any, absolute: Any, share: Any) -> Any:
    """Return whether the ends of a sequence lie within the value ± its target."""
    return np.maximum(value - low, high - value) <= target(absolute, share, value)


# ---- for all arms


def of_arms(rule: StopRule, moments: Moments) -> Widths:
    """Return the fixed-width intervals of the arms' means."""
    state, sizes = moments
    counts, z = state[:, fixed_width.COUNT], fixed_width.quantile(rule.alpha)
    half, plain, caution = np.empty((3, len(state)))
    fixed_width.over_arms(state, sizes, rule.alpha, rule.binary, half, plain, caution)
    with np.errstate(divide="ignore", invalid="ignore"):
        least = least_half_width(counts, state[:, fixed_width.M2], sizes, z)
    return Widths(
        np.where(counts > 0, state[:, fixed_width.SHIFT] + state[:, fixed_width.MEAN], math.nan),
        half if rule.fixed_width else np.full(len(state), math.inf),
        plain,
        caution if rule.cautious else np.ones(len(state)),
        np.where(counts > 0, least, math.inf),
    )


def of_sums(rule: StopRule, moments: Moments, weights: Floats, values: Floats, power: float = 0.5) -> Widths:
    """
    Return the fixed-width intervals of weighted sums of the means.

    Parameters
    ----------
    rule, moments
        The rule, and the evidence of all arms.
    weights, values
        With a row for each sum and a column for each arm; and the sums of the means.
    power
        The power of a variance in the allocation (`fixed_width_sums.half_widths`).
    """
    found = fixed_width_sums.half_widths(weights, *moments, rule.alpha, rule.binary, power)
    trusted = found.trusted & rule.fixed_width
    caution = np.nan_to_num(found.caution, nan=1.0) if rule.cautious else np.ones(len(weights))
    return Widths(values, np.where(trusted, found.plain, math.inf), found.plain, caution, found.least)


def none_of(values: Floats, caution: float = 1.0, least: float = 0.0) -> Widths:
    """Return widths of means or sums that have no fixed-width intervals, so that sequences alone decide."""
    half = np.full(len(values), math.inf)
    return Widths(values, half, half, np.full(len(values), caution), np.full(len(values), least))


def fixed_width_decides(
    rule: StopRule, targets: Targets, values: Floats, widths: Widths, settled: Bools | None = None
) -> tuple[Bools, Bools]:
    """
    Return which means or sums have fixed-width intervals that decide, and of which sequences are to be followed.

    The parameters are those of `look`.
    """
    absolute, share = targets
    values = np.where(share > 0, values, 0.0)
    with np.errstate(invalid="ignore"):
        fixed, follow = by_fixed_width(widths.half, widths.least, values, absolute, share, rule.largest_share)
    if settled is not None:
        fixed = fixed | (settled & np.isfinite(widths.half) & (share <= rule.largest_share))
    return fixed, follow & ~fixed


def look(
    rule: StopRule,
    targets: Targets,
    values: Floats,
    widths: Widths,
    sequences: Callable[[Ints], tuple[Floats, Floats]],
    settled: Bools | None = None,
    everything: bool = False,
) -> Look:
    """
    Return which means or sums have reached their precision.

    Parameters
    ----------
    rule, targets
        Which intervals decide, and how narrow they must be.
    values, widths
        The means or sums, and what fixed-width intervals say of them, from the evidence of all arms.
    sequences
        The ends of the confidence sequences of some of them, by their places.
    settled
        Which were stopped because they had reached this precision; None for none.
    everything
        Whether to follow the sequences that cannot be narrow enough, too.
    """
    fixed, follow = fixed_width_decides(rule, targets, values, widths, settled)
    low = np.where(fixed, widths.centres - widths.half, -math.inf)
    high = np.where(fixed, widths.centres + widths.half, math.inf)
    reached, which = fixed.copy(), np.flatnonzero(~fixed if everything else follow)
    if len(which):
        (absolute, share), value = (each[which] for each in targets), values[which]
        with np.errstate(invalid="ignore"):
            below, above = cautious(widths.centres[which], *sequences(which), widths.caution[which])
            # A mean of no samples may be anywhere in its interval.
            value = np.where(np.isnan(value) & (share == 0), below, value)
            reached[which] = by_sequence(value, below, above, absolute, share)
        low[which], high[which] = below, above
    return Look(low, high, fixed, reached if settled is None else reached | settled)
