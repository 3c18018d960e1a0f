"""The dashboard's pages: who sees them, what they hold, and what they do not let in."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from httpx import Client, Response

from equipoise import chart
from equipoise.server import Limits, Rate
from equipoise.server.access import COOKIE
from equipoise.server.service import _network
from tests.serving import ADMIN, Served, served

ARMS = ["</script><script>alert(1)</script>", '"><b>bold', "plain"]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A service with a study whose names are hostile, and one of which nothing is known."""
    with served(str(tmp_path_factory.mktemp("pages") / "studies.db")) as service:
        found = browser_of(service)
        poll = {"question": "<i>Really</i>?", "arms": {arm: {"title": arm} for arm in ARMS}, "origins": ["*"]}
        body = {"name": "hostile", "title": "<b>A title</b>", "arms": ARMS, "budget": 90, "poll": poll}
        created = api(found, "POST", "", body)
        assert created.status_code == 201
        tickets = api(found, "POST", "/hostile/ask", {"count": 60}).json()["tickets"]
        answers = [{"ticket": each["ticket"], "value": float(i % 2)} for i, each in enumerate(tickets)]
        assert api(found, "POST", "/hostile/tell", {"answers": answers}).status_code == 200
        assert api(found, "POST", "", {"name": "new", "arms": 3}).status_code == 201
        yield found


@pytest.fixture
def inside(client: Client) -> Iterator[Client]:
    """The same, for somebody who has logged in."""
    client.cookies.clear()
    assert client.post("/login", data={"token": ADMIN}).status_code == 303
    yield client
    client.cookies.clear()


def browser_of(service: Served) -> Client:
    """Return somebody without a token, who is not sent on."""
    found = service.client(None)
    found.follow_redirects = False
    return found


def api(client: Client, method: str, path: str, body: Any = None) -> Response:
    return client.request(method, f"/api/v1/studies{path}", json=body, headers={"Authorization": f"Bearer {ADMIN}"})


def csrf_of(page: str) -> str:
    found = re.search(r'data-csrf="([^"]+)"', page)
    assert found
    return found[1]


def held(page: str, name: str) -> Any:
    """What a block of data in a page holds."""
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def without_snippets(page: str) -> str:
    """Return a page without what it shows to be copied."""
    return re.sub(r"<pre\b.*?</pre>", "", page, flags=re.DOTALL)


# ---- who is let in


@pytest.mark.parametrize("path", ["/", "/new", "/studies/hostile"])
def test_strangers_are_sent_to_the_login_and_back(client: Client, path: str) -> None:
    client.cookies.clear()
    reply = client.get(path)
    assert (reply.status_code, reply.headers["location"]) == (303, f"/login?next={path}")
    form = client.get(reply.headers["location"]).text
    assert f'name="next" value="{path}"' in form
    reply = client.post("/login", data={"token": f" {ADMIN}\n", "next": path})
    assert (reply.status_code, reply.headers["location"]) == (303, path)
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    assert ADMIN not in cookie
    assert client.get(path).status_code == 200
    client.cookies.clear()


@pytest.mark.parametrize(
    "address", ["//evil.example", "https://evil.example", "/studies/../../x", "javascript:x", "/\\x"]
)
def test_nobody_is_sent_elsewhere(client: Client, address: str) -> None:
    client.cookies.clear()
    assert 'name="next" value="/"' in client.get("/login", params={"next": address}).text
    reply = client.post("/login", data={"token": ADMIN, "next": address})
    assert reply.headers["location"] == "/"
    client.cookies.clear()


