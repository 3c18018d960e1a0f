"""Ask and tell: what counts, what is refused, and that a refusal changes nothing."""

from __future__ import annotations

import copy
import math
import pickle
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.study import arms as steps


def state(study: eq.Study) -> tuple[Any, ...]:
    """All that decisions and results depend on."""
    return (
        study._floats.tobytes(),
        study._ints.tobytes(),
        study._settings.tobytes(),
        study._numbers.tobytes(),
        study._tickets[: study._next].tobytes(),
        study.budget,
        study.remaining,
    )


def half_done(strategy: Any = "auto", **options: Any) -> tuple[eq.Study, list[eq.Ticket]]:
    """A study of arms a, b, c with 12 samples in and 3 in flight."""
    study = eq.Study(["a", "b", "c"], budget=100, strategy=strategy, **options)
    for i in range(12):
        study.tell(study.ask(), float(i % 2))
    return study, study.ask(3)


# ---- what it does


def test_a_whole_study() -> None:
    study = eq.Study(["wide", "narrow"], budget=1000)
    rng = np.random.default_rng(7)
    samples: dict[Any, list[float]] = {"wide": [], "narrow": []}
    while not study.done:
        ticket = study.ask()
        value = rng.normal(5, 2) if ticket.arm == "wide" else rng.normal(-5, 1)
        samples[ticket.arm].append(value)
        study.tell(ticket, value)
    result = study.result()
    for arm, values in samples.items():
        assert result.counts[arm] == len(values)
        assert result.means[arm] == pytest.approx(np.mean(values))
        assert result.variances[arm] == pytest.approx(np.var(values, ddof=1))
    assert 700 < result.counts["wide"] < 880
    assert study.remaining == 0
    assert study.in_flight == 0


def test_tickets_in_flight_count_as_pulls() -> None:
    """64 asked at once spread as 64 asks with answers pending would: in the warm-up, evenly."""
    study = eq.Study(10, strategy="greedy")
    arms = Counter(ticket.arm for ticket in study.ask(64))
    assert sorted(arms.values()) == [6] * 6 + [7] * 4
    assert [arms[k] for k in range(4)] == [7] * 4  # ties went to the lowest arms
    assert study.in_flight == 64


def test_a_batch_spreads_by_what_is_known() -> None:
    """Variances 9 and 1, all else equal: of 100 in flight at once nine in ten are for the first."""
    study = eq.Study(2, strategy="greedy")
    study.tell_moments(0, count=50, mean=0.0, m2=49 * 9.0)
    study.tell_moments(1, count=50, mean=0.0, m2=49 * 1.0)
    arms = Counter(ticket.arm for ticket in study.ask(450))
    # 500 pulls to 55 or so make the keys equal.
    assert arms[0] == pytest.approx(445, abs=2)


def test_tells_come_in_any_order_and_late() -> None:
    study = eq.Study(["a", "b"], budget=20)
    tickets = study.ask(20)
    for ticket in reversed(tickets[5:]):
        study.tell(ticket, float(ticket.id))
    for ticket in tickets[:5]:
        study.forget(ticket)
    assert study.remaining == 5
    assert study.in_flight == 0
    more = study.ask(99)
    assert len(more) == 5
    assert study.done
    # The answers to the forgotten come after all, past the budget.
    study.tell_many([(ticket, 1.0) for ticket in tickets[:5]])
    study.tell_many([(ticket, 1.0) for ticket in more])
    assert study.result().samples == 25
    assert study.remaining == 0


def test_forgetting_twice_is_forgetting_once() -> None:
    study, (ticket, *_) = half_done()
    study.forget(ticket)
    before = state(study)
    study.forget(ticket)
    assert state(study) == before


def test_the_same_ticket_twice() -> None:
    study, (ticket, *_) = half_done()
    study.tell(ticket, 0.25)
    before = state(study)
    study.tell(ticket, 0.25)
    study.tell_many([(ticket, 0.25), (ticket, 0.25)])
    assert state(study) == before
    with pytest.raises(ValueError, match=r"answered with 0.25 before; 0.5 is another value"):
        study.tell(ticket, 0.5)
    assert state(study) == before


