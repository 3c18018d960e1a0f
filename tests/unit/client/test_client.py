"""`eq.connect`: the same ask and tell as a study here, and requests that are repeated without harm."""

from __future__ import annotations

import contextlib
import gzip
import pickle
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

import equipoise as eq
from equipoise.base.errors import EquipoiseError
from equipoise.base.patience import Patience
from equipoise.client import remote as remote_module
from equipoise.client.service import Service
from equipoise.client.transport import Transport, _seconds
from equipoise.ledger.ledger import TooLate
from equipoise.server import Limits
from tests.logs import expire_leases, kinds
from tests.serving import ADMIN, Served, served


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service for all tests of this module."""
    with served(str(tmp_path_factory.mktemp("service") / "studies.db")) as found:
        yield found


@pytest.fixture
def remote(service: Served) -> Iterator[Service]:
    """A connection to it."""
    with eq.connect(service.url, ADMIN) as found:
        yield found


def sample(arm: str, seed: int) -> float:
    return random.Random(seed).gauss(10, 4 if arm == "rough" else 1)


def test_the_same_face_as_a_study(remote: Service) -> None:
    here = eq.Study(["a", "b"], budget=30, support="binary")
    there = remote.create("face", arms=["a", "b"], budget=30, support="binary")
    assert (there.arms, there.support, there.budget) == (("a", "b"), "binary", 30)
    rng = random.Random(1)
    while not there.done:
        one, other = here.ask(), there.ask()
        assert one.arm == other.arm
        value = float(rng.random() < 0.3)
        here.tell(one, value)
        there.tell(other, value)
    assert (there.remaining, there.in_flight, there.spent) == (0, 0, 30)
    assert there.result().to_dict() == here.result().to_dict()
    with pytest.raises(EquipoiseError, match="the budget is spent"):
        there.ask()
    assert there.ask(5) == []
    there.set_budget(40)
    tickets = there.ask(64)
    assert len(tickets) == 10
    there.tell_many([(tickets[0], 1), (tickets[1], 0, None)])
    there.decline(tickets[2])
    there.forget(tickets[3])
    there.forget(tickets[4:6])
    result = there.result()
    assert (result.samples, sum(result.declined.values()), there.in_flight) == (32, 1, 4)
    assert "face" in remote.studies()
    assert remote.study("face").result().to_dict() == result.to_dict()


def test_what_is_refused_here_and_there(remote: Service) -> None:
    study = remote.create("refused", arms=["a", "b"], support=(0, 1))
    ticket = study.ask()
    for wrong in (2.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=r"must be|value"):
            study.tell(ticket, wrong)
    with pytest.raises(ValueError, match="lease must be at most 1,000,000,000 seconds"):
        study.ask(lease=1e308)
    with pytest.raises(ValueError, match="lease must be at most 2,592,000 s, got 1e\\+07"):
        study.ask(lease=1e7)
    for strange in (None, 5, ("x", "a"), eq.Ticket((5, "a"))):
        with pytest.raises((TypeError, ValueError), match="ticket"):
            study.tell(strange, 0.5)  # type: ignore[arg-type]
    study.tell(ticket, 0.5)
    with pytest.raises(ValueError, match=r"already answered with 0.5"):
        study.tell(ticket, 0.6)
    with pytest.raises(ValueError, match="budget must be"):
        remote.create("worse", arms=["a", "b"], budget=-1)
    with pytest.raises(EquipoiseError, match="there is a study 'refused' already"):
        remote.create("refused", arms=["a", "b"])
    with pytest.raises(EquipoiseError, match="there is no study 'none'"):
        remote.study("none")
    with pytest.raises(TypeError, match="did you mean 'budget'"):
        remote.create("typo", arms=["a"], buget=5)  # type: ignore[call-arg]
    assert study.result().samples == 1


def test_answers_that_come_too_late(remote: Service) -> None:
    study = remote.create("late", arms=["a", "b"], budget=6, strategy="uniform", support=(0, 1))
    tickets = study.ask(6)
    study.forget(tickets[:2])
    study.tell(tickets[0], 0.5)  # there is a place for it
    study.ask()
    with pytest.raises(TooLate, match="ticket 1 of arm 'b' was given back, and nothing is left of the budget"):
        study.tell(tickets[1], 0.5)
    with pytest.raises(TooLate, match="nothing is left of the budget"):
        study.decline(tickets[1])
    with pytest.raises(TooLate, match=r"^ticket 1 of arm 'b' was given back"):
        study.tell_many([(tickets[2], 0.5), (tickets[1], 0.5), (tickets[3], 0.5)])
    assert (study.result().samples, study.remaining) == (1, 0)
    # Answers that `run` tells are taken each by itself.
    with pytest.raises(TooLate, match="ticket 1 of the call: ticket 1 of arm 'b' was given back"):
        study._tell_each([(tickets[2], 0.5), (tickets[1], 0.5), (tickets[3], 0.5)])
    # A mistake is reported before what is only late.
    with pytest.raises(ValueError, match=r"ticket 1 of the call: .*already answered .*and 1 others"):
        study._tell_each([(tickets[1], 0.5), (tickets[2], 0.6), (tickets[4], 0.5)])
    assert (study.result().samples, study.remaining) == (4, 0)


def test_a_machine_that_is_too_late_goes_on(service: Served, remote: Service) -> None:
    """Its tickets were given back, and others took their places."""
    study = remote.create("overtaken", arms=["a", "b"], budget=40, strategy="uniform")
    where, calls = service.service.registry.place("overtaken"), 0

    def overtaken(arm: str, seed: int) -> float:
        nonlocal calls
        calls += 1
        if calls == 10:
            expire_leases(where)
            while tickets := study.ask(100):
                study.tell_many([(ticket, 0.0) for ticket in tickets])
        return 1.0

    result = study.run(overtaken)
    assert (result.samples, study.in_flight, study.remaining) == (40, 0, 0)
    assert calls >= 10


def test_options_of_a_study(remote: Service) -> None:
    study = remote.create(
        "options", arms=["a", "b"], budget=100, costs={"a": 1, "b": 2}, weights=[1, 4], precision="5%", title="Options"
    )
    assert study.precision == "5%"
    strata = remote.create("strata", arms=3, budget=100, objective=eq.Stratified([0.5, 0.3, 0.2]))
    assert strata.arms == (0, 1, 2)
    study.set_precision({"a": 0.1, "b": "2%"})
    assert study.precision == {"a": 0.1, "b": "2%"}
    study.pause()
    assert study.status == "paused"
    with pytest.raises(EquipoiseError, match="paused"):
        study.ask()
    study.resume()
    study.archive()
    assert study.status == "archived"


def test_keys(service: Served, remote: Service) -> None:
    study = remote.create("keys", arms=["a", "b"])
    with eq.connect(service.url, study.make_key("work")) as worker:
        same = worker.study("keys")
        ticket = same.ask(respondent="me")
        same.tell(ticket, 1)
        assert same.ask(respondent="me") == ticket
        assert same.result().samples == 1
        with pytest.raises(EquipoiseError, match="cannot manage"):
            same.set_budget(5)
        with pytest.raises(EquipoiseError, match="not valid for this study"):
            worker.study("another")


def test_a_key_of_a_page(service: Served, remote: Service) -> None:
    """It can ask and tell one at a time, and read nothing."""
    study = remote.create("page", arms=["a", "b"])
    with eq.connect(service.url, study.make_key("ask")) as page:
        same = page.study("page")
        same.tell(same.ask(respondent="me"), 1)
        with pytest.raises(EquipoiseError, match="there is nothing to ask for"):
            same.ask(respondent="me")  # the page has nothing to show
        study.pause()
        assert same.ask(1) == []
        with pytest.raises(EquipoiseError, match="there is nothing to ask for"):
            same.ask()
        for read in (lambda: same.arms, lambda: same.spent, same.result):
            with pytest.raises(EquipoiseError, match="a key of role 'ask' cannot read"):
                read()
        assert "'page'" in repr(same)
    assert study.result().samples == 1


def test_keys_and_studies_end(service: Served, remote: Service) -> None:
    study = remote.create("ends", arms=["a", "b"])
    first = study.make_key("work", "mine")
    ((identity, label),) = [(each["id"], each["label"]) for each in study.list_keys()]
    assert label == "mine"
    second = study.rotate_key(identity)
    with eq.connect(service.url, first) as old, pytest.raises(EquipoiseError, match="not valid"):
        old.study("ends")
    with eq.connect(service.url, second) as worker:
        assert worker.study("ends").ask(2)
    study.revoke_key(identity)
    assert study.list_keys() == []
    with pytest.raises(EquipoiseError, match="the study has no key"):
        study.revoke_key(identity)
    study.delete()
    assert "ends" not in remote.studies()
    with pytest.raises(EquipoiseError, match="there is no study 'ends'"):
        study.delete()


def test_many_are_divided_into_requests(remote: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_module, "_BATCH", 10)
    study = remote.create("many", arms=["a", "b"], budget=45, support="binary")
    tickets = study.ask(25, idempotency_key="first")
    assert len(set(tickets)) == 25
    assert study.ask(25, idempotency_key="first") == tickets
    assert len(study.ask(25)) == 20
    with pytest.raises(ValueError, match="answers must be at most 10 to be told all or none, got 25"):
        study.tell_many([(ticket, 1) for ticket in tickets])
    assert study.result().samples == 0
    with pytest.raises(ValueError, match=r"^ticket 12 of the call: .*0 or 1.* \(and 1 others\)$"):
        study._tell_each([(ticket, 0.5 if j in (12, 21) else 1.0) for j, ticket in enumerate(tickets)])
    assert study.result().samples == 23
    study.forget([tickets[12], tickets[21]])
    assert study.in_flight == 20


def test_the_largest_batch_is_that_of_the_service() -> None:
    assert Limits().batch == remote_module._BATCH


def test_tickets_travel(remote: Service) -> None:
    study = remote.create("tickets", arms=["a", "b"])
    ticket = study.ask()
    again = pickle.loads(pickle.dumps(ticket))
    assert again == ticket
    assert (again.arm, again.text) == (ticket.arm, ticket.text)
    assert ticket.text not in repr(ticket)
    study.tell(again, 1)


# ---- requests that get no answer


class Unreliable(httpx.BaseTransport):
    """Sends requests, and loses every other answer, or never sends them; as a network does."""

    def __init__(self, seed: int) -> None:
        self._inner, self._rng, self.lost = httpx.HTTPTransport(), random.Random(seed), 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        fate = self._rng.random()
        if fate < 0.2:
            self.lost += 1
            raise httpx.ConnectError("refused")
        response = self._inner.handle_request(request)
        if fate >= 0.6:
            return response
        response.read()
        response.close()
        if fate < 0.5:
            self.lost += 1
            raise httpx.ReadError("reset")
        return httpx.Response(503, json={"detail": "busy"}, headers={"Retry-After": "2"})

    def close(self) -> None:
        self._inner.close()


def unreliable(url: str, seed: int) -> tuple[Service, Unreliable, list[float]]:
    """Return a connection that loses requests, and the pauses that it makes."""
    pauses: list[float] = []
    transport = Transport(url, ADMIN, Patience(1e9, clock=lambda: 0.0, pause=pauses.append))
    network = Unreliable(seed)
    transport.close()
    transport._client = httpx.Client(headers=transport._client.headers, transport=network)
    return Service(transport), network, pauses


def test_a_network_that_loses_requests(service: Served) -> None:
    """The budget is handed out exactly, and no answer is counted twice."""
    remote, network, pauses = unreliable(service.url, seed=1)
    study = remote.create("lossy", arms=["a", "b"], budget=40)
    for _ in range(20):
        study.tell(study.ask(), 1.0)
    tickets = study.ask(20)
    study.tell_many([(ticket, 0.0) for ticket in tickets])
    assert network.lost > 20
    assert study.done
    assert study.result().samples == 40
    assert Counter(kinds(service.service.registry.place("lossy"))) == {"ask": 40, "tell": 40}
    assert max(pauses) >= 2.0  # as the service has said
    remote.close()


def test_a_service_that_stays_away() -> None:
    now = 0.0
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        nonlocal now
        pauses.append(seconds)
        now += seconds

    transport = Transport("http://127.0.0.1:9", ADMIN, Patience(60.0, clock=lambda: now, pause=pause))
    with pytest.raises(EquipoiseError, match=r"cannot reach http://127.0.0.1:9"):
        transport.get("/studies")
    assert 50 < now <= 60
    assert pauses[0] < 0.2
    assert max(pauses) > 2
    transport.close()


class Stranger(BaseHTTPRequestHandler):
    """What may be at an address instead of a service."""

    def do_GET(self) -> None:
        kind = self.path.rpartition("/")[2]
        self.send_response(404 if kind == "long" else 200)
        if kind == "packed":
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        with contextlib.suppress(OSError):  # the client is gone
            if kind == "endless":
                while True:
                    self.wfile.write(b"x" * 4096)
            self.wfile.write(
                {
                    "nested": b"[" * 100_000,
                    "page": b"<html>",
                    "packed": gzip.compress(b"x" * 10**7),
                    "long": b'{"detail": "' + b"x" * 10**5 + b'"}',
                }[kind]
            )

    def log_message(self, *words: object) -> None:
        """Print nothing."""


@pytest.fixture
def stranger() -> Iterator[Transport]:
    """A connection to what is no service, of whose answers a megabyte is read."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        transport = Transport(f"http://127.0.0.1:{server.server_port}", ADMIN, Patience(60.0), longest=10**6)
        yield transport
        transport.close()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("kind", ["endless", "packed"])
