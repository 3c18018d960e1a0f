"""
Reports of a study: a table in a terminal while it runs and after, one HTML page, a picture, JSON.

Everything comes from a result, or from the log of a store, which may be written to at the same time.

References
----------
.. [1] J. von Neumann (1941), Distribution of the ratio of the mean square successive difference to the variance. Annals
   of Mathematical Statistics 12.
"""

from __future__ import annotations

import base64
import html
import itertools
import json
import math
import os
import time
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from equipoise import chart, moments, tables
from equipoise.arrays import Floats
from equipoise.inputs import listed
from equipoise.run import Progress
from equipoise.run.course import Course
from equipoise.run.progress import left_text, spent_text
from equipoise.store import Header, Log, Replica, events
from equipoise.store.events import Events
from equipoise.study import Goal, Result, Study
from equipoise.study.state import FORGOTTEN
from equipoise.study.summary import even_split, left_out
from equipoise.tables import amount, count, percent

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


# This many arms have a line of their own in the chart of errors: as many as there are colours.
LINES: Final = 7
# With more arms than this, the history keeps only the largest half-width.
FOLLOWED: Final = 1000
# The history has a point whenever the number of samples has grown by this factor.
STEP: Final = 2 ** (1 / 8)
# Samples drift if neighbours are too alike by this many standard errors, and there are at least this many of them.
DRIFT: Final = 4.0
LEAST_TO_DRIFT: Final = 20


def certificate(result: Result) -> str:
    """Return the number of samples and the certificate of a result, in words."""
    return f"{count(result.samples, 'sample')}. {result.certificate}"


def _sizes(result: Result) -> Floats:
    """Return the sizes of the arms' populations; infinite where samples are drawn with replacement."""
    return np.full(len(result.arms), math.inf) if result.populations is None else result.populations


# ---- what the log says


@dataclass(frozen=True)
class Moment:
    """
    The half-widths at one moment of a study.

    Attributes
    ----------
    samples
        How many samples were in.
    worst, arms
        The largest half-width of an arm's interval, and those of all arms; None if there are too many.
    """

    samples: int
    worst: float
    arms: Floats | None


@dataclass(frozen=True)
class Report:
    """
    A study as its log describes it.

    Attributes
    ----------
    name
        Where the log is.
    header, result
        The study's settings, and what it knows.
    budget, spent, in_flight
        What may be spent; what the samples cost that are in or in flight; and how many are in flight.
    failures, given_up
        How often sampling failed, and how many tickets were given up without an answer.
    precision, level
        What the last run was asked for.
    about
        What is sampled, if the log says so.
    began, latest
        The times of the first and the last event, in seconds since 1970.
    history
        How the half-widths fell.
    drifting
        Arms whose samples changed in the course of the study.
    """

    name: str
    header: Header
    result: Result
    budget: float | None
    spent: float
    in_flight: int
    failures: int
    given_up: int
    precision: Any
    level: float
    about: dict[str, Any]
    began: float
    latest: float
    history: tuple[Moment, ...]
    drifting: tuple[Hashable, ...]

    @property
    def reached(self) -> bool | None:
        """Whether the precision was reached; None if none was asked for."""
        return self.result.reached


def read(where: str | os.PathLike[str]) -> Report:
    """Return the report of the study in a store, up to its last turn."""
    with Log(where, write=False) as log:
        # From the beginning, whatever snapshots say: the history is in the log.
        with log.checked():
            pages = log.pages()
            first, *rest = next(pages)
            replica = Replica.begin(first)
            watch = _Watch(replica, log.replica.level)
            for rows in itertools.chain([rest], pages):
                replica.fold(rows, watch.parts)
        result = Course(replica.header).result(replica)
        if not watch.history or watch.history[-1].samples < result.samples:
            watch.look(result)
        ledger = replica.study.ledger
        return Report(
            name=log.name,
            header=replica.header,
            result=result,
            budget=replica.study.budget,
            spent=replica.study.spent,
            in_flight=replica.study.in_flight,
            failures=replica.counts["fail"],
            given_up=int((ledger.tickets["status"] == FORGOTTEN).sum()),
            precision=replica.precision,
            level=replica.level,
            about=replica.header.about or {},
            began=replica.began,
            latest=replica.latest,
            history=tuple(watch.history),
            drifting=_drifting(replica.study),
        )


