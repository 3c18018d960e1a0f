"""
Measure whether what an even split would have needed, and what a precision still needs, are true.

    python -m benchmarks.baseline [budget | precision | left] [--studies N] [--only TEXT ...] [--seed S] [--jobs J]

`budget`: studies with a budget, under `auto`. The truth is the number of samples at which the largest loss of an even
split equals that of the strategy, by 20,000 simulated runs. `precision`: the baseline of studies under `auto` next to
the samples that a study under `uniform`, on other samples, really takes. `left`: the range of what is left, a third, a
half, two thirds and three quarters of the way, next to what was left. Tables are in docs/explanation/inference.md; the
last line printed is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import equipoise as eq
from equipoise.problem import Law
from equipoise.store import Header, Turn
from equipoise.store.memory import Memory
from equipoise.strategies import Support
from equipoise.study.options import study_options

G, X, B, U = eq.Gaussian, eq.Exponential, eq.Bernoulli, eq.Uniform
SHARES = (1 / 3, 1 / 2, 2 / 3, 3 / 4)
RUNS = 20_000


@dataclass(frozen=True)
class Arms:
    """The arms of a problem, the support that is declared, the precision asked for, if any, and the objective."""

    name: str
    laws: tuple[Law, ...]
    support: Support = None
    precision: Any = None
    objective: Any = math.inf


def _scales(count: int, spread: float, seed: int) -> list[float]:
    return [float(scale) for scale in np.exp(np.random.default_rng(seed).normal(0, spread, count))]


_ALIKE: tuple[tuple[str, Law, Support], ...] = (
    ("Gaussian", G(0, 1), None),
    ("exponential", X(1), None),
    ("coins 0.5", B(0.5), "binary"),
    ("coins 0.1", B(0.1), "binary"),
)
EQUAL = [Arms(f"{K} {name}", (law,) * K, support) for name, law, support in _ALIKE for K in (2, 10, 50)]
UNEQUAL = [
    Arms("2 Gaussian, sd 1 and 1.2", (G(0, 1), G(0, 1.44))),
    Arms("2 Gaussian, sd 1 and 2", (G(0, 1), G(0, 4))),
    Arms("2 Gaussian, sd 1 and 5", (G(0, 1), G(0, 25))),
    Arms("10 Gaussian, sd 1 to 10", tuple(G(0, i * i) for i in range(1, 11))),
    Arms("10 Gaussian, one of sd 2", (*[G(0, 1)] * 9, G(0, 4))),
    Arms("10 Gaussian, sd 1 to 1.5", tuple(G(0, float(s) ** 2) for s in np.linspace(1, 1.5, 10))),
    Arms("50 Gaussian, log-normal sd", tuple(G(0, s * s) for s in _scales(50, 0.7, 3))),
    Arms("2 exponential, 1 and 2", (X(1), X(2))),
    Arms("10 exponential, 1 to 10", tuple(X(float(i)) for i in range(1, 11))),
    Arms("50 exponential, log-normal", tuple(X(s) for s in _scales(50, 0.5, 4))),
    Arms("8 mixed", (G(0, 1), X(1), U(0, 1), eq.Laplace(1), G(0, 9), X(2), G(0, 0.25), U(0, 5))),
    Arms("10 log-normal, 0.5 and 0.8", (*[eq.LogNormal(0, 0.5)] * 5, *[eq.LogNormal(0, 0.8)] * 5)),
    Arms("6 coins, 0.04 to 0.52", tuple(B(p) for p in (0.52, 0.31, 0.9, 0.08, 0.04, 0.97)), "binary"),
    Arms("2 coins, 0.5 and 0.2", (B(0.5), B(0.2)), "binary"),
]
TO_A_PRECISION = [
    Arms("1 Gaussian, ±0.25", (G(0, 1),), None, 0.25),
    Arms("2 Gaussian, ±0.4", (G(0, 1), G(5, 9)), None, 0.4),
    Arms("20 Gaussian, ±0.4", tuple(G(0, float(v)) for v in np.linspace(0.5, 4, 20)), None, 0.4),
    Arms("5 Gaussian, ±5%", (G(10, 1), G(10, 4), G(5, 9), G(3, 1), G(20, 25)), None, "5%"),
    Arms("1 exponential, ±0.25", (X(1),), None, 0.25),
    Arms("5 exponential, ±0.4", (X(1), X(1), X(2), X(2), X(3)), None, 0.4),
    Arms("20 exponential, ±0.25", (X(1),) * 20, None, 0.25),
    Arms("5 exponential, ±20%", (X(1), X(2), X(3), X(10), X(0.1)), None, "20%"),
    Arms("8 mixed, ±0.35", (G(0, 1), X(1), U(0, 1), eq.Laplace(1), G(0, 4), X(2), G(0, 0.25), U(0, 5)), None, 0.35),
    Arms("1 coin, ±0.06", (B(0.3),), "binary", 0.06),
    Arms("4 coins, ±0.08", (B(0.5), B(0.3), B(0.1), B(0.03)), "binary", 0.08),
    Arms("20 coins, ±0.08", tuple(B(float(p)) for p in np.linspace(0.05, 0.5, 20)), "binary", 0.08),
    Arms("3 uniform in [0, 1], ±0.05", (U(0, 1), U(0.4, 0.6), U(0, 0.5)), (0, 1), 0.05),
]


def _values(seed: int, draw: str, *parameters: float) -> Law:
    """Return a law of 4,000 values that numpy's generator draws."""
    return eq.Empirical(getattr(np.random.default_rng(seed), draw)(*parameters, 4000).tolist())


