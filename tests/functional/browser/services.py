"""A real service and a site that embeds its poll, on two ports of this machine: two origins to a browser."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page

from equipoise.server.process import Network, listen, server_of
from equipoise.server.settings import Settings
from tests.functional.browser.scripted import host_page, tag

TOKEN = "the administrator's"

# Resolves to the title on the card once the service has the answer.
_DELIVERED = """async () => {
  while (Object.values(localStorage).join() !== '{"done":true}') await new Promise(requestAnimationFrame);
  return document.querySelector("equipoise-poll").shadowRoot.querySelector(".title").textContent;
}"""


@dataclass(frozen=True)
class Running:
    """A service that runs, as its administrator sees it."""

    url: str

    def call(self, path: str, body: object = None) -> Any:
        """Return what the API answers."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}api/v1/studies{path}", data, headers)
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)

    def remove(self, name: str) -> None:
        """Delete a study."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        request = urllib.request.Request(f"{self.url}api/v1/studies/{name}", headers=headers, method="DELETE")
        urllib.request.urlopen(request).close()


@contextmanager
def serving(folder: Path) -> Iterator[Running]:
    """Serve studies from a folder, in a thread."""
    network = Network(port=0)
    with listen(network)[0] as listening:
        server = server_of(Settings(db=str(folder / "studies.db"), admin_token=TOKEN), network)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield Running(f"http://127.0.0.1:{listening.getsockname()[1]}/")
        server.should_exit = True
        thread.join()


@dataclass
class Site:
    """The site of somebody else: one page, which embeds what it is told to."""

    url: str
    html: str = ""

    @property
    def origin(self) -> str:
        """As browsers and CORS name it."""
        return self.url.rstrip("/")

    def embed(self, service: Running, study: str, key: str) -> None:
        """Put the poll of a study into the page."""
        self.html = host_page(tag(service=service.url, study=study, key=key))


def card(page: Page) -> Locator:
    """Return the place of the poll in a page."""
    return page.locator("equipoise-poll")


def answer(page: Page, button: str) -> str:
    """Click a button of the card, wait until the service has the answer, and return the title on the card."""
    card(page).get_by_role("button", name=button, exact=True).click()
    return str(page.evaluate(_DELIVERED))


@contextmanager
def hosting() -> Iterator[Site]:
    """Host a site, in threads."""
    site = Site("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(site.html.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        site.url = f"http://127.0.0.1:{server.server_port}/"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield site
        server.shutdown()
        thread.join()
