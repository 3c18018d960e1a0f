"""
The CUDA engine: one thread per run, the same strategies and the same samples as on the CPU.

Every function that the kernels need, of the streams and of the strategy, is the one the CPU runs: `on_device` takes
its Python code and binds the names in it to device functions. In double precision the samples are those of the CPU
engine, bit for bit (but for laws that need an exponential), and so are the decisions, ties within rounding aside: a GPU
fuses multiplications and additions. In single precision Gaussian samples are drawn four at a time from 32-bit words,
for speed, and are others.

Samples are drawn ahead into a ring in shared memory, by all threads at the same steps, as threads that each draw when
they need to would wait for one another at every step.
"""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np

from equipoise.lab import streams
from equipoise.lab.rule import NORM, PLAIN, Rule, Steps, steps
from equipoise.lab.setup import Ends, Setup
from equipoise.lab.streams import U, encode
from equipoise.problem import Objective
from equipoise.strategies import key as keys

try:
    from numba import cuda
except ImportError:
    cuda = None

THREADS = 128
# Up to here the arms' numbers are in registers; in shared memory, of which a block has so many bytes, if there is room.
REGISTERS, SHARED = 8, 227 << 10
# Runs that are sent to the card at once, at most; fewer where there are many arms.
LAUNCH = 1 << 20


def ring_size(arms: int, single: bool) -> int:
    """Samples of an arm that are kept: the more, the fewer are drawn for nothing and the fewer threads fit."""
    return 32 if arms <= 2 and single else 16 if arms <= 12 else 8


def shared_bytes(arms: int, single: bool, uses_own: bool) -> int:
    """What a block needs of shared memory: the rings, and the numbers of arms that are too many for registers."""
    numbers = 0 if arms <= REGISTERS else 3 * arms + (arms if uses_own else 1)
    return (ring_size(arms, single) * arms + numbers) * THREADS * (4 if single else 8)


def check() -> Any:
    """numba.cuda, or a sentence on what is missing."""
    if cuda is None or not hasattr(cuda, "is_available"):
        raise ValueError('engine="cuda" needs numba-cuda: pip install "equipoise[gpu]"')
    if not cuda.is_available():
        raise ValueError('engine="cuda" found no NVIDIA GPU with a driver on this machine; engine="cpu" needs none')
    return cuda


def refuse(in_flight: int, objective: Objective) -> None:
    """Say what only the CPU does: runs that go one at a time, as answers come late or samples have prices."""
    if in_flight > 1 or objective.costs is not None:
        what = f"in_flight={in_flight}" if in_flight > 1 else "costs"
        raise ValueError(f"engine='cuda' cannot simulate {what}; engine='cpu' or a Dask client can")


def _in_simulator() -> bool:
    from numba.core import config

    return bool(config.ENABLE_CUDASIM)


@lru_cache(maxsize=1)
def _primitives() -> dict[int, Any]:
    """What stands for the CPU's intrinsics on the device, by their identity."""
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
    return {id(getattr(streams, name)): function for name, function in names.items()}


def on_device(function: Any, single: bool = False) -> Any:
    """
    The same function as a device function, and so every function that it calls.

    With `single`, numbers in its text are single precision, as one double would make all arithmetic around it double.
    """
    known: dict[int, Any] = {}

    def convert(thing: Any) -> Any:
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
            known[id(plain)] = cuda.jit(device=True, fastmath=single)(copy)
        return known[id(plain)]

    return convert(function)


def _names(code: types.CodeType) -> set[str]:
    return set(code.co_names) | set(code.co_freevars)


def _without_cells(code: types.CodeType) -> types.CodeType:
    if code.co_freevars:
        raise ValueError(f"{code.co_name} refers to names around it; a function for the GPU takes them as parameters")
    return code


