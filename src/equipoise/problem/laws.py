"""
The laws that an arm can have, each with its exact central moments.

`mean`, `variance`, `third` and `fourth` are the mean and the second to fourth central moments, infinite where they
do not exist. `sample(rng, size)` draws from the law with a NumPy generator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from equipoise.base.arrays import Floats
from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import masked, number, shown
from equipoise.numeric import moments


class Law(Protocol):
    """
    The law of an arm: its exact central moments, and a way to draw from it.

    A law of your own is a class with these: `mean`, `variance`, and `third` and `fourth`, the central moments, which
    are infinite where they do not exist; and `sample(rng, size)`, which draws `size` numbers with a NumPy generator.
    Simulations draw values from it, once, and simulate an `Empirical` law of these.
    """

    @property
    def mean(self) -> float: ...
    @property
    def variance(self) -> float: ...
    @property
    def third(self) -> float: ...
    @property
    def fourth(self) -> float: ...
    def sample(self, rng: np.random.Generator, size: int) -> Floats: ...


# What a parameter must be, in the words of the message.
FINITE = "a finite number"
NON_NEGATIVE = "non-negative and finite"
POSITIVE = "positive and finite"
PROBABILITY = "between 0 and 1"
ABOVE_ONE = "greater than 1 and finite"

_HOLDS: dict[str, Callable[[float], bool]] = {
    FINITE: lambda x: True,
    NON_NEGATIVE: lambda x: x >= 0,
    POSITIVE: lambda x: x > 0,
    PROBABILITY: lambda x: 0 <= x <= 1,
    ABOVE_ONE: lambda x: x > 1,
}


def _check(law: Any, **wanted: str) -> None:
    """Refuse a law with a parameter that is not what it must be."""
    for name, what in wanted.items():
        value = getattr(law, name)
        where = f"{name} of {type(law).__name__}"
        found = number(where, value)
        if not (math.isfinite(found) and _HOLDS[what](found)):
            raise InvalidInput(f"{where} must be {what}, got {shown(value)}")


def _or_infinite(moment: Callable[[], float]) -> float:
    """Return a moment, infinite where it is too large for a float or is 0 times one that is."""
    try:
        found = moment()
    except OverflowError:
        return math.inf
    return math.inf if math.isnan(found) else found


@dataclass(frozen=True)
class Gaussian:
    """N(mean, variance); the second argument is the variance, as in the paper, not the standard deviation."""

    mean: float = 0.0
    variance: float = 1.0
    third: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        _check(self, mean=FINITE, variance=NON_NEGATIVE)

    @property
    def fourth(self) -> float:
        return _or_infinite(lambda: 3 * self.variance**2)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        return rng.normal(self.mean, math.sqrt(self.variance), size)


@dataclass(frozen=True)
class Rademacher:
    """-scale or +scale, each with probability one half."""

    scale: float = 1.0
    mean: float = field(default=0.0, init=False, repr=False)
    third: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        _check(self, scale=POSITIVE)

    @property
    def variance(self) -> float:
        return _or_infinite(lambda: self.scale**2)

    @property
    def fourth(self) -> float:
        return _or_infinite(lambda: self.scale**4)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        return np.asarray(self.scale * (2.0 * rng.integers(0, 2, size) - 1.0), dtype=float)


@dataclass(frozen=True)
class Bernoulli:
    """1 with probability p, 0 otherwise."""

    p: float

    def __post_init__(self) -> None:
        _check(self, p=PROBABILITY)

    @property
    def mean(self) -> float:
        return self.p

    @property
    def variance(self) -> float:
        return self.p * (1 - self.p)

    @property
    def third(self) -> float:
        return self.variance * (1 - 2 * self.p)

    @property
    def fourth(self) -> float:
        return self.variance * (1 - 3 * self.variance)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        return (rng.random(size) < self.p).astype(float)


@dataclass(frozen=True)
class Uniform:
    """The uniform law on [low, high]."""

    low: float = 0.0
    high: float = 1.0
    third: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        _check(self, low=FINITE, high=FINITE)
        if not self.high > self.low:
            raise InvalidInput(f"high of Uniform must be greater than low={shown(self.low)}, got {shown(self.high)}")

    @property
    def mean(self) -> float:
        return (self.low + self.high) / 2

    @property
    def variance(self) -> float:
        return _or_infinite(lambda: (self.high - self.low) ** 2 / 12)

    @property
    def fourth(self) -> float:
        return _or_infinite(lambda: (self.high - self.low) ** 4 / 80)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        return rng.uniform(self.low, self.high, size)


@dataclass(frozen=True)
class Exponential:
    """The exponential law with mean `scale`."""

    scale: float = 1.0

    def __post_init__(self) -> None:
        _check(self, scale=POSITIVE)

    @property
    def mean(self) -> float:
        return self.scale

    @property
    def variance(self) -> float:
        return _or_infinite(lambda: self.scale**2)

    @property
    def third(self) -> float:
        return _or_infinite(lambda: 2 * self.scale**3)

    @property
    def fourth(self) -> float:
        return _or_infinite(lambda: 9 * self.scale**4)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        return rng.exponential(self.scale, size)


@dataclass(frozen=True)
class Laplace:
    """The double exponential law with this mean and variance; its scale is sqrt(variance/2)."""

    mean: float = 0.0
    variance: float = 2.0
    third: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        _check(self, mean=FINITE, variance=NON_NEGATIVE)

    @property
    def fourth(self) -> float:
        return _or_infinite(lambda: 6 * self.variance**2)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        return rng.laplace(self.mean, math.sqrt(self.variance / 2), size)


@dataclass(frozen=True)
class LogNormal:
    """The law of exp(X) with X from N(log_mean, log_sd²)."""

    log_mean: float = 0.0
    log_sd: float = 1.0

    def __post_init__(self) -> None:
        _check(self, log_mean=FINITE, log_sd=NON_NEGATIVE)

    @property
    def mean(self) -> float:
        return _or_infinite(lambda: math.exp(self.log_mean + self.log_sd**2 / 2))

    @property
    def variance(self) -> float:
        return _or_infinite(lambda: math.expm1(self.log_sd**2) * self.mean**2)

    @property
    def third(self) -> float:
        w = _or_infinite(lambda: math.exp(self.log_sd**2))
        return _or_infinite(lambda: (w + 2) * math.expm1(self.log_sd**2) ** 2 * self.mean**3)

    @property
    def fourth(self) -> float:
        w = _or_infinite(lambda: math.exp(self.log_sd**2))
        return _or_infinite(lambda: (w**4 + 2 * w**3 + 3 * w**2 - 3) * self.variance**2)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        return rng.lognormal(self.log_mean, self.log_sd, size)


@dataclass(frozen=True)
class StudentT:
    """Student's t with df degrees of freedom, times `scale`; df > 1, since otherwise there is no mean."""

    df: float
    scale: float = 1.0
    mean: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        _check(self, df=ABOVE_ONE, scale=POSITIVE)

    @property
    def variance(self) -> float:
        return _or_infinite(lambda: self.scale**2 * self.df / (self.df - 2)) if self.df > 2 else math.inf

    @property
    def third(self) -> float:
        return 0.0 if self.df > 3 else math.inf

    @property
    def fourth(self) -> float:
        df = self.df
        return _or_infinite(lambda: 3 * self.scale**4 * df**2 / ((df - 2) * (df - 4))) if df > 4 else math.inf

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        return self.scale * rng.standard_t(self.df, size)


