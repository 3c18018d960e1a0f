"""A study: ask which arm to sample, tell what was seen."""

from __future__ import annotations

import contextlib
import copy
import math
import operator
import secrets
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final, SupportsFloat, overload

import numpy as np
import numpy.typing as npt

from equipoise.errors import EquipoiseError
from equipoise.inputs import LARGEST, MISSING, number, shown, whole
from equipoise.strategies import Strategy, Support, check_support, resolve
from equipoise.strategies.key import POOLS, next_refresh
from equipoise.study import arms as steps
from equipoise.study.result import Result
from equipoise.study.ticket import BITS, Ticket

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_FIRST_TICKETS: Final = 256
_FOREIGN: Final = "was not handed out by this study, which takes its own tickets only"


class Study:
    """
    Spend a budget of samples on K arms so that the worst-known mean is as well known as it can be.

    Parameters
    ----------
    arms
        The arms' names, all different, or how many there are (then they are called 0, 1, 2, ...).
    budget
        How many samples may be asked for in all; None for no limit.
    strategy
        A strategy's name or a strategy with its parameters. The default needs no tuning.
    support
        What values are possible: "binary" (0 or 1), (low, high), or None for any number. Others are refused.

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
    {'rough': 79, 'smooth': 21}
    """

    def __init__(
        self,
        arms: int | Iterable[Hashable],
        budget: int | None = None,
        strategy: str | Strategy = "auto",
        support: Support = None,
    ) -> None:
        self._names, self._index = _name(arms)
        self._strategy = resolve(strategy)
        self._support = check_support(support)
        self._budget = self._check_budget(budget)
        # Tells this study's tickets from another's; decisions do not look at it.
        self._first_number = secrets.randbits(63 - BITS) << BITS
        self._handed_out = 0
        self._next = 0
        self._open = len(self._names)
        k = len(self._names)
        floor = self._strategy.has_floor()
        self._floats = np.zeros((5 if floor else 4, k))
        self._floats[steps.OWN] = self._own()
        self._floats[steps.KEY] = math.inf
        self._ints = np.zeros((7 if floor else 5, k), np.int64)
        self._ints[steps.HEAP :] = np.arange(k)
        self._settings = np.zeros(7, np.int64)
        self._settings[steps.WARMUP] = self._strategy.warmup
        self._settings[steps.POOL] = POOLS.index(self._strategy.pool)
        self._settings[steps.NEXT_REFRESH] = next_refresh(0, k)
        self._numbers = np.zeros(steps.PARAMS)
        self._set_params(self._strategy.params(self._budget, k, self._support))
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
    def budget(self) -> int | None:
        """How many samples may be asked for in all; None for no limit."""
        return self._budget

    @property
    def remaining(self) -> float:
        """How many tickets may still be handed out; infinite without a budget."""
        return math.inf if self._budget is None else self._budget - self._handed_out

    @property
    def in_flight(self) -> int:
        """How many tickets are handed out and neither answered nor forgotten."""
        return int(self._ints[steps.PULLS].sum() - self._ints[steps.COUNT].sum())

    @property
    def done(self) -> bool:
        """Whether the budget is handed out. Tickets may still be in flight: their answers are welcome."""
        return self._budget is not None and self._handed_out >= self._budget

    def result(self) -> Result:
        """What is known now; a copy, which later samples do not change."""
        return Result(
            arms=self._names,
            counts=self._ints[steps.COUNT].copy(),
            means=self._floats[steps.MEAN].copy(),
            m2s=self._floats[steps.M2].copy(),
            strategy=self._strategy.name or type(self._strategy).__name__,
            index=self._index,
        )

    def __repr__(self) -> str:
        total = "no budget" if self._budget is None else f"{self._handed_out:,} of {self._budget:,} samples asked for"
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
        if m is None:
            if self._handed_out == self._budget:
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
            self._next = ticket + 1
            self._handed_out += 1
            return Ticket((self._first_number + ticket, self._names[k]))
        first = self._next
        m = self._hand_out(whole("m", m, least=1))
        if m == 0:
            return []
        arms = self._tickets[first : first + m, steps.ARM].astype(np.int64).tolist()
        numbers = range(self._first_number + first, self._first_number + first + m)
        # With one arm more than there are numbers, as of a single arm itemgetter would not make a tuple.
        names = operator.itemgetter(*arms, 0)(self._names)
        return list(map(Ticket, zip(numbers, names, strict=False)))

    def _hand_out(self, m: int) -> int:
        """Hand out up to m tickets; how many."""
        if self._budget is not None:
            m = min(m, self._budget - self._handed_out)
        if not self._open:
            m = 0
        first = self._next
        if first + m > self._room:
            self._make_room(m)
        steps.ask(self._floats, self._ints, self._settings, self._numbers, self._tickets, first, self._handed_out, m)
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
            value = number(value)
        if arm is not MISSING:
            if ticket is not MISSING:
                raise TypeError("tell takes a ticket or an arm, not both")
            k = self._arm(arm)
            if not steps.inside(self._numbers, value):
                raise ValueError(self._outside(value))
            self._evidence(k, 1, value, 0.0)
            return
        ticket_id = self._own_id(ticket)
        answer = steps.tell(self._floats, self._ints, self._settings, self._numbers, self._tickets, ticket_id, value)
        if answer > steps.KNOWN:
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
        samples: list[SupportsFloat] = []
        try:
            for ticket, value in answers:
                numbers.append(ticket[0])
                samples.append(value)
            ids = np.fromiter(numbers, np.int64, len(numbers)) - self._first_number
        except (TypeError, ValueError, IndexError, OverflowError):
            raise TypeError("tell_many takes pairs (ticket, value), as in [(ticket, 0.3)]") from None
        if not numbers:
            return
        if not 0 <= ids.min() <= ids.max() < self._next:
            wrong = int(np.argmax((ids < 0) | (ids >= self._next)))
            raise ValueError(f"the ticket in pair {wrong} {_FOREIGN}")
        values = _numbers(samples)
        answer, which = steps.tell_many(
            self._floats, self._ints, self._settings, self._numbers, self._tickets, ids, values
        )
        if answer != steps.DONE:
            self._refuse(answer, self._ticket(int(ids[which])), float(values[which]))

    def tell_moments(self, arm: Hashable, count: int, mean: SupportsFloat, m2: SupportsFloat) -> None:
        """
        Many samples of one arm from elsewhere at once, as their count, mean and sum of squared deviations from it.

        They use no budget.
        """
        k = self._arm(arm)
        count = whole("count", count, least=1)
        mean, m2 = number(mean), number(m2)
        if not 0 <= m2 < LARGEST**2:
            raise ValueError(f"m2={m2!r} will not do; a sum of squared deviations is finite and not negative")
        if count == 1 and m2 > 0:
            raise ValueError(f"m2={m2!r} will not do for one sample; it does not deviate from its own mean")
        low, high = (0.0, 1.0) if self._support == "binary" else self._numbers[[steps.LOW, steps.HIGH]]
        if not low <= mean <= high:
            raise ValueError(self._outside(mean))
        # No sample in [low, high] with this mean varies more; binary samples vary by exactly this much.
        most = count * (high - mean) * (mean - low)
        slack = 1e-9 * count * max(1.0, (high - low) ** 2)
        if m2 > most + slack:
            raise ValueError(
                f"m2={m2!r} is more than {count} samples in {self._said_support()} with mean {mean!r} have"
            )
        if self._support == "binary" and m2 < most - slack:
            raise ValueError(f"m2={m2!r} is less than {count} binary samples with mean {mean!r} have, {most:g}")
        self._evidence(k, count, mean, m2)

    def forget(self, ticket: Ticket) -> None:
        """
        Give back a ticket that will not be answered; its sample can be asked for anew.

        Should its answer come after all, `tell` takes it.
        """
        ticket_id = self._own_id(ticket)
        answer = steps.forget(self._floats, self._ints, self._settings, self._numbers, self._tickets, ticket_id)
        if answer == steps.CONFLICT:
            raise ValueError(f"{ticket!r} has been answered; only a ticket without an answer can be forgotten")
        if answer != steps.KNOWN:
            self._handed_out -= 1

    def set_budget(self, budget: int | None) -> None:
        """Change how many samples may be asked for in all. The strategy's parameters are set anew."""
        budget = self._check_budget(budget)
        if budget is not None and budget < self._handed_out:
            raise ValueError(f"budget={budget} is below the {self._handed_out} samples that are handed out already")
        self._set_params(self._strategy.params(budget, len(self._names), self._support))
        self._budget = budget
        self._judge(steps.refresh(self._floats, self._ints, self._settings, self._numbers))

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
            self._judge(steps.shut(self._floats, self._ints, self._settings, self._numbers, k, closed))

    # ---- the same for drivers and logs, with tickets and arms as whole numbers: what they are in the arrays

    @property
    def first_number(self) -> int:
        """What this study's tickets are numbered from; a log gives it back to the study that it makes."""
        return self._first_number

    @first_number.setter
    def first_number(self, number: int) -> None:
        self._first_number = number

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
        self._next = first + m
        self._handed_out += m
        return np.arange(first, first + m)

    def take(self, ids: Ints, values: Floats) -> None:
        """As `tell_many`, for tickets of this study by their ids."""
        answer, which = steps.tell_many(
            self._floats, self._ints, self._settings, self._numbers, self._tickets, ids, values
        )
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

    def possible(self, values: Floats) -> npt.NDArray[np.bool_]:
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

    def closed_places(self) -> npt.NDArray[np.bool_]:
        """For each arm, whether it is closed."""
        return np.asarray(self._ints[steps.CLOSED] != 0)

    def ticket(self, ticket_id: int) -> Ticket:
        """The ticket of this id."""
        return self._ticket(ticket_id)

    # ---- saved and loaded: all but the addresses of compiled functions, which are of this process

    def __copy__(self) -> Study:
        return copy.deepcopy(self)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_params(tuple(self._numbers[steps.PARAMS :].tolist()))

    # ---- inside

    def _set_params(self, params: tuple[float, ...]) -> None:
        low, high = self._support if isinstance(self._support, tuple) else (-LARGEST, LARGEST)
        binary = float(self._support == "binary")
        pooled = self._numbers[steps.POOLED]
        # One number at least, as a compiled tuple cannot be empty.
        numbers = np.array([low, high, binary, pooled, *(params or (0.0,))], dtype=float)
        # What can fail first: the strategy is compiled for so many parameters.
        self._settings[: steps.WARMUP] = steps.addresses(self._strategy, len(numbers) - steps.PARAMS)
        self._numbers = numbers

    def _own(self) -> Any:
        if self._strategy.own == "none":
            return 0.0
        if self._strategy.own == "frozen":
            return -1.0
        variances = getattr(self._strategy, "variances", None)
        if variances is None:
            raise ValueError(
                f"{self._strategy.name} needs the arms' true variances, as in eq.strategies.Oracle(variances=[4, 1])"
            )
        if len(variances) != len(self._names):
            raise ValueError(f"{len(variances)} variances were given for {len(self._names)} arms")
        return variances

    def _check_budget(self, budget: int | None) -> int | None:
        if budget is None:
            return None
        budget = whole("budget", budget, least=1)
        least = len(self._names) * self._strategy.warmup
        if budget < least:
            raise ValueError(
                f"budget={budget} is too small: {self._strategy.name} starts with {self._strategy.warmup} of each of "
                f"{len(self._names)} arms, so that {least} is the least"
            )
        return budget

    def _make_room(self, m: int) -> None:
        tickets = np.empty((max(2 * self._room, self._next + m), 2))
        tickets[: self._next] = self._tickets[: self._next]
        self._tickets, self._room = tickets, len(tickets)

    def _arm(self, arm: Hashable) -> int:
        try:
            k = self._names.index(arm) if self._index is None else self._index[arm]
        except (KeyError, ValueError, TypeError):
            names = ", ".join(map(repr, self._names[:5])) + ", ..." * (len(self._names) > 5)
            raise ValueError(f"there is no arm {shown(arm)}; the arms are {names}") from None
        return k

    def _evidence(self, k: int, count: int, mean: float, m2: float) -> None:
        self._judge(steps.evidence(self._floats, self._ints, self._settings, self._numbers, k, count, mean, m2, 0))

    def _judge(self, answer: int) -> None:
        if answer == steps.BAD_VARIANCE:
            raise EquipoiseError(
                f"strategy {self._strategy!r} gave a variance that is not a number >= 0; the sample is kept"
            )

    def _refuse(self, answer: int, ticket: Ticket, value: float) -> None:
        self._judge(answer)
        if answer == steps.OUTSIDE:
            raise ValueError(f"{ticket!r}: {self._outside(value)}")
        told = float(self._tickets[ticket.id, steps.VALUE])
        if math.isnan(told):
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
        return Ticket((self._first_number + ticket_id, arm))

    def _own_id(self, ticket: Ticket) -> int:
        try:
            ticket_id = ticket[0] - self._first_number
        except (TypeError, IndexError):
            raise TypeError(f"{shown(ticket)} is not a ticket; ask() gives one") from None
        if not 0 <= ticket_id < self._next:
            raise ValueError(f"{shown(ticket)} {_FOREIGN}")
        return ticket_id


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
    if isinstance(names, range):
        return names, None
    try:
        index = dict(zip(names, range(len(names)), strict=True))
    except TypeError:
        wrong = next(name for name in names if not isinstance(name, Hashable))
        raise TypeError(f"an arm cannot be called {wrong!r}; a name must be hashable, such as a text") from None
    if len(index) < len(names):
        twice = next(name for k, name in enumerate(names) if index[name] != k)
        raise ValueError(f"two arms are called {twice!r}; names must differ")
    return names, index


def _numbers(values: list[Any]) -> Floats:
    """Many samples at once; NumPy tells whether they are plain numbers faster than a look at each would."""
    with contextlib.suppress(ValueError, OverflowError):
        array = np.array(values)
        if array.dtype.kind in "fiub" and array.ndim == 1:
            return array.astype(np.float64, copy=False)
    return np.array([number(value) for value in values])
