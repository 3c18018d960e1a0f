"""What is asked of a study in a turn: asks, answers, tickets given back, changes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from equipoise.base.arrays import Ints
from equipoise.base.inputs import text_of
from equipoise.ledger.ledger import InvalidVariance, TooLate
from equipoise.ledger.state import ANSWERED, ANSWERED_LATE, DECLINED
from equipoise.ledger.ticket import BITS, Ticket
from equipoise.store import Replica, Turn
from equipoise.store.replica import RETIRED
from equipoise.store.turn import first_of_each

TAKEN, KNOWN, LATE, REFUSED, FORGOTTEN = "taken", "known", "late", "refused", "forgotten"

FOREIGN: Final = "the ticket was not handed out by this study"

_PLACE: Final = (1 << BITS) - 1


class Handed(NamedTuple):
    """The tickets of an ask; and why there are none, or that its respondent has answered."""

    tickets: list[Ticket]
    reason: str | None = None


class Refusal(NamedTuple):
    """A ticket that is refused or too late: which of the request's it is, and why."""

    place: int
    detail: str


class Outcomes(NamedTuple):
    """What became of each ticket of a request, in order, and of those that are refused or too late, why."""

    each: list[str]
    refused: list[Refusal]


@dataclass(frozen=True, slots=True)
class Ask:
    """
    An ask for tickets.

    Attributes
    ----------
    many, owner, seconds
        How many; and who waits for them, and for how long.
    most_open
        How many tickets may be open for this owner.
    key, respondent
        Hashes of the idempotency key and of the respondent; None without one.
    closed
        Why no ticket is handed out but those that the same ask got before; None where the study is open.
    most_spare
        How many more tickets than its budget pays for the study may hand out in all, so that its log has an end.
    """

    many: int
    owner: int
    seconds: float
    most_open: int
    key: bytes | None = None
    respondent: bytes | None = None
    closed: str | None = None
    most_spare: float = math.inf

    @property
    def calls(self) -> list[bytes]:
        """By what the ask is known again."""
        return [call for call in (self.key, self.respondent) if call is not None]

    def repeated(self, turn: Turn) -> Handed | None:
        """Return what the same ask got before; None where it is new."""
        ids = turn.repeated(self.key, self.respondent, self.many)
        if ids is None:
            return None
        if not ids:
            return Handed([], nothing_left(turn.replica))
        by_respondent = self.key not in turn.called(self.calls)
        status = turn.ledger.status(slice(ids.start, ids.stop))
        answered = by_respondent and np.isin(status, (ANSWERED, ANSWERED_LATE, DECLINED)).all()
        return Handed(turn.tickets(ids), "answered" if answered else None)

    def do(self, turn: Turn) -> Handed:
        """Hand out new tickets."""
        ids = turn.hand_out(self.many)
        if not ids:
            return Handed([], nothing_left(turn.replica))
        turn.take_over(ids, self.owner, self.seconds)
        for call in self.calls:
            turn.remember(call, ids)
        return Handed(turn.tickets(ids))


@dataclass(frozen=True, slots=True)
class Tell:
    """
    Answers to tickets.

    Attributes
    ----------
    numbers
        Of the tickets; None for one that this study did not sign.
    values
        The samples; None for a ticket that was declined.
    costs, seconds
        What each sample cost, and how long it took; NaN where that is not known.
    atomic
        Whether to take all answers or none, instead of each by itself; then each has a value.
    """

    numbers: Sequence[int | None]
    values: Sequence[float | None]
    costs: Sequence[float]
    seconds: Sequence[float]
    atomic: bool = False

    def do(self, turn: Turn) -> Outcomes:
        """Record the answers; those that are known are passed over."""
        ids = ids_of(turn.replica, self.numbers)
        if self.atomic:
            if None in ids:
                raise ValueError(f"answer {ids.index(None)}: {FOREIGN}")
            return self._together(turn, np.array(ids))
        if len(ids) > 1 and None not in ids and None not in self.values:
            try:
                return self._together(turn, np.array(ids))
            except ValueError:
                pass  # nothing was taken: so each by itself
        each, refused = [], []
        for j, ticket in enumerate(ids):
            try:
                each.append(self._alone(turn, j, ticket))
            except ValueError as error:
                each.append(LATE if isinstance(error, TooLate) else REFUSED)
                refused.append(Refusal(j, str(error)))
        return Outcomes(each, refused)

    def _together(self, turn: Turn, ids: Ints) -> Outcomes:
        new = np.isnan(turn.ledger.answers(ids)) & first_of_each(ids)
        costs = np.array(self.costs)
        costs_or_none = None if np.isnan(costs).all() else costs
        with _keeping(turn):
            turn.tell_many(ids, np.array(self.values), np.array(self.seconds), costs_or_none)
        return Outcomes([TAKEN if each else KNOWN for each in new.tolist()], [])

    def _alone(self, turn: Turn, j: int, ticket: int | None) -> str:
        if ticket is None:
            raise ValueError(FOREIGN)
        value = self.values[j]
        known = turn.ledger.is_declined(ticket) if value is None else not math.isnan(turn.ledger.answers(ticket))
        with _keeping(turn):
            if value is None:
                turn.decline(ticket, self.costs[j])
            else:
                turn.tell(ticket, value, self.seconds[j], self.costs[j])
        return KNOWN if known else TAKEN


@dataclass(frozen=True, slots=True)
class Forget:
    """Tickets that are given back, by their numbers; None for one that this study did not sign."""

    numbers: Sequence[int | None]

    def do(self, turn: Turn) -> Outcomes:
        """Give them back."""
        each, refused = [], []
        for j, ticket in enumerate(ids_of(turn.replica, self.numbers)):
            try:
                if ticket is None:
                    raise ValueError(FOREIGN)
                retired = turn.ledger.retired[turn.ledger.arm_of[ticket]]
                turn.forget(ticket, RETIRED if retired else "given back")
                each.append(FORGOTTEN)
            except ValueError as error:
                each.append(REFUSED)
                refused.append(Refusal(j, str(error)))
        return Outcomes(each, refused)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the study."""

    change: Callable[[Turn], Any]

    def do(self, turn: Turn) -> Any:
        """Make it."""
        return self.change(turn)


Work = Ask | Tell | Forget | Change


def ids_of(replica: Replica, numbers: Sequence[int | None]) -> list[int | None]:
    """Return the ids of tickets by their numbers; None for those that this log did not hand out."""
    if len(numbers) == 1:
        return [None if numbers[0] is None else replica.id_of(numbers[0])]
    given = np.array([-1 if number is None else number for number in numbers], dtype=np.int64)
    ids = given & _PLACE
    own = (given >= 0) & (ids < replica.study.ledger.issued)
    own[own] = replica.numbers(ids[own]) == given[own]
    return [ticket if fine else None for ticket, fine in zip(ids.tolist(), own.tolist(), strict=True)]


def nothing_left(replica: Replica) -> str:
    """Return why there is nothing left to ask for, in a word or two."""
    ledger = replica.study.ledger
    if ledger.all_retired:
        return "reached" if replica.judged.any() else "retired"
    return "used up" if ledger.all_used_up else "spent"


@contextlib.contextmanager
def _keeping(turn: Turn) -> Iterator[None]:
    """Go on where a strategy failed after an answer was kept; else the turn is lost."""
    try:
        yield
    except InvalidVariance:
        if not turn.whole:
            raise


def plain_arm(arm: Hashable) -> Any:
    """Return an arm's name as JSON can hold it."""
    return arm if isinstance(arm, str | int | float) else text_of(arm)