def test_an_answer_that_is_too_long(stranger: Transport, kind: str) -> None:
    with pytest.raises(EquipoiseError, match="has more than 1,000,000 bytes"):
        stranger.get(f"/{kind}")


@pytest.mark.parametrize("kind", ["nested", "page"])
def test_an_answer_that_is_not_json(stranger: Transport, kind: str) -> None:
    with pytest.raises(EquipoiseError, match="the service answered 200 without JSON"):
        stranger.get(f"/{kind}").json()


def test_a_long_refusal_is_cut(stranger: Transport) -> None:
    with pytest.raises(EquipoiseError, match=r"^x{2000}$"):
        stranger.get("/long")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2", 2), ("\u00b2", 0), ("-1", 0), ("1_0", 0), ("9" * 5000, 0), ("Fri, 31 Dec 1999", 0), (None, 0)],
)
def test_how_long_a_service_wants_to_be_left_alone(text: str | None, seconds: float) -> None:
    assert _seconds(text) == seconds


@pytest.mark.parametrize("url", ["http://a\0b", f"http://{'x' * 300}", "http://", "http://\ud800", "http://a:b"])
def test_addresses_that_there_cannot_be(url: str) -> None:
    with pytest.raises(ValueError, match="url must be that of a service"):
        eq.connect(url, "x")


