"""How often somebody may call: token buckets, kept by each process for itself."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

from equipoise.server.problems import Problem
from equipoise.server.settings import Rate

# The most callers that are remembered; the one that was heard longest ago is forgotten.
_MOST: Final = 100_000


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
            raise Problem(429, f"too many requests; try again in {wait} s", "rate", {"Retry-After": str(wait)})
