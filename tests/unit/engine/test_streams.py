"""Samples by address: the right bits, the right laws, the same whoever draws them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest

import equipoise as eq
from equipoise.engine import streams
from equipoise.engine.streams import U
from equipoise.numeric import floats

Floats = npt.NDArray[np.float64]

# Each law with its distribution function, or its outcomes and their probabilities.
CONTINUOUS: dict[str, tuple[eq.Law, Callable[[float], float]]] = {
    "Gaussian": (eq.Gaussian(1, 4), lambda x: 0.5 * math.erfc(-(x - 1) / math.sqrt(8))),
    "Uniform": (eq.Uniform(-1, 2), lambda x: (x + 1) / 3),
    "Exponential": (eq.Exponential(2), lambda x: -math.expm1(-x / 2)),
    "Laplace": (
        eq.Laplace(-1, 8),
        lambda x: 0.5 * math.exp((x + 1) / 2) if x < -1 else 1 - 0.5 * math.exp(-(x + 1) / 2),
    ),
    "LogNormal": (eq.LogNormal(0.3, 0.5), lambda x: 0.5 * math.erfc(-(math.log(x) - 0.3) / (0.5 * math.sqrt(2)))),
    "StudentT": (
        eq.StudentT(3, 2),
        lambda x: 0.5 + (math.atan(x / 2 / math.sqrt(3)) + (x / 2 / math.sqrt(3)) / (1 + x * x / 12)) / math.pi,
    ),
}
DISCRETE: dict[str, tuple[eq.Law, dict[float, float]]] = {
    "Rademacher": (eq.Rademacher(1.5), {-1.5: 0.5, 1.5: 0.5}),
    "Bernoulli": (eq.Bernoulli(0.3), {0.0: 0.7, 1.0: 0.3}),
    "rare": (eq.Bernoulli(0.001), {0.0: 0.999, 1.0: 0.001}),
    "Empirical": (eq.Empirical([0, 1, 5, 5, 7]), {0.0: 0.2, 1.0: 0.2, 5.0: 0.4, 7.0: 0.2}),
    "Constant": (eq.Constant(-2.5), {-2.5: 1.0}),
}
LAWS: dict[str, eq.Law] = {name: law for name, (law, _) in (CONTINUOUS | DISCRETE).items()} | {
    "StudentT, heavy": eq.StudentT(2.5),
    "StudentT, light": eq.StudentT(12, 0.5),
}


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_philox_gives_the_published_answers(counter: str, key: str, expected: str) -> None:
    given = [U(int(word, 16)) for word in (counter + " " + key).split()]
    assert [f"{int(word):08x}" for word in streams.philox(*given)] == expected.split()


def test_the_address_is_the_counter_and_the_key() -> None:
    """Counter (block, arm, low and high half of the run), key the halves of the seed."""
    w0, w1 = streams.words(U(0x299F31D0A4093822), U(0x0370734413198A2E), U(0x85A308D3), U(0x243F6A88))
    assert (int(w0), int(w1)) == (0xD16CFE0994FDCCEB, 0x5001E42024126EA1)


def some_words(count: int) -> npt.NDArray[np.uint64]:
    """Words with all kinds of bits, the extreme ones among them."""
    rng = np.random.default_rng(4)
    drawn = rng.integers(0, 2**64, count, dtype=np.uint64)
    small = rng.integers(0, 2**64, count, dtype=np.uint64) >> rng.integers(0, 64, count).astype(np.uint64)
    return np.concatenate([drawn, small, ~small, np.array([0, 1, 2, 4, 2**63, 2**64 - 1], np.uint64)])


def test_units() -> None:
    units = [streams.unit(word) for word in some_words(700)]
    assert min(units) == 2.0**-52
    assert max(units) == 1.0


HALF_LN2 = math.log(2) / 2
# The polynomials of the Gaussian stream and of the exponential: what each approximates, from where to where, and with
# what error at most.
POLYNOMIALS: dict[str, tuple[tuple[float, ...], Callable[[Any], Any], float, float, float]] = {
    "log": (floats._LOG, lambda g: mpmath.log(1 + g) / g, math.sqrt(0.5) - 1, math.sqrt(2) - 1, 4e-15),
    "exp": (floats._EXP, lambda r: (mpmath.exp(r) - 1 - r) / r**2, -HALF_LN2, HALF_LN2, 1e-15),
    "sin": (streams._SIN, lambda y: mpmath.sin(mpmath.sqrt(y) * mpmath.pi / 4) / mpmath.sqrt(y), 0.0, 1.0, 1e-15),
    "cos": (streams._COS, lambda y: mpmath.cos(mpmath.sqrt(y) * mpmath.pi / 4), 0.0, 1.0, 1e-15),
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_the_stored_polynomials_can_be_derived_again(name: str) -> None:
    """
    A least squares fit at 400 Chebyshev nodes gives the stored coefficients, and they are close to the function.

    Another linear algebra library may change the last digits of a fit, and more of them in higher powers, where they
    matter less: each term agrees to 1e-9 on the interval, and the two polynomials to 1e-14.
    """
    stored, function, low, high, error = POLYNOMIALS[name]
    nodes = (np.cos(np.pi * (np.arange(400) + 0.5) / 400) + 1) / 2 * (high - low) + low
    with mpmath.workdps(40):
        points = [mpmath.mpf(float(x)) for x in nodes]
        exact = [function(x) for x in points]
        series = np.polynomial.chebyshev.Chebyshev.fit(
            nodes, np.array([float(value) for value in exact]), len(stored) - 1, domain=[low, high]
        )
        fitted = series.convert(kind=np.polynomial.Polynomial).coef.tolist()
        reach = max(abs(low), abs(high))
        for power, (here, there) in enumerate(zip(stored, fitted, strict=True)):
            assert abs(here - there) * reach**power < 1e-9, power

        def values(coefficients: Sequence[float]) -> list[Any]:
            return [mpmath.fsum(mpmath.mpf(c) * x**power for power, c in enumerate(coefficients)) for x in points]

        ours = values(stored)
        assert max(abs(a - b) for a, b in zip(ours, values(fitted), strict=True)) < 1e-14
        assert max(abs(a - b) for a, b in zip(ours, exact, strict=True)) < error


def test_turns() -> None:
    """Against 30 digits: the angle is pi/4 times a number in [-1, 1), then a swap and two signs by the lowest bits."""
    for word in some_words(700):
        bits = int(word)
        v = mpmath.mpf(bits >> 12) / 2**51 - 1
        cos, sin = mpmath.cos(mpmath.pi / 4 * v), mpmath.sin(mpmath.pi / 4 * v)
        x, z = (sin, cos) if bits & 1 else (cos, sin)
        got = streams.turn(word)
        assert got[0] == pytest.approx(float(-x if bits & 2 else x), abs=1e-15)
        assert got[1] == pytest.approx(float(-z if bits & 4 else z), abs=1e-15)


def test_normals_from_chosen_words() -> None:
    """No angle and the smallest unit give the largest normal there is, sqrt(104 log 2)."""
    none, largest = U(2**63), U(2**64 - 1)
    assert streams.normals(largest, none) == pytest.approx((math.sqrt(104 * math.log(2)), 0), abs=1e-14)
    assert streams.normals(largest, none)[0] == pytest.approx(8.49, abs=0.001)
    assert streams.normals(largest, none | U(2))[0] == pytest.approx(-8.49, abs=0.001)
    assert streams.normals(largest, none | U(1)) == pytest.approx((0, math.sqrt(104 * math.log(2))), abs=1e-14)
    assert streams.normals(U(0), none) == (0.0, 0.0)  # the unit is 1
    # A half: the radius is sqrt(2 log 2).
    assert streams.normals(none, none)[0] == pytest.approx(math.sqrt(2 * math.log(2)))


def draw(law: eq.Law, count: int, seed: int = 1, run: int = 0, arm: int = 0) -> Floats:
    return streams.samples(eq.Problem([law] * (arm + 1)), seed, run, arm, count)


N = 200_000


@pytest.mark.parametrize("name", CONTINUOUS)
def test_the_distribution_of_continuous_laws(name: str) -> None:
    """The largest distance to the exact distribution, 200,000 samples; sqrt(N) D > 2.7 has a probability of 1e-6."""
    law, exact = CONTINUOUS[name]
    x = np.sort(draw(law, N))
    F = np.array([exact(value) for value in x])
    i = np.arange(N)
    distance = max(float((F - i / N).max()), float(((i + 1) / N - F).max()))
    assert math.sqrt(N) * distance < 2.7
    # Nor is it closer than chance has it.
    assert math.sqrt(N) * distance > 0.3


@pytest.mark.parametrize("name", DISCRETE)
def test_the_distribution_of_discrete_laws(name: str) -> None:
    """Each outcome as often as it should be, within 5 standard errors; 200,000 samples; no other outcome."""
    law, outcomes = DISCRETE[name]
    values, counts = np.unique(draw(law, N), return_counts=True)
    assert values.tolist() == sorted(outcomes)
    for value, count in zip(values, counts, strict=True):
        p = outcomes[float(value)]
        assert abs(count - N * p) <= 5 * math.sqrt(N * p * (1 - p))


@pytest.mark.parametrize("name", LAWS)
def test_the_moments_of_every_law(name: str) -> None:
    """Mean, variance, third and fourth where their errors are finite: within 5 standard errors, 200,000 samples."""
    law = LAWS[name]
    deviations = draw(law, N, seed=11) - law.mean
    exact = [0.0, law.variance, law.third, law.fourth]
    for power, moment in enumerate(exact, start=1):
        # A heavy tail: the standard error of this power is not finite, or not measured by this many samples.
        if isinstance(law, eq.StudentT) and law.df < 2 * power + 2:
            break
        powers = deviations**power
        assert abs(powers.mean() - moment) <= 5 * powers.std() / math.sqrt(N) + 1e-12, (power, moment)


def test_streams_are_uncorrelated() -> None:
    """Arms, runs, seeds, near and beyond 32 bits: correlations of N = 50,000 samples, and of squares, < 5/sqrt(N)."""
    count = 50_000
    addresses = [
        (1, 0, 0),
        (1, 0, 1),
        (1, 1, 0),
        (2, 0, 0),
        (1, 2**32, 0),
        (1 + 2**32, 0, 0),
        (0, 1, 1),
        (2**64 - 1, 2**63, 2),
    ]
    x = np.array([draw(eq.Gaussian(), count, *address) for address in addresses])
    assert len(np.unique(x)) > x.size - 5
    for y in (x, x**2):
        correlations = np.corrcoef(y) - np.eye(len(y))
        assert np.abs(correlations).max() < 5 / math.sqrt(count)
        for lag in (1, 2, 3):
            for row in y:
                assert abs(np.corrcoef(row[lag:], row[:-lag])[0, 1]) < 5 / math.sqrt(count)


@pytest.mark.parametrize("name", LAWS)
def test_lanes_are_drawn_as_one_by_one(name: str) -> None:
    """`fill_of` of three blocks for 64 and for 7 runs, `pair` for each, and `samples`: the same bits."""
    laws = (eq.Empirical([9.0, 8.0]), LAWS[name])  # the table has values of another arm before
    problem = eq.Problem(laws)
    kinds, parameters, table = streams.encode(problem.arms)
    kind, (a, b) = int(kinds[1]), parameters[1]
    for lanes, first, block, seed in itertools.product((64, 7), (0, 2**32 - 3), (0, 5), (1, 2**64 - 1)):
        out = np.full(3 + 6 * lanes, np.nan)
        # From the third of these runs on.
        drawn = streams.Laws.of(problem, seed, U(first) + np.arange(lanes + 4, dtype=U) - U(2), side_by_side="runs")
        streams.fill_of(drawn, U(2), 1, block, 3, out, 3, lanes)
        for i, j in itertools.product(range(lanes), range(3)):
            two = streams.pair(kind, a, b, table, U(seed), U(first + i), U(1), U(block + j))
            assert tuple(out[3 + i + 2 * j * lanes :: lanes][:2]) == two
            assert streams.samples(problem, seed, first + i, 1, 2, first=2 * (block + j)).tolist() == list(two)
        assert np.isnan(out[:3]).all()


@pytest.mark.parametrize("name", LAWS)
def test_blocks_of_one_run_are_drawn_as_one_by_one(name: str) -> None:
    """16 and 3 blocks of the second of three runs, side by side: the bits of `samples`."""
    problem = eq.Problem([eq.Gaussian(), LAWS[name]])
    for blocks, first in itertools.product((16, 3), (0, 40)):
        out = np.full(2 * blocks + 2, np.nan)
        drawn = streams.Laws.of(problem, 7, np.array([5, 2**40, 6], dtype=U), side_by_side="blocks")
        streams.fill_of(drawn, U(1), 1, first, 1, out, 1, blocks)
        found = np.stack([out[1 : blocks + 1], out[blocks + 1 : -1]], axis=1).ravel()
        assert found.tolist() == streams.samples(problem, 7, 2**40, 1, 2 * blocks, first=2 * first).tolist()
        assert np.isnan(out[[0, -1]]).all()


@pytest.mark.parametrize("name", LAWS)
def test_any_slice_is_part_of_the_whole(name: str) -> None:
    problem = eq.Problem([LAWS[name]])
    whole = streams.samples(problem, 5, 6, 0, 101)
    for first, count in ((0, 101), (1, 100), (50, 1), (51, 2), (100, 1), (7, 0)):
        np.testing.assert_array_equal(
            streams.samples(problem, 5, 6, 0, count, first=first), whole[first : first + count]
        )


def test_an_arm_does_not_know_its_neighbours() -> None:
    """Samples are those of (seed, run, arm, i), whatever the other arms are."""
    one = eq.Problem([eq.Gaussian(), eq.Exponential(1)])
    other = eq.Problem([eq.Empirical([1.0, 2.0]), eq.Exponential(1), eq.Constant(0)])
    np.testing.assert_array_equal(streams.samples(one, 3, 4, 1, 50), streams.samples(other, 3, 4, 1, 50))


def test_a_law_it_does_not_know() -> None:
    class Alien:
        mean, variance, third, fourth = 0.0, 1.0, 0.0, 3.0

    with pytest.raises(TypeError, match=r"arms must be laws such as eq.Gaussian or eq.Empirical\(values\), got"):
        streams.encode((Alien(),))  # type: ignore[arg-type]
