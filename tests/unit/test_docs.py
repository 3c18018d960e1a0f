"""Every listing in the pages runs and prints what the page says; the table of the paper is complete and true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest

import equipoise as eq
from equipoise.base.inputs import INSTALL
from tests import listings
from tests.unit.theory.points import POINTS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_listings_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    listings.run(page, tmp_path)


def modules() -> list[str]:
    return [m.name for m in pkgutil.walk_packages(eq.__path__, "equipoise.") if not m.name.endswith("__main__")]


@pytest.mark.parametrize("module", ["equipoise", *modules()])
def test_docstrings_run(module: str) -> None:
    assert doctest.testmod(importlib.import_module(module)).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_extras_are_installed_as_the_messages_say(page: Path) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    known = {re.findall(r"pip install '\S+'", INSTALL.format(extra=extra))[0] for extra in extras}
    found = set(re.findall(r"pip install ['\"]\S*\[\w+\]['\"]|pip install equipoise\b", page.read_text()))
    wheel = f"'dist/equipoise-{eq.__version__}-py3-none-any.whl"  # its path may stand instead of the dot
    assert {command.replace('"', "'").replace(wheel, "'.") for command in found} <= known


RELEASED = INSTALL.startswith("pip install 'equipoise")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_says_that_nothing_is_on_pypi_as_long_as_the_messages_do(page: Path) -> None:
    must = name_of(page) in ("docs/index.md", "docs/tutorial.md") and not RELEASED
    found = "is not on PyPI yet" in page.read_text()
    assert found or not must
    assert not (found and RELEASED)


def rows_of(page: Path) -> list[str]:
    return [line for line in page.read_text().splitlines() if re.match(r"\| .*\(\d.*\) \|$", line)]


def test_the_readme_compares_as_the_page_does() -> None:
    rows = rows_of(ROOT / "README.md")
    assert len(rows) == 5
    assert set(rows) <= set(rows_of(ROOT / "docs" / "reference" / "peers.md"))


def test_the_papers_table_is_complete_and_true() -> None:
    page = (ROOT / "docs" / "explanation" / "paper.md").read_text()
    table = [line for line in page.split("## Errata")[0].splitlines() if line.startswith("| ")][1:]
    functions, tests = (
        {name for line in table for name in re.findall(r"`([^`]+)`", line.split("|")[i])} for i in (2, 3)
    )
    # Every function of the theory stands there, with its own points.
    assert set(eq.theory.__all__) <= functions
    assert {name for test in tests for name in re.findall(r"test_points.py\[(\w+)\]", test)} == set(POINTS)
    for name in functions - set(eq.theory.__all__):
        if name.startswith("equipoise."):
            assert pkgutil.resolve_name(name) is not None
            continue
        owner, _, rest = name.removeprefix("eq.").removeprefix(".").partition(".")
        found = getattr(eq, owner, None) or getattr(eq.Problem, owner, None)
        for part in filter(None, rest.split(".")):
            found = getattr(found, part)
        assert found is not None, name
    for test in tests:
        file = test.partition("[")[0]
        assert list((ROOT / "tests").rglob(Path(file).name)), test


def test_the_walks_name_what_exists() -> None:
    """Every function and class in the walks of ARCHITECTURE.md is defined in the package."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    walks = text[text.index("## Four walks") : text.index("## State of a study")]
    steps = [line.split("|")[2] for line in walks.splitlines() if re.match(r"\| (\d+|or) \|", line)]
    names = [name for step in steps for name in re.findall(r"`([A-Za-z_.]+)`", step) if not name.endswith(".py")]
    assert len(names) > 30
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    assert [name for name in names if not re.search(rf"(def|class) {name.rpartition('.')[2]}\b", source)] == []