def test_a_ticket_twice_in_one_batch() -> None:
    study, (ticket, other, _) = half_done()
    before = state(study)
    with pytest.raises(ValueError, match="comes twice with different values"):
        study.tell_many([(other, 1.0), (ticket, 1.0), (ticket, 2.0)])
    assert state(study) == before
    # A late answer twice, then a value that will not do: the ticket ends forgotten, as it was, not answered.
    study.forget(ticket)
    before = state(study)
    with pytest.raises(ValueError, match="nan is not a sample"):
        study.tell_many([(ticket, 1.0), (ticket, 1.0), (other, math.nan)])
    assert state(study) == before
    study.tell_many([(ticket, 1.0), (ticket, 1.0)])
    assert study.result().samples == 13


def test_tell_many_is_telling_one_by_one() -> None:
    values = np.random.default_rng(3).normal(size=500).tolist()
    one, many = (eq.Study(7, strategy="auto") for _ in range(2))
    for start in range(0, 500, 50):
        a, b = one.ask(50), many.ask(50)
        for ticket, value in zip(a, values[start:], strict=False):
            one.tell(ticket, value)
        many.tell_many(zip(b, values[start : start + 50], strict=True))
        assert [t.arm for t in a] == [t.arm for t in b]
        assert one._floats.tobytes() == many._floats.tobytes()


def test_samples_from_elsewhere_use_no_budget() -> None:
    study = eq.Study(["a", "b"], budget=10)
    values = [0.2, 0.9, 0.4]
    for value in values:
        study.tell(arm="a", value=value)
    study.tell_moments(arm="b", count=50, mean=0.3, m2=1.9)
    study.tell_moments("b", 2, 0.5, 0.5)
    result = study.result()
    assert study.remaining == 10
    assert (result.counts["a"], result.counts["b"]) == (3, 52)
    assert result.means["a"] == pytest.approx(0.5)
    assert result.means["b"] == pytest.approx((50 * 0.3 + 1) / 52)
    assert result.variances["b"] == pytest.approx((1.9 + 0.5 + 0.2**2 * 50 * 2 / 52) / 51)
    # Each of them counts towards the next refresh of what is pooled.
    assert study._settings[steps.SAMPLES] == result.samples == 55
    # They count as pulls: b has many, so a is next.
    assert study.ask().arm == "a"


def test_a_larger_budget_sets_the_parameters_anew() -> None:
    """CH-AS draws its δ from the budget: after set_budget it decides as a study that had that budget all along."""
    values = np.random.default_rng(5).random(400).tolist()
    small, large = eq.Study(3, 60, "ch-as"), eq.Study(3, 300, "ch-as")
    for study in (small, large):
        for value in values[:6]:
            study.tell(study.ask(), value)
    small.set_budget(300)
    for value in values:
        a, b = small.ask(), large.ask()
        assert a.arm == b.arm
        small.tell(a, value)
        large.tell(b, value)
        if small.done:
            break
    with pytest.raises(ValueError, match="budget=20 is below the 300 samples"):
        small.set_budget(20)
    small.set_budget(301)
    assert small.remaining == 1
    with pytest.raises(ValueError, match="delta must be given"):
        small.set_budget(None)
    assert small.budget == 301


def test_a_changed_budget_keeps_the_pooled_variance() -> None:
    """What is pooled does not depend on the budget: changed, saved or loaded, the keys are the same."""
    study, _ = half_done()
    before = study._floats.copy(), study._numbers.copy()
    study.set_budget(200)
    assert (study._floats == before[0]).all()
    assert (study._numbers == before[1]).all()
    other = pickle.loads(pickle.dumps(study))
    assert (other._numbers == study._numbers).all()


def test_no_budget_no_end() -> None:
    study = eq.Study(["a"])
    assert study.remaining == math.inf
    assert not study.done
    study.tell_many(zip(study.ask(5000), [1.0, 2.0] * 2500, strict=True))
    assert study.result().counts["a"] == 5000


def test_arms_all_alike_are_taken_in_turn() -> None:
    """With no variance seen anywhere the default does not stay on one arm."""
    study = eq.Study(4, budget=100)
    while not study.done:
        study.tell(study.ask(), 1.0)
    assert study.result().counts.array.tolist() == [25] * 4


