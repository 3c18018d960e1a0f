"""The dashboard: a list of studies, a page for each that is live, a form for new ones, and the login."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import RedirectResponse

from equipoise import report
from equipoise.report.page import FOLDER as REPORT
from equipoise.report.page import environment
from equipoise.server import access, studies
from equipoise.server.access import Action, Role
from equipoise.server.assets import Assets
from equipoise.server.documents import SMALL
from equipoise.server.problems import HTTPProblem, no_route
from equipoise.server.routing import received, reply
from equipoise.server.service import StudyEntry, StudyServer

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER: Final = Path(__file__).parent
# Where somebody who has logged in may be sent.
_NEXT: Final = re.compile(r"/(new|docs|studies/[A-Za-z0-9][A-Za-z0-9._-]{0,79})?")


class Pages:
    """
    The pages of a service.

    Parameters
    ----------
    app, service
        What they are pages of.
    """

    def __init__(self, app: FastAPI, service: StudyServer) -> None:
        self._app, self._service = app, service
        self.assets = Assets(
            {
                "style.css": REPORT / "static" / "style.css",
                "page.js": REPORT / "static" / "page.js",
                "dashboard.css": FOLDER / "static" / "dashboard.css",
                "dashboard.js": FOLDER / "static" / "dashboard.js",
            }
        )

    @cached_property
    def _templates(self) -> Environment:
        return environment(FOLDER / "templates")

    def html(self, request: Request, template: str, status: int = 200, **known: Any) -> Response:
        """Return a page."""
        cookie = request.cookies.get(access.COOKIE, "")
        administrator = self._service.administrator
        inside = administrator.in_session(cookie)
        text = self._templates.get_template(template).render(
            root=root_of(request),
            asset=lambda name: f"{root_of(request)}/static/{name}?v={self.assets.version(name)}",
            csrf=administrator.csrf(cookie) if inside else "",
            inside=inside,
            **known,
        )
        return Response(text, status, media_type="text/html; charset=utf-8")

    # ---- who looks

    async def inside(self, request: Request) -> bool:
        """Return whether the administrator looks."""
        return await self._service.in_session(request.cookies.get(access.COOKIE))

    def to_login(self, request: Request) -> Response:
        """Send somebody to the login, and back here after it."""
        path = request.scope["path"].removeprefix(root_of(request))
        return RedirectResponse(f"{root_of(request)}/login?next={path}", 303)

    async def login(self, request: Request) -> Response:
        """Take the administrator's token from the form of the login."""
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise HTTPProblem(403, "the form was sent by another site")
        form = await _form(request)
        onward = (_NEXT.fullmatch(form.get("next", "")) and form.get("next")) or "/"
        try:
            right = self._service.is_administrator(request, form.get("token", "").strip())
        except HTTPProblem as problem:
            return self.html(
                request, "login.html", problem.status, next=onward, wrong=f"{problem.detail.capitalize()}."
            )
        if not right:
            return self.html(request, "login.html", 401, next=onward, wrong="This is not the administrator's token.")
        answer = RedirectResponse(root_of(request) + onward, 303)
        self._remember(request, answer, self._service.administrator.session(), access.SESSION)
        return answer

    async def logout(self, request: Request) -> Response:
        """End the session."""
        cookie = request.cookies.get(access.COOKIE, "")
        if not self._service.administrator.is_csrf(cookie, (await _form(request)).get("csrf")):
            raise HTTPProblem(403, "the form has no valid CSRF token; reload the page", "csrf")
        await self._service.in_thread(lambda: self._service.administrator.end(cookie))
        answer = RedirectResponse(f"{root_of(request)}/login", 303)
        self._remember(request, answer, "", 0)
        return answer

    def _remember(self, request: Request, answer: Response, value: str, seconds: int) -> None:
        answer.set_cookie(
            access.COOKIE,
            value,
            max_age=seconds,
            path=f"{root_of(request)}/",
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )

    # ---- what is shown

    async def list(self, request: Request) -> Response:
        """Show all studies."""
        service = self._service
        if not await self.inside(request):
            demo = service.settings.demo
            return RedirectResponse(f"{root_of(request)}/studies/{demo}", 303) if demo else self.to_login(request)
        found, unreadable = await studies.listed(service)
        lines = [_line(each) for each in reversed(found)]
        return self.html(request, "list.html", studies=lines, unreadable=unreadable)

    async def study(self, request: Request, name: str) -> Response:
        """Show one study."""
        service = self._service
        try:
            caller, entry = await service.admit(request, name, Action.VIEW)
            follower = service.follower(entry.page)
            view, specs = await service.in_thread(lambda: _drawn(follower.data(entry.page)))
        except HTTPProblem as problem:
            if problem.status == HTTPStatus.UNAUTHORIZED:
                return self.to_login(request)
            return self.html(request, "missing.html", problem.status, detail=problem.detail)
        manager = caller.role is Role.ADMIN
        return self.html(
            request,
            "live.html",
            name=name,
            api=f"{root_of(request)}/api/v1/studies/{quote(name, safe='')}",
            view=view,
            specs=specs,
            drawings={},
            manager=manager,
            page=entry.page,
            keys=_keys(entry) if manager else [],
            public=_public(entry),
            origins=(entry.page.poll or {}).get("origins", []),
        )

    async def specs(self, request: Request, name: str) -> Response:
        """Return the charts of a study as they are drawn now."""
        _, entry = await self._service.admit(request, name, Action.VIEW)
        follower = self._service.follower(entry.page)
        _, specs = await self._service.in_thread(lambda: _drawn(follower.data(entry.page)))
        return reply(specs)

    async def new(self, request: Request) -> Response:
        """Show the form for a new study."""
        return self.html(request, "new.html") if await self.inside(request) else self.to_login(request)

    def docs(self, request: Request) -> Response:
        """Show what the API takes and returns."""
        document = self._app.openapi()
        return self.html(request, "docs.html", about=document["info"]["description"], groups=_groups(document))


