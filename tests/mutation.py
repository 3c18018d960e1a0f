"""Changes of single constants, operators and comparisons of a function, to see whether tests notice them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from types import ModuleType
from typing import Any

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
    ast.Eq: ast.NotEq,
}


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


def mutants(owner: ModuleType | type, name: str) -> Iterator[tuple[tuple[str, str], Any]]:
    """Every single change of a module's or class's function: what it replaces by what, and the changed function."""
    original = getattr(owner, name)
    source = textwrap.dedent(inspect.getsource(original))
    place = 0
    while True:
        mutation = Mutation(place)
        tree = mutation.visit(ast.parse(source))
        if mutation.change is None:
            return
        found: dict[str, Any] = {}
        exec(compile(ast.fix_missing_locations(tree), f"<mutant of {name}>", "exec"), original.__globals__, found)
        yield mutation.change, found[name]
        place += 1