@pytest.mark.parametrize("how", ["pickle", "copy"])
def test_a_study_is_saved_and_goes_on(how: str) -> None:
    study, flying = half_done("two-stage")
    other = pickle.loads(pickle.dumps(study)) if how == "pickle" else copy.deepcopy(study)
    for one in (study, other):
        one.tell_many([(ticket, 0.5) for ticket in flying])
    assert [t.arm for t in study.ask(30)] == [t.arm for t in other.ask(30)]
    ticket = study.ask()
    assert pickle.loads(pickle.dumps(ticket)) == ticket
    assert type(pickle.loads(pickle.dumps(ticket))) is eq.Ticket


def test_names_of_every_kind() -> None:
    names = ["ünï", "日本", "", " ", 3, 2.5, ("a", 1), None, frozenset({1}), "🎲"]
    study = eq.Study(names, budget=40)
    while not study.done:
        ticket = study.ask()
        study.tell(ticket, float(ticket.id % 3))
    result = study.result()
    assert list(result.means) == names
    assert "日本" in repr(result)
    assert eq.Study(range(5, 8)).ask().arm == 5
    assert eq.Study(np.array(["x", "y"])).ask().arm == "x"
    assert eq.Study({"x": 1, "y": 2}).arms == ("x", "y")
    assert eq.Study(x for x in "pq").arms == ("p", "q")


def test_every_kind_of_number_is_a_sample() -> None:
    study = eq.Study(["a"])
    values: list[Any] = [1, True, 1.0, np.float32(1), np.int8(1), np.float64(1), np.array(1.0), Decimal(1)]
    for value in values:
        study.tell(study.ask(), value)
        study.tell_many([(study.ask(), value)])
    result = study.result()
    assert (result.counts["a"], result.means["a"], result.variances["a"]) == (2 * len(values), 1.0, 0.0)


def test_what_it_says_of_itself() -> None:
    study, (ticket, *_) = half_done()
    assert repr(study) == "<Study of 3 arms, 15 of 100 samples asked for, 3 in flight, strategy Auto()>"
    assert repr(ticket) == f"Ticket(id=12, arm={ticket.arm!r})"
    assert "no budget" in repr(eq.Study(1))


