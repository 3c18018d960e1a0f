"""Routes that manage studies and their keys."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Response

from equipoise.base.errors import EquipoiseError
from equipoise.base.inputs import shown, text_of
from equipoise.ledger.goal import precision as precision_of
from equipoise.problem import Contrasts, Stratified
from equipoise.run import open_study
from equipoise.server import access
from equipoise.server.access import Action, Role
from equipoise.server.bodies import (
    Create,
    Created,
    Extend,
    KeyMade,
    Keys,
    NewKey,
    OfContrasts,
    OneArm,
    Poll,
    Precision,
    Shares,
    Studies,
    StudyDetails,
    StudyProgress,
)
from equipoise.server.commands import plain_arm
from equipoise.server.documents import SMALL
from equipoise.server.problems import HTTPProblem, in_json
from equipoise.server.registry import ARCHIVED, OPEN, PAUSED, Key, Page
from equipoise.server.routing import describe, read, reply
from equipoise.server.service import StudyEntry, StudyServer
from equipoise.server.turn_queue import Desk
from equipoise.store import Replica, Turn
from equipoise.study.options import savable

router = APIRouter(prefix="/api/v1/studies", tags=["studies"])

# What an answer of a poll can be, where the study does not say.
_SUPPORTS: dict[str, Any] = {"yes-no": "binary", "1-5": (1.0, 5.0)}


@router.post("", status_code=201, **describe(409, 422, body=Create, returns={201: Created}))
async def create(request: Request) -> Response:
    """Create a study, with an *ask* key if it has a poll."""
    service: StudyServer = request.app.state.service
    await service.admit_administrator(request)
    body = await read(request, Create, service.settings.limits.size)
    async with service.creating:
        if await service.in_thread(lambda: service.registry.page(body.name)) is not None:
            raise HTTPProblem(409, f"there is a study {body.name!r} already")
        try:
            await service.in_thread(lambda: _create(service, body))
        except (ValueError, TypeError) as error:
            raise HTTPProblem(422, in_json(str(error)), "invalid") from None
    entry = await service.changed(body.name)
    assert entry is not None
    keys = []
    if body.poll is not None:
        keys.append(await _add_key(service, entry, Role.ASK, "poll"))
        entry = await service.changed(body.name) or entry
    return reply(await described(service, entry) | {"keys": keys}, 201)


def _create(service: StudyServer, body: Create) -> None:
    support: Any = body.support
    if body.poll is not None and support is None:
        support = _SUPPORTS.get(body.poll.answer)
    objective = body.objective
    study = open_study(
        service.registry.place(body.name),
        arms=body.arms,
        budget=body.budget,
        strategy=body.strategy,
        support=support,
        objective=Stratified(objective.shares) if isinstance(objective, Shares) else float(objective),
        weights=body.weights,
        costs=body.costs,
        populations=body.populations,
        precision=_meant(body.precision),
        level=body.level,
        interval=body.interval,
    )
    study.close()
    page = service.registry.page(body.name)
    assert page is not None
    poll = None if body.poll is None else body.poll.model_dump()
    service.registry.write(page._replace(created=time.time(), title=body.title, poll=poll))


@router.get("", **describe(returns={200: Studies}))
async def studies(request: Request) -> Response:
    """List all studies."""
    service: StudyServer = request.app.state.service
    await service.admit_administrator(request)
    found, unreadable = await listed(service)
    return reply({"studies": found, "unreadable": unreadable})


async def listed(service: StudyServer) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Return how far each study is, in the order of their creation; and those that cannot be read, with the reason."""
    found, unreadable = [], []
    for page in await service.in_thread(service.registry.pages):
        try:
            entry = await service.entry(page.name)
            if entry is not None:
                found.append(await progress(service, entry))
        except HTTPProblem as problem:
            if problem.status != HTTPStatus.NOT_FOUND:  # else it was deleted meanwhile
                unreadable.append({"name": page.name, "detail": problem.detail})
    return found, unreadable


@router.get("/{name}", **describe(returns={200: StudyDetails}))
async def show(request: Request, name: str) -> Response:
    """Show what a study is made of, and how far it is."""
    service: StudyServer = request.app.state.service
    _, entry = await service.admit(request, name, Action.SHOW)
    return reply(await described(service, entry))


@router.get("/{name}/progress", **describe(returns={200: StudyProgress}))
async def how_far(request: Request, name: str) -> Response:
    """Show how far a study is."""
    service: StudyServer = request.app.state.service
    _, entry = await service.admit(request, name, Action.PROGRESS)
    return reply(await progress(service, entry))


