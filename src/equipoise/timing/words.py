"""A benchmark for people and for other programs: sentences, a table, Markdown, JSON and CSV."""

from __future__ import annotations

import math
import re
from typing import Any, Final

import numpy as np

from equipoise.base import tables
from equipoise.base.inputs import named, spoken
from equipoise.timing.timer import Run, program_of
from equipoise.timing.timings import LEVEL, Ratio, Timing, Timings

# Units of time by their names, and how many of each are a second.
UNITS: Final = {"microsecond": ("µs", 1e6), "millisecond": ("ms", 1e3), "second": ("s", 1.0)}
# The version of the JSON export: it changes when a key changes its meaning or goes.
VERSION: Final = 1
# A longer name is cut in tables.
_LONGEST: Final = 40
# A ratio is not given with ± where that is more than this share of it: the interval is too far from symmetric.
_LOPSIDED: Final = 0.5


# ---- sentences


def verdict(found: Timings) -> str:
    """Return how precise the means are, in one line."""
    runs, commands = (
        tables.count(len(each), noun) for each, noun in ((found.order, "run"), (found.commands, "command"))
    )
    head, tail = ("✗ Stopped: ", "") if found.stopped else ("✗ ", f": raise {_limit(found)}")
    if found.wanted is not None:
        if found.reached:
            return f"{runs} of {commands}."
        return f"{head}{runs} of {commands} instead of {found.wanted:,} of each; {_more(found)}{tail}."
    assert found.precision is not None
    wanted = f"±{found.precision}" if isinstance(found.precision, str) else f"±{tables.duration(found.precision, 3)}"
    wide = [each for each in found.commands if not each.reached]
    if not wide:
        return f"✓ {'Every mean' if len(found.commands) > 1 else 'The mean'} is known to {wanted} ({runs})."
    hidden = [] if found.stopped else [each for each in wide if each in found.too_short]
    wide = [each for each in wide if each not in hidden]
    if not wide:
        return f"✗ {_cannot_be_known(found, hidden, f'{wanted} ({runs})')}"
    never = f" {_cannot_be_known(found, hidden, wanted)}" if hidden else ""
    if all(each.interval == "fixed-n" and each.margin <= each.target for each in wide):
        # The intervals that a precision stops by are not as narrow yet, or have not begun.
        verb = "is" if len(found.order) == 1 else "are"
        return f"{head}{runs} {verb} too few to stop at {wanted}; {_more(found)}{tail}.{never}"
    means, verb = _means_of(wide), "is" if len(wide) == 1 else "are"
    means = means[0].lower() + means[1:] if found.stopped else means
    return f"{head}{means} {verb} not known to {wanted} yet ({runs}); {_more(found)}{tail}.{never}"


def _cannot_be_known(found: Timings, hidden: list[Timing], wanted: str) -> str:
    """Say of which commands the time is hidden by the shell's own, however often they are run."""
    assert found.overhead is not None
    it = "it" if len(hidden) == 1 else "them"
    return f"{_means_of(hidden)} cannot be known to {wanted}: the time of {found.overhead.shell} hides {it}."


def _limit(found: Timings) -> str:
    return "--max-seconds" if found.out_of_time else "--max-runs"


def _more(found: Timings) -> str:
    """Return how many more runs are needed, such as "about 120 more are needed (3 to 5 seconds)"."""
    runs, seconds = found.left
    if not math.isfinite(runs):
        return "more runs are needed"
    # To two digits, where it is an estimate.
    number = tables.count(int(runs), "more run") if found.wanted else f"about {tables.about(runs, 0, 100 * runs)} more"
    return f"{number} {'is' if runs == 1 else 'are'} needed ({tables.duration_range(0.8 * seconds, 1.25 * seconds)})"


def comparison(ratio: Ratio) -> str:
    """Return a sentence such as "gzip is 3.70 ± 0.12 times faster than xz"."""
    fast, slow = named(ratio.fast.name), named(ratio.slow.name)
    found = ratio.times
    if not math.isfinite(found.high):
        few = min(len(ratio.fast.runs), len(ratio.slow.runs)) < 2
        return f"{fast} and {slow} cannot be compared: {'each needs two runs' if few else 'too little is known'}."
    if not found.differs:
        ends = f"between {tables.amount(found.low, 2)} and {tables.amount(found.high, 2)}"
        return f"{fast} and {slow} do not differ measurably; the ratio is {ends if _lopsided(ratio) else times(ratio)}."
    return f"{fast} is {times(ratio)} times faster than {slow}."


def times(ratio: Ratio) -> str:
    """Return a ratio with its margin, such as "3.70 ± 0.12"; an end or both where the interval is lopsided."""
    found = ratio.times
    if not _lopsided(ratio):
        return _plus_minus(found.value, found.margin)
    low = tables.amount(found.low, 2)
    return f"at least {low}" if found.differs else f"{low} … {tables.amount(found.high, 2)}"


