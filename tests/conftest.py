"""A real PostgreSQL, and stores in it and in files; and what makes each test independent of the others."""

from __future__ import annotations

import logging
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from equipoise.strategies import register
from tests.postgres import running

# The same examples on every machine, however slow it is, and nothing kept for the next time.
settings.register_profile(
    "house", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")


@pytest.fixture(autouse=True)
def _strategies_of_the_test_alone() -> Iterator[None]:
    """What a test registers is known to no other."""
    known = register.__globals__["_REGISTER"]
    before = dict(known)
    yield
    known.clear()
    known.update(before)


@pytest.fixture(autouse=True)
def _what_inspect_ai_changes_is_put_back() -> Iterator[None]:
    """It adds a handler to the root logger and has its own hook for exceptions."""
    root, hook = logging.getLogger(), sys.excepthook
    handlers, level = list(root.handlers), root.level
    yield
    for handler in set(root.handlers) - set(handlers):
        root.removeHandler(handler)
    root.setLevel(level)
    sys.excepthook = hook


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server that lives as long as the tests do."""
    with running() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new store can be: a file, and a study of its own in PostgreSQL."""
    if request.param == "sqlite":
        return str(tmp_path / "study.db")
    return f"{request.getfixturevalue('postgres')}#{uuid.uuid4().hex}"
