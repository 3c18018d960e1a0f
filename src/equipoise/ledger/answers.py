"""Answers as `tell_many` takes them: pairs (ticket, value) and triples (ticket, value, cost)."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Hashable, Iterable
from typing import Any, Final

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.base.inputs import masked, number
from equipoise.problem.objective import real_cost

PAIRS: Final = "tell_many takes pairs (ticket, value) or triples (ticket, value, cost), as in [(ticket, 0.3)]"


def read_answers(answers: Iterable[Any]) -> tuple[list[Any], list[Hashable], Floats, Floats | None]:
    """
    Return what identifies the tickets, the names of their arms, the values, and the costs if any is given, else None.

    Costs that are not given are NaN. Errors of the iterator itself, such as those of a generator, are left as they are.
    """
    numbers: list[Any] = []
    names: list[Hashable] = []
    samples: list[Any] = []
    paid: dict[int, Any] = {}
    try:
        given = iter(answers)
    except TypeError:
        raise TypeError(PAIRS) from None
    for answer in given:
        try:
            try:
                ticket, value = answer
            except ValueError:
                ticket, value, paid[len(samples)] = answer
            numbers.append(ticket[0])
            names.append(ticket[1])
        except (TypeError, ValueError, LookupError):
            raise TypeError(PAIRS) from None
        samples.append(value)
    costs = None
    if any(cost is not None for cost in paid.values()):
        costs = np.full(len(samples), math.nan)
        for j, cost in paid.items():
            if cost is not None:
                costs[j] = real_cost(cost)
    return numbers, names, _floats(samples), costs


def _floats(values: list[Any]) -> Floats:
    """Return many samples at once; NumPy tells whether they are plain numbers faster than a look at each would."""
    if not masked(values):
        with contextlib.suppress(ValueError, OverflowError):
            array = np.array(values)
            if array.dtype.kind in "fiub" and array.ndim == 1:
                return array.astype(np.float64, copy=False)
    return np.array([number("value", value) for value in values])
