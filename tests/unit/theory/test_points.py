"""The theory functions return what the paper says, at points worked out independently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import equipoise
from equipoise import theory
from equipoise.strategies import ch_as
from tests.unit.theory.points import POINTS, RADIUS

ITERATED = {"remark3_pulls", "remark3_regret"}


def numbers(value: Any) -> Iterator[Any]:
    """The numbers of a result in order: of a law its mean and variance, of a pair of arrays all entries."""
    if isinstance(value, equipoise.Gaussian):
        value = (value.mean, value.variance)
    if hasattr(value, "__len__"):
        for part in value:
            yield from numbers(part)
    else:
        yield value


def agrees(got: Any, expected: Any, relative: float) -> bool:
    """Equal predicates, or equally many numbers, each within the relative error; NaN agrees with nothing."""
    if isinstance(expected, bool):
        return isinstance(got, bool) and got == expected
    left, right = list(numbers(got)), list(numbers(expected))
    return len(left) == len(right) and all(abs(x - y) <= relative * abs(y) for x, y in zip(left, right, strict=True))


@pytest.mark.parametrize(
    ("name", "index"), [(name, index) for name in sorted(POINTS) for index in range(len(POINTS[name]))]
)
def test_agrees_with_the_paper(name: str, index: int) -> None:
    arguments, expected = POINTS[name][index]
    got, want = getattr(theory, name)(**arguments), expected()
    assert agrees(got, want, 1e-11 if name in ITERATED else 1e-12), f"{got} is not {want}"


@pytest.mark.parametrize("index", range(len(RADIUS)))
def test_radius_of_wider_samples(index: int) -> None:
    arguments, expected = RADIUS[index]
    assert agrees(ch_as.radius(**arguments), expected(), 1e-12)


def test_no_function_is_forgotten() -> None:
    assert set(POINTS) == set(theory.__all__)
    assert {name: len(points) for name, points in POINTS.items() if len(points) < 3} == {}


@pytest.mark.parametrize("name", ["lemma1_event", "lemma4_event"])
def test_events_are_seen_both_ways(name: str) -> None:
    """Each pair of points holds and fails by a hair."""
    assert [expected() for _, expected in POINTS[name]] == [True, False] * (len(POINTS[name]) // 2)
