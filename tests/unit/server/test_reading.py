"""What can be read: results, views, live events, the log as a file; and the edges of the service."""

from __future__ import annotations

import csv
import gc
import io
import json
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import polars
import pytest

import equipoise as eq
from equipoise.base.errors import EquipoiseError
from equipoise.report import Watch
from equipoise.server import Limits, export, visitors
from equipoise.server.access import COOKIE
from equipoise.server.follow import Follower
from equipoise.store import Log, Replica, wire
from tests.serving import Served, served
from tests.waiting import until

POLL = {"question": "?", "origins": ["https://example.org", "http://127.0.0.1:9999"]}


def fill(service: Served, name: str, samples: int = 10) -> httpx.Client:
    """Create a study with some samples, and return the administrator's client."""
    service.create(name)
    client = service.client()
    tickets = client.post(f"/api/v1/studies/{name}/ask", json={"count": samples}).json()["tickets"]
    answers = [{"ticket": each["ticket"], "value": j % 2} for j, each in enumerate(tickets)]
    client.post(f"/api/v1/studies/{name}/tell", json={"answers": answers})
    return client


def test_the_result_is_that_of_the_log(service: Served, name: str) -> None:
    client = fill(service, name)
    with eq.open(service.service.registry.place(name)) as study:
        assert client.get(f"/api/v1/studies/{name}/result").json() == json.loads(study.result().to_json())
        study.tell(study.ask(), 1)  # by another process, as it were
        assert client.get(f"/api/v1/studies/{name}/result").json() == json.loads(study.result().to_json())


def test_the_log_as_a_file(service: Served, name: str) -> None:
    client = fill(service, name, 4)
    path = f"/api/v1/studies/{name}/log"
    found = client.get(path)
    assert found.headers["content-disposition"] == f'attachment; filename="{name}.csv"'
    rows = list(csv.DictReader(io.StringIO(found.text)))
    assert [row["kind"] for row in rows] == ["ask"] * 4 + ["tell"] * 4
    assert [row["arm"] for row in rows] == ["a", "b", "a", "b", "", "", "", ""]
    lines = [json.loads(line) for line in client.get(path, params={"format": "jsonl"}).text.splitlines()]
    assert [(line["ticket"], line["value"]) for line in lines[4:]] == [(0, 0.0), (1, 1.0), (2, 0.0), (3, 1.0)]
    assert {line["seconds"] for line in lines} == {None}
    frame = polars.read_parquet(client.get(path, params={"format": "parquet"}).content)
    assert frame.to_dicts() == lines
    assert client.get(path, params={"format": "xls"}).status_code == 422


class Rows(list[tuple[Any, ...]]):
    """A part of a log, of which it can be seen whether somebody holds it."""


def test_parquet_holds_one_part_of_a_log_in_memory() -> None:
    given: list[weakref.ref[Rows]] = []
    held: list[int] = []

    def in_frames() -> int:
        return sum(each.height for each in gc.get_objects() if type(each) is polars.DataFrame)

    before = in_frames()

    def parts() -> Iterator[list[tuple[Any, ...]]]:
        for turn in range(20):
            held.append(in_frames() - before + sum(len(part) for ref in given if (part := ref()) is not None))
            part = Rows((turn, 0.5, "tell", ticket, None, 1.0, None, None) for ticket in range(100))
            given.append(weakref.ref(part))
            yield part
            del part

    frame = polars.read_parquet(b"".join(export._parquet(parts())))
    assert max(held) <= 200
    assert frame["turn"].to_list() == [turn for turn in range(20) for _ in range(100)]


def test_a_file_of_a_study_that_others_have_named(service: Served) -> None:
    eq.open(service.service.registry.place('a "b'), arms=2).close()
    found = service.client().get("/api/v1/studies/a%20%22b/log")
    assert found.headers["content-disposition"] == 'attachment; filename="a-b.csv"'


