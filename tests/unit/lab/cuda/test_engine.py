"""
The CUDA engine in Numba's simulator, against the CPU engine: the same bits, at every place state can be kept.

A real GPU fuses multiplications and additions, so that there M2 agrees to rounding only; benchmarks/gpu.py measures it.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys

import pytest

import equipoise as eq
from equipoise.lab.cuda import engine as cuda
from tests.simulated_card import reported

SCRIPT = """
import json, math, sys, warnings
from dataclasses import replace
warnings.simplefilter("ignore")
import equipoise as eq
from equipoise.engine import cpu
from equipoise.lab.cuda import engine as cuda, sums as cuda_sums
from equipoise.simulation import blocks
from equipoise.engine.setup import Setup
from equipoise.problem import Objective

class MeanVariance(eq.strategies.Strategy):
    sums, pooled = ("variance",), ("mean",)
    @staticmethod
    def share(count, mean, m2, pooled, own, params):
        return (m2 / (count - 1),)
    @staticmethod
    def pool(sums, arms, pooled, params):
        return (sums[0] / max(arms, 1.0),)

class Odd(MeanVariance):
    warmup = 3
    uses_mean = True
    @staticmethod
    def variance(count, mean, m2, pooled, own, params):
        return (m2 + pooled[0] + abs(mean)) / count
    @staticmethod
    def floor(t, arms, params):
        return t / (4 * arms)

class Several(eq.strategies.Strategy):
    own, sums, pooled = ("largest", "first"), ("own", "spread", "arms"), ("own", "spread")
    uses_mean = True
    @staticmethod
    def variance(count, mean, m2, pooled, own, params):
        return own[0] + (pooled[0] + pooled[1]) / count + 0.1 * abs(own[1])
    @staticmethod
    def keep(sample, count, mean, m2, pooled, own, params):
        return (max(own[0], (m2 + pooled[0]) / count), sample if count == 1 else own[1])
    @staticmethod
    def share(count, mean, m2, pooled, own, params):
        return (own[0] + m2 / count, abs(m2 / count - pooled[1]), 1.0)
    @staticmethod
    def pool(sums, arms, pooled, params):
        return (sums[0] / max(arms, 1.0), 0.5 * (pooled[1] + sums[1] / max(sums[2], 1.0)))

class Weighing(eq.strategies.Strategy):
    # Decides by the weight as the strategy knows it, squared, which the key does not.
    own, sums, pooled = ("seen", "weight"), ("variance",), ("mean",)
    @staticmethod
    def variance(count, mean, m2, pooled, own, params):
        return (own[1] * own[1] * m2 + pooled[0]) / (count + own[0])
    @staticmethod
    def keep(sample, count, mean, m2, pooled, own, params):
        return (own[0] + 1.0, own[1])
    @staticmethod
    def share(count, mean, m2, pooled, own, params):
        return (own[1] * m2 / (count - 1),)
    @staticmethod
    def pool(sums, arms, pooled, params):
        return (sums[0] / max(arms, 1.0),)

# In the simulator each thread is one of the machine's; ten arms fit into shared memory, and twenty-six do not.
card = cuda.Card(threads=4, shared=8000)
blocks.PILOT = 16  # it runs there too
cuda_sums.THREADS = 4
s = eq.strategies
strategies = [s.Auto(), s.BAS(exploration=0.5), s.CHAS(), s.GAFSMAX(), s.TwoStage(pilot=3), s.Greedy()]
strategies += [s.Oracle(), s.EvenSplit(), Odd(), Several()]
laws = [eq.Gaussian(1, 4), eq.Rademacher(), eq.Bernoulli(0.3), eq.Uniform(), eq.Laplace(), eq.Empirical([1, 2, 7])]
laws += [eq.Exponential()]
report = {}

def on_cpu(plan, first, runs):
    # By the kernel that is compiled once for a strategy; the others give the same bits (test_cpu.py).
    return cpu.simulate(replace(plan, one_kernel=True), first, runs)

for arms in (1, 2, 3, 10, 26):
    problem = eq.Problem([laws[k % len(laws)] for k in range(arms)])
    for strategy in strategies:
        n = 5 * arms + 20
        plan = Setup(problem, strategy, (4 * arms, n), strategy.params(n, arms, None), 3)
        here, there = on_cpu(plan, 7, 3), cuda.simulate(plan, 7, 3, card=card)
        same = (here.counts == there.counts) & (here.means == there.means) & (here.m2s == there.m2s)
        report[f"{type(strategy).__name__} {arms}"] = bool(same.all())
