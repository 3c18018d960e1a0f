"""Evaluate a model on the samples that a study asks for."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import copy
import inspect
import math
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from inspect_ai import Task, eval
from inspect_ai._eval.loader import load_tasks  # no public name of it returns tasks
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.dataset import MemoryDataset
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.model._model import init_active_model, init_model_roles  # no public names either

from equipoise.base import terminal as people
from equipoise.base.errors import EquipoiseError, InvalidInput
from equipoise.base.inputs import choice, did_you_mean, number, positive, shown
from equipoise.base.keywords import suggests_keywords
from equipoise.base.tables import count
from equipoise.integrations.inspect.groups import GroupBy, check_group_by, check_ids, groups_of, with_ids
from equipoise.integrations.inspect.identity import check_same, identity
from equipoise.integrations.inspect.scores import Scores
from equipoise.integrations.pools import Answers, ItemAnswer, sample
from equipoise.ledger.evidence import LEVEL
from equipoise.ledger.goal import Stopping
from equipoise.problem import Stratified
from equipoise.problem.objective import numbers_by_arm
from equipoise.result import Result
from equipoise.run.progress import Progress
from equipoise.store import Header, Log
from equipoise.strategies import Strategy, Support

Unit = Literal["samples", "tokens"]

# What a sample is expected to take where nobody says, in tokens, until the first samples tell.
TOKENS: Final = 1000.0

# A batch of at least this many samples that all fail ends the evaluation: they are not the samples' fault.
MANY: Final = 4

# Arguments of inspect_ai's eval that this function decides.
_OURS: Final = (
    "tasks", "model", "limit", "sample_id", "sample_shuffle", "run_samples", "score", "log_samples", "log_header_only",
)  # fmt: skip


class Item(NamedTuple):
    """A sample of a task, by their positions."""

    task: int
    position: int


@suggests_keywords
def evaluate(
    tasks: Any,
    *,
    model: Any = None,
    group_by: GroupBy = None,
    budget: float | None = None,
    unit: Unit = "samples",
    tokens_per_sample: float | Mapping[Any, float] | None = None,
    precision: Any = None,
    level: float = LEVEL,
    interval: Stopping = "fixed-width",
    strategy: str | Strategy = "auto",
    support: Support = None,
    objective: float | Stratified = math.inf,
    scorer: str | None = None,
    value: Callable[[Any], float] | None = None,
    finite: bool = True,
    batch: int | None = None,
    seed: int | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[Progress], Any] | None = None,
    eval_options: Mapping[str, Any] | None = None,
) -> Result:
    """
    Evaluate a model on tasks of inspect_ai, group by group, within one budget or to a precision.

    Samples run in batches, each with one call of inspect_ai's `eval`. Which groups the samples of the next batch are
    taken from is decided by the scores so far. Within a group they are taken in random order.

    Parameters
    ----------
    tasks
        A task, a function decorated with `@task`, or a text as `inspect eval` takes it: the name of a task, such as
        "inspect_evals/gsm8k", a file such as "exam.py", or one task of it, "exam.py@law". Or a list of these, with
        different names.
    model
        As in `eval`, one model. None for that of the tasks or of the environment.
    group_by
        A key of the samples' metadata, or a function of a sample. Samples of several tasks may belong to one group.
        None for one group per task.
    budget
        The most samples to run, or with `unit="tokens"` the most tokens to use.
    unit
        What the budget counts. Tokens are what inspect_ai reports of all models that a sample uses, graders included.
        With a budget in tokens, batches begin with one sample and grow, and none has more samples than what is left
        pays for at the largest use seen. So the budget is exceeded by about one sample's use at most, unless samples
        suddenly take much more than any before. The verdict says by how much.
    tokens_per_sample
        What a sample of a group is expected to take until one of them tells, in tokens: for all groups, or by group. By
        default 1,000, or a tenth of a group's even share of the first budget if that is less.
    precision
        Stop when the score of every group is known to plus or minus this, as in `estimate`.
    level, interval, strategy, support, seed, progress
        As in `estimate`. `support="binary"` is for scores that are right or wrong.
    objective
        As in `estimate`. With `unit="tokens"`, `objective=1` makes the sum of the squared errors small for the tokens
        spent, so that groups whose samples take more tokens get fewer. With the default, which makes the largest error
        small, what a sample takes does not matter for its group.
    scorer
        Whose score counts, by name, where a task has several scorers.
    value
        A function that returns the number for a score's value; by default as inspect_ai's metrics read it, with 1 for
        "C" and 0 for "I".
    finite
        Whether the score of a group is that of its samples, and known exactly once all have run. False for the score of
        the questions that they were drawn from.
    batch
        How many samples to run with one call of `eval`. By default four of each group at first, and later an eighth of
        those so far, of the groups whose score is still open.
    store
        A path (SQLite) or a postgresql:// URL. Everything is saved there, and the same call with the same store
        continues where the last one ended.
    eval_options
        Further arguments of `eval`, such as {"max_connections": 20, "log_dir": "logs"}.

    Returns
    -------
    Result
        Its arms are the groups.

    Raises
    ------
    EquipoiseError
        If a task fails as a whole, an evaluation is cancelled, all samples of a batch fail, a score cannot be used, or
        a budget in tokens does not pay for a sample of each group. What was scored before is kept: in the store, and
        in the error's attribute `study`.

    Notes
    -----
    A sample that fails, or that a scorer cannot score, is counted as declined. It uses budget and is left out of the
    score of its group, whatever the task's own `fail_on_error` is; give it in `eval_options` to end the evaluation
    instead. With several epochs, all epochs of a sample run together and count as one sample, with the score that the
    task's reducer makes of those that ran to their end.
    """
    _check_no_loop()
    check_group_by(group_by)
    choice("unit", unit, ("samples", "tokens"))
    scores = Scores(scorer, value, support)
    options = _checked_options(eval_options)
    if isinstance(model, Sequence) and not isinstance(model, str):
        raise TypeError(f"model must be one model, got {shown(model)}; call evaluate once for each model")
    # In a context of its own: what is made known to the tasks ends there.
    known = contextvars.copy_context().run(_questions, tasks, scores, model, options)
    twice = [name for name, many in Counter(each.name for each in known).items() if many > 1]
    if twice:
        raise InvalidInput(f"tasks must have different names, got {twice[0]!r} twice")
    groups: dict[Any, list[Item]] = defaultdict(list)
    for t, each in enumerate(known):
        for position, group in enumerate(groups_of(each.name, each.samples, group_by)):
            groups[group].append(Item(t, position))
    about: dict[str, Any] = {"cost_unit": unit} if unit == "tokens" else {}
    held = None
    if store is not None:
        questions = [
            (group, known[item.task].name, known[item.task].samples[item.position])
            for group, items in groups.items()
            for item in items
        ]
        about |= identity([each.task for each in known], questions, model, scorer, value, options)
        held = _held(store)
        if held is not None:
            check_same(held.about or {}, about)
    return sample(
        groups,
        _Evaluator(known, scores, model, options, unit).answer,
        budget=budget,
        precision=precision,
        level=level,
        interval=interval,
        strategy=strategy,
        support=support,
        objective=objective,
        costs=_expected_costs(unit, tokens_per_sample, budget, list(groups), held),
        finite=finite,
        seed=seed,
        store=store,
        about=about,
        batch=batch,
        progress=progress,
    )


def _check_no_loop() -> None:
    """Refuse to run where inspect_ai cannot: in an event loop, unless it is that of a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    if not people.notebook():
        raise EquipoiseError(
            "evaluate must be called where no event loop is running; in one, `await asyncio.to_thread(evaluate, ...)`"
        )