# ---- what it refuses


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"arms": 0}, ValueError, "arms=0"),
        ({"arms": -3}, ValueError, "arms=-3"),
        ({"arms": []}, ValueError, "arms is empty"),
        ({"arms": ["a", "b", "a"]}, ValueError, "two arms are called 'a'"),
        ({"arms": "abc"}, TypeError, "'abc' is one text"),
        ({"arms": 2.5}, TypeError, "arms=2.5"),
        ({"arms": [["a"], ["b"]]}, TypeError, r"called \['a'\]"),
        (
            {"arms": 3, "budget": 5},
            ValueError,
            "budget=5 is too small: auto starts with 2 of each of 3 arms, so that 6",
        ),
        ({"arms": 3, "budget": 0}, ValueError, "budget=0"),
        ({"arms": 3, "budget": -1}, ValueError, "budget=-1"),
        ({"arms": 3, "budget": 100.0}, TypeError, "budget=100.0"),
        ({"arms": 3, "budget": math.nan}, TypeError, "budget=nan"),
        ({"arms": 3, "budget": True}, TypeError, "budget=True"),
        ({"arms": 3, "strategy": "b-as"}, ValueError, "no safe default"),
        ({"arms": 3, "strategy": "oracle"}, ValueError, "true variances"),
        (
            {"arms": 3, "strategy": eq.strategies.Oracle([1, 2])},
            ValueError,
            "2 variances were given for 3 arms",
        ),
        ({"arms": 3, "strategy": "ch-as"}, ValueError, "delta must be given"),
        ({"arms": 3, "support": "binry"}, ValueError, "support='binry'"),
        ({"arms": 3, "support": (1, 0)}, ValueError, r"support=\(1, 0\)"),
        ({"arms": 3, "support": (0, math.inf)}, ValueError, "inf"),
        ({"arms": 3, "support": (0, math.nan)}, ValueError, "nan"),
        ({"arms": 3, "support": (0, 1, 2)}, ValueError, r"support=\(0, 1, 2\)"),
        ({"arms": 3, "support": ("a", "b")}, TypeError, "'a' is not a number"),
        ({"arms": 3, "support": 7}, ValueError, "support=7"),
    ],
)
def test_a_study_that_cannot_be(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        eq.Study(**arguments)


class Thing:
    def __repr__(self) -> str:
        return "Thing()"


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (math.nan, ValueError, "nan is not a sample"),
        (math.inf, ValueError, "inf is not a sample"),
        (-math.inf, ValueError, "-inf is not a sample"),
        (1e200, ValueError, "too large a sample"),
        ("0.3", TypeError, "'0.3' is not a number"),
        (None, TypeError, "None is not a number"),
        (1j, TypeError, "1j is not a number"),
        (np.str_("0.3"), TypeError, "'0.3'.* is not a number"),
        (np.complex128(1j), TypeError, "1j.* is not a number"),
        ([0.3], TypeError, r"\[0.3\] is not a number"),
        (np.array([1.0, 2.0]), TypeError, "is not a number"),
        (Thing(), TypeError, r"Thing\(\) is not a number"),
        (10**400, TypeError, "is not a number"),
    ],
)
@pytest.mark.parametrize("how", ["tell", "tell_many", "elsewhere"])
def test_a_value_that_is_no_sample(value: Any, error: type[Exception], words: str, how: str) -> None:
    study, (first, second, _) = half_done()
    before = state(study)
    calls: dict[str, Callable[[], None]] = {
        "tell": lambda: study.tell(first, value),
        "tell_many": lambda: study.tell_many([(second, 0.5), (first, value)]),
        "elsewhere": lambda: study.tell(arm="a", value=value),
    }
    with pytest.raises(error, match=words):
        calls[how]()
    assert state(study) == before
    study.tell(first, 0.5)


@pytest.mark.parametrize(
    ("support", "value"),
    [("binary", 0.5), ("binary", 2), ("binary", -1), ((0, 1), 1.01), ((0, 1), -1e-9), ((-2, 2), 3)],
)
def test_a_value_outside_the_support(support: Any, value: float) -> None:
    study, (first, second, _) = half_done(support=support)
    before = state(study)
    calls: list[Callable[[], None]] = [
        lambda: study.tell(first, value),
        lambda: study.tell_many([(second, 1.0), (first, value)]),
        lambda: study.tell(arm="a", value=value),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="is not possible here; the support is"):
            call()
    assert state(study) == before


@pytest.mark.parametrize(
    ("support", "count", "mean", "m2", "error", "words"),
    [
        (None, 0, 1.0, 0.0, ValueError, "count=0"),
        (None, 2.0, 1.0, 0.0, TypeError, "count=2.0"),
        (None, 2, math.nan, 0.0, ValueError, "nan"),
        (None, 2, 1.0, -1.0, ValueError, "m2=-1.0"),
        (None, 2, 1.0, math.inf, ValueError, "m2=inf"),
        (None, 1, 1.0, 0.5, ValueError, "m2=0.5 will not do for one sample"),
        ((0, 1), 10, 1.5, 1.0, ValueError, "1.5 is not possible"),
        ((0, 1), 10, 0.5, 2.6, ValueError, "m2=2.6 is more than 10 samples"),
        ("binary", 10, 0.5, 2.6, ValueError, "m2=2.6 is more than 10 samples"),
        ("binary", 10, 0.5, 2.4, ValueError, "m2=2.4 is less than 10 binary samples"),
    ],
)
def test_moments_that_cannot_be(
    support: Any, count: Any, mean: float, m2: float, error: type[Exception], words: str
) -> None:
    study, _ = half_done(support=support)
    before = state(study)
    with pytest.raises(error, match=words):
        study.tell_moments("a", count, mean, m2)
    assert state(study) == before
    study.tell_moments("a", 10, 0.5, 2.5)


