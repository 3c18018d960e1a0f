"""Heads of requests are kept up to a limit, whoever sends them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from urllib.parse import urlsplit

import pytest

from equipoise.server.protocol import HEAD
from tests.serving import Served
from tests.waiting import HANG

# Several times what the service keeps, and what comes in one packet.
FLOOD = 64 * HEAD

BEGIN = b"POST /login HTTP/1.1\r\nHost: x\r\n"
CHUNKED = BEGIN + b"Transfer-Encoding: chunked\r\n\r\n"


def sent(service: Served, first: bytes, unit: bytes, last: bytes = b"") -> tuple[int, bytes]:
    """Send a request until the service has closed the connection; return how many bytes it took, and its answer."""
    address = urlsplit(service.url)
    with closing(socket.create_connection((address.hostname, address.port), HANG)) as connection:
        many, answer = 0, b""
        with suppress(ConnectionError):
            connection.sendall(first)
            while many < FLOOD:
                connection.sendall(unit)
                many += len(unit)
            connection.sendall(last)
        with suppress(ConnectionError):
            while part := connection.recv(1 << 16):
                answer += part
        return many, answer


def headers() -> Iterator[bytes]:
    """Iterate over thousands of short headers."""
    yield from (b"X-%d: y\r\n" % j for j in range(1000))


@pytest.mark.parametrize(
    ("first", "unit"),
    [
        (BEGIN + b"X: ", b"x" * 8192),
        (BEGIN, b"".join(headers())),
        (b"POST /login?", b"x" * 8192),
        (b"POST /", b"x" * 8192),
        (CHUNKED + b"1\r\nx\r\n0\r\nX: ", b"x" * 8192),
        (CHUNKED + b"1\r\nx\r\n0\r\n", b"".join(headers())),
        (CHUNKED + b"1;x=", b"x" * 8192),
    ],
    ids=["long header", "many headers", "long query", "long path", "long trailer", "many trailers", "extension"],
)
def test_endless_heads(service: Served, first: bytes, unit: bytes) -> None:
    many, answer = sent(service, first, unit)
    assert many < FLOOD or not answer.startswith(b"HTTP/1.1 2")
    assert not answer or answer.split()[1] in (b"431", b"400")
    assert service.client().get("/healthz").text == "ok\n"


def test_heads_and_bodies_that_pass(service: Served, name: str) -> None:
    service.create(name)
    client = service.client(**{"X-Long": "x" * (HEAD // 2)})
    body = b'{"count": 1' + b" " * 10_000 + b"}"
    tiny = (body[j : j + 10] for j in range(0, len(body), 10))  # a header of a chunk for every ten bytes
    for content in (body, tiny):
        for _ in range(2):
            assert client.post(f"/api/v1/studies/{name}/ask", content=content).status_code == 200
            content = body
    large = b'{"title": "' + b"x" * (1 << 20) + b'"}'
    assert client.put(f"/api/v1/studies/{name}/poll", content=large).status_code == 422
