"""
Pulls per second of the CUDA engine, and that it agrees with the CPU.

Run it on a machine with an NVIDIA GPU: `python benchmarks/gpu.py`. The last line is one JSON object. Each figure is the
best of five launches of 4 million runs with n = 1000, the first arm N(0, 4) and the others N(0, 1), samples drawn by
address (seed, run, arm, i). Whole calls of `simulate`, with their pilot, their sums and their checks, stand beside the
kernels, and so do the whole leaderboard and the card's own generator of normals. Comparing with the CPU compiles
another twenty kernels, which takes minutes; `--speed` leaves it out.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any
from unittest import mock

import numpy as np

# Names that NumPy dropped and older releases of numba-cuda still ask for.
for _old, _new in (("row_stack", "vstack"), ("in1d", "isin"), ("trapz", "trapezoid")):
    if not hasattr(np, _old):
        setattr(np, _old, getattr(np, _new))

import equipoise as eq  # noqa: E402
from equipoise.engine import cpu  # noqa: E402
from equipoise.engine.setup import Setup  # noqa: E402
from equipoise.lab.board.leaderboard import leaderboard  # noqa: E402
from equipoise.lab.cuda import engine as cuda  # noqa: E402
from equipoise.lab.cuda import many as cuda_many  # noqa: E402
from equipoise.lab.cuda import rare_starts as cuda_starts  # noqa: E402
from equipoise.lab.suite import suite  # noqa: E402

RUNS, N = 4_000_000, 1000


def problem(arms: int) -> eq.Problem:
    return eq.Problem([eq.Gaussian(0, 4)] + [eq.Gaussian(0, 1)] * (arms - 1))


def speed(strategy: eq.strategies.Strategy, arms: int, single: bool) -> dict[str, Any]:
    plan = Setup(problem(arms), strategy, (N,), strategy.params(N, arms, None), 1)
    best = float("inf")
    for _ in range(6):  # the first one compiles
        launch, synchronize = cuda.prepare(plan, 0, RUNS, single)
        synchronize()
        start = time.perf_counter()
        launch()
        synchronize()
        best = min(best, time.perf_counter() - start)
    return {
        "strategy": strategy.name,
        "arms": arms,
        "precision": "single" if single else "double",
        "giga_pulls_per_second": round(RUNS * N / best / 1e9, 1),
    }


def agreement(strategy: eq.strategies.Strategy, laws: list[eq.Law]) -> dict[str, Any]:
    """How 2,048 runs in double precision agree with the CPU's: pulls exactly, means and M2 to rounding."""
    plan = Setup(eq.Problem(laws), strategy, (N,), strategy.params(N, len(laws), None), 1)
    here, there = cpu.simulate(plan, 0, 2048), cuda.simulate(plan, 0, 2048)
    same = (here.counts == there.counts).all(axis=(0, 1))
    pairs = ((here.means, there.means), (here.m2s, there.m2s))
    apart = [float((np.abs(a - b) / np.maximum(np.abs(a), 1e-9))[..., same].max()) for a, b in pairs]
    return {
        "strategy": strategy.name,
        "arms": len(laws),
        "same_pulls": float(same.mean()),
        "means_apart": apart[0],
        "m2s_apart": apart[1],
    }


def whole_call(strategy: Any, arms: int, precision: str) -> dict[str, Any]:
    """Seconds of a whole call of `simulate`: the first one, and the best of five more."""
    seconds = []
    for _ in range(6):
        start = time.perf_counter()
        sim = eq.simulate(problem(arms), strategy, N, runs=RUNS, engine="cuda", precision=precision)
        seconds.append(time.perf_counter() - start)
    return {
        "strategy": sim.strategy.name,
        "arms": arms,
        "precision": precision,
        "first_seconds": round(seconds[0], 2),
        "seconds": round(min(seconds[1:]), 3),
        "rescaled_regret": sim.rescaled_regret,
        "rescaled_error": sim.rescaled_error,
    }


