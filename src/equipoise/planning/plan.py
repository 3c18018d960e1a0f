"""`plan`, from variances to whole counts, and `Plan`, what they will achieve."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np

from equipoise import chart
from equipoise.base import tables
from equipoise.base.arrays import Floats
from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import probability, shown
from equipoise.base.keywords import suggests_keywords
from equipoise.intervals.sequences import TARGET
from equipoise.planning import words
from equipoise.planning.arguments import (
    arms_and_variances,
    budget_for,
    interval_for,
    is_binary,
    limits,
    precision_by_arm,
    sums_for,
)
from equipoise.planning.planned import Planned
from equipoise.planning.reach import Interval, Reach, of_arms, of_sums, terms_of_sums, within
from equipoise.problem import Contrasts
from equipoise.problem.allocation import Terms, even
from equipoise.problem.objective import MOST, PerArm, Stratified, Wholes
from equipoise.problem.objective import objective as objective_of

# The curve has this many spends for a factor of ten, from a hundredth of the plan's to ten times as much.
_PER_DECADE, _DECADES_DOWN, _DECADES_UP = 4, 2, 1


@suggests_keywords
def plan(
    variances: PerArm,
    budget: float | None = None,
    *,
    precision: float | PerArm | Contrasts | None = None,
    level: float = 0.95,
    interval: Interval | None = None,
    support: Literal["binary"] | None = None,
    objective: float | Stratified = math.inf,
    weights: PerArm | None = None,
    costs: PerArm | None = None,
    floors: Wholes | None = None,
    caps: Wholes | None = None,
    populations: Wholes | None = None,
) -> Plan:
    """
    Plan how many samples of each arm to take, for variances that are known or guessed.

    Anything given by arm may be a mapping or a pandas Series, which is aligned by its labels, or values in the arms'
    order.

    Parameters
    ----------
    variances
        σ² by arm, such as the `variances` of a result. Its labels are the names of the arms; without labels they are
        0, 1, ...
    budget
        The number of samples; with `costs`, an amount of money. It is never exceeded, and what is left over is less
        than the cheapest sample of an arm below its cap.
    precision
        The half-width to reach for each arm's interval, one number or one for each arm: the plan is the cheapest that
        reaches it. With a budget as well, no more than the budget is spent, and `reached` says whether it sufficed. If
        it did not, and no weights are given, losses are weighted by 1/precision². With `Stratified(shares)`, one number
        is the half-width of the combined mean; `Contrasts` asks for that of differences.
    level
        The probability with which all the intervals hold together, for `precision` and the half-widths.
    interval
        Which intervals: "fixed-width" or "anytime" for a study that is stopped by them, as in `estimate`; "fixed-n" for
        counts that are fixed beforehand. By default fixed-width with a precision, and fixed-n without one.
    support
        "binary" for samples that are 0 or 1, whose variance is p (1 - p): fixed-width intervals are wider where ones or
        zeros are rare, and sequences are those of betting.
    objective
        The p-norm of the losses to minimise, by default the largest loss; or `Stratified(shares)`.
    weights
        Weights on the losses, by arm.
    costs
        The cost of one sample, by arm. The budget is then an amount of money.
    floors
        The fewest samples of each arm, one number or by arm; by default 1.
    caps
        The most samples of each arm, one number or by arm; by default no limit.
    populations
        The size N of each arm's population, if samples are drawn from it without replacement: the loss is then
        σ²/T (1 - T/N), and at most N are drawn. σ² has the denominator N - 1.

    Returns
    -------
    Plan
        Counts by arm, and the errors to expect. No other whole counts within the budget have a smaller loss, except
        where costs differ and the objective is not the largest loss: there the best counts are better by less than the
        gain of one further sample, and no loss is below `Plan.bound`.

    Notes
    -----
    At fixed n a half-width is z sqrt(loss), the normal interval of a mean whose variance is known, with z for K
    intervals that hold together by Bonferroni's inequality: the quantile at 1 - (1 - level)/(2K). A study has to
    estimate variances and stops by chance a little early or late; fixed-width intervals allow for that. Sequences are
    the asymptotic ones, of arms without a support, unless arms are binary.

    For p = inf the loss falls only while the worst arm can be paid for; the rest is then spent on the next worst. For
    p < inf the objective is a sum of convex terms, and samples are taken by their gain per cost. For p < 1 the losses
    of finite populations are not convex, so populations are refused.

    Examples
    --------
    >>> import equipoise as eq
    >>> eq.plan({"calm": 1, "rough": 4}, budget=1000)
    1,000 samples. Largest standard error: 0.0707 (calm).
    arm    count  standard error  half-width  variance
    calm     200         0.07071      0.1585         1
    rough    800         0.07071      0.1585         4
    An even split would need about 1,600 samples for the same largest standard error.
    >>> eq.plan({"calm": 1, "rough": 4}, precision=0.1).counts
    {'calm': 508, 'rough': 2016}

    References
    ----------
    .. [1] W. G. Cochran (1977), Sampling Techniques, chapters 2 and 5: finite populations and optimum allocation.
    .. [2] B. Fox (1966), Discrete optimization via marginal analysis. Management Science 13.
    """
    arms, values = arms_and_variances(variances)
    level = probability("level", level)
    kind = interval_for(interval, precision)
    sums = sums_for(precision, arms, objective)
    wanted = None if precision is None or sums is not None else precision_by_arm(precision, arms)  # type: ignore[arg-type]
    if wanted is not None and weights is None and np.unique(wanted).size > 1 and not isinstance(objective, Stratified):
        weights = (1 / wanted**2).tolist()
    goal = objective_of(arms, objective, weights, costs)
    least, most, sizes = limits(arms, floors, caps, populations)
    goal.check_populations(sizes)
    binary = is_binary(support, values, sizes)
    terms = Terms(values, goal, least, most, sizes)
    money = None if budget is None else budget_for(terms, budget)
    intervals = len(arms) if sums is None else len(sums.weights)
    tuned = TARGET if money is None else money / math.fsum(terms.cost)
    reach = Reach(kind, (1 - level) / intervals, tuned, binary)
    terms = terms if sums is None or goal.shares is not None else terms_of_sums(terms, sums, reach)
    precise = None
    if wanted is not None:
        precise = of_arms(terms, wanted, reach)
    elif sums is not None:
        precise = of_sums(terms, sums, reach)
    if precise is not None and (money is None or terms.spend(precise.counts) <= terms.limit(money)):
        allocation = precise
    elif money is not None:
        allocation = within(terms, money, sums, reach)
    elif sums is not None:
        raise InvalidInput(
            f"precision must be wide enough for at most {MOST:,} samples of an arm, within caps, "
            f"got {sums.half_width:g}"
        )
    else:
        raise InvalidInput("budget or precision must be given, such as budget=1000")
    if not (allocation.counts <= MOST).all():
        k = int(allocation.counts.argmax())
        found = f"{allocation.counts[k]:.3g} of {shown(arms[k])}"
        raise InvalidInput(f"precision must take at most {MOST:,} samples of an arm, got {found}")
    given = None if wanted is None else tuple(wanted.tolist())
    return Plan(arms, terms, allocation, money, given, level, reach, sums)


class Plan(Planned):
    __doc__ = Planned.__doc__

    def curve(self, spends: Iterable[float] | None = None) -> list[dict[str, float]]:
        """
        Return the error to expect for each of several budgets.

        Parameters
        ----------
        spends
            Budgets. If not given: four for each factor of ten, from a hundredth of this plan's to ten times as much,
            within what pays for the floors and what pays for every cap.

        Returns
        -------
        list of dict
            For each `spend` the number of `samples`; `error`, the square root of the objective (for the largest loss
            without weights, the largest standard error); `half_width`, the largest over the arms; and `uniform_error`,
            the `error` of an even split.
        """
        rows = []
        for spend in self._spends() if spends is None else [budget_for(self.terms, spend) for spend in spends]:
            counts = self.allocation.counts if spend == self.spend else self._within(spend)
            losses = self.terms.losses(counts)
            rows.append(
                {
                    "spend": spend,
                    "samples": int(counts.sum()),
                    "error": math.sqrt(self.terms.objective.loss(losses)),
                    "half_width": float(self._reach(self.level).half_widths(self.terms, counts).max()),
                    "uniform_error": math.sqrt(self.terms.loss(even(self.terms, spend))),
                }
            )
        return rows

    @property
    def error_title(self) -> str:
        """The name of the curve's `error`, for a title."""
        objective = self.terms.objective
        if objective.p == math.inf:
            return "largest √(w·loss)" if objective.weights else "largest standard error"
        losses = "w·losses" if objective.weights else "losses"
        return f"√ of the sum of {losses}" if objective.p == 1 else f"√ of the {objective.p:g}-norm of {losses}"

    def plot(self, rows: Iterable[Mapping[str, float]] | None = None) -> Any:
        """Return an Altair chart of the curve, or of these rows of it, with an even split and this plan marked."""
        return chart.spend(
            self.curve() if rows is None else rows,
            at=self.spend,
            titles=("samples" if self.terms.objective.costs is None else "money spent", self.error_title),
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each arm: arm, variance, count, cost, standard_error, half_width, loss."""
        columns = {name: column if name == "arm" else column.tolist() for name, column in self.columns().items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the curve as plain data, by arm where there is one for each; None for infinity."""
        alone = ("samples", "cost", "left", "capped", "reached", "loss", "bound", "optimal_loss")
        p = self.terms.objective.p
        known: dict[str, Any] = {
            "objective": "inf" if p == math.inf else p,
            "budget": self.budget,
            "precision": None if self.precision is None else self._by_arm(np.array(self.precision)),
            "interval": self.reach.interval,
            "level": self.level,
            "counts": self.counts,
            "variances": self.variances,
            "errors": self.errors,
            "half_widths": self.half_widths(),
            "losses": self.losses,
        }
        known |= {name: getattr(self, name) for name in (*alone, "uniform_loss", "uniform_cost")}
        if self.sums is not None:
            known |= {"precision": self.sums.half_width, "half_widths_of_sums": self.half_widths_of_sums}
        return dict(tables.json_ready(known)) | {"worst": self.worst}

    def to_json(self) -> str:
        """Return `to_dict` as a JSON text, in which names of arms are texts."""
        return tables.json_text(self.to_dict())

    def to_frame(self, library: tables.FrameLibrary | None = None) -> Any:
        """Return a pandas or polars DataFrame with a row for each arm; by default of whichever is installed."""
        return tables.frame(self.columns(), library)

    def summary(self) -> str:
        """Return what the plan achieves, in a few sentences."""
        return " ".join([words.verdict(self), *words.remarks(self)])

    def __repr__(self) -> str:
        return "\n".join([words.verdict(self), tables.text(words.table(self), words.remarks(self))])

    def _repr_html_(self) -> str:
        return tables.html(words.table(self), words.remarks(self), before=[words.verdict(self)])

    def _within(self, spend: float) -> Floats:
        return within(self.terms, spend, self.sums, self.reach).counts

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
