"""
The five kinds of intervals behind one interface.

There is one state for all arms, updated one sample at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import LARGEST, choice, integer, number, probability, shown
from equipoise.base.tables import percent
from equipoise.compiled import jit
from equipoise.intervals import (
    asymptotic,
    binary_betting,
    bounded_betting,
    contrast_betting,
    contrasts,
    fixed_n,
    fixed_width,
    fixed_width_sums,
    pool_betting,
)
from equipoise.strategies import Support, check_support

Kind = Literal["betting", "asymptotic", "fixed-n", "fixed-width"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

# What each kind promises, in words that follow "95% confidence sequences, ". How far the asymptotic kind is off, on
# skewed arms in particular, is in docs/explanation/intervals.md.
PROMISES: Final[dict[Kind, str]] = {
    "betting": "simultaneous over arms and valid at any time (betting; guaranteed for any number of samples)",
    "asymptotic": "simultaneous over arms and valid at any time (asymptotic; approximate below ~50 samples)",
    "fixed-n": "simultaneous over arms, not valid under adaptive stopping (fixed n)",
    "fixed-width": "simultaneous over arms, valid where width alone decides when to stop (fixed width; approximate)",
}

# The number of samples of an arm at which the asymptotic kind is narrowest, if there is no budget.
TARGET = 1000


class KindFunctions(NamedTuple):
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
    Return the narrowest kind that is valid for a support (docs/explanation/intervals.md).

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


def describe(kind: Kind, level: float, over: str = "arms") -> str:
    """Return one sentence on what intervals of this kind and level are: simultaneous over arms or pairs, or alone."""
    noun = "confidence intervals" if kind in ("fixed-n", "fixed-width") else "confidence sequences"
    promise = PROMISES[kind].replace("simultaneous over arms", f"simultaneous over {over}")
    if not over:
        noun = noun.removesuffix("s")
        promise = PROMISES[kind].removeprefix("simultaneous over arms").lstrip(", ").removeprefix("and ")
    return f"{percent(probability('level', level))} {noun}, {promise}."


def describe_each(kind: Kind, level: float, fixed: Bools, over: str = "arms", others: str = "") -> str:
    """
    Return a sentence or two on intervals of this kind and level, some of which may be of fixed width instead.

    `others` names those that are not, such as "a and b"; by default they are marked with an asterisk.
    """
    if fixed.all() and len(fixed):
        kind = "fixed-width"
    if kind == "fixed-width" or not fixed.any():
        return describe(kind, level, over)
    promise = describe(kind, level, over).split(", ", 1)[1]
    others = others or f"{over.capitalize()} marked *"
    return f"{describe('fixed-width', level, over)} {others}: confidence sequences, {promise}"


@dataclass(frozen=True)
class Intervals:
    """
    Intervals of one kind for the means of some arms.

    Parameters
    ----------
    arms
        The number of arms; `bounds` holds for all of them simultaneously.
    support
        "binary", (low, high) or None. Betting needs a bounded one.
    kind
        "betting", "asymptotic", "fixed-n" or "fixed-width". The default is `default_kind(support)`.
    level
        The level that the intervals are tuned to. Intervals at any other level are valid too.
    budget
        The number of samples planned over all arms. It tunes the asymptotic kind to budget/arms samples of an arm (to
        1,000 without a budget), and nothing else. The tuning is fixed before the first sample: raising the budget later
        must not change it.
    populations
        The sizes of finite populations, by arm, that samples are drawn from without replacement, for betting on bounded
        arms. Of other kinds and supports, only studies have intervals for finite populations.

    Notes
    -----
    The state is an array with a row of floats for each arm: 2 for betting on binary arms, 33 for betting on bounded
    ones, 132 if these are finite populations, 5 for fixed width, 4 for the others. `update`
    takes O(1).

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
    populations: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "arms", integer("arms", self.arms, 1))
        object.__setattr__(self, "support", check_support(self.support))
        if self.kind is None:
            object.__setattr__(self, "kind", default_kind(self.support))
        choice("kind", self.kind, KINDS)
        if self.support is None and self.kind == "betting":
            raise InvalidInput(
                f"kind={self.kind!r} needs a bounded support, 'binary' or (low, high); without one use 'asymptotic'"
            )
        object.__setattr__(self, "level", probability("level", self.level))
        if self.budget is not None:
            object.__setattr__(self, "budget", integer("budget", self.budget, 1))
        if self.populations is not None:
            self._check_populations(self.populations)

    def _check_populations(self, sizes: tuple[float, ...]) -> None:
        if self.kind != "betting" or self.support == "binary":
            raise InvalidInput(
                f"populations need kind='betting' and a support (low, high), got kind={self.kind!r} and "
                f"support={self.support!r}"
            )
        if len(sizes) != self.arms or not all(size >= 1 for size in sizes):
            raise InvalidInput(f"populations must be a positive size for each of {self.arms} arms, got {shown(sizes)}")

    @property
    def promise(self) -> str:
        """What these intervals promise, in words; `describe` returns a whole sentence."""
        return PROMISES[self.kind]

    @property
    def target(self) -> float:
        """The number of samples of an arm at which the asymptotic kind is narrowest."""
        return TARGET if self.budget is None else max(self.budget / self.arms, asymptotic.START)

    @property
    def limits(self) -> tuple[float, float]:
        """The ends of the support; infinite without one."""
        return _ends(self.support)

    @cached_property
    def kernel(self) -> KindFunctions:
        """The compiled functions of this kind, with their settings."""
        alpha = _alpha(self.level) / self.arms
        low, high = _ends(self.support)
        match self.kind:
            case "asymptotic":
                tuned = asymptotic.settings(low, high, self.target, alpha)
                return KindFunctions(asymptotic.update, asymptotic.bounds, asymptotic.COLUMNS, tuned)
            case "fixed-n":
                bounds = fixed_n.clopper_pearson if self.support == "binary" else fixed_n.student
                return KindFunctions(fixed_n.update, bounds, fixed_n.COLUMNS, (low, high))
            case "fixed-width":
                known = low, high, float(self.support == "binary")
                return KindFunctions(fixed_width.update, fixed_width.bounds, fixed_width.COLUMNS, known)
        room: Any = binary_betting if self.support == "binary" else bounded_betting
        room = room if self.populations is None else pool_betting
        return KindFunctions(room.update, room.bounds, room.COLUMNS, room.settings(low, high - low, alpha))

    def start(self, places: Ints | None = None) -> Floats:
        """Return the state before the first sample, with a row for each arm, or for those at some places."""
        state = np.zeros((self.arms if places is None else len(places), self.kernel.columns))
        if self.populations is not None:
            sizes = np.array(self.populations, float)
            state[:, pool_betting.SIZE] = sizes if places is None else sizes[places]
        return state

    def update(self, state: Floats, arm: int, x: float) -> None:
        """Add a sample of an arm to the state, in place and in O(1)."""
        value = number("x", x)
        low, high = _ends(self.support)
        # NaN is in no range.
        if not max(low, -LARGEST) <= value <= min(high, LARGEST) or (self.support == "binary" and 0 < value < 1):
            wanted = "a finite number" if self.support is None else f"in the support {self.support!r}"
            raise InvalidInput(f"x must be {wanted}, got {shown(x)}")
        row = state[self._arm(arm)]
        if self.populations is not None and row[pool_betting.COUNT] >= row[pool_betting.SIZE]:
            raise InvalidInput(f"all {row[pool_betting.SIZE]:,.0f} items of arm {arm} have been drawn")
        self.kernel.update(state, arm, value, self.kernel.settings)

    def bounds(self, state: Floats, level: float | None = None) -> tuple[Floats, Floats]:
        """Return the lower and upper ends by arm, simultaneous at this level."""
        if state.shape != (self.arms, self.kernel.columns):
            raise InvalidInput(f"state must have the shape of start(), {self.start().shape}, got {state.shape}")
        return self.bounds_at(state, _alpha(self._level(level)) / self.arms)

    def alone(self, state: Floats, arm: int, level: float | None = None) -> Interval:
        """Return the interval of one arm alone, chosen before any sample was seen."""
        return self._interval(state, arm, _alpha(self._level(level)))

    def contrast(self, state: Floats, weights: Mapping[int, float], level: float | None = None) -> Interval:
        """
        Return an interval for a weighted sum of the arms' means, as {0: 1, 1: -0.5, 2: -0.5}.

        The weights must have been chosen before any sample was seen. The interval is that of one sequence for the sum
        itself (docs/explanation/intervals.md).
        """
        places = np.array([[self._arm(arm) for arm in weights]])
        c = np.array([[number("a weight", weight) for weight in weights.values()]])
        if not np.isfinite(c).all() or not c.any():
            raise InvalidInput(f"weights must be finite and not all zero, got {shown(weights)}")
        some = c[0] != 0
        low, high = self.contrasts(state, places[:, some], c[:, some], _alpha(self._level(level)))
        return Interval(float(low[0]), float(high[0]))

    def difference(self, state: Floats, arm: int, other: int, level: float | None = None) -> Interval:
        """
        Return an interval for the difference of two means, the first minus the second.

        The pair must have been chosen before any sample was seen.
        """
        if self._arm(arm) == self._arm(other):
            raise InvalidInput(f"arm and other must be different arms, got {arm} twice")
        return self.contrast(state, {arm: 1.0, other: -1.0}, level)

    def against(self, state: Floats, control: int, level: float | None = None) -> tuple[Floats, Floats]:
        """
        Return intervals for the difference of each mean from the control's.

        They are simultaneous at this level (Bonferroni).

        The lower and the upper ends, by arm. The control's own difference is zero.
        """
        control = self._arm(control)
        below, above = np.zeros((2, self.arms))
        others = np.flatnonzero(np.arange(self.arms) != control)
        if len(others):
            places = np.column_stack([others, np.full(len(others), control)])
            alpha = _alpha(self._level(level)) / len(others)
            below[others], above[others] = self.contrasts(state, places, np.tile([1.0, -1.0], (len(others), 1)), alpha)
        return below, above

    def contrasts(
        self, state: Floats, places: Ints, weights: Floats, alpha: float, deviations: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """
        Return the lower and upper ends of several contrasts, each at level 1 - alpha.

        Parameters
        ----------
        state
            With a row for each arm, or for some of them.
        places, weights
            With a row for each contrast: the rows of its arms in the state, and their weights, none of them zero.
        deviations
            Standard deviations to use instead of those observed, by row of the state.
        """
        if places.shape[1] > 1 and self.kind == "betting":
            low, width = self.kernel.settings
            rows = contrast_betting.of_binary(state) if self.support == "binary" else state
            arms = contrast_betting.BOUNDED if self.populations is None else contrast_betting.POOLS
            below, above = arms.bounds(rows, places, weights, alpha)
            shift = low * weights.sum(1)
            return shift + width * below, shift + width * above
        if places.shape[1] > 1 and (self.kind == "asymptotic" or (self.kind == "fixed-n" and self.support != "binary")):
            return self._around_the_means(state, places, weights, alpha, deviations)
        if self.kind == "fixed-width":
            return self.sums(state, places, weights, alpha, np.full(len(state), math.inf))
        share = alpha if self.kind == "fixed-n" else alpha / places.shape[1]
        ends = self.bounds_at(state, share)
        if self.kind == "fixed-n":
            means = state[:, fixed_n.SHIFT] + state[:, fixed_n.MEAN]
            return contrasts.newcombe(weights, means[places], ends[0][places], ends[1][places])
        return contrasts.box(weights, ends[0][places], ends[1][places])

    def _around_the_means(
        self, state: Floats, places: Ints, weights: Floats, alpha: float, deviations: Floats | None
    ) -> tuple[Floats, Floats]:
        """
        Return the ends of contrasts whose intervals are symmetric, within the support.

        Those of an arm with fewer than START samples combine the arms' intervals.
        """
        counts, means = state[:, fixed_n.COUNT], state[:, fixed_n.SHIFT] + state[:, fixed_n.MEAN]
        if deviations is None:
            deviations = np.sqrt(state[:, fixed_n.M2] / np.maximum(counts - 1, 1))
        start = asymptotic.START if self.kind == "asymptotic" else 2
        enough = (counts[places] >= start).all(1)
        clocks, spreads = np.maximum(counts, start)[places], deviations[places]
        if self.kind == "asymptotic":
            half = contrasts.asymptotic(weights, clocks, spreads, self.kernel.settings[asymptotic.RHO2], alpha)
        else:
            half = contrasts.welch(weights, clocks, spreads**2, alpha)
        centre, half = (weights * means[places]).sum(1), np.where(enough, half, math.inf)
        low, high = centre - half, centre + half
        if self.kind == "asymptotic" and not enough.all():
            few = places[~enough]
            ends = self.bounds_at(asymptotic.with_deviations(state, deviations), alpha / places.shape[1])
            low[~enough], high[~enough] = contrasts.box(weights[~enough], ends[0][few], ends[1][few])
        least, most = contrasts.box(weights, *_ends(self.support))
        return np.maximum(low, least), np.minimum(high, most)

    def sums(self, state: Floats, places: Ints, weights: Floats, alpha: float, sizes: Floats) -> tuple[Floats, Floats]:
        """
        Return the ends of fixed-width intervals, within the support; all of that where they cannot be trusted.

        `sizes` are those of the populations, by row of the state, infinite where there are none.
        """
        dense = np.zeros((len(places), len(state)))
        np.put_along_axis(dense, places, weights, axis=1)
        found = fixed_width_sums.half_widths(dense, state, sizes, alpha, self.support == "binary")
        centre = dense @ (state[:, fixed_width.SHIFT] + state[:, fixed_width.MEAN])
        half = np.where(found.trusted, found.plain, math.inf)
        least, most = contrasts.box(weights, *_ends(self.support))
        return np.maximum(centre - half, least), np.minimum(centre + half, most)

    def bounds_at(self, state: Floats, alpha: float) -> tuple[Floats, Floats]:
        """Return the lower and upper ends by row of the state, which may be of some arms; each at level 1 - alpha."""
        low, high = np.empty((2, len(state)))
        _over_arms(self.kernel.bounds)(state, alpha, self.kernel.settings, low, high)
        return low, high

    def _interval(self, state: Floats, arm: int, alpha: float) -> Interval:
        return Interval(*self.kernel.bounds(state[self._arm(arm)], alpha, self.kernel.settings))

    def _level(self, level: float | None) -> float:
        return self.level if level is None else level

    def _arm(self, arm: int) -> int:
        if not 0 <= integer("arm", arm, 0) < self.arms:
            raise InvalidInput(f"arm must be between 0 and {self.arms - 1}, got {shown(arm)}")
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
