"""
Measure how often the asymptotic kind misses before and from START samples on, at the levels of 1, 10 and 100 arms.

`make docs` runs this. It writes a table of docs/explanation/intervals.md; the last line printed is one JSON object.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

import equipoise as eq
from benchmarks.coverage import DOCS, LEVEL, fill, table
from equipoise.compiled import jit
from equipoise.engine import streams
from equipoise.intervals import Intervals
from equipoise.intervals.asymptotic import START

RUNS, LENGTH, TARGET, SEED = 20_000, 1000, 100, 6
ARMS = (1, 10, 100)

_GRID = (np.arange(50) + 0.5) / 50
LAWS: dict[str, eq.Law] = {
    "Gaussian": eq.Gaussian(),
    "uniform": eq.Uniform(),
    "Laplace": eq.Laplace(),
    "Student, 3 degrees of freedom": eq.StudentT(3),
    "exponential": eq.Exponential(),
    "log-normal, σ = 0.5": eq.LogNormal(0, 0.5),
    "log-normal, σ = 1": eq.LogNormal(),
    "coin, p = 0.5, not known to be binary": eq.Bernoulli(0.5),
    "coin, p = 0.1, not known to be binary": eq.Bernoulli(0.1),
    "half zeros, half uniform": eq.Empirical(np.concatenate([np.zeros(50), _GRID])),
    "two narrow groups, 1 : 1": eq.Empirical(np.concatenate([_GRID / 50, 1 + _GRID / 50])),
    "two narrow groups, 3 : 7": eq.Empirical(np.concatenate([1 + _GRID[:30] / 50, np.tile(_GRID[:35], 2) / 50])),
}


@dataclass(frozen=True)
class Row:
    """The shares of an arm's streams that missed: before START samples, from there on, and at any time."""

    law: str
    arms: int
    runs: int
    before: float
    after: float
    ever: float


@cache
def _watch(update: Any, bounds: Any) -> Any:
    """Compiled: whether a stream's interval leaves out the mean before and from START samples on, for each level."""

    def watch(values: Any, mean: float, alphas: Any, settings: Any, columns: int, found: Any) -> None:
        state = np.zeros((1, columns))
        for t in range(len(values)):
            update(state, 0, values[t], settings[0])
            for i in range(len(alphas)):
                low, high = bounds(state[0], alphas[i], settings[i])
                if mean < low - 1e-12 or mean > high + 1e-12:
                    found[i, int(t + 1 >= START)] = True

    return jit(watch, nogil=True)


def measure(name: str, runs: int = RUNS, length: int = LENGTH, seed: int = SEED) -> list[Row]:
    """Return the misses on a law for each number of arms."""
    problem = eq.Problem([LAWS[name]])
    kernels = [Intervals(K, None, "asymptotic", LEVEL, K * TARGET).kernel for K in ARMS]
    watch = _watch(kernels[0].update, kernels[0].bounds)
    settings = tuple(kernel.settings for kernel in kernels)
    alphas = np.array([(1 - LEVEL) / K for K in ARMS])
    found = np.zeros((runs, len(ARMS), 2), np.bool_)
    for run in range(runs):
        values = streams.samples(problem, seed, run, 0, length)
        watch(values, float(problem.means[0]), alphas, settings, kernels[0].columns, found[run])
    shares, ever = found.mean(0), found.any(2).mean(0)
    return [
        Row(name, K, runs, float(before), float(after), float(both))
        for K, (before, after), both in zip(ARMS, shares, ever, strict=True)
    ]


def page(rows: list[Row]) -> str:
    """Return the table, in percent of the streams of an arm."""
    head = ["distribution of an arm"]
    for K in ARMS:
        allowed = f"{100 * (1 - LEVEL) / K:.3g}"
        head += [f"{K} arm{'s' if K > 1 else ''} ({allowed}%): before {START}", f"from {START} on", "at any time"]
    lines = []
    for name in LAWS:
        here = [row for row in rows if row.law == name]
        lines.append([name, *(f"{100 * x:.2f}" for row in here for x in (row.before, row.after, row.ever))])
    return table(head, lines)


def main() -> None:
    rows = [row for name in LAWS for row in measure(name)]
    path = DOCS / "explanation" / "intervals.md"
    path.write_text(fill(path.read_text(), few=page(rows)))
    print(page(rows))
    print(json.dumps([asdict(row) for row in rows], ensure_ascii=False))


if __name__ == "__main__":
    main()
