"""
Estimators of the loss of each arm, from where many runs ended.

The naive average of (muhat - mu)² is so noisy that it hides most effects. Martingales whose mean at the end is zero,
whatever the strategy does, remove most of the noise. With samples in units of the arm's standard deviation, T its
pulls, S = sum of (X - mu) and Q = sum of (X - mu)² - T over them, and mu3, mu4 the central moments, these have mean
zero:

    S,   Q,   M = S² - T (the paper's Wald identity),   S Q - mu3 T,   Q² - (mu4 - 1) T,
    M Q - 2 mu3 T S - (mu4 - 1) T,   and products of one arm's with another arm's.

Where the Gaussian lemma is used, for Gaussian arms under a strategy that does not use means, decisions follow the
deviations from running means, which are independent of these. The steps of M2 then are as well: each but the first a
chi-square of one degree of freedom. So there Q is M2 - D with D = T - 1 in place of T, which has none of the noise that
S² adds. Its third moments are known too, as Q³ - 6 D Q - 8 D has mean zero.

A loss minus any fixed multiples of them has the same mean. The multiples are fitted on a pilot of other runs, which
keeps the estimate free of bias.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import choice, shown
from equipoise.engine.setup import Ends
from equipoise.problem import Gaussian, Problem
from equipoise.strategies import Strategy

Estimator = Literal["naive", "wald", "controls", "gaussian"]
# With more arms than this, controls cost more time than they save.
MOST_CONTROLLED = 128
# A fit leaves out directions of the controls, each in units of its spread, whose variance is less than this part of the
# largest: there rounding decides.
RCOND = 1e-12
# A control whose mean is further from 0 than this, in standard errors, is not used.
FAR_OFF = 5.0
ESTIMATORS: tuple[str, ...] = ("naive", "wald", "controls", "gaussian")


def choose(estimator: str, problem: Problem, strategy: Strategy) -> tuple[Estimator, ...]:
    """Return the estimator of each arm: the one asked for, or with "auto" the best that is valid there."""
    choice("estimator", estimator, ("auto", *ESTIMATORS))
    gaussian = [isinstance(law, Gaussian) and not strategy.uses_mean for law in problem.arms]
    if estimator == "auto":
        other: Estimator = "controls" if len(problem) <= MOST_CONTROLLED else "wald"
        return tuple("gaussian" if valid else other for valid in gaussian)
    if estimator == "gaussian" and not all(gaussian):
        uses = f"{strategy.name or type(strategy).__name__}, which uses means"
        got = uses if strategy.uses_mean else shown(problem.arms[gaussian.index(False)])
        raise InvalidInput(
            f"estimator='gaussian' needs Gaussian arms and a strategy that does not use means, got {got}"
        )
    return (estimator,) * len(problem)  # type: ignore[return-value]


def known_fourth(problem: Problem) -> Bools:
    """Return which arms have a finite fourth moment."""
    return np.isfinite(problem.fourths)


def units(problem: Problem) -> Floats:
    """Return the unit of each arm: its standard deviation, or 1 if it never varies."""
    return np.where(problem.variances > 0, np.sqrt(problem.variances), 1.0)


def relative(problem: Problem) -> Floats:
    """Return the variance of each arm in its units: 1, or 0 if it never varies."""
    return np.where(problem.variances > 0, 1.0, 0.0)


def third(problem: Problem) -> Floats:
    """Return mu3 of each arm in its units; 0 where the fourth moment is infinite."""
    return np.where(known_fourth(problem), problem.thirds, 0.0) / units(problem) ** 3


def kappa(problem: Problem) -> Floats:
    """Return mu4 - 1 of each arm in its units, the variance of (X - mu)²; 0 where it is infinite."""
    return np.where(known_fourth(problem), problem.fourths - problem.variances**2, 0.0) / units(problem) ** 4


def outside(problem: Problem, expected: Bools) -> Bools:
    """Return which arms are not `expected` and have a finite fourth moment."""
    return ~expected & known_fourth(problem)


@dataclass(frozen=True)
class ArmSums:
    """
    The sums T, S and Q of each arm (rows) in each run (columns), in units of its standard deviation.

    Q is M2 - (T - 1) for `expected` arms, for which the Gaussian lemma is used, and 0 where the fourth moment is
    infinite.
    """

    problem: Problem
    expected: Bools
    T: Floats
    S: Floats
    Q: Floats

    @classmethod
    def of(cls, problem: Problem, ends: Ends, checkpoint: int, chosen: Sequence[Estimator]) -> ArmSums:
        """Return the sums at a checkpoint, from where runs stood there, for these estimators of the arms."""
        expected = np.array([each == "gaussian" for each in chosen])
        T, unit = ends.counts[checkpoint], units(problem)[:, None]
        deviations = (ends.means[checkpoint] - problem.means[:, None]) / unit
        S = T * deviations
        Q = ends.m2s[checkpoint] / unit**2 - relative(problem)[:, None] * (T - expected[:, None])
        Q[~expected] += (S * deviations)[~expected]
        Q[~known_fourth(problem)] = 0.0
        return cls(problem, expected, T, S, Q)

    def first(self, runs: int) -> ArmSums:
        """Return the sums in the first runs."""
        return ArmSums(self.problem, self.expected, self.T[:, :runs], self.S[:, :runs], self.Q[:, :runs])

    @cached_property
    def third(self) -> Floats:
        """mu3; 0 where Q is not used."""
        return third(self.problem)

    @cached_property
    def relative(self) -> Floats:
        """The variance: 1, or 0 where an arm never varies."""
        return relative(self.problem)

    @cached_property
    def kappa(self) -> Floats:
        """mu4 - 1, the variance of (X - mu)²; 0 where it is infinite."""
        return kappa(self.problem)

    @cached_property
    def outside(self) -> Bools:
        """Which arms are not `expected` and have a finite fourth moment: their S and M are controls of others."""
        return outside(self.problem, self.expected)

    @cached_property
    def all_arms(self) -> tuple[Floats, Floats]:
        """Q and kappa D, summed over all arms, for each run."""
        return self.Q.sum(axis=0), self.kappa @ self.T - self.kappa @ self.expected

    @cached_property
    def all_expected(self) -> tuple[Floats, Floats]:
        """Q and kappa D, summed over all `expected` arms, for each run."""
        return self.Q[self.expected].sum(axis=0), self.kappa[self.expected] @ (self.T[self.expected] - 1)

    @cached_property
    def all_outside(self) -> tuple[Floats, Floats]:
        """M and S, summed over all arms that are `outside`, for each run."""
        T, S = self.T[self.outside], self.S[self.outside]
        return wald(T, S, self.relative[self.outside, None]).sum(axis=0), S.sum(axis=0)


def observations(sums: ArmSums, arms: Ints, estimator: Estimator) -> Floats:
    """Return what is averaged for each of the arms: the squared error of its mean, or s²/T for "gaussian"."""
    if estimator == "gaussian":
        return sums.problem.variances[arms, None] / sums.T[arms]
    return np.asarray((units(sums.problem)[arms, None] * sums.S[arms] / sums.T[arms]) ** 2)


def wald(T: Any, S: Any, variance: Any) -> Any:
    """Return M = S² - T, for numbers or arrays; the variance is 0 for an arm that never varies."""
    return S * S - variance * T


def of_variances(D: Any, Q: Any, kappa: Any, P: Any, others: Any) -> tuple[Any, ...]:
    """
    Return what has mean zero and follows the variances that arms have shown, for numbers or arrays.

    D is T, or T - 1 where the Gaussian lemma is used; P and `others` are Q and kappa D, summed over all other arms.
    """
    return P, P * P - others, Q, Q * P, Q * Q - kappa * D


def of_cubes(own: Any, Q: Any, others: Any, P: Any) -> tuple[Any, ...]:
    """
    Return what has mean zero and follows those variances to third order, where the Gaussian lemma is used.

    P is Q, summed over all other arms for which it is used; `own` and `others` are kappa D, for the arm and for those.
    """
    return (
        Q * (Q * Q - 3 * own) - 4 * own,
        (Q * Q - own) * P,
        Q * (P * P - others),
        P * (P * P - 3 * others) - 4 * others,
    )


def of_means(T: Any, S: Any, Q: Any, M: Any, kappa: Any, mu3: Any, P: Any) -> tuple[Any, ...]:
    """Return what has mean zero and follows the mean of an arm too, in the same way."""
    return S, M, S * P, M * P, S * Q - mu3 * T, M * Q - 2 * mu3 * T * S - kappa * T


# How many controls an arm has, those of variances first. The others are those of its own mean, or where the Gaussian
# lemma is used those of cubes and M and S of all arms for which it is not.
CONTROLS, OF_VARIANCES = 11, 5
# The places of an estimator's controls among them.
PLACES: dict[Estimator, range] = {
    "naive": range(0),
    "wald": range(6, 7),
    "gaussian": range(CONTROLS),
    "controls": range(CONTROLS),
}


def controls(sums: ArmSums, arms: Ints, estimator: Estimator) -> Floats:
    """Return rows of mean zero for each of the arms, multiples of which are subtracted from its observations."""
    T, S, Q = sums.T[arms], sums.S[arms], sums.Q[arms]
    if estimator == "naive":
        return np.empty((len(T), 0, T.shape[1]))
    M = wald(T, S, sums.relative[arms, None])
    if estimator == "wald":
        return M[:, None]
    kappa, mu3 = sums.kappa[arms, None], sums.third[arms, None]
    D = T - sums.expected[arms, None]
    # All other arms together: the pulls of this one follow the sum of the variances.
    P, others = _less(sums.all_arms, Q, kappa * D)
    rows = of_variances(D, Q, kappa, P, others)
    if estimator == "controls":
        return np.stack([*rows, *of_means(T, S, Q, M, kappa, mu3, P)], axis=1)
    P, others = _less(sums.all_expected, Q, kappa * D)
    rows += of_cubes(kappa * D, Q, others, P)
    return np.stack([*rows, *(np.broadcast_to(each, T.shape) for each in sums.all_outside)], axis=1)


def _less(totals: tuple[Floats, Floats], *own: Floats) -> list[Floats]:
    """Sums over all arms, less an arm's own part."""
    return [total - part for total, part in zip(totals, own, strict=True)]


