"""The default strategy, which needs neither a constant nor a budget: empirical Bayes over the arms."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from equipoise.compiled import jit
from equipoise.strategies import credibility
from equipoise.strategies.registry import register
from equipoise.strategies.strategy import Numbers, Strategy, Support, width

_binary_variance = jit(credibility.variance)
_binary_share = jit(credibility.share)
_binary_pool = jit(credibility.pool)

# What is assumed before anything is known (docs/auto.md): variances of arms are typically four times or a quarter of
# one another, which counts like one more arm; the shape of a law takes twenty degrees of freedom to be seen; and from
# fifty samples on a standard deviation is known to a tenth, whatever the other arms are.
TAU2 = math.log(4) ** 2
SHAPE = 20.0
ENOUGH = 50.0
# 4 less the mean overshoot of the walk with steps 2 - z² (docs/auto.md).
SECOND_ORDER = 3.183


def log_gap(x: float) -> float:
    """Return log(x) - ψ(x), with ψ the digamma function, for x > 0."""
    y = x + 3
    return (
        math.log(x / y) + 1 / x + 1 / (x + 1) + 1 / (x + 2) + (1 / 2 + (1 / 12 - 1 / (120 * y * y)) / y) / y
    )


def trigamma(x: float) -> float:
    """Return ψ'(x), the variance of the logarithm of a gamma variable of shape x, for x > 0."""
    y = x + 3
    tail = (1 + (1 / 2 + (1 / 6 - 1 / (30 * y * y)) / y) / y) / y
    return 1 / (x * x) + 1 / ((x + 1) * (x + 1)) + 1 / ((x + 2) * (x + 2)) + tail


_log_gap, _trigamma = jit(log_gap), jit(trigamma)


