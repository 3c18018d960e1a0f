"""
Samples as a pure function of their address (seed, run, arm, i).

A counter-based generator, Philox4x32-10 [1]_, turns the address into random bits without any state: the counter is
(pair of i, arm, run), the key is the seed. Each counter gives two samples. So two strategies see the very same samples,
the order of work does not matter, and any run can be replayed alone.

The functions below are written for Numba. They call fused multiply-adds explicitly and take no other liberty with
arithmetic, and their constants are literals, so that they give the same bits in a vectorised loop, in a scalar one and
on another machine. The exception is Student's t, which takes the exponential of the platform.

References
----------
.. [1] J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw (2011), Parallel random numbers: as easy as 1, 2, 3. SC '11.
.. [2] G. E. P. Box, M. E. Muller (1958), A note on the generation of random normal deviates. Annals of Mathematical
   Statistics 29.
.. [3] R. W. Bailey (1994), Polar generation of random variates with the t-distribution. Mathematics of Computation 62.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic

from equipoise.base.arrays import Floats, Ints
from equipoise.compiled import address, call_address, jit
from equipoise.numeric.floats import as_bits, as_float, exp, fma, log, select
from equipoise.problem import (
    Bernoulli,
    Constant,
    Empirical,
    Exponential,
    Gaussian,
    Laplace,
    Law,
    LogNormal,
    Problem,
    Rademacher,
    StudentT,
    Uniform,
)

U = np.uint64

KINDS = range(10)
GAUSSIAN, RADEMACHER, BERNOULLI, UNIFORM, EXPONENTIAL, LAPLACE, LOGNORMAL, STUDENT, CONSTANT, EMPIRICAL = KINDS

_M0, _M1 = U(0xD2511F53), U(0xCD9E8D57)
_W0, _W1 = U(0x9E3779B9), U(0xBB67AE85)
_LOW = U(0xFFFFFFFF)
_ONE = U(0x3FF0000000000000)
_1, _2, _4, _11, _12, _32, _61, _62, _63 = (U(i) for i in (1, 2, 4, 11, 12, 32, 61, 62, 63))


@jit
def philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> tuple[Any, Any, Any, Any]:
    """Return Philox4x32-10 of a counter and a key: 32-bit words, held in 64 bits."""
    for _ in range(10):
        # The casts say that factors have 32 bits: only such products are fast. Until the end, words may have more.
        p0, p1 = _M0 * U(np.uint32(c0)), _M1 * U(np.uint32(c2))
        c0, c2 = (p1 >> _32) ^ c1 ^ k0, (p0 >> _32) ^ c3 ^ k1
        c1, c3 = p1, p0
        k0, k1 = (k0 + _W0) & _LOW, (k1 + _W1) & _LOW
    return c0 & _LOW, c1 & _LOW, c2 & _LOW, c3 & _LOW


@jit
def words(seed: Any, run: Any, arm: Any, block: Any) -> tuple[Any, Any]:
    """Return two words of 64 random bits for this address."""
    c0, c1, c2, c3 = philox(block & _LOW, arm & _LOW, run & _LOW, run >> _32, seed & _LOW, seed >> _32)
    return (c0 << _32) | c1, (c2 << _32) | c3


# Polynomials, lowest coefficient first, fitted at Chebyshev nodes. They are literals because a fit at import would
# give other last bits with another linear algebra library, and so other samples. A test derives them again.
# sin(pi/4 v)/v as a function of y = v² in [0, 1].
_SIN = (
    0.7853981633974487,
    -0.08074551218828085,
    0.0024903945702014303,
    -3.657620423914112e-05,
    3.1336182038984954e-07,
    -1.7573606559278358e-09,
    6.958399677673829e-12,
)
# cos(pi/4 v) as a function of y = v² in [0, 1].
_COS = (
    1.0000000000000002,
    -0.3084251375340348,
    0.01585434424371858,
    -0.0003259918864275763,
    3.5908591592783837e-06,
    -2.4609609237708343e-08,
    1.1379395986714607e-10,
    -5.2391179151352734e-14,
)
_S0, _S1, _S2, _S3, _S4, _S5, _S6 = _SIN
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7 = _COS


@jit
def unit(word: Any) -> float:
    """Return 52 of the bits as a number in (0, 1]."""
    return 2.0 - as_float((word >> _12) | _ONE)


@jit
def turn(word: Any) -> tuple[float, float]:
    """Return cosine and sine of a random angle: one of at most 45 degrees, then a quadrant by the lowest bits."""
    v = 2.0 * as_float((word >> _12) | _ONE) - 3.0
    y = v * v
    sin = v * fma(fma(fma(fma(fma(fma(_S6, y, _S5), y, _S4), y, _S3), y, _S2), y, _S1), y, _S0)
    cos = fma(fma(fma(fma(fma(fma(fma(_C7, y, _C6), y, _C5), y, _C4), y, _C3), y, _C2), y, _C1), y, _C0)
    swap = (word & _1) != U(0)
    x = as_bits(select(swap, sin, cos)) ^ ((word & _2) << _62)
    z = as_bits(select(swap, cos, sin)) ^ ((word & _4) << _61)
    return as_float(x), as_float(z)


@jit
def normals(w0: Any, w1: Any) -> tuple[float, float]:
    """Return two independent standard normals, by Box and Muller [2]_; none is beyond 8.5."""
    radius = math.sqrt(-2.0 * log(unit(w0)))
    cos, sin = turn(w1)
    return radius * cos, radius * sin


@jit
def student_power(w0: Any, df: float) -> float:
    """Return what Bailey's method for Student's t takes the exponential of [3]_."""
    return -2.0 * log(unit(w0)) / df


@jit
def student_radius(grown: float, w1: Any, df: float) -> float:
    """Return a sample of Student's t with df degrees of freedom, given exp(power) - 1."""
    cos, _ = turn(w1)
    return math.sqrt(df * grown) * cos


