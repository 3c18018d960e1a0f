"""
Samples as a pure function of their address (seed, run, arm, i).

A counter-based generator, Philox4x32-10 [1]_, turns the address into random bits without any state: the counter is
(pair of i, arm, run), the key is the seed. Two samples come of one counter. So two strategies meet the very same
samples, the order of work does not matter, and any run can be replayed alone.

The functions below are written for Numba. They use fused multiply-adds by name and no other liberty with arithmetic, so
that they give the same bits in a vectorised loop, in a scalar one and on another machine.

References
----------
.. [1] J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw (2011), Parallel random numbers: as easy as 1, 2, 3. SC '11.
.. [2] G. E. P. Box, M. E. Muller (1958), A note on the generation of random normal deviates. Annals of Mathematical
   Statistics 29.
.. [3] R. W. Bailey (1994), Polar generation of random variates with the t-distribution. Mathematics of Computation 62.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from equipoise.arrays import Floats, Ints
from equipoise.compiled import jit
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

GAUSSIAN, RADEMACHER, BERNOULLI, UNIFORM, EXPONENTIAL, LAPLACE, LOGNORMAL, STUDENT, CONSTANT, EMPIRICAL = range(10)

_M0, _M1 = U(0xD2511F53), U(0xCD9E8D57)
_W0, _W1 = U(0x9E3779B9), U(0xBB67AE85)
_LOW = U(0xFFFFFFFF)
_MANTISSA, _ONE = U(0x000FFFFFFFFFFFFF), U(0x3FF0000000000000)
_1, _2, _4, _11, _12, _32, _52, _61, _62, _63 = (U(i) for i in (1, 2, 4, 11, 12, 32, 52, 61, 62, 63))
_SQRT2, _LN2 = math.sqrt(2), math.log(2)


@intrinsic
def fma(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """A b + c with one rounding."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), code


@intrinsic
def as_float(typing: Any, bits: Any) -> Any:
    """The double with these bits."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.uint64), code


@intrinsic
def as_bits(typing: Any, number: Any) -> Any:
    """The bits of a double."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.uint64(types.float64), code


