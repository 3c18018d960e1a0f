"""The service as an ASGI application."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Final

from fastapi import FastAPI, Request, Response

from equipoise.server import metrics, pages, problems, reading, routing, sampling, studies, visitors
from equipoise.server.assets import Assets
from equipoise.server.fast_path import Direct
from equipoise.server.middleware import Edge
from equipoise.server.problems import HTTPProblem
from equipoise.server.service import StudyServer
from equipoise.server.settings import Settings

# Threads that wait for the database, or compute results.
_THREADS: Final = 32

_ABOUT: Final = """
Studies that spend a sampling budget so that every mean is estimated equally well: ask which arm to sample, tell what
was seen. Requests carry a bearer token: the administrator's, or a key of one study. Errors are problem details
(RFC 9457).
"""


def create_app(settings: Settings) -> FastAPI:
    """
    Return the service as an ASGI application.

    Parameters
    ----------
    settings
        What it is made of.
    """
    service = StudyServer(settings)
    if settings.demo is not None:
        visitors.prepare(service.registry, settings.demo)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # Those of asyncio are few, and who reads a long result must not hold up who looks for a key.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, "equipoise-server"))
        task = None
        if settings.demo is not None:
            task = asyncio.create_task(visitors.visit(service, settings.demo, random.Random()))
        yield
        if task is not None:
            task.cancel()
        await service.close()

    app = FastAPI(
        title="equipoise",
        version=metadata.version("equipoise"),
        description=_ABOUT.strip(),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    problems.install(app)
    for router in (sampling.router, studies.router, reading.router):  # those first that are called most often
        app.include_router(router)
    _mount_health(app, service)
    _mount_poll(app)
    pages.mount(app)
    routing.install(app)
    app.add_middleware(Direct, router=sampling.router)
    app.add_middleware(Edge, service=service)  # the last one added is the outermost
    return app


def _mount_poll(app: FastAPI) -> None:
    """Serve the script of polls, to pages of all origins."""
    assets = Assets({"poll.js": Path(__file__).with_name("poll.js")})
    headers = {
        "Cache-Control": "public, max-age=86400",
        "Access-Control-Allow-Origin": "*",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }

    @app.get("/poll.js", include_in_schema=False)
    async def poll(request: Request) -> Response:
        response = assets.response(request, "poll.js")
        response.headers.update(headers)
        return response


def _mount_health(app: FastAPI, service: StudyServer) -> None:
    plain = {"responses": {503: {"description": "Not ready"}}, "response_class": Response, "tags": ["operation"]}

    @app.get("/healthz", response_class=Response, tags=["operation"])
    async def healthz() -> Response:
        """Say that the process is alive."""
        return Response("ok\n", media_type="text/plain")

    @app.get("/readyz", **plain)  # type: ignore[arg-type]
    async def readyz() -> Response:
        """Say whether requests can be served: the database answers, and the process is not ending."""
        if service.stopping:
            raise HTTPProblem(503, "the service is stopping", headers={"Retry-After": "1"})
        await service.in_thread(service.registry.ping)
        return Response("ok\n", media_type="text/plain")

    @app.get("/metrics", response_class=Response, tags=["operation"])
    async def numbers(request: Request) -> Response:
        """Return what this process has counted, for Prometheus."""
        return Response(service.metrics.text(service.gauges()), media_type=metrics.MEDIA_TYPE)
