"""How precise a result is, in numbers and in words, and what may be wrong with it."""

from __future__ import annotations

import html
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from equipoise.base.arrays import Bools, Floats
from equipoise.base.inputs import listed, named, spoken
from equipoise.base.tables import PLAIN, Unit, amount, count, percent
from equipoise.inference import losses, skewness
from equipoise.inference.arm_intervals import intervals
from equipoise.inference.baseline import Baseline, baseline
from equipoise.inference.errors import standard_errors
from equipoise.inference.known import Known
from equipoise.inference.ranking import intervals_shown, least_precise, shown
from equipoise.inference.replay import adaptivity
from equipoise.inference.sequence_bounds import first_interval
from equipoise.inference.strata import Combined, combine
from equipoise.intervals import Kind, describe
from equipoise.intervals.asymptotic import COUNT
from equipoise.ledger.evidence import Answered
from equipoise.result.by_arm import MOST_NAMED

# Slow answers are said to differ from fast ones below this probability, for all arms at once.
SLOW: Final = 0.001
# A bias is mentioned from this share of its standard error on.
_BIAS: Final = 0.05
# An arm has too few samples for its skewness if the square of that is more than this for each: an exponential one below
# 400 (docs/explanation/intervals.md has how often its intervals miss).
_SKEWED: Final = 0.01
# What makes an arm the least precise where errors have weights.
_WEIGHTED: Final = " by weighted error"
# As many arms are named whose tickets were declined.
_MOST_DECLINED: Final = 5


def too_few(arm: Hashable, samples: int) -> str:
    """Return the sentence about an arm that has no standard error yet."""
    return f"{named(arm)} has {count(samples, 'sample')}; at least 2 are needed for a standard error."


def with_interval(known: Known) -> Bools:
    """Return which arms have an interval, in the arms' order."""
    return np.asarray(np.isfinite(intervals(known).half_widths))


def no_interval(known: Known) -> str:
    """Return the sentence about arms that have no interval yet; empty where all have one."""
    places = np.flatnonzero(~with_interval(known))
    if not places.size:
        return ""
    counts, first = known.counts[places], _first(known)
    begin = []
    if first is not None:
        # Those from elsewhere, and those that came before an earlier one was answered, do not count.
        counted = known.state_of(known.interval_kind, places.tolist())[:, COUNT].astype(np.int64)
        which = "" if (counts < first).all() or (counted == counts).all() else " in the order of asking"
        # One whose samples are all equal takes the width of the most varying arm, which has no interval either.
        unless = "" if (counted < first).all() else ", unless all are equal"
        counts, begin = counted if which else counts, [f"intervals begin at {first} samples of an arm{which}{unless}"]
    interval = f"{percent(known.level)} interval yet"
    arms = len(known.arms)
    if len(places) > MOST_NAMED or len(places) == arms > 1:
        whose = "any arm" if len(places) == arms else f"{len(places):,} of {arms:,} arms"
        return f"No {interval} for {whose}{''.join(f' ({each})' for each in begin)}."
    *others, last = (f"{each:,}" for each in counts.tolist())
    has = f"they have {', '.join(others)} and {last} samples" if others else f"it has {count(int(counts[0]), 'sample')}"
    return f"No {interval} for {spoken([known.arms[k] for k in places.tolist()])} ({'; '.join([has, *begin])})."


def _first(known: Known) -> int | None:
    """Return with how many samples the interval of an arm begins; None if that depends on more than their number."""
    if known.interval_kind != "asymptotic" and not known.recognised:
        return None
    return first_interval(known, (1 - known.level) / len(known.arms))


def largest_error(known: Known, unit: Unit) -> str:
    """Return the sentence about the largest standard error, relative to targets or weighted; empty if none is known."""
    return _largest_error(*_with_largest_error(known), ranked_by(known), unit)


def _with_largest_error(known: Known) -> tuple[Hashable, float]:
    """Return the arm with the largest standard error: relative to targets, or weighted; and its standard error."""
    weight = known.objective.weight(len(known.arms))
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = standard_errors(known) * (1 / known.targets if known.by_target else np.sqrt(weight))
    k = int(np.nan_to_num(errors, nan=-1.0).argmax())
    return known.arms[k], float(standard_errors(known)[k])


def _largest_error(arm: Hashable, error: float, by: str, unit: Unit) -> str:
    if math.isnan(error):
        return ""
    what = "Largest weighted standard error" if by == _WEIGHTED else f"Largest standard error{by}"
    return f"{what}: {named(arm)}, {unit.size(error)}."


def ranked_by(known: Known) -> str:
    """Return what makes an arm the least precise, if not its error alone."""
    if known.by_precision:
        return " relative to its target"
    return "" if known.objective.weights is None else _WEIGHTED


