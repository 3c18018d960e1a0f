"""How often somebody may call, and what is looked up for callers who are not known; kept by each process for itself."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Final

from equipoise.server.problems import HTTPProblem
from equipoise.server.settings import Rate

# The most callers that are remembered; the one that was heard longest ago is forgotten.
_MOST: Final = 100_000
# Seconds before each look at the database for keys that are not known.
_PAUSE: Final = 0.05


class Buckets:
    """
    A bucket for each caller, which fills at some rate, and from which each request takes one.

    Parameters
    ----------
    clock
        Seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # What is left for each caller, and when that was so.
        self._left: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, caller: Hashable, rate: Rate) -> None:
        """Let one request of a caller pass, or refuse it."""
        self.check(caller, rate)
        left, now = self._left[caller]
        self._left[caller] = (left - 1, now)

    def check(self, caller: Hashable, rate: Rate) -> None:
        """Refuse a caller whose next request would be one too many."""
        now = self._clock()
        left, since = self._left.pop(caller, (rate.at_once, now))
        left = min(rate.at_once, left + (now - since) * rate.a_second)
        self._left[caller] = (left, now)
        if len(self._left) > _MOST:
            self._left.popitem(last=False)
        if left < 1:
            wait = max(1, math.ceil((1 - left) / rate.a_second))
            raise HTTPProblem(429, f"too many requests; try again in {wait} s", "rate", {"Retry-After": str(wait)})


class Lookup:
    """
    Looks up ids for callers who are not known: a few times a second at most, for all who have come meanwhile.

    Parameters
    ----------
    look
        Returns what is found of some ids; the others are left out.
    sleep
        Waits for some seconds.
    """

    def __init__(
        self,
        look: Callable[[Sequence[str]], Awaitable[Mapping[str, str]]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._look, self._sleep = look, sleep
        self._ids: set[str] = set()
        self._next: asyncio.Task[Mapping[str, str]] | None = None
        self._one = asyncio.Lock()

    async def find(self, identity: str) -> str | None:
        """Return what is found of an id; None where nothing is."""
        self._ids.add(identity)
        if self._next is None:
            self._next = asyncio.create_task(self._found())
        return (await asyncio.shield(self._next)).get(identity)

    async def _found(self) -> Mapping[str, str]:
        async with self._one:
            await self._sleep(_PAUSE)
            ids, self._ids, self._next = self._ids, set(), None
            return await self._look(sorted(ids))
