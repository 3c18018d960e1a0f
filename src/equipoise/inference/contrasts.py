"""Contrasts of means, and differences of many pairs: values with intervals, printed and for programs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from equipoise.base import tables
from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.base.inputs import Names, named, plain_name, text_of
from equipoise.intervals import Kind, describe_each

if TYPE_CHECKING:
    import pandas
    import polars


# The remark on samples whose support was not declared, and whose intervals are those of binary arms.
BINARY: Final = (
    'All samples are 0 or 1, and the intervals assume that no other value can occur; support="binary" says so.'
)


@dataclass(frozen=True)
class Contrast:
    """
    A weighted sum of arms' means, such as the difference of two.

    Attributes
    ----------
    value, error
        The sum for the sample means, and its standard error.
    low, high
        The ends of its interval; infinite, or those of the support, where too little is known.
    level, kind
        The probability with which the interval holds, and its kind.
    weights
        By arm.
    """

    value: float
    error: float
    low: float
    high: float
    level: float
    kind: Kind
    weights: Mapping[Any, float]

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0

    @property
    def opposite(self) -> Contrast:
        """The same with opposite weights."""
        weights = {arm: -weight for arm, weight in reversed(list(self.weights.items()))}
        return replace(self, value=-self.value, low=-self.high, high=-self.low, weights=weights)

    @property
    def half_width(self) -> float:
        """Half of high - low."""
        return (self.high - self.low) / 2

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers; `weights` as pairs of an arm and its weight, None for what is unknown or infinite."""
        known = {name: getattr(self, name) for name in ("value", "error", "low", "high", "level", "kind")}
        return dict(tables.json_ready(known | {"weights": [list(pair) for pair in self.weights.items()]}))

    @property
    def words(self) -> str:
        """The sum, such as a - 0.5 b - 0.5 c."""
        return _sum(self.weights)

    def __repr__(self) -> str:
        ends = interval(self.low, self.high)
        known = "no interval yet" if ends == "—" else f"{tables.percent(self.level)} interval {ends}"
        known += f" ({self.kind.replace('-', ' ')})" if self.kind.startswith("fixed") else ""
        value = tables.rounded(self.value, self.half_width)
        return f"{_sum(self.weights)}: {value}, {known}, standard error {tables.rounded(self.error, self.error)}"


