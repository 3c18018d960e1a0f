"""Every planner on random problems: an answer with numbers in it, or a sentence, after a limited number of steps."""

from __future__ import annotations

import contextlib
import math
import re
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.planning.reach import CLOSE
from equipoise.problem.objective import MOST
from tests.stepping import within

# Five times as many as the hardest of some thousand problems took.
STEPS = 5_000_000

REFUSED = re.compile(
    "precision must be wide enough for at most 1,000,000,000,000,000 samples of an arm, within caps, got "
    "|precision must take at most 1,000,000,000,000,000 samples of an arm, got "
    "|budget must buy at most 1,000,000,000,000,000 samples, got "
)


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    arms = draw(st.integers(1, 6))
    # How many powers of ten the numbers are apart.
    apart = draw(st.sampled_from([1, 1, 1, 20, 90]))

    def each(one: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(one, min_size=arms, max_size=arms))

    anything = st.floats(-apart, apart).map(lambda power: 10.0**power)
    binary = draw(st.booleans()) and draw(st.booleans())
    sizes = each(st.none() | st.integers(1, 40) | st.integers(100, 10**9)) if draw(st.booleans()) else [None] * arms
    most = [0.25 if size is None or size == 1 else 0.25 / (1 - 1 / size) for size in sizes]
    shares = each(st.sampled_from([0.0, 1.0, 1e-6]) | st.floats(0.001, 1))
    variances = [share * top for share, top in zip(shares, most, strict=True)] if binary else None
    variances = variances or each(st.just(0.0) | anything | st.integers(1, 5).map(float))
    case: dict[str, Any] = {"variances": variances, "support": "binary" if binary else None, "populations": sizes}
    if draw(st.booleans()):
        unit = draw(anything)
        case["costs"] = each(st.floats(0.3, 30).map(lambda cost: unit * cost) | anything)
    caps = each(st.none() | st.integers(7, 40) | st.integers(100, 10**6)) if draw(st.booleans()) else [None] * arms
    tops = [min(size or MOST, cap or MOST) for size, cap in zip(sizes, caps, strict=True)]
    case |= {"caps": caps, "floors": [min(draw(st.sampled_from([1, 1, 2, 7])), top) for top in tops]}
    kind = draw(st.sampled_from(["arms", "strata", "differences", "to", "of", "norm"]))
    if kind == "strata":
        parts = np.array([1.0, *each(st.just(0.0) | st.floats(1e-9, 1))][:arms])
        case["objective"] = eq.Stratified((parts / parts.sum()).tolist())
    elif kind == "norm":
        case["objective"] = draw(st.sampled_from([1, 2, 7.5]))
    if kind != "strata" and draw(st.booleans()):
        case["weights"] = [1.0, *each(st.just(0.0) | anything)][:arms]
    wanted = math.sqrt(max(variances)) * 10 ** draw(st.floats(-3.5, 1))
    half = wanted if 1e-50 < wanted < 1e50 else draw(anything)
    precision: Any = half
    if kind in ("differences", "to", "of") and arms > 1:
        weights = st.dictionaries(st.integers(1, arms - 1), st.just(-1.0) | anything, min_size=1)
        of = [{0: 1.0, **draw(weights)} for _ in range(draw(st.integers(1, 3)))]
        options: dict[str, dict[str, Any]] = {"differences": {}, "to": {"to": 0}, "of": {"of": of}}
        precision = eq.Contrasts(half, **options[kind])
    elif draw(st.booleans()) and draw(st.booleans()):
        precision = each(st.floats(0.2, 5).map(lambda times: times * half))
    only = draw(st.sampled_from(["precision", "precision", "budget", "both"]))
    if only != "budget":
        case |= {"precision": precision, "interval": draw(st.sampled_from([None, "fixed-width", "anytime", "fixed-n"]))}
    if only != "precision":
        costs = np.array(case.get("costs", np.ones(arms)))
        budget = math.fsum(costs * case["floors"]) + costs.min() * draw(st.integers(0, 10**6))
        case["budget"] = budget if "costs" in case else int(budget)
    return case


class Refused(Exception):
    """There is no plan, for a reason that is given in a sentence."""


def planned(case: dict[str, Any]) -> eq.Plan:
    try:
        return eq.plan(**case)
    except ValueError as error:
        if REFUSED.match(str(error)):
            raise Refused from error
        raise


def look(case: dict[str, Any]) -> None:
    with contextlib.suppress(Refused):
        look_at(planned(case))


def look_at(found: eq.Plan) -> None:
    assert str(found)
    counts = found.allocation.counts
    assert (counts >= found.terms.floors).all()
    assert (counts <= found.terms.caps).all()
    if found.budget is not None:
        assert found.cost <= found.terms.limit(found.budget) * (1 + CLOSE)
    numbers = [found.loss, found.cost, found.left, found.optimal_loss, found.uniform_loss, *found.errors.values()]
    assert np.isfinite(numbers).all()
    # Infinite where no count is enough, but never unknown.
    widths = [*found.half_widths().values(), *found.half_widths_of_sums, found.uniform_cost, found.bound]
    assert not np.isnan(widths).any()
    assert not any(math.isnan(number) for row in found.curve() for number in row.values())
    if found.reached:
        wide = found.half_widths_of_sums if found.sums is not None else np.array(list(found.half_widths().values()))
        wanted = found.sums.half_width if found.sums is not None else np.array(found.precision)
        assert (wide <= wanted * (1 + CLOSE)).all()


def check(case: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        within(STEPS, lambda: look(case))


@settings(max_examples=60)
@given(case=problems())
def test_there_is_a_plan_or_a_sentence(case: dict[str, Any]) -> None:
    check(case)


@pytest.mark.slow
@settings(max_examples=1000)
@given(case=problems())
def test_there_is_a_plan_or_a_sentence_for_any_problem(case: dict[str, Any]) -> None:
    check(case)


def test_costs_that_are_not_whole_numbers() -> None:
    """The middle of two spends, rounded down to whole samples of the cheapest arm, was the smaller of them for ever."""
    strata = eq.Stratified({"a": 0.5, "b": 0.5})
    costs = {"a": 11.1, "b": 8.9}
    found = within(100_000, lambda: eq.plan({"a": 100, "b": 130}, precision=2, objective=strata, costs=costs))
    assert found.reached
    fewer = eq.plan({"a": 100, "b": 130}, found.cost - 8.9, precision=2, objective=strata, costs=costs)
    assert fewer.reached is False


def test_a_share_of_zeros_alone_takes_samples_too() -> None:
    """Its variance is 0, but not its part of the interval: with one sample of it, no precision was ever reached."""
    strata = eq.Stratified({"never": 0.9, "even": 0.1})
    found = eq.plan({"never": 0, "even": 0.25}, precision=0.02, objective=strata, support="binary")
    assert found.reached
    assert 30 < found.counts["never"] < 1000
    assert found.bound <= found.loss


def test_a_precision_beyond_all_counts_is_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"precision must be wide enough for at most .* within caps, got 0\.1$"):
        eq.plan([4, 1], precision=eq.Contrasts(0.1), caps=[9, None])
    # Where all arms have caps, the plan says that they do not suffice; so does one with a budget.
    assert eq.plan([4, 1], precision=eq.Contrasts(0.1), caps=[9, 5]).reached is False
    assert eq.plan([4, 1], 90, precision=eq.Contrasts(0.1), caps=[9, None]).reached is False
    # A cap that is reached first is no reason to refuse.
    assert eq.plan([4, 1], precision=1e-30, caps=[9, 5]).counts == {0: 9, 1: 5}
