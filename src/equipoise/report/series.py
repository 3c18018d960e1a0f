"""The rows that a report's charts are drawn from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.base.inputs import number_in
from equipoise.chart.arms import EACH, EVEN, TARGET, WIDEST
from equipoise.inference import ranking
from equipoise.inference.arm_intervals import reached_by_arm
from equipoise.report.history import Moment
from equipoise.report.watch import Report
from equipoise.result import IntervalsByArm, Result

# As many arms have a line of their own in the chart of half-widths, and as many drifting ones are drawn.
LINES: Final = 6
DRIFTING: Final = 4
# A line has about this many points.
POINTS: Final = 40


def estimates(result: Result, labels: Sequence[str]) -> list[dict[str, Any]]:
    """Return mean and interval of each arm that is shown, and whether the interval is wider than asked for."""
    places = ranking.shown(result.known)
    ends = IntervalsByArm.shown(result.known)
    wide = ~reached_by_arm(result.known) if result.precision is not None else np.zeros(len(result.arms), bool)
    return [
        {
            "arm": labels[k],
            "mean": _number(result.means.array[k]),
            "low": _number(low),
            "high": _number(high),
            "wide": bool(wide[k]),
        }
        for k, low, high in zip(places, ends.low, ends.high, strict=True)
    ]


def allocation(result: Result, labels: Sequence[str]) -> list[dict[str, Any]]:
    """Return the samples of each arm that is shown, and what the best split would have given it."""
    best = best_split(result)
    return [
        {"arm": labels[k], "samples": int(result.counts.array[k]), "best": _number(best[k])}
        for k in ranking.shown(result.known)
    ]


def best_split(result: Result) -> Floats:
    """Return how the samples would be split best if the variances are those observed; NaN where that is not known."""
    arms = len(result.arms)
    unknown = np.full(arms, math.nan)
    if result.populations is not None or np.isnan(result.known.weighted_losses).any():
        return unknown
    key = result.objective.scales(arms) * np.nan_to_num(result.variances.array) ** result.objective.exponent
    cost = float(key @ result.objective.cost(arms))
    return np.asarray(key / cost * result.known.price) if 0 < cost < math.inf else unknown


def precision(report: Report, labels: Sequence[str]) -> list[dict[str, Any]]:
    """
    Return how half-widths fell.

    There is a line for the widest, one for what it would have been with equal numbers for all arms, one for the target,
    and one for each of the least precise arms. Where the target is a share of the means, all half-widths are.
    """
    history = thinned(_readable(report))
    if len({moment.samples for moment in history}) < 2:
        return []
    lines = (*_widest(report, history), *_even(report, history), *_target(report, history))
    return [*_each(report, history, labels), *lines]


def _readable(report: Report) -> Sequence[Moment]:
    """Return the moments from ten samples an arm on, or from an eighth of all: those before say little."""
    least = min(10 * len(report.result.arms), report.result.samples / 8)
    return [moment for moment in report.history if moment.samples >= least]


def thinned(history: Sequence[Moment]) -> Sequence[Moment]:
    """Return some of the moments, the last one among them."""
    every = -(-len(history) // POINTS)
    return history[(len(history) - 1) % every :: every] if history else history


def relative(report: Report) -> bool:
    """Return whether the precision is a share of the means, and every mean has one."""
    return (
        isinstance(report.precision, str)
        and bool((report.result.means.array != 0).all())
        and not math.isnan(report.result.loss)
        and all(moment.arms is not None for moment in report.history)
    )


def _units(report: Report) -> Floats:
    """Return what half-widths are multiplied with: 100 over the mean where they are shares of it."""
    if relative(report):
        return np.asarray(100 / np.abs(report.result.means.array))
    return np.ones(len(report.result.arms))


def _each(report: Report, history: Sequence[Moment], labels: Sequence[str]) -> Iterator[dict[str, Any]]:
    units = _units(report)
    for k in sorted(ranking.worst_first(report.result.known)[:LINES].tolist()):
        for moment in history:
            if moment.arms is not None:
                yield from _point(moment.samples, float(moment.arms[k] * units[k]), EACH, labels[k])


def _widest(report: Report, history: Sequence[Moment]) -> Iterator[dict[str, Any]]:
    for moment in history:
        yield from _point(moment.samples, _width(moment, _units(report)), WIDEST)


def _width(moment: Moment, units: Floats) -> float:
    return moment.widest if moment.arms is None else float((moment.arms * units).max())


def _even(report: Report, history: Sequence[Moment]) -> Iterator[dict[str, Any]]:
    """
    Yield the widest interval that an even split would have had.

    Each arm's half-width shrinks or grows as its standard error would, by the shares observed in the end; intervals may
    be of another kind once an arm is known well enough, and stay of the same. Of very many arms only the widest is
    known, which is multiplied with the ratio of the largest standard errors.
    """
    result, units = report.result, _units(report)
    if len(result.arms) < 2 or result.strategy == "uniform" or not 0 < result.losses.array.max() < math.inf:
        return
    most = 1.0 if result.support == "binary" or result.known.recognised else math.inf
    sizes = np.full(len(result.arms), math.inf) if result.populations is None else result.populations
    deviations = np.sqrt(result.variances.array) * units

    def per_deviation(samples: Floats) -> Floats:
        return np.asarray(np.sqrt(np.maximum(1 / samples - 1 / sizes, 0)))

    for moment in history:
        own = per_deviation(result.counts.array * (moment.samples / result.samples))
        even = per_deviation(np.full(len(result.arms), moment.samples / len(result.arms)))
        largest = float((deviations * own).max())
        if largest > 0:
            if moment.arms is None:
                width = moment.widest * float((deviations * even).max()) / largest
            else:
                ratios = np.divide(even, own, out=np.zeros_like(own), where=own > 0)
                width = float((moment.arms * units * ratios).max())
            if width <= most * units.max():
                yield from _point(moment.samples, width, EVEN)


def _target(report: Report, history: Sequence[Moment]) -> Iterator[dict[str, Any]]:
    wanted = report.precision
    if relative(report) or (isinstance(wanted, int | float) and not isinstance(wanted, bool)):
        level = number_in(wanted.rstrip("% ")) if isinstance(wanted, str) else float(wanted)
        for moment in (history[0], history[-1]):
            yield from _point(moment.samples, level, TARGET)


def _point(samples: int, width: float, kind: str, series: str = "") -> Iterator[dict[str, Any]]:
    """Yield a point that has a place on logarithmic axes; to four digits, as pages send them often."""
    if samples > 0 and 0 < width < math.inf:
        yield {"samples": samples, "width": float(f"{width:.4g}"), "series": series or kind, "kind": kind}


def drift(report: Report, labels: Sequence[str]) -> list[dict[str, Any]]:
    """Return the means of neighbouring samples of the arms that drift most."""
    found = sorted((drift for drift in report.drifts if drift.drifts), key=lambda drift: -drift.score)[:DRIFTING]
    return [
        {"arm": labels[drift.place], "sample": round((i + 0.5) * drift.size), "mean": float(f"{mean:.6g}")}
        for drift in found
        for i, mean in enumerate(drift.means.tolist())
    ]


def _number(x: Any) -> float | None:
    return float(x) if math.isfinite(x) else None
