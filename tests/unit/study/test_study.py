"""Ask and tell: what counts, what is refused, and that a refusal changes nothing."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.ledger.ledger import Ledger
from equipoise.numeric import moments
from equipoise.strategies import Numbers


def state(study: eq.Study) -> dict[str, Any]:
    """All that decisions and results depend on."""
    return study.ledger.fingerprint()


def memory(study: eq.Study) -> Any:
    """Counts, means, keys and queues of the arms, as bytes."""
    return state(study)["counts, means, own and pooled numbers, keys, queues"]


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
    # The answers to some of the forgotten come after all, and take a place in the budget again.
    study.tell_many([(ticket, 1.0) for ticket in tickets[:2]])
    assert study.remaining == 3
    study.decline(tickets[2])
    assert study.remaining == 2
    more = study.ask(99)
    assert len(more) == 2
    assert study.done
    # Others come when their places are taken.
    before = state(study)
    sentence = "ticket 3 of arm 'b' was given back, and nothing is left of the budget for a late answer"
    with pytest.raises(ValueError, match=sentence):
        study.tell(tickets[3], 1.0)
    with pytest.raises(ValueError, match=sentence):
        study.tell_many([(more[0], 1.0), (tickets[3], 1.0)])
    with pytest.raises(ValueError, match=sentence):
        study.decline(tickets[3])
    assert state(study) == before
    study.tell_many([(ticket, 1.0) for ticket in more])
    assert study.result().samples == 19
    assert study.remaining == 0
    study.set_budget(21)
    with pytest.raises(ValueError, match="ticket 4 of arm 'a' was given back"):
        study.tell_many([(tickets[3], 1.0), (tickets[4], 1.0)])  # one of them would fit
    study.tell(tickets[3], 1.0)
    assert (study.result().samples, study.remaining) == (20, 0)


def test_late_answers_leave_no_more_than_was_left() -> None:
    """What may be handed out is known ahead, for many asks: a late answer takes one of them."""
    study = eq.Study(2, 10, "uniform")
    tickets = [study.ask() for _ in range(6)]
    for ticket in tickets[:3]:
        study.forget(ticket)
    study.ask()
    study.tell(tickets[0], 1.0)
    study.tell_many([(tickets[1], 1.0)])
    assert len([study.ask() for _ in range(4)]) == 4
    with pytest.raises(eq.EquipoiseError, match="the budget of 10 samples is spent"):
        study.ask()
    with pytest.raises(ValueError, match="nothing is left of the budget"):
        study.tell(tickets[2], 1.0)


def test_a_late_answer_needs_a_place_in_its_population() -> None:
    study = eq.Study(["a", "b"], populations=[2, 5])
    first = study.ask(7)
    for ticket in first:
        study.forget(ticket)
    again = study.ask(7)
    of_a = [ticket for ticket in first if ticket.arm == "a"]
    with pytest.raises(ValueError, match="nothing is left of the budget or its population for a"):
        study.tell(of_a[0], 1.0)
    study.forget(next(ticket for ticket in again if ticket.arm == "a"))
    with pytest.raises(ValueError, match="nothing is left of the budget or its population"):
        study.tell_many([(of_a[0], 1.0), (of_a[1], 1.0)])
    study.tell(of_a[0], 1.0)
    assert study.ask(7) == []
    assert dict(study.result().counts) == {"a": 1, "b": 0}


def test_no_order_of_arms_exceeds_a_budget() -> None:
    """What comes first may be asked for whatever the strategy says, and not whatever the budget says."""
    study = eq.Study(3, 4, "uniform", populations=[1, None, None])
    assert study.ledger.ask_for(np.array([1, 0, 2, 2, 2])) == 4
    assert study.done
    paid = eq.Study(["a", "b"], 12, "uniform", costs=[1, 5])
    assert paid.ledger.ask_for(np.array([1, 1, 1, 0])) == 2
    assert paid.spent == 10
    used_up = eq.Study(2, populations=[1, 9])
    assert used_up.ledger.ask_for(np.array([0, 0, 1])) == 1


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
    with pytest.raises(ValueError, match=r"already answered with 0.25, got 0.5"):
        study.tell(ticket, 0.5)
    assert state(study) == before


def test_a_ticket_twice_in_one_batch() -> None:
    study, (ticket, other, _) = half_done()
    before = state(study)
    with pytest.raises(ValueError, match="comes twice in one call with different values"):
        study.tell_many([(other, 1.0), (ticket, 1.0), (ticket, 2.0)])
    assert state(study) == before
    # A late answer twice, then a value that is refused: the ticket ends forgotten, as it was, not answered.
    study.forget(ticket)
    before = state(study)
    with pytest.raises(ValueError, match="must be a finite number, got nan"):
        study.tell_many([(ticket, 1.0), (ticket, 1.0), (other, math.nan)])
    assert state(study) == before
    with pytest.raises(ValueError, match="comes twice in one call with different values"):
        study.tell_many([(ticket, 1.0), (ticket, 2.0)])
    assert state(study) == before
    study.tell_many([(ticket, 1.0), (ticket, 1.0)])
    assert study.result().samples == 13


def test_late_answers_in_a_batch_are_pulls_anew() -> None:
    """A forgotten ticket was no pull any more: its late answer is one, whether told alone or among many."""
    alone, many = half_done(), half_done()
    for study, tickets in (alone, many):
        study.forget(tickets[0])
    alone[0].tell(alone[1][0], 1.0)
    alone[0].tell(alone[1][1], 1.0)
    many[0].tell_many([(many[1][0], 1.0), (many[1][1], 1.0)])
    assert memory(alone[0]) == memory(many[0])
    assert alone[0].in_flight == many[0].in_flight == 1


def test_tell_many_is_telling_one_by_one() -> None:
    values = np.random.default_rng(3).normal(size=500).tolist()
    one, many = (eq.Study(7, strategy="auto") for _ in range(2))
    for start in range(0, 500, 50):
        a, b = one.ask(50), many.ask(50)
        for ticket, value in zip(a, values[start:], strict=False):
            one.tell(ticket, value)
        many.tell_many(zip(b, values[start : start + 50], strict=True))
        assert [t.arm for t in a] == [t.arm for t in b]
        assert memory(one) == memory(many)


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
    assert study.ledger._state.header["samples"] == result.samples == 55
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
    with pytest.raises(ValueError, match="budget must be at least the 300 spent so far, got 20"):
        small.set_budget(20)
    small.set_budget(301)
    assert small.remaining == 1
    with pytest.raises(ValueError, match="delta must be given"):
        small.set_budget(None)
    assert small.budget == 301


def test_a_changed_budget_keeps_the_pooled_variance() -> None:
    """What is pooled does not depend on the budget: changed, saved or loaded, the keys are the same."""
    study, _ = half_done()
    pooled = study.ledger._state.pooled
    before = study.ledger._state.arms.copy(), pooled.tolist()
    study.set_budget(200)
    assert (study.ledger._state.arms == before[0]).all()
    assert pooled.tolist() == before[1] != [0.0]
    other = pickle.loads(pickle.dumps(study))
    assert state(other) == state(study)


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


def test_a_copy_and_its_original_never_hand_out_the_same_number() -> None:
    """What was in flight at the moment of copying is of both; what comes later is of the one that handed it out."""
    study, flying = half_done("greedy")
    other = copy.deepcopy(study)
    third = pickle.loads(pickle.dumps(other))
    other.tell_many([(ticket, 100.0 * k) for k, ticket in enumerate(flying)])
    later = {id(one): one.ask(5) for one in (study, other, third)}
    numbers = [ticket.number for tickets in later.values() for ticket in tickets]
    assert len(set(numbers)) == 15
    for one in (study, other, third):
        for two in (study, other, third):
            for ticket in later[id(two)]:
                if one is two:
                    one.tell(ticket, 1.0)
                else:
                    with pytest.raises(ValueError, match="belongs to another study"):
                        one.tell(ticket, 1.0)
                    with pytest.raises(ValueError, match="pair 0 belongs to another study"):
                        one.tell_many([(ticket, 1.0)])
    # Old and new in one go, and those of the copy's copy, ids counting on.
    third.tell_many([(flying[0], 3.0), (third.ask(), 1.0)])
    third.tell(flying[1], 4.0)
    third.forget(flying[2])
    assert [ticket.id for ticket in later[id(third)]] == list(range(15, 20))
    fresh = eq.Study(2)
    assert copy.copy(fresh).ask().number != fresh.ask().number


def test_an_answer_is_never_credited_to_another_arm() -> None:
    study, (ticket, other, _) = half_done()
    wrong = "abc"[("abc".index(str(ticket.arm)) + 1) % 3]
    before = state(study)
    forged = eq.Ticket((ticket.number, wrong))
    nobody = eq.Ticket((ticket.number, "z"))
    for bad in (forged, nobody):
        calls: list[Callable[[], None]] = [
            partial(study.tell, bad, 1.0),
            partial(study.tell_many, [(other, 1.0), (bad, 1.0)]),
            partial(study.forget, bad),
        ]
        for call in calls:
            with pytest.raises(ValueError, match=f"was handed out for arm {ticket.arm!r}, not for {bad.arm!r}"):
                call()
    assert state(study) == before
    counting = eq.Study(5)
    number = counting.ask().number
    for arm in (1, 7, "x", 0.5, None):
        with pytest.raises(ValueError, match="was handed out for arm 0, not for"):
            counting.tell(eq.Ticket((number, arm)), 1.0)
    counting.tell(eq.Ticket((np.int64(number), np.int64(0))), 1.0)  # type: ignore[arg-type]


class Plain(eq.strategies.Strategy):
    """What the tests of saving change under a saved study."""

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return m2 / count


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"floor": staticmethod(lambda t, arms, params: 5.0)}, "its floor was False and is True"),
        ({"warmup": 3}, "its warmup was 2 and is 3"),
        (
            {
                "sums": ("a", "b"),
                "pooled": ("c",),
                "share": staticmethod(eq.strategies.Auto.share),
                "pool": staticmethod(eq.strategies.Auto.pool),
            },
            r"its sums was \(\) and is \('a', 'b'\), its pooled was \(\) and is \('c',\)",
        ),
        ({"own": ("mine",)}, r"its own was \(\) and is \('mine',\)"),
        ({"params": lambda self, budget, arms, support: (1.0, 2.0)}, "its number of params was 0 and is 2"),
    ],
)
def test_a_study_is_not_loaded_into_another_strategy(
    change: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, _ = half_done(Plain())
    saved = pickle.dumps(study)
    assert pickle.loads(saved).ask().arm == study.ask().arm
    for name, value in change.items():
        monkeypatch.setattr(Plain, name, value)
    with pytest.raises(eq.EquipoiseError, match=f"was saved with another Plain: {words}; load it where"):
        pickle.loads(saved)


def test_a_study_of_another_format_is_not_loaded() -> None:
    study, _ = half_done()
    saved = study.ledger.__getstate__()
    for found in (99, None):
        with pytest.raises(eq.EquipoiseError, match=f"must be of format 7, got one of format {found}"):
            Ledger.__new__(Ledger).__setstate__(saved | {"format": found})
    with pytest.raises(eq.EquipoiseError, match="saved by an older version"):
        eq.Study.__new__(eq.Study).__setstate__({"format": 4})


def test_a_loaded_study_goes_on_in_another_process() -> None:
    """Compiled functions are elsewhere there."""
    study, _ = half_done("two-stage")
    code = (
        "import pickle, sys; from equipoise.engine import functions\n"
        "study = pickle.load(sys.stdin.buffer)\n"
        "rule = functions.compile_rule(study.strategy, study.ledger._params)\n"
        "print(study.ledger._rule.tobytes() == rule.tobytes())\n"
        "print(*(ticket.arm for ticket in study.ask(20)))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(study), capture_output=True, check=True)
    same, arms = done.stdout.decode().splitlines()
    assert same == "True"
    assert arms.split() == [ticket.arm for ticket in study.ask(20)]


def test_room_for_more_tickets_keeps_the_old_ones() -> None:
    study = eq.Study(3)
    tickets = [study.ask() for _ in range(700)] + study.ask(3000)
    for ticket in tickets[::7]:
        study.tell(ticket, float(ticket.id))
    for ticket in tickets[::7]:
        study.tell(ticket, float(ticket.id))
        with pytest.raises(ValueError, match=f"was already answered with {float(ticket.id)!r}"):
            study.tell(ticket, -1.0)
    assert study.result().samples == len(tickets[::7])


class Compared(float):
    """A number that counts how often it was compared."""

    times = 0

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return float(self) == other

    __hash__ = float.__hash__


def test_names_that_are_numbers_are_found_at_once() -> None:
    """Without a search among the names, which `range` makes for what is not an int."""
    study = eq.Study(10_000)
    found: list[Any] = [np.int64(9_999), 9_999.0, np.float32(9_999), 9_999, Compared(9_999)]
    Compared.times = 0
    for name in found:
        study.tell(arm=name, value=1.0)
    assert Compared.times < 10
    assert study.result().counts[np.int64(9_999)] == 5
    nowhere: list[Any] = [10_000, -1, 0.5, math.nan, math.inf, np.int64(-1), "0"]
    for name in nowhere:
        with pytest.raises(ValueError, match="there is no arm"):
            study.tell(arm=name, value=1.0)
        with pytest.raises(KeyError):
            study.result().counts[name]
    assert eq.Study(range(5, 8)).ledger.names.find(np.int64(6)) == 1


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
    assert repr(eq.Study(1)) == "<Study of 1 arm, 0 samples asked for, 0 in flight, strategy Auto()>"
    costly = eq.Study(["a", "b"], 2_000_000.0, costs=[1, 2])
    costly.ask()
    assert repr(costly).startswith("<Study of 2 arms, 1 of 2,000,000 spent on 1 sample, 1 in flight")
    assert "<td" in costly._repr_html_()
    assert "1 of 2,000,000 spent on 1 sample" in costly._repr_html_()


# ---- what it refuses


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"arms": 0}, ValueError, "arms must be a positive integer, got 0"),
        ({"arms": -3}, ValueError, "arms must be a positive integer, got -3"),
        ({"arms": []}, ValueError, "arms must have at least one name, got an empty list"),
        ({"arms": ["a", "b", "a"]}, ValueError, "arm names must be unique, got 'a' twice"),
        ({"arms": "abc"}, TypeError, "arms must be a list of names or the number of arms, got 'abc'"),
        ({"arms": 2.5}, TypeError, "arms must be a list of names or the number of arms, got 2.5"),
        ({"arms": [["a"], ["b"]]}, TypeError, r"must be hashable, such as a string, got \['a'\]"),
        ({"arms": [([1],), "b"]}, TypeError, r"must be hashable, such as a string, got \(\[1\],\)"),
        ({"arms": 3, "budget": 2**60}, ValueError, "budget must buy at most 9,007,199,254,740,992 samples, got"),
        (
            {"arms": 3, "budget": 5},
            ValueError,
            "budget must be at least 6, got 5: auto starts with 2 samples of each arm",
        ),
        ({"arms": 3, "budget": 0}, ValueError, "budget must be a positive integer, got 0"),
        ({"arms": 3, "budget": -1}, ValueError, "budget must be a positive integer, got -1"),
        ({"arms": 3, "budget": 100.0}, TypeError, "budget must be a positive integer, got 100.0"),
        ({"arms": 3, "budget": math.nan}, TypeError, "budget must be a positive integer, got nan"),
        ({"arms": 3, "budget": True}, TypeError, "budget must be a positive integer, got True"),
        ({"arms": 3, "strategy": "b-as"}, ValueError, "no safe default"),
        ({"arms": 3, "strategy": "oracle"}, ValueError, "true variances"),
        (
            {"arms": 3, "strategy": eq.strategies.Oracle([1, 2])},
            ValueError,
            "variances must have one value for each of the 3 arms, got 2",
        ),
        ({"arms": 3, "strategy": "ch-as"}, ValueError, "delta must be given"),
        ({"arms": 3, "support": "binry"}, ValueError, "support must be .* got 'binry'"),
        ({"arms": 3, "support": (1, 0)}, ValueError, r"support must be .* got \(1, 0\)"),
        ({"arms": 3, "support": (0, math.inf)}, ValueError, "inf"),
        ({"arms": 3, "support": (0, math.nan)}, ValueError, "nan"),
        ({"arms": 3, "support": (0, 1, 2)}, ValueError, r"support must be .* got \(0, 1, 2\)"),
        ({"arms": 3, "support": ("a", "b")}, TypeError, "must be a number, got 'a'"),
        ({"arms": 3, "support": 7}, ValueError, "support must be .* got 7"),
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
        (math.nan, ValueError, "must be a finite number, got nan"),
        (math.inf, ValueError, "must be a finite number, got inf"),
        (-math.inf, ValueError, "must be a finite number, got -inf"),
        (1e200, ValueError, "must be a finite number, got 1e.200; its square would overflow"),
        ("0.3", TypeError, "value must be a number, got '0.3'"),
        (None, TypeError, "value must be a number, got None"),
        (1j, TypeError, "value must be a number, got 1j"),
        (np.str_("0.3"), TypeError, "value must be a number, got '0.3'"),
        (np.complex128(1j), TypeError, "value must be a number, got 1j"),
        ([0.3], TypeError, r"value must be a number, got \[0.3\]"),
        (np.array([1.0, 2.0]), TypeError, "value must be a number, got array"),
        (Thing(), TypeError, r"value must be a number, got Thing\(\)"),
        (10**400, TypeError, "value must be a number, got 1000"),
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
        with pytest.raises(ValueError, match=r"a sample must be (0 or 1|between -?[0-9] and [0-9]), got"):
            call()
    assert state(study) == before


@pytest.mark.parametrize(
    ("support", "count", "mean", "m2", "error", "words"),
    [
        (None, 0, 1.0, 0.0, ValueError, "count must be a positive integer, got 0"),
        (None, 2.0, 1.0, 0.0, TypeError, "count must be a positive integer, got 2.0"),
        (None, 2, math.nan, 0.0, ValueError, "nan"),
        (None, 2, 1.0, -1.0, ValueError, "m2 must not be negative, as a sum of squares, .*, got -1.0"),
        (
            None,
            2,
            1.0,
            math.inf,
            ValueError,
            "m2 must not be negative, as a sum of squares, .*, got inf",
        ),
        (None, 1, 1.0, 0.5, ValueError, "m2 must be 0 for one sample, got 0.5"),
        ((0, 1), 10, 1.5, 1.0, ValueError, "mean: a sample must be between 0 and 1, got 1.5"),
        ((0, 1), 10, 0.5, 2.6, ValueError, "m2 must be at most 2.5, the largest of 10 samples between 0 and 1 with"),
        (
            "binary",
            10,
            0.5,
            2.6,
            ValueError,
            "m2 must be at most 2.5, the largest of 10 samples 0 or 1 with",
        ),
        ("binary", 10, 0.5, 2.4, ValueError, "m2 must be 2.5, the one of 10 samples 0 or 1 with mean 0.5, got 2.4"),
        ("binary", 10, 0.55, 2.475, ValueError, "mean must be that of 10 samples 0 or 1, got 0.55"),
        (None, 2**62, 0.5, 0.0, ValueError, r"count must not take a study past 2\*\*53 samples"),
        (None, 2**53, 0.5, 0.0, ValueError, r"count must not take a study past 2\*\*53 samples"),
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


def test_moments_in_a_narrow_support() -> None:
    """How far moments may be out goes by the width of the support, not by a unit that it knows nothing of."""
    study = eq.Study(["a"], support=(0.0, 1e-6))
    with pytest.raises(ValueError, match=r"m2 must be at most 2.5e-12, the largest of 10 samples"):
        study.tell_moments("a", 10, 0.5e-6, 2.6e-12)
    study.tell_moments("a", 10, 0.5e-6, 2.5e-12)
    far = eq.Study(["a"], support=(1e6, 1e6 + 1e-3))
    samples = np.array([1e6, 1e6 + 1e-3] * 5)
    far.tell_moments("a", *moments.of(samples))


def test_very_many_samples_at_once() -> None:
    study = eq.Study(["a", "b"], support=(-1e149, 1e149))
    study.tell_moments("a", 2**52, 0.0, 1e299)
    study.tell_moments("b", 2**52, 0.0, 2e299)
    assert study.ask().arm == "b"
    assert study.result().samples == 2**53
    with pytest.raises(ValueError, match=r"count must not take a study past 2\*\*53 samples, got 1"):
        study.tell_moments("a", 1, 0.0, 0.0)


def test_tickets_of_elsewhere() -> None:
    study, (mine, *_) = half_done()
    _, (foreign, *_) = half_done()
    before = state(study)
    unheard = eq.Ticket((mine.number + 1000, "a"))
    calls: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: study.tell(foreign, 1.0), ValueError, "belongs to another study"),
        (lambda: study.tell(unheard, 1.0), ValueError, "belongs to another study"),
        (lambda: study.forget(foreign), ValueError, "belongs to another study"),
        (lambda: study.tell_many([(mine, 1.0), (foreign, 1.0)]), ValueError, "pair 1 belongs to another study"),
        (lambda: study.tell(7, 1.0), TypeError, "ticket must be one that ask.. returned, got 7"),  # type: ignore[arg-type]
        (lambda: study.tell("abc", 1.0), TypeError, "ticket must be one that ask.. returned, got 'abc'"),  # type: ignore[arg-type]
        (lambda: study.tell(None, 1.0), TypeError, "ticket must be one that ask.. returned, got None"),  # type: ignore[arg-type]
        (lambda: study.tell({}, 1.0), TypeError, "ticket must be one that ask.. returned, got {}"),  # type: ignore[arg-type]
        (lambda: study.tell(eq.Ticket((float(mine.number), "a")), 1.0), TypeError, "ticket must be one that ask"),  # type: ignore[arg-type]
        (lambda: study.tell(eq.Ticket((10**30, "a")), 1.0), ValueError, "belongs to another study"),
        (lambda: study.tell_many([({}, 1.0)]), TypeError, "pairs"),  # type: ignore[list-item]
        (lambda: study.tell_many([(mine, 1.0, 2.0)]), ValueError, "cost needs a study with costs="),
        (lambda: study.tell_many([(mine, 1.0, 2.0, 3.0)]), TypeError, "pairs"),  # type: ignore[list-item]
        (lambda: study.tell_many([(eq.Ticket((0.5, "a")), 1.0)]), TypeError, "pairs"),  # type: ignore[arg-type]
        (lambda: study.forget("abc"), TypeError, "ticket must be one that ask.. returned, got 'abc'"),  # type: ignore[arg-type]
        (lambda: study.tell_many([7]), TypeError, "pairs"),  # type: ignore[list-item]
        (lambda: study.tell_many(7), TypeError, "pairs"),  # type: ignore[arg-type]
        (lambda: study.tell_many([("abc", 1.0)]), TypeError, "pairs"),  # type: ignore[list-item]
        (lambda: study.tell(mine), TypeError, "value is required"),
        (lambda: study.tell(value=1.0), TypeError, "ticket is required"),
        (lambda: study.tell(mine, 1.0, arm="a"), TypeError, "not both"),
        (
            lambda: study.tell(arm="z", value=1.0),
            ValueError,
            "there is no arm 'z'; the arms are 'a', 'b', 'c'",
        ),
        (lambda: study.tell(arm=["a"], value=1.0), ValueError, "there is no arm"),  # type: ignore[arg-type]
        (lambda: study.tell_moments("z", 1, 1.0, 0.0), ValueError, "there is no arm 'z'"),
        (lambda: study.ask(0), ValueError, "m must be a positive integer, got 0"),
        (lambda: study.ask(-1), ValueError, "m must be a positive integer, got -1"),
        (lambda: study.ask(2.0), TypeError, "m must be a positive integer, got 2.0"),  # type: ignore[call-overload]
    ]
    for call, error, words in calls:
        with pytest.raises(error, match=words):
            call()
    assert state(study) == before
    study.tell_many([])
    assert state(study) == before
    study.tell(mine, 1.0)
    with pytest.raises(ValueError, match=r"cannot forget ticket .*: it has already been answered, with 1.0"):
        study.forget(mine)


def test_a_generators_own_error_is_not_hidden() -> None:
    study, tickets = half_done()
    before = state(study)

    def answers(error: Exception) -> Any:
        yield tickets[0], 1.0
        raise error

    for error in (ValueError("the sensor is off"), TypeError("no such sensor")):
        with pytest.raises(type(error), match="sensor"):
            study.tell_many(answers(error))
    assert state(study) == before


def test_a_spent_budget() -> None:
    study = eq.Study(["a", "b"], budget=4)
    tickets = study.ask(10)
    assert len(tickets) == 4
    with pytest.raises(eq.EquipoiseError, match=r"the budget of 4 samples is spent; set_budget\(\) can raise it"):
        study.ask()
    assert study.ask(5) == []
    study.forget(tickets[0])
    assert study.ask().arm == tickets[0].arm


def test_a_strategy_that_gives_no_variance() -> None:
    """The sample is kept, the study goes on, and the fault is named."""

    class Broken(eq.strategies.Strategy):
        @staticmethod
        def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
            return -1.0 if count > 2 else 1.0

    study = eq.Study(2, strategy=Broken())
    for _ in range(4):
        study.tell(study.ask(), 1.0)
    with pytest.raises(
        eq.EquipoiseError,
        match=r"strategy .*Broken.* gives must be a finite number >= 0.*; the sample is kept",
    ):
        study.tell(study.ask(), 1.0)
    assert study.result().samples == 5
    with pytest.raises(eq.EquipoiseError, match="Broken"):
        study.tell_many([(study.ask(), 1.0), (study.ask(), 1.0)])
    assert study.result().samples == 7


def faulty(body: str, **names: Any) -> eq.strategies.Strategy:
    """A strategy of which `body` is the class."""
    scope: dict[str, Any] = {"Strategy": eq.strategies.Strategy, "math": math}
    exec("class Faulty(Strategy):\n" + "\n".join("    " + line for line in body.splitlines()), scope)
    return scope["Faulty"]()  # type: ignore[no-any-return]


VARIANCE = "@staticmethod\ndef variance(count, mean, m2, pooled, own, params):\n    "
FINE = VARIANCE + "return m2 / count\n"
RAISES = "if {}:\n        raise ValueError('no')\n    "
# A strategy that pools: what it does before it returns its shares, and before what it makes of the sums.
POOLS = """sums, pooled = ('mine',), ('mine',)
@staticmethod
def share(count, mean, m2, pooled, own, params):
    {}return (count,)
