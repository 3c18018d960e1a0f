"""A durable study: ask and tell on a log that many processes share."""

from __future__ import annotations

import math
import operator
import os
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, SupportsFloat, TypeVar, overload

import numpy as np

from equipoise.base.errors import EquipoiseError, InvalidInput
from equipoise.base.inputs import MISSING, integer, number, number_of_seconds, probability, shown
from equipoise.base.keywords import suggests_keywords
from equipoise.ledger import Ticket
from equipoise.ledger.answers import read_answers
from equipoise.ledger.goal import Stopping, check_stopping
from equipoise.ledger.goal import precision as precision_of
from equipoise.problem import Objective, Stratified
from equipoise.problem.objective import Wholes
from equipoise.result import Result
from equipoise.store import Header, Log, Replica, Turn
from equipoise.store.database import VISITOR
from equipoise.store.leases import VISITOR_SECONDS, sweep
from equipoise.store.replica import RETIRED
from equipoise.strategies import Strategy, Support
from equipoise.study import Study, StudyLike
from equipoise.study.options import savable, study_options

T = TypeVar("T")

# Seconds between two looks for tickets whose leases are over, unless nothing else is left to ask for.
SWEEP = 1.0


@suggests_keywords
def open_study(
    store: str | os.PathLike[str],
    arms: int | Iterable[Hashable] | None = None,
    budget: float | None = None,
    *,
    strategy: str | Strategy = "auto",
    support: Support = None,
    objective: float | Stratified = math.inf,
    weights: Iterable[float] | Mapping[Any, float] | None = None,
    costs: Iterable[float] | Mapping[Any, float] | None = None,
    populations: Wholes | None = None,
    precision: Any = None,
    level: float = 0.95,
    interval: Stopping = "fixed-width",
    lease: float = VISITOR_SECONDS,
) -> SharedStudy:
    """
    Open a study in a store, or create it: ask and tell that survive a crash, shared by any number of processes.

    Parameters
    ----------
    store
        A path, for SQLite, which serves the processes of one machine; or a postgresql:// URL. Either may end in `#name`
        for one of several studies.
    arms
        The names of the arms, as in `Study`. None for a study that exists.
    budget
        How many samples may be asked for in all, or with `costs` how much they may cost; None for no limit. That of a
        study that exists is changed; what follows must be the same there.
    strategy
        The name of a strategy, or a strategy with its parameters. The default needs no tuning.
    support
        The possible values: "binary" (0 or 1), (low, high), or None for any number. Other values are refused.
    objective
        What to minimise: the p-norm of the arms' losses, by default p = infinity, the largest of them; or
        `Stratified(shares)`, the error of the strata's combined mean.
    weights
        Weights on the losses (squared errors), by arm or in the arms' order; None for 1 each.
    costs
        The cost of one sample, by arm or in the arms' order; None for 1 each. The budget is then money.
    populations
        The size of each arm's population, by arm or in the arms' order, where samples are drawn from it without
        replacement; None for infinite ones.
    precision
        Stop asking for an arm when its mean is known to this half-width, as in `estimate`. This, `level` and `interval`
        may differ from those of a study that exists, and are then changed.
    level
        The probability that all intervals hold simultaneously.
    interval
        Which intervals decide whether the precision is reached: "fixed-width", or "anytime" for confidence sequences.
    lease
        Seconds that a ticket is waited for, unless its `ask` says otherwise. Then it is given back, so that its sample
        is asked for again; a late answer is taken as long as the budget has a place for it.

    Returns
    -------
    SharedStudy
        The study, with the methods of `Study`. Close it, or use it in a `with` block.

    Examples
    --------
    >>> import os, tempfile
    >>> import equipoise as eq
    >>> where = os.path.join(tempfile.mkdtemp(), "study.db")
    >>> with eq.open(where, arms=["a", "b"], budget=100) as study:
    ...     ticket = study.ask()
    ...     study.tell(ticket, 0.7)
    >>> with eq.open(where) as study:
    ...     study.remaining
    99
    """
    lease = number_of_seconds("lease", lease)
    if not isinstance(store, str | os.PathLike):
        raise TypeError(f"store must be a path or a URL, got {shown(store)}")
    if arms is None:
        if budget is not None or precision is not None:
            raise TypeError("arms must be given with a budget or a precision; without them, leave those out too")
        return SharedStudy(Log(store), lease)
    options = study_options(
        arms, budget, strategy=strategy, support=support, objective=objective, weights=weights, costs=costs,
        populations=populations, precision=precision, level=level, interval=interval,
    )  # fmt: skip
    return SharedStudy(Log(store, Header.of(options)), lease)


