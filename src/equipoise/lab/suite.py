"""
The problem suite: named problems on which strategies are compared.

They cover what makes it hard to share a budget well: few arms and many, few samples per arm and many, equal variances
and very unequal ones, light tails and heavy ones, samples that hide their variance (coins, rare events), and real data.
Each has its exact best loss, Sigma/n, and a reason to be here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.base.inputs import did_you_mean, integer, listed, shown
from equipoise.compiled import jit
from equipoise.problem import (
    Bernoulli,
    Constant,
    Empirical,
    Exponential,
    Gaussian,
    Laplace,
    Law,
    LogNormal,
    Problem,
    Rademacher,
    StudentT,
    Uniform,
)
from equipoise.strategies import Support, check_support

Tails = Literal["light", "exponential", "heavy", "rare"]


@dataclass(frozen=True)
class Case:
    """
    A problem with a budget, and why it is in the suite.

    Attributes
    ----------
    name, why
        Its name, and what it is meant to show.
    problem, budget
        The arms and the number of samples.
    support
        What a study of it declares: "binary", (low, high) or None.
    tails
        "light" (bounded or Gaussian), "exponential" (no heavier than that), "heavy", or "rare" (a small share of the
        samples of an arm, apart from the others, has most of its variance).
    """

    name: str
    why: str
    problem: Problem
    budget: int
    tails: Tails
    support: Support = None

    @classmethod
    def of(cls, problem: Problem, name: str, budget: int, support: Support = None) -> Case:
        """
        Return the case of a problem, with laws that can be simulated.

        Its tails are "light" where no arm has a kurtosis above 3, "exponential" up to 9, and "heavy" otherwise.
        """
        if not problem.Sigma > 0:
            raise ValueError(f"a problem must have an arm whose samples vary, got {shown(problem)}")
        known = problem.simulable()
        variances = known.variances
        kurtosis = max(fourth / v**2 for fourth, v in zip(known.fourths, variances, strict=True) if v > 0)
        # 1e-9 is the rounding of a Gaussian's.
        tails: Tails = "light" if kurtosis <= 3 + 1e-9 else "exponential" if kurtosis <= 9 + 1e-9 else "heavy"
        checked = check_support(support)
        return cls(name, "", known, integer("budget", budget, 1), "light" if checked == "binary" else tails, checked)

    @property
    def kind(self) -> Literal["binary", "continuous"]:
        """The kind of samples: 0 and 1, and declared so, or numbers."""
        return "binary" if self.support == "binary" else "continuous"

    @property
    def optimal_loss(self) -> float:
        """Sigma/n, the largest loss under the best allocation."""
        return self.problem.optimal_loss(self.budget)

    @property
    def even_loss(self) -> float:
        """The largest loss of an even split, whose counts are fixed: the first arms get what is left over."""
        each, left = divmod(self.budget, len(self.problem))
        return float((self.problem.variances / (each + (np.arange(len(self.problem)) < left))).max())

    @property
    def limit(self) -> float:
        """
        The limit of the excess n R/Sigma as n grows, to second order, for the best index known.

        It is the sum over arms of (1 - lambda) (5 - kurtosis + (6 - 2 lambda) skewness²), over n
        (docs/explanation/auto.md): 2(K-1)/n for Gaussian arms. For long symmetric tails it is below zero, as adaptive
        sampling gains more by chance than it loses.
        """
        each = (
            (1 - share) * (5 - law.fourth / law.variance**2 + (6 - 2 * share) * law.third**2 / law.variance**3)
            for law, share in zip(self.problem.arms, self.problem.lambdas, strict=True)
            if law.variance > 0
        )
        return math.fsum(each) / self.budget

    @property
    def per_arm(self) -> float:
        """Samples per arm, n/K."""
        return self.budget / len(self.problem)

    @property
    def least_ones(self) -> float:
        """The smallest n p (1-p)/K of all arms."""
        return float(self.problem.variances.min()) * self.per_arm


def heaviest(tails: Iterable[Tails]) -> Tails:
    """Return the heaviest of some tails; rare large values count as heavier than any."""
    return max(tails, key=get_args(Tails).index)


def row(low: float, high: float, arms: int) -> list[float]:
    """Return a geometric sequence from low to high with one number for each arm."""
    return [low * (high / low) ** (k / (arms - 1)) for k in range(arms)]


@jit
def _erf(x: Floats) -> Floats:
    found = np.empty_like(x)
    for i in range(len(x)):
        found[i] = math.erf(x[i])
    return found


@cache
def mixture(*parts: tuple[float, float, float], points: int = 2000) -> Empirical:
    """
    Return a mixture of normals (share, mean, standard deviation), as the law of quantiles at evenly spaced levels.

    Its moments are exactly those of the quantiles, of which there are `points`.
    """
    levels = (np.arange(points) + 0.5) / points
    ends = [end for _, mean, sd in parts for end in (mean - 9 * sd, mean + 9 * sd)]
    low, high = np.full(points, min(ends)), np.full(points, max(ends))
    for _ in range(60):
        middle = (low + high) / 2
        below = sum(share * 0.5 * (1 + _erf((middle - mean) / sd / math.sqrt(2))) for share, mean, sd in parts)
        low, high = np.where(below < levels, middle, low), np.where(below < levels, high, middle)
    return Empirical((low + high) / 2)


@cache
def claims(zero: float, scale: float, points: int = 2000) -> Empirical:
    """Return what an insurer pays: nothing with probability `zero`, else an exponential amount."""
    paid = round(points * (1 - zero))
    return Empirical([0.0] * (points - paid) + [-scale * math.log(1 - (i + 0.5) / paid) for i in range(paid)])


def of(law: Callable[[float], Law], sds: Iterable[float]) -> list[Law]:
    """Return one arm of a family for each standard deviation."""
    return [law(sd) for sd in sds]


def gaussian(sd: float) -> Law:
    return Gaussian(0, sd * sd)


def uniform(sd: float) -> Law:
    return Uniform(-sd * math.sqrt(3), sd * math.sqrt(3))


def laplace(sd: float) -> Law:
    return Laplace(0, sd * sd)


def student(sd: float) -> Law:
    return StudentT(5, sd * math.sqrt(3 / 5))


def lognormal(log_sd: float) -> Callable[[float], Law]:
    """Return the lognormal laws whose logarithms have this standard deviation, by their own standard deviation."""
    unit = math.sqrt(math.expm1(log_sd**2) * math.exp(log_sd**2))
    return lambda sd: LogNormal(math.log(sd / unit), log_sd)


def mixed(sds: Sequence[float]) -> list[Law]:
    """Return Gaussian, Rademacher, uniform, exponential and Laplace arms in turn."""
    families: list[Callable[[float], Law]] = [gaussian, Rademacher, uniform, Exponential, laplace]
    return [families[k % len(families)](sd) for k, sd in enumerate(sds)]


def paper_right(law: Callable[[float], Law], inverse: float) -> list[Law]:
    """Return the arms of the paper's right-hand figure: a Gaussian one and one of variance 1, for 1/lambda_min."""
    return [Gaussian(0, inverse - 1), law(1.0)]


