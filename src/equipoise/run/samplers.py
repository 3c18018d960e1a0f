"""
The samplers of a study: the user's functions and iterables in one form.

A sampler is a function, an iterable or a sequence for each arm, or one function for all arms. The parameters of a
function decide how it is called: `size` and `seed` are passed by name, and before them, in this order, the arm (if one
function serves all arms) and the item (if there are populations).
"""

from __future__ import annotations

import functools
import inspect
import threading
import time
import traceback
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from equipoise.base.arrays import Ints
from equipoise.base.errors import EquipoiseError, InvalidInput
from equipoise.base.inputs import Names, by_arm, check_names, integer, masked, number, printable, shown
from equipoise.base.tables import count
from equipoise.run import seeds
from equipoise.store import inside

# More samples than any arm will ever have.
ENDLESS = 2**62


class Exhausted(Exception):
    """An iterable has no more samples."""


class Call(NamedTuple):
    """One call of a sampler; with a size, it must return an array of that many values."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    size: int | None


class Outcome(NamedTuple):
    """The values of a call and its duration, or what went wrong; all None if there are no more samples."""

    values: Any
    seconds: float
    wrong: str | None
    trace: str | None


def perform_for(study: str, calls: Sequence[Call]) -> list[Outcome]:
    """Make some calls on a worker, for a study of this identity."""
    with inside.sampling(study):
        return perform(calls)


def perform(calls: Sequence[Call], clock: Callable[[], float] = time.perf_counter) -> list[Outcome]:
    """Make some calls."""
    outcomes = []
    for call in calls:
        start = clock()
        try:
            values = _checked(call, call.function(*call.args, **call.kwargs))
        except Exception as error:
            outcomes.append(_gone_wrong(error, clock() - start))
        else:
            outcomes.append(Outcome(values, clock() - start, None, None))
    return outcomes


async def perform_async(study: str, calls: Sequence[Call]) -> list[Outcome]:
    """Make some calls of async functions, for a study of this identity."""
    with inside.sampling(study):
        return await _perform_async(calls)


async def _perform_async(calls: Sequence[Call]) -> list[Outcome]:
    outcomes = []
    for call in calls:
        start = time.perf_counter()
        try:
            values = call.function(*call.args, **call.kwargs)
            values = _checked(call, await values if inspect.isawaitable(values) else values)
        except Exception as error:
            outcomes.append(_gone_wrong(error, time.perf_counter() - start))
        else:
            outcomes.append(Outcome(values, time.perf_counter() - start, None, None))
    return outcomes


def _checked(call: Call, values: Any) -> Any:
    """Return what a sampler returned as a float or an array of floats, or refuse it."""
    if call.size is None:
        return values if type(values) is float else number("a sample", values)
    if missing := masked(values):
        raise InvalidInput(f"a sampler must return no masked values, got {missing:,} of {call.size:,}")
    array = np.asarray(values)
    if array.shape != (call.size,):
        raise InvalidInput(
            f"a sampler must return {count(call.size, 'value')} for size={call.size}, got {_described(values, array)}"
        )
    if array.dtype.kind not in "fiub":
        return np.array([number("a sample", value) for value in array.tolist()])
    return array.astype(np.float64)


def _described(values: Any, array: npt.NDArray[Any]) -> str:
    return shown(values) if array.ndim == 0 else f"an array of shape {array.shape}"


def _gone_wrong(error: Exception, seconds: float) -> Outcome:
    if isinstance(error, Exhausted):
        return Outcome(None, seconds, None, None)
    # A sentence of ours needs no name of a class.
    if _is_ours(error) if isinstance(error, TypeError | ValueError) else isinstance(error, EquipoiseError):
        return Outcome(None, seconds, _message(error), "")
    return Outcome(None, seconds, _in_words(error), "".join(traceback.format_exception(error)))


def _in_words(error: Exception) -> str:
    message = _message(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _message(error: Exception) -> str:
    """Return what an exception says, in one line; what a sampler raises may quote anything."""
    return printable(" ".join(str(error).split()))


def _is_ours(error: Exception) -> bool:
    """Whether the returned value was refused, rather than the sampler having raised."""
    trace = error.__traceback__
    return bool(trace and trace.tb_next and trace.tb_next.tb_frame.f_code is _checked.__code__)


@dataclass(frozen=True)
class Shape:
    """How a function is called: which arguments it takes, and whether it is async."""

    arm: bool
    item: bool
    size: bool
    seed: bool
    awaited: bool


class Stream:
    """An iterator as a function, for one thread at a time."""

    def __init__(self, iterable: Iterable[Any]) -> None:
        self._iterator: Iterator[Any] = iter(iterable)
        self._lock = threading.Lock()
        self._raised = ""  # what the last call raised

    def __call__(self) -> Any:
        with self._lock:
            try:
                value = next(self._iterator)
            except StopIteration:
                if self._raised:
                    # It has not run out of samples: Python ends a generator that raises.
                    raise EquipoiseError(
                        f"the iterator ended when it raised {self._raised}; use a function for samples that can fail"
                    ) from None
                raise Exhausted from None
            except Exception as error:
                self._raised = _in_words(error)
                raise
            self._raised = ""
            return value


class Samplers:
    """
    The samplers of all arms.

    Attributes
    ----------
    arms
        The arms' names.
    limits
        The most samples that each arm has.
    populations
        The sizes of the populations, or None if there are none.
    vectorised, awaited, local
        Whether every function takes a size; whether any is async; whether any must stay in this process.
    """

    def __init__(self, given: Any, arms: Any, populations: Any, seed: int) -> None:
        functions, self.arms = _by_arm(given, arms, populations)
        check_names(self.arms)
        self._items = None if populations is None else _items(populations, self.arms)
        self.populations = None if self._items is None else tuple(len(items) for items in self._items)
        shared = callable(functions)
        self._functions: list[Any] = []
        self._shapes: list[Shape] = []
        self.limits = np.full(len(self.arms), ENDLESS, np.int64)
        self.local = False
        known: Shape | None = None
        for k, arm in enumerate(self.arms):
            function = functions if shared else functions[arm]
            if not callable(function):
                if self._items is not None:
                    raise TypeError(
                        f"arm {arm!r} must have a function of an item as its sampler, because it has a population"
                    )
                samples = _iterable(function, arm)
                if missing := masked(samples):
                    raise InvalidInput(f"arm {arm!r} must have no masked samples, got {missing:,} of {len(function):,}")
                if isinstance(samples, Sized) and len(samples) == 0:
                    raise InvalidInput(f"arm {arm!r} must have at least one sample, got {shown(function)}")
                if not isinstance(samples, Sequence | np.ndarray):
                    function = Stream(samples)
                    self.local = True
                    shape = Shape(False, False, False, False, False)
                else:
                    self.limits[k] = len(samples)
                    # The i-th sample is the i-th of these, on every executor and after every restart.
                    function, shape = samples.__getitem__, Shape(False, True, False, False, False)
            elif known is None or not shared:
                shape = known = _shape(function, shared, self._items is not None)
            else:
                shape = known
            self._functions.append(function)
            self._shapes.append(shape)
        if self.populations is not None:
            self.limits[:] = self.populations
        self.vectorised = all(shape.size for shape in self._shapes)
        self._any_size = any(shape.size for shape in self._shapes)
        self.awaited = any(shape.awaited for shape in self._shapes)
        self.seed = seed
        self._bases: dict[int, int] = {}
        self._orders: dict[int, Ints] = {}

    def call(self, k: int, i: int) -> Call:
        """Return the call for sample i of the arm at place k."""
        shape = self._shapes[k]
        args = (self.arms[k],) if shape.arm else ()
        if shape.item:
            args = (*args, self._items_of(k, np.array([i])) if shape.size else self._items_of(k, np.array([i]))[0])
        kwargs: dict[str, Any] = {}
        if shape.seed:
            found = seeds.seed(self._base(k), i)
            kwargs["seed"] = np.array([found], np.uint64) if shape.size else found
        if shape.size:
            kwargs["size"] = 1
        return Call(self._functions[k], args, kwargs, 1 if shape.size else None)

    def calls(self, places: Ints, indices: Ints) -> tuple[list[Call], list[Ints]]:
        """Return the calls for samples i of arms at these places, and which of the samples each call gives."""
        if not self._any_size or len(places) == 1:
            # In the order of asking, so that a drift in time hits all arms alike.
            one_by_one = [self.call(k, i) for k, i in zip(places.tolist(), indices.tolist(), strict=True)]
            return one_by_one, list(np.arange(len(places)).reshape(-1, 1))
        calls: list[Call] = []
        which: list[Ints] = []
        order = np.argsort(places, kind="stable")
        cuts = np.flatnonzero(np.diff(places[order])) + 1
        for group in np.split(order, cuts):
            found, parts = self._calls_of(int(places[group[0]]), indices[group], group)
            calls += found
            which += parts
        return calls, which

    def _calls_of(self, k: int, indices: Ints, group: Ints) -> tuple[list[Call], list[Ints]]:
        shape = self._shapes[k]
        if not shape.size:
            calls = [self.call(k, i) for i in indices.tolist()]
            return calls, [group[j : j + 1] for j in range(len(group))]
        function = self._functions[k]
        first = (self.arms[k],) if shape.arm else ()
        items = self._items_of(k, indices) if shape.item else None
        kwargs: dict[str, Any] = {"size": len(group)}
        if shape.seed:
            kwargs["seed"] = seeds.seeds(self._base(k), indices)
        return [Call(function, first if items is None else (*first, items), kwargs, len(group))], [group]

    def _items_of(self, k: int, indices: Ints) -> Any:
        if self._items is None:
            return indices.tolist()  # of a sequence of samples
        if k not in self._orders:
            self._orders[k] = seeds.order(self._base(k), len(self._items[k]))
        items, places = self._items[k], self._orders[k][indices]
        return items[places] if isinstance(items, np.ndarray) else [items[i] for i in places.tolist()]

    def _base(self, k: int) -> int:
        if k not in self._bases:
            self._bases[k] = seeds.base(self.seed, self.arms[k])
        return self._bases[k]


def _by_arm(given: Any, arms: Any, populations: Any) -> tuple[Any, Sequence[Hashable]]:
    """Return one function or a mapping from arms to samplers, and the arms' names."""
    if isinstance(given, Mapping):
        names = tuple(given)
        if not names:
            raise InvalidInput("samplers must have at least one arm, got an empty mapping")
        if arms is not None and tuple(arms) != names:
            raise InvalidInput(
                f"arms must be those of the samplers, {shown(list(names))}, got {shown(arms)}; leave arms out"
            )
        return given, names
    if not callable(given):
        raise TypeError(
            f"samplers must be a function of an arm or a mapping from arms to functions, got {shown(given)}"
        )
    if arms is None and isinstance(populations, Mapping):
        arms = tuple(populations)
    if arms is None:
        raise TypeError("one sampler for all arms needs their names, as in arms=['a', 'b']")
    return given, Names.of(arms).names


