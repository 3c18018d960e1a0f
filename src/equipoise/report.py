"""
What a study knows, for people: in a terminal while it runs and after, as one HTML page, as a picture, as JSON.

Everything comes from a result, or from the log of a store, which may be written to meanwhile.

References
----------
.. [1] J. von Neumann (1941), Distribution of the ratio of the mean square successive difference to the variance. Annals
   of Mathematical Statistics 12.
"""

from __future__ import annotations

import base64
import html
import json
import math
import os
import time
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from equipoise import chart
from equipoise.arrays import Floats
from equipoise.intervals.asymptotic import START
from equipoise.run import Progress, precision
from equipoise.store import Event, Header, Store
from equipoise.store.fold import begin, fold
from equipoise.store.plain import loads
from equipoise.study import FiniteResult, Result, Study
from equipoise.study.certificate import certify, said
from equipoise.tables import percent

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


# So many arms are shown in tables and charts, the worst known of them.
SHOWN: Final = 20
# So many arms have a line of their own in the chart of errors: as many as there are colours.
LINES: Final = 7
# Of more arms than this, how their errors fell is not kept one by one.
FOLLOWED: Final = 1000
# The history has a point whenever there are by this factor more samples.
STEP: Final = 2 ** (1 / 8)
# Samples drift if neighbours are by so many standard errors too alike, and there are enough to tell.
DRIFT: Final = 4.0
LEAST_TO_DRIFT: Final = 20


def intervals(result: Result, level: float) -> tuple[Floats, Floats]:
    """Where the means lie, from here to there, in the arms' order; all at once with a probability of `level`."""
    found = result.intervals(level)
    return found.low, found.high


def certificate(result: Result, level: float) -> str:
    """What the samples bought, in words."""
    return f"{result.samples:,} samples. {certify(result, level)}"


