"""`evaluate` with the real inspect_ai and a model that needs no network."""

from __future__ import annotations

import asyncio
import functools
import importlib
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Epochs, SampleSource, Task, eval
from inspect_ai import task as task_of
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Score, includes, match, mean, scorer

from equipoise.base.errors import EquipoiseError
from equipoise.base.inputs import install_hint
from equipoise.integrations import inspect as eq_inspect
from equipoise.integrations.inspect import evaluation
from tests.unit.integrations.inspect.questions import Mock, quietly, task, truth


def run(tasks: Any, mock: Mock, folder: Path, **kwargs: Any) -> Any:
    options = quietly(folder) | kwargs.pop("eval_options", {})
    given: dict[str, Any] = {"group_by": "subject", "seed": 1} | kwargs
    return eq_inspect.evaluate(tasks, model=mock.model, eval_options=options, **given)


def test_groups_across_tasks_are_sampled_once_each(tmp_path: Path) -> None:
    mock = Mock()

    @task_of
    def beta() -> Any:
        return task("beta", 4)

    result = run([task("alpha", 10), beta], mock, tmp_path, batch=14, support="binary")
    assert len(mock.asked) == mock.asked.total() == result.samples == 28
    assert dict(result.counts) == {"easy": 14, "hard": 14}
    for group in ("easy", "hard"):
        assert result.means[group] == pytest.approx(truth(q for q in mock.asked if q.startswith(group)))
    assert (result.intervals().half_widths == 0).all()


def test_a_task_may_be_given_by_its_name(tmp_path: Path) -> None:
    @task_of
    def by_name() -> Task:
        return task("by_name", 4)

    @task_of
    def by_another() -> Any:
        return task("by_another", 4)

    result = run(["by_name", "by_another"], Mock(), tmp_path, support="binary")
    assert result.samples == 16


def test_tasks_may_be_given_by_their_file(tmp_path: Path) -> None:
    (tmp_path / "exam.py").write_text(
        "from inspect_ai import task\n"
        "from tests.unit.integrations.inspect.questions import task as questions\n"
        "@task\ndef law():\n    return questions('law', 4)\n"
        "@task\ndef physics():\n    return questions('physics', 3)\n"
    )
    one = run(f"{tmp_path / 'exam.py'}@law", Mock(), tmp_path, group_by=None, support="binary")
    assert dict(one.counts) == {"law": 8}
    both = run(str(tmp_path / "exam.py"), Mock(), tmp_path, group_by=None, support="binary")
    assert dict(both.counts) == {"law": 8, "physics": 6}


def test_the_budget_goes_where_scores_vary_and_a_store_continues(tmp_path: Path) -> None:
    store, mock = tmp_path / "study.db", Mock()
    tasks = [task("alpha", 40)]
    first = run(tasks, mock, tmp_path, batch=12, budget=12, support="binary", store=store)
    assert mock.asked.total() == first.samples == 12
    more = run(tasks, mock, tmp_path, batch=30, budget=42, support="binary", store=store)
    assert mock.asked.total() == len(mock.asked) == more.samples == 42
    assert more.counts["hard"] > more.counts["easy"]
    assert more.means["hard"] == pytest.approx(truth(q for q in mock.asked if q.startswith("hard")))
    # The same groups and the same ids, which are positions; but other questions.
    questions = tasks[0].dataset.samples
    questions[::2], questions[1::2] = questions[-2::-2], questions[::-2]
    for each in questions:
        each.id = None
    with pytest.raises(ValueError, match="store must hold the same evaluation, got one with other samples, or in"):
        run(tasks, mock, tmp_path, budget=50, support="binary", store=store)
    assert mock.asked.total() == 42


@pytest.mark.parametrize(
    ("changed", "arguments", "part"),
    [
        ({"scorer": match()}, {}, "scorer"),
        ({"epochs": 2}, {}, "epochs"),
        ({}, {"value": lambda value: 0.0}, "function `value`"),
        ({}, {"eval_options": {"temperature": 1}}, "eval_options"),
        ({}, {"model": "mockllm/model"}, "model"),
        ({}, {"unit": "tokens"}, "unit"),
    ],
)
def test_a_store_is_not_continued_with_what_scores_otherwise(
    changed: dict[str, Any], arguments: dict[str, Any], part: str, tmp_path: Path
) -> None:
    mock, given = Mock(), {"support": "binary", "store": tmp_path / "study.db", "batch": 6}
    run(task("alpha", 10), mock, tmp_path, budget=6, **given)
    options = {**quietly(tmp_path), **arguments.get("eval_options", {})}
    other: dict[str, Any] = {"model": mock.model, "group_by": "subject", **given, **arguments, "eval_options": options}
    with pytest.raises(ValueError, match=f"store must hold the same evaluation, got one with (an)?other {part}"):
        eq_inspect.evaluate(task("alpha", 10, **changed), budget=12, **other)
    assert mock.asked.total() == 6
    assert run(task("alpha", 10), mock, tmp_path, budget=12, **given).samples == 12


