"""The engine on a graphics card, as `simulate` knows it: it registers itself when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from equipoise.lab.cuda import engine, sums
from equipoise.problem import Objective
from equipoise.simulation import engines
from equipoise.simulation.blocks import Done, Measurement, Results, RunSums, collect


def make(single: bool, in_flight: int, objective: Objective) -> engines.Engine:
    """Return the engine, or refuse what it cannot simulate, and a machine without a card."""
    engine.refuse(in_flight, objective)
    engine.check()
    return engines.Engine(partial(engine.simulate, single=single), partial(_measure, single))


def _measure(single: bool, measurement: Measurement, done: Done | None) -> Results:
    """Simulate many blocks at once on the card, and form their sums there."""
    setup, size = measurement.setup, measurement.block_runs()
    at_once = max(1, engine.launch_runs(len(setup.problem), len(setup.checkpoints)) // size) * size
    wanted = sums.Estimates.of(setup, measurement.estimator, measurement.multiples)

    def launches() -> Iterator[list[list[RunSums]]]:
        for first in range(0, measurement.runs, at_once):
            runs = min(at_once, measurement.runs - first)
            firsts = measurement.pieces_of_blocks(runs)
            found = sums.measure(setup, first, runs, single, firsts, wanted)
            yield measurement.merged(first, firsts, found)

    return collect(measurement, launches(), done)


engines.register("cuda", make)
