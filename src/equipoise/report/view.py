"""
What a page shows of a study, as plain data that JSON can hold.

The page is made from it, and a page that is open redraws itself from the next one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from equipoise import chart
from equipoise.base.inputs import text_of, texts
from equipoise.base.tables import PLAIN, SHARES, Unit, amount, duration, json_ready, percent, plus_minus, rounded
from equipoise.inference import ranking
from equipoise.inference.arm_intervals import intervals, reached_by_arm
from equipoise.inference.forecast import left_by_arm
from equipoise.report import series
from equipoise.report.watch import Report
from equipoise.report.words import axes, settings, warnings
from equipoise.result import IntervalsByArm, Result
from equipoise.result.summary import left_out, priced, remarks, verdict

# The states of a study: how a page says it, and in which tone.
STATES: Final = {
    "collecting": ("Collecting", "good"),
    "reached": ("Precision reached", "good"),
    "spent": ("Budget spent", "plain"),
    "done": ("Done", "plain"),
    "paused": ("Paused", "warn"),
    "archived": ("Archived", "plain"),
}


def view(
    report: Report,
    *,
    status: str | None = None,
    title: str | None = None,
    titles: Mapping[str, str] | None = None,
    quiet: bool = False,
) -> dict[str, Any]:
    """
    Return what a page shows of a study.

    Parameters
    ----------
    report
        The study.
    status
        "paused" or "archived" where a server says so; by default what the log says.
    title, titles
        What to call the study, by default the last part of where the log is; and what to call arms, by their names as
        texts.
    quiet
        Whether nothing has happened for a while, so that samples come at no rate; else it is that up to the last event.
    """
    result = report.result
    names = texts(result.arms)
    labels = [(titles or {}).get(text_of(arm), name) for arm, name in zip(result.arms, names, strict=True)]
    if len(set(labels)) < len(labels):
        labels = names
    unit = SHARES if _shares(result) else PLAIN
    state = status or _status(report)
    drawn = {
        "estimates": series.estimates(result, labels),
        "allocation": series.allocation(result, labels),
        "precision": series.precision(report, labels),
        "drift": series.drift(report, labels),
    }
    found = {
        "study": {
            "name": report.name,
            "title": title or Path(report.name).name,
            "status": state,
            "words": STATES[state][0],
            "tone": STATES[state][1],
            "samples": result.samples,
            "budget": report.budget,
            "spent": report.spent,
            "in_flight": report.in_flight,
            "level": result.level,
            "reached": result.reached,
            "began": report.began,
            "latest": report.latest,
        },
        "verdict": verdict(result.known, unit),
        "figures": _figures(report, unit, labels, quiet),
        "charts": chart.drawable(drawn),
        "shape": chart.drawable(_shape(report, drawn)),
        "table": _table(report, unit, labels),
        "arms": _arms(report, names, labels),
        "remarks": [*remarks(result.known, unit), *warnings(report)],
        "account": report.account.certificate.sentences(unit),
        "about": [list(pair) for pair in settings(report)],
    }
    return json_ready(found)  # type: ignore[no-any-return]


def _status(report: Report) -> str:
    if report.reached:
        return "reached"
    if not report.done:
        return "collecting"
    return "done" if report.budget is None else "spent"


def _shares(result: Result) -> bool:
    """Return whether the means are shares of zeros and ones."""
    return result.support == "binary" or result.known.recognised


def _half(unit: Unit, half: float) -> str:
    """Return a half-width whose unit stands elsewhere; a dash where there is none."""
    return plus_minus(unit.factor * half) if math.isfinite(half) else "—"


# ---- the numbers on top


def _figures(report: Report, unit: Unit, labels: Sequence[str], quiet: bool) -> list[dict[str, Any]]:
    return [
        _widest(report, unit, labels),
        _samples(report),
        _rate(report, quiet),
        _even_split(report) or _time(report),
    ]


def _figure(label: str, value: str, note: str = "", unit: str = "", share: float | None = None) -> dict[str, Any]:
    return {"label": label, "value": value, "unit": unit, "note": note, "share": share}


def _widest(report: Report, unit: Unit, labels: Sequence[str]) -> dict[str, Any]:
    """Return the half-width of the arm that the verdict and the remarks call the least precise."""
    result = report.result
    k = ranking.least_precise(result.known)
    margin, wanted = float(intervals(result.known, [k]).margins[0]), float(result.known.targets[k])
    target = f" · target {_half(unit, wanted)}" if math.isfinite(wanted) else ""
    known = math.isfinite(margin)
    return _figure(
        "Widest interval" if result.known.by_target and (result.known.targets == wanted).all() else "Least precise",
        _half(unit, margin),
        f"{labels[k] if known else 'no interval yet'}{target}",
        unit.points.strip() if known else "",
    )


def _samples(report: Report) -> dict[str, Any]:
    result, flying = report.result, f"{report.in_flight:,} in flight"
    if report.budget is None:
        return _figure("Samples", f"{result.samples:,}", flying)
    paid = "" if result.objective.costs is None else f"{amount(report.spent)} spent "
    share = min(report.spent / report.budget, 1.0) if report.budget else 1.0
    return _figure(
        "Samples",
        f"{result.samples:,}",
        f"{paid}of {priced(result.known, amount(report.budget))} · {flying}",
        share=share,
    )


def _rate(report: Report, quiet: bool) -> dict[str, Any]:
    pace = math.nan if quiet else report.pace.per_second(report.began, report.latest)
    answered = report.result.known.snapshot.evidence and report.result.known.snapshot.evidence.answered
    note = ""
    if answered:
        settled = answered.asked - answered.in_flight - answered.withdrawn
        missing = answered.given_up + answered.declined
        note = f"{(settled - missing) / settled:.0%} of tickets answered" if settled else ""
    if math.isnan(pace):
        return _figure("Rate", "—", note)
    per, unit = (pace, "/ s") if pace >= 2 else (60 * pace, "/ min") if pace >= 1 / 60 else (3600 * pace, "/ h")
    return _figure("Rate", amount(per, 2), note, unit)


def _even_split(report: Report) -> dict[str, Any] | None:
    """Return how many times as much an even split needs, in samples or in cost, where it is worth saying."""
    account, baseline = report.account, report.account.certificate.baseline
    if baseline is None or not account.certificate.even_split:
        return None
    per_price = baseline.spent / baseline.samples / account.price
    times, least, most = (each * per_price for each in (baseline.samples, baseline.low, baseline.high))
    unit = "samples" if report.result.objective.costs is None else report.result.cost_unit
    return _figure("An even split needs", f"{times:.1f}×", f"the {unit or 'cost'} ({least:.1f}× to {most:.1f}×)")


def _time(report: Report) -> dict[str, Any]:
    if math.isnan(report.began):
        return _figure("Time", "—", "no sample has been asked for yet")
    since = time.strftime("%Y-%m-%d %H:%M", time.localtime(report.began))
    return _figure("Time", duration(report.latest - report.began), f"since {since}")


# ---- the charts


def _shape(report: Report, drawn: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return what charts depend on besides their rows."""
    mean, half = axes(report)
    shares = _shares(report.result)
    return {
        "arms": [row["arm"] for row in drawn["estimates"]],
        "drifting": list(dict.fromkeys(row["arm"] for row in drawn["drift"])),
        "precision": list(dict.fromkeys(row["kind"] for row in drawn["precision"])),
        "percent": shares,
        "factor": 100 if shares and not series.relative(report) else 1,
        "mean": f"{mean}, with its {percent(report.result.level)} interval",
        "half": "± in % of the mean" if series.relative(report) else f"{half} in points" if shares else half,
    }


