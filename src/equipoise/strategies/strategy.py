"""What a strategy is: the contract, its parameters and the supports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import LARGEST, integer, number, positive, probability, shown

Support = Literal["binary"] | tuple[float, float] | None

Numbers = tuple[float, ...]

# Own numbers that the engine knows.
FILLED_IN = ("variance", "weight")


@dataclass(frozen=True)
class Strategy:
    """
    The base class of all strategies: a rule for the variance to plan with.

    A subclass defines `variance`, and overrides whatever else below differs from the default. `variance`, `floor`,
    `keep`, `share` and `pool` are static functions of numbers and of tuples of numbers. They run as plain Python and
    are compiled as they are, so they may use numbers, `math` and functions compiled with Numba, and nothing else. The
    engine turns the variance into a key in the same way for every strategy (`strategies.key`) and pulls the arm with
    the largest key, the lowest arm among equals.

    Attributes
    ----------
    name
        The name under which the strategy is registered.
    warmup
        Every arm gets this many pulls first; `variance` is never called for an arm with fewer samples.
    own
        The names of the numbers that are kept for each arm; `keep` updates them at every sample. They start at 0,
        except for two that the engine fills in: "variance" is the arm's true variance (from `variances`), and "weight"
        is its weight, so that variances times weights are in the unit of the objective (`Objective.units`).
    sums
        The names of the numbers that are summed over the arms: what `share` returns for each of them.
    pooled
        The names of the numbers that `pool` makes of the sums, on a schedule (`key.next_refresh`). All of them are 0
        until the first time, and a strategy must cope with that.
    uses_mean
        Whether decisions depend on the means of the arms. If not, the Gaussian lemma applies, and `simulate` may move
        an arm that is far from 0 to 0.
    shift_invariant, scale_invariant
        Whether the choices stay the same when one constant is added to every sample, or every sample is multiplied by
        one.

    Notes
    -----
    The functions get `own`, `pooled`, `sums` and `params` as tuples in the order of the names. An empty one is passed
    as a tuple with a single 0, because a compiled tuple cannot be empty.

    Simulations on a GPU in single precision are compiled with fast math, where `math.isnan` is always False. A sample
    is NaN only if samples were told as moments, which does not happen there; the first sample of an arm is the one
    with `count == 1`.
    """

    name: ClassVar[str] = ""
    warmup: ClassVar[int] = 2
    own: ClassVar[tuple[str, ...]] = ()
    sums: ClassVar[tuple[str, ...]] = ()
    pooled: ClassVar[tuple[str, ...]] = ()
    uses_mean: ClassVar[bool] = False
    shift_invariant: ClassVar[bool] = True
    scale_invariant: ClassVar[bool] = True

    def params(self, budget: int | None, arms: int, support: Support) -> Numbers:
        """
        Return the numbers that the functions below get as `params`.

        It is called again when the budget changes.

        `budget` is a number of samples: where samples have costs, how many the money buys if it is spread evenly.
        """
        return ()

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        """Return the variance to plan with for an arm with count >= warmup samples."""
        raise NotImplementedError

    @staticmethod
    def floor(t: float, arms: float, params: Numbers) -> float:
        """
        Return the number of pulls below which an arm goes first, after t pulls in all.

        The least pulled arm goes first, the lowest among equals.
        """
        return 0.0

    @staticmethod
    def keep(
        sample: float, count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers
    ) -> Numbers:
        """
        Return an arm's own numbers after a sample, given those before it.

        The moments include the sample. If several samples were told as moments, `sample` is NaN and `count` has grown
        by their number. A number that the engine fills in, such as "variance", must be returned as it is.
        """
        return own

    @staticmethod
    def share(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> Numbers:
        """Return what an arm with two or more samples adds to the sums; `pooled` are the numbers pooled last time."""
        raise NotImplementedError

    @staticmethod
    def pool(sums: Numbers, arms: float, pooled: Numbers, params: Numbers) -> Numbers:
        """
        Return the pooled numbers, from the sums over the arms with two or more samples and from those before.

        `arms` is how many arms there are in the sums; it may be 0.
        """
        raise NotImplementedError

    def has_floor(self) -> bool:
        """Whether the strategy has a floor of its own."""
        return type(self).floor is not Strategy.floor

    def keeps(self) -> bool:
        """Whether samples change the arms' own numbers."""
        return bool(self.own) and type(self).keep is not Strategy.keep

    def rescaled(self, c: float) -> Strategy:
        """Return the strategy that does on samples times c what this one does."""
        if self.scale_invariant:
            return self
        raise NotImplementedError(f"{self.name} does not define how its parameters change with the unit of the samples")


def zeros(names: tuple[str, ...]) -> Numbers:
    """Return a 0 for each name, and for no name one 0: the tuple that compiled functions get."""
    return (0.0,) * max(len(names), 1)


def initial_own(strategy: Strategy, arms: int, weights: Floats, variances: Floats | None = None) -> Floats:
    """
    Return the own numbers that each arm starts with, one row for each arm.

    They are 0, except for the weight and the true variance: that of the strategy or, if it has none, of `variances`.
    """
    found = np.zeros((arms, len(strategy.own)))
    if "weight" in strategy.own:
        found[:, strategy.own.index("weight")] = weights
    if "variance" in strategy.own:
        known = getattr(strategy, "variances", None)
        if known is None:
            known = variances
        if known is None:
            raise InvalidInput(f"{strategy.name} needs the true variances of the arms, as in Oracle(variances=[4, 1])")
        if len(known) != arms:
            raise InvalidInput(f"variances must have one value for each of the {arms:,} arms, got {len(known):,}")
        found[:, strategy.own.index("variance")] = known
    return found


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
        raise InvalidInput(wrong)
    low, high = (number("each end of the support", end) for end in support)
    if not -LARGEST <= low < high <= LARGEST:
        raise InvalidInput(wrong)
    return low, high


def width(support: Support) -> float | None:
    """Return the width of a bounded support, or None if there is no support."""
    if support is None:
        return None
    return 1.0 if support == "binary" else float(support[1]) - float(support[0])
