"""How far a study is, for a person who waits and for programs."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Protocol

from equipoise.study import Result


@dataclass(frozen=True)
class Progress:
    """
    How far a study is. All samples in it are acknowledged: they are in the store, if there is one.

    Attributes
    ----------
    samples, in_flight
        Samples that are in, and tickets that are not answered yet.
    spent, budget
        What is used of the budget, and the budget; None without one.
    worst, error
        The arm whose mean is known worst, and its standard error; NaN as long as some arm has fewer than two samples.
    seconds, seconds_left
        Since this run began, and until it ends at this pace, which is infinite where nothing can be said.
    result
        What is known now.
    """

    samples: int
    in_flight: int
    spent: float
    budget: float | None
    seconds: float
    seconds_left: float
    result: Result

    @property
    def worst(self) -> Hashable:
        return self.result.worst

    @property
    def error(self) -> float:
        return self.result.standard_errors[self.worst]


class Display(Protocol):
    """Somebody who wants to know."""

    def show(self, progress: Progress) -> None: ...
    def close(self) -> None: ...


def display(progress: bool | Callable[[Progress], Any] | None) -> Display | None:
    """A bar on a terminal if there is one or it is wanted, a function, or nobody."""
    if progress is None:
        progress = sys.stderr.isatty()
    if progress is False:
        return None
    return Bar() if progress is True else Callback(progress)


class Callback:
    """Tell a function."""

    def __init__(self, function: Callable[[Progress], Any]) -> None:
        self._function = function

    def show(self, progress: Progress) -> None:
        self._function(progress)

    def close(self) -> None: ...


class Bar:
    """A bar with the worst arm beside it."""

    def __init__(self) -> None:
        # Rich takes a while to be imported; who sees no bar does not wait for it.
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("{task.fields[spent]}"),
            BarColumn(),
            TextColumn("{task.fields[worst]}"),
            TextColumn("{task.fields[left]}"),
            console=Console(stderr=True, force_terminal=True),
            transient=True,
        )
        self._bar.start()
        self._task = self._bar.add_task("", total=None, spent="0 samples", worst="", left="")
        self._shown = 0.0

    def show(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._shown < 0.1:
            return
        self._shown = now
        of = "" if progress.budget is None else f" of {_amount(progress.budget)}"
        self._bar.update(
            self._task,
            total=progress.seconds + progress.seconds_left if math.isfinite(progress.seconds_left) else None,
            completed=progress.seconds,
            spent=f"{_amount(progress.spent)}{of}" + " samples" * (progress.result.objective.costs is None),
            worst="" if math.isnan(progress.error) else f"{progress.worst} ± {progress.error:.3g}",
            left=f"{_duration(progress.seconds_left)} left" if math.isfinite(progress.seconds_left) else "",
        )

    def close(self) -> None:
        self._bar.stop()


def _amount(spent: float) -> str:
    return f"{spent:,.0f}" if spent == int(spent) else f"{spent:,.2f}"


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
