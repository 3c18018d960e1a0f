"""
The paper's experiments again, with estimators that see what its figures show, and its claims held against them.

`measure` simulates what `Design` asks for and keeps each finished simulation in a folder; `tables` turns it into rows
of numbers, `claims` judges what the paper says by those rows alone, `figures` draws them.

References
----------
.. [1] A. Carpentier, A. Lazaric, M. Ghavamzadeh, R. Munos, P. Auer, A. Antos, Upper-Confidence-Bound Algorithms for
   Active Learning in Multi-Armed Bandits, Remark 3 and Sections 4.3, 5 and 6.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from equipoise import chart, theory
from equipoise.inputs import integer
from equipoise.lab import cpu
from equipoise.lab.setup import Ends, Setup
from equipoise.lab.simulation import PILOT, Curve, Simulation, simulate
from equipoise.problem import Bernoulli, Constant, Exponential, Gaussian, Law, Problem, Rademacher, Uniform
from equipoise.strategies import Strategy
from equipoise.strategies.auto import Auto
from equipoise.strategies.b_as import BAS
from equipoise.strategies.ch_as import CHAS
from equipoise.strategies.gafs_max import GAFSMAX

Row = dict[str, Any]
Tables = dict[str, list[Row]]
Numbers = dict[str, float]
Progress = Callable[[float, float, str], Any]

# The paper's own number of runs, whatever is simulated here.
PAPER_RUNS = 50_000
# What the paper leaves open, and the choice of the main panels.
EXPLORATIONS, ALPHAS = (0.25, 0.5, 1.0, 2.0), (0.5, 1.0, 2.0)
A, ALPHA = 0.5, 1.0

PAIR = Problem([Gaussian(0, 4), Gaussian(0, 1)])
QUIET = Problem([Bernoulli(0.5), Constant(0.5)])
BOUNDED = Problem([Bernoulli(0.5), Bernoulli(0.2)])
# Second arms of variance 1, beside N(0, 1/lambda_min - 1).
PARTNERS: dict[str, Law] = {
    "Gaussian": Gaussian(0, 1),
    "Rademacher": Rademacher(),
    "uniform": Uniform(-math.sqrt(3), math.sqrt(3)),
    "exponential": Exponential(1),
}


@dataclass(frozen=True)
class Design:
    """
    What is simulated: runs, budgets, and values of 1/lambda_min.

    Side questions take fewer runs: `few` at long budgets and beside a constant arm, where runs hardly differ, and `one`
    for its pulls at very long budgets.
    """

    runs: int = PAPER_RUNS
    seed: int = 1
    budgets: tuple[int, ...] = (50, 70, 100, 150, 200, 300, 500, 1000, 2000, 5000)
    ratios: tuple[int, ...] = (2, 5, 10, 20, 50, 100)
    n: int = 1000
    lemma: tuple[int, ...] = (50, 150, 500, 1000)
    quiet: tuple[int, ...] = (100, 300, 1000, 3000, 10_000)
    far: tuple[int, ...] = (30_000, 100_000, 300_000, 1_000_000)
    long: tuple[int, ...] = (1000, 3000, 10_000, 30_000)

    def __post_init__(self) -> None:
        integer("runs", self.runs, 100)

    @property
    def few(self) -> int:
        return max(100, self.runs // 25)

    @property
    def one(self) -> int:
        return cpu.LANES


@dataclass(frozen=True)
class Job:
    """One strategy on one problem, simulated along its budgets."""

    problem: Problem
    strategy: Strategy
    budgets: tuple[int, ...]
    runs: int
    estimator: str = "auto"

    def work(self) -> float:
        """How much there is to simulate, in pulls."""
        passes: dict[tuple[float, ...], int] = {}
        for n in self.budgets:
            passes[self.strategy.params(n, len(self.problem), None)] = n
        return float(sum(passes.values()) * (self.runs + (0 if self.estimator == "naive" else PILOT)))

    def measure(self, seed: int, tell: Callable[[float], Any]) -> Curve:
        curve: Curve = simulate(
            self.problem,
            [self.strategy],
            self.budgets,
            runs=self.runs,
            seed=seed,
            estimator=self.estimator,
            progress=lambda done, total: tell(done / total),
        )
        return curve

    def write(self, result: Curve, path: Path) -> None:
        result.save(path)

    def read(self, path: Path) -> Curve:
        curve = Curve.load(path)
        found = [(sim.problem, sim.strategy, sim.budget, sim.runs) for sim in curve]
        if found != [(self.problem, self.strategy, n, self.runs) for n in self.budgets]:
            raise ValueError(f"{path} holds another simulation")
        return curve


@dataclass(frozen=True)
class Look:
    """Numbers from where each single run of a strategy ended at a budget."""

    what: str
    problem: Problem
    strategy: Strategy
    budget: int
    runs: int

    def work(self) -> float:
        return float(self.budget * self.runs)

    def measure(self, seed: int, tell: Callable[[float], Any]) -> Numbers:
        plan = Setup(
            self.problem,
            self.strategy,
            (self.budget,),
            self.strategy.params(self.budget, len(self.problem), None),
            seed,
        )
        size = 1024
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            parts = list(
                pool.map(
                    lambda first: cpu.simulate(plan, first, min(size, self.runs - first)), range(0, self.runs, size)
                )
            )
        arrays = (
            np.concatenate([getattr(part, name) for part in parts], axis=2) for name in ("counts", "means", "m2s")
        )
        tell(1.0)
        return LOOKS[self.what](Ends(*arrays), self.problem, self.budget)

    def write(self, result: Numbers, path: Path) -> None:
        path.write_text(json.dumps({"format": "equipoise numbers 1", "look": repr(self), "numbers": result}))

    def read(self, path: Path) -> Numbers:
        kept = json.loads(path.read_text())
        if kept["format"] != "equipoise numbers 1" or kept["look"] != repr(self):
            raise ValueError(f"{path} holds other numbers")
        return {str(name): float(value) for name, value in kept["numbers"].items()}


def pulls(ends: Ends, problem: Problem, n: int) -> Numbers:
    """The fewest and the most pulls of the first two arms in any run."""
    first, second = ends.counts[0, 0], ends.counts[0, 1]
    return {
        "fewest 1": float(first.min()),
        "most 1": float(first.max()),
        "fewest 2": float(second.min()),
        "most 2": float(second.max()),
    }


def shape(ends: Ends, problem: Problem, n: int) -> Numbers:
    """
    The second arm's loss, and where it comes from.

    A run is starved if all samples of the arm agree at its end: the sample variance was 0 from the first pulls on. Then
    E[loss] - Sigma/n splits into starved runs and the others, and so does `gap`, loss - s²/T, whose mean is 0 by the
    Gaussian lemma if the arm is Gaussian.
    """
    T, mean, m2 = ends.counts[0, 1], ends.means[0, 1], ends.m2s[0, 1]
    s2, mu, best = float(problem.variances[1]), float(problem.means[1]), problem.optimal_loss(n)
    loss = (mean - mu) ** 2
    starved = m2 <= 1e-9 * s2
    sample = m2 / (T - 1)
    gap = loss - s2 / T
    numbers = {
        "starved": float(starved.mean()),
        "starved error": _error(starved.astype(float)),
        "starved pulls": float(T[starved].mean()) if starved.any() else math.nan,
        "mean 1/T": float((1 / T).mean()),
        "s2 mean 1/T": s2 * float((1 / T).mean()),
        "s2 mean 1/T error": s2 * _error(1 / T),
        # Exact for values -1 and 1 alone.
        "identity": float(np.abs(sample - T / (T - 1) * (s2 - loss)).max()),
        "correlation given T": _within(T, loss, sample),
        "correlation of T and loss": _correlation(T[~starved], loss[~starved]),
    }
    for name, values in {
        "excess": loss - best,
        "excess starved": np.where(starved, loss - best, 0.0),
        "excess others": np.where(starved, 0.0, loss - best),
        "gap": gap,
        "gap others": np.where(starved, 0.0, gap),
    }.items():
        numbers[name], numbers[f"{name} error"] = float(values.mean()), _error(values)
    return numbers


LOOKS: dict[str, Callable[[Ends, Problem, int], Numbers]] = {"pulls": pulls, "shape": shape}


def _error(values: Any) -> float:
    return float(values.std(ddof=1) / math.sqrt(values.size))


def _correlation(x: Any, y: Any) -> float:
    if x.size < 2 or x.std() == 0 or y.std() == 0:
        return math.nan
    return float(np.corrcoef(x, y)[0, 1])


def _within(T: Any, x: Any, y: Any) -> float:
    """The correlation of x and y given T: both less their means over the runs with the same T."""
    _, group = np.unique(T, return_inverse=True)
    size = np.bincount(group)
    x = x - (np.bincount(group, x) / size)[group]
    y = y - (np.bincount(group, y) / size)[group]
    return _correlation(x[size[group] > 1], y[size[group] > 1])


def pair(partner: str, ratio: float) -> Problem:
    """N(0, 1/lambda_min - 1) and an arm of variance 1."""
    return Problem([Gaussian(0, ratio - 1), PARTNERS[partner]])


def b_as(exploration: float) -> str:
    return f"B-AS, A = {exploration:g}"


def gafs_max(alpha: float) -> str:
    return f"GAFS-MAX, α = {alpha:g}"


AUTO = "auto (not in the paper)"


def jobs(design: Design) -> dict[tuple[Any, ...], Job | Look]:
    """All that is to be simulated, by what it is for."""
    d = design
    gaussian = theory.gaussian_constants(PAIR.variances)
    found: dict[tuple[Any, ...], Job | Look] = {("left", "CH-AS"): Job(PAIR, CHAS(), d.budgets, d.runs)}
    for each in EXPLORATIONS:
        found["left", b_as(each)] = Job(PAIR, BAS(exploration=each), d.budgets, d.runs)
    for each in ALPHAS:
        found["left", gafs_max(each)] = Job(PAIR, GAFSMAX(alpha=each), d.budgets, d.runs)
    found["left", AUTO] = Job(PAIR, Auto(), d.budgets, d.runs)
    for partner in PARTNERS:
        paper = partner in ("Gaussian", "Rademacher")
        for ratio in d.ratios:
            problem = pair(partner, ratio)
            for each in (0.5, 1.0, 2.0) if paper else (1.0,):
                found["share", partner, ratio, b_as(each)] = Job(problem, BAS(exploration=each), (d.n,), d.runs)
            found["share", partner, ratio, AUTO] = Job(problem, Auto(), (d.n,), d.runs)
            if ratio in (5, 20) or (ratio == 100 and partner == "Gaussian"):
                found["long", partner, ratio] = Job(problem, Auto(), d.long, d.few)
            if paper and ratio > 2:
                for each in (A, 1.0):
                    found["shape", partner, ratio, each] = Look("shape", problem, BAS(exploration=each), d.n, d.runs)
    named: dict[str, Strategy] = {
        "CH-AS": CHAS(),
        b_as(A): BAS(exploration=A),
        gafs_max(ALPHA): GAFSMAX(alpha=ALPHA),
    }
    for name in ("CH-AS", gafs_max(ALPHA)):
        found["quiet", name] = Job(QUIET, named[name], d.quiet, d.few, "controls")
        found["far", name] = Job(QUIET, named[name], d.far, d.one, "naive")
    for name in (b_as(A), gafs_max(ALPHA)):
        for estimator in ("controls", "gaussian"):
            found["lemma", name, estimator] = Job(PAIR, named[name], d.lemma, d.runs, estimator)
    bernstein = BAS(c1=gaussian[0], c2=gaussian[1])
    found["bound", "CH-AS"] = Job(BOUNDED, CHAS(), (d.n,), d.runs)
    found["bound", "B-AS"] = Job(PAIR, bernstein, (d.n,), d.runs)
    found["pulls", "CH-AS"] = Look("pulls", BOUNDED, CHAS(), d.n, d.runs)
    found["pulls", "B-AS"] = Look("pulls", PAIR, bernstein, d.n, d.runs)
    return found


def measure(design: Design, folder: Path, progress: Progress | None = None) -> dict[tuple[Any, ...], Any]:
    """
    Simulate what is not in the folder yet; each finished simulation is a file there.

    A file that cannot be read, or holds something else than its name says, is made again. Nothing is lost when this is
    interrupted but the simulation at work.
    """
    folder.mkdir(parents=True, exist_ok=True)
    todo = jobs(design)
    results: dict[tuple[Any, ...], Any] = {}
    for key, job in todo.items():
        try:
            results[key] = job.read(_file(folder, job, design.seed))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    left = {key: job for key, job in todo.items() if key not in results}
    total, done = sum(job.work() for job in left.values()), 0.0
    for key, job in left.items():
        what = ", ".join(map(str, key))

        def tell(share: float, done: float = done, work: float = job.work(), what: str = what) -> None:
            if progress:
                progress(done + share * work, total, what)

        tell(0.0)
        result: Any = job.measure(design.seed, tell)
        path = _file(folder, job, design.seed)
        part = path.with_suffix(".part")
        job.write(result, part)
        os.replace(part, path)
        results[key] = result
        done += job.work()
        tell(0.0, done)
    return {key: results[key] for key in todo}


def _file(folder: Path, job: Job | Look, seed: int) -> Path:
    version = sys.modules["equipoise"].__version__
    return folder / f"{hashlib.sha256(repr((job, seed, version)).encode()).hexdigest()[:24]}.json"


def paper_error(Sigma: float, n: float) -> float:
    """The standard error of the paper's rescaled regret: an average of squared errors over its 50,000 runs."""
    return math.sqrt(2) * Sigma * math.sqrt(n / PAPER_RUNS)


