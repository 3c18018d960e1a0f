"""
Measure what docs/explanation/auto.md says about the default strategy.

`python benchmarks/auto.py` prints the page's tables, with standard errors in parentheses, and draws
docs/figures/auto-right.png. About four minutes on two cores.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import equipoise as eq
from equipoise import chart
from equipoise.lab.board.cells import EntryRun
from equipoise.lab.suite import paper_right, suite
from equipoise.problem import Law
from equipoise.strategies import Numbers, Strategy, Support

DOCS = Path(__file__).parents[1] / "docs"
SEED = 5


# The mean overshoot of the walk with steps 2 - z², by law.
OVERSHOOT = {"Gaussian": 0.817, "Exponential": 0.821, "Laplace": 0.862, "Uniform": 0.776, "Rademacher": 0.5}


@dataclass(frozen=True)
class Second(Strategy):
    """The plain index of second order, s²/T · (1 + c/T) with c = c0 + (1 - λ)(6 - 2λ)γ², after 20 pulls each."""

    c0: float = 3.183
    skewness: float = 0.0

    name = "second-order"
    sums = ("samples",)
    pooled = ("samples",)

    def params(self, budget: int | None, arms: int, support: Support) -> Numbers:
        return (self.c0, self.skewness)

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        part = count / max(pooled[0], count)
        c = params[0] + (1 - part) * (6 - 2 * part) * params[1]
        return m2 / (count - 1) * (1 + c / count)

    @staticmethod
    def share(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> Numbers:
        return (count,)

    @staticmethod
    def pool(sums: Numbers, arms: float, pooled: Numbers, params: Numbers) -> Numbers:
        return sums

    @staticmethod
    def floor(t: float, arms: float, params: Numbers) -> float:
        return 20.0


def shape(law: Law) -> tuple[float, float]:
    """Squared skewness and kurtosis."""
    return law.third**2 / law.variance**3, law.fourth / law.variance**2


def second_order(runs: int = 20_000, n: int = 8000) -> None:
    """Two arms of one family, one twice as wide: n times the excess of each arm, and what is predicted."""
    print(f"\n| arms | γ² | β | c, wide arm | narrow arm | n · excess, wide arm | narrow arm | limit |\n|{'---|' * 8}")
    pairs: list[tuple[Law, Law]] = [
        (eq.Gaussian(0, 4), eq.Gaussian(0, 1)),
        (eq.Rademacher(2), eq.Rademacher(1)),
        (eq.Uniform(0, 2), eq.Uniform(0, 1)),
        (eq.Laplace(0, 4), eq.Laplace(0, 1)),
        (eq.Exponential(2), eq.Exponential(1)),
    ]
    for arms in pairs:
        problem = eq.Problem(arms)
        skewness, kurtosis = shape(arms[0])
        family = type(arms[0]).__name__
        c0 = 4 - OVERSHOOT[family]
        sim = eq.simulate(problem, Second(c0, skewness), n, runs=runs, seed=SEED)
        best = problem.optimal_loss(n)
        cs = [f"{c0 + (1 - part) * (6 - 2 * part) * skewness:.2f}" for part in problem.lambdas]
        each = [
            f"{n * (loss / best - 1):.1f} ({n * error / best:.1f})"
            for loss, error in zip(sim.losses, sim.loss_errors, strict=True)
        ]
        limit = sum((1 - part) * (5 - kurtosis + (6 - 2 * part) * skewness) for part in problem.lambdas)
        print(f"| {family} | {skewness:g} | {kurtosis:g} | {' | '.join(cs + each)} | {limit:.1f} |", flush=True)


def rate(runs: int = 20_000) -> None:
    """The scaled regret n² R on the paper's two Gaussian arms."""
    problem = eq.Problem([eq.Gaussian(0, 4), eq.Gaussian(0, 1)])
    strategies = [eq.strategies.Auto(), eq.strategies.BAS(exploration=0.5), eq.strategies.GAFSMAX()]
    budgets = [200, 1000, 2000, 5000, 10_000, 20_000]
    curve = eq.simulate_budgets(problem, strategies, budgets, runs=runs, seed=SEED)
    print(f"\n| n | {' | '.join(map(str, budgets))} |\n|---|{'---|' * len(budgets)}")
    for row in range(len(strategies)):
        sims = curve[row * len(budgets) : (row + 1) * len(budgets)]
        cells = [f"{s.budget**2 * s.regret:.1f} ({s.budget**2 * s.regret_error:.2f})" for s in sims]
        print(f"| {sims[0].strategy.name} | {' | '.join(cells)} |")


def right_hand(runs: int = 20_000, n: int = 1000) -> None:
    """The paper's right-hand figure as excess: a Gaussian arm and one of variance 1."""
    rows: list[dict[str, Any]] = []
    inverses = [2, 3, 5, 10, 20, 50, 100]
    for family, law in (("Rademacher", eq.Rademacher), ("Gaussian", lambda sd: eq.Gaussian(0, sd * sd))):
        for name, strategy in (("auto", eq.strategies.Auto()), ("b-as, A = 0.5", eq.strategies.BAS(exploration=0.5))):
            for inverse in inverses:
                sim = eq.simulate(eq.Problem(paper_right(law, inverse)), strategy, n, runs=runs, seed=SEED)
                rows.append(
                    {"strategy": f"{name}, {family}", "x": inverse, "excess": sim.excess, "error": sim.excess_error}
                )
    print(f"\n| 1/λ_min | {' | '.join(map(str, inverses))} |\n|---|{'---|' * len(inverses)}")
    for name in dict.fromkeys(row["strategy"] for row in rows):
        cells = [f"{row['excess']:.2f} ({row['error']:.2f})" for row in rows if row["strategy"] == name]
        print(f"| {name} | {' | '.join(cells)} |")
    figure = chart.lines(
        rows,
        x=chart.X("x", "1/λ_min"),
        y=chart.Y("excess", "excess over Σ/n, %", "error"),
        title="A Gaussian arm and one of variance 1, n = 1,000",
    )
    chart.save(figure, DOCS / "figures" / "auto-right.png")


def in_flight(runs: int = 2048) -> None:
    """The excess with 64 pulls in flight, on the problems with n >= 2,000."""
    print("\n| problem | K | n | prompt answers | 64 in flight |\n|---|---|---|---|---|")
    found = []
    for case in suite():
        if case.budget >= 2000:
            prompt, late = (
                EntryRun("auto", eq.strategies.Auto(), case, runs, in_flight=m).measure(seed=1) for m in (1, 64)
            )
            found.append((late.excess, prompt.excess, case))
            print(
                f"| {case.name} | {len(case.problem)} | {case.budget} | {prompt.excess:.1f} ({prompt.error:.1f}) | "
                f"{late.excess:.1f} ({late.error:.1f}) |",
                flush=True,
            )
    top = [
        max((late, prompt)[i] for late, prompt, case in found if case.kind == kind)
        for kind in ("continuous", "binary")
        for i in (1, 0)
    ]
    print(f"\nworst, continuous: {top[0]:.1f} prompt, {top[1]:.1f} late; binary: {top[2]:.1f}, {top[3]:.1f}")
    print(f"median growth {np.median([late - prompt for late, prompt, _ in found]):.2f}")


if __name__ == "__main__":
    second_order()
    rate()
    right_hand()
    in_flight()
