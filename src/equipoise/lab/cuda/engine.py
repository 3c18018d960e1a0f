"""
The CUDA engine: one thread per run, the same strategies and the same samples as on the CPU.

Every function that the kernels need, of the streams and of the strategy, is the one the CPU runs: `on_device` takes
its Python code and binds the names in it to device functions. In double precision the samples are those of the CPU
engine, bit for bit (except for laws that need an exponential), and so are the decisions, apart from ties within
rounding: a GPU fuses multiplications and additions. In single precision Gaussian samples are different ones, drawn four
at a time from 32-bit words for speed.

There are two kernels. For few arms, samples are drawn ahead into a ring in shared memory, by all threads at the same
steps: threads that each draw when they need to would wait for one another at every step. For many arms, their numbers
are in global memory, and each sample is drawn when it is needed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from equipoise.base.inputs import install_hint
from equipoise.engine.rule import NORM, PLAIN, Rule
from equipoise.engine.setup import Ends, Setup
from equipoise.engine.streams import U, encode
from equipoise.lab.cuda import many as cuda_many
from equipoise.lab.cuda.device import cuda, kept, launching, no_toolkit, on_device
from equipoise.lab.cuda.rule import decision_of, four_of, steps_of, tuples_of
from equipoise.problem import Objective
from equipoise.strategies import key as keys

# Runs that are sent to the card at once, at most; fewer where there are many arms.
LAUNCH = 1 << 20


@dataclass(frozen=True)
class Card:
    """
    What the kernels use of a card; results do not depend on it.

    Attributes
    ----------
    threads
        Threads of a block, each with a run of its own.
    registers
        Up to this number of arms their numbers are kept in registers, above it in shared memory if there is room.
    shared
        Bytes of shared memory that a block may have.
    """

    threads: int = 128
    registers: int = 8
    shared: int = 227 << 10

    def bytes_needed(self, arms: int, single: bool, own: int) -> int:
        """Return what a block needs of shared memory: the rings, and the numbers of arms not kept in registers."""
        numbers = 0 if arms <= self.registers else 3 * arms + max(own * arms, 1)
        return (ring_size(arms, single) * arms + numbers) * self.threads * (4 if single else 8)


CARD = Card()


def ring_size(arms: int, single: bool) -> int:
    """Return how many samples of an arm are kept: with more, fewer are drawn in vain, and fewer threads fit."""
    return 32 if arms <= 2 and single else 16 if arms <= 12 else 8


def check() -> Any:
    """Return numba.cuda, or raise an error that says what is missing."""
    if no_toolkit:
        raise ValueError(
            'engine="cuda" found no CUDA toolkit on this machine, which numba-cuda needs; '
            "pip install 'numba-cuda[cu13]' or 'numba-cuda[cu12]' installs one; engine=\"cpu\" needs none"
        )
    if cuda is None or not hasattr(cuda, "is_available"):
        raise ValueError(f'engine="cuda" needs numba-cuda, which is not installed; {install_hint("gpu")}')
    if not cuda.is_available():
        raise ValueError('engine="cuda" found no NVIDIA GPU with a driver on this machine; engine="cpu" needs none')
    return cuda


def refuse(in_flight: int, objective: Objective) -> None:
    """Refuse what only the CPU simulates: answers that come late, and samples that have prices."""
    if in_flight > 1 or objective.costs is not None:
        what = f"in_flight={in_flight}" if in_flight > 1 else "costs"
        raise ValueError(f"engine='cuda' cannot simulate {what}; engine='cpu' or a Dask client can")


@lru_cache(maxsize=64)
def _kernel(rule: Rule, arms: int, params: int, single: bool, card: Card) -> Any:
    """Return the kernel for this number of arms, with their numbers in registers or shared memory."""
    from numba import float32, float64

    fl = float32 if single else float64
    number = np.float32 if single else np.float64
    zero = number(0)
    THREADS = card.threads
    few, OWN = arms <= card.registers, rule.own
    RING = ring_size(arms, single)
    # Four are drawn at once, so that a full ring is sure to last for four steps less than it holds.
    STRETCH, MASK = RING - 4, RING - 1
    K, P = arms, params
    LOCAL_OWN, SHARED_OWN = K * max(OWN, 1), max(K * OWN, 1) * THREADS
    has_keep, has_pool = rule.keep is not None, rule.pool is not None
    own_of, write_own, pick_own, _, nothing_pooled = tuples_of(rule, single)
    steps_of_rule, decision = steps_of(rule, single), decision_of(rule, arms, single)
    take, key_of, choose, refresh = steps_of_rule.take, steps_of_rule.key, decision.choose, decision.refresh
    next_refresh, in_turn = on_device(keys.next_refresh), on_device(keys.in_turn)
    four = four_of(single)

    @cuda.jit(fastmath=single)
    def kernel(
        kinds: Any,
        parameters: Any,
        table: Any,
        seed: Any,
        first: Any,
        checkpoints: Any,
        given: Any,
        initial_own: Any,
        warmup: Any,
        scales: Any,
        exponent: Any,
        out: Any,
    ) -> None:
        r = cuda.grid(1)
        lane = cuda.threadIdx.x
        ring = cuda.shared.array((RING, K, THREADS), fl)
        if r >= out.shape[3]:
            return
        if few:
            count = cuda.local.array((K, 1), fl)
            mean = cuda.local.array((K, 1), fl)
            m2 = cuda.local.array((K, 1), fl)
            own = cuda.local.array(LOCAL_OWN, fl)
            at, stride = 0, 1
        else:
            count = cuda.shared.array((K, THREADS), fl)
            mean = cuda.shared.array((K, THREADS), fl)
            m2 = cuda.shared.array((K, THREADS), fl)
            own = cuda.shared.array(SHARED_OWN, fl)
            at, stride = lane, THREADS
        key = cuda.local.array((K, 1), fl)
        drawn = cuda.local.array(K, np.int32)
        params = cuda.local.array(P, fl)
        for p in range(P):
            params[p] = given[p]
        for k in range(K):
            count[k, at] = zero
            mean[k, at] = zero
            m2[k, at] = zero
            key[k, 0] = zero
            for i in range(OWN):
                own[(k * OWN + i) * stride + at] = number(initial_own[k, i])
            drawn[k] = 0
        run = first + U(r)
        pooled = nothing_pooled
        lowest = zero
        due = np.int32(next_refresh(0, K))
        keyed = np.int32(in_turn(warmup, K))
        ready = number(warmup)
        t = np.int32(0)
        left = np.int32(0)
        for c in range(len(checkpoints)):
            end = np.int32(checkpoints[c])
            while t < end:
                if left == 0:
                    left = np.int32(STRETCH)
                    for k in range(K):
                        while drawn[k] < np.int32(count[k, at]) + np.int32(STRETCH):
                            x0, x1, x2, x3 = four(
                                kinds[k], parameters[k, 0], parameters[k, 1], table, seed, run, U(k), U(drawn[k] >> 2)
                            )
                            slot = np.int32(drawn[k] & np.int32(MASK))
                            ring[slot, k, lane] = x0
                            ring[slot + 1, k, lane] = x1
                            ring[slot + 2, k, lane] = x2
                            ring[slot + 3, k, lane] = x3
                            drawn[k] = np.int32(drawn[k] + 4)
                left = np.int32(left - 1)
                if t < keyed:
                    b = np.int32(t % np.int32(K))
                else:
                    b, lowest = choose(key, 0, count, at, t, lowest, params)
                if few:
                    # By selects, so that the arms' numbers stay in registers, which have no index.
                    its_count, its_mean, its_m2 = count[0, at], mean[0, at], m2[0, at]
                    its_own = own_of(own, 0, at, stride)
                    for k in range(1, K):
                        this = b == np.int32(k)
                        its_count = cuda.selp(this, count[k, at], its_count)
                        its_mean = cuda.selp(this, mean[k, at], its_mean)
                        its_m2 = cuda.selp(this, m2[k, at], its_m2)
                        its_own = pick_own(this, own_of(own, k, at, stride), its_own)
                else:
                    its_count, its_mean, its_m2 = count[b, at], mean[b, at], m2[b, at]
                    its_own = own_of(own, b, at, stride)
                x = ring[np.int32(np.int32(its_count) & np.int32(MASK)), b, lane]
                its_count, its_mean, its_m2, its_own = take(x, its_count, its_mean, its_m2, its_own, pooled, params)
                t = np.int32(t + 1)
                its_key = zero
                if its_count >= ready:
                    its_key = key_of(its_count, its_mean, its_m2, its_own, pooled, params, scales[b], exponent)
                for k in range(K):
                    key[k, 0] = cuda.selp(b == np.int32(k), its_key, key[k, 0])
                if few:
                    for k in range(K):
                        this = b == np.int32(k)
                        count[k, at] = cuda.selp(this, its_count, count[k, at])
                        mean[k, at] = cuda.selp(this, its_mean, mean[k, at])
                        m2[k, at] = cuda.selp(this, its_m2, m2[k, at])
                        if has_keep:
                            write_own(own, k, at, stride, pick_own(this, its_own, own_of(own, k, at, stride)))
                else:
                    count[b, at], mean[b, at], m2[b, at] = its_count, its_mean, its_m2
                    if has_keep:
                        write_own(own, b, at, stride, its_own)
                if has_pool and t >= due:
                    due = np.int32(next_refresh(t, K))
                    pooled = refresh(count, mean, m2, own, at, stride, key, 0, ready, pooled, params, scales, exponent)
            for k in range(K):
                out[0, c, k, r] = count[k, at]
                out[1, c, k, r] = mean[k, at]
                out[2, c, k, r] = m2[k, at]

    return kept(kernel)


def launch_runs(arms: int, checkpoints: int) -> int:
    """Return how many runs to send to the card at once, so that they and their ends fit into a few gigabytes."""
    return max(1024, min(LAUNCH, 2**27 // (arms * (checkpoints + 2))))


# One thread at a time compiles kernels and uses the card.
ONE_AT_A_TIME = threading.Lock()


def simulate(setup: Setup, first: int, runs: int, single: bool = False, card: Card = CARD) -> Ends:
    """Simulate runs `first` to `first + runs` of the setup on the card."""
    with ONE_AT_A_TIME:
        launch, _ = prepare(setup, first, runs, single, card)
        out = launch().copy_to_host()
    return Ends(*out.astype(np.float64, copy=False))


def prepare(
    setup: Setup, first: int, runs: int, single: bool = False, card: Card = CARD
) -> tuple[Callable[[], Any], Callable[[], None]]:
    """Send everything to the card; return a function that starts the runs, and one that waits for them."""
    check()
    refuse(setup.in_flight, setup.objective)
    arms, strategy = len(setup.problem), setup.strategy
    number = np.float32 if single else np.float64
    # Where there are scales, those of weights alone have an exponent of one.
    rule = Rule.of(strategy, PLAIN if setup.form == PLAIN else NORM)
    if setup.one_kernel or card.bytes_needed(arms, single, rule.own) > card.shared:
        numbers = np.arange(first, first + runs, dtype=np.uint64)
        return cuda_many.prepare([setup], [numbers], single, card.threads), cuda.synchronize
    params = setup.params or (0.0,)
    kinds, parameters, table = encode(setup.problem.arms)
    out = cuda.device_array((3, len(setup.checkpoints), arms, runs), number)
    arguments = [
        cuda.to_device(kinds),
        cuda.to_device(parameters.astype(number)),
        cuda.to_device(table),
        U(setup.seed),
        U(first),
        cuda.to_device(np.array(setup.checkpoints)),
        cuda.to_device(cuda_many.rounded(params, number)),
        cuda.to_device(setup.initial_own.astype(number)),
        strategy.warmup,
        cuda.to_device(setup.objective.scales(arms).astype(number)),
        number(setup.objective.exponent),
        out,
    ]
    kernel = _kernel(rule, arms, len(params), single, card)

    def launch() -> Any:
        with launching():
            kernel[-(-runs // card.threads), card.threads](*arguments)
        return out

    return launch, cuda.synchronize