def without_error(known: Known) -> str:
    """Return the sentence about a result in which nothing varies or all is known; empty for any other."""
    if known.loss != 0:
        return ""
    if known.used_up.all():
        return "Every mean is known exactly."
    nothing_varies = bool((known.variances == 0).all())
    return "All samples of each arm are equal." if nothing_varies and not intervals(known).half_widths.any() else ""


def declines(known: Known) -> tuple[tuple[Hashable, float], ...]:
    """Return the arms some of whose tickets were declined, with the share of those, the highest first."""
    shares = known.declined_shares
    order = np.argsort(-shares, kind="stable")[: np.count_nonzero(shares)]
    return tuple((known.arms[k], float(shares[k])) for k in order.tolist())


def who_declined(shares: Sequence[tuple[Hashable, float]]) -> str:
    """Return the sentence about arms whose tickets were declined, given their shares; empty where there is none."""
    if not shares:
        return ""
    some = ", ".join(f"{named(arm)} {_percent(share)}" for arm, share in shares[:_MOST_DECLINED])
    others = len(shares) - _MOST_DECLINED
    more = f" and {count(others, 'other arm')}" if others > 0 else ""
    return f"Declined: {some}{more}; non-response can bias a mean."


def heavy(known: Known) -> tuple[Hashable, ...]:
    """Return the arms whose intervals rest on a variance that few samples make."""
    evidence = known.evidence
    if evidence is None or known.interval_kind != "asymptotic":
        return ()
    return tuple(known.arms[k] for k in np.flatnonzero(evidence.heavy & ~known.used_up).tolist())


def heavy_tails(arms: Sequence[Hashable]) -> str:
    """Return the sentence about arms whose variance few samples make; empty where there is none."""
    if not arms:
        return ""
    whose = "its interval" if len(arms) == 1 else "their intervals"
    return (
        f"{listed(arms)}: a few extreme samples make much of the variance, and {whose} may be too narrow; take more "
        "samples, or estimate a trimmed mean or the mean of logarithms."
    )


def skewed(known: Known) -> tuple[Hashable, ...]:
    """Return the arms, of those shown, whose confidence sequences rest on too few samples for how skewed these are."""
    evidence, places = known.evidence, np.array(shown(known))
    if evidence is None or known.interval_kind != "asymptotic" or known.recognised:
        return ()
    ends, counts, seen = intervals_shown(known), known.counts[places], evidence.skewness[places]
    with np.errstate(divide="ignore", invalid="ignore"):
        clear = np.abs(seen) > 3 * np.sqrt(6 / counts)
        few = np.square(skewness.unfolded(seen, counts)) > _SKEWED * counts
    found = clear & few & np.isfinite(ends.half_widths) & ~ends.fixed & ~(evidence.heavy | known.used_up)[places]
    return tuple(known.arms[k] for k in places[found].tolist())


def too_narrow(arms: Sequence[Hashable]) -> str:
    """Return the sentence about skewed arms; empty where there is none."""
    if not arms:
        return ""
    whose = spoken(arms) if len(arms) <= MOST_NAMED else f"{len(arms):,} arms"
    interval = "its interval" if len(arms) == 1 else "their intervals"
    return f"The samples of {whose} are skewed, and {interval} may be too narrow."


def _percent(share: float) -> str:
    """Return a share in percent: to one digit below 10%, and never 0% or 100% where it is not."""
    if share == 1:
        return "100%"
    return "<0.1%" if share < 0.0005 else f"{100 * share:.1f}%" if share < 0.0995 or share > 0.995 else f"{share:.0%}"