# ---- the table


def _table(report: Report, unit: Unit, labels: Sequence[str]) -> dict[str, Any]:
    result = report.result
    places = ranking.shown(result.known)
    ends = IntervalsByArm.shown(result.known)
    level = percent(result.level)
    titles = [
        "Arm",
        "Mean",
        "±",
        f"{level} interval",
        "Samples",
        "In flight",
        "Share",
        "Std. error",
    ]
    declined = bool(result.declined.array.any())
    rows = []
    for i, k in enumerate(places):
        half, low, high = (float(each[i]) for each in (ends.margins, ends.low, ends.high))
        known, error = math.isfinite(half), float(report.account.standard_errors[k])
        cells = [
            labels[k],
            unit.mean(float(result.means.array[k]), half),
            _half(unit, half),
            f"{unit.mean(low, half)} to {unit.mean(high, half)}" if known else "—",
            f"{result.counts.array[k]:,}",
            f"{report.waiting[k]:,}",
            f"{result.counts.array[k] / max(result.samples, 1):.0%}",
            rounded(unit.factor * error, unit.factor * error),
        ]
        if declined:
            cells.append(f"{result.declined.array[k]:,}")
        rows.append({"cells": cells, **_standing(result, k)})
    return {
        "titles": [*titles, *(["Declined"] if declined else [])],
        "target": "" if result.precision is None else _target(report, unit),
        "rows": rows,
        "note": " ".join(left_out(result.known)),
    }


def _target(report: Report, unit: Unit) -> str:
    """Return the title of the column that says which arms are precise enough."""
    wanted = report.precision
    if isinstance(wanted, int | float):
        return _half(unit, float(wanted))
    return f"±{wanted}" if isinstance(wanted, str) else "Target"


def _standing(result: Result, k: int) -> dict[str, str]:
    if result.precision is None:
        return {"status": "", "tone": ""}
    if reached_by_arm(result.known)[k]:
        return {"status": "✓ reached", "tone": "good"}
    left = float(left_by_arm(result.known)[k])
    return {
        "status": f"~{amount(float(f'{max(left, 1):.2g}'))} more" if math.isfinite(left) else "more",
        "tone": "warn",
    }


def _arms(report: Report, names: Sequence[str], labels: Sequence[str]) -> list[dict[str, Any]]:
    """Return what is known of each arm that is shown, in numbers."""
    result = report.result
    places = ranking.shown(result.known)
    ends = IntervalsByArm.shown(result.known)
    return [
        {
            "arm": names[k],
            "title": labels[k],
            "count": int(result.counts.array[k]),
            "in_flight": report.waiting[k],
            "declined": int(result.declined.array[k]),
            "mean": float(result.means.array[k]),
            "low": float(ends.low[i]),
            "high": float(ends.high[i]),
            "half_width": float(ends.margins[i]),
            "target": float(result.known.targets[k]),
            "reached": bool(reached_by_arm(result.known)[k]) if result.precision is not None else None,
            "left": float(left_by_arm(result.known)[k]) if result.precision is not None else None,
            "standard_error": float(report.account.standard_errors[k]),
        }
        for i, k in enumerate(places)
    ]


def short(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a view that a list of studies shows."""
    line = [row["width"] for row in found["charts"]["precision"] if row["kind"] == "widest interval"]
    return {**found["study"], "verdict": found["verdict"], "figures": found["figures"][:2], "line": line}
