"""
Check the histories of several writers against the log that they wrote; nothing here but functions of both.

- Every answer that was acknowledged is in the log, once, with its value; every ask got tickets that one turn handed out
  for these arms, and nobody else got them.
- At every turn the tickets that were handed out and not forgotten are no more than the budget, and in the end exactly
  as many; each of them is answered.
- If one call returned before another began, its turn precedes the other's; and whatever was read is what the log said
  after some turn between the beginning and the end of the reading.
- No driver samples a ticket that another one has sampled, unless that one was dead or its lease was over.
- A driver's answers are those of its sampler for the arm and the rank of the ticket in it.
"""

from __future__ import annotations

import bisect
import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.functional.store.history import Call, Sample

# The lower bits of a ticket's number are its id; the others are from the id of its turn.
ID = (1 << 32) - 1


class Wrong(AssertionError):
    """A history and a log that cannot both be."""


@dataclass(frozen=True)
class Happened:
    """One event of a turn."""

    kind: str
    ticket: int | None = None
    arm: str | None = None
    value: float | None = None
    budget: int | None = None


@dataclass(frozen=True)
class Turn:
    """
    One turn of a log.

    Attributes
    ----------
    tag
        The upper bits of the numbers of its tickets.
    time_of_day
        When it was written.
    events
        What happened in it.
    view
        What a result says after it: counts and means, as a text.
    """

    tag: int
    time_of_day: float
    events: tuple[Happened, ...]
    view: str = ""


@dataclass
class Ticket:
    """What the log says about a ticket: its arm, its rank in it, and the turns that asked, answered and forgot it."""

    arm: str
    rank: int
    asked: int
    tag: int
    told: int | None = None
    value: float | None = None
    forgotten: int | None = None


@dataclass
class Folded:
    """
    What follows from the turns, by a model of a few lines.

    Attributes
    ----------
    tickets
        By their ids.
    remaining, in_flight, views
        After each turn; position 0 is before the first.
    """

    tickets: list[Ticket] = field(default_factory=list)
    remaining: list[int] = field(default_factory=list)
    in_flight: list[int] = field(default_factory=list)
    views: list[str] = field(default_factory=list)


def fold(turns: Sequence[Turn], budget: int, view: str = "") -> Folded:
    """Return what follows from turns; Wrong where the budget is exceeded or a ticket is answered twice."""
    found = Folded()
    ranks: dict[str, int] = {}
    spent = flying = 0
    found.remaining.append(budget)
    found.in_flight.append(0)
    found.views.append(view)
    for number, turn in enumerate(turns, 1):
        for event in turn.events:
            ticket = found.tickets[event.ticket] if event.ticket is not None and event.kind != "ask" else None
            match event.kind:
                case "ask":
                    assert event.arm is not None
                    if event.ticket != len(found.tickets):
                        raise Wrong(f"turn {number}: ticket {event.ticket} follows {len(found.tickets) - 1}")
                    found.tickets.append(Ticket(event.arm, ranks.get(event.arm, 0), number, turn.tag))
                    ranks[event.arm] = ranks.get(event.arm, 0) + 1
                    spent, flying = spent + 1, flying + 1
                    if spent > budget:
                        raise Wrong(f"turn {number}: {spent} tickets of a budget of {budget}")
                case "tell" if ticket is not None:
                    if ticket.told is not None:
                        raise Wrong(f"turn {number}: ticket {event.ticket} is answered twice")
                    ticket.told, ticket.value = number, event.value
                    flying -= ticket.forgotten is None
                case "forget" if ticket is not None:
                    if ticket.told is not None or ticket.forgotten is not None:
                        raise Wrong(f"turn {number}: ticket {event.ticket} is forgotten, and was not in flight")
                    ticket.forgotten = number
                    spent, flying = spent - 1, flying - 1
                case "budget" if event.budget is not None:
                    budget = event.budget
        found.remaining.append(budget - spent)
        found.in_flight.append(flying)
        found.views.append(turn.view)
    return found


