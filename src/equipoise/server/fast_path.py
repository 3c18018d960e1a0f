"""Asks and tells by the shortest way: past layers of the framework that cost as much as the rest of a request."""

from __future__ import annotations

from fastapi.routing import APIRoute, APIRouter
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from equipoise.server.problems import HTTPProblem


class Direct:
    """
    Calls the functions of some routes itself, and leaves all other requests to the rest of an app.

    The functions take a request and the name of a study, and return a response or raise a problem; what they return is
    the same either way.

    Parameters
    ----------
    app
        The rest.
    router
        The routes, whose paths have different last parts, and are known to the app too, which describes them.
    """

    def __init__(self, app: ASGIApp, router: APIRouter) -> None:
        self._app = app
        self._routes = {route.path.rpartition("/")[2]: route for route in router.routes if isinstance(route, APIRoute)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._routes.get(scope["path"].rpartition("/")[2]) if scope["type"] == "http" else None
        found = None
        if route is not None and scope["method"] in (route.methods or ()):
            found = route.path_regex.match(scope["path"].removeprefix(scope.get("root_path", "")))
        if route is None or found is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = route
        try:
            response = await route.endpoint(Request(scope, receive), found["name"])
        except HTTPProblem as error:
            response = error.response()
        await response(scope, receive, send)