# ---- what is evaluated


class _Questions:
    """A task, with its samples as they were given."""

    def __init__(self, task: Any, arguments: Mapping[str, Any], scores: Scores) -> None:
        if not isinstance(task, Task) and callable(task):
            task = task(**arguments)
        if not isinstance(task, Task):
            raise TypeError(
                f"tasks must be tasks of inspect_ai, functions that return one, names or files, got {shown(task)}"
            )
        self.task, self.name = task, task.name
        if getattr(task, "sample_source", None) is not None:
            raise InvalidInput(f"task {self.name!r} must have a dataset of fixed samples, got a SampleSource")
        if task.early_stopping is not None:
            raise InvalidInput(f"task {self.name!r} must have no early_stopping: evaluate decides which samples run")
        if len(task.epochs_reducer or ()) > 1:
            raise InvalidInput(f"task {self.name!r} must have one reducer of epochs, got {len(task.epochs_reducer)}")
        scores.check(self.name, len(task.scorer or ()))
        self.samples = with_ids(task.dataset)
        check_ids(self.name, self.samples)

    def some(self, positions: Sequence[int]) -> Task:
        """Return the task with some of its samples."""
        part = copy.copy(self.task)
        dataset = self.task.dataset
        part.dataset = MemoryDataset([self.samples[p] for p in positions], dataset.name, dataset.location)
        return part


