"""
Drawn problems: as many as wanted, at random, so that strategies meet problems that nobody has tuned them on.

A problem has 2 to 100 arms and 15 to 1,000 samples for each, at most 20,000 in all. One in four is binary. The arms of
the others are of one of eleven families or of up to three in turn, and their standard deviations are equal, scattered,
in a row, or equal except that an eighth of them is louder or quieter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from equipoise.base.inputs import integer
from equipoise.lab.suite import (
    Case,
    Tails,
    claims,
    gaussian,
    heaviest,
    laplace,
    lognormal,
    mixture,
    row,
    student,
    uniform,
)
from equipoise.problem import Bernoulli, Empirical, Exponential, Law, Problem, Rademacher

PROBLEMS = 200


def rare(sd: float) -> Law:
    """Return the law of a value that occurs one time in twenty, and is zero otherwise."""
    return Empirical([0.0] * 19 + [sd / math.sqrt(0.05 * 0.95)])


def spikes(sd: float) -> Law:
    """Return the law of times that vary little, except one in thirty."""
    return mixture((29 / 30, 3 * sd, sd / 8), (1 / 30, 8.5 * sd, sd / 2), points=600)


def humps(sd: float) -> Law:
    """Return the law of a large hump and a small one far away."""
    return mixture((0.9, 0, sd / 2), (0.1, 3 * sd, sd / 2), points=400)


@dataclass(frozen=True)
class Family:
    """A family of laws: one for each standard deviation, or for a number near it, and how heavy their tails are."""

    law: Callable[[float], Law]
    tails: Tails


# Their order, and that of the calls of the generator below, decide which problems a seed draws.
FAMILIES = {
    "gaussian": Family(gaussian, "light"),
    "rademacher": Family(Rademacher, "light"),
    "uniform": Family(uniform, "light"),
    "exponential": Family(Exponential, "exponential"),
    "laplace": Family(laplace, "exponential"),
    "humps": Family(humps, "exponential"),
    "lognormal": Family(lognormal(0.5), "heavy"),
    "student": Family(student, "heavy"),
    "claims": Family(lambda sd: claims(0.8, sd, points=400), "rare"),
    "rare": Family(rare, "rare"),
    "spikes": Family(spikes, "rare"),
}


def deviations(rng: np.random.Generator, arms: int) -> list[float]:
    """Return standard deviations: equal, scattered, geometric, or all equal except an eighth of them."""
    style = rng.integers(5)
    some = np.arange(arms) < max(1, arms // 8)
    if style == 0:
        return [1.0] * arms
    if style == 1:
        return list(np.exp(rng.normal(0, rng.uniform(0.2, 1), arms)))
    if style == 2:
        return list(rng.permutation(row(1, 30 ** rng.uniform(), arms)))
    ratio = 20 ** rng.uniform()
    return list(np.where(some, ratio if style == 3 else 1 / ratio, 1.0))


def draw(rng: np.random.Generator, name: str, why: str) -> Case:
    """Return the next problem; the name is continued by its families, arms and budget."""
    arms = round(2 * 50 ** rng.uniform())
    budget = round(min(20_000, arms * 15 * (1000 / 15) ** rng.uniform()))
    if rng.uniform() < 0.25:
        ps = rng.uniform(0.02, 0.98, arms) if rng.uniform() < 0.5 else 0.002 * 250 ** rng.uniform(size=arms)
        coins = Problem([Bernoulli(p) for p in ps])
        return Case(f"{name}-binary-{arms}-{budget}", why, coins, budget, "light", "binary")
    few = int(rng.integers(1, 4)) if rng.uniform() < 0.4 else 1
    picked = list(rng.choice(list(FAMILIES), few, replace=False))
    laws = [FAMILIES[picked[k % few]].law(float(sd)) for k, sd in enumerate(deviations(rng, arms))]
    tails = heaviest(FAMILIES[each].tails for each in picked)
    return Case(f"{name}-{'-'.join(picked)}-{arms}-{budget}", why, Problem(laws), budget, tails)


def drawn(seed: int, problems: int = PROBLEMS) -> tuple[Case, ...]:
    """
    Return problems that this seed draws; more of them begin with the same ones.

    Examples
    --------
    >>> [case.name for case in drawn(2026, 3)]
    ['u0-exponential-rare-4-882', 'u1-rare-26-1365', 'u2-binary-6-1708']
    """
    seed, problems = integer("seed", seed, 0), integer("problems", problems, 1)
    rng = np.random.default_rng(seed)
    return tuple(draw(rng, f"u{i}", f"drawn with seed {seed}") for i in range(problems))
