"""Who may do what: the one table in the code, in the docs, and as it is served."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from equipoise.server import access
from equipoise.server.access import ALLOWED, Action, Administrator, Role
from equipoise.server.registry import Registry
from tests.serving import ADMIN, Served, served

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "http.md"

POLL = {"question": "Like it?", "arms": {"a": {"title": "A"}}}

# Every route of the API: method, path after the study's, what it takes, and the action that it is.
ROUTES: list[tuple[str, str, Any, Action]] = [
    ("POST", "/ask", {}, Action.ASK),
    ("POST", "/ask", {"count": 2}, Action.ASK_MANY),
    ("POST", "/tell", {"answers": [{"ticket": "x", "value": 1}]}, Action.TELL),
    ("POST", "/tell", {"answers": [{"ticket": "x", "value": 1}] * 2}, Action.TELL_MANY),
    ("POST", "/forget", {"tickets": ["x"]}, Action.FORGET),
    ("GET", "/progress", None, Action.PROGRESS),
    ("GET", "/result", None, Action.RESULT),
    ("GET", "", None, Action.SHOW),
    ("GET", "/view", None, Action.VIEW),
    ("GET", "/events", None, Action.VIEW),
    ("GET", "/log", None, Action.LOG),
    ("GET", "/turns", None, Action.LOG),
    ("POST", "/pause", None, Action.MANAGE),
    ("POST", "/resume", None, Action.MANAGE),
    ("POST", "/extend", {"budget": 1000}, Action.MANAGE),
    ("POST", "/retire", {"arm": "a"}, Action.MANAGE),
    ("POST", "/reopen", {"arm": "a"}, Action.MANAGE),
    ("PUT", "/poll", POLL, Action.MANAGE),
    ("GET", "/keys", None, Action.MANAGE),
    ("POST", "/keys", {"role": "read"}, Action.MANAGE),
    ("POST", "/keys/none/rotate", None, Action.MANAGE),
    ("DELETE", "/keys/none", None, Action.MANAGE),
    ("POST", "/archive", None, Action.MANAGE),
    ("DELETE", "", None, Action.MANAGE),
]


@pytest.fixture(scope="module")
def tokens(service: Served) -> dict[str, str]:
    """A token of every kind: by role, of another study, of the right form, of no form."""
    service.create("matrix")
    service.create("other")
    found = {role.value: service.key("matrix", role.value) for role in access.KEY_ROLES}
    return found | {
        "admin": ADMIN,
        "foreign": service.key("other", "work"),
        "forged": f"{found['work'][:-4]}AAAA",
        "unknown": "nonsense",
    }


def send(client: httpx.Client, method: str, path: str, body: Any) -> int:
    """Send a request, and return the status; of a stream, without waiting for its end."""
    with client.stream(method, path, json=body) as response:
        return response.status_code


@pytest.mark.parametrize("kind", ["ask", "work", "read", "admin", "foreign", "forged", "unknown", "none"])
def test_the_matrix(service: Served, tokens: dict[str, str], kind: str) -> None:
    client = service.client(tokens.get(kind))
    for method, path, body, action in ROUTES:
        if kind == "admin" and method == "DELETE" and not path:
            continue  # last of all
        status = send(client, method, f"/api/v1/studies/matrix{path}", body)
        if kind in ("foreign", "forged", "unknown", "none"):
            assert status == 401, (method, path)
        elif Role(kind) in ALLOWED[action]:
            assert status in (200, 201, 204, 404 if "none" in path else 200), (method, path, status)
        else:
            assert status == 403, (method, path)
    for method, body in (("GET", None), ("POST", {"name": f"made-by-{kind}", "arms": 2})):
        status = send(client, method, "/api/v1/studies", body)
        wanted = {"admin": (200, 201), "none": (401,), "unknown": (401,)}.get(kind, (403,))
        assert status in wanted, (method, status)
    if kind == "admin":
        service.client().post("/api/v1/studies/matrix/resume")


def test_every_route_is_in_the_matrix(service: Served) -> None:
    paths = service.client().get("/openapi.json").json()["paths"]
    served = {
        (method.upper(), re.sub(r"\{key_id\}", "none", path.removeprefix("/api/v1/studies/{name}")))
        for path, operations in paths.items()
        if path.startswith("/api/v1/studies/{name}")
        for method in operations
    }
    assert served == {(method, path) for method, path, _, _ in ROUTES}


def test_the_docs_have_the_same_table() -> None:
    text = DOCS.read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if "|" in line]
    start = next(j for j, row in enumerate(rows) if row[0] == "may")
    assert rows[start][1:] == ["ask", "work", "read", "admin"]
    found = {
        row[0]: {role for role, mark in zip(rows[start][1:], row[1:], strict=True) if mark}
        for row in rows[start + 2 :][: len(ALLOWED)]
    }
    assert found == {action.value: {role.value for role in roles} for action, roles in ALLOWED.items()}


def test_the_administrator_may_do_everything() -> None:
    assert set(ALLOWED) == set(Action)
    assert all(Role.ADMIN in roles for roles in ALLOWED.values())


# ---- keys


def test_keys_are_rotated_and_revoked(service: Served, name: str) -> None:
    service.create(name)
    path = f"/api/v1/studies/{name}"
    admin = service.client()
    made = admin.post(f"{path}/keys", json={"role": "work", "label": "mine"}).json()
    listed = admin.get(f"{path}/keys").json()["keys"]
    assert [(key["id"], key["label"], key["key"]) for key in listed] == [(made["id"], "mine", None)]
    old = service.client(made["key"])
    assert old.get(path).status_code == 200
    new = admin.post(f"{path}/keys/{made['id']}/rotate").json()
    assert (new["id"], new["role"]) == (made["id"], "work")
    assert old.get(path).status_code == 401
    assert service.client(new["key"]).get(path).status_code == 200
    assert admin.delete(f"{path}/keys/{made['id']}").status_code == 204
    assert service.client(new["key"]).get(path).status_code == 401
    assert admin.delete(f"{path}/keys/{made['id']}").status_code == 404


def test_keys_of_pages_can_be_seen_again(service: Served, name: str) -> None:
    made = service.create(name, poll=POLL)["keys"]
    assert [key["role"] for key in made] == ["ask"]
    assert service.client().get(f"/api/v1/studies/{name}/keys").json()["keys"] == made


def test_secrets_are_stored_as_hashes(service: Served, name: str) -> None:
    service.create(name)
    key = service.key(name, "work")
    registry = service.service.registry
    page = registry.page(name)
    assert page is not None
    (stored,) = registry.keys(page.study)
    assert access.matches(stored, key)
    assert not access.matches(stored, key[:-1])
    assert key.rpartition("_")[2] not in repr(stored)


def test_a_new_key_is_known_to_other_processes_at_once(tmp_path: Path) -> None:
    db = str(tmp_path / "studies.db")
    with served(db) as one, served(db) as other:
        one.create("poll")
        other.service._clock = lambda: 0.0  # nothing that it has read grows old
        path = "/api/v1/studies/poll/progress"
        assert other.client().get(path).status_code == 200  # so that it remembers the keys that there are
        keys = [one.key("poll", "read") for _ in range(3)]
        assert [other.client(key).get(path).status_code for key in keys] == [200] * 3
        assert other.client(f"{keys[0][:6]}{keys[1][6:]}").get(path).status_code == 401


@pytest.mark.parametrize(
    "kind", ["of no study", "of another study", "of a study that is not there", "with a wrong secret"]
)
def test_wrong_keys_cost_few_looks_at_the_database(service: Served, name: str, kind: str, monkeypatch: Any) -> None:
    """However many there are: those that come within a moment are looked up together, or not at all."""
    service.create(name)
    service.create(f"{name}-other")
    key, other = service.key(name, "read"), service.key(f"{name}-other", "read")
    study = f"{name}-none" if kind == "of a study that is not there" else name
    keys = {
        "of no study": [f"eqk_{k:012x}_x" for k in range(20)],
        "of another study": [other] * 20,
        "of a study that is not there": [f"eqk_{k:012x}_x" for k in range(10)] + [key] * 10,
        "with a wrong secret": [f"{key}{k}" for k in range(20)],
    }[kind]
    reads: list[str] = []
    read = Registry._read

    def count(registry: Registry, sql: str, values: Any = ()) -> Any:
        reads.append(sql)
        return read(registry, sql, values)

    held, asked = service.service, 0
    find, sleep = held._owners.find, held._owners._sleep

    async def find_one(identity: str) -> str | None:
        nonlocal asked
        asked += 1
        return await find(identity)

    async def until_all_wait(seconds: float) -> None:
        while asked < len(keys):
            await sleep(0.001)

    monkeypatch.setattr(Registry, "_read", count)
    monkeypatch.setattr(held, "_clock", lambda: 0.0)  # nothing grows old
    monkeypatch.setattr(held._owners, "find", find_one)
    monkeypatch.setattr(held._owners, "_sleep", until_all_wait)
    with ThreadPoolExecutor(len(keys)) as threads:
        client = service.client(None)

        def send(key: str) -> int:
            path = f"/api/v1/studies/{study}/progress"
            return client.get(path, headers={"Authorization": f"Bearer {key}"}).status_code

        assert set(threads.map(send, keys)) == {401}
    assert len(reads) == (0 if kind == "with a wrong secret" else 1)


# ---- the administrator


def test_the_first_token_is_shown_once(tmp_path: Path) -> None:
    registry = Registry(str(tmp_path / "studies.db"))
    token = access.first_token(registry)
    assert token is not None
    assert access.first_token(registry) is None
    assert Administrator(registry).matches(token)
    assert not Administrator(registry).matches(token[:-1])
    assert Administrator(registry, "another").matches("another")
    assert not Administrator(registry, "another").matches(token)
    registry.close()


def test_without_a_token_nobody_is_the_administrator(tmp_path: Path) -> None:
    registry = Registry(str(tmp_path / "studies.db"))
    assert not Administrator(registry).matches("")
    registry.close()


def test_sessions(tmp_path: Path) -> None:
    registry = Registry(str(tmp_path / "studies.db"))
    now = 1e9
    administrator = Administrator(registry, "token", clock=lambda: now)
    cookie = administrator.session()
    assert administrator.in_session(cookie)
    assert Administrator(registry, "token", clock=lambda: now).in_session(cookie)  # of another process
    assert not Administrator(registry, "other", clock=lambda: now).in_session(cookie)
    for wrong in (None, "", ".", cookie[:-1], f"9{cookie}", cookie.replace(".", "..", 1), "é.é", "\ud800.x"):
        assert not administrator.in_session(wrong)
    assert administrator.is_csrf(cookie, administrator.csrf(cookie))
    assert not administrator.is_csrf(administrator.session(), administrator.csrf(cookie))
    assert not administrator.is_csrf(cookie, None)
    now += access.SESSION
    assert not administrator.in_session(cookie)
    registry.close()


def test_a_session_ends_at_the_logout(db: str, name: str) -> None:
    """At once and in all processes, for pages, the API and live views; other sessions go on."""
    with served(db, look=0.01) as one, served(db, look=0.01) as other:
        one.create(name)
        administrator, path = one.service.administrator, f"/api/v1/studies/{name}"
        cookie, second = administrator.session(), administrator.session()
        headers = {"Cookie": f"{access.COOKIE}={cookie}"}
        clients = [each.client(None, **headers) for each in (one, other)]
        with other.client(None, **headers).stream("GET", f"{path}/events") as response:
            lines = response.iter_lines()
            assert next(lines) == "event: view"
            for client in clients:
                assert client.get(path).status_code == client.get("/new").status_code == 200
            wrong = clients[0].post("/logout", data={"csrf": administrator.csrf(second)})
            assert wrong.status_code == 403
            assert clients[1].get(path).status_code == 200
            assert clients[0].post("/logout", data={"csrf": administrator.csrf(cookie)}).status_code == 303
            assert [line for line in lines if line][-2:] == ["event: end", "data: refused"]
        token = {access.CSRF_HEADER: administrator.csrf(cookie)}
        for client in (*clients, one.client(None, **headers)):
            assert client.get(path).status_code == 401
            assert client.post(f"{path}/pause", headers=token).status_code == 401
            assert client.get("/api/v1/studies").status_code == 401
            assert client.get("/new").status_code == 303
        assert clients[1].post("/logout", data={"csrf": administrator.csrf(cookie)}).status_code == 303
        with served(db) as third:
            assert third.client(None, **headers).get(path).status_code == 401
            assert third.client(None, Cookie=f"{access.COOKIE}={second}").get(path).status_code == 200


def test_sessions_that_are_over_are_forgotten(tmp_path: Path) -> None:
    registry = Registry(str(tmp_path / "studies.db"))
    now = 1e9
    administrator = Administrator(registry, "token", clock=lambda: now)
    for _ in range(3):
        administrator.end(administrator.session())
    assert len(registry.ended_sessions()) == 3
    now += access.SESSION + 1
    for cookie in ("", "x", administrator.session()):
        administrator.end(cookie)
    assert len(registry.ended_sessions()) == 1
    registry.close()


def test_a_session_can_read_and_needs_a_csrf_token_to_write(service: Served, name: str) -> None:
    service.create(name)
    cookie = service.service.administrator.session()
    client = service.client(None, Cookie=f"{access.COOKIE}={cookie}")
    path = f"/api/v1/studies/{name}"
    assert client.get(path).status_code == 200
    assert client.get("/api/v1/studies").status_code == 200
    refused = client.post(f"{path}/pause")
    assert (refused.status_code, refused.json()["type"]) == (403, "urn:equipoise:problem:csrf")
    assert client.post(f"{path}/pause", headers={access.CSRF_HEADER: "x"}).status_code == 403
    token = service.service.administrator.csrf(cookie)
    assert client.post(f"{path}/pause", headers={access.CSRF_HEADER: token}).status_code == 200
