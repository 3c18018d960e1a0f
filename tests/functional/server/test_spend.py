"""
What an *ask* key can spend: whatever it sends and whenever, its study stays within the budget and its log has an end.

The key is public, so a hostile holder of it is drawn at random here: it asks as old and new respondents, with old and
new idempotency keys, lets leases end, answers and declines in time, late or twice, and tries what it may not do.
`make test` does so for some hundred requests, `make test-slow` for many thousands.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from random import Random
from typing import Any, Final

import httpx
import pytest

from equipoise.server import Limits, Rate
from equipoise.store import replay
from tests.logs import expire_leases, kinds
from tests.serving import Served, served

# Small, so that all of them are met; and rates that no test reaches.
LIMITS: Final = Limits(open_by_ask=7, spare=60, ask=Rate(1e9, 1e9), respondent=Rate(1e9, 1e9))
KEYS: Final = 2

STUDIES: Final[dict[str, dict[str, Any]]] = {
    "budget": {"budget": 20},
    "money": {"budget": 30.5, "costs": {"a": 1, "b": 4}},
    "population": {"populations": {"a": 5, "b": 9}},
    "population-and-budget": {"populations": {"a": 5, "b": 90}, "budget": 12},
    "precision": {"precision": 0.01},
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service of small limits."""
    with served(str(tmp_path_factory.mktemp("service") / "studies.db"), limits=LIMITS) as found:
        yield found


def end_leases(service: Served, where: str) -> None:
    """Let all leases of a study end, as time would, and the service look for those that are over."""
    expire_leases(where)
    for desk in service.service.desks:
        desk._next_sweep = -math.inf


class Attack:
    """Holders of *ask* keys of a new study, who do anything at random."""

    def __init__(self, service: Served, name: str, of: dict[str, Any], seed: int) -> None:
        service.create(name, **of)
        self._service, self.where = service, service.service.registry.place(name)
        self._path, self._rng = f"/api/v1/studies/{name}", Random(seed)
        self._clients = [service.client(service.key(name, "ask")) for _ in range(KEYS)]
        self._tickets: list[str] = []
        self._people: list[str] = []
        self.refused = 0

    def _post(self, what: str, body: Any) -> httpx.Response:
        return self._rng.choice(self._clients).post(f"{self._path}/{what}", json=body)

    def _ask(self) -> None:
        rng, body = self._rng, {}
        for name in ("respondent", "idempotency_key"):
            if rng.random() < 0.5:
                if rng.random() < 0.7:
                    self._people.append(f"{len(self._people)}")
                body[name] = rng.choice(self._people or ["0"])
        response = self._post("ask", body)
        assert response.status_code in (200, 204, 409, 429), response.text
        self.refused += response.status_code == 409
        if response.status_code == 200:
            self._tickets += [each["ticket"] for each in response.json()["tickets"]]

    def _tell(self) -> None:
        answers: tuple[dict[str, Any], ...] = ({"value": 0}, {"value": 1, "seconds": 1e9}, {"declined": True})
        answer = self._rng.choice(answers)
        latest = self._tickets[-10:] if self._rng.random() < 0.5 else self._tickets
        ticket = self._rng.choice(latest) if latest else "A" * 32
        response = self._post("tell", {"answers": [{"ticket": ticket, **answer}]})
        assert response.status_code == 200, response.text

    def _overreach(self) -> None:
        tickets = self._tickets[-2:]
        answers = [{"ticket": ticket, "value": 1} for ticket in tickets]
        what, body = self._rng.choice(
            [
                ("ask", {"lease": self._rng.choice([1e-300, 0.001, 1e308])}),
                ("ask", {"count": 2}),
                ("tell", {"answers": [each | {"cost": 0} for each in answers[:1]]}),
                ("tell", {"answers": answers}),
                ("forget", {"tickets": tickets[:1]}),
            ]
        )
        if len(tickets) == 2:
            assert self._post(what, body).status_code == 403

    def _wait(self) -> None:
        end_leases(self._service, self.where)

    def go_on(self, requests: int) -> None:
        """Do something at random, so many times."""
        does = (self._ask, self._tell, self._overreach, self._wait)
        for each in self._rng.choices(does, (0.5, 0.4, 0.05, 0.05), k=requests):
            each()

    def check(self) -> int:
        """Check the law; return how many tickets there are."""
        ledger = replay(self.where).study.ledger
        issued, declined = ledger.issued, int(ledger.declined.sum())
        held = ledger.samples + declined + ledger.in_flight
        if ledger.objective.costs is None:
            assert ledger.spent == held
        if ledger.budget is not None:
            assert ledger.spent <= ledger.budget * (1 + 1e-9)
        if ledger.populations is not None:
            assert (ledger.snapshot().counts + ledger.declined + ledger.waiting <= ledger.populations).all()
        assert ledger.in_flight <= KEYS * LIMITS.open_by_ask
        assert issued <= LIMITS.spare + ledger.bought
        # A ticket is asked for, may be given back, and is answered or declined, all of it once. An arm may be retired
        # and opened again as often as one looks, at most after each answer.
        events = [kind for kind in kinds(self.where) if kind not in ("retire", "reopen")]
        assert len(events) <= 3 * issued
        assert events.count("forget") <= issued
        assert events.count("tell") == ledger.samples
        rows = self._rows()
        assert rows["turn"] <= 1 + 3 * issued + 2 * ledger.samples
        assert rows["lease"] <= ledger.in_flight
        assert rows["call"] <= 2 * issued
        return issued

    def _rows(self) -> dict[str, int]:
        path, _, name = self.where.partition("#")
        with closing(sqlite3.connect(path)) as database:
            of = "where study = (select study from equipoise_study where name = ?)"
            return {
                table: database.execute(f"select count(*) from equipoise_{table} {of}", (name,)).fetchone()[0]
                for table in ("turn", "lease", "call")
            }


