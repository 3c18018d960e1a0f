"""How a sampler is called, by what it takes."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from equipoise.run.samplers import Call, Samplers, perform


def arguments(given: Any, populations: Any = None, arms: Any = ("a", "b")) -> tuple[Any, dict[str, Any]]:
    """What the sampler of arm 'b' is called with for its sample 3."""
    call = Samplers(given, None if isinstance(given, dict) else arms, populations, seed=1).call(1, 3)
    return call.args, call.kwargs


def both(function: Any) -> dict[str, Any]:
    return {"a": function, "b": function}


ITEMS = {"a": [10, 11], "b": ["x"] * 9}


def takes_nothing() -> float:
    return 1.0


def takes_arm(arm: Any) -> float:
    return 1.0


def takes_arm_and_more(name: Any, noise: float = 0.1) -> float:
    return 1.0


def takes_arm_and_seed(arm: Any, seed: int) -> float:
    return 1.0


def takes_size_and_seed(arm: Any, *, size: int, seed: Any = None) -> Any:
    return np.ones(size)


def takes_item_and_more(item: Any, noise: float = 0.1) -> float:
    return 1.0


def takes_both(arm: Any, item: Any) -> float:
    return 1.0


def takes_any(*args: Any) -> float:
    return 1.0


@pytest.mark.parametrize(
    ("given", "populations", "args", "names"),
    [
        (both(takes_nothing), None, (), set()),
        (both(random.random), None, (), set()),
        (both(lambda x=3: x), None, (), set()),
        (both(np.random.default_rng(1).normal), None, (), {"size"}),
        (both(functools.partial(takes_arm, "z")), None, (), set()),
        (both(functools.partial(takes_arm_and_seed, "z")), None, (), {"seed"}),
        (takes_arm, None, ("b",), set()),
        (takes_arm_and_more, None, ("b",), set()),
        (takes_arm_and_seed, None, ("b",), {"seed"}),
        (takes_size_and_seed, None, ("b",), {"size", "seed"}),
        (takes_any, None, ("b",), set()),
        (takes_item_and_more, ITEMS, ("x",), set()),
        (takes_both, ITEMS, ("b", "x"), set()),
        (takes_any, ITEMS, ("b", "x"), set()),
        (takes_arm, {"a": 5, "b": 9}, ("b",), set()),
        (both(takes_item_and_more), ITEMS, ("x",), set()),
    ],
)
def test_what_a_sampler_is_given(given: Any, populations: Any, args: tuple[Any, ...], names: set[str]) -> None:
    found, named = arguments(given, populations)
    assert found == args
    assert set(named) == names


def test_calls_keep_the_order_of_asking() -> None:
    """One by one, arms stay mixed as they were asked for; arrays are one call for each arm."""
    places, indices = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    calls, which = Samplers(takes_arm, ["a", "b"], None, 1).calls(places, indices)
    assert [call.args for call in calls] == [("a",), ("b",), ("a",), ("b",)]
    assert [part.tolist() for part in which] == [[0], [1], [2], [3]]
    calls, which = Samplers(takes_size_and_seed, ["a", "b"], None, 1).calls(places, indices)
    assert [(call.args, call.size) for call in calls] == [(("a",), 2), (("b",), 2)]
    assert [part.tolist() for part in which] == [[0, 2], [1, 3]]
    # An array's seeds are those of its samples, one by one.
    one_by_one = Samplers(takes_arm_and_seed, ["a", "b"], None, 1).calls(places, indices)[0]
    assert [seed for call in calls for seed in call.kwargs["seed"].tolist()] == [
        one_by_one[j].kwargs["seed"] for j in (0, 2, 1, 3)
    ]


def failing(error: Exception) -> Callable[[], float]:
    def fail() -> float:
        raise error

    return fail


def test_outcomes() -> None:
    calls = [
        Call(lambda: np.int64(3), (), {}, None),
        Call(failing(ValueError("two\nlines")), (), {}, None),
        Call(failing(StopIteration()), (), {}, None),
        Call(lambda: "text", (), {}, None),
        Call(lambda: [1, True, 2.5], (), {}, 3),
    ]
    good, wrong, stopped, text, array = perform(calls)
    assert (good.values, type(good.values), good.wrong) == (3.0, float, None)
    assert wrong.wrong == "ValueError: two lines"
    assert wrong.trace is not None
    assert "in fail" in wrong.trace
    # Only an iterable's end closes an arm; a sampler that raises StopIteration has failed.
    assert stopped.wrong == "StopIteration"
    assert (text.wrong, text.trace) == ("a sample must be a number, got 'text'", "")
    assert array.values.tolist() == [1.0, 1.0, 2.5]
