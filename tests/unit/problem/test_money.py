"""Money: budgets that are refused, and sums of costs that rounding does not carry past them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from equipoise.problem import money
from equipoise.problem.money import affordable, check_budget, limit, spend


def test_budgets_are_integers_or_money() -> None:
    assert check_budget(100) == 100
    assert type(check_budget(np.int64(100))) is int
    assert check_budget(2**53) == money.MOST_SAMPLES
    assert check_budget(0.5, [0.5, 2.0]) == 0.5
    assert check_budget(3, [0.5, 2.0]) == 3.0
    assert check_budget(0.3, [0.1, 0.2], least=0.1 + 0.2) == 0.3  # though 0.1 + 0.2 is a little more than 0.3


@pytest.mark.parametrize(
    ("check", "error", "message"),
    [
        (lambda: check_budget(0), ValueError, "budget must be a positive integer, got 0"),
        (lambda: check_budget(10.0), TypeError, "budget must be a positive integer, got 10.0"),
        (lambda: check_budget(True), TypeError, "budget must be a positive integer, got True"),
        (lambda: check_budget(-1, [1.0]), ValueError, "budget must be a positive amount of money, got -1"),
        (lambda: check_budget("5", [1.0]), TypeError, "budget must be a positive amount of money, got '5'"),
        (lambda: check_budget(math.inf, [1.0]), ValueError, "budget must be a positive amount of money, got inf"),
        (
            lambda: check_budget(5, least=6, reason="auto starts with 2 samples of each arm"),
            ValueError,
            "budget must be at least 6, got 5: auto starts with 2 samples of each arm",
        ),
        (
            lambda: check_budget(2**53 + 1),
            ValueError,
            "budget must buy at most 9,007,199,254,740,992 samples, got 9007199254740993",
        ),
        (
            lambda: check_budget(1e6, [1.0, 0.1], most=10**6),
            ValueError,
            "budget must buy at most 1,000,000 samples, got 1000000.0",
        ),
    ],
)
def test_budgets_that_are_refused(check: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        check()
    assert str(raised.value) == message


@pytest.mark.parametrize("price", [0.1, 0.7, 1 / 3, 1.0, 3.3])
@pytest.mark.parametrize("samples", [1, 3, 10, 100_000])
def test_a_budget_buys_exactly_the_samples_it_pays_for(price: float, samples: int) -> None:
    most = limit(price * samples, price)
    spent = carry = 0.0
    bought = 0
    while affordable(price, spent, carry, most):
        spent, carry = spend(spent, carry, price)
        bought += 1
    assert bought == samples


def test_refunds_leave_nothing_behind() -> None:
    spent = carry = 0.0
    for amount in (1e16, 1.0, -1e16, 0.25):
        spent, carry = spend(spent, carry, amount)
    assert spent + carry == 1.25


def test_without_a_budget_everything_is_affordable() -> None:
    assert limit(None) == math.inf
    assert affordable(1e300, 1e300, 0.0, limit(None))
