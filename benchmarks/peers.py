"""
How well a budget is spent: `auto` beside an even split, a two-stage pilot and adaptive's BalancingLearner.

Run it with `python -m benchmarks.peers`; it writes the tables of docs/reference/peers.md, and its last line is one JSON
object. The cost of a method is n L/Sigma, where n is the budget and L the largest mean squared error of any arm: the
samples it spends, as a multiple of those with which the best possible split reaches the same L.

The `BalancingLearner` is that of the installed package, with one `AverageLearner` for each arm, asked and told one
sample at a time; the simulator runs the other methods. Those with a setting are shown at its default and at the value
that did best on other samples of the same problem, which nobody knows beforehand.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import adaptive
import numpy as np

import equipoise as eq
from equipoise.base.arrays import Floats
from equipoise.demo import TASTE
from equipoise.strategies import Strategy, TwoStage

SEED, TUNING_SEED = 16, 61
# Runs of the simulator for each run of adaptive.
SPEED = 50
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "peers.md"
START, END = "<!-- table: python -m benchmarks.peers -->", "<!-- end of the table -->"


@dataclass(frozen=True)
class Case:
    """A problem with a budget, under the name that the table gives it."""

    name: str
    problem: eq.Problem
    budget: int
    support: Any = None

    def samples(self, seed: int, run: int) -> Floats:
        """Return all samples that a run could ask for, one row for each arm."""
        rng = np.random.default_rng((seed, run))
        return np.array([law.sample(rng, self.budget) for law in self.problem.arms])


CASES = (
    Case("poll of 6 products, 3,000 answers", eq.Problem([eq.Bernoulli(p) for p in TASTE.values()]), 3000, "binary"),
    Case(
        "pass rates of 40 tasks, 2,000 attempts",
        eq.Problem([eq.Bernoulli(float(p)) for p in np.linspace(0.5, 0.995, 40).round(4)]),
        2000,
        "binary",
    ),
    Case("6 Gaussians, σ = 1 to 8, 600 samples", eq.Problem([eq.Gaussian(0, s**2) for s in (1, 1, 2, 3, 5, 8)]), 600),
    Case("6 exponentials, σ = 1 to 8, 600 samples", eq.Problem([eq.Exponential(s) for s in (1, 1, 2, 3, 5, 8)]), 600),
    Case("6 Gaussians, all alike, 600 samples", eq.Problem([eq.Gaussian(0, 1) for _ in range(6)]), 600),
)

# Returns a method's cost on a problem, and its standard error, from some runs with a seed.
Method = Callable[[Case, int, int], tuple[float, float]]


def ours(strategy: str | Strategy) -> Method:
    """Return a strategy as a method, run by the simulator, which takes `SPEED` times as many runs in less time."""

    def cost(case: Case, seed: int, runs: int) -> tuple[float, float]:
        found = eq.simulate(case.problem, strategy, case.budget, SPEED * runs, seed, support=case.support)
        return 1 + found.excess / 100, found.excess_error / 100

    return cost


def balancing(strategy: str, least: int) -> Method:
    """Return adaptive's BalancingLearner as a method, with `min_npoints` of each AverageLearner at `least`."""

    def play(case: Case, samples: Floats) -> tuple[list[int], list[float]]:
        # A tolerance in common scales all losses alike, and changes no decision.
        learners = [adaptive.AverageLearner(abs, atol=1.0, min_npoints=least) for _ in samples]
        learner = adaptive.BalancingLearner(learners, strategy=strategy)
        values = samples.tolist()
        for _ in range(case.budget):
            ((arm, i),), _ = learner.ask(1)
            learner.tell((arm, i), values[arm][i])
        return [each.npoints for each in learners], [each.mean for each in learners]

    def cost(case: Case, seed: int, runs: int) -> tuple[float, float]:
        outcomes = [play(case, case.samples(seed, run)) for run in range(runs)]
        counts, means = (np.array(each) for each in zip(*outcomes, strict=True))
        fixed = np.maximum(counts.mean(axis=0).round().astype(int), 1)
        controls = np.array(
            [[row[:n].mean() for row, n in zip(case.samples(seed, run), fixed, strict=True)] for run in range(runs)]
        )
        truth, expected = case.problem.means, case.problem.variances / fixed
        losses, errors = controlled((means - truth) ** 2, (controls - truth) ** 2, expected)
        worst = int(np.argmax(losses))
        scale = case.budget / case.problem.Sigma
        return float(losses[worst] * scale), float(errors[worst] * scale)

    return cost


