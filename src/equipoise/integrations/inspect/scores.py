"""Scores of inspect_ai as numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from inspect_ai.scorer import CORRECT, INCORRECT, NOANSWER, PARTIAL

from equipoise.base.errors import EquipoiseError, InvalidInput
from equipoise.base.inputs import LARGEST, shown
from equipoise.strategies import Support, check_support

# What inspect_ai's own metrics make of texts.
_TEXTS: Final = {CORRECT: 1.0, INCORRECT: 0.0, PARTIAL: 0.5, NOANSWER: 0.0}
_WORDS: Final = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


class Scores:
    """
    How the scores of a sample become one number.

    Parameters
    ----------
    scorer
        Whose score counts; None where there is only one.
    value
        A function of a score's value; None to read it as inspect_ai's metrics do.
    support
        The possible scores, as in `Study`.
    """

    def __init__(self, scorer: str | None, value: Callable[[Any], float] | None, support: Support = None) -> None:
        if not (scorer is None or isinstance(scorer, str)):
            raise TypeError(f"scorer must be the name of a scorer, got {shown(scorer)}")
        if not (value is None or callable(value)):
            raise TypeError(f"value must be a function of a score's value, got {shown(value)}")
        self._scorer, self._value, self._support = scorer, value, check_support(support)

    def check(self, task: str, scorers: int) -> None:
        """Refuse a task that has not one scorer, if none was chosen."""
        if scorers == 0:
            raise InvalidInput(f"task {task!r} must have a scorer, got none")
        if scorers > 1 and self._scorer is None:
            raise InvalidInput(f"scorer must name one of the {scorers} scorers of task {task!r}, got None")

    def number(self, task: str, sample: Any, scores: Mapping[str, Any]) -> float | None:
        """Return the score of a sample; None where it has none, or one that is not to be counted."""
        if not scores:
            return None
        name = self._scorer
        if name is None:
            name, *others = scores
            if others:
                raise EquipoiseError(f"scorer must name one of {_listed(scores)} for task {task!r}, got None")
        elif name not in scores:
            raise EquipoiseError(f"scorer must be one of {_listed(scores)} for task {task!r}, got {name!r}")
        found = scores[name]
        value = getattr(found, "score", found).value  # of a score, or of a score with its sample
        try:
            number = _as_number(value) if self._value is None else float(self._value(value))
        except Exception as error:  # of the caller's function, any
            reason = "" if self._value is None else f" ({type(error).__name__}: {error})"
            raise EquipoiseError(
                f"the score of sample {shown(sample)} of task {task!r} must be a number, got {shown(value)}{reason}; "
                "pass value=, a function such as lambda value: value['accuracy']"
            ) from None
        if math.isnan(number):  # how inspect_ai marks a sample that could not be scored
            return None
        self._check_possible(task, sample, number)
        return number

    def _check_possible(self, task: str, sample: Any, number: float) -> None:
        """Refuse a score that the support rules out."""
        if self._support == "binary":
            possible, words, instead = number in (0, 1), "0 or 1", "leave out support, or use support=(0, 1)"
        elif isinstance(self._support, tuple):
            low, high = self._support
            possible, words = low <= number <= high, f"between {low:g} and {high:g}"
            instead = "leave out support, or use a wider one"
        else:
            possible, words = abs(number) <= LARGEST, "a finite number"
            instead = "pass value=, a function that returns one"
        if not possible:
            raise EquipoiseError(
                f"the score of sample {shown(sample)} of task {task!r} must be {words}, got {number:g}; {instead}"
            )


def _as_number(value: Any) -> float:
    """Return a score's value as a number, as inspect_ai's metrics read it; they take what they cannot read for 0."""
    if not isinstance(value, str):
        return float(value)
    if value in _TEXTS:
        return _TEXTS[value]
    return _WORDS[value.lower()] if value.lower() in _WORDS else float(value)


def _listed(scores: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, scores))
