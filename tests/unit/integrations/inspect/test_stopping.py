"""`EarlyStopping` with the real inspect_ai and a model that needs no network."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import SampleScore, Score, includes, mean, scorer

from equipoise.base.errors import EquipoiseError
from equipoise.integrations import inspect as eq_inspect
from tests.unit.integrations.inspect.questions import Mock, dataset, eval_spec, quietly, truth


def shuffled(size: int, groups: Any = ("easy", "hard")) -> MemoryDataset:
    found = dataset("alpha", size, groups)
    found.shuffle(1)
    return found


def run(questions: MemoryDataset, stopping: Any, mock: Mock, folder: Path, **kwargs: Any) -> Any:
    task = Task(dataset=questions, scorer=includes(), early_stopping=stopping, **kwargs)
    (log,) = eval(task, model=mock.model, max_samples=4, fail_on_error=False, **quietly(folder))
    return log


def test_a_group_is_skipped_once_it_is_known(tmp_path: Path) -> None:
    mock = Mock()
    stopping = eq_inspect.EarlyStopping(group_by="subject", precision=0.15, support="binary")
    log = run(shuffled(60), stopping, mock, tmp_path)
    result = stopping.result()
    assert log.status == "success"
    assert result.reached
    assert result.samples == mock.asked.total() == len(log.samples) < 100
    assert result.counts["easy"] < result.counts["hard"]
    for group in ("easy", "hard"):
        assert result.means[group] == pytest.approx(truth(q for q in mock.asked if q.startswith(group)))
    summary = log.results.early_stopping
    assert summary.manager == "equipoise"
    assert len(summary.early_stops) == 120 - result.samples
    assert {stop.metadata["group"] for stop in summary.early_stops} >= {"easy"}
    assert summary.early_stops[0].reason == "group 'easy' is known to the precision that was asked for"
    easy = summary.metadata["groups"]["easy"]
    low, high = result.intervals()["easy"]
    assert easy == {
        "samples": result.counts["easy"], "of": 60, "mean": 1.0, "low": low, "high": high, "precise": True,
    }  # fmt: skip
    # Both groups have the same share of the dataset, whatever their shares of the samples that ran.
    assert summary.metadata["overall"]["mean"] == pytest.approx((result.means["easy"] + result.means["hard"]) / 2)


def test_samples_that_fail_do_not_keep_a_group_waiting(tmp_path: Path) -> None:
    mock = Mock(fails=lambda question: question.endswith("0"))
    stopping = eq_inspect.EarlyStopping(lambda sample: "all", 0.2, support="binary")
    log = run(shuffled(60, ("easy",)), stopping, mock, tmp_path)
    result = stopping.result()
    failed = sum(question.endswith("0") for question in mock.asked)
    assert failed > 0
    assert dict(result.declined) == {"all": failed}
    assert result.samples == mock.asked.total() - failed
    assert len(log.samples) < 50


@pytest.mark.parametrize(
    ("questions", "arguments", "of_task", "message"),
    [
        (dataset("alpha", 2), {}, {}, "needs the samples of task 'task' in random order; shuffle the dataset, or say"),
        (shuffled(2), {}, {"epochs": 2}, r"needs a task with one epoch, got 2; evaluate\(\) takes several"),
        (shuffled(2), {"group_by": "topic"}, {}, "group_by must be a key of every sample's metadata, got 'topic'"),
        (
            shuffled(2),
            {"value": lambda value: value["a"]},
            {},
            r"must be a number, got '[CI]' \(TypeError: .*; pass value=",
        ),
    ],
)
def test_what_cannot_be_stopped_early_ends_the_task(
    questions: Any, arguments: Any, of_task: Any, message: str, tmp_path: Path
) -> None:
    arguments = {"group_by": "subject", "precision": 0.1} | arguments
    stopping = eq_inspect.EarlyStopping(**arguments)
    log = run(questions, stopping, Mock(), tmp_path, **of_task)
    assert log.status == "error"
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(log.error.message)


def test_a_limit_leaves_samples_unknown(tmp_path: Path) -> None:
    stopping = eq_inspect.EarlyStopping(group_by="subject", precision=0.05, support="binary")
    exam = Task(dataset=shuffled(60), scorer=includes(), early_stopping=stopping)
    (log,) = eval(exam, model=Mock().model, max_samples=1, limit=30, **quietly(tmp_path))
    summary, result = log.results.early_stopping.metadata, stopping.result()
    assert result.samples == 30
    assert result.populations is None
    for group in summary["groups"].values():
        assert group["low"] < group["mean"] <= group["high"]
        assert not group["precise"]
    assert "overall" not in summary
    assert summary["notes"][0].startswith(
        "Scores are estimates for the dataset's 120 samples, of which `limit` left 30; "
    )


def test_samples_chosen_by_their_ids_leave_others_unknown(tmp_path: Path) -> None:
    questions = dataset("alpha", 60)
    for i, each in enumerate(questions.samples):
        each.id = i
    questions.shuffle(1)
    stopping = eq_inspect.EarlyStopping(group_by="subject", precision=0.05, support="binary")
    exam = Task(dataset=questions, scorer=includes(), early_stopping=stopping)
    ids: list[str | int] = list(range(30))
    (log,) = eval(exam, model=Mock().model, max_samples=1, sample_id=ids, **quietly(tmp_path))
    summary, result = log.results.early_stopping.metadata, stopping.result()
    assert result.samples == 30
    assert result.populations is None
    assert not any(group["precise"] for group in summary["groups"].values())
    assert "overall" not in summary
    assert summary["notes"][0].startswith(
        "Scores are estimates for the dataset's 120 samples, of which `sample_id` left 30, if these are a random part; "
    )


def test_a_summary_says_that_samples_waited_for_a_retry(tmp_path: Path) -> None:
    mock: Mock = Mock(fails=lambda question: question.endswith("0") and mock.asked[question] == 1)
    stopping = eq_inspect.EarlyStopping(precision=0.2, support="binary")
    exam = Task(dataset=shuffled(60, ("easy",)), scorer=includes(), early_stopping=stopping)
    (log,) = eval(exam, model=mock.model, max_samples=1, retry_on_error=1, **quietly(tmp_path))
    retried = sum(times > 1 for times in mock.asked.values())
    assert retried > 1
    assert log.results.early_stopping.metadata["notes"] == [
        f"{retried} samples failed and had to wait for a retry until all others had begun; later scores of a group "
        "wait for it too, and retry_on_error=0 leaves more to skip."
    ]


def test_groups_with_the_same_text_are_told_apart() -> None:
    async def use() -> Any:
        stopping = eq_inspect.EarlyStopping("subject", precision=0.2)
        await stopping.start_task(
            eval_spec(), [Sample(input="", id=i, metadata={"subject": s}) for i, s in enumerate((1, "1", "b"))], 1
        )
        await completed(stopping, range(3))
        return (await stopping.complete_task())["groups"]

    assert list(asyncio.run(use())) == ["1", "'1'", "'b'"]


def test_partial_credit_for_binary_scores_names_the_sample(tmp_path: Path) -> None:
    @scorer(metrics=[mean()], name="partial")
    def partial() -> Any:
        async def score(state: Any, target: Any) -> Score:
            return Score(value="P")

        return score

    stopping = eq_inspect.EarlyStopping(precision=0.1, support="binary")
    exam = Task(dataset=shuffled(3), scorer=partial(), early_stopping=stopping, name="exam")
    (log,) = eval(exam, model=Mock().model, max_samples=1, **quietly(tmp_path))
    assert log.status == "error"
    assert "of task 'exam' must be 0 or 1, got 0.5; leave out support, or use support=(0, 1)" in log.error.message


# ---- without a model: what inspect_ai calls


def samples(size: int) -> list[Sample]:
    return [Sample(input="", id=i, metadata={"subject": "all"}) for i in range(size)]


async def completed(stopping: Any, ids: Any, value: Any = 1) -> list[Any]:
    """Schedule samples and complete them at once; return those that were skipped."""
    skipped = []
    for id in ids:
        if await stopping.schedule_sample(id, 1) is not None:
            skipped.append(id)
        else:
            await stopping.complete_sample(id, 1, {"includes": SampleScore(score=Score(value=value))})
    return skipped


def test_one_object_serves_one_task_at_a_time() -> None:
    async def use() -> None:
        stopping = eq_inspect.EarlyStopping(precision=0.2)
        await stopping.start_task(eval_spec(), samples(3), 1)
        with pytest.raises(EquipoiseError, match="an EarlyStopping serves one task at a time; make one for each task"):
            await stopping.start_task(eval_spec("beta"), samples(3), 1)
        await completed(stopping, range(3))
        assert (await stopping.complete_task())["groups"]["alpha"]["samples"] == 3
        await stopping.start_task(eval_spec("beta"), samples(2), 1)
        assert dict(stopping.result().counts) == {"beta": 0}

    asyncio.run(use())


def test_a_task_that_never_ended_does_not_block_the_next() -> None:
    stopping = eq_inspect.EarlyStopping(precision=0.2)
    for _ in range(2):
        asyncio.run(stopping.start_task(eval_spec(), samples(3), 1))
    assert stopping.result().samples == 0


def test_the_score_waits_for_samples_that_take_longer() -> None:
    """As long as one of the first samples runs, later ones say nothing: they may be the quick ones."""

    async def use() -> tuple[list[Any], list[Any]]:
        stopping = eq_inspect.EarlyStopping(precision=0.1, support="binary")
        await stopping.start_task(eval_spec(), samples(400), 1)
        assert await stopping.schedule_sample(0, 1) is None
        waiting = await completed(stopping, range(1, 200))
        await stopping.complete_sample(0, 1, {"includes": SampleScore(score=Score(value=1))})
        return waiting, await completed(stopping, range(200, 400))

    waiting, after = asyncio.run(use())
    assert waiting == []
    assert after == list(range(200, 400))


def test_a_sample_that_is_tried_again_is_asked_for_once() -> None:
    async def use() -> Any:
        stopping = eq_inspect.EarlyStopping(precision=0.2)
        await stopping.start_task(eval_spec(), samples(3), 1)
        for _ in range(3):
            assert await stopping.schedule_sample(1, 1) is None
        await stopping.complete_sample(1, 1, {})
        return stopping.result()

    result = asyncio.run(use())
    assert result.known.snapshot.evidence.answered.asked == 1
    assert dict(result.declined) == {"alpha": 1}


def test_a_dataset_that_was_drawn_from_others_is_never_known_exactly() -> None:
    async def use(finite: bool) -> Any:
        stopping = eq_inspect.EarlyStopping(precision=0.01, support="binary", finite=finite)
        await stopping.start_task(eval_spec(), samples(30), 1)
        assert await completed(stopping, range(30)) == []
        return (await stopping.complete_task())["groups"]["alpha"]

    assert asyncio.run(use(finite=True))["precise"]
    assert not asyncio.run(use(finite=False))["precise"]


@pytest.mark.parametrize(("at_once", "noted"), [(1, False), (4, False), (30, True)])
def test_a_summary_says_when_too_many_samples_ran_at_the_same_time(at_once: int, noted: bool) -> None:
    async def use() -> Any:
        stopping = eq_inspect.EarlyStopping(precision=0.01, support="binary")
        await stopping.start_task(eval_spec(), samples(60), 1)
        for first in range(0, 60, at_once):
            ids = range(first, min(first + at_once, 60))
            for id in ids:
                await stopping.schedule_sample(id, 1)
            for id in ids:
                await stopping.complete_sample(id, 1, {"includes": SampleScore(score=Score(value=id % 2))})
        return (await stopping.complete_task())["notes"]

    note = "Up to 30 of 60 samples ran at the same time; running samples cannot be skipped, and max_samples=3 leaves"
    assert [each.startswith(note) for each in asyncio.run(use())] == [True] * noted


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "precision is required"),
        ({"precision": -1}, "precision must be a positive number"),
        ({"precision": 0.1, "level": 0}, "level must be strictly between 0 and 1"),
        ({"precision": 0.1, "support": "coin"}, "support must be"),
        ({"precision": 0.1, "group_by": 3}, "group_by must be a key"),
        ({"precision": 0.1, "intervall": "anytime"}, "has no argument 'intervall'; did you mean 'interval'"),
    ],
)
def test_what_is_wrong_is_refused_at_once(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        eq_inspect.EarlyStopping(**arguments)


def test_there_is_no_result_before_a_task() -> None:
    with pytest.raises(EquipoiseError, match="no task has been started with this EarlyStopping"):
        eq_inspect.EarlyStopping(precision=0.1).result()
