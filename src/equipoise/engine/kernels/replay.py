"""
The CPU kernel for replays of a study: it is compiled once, and takes a strategy's functions by address.

A study compiles its strategy's functions anyway, so that its replays need nothing new. A pull takes about three times
as long as in `lanes`, where the strategy is compiled into the kernel; that pays off only after some ten million. The
laws of a replay are fitted to samples (`study.fitted`), so that the kernel has no other kinds of laws in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from equipoise.compiled import jit
from equipoise.engine.functions import (
    FUNCTION_WORDS,
    call_floor,
    call_keep,
    call_pool,
    call_share,
    call_variance,
    compile_rule,
)
from equipoise.engine.streams import observed_pair_of
from equipoise.numeric import moments
from equipoise.strategies import Strategy
from equipoise.strategies import key as keys


class Called(NamedTuple):
    """The addresses of a strategy's functions, 0 where it has none."""

    variance: int
    floor: int
    keep: int
    share: int
    pool: int


_key = jit(keys.key)
_next_refresh = jit(keys.next_refresh)
_in_turn = jit(keys.in_turn)
_add = jit(moments.add)


@jit
def _rekey(arms: Any, k: int, memory: Any, own_at: Any, called: Any, rule: Any, scales: Any, exponent: float) -> None:
    """Find the key of arm k."""
    v = call_variance(called.variance, arms[0, k], arms[1, k], arms[2, k], memory, 0, own_at[k], rule)
    # As a study does, which divides by the pulls when they change.
    arms[3, k] = _key(v, 1.0, scales[k], exponent) / arms[0, k]


@jit
def _refresh(
    arms: Any, memory: Any, sums_at: int, own_at: Any, called: Any, rule: Any, scales: Any, exponent: float
) -> None:
    """Find what is pooled over the arms, and every key."""
    known = 0.0
    for j in range(sums_at, own_at[0]):
        memory[j] = 0.0
    for k in range(len(own_at)):
        if arms[0, k] >= 2:
            at = own_at[k]
            call_share(called.share, arms[0, k], arms[1, k], arms[2, k], memory, 0, at, sums_at, rule)
            known += 1.0
    call_pool(called.pool, known, memory, sums_at, 0, rule)
    for k in range(len(own_at)):
        _rekey(arms, k, memory, own_at, called, rule, scales, exponent)


@jit
def _choose(arms: Any, least: float) -> int:
    """Return the least pulled arm if it has fewer pulls than `least`, else that with the largest key."""
    fewest, best = 0, 0
    for k in range(1, arms.shape[1]):
        if arms[0, k] < arms[0, fewest]:
            fewest = k
        if arms[3, k] > arms[3, best]:
            best = k
    return fewest if arms[0, fewest] < least else best


def _simulate(
    laws: Any,
    limits: Any,
    numbers: Any,
    arms: Any,
    memory: Any,
    sums_at: int,
    own_at: Any,
    called: Any,
    rule: Any,
    ends: Any,
) -> None:
    """
    Simulate all runs of `laws`, one after the other.

    `arms` has the count, mean, M2 and key of each arm and the second sample of a pair; `memory` what is pooled, from
    `sums_at` on the sums it is made of, and at `own_at` the own numbers of each arm.
    """
    K, own = len(laws.kinds), numbers.own.shape[1]
    in_turn = _in_turn(numbers.warmup, K)
    for run in range(len(laws.runs)):
        for i in range(own_at[0]):
            memory[i] = 0.0
        for k in range(K):
            arms[0, k], arms[1, k], arms[2, k] = 0.0, 0.0, 0.0
            for i in range(own):
                memory[own_at[k] + i] = numbers.own[k, i]
        refresh, t = _next_refresh(0, K), 0
        for c in range(len(limits)):
            while t < limits[c]:
                least = -math.inf
                if called.floor != 0:
                    least = call_floor(called.floor, float(t), float(K), memory, rule)
                k = t % K if t < in_turn else _choose(arms, least)
                i, x = int(arms[0, k]), arms[4, k]
                if i & 1 == 0:
                    x, arms[4, k] = observed_pair_of(laws, np.uint64(run), k, i >> 1)
                arms[0, k], arms[1, k], arms[2, k] = _add(arms[0, k], arms[1, k], arms[2, k], x)
                if called.keep != 0:
                    count, mean, m2 = arms[0, k], arms[1, k], arms[2, k]
                    call_keep(called.keep, x, count, mean, m2, memory, 0, own_at[k], rule)
                t += 1
                if called.pool != 0 and t >= refresh:
                    refresh = _next_refresh(t, K)
                    _refresh(arms, memory, sums_at, own_at, called, rule, numbers.scales, numbers.exponent)
                else:
                    _rekey(arms, k, memory, own_at, called, rule, numbers.scales, numbers.exponent)
            for k in range(K):
                ends[0, c, k, run], ends[1, c, k, run], ends[2, c, k, run] = arms[0, k], arms[1, k], arms[2, k]


_run = jit(_simulate, nogil=True)


def kernel(strategy: Strategy, params: tuple[float, ...]) -> Callable[..., None]:
    """Return the kernel for a strategy with these parameters."""
    pooled, sums, rule = len(strategy.pooled), len(strategy.sums), compile_rule(strategy, params)
    called = Called(*rule[:FUNCTION_WORDS].view(np.int64).tolist())

    def run(laws: Any, limits: Any, numbers: Any, ends: Any) -> None:
        # The parameters are in the rule; here they would make the kernel one for their number.
        numbers, (K, own) = numbers._replace(params=(0.0,)), numbers.own.shape
        own_at = pooled + sums + own * np.arange(K)
        _run(laws, limits, numbers, np.empty((5, K)), np.empty(own_at[0] + K * own), pooled, own_at, called, rule, ends)

    return run
