"""Each built-in strategy's formula at points worked out by hand, and what its parameters accept."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import equipoise as eq
from equipoise.problem.objective import objective
from equipoise.strategies import Numbers, Strategy, Support
from equipoise.strategies.key import key

CHAS, BAS, GAFSMAX = eq.strategies.CHAS, eq.strategies.BAS, eq.strategies.GAFSMAX
TwoStage, Greedy, Oracle, Uniform = (
    eq.strategies.TwoStage,
    eq.strategies.Greedy,
    eq.strategies.Oracle,
    eq.strategies.EvenSplit,
)


def variance(
    strategy: Strategy,
    count: float,
    m2: float,
    *,
    budget: int | None = 100,
    support: Support = None,
    pooled: float = 0.0,
    own: float = 0.0,
) -> float:
    return strategy.variance(count, 0.0, m2, (pooled,), (own,), strategy.params(budget, 2, support))


def test_ch_as() -> None:
    # Four samples 0, 0, 1, 1: biased variance 1/4. log(1/δ)/(2·4) = 1/2 with δ = e^{-4}.
    assert variance(CHAS(delta=math.exp(-4)), 4, 1.0) == pytest.approx(0.25 + 3 * math.sqrt(0.5))
    assert variance(CHAS(), 4, 1.0, budget=100) == pytest.approx(0.25 + 3 * math.sqrt(2.5 * math.log(100) / 8))
    # Ten times the width: a hundred times the bonus.
    assert variance(CHAS(delta=math.exp(-4), width=10), 4, 0.0) == pytest.approx(300 * math.sqrt(0.5))
    assert variance(CHAS(delta=math.exp(-4)), 4, 0.0, support=(-5, 5)) == pytest.approx(300 * math.sqrt(0.5))
    assert variance(CHAS(delta=math.exp(-4)), 4, 0.0, support="binary") == pytest.approx(3 * math.sqrt(0.5))


def test_b_as() -> None:
    # Unbiased standard deviation 2 from 4 samples with M2 = 12, and 2A/sqrt(4) = A.
    assert variance(BAS(exploration=0.5), 4, 12.0) == pytest.approx((2 + 0.5) ** 2)
    strategy = BAS(c1=2.0, c2=1.0, delta=0.01)
    big_a = eq.theory.a(2.0, 1.0, 0.01, 100) * math.sqrt(math.log(200))
    assert variance(strategy, 4, 12.0) == pytest.approx((2 + big_a) ** 2)
    # Without a budget, Lemma 5's width at the samples the arm has.
    assert variance(strategy, 4, 12.0, budget=None) == pytest.approx(
        (2 + eq.theory.lemma5_radius(4, 0.01, 2.0, 1.0)) ** 2
    )
    # A bounded support stands for c1 = width², c2 = e.
    bounded = BAS(c1=9.0, c2=math.e)
    assert variance(BAS(), 4, 12.0, support=(1, 4)) == variance(bounded, 4, 12.0)
    assert BAS(c1=1, c2=1).params(100, 2, None)[0] == pytest.approx(
        eq.theory.a(1, 1, 100**-3.5, 100) * math.sqrt(math.log(2 * 100**3.5))
    )


def test_mc_ucb_is_its_index_with_strata() -> None:
    """W/T (s + 2β/sqrt(T)), exactly the key of the stratified objective; it decides as written."""
    shares, beta = [0.5, 0.3, 0.2], 0.7
    counts, sds = [5, 9, 20], [1.0, 2.0, 6.0]
    strata = objective(range(3), eq.Stratified(shares))
    MCUCB = eq.strategies.MCUCB
    keys = [
        key(variance(MCUCB(exploration=beta), T, s * s * (T - 1)), T, scale, strata.exponent)
        for T, s, scale in zip(counts, sds, strata.scales(3), strict=True)
    ]
    index = [W / T * (s + 2 * beta / math.sqrt(T)) for W, T, s in zip(shares, counts, sds, strict=True)]
    assert [k / keys[0] for k in keys] == pytest.approx([i / index[0] for i in index])
    study = eq.Study(3, strategy=MCUCB(exploration=beta), objective=eq.Stratified(shares))
    for k, (T, s) in enumerate(zip(counts, sds, strict=True)):
        study.tell_moments(k, T, 0.0, s * s * (T - 1))
    assert study.ask().arm == index.index(max(index))
    # δ = n^{-9/2}; c1 and c2 of a bounded support.
    assert MCUCB().params(100, 2, (0, 3)) == BAS(c1=9.0, c2=math.e, delta=100**-4.5).params(100, 2, None)


def test_variance_ucb_is_b_as_for_the_largest_loss() -> None:
    VarianceUCB = eq.strategies.VarianceUCB
    assert VarianceUCB.variance is eq.strategies.MCUCB.variance is BAS.variance
    assert VarianceUCB(c1=2.0, c2=1.0) != BAS(c1=2.0, c2=1.0)
    assert VarianceUCB(exploration=0.5).rescaled(2.0) == VarianceUCB(exploration=1.0)
    assert VarianceUCB(c1=2.0, c2=1.0).params(100, 2, None) == BAS(c1=2.0, c2=1.0).params(100, 2, None)
    assert variance(VarianceUCB(exploration=0.5), 4, 12.0) == pytest.approx((2 + 0.5) ** 2)


def test_gafs_max() -> None:
    assert variance(GAFSMAX(), 4, 1.0) == 0.25
    assert GAFSMAX(alpha=2.0).floor(9.0, 3.0, (2.0,)) == 7.0
    assert GAFSMAX().warmup == 1


def test_baselines() -> None:
    assert variance(Uniform(), 4, 1.0) == 1.0
    assert variance(Oracle([4, 1]), 4, 1.0, own=4.0) == 4.0
    assert variance(Greedy(), 5, 2.0) == 0.5
    assert Greedy(least=7).floor(100.0, 2.0, Greedy(least=7).params(None, 2, None)) == 7
    assert TwoStage(pilot=9).floor(0.0, 2.0, TwoStage(pilot=9).params(None, 2, None)) == 9
    assert TwoStage().params(1000, 10, None) == (20.0,)
    assert TwoStage().params(20, 10, None) == (2.0,)


def test_two_stage_freezes_the_pilots_variance() -> None:
    params = (3.0,)
    start = (0.0, 0.0)

    def keep(count: float, m2: float, own: Numbers) -> Numbers:
        found: Numbers = TwoStage.keep(7.0, count, 0.0, m2, (0.0,), own, params)
        return found

    assert keep(1.0, 0.0, start) == keep(2.0, 5.0, start) == start
    assert keep(3.0, 8.0, start) == (4.0, 1.0)
    assert keep(4.0, 99.0, (4.0, 1.0)) == (4.0, 1.0)
    # Many samples at once, past the pilot: the first variance there is.
    assert keep(11.0, 20.0, start) == (2.0, 1.0)
    # While the pilot goes on, or where a smaller budget has shortened it, the variance so far.
    assert TwoStage.variance(2.0, 0.0, 5.0, (0.0,), start, params) == 5.0
    assert TwoStage.variance(11.0, 0.0, 5.0, (0.0,), start, params) == 0.5
    assert TwoStage.variance(9.0, 0.0, 5.0, (0.0,), (0.0, 1.0), params) == 0.0


def test_two_equal_samples_do_not_end_a_pilot() -> None:
    study = eq.Study(2, strategy=TwoStage(pilot=10))
    for value in (1.0, 1.0):
        study.tell(arm=0, value=value)
    study.tell_moments(0, 50, 0.0, 400.0)
    study.tell_moments(1, 52, 0.0, 51.0)
    assert study.ask().arm == 0


def test_two_stage_allocates_by_the_pilots_variances() -> None:
    """Pilot of 4: variances 4 and 1 as seen there; the rest of 100 goes 80 to 20, whatever is seen later."""
    pilot = {0: [-math.sqrt(3), math.sqrt(3)] * 2, 1: [-math.sqrt(0.75), math.sqrt(0.75)] * 2}
    study = eq.Study(2, budget=100, strategy=TwoStage(pilot=4))
    seen = [0, 0]
    while not study.done:
        ticket = study.ask()
        arm: int = ticket.arm  # type: ignore[assignment]
        value = pilot[arm][seen[arm]] if seen[arm] < 4 else 1000.0 * arm * seen[arm]
        seen[arm] += 1
        study.tell(ticket, value)
    assert seen == [80, 20]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: CHAS(delta=0.0), "ch-as: delta must be strictly between 0 and 1, got 0.0"),
        (lambda: CHAS(delta=1.0), "ch-as: delta must be .* got 1.0"),
        (lambda: CHAS(delta=math.nan), "delta must be .* got nan"),
        (lambda: CHAS(width=0), "ch-as: width must be a positive number, got 0"),
        (lambda: CHAS().params(None, 2, None), "delta must be given"),
        (lambda: BAS(delta=-0.1, c1=1, c2=1), "delta must be .* got -0.1"),
        (lambda: BAS(c1=0, c2=1), "c1 must be a positive number, got 0"),
        (lambda: BAS(c1=-1, c2=1), "c1 must be a positive number, got -1"),
        (lambda: BAS(c1=1), "b-as: c1 and c2 must be given together, got c1=1 and c2=None"),
        (lambda: BAS(exploration=0.5, c1=1, c2=1), "not both"),
        (lambda: BAS(exploration=math.inf), "exploration must be a positive number, got inf"),
        (lambda: BAS().params(100, 2, None), "no safe default"),
        (lambda: BAS(c1=1, c2=1).params(None, 2, None), "delta must be given"),
        (lambda: BAS(c1=1, c2=0.1, delta=0.5).params(100, 2, None), "delta must be less than c2 = 0.1, got 0.5"),
        (lambda: eq.strategies.MCUCB().params(100, 2, None), r"mc-ucb: .* give eq.strategies.MCUCB\(exploration=A\)"),
        (lambda: eq.strategies.VarianceUCB(c1=1), "variance-ucb: .*c2=None"),
        (lambda: GAFSMAX(alpha=0), "alpha must be a positive number, got 0"),
        (lambda: GAFSMAX(alpha=True), "alpha must be a positive number, got True"),
        (lambda: TwoStage(pilot=2.0), "two-stage: pilot must be an integer of at least 2, got 2.0"),
        (lambda: Greedy(least=True), "least must be an integer of at least 2, got True"),
        (lambda: TwoStage(pilot=1), "pilot must be an integer of at least 2, got 1"),
        (lambda: TwoStage().params(None, 2, None), "pilot must be given"),
        (lambda: Greedy(least=1), "least must be an integer of at least 2, got 1"),
        (lambda: Oracle([1, -2]), "variances must be finite and non-negative, got -2.0"),
        (lambda: Oracle([math.nan]), "nan"),
    ],
)
def test_parameters_that_are_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        make()


def test_numpys_numbers_are_parameters() -> None:
    assert Greedy(least=np.int64(5)) == Greedy(least=5)
    assert type(Greedy(least=np.int64(5)).least) is int
    assert TwoStage(pilot=np.int32(7)).params(None, 2, None) == (7.0,)
    assert GAFSMAX(alpha=np.int64(2)).params(None, 2, None) == (2,)
    assert BAS(exploration=np.float32(0.5)).params(None, 2, None) == (0.5, 0.0)
    assert repr(BAS(exploration=np.float32(0.5))) == "BAS(exploration=0.5, c1=None, c2=None, delta=None)"


def test_ch_as_with_a_delta_whose_inverse_overflows() -> None:
    assert variance(CHAS(delta=1e-310), 1.0, 0.0) == pytest.approx(3 * math.sqrt(310 * math.log(10) / 2))
