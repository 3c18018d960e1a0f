"""The points see every constant, operator and comparison of the theory: change one, and some point fails."""

from __future__ import annotations

import inspect
from functools import cache
from types import ModuleType
from typing import Any

import pytest

from equipoise import theory
from equipoise.numeric import moments
from equipoise.strategies import b_as, ch_as
from equipoise.theory import bernstein, chernoff, losses
from tests.mutation import mutants
from tests.unit.theory.points import POINTS, RADIUS
from tests.unit.theory.test_points import agrees

MODULES = [theory, chernoff, bernstein, losses, b_as, ch_as, moments]
TARGETS = [
    *(
        (m, f.__name__)
        for m in MODULES[1:4]
        for f in vars(m).values()
        if inspect.isfunction(f) and f.__module__ == m.__name__
    ),
    *((b_as, name) for name in ("a", "default_delta", "bounded_constants")),
    *((ch_as, name) for name in ("default_delta", "radius")),
    (moments, "next_variance"),
]

# Mutants that compute the same function.
EQUIVALENT = {("remark3_pulls", "200", "300"): "halving 200 times is past the last digit already"}


@cache
def expected() -> list[tuple[ModuleType, str, dict[str, Any], Any]]:
    of_theory = [(theory, name, *point) for name, points in POINTS.items() for point in points]
    of_strategy = [(ch_as, "radius", *point) for point in RADIUS]
    return [(module, name, arguments, value()) for module, name, arguments, value in of_theory + of_strategy]


def unnoticed() -> bool:
    """Whether all points still agree; a result that cannot be compared is as good as a wrong one."""
    try:
        return all(agrees(getattr(m, name)(**arguments), value, 1e-9) for m, name, arguments, value in expected())
    except Exception:
        return False


def test_without_a_mutant_all_points_agree() -> None:
    assert unnoticed()


@pytest.mark.parametrize(("module", "name"), [pytest.param(m, n, id=f"{m.__name__}.{n}") for m, n in TARGETS])
def test_no_mutant_goes_unnoticed(module: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = getattr(module, name)
    places = [(user, alias) for user in MODULES for alias, value in vars(user).items() if value is original]
    survivors = []
    for (before, after), mutant in mutants(module, name):
        with monkeypatch.context() as patch:
            for user, alias in places:
                patch.setattr(user, alias, mutant)
            if unnoticed() and (name, before, after) not in EQUIVALENT:
                survivors.append(f"{before}  ->  {after}")
    assert not survivors, f"{module.__name__}.{name}: no point tells apart\n" + "\n".join(survivors)


def test_equivalent_mutants_exist() -> None:
    """A change of the library does not leave a stale excuse behind."""
    changes = {(name, *change) for module, name in TARGETS for change, _ in mutants(module, name)}
    assert set(EQUIVALENT) <= changes
