"""
Measure how often the interval of the combined mean holds for few strata with few samples, and in finite populations.

    python -m benchmarks.strata [--studies N] [--jobs J]

Prints a table of docs/explanation/inference.md, and how often a mean of 0 is taken to be known to a large share of
itself; the last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

import equipoise as eq

SEED: Final = 7

Draw = Callable[[np.random.Generator, int], Any]


@dataclass(frozen=True)
class Problem:
    """Strata of equal shares, which draw with these functions; their sizes, and the samples of all."""

    name: str
    draws: tuple[Draw, ...]
    means: tuple[float, ...]
    budget: int
    sizes: tuple[int, ...] = ()
    support: eq.strategies.Support = None


def gauss(sd: float) -> Draw:
    return lambda rng, size: rng.normal(0, sd, size)


def exponential(rng: np.random.Generator, size: int) -> Any:
    return rng.exponential(size=size)


def coin(share: float) -> Draw:
    return lambda rng, size: (rng.random(size) < share).astype(float)


PROBLEMS: Final = (
    Problem("3 Gaussian", (gauss(1),) * 3, (0.0,) * 3, 15),
    Problem("3 Gaussian", (gauss(1),) * 3, (0.0,) * 3, 30),
    Problem("2 Gaussian, standard deviations 1 and 3", (gauss(1), gauss(3)), (0.0, 0.0), 20),
    Problem("3 exponential", (exponential,) * 3, (1.0,) * 3, 30),
    Problem("3 exponential", (exponential,) * 3, (1.0,) * 3, 60),
    Problem("3 coins 0.1, binary", (coin(0.1),) * 3, (0.1,) * 3, 60, support="binary"),
    Problem("2 coins 0.02, binary", (coin(0.02),) * 2, (0.02,) * 2, 60, support="binary"),
    Problem("3 Gaussian, of 33 each", (gauss(1),) * 3, (0.0,) * 3, 45, (33,) * 3),
    Problem("3 exponential, of 33 each", (exponential,) * 3, (1.0,) * 3, 45, (33,) * 3),
    Problem("3 exponential, of 66 each", (exponential,) * 3, (1.0,) * 3, 90, (66,) * 3),
    Problem("3 exponential, of 1,000 each", (exponential,) * 3, (1.0,) * 3, 90, (1000,) * 3),
)


def holds(number: int, problem: Problem) -> bool:
    """Whether the interval of the combined mean holds in a study."""
    rng = np.random.default_rng([number, SEED])
    strata = [str(k) for k in range(len(problem.draws))]
    objective = eq.Stratified([1 / len(strata)] * len(strata))
    options: dict[str, Any] = {"budget": problem.budget, "objective": objective, "support": problem.support}
    true = float(np.mean(problem.means))
    if problem.sizes:
        made = [draw(rng, size) for draw, size in zip(problem.draws, problem.sizes, strict=True)]
        true = float(np.mean([each.mean() for each in made]))
        populations = dict(zip(strata, (each.tolist() for each in made), strict=True))
        found = eq.estimate(float, populations=populations, seed=number, **options)
    else:
        draws = {name: partial(draw, rng) for name, draw in zip(strata, problem.draws, strict=True)}
        samplers = {name: (lambda size, draw=draw: draw(size)) for name, draw in draws.items()}
        found = eq.estimate(samplers, **options)
    whole = found.combine()
    return whole.low <= true <= whole.high


def of_index(pair: tuple[int, int]) -> bool:
    """Whether the interval holds in a study of one of the problems."""
    return holds(pair[1], PROBLEMS[pair[0]])


def known(number: int, share: str, budget: int = 1500) -> bool:
    """Whether a mean of 0 is taken to be known to a share of itself."""
    rng = np.random.default_rng([number, SEED])
    found = eq.estimate(lambda arm, size: rng.normal(0, 1, size), arms=["arm"], precision=share, budget=budget)
    return bool(found.reached)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--jobs", type=int)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []

    def share(found: Any) -> tuple[float, str]:
        p = float(np.mean(list(found)))
        return p, f"{p:.1%} ({100 * (p * (1 - p) / options.studies) ** 0.5:.1f})"

    with ProcessPoolExecutor(options.jobs) as pool:
        print("| strata | samples | coverage |\n|---|--:|--:|")
        for i, problem in enumerate(PROBLEMS):
            p, text = share(pool.map(of_index, [(i, j) for j in range(options.studies)], chunksize=20))
            print(f"| {problem.name} | {problem.budget} | {text} |", flush=True)
            rows.append({"strata": problem.name, "samples": problem.budget, "coverage": p})
        for asked in ("40%", "60%", "80%", "100%"):
            p, text = share(pool.map(partial(known, share=asked), range(options.studies), chunksize=20))
            print(f"a mean of 0, to ±{asked}: {text} known", flush=True)
            rows.append({"share": asked, "known": p})
    print(json.dumps({"studies": options.studies, "rows": rows}))


if __name__ == "__main__":
    main()