def test_a_budget_in_tokens_is_what_the_model_reports(tmp_path: Path) -> None:
    mock = Mock(tokens=lambda question: 300 if question.startswith("hard") else 20)
    result = run(task("alpha", 30, epochs=2), mock, tmp_path, budget=6000, unit="tokens", support="binary", batch=12)
    assert dict(result.costs) == {"easy": 40, "hard": 600}
    assert f"(cost {result.spent:,.0f} tokens)." in result.verdict
    assert result.spent == sum((300 if q.startswith("hard") else 20) * n for q, n in mock.asked.items())
    assert 6000 - 600 <= result.spent <= 6000 + 600
    assert set(mock.asked.values()) == {2}  # both epochs of every sample


def test_a_budget_in_tokens_is_extended(tmp_path: Path) -> None:
    mock = Mock(tokens=lambda question: 100)
    given: dict[str, Any] = {"unit": "tokens", "support": "binary", "batch": 6, "store": tmp_path / "study.db"}
    first = run(task("alpha", 40), mock, tmp_path, budget=1500, **given)
    assert first.spent == 100 * first.samples == 1500
    more = run(task("alpha", 40), mock, tmp_path, budget=3000, **given)
    assert more.spent == 100 * more.samples == 100 * mock.asked.total() == 3000


def test_a_budget_in_tokens_is_kept_to_a_sample(tmp_path: Path) -> None:
    mock = Mock(tokens=lambda question: 5000)
    result = run(
        task("alpha", 30), mock, tmp_path, budget=32_000, unit="tokens", support="binary", tokens_per_sample=10
    )
    assert result.spent == 30_000
    with pytest.raises(EquipoiseError, match="at least one sample of each group, got 100: 1 sample cost 5,000 tokens"):
        run(task("alpha", 30), mock, tmp_path, budget=100, unit="tokens", support="binary")


def test_an_objective_gives_groups_that_take_more_tokens_fewer_samples(tmp_path: Path) -> None:
    mock = Mock(tokens=lambda question: 900 if question.startswith("mixed") else 100)
    given: dict[str, Any] = {"budget": 30_000, "unit": "tokens", "support": "binary"}
    exam = task("alpha", 60, ("hard", "mixed"))
    even, cheap = run(exam, mock, tmp_path, **given), run(exam, mock, tmp_path, objective=1, **given)
    assert cheap.counts["mixed"] < even.counts["mixed"]
    assert cheap.counts["hard"] > 1.5 * even.counts["hard"]


def test_samples_that_fail_are_declined(tmp_path: Path) -> None:
    mock = Mock(fails=lambda question: question.endswith((" 1", " 3")))
    result = run(task("alpha", 6), mock, tmp_path, batch=12)
    assert dict(result.declined) == {"easy": 2, "hard": 2}
    assert dict(result.counts) == {"easy": 4, "hard": 4}
    good = [q for q in mock.asked if q.startswith("hard") and not q.endswith((" 1", " 3"))]
    assert result.means["hard"] == pytest.approx(truth(good))


def test_a_batch_that_fails_as_a_whole_is_tried_again_by_the_next_call(tmp_path: Path) -> None:
    store, broken, mock = tmp_path / "study.db", Mock(fails=lambda question: True), Mock()
    with pytest.raises(
        EquipoiseError, match=r"all 8 samples of a batch failed: .*no answer to .*; 0 samples saved in .*study"
    ):
        run(task("alpha", 4), broken, tmp_path, store=store)
    result = run(task("alpha", 4), mock, tmp_path, store=store)
    assert set(mock.asked) == set(broken.asked)
    assert dict(result.counts) == {"easy": 4, "hard": 4}
    assert result.declined.array.sum() == 0