def fit(sums: ArmSums, chosen: Sequence[Estimator]) -> list[Floats]:
    """Return the multiples of each arm's controls, by least squares on a pilot; for "wald", s²/T² at the mean pulls."""
    return fit_and_estimate(sums, chosen, sums.T.shape[1])[0]


def fit_and_estimate(sums: ArmSums, chosen: Sequence[Estimator], pilot: int) -> tuple[list[Floats], Floats]:
    """Return the multiples that the first runs give, as many as `pilot`, and the `estimates` of all runs with them."""
    multiples: list[Floats] = [np.empty(0)] * len(chosen)
    losses = np.empty((len(chosen), sums.T.shape[1]))
    first = sums.first(pilot)
    for estimator, arms in _together(sums, chosen, range(len(chosen))):
        losses[arms] = y = observations(sums, arms, estimator)
        if len(chosen) <= MOST_CONTROLLED or estimator == "wald":
            rows = controls(sums, arms, estimator)
            found = _fit(first, arms, estimator, rows[..., :pilot], y[:, :pilot])
            losses[arms] = _less_noise(y, found, rows)
            for k, each in zip(arms, found, strict=True):
                multiples[k] = each
    return multiples, losses


def _less_noise(y: Floats, multiples: Floats, rows: Floats) -> Floats:
    """Return the observations of some arms less the multiples of their controls, if there are any."""
    return y - (multiples[:, None] @ rows)[:, 0] if multiples.size else y