def test_an_empty_log_as_a_file(service: Served, name: str) -> None:
    service.create(name)
    path = f"/api/v1/studies/{name}/log"
    assert service.client().get(path).text == "turn,at,kind,ticket,arm,value,seconds,text\r\n"
    assert service.client().get(path, params={"format": "jsonl"}).content == b""
    content = service.client().get(path, params={"format": "parquet"}).content
    assert polars.read_parquet(content).shape == (0, 8)


def test_a_spreadsheet_finds_no_formula(service: Served, name: str) -> None:
    service.create(name, arms=["=1+1", "@SUM(A1)", "-2", "plain", "\uff1d1+1"])
    client = service.client()
    client.post(f"/api/v1/studies/{name}/ask", json={"count": 5})
    rows = csv.DictReader(io.StringIO(client.get(f"/api/v1/studies/{name}/log").text))
    assert [row["arm"] for row in rows] == ["'=1+1", "'@SUM(A1)", "'-2", "plain", "'\uff1d1+1"]


def test_turns_are_folded_elsewhere(service: Served, name: str) -> None:
    client = fill(service, name)
    path = f"/api/v1/studies/{name}/turns"
    first, *rest = wire.unpack(client.get(path).content)
    replica = Replica.begin(first)
    replica.fold(rest)
    assert replica.study.ledger.samples == 10
    assert wire.unpack(client.get(path, params={"after": replica.turns}).content) == []
    assert wire.unpack(client.get(path, params={"after": 10**14}).content) == []
    for wrong in ("-2", "x", "1.5", "9" * 30):
        assert client.get(path, params={"after": wrong}).status_code == 422


# ---- live events


def events_of(response: httpx.Response) -> Any:
    """Iterate over the views of a stream."""
    for line in response.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def test_live_events(tmp_path: Any) -> None:
    with served(str(tmp_path / "studies.db"), look=0.01, heartbeat=0.02) as service:
        client = fill(service, "live")
        reader = service.client(service.key("live", "read"))
        with (
            reader.stream("GET", "/api/v1/studies/live/events") as one,
            reader.stream("GET", "/api/v1/studies/live/events") as two,
        ):
            assert one.headers["content-type"].startswith("text/event-stream")
            views = [events_of(one), events_of(two)]
            for each in views:
                assert next(each) == client.get("/api/v1/studies/live/view").json()
            ticket = client.post("/api/v1/studies/live/ask", json={}).json()["tickets"][0]["ticket"]
            client.post("/api/v1/studies/live/tell", json={"answers": [{"ticket": ticket, "value": 1}]})
            latest = client.get("/api/v1/studies/live/view").json()
            for each in views:
                assert any(view == latest for view in each)
            client.post("/api/v1/studies/live/pause")
            for each in views:
                assert any(view["study"]["status"] == "paused" for view in each)
            assert service.service.viewers == 2
        until(lambda: service.service.viewers == 0, "viewers are gone")


def test_signs_of_life(tmp_path: Any) -> None:
    with served(str(tmp_path / "studies.db"), heartbeat=0.01) as service:
        service.create("quiet")
        with service.client().stream("GET", "/api/v1/studies/quiet/events") as response:
            assert ": still here" in iter_until(response, ": still here")


def iter_until(response: httpx.Response, wanted: str) -> list[str]:
    found = []
    for line in response.iter_lines():
        found.append(line)
        if line == wanted:
            break
    return found


def test_viewers_do_not_hold_up_the_end(tmp_path: Any) -> None:
    with served(str(tmp_path / "studies.db")) as service:
        service.create("live")
        client = service.client()
        response = client.send(client.build_request("GET", "/api/v1/studies/live/events"), stream=True)
        views = events_of(response)
        assert next(views)
        service.service.stop()
        assert client.get("/readyz").status_code == 503
        assert client.get("/healthz").status_code == 200
        assert not list(views)  # it ends by itself
        assert client.get("/api/v1/studies/live/events").status_code == 503
        response.close()


def ended(lines: Iterator[str]) -> str:
    """Read a stream to its end, and return why it ended."""
    found = [line for line in lines if line]
    return found[-1].removeprefix("data: ") if "event: end" in found else ""


