"""
Histories: what each writer of a study called, when, and what it was answered.

A history is a file of JSON lines, each written at once with one system call, so that the threads and the children of a
writer can share it and a kill leaves at most its last line out. Seconds are those of the machine's monotonic clock,
which all of its processes share; a sample also has the time of day, as the rows of a log do.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Call:
    """
    One call of a writer; repeated, after a failure or a death, as the same call.

    Attributes
    ----------
    writer, number
        Who called, and the number of the call among its calls.
    op, args
        What was called.
    begin, end
        When it was called first and when it was answered; None for one that was not.
    reply
        The answer.
    """

    writer: str
    number: int
    op: str
    args: Any
    begin: float
    end: float | None = None
    reply: Any = None


@dataclass(frozen=True)
class Sample:
    """One call of a sampler, by the life of the driver that made it, within a turn or not."""

    life: str
    arm: str
    seed: int
    begin: float
    time_of_day: float
    inside: bool = False


class Recorder:
    """
    Writes the history of a writer.

    Parameters
    ----------
    path
        The file; what it holds is continued.
    life
        A name for this life of the writer, which the next one does not have.
    """

    def __init__(self, path: Path, life: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._life = life

    def write(self, **line: Any) -> None:
        """Write one line."""
        text = json.dumps({"at": time.monotonic(), "life": self._life, **line}) + "\n"
        os.write(self._file, text.encode())

    def begin(self, writer: str, number: int, op: str, args: Any) -> None:
        """Write that a call begins."""
        self.write(writer=writer, number=number, op=op, args=args)

    def end(self, writer: str, number: int, reply: Any) -> None:
        """Write that it was answered."""
        self.write(writer=writer, number=number, reply=reply)

    def sample(self, arm: str, seed: int, inside: bool) -> None:
        """Write that a sample is taken, within a turn or not."""
        self.write(arm=arm, seed=seed, time_of_day=time.time(), inside=inside)


def now() -> float:
    """Return the time by the clock of histories."""
    return time.monotonic()


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Iterate over the lines of a history; the last one may have been cut off."""
    if path.exists():
        for line in path.read_text().split("\n")[:-1]:
            yield json.loads(line)


def calls(path: Path) -> list[Call]:
    """Return the calls of a history, in the order in which they were made first."""
    found: dict[tuple[str, int], Call] = {}
    for line in lines(path):
        key = line.get("writer", ""), line.get("number", -1)
        if "op" in line and key not in found:
            found[key] = Call(line["writer"], line["number"], line["op"], line["args"], line["at"])
        elif "reply" in line and found[key].end is None:
            found[key] = replace(found[key], end=line["at"], reply=line["reply"])
    return list(found.values())


def samples(path: Path) -> list[Sample]:
    """Return the samples of a history."""
    return [
        Sample(line["life"], line["arm"], line["seed"], line["at"], line["time_of_day"], line["inside"])
        for line in lines(path)
        if "seed" in line
    ]
