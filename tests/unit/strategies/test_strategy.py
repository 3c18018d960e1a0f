"""The register of strategies, and a third party's entry in it."""

from __future__ import annotations

import pytest

import equipoise as eq
from equipoise.strategies import Strategy, available, get, register, resolve


def test_the_names_of_the_design() -> None:
    assert {"auto", "ch-as", "b-as", "gafs-max", "uniform", "oracle", "two-stage", "greedy"} <= set(available())
    assert eq.strategies.BAS is get("b-as")
    assert "CHAS" in dir(eq.strategies)
    assert resolve("auto") == eq.strategies.Auto()
    assert resolve(eq.strategies.GAFSMAX(2.0)).name == "gafs-max"


def test_a_third_party_registers_its_own() -> None:
    @register("test-only")
    class Mine(Strategy):
        @staticmethod
        def variance(
            count: float, mean: float, m2: float, pooled: float, own: float, params: tuple[float, ...]
        ) -> float:
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
    with pytest.raises(ValueError, match="registered already"):
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


def test_what_is_no_strategy() -> None:
    with pytest.raises(TypeError, match=r"Auto is a class; Auto\(\) is a strategy"):
        resolve(eq.strategies.Auto)
    with pytest.raises(TypeError, match="7 is not a strategy"):
        resolve(7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not a class derived"):
        register("nothing")(int)  # type: ignore[type-var]
    with pytest.raises(ValueError, match="lower case"):
        register("Loud")
    with pytest.raises(ValueError, match="there is no strategy 'zzz'; there are auto"):
        resolve("zzz")
    with pytest.raises(AttributeError, match="no strategy class 'Nope'"):
        eq.strategies.Nope  # noqa: B018