class _Singles(ast.NodeTransformer):
    """Numbers become single precision, but for those that index."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) not in (int, float):
            return node
        call = ast.Call(ast.Name("_single", ast.Load()), [node], [])
        return ast.copy_location(call, node)


def _singled(function: types.FunctionType) -> types.CodeType:
    """The code of a function with its numbers in single precision."""
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


def _normal32(c0: Any, c1: Any) -> Any:
    """Two single precision normals from two 32-bit words, by Box and Muller; none is beyond 6.8."""
    u = (np.float32(c0) + np.float32(0.5)) * np.float32(2.0**-32)
    radius = math.sqrt(np.float32(-2) * math.log(u))
    angle = np.float32(np.int32(np.uint32(c1))) * np.float32(math.pi * 2.0**-31)
    return radius * math.cos(angle), radius * math.sin(angle)


def _four(single: bool) -> Callable[..., Any]:
    """The function that draws samples 4q to 4q+3 of an arm."""
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
    """The steps of a rule as device functions."""
    return steps(rule, partial(on_device, single=single), cuda.jit(device=True, fastmath=single))


@lru_cache(maxsize=64)
def _kernel(rule: Rule, arms: int, params: int, single: bool) -> Any:
    from numba import float32, float64

    fl = float32 if single else float64
    number = np.float32 if single else np.float64
    zero = number(0)
    few, uses_own = arms <= REGISTERS, rule.uses_own
    RING = ring_size(arms, single)
    # Four are drawn at once, so that a full ring is sure to last for four steps less than it holds.
    STRETCH, MASK = RING - 4, RING - 1
    K, P = arms, params
    has_floor, has_freeze, has_pool = rule.floor is not None, rule.freeze is not None, rule.pool != 0
    take, _, _, key_of, floor, pool_arm, pooled_of = _steps(rule, single)
    next_refresh = on_device(keys.next_refresh)
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
        own: Any,
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
            T = cuda.local.array((K, 1), fl)
            mean = cuda.local.array((K, 1), fl)
            m2 = cuda.local.array((K, 1), fl)
            mine = cuda.local.array((K, 1), fl)
            me = 0
        else:
            T = cuda.shared.array((K, THREADS), fl)
            mean = cuda.shared.array((K, THREADS), fl)
            m2 = cuda.shared.array((K, THREADS), fl)
            mine = cuda.shared.array((K if uses_own else 1, THREADS), fl)
            me = lane
        key = cuda.local.array(K, fl)
        drawn = cuda.local.array(K, np.int32)
        params = cuda.local.array(P, fl)
        for p in range(P):
            params[p] = given[p]
        for k in range(K):
            T[k, me] = zero
            mean[k, me] = zero
            m2[k, me] = zero
            key[k] = zero
            if uses_own:
                mine[k, me] = number(own[k])
            drawn[k] = 0
        run = first + U(r)
        pooled = zero
        lowest = zero
        refresh = np.int32(next_refresh(0, K))
        warm = np.int32(warmup * K)
        ready = number(warmup)
        t = np.int32(0)
        left = np.int32(0)
        for c in range(len(checkpoints)):
            end = np.int32(checkpoints[c])
            while t < end:
                if left == 0:
                    left = np.int32(STRETCH)
                    for k in range(K):
                        while drawn[k] < np.int32(T[k, me]) + np.int32(STRETCH):
                            x0, x1, x2, x3 = four(
                                kinds[k], parameters[k, 0], parameters[k, 1], table, seed, run, U(k), U(drawn[k] >> 2)
                            )
                            at = np.int32(drawn[k] & np.int32(MASK))
                            ring[at, k, lane] = x0
                            ring[at + 1, k, lane] = x1
                            ring[at + 2, k, lane] = x2
                            ring[at + 3, k, lane] = x3
                            drawn[k] = np.int32(drawn[k] + 4)
                left = np.int32(left - 1)
                b = np.int32(0)
                if t < warm:
                    b = np.int32(t % np.int32(K))
                else:
                    best = key[0]
                    for k in range(1, K):
                        better = key[k] > best
                        best = cuda.selp(better, key[k], best)
                        b = cuda.selp(better, np.int32(k), b)
                    if has_floor:
                        least = floor(number(t), number(K), params)
                        if lowest < least:
                            fewest = T[0, me]
                            arm = np.int32(0)
                            for k in range(1, K):
                                fewer = T[k, me] < fewest
                                fewest = cuda.selp(fewer, T[k, me], fewest)
                                arm = cuda.selp(fewer, np.int32(k), arm)
                            b = cuda.selp(fewest < least, arm, b)
                            lowest = fewest
                held = zero
                if few:
                    # By selects, so that the arms' numbers stay in registers, which have no index.
                    count, average, spread = T[0, me], mean[0, me], m2[0, me]
                    if uses_own:
                        held = mine[0, me]
                    for k in range(1, K):
                        this = b == np.int32(k)
                        count = cuda.selp(this, T[k, me], count)
                        average = cuda.selp(this, mean[k, me], average)
                        spread = cuda.selp(this, m2[k, me], spread)
                        if uses_own:
                            held = cuda.selp(this, mine[k, me], held)
                else:
                    count, average, spread = T[b, me], mean[b, me], m2[b, me]
                    if uses_own:
                        held = mine[b, me]
                x = ring[np.int32(np.int32(count) & np.int32(MASK)), b, lane]
                count, average, spread, held = take(x, count, average, spread, held, pooled, params)
                t = np.int32(t + 1)
                value = zero
                if count >= ready:
                    value = key_of(count, average, spread, held, pooled, params, scales[b], exponent)
                for k in range(K):
                    key[k] = cuda.selp(b == np.int32(k), value, key[k])
                if few:
                    for k in range(K):
                        this = b == np.int32(k)
                        T[k, me] = cuda.selp(this, count, T[k, me])
                        mean[k, me] = cuda.selp(this, average, mean[k, me])
                        m2[k, me] = cuda.selp(this, spread, m2[k, me])
                        if has_freeze:
                            mine[k, me] = cuda.selp(this, held, mine[k, me])
                else:
                    T[b, me], mean[b, me], m2[b, me] = count, average, spread
                    if has_freeze:
                        mine[b, me] = held
                if has_pool and t >= refresh:
                    refresh = np.int32(next_refresh(t, K))
                    largest, total, known = zero, zero, zero
                    for k in range(K):
                        held = mine[k, me] if uses_own else zero
                        largest, total, known = pool_arm(
                            T[k, me], mean[k, me], m2[k, me], held, params, largest, total, known
                        )
                    pooled = pooled_of(largest, total, known)
                    for k in range(K):
                        if T[k, me] >= ready:
                            if uses_own:
                                held = mine[k, me]
                            key[k] = key_of(T[k, me], mean[k, me], m2[k, me], held, pooled, params, scales[k], exponent)
            for k in range(K):
                out[0, c, k, r] = T[k, me]
                out[1, c, k, r] = mean[k, me]
                out[2, c, k, r] = m2[k, me]

    return kernel


@lru_cache(maxsize=64)
def _kernel_many(rule: Rule, params: int, single: bool) -> Any:
    """The kernel for many arms: their numbers in global memory, each sample drawn when it is needed."""
    from numba import float32, float64

    fl = float32 if single else float64
    number = np.float32 if single else np.float64
    zero, P = number(0), params
    has_floor, has_freeze, has_pool = rule.floor is not None, rule.freeze is not None, rule.pool != 0
    take, _, _, key_of, floor, pool_arm, pooled_of = _steps(rule, single)
    next_refresh = on_device(keys.next_refresh)
    four = _four(single)
    COUNT, MEAN, M2, KEY, OWN = range(5)

    @cuda.jit(fastmath=single)
    def kernel(
        kinds: Any,
        parameters: Any,
        table: Any,
        seed: Any,
        first: Any,
        checkpoints: Any,
        given: Any,
        own: Any,
        warmup: Any,
        scales: Any,
        exponent: Any,
        out: Any,
        A: Any,
    ) -> None:
        r = cuda.grid(1)
        if r >= out.shape[3]:
            return
        K = len(kinds)
        params = cuda.local.array(P, fl)
        for p in range(P):
            params[p] = given[p]
        for k in range(K):
            for field in range(OWN):
                A[field, k, r] = zero
            A[OWN, k, r] = number(own[k])
        run = first + U(r)
        pooled, lowest, ready = zero, zero, number(warmup)
        refresh = next_refresh(0, K)
        warm = warmup * K
        t = 0
        for c in range(len(checkpoints)):
            while t < checkpoints[c]:
                b = 0
                if t < warm:
                    b = t % K
                else:
                    best = A[KEY, 0, r]
                    for k in range(1, K):
                        if A[KEY, k, r] > best:
                            best = A[KEY, k, r]
                            b = k
                    if has_floor:
                        least = floor(number(t), number(K), params)
                        if lowest < least:
                            fewest = A[COUNT, 0, r]
                            arm = 0
                            for k in range(1, K):
                                if A[COUNT, k, r] < fewest:
                                    fewest = A[COUNT, k, r]
                                    arm = k
                            if fewest < least:
                                b = arm
                            lowest = fewest
                i = int(A[COUNT, b, r])
                x0, x1, x2, x3 = four(kinds[b], parameters[b, 0], parameters[b, 1], table, seed, run, U(b), U(i >> 2))
                x = x0 if i & 3 == 0 else x1 if i & 3 == 1 else x2 if i & 3 == 2 else x3
                count, average, spread, held = take(
                    number(x), A[COUNT, b, r], A[MEAN, b, r], A[M2, b, r], A[OWN, b, r], pooled, params
                )
                A[COUNT, b, r], A[MEAN, b, r], A[M2, b, r] = count, average, spread
                if has_freeze:
                    A[OWN, b, r] = held
                if count >= ready:
                    A[KEY, b, r] = key_of(count, average, spread, held, pooled, params, scales[b], exponent)
                t += 1
                if has_pool and t >= refresh:
                    refresh = next_refresh(t, K)
                    largest, total, known = zero, zero, zero
                    for k in range(K):
                        largest, total, known = pool_arm(
                            A[COUNT, k, r], A[MEAN, k, r], A[M2, k, r], A[OWN, k, r], params, largest, total, known
                        )
                    pooled = pooled_of(largest, total, known)
                    for k in range(K):
                        count = A[COUNT, k, r]
                        if count >= ready:
                            A[KEY, k, r] = key_of(
                                count, A[MEAN, k, r], A[M2, k, r], A[OWN, k, r], pooled, params, scales[k], exponent
                            )
            for k in range(K):
                out[0, c, k, r] = A[COUNT, k, r]
                out[1, c, k, r] = A[MEAN, k, r]
                out[2, c, k, r] = A[M2, k, r]

    return kernel


def launch_runs(arms: int, checkpoints: int) -> int:
    """Runs to send to the card at once, so that they and what comes back fit into a few gigabytes."""
    return max(1024, min(LAUNCH, 2**27 // (arms * (checkpoints + 2))))


# One thread at a time makes kernels and has the card.
_CARD = threading.Lock()


def simulate(setup: Setup, first: int, runs: int, single: bool = False) -> Ends:
    """Runs `first` to `first + runs` of the setup on the card."""
    with _CARD:
        launch, _ = prepare(setup, first, runs, single)
        out = launch().copy_to_host()
    return Ends(*out.astype(np.float64, copy=False))


@contextmanager
def one_kernel() -> Iterator[None]:
    """Within it the kernel for many arms serves any number of them, with the same bits: one for a strategy."""
    global SHARED
    before, SHARED = SHARED, 0
    try:
        yield
    finally:
        SHARED = before


def prepare(setup: Setup, first: int, runs: int, single: bool = False) -> tuple[Callable[[], Any], Callable[[], None]]:
    """Everything sent to the card: a function that starts the runs, and one that waits for them."""
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
        cuda.to_device(np.array(params, dtype=number)),
        cuda.to_device(setup.initial_own.astype(number)),
        strategy.warmup,
        cuda.to_device(setup.objective.scales(arms).astype(number)),
        number(setup.objective.exponent),
        out,
    ]
    if shared_bytes(arms, single, rule.uses_own) <= SHARED:
        kernel = _kernel(rule, arms, len(params), single)
    else:
        kernel = _kernel_many(rule, len(params), single)
        arguments.append(cuda.device_array((5, arms, runs), number))

    def launch() -> Any:
        kernel[-(-runs // THREADS), THREADS](*arguments)
        return out

    return launch, cuda.synchronize
