"""The default strategy: no constant to choose, no budget to know."""

from __future__ import annotations

import math
from dataclasses import dataclass

from equipoise.strategies.strategy import Strategy, Support, register, width


@register("auto")
@dataclass(frozen=True)
class Auto(Strategy):
    """
    Never trust a small sample's variance, pay for skewness, and trust a large sample fully.

    With T samples of the arm, M2 their squared deviations, γ their skewness and s̄² the mean of all arms' variances::

        v = (M2 + κ s̄²) / (T - 1 + κ) · (1 + c/T)
        c = 3.5 + 2 γ₊² + 4 γ² T/(T + 40 (1 + γ²))
        γ₊ = |γ| + 6 sqrt(6/T · 40/(40 + T)), at most 3, or |γ| where that is more
        κ = 10 (20/(20 + T))² / (1 + 6 M2/s̄²) + 3γ²/4

    The last factor pays for the variance being known from T samples only: c = 3.5 + 6γ² makes the excess losses of all
    arms equal to second order, whatever their laws, and c goes there as T grows. With few samples for their skewness
    the arms are better off with a third of it, and γ₊ bounds the skewness from above while it is not known.

    κ counts imagined samples of the mean variance: many for an arm whose first samples agree by chance, few for one
    that has shown a variance of its own, some for an arm so skewed that its variance sits in samples not yet seen.
    Both fade. Every arm has 4 pulls at least.

    Where a support (low, high) is declared, three more imagined samples have the variance (high - low)²/4 of a coin
    between its ends, or four times s̄² if that is less: a rare value far away may not have been seen yet.

    For binary arms v is the mean of p(1-p) given the answers, with a Beta(2, 2) prior on p. With s ones and f zeros
    that is (2+s)(2+f)/((T+4)(T+5)); s f = T M2, so that only T and M2 are needed::

        v = (4 + 2T + T M2) / ((T + 4)(T + 5))

    Notes
    -----
    Where no sample of any arm differs from the others of its arm, all variances are zero; a minute term then keeps the
    arms in turn. How each constant was found, and what did not work, is in docs/auto.md.
    """

    pool = "mean"
    own = "frozen"

    def params(self, budget: int | None, arms: int, support: Support) -> tuple[float, ...]:
        wide = width(support)
        return (1.0 if support == "binary" else 0.0, 0.0 if wide is None else wide * wide / 4)

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: float, own: float, params: tuple[float, ...]) -> float:
        if params[0] == 1.0:
            return (4 + 2 * count + count * m2) / ((count + 4) * (count + 5))
        # In few divisions, as they are most of a simulated pull: γ₊² is taken T (T + 40) times, and all but κ stands
        # over one denominator. That of κ overflows near 1e150 only, where T is so large that nothing is left of κ.
        g2 = own * (1 / (m2 if m2 > 1e-307 else 1.0)) * own
        square = g2 * count
        later, both = count + 40, count * (count + 40)
        upper = min(both * square + 12 * count * math.sqrt(240 * later * g2) + 8640, both * max(square, 9.0))
        late = later + 40 * square
        faded = (20 + count) * (20 + count) * (pooled + 6 * m2 if pooled > 0 else 1.0)
        kappa = 4000 * (pooled if pooled > 0 else 1.0) / faded + 0.75 * square
        bound = min(params[1], 4 * pooled)
        coins = 3.0 if bound > 0 else 0.0
        factor = (both * (count + 3.5) + 2 * upper) * late + both * (4 * square * count)
        v = (m2 + kappa * pooled + coins * bound) * (factor / ((count - 1 + kappa + coins) * (late * (count * both))))
        return v + 1e-300

    @staticmethod
    def floor(t: float, arms: float, params: tuple[float, ...]) -> float:
        return 4.0

    @staticmethod
    def freeze(
        sample: float, count: float, mean: float, m2: float, pooled: float, own: float, params: tuple[float, ...]
    ) -> float:
        """
        M3/M2, the skewness times the standard deviation, in the unit of the samples: γ² = T own²/M2.

        With d = (x - mean)/(T - 1) and w = T (T - 1) d²/M2, the sample's share of M2, Pébay's update of the third
        moment becomes own + w (T d + d - own) - 3d. Samples that come as moments say nothing about it.
        """
        if params[0] == 1.0 or count < 2:
            return 0.0
        if math.isnan(sample):
            return 0.0 if own == -1.0 else own
        step = (sample - mean) / (count - 1)
        whole = step * count
        share = min(whole * (sample - mean), m2) * (1 / (m2 if m2 > 1e-307 else 1.0))
        kept = own + share * (whole + step - own) - 3 * step
        # Not the number that stands for no sample at all.
        return kept if kept != -1.0 else -1.0000000000000002
