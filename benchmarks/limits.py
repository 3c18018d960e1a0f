"""
Measure what a pull is made of, on one core and on a GPU, and whole pulls in the same process.

Run it with `python benchmarks/limits.py`; with `--card` it also measures an NVIDIA GPU. The last line is one JSON
object, which docs/explanation/limits.md quotes. On a core every figure is in nanoseconds for one operation, the best of
several rounds in which all pieces take turns; numbers come from arrays that fit into the first level of cache. On a
card it is in billions a second over all of it.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

# Names that NumPy dropped and older releases of numba-cuda still ask for.
for _old, _new in (("row_stack", "vstack"), ("in1d", "isin"), ("trapz", "trapezoid")):
    if not hasattr(np, _old):
        setattr(np, _old, getattr(np, _new))

import equipoise as eq  # noqa: E402
from equipoise.compiled import jit  # noqa: E402
from equipoise.engine import cpu, streams  # noqa: E402
from equipoise.engine.setup import Setup  # noqa: E402
from equipoise.engine.streams import U  # noqa: E402
from equipoise.strategies import Strategy  # noqa: E402

ROUNDS, LENGTH, TIMES, RUNS = 15, 1024, 256, 1024
BAS: Strategy = eq.strategies.BAS(exploration=0.5)
# What a pull of B-AS does besides drawing: divisions and roots of its formula, and numbers of its arm read and written.
DIVISIONS, ROOTS, BYTES = 4, 2, 64


# ---- one core


@jit
def _words(out: Any, times: int) -> None:
    for block in range(times):
        for i in range(len(out) // 2):
            w0, w1 = streams.words(U(1), U(i), U(0), U(block))
            out[2 * i] = float(w0)
            out[2 * i + 1] = float(w1)


@jit
def _normals(out: Any, times: int) -> None:
    half = len(out) // 2
    for block in range(times):
        for i in range(half):
            w0, w1 = streams.words(U(1), U(i), U(0), U(block))
            z0, z1 = streams.normals(w0, w1)
            out[i] = z0
            out[half + i] = z1


@jit
def _roots(out: Any, times: int) -> None:
    for _ in range(times):
        for i in range(len(out)):
            out[i] = math.sqrt(out[i] + 1.0)


@jit
def _divisions(out: Any, times: int) -> None:
    for _ in range(times):
        for i in range(len(out)):
            out[i] = 3.0 / (out[i] + 1.0)


@jit
def _additions(out: Any, times: int) -> None:
    for _ in range(times):
        for i in range(len(out)):
            out[i] = out[i] + 1.0


def pulls(arms: int) -> Callable[[], int]:
    """Whole pulls of B-AS on Gaussian arms."""
    setup = _setup(arms, 1000)

    def work() -> int:
        cpu.simulate(setup, 0, RUNS)
        return RUNS * 1000

    return work


def _setup(arms: int, budget: int) -> Setup:
    problem = eq.Problem([eq.Gaussian(0, 4)] + [eq.Gaussian(0, 1)] * (arms - 1))
    return Setup(problem, BAS, (budget,), BAS.params(budget, arms, None), 1)


def repeated(function: Callable[..., None]) -> Callable[[], int]:
    """A loop over an array that stays in the first level of cache."""
    out = np.ones(LENGTH)

    def work() -> int:
        function(out, TIMES)
        return LENGTH * TIMES

    return work


def copied(size: int) -> Callable[[], int]:
    """Copying an array of this many bytes: each byte is read and written."""
    source, target = np.ones(size // 8), np.ones(size // 8)
    times = max(1, (1 << 26) // size)

    def work() -> int:
        for _ in range(times):
            np.copyto(target, source)
        return 2 * size * times

    return work


def numpys() -> Callable[[], int]:
    """NumPy's normals, a million at a time."""
    rng, out = np.random.default_rng(0), np.empty(1_000_000)

    def work() -> int:
        rng.standard_normal(out=out)
        return out.size

    return work


def core() -> dict[str, float]:
    """Nanoseconds for one of each, on one core."""
    pieces = {
        "numpy_normal": numpys(),
        "random_bits": repeated(_words),
        "normal": repeated(_normals),
        "root": repeated(_roots),
        "division": repeated(_divisions),
        "addition": repeated(_additions),
        "byte_in_memory": copied(1 << 27),
        "pull_2": pulls(2),
        "pull_10": pulls(10),
    }
    best = dict.fromkeys(pieces, math.inf)
    for _ in range(ROUNDS):
        for name, work in pieces.items():
            start = time.thread_time()
            done = work()
            best[name] = min(best[name], 1e9 * (time.thread_time() - start) / done)
    # Reading and writing eight bytes and adding are part of each loop.
    best["byte_in_cache"] = best["addition"] / 16
    for name in ("root", "division"):
        best[name] -= best["addition"]
    best["least_pull"] = (
        best["normal"] + DIVISIONS * best["division"] + ROOTS * best["root"] + BYTES * best["byte_in_cache"]
    )
    return {name: float(f"{value:.4g}") for name, value in best.items()}


