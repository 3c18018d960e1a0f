"""What a study knows about its arms."""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np

from equipoise import tables
from equipoise.arrays import Bools, Floats, Ints
from equipoise.inputs import MISSING
from equipoise.intervals import PROMISES, Interval, Intervals, Kind
from equipoise.problem.objective import Objective, Stratified
from equipoise.problem.objective import objective as objective_of
from equipoise.strategies import Support
from equipoise.study.certificate import Certificate, certify, said
from equipoise.study.evidence import LEVEL, Evidence

if TYPE_CHECKING:
    import pandas
    import polars


# A table in a terminal or a notebook shows this many arms, the worst known of them.
_SHOWN = 20

# What there is one of for each arm, of the result and of the objective.
_BY_ARM = ("means", "counts", "variances", "standard_errors", "losses")
_OF_OBJECTIVE = ("weights", "costs", "shares")


def position(arms: Sequence[Hashable], index: dict[Hashable, int] | None, arm: Hashable) -> int:
    """Where the arm stands; KeyError if there is none of that name. Without an index the arms are 0, 1, 2, ..."""
    if index is not None:
        return index[arm]
    # A range would compare what is not an int, as NumPy's are not, with every arm.
    if isinstance(arm, numbers.Real) and 0 <= arm < len(arms) and arm == int(arm):
        return int(arm)
    raise KeyError(arm)


class ByArm(Mapping[Hashable, float]):
    """Numbers by arm: a mapping from the arms' names, with the numbers in the arms' order as `array`."""

    def __init__(self, arms: Sequence[Hashable], array: Any, index: dict[Hashable, int] | None) -> None:
        self._arms, self._index = arms, index
        self.array = array

    def __getitem__(self, arm: Hashable) -> float:
        return self.array[self.position(arm)].item()  # type: ignore[no-any-return]

    def position(self, arm: Hashable) -> int:
        """Where the arm stands; KeyError if there is none of that name."""
        return position(self._arms, self._index, arm)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._arms)

    def __len__(self) -> int:
        return len(self._arms)

    def __repr__(self) -> str:
        return repr(dict(self)) if len(self) <= _SHOWN else f"<{len(self):,} numbers by arm>"


class IntervalsByArm(Mapping[Hashable, Interval]):
    """
    Intervals by arm, which hold for all arms at once: a mapping from the arms' names to pairs (low, high).

    Attributes
    ----------
    low, high
        The ends, in the arms' order; infinite, or those of the support, where too little is known.
    kind, level, promise
        What they are, and what they promise, in words.
    """

    def __init__(
        self,
        arms: Sequence[Hashable],
        low: Floats,
        high: Floats,
        kind: Kind,
        level: float,
        index: dict[Hashable, int] | None,
    ) -> None:
        self._arms, self._index = arms, index
        self.low, self.high, self.kind, self.level = low, high, kind, level

    def __getitem__(self, arm: Hashable) -> Interval:
        k = position(self._arms, self._index, arm)
        return Interval(float(self.low[k]), float(self.high[k]))

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._arms)

    def __len__(self) -> int:
        return len(self._arms)

    @property
    def promise(self) -> str:
        return PROMISES[self.kind]

    @property
    def half_widths(self) -> Floats:
        """Half their widths, in the arms' order."""
        with np.errstate(invalid="ignore"):
            return (self.high - self.low) / 2

    def __repr__(self) -> str:
        if len(self) > _SHOWN:
            return f"<{len(self):,} intervals by arm>"
        return "{" + ", ".join(f"{arm!r}: ({low:.4g}, {high:.4g})" for arm, (low, high) in self.items()) + "}"


class Difference(NamedTuple):
    """
    The difference of two arms' means, its standard error, and the ends of its interval.

    The interval holds for all pairs of arms at once, so that the pair may be chosen by what was seen.
    """

    value: float
    error: float
    low: float
    high: float


class Combined(NamedTuple):
    """The mean of all strata together, and its standard error."""

    value: float
    error: float


class Wanted(Protocol):
    """A precision that was asked for, as `equipoise.run.precision` makes it."""

    def reached(self, result: Result) -> Bools: ...
    def missed(self, result: Result) -> str: ...