def controlled(values: Floats, controls: Floats, expected: Floats) -> tuple[Floats, Floats]:
    """
    Return the mean of each column and its standard error, by regression on a control with a known expectation.

    The control of an arm's squared error is that of the mean of a fixed number of the same samples: what the two have
    in common cancels.
    """
    centred = controls - controls.mean(axis=0)
    spread = (centred**2).sum(axis=0)
    slopes = np.divide((centred * values).sum(axis=0), spread, out=np.zeros_like(spread), where=spread > 0)
    adjusted = values - slopes * (controls - expected)
    return adjusted.mean(axis=0), adjusted.std(axis=0, ddof=2) / np.sqrt(len(values))


def two_stage_settings(case: Case) -> Iterator[tuple[str, Method]]:
    for share, pilot in pilots(case):
        yield f"pilot of {share:.0%}", ours(TwoStage(pilot=pilot))


def balancing_settings(case: Case) -> Iterator[tuple[str, Method]]:
    for strategy in ("loss_improvements", "loss"):
        for _, least in pilots(case):
            yield f'strategy="{strategy}", min_npoints={least}', balancing(strategy, least)


def pilots(case: Case) -> list[tuple[float, int]]:
    """Return pilots as shares of the budget, and as samples of each arm."""
    return [
        (share, max(2, round(share * case.budget / len(case.problem)))) for share in (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
    ]


def best_of(case: Case, settings: Iterable[tuple[str, Method]], runs: int) -> tuple[str, Method]:
    """Return the setting that does best on samples that are not used otherwise."""
    return min(settings, key=lambda each: each[1](case, TUNING_SEED, runs)[0])


def measure(case: Case, runs: int, tuning_runs: int) -> dict[str, dict[str, Any]]:
    """Return the costs of every method on a problem, with the setting where one was chosen."""
    methods: dict[str, tuple[str, Method]] = {
        "even split": ("", ours("uniform")),
        "two-stage, pilot of 20%": ("", ours("two-stage")),
        "two-stage, best pilot": best_of(case, two_stage_settings(case), tuning_runs),
        "adaptive, default": ("", balancing("loss_improvements", 2)),
        "adaptive, best setting": best_of(case, balancing_settings(case), tuning_runs),
        "equipoise, `auto`": ("", ours("auto")),
    }
    found = {}
    for name, (setting, method) in methods.items():
        cost, error = method(case, SEED, runs)
        found[name] = {"cost": round(cost, 4), "error": round(error, 4), "setting": setting}
        print(f"{case.name:45}{name:30}{cost:9.3f} ± {error:.3f} s.e.  {setting}", flush=True)
    return found


def table(found: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Return the costs as a Markdown table: a row for each method, a column for each problem."""
    cases = list(found)
    rows = [f"| | {' | '.join(cases)} |", "|---" + "|--:" * len(cases) + "|"]
    for name in found[cases[0]]:
        cells = [_cell(found[case][name]["cost"], found[case][name]["error"]) for case in cases]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _cell(cost: float, error: float) -> str:
    """Return a cost with as many decimals as its standard error, which stands in parentheses, supports."""
    return f"{cost:.2f} ({error:.2f})" if cost < 10 else f"{cost:.0f} ({error:.0f})"


def settings_table(found: dict[str, dict[str, dict[str, Any]]]) -> str:
    """Return the best settings as a Markdown table."""
    rows = ["| problem | best pilot | adaptive's best setting |", "|---|---|---|"]
    for case, methods in found.items():
        chosen = [methods[name]["setting"] for name in ("two-stage, best pilot", "adaptive, best setting")]
        rows.append(f"| {case} | {chosen[0]} | `{chosen[1]}` |")
    return "\n".join(rows)


def versions() -> dict[str, str]:
    return {
        "equipoise": eq.__version__,
        "adaptive": adaptive.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def section(found: dict[str, dict[str, dict[str, Any]]], runs: int, tuning_runs: int) -> str:
    """Return what stands between the marks on the page."""
    names = ", ".join(f"{name} {version}" for name, version in versions().items())
    others, tuned = SPEED * runs, SPEED * tuning_runs
    return (
        f"{table(found)}\n\n"
        f"Means over {runs:,} runs of adaptive and {others:,} of the others, with seed {SEED}; standard errors in "
        f"parentheses; {names}.\n\n"
        f"The best settings, chosen with {tuning_runs} other runs of adaptive for each, and {tuned:,} of two-stage:\n\n"
        f"{settings_table(found)}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--tuning-runs", type=int, default=150)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(arguments)
    found = {case.name: measure(case, options.runs, options.tuning_runs) for case in CASES}
    text = options.page.read_text(encoding="utf-8")
    before, after = text.split(START)[0], text.split(END)[1]
    written = section(found, options.runs, options.tuning_runs)
    options.page.write_text(f"{before}{START}\n\n{written}\n\n{END}{after}", encoding="utf-8")
    print(json.dumps({"runs": options.runs, "seed": SEED, "versions": versions(), "costs": found}))


if __name__ == "__main__":
    main()
