"""Plan before sampling: whole counts for variances that are known or guessed, and what they will buy."""

from __future__ import annotations

import csv
import difflib
import json
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

import numpy as np
import numpy.typing as npt

from equipoise import chart, tables
from equipoise.arrays import Floats, Ints
from equipoise.inputs import integer, number
from equipoise.problem.allocation import MOST, Allocation, Terms, allocate, even, relaxed
from equipoise.problem.objective import GREATEST, SMALLEST, Stratified, by_arm
from equipoise.problem.objective import objective as objective_of

if TYPE_CHECKING:
    import pandas
    import polars

ByArm = Iterable[float] | Mapping[Any, float]
Wholes = int | Iterable[int | None] | Mapping[Any, int]

# A table in a terminal or a notebook shows this many arms, the worst known of them.
_SHOWN = 20
# The curve has so many spends for a factor of ten, from a hundredth of the plan's to ten times as much.
_PER_DECADE, _DECADES_DOWN, _DECADES_UP = 4, 2, 1
# How far rounding may carry a half-width past the one that was asked for.
_CLOSE = 1e-9


def plan(
    variances: ByArm,
    budget: float | None = None,
    *,
    precision: float | ByArm | None = None,
    level: float = 0.95,
    objective: float | Stratified = math.inf,
    weights: ByArm | None = None,
    costs: ByArm | None = None,
    floors: Wholes | None = None,
    caps: Wholes | None = None,
    populations: Wholes | None = None,
) -> Plan:
    """
    How many samples of each arm, in whole numbers, for variances that are known or guessed.

    Parameters
    ----------
    variances
        σ² by arm, as a mapping from names (a result's `variances` will do) or as numbers for the arms 0, 1, ...
    budget
        How many samples; with `costs`, how much money. It is never exceeded, and what is left over is less than the
        cheapest sample of an arm below its cap.
    precision
        The half-width that each arm's interval is to have, one number or one for each arm: the cheapest counts that
        give it. With a budget as well, the budget is the most that is spent; `reached` says whether it sufficed. If it
        did not, and no weights are given, losses are weighted with 1/precision².
    level
        With what probability all the intervals hold together, for `precision` and the half-widths.
    objective
        What is to be small: the p-norm of the losses, by default the largest; or `Stratified(shares)`.
    weights
        On the losses, by arm.
    costs
        Of one sample, by arm. The budget is then money.
    floors
        The least samples of each arm, one number or by arm: 1 where none is given.
    caps
        The most samples of each arm, likewise: no limit where none is given.
    populations
        How many there are, where samples are drawn without replacement: N, the loss is then σ²/T (1 - T/N), and no more
        than N are drawn. σ² has the denominator N - 1.

    Returns
    -------
    Plan
        Counts by arm, and the errors to expect. No other whole counts within the budget have a smaller loss; where
        samples of different cost meet an objective other than the largest loss, up to `Plan.bound`.

    Notes
    -----
    A half-width is z sqrt(loss), the normal interval of a mean whose variance is known, with z for K intervals that
    hold together by Bonferroni's inequality: the quantile at 1 - (1 - level)/(2K).

    For p = inf the loss falls only while the worst arm can be paid for; the rest is then spent on the next worst. For
    p < inf the counts minimise a sum of convex terms: steps by their gain per cost. Where p < 1 the losses of finite
    populations are not convex, and are refused.

    Examples
    --------
    >>> import equipoise as eq
    >>> eq.plan({"calm": 1, "rough": 4}, budget=1000)
    arm    count  std. error  half-width  variance
    calm     200     0.07071      0.1585         1
    rough    800     0.07071      0.1585         4
    1,000 samples; the worst-known mean is that of 'calm', with a standard error of 0.0707. An even split would need about 1,600 samples for as small a loss.
    >>> eq.plan({"calm": 1, "rough": 4}, precision=0.1).counts
    {'calm': 503, 'rough': 2010}

    References
    ----------
    .. [1] W. G. Cochran (1977), Sampling Techniques, chapters 2 and 5: finite populations and optimum allocation.
    .. [2] B. Fox (1966), Discrete optimization via marginal analysis. Management Science 13.
    """  # noqa: E501
    arms: Sequence[Hashable]
    if isinstance(variances, Mapping):
        arms = tuple(variances)
    else:
        if not _many(variances):
            raise TypeError(f"variances={variances!r} will not do; a mapping from arms to numbers, or numbers, would")
        variances = list(variances)
        arms = range(len(variances))
    if not arms:
        raise ValueError("no variances were given; a plan needs at least one arm")
    values = np.array(by_arm("variances", variances, arms, least=0.0))
    _level(level)
    wanted = None if precision is None else _precision(precision, arms)
    if wanted is not None and weights is None and np.unique(wanted).size > 1 and not isinstance(objective, Stratified):
        weights = (1 / wanted**2).tolist()
    aim = objective_of(arms, objective, weights, costs)
    limits = _limits(arms, floors, caps, populations)
    if aim.p < 1 and np.isfinite(limits[2]).any():
        raise ValueError(f"objective={objective!r} will not do with populations; it must be 1 or more")
    terms = Terms(values, aim, *limits)
    money = None if budget is None else _budget(budget, terms)
    precise = None if wanted is None else _precise(terms, wanted, _z(level, len(arms)))
    if precise is not None and (money is None or terms.spend(precise.counts) <= terms.limit(money)):
        allocation = precise
    elif money is not None:
        allocation = allocate(terms, money)
    else:
        raise ValueError("neither a budget nor a precision was given; budget=1000 would do")
    if not (allocation.counts <= MOST).all():
        k = int(allocation.counts.argmax())
        raise ValueError(
            f"this precision takes {allocation.counts[k]:.3g} samples of {arms[k]!r}; at most 1e15 will do"
        )
    goal = None if wanted is None else tuple(wanted.tolist())
    return Plan(arms, terms, allocation, money, goal, float(level))


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """
    How many samples of each arm to take, and what they will buy if the variances are as given.

    Attributes
    ----------
    arms
        Their names.
    budget, precision, level
        What was asked for; None where it was not.
    terms, allocation
        The same as arrays: variances, objective, floors, caps, populations; and counts.
    """

    arms: Sequence[Hashable]
    terms: Terms
    allocation: Allocation
    budget: float | None
    precision: tuple[float, ...] | None
    level: float

    @cached_property
    def counts(self) -> dict[Hashable, int]:
        """Samples by arm."""
        return self._by_arm(self.allocation.counts.astype(np.int64))

    @cached_property
    def variances(self) -> dict[Hashable, float]:
        """As they were given, by arm."""
        return self._by_arm(self.terms.variances)

    @cached_property
    def losses(self) -> dict[Hashable, float]:
        """The expected squared error of each arm's mean, σ²/T (1 - T/N), without its weight."""
        return self._by_arm(self._losses)

    @cached_property
    def errors(self) -> dict[Hashable, float]:
        """The standard error of each arm's mean."""
        return self._by_arm(np.sqrt(self._losses))

    def half_widths(self, level: float | None = None) -> dict[Hashable, float]:
        """The half-width of each arm's interval; all of them hold together with probability `level`, or more."""
        return self._by_arm(self._half_widths(self.level if level is None else _level(level)))

    @property
    def samples(self) -> int:
        """How many, over all arms."""
        return int(self.allocation.counts.sum())

    @property
    def cost(self) -> float:
        """Of all samples: their number, where no costs were given."""
        found = self.terms.spend(self.allocation.counts)
        return int(found) if self.terms.objective.costs is None else found

    @property
    def left(self) -> float:
        """What is left of the budget; 0 without one."""
        return 0 if self.budget is None else max(self.budget - self.cost, 0)

    @property
    def capped(self) -> bool:
        """Whether every arm is at its cap, or its whole population is sampled: no budget could buy more."""
        return bool((self.allocation.counts >= self.terms.caps).all())

    @property
    def reached(self) -> bool | None:
        """Whether each arm has the precision that was asked for; None if none was."""
        return None if self.precision is None else not self._short.size

    @property
    def worst(self) -> Hashable:
        """The arm whose mean is known worst."""
        return self.arms[int(self._losses.argmax())]

    @cached_property
    def loss(self) -> float:
        """The objective: the p-norm of the weighted losses."""
        return self.terms.loss(self.allocation.counts)

    @property
    def bound(self) -> float:
        """No whole counts within the budget have a loss below this; the loss itself where it is the best there is."""
        return self.allocation.bound

    @cached_property
    def optimal_loss(self) -> float:
        """The best loss for the same money, within the same limits, if samples could be divided."""
        return self.terms.loss(relaxed(self.terms, self.spend))

    @cached_property
    def uniform_loss(self) -> float:
        """What an even split of the same money would have, as far as floors and caps allow one."""
        return self.terms.loss(even(self.terms, self.spend))

    @cached_property
    def uniform_cost(self) -> float:
        """What an even split would have to spend for a loss as small as this; infinite if none has it."""
        terms, enough = self.terms, self.loss * (1 + _CLOSE)
        low, high = 0.0, 1.0
        while terms.loss(terms.each(high)) > enough:
            low, high = high, 2 * high
            if high > 2 * MOST:
                return math.inf
        while high - low > 1:
            middle = math.floor((low + high) / 2)
            low, high = (middle, high) if terms.loss(terms.each(middle)) > enough else (low, middle)
        found = terms.spend(terms.each(high))
        return int(found) if terms.objective.costs is None else found

    def curve(self, spends: Iterable[float] | None = None) -> list[dict[str, float]]:
        """
        The error to expect against what is spent, before anything is.

        Parameters
        ----------
        spends
            Budgets. If not given: four for each factor of ten, from a hundredth of this plan's to ten times as much,
            from the least that pays for the floors and up to what pays for every cap.

        Returns
        -------
        list of dict
            For each spend the number of `samples`; `error`, the square root of the objective (the worst standard error,
            for the largest loss without weights); `half_width`, the largest over the arms; and `uniform_error`, that of
            an even split.
        """
        rows = []
        for spend in self._spends() if spends is None else [_budget(spend, self.terms) for spend in spends]:
            counts = allocate(self.terms, spend).counts
            losses = self.terms.losses(counts)
            rows.append(
                {
                    "spend": spend,
                    "samples": int(counts.sum()),
                    "error": math.sqrt(self.terms.objective.loss(losses)),
                    "half_width": _z(self.level, len(self.arms)) * math.sqrt(losses.max()),
                    "uniform_error": math.sqrt(self.terms.loss(even(self.terms, spend))),
                }
            )
        return rows

    @property
    def error_title(self) -> str:
        """What the curve's `error` is, in words."""
        objective = self.terms.objective
        if objective.p == math.inf:
            return "worst √(w·loss)" if objective.weights else "worst standard error"
        losses = "w·losses" if objective.weights else "losses"
        return f"√ of the sum of {losses}" if objective.p == 1 else f"√ of the {objective.p:g}-norm of {losses}"

    def plot(self, rows: Iterable[Mapping[str, float]] | None = None) -> Any:
        """An Altair chart of the curve, or of these rows of it, beside an even split, with this plan marked."""
        return chart.spend(
            self.curve() if rows is None else rows,
            at=self.spend,
            titles=("samples" if self.terms.objective.costs is None else "money spent", self.error_title),
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row for each arm: arm, variance, count, cost, standard_error, half_width, loss."""
        columns = self._columns()
        return [dict(zip(columns, row, strict=True)) for row in zip(*map(_listed, columns.values()), strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """Everything but the curve as plain numbers, by arm where there is one for each; what is infinite is None."""
        alone = ("samples", "cost", "left", "capped", "reached", "worst", "loss", "bound", "optimal_loss")
        p = self.terms.objective.p
        known: dict[str, Any] = {
            "objective": "inf" if p == math.inf else p,
            "budget": self.budget,
            "precision": None if self.precision is None else self._by_arm(np.array(self.precision)),
            "level": self.level,
            "counts": self.counts,
            "variances": self.variances,
            "errors": self.errors,
            "half_widths": self.half_widths(),
            "losses": self.losses,
        }
        known |= {name: getattr(self, name) for name in (*alone, "uniform_loss", "uniform_cost")}
        return chart.plain(known)

    def to_json(self) -> str:
        """`to_dict` as a JSON object, where arms' names are texts."""
        texts = {
            name: {str(arm): value for arm, value in found.items()} if isinstance(found, dict) else found
            for name, found in self.to_dict().items()
        }
        return json.dumps(texts, default=str, ensure_ascii=False, allow_nan=False)

    def to_frame(self, library: Literal["pandas", "polars"] = "pandas") -> pandas.DataFrame | polars.DataFrame:
        """A table with a row for each arm, as a pandas or a polars DataFrame."""
        if library not in ("pandas", "polars"):
            raise ValueError(f"library={library!r} will not do; it must be 'pandas' or 'polars'")
        try:
            if library == "polars":
                import polars

                return polars.DataFrame(self._columns())
            import pandas

            return pandas.DataFrame(self._columns())
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                f"to_frame needs {library}, which is not installed: pip install {library}"
            ) from None

    def summary(self) -> str:
        """What the samples will buy, in a few sentences."""
        money = self.terms.objective.costs is not None
        at = f" for {self.cost:,.10g}" if money else ""
        error = math.sqrt(self._losses.max())
        text = (
            f"{self.samples:,} samples{at}; the worst-known mean is that of {self.worst!r}, "
            f"with a standard error of {error:.3g}."
        )
        if self.capped:
            text += " Every arm is at its cap"
            text += f": {self.left:,.10g} of the budget is left." if self.left else "."
        if self.precision is not None and self._short.size:
            k = int(self._short[0])
            half = self._half_widths(self.level)[k]
            text += (
                f" The precision is not reached: {self.arms[k]!r} has a half-width of {half:.3g}, "
                f"and {self.precision[k]:g} was asked for."
            )
        need = self.uniform_cost if self.loss > 0 else 0.0
        if need > self.cost:
            what = f"{need:,.6g}" if money else f"about {need:,.0f} samples"
            text += (
                f" An even split would need {what} for as small a loss."
                if math.isfinite(need)
                else " No even split has as small a loss."
            )
        return text

    def __repr__(self) -> str:
        return tables.text(self._table(), [*self._more(), self.summary()])

    def _repr_html_(self) -> str:
        return tables.html(self._table(), [*self._more(), self.summary()])

    @cached_property
    def _losses(self) -> Floats:
        return self.terms.losses(self.allocation.counts)

    def _half_widths(self, level: float) -> Floats:
        return _z(level, len(self.arms)) * np.sqrt(self._losses)

    @cached_property
    def _short(self) -> Ints:
        """The arms that fall short of the precision, the furthest first."""
        over = self._half_widths(self.level) / np.array(self.precision)
        order = np.argsort(-over, kind="stable")
        return np.asarray(order[over[order] > 1 + _CLOSE])

    @property
    def spend(self) -> float:
        """At what spend it is compared: the budget, or its own cost where the precision was reached with less."""
        return self.cost if self.budget is None or self.reached else self.budget

    def _spends(self) -> list[float]:
        unit = self.terms.objective.costs is None
        least, most = self.terms.spend(self.terms.floors), self.terms.spend(self.terms.caps)
        here, top = self.spend, MOST * self.terms.cost.min()
        steps = range(-_PER_DECADE * _DECADES_DOWN, _PER_DECADE * _DECADES_UP + 1)
        wanted = [here * 10 ** (step / _PER_DECADE) for step in steps]
        # Round numbers, but for the plan itself and the least and the most that can be spent.
        kept = {float(f"{spend:.3g}") for spend in wanted}
        kept |= {spend for spend in (least, most) if wanted[0] <= spend <= wanted[-1]} | {here}
        kept = {math.floor(spend) for spend in kept} if unit else kept
        return sorted(s for s in kept if least <= self.terms.limit(s) and s <= top and (s <= most or s == here))

    def _by_arm(self, array: npt.NDArray[Any]) -> dict[Hashable, Any]:
        return dict(zip(self.arms, array.tolist(), strict=True))

    def _columns(self) -> dict[str, Any]:
        return {
            "arm": list(self.arms),
            "variance": self.terms.variances,
            "count": self.allocation.counts.astype(np.int64),
            "cost": self.terms.cost * self.allocation.counts,
            "standard_error": np.sqrt(self._losses),
            "half_width": self._half_widths(self.level),
            "loss": self._losses,
        }

    def _table(self) -> list[list[str]]:
        """A title row, and a row for each arm that is shown."""
        money = self.terms.objective.costs is not None
        rows = [["arm", "count", *(["cost"] if money else []), "std. error", "half-width", "variance"]]
        columns = self._columns()
        for k in self._shown():
            numbers = [columns[name][k] for name in ("standard_error", "half_width", "variance")]
            rows.append(
                [
                    str(self.arms[k]),
                    f"{columns['count'][k]:,}",
                    *([f"{columns['cost'][k]:,.10g}"] if money else []),
                    *(f"{x:.4g}" for x in numbers),
                ]
            )
        return rows

    def _shown(self) -> list[int]:
        if len(self.arms) <= _SHOWN:
            return list(range(len(self.arms)))
        return [int(k) for k in np.argsort(-self._losses, kind="stable")[:_SHOWN]]

    def _more(self) -> list[str]:
        left_out = len(self.arms) - _SHOWN
        return [f"... and {left_out:,} arms that are known no worse"] if left_out > 0 else []