@dataclass(frozen=True, repr=False)
class Certificate:
    """
    How precise a result is, what other ways of sampling would have had, and what may be wrong with it.

    Attributes
    ----------
    samples
        How many are in.
    worst, count, margin, standard_error
        The least precise arm (`Result.worst`); its samples; the margin of its interval, which is infinite where there
        are too few; its standard error, which is NaN where that is not known.
    largest_error
        The arm with the largest standard error, relative to targets or weighted, and its standard error: what can be
        said while the least precise arm has no interval.
    target
        The half-width that was asked for that arm, where errors are judged relative to it; else NaN.
    kind, level, promise
        Of that interval: it holds for all arms at once at this level.
    loss, uniform_loss, oracle_loss
        What was minimised (by default the worst arm's squared error); what an even split of the same budget would have
        had; and what the best allocation would have had. All are based on the observed variances, as if the counts had
        been fixed in advance; `standard_error` accounts for how they were chosen.
    baseline, even_split
        What an even split would have needed for the same standard error or precision, and the sentence about it, which
        is empty where that is not clearly more than were taken.
    combined, proportional_loss
        Where the arms are strata: their common mean with its standard error and interval; and what sampling in
        proportion to the shares would have had. None and NaN where they are not strata.
    skewed, bias, bias_in_errors
        The arm whose mean adaptive sampling has shifted most relative to its standard error, by about how much
        (`Result.biases`), and the same over the standard error. An arm whose early samples vary little by chance is
        sampled less, and in a skewed arm those are the low ones. None and 0 where no arm is clearly skewed, or what was
        sampled did not depend on the samples.
    answered
        How many samples were asked for, given up and never answered, are in flight, and were declined. None where
        nobody counted.
    declined
        The arms some of whose tickets were declined, and the share of those among their tickets that were answered or
        declined; the highest first.
    slow
        The arms whose slow answers differ from their fast ones, by a rank test at p < 0.001 for all arms at once, and
        of which so many answers are in flight or were given up that this may shift the mean by 5% of its standard error
        or more; None where it is not known how long samples took.
    heavy
        The arms a few of whose samples make much of the variance that their intervals rest on.
    squared
        Whether the loss is the largest squared error.
    by
        What makes an arm the least precise, in words, if not its error alone.
    no_interval
        A sentence about the arms that have no interval yet, where the least precise arm, or some stratum, has none.
    equal
        The arms whose samples are all equal, so that no standard error can be estimated.
    without_error
        A sentence, where nothing varies or every mean is known exactly.
    """

    samples: int
    worst: Hashable
    count: int
    margin: float
    standard_error: float
    largest_error: tuple[Hashable, float]
    target: float
    kind: Kind
    level: float
    loss: float
    uniform_loss: float
    oracle_loss: float
    skewed: Hashable | None
    bias: float
    bias_in_errors: float
    answered: Answered | None
    slow: tuple[Hashable, ...] | None
    declined: tuple[tuple[Hashable, float], ...] = ()
    heavy: tuple[Hashable, ...] = ()
    baseline: Baseline | None = None
    even_split: str = ""
    combined: Combined | None = None
    proportional_loss: float = math.nan
    squared: bool = True
    by: str = ""
    no_interval: str = ""
    equal: tuple[Hashable, ...] = ()
    without_error: str = ""

    @property
    def promise(self) -> str:
        """What the intervals promise, in one sentence."""
        return describe(self.kind, self.level)

    def sentences(self, unit: Unit = PLAIN) -> list[str]:
        """Return what there is to say, a sentence or two at a time."""
        which = self._least_precise(unit)
        first = (which, self._best(unit)) if self.combined is None else (self._strata(unit), which)
        silent = (self._unanswered(), who_declined(self.declined), self._slow())
        shape = (self._bias(unit), heavy_tails(self.heavy))
        return list(filter(None, (*first, self._equal(), self.even_split, *shape, *silent)))

    def __str__(self) -> str:
        return " ".join(self.sentences())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self.sentences())

    def _least_precise(self, unit: Unit) -> str:
        if self.count < 2:
            return too_few(self.worst, self.count)
        if self.without_error:
            return self.without_error
        target = f"; target {unit.half(self.target, 3)}" if math.isfinite(self.target) else ""
        known = [] if math.isnan(self.standard_error) else [f"standard error {unit.size(self.standard_error)}"]
        which = f"Least precise{self.by}: {named(self.worst)},"
        if self.combined is not None:
            which = f"Stratum {named(self.worst).removeprefix('arm ')} contributes most to this error:"
        if self.no_interval and self.combined is not None:
            return " ".join([*(f"{which} {error}." for error in known), self.no_interval])
        if self.no_interval:
            return f"{self.no_interval} {_largest_error(*self.largest_error, self.by, unit)}".rstrip()
        margin = f"{unit.half(self.margin, 3)} ({percent(self.level)}{target})"
        return f"{which} {', '.join([margin, *known])}. {self.promise}"

    def _equal(self) -> str:
        if not self.equal or self.without_error:
            return ""
        whose = spoken(self.equal) if len(self.equal) <= MOST_NAMED else f"each of {len(self.equal):,} arms"
        return f"All samples of {whose} are equal, so no standard error can be estimated."

    def _strata(self, unit: Unit) -> str:
        """Return the combined mean of the strata, and the errors that other ways of sampling would have had."""
        if self.combined is None or math.isnan(self.loss):
            return ""
        others = {
            "equal sample sizes": self.uniform_loss,
            "proportional allocation": self.proportional_loss,
            "the best allocation": self.oracle_loss,
        }
        known = [f"{unit.size(math.sqrt(loss))} with {how}" for how, loss in others.items() if not math.isnan(loss)]
        value = f"{amount(unit.factor * self.combined.value)}{unit.sign}"
        return (
            f"The combined mean of the strata is {value}, with a standard error of {unit.size(self.combined.error)}. "
            "Based on the observed variances, the same budget would have given "
            f"{', '.join(known[:-1])} and {known[-1]}."
        )

    def _best(self, unit: Unit) -> str:
        """Return the loss, and that of the best allocation."""
        if self.without_error or not self.loss > 0 or math.isfinite(self.target):  # relative to targets, it has no unit
            return ""
        what, root = ("largest standard error", math.sqrt) if self.squared else ("loss", float)
        of = unit if self.squared else PLAIN
        best = of.size(root(self.oracle_loss))
        than = "" if math.isnan(self.oracle_loss) else f"; the best allocation would have given {best}"
        return f"Ignoring adaptive sampling, the {what} is {of.size(root(self.loss))}{than}."

    def _bias(self, unit: Unit) -> str:
        if self.skewed is None or abs(self.bias_in_errors) < _BIAS:
            return ""
        return (
            f"The samples of {named(self.skewed)} are skewed; adaptive sampling may have shifted its mean by about "
            f"{unit.size(self.bias, 2)} ({abs(self.bias_in_errors):.0%} of its standard error)."
        )

    def _unanswered(self) -> str:
        if self.answered is None or not self.answered.given_up:
            return ""
        asked = self.answered.asked - self.answered.withdrawn
        return (
            f"Of {asked:,} samples asked for, {self.answered.given_up:,} ({self.answered.share:.1%}) "
            "were never answered; the estimates cover only the answered samples."
        )

    def _slow(self) -> str:
        if not self.slow:
            return ""
        return (
            f"Warning: slow answers differ from fast ones (rank test, p < {SLOW:g}) in {listed(self.slow)}, and some "
            "answers are in flight or were given up: the means may be biased toward the fast ones."
        )