for arms in (2, 10, 26):
    problem = eq.Problem([laws[k % len(laws)] for k in range(arms)])
    for p, weights in ((math.inf, True), (2.0, False)):
        objective = Objective(p, tuple((k + 1) % 3 + 0.5 * (k % 2) for k in range(arms)) if weights else None)
        for strategy in (s.Auto(), Odd(), Weighing()):
            n = 5 * arms + 10
            plan = Setup(problem, strategy, (n,), strategy.params(n, arms, None), 3, 1, objective)
            here, there = on_cpu(plan, 7, 3), cuda.simulate(plan, 7, 3, card=card)
            same = (here.counts == there.counts) & (here.means == there.means) & (here.m2s == there.m2s)
            report[f"{type(strategy).__name__} {arms} {objective!r}"] = bool(same.all())
class Eager(MeanVariance):
    warmup = 0
    @staticmethod
    def variance(count, mean, m2, pooled, own, params):
        return (m2 + pooled[0] + 1.0) / (count + 1.0)

for arms in (3, 26):
    problem = eq.Problem([laws[k % len(laws)] for k in range(arms)])
    for one_kernel in (False, True):
        plan = Setup(problem, Eager(), (6 * arms,), (), 3, one_kernel=one_kernel)
        here, there = on_cpu(plan, 7, 3), cuda.simulate(plan, 7, 3, card=card)
        same = (here.counts == there.counts) & (here.means == there.means) & (here.m2s == there.m2s)
        report[f"no warm-up {arms} {one_kernel}"] = bool(same.all())
units = eq.Problem([eq.Gaussian(0, 1), eq.Gaussian(0, 2.0**14)])
for weights in ((1.0, 2.0**-14), (2.0**-14, 1.0)):
    plan = Setup(units, s.Auto(), (60,), s.Auto().params(60, 2, None), 3, 1, Objective(math.inf, weights))
    report.setdefault("units", []).append(int(cuda.simulate(plan, 0, 8, card=card).counts[-1, 0].sum()))
gaussian = eq.Problem([eq.Gaussian(0, 4), eq.Gaussian(0, 1)])
single = cuda.simulate(Setup(gaussian, s.BAS(exploration=0.5), (60,), (0.5, 0.0), 1), 0, 200, single=True, card=card)
pulls = single.counts.sum(axis=1)
report["single"] = [pulls.min(), pulls.max(), float((4 / single.counts[0, 0]).mean())]
a = eq.simulate_budgets(gaussian, ["auto"], [40, 60], runs=12, engine="cuda")
b = eq.simulate_budgets(gaussian, ["auto"], [40, 60], runs=12)
oracle = Setup(gaussian, s.Oracle(), (90,), (), 1, 1, Objective(1.0))
report["neyman"] = [cuda.simulate(oracle, 0, 2, single, card).counts[0, :, 1].tolist() for single in (False, True)]
report["simulate"] = max(float(abs(x.losses / y.losses - 1).max()) for x, y in zip(a, b))
# The sums of every estimator, for two norms, in pieces of several runs: 12 runs in 4 batches.
blocks.BATCHES = 4
several = eq.Problem([eq.Gaussian(1, 4), eq.Rademacher(), eq.Exponential(), eq.StudentT(3)])
report["sums"] = 0.0
for p in (math.inf, 2.0):
    objective, chosen = Objective(p, (1.0, 2.0, 0.0, 1.0)), ("gaussian", "controls", "wald", "naive")
    plan = Setup(several, s.Auto(), (20, 30), s.Auto().params(30, 4, None), 3, 1, objective)
    multiples = blocks.multiples(plan, chosen, on_cpu(plan, 1000, 256))
    measurement = blocks.Measurement(plan, chosen, multiples, 12)
    firsts, wanted = measurement.pieces_of_blocks(12), cuda_sums.Estimates.of(plan, chosen, multiples)
    found = measurement.merged(0, firsts, cuda_sums.measure(plan, 0, 12, False, firsts, wanted, card))
    for here, there in zip(*(blocks.collect(measurement, [each], None) for each in (measurement.block(0), found))):
        assert here[0].count == there[0].count == 12
        pairs = [(here[0].mean, there[0].mean), (here[0].m2, there[0].m2), (here[1], there[1])]
        report["sums"] = max(report["sums"], *(float(abs(x - y).max() / abs(x).max()) for x, y in pairs))
