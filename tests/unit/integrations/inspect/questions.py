"""Questions of inspect_ai and a model that answers them without a network, and counts what it is asked."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalSpec
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes

RIGHT = {"easy": 1.0, "hard": 0.5, "mixed": 0.8}


def is_right(question: str) -> bool:
    """Whether the model knows the answer: always the same one, more often for easy questions."""
    return random.Random(question).random() < RIGHT[question.split()[0]]


def truth(questions: Iterable[str]) -> float:
    """The model's score on some questions."""
    right = [is_right(question) for question in questions]
    return sum(right) / len(right)


def never(question: str) -> bool:
    """Whether to fail."""
    return False


class Mock:
    """A model that answers yes where it is right; with the questions it was asked, and the tokens of each."""

    def __init__(
        self, tokens: Callable[[str], int] = lambda question: 100, fails: Any = lambda question: False
    ) -> None:
        self.asked: Counter[str] = Counter()
        self._tokens, self._fails = tokens, fails
        self.model = get_model("mockllm/model", custom_outputs=self._answer, memoize=False)

    def _answer(self, messages: Any, tools: Any, choice: Any, config: Any) -> ModelOutput:
        question = messages[-1].text
        self.asked[question] += 1
        if self._fails(question):
            raise RuntimeError(f"no answer to {question}")
        output = ModelOutput.from_content("mockllm/model", "yes" if is_right(question) else "no")
        tokens = self._tokens(question)
        output.usage = ModelUsage(input_tokens=tokens, output_tokens=0, total_tokens=tokens)
        return output


def dataset(name: str, size: int, groups: Iterable[str] = ("easy", "hard")) -> MemoryDataset:
    """As many questions of each group, without ids."""
    return MemoryDataset(
        [
            Sample(input=f"{group} {name} {i}", target="yes", metadata={"subject": group})
            for i in range(size)
            for group in groups
        ]
    )


def task(name: str, size: int, groups: Iterable[str] = ("easy", "hard"), **kwargs: Any) -> Task:
    """A task with as many questions of each group."""
    return Task(dataset=dataset(name, size, groups), scorer=kwargs.pop("scorer", includes()), name=name, **kwargs)


def quietly(folder: Path) -> dict[str, Any]:
    """What makes `eval` quick and keeps its logs in a folder."""
    return {"log_dir": str(folder / "logs"), "log_realtime": False, "display": "none"}


def eval_spec(task: str = "alpha") -> EvalSpec:
    """What inspect_ai tells of a task with a shuffled dataset and one scorer."""
    return EvalSpec.model_validate(
        {
            "created": "2026-11-16T00:00:00+00:00",
            "task": task,
            "dataset": {"shuffled": True},
            "model": "mockllm/model",
            "config": {},
            "scorers": [{"name": "includes"}],
        }
    )
