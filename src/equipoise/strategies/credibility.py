"""
Credibility for binary arms: how far an arm's own answers are believed, and how far those of all arms.

An arm with answers 0 and 1 has the variance p(1 - p), and everything else about its law follows from it. So no shape
has to be learned. What is left is Bühlmann's question: the arms' variances differ by themselves and by chance, and an
arm's own variance is worth more the more of the difference is real.

References
----------
.. [1] H. Bühlmann (1967), Experience rating and credibility. ASTIN Bulletin 4.
.. [2] H. Jeffreys (1946), An invariant form for the prior probability in estimation problems. Proceedings of the Royal
   Society A 186.
"""

from __future__ import annotations


def variance(count: float, m2: float, mean_variance: float, samples: float) -> float:
    """
    Return the variance to plan with for a binary arm.

    It is the posterior mean of p(1 - p) under a Beta(a, a) prior and `samples` pseudo-observations κ of the mean
    variance s̄², with s ones and f zeros in T samples::

        v = ((a + s)(a + f)/(T + 2a) + κ s̄²) / (T + 2a + 1 + κ)
        a = 1/2 + 3/2 · T s̄²/(1 + T s̄²)

    a grows from Jeffreys' 1/2 to 2 as soon as a typical arm has shown some ones and zeros (docs/explanation/auto.md).
    """
    typical = count * mean_variance
    a = 0.5 + 1.5 * typical / (1 + typical)
    # s f = T M2, so that only T and M2 are needed.
    return ((a * a + a * count + count * m2) / (count + 2 * a) + samples * mean_variance) / (
        count + 2 * a + 1 + samples
    )


def share(count: float, m2: float) -> tuple[float, float, float]:
    """Return the unbiased variance of a binary arm, its square, and the variance of its sampling error."""
    v = m2 / (count - 1)
    return v, v * v, v * max(1 - 4 * v, 0.0) / count + 2 * v * v / (count * (count - 1))


def pool(total: float, squares: float, noise: float, arms: float) -> tuple[float, float]:
    """
    Return the mean variance s̄² and the pseudo-observations κ of it, from the sums over the arms::

        τ² = (Σ (s² - s̄²)² - noise + s̄⁴/5) / K          how much the arms' variances differ by themselves
        κ = (s̄² - 4 (s̄⁴ + τ²)) / τ²                      E[v (1 - 4v)], the chance error of one sample, over it

    The s̄⁴/5 is one more arm, a priori: if p is uniform on (0, 1), the variance of p(1 - p) is a fifth of its mean
    squared.
    """
    mean = total / max(arms, 1.0)
    prior = mean * mean / 5
    real = max(squares - arms * mean * mean - noise, 0.0)
    spread = (real + prior) / max(arms, 1.0)
    chance = max(mean - 4 * (mean * mean + spread), 0.0)
    return mean, chance / spread if spread > 0 else 0.0