@cache
def _generated() -> list[Case]:
    light: Tails = "light"
    exponential: Tails = "exponential"
    heavy: Tails = "heavy"
    rare: Tails = "rare"
    table: list[tuple[str, str, list[Law], int, Tails]] = [
        # Gaussian arms
        ("gauss-2", "the paper's left-hand figure", [Gaussian(0, 4), Gaussian(0, 1)], 1000, light),
        ("gauss-2-short", "two arms, 15 samples each", [Gaussian(0, 4), Gaussian(0, 1)], 30, light),
        ("gauss-2-long", "two arms, 1,000 samples each", [Gaussian(0, 4), Gaussian(0, 1)], 2000, light),
        ("gauss-2-equal", "nothing to gain: what caution costs", [gaussian(1), gaussian(1)], 100, light),
        ("gauss-2-100", "variances 100 to 1 on a small budget", [gaussian(10), gaussian(1)], 200, light),
        ("gauss-2-10000", "variances 10,000 to 1", [gaussian(100), gaussian(1)], 2000, light),
        ("gauss-5-row", "a row of five, 200 samples each", of(gaussian, row(1, 10, 5)), 1000, light),
        ("gauss-10-equal", "ten equal arms: what caution costs", of(gaussian, [1] * 10), 500, light),
        ("gauss-10-row", "standard deviations 1 to 10, 50 samples each", of(gaussian, row(1, 10, 10)), 500, light),
        ("gauss-10-loud", "one loud arm among quiet ones", of(gaussian, [10] + [1] * 9), 500, light),
        ("gauss-10-quiet", "one quiet arm among loud ones", of(gaussian, [0.1] + [1] * 9), 2000, light),
        ("gauss-20-wide", "variances 10,000 to 1 in a row", of(gaussian, row(1, 100, 20)), 4000, light),
        ("gauss-50-line", "many arms, 50 samples each", of(gaussian, np.linspace(1, 3, 50)), 2500, light),
        ("gauss-100-equal", "100 equal arms, 15 samples each", of(gaussian, [1] * 100), 1500, light),
        ("gauss-100-row", "100 arms, variances 100 to 1", of(gaussian, row(1, 10, 100)), 10_000, light),
        # Arms without any variance
        ("zero-2", "an arm that never varies", [gaussian(1), Constant(3)], 200, light),
        ("zero-6", "two of six arms never vary", [*of(gaussian, [1, 2, 3, 4]), Constant(0), Constant(5)], 600, light),
        ("zero-10-rademacher", "coins and constants", [*of(Rademacher, [1] * 8), Constant(0), Constant(1)], 300,
         light),
        # Rademacher arms: the first j draws agree with probability 2^(1-j), and the sample variance is then zero
        ("rademacher-5", "the paper's right-hand figure, 1/lambda_min = 5", paper_right(Rademacher, 5), 1000, light),
        ("rademacher-20", "the same at 20, where B-AS starves", paper_right(Rademacher, 20), 1000, light),
        ("rademacher-100", "the same at 100", paper_right(Rademacher, 100), 1000, light),
        ("rademacher-2-short", "two coins, 15 throws each", of(Rademacher, [1, 1]), 30, light),
        ("rademacher-10-row", "ten coins, stakes 1 to 10", of(Rademacher, row(1, 10, 10)), 500, light),
        ("rademacher-100-short", "100 coins, 15 throws each", of(Rademacher, [1] * 100), 1500, light),
        ("rademacher-quiet", "quiet coins among loud normals", of(Rademacher, [0.3] * 5) + of(gaussian, [1] * 5), 1000,
         light),
        # Uniform arms
        ("uniform-2", "short tails, variances 25 to 1", of(uniform, [5, 1]), 100, light),
        ("uniform-10-row", "short tails in a row", of(uniform, row(1, 10, 10)), 1000, light),
        ("uniform-50-short", "50 arms, 20 samples each", of(uniform, np.linspace(1, 4, 50)), 1000, light),
        # Exponential arms: the sample variance is unsure by sqrt(8/T)
        ("exponential-2", "skewed, variances 4 to 1", of(Exponential, [2, 1]), 100, exponential),
        ("exponential-2-25", "skewed, variances 25 to 1", of(Exponential, [5, 1]), 1000, exponential),
        ("exponential-2-400", "skewed, variances 400 to 1", of(Exponential, [20, 1]), 1000, exponential),
        ("exponential-2-long", "skewed, 1,000 samples each", of(Exponential, [3, 1]), 2000, exponential),
        ("exponential-3-short", "skewed, 15 samples each", of(Exponential, [1, 2, 3]), 45, exponential),
        ("exponential-10-equal", "ten equal skewed arms", of(Exponential, [1] * 10), 500, exponential),
        ("exponential-10-row", "skewed, scales 1 to 10", of(Exponential, row(1, 10, 10)), 500, exponential),
        ("exponential-50-line", "many skewed arms", of(Exponential, np.linspace(1, 3, 50)), 2500, exponential),
        ("exponential-100-short", "100 skewed arms, 15 samples each", of(Exponential, row(1, 3, 100)), 1500,
         exponential),
        ("exponential-20", "the paper's right-hand figure with a skewed quiet arm", paper_right(Exponential, 20), 1000,
         exponential),
        # Laplace arms
        ("laplace-2", "longer tails, variances 4 to 1", of(laplace, [2, 1]), 200, exponential),
        ("laplace-10-row", "longer tails in a row", of(laplace, row(1, 10, 10)), 500, exponential),
        ("laplace-30-line", "thirty arms, 100 samples each", of(laplace, np.linspace(1, 5, 30)), 3000, exponential),
        # Heavy tails
        ("lognormal-5-mild", "logarithms with sd 0.5", of(lognormal(0.5), row(1, 5, 5)), 500, heavy),
        ("lognormal-2", "logarithms with sd 1: most of the variance in few samples", of(lognormal(1), [2, 1]), 400,
         heavy),
        ("lognormal-5", "the same, five arms and 1,000 samples each", of(lognormal(1), row(1, 5, 5)), 5000, heavy),
        ("student-2", "t with 5 degrees", of(student, [2, 1]), 200, heavy),
        ("student-10-row", "t with 5 degrees in a row", of(student, row(1, 10, 10)), 2000, heavy),
        ("student-50-short", "t with 5 degrees, 20 samples each", of(student, np.linspace(1, 3, 50)), 1000, heavy),
        # Mixtures
        ("contaminated-4", "one sample in twenty from a wider normal",
         [mixture((0.95, 0, sd), (0.05, 0, 5 * sd)) for sd in (1, 1.5, 2, 3)], 400, heavy),
        ("contaminated-2-rare", "one sample in a hundred carries half the variance",
         [mixture((0.99, 0, sd), (0.01, 0, 10 * sd)) for sd in (1, 2)], 1000, heavy),
        ("two-humps-6", "two humps, nearly coins",
         [mixture((0.5, -sd, sd / 5), (0.5, sd, sd / 5)) for sd in row(1, 6, 6)], 300, light),
        ("skewed-humps-6", "a small hump far away",
         [mixture((0.9, 0, sd), (0.1, 6 * sd, sd)) for sd in row(1, 4, 6)], 600, exponential),
        ("claims-5", "nothing in four cases of five, else exponential", [claims(0.8, s) for s in row(1, 5, 5)], 1000,
         rare),
        # Families side by side
        ("mixed-10-row", "ten mixed arms, sd 1 to 10, 50 samples each", mixed(row(1, 10, 10)), 500, exponential),
        ("mixed-10-reversed", "the same, the families the other way round", mixed(row(10, 1, 10)), 500, exponential),
        ("mixed-10-short", "the same on 15 samples each", mixed(row(1, 10, 10)), 150, exponential),
        ("mixed-10-long", "the same on 1,000 samples each", mixed(row(1, 10, 10)), 10_000, exponential),
        ("mixed-5-equal", "five families of one variance", mixed([1] * 5), 250, exponential),
        ("mixed-30-line", "thirty mixed arms, 200 samples each", mixed(list(np.linspace(1, 4, 30))), 6000,
         exponential),
        ("mixed-100-row", "a hundred mixed arms, 50 samples each", mixed(row(1, 10, 100)), 5000, exponential),
        ("mixed-3-wide", "variances 10,000, 100 and 1", [Exponential(100), gaussian(10), Rademacher(1)], 600,
         exponential),
        # Moderate problems on long budgets, where a strategy should come close to the limit
        ("gauss-5-long", "1,000 samples each", of(gaussian, row(1, 2, 5)), 5000, light),
        ("gauss-10-equal-long", "ten equal arms, 500 samples each", of(gaussian, [1] * 10), 5000, light),
        ("gauss-30-long", "thirty arms, 200 samples each", of(gaussian, row(1, 2, 30)), 6000, light),
        ("uniform-5-long", "short tails, 500 samples each", of(uniform, row(1, 3, 5)), 2500, light),
        ("rademacher-5-long", "coins, 300 throws each", of(Rademacher, row(1, 3, 5)), 1500, light),
        ("two-humps-6-long", "two humps, 500 samples each",
         [mixture((0.5, -sd, sd / 5), (0.5, sd, sd / 5)) for sd in row(1, 3, 6)], 3000, light),
        ("laplace-5-long", "longer tails, 500 samples each", of(laplace, row(1, 3, 5)), 2500, exponential),
        ("exponential-5-long", "skewed, 1,000 samples each", of(Exponential, row(1, 2, 5)), 5000, exponential),
        ("mixed-5-long", "five families, 1,000 samples each", mixed(row(1, 2, 5)), 5000, exponential),
        ("student-5-long", "t with 5 degrees, 1,000 samples each", of(student, row(1, 2, 5)), 5000, heavy),
        ("contaminated-4-long", "rare wide samples, 1,000 each",
         [mixture((0.95, 0, sd), (0.05, 0, 5 * sd)) for sd in (1, 1.5, 2, 3)], 4000, heavy),
    ]  # fmt: skip
    cases = [Case(name, why, Problem(arms), budget, tails) for name, why, arms, budget, tails in table]
    # How many gave 2, 3, 4 and 5 stars for each that gave one.
    ratings = [(1, 2, 3, 5), (5, 1, 1, 9), (0, 0, 3, 30), (1, 5, 1, 0), (2, 2, 2, 2), (0, 1, 9, 20)]
    ratings += [(4, 9, 4, 1), (0, 0, 0, 24)]
    stars = [Empirical([1, *[2] * a, *[3] * b, *[4] * c, *[5] * d]) for a, b, c, d in ratings]
    cases.append(Case("stars-8", "ratings from 1 to 5, declared so", Problem(stars), 400, light, (1, 5)))
    inside: list[Law] = [
        Uniform(0, 1),
        Uniform(0.4, 0.6),
        Bernoulli(0.5),
        Bernoulli(0.05),
        Uniform(0, 0.1),
        Constant(0.7),
    ]
    cases.append(Case("bounded-6", "scores in [0, 1] of every shape, declared so", Problem(inside), 900, light, (0, 1)))
    cases += [
        Case(name, why, Problem([Bernoulli(p) for p in ps]), budget, light, "binary")
        for name, why, ps, budget in [
            ("binary-2", "a half and a tenth", [0.5, 0.1], 120),
            ("binary-2-rare", "a half and one in a hundred", [0.5, 0.01], 1100),
            ("binary-2-rarest", "a half and one in five hundred", [0.5, 0.002], 5100),
            ("binary-2-both-rare", "one in five hundred and one in twenty", [0.002, 0.05], 6000),
            ("binary-3-decades", "each ten times rarer than the last", [0.2, 0.02, 0.002], 7600),
            ("binary-4-equal", "nothing to gain, 25 samples each", [0.3] * 4, 100),
            ("binary-5-high", "nearly certain answers", [0.9, 0.95, 0.98, 0.99, 0.998], 13_000),
            ("binary-6-poll", "six products of a poll", [0.5, 0.35, 0.2, 0.1, 0.05, 0.02], 3000),
            ("binary-10-half", "ten fair coins, 30 throws each", [0.5] * 10, 300),
            ("binary-10-spread", "from 0.02 to 0.98", list(np.linspace(0.02, 0.98, 10)), 3000),
            ("binary-10-row", "from one in a hundred to a half", row(0.01, 0.5, 10), 6000),
            ("binary-20-one-half", "one even question among one-sided ones", [0.5] + [0.02] * 19, 6000),
            ("binary-20-one-rare", "one one-sided question among even ones", [0.02] + [0.5] * 19, 6000),
            ("binary-50-accuracy", "accuracies of a model on fifty tasks", list(np.linspace(0.5, 0.97, 50)), 9000),
            ("binary-100", "a hundred questions, 60 answers each", list(np.linspace(0.1, 0.9, 100)), 6000),
            ("binary-2-short", "a half and a tenth, 15 samples each", [0.5, 0.1], 30),
            ("binary-2-sure", "an answer that is always yes", [0.5, 1.0], 200),
            ("binary-10-rare-short", "too few answers to see a rare one", row(0.002, 0.05, 10), 1500),
            ("binary-100-rare-short", "most arms never answer 1", [0.3] * 20 + [0.005] * 80, 3000),
        ]
    ]  # fmt: skip
    return cases