@staticmethod
def pool(sums, arms, pooled, params):
    {}return sums
"""


@pytest.mark.parametrize(
    "body",
    [
        VARIANCE + RAISES.format("count > 2") + "return 1.0",
        VARIANCE + "return math.inf if count > 2 else 1.0",
        VARIANCE + "return math.nan if count > 2 else 1.0",
        VARIANCE + "return own[0]\n"
        "own = ('mine',)\n@staticmethod\ndef keep(sample, count, mean, m2, pooled, own, params):\n    "
        + RAISES.format("count > 2")
        + "return (1.0,)",
        # Noticed where every key is computed anew, too.
        POOLS.format("", "") + VARIANCE + "return pooled[0] - 9.0 if count > 2 else 1.0",
        POOLS.format(RAISES.format("count > 2"), "") + VARIANCE + "return pooled[0]",
        POOLS.format("", RAISES.format("sums[0] > 4")) + VARIANCE + "return pooled[0]",
    ],
)
def test_a_formula_that_fails_is_named(body: str) -> None:
    study = eq.Study(2, strategy=faulty(body))
    for _ in range(4):
        study.tell(study.ask(), 1.0)
    with pytest.raises(eq.EquipoiseError, match="must be a finite number >= 0, and it is not; the sample is kept"):
        study.tell(study.ask(), 1.0)
    assert study.result().samples == 5


def test_without_a_warm_up_the_strategy_is_asked_before_the_first_sample() -> None:
    study = eq.Study(2, strategy=faulty("warmup = 0\n" + VARIANCE + "return 4.0 if count == 0 else 1.0"))
    tickets = study.ask(4)
    assert [ticket.arm for ticket in tickets] == [0, 1, 0, 1]
    study.tell(tickets[0], 7.0)
    assert study.ask().arm == 1


def test_an_arm_is_as_well_known_after_it_was_closed() -> None:
    """Its answers come in while it is closed, and the pooled variance is refreshed meanwhile."""
    open_all_along, closed = eq.Study(2), eq.Study(2)
    for study in (open_all_along, closed):
        tickets = study.ask(12)
        if study is closed:
            study.retire(0)
        for j, ticket in enumerate(tickets):
            study.tell(ticket, float(j * j % 7) * (1 + 5 * (ticket.arm == 0)))
    closed.reopen(0)
    assert [study.ask().arm for study in [closed] * 30] == [study.ask().arm for study in [open_all_along] * 30]


@pytest.mark.parametrize(
    "floor", ["return math.nan if t > 2 else 1.0", "if t > 2:\n        raise ValueError\n    return 1.0"]
)
def test_a_floor_that_fails_is_named(floor: str) -> None:
    study = eq.Study(2, strategy=faulty(FINE + "@staticmethod\ndef floor(t, arms, params):\n    " + floor))
    assert len(study.ask(9)) == 3  # as many as there is a floor for
    before = state(study)
    for call in (study.ask, lambda: study.ask(3)):
        with pytest.raises(eq.EquipoiseError, match="must be a number, got NaN after 3 pulls"):
            call()
        assert state(study) == before


def test_a_budget_that_spoils_the_variances_is_named() -> None:
    body = "def params(self, budget, arms, support):\n    return (float(budget),)\n" + VARIANCE
    study = eq.Study(2, 10, strategy=faulty(body + "return 50.0 - params[0]"))
    for _ in range(4):
        study.tell(study.ask(), 1.0)
    with pytest.raises(eq.EquipoiseError, match="must be a finite number >= 0, and it is not; the budget is set"):
        study.set_budget(100)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("pass", "Faulty must define variance"),
        (FINE.replace("@staticmethod\n", ""), "Faulty.variance must be static"),
        ("@staticmethod\ndef variance(count, mean):\n    return 1.0", "Faulty.variance must take the 6 arguments"),
        (
            FINE + "@staticmethod\ndef floor(t):\n    return 1.0",
            r"Faulty.floor must take the 3 arguments \(t, arms",
        ),
        (FINE + "pool = 'mean'", "Faulty.pool must be static"),
        (FINE + "own = 'mine'", "Faulty.own must be a tuple of names .* got 'mine'"),
        (FINE + "warmup = 1.5", "Faulty.warmup must be a non-negative integer, got 1.5"),
        (FINE + "warmup = -1", "Faulty.warmup must be a non-negative integer, got -1"),
        (
            FINE + "def params(self, budget, arms, support):\n    return 3.0",
            "Faulty.params must return a tuple of finite numbers, got 3.0",
        ),
        (
            FINE + "def params(self, budget, arms, support):\n    return ('a',)",
            r"Faulty.params must return .* got \('a',\)",
        ),
        (
            FINE + "def params(self, budget, arms, support):\n    return (math.inf,)",
            r"Faulty.params must return .* got \(inf,\)",
        ),
        (FINE + "def params(self, budget):\n    return ()", "Faulty.params must take the arguments"),
        (
            VARIANCE + "return params[2]",
            "Faulty.variance cannot be compiled: tuple index out of range; .* own 1, params 1$",
        ),
        (VARIANCE + "return bonus(count)", "Faulty.variance cannot be compiled.*name 'bonus' is not defined"),
        (VARIANCE + "return 'much'", "Faulty.variance cannot be compiled: could not convert string to float"),
    ],
)
def test_a_strategy_that_is_none(body: str, words: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=words) as caught:
        eq.Study(2, strategy=faulty(body))
    assert "\n" not in str(caught.value)


def seen(budgets: list[int]) -> list[Any]:
    """The arms that `auto` asks for, with these budgets set in turn on the way."""
    study = eq.Study(9, 400)
    rng = np.random.default_rng(8)
    arms = []
    for step in range(300):
        ticket = study.ask()
        arms.append(ticket.arm)
        study.tell(ticket, rng.normal(0, 1 + ticket.arm))  # type: ignore[operator]
        if step % 7 == 3 and budgets:
            study.set_budget(budgets[step % len(budgets)])
    return arms


def test_setting_a_budget_changes_no_choice_of_a_strategy_that_does_not_look_at_it() -> None:
    """What is pooled is refreshed on its own schedule, whatever is set when."""
    assert seen([]) == seen([400]) == seen([400, 500, 390])


def test_a_new_budget_shows_in_the_next_choice() -> None:
    """CH-AS with a larger budget plans with larger variances: its keys are computed anew at once."""
    small, large = eq.Study(2, 20, "ch-as"), eq.Study(2, 10**12, "ch-as")
    for study in (small, large):
        study.tell_moments(0, 10, 0.0, 20.0)
        study.tell_moments(1, 30, 0.0, 150.0)
    small.set_budget(10**12)
    assert (small.ledger._state.arms == large.ledger._state.arms).all()
    # The budget may be set to what is handed out, not below.
    tickets = small.ask(7)
    small.set_budget(7)
    assert small.done
    with pytest.raises(ValueError, match="budget must be at least the 7 spent so far, got 6"):
        small.set_budget(6)
    small.forget(tickets[0])
    small.set_budget(6)


def test_the_pooled_variance_is_refreshed_on_schedule() -> None:
    """Every K/4 samples at first, then whenever they have grown by a quarter."""
    study = eq.Study(40)
    refreshes, last = [], float(study.ledger._state.pooled[0])
    for i in range(1, 65):
        # Ever wilder, so that the pooled variance grows with every refresh.
        study.tell(arm=0, value=(-3.0) ** i)
        if float(study.ledger._state.pooled[0]) != last:
            refreshes.append(i)
            last = float(study.ledger._state.pooled[0])
    assert refreshes == [10, 20, 30, 40, 50, 62]


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
    study.retire("b")
    study.retire("b")
    assert study.retired == ("b",)
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
    study.reopen("b")
    assert not study.retired
    assert "b" in {ticket.arm for ticket in study.ask(100)}


def test_a_closed_arm_in_the_warm_up() -> None:
    study = eq.Study(["a", "b"], budget=50)
    study.retire("a")
    assert {ticket.arm for ticket in study.ask(20)} == {"b"}
    study.reopen("a")
    assert study.ask().arm == "a"


def test_all_closed() -> None:
    study, _ = half_done()
    for arm in study.arms:
        study.retire(arm)
    assert study.ask(5) == []
    with pytest.raises(eq.EquipoiseError, match=r"^every arm is retired; reopen\(arm\) makes one available again$"):
        study.ask()
    assert study.remaining == 85
    with pytest.raises(ValueError, match="there is no arm 'z'"):
        study.retire("z")


def test_closing_and_opening_leaves_the_decisions_as_they_were() -> None:
    """Closed and opened again, a study asks for what one that was let alone asks for."""
    one, _ = half_done()
    two, _ = half_done()
    for arm in ("c", "a", "b"):
        two.retire(arm)
    for arm in ("b", "c", "a"):
        two.reopen(arm)
    assert [ticket.arm for ticket in one.ask(60)] == [ticket.arm for ticket in two.ask(60)]


def test_arrays_are_as_tickets() -> None:
    one, two = eq.Study(3, budget=300), eq.Study(3, budget=300)
    rng = np.random.default_rng(2)
    for m in (1, 1, 7, 50, 500):
        values = rng.normal(size=m)
        tickets = one.ask(m)
        ids = np.array(two.ledger.latest(two.ledger.ask(m)), np.int64)
        assert [ticket.id for ticket in tickets] == ids.tolist()
        assert [ticket.arm for ticket in tickets] == two.ledger.arms_of(ids).tolist()
        one.tell_many(zip(tickets, values.tolist(), strict=False))
        two.ledger.tell(ids, values[: len(ids)])
        assert state(one) == state(two)
    assert not two.ledger.ask(1)
    assert np.isfinite(two.ledger.answers(np.arange(300))).all()


def test_tickets_for_arms_that_somebody_chose() -> None:
    """The same arms, chosen by another study: the same state, floor and all."""
    for strategy in ("auto", "gafs-max", "two-stage"):
        one = eq.Study(3, budget=400, strategy=strategy)
        two = eq.Study(3, budget=400, strategy=strategy)
        rng = np.random.default_rng(3)
        for _ in range(60):
            ids = np.array(one.ledger.latest(one.ledger.ask(4)))
            arms = one.ledger.arms_of(ids)
            assert list(two.ledger.latest(two.ledger.ask_for(arms))) == ids.tolist()
            values = rng.normal(size=4) * (arms + 1)
            one.ledger.tell(ids, values)
            two.ledger.tell(ids, values)
        assert state(one) == state(two)
        assert one.remaining == two.remaining


def test_possible_values() -> None:
    values = np.array([0.0, 1.0, 0.5, -1.0, math.nan, math.inf, 1e200])
    for support, expected in (
        ("binary", [True, True, False, False, False, False, False]),
        ((0, 1), [True, True, True, False, False, False, False]),
        (None, [True, True, True, True, False, False, False]),
    ):
        study = eq.Study(2, support=support)  # type: ignore[arg-type]
        assert study.ledger.possible(values).tolist() == expected
        assert [study.ledger.possible(value) for value in values.tolist()] == expected