def first_order(problem: Problem, exploration: float) -> float:
    """
    What the rescaled regret of B-AS with a fixed A tends to, to first order: 4 A sqrt(Sigma) (K - 1/lambda_max).

    Its indices s²/T + 4As/T^{3/2} are equal when arm k has the loss Sigma/n + 4A sqrt(Sigma) (K - 1/lambda_k) n^{-3/2}.
    """
    return 4 * exploration * math.sqrt(problem.Sigma) * (len(problem) - 1 / float(problem.lambdas.max()))


def tables(design: Design, results: Mapping[tuple[Any, ...], Any]) -> Tables:
    """Everything measured, as rows of plain numbers."""
    made: Tables = {"left": [], "right": [], "long": [], "shape": [], "remark3": [], "lemma": [], "bounds": []}
    for key, result in results.items():
        match key:
            case ("left", name):
                made["left"] += [_regret_row(sim, strategy=name) for sim in result]
            case ("share", partner, ratio, name):
                row = _regret_row(result[0], partner=partner, ratio=ratio, strategy=name)
                exploration = getattr(result[0].strategy, "exploration", None)
                row["first_order"] = first_order(result[0].problem, exploration) if exploration else math.nan
                made["right"].append(row)
            case ("long", partner, ratio):
                made["long"] += [_long_row(sim, partner, ratio) for sim in result]
            case ("shape", partner, ratio, exploration):
                made["shape"].append({"partner": partner, "ratio": ratio, "exploration": exploration} | result)
            case ("quiet" | "far", name):
                made["remark3"] += [_quiet_row(sim, name, key[0] == "quiet") for sim in result]
    made["remark3"].sort(key=lambda row: (row["strategy"], row["n"]))
    for one, other in pairwise(made["remark3"]):
        if one["strategy"] == other["strategy"]:
            other["pulls_exponent"] = _exponent(one, other, "pulls")
            other["regret_exponent"] = _exponent(one, other, "regret")
    for name in (b_as(A), gafs_max(ALPHA)):
        made["lemma"] += _lemma_rows(name, results["lemma", name, "controls"], results["lemma", name, "gaussian"])
    for row in made["shape"]:
        if row["partner"] == "Rademacher":
            made["lemma"].append(_rademacher_row(design, row, results))
    made["bounds"] = _bound_rows(design, results)
    return made


