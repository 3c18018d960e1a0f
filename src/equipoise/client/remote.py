"""A study of a service, with the face of one here."""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Hashable, Iterable, Sequence
from http import HTTPStatus
from operator import itemgetter
from typing import Any, Final, SupportsFloat, cast, overload
from urllib.parse import quote

from equipoise.base.errors import EquipoiseError
from equipoise.base.inputs import MISSING, check_study_name, integer, number, number_of_seconds, shown
from equipoise.client.transport import Refused, Transport
from equipoise.ledger.ledger import TooLate
from equipoise.problem import Contrasts
from equipoise.result import Result
from equipoise.run.options import savable
from equipoise.store import Replica, wire

# The most tickets or answers of one request; more are divided.
_BATCH: Final = 10_000

_WORDS: Final = {
    "spent": "the budget is spent; set_budget() can raise it",
    "reached": "every mean is known to the precision that was asked for",
    "retired": "every arm is retired",
    "used up": "every population is used up",
    "paused": "the study is paused",
    "archived": "the study is archived",
    "answered": "this respondent has answered",
}


class RemoteTicket(tuple[str, Hashable]):
    """One pull handed out by a service: sample `arm` once, then tell the value. It is a tuple (text, arm)."""

    __slots__ = ()

    text = cast(str, property(itemgetter(0), doc="The ticket as the service signed it."))
    arm = cast(Hashable, property(itemgetter(1), doc="The arm's name."))

    def __repr__(self) -> str:
        return f"RemoteTicket(arm={self[1]!r})"

    def __getnewargs__(self) -> tuple[tuple[str, Hashable]]:
        return ((self[0], self[1]),)


