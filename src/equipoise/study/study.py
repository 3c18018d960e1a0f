"""A study: ask which arm to sample, tell what was seen."""

from __future__ import annotations

import contextlib
import copy
import math
import operator
import secrets
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, SupportsFloat, overload

import numpy as np

from equipoise.arrays import Bools, Floats, Ints
from equipoise.errors import EquipoiseError
from equipoise.inputs import LARGEST, MISSING, Names, integer, number, shown
from equipoise.problem.objective import ROUNDING, Objective, Stratified
from equipoise.problem.objective import objective as objective_of
from equipoise.strategies import Strategy, Support, check_params, check_strategy, check_support, initial_own, resolve
from equipoise.strategies.key import POOLS, next_refresh
from equipoise.study import arms as steps
from equipoise.study.evidence import Lines
from equipoise.study.goal import Goal
from equipoise.study.result import Result
from equipoise.study.snapshot import Snapshot
from equipoise.study.ticket import BITS, Ticket

_FIRST_TICKETS: Final = 256
_FOREIGN: Final = "was not handed out by this study, which takes its own tickets only"
_PLACE: Final = (1 << BITS) - 1

_PAIRS: Final = "tell_many takes pairs (ticket, value), as in [(ticket, 0.3)]"

# Of what a saved study looks like; another version's is refused.
FORMAT: Final = 4

# Whole numbers up to here are floats without rounding.
_MOST: Final = 2**53