def _regret_row(sim: Simulation, **keys: Any) -> Row:
    return keys | {
        "n": sim.budget,
        "runs": sim.runs,
        "rescaled_regret": sim.rescaled_regret,
        "rescaled_error": sim.rescaled_error,
        "regret": sim.regret,
        "regret_error": sim.regret_error,
        "excess_percent": sim.excess,
        "worst_arm": sim.worst + 1,
        "pulls_2": float(sim.mean_pulls[1]),
        "paper_error": paper_error(sim.problem.Sigma, sim.budget),
    }


def _long_row(sim: Simulation, partner: str, ratio: float) -> Row:
    scale = sim.budget**2 / sim.problem.Sigma
    return {
        "partner": partner,
        "ratio": ratio,
        "n": sim.budget,
        "runs": sim.runs,
        "best_pulls_2": sim.budget / ratio,
        "n2_regret_over_Sigma": scale * sim.regret,
        "error": scale * sim.regret_error,
        "excess_percent": sim.excess,
    }


def _quiet_row(sim: Simulation, name: str, with_regret: bool) -> Row:
    n = sim.budget
    chas = name == "CH-AS"
    error = math.sqrt(float(sim._sums.m2[3]) / (sim.runs - 1) / sim.runs)
    return {
        "strategy": name,
        "n": n,
        "runs": sim.runs,
        "pulls": float(sim.mean_pulls[1]),
        "pulls_error": error,
        "balance": theory.remark3_pulls(n) if chas else theory.remark3_gafs_max_pulls(n, ALPHA),
        "leading": theory.remark3_leading(n) if chas else ALPHA * math.sqrt(n),
        "pulls_exponent": math.nan,
        "regret": sim.regret if with_regret else math.nan,
        "regret_error": sim.regret_error if with_regret else math.nan,
        "balance_regret": theory.remark3_regret(n) if chas else 0.25 / (n - ALPHA * math.sqrt(n) - 1) - 0.25 / n,
        "regret_exponent": math.nan,
    }