@dataclass(frozen=True, eq=False, repr=False)
class Differences:
    """
    Differences of means that hold simultaneously: of all pairs of arms, or of each arm to a control.

    Iterating gives each as a `Contrast`, the clearest difference first; `differences[a, b]` is that of one pair, as
    a minus b.

    Attributes
    ----------
    names
        The arms.
    first, second
        The places of the arms of each pair, the clearest difference first: the values are those of first minus second.
    values, errors, low, high
        Of each pair: the difference, its standard error, and the ends of its interval.
    level, kind
        The probability that all intervals hold, and their kind.
    control
        Whether each pair is an arm and the control.
    fixed
        Of each pair, whether its interval is of fixed width instead. If all are, that is the kind.
    recognised
        Whether no support was declared, and the intervals are those of binary arms, as all samples are 0 or 1.
    """

    names: Names
    first: Ints
    second: Ints
    values: Floats
    errors: Floats
    low: Floats
    high: Floats
    level: float
    kind: Kind
    control: bool
    fixed: Bools
    recognised: bool

    @property
    def kinds(self) -> list[Kind]:
        """The kind of each interval."""
        return ["fixed-width" if fixed else self.kind for fixed in self.fixed.tolist()]

    @property
    def differing(self) -> Bools:
        """Of each pair, whether its interval leaves out 0."""
        return np.asarray((self.low > 0) | (self.high < 0))

    @property
    def half_widths(self) -> Floats:
        """Of each pair, half of high - low."""
        return np.asarray((self.high - self.low) / 2)

    @cached_property
    def _pairs(self) -> dict[tuple[int, int], int]:
        return {pair: i for i, pair in enumerate(zip(self.first.tolist(), self.second.tolist(), strict=True))}

    def __len__(self) -> int:
        return len(self.first)

    def __iter__(self) -> Iterator[Contrast]:
        return (self._contrast(i) for i in range(len(self)))

    def __getitem__(self, pair: tuple[Hashable, Hashable]) -> Contrast:
        a, b = (self.names.find(arm) for arm in pair)
        if (a, b) in self._pairs:
            return self._contrast(self._pairs[a, b])
        if (b, a) not in self._pairs:
            raise KeyError(pair)
        return self._contrast(self._pairs[b, a], -1)

    def _contrast(self, i: int, sign: int = 1) -> Contrast:
        low, high = sorted((sign * float(self.low[i]), sign * float(self.high[i])))
        weights = {self.names.names[self.first[i]]: 1.0 * sign, self.names.names[self.second[i]]: -1.0 * sign}
        value = sign * float(self.values[i])
        # As it was asked for: the arm with the weight 1 first.
        weights = dict(sorted(weights.items(), key=lambda each: -each[1]))
        return Contrast(value, float(self.errors[i]), low, high, self.level, self.kinds[i], weights)

    # ---- for people

    @property
    def verdict(self) -> str:
        """How many pairs differ, in one line."""
        found, of = int(self.differing.sum()), len(self)
        level = tables.percent(self.level)
        if self.control:
            control = named(self.names.names[self.second[0]]) if of else "the control"
            verb = "differs" if of == 1 else "differ"
            return f"{found:,} of {tables.count(of, 'arm')} {verb} from {control} ({level})."
        return f"{found:,} of {tables.count(of, 'pair')} {'differs' if of == 1 else 'differ'} ({level})."

    def rows(self) -> list[list[str]]:
        """Return the printed table: a title row, and a row of texts for each of the clearest pairs."""
        found = [["pair", "difference", f"{tables.percent(self.level)} interval", "std. error", "differ"]]
        marks = np.where(self.fixed | ~self.fixed.any(), "", " *")
        for i in range(min(len(self), tables.MOST_ROWS)):
            half, error = float(self.high[i] - self.low[i]) / 2, float(self.errors[i])
            a, b = (text_of(self.names.names[places[i]]) for places in (self.first, self.second))
            found.append(
                [
                    f"{a} - {b}{marks[i]}",
                    tables.rounded(float(self.values[i]), half),
                    interval(float(self.low[i]), float(self.high[i])),
                    tables.rounded(error, error),
                    "yes" if self.differing[i] else "—",
                ]
            )
        return found

    def remarks(self) -> list[str]:
        """Return which pairs the table leaves out, if any, and what the intervals promise."""
        left = len(self) - tables.MOST_ROWS
        some = [f"Showing the {tables.MOST_ROWS} clearest of {len(self):,} pairs; {left:,} are left out."]
        binary = [BINARY] if self.recognised and np.isfinite(self.half_widths).any() else []
        return [*(some if left > 0 else []), describe_each(self.kind, self.level, self.fixed, "pairs"), *binary]

    def __repr__(self) -> str:
        return f"{self.verdict}\n{tables.text(self.rows(), self.remarks())}"

    def _repr_html_(self) -> str:
        return tables.html(self.rows(), self.remarks(), before=[self.verdict])

    # ---- for programs

    def to_dict(self) -> dict[str, Any]:
        """Return the pairs as a list of plain numbers, the clearest first; None for what is unknown or infinite."""
        return {
            "level": self.level,
            "kind": self.kind,
            "differing": int(self.differing.sum()),
            "pairs": [
                dict(zip(columns, each, strict=True))
                for columns in [self._columns()]
                for each in zip(*map(tables.json_ready, columns.values()), strict=True)
            ],
        }

    def to_frame(self, library: tables.FrameLibrary | None = None) -> pandas.DataFrame | polars.DataFrame:
        """Return a table with a row for each pair, the clearest first, for pandas or polars, whichever is installed."""
        more = {"interval_level": [self.level] * len(self)}
        return tables.frame(self._columns() | more, library)

    def _columns(self) -> dict[str, Any]:
        return {
            "a": [plain_name(self.names.names[k]) for k in self.first],
            "b": [plain_name(self.names.names[k]) for k in self.second],
            "difference": self.values,
            "standard_error": self.errors,
            "low": self.low,
            "high": self.high,
            "differ": self.differing,
            "interval_kind": self.kinds,
        }


def interval(low: float, high: float) -> str:
    """Return an interval to two digits of its half-width; a dash where an end is infinite."""
    half = (high - low) / 2
    return f"{tables.rounded(low, half)} to {tables.rounded(high, half)}" if math.isfinite(half) else "—"


def _sum(weights: Mapping[Any, float]) -> str:
    """Return a weighted sum in words, such as a - 0.5 b - 0.5 c."""
    parts: list[str] = []
    for arm, weight in weights.items():
        times = "" if abs(weight) == 1 else f"{tables.amount(abs(weight))} "
        sign = ("- " if weight < 0 else "+ ") if parts else ("-" if weight < 0 else "")
        parts.append(f"{sign}{times}{text_of(arm)}")
    return " ".join(parts) if len(parts) <= tables.MOST_ROWS else f"a sum of {len(parts):,} arms"
