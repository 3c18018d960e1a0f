"""
What `equipoise bench` finds, with hyperfine for comparison.

`python benchmarks/bench.py coverage` simulates benchmarks of two commands and counts how often the interval of the
ratio holds; `heat` times two commands on a machine that seems to heat up, with both programs; `means` compares the mean
times that both programs find for twenty commands; `pairs` times the commands in ten pairs with both, until every mean
is known to ±5%; `pauses` shows what a pause before a run, or a session of its own, does to a short command; `spawns`
what the timer adds to a command's time. `heat`, `means` and `pairs` need hyperfine. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.intervals.fixed_n import student_quantile
from equipoise.timing import Bench, BenchOptions, ProcessTimer, Run

Draw = Callable[[np.random.Generator], float]

# ---- coverage


def normal(mean: float, share: float) -> Draw:
    return lambda rng: float(rng.normal(mean, share * mean))


def lognormal(mean: float, share: float) -> Draw:
    sigma = math.sqrt(math.log1p(share * share))
    return lambda rng: mean * math.exp(sigma * rng.standard_normal() - sigma * sigma / 2)


def tailed(mean: float, share: float) -> Draw:
    """Times that are never shorter than some time, and longer by an exponential variable."""
    return lambda rng: mean * (1 - share + share * rng.standard_exponential())


def spiked(mean: float) -> Draw:
    """Times of which a tenth are longer by half."""
    return lambda rng: mean / 1.05 * (1 + 0.02 * rng.standard_normal() + 0.5 * (rng.random() < 0.1))


# The times of two commands, with means 1 and 1.5; σ as a share of the mean.
LAWS: Final[dict[str, tuple[Draw, Draw]]] = {
    "normal, σ 5%": (normal(1, 0.05), normal(1.5, 0.05)),
    "normal, σ 15%": (normal(1, 0.15), normal(1.5, 0.15)),
    "normal, σ 15% and 2%": (normal(1, 0.15), normal(1.5, 0.02)),
    "lognormal, σ 15%": (lognormal(1, 0.15), lognormal(1.5, 0.15)),
    "exponential tail, σ 10%": (tailed(1, 0.1), tailed(1.5, 0.1)),
    "one run in ten takes 50% longer": (spiked(1), spiked(1.5)),
}


def coverage(law: str, studies: int, first: int = 0) -> dict[str, Any]:
    """How often the interval of the ratio holds, of this many simulated benchmarks to ±5%, from a seed on."""
    held, means_held, runs, drifted = 0, 0, 0, 0
    for seed in range(first, first + studies):
        rng, draws = np.random.default_rng([seed, 1]), dict(zip("ab", LAWS[law], strict=True))

        def timer(
            words: Sequence[str], arm: str, rng: np.random.Generator = rng, draws: dict[str, Draw] = draws
        ) -> Run:
            return Run(draws[arm](rng))

        found = Bench(BenchOptions({"a": "true", "b": "true"}, shell="none"), timer).run()
        [ratio] = found.ratios
        true = 1.5 if ratio.fast.name == "a" else 1 / 1.5
        held += ratio.times.low <= true <= ratio.times.high
        means_held += all(abs(c.mean - m) <= c.margin for c, m in zip(found.commands, (1, 1.5), strict=True))
        runs += len(found.order)
        drifted += found.drifts
    share = held / studies
    return {
        "law": law,
        "studies": studies,
        "ratio": share,
        "error": math.sqrt(share * (1 - share) / studies),
        "means": means_held / studies,
        "runs": runs / studies,
        "drift_warnings": drifted,
    }


# ---- both programs


def ours(commands: Sequence[str], folder: Path, *options: str) -> dict[str, Any]:
    """What `equipoise bench` finds, and the seconds it takes, its own start included."""
    start = time.perf_counter()
    words = [sys.executable, "-m", "equipoise", "bench", *commands, "--json", *options]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found | {"seconds": time.perf_counter() - start}


def hyperfine(commands: Sequence[str], folder: Path, *options: str) -> list[dict[str, Any]]:
    """What hyperfine finds."""
    words = ["hyperfine", "--export-json", "hyperfine.json", *options, *commands]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    found: list[dict[str, Any]] = json.loads((folder / "hyperfine.json").read_text())["results"]
    return found


def half_width(times: Sequence[float]) -> float:
    """The half-width of Student's interval at 97.5%, as a share of the mean: two such hold at 95%."""
    n = len(times)
    return student_quantile(n - 1.0, 0.025) * statistics.stdev(times) / math.sqrt(n) / statistics.fmean(times)


