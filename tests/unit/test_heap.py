"""The indexed heap against sorting, ties included."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.heap import change, heapify


@settings(deadline=None, derandomize=True, max_examples=200)
@given(
    scores=st.lists(st.integers(0, 5).map(float), min_size=1, max_size=40),
    changes=st.lists(st.tuples(st.integers(0, 39), st.integers(0, 5).map(float)), max_size=60),
)
def test_the_top_is_the_largest_and_lowest(scores: list[float], changes: list[tuple[int, float]]) -> None:
    size = len(scores)
    floats = np.array([scores])
    ints = np.array([np.arange(size), np.arange(size)])
    heapify(floats, ints, 0, 0)
    current = list(scores)
    for k, s in [(0, scores[0]), *changes]:
        k %= size
        change(floats, ints, 0, 0, k, s)
        current[k] = s
        assert ints[0, 0] == max(range(size), key=lambda arm: (current[arm], -arm))
        # The entries are the arms with their scores, and each arm knows where it is.
        assert sorted(ints[0]) == list(range(size))
        assert all(ints[0, ints[1, arm]] == arm for arm in range(size))
        assert all(floats[0, ints[1, arm]] == current[arm] for arm in range(size))
