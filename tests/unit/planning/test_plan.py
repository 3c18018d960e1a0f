"""Plans: whole counts against every allocation there is, what is promised of the budget, and what is refused."""

from __future__ import annotations

import json
import math
import re
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise import chart
from equipoise.planning import Plan, plan
from equipoise.problem.allocation import _Steps


def loss_of(counts: tuple[int, ...], case: dict[str, Any]) -> float:
    """The objective in plain arithmetic."""
    weights = case.get("weights") or [1.0] * len(counts)
    populations = case.get("populations") or [None] * len(counts)
    each = [
        w * v * (1 / t - (1 / n if n else 0))
        for w, v, t, n in zip(weights, case["variances"], counts, populations, strict=True)
    ]
    p = case["objective"]
    return float(max(each) if p == math.inf else math.fsum(x**p for x in each if x > 0) ** (1 / p))


def best(case: dict[str, Any]) -> float:
    """The smallest loss of all whole counts within the limits and the budget."""
    arms = range(len(case["variances"]))
    costs = case.get("costs") or [1.0 for _ in arms]
    floors = case.get("floors") or [1 for _ in arms]
    tops = [
        min(
            int(case["budget"] / costs[k]) + 1,
            (case.get("caps") or [None for _ in arms])[k] or 10**9,
            (case.get("populations") or [None for _ in arms])[k] or 10**9,
        )
        for k in arms
    ]
    return min(
        loss_of(counts, case)
        for counts in product(*(range(floors[k], tops[k] + 1) for k in arms))
        if math.fsum(c * t for c, t in zip(costs, counts, strict=True)) <= case["budget"] * (1 + 1e-9)
    )


@st.composite
def cases(draw: st.DrawFn, costs: bool) -> dict[str, Any]:
    arms = draw(st.integers(1, 4 if not costs else 3))

    def each(one: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(one, min_size=arms, max_size=arms))

    case: dict[str, Any] = {
        "variances": each(st.one_of(st.just(0.0), st.floats(0.01, 100), st.integers(1, 5).map(float))),
        "objective": draw(st.sampled_from([math.inf, 1.0, 1.0, 2.0])),
    }
    if draw(st.booleans()):
        case["weights"] = [1.0, *each(st.floats(0.1, 10))][:arms]
    populations = each(st.none() | st.integers(1, 9)) if draw(st.booleans()) else [None] * arms
    caps = each(st.none() | st.integers(1, 6)) if draw(st.booleans()) else [None] * arms
    tops = [min(n or 99, cap or 99) for n, cap in zip(populations, caps, strict=True)]
    case |= {"populations": populations, "caps": caps, "floors": [draw(st.integers(1, min(3, top))) for top in tops]}
    if costs:
        case["costs"] = each(st.one_of(st.sampled_from([0.1, 0.2, 0.5, 1.0, 3.0]), st.floats(0.4, 3)))
        cheapest = min(case["costs"])
        floor = math.fsum(c * t for c, t in zip(case["costs"], case["floors"], strict=True))
        case["budget"] = floor + cheapest * draw(st.floats(0, 14))
    else:
        case["budget"] = sum(case["floors"]) + draw(st.integers(0, 10))
    return case


def check(case: dict[str, Any]) -> None:
    found = plan(**case)
    counts = tuple(found.counts.values())
    arms = range(len(counts))
    costs = case.get("costs") or [1.0 for _ in arms]
    tops = [min(case["caps"][k] or math.inf, case["populations"][k] or math.inf) for k in arms]
    assert all(case["floors"][k] <= counts[k] <= tops[k] for k in arms)
    # Never over the budget, and what is left buys nothing more.
    assert found.cost == pytest.approx(math.fsum(c * t for c, t in zip(costs, counts, strict=True)))
    assert found.cost <= case["budget"] * (1 + 1e-9)
    open_ = [costs[k] for k in arms if counts[k] < tops[k]]
    assert found.capped == (not open_)
    assert found.left < min(open_, default=math.inf)
    if "costs" not in case and open_:
        assert found.samples == case["budget"]
    assert found.loss == pytest.approx(loss_of(counts, case), rel=1e-12, abs=1e-14)
    least = best(case)
    if case["objective"] == math.inf or len(set(costs)) == 1:
        # No other counts are better.
        assert found.loss == pytest.approx(least, rel=1e-10, abs=1e-14)
        assert found.bound == pytest.approx(found.loss, rel=1e-10, abs=1e-14)
    else:
        # The best counts are no better than these with one further sample.
        assert found.bound <= least * (1 + 1e-8) + 1e-14
        assert least <= found.loss * (1 + 1e-10) + 1e-14
        further = [loss_of((*counts[:k], counts[k] + 1, *counts[k + 1 :]), case) for k in arms if counts[k] < tops[k]]
        assert min(further, default=found.loss) <= least * (1 + 1e-8) + 1e-14
    assert found.optimal_loss <= found.loss * (1 + 1e-9)
    assert found.uniform_loss >= found.loss * (1 - 1e-9)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(case=cases(costs=False))
