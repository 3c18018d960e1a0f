"""
Checks that a strategy keeps its contract, for studies and simulations alike.

In this order, and before any state is touched:

1. `check_strategy`: its attributes and the signatures of its functions;
2. `check_params`: what its `params` returned;
3. `check_numbers`: what its functions return for a few plausible samples, in plain Python;
4. `check_compiles`: whether Numba can compile its functions.

`check_formula` checks the numbers for one arm of which the moments are known. Every problem is reported in one sentence
that names the class and the function.
"""

from __future__ import annotations

import dis
import inspect
import math
import re
import warnings
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

import numba
import numpy as np

from equipoise import moments
from equipoise.compiled import jit
from equipoise.errors import EquipoiseError
from equipoise.inputs import shown
from equipoise.strategies.strategy import OWNS, POOLS, Strategy, Support

_FUNCTIONS = {
    "variance": ("count", "mean", "m2", "pooled", "own", "params"),
    "floor": ("t", "arms", "params"),
    "freeze": ("sample", "count", "mean", "m2", "pooled", "own", "params"),
    "share": ("count", "mean", "m2", "own", "params"),
}

# The samples of the trial in `check_numbers`, as parts of a support, and the units they are tried in without one. A
# formula may be at home in one unit only, so that it is refused where it fails in all of them.
_PARTS = (0.3, 0.8, 0.55, 0.1, 0.9)
_UNITS = (1.0, 1e-6, 1e6)
# A longer warm-up is not tried out.
_LONGEST_TRIAL = 1000


def check_strategy(strategy: Strategy) -> None:
    """Refuse a strategy that is not built as `Strategy` says."""
    kind = type(strategy)
    if kind.variance is Strategy.variance:
        raise EquipoiseError(f"{kind.__name__} must define variance{_signature('variance')}")
    for name, arguments in _FUNCTIONS.items():
        if not isinstance(inspect.getattr_static(kind, name), staticmethod):
            raise EquipoiseError(
                f"{kind.__name__}.{name} must be static; write @staticmethod def {name}{_signature(name)}"
            )
        try:
            inspect.signature(getattr(kind, name)).bind(*arguments)
        except TypeError:
            raise EquipoiseError(
                f"{kind.__name__}.{name} must take the {len(arguments)} arguments {_signature(name)}"
            ) from None
        except ValueError:  # a function without a signature, such as one written in C
            pass
    try:
        inspect.signature(kind.params).bind(strategy, None, 1, None)
    except TypeError:
        raise EquipoiseError(f"{kind.__name__}.params must take the arguments (self, budget, arms, support)") from None
    if not isinstance(strategy.warmup, int) or isinstance(strategy.warmup, bool) or strategy.warmup < 0:
        raise EquipoiseError(f"{kind.__name__}.warmup must be a non-negative integer, got {shown(strategy.warmup)}")
    for name, known in (("pool", POOLS), ("own", OWNS)):
        value = getattr(strategy, name)
        if value not in known:
            raise EquipoiseError(
                f"{kind.__name__}.{name} must be one of {', '.join(map(repr, known))}, got {shown(value)}"
            )
    if strategy.pool == "none":
        warn_if_pool_is_undeclared(kind, stacklevel=3)


def check_params(strategy: Strategy, params: Any) -> tuple[float, ...]:
    """Return a strategy's parameters as floats, or refuse what is not finite."""
    try:
        found = tuple(float(value) for value in params)
        fine = isinstance(params, tuple | list) and all(map(math.isfinite, found))
    except (TypeError, ValueError, OverflowError):
        fine = False
    if not fine:
        raise EquipoiseError(
            f"{type(strategy).__name__}.params must return a tuple of finite numbers, got {shown(params)}"
        )
    return found


# ---- numbers