def _exponent(one: Row, other: Row, name: str, of: str = "n") -> float:
    """The power of n, or of another column, between two rows."""
    if not (one[name] > 0 and other[name] > 0 and other[of] > one[of]):
        return math.nan
    return math.log(other[name] / one[name]) / math.log(other[of] / one[of])


def _lemma_rows(name: str, free: Curve, lemma: Curve) -> list[Row]:
    rows = []
    for one, other in zip(free, lemma, strict=True):
        difference = one - other
        for k in range(2):
            rows.append(
                {
                    "strategy": name,
                    "arm": f"N(0, {PAIR.variances[k]:g})",
                    "n": one.budget,
                    "loss": float(one.losses[k]),
                    "loss_error": float(one.loss_errors[k]),
                    "s2_mean_1_over_T": float(other.losses[k]),
                    "difference": float(difference.losses[k]),
                    # Fewer than two batches have no spread; the errors then add up.
                    "difference_error": float(difference.loss_errors[k])
                    if len(one._batches) > 1
                    else float(one.loss_errors[k] + other.loss_errors[k]),
                }
            )
    return rows


def _rademacher_row(design: Design, row: Row, results: Mapping[tuple[Any, ...], Any]) -> Row:
    sim = results["share", "Rademacher", row["ratio"], b_as(row["exploration"])][0]
    loss, error = float(sim.losses[1]), float(sim.loss_errors[1])
    return {
        "strategy": b_as(row["exploration"]),
        "arm": f"Rademacher, 1/λ_min = {row['ratio']}",
        "n": design.n,
        "loss": loss,
        "loss_error": error,
        "s2_mean_1_over_T": row["s2 mean 1/T"],
        "difference": loss - row["s2 mean 1/T"],
        "difference_error": math.hypot(error, row["s2 mean 1/T error"]),
    }


def _bound_rows(design: Design, results: Mapping[tuple[Any, ...], Any]) -> list[Row]:
    n = design.n
    hoeffding, bernstein = results["bound", "CH-AS"][0], results["bound", "B-AS"][0]
    of_ch, of_b = results["pulls", "CH-AS"], results["pulls", "B-AS"]
    c1, c2 = theory.gaussian_constants(PAIR.variances)
    ch = f"Bernoulli 0.5 and 0.2; n = {n}"
    b = f"N(0, 4), N(0, 1), c1 = {c1:g}, c2 = {c2:g}; n = {n}"
    low1, high1 = theory.lemma1_bounds(BOUNDED.variances, n, float(n) ** -2.5)
    low2, high2 = theory.lemma2_bounds(PAIR.variances, n, float(n) ** -3.5, c1, c2)
    least = theory.lemma2_least_pulls(PAIR.variances, n, float(n) ** -3.5, c1, c2)
    few = min(of_b["fewest 1"], of_b["fewest 2"])
    rows = [
        ("Lemma 1, fewest pulls of arm 1", ch, ">=", of_ch["fewest 1"], 0.0, low1[0]),
        ("Lemma 1, most pulls of arm 2", ch, "<=", of_ch["most 2"], 0.0, high1[1]),
        ("Theorem 1, regret of CH-AS", ch, "<=", *_regret(hoeffding), theory.theorem1(BOUNDED.variances, n)),
        ("Lemma 2, fewest pulls of arm 1", b, ">=", of_b["fewest 1"], 0.0, low2[0]),
        ("Lemma 2, most pulls of arm 2", b, "<=", of_b["most 2"], 0.0, high2[1]),
        ("Lemma 2, fewest pulls of any arm", b, ">=", few, 0.0, least),
        ("Theorem 2, regret of B-AS", b, "<=", *_regret(bernstein), theory.theorem2(PAIR.variances, n, c1, c2)),
        ("Theorem 3, regret of B-AS", b, "<=", *_regret(bernstein), theory.theorem3(PAIR.Sigma, n, 2)),
    ]
    return [
        {
            "statement": statement,
            "setting": setting,
            "runs": design.runs,
            "measured": measured,
            "error": error,
            "relation": relation,
            "stated": float(stated),
            "holds": bool(measured <= stated + 5 * error if relation == "<=" else measured >= stated - 5 * error),
        }
        for statement, setting, relation, measured, error, stated in rows
    ]


def _regret(sim: Simulation) -> tuple[float, float]:
    return sim.regret, sim.regret_error


@dataclass(frozen=True)
class Claim:
    """What the paper says, how that is judged here, what was measured, and whether it holds."""

    where: str
    claim: str
    rule: str
    measured: str
    holds: bool
    why: str

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("where", "claim", "rule", "measured", "holds", "why")}


# Largest over smallest, up to which a curve is called almost constant.
FLAT = 1.25


def claims(made: Tables) -> list[Claim]:
    """The paper's claims, judged by the tables alone."""
    return [*_left_claims(made), *_right_claims(made), *_quiet_claims(made), *_lemma_claims(made), *_bound_claims(made)]


