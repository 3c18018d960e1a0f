"""The default strategy, which needs neither a constant nor a budget: empirical Bayes over the arms."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from equipoise.base.inputs import LARGEST
from equipoise.compiled import callable_compiled
from equipoise.numeric.floats import exp, log
from equipoise.strategies import credibility
from equipoise.strategies.registry import register
from equipoise.strategies.strategy import Numbers, Strategy, Support, width

# What is assumed before anything is known; docs/explanation/auto.md derives each constant or says which principle set
# it. Variances of arms are typically four times or a quarter of one another; that counts like one arm.
TAU2 = math.log(4) ** 2
# The pooled shape begins with twenty Gaussian samples.
SHAPE = 20.0
# From fifty samples on, a standard deviation is known to a tenth, whatever the other arms are.
ENOUGH = 50.0
# 4 less the mean overshoot of the walk with steps 2 - z².
SECOND_ORDER = 3.183
GAUSSIAN_KURTOSIS = 3.0
# No samples that are allowed vary more. Weights that are far apart make more of what other arms show.
MOST = LARGEST * LARGEST
# Binary arms have two parameters and others one: code is compiled for a number of them, so that neither kind of arm
# pays for the other's formulas.
BINARY = 2


def log_gamma(x: float) -> tuple[float, float, float]:
    """
    Return the mean and the variance of the logarithm of a gamma variable with shape x > 0 and mean 1.

    The mean is ψ(x) - log(x); it is returned as `factor` and `rest` with mean = -log(factor) - rest. The variance is
    ψ'(x). Both are right to 0.1%: one step of the recurrences of ψ and ψ' to y = x + 1, and the first terms of their
    expansions there.
    """
    y = x + 1
    inverse = 1 / (x * y)
    a, b = y * inverse, x * inverse  # 1/x and 1/y
    return x * b, a + b * (1 / 2 + b / 12), a * a + b * (1 + b * (1 / 2 + b / 6))


def varies(varying: float, nu: float) -> float:
    """
    Return the probability that an arm varies, though all its samples have been equal.

    `varying` is the share of arms that vary. An arm that does shows ν/2 values off the usual one, on average; with
    Jeffreys' prior on their rate, it shows none with probability (1 + ν)^{-1/2}.
    """
    return varying / (varying + (1 - varying) * math.sqrt(1 + nu))


def inverses(count: float) -> tuple[float, float, float, float]:
    """Return 1/T, 1/(T - 1) or 1 for one sample, 1/(T + 2) and 1/(2500 + T²), with a single division."""
    dof, after, enough = max(count - 1, 1.0), count + 2, ENOUGH * ENOUGH + count * count
    early, late = count * dof, after * enough
    inverse = 1 / (early * late)
    of_early, of_late = inverse * late, inverse * early
    return of_early * dof, of_early * count, of_late * enough, of_late * after


_inverses = callable_compiled(inverses)
_log_gamma = callable_compiled(log_gamma)
_varies = callable_compiled(varies)
_binary_variance = callable_compiled(credibility.variance)
_binary_share = callable_compiled(credibility.share)
_binary_pool = callable_compiled(credibility.pool)


@register("auto")
@dataclass(frozen=True)
class Auto(Strategy):
    """
    Shrink each arm's standard deviation toward the others', and allow for what an arm has not shown yet.

    All arms together say how large and how different their standard deviations are (r, s₀² and d), how heavy their
    tails are (kurtosis β) and how skewed they are (γ²). With T samples of an arm, s² their variance, b their own
    kurtosis, and ν = 2 (T - 1)/(β - 1) degrees of freedom::

        v = (seen + unseen) · (1 + c/T)
        seen = ((d r + (T - 1) s) / (d + T - 1))² + f s₀²/(d + ν)
        unseen = h (β - 3)/(β - 1) (s₀² - seen) / sqrt(1 + ν)
        h = 1 - (b - 1)/(β - 1) · (1 + β/T), between 0 and 1
        c = 3.183 + (1 - λ)(6 - 2λ) (h γ² + (1 - h) g²)

    The first term of `seen` is the posterior mean of the standard deviation; the second stands for what is unsure about
    it. d and f fade with T, as 2500/(2500 + T²), and are (b - 1)/(β - 1) times as large for an arm whose own tail is
    heavier than the pooled one. h is the share of the usual tail that the arm has not shown. λ is the arm's share of
    the samples, and g its own skewness. An arm whose samples have all been equal has v = s₀² P (1 + c/T), with P the
    probability that it varies (`varies`). Where a support (low, high) is declared, `unseen` is at most
    (high - low)²/(T + 2). v is at most 10^300, the square of the largest samples that are allowed. Every arm gets at
    least 4 pulls.

    Binary arms, declared as such, have a simpler rule (`strategies.credibility`).

    Notes
    -----
    Variances are pooled in the unit of the objective: with weights, those of an arm are multiplied by its weight. How
    each formula and constant comes about, and what did not work, is in docs/explanation/auto.md.
    """

    own = ("weight", "third", "tail")
    sums = (
        "varying",
        "may_vary",
        "kurtosis_squared",
        "kurtosis",
        "known",
        "location",
        "squares",
        "deviations",
        "noise",
        "known_squared",
        "skewness",
        "varying_samples",
        "samples",
        "variance",
    )
    pooled = ("location", "dispersion", "prior", "root", "centre", "dofs", "skewness", "varying", "per_sample")

    def params(self, budget: int | None, arms: int, support: Support) -> Numbers:
        if support == "binary":
            return (0.0, 1.0)
        wide = width(support)
        return (sys.float_info.max if wide is None else wide * wide,)

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        if len(params) == BINARY:
            return _binary_variance(count, m2, pooled[0], pooled[1])
        _, _, prior, root, centre, dofs, skewness, varying, per_sample = pooled
        weight, third, tail = own
        # Without branches, so that simulated runs go side by side. Divisions and roots are most of the cost of a
        # simulated pull, so that one division serves several fractions. `dofs` is 2/(β - 1), and 0 before the first
        # pooling.
        equal = tail == 0.0
        dof = count - 1
        per_count, _, per_after, per_enough = _inverses(count)
        nu = dofs * dof
        depth = math.sqrt(1 + nu)
        heavier = (dof * tail - 1) * dofs / 2
        fade = max(heavier, 1.0) * (ENOUGH * ENOUGH * per_enough)
        d = prior * fade
        known, spread, hidden = d + dof, d + nu + 1e-30, varying + (1 - varying) * depth if equal else depth
        inverse = 1 / (known * spread * hidden)
        # (T - 1) s = sqrt(M2 (T - 1)), where the half makes s unbiased; divided by T, the product does not overflow.
        spreads = count * math.sqrt(weight * m2 * ((dof + 0.5) * per_count * per_count))
        sd = (d * root + spreads) * (inverse * (spread * hidden))
        seen = sd * sd + fade * centre * (inverse * (known * hidden))
        shown = (dof * tail - 1) * (((count + 1) * dofs / 2 + 1) * per_count)
        missing = 1.0 if equal else min(max(1 - shown, 0.0), 1.0)
        tail_beyond = missing * (1 - dofs) * max(centre - seen, 0.0)
        unseen = (centre * varying if equal else tail_beyond) * (inverse * (known * spread))
        # A value that has not come in T samples comes one time in T + 2 (Laplace), and lies inside the support.
        v = (0.0 if equal else seen) + min(unseen, params[0] * (weight * per_after))
        square = third * (1 / (m2 if m2 > 1e-300 else 1.0)) * third * count
        part = min(count * per_sample, 1.0)
        c = SECOND_ORDER + (1 - part) * (6 - 2 * part) * (square + missing * (skewness - square))
        # The tiny number makes the arms take turns while nothing has varied at all.
        return min(v * ((count + c) * (1 / (count * (weight if weight > 0 else 1.0)))), MOST) + 1e-300

    @staticmethod
    def floor(t: float, arms: float, params: Numbers) -> float:
        return 4.0

    @staticmethod
    def keep(
        sample: float, count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers
    ) -> Numbers:
        """
        Return the weight, M3/M2 and the tail, which is 0 if and only if all samples have been equal.

        With δ_i the growth of M2 by sample i, the tail is Σ δ² / (Σ δ)². For Gaussian samples the δ are independent,
        each σ² times a chi-square of one degree of freedom, so that (T - 1) times the tail estimates the kurtosis. Both
        follow from w = δ/M2, the latest sample's share: the tail becomes tail (1 - w)² + w², and M3/M2, by Pébay's
        formula with e = (x - mean)/(T - 1), becomes M3/M2 + w (T e + e - M3/M2) - 3e. The first sample that differs
        from the mean of those before has w = 1, even where its M2 is too small for a float. Samples told as moments are
        taken for Gaussian ones, and for equal ones if their M2 is 0.
        """
        weight, third, tail = own
        told = math.isnan(sample)
        x = mean if told else sample
        step = (x - mean) * _inverses(count)[1]
        whole = step * count
        part = min(whole * (x - mean), m2) * (1 / (m2 if m2 > 1e-300 else 1.0))
        rest = 1 - part
        grown = 1.0 if tail == 0.0 and x != mean else tail * rest * rest + part * part
        usual = GAUSSIAN_KURTOSIS / (count + 1) if m2 > 0.0 else 0.0
        return weight, third + part * (whole + step - third) - 3 * step, usual if told else grown

    @staticmethod
    def share(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> Numbers:
        """Return the logarithm of the arm's variance, how far it is known, and what else is pooled."""
        if len(params) == BINARY:
            v, square, noise = _binary_share(count, m2)
            return (v, square, noise, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        location, dispersion, _, _, _, dofs, _, varying, _ = pooled
        weight, third, tail = own
        if weight == 0.0:  # the arm does not count
            return (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        if tail == 0.0 or weight * m2 < 1e-290:
            chance = _varies(varying, dofs * (count - 1)) if dofs > 0 else 0.5
            return (0.0, chance, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, count, 0.0)
        if dofs == 0.0:  # nothing has been pooled yet
            dofs, dispersion = 1.0, TAU2
        dof = count - 1
        v = weight * m2 / dof
        factor, rest, noise = _log_gamma(dofs * dof / 2)
        e = log(factor * v) + rest - location
        known = dispersion / (dispersion + noise)
        b = dof * tail
        square = (third / (m2 if m2 > 1e-300 else 1.0)) * third * count
        return (
            1.0,
            1.0,
            count * b * b,
            count * b,
            known,
            known * e,
            known * known * e * e,
            known * known * e,
            known * known * noise,
            known * known,
            count * square,
            count,
            count,
            v,
        )

    @staticmethod
    def pool(sums: Numbers, arms: float, pooled: Numbers, params: Numbers) -> Numbers:
        """Return the centre and spread of the logarithms of the variances, and what follows from them."""
        if len(params) == BINARY:
            mean, samples = _binary_pool(sums[0], sums[1], sums[2], arms)
            return (mean, samples, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        (
            varying,
            may_vary,
            b_squared,
            b,
            known,
            shift,
            squares,
            deviations,
            noise,
            known_squared,
            skewness,
            some,
            samples,
            v,
        ) = sums
        if varying == 0:
            return pooled
        moved = shift / known
        location = pooled[0] + moved
        # Σ k² (e - moved)², less the part of it that is noise.
        real = max(squares + moved * (known_squared * moved - 2 * deviations) - noise, 0.0)
        dispersion = (real + TAU2) / (known_squared * (varying - 1) / varying + 1)
        centre = min(exp(location + dispersion / 2), v / varying)
        narrow = exp(-dispersion / 8)
        kurtosis = (b_squared + SHAPE * GAUSSIAN_KURTOSIS**2) / (b + SHAPE * GAUSSIAN_KURTOSIS)
        return (
            location,
            dispersion,
            0.5 / (1 - narrow * narrow),
            math.sqrt(centre) * narrow,
            centre,
            2 / (max(kurtosis, GAUSSIAN_KURTOSIS) - 1),
            skewness / (some + SHAPE),
            (may_vary + 0.5) / (arms + 1),
            1 / samples,
        )
