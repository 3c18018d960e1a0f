"""
Estimators of the loss of each arm, from where many runs ended.

The naive average of (muhat - mu)² is so noisy that it hides what is to be seen. Martingales that end at zero on average
whatever the strategy does take most of the noise away. With T the pulls of an arm, S = sum of (X - mu) and
Q = sum of (X - mu)² - s² T over them, and mu3, mu4 the arm's central moments, these have mean zero:

    S,   Q,   M = S² - s² T (the paper's Wald identity),   S Q - mu3 T,   Q² - (mu4 - s⁴) T,
    M Q - 2 mu3 T S - (mu4 - s⁴) T,   and products of one arm's with another arm's.

A loss less any fixed multiples of them has the same mean. The multiples are fitted on a pilot of other runs, which
keeps the estimate free of bias.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from equipoise.lab.cpu import Ends
from equipoise.problem import Gaussian, Problem
from equipoise.strategies import Strategy

Floats = npt.NDArray[np.float64]

Estimator = Literal["naive", "wald", "controls", "gaussian"]
# From here on an arm's controls cost more than they bring.
MOST_CONTROLLED = 64
ESTIMATORS: tuple[str, ...] = ("naive", "wald", "controls", "gaussian")


def choose(estimator: str, problem: Problem, strategy: Strategy) -> tuple[Estimator, ...]:
    """The estimator for each arm: the one asked for, or the best that is valid there."""
    gaussian = [isinstance(law, Gaussian) and not strategy.uses_mean for law in problem.arms]
    if estimator == "auto":
        other: Estimator = "controls" if len(problem) <= MOST_CONTROLLED else "wald"
        return tuple("gaussian" if valid else other for valid in gaussian)
    if estimator not in ESTIMATORS:
        raise ValueError(f"estimator={estimator!r} will not do; it must be 'auto', {', '.join(map(repr, ESTIMATORS))}")
    if estimator == "gaussian" and not all(gaussian):
        why = "the strategy looks at means" if strategy.uses_mean else f"{problem.arms[gaussian.index(False)]!r} is not"
        raise ValueError(f"estimator='gaussian' is for Gaussian arms under a strategy that does not use means; {why}")
    return (estimator,) * len(problem)  # type: ignore[return-value]


@dataclass(frozen=True)
class Evidence:
    """T, S and Q of every arm (rows) in every run (columns), with the moments of the arms' laws."""

    problem: Problem
    T: Floats
    S: Floats
    Q: Floats

    @classmethod
    def of(cls, problem: Problem, ends: Ends, checkpoint: int) -> Evidence:
        T = ends.counts[checkpoint]
        deviations = ends.means[checkpoint] - problem.means[:, None]
        S = T * deviations
        return cls(problem, T, S, ends.m2s[checkpoint] + S * deviations - problem.variances[:, None] * T)

    @property
    def kappa(self) -> Floats:
        """mu4 - s⁴, the variance of (X - mu)²; 0 where it is infinite, as Q is not used there."""
        values = np.array([law.fourth - law.variance**2 for law in self.problem.arms])
        return np.where(np.isfinite(values), values, 0.0)


def observations(evidence: Evidence, k: int, estimator: Estimator) -> Floats:
    """What is averaged: the squared error of arm k's mean, or its expectation given the variances."""
    if estimator == "gaussian":
        return evidence.problem.arms[k].variance / evidence.T[k]
    return (evidence.S[k] / evidence.T[k]) ** 2


def controls(evidence: Evidence, k: int, estimator: Estimator) -> Floats:
    """Rows of mean zero to be subtracted, in multiples, from the observations of arm k."""
    law = evidence.problem.arms[k]
    T, S, Q = evidence.T[k], evidence.S[k], evidence.Q[k]
    M = S * S - law.variance * T
    if estimator == "naive":
        return np.empty((0, T.size))
    if estimator == "wald":
        return M[None]
    finite = np.array([math.isfinite(each.fourth) for each in evidence.problem.arms])
    kappa = evidence.kappa
    # All other arms together: the pulls of this one follow the sum of the variances.
    P = np.where(finite[:, None], evidence.Q, 0.0).sum(axis=0) - (Q if finite[k] else 0.0)
    others = (kappa[:, None] * evidence.T).sum(axis=0) - kappa[k] * T
    rows = [P, P * P - others]
    if finite[k]:
        rows += [Q, Q * P, Q * Q - kappa[k] * T]
    if estimator == "controls":
        rows += [S, M, S * P, M * P]
        if finite[k]:
            rows += [S * Q - law.third * T, M * Q - 2 * law.third * T * S - kappa[k] * T]
    return np.array(rows)


def fit(evidence: Evidence, k: int, estimator: Estimator) -> Floats:
    """The multiples of arm k's controls, by least squares on a pilot; for "wald", 1/T² with the pilot's mean pulls."""
    if estimator == "wald":
        # With T fixed, S²/T² - M/T² would have no noise at all.
        return np.array([float(evidence.T[k].mean()) ** -2])
    rows = controls(evidence, k, estimator)
    y = observations(evidence, k, estimator)
    multiples = np.zeros(len(rows))
    if len(rows) == 0 or y.size < 4 * len(rows):
        return multiples
    centred = rows - rows.mean(axis=1, keepdims=True)
    scale = centred.std(axis=1)
    used = scale > 1e-12 * (1e-300 + scale.max())
    if y.std() == 0 or not used.any():
        return multiples
    A = (centred[used] / scale[used, None]).T
    solution, *_ = np.linalg.lstsq(A, y - y.mean(), rcond=1e-8)
    multiples[used] = solution / scale[used]
    return multiples


def estimates(evidence: Evidence, k: int, estimator: Estimator, multiples: Floats) -> Floats:
    """One unbiased estimate of arm k's loss from each run."""
    y = observations(evidence, k, estimator)
    if len(multiples) == 0:
        return y
    return y - multiples @ controls(evidence, k, estimator)
