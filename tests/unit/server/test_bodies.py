"""What the refusal of a body costs: objects and bytes are counted, whatever is sent."""

from __future__ import annotations

import asyncio
import json
import threading
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest
from fastapi import FastAPI
from pydantic import AfterValidator, ValidationError
from starlette.requests import Request

from equipoise.server import Settings, bodies, create_app
from equipoise.server.bodies import Body
from equipoise.server.documents import SMALL, Size
from equipoise.server.problems import HTTPProblem
from equipoise.server.routing import read
from tests.serving import ADMIN
from tests.waiting import HANG

MODELS = Body.__subclasses__()
MANY = 5000


def hostile(model: type[Body]) -> Iterator[dict[str, Any]]:
    """Iterate over objects in which very much is wrong: each member in turn, and members that there are not."""
    wrong: list[Any] = [[each] * MANY for each in (None, 1, "", {}, [], [None] * 3, {"a": None})]
    wrong += [{str(j): each for j in range(MANY)} for each in (None, 1, {}, [], [None] * 3, {"a": None})]
    for name in model.model_fields:
        yield from ({name: each} for each in wrong)
        for inner in ("arms", "of", "origins", "shares", "contrasts"):
            yield from ({name: {inner: each}} for each in wrong)
    yield {str(j): 1 for j in range(MANY)}


def mistakes(model: type[Body], given: Any) -> int:
    """Return how many mistakes are listed."""
    try:
        model.model_validate(given)
    except ValidationError as error:
        return error.error_count()
    return 0


@pytest.mark.parametrize("model", MODELS)
def test_few_mistakes_are_listed(model: type[Body]) -> None:
    """However many there are: pydantic makes objects of all it finds before anybody can ask for the first."""
    found = [mistakes(model, given) for given in hostile(model)]
    assert 0 < max(found) <= 50


# ---- all routes, with all that costs more to hold than to send

SIZE = 2 * SMALL.bytes
NESTED = b"[" * 50 + b"]" * 50 + b","
UNITS = [b"1,", b"[],", b"{},", b'"",', b'{"a":0},', NESTED]


