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
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakSet

import numba
import numpy as np

from equipoise.base.errors import EquipoiseError
from equipoise.base.inputs import shown
from equipoise.compiled import jit
from equipoise.numeric import moments
from equipoise.strategies.strategy import FILLED_IN, Numbers, Strategy, Support, zeros

_FUNCTIONS = {
    "variance": ("count", "mean", "m2", "pooled", "own", "params"),
    "floor": ("t", "arms", "params"),
    "keep": ("sample", "count", "mean", "m2", "pooled", "own", "params"),
    "share": ("count", "mean", "m2", "pooled", "own", "params"),
    "pool": ("sums", "arms", "pooled", "params"),
}
# The functions that return a tuple, and the attribute that names its numbers.
_NAMES = {"keep": "own", "share": "sums", "pool": "pooled"}

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
    for name in _NAMES.values():
        value = getattr(strategy, name)
        if not (isinstance(value, tuple) and all(isinstance(each, str) for each in value)):
            raise EquipoiseError(
                f"{kind.__name__}.{name} must be a tuple of names such as ('first', 'second'), got {shown(value)}"
            )
        if len(set(value)) != len(value):
            raise EquipoiseError(f"{kind.__name__}.{name} must have different names, got {shown(value)}")
    if bool(strategy.sums) != bool(strategy.pooled):
        raise EquipoiseError(
            f"{kind.__name__} must declare both sums and pooled or neither, got sums={strategy.sums!r} and "
            f"pooled={strategy.pooled!r}"
        )
    for name in ("share", "pool"):
        if strategy.pooled and getattr(kind, name) is getattr(Strategy, name):
            raise EquipoiseError(f"{kind.__name__} declares pooled, so it must define {name}{_signature(name)}")
    if not strategy.pooled:
        warn_if_pool_is_undeclared(kind, stacklevel=3)


def check_params(strategy: Strategy, params: Any) -> Numbers:
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


def check_numbers(strategy: Strategy, params: Numbers, support: Support = None) -> None:
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


def check_formula(strategy: Strategy, params: Numbers, count: float, mean: float, m2: float, own: Numbers) -> None:
    """
    Refuse a strategy whose numbers are wrong for an arm with these moments.

    Its variance must be a finite number >= 0, and what it adds to the sums must be finite. `own` are the numbers that
    the arm starts with. If samples change them, they are what `keep` returns for samples that are told as these
    moments; a strategy that cannot do without the samples themselves returns NaN there, and is not checked.
    """
    arm = np.float64(count), np.float64(mean), np.float64(m2)
    try:
        with np.errstate(all="ignore"):
            numbers, kept, pooled = _floats(params), _floats(own), _floats(zeros(strategy.pooled))
            if strategy.keeps():
                kept = strategy.keep(np.float64(math.nan), *arm, pooled, kept, numbers)
                if any(map(math.isnan, kept)):
                    return
            problem = _problem(strategy, numbers, *arm, kept, pooled)
    except Exception:  # as in `_trial`
        return
    if problem:
        raise EquipoiseError(problem)


def _floats(numbers: Iterable[float]) -> Numbers:
    """Return numbers as compiled functions get them: in NumPy's arithmetic, and one 0 for none."""
    return tuple(map(np.float64, numbers)) or (np.float64(0),)


def _worlds(support: Support) -> list[tuple[float, ...]]:
    """Return some samples of an arm, in each unit that they are tried in."""
    if support == "binary":
        return [(1.0, 0.0, 0.0, 1.0, 1.0)]
    if support is not None:
        low, high = support
        return [tuple(low + (high - low) * part for part in _PARTS)]
    return [tuple(unit * part for part in _PARTS) for unit in _UNITS]


def _trial(strategy: Strategy, params: Numbers, samples: tuple[float, ...]) -> str:
    """Return what is wrong with a strategy's numbers after `warmup` of these samples, in turn; else nothing."""
    numbers, pooled = _floats(params), _floats(zeros(strategy.pooled))
    # What the engine fills in is 1.
    own = _floats(float(name in FILLED_IN) for name in strategy.own)
    count, mean, m2 = np.float64(0), np.float64(0), np.float64(0)
    try:
        with np.errstate(all="ignore"):
            if strategy.has_floor() and math.isnan(strategy.floor(np.float64(0), np.float64(2), numbers)):
                return f"{type(strategy).__name__}.floor must return a number, got nan for t=0 and arms=2"
            for i in range(strategy.warmup):
                sample = np.float64(samples[i % len(samples)])
                count, mean, m2 = moments.add(count, mean, m2, sample)
                if strategy.keeps():
                    before, own = own, strategy.keep(sample, count, mean, m2, pooled, own, numbers)
                    arguments = f"sample={sample:g}, count={count:g} and own={_in_words(before)}"
                    if wrong := _wrong_tuple(strategy, "keep", own, arguments):
                        return wrong
            return _problem(strategy, numbers, count, mean, m2, own, pooled)
    except Exception:
        # An error here need not be one in compiled code, and the other way round: `check_compiles` looks at that.
        return ""


