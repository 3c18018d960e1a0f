"""The default strategy, which needs neither a constant nor a budget."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from equipoise.strategies.registry import register
from equipoise.strategies.strategy import Numbers, Strategy, Support, width


@register("auto")
@dataclass(frozen=True)
class Auto(Strategy):
    """
    Shrink variances toward the pooled variance, and allow for skewness.

    With T samples of the arm, M2 the sum of their squared deviations, γ their skewness, and s̄² the mean over all arms
    of the variances times 1 + γ⁴/(40 + 2γ²)::

        v = (M2 + κ s̄²) / (T - 1 + κ) · (1 + c/T)
        c = 3.5 + 2 γ₊² + 4 γ² T/(T + 40 (1 + γ²))
        γ₊ = |γ| + 6 sqrt(6/T · 40/(40 + T)), at most sqrt(8), or |γ| where that is more
        κ = 10 (20/(20 + T))² / (1 + 6 M2/s̄²) + (100/(100 + T))² / (2 + 2 M2/3s̄²) + γ²/2, where M2 > 0
        κ = 10 (20/(20 + T))² + 60 T/(T + 60), where M2 = 0

    The last factor allows for the variance being estimated from T samples only: c = 3.5 + 6γ² makes the excess losses
    of all arms equal to second order, whatever their laws, and c tends to it as T grows. With few samples for their
    skewness the arms do better with a third of it, and γ₊ is an upper bound on the skewness while it is not known.

    κ is a number of pseudo-observations: shrinkage toward the pooled variance s̄². It is large for an arm whose first
    samples are equal by chance, small for one that has shown a variance of its own, and moderate for an arm so skewed
    that its variance lies in samples not yet seen; it decreases with T. Where some arms have rare large values, s̄² is
    large, since those of the other arms may not have been seen yet. An arm whose samples have all been equal carries no
    information about its variance, and gets up to sixty pseudo-observations. Every arm gets at least 4 pulls.

    Where a support (low, high) is declared, κ s̄² is at most 2 (high - low)²: what has not been seen in T samples is
    rarer than about 2/T, and no farther away than the width of the support.

    For binary arms with s ones and f zeros, v is the posterior mean of p(1-p) under a Beta(a, a) prior, with m
    pseudo-observations of the pooled variance::

        v = ((a + s)(a + f)/(T + 2a) + m s̄²) / (T + 2a + 1 + m)
        a = 1/4 + 7/4 · T s̄²/(T s̄² + 3/2)
        m = 12/(1 + M2/40)

    a is near two once a typical arm has shown some ones and zeros: an arm without a one then differs from the others.

    Notes
    -----
    If the samples of every arm have all been equal, all variances are zero; a tiny added constant then makes the arms
    take turns. How each constant was found, and what did not work, is in docs/auto.md.
    """

    own = ("slant",)
    sums = ("variance",)
    pooled = ("mean",)

    def params(self, budget: int | None, arms: int, support: Support) -> Numbers:
        wide = width(support)
        most = math.inf if wide is None else 2 * wide * wide
        return (1.0 if support == "binary" else 0.0, min(most, sys.float_info.max))

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        typical, slant = pooled[0], own[0]
        if params[0] == 1.0:
            r = count * typical
            a = 0.25 + 1.75 * r / (r + 1.5)
            m = 480 / (40 + m2)
            # s f = T M2, so that only T and M2 are needed.
            return ((a * a + a * count + count * m2) / (count + 2 * a) + m * typical) / (count + 2 * a + 1 + m)
        # With few divisions and roots, which are most of the cost of a simulated pull.
        square = slant * (1 / (m2 if m2 > 1e-307 else 1.0)) * slant * count
        # The squares of what is added to |γ| and of γ₊.
        spare = 8640 / (count * (count + 40))
        upper = min(square + 2 * math.sqrt(square * spare) + spare, max(square, 8.0))
        inverse = 1 / (typical if typical > 1e-307 else 1.0)
        seen = min(m2 * inverse, 1e100) if typical > 1e-307 else 0.0
        faded = (20 + count) * (20 + count) * (1 + 6 * seen)
        top, bottom = (15000.0, (100 + count) * (100 + count) * (3 + seen)) if m2 > 0 else (60 * count, count + 60)
        kappa = min((4000 * bottom + top * faded) / (faded * bottom) + square / 2, params[1] * inverse)
        late = count + 40 * (1 + square)
        factor = (count + 3.5 + 2 * upper) * late + 4 * square * count
        v = (m2 + kappa * typical) * (factor / ((count - 1 + kappa) * (count * late)))
        return v + 1e-300

    @staticmethod
    def floor(t: float, arms: float, params: Numbers) -> float:
        return 4.0

    @staticmethod
    def keep(
        sample: float, count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers
    ) -> Numbers:
        """
        Return the slant M3/M2, the skewness times the standard deviation.

        It gives γ² = T slant²/M2.

        With d = (x - mean)/(T - 1) and w = T (T - 1) d²/M2, the sample's share of M2, Pébay's update of the third
        moment becomes slant + w (T d + d - slant) - 3d. Samples told as moments do not change it.
        """
        if params[0] == 1.0 or count < 2:
            return (0.0,)
        if math.isnan(sample):
            return own
        slant = own[0]
        step = (sample - mean) / (count - 1)
        whole = step * count
        share = min(whole * (sample - mean), m2) * (1 / (m2 if m2 > 1e-307 else 1.0))
        return (slant + share * (whole + step - slant) - 3 * step,)

    @staticmethod
    def share(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> Numbers:
        """Return the arm's variance, increased for skewness."""
        slant = own[0]
        square = slant * (1 / (m2 if m2 > 1e-307 else 1.0)) * slant * count
        return (m2 / (count - 1) * (1 + square * square / (40 + 2 * square)),)

    @staticmethod
    def pool(sums: Numbers, arms: float, pooled: Numbers, params: Numbers) -> Numbers:
        """Return the mean of the arms' increased variances."""
        return (sums[0] / max(arms, 1.0),)
