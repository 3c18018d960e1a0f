"""The kinds of intervals behind one face: state for all arms, one sample at a time, bounds when somebody looks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np

from equipoise.arrays import Floats
from equipoise.compiled import jit
from equipoise.inputs import LARGEST, integer, number, shown
from equipoise.intervals import asymptotic, binary_betting, bounded_betting, empirical_bernstein, fixed_n
from equipoise.strategies import Support, check_support

Kind = Literal["empirical-bernstein", "betting", "asymptotic", "fixed-n"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

# What each kind promises, in words to print beside it.
PROMISES: Final[dict[Kind, str]] = {
    "empirical-bernstein": "valid at all times at once, whatever the strategy did",
    "betting": "valid at all times at once, whatever the strategy did",
    "asymptotic": "asymptotic: at all times at once for many samples, not guaranteed for few",
    "fixed-n": "fixed-n: not valid when you look and decide",
}

# The number of samples for which the asymptotic kind is tightest, where no budget says better.
TARGET = 1000


class Kernel(NamedTuple):
    """The compiled arithmetic of a kind, numbers in and numbers out, for loops that hold the state themselves."""

    update: Callable[[Floats, int, float, tuple[float, ...]], None]
    bounds: Callable[[Floats, float, tuple[float, ...]], tuple[float, float]]
    columns: int
    settings: tuple[float, ...]


class Interval(NamedTuple):
    """Two ends."""

    low: float
    high: float


def default_kind(support: Support) -> Kind:
    """
    The kind that is narrowest among those that hold for the support (docs/intervals.md).

    Betting for binary and bounded arms; the asymptotic kind where no support is declared, as then no other is valid
    at all times.
    """
    return "asymptotic" if check_support(support) is None else "betting"


def simultaneous(level: float, K: int) -> float:
    """
    The level at which each of K intervals must hold for all of them to hold at once at `level`: 1 - (1 - level)/K.

    The union bound (Bonferroni): it asks nothing about how the arms depend on one another, which under an adaptive
    strategy they do.
    """
    return 1 - _alpha(level) / integer("K", K, 1)


@dataclass(frozen=True)
class Intervals:
    """
    Intervals for the means of some arms, in one of four kinds.

    Parameters
    ----------
    arms
        How many there are; `bounds` holds for all of them at once.
    support
        "binary", (low, high) or None. Betting and empirical Bernstein need one.
    kind
        "betting", "empirical-bernstein", "asymptotic" or "fixed-n"; by default that of `default_kind(support)`.
    level
        The level to be tuned to. Another may be asked for later, and is as valid.
    budget
        How many samples are planned, over all arms. It tunes the asymptotic kind to budget/arms samples of an arm (to
        1,000 without one), and nothing else. Tuning is fixed before the first sample: a budget that is raised later
        must not change it.

    Notes
    -----
    The state is an array with a row of floats for each arm: 2 for betting on binary arms, 33 for betting on bounded
    ones, 6 for empirical Bernstein, 3 for the others. `update` takes O(1).

    The samples of an arm must come in the order in which they were asked for, none left out for what it is; see
    `InOrder`. Values from elsewhere, for which nobody can say why they and no others are there, do not belong here.

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
    'valid at all times at once, whatever the strategy did'
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
        if self.kind not in KINDS:
            raise ValueError(f"kind={shown(self.kind)} will not do; the kinds are {', '.join(KINDS)}")
        if self.support is None and self.kind in ("betting", "empirical-bernstein"):
            raise ValueError(
                f"kind={self.kind!r} needs a bounded support, as in support='binary' or (low, high); "
                "without one there is 'asymptotic'"
            )
        _alpha(self.level)
        if self.budget is not None:
            object.__setattr__(self, "budget", integer("budget", self.budget, 1))

    @property
    def promise(self) -> str:
        """What these intervals promise, in words."""
        return PROMISES[self.kind]

    @cached_property
    def kernel(self) -> Kernel:
        """The compiled functions of this kind with their settings."""
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
        """The state before the first sample, a row for each arm."""
        return np.zeros((self.arms, self.kernel.columns))

    def update(self, state: Floats, arm: int, x: float) -> None:
        """One more sample of an arm, changed in place, in O(1)."""
        value = number("x", x)
        low, high = _ends(self.support)
        # NaN is in no range.
        if not max(low, -LARGEST) <= value <= min(high, LARGEST) or (self.support == "binary" and 0 < value < 1):
            raise ValueError(f"{shown(x)} is not in the support {self.support!r}; a sample is a finite number in it")
        self.kernel.update(state, self._arm(arm), value, self.kernel.settings)

    def bounds(self, state: Floats, level: float | None = None) -> tuple[Floats, Floats]:
        """The lower and the upper ends, by arm, that hold for all arms at once at this level."""
        return self._bounds(state, _alpha(self._level(level)) / self.arms)

    def alone(self, state: Floats, arm: int, level: float | None = None) -> Interval:
        """The interval of one arm that was chosen before any sample was seen: at the level, for this arm alone."""
        return self._interval(state, arm, _alpha(self._level(level)))

    def difference(self, state: Floats, arm: int, other: int, level: float | None = None) -> Interval:
        """
        The mean of an arm less that of another, for one pair that was chosen before any sample was seen.

        The two sequences at half of 1 - level each, and the ends that are furthest apart. For a pair that was chosen by
        its results, or for all pairs at once, take the ends of `bounds`: low of the one less high of the other.
        """
        if self._arm(arm) == self._arm(other):
            raise ValueError(f"arm {arm} was given twice; a difference is between two arms")
        alpha = _alpha(self._level(level)) / 2
        mine, its = self._interval(state, arm, alpha), self._interval(state, other, alpha)
        return Interval(mine.low - its.high, mine.high - its.low)

    def against(self, state: Floats, control: int, level: float | None = None) -> tuple[Floats, Floats]:
        """
        The mean of each arm less that of the control, lower and upper ends by arm, all at once at this level.

        They hold whenever the ends of `bounds` do. The control's own difference is zero.
        """
        control = self._arm(control)
        low, high = self.bounds(state, level)
        below, above = low - high[control], high - low[control]
        below[control] = above[control] = 0.0
        return below, above

    def _bounds(self, state: Floats, alpha: float) -> tuple[Floats, Floats]:
        if state.shape != (self.arms, self.kernel.columns):
            raise ValueError(f"a state of shape {state.shape} is not one of start(), {self.start().shape}")
        low, high = np.empty((2, self.arms))
        _over_arms(self.kernel.bounds)(state, alpha, self.kernel.settings, low, high)
        return low, high

    def _interval(self, state: Floats, arm: int, alpha: float) -> Interval:
        return Interval(*self.kernel.bounds(state[self._arm(arm)], alpha, self.kernel.settings))

    def _level(self, level: float | None) -> float:
        return self.level if level is None else level

    def _arm(self, arm: int) -> int:
        if not 0 <= integer("arm", arm, 0) < self.arms:
            raise ValueError(f"arm={arm!r} will not do; there are arms 0 to {self.arms - 1}")
        return int(arm)


def _alpha(level: float) -> float:
    if not (isinstance(level, int | float) and 0 < level < 1):
        raise ValueError(f"level={shown(level)} will not do; it must lie strictly between 0 and 1, as 0.95 does")
    return 1 - level


def _ends(support: Support) -> tuple[float, float]:
    if support is None:
        return -math.inf, math.inf
    return (0.0, 1.0) if support == "binary" else support


@cache
def _over_arms(bounds: Any) -> Any:
    """The bounds of every arm, compiled."""

    def over_arms(state: Any, alpha: float, settings: Any, low: Any, high: Any) -> None:
        for k in range(len(state)):
            low[k], high[k] = bounds(state[k], alpha, settings)

    return jit(over_arms, nogil=True)
