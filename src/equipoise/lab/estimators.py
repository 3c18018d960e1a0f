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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from equipoise.arrays import Floats, Ints
from equipoise.lab.setup import Ends
from equipoise.problem import Gaussian, Problem
from equipoise.strategies import Strategy

Estimator = Literal["naive", "wald", "controls", "gaussian"]
# From here on an arm's controls cost more than they bring.
MOST_CONTROLLED = 128
# Directions of the controls, each in units of its spread, that have less than this part of the largest variance are
# left out of a fit: rounding decides there.
RCOND = 1e-12
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
    """T, S and Q of every arm (rows) in every run (columns); Q is 0 where the fourth moment is infinite."""

    problem: Problem
    T: Floats
    S: Floats
    Q: Floats

    @classmethod
    def of(cls, problem: Problem, ends: Ends, checkpoint: int) -> Evidence:
        T = ends.counts[checkpoint]
        deviations = ends.means[checkpoint] - problem.means[:, None]
        S = T * deviations
        Q = ends.m2s[checkpoint] + S * deviations - problem.variances[:, None] * T
        Q[[not math.isfinite(law.fourth) for law in problem.arms]] = 0.0
        return cls(problem, T, S, Q)

    @cached_property
    def third(self) -> Floats:
        """mu3; 0 where it goes with a Q that is not used."""
        return np.array([law.third if math.isfinite(law.fourth) else 0.0 for law in self.problem.arms])

    @cached_property
    def kappa(self) -> Floats:
        """mu4 - s⁴, the variance of (X - mu)²; 0 where it is infinite."""
        values = [law.fourth - law.variance**2 for law in self.problem.arms]
        return np.where(np.isfinite(values), values, 0.0)

    @cached_property
    def all_arms(self) -> tuple[Floats, Floats]:
        """The sums over all arms, run by run, of Q and of kappa T."""
        return self.Q.sum(axis=0), self.kappa @ self.T


def observations(evidence: Evidence, arms: Ints, estimator: Estimator) -> Floats:
    """What is averaged, for each of the arms: the squared error of its mean, or its expectation given the variances."""
    if estimator == "gaussian":
        return evidence.problem.variances[arms, None] / evidence.T[arms]
    return (evidence.S[arms] / evidence.T[arms]) ** 2


def controls(evidence: Evidence, arms: Ints, estimator: Estimator) -> Floats:
    """For each of the arms, rows of mean zero to be subtracted, in multiples, from its observations."""
    T, S, Q = evidence.T[arms], evidence.S[arms], evidence.Q[arms]
    if estimator == "naive":
        return np.empty((len(T), 0, T.shape[1]))
    M = S * S - evidence.problem.variances[arms, None] * T
    if estimator == "wald":
        return M[:, None]
    kappa, mu3 = evidence.kappa[arms, None], evidence.third[arms, None]
    # All other arms together: the pulls of this one follow the sum of the variances.
    P, others = (total - own for total, own in zip(evidence.all_arms, (Q, kappa * T), strict=True))
    rows = [P, P * P - others, Q, Q * P, Q * Q - kappa * T]
    if estimator == "controls":
        rows += [S, M, S * P, M * P, S * Q - mu3 * T, M * Q - 2 * mu3 * T * S - kappa * T]
    return np.stack(rows, axis=1)


def fit(evidence: Evidence, chosen: Sequence[Estimator]) -> list[Floats]:
    """The multiples of each arm's controls, by least squares on a pilot; for "wald", 1/T² with its mean pulls."""
    multiples: list[Floats] = [np.empty(0)] * len(chosen)
    for estimator, arms in _together(evidence, chosen, range(len(chosen))):
        if len(chosen) > MOST_CONTROLLED and estimator != "wald":
            continue
        for k, found in zip(arms, _fit(evidence, arms, estimator), strict=True):
            multiples[k] = found
    return multiples


def _fit(evidence: Evidence, arms: Ints, estimator: Estimator) -> Floats:
    """The same for arms of one estimator, by the normal equations of all of them at once; none where none would do."""
    if estimator == "wald":
        # With T fixed, S²/T² - M/T² would have no noise at all.
        return evidence.T[arms].mean(axis=1, keepdims=True) ** -2
    rows, y = controls(evidence, arms, estimator), observations(evidence, arms, estimator)
    if rows.shape[1] == 0 or y.shape[1] < 4 * rows.shape[1]:
        return np.empty((len(arms), 0))
    rows -= rows.mean(axis=2, keepdims=True)
    gram = rows @ rows.swapaxes(1, 2)
    scale = np.sqrt(gram.diagonal(axis1=1, axis2=2))
    used = scale > 1e-12 * (1e-300 + scale.max(axis=1, keepdims=True))
    unit = np.divide(1, scale, out=np.zeros_like(scale), where=used)
    inverse = np.linalg.pinv(unit[:, :, None] * gram * unit[:, None, :], rcond=RCOND, hermitian=True)
    slopes = rows @ (y - y.mean(axis=1, keepdims=True))[:, :, None]
    found = unit * (inverse @ (unit[:, :, None] * slopes))[:, :, 0]
    return np.where((y != y[:, :1]).any(axis=1, keepdims=True), found, 0.0)


def estimates(
    evidence: Evidence, chosen: Sequence[Estimator], multiples: Sequence[Floats], arms: Iterable[int] | None = None
) -> Floats:
    """Unbiased estimates of the losses of arms, all by default: a row for each arm, one number from each run."""
    wanted = list(range(len(chosen)) if arms is None else arms)
    losses = np.empty((len(chosen), evidence.T.shape[1]))
    for estimator, some in _together(evidence, chosen, wanted):
        losses[some] = observations(evidence, some, estimator)
        if multiples[some[0]].size:
            by = np.array([multiples[k] for k in some])[:, None]
            losses[some] -= (by @ controls(evidence, some, estimator))[:, 0]
    return losses[wanted]


def _together(
    evidence: Evidence, chosen: Sequence[Estimator], wanted: Iterable[int]
) -> Iterator[tuple[Estimator, Ints]]:
    """Arms of one estimator, as many as have their controls in the processor's cache."""
    at_once = max(1, 2**17 // evidence.T.shape[1] // 11)
    for estimator in dict.fromkeys(chosen):
        arms = [k for k in wanted if chosen[k] == estimator]
        for first in range(0, len(arms), at_once):
            yield estimator, np.array(arms[first : first + at_once])
