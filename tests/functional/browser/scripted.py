"""A service and a host page that exist in the browser alone, and do what a test tells them to."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import BrowserContext, Locator, Page, Route

import equipoise
from tests.waiting import until

SERVICE: Final = "http://polls.test/"
SHOP: Final = "http://shop.test/"
POLL_JS: Final = Path(equipoise.__file__).parent / "server" / "poll.js"

# Notes for how long the page would have waited, and does not wait.
TIMERS_AT_ONCE: Final = """
const wait = window.setTimeout;
window.timers = [];
window.setTimeout = (resolve, milliseconds) => { timers.push(milliseconds); return wait(resolve, 0); };
"""

Body = dict[str, Any]


def tag(more: str = "", service: str = SERVICE, study: str = "menu", key: str = "public") -> str:
    """Return the script tag that a page embeds."""
    return f'<script async src="{service}poll.js" data-study="{study}" data-key="{key}" {more}></script>'


def host_page(body: str = "", head: str = "") -> str:
    """Return a page of a shop."""
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Shop</title>{head}<body><main>{body}</main>'


@dataclass
class Scripted:
    """
    What the service answers, and what it was asked.

    `ask` and `tell` are statuses, used up one by one, the last for ever; 0 is a service that cannot be reached.
    """

    page: Page
    question: Body = field(default_factory=dict)
    ask: list[int] = field(default_factory=lambda: [200])
    tell: list[int] = field(default_factory=lambda: [200])
    outcome: str = "taken"
    asks: list[Body] = field(default_factory=list)
    tells: list[Body] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)

    def visit(self, html: str | None = None, headers: dict[str, str] | None = None) -> None:
        """Load a page that embeds the poll."""
        content = {"Content-Type": "text/html", **(headers or {})}
        self.page.unroute(SHOP)
        self.page.route(SHOP, lambda route: route.fulfill(body=html or host_page(tag()), headers=content))
        self.page.goto(SHOP)

    @property
    def card(self) -> Locator:
        """The place of the poll in the page."""
        return self.page.locator("equipoise-poll")

    def click(self, name: str) -> None:
        """Click one of the card's buttons."""
        self.card.get_by_role("button", name=name, exact=True).click()

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for what the page does, which Playwright tells only while it is spoken to."""
        until(lambda: self.page.evaluate("true") and condition(), what)

    def forget_visitor(self) -> None:
        """Make the next visit that of somebody else."""
        self.page.evaluate("localStorage.clear()")

    def remembered(self) -> list[Body]:
        """Return what the page's origin remembers of the visitor."""
        stored: list[Body] = self.page.evaluate("Object.values(localStorage).map((text) => JSON.parse(text))")
        return stored

    def _script(self, route: Route) -> None:
        route.fulfill(path=POLL_JS, content_type="text/javascript")

    def _ask(self, route: Route) -> None:
        self.asks.append(json.loads(route.request.post_data or ""))
        self.headers = route.request.all_headers()
        reply = {
            "tickets": [{"ticket": "t1", "arm": "coffee"}],
            "question": "Would you order this?",
            "answer": "yes-no",
            "show": {"title": "Cardamom coffee"},
        }
        reply |= self.question
        shown = reply["answer"] in self.asks[-1].get("answers", [reply["answer"]])
        _reply(route, self.ask if shown else [409], reply, "tickets" if shown else "answer")

    def _tell(self, route: Route) -> None:
        self.tells.append(json.loads(route.request.post_data or ""))
        _reply(route, self.tell, {"outcomes": [self.outcome]})


def _reply(route: Route, statuses: list[int], body: Body, kind: str = "invalid") -> None:
    status = statuses.pop(0) if len(statuses) > 1 else statuses[0]
    if status == 0:
        route.abort()
        return
    headers = {"Access-Control-Allow-Origin": "*", "Content-Type": "application/json"}
    problem = {"type": f"urn:equipoise:problem:{kind}", "detail": "this is refused"}
    route.fulfill(
        status=status, headers=headers, body="" if status == 204 else json.dumps(body if status == 200 else problem)
    )


def scripted(context: BrowserContext, page: Page) -> Scripted:
    """Return a service for the pages of a visitor."""
    service = Scripted(page)
    context.route(SERVICE + "poll.js", service._script)
    context.route(SERVICE + "api/v1/studies/menu/ask", service._ask)
    context.route(SERVICE + "api/v1/studies/menu/tell", service._tell)
    return service
