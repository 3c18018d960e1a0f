"""Everything with ask and tell keeps the same laws: a study in memory, in a store, and of a service."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.client import RemoteTicket
from equipoise.study import StudyLike
from tests.serving import ADMIN, served


class TestStudy(eq.testing.StudyLaws):
    durable = False

    @pytest.fixture
    def make(self) -> type[eq.Study]:
        return eq.Study


class TestSharedStudy(eq.testing.StudyLaws):
    @pytest.fixture
    def make(self, tmp_path: Path) -> Iterator[Callable[..., eq.SharedStudy]]:
        with ExitStack() as stack:
            places = iter(range(100))
            yield lambda *arguments, **options: stack.enter_context(
                eq.open(f"{tmp_path}/studies.db#{next(places)}", *arguments, **options)
            )


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a service."""
    with served(str(tmp_path_factory.mktemp("service") / "studies.db")) as service:
        yield service.url


class TestRemoteStudy(eq.testing.StudyLaws):
    @pytest.fixture
    def make(self, address: str) -> Iterator[Callable[..., eq.RemoteStudy]]:
        with eq.connect(address, ADMIN) as service:
            yield lambda *arguments, **options: service.create(f"study-{len(service.studies())}", *arguments, **options)


def typed_faces(
    here: eq.Study, shared: eq.SharedStudy, remote: eq.RemoteStudy
) -> tuple[StudyLike[eq.Ticket], StudyLike[eq.Ticket], StudyLike[RemoteTicket]]:
    """Return each as what it is; mypy, which reads the tests too, says whether it keeps the protocol's types."""
    return here, shared, remote


@pytest.mark.parametrize("kind", [eq.Study, eq.SharedStudy, eq.RemoteStudy])
def test_a_description_is_written_once(kind: type[Any]) -> None:
    """What the protocol describes, no study describes again, unless it takes more."""
    for name, member in inspect.getmembers(StudyLike):
        if name.startswith("_") or name not in vars(kind):
            continue
        own = vars(kind)[name]
        assert inspect.getdoc(getattr(kind, name)), name
        same = isinstance(own, property) or _parameters(own) == _parameters(member)
        if (kind, name) != (eq.RemoteStudy, "forget"):  # which takes several tickets too
            assert not (same and own.__doc__), f"{kind.__name__}.{name} is described in StudyLike"


def _parameters(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters)