@pytest.mark.parametrize("how", ["rotated", "revoked"])
def test_a_live_view_ends_with_its_key(tmp_path: Any, how: str) -> None:
    """In the process that refuses the key, and in others, which look at the keys every second."""
    db = str(tmp_path / "studies.db")
    with served(db, look=0.01, heartbeat=0.02) as one, served(db, look=0.01, heartbeat=0.02) as other:
        one.create("live")
        client, path = one.client(), "/api/v1/studies/live"
        made = client.post(f"{path}/keys", json={"role": "read"}).json()
        with (
            one.client(made["key"]).stream("GET", f"{path}/events") as here,
            other.client(made["key"]).stream("GET", f"{path}/events") as there,
        ):
            assert (here.status_code, there.status_code) == (200, 200)
            if how == "rotated":
                assert client.post(f"{path}/keys/{made['id']}/rotate").status_code == 200
            else:
                assert client.delete(f"{path}/keys/{made['id']}").status_code == 204
            assert (ended(here.iter_lines()), ended(there.iter_lines())) == ("refused", "refused")


def test_a_live_view_ends_with_its_session(tmp_path: Any) -> None:
    with served(str(tmp_path / "studies.db"), look=0.01) as service:
        service.create("live")
        administrator = service.service.administrator
        browser = service.client(None, Cookie=f"{COOKIE}={administrator.session()}")
        with browser.stream("GET", "/api/v1/studies/live/events") as response:
            lines = response.iter_lines()
            assert next(lines) == "event: view"
            administrator._clock = lambda: 1e12  # 12 hours later
            assert ended(lines) == "refused"


def test_a_live_view_shows_what_another_process_does(tmp_path: Any) -> None:
    """Although nobody else asks this process: a pause, and the end of the study."""
    db = str(tmp_path / "studies.db")
    with served(db) as one, served(db, look=0.01, heartbeat=0.02) as other:
        one.create("live")
        with other.client().stream("GET", "/api/v1/studies/live/events") as response:
            views = events_of(response)
            assert next(views)["study"]["status"] == "collecting"
            one.client().post("/api/v1/studies/live/pause")
            assert any(view["study"]["status"] == "paused" for view in views)
        with other.client().stream("GET", "/api/v1/studies/live/events") as response:
            one.client().delete("/api/v1/studies/live")
            assert ended(response.iter_lines()) == "deleted"


