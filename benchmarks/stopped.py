"""
Measure whether results of studies that stop at a precision report their bias and their inflation truly.

    python -m benchmarks.stopped [--studies N] [--jobs J] [--only I ...]

The truth is that of many stops by the compiled loop of `study.stops`. What is reported is read from results of
`estimate`, which is told the samples of other stops of that loop. An arm that stops by its own interval depends on its
own samples alone, so that each study has one arm; that of one of several arms is asked for at their level. Prints the
table of docs/explanation/inference.md; the last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import Final

import numpy as np

import equipoise as eq
from benchmarks.precision import law
from equipoise.base.arrays import Floats
from equipoise.inference.replay import adaptivity
from equipoise.inference.stop_replay import Target, samples_of, stops
from equipoise.intervals import Intervals
from equipoise.intervals.stop_rule import StopRule
from equipoise.ledger.goal import Stopping
from equipoise.strategies import Support

LEVEL: Final = 0.95
# Stops for the truth; and the seeds of those and of studies.
STOPS: Final = 400_000
SEED_OF_TRUTH, SEED = 1, 1000
# Studies of a task.
TOGETHER: Final = 20


@dataclass(frozen=True)
class Problem:
    """
    One arm that is sampled until its interval is narrow enough.

    Attributes
    ----------
    law, wanted, relative
        The arm's law, and the half-width that is asked for, or the share of the mean.
    support, interval
        As in `estimate`.
    arms
        Of as many arms it is one; the level is that of all of them at once.
    """

    law: str
    wanted: float
    support: Support = None
    interval: Stopping = "fixed-width"
    relative: bool = False
    arms: int = 1

    @property
    def name(self) -> str:
        """The problem in words."""
        words = [self.law, f"±{100 * self.wanted:g}%" if self.relative else f"±{self.wanted:g}"]
        words += ["anytime"] * (self.interval == "anytime") + [f"one of {self.arms}"] * (self.arms > 1)
        return ", ".join(words)

    @property
    def level(self) -> float:
        """The level of the arm's own interval."""
        return 1 - (1 - LEVEL) / self.arms

    @property
    def target(self) -> Target:
        """What is asked for."""
        return Target(self.wanted, self.relative)

    def rule(self) -> StopRule:
        """Return when the arm is stopped."""
        return StopRule(Intervals(1, self.support), 1 - self.level, self.interval == "fixed-width")


PROBLEMS = (
    Problem("Gaussian", 0.15),
    Problem("exponential", 0.1),
    Problem("exponential", 0.15),
    Problem("exponential", 0.2, arms=10),
    Problem("exponential", 0.2, interval="anytime"),
    Problem("exponential", 0.15, relative=True),
    Problem("log-normal", 0.15),
    Problem("log-normal", 0.1),
    Problem("coin 0.1", 0.04, "binary"),
    Problem("coin 0.1", 0.04, "binary", arms=10),
    Problem("coin 0.1", 0.03, "binary"),
    Problem("coin 0.3", 0.06, "binary"),
    Problem("coin 0.1", 0.05, "binary", "anytime"),
)


def reported(problem: Problem, seeds: range) -> list[tuple[float, float, float, float]]:
    """Return the bias and the inflation that studies report, and their s²/T and how long their first read took."""
    values, rule, found = law(problem.law), problem.rule(), []
    precision = f"{100 * problem.wanted}%" if problem.relative else problem.wanted
    for seed in seeds:
        end = stops(values, problem.target, rule, 1, seed)
        # A few more: `estimate` looks a sample or two sooner or later where a share of the mean is asked for.
        (samples,) = samples_of(values, end.counts + 50, seed)
        result = eq.estimate(
            {"arm": samples.tolist()},
            precision=precision,
            support=problem.support,
            interval=problem.interval,
            level=problem.level,
        )
        start = perf_counter()
        found_by_replay = adaptivity(result.known)
        seconds = perf_counter() - start
        found.append((found_by_replay.biases[0], found_by_replay.inflations[0], result.losses.array[0], seconds))
    return found


def truth(problem: Problem, runs: int) -> dict[str, float]:
    """Return the number of samples at stops, their bias and their inflation, with standard errors."""
    values = law(problem.law)
    found = stops(values, problem.target, problem.rule(), runs, SEED_OF_TRUTH)
    whole = found.against(values)
    off = found.means - values.mean()
    return {
        "samples": float(found.counts.mean()),
        "bias": whole.bias,
        "bias_error": float((off - off * found.counts / found.counts.mean()).std() / math.sqrt(runs)),
        "inflation": whole.inflation,
        "inflation_error": math.sqrt(whole.noise),
    }


def summary(problem: Problem, true: dict[str, float], found: Floats) -> dict[str, float | str]:
    """Return what was measured and what was reported."""
    biases, inflations, losses, seconds = found.T
    mean = float((inflations * losses).mean() / losses.mean())
    return {
        "problem": problem.name,
        **true,
        "studies": len(found),
        "reported": float(biases.mean()),
        "reported_error": float(biases.std(ddof=1) / math.sqrt(len(found))),
        "reported_inflation": mean,
        "reported_inflation_error": float(
            ((inflations - mean) * losses).std(ddof=1) / losses.mean() / math.sqrt(len(found))
        ),
        "seconds": float(np.median(seconds)),
    }


def line(row: dict[str, float | str]) -> str:
    """Return a line of the table."""
    value = {name: float(each) for name, each in row.items() if name != "problem"}

    def cell(name: str, form: str, short: str) -> str:
        return f"{value[name]:{form}} ({value[f'{name}_error']:{short}})"

    ratio, of_bias = value["reported"] / value["bias"], value["bias_error"] / abs(value["bias"])
    error = math.hypot(value["reported_error"] / value["bias"], ratio * of_bias)
    cells = [
        str(row["problem"]),
        f"{value['samples']:,.0f}",
        cell("bias", ".2g", ".1g"),
        cell("reported", ".2g", ".1g"),
        f"{ratio:.2f} ({error:.2f})" if of_bias < 0.2 else "",
        cell("inflation", ".3f", ".3f"),
        cell("reported_inflation", ".3f", ".3f"),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--stops", type=int, default=STOPS)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", type=int, nargs="*", help="rows of the table, from 0")
    given = parser.parse_args()
    wanted = [problem for i, problem in enumerate(PROBLEMS) if not given.only or i in given.only]
    print("| arm | samples | bias measured | reported | reported / measured | f measured | reported |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    rows = []
    with ProcessPoolExecutor(given.jobs) as pool:
        parts = [range(SEED + i, SEED + min(i + TOGETHER, given.studies)) for i in range(0, given.studies, TOGETHER)]
        tasks = [
            (
                problem,
                pool.submit(truth, problem, given.stops),
                [pool.submit(reported, problem, part) for part in parts],
            )
            for problem in wanted
        ]
        for problem, true, studies in tasks:
            found = np.array([each for task in studies for each in task.result()])
            rows.append(summary(problem, true.result(), found))
            print(line(rows[-1]), flush=True)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
