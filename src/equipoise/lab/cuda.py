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

import ast
import inspect
import math
import textwrap
import threading
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from equipoise import compiled, floats
from equipoise.inputs import install_hint
from equipoise.lab import streams
from equipoise.lab.rule import NORM, PLAIN, Rule, Steps, steps
from equipoise.lab.setup import Ends, Setup
from equipoise.lab.streams import U, encode
from equipoise.problem import Objective
from equipoise.strategies import key as keys
from equipoise.tuples import reader, selector, writer

try:
    from numba import cuda
except ImportError:
    cuda = None

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


def _in_simulator() -> bool:
    from numba.core import config

    return bool(config.ENABLE_CUDASIM)


def kept(kernel: Any) -> Any:
    """Return a kernel whose machine code is kept on disk, as that of the CPU is; Numba's simulator has none."""
    return kernel if _in_simulator() else compiled.kept(kernel)


@lru_cache(maxsize=1)
def _primitives() -> dict[int, Any]:
    """Return what replaces the CPU's intrinsics on the device, by their identity."""
    if _in_simulator():
        names = {
            "fma": lambda a, b, c: float(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))),
            "as_float": lambda bits: float(np.uint64(bits).view(np.float64)),
            "as_bits": lambda x: np.float64(x).view(np.uint64),
            "select": lambda condition, a, b: a if condition else b,
        }
    else:
        from numba.cuda import libdevice

        @cuda.jit(device=True)
        def as_float(bits: Any) -> Any:
            return libdevice.longlong_as_double(np.int64(bits))

        @cuda.jit(device=True)
        def as_bits(x: Any) -> Any:
            return np.uint64(libdevice.double_as_longlong(x))

        @cuda.jit(device=True)
        def select(condition: Any, a: Any, b: Any) -> Any:
            return a if condition else b

        @cuda.jit(device=True)
        def fma(a: Any, b: Any, c: Any) -> Any:
            return libdevice.fma(a, b, c)

        names = {"fma": fma, "as_float": as_float, "as_bits": as_bits, "select": select}
    return {id(getattr(floats, name)): function for name, function in names.items()}


def on_device(function: Any, single: bool = False) -> Any:
    """
    Return a function, and every function that it calls, as a device function.

    With `single`, numbers in its text and those that it refers to are single precision, as one double would make all
    arithmetic around it double.
    """
    known: dict[int, Any] = {}

    def convert(thing: Any) -> Any:
        if single and thing is floats.log:
            # Ours is made of the bits of a double.
            return cuda.jit(device=True, fastmath=True)(_log32)
        if id(thing) in _primitives():
            return _primitives()[id(thing)]
        plain = getattr(thing, "py_func", thing)
        if not isinstance(plain, types.FunctionType):
            return thing
        if id(plain) not in known:
            plain_code = _singled(plain) if single else plain.__code__
            scope = {name: value for name, value in plain.__globals__.items() if name in _names(plain_code)}
            cells = dict(
                zip(plain.__code__.co_freevars, (c.cell_contents for c in plain.__closure__ or ()), strict=True)
            )
            # A name that is free in the function is a global of its copy.
            scope |= cells | {"__builtins__": __builtins__, "_single": np.float32}
            copy = types.FunctionType(_without_cells(plain_code), scope, plain.__name__, plain.__defaults__)
            known[id(plain)] = None
            for name, value in list(scope.items()):
                if hasattr(value, "py_func") or id(value) in _primitives():
                    scope[name] = convert(value)
                elif single and type(value) is float:
                    scope[name] = np.float32(value)
            known[id(plain)] = cuda.jit(device=True, fastmath=single)(copy)
        return known[id(plain)]

    return convert(function)


def _names(code: types.CodeType) -> set[str]:
    return set(code.co_names) | set(code.co_freevars)


def _without_cells(code: types.CodeType) -> types.CodeType:
    if code.co_freevars:
        raise ValueError(f"{code.co_name} must take what it refers to as parameters to run on a GPU")
    return code


class _Singles(ast.NodeTransformer):
    """Make numbers single precision, except for those that index."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) not in (int, float):
            return node
        call = ast.Call(ast.Name("_single", ast.Load()), [node], [])
        return ast.copy_location(call, node)


def _singled(function: types.FunctionType) -> types.CodeType:
    """Return the code of a function with its numbers in single precision."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    [definition] = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    definition.decorator_list, definition.returns = [], None
    for argument in definition.args.args:
        argument.annotation = None
    module = ast.fix_missing_locations(_Singles().visit(ast.Module([definition], [])))
    scope: dict[str, Any] = {}
    exec(compile(module, function.__code__.co_filename, "exec"), {}, scope)
    code: types.CodeType = scope[definition.name].__code__
    return code