def test_no_other_whole_counts_are_better(case: dict[str, Any]) -> None:
    check(case)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(case=cases(costs=True))
def test_no_other_whole_counts_are_better_where_costs_differ(case: dict[str, Any]) -> None:
    check(case)


def test_where_costs_differ_the_bound_says_how_far_the_best_may_be() -> None:
    # 4 for a gain of 6 is the better rate, 6 for a gain of 8 the better buy, and there is money for either.
    found = plan([12, 16], 16, objective=1, costs=[4, 6])
    assert found.counts == {0: 2, 1: 1}
    assert (found.loss, loss_of((1, 2), {"variances": [12, 16], "objective": 1})) == (22, 20)
    assert found.bound == pytest.approx(22 - 8 * 2 / 6)  # of the 16, 2 are left, at 8 for 6
    # Where the budget is spent in full, nothing is better.
    full = plan([12, 16], 14, objective=1, costs=[4, 6])
    assert (full.left, full.bound) == (0, full.loss)


def test_the_papers_two_arms() -> None:
    found = eq.plan({"a": 4, "b": 1}, budget=1000)
    assert found.counts == {"a": 800, "b": 200}
    assert found.cost == found.samples == 1000
    assert found.losses == {"a": 0.005, "b": 0.005}
    assert found.errors["a"] == math.sqrt(0.005)
    assert found.loss == found.bound == 0.005
    assert found.optimal_loss == pytest.approx(0.005)
    assert found.uniform_loss == 0.008
    assert found.uniform_cost == 1600
    assert found.left == 0
    assert (found.reached, found.capped, found.worst) == (None, False, "a")


def test_neyman() -> None:
    found = eq.plan({"city": 9, "country": 1}, 400, objective=eq.Stratified({"city": 0.5, "country": 0.5}))
    assert found.counts == {"city": 300, "country": 100}
    assert found.loss == pytest.approx(0.25 * 9 / 300 + 0.25 / 100)


def test_the_name_is_the_function_and_the_module_is_found() -> None:
    assert eq.plan is plan
    assert eq.Plan is Plan


def test_arms_in_another_order_have_the_same_counts() -> None:
    rng = np.random.default_rng(8)
    variances = dict(zip("abcdefgh", rng.lognormal(0, 2, 8).tolist(), strict=True))
    costs = dict(zip("abcdefgh", rng.uniform(1, 3, 8).tolist(), strict=True))
    choices: list[dict[str, Any]] = [{}, {"costs": costs}, {"objective": 1.0}, {"objective": 1.0, "costs": costs}]
    for more in choices:
        there = eq.plan(variances, 500, **more)
        back = eq.plan(dict(reversed(variances.items())), 500, **more)
        assert there.counts == back.counts
        assert there.loss == pytest.approx(back.loss)


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 7.5, math.inf])
def test_large_budgets_reach_the_formula(p: float) -> None:
    rng = np.random.default_rng(2)
    variances, weights, costs = rng.lognormal(0, 1, 30), rng.uniform(1, 2, 30), rng.uniform(1, 2, 30)
    found = eq.plan(variances, 10**8, objective=p, weights=weights, costs=costs)
    formula = found.terms.objective.optimal_loss(variances, 10**8)
    assert found.optimal_loss == pytest.approx(formula, rel=1e-9)
    assert formula * (1 - 1e-12) <= found.bound * (1 + 1e-9)
    assert found.bound <= found.loss <= formula * (1 + 1e-4)


def test_the_loss_of_a_finite_population_is_that_of_all_its_samples() -> None:
    """Every sample of 3 of 7 without replacement; the variance has N - 1 below the line."""
    people = [1.0, 4.0, 4.5, 8.0, 9.0, 13.0, 20.0]
    means = [sum(three) / 3 for three in combinations(people, 3)]
    found = eq.plan({"people": float(np.var(people, ddof=1))}, 3, populations=7)
    assert found.losses["people"] == pytest.approx(np.var(means))


