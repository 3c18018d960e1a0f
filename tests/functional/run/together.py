"""
Several drivers of one study at the same time, in processes of their own, some of which are killed.

A process of its own: it loads what is slow to load once and forks the drivers. It prints a JSON object for each study.
A driver begins its first sample, says so, and goes on when all others have begun theirs.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import equipoise as eq
from equipoise.run import seeds
from tests.logs import events, expire_leases, owners
from tests.waiting import HANG, until

ARMS = ("calm", "rough", "wild")
SEED = 5


def value(arm: str, seed: int) -> float:
    return random.Random(seed).gauss(10, 1 + 3 * ARMS.index(arm))


class Meeting:
    """A sampler whose first call in a process says that it is there, and waits for a file."""

    def __init__(self, folder: Path, name: str, hangs: bool = False) -> None:
        self.there, self.go, self._hangs = folder / f"{name} is there", folder / "go", hangs

    def __call__(self, arm: str, seed: int) -> float:
        if not self.go.exists() or self._hangs:
            self.there.touch()
            until(lambda: self.go.exists() and not self._hangs, "all others are there")
        return value(arm, seed)


def check_whole(where: str, budget: int) -> None:
    """All of the budget, each ticket asked for once and answered once, and each arm's samples its first ones."""
    lines = events(where)
    assert Counter(line.kind for line in lines) == {"ask": budget, "tell": budget}
    arm_of = {line.ticket: line.arm for line in lines if line.kind == "ask"}
    told = {line.ticket: line.value for line in lines if line.kind == "tell"}
    assert sorted(told) == sorted(arm_of) == list(range(budget))  # type: ignore[type-var]
    for place, arm in enumerate(ARMS):
        # The i-th ticket of an arm has its i-th sample, whoever took it.
        own = [told[ticket] for ticket in range(budget) if arm_of[ticket] == place]
        assert own == [value(arm, seeds.seed(seeds.base(SEED, arm), i)) for i in range(len(own))]


def drive(where: str, budget: int, sampler: Any, executor: Any) -> int:
    """In a child: one call of `estimate`; how many samples its result has."""
    options: dict[str, Any] = {"arms": ARMS, "seed": SEED, "store": where}
    if executor != "processes":
        return eq.estimate(sampler, budget, executor=executor, **options).samples
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        return eq.estimate(sampler, budget, executor=pool, **options).samples


def forked(budget: int, *studies: tuple[str, Any], executor: Any) -> int:
    """Return the id of a child that drives studies in threads, and fails unless each has all of its budget then."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with ThreadPoolExecutor(len(studies)) as pool:
                found = list(pool.map(lambda study: drive(study[0], budget, study[1], executor), studies))
            status = 0 if found == [budget] * len(studies) else 2
        finally:
            os._exit(status)
    return child


def ended(child: int) -> int:
    """Return how a child ended."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def at_once(where: str, folder: Path, drivers: int, executor: Any, budget: int) -> None:
    """Several drivers, none of which is killed."""
    folder.mkdir()
    samplers = [Meeting(folder, f"driver {number}") for number in range(drivers)]
    children = [forked(budget, (where, sampler), executor=executor) for sampler in samplers]
    for sampler in samplers:
        until(sampler.there.exists, "a driver is there")
    (folder / "go").touch()
    assert [ended(child) for child in children] == [0] * drivers
    check_whole(where, budget)


def crossed(where: str, folder: Path, executor: Any, budget: int) -> None:
    """Two drivers, each in two threads with a study each: in either process, one thread waits for either other one."""
    folder.mkdir()
    studies = [f"{where}-{name}" for name in ("one", "two")]
    samplers = {
        (study, number): Meeting(folder, f"{number} of {j}") for number in range(2) for j, study in enumerate(studies)
    }
    children = [
        forked(budget, *[(study, samplers[study, number]) for study in studies], executor=executor)
        for number in range(2)
    ]
    for sampler in samplers.values():
        until(sampler.there.exists, "a driver is there")
    (folder / "go").touch()
    assert [ended(child) for child in children] == [0, 0]
    for study in studies:
        check_whole(study, budget)


def killed(where: str, folder: Path, executor: Any, budget: int) -> None:
    """One driver that hangs is killed, and two others go on with its tickets."""
    folder.mkdir()
    victim, *others = [Meeting(folder, f"driver {number}", hangs=number == 0) for number in range(3)]
    dying = forked(budget, (where, victim), executor=executor)
    until(victim.there.exists, "the first driver hangs")
    dead = owners(where)
    assert len(dead) == 1
    children = [forked(budget, (where, other), executor=executor) for other in others]
    for other in others:
        until(other.there.exists, "a driver is there")
    os.kill(dying, signal.SIGKILL)
    assert ended(dying) == -signal.SIGKILL
    if "://" in where:  # PostgreSQL waits for half a minute; with a file it is seen at once
        expire_leases(where, dead)
    (folder / "go").touch()
    assert [ended(child) for child in children] == [0, 0]
    check_whole(where, budget)


def main(where: str, folder: Path) -> None:
    # What a run needs is loaded here, so that the forked ones begin at once.
    eq.estimate(value, 50, arms=ARMS, seed=SEED, store=f"{where}warm")
    check_whole(f"{where}warm", 50)
    for executor in (None, 2, "processes"):
        for drivers in (2, 4):
            name = f"{drivers}-{executor}"
            at_once(f"{where}{name}", folder / name, drivers, executor, budget=300)
            print(json.dumps({"drivers": drivers, "executor": executor}), flush=True)
    for executor in (None, 2):
        crossed(f"{where}crossed-{executor}", folder / f"crossed-{executor}", executor, budget=300)
        print(json.dumps({"crossed": executor}), flush=True)
    for executor in (None, 2):
        killed(f"{where}killed-{executor}", folder / f"killed-{executor}", executor, budget=200)
        print(json.dumps({"killed": executor}), flush=True)


if __name__ == "__main__":
    signal.alarm(int(2 * HANG))  # whoever hangs, this ends
    main(sys.argv[1], Path(sys.argv[2]))
