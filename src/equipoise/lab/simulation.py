"""Simulate whole studies, and measure regret."""

from __future__ import annotations

import json
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from equipoise import chart, moments
from equipoise.arrays import Floats
from equipoise.errors import EquipoiseError
from equipoise.inputs import integer, number
from equipoise.lab import cpu, cuda, estimators
from equipoise.lab.setup import Ends, Setup
from equipoise.problem import Objective, Problem, Stratified, laws
from equipoise.problem.objective import ROUNDING
from equipoise.problem.objective import objective as _objective
from equipoise.strategies import Strategy, Support, check_support, get, initial_own, resolve

if TYPE_CHECKING:
    import pandas


# Runs whose sums are formed together, whoever simulates them: so the results do not depend on how the work was split.
BLOCK = 1024
# Simulations are compared in pairs by the means of so many batches of runs.
BATCHES = 64
# Runs on which the multiples of the controls are fitted; far from the runs that are counted.
PILOT, PILOT_FIRST = 2048, 1 << 62
# Samples that a budget of money may buy: more take days, and far more could not be paid for one by one in doubles.
MOST_PULLS = 1e12
# The paper's objective.
PLAIN = Objective()


@dataclass(frozen=True)
class Sums:
    """Count, mean and M2 of what runs gave: losses and pulls by arm, and the objective of variances over pulls."""

    count: int
    mean: Floats
    m2: Floats

    def __add__(self, other: Sums) -> Sums:
        return Sums(*moments.merge(self.count, self.mean, self.m2, other.count, other.mean, other.m2))


