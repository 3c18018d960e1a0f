"""Plans: whole counts against every allocation there is, what is promised of the budget, and what is refused."""

from __future__ import annotations

import json
import math
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise import chart
from equipoise.plan import Plan, plan, read
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
    # No other counts are better.
    assert found.loss == pytest.approx(loss_of(counts, case), rel=1e-12, abs=1e-14)
    assert found.loss == pytest.approx(best(case), rel=1e-10, abs=1e-14)
    assert found.bound == pytest.approx(found.loss, rel=1e-10, abs=1e-14)
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


def test_a_knapsack_that_the_gain_per_cost_alone_would_miss() -> None:
    # 4 for the gain of 6 is the better rate, 6 for the gain of 8 the better buy: 2 arms, money for either step.
    found = plan([12, 16], 16, objective=1, costs=[4, 6])
    assert found.counts == {0: 1, 1: 2}
    assert found.loss == 20
    assert found.bound == found.loss


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
    assert "Every arm is at its cap: 70 of the budget is left." in repr(found)


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
    found = eq.plan({"a": 4, "b": 1, "c": 0}, precision=0.1)
    z = 2.3939797998185104  # the normal quantile at 1 - 0.05/6
    assert found.half_widths()["a"] == pytest.approx(z * math.sqrt(4 / found.counts["a"]))
    for arm, variance in (("a", 4), ("b", 1)):
        assert z * math.sqrt(variance / found.counts[arm]) <= 0.1 < z * math.sqrt(variance / (found.counts[arm] - 1))
    assert found.counts["c"] == 1
    assert found.reached
    assert found.budget is None
    assert found.left == 0
    assert found.half_widths(0.5)["a"] < found.half_widths()["a"]
    assert eq.plan([4], precision=1, level=0.5).counts == {0: 2}  # z = 0.6745, z² 4 = 1.82


def test_a_half_width_that_a_count_just_has_takes_that_count() -> None:
    z = 1.959963984540054
    for count in range(1, 500):
        for rounding in (-1e-13, 1e-13):
            precision = z * math.sqrt(3.7 / count) * (1 + rounding)
            assert eq.plan([3.7], precision=precision).counts == {0: count}


def test_precision_of_each_arm() -> None:
    found = eq.plan({"a": 4, "b": 1}, precision={"a": 0.5, "b": 0.01})
    assert found.half_widths()["a"] == pytest.approx(0.5, rel=0.01)
    assert found.half_widths()["b"] == pytest.approx(0.01, rel=0.01)
    # A population is asked as a whole rather than past it.
    assert eq.plan({"a": 4}, precision=1e-6, populations=100).counts == {"a": 100}
    few = eq.plan({"a": 4}, precision=0.5, populations=100)
    z = 1.959963984540054
    assert [z * math.sqrt(4 / t * (1 - t / 100)) <= 0.5 for t in (few.counts["a"] - 1, few.counts["a"])] == [
        False,
        True,
    ]


def test_precision_with_a_budget() -> None:
    rich = eq.plan({"a": 4, "b": 1}, 10_000, precision=0.1)
    assert rich.reached
    assert rich.counts == eq.plan({"a": 4, "b": 1}, precision=0.1).counts
    assert rich.left == 10_000 - rich.cost
    poor = eq.plan({"a": 4, "b": 1}, 1000, precision=0.1)
    assert poor.reached is False
    assert poor.counts == {"a": 800, "b": 200}
    assert "The precision is not reached: 'a' has a half-width of 0.158, and 0.1 was asked for." in poor.summary()
    # Half-widths in proportion to those asked for.
    apart = eq.plan({"a": 4, "b": 1}, 10_000, precision=[0.01, 0.02]).half_widths()
    assert apart["b"] / apart["a"] == pytest.approx(2, rel=0.001)
    capped = eq.plan({"a": 4, "b": 1}, precision=0.1, caps={"a": 5})
    assert capped.reached is False
    assert capped.counts["a"] == 5