def read(path: str | Path) -> dict[str, Any]:
    """
    The arguments of `plan` that a CSV file holds, a row for each arm.

    Columns: arm, variance or sd, and any of weight, cost, floor, cap, population. An empty cell stands for what `plan`
    takes without it. Other columns are passed over, so that the table of a result will do.
    """
    columns = ("arm", "variance", "sd", "weight", "cost", "floor", "cap", "population")
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            titles = [(title or "").strip().lower() for title in reader.fieldnames or []]
            rows = [dict(zip(titles, (v or "" for v in row.values()), strict=False)) for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a CSV file in UTF-8: {error}") from None
    for title in titles:
        if title and title not in columns and (close := difflib.get_close_matches(title, columns, 1, 0.8)):
            raise ValueError(f"{path} has a column {title!r}; did you mean {close[0]!r}?")
    if "arm" not in titles or ("variance" in titles) == ("sd" in titles) or len(set(titles)) < len(titles):
        raise ValueError(f"{path} will not do; it needs the columns arm and variance, or arm and sd, each once")
    if not rows:
        raise ValueError(f"{path} has no rows; one for each arm is needed")
    found: dict[str, dict[str, Any]] = {}
    names: dict[str, int] = {}
    for line, row in enumerate(rows, 2):
        where = f"row {line} of {path}"
        name = row.get("arm", "").strip()
        if not name:
            raise ValueError(f"{where} names no arm")
        if name in names:
            raise ValueError(f"{where} names the arm {name!r}, as row {names[name]} does; each arm has one")
        names[name] = line
        for title in columns[1:]:
            text = row.get(title, "").strip()
            if text:
                value = parse(f"the {title} {text!r} in {where}", text, title in ("floor", "cap", "population"))
                if title == "sd" and value < 0:
                    raise ValueError(f"the sd {text!r} in {where} will not do; it must not be negative")
                found.setdefault(title, {})[name] = value
            elif title in titles and title in ("variance", "sd"):
                raise ValueError(f"{where} has no {title}")
    if "sd" in found:
        found["variance"] = {name: value * value for name, value in found.pop("sd").items()}
    for title in ("weight", "cost"):
        if title in found:
            found[title] = {name: found[title].get(name, 1.0) for name in names}
    return {f"{title}s": values for title, values in found.items()}


def parse(what: str, text: str, is_whole: bool) -> float:
    """A number from a text; the error says what it was for."""
    try:
        return int(text) if is_whole else float(text)
    except ValueError:
        wanted = "a whole number" if is_whole else "a number"
        raise ValueError(f"{what} will not do; it must be {wanted}") from None


def _z(level: float, arms: int) -> float:
    """Bonferroni: K intervals with an error of (1 - level)/K each hold together at the level."""
    return -NormalDist().inv_cdf((1 - level) / (2 * arms))


def _level(given: Any) -> float:
    level = _number("level", given)
    if not 0 < level < 1:
        raise ValueError(f"level={given!r} will not do; it must lie between 0 and 1")
    return level


def _precision(given: float | ByArm, arms: Sequence[Hashable]) -> Floats:
    if _many(given):
        return np.array(by_arm("precisions", given, arms, least=SMALLEST))
    value = _number("precision", given)
    if not SMALLEST <= value <= GREATEST:
        raise ValueError(f"precision={given!r} will not do; it must be a positive number")
    return np.full(len(arms), value)


def _precise(terms: Terms, wanted: Floats, z: float) -> Allocation:
    """The fewest samples with which each arm has its half-width, within floors and caps."""
    level = (wanted / z) ** 2
    with np.errstate(divide="ignore"):
        near = np.ceil(1 / (level / terms.variances + 1 / terms.populations))
    low, high = np.clip(near - 1, terms.floors, terms.caps), np.clip(near + 1, terms.floors, terms.caps)
    counts = high
    for count in (np.clip(near, low, high), low):  # the estimate may be one off by rounding
        counts = np.where(z * np.sqrt(terms.losses(count)) <= wanted * (1 + _CLOSE / 2), count, counts)
    return Allocation(counts, terms.loss(counts))


def _budget(given: Any, terms: Terms) -> float:
    """A budget that pays for the floors."""
    if terms.objective.costs is None:
        given = int(given) if isinstance(given, float) and given.is_integer() else given
        budget: float = integer("budget", given, 1)
    else:
        budget = _number("budget", given)
        if not 0 < budget < math.inf:
            raise ValueError(f"budget={given!r} will not do; it must be a positive number")
    least = terms.spend(terms.floors)
    if least > terms.limit(budget):
        floors = "one sample of each arm costs" if (terms.floors == 1).all() else "the floors cost"
        raise ValueError(f"budget={given!r} is too small; {floors} {least:,.10g}")
    if budget / terms.cost.min() > MOST:
        raise ValueError(f"budget={given!r} is too large; it must not buy more than 1e15 samples")
    return budget


def _limits(
    arms: Sequence[Hashable], floors: Wholes | None, caps: Wholes | None, populations: Wholes | None
) -> tuple[Floats, Floats, Floats]:
    least = _wholes("floors", floors, arms, 1.0)
    size = _wholes("populations", populations, arms, math.inf)
    most = np.minimum(_wholes("caps", caps, arms, math.inf), size)
    for k in np.flatnonzero(least > most)[:1]:
        what = "population" if most[k] == size[k] else "cap"
        raise ValueError(f"the floor {least[k]:,.0f} of arm {arms[k]!r} is above its {what}, {most[k]:,.0f}")
    return least, most, size


def _wholes(what: str, given: Wholes | None, arms: Sequence[Hashable], default: float) -> Floats:
    """A whole number for each arm, from one for all, some by name or one in each place; None is the default."""
    found = np.full(len(arms), default)
    if given is None:
        return found
    if isinstance(given, Mapping):
        at = {arm: k for k, arm in enumerate(arms)}
        for arm in given:
            if arm not in at:
                raise ValueError(f"{what} will not do: there is no arm {arm!r}")
        pairs = [(at[arm], value) for arm, value in given.items()]
    elif _many(given):
        values = list(given)
        if len(values) != len(arms):
            raise ValueError(f"{len(values)} {what} were given for {len(arms)} arms; one for each is needed")
        pairs = list(enumerate(values))
    else:
        pairs = [(0, given)]
    for k, value in pairs:
        if value is None or (isinstance(value, float) and value == default == math.inf):
            continue
        name = what if given is value else f"{what}[{arms[k]!r}]"
        one = integer(name, value, 1)
        if one > MOST:
            raise ValueError(f"{name}={value!r} will not do; it must not be above 1e15")
        if given is value:
            found[:] = one
        else:
            found[k] = one
    return found


def _many(given: Any) -> TypeGuard[Iterable[Any]]:
    """Whether there are several numbers, or one."""
    return isinstance(given, Iterable) and not isinstance(given, str | bytes) and getattr(given, "ndim", 1) != 0


def _number(name: str, given: Any) -> float:
    try:
        return number("budget", given)
    except TypeError:
        raise TypeError(f"{name}={given!r} will not do; it must be a number") from None


def _listed(column: Any) -> list[Any]:
    return column.tolist() if hasattr(column, "tolist") else list(column)