def _left_claims(made: Tables) -> list[Claim]:
    where = "Section 5.1, left figure"
    curves = {name: _of(made["left"], strategy=name) for name in dict.fromkeys(row["strategy"] for row in made["left"])}
    ch, b, gafs = curves["CH-AS"], curves[b_as(A)], curves[gafs_max(ALPHA)]
    rises = all(other["rescaled_regret"] > one["rescaled_regret"] for one, other in pairwise(ch))
    found = [
        Claim(
            where,
            "The rescaled regret of CH-AS increases with n.",
            "It is larger at every n than at the one before.",
            f"{_at(ch[0])}, {_at(ch[-1])}",
            rises,
            "" if rises else "It falls somewhere on the grid.",
        )
    ]
    for name, curve, others in (
        ("B-AS", b, {f"A = {a:g}": curves[b_as(a)] for a in EXPLORATIONS if a != A}),
        ("GAFS-MAX", gafs, {f"α = {a:g}": curves[gafs_max(a)] for a in ALPHAS if a != ALPHA}),
    ):
        low, high = _extremes(curve)
        flat = high["rescaled_regret"] <= FLAT * low["rescaled_regret"]
        rest = "; ".join(f"{label}: a ratio of {_ratio(rows):.3g}" for label, rows in others.items())
        found.append(
            Claim(
                where,
                f"The rescaled regret of {name} is almost constant in n.",
                f"The largest is at most {FLAT} times the smallest.",
                f"from {_at(low)} to {_at(high)}, a ratio of {_ratio(curve):.3g} ({rest})",
                flat,
                "" if flat else _not_flat(low, high, b),
            )
        )
    distance = [(row["rescaled_regret"] - first_order(PAIR, A), row["rescaled_error"]) for row in b if row["n"] >= 100]
    closer = all(abs(y) < abs(x) + 5 * e for (x, _), (y, e) in pairwise(distance))
    level = closer and abs(distance[-1][0]) < 0.05 * first_order(PAIR, A)
    found.append(
        Claim(
            where,
            "B-AS shows no further dependence on log n.",
            "From n = 100 on it comes closer, at every n, to its limit 4A sqrt(Σ) (K - 1/λ_max), and within 5% of it.",
            f"{_at(b[-1])}; the limit is {first_order(PAIR, A):.4g}",
            level,
            "" if level else "It does not settle at the limit.",
        )
    )
    far = [
        (g, abs(g["rescaled_regret"] - row["rescaled_regret"]) / row["paper_error"])
        for g, row in zip(gafs, b, strict=True)
    ]
    apart = [g["n"] for g, sigmas in far if sigmas > 2]
    worst, sigmas = max(far, key=lambda each: each[1])
    same = _of(b, n=worst["n"])[0]
    found.append(
        Claim(
            where,
            "GAFS-MAX is very close to B-AS.",
            "At every n they differ by at most two standard errors of the paper's estimator.",
            f"GAFS-MAX has {_at(worst)}, B-AS {_at(same)}: {sigmas:.3g} of those errors apart",
            not apart,
            ""
            if not apart
            else f"They are told apart at n = {', '.join(f'{n:,}' for n in apart)}; elsewhere the paper's estimator "
            "could not do so.",
        )
    )
    return found


def _not_flat(low: Row, high: Row, b: Sequence[Row]) -> str:
    """Why a curve is not flat, and whether the paper's estimator could have shown it."""
    texts = []
    if "GAFS" in high["strategy"]:
        texts.append(
            f"It peaks near n = {high['n']:,}, where arm {high['worst_arm']} is the worst: an arm whose sample "
            "variance is too small by chance is left with too few pulls. At small n the forced pulls prevent that, at "
            "large n the variance is known well."
        )
    height = high["rescaled_regret"] - _of(b, n=high["n"])[0]["rescaled_regret"]
    texts.append(
        f"The paper's estimator had a standard error of {high['paper_error']:.2g} at n = {high['n']:,} and "
        f"{b[-1]['paper_error']:.2g} at n = {b[-1]['n']:,}: "
        + (
            "the peak would show on a grid of n that has points there; the fall after it would not."
            if abs(height) > 3 * high["paper_error"]
            else "too much to see it."
        )
    )
    return " ".join(texts)