def _items(populations: Any, arms: Sequence[Hashable]) -> list[Any]:
    """Return the items of each arm's population."""
    found: list[Any] = []
    for arm, items in zip(arms, by_arm("populations", populations, arms), strict=True):
        if isinstance(items, int | np.integer) and not isinstance(items, bool):
            items = range(integer(f"the population of arm {arm!r}", items, least=1))
        elif not isinstance(items, np.ndarray) or not items.ndim:
            try:
                items = items if isinstance(items, Sequence) else list(items)
            except TypeError:
                raise TypeError(
                    f"the population of arm {arm!r} must be a list of items or the number of items, got {shown(items)}"
                ) from None
        if len(items) == 0:
            raise InvalidInput(f"the population of arm {arm!r} must have at least one item, got none")
        if missing := masked(items):
            raise InvalidInput(
                f"the population of arm {arm!r} must have no masked items, got {missing:,} of {len(items):,}"
            )
        found.append(items)
    return found


def _iterable(thing: Any, arm: Hashable) -> Iterable[Any]:
    # A 0-d array is one number, though NumPy gives it the methods of an iterable.
    if isinstance(thing, Iterable) and not isinstance(thing, str | bytes) and getattr(thing, "ndim", None) != 0:
        return thing
    raise TypeError(f"the sampler of arm {arm!r} must be a function or an iterable of samples, got {shown(thing)}")


