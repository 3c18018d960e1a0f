"""Values leave in the order of asking, whatever the order in which they come."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.intervals import InOrder


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[int, list[int], set[int]]:
    """How many samples are asked for, in which order something comes of them, and which of them are given up."""
    asked = draw(st.integers(1, 30))
    order = draw(st.permutations(range(asked)))
    return asked, order, draw(st.sets(st.integers(0, asked - 1)))


@given(arrivals())
def test_all_values_come_out_in_the_order_of_asking(case: tuple[int, list[int], set[int]]) -> None:
    asked, order, lost = case
    line = InOrder(arms=2)
    assert [line.ask(1) for _ in range(asked)] == list(range(asked))
    out: list[float] = []
    settled: set[int] = set()
    for place in order:
        out += line.give_up(1, place) if place in lost else line.tell(1, place, float(place))
        settled.add(place)
        # Just what stands before the first sample that is still waited for.
        first = next((i for i in range(asked) if i not in settled), asked)
        assert out == [float(i) for i in range(first) if i not in lost]
        assert line.waiting(1) == len([i for i in settled if i > first and i not in lost])
    assert out == [float(i) for i in range(asked) if i not in lost]


def test_arms_do_not_wait_for_one_another() -> None:
    line = InOrder(arms=2)
    slow, quick = line.ask(0), line.ask(1)
    assert line.tell(1, quick, 2.0) == [2.0]
    assert line.tell(0, slow, 1.0) == [1.0]


def test_a_late_answer_is_taken_before_its_turn_has_passed_and_left_out_after() -> None:
    line = InOrder(arms=1)
    first, second, third = (line.ask(0) for _ in range(3))
    assert line.give_up(0, second) == []
    assert line.tell(0, second, 0.2) == []
    assert line.tell(0, first, 0.1) == [0.1, 0.2]
    assert line.give_up(0, third) == []
    assert line.tell(0, third, 0.3) == []
    assert line.tell(0, line.ask(0), 0.4) == [0.4]


def test_what_is_refused_changes_nothing() -> None:
    line = InOrder(arms=1)
    first, second = line.ask(0), line.ask(0)
    line.tell(0, second, 0.2)
    with pytest.raises(ValueError, match="arm 0, sample 1: a value is waiting there already"):
        line.tell(0, second, 0.3)
    with pytest.raises(ValueError, match="arm 0, sample 1: its value is in"):
        line.give_up(0, second)
    with pytest.raises(ValueError, match="arm 0 has no sample 2; it was asked for 2 so far"):
        line.tell(0, 2, 0.3)
    with pytest.raises(ValueError, match="arm 0 has no sample -1"):
        line.give_up(0, -1)
    with pytest.raises(ValueError, match="nan will not do"):
        line.tell(0, first, math.nan)
    for arm in (-1, 1):
        with pytest.raises(ValueError, match=f"there is no arm {arm}; there are arms 0 to 0"):
            line.ask(arm)
        with pytest.raises(ValueError, match=f"there is no arm {arm}"):
            line.tell(arm, 0, 0.1)
    with pytest.raises(ValueError, match="arms=0 will not do"):
        InOrder(arms=0)
    assert line.tell(0, first, 0.1) == [0.1, 0.2]
