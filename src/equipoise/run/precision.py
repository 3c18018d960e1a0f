"""When an arm is known well enough."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from equipoise.arrays import Bools, Floats
from equipoise.inputs import by_arm, number, shown
from equipoise.strategies import Strategy, Uniform
from equipoise.study import FiniteResult, Result

# Within what an objective takes.
_LIMITS: Final = (1e-99, 1e99)


def half_width(result: Result, level: float) -> Floats:
    """
    Half the width of each arm's interval, such that all intervals hold at once with this probability.

    The interval is `result.intervals(level)`, which holds whenever one looks, as stopping by it does. An arm whose
    samples are all equal is taken to vary as the most varying arm does where its interval rests on the variance seen,
    unless they are its whole population.
    """
    intervals = result.intervals(level)
    half = intervals.half_widths
    counts, variances = result.counts.array, result.variances.array
    if intervals.kind in ("asymptotic", "fixed-n") and np.isfinite(variances).any():
        equal = (variances == 0) & np.isfinite(half)
        if isinstance(result, FiniteResult):
            equal &= counts < result.populations
        largest = math.sqrt(np.nanmax(variances))
        if equal.any() and largest > 0:
            most = int(np.nanargmax(variances))
            with np.errstate(divide="ignore", invalid="ignore"):
                # About the interval of the most varying arm, had it as many samples.
                scaled = half[most] * np.sqrt(np.maximum(counts[most] / counts, 1))
            half = np.where(equal, scaled, half)
    return np.asarray(half)


@dataclass(frozen=True)
class Precision:
    """What half-width is wanted of each arm, of its mean's size where it is relative, else as it is."""

    wanted: tuple[float, ...]
    relative: tuple[bool, ...]
    level: float

    def targets(self, result: Result) -> Floats:
        """The half-widths that are wanted, given the means."""
        wanted = np.array(self.wanted)
        return np.where(self.relative, wanted * np.abs(result.means.array), wanted)

    def reached(self, result: Result) -> Bools:
        """Which arms are known well enough."""
        with np.errstate(invalid="ignore"):
            return np.asarray(half_width(result, self.level) <= self.targets(result))

    @property
    def alike(self) -> bool:
        """Whether the same half-width is wanted of every arm, whatever its mean."""
        return len(set(self.wanted)) == 1 and not any(self.relative)

    def followed(self, strategy: Strategy, options: Mapping[str, Any]) -> bool:
        """Whether a study of this strategy and with these options makes errors small beside what is wanted."""
        # Who says what matters is taken at their word, and who wants every arm in turn.
        said = options.get("weights") is not None or options.get("objective", math.inf) != math.inf
        return not said and not self.alike and not isinstance(strategy, Uniform)

    def weights(self, result: Result, closed: Bools | None = None) -> Floats | None:
        """
        Weights on the losses by which all arms come near to what is wanted together; None while too little is known.

        The weight of an arm is 1 over the square of its target, in units of the smallest. A mean that is known badly
        may be larger than it looks, by its standard error, so that none is near zero by chance. An arm that cannot be
        told from zero by three of them will hardly be known to a share of it: its loss has no more weight than gives it
        its even share of the samples. Too little is known while an arm that is not closed has no standard error.
        """
        means, errors, variances = np.abs(result.means.array), result.standard_errors.array, result.variances.array
        asked = np.ones(len(means), bool) if closed is None else ~closed
        known = np.isfinite(errors)
        if (asked & ~known).any():
            return None
        wanted, relative = np.array(self.wanted), np.array(self.relative)
        targets = np.where(relative, wanted * (means + errors), wanted)
        some = known & (targets > 0)
        if not some.any():
            return None
        vague = relative & (means <= 3 * errors) & some
        told = some & ~vague & asked
        weights = np.square(targets[some].min() / np.where(some, targets, 1))
        # An arm has samples in proportion to its weight times its variance.
        parts = weights * variances
        even = parts[told].mean() if parts[told].any() else parts[some & (parts > 0)].min(initial=math.inf)
        with np.errstate(divide="ignore"):
            weights = np.where(vague, np.minimum(weights, even / variances), weights)
        # Of nothing but zeros there is no share, nor of nothing.
        weights = np.where(some, weights, weights[some].max())
        return np.asarray(np.maximum(weights / weights.max(), _LIMITS[0]))

    def judge(self, result: Result) -> None:
        """Let errors be judged beside what is wanted of each arm, unless that is zero for one whose mean is known."""
        with np.errstate(divide="ignore"):
            weights = np.clip(1 / np.square(self.targets(result)), *_LIMITS)
        unknown = np.isnan(weights)
        most = weights[~unknown].max(initial=0)
        result.by_precision = bool(0 < most < _LIMITS[1])
        known = tuple(np.where(unknown, most, weights).tolist()) if result.by_precision else None
        result.objective = replace(result.objective, weights=known)

    def missed(self, result: Result) -> str:
        """How far it is from being reached, in a sentence."""
        short, arms = int((~self.reached(result)).sum()), len(result.arms)
        are, whose = ("is", "its") if short == 1 else ("are", "their")
        return f"{short:,} of {arms:,} means {are} not known to {self.said(whose)} yet."

    def said(self, whose: str = "its") -> str:
        """What is wanted, in words."""
        if len(set(zip(self.wanted, self.relative, strict=True))) > 1:
            return "the precision that was asked for"
        wanted, relative = self.wanted[0], self.relative[0]
        return f"±{100 * wanted:g}% of {whose} value" if relative else f"±{wanted:g}"


def checked_level(level: Any) -> float:
    """A probability, refused where it is none."""
    found = number("level", level)
    if not 0 < found < 1:
        raise ValueError(f"level={level!r} will not do; it must lie strictly between 0 and 1, such as 0.95")
    return found


def precision(given: Any, level: float, arms: Sequence[Hashable]) -> Precision:
    """What was asked for: a number, a share of the mean such as "3%", or one of these for each arm."""
    level = checked_level(level)
    several = isinstance(given, Mapping | Sequence | np.ndarray) and not isinstance(given, str)
    each = by_arm("precisions", given, arms) if several else [given] * len(arms)
    found = [_one(value) for value in each]
    return Precision(tuple(wanted for wanted, _ in found), tuple(relative for _, relative in found), level)


def _one(given: Any) -> tuple[float, bool]:
    text = given.strip() if isinstance(given, str) else ""
    try:
        wanted = float(text.removesuffix("%")) / 100 if text.endswith("%") else number("precision", given)
    except (TypeError, ValueError):
        wanted = math.nan
    if not 0 < wanted < math.inf:
        raise ValueError(
            f"precision={shown(given)} will not do; a half-width such as 0.01 will, or a share such as '3%'"
        )
    return wanted, text.endswith("%")