def test_a_population_that_is_exhausted_leaves_its_budget_to_others() -> None:
    found = eq.plan({"few": 9, "many": 1}, 100, populations={"few": 12})
    assert found.losses["few"] == pytest.approx(9 / 12 * (1 - 12 / 12))
    assert found.counts == {"few": 12, "many": 88}
    assert eq.plan({"few": 9, "many": 1}, 5, populations={"few": 12}).counts == {"few": 4, "many": 1}


def test_when_every_arm_is_at_its_cap_the_plan_says_so() -> None:
    found = eq.plan([1, 2], 100, caps=[10, None], populations=[None, 20])
    assert found.counts == {0: 10, 1: 20}
    assert found.capped
    assert found.left == 70
    assert "70 of the budget is unused: every arm is at its cap or its whole population." in repr(found)
    assert "8 of the budget is unused: every arm is at its cap." in repr(eq.plan([1, 2], 10, caps=1))


def test_arms_without_variance_have_one_sample_while_another_can_use_it() -> None:
    assert eq.plan([1, 0, 0], 100).counts == {0: 98, 1: 1, 2: 1}
    assert eq.plan([1, 0, 0], 100, caps={0: 10}).counts == {0: 10, 1: 45, 2: 45}
    assert eq.plan([0, 0, 0], 11).counts == {0: 4, 1: 4, 2: 3}
    assert eq.plan([0, 0], 10**9, costs=[1, 2]).loss == 0
    assert eq.plan([3, 3], 20, weights=[0, 1]).counts == {0: 1, 1: 19}


def test_money_in_fractions() -> None:
    assert eq.plan([1], 0.3, costs=[0.1]).counts == {0: 3}
    assert eq.plan([1, 1], 0.7, costs=[0.1, 0.2]).counts == {0: 3, 1: 2}
    # The room for rounding never buys a sample.
    found = eq.plan([1, 1], 10**12 - 1, costs=[1, 2])
    assert found.cost <= 10**12 - 1


def test_one_arm_and_tiny_budgets() -> None:
    assert eq.plan({"a": 3}, 7).counts == {"a": 7}
    assert eq.plan({"a": 3, "b": 1}, 2).counts == {"a": 1, "b": 1}
    assert eq.plan({"a": 3, "b": 1}, 1e3).samples == 1000


def test_precision_alone() -> None:
    found = eq.plan({"a": 4, "b": 1, "c": 0}, interval="fixed-n", precision=0.1)
    z = 2.3939797998185104  # the normal quantile at 1 - 0.05/6
    assert found.half_widths()["a"] == pytest.approx(z * math.sqrt(4 / found.counts["a"]))
    for arm, variance in (("a", 4), ("b", 1)):
        assert z * math.sqrt(variance / found.counts[arm]) <= 0.1 < z * math.sqrt(variance / (found.counts[arm] - 1))
    assert found.counts["c"] == 1
    assert found.reached
    assert found.budget is None
    assert found.left == 0
    assert found.half_widths(0.5)["a"] < found.half_widths()["a"]
    assert eq.plan([4], interval="fixed-n", precision=1, level=0.5).counts == {0: 2}  # z = 0.6745, z² 4 = 1.82


def test_a_half_width_that_a_count_just_has_takes_that_count() -> None:
    z = 1.959963984540054
    for count in range(1, 500):
        for rounding in (-1e-13, 1e-13):
            precision = z * math.sqrt(3.7 / count) * (1 + rounding)
            assert eq.plan([3.7], interval="fixed-n", precision=precision).counts == {0: count}


def test_precision_of_each_arm() -> None:
    found = eq.plan({"a": 4, "b": 1}, interval="fixed-n", precision={"a": 0.5, "b": 0.01})
    assert found.half_widths()["a"] == pytest.approx(0.5, rel=0.01)
    assert found.half_widths()["b"] == pytest.approx(0.01, rel=0.01)
    # A population is asked as a whole rather than past it.
    assert eq.plan({"a": 4}, interval="fixed-n", precision=1e-6, populations=100).counts == {"a": 100}
    few = eq.plan({"a": 4}, interval="fixed-n", precision=0.5, populations=100)
    z = 1.959963984540054
    assert [z * math.sqrt(4 / t * (1 - t / 100)) <= 0.5 for t in (few.counts["a"] - 1, few.counts["a"])] == [
        False,
        True,
    ]


