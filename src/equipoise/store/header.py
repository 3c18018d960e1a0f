"""The header of a log: the options of its study."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from equipoise.base.errors import InvalidInput, StoreDamaged
from equipoise.base.inputs import integer, printable, probability, shown
from equipoise.ledger.goal import check_stopping
from equipoise.ledger.goal import precision as precision_of
from equipoise.problem.objective import numbers_by_arm
from equipoise.store.plain import UNREADABLE, dumps, loads
from equipoise.strategies import deserialise, serialise
from equipoise.study import Study
from equipoise.study.options import StudyOptions

# What may be changed while a study runs, by an event.
_CHANGEABLE = ("budget", "precision", "level", "interval")


@dataclass(frozen=True)
class Header(StudyOptions):
    """
    The options of a study as its log begins with them.

    Attributes
    ----------
    salt
        Random bytes in hexadecimal, with which respondents and idempotency keys are hashed.
    """

    salt: str = field(default="", compare=False)

    @staticmethod
    def of(options: StudyOptions) -> Header:
        """Return a header with these options."""
        return Header(**{each.name: getattr(options, each.name) for each in fields(StudyOptions)})

    def hashed(self, kind: str, text: str) -> bytes:
        """Return a text of a caller, such as a respondent, as a salted hash: nothing else is kept of it."""
        given = f"{kind}:{text}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(given, key=bytes.fromhex(self.salt), digest_size=16).digest()

    @property
    def identity(self) -> str:
        """By what this study is known from all others; empty without a log."""
        return self.hashed("identity", "").hex() if self.salt else ""

    def to_json(self) -> str:
        """Return the header as JSON, from which `from_json` makes an equal one."""
        saved = serialise(self.strategy)
        known = {each.name: getattr(self, each.name) for each in fields(self)}
        return dumps(known | {"strategy": [saved["name"], saved["parameters"]]})

    @staticmethod
    def from_json(text: str) -> Header:
        """Return the header that `to_json` wrote."""
        try:
            known = loads(text)
            name, parameters = known.pop("strategy")
            strategy = deserialise({"name": name, "parameters": parameters})
            header = Header(strategy=strategy, **known)
            header._check()
            return header
        except UNREADABLE as error:
            raise unreadable(error) from None

    def _check(self) -> None:
        """Refuse what no call can have given; what is left to `Study` is checked when that is made."""
        if not isinstance(self.arms, list | tuple | range):
            raise TypeError(f"arms must be names, got {shown(self.arms)}")
        for name, least in (("seed", 0), ("rounds", 1)):
            if getattr(self, name) is not None:
                integer(name, getattr(self, name), least=least)
        for name in ("options", "about"):
            if not isinstance(getattr(self, name) or {}, Mapping):
                raise TypeError(f"{name} must be a mapping, got {shown(getattr(self, name))}")
        check_goal(self.precision, self.level, self.arms, self.interval, self.options)
        if self.guess is not None:
            numbers_by_arm("guess", self.guess, self.arms)
        bytes.fromhex(self.salt)

    def check_same(self, given: Header) -> None:
        """Refuse to continue this study as another one; what is None in the other one is left as it is."""
        for each in fields(Header):
            was, now = getattr(self, each.name), getattr(given, each.name)
            if not each.compare or each.name in _CHANGEABLE or was == now:
                continue
            if each.name == "arms" and tuple(was) == tuple(now):
                continue
            if each.name in ("seed", "guess", "rounds", "about") and now is None:
                continue
            name = each.name
            if name in ("options", "about"):  # what was passed is in there, by its name
                was, now = was or {}, now or {}
                name = next(key for key in was | now if was.get(key) != now.get(key))
                was, now = was.get(name), now.get(name)
            raise InvalidInput(
                f"{name} must be {shown(was)} to continue the study in the store, got {shown(now)}; "
                "change it back or use another store"
            )

    def study(self) -> Study:
        """Return the study before anything has happened."""
        return Study(
            self.arms,
            budget=self.budget,
            strategy=self.strategy,
            support=self.support,
            populations=self.populations,
            **self.options,
        )


def check_goal(precision: Any, level: Any, arms: Sequence[Any], interval: Any, options: Mapping[str, Any]) -> None:
    """Refuse a precision, level or interval that no call can have asked for."""
    probability("level", level)
    check_stopping(interval)
    if precision is not None:
        precision_of(precision, level, arms, interval, options.get("objective", math.inf))


def unreadable(error: Exception) -> StoreDamaged:
    """Return what is said of a header that no version of equipoise has written."""
    said = " ".join(str(error).split())[:300] or type(error).__name__
    return StoreDamaged(f"the header of its study cannot be read: {printable(said)}")
