"""Items of groups, sampled in batches without replacement: each once, also across calls that ended early."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.base.errors import EquipoiseError
from equipoise.integrations.pools import Answers, ItemAnswer, sample

GROUPS = {"a": [("a", i) for i in range(40)], "b": [("b", i) for i in range(60)], "few": [("few", 0), ("few", 1)]}


class Asked:
    """Answers 1 for every third item, and keeps the batches."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []

    def __call__(self, items: Sequence[Any]) -> Answers:
        self.batches.append(list(items))
        return Answers([ItemAnswer(float(i % 3 == 0)) for _, i in items])

    @property
    def items(self) -> list[Any]:
        return [item for batch in self.batches for item in batch]


def test_without_a_limit_every_item_is_sampled_once_and_known_exactly() -> None:
    asked = Asked()
    result = sample(GROUPS, asked, support="binary", seed=1)
    assert sorted(asked.items) == sorted(item for items in GROUPS.values() for item in items)
    assert dict(result.counts) == {"a": 40, "b": 60, "few": 2}
    assert result.means["a"] == pytest.approx(14 / 40)
    assert (result.intervals().half_widths == 0).all()


def test_a_budget_is_spent_exactly_and_the_batches_grow() -> None:
    asked = Asked()
    groups = {name: range(100_000) for name in ("a", "b")}
    result = sample({name: [(name, i) for i in items] for name, items in groups.items()}, asked, budget=1000, seed=1)
    assert len(asked.items) == len(set(asked.items)) == result.samples == 1000
    sizes = [len(batch) for batch in asked.batches]
    assert sizes[0] == 8
    assert sizes[:-1] == sorted(sizes[:-1])
    assert sizes[-2] > 80
    fixed = Asked()
    sample(GROUPS, fixed, budget=50, batch=20, seed=1)
    assert [len(batch) for batch in fixed.batches] == [20, 20, 10]


def test_items_come_in_a_random_order_that_the_seed_decides() -> None:
    first, again, other = Asked(), Asked(), Asked()
    for asked, seed in ((first, 1), (again, 1), (other, 2)):
        sample(GROUPS, asked, budget=60, seed=seed)
    assert first.batches == again.batches
    assert first.batches != other.batches
    of_a = [i for name, i in first.items if name == "a"]
    assert of_a != sorted(of_a)


def test_a_precision_leaves_groups_alone_that_are_known() -> None:
    groups = {"same": [("same", 0)] * 400, "varied": [("varied", i) for i in range(400)]}
    result = sample(groups, Asked(), precision=0.1, support="binary", seed=1)
    assert result.reached
    assert result.counts["same"] < result.counts["varied"] < 400


def test_items_that_are_themselves_a_sample_are_never_known_exactly() -> None:
    asked = Asked()
    result = sample(GROUPS, asked, support="binary", finite=False, seed=1)
    assert len(asked.items) == 102
    assert result.populations is None
    assert (result.intervals().half_widths > 0.05).all()


def test_what_has_no_value_is_declined_and_not_asked_for_again() -> None:
    seen: list[Any] = []

    def answer(items: Sequence[Any]) -> Answers:
        seen.extend(items)
        return Answers([ItemAnswer(None if i < 5 else 1.0, 2.0) for _, i in items])

    costs = dict.fromkeys(GROUPS, 1.0)
    result = sample(GROUPS, answer, support="binary", costs=costs, seed=1)
    assert len(seen) == len(set(seen)) == 102
    assert dict(result.declined) == {"a": 5, "b": 5, "few": 2}
    assert dict(result.counts) == {"a": 35, "b": 55, "few": 0}
    assert result.spent == 204


def costly(costs: dict[str, float], sizes: list[int]) -> Any:
    """Items with a value of 1 that cost what their group says; keeps the sizes of batches."""

    def answer(items: Sequence[Any]) -> Answers:
        sizes.append(len(items))
        return Answers([ItemAnswer(1.0, costs[name]) for name, _ in items])

    return answer


