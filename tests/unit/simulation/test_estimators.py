"""Controls have mean zero whatever the strategy does: exactly, over all that can happen in small studies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

import equipoise as eq
from equipoise.engine import cpu, streams
from equipoise.engine.setup import Ends, Setup
from equipoise.numeric import moments
from equipoise.problem import Law
from equipoise.simulation import estimators
from equipoise.simulation.estimators import ArmSums, choose
from equipoise.strategies import Numbers, Strategy

Floats = npt.NDArray[np.float64]
History = list[list[Fraction]]
Rule = Callable[[History], int]

# Arms of few outcomes, as (value, probability): skewed, more skewed, symmetric, and one that never varies.
OUTCOMES = {
    eq.Bernoulli(0.25): [(0, Fraction(3, 4)), (1, Fraction(1, 4))],
    eq.Empirical([0, 0, 1, 5]): [(0, Fraction(1, 2)), (1, Fraction(1, 4)), (5, Fraction(1, 4))],
    eq.Rademacher(): [(-1, Fraction(1, 2)), (1, Fraction(1, 2))],
    eq.Constant(2): [(2, Fraction(1))],
}


def by_variance(seen: History) -> int:
    """One pull each, then the largest biased variance and a bit over the pulls: greedy, and prone to starve."""

    def key(xs: list[Fraction]) -> Fraction:
        mean = sum(xs, Fraction()) / len(xs)
        return (sum(((x - mean) ** 2 for x in xs), Fraction()) / len(xs) + Fraction(1, 100)) / len(xs)

    pulls = [len(xs) for xs in seen]
    if min(pulls) == 0:
        return pulls.index(0)
    keys = [key(xs) for xs in seen]
    return keys.index(max(keys))


def by_mean(seen: History) -> int:
    """A rule that looks at means: one pull each, then the arm with the largest sum, or the last if all are small."""
    pulls = [len(xs) for xs in seen]
    if min(pulls) == 0:
        return pulls.index(0)
    sums = [sum(xs, Fraction()) for xs in seen]
    return sums.index(max(sums)) if max(sums) > 1 else len(seen) - 1


def paths(problem: eq.Problem, rule: Rule, n: int) -> Iterator[tuple[Fraction, History]]:
    """Every way a study of n pulls can go, with its probability."""

    def go(seen: History, probability: Fraction, left: int) -> Iterator[tuple[Fraction, History]]:
        if left == 0:
            yield probability, [list(xs) for xs in seen]
            return
        arm = rule(seen)
        for value, p in OUTCOMES[problem.arms[arm]]:
            seen[arm].append(Fraction(value))
            yield from go(seen, probability * p, left - 1)
            seen[arm].pop()

    return go([[] for _ in problem.arms], Fraction(1), n)


SMALL = [
    (eq.Problem([eq.Bernoulli(0.25), eq.Rademacher()]), 10),
    (eq.Problem([eq.Empirical([0, 0, 1, 5]), eq.Bernoulli(0.25)]), 7),
    (eq.Problem([eq.Empirical([0, 0, 1, 5]), eq.Rademacher(), eq.Bernoulli(0.25)]), 7),
    (eq.Problem([eq.Constant(2), eq.Bernoulli(0.25), eq.Rademacher()]), 8),
]


def central(law: eq.Law, power: int) -> Fraction:
    """An exact central moment."""
    outcomes = OUTCOMES[law]
    mean = sum((p * value for value, p in outcomes), Fraction())
    return sum((p * (value - mean) ** power for value, p in outcomes), Fraction())


@pytest.mark.parametrize("rule", [by_variance, by_mean])
@pytest.mark.parametrize(("problem", "n"), SMALL)
def test_the_identities_are_exact(problem: eq.Problem, n: int, rule: Rule) -> None:
    """In fractions, from their definitions: S, Q, M and the rest of the list, and products across arms."""
    names = ("S", "Q", "M", "SQ", "QQ", "MQ")
    sums = {name: [Fraction()] * len(problem) for name in names}
    products = dict.fromkeys(itertools.product("SQM", "SQM"), Fraction())
    crooked = Fraction()
    total = Fraction()
    s2, mu3, mu4 = ([central(law, power) for law in problem.arms] for power in (2, 3, 4))
    means = [sum((p * value for value, p in OUTCOMES[law]), Fraction()) for law in problem.arms]
    for probability, seen in paths(problem, rule, n):
        total += probability
        values: list[dict[str, Fraction]] = []
        for k, xs in enumerate(seen):
            T = len(xs)
            S = sum((x - means[k] for x in xs), Fraction())
            Q = sum(((x - means[k]) ** 2 for x in xs), Fraction()) - s2[k] * T
            M = S * S - s2[k] * T
            kappa = mu4[k] - s2[k] ** 2
            values.append(
                {
                    "S": S,
                    "Q": Q,
                    "M": M,
                    "SQ": S * Q - mu3[k] * T,
                    "QQ": Q * Q - kappa * T,
                    "MQ": M * Q - 2 * mu3[k] * T * S - kappa * T,
                }
            )
            crooked += probability * abs(mu3[k]) * (M * Q - kappa * T)
            for name in names:
                sums[name][k] += probability * values[k][name]
        for one, other in products:
            products[one, other] += probability * values[0][one] * values[1][other]
    assert total == 1
    assert all(value == 0 for by_arm in sums.values() for value in by_arm), sums
    assert all(value == 0 for value in products.values()), products
    # Without the third moment's term the last would not do under a rule that looks at the variance.
    assert crooked != 0 or rule is by_mean


def evidence(problem: eq.Problem, rule: Rule, n: int) -> tuple[ArmSums, Floats]:
    """Every way a study can go as if each were a run, and their probabilities."""
    columns, probabilities = [], []
    for probability, seen in paths(problem, rule, n):
        probabilities.append(float(probability))
        columns.append([moments.of([float(x) for x in xs]) for xs in seen])
    counts, means, m2s = np.array(columns, dtype=float).transpose(2, 1, 0)
    ends = Ends(counts[None], means[None], m2s[None])
    return ArmSums.of(problem, ends, 0, ["controls"] * len(problem)), np.array(probabilities)


@pytest.mark.parametrize("estimator", ["wald", "controls"])
@pytest.mark.parametrize("rule", [by_variance, by_mean])
@pytest.mark.parametrize(("problem", "n"), SMALL)
def test_every_control_has_mean_zero(problem: eq.Problem, n: int, rule: Rule, estimator: estimators.Estimator) -> None:
    """The rows that are used, over all paths; so any multiples of them leave the mean of the estimates as it is."""
    found, weights = evidence(problem, rule, n)
    rng = np.random.default_rng(0)
    for k in range(len(problem)):
        [rows] = estimators.controls(found, np.array([k]), estimator)
        assert rows.shape == ({"wald": 1, "controls": 11}[estimator], weights.size)
        size = np.abs(rows) @ weights
        np.testing.assert_allclose(rows @ weights, 0, atol=1e-12 * (1 + size.max()))
        multiples = rng.normal(size=len(rows))
        [exact] = estimators.observations(found, np.array([k]), "naive") @ weights
        [got] = estimators.estimates(found, [estimator] * len(problem), [multiples] * len(problem), [k]) @ weights
        assert got == pytest.approx(exact, abs=1e-12 * (1 + size.max()))


def test_the_gaussian_lemma_needs_gaussian_arms() -> None:
    """s²/T has not the mean of (muhat - mu)² on other arms: why it is refused there."""
    problem, n = SMALL[1]
    found, weights = evidence(problem, by_variance, n)
    conditional, exact = (
        estimators.observations(found, np.arange(2), each) @ weights for each in ("gaussian", "naive")
    )
    assert (abs(conditional - exact) > 1e-3).all()


@dataclass(frozen=True)
class Looks(Strategy):
    """A strategy that uses means."""

    uses_mean = True

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return m2 / count + mean * mean


GAUSSIANS = eq.Problem([eq.Gaussian(0, 4), eq.Gaussian(0, 1)])
HALF = eq.Problem([eq.Gaussian(0, 4), eq.Exponential(1)])


def test_the_best_that_is_valid() -> None:
    auto = eq.strategies.Auto()
    assert choose("auto", GAUSSIANS, auto) == ("gaussian", "gaussian")
    assert choose("auto", HALF, auto) == ("gaussian", "controls")
    assert choose("auto", GAUSSIANS, Looks()) == ("controls", "controls")
    many = eq.Problem([eq.Gaussian(0, 1), *[eq.Exponential(1)] * estimators.MOST_CONTROLLED])
    assert choose("auto", many, auto) == ("gaussian", *["wald"] * estimators.MOST_CONTROLLED)
    for name in ("naive", "wald", "controls"):
        assert choose(name, HALF, Looks()) == (name, name)
    assert choose("gaussian", GAUSSIANS, auto) == ("gaussian", "gaussian")


@pytest.mark.parametrize(
    ("estimator", "problem", "strategy", "message"),
    [
        ("Naive", HALF, eq.strategies.Auto(), "estimator must be one of 'auto', 'naive', 'wald', .*, got 'Naive'"),
        (None, HALF, eq.strategies.Auto(), "estimator must be .*, got None"),
        ("gaussian", HALF, eq.strategies.Auto(), r"needs Gaussian arms .*, got Exponential\(scale=1\)"),
        ("gaussian", GAUSSIANS, Looks(), "got Looks, which uses means"),
    ],
)
def test_an_estimator_that_is_not_valid_is_refused(
    estimator: str, problem: eq.Problem, strategy: Strategy, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        choose(estimator, problem, strategy)


NAMES = ("P", "PP", "Q", "QP", "QQ", "S", "M", "SP", "MP", "SQ", "MQ")


def simulated(problem: eq.Problem, runs: int = 3000, n: int = 60, lemma: bool = False) -> ArmSums:
    """Where runs of a greedy strategy ended; with `lemma`, for the estimators that use the Gaussian lemma."""
    strategy = eq.strategies.Greedy()
    plan = Setup(problem, strategy, (n,), strategy.params(n, len(problem), None), 1)
    chosen = choose("auto" if lemma else "controls", problem, strategy)
    return ArmSums.of(problem, cpu.simulate(plan, 0, runs), 0, chosen)


def test_evidence_is_sums_of_deviations() -> None:
    """T, S and Q from count, mean and M2 are what their definitions say, in units of standard deviations."""
    found, lemma = simulated(HALF, runs=4), simulated(HALF, runs=4, lemma=True)
    for run, k in itertools.product(range(4), range(2)):
        law = HALF.arms[k]
        x = (streams.samples(HALF, 1, run, k, int(found.T[k, run])) - law.mean) / law.variance**0.5
        assert found.S[k, run] == pytest.approx(x.sum())
        assert found.Q[k, run] == pytest.approx((x**2).sum() - len(x))
        around = ((x - x.mean()) ** 2).sum() - (len(x) - 1)
        assert lemma.Q[k, run] == pytest.approx(around if k == 0 else found.Q[k, run])


MIXED = eq.Problem([eq.Gaussian(0, 4), eq.Exponential(1), eq.Gaussian(2, 0.5), eq.Rademacher(3)])


@pytest.mark.parametrize("problem", [GAUSSIANS, MIXED])
def test_controls_of_the_gaussian_lemma_have_mean_zero(problem: eq.Problem) -> None:
    """8,192 runs of a greedy strategy with 12 pulls per arm: no row is beyond 5 standard errors, and each is used."""
    found = simulated(problem, 8192, 12 * len(problem), lemma=True)
    for k in np.flatnonzero(found.expected):
        [rows] = estimators.controls(found, np.array([k]), "gaussian")
        assert rows.shape == (11, 8192)
        assert (abs(rows.mean(axis=1)) <= 5 * rows.std(axis=1) / 8192**0.5).all()
        assert rows[:9].any(axis=1).all()
        assert rows[9:].any(axis=1).all() == (problem is MIXED)


def test_cubes_have_mean_zero_exactly() -> None:
    """
    Over all paths of two walks whose steps have the mean 0, the variance 2 and the third moment 8 of a Gaussian arm's.

    Nine steps of 2 + sqrt(6) or 2 - sqrt(6); the walk that is behind takes the next one, so that its length depends on
    both. Without the terms of the third moment, the means would not be zero.
    """
    up, down = 2 + 6**0.5, 2 - 6**0.5
    rise = -down / (up - down)
    total, without = np.zeros(4), 0.0
    for steps in itertools.product((True, False), repeat=9):
        Q, D, probability = [0.0, 0.0], [0, 0], 1.0
        for step in steps:
            k = int(Q[1] < Q[0])
            Q[k] += up if step else down
            D[k] += 1
            probability *= rise if step else 1 - rise
        total += probability * np.array(estimators.of_cubes(2 * D[0], Q[0], 2 * D[1], Q[1]))
        without += probability * Q[0] * (Q[0] ** 2 - 6 * D[0])
    np.testing.assert_allclose(total, 0, atol=1e-10)
    assert abs(without) > 1


def test_no_fourth_moment_no_squares() -> None:
    """An arm whose fourth moment is infinite has no Q in its own controls, nor in the other arms'."""
    heavy = eq.Problem([eq.StudentT(3.5), eq.Exponential(1)])
    found = simulated(heavy)
    assert found.kappa.tolist() == [0.0, 8.0]
    here, there = estimators.controls(found, np.arange(2), "controls")
    np.testing.assert_array_equal(here[0], found.Q[1])
    assert [bool(row.any()) for row in here] == [name in ("P", "PP", "S", "M", "SP", "MP") for name in NAMES]
    assert [bool(row.any()) for row in there] == [name not in ("P", "PP", "QP", "SP", "MP") for name in NAMES]
    assert np.isfinite([here, there]).all()
    sim = eq.simulate(heavy, "greedy", 60, runs=3000)
    assert np.isfinite(sim.losses).all()
    assert np.isfinite(sim.loss_errors).all()


