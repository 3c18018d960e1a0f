"""Where blocks of runs are simulated: this machine's cores, a Dask cluster, or an engine that registers itself."""

from __future__ import annotations

import importlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, NamedTuple

from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import did_you_mean, integer, shown
from equipoise.engine import cpu
from equipoise.engine.setup import Ends, Setup
from equipoise.problem import Objective
from equipoise.simulation.blocks import Done, Measurement, Results, RunSums, collect

# A thread simulates several blocks at once up to this many numbers of arms, checkpoints and runs: they fit into cache.
AT_ONCE = 1 << 15


class Engine(NamedTuple):
    """
    A way to simulate.

    - `ends(setup, first, runs)`: where runs `first` to `first + runs` end, for a pilot;
    - `measure(measurement, done)`: the sums and batches of a measurement.
    """

    ends: Callable[[Setup, int, int], Ends]
    measure: Callable[[Measurement, Done | None], Results]


# Engines of other modules, by name, and the module that registers each when it is first asked for: importing Numba's
# part for GPUs takes a tenth of a second.
_MODULES: Final = {"cuda": "equipoise.lab.cuda.simulating"}
# How each is made: given whether precision is single, the answers in flight and the objective, or it refuses these.
Maker = Callable[[bool, int, Objective], Engine]
_REGISTERED: Final[dict[str, Maker]] = {}


def register(name: str, make: Maker) -> None:
    """Make an engine available by name."""
    _REGISTERED[name] = make


def engine(name: Any, threads: int | None, precision: str, in_flight: int, objective: Objective) -> Engine:
    """Return the engine that a user asked for: "cpu", "cuda" or a Dask client; an engine is what it is."""
    if isinstance(name, Engine):
        return name
    if isinstance(name, str) and name in _MODULES:
        importlib.import_module(_MODULES[name])
        return _REGISTERED[name](precision == "single", in_flight, objective)
    if precision == "single":
        raise InvalidInput("precision must be 'double' unless engine='cuda', got 'single'")
    workers = integer("threads", threads, 1) if threads is not None else os.cpu_count() or 1
    if isinstance(name, str) and name == "cpu":
        return Engine(partial(_ends_on_cpu, workers), partial(_on_cpu, workers))
    if hasattr(name, "scheduler_info"):
        if name.status != "running":
            raise InvalidInput(f"engine must be a Dask client that is running, got {name!r}, which is {name.status}")
        return Engine(partial(_ends_on_cpu, workers), partial(_on_dask, name))
    near = did_you_mean(name, ("cpu", *_MODULES)) if isinstance(name, str) else ""
    raise InvalidInput(f"engine must be 'cpu', 'cuda' or a Dask client, got {shown(name)}{near}")


def in_threads(workers: int, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Apply a function to items in this many threads; the results come in the order of the items."""
    if workers == 1:
        yield from map(function, items)
    else:
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(function, items)


def _ends_on_cpu(workers: int, setup: Setup, first: int, runs: int) -> Ends:
    size = max(cpu.LANES, -(-runs // workers))

    def simulate(start: int) -> Ends:
        return cpu.simulate(setup, start, min(size, first + runs - start))

    return Ends.join(list(in_threads(workers, simulate, range(first, first + runs, size))))


def _on_cpu(workers: int, measurement: Measurement, done: Done | None) -> Results:
    blocks = measurement.blocks()
    # Several at once, so that the calls around the pulls are few, as long as all threads have work to share.
    numbers = len(measurement.setup.problem) * len(measurement.setup.checkpoints) * measurement.block_runs()
    at_once = max(1, min(blocks // (4 * workers) if workers > 1 else blocks, AT_ONCE // numbers))
    some = partial(measurement.block, blocks=at_once)
    return collect(measurement, in_threads(workers, some, range(0, blocks, at_once)), done)


def _itself(measurement: Measurement) -> Measurement:
    return measurement


def _on_dask(client: Any, measurement: Measurement, done: Done | None) -> Results:
    """Simulate the blocks on the client's workers; a block that is lost with its worker is done again by another."""
    # Not scattered: what is scattered is gone with the last worker that had it, a result is computed again.
    everywhere = client.submit(_itself, measurement, pure=False, retries=10)
    ahead = 4 * max(1, sum(client.nthreads().values()))

    def blocks() -> Iterator[list[list[RunSums]]]:
        waiting: deque[Any] = deque()
        for b in range(measurement.blocks()):
            waiting.append(client.submit(Measurement.block, everywhere, b, pure=False, retries=10))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    return collect(measurement, blocks(), done)
