"""A store that an earlier version has written can be read and continued; a change of format must keep that so."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

import equipoise as eq
from equipoise.store import STORE_FORMAT
from tests.golden import make_store

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture
def where(tmp_path: Path) -> str:
    connection = sqlite3.connect(tmp_path / "study.db")
    connection.executescript((make_store.HERE / "store.sql").read_text(encoding="utf-8"))
    connection.close()
    return str(tmp_path / "study.db")


def test_a_golden_store_says_what_it_said(where: str) -> None:
    expected = json.loads((make_store.HERE / "store.json").read_text(encoding="utf-8"))
    found = make_store.read(where)
    assert found.pop("means") == pytest.approx(expected.pop("means"), rel=1e-12)  # as platforms round differently
    assert found == expected
    assert len(expected["events"]) == 11  # all kinds but `fail`, which is a driver's


def test_a_golden_store_can_be_continued(where: str) -> None:
    with eq.open(where) as study:
        before = study.result().samples
        study.tell(study.ask(), 0.5)
        assert study.result().samples == before + 1


def test_the_page_on_compatibility_says_which_format_is_written() -> None:
    page = (DOCS / "reference" / "compatibility.md").read_text(encoding="utf-8")
    assert f"| store (SQLite, PostgreSQL) | {STORE_FORMAT} |" in page