@pytest.mark.parametrize("expected", [1.0, 5000.0])
@pytest.mark.parametrize(
    "costs", [dict.fromkeys("abcdefgh", 5000.0), dict(zip("abcdefgh", range(500, 4500, 500), strict=True))]
)
def test_a_budget_in_costs_is_exceeded_by_one_item_at_most(costs: dict[str, float], expected: float) -> None:
    groups = {name: [(name, i) for i in range(100)] for name in costs}
    sizes: list[int] = []
    result = sample(
        groups, costly(costs, sizes), budget=100_000, costs=dict.fromkeys(groups, expected), support="binary", seed=1
    )
    assert 100_000 - max(costs.values()) <= result.spent <= 100_000 + max(costs.values())
    assert sizes[:4] == [1, 1, 2, 4]  # nothing is known of costs at first
    assert min(result.counts.array) >= 1


def test_a_batch_has_no_more_items_than_are_paid_for_at_the_largest_cost_seen() -> None:
    """The first 32 items cost 100 on average, and all later ones 190, as the dearest of them."""
    costs = itertools.chain([10.0, 190.0] * 16, itertools.repeat(190.0))
    sizes: list[int] = []

    def answer(items: Sequence[Any]) -> Answers:
        sizes.append(len(items))
        return Answers([ItemAnswer(1.0, next(costs)) for _ in items])

    groups = {"a": [("a", i) for i in range(200)]}
    result = sample(groups, answer, budget=6400, costs={"a": 100.0}, batch=32, seed=1)
    assert sizes[:7] == [1, 1, 2, 4, 8, 16, 16]
    assert 6400 - 190 <= result.spent <= 6400 + 190


def test_a_budget_that_does_not_pay_for_each_group_is_refused_once_that_is_known(tmp_path: Path) -> None:
    sizes: list[int] = []
    given: dict[str, Any] = {"costs": dict.fromkeys(GROUPS, 1.0), "store": tmp_path / "study.db", "seed": 1}
    given["about"] = {"cost_unit": "tokens"}
    answer = costly(dict.fromkeys(GROUPS, 900.0), sizes)
    message = (
        "budget must pay for at least one sample of each group, got 100: 1 sample cost 900 tokens, and 2 of 3 groups"
    )
    with pytest.raises(
        EquipoiseError, match=f"{message} have none; 1 sample saved in .*study.db; repeat the call"
    ) as e:
        sample(GROUPS, answer, budget=100, **given)
    assert e.value.study.result().samples == 1
    result = sample(GROUPS, answer, budget=10_000, **given)
    assert sizes[:3] == [1, 1, 2]
    assert result.spent == 9900


def test_a_budget_that_was_exceeded_says_by_how_much() -> None:
    costs = iter([10.0, 95.0])
    groups = {"a": [("a", i) for i in range(20)]}
    result = sample(
        groups,
        lambda items: Answers([ItemAnswer(1.0, next(costs)) for _ in items]),
        budget=100,
        costs={"a": 10.0},
        seed=1,
    )
    assert result.spent == 105
    assert result.verdict.startswith("2 samples (cost 105, 5 over the budget).")


def test_a_budget_that_was_exceeded_says_so_with_a_precision_too() -> None:
    costs = iter([10.0, 95.0])
    groups = {"a": [("a", i) for i in range(20)]}
    values = iter([1.0, 3.0])
    result = sample(
        groups,
        lambda items: Answers([ItemAnswer(next(values), next(costs)) for _ in items]),
        budget=100,
        precision=0.1,
        costs={"a": 10.0},
        seed=1,
    )
    assert result.verdict.startswith("✗ 1 of 1 arm is still wider than ±0.1")
    assert result.verdict.endswith(". The samples cost 105, 5 over the budget.")


def test_an_objective_gives_costly_groups_fewer_items() -> None:
    costs, counts = {"a": 1.0, "b": 16.0}, []
    groups = {name: [(name, i) for i in range(2000)] for name in costs}

    def answer(items: Sequence[Any]) -> Answers:
        return Answers([ItemAnswer(float(i % 2), costs[name]) for name, i in items])

    for objective in (np.inf, 1):
        result = sample(groups, answer, budget=4000, costs=costs, objective=objective, support="binary", seed=1)
        counts.append(result.counts["a"] / result.counts["b"])
    assert counts == pytest.approx([1, 4], rel=0.1)