def test_tickets_of_elsewhere() -> None:
    study, (mine, *_) = half_done()
    _, (foreign, *_) = half_done()
    before = state(study)
    unheard = eq.Ticket((mine.number + 1000, "a"))
    calls: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: study.tell(foreign, 1.0), ValueError, "was not handed out by this study"),
        (lambda: study.tell(unheard, 1.0), ValueError, "was not handed out by this study"),
        (lambda: study.forget(foreign), ValueError, "was not handed out by this study"),
        (lambda: study.tell_many([(mine, 1.0), (foreign, 1.0)]), ValueError, "pair 1 was not handed out"),
        (lambda: study.tell(7, 1.0), TypeError, "7 is not a ticket"),  # type: ignore[arg-type]
        (lambda: study.tell("abc", 1.0), TypeError, "'abc' is not a ticket"),  # type: ignore[arg-type]
        (lambda: study.tell(None, 1.0), TypeError, "None is not a ticket"),  # type: ignore[arg-type]
        (lambda: study.forget("abc"), TypeError, "'abc' is not a ticket"),  # type: ignore[arg-type]
        (lambda: study.tell_many([7]), TypeError, "pairs"),  # type: ignore[list-item]
        (lambda: study.tell_many(7), TypeError, "pairs"),  # type: ignore[arg-type]
        (lambda: study.tell_many([("abc", 1.0)]), TypeError, "pairs"),  # type: ignore[list-item]
        (lambda: study.tell(mine), TypeError, "no value was given"),
        (lambda: study.tell(value=1.0), TypeError, "nothing is not a ticket"),
        (lambda: study.tell(mine, 1.0, arm="a"), TypeError, "not both"),
        (
            lambda: study.tell(arm="z", value=1.0),
            ValueError,
            "there is no arm 'z'; the arms are 'a', 'b', 'c'",
        ),
        (lambda: study.tell(arm=["a"], value=1.0), ValueError, "there is no arm"),  # type: ignore[arg-type]
        (lambda: study.tell_moments("z", 1, 1.0, 0.0), ValueError, "there is no arm 'z'"),
        (lambda: study.ask(0), ValueError, "m=0"),
        (lambda: study.ask(-1), ValueError, "m=-1"),
        (lambda: study.ask(2.0), TypeError, "m=2.0"),  # type: ignore[call-overload]
    ]
    for call, error, words in calls:
        with pytest.raises(error, match=words):
            call()
    assert state(study) == before
    study.tell_many([])
    assert state(study) == before
    study.tell(mine, 1.0)
    with pytest.raises(ValueError, match="has been answered"):
        study.forget(mine)


def test_a_spent_budget() -> None:
    study = eq.Study(["a", "b"], budget=4)
    tickets = study.ask(10)
    assert len(tickets) == 4
    with pytest.raises(eq.EquipoiseError, match="budget of 4 samples is handed out"):
        study.ask()
    assert study.ask(5) == []
    study.forget(tickets[0])
    assert study.ask().arm == tickets[0].arm


def test_a_strategy_that_gives_no_variance() -> None:
    """The sample is kept, the study goes on, and the fault is named."""

    class Broken(eq.strategies.Strategy):
        @staticmethod
        def variance(
            count: float, mean: float, m2: float, pooled: float, own: float, params: tuple[float, ...]
        ) -> float:
            return -1.0 if count > 2 else 1.0

    study = eq.Study(2, strategy=Broken())
    for _ in range(4):
        study.tell(study.ask(), 1.0)
    with pytest.raises(
        eq.EquipoiseError, match=r"Broken.* gave a variance that is not a number >= 0; the sample is kept"
    ):
        study.tell(study.ask(), 1.0)
    assert study.result().samples == 5
    with pytest.raises(eq.EquipoiseError, match="Broken"):
        study.tell_many([(study.ask(), 1.0), (study.ask(), 1.0)])
    assert study.result().samples == 7


def test_a_million_arms() -> None:
    study = eq.Study(10**6, budget=3 * 10**6)
    tickets = study.ask(200_000)
    assert [t.arm for t in tickets[:3]] == [0, 1, 2]
    study.tell_many(zip(tickets, [0.5] * len(tickets), strict=True))
    assert study.ask().arm == 200_000
    assert study.result().samples == 200_000
    assert len(repr(study.result())) < 2000