def evenly(result: Result, wanted: Any, level: float) -> float:
    """
    How many samples it would have taken to reach a precision with as many of each arm, going by the variances seen.

    An arm's half-width falls as the square root of 1/count - 1/population does. Populations that are used up sooner
    give all that they have.

    Parameters
    ----------
    result
        One that has reached the precision.
    wanted, level
        As `estimate` takes them.
    """
    found = result.intervals(level)
    half, counts = found.half_widths, result.counts.array.astype(float)
    # With fewer there is no interval.
    least = START if found.kind == "asymptotic" else 2
    targets = precision(wanted, level, result.arms).targets(result)
    sizes = result.populations if isinstance(result, FiniteResult) else np.full(len(counts), math.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = 1 / (1 / sizes + (targets / half) ** 2 * (1 / counts - 1 / sizes))
    needed = np.where(half > 0, needed, counts)
    return float(np.minimum(math.ceil(max(needed.max(), least)), sizes).sum())


def saving(result: Result, wanted: Any, level: float) -> str:
    """What a precision was reached with, and what it would have taken to sample the arms evenly."""
    even, known = evenly(result, wanted, level), precision(wanted, level, result.arms).said()
    return (
        f"Every mean is known to {known} with {result.samples:,} samples; as many of each arm would have taken about "
        f"{even:,.0f}, {even / result.samples:.2f} times as many."
    )


# ---- what the log says


@dataclass(frozen=True)
class Moment:
    """
    How well things were known when so many samples were in.

    Attributes
    ----------
    samples
        How many samples were in.
    worst, arms
        The largest half-width of an arm's interval, and all of them; None where the arms are too many.
    """

    samples: int
    worst: float
    arms: Floats | None


@dataclass(frozen=True)
class Report:
    """
    A study as its log has it.

    Attributes
    ----------
    name
        Where the log is.
    header, result
        What the study is made of, and what it knows.
    budget, spent, in_flight
        What may be spent, what is, and how many samples are asked for and not answered.
    failures, given_up
        How often sampling failed, and how many tickets were given up unanswered.
    precision, level
        What the last run was asked for.
    about
        What is sampled, if the log says so.
    began, latest
        The times of the first and the last event, in seconds since 1970.
    history
        How errors fell.
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
        """Whether every mean is known to the precision that was asked for; None if none was."""
        return self.result.reached


def read(where: str | os.PathLike[str]) -> Report:
    """The report of a study in a store, as far as it has come."""
    with Store(where) as store:
        header = store.header
        if header is None:
            raise ValueError(f"{store.name} holds no study")
        kinds: Counter[str] = Counter()
        settings: dict[str, Any] = {}
        first = last = None
        for last in store.events():
            first = first or last
            kinds["given up" if last.kind == "forget" and last.text != "exhausted" else last.kind] += 1
            if last.kind == "start":
                settings = loads(last.text or "null")
        level = float(settings.get("level", 0.95))
        study = begin(header)
        # Up to what was seen above, as somebody may be writing.
        seen = islice(store.events(), 0 if last is None else last.event + 1)
        history = tuple(_history(study, seen, header, level))
        result = _result(study, header)
        result.level = level
        if settings.get("precision") is not None:
            result.precision = wanted = precision(settings["precision"], level, result.arms)
            if wanted.followed(header.strategy, header.options):
                wanted.judge(result)
        return Report(
            name=store.name,
            header=header,
            result=result,
            budget=study.budget,
            spent=result.samples + study.in_flight if study.budget is None else study.budget - study.remaining,
            in_flight=study.in_flight,
            failures=kinds["fail"],
            given_up=kinds["given up"],
            precision=settings.get("precision"),
            level=level,
            about=settings.get("about") or {},
            began=math.nan if first is None else first.at,
            latest=math.nan if last is None else last.at,
            history=history,
            drifting=_drifting(study),
        )


def _result(study: Study, header: Header) -> Result:
    result = study.result()
    return result if header.populations is None else FiniteResult(result, header.populations)  # type: ignore[arg-type]


def _history(study: Study, events: Iterable[Event], header: Header, level: float) -> Iterator[Moment]:
    """Let all events happen to a study, and say on the way how well things were known, once any error was."""
    waiting: list[Event] = []
    samples = due = 0
    for event in events:
        waiting.append(event)
        samples += event.kind == "tell"
        if samples >= due and event.kind == "tell":
            fold(study, waiting)
            waiting.clear()
            due = max(samples + 1, math.ceil(samples * STEP))
            yield from _moment(_result(study, header), level)
    fold(study, waiting)
    if any(event.kind in ("tell", "more") for event in waiting):
        yield from _moment(_result(study, header), level)


def _moment(result: Result, level: float) -> Iterator[Moment]:
    low, high = intervals(result, level)
    widths = (high - low) / 2
    if np.isfinite(widths).any():
        yield Moment(result.samples, float(widths.max()), widths if len(widths) <= FOLLOWED else None)


def _drifting(study: Study) -> tuple[Hashable, ...]:
    """
    The arms whose neighbouring samples are more alike than chance would have it.

    Of n independent samples, the squared differences of neighbours over the squared deviations from the mean are 2 on
    average, with a variance of 4 (n - 2)/(n² - 1) [1]_; samples are in the order of asking.
    """
    tickets = study.ledger.tickets
    places, values = tickets["arm"], tickets["value"]
    found = []
    for k in range(min(len(study.arms), FOLLOWED)):
        own = values[(places == k) & np.isfinite(values)]
        n, spread = len(own), float(np.square(own - own.mean()).sum()) if len(own) else 0.0
        if n < LEAST_TO_DRIFT or spread == 0:
            continue
        ratio = float(np.square(np.diff(own)).sum()) / spread
        if (2 - ratio) / math.sqrt(4 * (n - 2) / (n * n - 1)) > DRIFT:
            found.append(study.arms[k])
    return tuple(found)


# ---- numbers


def plain(result: Result, level: float) -> dict[str, Any]:
    """A result with its intervals, as JSON can hold it: arms as texts, None for what is not known."""
    ends = np.stack(intervals(result, level), axis=1).tolist()
    by_arm = {str(arm): pair for arm, pair in zip(result.arms, ends, strict=True)}
    known = json.loads(result.to_json())
    known |= {"intervals": by_arm, "level": level, "interval_level": level, "certificate": certificate(result, level)}
    return {key: _without_nan(value) for key, value in known.items()}


def to_dict(report: Report) -> dict[str, Any]:
    """All of a report, as JSON can hold it."""
    arms = [str(arm) for arm in report.result.arms]
    return plain(report.result, report.level) | {
        key: _without_nan(value)
        for key, value in {
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
        }.items()
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _without_nan(thing: Any) -> Any:
    if isinstance(thing, dict):
        return {str(key): _without_nan(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [_without_nan(value) for value in thing]
    return _finite(thing) if isinstance(thing, float) else thing


# ---- words


def facts(report: Report) -> list[str]:
    """What a report says besides its table, a sentence each."""
    told = []
    asked = f" of {report.budget:,g}" if report.budget is not None else ""
    samples = " samples" if report.result.objective.costs is None else ""
    told.append(
        f"{report.spent:,g}{asked}{samples} spent by {report.header.strategy.name}, {report.in_flight:,} in flight; "
        f"begun {_when(report.began)}, last written {_when(report.latest)}."
    )
    if report.reached:
        told.append(saving(report.result, report.precision, report.level))
    elif report.result.precision is not None:
        told.append(report.result.precision.missed(report.result))
    if report.failures or report.given_up:
        told.append(
            f"Sampling failed {_times(report.failures)}; {report.given_up:,} "
            f"ticket{'s were' if report.given_up != 1 else ' was'} given up unanswered."
        )
    if report.drifting:
        names = ", ".join(map(repr, report.drifting[:5])) + ", ..." * (len(report.drifting) > 5)
        told.append(
            f"The samples of {names} drift: neighbours are more alike than chance would have it. Something changed "
            "while the study ran; errors are larger than they look, and arms that were sampled at other times compare "
            "badly."
        )
    told.append(certificate(report.result, report.level))
    return told


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n:,} times"


def _when(seconds: float) -> str:
    return "never" if math.isnan(seconds) else datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


def _shown(result: Result) -> list[int]:
    """The arms to show: all, or the worst known in the arms' order."""
    if len(result.arms) <= SHOWN:
        return list(range(len(result.arms)))
    losses = np.nan_to_num(result.losses.array, nan=math.inf)
    return sorted(np.argsort(-losses, kind="stable")[:SHOWN].tolist())


def headings(level: float) -> tuple[str, ...]:
    """The titles of the columns of `rows`."""
    return "arm", "count", "mean", f"{percent(level)} interval", "std. error", "share"


def rows(result: Result, level: float) -> list[list[str]]:
    """A row for each arm that is shown, under `headings`."""
    found = []
    lows, highs = intervals(result, level)
    for k in _shown(result):
        arm = result.arms[k]
        mean, error = result.means[arm], result.standard_errors[arm]
        low, high = float(lows[k]), float(highs[k])
        half = (high - low) / 2
        found.append(
            [
                str(arm),
                f"{result.counts[arm]:,}",
                "—" if math.isnan(mean) else _rounded(mean, half),
                f"{_rounded(low, half)} … {_rounded(high, half)}" if math.isfinite(half) else "—",
                "—" if math.isnan(error) else f"{error:.2g}",
                f"{result.counts[arm] / max(result.samples, 1):.0%}",
            ]
        )
    return found


def _rounded(value: float, half: float) -> str:
    """A number to the second digit of its half-width."""
    if not (0 < half < math.inf):
        return f"{value:.4g}"
    decimals = 1 - math.floor(math.log10(half))
    return f"{value:,.{max(decimals, 0)}f}" if decimals <= 9 and abs(value) < 1e12 else f"{value:.4g}"


def left_out(result: Result) -> str:
    """What a table does not show, if anything."""
    more = len(result.arms) - SHOWN
    return f"{more:,} more arms are known better than these." if more > 0 else ""


# ---- in a terminal


def table(result: Result, level: float, title: str = "") -> Table:
    """The table of a result."""
    from rich.markup import escape
    from rich.table import Table

    drawn = Table(title=escape(title) or None, caption=left_out(result) or None, title_justify="left")
    for heading in headings(level):
        drawn.add_column(heading, justify="left" if heading == "arm" else "right", overflow="fold")
    for arm, *cells in rows(result, level):
        drawn.add_row(escape(arm), *cells)
    return drawn


class Live:
    """
    A table on a terminal that follows a study, and the last that was told of it.

    Parameters
    ----------
    level
        Of the intervals.
    shown
        Whether there is a terminal.
    """

    def __init__(self, level: float, shown: bool) -> None:
        self.level = level
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
        of = "" if progress.budget is None else f" of {progress.budget:,g}"
        left = f", about {progress.seconds_left:,.0f} s left" if math.isfinite(progress.seconds_left) else ""
        return table(
            progress.result, self.level, f"{progress.spent:,g}{of} spent, {progress.seconds:,.0f} s{left}; Ctrl-C stops"
        )


# ---- pictures and the page


def figures(report: Report) -> dict[str, Any]:
    """The charts of a report, by what they show; without the errors as long as there are none."""
    result = report.result
    ends = zip(result.means.array.tolist(), *(end.tolist() for end in intervals(result, report.level)), strict=True)
    known = [dict(zip(("mean", "low", "high"), map(_finite, each), strict=True)) for each in ends]
    found = [{"arm": str(result.arms[k])} | known[k] for k in _shown(result)]
    mean, half = _axes(report)
    means = f"{mean}, with its {percent(report.level)} interval"
    drawn = {"Estimates": chart.intervals(found, x_title=means, title="Estimates", width=360)}
    counts = [{"arm": str(result.arms[k]), "samples": int(result.counts.array[k])} for k in _shown(result)]
    drawn["Samples"] = chart.bars(counts, x="samples", y="arm", title="Who got the budget", width=240)
    fell, relative = list(_fallen(report)), _relative(report)
    sizes = [row["width"] for row in fell]
    if len({row["samples"] for row in fell}) > 1:
        drawn["Errors"] = chart.lines(
            fell,
            x="samples",
            y="width",
            series="series",
            titles=("samples of all arms", "half-width in % of the mean" if relative else half),
            title="How errors fell",
            dashed=(_EVENLY, _WANTED),
            log_y=max(sizes) > 10 * min(sizes),
            legend="right",
            width=460,
            height=260,
        )
    return drawn


def _axes(report: Report) -> tuple[str, str]:
    """What means and half-widths are called on an axis, with the unit where the log says what is measured."""
    if report.about.get("measure") == "exit":
        return "share that passes", "half-width of the share"
    unit = "seconds" if report.about.get("measure") == "seconds" else report.about.get("value")
    return ("mean", "half-width") if unit is None else (f"mean {unit}", f"half-width in {unit}")


_EVENLY: Final = "worst arm, as many of each"
_WANTED: Final = "asked for"


def _relative(report: Report) -> bool:
    """Whether shares of the means were asked for, and shares there are."""
    return (
        isinstance(report.precision, str)
        and bool((report.result.means.array != 0).all())
        and not math.isnan(report.result.loss)
    )


def _fallen(report: Report) -> Iterable[dict[str, Any]]:
    """
    Points of the chart of errors.

    There is a line for each of the worst-known arms, one for what the worst would have been with as many samples of
    each arm, and one for what was asked for. Where that is a share of the means, all widths are.
    """
    result, history = report.result, report.history
    relative = _relative(report)
    units = 100 / np.abs(result.means.array) if relative else np.ones(len(result.arms))
    worst = np.argsort(-np.nan_to_num(result.losses.array, nan=math.inf) * units**2, kind="stable")
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
    # The variances seen in the end, and as many times the standard error as the half-width of the worst arm is.
    times = history[-1].worst / math.sqrt(result.losses.array.max())
    sizes = result.populations if isinstance(result, FiniteResult) else np.full(len(result.arms), math.inf)
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
    """Write the charts of a report as one picture."""
    if path.suffix.lower() != ".png":
        raise ValueError(f"{str(path)!r} will not do for a picture; its name must end in .png")
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
table.words td { text-align: left; vertical-align: top; }
code { font-size: 0.85rem; } .note { color: #555; }
"""


def page(report: Report) -> str:
    """A report as one HTML page that needs nothing else."""
    name = html.escape(Path(report.name).name)
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{name}</title><style>{_STYLE}</style></head><body><h1>{name}</h1>",
        *(f"<p>{html.escape(sentence)}</p>" for sentence in facts(report)),
        '<div class="wide"><table><thead><tr>',
        *(f"<th>{html.escape(heading)}</th>" for heading in headings(report.level)),
        "</tr></thead><tbody>",
    ]
    for row in rows(report.result, report.level):
        parts.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>")
    parts.append("</tbody></table></div>")
    kind = report.result.intervals(report.level).kind
    note = f"Intervals: all arms at once at {percent(report.level)}; {said(kind)}. {left_out(report.result)}"
    parts.append(f'<p class="note">{html.escape(note.strip())}</p>')
    for what, figure in figures(report).items():
        # As an image of its own: the ids inside two SVG drawings on one page would clash.
        data = base64.b64encode(chart.svg(figure).encode()).decode()
        parts.append(f'<img alt="{html.escape(what)}" src="data:image/svg+xml;base64,{data}">')
    if report.about:
        parts.append('<h2>What was sampled</h2><div class="wide"><table class="words"><tbody>')
        for key, value in _flat(report.about):
            parts.append(f"<tr><td>{html.escape(key)}</td><td><code>{html.escape(value)}</code></td></tr>")
        parts.append("</tbody></table></div>")
    return "".join([*parts, "</body></html>\n"])


def _flat(about: dict[str, Any]) -> Iterable[tuple[str, str]]:
    for key, value in about.items():
        if isinstance(value, dict):
            yield from ((str(inner), str(each)) for inner, each in value.items())
        else:
            yield str(key), str(value)