@cache
def _data() -> list[Case]:
    """Problems on data of statsmodels and scikit-learn, resampled."""
    try:
        from sklearn.datasets import load_digits
        from statsmodels.datasets import engel, randhie
    except ModuleNotFoundError:
        return []

    def groups(values: Any, by: Any) -> Problem:
        return Problem([Empirical(np.asarray(values, float)[np.asarray(by) == g]) for g in sorted(set(by))])

    budgets = engel.load().data
    quintile = np.argsort(np.argsort(np.asarray(budgets["income"]), kind="stable")) * 5 // len(budgets)
    food = groups(budgets["foodexp"], quintile)
    health = randhie.load().data
    visits = groups(health["mdvis"], np.round(np.exp(np.asarray(health["lncoins"]))))
    digits = load_digits()
    ink = groups(digits.data.sum(axis=1), digits.target)
    return [
        Case("engel-5", "food spending by quintile of income, 50 households each", food, 250, "exponential"),
        Case("engel-5-long", "the same, 200 households each", food, 1000, "exponential"),
        Case("visits-5", "doctor visits by insurance plan: counts, many zeros, long tails", visits, 1000, "heavy"),
        Case("visits-5-long", "the same, 1,000 persons each", visits, 5000, "heavy"),
        Case("digits-10", "ink of handwritten digits by class, 50 each", ink, 500, "light"),
        Case("digits-10-long", "the same, 200 each", ink, 2000, "light"),
    ]


@cache
def suite() -> tuple[Case, ...]:
    """Return all problems; those on real data only where statsmodels and scikit-learn are installed."""
    return (*_generated(), *_data())


def case(name: str) -> Case:
    """Return the problem of this name."""
    for each in suite():
        if each.name == name:
            return each
    raise ValueError(unknown(name))


def unknown(name: str) -> str:
    """Return the message about a name that no problem has."""
    names = [each.name for each in suite()]
    some = f"; its {len(names)} problems are {listed(names, 3)}, and patterns such as 'binary-*' find several"
    return f"there is no problem {name!r} in the suite{did_you_mean(name, names) or some}"


def left_out() -> str:
    """Return which problems are missing and what to install for them; an empty string if all are there."""
    if _data():
        return ""
    return "the six problems on real data are left out; to add them: pip install statsmodels scikit-learn"