# ---- closed arms, and tickets in arrays


@pytest.mark.parametrize("strategy", ["auto", "greedy", "gafs-max", "uniform"])
def test_a_closed_arm_is_not_asked_for(strategy: str) -> None:
    study, tickets = half_done(strategy)
    study.close("b")
    study.close("b")
    assert study.closed == ("b",)
    asked = study.ask(30)
    assert {ticket.arm for ticket in asked} == {"a", "c"}
    # What comes in, in flight or from elsewhere, does not open it, nor does a refresh or a forgotten ticket.
    for ticket in tickets:
        study.tell(ticket, 0.25)
    for i in range(20):
        study.tell(arm="b", value=float(i % 3))
    study.forget(asked[0])
    study.set_budget(500)
    assert {ticket.arm for ticket in study.ask(30)} == {"a", "c"}
    study.open("b")
    assert not study.closed
    assert "b" in {ticket.arm for ticket in study.ask(100)}


def test_a_closed_arm_in_the_warm_up() -> None:
    study = eq.Study(["a", "b"], budget=50)
    study.close("a")
    assert {ticket.arm for ticket in study.ask(20)} == {"b"}
    study.open("a")
    assert study.ask().arm == "a"


def test_all_closed() -> None:
    study, _ = half_done()
    for arm in study.arms:
        study.close(arm)
    assert study.ask(5) == []
    with pytest.raises(eq.EquipoiseError, match=r"^every arm is closed; open\(\) makes one available again$"):
        study.ask()
    assert study.remaining == 85
    with pytest.raises(ValueError, match="there is no arm 'z'"):
        study.close("z")


def test_closing_and_opening_leaves_the_decisions_as_they_were() -> None:
    """Closed and opened again, a study asks for what one that was let alone asks for."""
    one, _ = half_done()
    two, _ = half_done()
    for arm in ("c", "a", "b"):
        two.close(arm)
    for arm in ("b", "c", "a"):
        two.open(arm)
    assert [ticket.arm for ticket in one.ask(60)] == [ticket.arm for ticket in two.ask(60)]


def test_arrays_are_as_tickets() -> None:
    one, two = eq.Study(3, budget=300), eq.Study(3, budget=300)
    rng = np.random.default_rng(2)
    for m in (1, 1, 7, 50, 500):
        values = rng.normal(size=m)
        tickets = one.ask(m)
        ids, arms = two.hand_out(m)
        assert [(ticket.id, ticket.arm) for ticket in tickets] == list(zip(ids.tolist(), arms.tolist(), strict=True))
        one.tell_many(zip(tickets, values.tolist(), strict=False))
        two.take(ids, values[: len(ids)])
        assert state(one)[:2] == state(two)[:2]
    assert two.hand_out_one() is None
    assert np.isfinite(two.answers(np.arange(300))).all()


def test_tickets_for_arms_that_somebody_chose() -> None:
    """The same arms, chosen by another study: the same state, floor and all."""
    for strategy in ("auto", "gafs-max", "two-stage"):
        one = eq.Study(3, budget=400, strategy=strategy)
        two = eq.Study(3, budget=400, strategy=strategy)
        rng = np.random.default_rng(3)
        for _ in range(60):
            ids, arms = one.hand_out(4)
            assert two.hand_out_to(arms).tolist() == ids.tolist()
            values = rng.normal(size=4) * (arms + 1)
            one.take(ids, values)
            two.take(ids, values)
        assert state(one)[:2] == state(two)[:2]
        assert one.remaining == two.remaining


def test_possible_values() -> None:
    values = np.array([0.0, 1.0, 0.5, -1.0, math.nan, math.inf, 1e200])
    for support, expected in (
        ("binary", [True, True, False, False, False, False, False]),
        ((0, 1), [True, True, True, False, False, False, False]),
        (None, [True, True, True, True, False, False, False]),
    ):
        study = eq.Study(2, support=support)  # type: ignore[arg-type]
        assert study.possible(values).tolist() == expected
        assert [study.possible_one(value) for value in values.tolist()] == expected
