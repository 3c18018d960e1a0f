"""Numbers and intervals by arm: mappings from the arms' names that are arrays too."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from equipoise.base.arrays import Bools
from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import Names, plain_name, spoken
from equipoise.base.tables import MOST_ROWS
from equipoise.inference import ranking
from equipoise.inference.arm_intervals import ArmIntervals
from equipoise.inference.known import Known
from equipoise.intervals import Interval, Kind, describe_each

# As many arms are named in a sentence about some of them.
MOST_NAMED: Final = 3


class ByArm(Mapping[Hashable, float]):
    """
    One number for each arm: a mapping from the arms' names, and an array in the arms' order.

    `np.asarray(means)` gives the values, `pandas.Series(means)` a series with the arms' names as its index.

    Attributes
    ----------
    array
        The values in the arms' order; read-only.
    """

    def __init__(self, names: Names, array: Any) -> None:
        self._names = names
        self.array = _read_only(array)

    def __getitem__(self, arm: Hashable) -> float:
        return self.array[self._names.place(arm)].item()  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._names.names)

    def __len__(self) -> int:
        return len(self._names)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return _as_array(self.array, dtype, copy)

    def __repr__(self) -> str:
        if len(self) > MOST_ROWS:
            return f"<{len(self):,} numbers by arm>"
        return repr({plain_name(arm): value for arm, value in self.items()})


class IntervalsByArm(Mapping[Hashable, Interval]):
    """
    Intervals that hold for all arms at once: a mapping from the arms' names to pairs (low, high).

    `np.asarray(intervals)` has a row (low, high) for each arm.

    Attributes
    ----------
    low, high
        The ends in the arms' order; infinite, or those of the support, where too little is known.
    half_widths
        Half of high - low, in the arms' order.
    margins
        The larger of mean - low and high - mean, in the arms' order: the interval lies within the mean ± its margin.
        This is what is compared with a precision and printed after ±. It is the half-width where the interval is
        centred at the mean, as that of a binary arm near 0 or 1 is not.
    kind, level
        The kind of the intervals, and the probability with which all of them hold.
    fixed
        Which arms have fixed-width intervals instead, in the arms' order. If all have, that is the kind.
    """

    def __init__(self, names: Names, found: ArmIntervals) -> None:
        self._names = names
        ends = (found.low, found.high, found.half_widths, found.margins)
        self.low, self.high, self.half_widths, self.margins = map(_read_only, ends)
        self.fixed = _read_only(found.fixed)
        self.kind: Kind = "fixed-width" if len(found.low) and self.fixed.all() else found.kind
        self.level = found.level

    @classmethod
    def shown(cls, known: Known) -> IntervalsByArm:
        """Return the intervals of the arms that tables and charts show."""
        places = ranking.shown(known)
        names = known.names if len(places) == len(known.arms) else Names.of([known.arms[k] for k in places])
        return cls(names, ranking.intervals_shown(known))

    def __getitem__(self, arm: Hashable) -> Interval:
        k = self._names.place(arm)
        return Interval(float(self.low[k]), float(self.high[k]))

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._names.names)

    def __len__(self) -> int:
        return len(self._names)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return _as_array(np.stack([self.low, self.high], axis=1), dtype, copy)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kind of each interval, in the arms' order."""
        return tuple("fixed-width" if fixed else self.kind for fixed in self.fixed.tolist())

    @property
    def promise(self) -> str:
        """What these intervals promise, in a sentence or two."""
        others = [arm for arm, fixed in zip(self, self.fixed.tolist(), strict=True) if not fixed]
        which = spoken(others) if others and not self.marked.any() else ""
        return describe_each(self.kind, self.level, self.fixed, others=which)

    @property
    def marked(self) -> Bools:
        """Which arms a table marks with * since they are too many to name: those of another kind than fixed width."""
        others = ~self.fixed
        return np.asarray(others & bool(self.fixed.any() and others.sum() > MOST_NAMED))

    def __repr__(self) -> str:
        if len(self) > MOST_ROWS:
            return f"<{len(self):,} intervals by arm>"
        ends = (f"{plain_name(arm)!r}: ({low:.4g}, {high:.4g})" for arm, (low, high) in self.items())
        return "{" + ", ".join(ends) + "}"


def _read_only(array: Any) -> Any:
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def _as_array(array: Any, dtype: Any, copy: bool | None) -> Any:
    """Return what `__array__` is asked for, by the rules of NumPy 2, which NumPy 1 accepts."""
    found = array if dtype is None else array.astype(dtype, copy=False)
    if copy is False and found is not array:
        raise InvalidInput(f"values of type {array.dtype} cannot become {np.dtype(dtype)} without a copy")
    return found.copy() if copy else found