def test_arms_without_variance_and_rademacher() -> None:
    """Q is identically zero there, and takes no part in the fit."""
    problem = eq.Problem([eq.Constant(3), eq.Rademacher(), eq.Gaussian(0, 2)])
    names: tuple[estimators.Estimator, ...] = ("controls", "controls", "gaussian")
    found = simulated(problem, lemma=True)
    assert (found.S[0] == 0).all()
    assert (found.Q[0] == 0).all()
    np.testing.assert_allclose(found.Q[1], 0, atol=1e-10)
    multiples = estimators.fit(found, names)
    assert [len(each) for each in multiples] == [11, 11, 11]
    assert all(np.isfinite(each).all() for each in multiples)
    assert np.isfinite(estimators.estimates(found, names, multiples)).all()
    assert (multiples[0] == 0).all()
    assert (multiples[1][[NAMES.index(name) for name in ("Q", "QP", "QQ", "SQ")]] == 0).all()


def test_a_small_pilot_fits_nothing() -> None:
    """Fewer runs than four times the controls: better no control than a wild one."""
    few, enough = (estimators.fit(simulated(HALF, runs), ["controls"] * 2) for runs in (43, 44))
    assert [each.size for each in few] == [0, 0]
    assert (enough[1] != 0).any()
    assert [each.size for each in estimators.fit(simulated(HALF), ["naive", "controls"])] == [0, 11]