def test_a_live_view_ends_where_the_database_is_away(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A viewer who comes back is told so, rather than left with an old view."""
    with served(str(tmp_path / "studies.db"), look=0.01) as service:
        service.create("live")
        client, path = service.client(), "/api/v1/studies/live/events"

        def away(*given: Any) -> Any:
            raise EquipoiseError("the database is away")

        with client.stream("GET", path) as response:
            lines = response.iter_lines()
            assert next(lines) == "event: view"
            with monkeypatch.context() as patched:
                patched.setattr(Follower, "view", away)
                assert ended(lines) == ""
        with client.stream("GET", path) as response:
            assert next(events_of(response))


def test_one_key_has_only_some_of_the_live_views(tmp_path: Any) -> None:
    with served(str(tmp_path / "studies.db"), limits=Limits(viewers=3, viewers_by_key=2)) as service:
        service.create("live")
        reader, path = service.client(service.key("live", "read")), "/api/v1/studies/live/events"
        with ExitStack() as stack:
            watching = [events_of(stack.enter_context(reader.stream("GET", path))) for _ in range(2)]
            assert all(map(next, watching))
            assert reader.get(path).status_code == 429
            watching.append(events_of(stack.enter_context(service.client().stream("GET", path))))
            assert next(watching[-1])
            assert service.client().get(path).status_code == 503


def test_there_is_no_rate_when_samples_no_longer_come(service: Served, name: str) -> None:
    """The view changes once, a minute after the last event."""
    fill(service, name)
    page = service.service.registry.page(name)
    assert page is not None
    now = 0.0
    follower = Follower(service.service.registry.study(name), lambda: now)
    first = follower.view(page)
    latest = json.loads(first)["study"]["latest"]
    rates = {}
    for seconds in (0, 59, 61, 600):
        now = latest + seconds
        rates[seconds] = next(each["value"] for each in follower.data(page)["figures"] if each["label"] == "Rate")
    assert rates[0] == rates[59]
    assert rates[61] == rates[600] == "—"


def test_a_result_is_computed_once_a_turn(service: Served, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client, counted = fill(service, name), []
    result_of = Watch.result

    def count(watch: Watch) -> Any:
        counted.append(watch)
        return result_of(watch)

    monkeypatch.setattr(Watch, "result", count)
    path = f"/api/v1/studies/{name}"
    found = [client.get(f"{path}/result").text for _ in range(5)]
    assert (len(set(found)), len(counted)) == (1, 1)
    client.post(f"{path}/ask")
    client.get(f"{path}/result")
    assert len(counted) == 2


def test_the_demonstration_can_be_looked_at(tmp_path: Any) -> None:
    with served(str(tmp_path / "studies.db"), demo="demo") as service:
        service.create("other")
        anybody = service.client(None)
        assert anybody.get("/api/v1/studies/demo/view").status_code == 200
        assert anybody.get("/api/v1/studies/other/view").status_code == 401
        assert anybody.post("/api/v1/studies/demo/ask").status_code == 403
        assert anybody.post("/api/v1/studies/demo/pause").status_code == 403

        def samples() -> int:
            return int(anybody.get("/api/v1/studies/demo/progress").json()["samples"])

        until(lambda: samples() >= 3, "visitors have answered")


@pytest.mark.parametrize("over", ["reached", "spent"])
def test_the_demonstration_goes_on(tmp_path: Any, over: str) -> None:
    """Where the precision is reached or the budget spent, it asks for more; once, though two processes see it."""
    where = str(tmp_path / "study.db")
    goal: dict[str, Any] = {"precision": 0.3} if over == "reached" else {"budget": 4}
    with eq.open(where, arms=["a", "b"], support="binary", **goal) as study:
        while tickets := study.ask(2):
            study.tell_many([(ticket, 1.0) for ticket in tickets])
    with Log(where) as log:
        for _ in range(2):
            log.turn(visitors.go_on)
        assert not log.study.done
        assert (log.replica.precision, log.study.budget) == ((0.15, None) if over == "reached" else (None, 8))


# ---- the edges


ASKS = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}


def test_other_origins(service: Served, name: str) -> None:
    """Pages of the poll's origins and our own may ask and tell; from others, a key changes nothing."""
    key = service.create(name, poll=POLL)["keys"][0]["key"]
    path, client = f"/api/v1/studies/{name}", service.client(key)
    for origin in (*POLL["origins"], service.url, "https://evil.example", "null"):
        allowed = client.options(f"{path}/ask", headers={"Origin": origin, **ASKS})
        assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (204, origin)
        assert "authorization" in allowed.headers["access-control-allow-headers"].lower()
        assert "access-control-allow-credentials" not in allowed.headers
        own = origin == service.url
        asked = client.post(f"{path}/ask", headers={"Origin": origin})
        told = client.post(f"{path}/tell", headers={"Origin": origin}, json={"answers": [{"ticket": "x", "value": 1}]})
        wanted = 200 if own or origin in POLL["origins"] else 403
        assert (asked.status_code, told.status_code) == (wanted, wanted)
        assert asked.headers["access-control-allow-origin"] == origin
    assert client.post(f"{path}/ask", headers={"Origin": "null", "Sec-Fetch-Site": "same-origin"}).status_code == 200
    assert service.client().get(f"{path}/progress").json()["in_flight"] == 4
    result = client.options(f"{path}/result", headers={"Origin": POLL["origins"][0], **ASKS})
    assert "access-control-allow-origin" not in result.headers
    service.client().put(f"{path}/poll", json=POLL | {"origins": ["*"]})
    assert client.post(f"{path}/ask", headers={"Origin": "https://evil.example"}).status_code == 200


def test_other_origins_learn_nothing_of_studies(service: Served, name: str) -> None:
    """Without a key, a poll, a study without one and a study that is not there look the same, whoever asks."""
    service.create(name, poll=POLL)
    service.create(f"{name}-plain")
    client, wrong = service.client(None), service.client("eqk_0123456789ab_x")
    for origin in (POLL["origins"][0], "https://evil.example"):
        found = []
        for each in (name, f"{name}-plain", f"{name}-none"):
            path = f"/api/v1/studies/{each}/ask"
            replies = [
                client.options(path, headers={"Origin": origin, **ASKS}),
                client.post(path, headers={"Origin": origin}),
                wrong.post(path, headers={"Origin": origin}),
            ]
            found.append([(each.status_code, each.content, {**each.headers, "date": ""}) for each in replies])
        assert found[0] == found[1] == found[2]


def test_headers(service: Served) -> None:
    headers = service.client(None).get("/api/v1/studies").headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["www-authenticate"].startswith("Bearer")
    assert "server" not in headers


def test_the_script_of_polls_is_small_and_cached(service: Served) -> None:
    client = service.client(None)
    first = client.get("/poll.js")
    assert first.headers["access-control-allow-origin"] == "*"
    assert first.headers["cross-origin-resource-policy"] == "cross-origin"
    assert "max-age" in first.headers["cache-control"]
    assert first.headers["content-encoding"] == "gzip"
    assert int(first.headers["content-length"]) < 6_000
    again = client.get("/poll.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/login", "/poll.js"])
