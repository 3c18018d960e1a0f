"""What a strategy is: the contract, its parameters and the supports."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from equipoise import moments
from equipoise.arrays import Floats
from equipoise.compiled import jit
from equipoise.inputs import LARGEST, integer, number, positive, probability, shown

_unbiased = jit(moments.unbiased)

Support = Literal["binary"] | tuple[float, float] | None

POOLS = ("none", "max", "mean")
OWNS = ("none", "variance", "frozen")


@dataclass(frozen=True)
class Strategy:
    """
    The base class of all strategies: a rule for the variance to plan with.

    A subclass defines `variance`, and overrides whatever else below differs from the default. `variance`, `floor`,
    `freeze` and `share` are static functions of numbers. They run as plain Python and are compiled as they are, so they
    may use numbers, `math` and functions compiled with Numba, and nothing else. The engine turns the variance into a
    key in the same way for every strategy (`strategies.key`) and pulls the arm with the largest key, the lowest arm
    among equals.

    Attributes
    ----------
    name
        The name under which the strategy is registered.
    warmup
        Every arm gets this many pulls first; `variance` is never called for an arm with fewer samples.
    pool
        What `pooled` is: the "max" or the "mean" of the arms' shares, refreshed on a schedule (`key.next_refresh`), or
        "none" (always 0).
    own
        What `own` is: "none" (always 0), "variance" (the arm's true variance, from `variances`), or "frozen" (what
        `freeze` returned last for this arm; NaN before the first sample).
    uses_mean
        Whether decisions depend on the means of the arms. If not, the Gaussian lemma applies.
    shift_invariant, scale_invariant
        Whether the choices stay the same when one constant is added to every sample, or every sample is multiplied by
        one.

    Notes
    -----
    Simulations on a GPU in single precision are compiled with fast math, where `math.isnan` is always False and
    arithmetic on NaN is undefined. So a strategy with `own = "frozen"` must not compute with `own` before `freeze` has
    set it, and must not rely on `math.isnan(own)` where samples arrive one at a time, as they do in a simulation;
    `count` tells whether this is the first sample. Returning `own` unchanged is fine.
    """

    name: ClassVar[str] = ""
    warmup: ClassVar[int] = 2
    pool: ClassVar[Literal["none", "max", "mean"]] = "none"
    own: ClassVar[Literal["none", "variance", "frozen"]] = "none"
    uses_mean: ClassVar[bool] = False
    shift_invariant: ClassVar[bool] = True
    scale_invariant: ClassVar[bool] = True

    def params(self, budget: int | None, arms: int, support: Support) -> tuple[float, ...]:
        """
        Return the numbers that the functions below get as `params`.

        It is called again when the budget changes.

        `budget` is a number of samples: where samples have costs, how many the money buys if it is spread evenly.
        """
        return ()

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: float, own: float, params: tuple[float, ...]) -> float:
        """Return the variance to plan with for an arm with count >= warmup samples."""
        raise NotImplementedError

    @staticmethod
    def floor(t: float, arms: float, params: tuple[float, ...]) -> float:
        """
        Return the number of pulls below which an arm goes first, after t pulls in all.

        The least pulled arm goes first, the lowest among equals.
        """
        return 0.0

    @staticmethod
    def freeze(
        sample: float, count: float, mean: float, m2: float, pooled: float, own: float, params: tuple[float, ...]
    ) -> float:
        """
        Return the number to keep for an arm after a sample, if `own` is "frozen".

        The moments include the sample. If samples were told as moments only, `sample` is NaN.
        """
        return own

    @staticmethod
    def share(count: float, mean: float, m2: float, own: float, params: tuple[float, ...]) -> float:
        """
        Return what an arm with two or more samples adds to the pool.

        The default is its unbiased variance.
        """
        return _unbiased(count, m2)

    def has_floor(self) -> bool:
        """Whether the strategy has a floor of its own."""
        return type(self).floor is not Strategy.floor

    def rescaled(self, c: float) -> Strategy:
        """Return the strategy that does on samples times c what this one does."""
        if self.scale_invariant:
            return self
        raise NotImplementedError(f"{self.name} does not define how its parameters change with the unit of the samples")


def initial_own(strategy: Strategy, arms: int, variances: Floats | None = None) -> Floats:
    """
    Return the own number that each arm starts with.

    It is 0, NaN for nothing frozen yet, or the variance that an oracle goes by: those of the strategy or, if it has
    none, `variances`.
    """
    if strategy.own != "variance":
        return np.full(arms, math.nan if strategy.own == "frozen" else 0.0)
    known = getattr(strategy, "variances", None)
    if known is None:
        known = variances
    if known is None:
        raise ValueError(f"{strategy.name} needs the true variances of the arms, as in Oracle(variances=[4, 1])")
    if len(known) != arms:
        raise ValueError(f"variances must have one value for each of the {arms:,} arms, got {len(known):,}")
    return np.array(known, dtype=float)


# ---- parameters


def require_positive(strategy: Strategy, *names: str) -> None:
    """Refuse a parameter that is given and is not a positive finite number."""
    for name in names:
        value = getattr(strategy, name)
        if value is not None:
            _keep(strategy, name, positive(f"{strategy.name}: {name}", value))


def require_probability(strategy: Strategy, name: str) -> None:
    """Refuse a parameter that is given and is not strictly between 0 and 1."""
    value = getattr(strategy, name)
    if value is not None:
        _keep(strategy, name, probability(f"{strategy.name}: {name}", value))


def require_pulls(strategy: Strategy, name: str) -> None:
    """Refuse a number of pulls that is given and is not an integer of at least 2."""
    value = getattr(strategy, name)
    if value is not None:
        object.__setattr__(strategy, name, integer(f"{strategy.name}: {name}", value, 2))


def _keep(strategy: Strategy, name: str, value: float) -> None:
    """Store a checked parameter as a plain number, so that a NumPy scalar prints and is saved like any other."""
    if type(getattr(strategy, name)) not in (int, float):
        object.__setattr__(strategy, name, value)


# ---- supports


def check_support(support: Any) -> Support:
    """Return a support with its ends as floats, or refuse what is not one."""
    if support is None or (isinstance(support, str) and support == "binary"):
        return support  # type: ignore[return-value]
    wrong = f"support must be 'binary', (low, high) with low < high, or None, got {shown(support)}"
    if isinstance(support, str) or not hasattr(support, "__len__") or len(support) != 2:
        raise ValueError(wrong)
    low, high = (number("each end of the support", end) for end in support)
    if not -LARGEST <= low < high <= LARGEST:
        raise ValueError(wrong)
    return low, high


def width(support: Support) -> float | None:
    """Return the width of a bounded support, or None if there is no support."""
    if support is None:
        return None
    return 1.0 if support == "binary" else float(support[1]) - float(support[0])