def _lopsided(ratio: Ratio) -> bool:
    return math.isfinite(ratio.times.margin) and ratio.times.margin > _LOPSIDED * ratio.times.value


def remarks(found: Timings) -> list[str]:
    """Return what somebody should know or do about these times."""
    parts = _of_intervals, _of_targets, _of_drift, _of_outliers, _of_failures, _of_shell
    return [sentence for part in parts for sentence in part(found)]


def _of_intervals(found: Timings) -> list[str]:
    """Say which intervals ± is of, for commands that did not end as they were asked to."""
    told = []
    wide = [each for each in found.commands if not each.reached and each not in found.too_short]
    some = [each for each in wide if math.isfinite(each.margin)]
    if names := [each.name for each in some if each.interval == "fixed-n" and found.wanted is None]:
        told.append(f"For {spoken(names)}, ± is Student's: no precision ended the runs.")
    if names := [each.name for each in some if each.interval == "anytime"]:
        told.append(f"For {spoken(names)}, ± is that of a confidence sequence, which holds whenever you stop.")
    return told


def _of_targets(found: Timings) -> list[str]:
    """Say where the precision is so coarse that it says nothing."""
    wide = [each.name for each in found.commands if each.target > each.mean > 0]
    if not wide:
        return []
    return [f"The precision is larger than the mean time of {spoken(wide)}; give a share of the mean, such as 5%."]


def _of_drift(found: Timings) -> list[str]:
    if not found.drifts:
        return []
    told = (
        "Times drifted while the commands were run: neighbouring runs are more alike than chance explains, so the "
        "means are less certain than they look."
    )
    if len(found.commands) > 1:
        told += (
            f" The comparison uses the {2 * len(found.pairs):,} rounds in which every command was run, two by two, so "
            "that what slows down all of them cancels."
        )
    return [told]


def _of_outliers(found: Timings) -> list[str]:
    told = []
    first = [each.name for each in found.commands if 0 in each.outliers]
    if first:
        told.append(f"The first run of {spoken(first)} is an outlier; use --warmup {found.warmup + 1} to leave it out.")
    later = [each.name for each in found.commands if any(each.outliers)]
    if later:
        told.append(
            f"Some runs of {spoken(later)} are outliers: other programs may have been busy. On a quiet machine fewer "
            "runs are needed."
        )
    return told


def _of_failures(found: Timings) -> list[str]:
    return [
        f"{tables.count(each.failures, 'run')} of {each.name!r} failed, and the time is included; the last one: "
        f"{[run.said for run in each.runs if run.code][-1]}."
        for each in found.commands
        if each.failures
    ]


def _of_shell(found: Timings) -> list[str]:
    if found.overhead is None:
        return []
    own = _in_unit(found.overhead.seconds, 2 * found.overhead.error)
    told = [f"The time that {found.overhead.shell} takes by itself, {own}, is subtracted."]
    if found.too_short:
        names = [each.name for each in found.too_short]
        told.append(
            f"That is not known precisely enough for times as short as those of {spoken(names)}; -N runs programs "
            "without a shell."
        )
    return told


def _means_of(some: list[Timing]) -> str:
    return f"The mean{'' if len(some) == 1 else 's'} of {spoken([each.name for each in some])}"


# ---- tables


def text(found: Timings, unit: str | None = None) -> str:
    """
    Return everything that is printed.

    Parameters
    ----------
    found
        The benchmark.
    unit
        One of `UNITS` for all times in the table; None for what suits each command.
    """
    lines = [verdict(found), tables.text(rows(found, unit)), *map(comparison, found.ratios), *remarks(found)]
    return "\n".join(lines)


def rows(found: Timings, wanted: str | None = None) -> list[list[str]]:
    """Return the printed table: a title row, and a row of texts for each command, all in a unit that may be given."""
    relative = _relative(found)
    titles = ["command", f"mean ± {tables.percent(LEVEL)}", "σ", "min … max", "runs", "outliers", "relative"]
    table = [titles]
    for each in found.commands:
        unit, per_second = _unit(each.mean, wanted)
        spread = each.deviation * per_second
        ends = (tables.rounded(float(end) * per_second, spread) for end in (each.times.min(), each.times.max()))
        table.append(
            [
                _cut(each.name),
                _in_unit(each.mean, each.margin, wanted),
                "—" if math.isnan(spread) else f"{tables.rounded(spread, spread)} {unit}",
                f"{' … '.join(ends)} {unit}",
                f"{len(each.runs):,}",
                f"{len(each.outliers):,}",
                relative[each.name],
            ]
        )
    # Columns that say nothing are left out.
    kept = [i for i in range(len(titles)) if {row[i] for row in table[1:]} not in ({"0"}, {"—"})]
    return [[row[i] for i in kept] for row in table]