class SharedStudy(StudyLike[Ticket]):
    """
    A study in a store, shared by any number of processes; made by `open`.

    Every call that changes the study is one turn, which is committed when the call returns. Properties and `result`
    read what all processes have committed.
    """

    def __init__(self, log: Log, lease: float) -> None:
        self._log, self._lease = log, lease
        self._next_sweep = -math.inf

    def close(self) -> None:
        """Close the store."""
        self._log.close()

    def __enter__(self) -> SharedStudy:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<SharedStudy in {self._log.name}: {self._read(repr)}>"

    # ---- what can be read

    def _read(self, view: Callable[[Study], T]) -> T:
        return self._log.look(lambda replica: view(replica.study))

    @property
    def arms(self) -> Sequence[Hashable]:
        return self._log.study.arms

    @property
    def strategy(self) -> Strategy:
        """The strategy, with its parameters."""
        return self._log.study.strategy

    @property
    def support(self) -> Support:
        return self._log.study.support

    @property
    def objective(self) -> Objective:
        """What is minimised, with weights and costs in the arms' order."""
        return self._read(lambda study: study.objective)

    @property
    def budget(self) -> float | None:
        return self._read(lambda study: study.budget)

    @property
    def precision(self) -> Any:
        """The precision that is asked for, as it was given; None if there is none."""
        return self._log.look(lambda replica: replica.precision)

    @property
    def spent(self) -> float:
        return self._read(lambda study: study.spent)

    @property
    def remaining(self) -> float:
        return self._read(lambda study: study.remaining)

    @property
    def in_flight(self) -> int:
        return self._read(lambda study: study.in_flight)

    @property
    def done(self) -> bool:
        return self._read(lambda study: study.done)

    @property
    def retired(self) -> tuple[Hashable, ...]:
        return self._read(lambda study: study.retired)

    def result(self) -> Result:
        return self._log.look(lambda replica: replica.result())

    # ---- ask and tell

    @overload
    def ask(
        self, *, lease: float | None = ..., idempotency_key: str | None = ..., respondent: str | None = ...
    ) -> Ticket: ...
    @overload
    def ask(
        self, m: int, *, lease: float | None = ..., idempotency_key: str | None = ..., respondent: str | None = ...
    ) -> list[Ticket]: ...

    def ask(
        self,
        m: int | None = None,
        *,
        lease: float | None = None,
        idempotency_key: str | None = None,
        respondent: str | None = None,
    ) -> Ticket | list[Ticket]:
        """
        Return a ticket for the arm to sample next, or several.

        Parameters
        ----------
        m
            How many tickets to hand out at once; with `m`, a list is returned.
        lease
            Seconds that the tickets are waited for; by default those of `open`.
        idempotency_key
            A text of the caller's choice. An ask with a key that was used before returns the same tickets again.
        respondent
            Who is asked, for one ticket: a respondent who was asked before gets the same one again, answered or not.
            Only salted hashes of keys and respondents are kept.

        Raises
        ------
        EquipoiseError
            Without `m`, when the budget is spent or every arm is retired or used up.
        """
        many = 1 if m is None else integer("m", m, least=1)
        seconds = self._lease if lease is None else number_of_seconds("lease", lease)
        key, person = (
            self._call("idempotency_key", "key", idempotency_key),
            self._call("respondent", "respondent", respondent),
        )

        def work(turn: Turn) -> list[Ticket]:
            known = turn.repeated(key, person, many)
            if known is not None:
                if m is None and not known:
                    raise EquipoiseError(turn.study.nothing_left())
                return turn.tickets(known)
            turn.own(VISITOR, seconds)
            if time.monotonic() >= self._next_sweep:
                self._sweep(turn)
            ids = turn.hand_out(many)
            if not ids:
                self._sweep(turn)
                ids = turn.hand_out(many)
            if m is None and not ids:
                raise EquipoiseError(turn.study.nothing_left())
            for call in (key, person):
                if ids and call is not None:
                    turn.remember(call, ids)
            return turn.tickets(ids)

        tickets = self._log.turn(work)
        return tickets[0] if m is None else tickets

    def _sweep(self, turn: Turn) -> None:
        self._next_sweep = time.monotonic() + SWEEP
        sweep(turn)

    def _call(self, argument: str, kind: str, text: str | None) -> bytes | None:
        if text is None:
            return None
        if not isinstance(text, str) or not text:
            raise TypeError(f"{argument} must be a text that is not empty, got {shown(text)}")
        return self._log.header.hashed(kind, text)

    def tell(
        self,
        ticket: Ticket = MISSING,
        value: SupportsFloat = MISSING,
        *,
        arm: Hashable = MISSING,
        cost: SupportsFloat | None = None,
    ) -> None:
        """
        Take the value of a sample, as `Study.tell` does.

        Parameters
        ----------
        ticket
            The ticket that was answered. Telling the same value again changes nothing. A late answer is taken as long
            as the budget has a place for it.
        value
            The sample.
        arm
            Instead of a ticket: the arm of a sample that comes from elsewhere. It uses no budget.
        cost
            What the sample really cost, in a study with costs.
        """
        sample = number("value", value)
        if arm is not MISSING:
            if ticket is not MISSING:
                raise TypeError("tell takes a ticket or an arm, not both")
            self._changed(lambda turn: turn.moments(arm, 1, sample, 0.0))
            return
        paid = math.nan if cost is None else number("cost", cost)
        self._changed(lambda turn: turn.tell(self._own(turn.replica, ticket), sample, cost=paid))

    def tell_many(
        self,
        answers: Iterable[tuple[Ticket, SupportsFloat] | tuple[Ticket, SupportsFloat, SupportsFloat | None]],
    ) -> None:
        numbers, names, values, costs = read_answers(answers)
        if not numbers:
            return

        def work(turn: Turn) -> None:
            ids = np.array([self._own(turn.replica, Ticket(ticket)) for ticket in zip(numbers, names, strict=True)])
            turn.tell_many(ids, values, np.full(len(ids), math.nan), costs)

        self._changed(work)

    def tell_moments(self, arm: Hashable, count: int, mean: SupportsFloat, m2: SupportsFloat) -> None:
        """Take many samples of one arm from elsewhere: their count, mean and sum of squared deviations from it."""
        self._changed(lambda turn: turn.moments(arm, count, number("mean", mean), number("m2", m2)))

    def decline(self, ticket: Ticket, *, cost: SupportsFloat | None = None) -> None:
        paid = math.nan if cost is None else number("cost", cost)
        self._changed(lambda turn: turn.decline(self._own(turn.replica, ticket), paid))

    def forget(self, ticket: Ticket) -> None:
        def forget(turn: Turn) -> None:
            place = self._own(turn.replica, ticket)
            retired = turn.ledger.retired[turn.ledger.arm_of[place]]
            turn.forget(place, RETIRED if retired else "given back")

        self._changed(forget)

    def set_budget(self, budget: float | None) -> None:
        self._changed(lambda turn: turn.set_budget(budget))

    def set_weights(self, weights: Iterable[float] | Mapping[Any, float] | None) -> None:
        """Change how much each arm's loss matters, by arm or in the arms' order; None for 1 each."""
        self._changed(lambda turn: turn.set_weights(savable(weights)))

    def set_precision(self, precision: Any, level: float = 0.95, interval: Stopping = "fixed-width") -> None:
        """Change the precision at which an arm is no longer asked for, as in `estimate`; None for none."""
        level = probability("level", level)
        check_stopping(interval)
        if precision is not None:
            precision_of(precision, level, self.arms, interval, self._log.header.options.get("objective", math.inf))

        self._changed(lambda turn: turn.set_goal(savable(precision), level, interval))

    def retire(self, arm: Hashable) -> None:
        self._changed(lambda turn: turn.retire(turn.ledger.names.find(arm), "by hand"))

    def reopen(self, arm: Hashable) -> None:
        self._changed(lambda turn: turn.reopen(turn.ledger.names.find(arm)))

    def _changed(self, change: Callable[[Turn], object]) -> None:
        self._log.turn(change)

    def _own(self, replica: Replica, ticket: Ticket) -> int:
        """Return the id of a ticket of this study, whose arm must be right."""
        if ticket is MISSING:
            raise TypeError("ticket is required")
        try:
            given, arm = ticket
            found = replica.id_of(operator.index(given))
        except (TypeError, ValueError):
            raise TypeError(f"ticket must be one that ask() returned, got {shown(ticket)}") from None
        if found is None:
            raise InvalidInput(
                f"{shown(ticket)} was not handed out by this study: it belongs to another one, or to turns that this "
                "store has lost"
            )
        own = replica.study.arms[replica.study.ledger.arm_of[found]]
        if own != arm:
            raise InvalidInput(f"{shown(ticket)} was handed out for arm {own!r}, not for {shown(arm)}")
        return found
