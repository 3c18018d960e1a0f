"""What `equipoise bench` shows while it runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from equipoise.base import tables
from equipoise.base.inputs import named

if TYPE_CHECKING:
    from equipoise.run.progress import Progress
    from equipoise.timing import BenchStage


class BenchBar:
    """A bar in a terminal that follows a benchmark from its warm-up to its end."""

    def __init__(self, shown: bool) -> None:
        self._bar: Any = None
        if shown:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[known]}", markup=False),
                console=Console(stderr=True, force_terminal=True),
                transient=True,
                # It is drawn between runs: a thread that draws would disturb what is timed.
                auto_refresh=False,
            )
            self._task = self._bar.add_task("", total=None, known="")

    def __enter__(self) -> BenchBar:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, stage: BenchStage) -> None:
        """Show how far a benchmark has come."""
        if self._bar is None:
            return
        total, done = stage.of, float(stage.done)
        if total is None and stage.progress is not None and math.isfinite(stage.progress.seconds_left):
            done = stage.progress.seconds
            total = max(math.ceil(done + stage.progress.seconds_left), 1)
        self._bar.update(self._task, description=title(stage), total=total, completed=done, known=known(stage.progress))
        self._bar.refresh()


def title(stage: BenchStage) -> str:
    """Return what is being done, such as "warm up 1/6" or "measure, 34 runs"."""
    if stage.name == "measure":
        return f"measure, {tables.count(stage.done, 'run')}"
    return f"{stage.name} {stage.done + 1}/{stage.of}"


def known(progress: Progress | None) -> str:
    """Return the least precise command with the half-width of its interval, as a share of its mean."""
    if progress is None:
        return ""
    result = progress.result
    margins = zip(result.arms, result.intervals().margins.tolist(), result.means.array.tolist(), strict=True)
    share, arm = max((margin / abs(mean) if abs(mean) > 0 else math.inf, arm) for arm, margin, mean in margins)
    return f"least precise: {named(arm)} ±{share:.1%}; Ctrl-C stops" if math.isfinite(share) else ""