class Result:
    """
    What a study knows: means by arm, and how well they are known.

    All numbers are estimates from the samples that are in. A variance needs two samples, a mean needs one; what is not
    known is NaN, and an arm of which too little is known is never called well known.

    Attributes
    ----------
    counts, means, variances, standard_errors, losses
        By arm: samples in; their mean; their unbiased variance s²; s/sqrt(count); and s²/count, the estimate of the
        expected squared error of the mean.
    loss
        The largest of the losses, that of the `worst` arm; with another objective, its norm of the weighted losses.
    oracle_loss
        What the best allocation of as many samples would have had, if the variances are those seen: sum of s² over
        samples; with another objective, the least norm for what the samples cost.
    regret
        loss - oracle_loss.
    uniform_loss, uniform_samples
        What as many samples (with costs, samples for as much money), spread evenly, would have had; and how many of
        them it would have taken to have the loss that is had here.
    proportional_loss
        Where the arms are strata, what samples for as much in proportion to the shares would have had, if the variances
        are those seen; else NaN.
    spent, uniform_spent
        What the samples that are in cost, and what `uniform_samples` would have cost; their numbers without costs.
    objective
        What was made small, with weights and costs in the arms' order.
    support
        What values were possible.
    reached
        Whether every mean is known to the precision that `estimate` was asked for; None where none was.
    """

    # The probability that all intervals hold which are given without saying how sure.
    level: float = LEVEL
    # What was asked for, if anything was.
    precision: Wanted | None = None
    # Whether the weights are 1 over the squares of the half-widths that were asked for.
    by_precision: bool = False

    def __init__(
        self,
        arms: Sequence[Hashable],
        counts: Ints,
        means: Floats,
        m2s: Floats,
        strategy: str = "",
        index: dict[Hashable, int] | None = None,
        objective: Objective | None = None,
        support: Support = None,
        evidence: Evidence | None = None,
    ) -> None:
        if index is None and arms != range(len(arms)):
            index = {arm: k for k, arm in enumerate(arms)}
        self.arms = arms
        self.strategy = strategy
        self.objective = objective or Objective()
        self.support = support
        # The samples in the order of asking; a result that was made of moments alone has none.
        self._evidence = evidence
        self._m2s = m2s
        self._index = index
        with np.errstate(divide="ignore", invalid="ignore"):
            variances = np.where(counts >= 2, m2s / (counts - 1), math.nan)
            losses = variances / counts
        self.counts = ByArm(arms, counts, index)
        self.means = ByArm(arms, np.where(counts >= 1, means, math.nan), index)
        self.variances = ByArm(arms, variances, index)
        self.losses = ByArm(arms, losses, index)
        self.standard_errors = ByArm(arms, np.sqrt(losses), index)

    @property
    def samples(self) -> int:
        """How many samples are in."""
        return int(self.counts.array.sum())

    @property
    def reached(self) -> bool | None:
        return None if self.precision is None else bool(self.precision.reached(self).all())

    @property
    def loss(self) -> float:
        # NaN if any arm's is: an arm of which nothing is known is not well known.
        return self.objective.loss(self.losses.array)

    @property
    def worst(self) -> Hashable:
        """The arm whose mean is known worst, by its weight; the first with fewer than two samples, if there is one."""
        return self.arms[int(self._weighted(self.losses.array).argmax())]

    @property
    def spent(self) -> float:
        if self.objective.costs is None:
            return self.samples
        return math.fsum(self.objective.cost(len(self.arms)) * self.counts.array)

    @property
    def oracle_loss(self) -> float:
        if not self.samples:
            return math.nan
        if self.objective.plain:
            return float(self.variances.array.sum()) / self.samples
        variances = np.where(self.objective.weight(len(self.arms)) > 0, self.variances.array, 0.0)
        return self.objective.optimal_loss(variances, self.spent)

    @property
    def regret(self) -> float:
        return self.loss - self.oracle_loss

    @property
    def uniform_loss(self) -> float:
        each = math.fsum(self.objective.cost(len(self.arms)))
        return self.objective.loss(self.variances.array) * each / self.spent if self.samples else math.nan

    @property
    def proportional_loss(self) -> float:
        if self.objective.shares is None or not self.samples:
            return math.nan
        shares = np.array(self.objective.shares)
        pulls = shares * self.spent / math.fsum(shares * self.objective.cost(len(self.arms)))
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.objective.loss(self._losses_of(pulls))

    def _losses_of(self, pulls: Floats) -> Floats:
        """The arms' losses with so many samples of each, if the variances are those seen."""
        return np.asarray(self.variances.array / pulls)

    @property
    def uniform_samples(self) -> float:
        return len(self.arms) * self.objective.loss(self.variances.array) / self.loss if self.loss > 0 else math.nan

    @property
    def uniform_spent(self) -> float:
        return self.uniform_samples * math.fsum(self.objective.cost(len(self.arms))) / len(self.arms)

    def combine(self, shares: Iterable[float] | Mapping[Any, float] | None = None) -> Combined:
        """
        The mean of all strata together, Σ_k W_k mean_k, with its standard error sqrt(Σ_k W_k² s²_k/count_k).

        Parameters
        ----------
        shares
            W_k, the share of each arm's stratum in the whole, by arm or in the arms' order; they must sum to 1. A study
            with `objective=Stratified(shares)` knows them.
        """
        known = self.objective if shares is None else objective_of(self.arms, Stratified(shares))
        if known.shares is None:
            raise ValueError("combine needs the strata's shares, as in combine({'city': 0.7, 'country': 0.3})")
        share = np.array(known.shares)
        counted = share > 0  # of a stratum that makes up nothing, nothing need be known
        return Combined(
            float(share[counted] @ self.means.array[counted]),
            math.sqrt(share[counted] ** 2 @ self.losses.array[counted]),
        )

    def intervals(self, level: float | None = None, kind: Kind | None = None) -> IntervalsByArm:
        """
        Intervals for the arms' means, all at once at this level.

        Parameters
        ----------
        level
            The probability that all of them hold; by default that of the result, `level`.
        kind
            By default "betting" where a support is declared, else "asymptotic", of each arm's samples in the order of
            asking: at all times at once, whatever the strategy did and whenever one looks. "fixed-n" is the interval of
            textbooks, of all samples, and is not valid when one looks and decides (docs/intervals.md). A result that
            was made of moments alone has "fixed-n" only, and that by default.
        """
        return self._intervals_of(None, self.level if level is None else level, kind)

    def _intervals_of(self, places: Sequence[int] | None, level: float, kind: Kind | None = None) -> IntervalsByArm:
        """The intervals of the arms at these places, None for all; they hold for all arms of the result at once."""
        wanted = self._kinds(kind)
        state = self._state(wanted.kind, places)
        low, high = np.empty((2, len(state)))
        if places is None:
            low, high = wanted.bounds(state, level)
        else:
            alpha = (1 - self._level(level)) / len(self.arms)
            for i, row in enumerate(state):
                low[i], high[i] = wanted.kernel.bounds(row, alpha, wanted.kernel.settings)
        arms = self.arms if places is None else [self.arms[k] for k in places]
        index = self._index if places is None else {arm: i for i, arm in enumerate(arms)}
        return IntervalsByArm(arms, low, high, wanted.kind, level, index)

    def _kinds(self, kind: Kind | None) -> Intervals:
        """The sequences of a kind, or of the one that is the default here."""
        if self._evidence is not None:
            return self._evidence.intervals(kind)
        wanted = Intervals(len(self.arms), self.support, "fixed-n" if kind is None else kind)
        if wanted.kind != "fixed-n":
            raise ValueError(
                f"kind={kind!r} needs samples in the order of asking, and this result was made of moments alone; "
                "'fixed-n' will do"
            )
        return wanted

    def _state(self, kind: Kind, places: Sequence[int] | None) -> Floats:
        if kind != "fixed-n" and self._evidence is not None:
            return self._evidence.state(kind) if places is None else self._evidence.state_of(kind, places)
        means = np.where(self.counts.array >= 1, self.means.array, 0.0)
        state = np.array([self.counts.array, means, self._m2s]).T
        return state if places is None else state[np.asarray(places)]

    @staticmethod
    def _level(level: float) -> float:
        """The level, refused where it is none."""
        return Intervals(1, level=level).level

    @property
    def certificate(self) -> Certificate:
        """How well the arms are known, what other ways of sampling would have had, and what may be wrong with it."""
        return certify(self, self.level)

    def difference(self, a: Hashable, b: Hashable, level: float | None = None) -> Difference:
        """
        The mean of `a` less the mean of `b`, with its standard error and its interval.

        The interval is of the default kind and holds for all pairs at once: the pair may be chosen by what was seen.
        """
        i, j = (self._position(arm) for arm in (a, b))
        ends = self._intervals_of([i, j], self.level if level is None else level)
        return self._difference(i, j, (ends.low[0], ends.high[0]), (ends.low[1], ends.high[1]))

    def _difference(self, i: int, j: int, mine: tuple[float, float], its: tuple[float, float]) -> Difference:
        if i == j:
            return Difference(0.0, 0.0, 0.0, 0.0)
        value = float(self.means.array[i] - self.means.array[j])
        error = math.sqrt(self.losses.array[i] + self.losses.array[j])
        return Difference(value, error, float(mine[0] - its[1]), float(mine[1] - its[0]))

    def differences(self, control: Hashable = MISSING, level: float | None = None) -> dict[Any, Difference]:
        """
        All differences between two arms, with their standard errors and intervals, which hold all at once.

        Parameters
        ----------
        control
            With an arm's name: every other arm less this one, by that arm. Without: every pair (a, b), a after b.
        """
        if control is not MISSING:
            j = self._position(control)
            pairs: list[tuple[Any, int, int]] = [(arm, i, j) for i, arm in enumerate(self.arms) if i != j]
        else:
            pairs = [((self.arms[i], self.arms[j]), i, j) for j, i in combinations(range(len(self.arms)), 2)]
        ends = self.intervals(level)
        both = list(zip(ends.low.tolist(), ends.high.tolist(), strict=True))
        return {name: self._difference(i, j, both[i], both[j]) for name, i, j in pairs}

    def to_dict(self) -> dict[str, Any]:
        """
        Everything as plain numbers, by arm where there is one for each; what is not known, or infinite, is None.

        `intervals` has a pair [low, high] for each arm, at `interval_level` for all of them at once, of the kind
        `interval_kind`. `reached` is None where no precision was asked for.
        """
        alone = ("samples", "loss", "oracle_loss", "regret", "uniform_loss", "uniform_samples")
        known: dict[str, Any] = {"strategy": self.strategy}
        known |= {name: {_name(arm): _plain(value) for arm, value in getattr(self, name).items()} for name in _BY_ARM}
        intervals = self.intervals()
        ends = zip(map(_name, self.arms), intervals.low.tolist(), intervals.high.tolist(), strict=True)
        known["intervals"] = {arm: [_plain(low), _plain(high)] for arm, low, high in ends}
        known |= {"interval_kind": intervals.kind, "interval_level": intervals.level}
        known |= {name: _plain(getattr(self, name)) for name in alone}
        known |= {"worst": _name(self.worst), "reached": self.reached}
        if self.objective.plain:
            return known
        known["p"] = "inf" if self.objective.p == math.inf else self.objective.p  # JSON has no infinity
        for name in _OF_OBJECTIVE:
            numbers = getattr(self.objective, name)
            if numbers is not None:
                known[name] = dict(zip(map(_name, self.arms), numbers, strict=True))
        if self.objective.costs is not None:
            known |= {"spent": self.spent, "uniform_spent": _plain(self.uniform_spent)}
        if self.objective.shares is not None:
            known["combined"] = {name: _plain(value) for name, value in self.combine()._asdict().items()}
            known["proportional_loss"] = _plain(self.proportional_loss)
        return known

    def to_json(self) -> str:
        """
        `to_dict` as a JSON object, where arms' names are texts.

        Where two names have the same text, as 1 and "1" have, all are written as Python would: 1 and '1'.
        """
        known = self.to_dict()
        names = list(known["means"])
        by_arm = (*_BY_ARM, *_OF_OBJECTIVE, "intervals")
        text: Callable[[Any], str] = str if len(set(map(str, names))) == len(names) else repr
        if len(set(map(text, names))) < len(names):
            raise ValueError("two arms have the same text and would become one in JSON; use to_dict")
        texts = {
            name: {text(arm): each for arm, each in value.items()} if name in by_arm else value
            for name, value in known.items()
        }
        return json.dumps(texts | {"worst": text(known["worst"])}, ensure_ascii=False)

    def to_frame(self, library: Literal["pandas", "polars"] = "pandas") -> pandas.DataFrame | polars.DataFrame:
        """
        A table with a row for each arm, as a pandas or a polars DataFrame.

        `low` and `high` are the ends of `intervals()`, infinite, or those of the support, where too little is known;
        `interval_kind` and `interval_level`, the same in every row, say what they are.
        """
        if library not in ("pandas", "polars"):
            raise ValueError(f"library={library!r} will not do; it must be 'pandas' or 'polars'")
        intervals = self.intervals()
        columns: dict[str, Any] = {
            "arm": list(self.arms),
            "count": self.counts.array,
            "mean": self.means.array,
            "variance": self.variances.array,
            "standard_error": self.standard_errors.array,
            "loss": self.losses.array,
            "low": intervals.low,
            "high": intervals.high,
            "interval_kind": [intervals.kind] * len(self.arms),
            "interval_level": [intervals.level] * len(self.arms),
        }
        try:
            if library == "polars":
                import polars

                return polars.DataFrame(columns)
            import pandas

            return pandas.DataFrame(columns)
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                f"to_frame needs {library}, which is not installed: pip install {library}"
            ) from None

    def summary(self) -> str:
        """What the samples bought, in one or two sentences."""
        paid = "" if self.objective.costs is None else f" for {self.spent:,.4g}"
        if math.isnan(self.loss):
            short = int((self.counts.array < 2).sum())
            return f"{self.samples:,} samples are in{paid}; {short:,} of {len(self.arms):,} arms have fewer than 2."
        text = f"{self.samples:,} samples{paid}; {self._said_loss()}."
        if self.loss > 0 and len(self.arms) > 1:
            cost = "" if self.objective.costs is None else f", for {self.uniform_spent:,.4g},"
            aim = "this worst arm" if self.objective.p == math.inf else "that"
            text += f" Uniform sampling would have needed about {self.uniform_samples:,.0f} samples{cost} for {aim}."
        return text

    def _said_loss(self) -> str:
        if self.objective.shares is not None:
            value, error = self.combine()
            return f"the mean of all strata is {value:.4g}, with a standard error of {error:.3g}"
        if self.objective.p == math.inf:
            error = self.standard_errors[self.worst]
            return f"the worst-known mean{self._by()} is that of {self.worst!r}, with a standard error of {error:.3g}"
        what = "losses" if self.objective.weights is None else "weighted losses"
        return f"the {self.objective.p:g}-norm of the {what} is {self.loss:.3g}"

    def _by(self) -> str:
        """What the worst-known mean is the worst by, if not by its error alone."""
        if self.by_precision:
            return ", beside what was asked for,"
        return "" if self.objective.weights is None else ", by weight,"

    def _weighted(self, numbers: Floats) -> Floats:
        """By weight; 0 for an arm of weight 0, of which nothing need be known."""
        weight = self.objective.weight(len(self.arms))
        return np.where(weight > 0, weight * numbers, 0.0)

    def __repr__(self) -> str:
        return tables.text(self._rows(), self._more())

    def _repr_html_(self) -> str:
        return tables.html(self._rows(), self._more())

    def _rows(self) -> list[list[str]]:
        """A title row, and a row for each arm that is shown."""
        shown = self._shown()
        intervals = self._intervals_shown(shown)
        rows = [["arm", "count", "mean", f"{tables.percent(intervals.level)} interval", "std. error", "variance"]]
        for i, k in enumerate(shown):
            numbers = (self.means.array[k], self.standard_errors.array[k], self.variances.array[k])
            rows.append(
                [
                    str(self.arms[k]),
                    f"{self.counts.array[k]:,}",
                    *("—" if math.isnan(x) else f"{x:.4g}" for x in numbers[:1]),
                    _between(float(intervals.low[i]), float(intervals.high[i])),
                    *("—" if math.isnan(x) else f"{x:.4g}" for x in numbers[1:]),
                ]
            )
        return rows

    def _intervals_shown(self, shown: Sequence[int]) -> IntervalsByArm:
        # Of very many arms, not all need be followed for a few lines.
        return self.intervals() if len(shown) == len(self.arms) else self._intervals_of(shown, self.level)

    def _shown(self) -> list[int]:
        arms = range(len(self.arms))
        if len(arms) <= _SHOWN:
            return list(arms)
        # The unknown first, then the largest losses.
        order = np.argsort(-np.nan_to_num(self._weighted(self.losses.array), nan=math.inf), kind="stable")
        return [int(k) for k in order[:_SHOWN]]

    def _more(self) -> list[str]:
        left_out = len(self.arms) - _SHOWN
        more = [f"... and {left_out:,} arms that are known better"] if left_out > 0 else []
        short = [self.precision.missed(self)] if self.precision is not None and not self.reached else []
        return [*more, f"Intervals: all arms at once; {said(self._kinds(None).kind)}.", self.summary(), *short]

    def _position(self, arm: Hashable) -> int:
        try:
            return self.means.position(arm)
        except KeyError:
            raise ValueError(f"there is no arm {arm!r} in this result") from None


def _between(low: float, high: float) -> str:
    return f"{low:.4g} to {high:.4g}" if math.isfinite(low) and math.isfinite(high) else "—"


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _name(arm: Hashable) -> Any:
    """An arm's name; NumPy's scalars as Python's, so that anybody can write them down."""
    return arm.item() if isinstance(arm, np.generic) else arm