@register("auto")
@dataclass(frozen=True)
class Auto(Strategy):
    """
    Shrink each arm's standard deviation toward that of all arms, and allow for what an arm has not shown yet.

    All arms together say how much their standard deviations differ (d and r), how heavy their tails are (β) and how
    skewed they are (γ²). With T samples of an arm, s² their variance, and ν = 2(T - 1)/(β - 1)::

        v = (seen + unseen) · (1 + c/T)
        seen = ((d r + (T - 1) s) / (d + T - 1))² + s₀²/(2 (d + ν))      posterior mean of σ² given s
        unseen = h (s₀² - seen) / sqrt(1 + ν)      h: the share of the usual tail that the arm has not shown
        c = 3.183 + (1 - λ)(6 - 2λ) γ₊²            λ: the arm's share of the samples; γ₊²: posterior mean of γ²

    An arm whose samples have all been equal has v = s₀² P (1 + c/T), where P is the probability that it varies at all.
    Every arm gets at least 4 pulls. Binary arms, declared as such, have a simpler rule (`strategies.credibility`).

    Every constant is derived in docs/auto.md, and so is what each part is for.
    """

    own = ("weight", "third", "tail", "first", "same")
    sums = (
        "varying", "may_vary", "kurtosis_up", "kurtosis_down", "known", "location", "squares", "noise", "known_squared",
        "skewness", "skewness_samples", "samples", "variance", "deviation", "tied",
    )  # fmt: skip
    pooled = (
        "location", "dispersion", "prior", "root", "centre", "kurtosis", "skewness", "varying", "rate", "samples",
    )  # fmt: skip

    def params(self, budget: int | None, arms: int, support: Support) -> Numbers:
        wide = width(support)
        most = sys.float_info.max if wide is None else wide * wide
        return (1.0 if support == "binary" else 0.0, most)

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        if params[0] == 1.0:
            return _binary_variance(count, m2, pooled[0], pooled[1])
        _, _, prior, root, centre, kurtosis, skewness, varying, rate, samples = pooled
        weight, third, tail, _, same = own
        if kurtosis == 0.0 or weight == 0.0:  # nothing is known yet, or the arm does not count
            return 1.0
        # A value that has not come in T samples comes one time in T + 2 (Laplace), and is not outside the support.
        most = params[1] * weight / (count + 2)
        if same >= count - 1:
            chance = varying / (varying + (1 - varying) * math.sqrt(1 + 2 * rate * count))
            v = min(centre * chance, most)
        else:
            dof = count - 1
            nu = 2 * dof / (kurtosis - 1)
            fade = ENOUGH * ENOUGH / (ENOUGH * ENOUGH + count * count)
            prior *= fade
            s = math.sqrt(weight * m2 / dof * (1 + 0.5 / dof))
            z = (prior * root + dof * s) / (prior + dof)
            seen = z * z + min(fade * centre / (prior + nu), most)
            shown = (dof * tail - 1) * (1 + kurtosis / count) / (kurtosis - 1)
            missing = min(max(1 - shown, 0.0), 1.0) * (kurtosis - 3) / (kurtosis - 1)
            v = seen + min(missing * max(centre - seen, 0.0) / math.sqrt(1 + nu), most)
            square = third * (1 / (m2 if m2 > 1e-300 else 1.0)) * third * count
            skewness = (SHAPE * skewness + nu * square) / (SHAPE + nu)
        part = min(count / samples, 1.0)
        c = SECOND_ORDER + (1 - part) * (6 - 2 * part) * skewness
        return v * (1 + c / count) / weight

    @staticmethod
    def floor(t: float, arms: float, params: Numbers) -> float:
        return 4.0

    @staticmethod
    def keep(
        sample: float, count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers
    ) -> Numbers:
        """
        Return M3/M2, the tail and how often the first value has come again.

        With δ the growth of M2 by each sample, the tail is Σ δ² / (Σ δ)²: for Gaussian samples the δ are independent
        σ²χ² with one degree of freedom, so that (T - 1) times it estimates the kurtosis. Both are updated by w, the
        share of the sample in M2: tail (1 - w)² + w², and, by Pébay's formula, M3/M2 + w (T d + d - M3/M2) - 3d with
        d = (x - mean)/(T - 1). Samples told as moments are taken for Gaussian.
        """
        weight, third, tail, first, same = own
        if params[0] == 1.0:
            return own
        if math.isnan(sample):
            return (weight, third, 3 / max(count - 1, 3.0), first, same)
        if count < 2:
            return (weight, 0.0, 0.0, sample, 0.0)
        step = (sample - mean) / (count - 1)
        whole = step * count
        part = min(whole * (sample - mean), m2) * (1 / (m2 if m2 > 1e-300 else 1.0))
        rest = 1 - part
        return (
            weight,
            third + part * (whole + step - third) - 3 * step,
            tail * rest * rest + part * part,
            first,
            same + (1.0 if sample == first else 0.0),
        )

    @staticmethod
    def share(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> Numbers:
        if params[0] == 1.0:
            v, square, noise = _binary_share(count, m2)
            return (v, square, noise, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        location, dispersion, _, _, _, kurtosis, _, varying, rate, _ = pooled
        weight, third, tail, _, same = own
        if weight == 0.0:
            return (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        if same >= count - 1:
            chance = 0.5
            if kurtosis > 0:
                chance = varying / (varying + (1 - varying) * math.sqrt(1 + 2 * rate * count))
            return (0.0, chance, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, count, 0.0, 0.0, 0.0)
        if kurtosis == 0.0:
            kurtosis, dispersion = 3.0, TAU2
        dof = count - 1
        nu = 2 * dof / (kurtosis - 1)
        v = weight * m2 / dof
        # The logarithm of the variance, its noise, and how far it is to be believed.
        e = math.log(v if v > 1e-300 else 1e-300) + _log_gap(nu / 2) - location
        noise = _trigamma(nu / 2)
        known = dispersion / (dispersion + noise)
        own_kurtosis = dof * tail
        square = third * (1 / (m2 if m2 > 1e-300 else 1.0)) * third * count
        tied = 1.0 if same > 0 else 0.0
        return (
            1.0,
            1.0,
            count * own_kurtosis * own_kurtosis,
            count * own_kurtosis,
            known,
            known * e,
            known * known * e * e,
            known * known * noise,
            known * known,
            count * square,
            count,
            count,
            v,
            tied * (dof - same) / dof,
            tied,
        )

    @staticmethod
    def pool(sums: Numbers, arms: float, pooled: Numbers, params: Numbers) -> Numbers:
        if params[0] == 1.0:
            mean, samples = _binary_pool(sums[0], sums[1], sums[2], arms)
            return (mean, samples, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        varying = sums[0]
        if varying == 0:
            return pooled
        moved = sums[5] / sums[4]
        location = pooled[0] + moved
        real = max(sums[6] - sums[8] * moved * moved - sums[7], 0.0)
        dispersion = (real + TAU2) / (sums[8] * (varying - 1) / varying + 1)
        prior = 0.5 / (1 - math.exp(-dispersion / 4))
        centre = min(math.exp(location + dispersion / 2), sums[12] / varying)
        return (
            location,
            dispersion,
            prior,
            math.sqrt(centre) * math.exp(-dispersion / 8),
            centre,
            max((sums[2] + 9 * SHAPE) / (sums[3] + 3 * SHAPE), 3.0),
            sums[9] / (sums[10] + SHAPE),
            (sums[1] + 0.5) / (arms + 1),
            (sums[13] + 0.5) / (sums[14] + 1),
            sums[11],
        )