@pytest.mark.parametrize(("url", "key"), [("localhost:8000", "x"), (None, "x"), ("http://a", ""), ("http://a", "\n")])
def test_what_cannot_be_connected_to(url: Any, key: Any) -> None:
    with pytest.raises(ValueError, match=r"url must be|key must be"):
        eq.connect(url, key)


# ---- run


@pytest.mark.parametrize("executor", [None, 3])
def test_run(remote: Service, executor: int | None) -> None:
    study = remote.create(f"run-{executor}", arms=["calm", "rough"], budget=300)
    result = study.run(sample, executor=executor)
    assert result.samples == 300
    assert result.counts["rough"] > 200
    assert abs(result.means["rough"] - 10) < 5 * 4 / 200**0.5
    assert study.result().to_dict() == result.to_dict()
    assert study.in_flight == 0


def test_two_processes_run_one_study(remote: Service, service: Served) -> None:
    study = remote.create("together", arms=["calm", "rough"], budget=100)
    other = eq.connect(service.url, ADMIN)

    async def slowly(arm: str, seed: int) -> float:
        return sample(arm, seed)

    one = study.run(slowly, in_flight=4)
    assert one.samples == 100
    assert other.study("together").run({"calm": lambda: 1.0, "rough": lambda: 2.0}).samples == 100
    other.close()


