"""A plan in words: the verdict in one line, the table of arms, and a few remarks."""

from __future__ import annotations

import math

import numpy as np

from equipoise.base.inputs import named, text_of
from equipoise.base.tables import MOST_ROWS, amount, cell, count
from equipoise.planning.planned import Planned


def verdict(plan: Planned) -> str:
    """Return what the plan takes and achieves, in one line."""
    samples = count(plan.samples, "sample")
    if plan.sums is not None:
        taken = samples + (f" (total cost {_money(plan.cost)})" if _priced(plan) else "")
        half, target = amount(float(plan.half_widths_of_sums.max()), 3), amount(plan.sums.half_width)
        if plan.reached:
            return f"✓ Precision reached with {taken}: the half-width of {plan.sums.every} is at most {target}."
        return f"✗ Precision not reached with {taken}: the half-width of {plan.sums.every} is {half}, target {target}."
    if plan.precision is None:
        taken = samples + (f", total cost {_money(plan.cost)}" if _priced(plan) else "")
        if plan.terms.objective.shares is not None:
            return f"{taken}. Standard error of the combined mean: {amount(math.sqrt(plan.loss), 3)}."
        return f"{taken}. Largest standard error: {amount(plan.errors[plan.worst], 3)} ({text_of(plan.worst)})."
    taken = samples + (f" (total cost {_money(plan.cost)})" if _priced(plan) else "")
    if plan.reached:
        same = len(set(plan.precision)) == 1
        width = f"at most {amount(plan.precision[0])}" if same else "within its precision"
        return f"✓ Precision reached with {taken}: every half-width is {width}."
    k = int(plan.too_wide[0])
    several = f" for {plan.too_wide.size:,} of {len(plan.arms):,} arms;" if len(plan.arms) > 1 else ":"
    half, target = amount(plan.half_widths()[plan.arms[k]], 3), amount(plan.precision[k])
    arm = named(plan.arms[k])
    return f"✗ Precision not reached with {taken}{several} the half-width of {arm} is {half}, target {target}."


def table(plan: Planned) -> list[list[str]]:
    """Return the titles and a row for each arm; of very many arms, those with the largest standard errors."""
    priced = _priced(plan)
    rows = [["arm", "count", *(["cost"] if priced else []), "standard error", "half-width", "variance"]]
    columns = plan.columns()
    errors = columns["standard_error"]
    many = len(plan.arms) > MOST_ROWS
    for k in np.argsort(-errors, kind="stable")[:MOST_ROWS] if many else range(len(plan.arms)):
        numbers = [cell(columns[name][k]) for name in ("standard_error", "half_width", "variance")]
        paid = [_money(columns["cost"][k])] if priced else []
        rows.append([text_of(plan.arms[k]), f"{columns['count'][k]:,}", *paid, *numbers])
    return rows


def remarks(plan: Planned) -> list[str]:
    """Return at most three remarks: arms that are not shown, what is left, and what an even split would need."""
    found = []
    if (hidden := len(plan.arms) - MOST_ROWS) > 0:
        found.append(f"... and {count(hidden, 'arm')} with no larger standard error")
    if plan.capped:
        limit = "its cap or its whole population" if np.isfinite(plan.terms.populations).any() else "its cap"
        unused = f"{_money(plan.left)} of the budget is unused: every" if plan.left else "Every"
        found.append(f"{unused} arm is at {limit}.")
    # For a precision of arms, an even split that closes arms when they are done takes as many.
    closing = plan.precision is not None and plan.reached
    need = plan.uniform_cost if plan.loss > 0 and not closing else 0.0
    if plan.cost < need < math.inf:
        what = f"cost {_money(need)}" if _priced(plan) else f"need about {count(int(need), 'sample')}"
        found.append(f"An even split would {what} for the same {plan.terms.objective.measure}.")
    return found


def _priced(plan: Planned) -> bool:
    return plan.terms.objective.costs is not None


def _money(x: float) -> str:
    return amount(x, 10)
