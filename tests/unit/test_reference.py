"""The package against an independent reading of the paper, `tests.reference`."""

import json
from collections.abc import Callable
from itertools import cycle, islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from tests import reference
from tests.golden import make

MADE = {"ch_as": eq.strategies.CHAS, "b_as": eq.strategies.BAS, "gafs_max": eq.strategies.GAFSMAX}
BY_HAND: dict[str, Callable[..., list[int]]] = {
    "ch_as": reference.ch_as,
    "b_as": reference.b_as,
    "gafs_max": reference.gafs_max,
}
OTHER_PARAMETERS: list[tuple[str, dict[str, float]]] = [
    ("ch_as", {"delta": 0.9, "width": 1.0}),
    ("ch_as", {"width": 0.3}),
    ("b_as", {"exploration": 2.0}),
    ("b_as", {"c1": 0.002, "c2": 1.0}),
    ("b_as", {"c1": 0.01, "c2": 2.0, "delta": 0.3}),
    ("gafs_max", {"alpha": 0.25}),
    ("gafs_max", {"alpha": 2.0}),
]


def golden(name: str) -> dict[str, Any]:
    trace: dict[str, Any] = json.loads((make.HERE / f"{name}.json").read_text())
    return trace


def asked(name: str, samples: reference.Samples, n: int, parameters: dict[str, Any]) -> list[int]:
    """What a study asks for."""
    study = eq.Study(arms=len(samples), budget=n, strategy=MADE[name](**parameters))
    return reference.replay(study, samples)


@pytest.mark.parametrize("name", MADE)
def test_a_study_repeats_the_golden_trace(name: str) -> None:
    trace = golden(name)
    assert len(trace["decisions"]) == 200
    assert asked(name, trace["samples"], trace["budget"], trace["parameters"]) == trace["decisions"]


@pytest.mark.parametrize("name", MADE)
def test_the_golden_trace_is_what_the_reference_decides(name: str) -> None:
    trace = golden(name)
    assert make.traces()[name] == trace
    assert BY_HAND[name](trace["samples"], trace["budget"], **trace["parameters"]) == trace["decisions"]


@pytest.mark.parametrize(("name", "parameters"), OTHER_PARAMETERS)
def test_a_study_repeats_the_reference_with_other_parameters(name: str, parameters: dict[str, float]) -> None:
    samples, n = golden(name)["samples"], 200
    assert asked(name, samples, n, parameters) == BY_HAND[name](samples, n, **parameters)


@pytest.mark.parametrize("name", MADE)
def test_exact_ties_go_to_the_lowest_arm(name: str) -> None:
    parameters = {"exploration": 1.0} if name == "b_as" else {}
    for samples in ([[0.5] * 60] * 5, [[float(k)] * 60 for k in range(4)]):
        assert asked(name, samples, 60, parameters) == BY_HAND[name](samples, 60, **parameters)


@st.composite
def problems(draw: st.DrawFn, pulls: int) -> tuple[list[list[float]], int]:
    """Samples in [0, 1], repeating, and a budget; mostly on a grid so coarse that indices tie."""
    grid = draw(st.sampled_from([1, 2, 3, 10**6]))
    value = st.integers(0, grid).map(lambda i: i / grid)
    arms = draw(st.lists(st.lists(value, min_size=1, max_size=12), min_size=1, max_size=6))
    n = draw(st.integers(pulls * len(arms), 60))
    return [list(islice(cycle(arm), n)) for arm in arms], n


def check(rule: reference.Rule, samples: list[list[float]], arms: list[int]) -> None:
    """Every arm asked for has the best index, by the reference's count of what the study had seen.

    Rounding may choose among indices that agree to twelve digits, but not between two arms that have shown
    the very same samples: the lower one comes first.
    """
    seen: list[list[float]] = [[] for _ in samples]
    for arm, said in zip(arms, reference.decisions(rule, samples, arms), strict=True):
        assert arm in said.near
        assert seen.index(seen[arm]) == arm or said.near == {arm}
        seen[arm].append(samples[arm][len(seen[arm])])


@settings(deadline=None, max_examples=300)
@given(problems(pulls=2), st.none() | st.floats(1e-6, 0.99), st.sampled_from([0.25, 1.0, 3.0]))
def test_ch_as_chooses_as_the_reference(
    problem: tuple[list[list[float]], int], delta: float | None, width: float
) -> None:
    samples, n = problem
    samples = [[width * x for x in row] for row in samples]
    arms = asked("ch_as", samples, n, {"delta": delta, "width": width})
    check(reference.ch_as_rule(n, delta, width), samples, arms)


@settings(deadline=None, max_examples=300)
@given(
    problems(pulls=2),
    st.fixed_dictionaries({"exploration": st.floats(0.01, 5.0)})
    | st.fixed_dictionaries(
        {"c1": st.floats(1.0, 4.0), "c2": st.floats(1.0, 4.0), "delta": st.none() | st.floats(1e-6, 0.7)}
    ),
    st.sampled_from([1.0, 100.0]),
)
def test_b_as_chooses_as_the_reference(
    problem: tuple[list[list[float]], int], parameters: dict[str, Any], scale: float
) -> None:
    samples, n = problem
    samples = [[scale * x for x in row] for row in samples]
    arms = asked("b_as", samples, n, parameters)
    check(reference.b_as_rule(n, **parameters), samples, arms)


@settings(deadline=None, max_examples=300)
@given(problems(pulls=1), st.sampled_from([0.125, 0.25, 0.5, 1.0, 2.0]))
def test_gafs_max_chooses_as_the_reference(problem: tuple[list[list[float]], int], alpha: float) -> None:
    samples, n = problem
    arms = asked("gafs_max", samples, n, {"alpha": alpha})
    check(reference.gafs_max_rule(alpha), samples, arms)
