"""The CPU engine does what a study does, bit for bit, whichever kernel does it and however the work is split."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import equipoise as eq
from equipoise.compiled import fingerprint
from equipoise.engine import cpu, streams
from equipoise.engine.cpu import Tuning
from equipoise.engine.kernels.lanes import Layout, lanes
from equipoise.engine.rule import PLAIN, Rule
from equipoise.engine.setup import Ends, Setup
from equipoise.problem import Objective
from equipoise.simulation import blocks
from equipoise.strategies import Numbers, Strategy, Support, available
from tests.pooling import MeanVariance
from tests.unit.compiled.test_jit import rewrite
from tests.unit.engine.replay import replay

Floats = npt.NDArray[np.float64]
Moments = tuple[Floats, Floats, Floats]


@dataclass(frozen=True)
class Nosy(MeanVariance):
    """A third party's: three pulls each; it pools the mean variance, has a floor and looks at means."""

    warmup = 3
    uses_mean = True

    def params(self, budget: int | None, arms: int, support: Support) -> Numbers:
        return (0.5, 3.0)

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return (m2 + params[1] * pooled[0]) / (count + 2) + params[0] * abs(mean) / count

    @staticmethod
    def floor(t: float, arms: float, params: Numbers) -> float:
        return 0.2 * t / arms


