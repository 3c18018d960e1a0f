"""
Kill a run with 8 workers at moments that chance chooses, until it has ended in spite of that, and look after each.

A process of its own: it loads what is slow to load once and forks the runs, which it kills. It prints one JSON object.
A moment is a number of samples and acknowledgements that the run has told of; where it is when the signal arrives, in a
commit or between two, is chance's.
After each kill the log must hold everything that was acknowledged, once, and be a continuation of what it held before;
at the end the samples must be the first ones of each arm, as many as the budget, none missing and none twice.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections import defaultdict
from typing import Any

import equipoise as eq
from equipoise.run import seeds
from equipoise.store import Event, Log, Replica, differences, replay
from tests.logs import events, expire_leases
from tests.waiting import HANG

ARMS = ("a", "b", "c")
BUDGET = 1000


def value(arm: str, seed: int) -> float:
    return random.Random(seed).gauss(0, 1 + ARMS.index(arm))


def acknowledgement(result: eq.Result) -> list[Any]:
    return [result.counts.array.tolist(), [x.hex() for x in result.means.array.tolist()]]


def run(where: str, seed: int, pipe: int, lease: float | None) -> None:
    """In the child: the whole study, each sample and each acknowledgement written to the pipe."""

    def sample(arm: str, seed: int) -> float:
        os.write(pipe, b"sample\n")
        return value(arm, seed)

    def tell(progress: eq.Progress) -> None:
        os.write(pipe, (json.dumps(acknowledgement(progress.result)) + "\n").encode())

    os.write(pipe, b"begun\n")
    eq.estimate(sample, budget=BUDGET, arms=ARMS, seed=seed, store=where, executor=8, progress=tell, lease=lease)


def attempt(where: str, seed: int, acknowledged: int, lines: int, lease: float | None) -> tuple[bool, list[str]]:
    """
    Run until it ends or until it has written so many acknowledgements and then so many lines of any kind.

    Returns whether it was killed, and what it acknowledged.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            run(where, seed, writing, lease)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    said = b""
    while said.count(b"]\n") < acknowledged and (more := os.read(reading, 65536)):
        said += more
    lines += said.count(b"\n")
    while said.count(b"\n") < lines and (more := os.read(reading, 65536)):
        said += more
    os.kill(child, signal.SIGKILL)
    while more := os.read(reading, 65536):
        said += more
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        assert os.WEXITSTATUS(status) == 0, "the run failed"
    # A line that was cut off acknowledges nothing.
    return os.WIFSIGNALED(status), [line for line in said.decode().split("\n")[:-1] if line.endswith("]")]


def check(where: str, said: list[str], before: list[Event]) -> list[Event]:
    """The log after a kill: complete, free of doubles, a continuation."""
    with Log(where) as log:
        assert differences(log.study, replay(where).study) == []
        # Within a turn, which the server begins when it has noticed that the last writer is dead.
        lines = log.turn(lambda turn: list(log.events()))
    assert lines[: len(before)] == before
    told = [line for line in lines if line.kind == "tell"]
    assert len({line.ticket for line in told}) == len(told)
    # What was acknowledged last is the state after some turn, to the bit.
    if said:
        counts, means = json.loads(said[-1])
        assert len(told) >= sum(counts)
        assert [counts, means] in states(where)
    assert replay(where).study.remaining >= 0
    return lines


def states(where: str) -> list[list[Any]]:
    """What the study knew after each turn."""
    with Log(where, write=False) as log:
        first, *rows = (row for rows in log.pages() for row in rows)
    replica = Replica.begin(first)
    known = [acknowledgement(replica.study.result())]
    for row in rows:
        replica.fold([row])
        known.append(acknowledgement(replica.study.result()))
    return known


def check_end(where: str, seed: int, budget: int) -> None:
    """The log of a study that has ended: the first samples of each arm, as many as the budget."""
    lines, study = events(where), replay(where).study
    arm_of = {line.ticket: line.arm for line in lines if line.kind == "ask"}
    assert len(arm_of) == budget
    assert study.remaining == study.in_flight == 0
    found: defaultdict[Any, list[Any]] = defaultdict(list)
    for line in lines:
        if line.kind == "tell":
            found[arm_of[line.ticket]].append(line.value)
    assert sum(map(len, found.values())) == budget
    for place, values in found.items():
        arm = ARMS[place]
        first = [value(arm, seeds.seed(seeds.base(seed, arm), i)) for i in range(len(values))]
        assert sorted(values) == sorted(first)


def main(where: str, moments: int, seed: int) -> None:
    # What a run needs is loaded here, so that the forked ones begin at once.
    eq.estimate(value, budget=50, arms=ARMS, seed=seed, store=f"{where}warm")
    check_end(f"{where}warm", seed, budget=50)
    chance = random.Random(seed)
    kills = studies = acknowledged = 0
    while kills < moments:
        name = f"{where}{studies}"
        studies += 1
        lines: list[Event] = []
        killed = True
        while killed and kills < moments:
            # With a lease samples go out one by one, and there is a commit for nearly each; without, in chunks.
            lease = chance.choice([None, HANG])
            more = int(chance.choice([10, 100, 400]) * chance.random())
            killed, said = attempt(name, seed, chance.choice([0, 2]), more, lease)
            kills += killed
            acknowledged += len(said)
            if lines or said or started(name):
                lines = check(name, said, lines)
                expire_leases(name)
        if killed:
            eq.estimate(value, budget=BUDGET, arms=ARMS, seed=seed, store=name, executor=8)
        check_end(name, seed, BUDGET)
    print(json.dumps({"kills": kills, "studies": studies, "acknowledgements": acknowledged}))


def started(where: str) -> bool:
    """Whether there is a study yet."""
    try:
        Log(where, write=False).close()
    except ValueError:
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