@dataclass(frozen=True)
class Constant:
    """A law that always gives the same value."""

    value: float
    variance: float = field(default=0.0, init=False, repr=False)
    third: float = field(default=0.0, init=False, repr=False)
    fourth: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        _check(self, value=FINITE)

    @property
    def mean(self) -> float:
        return self.value

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        return np.full(size, float(self.value))


@dataclass(frozen=True)
class Empirical:
    """The law of drawing from the given values with replacement: an arm made of data."""

    values: tuple[float, ...]
    mean: float = field(init=False, repr=False)
    variance: float = field(init=False, repr=False)
    third: float = field(init=False, repr=False)
    fourth: float = field(init=False, repr=False)

    def __init__(self, values: npt.ArrayLike) -> None:
        if missing := masked(values):
            raise InvalidInput(f"values of Empirical must not be masked, got {missing:,} masked")
        try:
            array = np.asarray(values, dtype=float).ravel()
        except (TypeError, ValueError):
            raise TypeError(f"values of Empirical must be numbers, got {shown(values)}") from None
        if array.size == 0:
            raise InvalidInput("values of Empirical must have at least one number, got none")
        if not np.isfinite(array).all():
            wrong = array[~np.isfinite(array)][0]
            raise InvalidInput(f"values of Empirical must be finite, got {shown(wrong)}")
        mean = math.fsum(array) / array.size
        deviations = array - mean
        object.__setattr__(self, "values", tuple(array.tolist()))
        object.__setattr__(self, "mean", mean)
        # Of values whose powers a float cannot hold, the powers are taken of parts of the largest.
        largest = float(np.abs(deviations).max())
        unit = largest if largest and not 1e-70 < largest < 1e70 else 1.0
        for name, power in (("variance", 2), ("third", 3), ("fourth", 4)):
            with np.errstate(over="ignore", under="ignore"):
                moment = math.fsum((deviations / unit) ** power) / array.size * np.float64(unit) ** power
            object.__setattr__(self, name, float(moment))

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        return np.asarray(self.values)[rng.integers(0, len(self.values), size)]


