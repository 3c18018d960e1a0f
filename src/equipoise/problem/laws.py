"""
The laws an arm can have, each with its exact central moments.

`mean`, `variance`, `third` and `fourth` are the mean and the second to fourth central moments, infinite where they
do not exist. `sample(rng, size)` draws from the law with a NumPy generator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from equipoise.arrays import Floats

Samples = Floats


class Law(Protocol):
    """What a problem asks of an arm's law."""

    @property
    def mean(self) -> float: ...
    @property
    def variance(self) -> float: ...
    @property
    def third(self) -> float: ...
    @property
    def fourth(self) -> float: ...
    def sample(self, rng: np.random.Generator, size: int) -> Samples: ...


def _require(law: Any, **conditions: bool) -> None:
    """Refuse a law whose parameter is not finite or fails its condition."""
    for name, holds in conditions.items():
        value = getattr(law, name)
        if not (math.isfinite(value) and holds):
            raise ValueError(f"{type(law).__name__}: {name}={value!r} will not do; {_WANTED[name]}")


def _or_infinite(moment: Callable[[], float]) -> float:
    """A moment that is infinite where it is too large for a float (0 times such a one is unknown, and so as well)."""
    try:
        found = moment()
    except OverflowError:
        return math.inf
    return math.inf if math.isnan(found) else found


_WANTED = {
    "mean": "any finite number is a mean",
    "variance": "a variance is finite and not negative",
    "scale": "a scale is finite and positive",
    "p": "a probability lies in [0, 1]",
    "low": "the lower end is finite and below the upper end",
    "high": "the upper end is finite and above the lower end",
    "log_mean": "any finite number is a mean of logarithms",
    "log_sd": "a standard deviation is finite and not negative",
    "df": "a Student law with df > 1 has a mean to estimate",
    "value": "any finite number is a constant",
}


@dataclass(frozen=True)
class Gaussian:
    """N(mean, variance). The second argument is the variance, as in the paper, not the standard deviation."""

    mean: float = 0.0
    variance: float = 1.0
    third: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        _require(self, mean=True, variance=self.variance >= 0)

    @property
    def fourth(self) -> float:
        return 3 * self.variance**2

    def sample(self, rng: np.random.Generator, size: int) -> Samples:
        return rng.normal(self.mean, math.sqrt(self.variance), size)


@dataclass(frozen=True)
class Rademacher:
    """-scale or +scale, each with probability one half."""

    scale: float = 1.0
    mean: float = field(default=0.0, init=False, repr=False)
    third: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        _require(self, scale=self.scale > 0)

    @property
    def variance(self) -> float:
        return self.scale**2

    @property
    def fourth(self) -> float:
        return self.scale**4

    def sample(self, rng: np.random.Generator, size: int) -> Samples:
        return np.asarray(self.scale * (2.0 * rng.integers(0, 2, size) - 1.0), dtype=float)


@dataclass(frozen=True)
class Bernoulli:
    """1 with probability p, else 0."""

    p: float

    def __post_init__(self) -> None:
        _require(self, p=0 <= self.p <= 1)

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

    def sample(self, rng: np.random.Generator, size: int) -> Samples:
        return (rng.random(size) < self.p).astype(float)


@dataclass(frozen=True)
class Uniform:
    """Uniform on [low, high]."""

    low: float = 0.0
    high: float = 1.0
    third: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        _require(self, low=True, high=self.high > self.low)

    @property
    def mean(self) -> float:
        return (self.low + self.high) / 2

    @property
    def variance(self) -> float:
        return (self.high - self.low) ** 2 / 12

    @property
    def fourth(self) -> float:
        return (self.high - self.low) ** 4 / 80

    def sample(self, rng: np.random.Generator, size: int) -> Samples:
        return rng.uniform(self.low, self.high, size)


@dataclass(frozen=True)
class Exponential:
    """Exponential with mean `scale`."""

    scale: float = 1.0

    def __post_init__(self) -> None:
        _require(self, scale=self.scale > 0)

    @property
    def mean(self) -> float:
        return self.scale

    @property
    def variance(self) -> float:
        return self.scale**2

    @property
    def third(self) -> float:
        return 2 * self.scale**3

    @property
    def fourth(self) -> float:
        return 9 * self.scale**4

    def sample(self, rng: np.random.Generator, size: int) -> Samples:
        return rng.exponential(self.scale, size)


@dataclass(frozen=True)
class Laplace:
    """The double exponential with this mean and variance (its scale is sqrt(variance/2))."""

    mean: float = 0.0
    variance: float = 2.0
    third: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        _require(self, mean=True, variance=self.variance >= 0)

    @property
    def fourth(self) -> float:
        return 6 * self.variance**2

    def sample(self, rng: np.random.Generator, size: int) -> Samples:
        return rng.laplace(self.mean, math.sqrt(self.variance / 2), size)


@dataclass(frozen=True)
class LogNormal:
    """exp of N(log_mean, log_sd²)."""

    log_mean: float = 0.0
    log_sd: float = 1.0

    def __post_init__(self) -> None:
        _require(self, log_mean=True, log_sd=self.log_sd >= 0)

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

    def sample(self, rng: np.random.Generator, size: int) -> Samples:
        return rng.lognormal(self.log_mean, self.log_sd, size)


@dataclass(frozen=True)
class StudentT:
    """Student's t with df degrees of freedom, times `scale`; df > 1, so that there is a mean."""

    df: float
    scale: float = 1.0
    mean: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        _require(self, df=self.df > 1, scale=self.scale > 0)

    @property
    def variance(self) -> float:
        return self.scale**2 * self.df / (self.df - 2) if self.df > 2 else math.inf

    @property
    def third(self) -> float:
        return 0.0 if self.df > 3 else math.inf

    @property
    def fourth(self) -> float:
        df = self.df
        return 3 * self.scale**4 * df**2 / ((df - 2) * (df - 4)) if df > 4 else math.inf

    def sample(self, rng: np.random.Generator, size: int) -> Samples:
        return self.scale * rng.standard_t(self.df, size)


@dataclass(frozen=True)
class Constant:
    """Always the same value."""

    value: float
    variance: float = field(default=0.0, init=False, repr=False)
    third: float = field(default=0.0, init=False, repr=False)
    fourth: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        _require(self, value=True)

    @property
    def mean(self) -> float:
        return self.value

    def sample(self, rng: np.random.Generator, size: int) -> Samples:
        return np.full(size, float(self.value))


@dataclass(frozen=True)
class Empirical:
    """One of the given values, each equally likely, with replacement: an arm made of data."""

    values: tuple[float, ...]
    mean: float = field(init=False, repr=False)
    variance: float = field(init=False, repr=False)
    third: float = field(init=False, repr=False)
    fourth: float = field(init=False, repr=False)

    def __init__(self, values: npt.ArrayLike) -> None:
        array = np.asarray(values, dtype=float).ravel()
        if array.size == 0:
            raise ValueError("Empirical: no values were given; one or more finite numbers make a law")
        if not np.isfinite(array).all():
            wrong = array[~np.isfinite(array)][0]
            raise ValueError(f"Empirical: {wrong} is among the values; all of them must be finite")
        mean = math.fsum(array) / array.size
        deviations = array - mean
        object.__setattr__(self, "values", tuple(array.tolist()))
        object.__setattr__(self, "mean", mean)
        for name, power in (("variance", 2), ("third", 3), ("fourth", 4)):
            object.__setattr__(self, name, math.fsum(deviations**power) / array.size)

    def sample(self, rng: np.random.Generator, size: int) -> Samples:
        return np.asarray(self.values)[rng.integers(0, len(self.values), size)]
