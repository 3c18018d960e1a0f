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


def log_chi(x: float) -> tuple[float, float, float]:
    """
    Return what the logarithm of a gamma variable of shape x and mean 1 is about: its mean and its variance.

    The mean is ψ(x) - log(x), returned as a factor x/(x + 1) and the rest; the variance is ψ'(x). Both are right to one
    percent for every x > 0: one step of the recurrences of ψ and ψ' to y = x + 1, and the first terms of their
    expansions there.
    """
    y = x + 1
    inverse = 1 / (x * y)
    a, b = y * inverse, x * inverse  # 1/x and 1/y
    gap = a + b * (1 / 2 + b / 12)
    return x * b, gap, a * a + b * (1 + b * (1 / 2 + b / 6))


_log_chi = jit(log_chi)


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

    own = ("weight", "third", "tail", "alike")
    sums = (
        "varying", "may_vary", "kurtosis_up", "kurtosis_down", "known", "location", "squares", "noise", "known_squared",
        "skewness", "skewness_samples", "samples", "variance",
    )  # fmt: skip
    pooled = (
        "location", "dispersion", "prior", "root", "centre", "dofs", "skewness", "varying", "per_sample",
    )  # fmt: skip

    def params(self, budget: int | None, arms: int, support: Support) -> Numbers:
        wide = width(support)
        most = sys.float_info.max if wide is None else wide * wide
        return (1.0 if support == "binary" else 0.0, most)

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        if params[0] == 1.0:
            return _binary_variance(count, m2, pooled[0], pooled[1])
        _, _, prior, root, centre, dofs, skewness, varying, per_sample = pooled
        weight, third, tail, alike = own
        equal = alike >= count
        dof = count - 1
        nu = dofs * dof
        heavy = (dof * tail - 1) * dofs / 2  # the arm's own kurtosis less one, over the pooled one's
        fade = max(heavy, 1.0) * (ENOUGH * ENOUGH) / (ENOUGH * ENOUGH + count * count)
        d = prior * fade
        # Few divisions and no branches, which are most of the cost of a simulated pull: a sum of two fractions is one.
        top, a, b = d * root + math.sqrt(weight * m2 * (dof + 0.5)), d + dof, d + nu + 1e-30
        seen = (top * top * b + fade * centre * a * a) / (a * a * b)
        shown = (dof * tail - 1) * ((count + 1) * dofs / 2 + 1) / count
        missing = min(max(1 - shown, 0.0), 1.0) * (1 - dofs) * max(centre - seen, 0.0)
        depth = math.sqrt(1 + nu)
        unseen = (centre * varying if equal else missing) / (varying + (1 - varying) * depth if equal else depth)
        # A value that has not come in T samples comes one time in T + 2 (Laplace), and is not outside the support.
        v = (0.0 if equal else seen) + min(unseen, params[1] * weight / (count + 2))
        m = m2 if m2 > 1e-300 else 1.0
        square = (SHAPE * skewness * m + nu * third * third * count) / ((SHAPE + nu) * m)
        part = min(count * per_sample, 1.0)
        c = SECOND_ORDER + (1 - part) * (6 - 2 * part) * square
        return v * (count + c) / (count * (weight if weight > 0 else 1.0)) + 1e-300

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
        weight, third, tail, alike = own
        told = math.isnan(sample)
        x = mean if told else sample
        dof = max(count - 1, 1.0)
        step = (x - mean) / dof
        whole = step * count
        part = min(whole * (x - mean), m2) * (1 / (m2 if m2 > 1e-300 else 1.0))
        rest = 1 - part
        return (
            weight,
            third + part * (whole + step - third) - 3 * step,
            3 / (dof + 2) if told else tail * rest * rest + part * part,
            alike + (1.0 if sample == mean else 0.0),
        )

    @staticmethod
    def share(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> Numbers:
        if params[0] == 1.0:
            v, square, noise = _binary_share(count, m2)
            return (v, square, noise, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        location, dispersion, _, _, _, dofs, _, varying, _ = pooled
        weight, third, tail, alike = own
        if weight == 0.0:
            return (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        if alike >= count:
            chance = 0.5
            if dofs > 0:
                chance = varying / (varying + (1 - varying) * math.sqrt(1 + dofs * (count - 1)))
            return (0.0, chance, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, count, 0.0)
        if dofs == 0.0:  # nothing has been pooled yet
            dofs, dispersion = 1.0, TAU2
        dof = count - 1
        nu = dofs * dof
        v = weight * m2 / dof
        # The logarithm of the variance, its noise, and how far it is to be believed.
        factor, rest, noise = _log_chi(nu / 2)
        e = math.log(factor * (v if v > 1e-290 else 1e-290)) + rest - location
        known = dispersion / (dispersion + noise)
        own_kurtosis = dof * tail
        square = third * (1 / (m2 if m2 > 1e-300 else 1.0)) * third * count
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
        )

    @staticmethod
    def pool(sums: Numbers, arms: float, pooled: Numbers, params: Numbers) -> Numbers:
        if params[0] == 1.0:
            mean, samples = _binary_pool(sums[0], sums[1], sums[2], arms)
            return (mean, samples, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
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
            2 / (max((sums[2] + 9 * SHAPE) / (sums[3] + 3 * SHAPE), 3.0) - 1),
            sums[9] / (sums[10] + SHAPE),
            (sums[1] + 0.5) / (arms + 1),
            1 / sums[11],
        )
