"""Routes that are served past the framework: the same responses, and everything else is left to the app."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from fastapi import APIRouter, FastAPI
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from equipoise.server.fast_path import Direct
from equipoise.server.problems import HTTPProblem
from tests.serving import Served

router = APIRouter(prefix="/studies/{name}")


@router.post("/ask")
async def ask(request: Request, name: str) -> Response:
    if name == "none":
        raise HTTPProblem(409, "it is archived")
    return PlainTextResponse(f"{name} {(await request.body()).decode()} {request.scope['route'].path}")


def sent(method: str, path: str, root: str = "") -> httpx.Response:
    """Return what an app that knows no route answers, with those that are served directly before it."""

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(Direct(FastAPI(), router), root_path=root)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.request(method, path, content=b"body")

    return asyncio.run(send())


@pytest.mark.parametrize(("path", "root"), [("/studies/one/ask", ""), ("/polls/studies/one/ask", "/polls")])
def test_a_route_is_called(path: str, root: str) -> None:
    response = sent("POST", path, root)
    assert (response.status_code, response.text) == (200, "one body /studies/{name}/ask")


def test_a_problem_is_answered() -> None:
    response = sent("POST", "/studies/none/ask")
    assert (response.status_code, response.json()["detail"]) == (409, "it is archived")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/studies/one/ask"),
        ("POST", "/studies/one/tell"),
        ("POST", "/ask"),
        ("POST", "/studies/one/two/ask"),
        ("POST", "/elsewhere/studies/one/ask"),
        ("POST", "/studies/one/ask/"),
    ],
)
def test_others_are_left_to_the_app(method: str, path: str) -> None:
    assert sent(method, path).status_code == 404


def test_requests_are_counted_by_their_routes(service: Served, name: str) -> None:
    service.create(name)
    client = service.client()
    client.post(f"/api/v1/studies/{name}/ask")
    route = 'method="POST",route="/api/v1/studies/{name}/ask",status="200"'
    assert route in client.get("/metrics").text
