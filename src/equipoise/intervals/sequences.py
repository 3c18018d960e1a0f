"""
The four kinds of intervals behind one interface.

There is one state for all arms, updated one sample at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np

from equipoise.arrays import Floats
from equipoise.compiled import jit
from equipoise.inputs import LARGEST, choice, integer, number, probability, shown
from equipoise.intervals import asymptotic, binary_betting, bounded_betting, empirical_bernstein, fixed_n
from equipoise.strategies import Support, check_support
from equipoise.tables import percent

Kind = Literal["empirical-bernstein", "betting", "asymptotic", "fixed-n"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

# What each kind promises, in words that follow "95% confidence sequences, ". How far the asymptotic kind is off, on
# skewed arms in particular, is in docs/intervals.md.
PROMISES: Final[dict[Kind, str]] = {
    "empirical-bernstein": (
        "simultaneous over arms and valid at any time (empirical Bernstein; guaranteed for any number of samples)"
    ),
    "betting": "simultaneous over arms and valid at any time (betting; guaranteed for any number of samples)",
    "asymptotic": "simultaneous over arms and valid at any time (asymptotic; approximate below ~50 samples)",
    "fixed-n": "simultaneous over arms, not valid under adaptive stopping (fixed n)",
}

# The number of samples of an arm at which the asymptotic kind is narrowest, if there is no budget.
TARGET = 1000


class Kernel(NamedTuple):
    """The compiled functions of a kind, for loops that hold the state themselves."""

    update: Callable[[Floats, int, float, tuple[float, ...]], None]
    bounds: Callable[[Floats, float, tuple[float, ...]], tuple[float, float]]
    columns: int
    settings: tuple[float, ...]


class Interval(NamedTuple):
    """The two ends of an interval."""

    low: float
    high: float


def default_kind(support: Support) -> Kind:
    """
    Return the narrowest kind that is valid for a support (docs/intervals.md).

    It is betting for binary and bounded arms. Without a support it is the asymptotic kind, since no other confidence
    sequence is valid then.
    """
    return "asymptotic" if check_support(support) is None else "betting"


def simultaneous(level: float, K: int) -> float:
    """
    Return the level of each of K intervals that hold simultaneously at `level`.

    It is 1 - (1 - level)/K.

    This is the union bound (Bonferroni), which is valid however the arms depend on one another, as they do under an
    adaptive strategy.
    """
    return 1 - _alpha(level) / integer("K", K, 1)


def describe(kind: Kind, level: float) -> str:
    """Return one sentence that says what intervals of this kind and level are."""
    noun = "confidence intervals" if kind == "fixed-n" else "confidence sequences"
    return f"{percent(probability('level', level))} {noun}, {PROMISES[kind]}."


@dataclass(frozen=True)
class Intervals:
    """
    Intervals of one kind for the means of some arms.

    Parameters
    ----------
    arms
        The number of arms; `bounds` holds for all of them simultaneously.
    support
        "binary", (low, high) or None. Betting and empirical Bernstein need a bounded one.
    kind
        "betting", "empirical-bernstein", "asymptotic" or "fixed-n". The default is `default_kind(support)`.
    level
        The level that the intervals are tuned to. Intervals at any other level are valid too.
    budget
        The number of samples planned over all arms. It tunes the asymptotic kind to budget/arms samples of an arm (to
        1,000 without a budget), and nothing else. The tuning is fixed before the first sample: raising the budget later
        must not change it.

    Notes
    -----
    The state is an array with a row of floats for each arm: 2 for betting on binary arms, 33 for betting on bounded
    ones, 6 for empirical Bernstein, 4 for the others. `update` takes O(1).

    A confidence sequence covers the mean at every length of one stream of samples, each of which has that mean given
    those before. The samples of an arm in the order of asking are such a stream, whatever the strategy did; in the
    order of arrival they need not be: if large values take longer, the first to arrive are too small. So the samples
    of an arm must be passed to `update` in the order in which they were asked for, and none may be left out because of
    its value. Studies do this (`study.result().intervals()`). Values from elsewhere, which may have been selected, must
    not be passed in.

    Examples
    --------
    >>> from equipoise.intervals import Intervals
    >>> poll = Intervals(arms=2, support="binary")
    >>> state = poll.start()
    >>> for x in [1, 0, 0, 1, 0, 0, 0, 0, 1, 0] * 10:
    ...     poll.update(state, 0, x)
    >>> low, high = poll.bounds(state)
    >>> print(f"{low[0]:.3f} to {high[0]:.3f}; {low[1]:.0f} to {high[1]:.0f}")
    0.159 to 0.473; 0 to 1
    >>> poll.promise
    'simultaneous over arms and valid at any time (betting; guaranteed for any number of samples)'
    """

    arms: int
    support: Support = None
    kind: Kind = None  # type: ignore[assignment]
    level: float = 0.95
    budget: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "arms", integer("arms", self.arms, 1))
        object.__setattr__(self, "support", check_support(self.support))
        if self.kind is None:
            object.__setattr__(self, "kind", default_kind(self.support))
        choice("kind", self.kind, KINDS)
        if self.support is None and self.kind in ("betting", "empirical-bernstein"):
            raise ValueError(
                f"kind={self.kind!r} needs a bounded support, 'binary' or (low, high); without one use 'asymptotic'"
            )
        object.__setattr__(self, "level", probability("level", self.level))
        if self.budget is not None:
            object.__setattr__(self, "budget", integer("budget", self.budget, 1))

    @property
    def promise(self) -> str:
        """What these intervals promise, in words; `describe` returns a whole sentence."""
        return PROMISES[self.kind]

    @cached_property
    def kernel(self) -> Kernel:
        """The compiled functions of this kind, with their settings."""
        alpha = _alpha(self.level) / self.arms
        low, high = _ends(self.support)
        match self.kind:
            case "asymptotic":
                target = TARGET if self.budget is None else max(self.budget / self.arms, asymptotic.START)
                tuned = asymptotic.settings(low, high, target, alpha)
                return Kernel(asymptotic.update, asymptotic.bounds, asymptotic.COLUMNS, tuned)
            case "fixed-n":
                bounds = fixed_n.clopper_pearson if self.support == "binary" else fixed_n.student
                return Kernel(fixed_n.update, bounds, fixed_n.COLUMNS, (low, high))
        room: Any = empirical_bernstein
        if self.kind == "betting":
            room = binary_betting if self.support == "binary" else bounded_betting
        return Kernel(room.update, room.bounds, room.COLUMNS, room.settings(low, high - low, alpha))

    def start(self) -> Floats:
        """Return the state before the first sample, with a row for each arm."""
        return np.zeros((self.arms, self.kernel.columns))

    def update(self, state: Floats, arm: int, x: float) -> None:
        """Add a sample of an arm to the state, in place and in O(1)."""
        value = number("x", x)
        low, high = _ends(self.support)
        # NaN is in no range.
        if not max(low, -LARGEST) <= value <= min(high, LARGEST) or (self.support == "binary" and 0 < value < 1):
            wanted = "a finite number" if self.support is None else f"in the support {self.support!r}"
            raise ValueError(f"x must be {wanted}, got {shown(x)}")
        self.kernel.update(state, self._arm(arm), value, self.kernel.settings)

    def bounds(self, state: Floats, level: float | None = None) -> tuple[Floats, Floats]:
        """Return the lower and upper ends by arm, simultaneous at this level."""
        return self._bounds(state, _alpha(self._level(level)) / self.arms)

    def alone(self, state: Floats, arm: int, level: float | None = None) -> Interval:
        """Return the interval of one arm alone, chosen before any sample was seen."""
        return self._interval(state, arm, _alpha(self._level(level)))

    def difference(self, state: Floats, arm: int, other: int, level: float | None = None) -> Interval:
        """
        Return an interval for the difference of two means.

        The pair must have been chosen before any sample was seen.

        It combines the two arms' intervals, each at 1 - (1 - level)/2. For a pair that was chosen by its results, or
        for all pairs simultaneously, use the ends of `bounds`: the low end of one arm minus the high end of the other.
        """
        if self._arm(arm) == self._arm(other):
            raise ValueError(f"arm and other must be different arms, got {arm} twice")
        alpha = _alpha(self._level(level)) / 2
        mine, its = self._interval(state, arm, alpha), self._interval(state, other, alpha)
        return Interval(mine.low - its.high, mine.high - its.low)

    def against(self, state: Floats, control: int, level: float | None = None) -> tuple[Floats, Floats]:
        """
        Return intervals for the difference of each mean from the control's.

        They are simultaneous at this level.

        The lower and the upper ends, by arm; they hold whenever those of `bounds` do. The control's own difference is
        zero.
        """
        control = self._arm(control)
        low, high = self.bounds(state, level)
        below, above = low - high[control], high - low[control]
        below[control] = above[control] = 0.0
        return below, above

    def _bounds(self, state: Floats, alpha: float) -> tuple[Floats, Floats]:
        if state.shape != (self.arms, self.kernel.columns):
            raise ValueError(f"state must have the shape of start(), {self.start().shape}, got {state.shape}")
        low, high = np.empty((2, self.arms))
        _over_arms(self.kernel.bounds)(state, alpha, self.kernel.settings, low, high)
        return low, high

    def _interval(self, state: Floats, arm: int, alpha: float) -> Interval:
        return Interval(*self.kernel.bounds(state[self._arm(arm)], alpha, self.kernel.settings))

    def _level(self, level: float | None) -> float:
        return self.level if level is None else level

    def _arm(self, arm: int) -> int:
        if not 0 <= integer("arm", arm, 0) < self.arms:
            raise ValueError(f"arm must be between 0 and {self.arms - 1}, got {shown(arm)}")
        return int(arm)


def _alpha(level: float) -> float:
    return 1 - probability("level", level)


def _ends(support: Support) -> tuple[float, float]:
    if support is None:
        return -math.inf, math.inf
    return (0.0, 1.0) if support == "binary" else support


@cache
def _over_arms(bounds: Any) -> Any:
    """Return a compiled function for the bounds of all arms."""

    def over_arms(state: Any, alpha: float, settings: Any, low: Any, high: Any) -> None:
        for k in range(len(state)):
            low[k], high[k] = bounds(state[k], alpha, settings)

    return jit(over_arms, nogil=True)
