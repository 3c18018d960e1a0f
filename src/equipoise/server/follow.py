"""
Live views of a study: one follower for all who look at it in this process.

A follower folds new turns once, with a replica of its own, so that nobody who looks holds up a turn.
While somebody watches, it looks at the log every second, and draws one view for all viewers.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from pydantic_core import to_json

from equipoise import report
from equipoise.server.problems import HTTPProblem
from equipoise.server.registry import OPEN, Page
from equipoise.store import wire
from equipoise.store.database import Database, Missing
from equipoise.store.events import Damaged

HEARTBEAT: Final = b": still here\n\n"
# Seconds without an event after which a page shows no rate.
_QUIET: Final = 60.0


class Follower:
    """
    Follows the log of one study; any thread may ask what is known now.

    Parameters
    ----------
    database
        The study, which the follower does not close.
    clock
        Seconds since 1970.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database, self._clock = database, clock
        self._guard = threading.Lock()
        self._watch: report.Watch | None = None
        self._drawn: tuple[Any, dict[str, Any], bytes] | None = None
        self._result: tuple[Any, str] | None = None

    def result(self) -> str:
        """Return what is known now, as JSON; it is computed once a turn, however many ask for it."""
        with self._guard:
            watch = self._caught_up()
            seen = watch.replica.turns, watch.replica.chain
            if self._result is None or self._result[0] != seen:
                self._result = seen, watch.result().to_json()
            return self._result[1]

    def view(self, page: Page) -> bytes:
        """Return what a page draws, as JSON; the same bytes where nothing has changed."""
        return self._view(page)[1]

    def data(self, page: Page) -> dict[str, Any]:
        """Return what a page draws."""
        return self._view(page)[0]

    def _view(self, page: Page) -> tuple[dict[str, Any], bytes]:
        with self._guard:
            watch = self._caught_up()
            quiet = self._clock() - watch.replica.latest > _QUIET
            seen = (watch.replica.turns, watch.replica.chain, page, quiet)
            if self._drawn is None or self._drawn[0] != seen:
                status = None if page.status == OPEN else page.status
                title = page.title or page.name
                found = report.view(
                    watch.report(page.name), status=status, title=title, titles=titles(page), quiet=quiet
                )
                self._drawn = seen, found, to_json(found)
            return self._drawn[1], self._drawn[2]

    def turns(self, after: int) -> bytes:
        """Return some of the turns that follow one, packed; -1 for all from the header on."""
        with self._guard:
            self._caught_up()
            head = self._database.head()
            return wire.pack(next(self._database.rows(after + 1, head.turns), []))

    def _caught_up(self) -> report.Watch:
        """Fold what was written since the last time."""
        try:
            if self._watch is None and not self._database.find():
                raise Missing("the study was deleted")
            try:
                return self._fold()
            except Damaged as error:
                raise self._database.damaged(str(error)) from None
        except BaseException:
            self._watch = self._drawn = self._result = None  # in doubt, it begins again
            raise

    def _fold(self) -> report.Watch:
        database = self._database
        head = database.head()
        if self._watch is None:
            ((first,),) = database.rows(0, 0)
            self._watch = report.Watch(first)
        replica = self._watch.replica
        if head.turns < replica.turns:
            raise Damaged(f"it had {replica.turns:,} turns, and {head.turns:,} are left")
        for rows in database.rows(replica.turns + 1, head.turns):
            self._watch.fold(rows)
        if replica.chain != head.chain:
            raise Damaged("the last turn does not match the checksum of the study")
        if self._watch.stale:
            ((first,),) = database.rows(0, 0)
            self._watch = report.Watch(first, replica.level)
            return self._fold()
        return self._watch


def titles(page: Page) -> dict[str, str]:
    """Return what a poll calls its arms, by their names."""
    shown = (page.poll or {}).get("arms", {})
    return {arm: show["title"] for arm, show in shown.items() if show.get("title")}


class _Viewer(NamedTuple):
    """Somebody who watches: with which key, if any, and whether that is still allowed."""

    key: str | None
    allowed: Callable[[], bool]


class Broadcast:
    """
    One view for many viewers, drawn again every so often while there are any.

    Parameters
    ----------
    draw
        Returns the view; a problem ends the broadcast, so that viewers do not take an old view for the present one.
    look, heartbeat
        Seconds between two looks, and after which a viewer without news gets a sign of life.

    Attributes
    ----------
    ended
        Whether it has ended, and somebody who comes back needs another one.
    """

    def __init__(self, draw: Callable[[], Awaitable[bytes]], look: float, heartbeat: float) -> None:
        self._draw, self._look, self._heartbeat = draw, look, heartbeat
        self._latest: bytes | None = None
        self._news = asyncio.Event()
        self._last: bytes = b""
        self._task: asyncio.Task[None] | None = None
        self._viewers: list[_Viewer] = []
        self.ended = False

    @property
    def viewers(self) -> int:
        """How many watch."""
        return len(self._viewers)

    def viewers_with(self, key: str) -> int:
        """Return how many watch with a key."""
        return sum(viewer.key == key for viewer in self._viewers)

    async def events(self, key: str | None = None, allowed: Callable[[], bool] = lambda: True) -> AsyncIterator[bytes]:
        """
        Iterate over events, from the view as it is now.

        It ends when the viewer is gone or no longer allowed, and when the study is deleted or the service ends.
        """
        viewer = _Viewer(key, allowed)
        self._viewers.append(viewer)
        try:
            if self._task is None or self._task.done():
                self._latest = None
                self._task = asyncio.create_task(self._watch())
            seen = None
            while not self.ended:
                news = self._news
                if not viewer.allowed():
                    yield end_of("refused")
                    return
                if self._latest is not None and self._latest is not seen:
                    seen = self._latest
                    yield b"event: view\ndata: " + seen + b"\n\n"
                    continue
                try:
                    await asyncio.wait_for(news.wait(), self._heartbeat)
                except TimeoutError:
                    yield HEARTBEAT
            if self._last:
                yield self._last
        finally:
            # Not `remove`, which takes the first of those that are equal.
            self._viewers = [each for each in self._viewers if each is not viewer]

    async def _watch(self) -> None:
        while self._viewers and not self.ended:
            try:
                drawn = await self._draw()
            except (HTTPProblem, ValueError) as error:
                gone = isinstance(error, HTTPProblem) and error.status == HTTPStatus.NOT_FOUND
                self.end(end_of("deleted") if gone else b"")
                return
            changed = drawn != self._latest
            self._latest = drawn if changed else self._latest
            if changed or not all(viewer.allowed() for viewer in self._viewers):
                self._tell()
            await asyncio.sleep(self._look)

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def end(self, last: bytes = b"") -> None:
        """Send all viewers away, with a last event."""
        if not self.ended:
            self.ended, self._last = True, last
            self._tell()


def end_of(why: str) -> bytes:
    """Return the event after which there is nothing to come back for: the study was "deleted", or a key "refused"."""
    return f"event: end\ndata: {why}\n\n".encode()
