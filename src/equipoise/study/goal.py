"""What a study is asked to reach: the level of its intervals and, if wanted, a precision for each mean."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from equipoise.arrays import Bools, Floats
from equipoise.inputs import by_arm, number, probability, shown
from equipoise.strategies import Strategy, Uniform
from equipoise.study.evidence import LEVEL
from equipoise.tables import amount

if TYPE_CHECKING:
    from equipoise.study.result import Result

# Weights between these are accepted by an objective.
_LIMITS: Final = (1e-99, 1e99)


@dataclass(frozen=True)
class Precision:
    """
    The margin that is wanted of each arm's interval: it is to lie within the mean ± this.

    Attributes
    ----------
    wanted, relative
        One of each for every arm, in order: a half-width, or a share of the arm's mean where `relative` is true.
    level
        The probability with which all intervals hold.
    """

    wanted: tuple[float, ...]
    relative: tuple[bool, ...]
    level: float

    def targets(self, means: Floats) -> Floats:
        """Return the wanted half-widths for arms with these means."""
        wanted = np.array(self.wanted)
        return np.where(self.relative, wanted * np.abs(means), wanted)

    @property
    def alike(self) -> bool:
        """Whether the same half-width is wanted of every arm, whatever its mean."""
        return len(set(self.wanted)) == 1 and not any(self.relative)

    def followed(self, strategy: Strategy, options: Mapping[str, Any]) -> bool:
        """Return whether a study with this strategy and these options makes errors small relative to the targets."""
        # Weights or another objective that the user gives take precedence, and so does sampling every arm in turn.
        given = options.get("weights") is not None or options.get("objective", math.inf) != math.inf
        return not given and not self.alike and not isinstance(strategy, Uniform)

    def weights(self, result: Result, closed: Bools | None = None) -> Floats | None:
        """
        Return weights on the losses with which all arms approach their targets together.

        The weight of an arm is 1 over the square of its target, in units of the smallest. A mean with a large standard
        error may be larger than its estimate by that much, so that no target is near zero by chance. An arm whose mean
        is within three standard errors of zero can hardly be known to a share of it: its weight is limited to what
        gives it an even share of the samples. None as long as an arm that is not closed has no standard error.
        """
        means, errors, variances = np.abs(result.means.array), result.plain_errors.array, result.variances.array
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
        # A share of a mean of exactly zero, or of an unknown one, is no target: such an arm has the largest weight.
        weights = np.where(some, weights, weights[some].max())
        return np.asarray(np.maximum(weights / weights.max(), _LIMITS[0]))

    def judging_weights(self, means: Floats) -> tuple[float, ...] | None:
        """
        Return 1 over the squares of the targets: weights that express errors relative to them.

        An arm whose mean is unknown has the largest of the weights. None where no target is known, or where one is
        zero.
        """
        with np.errstate(divide="ignore"):
            weights = np.clip(1 / np.square(self.targets(means)), *_LIMITS)
        unknown = np.isnan(weights)
        most = weights[~unknown].max(initial=0)
        return tuple(np.where(unknown, most, weights).tolist()) if 0 < most < _LIMITS[1] else None

    def words(self, whose: str) -> str:
        """Return the target in words, such as "±0.5" or "±3% of its mean"; empty where the arms' targets differ."""
        if len(set(zip(self.wanted, self.relative, strict=True))) > 1:
            return ""
        wanted, relative = self.wanted[0], self.relative[0]
        if not relative:
            return f"±{amount(wanted, 6)}"
        share = f"±{amount(100 * wanted, 6)}%"
        return f"{share} of {whose}" if whose else share


@dataclass(frozen=True)
class Goal:
    """
    What a study is asked to reach.

    Attributes
    ----------
    level
        The probability with which all intervals hold that are given without a level of their own.
    precision
        The wanted half-widths, at this level; None if no precision was asked for.
    by_precision
        Whether errors are judged relative to the wanted half-widths, as a study does whose weights follow them.
    """

    level: float = LEVEL
    precision: Precision | None = None
    by_precision: bool = False

    def __post_init__(self) -> None:
        if self.precision is not None and self.precision.level != self.level:
            raise ValueError(f"precision must have the level of the goal, {self.level}, got {self.precision.level}")
        if self.by_precision and self.precision is None:
            raise ValueError("by_precision needs a precision")


def until_next_look(samples: int, arms: int) -> int:
    """
    Return after how many more samples to look again whether arms are known well enough.

    A look takes time for each arm: so one a round, or less often where that is a small share of the samples.
    """
    return max(1, arms // 2, samples // 128)


def precision(given: Any, level: float, arms: Sequence[Hashable]) -> Precision:
    """
    Return the precision that a user asked for.

    Parameters
    ----------
    given
        A half-width, a share of the mean such as "3%", or one of these for each arm: by name, where it has labels (a
        mapping, a pandas Series), else in the arms' order.
    level
        The probability with which all intervals hold.
    arms
        The arms' names.
    """
    one = isinstance(given, str | bytes) or not isinstance(given, Iterable) or getattr(given, "ndim", 1) == 0
    found = [_half_width(value) for value in ([given] * len(arms) if one else by_arm("precision", given, arms))]
    wanted, relative = zip(*found, strict=True)
    return Precision(wanted, relative, probability("level", level))


def _half_width(given: Any) -> tuple[float, bool]:
    text = given.strip() if isinstance(given, str) else ""
    try:
        wanted = float(text.removesuffix("%")) / 100 if text.endswith("%") else number("precision", given)
    except (TypeError, ValueError):
        wanted = math.nan
    if not 0 < wanted < math.inf:
        raise ValueError(
            f"precision must be a positive half-width such as 0.01 or a share of the mean such as '3%', "
            f"got {shown(given)}"
        )
    return wanted, text.endswith("%")
