"""What every kernel for a card does at a step: draw samples, take one in, choose an arm, refresh the keys."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from equipoise.engine import streams
from equipoise.engine.rule import Rule, Steps, steps
from equipoise.engine.streams import U
from equipoise.lab.cuda.device import cuda, on_device, selects
from equipoise.numeric.tuples import reader, selector, writer


def _normal32(c0: Any, c1: Any) -> Any:
    """Return two single precision normals from two 32-bit words, by Box and Muller; none is beyond 6.8."""
    u = (np.float32(c0) + np.float32(0.5)) * np.float32(2.0**-32)
    radius = math.sqrt(np.float32(-2) * math.log(u))
    angle = np.float32(np.int32(np.uint32(c1))) * np.float32(math.pi * 2.0**-31)
    return radius * math.cos(angle), radius * math.sin(angle)


def four_of(single: bool) -> Callable[..., Any]:
    """Return the device function that draws samples 4q to 4q+3 of an arm."""
    pair, philox = on_device(streams.pair), on_device(streams.philox)
    low, shift = U(0xFFFFFFFF), U(32)

    normal32 = cuda.jit(device=True, fastmath=True)(_normal32)
    gaussian = streams.GAUSSIAN

    @cuda.jit(device=True, fastmath=single)
    def four(kind: Any, a: Any, b: Any, table: Any, seed: Any, run: Any, arm: Any, q: Any) -> Any:
        if single and kind == gaussian:
            c0, c1, c2, c3 = philox(q & low, arm & low, run & low, run >> shift, seed & low, seed >> shift)
            z0, z1 = normal32(c0, c1)
            z2, z3 = normal32(c2, c3)
            return a + b * z0, a + b * z1, a + b * z2, a + b * z3
        x0, x1 = pair(kind, a, b, table, seed, run, arm, q + q)
        x2, x3 = pair(kind, a, b, table, seed, run, arm, q + q + U(1))
        return x0, x1, x2, x3

    return four


def one_of(single: bool) -> Callable[..., Any]:
    """Return the device function that draws sample i of an arm, one of those that `four` draws."""
    pair, four, gaussian = on_device(streams.pair), four_of(single), streams.GAUSSIAN

    @cuda.jit(device=True, fastmath=single)
    def one(kind: Any, a: Any, b: Any, table: Any, seed: Any, run: Any, arm: Any, i: Any) -> Any:
        if single and kind == gaussian:
            x0, x1, x2, x3 = four(kind, a, b, table, seed, run, arm, U(i >> 2))
            return x0 if i & 3 == 0 else x1 if i & 3 == 1 else x2 if i & 3 == 2 else x3
        x0, x1 = pair(kind, a, b, table, seed, run, arm, U(i >> 1))
        return x1 if i & 1 else x0

    return one


def steps_of(rule: Rule, single: bool) -> Steps:
    """Return the steps of a rule as device functions."""
    one = np.float32(1) if single else 1.0
    return steps(rule, partial(on_device, single=single), cuda.jit(device=True, fastmath=single), one)


class Tuples(NamedTuple):
    """
    An arm's own numbers in memory, as device functions, and what is pooled before the first time.

    They lie at own[(k * n + i) * stride + at] for number i of arm k, in the column `at` of this run.

    - `read(own, k, at, stride)`, `write(own, k, at, stride, values)`: those of arm k;
    - `pick(condition, a, b)`: one of two tuples of them, by selects.
    """

    read: Any
    write: Any
    pick: Any
    no_sums: Any
    nothing_pooled: Any


def tuples_of(rule: Rule, single: bool) -> Tuples:
    """Return the functions for the own numbers of a rule."""
    compiled, n = cuda.jit(device=True, fastmath=single), rule.own
    zero = np.float32(0) if single else np.float64(0)
    read_words, write_words = reader(n, compiled, zero), writer(n, compiled)

    @compiled
    def read(own: Any, k: Any, at: Any, stride: Any) -> Any:
        return read_words(own, k * n * stride + at, stride)

    @compiled
    def write(own: Any, k: Any, at: Any, stride: Any, values: Any) -> None:
        write_words(own, k * n * stride + at, stride, values)

    pick = selector(n, selects(), compiled)
    return Tuples(read, write, pick, (zero,) * rule.sums, (zero,) * max(rule.pooled, 1))


class Decision(NamedTuple):
    """
    What both kernels do with all arms of a run, as device functions.

    - `choose(key, key_at, count, at, t, lowest, params)`: the arm to pull after t pulls, and the fewest pulls of an
      arm, as far as known;
    - `refresh(count, mean, m2, own, at, stride, key, key_at, ready, pooled, params, scales, exponent)`: what is pooled,
      given what was before; every key is found again.

    Arms are rows of these arrays; the run is the column `at`, and `key_at` of the keys. Own numbers lie as
    `Tuples` says.
    """

    choose: Any
    refresh: Any


def decision_of(rule: Rule, arms: int, single: bool) -> Decision:
    """Return the decision of a rule for this number of arms or, with 0, for any."""
    number = np.float32 if single else np.float64
    zero = number(0)
    has_floor = rule.floor is not None
    _, _, _, key_of, floor, add_share, pool = steps_of(rule, single)
    own_of, _, _, no_sums, _ = tuples_of(rule, single)
    select = selects()

    @cuda.jit(device=True, fastmath=single)
    def choose(key: Any, key_at: Any, count: Any, at: Any, t: Any, lowest: Any, params: Any) -> Any:
        K = arms if arms > 0 else key.shape[0]
        best = key[0, key_at]
        chosen = np.int32(0)
        for k in range(1, K):
            better = key[k, key_at] > best
            best = select(better, key[k, key_at], best)
            chosen = select(better, np.int32(k), chosen)
        if has_floor:
            least = floor(number(t), number(K), params)
            if lowest < least:
                fewest = count[0, at]
                least_pulled = np.int32(0)
                for k in range(1, K):
                    fewer = count[k, at] < fewest
                    fewest = select(fewer, count[k, at], fewest)
                    least_pulled = select(fewer, np.int32(k), least_pulled)
                chosen = select(fewest < least, least_pulled, chosen)
                lowest = fewest
        return chosen, lowest

    @cuda.jit(device=True, fastmath=single)
    def refresh(
        count: Any,
        mean: Any,
        m2: Any,
        own: Any,
        at: Any,
        stride: Any,
        key: Any,
        key_at: Any,
        ready: Any,
        pooled: Any,
        params: Any,
        scales: Any,
        exponent: Any,
    ) -> Any:
        K = arms if arms > 0 else key.shape[0]
        sums, known = no_sums, zero
        for k in range(K):
            held = own_of(own, k, at, stride)
            sums, known = add_share(count[k, at], mean[k, at], m2[k, at], held, pooled, params, sums, known)
        found = pool(sums, known, pooled, params)
        for k in range(K):
            if count[k, at] >= ready:
                held = own_of(own, k, at, stride)
                key[k, key_at] = key_of(count[k, at], mean[k, at], m2[k, at], held, found, params, scales[k], exponent)
        return found

    return Decision(choose, refresh)
