"""The checker of histories accepts a good one and refuses each that something is wrong with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.functional.store.checking import Happened, Turn, Wrong, check
from tests.functional.store.history import Call, Sample


def number(tag: int, ticket: int) -> int:
    return (tag << 32) | ticket


def seed_of(arm: str, rank: int) -> int:
    return 10 * rank + (arm == "b")


def value_of(arm: str, seed: int) -> float:
    return seed / 2


TURNS = (
    Turn(7, 100.0, (Happened("ask", 0, "a"), Happened("ask", 1, "b")), "two asked"),
    Turn(8, 101.0, (Happened("tell", 0, value=1.5),), "one told"),
    Turn(9, 102.0, (Happened("forget", 1),), "one told"),
    Turn(10, 103.0, (Happened("ask", 2, "b"),), "one told"),
    Turn(11, 104.0, (Happened("tell", 2, value=5.5), Happened("budget", budget=2)), "two told"),
)
# The budget is 3 first, and 2 in the end.
CALLS = (
    Call("v", 0, "ask", 2, 10.0, 11.0, [[number(7, 0), "a"], [number(7, 1), "b"]]),
    Call("v", 1, "tell", [number(7, 0), 1.5], 12.0, 13.0, True),
    Call("v", 2, "forget", number(7, 1), 14.0, 17.0, True),
    Call("w", 0, "remaining", None, 12.5, 12.6, 1),
    Call("w", 1, "in_flight", None, 12.7, 15.0, 1),
    Call("w", 2, "remaining", None, 14.5, 16.0, 2),
    Call("w", 3, "result", None, 18.0, 18.5, "one told"),
    Call("w", 4, "tell", [number(9, 4), 1.5], 18.0),  # not answered: nothing follows from it
    Call("d", 0, "seen", None, 19.0, 19.0, "one told"),
    Call("d", 1, "seen", None, 25.0, 25.0, "one told"),
    Call("d", 2, "seen", None, 26.0, 26.0, "two told"),
)
SAMPLES = (
    Sample("d.0", "b", 11, 20.0, 103.5),
    Sample("d.1", "b", 11, 22.0, 105.5),
    Sample("d.2", "b", 11, 22.5, 102.5, inside=True),  # within a turn that was not committed
)


def judge(**changed: Any) -> None:
    known: dict[str, Any] = {"turns": TURNS, "calls": CALLS, "samples": SAMPLES, "deaths": {"d.0": 21.0}, "lease": 30.0}
    check(budget=3, seed_of=seed_of, value_of=value_of, **(known | changed))


def with_call(j: int, **changed: Any) -> tuple[Call, ...]:
    return (*CALLS[:j], replace(CALLS[j], **changed), *CALLS[j + 1 :])


def with_events(j: int, *events: Happened) -> tuple[Turn, ...]:
    return (*TURNS[:j], replace(TURNS[j], events=events), *TURNS[j + 1 :])


def test_a_good_history() -> None:
    judge()


def test_a_ticket_whose_lease_is_over_may_be_taken_over() -> None:
    judge(deaths={}, lease=2.0)


def test_a_worker_may_outlive_its_driver() -> None:
    judge(deaths={"d.0": 21.0, "d.1": 21.5}, samples=(*SAMPLES, Sample("d.0", "b", 11, 23.0, 106.5)))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        # what was acknowledged
        ({"turns": with_events(1)}, "the log has None for ticket 0"),
        ({"turns": with_events(1, Happened("tell", 0, value=1.25))}, "the log has 1.25 for ticket 0"),
        ({"turns": with_events(2, Happened("tell", 0, value=1.5))}, "ticket 0 is answered twice"),
        ({"turns": with_events(2)}, "the log does not say so|of a budget of"),
        ({"calls": with_call(0, reply=[[number(7, 0), "b"]])}, "ticket 0 is for 'a' in the log"),
        ({"calls": with_call(0, reply=[[number(7, 5), "b"]])}, "ticket 5 is not in the log"),
        ({"calls": with_call(0, reply=[[number(6, 0), "a"]])}, "ticket 0 was handed out by another turn"),
        ({"calls": with_call(0, reply=[[number(7, 0), "a"], [number(10, 2), "b"]])}, "of several turns"),
        ({"calls": (*CALLS, Call("u", 0, "ask", 1, 1, 30, [[number(7, 0), "a"]]))}, "was given to .'v', 0. too"),
        # the budget
        ({"turns": with_events(2, Happened("ask", 2, "a"), Happened("ask", 3, "a"))}, "4 tickets of a budget of 3"),
        ({"turns": with_events(0, Happened("ask", 1, "a"))}, "ticket 1 follows -1"),
        ({"turns": with_events(4, Happened("tell", 2, value=5.5))}, "1 of the budget are left in the end"),
        ({"turns": with_events(4, Happened("budget", budget=2))}, "1 tickets are in flight in the end"),
        ({"turns": with_events(4, Happened("forget", 0))}, "is forgotten, and was not in flight"),
        # the order of turns
        ({"calls": with_call(2, begin=9.0, end=9.5)}, "which returned before it, is turn 3"),
        ({"calls": with_call(1, begin=17.5, end=17.6)}, "which returned before it, is turn 3"),
        # what was read
        ({"calls": with_call(3, reply=2)}, "did not say so at any turn from 1 to 2"),
        ({"calls": with_call(5, begin=18.0, end=18.5, reply=3)}, "did not say so at any turn from 3 to 5"),
        ({"calls": with_call(5, end=13.9, begin=13.5)}, "did not say so at any turn from 2 to 2"),
        ({"calls": with_call(6, reply="two asked")}, "did not say so at any turn from 3 to 5"),
        ({"calls": (*CALLS, Call("u", 0, "in_flight", None, 16.5, 16.6, 2))}, "at any turn from 3 to 5"),
        ({"calls": with_call(9, reply="two asked")}, "did not say so at any turn from 2 to 5"),
        # drivers
        ({"deaths": {}, "samples": (SAMPLES[0], replace(SAMPLES[2], inside=False))}, "d.0 had the ticket"),
        ({"deaths": {}}, "d.0 had the ticket, and its lease was not over"),
        ({"deaths": {"d.0": 22.25}}, "d.0 had the ticket, and its lease was not over"),
        ({"turns": with_events(4, Happened("tell", 2, value=5.0), Happened("budget", budget=2))}, "of another one"),
    ],
)
def test_a_bad_history(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(Wrong, match=said):
        judge(**changed)
