"""
Who may do what: the administrator's token, keys of studies, and sessions of the dashboard.

Tokens and keys are 256 random bits, so that a plain hash of them tells nothing; hashes are compared in constant time.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

from equipoise.server.registry import Key, Registry


class Role(StrEnum):
    """What somebody is let in as."""

    ASK = "ask"
    WORK = "work"
    READ = "read"
    ADMIN = "admin"


class Action(StrEnum):
    """What can be done."""

    ASK = "ask for tickets"
    ASK_MANY = "ask for more than one ticket at once"
    LEASE = "choose how long tickets are waited for"
    TELL = "tell answers"
    TELL_MANY = "tell more than one answer at once"
    COST = "say what samples cost"
    FORGET = "forget tickets"
    PROGRESS = "read the progress"
    RESULT = "read the result"
    SHOW = "read what the study is made of"
    VIEW = "read the view and its events"
    LOG = "read the log"
    MANAGE = "manage studies, polls and keys"


# The one table of what each role may do; the administrator may do everything. docs/reference/http.md shows it.
ALLOWED: Final[dict[Action, frozenset[Role]]] = {
    Action.ASK: frozenset({Role.ASK, Role.WORK, Role.ADMIN}),
    Action.ASK_MANY: frozenset({Role.WORK, Role.ADMIN}),
    Action.LEASE: frozenset({Role.WORK, Role.ADMIN}),
    Action.TELL: frozenset({Role.ASK, Role.WORK, Role.ADMIN}),
    Action.TELL_MANY: frozenset({Role.WORK, Role.ADMIN}),
    Action.COST: frozenset({Role.WORK, Role.ADMIN}),
    Action.FORGET: frozenset({Role.WORK, Role.ADMIN}),
    Action.PROGRESS: frozenset({Role.WORK, Role.READ, Role.ADMIN}),
    Action.RESULT: frozenset({Role.WORK, Role.READ, Role.ADMIN}),
    Action.SHOW: frozenset({Role.WORK, Role.READ, Role.ADMIN}),
    Action.VIEW: frozenset({Role.WORK, Role.READ, Role.ADMIN}),
    Action.LOG: frozenset({Role.WORK, Role.READ, Role.ADMIN}),
    Action.MANAGE: frozenset({Role.ADMIN}),
}

# Roles that a key can have.
KEY_ROLES: Final = (Role.ASK, Role.WORK, Role.READ)

COOKIE: Final = "equipoise_session"
CSRF_HEADER: Final = "x-csrf-token"
# Seconds that a session of the dashboard lasts.
SESSION: Final = 12 * 3600

_ADMIN_PREFIX: Final = "eqa_"
_KEY_PREFIX: Final = "eqk_"
_ID: Final = re.compile("[0-9a-f]{12}")
_HASH: Final = "admin token sha256"
_SECRET: Final = "session secret"


class Caller(NamedTuple):
    """
    Who sends a request.

    Attributes
    ----------
    role
        What it is let in as.
    key
        The key that it has; None for the administrator, and for whoever looks at a demonstration.
    """

    role: Role
    key: Key | None = None

    def may(self, action: Action) -> bool:
        """Return whether it may do something."""
        return self.role in ALLOWED[action]

    @property
    def owner(self) -> int:
        """As whom it waits for tickets: a number below NOBODY for each key."""
        return -2 - (self.key.number if self.key is not None else 0)


# ---- keys


def new_key(role: Role) -> tuple[str, str, bytes, str | None]:
    """Return the id of a new key, the key, its hash, and the key again where it is a public one."""
    identity = secrets.token_hex(6)
    return identity, *_with_secret(identity, role)


def rotated(key: Key) -> tuple[str, bytes, str | None]:
    """Return a new secret for a key: the key, its hash, and the key again where it is a public one."""
    return _with_secret(key.id, Role(key.role))


def _with_secret(identity: str, role: Role) -> tuple[str, bytes, str | None]:
    text = f"{_KEY_PREFIX}{identity}_{secrets.token_urlsafe(32)}"
    return text, digest(text), text if role is Role.ASK else None


def id_of(token: str) -> str | None:
    """Return the id in a key; None where it is not one."""
    if not token.startswith(_KEY_PREFIX):
        return None
    return token.removeprefix(_KEY_PREFIX).partition("_")[0]


def may_be_id(identity: str) -> bool:
    """Return whether a key can have this id, so that it is worth a look."""
    return _ID.fullmatch(identity) is not None


def matches(key: Key, token: str) -> bool:
    """Return whether somebody has this very key."""
    return hmac.compare_digest(key.hash, digest(token))


def digest(token: str) -> bytes:
    """Return the hash of a token or a key."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