def _questions(tasks: Any, scores: Scores, model: Any, options: Mapping[str, Any]) -> list[_Questions]:
    """Make the tasks as `eval` would, with its model, its roles and its `task_args`, and return their samples."""
    arguments = options.get("task_args") or {}
    if not isinstance(arguments, Mapping):
        raise TypeError(f"task_args must be a mapping of names to values, got {shown(arguments)}")
    listed = list(tasks) if isinstance(tasks, Sequence) and not isinstance(tasks, str) else [tasks]
    if not all(isinstance(each, Task) for each in listed):
        _make_known(model, options)
    made = [task for each in listed for task in (_named(each, arguments) if isinstance(each, str) else [each])]
    if not made:
        raise InvalidInput("tasks must have at least one task, got none")
    return [_Questions(task, arguments, scores) for task in made]


def _make_known(model: Any, options: Mapping[str, Any]) -> None:
    """Tell functions that make tasks which model and which roles there are, as `eval` does."""
    if model is not None or os.environ.get("INSPECT_EVAL_MODEL"):
        given = options.get("model_args") or {}
        settings = given if isinstance(given, Mapping) else {}
        known = get_model(model, base_url=options.get("model_base_url"), **settings)
        init_active_model(known, known.config)
    roles = options.get("model_roles") or {}
    init_model_roles({role: get_model(each) if isinstance(each, str) else each for role, each in roles.items()})


def _named(name: str, arguments: Mapping[str, Any]) -> list[Any]:
    """Return the tasks that inspect_ai finds by a name or in a file."""
    try:
        # A file without the name of a task is a pattern there, which must be relative.
        found: list[Any] = load_tasks([os.path.relpath(name) if os.path.isabs(name) else name], dict(arguments))
    except (OSError, LookupError, PrerequisiteError):
        found = []
    if not found:
        raise InvalidInput(f"tasks must be known to inspect_ai where they are names or files, got {name!r}")
    return found


