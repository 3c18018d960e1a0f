"""The indexed heap against sorting, ties included."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.compiled import borrowing
from equipoise.numeric.heap import ENTRY, change, heapify


@borrowing
def make(heap: Any) -> None:
    heapify(heap)


@borrowing
def set_score(heap: Any, arm: int, score: float) -> None:
    change(heap, arm, score)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(
    scores=st.lists(st.integers(0, 5).map(float), min_size=1, max_size=40),
    changes=st.lists(st.tuples(st.integers(0, 39), st.integers(0, 5).map(float)), max_size=60),
)
def test_the_top_is_the_largest_and_lowest(scores: list[float], changes: list[tuple[int, float]]) -> None:
    size = len(scores)
    heap = np.zeros(size, ENTRY)
    heap["score"], heap["arm"], heap["place"] = scores, np.arange(size), np.arange(size)
    make(heap)
    current = list(scores)
    for k, s in [(0, scores[0]), *changes]:
        k %= size
        set_score(heap, k, s)
        current[k] = s
        assert heap["arm"][0] == max(range(size), key=lambda arm: (current[arm], -arm))
        # The entries are the arms with their scores, and each arm knows where it is.
        assert sorted(heap["arm"]) == list(range(size))
        assert (heap["arm"][heap["place"]] == np.arange(size)).all()
        assert heap["score"][heap["place"]].tolist() == current