# ---- a machine that heats up

# Each run takes 2% longer than the one before, up to 40%; the number of runs is kept in a file.
HEAT: Final = """#!/bin/sh
runs=$(cat runs 2>/dev/null || echo 0)
echo $((runs < 20 ? runs + 1 : 20)) > runs
exec sleep $(awk "BEGIN { print $1 * (1 + 0.02 * $runs) }")
"""


def heat() -> dict[str, Any]:
    """Time 0.22 s and then 0.20 s on such a machine, cold at the start, with both programs, and print what they say."""
    commands = ["./heat.sh 0.22", "./heat.sh 0.20"]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "heat.sh").write_text(HEAT)
        (folder / "heat.sh").chmod(0o755)
        for program in (["hyperfine", "--shell=none"], [sys.executable, "-m", "equipoise", "bench"]):
            (folder / "runs").unlink(missing_ok=True)
            words = [*program, "--runs", "10", "--export-json", "found.json", *commands]
            print(subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout)
            known = json.loads((folder / "found.json").read_text())
            found["ours" if "bench" in program else "hyperfine"] = [each["mean"] for each in known["results"]]
    return found | {"ratios": known["ratios"], "drifts": known["drifts"]}


# ---- ten pairs

PYTHON: Final = f"{sys.executable} -I -S -c"
PAIRS: Final[list[tuple[str, str]]] = [
    ("gzip -1 -c text", "gzip -2 -c text"),
    ("md5sum text", "sha256sum text"),
    ("wc -w text", "wc -m text"),
    ("grep -c 7 text", "grep -c 77 text"),
    ("sort --parallel=1 text", "sort --parallel=1 -n text"),
    ("sed -n s/1/2/p text", "awk /1/ text"),
    (f"{PYTHON} 'pass'", f"{PYTHON} 'import json'"),
    (f"{PYTHON} 'sum(range(10**6))'", f"{PYTHON} 'sum(i for i in range(10**6))'"),
    ("base64 text", "base32 text"),
    ("nl text", "tac text"),
]
# Lines of the file that most of them read: enough that starting a program is a small part of what it takes.
LINES: Final = 200_000


def text_in(folder: Path) -> None:
    """Write the file that most commands read."""
    rng = np.random.default_rng(1)
    (folder / "text").write_text("\n".join(map(str, rng.integers(0, 10**9, LINES))) + "\n")


# ---- the same means

# How long a command is run by a program in a round, about; and the most and the fewest runs.
SECONDS: Final = 0.25
RUNS: Final = 10, 100


def compare(command: str, folder: Path, rounds: int, rng: np.random.Generator) -> dict[str, Any]:
    """
    Time a command with both programs, in rounds.

    A round has a benchmark by `equipoise bench` and two by hyperfine, in random order: the same command, alone and
    without a shell, as often, after the same warm-up. A machine changes from one benchmark to the next by more than the
    spread within one shows, so that errors are those between rounds.
    """
    [first] = hyperfine([command], folder, "--shell=none", "--runs", "5", "--warmup", "3")
    runs = str(int(np.clip(SECONDS / first["mean"], *RUNS)))
    programs: list[Callable[[], dict[str, Any]]] = [
        lambda: ours([command], folder, "-N", "--warmup", "3", "--runs", runs)["results"][0],
        lambda: hyperfine([command], folder, "--shell=none", "--warmup", "3", "--runs", runs)[0],
        lambda: hyperfine([command], folder, "--shell=none", "--warmup", "3", "--runs", runs)[0],
    ]
    means, minima = np.zeros((rounds, 3)), np.zeros((rounds, 3))
    for i in range(rounds):
        for k in rng.permutation(3).tolist():
            found = programs[k]()
            means[i, k], minima[i, k] = found["mean"], found["min"]
    logs = np.log(means)
    return {
        "command": command.replace(sys.executable, "python"),
        "runs": int(runs),
        "rounds": rounds,
        "ms": float(1000 * means[:, 1].mean()),
        "ours": mean_and_error(logs[:, 0] - logs[:, 1]),
        "itself": mean_and_error(logs[:, 2] - logs[:, 1]),
        "minima": mean_and_error(np.log(minima[:, 0] / minima[:, 1])),
    }


