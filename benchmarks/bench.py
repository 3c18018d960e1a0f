"""
What `equipoise bench` finds, with hyperfine for comparison.

`python benchmarks/bench.py coverage` simulates benchmarks of two commands and counts how often the interval of the
ratio holds; `heat` times two commands on a machine that seems to heat up, with both programs; `pairs` times ten pairs
of commands with both, until every mean is known to ±5%. The last two need hyperfine, and their seconds are worth
comparing within one run only. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from equipoise.intervals.fixed_n import student_quantile
from equipoise.run.bench import Bench, Run

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

        found = Bench({"a": "true", "b": "true"}, timer, shell="none").run()
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


def error_of(times: Sequence[float]) -> tuple[float, float]:
    """
    Return the standard error of the mean of consecutive times, and its degrees of freedom.

    Neighbouring runs are often alike, so it is that of the means of batches of about sqrt(n) runs.
    """
    size = max(math.isqrt(len(times)), 1)
    means = [statistics.fmean(times[i : i + size]) for i in range(0, len(times) - size + 1, size)]
    return statistics.stdev(means) / math.sqrt(len(means)), len(means) - 1


def apart(some: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]]) -> list[float]:
    """Return the differences of the means as multiples of the half-widths of their 95% intervals (Welch)."""
    found = []
    for a, b in zip(some, others, strict=True):
        (error, df), (other_error, other_df) = error_of(a["times"]), error_of(b["times"])
        both = math.hypot(error, other_error)
        freedom = both**4 / (error**4 / df + other_error**4 / other_df)
        found.append((a["mean"] - b["mean"]) / (student_quantile(freedom, 0.05) * both))
    return found


def pair(commands: tuple[str, str], folder: Path, limit: str) -> tuple[dict[str, Any], list[list[list[float]]]]:
    """
    Time a pair with both programs, and say how long each takes until both means are known to ±5%.

    hyperfine is run twice, before and after, which shows how far two runs of one program are apart on this machine.
    Where a program stops before ±5%, the time it would have taken follows from what it measured: half-widths fall as
    the square root of the number of runs. hyperfine cannot go on, so it is started again for the commands that need it.
    All single times are returned too.
    """
    start = time.perf_counter()
    theirs = hyperfine(commands, folder, "--shell=none", "--warmup", "3")
    seconds = time.perf_counter() - start
    found = ours(commands, folder, "-N", "--warmup", "3", "--max-seconds", limit)
    after = hyperfine(commands, folder, "--shell=none", "--warmup", "3")
    runs = [found["results"], theirs, after]
    needed = [[max(half_width(each["times"]) / 0.05, 1) ** 2 for each in some] for some in runs]
    spent = [[sum(each["times"]) for each in some] for some in runs]
    go_on = sum((n - 1) * s for n, s in zip(needed[0], spent[0], strict=True))
    again = sum(n * s for n, s in zip(needed[1], spent[1], strict=True) if n > 1)
    return {
        "commands": commands,
        "means": [[each["mean"] for each in some] for some in runs],
        "errors": [[error_of(each["times"])[0] for each in some] for some in runs],
        "runs": [[len(each["times"]) for each in some] for some in runs],
        "seconds": [found["seconds"], seconds],
        "seconds_to_5%": [found["seconds"] + go_on, seconds + again],
        "reached": [found["reached"], max(needed[1]) == 1],
        "apart": [apart(found["results"], theirs), apart(found["results"], after), apart(theirs, after)],
        "ratios": [found["ratios"][0]["ratio"], *(some[1]["mean"] / some[0]["mean"] for some in (theirs, after))],
        "drifts": found["drifts"],
    }, [[each["times"] for each in some] for some in runs]


def pairs(first: int, last: int, limit: str, times: Path | None) -> dict[str, Any]:
    """Time the pairs from one place to another, and compare the programs over all of them."""
    found, single = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rng = np.random.default_rng(1)
        (folder / "text").write_text("\n".join(map(str, rng.integers(0, 10**9, LINES))) + "\n")
        ours(PAIRS[0], folder, "-N", "--runs", "2")  # compiles what it needs, once for a machine
        for commands in PAIRS[first:last]:
            row, each = pair(commands, folder, limit)
            found.append(row)
            single.append(each)
            print(json.dumps(row), flush=True)
            if times is not None:
                times.write_text(json.dumps(single))
    return {"pairs": found, **compared(found)}


def compared(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """
    Compare the programs over all commands: how many means agree, and by how much they differ on average.

    A machine changes between two runs of the same program by more than the errors within a run say. How much more is
    found from hyperfine's two runs: `drift` is the standard deviation of the logarithm of a mean from one run to the
    next, beyond those errors. `z` are the differences of our means from the mean of hyperfine's runs before and after,
    in standard errors that include it. `offset_ms` is the median difference: starting a program from Python takes
    longer.
    """
    logs = np.log(np.array([[row["means"][k][c] for k in range(3)] for row in found for c in range(2)]))
    means = np.exp(logs)
    errors = np.array([[row["errors"][k][c] for k in range(3)] for row in found for c in range(2)]) / means
    drift = max(float(np.mean((logs[:, 1] - logs[:, 2]) ** 2 - (errors[:, 1:] ** 2).sum(axis=1))), 0.0) / 2
    theirs = logs[:, 1:].mean(axis=1)
    z = (logs[:, 0] - theirs) / np.sqrt(errors[:, 0] ** 2 + (errors[:, 1:] ** 2).sum(axis=1) / 4 + 1.5 * drift)
    together: Any = np.abs([[row["apart"][k][c] for k in range(3)] for row in found for c in range(2)]) <= 1
    return {
        "agree": dict(zip(("ours, before", "ours, after", "before, after"), map(int, sum(together)), strict=True)),
        "of": len(logs),
        "drift": math.sqrt(drift),
        "z": z.round(2).tolist(),
        "within_2": int((np.abs(z) <= 2).sum()),
        "log_ratio": [float((logs[:, 0] - theirs).mean()), float((logs[:, 0] - theirs).std(ddof=1) / len(logs) ** 0.5)],
        "offset_ms": float(np.median(1000 * (means[:, 0] - np.exp(theirs)))),
        "seconds_to_5%": [sum(row["seconds_to_5%"][k] for row in found) for k in range(2)],
        "quicker": sum(row["seconds_to_5%"][0] < row["seconds_to_5%"][1] for row in found),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["coverage", "heat", "pairs"])
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--law", type=int, action="append", help="only these laws, by their places")
    parser.add_argument(
        "--pairs", type=int, nargs=2, default=(0, len(PAIRS)), help="only the pairs between these places"
    )
    parser.add_argument("--times", type=Path, help="a file for the times of all single runs of the pairs")
    parser.add_argument("--limit", default="8", help="seconds of measuring for a pair by equipoise bench")
    given = parser.parse_args()
    report: Any
    if given.what == "coverage":
        report = []
        for law in [list(LAWS)[i] for i in given.law] if given.law else LAWS:
            report.append(coverage(law, given.studies, given.seed))
            print(json.dumps(report[-1], ensure_ascii=False), flush=True)
    else:
        report = heat() if given.what == "heat" else pairs(given.pairs[0], given.pairs[1], given.limit, given.times)
    print(json.dumps(report, ensure_ascii=False))


if __name__ == "__main__":
    main()