def test_the_same_call_continues_after_a_failure(tmp_path: Path) -> None:
    store = tmp_path / "study.db"
    told: list[Any] = []
    tried: list[Any] = []

    def failing(items: Sequence[Any]) -> Answers:
        if not told:
            told.extend(items)
            return Answers([ItemAnswer(1.0) for _ in items])
        tried.extend(items)
        # The first item was answered, and the others were not.
        return Answers([ItemAnswer(0.0), *[None] * (len(items) - 1)], "the power failed")

    with pytest.raises(EquipoiseError, match=r"the power failed; 13 samples saved in .*study.db; repeat the call") as e:
        sample(GROUPS, failing, budget=40, store=store, seed=1)
    assert e.value.study.in_flight == len(tried) - 1
    asked = Asked()
    result = sample(GROUPS, asked, budget=60, store=store)
    assert asked.batches[0] == tried[1:]
    assert result.samples == 60
    assert len(set(asked.items) | set(told) | {tried[0]}) == 60
    more = Asked()
    assert sample(GROUPS, more, budget=60, store=store).samples == 60
    assert not more.batches


def test_an_interruption_gives_the_items_to_the_next_call(tmp_path: Path) -> None:
    store = tmp_path / "study.db"
    tried: list[Any] = []

    def interrupted(items: Sequence[Any]) -> Answers:
        tried.extend(items)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample(GROUPS, interrupted, budget=40, store=store)
    asked = Asked()
    sample(GROUPS, asked, budget=40, store=store)
    assert asked.batches[0] == tried


def test_without_a_store_the_error_has_the_samples() -> None:
    with pytest.raises(EquipoiseError, match="no power; the `study` attribute of this error has the 1 sample") as error:
        sample(GROUPS, lambda items: Answers([ItemAnswer(1.0), *[None] * (len(items) - 1)], "no power"), budget=40)
    assert error.value.reason == "no power"
    assert error.value.study.result().samples == 1


def test_progress_is_told_after_every_batch() -> None:
    seen: list[eq.Progress] = []
    sample(GROUPS, Asked(), budget=40, batch=20, progress=seen.append)
    assert [each.samples for each in seen] == [20, 40]
    assert seen[-1].spent == seen[-1].budget == 40
    assert seen[0].seconds_left > 0
    assert seen[-1].seconds_left == 0


def test_progress_toward_a_precision_is_told_from_the_first_batch() -> None:
    seen: list[eq.Progress] = []
    sample(GROUPS, Asked(), precision=0.2, support="binary", progress=seen.append, seed=1)
    assert len(seen) > 1
    assert all(each.seconds_left >= 0 for each in seen)  # never NaN


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch": 0}, "batch must be a positive integer, got 0"),
        ({"precision": -1}, "precision must be a positive number"),
        ({"level": 2}, "level must be strictly between 0 and 1, got 2"),
        ({"interval": "some"}, "interval must be one of"),
        ({"progress": 3}, "progress must be True, False, None or a function, got 3"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_sampled(arguments: dict[str, Any], message: str) -> None:
    asked = Asked()
    with pytest.raises((ValueError, TypeError), match=message):
        sample(GROUPS, asked, **arguments)
    assert not asked.batches


def test_a_value_outside_the_support_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a sample must be 0 or 1, got 0\.5"):
        sample(GROUPS, lambda items: Answers([ItemAnswer(0.5)] * len(items)), support="binary", budget=20)


def test_the_mean_of_a_group_is_that_of_the_items_that_were_asked_for() -> None:
    asked = Asked()
    result = sample(GROUPS, asked, budget=50, seed=3)
    for name in GROUPS:
        values = [i % 3 == 0 for group, i in asked.items if group == name]
        assert result.means[name] == pytest.approx(np.mean(values))
