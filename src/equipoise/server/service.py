"""What one process of a service holds: the registry, desks, followers, and who is let in."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, NamedTuple, TypeVar

from starlette.requests import HTTPConnection

from equipoise.base.errors import EquipoiseError, InvalidInput
from equipoise.base.inputs import shown
from equipoise.server import access
from equipoise.server.access import Action, Administrator, Caller, Role
from equipoise.server.follow import Broadcast, Follower, end_of
from equipoise.server.limits import Buckets, Lookup
from equipoise.server.metrics import Gauges, Metrics
from equipoise.server.problems import HTTPProblem, deleted, unavailable
from equipoise.server.registry import Key, Page, Registry
from equipoise.server.settings import FRESH, Rate, Settings
from equipoise.server.turn_queue import Count, Desk
from equipoise.store import Log, Replica
from equipoise.store.database import Missing

T = TypeVar("T")

_SAFE: Final = ("GET", "HEAD", "OPTIONS")
# What pages of other origins may do (`edge.py`).
_SHARED: Final = (Action.ASK, Action.TELL)
# Where a request has the address of its connection, whatever a proxy says of whom it asks for.
PEER: Final = "equipoise.peer"
_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="equipoise"'}


class StudyEntry(NamedTuple):
    """A study and its keys by id, as the database had them at some time."""

    page: Page
    keys: dict[str, Key]
    at: float


class StudyServer:
    """
    One process of a service.

    Parameters
    ----------
    settings
        What it is made of.
    clock
        Seconds, by which what is remembered grows old.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self.registry = Registry(settings.db, settings.limits.connections, settings.patience)
        self.administrator = Administrator(self.registry, settings.admin_token)
        self.buckets = Buckets(clock)
        self.metrics, self.count = Metrics(), Count()
        self.stopping = False
        self._clock = clock
        self._entries: dict[str, StudyEntry] = {}
        # By the numbers of studies; those that were used last are at the end.
        self._desks: OrderedDict[int, Desk] = OrderedDict()
        self._followers: OrderedDict[int, Follower] = OrderedDict()
        self._broadcasts: dict[int, Broadcast] = {}
        # What was seen of studies that are not open, after which turn.
        self._seen: dict[int, tuple[int, Any]] = {}
        self._loading: Counter[str] = Counter()
        self._owners = Lookup(lambda ids: self.in_thread(lambda: self.registry.owners(ids)))
        self._opening, self._doubting = asyncio.Lock(), asyncio.Lock()
        self.creating = asyncio.Lock()

    # ---- who is let in

    async def admit(self, request: HTTPConnection, name: str, action: Action) -> tuple[Caller, StudyEntry]:
        """Return who sends a request about a study, and the study; refuse who may not do this."""
        token = bearer(request)
        if token is None or access.id_of(token) is None:
            caller = await self.known_person(request, name)
            entry = await self.entry(name)
            if entry is None:
                raise HTTPProblem(404, f"there is no study {shown(name)}")
        else:
            caller, entry = await self._with_key(request, token, name)
        check_may(caller, action)
        if action in _SHARED:
            _check_origin(request, entry.page)
        return caller, entry

    async def admit_administrator(self, request: HTTPConnection) -> None:
        """Refuse everybody but the administrator."""
        token = bearer(request)
        if token is not None and access.id_of(token) is not None:
            raise HTTPProblem(403, "this needs the administrator's token, not a key of a study")
        check_may(await self.known_person(request), Action.MANAGE)

    async def known_person(self, request: HTTPConnection, name: str | None = None) -> Caller:
        """Return the administrator, by a token or a session; or who looks at a demonstration."""
        token = bearer(request)
        if token is not None:
            if self.is_administrator(request, token):
                return Caller(Role.ADMIN)
            raise HTTPProblem(401, "the token is not valid", headers=_CHALLENGE)
        cookie = request.cookies.get(access.COOKIE)
        if cookie is not None and await self.in_session(cookie):
            safe = request.scope.get("method", "GET") in _SAFE
            if not safe and not self.administrator.is_csrf(cookie, request.headers.get(access.CSRF_HEADER)):
                raise HTTPProblem(403, "the request has no valid CSRF token; reload the page", "csrf")
            return Caller(Role.ADMIN)
        if self.settings.demo is not None and name == self.settings.demo:
            return Caller(Role.READ)
        raise HTTPProblem(401, "a token or a key is required: Authorization: Bearer ...", headers=_CHALLENGE)

    async def in_session(self, cookie: str | None) -> bool:
        """Return whether a cookie holds a session that no process has ended."""
        if not self.administrator.in_session(cookie):
            return False
        await self.in_thread(self.administrator.recall)
        return self.administrator.in_session(cookie)

    def is_administrator(self, request: HTTPConnection, token: str) -> bool:
        """Return whether this is the administrator's token; too many wrong ones from an address are a problem."""
        right = self.administrator.matches(token)
        if not right:
            self._guessed(request)
        return right

    def _guessed(self, request: HTTPConnection) -> None:
        """
        Count a wrong token or key.

        Right ones are not counted and always pass, so that nobody can lock others out who share their address. The
        address is that of the connection: what a request says of itself can be another one each time.
        """
        address = request.scope.get(PEER) or (request.client.host if request.client else "")
        self.buckets.take(("guesses", _network(address)), self.settings.limits.guesses)

    async def _with_key(self, request: HTTPConnection, token: str, name: str) -> tuple[Caller, StudyEntry]:
        identity = access.id_of(token) or ""
        entry = self._entries.get(name)
        if entry is not None and identity in entry.keys:
            entry = await self.entry(name)
        elif access.may_be_id(identity) and await self._owners.find(identity) == name:
            entry = await self._load_now(name)  # another process has made it a moment ago, or nobody has used it here
        key = entry.keys.get(identity) if entry is not None else None
        # The same for a study that does not exist, so that nobody learns which do.
        if entry is None or key is None or not access.matches(key, token):
            self._guessed(request)
            raise HTTPProblem(401, "the key is not valid for this study", headers=_CHALLENGE)
        caller = Caller(Role(key.role), key)
        self.buckets.take(key.id, self._rate(caller.role))
        return caller, entry

    def _rate(self, role: Role) -> Rate:
        limits = self.settings.limits
        return {Role.ASK: limits.ask, Role.WORK: limits.work}.get(role, limits.read)

    # ---- studies

    async def entry(self, name: str) -> StudyEntry | None:
        """Return a study by its name, as it was a moment ago; None where there is none."""
        found = self._entries.get(name)
        if found is None:
            return await self._load(name)
        if self._clock() - found.at > FRESH and name not in self._loading:  # else somebody else loads it
            return await self._load(name)
        return found

    async def _load_now(self, name: str) -> StudyEntry | None:
        """Return a study as it is now."""
        now = self._clock()
        async with self._doubting:  # so that who comes at the same time looks at it together
            found = self._entries.get(name)
            return found if found is not None and found.at > now else await self._load(name)

    async def _load(self, name: str) -> StudyEntry | None:
        self._loading[name] += 1
        try:
            return await self._loaded(name)
        finally:
            self._loading -= Counter([name])  # none is left of those that are at 0

    async def _loaded(self, name: str) -> StudyEntry | None:
        now = self._clock()

        def load() -> StudyEntry | None:
            page = self.registry.page(name)
            if page is None:
                return None
            return StudyEntry(page, {key.id: key for key in self.registry.keys(page.study)}, now)

        found = await self.in_thread(load)
        before = self._entries.get(name)
        if found is None:
            self._entries.pop(name, None)
        else:
            self._entries[name] = found
        if before is not None and (found is None or found.page.study != before.page.study):
            # Who watches a study that was replaced by another one of its name may come back for that.
            await self._drop(before.page.study, end_of("deleted") if found is None else b"")
        return found

    async def changed(self, name: str) -> StudyEntry | None:
        """Take note that this process has changed what the registry knows of a study."""
        return await self._load(name)

    async def in_thread(self, do: Callable[[], T]) -> T:
        """Do something that may wait for the database."""
        try:
            return await asyncio.to_thread(do)
        except Missing as error:
            raise deleted() from error
        except InvalidInput:
            raise
        except EquipoiseError as error:
            raise unavailable(str(error)) from error

    async def desk(self, entry: StudyEntry) -> Desk:
        """Return the desk of a study."""
        number = entry.page.study
        found = self._desks.get(number)
        if found is None:
            async with self._opening:
                found = self._desks.get(number)
                if found is None:
                    while len(self._desks) >= self.settings.limits.studies:
                        await self._close_desk(next(iter(self._desks)))
                    found = self._desks[number] = await self.in_thread(lambda: self._open_desk(entry.page))
        self._desks.move_to_end(number)
        return found

    def _open_desk(self, page: Page) -> Desk:
        study, secret, settings = self.registry.study(page.name), self.registry.secret(page.study), self.settings
        return Desk(study, secret, settings.limits.queue, settings.patience, self.count)

    async def _close_desk(self, study: int) -> None:
        """Close the desk of a study, once it has served whoever waits."""
        desk = self._desks.pop(study, None)
        if desk is not None:
            desk.retire()
            await asyncio.to_thread(desk.close)

    async def look(self, page: Page, view: Callable[[Replica], T]) -> T:
        """Return what is to be seen of a study, always by the same `view`; a study that is not open stays closed."""
        desk = self._desks.get(page.study)
        if desk is not None:
            try:
                return await self.in_thread(lambda: desk.look(view))
            except HTTPProblem:
                if self._desks.get(page.study) is desk:  # else it has been closed meanwhile
                    raise

        def read() -> T:
            turns = self.registry.turns(page.study)
            known = self._seen.get(page.study)
            if known is None or known[0] != turns:
                with Log(self.registry.study(page.name), write=False) as log:
                    known = self._seen[page.study] = log.replica.turns, view(log.replica)
            return known[1]

        return await self.in_thread(read)

    def follower(self, page: Page) -> Follower:
        """Return who follows a study."""
        found = self._followers.get(page.study)
        if found is None:
            found = Follower(self.registry.study(page.name))
            most = self.settings.limits.studies
            unwatched = [study for study in self._followers if not self._is_watched(study)]
            for study in unwatched[: max(len(self._followers) + 1 - most, 0)]:
                del self._followers[study]
            if len(self._followers) >= most:
                return found  # for this once
            self._followers[page.study] = found
        self._followers.move_to_end(page.study)
        return found

    def _is_watched(self, study: int) -> bool:
        return study in self._broadcasts and self._broadcasts[study].viewers > 0

    def watch(self, request: HTTPConnection, caller: Caller, page: Page) -> AsyncIterator[bytes]:
        """Return the live view of a study, for as long as the caller is let in."""
        limits, key = self.settings.limits, None if caller.key is None else caller.key.id
        if self.stopping:
            raise unavailable("the service is stopping")
        broadcast = self._broadcasts.get(page.study)
        if broadcast is None or broadcast.ended:
            if len(self._broadcasts) >= limits.studies:
                self._broadcasts = {study: each for study, each in self._broadcasts.items() if each.viewers}
            if len(self._broadcasts) >= limits.studies:
                raise unavailable("the live views are of too many studies")
            broadcast = self._broadcasts[page.study] = self._broadcast(page)
        if key is not None and broadcast.viewers_with(key) >= limits.viewers_by_key:
            raise HTTPProblem(429, f"this key has too many live views (limit {limits.viewers_by_key:,})", "viewers")
        if self.viewers >= limits.viewers:
            raise unavailable("there are too many live views")
        return broadcast.events(key, self._still_admitted(request, caller, page.name))

    def _broadcast(self, page: Page) -> Broadcast:
        async def draw() -> bytes:
            entry = await self.entry(page.name)
            if entry is None:
                raise deleted()
            if entry.page.study != page.study:
                raise unavailable("the study was replaced by another one of its name")
            await self.in_thread(self.administrator.recall)  # for those who look from within a session
            follower = self.follower(page)
            return await self.in_thread(lambda: follower.view(entry.page))

        return Broadcast(draw, self.settings.look, self.settings.heartbeat)

    def _still_admitted(self, request: HTTPConnection, caller: Caller, name: str) -> Callable[[], bool]:
        """Return how to find out whether somebody who was let in would still be."""
        key, cookie = caller.key, request.cookies.get(access.COOKIE)
        if key is not None:
            return lambda: (entry := self._entries.get(name)) is None or entry.keys.get(key.id) == key
        if caller.role is Role.ADMIN and bearer(request) is None:
            return lambda: self.administrator.in_session(cookie)
        return lambda: True

    async def delete(self, name: str) -> None:
        """Remove a study."""
        await self.in_thread(lambda: self.registry.delete(name))
        await self.changed(name)

    async def _drop(self, study: int, last: bytes = b"") -> None:
        """Close whatever serves a study; those who watch it get a last event."""
        if study in self._broadcasts:
            self._broadcasts.pop(study).end(last)
        self._seen.pop(study, None)
        self._followers.pop(study, None)
        await self._close_desk(study)

    # ---- its end

    def stop(self) -> None:
        """Be ready for no more requests, and send viewers away; who waits for a turn is still served."""
        self.stopping = True
        for broadcast in self._broadcasts.values():
            broadcast.end()

    async def close(self) -> None:
        """Serve whoever waits, and close all connections."""
        self.stop()
        for study in {*self._desks, *self._followers, *self._broadcasts}:
            await self._drop(study)
        await asyncio.to_thread(self.registry.close)

    @property
    def desks(self) -> list[Desk]:
        """The desks that are open."""
        return list(self._desks.values())

    def gauges(self) -> Gauges:
        """Return the numbers of this moment, for `metrics`."""
        count, desks = self.count, self.desks
        waiting = sum(desk.waiting for desk in desks)
        return Gauges(
            count.turns, count.served, count.refused, waiting, len(desks), self.registry.connections, self.viewers
        )

    @property
    def viewers(self) -> int:
        """How many live views are open."""
        return sum(each.viewers for each in self._broadcasts.values())


def check_may(caller: Caller, action: Action) -> None:
    """Refuse a caller who may not do something."""
    if not caller.may(action):
        raise HTTPProblem(403, f"a key of role {caller.role.value!r} cannot {action.value}")


def _network(address: str) -> str:
    """Return what is one caller's of an address: of IPv6, a network of 64 bits."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(known) if known.version == 4 else str(ipaddress.ip_network((int(known) >> 64 << 64, 64)))


def _check_origin(request: HTTPConnection, page: Page) -> None:
    """Refuse a page of another origin than those of the poll; programs and our own pages are none."""
    origin = request.headers.get("origin")
    ours = f"{request.url.scheme}://{request.url.netloc}"
    if origin in (None, ours) or request.headers.get("sec-fetch-site") == "same-origin":
        return
    allowed = (page.poll or {}).get("origins", [])
    if origin not in allowed and "*" not in allowed:
        raise HTTPProblem(
            403, f"pages of {shown(origin)} may not use this study; the poll's origins are those that may"
        )


def bearer(request: HTTPConnection) -> str | None:
    """Return the token that a request has."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" and token.strip() else None
