"""
Requests that nobody should send: whatever they are, nothing changes in the database.

`make test` sends some hundreds, and `make test-slow` a hundred thousand, and prints how they were answered.
"""

from __future__ import annotations

import http.client
import json
from collections import Counter
from contextlib import closing
from random import Random
from typing import Any

import pytest

from tests.functional.server.hostile import KINDS, Request, Scene
from tests.serving import Served
from tests.waiting import HANG


@pytest.fixture(scope="module")
def scene(service: Served) -> Scene:
    """What is attacked."""
    return Scene.of(service)


def send(connection: http.client.HTTPConnection, request: Request) -> tuple[int, bytes]:
    """Send a request; return the status and the body of the response."""
    headers = {"Content-Type": "application/json"}
    if request.token is not None:
        headers["Authorization"] = f"Bearer {request.token}"
    connection.request(request.method, request.path, request.body, headers)
    with connection.getresponse() as response:
        return response.status, response.read()


def attack(scene: Scene, kind: Any, requests: int) -> Counter[int]:
    """Send requests of one kind; return how many were answered with each status."""
    before, rng, answered = scene.dump(), Random(kind.__name__), Counter[int]()
    with closing(http.client.HTTPConnection(scene.address, timeout=HANG)) as connection:
        for _ in range(requests):
            request = kind(scene, rng)
            status, body = send(connection, request)
            assert status in (request.statuses or range(500)), (status, request)
            if status == 200 and request.path.endswith("/tell"):
                assert json.loads(body)["outcomes"] == ["refused"], request
            answered[status] += 1
    assert scene.dump() == before
    return answered


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_changes(scene: Scene, kind: Any) -> None:
    attack(scene, kind, 40)


@pytest.mark.slow
def test_nothing_changes_by_a_hundred_thousand(scene: Scene) -> None:
    found = {kind.__name__: attack(scene, kind, 10_000) for kind in KINDS}
    total: Counter[int] = sum(found.values(), Counter())
    print()
    for name, answered in [*found.items(), ("all", total)]:
        print(f"{name:20}", dict(sorted(answered.items())))
    assert total.total() == 100_000


def test_the_dump_notices_a_change(scene: Scene) -> None:
    before = scene.dump()
    answer = {"answers": [{"ticket": scene.tickets["other open"], "value": 1}]}
    request = Request("POST", "/api/v1/studies/other/tell", scene.tokens["other ask"], json.dumps(answer).encode())
    with closing(http.client.HTTPConnection(scene.address, timeout=HANG)) as connection:
        assert send(connection, request)[0] == 200
    assert scene.dump() != before