class Study:
    """
    Spend a budget on samples of K arms so that the worst-known mean is as well known as it can be.

    Parameters
    ----------
    arms
        The arms' names, all different, or how many there are (then they are called 0, 1, 2, ...).
    budget
        How many samples may be asked for in all, or with `costs` how much they may cost; None for no limit.
    strategy
        A strategy's name or a strategy with its parameters. The default needs no tuning.
    support
        What values are possible: "binary" (0 or 1), (low, high), or None for any number. Others are refused.
    objective
        What is made small: the p-norm of the arms' losses, infinity by default, which is the largest of them; or
        `Stratified(shares)`, the error of the strata's common mean.
    weights
        On the losses (squared errors), by arm or in the arms' order; None for 1 each.
    costs
        Of one sample, by arm or in the arms' order; None for 1 each. The budget is then money.

    Notes
    -----
    A ticket that is handed out counts as a pull at once, so that many can be in flight. Answers may come in any
    order, or never: `forget` gives a ticket back. Decisions use no randomness; exact ties go to the lowest arm.

    A study is not made for several threads at once: let one of them ask and tell.

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
    {'rough': 81, 'smooth': 19}
    """

    def __init__(
        self,
        arms: int | Iterable[Hashable],
        budget: float | None = None,
        strategy: str | Strategy = "auto",
        support: Support = None,
        objective: float | Stratified = math.inf,
        weights: Iterable[float] | Mapping[Any, float] | None = None,
        costs: Iterable[float] | Mapping[Any, float] | None = None,
    ) -> None:
        self._names, self._index = _name(arms)
        # Where an arm stands, by its name: a range of 0, 1, 2, ... is its own index.
        self._place: Any = self._names if self._index is None else self._index
        self._strategy = resolve(strategy)
        check_strategy(self._strategy)
        self._support = check_support(support)
        self._objective = objective_of(self._names, objective, weights, costs)
        # None where every sample costs 1 and nobody need count money.
        self._costs = None if self._objective.costs is None else np.array(self._objective.costs)
        # Of the open arms; infinite where none is.
        self._cheapest = min(self._objective.costs or (1.0,))
        self._budget = self._check_budget(budget)
        self._money = np.array([0.0, 0.0, self._limit(self._budget)])
        # Sequences are tuned to what was planned before the first sample.
        self._planned = None if self._budget is None else self._objective.samples(self._budget, len(self._names))
        self._lines: Lines | None = None
        self._handed_out = 0
        self._next = 0
        self._elsewhere = 0
        self._open = len(self._names)
        self._series: list[tuple[int, int]] = []
        self._number_anew()
        k = len(self._names)
        floor = self._strategy.has_floor()
        self._floats = np.zeros((7 if floor else 6, k))
        self._floats[steps.OWN] = initial_own(self._strategy, k)
        self._floats[steps.SCALE] = self._objective.scales(k)
        self._floats[steps.KEY] = math.inf
        self._ints = np.zeros((7 if floor else 5, k), np.int64)
        self._ints[steps.HEAP :] = np.arange(k)
        self._settings = np.zeros(8, np.int64)
        self._settings[steps.WARMUP] = self._strategy.warmup
        self._settings[steps.POOL] = POOLS.index(self._strategy.pool)
        self._settings[steps.NEXT_REFRESH] = next_refresh(0, k)
        self._numbers = np.zeros(steps.PARAMS)
        self._set_params(self._params(self._budget))
        if self._strategy.warmup == 0:
            # The one case in which there is a key before the first sample.
            steps.rekey_all(self._floats, self._ints, self._settings, self._numbers)
        self._tickets = np.empty((_FIRST_TICKETS, 2))
        self._room = _FIRST_TICKETS

    # ---- what can be read

    @property
    def arms(self) -> Sequence[Hashable]:
        """The arms' names, in order."""
        return self._names

    @property
    def strategy(self) -> Strategy:
        """The strategy, with its parameters."""
        return self._strategy

    @property
    def support(self) -> Support:
        """The values that are possible."""
        return self._support

    @property
    def objective(self) -> Objective:
        """What is made small, with its weights and costs in the arms' order."""
        return self._objective

    @property
    def budget(self) -> float | None:
        """How many samples may be asked for in all, or with costs how much they may cost; None for no limit."""
        return self._budget

    @property
    def spent(self) -> float:
        """What the tickets that were handed out cost, less those that were forgotten; their number without costs."""
        return self._handed_out if self._costs is None else float(self._money[steps.SPENT] + self._money[steps.CARRY])

    @property
    def remaining(self) -> float:
        """How many tickets may still be handed out, or with costs how much is left; infinite without a budget."""
        return math.inf if self._budget is None else max(0, self._budget - self.spent)

    @property
    def in_flight(self) -> int:
        """How many tickets are handed out and neither answered nor forgotten."""
        return int(self._ints[steps.PULLS].sum() - self._ints[steps.COUNT].sum())

    @property
    def done(self) -> bool:
        """Whether no further sample can be had. Tickets may still be in flight: their answers are welcome."""
        if not self._open:
            return True
        if self._costs is not None:
            return not steps.affordable(self._money, self._cheapest)
        return self._budget is not None and self._handed_out >= self._budget

    def result(
        self,
        *,
        goal: Goal | None = None,
        populations: Sequence[float] | None = None,
        seconds: Floats | None = None,
    ) -> Result:
        """
        Return what is known now; later samples do not change it.

        Parameters
        ----------
        goal
            The level of the intervals and the precision that is asked for, if any; by default 95% and none.
        populations
            The sizes of the arms' populations, where samples are drawn without replacement.
        seconds
            How long each sample took, by the tickets' ids, NaN where that is not known. The certificate then says
            whether slow answers differ from fast ones.
        """
        if self._lines is None:
            self._lines = Lines(len(self._names), self._support, self._planned)
        flying = self.in_flight
        gone = self._next - flying - (int(self._ints[steps.COUNT].sum()) - self._elsewhere)
        took = None if seconds is None else np.asarray(seconds, dtype=float)
        snapshot = Snapshot(
            names=Names(self._names, self._index),
            strategy=self._strategy.name or type(self._strategy).__name__,
            support=self._support,
            objective=self._objective,
            counts=self._ints[steps.COUNT].copy(),
            means=self._floats[steps.MEAN].copy(),
            m2s=self._floats[steps.M2].copy(),
            spent=self.spent,
            evidence=self._lines.look(self._tickets, self._next, gone, flying, took),
        )
        sizes = None if populations is None else np.asarray(populations, dtype=float)
        return Result(snapshot, goal or Goal(), sizes)

    def __repr__(self) -> str:
        if self._costs is not None:
            of = "" if self._budget is None else f" of {self._budget:g}"
            total = f"{self.spent:g}{of} spent on {self._handed_out:,} samples"
        elif self._budget is not None:
            total = f"{self._handed_out:,} of {self._budget:,} samples asked for"
        else:
            total = "no budget"
        arms = f"{len(self._names):,} arm{'s' * (len(self._names) != 1)}"
        return f"<Study of {arms}, {total}, {self.in_flight:,} in flight, strategy {self._strategy!r}>"

    # ---- ask and tell

    @overload
    def ask(self) -> Ticket: ...
    @overload
    def ask(self, m: int) -> list[Ticket]: ...

    def ask(self, m: int | None = None) -> Ticket | list[Ticket]:
        """
        Which arm to sample next.

        Parameters
        ----------
        m
            How many tickets to hand out at once. The same as asking m times with no answer in between.

        Returns
        -------
        Ticket, or a list of them
            One ticket without `m`. With `m`, a list of as many as the budget allows, none when it is spent.

        Raises
        ------
        EquipoiseError
            Without `m`, when the budget is spent or every arm is closed.
        """
        if m is None and not self._open:
            raise EquipoiseError("every arm is closed; open() makes one available again")
        if self._costs is not None:
            return self._ask_paid(m)
        if m is None:
            if self._budget is not None and self._handed_out >= self._budget:
                raise EquipoiseError(
                    f"the budget of {self._budget} samples is handed out; set_budget() can make it larger"
                )
            ticket = self._next
            if ticket == self._room:
                self._make_room(1)
            k = steps.ask(
                self._floats,
                self._ints,
                self._settings,
                self._numbers,
                self._tickets,
                ticket,
                self._handed_out,
                1,
            )
            if k < 0:
                raise EquipoiseError(self._no_floor())
            self._next = ticket + 1
            self._handed_out += 1
            return Ticket((self._first_number + ticket, self._names[k]))
        first = self._next
        if self._hand_out(integer("m", m, least=1)) == 0:
            return []
        return self._tickets_from(first)

    def _ask_paid(self, m: int | None) -> Ticket | list[Ticket]:
        """`ask` where samples have costs: as many as the money is there for."""
        first = self._next
        self._hand_out(1 if m is None else integer("m", m, least=1))
        tickets = self._tickets_from(first)
        if m is not None:
            return tickets
        if not tickets:
            raise EquipoiseError(
                f"of the budget of {self._budget:g}, {self.remaining:g} is left, and the cheapest sample costs "
                f"{self._cheapest:g}; set_budget() can make it larger"
            )
        return tickets[0]

    def _tickets_from(self, first: int) -> list[Ticket]:
        """The tickets that were handed out from the id `first` on."""
        if first == self._next:
            return []
            return []
        numbers = range(self._first_number + first, self._first_number + self._next)
        return list(map(Ticket, zip(numbers, self._names_of(slice(first, self._next)), strict=True)))

    def _hand_out(self, m: int) -> int:
        """Hand out up to m tickets, as many as the budget and the open arms allow; how many."""
        if not self._open:
            return 0
        if self._budget is not None and self._costs is None:
            m = min(m, int(self._budget) - self._handed_out)
        elif self._budget is not None:
            m = min(m, int(self.remaining / self._cheapest * (1 + 2 * ROUNDING)) + 1)
        if m <= 0:
            return 0
        first = self._next
        if first + m > self._room:
            self._make_room(m)
        state = self._floats, self._ints, self._settings, self._numbers, self._tickets
        if self._costs is None:
            last = steps.ask(*state, first, self._handed_out, m)
            m = m if last >= 0 else last
        else:
            m = steps.ask_paid(*state, self._costs, self._money, self._cheapest, first, self._handed_out, m)
        if m == -1:
            raise EquipoiseError(self._no_floor())
        if m < 0:
            m = -1 - m
        self._next = first + m
        self._handed_out += m
        return m

    def tell(self, ticket: Ticket = MISSING, value: SupportsFloat = MISSING, *, arm: Hashable = MISSING) -> None:
        """
        What was seen.

        Parameters
        ----------
        ticket
            The ticket that was answered. Telling the same value again changes nothing. A forgotten ticket's answer is
            taken too, even past the budget.
        value
            The sample.
        arm
            Instead of a ticket: the arm of a sample that comes from elsewhere. It uses no budget.

        Raises
        ------
        ValueError, TypeError
            For a value that is not a finite number inside the support, a ticket of another study, another value than
            was told before. The study is then as it was.
        """
        if type(value) is not float:
            value = number("value", value)
        if arm is not MISSING:
            if ticket is not MISSING:
                raise TypeError("tell takes a ticket or an arm, not both")
            k = self._arm(arm)
            if not steps.inside(self._numbers, value):
                raise ValueError(self._outside(value))
            self._evidence(k, 1, value, 0.0)
            return
        try:
            number_of, name = ticket
            ticket_id, k = number_of - self._first_number, self._place[name]
            plain = type(ticket_id) is int and self._start <= ticket_id < self._next
        except (TypeError, ValueError, LookupError):
            plain = False
        if not plain:
            ticket_id, k = self._own(ticket)
        answer = steps.tell(self._floats, self._ints, self._settings, self._numbers, self._tickets, ticket_id, k, value)
        if answer > steps.KNOWN:
            if answer == steps.OTHER_ARM:
                raise ValueError(self._of_other_arm(ticket, self._ticket(ticket_id)))
            self._refuse(answer, self._ticket(ticket_id), value)

    def tell_many(self, answers: Iterable[tuple[Ticket, SupportsFloat]]) -> None:
        """
        Many pairs (ticket, value), in order. If one of them will not do, none is taken.

        Raises
        ------
        ValueError, TypeError
            As `tell` does.
        """
        numbers: list[int] = []
        names: list[Hashable] = []
        samples: list[SupportsFloat] = []
        try:
            pairs = iter(answers)
        except TypeError:
            raise TypeError(_PAIRS) from None
        # What goes wrong in the iterator itself, such as a generator's own error, is not ours to word.
        for pair in pairs:
            try:
                ticket, value = pair
                numbers.append(ticket[0])
                names.append(ticket[1])
            except (TypeError, ValueError, LookupError):
                raise TypeError(_PAIRS) from None
            samples.append(value)
        if not numbers:
            return
        try:
            ids = np.fromiter(map(operator.index, numbers), np.int64, len(numbers)) - self._first_number
        except (TypeError, OverflowError):
            raise TypeError(_PAIRS) from None
        if not self._start <= ids.min() <= ids.max() < self._next:
            ids = self._earlier(ids)
        own = self._names_of(ids)
        if own != names:
            wrong = next(j for j, (a, b) in enumerate(zip(own, names, strict=True)) if a is not b and a != b)
            raise ValueError(self._of_other_arm(Ticket((numbers[wrong], names[wrong])), self._ticket(int(ids[wrong]))))
        self.take(ids, _numbers(samples))

    def tell_moments(self, arm: Hashable, count: int, mean: SupportsFloat, m2: SupportsFloat) -> None:
        """
        Many samples of one arm from elsewhere at once, as their count, mean and sum of squared deviations from it.

        They use no budget.
        """
        k = self._arm(arm)
        count = integer("count", count, least=1)
        if count > _MOST - int(self._settings[steps.SAMPLES]):
            raise ValueError(f"count={count} will not do; a study counts 2**53 samples at most")
        mean, m2 = number("mean", mean), number("m2", m2)
        if not 0 <= m2 < LARGEST**2:
            raise ValueError(f"m2={m2!r} will not do; a sum of squared deviations is finite and not negative")
        if count == 1 and m2 > 0:
            raise ValueError(f"m2={m2!r} will not do for one sample; it does not deviate from its own mean")
        low, high = (0.0, 1.0) if self._support == "binary" else self._numbers[[steps.LOW, steps.HIGH]].tolist()
        if not low <= mean <= high:
            raise ValueError(self._outside(mean))
        if self._support is not None:
            self._check_moments(count, mean, m2, low, high)
        self._evidence(k, count, mean, m2)

    def forget(self, ticket: Ticket) -> None:
        """
        Give back a ticket that will not be answered; its sample can be asked for anew.

        Should its answer come after all, `tell` takes it.
        """
        ticket_id, k = self._own(ticket)
        answer = steps.forget(self._floats, self._ints, self._settings, self._numbers, self._tickets, ticket_id, k)
        if answer == steps.OTHER_ARM:
            raise ValueError(self._of_other_arm(ticket, self._ticket(ticket_id)))
        if answer == steps.CONFLICT:
            raise ValueError(f"{ticket!r} has been answered; only a ticket without an answer can be forgotten")
        if answer != steps.KNOWN:
            self._handed_out -= 1
            if self._costs is not None:
                steps.spend(self._money, -float(self._costs[k]))

    def set_budget(self, budget: float | None) -> None:
        """Change how many samples may be asked for in all, or what they may cost. Parameters are set anew."""
        budget = self._check_budget(budget)
        if self._costs is not None and self._limit(budget) < self.spent:
            raise ValueError(f"budget={budget} is below the {self.spent:g} that is spent already")
        if self._costs is None and budget is not None and budget < self._handed_out:
            raise ValueError(f"budget={budget} is below the {self._handed_out} samples that are handed out already")
        self._set_params(self._params(budget))
        self._budget = budget
        self._money[steps.LIMIT] = self._limit(budget)
        # Not what is pooled: that has a schedule of its own.
        answer = steps.rekey_all(self._floats, self._ints, self._settings, self._numbers)
        self._judge(answer, "the budget is set")

    def set_weights(self, weights: Iterable[float] | Mapping[Any, float] | None) -> None:
        """Change how much each arm's loss matters, by arm or in the arms' order; None for 1 each."""
        if self._objective.shares is not None:
            raise ValueError("the weights of strata are their shares' squares, and cannot be set")
        self._objective = objective_of(self._names, self._objective.p, weights, self._objective.costs)
        self._floats[steps.SCALE] = self._objective.scales(len(self._names))
        answer = steps.rekey_all(self._floats, self._ints, self._settings, self._numbers)
        self._judge(answer, "the weights are set")

    def close(self, arm: Hashable) -> None:
        """Ask for no more samples of an arm. Its answers in flight are welcome, and `open` opens it again."""
        self._shut(self._arm(arm), 1)

    def open(self, arm: Hashable) -> None:
        """Ask for samples of an arm again that was closed."""
        self._shut(self._arm(arm), 0)

    @property
    def closed(self) -> tuple[Hashable, ...]:
        """The arms that are closed."""
        return tuple(self._names[k] for k in np.flatnonzero(self.closed_places()).tolist())

    def _shut(self, k: int, closed: int) -> None:
        if self._ints[steps.CLOSED, k] != closed:
            self._open += 1 - 2 * closed
            answer = steps.shut(self._floats, self._ints, self._settings, self._numbers, k, closed)
            if self._costs is not None:
                self._cheapest = float(self._costs[~self.closed_places()].min(initial=math.inf))
            self._judge(answer, "the arm is open")

    # ---- the same for drivers and logs, with tickets and arms as whole numbers: what they are in the arrays

    @property
    def first_number(self) -> int:
        """What this study's tickets are numbered from; a log gives it back to the study that it makes."""
        return self._first_number

    @first_number.setter
    def first_number(self, number: int) -> None:
        self._first_number = number
        self._series[-1] = (self._start, number)

    def hand_out(self, m: int) -> tuple[Ints, Ints]:
        """As `ask(m)`: the ids of the tickets and the places of their arms."""
        first = self._next
        self._hand_out(m)
        return np.arange(first, self._next), self._tickets[first : self._next, steps.ARM].astype(np.int64)

    def hand_out_one(self) -> tuple[int, int] | None:
        """As `hand_out(1)`, and faster; None if there is nothing to hand out."""
        first = self._next
        return (first, int(self._tickets[first, steps.ARM])) if self._hand_out(1) else None

    def hand_out_to(self, arms: Ints) -> Ints:
        """Tickets for the arms at these places, whatever the strategy and the budget say; their ids."""
        first, m = self._next, len(arms)
        if first + m > self._room:
            self._make_room(m)
        steps.ask_arms(
            self._floats, self._ints, self._settings, self._numbers, self._tickets, first, self._handed_out, arms
        )
        if self._costs is not None:
            steps.spend_on(self._money, self._costs, arms)
        self._next = first + m
        self._handed_out += m
        return np.arange(first, first + m)

    def take(self, ids: Ints, values: Floats) -> None:
        """As `tell_many`, for tickets of this study by their ids."""
        state = self._floats, self._ints, self._settings, self._numbers, self._tickets
        answer, which = steps.tell_many(*state, ids, values, np.empty(len(ids)))
        if answer != steps.DONE:
            self._refuse(answer, self._ticket(int(ids[which])), float(values[which]))

    def take_one(self, ticket_id: int, value: float) -> None:
        """As `tell`, for a ticket of this study by its id."""
        self.tell(self._ticket(ticket_id), value)

    def handed_out(self) -> tuple[Ints, Floats]:
        """For every ticket there was, the place of its arm and its value: NaN in flight, infinite if forgotten."""
        tickets = self._tickets[: self._next]
        return tickets[:, steps.ARM].astype(np.int64), tickets[:, steps.VALUE].copy()

    def answers(self, ids: Ints) -> Floats:
        """The values of some tickets: NaN in flight, infinite if forgotten."""
        return np.asarray(self._tickets[ids, steps.VALUE])

    def answer(self, ticket_id: int) -> float:
        """The same for one ticket."""
        return float(self._tickets[ticket_id, steps.VALUE])

    def possible(self, values: Floats) -> Bools:
        """Which of these values may be told."""
        if self._support == "binary":
            return np.asarray((values == 0) | (values == 1))
        low, high = self._numbers[steps.LOW], self._numbers[steps.HIGH]
        return np.asarray((values >= low) & (values <= high))

    def possible_one(self, value: float) -> bool:
        """Whether this value may be told."""
        return bool(steps.inside(self._numbers, value))

    def refusal(self, value: float) -> str:
        """Why a value that is not possible may not be told."""
        return self._outside(value)

    def closed_places(self, places: Ints | None = None) -> Bools:
        """For each arm, or for those at these places, whether it is closed."""
        closed = self._ints[steps.CLOSED]
        return np.asarray((closed if places is None else closed[places]) != 0)

    def ticket(self, ticket_id: int) -> Ticket:
        """The ticket of this id."""
        return self._ticket(ticket_id)

    # ---- saved and loaded: all but the addresses of compiled functions, which are of this process

    def __copy__(self) -> Study:
        return copy.deepcopy(self)

    def __getstate__(self) -> dict[str, Any]:
        # The lines can be had from the tickets again.
        return {"format": FORMAT, "strategy_was": self._made_for(), **self.__dict__, "_lines": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        found = state.pop("format", None)
        if found != FORMAT:
            said = "before formats had numbers" if found is None else f"in format {found!r}"
            raise EquipoiseError(f"this study was saved {said}; this version of equipoise reads format {FORMAT} only")
        was = state.pop("strategy_was")
        self.__dict__.update(state)
        check_strategy(self._strategy)
        # The arrays are laid out for the strategy as it was, and compiled code does not look where they end.
        is_now = self._made_for()
        changed = [f"{name} was {was[name]!r} and is {is_now[name]!r}" for name in is_now if was[name] != is_now[name]]
        if changed:
            raise EquipoiseError(
                f"this study was saved with another {type(self._strategy).__name__}: its {', its '.join(changed)}; "
                "load it where the strategy is as it was"
            )
        self._set_params(tuple(self._numbers[steps.PARAMS :].tolist()))
        self._number_anew()

    # ---- inside

    def _made_for(self) -> dict[str, Any]:
        """What the strategy declares that the layout of the state depends on."""
        return {
            "floor": self._strategy.has_floor(),
            "warmup": self._strategy.warmup,
            "pool": self._strategy.pool,
            "own": self._strategy.own,
            "number of params": len(self._params(self._budget)),
        }

    def _number_anew(self) -> None:
        """
        From here on tickets have numbers that no other study gives.

        A study that was copied or loaded may live beside the one it was made from. What was in flight at that moment
        is of both; what either hands out later must be its own.
        """
        earlier = [(start, number) for start, number in self._series if start < self._next]
        # The first ticket of the series, and the number that ticket 0 would have in it.
        self._start, self._first_number = self._next, secrets.randbits(63 - BITS) << BITS
        self._series = [*earlier, (self._start, self._first_number)]

    @staticmethod
    def _limit(budget: float | None) -> float:
        return math.inf if budget is None else budget * (1 + ROUNDING)

    def _params(self, budget: float | None) -> tuple[float, ...]:
        """The strategy's parameters; its n is the number of samples that the budget buys when it is spread evenly."""
        arms = len(self._names)
        n = None if budget is None else self._objective.samples(budget, arms)
        return check_params(self._strategy, self._strategy.params(n, arms, self._support))

    def _set_params(self, params: tuple[float, ...]) -> None:
        low, high = self._support if isinstance(self._support, tuple) else (-LARGEST, LARGEST)
        binary = float(self._support == "binary")
        pooled = self._numbers[steps.POOLED]
        # One number at least, as a compiled tuple cannot be empty.
        exponent = self._objective.exponent
        numbers = np.array([low, high, binary, pooled, exponent, *(params or (0.0,))], dtype=float)
        # What can fail first: the strategy is compiled for so many parameters.
        self._settings[: steps.WARMUP] = steps.addresses(self._strategy, len(numbers) - steps.PARAMS)
        self._numbers = numbers

    def _check_budget(self, budget: float | None) -> float | None:
        if budget is None:
            return None
        warmup, arms = self._strategy.warmup, len(self._names)
        starts = f"{self._strategy.name or type(self._strategy).__name__} starts with {warmup} of each of {arms} arms"
        if self._objective.costs is not None:
            return self._check_money(budget, warmup * math.fsum(self._objective.costs), starts)
        found = integer("budget", budget, least=1)
        if found > _MOST:
            raise ValueError(f"budget={budget} will not do; 2**53 samples are the most, and None is no limit")
        if found < arms * warmup:
            raise ValueError(f"budget={budget} is too small: {starts}, so that {arms * warmup} is the least")
        return found

    def _check_money(self, budget: float, least: float, starts: str) -> float:
        wanted = "with costs it is an amount of money, a positive number"
        try:
            found = number("budget", budget)
        except TypeError:
            raise TypeError(f"budget={shown(budget)} will not do; {wanted}") from None
        if isinstance(budget, bool) or not 0 < found < math.inf:
            raise ValueError(f"budget={budget!r} will not do; {wanted}")
        if self._limit(found) < least:
            raise ValueError(f"budget={budget} is too small: {starts}, which costs {least:g}")
        if found > _MOST * min(self._objective.costs or (1.0,)):
            raise ValueError(f"budget={budget} will not do; it buys more than 2**53 samples, and None is no limit")
        return found

    def _make_room(self, m: int) -> None:
        tickets = np.empty((max(2 * self._room, self._next + m), 2))
        tickets[: self._next] = self._tickets[: self._next]
        self._tickets, self._room = tickets, len(tickets)

    def _arm(self, arm: Hashable) -> int:
        try:
            return Names(self._names, self._index).place(arm)
        except (KeyError, TypeError):
            names = ", ".join(map(repr, self._names[:5])) + ", ..." * (len(self._names) > 5)
            raise ValueError(f"there is no arm {shown(arm)}; the arms are {names}") from None

    def _check_moments(self, count: int, mean: float, m2: float, low: float, high: float) -> None:
        """Refuse moments that no samples in the support have; what rounding may have done to them is let pass."""
        width = high - low
        # No sample in [low, high] with this mean varies more; binary samples vary by exactly this much.
        most = count * (high - mean) * (mean - low)
        slack = count * width * (1e-9 * width + 1e-15 * max(abs(low), abs(high)))
        if m2 > most + slack:
            raise ValueError(
                f"m2={m2!r} is more than {count} samples in {self._said_support()} with mean {mean!r} have"
            )
        if self._support != "binary":
            return
        if abs(count * mean - round(count * mean)) > 1e-6 + 1e-9 * count:
            raise ValueError(f"mean={mean!r} will not do; {count} binary samples do not have {count * mean:.9g} ones")
        if m2 < most - slack:
            raise ValueError(f"m2={m2!r} is less than {count} binary samples with mean {mean!r} have, {most:g}")

    def _evidence(self, k: int, count: int, mean: float, m2: float) -> None:
        self._elsewhere += count
        self._judge(steps.evidence(self._floats, self._ints, self._settings, self._numbers, k, count, mean, m2, 0))

    def _judge(self, answer: int, all_the_same: str = "the sample is kept") -> None:
        if answer == steps.BAD_VARIANCE:
            raise EquipoiseError(
                f"strategy {self._strategy!r} gave a variance that is not a number >= 0; {all_the_same}"
            )

    def _no_floor(self) -> str:
        return f"strategy {self._strategy!r} gave a floor that is not a number after {self._handed_out} pulls"

    def _refuse(self, answer: int, ticket: Ticket, value: float) -> None:
        self._judge(answer)
        if answer == steps.OUTSIDE:
            raise ValueError(f"{ticket!r}: {self._outside(value)}")
        told = float(self._tickets[ticket.id, steps.VALUE])
        if not math.isfinite(told):
            raise ValueError(f"{ticket!r} comes twice with different values, one of them {value!r}")
        raise ValueError(f"{ticket!r} was answered with {told!r} before; {value!r} is another value")

    def _outside(self, value: float) -> str:
        if not math.isfinite(value):
            return f"{value!r} is not a sample; it must be a finite number"
        if self._support is None:
            return f"{value!r} is too large a sample; its square would overflow"
        return f"{value!r} is not possible here; the support is {self._said_support()}"

    def _said_support(self) -> str:
        return "0 or 1" if self._support == "binary" else f"[{self._numbers[0]:g}, {self._numbers[1]:g}]"

    def _ticket(self, ticket_id: int) -> Ticket:
        arm = self._names[int(self._tickets[ticket_id, steps.ARM])]
        first = next(first for start, first in reversed(self._series) if start <= ticket_id)
        return Ticket((first + ticket_id, arm))

    def _names_of(self, ids: Any) -> list[Hashable]:
        """The arms of these tickets."""
        arms: list[int] = self._tickets[ids, steps.ARM].astype(np.int64).tolist()
        if self._index is None:
            return arms  # type: ignore[return-value]
        # With one arm more, as of a single arm itemgetter would not make a tuple.
        return list(operator.itemgetter(*arms, 0)(self._names)[:-1])

    def _own(self, ticket: Ticket) -> tuple[int, int]:
        """The id of a ticket of ours, and the place of the arm that it says it is of; -1 if there is no such arm."""
        try:
            number, arm = ticket
            if type(number) is not int:
                number = operator.index(number)
            ticket_id = number - self._first_number
        except (TypeError, ValueError):
            raise TypeError(f"{shown(ticket)} is not a ticket; ask() gives one") from None
        if not self._start <= ticket_id < self._next:
            try:
                ticket_id = int(self._earlier(np.array([ticket_id]))[0])
            except (ValueError, OverflowError):
                raise ValueError(f"{shown(ticket)} {_FOREIGN}") from None
        try:
            k = Names(self._names, self._index).place(arm)
        except (KeyError, TypeError):
            k = -1
        return ticket_id, k

    def _earlier(self, ids: Ints) -> Ints:
        """Ids as of the latest series of numbers, turned into those of the series each of them is of."""
        numbers = ids + self._first_number
        found = numbers & _PLACE
        starts, firsts = (np.array(each, dtype=np.int64) for each in zip(*self._series, strict=True))
        series = np.searchsorted(starts, found, side="right") - 1
        foreign = (numbers - found != firsts[series]) | (found >= self._next) | (numbers < 0)
        if foreign.any():
            raise ValueError(f"the ticket in pair {int(np.argmax(foreign))} {_FOREIGN}")
        return found

    @staticmethod
    def _of_other_arm(ticket: Ticket, own: Ticket) -> str:
        return f"{shown(ticket)} says {ticket[1]!r}, but this study handed it out for {own.arm!r}"


def _name(arms: int | Iterable[Hashable]) -> tuple[Sequence[Hashable], dict[Hashable, int] | None]:
    """The arms' names, and where each of them stands; None where a name is its own place."""
    if isinstance(arms, str | bytes):
        raise TypeError(f"arms={arms!r} is one text; a list of names is needed, such as [{arms!r}]")
    if isinstance(arms, int | np.integer) and not isinstance(arms, bool):
        if arms < 1:
            raise ValueError(f"arms={arms} will not do; a study needs at least one arm")
        return range(arms), None
    try:
        names = arms if isinstance(arms, range) else tuple(arms)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"arms={arms!r} will not do; a list of names is needed, or their number") from None
    if len(names) < 1:
        raise ValueError("arms is empty; a study needs at least one arm")
    if names == range(len(names)):
        return names, None
    try:
        index = dict(zip(names, range(len(names)), strict=True))
    except TypeError:
        wrong = next(name for name in names if not _hashes(name))
        raise TypeError(f"an arm cannot be called {wrong!r}; a name must be hashable, such as a text") from None
    if len(index) < len(names):
        twice = next(name for k, name in enumerate(names) if index[name] != k)
        raise ValueError(f"two arms are called {twice!r}; names must differ")
    return names, index


def _hashes(name: Any) -> bool:
    """Whether a name has a hash; a tuple's type has one even where its items have none."""
    try:
        hash(name)
    except TypeError:
        return False
    return True


def _numbers(values: list[Any]) -> Floats:
    """Many samples at once; NumPy tells whether they are plain numbers faster than a look at each would."""
    with contextlib.suppress(ValueError, OverflowError):
        array = np.array(values)
        if array.dtype.kind in "fiub" and array.ndim == 1:
            return array.astype(np.float64, copy=False)
    return np.array([number("value", value) for value in values])
