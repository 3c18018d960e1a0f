"""
Measure whether standard errors, biases and combined means are true after adaptive sampling.

`python -m benchmarks.inference` prints tables of docs/explanation/inference.md and docs/reference/inference.md. Lines
that begin with a brace are JSON: one for each ratio as soon as it is known well enough, and at the end one with
everything. `--page FILE` writes the tables of earlier runs, whose output is in these files, into the pages; of a row
that is there twice, the last one counts. A study here is a run of the simulator: its samples follow from their address,
so that only the replay of it costs anything. The truth is that of other runs of the same problem. The numbers do not
depend on `--jobs`.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final, NamedTuple

import numpy as np

import equipoise as eq
from benchmarks.coverage import fill
from benchmarks.inference_tables import LAWS, SEED, Covered, Found, Remarked, Row, read, rows, tables
from equipoise.base.arrays import Floats
from equipoise.engine import cpu, streams
from equipoise.engine.setup import Setup
from equipoise.inference import corrections, replay
from equipoise.inference.replay import adaptivity as replayed
from equipoise.ledger.snapshot import Design
from equipoise.result import certificate

DOCS = Path(__file__).parent.parent / "docs"
# The pages with the tables of each name; the one with a row for each strategy and objective is long.
PAGES: Final = {
    DOCS / "explanation" / "inference.md": ("summary", "bias", "combined", "remark"),
    DOCS / "reference" / "inference.md": ("variance",),
}
# Runs from this number on are for the truth; those below it are studies.
TRUTH: Final = 1 << 32
Z: Final = 1.959964
# The parts of the squared error of a ratio that studies and the truth may have.
OF_STUDIES, OF_TRUTH = 0.75, 0.25
# Studies of a row at first, how many at most, and pulls of a task that simulates the truth.
FIRST, MOST, PULLS = 32, 16_384, 4_000_000
MOST_TRUTH: Final = 512
ROUNDS: Final = 3
STUDIES: Final = 4000
TOGETHER: Final = 20

# ---- what a task does


class Studied(NamedTuple):
    """What results of studies say, by study and arm; and how far the means are off."""

    inflations: Floats
    biases: Floats
    losses: Floats
    off: Floats


def adaptivity(row: Row, setup: Setup, run: int, counts: Floats) -> corrections.Adaptivity:
    """Return what the result of this simulated study says."""
    samples = streams.samples_of_run(row.problem, SEED, run, counts)
    whole = counts.astype(np.int64)
    spent = math.fsum(setup.objective.cost(row.arms) * whole) if row.costs else int(whole.sum())
    design = Design(setup.strategy, setup.params, np.zeros(row.arms, bool))
    return replay.replayed(replay.setup_of(samples, whole, design, setup.objective, spent), samples)


def studied(row: Row, first: int, studies: int) -> Studied:
    """Return what the results of some studies say."""
    setup = row.setup()
    ends = cpu.simulate(setup, first, studies)
    counts, off, m2s = (each[0].T for each in (ends.counts, ends.means, ends.m2s))
    off = off - setup.problem.means
    losses = m2s / (counts - 1) / counts
    if row.strategy in corrections.BLIND:
        return Studied(np.ones_like(off), np.zeros_like(off), losses, off)
    found = [adaptivity(row, setup, first + i, counts[i]) for i in range(studies)]
    return Studied(
        np.array([each.inflations for each in found]), np.array([each.biases for each in found]), losses, off
    )


def true(row: Row, part: int) -> Floats:
    """
    Return the squared errors, s²/T and errors of the means of many runs, averaged over the arms: an array of 3 rows.

    Wald's identities take out most of the noise: with the deviations' sum S, the means of S, of S² - σ² T and of
    Σ (X - μ)² - σ² T are 0.
    """
    setup = row.setup()
    runs = max(PULLS // row.budget // cpu.LANES, 1) * cpu.LANES
    ends = cpu.simulate(setup, TRUTH + part * runs, runs)
    counts, m2s = ends.counts[0], ends.m2s[0]
    off = ends.means[0] - setup.problem.means[:, None]
    variance, typical, sums = LAWS[row.law].variance, counts.mean(axis=1, keepdims=True), off * counts
    errors = off**2 - (sums**2 - variance * counts) / typical**2
    losses = m2s / (counts - 1) / counts - (m2s + off * sums - variance * counts) / typical**2
    return np.array([errors.mean(axis=0), losses.mean(axis=0), (off - sums / typical).mean(axis=0)])


def remarked(row: Row, run: int) -> tuple[bool, int]:
    """Return whether a real study's result warns of heavy tails, and for how many of its arms."""
    arms = certificate.heavy(real(row, run).known)
    return bool(arms), len(arms)


def real(row: Row, run: int) -> eq.Result:
    """Return the result of a real study that meets the samples of this run."""
    study = eq.Study(row.arms, budget=row.budget, support=row.support, strategy=row.sampling(), **row.options)
    samples = [streams.samples(row.problem, SEED, run, arm, row.budget).tolist() for arm in range(row.arms)]
    values = [iter(own) for own in samples]
    while not study.done:
        ticket: Any = study.ask()
        study.tell(ticket, next(values[ticket.arm]))
    return study.result()