def check_numbers(strategy: Strategy, params: tuple[float, ...], support: Support = None) -> None:
    """
    Refuse a strategy whose numbers are wrong right after the warm-up.

    The first samples of an arm are tried out in plain Python, within the support or in several units. What fails in
    some of them only may be right for the samples to come, and is not refused here: a study reports it at the sample
    where it happens. The arithmetic is that of compiled code, where a division by zero is not an error.
    """
    if strategy.warmup > _LONGEST_TRIAL:
        return
    problems = [_trial(strategy, params, samples) for samples in _worlds(support)]
    if all(problems):
        raise EquipoiseError(problems[0])


def check_formula(
    strategy: Strategy, params: tuple[float, ...], count: float, mean: float, m2: float, own: float, pooled: float = 0.0
) -> None:
    """
    Refuse a strategy whose numbers are wrong for an arm with these moments.

    Its share and its variance must be finite numbers >= 0. If its `own` is "frozen", the number is what `freeze`
    returns for samples that are told as these moments, whatever `own` is; a strategy that cannot do without the samples
    themselves returns NaN there, and is not checked.
    """
    numbers = tuple(map(np.float64, params or (0.0,)))
    moments_of_arm = np.float64(count), np.float64(mean), np.float64(m2)
    kept, shared = np.float64(own), np.float64(pooled)
    try:
        with np.errstate(all="ignore"):
            if strategy.own == "frozen":
                nothing = np.float64(math.nan)
                kept = np.float64(strategy.freeze(nothing, *moments_of_arm, shared, nothing, numbers))
            if strategy.own == "frozen" and math.isnan(kept):
                return
            problem = _problem(strategy, numbers, *moments_of_arm, kept, shared)
    except Exception:  # as in `_trial`
        return
    if problem:
        raise EquipoiseError(problem)


def _worlds(support: Support) -> list[tuple[float, ...]]:
    """Return some samples of an arm, in each unit that they are tried in."""
    if support == "binary":
        return [(1.0, 0.0, 0.0, 1.0, 1.0)]
    if support is not None:
        low, high = support
        return [tuple(low + (high - low) * part for part in _PARTS)]
    return [tuple(unit * part for part in _PARTS) for unit in _UNITS]


def _trial(strategy: Strategy, params: tuple[float, ...], samples: tuple[float, ...]) -> str:
    """Return what is wrong with a strategy's numbers after `warmup` of these samples, in turn; else nothing."""
    numbers = tuple(map(np.float64, params or (0.0,)))
    own = np.float64({"none": 0.0, "variance": 1.0, "frozen": math.nan}[strategy.own])
    count, mean, m2 = np.float64(0), np.float64(0), np.float64(0)
    try:
        with np.errstate(all="ignore"):
            if strategy.has_floor() and math.isnan(strategy.floor(np.float64(0), np.float64(2), numbers)):
                return f"{type(strategy).__name__}.floor must return a number, got nan for t=0 and arms=2"
            for i in range(strategy.warmup):
                sample = np.float64(samples[i % len(samples)])
                count, mean, m2 = moments.add(count, mean, m2, sample)
                if strategy.own == "frozen":
                    own = strategy.freeze(sample, count, mean, m2, np.float64(0), own, numbers)  # type: ignore[assignment]
            pooled = np.float64(0)
            if strategy.pool != "none" and count >= 2:
                pooled = np.float64(strategy.share(count, mean, m2, own, numbers))
            return _problem(strategy, numbers, count, mean, m2, own, pooled)
    except Exception:
        # An error here need not be one in compiled code, and the other way round: `check_compiles` looks at that.
        return ""


def _problem(
    strategy: Strategy, params: tuple[float, ...], count: float, mean: float, m2: float, own: float, pooled: float
) -> str:
    """Return what is wrong with the share or the variance of an arm; else nothing."""
    found = {}
    if strategy.pool != "none" and count >= 2:
        found["share"] = strategy.share(count, mean, m2, own, params)
    found["variance"] = strategy.variance(count, mean, m2, pooled, own, params)
    for name, value in found.items():
        if not 0 <= value < math.inf:
            return (
                f"{type(strategy).__name__}.{name} must return a finite number >= 0, got {value:g} for "
                f"count={count:g}, mean={mean:g}, m2={m2:g}, pooled={pooled:g} and own={own:g}"
            )
    return ""