def test_a_hundred_thousand_arms_and_a_billion_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a search over levels, which looks at each arm some ten times; a walk over the budget would ten thousand."""
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
    with pytest.raises(ValueError, match="budget=1 is too small"):
        found.curve([1])


def test_the_picture() -> None:
    found = eq.plan({"a": 4, "b": 1}, 1000)
    drawn = found.plot().to_dict()
    text = json.dumps(drawn)
    assert "worst standard error" in text
    assert "even split" in text
    assert [{"spend": 1000}] in [layer.get("data", {}).get("values") for layer in drawn["layer"]]
    assert "money spent" in json.dumps(eq.plan([1, 2], 30, costs=[1, 2], objective=1).plot().to_dict())
    # The points of an exhausted population have no place on a logarithmic axis.
    assert eq.plan([1, 2], 30, populations=9).plot()
    with pytest.raises(ValueError, match="every error is 0"):
        eq.plan([0, 0], 9).plot()


@pytest.mark.parametrize(
    ("more", "title"),
    [
        ({}, "worst standard error"),
        ({"weights": [1, 2]}, "worst √(w·loss)"),
        ({"objective": 1}, "√ of the sum of losses"),
        ({"objective": eq.Stratified([0.5, 0.5])}, "√ of the sum of w·losses"),
        ({"objective": 2}, "√ of the 2-norm of losses"),
    ],
)
def test_the_error_is_named(more: dict[str, Any], title: str) -> None:
    assert eq.plan([1, 2], 30, **more).error_title == title


def test_it_prints_itself() -> None:
    assert repr(eq.plan({"calm": 1, "rough": 4}, 1500, costs={"calm": 1, "rough": 2.5})) == (
        "arm    count     cost  std. error  half-width  variance\n"
        "calm     137      137     0.08544      0.1915         1\n"
        "rough    545  1,362.5     0.08567       0.192         4\n"
        "682 samples for 1,499.5; the worst-known mean is that of 'rough', with a standard error of 0.0857. "
        "An even split would need 1,907.5 for as small a loss."
    )
    many = repr(eq.plan(range(1, 31), 1000))
    assert len(many.splitlines()) == 23
    assert "... and 10 arms that are known no worse" in many
    assert "<td" in eq.plan({"<b>": 1}, 5)._repr_html_()
    assert "<b>" not in eq.plan({"<b>": 1}, 5)._repr_html_()


def test_as_plain_numbers() -> None:
    found = eq.plan({"a": 4, ("b", 1): 1}, 10, precision=0.1, caps={"a": 3})
    known = found.to_dict()
    assert known["counts"] == {"a": 3, ("b", 1): 7}
    assert known["objective"] == "inf"
    text = json.loads(found.to_json())
    assert text["counts"] == {"a": 3, "('b', 1)": 7}
    assert text["reached"] is False
    libraries: tuple[Literal["pandas", "polars"], ...] = ("pandas", "polars")
    found = eq.plan({"a": 4, "b": 1}, 10, caps={"a": 3})
    for library in libraries:
        frame = found.to_frame(library)
        assert list(frame.columns) == ["arm", "variance", "count", "cost", "standard_error", "half_width", "loss"]
        assert list(frame["count"]) == [3, 7]
    with pytest.raises(ValueError, match="'csv' will not do"):
        found.to_frame("csv")  # type: ignore[arg-type]


def test_the_variances_of_a_result_will_do() -> None:
    study = eq.Study(["a", "b"], budget=20)
    while not study.done:
        ticket = study.ask()
        study.tell(ticket, ticket.id % 7 * (2.0 if ticket.arm == "a" else 1.0))
    assert eq.plan(study.result().variances, 100).samples == 100


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: plan({}, 5), ValueError, "at least one arm"),
        (lambda: plan([], 5), ValueError, "at least one arm"),
        (lambda: plan(4, 5), TypeError, "variances=4 will not do"),  # type: ignore[arg-type]
        (lambda: plan("41", 5), TypeError, "variances='41' will not do"),  # type: ignore[arg-type]
        (lambda: plan([1, math.nan], 5), ValueError, "nan is among the variances"),
        (lambda: plan([1, -1], 5), ValueError, "-1.0 is among the variances"),
        (lambda: plan([1, math.inf], 5), ValueError, "inf is among the variances"),
        (lambda: plan(["x"], 5), TypeError, "'x' is not a number"),  # type: ignore[list-item]
        (lambda: plan([1]), ValueError, "neither a budget nor a precision"),
        (lambda: plan([1, 1], 1), ValueError, "budget=1 is too small; one sample of each arm costs 2"),
        (lambda: plan([1, 1], 5, floors=3), ValueError, "budget=5 is too small; the floors cost 6"),
        (lambda: plan([1, 1], 1, costs=[1, 0.5]), ValueError, "costs 1.5"),
        (lambda: plan([1], 0), ValueError, "budget=0 will not do"),
        (lambda: plan([1], 2.5), TypeError, "budget=2.5 will not do; it must be a whole number"),
        (lambda: plan([1], math.inf), TypeError, "budget=inf will not do"),
        (lambda: plan([1], "9"), TypeError, "budget='9' will not do"),  # type: ignore[arg-type]
        (lambda: plan([1], math.nan, costs=[1]), ValueError, "budget=nan will not do"),
        (lambda: plan([1], "9", costs=[1]), TypeError, "budget='9' will not do"),  # type: ignore[arg-type]
        (lambda: plan([1], 1e300), ValueError, "it must not buy more than 1e15"),
        (lambda: plan([1], 9, precision=0), ValueError, "precision=0 will not do"),
        (lambda: plan([1], 9, precision="1"), TypeError, "precision='1' will not do"),  # type: ignore[arg-type]
        (lambda: plan([1, 1], 9, precision=[1]), ValueError, "1 precisions were given for 2 arms"),
        (lambda: plan([1], precision=1e-30), ValueError, r"takes 3.84e\+60 samples of 0"),
        (lambda: plan([1], 9, level=1), ValueError, "level=1 will not do"),
        (lambda: plan([1], 9, level="x"), TypeError, "level='x' will not do"),  # type: ignore[arg-type]
        (lambda: plan([1], 9).half_widths(0), ValueError, "level=0 will not do"),
        (lambda: plan([1], 9, objective=0), ValueError, "objective=0 will not do"),
        (lambda: plan([1], 9, objective=0.5, populations=20), ValueError, "will not do with populations"),
        (lambda: plan([1], 9, floors=0), ValueError, "floors=0 will not do; it must be at least 1"),
        (lambda: plan([1], 9, floors=1.5), TypeError, "floors=1.5 will not do"),  # type: ignore[arg-type]
        (lambda: plan([1], 9, caps=[0]), ValueError, r"caps\[0\]=0 will not do"),
        (lambda: plan([1], 9, populations={0: 0}), ValueError, r"populations\[0\]=0 will not do"),
        (lambda: plan([1], 9, populations=10**16), ValueError, "must not be above 1e15"),
        (lambda: plan({"a": 1}, 9, caps={"b": 3}), ValueError, "there is no arm 'b'"),
        (lambda: plan({"a": 1}, 9, caps=[1, 2]), ValueError, "2 caps were given for 1 arms"),
        (lambda: plan({"a": 1}, 9, floors=5, caps=4), ValueError, "the floor 5 of arm 'a' is above its cap, 4"),
        (lambda: plan([1], 9, floors=5, populations=4), ValueError, "of arm 0 is above its population, 4"),
        (lambda: plan({"a": 1}, 9, costs={"a": 0}), ValueError, "0.0 is among the costs"),
        (lambda: plan({"a": 1}, 9, weights={"b": 0}), ValueError, "there is no arm 'b'"),
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


def test_a_table_of_guesses(tmp_path: Path) -> None:
    table = tmp_path / "guesses.csv"
    table.write_text("\ufeffArm, SD ,cost,population,floor,mean\nż=ó,2,0.5,,,9\nb,1,,50,4,8\n", encoding="utf-8")
    assert read(table) == {
        "variances": {"ż=ó": 4.0, "b": 1.0},
        "costs": {"ż=ó": 0.5, "b": 1.0},
        "populations": {"b": 50},
        "floors": {"b": 4},
    }
    assert eq.plan(**read(table), budget=30).cost == 30


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "needs the columns arm and variance"),
        ("arm,variance\n", "has no rows"),
        ("arm\na\n", "needs the columns"),
        ("arm,variance,sd\na,1,1\n", "needs the columns"),
        ("arm,variance,variance\na,1,1\n", "each once"),
        ("arm,variance\na,1\nb,2\na,3\n", "row 4 of .* names the arm 'a', as row 2 does"),
        ("arm,variance\na,one\n", "the variance 'one' in row 2 of .* must be a number"),
        ("arm,variance\na,\n", "row 2 of .* has no variance"),
        ("arm,variance\n,3\n", "row 2 of .* names no arm"),
        ("arm,sd\na,-1\n", "the sd '-1' in row 2"),
        ("arm,variance,cap\na,1,2.5\n", "the cap '2.5' in row 2 of .* must be a whole number"),
        ("arm,variance,weights\na,1,2\n", "did you mean 'weight'"),
    ],
)
def test_tables_that_are_refused(text: str, sentence: str, tmp_path: Path) -> None:
    table = tmp_path / "guesses.csv"
    table.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=sentence):
        read(table)


def test_a_file_that_is_no_table(tmp_path: Path) -> None:
    table = tmp_path / "guesses.csv"
    table.write_bytes(b"arm,variance\n\xff,1\n")
    with pytest.raises(ValueError, match="is not a CSV file in UTF-8"):
        read(table)


def test_the_files_of_a_picture(tmp_path: Path) -> None:
    drawn = eq.plan({"a": 4, "b": 1}, 1000).plot()
    assert "worst standard error" in chart.save(drawn, tmp_path / "a.svg").read_text()
