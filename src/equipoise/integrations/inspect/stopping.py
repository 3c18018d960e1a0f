"""Skip the samples of a group once its score is known well enough."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from inspect_ai.util import EarlyStop

from equipoise.base.errors import EquipoiseError
from equipoise.base.inputs import shown, texts
from equipoise.base.keywords import suggests_keywords
from equipoise.base.tables import count
from equipoise.inference.arm_intervals import reached_by_arm
from equipoise.integrations.inspect.groups import GroupBy, check_group_by, groups_of
from equipoise.integrations.inspect.scores import Scores
from equipoise.integrations.pools import header_of
from equipoise.ledger.evidence import LEVEL
from equipoise.ledger.goal import Stopping
from equipoise.result import Result
from equipoise.store import Turn
from equipoise.store.memory import Memory
from equipoise.strategies import Support

# With a twentieth of the samples running at the same time, few run that could have been skipped. A summary suggests it
# where a tenth or more did.
PART: Final = 20


class EarlyStopping:
    """
    Skip the samples of a group once its score is known to a precision: for `inspect_ai.Task(early_stopping=...)`.

    inspect_ai runs samples in the order of the dataset, so the dataset must be shuffled: else the first samples of a
    group say nothing about the others. The score of a group is its mean over the samples of the dataset.

    Parameters
    ----------
    group_by
        A key of the samples' metadata, or a function of a sample; None for one group, the task.
    precision
        Skip the rest of a group when its score is known to plus or minus this, as in `estimate`.
    level
        The probability that the intervals of all groups hold simultaneously.
    interval
        Which intervals decide, as in `estimate`. By default confidence sequences, which hold whenever the evaluation
        is stopped, by this or by somebody who watches it.
    support
        The possible scores, as in `Study`: "binary" for scores that are right or wrong.
    scorer
        Whose score counts, by name, where the task has several scorers.
    value
        A function that returns the number for a score's value; by default as inspect_ai's metrics read it, with 1 for
        "C" and 0 for "I".
    finite
        Whether the score is that of the dataset, which a group that ran completely gives exactly. False for the score
        of the questions that the dataset was drawn from. With the `limit` or the `sample_id` of `eval`, samples that it
        leaves out are not known, and no group is known exactly.
    shuffled
        True to say that the order of the dataset is random although inspect_ai did not shuffle it.

    Notes
    -----
    One object serves one task at a time. Tasks with several epochs are refused: inspect_ai runs all samples once before
    it runs any twice, so that nothing could be skipped until the last epoch.

    With `retry_on_error`, inspect_ai tries a sample that failed again after all others. Later scores of its group wait
    for it, as failures may depend on the score, so that little can be skipped.

    A sample that fails, or has no score, is counted as declined and left out of the score of its group.

    Examples
    --------
    >>> from equipoise.integrations import inspect as eq_inspect
    >>> stopping = eq_inspect.EarlyStopping(group_by="subject", precision=0.05, support="binary")
    """

    @suggests_keywords
    def __init__(
        self,
        group_by: GroupBy = None,
        precision: Any = None,
        *,
        level: float = LEVEL,
        interval: Stopping = "anytime",
        support: Support = None,
        scorer: str | None = None,
        value: Callable[[Any], float] | None = None,
        finite: bool = True,
        shuffled: bool = False,
    ) -> None:
        if precision is None:
            raise TypeError("precision is required")
        check_group_by(group_by)
        self._group_by, self._scores, self._shuffled = group_by, Scores(scorer, value, support), shuffled
        self._goal = precision, level, interval
        self._support, self._finite = support, finite
        header_of({"": [0]}, None, None if isinstance(precision, dict) else precision, level, interval, support=support)
        self._task: _Task | None = None
        # What runs the task, until it is complete; None on event loops other than asyncio's.
        self._runner: asyncio.Task[Any] | None = None
        self._running = False

    def result(self) -> Result:
        """Return what is known about the groups of the latest task."""
        if self._task is None:
            raise EquipoiseError("no task has been started with this EarlyStopping")
        return self._task.result()

    # ---- what inspect_ai calls

    async def start_task(self, task: Any, samples: Sequence[Any], epochs: int) -> str:
        """Begin with a task."""
        ended = self._runner is not None and self._runner.done()  # by an error, so that it was never complete
        if self._running and not ended:
            raise EquipoiseError("an EarlyStopping serves one task at a time; make one for each task and model")
        if epochs != 1:
            raise EquipoiseError(f"EarlyStopping needs a task with one epoch, got {epochs}; evaluate() takes several")
        if not (self._shuffled or task.dataset.shuffled):
            raise EquipoiseError(
                f"EarlyStopping needs the samples of task {task.task!r} in random order; shuffle the dataset, or say "
                "shuffled=True if their order is random"
            )
        self._scores.check(task.task, len(task.scorers or ()))
        groups = groups_of(task.task, samples, self._group_by)
        pools = {group: range(size) for group, size in Counter(groups).items()}
        of = task.dataset.samples
        limited_from = None if of is None or len(samples) == of else of
        header = header_of(
            pools, None, *self._goal, support=self._support, finite=self._finite and limited_from is None
        )
        group_of = dict(zip((each.id for each in samples), groups, strict=True))
        chosen = task.config.sample_id is not None
        self._task = _Task(task.task, Memory(header), group_of, limited_from, chosen)
        self._runner, self._running = _current_task(), True
        return "equipoise"

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:
        """Return why a sample is skipped, or None if it is to run."""
        task = self._current
        reason = task.ask(id)
        if reason is not None:
            return EarlyStop(id=id, epoch=epoch, reason=reason, metadata={"group": task.text_of[task.group_of[id]]})
        # Every sample runs in a task of its own, and one that fails ends without a word to whoever waits for its score.
        running = _current_task()
        if running is not None:
            running.add_done_callback(lambda _: task.end(id))
        return None

    async def complete_sample(self, id: str | int, epoch: int, scores: dict[str, Any]) -> None:
        """Take the scores of a sample."""
        task = self._current
        task.tell(id, self._scores.number(task.name, id, scores))

    async def complete_task(self) -> dict[str, Any]:
        """End a task, and return what is known about its groups, for the log."""
        self._running = False
        return self._current.summary()

    @property
    def _current(self) -> _Task:
        if self._task is None:
            raise EquipoiseError("start_task must be called first")
        return self._task


class _Task:
    """
    The groups of one task, and the tickets of its samples.

    Parameters
    ----------
    name
        Of the task.
    study
        Keeps the scores.
    group_of
        The group of each sample, by id.
    limited_from
        The dataset's size, if not all of its samples are to run.
    chosen
        Whether they were chosen by their ids.
    """

    def __init__(
        self, name: str, study: Memory, group_of: dict[Any, Any], limited_from: int | None, chosen: bool
    ) -> None:
        self.name, self.group_of = name, group_of
        self.text_of = dict(zip(study.header.arms, texts(study.header.arms), strict=True))
        self._study, self._limited_from, self._chosen = study, limited_from, chosen
        self._most_at_once = 0
        self._retried: set[Any] = set()
        self._tickets: dict[Any, int] = {}

    @property
    def _turn(self) -> Turn:
        return Turn(self._study.replica)

    def ask(self, id: Any) -> str | None:
        """Ask for a sample, unless it is tried again; return why not if its group is known well enough."""
        if id in self._tickets:
            self._retried.add(id)
            return None
        turn, group = self._turn, self.group_of[id]
        k = turn.ledger.names.find(group)
        if turn.ledger.retired[k]:
            return f"group {shown(group)} is known to the precision that was asked for"
        (self._tickets[id],) = turn.ask_for(np.array([k]))
        self._most_at_once = max(self._most_at_once, turn.ledger.in_flight)
        return None

    def tell(self, id: Any, score: float | None) -> None:
        """Take the score of a sample, and judge which groups are known well enough."""
        if id not in self._tickets and self.ask(id):  # not asked for: one of an earlier evaluation that is repeated
            return
        turn = self._turn
        if score is None:
            turn.decline(self._tickets[id])
        else:
            turn.tell(self._tickets[id], score)
        turn.look()

    def end(self, id: Any) -> None:
        """Note that a sample has ended: without a score, if it is still waited for."""
        turn = self._turn
        if turn.ledger.is_in_flight(self._tickets[id]):
            turn.decline(self._tickets[id])

    def result(self) -> Result:
        """Return what is known."""
        return self._study.replica.result()

    def summary(self) -> dict[str, Any]:
        """Return what is known about the groups as JSON can hold it."""
        result = self.result()
        sizes = Counter(self.group_of.values())
        intervals = result.intervals()
        groups = {
            self.text_of[group]: {
                "samples": int(result.counts[group]),
                "of": sizes[group],
                "mean": _plain(result.means[group]),
                "low": _plain(intervals[group].low),
                "high": _plain(intervals[group].high),
                "precise": bool(reached_by_arm(result.known)[k]),
            }
            for k, group in enumerate(result.arms)
        }
        found: dict[str, Any] = {"groups": groups, "level": result.level, "notes": self._notes()}
        if self._limited_from is None and all(result.counts[group] for group in result.arms):
            total = sum(sizes.values())
            overall = result.contrast({group: size / total for group, size in sizes.items()})
            found["overall"] = {"mean": overall.value, "low": _plain(overall.low), "high": _plain(overall.high)}
        return found

    def _notes(self) -> list[str]:
        """Return what to know about the numbers, and about how much could be skipped, in sentences."""
        found = []
        if self._limited_from is not None:
            by, where = ("sample_id", ", if these are a random part") if self._chosen else ("limit", "")
            found.append(
                f"Scores are estimates for the dataset's {self._limited_from:,} samples, of which `{by}` left "
                f"{len(self.group_of):,}{where}; as the groups' shares are not known, there is no overall score."
            )
        ran, retried = len(self._tickets), len(self._retried)
        if retried:
            found.append(
                f"{count(retried, 'sample')} failed and had to wait for a retry until all others had begun; later "
                "scores of a group wait for it too, and retry_on_error=0 leaves more to skip."
            )
        # While they waited, samples to be tried again looked as if they were running.
        at_once = self._most_at_once - retried
        if ran >= PART and at_once > 2 * ran / PART:
            found.append(
                f"Up to {at_once:,} of {count(ran, 'sample')} ran at the same time; running samples cannot "
                f"be skipped, and max_samples={ran // PART} leaves more to skip."
            )
        return found


def _current_task() -> asyncio.Task[Any] | None:
    """Return the task of asyncio that this runs in; None on other event loops."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _plain(number: float) -> float | None:
    """Return a number as JSON can hold it."""
    return float(number) if math.isfinite(number) else None
