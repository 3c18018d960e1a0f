"""A result in other forms: a dictionary, JSON, a table, a chart."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, Final

from equipoise import chart
from equipoise.base import tables
from equipoise.base.inputs import plain_name, text_of, texts
from equipoise.inference import errors, forecast, losses, ranking
from equipoise.inference.arm_intervals import intervals, reached
from equipoise.inference.baseline import baseline
from equipoise.inference.comparisons import contrasts_of
from equipoise.inference.known import Known
from equipoise.inference.strata import combine, combined_kind
from equipoise.result.by_arm import ByArm, IntervalsByArm

# What there is one of for each arm, of the result and of the objective.
_BY_ARM: Final[dict[str, Callable[[Known], Any]]] = {
    "means": lambda known: known.means,
    "corrected_means": errors.corrected_means,
    "biases": errors.biases,
    "counts": lambda known: known.counts,
    "declined": lambda known: known.declined,
    "variances": lambda known: known.variances,
    "standard_errors": errors.standard_errors,
    "plain_errors": lambda known: known.plain_errors,
    "losses": lambda known: known.losses,
}
_OF_OBJECTIVE: Final = ("weights", "shares")


def to_dict(known: Known) -> dict[str, Any]:
    """Return everything as plain numbers, as `Result.to_dict` documents it."""
    ends, objective = IntervalsByArm(known.names, intervals(known)), known.objective
    asked = known.precision
    left, even_split = forecast.left(known), baseline(known)
    found: dict[str, Any] = {"strategy": known.strategy}
    found |= {name: dict(ByArm(known.names, of(known))) for name, of in _BY_ARM.items()}
    found |= {
        "intervals": dict(ends),
        "interval_kind": ends.kind,
        "interval_level": ends.level,
        "interval_kinds": dict(zip(known.arms, ends.kinds, strict=True)),
        "samples": known.samples,
        "loss": known.loss,
        "oracle_loss": losses.oracle_loss(known),
        "regret": losses.regret(known),
        "uniform_loss": losses.uniform_loss(known),
        "reached": reached(known),
        "samples_left": forecast.samples_left(known),
        "left": None if left is None else left._asdict(),
        "baseline": None if even_split is None else even_split._asdict(),
    }
    if not objective.plain:
        found["p"] = "inf" if objective.p == math.inf else objective.p  # JSON has no infinity
        given = {name: getattr(objective, name) for name in _OF_OBJECTIVE}
        found |= {
            name: dict(zip(known.arms, numbers, strict=True)) for name, numbers in given.items() if numbers is not None
        }
    if known.snapshot.costs is not None:
        costs = dict(ByArm(known.names, known.snapshot.costs))
        found |= {"costs": costs, "spent": known.spent, "cost_unit": known.cost_unit or None}
    if asked is not None and asked.sums is not None and not asked.sums.combined:
        found["contrasts"] = [each.to_dict() for each in contrasts_of(known, asked.sums)]
    if objective.shares is not None:
        combined = combine(known)._asdict() | {"level": known.level, "kind": combined_kind(known)}
        found |= {"combined": combined, "proportional_loss": losses.proportional_loss(known)}
    worst = plain_name(known.arms[ranking.least_precise(known)])  # a tuple stays one
    return {**tables.json_ready(found), "worst": worst}


def to_json(known: Known) -> str:
    """Return `to_dict` as a JSON object, as `Result.to_json` documents it."""
    found = to_dict(known)
    names = list(found["means"])
    by_arm = (*_BY_ARM, *_OF_OBJECTIVE, "costs", "intervals", "interval_kinds")
    text = dict(zip(names, texts(names), strict=True))
    written = {
        name: {text[arm]: each for arm, each in value.items()} if name in by_arm else value
        for name, value in found.items()
    }
    return json.dumps(written | {"worst": text[found["worst"]]}, ensure_ascii=False)


def to_frame(known: Known, library: tables.FrameLibrary | None) -> Any:
    """Return a table with a row for each arm, as `Result.to_frame` documents it."""
    ends = IntervalsByArm(known.names, intervals(known))
    columns: dict[str, Any] = {
        "arm": list(map(plain_name, known.arms)),
        "count": known.counts,
        "declined": known.declined,
        "mean": known.means,
        "corrected_mean": errors.corrected_means(known),
        "bias": errors.biases(known),
        "variance": known.variances,
        "standard_error": errors.standard_errors(known),
        "plain_error": known.plain_errors,
        "loss": known.losses,
        "low": ends.low,
        "high": ends.high,
        "interval_kind": list(ends.kinds),
        "interval_level": [ends.level] * len(known.arms),
    }
    if known.snapshot.costs is not None:
        columns["cost"] = known.snapshot.costs
    return tables.frame(columns, library)


def plot(known: Known, title: str, x_title: str, width: int) -> Any:
    """Return a chart of the means with their intervals, as `Result.plot` documents it."""
    ends = ranking.intervals_shown(known)
    rows = [
        {"arm": text_of(known.arms[k]), "mean": float(mean), "low": float(low), "high": float(high)}
        for k, mean, low, high in zip(ranking.shown(known), ends.means, ends.low, ends.high, strict=True)
    ]
    axis = x_title or f"mean, with its {tables.percent(known.level)} interval"
    return chart.intervals(tables.json_ready(rows), x_title=axis, title=title, width=width)
