"""
The assumptions that the statements share.

An argument that violates one is refused by name and value.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from equipoise.base.arrays import Floats
from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import shown
from equipoise.problem.problem import proportions


class Variances(NamedTuple):
    """The variances of a problem, and what the paper derives from them."""

    values: Floats
    K: int
    Sigma: float
    lambdas: Floats
    lambda_min: float


def variances(values: npt.ArrayLike, *, most: float = math.inf) -> Variances:
    """Return K variances, or refuse one that is not in (0, most] or not finite."""
    array = np.asarray(values, dtype=float)
    if array.ndim != 1 or array.size == 0:
        raise InvalidInput(f"variances must be a list with one variance for each arm, got {shown(values)}")
    for value in array:
        if not 0 < value < math.inf:
            raise InvalidInput(f"each variance must be positive and finite, as the paper assumes, got {value:g}")
        if value > most:
            raise InvalidInput(
                f"each variance must be at most {most:g} under the assumption on the arms, got {value:g}"
            )
    lambdas = proportions(array)
    return Variances(array, array.size, math.fsum(array), lambdas, float(lambdas.min()))


def budget(n: float, K: int) -> None:
    """Refuse a budget n below 5K, which Lemmas 1 and 2 and all theorems require."""
    if not 5 * K <= n < math.inf:
        raise InvalidInput(f"n must be finite and at least 5K = {5 * K}, got {n:g}")


def in_unit_interval(delta: float) -> None:
    """Refuse a delta that is not strictly between 0 and 1."""
    if not 0 < delta < 1:
        raise InvalidInput(f"delta must be strictly between 0 and 1, got {shown(delta)}")


def positive(**numbers: float) -> None:
    """Refuse numbers that are not positive and finite."""
    for name, value in numbers.items():
        if not 0 < value < math.inf:
            raise InvalidInput(f"{name} must be positive and finite, got {shown(value)}")


def at_least(**bounds: tuple[float, float]) -> None:
    """Refuse values that are not finite or are below their bounds."""
    for name, (value, least) in bounds.items():
        if not least <= value < math.inf:
            raise InvalidInput(f"{name} must be finite and at least {least:g}, got {shown(value)}")


def samples(values: npt.ArrayLike, K: int, low: float, high: float) -> Floats:
    """Return K rows of samples, or refuse one that is not in [low, high]."""
    array = np.asarray(values, dtype=float)
    if array.ndim != 2 or len(array) != K or array.size == 0:
        raise InvalidInput(f"samples must have a row for each of the {K} arms, got shape {array.shape}")
    outside = array[~((low <= array) & (array <= high))]
    if outside.size:
        raise InvalidInput(f"each sample must be in [{low:g}, {high:g}], got {outside[0]:g}")
    return array
