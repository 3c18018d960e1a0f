"""
Measure how often intervals of contrasts over finite populations miss, and how wide they are.

`make docs` runs this. It writes a table of docs/explanation/intervals.md; the last line printed is one JSON object.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.coverage import DOCS, LEVEL, fill, table
from equipoise.base.arrays import Floats, Ints
from equipoise.compiled import jit
from equipoise.inference import finite
from equipoise.intervals import Intervals, contrasts, pool_betting, populations
from equipoise.strategies import Support

ALPHA, SEED, LOOKS = 1 - LEVEL, 9, 8
# By the number of arms: the items of each, and the runs.
SIZES: dict[int, tuple[int, int]] = {2: (1000, 400), 6: (600, 200), 24: (400, 100)}
SHARES = (0.01, 0.05, 0.3, 0.9)
ITEMS = ("zeros and ones", "ratings", "skewed")
KINDS = ("betting", "box", "asymptotic", "fixed-n")
# In the last row of some items and arms, populations of a tenth to all of the items are drawn from equally often.
UNLIKE = "unlike sizes"


@dataclass(frozen=True)
class Row:
    """
    What intervals of the difference of two halves of the arms did.

    Attributes
    ----------
    items, arms, share, runs
        What the arms have, how many they are, the share of each that is drawn, and how many runs there were.
    ever, last
        How many runs missed at any look, and at the last, by kind.
    widths
        Mean half-widths at the last look, in true standard errors of the sum of means, by kind.
    """

    items: str
    arms: int
    share: str
    runs: int
    ever: dict[str, int]
    last: dict[str, int]
    widths: dict[str, float]


def populations_of(name: str, sizes: Ints) -> list[Floats]:
    """Return the items of each arm, the same each time."""
    rng, arms = np.random.default_rng(3), len(sizes)
    if name == ITEMS[0]:
        # Zeros and ones as evenly mixed as can be.
        rates = np.linspace(0.1, 0.9, arms)
        return [(np.arange(n) < round(n * p)).astype(float) for n, p in zip(sizes, rates, strict=True)]
    if name == ITEMS[1]:
        return [rng.choice(5, n, p=rng.dirichlet(np.full(5, 2.0))) / 4 for n in sizes]
    return [np.minimum(rng.exponential(0.05, n), 1.0) for n in sizes]


@jit
def _follow(state: Any, arm: int, values: Any) -> None:
    for x in values:
        pool_betting.update(state, arm, x, (0.0, 1.0))


def drawn(items: list[Floats], counts: Ints, rng: np.random.Generator) -> Iterator[tuple[Floats, Floats]]:
    """Yield the states of betting and of moments at some looks, the last of them at these counts."""
    orders = [rng.permutation(values) for values in items]
    arms = rng.permutation(np.repeat(np.arange(len(items)), counts))
    sizes = np.array([len(values) for values in items], float)
    betting = np.zeros((len(items), pool_betting.COLUMNS))
    betting[:, pool_betting.SIZE] = sizes
    done = np.zeros(len(items), int)
    for n in np.unique(np.geomspace(min(4 * len(items), len(arms)), len(arms), LOOKS).astype(int)):
        now = np.bincount(arms[:n], minlength=len(items))
        for k, order in enumerate(orders):
            _follow(betting, k, order[done[k] : now[k]])
        done = now
        seen = [order[:t] for order, t in zip(orders, now, strict=True)]
        moments = [(len(x), x.mean() if len(x) else 0.0, x.var() * len(x) if len(x) else 0.0, 0.0) for x in seen]
        yield betting, np.array(moments)


def ends(
    weights: Floats, betting: Floats, moments: Floats, binary: bool, budget: int
) -> dict[str, tuple[float, float]]:
    """Return the ends of the contrast by kind."""
    arms, sizes = len(weights), betting[:, pool_betting.SIZE]
    places, rows = np.arange(arms)[None], weights[None]
    support: Support = "binary" if binary else (0.0, 1.0)
    found = {"betting": Intervals(arms, (0, 1), populations=tuple(sizes)).contrasts(betting, places, rows, ALPHA)}
    if binary:
        each = populations.over_binary(betting[:, [pool_betting.COUNT, pool_betting.SUM]], sizes, ALPHA / arms)
    else:
        each = np.transpose([pool_betting.bounds(row, ALPHA / arms, (0.0, 1.0)) for row in betting])
    found["box"] = contrasts.box(rows, each[0][places], each[1][places])
    counts, means, m2s = moments[:, 0], moments[:, 1], moments[:, 2]
    spreads = np.sqrt(m2s / np.maximum(counts - 1, 1))
    deviations = np.where(m2s > 0, spreads, spreads.max())
    for kind in ("asymptotic", "fixed-n"):
        rule = Intervals(arms, support, kind, budget=budget)

        def of_arms(alpha: float, rule: Intervals = rule) -> tuple[Floats, Floats]:
            whole = np.array(rule.bounds_at(moments, alpha))
            return finite.bounds(rule, moments, alpha, counts.astype(int), means, sizes, whole)

        found[kind] = finite.contrasts(rule, places, rows, ALPHA, moments, deviations, sizes, of_arms)
    return {kind: (float(low[0]), float(high[0])) for kind, (low, high) in found.items()}


def row(name: str, arms: int, share: float, unlike: bool = False, runs: int | None = None, seed: int = SEED) -> Row:
    size, most = SIZES[arms]
    runs, rng = runs or most, np.random.default_rng([seed, arms, round(1000 * share), unlike])
    sizes = np.geomspace(size / 10, size, arms).astype(int) if unlike else np.full(arms, size)
    counts = np.minimum(sizes, round(share * sizes.mean())) if unlike else np.maximum((share * sizes).astype(int), 1)
    items = populations_of(name, sizes)
    weights = np.where(np.arange(arms) % 2 == 0, 1.0, -1.0) / (arms / 2)
    true = float(weights @ [values.mean() for values in items])
    variances = np.array([values.var(ddof=1) for values in items])
    error = math.sqrt(float(weights**2 @ (variances * (1 / counts - 1 / sizes))))
    ever, last = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
    widths = dict.fromkeys(KINDS, 0.0)
    for _ in range(runs):
        missed = dict.fromkeys(KINDS, False)
        for betting, moments in drawn(items, counts, rng):
            found = ends(weights, betting, moments, name == ITEMS[0], int(counts.sum()))
            out = {kind: not low - 1e-9 <= true <= high + 1e-9 for kind, (low, high) in found.items()}
            missed = {kind: missed[kind] or out[kind] for kind in KINDS}
        for kind, (low, high) in found.items():
            ever[kind] += missed[kind]
            last[kind] += out[kind]
            widths[kind] += (min(high, 1.0) - max(low, -1.0)) / 2 / error / runs
    return Row(name, arms, UNLIKE if unlike else f"{share:.0%}", runs, ever, last, widths)


def sums_table(rows: list[Row]) -> str:
    head = ["items", "arms", "drawn", *(f"{kind}: ever, widths" for kind in KINDS[:3]), "fixed-n: last, widths"]
    lines = []
    for each in rows:
        missed = [*(each.ever[kind] for kind in KINDS[:3]), each.last["fixed-n"]]
        cells = [f"{100 * n / each.runs:.1f}, {each.widths[kind]:.1f}" for n, kind in zip(missed, KINDS, strict=True)]
        lines.append([each.items, f"{each.arms}", each.share, *cells])
    return table(head, lines)


def main() -> None:
    rows = []
    for name in ITEMS:
        for arms in SIZES:
            for share, unlike in (*((share, False) for share in SHARES), (0.5, True)):
                rows.append(row(name, arms, share, unlike))
                print(rows[-1], flush=True)
    path = DOCS / "explanation" / "intervals.md"
    path.write_text(fill(path.read_text(), **{"pool-sums": sums_table(rows)}))
    print(sums_table(rows))
    print(json.dumps([asdict(each) for each in rows]))


if __name__ == "__main__":
    main()
