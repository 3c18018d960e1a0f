"""
Writers of a shared study that record what they do, and go on where they were when they are started again.

A visitor asks and tells with `open`, one call at a time. What it was doing when it died it finds in its history: it
repeats the call that was not answered, an ask with the same idempotency key, and tells what it was asked for. A driver
is `estimate`; it needs no memory.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import patch

import equipoise as eq
from equipoise.store import Log, Turn, snapshots
from tests.functional.store import history
from tests.functional.store.history import Recorder
from tests.waiting import HANG, pause

ARMS = ("a", "b", "c")
SEED = 5
# Seconds that a driver is waited for; far less than usual, so that those of a dead one on a server are taken over soon.
LEASE = 2.0
KINDS = ("visitor", "threads", "here", "workers", "processes")

_recorder: Recorder
_thread = threading.local()
_turn = Log.turn


def value_of(arm: str, seed: int) -> float:
    """Return a driver's sample."""
    return random.Random(seed).gauss(0, 1 + ARMS.index(arm))


def answer_of(number: int) -> float:
    """Return a visitor's answer to a ticket."""
    return random.Random(number).gauss(0, 2)


def view_of(result: eq.Result) -> str:
    """Return what a result says, to the bit."""
    return json.dumps([result.counts.array.tolist(), [mean.hex() for mean in result.means.array.tolist()]])


def sample(arm: str, seed: int) -> float:
    """Sample an arm: most samples are quick enough to be taken within a turn, and some are not."""
    _recorder.sample(arm, seed, getattr(_thread, "inside", False))
    pause(0.008 if seed % 8 == 0 else 0.001)
    return value_of(arm, seed)


def turn(log: Log, work: Callable[[Turn], Any]) -> Any:
    """Take a turn, in which samplers know that they are."""

    def noted(turn: Turn) -> Any:
        _thread.inside = True
        try:
            return work(turn)
        finally:
            _thread.inside = False

    return _turn(log, noted)


# ---- visitors


class Visitor:
    """One visitor, who owns the tickets that it was given until it has told or forgotten them."""

    def __init__(self, name: str, study: eq.SharedStudy, path: Path, recorder: Recorder, seed: int) -> None:
        self._name, self._study, self._recorder = name, study, recorder
        self._chance = random.Random(f"{name} {seed}")
        before = [call for call in history.calls(path) if call.writer == name]
        self._next = 1 + max((call.number for call in before), default=-1)
        self._own: dict[int, str] = {}
        for call in before:
            if call.end is not None:
                self._settle(call.op, call.args, call.reply)
        for call in before:
            if call.end is None:
                self._call(call.op, call.args, call.number)

    def _settle(self, op: str, args: Any, reply: Any) -> None:
        if op == "ask":
            self._own.update((number, arm) for number, arm in reply)
        elif op in ("tell", "forget"):
            self._own.pop(args[0] if op == "tell" else args, None)

    def _call(self, op: str, args: Any, number: int | None = None) -> Any:
        if number is None:
            number, self._next = self._next, self._next + 1
        self._recorder.begin(self._name, number, op, args)
        reply = self._perform(op, args, number)
        self._recorder.end(self._name, number, reply)
        self._settle(op, args, reply)
        return reply

    def _perform(self, op: str, args: Any, number: int) -> Any:
        study = self._study
        match op:
            case "ask":
                return study.ask(args, idempotency_key=f"{self._name} {number}")
            case "tell":
                study.tell(self._ticket(args[0]), args[1])
                return True
            case "forget":
                study.forget(self._ticket(args))
                return True
            case "result":
                return view_of(study.result())
        return getattr(study, op)

    def _ticket(self, number: int) -> eq.Ticket:
        return eq.Ticket((number, self._own[number]))

    def work(self) -> None:
        """Ask, tell, forget and look, until the study is done."""
        while True:
            chance = self._chance.random()
            if self._own and chance < 0.5:
                number = self._chance.choice(sorted(self._own))
                if chance < 0.04:
                    self._call("forget", number)
                else:
                    self._call("tell", [number, answer_of(number)])
            elif chance < 0.8:
                if not self._call("ask", self._chance.choice([1, 1, 2, 5])) and not self._own:
                    return
            else:
                self._call(self._chance.choice(["remaining", "in_flight", "result"]), None)


def visit(where: str, path: Path, recorder: Recorder, seed: int, threads: int) -> None:
    """Let several visitors work on one `SharedStudy`, each in a thread."""
    wrong: list[BaseException] = []

    def work(name: str, study: eq.SharedStudy) -> None:
        try:
            Visitor(name, study, path, recorder, seed).work()
        except BaseException as error:
            wrong.append(error)

    with eq.open(where) as study:
        workers = [threading.Thread(target=work, args=(f"{path.stem}.{j}", study)) for j in range(threads)]
        for each in workers:
            each.start()
        for each in workers:
            each.join()
    if wrong:
        raise wrong[0]


# ---- drivers


def drive(where: str, path: Path, recorder: Recorder, life: str, budget: int, executor: Any) -> None:
    """Estimate; whatever `progress` says was acknowledged is recorded as seen."""
    numbers = itertools.count(sum(1 for _ in history.lines(path)))

    def seen(view: str) -> None:
        number = next(numbers)
        recorder.begin(life, number, "seen", None)
        recorder.end(life, number, view)

    result = eq.estimate(
        sample,
        budget,
        arms=ARMS,
        seed=SEED,
        store=where,
        executor=executor,
        progress=lambda progress: seen(view_of(progress.result)),
    )
    seen(view_of(result))


def write(kind: str, where: str, path: Path, life: str, budget: int, seed: int) -> None:
    """Be a writer of a kind until the study is done; what fails for want of a server is tried again."""
    global _recorder
    _recorder = recorder = Recorder(path, life)
    recorder.write(started=kind)
    works: dict[str, Callable[[], None]] = {
        "visitor": lambda: visit(where, path, recorder, seed, 1),
        "threads": lambda: visit(where, path, recorder, seed, 3),
        "here": lambda: drive(where, path, recorder, life, budget, None),
        "workers": lambda: drive(where, path, recorder, life, budget, 2),
        "processes": lambda: _drive_in_processes(where, path, recorder, life, budget),
    }
    estimate = sys.modules["equipoise.run.estimate"]
    # Snapshots every few turns.
    with (
        patch.object(estimate, "DRIVER_SECONDS", LEASE),
        patch.object(Log, "turn", turn),
        patch.object(snapshots, "due", lambda tail, replica: tail > 4000),
    ):
        last = history.now() + HANG
        while True:
            try:
                works[kind]()
                break
            except eq.EquipoiseError as error:
                recorder.write(failed=str(error))
                if history.now() > last:
                    raise
                pause(0.2)
    recorder.write(ended=kind)


def _drive_in_processes(where: str, path: Path, recorder: Recorder, life: str, budget: int) -> None:
    with ProcessPoolExecutor(2) as pool:
        drive(where, path, recorder, life, budget, pool)
