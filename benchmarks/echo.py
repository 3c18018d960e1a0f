"""
Endpoints that parse and return the bodies of a service's `ask` and `tell`, and do nothing else.

Run it with `python benchmarks/echo.py PORT (typed | plain)`. The same models, framework and server as equipoise's: as
its routes read and write bodies (`plain`), or as FastAPI does it by itself from annotations (`typed`).
`benchmarks/service.py` compares with both.
"""

from __future__ import annotations

import sys

import uvicorn
from fastapi import FastAPI, Request, Response
from pydantic_core import to_json

from equipoise.server.bodies import AskBody, HandedTicket, TellBody, TicketOutcomes, Tickets

TICKET = "M3EVcwAAAADBZZlMEYjUKXVdPAmTouAc"
PATH = "/api/v1/studies/{name}"


def typed() -> FastAPI:
    """Return an app whose bodies FastAPI reads and writes."""
    app = FastAPI()

    @app.post(f"{PATH}/ask", response_model_exclude_none=True)
    async def ask(name: str, body: AskBody) -> Tickets:
        return Tickets(tickets=[HandedTicket(ticket=TICKET, arm="0") for _ in range(body.count)])

    @app.post(f"{PATH}/tell")
    async def tell(name: str, body: TellBody) -> TicketOutcomes:
        return TicketOutcomes(outcomes=["taken"] * len(body.answers), refused=[])

    return app


def plain() -> FastAPI:
    """Return an app that reads and writes bodies with Pydantic."""
    app = FastAPI()

    @app.post(f"{PATH}/ask", response_model=None)
    async def ask(request: Request, name: str) -> Response:
        body = AskBody.model_validate_json(await request.body())
        return _reply({"tickets": [{"ticket": TICKET, "arm": "0"} for _ in range(body.count)]})

    @app.post(f"{PATH}/tell", response_model=None)
    async def tell(request: Request, name: str) -> Response:
        body = TellBody.model_validate_json(await request.body())
        return _reply({"outcomes": ["taken"] * len(body.answers), "refused": []})

    return app


def _reply(content: object) -> Response:
    return Response(to_json(content), media_type="application/json")


if __name__ == "__main__":
    uvicorn.run(
        {"typed": typed, "plain": plain}[sys.argv[2]](), port=int(sys.argv[1]), access_log=False, log_level="error"
    )
