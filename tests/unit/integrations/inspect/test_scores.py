"""Scores of inspect_ai as numbers, without an evaluation."""

from __future__ import annotations

from typing import Any

import pytest
from inspect_ai.scorer import Score

from equipoise.base.errors import EquipoiseError
from equipoise.integrations.inspect.scores import Scores


@pytest.mark.parametrize(
    ("given", "read", "number"),
    [
        ("C", None, 1.0),
        ("P", None, 0.5),
        ("N", None, 0.0),
        ("Yes", None, 1.0),
        ("0.25", None, 0.25),
        (True, None, 1.0),
        (7, None, 7.0),
        ({"exact": 0.5, "style": 1}, lambda value: value["exact"], 0.5),
        ("B", "ABC".index, 1.0),
    ],
)
def test_scores_become_numbers(given: Any, read: Any, number: float) -> None:
    assert Scores(None, read).number("alpha", 1, {"same": Score(value=given)}) == number


def test_scores_that_are_not_counted() -> None:
    scores = Scores(None, None)
    assert scores.number("alpha", 1, {}) is None
    assert scores.number("alpha", 1, {"same": Score.unscored()}) is None


@pytest.mark.parametrize("given", ["maybe", [1, 0], {"exact": 1}])
def test_what_is_not_a_number_is_refused(given: Any) -> None:
    with pytest.raises(EquipoiseError, match=r"the score of sample 1 of task 'alpha' must be a number, got .*; pass v"):
        Scores(None, None).number("alpha", 1, {"same": Score(value=given)})


@pytest.mark.parametrize(
    ("read", "cause"),
    [
        (lambda value: value.credit, "AttributeError: 'int' object has no attribute 'credit'"),
        (lambda value: 1 / value, "ZeroDivisionError: division by zero"),
    ],
)
def test_a_function_of_values_that_fails_names_the_sample(read: Any, cause: str) -> None:
    with pytest.raises(EquipoiseError, match=rf"the score of sample 1 .* must be a number, got 0 \({cause}\); pass v"):
        Scores(None, read).number("alpha", 1, {"same": Score(value=0)})


@pytest.mark.parametrize(
    ("support", "value", "message"),
    [
        ("binary", "P", r"must be 0 or 1, got 0.5; leave out support, or use support=\(0, 1\)"),
        ((0, 1), 7, "must be between 0 and 1, got 7; leave out support, or use a wider one"),
        (None, float("inf"), "must be a finite number, got inf; pass value="),
    ],
)
def test_a_score_outside_the_support_is_refused(support: Any, value: Any, message: str) -> None:
    scores = Scores(None, None, support)
    with pytest.raises(EquipoiseError, match=f"the score of sample 3 of task 'alpha' {message}"):
        scores.number("alpha", 3, {"same": Score(value=value)})
    assert scores.number("alpha", 3, {"same": Score(value=1)}) == 1


def test_scores_that_a_solver_added_need_a_name() -> None:
    both = {"one": Score(value=1), "two": Score(value=0)}
    with pytest.raises(EquipoiseError, match="scorer must name one of 'one', 'two' for task 'alpha', got None"):
        Scores(None, None).number("alpha", 1, both)
    assert Scores("two", None).number("alpha", 1, both) == 0