def shapes(name: str, size: int) -> Iterator[bytes]:
    """Iterate over bodies of about this many bytes with one member, valid JSON or not."""
    for unit in UNITS:
        units = unit * (size // len(unit))
        yield f'{{"{name}":['.encode() + units[:-1] + b"]}"
    members = b",".join(b'"%d":0' % j for j in range(size // 9))
    yield b"{" + members + b"}"
    yield f'{{"{name}":{{'.encode() + members + b"}}"
    for inner in (b"a", b"\\u0000", b",", b"[", b"\\\\"):
        yield f'{{"{name}":"'.encode() + inner * (size // len(inner)) + b'"}'
        yield b'{"' + inner * (size // len(inner)) + b'":1}'
    yield f'{{"{name}":'.encode() + b"9" * size + b"}"
    yield b"[" * size
    yield b'{"a":' * (size // 5)
    yield b"\xff" * size


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    """A service that is called within this process."""
    return create_app(Settings(str(tmp_path_factory.mktemp("bodies") / "studies.db"), admin_token=ADMIN))


async def post(app: FastAPI, path: str, content: bytes, token: str, method: str = "POST") -> httpx.Response:
    """Send a request."""
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        return await client.request(method, path, content=content, headers={"Authorization": f"Bearer {token}"})


ROUTES = {
    "ask": ("POST", "/study/ask", "ask", "answers"),
    "tell with an ask key": ("POST", "/study/tell", "ask", "answers"),
    "tell": ("POST", "/study/tell", "work", "answers"),
    "forget": ("POST", "/study/forget", "work", "tickets"),
    "create": ("POST", "", "admin", "weights"),
    "create with a poll": ("POST", "", "admin", "poll"),
    "poll": ("PUT", "/study/poll", "admin", "arms"),
    "extend": ("POST", "/study/extend", "admin", "precision"),
    "keys": ("POST", "/study/keys", "admin", "role"),
}


@pytest.mark.parametrize("size", [SIZE, pytest.param(1 << 20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("route", ROUTES)
def test_a_refusal_costs_little(app: FastAPI, route: str, size: int) -> None:
    """Memory is bounded by the bytes of the body, and the answer does not send them back."""
    method, path, role, member = ROUTES[route]

    async def attack() -> None:
        # The tokens are made in the same event loop, to which the service belongs.
        await post(app, "/api/v1/studies", b'{"name": "study", "arms": ["a"]}', ADMIN)
        token = ADMIN
        if role != "admin":
            made = await post(app, "/api/v1/studies/study/keys", json.dumps({"role": role}).encode(), ADMIN)
            token = made.json()["key"]
        for body in shapes(member, size):
            tracemalloc.start()
            try:
                response = await post(app, f"/api/v1/studies{path}", body, token, method)
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            what = (body[:40], response.status_code, response.text[:200])
            assert response.status_code in ((413,) if role == "ask" else (413, 422)), what
            assert len(response.content) < 10_000, what
            # A list in a list takes two bytes to send and a hundred to hold; a mistake that is listed takes a thousand.
            assert peak < 64 * len(body) + (1 << 19), (peak / len(body), what)

    asyncio.run(attack())


# ---- off the event loop


def request(body: bytes, **headers: str) -> Request:
    """Return a request with this body, which comes in two parts."""
    parts = [body[: len(body) // 2], body[len(body) // 2 :]]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "POST", "headers": named}, receive)


def checking(check: Callable[[], object]) -> type[Body]:
    """Return a model of bodies that calls a function while it is validated."""

    def checked(text: str) -> str:
        check()
        return text

    class Checked(Body):
        text: Annotated[str, AfterValidator(checked)] = ""

    return Checked


LARGE = Size(1 << 20, 1000)


def test_large_bodies_are_read_in_another_thread() -> None:
    threads: list[threading.Thread] = []
    model = checking(lambda: threads.append(threading.current_thread()))
    for size in (10, SMALL.bytes * 2):
        asyncio.run(read(request(b'{"text": "' + b"x" * size + b'"}'), model, LARGE))
    assert threads[0] is threading.current_thread()
    assert threads[1] is not threading.current_thread()


def test_others_are_answered_while_a_large_body_is_read() -> None:
    small_was_read = threading.Event()
    waiting, instant = checking(lambda: small_was_read.wait(HANG)), checking(lambda: None)

    async def both() -> None:
        large = asyncio.create_task(read(request(b'{"text": "' + b"x" * SMALL.bytes + b'"}'), waiting, LARGE))
        await asyncio.sleep(0)
        await read(request(b'{"text": "y"}'), instant, LARGE)
        assert not large.done()
        small_was_read.set()
        await large

    asyncio.run(both())


# ---- what is refused before it is read


def refused(body: bytes, size: Size = SMALL, optional: bool = False, **headers: str) -> tuple[int, str]:
    """Return how a body is refused."""
    with pytest.raises(HTTPProblem) as caught:
        asyncio.run(read(request(body, **headers), bodies.AskBody, size, optional))
    return caught.value.status, caught.value.detail


def test_a_body_is_received_up_to_its_limit() -> None:
    received = 0

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1000

    parts = endless()

    async def receive() -> dict[str, Any]:
        nonlocal received
        part = await anext(parts)
        received += len(part)
        return {"type": "http.request", "body": part, "more_body": True}

    with pytest.raises(HTTPProblem, match="the body must have at most 16,384 bytes"):
        asyncio.run(read(Request({"type": "http", "method": "POST", "headers": []}, receive), bodies.AskBody, SMALL))
    assert received <= SMALL.bytes + 1000


def test_refusals_in_words() -> None:
    assert refused(b"[" + b"1," * 200 + b"1]") == (413, "the body must have at most 100 JSON values")
    assert refused(b"{}", content_encoding="gzip") == (
        415,
        "the body must be sent without a Content-Encoding, got 'gzip'",
    )
    assert refused(b'{"count": 1, "count": 2}') == (
        422,
        "the body is not valid JSON: the name 'count' is given twice in an object",
    )
    assert refused(b'{"count": 1' + b"0" * 400 + b"}")[1].endswith("count must be an integer, got Infinity")
    assert refused(b"") == (422, "the body is not valid JSON: expecting value at line 1, column 1")
    assert asyncio.run(read(request(b""), bodies.AskBody, SMALL, optional=True)).count == 1
    assert asyncio.run(read(request(b"{}", content_encoding="identity"), bodies.AskBody, SMALL)).count == 1


@pytest.mark.parametrize(
    ("member", "number"), [("objective", "1" + "0" * 400), ("budget", "1e999"), ("weights", "[1" + "0" * 5000 + "]")]
)
def test_numbers_that_no_float_holds(app: FastAPI, member: str, number: str) -> None:
    body = f'{{"name": "numbers", "arms": ["a"], "{member}": {number}}}'.encode()
    response = asyncio.run(post(app, "/api/v1/studies", body, ADMIN))
    assert response.status_code == 422
    assert "must be a finite number, got Infinity" in response.json()["detail"] or member == "weights"
    assert len(response.content) < 2000


def test_names_in_addresses_are_not_sent_back_whole(app: FastAPI) -> None:
    for path in (f"/{'x' * 10_000}", f"/{'x' * 10_000}/turns", "/study/keys/" + "x" * 10_000 + "/rotate"):
        for method in ("GET", "POST"):
            response = asyncio.run(post(app, f"/api/v1/studies{path}", b"{}", ADMIN, method))
            assert response.status_code in (404, 405)
            assert len(response.content) < 1000


def test_a_form_of_many_fields(tmp_path: Path) -> None:
    own = create_app(Settings(str(tmp_path / "studies.db"), admin_token=ADMIN))
    for form, status in ((b"a=1&" * 100, 422), (b"token=" + b"%41" * 100_000, 413), (b"token=wrong", 401)):
        assert asyncio.run(post(own, "/login", form, "x")).status_code == status