@jit
def student(w0: Any, w1: Any, df: float) -> float:
    """Return a sample of Student's t with df degrees of freedom, by Bailey's polar method [3]_."""
    return student_radius(math.expm1(student_power(w0, df)), w1, df)


@jit
def place_in(table_at: float, values: float, word: Any) -> Any:
    """Return the place of one of an empirical law's values in the table."""
    # The upper half of size * word, for a size below 2^32.
    size = U(values)
    return np.int64(table_at) + np.int64((size * (word >> _32) + ((size * (word & _LOW)) >> _32)) >> _32)


@jit
def observed(kind: int, a: float, b: float, table: Any, word: Any) -> float:
    """Return a sample of a Bernoulli or an empirical law: those that are fitted to samples."""
    if kind == BERNOULLI:
        return 1.0 if float(word >> _11) * 2.0**-53 < a else 0.0
    return table[place_in(a, b, word)]


@jit
def one(kind: int, a: float, b: float, table: Any, word: Any) -> float:
    """Return a sample of a law that takes one word."""
    if kind == RADEMACHER:
        return a if word >> _63 else -a
    if kind == UNIFORM:
        return fma(b, float(word >> _11) * 2.0**-53, a)
    if kind == EXPONENTIAL:
        return -a * log(unit(word))
    if kind == LAPLACE:
        return fma(b if word & _1 else -b, log(unit(word)), a)
    if kind == CONSTANT:
        return a
    return observed(kind, a, b, table, word)


@jit
def pair(kind: int, a: float, b: float, table: Any, seed: Any, run: Any, arm: Any, block: Any) -> tuple[float, float]:
    """Return samples 2 block and 2 block + 1 of an arm."""
    if kind == STUDENT:
        w0, w1 = words(seed, run, arm, block + block)
        w2, w3 = words(seed, run, arm, block + block + _1)
        return b * student(w0, w1, a), b * student(w2, w3, a)
    w0, w1 = words(seed, run, arm, block)
    if kind == GAUSSIAN:
        z0, z1 = normals(w0, w1)
        return fma(b, z0, a), fma(b, z1, a)
    if kind == LOGNORMAL:
        z0, z1 = normals(w0, w1)
        return exp(fma(b, z0, a)), exp(fma(b, z1, a))
    return one(kind, a, b, table, w0), one(kind, a, b, table, w1)


# What is drawn side by side: an arm's samples in several runs, or several samples in one run.
Drawn = Literal["runs", "blocks"]


