"""What a study knows about its arms."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise import chart
from equipoise.base import tables
from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.base.inputs import (
    MISSING,
    Names,
    labelled,
    number,
    plain_name,
    probability,
    several,
    shown,
    text_of,
    texts,
)
from equipoise.base.tables import rounded
from equipoise.inference import comparisons as contrasts
from equipoise.inference import corrections, finite, replay, stopping
from equipoise.inference import linear_targets as sums
from equipoise.inference.baseline import Baseline, baseline
from equipoise.inference.comparisons import Contrast, Differences, interval
from equipoise.inference.forecast import Left, ToCome, by_arm, left, to_come
from equipoise.intervals import Intervals, Kind, asymptotic, t_mixture
from equipoise.intervals.asymptotic import START
from equipoise.intervals.contrasts import freedom
from equipoise.intervals.fixed_n import student_quantile
from equipoise.ledger.evidence import Bets
from equipoise.ledger.goal import Goal, Precision
from equipoise.ledger.snapshot import Snapshot
from equipoise.problem.objective import Objective, shares_of_some
from equipoise.result import summary
from equipoise.result.by_arm import ByArm, IntervalsByArm
from equipoise.result.certificate import Certificate, certify, equal_samples
from equipoise.strategies import Support

if TYPE_CHECKING:
    import pandas
    import polars


# What there is one of for each arm, of the result and of the objective.
_BY_ARM = (
    "means",
    "corrected_means",
    "biases",
    "counts",
    "declined",
    "variances",
    "standard_errors",
    "plain_errors",
    "losses",
)
_OF_OBJECTIVE = ("weights", "shares")


class Combined(NamedTuple):
    """
    The mean of all strata together, its standard error, and the ends of its interval.

    The bias of adaptive sampling is taken out of the value. The interval is value ± t error, by Student's
    distribution, for a single look; or, where the precision was asked of the combined mean, the one that decided when
    to stop. `Result.combined_kind` says which.
    """

    value: float
    error: float
    low: float
    high: float

    def __repr__(self) -> str:
        half = (self.high - self.low) / 2
        ends = f"interval {interval(self.low, self.high)}, " if math.isfinite(half) else ""
        return f"{rounded(self.value, half)}, {ends}standard error {rounded(self.error, self.error)}"


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """
    What a study knows: the mean of each arm, and how precise it is.

    All numbers are estimates from the samples that are in. A variance needs two samples, a mean needs one; what is not
    known is NaN. Later samples do not change a result.

    Parameters
    ----------
    snapshot
        What the study knew when the result was made.
    goal
        The level of the intervals, and the precision that was asked for, if any.

    Attributes
    ----------
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

    snapshot: Snapshot
    goal: Goal = field(default_factory=Goal)
    cost_unit: str = ""

    # ---- what it was made from

    @property
    def names(self) -> Names:
        """The arms' names, and the place of each."""
        return self.snapshot.names

    @property
    def arms(self) -> Sequence[Hashable]:
        """The arms' names, in order."""
        return self.snapshot.names.names

    @property
    def strategy(self) -> str:
        """The name of the strategy."""
        return self.snapshot.strategy

    @property
    def support(self) -> Support:
        return self.snapshot.support

    @property
    def recognised(self) -> bool:
        """Whether no support was declared and all samples are 0 or 1: intervals are those of binary arms."""
        return self.snapshot.evidence is not None and self.snapshot.evidence.recognised

    @property
    def populations(self) -> Floats | None:
        return self.snapshot.populations

    @property
    def level(self) -> float:
        return self.goal.level

    @property
    def precision(self) -> Precision | None:
        return self.goal.precision

    @cached_property
    def objective(self) -> Objective:
        if not self.goal.by_precision or self.precision is None or self.precision.sums is not None:
            return self.snapshot.objective
        return replace(self.snapshot.objective, weights=self.precision.judging_weights(self.means.array))

    @property
    def by_precision(self) -> bool:
        """Whether errors are judged relative to the half-widths that were asked for."""
        if self.precision is None or self.precision.sums is not None:
            return False
        return self.goal.by_precision and self.objective.weights is not None

    @property
    def by_target(self) -> bool:
        """Whether arms are compared by their half-widths relative to those that were asked for, rather than by loss."""
        weighted = self.objective.shares is not None or (self.objective.weights is not None and not self.by_precision)
        return not weighted and bool(np.isfinite(self.targets).all())

    # ---- by arm

    @cached_property
    def counts(self) -> ByArm:
        return ByArm(self.names, self.snapshot.counts)

    @cached_property
    def means(self) -> ByArm:
        return ByArm(self.names, np.where(self.counts.array >= 1, self.snapshot.means, math.nan))

    @cached_property
    def variances(self) -> ByArm:
        counts = self.counts.array
        with np.errstate(divide="ignore", invalid="ignore"):
            return ByArm(self.names, np.where(counts >= 2, self.snapshot.m2s / (counts - 1), math.nan))

    @cached_property
    def losses(self) -> ByArm:
        counts = self.counts.array
        with np.errstate(divide="ignore", invalid="ignore"):
            losses = self.variances.array / counts
        if self.populations is not None:
            losses = finite.corrected(losses, counts, self.populations)
        return ByArm(self.names, losses)

    @cached_property
    def plain_errors(self) -> ByArm:
        return ByArm(self.names, np.sqrt(self.losses.array))

    @cached_property
    def adaptivity(self) -> corrections.Adaptivity:
        """What choosing the samples by looking at samples has done to the means, and how that was found."""
        return replay.adaptivity(self)

    @cached_property
    def errors(self) -> Floats:
        """The standard errors in the arms' order, 0 where samples are all equal: what those of sums are made of."""
        return np.asarray(np.sqrt(self.losses.array * self.adaptivity.inflations))

    @cached_property
    def standard_errors(self) -> ByArm:
        return ByArm(self.names, np.where(equal_samples(self), math.nan, self.errors))

    @cached_property
    def biases(self) -> ByArm:
        return ByArm(self.names, np.where(np.isnan(self.losses.array), math.nan, self.adaptivity.biases))

    @cached_property
    def corrected_means(self) -> ByArm:
        return ByArm(self.names, self.means.array - self.adaptivity.biases)

    @cached_property
    def declined(self) -> ByArm:
        declined = self.snapshot.declined
        return ByArm(self.names, np.zeros(len(self.arms), np.int64) if declined is None else declined)

    @property
    def declined_shares(self) -> Floats:
        """The share of declines among the tickets that were answered or declined, in the arms' order; 0 of none."""
        if self.snapshot.replies is None:
            return np.zeros(len(self.arms))
        return np.asarray(self.declined.array / np.maximum(self.snapshot.replies, 1))

    @property
    def costs(self) -> ByArm | None:
        return None if self.snapshot.costs is None else ByArm(self.names, self.snapshot.costs)

    @property
    def weighted_losses(self) -> Floats:
        """The losses times their weights, in the arms' order; 0 for an arm of weight 0, even if its loss is unknown."""
        weight = self.objective.weight(len(self.arms))
        with np.errstate(over="ignore"):
            return np.where(weight > 0, weight * self.losses.array, 0.0)

    @property
    def worst(self) -> Hashable:
        """The least precise arm: the first of `worst_first`."""
        return self.arms[self.least_precise()]

    def least_precise(self) -> int:
        """Return the place of the least precise arm: what every sentence, table, chart and page calls so."""
        return int(self.worst_first()[0])

    def worst_first(self) -> Ints:
        """
        Return the places of all arms, the least precise first.

        These are arms whose loss is unknown, then those with the widest intervals: relative to targets, or weighted.
        Arms that have no interval yet come before those that have one. Strata are in the order of their weighted
        losses, and so are arms whose intervals are equally wide.
        """
        return self._worst_first

    @cached_property
    def _worst_first(self) -> Ints:
        losses = self.weighted_losses
        unknown = np.isnan(losses)
        wide = np.zeros(len(losses))
        if self.objective.shares is None and not unknown.all():
            with np.errstate(divide="ignore", invalid="ignore"):
                scale = 1 / self.targets if self.by_target else np.sqrt(self.objective.weight(len(self.arms)))
                wide = np.where(scale > 0, self.intervals().margins * scale, 0.0)
        order = np.lexsort((-np.where(unknown, math.inf, losses), -np.nan_to_num(wide, nan=math.inf), ~unknown))
        return np.asarray(order)

    def shown(self) -> list[int]:
        """Return the places of the arms that tables and charts show: all in order, or the worst if there are many."""
        if len(self.arms) <= tables.MOST_ROWS:
            return list(range(len(self.arms)))
        return [int(k) for k in self.worst_first()[: tables.MOST_ROWS]]

    # ---- all arms together

    @property
    def samples(self) -> int:
        """How many samples are in."""
        return int(self.counts.array.sum())

    @property
    def spent(self) -> float:
        return self.snapshot.bill if self.objective.costs is not None else int(self.snapshot.bill)

    @property
    def price(self) -> float:
        """
        The cost of the samples taken, at the mean cost of each arm; their number without costs.

        Other ways of sampling are compared at this price: their samples would have been declined as often.
        """
        if self.objective.costs is None:
            return self.samples
        return math.fsum(self.objective.cost(len(self.arms)) * self.counts.array)

    @property
    def loss(self) -> float:
        # NaN if that of any arm with a weight is.
        return self.objective.loss(self.losses.array)

    @property
    def oracle_loss(self) -> float:
        if not self.samples:
            return math.nan
        if self.populations is not None:
            return finite.oracle_loss(self.objective, self.variances.array, self.populations, self.price)
        if self.objective.plain:
            return float(self.variances.array.sum()) / self.samples
        variances = np.where(self.objective.weight(len(self.arms)) > 0, self.variances.array, 0.0)
        return self.objective.optimal_loss(variances, self.price)

    @property
    def regret(self) -> float:
        return self.loss - self.oracle_loss if self.loss < math.inf else self.loss

    @property
    def uniform_loss(self) -> float:
        if not self.samples:
            return math.nan
        each = math.fsum(self.objective.cost(len(self.arms)))
        if self.populations is not None:
            return self.objective.loss(self._losses_of(np.full(len(self.arms), self.price / each)))
        return self.objective.loss(self.variances.array) * each / self.price

    @cached_property
    def baseline(self) -> Baseline | None:
        return baseline(self)

    @property
    def proportional_loss(self) -> float:
        if self.objective.shares is None or not self.samples:
            return math.nan
        shares = np.array(self.objective.shares)
        pulls = shares * self.price / math.fsum(shares * self.objective.cost(len(self.arms)))
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.objective.loss(self._losses_of(pulls))

    def _losses_of(self, pulls: Floats) -> Floats:
        """Return the arms' losses with these numbers of samples, if the variances are those observed."""
        if self.populations is not None:
            return finite.losses(self.variances.array, pulls, self.populations)
        return np.asarray(self.variances.array / pulls)

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
        level = self.level if level is None else probability("level", level)
        share = self._shares(shares, among)
        counted = share > 0  # the mean of a stratum with a share of 0 may be unknown
        value = float(share[counted] @ self.corrected_means.array[counted])
        parts = (share * self.errors_of_strata)[counted]
        known_exactly = not parts.any() and not equal_samples(self)[counted].any()
        error = math.hypot(*parts) if parts.any() or known_exactly else math.nan
        half = error and student_quantile(_freedom(parts, self.counts.array[counted]), 1 - level) * error
        if kind not in (None, "fixed-n"):
            places = np.flatnonzero(counted)
            low, high = contrasts.bounds(self, places[None], share[None, places], 1 - level, kind)
            return Combined(value, error, float(low[0]), float(high[0]))
        if level == self.level and kind is None:
            decided = sums.the_one_asked(self, np.arange(len(share)), share)
            if decided is not None and decided.kind != "fixed-width":
                return Combined(value, error, decided.low, decided.high)
            half = half if decided is None else max(half, decided.half_width)
        return Combined(value, error, value - half, value + half)

    def _shares(self, given: Iterable[float] | Mapping[Any, float] | None, among: Iterable[Hashable] | None) -> Floats:
        """Return the shares of strata in the arms' order, as `combine` takes them."""
        known = self.objective.shares
        if given is not None:
            known = shares_of_some(self.arms, given)
        if known is None:
            raise ValueError("combine needs the strata's shares, as in combine({'city': 0.7, 'country': 0.3})")
        share = np.array(known)
        if among is None:
            return share
        if not several(among):
            raise TypeError(f"among must be a list of arms, got {shown(among)}")
        places = [self.names.find(arm) for arm in among]
        part = np.where(np.isin(np.arange(len(share)), places), share, 0.0)
        if len(set(places)) < len(places):
            twice = next(place for i, place in enumerate(places) if place in places[:i])
            raise ValueError(f"among must name each arm once, got {shown(self.arms[twice])} twice")
        if not part.any():
            raise ValueError(
                f"among must have an arm with a positive share, got {shown([self.arms[k] for k in places])}"
            )
        return np.asarray(part / math.fsum(part))

    @cached_property
    def errors_of_strata(self) -> Floats:
        """The standard errors of the strata for `combine`: of binary ones, not 0 where all samples are equal."""
        if self.sequences.support != "binary":
            return self.errors
        counts, means, equal = self.counts.array.astype(float), self.means.array, equal_samples(self)
        sizes = np.full(len(counts), math.inf) if self.populations is None else self.populations
        with np.errstate(divide="ignore", invalid="ignore"):  # of arms without samples
            likely = (counts * means + 2) / (counts + 4)
            losses = finite.losses(likely * (1 - likely), counts, sizes)
        return np.where(equal, np.sqrt(losses), self.errors)

    @property
    def combined_kind(self) -> Kind:
        """The kind of the interval of `combine()`: "fixed-n" for one look, or the kind that decided when to stop."""
        asked = None if self.precision is None else self.precision.sums
        if asked is None or not asked.combined:
            return "fixed-n"
        return "fixed-width" if self.sums_found.fixed[0] else self.interval_kind

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
        return self._intervals if level is None and kind is None else self.intervals_of(None, level, kind)

    @cached_property
    def _intervals(self) -> IntervalsByArm:
        return self.intervals_of(None)

    def intervals_of(
        self, places: Sequence[int] | None, level: float | None = None, kind: Kind | None = None
    ) -> IntervalsByArm:
        """Return the intervals of the arms at these places, which hold for all arms of the result at once."""
        level = self.level if level is None else probability("level", level)
        sequences = self.sequences_of(kind)
        low, high = self._bounds(sequences, places, level)
        with np.errstate(invalid="ignore"):
            half = (high - low) / 2
        if kind is None:
            low, high, half = self._widen(sequences, places, level, low, high, half)
        fixed = None
        if kind is None and stopping.by_width(self):
            low, high, fixed = stopping.ends(self, places, low, high, level)
            with np.errstate(invalid="ignore"):
                half = (high - low) / 2
        names, means = self.names, self.means.array
        if places is not None:
            names, means = Names.of([self.arms[k] for k in places]), means[np.asarray(places)]
        return IntervalsByArm(names, means, low, high, half, sequences.kind, level, fixed)

    @property
    def interval_kind(self) -> Kind:
        """The kind of the confidence sequences."""
        return self.sequences.kind

    @property
    def sequences(self) -> Intervals:
        """The confidence sequences of the arms."""
        return self.sequences_of(None)

    def sequences_of(self, kind: Kind | None) -> Intervals:
        """Return the sequences of a kind, or of the default."""
        evidence = self.snapshot.evidence
        if self.populations is not None and (kind is not None or evidence is not None):
            kind = finite.interval_kind(kind, "binary" if self.recognised else self.support)
        if evidence is not None:
            return evidence.intervals(kind)
        if kind not in (None, "fixed-n"):
            raise ValueError(f"kind must be 'fixed-n' for a result that was made of moments alone, got {kind!r}")
        return Intervals(len(self.arms), self.support, "fixed-n")

    def _bounds(self, sequences: Intervals, places: Sequence[int] | None, level: float) -> tuple[Floats, Floats]:
        """Return the ends of the intervals of some arms, None for all, as their kind has them."""
        return self.bounds_of(sequences, places, (1 - level) / len(self.arms))

    def bounds_of(self, sequences: Intervals, places: Sequence[int] | None, alpha: float) -> tuple[Floats, Floats]:
        """Return the ends of the intervals of some arms, None for all, each at level 1 - alpha."""
        return self._bounds_at(sequences, self.state_of(sequences.kind, places), places, alpha)

    def _bounds_at(
        self, sequences: Intervals, state: Floats, places: Sequence[int] | None, alpha: float
    ) -> tuple[Floats, Floats]:
        """Return the ends of the intervals of some arms, None for all, from the rows of their state."""
        low, high = sequences.bounds_at(state, alpha)
        where = np.arange(len(self.arms)) if places is None else np.asarray(places)
        if self.populations is not None:
            counts, means, sizes = self.counts.array[where], self.means.array[where], self.populations[where]
            low, high = finite.bounds(sequences, state, alpha, counts, means, sizes, np.array([low, high]))
        few = self.too_few(sequences, state, where, alpha)
        return np.where(few, -math.inf, low), np.where(few, math.inf, high)

    def too_few(self, sequences: Intervals, state: Floats, places: Ints, alpha: float) -> Bools:
        """Return which of some arms have so few samples that nobody knows yet whether all are 0 or 1, as these are."""
        if not self.recognised or sequences.kind == "fixed-n":
            return np.zeros(len(places), bool)
        sizes = math.inf if self.populations is None else self.populations[places]
        return np.asarray(state[:, asymptotic.COUNT] < np.minimum(self.first_interval(alpha), sizes))

    def first_interval(self, alpha: float) -> int:
        """
        Return with how many samples of an arm its interval at level 1 - alpha begins, if it rests on the samples alone.

        That is so where no support was declared. As long as all samples of each arm are equal, START are needed.
        """
        if not (self.variances.array > 0).any():
            return START
        return int(min(START, t_mixture.first(alpha)))

    def pools(self, sequences: Intervals, places: Sequence[int] | None) -> tuple[Intervals, Floats] | None:
        """
        Return the bets on finite populations that intervals of sums are made of, and the rows of some arms' state.

        None without populations, and for sequences of another kind. `places` is None for all arms.
        """
        evidence = self.snapshot.evidence
        if self.populations is None or sequences.kind != "betting" or evidence is None:
            return None
        bets: Bets = "pools" if sequences.support == "binary" else "betting"
        return evidence.intervals(bets), self.state_of(bets, places)

    def state_of(self, kind: Bets, places: Sequence[int] | None) -> Floats:
        """Return the rows of some arms, None for all, of the state of a kind."""
        evidence = self.snapshot.evidence
        if kind != "fixed-n" and evidence is not None:
            return evidence.state(kind) if places is None else evidence.state_of(kind, places)
        means = np.where(self.counts.array >= 1, self.means.array, 0.0)
        state = np.array([self.counts.array, means, self.snapshot.m2s, np.zeros(len(means))]).T
        return state if places is None else state[np.asarray(places)]

    def _widen(
        self, sequences: Intervals, places: Sequence[int] | None, level: float, low: Floats, high: Floats, half: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Widen the intervals of arms whose samples are all equal, as `intervals` describes; ends and half-widths."""
        where = slice(None) if places is None else np.asarray(places)
        counts, variances = self.counts.array, self.variances.array
        equal = variances[where] == 0
        if self.populations is not None:
            equal &= counts[where] < self.populations[where]
        if sequences.kind not in ("asymptotic", "fixed-n") or not equal.any():
            return low, high, half
        most = int(np.nanargmax(variances))
        if not variances[most] > 0:
            return low, high, half
        its_low, its_high = (low[most], high[most]) if places is None else self._bounds(sequences, [most], level)
        with np.errstate(divide="ignore", invalid="ignore"):
            # About the half-width of the most varying arm, had it as many samples.
            scaled = (its_high - its_low) / 2 * np.sqrt(counts[most] / counts[where])
            few = equal & ~np.isfinite(half)  # before START; these begin with the interval of that variance
            if few.any():
                state = self.state_of(sequences.kind, places)
                varied = asymptotic.with_deviations(state, np.full(len(state), math.sqrt(variances[most])))
                below, above = self._bounds_at(sequences, varied, places, (1 - level) / len(self.arms))
                scaled = np.where(few, np.maximum(scaled, (above - below) / 2), scaled)
            wider = equal & np.where(few, np.isfinite(scaled), scaled > half)
            centre = np.where(wider, np.where(few, self.means.array[where], (low + high) / 2), 0.0)
        return (
            np.where(wider, centre - scaled, low),
            np.where(wider, centre + scaled, high),
            np.where(wider, scaled, half),
        )

    @cached_property
    def targets(self) -> Floats:
        """The half-widths that were asked for, in the arms' order; NaN if none was asked of arms."""
        if self.precision is None or self.precision.sums is not None:
            return np.full(len(self.arms), math.nan)
        return self.precision.targets(self.means.array)

    @cached_property
    def reached_by_arm(self) -> Bools:
        """Which arms' intervals lie within their mean ± the precision, in the arms' order; none without one."""
        return stopping.reached(self)

    @cached_property
    def sums_found(self) -> sums.Found:
        """What is known of the weighted sums of means that the precision is asked of, as far as it decides."""
        assert self.precision is not None
        assert self.precision.sums is not None
        return sums.look(self, self.precision.sums)

    def contrasts(self) -> list[Contrast]:
        """
        Return the weighted sums of means that the precision was asked of, which hold simultaneously.

        Each is of the kind that decided: "fixed-width" where that interval was narrow enough, else a confidence
        sequence. Empty where the precision was asked of the arms' means.
        """
        if self.precision is None or self.precision.sums is None:
            return []
        return sums.contrasts_of(self, self.precision.sums)

    @property
    def reached(self) -> bool | None:
        return None if self.precision is None else bool(self.reached_by_arm.all())

    @cached_property
    def to_come(self) -> ToCome | None:
        """Draws of what the precision still needs; None where that cannot be said."""
        return to_come(self)

    @cached_property
    def left(self) -> Left | None:
        return left(self)

    @cached_property
    def samples_left_by_arm(self) -> Floats:
        """About how many more samples each arm needs for the precision, in the arms' order; infinite if unknown."""
        return by_arm(self)

    @property
    def samples_left(self) -> float | None:
        """About how many more samples the precision needs: infinite if too little is known, None without one."""
        if self.precision is None:
            return None
        return math.inf if self.left is None else self.left.samples

    @property
    def certificate(self) -> Certificate:
        """How precise the result is, what other ways of sampling would have had, and what may be wrong with it."""
        return certify(self, summary.even_split(self))

    # ---- comparisons

    def difference(self, a: Hashable, b: Hashable, level: float | None = None, *, kind: Kind | None = None) -> Contrast:
        """
        Return the mean of `a` minus the mean of `b`, with its standard error and its interval.

        The interval is that of one confidence sequence for the difference itself, and holds at this level for a pair
        that was chosen before seeing the results, at any time and whatever the strategy did. For all pairs at once, or
        a pair that was chosen by its results, use `compare`.
        """
        if self.names.find(a) == self.names.find(b):
            level = self.level if level is None else probability("level", level)
            return Contrast(0.0, 0.0, 0.0, 0.0, level, self.sequences_of(kind).kind, {a: 0.0})
        return self.contrast({a: 1.0, b: -1.0}, level, kind=kind)

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
        level = self.level if level is None else probability("level", level)
        given = labelled(weights)
        if given is None:
            raise TypeError(f"weights must be a mapping from arms to numbers, got {shown(weights)}")
        by_place = {self.names.find(arm): number("a weight", weight) for arm, weight in given.items()}
        c = np.array(list(by_place.values()))
        if not np.isfinite(c).all() or not c.any():
            raise ValueError(f"weights must be finite and not all zero, got {shown(weights)}")
        places, c = np.array(list(by_place))[c != 0], c[c != 0]
        asked = sums.the_one_asked(self, places, c) if level == self.level and kind is None else None
        if asked is not None:
            return asked
        low, high = contrasts.bounds(self, places[None], c[None], 1 - level, kind)
        return Contrast(
            float(c @ self.means.array[places]),
            math.hypot(*(c * self.standard_errors.array[places])),
            float(low[0]),
            float(high[0]),
            level,
            self.sequences_of(kind).kind,
            {plain_name(self.arms[k]): float(each) for k, each in zip(places, c, strict=True)},
        )

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
        level = self.level if level is None else probability("level", level)
        if to is MISSING:
            first, second = contrasts.all_pairs(self.means.array)
        else:
            control = self.names.find(to)
            first = np.flatnonzero(np.arange(len(self.arms)) != control)
            second = np.full(len(first), control)
        known = sums.pairs(self, first, second) if level == self.level and kind is None else None
        return contrasts.compare(self, first, second, level, to is not MISSING, known, kind)

    # ---- for programs

    def to_dict(self) -> dict[str, Any]:
        """
        Return everything as plain numbers, by arm where there is one for each; None for what is unknown or infinite.

        `intervals` has a pair [low, high] for each arm, at `interval_level` for all of them at once, of the kind that
        `interval_kinds` says; `interval_kind` is "fixed-width" if all are, else that of the others. `reached`,
        `samples_left` and `left` are None where no precision was asked for.
        """
        intervals, objective = self.intervals(), self.objective
        known: dict[str, Any] = {"strategy": self.strategy}
        known |= {name: dict(getattr(self, name)) for name in _BY_ARM}
        known |= {"intervals": dict(intervals), "interval_kind": intervals.kind, "interval_level": intervals.level}
        known["interval_kinds"] = dict(zip(self.arms, intervals.kinds, strict=True))
        alone = ("samples", "loss", "oracle_loss", "regret", "uniform_loss")
        known |= {name: getattr(self, name) for name in (*alone, "worst", "reached", "samples_left")}
        known |= {
            name: None if found is None else found._asdict()
            for name, found in (("left", self.left), ("baseline", self.baseline))
        }
        if not objective.plain:
            known["p"] = "inf" if objective.p == math.inf else objective.p  # JSON has no infinity
            given = {name: getattr(objective, name) for name in _OF_OBJECTIVE}
            known |= {
                name: dict(zip(self.arms, numbers, strict=True))
                for name, numbers in given.items()
                if numbers is not None
            }
        if self.costs is not None:
            known |= {"costs": dict(self.costs), "spent": self.spent, "cost_unit": self.cost_unit or None}
        if self.precision is not None and self.precision.sums is not None and not self.precision.sums.combined:
            known["contrasts"] = [each.to_dict() for each in self.contrasts()]
        if objective.shares is not None:
            combined = self.combine()._asdict() | {"level": self.level, "kind": self.combined_kind}
            known |= {"combined": combined, "proportional_loss": self.proportional_loss}
        worst = plain_name(self.worst)  # a tuple stays one
        return {**tables.json_ready(known), "worst": worst}

    def to_json(self) -> str:
        """
        Return `to_dict` as a JSON object, where arms' names are strings.

        Where two names have the same text, as 1 and "1" have, all are written as Python would: 1 and '1'.
        """
        known = self.to_dict()
        names = list(known["means"])
        by_arm = (*_BY_ARM, *_OF_OBJECTIVE, "costs", "intervals", "interval_kinds")
        text = dict(zip(names, texts(names), strict=True))
        written = {
            name: {text[arm]: each for arm, each in value.items()} if name in by_arm else value
            for name, value in known.items()
        }
        return json.dumps(written | {"worst": text[known["worst"]]}, ensure_ascii=False)

    def to_frame(self, library: tables.FrameLibrary | None = None) -> pandas.DataFrame | polars.DataFrame:
        """
        Return a table with a row for each arm, as a pandas or polars DataFrame: by default whichever is installed.

        `low` and `high` are the ends of `intervals()`, infinite, or those of the support, where too little is known;
        `interval_kind` and `interval_level`, which is the same in every row, say what they are. With costs, `cost` is
        the mean cost of a sample.
        """
        intervals = self.intervals()
        columns: dict[str, Any] = {
            "arm": list(map(plain_name, self.arms)),
            "count": self.counts.array,
            "declined": self.declined.array,
            "mean": self.means.array,
            "corrected_mean": self.corrected_means.array,
            "bias": self.biases.array,
            "variance": self.variances.array,
            "standard_error": self.standard_errors.array,
            "plain_error": self.plain_errors.array,
            "loss": self.losses.array,
            "low": intervals.low,
            "high": intervals.high,
            "interval_kind": list(intervals.kinds),
            "interval_level": [intervals.level] * len(self.arms),
        }
        if self.costs is not None:
            columns["cost"] = self.costs.array
        return tables.frame(columns, library)

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
        places = self.shown()
        ends = self.intervals_shown(places)
        rows = [
            {"arm": text_of(self.arms[k]), "mean": float(self.means.array[k]), "low": float(low), "high": float(high)}
            for k, low, high in zip(places, ends.low, ends.high, strict=True)
        ]
        axis = x_title or f"mean, with its {tables.percent(self.level)} interval"
        return chart.intervals(tables.json_ready(rows), x_title=axis, title=title, width=width)

    @property
    def verdict(self) -> str:
        """The result in one line."""
        return summary.verdict(self)

    def remarks(self) -> list[str]:
        """Return at most three short remarks that help to judge the result."""
        return summary.remarks(self)

    def rows(self) -> list[list[str]]:
        """Return the printed table: a title row, and a row of texts for each arm that is shown."""
        places = self.shown()
        return summary.rows(self, places, self.intervals_shown(places))

    def __getstate__(self) -> dict[str, Any]:
        # The samples stay behind, and the replay needs them.
        self.adaptivity  # noqa: B018
        return self.__dict__

    def __repr__(self) -> str:
        contrasts = summary.contrast_rows(self)
        lines = [self.verdict, *([tables.text(contrasts)] if contrasts else [])]
        return "\n".join([*lines, tables.text(self.rows(), [*summary.left_out(self), *self.remarks()])])

    def _repr_html_(self) -> str:
        contrasts, notes = summary.contrast_rows(self), [*summary.left_out(self), *self.remarks()]
        if not contrasts:
            return tables.html(self.rows(), notes, before=[self.verdict])
        return tables.html(contrasts, before=[self.verdict]) + tables.html(self.rows(), notes)

    def intervals_shown(self, places: list[int]) -> IntervalsByArm:
        """Return the intervals of the arms that tables and charts show."""
        # Of very many arms, not all need be followed for a few lines.
        return self.intervals() if len(places) == len(self.arms) else self.intervals_of(places)


def _freedom(errors: Floats, counts: Floats) -> float:
    """Return the degrees of freedom of the mean of strata with these errors; 1 for less than 2."""
    varies = errors > 0  # of the others, one sample may be all there is
    found = min(float(freedom(errors[varies], counts[varies])), 1e6) if varies.any() else 1e6
    return found if found >= 2 else 1.0
