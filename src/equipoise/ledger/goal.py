"""What a study is asked to reach: the level of its intervals and, if wanted, a precision for each mean."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, get_args

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import by_arm, choice, number, number_in, probability, shown
from equipoise.base.tables import PLAIN, Unit, amount
from equipoise.intervals.stop_rule import Targets
from equipoise.ledger.evidence import LEVEL
from equipoise.problem import Contrasts, Stratified
from equipoise.problem.objective import objective as objective_of
from equipoise.strategies import EvenSplit, Strategy

# Which intervals decide when an arm is known well enough: those for studies that stop by widths alone, or confidence
# sequences, which hold whenever one looks.
Stopping = Literal["fixed-width", "anytime"]
STOPPING: Final[tuple[Stopping, ...]] = get_args(Stopping)

# Weights between these are accepted by an objective.
WEIGHTS: Final = (1e-99, 1e99)


@dataclass(frozen=True, eq=False)
class Sums:
    """
    The weighted sums of means that a precision is asked of.

    Attributes
    ----------
    weights
        With a row for each sum and a column for each arm.
    noun, every
        What one of them is called, and what all of them are, such as "difference" and "every difference to control".
    combined
        Whether it is the mean of strata.
    """

    weights: Floats
    noun: str
    every: str
    combined: bool = False


@dataclass(frozen=True)
class Precision:
    """
    The margin that is wanted of each arm's interval: it is to lie within the mean ± this.

    Attributes
    ----------
    wanted, relative
        One of each for every arm, or every sum, in order: a half-width, or a share of its mean where `relative` is
        true.
    level
        The probability with which all intervals hold.
    interval
        Which intervals: "fixed-width" or "anytime".
    sums
        The weighted sums of means that it is asked of; None if it is asked of the arms' means.
    """

    wanted: tuple[float, ...]
    relative: tuple[bool, ...]
    level: float
    interval: Stopping = "fixed-width"
    sums: Sums | None = None

    @cached_property
    def asked(self) -> Targets:
        """The targets of the arms, or sums, whatever their means."""
        wanted = np.array(self.wanted)
        return Targets(np.where(self.relative, 0.0, wanted), np.where(self.relative, wanted, 0.0))

    def targets(self, means: Floats) -> Floats:
        """Return the wanted half-widths for arms, or sums, with these means."""
        return self.asked.half_widths(means)

    @property
    def alike(self) -> bool:
        """Whether the same half-width is wanted of every arm, whatever its mean."""
        return len(set(self.wanted)) == 1 and not any(self.relative)

    def followed(self, strategy: Strategy, options: Mapping[str, Any]) -> bool:
        """Return whether a study with this strategy and these options makes errors small relative to the targets."""
        # Weights or another objective that the user gives take precedence, and so does sampling every arm in turn.
        if options.get("weights") is not None or isinstance(strategy, EvenSplit):
            return False
        objective = options.get("objective", math.inf)
        if self.sums is not None:
            return not self.sums.combined and not isinstance(objective, Stratified) and objective == 1
        return objective == math.inf and not self.alike

    def judging_weights(self, means: Floats) -> tuple[float, ...] | None:
        """
        Return 1 over the squares of the targets: weights that express errors relative to them.

        An arm whose mean is unknown has the largest of the weights. None where no target is known, or where one is
        zero.
        """
        with np.errstate(divide="ignore", over="ignore"):
            weights = np.clip(1 / np.square(self.targets(means)), *WEIGHTS)
        unknown = np.isnan(weights)
        most = weights[~unknown].max(initial=0)
        return tuple(np.where(unknown, most, weights).tolist()) if 0 < most < WEIGHTS[1] else None

    def words(self, whose: str, unit: Unit = PLAIN) -> str:
        """Return the target in words, such as "±0.5" or "±3% of its mean"; empty where the arms' targets differ."""
        if len(set(zip(self.wanted, self.relative, strict=True))) > 1:
            return ""
        wanted, relative = self.wanted[0], self.relative[0]
        if not relative:
            return f"±{unit.size(wanted, 6)}"
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
            raise InvalidInput(f"precision must have the level of the goal, {self.level}, got {self.precision.level}")
        if self.by_precision and self.precision is None:
            raise InvalidInput("by_precision needs a precision")


def precision(
    given: Any,
    level: float,
    arms: Sequence[Hashable],
    interval: Stopping = "fixed-width",
    objective: Any = math.inf,
) -> Precision:
    """
    Return the precision that a user asked for.

    Parameters
    ----------
    given
        A half-width, a share of the mean such as "3%", or one of these for each arm: by name, where it has labels (a
        mapping, a pandas Series), else in the arms' order. Or `Contrasts`.
    level
        The probability with which all intervals hold.
    arms
        The arms' names.
    interval
        Which intervals decide: "fixed-width" or "anytime".
    objective
        That of the study. Where it is `Stratified`, one half-width or share is that of the combined mean.
    """
    if isinstance(given, Contrasts):
        weights = given.weights(arms)
        asked = Sums(weights, given.noun, f"every {given.words}")
        same = (given.half_width,) * len(weights)
        return Precision(same, (False,) * len(weights), probability("level", level), check_stopping(interval), asked)
    one = isinstance(given, str | bytes) or not isinstance(given, Iterable) or getattr(given, "ndim", 1) == 0
    if one and isinstance(objective, Stratified):
        shares = np.array([objective_of(arms, objective).shares])
        half, share = _half_width(given)
        asked = Sums(shares, "combined mean", "the combined mean", combined=True)
        return Precision((half,), (share,), probability("level", level), check_stopping(interval), asked)
    found = [_half_width(value) for value in ([given] * len(arms) if one else by_arm("precision", given, arms))]
    wanted, relative = zip(*found, strict=True)
    return Precision(wanted, relative, probability("level", level), check_stopping(interval))


def check_stopping(given: Any) -> Stopping:
    """Return which intervals are to decide, or refuse what is none."""
    choice("interval", given, STOPPING)
    return given  # type: ignore[no-any-return]


def _half_width(given: Any) -> tuple[float, bool]:
    text = given.strip() if isinstance(given, str) else ""
    try:
        wanted = number_in(text.removesuffix("%")) / 100 if text.endswith("%") else number("precision", given)
    except (TypeError, ValueError):
        wanted = math.nan
    if isinstance(given, bool | np.bool_) or not 0 < wanted < math.inf:
        raise InvalidInput(
            f"precision must be a positive number such as 0.01 or a share of the mean such as '3%', got {shown(given)}"
        )
    return wanted, text.endswith("%")