def certify(known: Known, even_split: str = "") -> Certificate:
    """
    Return the certificate of what is known, at its level.

    Parameters
    ----------
    known
        What it is about.
    even_split
        The sentence about what an even split would have needed.
    """
    k = least_precise(known)
    interval = intervals(known, [k])
    margin = float(interval.margins[0])
    unknown = bool(np.isnan(known.weighted_losses).any())
    missing = not unknown and (known.objective.shares is not None or not math.isfinite(margin))
    errors, evidence = standard_errors(known), known.evidence
    bias = _biases(known)
    slow: tuple[Hashable, ...] | None = None
    if evidence is not None and evidence.slow is not None and evidence.slow_bias is not None:
        tested = int(np.isfinite(evidence.slow).sum())
        # If hardly any answer is missing, it makes no difference to the mean which ones were slow.
        with np.errstate(invalid="ignore"):
            matters = np.abs(evidence.slow_bias) > _BIAS * np.nan_to_num(errors)
            slow = tuple(known.arms[j] for j in np.flatnonzero((evidence.slow * tested < SLOW) & matters).tolist())
    with np.errstate(divide="ignore", invalid="ignore"):
        in_errors = np.nan_to_num(bias / errors, posinf=0.0, neginf=0.0)
    most = int(np.abs(in_errors).argmax())
    return Certificate(
        samples=known.samples,
        worst=known.arms[k],
        count=int(known.counts[k]),
        margin=margin,
        standard_error=float(errors[k]),
        largest_error=_with_largest_error(known),
        target=float(known.targets[k]) if known.by_precision else math.nan,
        kind="fixed-width" if interval.fixed[0] else interval.kind,
        level=interval.level,
        loss=known.loss,
        uniform_loss=losses.uniform_loss(known),
        oracle_loss=losses.oracle_loss(known),
        skewed=known.arms[most] if in_errors[most] != 0 else None,
        bias=float(bias[most]),
        bias_in_errors=float(in_errors[most]),
        answered=None if evidence is None else evidence.answered,
        slow=slow,
        declined=declines(known),
        heavy=heavy(known),
        baseline=baseline(known),
        even_split=even_split,
        combined=None if known.objective.shares is None else combine(known),
        proportional_loss=losses.proportional_loss(known),
        squared=known.objective.p == math.inf and (known.objective.weights is None or known.by_precision),
        by=ranked_by(known),
        no_interval=no_interval(known) if missing else "",
        equal=tuple(known.arms[k] for k in np.flatnonzero(known.equal_samples).tolist()),
        without_error=without_error(known),
    )


def _biases(known: Known) -> Floats:
    """Return the biases of the arms that are clearly skewed, in the arms' order; 0 for the others."""
    evidence = known.evidence
    if evidence is None:
        return np.zeros(len(known.arms))
    with np.errstate(divide="ignore"):
        # Below twice its own error, a skewness says nothing.
        clear = np.abs(evidence.skewness) > 2 * np.sqrt(6 / known.counts)
    return np.where(clear, adaptivity(known).biases, 0.0)