def test_precision_with_a_budget() -> None:
    rich = eq.plan({"a": 4, "b": 1}, 10_000, interval="fixed-n", precision=0.1)
    assert rich.reached
    assert rich.counts == eq.plan({"a": 4, "b": 1}, interval="fixed-n", precision=0.1).counts
    assert rich.left == 10_000 - rich.cost
    poor = eq.plan({"a": 4, "b": 1}, 1000, interval="fixed-n", precision=0.1)
    assert poor.reached is False
    assert poor.counts == {"a": 800, "b": 200}
    verdict = "✗ Precision not reached with 1,000 samples for 2 of 2 arms; the half-width of a is 0.158, target 0.1."
    assert poor.summary().startswith(f"{verdict} ")
    # Half-widths in proportion to those asked for.
    apart = eq.plan({"a": 4, "b": 1}, 10_000, interval="fixed-n", precision=[0.01, 0.02]).half_widths()
    assert apart["b"] / apart["a"] == pytest.approx(2, rel=0.001)
    capped = eq.plan({"a": 4, "b": 1}, interval="fixed-n", precision=0.1, caps={"a": 5})
    assert capped.reached is False
    assert capped.counts["a"] == 5


def test_a_study_that_stops_by_width_needs_some_more() -> None:
    exact, fixed, anytime = (
        eq.plan({"a": 4, "b": 1, "c": 0}, precision=0.1, interval=kind)
        for kind in ("fixed-n", "fixed-width", "anytime")
    )
    assert eq.plan({"a": 4, "b": 1, "c": 0}, precision=0.1).counts == fixed.counts
    z = 2.3939797998185104
    term = (z**2 + 1) / 2 + 2.5
    assert [fixed.counts[arm] - exact.counts[arm] for arm in "ab"] == pytest.approx([term, term], abs=1)
    assert fixed.half_widths()["a"] == pytest.approx(0.1, rel=1e-3)
    assert 1.9 < anytime.samples / fixed.samples < 2.3
    # However wide, a study takes some samples before it trusts their variance.
    assert eq.plan([4], precision=9).counts == {0: 30}
    assert eq.plan([4], precision=9, interval="anytime").counts == {0: 20}
    assert eq.plan([4], precision=9, populations=5).counts == {0: 5}


def test_precision_of_the_combined_mean() -> None:
    shares = {"city": 0.5, "land": 0.5}
    found = eq.plan({"city": 9, "land": 1}, precision=0.1, objective=eq.Stratified(shares), interval="fixed-n")
    # Neyman: z² (Σ Wσ)²/h².
    assert found.samples == pytest.approx((1.96 * 2 / 0.1) ** 2, rel=2e-3)
    assert found.counts["city"] == pytest.approx(3 * found.counts["land"], rel=0.01)
    assert found.reached
    said = f"✓ Precision reached with {found.samples:,} samples: the half-width of the combined mean is at most 0.1."
    assert found.summary().startswith(said)
    each = eq.plan({"city": 9, "land": 1}, precision=[0.1, 0.1], objective=eq.Stratified(shares))
    assert each.half_widths()["city"] == pytest.approx(0.1, rel=0.01)
    poor = eq.plan({"city": 9, "land": 1}, 100, precision=0.1, objective=eq.Stratified(shares))
    assert poor.reached is False
    assert "the half-width of the combined mean is 0.406, target 0.1." in poor.summary()


def test_a_plan_for_sums_has_the_samples_that_their_intervals_need() -> None:
    strata = {"city": 9.0, "land": 1.0}
    shares = {"city": 0.5, "land": 0.5}
    few = eq.plan(strata, precision=5.0, objective=eq.Stratified(shares), interval="fixed-n")
    enough = eq.plan(strata, precision=5.0, objective=eq.Stratified(shares))
    # 1/Σ(π/T) of 15, with the shares 3/4 and 1/4 of the squared error at Neyman's allocation; and 30 for the sum.
    assert few.samples < 10
    assert 30 <= enough.samples <= 50
    shares_of_error = np.array([0.75, 0.25])
    assert (shares_of_error / list(enough.counts.values())).sum() == pytest.approx(1 / 15, rel=0.1)


def test_precision_of_contrasts() -> None:
    arms = {"control": 1.0} | {str(k): 1.0 for k in range(9)}
    found = eq.plan(arms, precision=eq.Contrasts(0.1, to="control"), interval="fixed-n")
    z = 2.7729  # the normal quantile at 1 - 0.05/18
    assert found.counts["control"] / found.counts["0"] == pytest.approx(3, rel=0.02)
    assert found.samples == pytest.approx((z / 0.1) ** 2 * (1 + 3) * (1 + 9 / 3), rel=0.01)
    assert found.half_widths_of_sums == pytest.approx(np.full(9, 0.1), rel=0.01)
    assert (found.half_widths_of_sums <= 0.1).all()
    assert "every difference to control" in found.summary()
    assert json.loads(found.to_json())["half_widths_of_sums"] == pytest.approx([0.1] * 9, rel=0.01)
    anytime = eq.plan(arms, precision=eq.Contrasts(0.1), interval="anytime")
    assert anytime.samples > found.samples


