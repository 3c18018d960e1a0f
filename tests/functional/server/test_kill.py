"""
Two servers, a driver on the database and one over HTTP, on one PostgreSQL study; clients that retry; and any of the
four processes is killed at any moment.

The guarantees of the log hold end to end: the budget is handed out exactly, whatever was acknowledged is in the log
once, and nothing is in it that nobody told.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import random
import threading
import uuid
from pathlib import Path

import numpy as np
import pytest

import equipoise as eq
from equipoise.ledger.ledger import TooLate
from equipoise.ledger.state import FORGOTTEN
from equipoise.store import replay
from tests.functional.server.programs import Program, Server
from tests.logs import events
from tests.serving import ADMIN
from tests.waiting import HANG, until


class Clients:
    """Threads that ask and tell over HTTP, and remember what was acknowledged."""

    def __init__(self, name: str, drivers: list[Program]) -> None:
        self._name, self._drivers, self._lock = name, drivers, threading.Lock()
        self.told: dict[int, float] = {}
        self.drawn: set[float] = set()
        self.failures: list[Exception] = []

    def run(self, url: str, seed: int) -> None:
        rng = random.Random(seed)
        try:
            with eq.connect(url, ADMIN, patience=HANG) as service:
                study = service.study(self._name)
                while tickets := study.ask(rng.randint(1, 3)):
                    values = [rng.gauss(0, 1) for _ in tickets]
                    with self._lock:
                        self.drawn |= {*values}
                    answers = list(zip(tickets, values, strict=True))
                    try:
                        study.tell_many(answers)
                        self._remember(answers)
                    except TooLate:  # another sample took the place of one that was given back; no answer is taken
                        for answer in answers:
                            with contextlib.suppress(TooLate):
                                study.tell(*answer)
                                self._remember([answer])
                    rng.choice(self._drivers).nudge()
        except Exception as error:
            self.failures.append(error)

    def _remember(self, answers: list[tuple[eq.client.RemoteTicket, float]]) -> None:
        with self._lock:
            self.told |= {_id(ticket.text): value for ticket, value in answers}


def _id(text: str) -> int:
    return int.from_bytes(base64.urlsafe_b64decode(text)[4:8], "big")


@pytest.mark.slow
@pytest.mark.parametrize(("kills", "budget", "seed"), [(4, 400, 1), (24, 3000, 2)])
def test_any_of_them_is_killed(postgres: str, tmp_path: Path, kills: int, budget: int, seed: int) -> None:
    name, sampled, rng = uuid.uuid4().hex, tmp_path / "sampled", random.Random(seed)
    where = f"{postgres}#{name}"
    servers = [Server(postgres), Server(postgres)]
    urls = [server.url for server in servers]
    drivers: list[Program] = []
    try:
        with eq.connect(urls[0], ADMIN, patience=HANG) as service:
            study = service.create(name, arms=["a", "b", "c"], budget=budget)
            for how, place in (("database", postgres), ("http", urls[1])):
                drivers.append(Program("tests.functional.server.driver", how, place, name, str(sampled)))
            clients, programs = Clients(name, drivers), [*servers, *drivers]
            threads = [
                threading.Thread(target=clients.run, args=(url, seed + j), daemon=True)
                for j, url in enumerate(urls * 2)
            ]
            for thread in threads:
                thread.start()
            for k in range(kills):
                wanted = (k + 1) * budget // (2 * kills + 2)
                until(lambda wanted=wanted: len(clients.told) >= wanted or clients.failures, "answers are told")  # type: ignore[misc]
                program = programs[k] if k < len(programs) else rng.choice(programs)  # each of them once at least
                program.kill()
                program.start()
            for thread in threads:
                thread.join(HANG)
            assert [driver.ended()[0] for driver in drivers] == [0, 0]  # without waiting for clients any more
            # What a driver over HTTP left in flight is asked for again once its lease is over.
            seeds = itertools.count(seed + len(threads))
            until(lambda: clients.run(urls[0], next(seeds)) or not study.in_flight, "nothing is in flight")  # type: ignore[func-returns-value]
    finally:
        for program in (*servers, *drivers):
            program.kill()
    assert clients.failures == []
    _check(where, budget, clients, {float(line) for line in sampled.read_text().split()})


def _check(where: str, budget: int, clients: Clients, sampled: set[float]) -> None:
    """Check what the log has against what was handed out, drawn and acknowledged."""
    found = {event.ticket: event.value for event in events(where) if event.kind == "tell"}
    assert {ticket: found[ticket] for ticket in clients.told} == clients.told
    ledger = replay(where).study.ledger
    status = ledger.status(slice(ledger.issued))
    assert ledger.samples == len(found) == ledger.spent == budget
    assert ledger.samples == ledger.issued - np.count_nonzero(status == FORGOTTEN)
    # No sample is counted twice, and none that nobody drew.
    values = set(found.values())
    assert len(values) == len(found)
    assert values <= clients.drawn | sampled
    assert values & clients.drawn
    assert values & sampled
