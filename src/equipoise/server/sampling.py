"""Routes that ask and tell."""

from __future__ import annotations

import math
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from equipoise.base.errors import EquipoiseError
from equipoise.base.inputs import text_of
from equipoise.ledger.ledger import TooLate
from equipoise.server.access import Action, Caller, Role
from equipoise.server.bodies import AnswerBody, AskBody, ForgetBody, TellBody, TicketOutcomes, Tickets
from equipoise.server.commands import Ask, Forget, Handed, Outcomes, Tell, Work, plain_arm
from equipoise.server.documents import SMALL
from equipoise.server.problems import HTTPProblem, in_json
from equipoise.server.registry import ARCHIVED, OPEN, Page
from equipoise.server.routing import describe, read, reply
from equipoise.server.service import StudyServer, check_may
from equipoise.server.turn_queue import Desk
from equipoise.store.leases import VISITOR_SECONDS

router = APIRouter(prefix="/api/v1/studies/{name}", tags=["ask and tell"])

# JSON values of an answer with all its members.
_VALUES_OF_ANSWER: Final = 1 + len(AnswerBody.model_fields)
# What a page answers a study with that is not a poll.
_ANY_ANSWER: Final = "number"


@router.post("/ask", **describe(422, 409, body=AskBody, required=False, returns={200: Tickets, 204: None}))
async def ask(request: Request, name: str) -> Response:
    """
    Ask for tickets: which arms to sample next.

    An *ask* key may ask for one ticket at a time, and gets what a web page shows with it; where there is nothing to
    ask, the status is 204.
    """
    service: StudyServer = request.app.state.service
    caller, entry = await service.admit(request, name, Action.ASK)
    body = await read(request, AskBody, SMALL, optional=True)
    limits, page = service.settings.limits, entry.page
    _check_many(caller, Action.ASK_MANY, body.count, limits.batch, "count")
    if body.lease is not None:
        check_may(caller, Action.LEASE)
        if body.lease > limits.lease:
            raise HTTPProblem(422, f"lease must be at most {limits.lease:,.0f} s, got {body.lease:g}", "invalid")
    kind = (page.poll or {}).get("answer", _ANY_ANSWER)
    if body.answers is not None and kind not in body.answers:
        raise HTTPProblem(409, f"the answers of this poll are of kind {kind!r}, which is not in answers", "answer")
    closed = page.status if page.status != OPEN else "do-not-track" if _is_not_to_be_tracked(request, page) else None
    if closed is not None and body.idempotency_key is None:
        return _handed(caller, page, None, Handed([], closed))
    desk = await service.desk(entry)
    respondent = None
    if body.respondent is not None and closed is None:
        respondent = desk.hashed("respondent", body.respondent)
        service.buckets.take((page.study, respondent), limits.respondent)
    key = None
    if body.idempotency_key is not None:
        key = desk.hashed("key", f"{caller.owner}:{body.idempotency_key}")
    if caller.role is Role.ASK:
        lease, most_open, most_spare = limits.lease_by_ask, limits.open_by_ask, float(limits.spare)
    else:
        lease, most_open, most_spare = body.lease or VISITOR_SECONDS, limits.open_by_work, math.inf
    work = Ask(body.count, caller.owner, lease, most_open, key, respondent, closed, most_spare)
    return _handed(caller, page, desk, await _done(desk, work))