def _fit(sums: ArmSums, arms: Ints, estimator: Estimator, rows: Floats, y: Floats) -> Floats:
    """
    The multiples for arms of one estimator, from the normal equations of all at once; none if runs are too few.

    `rows` and `y` are the controls and the observations of these arms in these runs.
    """
    if estimator == "wald":
        # With T fixed, S²/T² - M/T² would have no noise at all.
        return np.asarray((units(sums.problem)[arms, None] / sums.T[arms].mean(axis=1, keepdims=True)) ** 2)
    if rows.shape[1] == 0 or y.shape[1] < 4 * rows.shape[1]:
        return np.empty((len(arms), 0))
    means = rows.mean(axis=2)
    rows = rows - means[:, :, None]
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = (rows @ (y - y.mean(axis=1, keepdims=True))[:, :, None])[:, :, 0]
        gram = rows @ rows.swapaxes(1, 2)
    used = np.broadcast_to((y != y[:, :1]).any(axis=1, keepdims=True), means.shape)
    return solved(used, gram, slopes, means, np.array(y.shape[1]))


def solved(used: Bools, gram: Floats, slopes: Floats, means: Floats, runs: Ints) -> Floats:
    """
    Return the multiples of the controls of several arms, from products of these with themselves and with y.

    A control is not used where its mean is too far from 0: what brings it there is so rare that no run has seen it, as
    with powers of heavy-tailed samples. What is left of it follows the pulls, and multiples of it would move the
    estimate without any trace in its error. If the sum of all is still too far from 0, none is used.

    Parameters
    ----------
    used
        Which controls may be used.
    gram, slopes
        Sums over runs of products with one another and with y, of deviations from the means.
    means, runs
        The means of the controls, and how many runs there are.
    """
    used = used & _centred(means, gram.diagonal(axis1=1, axis2=2), runs[..., None])
    scale = np.where(used, np.sqrt(gram.diagonal(axis1=1, axis2=2)), 0.0)
    scale = np.where(np.isfinite(scale), scale, 0.0)  # what has overflowed is left out
    used = scale > 1e-12 * (1e-300 + scale.max(axis=1, keepdims=True))
    unit = np.divide(1, scale, out=np.zeros_like(scale), where=used)
    some = np.where(used[:, :, None] & used[:, None], gram, 0.0)
    inverse = np.linalg.pinv(unit[:, :, None] * some * unit[:, None], rcond=RCOND, hermitian=True)
    found = unit * (inverse @ (unit * np.where(used, slopes, 0.0))[:, :, None])[:, :, 0]
    together = (found[:, None] @ some @ found[:, :, None])[:, 0, 0]
    fine = _centred((found * np.where(used, means, 0.0)).sum(axis=1), together, runs)
    return np.where(fine[:, None], found, 0.0)


