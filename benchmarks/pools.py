"""
Measure how often intervals for finite populations miss, drawn without replacement, and how wide they are.

`make docs` runs this. It writes two tables of docs/explanation/intervals.md; the last line printed is one JSON object.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

from benchmarks.coverage import DOCS, LEVEL, fill, table
from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.compiled import jit
from equipoise.intervals import asymptotic, fixed_n, pool_betting, populations

RUNS, SIZES, SEED = 10_000, (30, 300), 7
WIDE, WIDE_SIZE = 100, 1000
SHARES = (0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
ALPHA = 1 - LEVEL


@cache
def items(name: str, size: int) -> Floats:
    """Return a population of this size, the same each time."""
    rng = np.random.default_rng(1)
    match name:
        case "uniform on [0, 1]":
            return rng.random(size)
        case "like Beta(2, 5)":
            return rng.beta(2, 5, size)
        case "uniform on [0.4, 0.6]":
            return rng.uniform(0.4, 0.6, size)
        case "scores 0, 1/2 and 1":
            return rng.choice([0.0, 0.5, 1.0], size, p=[0.2, 0.3, 0.5])
    return np.where(np.arange(size) % 10 == 0, rng.random(size), 0.0)


POOLS = (
    "uniform on [0, 1]",
    "like Beta(2, 5)",
    "uniform on [0.4, 0.6]",
    "scores 0, 1/2 and 1",
    "nine in ten are 0, the others uniform",
)


@jit
def draw(values: Any, size: float, rho2: float, mean: float, marks: Any, found: Any, missed: Any) -> None:
    """Draw the values; write the ends of both kinds at the marks, and which of them ever leaves out the mean."""
    betting, moments = np.zeros((1, pool_betting.COLUMNS)), np.zeros((1, asymptotic.COLUMNS))
    betting[0, pool_betting.SIZE] = size
    mark = 0
    for t in range(1, len(values) + 1):
        pool_betting.update(betting, 0, values[t - 1], (0.0, 1.0))
        asymptotic.update(moments, 0, values[t - 1], (rho2, 0.0, 1.0))
        low, high = populations.over_moments(moments, np.full(1, size), rho2, ALPHA)
        # Whether the mean is in the betting interval is quicker to say than where that ends.
        missed[0] |= pool_betting.capital(betting[0], mean)[0] > -math.log(ALPHA)
        missed[1] |= low[0] > mean + 1e-9 or high[0] < mean - 1e-9
        if mark < len(marks) and t == marks[mark]:
            found[mark, 0], found[mark, 1] = pool_betting.bounds(betting[0], ALPHA, (0.0, 1.0))
            found[mark, 2], found[mark, 3] = max(low[0], 0.0), min(high[0], 1.0)
            mark += 1


def drawn(name: str, size: int, marks: Ints, rng: np.random.Generator) -> tuple[Floats, Floats, Bools]:
    """Return the items in an order of chance, the ends of both kinds at the marks, and which kind ever misses."""
    values, found, missed = rng.permutation(items(name, size)), np.zeros((len(marks), 4)), np.zeros(2, np.bool_)
    # Tuned as a study is whose budget is half of the items.
    rho2 = asymptotic.settings(0.0, 1.0, max(size / 2, asymptotic.START), ALPHA)[asymptotic.RHO2]
    draw(values, float(size), rho2, float(items(name, size).mean()), marks, found, missed)
    return values, found, missed


@dataclass(frozen=True)
class Misses:
    """The shares of orders in which an interval left out the mean at any time."""

    pool: str
    size: int
    runs: int
    betting: float
    asymptotic: float


def misses(name: str, size: int, runs: int = RUNS, seed: int = SEED) -> Misses:
    rng, nowhere = np.random.default_rng([seed, size]), np.zeros(0, np.int64)
    missed = np.array([drawn(name, size, nowhere, rng)[2] for _ in range(runs)])
    betting, other = missed.mean(0)
    return Misses(name, size, runs, float(betting), float(other))


def widths(name: str, size: int = WIDE_SIZE, runs: int = WIDE, seed: int = SEED) -> dict[str, list[float]]:
    """Return the mean widths of each kind at some shares of the population."""
    rng, marks = np.random.default_rng([seed, size]), np.array([round(size * share) for share in SHARES])
    found = np.zeros((3, len(marks)))
    for _ in range(runs):
        values, each, _ = drawn(name, size, marks, rng)
        found[:2] += (each[:, 1::2] - each[:, ::2]).T
        for i, t in enumerate(marks.tolist()):
            error = values[:t].std(ddof=1) * math.sqrt((1 - t / size) / t)
            found[2, i] += 2 * fixed_n.student_quantile(t - 1.0, ALPHA) * error
    return dict(zip(("betting", "asymptotic", "fixed-n"), (found / runs).tolist(), strict=True))


def misses_table(rows: list[Misses]) -> str:
    head = ["items", *(f"{kind}, N = {size}" for size in SIZES for kind in ("betting", "asymptotic"))]
    lines = []
    for name in POOLS:
        here = [row for row in rows if row.pool == name]
        lines.append([name, *(f"{100 * x:.1f}" for row in here for x in (row.betting, row.asymptotic))])
    return table(head, lines)


def widths_table(found: dict[str, dict[str, list[float]]]) -> str:
    head = ["items", "kind", *(f"t = {round(WIDE_SIZE * share)}" for share in SHARES)]
    return table(
        head, [[name, kind, *(f"{w:.3g}" for w in each)] for name, by in found.items() for kind, each in by.items()]
    )


def main() -> None:
    missed = [misses(name, size) for name in POOLS for size in SIZES]
    wide = {name: widths(name) for name in POOLS}
    path = DOCS / "explanation" / "intervals.md"
    path.write_text(fill(path.read_text(), **{"pool-misses": misses_table(missed), "pool-widths": widths_table(wide)}))
    print(misses_table(missed), widths_table(wide), sep="\n\n")
    print(json.dumps({"misses": [asdict(row) for row in missed], "widths": wide}))


if __name__ == "__main__":
    main()
