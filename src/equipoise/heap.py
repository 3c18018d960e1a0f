"""
An indexed 4-ary heap: the largest score on top, the lowest arm among equals.

It is held in three rows of two arrays: `floats[score, i]` and `ints[arm, i]` are the score and the arm at position i,
and `ints[arm + 1, k]` is the position of arm k. Four children per node keep the path to the leaves short and each
step's comparisons next to each other in memory. Functions take the row numbers `score` and `arm` rather than slices,
because a slice would count references at every step.
"""

from __future__ import annotations

from typing import Any

from equipoise.compiled import borrowing


@borrowing
def before(score_a: float, arm_a: int, score_b: float, arm_b: int) -> bool:
    """
    Whether a goes above b.

    Without shortcuts, because a mispredicted branch costs more than a comparison.
    """
    return (score_a > score_b) | ((score_a == score_b) & (arm_a < arm_b))


@borrowing
def put(floats: Any, ints: Any, score: int, arm: int, i: int, s: float, k: int) -> None:
    """Put arm k with score s at position i."""
    floats[score, i] = s
    ints[arm, i] = k
    ints[arm + 1, k] = i


@borrowing
def sift_up(floats: Any, ints: Any, score: int, arm: int, i: int, s: float, k: int) -> None:
    """Put arm k with score s at position i, or above it where it belongs."""
    while i > 0:
        parent = (i - 1) >> 2
        if not before(s, k, floats[score, parent], ints[arm, parent]):
            break
        put(floats, ints, score, arm, i, floats[score, parent], ints[arm, parent])
        i = parent
    put(floats, ints, score, arm, i, s, k)


@borrowing
def best_child(floats: Any, ints: Any, score: int, arm: int, first: int) -> int:
    """
    Return the position of the largest of the up to four entries from `first` on.

    Of four, the largest score is found first and then the entry that has it, in two short steps; arms are compared only
    where several entries have it.
    """
    size = floats.shape[1]
    if first + 4 <= size:
        s0, s1 = floats[score, first], floats[score, first + 1]
        s2, s3 = floats[score, first + 2], floats[score, first + 3]
        top = max(max(s0, s1), max(s2, s3))
        if (s0 == top) + (s1 == top) + (s2 == top) + (s3 == top) == 1:
            return first + (s1 == top) + 2 * (s2 == top) + 3 * (s3 == top)
    best = first
    for child in range(first + 1, min(first + 4, size)):
        if before(floats[score, child], ints[arm, child], floats[score, best], ints[arm, best]):
            best = child
    return best


@borrowing
def sift_down(floats: Any, ints: Any, score: int, arm: int, i: int, s: float, k: int) -> None:
    """Put arm k with score s at position i, or below it where it belongs."""
    while 4 * i + 1 < floats.shape[1]:
        best = best_child(floats, ints, score, arm, 4 * i + 1)
        best_s, best_k = floats[score, best], ints[arm, best]
        if not before(best_s, best_k, s, k):
            break
        put(floats, ints, score, arm, i, best_s, best_k)
        i = best
    put(floats, ints, score, arm, i, s, k)


@borrowing
def replace_top(floats: Any, ints: Any, score: int, arm: int, s: float) -> None:
    """
    Give the arm on top the score s, in a heap in which only the top ever changes.

    The positions of arms are not kept.
    """
    k = ints[arm, 0]
    i = 0
    while 4 * i + 1 < floats.shape[1]:
        best = best_child(floats, ints, score, arm, 4 * i + 1)
        best_s, best_k = floats[score, best], ints[arm, best]
        if not before(best_s, best_k, s, k):
            break
        floats[score, i] = best_s
        ints[arm, i] = best_k
        i = best
    floats[score, i] = s
    ints[arm, i] = k


@borrowing
def change(floats: Any, ints: Any, score: int, arm: int, k: int, s: float) -> None:
    """Give arm k the score s."""
    i = ints[arm + 1, k]
    parent = (i - 1) >> 2
    if i > 0 and before(s, k, floats[score, parent], ints[arm, parent]):
        sift_up(floats, ints, score, arm, i, s, k)
    else:
        sift_down(floats, ints, score, arm, i, s, k)


@borrowing
def heapify(floats: Any, ints: Any, score: int, arm: int) -> None:
    """Turn entries in any order into a heap."""
    for i in range((floats.shape[1] - 2) >> 2, -1, -1):
        sift_down(floats, ints, score, arm, i, floats[score, i], ints[arm, i])
