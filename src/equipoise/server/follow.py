"""
Live views of a study: one follower for all who look at it in this process.

A follower folds new turns once, with a connection and a replica of its own, so that nobody who looks holds up a turn.
While somebody watches, it looks at the log every second, and draws one view for all viewers.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from pydantic_core import to_json

from equipoise.errors import EquipoiseError
from equipoise.run.course import Course
from equipoise.server.registry import Page
from equipoise.store import Replica, wire
from equipoise.store.database import Database
from equipoise.store.events import Damaged
from equipoise.store.log import connect
from equipoise.study import Result

HEARTBEAT: Final = b": still here\n\n"


class Follower:
    """
    Follows the log of one study; any thread may ask what is known now.

    Parameters
    ----------
    where
        The study, as a store takes it.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._guard = threading.Lock()
        self._database: Database | None = None
        self._replica: Replica | None = None
        self._course: Course | None = None
        self._drawn: tuple[Any, bytes] | None = None

    def result(self) -> Result:
        """Return what is known now."""
        with self._guard:
            return self._result(self._caught_up())

    def view(self, page: Page) -> bytes:
        """Return what a page draws, as JSON; the same bytes where nothing has changed."""
        with self._guard:
            replica = self._caught_up()
            seen = (replica.turns, replica.chain, page)
            if self._drawn is None or self._drawn[0] != seen:
                study = {"name": page.name, "title": page.title, "status": page.status}
                self._drawn = seen, to_json({"study": study, "result": self._result(replica).to_dict()})
            return self._drawn[1]

    def turns(self, after: int) -> bytes:
        """Return some of the turns that follow one, packed; -1 for all from the header on."""
        with self._guard:
            self._caught_up()
            assert self._database is not None
            head = self._database.head()
            return wire.pack(next(self._database.rows(after + 1, head.turns), []))

    def close(self) -> None:
        """End the connection, and forget what was folded."""
        with self._guard:
            self._drop()

    def _result(self, replica: Replica) -> Result:
        assert self._course is not None
        return self._course.result(replica)

    def _caught_up(self) -> Replica:
        """Fold what was written since the last time."""
        try:
            if self._database is None:
                self._database = connect(self._where, write=False)
                if not self._database.find():
                    raise EquipoiseError("the study is gone")
            try:
                return self._fold(self._database)
            except Damaged as error:
                raise self._database.damaged(str(error)) from None
        except BaseException:
            self._drop()  # in doubt, it begins again
            raise

    def _fold(self, database: Database) -> Replica:
        head = database.head()
        if self._replica is None:
            ((first,),) = database.rows(0, 0)
            self._replica = Replica.begin(first)
            self._course = Course(self._replica.header)
        if head.turns < self._replica.turns:
            raise Damaged(f"it had {self._replica.turns:,} turns, and {head.turns:,} are left")
        for rows in database.rows(self._replica.turns + 1, head.turns):
            self._replica.fold(rows)
        if self._replica.chain != head.chain:
            raise Damaged("the last turn does not match the checksum of the study")
        return self._replica

    def _drop(self) -> None:
        if self._database is not None:
            with contextlib.suppress(EquipoiseError):
                self._database.close()
        self._database = self._replica = self._course = self._drawn = None


class Broadcast:
    """
    One view for many viewers, drawn again every so often while there are any.

    Parameters
    ----------
    draw
        Returns the view; it may take a while, and is called in a thread.
    look, heartbeat
        Seconds between two looks, and after which a viewer without news gets a sign of life.
    """

    def __init__(self, draw: Callable[[], bytes], look: float, heartbeat: float) -> None:
        self._draw, self._look, self._heartbeat = draw, look, heartbeat
        self._latest: bytes | None = None
        self._news = asyncio.Event()
        self._ended = False
        self._task: asyncio.Task[None] | None = None
        self.viewers = 0

    async def events(self) -> AsyncIterator[bytes]:
        """Iterate over events, from the view as it is now, until the viewer is gone or the service ends."""
        self.viewers += 1
        try:
            if self._task is None or self._task.done():
                self._latest = None
                self._task = asyncio.create_task(self._watch())
            seen = None
            while not self._ended:
                news = self._news
                if self._latest is not None and self._latest is not seen:
                    seen = self._latest
                    yield b"event: view\ndata: " + seen + b"\n\n"
                    continue
                try:
                    await asyncio.wait_for(news.wait(), self._heartbeat)
                except TimeoutError:
                    yield HEARTBEAT
        finally:
            self.viewers -= 1

    async def _watch(self) -> None:
        while self.viewers and not self._ended:
            with contextlib.suppress(EquipoiseError, ValueError):  # a database that is away comes back, or does not
                drawn = await asyncio.to_thread(self._draw)
                if drawn != self._latest:
                    self._latest = drawn
                    self._tell()
            await asyncio.sleep(self._look)

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def end(self) -> None:
        """Send all viewers away."""
        self._ended = True
        self._tell()
