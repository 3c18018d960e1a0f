"""
What a new user waits for: the first study, simulation and demo on a machine, and the start of the program.

`python benchmarks/cold.py` runs each in a process of its own, from an empty cache of compiled code and then again from
the filled one, and prints seconds by the clock and of the processor: on a machine with other work to do the latter say
more. Then it counts what is compiled. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Final, NamedTuple

STUDY: Final = """
import equipoise as eq
study = eq.Study(["a", "b"], budget=200)
while not study.done:
    ticket = study.ask()
    study.tell(ticket, ticket.id % 7 * (1 + (ticket.arm == "a")))
print(study.result())
"""
SIMULATION: Final = """
import equipoise as eq
print(eq.simulate(eq.Problem([eq.Gaussian(0, 4), eq.Gaussian(0, 1)]), budget=1000))
"""
COMMAND: Final = "import sys; from equipoise.cli import main; sys.argv[1:] = {!r}; main()"

CASES: Final = {
    "import": "import equipoise",
    "help": COMMAND.format(["--help"]),
    "study": STUDY,
    "simulation": SIMULATION,
    "demo": COMMAND.format(["demo"]),
}

# Counts in the process that compiles: each compiled function with the seconds that are its own, not those of functions
# that were compiled on its behalf. With one core there is one such process.
COUNT: Final = """
import atexit, json, os
from time import perf_counter
from numba.core import event

if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])

class Recorder(event.Listener):
    def __init__(self):
        self.begun, self.done = [], []

    def on_start(self, each):
        self.begun.append([perf_counter(), 0.0])

    def on_end(self, each):
        start, inner = self.begun.pop()
        seconds = perf_counter() - start
        if self.begun:
            self.begun[-1][1] += seconds
        self.done.append([each.data["dispatcher"].py_func.__name__, seconds - inner])

recorder = Recorder()
event.register("numba:compile", recorder)
atexit.register(lambda: print("\\n" + json.dumps(recorder.done)))
"""


class Cost(NamedTuple):
    """What a process cost."""

    seconds: float
    processor: float


def run(code: str, folder: str) -> tuple[Cost, str]:
    """Run code in a new process with this folder for compiled code; return its cost and what it printed."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    words = [sys.executable, "-c", code]
    done = subprocess.run(
        words, env=os.environ | {"EQUIPOISE_CACHE_DIR": folder}, check=True, capture_output=True, text=True
    )
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(seconds, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime), done.stdout


def compiled(code: str) -> list[tuple[str, float]]:
    """Return the functions that code compiles from an empty cache, each with its own seconds."""
    with tempfile.TemporaryDirectory() as folder:
        found: list[tuple[str, float]] = json.loads(run(COUNT + code, folder)[1].splitlines()[-1])
    return found


def measure(code: str, rounds: int) -> dict[str, Any]:
    """Return the medians of the cost of code, from an empty cache and from a filled one."""
    cold, warm = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            cold.append(run(code, folder)[0])
            warm.append(run(code, folder)[0])
    return {
        f"{name}_{field}": round(statistics.median(getattr(cost, field) for cost in costs), 3)
        for name, costs in (("cold", cold), ("warm", warm))
        for field in Cost._fields
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), help=f"of {', '.join(CASES)}; all by default")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    report: dict[str, Any] = {}
    for name in given.cases:
        report[name] = measure(CASES[name], given.rounds)
        functions = compiled(CASES[name])
        for function, seconds in sorted(functions, key=lambda each: -each[1])[:25]:
            print(f"{name:>12} {seconds:8.3f} s  {function}")
        report[name] |= {"compiled": len(functions), "compiling": round(sum(s for _, s in functions), 3)}
        print(json.dumps({name: report[name]}), flush=True)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
