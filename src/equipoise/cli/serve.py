"""The command `equipoise serve`."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from equipoise.base.inputs import install_hint, integer
from equipoise.cli import exits

if TYPE_CHECKING:
    from equipoise.server.settings import Settings

# What somebody types for what an error names.
_TYPED: Final = {
    "store": "--db",
    "db": "--db",
    "port": "--port",
    "workers": "--workers",
    "root_path": "--root-path",
    "trusted_proxies": "--trusted-proxies",
    "admin_token": "EQUIPOISE_ADMIN_TOKEN",
}


def serve(
    db: Annotated[
        str | None,
        typer.Option(help="The SQLite file or PostgreSQL database with the studies.", show_default="studies.db"),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 for any that is free.")] = 8000,
    workers: Annotated[int, typer.Option(help="How many processes serve.")] = 1,
    root_path: Annotated[
        str, typer.Option(help="The path at which a proxy publishes the service, such as /polls.")
    ] = "",
    trusted_proxies: Annotated[
        str, typer.Option(help="Addresses of proxies whose forwarded headers are trusted.")
    ] = "127.0.0.1",
    demo: Annotated[
        bool, typer.Option("--demo", metavar="", help="Serve a poll of six products with simulated visitors.")
    ] = False,
) -> None:
    """
    Serve studies over HTTP: a dashboard, polls for web pages, and an API.

    EQUIPOISE_ADMIN_TOKEN sets the administrator's token. Without it, one is
    made at the first start and shown once. On SIGTERM or Ctrl-C, the service
    finishes the requests under way and stops.
    """
    try:
        _serve(db, host, port, workers, root_path, trusted_proxies, demo)
    except ValueError as error:
        name, _, rest = str(error).partition(" ")
        raise ValueError(f"{_TYPED.get(name, name)} {rest}") from None


def _serve(
    db: str | None, host: str, port: int, workers: int, root_path: str, trusted_proxies: str, demo: bool
) -> None:
    integer("workers", workers, least=1)
    try:
        from equipoise.server import process
        from equipoise.server.settings import Settings
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"serving needs {error.name}, which is not installed; {install_hint('serve')}"
        ) from None
    network = process.Network(host, port, trusted_proxies)
    with ExitStack() as stack:
        if demo and db is None:
            db = str(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="equipoise-"))) / "demo.db")
        settings = Settings(
            db="studies.db" if db is None else db,
            root_path=root_path.rstrip("/"),
            admin_token=os.environ.get("EQUIPOISE_ADMIN_TOKEN") or None,
            demo="demo" if demo else None,
        )
        listening = [stack.enter_context(own) for own in process.listen(network, workers)]
        _introduce(settings, host, listening[0].getsockname()[1])
        with exits.Signals():
            try:
                process.serve(settings, network, listening)
            except exits.Ended:
                exits.say("stopped")


def _introduce(settings: Settings, host: str, port: int) -> None:
    """Make the administrator's token if there is none, and say where the service is."""
    from equipoise.server import access
    from equipoise.server.registry import Registry

    shown = f"[{host}]" if ":" in host else host
    registry = Registry(settings.db)
    try:
        page = "/studies/demo" if settings.demo else "/"
        exits.say(f"serving {registry.name} at http://{shown}:{port}{page}")
        token = access.first_token(registry) if settings.admin_token is None else None
    finally:
        registry.close()
    if token is not None:
        exits.say(f"the administrator's token, which is shown only now: {token}")
