"""
Compare the paper's bounds with simulations: how much slack each of them has.

`make docs` runs this and writes docs/explanation/bounds.md; the last line printed is one JSON object. Every row has a
fixed seed, a number of runs and a standard error, and tests/functional/test_bounds.py checks the statement.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np

import equipoise as eq
from equipoise import theory
from equipoise.base.arrays import Bools, Floats
from equipoise.base.tables import amount


@dataclass(frozen=True)
class Row:
    """A statement's number and the measured one."""

    statement: str
    setting: str
    runs: int
    relation: Literal["<=", ">=", "="]
    measured: float
    error: float
    stated: float

    def holds(self, sigmas: float = 5.0) -> bool:
        """Return whether the measured number has its relation to the stated one, within `sigmas` standard errors."""
        slack = sigmas * self.error
        if self.relation == "<=":
            return self.measured <= self.stated + slack
        if self.relation == ">=":
            return self.measured >= self.stated - slack
        return abs(self.measured - self.stated) <= slack


@dataclass(frozen=True)
class Runs:
    """Many runs of a strategy, a row for each: pulls, sums of samples minus their means, whether an event held."""

    problem: eq.Problem
    n: int
    pulls: Floats
    sums: Floats
    held: Bools

    @property
    def losses(self) -> Floats:
        return (self.sums / self.pulls) ** 2


def simulate(
    problem: eq.Problem,
    strategy: eq.strategies.Strategy,
    n: int,
    runs: int,
    seed: int,
    event: Callable[[Floats], bool] = lambda samples: True,
) -> Runs:
    rng = np.random.default_rng(seed)
    pulls, sums = np.zeros((2, runs, len(problem)))
    held = np.zeros(runs, np.bool_)
    for run in range(runs):
        drawn = np.array([law.sample(rng, n) for law in problem.arms])
        held[run] = event(drawn)
        study = eq.Study(len(problem), budget=n, strategy=strategy)
        streams = [iter(row) for row in drawn.tolist()]
        while not study.done:
            ticket = study.ask()
            study.tell(ticket, next(streams[ticket.arm]))  # type: ignore[call-overload]
        result = study.result()
        pulls[run] = result.counts.array
        sums[run] = result.counts.array * (result.means.array - problem.means)
    return Runs(problem, n, pulls, sums, held)


def mean_and_error(values: Floats) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def regret(runs: Runs) -> tuple[float, float]:
    """Return the regret and the standard error of the worst arm's loss."""
    means, errors = zip(*(mean_and_error(column) for column in runs.losses.T), strict=True)
    worst = int(np.argmax(means))
    return runs.problem.regret(list(means), runs.n), errors[worst]


def share(outcomes: list[bool]) -> tuple[float, float]:
    p = sum(outcomes) / len(outcomes)
    return p, math.sqrt(max(p * (1 - p), 1 / len(outcomes)) / len(outcomes))


def chernoff() -> list[Row]:
    """Measure CH-AS: Lemma 1, Theorem 1, Remark 3."""
    rows = []
    problem = eq.Problem([eq.Bernoulli(0.5), eq.Bernoulli(0.2)])
    n, count, rng = 100, 4000, np.random.default_rng(1)
    delta = 0.1 / (4 * n * 2)
    held = [
        theory.lemma1_event([law.sample(rng, n) for law in problem.arms], problem.variances, delta)
        for _ in range(count)
    ]
    rows.append(
        Row(
            "Lemma 1, probability of the event",
            f"Bernoulli 0.5, 0.2; n = {n}, δ = {delta:g}",
            count,
            ">=",
            *share(held),
            theory.lemma1_probability(n, 2, delta),
        )
    )
    n, count = 1000, 400
    runs = simulate(problem, eq.strategies.CHAS(), n, count, seed=2)
    lower, upper = theory.lemma1_bounds(problem.variances, n, float(n) ** -2.5)
    label = f"Bernoulli 0.5, 0.2; n = {n}"
    rows += [
        Row("Lemma 1, most pulls of arm 2", label, count, "<=", runs.pulls[:, 1].max(), 0.0, upper[1]),
        Row("Lemma 1, fewest pulls of arm 1", label, count, ">=", runs.pulls[:, 0].min(), 0.0, lower[0]),
        Row("Theorem 1, regret", label, count, "<=", *regret(runs), theory.theorem1(problem.variances, n)),
    ]
    constant = eq.Problem([eq.Bernoulli(0.5), eq.Constant(0.5)])
    for n, count in ((300, 200), (3000, 40)):
        runs = simulate(constant, eq.strategies.CHAS(), n, count, seed=3)
        measured, error = mean_and_error(runs.pulls[:, 1])
        # The balance leaves out that pulls are whole numbers, so that half a pull is its grain.
        rows.append(
            Row(
                "Remark 3, CH-AS's pulls of a constant arm",
                f"Bernoulli 0.5 and a constant; n = {n}",
                count,
                "=",
                measured,
                math.hypot(error, 0.5),
                theory.remark3_pulls(n),
            )
        )
        runs = simulate(constant, eq.strategies.GAFSMAX(), n, count, seed=4)
        rows.append(
            Row(
                "Remark 3, GAFS-MAX's pulls of a constant arm",
                f"Bernoulli 0.5 and a constant; n = {n}",
                count,
                "=",
                runs.pulls[:, 1].mean(),
                0.5,
                theory.remark3_gafs_max_pulls(n),
            )
        )
    return rows


