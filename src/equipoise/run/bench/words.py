"""A benchmark for people and for other programs: sentences, a table, Markdown, JSON and CSV."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from equipoise import tables
from equipoise.inputs import named
from equipoise.run.bench.timings import LEVEL, Ratio, Timing, Timings

# A longer name is cut in tables.
_LONGEST: Final = 40
# A ratio is not given with ± where that is more than this share of it: the interval is too far from symmetric.
_LOPSIDED: Final = 0.5


# ---- sentences


def verdict(found: Timings) -> str:
    """Return how precise the means are, in one line."""
    runs, allows = tables.count(len(found.order), "run"), "--max-seconds" if found.out_of_time else "--max-runs"
    if found.precision is None:
        commands = tables.count(len(found.commands), "command")
        if found.reached:
            return f"{runs} of {commands}."
        return f"✗ {runs} of {commands} instead of {found.wanted:,} of each; raise {allows} for more."
    wanted = f"±{found.precision}" if isinstance(found.precision, str) else f"±{duration(found.precision)}"
    wide = [each.name for each in found.commands if not each.reached]
    if not wide:
        return f"✓ {'Every mean' if len(found.commands) > 1 else 'The mean'} is known to {wanted} ({runs})."
    return f"✗ {_mean_of(wide)} not known to {wanted} yet ({runs}); raise {allows} for more."


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
    return [*_of_drift(found), *_of_outliers(found), *_of_failures(found), *_of_shell(found)]


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
        told.append(f"The first run of {_listed(first)} is an outlier; a longer --warmup would leave it out.")
    later = [each.name for each in found.commands if any(each.outliers)]
    if later:
        told.append(
            f"Some runs of {_listed(later)} are outliers: other programs may have been busy. On a quiet machine fewer "
            "runs are needed."
        )
    return told


def _of_failures(found: Timings) -> list[str]:
    return [
        f"{tables.count(each.failures, 'run')} of {named(each.name)} failed, and the time is included; the last one: "
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
            f"That is not known precisely enough for times as short as those of {_listed(names)}; -N runs programs "
            "without a shell."
        )
    return told


def _listed(names: list[str]) -> str:
    """Return names for a sentence, the last after an "and"."""
    *others, last = map(named, names)
    return f"{', '.join(others)} and {last}" if others else last


def _mean_of(names: list[str]) -> str:
    return f"The mean of {_listed(names)} is" if len(names) == 1 else f"The means of {_listed(names)} are"


# ---- tables


def text(found: Timings) -> str:
    """Return everything that is printed."""
    lines = [verdict(found), tables.text(rows(found)), *map(comparison, found.ratios), *remarks(found)]
    return "\n".join(lines)


def rows(found: Timings) -> list[list[str]]:
    """Return the printed table: a title row, and a row of texts for each command."""
    relative = _relative(found)
    titles = ["command", f"mean ± {tables.percent(LEVEL)}", "σ", "min … max", "runs", "outliers", "relative"]
    table = [titles]
    for each in found.commands:
        unit, per_second = _unit(each.mean)
        spread = each.deviation * per_second
        ends = (tables.rounded(float(end) * per_second, spread) for end in (each.seconds.min(), each.seconds.max()))
        table.append(
            [
                _cut(each.name),
                _in_unit(each.mean, each.margin),
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


def markdown(found: Timings) -> str:
    """Return a table in Markdown, and below it what is printed below the table."""
    head, *others = rows(found)
    rule = [":--" if i == 0 else "--:" for i in range(len(head))]
    cells = [[f"`{row[0]}`", *row[1:]] for row in others]
    table = "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in (head, rule, *cells)
    )
    below = [*map(comparison, found.ratios), *remarks(found)]
    return table + "".join(f"\n{sentence}\n" for sentence in below)


def _relative(found: Timings) -> dict[str, str]:
    """Return by name how many times as long as the fastest each command takes."""
    known = {each.name: "—" for each in found.commands}
    for ratio in found.ratios:
        known |= {ratio.fast.name: "1", ratio.slow.name: times(ratio)}
    return known


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


# ---- numbers


def duration(seconds: float) -> str:
    """Return a time in a unit that suits it, such as "25.3 ms"."""
    unit, per_second = _unit(seconds)
    return f"{tables.amount(seconds * per_second, 3)} {unit}"


def _unit(seconds: float) -> tuple[str, float]:
    return ("ms", 1e3) if abs(seconds) < 1 else ("s", 1.0)


def _in_unit(seconds: float, margin: float) -> str:
    unit, per_second = _unit(seconds)
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
        "precision": found.precision,
        "reached": found.reached,
        "level": LEVEL,
        "drifts": found.drifts,
        "shell": None
        if overhead is None
        else {"program": overhead.shell, "mean": overhead.seconds, "standard_error": overhead.error},
        "results": [{**row, **_each_run(each)} for row, each in zip(records(found), found.commands, strict=True)],
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
    relative = {ratio.slow.name: (ratio.times.value, ratio.times.low, ratio.times.high) for ratio in found.ratios}
    relative |= {ratio.fast.name: (1.0, 1.0, 1.0) for ratio in found.ratios}
    titles, unknown = ("relative", "relative_low", "relative_high"), (math.nan,) * 3
    return [
        {
            "command": each.command,
            "name": each.name,
            "mean": each.mean,
            "half_width": each.margin,
            "stddev": each.deviation,
            "median": float(np.median(each.seconds)),
            "user": float(np.mean([run.user for run in each.runs])),
            "system": float(np.mean([run.system for run in each.runs])),
            "min": float(each.seconds.min()),
            "max": float(each.seconds.max()),
            "runs": len(each.runs),
            "outliers": len(each.outliers),
            "failures": each.failures,
        }
        | dict(zip(titles, relative.get(each.name, unknown), strict=True))
        for each in found.commands
    ]


def _each_run(timing: Timing) -> dict[str, Any]:
    return {"times": timing.seconds.tolist(), "exit_codes": [run.code for run in timing.runs]}