def _shape(function: Any, shared: bool, items: bool) -> Shape:
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    awaited = inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(getattr(inner, "__call__", None))  # noqa: B004
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some functions written in C have no signature
        return Shape(shared, items, False, False, awaited)
    named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    positional = [
        p
        for p in parameters
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.name not in ("size", "seed")
    ]
    must = sum(p.default is p.empty for p in positional)
    spread = any(p.kind == p.VAR_POSITIONAL for p in parameters)
    most = int(shared) + int(items)
    if must > most or (most and not positional and not spread):
        wanted = " and ".join(["the arm's name"] * shared + ["an item"] * items) or "no arguments"
        none = "takes no other arguments" if named else "takes no arguments"
        instead = f"requires {count(must, 'argument')}" if must else none
        raise TypeError(
            f"a sampler must accept {wanted} (and `size` or `seed` if it uses them), "
            f"got {getattr(function, '__name__', None) or shown(function)}, "
            f"which {instead}"
        )
    takes = most if spread else (must or min(len(positional), most))
    # A single parameter is for the item, unless it is called `arm`.
    alone = takes == 1 and most == 2
    arm_too = shared and (takes == most or (alone and positional[0].name == "arm"))
    return Shape(arm_too, items and not (alone and arm_too), "size" in named, "seed" in named, awaited)


def check_local(samplers: Samplers) -> None:
    """Refuse iterables if samples are taken in other processes."""
    if samplers.local:
        raise EquipoiseError(
            "executor must be None or a number of threads if an arm is an iterable, which is read in this process"
        )