def _checked_options(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the arguments of `eval` that a user gave, with those that fit a study of many batches."""
    parameters = inspect.signature(eval).parameters
    known = [name for name in (*parameters, *GenerateConfig.model_fields) if name not in (*_OURS, "kwargs")]
    for name in given or ():
        if name in _OURS:
            raise InvalidInput(f"eval_options must leave {name} to evaluate, got {shown(given)}")
        if name not in known:
            raise InvalidInput(f"eval_options must be arguments of eval, got {name!r}{did_you_mean(name, known)}")
    reducers = getattr((given or {}).get("epochs"), "reducer", None) or ()
    if len(reducers) > 1:
        raise InvalidInput(f"eval_options must have one reducer of epochs, got {len(reducers)}")
    return {"display": "none", "fail_on_error": False} | dict(given or {})


def _held(store: str | os.PathLike[str]) -> Header | None:
    """Return what the study in a store is made of; None if there is none."""
    with contextlib.suppress(ValueError), Log(store, write=False) as log:
        return log.header
    return None


def _expected_costs(
    unit: Unit, given: Any, budget: Any, groups: Sequence[Any], held: Header | None
) -> dict[Any, float] | None:
    if unit == "samples":
        if given is not None:
            raise InvalidInput(f"tokens_per_sample needs unit='tokens', got {shown(given)}")
        return None
    if given is None and held is not None:
        # A study is continued with the costs that it began with, whatever the budget is now.
        given = held.options.get("costs")
    if given is None:
        share = TOKENS if budget is None else number("budget", budget) / (10 * len(groups))
        given = min(TOKENS, share) if share > 0 else TOKENS
    if not isinstance(given, Mapping):
        given = dict.fromkeys(groups, positive("tokens_per_sample", given))
    return dict(zip(groups, numbers_by_arm("tokens_per_sample", given, groups), strict=True))


# ---- how


class _Evaluator:
    """Runs batches of samples."""

    def __init__(
        self, known: Sequence[_Questions], scores: Scores, model: Any, options: Mapping[str, Any], unit: Unit
    ) -> None:
        self._known, self._scores, self._unit = known, scores, unit
        self._options = dict(options) | ({} if model is None else {"model": model})
        self._scored = self._paid = False

    def answer(self, items: Sequence[Item]) -> Answers:
        """Return what came of some samples."""
        positions: dict[int, list[int]] = defaultdict(list)
        for item in items:
            positions[item.task].append(item.position)
        try:
            logs = eval([self._known[t].some(some) for t, some in positions.items()], **self._options)
        except Exception as error:
            said = f"inspect_ai's eval failed: {type(error).__name__}: {_one_line(str(error))}"
            return Answers([None] * len(items), said, error)
        by_name = {log.eval.task: log for log in logs}
        runs = {t: _Runs(self._known[t].name, by_name.get(self._known[t].name)) for t in positions}
        answers: list[ItemAnswer | None] = []
        unusable = ""
        for item in items:
            try:
                answers.append(self._of(runs[item.task], self._known[item.task].samples[item.position].id))
            except EquipoiseError as error:  # a score that cannot be used: the others are kept
                answers.append(None)
                unusable = unusable or str(error)
        return self._judged(answers, runs, unusable)

    def _of(self, runs: _Runs, id: Any) -> ItemAnswer | None:
        """Return what came of one sample; None if it did not run to its end."""
        if id not in runs.ended:
            return None
        lost = runs.error_of(id) and not runs.has_reduced(id)
        score = None if lost else self._scores.number(runs.task, id, runs.scores(id))
        return ItemAnswer(score, runs.tokens(id) if self._unit == "tokens" else None)

    def _judged(self, answers: Sequence[ItemAnswer | None], runs: Mapping[int, _Runs], unusable: str) -> Answers:
        """Return the answers, and why the evaluation cannot go on if it cannot."""
        failure = next((each.failure for each in runs.values() if each.failure), unusable)
        found = [answer for answer in answers if answer is not None]
        self._scored |= any(answer.value is not None for answer in found)
        failed = bool(found) and all(answer.value is None for answer in found)
        error = next((text for each in runs.values() if (text := each.first_error)), "")
        if failed and error and (len(found) >= MANY or not self._scored):
            # Whatever it is, the samples should be tried again once it is mended.
            failure = failure or f"all {count(len(found), 'sample')} of a batch failed: {error}"
            return Answers([None] * len(answers), failure)
        # Those from inspect_ai's cache cost nothing.
        self._paid |= any(answer.cost for answer in found) or bool(self._options.get("cache"))
        if self._unit == "tokens" and found and not self._paid:
            failure = failure or "the model reports no tokens, so that they cannot be counted; use unit='samples'"
        return Answers(answers, failure)


class _Runs:
    """What one call of `eval` found for a task."""

    def __init__(self, task: str, log: Any) -> None:
        self.task = task
        self.ended: dict[Any, list[Any]] = defaultdict(list)
        self.failure = self._failure(log)
        self._log = log
        for run in (log.samples if log is not None else None) or ():
            if run.error is None or not self.failure:  # else it may have been interrupted
                self.ended[run.id].append(run)
        epochs = (log.eval.config.epochs or 1) if log is not None else 1
        for id in [id for id, runs in self.ended.items() if len(runs) < epochs and not self.error_of(id)]:
            del self.ended[id]
        self._reduced = self._reductions() if epochs > 1 else None

    def _failure(self, log: Any) -> str:
        if log is None or log.status == "cancelled":
            return f"the evaluation of task {self.task!r} was cancelled"
        if log.status != "success":
            return f"task {self.task!r} failed: {_one_line(log.error.message if log.error else log.status)}"
        return ""

    def _reductions(self) -> dict[Any, dict[str, Any]]:
        """Return the scores of each sample over its epochs, by scorer."""
        found: dict[Any, dict[str, Any]] = defaultdict(dict)
        for each in self._log.reductions or ():
            for score in each.samples:
                found[score.sample_id][each.scorer] = score
        return found

    def has_reduced(self, id: Any) -> bool:
        """Whether there is a score of those epochs of a sample that ran."""
        return bool(self._reduced and self._reduced.get(id))

    def scores(self, id: Any) -> Mapping[str, Any]:
        """Return the scores of a sample, by scorer."""
        if self._reduced is not None:
            return self._reduced.get(id, {})
        return self.ended[id][0].scores or {}

    def tokens(self, id: Any) -> float:
        """Return what a sample took in all its epochs, in tokens."""
        return float(sum(usage.total_tokens for run in self.ended[id] for usage in run.model_usage.values()))

    def error_of(self, id: Any) -> str:
        """Return what went wrong with a sample, in words; empty if nothing did."""
        return next((_one_line(run.error.message) for run in self.ended[id] if run.error is not None), "")

    @property
    def first_error(self) -> str:
        """What went wrong with the first sample that failed."""
        return next((error for id in self.ended if (error := self.error_of(id))), "")


def _one_line(text: str) -> str:
    return " ".join(text.split())[:500]