def _log32(x: Any) -> Any:
    """Return the natural logarithm in single precision."""
    return math.log(x)


def _normal32(c0: Any, c1: Any) -> Any:
    """Return two single precision normals from two 32-bit words, by Box and Muller; none is beyond 6.8."""
    u = (np.float32(c0) + np.float32(0.5)) * np.float32(2.0**-32)
    radius = math.sqrt(np.float32(-2) * math.log(u))
    angle = np.float32(np.int32(np.uint32(c1))) * np.float32(math.pi * 2.0**-31)
    return radius * math.cos(angle), radius * math.sin(angle)


def _four(single: bool) -> Callable[..., Any]:
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


def _steps(rule: Rule, single: bool) -> Steps:
    """Return the steps of a rule as device functions."""
    one = np.float32(1) if single else 1.0
    return steps(rule, partial(on_device, single=single), cuda.jit(device=True, fastmath=single), one)


class _Tuples(NamedTuple):
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


def _tuples(rule: Rule, single: bool) -> _Tuples:
    """Return the functions for the own numbers of a rule."""
    compiled, n = cuda.jit(device=True, fastmath=single), rule.own
    zero = np.float32(0) if single else np.float64(0)
    read_words, write_words = reader(n, compiled, zero), writer(n, compiled)

    @cuda.jit(device=True)
    def select(condition: Any, a: Any, b: Any) -> Any:
        return cuda.selp(condition, a, b)

    @compiled
    def read(own: Any, k: Any, at: Any, stride: Any) -> Any:
        return read_words(own, k * n * stride + at, stride)

    @compiled
    def write(own: Any, k: Any, at: Any, stride: Any, values: Any) -> None:
        write_words(own, k * n * stride + at, stride, values)

    pick = selector(n, select, compiled)
    return _Tuples(read, write, pick, (zero,) * rule.sums, (zero,) * max(rule.pooled, 1))


class _Decision(NamedTuple):
    """
    What both kernels do with all arms of a run, as device functions.

    - `choose(key, key_at, count, at, t, lowest, params)`: the arm to pull after t pulls, and the fewest pulls of an
      arm, as far as known;
    - `refresh(count, mean, m2, own, at, stride, key, key_at, ready, pooled, params, scales, exponent)`: what is pooled,
      given what was before; every key is found again.

    Arms are rows of these arrays; the run is the column `at`, and `key_at` of the keys. Own numbers lie as
    `_Tuples` says.
    """

    choose: Any
    refresh: Any


def _decision(rule: Rule, arms: int, single: bool) -> _Decision:
    """Return the decision of a rule for this number of arms or, with 0, for any."""
    number = np.float32 if single else np.float64
    zero = number(0)
    has_floor = rule.floor is not None
    _, _, _, key_of, floor, add_share, pool = _steps(rule, single)
    own_of, _, _, no_sums, _ = _tuples(rule, single)

    @cuda.jit(device=True, fastmath=single)
    def choose(key: Any, key_at: Any, count: Any, at: Any, t: Any, lowest: Any, params: Any) -> Any:
        K = arms if arms > 0 else key.shape[0]
        best = key[0, key_at]
        chosen = np.int32(0)
        for k in range(1, K):
            better = key[k, key_at] > best
            best = cuda.selp(better, key[k, key_at], best)
            chosen = cuda.selp(better, np.int32(k), chosen)
        if has_floor:
            least = floor(number(t), number(K), params)
            if lowest < least:
                fewest = count[0, at]
                least_pulled = np.int32(0)
                for k in range(1, K):
                    fewer = count[k, at] < fewest
                    fewest = cuda.selp(fewer, count[k, at], fewest)
                    least_pulled = cuda.selp(fewer, np.int32(k), least_pulled)
                chosen = cuda.selp(fewest < least, least_pulled, chosen)
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

    return _Decision(choose, refresh)


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
    own_of, write_own, pick_own, _, nothing_pooled = _tuples(rule, single)
    steps_of_rule, decision = _steps(rule, single), _decision(rule, arms, single)
    take, key_of, choose, refresh = steps_of_rule.take, steps_of_rule.key, decision.choose, decision.refresh
    next_refresh, in_turn = on_device(keys.next_refresh), on_device(keys.in_turn)
    four = _four(single)

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