@router.post("/{name}/pause", **describe(409, returns={200: StudyProgress}))
async def pause(request: Request, name: str) -> Response:
    """Hand out no more tickets for now; answers are still taken."""
    return await _set_status(request, name, PAUSED)


@router.post("/{name}/resume", **describe(returns={200: StudyProgress}))
async def resume(request: Request, name: str) -> Response:
    """Hand out tickets again, after a pause or from the archive."""
    return await _set_status(request, name, OPEN)


@router.post("/{name}/archive", **describe(returns={200: StudyProgress}))
async def archive(request: Request, name: str) -> Response:
    """Close a study: it can be read, and takes no more answers until it is resumed."""
    return await _set_status(request, name, ARCHIVED)


async def _set_status(request: Request, name: str, status: str) -> Response:
    service, entry = await _managed(request, name)
    if entry.page.status == ARCHIVED and status == PAUSED:
        raise HTTPProblem(409, "the study is archived; resume it first", "archived")
    return reply(await progress(service, await _write(service, entry.page._replace(status=status))))


@router.put("/{name}/poll", **describe(422, body=Poll, returns={200: StudyDetails}))
async def set_poll(request: Request, name: str) -> Response:
    """Change what web pages show, and which pages may."""
    service, entry = await _managed(request, name)
    body = await read(request, Poll, service.settings.limits.size)
    desk = await service.desk(entry)
    unknown = set(body.arms) - {text_of(arm) for arm in desk.arms}
    if unknown:
        raise HTTPProblem(422, f"arms must be those of the study, got {shown(min(unknown))}", "invalid")
    return reply(await described(service, await _write(service, entry.page._replace(poll=body.model_dump()))))


async def _write(service: StudyServer, page: Page) -> StudyEntry:
    await service.in_thread(lambda: service.registry.write(page))
    entry = await service.changed(page.name)
    if entry is None:
        raise HTTPProblem(404, f"there is no study {shown(page.name)}")
    return entry


@router.post("/{name}/extend", **describe(409, 422, body=Extend, returns={200: StudyProgress}))
async def extend(request: Request, name: str) -> Response:
    """Change the budget, the precision or the level."""
    service, entry = await _managed(request, name)
    body = await read(request, Extend, service.settings.limits.size)
    desk = await service.desk(entry)
    goal_given = bool({"precision", "level", "interval"} & body.model_fields_set)

    def work(turn: Turn) -> None:
        replica = turn.replica
        given = "precision" in body.model_fields_set
        precision = savable(_meant(body.precision)) if given else replica.precision
        level, interval = body.level or replica.level, body.interval or replica.interval
        if precision is not None:
            precision_of(precision, level, desk.arms, interval, replica.header.options.get("objective", math.inf))
        if "budget" in body.model_fields_set:
            turn.set_budget(body.budget)
        if goal_given:
            turn.set_goal(precision, level, interval)

    return await _changed(service, entry, desk, work)


@router.post("/{name}/retire", **describe(409, 422, body=OneArm, returns={200: StudyProgress}))
async def retire(request: Request, name: str) -> Response:
    """Ask for no more samples of an arm; its answers in flight are taken."""
    return await _set_retired(request, name, lambda turn, place: turn.retire(place, "by hand"))


@router.post("/{name}/reopen", **describe(409, 422, body=OneArm, returns={200: StudyProgress}))
async def reopen(request: Request, name: str) -> Response:
    """Ask for samples of a retired arm again."""
    return await _set_retired(request, name, lambda turn, place: turn.reopen(place))


async def _set_retired(request: Request, name: str, change: Callable[[Turn, int], None]) -> Response:
    service, entry = await _managed(request, name)
    body = await read(request, OneArm, SMALL)
    desk = await service.desk(entry)
    place = next((k for k, arm in enumerate(desk.arms) if plain_arm(arm) == body.arm), None)
    if place is None:
        raise HTTPProblem(422, f"arm must be one of the study, got {shown(body.arm)}", "invalid")

    def work(turn: Turn) -> None:
        change(turn, place)

    return await _changed(service, entry, desk, work)


async def _changed(service: StudyServer, entry: StudyEntry, desk: Desk, work: Callable[[Turn], None]) -> Response:
    try:
        await desk.change(work)
    except (ValueError, TypeError) as error:
        raise HTTPProblem(422, in_json(str(error)), "invalid") from None
    except EquipoiseError as error:
        raise HTTPProblem(409, str(error)) from None
    return reply(await progress(service, entry))


@router.delete("/{name}", status_code=204, **describe(returns={204: None}))
async def delete(request: Request, name: str) -> Response:
    """Delete a study, with its log, its poll and its keys."""
    service, _ = await _managed(request, name)
    await service.delete(name)
    return Response(status_code=204)


