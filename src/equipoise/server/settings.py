"""What a service is told when it starts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Final

from equipoise.base.inputs import shown, without_password
from equipoise.server.documents import SMALL, Size

# Keys are kept in memory for this many seconds: a key that another process revoked is refused after that.
FRESH: Final = 1.0
# The fewest characters of a token that somebody chooses.
LEAST_TOKEN: Final = 16
# However many processes share a rate, each lets so many requests pass at once: a caller's connection stays with one.
AT_ONCE: Final = 20


@dataclass(frozen=True)
class Rate:
    """So many requests a second on average, and so many at once."""

    a_second: float
    at_once: float

    def share(self, processes: int) -> Rate:
        """Return what each of several processes lets pass, so that all of them together keep to this rate."""
        return Rate(self.a_second / processes, max(self.at_once / processes, min(self.at_once, AT_ONCE)))


@dataclass(frozen=True)
class Limits:
    """
    How much one caller may ask of a service.

    Attributes
    ----------
    body
        The most bytes of a request.
    values
        The most JSON values in one.
    batch
        The most tickets of one ask, and the most answers of one tell.
    open_by_ask, open_by_work
        The most tickets in flight that one key of this role has asked for.
    spare
        How many more tickets than its budget pays for a study may hand out before it gives *ask* keys no more. A ticket
        that nobody answers stays in the log for ever, and takes some hundred bytes.
    lease, lease_by_ask
        The most seconds that a ticket may be waited for, and for how many one that an *ask* key has asked for is.
    queue
        The most requests that wait for the turn of one study; more are sent away for a moment.
    viewers, viewers_by_key
        The most live views that one process serves, and the most of them for one key.
    studies
        The most studies that one process keeps open for those who sample, and as many for those who read; of more, the
        one that was used longest ago is closed. At most so many have live views.
    connections
        The most connections to the database of all processes that serve together, of which each has at least two:
        PostgreSQL allows 100 by default, for everybody.
    ask, work, read, respondent
        The most requests by one key of each role, and by one respondent.
    guesses
        The most wrong tokens of the administrator from one address.
    """

    body: int = 4 << 20
    values: int = 500_000
    batch: int = 10_000
    open_by_ask: int = 10_000
    open_by_work: int = 100_000
    spare: int = 1_000_000
    lease: float = 30 * 86_400.0
    lease_by_ask: float = 600.0
    queue: int = 10_000
    viewers: int = 1_000
    viewers_by_key: int = 100
    studies: int = 40
    connections: int = 40
    ask: Rate = Rate(500, 1_000)
    work: Rate = Rate(20_000, 40_000)
    read: Rate = Rate(50, 200)
    respondent: Rate = Rate(1, 20)
    guesses: Rate = Rate(1, 20)

    @property
    def size(self) -> Size:
        """How large a body may be."""
        return Size(self.body, self.values)

    def many(self, values: int) -> Size:
        """Return how large the body of a batch may be, of whose tickets each takes so many JSON values."""
        return Size(self.body, min(self.values, SMALL.values + values * self.batch))

    def share(self, processes: int) -> Limits:
        """Return the limits of each of several processes that serve together, which divide rates and connections."""
        names = ("ask", "work", "read", "respondent", "guesses")
        rates = {name: getattr(self, name).share(processes) for name in names}
        return replace(self, **rates, connections=max(self.connections // processes, 2))


@dataclass(frozen=True)
class Settings:
    """
    What a service is made of.

    Attributes
    ----------
    db
        Where the studies are: the path of a SQLite file, or a postgresql:// URL.
    root_path
        The path under which a proxy shows the service, such as /polls.
    admin_token
        The token of the administrator; None for the one that the database knows.
    demo
        Whether anybody may look at the study of this name, without a token.
    limits
        How much one caller may ask for.
    look
        Seconds between two looks at a study that is being watched.
    heartbeat
        Seconds after which a live view without news sends a sign of life.
    patience
        Seconds to wait for a database that is away, before a request is refused.
    """

    db: str = field(repr=False)
    root_path: str = ""
    admin_token: str | None = field(default=None, repr=False)
    demo: str | None = None
    limits: Limits = Limits()
    look: float = 1.0
    heartbeat: float = 15.0
    patience: float = 5.0

    def __post_init__(self) -> None:
        if not self.db or "#" in self.db:
            wanted = "a SQLite file or a postgresql:// URL, without the name of a study"
            raise ValueError(f"db must be {wanted}, got {shown(without_password(self.db))}")
        if self.admin_token is not None and len(self.admin_token) < LEAST_TOKEN:
            raise ValueError(f"admin_token must have at least {LEAST_TOKEN} characters, got {len(self.admin_token)}")
        if self.root_path and not re.fullmatch(r"/[^?#\s]*[^?#\s/]", self.root_path):
            raise ValueError(f"root_path must be a path such as /polls, got {shown(self.root_path)}")
