"""Count, mean and M2: the same functions for numbers, arrays and compiled code, and no digits lost."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise import moments
from equipoise.compiled import jit

numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)
exact = st.lists(st.fractions(-100, 100, max_denominator=64), min_size=2, max_size=12)


def one_by_one(samples: list[float]) -> tuple[float, float, float]:
    state = (0, 0.0, 0.0)
    for x in samples:
        state = moments.add(*state, x)
    return state


@given(samples=exact)
def test_adding_is_exact_in_exact_arithmetic(samples: list[Fraction]) -> None:
    state = (Fraction(0), Fraction(0), Fraction(0))
    for x in samples:
        state = moments.add(*state, x)
    mean = sum(samples) / len(samples)
    assert list(state) == [len(samples), mean, sum((x - mean) ** 2 for x in samples)]


@given(a=exact, b=exact)
def test_merging_is_exact_in_exact_arithmetic(a: list[Fraction], b: list[Fraction]) -> None:
    def of(samples: list[Fraction]) -> tuple[Fraction, Fraction, Fraction]:
        mean = sum(samples, Fraction(0)) / len(samples)
        return Fraction(len(samples)), mean, sum(((x - mean) ** 2 for x in samples), Fraction(0))

    assert moments.merge(*of(a), *of(b)) == of(a + b)


@given(samples=exact, x=st.fractions(-100, 100, max_denominator=64))
def test_the_papers_recursion_is_an_identity(samples: list[Fraction], x: Fraction) -> None:
    """Lemma 8, in exact arithmetic, against the definition of the variance."""

    def unbiased(values: list[Fraction]) -> Fraction:
        mean = sum(values, Fraction(0)) / len(values)
        return sum(((v - mean) ** 2 for v in values), Fraction(0)) / (len(values) - 1)

    t = Fraction(len(samples))
    mean = sum(samples, Fraction(0)) / t
    assert moments.next_variance(t, unbiased(samples), mean, x) == unbiased([*samples, x])


@given(samples=numbers, x=st.floats(-1e6, 1e6))
def test_welford_steps_as_the_recursion_does(samples: list[float], x: float) -> None:
    count, mean, m2 = one_by_one(samples)
    variance = moments.unbiased(count, m2) if count > 1 else 0.0
    after_count, _, after_m2 = moments.add(count, mean, m2, x)
    expected = moments.next_variance(count, variance, mean, x)
    assert moments.unbiased(after_count, after_m2) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_one_set_of_functions_for_numbers_arrays_and_compiled_code() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(3, 2, (2, 5, 40))
    counts, means, m2s = np.zeros(5), np.zeros(5), np.zeros(5)
    for column in a.T:
        counts, means, m2s = moments.add(counts, means, m2s, column)
    merged = moments.merge(counts, means, m2s, *(np.array(x, float) for x in zip(*map(moments.of, b), strict=True)))
    compiled_add, compiled_merge = jit(moments.add), jit(moments.merge)
    for k in range(5):
        state = (0.0, 0.0, 0.0)
        for x in a[k]:
            state = compiled_add(*state, x)
        # The very same bits: the compiled code is the same arithmetic.
        assert state == (counts[k], means[k], m2s[k])
        other = moments.of(b[k])
        assert compiled_merge(*state, float(other[0]), other[1], other[2]) == tuple(row[k] for row in merged)
        both = np.concatenate([a[k], b[k]])
        assert merged[1][k] == pytest.approx(both.mean(), rel=1e-12)
        assert moments.unbiased(merged[0][k], merged[2][k]) == pytest.approx(both.var(ddof=1), rel=1e-12)
        assert moments.biased(merged[0][k], merged[2][k]) == pytest.approx(both.var(), rel=1e-12)


@pytest.mark.parametrize("how", ["one by one", "merged", "batch"])
def test_stable_at_mean_1e9_and_sd_1e_3(how: str) -> None:
    """A double near 1e9 is good to 1e-7: the mean comes out to a few of those, the variance to 4 digits or better."""
    rng = np.random.default_rng(2)
    samples = 1e9 + rng.normal(0, 1e-3, 20_000)
    shifted = samples - 1e9  # exact
    if how == "one by one":
        count, mean, m2 = one_by_one(samples.tolist())
    elif how == "merged":
        count, mean, m2 = 0, 0.0, 0.0
        for part in np.split(samples, 100):
            count, mean, m2 = moments.merge(count, mean, m2, *one_by_one(part.tolist()))
    else:
        count, mean, m2 = moments.of(samples)
    assert count == 20_000
    assert mean - 1e9 == pytest.approx(shifted.mean(), abs=1e-6)
    assert moments.unbiased(count, m2) == pytest.approx(shifted.var(ddof=1), rel=1e-4)
    # What a sum of squares would give: not a digit is right.
    naive = (math.fsum(samples**2) - samples.sum() ** 2 / count) / (count - 1)
    assert abs(naive / shifted.var(ddof=1) - 1) > 0.9


def test_empty_sides() -> None:
    some = (3, 2.0, 5.0)
    nothing = (0, 0.0, 0.0)
    assert moments.merge(*some, *nothing) == some
    assert moments.merge(*nothing, *some) == some
    assert moments.merge(*nothing, *nothing) == nothing
    assert moments.of([]) == nothing
