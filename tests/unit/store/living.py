"""Studies that live: all kinds of events, in an order that chance chooses, and logs that are edited by hand."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from equipoise.store import Header, Log, Turn
from equipoise.store.database import Row, link
from equipoise.store.log import connect
from equipoise.store.memory import Memory
from equipoise.strategies import Strategy, resolve

ARMS = ("calm", 7, ("rough", 2.5))


def header(strategy: str | Strategy = "auto", budget: float | None = 4000, **more: Any) -> Header:
    """What a study of three arms is made of."""
    arms, support, seed = more.pop("arms", ARMS), more.pop("support", None), more.pop("seed", 1)
    return Header(arms, resolve(strategy), support, budget, seed, **more)


def live(log: Log | Memory, steps: int, seed: int, value: Callable[[random.Random], float] | None = None) -> None:
    """Take turns of one or several steps, each of them of some kind."""
    rng = random.Random(seed)
    forgotten: list[int] = []

    def step(turn: Turn) -> None:
        waiting = turn.ledger.in_flight_ids().tolist()
        what = rng.random()
        if what < 0.45:
            turn.ask(rng.choice([1, 1, 5, 40]))
        elif what < 0.85 and waiting:
            taken = rng.sample(waiting, min(len(waiting), rng.choice([1, 3, 30])))
            values = [value(rng) if value else rng.choice([-0.0, rng.gauss(0, 3)]) for _ in taken]
            paid = turn.study.objective.costs is not None and rng.random() < 0.5
            if len(taken) == 1:
                turn.tell(taken[0], values[0], 0.5, cost=rng.choice([0.5, 1.0, 2.25]) if paid else math.nan)
            else:
                turn.tell_many(np.array(taken), np.array(values), np.full(len(taken), 0.5))
        elif what < 0.86 and waiting:
            turn.decline(waiting[-1])
        elif what < 0.88 and waiting:
            forgotten.append(waiting[-1])
            turn.forget(waiting[-1], "lost")
        elif what < 0.90 and forgotten:  # late
            turn.tell(forgotten.pop(), float(value(rng)) if value else 0.25)
        elif what < 0.92:
            turn.set_budget(rng.choice([12_000, 13_000]))
        elif what < 0.94 and not value:
            turn.moments(rng.choice(ARMS), 4, rng.gauss(0, 1), 2.0)
        elif what < 0.96:
            turn.retire(rng.randrange(2), rng.choice(["enough", "precise enough"]))
        elif what < 0.98:
            turn.reopen(rng.randrange(2))
        elif waiting:
            turn.failed(waiting[-1], "no answer\nand a second line")

    def several(turn: Turn) -> None:
        for _ in range(rng.choice([1, 1, 5, 20])):
            step(turn)

    for _ in range(steps // 6):
        log.turn(several)


def rows_of(where: str) -> list[Row]:
    """All rows of a log."""
    with Log(where, write=False) as log:
        return [row for page in log.pages() for row in page]


def by_hand(where: str, *statements: str, values: tuple[Any, ...] = ()) -> None:
    """What somebody does to a database: statements whose last parameter is the number of the study."""
    database = connect(where)
    database.find()
    for sql in statements:
        database.execute(sql, (*values, database._study))
    database.close()


def rewrite(where: str, turn: int, body: bytes) -> None:
    """Put another body into a row, and make all checksums fit: only what it says can be wrong then."""
    rows = rows_of(where)
    chain = rows[turn - 1].chain if turn else b""
    for row in rows[turn:]:
        row = row._replace(body=body) if row.turn == turn else row
        chain = link(chain, row.turn, row.id, row.at, row.body)
        sql = "update equipoise_turn set body = ?, chain = ? where turn = ? and study = ?"
        by_hand(where, sql, values=(row.body, chain, row.turn))
    by_hand(where, "update equipoise_study set chain = ? where study = ?", values=(chain,))