def _right_claims(made: Tables) -> list[Claim]:
    where = "Section 5.2, right figure"
    gaussian = _of(made["right"], partner="Gaussian", strategy=b_as(A))
    rademacher = _of(made["right"], partner="Rademacher", strategy=b_as(A))
    unequal = [row for row in gaussian if row["ratio"] > 2]
    flat = _ratio(unequal) <= FLAT
    last = unequal[-1]
    power = _exponent(unequal[0], last, "rescaled_regret", "ratio")
    found = [
        Claim(
            where,
            "For two Gaussian arms the rescaled regret of B-AS does not depend on 1/λ_min.",
            f"The largest is at most {FLAT} times the smallest, over 1/λ_min > 2.",
            f"{_share(unequal[0])}, {_share(last)}: a power of {power:.2f} of 1/λ_min",
            flat,
            ""
            if flat
            else "It grows about as 4A sqrt(Σ), and Σ = 1/λ_min here; Theorem 3's bound, which is free of λ_min, has Σ "
            f"as a factor. The paper's estimator, with 50,000 runs, had a standard error of "
            f"{last['paper_error']:.2g} at {last['ratio']}: the growth was out of its sight.",
        )
    ]
    rises = all(other["rescaled_regret"] > one["rescaled_regret"] for one, other in pairwise(rademacher))
    above = rademacher[-1]["rescaled_regret"] - gaussian[-1]["rescaled_regret"]
    above_error = math.hypot(rademacher[-1]["rescaled_error"], gaussian[-1]["rescaled_error"])
    holds = rises and above > 5 * above_error
    found.append(
        Claim(
            where,
            "For a Gaussian and a Rademacher arm it increases with 1/λ_min.",
            "It is larger at every 1/λ_min than at the one before, and at the last above that of two Gaussian arms.",
            f"{_share(rademacher[1])}, {_share(rademacher[-1])}; two Gaussian arms: {_share(gaussian[-1])}",
            holds,
            "" if holds else "It does not rise throughout.",
        )
    )
    worst = max(_of(made["shape"], partner="Rademacher", exploration=A), key=lambda row: row["gap"])
    others, error = worst["gap others"] / worst["gap"], worst["gap others error"] / worst["gap"]
    mechanism = others > 0.5
    found.append(
        Claim(
            where,
            "The increase comes from pulling the Rademacher arm more when its mean is accurate.",
            "Where the arm's loss is furthest above s² E[1/T], more than half of that is due to runs that are not "
            "starved.",
            f"1/λ_min = {worst['ratio']}: {100 * others:.1f}% ± {100 * error:.1f}% of it; "
            f"{100 * worst['starved']:.1f}% of the runs are starved, with {worst['starved pulls']:.1f} pulls where n "
            f"λ_min is {_best_pulls(made, worst):g}",
            mechanism,
            ""
            if mechanism
            else "It is starvation: the first j draws agree with probability 2^(1-j), the sample variance is then 0, "
            "and the arm is left alone until T is about 2A sqrt(n/Σ).",
        )
    )
    identity = [row for row in made["shape"] if row["partner"] == "Rademacher"]
    control = [row for row in made["shape"] if row["partner"] == "Gaussian"]
    negative = all(row["identity"] < 1e-9 and row["correlation given T"] < -0.9 for row in identity)
    nothing = max(abs(row["correlation given T"]) for row in control)
    found.append(
        Claim(
            "Section 5.2",
            "Given T, the squared error of a Rademacher arm's mean and its sample variance are negatively correlated.",
            "The sample variance is T/(T-1) (1 - mean²) in every run, and their correlation given T is below -0.9.",
            f"correlation given T: {max(row['correlation given T'] for row in identity):.3f} or less; on Gaussian "
            f"arms at most {nothing:.3f} either way",
            negative,
            "" if negative else "The identity fails.",
        )
    )
    fed = [row["ratio"] for row in _of(made["shape"], partner="Rademacher", exploration=1.0) if row["starved"] < 1e-3]
    one, other = (
        _of(made["right"], partner=name, strategy=b_as(1.0), ratio=fed[-1])[0] for name in ("Gaussian", "Rademacher")
    )
    gap = other["rescaled_regret"] - one["rescaled_regret"]
    gap_error = math.hypot(one["rescaled_error"], other["rescaled_error"])
    shaped = abs(gap) > 5 * gap_error
    found.append(
        Claim(
            where,
            "The shape of the laws matters, and not their variances alone.",
            "With A = 1, where fewer than one run in 1,000 is starved, the two second arms differ by over five errors.",
            f"1/λ_min = {one['ratio']}: {plus_minus(gap, gap_error)} more with the Rademacher arm, "
            f"{100 * gap / one['rescaled_regret']:.1f}%",
            shaped,
            "" if shaped else "The two do not differ by more than their errors.",
        )
    )
    ratios = []
    for one in _of(made["right"], partner="Gaussian", strategy=AUTO):
        for row in _of(made["right"], ratio=one["ratio"], strategy=AUTO):
            if one["ratio"] > 2 and one["rescaled_regret"] > 0:
                ratios.append((row["rescaled_regret"] / one["rescaled_regret"], row, one))
    most = max(ratios, key=lambda each: each[0])
    of_rademacher = max(ratio for ratio, row, _ in ratios if row["partner"] == "Rademacher")
    same = most[0] > FLAT
    found.append(
        Claim(
            "Section 5.2",
            "Any algorithm that is based on empirical standard deviations is subject to the same problem.",
            f"So is auto, which is: for some second arm and some 1/λ_min > 2 it has over {FLAT} times the Gaussian "
            "arm's.",
            f"auto with an {most[1]['partner']} arm has {_share(most[1])}, with a Gaussian one {_share(most[2])}: "
            f"{most[0]:.3g} times; with a Rademacher arm at most {of_rademacher:.3g} times",
            same,
            ""
            if same
            else "auto shrinks a young variance towards the mean of all, so that a small one is not believed.",
        )
    )
    return found


def _best_pulls(made: Tables, row: Row) -> float:
    return float(made["right"][0]["n"] / row["ratio"])


def _quiet_claims(made: Tables) -> list[Claim]:
    where = "Remark 3"
    ch, gafs = _of(made["remark3"], strategy="CH-AS"), _of(made["remark3"], strategy=gafs_max(ALPHA))
    exact = max(abs(row["pulls"] - row["balance"]) - 5 * row["pulls_error"] for row in ch)
    share = [row["pulls"] / row["n"] ** (2 / 3) for row in ch]
    enough = all(y >= x for x, y in pairwise(share)) and exact <= 1
    limit = _limit(theory.remark3_pulls)
    found = [
        Claim(
            where,
            "CH-AS pulls an arm of zero variance at least D n^(2/3) times.",
            "Pulls over n^(2/3) do not fall as n grows, and are within a pull of the balance of the two indices.",
            f"exponents {_exponents(ch, 'pulls_exponent')}; pulls are within {max(0.0, exact):.2f} of the balance, "
            f"whose exponent, less the part of log n, is {limit:.3f} at n = 10^15",
            enough,
            "" if enough else "The pulls are not those of the balance.",
        )
    ]
    known = [row for row in ch if math.isfinite(row["regret"])]
    off = max(abs(row["regret"] / row["balance_regret"] - 1) - 5 * row["regret_error"] / row["regret"] for row in known)
    rate = _limit(theory.remark3_regret)
    slow = off <= 0.02 and abs(rate + 4 / 3) < 0.02
    found.append(
        Claim(
            where,
            "The regret of CH-AS then has the rate n^(-4/3).",
            "The regret is within 2% of what the balance of the indices gives, whose exponent is -4/3 in the end.",
            f"exponents {_exponents(known, 'regret_exponent')}; within {100 * max(0.0, off):.1f}% of the balance, "
            f"whose exponent, less the part of log n, is {rate:.3f} at n = 10^15",
            slow,
            "" if slow else "The regret is not that of the balance.",
        )
    )
    apart = max(abs(row["pulls"] - row["balance"]) for row in gafs)
    root = abs(gafs[-1]["pulls_exponent"] - 0.5) < 0.02 and apart <= 1
    found.append(
        Claim(
            where,
            "GAFS-MAX over-pulls it by n^(1/2) only.",
            "Its pulls are α sqrt(n) + 1 to within one, with an exponent of 1/2.",
            f"exponents {_exponents(gafs, 'pulls_exponent')}; within {apart:.2f} of α sqrt(n) + 1",
            root,
            "" if root else "Its pulls grow otherwise.",
        )
    )
    known = [row for row in gafs if math.isfinite(row["regret"])]
    fast = abs(known[-1]["regret_exponent"] + 1.5) < 0.05
    found.append(
        Claim(
            where,
            "The regret of GAFS-MAX then has the rate n^(-3/2).",
            "The exponent between the last two n is within 0.05 of -3/2.",
            f"exponents {_exponents(known, 'regret_exponent')}",
            fast,
            "" if fast else "The exponent is another.",
        )
    )
    return found


