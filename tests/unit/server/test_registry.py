"""What the database holds for a service, and what becomes of it when studies are deleted."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import equipoise as eq
from equipoise.base.errors import EquipoiseError
from equipoise.server.registry import Registry
from equipoise.store import Log
from equipoise.store.database import Missing
from equipoise.store.log import connect
from tests.serving import ADMIN, served
from tests.unit.server.test_pages import browser_of


@pytest.fixture
def registry(db: str) -> Iterator[Registry]:
    """A registry in a file, and in PostgreSQL."""
    found = Registry(db)
    yield found
    found.close()


@pytest.fixture
def name() -> str:
    return f"study-{uuid.uuid4().hex}"


def test_what_the_service_knows_of_itself(registry: Registry, name: str) -> None:
    assert registry.value(name) is None
    assert registry.settle(name, "first") == "first"
    assert registry.settle(name, "second") == "first"
    other = Registry(registry.where)
    assert other.value(name) == "first"
    other.close()


def test_a_study_that_no_service_has_created(registry: Registry, name: str) -> None:
    assert registry.page(name) is None
    eq.open(registry.place(name), arms=["a", "b"]).close()
    page = registry.page(name)
    assert page is not None
    assert (page.status, page.title, page.poll, page.created) == ("open", name, None, None)
    secret = registry.secret(page.study)
    registry.write(page._replace(status="paused", title="'; --", poll={"question": "é\"'"}))
    assert registry.page(name) == page._replace(status="paused", title="'; --", poll={"question": "é\"'"})
    assert registry.secret(page.study) == secret
    assert name in [each.name for each in registry.pages()]


def test_keys(registry: Registry, name: str) -> None:
    eq.open(registry.place(name), arms=["a", "b"]).close()
    page = registry.page(name)
    assert page is not None
    one = registry.add_key(page.study, f"{name}-1", "work", "label", b"\x00\xff", None)
    two = registry.add_key(page.study, f"{name}-2", "ask", "", b"hash", "eqk_public")
    assert {key.id: key for key in registry.keys(page.study)} == {one.id: one, two.id: two}
    registry.change_key(one, b"other", None)
    assert {key.hash for key in registry.keys(page.study)} == {b"other", b"hash"}
    registry.revoke(one)
    assert registry.keys(page.study) == [two]


def test_nothing_is_left_of_a_deleted_study(registry: Registry, name: str) -> None:
    place = registry.place(name)
    with eq.open(place, arms=["a", "b"]) as study:
        study.tell(study.ask(idempotency_key="x"), 1.0)
        study.ask()
    page = registry.page(name)
    assert page is not None
    registry.secret(page.study)
    registry.add_key(page.study, name, "work", "", b"hash", None)
    stale = Log(place)
    registry.delete(name)
    assert registry.page(name) is None
    assert registry.keys(page.study) == []
    for table in ("turn", "lease", "call", "snapshot", "key", "study"):
        sql = f"select count(*) from equipoise_{table} where study = ?"
        assert registry.study("").execute(sql, (page.study,)) == [(0,)]
    # Another one of that name has another number, and who has the old one open is told that it is gone.
    eq.open(place, arms=["c", "d"]).close()
    again = registry.page(name)
    assert again is not None
    assert again.study > page.study
    with pytest.raises(EquipoiseError, match="no longer in"):
        stale.turn(lambda turn: turn.ask(1))
    stale.close()
    registry.delete(name)


def test_a_file_that_is_not_a_store(tmp_path: Path) -> None:
    path = tmp_path / "text.db"
    path.write_text("not a database, but some text that is long enough to be looked at" * 20)
    with pytest.raises(ValueError, match="not an equipoise store"):
        Registry(str(path))


def test_two_services_of_one_database(db: str, name: str) -> None:
    """What one of them does, the other knows: tickets, keys, respondents, and that a study is gone."""
    with served(db) as one, served(db) as other:
        one.create(name, poll={"question": "?"})
        path, first, second = f"/api/v1/studies/{name}", one.client(), other.client()
        handed = first.post(f"{path}/ask", json={"respondent": "me"}).json()
        assert second.post(f"{path}/ask", json={"respondent": "me"}).json() == handed
        ticket = handed["tickets"][0]["ticket"]
        key = one.key(name, "work")
        answer = {"answers": [{"ticket": ticket, "value": 1}]}
        assert other.client(key).post(f"{path}/tell", json=answer).json()["outcomes"] == ["taken"]
        assert first.post(f"{path}/tell", json=answer).json()["outcomes"] == ["known"]
        assert first.get(f"{path}/result").json() == second.get(f"{path}/result").json()
        other.service._entries.clear()  # as after a second
        assert second.delete(path).status_code == 204
        one.service._entries.clear()
        assert first.get(path).status_code == 404
        one.create(name, arms=["c", "d"])
        assert first.post(f"{path}/ask").json()["tickets"][0]["arm"] == "c"
        stale = first.post(f"{path}/tell", json=answer).json()
        assert stale["outcomes"] == ["refused"]
        assert first.delete(path).status_code == 204


def test_no_byte_is_left_of_a_deleted_study(tmp_path: Path) -> None:
    """Neither in the file nor beside it; and other studies are as they were."""
    with served(str(tmp_path / "studies.db")) as service:
        service.create("kept", arms=["plain", "other"])
        service.create("secret", arms=["unmistakable", "other"], title="unmistakable")
        client = service.client()
        client.post("/api/v1/studies/secret/ask", json={"count": 100})

        def written() -> bytes:
            return b"".join(path.read_bytes() for path in tmp_path.iterdir())

        assert b"unmistakable" in written()
        assert client.delete("/api/v1/studies/secret").status_code == 204
        assert b"unmistakable" not in written()
        assert client.post("/api/v1/studies/kept/ask").status_code == 200


def test_nothing_is_written_of_a_deleted_study(registry: Registry, name: str) -> None:
    eq.open(registry.place(name), arms=["a", "b"]).close()
    page = registry.page(name)
    assert page is not None
    registry.delete(name)
    for write in (
        lambda: registry.secret(page.study),
        lambda: registry.write(page._replace(title="left behind")),
        lambda: registry.add_key(page.study, name, "work", "", b"hash", None),
        lambda: registry.turns(page.study),
    ):
        with pytest.raises(Missing, match="the study was deleted"):
            write()
    sql = "select title, secret from equipoise_page where study = ?"
    assert registry.study("").execute(sql, (page.study,)) == [(None, None)]
    assert registry.keys(page.study) == []


@pytest.mark.parametrize("opened", [False, True])
def test_a_study_that_another_process_has_just_deleted(db: str, name: str, opened: bool) -> None:
    """It is gone, though this process knew it a moment ago; its desk may be open or not."""
    with served(db) as one, served(db) as other:
        one.create(name)
        path, client = f"/api/v1/studies/{name}", other.client()
        if opened:
            for what in ("ask", "pause", "resume"):
                assert client.post(f"{path}/{what}").status_code == 200
            assert client.get(f"{path}/result").status_code == 200
        assert client.get(f"{path}/progress").status_code == 200
        known = other.service._entries[name]
        assert one.client().delete(path).status_code == 204
        sent = {"ask": {}, "pause": None, "extend": {}, "keys": {"role": "work"}}
        for what in (*sent, "progress", "result", "view", "turns", "log", "log?format=parquet"):
            other.service._entries[name] = known  # as within the first second
            method = "POST" if what in sent else "GET"
            response = client.request(method, f"{path}/{what}", json=sent.get(what))
            assert (response.status_code, response.json()["detail"]) in (
                (404, "the study was deleted"),
                (404, f"there is no study {name!r}"),
            ), what
        other.service._entries[name] = known
        page = client.get(f"/studies/{name}")
        assert (page.status_code, "Nothing here" in page.text) == (404, True)
        found = client.get("/api/v1/studies")
        assert found.status_code == 200, found.text
        assert name not in [each["name"] for each in found.json()["studies"]]


def test_a_damaged_study_does_not_hide_the_others(db: str, name: str) -> None:
    """It is listed apart, with the reason, by the API and on the page."""
    with served(db) as service:
        for each in (name, f"{name}-damaged"):
            service.create(each)
        place = service.service.registry.place(f"{name}-damaged")
        with closing(connect(place)) as database:
            assert database.find()
            database.execute("update equipoise_turn set body = ? where study = ?", (b"nothing", database._study))
        with served(db) as other:
            found = other.client().get("/api/v1/studies").json()
            assert name in [each["name"] for each in found["studies"]]
            [broken] = [each for each in found["unreadable"] if each["name"] == f"{name}-damaged"]
            assert "damaged" in broken["detail"]
            inside = browser_of(other)
            assert inside.post("/login", data={"token": ADMIN}).status_code == 303
            page = inside.get("/").text
            assert f"{name}-damaged cannot be read: " in page
            assert f'data-study="{name}"' in page
        with closing(connect(place)) as database:
            assert database.find()
            database.delete()