@lru_cache(maxsize=64)
def _kernel_many(rule: Rule, params: int, single: bool) -> Any:
    """Return the kernel for any number of arms, with their numbers in global memory."""
    from numba import float32, float64

    fl = float32 if single else float64
    number = np.float32 if single else np.float64
    zero, P, OWN = number(0), params, rule.own
    has_keep, has_pool = rule.keep is not None, rule.pool is not None
    own_of, write_own, _, _, nothing_pooled = _tuples(rule, single)
    steps_of_rule, decision = _steps(rule, single), _decision(rule, 0, single)
    take, key_of, choose, refresh = steps_of_rule.take, steps_of_rule.key, decision.choose, decision.refresh
    next_refresh, in_turn = on_device(keys.next_refresh), on_device(keys.in_turn)
    four = _four(single)

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
        state: Any,
        own: Any,
    ) -> None:
        r = cuda.grid(1)
        if r >= out.shape[3]:
            return
        count, mean, m2, key = state[0], state[1], state[2], state[3]
        K, stride = len(kinds), out.shape[3]
        params = cuda.local.array(P, fl)
        for p in range(P):
            params[p] = given[p]
        for k in range(K):
            count[k, r] = zero
            mean[k, r] = zero
            m2[k, r] = zero
            key[k, r] = zero
            for i in range(OWN):
                own[(k * OWN + i) * stride + r] = number(initial_own[k, i])
        run = first + U(r)
        pooled, lowest, ready = nothing_pooled, zero, number(warmup)
        due, keyed = next_refresh(0, K), in_turn(warmup, K)
        t = 0
        for c in range(len(checkpoints)):
            while t < checkpoints[c]:
                if t < keyed:
                    b = np.int32(t % K)
                else:
                    b, lowest = choose(key, r, count, r, t, lowest, params)
                i = int(count[b, r])
                x0, x1, x2, x3 = four(kinds[b], parameters[b, 0], parameters[b, 1], table, seed, run, U(b), U(i >> 2))
                x = x0 if i & 3 == 0 else x1 if i & 3 == 1 else x2 if i & 3 == 2 else x3
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


def _rounded(params: tuple[float, ...], number: Any) -> Any:
    """Return parameters in this precision; those beyond its range are its largest numbers, with their sign."""
    limits = np.finfo(number)
    return np.clip(params, float(limits.min), float(limits.max)).astype(number)


def prepare(
    setup: Setup, first: int, runs: int, single: bool = False, card: Card = CARD
) -> tuple[Callable[[], Any], Callable[[], None]]:
    """Send everything to the card; return a function that starts the runs, and one that waits for them."""
    check()
    refuse(setup.in_flight, setup.objective)
    arms, strategy = len(setup.problem), setup.strategy
    number = np.float32 if single else np.float64
    params = setup.params or (0.0,)
    # Where there are scales, those of weights alone have an exponent of one.
    rule = Rule.of(strategy, PLAIN if setup.form == PLAIN else NORM)
    kinds, parameters, table = encode(setup.problem.arms)
    out = cuda.device_array((3, len(setup.checkpoints), arms, runs), number)
    arguments = [
        cuda.to_device(kinds),
        cuda.to_device(parameters.astype(number)),
        cuda.to_device(table),
        U(setup.seed),
        U(first),
        cuda.to_device(np.array(setup.checkpoints)),
        cuda.to_device(_rounded(params, number)),
        cuda.to_device(setup.initial_own.astype(number)),
        strategy.warmup,
        cuda.to_device(setup.objective.scales(arms).astype(number)),
        number(setup.objective.exponent),
        out,
    ]
    if not setup.one_kernel and card.bytes_needed(arms, single, rule.own) <= card.shared:
        kernel = _kernel(rule, arms, len(params), single, card)
    else:
        kernel = _kernel_many(rule, len(params), single)
        # Count, mean, M2 and key of each arm in each run, then its own numbers.
        arguments.append(cuda.device_array((4, arms, runs), number))
        arguments.append(cuda.device_array(max(rule.own, 1) * arms * runs, number))

    def launch() -> Any:
        with warnings.catch_warnings():
            # Few runs leave most of a card idle, which is nobody's mistake.
            warnings.filterwarnings("ignore", "Grid size")
            kernel[-(-runs // card.threads), card.threads](*arguments)
        return out

    return launch, cuda.synchronize
