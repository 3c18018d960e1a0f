"""Progress bars: what they show, in a terminal and in a notebook."""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import equipoise as eq
from equipoise.base import terminal as people
from equipoise.base.tables import plus_minus
from equipoise.run import progress
from equipoise.run.progress import Bar, Callback, NotebookBar, Progress, display


@pytest.fixture
def half_way() -> Progress:
    """A study of 300 samples, at some point."""
    told: list[Progress] = []
    eq.estimate(
        lambda arm, seed: random.Random(seed).gauss(10, 4 if arm == "rough" else 1),
        budget=300,
        arms=["<calm>", "rough"],
        seed=1,
        progress=told.append,
    )
    last = told[-1]
    return Progress(300, 0, 300, 3000, seconds=60.0, seconds_left=540.0, result=last.result)


def test_words(half_way: Progress) -> None:
    assert progress.spent_text(half_way) == "300 of 3,000 samples"
    assert progress.left_text(half_way) == "9 min left"
    low, high = half_way.result.intervals(0.95)["rough"]
    mean = half_way.result.means[half_way.worst]
    assert half_way.margin == max(mean - low, high - mean)
    assert progress.worst_text(half_way) == f"least precise: rough {plus_minus(half_way.margin, 3)}"
    assert half_way.margin > 1.9 * half_way.error  # a standard error is never shown as ±


def test_the_least_precise_arm_is_that_of_the_pages(tmp_path: Path) -> None:
    """Of eight zeros the variance is 0 and the interval wide; of a hundred zeros and ones it is the other way round."""
    with eq.open(tmp_path / "poll.db", arms=["even", "zeros"], support="binary", precision=0.1) as study:
        tickets = study.ask(200)
        study.tell_many([(ticket, ticket.id // 2 % 2) for ticket in tickets if ticket.arm == "even"])
        study.tell_many([(ticket, 0) for ticket in tickets if ticket.arm == "zeros"][:8])
        result = study.result()
    assert result.worst == "zeros"
    shown = Progress(108, 92, 200, None, 1.0, math.inf, result)
    assert (shown.worst, shown.error) == ("zeros", 0.0)
    assert shown.margin == result.intervals(0.95).margins[1] > 0.4


def test_words_before_anything_is_known() -> None:
    told: list[Progress] = []
    eq.estimate({"a": [1.0]}, progress=told.append)
    first = told[0]
    assert progress.worst_text(first) == ""
    assert progress.spent_text(told[-1]) == "1 sample"
    unknown = Progress(1, 0, 1, None, 1.0, math.inf, first.result)
    assert progress.left_text(unknown) == ""


def test_costs_are_an_amount() -> None:
    told: list[Progress] = []
    eq.estimate(lambda arm: float(arm == "a"), 20.5, arms=["a", "b"], costs=[1, 1.5], progress=told.append)
    assert progress.spent_text(told[-1]).endswith(" of 20.50")


def test_which_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "watched", lambda: False)
    assert display(None) is display(False) is None
    assert isinstance(display(print), Callback)
    monkeypatch.setattr(people, "watched", lambda: True)
    bar = display(None)
    assert isinstance(bar, Bar)
    bar.close()


def test_a_notebook(monkeypatch: pytest.MonkeyPatch, half_way: Progress) -> None:
    """A bar that is displayed once and updated in place."""
    shown: list[str] = []
    handle = SimpleNamespace(update=shown.append)

    def show(thing: str, display_id: bool) -> Any:
        assert display_id
        shown.append(thing)
        return handle

    ipython, module = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    module.HTML, module.display = str, show  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(progress, "REDRAW", math.inf)
    bar = display(None)
    assert isinstance(bar, NotebookBar)
    bar.show(half_way)
    bar.show(half_way)  # too soon to be drawn again, whatever the clock says
    bar.close()
    worst = progress.worst_text(half_way)
    assert shown == [
        "<progress></progress>",
        f'<progress value="0.100"></progress> 300 of 3,000 samples · {worst} · 9 min left',
        "",
    ]