def _filler(kind: int, drawn: Drawn) -> Any:
    """
    Return the function that draws blocks of two samples of an arm with a law of this kind.

    It is compiled for the kind and for what lies side by side, so that the compiler makes vectors of its loop.
    """
    in_one_run = drawn == "blocks"
    gaussian, lognormal, t, empirical = (kind == each for each in (GAUSSIAN, LOGNORMAL, STUDENT, EMPIRICAL))

    def fill(
        a: float,
        b: float,
        table: Any,
        seed: Any,
        all_runs: Any,
        place: Any,
        arm: Any,
        first: Any,
        blocks: Any,
        out: Any,
        at: int,
        lanes: int,
    ) -> float:
        # Slices, as the compiler makes vectors only where it knows that no index is negative.
        runs, this_run = all_runs[place : place + lanes], all_runs[place]
        for row in range(first, first + blocks):
            even, odd = out[at : at + lanes], out[at + lanes : at + 2 * lanes]
            for i in range(lanes):
                run, block = (this_run, row + U(i)) if in_one_run else (runs[i], row)
                if t:
                    even[i] = student_power(words(seed, run, arm, block + block)[0], a)
                    odd[i] = student_power(words(seed, run, arm, block + block + _1)[0], a)
                elif gaussian or lognormal:
                    w0, w1 = words(seed, run, arm, block)
                    z0, z1 = normals(w0, w1)
                    x0, x1 = fma(b, z0, a), fma(b, z1, a)
                    even[i], odd[i] = (exp(x0), exp(x1)) if lognormal else (x0, x1)
                elif empirical:
                    w0, w1 = words(seed, run, arm, block)
                    even[i], odd[i] = float(place_in(a, b, w0)), float(place_in(a, b, w1))
                else:
                    w0, w1 = words(seed, run, arm, block)
                    even[i], odd[i] = one(kind, a, b, table, w0), one(kind, a, b, table, w1)
            # What is no vector instruction has a loop of its own.
            if t or empirical:
                for i in range(lanes):
                    if empirical:
                        even[i], odd[i] = table[int(even[i])], table[int(odd[i])]
                    else:
                        even[i], odd[i] = math.expm1(even[i]), math.expm1(odd[i])
            # The random bits are quicker found again than kept.
            if t:
                for i in range(lanes):
                    run, block = (this_run, row + U(i)) if in_one_run else (runs[i], row)
                    even[i] = b * student_radius(even[i], words(seed, run, arm, block + block)[1], a)
                    odd[i] = b * student_radius(odd[i], words(seed, run, arm, block + block + _1)[1], a)
            at += 2 * lanes
        return 0.0

    return fill


# The arguments of such a function. A tuple, which has a fingerprint, and not a signature, which has none.
_NUMBERS, _RUNS = types.Array(types.float64, 1, "C"), types.Array(types.uint64, 1, "C")
_FILL = (
    *(types.float64, types.float64, _NUMBERS),
    *(types.uint64, _RUNS, types.int64, types.uint64, types.uint64, types.uint64),
    *(_NUMBERS, types.int64, types.int64),
)


@lru_cache(maxsize=2 * len(KINDS))
def _fill_address(kind: int, drawn: Drawn) -> int:
    """Return where the function for a kind of laws is, compiled: once for a machine, not once for each kernel."""
    return address(_filler(kind, drawn), types.float64(*_FILL), borrows=True)


@intrinsic
def _call_fill(
    typing: Any,
    where: Any,
    a: Any,
    b: Any,
    table: Any,
    seed: Any,
    runs: Any,
    place: Any,
    arm: Any,
    first: Any,
    blocks: Any,
    out: Any,
    at: Any,
    lanes: Any,
) -> Any:
    """Call the function of a kind of laws by its address."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return call_address(context, builder, args[0], types.float64(*_FILL), args[1:])

    return types.float64(types.int64, *_FILL), code


def encode(arms: tuple[Law, ...]) -> tuple[Ints, Floats, Floats]:
    """Return the laws as numbers: a kind and two parameters per arm, and one table of the empirical arms' values."""
    kinds, parameters, table = [], [], [0.0]
    for law in arms:
        match law:
            case Gaussian(mean, variance):
                code = (GAUSSIAN, mean, math.sqrt(variance))
            case Rademacher(scale):
                code = (RADEMACHER, scale, 0.0)
            case Bernoulli(p):
                code = (BERNOULLI, p, 0.0)
            case Uniform(low, high):
                code = (UNIFORM, low, high - low)
            case Exponential(scale):
                code = (EXPONENTIAL, scale, 0.0)
            case Laplace(mean, variance):
                code = (LAPLACE, mean, math.sqrt(variance / 2))
            case LogNormal(log_mean, log_sd):
                code = (LOGNORMAL, log_mean, log_sd)
            case StudentT(df, scale):
                code = (STUDENT, df, scale)
            case Constant(value):
                code = (CONSTANT, value, 0.0)
            case Empirical():
                code = (EMPIRICAL, len(table), len(law.values))
                table += law.values
            case _:
                raise TypeError(f"arms must be laws such as eq.Gaussian or eq.Empirical(values), got {law!r}")
        kinds.append(code[0])
        parameters.append(code[1:])
    return np.array(kinds), np.array(parameters, dtype=float).reshape(len(arms), 2), np.array(table)