def test_walds_multiple_is_that_of_the_pulls_there_were() -> None:
    """s²/T² with the mean pulls of the pilot, whatever would have been best."""
    evidence = simulated(GAUSSIANS)
    assert estimators.fit(evidence, ["wald"] * 2) == [[(s / evidence.T[k].mean()) ** 2] for k, s in enumerate((2, 1))]


@pytest.mark.parametrize("arms", [3, 40])
def test_the_fit_is_that_of_least_squares_arm_by_arm(arms: int) -> None:
    """Against NumPy's least squares on the centred controls, in which neither sees units nor rows that are zero."""
    laws = [eq.Exponential(1 + k) if k % 2 else eq.Gaussian(0, 1 + k) for k in range(arms)]
    found = simulated(eq.Problem(laws), n=20 * arms, lemma=True)
    chosen = choose("auto", found.problem, eq.strategies.Greedy())
    multiples = estimators.fit(found, chosen)
    losses = estimators.estimates(found, chosen, multiples)
    for k in range(arms):
        [rows], [y] = (f(found, np.array([k]), chosen[k]) for f in (estimators.controls, estimators.observations))
        rows = rows - rows.mean(axis=1, keepdims=True)
        scale = rows.std(axis=1)
        expected, residual, *_ = np.linalg.lstsq((rows / scale[:, None]).T, y - y.mean())
        np.testing.assert_allclose(
            multiples[k] * scale, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max() + 1e-15 * y.max()
        )
        assert losses[k].var() * y.size == pytest.approx(residual[0], rel=1e-9, abs=1e-25 * y.max() ** 2)
        np.testing.assert_array_equal(estimators.estimates(found, chosen, multiples, [k])[0], losses[k])


