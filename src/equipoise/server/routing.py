"""How routes read bodies and describe themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema
from pydantic_core import to_json
from starlette.requests import ClientDisconnect

from equipoise.base.inputs import shown
from equipoise.server import bodies, problems
from equipoise.server.bodies import Body
from equipoise.server.documents import SMALL, Size, TooMany, parsed
from equipoise.server.problems import HTTPProblem, too_large

B = TypeVar("B", bound=Body)

# Reads all bodies but small ones, one after the other: they hold up each other, and not the event loop.
_READER: Final = ThreadPoolExecutor(1, "equipoise-reader")

_PROBLEMS: Final = {
    400: "Malformed HTTP",
    401: "No valid token or key",
    403: "Not allowed with this key",
    404: "No such study",
    409: "Not possible in the current state of the study",
    413: "The body is too large",
    415: "The body is compressed",
    422: "The request is not valid",
    429: "Too many requests or open tickets",
    501: "Needs a package that is not installed",
    503: "Busy, or the database is away; try again",
}
# Those that every route may answer.
_EVERYWHERE: Final = (400, 401, 403, 404, 413, 415, 429, 503)
_REF: Final = "#/components/schemas/{model}"


async def read(request: Request, model: type[B], size: Size, optional: bool = False) -> B:
    """
    Return the body of a request, or refuse it.

    Parameters
    ----------
    request
        The request, whose sender is let in.
    model
        What the body is to be.
    size
        How large it may be.
    optional
        Whether a request may have no body, which then is the default one.
    """
    body = await received(request, size.bytes)
    if optional and not body:
        return model()
    if len(body) <= SMALL.bytes:
        return _checked(body, model, size.values)
    return await asyncio.get_running_loop().run_in_executor(_READER, _checked, body, model, size.values)


async def received(request: Request, most: int) -> bytes:
    """Return the bytes of a body, or refuse it as soon as it has more than allowed."""
    coding = request.headers.get("content-encoding", "identity")
    if coding != "identity":
        raise HTTPProblem(415, f"the body must be sent without a Content-Encoding, got {shown(coding)}")
    parts, many = [], 0
    try:
        async for part in request.stream():
            many += len(part)
            if many > most:
                raise too_large(most)
            parts.append(part)
    except ClientDisconnect:
        raise HTTPProblem(400, "the request has ended too soon") from None
    return b"".join(parts)


def _checked(body: bytes, model: type[B], values: int) -> B:
    """Return a body as what it is to be."""
    try:
        document = parsed(body, values)
    except TooMany:
        raise HTTPProblem(413, f"the body must have at most {values:,} JSON values") from None
    except ValueError as error:
        raise problems.not_json(str(error)) from None
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise problems.invalid(error, document) from None


def reply(content: Any, status: int = 200) -> Response:
    """Return plain data as JSON."""
    return Response(to_json(content, inf_nan_mode="null"), status, media_type="application/json")


def describe(
    *also: int,
    returns: Mapping[int, type[BaseModel] | None] | None = None,
    media: Mapping[str, Any] | None = None,
    body: type[Body] | None = None,
    required: bool = True,
    query: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """
    Return the arguments with which a route says what it takes and returns.

    Parameters
    ----------
    also
        Statuses of problems besides those of every route.
    returns, media
        What it returns by status, None for nothing; or, where that is not JSON, with status 200 by type.
    body, required
        What it takes, and whether it must be there.
    query
        The schemas of parameters in the query, by name.
    """
    problem = {"application/problem+json": {"schema": {"$ref": _REF.format(model="ProblemDetails")}}}
    responses: dict[str, Any] = {
        str(status): {"description": words, "content": problem}
        for status, words in _PROBLEMS.items()
        if status in _EVERYWHERE or status in also
    }
    for status, model in (returns or {}).items():
        responses[str(status)] = {"description": "Nothing"}
        if model is not None:
            content = {"application/json": {"schema": {"$ref": _REF.format(model=model.__name__)}}}
            responses[str(status)] = {"description": (model.__doc__ or "").split("\n\n")[0].strip(), "content": content}
    if media is not None:
        responses["200"] = {"description": "OK", "content": dict(media)}
    extra: dict[str, Any] = {"security": [{"bearer": []}], "responses": responses}
    if body is not None:
        schema = {"$ref": _REF.format(model=body.__name__)}
        extra["requestBody"] = {"required": required, "content": {"application/json": {"schema": schema}}}
    if query is not None:
        extra["parameters"] = [{"name": name, "in": "query", "schema": schema} for name, schema in query.items()]
    return {"openapi_extra": extra, "response_class": Response, "response_model": None}


def install(app: FastAPI) -> None:
    """Let the OpenAPI document of an app know the models of its bodies."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
            models = [
                each
                for each in vars(bodies).values()
                if isinstance(each, type) and issubclass(each, BaseModel) and each not in (BaseModel, Body)
            ]
            _, made = models_json_schema([(model, "validation") for model in models], ref_template=_REF)
            parts = found.setdefault("components", {})
            parts["schemas"] = made["$defs"]
            parts["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
            for operations in found["paths"].values():
                for operation in operations.values():
                    _forget_defaults(operation["responses"])
            app.openapi_schema = found
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _forget_defaults(responses: dict[str, Any]) -> None:
    """Remove the refusals that FastAPI would send by itself, in place of which we send problems."""
    refused = responses.get("422", {})
    refused.get("content", {}).pop("application/json", None)
    if not refused.get("content"):
        responses.pop("422", None)
