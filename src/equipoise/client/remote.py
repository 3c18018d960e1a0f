"""A study of a service: ask and tell over HTTP."""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from http import HTTPStatus
from operator import itemgetter
from typing import Any, Final, SupportsFloat, cast, overload
from urllib.parse import quote

from equipoise.base.errors import EquipoiseError, InvalidInput, Refused
from equipoise.base.inputs import MISSING, check_study_name, integer, number, number_of_seconds, shown
from equipoise.base.keywords import suggests_keywords
from equipoise.client.transport import Transport
from equipoise.ledger.answers import read_answers
from equipoise.ledger.ledger import TooLate
from equipoise.problem import Contrasts
from equipoise.result import Result
from equipoise.run.drive import DriverOptions
from equipoise.run.remote_driver import Source, sample
from equipoise.store import Replica, wire
from equipoise.study import StudyLike
from equipoise.study.options import savable

# The most tickets or answers of one request; more are divided.
_BATCH: Final = 10_000

_WORDS: Final = {
    "spent": "the budget is spent; set_budget() can raise it",
    "reached": "every mean is known to the precision that was asked for",
    "retired": "every arm is retired",
    "used up": "every population is used up",
    "paused": "the study is paused",
    "archived": "the study is archived",
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


class RemoteStudy(StudyLike[RemoteTicket]):
    """
    A study of a service; made by `connect(...).study(name)`.

    Every call is a request, which is repeated while the service is unavailable: asks have an idempotency key, and an
    answer counts once however often it is told. `result` fetches the turns since the last time, and folds them here.
    `run` samples for the study with your functions.
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
        return tuple(self._described()["names"])

    @property
    def support(self) -> Any:
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
        return self._progress()["budget"]  # type: ignore[no-any-return]

    @property
    def precision(self) -> Any:
        """The precision that is asked for; None if there is none."""
        return self._progress()["precision"]

    @property
    def spent(self) -> float:
        return self._progress()["spent"]  # type: ignore[no-any-return]

    @property
    def remaining(self) -> float:
        found = self._progress()["remaining"]
        return math.inf if found is None else found

    @property
    def in_flight(self) -> int:
        return int(self._progress()["in_flight"])

    @property
    def done(self) -> bool:
        return bool(self._progress()["done"])

    @property
    def retired(self) -> tuple[Hashable, ...]:
        return tuple(self._transport.get(self._path).json()["retired"])

    def result(self) -> Result:
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
            Who is asked, for one ticket: a respondent who was asked before gets the same one again, but with an *ask*
            key none once it is answered.

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
        self._tell_together([_answer(ticket, value, cost)])

    def tell_many(
        self,
        answers: Iterable[
            tuple[RemoteTicket, SupportsFloat] | tuple[RemoteTicket, SupportsFloat, SupportsFloat | None]
        ],
    ) -> None:
        texts, names, values, costs = read_answers(answers)
        if not texts:
            return
        if len(texts) > _BATCH:
            raise InvalidInput(f"answers must be at most {_BATCH:,} to be told all or none, got {len(texts):,}")
        paid = [None] * len(texts) if costs is None else [None if math.isnan(cost) else cost for cost in costs.tolist()]
        tickets = zip(texts, names, strict=True)
        self._tell_together(list(map(_answer, tickets, values.tolist(), paid)))

    def _tell_together(self, answers: list[dict[str, Any]]) -> None:
        self._transport.post(f"{self._path}/tell", {"answers": answers, "atomic": True})

    def decline(self, ticket: RemoteTicket, *, cost: SupportsFloat | None = None) -> None:
        paid = {} if cost is None else {"cost": number("cost", cost)}
        self._settle("tell", "answers", [{"ticket": _text(ticket), "declined": True, **paid}])

    def forget(self, ticket: RemoteTicket | Iterable[RemoteTicket]) -> None:
        """Give back a ticket that will not be answered, or several, so that samples can be asked for again."""
        tickets = [ticket] if isinstance(ticket, RemoteTicket) else list(ticket)
        self._settle("forget", "tickets", list(map(_text, tickets)))

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

    # ---- sampling

    @suggests_keywords
    def run(
        self,
        samplers: Mapping[Any, Callable[..., Any]] | Callable[..., Any],
        *,
        executor: int | Executor | Any | None = None,
        in_flight: int | None = None,
        retries: int = 0,
        lease: float | None = None,
        max_seconds: float | None = None,
        seed: int = 0,
    ) -> Result:
        """
        Sample with your functions until the study hands out no more tickets.

        The service decides which arm is sampled and when to stop. Any number of processes can sample for one study.

        Parameters
        ----------
        samplers
            A mapping from the names of all arms to functions, or one function of an arm's name, as in `estimate`. The
            seed that a function may take depends on `seed` and the ticket alone.
        executor
            Where to sample: None for this thread, a number of threads, an executor or a Dask client, as in `estimate`.
        in_flight
            The most samples in flight.
        retries
            How often to repeat a sample that failed.
        lease
            Seconds after which the service gives up a ticket without an answer; by default an hour.
        max_seconds
            Start no more samples after this many seconds; those in flight are waited for.
        seed
            Decides the samplers' seeds.

        Returns
        -------
        Result
            What the study knows at the end.

        Raises
        ------
        EquipoiseError
            If a sampler fails more often than `retries`, or the service or the executor fails. Tickets without an
            answer are given back.
        """
        settings = DriverOptions.checked(max_seconds, retries, lease, in_flight)
        source = Source(self.arms, lambda m, seconds: self.ask(m, lease=seconds), self._tell_each, self.forget)
        sample(source, samplers, settings, executor, integer("seed", seed, least=0))
        return self.result()

    def _tell_each(self, answers: list[tuple[RemoteTicket, float]]) -> None:
        """Tell answers, each by itself; raise what is refused, or TooLate, after the others are taken."""
        self._settle("tell", "answers", [_answer(ticket, value) for ticket, value in answers])

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

    def retire(self, arm: Hashable) -> None:
        self._transport.post(f"{self._path}/retire", {"arm": arm})

    def reopen(self, arm: Hashable) -> None:
        self._transport.post(f"{self._path}/reopen", {"arm": arm})

    def set_budget(self, budget: float | None) -> None:
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
        raise InvalidInput(f"value must be a finite number, got {shown(value)}")
    paid = {} if cost is None else {"cost": number("cost", cost)}
    return {"ticket": _text(ticket), "value": sample, **paid}


def _next_key(key: str) -> str:
    """Return the idempotency key of the request that follows one, where an ask takes several."""
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