# ---- the administrator


def first_token(registry: Registry) -> str | None:
    """Return a token for the administrator, which nobody can read again; None where there is one already."""
    token = f"{_ADMIN_PREFIX}{secrets.token_urlsafe(32)}"
    known = registry.value(_HASH) or registry.settle(_HASH, digest(token).hex())
    return token if known == digest(token).hex() else None


class Administrator:
    """
    The administrator's token, and the sessions of those who have shown it.

    A session is a time and a signature, which no process has to remember; the database remembers those that have ended
    before their time. All end with the token.

    Parameters
    ----------
    registry
        Where the hash of the token is, and the secret that sessions are signed with.
    token
        The token; None for the one in the database.
    clock
        Seconds since 1970.
    """

    def __init__(self, registry: Registry, token: str | None = None, clock: Callable[[], float] = time.time) -> None:
        known = registry.value(_HASH)
        self._hash = digest(token) if token is not None else bytes.fromhex(known) if known else None
        secret = registry.settle(_SECRET, secrets.token_hex(32))
        self._key = hashlib.blake2b(self._hash or b"", key=bytes.fromhex(secret)).digest()
        self._registry, self._clock = registry, clock
        self._ended: frozenset[bytes] = frozenset()

    def matches(self, token: str) -> bool:
        """Return whether this is the administrator's token."""
        return self._hash is not None and hmac.compare_digest(self._hash, digest(token))

    def session(self) -> str:
        """Return a new session, for a cookie."""
        until = f"{int(self._clock()) + SESSION}.{secrets.token_urlsafe(12)}"
        return f"{until}.{self._sign('session', until)}"

    def in_session(self, cookie: str | None) -> bool:
        """Return whether a cookie holds a session that lasts, as far as `recall` has found out."""
        until, _, signature = (cookie or "").rpartition(".")
        if not until or not _same(signature, self._sign("session", until)):
            return False
        return _end_of(until) > self._clock() and digest(until) not in self._ended

    def recall(self) -> None:
        """Find out which sessions have ended, in whatever process."""
        self._ended = self._registry.ended_sessions()

    def end(self, cookie: str) -> None:
        """End a session, for all processes; does nothing where the cookie holds none."""
        if self.in_session(cookie):
            until = cookie.rpartition(".")[0]
            self._registry.end_session(digest(until), _end_of(until), self._clock())
            self._ended |= {digest(until)}

    def csrf(self, cookie: str) -> str:
        """Return what a form of a page has to send along with this session."""
        return self._sign("csrf", cookie)

    def is_csrf(self, cookie: str, given: str | None) -> bool:
        """Return whether a form of a page of ours was sent."""
        return _same(given or "", self.csrf(cookie))

    def _sign(self, what: str, text: str) -> str:
        made = hmac.digest(self._key, f"{what}:{text}".encode("utf-8", "surrogatepass"), "sha256")
        return base64.urlsafe_b64encode(made).rstrip(b"=").decode()


def _end_of(until: str) -> int:
    """Return when a session ends, given what is signed of it."""
    return int(until.partition(".")[0])


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))