def test_a_wrong_token_is_refused(client: Client) -> None:
    client.cookies.clear()
    for token in ("", "wrong", ADMIN + "x"):
        reply = client.post("/login", data={"token": token})
        assert reply.status_code == 401
        assert "This is not the administrator" in reply.text
        assert "set-cookie" not in reply.headers
    assert client.post("/login", data={"token": ADMIN}, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.post("/login", content=b"\xff=\xfe&token").status_code == 401


def test_tokens_cannot_be_guessed_quickly(tmp_path: Path) -> None:
    """Wrong tokens and keys of an address are refused after some; the right ones and sessions go on."""
    with served(str(tmp_path / "studies.db"), limits=Limits(guesses=Rate(1e-9, 3))) as service:
        client = browser_of(service)
        service.create("study")
        key, path = service.key("study", "read"), "/api/v1/studies/study/progress"
        assert client.post("/login", data={"token": "wrong"}).status_code == 401
        assert service.client("wrong").get("/api/v1/studies").status_code == 401
        assert service.client(f"{key}x").get(path).status_code == 401
        reply = client.post("/login", data={"token": "wrong"})
        assert (reply.status_code, "Too many requests" in reply.text) == (429, True)
        for token in ("wrong", f"{key}x", f"eqk_{'0' * 12}_x", "eqk_x"):
            assert service.client(token).get(path).status_code == 429
        assert service.client().get("/api/v1/studies").status_code == 200
        assert service.client(key).get(path).status_code == 200
        assert client.post("/login", data={"token": ADMIN}).status_code == 303
        assert client.get("/").status_code == 200


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP"])
def test_an_address_that_is_only_said_counts_for_nothing(tmp_path: Path, header: str) -> None:
    """Although the header comes from an address whose headers are believed by default."""
    with served(str(tmp_path / "studies.db"), limits=Limits(guesses=Rate(1e-9, 3))) as service:
        client = service.client("wrong")
        found = [client.get("/api/v1/studies", headers={header: f"198.51.100.{k}"}).status_code for k in range(5)]
        assert found == [401, 401, 401, 429, 429]


def test_networks_of_addresses() -> None:
    """Whoever has an address of IPv6 has 2^64 of them."""
    assert _network("198.51.100.7") == "198.51.100.7"
    assert _network("2001:db8::1") == _network("2001:db8::ffff:1:2:3") == "2001:db8::/64"
    assert _network("2001:db8:0:1::1") != _network("2001:db8::1")
    assert _network("testclient") == "testclient"


def test_a_forged_session_is_none(client: Client) -> None:
    for cookie in ("x", "9999999999.x.y", ""):
        client.cookies.clear()
        client.cookies.set(COOKIE, cookie)
        assert client.get("/").status_code == 303
        assert client.post("/logout", data={"csrf": "x"}).status_code == 403
    client.cookies.clear()


def test_only_the_pages_own_requests_change_anything(inside: Client) -> None:
    token = csrf_of(inside.get("/studies/hostile").text)
    for headers in ({}, {"X-CSRF-Token": "x"}, {"X-CSRF-Token": token[:-1]}):
        assert inside.post("/api/v1/studies/hostile/pause", headers=headers).status_code == 403
    assert api(inside, "GET", "/hostile/progress").json()["status"] == "open"
    for what, status in (("pause", "paused"), ("resume", "open")):
        reply = inside.post(f"/api/v1/studies/hostile/{what}", headers={"X-CSRF-Token": token})
        assert (reply.status_code, reply.json()["status"]) == (200, status)
    assert inside.post("/logout", data={"csrf": "x"}).status_code == 403
    assert inside.get("/").status_code == 200
    reply = inside.post("/logout", data={"csrf": token})
    assert (reply.status_code, reply.headers["location"]) == (303, "/login")
    assert inside.get("/").status_code == 303


def test_a_demonstration_is_open_to_look_at(tmp_path: Path) -> None:
    with served(str(tmp_path / "studies.db"), demo="demo") as service:
        client = browser_of(service)
        assert api(client, "POST", "", {"name": "other", "arms": ["a", "b"]}).status_code == 201
        assert client.get("/").headers["location"] == "/studies/demo"
        page = client.get("/studies/demo").text
        for word in ("Pause", "Extend", "Delete", "Make a key"):
            assert word not in page
        assert "Log in" in page
        # Its tag works on any page, with a key that may ask for one ticket at a time.
        key = re.findall(r'data-key="(eqk_[^"&]+)', page)[0]
        assert 'Works on <span id="allowed">all pages</span>' in page
        headers = {"Authorization": f"Bearer {key}", "Origin": "https://shop.example"}
        asked = service.client(None).post("/api/v1/studies/demo/ask", headers=headers)
        assert asked.headers["access-control-allow-origin"] == "https://shop.example"
        assert asked.json()["question"] == "Would you buy this?"
        assert client.get("/studies/other").status_code == 303
        assert client.get("/new").status_code == 303


def test_an_address_of_no_page(client: Client) -> None:
    """People get a page, and programs a problem."""
    for accept, kind, words in (
        ("text/html,*/*", "text/html; charset=utf-8", "There is no such page."),
        ("*/*", "application/problem+json", "there is nothing at this address"),
    ):
        found = client.get("/nowhere", headers={"Accept": accept})
        assert (found.status_code, found.headers["content-type"]) == (404, kind)
        assert words in found.text


# ---- what pages hold


def test_nothing_is_inline_or_from_elsewhere(inside: Client) -> None:
    for path in ("/", "/new", "/docs", "/login", "/studies/hostile", "/studies/new", "/studies/nowhere"):
        reply = inside.get(path)
        policy = reply.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        for attributes, code in re.findall(r"<script\b([^>]*)>(.*?)</script>", reply.text, re.DOTALL):
            assert 'type="application/json"' in attributes or (code == "" and 'src="/static/' in attributes)
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", reply.text)
        for address in re.findall(r'(?:src|href|action)="([^"]*)"', without_snippets(reply.text)):
            assert re.match(r"/(?!/)|#main|data:,", address), address
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["cache-control"] == "no-store"


def test_names_are_texts(inside: Client) -> None:
    page = inside.get("/studies/hostile").text
    assert page.count("</script>") == 5
    assert "<b>" not in page.replace("<b>hostile</b>", "")
    assert "<h1>&lt;b&gt;A title&lt;/b&gt; " in page
    for arm in ARMS:
        assert arm in held(page, "view")["shape"]["arms"]
    assert held(page, "specs") == inside.get("/studies/hostile/specs.json").json()
    assert inside.get("/studies/%3Cb%3E").status_code == 404
    assert "&lt;b&gt;" in inside.get("/studies/%3Cb%3E").text
    assert "&lt;b&gt;A title&lt;/b&gt;</a>" in inside.get("/").text


def test_the_page_shows_what_the_api_says(inside: Client) -> None:
    page = inside.get("/studies/hostile").text
    view = held(page, "view")
    reply = api(inside, "GET", "/hostile/view").json()
    assert {name: view[name] for name in ("study", "table", "charts", "shape")} == {
        name: reply[name] for name in ("study", "table", "charts", "shape")
    }
    result = api(inside, "GET", "/hostile/result").json()
    assert {arm["arm"]: arm["count"] for arm in view["arms"]} == result["counts"]
    assert view["study"]["samples"] == 60
    key = api(inside, "GET", "/hostile/keys").json()["keys"][0]
    assert f'data-key="{key["key"]}"' in page
    assert 'src="https://polls.example/poll.js"' in page  # until the script knows better


def test_no_page_repeats_the_host_of_a_request(inside: Client) -> None:
    """A request may name any."""
    cookie = f"{COOKIE}={inside.cookies[COOKIE]}"
    for path in ("/", "/new", "/docs", "/login", "/studies/hostile", "/studies/nowhere", "/nowhere", "/openapi.json"):
        reply = inside.get(path, headers={"Host": "evil.example", "X-Forwarded-Host": "evil.example", "Cookie": cookie})
        assert "evil.example" not in reply.text + str(reply.headers)


def test_the_list_has_every_study(inside: Client) -> None:
    page = inside.get("/").text
    assert re.findall(r'class="card" data-study="([^"]+)"', page) == ["new", "hostile"]
    assert re.search(r"<b data-part=\"samples\">60</b> of 90 samples", page)
    assert page.count("Collecting") == 2


def test_secrets_of_keys_are_not_on_the_page(inside: Client) -> None:
    made = api(inside, "POST", "/hostile/keys", {"role": "work", "label": "<u>a program</u>"}).json()
    page = inside.get("/studies/hostile").text
    assert made["id"] in page
    assert made["key"] not in page
    assert "&lt;u&gt;a program&lt;/u&gt;" in page
    assert ADMIN not in page


def test_the_documentation_of_the_api(client: Client) -> None:
    page = client.get("/docs").text
    for path in client.get("/openapi.json").json()["paths"]:
        assert path in page
    assert '<th scope="row">idempotency_key</th>' in page


# ---- behind a proxy


def test_under_a_root_path(tmp_path: Path) -> None:
    with served(str(tmp_path / "studies.db"), root_path="/polls") as service:
        client = browser_of(service)
        assert api(client, "POST", "", {"name": "a", "arms": ["x", "y"], "poll": {}}).status_code == 201
        assert client.get("/").headers["location"] == "/polls/login?next=/"
        without_slash = client.get("/polls")
        assert (without_slash.status_code, without_slash.headers["location"]) == (308, "/polls/")
        assert without_slash.headers["x-content-type-options"] == "nosniff"
        reply = client.post("/login", data={"token": ADMIN, "next": "/studies/a"})
        assert reply.headers["location"] == "/polls/studies/a"
        assert "Path=/polls/;" in reply.headers["set-cookie"]
        client.cookies.set(COOKIE, reply.cookies[COOKIE], path="/")
        # Whether the proxy leaves its part of the path or takes it off.
        for path in ("/studies/a", "/polls/studies/a"):
            page = client.get(path).text
            for address in re.findall(
                r'(?:src|href|action|data-events|data-specs|data-api|data-post)="([^"]*)"', without_snippets(page)
            ):
                assert address.startswith(("/polls/", "#main", "data:,")), address
            assert 'src="https://polls.example/polls/poll.js"' in page


# ---- static files


def test_browsers_keep_files(client: Client) -> None:
    client.cookies.clear()
    page = client.get("/login").text
    addresses = re.findall(r'href="(/static/[^"]+)"', page)
    assert len(addresses) == 2
    for address in addresses:
        reply = client.get(address)
        assert reply.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert reply.headers["content-type"] == "text/css; charset=utf-8"
        again = client.get(address, headers={"If-None-Match": reply.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert client.get(address.partition("?")[0]).headers["cache-control"] == "no-cache"
    for name in ("nothing.js", "pages.py", "..%2Fpages.py"):
        assert client.get(f"/static/{name}").status_code == 404


def test_vega_is_served_compressed(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart, "javascript", lambda: "window.vegaEmbed = 1;" * 1000)
    with client.stream("GET", "/static/vega.js", headers={"Accept-Encoding": "gzip"}) as reply:
        packed = b"".join(reply.iter_raw())
    assert reply.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed) == b"window.vegaEmbed = 1;" * 1000
    plain = client.get("/static/vega.js", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.content == b"window.vegaEmbed = 1;" * 1000
