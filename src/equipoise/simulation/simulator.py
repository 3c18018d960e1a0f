"""Simulate whole studies of a problem, at one budget or at several, after checking everything that was asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import choice, integer, positive, shown
from equipoise.base.keywords import suggests_keywords
from equipoise.base.tables import amount, count
from equipoise.compiled import fork
from equipoise.engine.precompile import compile_ahead
from equipoise.engine.setup import Ends, Setup
from equipoise.problem import Objective, Problem, Stratified, laws, money
from equipoise.problem.objective import objective as resolve_objective
from equipoise.simulation import blocks, engines, estimators
from equipoise.simulation.results import Curve, Simulation
from equipoise.strategies import (
    Strategy,
    Support,
    check_compiles,
    check_formula,
    check_numbers,
    check_params,
    check_strategy,
    check_support,
    initial_own,
    label,
    resolve,
)

# Samples that a budget may buy: more take days, and far more could not be paid for one by one in doubles.
MOST_PULLS = 1e12
MOST_RUNS = 1e9
# The square of a larger variance is close to what a float can hold.
GREATEST_VARIANCE = 1e150
# The formula of a strategy is checked on this many arms.
CHECKED_ARMS = 64

ByArm = Iterable[float] | Mapping[int, float]
Progress = Callable[[int, int], Any]


@suggests_keywords
def simulate(
    problem: Problem,
    strategy: str | Strategy = "auto",
    budget: float = 1000,
    runs: int = 10_000,
    seed: int = 1,
    engine: Any = "cpu",
    support: Support = None,
    estimator: str = "auto",
    threads: int | None = None,
    precision: str = "double",
    progress: Progress | None = None,
    in_flight: int = 1,
    objective: float | Stratified = math.inf,
    weights: ByArm | None = None,
    costs: ByArm | None = None,
) -> Simulation:
    """
    Simulate whole studies of a problem and measure what they lose against the best allocation.

    `simulate_budgets` compares several strategies or budgets on the same samples.

    Parameters
    ----------
    problem
        The arms and their laws. A law of your own (`Law`) is simulated as an `Empirical` law of 65,536 values drawn
        from it, fewer for each if there are more than 64 of them.
    strategy, budget
        The strategy, and the number of samples of a study or, with `costs`, an amount of money.
    runs
        How many studies to simulate.
    seed
        Which samples. The i-th sample of an arm in a run is a function of (seed, run, arm, i) and of nothing else.
    engine
        "cpu", "cuda", or a Dask client, whose workers then share the runs. The numbers are the same, bit for bit (on a
        GPU to rounding).
    support
        What the studies declare as possible values; of an unbounded law, all but about 1 in 10^9 must be among them.
    estimator
        How losses are estimated: "naive", "wald", "controls", "gaussian" (Gaussian arms under strategies that do not
        use means), or "auto", the best that is valid for each arm.
    threads
        How many threads the CPU engine uses; all cores by default. The result does not depend on it.
    precision
        "double", or "single" for speed on a GPU.
    progress
        Called with the number of runs done so far and their total.
    in_flight
        How many pulls are kept in flight: this many are asked for first, then the answers come one at a time, the
        oldest first, and after each the next pull is asked for. At the end all answers come in.
    objective
        What to minimise: p of the norm of the losses, infinity for the largest, or Stratified(shares).
    weights
        One for each arm, on its loss.
    costs
        The cost of one sample of each arm. The budget is then money: where the next arm costs more than is left, the
        best of the affordable arms by the same rule is taken, and a run ends when there is none. A strategy whose
        parameters depend on the budget is told how many samples it buys when spread evenly.

    Examples
    --------
    >>> import equipoise as eq
    >>> problem = eq.Problem([eq.Gaussian(0, 4), eq.Gaussian(0, 1)])
    >>> sim = eq.simulate(problem, "uniform", budget=100, runs=2000)
    >>> print(round(sim.excess, 6))
    60.0
    """
    for name, given in (("strategy", strategy), ("budget", budget)):
        if isinstance(given, Iterable) and not isinstance(given, str):
            raise TypeError(f"{name} must be a single one, got {shown(given)}; simulate_budgets takes several")
    [found] = simulate_budgets(
        problem,
        [strategy],
        [budget],
        runs,
        seed,
        engine,
        support,
        estimator,
        threads,
        precision,
        progress,
        in_flight,
        objective,
        weights,
        costs,
    )
    return found


@suggests_keywords
def simulate_budgets(
    problem: Problem,
    strategies: Iterable[str | Strategy],
    budgets: Iterable[float],
    runs: int = 10_000,
    seed: int = 1,
    engine: Any = "cpu",
    support: Support = None,
    estimator: str = "auto",
    threads: int | None = None,
    precision: str = "double",
    progress: Progress | None = None,
    in_flight: int = 1,
    objective: float | Stratified = math.inf,
    weights: ByArm | None = None,
    costs: ByArm | None = None,
) -> Curve:
    """
    Simulate whole studies of a problem with every strategy at every budget, on the same samples.

    Budgets that do not change a strategy's parameters are points along the same runs. Parameters that are not described
    here are those of `simulate`.

    Parameters
    ----------
    strategies, budgets
        One or more of each.
    runs
        How many studies to simulate with each strategy at each budget.

    Examples
    --------
    >>> import equipoise as eq
    >>> problem = eq.Problem([eq.Gaussian(0, 4), eq.Gaussian(0, 1)])
    >>> curve = eq.simulate_budgets(problem, ["uniform", "oracle"], [100, 200], runs=2000)
    >>> [round(sim.excess, 6) for sim in curve]
    [60.0, 60.0, 0.0, 0.0]
    """
    if not isinstance(problem, Problem):
        example = "eq.Problem([eq.Gaussian(0, 4), eq.Rademacher()])"
        raise TypeError(f"problem must be a problem such as {example}, got {shown(problem)}")
    for law in problem.arms:
        if law.variance > GREATEST_VARIANCE or 0 < law.variance < 1 / GREATEST_VARIANCE:
            raise InvalidInput(
                f"laws must have a variance of 0, or from {1 / GREATEST_VARIANCE:g} to {GREATEST_VARIANCE:g}, got "
                f"{shown(law)}"
            )
    for name, given in (("strategies", strategies), ("budgets", budgets)):
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise TypeError(f"{name} must be a list, got {shown(given)}; simulate takes a single one")
    compared = [resolve(each) for each in strategies]
    aim = resolve_objective(range(len(problem)), objective, weights, costs)
    sizes = sorted({_budget(n, aim) for n in budgets})
    for name, values in (("strategies", compared), ("budgets", sizes)):
        if not values:
            raise InvalidInput(f"{name} must have at least one value, got none")
    in_flight, seed = integer("in_flight", in_flight, 1), integer("seed", seed, 0)
    runs = integer("runs", runs, 2, MOST_RUNS)
    if seed >= 1 << 64:
        raise InvalidInput(f"seed must be below 2^64, got {shown(seed)}")
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be a function of the runs done and of all, got {shown(progress)}")
    own = tuple(k for k, law in enumerate(problem.arms) if not laws.has_formula(law))
    problem = problem.simulable()
    support = support_for(support, problem)
    worker = engines.engine(engine, threads, choice("precision", precision, ("double", "single")), in_flight, aim)
    jobs = [
        (place, setup, estimators.choose(estimator, problem, each))
        for place, each in enumerate(compared)
        for setup in setups(problem, each, sizes, support, seed, in_flight, aim)
    ]
    found: list[tuple[int, Simulation]] = []
    for done, (place, setup, chosen) in enumerate(jobs):
        # Where nothing is fitted, the first runs that count do as well.
        first = 0 if set(chosen) == {"naive"} else blocks.PILOT_FIRST
        pilot = first_ends(worker.ends, setup, first, blocks.pilot_runs(setup, chosen, runs))
        measurement = blocks.Measurement(setup, chosen, blocks.multiples(setup, chosen, pilot), runs)
        report = partial(_report, progress, done * runs, len(jobs) * runs) if progress else None
        results = worker.measure(measurement, report)
        for n, (sums, batches) in zip(setup.checkpoints, results, strict=True):
            sim = Simulation(problem, compared[place], n, runs, seed, chosen, sums, batches, aim, in_flight, own)
            found.append((place, sim))
    return Curve(sim for _, sim in sorted(found, key=lambda each: (each[0], each[1].budget)))


def _report(progress: Progress, before: int, total: int, runs: int) -> None:
    progress(before + runs, total)


# ---- what is asked for


def _budget(budget: Any, objective: Objective) -> float:
    """A number of samples or, where these have costs, an amount of money."""
    if objective.costs is None:
        return integer("budget", budget, 1, MOST_PULLS)
    given = positive("budget", budget, "amount of money")
    if (samples := given / min(objective.costs)) > MOST_PULLS:
        raise InvalidInput(
            f"budget must buy at most {amount(MOST_PULLS)} samples in a run, got {shown(budget)}, which buys "
            f"{amount(samples)}"
        )
    return given


def support_for(given: Any, problem: Problem) -> Support:
    """Return a support that has the values of every law in it; samples outside of it would be refused by a study."""
    support = check_support(given)
    if support is None:
        return None
    for law in problem.arms:
        low, high = laws.ends(law)
        inside = laws.is_binary(law) if support == "binary" else not (low < support[0] or high > support[1])
        if not inside:
            raise InvalidInput(f"support must contain the values of every law, got {shown(support)} with {shown(law)}")
    return support


def setups(
    problem: Problem,
    strategy: Strategy,
    budgets: Sequence[float],
    support: Support,
    seed: int,
    in_flight: int = 1,
    objective: Objective | None = None,
    one_kernel: bool = False,
) -> list[Setup]:
    """
    Return what an engine has to simulate for one strategy.

    Parameters
    ----------
    problem, strategy, budgets, support, seed, in_flight, objective
        As in `simulate`, checked; the budgets in ascending order.
    one_kernel
        Whether to use the kernel for any number of arms, which is compiled once for a strategy.

    Returns
    -------
    list of Setup
        One for all budgets that give the strategy the same parameters. Their problem is the centred one, unless the
        strategy uses means: what a mean is off by does not depend on where it is, but its rounding error does.
    """
    check_strategy(strategy)
    objective = Objective() if objective is None else objective
    arms = len(problem)
    costs = objective.cost(arms)
    price = strategy.warmup * math.fsum(costs)
    if money.limit(budgets[0], float(min(costs))) < price:
        raise InvalidInput(
            f"budget must be at least {amount(price)}, got {shown(budgets[0])}: {label(strategy)} starts with "
            f"{count(strategy.warmup, 'sample')} of each arm"
        )
    by_params: dict[tuple[float, ...], list[float]] = {}
    for n in budgets:
        params = check_params(strategy, strategy.params(objective.samples(n, arms), arms, support))
        if params not in by_params:
            compile_ahead(Setup(problem, strategy, (n,), params, seed, in_flight, objective, one_kernel))
            check_numbers(strategy, params, support)
            check_compiles(strategy, params)
        by_params.setdefault(params, []).append(n)
    # Refuses variances for another number of arms.
    initial_own(strategy, arms, objective.units(arms), problem.variances)
    simulated = problem if strategy.uses_mean else problem.centred()
    return [
        Setup(simulated, strategy, tuple(ns), params, seed, in_flight, objective, one_kernel)
        for params, ns in by_params.items()
    ]


def first_ends(ends: Callable[[Setup, int, int], Ends], setup: Setup, first: int, runs: int) -> Ends:
    """Simulate the first runs of a setup; refuse a strategy whose numbers are wrong there, as kernels do not look."""
    found = ends(setup, first, runs)
    fork.finish()  # that compiled with this process
    check_ends(setup, found)
    return found


def check_ends(setup: Setup, ends: Ends) -> None:
    """Refuse a strategy whose numbers are wrong where the first of these runs ended."""
    own = setup.initial_own
    for c in range(len(setup.checkpoints)):
        for k in range(min(len(setup.problem), CHECKED_ARMS)):
            count, mean, m2 = (float(each[c, k, 0]) for each in (ends.counts, ends.means, ends.m2s))
            check_formula(setup.strategy, setup.params, count, mean, m2, tuple(own[k]))
