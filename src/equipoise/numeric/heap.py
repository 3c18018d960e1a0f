"""
An indexed 4-ary heap: the largest score on top, the lowest arm among equals.

Four children a node keep the path to the leaves short and each step's comparisons next to each other in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.compiled import inlined, internal

# A heap is an array of these: the score and the arm at position i, and the place of arm i.
ENTRY = np.dtype([("score", np.float64), ("arm", np.int32), ("place", np.int32)])

Heap = Any

# In place of an arm: there is none.
NO_ARM = -1


@inlined
def before(score_a: float, arm_a: int, score_b: float, arm_b: int) -> bool:
    """Return whether a goes above b. Without short cuts: a mispredicted branch costs more than a comparison."""
    return (score_a > score_b) | ((score_a == score_b) & (arm_a < arm_b))


@inlined
def put(heap: Heap, i: int, score: float, arm: int) -> None:
    """Put an arm with its score at position i."""
    heap[i].score = score
    heap[i].arm = arm
    heap[arm].place = i


@inlined
def best_child(heap: Heap, first: int) -> int:
    """
    Return the position of the entry that goes above the others, of the four or fewer from `first` on.

    Of four, the largest score is found first and then who has it, which are two short steps; arms are compared only
    where several have it.
    """
    size = len(heap)
    if first + 4 <= size:
        s0, s1 = heap[first].score, heap[first + 1].score
        s2, s3 = heap[first + 2].score, heap[first + 3].score
        top = max(max(s0, s1), max(s2, s3))
        if (s0 == top) + (s1 == top) + (s2 == top) + (s3 == top) == 1:
            return first + (s1 == top) + 2 * (s2 == top) + 3 * (s3 == top)
    best = first
    for child in range(first + 1, min(first + 4, size)):
        if before(heap[child].score, heap[child].arm, heap[best].score, heap[best].arm):
            best = child
    return best


@inlined
def sift_up(heap: Heap, i: int, score: float, arm: int) -> None:
    """Put an arm at position i, or as far up from there as its score belongs."""
    while i > 0:
        parent = (i - 1) >> 2
        if not before(score, arm, heap[parent].score, heap[parent].arm):
            break
        put(heap, i, heap[parent].score, heap[parent].arm)
        i = parent
    put(heap, i, score, arm)


@internal
def sift_down(heap: Heap, i: int, score: float, arm: int) -> None:
    """Put an arm at position i, or as far down from there as its score belongs."""
    while 4 * i + 1 < len(heap):
        child = best_child(heap, 4 * i + 1)
        if not before(heap[child].score, heap[child].arm, score, arm):
            break
        put(heap, i, heap[child].score, heap[child].arm)
        i = child
    put(heap, i, score, arm)


@inlined
def arm_at(heap: Heap, i: int) -> int:
    """Return the arm at position i, 0 for the top; as wide as any other arm, so that callees are compiled once."""
    return np.int64(heap[i].arm)  # type: ignore[return-value]


@internal
def replace_top(heap: Heap, score: float) -> None:
    """Give the arm on top another score, in a heap in which only the top ever changes: places are not kept."""
    arm, i = arm_at(heap, 0), 0
    while 4 * i + 1 < len(heap):
        child = best_child(heap, 4 * i + 1)
        if not before(heap[child].score, heap[child].arm, score, arm):
            break
        heap[i].score = heap[child].score
        heap[i].arm = heap[child].arm
        i = child
    heap[i].score = score
    heap[i].arm = arm


@internal
def change(heap: Heap, arm: int, score: float) -> None:
    """Give an arm another score, and put it where it belongs."""
    i: Any = np.int64(heap[arm].place)  # as wide as any other position, so that callees are compiled once
    parent = (i - 1) >> 2
    if i > 0 and before(score, arm, heap[parent].score, heap[parent].arm):
        sift_up(heap, i, score, arm)
    else:
        sift_down(heap, i, score, arm)


@inlined
def heapify(heap: Heap) -> None:
    """Make a heap of entries in any order."""
    for i in range((len(heap) - 2) >> 2, -1, -1):
        sift_down(heap, i, heap[i].score, arm_at(heap, i))


@inlined
def least_pulled(queue: Heap, arms: Any, pulls_of: Any, floor: float) -> int:
    """
    Return the least pulled arm if it has fewer pulls than the floor, the lowest among equals; else NO_ARM.

    The scores of the queue are minus the pulls, and are put right only here and as far as needed: pulls grow, so that
    no arm has fewer than its entry says.
    """
    while -queue[0].score < floor:
        k = arm_at(queue, 0)
        pulls = pulls_of(arms[k])
        if -queue[0].score == pulls:
            return k
        change(queue, k, -pulls)
    return NO_ARM
