"""Requests that nobody should send, by kind, drawn at random."""

from __future__ import annotations

import base64
import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from random import Random
from typing import Any, Final
from urllib.parse import quote, urlsplit

from equipoise.server.bodies import NAME
from tests.serving import ADMIN, Served

# The service that is attacked takes no more bytes.
LIMIT: Final = 1 << 16

_TEXTS: Final = (
    "'; drop table equipoise_study; --", '" or 1=1 --', "<script>alert(1)</script>", "<img src=x onerror=alert(1)>",
    "../../etc/passwd", "%00", "\x00", "\ud800", "a" * 500, "#other", "victim#other", "😀" * 50, "", " ", "-1", "null",
)  # fmt: skip
_NUMBERS: Final = ("NaN", "Infinity", "-Infinity", "1e999", "-1", "1" * 400, "0.5", "2", "1e-320")
_TYPES: Final = ("true", '"1"', "[1]", "{}", "null", '{"value": 1}')
# More often one that routes have.
_METHODS: Final = ("POST", "POST", "POST", "PUT", "DELETE", "PATCH", "GET")
_ROUTES: Final = (
    "ask", "tell", "forget", "pause", "resume", "extend", "archive", "poll", "keys", "keys/x/rotate", "", "nowhere",
)  # fmt: skip
# What would be taken from somebody who may send it.
_VALID: Final = {"extend": {"budget": 2000}, "keys": {"role": "work"}}

_REFUSED: Final = (400, 401, 403, 404, 405)
_INVALID: Final = (400, 413, 422)


@dataclass(frozen=True)
class Request:
    """A request, and the statuses that may answer it; without any, all but errors of the server may."""

    method: str
    path: str
    token: str | None
    body: bytes
    statuses: tuple[int, ...] = ()


@dataclass(frozen=True)
class Scene:
    """A study with an answered and an open ticket, and what somebody may have found elsewhere."""

    service: Served
    tokens: dict[str, str]
    tickets: dict[str, str]

    @staticmethod
    def of(service: Served) -> Scene:
        """Set it up: a study, another one, and one of the same name as one that was deleted."""
        client = service.client()
        tokens: dict[str, str] = {}
        tickets: dict[str, str] = {}
        for study in ("deleted", "victim", "other"):
            name = study if study == "other" else "victim"
            service.create(name, poll={"question": "?"}, budget=1000)
            asked = client.post(f"/api/v1/studies/{name}/ask", json={"count": 2, "lease": 1e6}).json()["tickets"]
            tickets[f"{study} answered"], tickets[f"{study} open"] = (each["ticket"] for each in asked)
            answer = {"ticket": tickets[f"{study} answered"], "value": 1}
            client.post(f"/api/v1/studies/{name}/tell", json={"answers": [answer]})
            tokens |= {f"{study} {role}": service.key(name, role) for role in ("ask", "work", "read")}
            if study == "deleted":
                client.delete(f"/api/v1/studies/{name}")
        revoked = client.post("/api/v1/studies/victim/keys", json={"role": "work"}).json()
        client.delete(f"/api/v1/studies/victim/keys/{revoked['id']}")
        tokens |= {"revoked": revoked["key"], "forged": f"{tokens['victim work'][:-5]}AAAAA", "empty": ""}
        return Scene(service, tokens, tickets)

    @property
    def address(self) -> str:
        """Where the service is."""
        return urlsplit(self.service.url).netloc

    def dump(self) -> list[Any]:
        """Return all that the database holds."""
        with closing(sqlite3.connect(self.service.service.registry.where)) as database:
            tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
            return [(table, sorted(map(repr, database.execute(f"select * from {table}")))) for table in sorted(tables)]


# ---- parts of requests


def _text(rng: Random) -> str:
    if rng.random() < 0.5:
        return rng.choice(_TEXTS)
    return "".join(chr(rng.randrange(0x110000)) for _ in range(rng.randrange(20)))


