"""The options of a study, parsed once into one frozen value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from equipoise.base.inputs import Names, integer, labelled, probability
from equipoise.ledger.evidence import LEVEL
from equipoise.ledger.goal import Stopping, check_stopping
from equipoise.ledger.goal import precision as precision_of
from equipoise.problem import Contrasts
from equipoise.problem.objective import numbers_by_arm, wholes_by_arm
from equipoise.strategies import Strategy, Support, check_support, resolve


@dataclass(frozen=True)
class StudyOptions:
    """
    The options of a study. Equal options mean equal decisions, given the same answers.

    Attributes
    ----------
    arms, strategy, support, budget, populations
        As in `Study`; populations are sizes.
    seed
        Of samplers; None where it is not known yet.
    options
        `objective`, `weights` and `costs`, those that were given.
    precision, level, interval, guess, rounds
        As in `estimate`.
    about
        A description of what is sampled, by strings and numbers; None without one.
    """

    arms: Sequence[Any]
    strategy: Strategy
    support: Support
    budget: Any
    seed: int | None
    options: dict[str, Any] = field(default_factory=dict)
    populations: tuple[int | None, ...] | None = None
    precision: Any = None
    level: float = LEVEL
    interval: Stopping = "fixed-width"
    guess: Any = None
    rounds: int | None = None
    about: dict[str, Any] | None = None


def study_options(
    arms: Any,
    budget: float | None = None,
    *,
    strategy: str | Strategy = "auto",
    support: Support = None,
    objective: Any = math.inf,
    weights: Any = None,
    costs: Any = None,
    populations: Any = None,
    precision: Any = None,
    level: float = LEVEL,
    interval: Stopping = "fixed-width",
    guess: Any = None,
    rounds: int | None = None,
    seed: int | None = None,
    about: Mapping[str, Any] | None = None,
) -> StudyOptions:
    """Return the options that a user gave, or refuse them; those of the objective are checked by `Study`."""
    names = Names.of(arms).names
    level = probability("level", level)
    check_stopping(interval)
    precision = savable(precision)
    if precision is not None:
        precision_of(precision, level, names, interval, objective)
    sizes = None
    if populations is not None:
        found = wholes_by_arm("populations", populations, names, math.inf)
        sizes = tuple(None if math.isinf(size) else int(size) for size in found)
    guess = savable(guess)
    if guess is not None:
        numbers_by_arm("guess", guess, names)
    return StudyOptions(
        arms=names,
        strategy=resolve(strategy),
        support=check_support(support),
        budget=budget,
        seed=None if seed is None else integer("seed", seed, least=0),
        options=options_of(objective_for(precision, objective), weights, costs),
        populations=sizes,
        precision=precision,
        level=level,
        interval=interval,
        guess=guess,
        rounds=None if rounds is None else integer("rounds", rounds, least=1),
        about=None if about is None else dict(about),
    )


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