def test_a_page_is_looked_for_without_being_read(service: Served, path: str) -> None:
    client = service.client(None)
    there, found = client.head(path), client.get(path)
    assert (there.status_code, there.content) == (200, b"")
    assert there.headers["content-type"] == found.headers["content-type"]
    assert client.head("/nowhere").status_code == 404
    assert client.head("/").status_code == 303


def test_metrics(service: Served, name: str) -> None:
    fill(service, name)
    text = service.client(None).get("/metrics").text
    for line in text.splitlines():
        assert line.startswith("# ") or line.rpartition(" ")[2].replace(".", "").replace("e-", "").isdigit(), line
    assert 'route="/api/v1/studies/{name}/ask",status="200"' in text
    assert name not in text


def test_a_problem(service: Served, name: str) -> None:
    for response, status in (
        (service.client().get(f"/api/v1/studies/{name}"), 404),
        (service.client().get("/nowhere"), 404),
        (service.client().patch("/api/v1/studies"), 405),
    ):
        assert response.status_code == status
        assert response.headers["content-type"] == "application/problem+json"
        assert response.json()["status"] == status
        assert {"type", "title", "detail"} <= response.json().keys()


def test_mistakes_are_named_in_words(service: Served) -> None:
    client = service.client()
    for body, words in (
        ({"name": "a b", "arms": 2}, "name must be up to 80 letters, digits, dots, hyphens and underscores"),
        (
            {"name": "x", "arms": 2, "poll": {"origins": ["*", "https://example.org/"]}},
            "poll/origins/1 must be an origin such as https://example.org, without a path, or * for all",
        ),
    ):
        assert words in client.post("/api/v1/studies", json=body).json()["detail"]
    service.create("x")
    mistakes: list[tuple[str, Any, str]] = [
        ("", {"name": "x", "arms": 2, "extra": 1}, "the request is not valid: extra is not known here"),
        ("", {"arms": 2}, "the request is not valid: name is required"),
        ("", {"name": "x", "arms": 2, "level": "high"}, "the request is not valid: level must be a number"),
        ("", {"name": "y", "arms": 2, "support": [1, 0]}, "'binary', [low, high] with low < high, or null, got [1, 0]"),
        ("/x/ask", {"count": 0}, "the request is not valid: count must be at least 1, got 0"),
        ("/x/ask", {"count": None}, "the request is not valid: count must be an integer, got null"),
        ("/x/ask", {"count": "secret"}, "the request is not valid: count must be an integer"),
        ("/x/ask", [], "the body must be an object"),
        ("/x/tell", {"answers": []}, "the request is not valid: answers must have at least 1 item"),
        ("/x/tell", {"answers": [{"ticket": "", "declined": False}]}, "answers/0/declined must be true, got false"),
    ]
    for path, sent, words in mistakes:
        detail = client.post(f"/api/v1/studies{path}", json=sent).json()["detail"]
        assert detail.endswith(words), detail
    for method, path, words in (
        ("GET", "/nowhere", "there is nothing at this address"),
        ("PATCH", "/api/v1/studies", "PATCH is not possible at this address"),
    ):
        assert client.request(method, path).json()["detail"] == words
    reader = service.client(service.key("x", "read"))
    refused = reader.post("/api/v1/studies/x/ask", json={"count": 2}).json()["detail"]
    assert refused == "a key of role 'read' cannot ask for tickets"
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["Create"]["properties"]["name"]["pattern"].startswith("^")
    assert schemas["Poll"]["properties"]["origins"]["items"]["pattern"].startswith("^")


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ("{", ["#"]),
        ("[]", ["#"]),
        ('{"name": "x", "name": "y", "arms": 2}', ["#"]),
        ('{"arms": 2}', ["#/name"]),
        ('{"name": "x", "arms": [1, "b"]}', ["#/arms/0", "#/arms"]),
        ('{"name": "x", "arms": 2, "extra~/": 1}', ["#/extra~0~1"]),
        ('{"name": "x", "arms": 2, "poll": {"arms": {"a": {"picture": "javascript:1"}}}}', ["#/poll/arms/a/picture"]),
        ('{"name": "x", "arms": 2, "poll": {"arms": {"a": {}}}}', ["#"]),
        ('{"name": "x", "arms": 2, "level": NaN}', ["#/level"]),
        ('{"name": "x", "arms": 2, "support": [1]}', ["#/support", "#/support/1"]),
    ],
)
def test_mistakes_are_pointed_out(service: Served, body: str, pointers: list[str]) -> None:
    response = service.client().post("/api/v1/studies", content=body)
    assert response.status_code == 422
    found = response.json()
    assert list(dict.fromkeys(each["pointer"] for each in found["errors"])) == pointers
    assert found["errors"][0]["detail"] in found["detail"]


