"""
Measure how often studies that stop at a precision miss, and how many samples they take.

`python -m benchmarks.precision` prints the tables of docs/explanation/inference.md; the last line is one JSON object. A
study is asked for a half-width that takes about as many samples an arm as the table says, by the plain normal interval;
it misses if the interval of any arm does not contain the arm's mean when the arm stops. An arm that stops by its own
interval depends on its own samples alone, whatever is sampled besides, so that the stops of the arms are simulated one
by one, by the compiled loop of `study.stops`; tests/functional/run/test_fixed_width.py ties it to `estimate`.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import islice
from statistics import NormalDist
from time import perf_counter
from typing import Any, Literal

import numpy as np

import equipoise as eq
from equipoise.base.arrays import Floats
from equipoise.inference.stop_replay import Stops, Target, stops
from equipoise.intervals import Intervals
from equipoise.intervals.stop_rule import StopRule
from equipoise.ledger.goal import Stopping
from equipoise.strategies import Support

LEVEL, STUDIES, SEED = 0.95, 4000, 1
# A law is this many of its quantiles, equally likely: those of a continuous one.
_POINTS = 50_000
_LEVELS = (np.arange(_POINTS) + 0.5) / _POINTS


@dataclass(frozen=True)
class Problem:
    """
    Studies to measure.

    Attributes
    ----------
    laws
        The names of the laws; the arms take them in turn.
    arms, each
        How many arms, and about how many samples an arm needs.
    support
        The support that the user declares.
    relative
        Whether a share of the mean is asked for.
    """

    laws: tuple[str, ...]
    arms: int
    each: int
    support: Support = None
    relative: bool = False

    @property
    def name(self) -> str:
        """The problem in words."""
        known = {None: "", "binary": ", binary"}.get(self.support if not isinstance(self.support, tuple) else None, "")
        bounded = ", in [0, 1]" if isinstance(self.support, tuple) else known
        return " and ".join(self.laws) + bounded + (", share of the mean" if self.relative else "")


PROBLEMS = (
    Problem(("Gaussian",), 1, 30),
    Problem(("Gaussian",), 1, 400),
    Problem(("Gaussian",), 10, 100),
    Problem(("Gaussian",), 50, 400),
    Problem(("uniform",), 1, 100),
    Problem(("uniform",), 5, 1600),
    Problem(("Laplace",), 10, 100),
    Problem(("coin 0.5",), 1, 100, "binary"),
    Problem(("coin 0.5",), 10, 1600, "binary"),
    Problem(("coin 0.3",), 5, 400, "binary"),
    Problem(("coin 0.1",), 10, 400, "binary"),
    Problem(("coin 0.03",), 3, 1600, "binary"),
    Problem(("uniform",), 5, 100, (0, 1)),
    Problem(("half zeros",), 10, 400, (0, 1)),
    Problem(("exponential",), 1, 100),
    Problem(("exponential",), 10, 400),
    Problem(("exponential",), 3, 5000),
    Problem(("exponential",), 5, 400, relative=True),
    Problem(("log-normal",), 5, 200),
    Problem(("Gaussian", "exponential", "uniform", "Laplace"), 50, 100),
)


@cache
def law(name: str) -> Floats:
    """Return the values of a law, equally likely."""
    if name.startswith("coin"):
        p = float(name.split()[1])
        return np.repeat([0.0, 1.0], [round(100 * (1 - p)), round(100 * p)])
    normal = np.array([NormalDist().inv_cdf(u) for u in _LEVELS])
    known: dict[str, Floats] = {
        "Gaussian": normal,
        "uniform": _LEVELS,
        "Laplace": np.sign(_LEVELS - 0.5) * -np.log1p(-np.abs(2 * _LEVELS - 1)),
        "exponential": -np.log1p(-_LEVELS),
        "log-normal": np.exp(0.8 * normal),
        "half zeros": np.maximum(2 * _LEVELS - 1, 0),
    }
    return known[name]


def target(problem: Problem, values: Floats) -> Target:
    """Return the half-width, or the share of the mean, that takes `each` samples by the plain normal interval."""
    z = -NormalDist().inv_cdf((1 - LEVEL) / problem.arms / 2)
    half = z * math.sqrt(values.var() / problem.each)
    return Target(half / abs(values.mean()) if problem.relative else half, problem.relative)


def arms_of(problem: Problem, studies: int, seed: int, fixed_width: bool) -> Iterator[tuple[Floats, Stops]]:
    """Yield the law and the stops of each arm."""
    rule = StopRule(Intervals(problem.arms, problem.support), (1 - LEVEL) / problem.arms, fixed_width)
    for k in range(problem.arms):
        values = law(problem.laws[k % len(problem.laws)])
        yield values, stops(values, target(problem, values), rule, studies, 1000 * seed + k)


def measure(problem: Problem, studies: int = STUDIES, seed: int = SEED) -> dict[str, float | str]:
    """Return the coverage of a problem, simultaneous over its arms, and the samples beside those of sequences."""
    covered, samples, fixed = np.ones(studies, bool), 0.0, 0.0
    for values, found in arms_of(problem, studies, seed, True):
        mean = values.mean()
        covered &= (found.low <= mean + 1e-12) & (mean - 1e-12 <= found.high)
        samples += float(found.counts.mean())
        fixed += float(found.fixed.mean())
    # Of laws that repeat, the first arms are enough.
    few = min(problem.arms, len(problem.laws))
    others = [found.counts.mean() for _, found in islice(arms_of(problem, 200, seed + 1, False), few)]
    coverage = float(covered.mean())
    return {
        "problem": problem.name,
        "arms": problem.arms,
        "each": problem.each,
        "coverage": coverage,
        "error": math.sqrt(max(coverage * (1 - coverage), 1 / studies) / studies),
        "fixed": fixed / problem.arms,
        "samples": samples / problem.arms,
        "beside": samples / problem.arms / float(np.mean(others)),
    }


@dataclass(frozen=True)
class Sum:
    """Studies that stop at a precision of the combined mean, or of contrasts where `contrasts` says so."""

    law: str
    arms: int
    half_width: float
    contrasts: Literal["", "control", "pairs"] = ""
    support: Support = None

    @property
    def name(self) -> str:
        """The problem in words."""
        what = {"": "combined mean", "control": "differences to a control", "pairs": "differences of all pairs"}
        return f"{self.law}, {what[self.contrasts]}"


SUMS = (
    Sum("Gaussian", 5, 0.1),
    Sum("Gaussian", 5, 0.3),
    Sum("exponential", 5, 0.1),
    Sum("exponential", 5, 0.2),
    Sum("exponential", 50, 0.05),
    Sum("log-normal", 20, 0.1),
    Sum("coin 0.1", 20, 0.02, "", "binary"),
    Sum("Gaussian", 10, 0.4, "control"),
    Sum("exponential", 2, 0.3, "pairs"),
    Sum("exponential", 5, 0.3, "pairs"),
    Sum("coin 0.3", 4, 0.1, "pairs", "binary"),
)


def measure_sum(problem: Sum, seeds: range, interval: Stopping = "fixed-width") -> tuple[int, int]:
    """Return how many studies by `estimate` cover all the sums, and the samples of all of them."""
    values = law(problem.law)
    covered, samples = 0, 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        options: dict[str, Any] = {"precision": problem.half_width, "support": problem.support, "interval": interval}
        if problem.contrasts:
            to = 0 if problem.contrasts == "control" else None
            options["precision"] = eq.Contrasts(problem.half_width, to=to)
        else:
            options["objective"] = eq.Stratified([1 / problem.arms] * problem.arms)

        def sample(arm: int, size: int, rng: np.random.Generator = rng) -> Floats:
            return rng.choice(values, size)

        result = eq.estimate(sample, arms=problem.arms, seed=seed, **options)
        found: list[Any] = list(result.contrasts()) if problem.contrasts else [result.combine()]
        truth = 0.0 if problem.contrasts else float(values.mean())
        covered += all(each.low <= truth <= each.high for each in found)
        samples += result.samples
    return covered, samples


def print_sums(studies: int, first: int, jobs: int, only: list[int] | None) -> None:
    """Print the table of combined means and contrasts, of studies with seeds from `first` on."""
    print("| arms | K | half-width | studies | coverage | samples | of those of sequences |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    few = max(studies // 40, 2)
    wanted = [problem for i, problem in enumerate(SUMS) if not only or i in only]
    end = first + studies
    parts = [range(start, min(start + 10, end)) for start in range(first, end, 10)]
    with ProcessPoolExecutor(jobs) as pool:
        # All rows at once, so that no process waits for the last studies of a row.
        tasks = [
            (
                [pool.submit(measure_sum, problem, part) for part in parts],
                [pool.submit(measure_sum, problem, range(k, k + 1), "anytime") for k in range(first, first + few)],
            )
            for problem in wanted
        ]
        for problem, (found, others) in zip(wanted, tasks, strict=True):
            covered, samples = np.sum([each.result() for each in found], axis=0)
            other = sum(each.result()[1] for each in others) / few
            _print_sum(problem, studies, float(covered) / studies, float(samples) / studies, other)


def _print_sum(problem: Sum, studies: int, coverage: float, samples: float, other: float) -> None:
    error = math.sqrt(max(coverage * (1 - coverage), 1 / studies) / studies)
    print(
        f"| {problem.name} | {problem.arms} | {problem.half_width:g} | {studies:,} | {coverage:.1%} "
        f"({100 * error:.1f}) | {samples:,.0f} | {samples / other:.2f} |",
        flush=True,
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=STUDIES)
    parser.add_argument("--only", type=int, nargs="*", help="rows of the table, from 0")
    parser.add_argument("--sums", type=int, help="instead: studies of each combined mean and of contrasts")
    parser.add_argument("--first", type=int, default=0, help="the first seed, for --sums")
    parser.add_argument("--jobs", type=int, default=1, help="processes, for --sums")
    given = parser.parse_args()
    if given.sums:
        print_sums(given.sums, given.first, given.jobs, given.only)
        return
    print("| arms | K | plain samples | coverage | by fixed width | samples an arm | of those of sequences |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    rows = []
    start = perf_counter()
    for i, problem in enumerate(PROBLEMS):
        if given.only and i not in given.only:
            continue
        row = measure(problem, given.studies)
        rows.append(row)
        print(
            f"| {row['problem']} | {row['arms']} | {row['each']:,} | {100 * float(row['coverage']):.1f}% "
            f"({100 * float(row['error']):.1f}) | {float(row['fixed']):.0%} | {float(row['samples']):,.0f} | "
            f"{float(row['beside']):.2f} |",
            flush=True,
        )
    print(json.dumps({"studies": given.studies, "seconds": round(perf_counter() - start, 1), "rows": rows}))


if __name__ == "__main__":
    main()
