"""
What a simulated pull costs, as a ratio to drawing one normal with NumPy, and how long a precise regret takes.

Run it with `make bench`. The last line is one JSON object. The unit is the time that one number takes when
`numpy.random.Generator.standard_normal` draws a million of them on one thread of the same process; it is measured in
turn with what it is compared with, and the best of the rounds counts on both sides. A pull is everything: the arm is
chosen, the sample is drawn, the arm's numbers are updated. Times are those of the processor, except where two threads
are compared with one.
"""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import adaptive
import numba
import numpy as np
import numpy.typing as npt

import equipoise as eq
from equipoise.engine import cpu
from equipoise.engine.setup import Setup
from equipoise.problem import Objective
from equipoise.simulation.blocks import SHORTEST_PILOT
from equipoise.strategies import Strategy

ROUNDS = 21
EXPLORATION = 0.5
BAS: Strategy = eq.strategies.BAS(exploration=EXPLORATION)
PAIR = eq.Problem([eq.Gaussian(0, 4), eq.Gaussian(0, 1)])
PRECISION = 0.05
BUDGET = 1000

_RNG = np.random.default_rng(0)
_NORMALS = np.empty(1_000_000)

Work = Callable[[], int]


def bulk_normals() -> int:
    """The unit: a million normals, by NumPy."""
    _RNG.standard_normal(out=_NORMALS)
    return _NORMALS.size


