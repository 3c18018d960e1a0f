"""A study: ask which arm to sample, tell what was seen."""

from __future__ import annotations

import copy
import math
import operator
import secrets
import threading
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, SupportsFloat, overload

import numpy as np

from equipoise.base import tables
from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.base.errors import EquipoiseError, InvalidInput
from equipoise.base.inputs import MISSING, Names, integer, number, probability, shown
from equipoise.base.keywords import suggests_keywords
from equipoise.base.tables import amount, count
from equipoise.inference.known import Known
from equipoise.ledger.answers import PAIRS, read_answers
from equipoise.ledger.evidence import LEVEL
from equipoise.ledger.goal import Goal, Stopping, check_stopping
from equipoise.ledger.ledger import Ledger
from equipoise.ledger.steps import KNOWN, REFUSED
from equipoise.ledger.ticket import BITS, Ticket
from equipoise.problem.contrasts import Contrasts
from equipoise.problem.objective import Objective, Stratified, Wholes, wholes_by_arm
from equipoise.problem.objective import objective as objective_of
from equipoise.result.result import Result
from equipoise.strategies import Strategy, Support, check_support, resolve
from equipoise.study.aim import Aim
from equipoise.study.options import objective_for, savable, study_options
from equipoise.study.precompile import compile_ahead
from equipoise.study.protocol import StudyLike

_FOREIGN: Final = "belongs to another study"
_PLACE: Final = (1 << BITS) - 1


