"""The result of a study: what it knows about its arms."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from equipoise import chart
from equipoise.base import tables
from equipoise.base.arrays import Floats
from equipoise.base.inputs import MISSING, text_of
from equipoise.inference import arm_intervals, comparisons, errors, forecast, losses, ranking
from equipoise.inference.baseline import Baseline, baseline
from equipoise.inference.contrasts import Contrast, Differences
from equipoise.inference.forecast import Left
from equipoise.inference.known import Known
from equipoise.inference.strata import Combined, combine, combined_kind
from equipoise.intervals import Kind
from equipoise.ledger.goal import Precision
from equipoise.problem.objective import Objective
from equipoise.result import export, summary
from equipoise.result.by_arm import ByArm, IntervalsByArm
from equipoise.result.certificate import Certificate, certify
from equipoise.strategies import Support

if TYPE_CHECKING:
    import pandas
    import polars


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
    counts
        By arm: how many samples are in.
    means
        By arm: the mean of the samples.
    variances
        By arm: the unbiased variance s² of the samples.
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
        By arm: s²/count, for comparing allocations: it is as if the counts had been fixed in advance. Those of finite
        populations are corrected for their sizes.
    plain_errors
        By arm: the square root of the loss, which is too small after adaptive sampling.
    loss
        The largest of the losses; with another objective, its norm of the weighted losses.
    oracle_loss
        What the best allocation of as many samples would have had, if the variances are those observed: the sum of s²
        over the number of samples; with another objective, the least norm for what the samples cost.
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
        their number. A sample whose real cost nobody told costs what those of its arm do on average.
    costs
        By arm: the mean of the real costs that are known, or the declared cost before the first; None without costs.
    cost_unit
        What costs are counted in, such as "tokens"; empty where nobody said.
    declined
        By arm: how many tickets were declined.
    objective
        What was minimised, with weights and costs in the arms' order. Where the weights follow a precision, they are
        those of the targets now, and costs are those that are planned with now.
    support
        Which values were possible.
    populations
        The sizes of the arms' populations, where samples are drawn without replacement; None if all are infinite.
    level
        The level of the intervals.
    precision
        The precision that was asked for; None without one.
    reached
        Whether every interval that the precision is asked of, by default of every arm, lies within its value ± the
        precision; None if none was asked for.
    left
        How many more samples the precision needs, `samples`, with a range from `low` to `high`, and how long that takes
        at the pace of the last samples, from `seconds_low` to `seconds_high`. None where that cannot be said.
    """

    known: Known

    @property
    def arms(self) -> Sequence[Hashable]:
        """The arms' names, in order."""
        return self.known.arms

    @property
    def strategy(self) -> str:
        """The name of the strategy."""
        return self.known.strategy

    @property
    def support(self) -> Support:
        return self.known.support

    @property
    def objective(self) -> Objective:
        return self.known.objective

    @property
    def populations(self) -> Floats | None:
        return self.known.populations

    @property
    def level(self) -> float:
        return self.known.level

    @property
    def precision(self) -> Precision | None:
        return self.known.precision

    @property
    def cost_unit(self) -> str:
        return self.known.cost_unit

    @property
    def samples(self) -> int:
        """How many samples are in."""
        return self.known.samples

    @property
    def spent(self) -> float:
        return self.known.spent

    # ---- by arm

    @cached_property
    def counts(self) -> ByArm:
        return ByArm(self.known.names, self.known.counts)

    @cached_property
    def means(self) -> ByArm:
        return ByArm(self.known.names, self.known.means)

    @cached_property
    def variances(self) -> ByArm:
        return ByArm(self.known.names, self.known.variances)

    @cached_property
    def losses(self) -> ByArm:
        return ByArm(self.known.names, self.known.losses)

    @cached_property
    def plain_errors(self) -> ByArm:
        return ByArm(self.known.names, self.known.plain_errors)

    @cached_property
    def standard_errors(self) -> ByArm:
        return ByArm(self.known.names, errors.standard_errors(self.known))

    @cached_property
    def biases(self) -> ByArm:
        return ByArm(self.known.names, errors.biases(self.known))

    @cached_property
    def corrected_means(self) -> ByArm:
        return ByArm(self.known.names, errors.corrected_means(self.known))

    @cached_property
    def declined(self) -> ByArm:
        return ByArm(self.known.names, self.known.declined)

    @property
    def costs(self) -> ByArm | None:
        return None if self.known.snapshot.costs is None else ByArm(self.known.names, self.known.snapshot.costs)

    # ---- all arms together

    @property
    def worst(self) -> Hashable:
        return self.arms[ranking.least_precise(self.known)]

    @property
    def loss(self) -> float:
        return self.known.loss

    @property
    def oracle_loss(self) -> float:
        return losses.oracle_loss(self.known)

    @property
    def regret(self) -> float:
        return losses.regret(self.known)

    @property
    def uniform_loss(self) -> float:
        return losses.uniform_loss(self.known)

    @property
    def proportional_loss(self) -> float:
        return losses.proportional_loss(self.known)

    @property
    def baseline(self) -> Baseline | None:
        return baseline(self.known)

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

        The means are the corrected ones, as the biases of many strata add up; the standard error is
        sqrt(Σ_k W_k² e_k²), with the strata's standard errors e_k. A stratum whose samples are all equal is taken for
        constant; a binary one has the standard error of Agresti and Coull, with two ones and two zeros added. The
        interval is that of Student's distribution with Welch and Satterthwaite's degrees of freedom, for one look. If
        the precision of the study was asked of the combined mean, it is the interval that decided: the confidence
        sequence, or the fixed-width interval, around the corrected mean, if that is wider.

        Parameters
        ----------
        shares
            W_k, the share of each arm's stratum in the whole; they must sum to 1. By name, where arms that are not
            named have a share of 0, or for all in the arms' order. A study with `objective=Stratified(shares)` knows
            them.
        level
            The probability that the interval holds, for a look that was planned; by default that of the result.
        among
            The arms of a part of the whole, by name: the mean of these strata together. Their shares are divided by
            their sum.
        kind
            The kind of the interval, as in `intervals`: "betting" or "asymptotic" is valid at any time. By default
            "fixed-n", Student's, or the one that decided.
        """
        return combine(self.known, shares, level, among, kind)

    @property
    def combined_kind(self) -> Kind:
        """The kind of the interval of `combine()`: "fixed-n" for one look, or the kind that decided when to stop."""
        return combined_kind(self.known)

    # ---- intervals, and the precision that was asked for

    def intervals(self, level: float | None = None, kind: Kind | None = None) -> IntervalsByArm:
        """
        Return intervals for the arms' means that hold for all arms at once.

        Parameters
        ----------
        level
            The probability that all of them hold; by default that of the result, `level`.
        kind
            By default "betting" where a support is declared, else "asymptotic", of each arm's samples in the order of
            asking: valid at any time, whatever the strategy did and whenever you look. An arm that was stopped by its
            "fixed-width" interval, as most are by default where a precision is asked for, has that one. "fixed-n" is
            the textbook interval, of all samples, and is not valid if you look and then decide
            (docs/explanation/intervals.md). A result that was made of moments alone has only "fixed-n", which is then
            the default.

        Notes
        -----
        Equal samples are no proof that an arm never varies. By default, an interval that rests on the observed variance
        takes the half-width of the most varying arm if all samples of its arm are equal, times sqrt(n/count) where
        that arm has n samples; unless its population is used up. An arm with fewer than 20 samples takes at least the
        interval that it would have with the variance of that arm. These are the intervals that a precision is compared
        with. A kind that is asked for by name is given as it is.

        If no support was declared and every sample of every arm is 0 or 1, the intervals are those of binary arms, for
        arms with as many samples as the asymptotic kind needs: 9 for one arm, 12 for ten and 16 for a hundred at 95%,
        and 20 as long as the samples of each arm are all equal. They change to those of other arms with the first
        sample that is neither; ask for kind="asymptotic" to have these from the start.
        """
        return IntervalsByArm(self.known.names, arm_intervals.intervals(self.known, None, level, kind))

    @property
    def interval_kind(self) -> Kind:
        """The kind of the confidence sequences."""
        return self.known.interval_kind

    def contrasts(self) -> list[Contrast]:
        """
        Return the weighted sums of means that the precision was asked of, which hold simultaneously.

        Each is of the kind that decided: "fixed-width" where that interval was narrow enough, else a confidence
        sequence. Empty where the precision was asked of the arms' means.
        """
        if self.precision is None or self.precision.sums is None:
            return []
        return comparisons.contrasts_of(self.known, self.precision.sums)

    @property
    def reached(self) -> bool | None:
        return arm_intervals.reached(self.known)

    @property
    def left(self) -> Left | None:
        return forecast.left(self.known)

    @property
    def samples_left(self) -> float | None:
        """About how many more samples the precision needs: infinite if too little is known, None without one."""
        return forecast.samples_left(self.known)

    @property
    def certificate(self) -> Certificate:
        """How precise the result is, what other ways of sampling would have had, and what may be wrong with it."""
        return certify(self.known, summary.even_split(self.known))

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
            The probability that the interval holds, at any time; by default that of the result. It is not shared with
            other contrasts: of several, each holds on its own. Only a contrast that the precision was asked of has at
            this level the interval that decided when to stop, which is simultaneous with the others.
        kind
            The kind of the interval, as in `intervals`: "fixed-n" for one look that was planned, which is narrower; by
            default that of the result's intervals, valid at any time. Equal samples are taken to vary as much as those
            of the most varying arm where the interval rests on the observed variance.
        """
        return comparisons.contrast(self.known, weights, level, kind)

    def compare(self, level: float | None = None, *, to: Hashable = MISSING, kind: Kind | None = None) -> Differences:
        """
        Return which arms differ: the differences of all pairs, or of each arm to one, the clearest first.

        The intervals are simultaneous, each at 1 - (1 - level)/pairs (Bonferroni): with probability `level` all of them
        hold, at any time and whatever the strategy did. So you may pick any pair by what you see. Where the precision
        of the study was asked of these differences (`Contrasts`) and its level is that of the result, they are the
        intervals that decided when to stop, by default of fixed width.

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

        Parameters
        ----------
        title
            Above the chart.
        x_title
            Of the axis; by default it names the level of the intervals.
        width
            Of the chart, in pixels.
        """
        ends = ranking.intervals_shown(self.known)
        rows = [
            {"arm": text_of(self.arms[k]), "mean": float(mean), "low": float(low), "high": float(high)}
            for k, mean, low, high in zip(ranking.shown(self.known), ends.means, ends.low, ends.high, strict=True)
        ]
        axis = x_title or f"mean, with its {tables.percent(self.level)} interval"
        return chart.intervals(tables.json_ready(rows), x_title=axis, title=title, width=width)

    @property
    def verdict(self) -> str:
        """The result in one line."""
        return summary.verdict(self.known)

    def remarks(self) -> list[str]:
        """Return at most three short remarks that help to judge the result."""
        return summary.remarks(self.known)

    def __getstate__(self) -> dict[str, Any]:
        # The samples stay behind, and the replay needs them.
        errors.errors(self.known)
        return self.__dict__

    def __repr__(self) -> str:
        return summary.text(self.known)

    def _repr_html_(self) -> str:
        return summary.html(self.known)