far, near = (eq.Problem([eq.Gaussian(1.7e9 * far, 4e-6), eq.Gaussian(0, 1e-6)]) for far in (True, False))
report["far"] = []
for precision in ("double", "single"):
    given = {"runs": 12, "engine": "cuda", "estimator": "naive", "precision": precision}
    a, b = (eq.simulate(each, "auto", 60, **given) for each in (far, near))
    report["far"].append(bool((a.losses == b.losses).all() and (a.losses < 1e-5).all()))
report["refused"] = []
for given in ({"in_flight": 2}, {"costs": [1, 2]}):
    try:
        eq.simulate(gaussian, "auto", 40, runs=40, engine="cuda", **given)
    except ValueError as error:
        report["refused"].append(str(error))
print(json.dumps(report))
"""


def test_the_simulator_gives_the_cpus_bits() -> None:
    report = reported(SCRIPT)
    fewest, most, loss = report.pop("single")
    assert (fewest, most) == (60, 60)
    # Single precision has samples of its own: the loss of arm 1 is 0.09 (bounds.md), to a few percent in 200 runs.
    assert loss == pytest.approx(0.09, rel=0.1)
    # The samples are the same, and sums are formed in another order.
    assert report.pop("simulate") < 1e-13
    assert report.pop("sums") < 1e-12
    # Timestamps in single precision have no digit left of their deviations, unless they are simulated around 0.
    assert report.pop("far") == [True, True]
    # Eight runs of 60: deviations 1 and 128 with weights that make up for it, and with weights that do the opposite.
    even, uneven = report.pop("units")
    assert even == pytest.approx(240, abs=40)
    assert uneven < 100
    # Under p = 1 pulls go by standard deviations, 2 and 1.
    assert report.pop("neyman") == [[60, 30], [60, 30]]
    assert report.pop("refused") == [
        f"engine='cuda' cannot simulate {what}; engine='cpu' or a Dask client can" for what in ("in_flight=2", "costs")
    ]
    assert [name for name, same in report.items() if not same] == []
    assert len(report) == 72


def test_without_a_gpu_one_sentence() -> None:
    with contextlib.suppress(ValueError):
        cuda.check()
        pytest.skip("this machine has a GPU")
    problem = eq.Problem([eq.Gaussian(0, 4), eq.Gaussian(0, 1)])
    with pytest.raises(ValueError, match=r"found no NVIDIA GPU|needs numba-cuda"):
        eq.simulate(problem, budget=100, runs=10, engine="cuda")
    with pytest.raises(ValueError, match="precision must be one of 'double', 'single', got 'half'"):
        eq.simulate(problem, budget=100, runs=10, precision="half")
    with pytest.raises(ValueError, match="precision must be 'double' unless engine='cuda'"):
        eq.simulate(problem, budget=100, runs=10, precision="single")


def test_without_a_toolkit_one_sentence() -> None:
    """numba-cuda raises a RuntimeError when it is imported where no library of CUDA is."""
    code = """
import sys
class NoToolkit:
    def find_spec(self, name, path=None, target=None):
        if name == "numba.cuda":
            raise RuntimeError("No such file: libcudart.so.13")
sys.meta_path.insert(0, NoToolkit())
from equipoise.lab.cuda import engine as cuda
try:
    cuda.check()
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith('engine="cuda" found no CUDA toolkit on this machine')


def test_without_numba_cuda_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "cuda", None)
    with pytest.raises(ValueError, match=r"needs numba-cuda, which is not installed; to install it: pip install"):
        cuda.check()


def test_what_fits_into_shared_memory() -> None:
    """A block of an H100 or H200 has 227 KiB; ten arms with a number each and double precision fit, twenty do not."""
    card = cuda.Card()
    assert card.bytes_needed(10, False, 1) == (16 * 10 + 4 * 10) * 128 * 8 <= card.shared
    assert card.bytes_needed(20, False, 1) > card.shared >= card.bytes_needed(20, True, 1)
    assert card.bytes_needed(2, True, 3) == 32 * 2 * 128 * 4