def whole_leaderboard() -> dict[str, Any]:
    """Seconds of the leaderboard on the suite: the first one of this process, and the best of two more."""
    cases, seconds = list(suite()), []
    for _ in range(3):
        cuda_starts.starts.cache_clear()
        start = time.perf_counter()
        board = leaderboard(cases=cases, engine="cuda")
        seconds.append(time.perf_counter() - start)
    return {
        "cells": len(board.cells),
        "runs": sum(cell.runs for cell in board.cells),
        "pulls": sum(cell.runs * cell.case.budget for cell in board.cells),
        "first_seconds": round(seconds[0], 2),
        "seconds": round(min(seconds[1:]), 2),
    }


def launches_alone() -> dict[str, Any]:
    """
    Seconds of the leaderboard's launches, each while nothing else is on the card, and their sum.

    Pulls of a launch are those of its runs, which all go to the last of their budgets.
    """
    card, prepare = cuda.check(), cuda_many.prepare
    seconds, rates = [], []

    def timed(setups: Any, numbers: Any, **options: Any) -> Any:
        launch = prepare(setups, numbers, **options)
        pulls = sum(setup.checkpoints[-1] * len(each) for setup, each in zip(setups, numbers, strict=True))

        def alone() -> Any:
            card.synchronize()
            start = time.perf_counter()
            found = launch()
            card.synchronize()
            seconds.append(time.perf_counter() - start)
            rates.append(pulls / seconds[-1] / 1e9)
            return found

        return alone

    cuda_starts.starts.cache_clear()
    with mock.patch.object(cuda_many, "prepare", timed):
        leaderboard(engine="cuda")
    slowest, fastest = np.quantile(rates, [0.05, 0.95])
    return {
        "launches": len(seconds),
        "seconds": round(sum(seconds), 2),
        "giga_pulls_per_second_of_nine_in_ten": [round(float(slowest), 2), round(float(fastest), 2)],
    }


def bare_normals() -> float:
    """Single precision normals that the card draws and sums with numba.cuda's own generator."""
    from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_normal_float32

    device, threads, each = cuda.check(), 1 << 18, 4096

    @device.jit(fastmath=True)  # type: ignore[untyped-decorator]
    def draw(states: Any, out: Any) -> None:
        i = device.grid(1)
        total = np.float32(0)
        for _ in range(each):
            total += xoroshiro128p_normal_float32(states, i)
        out[i] = total

    states, out = create_xoroshiro128p_states(threads, seed=1), device.device_array(threads, np.float32)
    best = float("inf")
    for _ in range(4):
        device.synchronize()
        start = time.perf_counter()
        draw[threads // 128, 128](states, out)
        device.synchronize()
        best = min(best, time.perf_counter() - start)
    return round(threads * each / best / 1e9, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speed", action="store_true", help="do not compare with the CPU")
    compare = not parser.parse_args().speed
    b_as, auto = eq.strategies.BAS(exploration=0.5), eq.strategies.Auto()
    report: dict[str, Any] = {"card": str(cuda.check().get_current_device().name)}
    report["leaderboard"] = whole_leaderboard()
    report["leaderboard_launches_alone"] = launches_alone()
    report["speed"] = [
        speed(b_as, 2, True),
        speed(b_as, 2, False),
        speed(b_as, 8, True),
        speed(eq.strategies.CHAS(), 2, True),
        speed(eq.strategies.GAFSMAX(), 2, True),
        speed(auto, 2, True),
        speed(auto, 2, False),
        speed(auto, 8, True),
    ]
    report["whole_calls"] = [
        whole_call(strategy, arms, precision)
        for strategy, arms, precision in (
            ("auto", 2, "single"),
            ("auto", 2, "double"),
            ("auto", 8, "single"),
            (b_as, 2, "single"),
        )
    ]
    report["bare_normals_giga_per_second"] = bare_normals()
    mixed: list[eq.Law] = [
        eq.Gaussian(1, 4),
        eq.Rademacher(),
        eq.Bernoulli(0.3),
        eq.Uniform(),
        eq.Laplace(),
        eq.Empirical([1, 2, 7]),
    ]
    compared = (b_as, auto, eq.strategies.GAFSMAX(), eq.strategies.TwoStage(), eq.strategies.Oracle())
    if compare:
        report["agreement"] = [
            agreement(strategy, laws)
            for strategy in compared
            for laws in (list(problem(2).arms), mixed, mixed * 3, mixed * 6)
        ]
    print(json.dumps(report, indent=1))
    print(json.dumps(report))


if __name__ == "__main__":
    main()
