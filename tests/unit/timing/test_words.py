"""What a benchmark says, and what it gives to other programs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from equipoise.base import tables
from equipoise.timing import Run, Timing, Timings, words
from equipoise.timing.timings import MarginKind, Overhead


def timing(
    name: str,
    seconds: list[float],
    margin: float = 0.001,
    reached: bool = True,
    code: int = 0,
    interval: MarginKind = "fixed-width",
    command: str = "",
) -> Timing:
    runs = [Run(s, 0.5, 0.25, code, "exit code 4" if code else "") for s in seconds]
    target = 0.05 * float(np.mean(seconds))
    return Timing(name, command or f"{name} -k | wc", runs, np.array(seconds), margin, target, reached, interval)


def timings(
    *commands: Timing,
    precision: str | float | None = "5%",
    wanted: int | None = None,
    out_of_time: bool = False,
    stopped: bool = False,
    overhead: Overhead | None = None,
    warmup: int = 0,
) -> Timings:
    order = tuple(k for i in range(100) for k, each in enumerate(commands) if i < len(each.runs))
    asked = precision if wanted is None else None
    return Timings(commands, order, asked, wanted, out_of_time, stopped, overhead, warmup)


# Without order: neighbours are far apart.
ZIGZAG = [0.0, 1.0, -1.0, 0.5, -0.5, 0.8, -0.9, 0.3, -0.2, 0.0]
GZIP = timing("gzip", [0.02 + 0.0005 * z for z in ZIGZAG])
XZ = timing("xz", [0.074 + 0.002 * z for z in ZIGZAG])


def test_everything_that_is_printed() -> None:
    assert words.text(timings(GZIP, XZ)) == (
        "✓ Every mean is known to ±5% (20 runs).\n"
        "command     mean ± 95%        σ         min … max  runs       relative\n"
        "gzip     20.0 ± 1.0 ms  0.34 ms  19.50 … 20.50 ms    10              1\n"
        "xz       74.0 ± 1.0 ms   1.3 ms    72.0 … 76.0 ms    10  3.700 ± 0.069\n"
        "gzip is 3.700 ± 0.069 times faster than xz."
    )


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (timings(GZIP), "✓ The mean is known to ±5% (10 runs)."),
        (timings(GZIP, XZ, precision=0.01), "✓ Every mean is known to ±10 ms (20 runs)."),
        (timings(GZIP, XZ, wanted=10), "20 runs of 2 commands."),
        (
            timings(GZIP, XZ, wanted=1000, out_of_time=True),
            "✗ 20 runs of 2 commands instead of 1,000 of each; 1,980 more runs are needed (74 to 117 seconds): raise "
            "--max-seconds.",
        ),
        (
            timings(GZIP, timing("a b", [1, 2], reached=False)),
            "✗ The mean of 'a b' is not known to ±5% yet (12 runs); more runs are needed: raise --max-runs.",
        ),
        (
            timings(timing("a b", [1, 2], reached=False), out_of_time=True),
            "✗ The mean of 'a b' is not known to ±5% yet (2 runs); more runs are needed: raise --max-seconds.",
        ),
        (
            timings(timing("a", [1 + z for z in ZIGZAG], reached=False), stopped=True),
            "✗ Stopped: the mean of a is not known to ±5% yet (10 runs); about 690 more are needed (9 to 15 minutes).",
        ),
        (
            timings(timing("a", [1.0, 1.002, 0.999], reached=False, interval="fixed-n")),
            "✗ 3 runs are too few to stop at ±5%; about 6 more are needed (4 to 8 seconds): raise --max-runs.",
        ),
        (
            timings(GZIP, wanted=11, stopped=True),
            "✗ Stopped: 10 runs of 1 command instead of 11 of each; 1 more run is needed (up to 1 second).",
        ),
        (
            timings(timing("a", ZIGZAG, reached=False), XZ, overhead=Overhead("/bin/sh", 0.5, 0.1)),
            "✗ The mean of a cannot be known to ±5% (20 runs): the time of /bin/sh hides it.",
        ),
        (
            timings(
                timing("a", ZIGZAG, reached=False),
                timing("b", [50 + 20 * z for z in ZIGZAG], reached=False),
                overhead=Overhead("/bin/sh", 0.5, 0.1),
            ),
            "✗ The mean of b is not known to ±5% yet (20 runs); about 150 more are needed (100 to 158 minutes): raise "
            "--max-runs. The mean of a cannot be known to ±5%: the time of /bin/sh hides it.",
        ),
    ],
)
def test_verdicts(found: Timings, verdict: str) -> None:
    assert words.verdict(found) == verdict


@pytest.mark.parametrize(
    ("seconds", "least"),
    [
        ([1.0, 1.001, 0.999], 9),  # the first interval
        ([1.0, 1.001, 0.999] * 2 + [1.0], 9),
        ([1.0, 1.0, 1.0], 20),  # as long as all are equal
        ([1.0, 1.06, 0.94], 30),  # the least of a fixed-width interval
        ([1.0, 1.5, 0.5], 385),  # (1.96 · 0.5/0.05)²
    ],
)
def test_what_is_left_is_enough_for_an_interval_that_stops(seconds: list[float], least: int) -> None:
    found = timings(timing("a", seconds, reached=False))
    assert found.left[0] == least - len(seconds)


def test_commands_that_do_not_differ() -> None:
    other = timing("zstd", [0.0201 + 0.0005 * z for z in ZIGZAG])
    [ratio] = timings(GZIP, other).ratios
    assert words.comparison(ratio) == "gzip and zstd do not differ measurably; the ratio is 1.005 ± 0.018."


def test_a_lopsided_interval_has_no_plus_minus() -> None:
    [ratio] = timings(timing("a", [0.001, 0.003, 0.002]), timing("b", [1.0, 1.1, 1.2])).ratios
    assert ratio.times.margin > 0.5 * ratio.times.value
    assert words.comparison(ratio) == f"a is at least {ratio.times.low:.0f} times faster than b."


def test_a_lopsided_interval_around_1_has_both_ends() -> None:
    found = timings(timing("a", [0.001, 0.003]), timing("b", [0.002, 0.003]))
    [ratio] = found.ratios
    low, high = (tables.amount(end, 2) for end in (ratio.times.low, ratio.times.high))
    assert words.comparison(ratio) == f"a and b do not differ measurably; the ratio is between {low} and {high}."
    assert words.rows(found)[2][-1] == f"{low} … {high}"


def test_one_run_of_each_is_not_compared() -> None:
    found = timings(timing("a", [0.001]), timing("b", [0.002]), wanted=1)
    assert words.comparison(found.ratios[0]) == "a and b cannot be compared: each needs two runs."
    assert words.rows(found)[0] == ["command", "mean ± 95%", "min … max", "runs"]  # without σ and relative
    assert words.rows(timings(GZIP, timing("b", [0.2])))[2][2] == "—"


def test_all_pairs_share_the_level() -> None:
    """Of three commands there are three pairs, whichever is fastest."""
    more = timings(GZIP, XZ, timing("lz", [0.5 + 0.01 * z for z in ZIGZAG])).ratios
    assert [ratio.slow.name for ratio in more] == ["xz", "lz"]
    assert more[0].times.margin > timings(GZIP, XZ).ratios[0].times.margin


def test_remarks() -> None:
    assert words.remarks(timings(GZIP, XZ)) == []
    rising = timing("up", [1 + 0.1 * i for i in range(10)])
    [drift] = words.remarks(timings(rising, rising))
    assert drift.startswith("Times drifted while")
    assert "The comparison uses the 10 rounds in which every command was run, two by two" in drift
    first, later = (timing(name, values) for name, values in (("f", [9.0, *ZIGZAG]), ("l", [*ZIGZAG, 9.0])))
    assert words.remarks(timings(first)) == ["The first run of f is an outlier; use --warmup 1 to leave it out."]
    assert words.remarks(timings(first, warmup=2))[0].endswith("use --warmup 3 to leave it out.")
    assert words.remarks(timings(later))[0].startswith("Some runs of l are outliers: other programs")
    [failed] = words.remarks(timings(timing("no", ZIGZAG, code=4)))
    assert failed == "10 runs of 'no' failed, and the time is included; the last one: exit code 4."


def test_the_shell() -> None:
    told = words.remarks(timings(XZ, overhead=Overhead("/bin/sh", 0.0012, 0.00002)))
    assert told == ["The time that /bin/sh takes by itself, 1.200 ± 0.040 ms, is subtracted."]
    told = words.remarks(timings(XZ, timing("t", [0.0001, 0.0003]), overhead=Overhead("/bin/sh", 0.0012, 0.0001)))
    assert told[1] == (
        "That is not known precisely enough for times as short as those of t; -N runs programs without a shell."
    )


def test_which_interval_it_is() -> None:
    """Where a command is not known to its precision; nothing for those that are, or whose number of runs was given."""
    student = timing("a", [0.02, 0.03], reached=False, interval="fixed-n")
    assert words.remarks(timings(student, XZ)) == ["For a, ± is Student's: no precision ended the runs."]
    assert words.remarks(timings(student, XZ, wanted=2)) == []
    stopped = timing("b", [0.02, 0.03], reached=False, interval="anytime")
    assert words.remarks(timings(stopped, stopped=True)) == [
        "For b, ± is that of a confidence sequence, which holds whenever you stop."
    ]
    [left] = [each["interval"] for each in words.to_dict(timings(stopped))["results"]]
    assert left == "anytime"


def test_a_precision_wider_than_the_mean() -> None:
    [told] = words.remarks(timings(Timing("a", "a", GZIP.runs, GZIP.seconds, 0.001, 2.0, True), precision=2.0))
    assert told == "The precision is larger than the mean time of a; give a share of the mean, such as 5%."


def test_no_time_is_below_zero() -> None:
    """Although a run may take less than the shell does on average; what is computed from them rests on all of it."""
    short = timing("a", [-0.003, 0.001, 0.0005], reached=False)
    found = timings(short, overhead=Overhead("/bin/sh", 0.004, 0.0001, user=0.4, system=1.0))
    [row] = words.to_dict(found)["results"]
    assert (row["mean"], row["min"], row["times"]) == (0, 0, [0, 0.001, 0.0005])
    assert (row["user"], row["system"]) == (pytest.approx(0.1), 0)
    assert "-0" not in words.text(found)
    assert short.deviation == pytest.approx(np.std([-0.003, 0.001, 0.0005], ddof=1))


def test_units() -> None:
    found = timings(GZIP, XZ)
    assert [row[1] for row in words.rows(found, "microsecond")[1:]] == ["20,000 ± 1,000 µs", "74,000 ± 1,000 µs"]
    assert [row[2] for row in words.rows(found, "second")[1:]] == ["0.00034 s", "0.0013 s"]


def test_outliers_are_far_out() -> None:
    """Beyond three interquartile ranges; none where there are too few runs for quartiles."""
    quartiles = np.quantile([*ZIGZAG, 9.0], [0.25, 0.75])
    edge = float(quartiles[1] + 3 * (quartiles[1] - quartiles[0]))
    assert timing("a", [*ZIGZAG, edge - 0.01]).outliers == []
    assert timing("a", [*ZIGZAG, 9.0]).outliers == [10]
    assert timing("a", [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 9.0]).outliers == []


# ---- for programs


def test_json_has_what_hyperfine_has() -> None:
    found = words.to_dict(timings(GZIP, XZ))
    assert found["version"] == 1
    first = found["results"][0]
    for key in ("command", "mean", "stddev", "median", "user", "system", "min", "max", "times", "exit_codes"):
        assert key in first
    assert (first["command"], first["user"], first["runs"]) == ("gzip -k | wc", 0.5, 10)
    assert first["times"] == GZIP.seconds.tolist()
    assert found["reached"] is True
    [ratio] = found["ratios"]
    assert ratio["ratio"] == pytest.approx(3.7)
    assert ratio["low"] < 3.7 < ratio["high"]
    assert found["results"][1]["relative"] == pytest.approx(3.7)
    assert math.isnan(words.to_dict(timings(GZIP))["results"][0]["relative"])


def test_parameters_and_signals_are_as_in_hyperfine() -> None:
    killed = Timing("a", "a 1", [Run(1.0, code=-9), Run(1.0, code=2), Run(1.0)], np.ones(3), 0.1, 0.1, True)
    found = replace(timings(killed), parameters={"a": {"n": "1"}})
    [result] = words.to_dict(found)["results"]
    assert (result["exit_codes"], result["parameters"]) == ([137, 2, 0], {"n": "1"})
    [row] = words.records(found)
    assert row["parameter_n"] == "1"
    assert "parameters" not in words.to_dict(timings(killed))["results"][0]


def test_markdown() -> None:
    times = [0.02 + 0.0005 * z for z in ZIGZAG]
    found = timings(timing("a", times), timing("b`|", times, command="echo ``"), XZ)
    verdict, empty, *lines = words.markdown(found).splitlines()
    assert (verdict, empty) == (words.verdict(found), "")
    assert lines[0] == "| command | mean ± 95% | σ | min … max | runs | relative |"
    assert lines[1] == "| :-- | --: | --: | --: | --: | --: |"
    assert lines[2].startswith(r"| `a -k \| wc` | 20.0 ± 1.0 ms |")
    assert lines[3].startswith(r"| `` b`\| ``: ``` echo `` ``` | 20.0 ± 1.0 ms |")
