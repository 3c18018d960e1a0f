"""Random studies with costs and declines, against a model that computes everything again from the tickets."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.problem import Objective, money
from equipoise.strategies import key as keys

ARMS = 3
LEAST = 2
GIVEN_BACK = ("forgotten", "withdrawn")


@dataclass
class Sample:
    arm: int
    status: str = "in flight"
    value: float = math.nan
    cost: float | None = None


@dataclass
class Model:
    """A study of the strategy `greedy`, in O(K) and O(n)."""

    p: float
    declared: list[float] | None
    budget: float
    tickets: list[Sample] = field(default_factory=list)
    retired: set[int] = field(default_factory=set)
    # Keys are computed when something happens to their arm.
    keys: list[float] = field(default_factory=lambda: [math.inf] * ARMS)
    tops_seen: float = 0.0

    def of(self, k: int, *status: str) -> list[Sample]:
        return [ticket for ticket in self.tickets if ticket.arm == k and ticket.status in status]

    def pulls(self, k: int) -> int:
        return len(self.of(k, "in flight", "answered"))

    def asked(self, k: int) -> int:
        return len(self.of(k, "in flight", "answered", "declined"))

    def mean_cost(self, k: int) -> float:
        real = [ticket.cost for ticket in self.tickets if ticket.arm == k and ticket.cost is not None]
        expected = 1.0 if self.declared is None else self.declared[k]
        return float(np.mean(real)) if real else expected

    def cost(self, k: int) -> float:
        return max(self.mean_cost(k), 1e-6 * self.declared[k]) if self.declared else 1.0

    def spent(self) -> float:
        return math.fsum(
            self.cost(ticket.arm) if ticket.cost is None else ticket.cost
            for ticket in self.tickets
            if ticket.status not in GIVEN_BACK
        )

    def has_place(self, k: int) -> bool:
        limit = money.limit(self.budget, min(self.declared or [1.0]))
        return self.cost(k) <= limit - self.spent() + 1e-9

    def can_pay(self, k: int) -> bool:
        return k not in self.retired and self.has_place(k)

    def top(self, k: int) -> float:
        values = [ticket.value for ticket in self.of(k, "answered")]
        if len(values) < 2 or k in self.retired:
            return 0.0
        # Up to a unit: only ratios of keys matter.
        goal = Objective(self.p)
        return float(self.cost(k) ** goal.cost_power * np.var(values, ddof=1) ** goal.exponent)

    def touch(self, k: int, asked: bool = False) -> None:
        """Compute the key of an arm to which something happened, and those of silent arms where tops have doubled."""
        self._touch(k)
        tops = sum(map(self.top, range(ARMS)))
        assume(tops == 0 or not math.isclose(tops, 2 * self.tops_seen))
        if not asked and tops > 2 * self.tops_seen and any(sample.status == "declined" for sample in self.tickets):
            self.tops_seen = tops
            for j in range(ARMS):
                if self.of(j, "declined") and len(self.of(j, "answered")) < 2:
                    self._touch(j)

    def _touch(self, k: int) -> None:
        if k in self.retired:
            return
        answered, pulls = len(self.of(k, "answered")), self.pulls(k)
        if answered >= 2:
            self.keys[k] = self.top(k) / pulls
        elif self.of(k, "declined"):
            self.keys[k] = keys.silent_key(sum(map(self.top, range(ARMS))), ARMS, self.asked(k))
        else:
            self.keys[k] = keys.warmup_key(pulls)

    def may_choose(self) -> set[int]:
        """The arms that may be asked for next: one, or several whose keys are equal up to rounding."""
        open_arms = [k for k in range(ARMS) if k not in self.retired]
        for arms in (open_arms, [k for k in open_arms if self.can_pay(k)]):
            least = min(arms, key=lambda k: (self.asked(k), k), default=-1)
            if least >= 0 and self.asked(least) < LEAST:
                found = {least}
            else:
                best = max((self.keys[k] for k in arms), default=0.0)
                found = {k for k in arms if self.keys[k] == best or math.isclose(self.keys[k], best, rel_tol=1e-9)}
            if all(map(self.can_pay, found)):
                return found
        return set()


costs_told = st.none() | st.sampled_from([0.0, 0.25, 1.0, 3.5])
steps = st.lists(
    st.tuples(
        st.sampled_from(["ask", "ask", "ask", "tell", "tell", "tell", "decline", "forget", "late", "retire", "reopen"]),
        st.integers(0, 10**6),
        st.integers(-3, 3),
        costs_told,
    ),
    min_size=5,
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(
    p=st.sampled_from([1.0, 2.0, math.inf]),
    declared=st.none() | st.lists(st.sampled_from([0.5, 1.0, 4.0]), min_size=ARMS, max_size=ARMS),
    happens=steps,
    many=st.booleans(),
)
def test_a_study_is_what_its_tickets_make_it(
    p: float, declared: list[float] | None, happens: list[tuple[str, int, int, float | None]], many: bool
) -> None:
    budget = 12 if declared is None else 30.0
    study = eq.Study(ARMS, budget, eq.strategies.Greedy(LEAST), objective=p, costs=declared)
    model = Model(p, declared, budget)
    tickets: list[eq.Ticket] = []
    for what, which, value, cost in happens:
        cost = None if declared is None else cost
        if what == "ask":
            may = model.may_choose()
            assert study.done == (not any(model.can_pay(k) for k in range(ARMS)))
            asked = study.ask(1)
            assert bool(asked) == bool(may)
            for ticket in asked:
                assert ticket.arm in may
                tickets.append(ticket)
                model.tickets.append(Sample(ticket.arm))
                model.touch(ticket.arm, asked=True)
            continue
        if what in ("retire", "reopen"):
            k = which % ARMS
            getattr(study, what)(k)
            model.retired = model.retired | {k} if what == "retire" else model.retired - {k}
            model.touch(k)
            continue
        wanted = GIVEN_BACK if what == "late" else ("in flight",)
        found = [i for i, sample in enumerate(model.tickets) if sample.status in wanted]
        if not found:
            continue
        i = found[which % len(found)]
        ticket, sample = tickets[i], model.tickets[i]
        if what == "forget":
            study.forget(ticket)
            sample.status = "withdrawn" if sample.arm in model.retired else "forgotten"
        elif what == "late" and not model.has_place(sample.arm):
            before = study.ledger.fingerprint()
            with pytest.raises(ValueError, match="nothing is left of the budget for a late answer"):
                study.decline(ticket, cost=cost) if value < 0 else study.tell(ticket, float(value), cost=cost)
            assert study.ledger.fingerprint() == before
        elif what == "decline" or (what == "late" and value < 0):
            study.decline(ticket, cost=cost)
            sample.status, sample.cost = "declined", cost
        else:
            if many:
                study.tell_many([(ticket, float(value), cost)])
            else:
                study.tell(ticket, float(value), cost=cost)
            sample.status, sample.value, sample.cost = "answered", float(value), cost
        model.touch(sample.arm)
        assert study.spent == pytest.approx(model.spent(), rel=1e-12, abs=1e-12)
        assert declared is not None or study.spent <= budget
    assert study.remaining == pytest.approx(max(0, budget - model.spent()), abs=1e-9)
    of_all = {name: sum(s.status == name for s in model.tickets) for name in ("in flight", "declined", *GIVEN_BACK)}
    assert study.in_flight == of_all["in flight"]
    result = study.result()
    answered = result.certificate.answered
    assert answered is not None
    assert (answered.asked, answered.given_up, answered.withdrawn, answered.declined) == (
        len(tickets),
        of_all["forgotten"],
        of_all["withdrawn"],
        of_all["declined"],
    )
    over = result.samples + answered.declined + answered.given_up + answered.withdrawn
    assert over + answered.in_flight == answered.asked
    assert list(result.declined.values()) == [len(model.of(k, "declined")) for k in range(ARMS)]
    assert [*result.counts.values()] == [len(model.of(k, "answered")) for k in range(ARMS)]
    if declared is not None:
        assert result.costs is not None
        assert [*result.costs.values()] == pytest.approx([model.mean_cost(k) for k in range(ARMS)])
        settled = [s for s in model.tickets if s.status in ("answered", "declined")]
        bill = math.fsum(model.cost(s.arm) if s.cost is None else s.cost for s in settled)
        assert result.spent == pytest.approx(bill)
