"""
Arithmetic on doubles without branches or calls, so that compilers vectorise the loops around it.

It is for compiled code, of kernels and of strategies; `log` and `exp` may be called from Python too. No function takes
liberties with arithmetic, and constants are literals, so that it gives the same bits in a vectorised loop, in a scalar
one and on another machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from equipoise.compiled import jit

U = np.uint64

_MANTISSA, _ONE, _52 = U(0x000FFFFFFFFFFFFF), U(0x3FF0000000000000), U(52)
_SQRT2, _LN2 = 1.4142135623730951, 0.6931471805599453

# Polynomials, lowest coefficient first, fitted at Chebyshev nodes. They are literals because a fit at import would give
# other last bits with another linear algebra library. A test derives them again.
# log(1 + g)/g for g in [1/sqrt(2) - 1, sqrt(2) - 1].
_LOG = (
    0.9999999999999988,
    -0.4999999999999844,
    0.3333333333357596,
    -0.250000000008092,
    0.19999999947596353,
    -0.16666666512954648,
    0.14285718546837065,
    -0.12500013230562826,
    0.11110944813061621,
    -0.09999414644151272,
    0.090942417284385,
    -0.0834745500794526,
    0.07660924930173948,
    -0.06957772722837706,
    0.06718372459441373,
    -0.07438262878959571,
    0.07032589957431397,
    -0.03273604290603974,
)
# (exp(r) - 1 - r)/r² for r in [-log(2)/2, log(2)/2].
_EXP = (
    0.5000000000000004,
    0.1666666666666674,
    0.04166666666661593,
    0.008333333333256344,
    0.0013888888920924613,
    0.00019841270087016507,
    2.4801515810616494e-05,
    2.7556997970276304e-06,
    2.7622664374056676e-07,
    2.5211978887366238e-08,
)
_E0, _E1, _E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9 = _EXP
# log(2) as a number of 42 bits, so that its products with exponents are exact, and the rest.
_LN2_HIGH, _LN2_LOW, _PER_LN2 = 0.6931471805598903, 5.497923018708371e-14, 1.4426950408889634
# Added to a number, it leaves the nearest integer in the lowest bits.
_TO_INTEGER = 6755399441055744.0
_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7, _L8, _L9, _L10, _L11, _L12, _L13, _L14, _L15, _L16, _L17 = _LOG


@intrinsic
def fma(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a b + c with one rounding."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), code


@intrinsic
def as_float(typing: Any, bits: Any) -> Any:
    """Return the double with these bits."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.uint64), code


@intrinsic
def as_bits(typing: Any, number: Any) -> Any:
    """Return the bits of a double."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.uint64(types.float64), code


@intrinsic
def select(typing: Any, condition: Any, a: Any, b: Any) -> Any:
    """Return `a` if the condition holds, else `b`, without a branch."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(*args)

    return types.float64(types.boolean, types.float64, types.float64), code


@jit
def log(u: float) -> float:
    """Return the natural logarithm of a positive normal double, to about 1e-15."""
    bits = as_bits(u)
    f = as_float((bits & _MANTISSA) | _ONE)
    large = f > _SQRT2
    exponent = float(np.int64(bits >> _52) - 1023) + select(large, 1.0, 0.0)
    g = select(large, 0.5 * f, f) - 1.0
    # Even and odd powers apart: two short chains run in parallel, one of seventeen waits for itself.
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
def exp(x: float) -> float:
    """Return the exponential of a number, to about 4e-16 of itself; that of -708 or 709 for numbers beyond these."""
    x = min(max(x, -708.0), 709.0)
    whole = fma(x, _PER_LN2, _TO_INTEGER)
    n = whole - _TO_INTEGER
    r = fma(-n, _LN2_LOW, fma(-n, _LN2_HIGH, x))
    r2 = r * r
    even = fma(fma(fma(fma(_E8, r2, _E6), r2, _E4), r2, _E2), r2, _E0)
    odd = fma(fma(fma(fma(_E9, r2, _E7), r2, _E5), r2, _E3), r2, _E1)
    return (1.0 + fma(r2, fma(odd, r, even), r)) * as_float((as_bits(whole) << _52) + _ONE)
