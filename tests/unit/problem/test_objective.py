"""The family of objectives: norms of losses with weights and costs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.problem.objective import Objective, objective

VARIANCES = np.array([4.0, 1.0, 0.3])


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, math.inf])
def test_the_best_allocation_spends_the_budget_and_has_the_best_loss(p: float) -> None:
    family = Objective(p, (1.0, 2.0, 5.0), (1.0, 3.0, 0.5))
    pulls = family.optimal_pulls(VARIANCES, 1000)
    assert family.cost(3) @ pulls == pytest.approx(1000)
    assert family.loss(VARIANCES / pulls) == pytest.approx(family.optimal_loss(VARIANCES, 1000))
    # Any exchange at equal cost loses.
    for i, j in [(0, 1), (1, 2), (2, 0)]:
        moved = pulls.copy()
        moved[i] += 1 / family.cost(3)[i]
        moved[j] -= 1 / family.cost(3)[j]
        assert family.loss(VARIANCES / moved) > family.optimal_loss(VARIANCES, 1000)


def test_the_papers_objective() -> None:
    assert Objective().plain
    assert Objective().optimal_loss([4, 1], 1000) == 0.005
    assert Objective().optimal_pulls([4, 1], 1000).tolist() == [800, 200]
    assert Objective().optimal_pulls([0, 0], 10).tolist() == [5, 5]
    assert Objective().loss([1, 3, 2]) == 3


def test_neyman() -> None:
    strata = objective(["a", "b"], eq.Stratified({"b": 0.25, "a": 0.75}))
    assert strata == Objective(1.0, (0.5625, 0.0625), shares=(0.75, 0.25))
    # T in proportion to W s.
    assert strata.optimal_pulls([1, 9], 300).tolist() == pytest.approx([150, 150])
    assert strata.loss([2, 4]) == pytest.approx(0.5625 * 2 + 0.0625 * 4)


def test_scales_are_exact_where_they_can_be() -> None:
    """Neither equal weights nor another currency changes a bit of a key, and no weight makes it infinite."""
    for p in (0.5, 1.0, math.inf):
        plain = Objective(p).scales(3)
        assert plain.tolist() == [1.0] * 3
        assert Objective(p, (0.3,) * 3, (7.0,) * 3).scales(3).tolist() == [1.0] * 3
        costs, weights = (1.0, 3.0, 0.7), (5.0, 0.1, 1.3)
        scales = Objective(p, weights, costs).scales(3)
        dear = tuple(1024 * cost for cost in costs)
        assert Objective(p, weights, dear).scales(3).tolist() == scales.tolist()
        assert Objective(p, (0.3,) * 3, costs).scales(3).tolist() == Objective(p, None, costs).scales(3).tolist()
    assert (Objective(1.0, (1e100, 1e-100), (1e-100, 1e100)).scales(2) * 1e150 < math.inf).all()


def test_how_many_samples_money_buys() -> None:
    assert Objective().samples(100, 2) == 100
    assert Objective(costs=(1.0, 3.0)).samples(100, 2) == 50
    assert Objective(costs=(0.1, 0.1)).samples(0.3, 2) == 3


def test_the_loss_of_an_arm_without_weight_need_not_be_known() -> None:
    assert Objective(weights=(1.0, 0.0)).loss([2.0, math.nan]) == 2.0
    assert math.isnan(Objective(weights=(1.0, 1.0)).loss([2.0, math.nan]))


def test_a_norm_does_not_overflow() -> None:
    assert Objective(4.0).loss([1e200, 1e200]) == pytest.approx(1e200 * 2**0.25)
    assert Objective(0.01).optimal_loss([1e200, 1e200], 1) == pytest.approx(1e200 * 2.0**101)


@pytest.mark.parametrize("arms", [1, 2, 10, 3000])
def test_the_smallest_p(arms: int) -> None:
    """The norm of so many losses of 1e200 is a number, and any smaller p is refused."""
    least = math.ceil(100 * math.log10(arms)) / 10_000
    norm = objective(range(arms), least or 1e-9)
    assert norm.loss(np.full(arms, 1e200)) <= 1.01e300
    assert norm.optimal_loss(np.full(arms, 1e190), arms) <= 1.01e290
    if arms > 1:
        with pytest.raises(ValueError, match=f"objective must be at least {least} for {arms:,} arms, got "):
            objective(range(arms), 0.99 * least)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"p": 0}, r"objective must be a positive number p, math\.inf .* or Stratified\(shares\), got 0"),
        ({"p": math.nan}, "objective must be .*, got nan"),
        ({"weights": [1]}, "weights must have one value for each of the 2 arms, got 1"),
        ({"weights": [0, 0]}, "weights must be positive for at least one arm"),
        ({"weights": [1, -1]}, r"weights\['b'\] must be non-negative, got -1"),
        ({"weights": {"a": 1}}, "got none for 'b'"),
        ({"weights": {"a": 1, "b": 2, "c": 3}}, "got one for 'c', which is not an arm"),
        ({"costs": [1, 0]}, r"costs\['b'\] must be positive, got 0"),
        ({"costs": [1, math.inf]}, r"costs\['b'\] must be between 1e-100 and 1e100, got inf"),
        ({"p": eq.Stratified([0.5, 0.5]), "weights": [1, 1]}, "weights must be None with objective=Stratified"),
        ({"p": eq.Stratified([0.5, 0.25, 0.25])}, "shares must have one value for each of the 2 arms, got 3"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        objective(["a", "b"], **arguments)


@pytest.mark.parametrize("shares", [[0.5, 0.6], [], [1.5, -0.5], [math.nan, 1]])
def test_shares_make_up_a_whole(shares: list[float]) -> None:
    with pytest.raises(ValueError, match="share"):
        eq.Stratified(shares)


@pytest.mark.parametrize(
    ("make", "arguments", "sentence"),
    [
        (objective, {"names": "ab", "weights": 3}, "weights must have one value for each arm, .*, got 3"),
        (objective, {"names": "ab", "costs": ["x", 1]}, r"costs\['a'\] must be a number, got 'x'"),
        (objective, {"names": "ab", "p": "neyman"}, "objective must be a positive number p, .*, got 'neyman'"),
        (objective, {"names": "ab", "p": eq.Stratified}, "objective must be a positive number p, .*, got <class"),
        (eq.Stratified, {"shares": 3}, "shares must have one value for each arm, .*, got 3"),
        (eq.Stratified, {"shares": {"a": "x"}}, "a share must be a number, got 'x'"),
    ],
)
def test_what_is_not_a_number(make: Any, arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        make(**arguments)


def test_very_many_arms_by_name_are_quick() -> None:
    names = tuple(range(100_000))
    assert objective(names, weights=dict.fromkeys(names, 2.0)).weights == (2.0,) * len(names)


@pytest.mark.parametrize("p", [0.5, 1, 2, 7.5, math.inf])
def test_slopes(p: float) -> None:
    """
    They are the derivatives of the norm at the best allocation, by differences; at p = inf those of p = 10,000.

    With them, the weighted sum of its losses is the norm, and for p >= 1 no other allocation has a smaller one.
    """
    aim = Objective(p, weights=(1.0, 3.0, 0.5), costs=(1.0, 2.0, 5.0))
    variances = np.array([4.0, 1.0, 9.0])
    pulls = aim.optimal_pulls(variances, 100)
    losses, slopes = variances / pulls, aim.slopes(variances)
    assert slopes @ losses == pytest.approx(aim.loss(losses))
    assert slopes @ losses == pytest.approx(aim.optimal_loss(variances, 100))
    if p < math.inf:
        steps = losses * (1 + 1e-6 * np.eye(3))
        by_steps = [(aim.loss(step) - aim.loss(losses)) / 1e-6 for step in steps]
        assert slopes * losses == pytest.approx(by_steps, rel=1e-4)
    else:
        assert slopes == pytest.approx(Objective(1e4, aim.weights, aim.costs).slopes(variances), rel=1e-3)
    rng = np.random.default_rng(1)
    for _ in range(20):
        other = pulls * rng.uniform(0.5, 2, 3)
        other *= 100 / (aim.cost(3) @ other)
        assert p < 1 or slopes @ (variances / other) > slopes @ losses
    assert aim.slopes(np.array([variances, 2 * variances])) == pytest.approx(np.array([slopes, slopes]))
    assert aim.slopes(np.array([4.0, 0.0, 9.0]))[1] == 0
