"""A result for arms that are finite populations, sampled without replacement."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from equipoise.arrays import Floats
from equipoise.intervals import Intervals, Kind, populations
from equipoise.study.result import ByArm, IntervalsByArm, Result


class FiniteResult(Result):
    """
    What a study knows about arms that are finite populations.

    Losses and errors carry the correction 1 - count/size: a population that is used up is known exactly. Intervals are
    those of drawing without replacement: betting for binary arms, which is exact at all times at once; the asymptotic
    kind for all others, whatever their support; and fixed-n with the same correction. The other kinds are not known
    for finite populations, and are refused.

    Attributes
    ----------
    populations
        The sizes of the populations, in the arms' order.
    """

    populations: Floats

    def __init__(self, result: Result, populations: Sequence[float]) -> None:
        self.__dict__.update(result.__dict__)
        sizes = self.populations = np.asarray(populations, dtype=float)
        counts = self.counts.array
        with np.errstate(invalid="ignore"):
            losses = np.where(counts >= sizes, 0.0, result.losses.array * (1 - counts / sizes))
        self.losses = ByArm(self.arms, losses, self._index)
        self.standard_errors = ByArm(self.arms, np.sqrt(losses), self._index)

    def _kinds(self, kind: Kind | None) -> Intervals:
        if kind is None and self._evidence is not None:
            kind = "betting" if self.support == "binary" else "asymptotic"
        if kind == "empirical-bernstein" or (kind == "betting" and self.support != "binary"):
            raise ValueError(
                f"kind={kind!r} is not known for finite populations; 'asymptotic' and 'fixed-n' are, and 'betting' for "
                "binary arms"
            )
        return super()._kinds(kind)

    def _intervals_of(self, places: Sequence[int] | None, level: float, kind: Kind | None = None) -> IntervalsByArm:
        wanted = self._kinds(kind)
        found = super()._intervals_of(places, level, kind)
        where = np.arange(len(self.arms)) if places is None else np.asarray(places)
        state, sizes = self._state(wanted.kind, places), self.populations[where]
        alpha = (1 - self._level(level)) / len(self.arms)
        if wanted.kind == "betting":
            low, high = populations.over_binary(state, sizes, alpha)
        elif wanted.kind == "asymptotic":
            low, high = populations.over_moments(state, sizes, wanted.kernel.settings[0], alpha)
        else:
            means = self.means.array[where]
            # A binary arm's ends do not lie evenly about its mean; as if with replacement they are wide enough.
            shrink = 1.0 if self.support == "binary" else np.sqrt(np.maximum(0, 1 - self.counts.array[where] / sizes))
            with np.errstate(invalid="ignore"):
                low, high = means - (means - found.low) * shrink, means + (found.high - means) * shrink
            low, high = (np.where(np.isnan(end), whole, end) for end, whole in ((low, found.low), (high, found.high)))
        known = self.counts.array[where] >= sizes
        ends = (np.where(known, self.means.array[where], end) for end in (low, high))
        least, most = (0.0, 1.0) if self.support == "binary" else self.support or (-math.inf, math.inf)
        found.low, found.high = (np.clip(end, least, most) for end in ends)
        return found

    @property
    def oracle_loss(self) -> float:
        """
        The least L for which the arms' v/(L/w + v/N), the pulls that make w v (1/T - 1/N) = L, can be paid for.

        For the sum of the losses, and so for strata, that of the pulls min(N, κ sqrt(w v/c)) that cost what was spent.
        NaN for other norms. 0 where all that varies can be paid for.
        """
        K = len(self.arms)
        weights, costs = self.objective.weight(K), self.objective.cost(K)
        v, sizes, spent = np.where(weights > 0, self.variances.array, 0.0), self.populations, self.spent
        if not self.samples or np.isnan(v).any() or self.objective.p not in (1, math.inf):
            return math.nan
        if spent >= math.fsum((costs * sizes)[v > 0]):
            return 0.0
        with np.errstate(invalid="ignore", divide="ignore"):
            if self.objective.p == 1:
                parts = np.sqrt(weights * v / costs)
                most = float(np.max(sizes / parts, where=parts > 0, initial=0.0))
                times = _least(lambda times: bool(costs @ np.minimum(sizes, times * parts) >= spent), most)
                return self.objective.loss(self._losses_of(np.where(parts > 0, times * parts, sizes)))
            return _least(
                lambda loss: np.nan_to_num(costs * v / (loss / weights + v / sizes)).sum() <= spent,
                float((weights * v * costs).sum()) / spent,
            )

    @property
    def uniform_loss(self) -> float:
        if not self.samples:
            return math.nan
        each = self.spent / math.fsum(self.objective.cost(len(self.arms)))
        return self.objective.loss(self._losses_of(np.full(len(self.arms), each)))

    def _losses_of(self, pulls: Floats) -> Floats:
        return np.asarray(np.maximum(self.variances.array * (1 / pulls - 1 / self.populations), 0))

    @property
    def uniform_samples(self) -> float:
        if math.isnan(self.loss):
            return math.nan
        K = len(self.arms)
        return K * _least(
            lambda each: self.objective.loss(self._losses_of(np.full(K, each))) <= self.loss,
            float(self.populations.max()),
        )


def _least(enough: Callable[[float], bool], high: float) -> float:
    """The least number that is enough, as `high` is, and whatever is above it."""
    low = 0.0
    for _ in range(64):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