@pytest.mark.parametrize("laws", [(eq.Gaussian(0, 4), eq.Gaussian(0, 1)), (eq.Exponential(2), eq.Laplace(0, 1))])
def test_what_the_controls_bring(laws: Sequence[eq.Law]) -> None:
    """Each estimator's error is below that of the one before; the best is at least five times the naive one's."""
    problem = eq.Problem(laws)
    strategy = eq.strategies.BAS(exploration=0.5)
    errors = [
        eq.simulate(problem, strategy, 500, runs=4000, estimator=e).loss_errors for e in ("naive", "wald", "controls")
    ]
    assert (errors[0] > 1.5 * errors[1]).all()
    assert (errors[1] > 1.2 * errors[2]).all()
    best = eq.simulate(problem, strategy, 500, runs=4000).loss_errors
    assert (best <= errors[2]).all()
    assert (best < errors[0] / 5).all()


# ---- events that no run has seen


@pytest.mark.parametrize(
    ("rare", "other"),
    [(eq.LogNormal(0, 2), eq.Gaussian(0, 1)), (eq.Bernoulli(1e-5), eq.Bernoulli(0.5))],
)
def test_an_arm_with_rare_values_leaves_the_other_arms_loss_right(rare: Law, other: Law) -> None:
    """10,000 runs of each estimator, other samples; 5 standard errors."""
    problem = eq.Problem([rare, other])
    found = eq.simulate(problem, budget=100, runs=10_000, seed=1)
    naive = eq.simulate(problem, budget=100, runs=10_000, seed=2, estimator="naive")
    error = math.hypot(found.loss_errors[1], naive.loss_errors[1])
    assert abs(found.losses[1] - naive.losses[1]) < 5 * error


