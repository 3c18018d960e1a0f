"""
Requests that nobody should send: whatever they are, nothing changes in the database.

`make test` sends some hundreds, and `make test-slow` a hundred thousand: bad JSON, NaN, huge bodies, wrong types, keys
of other studies, forged, foreign and stale tickets, SQL and HTML in names.
"""

from __future__ import annotations

import base64
import json
import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.server.bodies import NAME
from tests.serving import ADMIN, Served

TEXTS = st.sampled_from(
    [
        "'; drop table equipoise_study; --",
        '" or 1=1 --',
        "<script>alert(1)</script>",
        "../../etc/passwd",
        "%00",
        "\x00",
        "\ud800",
        "a" * 500,
        "#other",
        "victim#other",
        "😀" * 50,
        "",
        " ",
        "-1",
        "null",
    ]
) | st.text(max_size=20)
NUMBERS = st.sampled_from(
    ["NaN", "Infinity", "-Infinity", "1e999", "-1", "1" * 400, "0.5", "2", "true", '"1"', "[1]", "{}"]
)
JUNK: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
ROUTES = [
    "ask",
    "tell",
    "forget",
    "pause",
    "resume",
    "extend",
    "archive",
    "poll",
    "keys",
    "keys/x/rotate",
    "",
    "nowhere",
]
METHODS = ["POST", "PUT", "DELETE", "PATCH", "GET"]


@dataclass(frozen=True)
class Scene:
    """A study with an answered and an open ticket, and what somebody may have found elsewhere."""

    service: Served
    client: httpx.Client
    tokens: dict[str, str]
    tickets: dict[str, str]

    def dump(self) -> list[Any]:
        """Return all that the database holds."""
        with closing(sqlite3.connect(self.service.service.registry.where)) as database:
            tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
            return [(table, sorted(map(repr, database.execute(f"select * from {table}")))) for table in sorted(tables)]


@pytest.fixture(scope="module")
def scene(service: Served) -> Scene:
    """Set it up."""
    found = {}
    for name in ("victim", "other"):
        service.create(name, poll={"question": "?"}, budget=1000)
        client = service.client()
        tickets = client.post(f"/api/v1/studies/{name}/ask", json={"count": 2, "lease": 1e6}).json()["tickets"]
        found[f"{name} answered"], found[f"{name} open"] = (each["ticket"] for each in tickets)
        answer = {"ticket": tickets[0]["ticket"], "value": 1}
        client.post(f"/api/v1/studies/{name}/tell", json={"answers": [answer]})
    tokens = {
        f"{name} {role}": service.key(name, role) for name in ("victim", "other") for role in ("ask", "work", "read")
    }
    client.post("/api/v1/studies/other/keys", json={"role": "work"})
    revoked = client.post("/api/v1/studies/victim/keys", json={"role": "work"}).json()
    client.delete(f"/api/v1/studies/victim/keys/{revoked['id']}")
    tokens |= {"revoked": revoked["key"], "forged": f"{tokens['victim work'][:-5]}AAAAA", "empty": ""}
    return Scene(service, service.client(None), tokens, found)


def send(scene: Scene, method: str, path: str, token: str | None, body: bytes) -> int:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    with scene.client.stream(method, path, content=body, headers=headers) as response:
        assert response.status_code < 500, (method, path, body)
        return response.status_code


def junk(data: Any) -> bytes:
    """Draw a body that is not JSON, or not what is expected."""
    kind = data.draw(st.sampled_from(["bytes", "junk", "cut", "deep", "large", "twice"]))
    if kind == "bytes":
        return data.draw(st.binary(max_size=50))  # type: ignore[no-any-return]
    if kind == "cut":
        return b'{"answers": [{"ticket": "'[: data.draw(st.integers(0, 24))]
    if kind == "deep":
        return b"[" * int(data.draw(st.integers(100, 20_000)))
    if kind == "large":
        return b'{"idempotency_key": "' + b"x" * (1 << 16) + b'"}'
    if kind == "twice":
        return b'{"answers": [], "answers": {}}'
    return json.dumps({"unknown": data.draw(JUNK)}).encode()