@intrinsic
def select(typing: Any, condition: Any, a: Any, b: Any) -> Any:
    """`a` if the condition holds, else `b`, without a branch."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(*args)

    return types.float64(types.boolean, types.float64, types.float64), code


@jit
def philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> tuple[Any, Any, Any, Any]:
    """Philox4x32-10; 32-bit words, held in 64 bits."""
    for _ in range(10):
        # That the words have 32 bits is said here for GPUs, where only such products are fast.
        p0, p1 = _M0 * U(np.uint32(c0)), _M1 * U(np.uint32(c2))
        c0, c2 = (p1 >> _32) ^ c1 ^ k0, (p0 >> _32) ^ c3 ^ k1
        c1, c3 = p1 & _LOW, p0 & _LOW
        k0, k1 = (k0 + _W0) & _LOW, (k1 + _W1) & _LOW
    return c0, c1, c2, c3


@jit
def words(seed: Any, run: Any, arm: Any, block: Any) -> tuple[Any, Any]:
    """Two words of 64 random bits for this address."""
    c0, c1, c2, c3 = philox(block & _LOW, arm & _LOW, run & _LOW, run >> _32, seed & _LOW, seed >> _32)
    return (c0 << _32) | c1, (c2 << _32) | c3


def _fit(function: Any, low: float, high: float, degree: int) -> list[float]:
    """Coefficients, lowest first, of a polynomial close to `function` on [low, high]: a fit at Chebyshev nodes."""
    nodes = np.cos(np.pi * (np.arange(400) + 0.5) / 400)
    x = (nodes + 1) / 2 * (high - low) + low
    series = np.polynomial.chebyshev.Chebyshev.fit(x, function(x), degree, domain=[low, high])
    return [float(c) for c in series.convert(kind=np.polynomial.Polynomial).coef]


# log(1+g)/g on [1/sqrt2 - 1, sqrt2 - 1]; sin(pi/4 v)/v and cos(pi/4 v) as functions of v² on [0, 1].
_LOG = _fit(lambda g: np.log1p(g) / g, math.sqrt(0.5) - 1, math.sqrt(2) - 1, 17)
_SIN = _fit(lambda y: np.sin(np.sqrt(y) * np.pi / 4) / np.sqrt(y), 0, 1, 6)
_COS = _fit(lambda y: np.cos(np.sqrt(y) * np.pi / 4), 0, 1, 7)
_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7, _L8, _L9, _L10, _L11, _L12, _L13, _L14, _L15, _L16, _L17 = _LOG
_S0, _S1, _S2, _S3, _S4, _S5, _S6 = _SIN
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7 = _COS


@jit
def unit(word: Any) -> float:
    """52 of the bits as a number in (0, 1]."""
    return 2.0 - as_float((word >> _12) | _ONE)


@jit
def log(u: float) -> float:
    """The natural logarithm of a positive normal double, to about 1e-15."""
    bits = as_bits(u)
    f = as_float((bits & _MANTISSA) | _ONE)
    large = f > _SQRT2
    exponent = float(np.int64(bits >> _52) - 1023) + select(large, 1.0, 0.0)
    g = select(large, 0.5 * f, f) - 1.0
    # Two halves side by side, as one chain of seventeen would wait for itself.
    g2 = g * g
    even = fma(
        fma(fma(fma(fma(fma(fma(fma(_L16, g2, _L14), g2, _L12), g2, _L10), g2, _L8), g2, _L6), g2, _L4), g2, _L2),
        g2,
        _L0,
    )
    odd = fma(
        fma(fma(fma(fma(fma(fma(fma(_L17, g2, _L15), g2, _L13), g2, _L11), g2, _L9), g2, _L7), g2, _L5), g2, _L3),
        g2,
        _L1,
    )
    return fma(exponent, _LN2, g * fma(odd, g, even))


@jit
def turn(word: Any) -> tuple[float, float]:
    """Cosine and sine of a random angle: an angle of at most 45 degrees, then a quadrant by the lowest bits."""
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
    """Two independent standard normals, by Box and Muller [2]_; none is beyond 8.5."""
    radius = math.sqrt(-2.0 * log(unit(w0)))
    cos, sin = turn(w1)
    return radius * cos, radius * sin


@jit
def student(w0: Any, w1: Any, df: float) -> float:
    """Student's t with df degrees of freedom, by Bailey's polar method [3]_."""
    cos, _ = turn(w1)
    return math.sqrt(df * math.expm1(-2.0 * log(unit(w0)) / df)) * cos


@jit
def one(kind: int, a: float, b: float, table: Any, word: Any) -> float:
    """A sample of a law that takes one word."""
    if kind == RADEMACHER:
        return a if word >> _63 else -a
    if kind == BERNOULLI:
        return 1.0 if float(word >> _11) * 2.0**-53 < a else 0.0
    if kind == UNIFORM:
        return fma(b, float(word >> _11) * 2.0**-53, a)
    if kind == EXPONENTIAL:
        return -a * log(unit(word))
    if kind == LAPLACE:
        return fma(b if word & _1 else -b, log(unit(word)), a)
    if kind == EMPIRICAL:
        # The upper half of size * word, for a size below 2^32.
        size = U(b)
        return table[np.int64(a) + np.int64((size * (word >> _32) + ((size * (word & _LOW)) >> _32)) >> _32)]
    return a


@jit
def pair(kind: int, a: float, b: float, table: Any, seed: Any, run: Any, arm: Any, block: Any) -> tuple[float, float]:
    """Samples 2 block and 2 block + 1 of an arm."""
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
        return math.exp(fma(b, z0, a)), math.exp(fma(b, z1, a))
    return one(kind, a, b, table, w0), one(kind, a, b, table, w1)


@jit
def fill(
    kind: int, a: float, b: float, table: Any, seed: Any, runs: Any, arm: Any, block: Any, out: Any, at: int, lanes: int
) -> None:
    """Samples 2 block and 2 block + 1 of an arm in so many runs: to out[at:], run by run, and to out[at + lanes:]."""
    if kind == GAUSSIAN:
        for i in range(lanes):
            w0, w1 = words(seed, runs + U(i), arm, block)
            z0, z1 = normals(w0, w1)
            out[at + i] = fma(b, z0, a)
            out[at + lanes + i] = fma(b, z1, a)
    elif kind == RADEMACHER:
        for i in range(lanes):
            w0, w1 = words(seed, runs + U(i), arm, block)
            out[at + i] = select((w0 >> _63) != U(0), a, -a)
            out[at + lanes + i] = select((w1 >> _63) != U(0), a, -a)
    else:
        for i in range(lanes):
            x0, x1 = pair(kind, a, b, table, seed, runs + U(i), arm, block)
            out[at + i] = x0
            out[at + lanes + i] = x1


def encode(arms: tuple[Law, ...]) -> tuple[Ints, Floats, Floats]:
    """The laws as numbers: a kind and two parameters for each arm, and one table with the values of empirical arms."""
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
                raise TypeError(f"{law!r} is not a law that can be simulated; eq.Empirical(values) takes any data")
        kinds.append(code[0])
        parameters.append(code[1:])
    return np.array(kinds), np.array(parameters, dtype=float).reshape(len(arms), 2), np.array(table)


class Laws(NamedTuple):
    """All that samples are made of: what `encode` gives, and the seed."""

    kinds: Any
    parameters: Any
    table: Any
    seed: Any


@jit
def pair_of(laws: Any, run: Any, arm: Any, block: Any) -> tuple[float, float]:
    """`pair`, by the number of the arm."""
    a, b = laws.parameters[arm, 0], laws.parameters[arm, 1]
    return pair(laws.kinds[arm], a, b, laws.table, laws.seed, run, U(arm), U(block))


@jit
def fill_of(laws: Any, runs: Any, arm: Any, block: Any, out: Any, at: int, lanes: int) -> None:
    """`fill`, by the number of the arm."""
    a, b = laws.parameters[arm, 0], laws.parameters[arm, 1]
    fill(laws.kinds[arm], a, b, laws.table, laws.seed, runs, U(arm), U(block), out, at, lanes)


@jit
def _draw(laws: Any, run: Any, arm: int, first: int, out: Any) -> None:
    for j in range(len(out)):
        i = first + j
        x0, x1 = pair_of(laws, run, arm, i >> 1)
        out[j] = x1 if i & 1 else x0


def samples(problem: Problem, seed: int, run: int, arm: int, count: int, first: int = 0) -> Floats:
    """X_{k,i} for i from `first` on: the samples that every simulation with this seed meets in this run."""
    out = np.empty(count)
    _draw(Laws(*encode(problem.arms), U(seed)), U(run), arm, first, out)
    return out