class Study(StudyLike[Ticket]):
    """
    Spend a budget on samples of K arms so that the least precise mean is as precise as possible.

    Parameters
    ----------
    arms
        The names of the arms, all different, or how many there are (then they are called 0, 1, 2, ...).
    budget
        How many samples may be asked for in all, or with `costs` how much they may cost; None for no limit.
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
        The cost of one sample, by arm or in the arms' order; None for 1 each. The budget is then money. Where it is
        known only afterwards, give what you expect, and `tell` what each sample really cost.
    populations
        The size of each arm's population, by arm or in the arms' order, where samples are drawn from it without
        replacement; None for infinite ones. An arm that is nearly used up is asked for less, and one that is used up
        not at all. The errors of the result are corrected for the sizes.
    precision
        Stop asking for an arm when its mean is known to this half-width, as in `estimate`; None to spend the budget.
    level
        The probability that all intervals hold simultaneously.
    interval
        Which intervals decide whether the precision is reached: "fixed-width", or "anytime" for confidence sequences.

    Notes
    -----
    A ticket that was handed out counts as a pull at once, so that many can be in flight. Answers may come in any order,
    or never: `forget` gives a ticket back, and `decline` counts a refusal to answer. Decisions use no randomness;
    exact ties go to the first arm.

    A study may be used by several threads at once: one lock lets them ask and tell in turn.

    Examples
    --------
    >>> import random
    >>> import equipoise as eq
    >>> rng = random.Random(1)
    >>> study = eq.Study(["rough", "smooth"], budget=100)
    >>> while not study.done:
    ...     ticket = study.ask()
    ...     study.tell(ticket, rng.gauss(0, 3 if ticket.arm == "rough" else 1))
    >>> dict(study.result().counts)
    {'rough': 74, 'smooth': 26}
    """

    @suggests_keywords
    def __init__(
        self,
        arms: int | Iterable[Hashable],
        budget: float | None = None,
        strategy: str | Strategy = "auto",
        support: Support = None,
        objective: float | Stratified = math.inf,
        weights: Iterable[float] | Mapping[Any, float] | None = None,
        costs: Iterable[float] | Mapping[Any, float] | None = None,
        populations: Wholes | None = None,
        precision: float | str | Mapping[Any, float | str] | Iterable[float | str] | Contrasts | None = None,
        level: float = LEVEL,
        interval: Stopping = "fixed-width",
    ) -> None:
        names = Names.of(arms)
        options, self._level = None, probability("level", level)
        check_stopping(interval)
        if precision is not None:
            weights, costs = savable(weights), savable(costs)
            options = study_options(
                names.names, budget, strategy=strategy, support=support, objective=objective, weights=weights,
                costs=costs, precision=precision, level=level, interval=interval,
            )  # fmt: skip
            objective = objective_for(precision, objective)
        goal = objective_of(names.names, objective, weights, costs)
        sizes = None
        if populations is not None:
            sizes = wholes_by_arm("populations", populations, names.names, math.inf)
            goal.check_populations(sizes)
        self._lock = threading.RLock()
        rule, values = resolve(strategy), check_support(support)
        compile_ahead(rule, values)
        self._ledger = Ledger(names, budget, rule, values, goal, sizes)
        self._aim = None if options is None else Aim(options, self._ledger)
        self._series: list[tuple[int, int]] = []
        self._start_series()
        self._keep_names()

    def _keep_names(self) -> None:
        """Keep what every ask and tell needs at hand."""
        names = self._ledger.names
        self._names = names.names
        # Where an arm stands, by its name: a range of 0, 1, 2, ... is its own index.
        self._place: Any = names.names if names.index is None else names.index

    # ---- what can be read

    @property
    def ledger(self) -> Ledger:
        """The state behind the study, by ids and places; for logs and drivers."""
        return self._ledger

    @property
    def arms(self) -> Sequence[Hashable]:
        return self._names

    @property
    def strategy(self) -> Strategy:
        """The strategy, with its parameters."""
        return self._ledger.strategy

    @property
    def support(self) -> Support:
        return self._ledger.support

    @property
    def objective(self) -> Objective:
        """What is minimised, with weights and costs in the arms' order."""
        return self._ledger.objective

    @property
    def budget(self) -> float | None:
        return self._ledger.budget

    @property
    def spent(self) -> float:
        with self._lock:
            return self._ledger.spent

    @property
    def remaining(self) -> float:
        with self._lock:
            return self._ledger.remaining

    @property
    def in_flight(self) -> int:
        with self._lock:
            return self._ledger.in_flight

    @property
    def done(self) -> bool:
        with self._lock:
            return self._ledger.done

    @property
    def retired(self) -> tuple[Hashable, ...]:
        with self._lock:
            return tuple(self._names[k] for k in np.flatnonzero(self._ledger.retired).tolist())

    def result(
        self,
        *,
        goal: Goal | None = None,
        seconds: Floats | None = None,
        pace: Floats | None = None,
        cost_unit: str = "",
        settled: Bools | None = None,
    ) -> Result:
        """
        Return what is known now; later samples do not change it.

        Parameters
        ----------
        goal
            The level of the intervals and the precision that is asked for, if any; by default those of the study.
        seconds
            How long each sample took, by the tickets' ids, NaN where that is not known. The certificate then says
            whether slow answers differ from fast ones.
        pace
            Seconds that a sample of each arm takes by the clock on the wall, in the arms' order. The result then says
            how long a precision will take.
        cost_unit
            What costs are counted in, such as "tokens".
        settled
            Which arms were stopped because they had reached the precision, in the arms' order: they count as precise
            even if late answers have widened their intervals since.
        """
        with self._lock:
            if goal is None and self._aim is not None:
                goal, settled = self._aim.goal, self._aim.settled.copy()
            known = self._ledger.snapshot(seconds, pace)
            return Result(Known(known, goal or Goal(self._level), cost_unit, settled))

    def __repr__(self) -> str:
        return f"<Study of {', '.join(self._facts().values())}>"

    def _repr_html_(self) -> str:
        return tables.html([["study", ""], *([name, fact] for name, fact in self._facts().items())])

    def _facts(self) -> dict[str, str]:
        with self._lock:
            samples = count(self._ledger.issued, "sample")
            if self.objective.costs is not None:
                of = "" if self.budget is None else f" of {amount(self.budget)}"
                total = f"{amount(self.spent)}{of} spent on {samples}"
            elif self.budget is None:
                total = f"{samples} asked for"
            else:
                total = f"{self.spent:,} of {self.budget:,} samples asked for"
            return {
                "arms": count(len(self._names), "arm"),
                "budget": total,
                "in flight": f"{self.in_flight:,} in flight",
                "strategy": f"strategy {self.strategy!r}",
            }

    # ---- ask and tell

    @overload
    def ask(self) -> Ticket: ...
    @overload
    def ask(self, m: int) -> list[Ticket]: ...

    def ask(self, m: int | None = None) -> Ticket | list[Ticket]:
        ledger = self._ledger
        if m is None:
            with self._lock:
                ticket = ledger.ask_one() if self._aim is None else -1
                if ticket < 0:
                    if not self._hand_out(1):
                        raise EquipoiseError(self.nothing_left())
                    ticket = ledger.issued - 1
                return Ticket((self._first_number + ticket, self._names[ledger.arm_of[ticket]]))
        m = integer("m", m, least=1)
        with self._lock:
            ids = self._hand_out(m)
            if not ids:
                return []
            numbers = range(self._first_number + ids.start, self._first_number + ids.stop)
            return list(map(Ticket, zip(numbers, self._names_of(slice(ids.start, ids.stop)), strict=True)))

    def _hand_out(self, m: int) -> range:
        ledger = self._ledger
        return ledger.latest(ledger.ask(m)) if self._aim is None else self._aim.hand_out(m)

    def nothing_left(self) -> str:
        """Return why there is nothing left to ask for, in words."""
        if self._aim is not None and self._aim.settled.all():
            return "the precision is reached"
        if self._ledger.all_retired:
            return "every arm is retired; reopen(arm) makes one available again"
        if self._ledger.all_used_up:
            return "every population is used up"
        if self.objective.costs is None:
            return f"the budget of {count(self.budget or 0, 'sample')} is spent; set_budget() can raise it"
        return (
            f"{amount(self.remaining)} of the budget of {amount(self.budget or 0)} is left and the cheapest sample "
            f"costs {amount(self._ledger.cheapest)}; set_budget() can raise it"
        )

    def tell(
        self,
        ticket: Ticket = MISSING,
        value: SupportsFloat = MISSING,
        *,
        arm: Hashable = MISSING,
        cost: SupportsFloat | None = None,
    ) -> None:
        """
        Take the value of a sample.

        Parameters
        ----------
        ticket
            The ticket that was answered. Telling the same value again changes nothing. A forgotten ticket's answer is
            taken too, as long as the budget has a place for it.
        value
            The sample.
        arm
            Instead of a ticket: the arm of a sample that comes from elsewhere. It uses no budget.
        cost
            What the sample really cost, in a study with `costs`. The budget is charged with it, and from then on the
            arm is planned with the mean of its real costs. None if that is not known.

        Raises
        ------
        ValueError, TypeError
            For a value that is not a finite number inside the support; a ticket of another study, or that was declined;
            a value different from the one already recorded; a forgotten ticket when the budget is spent; a cost that is
            negative. The study is left unchanged.
        """
        if type(value) is not float:
            value = number("value", value)
        with self._lock:
            if arm is not MISSING:
                if ticket is not MISSING:
                    raise TypeError("tell takes a ticket or an arm, not both")
                if cost is not None:
                    raise TypeError(f"cost needs a ticket: a sample from elsewhere uses no budget, got {shown(cost)}")
                if not self._ledger.possible(value):
                    raise InvalidInput(self._ledger.refusal(value))
                self._ledger.tell_moments(self._ledger.names.find(arm), 1, value, 0.0)
                self._look()
                return
            try:
                number_of, name = ticket
                ticket_id, k = number_of - self._first_number, self._place[name]
                plain = type(ticket_id) is int and self._start <= ticket_id <= _PLACE
            except (TypeError, ValueError, LookupError):
                plain = False
            answer = self._ledger.tell_one(ticket_id, k, value) if plain and cost is None else REFUSED
            if answer <= KNOWN:
                if self._aim is not None:
                    self._aim.look()
                return
            if answer != REFUSED:
                self._ledger.refuse(answer, ticket_id, k, value)
            ticket_id, k = self._own(ticket)
            paid = None if cost is None else self._ledger.checked_cost(number("cost", cost))
            self._ledger.tell(ticket_id, value, k, paid)
            self._look()

    def _look(self) -> None:
        if self._aim is not None:
            self._aim.look()

    def tell_many(
        self,
        answers: Iterable[tuple[Ticket, SupportsFloat] | tuple[Ticket, SupportsFloat, SupportsFloat | None]],
    ) -> None:
        numbers, names, values, costs = read_answers(answers)
        if not numbers:
            return
        with self._lock:
            self._ledger.tell(self._ids(numbers, names), values, costs=costs)
            self._look()

    def _ids(self, numbers: list[int], names: list[Hashable]) -> Ints:
        """Return the ids of tickets of this study, by their numbers and the names of their arms."""
        try:
            ids = np.fromiter(map(operator.index, numbers), np.int64, len(numbers)) - self._first_number
        except (TypeError, OverflowError):
            raise TypeError(PAIRS) from None
        if not self._start <= ids.min() <= ids.max() < self._ledger.issued:
            ids = self._earlier(ids)
        own = self._names_of(ids)
        if own != names:
            wrong = next(j for j, (a, b) in enumerate(zip(own, names, strict=True)) if a is not b and a != b)
            self._check_arm(Ticket((numbers[wrong], names[wrong])), int(ids[wrong]), -1)
        return ids

    def tell_moments(self, arm: Hashable, count: int, mean: SupportsFloat, m2: SupportsFloat) -> None:
        """
        Take many samples of one arm from elsewhere: their count, mean and sum of squared deviations from it.

        They use no budget.
        """
        with self._lock:
            self._ledger.tell_moments(self._ledger.names.find(arm), count, number("mean", mean), number("m2", m2))
            self._look()

    def decline(self, ticket: Ticket, *, cost: SupportsFloat | None = None) -> None:
        with self._lock:
            ticket_id, k = self._own(ticket)
            if cost is not None:
                cost = self._ledger.checked_cost(number("cost", cost))
            self._ledger.decline(ticket_id, k, cost)

    def forget(self, ticket: Ticket) -> None:
        with self._lock:
            ticket_id, k = self._own(ticket)
            self._ledger.forget(ticket_id, k, withdrawn=bool(self._ledger.retired[k]))

    def set_budget(self, budget: float | None) -> None:
        with self._lock:
            self._ledger.set_budget(budget)

    def set_weights(self, weights: Iterable[float] | Mapping[Any, float] | None) -> None:
        """Change how much each arm's loss matters, by arm or in the arms' order; None for 1 each."""
        with self._lock:
            (self._aim or self._ledger).set_weights(weights)

    def retire(self, arm: Hashable) -> None:
        with self._lock:
            place = self._ledger.names.find(arm)
            if self._aim is None:
                self._ledger.retire(place)
            else:
                self._aim.retire(place, "by hand")

    def reopen(self, arm: Hashable) -> None:
        with self._lock:
            (self._aim or self._ledger).reopen(self._ledger.names.find(arm))

    # ---- tickets and their numbers

    @property
    def first_number(self) -> int:
        """The number that this study's tickets are counted from; a log gives it back to the study that it makes."""
        return self._first_number

    @first_number.setter
    def first_number(self, number: int) -> None:
        with self._lock:
            self._first_number = number
            self._series[-1] = (self._start, number)

    def _start_series(self) -> None:
        """
        Number tickets from here on as no other study does.

        A study that was copied or loaded may live next to the one it was made from. What was in flight at that moment
        is of both; what either hands out later must be its own.
        """
        earlier = [(start, number) for start, number in self._series if start < self._ledger.issued]
        # The first ticket of the series, and the number that ticket 0 would have in it.
        self._start, self._first_number = self._ledger.issued, secrets.randbits(63 - BITS) << BITS
        self._series = [*earlier, (self._start, self._first_number)]

    def _names_of(self, ids: Any) -> list[Hashable]:
        """Return the names of the arms of these tickets."""
        arms: list[int] = self._ledger.arms_of(ids).tolist()
        if self._ledger.names.index is None:
            return arms  # type: ignore[return-value]
        # With one arm more, as of a single arm itemgetter would not make a tuple.
        return list(operator.itemgetter(*arms, 0)(self._names)[:-1])

    def _own(self, ticket: Ticket) -> tuple[int, int]:
        """Return the id of a ticket of this study, and the place of its arm."""
        if ticket is MISSING:
            raise TypeError("ticket is required")
        try:
            number, arm = ticket
            ticket_id = operator.index(number) - self._first_number
        except (TypeError, ValueError):
            raise TypeError(f"ticket must be one that ask() returned, got {shown(ticket)}") from None
        if not self._start <= ticket_id < self._ledger.issued:
            try:
                ticket_id = int(self._earlier(np.array([ticket_id]))[0])
            except (ValueError, OverflowError):
                raise InvalidInput(f"{shown(ticket)} {_FOREIGN}") from None
        try:
            place = self._ledger.names.place(arm)
        except (KeyError, TypeError):
            place = -1
        self._check_arm(ticket, ticket_id, place)
        return ticket_id, place

    def _check_arm(self, ticket: Ticket, ticket_id: int, place: int) -> None:
        own = self._ledger.arm_of[ticket_id]
        if own != place:
            raise InvalidInput(
                f"{shown(ticket)} was handed out for arm {self._names[own]!r}, not for {shown(ticket[1])}"
            )

    def _earlier(self, ids: Ints) -> Ints:
        """Return ids as of the latest series of numbers as ids of the series each of them is of."""
        numbers = ids + self._first_number
        found = numbers & _PLACE
        starts, firsts = (np.array(each, dtype=np.int64) for each in zip(*self._series, strict=True))
        series = np.searchsorted(starts, found, side="right") - 1
        foreign = (numbers - found != firsts[series]) | (found >= self._ledger.issued) | (numbers < 0)
        if foreign.any():
            raise InvalidInput(f"the ticket in pair {int(np.argmax(foreign))} {_FOREIGN}")
        return found

    # ---- saved and loaded

    def __copy__(self) -> Study:
        return copy.deepcopy(self)

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            ledger = copy.copy(self._ledger)
            aim = None if self._aim is None else self._aim.copied(ledger)
            return {"ledger": ledger, "aim": aim, "level": self._level, "series": self._series}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        if "ledger" not in saved:
            raise EquipoiseError("this study was saved by an older version of equipoise, which this one cannot read")
        self._lock = threading.RLock()
        self._ledger, self._aim, self._level = saved["ledger"], saved["aim"], saved["level"]
        self._series = saved["series"]
        self._start_series()
        self._keep_names()
