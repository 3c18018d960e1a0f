"""
Confidence sequences for contrasts Σ c_k μ_k, by one mixture over the arms of the contrast together.

The asymptotic kind is here, and fixed-n intervals; `contrast_betting` has arms with a bounded support.

Write z_k = T_k (μ̂_k - μ_k)/σ_k, a sum of T_k steps of variance one. For any numbers θ_k::

    exp( Σ_k θ_k z_k - θ_k² T_k/2 )

is, for Gaussian samples, a martingale whatever arm is sampled next, because each sample changes one factor and the
strategy does not know it yet. So is its mean over θ with a Gaussian law of covariance P fixed beforehand, and by
Ville's inequality it reaches 1/α at any time with probability at most α. With V = diag(T) this says that at all
times::

    z' (P⁻¹ + V)⁻¹ z <= 2 log(1/α) + log det(I + PV)

an ellipsoid of errors, in as many dimensions as there are arms in the contrast. The contrast's error is the linear form
d'z with d_k = c_k σ_k/T_k, and is at most::

    sqrt( d' (P⁻¹ + V) d · (2 log(1/α) + log det(I + PV)) )

P decides in which direction the ellipsoid is narrow. It is ρ² ((κ/m) I + (1 - κ/m) e e') for m arms, with e the unit
vector along c: ρ² is that of the arms' own intervals, most of it along e, and enough of it to the sides for allocations
other than that which e stands for. d is along e if T_k is in proportion to σ_k. For one arm this is the interval of
`asymptotic`.

References
----------
.. [1] H. Robbins (1970), Statistical methods related to the law of the iterated logarithm. Annals of Mathematical
   Statistics 41.
.. [2] S. R. Howard, A. Ramdas, J. McAuliffe, J. Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence
   sequences. Annals of Statistics 49.
.. [3] I. Waudby-Smith, D. Arbour, R. Sinha, E. H. Kennedy, A. Ramdas (2024), Time-uniform central limit theory and
   asymptotic confidence sequences. Annals of Statistics 52.
.. [4] B. L. Welch (1947), The generalization of 'Student's' problem when several different population variances are
   involved. Biometrika 34.
.. [5] R. G. Newcombe (1998), Interval estimation for the difference between independent proportions. Statistics in
   Medicine 17; for contrasts, G. Y. Zou, A. Donner (2008), Construction of confidence limits about effect measures.
   Statistics in Medicine 27.
"""

from __future__ import annotations

import numpy as np

from equipoise.base.arrays import Bools, Floats
from equipoise.intervals.fixed_n import student_quantile

# κ: the share of ρ² that is spread evenly over m arms is κ/m.
KAPPA = 0.6


def asymptotic(
    weights: Floats, clocks: Floats, deviations: Floats, rho2: float, alpha: float, known: Bools | None = None
) -> Floats:
    """
    Return the half-widths of contrasts at asymptotic level 1 - alpha.

    Parameters
    ----------
    weights, clocks, deviations
        c, T and σ, with a row for each contrast and a column for each of its arms.
    rho2
        ρ², as `asymptotic.settings` has it.
    known
        Which arms' means are known exactly; their T is that of the last moment at which they were not.
    """
    m = weights.shape[-1]
    sides = rho2 * KAPPA / m
    along = rho2 - sides
    # In units of the largest, whose squares could be no floats.
    unit = np.abs(weights).max(-1, keepdims=True) * _largest(deviations)
    e = weights / np.hypot.reduce(weights, axis=-1, keepdims=True)
    d = weights / unit * deviations / clocks
    if known is not None:
        d = np.where(known, 0.0, d)
    spread = 1 + sides * clocks
    logdet = np.log(spread).sum(-1) + np.log1p(along * (e**2 * clocks / spread).sum(-1))
    form = (d**2 * (1 / sides + clocks)).sum(-1) - along / (sides * rho2) * (e * d).sum(-1) ** 2
    return np.asarray(unit[..., 0] * np.sqrt(np.maximum(form, 0) * (logdet - 2 * np.log(alpha))))


def _largest(numbers: Floats) -> Floats:
    """Return the largest of each row, 1 where that is 0."""
    found = numbers.max(-1, keepdims=True)
    return np.where(found > 0, found, 1.0)


def box(weights: Floats, low: Floats | float, high: Floats | float) -> tuple[Floats, Floats]:
    """Return the ends of contrasts from those of their arms, which hold whenever all of the arms' do."""
    ends = np.array([weights * low, weights * high])
    return ends.min(0).sum(-1), ends.max(0).sum(-1)


def welch(weights: Floats, counts: Floats, variances: Floats, alpha: float) -> Floats:
    """Return the half-widths of Welch's intervals at level 1 - alpha; counts must be at least 2."""
    errors = np.abs(weights) * np.sqrt(variances / counts)
    quantiles = [student_quantile(df, alpha) for df in np.ravel(freedom(errors, counts))]
    error = np.hypot.reduce(errors, axis=-1)
    return np.asarray(quantiles).reshape(error.shape) * error


def freedom(errors: Floats, counts: Floats) -> Floats:
    """Return Welch and Satterthwaite's degrees of freedom of sums of means with these errors; 1 where all are 0."""
    squares = np.square(errors / _largest(errors))
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = squares / squares.sum(-1, keepdims=True)
        return np.nan_to_num(1 / (shares**2 / (counts - 1)).sum(-1), nan=1.0)


def newcombe(weights: Floats, means: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the ends of contrasts from those of their arms, by the squares of the distances to the means."""
    centre = (weights * means).sum(-1)
    ends = np.array([weights * (low - means), weights * (high - means)])
    return centre - np.hypot.reduce(ends.min(0), axis=-1), centre + np.hypot.reduce(ends.max(0), axis=-1)
