"""
Two servers and a driver on one PostgreSQL study, clients that retry, and servers that are killed at any moment.

The guarantees of the log hold end to end: the budget is handed out exactly, whatever was acknowledged is in the log
once, and nothing is in it that nobody told.
"""

from __future__ import annotations

import base64
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import uuid
from collections import Counter

import pytest

import equipoise as eq
from equipoise.errors import EquipoiseError
from equipoise.store import replay
from tests.logs import events
from tests.serving import ADMIN
from tests.waiting import HANG, until

ARMS = ("a", "b", "c")


class Server:
    """A server that can be killed, and started again at the same port."""

    def __init__(self, db: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._db = db
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "equipoise", "serve", "--db", self._db, "--port", str(self.port)]
        environment = os.environ | {"EQUIPOISE_ADMIN_TOKEN": ADMIN}
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(HANG)


class Clients:
    """Threads that ask and tell over HTTP, and remember what was acknowledged."""

    def __init__(self, name: str, pace: threading.Semaphore) -> None:
        self._name, self._pace, self._lock = name, pace, threading.Lock()
        self.told: dict[int, float] = {}
        self.failures: list[Exception] = []

    def run(self, url: str, seed: int) -> None:
        rng = random.Random(seed)
        try:
            with eq.connect(url, ADMIN, patience=HANG) as service:
                study = service.study(self._name)
                while tickets := study.ask(rng.randint(1, 3)):
                    values = [rng.gauss(0, 1) for _ in tickets]
                    study.tell_many(list(zip(tickets, values, strict=True)))
                    with self._lock:
                        self.told |= {_id(each.text): value for each, value in zip(tickets, values, strict=True)}
                    self._pace.release()
        except Exception as error:
            self.failures.append(error)


def _id(text: str) -> int:
    return int.from_bytes(base64.urlsafe_b64decode(text)[4:8], "big")


@pytest.mark.slow
@pytest.mark.parametrize(("kills", "budget", "seed"), [(2, 300, 1), (20, 3000, 2)])
def test_servers_are_killed(postgres: str, kills: int, budget: int, seed: int) -> None:
    name, pace, rng = uuid.uuid4().hex, threading.Semaphore(0), random.Random(seed)
    where = f"{postgres}#{name}"
    servers = [Server(postgres), Server(postgres)]
    clients = Clients(name, pace)
    try:
        with eq.connect(servers[0].url, ADMIN, patience=HANG) as service:
            service.create(name, arms=list(ARMS), budget=budget)

        def sample(arm: str, seed: int) -> float:
            assert pace.acquire(timeout=HANG)
            return random.Random(seed).gauss(0, 1)

        threads = [
            threading.Thread(target=clients.run, args=(server.url, seed + j), daemon=True)
            for j, server in enumerate(servers * 2)
        ]
        threads.append(threading.Thread(target=_drive, args=(sample, where, budget, clients), daemon=True))
        for thread in threads:
            thread.start()
        for k in range(kills):
            wanted = (k + 1) * budget // (2 * kills + 2)
            until(lambda wanted=wanted: len(clients.told) >= wanted or clients.failures, "answers are told")  # type: ignore[misc]
            server = rng.choice(servers)
            server.kill()
            server.start()
        for thread in threads[:-1]:
            thread.join(HANG)
        for _ in range(budget):
            pace.release()
        threads[-1].join(HANG)
    finally:
        for server in servers:
            server.kill()
    assert clients.failures == []
    found = [event for event in events(where) if event.kind == "tell"]
    assert len(found) == budget
    by_ticket = {event.ticket: event.value for event in found}
    assert len(by_ticket) == budget
    assert {ticket: by_ticket[ticket] for ticket in clients.told} == clients.told
    assert Counter(event.kind for event in events(where))["ask"] == budget
    replica = replay(where)
    assert (replica.study.ledger.samples, replica.study.in_flight) == (budget, 0)
    assert 0 < len(clients.told) < budget  # the driver has had its share


def _drive(sample: object, where: str, budget: int, clients: Clients) -> None:
    try:
        eq.estimate(sample, budget=budget, arms=ARMS, store=where, executor=2)  # type: ignore[arg-type]
    except EquipoiseError as error:
        clients.failures.append(error)
