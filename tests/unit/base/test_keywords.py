"""Misspelt keywords are refused by name, and everything else about a function stays as it was."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import equipoise as eq
from equipoise.base.keywords import suggests_keywords


@suggests_keywords
def measure(arm: str, /, size: int, *, budget: int = 10) -> tuple[str, int, int]:
    """Measure an arm."""
    return arm, size, budget


class Poll:
    @suggests_keywords
    def __init__(self, store: str = "") -> None:
        self.store = store


def call(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function with what mypy would refuse."""
    return function(*args, **kwargs)


def test_a_suggestion() -> None:
    with pytest.raises(TypeError, match=r"^measure\(\) has no argument 'bugdet'; did you mean 'budget'\?$"):
        call(measure, "a", 3, bugdet=5)
    with pytest.raises(TypeError, match=r"^measure\(\) has no argument 'zzz'$"):
        call(measure, "a", 3, zzz=5)
    with pytest.raises(TypeError, match=r"^Poll\(\) has no argument 'storre'; did you mean 'store'\?$"):
        call(Poll, storre="here")
    with pytest.raises(TypeError, match=r"^Poll\(\) has no argument 'self'$"):
        call(Poll.__init__, Poll(), self=1)


def test_arguments_in_the_wrong_place() -> None:
    with pytest.raises(TypeError, match=r"^measure\(\) must be given size once, got 3 by position and 5 by name$"):
        call(measure, "a", 3, size=5)
    sentence = r"^measure\(\) must be given at most arm and size by position, got 7 besides; give the others by name"
    with pytest.raises(TypeError, match=sentence):
        call(measure, "a", 3, 7)
    with pytest.raises(TypeError, match=r"^estimate\(\) must be given budget once, got \['a', 'b'\] by position and 9"):
        call(eq.estimate, lambda arm: 1.0, ["a", "b"], budget=9)
    with pytest.raises(TypeError, match=r"^Study\(\) must be given budget once, got 'b' by position and 9 by name$"):
        call(eq.Study, "a", "b", budget=9)


def test_nothing_else_changes() -> None:
    assert measure("a", 3, budget=4) == ("a", 3, 4)
    assert measure("a", size=3) == ("a", 3, 10)
    assert str(inspect.signature(measure)).startswith("(arm: 'str', /, size: 'int', *, budget")
    assert measure.__doc__ == "Measure an arm."
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        call(measure, "a")


@pytest.mark.parametrize(("wrong", "right"), [("storre", "store"), ("bugdet", "budget"), ("cost", "costs")])
def test_estimate(wrong: str, right: str) -> None:
    with pytest.raises(TypeError, match=rf"^estimate\(\) has no argument '{wrong}'; did you mean '{right}'\?$"):
        call(eq.estimate, lambda arm: 1.0, arms=["a"], **{wrong: 10})
    assert {"objective", "weights", "costs"} <= inspect.signature(eq.estimate).parameters.keys()