def _junk(rng: Random, depth: int = 3) -> Any:
    """Return some JSON that nothing is meant by."""
    kind = rng.randrange(6 if depth else 4)
    if kind == 4:
        return [_junk(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 5:
        return {_text(rng): _junk(rng, depth - 1) for _ in range(rng.randrange(4))}
    return (
        None,
        rng.random() < 0.5,
        rng.choice([rng.randint(-3, 3), rng.getrandbits(200), rng.gauss(0, 1e9)]),
        _text(rng),
    )[kind]


def _who(scene: Scene, rng: Random) -> tuple[str, str]:
    """Return a token, and a route that it opens."""
    return rng.choice(
        [
            *((scene.tokens["victim work"], route) for route in ("ask", "tell", "forget")),
            *((scene.tokens["victim ask"], route) for route in ("ask", "tell")),
            *((ADMIN, route) for route in ("extend", "poll", "keys", "tell", "forget")),
        ]
    )


def _sent(scene: Scene, rng: Random, body: bytes) -> Request:
    token, route = _who(scene, rng)
    return Request("PUT" if route == "poll" else "POST", f"/api/v1/studies/victim/{route}", token, body, _INVALID)


def _told(scene: Scene, rng: Random, ticket: str, value: str) -> Request:
    body = f'{{"answers": [{{"ticket": {json.dumps(ticket)}, "value": {value}}}]}}'
    token = scene.tokens[rng.choice(["victim work", "victim ask"])]
    return Request("POST", "/api/v1/studies/victim/tell", token, body.encode(), (200, 422))


def _anything(rng: Random, token: str | None, path: str, methods: tuple[str, ...] = _METHODS) -> Request:
    route = rng.choice(_ROUTES)
    body = rng.choice([json.dumps(_VALID.get(route, {})).encode(), b""])
    return Request(rng.choice(methods), f"/api/v1/studies/{path}/{route}".rstrip("/"), token, body)


def _strange_name(rng: Random) -> str:
    name = _text(rng)
    return f" {name}" if re.fullmatch(NAME, name) else name


# ---- the kinds


def broken_json(scene: Scene, rng: Random) -> Request:
    """A body that is not JSON, or not valid as such."""
    return _sent(
        scene,
        rng,
        rng.choice(
            [
                b"[" + rng.randbytes(rng.randrange(50)),
                b'{"answers": [{"ticket": "'[: rng.randrange(1, 25)],
                b"[" * rng.randrange(100, 20_000),
                b'{"answers": [], "answers": {}}',
            ]
        ),
    )


def huge_bodies(scene: Scene, rng: Random) -> Request:
    """A body of more bytes than are allowed."""
    return _sent(scene, rng, b'{"idempotency_key": "' + b"x" * (LIMIT + rng.randrange(LIMIT)) + b'"}')


def other_fields(scene: Scene, rng: Random) -> Request:
    """JSON that is not what the route takes."""
    return _sent(scene, rng, json.dumps({"unknown": _junk(rng)}).encode())


def impossible_numbers(scene: Scene, rng: Random) -> Request:
    """NaN, infinities, and numbers outside the support."""
    return _told(scene, rng, scene.tickets["victim open"], rng.choice(_NUMBERS))


def wrong_types(scene: Scene, rng: Random) -> Request:
    """Values that are not numbers."""
    return _told(scene, rng, scene.tickets["victim open"], rng.choice(_TYPES))


def forged_tickets(scene: Scene, rng: Random) -> Request:
    """Tickets that nobody signed: at random, or one with a letter changed."""
    own = scene.tickets["victim open"]
    at = rng.randrange(len(own))
    changed = f"{own[:at]}{'A' if own[at] != 'A' else 'B'}{own[at + 1 :]}"
    drawn = base64.urlsafe_b64encode(rng.randbytes(24)).decode()
    return _told(scene, rng, rng.choice([changed, drawn, _text(rng)]), rng.choice("01"))


def stale_tickets(scene: Scene, rng: Random) -> Request:
    """Tickets that were answered otherwise, or are of a study of this name that was deleted."""
    which = rng.choice(["victim answered", "deleted answered", "deleted open"])
    return _told(scene, rng, scene.tickets[which], "0" if which == "victim answered" else rng.choice("01"))


def foreign_tickets(scene: Scene, rng: Random) -> Request:
    """Tickets of another study."""
    return _told(scene, rng, scene.tickets[rng.choice(["other answered", "other open"])], rng.choice("01"))


def wrong_keys(scene: Scene, rng: Random) -> Request:
    """No key, one of another study, a forged or revoked one, or one that may not do this."""
    kind = rng.choice([*(key for key in scene.tokens if not key.startswith("victim")), "none", "victim read"])
    token = None if kind == "none" else scene.tokens[kind]
    methods = tuple(method for method in _METHODS if method != "GET") if kind == "victim read" else _METHODS
    found = _anything(rng, token, "victim", methods)
    return Request(found.method, found.path, token, found.body, _REFUSED)


def strange_names(scene: Scene, rng: Random) -> Request:
    """Names of studies that are SQL, HTML, paths or nothing; also of one to be created."""
    name = _strange_name(rng)
    if rng.random() < 0.5:
        path = quote(name.encode("utf-8", "surrogatepass"), safe="")
        return _anything(rng, rng.choice([ADMIN, scene.tokens["victim work"]]), path)
    body = rng.choice([{"name": name, "arms": _junk(rng)}, {"name": f"{name} ", "arms": ["a"]}])
    return Request("POST", "/api/v1/studies", ADMIN, json.dumps(body).encode(), (*_INVALID, 409))


KINDS: Final[tuple[Callable[[Scene, Random], Request], ...]] = (
    broken_json, huge_bodies, other_fields, impossible_numbers, wrong_types, forged_tickets, stale_tickets,
    foreign_tickets, wrong_keys, strange_names,
)  # fmt: skip
