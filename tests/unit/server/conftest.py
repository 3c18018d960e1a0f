"""Services to be tested."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from equipoise.server import Limits, Rate
from tests.serving import Served, served


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service of a SQLite file, for all tests of a module, which may send as many wrong tokens as they like."""
    limits = Limits(guesses=Rate(1e9, 1e9))
    with served(str(tmp_path_factory.mktemp("service") / "studies.db"), limits=limits) as found:
        yield found


@pytest.fixture
def name() -> str:
    """The name of a study that does not exist yet."""
    return f"study-{uuid.uuid4().hex}"


@pytest.fixture(params=["sqlite", "postgresql"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database for studies: a new file, or the PostgreSQL server of all tests."""
    if request.param == "sqlite":
        return str(tmp_path / "studies.db")
    return str(request.getfixturevalue("postgres"))
