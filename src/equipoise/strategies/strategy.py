"""What a strategy is, and the register of them."""

from __future__ import annotations

import difflib
import inspect
import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from equipoise import moments
from equipoise.arrays import Floats
from equipoise.compiled import jit
from equipoise.errors import EquipoiseError
from equipoise.inputs import LARGEST, number, shown

_unbiased = jit(moments.unbiased)

Support = Literal["binary"] | tuple[float, float] | None


@dataclass(frozen=True)
class Strategy:
    """
    The base of every strategy: a rule for the variance to plan with.

    A subclass gives `variance`, and whatever else below differs from the default. `variance`, `floor`, `freeze` and
    `share` are static functions of numbers; they run as plain Python and are compiled as they stand, so they may use
    `math` and functions compiled with Numba, and nothing else. The engine turns the variance into a key, the same way
    for every strategy (`strategies.key`), and pulls the arm with the largest key, the lowest arm among equals.

    Attributes
    ----------
    name
        The name it is registered under.
    warmup
        Every arm gets this many pulls first; `variance` is not asked about an arm with fewer samples than that.
    pool
        What `pooled` is: "max" or "mean" of the arms' shares, refreshed now and then, or "none" (0).
    own
        What `own` is: "none" (0), "variance" (the arm's true variance, from `variances`), or "frozen" (what `freeze`
        returned for this arm last; NaN before the first sample).
    uses_mean
        Whether a decision depends on an arm's mean. If not, the Gaussian lemma applies.
    shift_invariant, scale_invariant
        Whether the choices stay the same when every sample is shifted, or multiplied, by one number.
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
        The numbers handed to the functions below as `params`; set anew when the budget changes.

        `budget` is a number of samples: where samples have costs, what the money buys when it is spread evenly.
        """
        return ()

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: float, own: float, params: tuple[float, ...]) -> float:
        """The variance to plan with for an arm with these samples; count >= warmup."""
        raise NotImplementedError

    @staticmethod
    def floor(t: float, arms: float, params: tuple[float, ...]) -> float:
        """After t pulls, an arm with fewer pulls than this goes first: the least pulled, the lowest among equals."""
        return 0.0

    @staticmethod
    def freeze(
        sample: float, count: float, mean: float, m2: float, pooled: float, own: float, params: tuple[float, ...]
    ) -> float:
        """
        The number to keep for an arm after a sample of it came in, where `own` is "frozen".

        The moments are those with the sample. Of samples that came as moments alone, `sample` is NaN.
        """
        return own

    @staticmethod
    def share(count: float, mean: float, m2: float, own: float, params: tuple[float, ...]) -> float:
        """What an arm with these samples, two or more, adds to what is pooled: its unbiased variance."""
        return _unbiased(count, m2)

    def has_floor(self) -> bool:
        """Whether the strategy has a floor of its own."""
        return type(self).floor is not Strategy.floor

    def rescaled(self, c: float) -> Strategy:
        """The strategy that chooses on samples times c as this one does on the samples."""
        if self.scale_invariant:
            return self
        raise NotImplementedError(f"{self.name} does not say how its parameters follow the unit of the samples")


POOLS = ("none", "max", "mean")
OWNS = ("none", "variance", "frozen")
_FUNCTIONS = {
    "variance": "(count, mean, m2, pooled, own, params)",
    "floor": "(t, arms, params)",
    "freeze": "(sample, count, mean, m2, pooled, own, params)",
    "share": "(count, mean, m2, own, params)",
}


def check_strategy(strategy: Strategy) -> None:
    """Refuse a strategy that is not made as `Strategy` says, in a sentence that names the class and what is wrong."""
    kind = type(strategy)
    if kind.variance is Strategy.variance:
        raise EquipoiseError(f"{kind.__name__} has no variance{_FUNCTIONS['variance']}, which is what a strategy is")
    for name, arguments in _FUNCTIONS.items():
        if not isinstance(inspect.getattr_static(kind, name), staticmethod):
            raise EquipoiseError(f"{kind.__name__}.{name} is not static; @staticmethod def {name}{arguments} would do")
        wanted = arguments.count(",") + 1
        try:
            inspect.signature(getattr(kind, name)).bind(*range(wanted))
        except TypeError:
            raise EquipoiseError(f"{kind.__name__}.{name} does not take the {wanted} arguments {arguments}") from None
        except ValueError:  # a function without a signature, such as one written in C
            pass
    try:
        inspect.signature(kind.params).bind(strategy, None, 1, None)
    except TypeError:
        raise EquipoiseError(
            f"{kind.__name__}.params does not take the arguments (self, budget, arms, support)"
        ) from None
    if not isinstance(strategy.warmup, int) or isinstance(strategy.warmup, bool) or strategy.warmup < 0:
        raise EquipoiseError(f"{kind.__name__}.warmup={strategy.warmup!r} will not do; it must be a whole number >= 0")
    for name, known in (("pool", POOLS), ("own", OWNS)):
        if getattr(strategy, name) not in known:
            raise EquipoiseError(
                f"{kind.__name__}.{name}={getattr(strategy, name)!r} will not do; it must be one of "
                f"{', '.join(map(repr, known))}"
            )


def check_params(strategy: Strategy, params: Any) -> tuple[float, ...]:
    """What a strategy's `params` returned, as floats; refused where it is not a tuple of finite numbers."""
    try:
        found = tuple(float(value) for value in params)
        fine = isinstance(params, tuple | list) and all(map(math.isfinite, found))
    except (TypeError, ValueError, OverflowError):
        fine = False
    if not fine:
        raise EquipoiseError(
            f"{type(strategy).__name__}.params gave {shown(params)}; it must be a tuple of finite numbers"
        )
    return found


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