# ---- keys


@router.get("/{name}/keys", tags=["keys"], **describe(returns={200: Keys}))
async def keys(request: Request, name: str) -> Response:
    """List the keys of a study, without secrets; those of role *ask* are public."""
    service, entry = await _managed(request, name)
    found = await service.in_thread(lambda: service.registry.keys(entry.page.study))
    return reply({"keys": [_key(key, key.public) for key in found]})


@router.post("/{name}/keys", tags=["keys"], status_code=201, **describe(422, body=NewKey, returns={201: KeyMade}))
async def add_key(request: Request, name: str) -> Response:
    """Make a key; it is shown only now, unless it is one of role *ask*."""
    service, entry = await _managed(request, name)
    body = await read(request, NewKey, SMALL)
    return reply(await _add_key(service, entry, Role(body.role), body.label), 201)


async def _add_key(service: StudyServer, entry: StudyEntry, role: Role, label: str) -> dict[str, Any]:
    identity, text, digest, public = access.new_key(role)
    add = service.registry.add_key
    key = await service.in_thread(lambda: add(entry.page.study, identity, role.value, label, digest, public))
    await service.changed(entry.page.name)
    return _key(key, text)


@router.post("/{name}/keys/{key_id}/rotate", tags=["keys"], **describe(returns={200: KeyMade}))
async def rotate_key(request: Request, name: str, key_id: str) -> Response:
    """Replace the secret of a key; the old one is refused from now on."""
    service, entry = await _managed(request, name)
    key = await _key_of(service, entry, key_id)
    text, digest, public = access.rotated(key)
    await service.in_thread(lambda: service.registry.change_key(key, digest, public))
    await service.changed(name)
    return reply(_key(key, text))


@router.delete("/{name}/keys/{key_id}", tags=["keys"], status_code=204, **describe(returns={204: None}))
async def revoke_key(request: Request, name: str, key_id: str) -> Response:
    """Revoke a key. Tickets that were asked for with it can still be answered, with another key."""
    service, entry = await _managed(request, name)
    key = await _key_of(service, entry, key_id)
    await service.in_thread(lambda: service.registry.revoke(key))
    await service.changed(name)
    return Response(status_code=204)


async def _key_of(service: StudyServer, entry: StudyEntry, key_id: str) -> Key:
    found = await service.in_thread(lambda: service.registry.keys(entry.page.study))
    for key in found:
        if key.id == key_id:
            return key
    raise HTTPProblem(404, f"the study has no key {shown(key_id)}")


def _key(key: Key, text: str | None) -> dict[str, Any]:
    return {"id": key.id, "role": key.role, "label": key.label, "created": key.created, "key": text}


# ---- what is shown


async def _managed(request: Request, name: str) -> tuple[StudyServer, StudyEntry]:
    service: StudyServer = request.app.state.service
    _, entry = await service.admit(request, name, Action.MANAGE)
    return service, entry


async def progress(service: StudyServer, entry: StudyEntry) -> dict[str, Any]:
    """Return how far a study is."""
    page = entry.page
    return {"name": page.name, "title": page.title, "status": page.status} | await service.look(page, _progress)


def _progress(replica: Replica) -> dict[str, Any]:
    study = replica.study
    return {
        "arms": len(study.arms),
        "budget": study.budget,
        "precision": _plain(replica.precision),
        "level": replica.level,
        "interval": replica.interval,
        "spent": study.spent,
        "remaining": study.remaining if math.isfinite(study.remaining) else None,
        "samples": study.ledger.samples,
        "in_flight": study.in_flight,
        "done": study.done,
    }


async def described(service: StudyServer, entry: StudyEntry) -> dict[str, Any]:
    """Return a study's progress and its options."""
    desk = await service.desk(entry)

    def details(replica: Replica) -> dict[str, Any]:
        header = replica.header
        return {
            "names": [plain_arm(arm) for arm in header.arms],
            "retired": [plain_arm(arm) for arm in replica.study.retired],
            "strategy": header.strategy.name,
            "support": header.support,
        }

    found = await service.in_thread(lambda: desk.look(details))
    page = entry.page
    return await progress(service, entry) | found | {"created": page.created, "poll": page.poll}


def _meant(precision: Precision | None) -> Any:
    return precision.meant if isinstance(precision, OfContrasts) else precision


def _plain(precision: Any) -> Any:
    if isinstance(precision, Contrasts):
        return precision.to_dict()
    return {text_of(arm): each for arm, each in precision.items()} if isinstance(precision, dict) else precision
