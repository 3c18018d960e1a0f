"""
The state of a study in memory: records with named fields, in flat buffers.

Compiled functions take a flat buffer faster than an array of records, and viewing it as records inside them costs next
to nothing. So Python and the compiled steps look at the same memory in two ways. `State` has the records by name for
Python; `open_book` has them for the steps, from three flat buffers:

- `memory`: the header, a record for each arm with the own numbers that the strategy keeps for it, the numbers that it
  pools and the sums they were made of, the queue of arms by key and, where the strategy has a floor, the queue of arms
  by pulls, the sizes of the arms' populations where some are finite and, where samples have costs, a record of what
  those of each arm cost and the queue of arms by cost;
- `rule`: the strategy, as `functions.compile_rule` made it;
- `tickets`: a record for each ticket, in the order of asking.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.base.errors import InvalidInput
from equipoise.compiled import inlined, records, spaced_records
from equipoise.engine.functions import FUNCTIONS
from equipoise.numeric.heap import ENTRY
from equipoise.strategies import Strategy

# What there is one of in a study.
HEADER = np.dtype(
    [
        ("arms", np.int64),  # how many there are
        ("warmup", np.int64),  # samples of each arm before the strategy is asked
        ("arm_words", np.int64),  # of an arm's record and its own numbers
        ("pooled_at", np.int64),  # the words at which the pooled numbers, the sums and the queues begin
        ("sums_at", np.int64),
        ("by_key_at", np.int64),
        ("by_pulls_at", np.int64),
        ("sizes_at", np.int64),  # the word at which the sizes of populations begin; 0 where all are infinite
        ("prices_at", np.int64),  # the words at which prices and the queue of costs begin; 0 where there are no costs
        ("by_cost_at", np.int64),
        ("samples", np.int64),  # samples in, of all arms
        ("next_refresh", np.int64),  # samples at which the pooled numbers are computed next
        ("exponent", np.float64),  # of a variance in a key,
        ("finite_exponent", np.float64),  # and of the part of a finite population that is not sampled yet
        ("low", np.float64),  # the ends of the support
        ("high", np.float64),
        ("binary", np.int64),  # 1 where samples are 0 or 1
        ("issued", np.int64),  # tickets handed out,
        ("used", np.int64),  # and those of them that were not forgotten
        ("credit", np.int64),  # tickets that may be handed out before budget and room are looked at again
        ("tops", np.float64),  # the sum of the arms' tops,
        ("tops_seen", np.float64),  # and what it was when the keys of all silent arms were computed last
        ("declined", np.int64),  # tickets that were declined, of all arms
        ("spent", np.float64),  # where samples have costs: what the tickets cost,
        ("carry", np.float64),  # what rounding took from that sum,
        ("limit", np.float64),  # the most it may come to,
        ("cost_power", np.float64),  # and the power of a cost in a key
    ]
)

ARM = np.dtype(
    [
        ("count", np.int64),  # samples in
        ("pulls", np.int64),  # samples in or in flight
        ("shift", np.float64),  # 0 unless the mean is far from it (`moments.far`),
        ("mean", np.float64),  # less the shift
        ("m2", np.float64),  # the sum of squared deviations from the mean
        ("scale", np.float64),  # the objective's, from the arm's weight and cost
        ("top", np.float64),  # the key times the pulls, which changes with evidence alone; 0 while there is none
        ("cost", np.float64),  # that is expected of one sample
        ("retired", np.int32),  # 1 where no more samples are asked for
        ("declined", np.int32),  # tickets that were declined
    ]
)

# What the samples of an arm cost.
PRICE = np.dtype(
    [
        ("declared", np.float64),  # what one was expected to cost at first
        ("scale", np.float64),  # the objective's, at that cost
        ("paid", np.int64),  # how many real costs are known,
        ("bill", np.float64),  # and their sum
        ("unpaid", np.int64),  # tickets that are charged with what is expected
    ]
)

TICKET = np.dtype([("arm", np.int32), ("status", np.int32), ("value", np.float64)])

# The status of a ticket. ANSWERED_LATE is that of one that was given back and answered all the same; WITHDRAWN that of
# one that was given back because its arm had no more samples.
IN_FLIGHT, ANSWERED, FORGOTTEN, ANSWERED_LATE, DECLINED, WITHDRAWN = range(6)

# What a header says about the sizes and positions of the rest.
_SHAPE = (
    "arms", "arm_words", "pooled_at", "sums_at", "by_key_at", "by_pulls_at", "sizes_at", "prices_at", "by_cost_at",
)  # fmt: skip

# Sizes in words of eight bytes.
_HEADER, _ARM, _PRICE, _ENTRY, _TICKET = (record.itemsize // 8 for record in (HEADER, ARM, PRICE, ENTRY, TICKET))
_FIRST_TICKETS = 256


def word(name: str) -> int:
    """Return the place among the words of a study at which a field of the header stands."""
    assert HEADER.fields is not None
    return int(HEADER.fields[name][1]) // 8


class State:
    """
    The state of a study, for Python.

    Parameters
    ----------
    arms
        How many there are.
    strategy
        What it keeps, pools and sums, and whether it has a floor.
    sizes
        Those of the arms' populations; None where all are infinite.
    costs
        What a sample of each arm is expected to cost; None where samples have no costs.

    Attributes
    ----------
    memory, ticket_memory
        The flat buffers that the steps take.
    header, arms, prices, tickets
        Views of them with named fields: `header["samples"]`, `arms["mean"]`, `prices["bill"]`, `tickets["status"]`;
        without costs `prices` is empty.
    by_cost
        The queue of arms by cost, the cheapest first; empty without costs.
    means
        The arms' means, shifts included.
    own, pooled
        Views of the strategy's numbers: `own[k, 0]`, `pooled[0]`.
    """

    def __init__(self, arms: int, strategy: Strategy, sizes: Floats | None, costs: Floats | None = None) -> None:
        own, pooled, sums, queue = len(strategy.own), len(strategy.pooled), len(strategy.sums), _ENTRY * arms
        floor, finite, priced = strategy.has_floor(), sizes is not None, costs is not None
        blocks = (_HEADER, (_ARM + own) * arms, pooled, sums, queue, queue * floor, arms * finite)
        _, _, pooled_at, sums_at, by_key_at, by_pulls_at, sizes_at, prices_at = itertools.accumulate(blocks, initial=0)
        by_cost_at = prices_at + _PRICE * arms * priced
        self.memory: Floats = np.zeros(by_cost_at + queue * priced)
        header = self.memory[:_HEADER].view(HEADER)[0]
        header["arms"], header["arm_words"] = arms, _ARM + own
        header["pooled_at"], header["sums_at"] = pooled_at, sums_at
        header["by_key_at"], header["by_pulls_at"] = by_key_at, by_pulls_at
        header["sizes_at"] = sizes_at if finite else 0
        header["prices_at"], header["by_cost_at"] = (prices_at, by_cost_at) if priced else (0, 0)
        if sizes is not None:
            self.memory[sizes_at:prices_at] = sizes
        self.tickets = np.zeros(_FIRST_TICKETS, TICKET)
        self._view()
        # Before the first pull every key is infinite.
        for first, last, score in ((by_key_at, by_pulls_at, math.inf), (by_pulls_at, sizes_at, 0.0)):
            entries = self.memory[first:last].view(ENTRY)
            entries["score"] = score
            entries["arm"] = entries["place"] = np.arange(len(entries))
        if costs is not None:
            self.arms["cost"] = self.prices["declared"] = costs
            # In order, which makes a heap.
            order = np.argsort(costs, kind="stable")
            self.by_cost["score"], self.by_cost["arm"] = -costs[order], order
            self.by_cost["place"][order] = np.arange(arms)

    def _view(self) -> None:
        self.header = header = self.memory[:_HEADER].view(HEADER)[0]
        rows = self.memory[_HEADER : header["pooled_at"]].reshape(-1, header["arm_words"])
        self.arms = rows[:, :_ARM].view(ARM)[:, 0]
        self.own: Floats = rows[:, _ARM:]
        self.pooled: Floats = self.memory[header["pooled_at"] : header["sums_at"]]
        prices_at, by_cost_at = (header[name] or len(self.memory) for name in ("prices_at", "by_cost_at"))
        self.prices = self.memory[prices_at:by_cost_at].view(PRICE)
        self.by_cost = self.memory[by_cost_at:].view(ENTRY)
        self.ticket_memory: Floats = self.tickets.view(np.float64)

    def with_tickets(self, tickets: int) -> State:
        """Return a copy with room for its first tickets alone."""
        found = State.__new__(State)
        found.__setstate__({"memory": self.memory.copy(), "tickets": self.tickets[:tickets].copy()})
        return found

    @property
    def means(self) -> Floats:
        return np.asarray(self.arms["shift"] + self.arms["mean"])

    def make_room(self, tickets: int) -> None:
        """Make room for this many tickets in all."""
        more = np.zeros(max(2 * len(self.tickets), tickets, _FIRST_TICKETS), TICKET)
        more[: len(self.tickets)] = self.tickets
        self.tickets = more
        self._view()

    def check(self, memory: Any, tickets: Any) -> None:
        """
        Refuse buffers that cannot be those of a study like this one: the steps would read and write elsewhere.

        Raises
        ------
        ValueError
            If a size, a position or an arm in them is not one of this study's.
        """
        if memory.dtype != np.float64 or memory.shape != self.memory.shape or tickets.dtype != TICKET:
            raise InvalidInput("the state is not one of this study")
        found = memory[:_HEADER].view(HEADER)[0]
        arms = self.header["arms"]
        if any(found[name] != self.header[name] for name in _SHAPE):
            raise InvalidInput("the state is not one of this study")
        by_key, by_pulls, after = (self.header["by_key_at"], self.header["by_pulls_at"], self._queues_end())
        by_cost = self.header["by_cost_at"] or len(memory)
        for first, last in ((by_key, by_pulls), (by_pulls, after), (by_cost, len(memory))):
            queue = memory[first:last].view(ENTRY)
            everyone = np.arange(len(queue))
            if not np.array_equal(np.sort(queue["arm"]), everyone) or not np.array_equal(
                queue["place"][queue["arm"]], everyone
            ):
                raise InvalidInput("a queue of the state does not have every arm once")
        if len(tickets) and not (tickets["arm"].min() >= 0 and tickets["arm"].max() < arms):
            raise InvalidInput("a ticket of the state is for an arm that does not exist")

    def _queues_end(self) -> int:
        """Return where the queue by pulls ends, which is empty without a floor."""
        return next(
            (int(self.header[name]) for name in ("sizes_at", "prices_at") if self.header[name]), len(self.memory)
        )

    def __getstate__(self) -> dict[str, Any]:
        return {"memory": self.memory, "tickets": self.tickets}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.memory, self.tickets = saved["memory"], saved["tickets"]
        self._view()


class Book(NamedTuple):
    """The state of a study and its strategy, for the steps: `book.arms[k].mean`, `book.header.samples`."""

    memory: Any
    header: Any
    arms: Any
    by_key: Any
    by_pulls: Any
    prices: Any
    by_cost: Any
    functions: Any
    rule: Any


@inlined
def open_book(memory: Any, rule: Any) -> Book:
    """
    Return the records in the buffers of a study.

    Without a floor `by_pulls` must not be looked at, nor `prices` and `by_cost` without costs.
    """
    header = records(memory, 0, 1, HEADER)[0]
    arms = header.arms
    return Book(
        memory,
        header,
        spaced_records(memory, _HEADER, arms, header.arm_words, ARM),
        records(memory, header.by_key_at, arms, ENTRY),
        records(memory, header.by_pulls_at, arms, ENTRY),
        records(memory, header.prices_at, arms, PRICE),
        records(memory, header.by_cost_at, arms, ENTRY),
        records(rule, 0, 1, FUNCTIONS)[0],
        rule,
    )


@inlined
def mean_of(arm: Any) -> float:
    """Return the mean of an arm, its shift included."""
    return arm.shift + arm.mean  # type: ignore[no-any-return]


@inlined
def own_at(header: Any, k: int) -> int:
    """Return the word at which the own numbers of arm k begin."""
    return _HEADER + k * header.arm_words + _ARM  # type: ignore[no-any-return]


@inlined
def tickets_of(memory: Any) -> Any:
    """Return the records in the buffer of a study's tickets."""
    return records(memory, 0, len(memory) // _TICKET, TICKET)