def check(
    turns: Sequence[Turn],
    budget: int,
    calls: Sequence[Call],
    samples: Sequence[Sample] = (),
    deaths: Mapping[str, float] | None = None,
    lease: float = 0.0,
    seed_of: Callable[[str, int], int] | None = None,
    value_of: Callable[[str, int], float] | None = None,
    view: str = "",
) -> Folded:
    """
    Raise Wrong where histories and the log contradict each other.

    Parameters
    ----------
    turns, budget
        The log, and the budget that it began with.
    calls, samples
        The histories of all writers.
    deaths
        When the lives of drivers ended that did not end by themselves.
    lease
        Seconds that a driver is waited for.
    seed_of, value_of
        The seed of the i-th sample of an arm, and a sampler's value for an arm and a seed.
    view
        What a result says before the first turn.
    """
    folded = fold(turns, budget, view)
    commits = _commits(folded, calls)
    _check_order(calls, commits)
    _check_reads(folded, calls, commits)
    told = _check_end(folded, calls)
    if seed_of is not None and value_of is not None:
        _check_drivers(folded, turns, samples, deaths or {}, lease, seed_of, value_of, told)
    return folded


def _key(call: Call) -> tuple[str, int]:
    return call.writer, call.number


def _commits(folded: Folded, calls: Sequence[Call]) -> dict[tuple[str, int], int]:
    """Return the turn of each acknowledged call that changed something, and check what it says."""
    commits: dict[tuple[str, int], int] = {}
    holders: dict[int, tuple[str, int]] = {}
    for call in calls:
        if call.end is None:
            continue
        if call.op == "ask":
            for number, arm in call.reply:
                ticket = _ticket(folded, call, number)
                if ticket.arm != arm:
                    raise Wrong(f"{call}: ticket {number & ID} is for {ticket.arm!r} in the log")
                if holders.setdefault(number, _key(call)) != _key(call):
                    raise Wrong(f"{call}: ticket {number & ID} was given to {holders[number]} too")
                if commits.setdefault(_key(call), ticket.asked) != ticket.asked:
                    raise Wrong(f"{call}: its tickets are of several turns")
        elif call.op == "tell":
            number, value = call.args
            ticket = _ticket(folded, call, number)
            if ticket.told is None or ticket.value != value:
                raise Wrong(f"{call}: the log has {ticket.value} for ticket {number & ID}")
            commits[_key(call)] = ticket.told
        elif call.op == "forget":
            ticket = _ticket(folded, call, call.args)
            if ticket.forgotten is None:
                raise Wrong(f"{call}: the log does not say so")
            commits[_key(call)] = ticket.forgotten
    return commits


def _ticket(folded: Folded, call: Call, number: int) -> Ticket:
    if number & ID >= len(folded.tickets):
        raise Wrong(f"{call}: ticket {number & ID} is not in the log")
    ticket = folded.tickets[number & ID]
    if ticket.tag != number >> 32:
        raise Wrong(f"{call}: ticket {number & ID} was handed out by another turn")
    return ticket


def _check_order(calls: Sequence[Call], commits: Mapping[tuple[str, int], int]) -> None:
    """Check that a call that returned before another began has the earlier turn."""
    changes = [call for call in calls if _key(call) in commits]
    ended = sorted(changes, key=lambda call: call.end or 0.0)
    position, latest, who = 0, 0, None
    for call in sorted(changes, key=lambda call: call.begin):
        while position < len(ended) and (ended[position].end or 0.0) < call.begin:
            if commits[_key(ended[position])] > latest:
                latest, who = commits[_key(ended[position])], ended[position]
            position += 1
        if commits[_key(call)] <= latest:
            raise Wrong(f"{call} is turn {commits[_key(call)]}, and {who}, which returned before it, is turn {latest}")


