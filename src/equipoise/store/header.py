"""What a study is made of, as the first row of its log says."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from equipoise.errors import EquipoiseError
from equipoise.inputs import shown
from equipoise.store.plain import UNREADABLE, dumps, loads
from equipoise.strategies import Strategy, Support, deserialise, serialise
from equipoise.study import Study
from equipoise.study.evidence import LEVEL
from equipoise.study.goal import Stopping

# What may be changed while a study runs, by an event.
_CHANGEABLE = ("budget", "precision", "level", "interval")


@dataclass(frozen=True)
class Header:
    """
    What a study is made of. Equal headers mean equal decisions, given the same answers.

    Attributes
    ----------
    arms, strategy, support, budget, populations
        As in `Study`; populations are sizes.
    seed
        Of samplers; None where it is not known yet.
    options
        `objective`, `weights` and `costs`, those that were given.
    precision, level, interval, guess, rounds
        As in `estimate`.
    about
        What is sampled, by strings and numbers, if somebody said so.
    salt
        Random bytes in hexadecimal, with which respondents and idempotency keys are hashed.
    """

    arms: Sequence[Any]
    strategy: Strategy
    support: Support
    budget: Any
    seed: int | None
    options: dict[str, Any] = field(default_factory=dict)
    populations: tuple[int | None, ...] | None = None
    precision: Any = None
    level: float = LEVEL
    interval: Stopping = "fixed-width"
    guess: Any = None
    rounds: int | None = None
    about: dict[str, Any] | None = None
    salt: str = field(default="", compare=False)

    def hashed(self, kind: str, text: str) -> bytes:
        """Return a text of a caller, such as a respondent, as a salted hash: nothing else is kept of it."""
        given = f"{kind}:{text}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(given, key=bytes.fromhex(self.salt), digest_size=16).digest()

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
            return Header(strategy=strategy, **known)
        except UNREADABLE as error:
            raise EquipoiseError(f"the header of its study cannot be read: {error}") from None

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
            raise ValueError(
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
