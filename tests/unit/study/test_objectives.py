"""Studies with weights, costs, other norms and strata."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise import report
from tests.unit.ledger.moments import of_populations


def spend(study: eq.Study, sd: dict[Any, float], seed: int = 1) -> Counter[Any]:
    """Ask and tell to the end, Gaussian samples; how many of each arm."""
    rng = np.random.default_rng(seed)
    arms: Counter[Any] = Counter()
    while not study.done:
        ticket = study.ask()
        arms[ticket.arm] += 1
        study.tell(ticket, rng.normal(0, sd[ticket.arm]))
    return arms


@pytest.mark.parametrize(
    ("options", "shares"),
    [
        # T in proportion to ((w s²)^p / c)^{1/(p+1)}, worked out by hand for standard deviations 1 and 3.
        ({}, (1, 9)),
        ({"weights": {"b": 1.0, "a": 4.0}}, (4, 9)),
        ({"weights": [9, 1]}, (1, 1)),
        ({"objective": 1}, (1, 3)),
        ({"objective": 1, "weights": [4, 1]}, (2, 3)),
        ({"objective": 2}, (1, 9 ** (2 / 3))),
        ({"objective": eq.Stratified([0.75, 0.25])}, (3, 3)),
        ({"costs": [1, 4]}, (1, 9)),
        ({"objective": 1, "costs": {"a": 1, "b": 4}}, (2, 3)),
        ({"objective": 1, "costs": [9, 1]}, (1, 9)),
    ],
)
def test_pulls_follow_the_objective(options: dict[str, Any], shares: tuple[float, float]) -> None:
    strategy = eq.strategies.Oracle([1.0, 9.0])
    arms = spend(eq.Study(["a", "b"], 20_000, strategy, **options), {"a": 1.0, "b": 3.0})
    assert arms["a"] / arms["b"] == pytest.approx(shares[0] / shares[1], rel=0.02)


def test_money_is_never_overspent_and_none_is_left_that_buys() -> None:
    study = eq.Study(["a", "b", "c"], 100, costs={"a": 1.0, "b": 7.3, "c": 30.0})
    assert study.remaining == 100
    cost = {"a": 1.0, "b": 7.3, "c": 30.0}
    arms = spend(eq.Study(list(cost), 100.0, costs=cost, strategy="uniform"), dict.fromkeys(cost, 1.0))
    bill = sum(cost[arm] * n for arm, n in arms.items())
    assert 99 < bill <= 100
    # After 1 and 7.3 and 30, twice, 23.4 is left: c is wanted and cannot be had, and the least pulled goes on.
    assert (arms["c"], arms["b"]) == (2, 4)


def test_ten_times_a_tenth_is_one() -> None:
    for costs, budget, n in (([0.1], 1.0, 10), ([0.1, 0.1, 0.1], 100.0, 1000), ([1 / 3, 1 / 3], 2.0, 6)):
        study = eq.Study(len(costs), budget, costs=costs, strategy="uniform")
        assert len(study.ask(10**9)) == n
        assert study.done
        assert study.remaining == pytest.approx(0, abs=1e-9 * budget)
        assert study.spent <= budget * (1 + 1e-9)
        assert study.ask(5) == []
        with pytest.raises(eq.EquipoiseError, match="the cheapest sample costs"):
            study.ask()


def test_rounding_does_not_add_up() -> None:
    """A hundred thousand forgotten and asked for again leave not a bit behind."""
    study = eq.Study(2, 1000.0, costs=[0.1, 0.7], strategy="uniform")
    for _ in range(50_000):
        for ticket in study.ask(2):
            study.forget(ticket)
    assert study.spent == 0
    assert study.remaining == 1000


def test_one_at_a_time_and_many_at_once_cost_the_same() -> None:
    options: dict[str, Any] = {"costs": [1, 2.5, 11], "objective": 1, "strategy": "greedy"}
    one, many = eq.Study(3, 90, **options), eq.Study(3, 90, **options)
    tickets = many.ask(500)
    assert [one.ask().arm for _ in tickets] == [ticket.arm for ticket in tickets]
    assert one.done
    assert many.done
    assert one.remaining == many.remaining < 1


def test_forgotten_money_comes_back_and_late_answers_are_paid_for() -> None:
    study = eq.Study(["a", "b"], 12, "uniform", costs=[1, 5])
    tickets = study.ask(99)
    assert [ticket.arm for ticket in tickets] == ["a", "b", "a", "b"]
    assert (study.spent, study.remaining, study.done) == (12, 0, True)
    study.forget(tickets[1])
    study.forget(tickets[1])
    assert (study.spent, study.remaining, study.done) == (7, 5, False)
    study.tell(tickets[1], 1.0)
    assert (study.spent, study.remaining, study.done) == (12, 0, True)
    study.forget(tickets[3])
    assert [ticket.arm for ticket in study.ask(2)] == ["a", "a"]
    assert study.remaining == 3
    with pytest.raises(ValueError, match="nothing is left of the budget"):
        study.tell(tickets[3], 1.0)
    assert (study.spent, study.result().samples) == (9, 1)


def test_many_late_answers_are_paid_for_one_after_the_other() -> None:
    """A batch that cannot be paid for as a whole leaves not a bit behind."""
    study = eq.Study(["a", "b"], 1.5, "uniform", costs=[0.1, 0.6])
    a, b, c, d = study.ask(4)
    assert [ticket.arm for ticket in (a, b, c, d)] == ["a", "b", "a", "b"]
    for ticket in (a, b, c, d):
        study.forget(ticket)
    (again,) = study.ask(1)
    study.tell(again, 1.0, cost=0.2)
    before = study.ledger.fingerprint()
    with pytest.raises(ValueError, match="ticket 0 of arm 'a' was given back, and nothing is left of the budget"):
        study.tell_many([(b, 1.0), (d, 1.0, 0.25), (a, 1.0), (c, 1.0)])
    assert study.ledger.fingerprint() == before
    # Each is charged with what it is expected to cost, unless it says what it did.
    study.tell_many([(b, 1.0), (d, 1.0, 0.25)])
    assert study.spent == pytest.approx(0.2 + 0.25 + 0.25)


def test_the_floor_is_kept_among_what_can_be_paid() -> None:
    """Arms a and c cost 1, b 50: with 20 left b is out of reach, and the floor sees to the two others in turn."""
    study = eq.Study(["a", "b", "c"], 20 + 104, eq.strategies.Greedy(least=9), costs=[1, 50, 1])
    for ticket in study.ask(6):
        study.tell(ticket, float(ticket.id))
    assert study.remaining == 20
    assert [ticket.arm for ticket in study.ask(6)] == ["a", "c"] * 3


def test_money_can_be_added() -> None:
    study = eq.Study(["a", "b"], 12.5, costs=[1, 5], strategy="uniform")
    study.ask(99)
    with pytest.raises(ValueError, match="budget must be at least the 12 spent so far"):
        study.set_budget(11.9)
    study.set_budget(12)
    assert study.done
    study.set_budget(20.5)
    assert (study.remaining, study.budget) == (8.5, 20.5)
    assert [ticket.arm for ticket in study.ask(99)] == ["a", "b", "a", "a"]
    study.set_budget(None)
    assert study.remaining == math.inf
    assert len(study.ask(50)) == 50


def test_samples_of_money_set_the_parameters() -> None:
    """The n of a strategy is what the money buys when it is spread evenly: a fifth of it goes into the pilot."""
    study = eq.Study(2, 1000.0, "two-stage", costs=[1, 99])
    pilot = [ticket.arm for ticket in study.ask(4)]
    assert pilot == [0, 1, 0, 1]
    assert study.ledger._params[-1] == 2.0  # 1000 / 50 = 20 samples, a fifth of them over two arms
    same = eq.Study(2, 20, "ch-as")
    assert eq.Study(2, 1000.0, "ch-as", costs=[1, 99]).ledger._params == same.ledger._params


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"budget": 0, "costs": [1, 1]}, ValueError, "budget must be a positive amount of money, got 0"),
        ({"budget": math.inf, "costs": [1, 1]}, ValueError, "budget must be a positive amount of money, got inf"),
        ({"budget": True, "costs": [1, 1]}, ValueError, "budget must be a positive amount of money, got True"),
        ({"budget": "much", "costs": [1, 1]}, TypeError, "budget must be a positive amount of money, got 'much'"),
        (
            {"budget": 10.0, "costs": [1, 5]},
            ValueError,
            "budget must be at least 12, got 10.0: auto starts with 2 samples of each arm",
        ),
        ({"budget": 1e20, "costs": [1, 5]}, ValueError, "budget must buy at most 9,007,199,254,740,992 samples, got"),
        ({"budget": 10.5}, TypeError, "budget must be a positive integer, got 10.5"),
        ({"costs": [1]}, ValueError, "costs must have one value for each of the 2 arms, got 1"),
        ({"costs": {"a": 1, "z": 1}}, ValueError, "got one for 'z', which is not an arm"),
        ({"weights": [0, 0]}, ValueError, "weights must be positive for at least one arm, got 0 for each"),
        ({"objective": -1}, ValueError, "objective must be a positive number p, .*, got -1"),
        (
            {"objective": eq.Stratified([0.5, 0.5]), "weights": [1, 2]},
            ValueError,
            "weights must be None with objective=",
        ),
    ],
)
def test_an_objective_that_cannot_be(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        eq.Study(["a", "b"], **arguments)


def test_the_plain_objective_is_the_plain_study() -> None:
    study = eq.Study(3, 60, objective=math.inf)
    assert study.objective.plain
    assert study.spent == 0
    assert repr(study) == "<Study of 3 arms, 0 of 60 samples asked for, 0 in flight, strategy Auto()>"
    assert repr(eq.Study(3, 60.5, costs=[1, 2, 3])).startswith("<Study of 3 arms, 0 of 60.5 spent on 0 samples")
    assert "0 spent on 0 samples" in repr(eq.Study(3, costs=[1, 2, 3]))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda study: pickle.loads(pickle.dumps(study))])
def test_a_copy_spends_as_the_original_does(copied: Any) -> None:
    study = eq.Study(3, 300, objective=1, weights=[1, 2, 3], costs=[1, 2, 4.5])
    rng = np.random.default_rng(2)
    for _ in range(30):
        study.tell(study.ask(), rng.normal())
    other = copied(study)
    assert other.spent == study.spent
    assert [ticket.arm for ticket in study.ask(999)] == [ticket.arm for ticket in other.ask(999)]


# ---- what the result says


def told(samples: dict[Any, list[float]], **options: Any) -> eq.Result:
    study = eq.Study(samples, **options)
    for arm, values in samples.items():
        for value in values:
            study.tell(arm=arm, value=value)
    return study.result()


def asked_for(samples: dict[Any, list[float]], **options: Any) -> eq.Result:
    """The result of a study that asked for these samples."""
    study = eq.Study(samples, **options)
    places = np.repeat(np.arange(len(samples)), [len(values) for values in samples.values()])
    ids = study.ledger.latest(study.ledger.ask_for(places))
    study.ledger.tell(ids, np.concatenate([np.array(values) for values in samples.values()]))
    return study.result()


# Means 3, 5, 5; variances 14/3, 50, 0.
SAMPLES: dict[Any, list[float]] = {"a": [1.0, 2.0, 3.0, 6.0], "b": [0.0, 10.0], "c": [5.0, 5.0, 5.0]}


@pytest.mark.parametrize("options", [{}, {"objective": 2, "costs": [1, 2, 5]}])
def test_weights_that_are_set_later_decide_as_if_they_had_been_there(options: dict[str, Any]) -> None:
    """Two studies with the same samples; from then on both ask for the same arms."""
    weights = {"c": 9.0, "a": 1.0, "b": 0.25}
    one, other = eq.Study(list("abc"), **options), eq.Study(list("abc"), weights=weights, **options)
    rng = np.random.default_rng(1)
    for _ in range(30):
        for arm in "abc":
            value = rng.normal(0, 1)
            one.tell(arm=arm, value=value)
            other.tell(arm=arm, value=value)
    plain = [ticket.arm for ticket in copy.deepcopy(one).ask(60)]
    one.set_weights(weights)
    found = [ticket.arm for ticket in one.ask(60)]
    assert found == [ticket.arm for ticket in other.ask(60)] != plain
    assert one.result().objective == other.result().objective
    one.set_weights(None)
    assert one.objective.weights is None


def test_weights_that_cannot_be_set() -> None:
    study = eq.Study(["a", "b"], weights=[1, 2])
    for wrong, said in (([1], "one value for each of the 2 arms"), ([1, -1], "must be non-negative, got -1")):
        with pytest.raises(ValueError, match=said):
            study.set_weights(wrong)
    assert study.objective.weights == (1, 2)
    with pytest.raises(ValueError, match="the weights of strata are the squares of their shares and cannot be set"):
        eq.Study(["a", "b"], objective=eq.Stratified([0.5, 0.5])).set_weights([1, 1])


def test_the_numbers_of_another_objective() -> None:
    result = asked_for(SAMPLES, objective=1, weights=[9, 1, 1], costs=[1, 2, 3])
    losses = [14 / 12, 25.0, 0.0]
    assert result.loss == pytest.approx(9 * losses[0] + losses[1])
    assert result.spent == 4 + 4 + 9
    # ( Σ sqrt(c w s²) )² over the money.
    assert result.oracle_loss == pytest.approx((math.sqrt(9 * 14 / 3) + math.sqrt(2 * 50)) ** 2 / 17)
    assert result.regret == pytest.approx(result.loss - result.oracle_loss)
    assert result.worst == "b"
    assert told(SAMPLES, weights=[90, 1, 1]).worst == "a"
    # Evenly: 17 / 6 of each.
    assert result.uniform_loss == pytest.approx((9 * 14 / 3 + 50) / (17 / 6))


def test_strata_are_combined() -> None:
    shares = {"b": 0.2, "a": 0.5, "c": 0.3}
    result = told(SAMPLES, objective=eq.Stratified(shares))
    value, error, low, high = result.combine()
    assert value == pytest.approx(0.5 * 3 + 0.2 * 5 + 0.3 * 5)
    assert error == pytest.approx(math.sqrt(0.25 * 14 / 12 + 0.04 * 25))
    assert error == pytest.approx(math.sqrt(result.loss))
    # b, with two samples, has most of the squared error: 1.6 degrees of freedom, and Student's quantiles for one.
    assert (low, high) == pytest.approx((value - 12.7062 * error, value + 12.7062 * error))
    assert result.combine(level=0.5).high == pytest.approx(value + error)
    plain = told(SAMPLES)
    assert plain.combine(shares) == plain.combine([0.5, 0.2, 0.3]) == result.combine()
    assert plain.combine([1, 0, 0]).error == pytest.approx(math.sqrt(14 / 12))
    with pytest.raises(ValueError, match="combine needs the strata's shares"):
        plain.combine()
    with pytest.raises(ValueError, match=r"shares must sum to 1, got a sum of 0\.9"):
        plain.combine([0.5, 0.2, 0.2])
    with pytest.raises(ValueError, match="shares must have one value for each of the 3 arms, got 2"):
        plain.combine([0.5, 0.5])
    # Of a stratum that makes up nothing, nothing need be known.
    assert told({"a": [1.0, 3.0], "b": []}).combine([1, 0])[:2] == (2.0, 1.0)
    assert math.isnan(told({"a": [1.0, 3.0], "b": []}).combine([0.5, 0.5]).value)


def test_some_strata_are_combined() -> None:
    """By hand: a and b are 0.5 and 0.2 of the whole, and so 5/7 and 2/7 of their part of it."""
    whole = told(SAMPLES, objective=eq.Stratified([0.5, 0.2, 0.3]))
    found = whole.combine(among=["b", "a"])
    assert found == whole.combine({"a": 0.5 / 0.7, "b": 0.2 / 0.7})
    assert found.value == pytest.approx((0.5 * 3 + 0.2 * 5) / 0.7)
    assert found.error == pytest.approx(math.sqrt(0.25 * 14 / 12 + 0.04 * 25) / 0.7)
    assert whole.combine(among=iter("a")) == told(SAMPLES).combine({"a": 1.0}) == whole.combine([1, 0, 0])
    assert told(SAMPLES).combine({"a": 0.4, "b": 0.4, "c": 0.2}, among=["a", "b"]).value == 4.0
    assert whole.combine(among=list(SAMPLES)) == whole.combine()
    numbered = told({0: [1.0, 3.0], 1: [5.0, 7.0], 2: [0.0, 2.0]})
    assert numbered.combine({0: 0.5, 1: 0.5}).value == numbered.combine([0.4, 0.4, 0.2], among=[0, 1]).value == 4.0
    # Of a stratum that is left out, nothing need be known.
    unknown = told({"a": [1.0, 3.0], "b": [], "c": [2.0, 6.0]}, objective=eq.Stratified([0.25, 0.5, 0.25]))
    assert unknown.combine(among=["a", "c"]).value == 3.0


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"among": ["a", "d"]}, ValueError, "there is no arm 'd'; the arms are 'a', 'b', 'c'"),
        ({"among": "ab"}, TypeError, "among must be a list of arms, got 'ab'"),
        ({"among": ["a", "b", "a"]}, ValueError, "among must name each arm once, got 'a' twice"),
        ({"among": []}, ValueError, r"among must have an arm with a positive share, got \[\]"),
        ({"among": ["b"], "shares": {"a": 1}}, ValueError, r"an arm with a positive share, got \['b'\]"),
        ({"shares": {"a": 0.5, "d": 0.5}}, ValueError, "shares must .*, got one for 'd', which is not an arm"),
        ({"shares": {"a": 0.5, "b": 0.4}}, ValueError, r"shares must sum to 1, got a sum of 0\.9"),
    ],
)
def test_shares_that_cannot_be_combined(given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        told(SAMPLES, objective=eq.Stratified([0.5, 0.2, 0.3])).combine(**given)


def test_the_interval_of_strata_has_the_degrees_of_freedom_of_welch() -> None:
    """Of 5 and 10 samples with squared errors 4 and 1: 25/(16/4 + 1/9) = 6.08, and t = 2.439 (6: 2.447, 7: 2.365)."""
    a, b = np.array([-2.0, -1, 0, 1, 2]), np.arange(10.0)
    samples = {"a": (a * math.sqrt(5 * 4 * 4 / 10)).tolist(), "b": (b * math.sqrt(10 * 1 / (82.5 / 9))).tolist()}
    found = told(samples).combine([0.5, 0.5])
    assert found.error == pytest.approx(math.sqrt(5) / 2)
    assert (found.high - found.low) / 2 / found.error == pytest.approx(2.439, abs=1e-3)


def test_strata_whose_samples_are_all_equal() -> None:
    """A binary one has the error of Agresti and Coull; of others alone, nothing is known."""
    zeros = {"a": [0.0] * 30, "b": [0.0] * 30}
    found = told(zeros, support="binary").combine([0.5, 0.5])
    assert found.error == pytest.approx(math.sqrt(2 * 0.25 * (2 / 34) * (32 / 34) / 30))
    assert found.low < 0 < 0.05 < found.high
    empty = told(zeros | {"c": []}, support="binary")
    assert empty.combine([0.5, 0.5, 0]) == found
    assert math.isnan(empty.combine([0.5, 0.25, 0.25]).value)
    assert math.isnan(told(zeros, support=(0, 5)).combine([0.5, 0.5]).error)
    varied = told(zeros | {"b": [0.0, 3.0] * 15}, support=(0, 5))
    assert varied.combine([0.5, 0.5]).error == pytest.approx(varied.standard_errors["b"] / 2)
    assert math.isnan(varied.difference("a", "b").error)


def test_a_certificate_of_strata_speaks_of_their_mean_first() -> None:
    """By hand: 3 of each have (0.25 * 14/3 + 0.04 * 50)/3; 9 W of each have (0.5 * 14/3 + 0.2 * 50)/9."""
    result = told(SAMPLES, objective=eq.Stratified([0.5, 0.2, 0.3]))
    found = result.certificate
    assert found.combined == result.combine()
    assert found.proportional_loss == pytest.approx((0.5 * 14 / 3 + 0.2 * 50) / 9)
    even, best = (0.25 * 14 / 3 + 0.04 * 50) / 3, (0.5 * math.sqrt(14 / 3) + 0.2 * math.sqrt(50)) ** 2 / 9
    assert str(found) == (
        f"The combined mean of the strata is 4, with a standard error of {math.sqrt(0.25 * 14 / 12 + 0.04 * 25):.3g}. "
        f"Based on the observed variances, the same budget would have given {math.sqrt(even):.3g} with equal sample "
        f"sizes, {math.sqrt(found.proportional_loss):.3g} with proportional allocation and "
        f"{math.sqrt(best):.3g} with the best allocation. Stratum b contributes most to this error: standard error 5. "
        "No 95% interval yet for any arm (intervals begin at 11 samples of an arm). All samples of c are equal, so no "
        "standard error can be estimated."
    )
    assert report.certificate(result) == f"9 samples. {found}"
    # Of money: 17 buys 17 W/(0.5 + 2 * 0.2 + 3 * 0.3) of each.
    paid = told(SAMPLES, objective=eq.Stratified([0.5, 0.2, 0.3]), costs=[1, 2, 3])
    assert paid.proportional_loss == pytest.approx((0.5 * 14 / 3 + 0.2 * 50) * 1.8 / 17)
    # A stratum that makes up nothing need not be sampled.
    assert told(SAMPLES, objective=eq.Stratified([0.5, 0.5, 0])).proportional_loss == pytest.approx(
        (0.5 * 14 / 3 + 0.5 * 50) / 9
    )
    plain = told(SAMPLES).certificate
    assert plain.combined is None
    assert math.isnan(plain.proportional_loss)
    assert str(plain).startswith("No 95% interval yet for any arm (")
    few = told({"a": [1.0, 3.0], "b": [1.0]}, objective=eq.Stratified([0.5, 0.5])).certificate
    assert str(few) == "b has 1 sample; at least 2 are needed for a standard error."


def test_strata_that_are_finite() -> None:
    """Against every way to split 9 samples, in steps of 1/1000, over populations of 5, 3 and 4."""
    shares, v, sizes = np.array([0.5, 0.2, 0.3]), np.array([14 / 3, 50.0, 0.0]), np.array([5.0, 3.0, 4.0])
    result = of_populations(told(SAMPLES, objective=eq.Stratified(shares)), sizes)

    def error(pulls: Any) -> float:
        return float((shares**2 * np.maximum(v * (1 / np.asarray(pulls) - 1 / sizes), 0)).sum())

    assert result.uniform_loss == pytest.approx(error([3, 3, 3]))
    assert result.proportional_loss == pytest.approx(error([4.5, 1.8, 2.7]))
    assert result.oracle_loss == 0  # 8 samples are all that vary
    assert "nan" not in repr(result) + str(result.certificate)
    larger = of_populations(told(SAMPLES, objective=eq.Stratified(shares)), [20.0, 3.0, 4.0])
    sizes = np.array([20.0, 3.0, 4.0])
    best = min(error([9 - x, x, 1]) for x in np.arange(0.001, 9, 0.001))
    assert 0 < larger.oracle_loss == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("costs", [None, [0.1, 0.7, 0.3]])
@pytest.mark.parametrize(
    ("objective", "words"),
    [
        (eq.Stratified([0.6, 0.3, 0.1]), " and 0 with the best allocation."),
        (math.inf, "Every mean is known exactly."),
    ],
)
def test_populations_that_are_used_up(objective: Any, words: str, costs: Any) -> None:
    """There is nothing left to lose, for the best allocation either."""
    rng, sizes = np.random.default_rng(0), [40, 23, 7]
    samples = {arm: rng.exponential(size=size).tolist() for arm, size in zip("abc", sizes, strict=True)}
    known = told(samples, objective=objective, costs=costs)
    result = of_populations(known, sizes)
    assert result.loss == result.oracle_loss == 0
    assert words in str(result.certificate)
    # With one item left there is.
    assert of_populations(known, [40.0, 24.0, 7.0]).oracle_loss > 1e-5


def test_a_person_can_read_it() -> None:
    strata = told(SAMPLES, objective=eq.Stratified([0.5, 0.2, 0.3]))
    assert (
        strata.verdict
        == "9 samples. Combined mean of the strata: 4, -10 to 18 (95%, for one planned look), standard error 1.14."
    )
    assert strata.remarks() == []
    many = {arm: [0.0, float(sd)] * 30 for arm, sd in zip("abc", (1, 1, 10), strict=True)} | {"c": [0.0, 10.0] * 90}
    even = r"An even split would have needed about \d+ samples \(\d+ to \d+\)"
    known = asked_for(many, objective=eq.Stratified([0.5, 0.2, 0.3])).remarks()[-1]
    assert re.fullmatch(rf"{even} for the same standard error\.", known)
    assert re.fullmatch(rf"{even} for the same largest standard error\.", asked_for(many).remarks()[-1])
    paid = asked_for(many, costs=[1, 1, 2]).remarks()[-1]
    assert re.fullmatch(rf"{even}, at a cost of \d+, for the same largest standard error\.", paid)
    assert re.fullmatch(rf"{even} for the same loss\.", asked_for(many, objective=2).remarks()[-1])
    assert len(asked_for(many, strategy="uniform").remarks()) == 1
    assert len(asked_for(many | {"c": [0.0, 10.0] * 30}).remarks()) == 1  # it was one
    dear = asked_for(SAMPLES, costs=[1, 2, 3], weights=[2, 1, 1])
    assert dear.verdict == (
        "9 samples (cost 17). No 95% interval yet for any arm (intervals begin at 11 samples of an arm). Largest "
        "weighted standard error: b, 5.02."
    )
    assert told(SAMPLES, objective=2).verdict == "9 samples. 2-norm of the losses: 25."
    assert "2-norm of the weighted losses: " in repr(told(SAMPLES, objective=2, weights=[1, 2, 3]))
    assert asked_for({"a": [1.0] * 4, "b": [1.0]}, costs=[1, 2]).verdict == (
        "5 samples (cost 6). b has 1 sample; at least 2 are needed for a standard error."
    )
    study = eq.Study(["a"], budget=10, costs=[2])
    for cost in (3.5, 2, 7):
        study.tell(study.ask(), 1.0, cost=cost)
    assert study.result().verdict.startswith("3 samples (cost 12.5, 2.5 over the budget). ")


def test_it_is_written_down() -> None:
    result = asked_for(SAMPLES, objective=eq.Stratified([0.5, 0.2, 0.3]), costs=[1, 2, 3])
    known = json.loads(result.to_json())
    assert known["p"] == 1
    assert known["costs"] == {"a": 1, "b": 2, "c": 3}
    assert known["shares"] == {"a": 0.5, "b": 0.2, "c": 0.3}
    assert known["weights"] == pytest.approx({"a": 0.25, "b": 0.04, "c": 0.09})
    assert known["spent"] == 17
    assert known["combined"].pop("kind") == result.combined_kind == "fixed-n"
    assert known["combined"].pop("level") == 0.95
    assert known["combined"] == pytest.approx(result.combine()._asdict())
    assert known["proportional_loss"] == result.proportional_loss
    assert json.loads(told(SAMPLES, weights=[1, 2, 3]).to_json())["p"] == "inf"
    assert not {"p", "weights", "costs", "spent", "combined"} & told(SAMPLES).to_dict().keys()
    both = json.loads(told({1: [1.0, 2.0], "1": [1.0, 5.0]}, objective=eq.Stratified([0.5, 0.5])).to_json())
    assert both["shares"] == {"1": 0.5, "'1'": 0.5}
    assert both["combined"].keys() == {"value", "error", "low", "high", "level", "kind"}


# ---- closed arms, and tickets in arrays, where samples have costs


def test_money_goes_to_open_arms() -> None:
    """A closed arm is not asked for, also where it alone is cheap enough; what is left is then no use."""
    cost = {"a": 1.0, "b": 10.0, "c": 30.0}
    for strategy in ("uniform", "auto", "gafs-max"):
        study = eq.Study(list(cost), 300.0, strategy, costs=cost)
        tickets = study.ask(6)
        study.tell_many((ticket, float(i)) for i, ticket in enumerate(tickets))
        study.retire("a")
        assert "a" not in {ticket.arm for ticket in study.ask(100)}
        assert study.done
        assert 1 <= study.remaining < 10
        assert study.ask(5) == []
        with pytest.raises(eq.EquipoiseError, match="the cheapest sample costs 10; set_budget"):
            study.ask()
        study.reopen("a")
        assert not study.done
        assert {ticket.arm for ticket in study.ask(100)} == {"a"}
        assert study.remaining < 1


def test_all_closed_is_done_with_and_without_costs() -> None:
    for costs in (None, [1, 2]):
        for budget in (40, None):
            study = eq.Study(2, budget, costs=costs)
            study.retire(0)
            assert not study.done
            study.retire(1)
            assert study.done
            assert study.ask(3) == []
            assert not study.ledger.ask(1)
            with pytest.raises(eq.EquipoiseError, match="every arm is retired"):
                study.ask()
            study.reopen(1)
            assert study.ask().arm == 1


@pytest.mark.parametrize("strategy", ["auto", "gafs-max", "uniform"])
def test_arrays_cost_what_tickets_cost(strategy: str) -> None:
    """Asked by tickets, by arrays, and for arms that another chose: the same money, to the bit."""
    options: dict[str, Any] = {"budget": 200.0, "strategy": strategy, "costs": [0.1, 0.7, 3.3], "objective": 1}
    one, two, three = (eq.Study(3, **options) for _ in range(3))
    rng = np.random.default_rng(4)
    while not one.done:
        tickets = one.ask(7)
        ids = np.array(two.ledger.latest(two.ledger.ask(7)), np.int64)
        arms = two.ledger.arms_of(ids)
        assert [ticket.arm for ticket in tickets] == arms.tolist()
        assert list(three.ledger.latest(three.ledger.ask_for(arms))) == ids.tolist()
        values = rng.normal(size=len(ids))
        one.tell_many(zip(tickets, values.tolist(), strict=True))
        two.ledger.tell(ids, values)
        three.ledger.tell(ids, values)
    for other in (two, three):
        assert other.ledger.fingerprint() == one.ledger.fingerprint()
        assert not other.ledger.ask(1)


def test_a_closed_arm_is_closed_in_a_copy() -> None:
    study = eq.Study(["a", "b"], 100.0, costs=[1, 2])
    study.retire("a")
    again = pickle.loads(pickle.dumps(study))
    assert again.retired == ("a",)
    assert {ticket.arm for ticket in again.ask(100)} == {"b"}
    assert again.done