def without_a_right_key(scene: Scene, data: Any) -> None:
    """Any route, with no key of this study, or one that may not do this."""
    kind = data.draw(st.sampled_from([*(k for k in scene.tokens if not k.startswith("victim")), "none", "victim read"]))
    token = None if kind == "none" else scene.tokens[kind]
    method, route = data.draw(st.sampled_from(METHODS)), data.draw(st.sampled_from(ROUTES))
    if kind == "victim read" and method == "GET":
        method = "POST"
    valid = {"ask": {}, "extend": {"budget": 2000}, "keys": {"role": "work"}, "poll": {}}.get(route, {})
    body = data.draw(st.sampled_from([json.dumps(valid).encode(), b""]))
    status = send(scene, method, f"/api/v1/studies/victim/{route}".rstrip("/"), token, body)
    assert status in (400, 401, 403, 404, 405)


def with_bad_bodies(scene: Scene, data: Any) -> None:
    """A key that may, and a body that is not valid; also as the administrator."""
    token, routes = data.draw(
        st.sampled_from(
            [
                (scene.tokens["victim work"], ["ask", "tell", "forget"]),
                (scene.tokens["victim ask"], ["ask", "tell"]),
                (ADMIN, ["extend", "poll", "keys", "tell", "forget"]),
            ]
        )
    )
    route, body = data.draw(st.sampled_from(routes)), junk(data)
    if body.strip() in (b"", b"{}"):  # which some of them take
        body = b"["
    status = send(scene, "PUT" if route == "poll" else "POST", f"/api/v1/studies/victim/{route}", token, body)
    assert status in (400, 413, 422)


def with_bad_answers(scene: Scene, data: Any) -> None:
    """Tickets that are forged, foreign or answered; values that are not numbers of the support."""
    forged = st.binary(min_size=24, max_size=24).map(lambda raw: base64.urlsafe_b64encode(raw).decode())
    own = scene.tickets["victim open"]
    at = data.draw(st.integers(0, len(own) - 1))
    changed = f"{own[:at]}{'A' if own[at] != 'A' else 'B'}{own[at + 1 :]}"
    ticket = data.draw(
        forged | TEXTS | st.sampled_from([changed, scene.tickets["other open"], scene.tickets["other answered"]])
    )
    value = data.draw(st.sampled_from(["0", "1"]) | NUMBERS)
    if data.draw(st.booleans()):
        ticket, value = own, data.draw(NUMBERS)
    elif data.draw(st.booleans()):
        ticket, value = scene.tickets["victim answered"], "0"
    body = f'{{"answers": [{{"ticket": {json.dumps(ticket)}, "value": {value}}}]}}'
    token = scene.tokens[data.draw(st.sampled_from(["victim work", "victim ask"]))]
    assert send(scene, "POST", "/api/v1/studies/victim/tell", token, body.encode()) in (200, 422)


def with_bad_names(scene: Scene, data: Any) -> None:
    """Names of studies that are SQL, HTML, paths or nothing."""
    name = data.draw(TEXTS)
    name = f" {name}" if re.fullmatch(NAME, name) else name
    path = quote(name.encode("utf-8", "surrogatepass"), safe="")
    route, method = data.draw(st.sampled_from(ROUTES)), data.draw(st.sampled_from(METHODS))
    token = data.draw(st.sampled_from([ADMIN, scene.tokens["victim work"]]))
    send(scene, method, f"/api/v1/studies/{path}/{route}".rstrip("/"), token, b"{}")
    body = {"name": name, "arms": data.draw(JUNK)} if data.draw(st.booleans()) else {"name": f"{name} ", "arms": ["a"]}
    assert send(scene, "POST", "/api/v1/studies", ADMIN, json.dumps(body).encode()) in (400, 409, 413, 422)


ATTACKS = [without_a_right_key, with_bad_bodies, with_bad_answers, with_bad_names]


def attack(scene: Scene, kind: Any, examples: int) -> None:
    before = scene.dump()

    @settings(max_examples=examples)
    @given(data=st.data())
    def sent(data: Any) -> None:
        kind(scene, data)

    sent()
    assert scene.dump() == before


@pytest.mark.parametrize("kind", ATTACKS)
def test_nothing_changes(scene: Scene, kind: Any) -> None:
    attack(scene, kind, 100)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ATTACKS)
def test_nothing_changes_often(scene: Scene, kind: Any) -> None:
    attack(scene, kind, 25_000)


def test_the_dump_notices_a_change(scene: Scene) -> None:
    before = scene.dump()
    answer = {"answers": [{"ticket": scene.tickets["other open"], "value": 1}]}
    send(scene, "POST", "/api/v1/studies/other/tell", scene.tokens["other ask"], json.dumps(answer).encode())
    assert scene.dump() != before
