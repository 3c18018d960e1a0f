"""
What an even split would have needed for the same largest standard error, or the same precision if one was asked for.

**With a budget**, it is the number N of samples, N/K of each arm, whose loss is that of the study. This is the loss of
the best allocation times the price of not knowing the variances, which the replay finds (`replay`). Where a study was
not replayed, it is the loss of its own counts, which is somewhat too large, so that N is too small. The variances are
drawn from their posterior (`spread`), as the largest sample variance would be too large. The price is not known exactly
either: the ends of the range have it to the powers 3/2 and 1/2. `samples` is never less than were taken; the range may
be.

**With a precision**, an even split that closes arms when they are known well enough takes every arm to its own stop, as
any other strategy does. So it needs about as many samples as were taken, give or take the scatter of two studies.

**With a precision of sums of means**, the combined mean or contrasts, it takes every arm to the last stop of the sums
that the arm is part of. The samples of each arm that a sum Σ c_k μ_k takes are in proportion to Σ c_k² σ²_k, and the
study shows how many: its half-width is in proportion to sqrt(Σ c_k² s²_k/T_k). The variances are drawn from their
posterior, and so are the s² of the other study, which decide when that one stops.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.inference.arm_intervals import reached
from equipoise.inference.formulas import stopping_power
from equipoise.inference.known import Known, remembered
from equipoise.inference.linear_targets import sums_found
from equipoise.inference.replay import adaptivity
from equipoise.inference.variance_posterior import spread
from equipoise.ledger import looks

if TYPE_CHECKING:
    from equipoise.ledger.goal import Sums

# Draws from the posterior, fewer where there are many arms; and the most arms.
DRAWS: Final = 1000
_NUMBERS: Final = 500_000
MOST_ARMS: Final = 20_000


class Baseline(NamedTuple):
    """
    How many samples an even split would have needed for the same largest standard error, or precision.

    Attributes
    ----------
    samples, low, high
        About how many, at least as many as were taken or cost as much; and a range for nine cases in ten.
    spent
        What as many samples cost; their number without costs.
    """

    samples: float
    low: float
    high: float
    spent: float


@remembered
def baseline(known: Known) -> Baseline | None:
    """Return what an even split would have needed; None where that cannot be said."""
    arms = len(known.arms)
    if not 2 <= arms <= MOST_ARMS or known.strategy == "uniform" or not known.loss > 0:
        return None
    each = math.fsum(known.objective.cost(arms)) / arms
    wanted = known.precision
    if wanted is None:
        found = _with_a_budget(known)
    else:
        found = _with_a_precision(known) if wanted.sums is None else _of_sums(known, wanted.sums)
    if found is None or not np.isfinite(found).all():
        return None
    low, middle, high = found.tolist()
    samples = max(middle, known.price / each)
    return Baseline(samples, min(low, samples), max(high, samples), samples * each)


def _with_a_budget(known: Known) -> Floats | None:
    """Return the ends and the middle of the range of samples with which an even split has the loss of the study."""
    posterior = spread(known)
    if posterior is None:
        return None
    rng, runs = _rng(known), _runs(len(known.arms))
    likely, apart = posterior.draws(runs, rng), posterior.draws(runs, rng, equal=0.0)
    low, middle = np.quantile(_even(known, likely, 1.5), 0.05), np.median(_even(known, likely, 1.0))
    # Above, arms that look alike may differ all the same.
    high = np.quantile(_even(known, apart, 0.5), 0.95)
    return np.array([low, middle, high])


def _rng(known: Known) -> np.random.Generator:
    return np.random.default_rng([known.samples, len(known.arms)])


def _runs(columns: int) -> int:
    """Return how many draws there are of so many numbers."""
    return min(max(_NUMBERS // columns, 50), DRAWS)


def _even(known: Known, variances: Floats, power: float) -> Floats:
    """
    Return how many samples, spread evenly, have the loss of the study, for each row of variances.

    Parameters
    ----------
    result
        The result.
    variances
        A row for each draw.
    power
        Of the price in the loss of a study that was replayed.
    """
    objective, counts, arms = known.objective, known.counts, len(known.arms)
    weighted, price = objective.weight(arms) * variances, adaptivity(known).price
    sizes = np.full(arms, math.inf) if known.populations is None else known.populations
    with np.errstate(divide="ignore", invalid="ignore"):
        if math.isnan(price):
            rest = np.maximum(1 / counts - 1 / sizes, 0) * adaptivity(known).inflations
            loss = _norms(weighted * rest, objective.p)
        else:
            parts = (objective.cost(arms) * weighted) ** objective.exponent
            best = parts.sum(axis=1) ** (1 / objective.exponent) / known.price
            # No less than that of the counts, where others than the strategy have chosen.
            loss = np.maximum(price**power * best, (objective.slopes(variances) * variances / counts).sum(axis=1))
        if known.populations is None:
            return np.asarray(arms * _norms(weighted, objective.p) / loss)
        return _without_replacement(weighted, sizes, objective.p, loss)


def _without_replacement(weighted: Floats, sizes: Floats, p: float, loss: Floats) -> Floats:
    """Return how many samples, spread evenly over populations of these sizes, have these losses."""
    low, high = np.zeros(len(loss)), np.full(len(loss), _largest(weighted, sizes, p, loss))
    for _ in range(60):
        middle = (low + high) / 2
        rest = np.maximum(1 / middle[:, None] - 1 / sizes, 0)
        enough = _norms(weighted * rest, p) <= loss
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.asarray(np.minimum(high[:, None], sizes).sum(axis=1))


def _largest(weighted: Floats, sizes: Floats, p: float, loss: Floats) -> float:
    """Return a number of samples of each arm that is enough for each of these losses."""
    finite = float(sizes[np.isfinite(sizes)].max(initial=1.0))
    endless = np.isinf(sizes)
    return max(finite, float((_norms(weighted[:, endless], p) / loss).max())) if endless.any() else finite


def _norms(values: Floats, p: float) -> Floats:
    """Return the p-norm of each row."""
    top = values.max(axis=1)
    if p == math.inf:
        return np.asarray(top)
    return np.asarray(top * ((values / np.maximum(top, 1e-300)[:, None]) ** p).sum(axis=1) ** (1 / p))


def _with_a_precision(known: Known) -> Floats | None:
    """
    Return the ends and the middle of the range of samples with which a study takes every arm to its own stop.

    The T at which an arm stops scatters as replays of its stop do. Where there are none: it is in proportion to s² to
    the power e, over the square of its mean where the target is a share of that, and has the variance e² T (κ - 1), or
    e² T (κ - 1 + 4c² - 4γc) with the coefficient of variation c.
    """
    posterior, evidence = spread(known), known.evidence
    if posterior is None or evidence is None or known.precision is None or not reached(known):
        return None
    counts = known.counts
    with np.errstate(divide="ignore", invalid="ignore"):
        varies = np.where(known.precision.relative, np.sqrt(known.variances) / known.means, 0.0)
        noise = np.maximum(posterior.noise + 4 * varies * (varies - evidence.skewness), 0.0)
    variances, replayed = stopping_power(known) ** 2 * noise * counts, adaptivity(known).scatter
    if replayed is not None:
        variances = np.where(np.isnan(replayed), variances, replayed**2)
    # That of this study, and that of the other.
    scatter = math.sqrt(2 * float(variances.sum()))
    half = NormalDist().inv_cdf(0.95) * scatter + looks.step(known.samples, len(counts))
    return np.array([known.samples - half, known.samples, known.samples + half])


def _of_sums(known: Known, asked: Sums) -> Floats | None:
    """Return the ends and the middle of the range of samples with which an even split knows all sums well enough."""
    posterior = spread(known)
    if posterior is None or not reached(known) or known.populations is not None:
        return None
    rng, runs, found = _rng(known), _runs(max(asked.weights.shape)), sums_found(known)
    squares, inside, now = asked.weights**2, asked.weights != 0, known.variances
    with np.errstate(divide="ignore", invalid="ignore"):
        # The samples of each arm that a sum takes, for each unit of Σ c² σ².
        takes = (found.margins / found.targets) ** 2 / (squares @ (now / known.counts))
        each = squares @ now * takes
        noise = posterior.noise / np.maximum([each[rows].max(initial=1.0) for rows in inside.T], 2.0)
        seen = posterior.draws(runs, rng) * np.exp(np.sqrt(noise) * rng.standard_normal((runs, len(now))) - noise / 2)
    needed = seen @ squares.T * takes
    all_arms = np.sum([needed[:, rows].max(axis=1, initial=0.0) for rows in inside.T], axis=0)
    low, middle, high = np.quantile(all_arms, [0.05, 0.5, 0.95])
    step = looks.step(known.samples, len(now))
    return np.array([low - step, middle, high + step])
