"""A poll with simulated visitors, to be looked at."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any, Final

from equipoise.base.errors import EquipoiseError
from equipoise.demo import TASTE
from equipoise.run import open_study
from equipoise.server.access import Role, new_key
from equipoise.server.commands import Ask, Tell, nothing_left
from equipoise.server.problems import HTTPProblem
from equipoise.server.registry import OPEN, Registry
from equipoise.server.service import StudyServer
from equipoise.store import Turn

TITLE: Final = "Six products"
QUESTION: Final = "Would you buy this?"
# Half-width at which a product is known well enough.
PRECISION: Final = 0.02

# Visitors a second; the share of them who look at the product without answering, and of those who decline.
_A_SECOND: Final = 20.0
_SILENT, _DECLINING = 0.02, 0.03
_LEASE: Final = 5.0
_OWNER: Final = -2


def prepare(registry: Registry, name: str) -> None:
    """Create the poll, unless it is there."""
    if registry.page(name) is not None:
        return
    products = [product.capitalize() for product in TASTE]
    open_study(registry.place(name), arms=products, support="binary", precision=PRECISION, budget=100_000).close()
    page = registry.page(name)
    assert page is not None
    poll: dict[str, Any] = {"question": QUESTION, "answer": "yes-no", "arms": {}, "respect_dnt": True, "origins": ["*"]}
    registry.write(page._replace(title=TITLE, poll=poll))
    if not registry.keys(page.study):  # another process may have been here
        identity, _, digest, public = new_key(Role.ASK)
        registry.add_key(page.study, identity, Role.ASK, "poll", digest, public)


def go_on(turn: Turn) -> None:
    """Let a poll that is over go on, to half the half-width or with twice the budget: a page should move."""
    if not turn.study.done:  # another process was here
        return
    replica = turn.replica
    if nothing_left(replica) == "spent" and turn.study.budget is not None:
        turn.set_budget(2 * turn.study.budget)
    elif isinstance(replica.precision, float):
        turn.set_goal(replica.precision / 2, replica.level, replica.interval)


async def visit(service: StudyServer, name: str, rng: random.Random) -> None:
    """Let visitors come and answer until this is cancelled."""
    while True:
        await asyncio.sleep(rng.expovariate(_A_SECOND))
        with contextlib.suppress(HTTPProblem, EquipoiseError, ValueError):  # such as a database that is away
            entry = await service.entry(name)
            if entry is None or entry.page.status != OPEN:
                continue
            desk = await service.desk(entry)
            handed = await desk.do(Ask(1, _OWNER, _LEASE, 1 << 30))
            if not handed.tickets:
                await desk.change(go_on)
            for ticket in handed.tickets:
                fate = rng.random()
                if fate < _SILENT:
                    continue
                value = None if fate < _SILENT + _DECLINING else float(rng.random() < TASTE[str(ticket.arm).lower()])
                await desk.do(Tell([ticket.number], [value], [float("nan")], [float("nan")]))
