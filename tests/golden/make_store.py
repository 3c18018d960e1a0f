"""Write the golden store, once for each format of stores: ``python -m tests.golden.make_store``."""

import json
import sqlite3
import tempfile
from collections import Counter
from pathlib import Path
from random import Random

import equipoise as eq
from equipoise.store import Event, Log, replay

HERE = Path(__file__).parent


def fill(where: str) -> eq.SharedStudy:
    """Let everything happen to a study that can."""
    study = eq.open(where, arms=["red", "green", ("blue", 3)], budget=60.0, costs=[1.0, 2.0, 1.0], support=(0.0, 1.0))
    chance = Random(1)
    for ticket in study.ask(12):
        study.tell(ticket, round(chance.random(), 3))
    one, two, three = study.ask(3)
    study.tell(one, 0.25, cost=1.5)
    study.decline(two)
    study.forget(three)
    study.tell_moments("red", count=4, mean=0.5, m2=0.2)
    study.tell(arm="green", value=0.75)
    study.set_weights([1.0, 2.0, 1.0])
    study.set_budget(80.0)
    study.set_precision(0.2)
    study.retire(("blue", 3))
    study.reopen(("blue", 3))
    study.ask(2, idempotency_key="request 17")
    return study


def read(where: str) -> dict[str, object]:
    """Return what a log says that must not change; leases, which end by the clock, are not part of it."""
    replica = replay(where)
    result = replica.study.result()
    return {
        "events": dict(Counter(event.kind for event in events(where))),
        "arms": [repr(arm) for arm in result.arms],
        "counts": list(result.counts.values()),
        "means": list(result.means.values()),
        "declined": list(result.declined.values()),
        "remaining": replica.study.remaining,
        "in_flight": replica.study.in_flight,
    }


def events(where: str) -> list[Event]:
    """Return the events of a log."""
    with Log(where, write=False) as log:
        return list(log.events())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        where = str(Path(folder) / "study.db")
        fill(where).close()
        expected = read(where)
        connection = sqlite3.connect(where)
        (HERE / "store.sql").write_text("\n".join(connection.iterdump()) + "\n", encoding="utf-8")
        connection.close()
    (HERE / "store.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")