def _limit(of: Callable[[float], float], n: float = 1e15) -> float:
    """The power of n at a very large n, less what the logarithm in delta = n^{-5/2} adds: 1/(3 log n)."""
    return math.log(of(10 * n) / of(n)) / math.log(10) - 1 / (3 * math.log(n))


def _lemma_claims(made: Tables) -> list[Claim]:
    gaussian = [row for row in made["lemma"] if row["arm"].startswith("N")]
    other = [row for row in made["lemma"] if not row["arm"].startswith("N")]
    sigmas = [abs(row["difference"]) / row["difference_error"] for row in gaussian if row["difference_error"] > 0]
    widest = max(row["difference_error"] / row["loss"] for row in gaussian)
    holds = max(sigmas) <= 5
    found = [
        Claim(
            "Lemma 3",
            "The loss of a Gaussian arm is s² E[1/T], although T depends on the samples.",
            "The loss, estimated without the lemma, is within five errors of it, for each arm, strategy and n.",
            f"at most {max(sigmas):.2g} errors apart in {len(sigmas)} cases, and an error is at most "
            f"{100 * widest:.2g}% of the loss",
            holds,
            "" if holds else "They differ.",
        )
    ]
    if other:
        row = max(other, key=lambda each: abs(each["difference"]) / each["difference_error"])
        fails = abs(row["difference"]) > 5 * row["difference_error"]
        found.append(
            Claim(
                "Section 5.2",
                "It does not carry over to a Rademacher arm.",
                "Its loss differs from s² E[1/T] by more than five errors somewhere.",
                f"{row['arm']}, {row['strategy']}: loss {plus_minus(row['loss'], row['loss_error'])}, s² E[1/T] "
                f"{row['s2_mean_1_over_T']:.4g}",
                fails,
                "" if fails else "No difference is seen.",
            )
        )
    return found


BOUNDS = {
    "Lemma 1": "Bounds on the pulls of CH-AS.",
    "Theorem 1": "A bound on the regret of CH-AS, with λ_min^(-5/2).",
    "Lemma 2": "Bounds on the pulls of B-AS.",
    "Theorem 2": "A bound on the regret of B-AS, with 1/λ_min.",
    "Theorem 3": "A bound on the regret of B-AS on Gaussian arms, without λ_min.",
}


def _bound_claims(made: Tables) -> list[Claim]:
    found = []
    for name, claim in BOUNDS.items():
        rows = [row for row in made["bounds"] if row["statement"].startswith(name)]
        holds = all(row["holds"] for row in rows)
        n = made["right"][0]["n"]
        texts = []
        for row in rows:
            what = row["statement"].partition(", ")[2]
            trivial = name.startswith("Lemma") and not 0 < row["stated"] < n
            texts.append(
                f"{what} {plus_minus(row['measured'], row['error'])}, bound {row['stated']:.3g}"
                + (" (says nothing yet)" if trivial else "")
            )
        found.append(
            Claim(
                name,
                claim,
                "No run is outside." if name.startswith("Lemma") else "The regret is at most the bound.",
                f"n = {n:,}: {'; '.join(texts)}",
                holds,
                "" if holds else "A bound is broken.",
            )
        )
    return found


def _of(rows: Iterable[Row], **keys: Any) -> list[Row]:
    return [row for row in rows if all(row[name] == value for name, value in keys.items())]


def _extremes(rows: Sequence[Row]) -> tuple[Row, Row]:
    return min(rows, key=lambda row: row["rescaled_regret"]), max(rows, key=lambda row: row["rescaled_regret"])


def _ratio(rows: Sequence[Row]) -> float:
    low, high = _extremes(rows)
    return high["rescaled_regret"] / low["rescaled_regret"] if low["rescaled_regret"] > 0 else math.inf


def _at(row: Row) -> str:
    return f"{plus_minus(row['rescaled_regret'], row['rescaled_error'])} at n = {row['n']:,}"


def _share(row: Row) -> str:
    return f"{plus_minus(row['rescaled_regret'], row['rescaled_error'])} at {row['ratio']}"


def _exponents(rows: Sequence[Row], name: str) -> str:
    known = [row for row in rows if math.isfinite(row[name])]
    return f"{known[0][name]:.3f} up to n = {known[0]['n']:,}, {known[-1][name]:.3f} up to n = {known[-1]['n']:,}"


