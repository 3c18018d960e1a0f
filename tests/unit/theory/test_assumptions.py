"""A bound is worth nothing outside the assumptions of its proof: refuse, and say which value is at fault."""

from __future__ import annotations

import inspect
import math
import re
from typing import Any

import pytest

from equipoise import theory
from tests.unit.theory.points import POINTS

NAN = math.nan
OF_LEMMA2 = ["lemma2_least_pulls", "lemma2_bounds", "c", "B", "C"]
OF_THEOREM2 = ["theorem2", "theorem2_leading"]
APPENDIX = ["a_bounds", "B_bound", "C_bound", "lemma6_bound"]
NOT_ONE_ROW_EACH: list[Any] = [[0.5, 0.5], [[0.5, 0.5]], [[[0.5, 0.5]], [[0.5, 0.5]]], [[], []]]


def taking(*parameters: str) -> list[str]:
    """The public functions that have all these parameters."""
    return [n for n in theory.__all__ if {*parameters} <= {*inspect.signature(getattr(theory, n)).parameters}]


def each(names: list[str], argument: str, *values: Any, **others: Any) -> list[Any]:
    """One case for each function and each value of the argument; the other arguments are a valid point's."""
    return [
        pytest.param(name, {**others, argument: value}, value, id=f"{name}-{argument}={value}")
        for name in names
        for value in values
    ]


def naming(value: float) -> str:
    """A pattern for the value as a number of its own in a message, however it is printed."""
    return rf"(?<![\d.-]){re.escape(f'{value:g}')}(\.0)?(?![\d.])"


def call(name: str, changes: dict[str, Any]) -> Any:
    return getattr(theory, name)(**{**POINTS[name][0][0], **changes})


REFUSED = [
    # Lemmas 1, 4 and 6, Theorem 4: delta is the probability of a failure.
    *each(taking("delta"), "delta", 0.0, 1.0, -0.25, 1.5, NAN),
    # Lemma 2 asks for delta <= 2 / e, Lemma 4 for delta < c2.
    *each(OF_LEMMA2, "delta", 0.736, 0.9),
    *each(["a", "lemma4_radius", "lemma5_radius"], "delta", 0.25, 0.3, c2=0.25),
    *each(["lemma4_event"], "delta", 0.25, c2=0.25, c1=1000.0),
    # The budget: 5 K in the lemmas and theorems, 10 where the proof says 5 K >= 10.
    *each(
        ["lemma1_bounds", "theorem1", "lemma2_least_pulls", "lemma2_bounds", *OF_THEOREM2],
        "n",
        14,
        0,
        -20,
        NAN,
    ),
    *each(["c", "B", "C"], "n", 0, -20, NAN),
    *each(["theorem3", "B_bound", "C_bound", "lemma6_bound"], "n", 14, -20, NAN, K=3),
    *each(["a_bounds"], "n", 9, -20, NAN),
    *each(["remark3_pulls", "remark3_leading", "remark3_regret"], "n", 9, 0, NAN),
    *each(["lemma4_radius", "a"], "n", 0, -1, NAN),
    *each(["lemma1_probability", "lemma4_probability", "lemma6"], "n", 0, -1, NAN),
    *each(["conjectured_regret", "remark3_gafs_max_pulls"], "n", 0, -1, NAN),
    # The number of arms; the proofs of Theorem 1 and of the appendix's inequalities have at least two.
    *each(taking("K"), "K", 0, -1, NAN),
    *each(["theorem3", "B_bound", "C_bound", "lemma6_bound"], "K", 1, n=100),
    # Assumption 1 and its constants.
    *each(taking("c1"), "c1", 0.0, -1.0, NAN),
    *each(taking("c2"), "c2", 0.0, -1.0, NAN),
    *each([*OF_LEMMA2, *OF_THEOREM2], "c1", 0.99, variances=[0.2, 0.1]),
    *each([*OF_LEMMA2, *OF_THEOREM2], "c2", 0.99, variances=[0.2, 0.1]),
    *each([*APPENDIX, "c_bound"], "c2", 0.99),
    *each(["theorem3"], "Sigma_bar", 0.49, 0.0, -1.0, NAN),
    # Samples and pulls.
    *each(["theorem4", "lemma4_radius", "lemma7"], "t", 1, 0, -3, NAN),
    *each(["lemma4_radius"], "n", 12, t=13),
    *each(["lemma5_radius"], "pulls", 1, 0, -3, NAN),
    *each(["lemma1_radius"], "t", 0, -3, NAN),
    *each(["theorem4"], "width", 0.0, -1.0, NAN),
    *each(["wald"], "expected_pulls", -1.0, NAN),
    *each(["loss_on_event"], "least_pulls", 0.0, -1.0, NAN),
    *each(["loss_on_event"], "expected_pulls", -1.0, NAN),
    *each(["lemma3", "lemma7", "wald", "loss_on_event"], "variance", -1.0, NAN),
    *each(["remark3_pulls", "remark3_leading", "remark3_regret"], "variance", 0.0, 0.26, -1.0, NAN),
    *each(["lemma7"], "mean", NAN),
    # The rest.
    *each(["conjectured_regret"], "lambda_min", -0.1, 1.1, NAN),
    *each(["conjectured_regret"], "fast", -1.0, NAN),
    *each(["conjectured_regret"], "slow", -1.0, NAN),
    *each(["remark3_gafs_max_pulls"], "alpha", -1.0, NAN),
    *each(["subgaussian_tail"], "epsilon", -1.0, NAN),
    *each(["bounded_constants"], "low", NAN),
    *each(["bounded_constants"], "high", 0.0, -7.5, NAN),
]