def _check_reads(folded: Folded, calls: Sequence[Call], commits: Mapping[tuple[str, int], int]) -> None:
    """
    Check that every reply is what the log said at some turn that the order of calls allows.

    Readers are taken in the order in which they began, each at the earliest turn that it can be at. What a driver saw
    (`seen`) is its own replica after one of its turns, which others may have left behind: it only must not go back, nor
    be ahead of what had begun.
    """
    changes = [call for call in calls if _key(call) in commits]
    by_end = sorted((call.end or 0.0, commits[_key(call)]) for call in changes)
    by_begin = sorted((call.begin, commits[_key(call)]) for call in changes)
    ends, highest = [end for end, _ in by_end], _running(max, [turn for _, turn in by_end])
    begins, lowest = [begin for begin, _ in by_begin], _running(min, [turn for _, turn in reversed(by_begin)])[::-1]
    states: dict[str, Sequence[Any]] = {
        "remaining": folded.remaining, "in_flight": folded.in_flight, "result": folded.views, "seen": folded.views,
    }  # fmt: skip
    places: dict[str, dict[Any, list[int]]] = {}
    for op, found in states.items():
        for turn, state in enumerate(found):
            places.setdefault(op, {}).setdefault(state, []).append(turn)
    ahead: list[tuple[float, int]] = []  # readings that may not have ended when the next one began
    floor = 0
    seen: dict[str, int] = {}
    for call in sorted(calls, key=lambda call: call.begin):
        if call.op not in states or call.end is None:
            continue
        if call.op == "seen":
            low = seen.get(call.writer, 0)
        else:
            while ahead and ahead[0][0] < call.begin:
                floor = max(floor, heapq.heappop(ahead)[1])
            before = bisect.bisect_left(ends, call.begin)
            low = max(floor, highest[before - 1] if before else 0)
        after = bisect.bisect_right(begins, call.end)
        high = lowest[after] - 1 if after < len(lowest) else len(folded.views) - 1
        turns = places[call.op].get(call.reply, [])
        j = bisect.bisect_left(turns, low)
        if j == len(turns) or turns[j] > high:
            raise Wrong(f"{call}: the log did not say so at any turn from {low} to {high}")
        if call.op == "seen":
            seen[call.writer] = turns[j]
        else:
            heapq.heappush(ahead, (call.end, turns[j]))


def _running(choose: Callable[[int, int], int], numbers: Sequence[int]) -> list[int]:
    found: list[int] = []
    for number in numbers:
        found.append(choose(found[-1], number) if found else number)
    return found


def _check_end(folded: Folded, calls: Sequence[Call]) -> set[int]:
    """Check that the budget is handed out and answered; return the tickets that were told by calls."""
    if folded.remaining[-1] != 0:
        raise Wrong(f"{folded.remaining[-1]} of the budget are left in the end")
    if folded.in_flight[-1] != 0:
        raise Wrong(f"{folded.in_flight[-1]} tickets are in flight in the end")
    return {call.args[0] & ID for call in calls if call.op == "tell"} | {
        number & ID for call in calls if call.op == "ask" and call.end is not None for number, _ in call.reply
    }


def _check_drivers(
    folded: Folded,
    turns: Sequence[Turn],
    samples: Sequence[Sample],
    deaths: Mapping[str, float],
    lease: float,
    seed_of: Callable[[str, int], int],
    value_of: Callable[[str, int], float],
    told: set[int],
) -> None:
    by_seed = {}
    for j, ticket in enumerate(folded.tickets):
        seed = seed_of(ticket.arm, ticket.rank)
        by_seed[ticket.arm, seed] = ticket
        if j not in told and ticket.value is not None and ticket.value != value_of(ticket.arm, seed):
            raise Wrong(f"ticket {j} is sample {ticket.rank} of {ticket.arm!r} and has the value of another one")
    first: dict[tuple[str, int], list[Sample]] = {}
    for sample in sorted(samples, key=lambda sample: sample.begin):
        found = by_seed.get((sample.arm, sample.seed))
        # What is sampled within a turn has no owner before the turn is committed, which it may never be: the turn of a
        # writer whose connection was cut meanwhile is not, and its tickets are those of whoever comes next.
        if found is None or sample.inside:
            continue
        if deaths.get(sample.life, math.inf) <= sample.begin:
            continue  # a worker that outlived its driver; nobody will take its answer
        over = turns[found.asked - 1].time_of_day + lease
        for other in first.setdefault((sample.arm, sample.seed), []):
            if other.life != sample.life and not (
                deaths.get(other.life, math.inf) <= sample.begin or sample.time_of_day >= over
            ):
                raise Wrong(f"{sample}: {other.life} had the ticket, and its lease was not over")
        first[sample.arm, sample.seed].append(sample)