def deviations() -> list[Row]:
    """Measure how often a standard deviation is off by more than the radius: Theorem 4, Lemmas 4 and 5."""
    count, t, delta, rng = 40_000, 20, 0.05, np.random.default_rng(5)
    rows = []
    uniform = rng.random((count, t)).std(axis=1, ddof=1)
    far = np.abs(uniform - math.sqrt(1 / 12)) > theory.theorem4(t, delta, 1.0)
    rows.append(
        Row(
            "Theorem 4 (Maurer, Pontil), failures",
            f"uniform on [0, 1]; t = {t}, δ = {delta}",
            count,
            "<=",
            *share(far.tolist()),
            delta,
        )
    )
    # The radius itself and the deviation that is exceeded with probability δ.
    quantile = float(np.quantile(np.abs(uniform - math.sqrt(1 / 12)), 1 - delta))
    rows.append(
        Row(
            "Theorem 4, deviation at level δ",
            f"uniform on [0, 1]; t = {t}, δ = {delta}",
            count,
            "<=",
            quantile,
            0.0,
            theory.theorem4(t, delta, 1.0),
        )
    )
    c1, c2 = theory.gaussian_constants([1.0])
    gaussian = rng.normal(size=(count, t)).std(axis=1, ddof=1)
    quantile = float(np.quantile(np.abs(gaussian - 1), 1 - delta))
    rows.append(
        Row(
            "Lemma 5, deviation at level 2δ",
            f"N(0, 1); t = {t}, δ = {delta / 2}",
            count,
            "<=",
            quantile,
            0.0,
            theory.lemma5_radius(t, delta / 2, c1, c2),
        )
    )
    n, K, delta = 50, 2, 0.1 / (2 * 50 * 2)
    held = [theory.lemma4_event(rng.normal(size=(K, n)), [1.0, 1.0], delta, c1, c2) for _ in range(2000)]
    rows.append(
        Row(
            "Lemma 4, probability of the event",
            f"N(0, 1) twice; n = {n}, δ = {delta:g}",
            2000,
            ">=",
            *share(held),
            theory.lemma4_probability(n, K, delta),
        )
    )
    return rows


def bernstein() -> list[Row]:
    """Measure B-AS with the constants of Theorem 3: Lemma 2, Theorems 2 and 3, Lemma 6."""
    problem = eq.Problem([eq.Gaussian(0, 4), eq.Gaussian(0, 1)])
    n, count = 1000, 400
    c1, c2 = theory.gaussian_constants(problem.variances)
    delta = float(n) ** -3.5
    runs = simulate(
        problem,
        eq.strategies.BAS(c1=c1, c2=c2),
        n,
        count,
        seed=6,
        event=lambda samples: theory.lemma4_event(samples, problem.variances, delta, c1, c2),
    )
    lower, upper = theory.lemma2_bounds(problem.variances, n, delta, c1, c2)
    least = theory.lemma2_least_pulls(problem.variances, n, delta, c1, c2)
    label = f"N(0, 4), N(0, 1); n = {n}"
    measured = regret(runs)
    outside = mean_and_error(runs.losses[:, 0] * ~runs.held)
    return [
        Row("Lemma 2, most pulls of arm 2", label, count, "<=", runs.pulls[:, 1].max(), 0.0, upper[1]),
        Row("Lemma 2, fewest pulls of arm 1", label, count, ">=", runs.pulls[:, 0].min(), 0.0, lower[0]),
        Row("Lemma 2, fewest pulls of any arm", label, count, ">=", runs.pulls.min(), 0.0, least),
        Row("Theorem 2, regret", label, count, "<=", *measured, theory.theorem2(problem.variances, n, c1, c2)),
        Row("Theorem 3, regret", label, count, "<=", *measured, theory.theorem3(problem.Sigma, n, 2)),
        Row("Lemma 6, loss outside the event", label, count, "<=", *outside, theory.lemma6(n, 2, delta, c1, c2)),
    ]


