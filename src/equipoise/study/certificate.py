"""How good a result is, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from equipoise.intervals import PROMISES, Kind
from equipoise.study.evidence import Answered
from equipoise.tables import percent

if TYPE_CHECKING:
    from equipoise.study.result import Combined, Result

# Slow answers are said to differ from fast ones below this probability, for all arms at once.
SLOW: Final = 0.001
# A bias is worth a word from this share of its standard error on.
_BIAS: Final = 0.05
# What these decide does not depend on the samples.
_BLIND: Final = ("uniform", "oracle")


@dataclass(frozen=True)
class Certificate:
    """
    How well the arms are known, what other ways of sampling would have had, and what may be wrong with it.

    Attributes
    ----------
    samples
        How many are in.
    worst, half_width, standard_error
        The arm whose mean is known worst, by weight; half the width of its interval, which is infinite where there are
        too few samples; its standard error.
    kind, level, promise
        Of that interval: it holds for all arms at once at this level.
    loss, uniform_loss, oracle_loss
        What was made small (by default the worst arm's squared error); what uniform sampling of the same budget would
        have had; and what the best allocation would have had. Both by the variances seen.
    combined, proportional_loss
        Where the arms are strata: their common mean with its standard error, of which `loss` is the square; and what
        sampling in proportion to the shares would have had. None and NaN where they are none.
    skewed, bias
        The arm whose mean adaptive sampling may have moved most, beside its standard error, and by about how much:
        -(1 - λ) γ s/T, with the arm's share λ of the samples, its skewness γ, standard deviation s and count T. An arm
        whose early samples vary little by chance is sampled less, and of a skewed arm those are the low ones. None and
        0 where no arm is clearly skewed, or the strategy does not go by the samples.
    answered
        How many samples were asked for, given up and never answered, and are in flight. None where nobody counted.
    slow
        The arms whose slow answers differ from their fast ones, by a rank test at p < 0.001 for all arms at once; None
        where nobody told how long samples took.
    """

    samples: int
    worst: Hashable
    half_width: float
    standard_error: float
    kind: Kind
    level: float
    promise: str
    loss: float
    uniform_loss: float
    oracle_loss: float
    skewed: Hashable | None
    bias: float
    bias_in_errors: float
    answered: Answered | None
    slow: tuple[Hashable, ...] | None
    combined: Combined | None = None
    proportional_loss: float = math.nan
    squared: bool = field(default=True, repr=False)
    by: str = field(default="", repr=False)
    unit: str = field(default="", repr=False)

    def __str__(self) -> str:
        first = (self._known(), self._others()) if self.combined is None else (self._strata(), self._known())
        return " ".join(filter(None, (*first, self._bias(), self._silent(), self._slow())))

    def _known(self) -> str:
        if math.isnan(self.standard_error):
            return f"{self.samples:,} samples are in, of {self.worst!r} fewer than 2: its error is not known."
        half = f"±{self.half_width:.3g}" if math.isfinite(self.half_width) else "not bounded yet, as samples are few"
        which = (
            f"The worst-known mean{self.by} is that of {self.worst!r}"
            if self.combined is None
            else f"The stratum {self.worst!r} adds most to this error"
        )
        return (
            f"{which}: its {percent(self.level)} interval is {half} (all arms at once; {said(self.kind)}), "
            f"its standard error {self.standard_error:.3g}."
        )

    def _strata(self) -> str:
        """What is made small where the arms are strata, and what others would have had."""
        if self.combined is None or math.isnan(self.loss):
            return ""
        others = {
            "as many samples of each stratum": self.uniform_loss,
            "samples in proportion to the shares": self.proportional_loss,
            "the best allocation": self.oracle_loss,
        }
        known = [f"{math.sqrt(loss):.3g} with {how}" for how, loss in others.items() if not math.isnan(loss)]
        return (
            f"The mean of all strata is {self.combined.value:.4g}, with a standard error of {self.combined.error:.3g}. "
            f"By the variances seen, the same budget would have had {', '.join(known[:-1])} and {known[-1]}."
        )

    def _others(self) -> str:
        if math.isnan(self.loss) or math.isnan(self.uniform_loss):
            return ""
        what, root = ("worst standard error", math.sqrt) if self.squared else ("loss", float)
        return (
            f"By the variances seen, uniform sampling of the same budget would have had a {what} of "
            f"{root(self.uniform_loss):.3g}{self.unit}, the best allocation {root(self.oracle_loss):.3g}, and this has "
            f"{root(self.loss):.3g}."
        )

    def _bias(self) -> str:
        if self.skewed is None or abs(self.bias_in_errors) < _BIAS:
            return ""
        return (
            f"The samples of {self.skewed!r} are skewed, and sampling by what was seen may have moved its mean by "
            f"about {self.bias:.2g}, {abs(self.bias_in_errors):.0%} of its standard error."
        )

    def _silent(self) -> str:
        if self.answered is None or not self.answered.given_up:
            return ""
        return (
            f"Of {self.answered.asked:,} samples asked for, {self.answered.given_up:,} ({self.answered.share:.1%}) "
            "were never answered: the estimates speak of those that answer."
        )

    def _slow(self) -> str:
        if not self.slow:
            return ""
        names = ", ".join(map(repr, self.slow[:5])) + ", ..." * (len(self.slow) > 5)
        return (
            f"Warning: slow answers differ from fast ones (rank test, p < {SLOW:g}) in {names}: as long as some are in "
            "flight, or if slow ones were given up, the means are off."
        )


def said(kind: Kind) -> str:
    """The kind of an interval and what it promises."""
    return PROMISES[kind] if PROMISES[kind].startswith(kind) else f"{kind}: {PROMISES[kind]}"


def certify(result: Result, level: float) -> Certificate:
    """The certificate of a result."""
    k = result._position(result.worst)
    intervals = result._intervals_of([k], level)
    errors, evidence = result.standard_errors.array, result._evidence
    bias = np.zeros(len(errors))
    slow: tuple[Hashable, ...] | None = None
    if evidence is not None:
        counts = result.counts.array
        if result.strategy not in _BLIND and len(errors) > 1:
            with np.errstate(divide="ignore", invalid="ignore"):
                share, skewness = counts / counts.sum(), evidence.skewness
                # Below twice its own error, a skewness says nothing.
                skewness = np.where(np.abs(skewness) > 2 * np.sqrt(6 / counts), skewness, 0.0)
                bias = -(1 - share) * skewness * np.sqrt(result.variances.array) / counts
            bias = np.nan_to_num(bias, posinf=0.0, neginf=0.0)
        if evidence.slow is not None:
            tested = int(np.isfinite(evidence.slow).sum())
            with np.errstate(invalid="ignore"):
                slow = tuple(result.arms[j] for j in np.flatnonzero(evidence.slow * tested < SLOW).tolist())
    with np.errstate(divide="ignore", invalid="ignore"):
        in_errors = np.nan_to_num(bias / errors, posinf=0.0, neginf=0.0)
    most = int(np.abs(in_errors).argmax())
    return Certificate(
        samples=result.samples,
        worst=result.worst,
        half_width=float(intervals.half_widths[0]),
        standard_error=float(errors[k]),
        kind=intervals.kind,
        level=level,
        promise=intervals.promise,
        loss=result.loss,
        uniform_loss=result.uniform_loss,
        oracle_loss=result.oracle_loss,
        skewed=result.arms[most] if in_errors[most] != 0 else None,
        bias=float(bias[most]),
        bias_in_errors=float(in_errors[most]),
        answered=None if evidence is None else evidence.answered,
        slow=slow,
        combined=None if result.objective.shares is None else result.combine(),
        proportional_loss=result.proportional_loss,
        squared=result.objective.p == math.inf and (result.objective.weights is None or result.by_precision),
        by=result._by(),
        unit=" times the half-width that was asked for" if result.by_precision else "",
    )
