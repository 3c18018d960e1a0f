"""
The CUDA kernel for any number of arms, whose numbers are in global memory: one launch simulates runs of many setups.

Each thread has one run, a column of all arrays, and knows by `cells` which of the setups it belongs to. So a launch of
many problems with a few thousand runs each keeps a whole card busy, where a launch of one would leave most of it idle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from equipoise.engine.rule import NORM, PLAIN, Rule
from equipoise.engine.setup import Setup
from equipoise.engine.streams import U, encode
from equipoise.lab.cuda.device import cuda, kept, launching, on_device
from equipoise.lab.cuda.rule import decision_of, one_of, steps_of, tuples_of
from equipoise.strategies import key as keys

THREADS = 128


@lru_cache(maxsize=64)
def _kernel(rule: Rule, params: int, single: bool) -> Any:
    """Return the kernel of a rule, with this number of parameters."""
    from numba import float32, float64

    fl = float32 if single else float64
    number = np.float32 if single else np.float64
    zero, P, OWN = number(0), params, rule.own
    has_keep, has_pool = rule.keep is not None, rule.pool is not None
    own_of, write_own, _, _, nothing_pooled = tuples_of(rule, single)
    steps_of_rule, decision = steps_of(rule, single), decision_of(rule, 0, single)
    take, key_of, choose, refresh = steps_of_rule.take, steps_of_rule.key, decision.choose, decision.refresh
    next_refresh, in_turn = on_device(keys.next_refresh), on_device(keys.in_turn)
    one = one_of(single)

    @cuda.jit(fastmath=single)
    def kernel(
        cells: Any,
        numbers: Any,
        all_kinds: Any,
        all_parameters: Any,
        table: Any,
        seed: Any,
        all_checkpoints: Any,
        given: Any,
        initial_own: Any,
        warmup: Any,
        all_scales: Any,
        exponent: Any,
        out: Any,
        state: Any,
        own: Any,
    ) -> None:
        r = cuda.grid(1)
        if r >= out.shape[3]:
            return
        cell, run = cells[r], numbers[r]
        kinds, parameters, checkpoints = all_kinds[cell], all_parameters[cell], all_checkpoints[cell]
        scales = all_scales[cell]
        count, mean, m2, key = state[0], state[1], state[2], state[3]
        K, stride = len(kinds), out.shape[3]
        params = cuda.local.array(P, fl)
        for p in range(P):
            params[p] = given[cell, p]
        for k in range(K):
            count[k, r] = zero
            mean[k, r] = zero
            m2[k, r] = zero
            key[k, r] = zero
            for i in range(OWN):
                own[(k * OWN + i) * stride + r] = number(initial_own[cell, k, i])
        pooled, lowest, ready = nothing_pooled, zero, number(warmup)
        due, keyed = next_refresh(0, K), in_turn(warmup, K)
        t = 0
        for c in range(len(checkpoints)):
            while t < checkpoints[c]:
                if t < keyed:
                    b = np.int32(t % K)
                else:
                    b, lowest = choose(key, r, count, r, t, lowest, params)
                x = one(kinds[b], parameters[b, 0], parameters[b, 1], table, seed, run, U(b), int(count[b, r]))
                its_count, its_mean, its_m2, its_own = take(
                    number(x), count[b, r], mean[b, r], m2[b, r], own_of(own, b, r, stride), pooled, params
                )
                count[b, r], mean[b, r], m2[b, r] = its_count, its_mean, its_m2
                if has_keep:
                    write_own(own, b, r, stride, its_own)
                if its_count >= ready:
                    key[b, r] = key_of(its_count, its_mean, its_m2, its_own, pooled, params, scales[b], exponent)
                t += 1
                if has_pool and t >= due:
                    due = next_refresh(t, K)
                    pooled = refresh(count, mean, m2, own, r, stride, key, r, ready, pooled, params, scales, exponent)
            for k in range(K):
                out[0, c, k, r] = count[k, r]
                out[1, c, k, r] = mean[k, r]
                out[2, c, k, r] = m2[k, r]

    return kept(kernel)


def rounded(params: Any, number: Any) -> Any:
    """Return parameters in this precision; those beyond its range are its largest numbers, with their sign."""
    limits = np.finfo(number)
    return np.clip(params, float(limits.min), float(limits.max)).astype(number)


def alike(setup: Setup) -> tuple[Any, ...]:
    """Return what must be the same in all setups of a launch."""
    rule = Rule.of(setup.strategy, PLAIN if setup.form == PLAIN else NORM)
    arms, checkpoints, exponent = len(setup.problem), len(setup.checkpoints), setup.objective.exponent
    return rule, arms, checkpoints, len(setup.params), setup.strategy.warmup, setup.seed, exponent


def size(setup: Setup) -> int:
    """Return how many numbers a run has on the card: where it ended, count, mean, M2 and key by arm, own numbers."""
    return len(setup.problem) * (3 * len(setup.checkpoints) + 4 + max(len(setup.strategy.own), 1))


def prepare(
    setups: Sequence[Setup], numbers: Sequence[Any], single: bool = False, threads: int = THREADS, stream: Any = 0
) -> Callable[[], Any]:
    """
    Send setups that are `alike` to the card.

    Parameters
    ----------
    setups, numbers
        What to simulate, and the numbers of the runs of each.
    single
        Whether in single precision.
    threads
        Threads of a block.
    stream
        The stream in which everything happens.

    Returns
    -------
    callable
        Starts the runs, and returns where they will have ended, on the card: counts, means and M2, by checkpoint and
        arm; all runs of a setup follow one another, in the order of the setups.
    """
    number = np.float32 if single else np.float64
    rule, arms, checkpoints, params, warmup, seed, exponent = alike(setups[0])
    lengths = [len(each) for each in numbers]
    runs = sum(lengths)
    # All laws in one table.
    kinds, parameters, table = encode(tuple(law for setup in setups for law in setup.problem.arms))
    out = cuda.device_array((3, checkpoints, arms, runs), number)
    arguments = [
        _sent(np.repeat(np.arange(len(setups), dtype=np.int32), lengths), stream),
        _sent(np.concatenate([np.asarray(each, np.uint64) for each in numbers]), stream),
        _sent(kinds.reshape(len(setups), arms), stream),
        _sent(parameters.astype(number).reshape(len(setups), arms, 2), stream),
        _sent(table, stream),
        U(seed),
        _sent(np.array([setup.checkpoints for setup in setups]), stream),
        _sent(rounded([setup.params or (0.0,) for setup in setups], number), stream),
        _sent(np.array([setup.initial_own for setup in setups], number), stream),
        warmup,
        _sent(np.array([setup.objective.scales(arms) for setup in setups], number), stream),
        number(exponent),
        out,
        cuda.device_array((4, arms, runs), number),
        cuda.device_array(max(rule.own, 1) * arms * runs, number),
    ]
    kernel = _kernel(rule, max(params, 1), single)

    def launch() -> Any:
        with launching():
            kernel[-(-runs // threads), threads, stream](*arguments)
        return out

    return launch


def _sent(values: Any, stream: Any) -> Any:
    return cuda.to_device(values, stream=stream)