def stopping() -> list[Row]:
    """Measure Wald's identity, equation (st2.1) and the Gaussian lemma at the stopping times of a strategy."""
    rows = []
    n, count = 60, 6000
    problems = {
        "N(0, 4), N(0, 1)": eq.Problem([eq.Gaussian(0, 4), eq.Gaussian(0, 1)]),
        "N(0, 4), exponential": eq.Problem([eq.Gaussian(0, 4), eq.Exponential()]),
    }
    for name, problem in problems.items():
        runs = simulate(problem, eq.strategies.BAS(exploration=0.5), n, count, seed=7)
        label = f"{name}; B-AS, A = 0.5, n = {n}"
        pulls, sums = runs.pulls[:, 1], runs.sums[:, 1]
        variance = problem.variances[1]
        # The identity as a difference of mean zero, so that its error is that of one average.
        gap, error = mean_and_error(sums**2 - variance * pulls)
        stated = theory.wald(variance, float(pulls.mean()))
        rows.append(Row("Proposition 2 (Wald), E[(S - Tμ)²] of arm 2", label, count, "=", stated + gap, error, stated))
        bound = theory.loss_on_event(variance, float(pulls.min()), float(pulls.mean()))
        rows.append(
            Row("Equation (st2.1), loss of arm 2", label, count, "<=", *mean_and_error(runs.losses[:, 1]), bound)
        )
        gap, error = mean_and_error(runs.losses[:, 0] - 4 / runs.pulls[:, 0])
        stated = theory.lemma3(4.0, runs.pulls[:, 0])
        rows.append(Row("Lemma 3 (Gaussian), loss of arm 1", label, count, "=", stated + gap, error, stated))
    rng = np.random.default_rng(8)
    samples = rng.normal(0, 1, (100_000, 8))
    high = samples[:, :4].std(axis=1, ddof=1) > 1.2
    mean, variance = samples[high].mean(axis=1), theory.lemma7(0.0, 1.0, 8).variance
    rows.append(
        Row(
            "Lemma 7, variance of the mean of 8 given s_4 > 1.2",
            "N(0, 1)",
            int(high.sum()),
            "=",
            float((mean**2).mean()),
            float((mean**2).std(ddof=1) / math.sqrt(high.sum())),
            variance,
        )
    )
    return rows


PARTS: dict[str, Callable[[], list[Row]]] = {
    "CH-AS": chernoff,
    "Deviations of a standard deviation": deviations,
    "B-AS with Theorem 3's constants": bernstein,
    "Stopping times": stopping,
}

HEAD = """# The paper's bounds and what is measured

The identities of the paper (Wald's, the Gaussian lemma, Lemma 7) hold as far as simulation can show. Remark 3's balance
predicts the pulls of a constant arm to within a pull. The regret bounds of Theorems 1 to 3 are true, and six to
twenty-two powers of ten above the regret at these budgets: they say how things scale, not how large they are.

In the tables, *stated* is the value of the function in `equipoise.theory`, *measured* the same quantity in simulated
studies with its standard error in parentheses, and *ratio* the first over the second: how much room the statement
leaves. A measured number without a standard error is an extreme over the runs, or a quantile. `make docs` measures them
with fixed seeds (`benchmarks/bounds.py`).
"""


def page(parts: dict[str, list[Row]]) -> str:
    lines = [HEAD]
    for title, rows in parts.items():
        lines += [
            f"## {title}",
            "",
            "| statement | setting | runs | measured | | stated | ratio |",
            "|---|---|--:|--:|:-:|--:|--:|",
        ]
        for row in rows:
            measured = amount(row.measured) + (f" ({row.error:.1g})" if row.error else "")
            ratio = amount(row.stated / row.measured, 2) if row.measured else "—"
            cells = (row.statement, row.setting, f"{row.runs:,}", measured, row.relation, amount(row.stated), ratio)
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parts = {title: part() for title, part in PARTS.items()}
    text = page(parts)
    (Path(__file__).parent.parent / "docs" / "explanation" / "bounds.md").write_text(text)
    print(text)
    print(json.dumps({title: [asdict(row) for row in rows] for title, rows in parts.items()}, ensure_ascii=False))


if __name__ == "__main__":
    main()
