"""A plan in words: the verdict in one line, the table of arms, and a few remarks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from equipoise.tables import MOST_ROWS, amount, cell, count

if TYPE_CHECKING:
    from equipoise.plan.plan import Plan


def verdict(plan: Plan) -> str:
    """Return what the plan takes and achieves, in one line."""
    taken = count(plan.samples, "sample") + (f" for {_money(plan.cost)}" if _priced(plan) else "")
    if plan.precision is None:
        if plan.terms.objective.shares is not None:
            return f"{taken}: standard error {amount(math.sqrt(plan.loss), 3)} of the combined mean"
        return f"{taken}: worst standard error {amount(plan.errors[plan.worst], 3)} ({plan.worst})"
    if plan.reached:
        same = len(set(plan.precision)) == 1
        width = f"at most {amount(plan.precision[0])}" if same else "within its precision"
        return f"✓ {taken}: every half-width {width}"
    k = int(plan.too_wide[0])
    worst = f"{plan.arms[k]}, {amount(plan.half_widths()[plan.arms[k]], 3)} instead of {amount(plan.precision[k])}"
    return f"✗ {taken}: {plan.too_wide.size:,} of {len(plan.arms):,} half-widths exceed the precision (worst: {worst})"


def table(plan: Plan) -> list[list[str]]:
    """Return the titles and a row for each arm; of very many arms, those with the largest standard errors."""
    priced = _priced(plan)
    rows = [["arm", "count", *(["cost"] if priced else []), "standard error", "half-width", "variance"]]
    columns = plan.columns()
    errors = columns["standard_error"]
    many = len(plan.arms) > MOST_ROWS
    for k in np.argsort(-errors, kind="stable")[:MOST_ROWS] if many else range(len(plan.arms)):
        numbers = [cell(columns[name][k]) for name in ("standard_error", "half_width", "variance")]
        paid = [_money(columns["cost"][k])] if priced else []
        rows.append([str(plan.arms[k]), f"{columns['count'][k]:,}", *paid, *numbers])
    return rows


def remarks(plan: Plan) -> list[str]:
    """Return at most three remarks: arms that are not shown, what is left, and what an even split would need."""
    found = []
    if (hidden := len(plan.arms) - MOST_ROWS) > 0:
        found.append(f"... and {count(hidden, 'arm')} with no larger standard error")
    if plan.capped:
        left = f"; {_money(plan.left)} of the budget is left" if plan.left else ""
        found.append(f"Every arm is at its cap{left}.")
    need = plan.uniform_cost if plan.loss > 0 else 0.0
    if plan.cost < need < math.inf:
        what = f"cost {_money(need)}" if _priced(plan) else f"need about {count(int(need), 'sample')}"
        found.append(f"An even split would {what} for the same loss.")
    return found


def _priced(plan: Plan) -> bool:
    return plan.terms.objective.costs is not None


def _money(x: float) -> str:
    return amount(x, 10)
