"""Routes that read: results, views, live events, and the log."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from equipoise.base.inputs import shown
from equipoise.server import export
from equipoise.server.access import Action
from equipoise.server.problems import HTTPProblem
from equipoise.server.routing import describe
from equipoise.server.service import StudyServer

router = APIRouter(prefix="/api/v1/studies/{name}", tags=["read"])

_ANY: Final[dict[str, Any]] = {"application/json": {"schema": {"type": "object"}}}
_BYTES: Final = {"schema": {"type": "string", "format": "binary"}}
_FORMAT: Final = {"format": {"type": "string", "enum": list(export.FORMATS), "default": "csv"}}
_AFTER: Final = {"after": {"type": "integer", "minimum": -1, "maximum": 10**15 - 1, "default": -1}}


@router.get("/result", **describe(media=_ANY))
async def result(request: Request, name: str) -> Response:
    """Return what is known now: means, intervals, counts, by arm."""
    service: StudyServer = request.app.state.service
    _, entry = await service.admit(request, name, Action.RESULT)
    follower = service.follower(entry.page)
    return Response(await service.in_thread(follower.result), media_type="application/json")


@router.get("/view", **describe(media=_ANY))
async def view(request: Request, name: str) -> Response:
    """Return what a page draws."""
    service: StudyServer = request.app.state.service
    _, entry = await service.admit(request, name, Action.VIEW)
    follower = service.follower(entry.page)
    return Response(await service.in_thread(lambda: follower.view(entry.page)), media_type="application/json")


@router.get("/events", **describe(media={"text/event-stream": {"schema": {"type": "string"}}}))
async def events(request: Request, name: str) -> Response:
    """
    Send an event `view` whenever the view has changed, at most once a second; in between, signs of life.

    A last event `end` says why nothing more follows: the study was `deleted`, or the key is `refused`.
    """
    service: StudyServer = request.app.state.service
    caller, entry = await service.admit(request, name, Action.VIEW)
    stream = service.watch(request, caller, entry.page)
    headers = {"X-Accel-Buffering": "no"}
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


@router.get("/turns", **describe(422, media={"application/octet-stream": _BYTES}, query=_AFTER))
async def turns(request: Request, name: str) -> Response:
    """Return turns of the log as they are stored, for a client that folds them: some of those that follow `after`."""
    service: StudyServer = request.app.state.service
    _, entry = await service.admit(request, name, Action.LOG)
    text = request.query_params.get("after", "-1")
    if not re.fullmatch(r"-1|[0-9]{1,15}", text):
        raise HTTPProblem(422, f"after must be the number of a turn, or -1, got {shown(text)}", "invalid")
    follower = service.follower(entry.page)
    packed = await service.in_thread(lambda: follower.turns(int(text)))
    return Response(packed, media_type="application/octet-stream")


@router.get("/log", **describe(422, 501, media=dict.fromkeys(export.TYPES.values(), _BYTES), query=_FORMAT))
async def log(request: Request, name: str) -> Response:
    """Return the log, one event a row: CSV, JSON Lines or Parquet."""
    service: StudyServer = request.app.state.service
    _, entry = await service.admit(request, name, Action.LOG)
    kind = request.query_params.get("format", "csv")
    if kind not in export.FORMATS:
        raise HTTPProblem(422, f"format must be one of {', '.join(export.FORMATS)}, got {shown(kind)}", "invalid")
    study = service.registry.study(entry.page.name)
    try:
        chunks = await service.in_thread(lambda: export.chunks(study, kind))
    except ModuleNotFoundError as error:
        raise HTTPProblem(501, str(error), "extra") from None
    # Others than a service may have given a study any name.
    file = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "log"
    headers = {"Content-Disposition": f'attachment; filename="{file}.{kind}"'}
    return StreamingResponse(_in_threads(chunks), media_type=export.TYPES[kind], headers=headers)


async def _in_threads(chunks: Any) -> AsyncIterator[bytes]:
    """Iterate over chunks that are made in threads."""
    try:
        while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
            yield chunk
    finally:
        await asyncio.to_thread(chunks.close)