def mount(app: FastAPI) -> None:
    """Add the pages to a service."""
    pages = Pages(app, app.state.service)
    router = APIRouter(include_in_schema=False, default_response_class=Response)

    @router.get("/")
    async def index(request: Request) -> Response:
        return await pages.list(request)

    @router.get("/login")
    async def login_form(request: Request, next: str = "/") -> Response:
        return pages.html(request, "login.html", next=next if _NEXT.fullmatch(next) else "/", wrong="")

    @router.post("/login")
    async def login(request: Request) -> Response:
        return await pages.login(request)

    @router.post("/logout")
    async def logout(request: Request) -> Response:
        return await pages.logout(request)

    @router.get("/new")
    async def new(request: Request) -> Response:
        return await pages.new(request)

    @router.get("/docs")
    async def docs(request: Request) -> Response:
        return pages.docs(request)

    @router.get("/studies/{name}")
    async def study(request: Request, name: str) -> Response:
        return await pages.study(request, name)

    @router.get("/studies/{name}/specs.json")
    async def specs(request: Request, name: str) -> Response:
        return await pages.specs(request, name)

    @router.get("/static/{name}")
    async def static(request: Request, name: str) -> Response:
        return await asyncio.to_thread(pages.assets.response, request, name)

    app.include_router(router)

    @app.exception_handler(HTTPStatus.NOT_FOUND)
    async def no_page(request: Request, error: Exception) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            return pages.html(request, "missing.html", HTTPStatus.NOT_FOUND, detail="There is no such page.")
        return no_route(request, HTTPStatus.NOT_FOUND).response()


def root_of(request: Request) -> str:
    """Return the path under which a proxy shows the service, without a slash at its end."""
    return str(request.scope.get("root_path", "")).rstrip("/")


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a form."""
    text = (await received(request, SMALL.bytes)).decode("utf-8", "replace")
    try:
        return {name: values[-1] for name, values in parse_qs(text, max_num_fields=20).items()}
    except ValueError:
        raise HTTPProblem(422, "the form has more fields than allowed", "invalid") from None


def _drawn(view: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return view, report.specs(view)


def _line(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the list says of a study."""
    state = "collecting" if found["status"] == "open" else found["status"]
    if state == "collecting" and found["done"]:
        state = "spent" if found["remaining"] == 0 else "reached" if found["precision"] is not None else "done"
    status, tone = report.STATES[state]
    share = min(found["spent"] / found["budget"], 1.0) if found["budget"] else None
    return {**found, "state": status, "tone": tone, "share": share}


def _keys(entry: StudyEntry) -> list[dict[str, Any]]:
    return [
        {"id": key.id, "role": key.role, "label": key.label, "created": key.created, "public": key.public}
        for key in sorted(entry.keys.values(), key=lambda key: key.created)
    ]


def _public(entry: StudyEntry) -> str | None:
    """Return the key that the page of a poll has; None where there is none."""
    found = [key.public for key in entry.keys.values() if key.public]
    return found[0] if found and entry.page.poll is not None else None


def _groups(document: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the routes of an OpenAPI document by their tags."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            body = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            found = {
                "method": method.upper(),
                "path": path,
                "about": route.get("description", ""),
                "body": _members(document, body),
                "responses": {status: each["description"] for status, each in route.get("responses", {}).items()},
            }
            groups.setdefault((route.get("tags") or ["other"])[0], []).append(found)
    return groups


def _members(document: Mapping[str, Any], schema: Mapping[str, Any] | None) -> list[tuple[str, str, bool]]:
    """Return the members of a body: names, types, and whether they are required."""
    if schema is None or "$ref" not in schema:
        return []
    model = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    required = model.get("required", [])
    return [(name, _kind(each), name in required) for name, each in model.get("properties", {}).items()]


def _kind(schema: Mapping[str, Any]) -> str:
    """Return the type of a member in a few words."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(each) for each in schema["anyOf"]))
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema or "const" in schema:
        return ", ".join(f'"{each}"' for each in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}" if "items" in schema else "list"
    return str(schema.get("type", "any"))