# ---- a card


def on_card() -> dict[str, Any]:
    """Billions a second of each, on a GPU, in single and in double precision."""
    from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_normal_float32

    from equipoise.lab.cuda import engine as engine
    from equipoise.lab.cuda.device import on_device
    from equipoise.lab.cuda.rule import four_of

    device = engine.check()
    threads, each = 1 << 19, 1024
    states = create_xoroshiro128p_states(threads, seed=1)

    def rate(kernel: Any, *arguments: Any, done: int = threads * each) -> float:
        best = math.inf
        for _ in range(4):
            device.synchronize()
            start = time.perf_counter()
            kernel[threads // 128, 128](*arguments)
            device.synchronize()
            best = min(best, time.perf_counter() - start)
        return float(f"{done / best / 1e9:.4g}")

    @device.jit(fastmath=True)  # type: ignore[untyped-decorator]
    def own_generator(states: Any, out: Any) -> None:
        i = device.grid(1)
        total = np.float32(0)
        for _ in range(each):
            total += xoroshiro128p_normal_float32(states, i)
        out[i] = total

    @device.jit  # type: ignore[untyped-decorator]
    def copy(source: Any, target: Any) -> None:
        for i in range(device.grid(1), len(source), device.gridsize(1)):
            target[i] = source[i]

    philox = on_device(streams.philox)

    @device.jit  # type: ignore[untyped-decorator]
    def bits(out: Any) -> None:
        i = device.grid(1)
        total = U(0)
        for block in range(each // 4):
            c0, c1, c2, c3 = philox(U(block), U(0), U(i), U(0), U(1), U(0))
            total += c0 ^ c1 ^ c2 ^ c3
        out[i] = total

    def normals(single: bool) -> Any:
        four, number = four_of(single), np.float32 if single else np.float64

        @device.jit(fastmath=single)  # type: ignore[untyped-decorator]
        def draw(table: Any, mean: Any, sd: Any, out: Any) -> None:
            i = device.grid(1)
            total = mean
            for block in range(each // 4):
                x0, x1, x2, x3 = four(streams.GAUSSIAN, mean, sd, table, U(1), U(i), U(0), U(block))
                total += (number(x0) + number(x1)) + (number(x2) + number(x3))
            out[i] = total

        return draw

    def chain(single: bool, root: bool) -> Any:
        """Four independent chains a thread, so that it does not wait for one result."""

        @device.jit(fastmath=single)  # type: ignore[untyped-decorator]
        def loop(one: Any, out: Any) -> None:
            i = device.grid(1)
            a, b, c, d = one, one + one, one + one + one, one
            for _ in range(each // 4):
                if root:
                    a, b, c, d = math.sqrt(a + one), math.sqrt(b + one), math.sqrt(c + one), math.sqrt(d + one)
                else:
                    a, b, c, d = one / (a + one), one / (b + one), one / (c + one), one / (d + one)
            out[i] = (a + b) + (c + d)

        return loop

    found: dict[str, Any] = {"card": str(device.get_current_device().name)}
    table = device.to_device(np.zeros(1))
    found["random_words_32"] = rate(bits, device.device_array(threads, np.uint64))
    found["own_generator_single"] = rate(own_generator, states, device.device_array(threads, np.float32))
    for single in (True, False):
        number, name = (np.float32, "single") if single else (np.float64, "double")
        out = device.device_array(threads, number)
        found[f"normal_{name}"] = rate(normals(single), table, number(0), number(1), out)
        found[f"root_{name}"] = rate(chain(single, True), number(1), out)
        found[f"division_{name}"] = rate(chain(single, False), number(1), out)
        least = 1 / found[f"normal_{name}"] + DIVISIONS / found[f"division_{name}"] + ROOTS / found[f"root_{name}"]
        found[f"least_pull_{name}"] = float(f"{1 / least:.4g}")
        found[f"pull_2_{name}"] = pulls_on_card(engine, single)
    source, target = (device.device_array(1 << 28, np.float64) for _ in range(2))
    found["gigabytes"] = rate(copy, source, target, done=16 << 28)
    return found


def pulls_on_card(engine: Any, single: bool, runs: int = 4_000_000) -> float:
    """Whole pulls of B-AS on two arms, in billions a second."""
    best = math.inf
    for _ in range(4):
        launch, synchronize = engine.prepare(_setup(2, 1000), 0, runs, single)
        synchronize()
        start = time.perf_counter()
        launch()
        synchronize()
        best = min(best, time.perf_counter() - start)
    return float(f"{runs * 1000 / best / 1e9:.4g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--card", action="store_true", help="also measure an NVIDIA GPU")
    report: dict[str, Any] = {"core": core()}
    if parser.parse_args().card:
        report["card"] = on_card()
    print(json.dumps(report, indent=1))
    print(json.dumps(report))


if __name__ == "__main__":
    main()