def _two_groups(seed: int, share: float, apart: float) -> Law:
    """Return a mixture of two Gaussian laws of standard deviation 1."""
    rng = np.random.default_rng(seed)
    return eq.Empirical((rng.normal(size=4000) + apart * (rng.random(4000) < share)).tolist())


_GAMMA = tuple(_values(50 + i, "gamma", 2, scale) for i, scale in enumerate((1, 1.5, 2, 3)))
_BETA = tuple(_values(60 + i, "beta", a, b) for i, (a, b) in enumerate(((2, 2), (1, 4), (5, 2), (0.5, 0.5), (8, 3))))
_GROUPS = tuple(_two_groups(70 + i, share, apart) for i, (share, apart) in enumerate(((0.5, 4), (0.1, 5), (0.3, 2))))
_WEIBULL = tuple(_values(80 + i, "weibull", shape) for i, shape in enumerate((0.8, 1.2, 1.6, 2, 3)))
UNSEEN = [
    Arms("4 gamma, shape 2", _GAMMA),
    Arms("6 gamma, shape 2, alike", _GAMMA[:1] * 6),
    Arms("5 beta", _BETA, (0, 1)),
    Arms("3 mixtures", _GROUPS),
    Arms("5 Weibull", _WEIBULL),
    Arms("7 coins, 0.15 to 0.45", tuple(B(p) for p in (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)), "binary"),
]
UNSEEN_TO_A_PRECISION = [
    Arms("4 gamma, ±0.3", _GAMMA, None, 0.3),
    Arms("4 gamma, ±8%", _GAMMA, None, "8%"),
    Arms("5 beta, ±0.04", _BETA, (0, 1), 0.04),
    Arms("3 mixtures, ±0.3", _GROUPS, None, 0.3),
    Arms("5 Weibull, ±0.12", _WEIBULL, None, 0.12),
    Arms("7 coins, ±0.06", UNSEEN[-1].laws, "binary", 0.06),
]
# Chosen when nothing was to be changed any more.
LAST = [
    Arms("6 Student, ±0.3", tuple(_values(90 + df, "standard_t", df) for df in (6, 8, 10, 12, 15, 20)), None, 0.3),
    Arms("5 Gumbel, ±0.2", tuple(_values(110 + i, "gumbel", 0, 0.6 + i / 5) for i in range(5)), None, 0.2),
    Arms("4 Poisson, ±0.3", tuple(_values(120 + i, "poisson", mean) for i, mean in enumerate((1, 2, 4, 8))), None, 0.3),
    Arms("10 left-skewed beta, ±0.04", tuple(_values(130 + i, "beta", 4, 1) for i in range(10)), None, 0.04),
]
# Combined means and contrasts.
SUMS = [
    Arms("5 Gaussian strata, ±0.1", (G(0, 1),) * 5, None, 0.1, eq.Stratified([0.2] * 5)),
    Arms("10 exponential strata, ±0.1", (X(1),) * 10, None, 0.1, eq.Stratified([0.1] * 10)),
    Arms("4 gamma strata, ±0.15", _GAMMA, None, 0.15, eq.Stratified([0.4, 0.3, 0.2, 0.1])),
    Arms("6 Gaussian, differences to one, ±0.4", tuple(G(0, i) for i in range(1, 7)), None, eq.Contrasts(0.4, to=0)),
    Arms("4 exponential, all differences, ±0.3", (X(1),) * 4, None, eq.Contrasts(0.3)),
    Arms("4 coins, all differences, ±0.1", (B(0.3),) * 4, "binary", eq.Contrasts(0.1)),
]