class _Watch:
    """Notes the half-widths of a study at a level while its log is folded, once any is known."""

    def __init__(self, replica: Replica, level: float) -> None:
        self.history: list[Moment] = []
        self._replica, self._goal, self._due = replica, Goal(level), 1

    def parts(self, found: Events) -> Iterator[Events]:
        """Divide events where a moment is due, however many samples one turn took."""
        told, ledger = np.cumsum(found.kinds == events.TELL), self._replica.study.ledger
        done = 0
        while done < len(told):
            before = int(told[done - 1]) if done else 0
            end = min(int(np.searchsorted(told, before + self._due - ledger.samples)) + 1, len(told))
            yield found.part(done, end)
            done = end
            if ledger.samples >= self._due:
                self.look(self._replica.study.result(goal=self._goal))

    def look(self, result: Result) -> None:
        """Note how it stands."""
        self._due = max(result.samples + 1, math.ceil(result.samples * STEP))
        self.history += _moment(result)


def _moment(result: Result) -> Iterator[Moment]:
    widths = result.intervals().margins
    if np.isfinite(widths).any():
        yield Moment(result.samples, float(widths.max()), widths if len(widths) <= FOLLOWED else None)


def _drifting(study: Study) -> tuple[Hashable, ...]:
    """
    Return the arms whose neighbouring samples are more alike than chance explains.

    Of n independent samples, the squared differences of neighbours over the squared deviations from the mean are 2 on
    average, with a variance of 4 (n - 2)/(n² - 1) [1]_; samples are in the order of asking.
    """
    tickets = study.ledger.tickets
    places, values = tickets["arm"], tickets["value"]
    found = []
    for k in range(min(len(study.arms), FOLLOWED)):
        own = values[(places == k) & np.isfinite(values)]
        n, _, spread = moments.of(own)
        if n < LEAST_TO_DRIFT or spread == 0:
            continue
        ratio = float(np.square(np.diff(own)).sum()) / spread
        if (2 - ratio) / math.sqrt(4 * (n - 2) / (n * n - 1)) > DRIFT:
            found.append(study.arms[k])
    return tuple(found)


# ---- numbers


def plain(result: Result) -> dict[str, Any]:
    """Return a result that JSON can hold: arms as texts, None for what is not known."""
    return {**json.loads(result.to_json()), "level": result.level, "certificate": certificate(result)}


def to_dict(report: Report) -> dict[str, Any]:
    """Return all of a report, in a form that JSON can hold."""
    arms = [str(arm) for arm in report.result.arms]
    known: dict[str, Any] = {
        "store": report.name,
        "budget": report.budget,
        "spent": report.spent,
        "in_flight": report.in_flight,
        "failures": report.failures,
        "given_up": report.given_up,
        "precision": report.precision,
        "precision_reached": report.reached,
        "drifting": [str(arm) for arm in report.drifting],
        "about": report.about,
        "began": report.began,
        "latest": report.latest,
        "history": [
            {
                "samples": moment.samples,
                "worst": moment.worst,
                **({"arms": dict(zip(arms, moment.arms.tolist(), strict=True))} if moment.arms is not None else {}),
            }
            for moment in report.history
        ],
    }
    if isinstance(report.precision, dict):
        known["precision"] = {str(arm): wanted for arm, wanted in report.precision.items()}
    return {**plain(report.result), **tables.json_ready(known)}


# ---- words


