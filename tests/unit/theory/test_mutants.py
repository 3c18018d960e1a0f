"""The points see every constant, operator and comparison of the theory: change one, and some point fails."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

import pytest

from equipoise import moments, theory
from equipoise.strategies import b_as, ch_as
from equipoise.theory import bernstein, chernoff, losses
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

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.USub: ast.UAdd,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Is: ast.IsNot,
}

# Mutants that compute the same function.
EQUIVALENT = {("remark3_pulls", "200", "300"): "halving 200 times is past the last digit already"}


class Mutation(ast.NodeTransformer):
    """
    Changes the place with the given number, and leaves the checks of assumptions alone.

    Those are tested on their own: they decide whether there is a result, not which.
    """

    def __init__(self, place: int) -> None:
        self.left = place
        self.change: tuple[str, str] | None = None

    def visit(self, node: ast.AST) -> Any:
        match node:
            case ast.Raise() | ast.If(body=[ast.Raise()]):
                return node
            case ast.Call(func=ast.Attribute(value=ast.Name(id="assumptions"))):
                return node
        mutant = mutated(node)
        if mutant is not None:
            if self.left == 0 and self.change is None:
                self.change = ast.unparse(node), ast.unparse(mutant)
                return mutant
            self.left -= 1
        return self.generic_visit(node)


def mutated(node: ast.AST) -> ast.AST | None:
    """The node with another constant or operator, or None if there is nothing to change in it."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            changed = value * 1.5 if value else 1
            return ast.copy_location(ast.Constant(int(changed) if changed == int(changed) else changed), node)
        case ast.BinOp(left, op, right) if type(op) in OPERATORS:
            return ast.copy_location(ast.BinOp(left, OPERATORS[type(op)](), right), node)  # type: ignore[arg-type]
        case ast.UnaryOp(op, operand) if type(op) in OPERATORS:
            return ast.copy_location(ast.UnaryOp(OPERATORS[type(op)](), operand), node)  # type: ignore[arg-type]
        case ast.Compare(left, [op], right) if type(op) in OPERATORS:
            return ast.copy_location(ast.Compare(left, [OPERATORS[type(op)]()], right), node)  # type: ignore[list-item]
    return None


def mutants(module: ModuleType, name: str) -> Iterator[tuple[tuple[str, str], FunctionType]]:
    """Every single change of the function, what it replaces by what, and the changed function."""
    source = textwrap.dedent(inspect.getsource(getattr(module, name)))
    place = 0
    while True:
        mutation = Mutation(place)
        tree = mutation.visit(ast.parse(source))
        if mutation.change is None:
            return
        found: dict[str, Any] = {}
        exec(compile(ast.fix_missing_locations(tree), f"<mutant of {name}>", "exec"), vars(module), found)
        yield mutation.change, found[name]
        place += 1


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