def chosen(some: Sequence[Arms], only: list[str]) -> list[Arms]:
    """Return the problems whose names contain one of these texts."""
    return [arms for arms in some if any(text in arms.name for text in only)]


class Samples:
    """Samples of each arm, drawn a few hundred at a time."""

    def __init__(self, laws: Sequence[Law], seed: int) -> None:
        self._laws, self._rng = laws, np.random.default_rng(seed)
        self._ready: list[list[float]] = [[] for _ in laws]

    def next(self, k: int) -> float:
        if not self._ready[k]:
            self._ready[k] = self._laws[k].sample(self._rng, 256).tolist()
        return self._ready[k].pop()


# ---- with a budget


def studied(arms: Arms, n: int, seed: int) -> eq.Result:
    """Return the result of one study with a budget."""
    study = eq.Study(len(arms.laws), budget=n, support=arms.support)
    samples = Samples(arms.laws, seed)
    while not study.done:
        ticket = study.ask()
        study.tell(ticket, samples.next(ticket.arm))  # type: ignore[arg-type]
    return study.result()


def truth(arms: Arms, n: int, runs: int = RUNS) -> float:
    """Return the number of samples with which an even split has the largest loss of the strategy with n."""
    problem = eq.Problem(arms.laws)
    found = eq.simulate(problem, "auto", budget=n, runs=runs, seed=1, support=arms.support)
    return float(len(arms.laws) * problem.variances.max() / found.losses.max())


def _baseline(arms: Arms, n: int, seed: int) -> tuple[float, float, float] | None:
    found = studied(arms, n, seed).baseline
    return None if found is None else (found.samples, found.low, found.high)


