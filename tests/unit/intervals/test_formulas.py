"""Each kind's formula gives what its paper says, to eleven digits, and no constant or operator could be another."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import math
import types
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from equipoise import compiled
from tests.mutation import mutated
from tests.unit.intervals.points import POINTS, Numbers


def module(name: str) -> Any:
    return importlib.import_module(f"equipoise.intervals.{name}")


@cache
def expected(name: str) -> Numbers:
    return POINTS[name][1]()


def agree(found: Numbers, wanted: Numbers, digits: float) -> bool:
    return len(found) == len(wanted) and all(
        a == b or math.isclose(a, b, rel_tol=digits, abs_tol=digits) for a, b in zip(found, wanted, strict=True)
    )


@pytest.mark.parametrize("name", POINTS)
def test_the_formula_gives_what_the_paper_says(name: str) -> None:
    found, wanted = POINTS[name][0](module(name)), expected(name)
    assert found == pytest.approx(wanted, rel=1e-11, abs=1e-12)


# Mutants that compute the same function, or one that only takes longer: by function, all of them or those named.
ROOM = "a row with more columns holds the same numbers"
ENDED = "the search has ended long before"
EQUIVALENT: dict[str, dict[tuple[str, ...], str]] = {
    "bounded_betting": {
        ("the module", "40.0", "60"): "what is left out is too small to be seen",
        ("the module", "1", "1.5"): "all shares alike: they are divided by their sum",
        ("capital", "0.0", "1"): "what total and slope begin with is multiplied by exp(-inf)",
        ("bounds", "1.0", "1.5"): "the same way",
    },
    "pool_betting": {
        ("the module", "2", "3"): ROOM,
        ("bounds", "1.0", "1.5"): "the same way",
    },
    "newton": {
        ("the module", "100", "150"): ENDED,
        ("edge", "way * (nearer - m)", "way / (nearer - m)"): "the same sign",
    },
    "t_mixture": {},
    "binary_betting": {
        ("the module", "2", "3"): ROOM,
        ("the module", "100", "150"): ENDED,
        ("lower", "f / (1 - m)", "f * (1 - m)"): "another slope, the same root",
        ("lower", "1 - m", "1 + m"): "another slope, the same root",
        ("lower", "1", "1.5"): "another slope, the same root",
    },
    "asymptotic": {
        ("the module", "4", "6"): ROOM,
        ("settings", "level + math.log(level)", "level - math.log(level)"): "another start, the same root",
        ("settings", "20", "30"): ENDED,
        (
            "settings",
            "(u - math.log(u) - level) / (1 - 1 / u)",
            "(u - math.log(u) - level) * (1 - 1 / u)",
        ): "the same root",
        ("settings", "1 - 1 / u", "1 + 1 / u"): "another slope, the same root",
        ("settings", "1", "1.5"): "another slope, the same root",
    },
    "fixed_n": {
        ("the module", "4", "6"): ROOM,
        ("the module", "1e-300", "1.5e-300"): "as near to zero",
        ("fraction", "100000", "150000"): ENDED,
        ("fraction", "c * d - 1", "c * d + 1"): "goes on to the end",
        ("fraction", "c * d", "c / d"): "goes on to the end",
        ("fraction", "1", "1.5"): "goes on to the end",
        ("fraction", "1e-15", "1.5000000000000001e-15"): "as near",
        ("upper_tail", "a + 1", "a - 1"): "the other of two formulas for the same, slower",
        ("upper_tail", "1", "1.5"): "the other of two formulas for the same, slower",
        ("upper_tail", "2", "3"): "the other of two formulas for the same, slower",
        ("upper_quantile",): "whatever steps it proposes, halving between the same two ends finds the same root",
    },
}


class Change(ast.NodeTransformer):
    """Changes the place with the given number; leaves texts, indices' names and annotations alone."""

    def __init__(self, place: int) -> None:
        self.left = place
        self.where = "the module"
        self.change: tuple[str, str, str] | None = None

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Import | ast.ImportFrom):
            return node
        if isinstance(node, ast.FunctionDef):
            self.where = node.name
        mutant = mutated(node)
        if mutant is not None:
            if self.left == 0 and self.change is None:
                self.change = self.where, ast.unparse(node), ast.unparse(mutant)
                return mutant
            self.left -= 1
        return self.generic_visit(node)


def few(*bounds: int) -> range:
    """A range that ends early: a mutant must not search for hours."""
    return builtins.range(*bounds)[:120]


def load(tree: ast.Module, name: str) -> Any:
    made = types.ModuleType(f"mutant_of_{name}")
    vars(made)["range"] = few
    exec(compile(ast.fix_missing_locations(tree), f"<mutant of {name}>", "exec"), vars(made))
    return made


def mutants(name: str) -> Iterator[tuple[tuple[str, str, str], ast.Module]]:
    source = inspect.getsource(module(name))
    place = 0
    while True:
        change = Change(place)
        tree = change.visit(ast.parse(source))
        if change.change is None:
            return
        yield change.change, tree
        place += 1


def unnoticed(tree: ast.Module, name: str) -> bool:
    try:
        return agree(POINTS[name][0](load(tree, name)), expected(name), 1e-9)
    except Exception:
        return False


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", POINTS)
def test_no_mutant_goes_unnoticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for decorator in ("jit", "callable_compiled"):
        monkeypatch.setattr(compiled, decorator, lambda function, **options: function)
    assert unnoticed(ast.parse(inspect.getsource(module(name))), name)
    excused = EQUIVALENT[name]
    survivors = {change for change, tree in mutants(name) if unnoticed(tree, name)}
    assert sorted(change for change in survivors if change not in excused and change[:1] not in excused) == []
    # No stale excuse is left behind.
    assert [each for each in excused if not any(change[: len(each)] == each for change in survivors)] == []