@dataclass(frozen=True)
class Task:
    """One strategy with one set of parameters on one problem, at one or more budgets: all that a worker needs."""

    plan: Setup
    estimator: tuple[estimators.Estimator, ...]
    multiples: list[list[Floats]]
    runs: int

    def block_runs(self) -> int:
        """Runs in a block: fewer where there are many arms, so that a block fits into memory."""
        return max(1, min(BLOCK, 2**22 // (len(self.plan.problem) * len(self.plan.checkpoints))))

    def blocks(self) -> int:
        return -(-self.runs // self.block_runs())

    def block(self, b: int) -> list[list[Sums]]:
        """The sums of block b for each checkpoint, in as many pieces as give batches enough."""
        size = self.block_runs()
        first = b * size
        return self.sums(cpu.simulate(self.plan, first, min(size, self.runs - first)))

    def sums(self, ends: Ends) -> list[list[Sums]]:
        """The sums of a block of runs that ended so."""
        return [self._sums(ends, c) for c in range(len(self.plan.checkpoints))]

    def _sums(self, ends: Ends, c: int) -> list[Sums]:
        problem = self.plan.problem
        evidence = estimators.Evidence.of(problem, ends, c)
        losses = estimators.estimates(evidence, self.estimator, self.multiples[c])
        norm = _norms(self.plan.objective, problem.variances[:, None] / evidence.T)
        rows = np.vstack([losses, evidence.T, norm[None]])
        pieces = min(rows.shape[1], -(-BATCHES // self.blocks()))
        return [_sums_of(piece) for piece in np.array_split(rows, pieces, axis=1)]


def _norms(objective: Objective, losses: Floats) -> Floats:
    """|| w L ||_p of each column of losses by arm."""
    values = objective.weight(len(losses))[:, None] * losses
    top = values.max(axis=0)
    if objective.p == math.inf:
        return top
    # Over the largest, so that no power overflows.
    scale = np.where(top > 0, top, 1.0)
    return np.asarray(top * ((values / scale) ** objective.p).sum(axis=0) ** (1 / objective.p))


def _sums_of(rows: Floats) -> Sums:
    mean = rows.mean(axis=1)
    return Sums(rows.shape[1], mean, ((rows - mean[:, None]) ** 2).sum(axis=1))


class Simulation:
    """
    What a strategy does on a problem at one budget, measured over many runs.

    Attributes
    ----------
    losses, loss_errors
        L_k = E[(muhat_k - mu_k)²] for each arm, and its standard error.
    mean_pulls
        E[T_k] for each arm.
    objective, in_flight
        What is made small, and how many pulls were kept in flight.
    regret, regret_error
        max_k L_k - Sigma/n, the paper's regret. Its error is that of the largest loss. The largest of several
        estimates is too large on average: by at most `regret_bias`. With another objective || w L ||_p less the
        smallest possible; the error is then by the delta method, from the means of batches of runs.
    rescaled_regret, rescaled_error
        The same times n^{3/2}.
    excess, excess_error
        The same over Sigma/n, or over the smallest possible, in percent.
    expected_max_regret, expected_max_error
        E[max_k s²_k/T_k] - Sigma/n, the regret of later papers, which is another quantity: it cannot fall faster
        than n^{-3/2}, the paper's can reach n^{-2}. With another objective, its norm of s²_k/T_k in place of the
        largest.
    estimator
        How each arm's loss was estimated.
    """

    def __init__(
        self,
        problem: Problem,
        strategy: Strategy,
        budget: float,
        runs: int,
        seed: int,
        estimator: tuple[str, ...],
        sums: Sums,
        batches: Floats,
        objective: Objective = PLAIN,
        in_flight: int = 1,
    ) -> None:
        self.problem, self.strategy, self.budget = problem, strategy, budget
        self.objective, self.in_flight = objective, in_flight
        self.runs, self.seed, self.estimator = runs, seed, estimator
        self._sums, self._batches = sums, batches
        K = len(problem)
        errors = np.sqrt(sums.m2 / (runs - 1) / runs)
        self.losses, self.loss_errors = sums.mean[:K], errors[:K]
        self.mean_pulls = sums.mean[K : 2 * K]
        self._expected_max, self.expected_max_error = float(sums.mean[-1]), float(errors[-1])

    @property
    def worst(self) -> int:
        """The arm with the largest loss, times its weight."""
        return int((self.objective.weight(len(self.problem)) * self.losses).argmax())

    @property
    def best(self) -> float:
        """The smallest possible value of the objective, up to rounding: Sigma/n for the paper's."""
        return self.objective.optimal_loss(self.problem.variances, self.budget)

    @property
    def regret(self) -> float:
        return self._norm(self.losses) - self.best

    @property
    def regret_error(self) -> float:
        if self.objective.p == math.inf:
            return float(self._slopes()[self.worst] * self.loss_errors[self.worst])
        return float(_batch_error(self._along_slopes(), self._batches[:, -1]))

    @property
    def regret_bias(self) -> float:
        """
        How much too large the regret is on average for being that of noisy losses.

        For the largest loss, at most: the mean of the largest of independent normals with these means and errors, less
        the largest mean. For other norms, to second order: how much larger they are for the means of batches of runs
        than for all runs, over the number of batches less one.
        """
        if self.objective.p != math.inf:
            means, runs = self._batches[:, : len(self.problem)], self._batches[:, -1]
            norms = np.array([self._norm(each) for each in means])
            return float((norms @ runs / runs.sum() - self._norm(self.losses)) / (len(runs) - 1))
        weight = self.objective.weight(len(self.problem))
        losses, errors = weight * self.losses, weight * self.loss_errors
        top, error = float(losses.max()), float(errors.max())
        near = losses + 8 * errors >= top - 8 * error
        if error == 0 or near.sum() < 2:
            return 0.0
        normal = NormalDist()
        # Midpoints, so that none is on the step at the top.
        x = (np.arange(720) - 359.5) / 40 * error + top
        z = (x[:, None] - losses[near]) / np.maximum(errors[near], 1e-300)
        below = np.vectorize(normal.cdf)(np.clip(z, -40, 40)).prod(axis=1)
        # E[max] = top + integral of (1 - F) above top - integral of F below it.
        above = np.where(x >= top, 1 - below, -below)
        return float(above.mean() * 18 * error)

    @property
    def rescaled_regret(self) -> float:
        return self.budget**1.5 * self.regret

    @property
    def rescaled_error(self) -> float:
        return self.budget**1.5 * self.regret_error

    @property
    def excess(self) -> float:
        return 100 * self.regret / self.best if self.best > 0 else math.nan

    @property
    def excess_error(self) -> float:
        return 100 * self.regret_error / self.best if self.best > 0 else math.nan

    @property
    def expected_max_regret(self) -> float:
        return self._expected_max - self.best

    def _norm(self, losses: Floats) -> float:
        """The objective of these losses. An estimate of a loss may be below zero, which no power would bear."""
        return self.objective.loss(losses if self.objective.p == math.inf else np.maximum(losses, 0.0))

    def _slopes(self) -> Floats:
        """The derivatives of the norm of the losses: w_k (w_k L_k / norm)^{p-1}; for the largest, its weight."""
        weight, p = self.objective.weight(len(self.problem)), self.objective.p
        if p == math.inf:
            return np.where(np.arange(weight.size) == self.worst, weight, 0.0)
        norm = self._norm(self.losses)
        shares = weight * np.maximum(self.losses, 0.0) / norm if norm > 0 else np.zeros(weight.size)
        # Where p < 1 the slope of a loss of zero is infinite; such an arm adds nothing and has no error.
        return np.where(shares > 0, weight * np.where(shares > 0, shares, 1.0) ** (p - 1), 0.0)

    def _along_slopes(self) -> Floats:
        """The losses of each batch of runs along the slopes of the norm: what the delta method takes the error of."""
        return np.asarray(self._batches[:, : len(self.problem)] @ self._slopes())

    def __sub__(self, other: Simulation) -> Comparison:
        """The difference to another simulation of the same problem, on the very same samples, with its error."""
        if not isinstance(other, Simulation):
            return NotImplemented
        if self.objective != other.objective:
            raise ValueError(
                f"simulations are compared under one objective; it is {self.objective!r} here and "
                f"{other.objective!r} there"
            )
        for name in ("problem", "runs", "seed"):
            if getattr(self, name) != getattr(other, name):
                raise ValueError(
                    f"simulations are compared on the same samples; {name} is {getattr(self, name)!r} here and "
                    f"{getattr(other, name)!r} there"
                )
        return Comparison(self, other)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers and texts, ready for JSON."""
        return {
            "problem": [_described(law) for law in self.problem.arms],
            "strategy": _described(self.strategy) | {"name": self.strategy.name},
            "budget": self.budget,
            "objective": _written(self.objective),
            "in_flight": self.in_flight,
            "runs": self.runs,
            "seed": self.seed,
            "estimator": list(self.estimator),
            "losses": self.losses.tolist(),
            "loss_errors": self.loss_errors.tolist(),
            "mean_pulls": self.mean_pulls.tolist(),
            **{name: getattr(self, name) for name in _NUMBERS},
        }

    def __repr__(self) -> str:
        used = " and ".join(sorted(set(self.estimator)))
        size = f"n = {self.budget:,}" if self.objective.costs is None else f"a budget of {self.budget:,g}"
        late = f", {self.in_flight:,} in flight" if self.in_flight > 1 else ""
        return (
            f"<{label(self.strategy)}, {size}{late}: rescaled regret {self.rescaled_regret:.4g} ± "
            f"{self.rescaled_error:.2g}, excess {self.excess:.3g}% ({self.runs:,} runs, {used})>"
        )


_NUMBERS = (
    "regret",
    "regret_error",
    "regret_bias",
    "rescaled_regret",
    "rescaled_error",
    "excess",
    "excess_error",
    "expected_max_regret",
    "expected_max_error",
)


@dataclass(frozen=True)
class Comparison:
    """One simulation less another on the same samples; errors from the means of batches of runs, pair by pair."""

    one: Simulation
    other: Simulation

    @property
    def losses(self) -> Floats:
        return self.one.losses - self.other.losses

    @property
    def loss_errors(self) -> Floats:
        K = len(self.one.problem)
        return _batch_error(self.one._batches[:, :K] - self.other._batches[:, :K], self.one._batches[:, -1:])

    @property
    def regret(self) -> float:
        return self.one.regret - self.other.regret

    @property
    def regret_error(self) -> float:
        """The error of the difference of the largest losses, taken where they are largest; of norms along slopes."""
        return float(_batch_error(self.one._along_slopes() - self.other._along_slopes(), self.one._batches[:, -1]))

    def __repr__(self) -> str:
        return (
            f"<{label(self.one.strategy)} less {label(self.other.strategy)}: regret {self.regret:.4g} ± "
            f"{self.regret_error:.2g}>"
        )


def _batch_error(means: Floats, runs: Floats) -> Any:
    """The standard error of the mean of all runs, from the means of batches of so many runs each."""
    mean = (runs * means).sum(axis=0) / runs.sum(axis=0)
    return np.sqrt((runs * (means - mean) ** 2).sum(axis=0) / ((len(means) - 1) * runs.sum(axis=0)))


class Curve(Sequence[Simulation]):
    """
    Simulations of one or more strategies at one or more budgets: regret against n.

    It is a sequence of them, in the order of the strategies, then of the budgets.
    """

    def __init__(self, simulations: Iterable[Simulation]) -> None:
        self._simulations = tuple(simulations)

    @overload
    def __getitem__(self, index: int) -> Simulation: ...
    @overload
    def __getitem__(self, index: slice) -> Curve: ...

    def __getitem__(self, index: int | slice) -> Simulation | Curve:
        found = self._simulations[index]
        return Curve(found) if isinstance(found, tuple) else found

    def __iter__(self) -> Iterator[Simulation]:
        return iter(self._simulations)

    def __len__(self) -> int:
        return len(self._simulations)

    def rows(self) -> list[dict[str, Any]]:
        """A row of plain numbers for each simulation."""
        return [
            {
                "strategy": label(sim.strategy),
                "n": sim.budget,
                "runs": sim.runs,
                **{name: getattr(sim, name) for name in _NUMBERS},
            }
            for sim in self
        ]

    def to_frame(self) -> pandas.DataFrame:
        """A pandas DataFrame with a row for each simulation."""
        try:
            import pandas
        except ModuleNotFoundError:
            raise ModuleNotFoundError("to_frame needs pandas, which is not installed: pip install pandas") from None
        return pandas.DataFrame(self.rows())

    def plot(self) -> Any:
        """An Altair chart of the rescaled regret against n, a line for each strategy; `chart.save` keeps it."""
        return chart.regret(self.rows())

    def to_json(self) -> str:
        """All simulations as one JSON array."""
        return json.dumps([sim.to_dict() for sim in self], ensure_ascii=False)

    def save(self, path: str | Path) -> None:
        """Write everything to a JSON file; `Curve.load` reads it."""
        saved = [
            sim.to_dict()
            | {
                "sums": [sim._sums.count, sim._sums.mean.tolist(), sim._sums.m2.tolist()],
                "batches": sim._batches.tolist(),
            }
            for sim in self
        ]
        Path(path).write_text(json.dumps({"format": "equipoise curve 1", "simulations": saved}, ensure_ascii=False))

    @classmethod
    def load(cls, path: str | Path) -> Curve:
        """Read a file that `save` wrote. The strategies in it must be registered."""
        wrong = ValueError(f"{path} is not a file that Curve.save wrote")
        try:
            saved = json.loads(Path(path).read_text())
        except (json.JSONDecodeError, UnicodeDecodeError):
            raise wrong from None
        if not isinstance(saved, dict) or saved.get("format") != "equipoise curve 1":
            raise wrong
        return cls(
            Simulation(
                Problem([getattr(laws, law["class"])(**law["parameters"]) for law in each["problem"]]),
                get(each["strategy"]["name"])(**each["strategy"]["parameters"]),
                each["budget"],
                each["runs"],
                each["seed"],
                tuple(each["estimator"]),
                Sums(each["sums"][0], np.array(each["sums"][1]), np.array(each["sums"][2])),
                np.array(each["batches"]),
                _read(each.get("objective", {})),
                each.get("in_flight", 1),
            )
            for each in saved["simulations"]
        )

    def __repr__(self) -> str:
        return "\n".join(map(repr, self))


def label(strategy: Strategy) -> str:
    """A strategy's name with the parameters that are not its defaults."""
    text = repr(strategy)
    inside = text[text.index("(") + 1 : -1] if "(" in text else ""
    given = [part for part in inside.split(", ") if part and not part.endswith("=None")]
    name = strategy.name or type(strategy).__name__
    return f"{name} ({', '.join(given)})" if given and type(strategy)() != strategy else name


def _described(thing: Any) -> dict[str, Any]:
    """A law or a strategy as its class and its parameters."""
    parameters = {f.name: getattr(thing, f.name) for f in fields(thing) if f.init}
    return {"class": type(thing).__name__, "parameters": parameters}


def _written(objective: Objective) -> dict[str, Any]:
    """An objective as plain numbers; JSON has none for infinity."""
    return {
        "p": "inf" if objective.p == math.inf else objective.p,
        "weights": None if objective.weights is None else list(objective.weights),
        "costs": None if objective.costs is None else list(objective.costs),
    }


def _read(written: dict[str, Any]) -> Objective:
    """What `_written` wrote; the paper's objective from a file that says nothing of one."""
    weights, costs = written.get("weights"), written.get("costs")
    return Objective(float(written.get("p", "inf")), weights and tuple(weights), costs and tuple(costs))


def simulate(
    problem: Problem,
    strategy: str | Strategy | Sequence[str | Strategy] = "auto",
    budget: float | Sequence[float] = 1000,
    runs: int = 10_000,
    seed: int = 1,
    engine: Any = "cpu",
    support: Support = None,
    estimator: str = "auto",
    threads: int | None = None,
    precision: str = "double",
    progress: Callable[[int, int], Any] | None = None,
    in_flight: int = 1,
    objective: float | Stratified = math.inf,
    weights: Iterable[float] | Mapping[int, float] | None = None,
    costs: Iterable[float] | Mapping[int, float] | None = None,
) -> Any:
    """
    Simulate whole studies of a problem and measure what they lose against the best allocation.

    Parameters
    ----------
    problem
        The arms and their laws.
    strategy, budget
        One or several of each; every strategy is simulated at every budget, on the same samples. Budgets that do not
        change the strategy's parameters are points along the same runs.
    runs
        How many studies of each.
    seed
        Which samples. The i-th sample of an arm in a run is a function of (seed, run, arm, i) and of nothing else.
    engine
        "cpu", "cuda", or a Dask client, whose workers then share the runs. The numbers are the same, bit for bit (on a
        GPU to rounding).
    support
        What the studies declare as possible values.
    estimator
        How losses are estimated: "naive", "wald", "controls", "gaussian" (Gaussian arms under strategies that do not
        use means), or "auto", the best that is valid for each arm.
    threads
        How many threads the CPU engine uses; all cores by default. The result does not depend on it.
    precision
        "double", or "single" for speed on a GPU.
    progress
        Called with the runs done so far and the runs in all.
    in_flight
        How many pulls are kept in flight: so many are asked for first, then the answers come one at a time, the oldest
        first, and after each the next pull is asked for. At the end all answers come in.
    objective
        What is made small: p of the norm of the losses, infinity for the largest, or Stratified(shares).
    weights
        One for each arm, on its loss.
    costs
        Of one sample of each arm. The budget is then money: where the arm that is wanted costs more than is left, the
        best by the same rule of those that do not is taken, and a run ends when there is none. A strategy whose
        parameters depend on the budget is told how many samples it buys when spread evenly.

    Returns
    -------
    Simulation, or Curve
        One simulation for one strategy and one budget, else a curve of them.

    Examples
    --------
    >>> import equipoise as eq
    >>> problem = eq.Problem([eq.Gaussian(0, 4), eq.Gaussian(0, 1)])
    >>> sim = eq.simulate(problem, "uniform", budget=100, runs=2000)
    >>> print(round(sim.excess, 6))
    60.0
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"{problem!r} is not a problem; eq.Problem([eq.Gaussian(0, 4), eq.Rademacher()]) is")
    several = isinstance(strategy, Iterable) and not isinstance(strategy, str)
    given: Any = strategy if several else [strategy]
    strategies = [resolve(each) for each in given]
    grid = isinstance(budget, Iterable)
    aim = _objective(range(len(problem)), objective, weights, costs)
    budgets = sorted({_budget(n, aim) for n in (budget if isinstance(budget, Iterable) else [budget])})
    in_flight = integer("in_flight", in_flight, 1)
    if not strategies or not budgets:
        raise ValueError("no strategy or no budget was given; one of each at least is needed")
    runs = integer("runs", runs, 2)
    seed = integer("seed", seed, 0)
    if seed >= 1 << 64:
        raise ValueError(f"seed={seed} will not do; it must be below 2^64")
    support = check_support(support)
    if precision not in ("double", "single") or (precision == "single" and engine != "cuda"):
        raise ValueError(f"precision={precision!r} will not do; it must be 'double', or 'single' with engine='cuda'")
    if engine == "cuda":
        cuda.refuse(in_flight, aim)
    ends, work = _engine(engine, threads, precision)
    tasks = [
        (each, plan) for each in strategies for plan in plans(problem, each, budgets, support, seed, in_flight, aim)
    ]
    chosen = {id(each): estimators.choose(estimator, problem, each) for each in strategies}
    simulations: list[Simulation] = []
    for done, (each, plan) in enumerate(tasks):
        task = Task(plan, chosen[id(each)], _multiples(plan, chosen[id(each)], ends), runs)
        told = partial(_tell, progress, done * runs, len(tasks) * runs) if progress else None
        results = work(task, told)
        simulations += [
            Simulation(problem, each, n, runs, seed, chosen[id(each)], sums, batches, aim, in_flight)
            for n, (sums, batches) in zip(plan.checkpoints, results, strict=True)
        ]
    if not several and not grid:
        return simulations[0]
    order = {id(each): i for i, each in enumerate(strategies)}
    return Curve(sorted(simulations, key=lambda sim: (order[id(sim.strategy)], sim.budget)))


def plans(
    problem: Problem,
    strategy: Strategy,
    budgets: Sequence[float],
    support: Support,
    seed: int,
    in_flight: int = 1,
    objective: Objective = PLAIN,
) -> list[Setup]:
    """What is to be simulated: one plan for all budgets, in order, that give the strategy the same parameters."""
    arms = len(problem)
    price = strategy.warmup * math.fsum(objective.cost(arms))
    if budgets[0] * (1 + ROUNDING) < price:
        start = f"{arms * strategy.warmup} samples of {arms} arms"
        start += f", for {price:g}" if objective.costs is not None else ""
        raise ValueError(f"budget={budgets[0]} is too small: {strategy.name} starts with {start}")
    by_params: dict[tuple[float, ...], list[float]] = {}
    for n in budgets:
        by_params.setdefault(strategy.params(objective.samples(n, arms), arms, support), []).append(n)
    found = [
        Setup(problem, strategy, tuple(ns), params, seed, in_flight, objective) for params, ns in by_params.items()
    ]
    initial_own(strategy, arms, problem.variances)  # refuses variances of another number of arms
    return found


def _budget(budget: Any, objective: Objective) -> float:
    """A number of samples or, where these have costs, an amount of money."""
    if objective.costs is None:
        return integer("budget", budget, 1)
    try:
        money = number("budget", budget)
    except TypeError:
        money = math.nan
    if not 0 < money < math.inf:
        raise ValueError(f"budget={budget!r} will not do; with costs it must be a positive amount of money")
    if money / min(objective.costs) > MOST_PULLS:
        raise ValueError(f"budget={budget!r} is too large: it buys {money / min(objective.costs):.3g} samples a run")
    return money


def _tell(progress: Callable[[int, int], Any], before: int, total: int, runs: int) -> None:
    progress(before + runs, total)


def _multiples(plan: Setup, chosen: tuple[estimators.Estimator, ...], ends: EndsOf) -> list[list[Floats]]:
    """The multiples of the controls, for each checkpoint and arm, from a pilot of other runs."""
    fitted = len(chosen) <= estimators.MOST_CONTROLLED and any(each in ("controls", "gaussian") for each in chosen)
    pilot = ends(plan, PILOT_FIRST, PILOT if fitted else cpu.kernel(plan)[1])
    check_formula(plan, pilot)
    # A pilot of a few runs is enough for Wald's multiples, and fits no others.
    return [
        estimators.fit(estimators.Evidence.of(plan.problem, pilot, c), chosen) for c in range(len(plan.checkpoints))
    ]


def check_formula(plan: Setup, ends: Ends) -> None:
    """Refuse a strategy whose formula gives no variance where the pilot ended; a kernel would not say a word."""
    strategy, params = plan.strategy, plan.params or (0.0,)
    own = plan.initial_own
    for k in range(min(len(plan.problem), 64)):
        count, mean, m2 = (float(each[-1, k, 0]) for each in (ends.counts, ends.means, ends.m2s))
        # As samples that came as moments.
        kept = strategy.freeze(math.nan, count, mean, m2, 0.0, own[k], params) if strategy.own == "frozen" else own[k]
        share = strategy.share(count, mean, m2, kept, params) if count >= 2 else 0.0
        if not share >= 0:
            raise EquipoiseError(
                f"strategy {strategy!r} gave {share!r} as the share of an arm; it must be a number >= 0"
            )
        v = strategy.variance(count, mean, m2, 0.0, kept, params)
        if not v >= 0:
            raise EquipoiseError(
                f"strategy {strategy!r} gave {v!r} as the variance of an arm; it must be a number >= 0"
            )


Results = list[tuple[Sums, Floats]]
Work = Callable[[Task, Callable[[int], Any] | None], Results]
EndsOf = Callable[[Setup, int, int], Ends]


def _engine(engine: Any, threads: int | None, precision: str) -> tuple[EndsOf, Work]:
    """What says where runs of a plan end, for a pilot, and what does the blocks of a task."""
    if engine == "cuda":
        cuda.check()
        single = precision == "single"
        return partial(cuda.simulate, single=single), partial(_on_cuda, single)
    workers = integer("threads", threads, 1) if threads is not None else os.cpu_count() or 1
    if engine == "cpu":
        return partial(_pilot, workers), partial(_on_cpu, workers)
    if hasattr(engine, "scheduler_info"):
        if engine.status != "running":
            raise ValueError(f"the Dask client {engine!r} is {engine.status}; a running one is needed")
        return partial(_pilot, workers), partial(_on_dask, engine)
    raise ValueError(f"engine={engine!r} will not do; it must be 'cpu', 'cuda' or a Dask client")


def _pilot(workers: int, plan: Setup, first: int, runs: int) -> Ends:
    size = max(cpu.LANES, runs // workers)
    starts = range(first, first + runs, size)
    with ThreadPoolExecutor(workers) as pool:
        parts = pool.map(lambda start: cpu.simulate(plan, start, min(size, first + runs - start)), starts)
        return Ends.join(list(parts))


def _on_cpu(workers: int, task: Task, done: Callable[[int], Any] | None) -> Results:
    with ThreadPoolExecutor(workers) as pool:
        return _collect(task, pool.map(task.block, range(task.blocks())), done)


def _on_cuda(single: bool, task: Task, done: Callable[[int], Any] | None) -> Results:
    """Many blocks at once on the card; their sums are formed here, as on the CPU."""
    size = task.block_runs()
    at_once = max(1, cuda.launch_runs(len(task.plan.problem), len(task.plan.checkpoints)) // size)

    def blocks(pool: ThreadPoolExecutor) -> Iterator[list[list[Sums]]]:
        for first in range(0, task.runs, at_once * size):
            ends = cuda.simulate(task.plan, first, min(at_once * size, task.runs - first), single)
            yield from pool.map(task.sums, ends.split(size))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return _collect(task, blocks(pool), done)


def _itself(task: Task) -> Task:
    return task


def _on_dask(client: Any, task: Task, done: Callable[[int], Any] | None) -> Results:
    """The blocks on the client's workers; a block that is lost with its worker is done again by another."""
    # Not scattered: what is scattered is gone with the last worker that had it, a result is computed again.
    everywhere = client.submit(_itself, task, pure=False, retries=10)
    ahead = 4 * max(1, sum(client.nthreads().values()))

    def blocks() -> Iterator[list[list[Sums]]]:
        waiting: deque[Any] = deque()
        for b in range(task.blocks()):
            waiting.append(client.submit(Task.block, everywhere, b, pure=False, retries=10))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    return _collect(task, blocks(), done)


def _collect(task: Task, blocks: Iterable[list[list[Sums]]], done: Callable[[int], Any] | None) -> Results:
    """Add the blocks up in their order, and in batches: their means, with their runs in the last column."""
    checkpoints = range(len(task.plan.checkpoints))
    totals: list[Sums | None] = [None] * len(checkpoints)
    parts: list[list[Sums | None]] = [[None] * BATCHES for _ in checkpoints]
    runs = 0
    for block in blocks:
        for c in checkpoints:
            first = runs
            for sums in block[c]:
                batch = first * BATCHES // task.runs
                total, part = totals[c], parts[c][batch]
                totals[c] = sums if total is None else total + sums
                parts[c][batch] = sums if part is None else part + sums
                first += sums.count
        runs += sum(sums.count for sums in block[0])
        if done:
            done(runs)
    return [
        (total, np.array([[*part.mean, part.count] for part in parts[c] if part is not None]))
        for c, total in enumerate(totals)
        if total is not None
    ]
