"""CH-AS: the paper's Section 3 and Appendix A. Samples lie in [0, 1] throughout."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from equipoise.base.arrays import Floats
from equipoise.base.errors import InvalidInput
from equipoise.strategies.ch_as import default_delta, radius
from equipoise.theory import assumptions


def lemma1_radius(t: float, delta: float) -> float:
    """
    Return the radius of Lemma 1, 3 sqrt(log(1/δ)/(2t)).

    On the event of Lemma 1 the biased variance of t samples is at most this far from σ². Proposition 1 says the same at
    a random number of pulls.
    """
    assumptions.at_least(t=(t, 1))
    assumptions.in_unit_interval(delta)
    return radius(t, delta)


def lemma1_event(samples: npt.ArrayLike, variances: npt.ArrayLike, delta: float) -> bool:
    """
    Whether the event ξ^CH_{K,n}(δ) of Lemma 1 holds for K rows of n samples.

    It holds if the biased variance of the first t samples of every arm is within `lemma1_radius` of σ², for all t <= n.
    """
    problem = assumptions.variances(variances, most=0.25)
    assumptions.in_unit_interval(delta)
    array = assumptions.samples(samples, problem.K, 0.0, 1.0)
    t = np.arange(1, array.shape[1] + 1)
    biased = (array**2).cumsum(axis=1) / t - (array.cumsum(axis=1) / t) ** 2
    return bool((np.abs(biased - problem.values[:, None]) <= radius(1.0, delta) / np.sqrt(t)).all())


def lemma1_probability(n: int, K: int, delta: float) -> float:
    """Return 1 - 4nKδ, a lower bound on the probability of the event of Lemma 1."""
    assumptions.positive(n=n, K=K)
    assumptions.in_unit_interval(delta)
    return max(0.0, 1 - 4 * n * K * delta)


def lemma1_bounds(variances: npt.ArrayLike, n: int, delta: float) -> tuple[Floats, Floats]:
    """
    Return the bounds of Lemma 1 on the pulls T_{k,n} of CH-AS, on its event.

    For n >= 5K::

        T*_k - λ_k G  <=  T_{k,n}  <=  T*_k + G,      G = 12 sqrt(n log(1/δ)) / (Σ λ_min^{3/2}) + 4K
    """
    problem = assumptions.variances(variances, most=0.25)
    assumptions.budget(n, problem.K)
    assumptions.in_unit_interval(delta)
    gap = 12 * math.sqrt(n * math.log(1 / delta)) / (problem.Sigma * problem.lambda_min**1.5) + 4 * problem.K
    pulls = n * problem.lambdas
    return pulls - problem.lambdas * gap, pulls + gap


def theorem1(variances: npt.ArrayLike, n: int) -> float:
    """
    Return the bound of Theorem 1 on the regret of CH-AS.

    With δ = n^{-5/2} and n >= 5K the regret is at most::

        39 sqrt(log n) / (n^{3/2} λ_min^{5/2}) + 2.9e3 (log n)^{3/2} / (n² λ_min^{11/2}) · (1 + Σ^{-5/2})

    The last line of its proof has two more terms, which the theorem as stated omits.
    """
    problem = assumptions.variances(variances, most=0.25)
    assumptions.at_least(K=(problem.K, 2))
    assumptions.budget(n, problem.K)
    first = 39 * math.sqrt(math.log(n)) / (n**1.5 * problem.lambda_min**2.5)
    second = 2.9e3 * math.log(n) ** 1.5 / (n**2 * problem.lambda_min**5.5) * (1 + problem.Sigma**-2.5)
    return first + second


def conjectured_regret(lambda_min: float, n: float, fast: float = 1.0, slow: float = 1.0) -> float:
    """
    Return the conjectured bound on the regret of CH-AS (Remark 3 and Section 5.1).

    Up to logarithms it is::

        min( fast · λ_min^{-5/2} n^{-3/2},  slow · n^{-4/3} )

    The constants are not known; with both at 1 the rates cross at n = λ_min^{-15}. λ_min = 0 leaves the slow rate.
    """
    if not 0 <= lambda_min <= 1:
        raise InvalidInput(f"lambda_min must be between 0 and 1, got {lambda_min!r}")
    assumptions.positive(n=n, fast=fast, slow=slow)
    quick = fast * lambda_min**-2.5 * n**-1.5 if lambda_min > 0 else math.inf
    return min(quick, slow * n ** (-4 / 3))


def remark3_pulls(n: float, delta: float | None = None, variance: float = 0.25) -> float:
    """
    Return how often CH-AS pulls an arm of zero variance (Remark 3).

    The other arm has the variance σ².

    It is the T at which the two indices are equal if each variance is estimated exactly::

        3 sqrt(log(1/δ)/(2T)) / T  =  (σ² + 3 sqrt(log(1/δ)/(2(n-T)))) / (n-T)

    The paper conjectures that it grows as n^{2/3}; `remark3_leading` is the limit. The default δ is n^{-5/2}.
    """
    bonus = _remark3_bonus(n, delta, variance)
    few, many = 0.0, n
    for _ in range(200):  # bisection: the left side falls and the right side rises with T
        T = (few + many) / 2
        if bonus * (n - T) ** 1.5 > (variance * math.sqrt(n - T) + bonus) * T**1.5:
            few = T
        else:
            many = T
    return few


def remark3_leading(n: float, delta: float | None = None, variance: float = 0.25) -> float:
    """
    Return the limit of `remark3_pulls` for large n.

    It is D n^{2/3} with D = (3 sqrt(log(1/δ)/2) / σ²)^{2/3}.
    """
    return (_remark3_bonus(n, delta, variance) / variance) ** (2 / 3) * n ** (2 / 3)


def remark3_regret(n: float, delta: float | None = None, variance: float = 0.25) -> float:
    """
    Return the regret of CH-AS that follows from `remark3_pulls`.

    It is σ²/(n-T) - σ²/n, about σ² D n^{-4/3} for large n.
    """
    overpull = remark3_pulls(n, delta, variance)
    return variance / (n - overpull) - variance / n


def _remark3_bonus(n: float, delta: float | None, variance: float) -> float:
    assumptions.variances([variance], most=0.25)
    assumptions.budget(n, 2)
    delta = default_delta(n) if delta is None else delta
    assumptions.in_unit_interval(delta)
    return radius(1.0, delta)


def remark3_gafs_max_pulls(n: float, alpha: float = 1.0) -> float:
    """Return α sqrt(n) + 1, GAFS-MAX's pulls of an arm of zero variance (Remark 3)."""
    assumptions.positive(n=n, alpha=alpha)
    return alpha * math.sqrt(n) + 1
