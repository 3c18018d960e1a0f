"""
Money: when a sample can be paid for, decided in one place for studies, simulations and plans.

Sums of floats round: three samples at 0.1 cost a little more than 0.3. So a budget may be exceeded by one part in 10^9,
or by a millionth of the cheapest sample if that is less, which never buys another sample; and what rounding takes from
a sum is kept next to it (Neumaier's summation), so that it never adds up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import integer, positive, shown
from equipoise.base.tables import amount

# The part of a budget, and of the cheapest sample, by which rounding may carry a sum of costs past the budget.
OF_BUDGET, OF_SAMPLE = 1e-9, 1e-6

# The least part of its declared cost that a sample is planned with: a plan divides by costs, and some samples are free.
OF_DECLARED = 1e-6

# Numbers of samples are kept as floats too, which are exact up to this one.
MOST_SAMPLES: Final = 2**53


def check_budget(
    budget: Any,
    costs: Sequence[float] | None = None,
    *,
    least: float = 0.0,
    reason: str = "",
    most: int = MOST_SAMPLES,
) -> float:
    """
    Return a budget as a number, or refuse what is not one.

    Parameters
    ----------
    budget
        A number of samples: a positive integer. With `costs`, a positive amount of money.
    costs
        Of one sample of each arm.
    least, reason
        What the budget must pay for at least, and why, for the message.
    most
        The number of samples that it may buy at most.
    """
    found = integer("budget", budget, least=1) if costs is None else positive("budget", budget, "amount of money")
    cheapest = 1 if costs is None else min(costs)
    if found > most * cheapest:
        raise InvalidInput(f"budget must buy at most {most:,} samples, got {shown(budget)}")
    if limit(found, cheapest) < least:
        raise InvalidInput(f"budget must be at least {amount(least, 10)}, got {shown(budget)}: {reason}")
    return found


def limit(budget: float | None, cheapest: float = 1.0) -> float:
    """Return the most that may be spent: the budget, with room for rounding; infinity without a budget."""
    return math.inf if budget is None else budget + min(OF_BUDGET * budget, OF_SAMPLE * cheapest)


def spend(spent: float, carry: float, amount: float) -> tuple[float, float]:
    """Return the sum and what rounding took from it so far, after one more amount (negative for a refund)."""
    total = spent + amount
    if abs(spent) >= abs(amount):
        return total, carry + ((spent - total) + amount)
    return total, carry + ((amount - total) + spent)


def affordable(cost: float, spent: float, carry: float, limit: float) -> bool:
    """Whether a sample of this cost can be paid for."""
    return cost <= limit - spent - carry


def expected_cost(declared: float, paid: int, bill: float) -> float:
    """
    Return what the next sample of an arm is expected to cost: what was declared, until real costs are known.

    From then on it is the mean of the `paid` real costs, whose sum is `bill`, but no less than OF_DECLARED of what was
    declared.
    """
    return declared if paid == 0 else max(bill / paid, OF_DECLARED * declared)
