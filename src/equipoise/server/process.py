"""Processes that serve: one, or several at one address; SIGTERM lets them finish what they have begun."""

from __future__ import annotations

import contextlib
import gc
import ipaddress
import multiprocessing
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, Final

import uvicorn
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from equipoise.base.errors import EquipoiseError
from equipoise.base.inputs import shown
from equipoise.server.app import create_app
from equipoise.server.memory import return_large_blocks
from equipoise.server.protocol import Protocol
from equipoise.server.service import PEER, StudyServer
from equipoise.server.settings import Settings

# Seconds that requests under way are waited for when the service stops.
_GRACE: Final = 30
# Seconds between two looks at the workers.
_LOOK: Final = 0.2
_BACKLOG: Final = 2048
# Whether connections to a port that several sockets listen at are spread evenly over them.
_SPREADS: Final = sys.platform == "linux"
# Objects that are made before the garbage collector looks at the young ones. Those of a batch of a thousand answers
# outnumber the default many times, and none of them is garbage.
_YOUNG: Final = 100_000


@dataclass(frozen=True)
class Network:
    """
    Where a service is reached.

    Attributes
    ----------
    host, port
        The address to listen at.
    proxies
        The addresses or networks of proxies whose forwarded headers are believed, separated by commas; * for all.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    proxies: str = "127.0.0.1"

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ValueError(f"port must be an integer between 0 and 65,535, got {self.port}")
        try:
            for proxy in self.proxies.split(","):
                ipaddress.ip_network("0.0.0.0/0" if proxy.strip() == "*" else proxy.strip())
        except ValueError:
            wanted = "addresses such as 127.0.0.1 or networks such as 10.0.0.0/8, separated by commas"
            raise ValueError(f"trusted_proxies must be {wanted}, got {shown(self.proxies)}") from None


class Server(uvicorn.Server):
    """
    A uvicorn server that sends live viewers away when it stops, as they would not go by themselves.

    Parameters
    ----------
    config
        Of uvicorn.
    service
        What it serves.
    """

    def __init__(self, config: uvicorn.Config, service: StudyServer) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish what was begun."""
        self._service.stop()
        await super().shutdown(sockets)


def server_of(settings: Settings, network: Network) -> Server:
    """Return a server in this process, which has not begun."""
    app = create_app(settings)
    trusting = ProxyHeadersMiddleware(app, network.proxies)  # type: ignore[arg-type]

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope.get("client"):
            scope[PEER] = scope["client"][0]
        await trusting(scope, receive, send)

    # No access log: it would hold addresses of visitors.
    config = uvicorn.Config(
        noting,
        http=Protocol,
        host=network.host,
        port=network.port,
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,  # those of proxies are believed once it is noted who is connected
        timeout_graceful_shutdown=_GRACE,
        backlog=_BACKLOG,
    )
    return Server(config, app.state.service)


def listen(network: Network, workers: int = 1) -> list[socket.socket]:
    """
    Return a socket that listens at an address for each worker.

    Where the system spreads connections evenly over several sockets, each worker has one of its own. Where it does not,
    all share one: whoever wakes up first takes all who wait, and another worker may get next to none.
    """
    family = socket.AF_INET6 if ":" in network.host else socket.AF_INET
    alone = workers == 1 or not _SPREADS
    try:
        first = socket.create_server((network.host, network.port), family=family, backlog=_BACKLOG)
        if alone:
            return [first] * workers
        # The first finds out whether the address is free: sockets that share it would share it with another service.
        address = first.getsockname()
        first.close()
        return [socket.create_server(address, family=family, backlog=_BACKLOG, reuse_port=True) for _ in range(workers)]
    except OSError as error:
        reason = (error.strerror or "").partition(" (while")[0]  # it goes on with the address
        raise EquipoiseError(f"cannot listen at {network.host}:{network.port}: {reason}") from None


def serve(settings: Settings, network: Network, listening: Sequence[socket.socket]) -> None:
    """
    Serve until a signal says to stop.

    Parameters
    ----------
    settings, network
        What the service is made of, and where it is reached.
    listening
        A socket of that address for each process that serves; they share the rates of its limits. A process that dies
        is replaced, and those who connect to its socket meanwhile wait.
    """
    settings = replace(settings, limits=settings.limits.share(len(listening)))
    if len(listening) == 1:
        _work(settings, network, listening[0])
        return
    context = multiprocessing.get_context("spawn")
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()

    def start(own: socket.socket) -> BaseProcess:
        process = context.Process(target=_work, args=(settings, network, own), daemon=False)
        process.start()
        return process

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    running = [start(own) for own in listening]
    while not stopping.wait(_LOOK):
        running = [
            process if process.is_alive() else start(own) for process, own in zip(running, listening, strict=True)
        ]
    for own in listening:
        own.close()  # so that nobody connects to a service that stops
    for process in running:
        process.terminate()
    for process in running:
        process.join()


def _work(settings: Settings, network: Network, listening: socket.socket) -> None:
    """Serve in this process."""
    return_large_blocks()
    server = server_of(settings, network)
    gc.freeze()  # what is loaded stays
    gc.set_threshold(_YOUNG)
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises the signal again that it has stopped for
        server.run(sockets=[listening])
