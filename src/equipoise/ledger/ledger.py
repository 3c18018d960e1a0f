"""The ledger of a study: its state, budget and tickets, by ids and places."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.base.errors import EquipoiseError, InvalidInput
from equipoise.base.inputs import LARGEST, MOST_TICKETS, Names, integer, shown
from equipoise.base.tables import amount, count
from equipoise.compiled import fork
from equipoise.engine.functions import compile_rule
from equipoise.ledger import steps
from equipoise.ledger.evidence import Answered, Lines
from equipoise.ledger.snapshot import Design, Snapshot
from equipoise.ledger.state import ANSWERED, ANSWERED_LATE, DECLINED, FORGOTTEN, IN_FLIGHT, WITHDRAWN, State, word
from equipoise.numeric import moments
from equipoise.problem import Objective, money
from equipoise.problem.objective import GREATEST, real_cost
from equipoise.problem.objective import objective as objective_of
from equipoise.strategies import Strategy, Support, check_numbers, check_params, check_strategy, initial_own, label
from equipoise.strategies.key import next_refresh

# Where some numbers stand among the words of a study.
_ISSUED, _USED, _CREDIT = map(word, ("issued", "used", "credit"))

# In place of the costs of many tickets: none is known.
_NO_COSTS: Final = np.empty(0)

# The format of a pickled study; another one is refused.
PICKLE_FORMAT: Final = 7
# The largest M2 that samples from elsewhere may lead to; variances and what is computed from them stay finite.
LARGEST_M2: Final = 1e306


class InvalidVariance(EquipoiseError):
    """A strategy gave a variance that is no finite number >= 0. The change that led to it is kept."""


class TooLate(InvalidInput):
    """A ticket was given back, and nothing is left of the budget or of the population to take its answer."""


class Ledger:
    """
    What was asked and told, and what follows from it.

    Arms are places (0, 1, 2, ... in the order of their names), tickets are ids (0, 1, 2, ... in the order of asking). A
    call that is refused changes nothing.

    `ask_one` and `tell_one` may be called by any thread at any time. Everything else is for the holder of a lock, which
    is the study's (`Study`).

    Parameters
    ----------
    names
        The arms.
    budget
        How many samples may be asked for, or with costs how much they may cost; None for no limit.
    strategy, support, objective
        As checked by `Study`.
    populations
        The sizes of the arms' populations, where samples are drawn without replacement; None if all are infinite.

    Attributes
    ----------
    arm_of
        The place of the arm of each ticket, by its id; to be read.
    ask_one, tell_one
        The steps of this name, of no argument, and of a ticket, the place of its arm and a value: the fast way. Where
        they refuse, `ask` and `tell` do it, or say why not.
    """

    def __init__(
        self,
        names: Names,
        budget: float | None,
        strategy: Strategy,
        support: Support,
        objective: Objective,
        populations: Floats | None = None,
    ) -> None:
        check_strategy(strategy)
        self.populations = populations
        self.names, self.strategy, self.support, self.objective = names, strategy, support, objective
        arms = len(names)
        self.budget = self._checked_budget(budget)
        self._params = self._params_for(self.budget)
        check_numbers(strategy, self._params, support)
        self._rule = compile_rule(strategy, self._params)
        self._from_elsewhere = 0
        self._open = arms
        # Sequences are tuned to what was planned before the first sample.
        self._planned = None if self.budget is None else objective.samples(self.budget, arms)
        self._lines: Lines | None = None
        self._state = State(arms, strategy, populations, None if objective.costs is None else objective.cost(arms))
        self._state.own[:] = initial_own(strategy, arms, objective.units(arms))
        self._set_scales()
        header = self._state.header
        header["warmup"], header["next_refresh"] = strategy.warmup, next_refresh(0, arms)
        header["exponent"], header["finite_exponent"] = objective.exponent, objective.finite_exponent
        header["low"], header["high"] = support if isinstance(support, tuple) else (-LARGEST, LARGEST)
        header["binary"], header["limit"] = support == "binary", self._limit(self.budget)
        header["cost_power"] = objective.cost_power
        self._keep_buffers()
        if strategy.warmup == 0:
            # The one case in which there is a key before the first sample.
            steps.rekey_study(self._memory, self._rule)

    def _keep_buffers(self) -> None:
        """Keep what every ask and tell needs at hand."""
        self._memory, self._ticket_memory = self._state.memory, self._state.ticket_memory
        # A view of memory gives plain ints, faster than an array does.
        self.arm_of = self._state.tickets["arm"].data.toreadonly()
        self._values = self._state.tickets["value"]
        self._words = self._memory.view(np.int64).data
        buffers = (self._memory, self._rule, self._ticket_memory)
        self.ask_one, self.tell_one = partial(steps.ask_one, *buffers), partial(steps.tell_one, *buffers)

    def _set_scales(self) -> None:
        """Set the arms' scales: the objective's, at what samples are expected to cost now."""
        arms, prices, scales = self._state.arms, self._state.prices, self.objective.scales(len(self.names))
        arms["scale"] = scales
        if self.objective.costs is not None:
            prices["scale"] = scales
            arms["scale"] *= (arms["cost"] / prices["declared"]) ** self.objective.cost_power

    # ---- what can be read

    @property
    def issued(self) -> int:
        """How many tickets were ever handed out; their ids are below this."""
        return self._words[_ISSUED]

    @property
    def _used(self) -> int:
        """How many tickets were handed out, less those that were forgotten."""
        return self._words[_USED]

    @property
    def spent(self) -> float:
        """What the tickets cost that were handed out and not forgotten, as far as known; their number without costs."""
        header = self._state.header
        return self._used if self.objective.costs is None else float(header["spent"] + header["carry"])

    @property
    def bought(self) -> float:
        """How many samples the whole budget pays for, at the cheapest of the declared costs; 0 without a budget."""
        return 0 if self.budget is None else self.budget / min(self.objective.costs or (1.0,))

    @property
    def remaining(self) -> float:
        """How many tickets may still be handed out, or with costs how much is left; infinite without a budget."""
        return math.inf if self.budget is None else max(0, self.budget - self.spent)

    @property
    def samples(self) -> int:
        """How many samples are in, those from elsewhere included."""
        return int(self._state.header["samples"])

    @property
    def in_flight(self) -> int:
        """How many tickets are neither answered nor declined nor forgotten."""
        return int(self._state.arms["pulls"].sum() - self._state.arms["count"].sum())

    @property
    def waiting(self) -> Ints:
        """How many tickets of each arm are in flight."""
        return np.asarray(self._state.arms["pulls"] - self._state.arms["count"])

    @property
    def all_retired(self) -> bool:
        """Whether no arm is left to ask for."""
        return self._open == 0

    @property
    def all_used_up(self) -> bool:
        """Whether the population of every arm that is not retired has been handed out."""
        return self.populations is not None and bool((self.retired | self._used_up).all())

    @property
    def _used_up(self) -> Bools:
        """For each arm, whether its population has been handed out; only where there are populations."""
        arms = self._state.arms
        return np.asarray(arms["pulls"] + arms["declined"] >= self.populations)

    @property
    def done(self) -> bool:
        """Whether no further ticket can be handed out."""
        if not self._open:
            return True
        if self.objective.costs is None:
            return (self.budget is not None and self._used >= self.budget) or self.all_used_up
        header, cheapest = self._state.header, self.cheapest
        return cheapest == math.inf or not money.affordable(cheapest, header["spent"], header["carry"], header["limit"])

    @property
    def cheapest(self) -> float:
        """What the next sample costs of the cheapest arm that is neither retired nor used up; infinite without one."""
        return 1.0 if self.objective.costs is None else -float(self._state.by_cost["score"][0])

    @property
    def costs(self) -> Floats | None:
        """The mean of each arm's real costs, or the declared cost where none is known; None without costs."""
        if self.objective.costs is None:
            return None
        prices = self._state.prices
        return np.where(prices["paid"] > 0, prices["bill"] / np.maximum(prices["paid"], 1), prices["declared"])

    @property
    def declined(self) -> Ints:
        """For each arm, how many of its tickets were declined."""
        return self._state.arms["declined"].astype(np.int64)

    @property
    def retired(self) -> Bools:
        """For each arm, whether it is retired."""
        return np.asarray(self._state.arms["retired"] != 0)

    @property
    def tickets(self) -> Any:
        """A copy of the records of all tickets, with the fields `arm`, `status` (see `state`) and `value`."""
        return self._state.tickets[: self.issued].copy()

    def status(self, tickets: Any) -> Any:
        """Return the status of several tickets (see `state`), by an array of ids or a slice."""
        return self._state.tickets["status"][tickets]

    def is_in_flight(self, ticket: int) -> bool:
        """Return whether a ticket is neither answered nor declined nor forgotten."""
        return bool(self._state.tickets["status"][ticket] == IN_FLIGHT)

    def is_declined(self, ticket: int) -> bool:
        """Return whether a ticket was declined."""
        return bool(self._state.tickets["status"][ticket] == DECLINED)

    def in_flight_ids(self) -> Ints:
        """Return the ids of the tickets in flight, in the order of asking."""
        return np.flatnonzero(self._state.tickets["status"][: self.issued] == IN_FLIGHT)

    def arms_of(self, tickets: Any) -> Ints:
        """Return the places of the arms of several tickets, by an array of ids or a slice."""
        return np.asarray(self._state.tickets["arm"][tickets], np.int64)

    def is_too_late(self, ticket: int) -> bool:
        """Return whether a ticket was given back, and its answer would be refused as its place was taken."""
        return bool(steps.is_too_late(self._memory, self._rule, self._ticket_memory, ticket))

    def answers(self, tickets: Any) -> Any:
        """Return the values of tickets, by an id, an array of them or a slice; NaN where there is none yet."""
        return self._values.item(tickets) if type(tickets) is int else self._values[tickets]

    def possible(self, values: Any) -> Any:
        """Return whether a value may be told, or which of several."""
        if self.support == "binary":
            return (values == 0) | (values == 1)
        low, high = self.support or (-LARGEST, LARGEST)
        return (values >= low) & (values <= high)

    def refusal(self, value: float) -> str:
        """Return why a value may not be told that is not possible."""
        if self.support is None or not math.isfinite(value):
            reason = "; its square would overflow" if math.isfinite(value) else ""
            return f"a sample must be a finite number, got {value!r}{reason}"
        return f"a sample must be {self._support_in_words()}, got {value!r}"

    def _support_in_words(self) -> str:
        if not isinstance(self.support, tuple):
            return "0 or 1"
        return f"between {amount(self.support[0])} and {amount(self.support[1])}"

    def snapshot(self, seconds: Floats | None = None, pace: Floats | None = None) -> Snapshot:
        """
        Return a copy of what is known now.

        Parameters
        ----------
        seconds
            How long each sample took, by the tickets' ids, NaN where that is not known.
        pace
            Seconds that a sample of each arm takes by the clock on the wall.
        """
        fork.finish()  # what a result needs may be compiled there
        if self._lines is None:
            self._lines = Lines(len(self.names), self.support, self._planned, self.populations)
        arms = self._state.arms
        counts, declined, costs = arms["count"].copy(), self.declined, self.costs
        in_flight, answered = self.in_flight, int(counts.sum()) - self._from_elsewhere
        given_back = self.issued - in_flight - answered - int(declined.sum())
        missing, withdrawn = arms["pulls"] - counts, 0
        if given_back:  # else there is no need to look at every ticket
            tickets = self._state.tickets[: self.issued]
            withdrawn = int((tickets["status"] == WITHDRAWN).sum())
            missing += np.bincount(tickets["arm"][tickets["status"] == FORGOTTEN], minlength=len(counts))
        objective, bill = self.objective, self.spent - in_flight
        if costs is not None:
            bill = self.spent - math.fsum((arms["pulls"] - counts) * arms["cost"]) if in_flight else self.spent
            if self._state.prices["paid"].any():
                objective = replace(objective, costs=tuple(arms["cost"].tolist()))
        return Snapshot(
            names=self.names,
            strategy=self.strategy.name or type(self.strategy).__name__,
            support=self.support,
            objective=objective,
            counts=counts,
            means=self._state.means,
            m2s=arms["m2"].copy(),
            spent=self.spent,
            bill=bill,
            declined=declined if declined.any() else None,
            replies=self._replies() if declined.any() else None,
            costs=costs,
            evidence=self._lines.look(
                self._state.tickets,
                Answered(self.issued, given_back - withdrawn, in_flight, int(declined.sum()), withdrawn),
                missing,
                self.support is None and self._like_binary(),
                None if seconds is None else np.asarray(seconds, dtype=float),
            ),
            populations=self.populations,
            design=Design(self.strategy, self._params, self.retired.copy()),
            pace=pace,
            budget=self.budget,
        )

    def _like_binary(self) -> bool:
        """Return whether the moments of every arm are those of zeros and ones: M2 = n p (1 - p), up to rounding."""
        arms, means = self._state.arms, self._state.means
        p = np.clip(means, 0, 1)
        off = np.maximum(np.abs(arms["m2"] - arms["count"] * p * (1 - p)), np.abs(means - p))
        return bool((off <= 1e-9 * arms["count"])[arms["count"] > 0].all())

    def _replies(self) -> Ints:
        """Return how many tickets of each arm were answered or declined."""
        tickets = self._state.tickets[: self.issued]
        replied = np.isin(tickets["status"], (ANSWERED, ANSWERED_LATE, DECLINED))
        return np.bincount(tickets["arm"][replied], minlength=len(self.names))

    def fingerprint(self) -> dict[str, Any]:
        """Return all that decisions and results depend on, by what it is; two ledgers with equal ones agree."""
        memory = self._state.memory.copy()
        # How far ahead one looked is no part of a study.
        memory[_CREDIT] = 0
        return {
            "arms": tuple(self.names.names),
            "counts, means, own and pooled numbers, keys, queues": memory.tobytes(),
            "parameters": self._params,
            "tickets": self._state.tickets[: self.issued].tobytes(),
            "objective": self.objective,
            "populations": None if self.populations is None else tuple(self.populations.tolist()),
            "budget": (self.budget, self.spent, self._used),
            "strategy": self.strategy,
        }

    # ---- asking

    def ask(self, m: int) -> int:
        """Hand out up to m tickets, as many as the budget and the arms allow; return how many. They are the latest."""
        if m == 1 and self.ask_one() >= 0:
            return 1
        if m > self._words[_CREDIT]:
            m = min(m, self._renew_credit(m))
            if m == 0:
                return 0
            if m == 1 and self.ask_one() >= 0:
                return 1
        found = steps.ask(self._memory, self._rule, self._ticket_memory, m)
        if found < 0:
            found = -1 - found
            if found == 0:
                raise EquipoiseError(
                    f"the floor of strategy {self.strategy!r} must be a number, got NaN after "
                    f"{count(self._used, 'pull')}"
                )
        return found

    def _renew_credit(self, m: int) -> int:
        """Make room for m tickets, and return how many can be handed out at most; the steps count the money."""
        if not self._open:
            return 0
        most = m
        if self.budget is not None and self.objective.costs is None:
            most = int(self.budget) - self._used
        elif self.budget is not None:
            # More may be spent than the budget, where samples cost more than expected.
            most = int(max(0, self._state.header["limit"] - self.spent) / self.cheapest) + 1
        wanted = min(m, most)
        if wanted > MOST_TICKETS:
            raise InvalidInput(f"the tickets asked for at once must be at most {MOST_TICKETS:,}, got {wanted:,}")
        self._make_room(wanted)
        credit = self._room_left() if self.budget is None else min(most, self._room_left())
        self._words[_CREDIT] = credit
        return credit

    def ask_for(self, places: Ints) -> int:
        """Hand out tickets for these arms, whatever the strategy says, up to the first without a place; how many."""
        self._make_room(len(places))
        found = steps.ask_for(self._memory, self._rule, self._ticket_memory, places)
        self._words[_CREDIT] = 0
        return int(found)

    def latest(self, tickets: int) -> range:
        """Return the ids of the tickets that were handed out last, given their number."""
        return range(self.issued - tickets, self.issued)

    def _room_left(self) -> int:
        return len(self._state.tickets) - self.issued

    def _make_room(self, m: int) -> None:
        if m > self._room_left():
            self._state.make_room(self.issued + m)
            self._keep_buffers()

    # ---- telling

    def tell(
        self,
        tickets: int | Sequence[int] | Ints,
        values: Any,
        arm: int | None = None,
        costs: float | Sequence[float] | Floats | None = None,
    ) -> None:
        """
        Take the value of a ticket, or of an array of tickets: all of them or none.

        Parameters
        ----------
        tickets
            An id, or several. Those that were given back take a place in the budget again; TooLate where none is left.
        values
            A float, or an array of them.
        arm
            The place that a single ticket is said to be of; it must be right.
        costs
            What the sample really cost, or an array for several, NaN where that is not known; None if it never is.
        """
        if type(tickets) is int:
            place = self.arm_of[tickets] if arm is None else arm
            answer = self.tell_one(tickets, place, values) if costs is None else steps.REFUSED
            if answer <= steps.KNOWN:
                return
            if answer != steps.REFUSED or self.arm_of[tickets] != place or tickets >= self.issued:
                self.refuse(answer, tickets, place, values)
            values, costs = np.array([values]), None if costs is None else np.array([costs])
        ids = np.atleast_1d(np.asarray(tickets, np.int64))
        before = np.empty(len(ids), np.int32)
        paid = _NO_COSTS if costs is None else self._checked_costs(costs, len(ids))
        answer, j = steps.tell_many(self._memory, self._rule, self._ticket_memory, ids, values, paid, before)
        if answer != steps.DONE:
            self.refuse(answer, int(ids[j]), self.arm_of[int(ids[j])], float(values[j]))

    def checked_cost(self, cost: float) -> float:
        """Return the real cost of a ticket, or refuse what cannot be one."""
        real_cost(cost)
        if self.objective.costs is None:
            raise InvalidInput(f"cost needs a study with costs=..., such as the costs you expect, got {shown(cost)}")
        return cost

    def _cost(self, cost: Any) -> float:
        """Return the real cost of a ticket, NaN where it is not known."""
        return math.nan if cost is None or math.isnan(cost) else self.checked_cost(float(cost))

    def _checked_costs(self, costs: Any, tickets: int) -> Floats:
        """Return the real costs of several tickets as an array, empty where none is known, or refuse them."""
        found = np.ascontiguousarray(costs, np.float64)
        if found.shape != (tickets,):
            raise InvalidInput(f"costs must have one value for each of the {tickets:,} tickets, got {shown(costs)}")
        known = ~np.isnan(found)
        if not known.any():
            return _NO_COSTS
        wrong = known if self.objective.costs is None else known & ~((found >= 0) & (found <= GREATEST))
        if wrong.any():
            self.checked_cost(float(found[wrong.argmax()]))
        return found

    def refuse(self, answer: int, ticket: int, place: int, value: float) -> None:
        """Raise what a step answered to the value of a ticket that is said to be of the arm at this place."""
        self._judge(answer, "the sample is kept")
        if ticket >= self.issued:
            raise InvalidInput(f"ticket {ticket} was never handed out")
        if self.arm_of[ticket] != place:
            self._refuse_arm(ticket, place)
        what = f"ticket {ticket} of arm {self.names.names[self.arm_of[ticket]]!r}"
        if answer == steps.OUTSIDE:
            raise InvalidInput(f"{what}: {self.refusal(value)}")
        if answer == steps.UNANSWERED:
            raise InvalidInput(f"{what} was already declined, got {value!r}")
        if answer == steps.TOO_LATE:
            self._refuse_late(ticket)
        known = float(self.answers(ticket))
        if math.isnan(known):
            raise InvalidInput(f"{what} comes twice in one call with different values, one of them {value!r}")
        raise InvalidInput(f"{what} was already answered with {known!r}, got {value!r}")

    def _refuse_late(self, ticket: int) -> None:
        place = self.arm_of[ticket]
        what = "the budget" if self.populations is None else "the budget or its population"
        raise TooLate(
            f"ticket {ticket} of arm {self.names.names[place]!r} was given back, and nothing is left of {what} for a "
            "late answer"
        )

    def _refuse_arm(self, ticket: int, place: int) -> None:
        own, other = (self.names.names[k] for k in (self.arm_of[ticket], place))
        raise InvalidInput(f"ticket {ticket} was handed out for arm {own!r}, not for {other!r}")

    def tell_moments(self, place: int, samples: int, mean: float, m2: float) -> None:
        """Take samples of an arm from elsewhere, as their number, mean and sum of squared deviations from it."""
        samples = integer("count", samples, least=1)
        if samples > money.MOST_SAMPLES - int(self._state.header["samples"]):
            raise InvalidInput(f"count must not take a study past 2**53 samples, got {samples:,}")
        if not 0 <= m2 < LARGEST**2:
            raise InvalidInput(f"m2 must not be negative, as a sum of squares, and below {LARGEST**2:g}, got {m2!r}")
        if samples == 1 and m2 > 0:
            raise InvalidInput(f"m2 must be 0 for one sample, got {m2!r}")
        if not self.possible(mean) and not (self.support == "binary" and 0 <= mean <= 1):
            raise InvalidInput(f"mean: {self.refusal(mean)}")
        if self.support is not None:
            self._check_moments(samples, mean, m2)
        arm = self._state.arms[place]
        known = int(arm["count"])
        if self.populations is not None and known + samples > (size := self.populations[place]):
            raise InvalidInput(
                f"arm {shown(self.names.names[place])} must have at most the {size:,.0f} samples of its population, "
                f"got {samples:,} besides {known:,}"
            )
        _, _, merged = moments.merge(int(arm["count"]), float(arm["mean"]), float(arm["m2"]), samples, mean, m2)
        if not merged <= LARGEST_M2:
            raise InvalidInput(
                f"mean and m2 must not make the variance of arm {self.names.names[place]!r} overflow, "
                f"got mean {mean!r} and m2 {m2!r} where its mean is {float(arm['mean'])!r}"
            )
        self._from_elsewhere += samples
        self._judge(steps.tell_moments(self._memory, self._rule, place, samples, mean, m2), "the samples are kept")

    def _check_moments(self, samples: int, mean: float, m2: float) -> None:
        """Refuse moments that no samples in the support have; what rounding may have done to them is let pass."""
        low, high = self.support if isinstance(self.support, tuple) else (0.0, 1.0)
        width = high - low
        # No sample in [low, high] with this mean varies more; binary samples vary by exactly this much.
        most = samples * (high - mean) * (mean - low)
        slack = samples * width * (1e-9 * width + 1e-15 * max(abs(low), abs(high)))
        which = f"of {count(samples, 'sample')} {self._support_in_words()} with mean {mean!r}"
        if m2 > most + slack:
            raise InvalidInput(f"m2 must be at most {amount(most)}, the largest {which}, got {m2!r}")
        if self.support != "binary":
            return
        if abs(samples * mean - round(samples * mean)) > 1e-6 + 1e-9 * samples:
            raise InvalidInput(f"mean must be that of {count(samples, 'sample')} 0 or 1, got {mean!r}")
        if m2 < most - slack:
            raise InvalidInput(f"m2 must be {amount(most)}, the one {which}, got {m2!r}")

    def _judge(self, answer: int, what_happened: str) -> None:
        if answer == steps.BAD_VARIANCE:
            raise InvalidVariance(
                f"the variance that strategy {self.strategy!r} gives must be a finite number >= 0, and it is not; "
                f"{what_happened}"
            )

    # ---- folding a log

    def fold(self, actions: Ints, places: Ints, values: Floats, costs: Floats | None) -> int:
        """
        Apply what a log has of tickets (`steps.ASK`, TELL and DECLINE), in order.

        Where a strategy gave an invalid variance, the sample was kept when the log was written, and is now. Places must
        not be negative; `costs` are NaN where they are not known.

        Returns
        -------
        int
            The position of the first that cannot be, of which nothing is applied; -1 where all can.
        """
        paid = _NO_COSTS if costs is None else self._checked_costs(costs, len(places))
        self._make_room(int(np.count_nonzero(actions == steps.ASK)))
        wrong = steps.fold(self._memory, self._rule, self._ticket_memory, actions, places, values, paid)
        self._words[_CREDIT] = 0
        return int(wrong)

    def arrays(self) -> dict[str, Any]:
        """Return the state as plain arrays and numbers, from which `restore` makes it again."""
        return {
            "memory": self._state.memory,
            "tickets": self._state.tickets[: self.issued],
            "from_elsewhere": self._from_elsewhere,
            "budget": self.budget,
            "weights": None if self.objective.weights is None else list(self.objective.weights),
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Take the state that `arrays` gave, of a ledger like this one; ValueError where it cannot be one."""
        self._state.check(saved["memory"], saved["tickets"])
        self.set_budget(saved["budget"])
        if self.objective.shares is None:
            weights = saved["weights"]
            self.objective = objective_of(self.names.names, self.objective.p, weights, self.objective.costs)
        self._state.memory[:] = saved["memory"]
        self._state.make_room(len(saved["tickets"]))
        self._state.tickets[: self.issued] = saved["tickets"]
        self._keep_buffers()
        self._from_elsewhere, self._words[_CREDIT] = integer("from_elsewhere", saved["from_elsewhere"], least=0), 0
        self._open = int((~self.retired).sum())

    # ---- what may change on the way

    def forget(self, ticket: int, arm: int | None = None, *, withdrawn: bool = False) -> None:
        """
        Give back a ticket that will not be answered, and its place in the budget; a late answer takes a place again.

        Parameters
        ----------
        ticket, arm
            The ticket, and the place of its arm where it should be checked.
        withdrawn
            Whether it was never sampled, as its arm is retired or has no more samples: then nobody failed to answer.
        """
        place = self.arm_of[ticket] if arm is None else arm
        status = WITHDRAWN if withdrawn else FORGOTTEN
        answer = steps.forget(self._memory, self._rule, self._ticket_memory, ticket, place, status)
        if answer == steps.OTHER_ARM:
            self._refuse_arm(ticket, place)
        if answer == steps.CONFLICT:
            self._refuse_settled("forget", ticket)
        self._judge(answer, "the ticket is forgotten")

    def decline(self, ticket: int, arm: int | None = None, cost: float | None = None) -> None:
        """
        Note that a ticket was asked for and not answered, and will not be: it uses budget, and is not a sample.

        Parameters
        ----------
        ticket
            An id. Declining it again changes nothing.
        arm
            The place that it is said to be of; it must be right.
        cost
            What it really cost; None or NaN where that is not known.
        """
        place = self.arm_of[ticket] if arm is None else arm
        answer = steps.decline(self._memory, self._rule, self._ticket_memory, ticket, place, self._cost(cost))
        if answer == steps.OTHER_ARM:
            self._refuse_arm(ticket, place)
        if answer == steps.CONFLICT:
            self._refuse_settled("decline", ticket)
        if answer == steps.TOO_LATE:
            self._refuse_late(ticket)
        self._judge(answer, "the ticket is declined")

    def _refuse_settled(self, verb: str, ticket: int) -> None:
        declined = self._state.tickets["status"][ticket] == DECLINED
        how = "declined" if declined else f"answered, with {float(self.answers(ticket))!r}"
        arm = self.names.names[self.arm_of[ticket]]
        raise InvalidInput(f"cannot {verb} ticket {ticket} of arm {arm!r}: it has already been {how}")

    def retire(self, place: int) -> None:
        """Ask for no more samples of an arm; answers in flight are still taken."""
        self._set_retired(place, True)

    def reopen(self, place: int) -> None:
        """Ask for samples of a retired arm again."""
        self._set_retired(place, False)

    def _set_retired(self, place: int, retired: bool) -> None:
        arms = self._state.arms
        if bool(arms["retired"][place]) == retired:
            return
        self._open += -1 if retired else 1
        self._words[_CREDIT] = 0
        answer = steps.retire(self._memory, self._rule, place, int(retired))
        self._judge(answer, "the arm is open")

    def set_budget(self, budget: float | None) -> None:
        """Change how many samples may be asked for in all, or what they may cost; parameters are updated."""
        budget = self._checked_budget(budget)
        if budget is not None and self._limit(budget) < self.spent:
            raise InvalidInput(f"budget must be at least the {amount(self.spent)} spent so far, got {amount(budget)}")
        params = self._params_for(budget)
        # What can fail first: the strategy is compiled for its number of parameters.
        self._rule = compile_rule(self.strategy, params)
        self._params, self.budget = params, budget
        self._state.header["limit"], self._words[_CREDIT] = self._limit(budget), 0
        self._keep_buffers()
        # Not what is pooled: that has a schedule of its own.
        self._judge(steps.rekey_study(self._memory, self._rule), "the budget is set")

    def set_weights(self, weights: Iterable[float] | Mapping[Any, float] | None) -> None:
        """Change how much each arm's loss matters; None for 1 each."""
        if self.objective.shares is not None:
            raise InvalidInput("the weights of strata are the squares of their shares and cannot be set")
        self.objective = objective_of(self.names.names, self.objective.p, weights, self.objective.costs)
        self._set_scales()
        step = steps.rekey_study
        if "weight" in self.strategy.own:
            self._state.own[:, self.strategy.own.index("weight")] = self.objective.units(len(self.names))
            if self.strategy.pooled:
                step = steps.refresh_study  # what is pooled is in the unit of the objective
        self._judge(step(self._memory, self._rule), "the weights are set")

    def _limit(self, budget: float | None) -> float:
        return money.limit(budget, min(self.objective.costs or (1.0,)))

    def _params_for(self, budget: float | None) -> tuple[float, ...]:
        """Return the strategy's parameters; its n is the number of samples that the budget buys, spread evenly."""
        arms = len(self.names)
        n = None if budget is None else self.objective.samples(budget, arms)
        return check_params(self.strategy, self.strategy.params(n, arms, self.support))

    def _checked_budget(self, budget: float | None) -> float | None:
        if budget is None:
            return None
        strategy, costs = self.strategy, self.objective.cost(len(self.names))
        first = np.full(len(costs), strategy.warmup)
        if self.populations is not None:
            first = np.minimum(first, self.populations)  # a smaller population is used up before that
        return money.check_budget(
            budget,
            self.objective.costs,
            least=math.fsum(first * costs),
            reason=f"{label(strategy)} starts with {count(strategy.warmup, 'sample')} of each arm",
        )

    # ---- saved and loaded: all but the addresses of compiled functions, which are of this process

    def _layout(self) -> dict[str, Any]:
        """Return what the strategy declares that the layout of the state depends on."""
        return {
            "floor": self.strategy.has_floor(),
            "warmup": self.strategy.warmup,
            "own": self.strategy.own,
            "sums": self.strategy.sums,
            "pooled": self.strategy.pooled,
            "number of params": len(self._params_for(self.budget)),
        }

    def __getstate__(self) -> dict[str, Any]:
        # The lines can be made from the tickets again, the rule and the views of the buffers from the rest.
        of_this_process = {"_rule", "_lines", "_memory", "_ticket_memory", "arm_of", "_values", "_words"}
        of_this_process |= {"ask_one", "tell_one"}
        kept = {name: value for name, value in self.__dict__.items() if name not in of_this_process}
        # Without the room for tickets to come, and so without credit for them.
        kept["_state"] = self._state.with_tickets(self.issued)
        kept["_state"].header["credit"] = 0
        return {"format": PICKLE_FORMAT, "layout": self._layout(), **kept}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        saved = dict(saved)
        found, layout = saved.pop("format", None), saved.pop("layout", {})
        if found != PICKLE_FORMAT:
            raise EquipoiseError(f"a saved study must be of format {PICKLE_FORMAT}, got one of format {found!r}")
        self.__dict__.update(saved)
        check_strategy(self.strategy)
        # The buffers are laid out for the strategy as it was, and compiled code does not look where they end.
        now = self._layout()
        changed = [f"{name} was {layout[name]!r} and is {now[name]!r}" for name in now if layout[name] != now[name]]
        if changed:
            raise EquipoiseError(
                f"this study was saved with another {type(self.strategy).__name__}: its {', its '.join(changed)}; "
                "load it where the strategy is as it was"
            )
        self._rule = compile_rule(self.strategy, self._params)
        self._lines = None
        self._keep_buffers()