def test_a_task_that_fails_keeps_what_was_scored(tmp_path: Path) -> None:
    store, mock = tmp_path / "study.db", Mock(fails=lambda question: question == "hard alpha 0")
    strict = {"fail_on_error": True, "max_samples": 1}
    with pytest.raises(EquipoiseError, match=r"task 'alpha' failed: .*no answer to hard alpha 0.*saved in") as error:
        run(task("alpha", 4), mock, tmp_path, store=store, eval_options=strict)
    scored = mock.asked.total() - 1
    assert 0 < scored < 7
    assert error.value.study.result().samples == scored
    healthy = Mock()
    result = run(task("alpha", 4), healthy, tmp_path, store=store, eval_options=strict)
    assert healthy.asked.total() == 8 - scored
    assert result.samples == 8


def test_a_cancelled_evaluation_can_be_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What inspect_ai returns after an interrupt: no log, or one that says so."""
    store, mock = tmp_path / "study.db", Mock()
    real = eval

    @functools.wraps(real)
    def without_log(*args: Any, **kwargs: Any) -> Any:
        return []

    @functools.wraps(real)
    def cancelled(*args: Any, **kwargs: Any) -> Any:
        (log,) = real(*args, **kwargs)
        log.status, log.samples = "cancelled", log.samples[:3]
        return [log]

    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "eval", without_log)
        with pytest.raises(EquipoiseError, match="task 'alpha' was cancelled; 0 samples saved in"):
            run(task("alpha", 4), mock, tmp_path, store=store)
        patch.setattr(evaluation, "eval", cancelled)
        with pytest.raises(EquipoiseError, match=r"task 'alpha' was cancelled; 3 samples saved in .*repeat the call"):
            run(task("alpha", 4), mock, tmp_path, store=store)
    mock.asked.clear()
    assert run(task("alpha", 4), mock, tmp_path, store=store).samples == 8
    assert mock.asked.total() == 5


def scored(value: Any) -> Any:
    """A scorer that gives every answer the same value."""

    @scorer(metrics=[mean()], name="same")
    def same() -> Any:
        async def score(state: Any, target: Any) -> Score:
            return Score(value=value)

        return score

    return same()


def test_a_score_that_is_not_a_number_ends_the_evaluation(tmp_path: Path) -> None:
    odd = task("alpha", 2, ("easy",), scorer=scored({"exact": 1}))
    with pytest.raises(EquipoiseError, match=r"must be a number, got \{'exact': 1\}; pass value=, a function such as"):
        run(odd, Mock(), tmp_path)
    assert run(odd, Mock(), tmp_path, value=lambda value: value["exact"]).means["easy"] == 1


def test_partial_credit_for_binary_scores_names_the_sample_and_keeps_the_others(tmp_path: Path) -> None:
    @scorer(metrics=[mean()], name="partial")
    def partial() -> Any:
        async def score(state: Any, target: Any) -> Score:
            return Score(value="P" if state.sample_id == 3 else "C")

        return score

    mock, store = Mock(), tmp_path / "study.db"
    exam = task("alpha", 4, ("easy",), scorer=partial())
    message = (
        r"sample 3 of task 'alpha' must be 0 or 1, got 0.5; leave out support, or .*; 3 samples saved in .*study.db"
    )
    for asked in (4, 5):  # only that sample is tried again
        with pytest.raises(EquipoiseError, match=message) as error:
            run(exam, mock, tmp_path, support="binary", store=store)
        assert error.value.study.result().samples == 3
        assert mock.asked.total() == asked
    assert run(exam, mock, tmp_path, support=(0, 1)).means["easy"] == 0.875


def test_in_an_event_loop_one_sentence_says_what_to_do(tmp_path: Path) -> None:
    async def within(mock: Mock) -> Any:
        with pytest.raises(
            EquipoiseError, match=r"evaluate must be called where no event loop is running; in one, `aw"
        ):
            run(task("alpha", 2), mock, tmp_path)
        assert not mock.asked
        return await asyncio.to_thread(run, task("alpha", 2), mock, tmp_path)

    assert asyncio.run(within(Mock())).samples == 4


def test_one_of_several_scorers_is_named(tmp_path: Path) -> None:
    both = task("alpha", 2, ("easy",), scorer=[includes(), match()])
    with pytest.raises(ValueError, match="scorer must name one of the 2 scorers of task 'alpha', got None"):
        run(both, Mock(), tmp_path)
    with pytest.raises(EquipoiseError, match="scorer must be one of 'includes', 'match' for task 'alpha', got 'other'"):
        run(both, Mock(), tmp_path, scorer="other")
    assert run(both, Mock(), tmp_path, scorer="match").samples == 2


def test_the_reducer_of_epochs_is_the_tasks(tmp_path: Path) -> None:
    answers = iter("CIIICCII")

    @scorer(metrics=[mean()], name="next")
    def taken() -> Any:
        async def score(state: Any, target: Any) -> Score:
            return Score(value=next(answers))

        return score

    several = task("alpha", 4, ("hard",), scorer=taken(), epochs=Epochs(2, "max"))
    result = run(several, Mock(), tmp_path, eval_options={"max_samples": 1})
    # Epoch after epoch: C and C, I and C, I and I, I and I.
    assert result.samples == 4
    assert result.means["hard"] == 0.5


@pytest.mark.parametrize(
    ("tasks", "arguments", "message"),
    [
        ([], {}, "tasks must have at least one task, got none"),
        (3, {}, "tasks must be tasks of inspect_ai, functions that return one, names or files, got 3"),
        ("alpha", {}, "tasks must be known to inspect_ai where they are names or files, got 'alpha'"),
        ("exam.py@exam", {}, "names or files, got 'exam.py@exam'"),
        ("exam.py", {}, "names or files, got 'exam.py'"),
        ([task("a", 1), task("a", 1)], {}, "tasks must have different names, got 'a' twice"),
        (
            task("a", 1),
            {"group_by": "topic"},
            "group_by must be a key of every sample's metadata, got 'topic', which s",
        ),
        (task("a", 1), {"group_by": 3}, "group_by must be a key of the samples' metadata, a function of a sample"),
        (task("a", 1), {"group_by": lambda sample: None}, "group_by must give a text or a number for every sample"),
        (task("a", 1), {"unit": "euros"}, "unit must be one of 'samples', 'tokens', got 'euros'"),
        (task("a", 1), {"tokens_per_sample": 5}, "tokens_per_sample needs unit='tokens', got 5"),
        (
            task("a", 1),
            {"unit": "tokens", "tokens_per_sample": 0},
            "tokens_per_sample must be a positive number, got 0",
        ),
        (task("a", 1), {"scorer": 1}, "scorer must be the name of a scorer, got 1"),
        (task("a", 1), {"value": 1}, "value must be a function of a score's value, got 1"),
        (task("a", 1), {"eval_options": {"limit": 3}}, "eval_options must leave limit to evaluate"),
        (task("a", 1), {"eval_options": {"max_sample": 3}}, "got 'max_sample'; did you mean 'max_samples'"),
        (task("a", 1, scorer=None), {}, "task 'a' must have a scorer, got none"),
        (
            Task(SampleSource(), scorer=includes(), name="a"),
            {},
            "must have a dataset of fixed samples, got a SampleSou",
        ),
        (task("a", 1, epochs=Epochs(2, ["mean", "max"])), {}, "task 'a' must have one reducer of epochs, got 2"),
        (
            task("a", 1),
            {"eval_options": {"epochs": Epochs(2, ["mean", "max"])}},
            "eval_options must have one reducer of epochs, got 2",
        ),
        (
            Task(MemoryDataset([Sample(input=str(i % 3), id=i % 3) for i in range(5)]), scorer=includes(), name="a"),
            {"group_by": None},
            "the samples of task 'a' must have different ids, got 0 twice or more",
        ),
        (task("a", 1, early_stopping=eq_inspect.EarlyStopping(None, 0.1)), {}, "task 'a' must have no early_stopping"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(tasks: Any, arguments: Any, message: str, tmp_path: Path) -> None:
    mock = Mock()
    with pytest.raises((ValueError, TypeError), match=message):
        run(tasks, mock, tmp_path, **arguments)
    assert not mock.asked


def test_one_model_at_a_time() -> None:
    with pytest.raises(TypeError, match=r"model must be one model, got .*; call evaluate once for each model"):
        eq_inspect.evaluate(task("a", 1), model=["a", "b"])


def test_a_model_without_usage_is_refused_a_budget_in_tokens(tmp_path: Path) -> None:
    with pytest.raises(EquipoiseError, match="the model reports no tokens, so that they cannot be counted; use unit="):
        run(task("alpha", 2), Mock(tokens=lambda question: 0), tmp_path, unit="tokens", budget=1000)


def test_without_inspect_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("equipoise.integrations.inspect")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    hint = re.escape(install_hint("inspect"))
    with pytest.raises(ModuleNotFoundError, match=f"needs inspect_ai, which is not installed; {hint}"):
        importlib.import_module("equipoise.integrations.inspect")