def budget(studies: int, seed: int, only: list[str], pool: ProcessPoolExecutor) -> Iterator[dict[str, Any]]:
    print("| arms | samples an arm | studies | truth | `samples` | range covers the truth | mentioned |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    # All problems at once, so that no process waits for the last studies of one.
    tasks = []
    for arms, each in product(chosen((*EQUAL, *UNEQUAL, *UNSEEN), only), (30, 100)):
        n = each * len(arms.laws)
        seeds = range(seed, seed + studies)
        tasks.append(
            (arms, each, pool.submit(truth, arms, n), pool.map(partial(_baseline, arms, n), seeds, chunksize=5))
        )
    for arms, each, at_best, all_found in tasks:
        n, right = each * len(arms.laws), at_best.result()
        # Of zeros alone, nothing is said.
        found = np.array([one for one in all_found if one is not None])
        covers = (found[:, 1] <= right) & (right <= found[:, 2])
        said = found[:, 1] > 1.05 * n
        mean, error = found[:, 0].mean() / n, found[:, 0].std() / n / math.sqrt(len(found))
        print(
            f"| {arms.name} | {each} | {studies} | {right / n:.2f} n | {mean:.3f} n ({error:.3f}) | "
            f"{covers.mean():.0%} | {said.mean():.0%} |",
            flush=True,
        )
        yield {
            "name": arms.name,
            "each": each,
            "studies": studies,
            "truth": right / n,
            "samples": mean,
            "error": error,
            "covers": float(covers.mean()),
            "mentioned": float(said.mean()),
        }


# ---- to a precision


def to_precision(arms: Arms, strategy: str, seed: int, step: float = math.inf) -> tuple[eq.Result, list[eq.Result]]:
    """Return the result of one study, and those on the way, whenever the samples have grown by a factor."""
    names = tuple(range(len(arms.laws)))
    options = study_options(
        names, strategy=strategy, support=arms.support, objective=arms.objective, precision=arms.precision, seed=0
    )
    header = Header.of(options)
    memory, samples = Memory(header), Samples(arms.laws, seed)
    on_the_way: list[eq.Result] = []

    def work(turn: Turn) -> None:
        due = 40.0
        while True:
            found = turn.ask_next(1)
            if not found:
                if not turn.judge():
                    return
                continue
            turn.tell(found[0], samples.next(int(turn.ledger.arm_of[found[0]])))
            turn.look()
            if turn.ledger.samples >= due * step:
                due = turn.ledger.samples
                on_the_way.append(turn.replica.result())

    memory.turn(work)
    return memory.replica.result(), on_the_way


def _pair(arms: Arms, seed: int) -> tuple[tuple[float, float], int, int]:
    """Return the range of the baseline of a study under `auto`, its samples, and those of one under `uniform`."""
    result = to_precision(arms, "auto", seed)[0]
    found = result.baseline
    assert found is not None
    return (found.low, found.high), result.samples, to_precision(arms, "uniform", seed + 1)[0].samples


def precision(studies: int, seed: int, only: list[str], pool: ProcessPoolExecutor) -> Iterator[dict[str, Any]]:
    print("| arms | studies | `auto` takes | range of the first | `uniform` takes | ranges cover it |")
    print("|---|--:|--:|--:|--:|--:|")
    some = (*TO_A_PRECISION, *UNSEEN_TO_A_PRECISION, *SUMS)
    # Strata of unequal shares are sampled in proportion to them by `uniform`, which is not an even split.
    even = [arms for arms in some if len(set(getattr(arms.objective, "shares", ()))) < 2]
    wanted = [arms for arms in chosen(even, only) if len(arms.laws) > 1]
    seeds = range(seed, seed + 2 * studies, 2)
    # All problems at once, so that no process waits for the last studies of one.
    all_pairs = [pool.map(partial(_pair, arms), seeds, chunksize=5) for arms in wanted]
    for arms, pairs in zip(wanted, all_pairs, strict=True):
        ranges, taken_by_auto, others = (np.array(each) for each in zip(*pairs, strict=True))
        covers = (ranges[:, 0] <= others) & (others <= ranges[:, 1])
        taken = float(taken_by_auto.mean())
        print(
            f"| {arms.name} | {studies} | {taken:,.0f} | {ranges[0, 0]:,.0f} to {ranges[0, 1]:,.0f} | "
            f"{others.mean():,.0f} (first: {others[0]:,}) | {covers.mean():.0%} |",
            flush=True,
        )
        yield {
            "name": arms.name,
            "studies": studies,
            "auto": taken,
            "uniform": float(others.mean()),
            "covers": float(covers.mean()),
            "first": bool(covers[0]),
        }


class OnTheWay(NamedTuple):
    """What a study took, what it said was left at each of `SHARES` of the way, and what was left; None if nothing."""

    samples: int
    said: list[tuple[float, float, int] | None]


def _on_the_way(arms: Arms, seed: int) -> OnTheWay:
    end, on_the_way = to_precision(arms, "auto", seed, 1.05)
    said: list[tuple[float, float, int] | None] = []
    for share in SHARES:
        now = next((each for each in on_the_way if each.samples >= share * end.samples), None)
        if now is None or now.reached:
            said.append(None)
            continue
        found = now.left
        low, high = (math.inf, -math.inf) if found is None else (found.low, found.high)
        said.append((low, high, end.samples - now.samples))
    return OnTheWay(end.samples, said)


def left(studies: int, seed: int, only: list[str], pool: ProcessPoolExecutor) -> Iterator[dict[str, Any]]:
    print("| arms | studies | samples | covered at 1/3 | at 1/2 | at 2/3 | at 3/4 | high / low at 1/3 | at 1/2 |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    wanted = chosen((*TO_A_PRECISION, *UNSEEN_TO_A_PRECISION, *LAST, *SUMS), only)
    # All problems at once, so that no process waits for the last studies of one.
    all_found = [pool.map(partial(_on_the_way, arms), range(seed, seed + studies), chunksize=5) for arms in wanted]
    for arms, found in zip(wanted, map(list, all_found), strict=True):
        samples = float(np.mean([each.samples for each in found]))
        covers, ratios = [], []
        for said in zip(*(each.said for each in found), strict=True):
            low, high, more = np.array([each for each in said if each is not None]).T
            covers.append(float(((low <= more) & (more <= high)).mean()))
            ratios.append(float(np.median((high / np.maximum(low, 1))[low <= high])))
        cells = " | ".join([*(f"{share:.0%}" for share in covers), *(f"{ratio:.2f}" for ratio in ratios[:2])])
        print(f"| {arms.name} | {studies} | {samples:,.0f} | {cells} |", flush=True)
        yield {"name": arms.name, "studies": studies, "samples": samples, "covers": covers, "ratios": ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["budget", "precision", "left"])
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--only", nargs="*", default=[""], help="only problems whose names contain one of these")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    given = parser.parse_args()
    measure = {"budget": budget, "precision": precision, "left": left}[given.what]
    with ProcessPoolExecutor(given.jobs) as pool:
        print(json.dumps({given.what: list(measure(given.studies, given.seed, given.only, pool))}))


if __name__ == "__main__":
    main()