def _problem(
    strategy: Strategy, params: Numbers, count: float, mean: float, m2: float, own: Numbers, pooled: Numbers
) -> str:
    """Return what is wrong with an arm's shares, what is pooled of it alone, or its variance; else nothing."""
    arm = f"count={count:g}, mean={mean:g}, m2={m2:g}, pooled={_in_words(pooled)} and own={_in_words(own)}"
    if strategy.pooled and count >= 2:
        sums = strategy.share(count, mean, m2, pooled, own, params)
        if wrong := _wrong_tuple(strategy, "share", sums, arm):
            return wrong
        pooled = strategy.pool(sums, np.float64(1), pooled, params)
        if wrong := _wrong_tuple(strategy, "pool", pooled, f"sums={_in_words(sums)} and arms=1"):
            return wrong
    value = strategy.variance(count, mean, m2, pooled, own, params)
    if not 0 <= value < math.inf:
        return f"{type(strategy).__name__}.variance must return a finite number >= 0, got {value:g} for {arm}"
    return ""


def _wrong_tuple(strategy: Strategy, name: str, found: Any, arguments: str) -> str:
    """Return what is wrong with the tuple that a function returned for these arguments; else nothing."""
    names = getattr(strategy, _NAMES[name])
    if isinstance(found, tuple) and len(found) == len(names) and all(map(math.isfinite, found)):
        return ""
    got = _in_words(found) if isinstance(found, tuple) else shown(found)
    wanted = f"a tuple of {len(names)} finite number{'s' * (len(names) > 1)}, {', '.join(names)}"
    return f"{type(strategy).__name__}.{name} must return {wanted}, got {got} for {arguments}"


def _in_words(numbers: Numbers) -> str:
    return f"({', '.join(f'{number:g}' for number in numbers)})"


# ---- compiling

_COMPILED: set[tuple[Callable[..., Any], tuple[int, ...]]] = set()
# What Numba converts to a float.
_RETURNED = (numba.types.Integer, numba.types.Float, numba.types.Boolean, numba.types.Optional)


def check_compiles(strategy: Strategy, params: Numbers) -> None:
    """
    Refuse a strategy that cannot be compiled.

    Compiled functions are kept on disk, where the kernels of studies and simulations find them.
    """
    used = {
        "variance": True,
        "floor": strategy.has_floor(),
        "keep": strategy.keeps(),
        "share": bool(strategy.pooled),
        "pool": bool(strategy.pooled),
    }
    size = sizes(strategy, params)
    for name, arguments in _FUNCTIONS.items():
        function = getattr(strategy, name)
        if not used[name] or (function, tuple(size.values())) in _COMPILED:
            continue
        try:
            # As a part, which is what kernels are made of.
            compiled: Any = jit(function).part
            compiled.compile(
                tuple(
                    numba.types.UniTuple(numba.float64, size[each]) if each in size else numba.float64
                    for each in arguments
                )
            )
            returned = compiled.overloads[compiled.signatures[0]].signature.return_type
        except Exception as error:  # most are Numba's own, but its passes raise others too
            raise compile_error(strategy, name, params, error) from error
        if wrong := _wrong_type(strategy, name, returned):
            raise compile_error(strategy, name, params, TypeError(wrong))
        _COMPILED.add((function, tuple(size.values())))


def _wrong_type(strategy: Strategy, name: str, returned: Any) -> str:
    """Return what is wrong with the type that a function returns; else nothing."""
    if name not in _NAMES:
        return "" if isinstance(returned, _RETURNED) else f"it returns {returned}, not a number"
    names = getattr(strategy, _NAMES[name])
    if (
        isinstance(returned, numba.types.BaseTuple)
        and len(returned) == len(names)
        and all(isinstance(each, _RETURNED) for each in returned)
    ):
        return ""
    return f"it returns {returned}, not a tuple of {len(names)} numbers ({', '.join(names)})"


def sizes(strategy: Strategy, params: Numbers) -> dict[str, int]:
    """Return how many numbers each tuple has that compiled functions get: at least one, as none can be empty."""
    return {
        "pooled": len(zeros(strategy.pooled)),
        "own": len(zeros(strategy.own)),
        "sums": len(zeros(strategy.sums)),
        "params": max(len(params), 1),
    }


def compile_error(strategy: Strategy, name: str, params: Numbers, error: Exception) -> EquipoiseError:
    """
    Return what to raise where Numba cannot compile a function of a strategy.

    Parameters
    ----------
    strategy
        The strategy.
    name
        The name of the function, such as "variance".
    params
        The parameters it is compiled for.
    error
        What Numba raised.
    """
    # Of the pages that Numba prints, the first line that is not about its own stages.
    lines = (line.strip() for line in re.sub(r"\x1b\[\d*m", "", str(error)).splitlines())
    reason = next((line for line in lines if line and not line.startswith("Failed in")), type(error).__name__)
    size = sizes(strategy, params)
    lengths = ", ".join(f"{each} {size[each]}" for each in _FUNCTIONS[name] if each in size)
    return EquipoiseError(
        f"{type(strategy).__name__}.{name} cannot be compiled: {reason.rstrip('.')}; it may use numbers, tuples of "
        f"them, math and functions compiled with Numba; the lengths of its tuples are {lengths}"
    )


# ---- what is declared

_WARNED: WeakSet[type[Strategy]] = WeakSet()


def warn_if_pool_is_undeclared(kind: type[Strategy], stacklevel: int = 2) -> None:
    """Warn, once per class, if a strategy reads `pooled` without declaring a pool."""
    if kind.pooled or kind in _WARNED:
        return
    for name in ("variance", "keep"):
        if _reads(getattr(kind, name), _FUNCTIONS[name].index("pooled")):
            _WARNED.add(kind)
            warnings.warn(
                f"{kind.__name__}.{name} reads `pooled`, which is always 0 unless the class declares `sums` and "
                "`pooled` and defines `share` and `pool`",
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
