"""A service on a port of this machine, as long as a test needs it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from equipoise.server import Settings
from equipoise.server.process import Network, listen, server_of
from equipoise.server.service import StudyServer
from tests.waiting import HANG, until

ADMIN = "the administrator's token"


@dataclass(frozen=True)
class Served:
    """
    A service that runs in a thread.

    Attributes
    ----------
    url, service
        Where it is, and what it holds.
    """

    url: str
    service: StudyServer
    _stack: ExitStack

    def client(self, token: str | None = ADMIN, **headers: str) -> httpx.Client:
        """Return a client with a token."""
        own = headers if token is None else {"Authorization": f"Bearer {token}"} | headers
        return self._stack.enter_context(httpx.Client(base_url=self.url, headers=own, timeout=HANG))

    def create(self, name: str, **more: Any) -> dict[str, Any]:
        """Create a study of two arms."""
        body = {"name": name, "arms": ["a", "b"], "support": "binary"} | more
        response = self.client().post("/api/v1/studies", json=body)
        assert response.status_code == 201, response.text
        return response.json()  # type: ignore[no-any-return]

    def key(self, name: str, role: str) -> str:
        """Return a new key of a study."""
        response = self.client().post(f"/api/v1/studies/{name}/keys", json={"role": role})
        assert response.status_code == 201, response.text
        return str(response.json()["key"])


@contextmanager
def served(db: str, **settings: Any) -> Iterator[Served]:
    """Serve a database."""
    network = Network(port=0)
    with listen(network)[0] as listening, ExitStack() as stack:
        server = server_of(Settings(**({"db": db, "admin_token": ADMIN} | settings)), network)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        until(lambda: server.started, "the service has begun")
        try:
            yield Served(f"http://127.0.0.1:{listening.getsockname()[1]}", server._service, stack)
        finally:
            stack.close()
            server.should_exit = True
            thread.join(HANG)
            assert not thread.is_alive()
