"""
A turn: what one process does to a study while nobody else can.

What happens in a turn is in the replica at once, and in the log when the turn has been committed. Without a log, a turn
is only a study with a face by ids and places.
"""

from __future__ import annotations

import itertools
import math
import secrets
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.base.errors import InvalidInput
from equipoise.ledger import Ticket
from equipoise.ledger.goal import Stopping
from equipoise.ledger.ledger import InvalidVariance, Ledger
from equipoise.ledger.state import IN_FLIGHT
from equipoise.ledger.ticket import BITS
from equipoise.store import events
from equipoise.store.database import NOBODY, Database, Lease
from equipoise.store.events import Draft
from equipoise.store.plain import dumps
from equipoise.store.replica import WITHDRAWALS, Replica, tag_of
from equipoise.study import Study


class Turn:
    """
    One turn of a study.

    Parameters
    ----------
    replica
        The study as the log has it.
    database
        Where the turn is written in the end; None without a log.

    Attributes
    ----------
    study, ledger
        The study, and its state by ids and places.
    identity
        The id of the turn, which is in the numbers of its tickets.
    draft
        The events so far; None without a log.
    first
        The id of the first ticket that this turn may hand out.
    whole
        Whether the replica and the draft say the same; not so where something interrupted one of the methods below.
    """

    def __init__(self, replica: Replica, database: Database | None = None) -> None:
        self.replica, self._database = replica, database
        self.study: Study = replica.study
        self.ledger: Ledger = replica.study.ledger
        self.draft = None if database is None else Draft()
        self.whole = True
        self.identity = secrets.token_bytes(8)
        self.first = self.ledger.issued
        # The number of samples at which to look next. Each turn ends with no look due, so all earlier looks were made.
        self._began, self._next_look = self.ledger.samples, -1
        self._settled: list[int] = []
        self._owner: tuple[int, float] | None = None
        self._leases: list[tuple[Sequence[int], int, float]] = []
        self._calls: list[tuple[bytes, range]] = []
        # The tickets of calls that were looked up or made in this turn; None for those that are new.
        self._known: dict[bytes, range | None] = {}

    # ---- asking

    def ask(self, m: int) -> range:
        """Hand out up to m tickets of the strategy's choice; return their ids."""
        self.whole = False
        return self._asked(self.ledger.ask(m))

    def ask_for(self, places: Ints) -> range:
        """Hand out tickets for these arms, up to the first without a place in the budget; return their ids."""
        self.whole = False
        return self._asked(self.ledger.ask_for(places))

    def _asked(self, tickets: int) -> range:
        ids = self.ledger.latest(tickets)
        if self.draft is not None and tickets:
            self.draft.asked(self.ledger.arm_of[ids.start : ids.stop].tolist())
        self.whole = True
        return ids

    def ask_next(self, most: int) -> range:
        """Hand out tickets, none only where none is left: for arms that come first, or of the strategy's choice."""
        return self.replica.policy.ask_next(self.replica, self, most)

    def hand_out(self, m: int) -> range:
        """Hand out up to m tickets: for the arms that come first, then of the strategy's choice; return their ids."""
        return self.replica.policy.hand_out(self.replica, self, m)

    def tickets(self, ids: range) -> list[Ticket]:
        """Return tickets for users, whether this turn handed them out or an earlier one."""
        if not ids:
            return []
        found = np.arange(ids.start, ids.stop)
        numbers = (tag_of(self.identity) << BITS) | found if ids.start >= self.first else self.replica.numbers(found)
        arms = self.ledger.arms_of(found).tolist()
        return [Ticket((number, self.study.arms[k])) for number, k in zip(numbers.tolist(), arms, strict=True)]

    # ---- telling

    def tell(self, ticket: int, value: float, seconds: float = math.nan, cost: float = math.nan) -> None:
        """Record the answer of a ticket, how long its sample took and what it cost; one that is known is skipped."""
        value += 0.0  # so that a log does not have to keep the sign of a zero
        known = not math.isnan(self.ledger.answers(ticket))
        self.whole = False
        try:
            self.ledger.tell(ticket, value, costs=None if math.isnan(cost) else cost)
        except ValueError:
            self.whole = True  # refused: nothing has changed
            raise
        except InvalidVariance:
            self._told(known, ticket, value, seconds, cost)  # the strategy failed, and the sample is kept
            raise
        self._told(known, ticket, value, seconds, cost)

    def _told(self, known: bool, ticket: int, value: float, seconds: float, cost: float) -> None:
        if not known:
            self.replica.note(ticket, seconds)
            if self.draft is not None:
                if not math.isnan(cost):
                    self.draft.cost(ticket, cost)
                self.draft.told(ticket, value, seconds)
                self._settle(ticket)
        self.whole = True

    def tell_many(self, tickets: Ints, values: Floats, seconds: Floats, costs: Floats | None = None) -> None:
        """Record the answers of several tickets, all or none; those that are known are skipped."""
        values = values + 0.0
        new = np.isnan(self.ledger.answers(tickets))
        new[new] = first_of_each(tickets[new])
        self.whole = False
        try:
            self.ledger.tell(tickets, values, costs=costs)
        except ValueError:
            self.whole = True
            raise
        except InvalidVariance:
            self._told_many(tickets[new], values[new], seconds[new], None if costs is None else costs[new])
            raise
        self._told_many(tickets[new], values[new], seconds[new], None if costs is None else costs[new])

    def _told_many(self, tickets: Ints, values: Floats, seconds: Floats, costs: Floats | None) -> None:
        self.replica.note_many(tickets, seconds)
        if self.draft is not None:
            ids = tickets.tolist()
            if costs is None:
                self.draft.told_many(ids, values.tolist(), seconds.tolist())
            else:
                for j, ticket in enumerate(ids):
                    if not math.isnan(costs[j]):
                        self.draft.cost(ticket, float(costs[j]))
                    self.draft.told(ticket, float(values[j]), float(seconds[j]))
            self._settled += [ticket for ticket in ids if ticket < self.first]
        self.whole = True

    def decline(self, ticket: int, cost: float = math.nan) -> None:
        """Record that who was asked did not want to answer."""
        known = self.ledger.is_declined(ticket)
        self.whole = False
        try:
            self.ledger.decline(ticket, cost=None if math.isnan(cost) else cost)
        except ValueError:
            self.whole = True
            raise
        if self.draft is not None and not known:
            if not math.isnan(cost):
                self.draft.cost(ticket, cost)
            self.draft.add(events.DECLINE, ticket)
            self._settle(ticket)
        self.whole = True

    def moments(self, arm: Hashable, count: int, mean: float, m2: float) -> None:
        """Add samples that were taken elsewhere, by their moments."""
        mean, m2 = float(mean) + 0.0, float(m2) + 0.0
        place = self.ledger.names.find(arm)
        self._change(
            lambda: self.ledger.tell_moments(place, count, mean, m2), events.MOMENTS, place, dumps([count, mean, m2])
        )

    # ---- which arms are known well enough

    def look(self, exhausted: Callable[[], Bools] | None = None) -> bool:
        """Apply the policy if a look is due, as `judge` does; a log calls this at the end of each turn too."""
        if self._next_look < 0:
            self._next_look = self.replica.policy.next_look(self.replica, self._began)
        if self.ledger.samples < self._next_look:
            return False
        return self.judge(None if exhausted is None else exhausted())

    def judge(self, exhausted: Bools | None = None) -> bool:
        """
        Look now: retire the arms that have reached their precision or have no more samples, reopen arms that may go on.

        Parameters
        ----------
        exhausted
            For each arm, whether it has no more samples.

        Returns
        -------
        bool
            Whether any arm was reopened.
        """
        replica = self.replica
        decided = replica.policy.look(replica, exhausted)
        self._next_look = replica.policy.next_look(replica, self.ledger.samples)
        decided.apply(self)
        return bool(decided.reopen)

    # ---- the rest

    def forget(self, ticket: int, why: str) -> None:
        """Give up a ticket, and its place in the budget. `why` may say that it was withdrawn."""
        if self.ledger.is_in_flight(ticket):
            withdrawn = why in WITHDRAWALS
            self._change(lambda: self.ledger.forget(ticket, withdrawn=withdrawn), events.FORGET, ticket, why)
            self._settle(ticket)
        else:
            self.ledger.forget(ticket)  # says why not

    def failed(self, ticket: int, text: str) -> None:
        """Record that sampling failed for a ticket; it stays in flight."""
        if self.draft is not None:
            self.draft.add(events.FAIL, ticket, text)

    def retire(self, place: int, why: str) -> None:
        """Retire an arm: no more of its samples are asked for."""
        self._change(lambda: self.ledger.retire(place), events.RETIRE, place, why)
        self.replica.retired(place, why)

    def reopen(self, place: int) -> None:
        """Reopen a retired arm."""
        self._change(lambda: self.ledger.reopen(place), events.REOPEN, place)
        self.replica.settled[place] = False

    def set_budget(self, budget: Any) -> None:
        """Change the budget."""
        self._change(lambda: self.study.set_budget(budget), events.BUDGET, 0, dumps(budget))

    def set_weights(self, weights: Any, followed: bool = False) -> None:
        """Change the weights of the losses, by arm or in the arms' order; None for 1 each."""
        text = dumps({"weights": weights, "followed": followed})
        self._change(lambda: self.study.set_weights(weights), events.WEIGHTS, 0, text)
        self.replica.weights_set(followed)

    def set_goal(self, precision: Any, level: float, interval: Stopping) -> None:
        """Change the precision and the level that are asked for, and which intervals decide."""
        goal = dumps({"precision": precision, "level": level, "interval": interval})
        self._change(lambda: self.replica.set_goal(precision, level, interval), events.GOAL, 0, goal)
        self._next_look = 0  # at once

    def _change(self, change: Any, kind: int, place: int, text: str | None = None) -> None:
        """Make a change, and add its event if it was not refused."""
        self.whole = False
        try:
            change()
        except (ValueError, TypeError):
            self.whole = True
            raise
        except InvalidVariance:
            self._changed(kind, place, text)  # the strategy failed, and the change is kept
            raise
        self._changed(kind, place, text)

    def _changed(self, kind: int, place: int, text: str | None) -> None:
        if self.draft is not None:
            self.draft.add(kind, place, text)
        self.whole = True

    # ---- who waits for which ticket

    def _settle(self, ticket: int) -> None:
        if ticket < self.first:
            self._settled.append(ticket)

    def own(self, owner: int, seconds: float) -> None:
        """Let an owner (0: a visitor) wait for whatever this turn hands out and leaves in flight."""
        self._owner = owner, seconds

    def take_over(self, tickets: Sequence[int], owner: int, seconds: float) -> None:
        """Let an owner wait for these tickets, whoever did before."""
        self._leases.append((tickets, owner, seconds))

    def leases(self) -> list[Lease]:
        """Return who waits for each ticket in flight that an earlier turn handed out, in the order of asking."""
        if self._database is None:
            return []
        found = {lease.ticket: lease for lease in self._database.leases()}
        waiting = self.ledger.in_flight_ids().tolist()
        self._settled += found.keys() - set(waiting)
        return [found.get(ticket, Lease(ticket, NOBODY, True)) for ticket in waiting if ticket < self.first]

    def called(self, calls: Sequence[bytes]) -> dict[bytes, range]:
        """Return the ids of the tickets that calls got before, in this turn too; new ones are left out."""
        unknown = [call for call in calls if call not in self._known]
        if self._database is not None and unknown:
            self._known |= dict.fromkeys(unknown)
            for call, ids in self._database.called(unknown).items():
                if not 0 <= ids.start < ids.stop <= self.ledger.issued:
                    raise self._database.damaged("an earlier call got tickets that were not handed out")
                self._known[call] = ids
        return {call: known for call in calls if (known := self._known.get(call)) is not None}

    def repeated(self, key: bytes | None, respondent: bytes | None, tickets: int) -> range | None:
        """
        Return the ids of the tickets that the same ask got before; None where it is new.

        A respondent gets the same ticket again, answered or not, but none once it was given back and nothing is left of
        the budget or the population for a late answer.

        Parameters
        ----------
        key, respondent
            Hashes of its idempotency key, which comes first, and of its respondent; None without one.
        tickets
            How many it asks for: one, where there is a respondent, who would else count more than others.
        """
        if respondent is not None and tickets > 1:
            raise InvalidInput(f"the number of tickets must be 1 with a respondent, got {tickets:,}")
        known = self.called([call for call in (key, respondent) if call is not None])
        if key in known:
            return known[key]
        if respondent not in known:
            return None
        ids = known[respondent]
        return ids[:0] if self.ledger.is_too_late(ids.start) else ids

    def remember(self, call: bytes, tickets: range) -> None:
        """Write down which tickets a call got."""
        self._known[call] = tickets
        self._calls.append((call, tickets))

    def write_rest(self) -> None:
        """Write what is kept beside the log; within the transaction of the turn."""
        assert self._database is not None
        if self._settled:
            self._database.settle(self._settled)
        if self._owner is not None:
            self._leases.append((range(self.first, self.ledger.issued), *self._owner))
        leases = [(ticket, owner, seconds) for tickets, owner, seconds in self._leases for ticket in tickets]
        if leases:
            waiting = self.ledger.status(np.array([ticket for ticket, _, _ in leases])) == IN_FLIGHT
            self._database.grant(list(itertools.compress(leases, waiting.tolist())))
        if self._calls:
            self._database.remember(self._calls)

    @property
    def wrote(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.draft is not None and (self.draft.kinds or self._settled or self._leases or self._calls))


def first_of_each(tickets: Ints) -> Any:
    """Return which entries are the first of their ticket."""
    first = np.zeros(len(tickets), bool)
    first[np.unique(tickets, return_index=True)[1]] = True
    return first
