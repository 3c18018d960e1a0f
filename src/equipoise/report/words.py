"""What a report says in words and numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from equipoise.base import tables
from equipoise.base.inputs import listed, texts
from equipoise.base.tables import amount, count
from equipoise.inference import ranking
from equipoise.problem import Contrasts
from equipoise.report.watch import Report
from equipoise.result import Result, summary
from equipoise.result.summary import priced


def certificate(result: Result) -> str:
    """Return the number of samples and the certificate of a result, in words."""
    return f"{count(result.samples, 'sample')}. {result.certificate}"


def plain(result: Result) -> dict[str, Any]:
    """Return a result that JSON can hold: arms as texts, None for what is not known."""
    return {**json.loads(result.to_json()), "level": result.level, "certificate": certificate(result)}


def to_dict(report: Report) -> dict[str, Any]:
    """Return all of a report, in a form that JSON can hold."""
    arms = texts(report.result.arms)
    text = dict(zip(report.result.arms, arms, strict=True))
    known: dict[str, Any] = {
        "store": report.name,
        "budget": report.budget,
        "spent": report.spent,
        "in_flight": report.in_flight,
        "failures": report.failures,
        "given_up": report.given_up,
        "precision": report.precision,
        "precision_reached": report.reached,
        "drifting": [text[arm] for arm in report.drifting],
        "about": report.about,
        "began": report.began,
        "latest": report.latest,
        "history": [
            {
                "samples": moment.samples,
                "widest": moment.widest,
                **({"arms": dict(zip(arms, moment.arms.tolist(), strict=True))} if moment.arms is not None else {}),
            }
            for moment in report.history
        ],
    }
    if isinstance(report.precision, Contrasts):
        known["precision"] = report.precision.to_dict()
    if isinstance(report.precision, dict):
        known["precision"] = {text[arm]: wanted for arm, wanted in report.precision.items()}
    return {**plain(report.result), **tables.json_ready(known)}


def facts(report: Report) -> list[str]:
    """Return what a report says besides its table, a sentence or two at a time; the verdict first."""
    result = report.result
    spent = amount(report.spent) if report.budget is None else f"{amount(report.spent)} of {amount(report.budget)}"
    if result.objective.costs is None:
        spent += (" sample" if (report.budget or report.spent) == 1 else " samples") + " asked for"
    else:
        spent = f"{priced(result.known, spent)} spent"
    told = [
        result.verdict,
        f"Strategy: {report.header.strategy.name}. {spent}, {report.in_flight:,} in flight. {_times_of(report)}",
    ]
    return [*told, *warnings(report), " ".join(report.account.certificate.sentences())]


def warnings(report: Report) -> list[str]:
    """Return what went wrong while the study ran, in sentences."""
    told = []
    lost = [f"sampling failed {_times(report.failures)}"] if report.failures else []
    if report.given_up:
        were = "was" if report.given_up == 1 else "were"
        lost.append(f"{count(report.given_up, 'ticket')} {were} given up without an answer")
    if lost:
        together = "; ".join(lost)
        told.append(f"{together[0].upper()}{together[1:]}.")
    if report.drifting:
        told.append(
            f"The samples of {listed(report.drifting)} drift: neighbouring samples are more alike than chance "
            "explains. Something changed while the study ran, so errors are larger than they look, and arms that were "
            "sampled at different times are hard to compare."
        )
    return told


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
    titles, *arms = summary.rows(result.known)
    shares = (f"{result.counts.array[k] / max(result.samples, 1):.0%}" for k in ranking.shown(result.known))
    return [[*titles, "share"], *([*row, share] for row, share in zip(arms, shares, strict=True))]


def settings(report: Report) -> Iterable[tuple[str, str]]:
    """Yield how the study was set up and what was sampled, as pairs of texts."""
    yield "strategy", report.header.strategy.name or type(report.header.strategy).__name__
    if report.header.support is not None:
        yield "support", str(report.header.support)
    if report.budget is not None:
        yield "budget", priced(report.result.known, amount(report.budget))
    if report.precision is not None:
        yield "precision", str(report.precision)
    yield "level", tables.percent(report.level)
    if not math.isnan(report.began):
        yield "started", _when(report.began)
        yield "last updated", _when(report.latest)
    yield from _flat(report.about)


def axes(report: Report) -> tuple[str, str]:
    """Return the names of means and of half-widths on an axis, with the unit where the log says what is measured."""
    if report.about.get("measure") == "exit":
        return "share that passes", "± of the share"
    unit = "seconds" if report.about.get("measure") == "seconds" else report.about.get("value")
    return ("mean", "±") if unit is None else (f"mean {unit}", f"± in {unit}")


def _flat(about: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield what was sampled as pairs of texts; those of a nested mapping one by one."""
    for key, value in about.items():
        if isinstance(value, dict):
            yield from ((str(inner), str(each)) for inner, each in value.items())
        else:
            yield str(key), str(value)