def serialise(strategy: Strategy) -> dict[str, Any]:
    """Return a registered strategy as its name and its parameters, from which `deserialise` makes it again."""
    if _REGISTER.get(strategy.name) is not type(strategy):
        raise EquipoiseError(
            f"{strategy!r} must be registered so that it can be saved; use @eq.strategies.register('name')"
        )
    return {
        "name": strategy.name,
        "parameters": {f.name: getattr(strategy, f.name) for f in fields(strategy) if f.init},
    }


def deserialise(saved: dict[str, Any]) -> Strategy:
    """Return the strategy that `serialise` was given."""
    return get(saved["name"])(**saved["parameters"])


StrategyClass = TypeVar("StrategyClass", bound=type[Strategy])

_REGISTER: dict[str, type[Strategy]] = {}


def register(name: str) -> Callable[[StrategyClass], StrategyClass]:
    """
    Make a strategy known by name. A class decorator.

    Examples
    --------
    >>> import equipoise as eq
    >>> @eq.strategies.register("plug-in")
    ... class PlugIn(eq.strategies.Strategy):
    ...     @staticmethod
    ...     def variance(count, mean, m2, pooled, own, params):
    ...         return m2 / (count - 1)
    >>> eq.Study(["a", "b"], budget=100, strategy="plug-in").ask().arm
    'a'
    """
    if not name or name != name.strip().lower():
        raise ValueError(f"{name!r} will not do as a strategy's name; use lower case, as in 'my-strategy'")

    def enter(strategy: StrategyClass) -> StrategyClass:
        if not (isinstance(strategy, type) and issubclass(strategy, Strategy)):
            raise TypeError(f"{strategy!r} is not a class derived from eq.strategies.Strategy")
        known = _REGISTER.get(name)
        # Running a notebook's cell again defines the same class again; anything else under the same name is a mistake.
        if known and (known.__module__, known.__qualname__) != (strategy.__module__, strategy.__qualname__):
            raise ValueError(f"a strategy {name!r} is registered already, by {known.__module__}.{known.__qualname__}")
        strategy.name = name
        _REGISTER[name] = strategy
        return strategy

    return enter


def available() -> tuple[str, ...]:
    """The names of the registered strategies, sorted."""
    return tuple(sorted(_REGISTER))


def get(name: str) -> type[Strategy]:
    """The class registered under `name`."""
    if name in _REGISTER:
        return _REGISTER[name]
    near = difflib.get_close_matches(name.lower(), [*_REGISTER, *(c.__name__.lower() for c in _REGISTER.values())], n=1)
    by_class = {c.__name__.lower(): n for n, c in _REGISTER.items()}
    hint = f"did you mean {by_class.get(near[0], near[0])!r}? " if near else ""
    raise ValueError(f"there is no strategy {name!r}; {hint}there are {', '.join(available())}")


def resolve(strategy: str | Strategy) -> Strategy:
    """A strategy from its name, with its default parameters, or as it is."""
    if isinstance(strategy, Strategy):
        return strategy
    if isinstance(strategy, str):
        return get(strategy)()
    if isinstance(strategy, type) and issubclass(strategy, Strategy):
        raise TypeError(f"{strategy.__name__} is a class; {strategy.__name__}() is a strategy")
    raise TypeError(f"{strategy!r} is not a strategy; a name such as 'auto' or eq.strategies.BAS(exploration=0.5) is")


def require_positive(strategy: Strategy, **parameters: float | None) -> None:
    """Refuse a parameter that is given and is not a positive finite number."""
    for name, value in parameters.items():
        if value is not None and not (_is_number(value) and 0 < value < math.inf):
            raise ValueError(f"{strategy.name}: {name}={value!r} will not do; it must be a positive number")


def require_pulls(strategy: Strategy, **parameters: int | None) -> None:
    """Refuse a number of pulls that is given and is not a whole number from 2 on; keep it as a plain int."""
    for name, value in parameters.items():
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 2:
            raise ValueError(f"{strategy.name}: {name}={value!r} will not do; a variance needs 2 pulls or more")
        object.__setattr__(strategy, name, int(value))


def require_delta(strategy: Strategy, delta: float | None) -> None:
    """Refuse a confidence parameter outside (0, 1)."""
    if delta is not None and not (_is_number(delta) and 0 < delta < 1):
        raise ValueError(f"{strategy.name}: delta={delta!r} will not do; it must lie strictly between 0 and 1")


def check_support(support: Any) -> Support:
    """A support as it was declared, with its ends as floats; refuse what is none."""
    if support is None or (isinstance(support, str) and support == "binary"):
        return support  # type: ignore[return-value]
    wanted = "it must be 'binary', (low, high) with low < high, or None"
    if isinstance(support, str) or not hasattr(support, "__len__") or len(support) != 2:
        raise ValueError(f"support={support!r} will not do; {wanted}")
    low, high = (number("an end of the support", end) for end in support)
    if not -LARGEST <= low < high <= LARGEST:
        raise ValueError(f"support={support!r} will not do; {wanted}")
    return low, high


def width(support: Support) -> float | None:
    """The width of a bounded support, None if there is none."""
    if support is None:
        return None
    return 1.0 if support == "binary" else float(support[1]) - float(support[0])


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