def markdown(found: Timings, unit: str | None = None) -> str:
    """Return the verdict, a table in Markdown with whole commands, and below it what is printed below the table."""
    head, *others = rows(found, unit)
    rule = [":--" if i == 0 else "--:" for i in range(len(head))]
    cells = [[_in_markdown(each), *row[1:]] for each, row in zip(found.commands, others, strict=True)]
    table = "".join(f"| {' | '.join(row)} |\n" for row in (head, rule, *cells))
    below = [*map(comparison, found.ratios), *remarks(found)]
    return f"{verdict(found)}\n\n{table}" + "".join(f"\n{sentence}\n" for sentence in below)


def _in_markdown(timing: Timing) -> str:
    """Return a command as code, after its name where that is not part of it."""
    command, name = " ".join(timing.command.split()), " ".join(timing.name.split())
    shown = [command] if name in (command, program_of(command)) else [name, command]
    return ": ".join(map(_code, shown)).replace("|", r"\|")


def _code(text: str) -> str:
    """Return a text as a code span, between more backticks than it has in a row."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence} {text} {fence}" if "`" in text else f"`{text}`"


def _relative(found: Timings) -> dict[str, str]:
    """Return by name how many times as long as the fastest each command takes."""
    known = {each.name: "—" for each in found.commands}
    for ratio in found.ratios:
        if math.isfinite(ratio.times.high):
            known |= {ratio.fast.name: "1", ratio.slow.name: times(ratio)}
    return known


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


# ---- numbers


def _unit(seconds: float, wanted: str | None = None) -> tuple[str, float]:
    """Return a unit, that which is wanted or else one that suits a time, and how many of it are a second."""
    if wanted is not None:
        return UNITS[wanted]
    return UNITS["millisecond" if abs(seconds) < 1 else "second"]


def _in_unit(seconds: float, margin: float, wanted: str | None = None) -> str:
    unit, per_second = _unit(seconds, wanted)
    return f"{_plus_minus(seconds * per_second, margin * per_second)} {unit}"


def _plus_minus(value: float, margin: float) -> str:
    """Return a number with its margin, to two digits of the margin; without one while it is not known."""
    if not math.isfinite(margin):
        return tables.cell(value, 3)
    return f"{tables.rounded(value, margin)} ± {tables.rounded(margin, margin)}"


# ---- for programs


def to_dict(found: Timings) -> dict[str, Any]:
    """
    Return a benchmark as plain numbers.

    `results` has the keys that hyperfine's export has, and more; all times are in seconds.
    """
    overhead = found.overhead
    return {
        "version": VERSION,
        "precision": found.precision,
        "reached": found.reached,
        "level": LEVEL,
        "drifts": found.drifts,
        "shell": None
        if overhead is None
        else {"program": overhead.shell, "mean": overhead.seconds, "standard_error": overhead.error},
        "results": [_result(found, row, each) for row, each in zip(_summaries(found), found.commands, strict=True)],
        "ratios": [
            {
                "fast": ratio.fast.name,
                "slow": ratio.slow.name,
                "ratio": ratio.times.value,
                "low": ratio.times.low,
                "high": ratio.times.high,
                "differ": ratio.times.differs,
            }
            for ratio in found.ratios
        ],
    }


def records(found: Timings) -> list[dict[str, Any]]:
    """Return a record for each command, as for a CSV file; all times are in seconds."""
    return [
        row | {f"parameter_{name}": value for name, value in found.parameters.get(each.name, {}).items()}
        for row, each in zip(_summaries(found), found.commands, strict=True)
    ]


def _summaries(found: Timings) -> list[dict[str, Any]]:
    relative = {ratio.slow.name: (ratio.times.value, ratio.times.low, ratio.times.high) for ratio in found.ratios}
    relative |= {ratio.fast.name: (1.0, 1.0, 1.0) for ratio in found.ratios}
    titles, unknown = ("relative", "relative_low", "relative_high"), (math.nan,) * 3
    return [
        {
            "command": each.command,
            "name": each.name,
            "mean": each.mean,
            "half_width": each.margin,
            "interval": each.interval,
            "stddev": each.deviation,
            "median": float(np.median(each.times)),
            "user": found.computing(each, "user"),
            "system": found.computing(each, "system"),
            "min": float(each.times.min()),
            "max": float(each.times.max()),
            "runs": len(each.runs),
            "outliers": len(each.outliers),
            "failures": each.failures,
        }
        | dict(zip(titles, relative.get(each.name, unknown), strict=True))
        for each in found.commands
    ]


def _result(found: Timings, summary: dict[str, Any], timing: Timing) -> dict[str, Any]:
    """Return what is known of a command, with each run, and with the values of its parameters if it has any."""
    chosen = found.parameters.get(timing.name)
    each = {"times": timing.times.tolist(), "exit_codes": [_exit_code(run) for run in timing.runs]}
    return summary | each | ({"parameters": dict(chosen)} if chosen else {})


def _exit_code(run: Run) -> int:
    """Return the exit code of a run, 128 + n if signal n ended it, as a shell and hyperfine have it."""
    return run.code if run.code >= 0 else 128 - run.code