def test_a_hundred_thousand_arms_and_a_billion_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search over levels looks at each arm some ten times; a walk over the budget would ten thousand times."""
    looks = 0
    urgency = _Steps.urgency

    def counted(self: _Steps, counts: Any) -> Any:
        nonlocal looks
        looks += counts.size
        return urgency(self, counts)

    monkeypatch.setattr(_Steps, "urgency", counted)
    rng = np.random.default_rng(5)
    variances = dict(enumerate(rng.lognormal(0, 2, 100_000).tolist()))
    choices: list[dict[str, Any]] = [{}, {"objective": 1.0}, {"costs": rng.uniform(1, 5, 100_000)}]
    for more in choices:
        looks = 0
        found = eq.plan(variances, 10**9, **more)
        assert 100_000 <= looks < 200 * 100_000
        assert found.cost <= 10**9 * (1 + 1e-9)
        assert found.left < 1 if "costs" not in more else found.left < found.terms.cost.min()
        assert found.loss <= found.terms.objective.optimal_loss(found.terms.variances, 10**9) * 1.001


def test_the_curve() -> None:
    found = eq.plan({"a": 4, "b": 1}, 1000)
    rows = found.curve()
    assert [row["spend"] for row in rows] == [10, 17, 31, 56, 100, 178, 316, 562, 1000, 1780, 3160, 5620, 10000]
    here = rows[8]
    assert here["samples"] == 1000
    assert here["error"] == pytest.approx(math.sqrt(0.005))
    assert here["uniform_error"] == pytest.approx(math.sqrt(0.008))
    assert here["half_width"] == pytest.approx(found.half_widths()["a"])
    assert all(after["error"] < before["error"] for before, after in pairwise(rows))
    # From the floors to the caps.
    ends = [row["spend"] for row in eq.plan([4, 1], 20, floors=5, populations=[30, 15], costs=[1, 0.5]).curve()]
    assert (ends[0], ends[-1]) == (7.5, 37.5)
    assert [row["spend"] for row in found.curve([5, 50])] == [5, 50]
    with pytest.raises(ValueError, match="budget must be at least 2, got 1"):
        found.curve([1])


def test_the_picture() -> None:
    found = eq.plan({"a": 4, "b": 1}, 1000)
    drawn = found.plot().to_dict()
    text = json.dumps(drawn)
    assert "largest standard error" in text
    assert "even split" in text
    assert [{"spend": 1000}] in [layer.get("data", {}).get("values") for layer in drawn["layer"]]
    assert "money spent" in json.dumps(eq.plan([1, 2], 30, costs=[1, 2], objective=1).plot().to_dict())
    # The points of an exhausted population have no place on a logarithmic axis.
    assert eq.plan([1, 2], 30, populations=9).plot()
    with pytest.raises(ValueError, match="must have a positive error, got 0 in every row"):
        eq.plan([0, 0], 9).plot()


@pytest.mark.parametrize(
    ("more", "title"),
    [
        ({}, "largest standard error"),
        ({"weights": [1, 2]}, "largest √(w·loss)"),
        ({"objective": 1}, "√ of the sum of losses"),
        ({"objective": eq.Stratified([0.5, 0.5])}, "√ of the sum of w·losses"),
        ({"objective": 2}, "√ of the 2-norm of losses"),
    ],
)
def test_the_error_is_named(more: dict[str, Any], title: str) -> None:
    assert eq.plan([1, 2], 30, **more).error_title == title


def test_it_prints_verdict_table_and_remarks() -> None:
    assert repr(eq.plan({"calm": 1, "rough": 4}, 1500, costs={"calm": 1, "rough": 2.5})) == (
        "682 samples, total cost 1,499.5. Largest standard error: 0.0857 (rough).\n"
        "arm    count     cost  standard error  half-width  variance\n"
        "calm     137      137         0.08544      0.1915         1\n"
        "rough    545  1,362.5         0.08567       0.192         4\n"
        "An even split would cost 1,907.5 for the same largest standard error."
    )
    many = repr(eq.plan(range(1, 31), 10**6)).splitlines()
    assert len(many) == 24
    assert many[0] == "1,000,000 samples. Largest standard error: 0.0216 (21)."
    assert many[-2:] == [
        "... and 10 arms with no larger standard error",
        "An even split would need about 1,935,450 samples for the same largest standard error.",
    ]


def test_the_verdict_is_about_what_was_asked_for() -> None:
    def verdict(*arguments: Any, **more: Any) -> str:
        return repr(eq.plan(*arguments, interval="fixed-n", **more)).splitlines()[0]

    strata = verdict({"city": 9, "land": 1}, 400, objective=eq.Stratified({"city": 0.5, "land": 0.5}))
    assert strata == "400 samples. Standard error of the combined mean: 0.1."
    assert verdict([1], 1) == "1 sample. Largest standard error: 1 (0)."
    assert verdict([1, 4], precision=0.1) == "✓ Precision reached with 2,513 samples: every half-width is at most 0.1."
    within = "✓ Precision reached with 1,006 samples: every half-width is within its precision."
    assert verdict([1, 4], precision=[0.1, 0.2]) == within
    priced = verdict([1, 4], precision=0.1, costs=[1, 2])
    assert priced.startswith("✓ Precision reached with 2,513 samples (total cost 4,523): ")
    one = verdict({"a": 4}, 10, precision=0.1)
    assert one == "✗ Precision not reached with 10 samples: the half-width of a is 1.24, target 0.1."
    assert verdict([1, 4], 2, precision=9, floors=1, level=0.999).startswith("✓ Precision reached with 2 samples: ")


def test_the_html_has_the_same_parts_and_is_escaped() -> None:
    page = eq.plan({"<b>": 1, "c": 9}, 1000)._repr_html_()
    assert page.startswith("<p>1,000 samples. Largest standard error: 0.1 (&lt;b&gt;).</p><table>")
    remark = "An even split would need about 1,800 samples for the same largest standard error."
    assert page.endswith(f"</table><p>{remark}</p>")
    assert "<b>" not in page


def test_as_plain_numbers() -> None:
    found = eq.plan({"a": 4, ("b", 1): 1}, 10, precision=0.1, caps={"a": 3})
    known = found.to_dict()
    assert known["counts"] == {"a": 3, ("b", 1): 7}
    assert known["objective"] == "inf"
    text = json.loads(found.to_json())
    assert text["counts"] == {"a": 3, "b/1": 7}
    assert text["reached"] is False
    libraries: tuple[Literal["pandas", "polars"], ...] = ("pandas", "polars")
    found = eq.plan({"a": 4, "b": 1}, 10, caps={"a": 3})
    for library in libraries:
        frame = found.to_frame(library)
        assert list(frame.columns) == ["arm", "variance", "count", "cost", "standard_error", "half_width", "loss"]
        assert list(frame["count"]) == [3, 7]
    assert list(found.to_frame()["arm"]) == ["a", "b"]
    assert found.rows()[0]["arm"] == "a"
    with pytest.raises(ValueError, match="library must be one of 'pandas', 'polars', got 'csv'"):
        found.to_frame("csv")  # type: ignore[arg-type]


def test_the_variances_of_a_result_can_be_planned_with() -> None:
    study = eq.Study(["a", "b"], budget=20)
    while not study.done:
        ticket = study.ask()
        study.tell(ticket, ticket.id % 7 * (2.0 if ticket.arm == "a" else 1.0))
    assert eq.plan(study.result().variances, 100).samples == 100


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: plan({}, 5), ValueError, "variances must have at least one arm, got none"),
        (lambda: plan([], 5), ValueError, "variances must have at least one arm, got none"),
        (lambda: plan(4, 5), TypeError, "variances must have one value for each arm, by name .*, got 4"),  # type: ignore[arg-type]
        (lambda: plan("41", 5), TypeError, "variances must have one value for each arm, by name .*, got '41'"),  # type: ignore[arg-type]
        (lambda: plan([1, math.nan], 5), ValueError, r"variances\[1\] must be non-negative, got nan"),
        (lambda: plan([1, -1], 5), ValueError, r"variances\[1\] must be non-negative, got -1"),
        (lambda: plan({"a": math.inf}, 5), ValueError, r"variances\['a'\] must be between 1e-100 and 1e100, got inf"),
        (lambda: plan(["x"], 5), TypeError, r"variances\[0\] must be a number, got 'x'"),  # type: ignore[list-item]
        (lambda: plan([1]), ValueError, "budget or precision must be given"),
        (lambda: plan([1, 1], 1), ValueError, "budget must be at least 2, got 1: each arm needs at least one sample"),
        (lambda: plan([1, 1], 5, floors=3), ValueError, "budget must be at least 6, got 5: that is what the floors"),
        (lambda: plan([1, 1], 1, costs=[1, 0.5]), ValueError, r"budget must be at least 1\.5, got 1: each arm needs"),
        (lambda: plan([1], 0), ValueError, "budget must be a positive integer, got 0"),
        (lambda: plan([1], 2.5), TypeError, r"budget must be a positive integer, got 2\.5"),
        (lambda: plan([1], math.inf), TypeError, "budget must be a positive integer, got inf"),
        (lambda: plan([1], "9"), TypeError, "budget must be a positive integer, got '9'"),  # type: ignore[arg-type]
        (lambda: plan([1], math.nan, costs=[1]), ValueError, "budget must be a positive amount of money, got nan"),
        (lambda: plan([1], "9", costs=[1]), TypeError, "budget must be a positive amount of money, got '9'"),  # type: ignore[arg-type]
        (lambda: plan([1], 1e300), ValueError, "budget must buy at most 1,000,000,000,000,000 samples"),
        (lambda: plan([1], 9, precision=0), ValueError, "precision must be a positive number, got 0"),
        (lambda: plan([1], 9, precision="1"), TypeError, "precision must be a positive number, got '1'"),  # type: ignore[arg-type]
        (lambda: plan([1], 9, precision=1e-200), ValueError, "precision must be between 1e-100 and 1e100, got 1e-200"),
        (lambda: plan([1], 9, precision=[0]), ValueError, r"precision\[0\] must be positive, got 0"),
        (lambda: plan([1, 1], 9, precision=[1]), ValueError, "precision must have one value for each of the 2 arms"),
        (
            lambda: plan([1], precision=1e-30),
            ValueError,
            r"at most 1,000,000,000,000,000 samples of an arm, got 3.84e\+60",
        ),
        (lambda: plan([1], 9, level=1), ValueError, "level must be strictly between 0 and 1, got 1"),
        (lambda: plan([1], 9, level="x"), TypeError, "level must be a number, got 'x'"),  # type: ignore[arg-type]
        (lambda: plan([1], 9).half_widths(0), ValueError, "level must be strictly between 0 and 1, got 0"),
        (lambda: plan([1], 9, objective=0), ValueError, "objective must be a positive number p, .*, got 0"),
        (
            lambda: plan([1], 9, objective=0.5, populations=20),
            ValueError,
            r"objective must be at least 1 with populations, got 0\.5",
        ),
        (lambda: plan([1], 9, floors=0), ValueError, "floors must be a positive integer, got 0"),
        (lambda: plan([1], 9, floors=1.5), TypeError, r"floors must be a positive integer, got 1\.5"),  # type: ignore[arg-type]
        (lambda: plan([1], 9, caps=[0]), ValueError, r"caps\[0\] must be a positive integer, got 0"),
        (lambda: plan([1], 9, populations={0: 0}), ValueError, r"populations\[0\] must be a positive integer, got 0"),
        (lambda: plan([1], 9, populations=10**16), ValueError, "populations must be at most 1,000,000,000,000,000"),
        (lambda: plan({"a": 1}, 9, caps={"b": 3}), ValueError, "got one for 'b', which is not an arm"),
        (lambda: plan({"a": 1}, 9, caps=[1, 2]), ValueError, "caps must have one value for each of the 1 arms, got 2"),
        (
            lambda: plan({"a": 1}, 9, floors=5, caps=4),
            ValueError,
            r"floors\['a'\] must be at most the cap of the arm, 4, got 5",
        ),
        (lambda: plan([1], 9, floors=5, populations=4), ValueError, "must be at most the population of the arm, 4"),
        (lambda: plan({"a": 1}, 9, costs={"a": 0}), ValueError, r"costs\['a'\] must be positive, got 0"),
        (lambda: plan({"a": 1}, 9, weights={"b": 0}), ValueError, "got one for 'b', which is not an arm"),
    ],
)
def test_what_is_refused(make: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        make()


def test_limits_may_be_left_open() -> None:
    assert eq.plan({"a": 1, "b": 1}, 10, floors={"b": 7}, caps={"a": 9}).counts == {"a": 3, "b": 7}
    assert eq.plan([1, 1], 10, caps=[None, 2], populations=math.inf).counts == {0: 8, 1: 2}  # type: ignore[arg-type]
    assert eq.plan(np.array([1.0, 1.0]), 10, floors=np.array([1, 6])).counts == {0: 4, 1: 6}
    assert eq.plan((v for v in (1, 1)), 10).samples == 10
    assert eq.plan([5, 5], 10, populations=1).counts == {0: 1, 1: 1}


def test_the_files_of_a_picture(tmp_path: Path) -> None:
    drawn = eq.plan({"a": 4, "b": 1}, 1000).plot()
    assert "largest standard error" in chart.save(drawn, tmp_path / "a.svg").read_text()


def test_binary_arms_are_planned_as_a_study_stops_them() -> None:
    """40 studies of coins of 0.5 and 0.1 to ±0.05, seeds 0 to 39: their mean counts within five standard errors."""
    shares = {"even": 0.5, "rare": 0.1}
    variances = {arm: p * (1 - p) for arm, p in shares.items()}
    plan = eq.plan(variances, precision=0.05, support="binary")
    counts = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        draws = {arm: (rng.random(2000) < p).astype(float) for arm, p in shares.items()}
        counts.append(eq.estimate(draws, precision=0.05, support="binary").counts.array)
    error = np.std(counts, axis=0, ddof=1) / math.sqrt(len(counts))
    # A study looks every few samples, and stops up to two percent late.
    assert (np.abs(np.mean(counts, axis=0) / list(plan.counts.values()) - 1) < 0.03 + 5 * error / 250).all()
    assert plan.counts["rare"] > 1.2 * eq.plan(variances, precision=0.05).counts["rare"]
    assert max(plan.half_widths().values()) <= 0.05
    assert "An even split" not in repr(plan)


@pytest.mark.parametrize(
    "asked",
    [
        {"precision": 0.1, "interval": "anytime"},
        {"precision": 0.06, "objective": eq.Stratified([0.4, 0.3, 0.3])},
        {"precision": 0.08, "objective": eq.Stratified([0.4, 0.3, 0.3]), "interval": "anytime"},
        {"precision": eq.Contrasts(0.12, to="rare")},
        {"precision": eq.Contrasts(0.2), "interval": "anytime"},
    ],
)
def test_a_plan_and_a_study_of_binary_arms_agree(asked: dict[str, Any]) -> None:
    """8 studies of coins of 0.5, 0.3 and 0.1, seeds 0 to 7: on average within 8% of the plan and five errors."""
    shares = {"even": 0.5, "some": 0.3, "rare": 0.1}
    plan = eq.plan({arm: p * (1 - p) for arm, p in shares.items()}, support="binary", **asked)
    taken = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        draws = {arm: (rng.random(3000) < p).astype(float) for arm, p in shares.items()}
        taken.append(eq.estimate(draws, support="binary", **asked).samples)
    error = float(np.std(taken, ddof=1)) / math.sqrt(len(taken))
    assert plan.reached
    assert abs(np.mean(taken) - plan.samples) < 0.08 * plan.samples + 5 * error
    assert error < 0.04 * plan.samples
    # Arms that are not binary take other numbers.
    assert abs(eq.plan(plan.variances, **asked).samples / plan.samples - 1) > 0.03


@pytest.mark.parametrize("interval", ["fixed-width", "anytime"])
@pytest.mark.parametrize("objective", [math.inf, eq.Stratified([0.5, 0.5])])
def test_binary_items_of_finite_populations(interval: Any, objective: Any) -> None:
    size = 400
    variances = [p * (1 - p) * size / (size - 1) for p in (0.5, 0.1)]
    asked: dict[str, Any] = {"objective": objective, "interval": interval, "support": "binary"}
    plan = eq.plan(variances, precision=0.06, populations=size, **asked)
    assert plan.reached
    assert max(plan.counts.values()) < size
    assert plan.samples < eq.plan([0.25, 0.09], precision=0.06, **asked).samples
    # All items are known exactly, and hardly any other counts reach so little.
    assert eq.plan(variances, precision=1e-6, populations=size, **asked).samples >= 2 * size - 2
    assert eq.plan([0.0, 0.0], precision=0.06, populations=size, **asked).samples > 20


def test_contrasts_are_narrowed_together() -> None:
    """A rare arm's differences are wider than their errors say, and get the samples that the others do not need."""
    shares = [0.5, 0.5, 0.1]
    plan = eq.plan([p * (1 - p) for p in shares], precision=eq.Contrasts(0.1, to=0), support="binary")
    half = plan.half_widths_of_sums
    assert half.max() <= 0.1
    assert half.min() > 0.098


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"precision": "3%"}, "precision must be a half-width such as 0.05, got '3%': a plan does not know the means"),
        ({"support": (0, 1)}, "support must be 'binary' or None, got"),
        ({"support": "binary", "variances": [4, 1]}, "variances of binary arms must be at most 0.25, got 4"),
        ({"support": "binary", "populations": 10, "variances": [0.27, 0.28]}, "must be at most 0.2778, got 0.28"),
    ],
)
def test_supports_and_shares_that_a_plan_cannot_use(given: dict[str, Any], message: str) -> None:
    options: dict[str, Any] = {"variances": [0.2, 0.1], "precision": 0.05} | given
    with pytest.raises(ValueError, match=re.escape(message)):
        eq.plan(**options)