@pytest.mark.parametrize("kind", STUDIES)
def test_a_budget_is_never_exceeded(service: Served, kind: str) -> None:
    attack = Attack(service, kind, STUDIES[kind], seed=1)
    for _ in range(3):
        attack.go_on(30)
        attack.check()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", STUDIES)
def test_a_budget_is_never_exceeded_by_many(service: Served, kind: str, seed: int) -> None:
    attack = Attack(service, f"{kind}-{seed}", STUDIES[kind], seed)
    for _ in range(10):
        attack.go_on(200)
        attack.check()


def test_the_attack_of_old(service: Served) -> None:
    """Fresh respondents, none of whom answers in time, and then all of them: each answer was once taken."""
    name = "attacked"
    service.create(name, budget=10)
    page, path = service.client(service.key(name, "ask")), f"/api/v1/studies/{name}"
    where, tickets = service.service.registry.place(name), []
    for visitor in range(200):
        response = page.post(f"{path}/ask", json={"respondent": f"{visitor}"})
        if response.status_code == 409:
            break
        if response.status_code == 200:
            tickets.append(response.json()["tickets"][0]["ticket"])
        else:
            end_leases(service, where)
    detail = (
        "the study has handed out 70 tickets, the most that a key of role 'ask' can use; a larger budget allows more"
    )
    assert (response.status_code, response.json()["detail"]) == (409, detail)
    assert response.json()["type"] == "urn:equipoise:problem:tickets"
    assert len(set(tickets)) == 70 == LIMITS.spare + 10
    outcomes = [
        page.post(f"{path}/tell", json={"answers": [{"ticket": ticket, "value": 1}]}).json()["outcomes"][0]
        for ticket in tickets
    ]
    assert outcomes.count("taken") == 10
    assert outcomes.count("late") == 60
    assert replay(where).study.ledger.samples == 10
    # Whoever is trusted can go on, and a larger budget is one for pages too.
    client = service.client()
    assert client.post(f"{path}/extend", json={"budget": 12}).status_code == 200
    assert page.post(f"{path}/ask", json={}).status_code == 200
    worker = service.client(service.key(name, "work"))
    assert len(worker.post(f"{path}/ask", json={}).json()["tickets"]) == 1


def test_a_repeated_ask_is_no_other_ticket(service: Served) -> None:
    """Nor is it refused where there are no more."""
    name = "repeated"
    service.create(name)
    page, path = service.client(service.key(name, "ask")), f"/api/v1/studies/{name}"
    first = page.post(f"{path}/ask", json={"respondent": "me", "idempotency_key": "x"}).json()
    where = service.service.registry.place(name)
    for _ in range(LIMITS.spare):
        last = page.post(f"{path}/ask", json={}).status_code
        end_leases(service, where)
    assert last == 409
    for body in ({"respondent": "me"}, {"idempotency_key": "x"}):
        assert page.post(f"{path}/ask", json=body).json() == first
    assert math.isinf(replay(where).study.ledger.remaining)