@router.post("/tell", **describe(422, 409, body=TellBody, returns={200: TicketOutcomes}))
async def tell(request: Request, name: str) -> Response:
    """
    Tell the answers to tickets.

    Each answer is taken or refused by itself, or with `atomic` all are taken or none. Telling the same answer again
    changes nothing, so that a request without a response can be repeated.
    """
    service: StudyServer = request.app.state.service
    caller, entry = await service.admit(request, name, Action.TELL)
    limits = service.settings.limits
    size = limits.many(_VALUES_OF_ANSWER) if caller.may(Action.TELL_MANY) else SMALL
    body = await read(request, TellBody, size)
    answers = body.answers
    _check_many(caller, Action.TELL_MANY, len(answers), limits.batch, "answers")
    if any(answer.cost is not None for answer in answers):
        check_may(caller, Action.COST)
    _check_not_archived(entry.page)
    desk = await service.desk(entry)
    sign = desk.signer.read
    work = Tell(
        [sign(answer.ticket) for answer in answers],
        [answer.value for answer in answers],
        [math.nan if answer.cost is None else answer.cost for answer in answers],
        [math.nan if answer.seconds is None else answer.seconds for answer in answers],
        body.atomic,
    )
    return _outcomes(await _done(desk, work))


@router.post("/forget", **describe(422, 409, body=ForgetBody, returns={200: TicketOutcomes}))
async def forget(request: Request, name: str) -> Response:
    """Give back tickets that will not be answered, so that their samples are asked for again."""
    service: StudyServer = request.app.state.service
    caller, entry = await service.admit(request, name, Action.FORGET)
    limits = service.settings.limits
    body = await read(request, ForgetBody, limits.many(1))
    _check_many(caller, Action.FORGET, len(body.tickets), limits.batch, "tickets")
    _check_not_archived(entry.page)
    desk = await service.desk(entry)
    return _outcomes(await _done(desk, Forget([desk.signer.read(ticket) for ticket in body.tickets])))


async def _done(desk: Desk, work: Work) -> Any:
    """Do some work; what the study refuses is a problem."""
    try:
        return await desk.do(work)
    except TooLate as error:
        raise HTTPProblem(409, str(error), "late") from None
    except (ValueError, TypeError) as error:
        raise HTTPProblem(422, in_json(str(error)), "invalid") from None
    except EquipoiseError as error:
        raise HTTPProblem(409, str(error)) from None


def _check_many(caller: Caller, action: Action, many: int, most: int, what: str) -> None:
    if many > 1:
        check_may(caller, action)
    if many > most:
        raise HTTPProblem(413, f"{what} must be at most {most:,} in one request, got {many:,}")


def _check_not_archived(page: Page) -> None:
    if page.status == ARCHIVED:
        raise HTTPProblem(409, "the study is archived; resume it first", "archived")


def _is_not_to_be_tracked(request: Request, page: Page) -> bool:
    wished = request.headers.get("dnt") == "1" or request.headers.get("sec-gpc") == "1"
    return wished and page.poll is not None and bool(page.poll.get("respect_dnt"))


def _handed(caller: Caller, page: Page, desk: Desk | None, handed: Handed) -> Response:
    if caller.role is Role.ASK and (handed.reason is not None or not handed.tickets):
        return Response(status_code=204)
    found: dict[str, Any] = {"tickets": [], "reason": handed.reason}
    if desk is not None and handed.tickets:
        texts = desk.signer.write(ticket.number for ticket in handed.tickets)
        found = {
            "tickets": [
                {"ticket": text, "arm": plain_arm(ticket.arm)}
                for text, ticket in zip(texts, handed.tickets, strict=True)
            ]
        }
        if handed.reason is not None:
            found["reason"] = handed.reason
        if caller.role is Role.ASK:
            found |= _shown(page, desk, handed)
    return reply(found)


def _shown(page: Page, desk: Desk, handed: Handed) -> dict[str, Any]:
    """Return what a web page needs to show."""
    poll = page.poll or {}
    arm = text_of(handed.tickets[0].arm)
    show = {"title": arm, "text": "", "picture": None} | poll.get("arms", {}).get(arm, {})
    show["title"] = show["title"] or arm
    return {
        "question": poll.get("question", ""),
        "answer": poll.get("answer", _ANY_ANSWER),
        "show": show,
        "support": desk.support,
    }


def _outcomes(found: Outcomes) -> Response:
    refused = [{"index": each.place, "detail": in_json(each.detail)} for each in found.refused]
    return reply({"outcomes": found.each, "refused": refused})