def mean_and_error(values: Floats) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))


def means(first: int, last: int, rounds: int, rows: Path | None) -> dict[str, Any]:
    """Compare the means of the commands from one place to another; the rows of earlier calls are in a file."""
    found = [json.loads(line) for line in rows.read_text().splitlines()] if rows is not None and rows.exists() else []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text_in(folder)
        ours(PAIRS[0], folder, "-N", "--runs", "2")  # compiles what it needs, once for a machine
        for i in range(first, last):
            found.append(
                compare([each for pair in PAIRS for each in pair][i], folder, rounds, np.random.default_rng(i))
            )
            print(json.dumps(found[-1]), flush=True)
            if rows is not None:
                rows.write_text("".join(json.dumps(row) + "\n" for row in found))
    return {"commands": len(found)} | {
        what: together([(*row[what], row["rounds"]) for row in found]) for what in ("ours", "itself", "minima")
    }


def together(rows: Sequence[tuple[float, float, int]]) -> dict[str, Any]:
    """
    Return over all commands how many means agree, and the mean of the logarithms of their ratios with its error.

    Two means agree if 0 lies within Student's 95% interval of that logarithm.
    """
    logs, errors = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    return {
        "agree": sum(abs(log) <= student_quantile(rounds - 1.0, 0.05) * error for log, error, rounds in rows),
        "log_ratio": float(logs.mean()),
        "error": float(np.sqrt(np.square(errors).sum())) / len(rows),
        "median_error": float(np.median(errors)),
    }


# ---- what makes a short command slower

# Milliseconds of computing before each run; and a run right after the last one, in a session of its own.
PAUSES: Final = (0.0, 0.1, 0.6, 3.0)
SESSION: Final = "session"


def pauses(rounds: int, runs: int = 60) -> dict[str, Any]:
    """Time `grep` after pauses, in rounds in random order, relative to runs without a pause."""
    program, words = shutil.which("grep") or "", ("grep", "-c", "7", "text")
    found: dict[float | str, list[tuple[float, float]]] = {way: [] for way in (*PAUSES, SESSION)}
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        text_in(Path(name))
        devices = [(os.POSIX_SPAWN_OPEN, file, os.devnull, os.O_RDWR, 0) for file in range(3)]

        def run(way: float | str) -> float:
            until = time.perf_counter() + (0.0 if way == SESSION else float(way) / 1000)
            while time.perf_counter() < until:
                pass
            start = time.perf_counter()
            os.wait4(os.posix_spawn(program, words, os.environ, file_actions=devices, setsid=way == SESSION), 0)
            return time.perf_counter() - start

        for _ in range(rounds):
            for i in rng.permutation(len(found)).tolist():
                way = list(found)[i]
                times = [run(way) for _ in range(runs + 3)][3:]
                found[way].append((statistics.fmean(times), min(times)))
    logs = {way: np.log(pairs) for way, pairs in found.items()}
    return {
        "ms": 1000 * statistics.fmean(mean for mean, _ in found[0.0]),
        **{
            str(way): {
                "mean": mean_and_error(each[:, 0] - logs[0.0][:, 0]),
                "fastest": mean_and_error(each[:, 1] - logs[0.0][:, 1]),
            }
            for way, each in logs.items()
            if way != 0.0
        },
    }


# ---- what timing a program adds to its time


