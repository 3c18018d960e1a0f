"""Servers of two versions on one database, while an old one is replaced by a new one."""

from __future__ import annotations

import threading
import uuid
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.store import replay
from equipoise.store.database import STORE_FORMAT
from tests.functional.server.programs import Server
from tests.serving import ADMIN
from tests.waiting import HANG, until

LATER = "tests.functional.server.later"


@pytest.fixture(params=["sqlite", "postgresql"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database for studies."""
    return str(tmp_path / "studies.db") if request.param == "sqlite" else str(request.getfixturevalue("postgres"))


class Clients:
    """Threads that ask and tell until there is nothing left or they are called back."""

    def __init__(self, name: str, key: str) -> None:
        self._name, self._key = name, key
        self.told: list[Any] = []
        self.open: list[Any] = []

    def at(self, url: str, called_back: threading.Event) -> threading.Thread:
        """Start one; what it has asked for when it is called back stays open."""

        def run() -> None:
            with eq.connect(url, self._key, patience=HANG) as service:
                study = service.study(self._name)
                while tickets := study.ask(2):
                    if called_back.is_set():
                        self.open += tickets
                        return
                    study.tell_many([(ticket, 10.0 if ticket.arm == "b" else 0.0) for ticket in tickets])
                    self.told += tickets

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread


@pytest.mark.slow
def test_an_old_server_is_replaced(db: str) -> None:
    """Both serve the same study, though they decide otherwise; tickets and keys of the old one are good at the new."""
    name, budget = uuid.uuid4().hex, 900
    old, new = Server(db), Server(db, LATER, "formula")
    try:
        with eq.connect(old.url, ADMIN, patience=HANG) as service:
            key = service.create(name, arms=["a", "b"], budget=budget, strategy="uniform").make_key("work")
        clients, leave, stay = Clients(name, key), threading.Event(), threading.Event()
        at_old = [clients.at(old.url, leave) for _ in range(2)]
        until(lambda: len(clients.told) >= 100, "the old one has served")
        at_new = [clients.at(new.url, stay) for _ in range(2)]
        until(lambda: len(clients.told) >= 400, "both have served")
        leave.set()
        for thread in at_old:
            thread.join(HANG)
        old.process.terminate()
        assert old.ended()[0] == 0
        with eq.connect(new.url, key, patience=HANG) as service:
            study = service.study(name)
            study.tell_many([(ticket, 10.0 if ticket.arm == "b" else 0.0) for ticket in clients.open])
        for thread in at_new:
            thread.join(HANG)
    finally:
        old.kill()
        new.kill()
    assert len(clients.open) == 4
    assert len(clients.told) == budget - 4
    result = replay(f"{db}#{name}").study.result()
    assert (result.samples, dict(result.means)) == (budget, {"a": 0.0, "b": 10.0})
    assert result.counts["b"] > result.counts["a"] + 100  # which an even split would not do


@pytest.mark.slow
def test_a_server_of_another_format(db: str) -> None:
    """It refuses to start, with a sentence that names both formats, and the one that runs goes on."""
    old = Server(db)
    try:
        with eq.connect(old.url, ADMIN, patience=HANG) as service:
            study = service.create(uuid.uuid4().hex, arms=["a", "b"])
            study.tell(study.ask(), 1.0)
            code, said = Server(db, LATER, "format").ended()
            assert code == 2
            assert said.strip().endswith(
                f"has format {STORE_FORMAT}, which an earlier version of equipoise reads; this version reads format "
                f"{STORE_FORMAT + 1}"
            )
            study.tell(study.ask(), 1.0)
            assert study.result().samples == 2
    finally:
        old.kill()
