"""
Rules that the modules of the package keep: no import cycles, and one public class for each name.

import-linter holds the order of the rooms (`make lint`); here are the rules within them.
"""

from __future__ import annotations

import ast
import collections
import graphlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"


def modules() -> dict[str, ast.Module]:
    """Return the syntax tree of every module of the package, by name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def imported(tree: ast.Module, known: Mapping[str, ast.Module]) -> Iterator[str]:
    """Yield the modules of the package that a module imports, also within functions and for type checking."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def cycle(trees: Mapping[str, ast.Module]) -> list[str]:
    """Return the modules of an import cycle in order; none where there is none."""
    graph = {name: {m for m in imported(tree, trees) if m in trees and m != name} for name, tree in trees.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def doubles(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Return the names that more than one module gives to a public class, with these modules."""
    where = collections.defaultdict(list)
    for module, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(module)
    return {name: found for name, found in where.items() if len(found) > 1}


def test_no_import_cycles() -> None:
    assert not cycle(modules())


def test_a_name_is_that_of_one_public_class() -> None:
    assert not doubles(modules())


@pytest.mark.parametrize(
    "guard", ["", "if TYPE_CHECKING:\n    ", "def f():\n    "], ids=["runtime", "type checking", "in a function"]
)
def test_a_cycle_is_found(guard: str) -> None:
    trees = {
        "house": ast.parse(""),
        "house.a": ast.parse("from house import b"),
        "house.b": ast.parse("import house.c"),
        "house.c": ast.parse(f"{guard}from house.a import name"),
    }
    assert set(cycle(trees)) == {"house.a", "house.b", "house.c"}
    del trees["house.c"]
    assert not cycle(trees)


def test_a_double_is_found() -> None:
    one, other = ast.parse("class Plan: ...\nclass _Own: ..."), ast.parse("class Plan: ...\nclass _Own: ...")
    assert doubles({"a": one, "b": other}) == {"Plan": ["a", "b"]}