def _centred(means: Floats, squares: Floats, runs: Ints) -> Bools:
    """Return whether the true mean of something may be 0, given its mean and the sum of squared deviations in runs."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.square(means * runs) <= FAR_OFF**2 * np.maximum(squares, 0.0))


def estimates(
    sums: ArmSums, chosen: Sequence[Estimator], multiples: Sequence[Floats], arms: Iterable[int] | None = None
) -> Floats:
    """Return unbiased estimates of the losses of arms, all by default: a row for each arm, a column for each run."""
    wanted = list(range(len(chosen)) if arms is None else arms)
    losses = np.empty((len(chosen), sums.T.shape[1]))
    for estimator, some in _together(sums, chosen, wanted):
        losses[some] = observations(sums, some, estimator)
        if multiples[some[0]].size:
            by = np.array([multiples[k] for k in some])
            losses[some] = _less_noise(losses[some], by, controls(sums, some, estimator))
    return losses[wanted]


def _together(sums: ArmSums, chosen: Sequence[Estimator], wanted: Iterable[int]) -> Iterator[tuple[Estimator, Ints]]:
    """Groups of arms with one estimator, small enough that their controls fit into the processor's cache."""
    at_once = max(1, 2**17 // sums.T.shape[1] // 11)
    for estimator in dict.fromkeys(chosen):
        arms = [k for k in wanted if chosen[k] == estimator]
        for first in range(0, len(arms), at_once):
            yield estimator, np.array(arms[first : first + at_once])