def facts(report: Report) -> list[str]:
    """Return what a report says besides its table, a sentence or two at a time; the verdict first."""
    result = report.result
    spent = amount(report.spent) if report.budget is None else f"{amount(report.spent)} of {amount(report.budget)}"
    if result.objective.costs is None:
        spent += (" sample" if (report.budget or report.spent) == 1 else " samples") + " asked for"
    else:
        spent += " spent"
    told = [
        result.verdict,
        f"Strategy: {report.header.strategy.name}. {spent}, {report.in_flight:,} in flight. {_times_of(report)}",
    ]
    told += filter(None, [even_split(result)])
    if report.failures or report.given_up:
        told.append(
            f"Sampling failed {_times(report.failures)}; {count(report.given_up, 'ticket')} "
            f"{'was' if report.given_up == 1 else 'were'} given up without an answer."
        )
    if report.drifting:
        told.append(
            f"The samples of {listed(report.drifting)} drift: neighbouring samples are more alike than chance "
            "explains. Something changed while the study ran, so errors are larger than they look, and arms that were "
            "sampled at different times are hard to compare."
        )
    return [*told, str(result.certificate)]


def _times_of(report: Report) -> str:
    if math.isnan(report.began):
        return "No sample has been asked for yet."
    return f"Started {_when(report.began)}, last updated {_when(report.latest)}."


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n:,} times"


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


def rows(result: Result) -> list[list[str]]:
    """Return the table of a result with the arms' shares of the samples: a title row, and one for each arm shown."""
    titles, *arms = result.rows()
    shares = (f"{result.counts.array[k] / max(result.samples, 1):.0%}" for k in result.shown())
    return [[*titles, "share"], *([*row, share] for row, share in zip(arms, shares, strict=True))]


# ---- in a terminal


def table(result: Result, title: str = "") -> Table:
    """Return the table of a result for a terminal."""
    from rich.markup import escape
    from rich.table import Table

    titles, *arms = rows(result)
    drawn = Table(title=escape(title) or None, caption=" ".join(left_out(result)) or None, title_justify="left")
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
        title = f"{spent}, {progress.seconds:,.0f} s elapsed"
        if left := left_text(progress):
            title = f"{title}; {left}"
        title = f"{title}; Ctrl-C stops"
        return table(progress.result, title)


# ---- pictures and the page


def figures(report: Report) -> dict[str, Any]:
    """Return the charts of a report, by what they show; without that of errors as long as there are none."""
    result = report.result
    mean, half = _axes(report)
    means = f"{mean}, with its {percent(result.level)} interval"
    drawn = {"Estimates": result.plot(title="Estimates", x_title=means)}
    counts = [{"arm": str(result.arms[k]), "samples": int(result.counts.array[k])} for k in result.shown()]
    drawn["Samples"] = chart.bars(counts, x="samples", y="arm", title="Samples per arm", width=240)
    fell, relative = list(_fallen(report)), _relative(report)
    sizes = [row["width"] for row in fell]
    if len({row["samples"] for row in fell}) > 1:
        drawn["Errors"] = chart.lines(
            fell,
            x="samples",
            y="width",
            series="series",
            titles=("samples of all arms", "half-width in % of the mean" if relative else half),
            title="Half-widths over time",
            dashed=(_EVENLY, _WANTED),
            log_y=max(sizes) > 10 * min(sizes),
            legend="right",
            width=460,
            height=260,
        )
    return drawn


def _axes(report: Report) -> tuple[str, str]:
    """Return the names of means and half-widths on an axis, with the unit where the log says what is measured."""
    if report.about.get("measure") == "exit":
        return "share that passes", "half-width of the share"
    unit = "seconds" if report.about.get("measure") == "seconds" else report.about.get("value")
    return ("mean", "half-width") if unit is None else (f"mean {unit}", f"half-width in {unit}")


_EVENLY: Final = "worst arm, uniform sampling"
_WANTED: Final = "target"


def _relative(report: Report) -> bool:
    """Return whether the precision is a share of the means, and every mean has one."""
    return (
        isinstance(report.precision, str)
        and bool((report.result.means.array != 0).all())
        and not math.isnan(report.result.loss)
    )


