"""
Simulate what a design asks for, and keep each finished simulation in a file.

A file is named by a hash of the question and of the code that answers it (`file_name`): the kernel, which includes the
strategy's functions, and the estimators. So a changed strategy never meets old numbers.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.base.tables import json_ready
from equipoise.compiled import fingerprint
from equipoise.engine import cpu, streams
from equipoise.engine.setup import Ends, Setup
from equipoise.lab.paper.design import CurveJob, Job, Key, PaperDesign, jobs
from equipoise.problem import Problem
from equipoise.simulation import blocks, engines, estimators
from equipoise.simulation.results import Curve
from equipoise.simulation.simulator import setups, simulate_budgets
from equipoise.strategies import serialise

Numbers = dict[str, float]
# Called with the work done so far, all the work, and the name of the simulation at work.
Progress = Callable[[float, float, str], Any]
# What `measure_all` returns: a Curve or Numbers for each job of a design.
Results = dict[Key, Any]

_FORMAT = "equipoise numbers 2"
# Blocks of runs that are summed up at once: they fit into cache, and calls of NumPy are few.
AT_ONCE = 8
# The multiples of the controls are fitted on at most so many runs.
FITTED = 2 * blocks.PILOT


def measure_all(design: PaperDesign, folder: Path, progress: Progress | None = None) -> Results:
    """
    Simulate what is not in the folder yet; each finished simulation is a file there.

    A file that cannot be read, or does not hold what its name says, is replaced. As many are at work as there are
    cores, so that none waits for what another does between its runs; an interruption loses only those.
    """
    folder.mkdir(parents=True, exist_ok=True)
    todo = jobs(design)
    printed, setups_of = cache(fingerprint), cache(_setups)
    paths = {key: folder / file_name(job, design.seed, printed, setups_of) for key, job in todo.items()}
    results: Results = {}
    for key, job in todo.items():
        try:
            results[key] = _read(job, paths[key])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    # Of jobs that are the same, one.
    first = {path: key for key, path in reversed(paths.items())}
    left = {key: job for key, job in todo.items() if key not in results and first[paths[key]] == key}
    passes = _Passes({job: setups_of(job, design.seed) for job in left.values()})
    account = _Account(left, progress)

    def measure(key: Key) -> Any:
        job = left[key]
        found = _measure(job, design.seed, passes, partial(account.tell, key))
        passes.done(job)
        part = paths[key].with_suffix(".part")
        _write(job, found, part)
        os.replace(part, paths[key])
        account.tell(key, 1.0)
        return found

    with ThreadPoolExecutor(_CORES) as pool:
        waiting = {key: pool.submit(measure, key) for key in left}
        try:
            results |= {key: each.result() for key, each in waiting.items()}
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return {key: results[key if key in results else first[paths[key]]] for key in todo}


class _Account:
    """How much of each job is done; tells it to the caller, one thread at a time."""

    def __init__(self, jobs: Mapping[Key, Job], progress: Progress | None) -> None:
        self._work = {key: job.work() for key, job in jobs.items()}
        self._done = dict.fromkeys(jobs, 0.0)
        self._progress, self._lock = progress, threading.Lock()

    def tell(self, key: Key, share: float) -> None:
        """Say that this share of a job is done."""
        if self._progress:
            with self._lock:
                self._done[key] = self._work[key] * share
                self._progress(sum(self._done.values()), sum(self._work.values()), ", ".join(map(str, key)))


def _measure(job: Job, seed: int, passes: _Passes, tell: Callable[[float], Any]) -> Curve | Numbers:
    if isinstance(job, CurveJob):
        engine = passes.engine(job, tell)
        return simulate_budgets(
            job.problem,
            [job.strategy],
            job.budgets,
            runs=job.runs,
            seed=seed,
            estimator=job.estimator,
            engine=engine,
        )
    [setup] = _setups(job, seed)
    ends = passes.ends(job, setup, tell)
    return STATISTICS[job.what](ends, setup.problem, job.budget)


# Which runs jobs share: a setup without its budgets, and the number of runs. Longer budgets that only few runs are
# asked for are no matter of all.
_Pass = tuple[Setup, int]


class _Passes:
    """
    The runs of several jobs: those that more than one of them asks for are simulated once, at all their budgets.

    They are forgotten when the last of these jobs is done. Jobs may be in several threads.
    """

    def __init__(self, jobs: Mapping[Job, list[Setup]]) -> None:
        self._jobs: dict[Job, list[_Pass]] = {}
        self._budgets: dict[_Pass, set[float]] = defaultdict(set)
        self._ends: dict[_Pass, Ends] = {}
        self._lock = threading.Lock()
        self._at_work: dict[_Pass, threading.Lock] = defaultdict(threading.Lock)
        for job, setups_of_job in jobs.items():
            self._jobs[job] = [_pass(job, setup) for setup in setups_of_job]
            for setup in setups_of_job:
                self._budgets[_pass(job, setup)].update(setup.checkpoints)

    def ends(self, job: Job, setup: Setup, tell: Callable[[float], Any]) -> Ends:
        """Return where the runs of a job end; `tell` is told how much of the job is done."""
        asked = _pass(job, setup)
        with self._lock:
            budgets, at_work = sorted(self._budgets[asked]), self._at_work[asked]
            before, passes = self._jobs[job].index(asked), len(self._jobs[job])
        with at_work:
            if asked not in self._ends:
                everywhere = replace(setup, checkpoints=tuple(budgets))
                self._ends[asked] = _simulated(
                    everywhere, job.runs, lambda done: tell((before + done / job.runs) / passes)
                )
            found = self._ends[asked]
        places = [budgets.index(n) for n in setup.checkpoints]
        return Ends(found.counts[places], found.means[places], found.m2s[places])

    def engine(self, job: Job, tell: Callable[[float], Any]) -> engines.Engine:
        """Return what simulates a job: its pilots are runs that count, each half of which is the other one's pilot."""
        return engines.Engine(
            lambda setup, first, runs: self.ends(job, setup, tell).split(runs)[0],
            lambda measurement, done: halves_crossed(measurement, self.ends(job, measurement.setup, tell)),
        )

    def done(self, job: Job) -> None:
        """Forget runs that no other job asks for."""
        with self._lock:
            self._jobs.pop(job, None)
            left = set(chain.from_iterable(self._jobs.values()))
            self._ends = {each: ends for each, ends in self._ends.items() if each in left}


