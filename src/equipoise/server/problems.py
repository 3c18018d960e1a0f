"""Errors as problem details (RFC 9457)."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from pydantic import ValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException

from equipoise.base.inputs import printable, without_password

MEDIA_TYPE: Final = "application/problem+json"
# The most errors of one body that are listed; of others it is said how many were found.
_MOST: Final = 20
# The most characters of the name of a member that are quoted: an unknown one may have millions.
_QUOTED: Final = 200

# What pydantic says, and how we say it.
_REWORDED: Final = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        ("^Value error, ", ""),
        ("^Field required$", "is required"),
        ("^Extra inputs are not permitted$", "is not known here"),
        ("^[A-Z][a-z]+ should ", "must "),
        (" after validation, not [0-9]+$", ""),
        ("a valid string, unable to parse raw data as a unicode string", "a text in Unicode"),
        ("a valid dictionary( or instance of .*)?", "an object"),
        ("a valid (list|tuple)", "an array"),
        ("a valid (?=[aeiou])", "an "),
        ("a valid ", "a "),
        ("^must be True$", "must be true"),
        ("greater than or equal to", "at least"),
        ("less than or equal to", "at most"),
    )
)
# What the library says in Python's words, and how JSON says it; what is in quotes may be a name.
_PYTHON: Final = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"(?<!')\bNone\b(?!')", "null"),
        (r"costs=\.\.\.", "costs"),
        (r"\((low, high)\)|(?<=got )\(([^()]*)\)$", r"[\1\2]"),
    )
)

_log = logging.getLogger("equipoise.server")


class HTTPProblem(Exception):
    """
    A request that is refused.

    Parameters
    ----------
    status
        The status of the response.
    detail
        What is wrong, in one sentence.
    kind
        A short name of the kind of problem, for programs; by default the status says enough.
    headers
        Further headers of the response.
    more
        Further members of the body.
    """

    def __init__(
        self, status: int, detail: str, kind: str = "", headers: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.kind = status, detail, kind
        self.headers, self.more = dict(headers or {}), more

    def body(self) -> bytes:
        """Return the problem as JSON."""
        return to_json(
            {
                "type": f"urn:equipoise:problem:{self.kind}" if self.kind else "about:blank",
                "title": HTTPStatus(self.status).phrase,
                "status": self.status,
                "detail": without_password(self.detail),
                **self.more,
            }
        )

    def response(self) -> Response:
        """Return the problem as a response."""
        return Response(self.body(), self.status, self.headers, MEDIA_TYPE)


def deleted() -> HTTPProblem:
    """Return the problem of a study that was there a moment ago."""
    return HTTPProblem(404, "the study was deleted")


def unavailable(detail: str) -> HTTPProblem:
    """Return the problem of a service that cannot answer now, and can be asked again in a second."""
    return HTTPProblem(503, detail, "unavailable", {"Retry-After": "1"})


def too_large(most: int) -> HTTPProblem:
    """Return the problem of a body of more bytes than allowed."""
    return HTTPProblem(413, f"the body must have at most {most:,} bytes")


def not_json(why: str) -> HTTPProblem:
    """Return the problem of a body that is not JSON."""
    detail = f"the body is not valid JSON: {why}"
    return HTTPProblem(422, detail, "invalid", errors=[{"pointer": "#", "detail": detail}])


def invalid(error: ValidationError, document: Any) -> HTTPProblem:
    """Return what is wrong with a body, which is not quoted but for numbers: a text may be a secret."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    errors = []
    for each in found[:_MOST]:
        pointer, value = _place(each["loc"], document, each["type"] == "missing")
        said = _words(each["msg"])
        if said.startswith("must ") and isinstance(value, int | float | None):
            said = f"{said}, got {to_json(value).decode()}"
        errors.append({"pointer": pointer, "detail": said})
    where, said = errors[0]["pointer"].removeprefix("#").removeprefix("/"), errors[0]["detail"]
    if said.startswith(("must ", "is ")):
        said = f"{where or 'the body'} {said}"
    elif where:
        said = f"{where}: {said}"
    more: dict[str, Any] = {"more": len(found) - _MOST} if len(found) > _MOST else {}
    return HTTPProblem(422, f"the request is not valid: {said}" if where else said, "invalid", errors=errors, **more)


def _words(message: str) -> str:
    """Return what pydantic says in our own words."""
    for pattern, words in _REWORDED:
        message = pattern.sub(words, message)
    return message


def in_json(message: str) -> str:
    """Return a message of the library in the words of JSON, in which there are no tuples and no None."""
    for pattern, words in _PYTHON:
        message = pattern.sub(words, message)
    return message


def _place(places: tuple[int | str, ...], document: Any, missing: bool) -> tuple[str, Any]:
    """Return where in a document something is wrong, as RFC 6901 has it, and what is there."""
    parts = []
    for place in places:  # names of types are not in the document
        if isinstance(document, dict | list) and _has(document, place):
            document = document[place]  # type: ignore[index]
            parts.append(_quoted(str(place)))
    if missing:
        parts.append(str(places[-1]))
    return "#" + "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in parts), document


def _quoted(name: str) -> str:
    return printable(name if len(name) <= _QUOTED else f"{name[:_QUOTED]}...")


def _has(document: dict[str, Any] | list[Any], place: int | str) -> bool:
    if isinstance(document, list):
        return isinstance(place, int) and place < len(document)
    return place in document


def no_route(request: Request, status: int, headers: Mapping[str, str] | None = None) -> HTTPProblem:
    """Return the problem of a request for which there is no route."""
    words = {
        HTTPStatus.NOT_FOUND: "there is nothing at this address",
        HTTPStatus.METHOD_NOT_ALLOWED: f"{request.method} is not possible at this address",
    }
    return HTTPProblem(status, words.get(HTTPStatus(status), HTTPStatus(status).phrase), headers=headers)


def install(app: FastAPI) -> None:
    """Let an app answer every error with problem details."""

    @app.exception_handler(HTTPProblem)
    async def refused(request: Request, error: HTTPProblem) -> Response:
        return error.response()

    @app.exception_handler(HTTPException)
    async def unrouted(request: Request, error: HTTPException) -> Response:
        return no_route(request, error.status_code, error.headers).response()

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        _log.error("%s failed: %s", request.scope["route"].path if "route" in request.scope else "a request", error)
        return HTTPProblem(500, "the service failed; its log says more").response()
