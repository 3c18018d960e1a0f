"""
A driver in a process of its own, which can be killed.

It samples once for each byte that it reads, and without waiting after the last one; each value is written down before
it is told.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import equipoise as eq
from tests.serving import ADMIN
from tests.waiting import HANG

# Seconds that a ticket of a driver over HTTP is waited for. One of an own driver is waited for as long as it lives.
LEASE = 5.0


def main(how: str, place: str, name: str, sampled: str) -> None:
    """Sample for a study, by the URL of a service or that of a database."""

    def sample(arm: str, seed: int) -> float:
        os.read(sys.stdin.fileno(), 1)
        value = random.Random(seed).gauss(0, 1)
        with Path(sampled).open("a") as file:
            file.write(f"{value!r}\n")
        return value

    if how == "http":
        with eq.connect(place, ADMIN, patience=HANG) as service:
            service.study(name).run(sample, executor=2, lease=LEASE)
        return
    with eq.open(f"{place}#{name}") as study:
        arms, budget = study.arms, study.budget
    eq.estimate(sample, arms=arms, budget=budget, store=f"{place}#{name}", executor=2)


if __name__ == "__main__":
    main(*sys.argv[1:])