# ---- compiling

_COMPILED: set[tuple[Callable[..., float], int]] = set()
# What Numba converts to a float.
_RETURNED = (numba.types.Integer, numba.types.Float, numba.types.Boolean, numba.types.Optional)


def check_compiles(strategy: Strategy, params: tuple[float, ...]) -> None:
    """
    Refuse a strategy that cannot be compiled.

    Compiled functions are kept on disk, where the kernels of studies and simulations find them.
    """
    used = {
        "variance": True,
        "floor": strategy.has_floor(),
        "freeze": strategy.own == "frozen",
        "share": strategy.pool != "none",
    }
    size = max(len(params), 1)  # a compiled tuple cannot be empty, so that kernels pass (0.0,)
    for name, arguments in _FUNCTIONS.items():
        function = getattr(strategy, name)
        if not used[name] or (function, size) in _COMPILED:
            continue
        numbers = (numba.float64,) * (len(arguments) - 1)
        try:
            compiled: Any = jit(function)
            compiled.compile((*numbers, numba.types.UniTuple(numba.float64, size)))
            returned = compiled.overloads[compiled.signatures[0]].signature.return_type
        except Exception as error:  # most are Numba's own, but its passes raise others too
            raise compile_error(strategy, name, size, error) from error
        if not isinstance(returned, _RETURNED):
            raise compile_error(strategy, name, size, TypeError(f"it returns {returned}, not a number"))
        _COMPILED.add((function, size))


def compile_error(strategy: Strategy, name: str, params: int, error: Exception) -> EquipoiseError:
    """
    Return what to raise where Numba cannot compile a function of a strategy.

    Parameters
    ----------
    strategy
        The strategy.
    name
        The name of the function, such as "variance".
    params
        How many parameters it is compiled for.
    error
        What Numba raised.
    """
    # Of the pages that Numba prints, the first line that is not about its own stages.
    lines = (line.strip() for line in re.sub(r"\x1b\[\d*m", "", str(error)).splitlines())
    reason = next((line for line in lines if line and not line.startswith("Failed in")), type(error).__name__)
    return EquipoiseError(
        f"{type(strategy).__name__}.{name} cannot be compiled: {reason.rstrip('.')}; it may use numbers, math and "
        f"functions compiled with Numba, and params, a tuple of {params} here"
    )


# ---- what is declared

_WARNED: WeakSet[type[Strategy]] = WeakSet()


def warn_if_pool_is_undeclared(kind: type[Strategy], stacklevel: int = 2) -> None:
    """Warn, once per class, if a strategy reads `pooled` without declaring a pool."""
    if kind.pool != "none" or kind in _WARNED:
        return
    for name in ("variance", "freeze"):
        if _reads(getattr(kind, name), _FUNCTIONS[name].index("pooled")):
            _WARNED.add(kind)
            warnings.warn(
                f"{kind.__name__}.{name} reads `pooled`, which is always 0 unless the class declares what to pool; "
                'add pool = "mean" or pool = "max" to it',
                UserWarning,
                stacklevel=stacklevel,
            )
            return


def _reads(function: Any, position: int) -> bool:
    """Whether a function reads its argument at this position; False where its code cannot be looked at."""
    code = getattr(getattr(function, "py_func", function), "__code__", None)
    if code is None or code.co_argcount <= position:
        return False
    name = code.co_varnames[position]
    # From Python 3.13 on one instruction may load two variables.
    return any(
        name in (each.argval if isinstance(each.argval, tuple) else (each.argval,))
        for each in dis.get_instructions(code)
        if each.opname.startswith("LOAD")
    )


def _signature(name: str) -> str:
    return f"({', '.join(_FUNCTIONS[name])})"
