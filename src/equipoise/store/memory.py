"""A study without a log, with the face of one."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from equipoise.store.header import Header
from equipoise.store.replica import Replica
from equipoise.store.turn import Turn
from equipoise.study import Study

T = TypeVar("T")


class Memory:
    """A study that lives as long as its process; turns cost nothing, and nobody else takes any."""

    def __init__(self, header: Header) -> None:
        seed = secrets.randbits(63) if header.seed is None else header.seed
        self.replica = Replica(replace(header, seed=seed), 0, b"")

    @property
    def header(self) -> Header:
        """What the study is made of."""
        return self.replica.header

    @property
    def study(self) -> Study:
        """The study."""
        return self.replica.study

    def turn(self, work: Callable[[Turn], T]) -> T:
        """Return what `work` returns, given a turn."""
        turn = Turn(self.replica)
        outcome = work(turn)
        turn.look()
        return outcome

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
