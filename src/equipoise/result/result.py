"""The result of a study: what it knows about its arms."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from equipoise.base import tables
from equipoise.base.arrays import Floats, Ints
from equipoise.base.inputs import MISSING
from equipoise.inference import arm_intervals, comparisons, errors, forecast, ranking, strata
from equipoise.inference import baseline as even_split
from equipoise.inference import losses as all_losses
from equipoise.inference.contrasts import Contrast, Differences
from equipoise.inference.known import Known
from equipoise.inference.strata import Combined
from equipoise.intervals import Kind
from equipoise.result import export, summary
from equipoise.result.by_arm import ByArm, IntervalsByArm
from equipoise.result.certificate import certify

if TYPE_CHECKING:
    import pandas
    import polars


T = TypeVar("T")


def _of(found: Callable[[Known], T]) -> cached_property[T]:
    """Return an attribute of a result that a function finds from what is known."""
    return cached_property(lambda result: found(result.known))


def _by_arm(found: Callable[[Known], Floats | Ints]) -> cached_property[ByArm]:
    return _of(lambda known: ByArm(known.names, found(known)))


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """
    What a study knows: the mean of each arm, and how precise it is.

    All numbers are estimates from the samples that are in. A variance needs two samples, a mean needs one; what is not
    known is NaN. Later samples do not change a result.

    Attributes
    ----------
    known
        What all of it is computed from, for the functions of `equipoise.inference`.
    arms, strategy
        The arms' names, in order, and the name of the strategy.
    samples
        The number of samples.
    counts, means, variances
        By arm: the number of samples, their mean, and their unbiased variance s².
    standard_errors
        By arm: the square root of the expected squared error of the mean. It accounts for how the samples were chosen:
        with an adaptive strategy the study is replayed, some hundreds of times, with samples drawn from those that are
        in (docs/explanation/inference.md). That takes 10 to 500 ms, once. Of finite populations, it is corrected for
        their sizes. That of samples that are all equal is not known: NaN.
    biases
        By arm: by how much the mean is off on average because of how the samples were chosen, from the same replay.
    corrected_means
        By arm: the mean less its bias.
    losses
        By arm: s²/count, corrected for finite populations, for comparing allocations: as if counts were fixed in
        advance.
    plain_errors
        By arm: the square root of the loss, which is too small after adaptive sampling.
    loss
        The largest of the losses; with another objective, its norm of the weighted losses.
    oracle_loss
        The least loss that any allocation at the same cost would have, if the variances are those observed.
    worst
        The least precise arm: that with the widest interval, relative to its target or weighted where there are targets
        or weights; among strata, that with the largest weighted loss.
    regret
        loss - oracle_loss.
    uniform_loss
        The loss of an even split of the same budget, if the variances are those observed.
    baseline
        How many samples an even split would have needed for the same largest standard error, or the same precision
        where one was asked for: `samples`, a range from `low` to `high`, and what the samples cost, `spent`. None where
        that cannot be said: for one arm, `uniform`, a precision that is not reached, fewer than two samples of an arm.
    proportional_loss
        The loss of a proportional allocation at the same cost, where the arms are strata; else NaN.
    spent
        What the budget was charged for answers and declines: `Study.spent` less the tickets in flight. Without costs,
        their number. A sample whose real cost was not told costs what those of its arm do on average.
    costs
        By arm: the mean of the real costs that are known, or the declared cost before the first; None without costs.
    cost_unit
        The unit of costs, such as "tokens"; empty where none was given.
    declined
        By arm: how many tickets were declined.
    objective
        What was minimised, with weights and costs in the arms' order. Where the weights follow a precision, they are
        those of the targets now; costs are those planned with now.
    support
        Which values are possible, as declared.
    populations
        The sizes of the arms' populations, where samples are drawn without replacement; None if all are infinite.
    level
        The level of the intervals.
    precision
        The precision that was asked for; None without one.
    interval_kind
        The kind of the confidence sequences, as in `intervals`.
    combined_kind
        The kind of the interval of `combine()`: "fixed-n" for one look, or the kind that decided when to stop.
    certificate
        How precise the result is, what other ways of sampling would have had, and what may be wrong with it.
    verdict
        The result in one line.
    reached
        Whether every interval that the precision is asked of, by default of every arm, lies within its value ± the
        precision; None without a precision.
    samples_left
        About how many more samples the precision needs: infinite if too little is known, None without a precision.
    left
        How many more samples the precision needs, `samples`, with a range from `low` to `high`, and how long that takes
        at the pace of the last samples, from `seconds_low` to `seconds_high`. None where that cannot be said.
    """

    known: Known

    arms = _of(lambda known: known.arms)
    strategy = _of(lambda known: known.strategy)
    support = _of(lambda known: known.support)
    objective = _of(lambda known: known.objective)
    populations = _of(lambda known: known.populations)
    level = _of(lambda known: known.level)
    precision = _of(lambda known: known.precision)
    cost_unit = _of(lambda known: known.cost_unit)
    samples = _of(lambda known: known.samples)
    spent = _of(lambda known: known.spent)

    # ---- by arm
    counts = _by_arm(lambda known: known.counts)
    means = _by_arm(lambda known: known.means)
    variances = _by_arm(lambda known: known.variances)
    standard_errors = _by_arm(errors.standard_errors)
    biases = _by_arm(errors.biases)
    corrected_means = _by_arm(errors.corrected_means)
    losses = _by_arm(lambda known: known.losses)
    plain_errors = _by_arm(lambda known: known.plain_errors)
    declined = _by_arm(lambda known: known.declined)
    costs = _of(lambda known: None if known.snapshot.costs is None else ByArm(known.names, known.snapshot.costs))

    # ---- all arms together
    worst = _of(lambda known: known.arms[ranking.least_precise(known)])
    loss = _of(lambda known: known.loss)
    oracle_loss = _of(all_losses.oracle_loss)
    regret = _of(all_losses.regret)
    uniform_loss = _of(all_losses.uniform_loss)
    proportional_loss = _of(all_losses.proportional_loss)
    baseline = _of(even_split.baseline)

    # ---- how far the study has come
    reached = _of(arm_intervals.reached)
    left = _of(forecast.left)
    samples_left = _of(forecast.samples_left)
    interval_kind = _of(lambda known: known.interval_kind)
    combined_kind = _of(strata.combined_kind)
    certificate = _of(lambda known: certify(known, summary.even_split(known)))
    verdict = _of(summary.verdict)

    def combine(
        self,
        shares: Iterable[float] | Mapping[Any, float] | None = None,
        level: float | None = None,
        *,
        among: Iterable[Hashable] | None = None,
        kind: Kind | None = None,
    ) -> Combined:
        """
        Return the mean of strata together, Σ_k W_k mean_k, with its standard error and its interval.

        The means are the corrected ones, and the standard error is sqrt(Σ_k W_k² e_k²), with the strata's standard
        errors e_k. The interval is Student's, for one look; if the precision of the study was asked of the combined
        mean, it is the interval that decided (docs/explanation/inference.md).

        Parameters
        ----------
        shares
            W_k, the share of each arm's stratum in the whole, by name or in the arms' order; they must sum to 1, and an
            arm that is not named has 0. By default those of `objective=Stratified(shares)`.
        level
            The probability that the interval holds, for a look that was planned; by default that of the result.
        among
            The arms of a part of the whole, by name; their shares are divided by their sum.
        kind
            The kind of the interval, as in `intervals`: "betting" or "asymptotic" is valid at any time. By default
            "fixed-n", Student's, or the one that decided.
        """
        return strata.combine(self.known, shares, level, among, kind)

    # ---- intervals, and the precision that was asked for

    def intervals(self, level: float | None = None, kind: Kind | None = None) -> IntervalsByArm:
        """
        Return intervals for the arms' means that hold for all arms at once.

        Parameters
        ----------
        level
            The probability that all of them hold; by default that of the result, `level`.
        kind
            By default "betting" where a support is declared, else "asymptotic": valid at any time, whatever the
            strategy did and whenever you look. An arm that was stopped by its "fixed-width" interval has that one.
            "fixed-n" is the textbook interval, which is not valid if you look and then decide; it is the only one of a
            result that was made of moments alone.

        Notes
        -----
        By default, an arm with fewer than 20 samples, or with samples that are all equal, borrows the variance of the
        most varying arm (docs/explanation/intervals.md); a kind that is asked for by name is given as it is.

        If no support was declared and every sample of every arm is 0 or 1, the intervals of arms with enough samples
        are those of binary arms, until the first sample that is neither.
        """
        return IntervalsByArm(self.known.names, arm_intervals.intervals(self.known, None, level, kind))

    def contrasts(self) -> list[Contrast]:
        """
        Return the weighted sums of means that the precision was asked of, which hold simultaneously.

        Each is of the kind that decided: "fixed-width" where that interval was narrow enough, else a confidence
        sequence. Empty where the precision was asked of the arms' means.
        """
        if self.precision is None or self.precision.sums is None:
            return []
        return comparisons.contrasts_of(self.known, self.precision.sums)

    # ---- comparisons

    def difference(self, a: Hashable, b: Hashable, level: float | None = None, *, kind: Kind | None = None) -> Contrast:
        """
        Return the mean of `a` minus the mean of `b`, with its standard error and its interval.

        The interval is that of one confidence sequence for the difference itself, and holds at this level for a pair
        that was chosen before seeing the results, at any time and whatever the strategy did. For all pairs at once, or
        a pair that was chosen by its results, use `compare`.
        """
        return comparisons.difference(self.known, a, b, level, kind)

    def contrast(
        self, weights: Mapping[Any, float], level: float | None = None, *, kind: Kind | None = None
    ) -> Contrast:
        """
        Return a weighted sum of the arms' means, with its standard error and its interval.

        Parameters
        ----------
        weights
            By arm, such as {"a": 1, "b": -0.5, "c": -0.5} for a against the mean of b and c; arms that are not named
            have weight 0. The interval holds for weights that were chosen before seeing the results.
        level
            The probability that the interval holds, at any time and on its own; by default that of the result. A
            contrast that the precision was asked of has the interval that decided, simultaneous with the others.
        kind
            The kind of the interval, as in `intervals`; "fixed-n" is narrower, for one look that was planned.
        """
        return comparisons.contrast(self.known, weights, level, kind)

    def compare(self, level: float | None = None, *, to: Hashable = MISSING, kind: Kind | None = None) -> Differences:
        """
        Return which arms differ: the differences of all pairs, or of each arm to one, the clearest first.

        The intervals are simultaneous (Bonferroni): with probability `level` all of them hold, at any time and whatever
        the strategy did, so you may pick any pair by what you see. Where the precision of the study was asked of these
        differences (`Contrasts`), at the level of the result, they are the intervals that decided when to stop.

        Parameters
        ----------
        level
            The probability that all intervals hold; by default that of the result.
        to
            An arm, such as the control: every other arm minus this one, which are fewer intervals and narrower ones.
        kind
            The kind of the intervals, as in `contrast`.
        """
        return comparisons.compare(self.known, level, to, kind)

    # ---- for programs

    def to_dict(self) -> dict[str, Any]:
        """
        Return everything as plain numbers, by arm where there is one for each; None for what is unknown or infinite.

        `intervals` has a pair [low, high] for each arm, at `interval_level` for all of them at once, of the kind that
        `interval_kinds` says; `interval_kind` is "fixed-width" if all are, else that of the others. `reached`,
        `samples_left` and `left` are None where no precision was asked for.
        """
        return export.to_dict(self.known)

    def to_json(self) -> str:
        """
        Return `to_dict` as a JSON object, where arms' names are strings.

        Where two names have the same text, as 1 and "1" have, all are written as Python would: 1 and '1'.
        """
        return export.to_json(self.known)

    def to_frame(self, library: tables.FrameLibrary | None = None) -> pandas.DataFrame | polars.DataFrame:
        """
        Return a table with a row for each arm, as a pandas or polars DataFrame: by default whichever is installed.

        `low` and `high` are the ends of `intervals()`, infinite, or those of the support, where too little is known;
        `interval_kind` and `interval_level`, which is the same in every row, say what they are. With costs, `cost` is
        the mean cost of a sample.
        """
        return export.to_frame(self.known, library)

    # ---- for people

    def plot(self, *, title: str = "", x_title: str = "", width: int = 360) -> Any:
        """
        Return an Altair chart of the means with their intervals; of the least precise arms if there are many.

        `x_title` is that of the axis, and by default names the level of the intervals; `width` is in pixels.
        """
        return export.plot(self.known, title, x_title, width)

    def remarks(self) -> list[str]:
        """Return at most three short remarks that help to judge the result."""
        return summary.remarks(self.known)

    def __getstate__(self) -> dict[str, Any]:
        # The samples stay behind, and the replay needs them.
        errors.errors(self.known)
        return {"known": self.known}

    def __repr__(self) -> str:
        return summary.text(self.known)

    def _repr_html_(self) -> str:
        return summary.html(self.known)
