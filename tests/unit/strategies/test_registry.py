"""The register of strategies, and a third party's entry in it."""

from __future__ import annotations

import numpy as np
import pytest

import equipoise as eq
from equipoise.strategies import Numbers, Strategy, available, deserialise, get, label, register, resolve, serialise


def test_the_names_of_the_design() -> None:
    assert {"auto", "ch-as", "b-as", "gafs-max", "uniform", "oracle", "two-stage", "greedy"} <= set(available())
    assert eq.strategies.BAS is get("b-as")
    assert {"CHAS", "MCUCB", "Strategy", "register"} <= set(dir(eq.strategies))
    assert not {"check_params", "importlib", "key", "annotations"} & set(dir(eq.strategies))
    assert resolve("auto") == eq.strategies.Auto()
    assert resolve(eq.strategies.GAFSMAX(2.0)).name == "gafs-max"


def test_a_third_party_registers_its_own() -> None:
    @register("test-only")
    class Mine(Strategy):
        @staticmethod
        def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
            return m2 / (count - 1) + 1 / count

    assert "test-only" in available()
    study = eq.Study(3, budget=30, strategy="test-only")
    while not study.done:
        ticket = study.ask()
        study.tell(ticket, float(ticket.arm == 2) * (-1) ** ticket.id * 3)
    counts = study.result().counts
    assert counts[2] > counts[0] >= 2

    # The same cell of a notebook, run again, replaces it; a stranger under the same name is refused.
    register("test-only")(Mine)
    other = type("Other", (Strategy,), {})
    with pytest.raises(ValueError, match="is already registered"):
        register("test-only")(other)


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("b_as", "'b-as'"),
        ("gafsmax", "'gafs-max'"),
        ("Auto", "'auto'"),
        ("unifrom", "'uniform'"),
        ("BAS", "'b-as'"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(wrong: str, near: str) -> None:
    with pytest.raises(ValueError, match=f"there is no strategy '{wrong}'; did you mean {near}"):
        eq.Study(2, strategy=wrong)


def test_what_is_not_a_strategy() -> None:
    with pytest.raises(TypeError, match=r"must be an instance, got the class Auto; write Auto\(\)"):
        resolve(eq.strategies.Auto)
    with pytest.raises(TypeError, match=r"strategy must be a name such as .* got 7"):
        resolve(7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"must be a subclass of eq.strategies.Strategy, got <class 'int'>"):
        register("nothing")(int)  # type: ignore[type-var]
    with pytest.raises(ValueError, match="must be in lower case, such as 'my-strategy', got 'Loud'"):
        register("Loud")
    with pytest.raises(ValueError, match="there is no strategy 'zzz'; the strategies are auto, b-as"):
        resolve("zzz")
    with pytest.raises(AttributeError, match="no strategy class 'Nope'"):
        eq.strategies.Nope  # noqa: B018


def test_labels() -> None:
    assert label(eq.strategies.BAS(exploration=0.5)) == "b-as (exploration=0.5)"
    assert label(eq.strategies.MCUCB(c1=np.float64(2), c2=1)) == "mc-ucb (c1=2.0, c2=1)"
    assert label(eq.strategies.Oracle([4, 1])) == "oracle (variances=(4.0, 1.0))"
    assert label(eq.strategies.Greedy()) == label(eq.strategies.Greedy(least=5)) == "greedy"
    assert label(type("Nameless", (Strategy,), {})()) == "Nameless"


def test_saved_strategies() -> None:
    for strategy in (eq.strategies.MCUCB(exploration=0.5), eq.strategies.Oracle([4, 1]), eq.strategies.Auto()):
        assert deserialise(serialise(strategy)) == strategy
    assert serialise(eq.strategies.Greedy()) == {"name": "greedy", "parameters": {"least": 5}}
    with pytest.raises(eq.EquipoiseError, match="must be registered so that it can be saved"):
        serialise(type("Nameless", (Strategy,), {})())
