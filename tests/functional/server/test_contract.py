"""
Whatever is sent, the service answers as its OpenAPI document says, and never with a 5xx.

Schemathesis makes requests from the document, valid ones and others. `make test` sends some for each route, and
`make test-slow` many.
"""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.serving import ADMIN, Served

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
# They never end.
STREAMS = r"/events$"


def attack(service: Served, examples: int) -> int:
    """Send requests to every route, to a study that exists and to others; return how many routes there are."""
    service.create("poll", poll={"question": "?"}, budget=10_000)
    document = schemathesis.openapi.from_url(f"{service.url}/openapi.json").exclude(path_regex=STREAMS)
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {ADMIN}"
    operations: list[Any] = [found.ok() for found in document.get_all_operations()]  # type: ignore[union-attr]
    for operation in operations:
        for mode in GenerationMode:

            @settings(max_examples=examples)
            @given(case=operation.as_strategy(generation_mode=mode), known=st.booleans())
            def send(case: Any, known: bool) -> None:
                if known and "name" in case.path_parameters and case.method != "DELETE":
                    case.path_parameters["name"] = "poll"
                case.call_and_validate(session=session, checks=CHECKS)

            try:
                with contextlib.suppress(Unsatisfiable):  # without parameters there is nothing to get wrong
                    send()
            except Exception as error:
                error.add_note(f"{mode} {operation.label}")
                raise
    return len(operations)


def test_what_a_page_gets(service: Served) -> None:
    """A key of a page gets what the document says too: a question with its arm, an outcome, and nothing."""
    poll = {"question": "?", "arms": {"a": {"title": "A", "picture": "https://example.org/a.png"}}}
    made = service.create("page", poll=poll, budget=4)
    document = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {made['keys'][0]['key']}"

    def post(what: str, body: Any) -> Any:
        operation: Any = document[f"/api/v1/studies/{{name}}/{what}"]["POST"]
        case = operation.Case(path_parameters={"name": "page"}, body=body, media_type="application/json")
        return case.call_and_validate(session=session, checks=CHECKS)

    for number in range(4):
        asked = post("ask", {"respondent": f"visitor {number}"}).json()
        assert asked["show"]["title"] in ("A", "b")
        assert post("tell", {"answers": [{"ticket": asked["tickets"][0]["ticket"], "value": 1}]}).status_code == 200
    assert post("ask", {}).status_code == 204
    assert post("ask", {"count": 2}).status_code == 403
    assert post("ask", {"answers": ["custom"]}).status_code == 409


def test_every_route(service: Served) -> None:
    assert attack(service, 4) > 20


@pytest.mark.slow
def test_every_route_often(service: Served) -> None:
    assert attack(service, 500) > 20
