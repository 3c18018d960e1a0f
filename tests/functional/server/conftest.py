"""A service to be attacked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from equipoise.server import Limits, Rate
from tests.functional.server.hostile import LIMIT
from tests.serving import Served, served

FAST = Rate(1e9, 1e9)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service without limits of rate, for all tests of a module."""
    limits = Limits(ask=FAST, work=FAST, read=FAST, respondent=FAST, guesses=FAST, body=LIMIT, batch=100)
    with served(str(tmp_path_factory.mktemp("service") / "studies.db"), limits=limits) as found:
        yield found
