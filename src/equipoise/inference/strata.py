"""The mean of strata together, with its error and interval."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from equipoise.base.arrays import Floats, Ints
from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import probability, several, shown
from equipoise.base.tables import rounded
from equipoise.inference.comparisons import the_one_asked
from equipoise.inference.contrast_bounds import bounds
from equipoise.inference.contrasts import interval
from equipoise.inference.errors import corrected_means, errors_of_strata
from equipoise.inference.known import Known
from equipoise.inference.linear_targets import sums_found
from equipoise.intervals import Kind
from equipoise.intervals.contrasts import freedom
from equipoise.intervals.fixed_n import student_quantile
from equipoise.problem.objective import shares_of_some


class Combined(NamedTuple):
    """
    The mean of all strata together, its standard error, and the ends of its interval.

    The bias of adaptive sampling is taken out of the value. The interval is value ± t error, by Student's
    distribution, for a single look; or, where the precision was asked of the combined mean, the one that decided when
    to stop. `combined_kind` says which.
    """

    value: float
    error: float
    low: float
    high: float

    def __repr__(self) -> str:
        half = (self.high - self.low) / 2
        ends = f"interval {interval(self.low, self.high)}, " if math.isfinite(half) else ""
        return f"{rounded(self.value, half)}, {ends}standard error {rounded(self.error, self.error)}"


def combine(
    known: Known,
    shares: Iterable[float] | Mapping[Any, float] | None = None,
    level: float | None = None,
    among: Iterable[Hashable] | None = None,
    kind: Kind | None = None,
) -> Combined:
    """Return the mean of strata together, as `Result.combine` documents it."""
    level = known.level if level is None else probability("level", level)
    share = _shares(known, shares, among)
    counted = share > 0  # the mean of a stratum with a share of 0 may be unknown
    value = float(share[counted] @ corrected_means(known)[counted])
    parts = (share * errors_of_strata(known))[counted]
    known_exactly = not parts.any() and not known.equal_samples[counted].any()
    error = math.hypot(*parts) if parts.any() or known_exactly else math.nan
    half = error and student_quantile(_freedom(parts, known.counts[counted]), 1 - level) * error
    if kind not in (None, "fixed-n"):
        places = np.flatnonzero(counted)
        low, high = bounds(known, places[None], share[None, places], 1 - level, kind)
        return Combined(value, error, float(low[0]), float(high[0]))
    if level == known.level and kind is None:
        decided = the_one_asked(known, np.arange(len(share)), share)
        if decided is not None and decided.kind != "fixed-width":
            return Combined(value, error, decided.low, decided.high)
        half = half if decided is None else max(half, decided.half_width)
    return Combined(value, error, value - half, value + half)


def combined_kind(known: Known) -> Kind:
    """Return the kind of the interval of `combine`: "fixed-n" for one look, or the kind that decided when to stop."""
    asked = None if known.precision is None else known.precision.sums
    if asked is None or not asked.combined:
        return "fixed-n"
    return "fixed-width" if sums_found(known).fixed[0] else known.interval_kind


def _shares(
    known: Known, given: Iterable[float] | Mapping[Any, float] | None, among: Iterable[Hashable] | None
) -> Floats:
    """Return the shares of strata in the arms' order, as `combine` takes them."""
    shares = known.objective.shares if given is None else shares_of_some(known.arms, given)
    if shares is None:
        raise InvalidInput("combine needs the strata's shares, as in combine({'city': 0.7, 'country': 0.3})")
    share = np.array(shares)
    if among is None:
        return share
    if not several(among):
        raise TypeError(f"among must be a list of arms, got {shown(among)}")
    places = [known.names.find(arm) for arm in among]
    part = np.where(np.isin(np.arange(len(share)), places), share, 0.0)
    if len(set(places)) < len(places):
        twice = next(place for i, place in enumerate(places) if place in places[:i])
        raise InvalidInput(f"among must name each arm once, got {shown(known.arms[twice])} twice")
    if not part.any():
        raise InvalidInput(
            f"among must have an arm with a positive share, got {shown([known.arms[k] for k in places])}"
        )
    return np.asarray(part / math.fsum(part))


def _freedom(errors: Floats, counts: Ints) -> float:
    """Return the degrees of freedom of the mean of strata with these errors; 1 for less than 2."""
    varies = errors > 0  # of the others, one sample may be all there is
    found = min(float(freedom(errors[varies], counts[varies].astype(float))), 1e6) if varies.any() else 1e6
    return found if found >= 2 else 1.0
