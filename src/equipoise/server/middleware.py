"""What every request passes: limits of size, headers of safety, other origins, and a count."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from equipoise.server.problems import MEDIA_TYPE, HTTPProblem, too_large

if TYPE_CHECKING:
    from equipoise.server.service import StudyServer

# On our own pages: nothing from elsewhere, nothing inline, in no frame.
PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_DATA_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
# What pages of other origins may call, with which headers, and for how many seconds a browser may remember that.
_PUBLIC: Final = re.compile(r"/api/v1/studies/[^/]+/(?:ask|tell)")
_REMEMBERED: Final = "7200"


class _TooLarge(Exception):
    """The body of a request is larger than allowed."""


class Edge:
    """
    The outermost part of a service.

    Parameters
    ----------
    app
        The rest of it.
    service
        What this process holds.
    """

    def __init__(self, app: ASGIApp, service: StudyServer) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = _rooted(scope, self._service.settings.root_path)
        root = scope.get("root_path", "")
        rest: ASGIApp = RedirectResponse(f"{root}/", 308) if root and scope["path"] == root else self._app
        # A page can be looked for without being read; the server sends no body in answer to HEAD.
        if scope["method"] == "HEAD" and not scope["path"].removeprefix(root).startswith("/api/"):
            scope = {**scope, "method": "GET"}
        started, status, begun = time.perf_counter(), 500, False
        headers = Headers(scope=scope)
        shared = _shared(scope, headers)

        async def answer(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
                _finish(MutableHeaders(scope=message), shared)
            await send(message)

        try:
            if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                await answer({"type": "http.response.start", "status": 204, "headers": []})
                await answer({"type": "http.response.body"})
            else:
                await rest(scope, self._limited(headers, receive), answer)
        except _TooLarge:
            if begun:
                raise
            await _refuse(too_large(self._service.settings.limits.body), answer)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._service.metrics.answered(scope["method"], route, status, time.perf_counter() - started)

    def _limited(self, headers: Headers, receive: Receive) -> Receive:
        """Return how to receive a request without reading more than allowed."""
        most, length = self._service.settings.limits.body, headers.get("content-length", "")
        if re.fullmatch("[0-9]+", length) and (len(length) > len(str(most)) or int(length) > most):

            async def refuse() -> Message:
                raise _TooLarge

            return refuse
        read = 0

        async def count() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > most:
                raise _TooLarge
            return message

        return count


def _shared(scope: Scope, headers: Headers) -> dict[str, str]:
    """
    Return the headers that let a page of another origin read the response; none where no such page may.

    They are the same for all studies and all pages, so that nobody learns from them which studies there are. Whether a
    page may use a study is found out when its key is known (`Service.admit`).
    """
    origin = headers.get("origin")
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    if origin is None or _PUBLIC.fullmatch(path) is None:
        return {}
    return {
        "Vary": "Origin",
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": "POST",
        "Access-Control-Allow-Headers": "Authorization, Content-Type",
        "Access-Control-Expose-Headers": "Retry-After",
        "Access-Control-Max-Age": _REMEMBERED,
        "Cross-Origin-Resource-Policy": "cross-origin",
    }


def _rooted(scope: Scope, root: str) -> Scope:
    """Return a request below the path under which a proxy shows the service, whether or not it has cut that off."""
    if not root:
        return scope
    path = scope["path"] if f"{scope['path']}/".startswith(f"{root}/") else root + scope["path"]
    return {**scope, "root_path": root, "path": path}


def _finish(headers: MutableHeaders, shared: dict[str, str]) -> None:
    for name, value in shared.items():
        headers[name] = value
    for name, value in _HEADERS.items():
        headers.setdefault(name, value)
    page = headers.get("content-type", "").startswith("text/html")
    headers.setdefault("Content-Security-Policy", PAGE_POLICY if page else _DATA_POLICY)


async def _refuse(problem: HTTPProblem, send: Send) -> None:
    body = problem.body()
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