class Laws(NamedTuple):
    """
    What samples depend on apart from arm and i: the encoded laws, the seed, and the numbers of the runs.

    `fills` has the addresses of the functions that draw samples of several runs, by arm; 0 where these are not needed.
    Kernels know a run by its place in `runs`, so that they simulate any runs, not only consecutive ones.
    """

    kinds: Any
    fills: Any
    parameters: Any
    table: Any
    seed: Any
    runs: Any

    @classmethod
    def of(cls, problem: Problem, seed: int, runs: Any, side_by_side: Drawn | None = None) -> Laws:
        """
        Return the laws of a problem for the runs with these numbers.

        With `side_by_side`, samples of several runs, or several blocks of one run, can be drawn at once by `fill_of`.
        """
        kinds, parameters, table = _encoded(_Same(problem.arms))
        fills = np.zeros(len(KINDS), np.int64)
        if side_by_side:
            for kind in np.unique(kinds):
                fills[kind] = _fill_address(int(kind), side_by_side)
        return cls(kinds, fills[kinds], parameters, table, U(seed), np.asarray(runs, np.uint64))


class _Same:
    """Laws as a key: very many take long to compare, so that only the very same tuple is equal."""

    def __init__(self, arms: tuple[Law, ...]) -> None:
        self.arms = arms

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.arms is other.arms

    def __hash__(self) -> int:
        return id(self.arms)


@lru_cache(maxsize=16)
def _encoded(same: _Same) -> tuple[Ints, Floats, Floats]:
    """Return the laws as numbers, which are kept: every block of runs asks for them again."""
    return encode(same.arms)


@jit
def pair_of(laws: Any, place: Any, arm: Any, block: Any) -> tuple[float, float]:
    """Return samples 2 block and 2 block + 1 of the arm with this number, in the run at this place."""
    a, b = laws.parameters[arm, 0], laws.parameters[arm, 1]
    return pair(laws.kinds[arm], a, b, laws.table, laws.seed, laws.runs[place], U(arm), U(block))


@jit
def observed_pair_of(laws: Any, place: Any, arm: Any, block: Any) -> tuple[float, float]:
    """Return what `pair_of` does where the arm's law is Bernoulli or empirical, with less to compile."""
    kind, a, b = laws.kinds[arm], laws.parameters[arm, 0], laws.parameters[arm, 1]
    w0, w1 = words(laws.seed, laws.runs[place], U(arm), U(block))
    return observed(kind, a, b, laws.table, w0), observed(kind, a, b, laws.table, w1)


def all_observed(problem: Problem) -> bool:
    """Return whether every law of a problem is Bernoulli or empirical, as those are that stand for samples."""
    return all(isinstance(law, Bernoulli | Empirical) for law in problem.arms)


@jit
def fill_of(laws: Any, place: Any, arm: Any, block: Any, blocks: Any, out: Any, at: Any, lanes: Any) -> None:
    """
    Draw blocks of two samples of the arm with this number, in `lanes` runs from this place on.

    Samples numbered 2 block go to out[at:], run by run, the next to out[at + lanes:], and so on. Where the laws were
    made to draw blocks side by side, it is `lanes` blocks in one run: their first samples go to out[at:], their second
    ones to out[at + lanes:].
    """
    a, b, first = laws.parameters[arm, 0], laws.parameters[arm, 1], U(block)
    where, runs = laws.fills[arm], laws.runs
    _call_fill(where, a, b, laws.table, laws.seed, runs, place, U(arm), first, U(blocks), out, at, lanes)


@jit
def _draw(laws: Any, arm: int, first: int, out: Any) -> None:
    for j in range(len(out)):
        i = first + j
        x0, x1 = pair_of(laws, U(0), arm, i >> 1)
        out[j] = x1 if i & 1 else x0


def samples(problem: Problem, seed: int, run: int, arm: int, count: int, first: int = 0) -> Floats:
    """Return `count` samples X_{k,i}, i from `first` on: what every simulation with this seed sees in this run."""
    out = np.empty(count)
    _draw(Laws.of(problem, seed, [run]), arm, first, out)
    return out


def _drawer(pair: Any) -> Any:
    """Return the function that draws the samples of a run, by `pair_of` or by `observed_pair_of`."""

    def draw_run(laws: Any, counts: Any, out: Any) -> None:
        at = 0
        for k in range(len(counts)):
            for i in range(counts[k]):
                x0, x1 = pair(laws, U(0), k, i >> 1)
                out[at + i] = x1 if i & 1 else x0
            at += counts[k]

    return jit(draw_run)


_draw_run, _draw_observed_run = _drawer(pair_of), _drawer(observed_pair_of)


def samples_of_run(problem: Problem, seed: int, run: int, counts: npt.ArrayLike) -> list[Floats]:
    """Return the first samples of every arm, as many of each as `counts` says, that a simulation sees in this run."""
    each = np.asarray(counts).astype(np.int64)
    out = np.empty(each.sum())
    draw = _draw_observed_run if all_observed(problem) else _draw_run
    draw(Laws.of(problem, seed, [run]), each, out)
    return np.split(out, np.cumsum(each)[:-1])
