"""The version is the same wherever it is written, and extras are complete."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import equipoise as eq

ROOT = Path(__file__).parents[2]


def test_the_version_is_the_same_everywhere() -> None:
    version = re.escape(eq.__version__)
    released = re.search(rf"^## {version} \((\S+)\)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert released is not None
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version: {eq.__version__}\ndate-released: {released[1]}\n" in citation


def test_all_has_every_extra_that_users_need() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    included, todo = set(), {"all"}
    while todo:
        extra = todo.pop()
        included.add(extra)
        own = [re.fullmatch(r"equipoise\[(.*)\]", each) for each in extras[extra]]
        todo |= {name for found in own if found for name in found[1].split(",")} - included
    assert included == set(extras) - {"peers", "dev", "docs", "release"}
