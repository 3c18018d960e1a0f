"""Many studies on a few connections: what a process holds while it serves them, and what it says without any."""

from __future__ import annotations

import os
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest

import equipoise as eq
from equipoise.server import Limits
from tests.serving import Served, served
from tests.waiting import HANG, until

psycopg = pytest.importorskip("psycopg")
conninfo_to_dict = pytest.importorskip("psycopg.conninfo").conninfo_to_dict

# Of the service; and how many studies there are.
STUDIES, CONNECTIONS, MANY = 3, 4, 12


def held(db: str) -> int:
    """How many connections to a database there are: for a file, by its descriptors in this process."""
    if db.startswith("postgresql"):
        own = conninfo_to_dict(db)["application_name"]
        with psycopg.connect(db, application_name="counting") as connection:
            sql = "select count(*) from pg_stat_activity where application_name = %s"
            return int(connection.execute(sql, (own,)).fetchone()[0])
    paths = []
    for number in os.listdir("/proc/self/fd"):
        try:
            paths.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            continue
    return Counter(paths)[db]


def threads_of_desks() -> int:
    return sum(each.name == "equipoise-desk" for each in threading.enumerate())


@pytest.fixture
def place(db: str) -> str:
    """A database whose connections can be told from those of others."""
    if not db.startswith("postgresql"):
        if sys.platform != "linux":
            pytest.skip("descriptors are listed by Linux")
        return os.path.realpath(db)
    return f"{db}&application_name={uuid.uuid4().hex}"


def test_many_studies_are_read_and_written_on_few_connections(place: str, name: str) -> None:
    """Whatever is asked of them, at the same time; all is answered, and nothing is left."""
    limits = Limits(studies=STUDIES, connections=CONNECTIONS)
    studies = [f"{name}-{k}" for k in range(MANY)]
    before = threads_of_desks()
    whole = ["progress", "result", "view", "turns", "log", "log?format=jsonl", "keys", ""]
    with ExitStack() as stack:
        service = stack.enter_context(served(place, limits=limits, look=0.01))
        for study in studies:
            with eq.open(f"{place}#{study}", arms=["a", "b"], support="binary") as opened:
                opened.tell(opened.ask(), 1.0)
        client, most = service.client(), 0

        def work(k: int) -> list[int]:
            nonlocal most
            path, found = f"/api/v1/studies/{studies[k % MANY]}", []
            for what in whole[k % 3 :] + whole[: k % 3]:
                found.append(client.get(f"{path}/{what}".rstrip("/")).status_code)
            asked = client.post(f"{path}/ask")
            answers = [{"ticket": each["ticket"], "value": 1} for each in asked.json()["tickets"]]
            found += [asked.status_code, client.post(f"{path}/tell", json={"answers": answers}).status_code]
            most = max(most, held(place))
            assert len(service.service.desks) <= STUDIES
            assert len(service.service._followers) <= STUDIES
            return found

        watched = client.stream("GET", f"/api/v1/studies/{studies[0]}/events")
        assert stack.enter_context(watched).status_code == 200
        with ThreadPoolExecutor(8) as threads:
            for statuses in threads.map(work, range(2 * MANY)):
                assert statuses == [200] * len(statuses)
        # SQLite keeps a file open after its connection is closed, until no other one has a lock.
        assert 1 < most <= (CONNECTIONS if place.startswith("postgresql") else 2 * CONNECTIONS - 1)
        assert service.service.registry.connections <= CONNECTIONS
        for study in studies:
            assert client.get(f"/api/v1/studies/{study}/progress").json()["samples"] == 3
        assert threads_of_desks() - before <= STUDIES
        assert f'equipoise_connections{{process="{os.getpid()}"}} ' in client.get("/metrics").text
    until(lambda: held(place) == 0, "the server has noticed that all are closed")


