"""Count, mean and M2: the same functions for numbers, arrays and compiled code, and no digits lost."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.compiled import jit
from equipoise.numeric import moments

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


# ---- means far from 0

HERE = (0, 0.0, 0.0, 0.0)
# Multiples of 1/8, which a double still holds next to 1e15.
eighths = st.lists(st.integers(-4000, 4000).map(lambda i: i / 8), min_size=2, max_size=30)
offsets = st.sampled_from([-1e15, 1e15, 3e14, -1e13, 1e12, 1.7e9]) | st.integers(-(10**15), 10**15).map(float)


def timestamps(n: int, seed: int = 3) -> list[float]:
    """Seconds near 1.7e9 with deviations of a millisecond."""
    return [float(x) for x in 1.7e9 + np.random.default_rng(seed).normal(0, 1e-3, n)]


def shifted_one_by_one(samples: list[float]) -> tuple[float, float, float, float]:
    state: tuple[float, float, float, float] = HERE
    for x in samples:
        state = moments.add_shifted(*state, x)
    return state


def errors_off(state: tuple[float, float, float, float], samples: list[float]) -> float:
    """How many standard errors a mean is off, by exact arithmetic; the standard error is that of the samples."""
    exact_mean = sum(map(Fraction, samples), Fraction(0)) / len(samples)
    deviations = [float(Fraction(x) - exact_mean) for x in samples]
    error = math.sqrt(math.fsum(d * d for d in deviations)) / len(samples)
    off = abs(float(Fraction(state[1]) + Fraction(state[2]) - exact_mean))
    return off / error if error > 0 else (0.0 if off == 0 else math.inf)


def test_the_mean_of_timestamps_does_not_stagnate() -> None:
    samples = timestamps(100_000)
    state = shifted_one_by_one(samples)
    assert errors_off(state, samples) < 1e-6
    assert state[3] == pytest.approx(float(np.square(np.array(samples) - np.mean(samples)).sum()), rel=1e-6)
    count, mean, m2 = one_by_one(samples)
    assert errors_off((count, 0.0, mean, m2), samples) > 0.1  # what the shift is for


@given(samples=eighths, offset=offsets)
def test_the_moments_of_samples_plus_a_constant(samples: list[float], offset: float) -> None:
    """They are those of the samples, and the constant more, to a thousandth of a standard error."""
    moved = [x + offset for x in samples]
    state = shifted_one_by_one(moved)
    assert errors_off(state, moved) < 1e-3
    assert state[3] == pytest.approx(one_by_one(samples)[2], rel=1e-3)


@given(samples=eighths, offset=offsets, cut=st.integers(0, 12))
def test_merging_moments_that_are_far_from_0(samples: list[float], offset: float, cut: int) -> None:
    moved = [x + offset for x in samples]
    count, shift, mean, m2 = shifted_one_by_one(moved[cut:])
    # The mean that is handed over is a float, and so is rounded before it is merged.
    given_mean = shift + mean
    state = moments.merge_shifted(*shifted_one_by_one(moved[:cut]), count, given_mean, m2)
    lost = abs(given_mean) * 2.0**-53 * count / len(moved)
    spread = one_by_one(samples)[2]
    assert state[0] == len(moved)
    off = abs(float(Fraction(state[1]) + Fraction(state[2]) - sum(map(Fraction, moved), Fraction(0)) / len(moved)))
    assert off <= lost + 1e-3 * math.sqrt(spread) / len(moved)


@given(samples=st.lists(st.floats(-1e3, 1e3).filter(lambda x: abs(x) > 1e-3 or x == 0), min_size=1, max_size=30))
def test_not_far_from_0_every_bit_is_that_of_the_plain_functions(samples: list[float]) -> None:
    state = shifted_one_by_one(samples)
    if state[1] == 0:
        assert (state[0], *state[2:]) == one_by_one(samples)
    merged = moments.merge_shifted(*HERE, *moments.of(samples))
    if merged[1] == 0:
        assert (merged[0], *merged[2:]) == moments.merge(0, 0.0, 0.0, *moments.of(samples))


def test_where_a_mean_is_far() -> None:
    """From count |mean| = 2^40 standard deviations on; samples that are all equal are never far."""
    above, below = 2.0**38 * (1 + 1e-9), 2.0**38 * (1 - 1e-9)
    for sign in (1, -1):
        assert moments.far(4, sign * above, 4.0)
        assert not moments.far(4, sign * below, 4.0)
    assert not moments.far(10**9, 1e300, 0.0)
    assert moments.far(np.full(2, 4), np.array([above, below]), np.full(2, 4.0)).tolist() == [True, False]
    # Ordinary samples are not, however small their deviations are at first.
    assert shifted_one_by_one([0.5, 0.5 + 1e-9, 0.5 - 1e-9])[1] == 0
    assert shifted_one_by_one([1e6 + i % 7 for i in range(10_000)])[1] == 0


@given(shift=st.floats(-1e100, 1e100), mean=st.floats(-1e100, 1e100))
def test_recentring_loses_nothing(shift: float, mean: float) -> None:
    total, rest = moments.recentre(shift, mean)
    assert total == shift + mean
    assert Fraction(total) + Fraction(rest) == Fraction(shift) + Fraction(mean)


def test_a_sample_that_differs_by_the_last_digit_is_not_lost() -> None:
    """A thousand equal samples and one that is a digit above: the step of the mean is a thousandth of that digit."""
    samples = [1.7e9] * 1000 + [math.nextafter(1.7e9, math.inf)]
    assert errors_off(shifted_one_by_one(samples), samples) < 1e-9
    assert one_by_one(samples)[1] == 1.7e9


@pytest.mark.parametrize(("mine", "theirs"), [(2**44, 2**20), (2**20, 2**44), (2**44, 2**44)])
def test_a_shift_is_moved_again_where_the_mean_is_far_from_it(mine: int, theirs: int) -> None:
    count, shift, mean, m2 = moments.merge_shifted(mine, 1.0, 2.0, float(mine), theirs, 4.0, float(theirs))
    assert (count, shift) == (mine + theirs, 3.0 if mine >= theirs else 4.0)
    whole = Fraction(mine * 3 + theirs * 4, count)
    assert float(Fraction(shift) + Fraction(mean) - whole) == pytest.approx(0, abs=1e-16)
    assert m2 == pytest.approx(count + mine * theirs / count, rel=1e-15)


def test_the_moments_of_a_batch_that_is_far_from_0() -> None:
    samples = timestamps(100_000)
    count, mean, m2 = moments.of(samples)
    exact_mean = sum(map(Fraction, samples), Fraction(0)) / count
    assert mean == float(exact_mean)  # the nearest float
    deviations = [float(Fraction(x) - exact_mean) for x in samples]
    assert m2 == pytest.approx(math.fsum(d * d for d in deviations), rel=1e-12)


def test_shifted_moments_in_compiled_code() -> None:
    samples = timestamps(1000)
    add, merge = jit(moments.add_shifted), jit(moments.merge_shifted)
    state = (0.0, 0.0, 0.0, 0.0)
    for x in samples:
        state = add(*state, x)
    assert state == shifted_one_by_one(samples)
    other = (500.0, *moments.of(samples[:500])[1:])
    assert merge(*state, *other) == moments.merge_shifted(*state, *other)
