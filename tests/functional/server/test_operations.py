"""Operations on a service that runs: a copy of its database is a whole study."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import equipoise as eq
from equipoise.store import replay
from tests.serving import ADMIN, served
from tests.waiting import HANG, until


def test_a_backup_while_it_runs(tmp_path: Path) -> None:
    """What was told before it is in the copy; tickets of later are refused there; and the copy goes on by itself."""
    file, copy = tmp_path / "studies.db", tmp_path / "copy.db"
    told: list[Any] = []
    with served(str(file)) as service, eq.connect(service.url, ADMIN) as remote:
        study = remote.create("poll", arms=["a", "b"], budget=300)

        def work() -> None:
            while tickets := study.ask(3):
                study.tell_many([(ticket, 1.0) for ticket in tickets])
                told.extend(tickets)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        until(lambda: len(told) > 60, "some are told")
        before = list(told)
        with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        thread.join(HANG)
        assert study.result().samples == 300
    saved = replay(f"{copy}#poll").study.ledger.samples
    assert len(before) <= saved < 300
    with served(str(copy)) as service, eq.connect(service.url, ADMIN) as remote:
        study = remote.study("poll")
        study.tell(before[0], 1.0)  # known
        assert study.result().samples == saved
        outcome = service.client().post(
            "/api/v1/studies/poll/tell", json={"answers": [{"ticket": told[-1].text, "value": 1}]}
        )
        assert outcome.json()["outcomes"] == ["refused"]
        while tickets := study.ask(50):
            study.tell_many([(ticket, 0.0) for ticket in tickets])
        assert study.result().samples + study.in_flight == 300