class RemoteStudy:
    """
    A study of a service; made by `connect(...).study(name)`.

    Every call is a request, which is repeated while the service is away: asks have an idempotency key, and an answer
    counts once however often it is told. `result` fetches what was written since the last time, and folds it here.
    """

    def __init__(self, transport: Transport, name: str) -> None:
        check_study_name(name)
        self._transport = transport
        self.name = name
        self._path = f"/studies/{quote(name, safe='')}"
        self._made: dict[str, Any] | None = None
        try:
            self._described()
        except Refused as error:
            if error.status != HTTPStatus.FORBIDDEN:  # an *ask* key may ask and tell, and not read what a study is
                raise
        self._replica: Replica | None = None

    def __repr__(self) -> str:
        arms = "" if self._made is None else f": {len(self.arms):,} arms"
        return f"<RemoteStudy {self.name!r} at {self._transport.url}{arms}>"

    # ---- what can be read

    @property
    def arms(self) -> Sequence[Hashable]:
        """The names of the arms, in order."""
        return tuple(self._described()["names"])

    @property
    def support(self) -> Any:
        """The possible values."""
        found = self._described()["support"]
        return tuple(found) if isinstance(found, list) else found

    def _described(self) -> dict[str, Any]:
        if self._made is None:
            self._made = self._transport.get(self._path).json()
        return self._made

    def _progress(self) -> dict[str, Any]:
        return self._transport.get(f"{self._path}/progress").json()  # type: ignore[no-any-return]

    @property
    def status(self) -> str:
        """Whether it is open, paused or archived."""
        return str(self._progress()["status"])

    @property
    def budget(self) -> float | None:
        """How many samples may be asked for in all, or with costs how much they may cost; None for no limit."""
        return self._progress()["budget"]  # type: ignore[no-any-return]

    @property
    def precision(self) -> Any:
        """The precision that is asked for; None if there is none."""
        return self._progress()["precision"]

    @property
    def spent(self) -> float:
        """The cost of all tickets that were handed out and not forgotten; their number without costs."""
        return self._progress()["spent"]  # type: ignore[no-any-return]

    @property
    def remaining(self) -> float:
        """How many tickets may still be handed out, or with costs how much is left; infinite without a budget."""
        found = self._progress()["remaining"]
        return math.inf if found is None else found

    @property
    def in_flight(self) -> int:
        """How many tickets are neither answered nor declined nor forgotten."""
        return int(self._progress()["in_flight"])

    @property
    def done(self) -> bool:
        """Whether no further sample can be asked for. Tickets may still be in flight: their answers are taken."""
        return bool(self._progress()["done"])

    def result(self) -> Result:
        """Return what is known now; later samples do not change it."""
        try:
            return self._caught_up().result()
        except BaseException:
            self._replica = None  # in doubt, it is folded again
            raise

    def _caught_up(self) -> Replica:
        while True:
            after = -1 if self._replica is None else self._replica.turns
            rows = wire.unpack(self._transport.get(f"{self._path}/turns", after=after).content)
            if not rows and self._replica is not None:
                return self._replica
            if self._replica is None:
                self._replica = Replica.begin(rows[0])
                rows = rows[1:]
            self._replica.fold(rows)

    # ---- ask and tell

    @overload
    def ask(
        self, *, lease: float | None = ..., idempotency_key: str | None = ..., respondent: str | None = ...
    ) -> RemoteTicket: ...
    @overload
    def ask(
        self, m: int, *, lease: float | None = ..., idempotency_key: str | None = ..., respondent: str | None = ...
    ) -> list[RemoteTicket]: ...

    def ask(
        self,
        m: int | None = None,
        *,
        lease: float | None = None,
        idempotency_key: str | None = None,
        respondent: str | None = None,
    ) -> RemoteTicket | list[RemoteTicket]:
        """
        Return a ticket for the arm to sample next, or several.

        Parameters
        ----------
        m
            How many tickets to hand out at once; with `m`, a list is returned. Many are asked for in several requests.
        lease
            Seconds that the tickets are waited for; by default an hour, and ten minutes with an *ask* key.
        idempotency_key
            A text of the caller's choice, by which the ask is known if it is repeated; by default a random one.
        respondent
            Who is asked. Somebody who was asked before gets the same ticket again, or none if it was answered.

        Raises
        ------
        EquipoiseError
            Without `m`, when there is nothing left to ask for.
        """
        many = 1 if m is None else integer("m", m, least=1)
        key = secrets.token_urlsafe(16) if idempotency_key is None else idempotency_key
        body: dict[str, Any] = {}
        if lease is not None:
            body["lease"] = number_of_seconds("lease", lease)
        if respondent is not None:
            body["respondent"] = respondent
        tickets: list[RemoteTicket] = []
        while len(tickets) < many:
            count = min(many - len(tickets), _BATCH)
            found = self._transport.post(f"{self._path}/ask", body | {"count": count, "idempotency_key": key})
            found = found or {"tickets": [], "reason": None}  # with an *ask* key there is no body
            tickets += [RemoteTicket((each["ticket"], each["arm"])) for each in found["tickets"]]
            if len(found["tickets"]) < count:
                break
            key = _next_key(key)
        if m is not None:
            return tickets
        if not tickets:
            raise EquipoiseError(_WORDS.get(found["reason"], "there is nothing to ask for"))
        return tickets[0]

    def tell(
        self, ticket: RemoteTicket = MISSING, value: SupportsFloat = MISSING, *, cost: SupportsFloat | None = None
    ) -> None:
        """
        Take the value of a sample.

        Parameters
        ----------
        ticket
            The ticket that was answered. Telling the same value again changes nothing. A late answer is taken as long
            as the budget has a place for it.
        value
            The sample.
        cost
            What the sample really cost, in a study with costs.
        """
        self._tell([_answer(ticket, value, cost)])

    def tell_many(self, answers: Iterable[tuple[Any, ...]]) -> None:
        """
        Take many answers (ticket, value) or (ticket, value, cost), in order.

        Each is taken by itself; if any is refused, an error says which, and the others are taken.
        """
        given = [tuple(answer) for answer in answers]
        if any(len(answer) not in (2, 3) for answer in given):
            raise TypeError("tell_many takes pairs (ticket, value), or (ticket, value, cost)")
        self._tell([_answer(*answer) for answer in given])

    def decline(self, ticket: RemoteTicket, *, cost: SupportsFloat | None = None) -> None:
        """Record that a respondent declined to answer."""
        paid = {} if cost is None else {"cost": number("cost", cost)}
        self._tell([{"ticket": _text(ticket), "declined": True, **paid}])

    def forget(self, ticket: RemoteTicket | Iterable[RemoteTicket]) -> None:
        """Give back a ticket that will not be answered, or several, so that samples can be asked for again."""
        tickets = [ticket] if isinstance(ticket, RemoteTicket) else list(ticket)
        self._settle("forget", "tickets", list(map(_text, tickets)))

    def _tell(self, answers: list[dict[str, Any]]) -> None:
        self._settle("tell", "answers", answers)

    def _settle(self, what: str, name: str, given: list[Any]) -> None:
        """Send answers or tickets, in several requests where there are many; raise what is refused in the end."""
        refused: list[tuple[int, str]] = []
        outcomes: list[str] = []
        for start in range(0, len(given), _BATCH):
            found = self._transport.post(f"{self._path}/{what}", {name: given[start : start + _BATCH]})
            outcomes += found["outcomes"]
            refused += [(start + each["index"], each["detail"]) for each in found["refused"]]
        if refused:
            # What is wrong says more than what is late.
            refused.sort(key=lambda each: outcomes[each[0]] == "late")
            (first, detail), others = refused[0], len(refused) - 1
            which = "" if len(given) == 1 else f"ticket {first:,} of the call: "
            error = TooLate if outcomes[first] == "late" else ValueError
            raise error(f"{which}{detail}{f' (and {others:,} others)' if others else ''}")

    # ---- for the administrator

    def pause(self) -> None:
        """Hand out no more tickets for now."""
        self._transport.post(f"{self._path}/pause")

    def resume(self) -> None:
        """Hand out tickets again."""
        self._transport.post(f"{self._path}/resume")

    def archive(self) -> None:
        """Close the study: it can be read, and takes no more answers until it is resumed."""
        self._transport.post(f"{self._path}/archive")

    def set_budget(self, budget: float | None) -> None:
        """Change how many samples may be asked for in all, or what they may cost."""
        self._transport.post(f"{self._path}/extend", {"budget": budget})

    def set_precision(self, precision: Any, level: float = 0.95, interval: str = "fixed-width") -> None:
        """Change the precision at which an arm is no longer asked for, and which intervals decide; None for none."""
        given = precision.to_dict() if isinstance(precision, Contrasts) else savable(precision)
        self._transport.post(f"{self._path}/extend", {"precision": given, "level": level, "interval": interval})

    def delete(self) -> None:
        """Delete the study, with its log and its keys."""
        self._transport.delete(self._path)

    def list_keys(self) -> list[dict[str, Any]]:
        """Return the keys of the study: `id`, `role`, `label` and `created`; `key` only of those of role "ask"."""
        return list(self._transport.get(f"{self._path}/keys").json()["keys"])

    def rotate_key(self, identity: str) -> str:
        """Return another key in place of the one with this id; the old one is refused from now on."""
        return str(self._transport.post(f"{self._path}/keys/{quote(identity, safe='')}/rotate")["key"])

    def revoke_key(self, identity: str) -> None:
        """Remove the key with this id."""
        self._transport.delete(f"{self._path}/keys/{quote(identity, safe='')}")

    def make_key(self, role: str, label: str = "") -> str:
        """Return a new key of the study, of role "ask", "work" or "read"; it cannot be read again."""
        found = self._transport.post(f"{self._path}/keys", {"role": role, "label": label})
        return str(found["key"])


def _text(ticket: Any) -> str:
    if not isinstance(ticket, tuple) or len(ticket) != 2 or not isinstance(ticket[0], str):
        raise TypeError(f"ticket must be one that ask() returned, got {shown(ticket)}")
    return ticket[0]


def _answer(ticket: Any, value: Any, cost: Any = None) -> dict[str, Any]:
    if ticket is MISSING:
        raise TypeError("ticket is required")
    sample = number("value", value)
    if not math.isfinite(sample):
        raise ValueError(f"value must be a finite number, got {shown(value)}")
    paid = {} if cost is None else {"cost": number("cost", cost)}
    return {"ticket": _text(ticket), "value": sample, **paid}


def _next_key(key: str) -> str:
    """Return the idempotency key of the request that follows one, where an ask takes several."""
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