def spawns(rounds: int) -> dict[str, Any]:
    """
    Time `true` with the timer of `equipoise bench` and with the least that starts a program and waits for its end.

    The ways alternate in random order in one process, so that what the machine does happens to all of them alike. Found
    for each is the median, and the ratios of quartiles and medians to those of the least, with errors from 20 parts.
    """
    program = shutil.which("true") or ""
    timer, env = ProcessTimer(), dict(os.environ)
    devices = [(os.POSIX_SPAWN_OPEN, file, os.devnull, os.O_RDWR, 0) for file in range(3)]

    def least(**own: Any) -> Callable[[], float]:
        def run() -> float:
            start = time.perf_counter()
            os.wait4(os.posix_spawn(program, ["true"], env, file_actions=devices, **own), 0)
            return time.perf_counter() - start

        return run

    ways: dict[str, Callable[[], float]] = {
        "least": least(),
        "least, again": least(),
        "group": least(setpgroup=0),
        "session": least(setsid=True),
        "ours": lambda: timer(["true"], "true").seconds,
    }
    rng, found = np.random.default_rng(1), np.zeros((len(ways), rounds))
    for i in range(rounds):
        for k in rng.permutation(len(ways)).tolist():
            found[k, i] = [*ways.values()][k]()
    known: dict[str, Any] = {}
    for k, way in enumerate(ways):
        known[way] = {"us": float(1e6 * np.median(found[k]))}
        for name, quantile in (("quartile", 0.25), ("median", 0.5)):
            parts = [np.quantile(part, quantile, axis=1) for part in np.array_split(found, 20, axis=1)]
            known[way][name] = mean_and_error(np.log([part[k] / part[0] for part in parts]))
    return known


# ---- time to a precision


def pair(commands: tuple[str, str], folder: Path, limit: str) -> dict[str, Any]:
    """
    Time a pair with both programs, and say how long each takes until both means are known to ±5%.

    Where a program stops before ±5%, the time it would have taken follows from what it measured: half-widths fall as
    the square root of the number of runs. hyperfine cannot go on, so it is started again for the commands that need it.
    """
    start = time.perf_counter()
    theirs = hyperfine(commands, folder, "--shell=none", "--warmup", "3")
    seconds = time.perf_counter() - start
    found = ours(commands, folder, "-N", "--warmup", "3", "--max-seconds", limit)
    runs = [found["results"], theirs]
    needed = [[max(half_width(each["times"]) / 0.05, 1) ** 2 for each in some] for some in runs]
    spent = [[sum(each["times"]) for each in some] for some in runs]
    go_on = sum((n - 1) * s for n, s in zip(needed[0], spent[0], strict=True))
    again = sum(n * s for n, s in zip(needed[1], spent[1], strict=True) if n > 1)
    return {
        "commands": commands,
        "means": [[each["mean"] for each in some] for some in runs],
        "runs": [[len(each["times"]) for each in some] for some in runs],
        "seconds": [found["seconds"], seconds],
        "seconds_to_5%": [found["seconds"] + go_on, seconds + again],
        "reached": [found["reached"], max(needed[1]) == 1],
        "drifts": found["drifts"],
    }


def pairs(first: int, last: int, limit: str) -> dict[str, Any]:
    """Time the pairs from one place to another."""
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text_in(folder)
        ours(PAIRS[0], folder, "-N", "--runs", "2")  # compiles what it needs, once for a machine
        for commands in PAIRS[first:last]:
            found.append(pair(commands, folder, limit))
            print(json.dumps(found[-1]), flush=True)
    return {
        "pairs": len(found),
        "seconds_to_5%": [sum(row["seconds_to_5%"][k] for row in found) for k in range(2)],
        "quicker": sum(row["seconds_to_5%"][0] < row["seconds_to_5%"][1] for row in found),
        "reached": [sum(row["reached"][k] for row in found) for k in range(2)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["coverage", "heat", "means", "pairs", "pauses", "spawns"])
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--law", type=int, action="append", help="only these laws, by their places")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first command or pair, by its place")
    parser.add_argument("--to", type=int, help="the one after the last")
    parser.add_argument("--rounds", type=int, default=12, help="rounds of means, pauses and spawns")
    parser.add_argument("--rows", type=Path, help="a file that the rows of means are added to")
    parser.add_argument("--limit", default="8", help="seconds of measuring for a pair by equipoise bench")
    given = parser.parse_args()
    report: Any
    if given.what == "coverage":
        report = []
        for law in [list(LAWS)[i] for i in given.law] if given.law else LAWS:
            report.append(coverage(law, given.studies, given.seed))
            print(json.dumps(report[-1], ensure_ascii=False), flush=True)
    elif given.what == "heat":
        report = heat()
    elif given.what in ("pauses", "spawns"):
        report = (pauses if given.what == "pauses" else spawns)(given.rounds)
    elif given.what == "means":
        report = means(given.first, given.to or 2 * len(PAIRS), given.rounds, given.rows)
    else:
        report = pairs(given.first, given.to or len(PAIRS), given.limit)
    print(json.dumps(report, ensure_ascii=False))


if __name__ == "__main__":
    main()