@pytest.mark.parametrize(("name", "changes", "value"), REFUSED)
def test_refuses_and_names(name: str, changes: dict[str, Any], value: Any) -> None:
    with pytest.raises(ValueError, match=naming(value)):
        call(name, changes)


@pytest.mark.parametrize("name", ["theorem1", "theorem2", "theorem2_leading"])
def test_the_theorems_need_two_arms(name: str) -> None:
    """Their constants use n >= 5 K >= 10."""
    with pytest.raises(ValueError, match=r"^K must be finite and at least 2, got 1$"):
        call(name, {"variances": [0.2], "n": 100})


@pytest.mark.parametrize(("delta", "outside"), [(0.03125, 2.0), (0.5, 32.0)])
def test_lemma6_needs_the_event_to_be_likely(delta: float, outside: float) -> None:
    """2 n K delta < c2, strictly."""
    with pytest.raises(ValueError, match=f"^2nKδ must be less than c2 = 2, got {naming(outside)}"):
        call("lemma6", {"n": 16, "K": 2, "c2": 2.0, "delta": delta})


@pytest.mark.parametrize("name", taking("variances"))
@pytest.mark.parametrize("variance", [0.0, -0.5, NAN, math.inf])
def test_refuses_a_variance_that_is_not_positive(name: str, variance: float) -> None:
    variances = [*POINTS[name][0][0]["variances"]]
    variances[-1] = variance
    with pytest.raises(ValueError, match=naming(variance)):
        call(name, {"variances": variances})


@pytest.mark.parametrize("name", taking("variances"))
@pytest.mark.parametrize("variances", [[], [[0.1, 0.2]], 0.1])
def test_refuses_variances_that_are_not_a_row(name: str, variances: Any) -> None:
    with pytest.raises(ValueError, match="variances"):
        call(name, {"variances": variances})


@pytest.mark.parametrize("name", ["lemma1_bounds", "lemma1_event", "theorem1"])
def test_no_law_on_the_unit_interval_varies_more_than_a_quarter(name: str) -> None:
    samples = {"samples": [[0.5, 0.5]] * 2} if name == "lemma1_event" else {"n": 100}
    with pytest.raises(ValueError, match=naming(0.26)):
        call(name, {"variances": [0.26, 0.1], **samples})
    call(name, {"variances": [0.25, 0.1], **samples})


@pytest.mark.parametrize("name", [*OF_LEMMA2, *OF_THEOREM2, "lemma4_event"])
def test_no_subgaussian_law_varies_more_than_c1_c2(name: str) -> None:
    changes: dict[str, Any] = {"c1": 2.0, "c2": 1.5}
    changes |= {"samples": [[0.5, 0.5]] * 2} if name == "lemma4_event" else {"n": 100}
    with pytest.raises(ValueError, match=naming(3.01)):
        call(name, {"variances": [1.0, 3.01], **changes})
    call(name, {"variances": [1.0, 3.0], **changes})


@pytest.mark.parametrize("name", ["lemma1_event", "lemma4_event"])
@pytest.mark.parametrize("samples", NOT_ONE_ROW_EACH)
def test_refuses_samples_that_are_not_a_row_for_each_arm(name: str, samples: Any) -> None:
    with pytest.raises(ValueError, match="samples"):
        call(name, {"variances": [0.1, 0.2], "samples": samples})


@pytest.mark.parametrize("value", [1.5, -0.5, NAN])
def test_lemma1_is_about_samples_in_the_unit_interval(value: float) -> None:
    with pytest.raises(ValueError, match=naming(value)):
        call("lemma1_event", {"variances": [0.1], "samples": [[0.5, value]]})


@pytest.mark.parametrize("value", [NAN, math.inf])
def test_lemma4_refuses_samples_that_are_not_numbers(value: float) -> None:
    with pytest.raises(ValueError, match=naming(value)):
        call("lemma4_event", {"variances": [0.1], "samples": [[0.5, value]]})


@pytest.mark.parametrize("pulls", [[], [2, 0], [3, -1], [2, NAN]])
def test_lemma3_refuses_pulls_that_are_no_counts(pulls: list[float]) -> None:
    with pytest.raises(ValueError, match=naming(pulls[-1]) if pulls else "pulls"):
        call("lemma3", {"pulls": pulls})


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        *((name, {"n": 15}) for name in ["lemma1_bounds", "theorem1", *OF_LEMMA2, *OF_THEOREM2]),
        *((name, {"n": 10, "K": 2}) for name in ["theorem3", "B_bound", "C_bound", "lemma6_bound"]),
        *((name, {"delta": 2 / math.e}) for name in OF_LEMMA2),
        *((name, {"c1": 1.0, "c2": 1.0, "variances": [1.0, 0.1]}) for name in [*OF_LEMMA2, *OF_THEOREM2]),
        *((name, {"n": 10}) for name in ["a_bounds", "remark3_pulls", "remark3_leading", "remark3_regret"]),
        *((name, {"t": 2}) for name in ["theorem4", "lemma4_radius", "lemma7"]),
        ("lemma5_radius", {"pulls": 2}),
        ("lemma1_radius", {"t": 1}),
        ("theorem3", {"Sigma_bar": 0.5}),
        ("lemma6", {"n": 16, "K": 2, "c2": 2.0, "delta": 0.03124}),
        ("conjectured_regret", {"lambda_min": 1.0}),
    ],
)
def test_accepts_the_boundary(name: str, changes: dict[str, Any]) -> None:
    assert call(name, changes) is not None
