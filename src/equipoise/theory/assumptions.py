"""The assumptions that the statements share, each refused with the value that fails it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from equipoise.arrays import Floats
from equipoise.problem.problem import proportions


class Variances(NamedTuple):
    """The variances of a problem, and what the paper derives from them."""

    values: Floats
    K: int
    Sigma: float
    lambdas: Floats
    lambda_min: float


def variances(values: npt.ArrayLike, *, most: float = math.inf) -> Variances:
    """K variances, finite and positive, none above `most`."""
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"variances={values!r} will not do; give one variance for each arm")
    for value in array:
        if not 0 < value < math.inf:
            raise ValueError(
                f"a variance of {value:g} is outside the paper's setting, where each is positive and finite"
            )
        if value > most:
            raise ValueError(
                f"a variance of {value:g} contradicts the assumption on the arms, under which {most:g} is the most"
            )
    lambdas = proportions(array)
    return Variances(array, array.size, math.fsum(array), lambdas, float(lambdas.min()))


def budget(n: float, K: int) -> None:
    """A budget n >= 5K, which Lemmas 1 and 2 and all theorems ask for."""
    if not 5 * K <= n < math.inf:
        raise ValueError(f"n={n:g} will not do; the statement is proved for finite n from 5K={5 * K} on")


def in_unit_interval(delta: float) -> None:
    """0 < delta < 1."""
    if not 0 < delta < 1:
        raise ValueError(f"delta={delta!r} will not do; it must lie strictly between 0 and 1")


def positive(**numbers: float) -> None:
    """Each of them positive and finite."""
    for name, value in numbers.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{name}={value!r} will not do; it must be positive and finite")


def at_least(**bounds: tuple[float, float]) -> None:
    """Each value finite and not below its bound."""
    for name, (value, least) in bounds.items():
        if not least <= value < math.inf:
            raise ValueError(f"{name}={value!r} will not do; the statement asks for {name} >= {least:g}")


def samples(values: npt.ArrayLike, K: int, low: float, high: float) -> Floats:
    """A row of samples for each of K arms, all of them in [low, high]."""
    array = np.asarray(values, dtype=float)
    if array.ndim != 2 or len(array) != K or array.size == 0:
        raise ValueError(f"samples of shape {array.shape} will not do; a row for each of the {K} arms is needed")
    outside = array[~((low <= array) & (array <= high))]
    if outside.size:
        raise ValueError(f"a sample of {outside[0]:g} will not do; they must lie in [{low:g}, {high:g}]")
    return array