def test_live_views_are_of_as_many_studies_as_are_open(place: str, name: str) -> None:
    """One more is refused until one of them has no viewers; a result is still read."""
    with served(place, limits=Limits(studies=2, connections=2), look=0.01) as service:
        paths = [f"/api/v1/studies/{name}-{k}" for k in range(3)]
        for path in paths:
            service.create(path.rpartition("/")[2])
        client = service.client()
        with ExitStack() as stack:
            views = [stack.enter_context(client.stream("GET", f"{path}/events")).iter_lines() for path in paths[:2]]
            assert [next(each) for each in views] == ["event: view"] * 2
            refused = client.get(f"{paths[2]}/events")
            assert (refused.status_code, refused.json()["detail"]) == (503, "the live views are of too many studies")
            assert client.get(f"{paths[2]}/result").status_code == 200
            assert len(service.service._followers) == 2
            assert stack.enter_context(client.stream("GET", f"{paths[0]}/events")).status_code == 200
        until(lambda: service.service.viewers == 0, "all are gone")
        with client.stream("GET", f"{paths[2]}/events") as response:
            assert next(response.iter_lines()) == "event: view"


# ---- a server that lets in few


class Few:
    """A PostgreSQL database whose owner may have so many connections to it, of which others can be taken."""

    def __init__(self, server: str, many: int) -> None:
        self.many, self.name = many, f"few_{uuid.uuid4().hex}"
        self._admin = psycopg.connect(server, autocommit=True)
        self._admin.execute(f"create role {self.name} login connection limit {many}")
        self._admin.execute(f"create database {self.name} owner {self.name}")
        parts = urlsplit(server)
        self.url = parts._replace(netloc=f"{self.name}@", path=f"/{self.name}").geturl()
        self._taken: list[Any] = []

    def cut(self) -> None:
        """End all connections."""
        sql = "select pg_terminate_backend(pid, 60000) from pg_stat_activity where usename = %s"
        self._admin.execute(sql, (self.name,))

    def take_all(self) -> None:
        """Leave no connection for the service."""
        self.cut()
        while len(self._taken) < self.many:
            try:
                self._taken.append(psycopg.connect(self.url, autocommit=True))
            except psycopg.OperationalError:
                self.cut()  # the service was faster

    def give_back(self) -> None:
        for each in self._taken:
            each.close()
        self._taken.clear()

    def close(self) -> None:
        self.give_back()
        self._admin.execute(f"drop database {self.name} with (force)")
        self._admin.execute(f"drop role {self.name}")
        self._admin.close()


@pytest.fixture
def few(postgres: str) -> Iterator[Few]:
    """One that lets in three."""
    found = Few(postgres, 3)
    yield found
    found.close()


def statuses(service: Served, path: str, many: int = 12) -> Counter[int]:
    """Ask for something several times at once."""
    client = service.client()
    with ThreadPoolExecutor(many) as threads:
        return Counter(threads.map(lambda _: client.get(path).status_code, range(many)))


def test_a_service_lives_with_the_connections_that_it_gets(few: Few) -> None:
    """Fewer than it may have: all is answered. With none, that is said, also to who asks whether it is ready."""
    with served(few.url, patience=HANG) as service:
        for k in range(6):
            service.create(f"s{k}")
        for k in range(6):
            assert statuses(service, f"/api/v1/studies/s{k}/result") == {200: 12}
            assert service.client().post(f"/api/v1/studies/s{k}/ask").status_code == 200
        assert service.service.registry.connections <= 3
    with served(few.url, patience=HANG) as service:
        few.take_all()
        for _ in range(2):
            assert statuses(service, "/readyz") == {503: 12}
            assert statuses(service, "/api/v1/studies/s0/result") == {503: 12}
        assert service.client().get("/healthz").status_code == 200
        few.give_back()
        until(lambda: service.client().get("/readyz").status_code == 200, "the server lets the service in again")
        for k in range(6):
            assert statuses(service, f"/api/v1/studies/s{k}/result") == {200: 12}
        assert service.client().post("/api/v1/studies/s0/ask").status_code == 200


def test_a_service_whose_connections_are_cut(few: Few) -> None:
    """Nobody who reads or writes is refused, and a live view goes on."""
    with served(few.url, look=0.01, patience=HANG) as service:
        service.create("study")
        client, path = service.client(), "/api/v1/studies/study"
        with client.stream("GET", f"{path}/events") as response:
            views = (line for line in response.iter_lines() if line.startswith("data: "))
            assert '"in_flight":0' in next(views)
            for k in range(1, 4):
                few.cut()
                assert client.get("/readyz").status_code == 200
                assert client.get(f"{path}/result").status_code == 200
                few.cut()
                assert client.post(f"{path}/ask").status_code == 200
                assert any(f'"in_flight":{k}' in view for view in views)
