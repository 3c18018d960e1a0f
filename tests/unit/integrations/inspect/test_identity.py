"""What tells evaluations apart, without running any."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from inspect_ai import Epochs
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageUser, GenerateConfig, ModelOutput, get_model
from inspect_ai.scorer import includes, match
from inspect_ai.solver import generate, system_message

from equipoise.integrations.inspect.identity import check_same, identity
from tests.unit.integrations.inspect.questions import task


def of(model: Any = "mockllm/model", value: Any = None, options: Any = None, **kwargs: Any) -> Any:
    exam = task("alpha", 2, ("easy",), **kwargs)
    questions = [("easy", "alpha", each) for each in exam.dataset]
    return identity([exam], questions, model, None, value, options or {})


def mock(**kwargs: Any) -> Any:
    def reply(*_: Any) -> ModelOutput:
        return ModelOutput.from_content("mockllm/model", "yes")

    return get_model("mockllm/model", custom_outputs=reply, memoize=False, **kwargs)


def above(threshold: float) -> Callable[[Any], float]:
    return lambda value: float(value > threshold)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"scorer": match()}, r"another scorer \(includes\(\) instead of match\(\)\)"),
        ({"scorer": includes(ignore_case=False)}, r"another scorer \(.* instead of includes\(ignore_case=False\)\)"),
        (
            {"solver": [system_message("Think."), generate()]},
            r"another solver \(generate\(\) instead of system_message\(template='Think.'\), generate\(\)\)",
        ),
        ({"epochs": 2}, r"other epochs \(1 instead of 2\)"),
        ({"epochs": Epochs(1, "max")}, r"other epochs \(1 instead of 1, max\(\)\)"),
        ({"options": {"epochs": Epochs(3, "max")}}, r"other epochs \(1 instead of 3, max\(\)\)"),
        ({"options": {"temperature": 1}}, r"other eval_options \(none instead of temperature=1\)"),
        ({"value": float}, r"another function `value` \(none instead of float\)"),
        ({"message_limit": 9}, r"other settings of its tasks \(none instead of message_limit=9\)"),
        ({"config": GenerateConfig(top_p=1)}, r"other settings of its tasks \(none instead of config=\(top_p=1.0\)\)"),
        ({"model": "mockllm/other"}, r"another model \(mockllm/model instead of mockllm/other\)"),
        ({"model": mock(config=GenerateConfig(seed=1))}, r"another model \(mockllm/model instead of .*config=\(seed=1"),
    ],
)  # fmt: skip
def test_what_differs_is_named(changed: dict[str, Any], message: str) -> None:
    check_same(of(), of())
    with pytest.raises(ValueError, match=f"store must hold the same evaluation, got one with {message}.*; use another"):
        check_same(of(), of(**changed))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input": "other"}, "other samples, or in another order or in other groups"),
        ({"target": "no"}, "other targets of its samples"),
        ({"choices": ["yes", "no"]}, "other choices of its samples"),
        ({"metadata": {"subject": "easy", "hint": 1}}, "other metadata of its samples"),
        ({"files": {"data.csv": "1,2"}}, "other files, setups or sandboxes of its samples"),
    ],
)
def test_samples_are_told_apart_by_all_that_scores_depend_on(change: dict[str, Any], message: str) -> None:
    first = Sample(input="one", target="yes", id=1, metadata={"subject": "easy"})
    held, given = (
        identity([task("alpha", 1)], [("easy", "alpha", sample)], None, None, None, {})
        for sample in (first, first.model_copy(update=change))
    )
    with pytest.raises(ValueError, match=f"got one with {message}; use another store or change it back"):
        check_same(held, given)


@pytest.mark.parametrize(
    "changed",
    [
        {"options": {"max_samples": 3, "log_dir": "elsewhere", "fail_on_error": True, "max_retries": 9}},
        {"options": {"model_args": {"api_key": "another"}}},
        {"config": GenerateConfig(max_connections=3, timeout=9)},
        {"tags": ["tag"]},
    ],
)
def test_how_samples_are_run_and_secrets_make_no_difference(changed: dict[str, Any]) -> None:
    check_same(of(), of(**changed))
    assert "another" not in str(of(**changed))


def test_functions_are_told_apart_by_what_they_do() -> None:
    def words(value: Any) -> str:
        return str(of(value=value)["value"])

    assert words(above(0.5)) == words(above(0.5))
    assert len({words(above(0.5)), words(above(0.6)), words(lambda value: 0.0), words(lambda value: 1.0)}) == 4
    assert of(model=mock()) == of(model=mock())


def test_a_message_is_its_text_and_not_its_random_id() -> None:
    found = [
        identity(
            [task("a", 1)], [("a", "a", Sample(input=[ChatMessageUser(content=text)], id=1))], None, None, None, {}
        )
        for text in ("one", "one", "two")
    ]
    assert found[0] == found[1]
    assert found[1]["questions"] != found[2]["questions"]


def test_long_texts_are_cut_and_still_told_apart() -> None:
    one, other = (of(solver=[system_message("x" * 500 + end)])["solver"] for end in "ab")
    assert one != other
    assert len(one) < 130


def test_tasks_with_different_scorers_show_both() -> None:
    tasks = [task("a", 1, scorer=match()), task("b", 1, scorer=includes())]
    assert identity(tasks, [], None, None, None, {})["scorer"] == "a: match(); b: includes()"


def test_the_model_of_the_environment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INSPECT_EVAL_MODEL", "mockllm/one")
    assert of(model=None)["model"] == "mockllm/one"


def test_another_process_finds_the_same() -> None:
    program = (
        "from equipoise.integrations.inspect.identity import _words\n"
        "print(_words(lambda value: float(value in {'C', 'P', 'yes', 'true'})), _words({'one', 'two', 'three'}))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in "12"
    }
    assert len(found) == 1
