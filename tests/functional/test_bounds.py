"""
Every statement of the paper that a simulation can speak to holds in simulated studies.

Each row states its number of runs and its standard error, with a fixed seed, and fails at five of them.
"""

from __future__ import annotations

import pytest

from benchmarks.bounds import PARTS, Row, page


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=pytest.mark.slow) if part == "Stopping times" else part for part in PARTS]
)
def test_the_statements_hold(part: str) -> None:
    rows = PARTS[part]()
    assert [row for row in rows if not row.holds()] == []
    assert part in page({part: rows})


@pytest.mark.parametrize(
    ("relation", "measured", "holds"),
    [("<=", 1.6, False), ("<=", 1.4, True), (">=", 0.4, False), ("=", 1.6, False), ("=", 1.4, True)],
)
def test_a_row_can_fail(relation: str, measured: float, holds: bool) -> None:
    assert Row("", "", 1, relation, measured, 0.1, 1.0).holds() is holds  # type: ignore[arg-type]
