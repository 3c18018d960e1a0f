"""Options of a study, as its log holds them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from equipoise.base.inputs import labelled
from equipoise.problem import Contrasts


def objective_for(precision: Any, objective: Any) -> Any:
    """Return the objective of a study: for contrasts the sum of the losses, unless another one was given."""
    plain = isinstance(objective, float) and objective == math.inf
    return 1.0 if plain and isinstance(precision, Contrasts) else objective


def options_of(objective: Any, weights: Any, costs: Any) -> dict[str, Any]:
    """Return the options of a study that are not the default, as they are saved in the log."""
    found = {} if isinstance(objective, float) and objective == math.inf else {"objective": objective}
    return found | {n: savable(v) for n, v in (("weights", weights), ("costs", costs)) if v is not None}


def savable(given: Any) -> Any:
    """Return what was given for each arm as a log can hold it: labels as a dict, other iterables as a list."""
    labels = labelled(given)
    if labels is not None:
        return dict(labels)
    plain = isinstance(given, str | bytes | list | tuple | np.ndarray) or not isinstance(given, Iterable)
    return given if plain else list(given)