def test_a_run_that_fails(remote: Service) -> None:
    study = remote.create("failing", arms=["a", "b"], budget=50)
    calls = 0

    def sometimes(arm: str) -> float:
        nonlocal calls
        calls += 1
        if calls % 10 == 0:
            raise RuntimeError("no answer")
        return 1.0

    with pytest.raises(EquipoiseError, match=r"sampling arm '[ab]' failed: RuntimeError: no answer"):
        study.run(sometimes)
    assert study.in_flight == 0  # given back
    assert study.run(sometimes, retries=1).samples == 50


@pytest.mark.parametrize(
    ("samplers", "given", "kind", "words"),
    [
        ({"a": [1, 2], "b": [1]}, {}, ValueError, "every arm must have a function, got a list"),
        ({"a": lambda: 1.0}, {}, ValueError, r"samplers must have the arms of the study, \['a', 'b'\]"),
        (lambda arm: 1.0, {"budget": 5}, TypeError, r"run\(\) has no argument 'budget'"),
        (lambda arm: 1.0, {"retries": -1}, ValueError, "retries must be"),
        (lambda arm: 1.0, {"seed": -1}, ValueError, "seed must be"),
        (lambda arm: 1.0, {"lease": 1e308}, ValueError, "lease must be at most 1,000,000,000 seconds, got 1e\\+308"),
        (lambda arm: 1.0, {"max_seconds": 1e308}, ValueError, "max_seconds must be at most 1,000,000,000 seconds"),
    ],
)
def test_runs_that_are_refused(remote: Service, samplers: Any, given: Any, kind: type[Exception], words: str) -> None:
    study = remote.create(f"decides-{len(remote.studies())}", arms=["a", "b"])
    with pytest.raises(kind, match=words):
        study.run(samplers, **given)
    assert study.spent == 0


def test_importing_equipoise_is_light(tmp_path: Path) -> None:
    code = "import equipoise, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert not {"fastapi", "httpx", "uvicorn", "pydantic"} & set(done.stdout.split())