def plus_minus(value: float, error: float) -> str:
    """A number with its standard error, to the error's first digit."""
    if not (error > 0 and math.isfinite(error)):
        return f"{value:.6g}"
    if abs(value) < 1e-3:
        return f"{value:.3g} ± {error:.1g}"
    digits = max(0, -math.floor(math.log10(error)))
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def figures(made: Tables) -> dict[str, Any]:
    """The figures, as Altair charts."""
    left = made["left"]
    main = [row for row in left if row["strategy"] in ("CH-AS", b_as(A), gafs_max(ALPHA), AUTO)]
    noise = [
        {
            "n": row["n"],
            "low": row["rescaled_regret"] - row["paper_error"],
            "high": row["rescaled_regret"] + row["paper_error"],
        }
        for row in _of(left, strategy=b_as(A))
    ]
    text = "Grey: B-AS ± one standard error of the paper's estimator, 50,000 runs"
    top = _ceiling(row["rescaled_regret"] for row in left)
    small: dict[str, Any] = {
        "x": "n",
        "y": "rescaled_regret",
        "error": "rescaled_error",
        "y_domain": (0.0, top),
        "width": 250,
    }
    titles = ("budget n", REGRET)
    panels = [
        chart.lines(
            [row for row in left if row["strategy"].startswith(start)], titles=titles, title=title, height=210, **small
        )
        for start, title in (("B-AS", "B-AS: A is open"), ("GAFS", "GAFS-MAX: α is open"))
    ]
    title = f"N(0, 4) and N(0, 1): A = {A:g} and α = {ALPHA:g} are chosen here"
    first = chart.regret(main, title=title, noise=noise, noise_text=text, width=570, height=300)
    found = {"left": chart.beside([first, chart.beside(panels)], below=True)}
    found["right"] = _right_figure(made)
    found["remark3"] = _quiet_figure(made)
    found["open"] = _open_figure(made)
    return found


REGRET = "rescaled regret, n^(3/2) R"
PAPER_LINE = "one standard error of the paper's estimator, 50,000 runs"
LIMIT_LINE = "first order, 4A sqrt(Σ) (K - 1/λ_max)"


def _right_figure(made: Tables) -> Any:
    panels = []
    for exploration in (0.5, 1.0, 2.0):
        rows = []
        for partner in ("Gaussian", "Rademacher"):
            for row in _of(made["right"], partner=partner, strategy=b_as(exploration)):
                rows.append(row | {"line": f"N(0, σ²) and {'N(0, 1)' if partner == 'Gaussian' else 'Rademacher'}"})
        for row in _of(made["right"], partner="Gaussian", strategy=b_as(exploration)):
            rows.append({"ratio": row["ratio"], "rescaled_regret": row["paper_error"], "line": PAPER_LINE})
        for row in _of(made["right"], partner="Gaussian", strategy=b_as(exploration)):
            rows.append({"ratio": row["ratio"], "rescaled_regret": row["first_order"], "line": LIMIT_LINE})
        panels.append((exploration, rows))
    domain = _decades(row["rescaled_regret"] for _, rows in panels for row in rows)
    return chart.beside(
        [
            chart.lines(
                [row for row in rows if row["rescaled_regret"] > 0],
                x="ratio",
                y="rescaled_regret",
                error="rescaled_error",
                series="line",
                dashed=(PAPER_LINE, LIMIT_LINE),
                titles=("1/λ_min", REGRET if exploration == 0.5 else ""),
                title=f"B-AS, A = {exploration:g}",
                log_y=True,
                y_domain=domain,
                width=215,
                height=260,
            )
            for exploration, rows in panels
        ],
        one_legend=True,
    )


def _quiet_figure(made: Tables) -> Any:
    rows = []
    for row in made["remark3"]:
        rows.append({"n": row["n"], "pulls": row["pulls"], "line": row["strategy"]})
    lines = {"CH-AS": "balance of the two indices", gafs_max(ALPHA): "α sqrt(n) + 1"}
    for row in made["remark3"]:
        rows.append({"n": row["n"], "pulls": row["balance"], "line": lines[row["strategy"]]})
    ch = _of(made["remark3"], strategy="CH-AS")
    for row in ch:
        scale = ch[-1]["pulls"] / ch[-1]["n"] ** (2 / 3)
        rows.append({"n": row["n"], "pulls": scale * row["n"] ** (2 / 3), "line": "slope 2/3"})
    return chart.lines(
        rows,
        x="n",
        y="pulls",
        series="line",
        dashed=(*lines.values(), "slope 2/3"),
        titles=("budget n", "pulls of the constant arm"),
        title="Bernoulli(0.5) and a constant arm",
        log_y=True,
        joined=False,
        width=480,
        height=300,
    )


def _open_figure(made: Tables) -> Any:
    rows = [row for row in made["right"] if row["rescaled_regret"] > 0 and row["strategy"] in (b_as(1.0), AUTO)]
    domain = _decades(row["rescaled_regret"] for row in rows)
    return chart.beside(
        [
            chart.lines(
                _of(rows, strategy=name),
                x="ratio",
                y="rescaled_regret",
                error="rescaled_error",
                series="partner",
                titles=("1/λ_min", REGRET),
                title=name,
                log_y=True,
                y_domain=domain,
                width=260,
                height=260,
            )
            for name in (b_as(1.0), AUTO)
        ],
        one_legend=True,
    )


def _decades(values: Iterable[float]) -> tuple[float, float]:
    """A logarithmic axis for the positive ones, from and to 1, 2 or 5 times a power of ten."""
    logs = [math.log10(value) for value in values if value > 0]
    steps = [math.log10(s) + e for e in range(-9, 12) for s in (1, 2, 5)]
    return 10 ** max(s for s in steps if s <= min(logs)), 10 ** min(s for s in steps if s >= max(logs))


def _ceiling(values: Iterable[float]) -> float:
    top = max(values)
    step = 10 ** math.floor(math.log10(top)) / 2
    return step * math.ceil(top / step)