def test_controls_that_are_far_from_0_are_not_used() -> None:
    gram, slopes, used = np.array([[[4.0, 1.0], [1.0, 9.0]]]), np.array([[2.0, 3.0]]), np.ones((1, 2), bool)
    runs = np.array([100])
    both = estimators.solved(used, gram, slopes, np.zeros((1, 2)), runs)
    assert both == pytest.approx(np.linalg.solve(gram[0], slopes[0])[None])
    # The standard error of the first mean is sqrt(4)/100, of the second sqrt(9)/100.
    assert estimators.solved(used, gram, slopes, np.array([[0.09, 0.0]]), runs) == pytest.approx(both)
    first_left_out = estimators.solved(used, gram, slopes, np.array([[0.11, 0.0]]), runs)
    assert first_left_out == pytest.approx(np.array([[0.0, 3 / 9]]))


def test_if_all_together_are_far_from_0_none_is_used() -> None:
    # Two controls that nearly cancel: each mean may be 0, that of their difference may not.
    gram = np.array([[[1.0, 0.9999], [0.9999, 1.0]]])
    slopes, used, runs = np.array([[1.0, -1.0]]), np.ones((1, 2), bool), np.array([100])
    assert estimators.solved(used, gram, slopes, np.zeros((1, 2)), runs).all()
    assert not estimators.solved(used, gram, slopes, np.array([[0.02, -0.02]]), runs).any()