# The laws that simulations sample by formula. A subclass is a law of its own.
_FORMULAS: Final = frozenset(
    (Bernoulli, Constant, Empirical, Exponential, Gaussian, Laplace, LogNormal, Rademacher, StudentT, Uniform)
)
# How many values stand for any other law, and for all of them together, which bounds memory; and the fewest.
VALUES: Final = 1 << 16
_ALL_VALUES: Final = 1 << 22
_FEWEST_VALUES: Final = 1 << 10
# Standard errors by which the moments of drawn values may differ from those that a law states.
_APART: Final = 8.0


def has_formula(law: Law) -> bool:
    """Return whether simulations sample a law by its formula."""
    return type(law) in _FORMULAS


def stand_in(law: Law, values: int, seed: int) -> Empirical:
    """
    Return the empirical law of values that are drawn from a law, the same for the same seed.

    Refuses a law whose moments are not those of its samples.
    """
    if not callable(getattr(law, "sample", None)):
        raise TypeError(f"a law must have a method sample(rng, size) to be simulated, got {shown(law)}")
    found = law.sample(np.random.Generator(np.random.Philox(seed)), values)
    if np.shape(found) != (values,):
        raise InvalidInput(f"sample(rng, {values}) of a law must return {values:,} numbers, got {shown(found)}")
    drawn = Empirical(found)
    errors = math.sqrt(drawn.variance / values), math.sqrt(max(drawn.fourth - drawn.variance**2, 0.0) / values)
    for name, error in zip(("mean", "variance"), errors, strict=True):
        stated, own = getattr(law, name), getattr(drawn, name)
        if abs(stated - own) > _APART * error + 1e-9 * abs(stated):
            raise InvalidInput(
                f"the {name} of a law must be that of its samples, got {shown(law)} with {name} {stated:g}, where "
                f"{values:,} samples have {own:.4g}"
            )
    return drawn


def simulable(arms: tuple[Law, ...]) -> tuple[Law, ...]:
    """Return laws that simulations can sample: a `stand_in` for each that has no formula, one for the same object."""
    own = {id(law): law for law in arms if not has_formula(law)}
    if not own:
        return arms
    values = min(VALUES, _ALL_VALUES // len(own))
    if values < _FEWEST_VALUES:
        most = _ALL_VALUES // _FEWEST_VALUES
        raise InvalidInput(f"a problem must have at most {most:,} laws of your own to be simulated, got {len(own):,}")
    drawn = {key: stand_in(law, values, seed) for seed, (key, law) in enumerate(own.items())}
    return tuple(drawn.get(id(law), law) for law in arms)


def ends(law: Law) -> tuple[float, float]:
    """
    Return the least and the greatest value of a law; of an unbounded one, what all but about 1 in 10^9 lie between.

    Those of a t law are infinite, as it has too many far values. The law must be one that simulations sample.
    """
    match law:
        case Gaussian(mean, variance):
            return mean - 6 * math.sqrt(variance), mean + 6 * math.sqrt(variance)
        case Laplace(mean, variance):
            return mean - 21 * math.sqrt(variance / 2), mean + 21 * math.sqrt(variance / 2)
        case LogNormal(log_mean, log_sd):
            low, high = (_or_infinite(lambda z=z: math.exp(log_mean + z * log_sd)) for z in (-6, 6))  # type: ignore[misc]
            return low, high
        case Exponential(scale):
            return 0.0, 21 * scale
        case Rademacher(scale):
            return -scale, scale
        case Bernoulli(p):
            return (0.0, 1.0) if 0 < p < 1 else (p, p)
        case Uniform(low, high):
            return low, high
        case Constant(value):
            return value, value
        case Empirical(values):
            return min(values), max(values)
    return -math.inf, math.inf


def is_binary(law: Law) -> bool:
    """Return whether a law that simulations sample has no values but 0 and 1."""
    match law:
        case Bernoulli():
            return True
        case Constant(value):
            return value in (0.0, 1.0)
        case Empirical(values):
            return set(values) <= {0.0, 1.0}
    return False


# Samples for which `centred` finds a mean far: about a million, so that it does not depend on a budget.
_SAMPLES = 2.0**20


def centred(law: Law) -> Law:
    """
    Return a law whose mean is far from 0, by `moments.far`, moved to about 0; any other law as it is.

    It is far where |mean| is above 2^20 standard deviations. A log-normal law is not moved; it is far only if log_sd is
    below 1e-6. The other laws are never far, except for those whose samples are nearly all equal, such as
    Bernoulli(1 - 1e-13), which stay as they are.
    """
    if not moments.far(_SAMPLES, law.mean, _SAMPLES * law.variance):
        return law
    match law:
        case Gaussian(_, variance):
            return Gaussian(0.0, variance)
        case Laplace(_, variance):
            return Laplace(0.0, variance)
        case Uniform(low, high):
            return Uniform(-(high - low) / 2, (high - low) / 2)
        case Empirical(values):
            return Empirical(np.asarray(values) - law.mean)
    return law
