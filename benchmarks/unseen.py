"""
Measure the strategies on random problems that nothing was tuned on.

`python benchmarks/unseen.py` draws 200 problems and prints what docs/auto.md says of them: the worst excess of each
strategy with its standard error in parentheses, its 90th percentile and its median, and the problems on which the
default is at its worst. About ten minutes on two cores. `--seed` draws others, `--problems` more or fewer.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np

from equipoise.lab.leaderboard import Board, Cell, Summary, entries, leaderboard
from equipoise.lab.suite import Case, Tails, claims, gaussian, laplace, lognormal, mixture, row, student, uniform
from equipoise.problem import Bernoulli, Empirical, Exponential, Law, Problem, Rademacher

SEED = 2026
STRATEGIES = ["auto", "b-as", "ch-as", "gafs-max", "greedy", "two-stage", "uniform"]


def rare(sd: float) -> Law:
    """Return the law of a value that occurs one time in twenty, and is zero otherwise."""
    return Empirical([0.0] * 19 + [sd / math.sqrt(0.05 * 0.95)])


def spikes(sd: float) -> Law:
    """Return the law of times that vary little, except one in thirty."""
    return mixture((29 / 30, 3 * sd, sd / 8), (1 / 30, 8.5 * sd, sd / 2), points=600)


FAMILIES: dict[str, tuple[Callable[[float], Law], Tails]] = {
    "gaussian": (gaussian, "light"),
    "rademacher": (Rademacher, "light"),
    "uniform": (uniform, "light"),
    "exponential": (Exponential, "exponential"),
    "laplace": (laplace, "exponential"),
    "humps": (lambda sd: mixture((0.9, 0, sd / 2), (0.1, 3 * sd, sd / 2), points=400), "exponential"),
    "lognormal": (lognormal(0.5), "heavy"),
    "student": (student, "heavy"),
    "claims": (lambda sd: claims(0.8, sd, points=400), "heavy"),
    "rare": (rare, "heavy"),
    "spikes": (spikes, "heavy"),
}


def deviations(rng: np.random.Generator, arms: int) -> list[float]:
    """Return standard deviations: equal, scattered, geometric, or all equal except an eighth of them."""
    style = rng.integers(5)
    some = np.arange(arms) < max(1, arms // 8)
    if style == 0:
        return [1.0] * arms
    if style == 1:
        return list(np.exp(rng.normal(0, rng.uniform(0.2, 1), arms)))
    if style == 2:
        return list(rng.permutation(row(1, 30 ** rng.uniform(), arms)))
    ratio = 20 ** rng.uniform()
    return list(np.where(some, ratio if style == 3 else 1 / ratio, 1.0))


def draw(rng: np.random.Generator, name: str) -> Case:
    """Return a problem: 2 to 100 arms, 15 to 1,000 samples each, at most 20,000 in all; one in four is binary."""
    arms = round(2 * 50 ** rng.uniform())
    budget = round(min(20_000, arms * 15 * (1000 / 15) ** rng.uniform()))
    if rng.uniform() < 0.25:
        ps = rng.uniform(0.02, 0.98, arms) if rng.uniform() < 0.5 else 0.002 * 250 ** rng.uniform(size=arms)
        return Case(
            f"{name}-binary-{arms}-{budget}", "", Problem([Bernoulli(p) for p in ps]), budget, "light", "binary"
        )
    few = int(rng.integers(1, 4)) if rng.uniform() < 0.4 else 1
    picked = list(rng.choice(list(FAMILIES), few, replace=False))
    laws = [FAMILIES[picked[k % few]][0](float(sd)) for k, sd in enumerate(deviations(rng, arms))]
    tails = max((FAMILIES[each][1] for each in picked), key=["light", "exponential", "heavy"].index)
    return Case(f"{name}-{'-'.join(picked)}-{arms}-{budget}", "", Problem(laws), budget, tails)


def markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def hidden(cell: Cell) -> bool:
    """Whether the problem has arms whose variance hides in rare samples."""
    return any(family in cell.case.name for family in ("rare", "spikes", "claims"))


GROUPS: dict[str, Callable[[Cell], bool]] = {
    "continuous": lambda cell: cell.case.kind == "continuous" and not hidden(cell),
    "continuous, some arms with rare large values": lambda cell: cell.case.kind == "continuous" and hidden(cell),
    "binary": lambda cell: cell.case.kind == "binary",
}


def tables(board: Board) -> str:
    """Return the strategies in each group, and the problems that are hardest there for the default."""
    parts = []
    for title, belongs in GROUPS.items():
        cells = [cell for cell in board.cells if belongs(cell)]
        found = {name: Summary.of([cell for cell in cells if cell.strategy == name]) for name in board.strategies()}
        ranked = sorted(((name, each) for name, each in found.items() if each), key=lambda pair: pair[1].worst)
        parts.append(f"{title}: {ranked[0][1].problems} problems\n")
        parts.append(
            markdown(
                ["strategy", "worst", "90th percentile", "median"],
                [
                    [name, f"{each.worst:,.0f} ({each.error:,.0f})", f"{each.ninth:,.0f}", f"{each.median:.1f}"]
                    for name, each in ranked
                ],
            )
        )
        hardest = sorted((cell for cell in cells if cell.strategy == "auto"), key=lambda cell: -cell.excess)[:5]
        rows = []
        for cell in hardest:
            others = [other for other in cells if other.case is cell.case and other.strategy != "auto"]
            best = min(others, key=lambda other: other.excess)
            rows.append(
                [cell.case.name, f"{cell.excess:.0f} ({cell.error:.0f})", f"{best.excess:.0f}, {best.strategy}"]
            )
        parts.append(markdown(["hardest for auto", "excess", "best other"], rows))
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--problems", type=int, default=200)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    cases = [draw(rng, f"u{i}") for i in range(given.problems)]
    lines = [entry for entry in entries(STRATEGIES) if "theory" not in entry.name]
    print(tables(leaderboard(lines, cases)))


if __name__ == "__main__":
    main()