@pytest.mark.parametrize("root_path", ["", "/polls"])
def test_behind_a_proxy(tmp_path: Any, root_path: str) -> None:
    """A proxy may strip the path or not."""
    with served(str(tmp_path / "studies.db"), root_path=root_path) as service:
        service.create("poll", poll=POLL)
        asks = {"Access-Control-Request-Method": "POST", "Origin": "https://example.org"}
        for before in {"", root_path}:
            assert service.client().get(f"{before}/api/v1/studies/poll").status_code == 200
            response = service.client(None).options(f"{before}/api/v1/studies/poll/ask", headers=asks)
            assert response.headers["access-control-allow-origin"] == "https://example.org"


def test_no_more_studies_are_open_than_allowed(tmp_path: Any) -> None:
    """Those that were used longest ago are closed, and opened again when somebody comes."""
    with served(str(tmp_path / "studies.db"), limits=Limits(studies=2)) as service:
        client = service.client()
        for number in range(5):
            fill(service, f"s{number}")
            client.get(f"/api/v1/studies/s{number}/result")
            assert len(service.service.desks) <= 2
        assert list(service.service._followers) == list(service.service._desks)  # of those that were used last
        before = list(service.service.desks)
        listed = client.get("/api/v1/studies").json()["studies"]
        assert [each["samples"] for each in listed] == [10] * 5
        assert list(service.service.desks) == before  # a list opens none
        assert len(service.service._followers) <= 2
        assert client.post("/api/v1/studies/s0/ask").json()["tickets"]
        assert client.get("/api/v1/studies").json()["studies"][0]["in_flight"] == 1


def test_a_closed_study_is_seen_as_it_is_now(tmp_path: Any) -> None:
    with served(str(tmp_path / "studies.db"), limits=Limits(studies=1)) as service:
        service.create("one")
        service.create("two")
        client = service.client()
        assert client.get("/api/v1/studies/one/progress").json()["samples"] == 0
        with eq.open(service.service.registry.place("one")) as study:
            study.tell(study.ask(), 1)
        assert client.get("/api/v1/studies/one/progress").json()["samples"] == 1
