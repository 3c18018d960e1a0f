"""How far a study has come, for a person who waits and for programs."""

from __future__ import annotations

import html
import importlib
import math
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

from equipoise.base import terminal as people
from equipoise.base.inputs import named, shown
from equipoise.base.tables import count, duration, plus_minus
from equipoise.inference.arm_intervals import intervals
from equipoise.inference.ranking import least_precise
from equipoise.result import Result
from equipoise.result.summary import priced, what_is_left
from equipoise.study import Study

# The shortest time between two drawings of a bar, in seconds; and the largest share of the time that they take.
REDRAW: Final = 0.1
SHARE: Final = 0.1


@dataclass(frozen=True)
class Progress:
    """
    How far a study has come. All its samples are acknowledged: they are in the store, if there is one.

    Attributes
    ----------
    samples
        How many samples have been taken.
    in_flight
        How many tickets wait for their samples.
    spent
        How much of the budget is spent.
    budget
        The budget; None without one.
    worst
        The least precise arm (`Result.worst`).
    error
        The plain standard error s/sqrt(T) of that arm, without the correction for adaptive sampling that takes a
        replay; NaN while some arm has fewer than two samples.
    margin
        The margin of that arm's 95% interval, which is infinite while it has too few samples for one.
    seconds
        The time since this run began.
    seconds_left
        The time until it ends at this pace, which is infinite if it is not known.
    result
        The result so far.
    """

    samples: int
    in_flight: int
    spent: float
    budget: float | None
    seconds: float
    seconds_left: float
    result: Result

    @cached_property
    def worst(self) -> Hashable:
        return self.result.worst

    @property
    def error(self) -> float:
        return self.result.plain_errors[self.worst]  # at every look, so without a replay

    @property
    def margin(self) -> float:
        return float(intervals(self.result.known, [least_precise(self.result.known)], 0.95).margins[0])


def so_far(study: Study, result: Result, seconds: float, spent_before: float, limit: float = math.inf) -> Progress:
    """
    Return how far a run has come.

    Parameters
    ----------
    study, result
        The study, and its result so far.
    seconds
        The time since the run began.
    spent_before
        What the study had spent by then.
    limit
        The seconds after which the run ends in any case.
    """
    left, spent = [limit - seconds], study.spent - spent_before
    if spent > 0:
        left.append(study.remaining / spent * seconds)
    if result.left is not None:
        more = (result.left.seconds_low + result.left.seconds_high) / 2
        left.append(math.inf if math.isnan(more) else more)
    return Progress(
        samples=study.ledger.samples,
        in_flight=study.in_flight,
        spent=study.spent,
        budget=study.budget,
        seconds=seconds,
        seconds_left=max(0.0, min(left)),
        result=result,
    )


class Display(Protocol):
    """The interface of whatever shows the progress of a study."""

    def show(self, progress: Progress) -> None: ...
    def close(self) -> None: ...


def check_progress(progress: Any) -> None:
    """Refuse what cannot show progress."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(f"progress must be True, False, None or a function, got {shown(progress)}")


def display(progress: bool | Callable[[Progress], Any] | None) -> Display | None:
    """Return what shows the progress: a bar in a terminal or a notebook, a function, or None for nothing."""
    if progress is None:
        progress = people.watched()
    if progress is False:
        return None
    if progress is not True:
        return Callback(progress)
    return NotebookBar() if people.notebook() else Bar()


class Callback:
    """A function of the user that is called with each `Progress`."""

    def __init__(self, function: Callable[[Progress], Any]) -> None:
        self._function = function

    def show(self, progress: Progress) -> None:
        self._function(progress)

    def close(self) -> None: ...


class Bar:
    """A bar in a terminal, with the least precise arm and the time left."""

    def __init__(self) -> None:
        # Rich takes a while to import; those who see no bar do not wait for it.
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("{task.fields[spent]}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[worst]}", markup=False),
            TextColumn("{task.fields[left]}", markup=False),
            console=Console(stderr=True, force_terminal=True),
            transient=True,
        )
        self._bar.start()
        self._task = self._bar.add_task("", total=None, spent="0 samples", worst="", left="")
        self._next = -math.inf

    def show(self, progress: Progress) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        known = math.isfinite(progress.seconds_left)
        self._bar.update(
            self._task,
            total=progress.seconds + progress.seconds_left if known else None,
            completed=progress.seconds,
            spent=spent_text(progress),
            worst=worst_text(progress),
            left=left_text(progress),
        )
        self._next = _next(now)

    def close(self) -> None:
        self._bar.stop()


class NotebookBar:
    """The bar of a notebook: HTML that is displayed once and then updated in place."""

    def __init__(self) -> None:
        ipython = importlib.import_module("IPython.display")
        self._html = ipython.HTML
        self._output = ipython.display(self._html("<progress></progress>"), display_id=True)
        self._next = -math.inf

    def show(self, progress: Progress) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        total = progress.seconds + progress.seconds_left
        share = f' value="{progress.seconds / total:.3f}"' if 0 < total < math.inf else ""
        words = (spent_text(progress), worst_text(progress), left_text(progress))
        self._update(f"<progress{share}></progress> {html.escape(' · '.join(filter(None, words)))}")
        self._next = _next(now)

    def close(self) -> None:
        self._update("")

    def _update(self, text: str) -> None:
        if self._output is not None:
            self._output.update(self._html(text))


def _next(began: float) -> float:
    """Return when to draw again after a drawing that began then: to find the widest of very many arms takes seconds."""
    now = time.monotonic()
    return max(began + REDRAW, now + (now - began) / SHARE)


def spent_text(progress: Progress) -> str:
    """Return what is spent of the budget, such as "120 of 3,000 samples"."""
    result, of = progress.result, "" if progress.budget is None else f"{_amount(progress.spent)} of "
    total = progress.spent if progress.budget is None else progress.budget
    return of + (
        count(int(total), "sample") if result.objective.costs is None else priced(result.known, _amount(total))
    )


def worst_text(progress: Progress) -> str:
    """Return the least precise arm with the half-width of its 95% interval; nothing while it has none."""
    margin = progress.margin
    return f"least precise: {named(progress.worst)} {plus_minus(margin, 3)}" if math.isfinite(margin) else ""


def left_text(progress: Progress) -> str:
    """
    Return such as "1,900 to 4,300 more samples needed (3 to 6 minutes)" for a precision, else such as "12 min left".

    The time alone where the budget or the time limit ends the study before the precision is reached; nothing if that
    is not known.
    """
    left = progress.result.left
    if left is not None and not progress.seconds_left < left.seconds_low:
        return what_is_left(progress.result.known)
    return f"{duration(progress.seconds_left)} left" if math.isfinite(progress.seconds_left) else ""


def _amount(spent: float) -> str:
    return f"{spent:,.0f}" if spent == int(spent) else f"{spent:,.2f}"
