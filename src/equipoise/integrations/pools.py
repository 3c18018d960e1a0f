"""
Groups of items that are sampled without replacement, many at a time.

A group is an arm, and its items come in a random order that the seed decides. `sample` asks which groups come next,
hands the items of a whole batch to one function, and tells what that returns: a value and a cost for each item, or that
there is none. All that happens is in the log before the next batch begins, so that a call with a store can be repeated.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.base.errors import EquipoiseError, InvalidInput, SamplerFailed
from equipoise.base.inputs import integer
from equipoise.base.tables import amount, count
from equipoise.ledger.evidence import LEVEL
from equipoise.ledger.goal import Stopping
from equipoise.problem import Stratified
from equipoise.result import Result
from equipoise.run import seeds
from equipoise.run.estimate import explain, failure
from equipoise.run.progress import Display, Progress, check_progress, display, so_far
from equipoise.store import Header, Log, Turn
from equipoise.store.leases import DRIVER_SECONDS, Owner, sweep
from equipoise.store.memory import Memory
from equipoise.strategies import Strategy, Support
from equipoise.study.options import study_options
from equipoise.study.pace import Pace
from equipoise.study.policy import EXHAUSTED

# A batch has this many items for each group at first, and later this share of the samples so far, of the groups that
# are still sampled: what is in a batch was decided without its answers.
FIRST: Final = 4
SHARE: Final = 1 / 8


class ItemAnswer(NamedTuple):
    """What came of an item: its value, or None where there is none; and what it cost, if that is known."""

    value: float | None
    cost: float | None = None


@dataclass(frozen=True)
class Answers:
    """
    What came of a batch.

    Attributes
    ----------
    by_item
        The answers, in the order of the items; None for an item that is to be tried again by the next call.
    failure
        Why no further batch can be sampled, in words; empty if it can.
    cause
        The exception that is to blame for that, if any.
    """

    by_item: Sequence[ItemAnswer | None]
    failure: str = ""
    cause: Exception | None = None


class _Job(NamedTuple):
    """A ticket, by its id, and the item that it is for."""

    ticket: int
    item: Any


def sample(
    groups: Mapping[Any, Sequence[Any]],
    answer: Callable[[Sequence[Any]], Answers],
    *,
    budget: float | None = None,
    precision: Any = None,
    level: float = LEVEL,
    interval: Stopping = "fixed-width",
    strategy: str | Strategy = "auto",
    support: Support = None,
    objective: float | Stratified = math.inf,
    costs: Mapping[Any, float] | None = None,
    finite: bool = True,
    seed: int | None = None,
    store: str | os.PathLike[str] | None = None,
    about: Mapping[str, Any] | None = None,
    batch: int | None = None,
    progress: bool | Callable[[Progress], Any] | None = None,
) -> Result:
    """
    Sample the items of groups until the budget is spent, the precision is reached or no item is left.

    Parameters
    ----------
    groups
        The items of each group.
    answer
        Returns what came of some items.
    budget, precision, level, interval, strategy, support, objective, seed, store, about, progress
        As in `estimate`.
    costs
        What an item of each group is expected to cost, until answers tell. With a budget, batches then begin with one
        item, none has more items than have been answered before it, and none has more than what is left pays for at the
        largest costs seen. So the budget is exceeded by about one item's cost at most, unless items suddenly cost much
        more than any before.
    finite
        Whether the mean of a group is that of its items, and known exactly once all are sampled; False where the items
        are themselves a sample, and the mean is that of where they come from.
    batch
        How many items to hand to `answer` at once; None for four of each group at first, and later an eighth of the
        samples so far of the groups that are still sampled.
    """
    size = None if batch is None else integer("batch", batch, least=1)
    check_progress(progress)
    header = header_of(
        groups, budget, precision, level, interval, strategy, support, objective, costs, finite, seed, about
    )
    log = Memory(header) if store is None else Log(store, header)
    owner = Owner(log, store, DRIVER_SECONDS) if isinstance(log, Log) and store is not None else None
    watcher = display(progress)
    try:
        return _Pools(log, groups, answer, size, owner, watcher).run()
    except InvalidInput:
        raise
    except EquipoiseError as error:
        explain(error, log)
        raise
    finally:
        if owner is not None:
            owner.close()
        if watcher is not None:
            watcher.close()
        log.close()


def header_of(
    groups: Mapping[Any, Sequence[Any]],
    budget: float | None,
    precision: Any,
    level: float,
    interval: Stopping,
    strategy: str | Strategy = "auto",
    support: Support = None,
    objective: float | Stratified = math.inf,
    costs: Mapping[Any, float] | None = None,
    finite: bool = True,
    seed: int | None = None,
    about: Mapping[str, Any] | None = None,
) -> Header:
    """Return what a study of groups is made of, or refuse it."""
    options = study_options(
        groups, budget, strategy=strategy, support=support, objective=objective, costs=costs,
        populations=tuple(len(items) for items in groups.values()) if finite else None,
        precision=precision, level=level, interval=interval, seed=seed, about=about,
    )  # fmt: skip
    return Header.of(options)


class _Pools:
    """The loop of `sample`."""

    def __init__(
        self,
        log: Log | Memory,
        groups: Mapping[Any, Sequence[Any]],
        answer: Callable[[Sequence[Any]], Answers],
        batch: int | None,
        owner: Owner | None,
        watcher: Display | None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._log, self._groups, self._answer = log, groups, answer
        self._batch, self._owner, self._watcher, self._clock = batch, owner, watcher, clock
        self._arms: Sequence[Hashable] = log.header.arms
        self._sizes = np.array([len(groups[arm]) for arm in self._arms])
        self._orders: dict[int, Ints] = {}
        self._start, self._spent_before = clock(), log.study.spent
        self._pace = Pace(self._start, log.study.ledger.samples)
        # The largest cost seen of an item of each group.
        self._largest = _costs_so_far(log.study.result())

    def run(self) -> Result:
        """Sample batch after batch."""
        self._log.turn(self._judge)
        while jobs := self._log.turn(self._next):
            answers = self._answer([job.item for job in jobs])
            self._log.turn(lambda turn, jobs=jobs, answers=answers: self._tell(turn, jobs, answers))  # type: ignore[misc]
            self._show()
            if answers.failure:
                raise failure(answers.failure, "", SamplerFailed, self._log) from answers.cause
        self._log.turn(self._check_paid)
        return self._result()

    # ---- asking

    def _next(self, turn: Turn) -> list[_Job]:
        """Return what to sample next: what others left behind, then what the study asks for."""
        if self._owner is not None:
            turn.own(self._owner.number, self._owner.seconds)
            left = sweep(turn, self._owner.number, self._owner.seconds)
            if left:
                return self._jobs(turn, left)
        while True:
            asked = self._hand_out(turn, self._size(turn))
            jobs = self._jobs(turn, asked)
            if jobs or not (asked or self._judge(turn)):
                return jobs

    def _size(self, turn: Turn) -> int:
        """Return how many items to sample at once."""
        still = ~turn.ledger.retired
        return self._batch or max(FIRST * int(still.sum()), int(SHARE * self._asked(turn)[still].sum()), 1)

    def _hand_out(self, turn: Turn, size: int) -> Sequence[int]:
        """Hand out up to so many tickets: no more than what is left pays for at the largest costs seen, or one."""
        if self._largest is None:
            return turn.hand_out(size)
        ledger = turn.ledger
        size = min(size, max(ledger.samples + int(ledger.declined.sum()), 1))
        largest = np.where(np.isnan(self._largest), np.fmax.reduce(self._largest), self._largest)
        tickets: list[int] = []
        left = ledger.remaining
        while len(tickets) < size and not ledger.done:
            tickets += turn.hand_out(1)
            left -= largest[ledger.arm_of[tickets[-1]]]
            assert ledger.costs is not None
            possible = ~ledger.retired & (ledger.costs <= ledger.remaining)
            if left < largest[possible].max(initial=0):
                break
        return tickets

    def _jobs(self, turn: Turn, tickets: Sequence[int]) -> list[_Job]:
        """Return the items of tickets; give back those for which there is none, and close groups without more."""
        if not tickets:
            return []
        places = turn.ledger.arms_of(slice(0, turn.ledger.issued))
        ranks = seeds.ranks(places)
        jobs = []
        for ticket in tickets:
            k, i = int(places[ticket]), int(ranks[ticket])
            if i < self._sizes[k]:
                jobs.append(_Job(ticket, self._groups[self._arms[k]][self._order(k)[i]]))
            else:
                turn.forget(ticket, EXHAUSTED)
        for k in np.flatnonzero(self._handed_out(turn) & ~turn.ledger.retired).tolist():
            turn.retire(k, EXHAUSTED)
        return jobs

    def _order(self, k: int) -> Ints:
        """Return the random order of a group's items."""
        if k not in self._orders:
            base = seeds.base(self._log.header.seed or 0, self._arms[k])
            self._orders[k] = seeds.order(base, int(self._sizes[k]))
        return self._orders[k]

    def _asked(self, turn: Turn) -> Ints:
        """Return how many tickets each group has had."""
        places = turn.ledger.arms_of(slice(0, turn.ledger.issued))
        return np.bincount(places, minlength=len(self._arms))

    def _handed_out(self, turn: Turn) -> Bools:
        """Return which groups have had as many tickets as they have items."""
        return np.asarray(self._asked(turn) >= self._sizes)

    def _judge(self, turn: Turn) -> bool:
        """Close the groups that are known well enough or have no more items; return whether any was reopened."""
        return turn.judge(self._handed_out(turn))

    # ---- telling

    def _tell(self, turn: Turn, jobs: Sequence[_Job], answers: Answers) -> None:
        """Record what came of a batch, and judge which groups are known well enough."""
        for job, answer in zip(jobs, answers.by_item, strict=True):
            if answer is None or not turn.ledger.is_in_flight(job.ticket):
                continue  # to be tried again, or somebody else was faster
            cost = math.nan if answer.cost is None else answer.cost
            if self._largest is not None:
                k = turn.ledger.arm_of[job.ticket]
                self._largest[k] = np.fmax(self._largest[k], cost)
            if answer.value is None:
                turn.decline(job.ticket, cost)
            else:
                turn.tell(job.ticket, answer.value, cost=cost)
        turn.look(lambda: self._handed_out(turn))

    # ---- what is known, and who is told

    def _check_paid(self, turn: Turn) -> None:
        """Refuse a budget that did not pay for an item of each group."""
        without, budget = int((self._asked(turn) == 0).sum()), turn.ledger.budget
        if without and budget is not None and self._largest is not None:
            ledger, samples = turn.ledger, count(turn.ledger.samples, "sample")
            cost = f"{amount(ledger.spent)} {(self._log.header.about or {}).get('cost_unit', '')}".rstrip()
            reason = (
                f"budget must pay for at least one sample of each group, got {amount(budget)}: "
                f"{samples} cost {cost}, and {without:,} of {count(len(self._arms), 'group')} have none"
            )
            raise failure(reason, "", EquipoiseError, self._log)

    def _result(self) -> Result:
        return self._log.replica.result(self._pace.seconds)

    def _show(self) -> None:
        now, study = self._clock(), self._log.study
        self._pace.note(now, study.ledger.samples)
        if self._watcher is not None:
            self._watcher.show(so_far(study, self._result(), now - self._start, self._spent_before))


def _costs_so_far(result: Result) -> Floats | None:
    """Return each group's mean cost of an item, NaN where none is known; None where no budget is in costs."""
    if result.known.snapshot.budget is None or result.costs is None:
        return None
    return np.where(result.counts.array + result.declined.array > 0, result.costs.array, np.nan)