@dataclass(frozen=True)
class Icy(Strategy):
    """
    A third party's: several own and several pooled numbers.

    It keeps the largest of its variances, its first sample and how often the pool has grown.
    """

    warmup = 1
    own = ("largest", "first", "grown")
    sums = ("own", "spread")
    pooled = ("own", "spread", "before")
    uses_mean = True

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return own[0] + (pooled[0] + pooled[1]) / (count + own[2]) + 0.1 * abs(own[1])

    @staticmethod
    def keep(
        sample: float, count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers
    ) -> Numbers:
        found = (m2 + pooled[0]) / count
        first = sample if count == 1 else own[1]
        return (max(own[0], found), first, own[2] + (1.0 if pooled[0] > pooled[2] else 0.0))

    @staticmethod
    def share(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> Numbers:
        return (own[0] + m2 / count, abs(m2 / count - pooled[1]))

    @staticmethod
    def pool(sums: Numbers, arms: float, pooled: Numbers, params: Numbers) -> Numbers:
        arms = max(arms, 1.0)
        return (sums[0] / arms, sums[1] / arms, pooled[0])


@dataclass(frozen=True)
class Eager(MeanVariance):
    """A third party's without a warm-up: its formula is fine for an arm without samples."""

    warmup = 0

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return (m2 + pooled[0] + 1.0) / (count + 1.0)


@dataclass(frozen=True)
class Patient(MeanVariance):
    """A third party's: the mean of an arm's variance and the pooled one, with no floor."""

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return 0.5 * (m2 / (count - 1) + pooled[0])


STRATEGIES: dict[str, Strategy] = {name: eq.strategies.get(name)() for name in available()} | {
    "b-as": eq.strategies.BAS(exploration=0.5),
    "mc-ucb": eq.strategies.MCUCB(exploration=0.5),
    "variance-ucb": eq.strategies.VarianceUCB(exploration=0.5),
    "nosy": Nosy(),
    "icy": Icy(),
    "eager": Eager(),
    "patient": Patient(),
}
# What makes each kernel do any number of arms: compiled for the number, for any number, and one run at a time.
FEW, MANY, SINGLE = Tuning(few=10**9, many=10**9), Tuning(few=0, many=10**9), Tuning(few=0, many=0, scanned=0)
LAWS: tuple[eq.Law, ...] = (
    eq.Gaussian(1, 4),
    eq.Rademacher(0.5),
    eq.Bernoulli(0.3),
    eq.Uniform(-1, 2),
    eq.Exponential(2),
    eq.Laplace(-1, 0.5),
    eq.LogNormal(0, 0.7),
    eq.StudentT(5, 0.8),
    eq.Constant(0.25),
    eq.Empirical([0.0, 1.0, 5.0]),
)


def mixed(arms: int) -> eq.Problem:
    """Arms of every law in turn."""
    return eq.Problem([LAWS[k % len(LAWS)] for k in range(arms)])


def observed(arms: int) -> eq.Problem:
    """Arms with laws that are fitted to samples, as those of replays are."""
    laws: list[eq.Law] = [eq.Empirical([0.0, 1.5, 4.0]), eq.Bernoulli(0.3), eq.Empirical([2.0, -7.0])]
    return eq.Problem([laws[k % len(laws)] for k in range(arms)])


def plan(strategy: Strategy, problem: eq.Problem, *checkpoints: int, seed: int = 3, support: Support = None) -> Setup:
    return Setup(problem, strategy, checkpoints, strategy.params(checkpoints[-1], len(problem), support), seed)


def study(given: Setup, run: int, budget: int | None = None, support: Support = None) -> Moments:
    """Where a study ends that is told the samples of this run."""
    last = int(given.checkpoints[-1])
    n = budget or last
    problem, strategy = given.problem, given.strategy
    if "variance" in strategy.own:
        strategy = eq.strategies.Oracle(problem.variances)
    arms = len(problem)
    told = eq.Study(arms, budget=last, strategy=strategy, support=support)
    values = [streams.samples(problem, given.seed, run, k, n).tolist() for k in range(arms)]
    seen = [0] * arms
    for _ in range(n):
        ticket = told.ask()
        k: Any = ticket.arm
        told.tell(ticket, values[k][seen[k]])
        seen[k] += 1
    return moments_of(told)


def moments_of(study: eq.Study) -> Moments:
    """Counts, means and unbiased variances, NaN for fewer than two samples, in the order of the arms."""
    result = study.result()
    parts = (result.counts, result.means, result.variances)
    counts, means, variances = (np.array([float(part[k]) for k in range(len(result.counts))]) for part in parts)
    return counts, means, np.where(counts > 1, variances, np.nan)


def moments_at(ends: Ends, column: int) -> Moments:
    """The same of a simulated run, at the last checkpoint."""
    counts, means, m2s = (part[-1, :, column] for part in (ends.counts, ends.means, ends.m2s))
    with np.errstate(invalid="ignore", divide="ignore"):
        return counts, means, np.where(counts > 1, m2s / (counts - 1), np.nan)


def assert_as_studies(given: Setup, ends: Ends, first: int, runs: Iterator[int] | range) -> None:
    for run in runs:
        for simulated, told in zip(moments_at(ends, run - first), study(given, run), strict=True):
            np.testing.assert_array_equal(simulated, told, f"run {run}")


def assert_equal(one: Ends, other: Ends) -> None:
    np.testing.assert_array_equal(one.counts, other.counts)
    np.testing.assert_array_equal(one.means, other.means)
    np.testing.assert_array_equal(one.m2s, other.m2s)


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_every_kernel_is_the_study(name: str) -> None:
    """Counts, means and variances of single runs, by every kernel, on arms of every law."""
    # Kernels for few arms are compiled for their number; those for two are used elsewhere too.
    for arms in (5 if name in ("auto", "nosy", "icy", "eager", "patient") else 2, 33):
        given = plan(STRATEGIES[name], mixed(arms), 12 * arms)
        many = cpu.simulate(given, 70, 66, MANY)
        assert_equal(many, cpu.simulate(given, 70, 66, SINGLE))
        if arms < 33:
            assert_equal(many, cpu.simulate(given, 70, 66, FEW))
        assert_as_studies(given, many, 70, iter((70, 101, 133, 134, 135)))


@pytest.mark.parametrize(("name", "arms"), [("auto", 1), ("auto", 2), ("auto", 7), ("b-as", 1), ("patient", 13)])
def test_any_number_of_arms(name: str, arms: int) -> None:
    """Also where the pooled variance is not refreshed on the step after the warm-up (13 arms)."""
    given = plan(STRATEGIES[name], eq.Problem([eq.Gaussian(k, 1 + k) for k in range(arms)]), 9 * arms)
    few = cpu.simulate(given, 0, 64)
    assert_as_studies(given, few, 0, range(0, 64, 9))
    assert_equal(few, cpu.simulate(given, 0, 64, MANY))
    assert_equal(few, cpu.simulate(given, 0, 64, SINGLE))


@pytest.mark.parametrize("arms", [40, 21])
def test_many_arms_without_a_floor(arms: int) -> None:
    """The pooled variance is right from the first decision on, with the arms that have two samples by then."""
    for strategy in (Patient(), Icy()):
        given = plan(strategy, eq.Problem([eq.Exponential(1 + k % 3) for k in range(arms)]), 4 * arms)
        assert_as_studies(given, cpu.simulate(given, 0, 8), 0, range(8))


OBJECTIVES = [Objective(1.0), Objective(2.5, WEIGHTS := (0.0, 1.0, 3.0, 0.25, 2.0)), Objective(weights=WEIGHTS)]


def test_every_kernel_knows_the_objective() -> None:
    """Norms and weights, against the definition in plain Python; an arm of weight 0 too."""
    for arms in (5, 33):
        for objective in OBJECTIVES:
            repeated = objective.weights and tuple(objective.weights[k % 5] for k in range(arms))
            given = replace(
                plan(STRATEGIES["auto"], mixed(arms), 12 * arms), objective=replace(objective, weights=repeated)
            )
            many = cpu.simulate(given, 70, 66, MANY)
            assert_equal(many, cpu.simulate(given, 70, 66, SINGLE))
            if arms < 33:
                assert_equal(many, cpu.simulate(given, 70, 66, FEW))
            for run in (70, 135):
                for part, wanted in zip((many.counts, many.means, many.m2s), replay(given, run), strict=True):
                    np.testing.assert_array_equal(part[-1, :, run - 70], wanted, f"{objective} {arms} {run}")


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_every_law(law: eq.Law) -> None:
    given = plan(STRATEGIES["b-as"], eq.Problem([law, eq.Gaussian(0, 1)]), 120)
    ends = cpu.simulate(given, 5, 10)
    assert_as_studies(given, ends, 5, range(5, 15, 3))
    assert_equal(ends, cpu.simulate(given, 5, 10, MANY))
    assert_equal(ends, cpu.simulate(given, 5, 10, SINGLE))


def test_binary_arms() -> None:
    """With support="binary" the default has another formula."""
    given = plan(STRATEGIES["auto"], eq.Problem([eq.Bernoulli(0.5), eq.Bernoulli(0.02)]), 200, support="binary")
    ends = cpu.simulate(given, 0, 70)
    for run in (0, 63, 69):
        counts, means, _ = study(given, run, support="binary")
        np.testing.assert_array_equal(ends.counts[0, :, run], counts)
        np.testing.assert_array_equal(ends.means[0, :, run], means)


def test_lanes_that_outrun_the_rings() -> None:
    """
    An arm that starves in some lanes and not in others: the slow lanes draw for themselves.

    The first draws of the Rademacher arm agree with probability 1/2, and with A = 0.1 it is then left at two pulls for
    long, while other lanes have taken more than a ring of it.
    """
    problem = eq.Problem([eq.Gaussian(0, 9), eq.Rademacher()])
    given = plan(eq.strategies.BAS(exploration=0.1), problem, 9000)
    ends = cpu.simulate(given, 0, 64)
    pulls = ends.counts[0, 1]
    assert pulls.min() < 20
    assert pulls.max() > Layout().ring_size(2) + 20
    slowest = [int(run) for run in np.argsort(pulls)[[0, 1, 20, 40, -1]]]
    assert_as_studies(given, ends, 0, iter(slowest))
    assert_equal(ends, cpu.simulate(given, 0, 64, SINGLE))
    assert_equal(ends, cpu.simulate(given, 0, 64, MANY))


@pytest.mark.parametrize("name", ["auto", "two-stage"])
def test_checkpoints_are_runs_that_ended_there(name: str) -> None:
    strategy: Strategy = STRATEGIES[name] if name != "two-stage" else eq.strategies.TwoStage(pilot=4)
    for arms in (2, 20):
        problem = mixed(arms)
        points = (2 * arms, 100, 101, 117, 300)
        along = cpu.simulate(plan(strategy, problem, *points), 0, 65)
        for c, n in enumerate(points):
            alone = cpu.simulate(plan(strategy, problem, n), 0, 65)
            np.testing.assert_array_equal(along.counts[c], alone.counts[0])
            np.testing.assert_array_equal(along.means[c], alone.means[0])
            np.testing.assert_array_equal(along.m2s[c], alone.m2s[0])


def test_how_runs_are_grouped_does_not_matter() -> None:
    """Runs 10 to 200 in one go and in pieces that are no multiple of the lanes; run numbers beyond 32 bits too."""
    given = plan(STRATEGIES["b-as"], mixed(2), 90)
    for base in (10, 2**40, 2**62):
        together = cpu.simulate(given, base, 190)
        assert together.counts.shape == (1, 2, 190)
        parts = [cpu.simulate(given, base + first, size) for first, size in ((0, 1), (1, 64), (65, 65), (130, 60))]
        assert_equal(
            together, Ends(*(np.concatenate([p.__dict__[f] for p in parts], axis=2) for f in together.__dict__))
        )


@pytest.mark.parametrize("tuning", [FEW, MANY, SINGLE])
def test_any_runs_are_simulated_in_any_order(tuning: Tuning) -> None:
    """70 runs that are not consecutive, as one by one; more than there are lanes."""
    given = plan(STRATEGIES["b-as"], mixed(2), 90)
    numbers = np.append(np.arange(900, 0, -13), 2**62)
    together = cpu.simulate_numbered(given, numbers, tuning)
    assert together.counts.shape == (1, 2, 71)
    for column in (0, 1, 40, 69, 70):
        alone = cpu.simulate(given, int(numbers[column]), 1, tuning)
        assert_equal(alone, Ends(*(each[..., [column]] for each in together.__dict__.values())))


@pytest.mark.parametrize("layout", [Layout(8, 16, 4, scanned=3, chunk=4), Layout(2, 2, 2)])
def test_the_layout_does_not_matter(layout: Layout) -> None:
    few = plan(eq.strategies.BAS(exploration=0.1), eq.Problem([eq.Gaussian(0, 9), eq.Rademacher()]), 1500)
    plans = [few, plan(few.strategy, mixed(18), 500)] if layout.lanes == 8 else [few]
    tuning = Tuning(layout=layout)
    for each in plans:
        assert_equal(cpu.simulate(each, 7, 21, tuning), cpu.simulate(each, 7, 21))


def test_which_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few arms, many, very many: what is measured fastest takes over where the tuning says."""
    monkeypatch.setattr(cpu, "_replayed", Counter())  # whatever other tests have replayed
    strategy, tuning = STRATEGIES["b-as"], Tuning()

    def kernel(
        arms: int, in_flight: int = 1, one_kernel: bool = False, replay: bool = False, tuning: Tuning = tuning
    ) -> cpu.Kernel:
        given = plan(strategy, observed(arms) if replay else mixed(arms), 10 * arms)
        return cpu.kernel(replace(given, in_flight=in_flight, one_kernel=one_kernel, replay=replay), tuning)

    for arms in (1, tuning.few, tuning.few + 1, tuning.many):
        assert kernel(arms).at_once == cpu.LANES == 64
    assert kernel(tuning.many + 1).at_once == 1
    assert kernel(tuning.few + 1) == kernel(tuning.many) != kernel(3)
    assert kernel(3, one_kernel=True) == kernel(tuning.few + 1)
    assert kernel(2, 2) == kernel(tuning.scanned, 64) != kernel(2)
    assert kernel(tuning.scanned + 1, 2) == kernel(tuning.many + 1, 2) != kernel(2, 2)
    # Replays, before another kernel pays off and after; with very many arms it always does.
    assert kernel(3, one_kernel=True, replay=True).at_once == 1
    enough = Tuning(replayed=-1)
    assert kernel(3, tuning=enough, one_kernel=True, replay=True) == kernel(tuning.few + 1)
    assert kernel(tuning.scanned + 1, replay=True) == kernel(tuning.many)
    # The kernel for replays knows no other laws than theirs.
    other = replace(plan(strategy, mixed(3), 30), one_kernel=True, replay=True)
    assert cpu.kernel(other, tuning) == kernel(tuning.few + 1)


def test_one_kernel_gives_the_same() -> None:
    given = plan(STRATEGIES["auto"], mixed(3), 60)
    assert_equal(cpu.simulate(replace(given, one_kernel=True), 3, 20), cpu.simulate(given, 3, 20))


@pytest.mark.parametrize(
    "name",
    [name if name in ("auto", "b-as", "icy") else pytest.param(name, marks=pytest.mark.slow) for name in STRATEGIES],
)
def test_a_strategy_by_address_gives_the_same(name: str) -> None:
    given = replace(plan(STRATEGIES[name], observed(3), 20, 60), one_kernel=True)
    for objective in (Objective(), Objective(2.0, weights=(1.0, 2.0, 3.0))):
        wanted = replace(given, objective=objective)
        assert_equal(cpu.simulate(replace(wanted, replay=True), 3, 20), cpu.simulate(wanted, 3, 20))


def numbers(sim: Any) -> list[bytes]:
    return [sim.losses.tobytes(), sim.loss_errors.tobytes(), sim.mean_pulls.tobytes(), sim.batches.tobytes()]


def test_threads_do_not_matter() -> None:
    """One, two, three threads: the same bits, also where the last block is not full."""
    problem = eq.Problem([eq.Gaussian(0, 4), eq.Exponential(1)])
    one, two, three = (eq.simulate(problem, "auto", 60, runs=5000, threads=threads) for threads in (1, 2, 3))
    assert numbers(one) == numbers(two) == numbers(three)


def test_blocks_matter_to_the_rounding_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = eq.Problem([eq.Gaussian(0, 4), eq.Exponential(1)])
    expected = eq.simulate(problem, "auto", 60, runs=3000)
    for block in (64, 100, 4096):
        monkeypatch.setattr(blocks, "BLOCK", block)
        sim = eq.simulate(problem, "auto", 60, runs=3000)
        np.testing.assert_allclose(sim.losses, expected.losses, rtol=1e-12)
        np.testing.assert_allclose(sim.loss_errors, expected.loss_errors, rtol=1e-10)
        np.testing.assert_allclose(sim.mean_pulls, expected.mean_pulls, rtol=1e-13)


def test_the_oracle_may_be_wrong() -> None:
    """An oracle with variances of its own goes by those, in a simulation as in a study."""
    problem = eq.Problem([eq.Gaussian(0, 4), eq.Gaussian(0, 1)])
    assert eq.simulate(problem, "oracle", 100, runs=2).mean_pulls.tolist() == [80, 20]
    assert eq.simulate(problem, eq.strategies.Oracle([1, 1]), 100, runs=2).mean_pulls.tolist() == [50, 50]
    with pytest.raises(ValueError, match="variances must have one value for each of the 2 arms, got 3"):
        eq.simulate(problem, eq.strategies.Oracle([1, 1, 1]), 100, runs=2)


STRATEGY = """
import equipoise as eq
import helper

@eq.strategies.register("mine")
class Mine(eq.strategies.Strategy):
    @staticmethod
    def variance(count, mean, m2, pooled, own, params):
        return helper.bonus(count) + m2 / count * 1.0
"""
HELPER = """
from equipoise.compiled import jit

@jit
def bonus(count):
    return 0.0 * count
"""
RUN = """
import equipoise as eq, mine
sim = eq.simulate(eq.Problem([eq.Rademacher(3), eq.Rademacher(1)]), "mine", 40, runs=64, estimator="naive")
print(sim.mean_pulls[0])
"""


def run(folder: Path) -> tuple[float, bool]:
    """The mean pulls of the first arm, and whether anything was compiled, in a new process."""
    cache = folder / "cache"
    before = set(cache.glob("*.nbc"))
    environment = os.environ | {"EQUIPOISE_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout), set(cache.glob("*.nbc")) != before


def test_a_changed_formula_never_meets_an_old_kernel(tmp_path: Path) -> None:
    """The first call compiles, the second loads; what a formula calls has changed: the third compiles again."""
    (tmp_path / "mine.py").write_text(STRATEGY)
    (tmp_path / "helper.py").write_text(HELPER)
    pulls, compiled = run(tmp_path)
    assert compiled
    assert run(tmp_path) == (pulls, False)
    rewrite(tmp_path / "helper.py", "0.0 * count", "9e9 / count")
    assert run(tmp_path) == (20, True)


@pytest.mark.parametrize("arms", [0, 2])
def test_kernels_that_call_by_address_are_kept(arms: int) -> None:
    """A kernel without a fingerprint would be compiled again in every process."""
    assert fingerprint(lanes(Rule.of(eq.strategies.EvenSplit(), PLAIN), arms, Layout()))
