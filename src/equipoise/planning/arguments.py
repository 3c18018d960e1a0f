"""The arguments of a plan, checked: precision, floors, caps, populations and budget."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import check_names, choice, in_order, labelled, plain_name, positive, several, shown
from equipoise.planning.binary import largest_variance
from equipoise.planning.reach import CLOSE, INTERVALS, Interval, PlannedSums
from equipoise.problem import Contrasts, Stratified, money
from equipoise.problem.allocation import Terms
from equipoise.problem.objective import GREATEST, MOST, SMALLEST, PerArm, Wholes, numbers_by_arm, wholes_by_arm
from equipoise.problem.objective import objective as objective_of


def arms_and_variances(variances: PerArm) -> tuple[Sequence[Hashable], Floats]:
    """Return the names of the arms, 0, 1, ... where the variances have no labels, and the variances."""
    labels = labelled(variances)
    values = in_order("variances", variances) if labels is None else list(labels.values())
    arms = range(len(values)) if labels is None else tuple(map(plain_name, labels))
    if not arms:
        raise InvalidInput("variances must have at least one arm, got none")
    check_names(arms)
    return arms, np.array(numbers_by_arm("variances", values, arms))


def precision_by_arm(given: float | PerArm, arms: Sequence[Hashable]) -> Floats:
    """Return the half-width that is wanted of each arm, from one for all or one for each."""
    if several(given):
        return np.array(numbers_by_arm("precision", given, arms, positive=True))
    if isinstance(given, str) and given.endswith("%"):
        raise InvalidInput(
            f"precision must be a half-width such as 0.05, got {shown(given)}: a plan does not know the means, so "
            "multiply the share with the mean that you expect"
        )
    value = positive("precision", given)
    if not SMALLEST <= value <= GREATEST:
        raise InvalidInput(f"precision must be between 1e-100 and 1e100, got {shown(given)}")
    return np.full(len(arms), value)


def interval_for(given: Any, precision: Any) -> Interval:
    """Return the kind of the intervals that was asked for, or the default."""
    if given is None:
        return "fixed-n" if precision is None else "fixed-width"
    choice("interval", given, INTERVALS)
    return given  # type: ignore[no-any-return]


def is_binary(given: Any, variances: Floats, sizes: Floats) -> bool:
    """Return whether samples are 0 or 1, or refuse what is not a support that a plan can use."""
    if given is None:
        return False
    if not (isinstance(given, str) and given == "binary"):
        raise InvalidInput(f"support must be 'binary' or None, got {shown(given)}")
    most = largest_variance(sizes)
    if (over := variances > most * (1 + CLOSE)).any():
        k = int(over.argmax())
        raise InvalidInput(f"variances of binary arms must be at most {most[k]:.4g}, got {variances[k]:g}")
    return True


def sums_for(precision: Any, arms: Sequence[Hashable], objective: Any) -> PlannedSums | None:
    """Return the sums that a precision is asked of: contrasts, or the mean of strata; None if it is asked of arms."""
    if isinstance(precision, Contrasts):
        return PlannedSums(precision.weights(arms), precision.half_width, f"every {precision.words}")
    if precision is None or several(precision) or not isinstance(objective, Stratified):
        return None
    shares = objective_of(arms, objective).shares
    return PlannedSums(np.array([shares]), positive("precision", precision), "the combined mean")


def limits(
    arms: Sequence[Hashable], floors: Wholes | None, caps: Wholes | None, populations: Wholes | None
) -> tuple[Floats, Floats, Floats]:
    """Return floors, caps and populations by arm; a cap is at most its population, and never above MOST."""
    least = wholes_by_arm("floors", floors, arms, 1.0)
    size = wholes_by_arm("populations", populations, arms, math.inf)
    most = np.minimum(np.minimum(wholes_by_arm("caps", caps, arms, math.inf), size), MOST)
    for k in np.flatnonzero(least > most)[:1]:
        what = "population" if most[k] == size[k] else "cap"
        raise InvalidInput(
            f"floors[{shown(arms[k])}] must be at most the {what} of the arm, {most[k]:,.0f}, got {least[k]:,.0f}"
        )
    return least, most, size


def budget_for(terms: Terms, given: Any) -> float:
    """Return a budget that pays for the floors, or refuse it."""
    costs = terms.objective.costs
    if costs is None and isinstance(given, float) and given.is_integer():
        given = int(given)
    ones = bool((terms.floors == 1).all())
    reason = "each arm needs at least one sample" if ones else "that is what the floors cost"
    return money.check_budget(given, costs, least=terms.spend(terms.floors), reason=reason, most=MOST)