def same(row: Row) -> bool:
    """Return whether the short way to a result says what a real study's result says, to the bit."""
    long = real(row, 0)
    setup = row.setup()
    short = adaptivity(row, setup, 0, cpu.simulate(setup, 0, 1).counts[0, :, 0])
    return bool(
        (replayed(long.known).inflations == short.inflations).all() and (long.biases.array == short.biases).all()
    )


# ---- what is made of it


def mean_and_error(each: Floats) -> tuple[float, float]:
    """Return a mean and its standard error."""
    return float(each.mean()), float(each.std(ddof=1) / math.sqrt(len(each)))


def ratio_and_error(above: Floats, below: Floats) -> tuple[float, float]:
    """Return the ratio of two means, and its relative standard error."""
    ratio = float(above.mean() / below.mean())
    return ratio, float((above - ratio * below).std(ddof=1) / math.sqrt(len(above)) / abs(above.mean()))


def said(parts: Sequence[Studied]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the reported inflation and the reported bias, each with its error."""
    inflations, biases, losses, _ = (np.concatenate(each) for each in zip(*parts, strict=True))
    return ratio_and_error((inflations * losses).mean(axis=1), losses.mean(axis=1)), mean_and_error(biases.mean(axis=1))


def judged(row: Row, truth: Sequence[Floats], parts: Sequence[Studied], seconds: float) -> Found:
    """Return what was found of a row."""
    errors, losses, off = np.concatenate(truth, axis=1)
    inflation, of_truth = ratio_and_error(errors, losses)
    (reported, of_studies), biases = said(parts)
    ratio = inflation / reported
    return Found(
        row,
        inflation,
        reported,
        ratio,
        ratio * math.hypot(of_truth, of_studies),
        *mean_and_error(off),
        *biases,
        sum(len(each.off) for each in parts),
        seconds,
    )


def covered(row: Row, parts: Sequence[Studied], seconds: float) -> Covered:
    """Return what was found of combined means."""
    inflations, biases, losses, off = (np.concatenate(each) for each in zip(*parts, strict=True))
    corrected, plain = (off - biases).mean(axis=1), off.mean(axis=1)
    error, plain_error = (np.sqrt(each.sum(axis=1)) / row.arms for each in (inflations * losses, losses))
    return Covered(
        row,
        len(off),
        float((abs(corrected) <= Z * error).mean()),
        float((abs(plain) <= Z * plain_error).mean()),
        float(plain.mean()),
        *mean_and_error(corrected),
        seconds,
        float((corrected / error).std(ddof=1)),
    )


# ---- many tasks at once


def timed(task: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a task returns, and how long a core worked on it."""
    start = process_time()
    found = task()
    return found, process_time() - start


class Task(NamedTuple):
    """Something to do for a row, and which of the row's results it adds to."""

    row: Row
    kind: str
    do: partial[Any]


class Tasks:
    """Tasks by row, done by processes; results in the order of the tasks."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self.pool = pool
        self.seconds: dict[Row, float] = {}
        self.results: dict[tuple[Row, str], list[Any]] = {}

    def __call__(self, given: Iterable[Task]) -> Iterator[Row]:
        """Do the tasks, add what they return to the results, and yield each row when all of its tasks are done."""
        futures = {self.pool.submit(timed, task.do): task for task in given}
        waiting = Counter(task.row for task in futures.values())
        for future in as_completed(futures):
            row = futures[future].row
            waiting[row] -= 1
            if not waiting[row]:
                for done, task in futures.items():
                    if task.row == row:
                        result, seconds = done.result()
                        self.results.setdefault((row, task.kind), []).append(result)
                        self.seconds[row] = self.seconds.get(row, 0.0) + seconds
                yield row


def chunks(row: Row, first: int, stop: int) -> list[Task]:
    """Return tasks that replay studies `first` to `stop` of a row."""
    starts = range(first, max(first, stop), TOGETHER)
    return [Task(row, "studies", partial(studied, row, i, min(TOGETHER, stop - i))) for i in starts]


def simulated(row: Row, first: int, stop: int) -> list[Task]:
    """Return tasks that simulate parts `first` to `stop` of the truth of a row."""
    return [Task(row, "truth", partial(true, row, part)) for part in range(first, stop)]


def variances(tasks: Tasks, wanted: Sequence[Row], error: float) -> Iterator[Found]:
    """
    Measure rows until the error of each ratio is as small as `error`, or the studies are as many as allowed.

    Rows come when they are known well enough; those that take longest are begun first.
    """
    some = [row for row in wanted if row.table in ("variance", "bias")]
    given = [task for row in some for task in (*chunks(row, 0, FIRST), *simulated(row, 0, 2))]
    # What is lacking is guessed from what was found, so that it may take a few rounds.
    for last in (*(False,) * ROUNDS, True):
        lacking: list[tuple[float, list[Task]]] = []
        for row in tasks(given):
            more = [] if last else _more(row, tasks.results[row, "truth"], tasks.results[row, "studies"], error)
            if more:
                each = tasks.seconds[row] / sum(len(tasks.results[row, kind]) for kind in ("truth", "studies"))
                lacking.append((each * len(more), more))
            else:
                yield judged(row, tasks.results[row, "truth"], tasks.results[row, "studies"], tasks.seconds[row])
        given = [task for _, more in sorted(lacking, key=lambda each: -each[0]) for task in more]


def _more(row: Row, truth: Sequence[Floats], studies: Sequence[Studied], error: float) -> list[Task]:
    """Return the tasks that a row lacks for this error."""
    errors, losses, _ = np.concatenate(truth, axis=1)
    enough = len(truth) * ratio_and_error(errors, losses)[1] ** 2 / (OF_TRUTH * error**2)
    done = sum(len(each.off) for each in studies)
    wanted = done * said(studies)[0][1] ** 2 / (OF_STUDIES * error**2)
    parts = simulated(row, len(truth), _grown(len(truth), enough, MOST_TRUTH))
    return chunks(row, done, _grown(done, wanted, MOST)) + parts


def _grown(done: int, enough: float, most: int) -> int:
    """
    Return how many there should be: somewhat more than seem enough, as their error is not known exactly.

    Of few with heavy tails it may be far off, so that there are no more than eight times as many.
    """
    return done if enough <= done else min(math.ceil(1.15 * enough), max(most, done), 8 * done)


def coverages(tasks: Tasks, wanted: Sequence[Row], studies: int) -> Iterator[Covered]:
    """Measure the coverage of combined means."""
    some = [row for row in wanted if row.table == "coverage"]
    for row in tasks(task for each in some for task in chunks(each, 0, studies)):
        yield covered(row, tasks.results[row, "studies"], tasks.seconds[row])


def remarks(tasks: Tasks, wanted: Sequence[Row], studies: int) -> Iterator[Remarked]:
    """Measure how often results warn of heavy tails."""
    some = [row for row in wanted if row.table == "remark"]
    for row in tasks(Task(each, "remarks", partial(remarked, each, run)) for each in some for run in range(studies)):
        of_studies, arms = np.array(tasks.results[row, "remarks"], float).mean(axis=0)
        yield Remarked(row, studies, float(of_studies), float(arms) / row.arms)


def warm(row: Row) -> bool:
    """Compile what a row needs, which processes then read from disk; return whether both ways to a result agree."""
    return same(replace(row, each=min(row.each, 30)))


def filled(found: dict[str, str]) -> dict[Path, str]:
    """Return the pages with these tables, by name."""
    return {
        page: fill(page.read_text(encoding="utf-8"), **{name: found[name] for name in names if name in found})
        for page, names in PAGES.items()
    }


def main() -> None:
    """Measure, or write what was measured into the pages."""
    parser = argparse.ArgumentParser(description="Measure whether results are true after adaptive sampling.")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count(), help="processes")
    parser.add_argument("--studies", type=int, default=STUDIES, help="studies of each row of coverage and remarks")
    parser.add_argument("--error", type=float, default=0.004, help="standard error of a ratio of variances")
    parser.add_argument("--only", nargs="*", default=[""], help="parts of the rows' names, as 'variance*b-as'")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    parser.add_argument("--page", nargs="+", type=Path, help="write the tables of these files into the pages")
    given = parser.parse_args()
    if given.page:
        for page, text in filled(tables(read(given.page))).items():
            page.write_text(text, encoding="utf-8")
        return
    wanted = [row for row in rows() if any(fnmatchcase(row.name, f"*{text}*") for text in given.only)]
    if given.list:
        print(*(row.name for row in wanted), sep="\n")
        return
    start = perf_counter()
    fork = multiprocessing.get_context("fork")
    kernels = {(row.strategy, row.objective, row.costs, row.arms > cpu.TUNING.scanned): row for row in wanted}
    with ProcessPoolExecutor(given.jobs, fork) as pool:
        agree = list(pool.map(warm, [row for row in kernels.values() if row.strategy != "uniform"]))
    print(f"compiled after {perf_counter() - start:.0f} s", file=sys.stderr)
    with ProcessPoolExecutor(given.jobs, fork) as pool:
        tasks = Tasks(pool)
        measured: dict[str, Iterator[Any]] = {
            "found": variances(tasks, wanted, given.error),
            "covered": coverages(tasks, wanted, given.studies),
            "remarked": remarks(tasks, wanted, given.studies // 4),
        }
        known: dict[str, list[Any]] = {name: [] for name in measured}
        for name, results in measured.items():
            for each in results:
                known[name].append(each)
                print(json.dumps({name: [asdict(each)]}), flush=True)
    place = {row: i for i, row in enumerate(rows())}
    for each_kind in known.values():
        each_kind.sort(key=lambda each: place[each.row])
    for name, text in tables(known).items():
        print(f"\n## {name}\n\n{text}")
    print(f"\n{sum(agree)} of {len(agree)} studies by address agree with real ones\n")
    plain = {name: [asdict(each) for each in results] for name, results in known.items()}
    print(json.dumps(plain | {"agree": sum(agree), "compared": len(agree), "seconds": perf_counter() - start}))


if __name__ == "__main__":
    main()