def _pass(job: Job, setup: Setup) -> _Pass:
    return replace(setup, checkpoints=()), job.runs


def halves_crossed(measurement: blocks.Measurement, ends: Ends) -> blocks.Results:
    """
    Return the sums and batches of a measurement, given where its runs ended.

    The multiples of the controls are fitted in one half of the runs and used in the other, and the other way round: so
    they do not depend on the runs that they are used on, and no other runs are needed.
    """
    size, count = measurement.block_runs(), measurement.blocks()
    half = count // 2 * size if count > 2 else measurement.runs // 2
    first, second = ends.take(slice(half)), ends.take(slice(half, None))

    def summed(part: Ends, other: Ends) -> Iterator[list[list[blocks.RunSums]]]:
        setup, estimator, runs = measurement.setup, measurement.estimator, measurement.runs
        multiples = blocks.multiples(setup, estimator, other.take(slice(FITTED)))
        fitted = blocks.Measurement(setup, estimator, multiples, runs)
        return map(fitted.sums, part.split(AT_ONCE * size))

    return blocks.collect(measurement, chain(summed(first, second), summed(second, first)))


_CORES = os.cpu_count() or 1


def _simulated(setup: Setup, runs: int, done: blocks.Done) -> Ends:
    """Simulate runs on all cores; `done` is told how many there are so far."""
    # Few runs are divided among the cores, in whole groups that go side by side.
    groups = -(-runs // cpu.LANES)
    size, parts = min(2 * blocks.BLOCK, -(-groups // _CORES) * cpu.LANES), []

    def simulated(start: int) -> Ends:
        return cpu.simulate(setup, start, min(size, runs - start))

    for part in engines.in_threads(_CORES, simulated, range(0, runs, size)):
        parts.append(part)
        done(min(len(parts) * size, runs))
    return Ends.join(parts)


def _setups(job: Job, seed: int) -> list[Setup]:
    budgets = job.budgets if isinstance(job, CurveJob) else (job.budget,)
    return setups(job.problem, job.strategy, budgets, None, seed)


# ---- files


def file_name(
    job: Job,
    seed: int,
    printed: Callable[[Any], str] = fingerprint,
    setups_of: Callable[[Job, int], list[Setup]] = _setups,
) -> str:
    """
    Return the name of the file for a job: a hash of everything that its numbers depend on.

    That is the question (laws, strategy, budgets, runs, seed, estimator), the parameters that the strategy makes of it,
    and the fingerprints of the code: kernels with the strategy's functions in them, estimators, statistics. `printed`
    finds those, and `setups_of` what is simulated.
    """
    found = setups_of(job, seed)
    asked = {f.name: getattr(job, f.name) for f in fields(job) if f.name not in ("problem", "strategy")}
    question: dict[str, Any] = {
        "job": type(job).__name__,
        "seed": seed,
        "laws": [np.asarray(each).tolist() for each in streams.encode(job.problem.arms)],
        "moments": [(law.mean, law.variance, law.third, law.fourth) for law in job.problem.arms],
        "strategy": serialise(job.strategy),
        "warmup": job.strategy.warmup,
        "setups": [(setup.checkpoints, setup.params, setup.initial_own) for setup in found],
        "kernels": [printed(cpu.kernel(setup).run) for setup in found],
        **asked,
    }
    if isinstance(job, CurveJob):
        question["chosen"] = estimators.choose(job.estimator, job.problem, job.strategy)
        question["sums"] = _code_of_sums(printed)
    else:
        question["statistics"] = printed(STATISTICS[job.what])
    text = json.dumps(json_ready(question), sort_keys=True)
    return f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"


def _code_of_sums(printed: Callable[[Any], str]) -> list[str]:
    """Fingerprints of the code between where runs end and the sums of a simulation."""
    methods: list[Any] = [estimators.ArmSums.of, blocks.RunSums.of]
    functions = [
        halves_crossed,
        estimators.fit,
        estimators.estimates,
        blocks.Measurement._sums,
        *(each.__func__ for each in methods),
    ]
    return [printed(function) for function in functions]


def _write(job: Job, result: Any, path: Path) -> None:
    if isinstance(job, CurveJob):
        result.save(path)
    else:
        path.write_text(json.dumps({"format": _FORMAT, "what": job.what, "runs": job.runs, "numbers": result}))


def _read(job: Job, path: Path) -> Curve | Numbers:
    if isinstance(job, CurveJob):
        curve = Curve.load(path)
        found = [(sim.problem, sim.strategy, sim.budget, sim.runs) for sim in curve]
        if found != [(job.problem, job.strategy, n, job.runs) for n in job.budgets]:
            raise ValueError(f"{path} holds another simulation")
        return curve
    kept = json.loads(path.read_text())
    if (kept["format"], kept["what"], kept["runs"]) != (_FORMAT, job.what, job.runs):
        raise ValueError(f"{path} holds other numbers")
    return {str(name): float(value) for name, value in kept["numbers"].items()}


# ---- statistics of single runs


def pulls(ends: Ends, problem: Problem, n: int) -> Numbers:
    """Return the fewest and the most pulls of the first two arms in any run."""
    first, second = ends.counts[0, 0], ends.counts[0, 1]
    return {
        "fewest 1": float(first.min()),
        "most 1": float(first.max()),
        "fewest 2": float(second.min()),
        "most 2": float(second.max()),
    }


def shape(ends: Ends, problem: Problem, n: int) -> Numbers:
    """
    Return the second arm's loss, and where it comes from.

    A run is starved if all samples of the arm are equal at its end: the sample variance was 0 from the first pulls on.
    E[loss] - Sigma/n then splits into starved runs and the others, and so does `gap`, loss - s²/T, whose mean is 0 by
    the Gaussian lemma if the arm is Gaussian.
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


STATISTICS: dict[str, Callable[[Ends, Problem, int], Numbers]] = {"pulls": pulls, "shape": shape}


def _error(values: Floats) -> float:
    """The standard error of the mean."""
    return float(values.std(ddof=1) / math.sqrt(values.size))


def _correlation(x: Floats, y: Floats) -> float:
    if x.size < 2 or x.std() == 0 or y.std() == 0:
        return math.nan
    return float(np.corrcoef(x, y)[0, 1])


def _within(T: Floats, x: Floats, y: Floats) -> float:
    """The correlation of x and y given T: both minus their means over the runs with the same T."""
    _, group = np.unique(T, return_inverse=True)
    size = np.bincount(group)
    x = x - (np.bincount(group, x) / size)[group]
    y = y - (np.bincount(group, y) / size)[group]
    return _correlation(x[size[group] > 1], y[size[group] > 1])
