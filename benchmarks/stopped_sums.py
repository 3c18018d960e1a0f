"""
Measure whether studies that stop at a precision of a sum of means report the bias and the variance of means truly.

    python -m benchmarks.stopped_sums [--studies N] [--jobs J] [--only I ...]

Each study is one call of `estimate` on exponential arms of mean 1. The bias of the means is measured with Wald's
control: the sum of an arm's deviations from its true mean is 0 on average, however many samples there are. Prints a
table of docs/explanation/inference.md; the last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

import equipoise as eq

SEED: Final = 1000


@dataclass(frozen=True)
class Problem:
    """Exponential arms, the precision that is asked for, how it is asked for, and the strategy."""

    arms: int
    precision: Any
    strategy: str = "auto"

    @property
    def name(self) -> str:
        """The problem in words."""
        if not isinstance(self.precision, eq.Contrasts):
            return f"{self.arms} strata, combined mean ±{self.precision:g}, {self.strategy}"
        pairs = "all differences" if self.precision.to is None else "differences to one"
        return f"{self.arms} arms, {pairs} ±{self.precision.half_width:g}, {self.strategy}"


PROBLEMS: Final = (
    Problem(5, 0.1, "uniform"),
    Problem(5, 0.1),
    Problem(2, eq.Contrasts(0.3), "uniform"),
    Problem(2, eq.Contrasts(0.3)),
    Problem(4, eq.Contrasts(0.4, to="arm 0")),
    Problem(4, eq.Contrasts(0.4)),
)


def study(problem: Problem, seed: int) -> tuple[list[float], list[float], list[float], list[float]]:
    """Return the arms' counts, means, and the biases and standard errors that a result reports."""
    rng = np.random.default_rng(seed)
    strata = not isinstance(problem.precision, eq.Contrasts)
    found = eq.estimate(
        {f"arm {k}": rng.exponential for k in range(problem.arms)},
        precision=problem.precision,
        strategy=problem.strategy,
        objective=eq.Stratified([1 / problem.arms] * problem.arms) if strata else math.inf,
    )
    known = (found.counts, found.means, found.biases, found.standard_errors)
    counts, means, biases, errors = (each.array.tolist() for each in known)
    return counts, means, biases, errors


def summary(problem: Problem, found: Any) -> dict[str, Any]:
    """Return what was measured, and what was reported; standard errors are over studies."""
    counts, means, biases, errors = found.transpose(1, 0, 2)
    off = means - 1
    control = counts * off
    rest = (off - np.cov(off.ravel(), control.ravel())[0, 1] / control.var() * control).mean(axis=1)
    bias, error = float(rest.mean()), float(rest.std(ddof=1) / math.sqrt(len(rest)))
    # Both variances are per study, so that the error of their ratio accounts for how they go together.
    true, reported = (off**2).mean(axis=1), (errors**2).mean(axis=1)
    ratio = float(true.mean() / reported.mean())
    return {
        "problem": problem.name,
        "studies": len(rest),
        "samples": float(counts.sum(axis=1).mean()),
        "bias": bias,
        "bias_error": error,
        "reported": float(biases.mean()),
        "variance_ratio": ratio,
        "variance_ratio_error": float((true - ratio * reported).std(ddof=1) / reported.mean() / math.sqrt(len(rest))),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", type=int, nargs="*", help="rows of the table, from 0")
    given = parser.parse_args()
    print(
        "| arms | studies | samples | bias measured | reported | reported / measured | variance, true over reported |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|")
    rows = []
    with ProcessPoolExecutor(given.jobs) as pool:
        for i, problem in enumerate(PROBLEMS):
            if given.only and i not in given.only:
                continue
            seeds = range(SEED, SEED + given.studies)
            found = summary(problem, np.array(list(pool.map(partial(study, problem), seeds, chunksize=20))))
            times = found["reported"] / found["bias"]
            error = abs(times * found["bias_error"] / found["bias"])
            print(
                f"| {found['problem']} | {given.studies:,} | {found['samples']:,.0f} | {found['bias']:.4f} "
                f"({found['bias_error']:.4f}) | {found['reported']:.4f} | {times:.2f} ({error:.2f}) | "
                f"{found['variance_ratio']:.2f} ({found['variance_ratio_error']:.2f}) |",
                flush=True,
            )
            rows.append(found)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
