"""The laws that every strategy keeps."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any
from unittest import SkipTest

try:
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "equipoise.testing needs hypothesis, which is not installed: pip install hypothesis"
    ) from None

from equipoise.ledger import Ticket
from equipoise.numeric import moments
from equipoise.problem import money
from equipoise.problem.objective import Objective
from equipoise.strategies import Numbers, Strategy, Support, initial_own, zeros
from equipoise.strategies.key import key, next_refresh, pooled, unseen, warmup_key
from equipoise.study import Study

# Keys whose relative difference is below this are equal up to rounding.
_ROUNDING = 1e-9

# How far samples are moved to see whether variances are continuous, relative to the deviation of an arm's samples, and
# how far variances may move, relative to themselves.
_NUDGE, _MOVED = 1e-12, 1e-6

_law = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.differing_executors]
)
# The objective does not depend on the strategy, so a few examples are enough.
_law_of_objective = settings(_law, max_examples=20)


class Scan:
    """
    A slow study in plain Python, the reference for the fast one.

    It looks at every arm at every step.

    Arms are 0, 1, 2, ...; samples may be told in any order.
    """

    def __init__(
        self,
        strategy: Strategy,
        arms: int,
        budget: float | None,
        support: Support = None,
        objective: Objective | None = None,
        sizes: Sequence[float] | None = None,
    ) -> None:
        self.strategy, self.arms, self.sizes = strategy, arms, sizes
        self.objective = objective or Objective()
        self.scales = self.objective.scales(arms).tolist()
        self.costs = self.objective.cost(arms).tolist()
        self.limit = money.limit(budget, min(self.costs))
        self.spent, self.carry = 0.0, 0.0
        n = None if budget is None else self.objective.samples(budget, arms)
        self.params = strategy.params(n, arms, support) or (0.0,)
        self.counts, self.pulls = [0] * arms, [0] * arms
        # A mean is its shift and what is above it.
        self.means, self.shifts, self.above, self.m2s = ([0.0] * arms for _ in range(4))
        own = initial_own(strategy, arms, self.objective.units(arms))
        self.own: list[Numbers] = [tuple(row) or (0.0,) for row in own.tolist()]
        self.t = 0
        self.pooled = zeros(strategy.pooled)
        self.next_refresh = next_refresh(0, arms)

    @property
    def affordable(self) -> list[int]:
        """The arms that are still affordable and not used up."""
        return [k for k in range(self.arms) if self.has_place(k)]

    def _left(self, k: int) -> float:
        return math.inf if self.sizes is None else self.sizes[k] - self.pulls[k]

    def choice(self) -> int:
        """Return the arm to pull next, by the definition: the one with the largest key, or the least pulled one."""
        wanted = self._choose(range(self.arms))
        return wanted if self._can_pay(wanted) else self._choose(self.affordable)

    def _can_pay(self, k: int) -> bool:
        return money.affordable(self.costs[k], self.spent, self.carry, self.limit)

    def _choose(self, among: Sequence[int]) -> int:
        arms = [k for k in among if self._left(k) > 0]
        least = min(arms, key=lambda k: (self.pulls[k], k))
        if self.pulls[least] < self.strategy.floor(float(self.t), float(self.arms), self.params):
            return least
        return max(arms, key=lambda k: (self._key_in_population(k), -k))

    def _key_in_population(self, k: int) -> float:
        if self.sizes is None or self._in_warmup(k):
            return self._key(k)
        return self._key(k) * unseen(float(self.pulls[k]), self.sizes[k], self.objective.finite_exponent)

    def _in_warmup(self, k: int) -> bool:
        return self.counts[k] < self.strategy.warmup or self.pulls[k] == 0

    def pull(self, k: int) -> None:
        """Record that a ticket for arm k was handed out."""
        self.pulls[k] += 1
        self.t += 1
        self.spent, self.carry = money.spend(self.spent, self.carry, self.costs[k])

    def has_place(self, k: int) -> bool:
        """Return whether one more ticket of arm k can be paid for, and its population is not used up."""
        return self._can_pay(k) and self._left(k) > 0

    def give_back(self, k: int) -> None:
        """Record that a ticket for arm k was forgotten."""
        self.pulls[k] -= 1
        self.t -= 1
        self.spent, self.carry = money.spend(self.spent, self.carry, -self.costs[k])

    def tell(self, k: int, x: float, *, in_flight: bool = True) -> None:
        """Record a sample of arm k."""
        self.counts[k], self.shifts[k], self.above[k], self.m2s[k] = moments.add_shifted(
            self.counts[k], self.shifts[k], self.above[k], self.m2s[k], x
        )
        self.means[k] = self.shifts[k] + self.above[k]
        self.pulls[k] += not in_flight
        if self.strategy.keeps():
            self.own[k] = self.strategy.keep(
                x, float(self.counts[k]), self.means[k], self.m2s[k], self.pooled, self.own[k], self.params
            )
        samples = sum(self.counts)
        if samples >= self.next_refresh:
            self.next_refresh = next_refresh(samples, self.arms)
            self.pooled = pooled(self.strategy, self.params, self.counts, self.means, self.m2s, self.own, self.pooled)

    def alike(self, j: int, k: int) -> bool:
        """Whether arms j and k are tied up to rounding, so that either may go first."""
        floor = self.strategy.floor(float(self.t), float(self.arms), self.params)
        if min(self.pulls) < floor:
            return self.pulls[j] == self.pulls[k] == min(self.pulls)
        a, b = self._key(j), self._key(k)
        return a == b or math.isclose(a, b, rel_tol=_ROUNDING)

    def _key(self, k: int) -> float:
        if self._in_warmup(k):
            return warmup_key(float(self.pulls[k]))
        return key(self.variance(k), float(self.pulls[k]), self.scales[k], self.objective.exponent)

    def variance(self, k: int) -> float:
        """Return the variance that the strategy plans with for arm k, which has `warmup` samples or more."""
        return self.strategy.variance(
            float(self.counts[k]), self.means[k], self.m2s[k], self.pooled, self.own[k], self.params
        )


class StrategyLaws:
    """
    The laws of strategies: inherit this class and set `strategy`.

    Override `make` instead if the strategy depends on the number of arms.

    Attributes
    ----------
    strategy
        The strategy under test.
    support
        The support that the studies declare, and from which the laws draw values.
    continuous
        Whether the planning variances are continuous functions of the samples. Turn it off for a strategy with a
        branch between formulas that do not agree where they meet.
    """

    strategy: Strategy
    support: Support = None
    continuous: bool = True

    def make(self, arms: int) -> Strategy:
        """Return the strategy for a study with this number of arms."""
        return self.strategy

    # ---- what the laws draw

    def _values(self) -> st.SearchStrategy[float]:
        if self.support == "binary":
            return st.sampled_from([0.0, 1.0])
        low, high = self.support or (-1000.0, 1000.0)
        # A coarse grid makes exact ties and equal samples common; the other half are arbitrary floats.
        grid = st.integers(0, 8).map(lambda i: low + (high - low) * i / 8)
        return st.one_of(grid, st.floats(low, high))

    def _world(self, data: st.DataObject, per_arm: int = 12) -> tuple[Strategy, int, list[list[float]]]:
        """Return a strategy, a budget, and the samples X_{k,i} of each arm."""
        arms = data.draw(st.integers(1, 6), label="arms")
        strategy = self.make(arms)
        least = arms * max(strategy.warmup, 1)
        budget = data.draw(st.integers(least, least + per_arm * arms), label="budget")
        rows = st.one_of(
            st.lists(self._values(), min_size=budget, max_size=budget),
            self._values().map(lambda value: [value] * budget),
        )
        samples = [data.draw(rows, label="samples") for _ in range(arms)]
        return strategy, budget, samples

    def _study(self, strategy: Strategy, arms: int, budget: float | None, **objective: Any) -> Study:
        return Study(arms, budget=budget, strategy=strategy, support=self.support, **objective)

    def _objective(self, data: st.DataObject, arms: int) -> dict[str, Any]:
        """Return a norm, weights and costs as a study takes them; the costs are summed without rounding."""

        def each(values: list[float], label: str) -> list[float]:
            return data.draw(st.lists(st.sampled_from(values), min_size=arms, max_size=arms), label=label)

        weights = each([0.0, 0.3, 1.0, 5.0], "weights")
        return {
            "objective": data.draw(st.sampled_from([0.5, 1.0, 2.0, 7.3, math.inf]), label="p"),
            "weights": weights if any(weights) else [1.0] * arms,
            "costs": each([0.25, 1.0, 1.5, 8.0], "costs"),
        }

    def _choices(self, study: Study, samples: Sequence[Sequence[float]]) -> list[int]:
        chosen: list[Any] = []
        while not study.done:
            ticket = study.ask()
            study.tell(ticket, samples[ticket.arm][chosen.count(ticket.arm)])  # type: ignore[call-overload]
            chosen.append(ticket.arm)
        return chosen

    def _same_choices(
        self, a: Scan, b: Scan, samples: list[list[float]], other: list[list[float]], label: list[int]
    ) -> None:
        """Check that a and b choose alike up to ties, where arm k of a is arm label[k] of b and sees `other`."""
        for _ in range(len(samples[0])):
            k, j = a.choice(), b.choice()
            assert j == label[k] or b.alike(j, label[k]), (
                f"after the pulls {a.pulls}, arm {k} is chosen in one study and arm {label.index(j)} in the other"
            )
            for scan, arm, seen in ((a, k, samples[k]), (b, label[k], other[label[k]])):
                scan.pull(arm)
                scan.tell(arm, seen[scan.counts[arm]])

    # ---- the laws

    @_law
    @given(data=st.data())
    def test_every_arm_is_warmed_up_and_the_budget_is_spent(self, data: st.DataObject) -> None:
        """Every arm gets at least `warmup` pulls, and the pulls add up to the budget."""
        strategy, budget, samples = self._world(data)
        chosen = self._choices(self._study(strategy, len(samples), budget), samples)
        assert len(chosen) == budget
        assert min(chosen.count(k) for k in range(len(samples))) >= strategy.warmup

    @_law
    @given(data=st.data())
    def test_the_order_of_arrival_changes_nothing_but_rounding(self, data: st.DataObject) -> None:
        """The order of telling changes means and variances by rounding only."""
        strategy, budget, samples = self._world(data)
        one, two = (self._study(strategy, len(samples), budget) for _ in range(2))
        values = [samples[0][i % len(samples[0])] for i in range(budget)]
        pairs = [list(zip(study.ask(budget), values, strict=True)) for study in (one, two)]
        one.tell_many(pairs[0])
        for ticket, value in data.draw(st.permutations(pairs[1]), label="order"):
            two.tell(ticket, value)
        a, b = one.result(), two.result()
        spread = max(map(abs, values))
        for arm in range(len(samples)):
            assert a.counts[arm] == b.counts[arm]
            assert math.isclose(a.means[arm], b.means[arm], rel_tol=1e-9, abs_tol=1e-9 * spread)
            if a.counts[arm] >= 2:
                assert math.isclose(a.variances[arm], b.variances[arm], rel_tol=1e-9, abs_tol=1e-9 * spread**2)

    @_law
    @given(data=st.data())
    def test_telling_twice_changes_nothing(self, data: st.DataObject) -> None:
        """Answering a ticket again with the same value changes nothing."""
        strategy, budget, samples = self._world(data)
        once, twice = (self._study(strategy, len(samples), budget) for _ in range(2))
        told: list[tuple[Ticket, float]] = []
        while not once.done:
            a, b = once.ask(), twice.ask()
            assert a.arm == b.arm
            value = samples[a.arm][a.id]  # type: ignore[call-overload]
            once.tell(a, value)
            told.append((b, value))
            twice.tell(b, value)
            twice.tell(*data.draw(st.sampled_from(told), label="repeated"))
        assert once.result().to_dict() == twice.result().to_dict()

    @_law
    @given(data=st.data())
    def test_shifted_samples_are_sampled_alike(self, data: st.DataObject) -> None:
        """A strategy that declares shift_invariant makes the same choices on x + c."""
        strategy, budget, samples = self._world(data)
        if not strategy.shift_invariant or self.support is not None:
            raise SkipTest("the strategy does not declare shift_invariant, or has a support")
        c = data.draw(st.sampled_from([-3.0, 0.5, 1000.0, -1e4]), label="shift")
        shifted = [[x + c for x in row] for row in samples]
        # A shift rounds the samples themselves, for which the strategy is not responsible.
        samples = [[x - c for x in row] for row in shifted]
        a, b = (Scan(strategy, len(samples), budget) for _ in range(2))
        self._same_choices(a, b, samples, shifted, list(range(len(samples))))

    @_law
    @given(data=st.data())
    def test_scaled_samples_are_sampled_alike(self, data: st.DataObject) -> None:
        """A strategy, rescaled if it is not scale-invariant, chooses alike on c x."""
        if self.support is not None:
            raise SkipTest("samples cannot be scaled within a support")
        strategy, budget, samples = self._world(data)
        c = data.draw(st.sampled_from([0.25, 3.0, 1e3, 1e-3]), label="scale")
        try:
            other = strategy.rescaled(c)
        except NotImplementedError:
            raise SkipTest("the strategy neither declares scale_invariant nor defines rescaled") from None
        scaled = [[c * x for x in row] for row in samples]
        a, b = Scan(strategy, len(samples), budget), Scan(other, len(samples), budget)
        self._same_choices(a, b, samples, scaled, list(range(len(samples))))

    @_law
    @given(data=st.data())
    def test_variances_are_continuous_in_the_samples(self, data: st.DataObject) -> None:
        """
        Moving every sample by 1e-12 standard deviations moves planning variances by less than 1e-6 of themselves.

        Equal samples of an arm stay equal. Both studies sample the same arms, whatever they would choose.
        """
        if not self.continuous:
            raise SkipTest("the strategy is not said to be continuous")
        strategy, budget, drawn = self._world(data)
        # Samples that differ by rounding only are no different from equal ones.
        samples = [[round(x, 3) for x in row] for row in drawn]
        arms = len(samples)
        moved = [self._nudged(data, row) for row in samples]
        order = data.draw(st.lists(st.integers(0, arms - 1), min_size=budget, max_size=budget), label="order")
        a, b = (Scan(strategy, arms, budget, self.support) for _ in range(2))
        for k in order:
            for scan, seen in ((a, samples[k]), (b, moved[k])):
                scan.tell(k, seen[scan.counts[k]], in_flight=False)
            for j in range(arms):
                if a.counts[j] >= strategy.warmup:
                    assert math.isclose(a.variance(j), b.variance(j), rel_tol=_MOVED), (
                        f"after the pulls {a.pulls}, the variance of arm {j} is {a.variance(j)!r} in one study and "
                        f"{b.variance(j)!r} in the other"
                    )

    def _nudged(self, data: st.DataObject, row: Sequence[float]) -> list[float]:
        """
        Return an arm's samples moved by up to 1e-12 of their deviation, equal ones alike, within the support.

        The deviation is the smallest that they have shown at any time, while they were not all equal.
        """
        if self.support == "binary":
            return list(row)
        low, high = self.support or (-math.inf, math.inf)
        shown, so_far = [], (0.0, 0.0, 0.0)
        for x in row:
            so_far = moments.add(*so_far, x)
            shown.append(math.sqrt(so_far[2] / so_far[0]))
        step = _NUDGE * min((each for each in shown if each > 0), default=0.0)
        values = sorted(set(row))
        part = st.sampled_from([-1.0, -0.3, 0.0, 0.7, 1.0])
        parts = data.draw(st.lists(part, min_size=len(values), max_size=len(values)), label="moves")
        to = {x: min(max(x + each * step, low), high) for x, each in zip(values, parts, strict=True)}
        return [to[x] for x in row]

    @_law
    @given(data=st.data())
    def test_relabelled_arms_are_sampled_alike(self, data: st.DataObject) -> None:
        """If the arms are renumbered, the choices follow them."""
        strategy, budget, samples = self._world(data)
        arms = range(len(samples))
        label = data.draw(st.permutations(list(arms)), label="new numbers")
        variances = getattr(strategy, "variances", None)
        other = strategy
        if variances is not None:
            other = type(strategy)(
                **{
                    **{f.name: getattr(strategy, f.name) for f in dataclasses.fields(strategy)},
                    "variances": [variances[label.index(j)] for j in arms],
                }
            )
        a, b = (Scan(s, len(samples), budget, self.support) for s in (strategy, other))
        self._same_choices(a, b, samples, [samples[label.index(j)] for j in arms], label)

    @_law
    @given(data=st.data())
    def test_asking_for_many_is_asking_many_times(self, data: st.DataObject) -> None:
        """At any time, ask(m) returns the arms that m calls of ask() in a row would."""
        strategy, budget, samples = self._world(data)
        one, many = (self._study(strategy, len(samples), budget) for _ in range(2))
        while not one.done:
            m = data.draw(st.integers(1, 9), label="m")
            tickets = many.ask(m)
            single = [one.ask() for _ in tickets]
            assert [ticket.arm for ticket in tickets] == [ticket.arm for ticket in single]
            for a, b in zip(tickets, single, strict=True):
                value = samples[a.arm][a.id]  # type: ignore[call-overload]
                many.tell(a, value)
                one.tell(b, value)
        assert many.ask(3) == []

    @_law
    @given(data=st.data())
    def test_the_heap_chooses_as_a_scan_does(self, data: st.DataObject) -> None:
        """
        The study and the scan choose alike, ties included.

        Whatever is asked, told, forgotten or told late.
        """
        strategy, budget, samples = self._world(data)
        study, scan = (
            self._study(strategy, len(samples), budget),
            Scan(strategy, len(samples), budget, self.support),
        )
        self._side_by_side(data, study, scan, samples[0])

    @_law_of_objective
    @given(data=st.data())
    def test_weights_costs_and_norms_choose_as_a_scan_does(self, data: st.DataObject) -> None:
        """The affordable arm with the largest key is pulled, within the budget."""
        strategy, budget, samples = self._world(data)
        options = self._objective(data, len(samples))
        objective = Objective(options["objective"], tuple(options["weights"]), tuple(options["costs"]))
        amount = strategy.warmup * math.fsum(options["costs"]) + budget
        study = self._study(strategy, len(samples), amount, **options)
        scan = Scan(strategy, len(samples), amount, self.support, objective)
        self._side_by_side(data, study, scan, samples[0])
        assert study.done == (not scan.affordable)
        assert study.remaining == amount - study.spent >= 0

    def _side_by_side(self, data: st.DataObject, study: Study, scan: Scan, values: Sequence[float]) -> None:
        """Do the same random things to both, and compare every choice."""
        in_flight: list[Ticket] = []
        forgotten: list[Ticket] = []
        for step in range(2 * len(values)):
            action = data.draw(
                st.sampled_from(["ask", "ask", "tell", "tell", "forget", "late", "elsewhere"]), label="action"
            )
            value = values[step % len(values)]
            if action == "ask" and not study.done:
                k = scan.choice()
                ticket = study.ask()
                assert ticket.arm == k
                scan.pull(k)
                in_flight.append(ticket)
            elif action == "tell" and in_flight:
                ticket = in_flight.pop(data.draw(st.integers(0, len(in_flight) - 1), label="which"))
                study.tell(ticket, value)
                scan.tell(ticket.arm, value)  # type: ignore[arg-type]
            elif action == "forget" and in_flight:
                ticket = in_flight.pop(data.draw(st.integers(0, len(in_flight) - 1), label="which"))
                study.forget(ticket)
                scan.give_back(ticket.arm)  # type: ignore[arg-type]
                forgotten.append(ticket)
            elif action == "late" and forgotten:
                ticket = forgotten.pop()
                has_place = scan.has_place(ticket.arm)  # type: ignore[arg-type]
                try:
                    study.tell(ticket, value)
                except ValueError:
                    assert not has_place
                else:
                    assert has_place
                    scan.pull(ticket.arm)  # type: ignore[arg-type]
                    scan.tell(ticket.arm, value)  # type: ignore[arg-type]
            elif action == "elsewhere":
                arm = step % scan.arms
                if scan.sizes is None or scan.counts[arm] < scan.sizes[arm]:
                    study.tell(arm=arm, value=value)
                    scan.tell(arm, value, in_flight=False)

    @_law_of_objective
    @given(data=st.data())
    def test_finite_populations_choose_as_a_scan_does(self, data: st.DataObject) -> None:
        """The largest key of the arms that are not used up is pulled, and no population is exceeded."""
        strategy, budget, samples = self._world(data)
        arms = len(samples)
        options = self._objective(data, arms)
        options["objective"] = max(options["objective"], 1.0)
        if data.draw(st.booleans(), label="free"):
            options["costs"] = None
        size = st.sampled_from([1, 2, 3, 5, 9, 40, None])
        sizes = data.draw(st.lists(size, min_size=arms, max_size=arms), label="sizes")
        costs = options["costs"] or [1.0] * arms
        objective = Objective(options["objective"], tuple(options["weights"]), options["costs"] and tuple(costs))
        amount = strategy.warmup * math.fsum(costs) + budget
        study = self._study(strategy, arms, int(amount), populations=sizes, **options)
        finite = [math.inf if each is None else each for each in sizes]
        scan = Scan(strategy, arms, int(amount), self.support, objective, finite)
        self._side_by_side(data, study, scan, samples[0])
        assert study.done == (not scan.affordable)

    @_law_of_objective
    @given(data=st.data())
    def test_equal_weights_are_none(self, data: st.DataObject) -> None:
        """With one weight for all arms the choices are those without weights."""
        strategy, budget, samples = self._world(data)
        options = self._objective(data, len(samples)) | {"costs": None}
        weight = data.draw(st.sampled_from([0.3, 1.0, 7.0]), label="weight")
        plain, weighted = (
            self._study(strategy, len(samples), budget, **options | {"weights": weights})
            for weights in (None, [weight] * len(samples))
        )
        assert self._choices(plain, samples) == self._choices(weighted, samples)

    @_law_of_objective
    @given(data=st.data())
    def test_another_currency_changes_nothing(self, data: st.DataObject) -> None:
        """
        Multiplying all costs and the budget by one number changes no choice.

        The number is a power of two, so that nothing is rounded.
        """
        strategy, budget, samples = self._world(data)
        options = self._objective(data, len(samples))
        amount = strategy.warmup * math.fsum(options["costs"]) + budget / 4
        rate = data.draw(st.sampled_from([0.125, 2.0, 1024.0]), label="rate")
        dear = options | {"costs": [rate * cost for cost in options["costs"]]}
        long = [row * 40 for row in samples]  # at a quarter each, the budget buys many
        one = self._choices(self._study(strategy, len(samples), amount, **options), long)
        assert one == self._choices(self._study(strategy, len(samples), rate * amount, **dear), long)
        costs = options["costs"]
        assert math.fsum(costs[k] for k in one) <= amount < math.fsum(costs[k] for k in one) + min(costs)

    @_law
    @given(data=st.data())
    def test_a_choice_looks_at_the_past_only(self, data: st.DataObject) -> None:
        """
        A choice does not depend on samples that were not told yet.

        So the pulls of an arm are a stopping time.
        """
        strategy, budget, samples = self._world(data)
        before = self._choices(self._study(strategy, len(samples), budget), samples)
        seen = data.draw(st.integers(0, budget - 1), label="rounds seen")
        other = [
            row[: before[:seen].count(k)] + [data.draw(self._values(), label="future")] * budget
            for k, row in enumerate(samples)
        ]
        after = self._choices(self._study(strategy, len(samples), budget), other)
        assert after[: seen + 1] == before[: seen + 1]
