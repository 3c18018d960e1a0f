"""
The CPU engine: which kernel simulates a setup, and running it.

Three kernels make the same decisions in the same arithmetic as a study. `lanes` simulates many runs side by side and
scans the arms at every step; it is compiled for the number of arms if that is small, else for any number. `single`
simulates one run at a time: for very many arms, for answers that come late and for samples that have prices. Both are
compiled for the strategy and for the form of the objective: the paper's, with key v/T, pays nothing for the scales and
the exponent that the keys of others have. `lean` takes any strategy by address, for replays of a study that are over
before another kernel would be compiled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from equipoise.base.arrays import Ints
from equipoise.compiled import jit
from equipoise.engine.kernels import replay as lean
from equipoise.engine.kernels.lanes import Layout, lanes
from equipoise.engine.kernels.single import Variant, single
from equipoise.engine.kernels.sweeps import sweeps
from equipoise.engine.rule import NORM, PLAIN, Numbers, Rule
from equipoise.engine.setup import Ends, Setup
from equipoise.engine.streams import Drawn, Laws, all_observed
from equipoise.problem.money import limit


@dataclass(frozen=True)
class Tuning:
    """
    Which kernel takes over at which number of arms, as measured, and the layout of the lanes.

    Results do not depend on it.

    Attributes
    ----------
    few
        Up to this number of arms the kernel is compiled for the number.
    many
        Up to this number of arms runs go side by side and arms are scanned; above it a heap is faster.
    scanned
        Up to this number of arms they are scanned where runs go one at a time anyway.
    layout
        How the lanes are laid out.
    replayed
        Pulls of replays after which, in one process, the lanes are compiled for a strategy.
    """

    few: int = 16
    many: int = 240
    scanned: int = 64
    layout: Layout = field(default_factory=Layout)
    replayed: float = 3e7


TUNING = Tuning()
LANES = TUNING.layout.lanes


@lru_cache(maxsize=256)
def _lanes(rule: Rule, arms: int, layout: Layout) -> Callable[..., None]:
    return jit(lanes(rule, arms, layout), nogil=True)


@lru_cache(maxsize=256)
def _sweeps(rule: Rule) -> Callable[..., None]:
    return jit(sweeps(rule), nogil=True)


@lru_cache(maxsize=256)
def _single(rule: Rule, variant: Variant) -> Callable[..., None]:
    return jit(single(rule, variant), nogil=True)


# Pulls of replays in this process, by strategy.
_replayed: Counter[Rule] = Counter()


class Kernel(NamedTuple):
    """A kernel, how many runs it simulates at once, and which samples it draws side by side, if any."""

    run: Callable[..., None]
    at_once: int
    drawn: Drawn | None


def kernel(setup: Setup, tuning: Tuning = TUNING) -> Kernel:
    """Return the kernel for a setup."""
    rule, arms = Rule.of(setup.strategy, setup.form), len(setup.problem)
    small = setup.replay and _replayed[rule] <= tuning.replayed and all_observed(setup.problem)
    if small and not setup.one_by_one and arms <= tuning.scanned:
        return Kernel(lean.kernel(setup.strategy, setup.params), 1, None)
    if not setup.one_by_one and arms <= tuning.many:
        for_arms = arms if arms <= tuning.few and not setup.one_kernel else 0
        return Kernel(_lanes(rule, for_arms, tuning.layout), tuning.layout.lanes, "runs" if for_arms else "blocks")
    # Raising to a power of one costs nothing to speak of there.
    rule = rule._replace(form=PLAIN if rule.form == PLAIN else NORM)
    if not setup.one_by_one:
        return Kernel(_sweeps(rule), 1, None)
    variant = Variant(arms <= tuning.scanned, setup.objective.costs is not None, setup.in_flight > 1)
    return Kernel(_single(rule, variant), 1, None)


def simulate(setup: Setup, first: int, runs: int, tuning: Tuning = TUNING) -> Ends:
    """Simulate runs `first` to `first + runs` of the setup, in this thread."""
    return simulate_numbered(setup, np.arange(first, first + runs, dtype=np.uint64), tuning)


def simulate_numbered(setup: Setup, wanted: Ints, tuning: Tuning = TUNING) -> Ends:
    """Simulate the runs with these numbers, in their order, in this thread."""
    arms, objective, runs = len(setup.problem), setup.objective, len(wanted)
    numbers = Numbers(
        setup.params or (0.0,), setup.initial_own, setup.strategy.warmup, objective.scales(arms), objective.exponent
    )
    costs = objective.cost(arms)
    if objective.costs is None:
        limits = np.array(setup.checkpoints, dtype=np.int64)
    else:
        limits = np.array([limit(budget, float(costs.min())) for budget in setup.checkpoints])
    run, at_once, drawn = kernel(setup, tuning)
    if setup.replay:
        _replayed[Rule.of(setup.strategy, setup.form)] += runs * int(limits[-1])
    whole = -(-runs // at_once) * at_once
    # The last lanes repeat a run where there is none left.
    laws = Laws.of(setup.problem, setup.seed, np.pad(wanted, (0, whole - runs), "edge"), drawn)
    ends = np.empty((3, len(setup.checkpoints), arms, whole))
    # No more can be in flight than the budget has pulls.
    extra = (costs, min(setup.in_flight, 1 + int(limits.max() / costs.min()))) if setup.one_by_one else ()
    run(laws, limits, numbers, ends, *extra)
    return Ends(*ends[..., :runs])