def threaded_normals(threads: int) -> Work:
    """NumPy's normals in as many threads, each with a generator and a buffer of its own."""
    rngs = [np.random.default_rng(i) for i in range(threads)]
    buffers = [np.empty(4_000_000 // threads) for _ in rngs]
    pool = ThreadPoolExecutor(threads)

    def work() -> int:
        list(pool.map(lambda i: rngs[i].standard_normal(out=buffers[i]), range(threads)))
        return 4_000_000

    return work


def best(*works: Work, rounds: int = ROUNDS, clock: Callable[[], float] = time.process_time) -> list[float]:
    """Nanoseconds per unit of each work, the best of rounds in which they take turns."""
    times = [math.inf] * len(works)
    for work in works:
        work()  # compile, warm up
    for _ in range(rounds):
        for i, work in enumerate(works):
            start = clock()
            units = work()
            times[i] = min(times[i], (clock() - start) / units * 1e9)
    return times


def pulls(
    strategy: Strategy,
    problem: eq.Problem,
    budget: int,
    runs: int,
    threads: int = 1,
    in_flight: int = 1,
    objective: Objective = Objective(),  # noqa: B008
) -> Work:
    """Runs of a plan, split among threads."""
    params = strategy.params(budget, len(problem), None)
    plan = Setup(problem, strategy, (budget,), params, 1, in_flight, objective)
    share = runs // threads
    pool = ThreadPoolExecutor(threads)

    def work() -> int:
        if threads == 1:
            cpu.simulate(plan, 0, runs)
        else:
            list(pool.map(lambda i: cpu.simulate(plan, i * share, share), range(threads)))
        return share * threads * budget

    return work


def other_forms() -> dict[str, dict[str, float]]:
    """A pull of B-AS with answers that come late, and under other objectives, by the number of arms."""
    report: dict[str, dict[str, float]] = {}
    for arms, (budget, runs) in {2: (1000, 256), 10: (1000, 256), 100: (3000, 64), 1000: (10_000, 20)}.items():
        problem = eq.Problem([eq.Gaussian(0, 1 + k % 4) for k in range(arms)])
        ones = (1.0,) * arms
        forms = {
            "the paper's": pulls(BAS, problem, budget, runs),
            "weights": pulls(BAS, problem, budget, runs, objective=Objective(weights=ones)),
            "p = 1": pulls(BAS, problem, budget, runs, objective=Objective(1.0)),
            "64 in flight": pulls(BAS, problem, budget, runs, in_flight=64),
            "64 in flight, p = 1": pulls(BAS, problem, budget, runs, in_flight=64, objective=Objective(1.0)),
            "costs": pulls(BAS, problem, budget, runs, objective=Objective(costs=ones)),
        }
        for name, cost in zip(forms, ratios(list(forms.values())), strict=True):
            report.setdefault(name, {})[str(arms)] = round(cost, 2)
    return report


def whole(strategy: Strategy, problem: eq.Problem, budget: int, runs: int) -> Work:
    """A whole call of eq.simulate on one thread, with its checks, pilot and estimators."""

    def work() -> int:
        eq.simulate(problem, strategy, budget, runs=runs, threads=1)
        return runs * budget

    return work


def whole_calls() -> dict[str, dict[str, float]]:
    """Whole calls by arms, strategy and runs, for each pull of the runs that were asked for, beside the kernel."""
    report: dict[str, dict[str, float]] = {}
    # A million runs of a thousand arms would take five minutes.
    sizes = {
        2: (1000, 2048, (100, 10_000, 1_000_000)),
        10: (1000, 1024, (100, 10_000, 1_000_000)),
        1000: (10_000, 64, (100, 10_000)),
    }
    for arms, (budget, at_once, each) in sizes.items():
        problem = eq.Problem([eq.Gaussian(0, 4), *[eq.Gaussian(0, 1)] * (arms - 1)])
        for name, strategy in {"b-as": BAS, "auto": eq.strategies.Auto()}.items():
            costs = report[f"{name}, {arms} arms"] = {}
            [kernel] = ratios([pulls(strategy, problem, budget, at_once)], rounds=5)
            costs["kernel"] = round(kernel, 3)
            for runs in each:
                rounds = 1 if runs * budget > 20_000_000 else 5
                [cost] = ratios([whole(strategy, problem, budget, runs)], rounds=rounds)
                costs[f"{runs} runs"] = round(cost, 3)
            print(name, arms, costs, flush=True)
    return report


def auto_over_b_as() -> dict[str, float]:
    """How many times a pull of B-AS one of the default costs, by the number of arms."""
    sizes = {2: (1000, 2048), 10: (1000, 1024), 16: (1000, 1024), 100: (3000, 128), 1000: (10_000, 32)}
    report = {}
    for arms, (budget, runs) in sizes.items():
        problem = eq.Problem([eq.Gaussian(0, 4), *[eq.Gaussian(0, 1)] * (arms - 1)])
        b_as, auto = best(*(pulls(each, problem, budget, runs) for each in (BAS, eq.strategies.Auto())))
        report[str(arms)] = round(auto / b_as, 2)
    return report


def numpy_losses(runs: int, budget: int, seed: int = 0) -> npt.NDArray[np.float64]:
    """B-AS on the two Gaussians as one would write it in NumPy, runs as rows: (muhat - mu)² by arm and run."""
    rng = np.random.default_rng(seed)
    sd, rows = np.repeat([2.0, 1.0], runs), np.arange(runs)
    count, mean, m2, key = (np.zeros(2 * runs) for _ in range(4))
    for t in range(budget):
        at = rows + (t % 2 * runs if t < 4 else (key[runs:] > key[:runs]) * runs)
        x = rng.standard_normal(runs) * sd[at]
        n = count[at] + 1
        step = x - mean[at]
        m = mean[at] + step / n
        q = m2[at] + step * (x - m)
        count[at], mean[at], m2[at] = n, m, q
        if t >= 2:
            key[at] = (np.sqrt(q / (n - 1)) + 2 * EXPLORATION / np.sqrt(n)) ** 2 / n
    return (mean**2).reshape(2, runs)


def numpy_pulls(runs: int, budget: int) -> Work:
    def work() -> int:
        numpy_losses(runs, budget)
        return runs * budget

    return work


def adaptive_pulls(samples: int) -> Work:
    """The nearest thing in adaptive: a BalancingLearner of one AverageLearner for each arm, on the same two arms."""

    def work() -> int:
        learner = adaptive.BalancingLearner([adaptive.AverageLearner(lambda seed: 0.0, atol=1e-9) for _ in range(2)])
        rng = np.random.default_rng(0)
        for seed, k in ((0, 0), (1, 0), (0, 1), (1, 1)):
            learner.tell((k, seed), rng.standard_normal() * (2 - k))
        for _ in range(samples):
            (point,), _ = learner.ask(1)
            learner.tell(point, rng.standard_normal() * (2 - point[0]))
        return samples

    return work


def ratios(works: Sequence[Work], rounds: int = ROUNDS, clock: Callable[[], float] = time.process_time) -> list[float]:
    """The costs of works in units of one bulk normal."""
    unit, *times = best(bulk_normals, *works, rounds=rounds, clock=clock)
    return [each / unit for each in times]


def simulated(runs: int, threads: int) -> tuple[float, float]:
    """Seconds that the regret of B-AS takes, all included, and its standard error once rescaled."""
    start = time.process_time()
    sim = eq.simulate(PAIR, BAS, BUDGET, runs=runs, threads=threads)
    return time.process_time() - start, sim.rescaled_error


def time_to_precision(numpy_ns: float) -> dict[str, Any]:
    """Seconds, on one thread, until the rescaled regret has a standard error of 0.05."""
    _, error = simulated(20_000, threads=1)
    runs = math.ceil(20_000 * (error / PRECISION) ** 2)
    seconds = min(simulated(runs, threads=1)[0] for _ in range(ROUNDS))
    losses = numpy_losses(5000, BUDGET)
    worst = losses[losses.mean(axis=1).argmax()]
    naive_runs = math.ceil((BUDGET**1.5 * float(worst.std()) / PRECISION) ** 2)
    naive = naive_runs * BUDGET * numpy_ns * 1e-9
    return {
        "runs": runs,
        "pilot_runs": SHORTEST_PILOT,
        "seconds": round(seconds, 4),
        "standard_error": round(simulated(runs, threads=1)[1], 4),
        "numpy_naive_runs": naive_runs,
        "numpy_naive_seconds_extrapolated": round(naive),
        "factor": round(naive / seconds),
    }


def main() -> None:
    report: dict[str, Any] = {}
    # From 1,000 arms on several runs share the setting up of the laws, as they do in the blocks of eq.simulate.
    sizes = {
        2: (1000, 2048),
        10: (1000, 1024),
        16: (1000, 1024),
        100: (3000, 256),
        1000: (10_000, 100),
        10_000: (100_000, 10),
        100_000: (1_000_000, 10),
    }
    report["pull_over_bulk_normal"] = {}
    for arms, (budget, runs) in sizes.items():
        problem = PAIR if arms == 2 else eq.Problem([eq.Gaussian(0, 1 + k % 4) for k in range(arms)])
        [cost] = ratios([pulls(BAS, problem, budget, runs)], rounds=5 if arms > 10_000 else ROUNDS)
        report["pull_over_bulk_normal"][str(arms)] = round(cost, 3)
    [alone] = ratios([pulls(BAS, problem, budget, 1)], rounds=5)
    report["pull_over_bulk_normal_100000_arms_one_run_a_call"] = round(alone, 3)
    report["pull_over_bulk_normal_whole_calls"] = whole_calls()
    report["pull_over_bulk_normal_by_form"] = other_forms()
    longer = {10_000: 256, 100_000: 64}
    report["pull_over_bulk_normal_2_arms_by_n"] = {
        str(n): round(ratios([pulls(BAS, PAIR, n, runs)], rounds=5)[0], 3) for n, runs in longer.items()
    }
    others: dict[str, Strategy] = {
        "ch-as": eq.strategies.CHAS(),
        "gafs-max": eq.strategies.GAFSMAX(),
    }
    b_as, *costs = ratios([pulls(each, PAIR, 1000, 2048) for each in (BAS, *others.values())])
    report["strategy_over_b_as_2_arms"] = {name: round(c / b_as, 2) for name, c in zip(others, costs, strict=True)}
    report["auto_over_b_as"] = auto_over_b_as()
    works = [pulls(BAS, PAIR, 1000, 8192, threads) for threads in (1, 2)]
    draws = [threaded_normals(threads) for threads in (1, 2)]
    one, two, draw_one, draw_two = ratios([*works, *draws], clock=time.perf_counter)
    report["two_threads_over_one_2_arms"] = round(two / one, 3)
    report["pull_over_bulk_normal_two_threads"] = round(two, 3)
    # What two threads can bring on this machine at this time: where others use a core, nothing.
    report["two_threads_over_one_bulk_normals"] = round(draw_two / draw_one, 3)
    unit_ns, numpy_ns, adaptive_ns = best(bulk_normals, numpy_pulls(2000, 1000), adaptive_pulls(2000), rounds=3)
    report["numpy_pull_over_bulk_normal_2_arms"] = round(numpy_ns / unit_ns, 2)
    report["adaptive_pull_over_bulk_normal_2_arms"] = round(adaptive_ns / unit_ns)
    report["bulk_normal_ns"] = round(unit_ns, 2)
    report["time_to_precision"] = time_to_precision(numpy_ns)
    report["versions"] = {
        "equipoise": eq.__version__,
        "adaptive": adaptive.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }
    for name, value in report.items():
        print(name, value)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
