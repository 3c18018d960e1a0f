"""How routes read bodies and describe themselves."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema
from pydantic_core import to_json
from starlette.requests import ClientDisconnect

from equipoise.server import bodies, problems
from equipoise.server.bodies import Body
from equipoise.server.problems import Problem

B = TypeVar("B", bound=Body)

# What every route that needs a token may answer.
REFUSALS: Final = {400: "Not HTTP as it should be", 401: "No valid token or key", 403: "Not allowed with this key"}
_MORE: Final = {
    404: "No such study",
    409: "Not possible as the study stands",
    413: "The body is too large",
    422: "The request is not valid",
    429: "Too many requests or open tickets",
    503: "Busy, or the database is away; try again",
}
_REF: Final = "#/components/schemas/{model}"


async def read(request: Request, model: type[B]) -> B:
    """Return the body of a request, or refuse it."""
    try:
        return model.model_validate_json(await request.body())
    except ClientDisconnect:
        raise Problem(400, "the request has ended too soon") from None
    except ValidationError as error:
        raise problems.invalid(error) from None
    except RecursionError:
        raise Problem(422, "the request is not valid: it is nested too deeply", "invalid") from None


async def read_or_default(request: Request, model: type[B]) -> B:
    """Return the body of a request, or the default where it has none."""
    try:
        empty = not await request.body()
    except ClientDisconnect:
        raise Problem(400, "the request has ended too soon") from None
    return model() if empty else await read(request, model)


def reply(content: Any, status: int = 200) -> Response:
    """Return plain data as JSON."""
    return Response(to_json(content, inf_nan_mode="null"), status, media_type="application/json")


def describe(
    *also: int, body: type[Body] | None = None, required: bool = True, media: dict[str, Any] | None = None, **found: Any
) -> dict[str, Any]:
    """
    Return the arguments with which a route says what it takes and returns.

    Parameters
    ----------
    also
        Statuses that it may answer besides those of every route.
    body, required
        What it takes.
    media
        What it returns by type, where that is not JSON.
    found
        The models that it returns, by status, as in ok_200=Tickets.
    """
    problem = {"application/problem+json": {"schema": {"$ref": _REF.format(model="ProblemDetails")}}}
    responses: dict[int | str, dict[str, Any]] = {
        status: {"description": words, "content": problem}
        for status, words in (REFUSALS | _MORE).items()
        if status in REFUSALS or status in (404, 413, 429, 503) or status in also
    }
    for name, model in found.items():
        status = int(name.rpartition("_")[2])
        content = {"application/json": {"schema": {"$ref": _REF.format(model=model.__name__)}}} if model else None
        responses[status] = {"description": (model.__doc__ or "").strip().splitlines()[0] if model else "Nothing"}
        if content:
            responses[status]["content"] = content
    if media is not None:
        responses[200] = {"description": "OK", "content": media}
    extra: dict[str, Any] = {"security": [{"bearer": []}], "responses": {str(k): v for k, v in responses.items()}}
    if body is not None:
        schema = {"$ref": _REF.format(model=body.__name__)}
        extra["requestBody"] = {"required": required, "content": {"application/json": {"schema": schema}}}
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
            for route in app.routes:
                extra = getattr(route, "openapi_extra", None) or {}
                for method in getattr(route, "methods", ()) if "responses" in extra else ():
                    found["paths"][route.path_format][method.lower()]["responses"] = extra["responses"]  # type: ignore[attr-defined]
            app.openapi_schema = found
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
