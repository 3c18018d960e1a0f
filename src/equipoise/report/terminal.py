"""A study in a terminal: a table, while it runs and after."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from equipoise.report.words import rows
from equipoise.result import Result
from equipoise.result.summary import left_out
from equipoise.run import Progress
from equipoise.run.progress import left_text, spent_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


def table(result: Result, title: str = "") -> Table:
    """Return the table of a result for a terminal."""
    from rich.markup import escape
    from rich.table import Table

    titles, *arms = rows(result)
    drawn = Table(title=escape(title) or None, caption=" ".join(left_out(result.known)) or None, title_justify="left")
    for heading in titles:
        drawn.add_column(heading, justify="left" if heading == "arm" else "right", overflow="fold")
    for arm, *cells in arms:
        drawn.add_row(escape(arm), *cells)
    return drawn


class Live:
    """
    A table on a terminal that follows a study.

    Parameters
    ----------
    shown
        Whether there is a terminal.

    Attributes
    ----------
    last
        The last progress that was reported.
    """

    def __init__(self, shown: bool) -> None:
        self.last: Progress | None = None
        self._next = 0.0
        self._live: Any = None
        if shown:
            from rich.console import Console
            from rich.live import Live as RichLive

            self._live = RichLive(console=Console(stderr=True, highlight=False), transient=True, auto_refresh=False)

    def __enter__(self) -> Live:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, progress: Progress) -> None:
        self.last = progress
        if self._live is not None and time.monotonic() >= self._next:
            self._next = time.monotonic() + 0.2
            self._live.update(self._view(progress), refresh=True)

    def _view(self, progress: Progress) -> RenderableType:
        spent = spent_text(progress) + ("" if progress.result.objective.costs is None else " spent")
        facts = (f"{spent}, {progress.seconds:,.0f} s elapsed", left_text(progress), "Ctrl-C stops")
        return table(progress.result, "; ".join(filter(None, facts)))