def _fallen(report: Report) -> Iterable[dict[str, Any]]:
    """
    Yield the points of the chart of errors.

    There is a line for each of the worst arms, one for what the worst arm would have been with equal numbers for all
    arms, and one for the target. Where that is a share of the means, all half-widths are.
    """
    result, history = report.result, report.history
    relative = _relative(report)
    units = 100 / np.abs(result.means.array) if relative else np.ones(len(result.arms))
    worst = result.worst_first()
    for k in sorted(worst[:LINES].tolist()):
        for moment in history:
            width = float(moment.arms[k] * units[k]) if moment.arms is not None else math.nan
            if 0 < width < math.inf:
                yield {"samples": moment.samples, "width": width, "series": str(result.arms[k])}
    for moment in history:
        if moment.arms is None and 0 < moment.worst < math.inf:
            yield {"samples": moment.samples, "width": moment.worst, "series": "worst arm"}
    if not history or not 0 < result.losses.array.max() < math.inf:
        return
    # By the variances observed in the end, and with the final ratio of half-width to standard error of the worst arm.
    times = history[-1].worst / math.sqrt(result.losses.array.max())
    sizes = _sizes(result)
    for moment in history:
        losses = result.variances.array * (len(result.arms) / moment.samples - 1 / sizes)
        width = times * float((np.sqrt(np.maximum(losses, 0)) * units).max())
        if len(result.arms) > 1 and 0 < width < math.inf:
            yield {"samples": moment.samples, "width": width, "series": _EVENLY}
    if relative or isinstance(report.precision, int | float):
        level = float(report.precision.rstrip("% ")) if relative else float(report.precision)
        for moment in (history[0], history[-1]):
            yield {"samples": moment.samples, "width": level, "series": _WANTED}


def png(report: Report, path: Path) -> Path:
    """Write the charts of a report as one PNG picture."""
    if path.suffix.lower() != ".png":
        raise ValueError(f"the name of a picture must end in .png, got {str(path)!r}")
    drawn = figures(report)
    picture = chart.beside([drawn["Estimates"], drawn["Samples"]])
    if "Errors" in drawn:
        picture = chart.beside([picture, drawn["Errors"]], below=True)
    return chart.save(picture.properties(background="white", padding=12), path)


_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1c1c1c; background: #fff; max-width: 60rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { line-height: 1.2; } h2 { margin-top: 2rem; }
img { max-width: 100%; height: auto; display: block; margin: 1rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9rem; }
th, td { padding: 0.3rem 0.8rem; text-align: right; border-bottom: 1px solid #ddd; }
th { border-bottom: 2px solid #888; } th:first-child, td:first-child { text-align: left; }
.words td { text-align: left !important; vertical-align: top; }
"""


def page(report: Report) -> str:
    """Return a report as one HTML page that needs no other file."""
    name = html.escape(Path(report.name).name)
    result = report.result
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{name}</title><style>{_STYLE}</style></head><body><h1>{name}</h1>",
        *(f"<p>{html.escape(sentence)}</p>" for sentence in facts(report)),
        f'<div class="wide">{tables.html(rows(result), left_out(result))}</div>',
    ]
    for what, figure in figures(report).items():
        # As an image of its own: the ids inside two SVG drawings on one page would clash.
        data = base64.b64encode(chart.svg(figure).encode()).decode()
        parts.append(f'<img alt="{html.escape(what)}" src="data:image/svg+xml;base64,{data}">')
    if report.about:
        settings = tables.html([["setting", "value"], *_flat(report.about)])
        parts.append(f'<h2>What was sampled</h2><div class="wide words">{settings}</div>')
    return "".join([*parts, "</body></html>\n"])


def _flat(about: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield what was sampled as pairs of texts; those of a nested mapping one by one."""
    for key, value in about.items():
        if isinstance(value, dict):
            yield from ((str(inner), str(each)) for inner, each in value.items())
        else:
            yield str(key), str(value)
