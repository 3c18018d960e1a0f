"""
What the theory functions have to return, at points where every term of every formula matters.

Each expected value is worked out from the paper at 50 digits, by another route than the formula that the
library evaluates wherever the paper offers one: a tail is integrated, an inequality is solved, a sequence is
replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

from mpmath import mp

Point = tuple[dict[str, Any], Callable[[], Any]]
Number = Any  # an mpmath number: mpmath has no types


def _exact(value: Any) -> Any:
    """The argument as the binary number it is, so that no float arithmetic enters an expected value."""
    if isinstance(value, list):
        return [_exact(each) for each in value]
    return value if value is None else mp.mpf(value)


def _evaluate(expected: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    with mp.workdps(50):
        return expected(**{name: _exact(value) for name, value in arguments.items()})


def _points(expected: Callable[..., Any], *cases: dict[str, Any]) -> list[Point]:
    return [(case, partial(_evaluate, expected, case)) for case in cases]


def _power(base: Number, exponent: Number) -> Number:
    return mp.exp(exponent * mp.log(base))


def _root(function: Callable[[Number], Number], low: Number, high: Number) -> Number:
    return mp.findroot(function, (low, high), solver="anderson", tol=mp.mpf(10) ** -90, maxsteps=200)


# Chernoff and Hoeffding: Lemma 1, Theorem 1, Remark 3


def _hoeffding(t: Number, delta: Number) -> Number:
    """The x at which Hoeffding's tail of a mean of t samples in [0, 1] is delta."""
    return _root(lambda x: mp.log(delta) + 2 * t * x**2, mp.mpf(0), mp.mpf(100))


def _lemma1_radius(t: Number, delta: Number) -> Number:
    return 3 * _hoeffding(t, delta)


def _radius(t: Number, delta: Number, width: Number) -> Number:
    """Hoeffding for means of t squares of samples in [0, width], which lie in [0, width^2]."""
    return 3 * _root(lambda x: mp.log(delta) + 2 * t * x**2 / width**4, mp.mpf(0), 100 * width**2)


def _lemma1_event(samples: Any, variances: Any, delta: Number) -> bool:
    """Every prefix of every arm, its variance taken over pairs of samples."""
    return all(
        abs(sum((x - y) ** 2 for x, y in product(row[:t], repeat=2)) / (2 * mp.mpf(t) ** 2) - variance)
        <= 3 * mp.sqrt(-mp.log(delta) / (2 * t))
        for row, variance in zip(samples, variances, strict=True)
        for t in range(1, len(row) + 1)
    )


def _lemma1_event_points(samples: list[list[float]], variances: list[float]) -> list[Point]:
    """A delta for which the event just holds and one for which it just fails."""
    deltas = [
        mp.exp(-2 * t * ((mp.fsum(x**2 for x in row[:t]) / t - (mp.fsum(row[:t]) / t) ** 2 - variance) / 3) ** 2)
        for row, variance in zip(samples, variances, strict=True)
        for t in range(1, len(row) + 1)
    ]
    data = {"samples": samples, "variances": variances}
    limits = [float(min(deltas) * (1 + margin)) for margin in (-1e-9, 1e-9)]
    return _points(_lemma1_event, *({**data, "delta": delta} for delta in limits))


def _lemma1_probability(n: Number, K: Number, delta: Number) -> Number:
    """Two-sided Hoeffding for the mean and for the mean of squares, over every arm and time."""
    return max(mp.mpf(0), 1 - mp.fsum(2 * 2 * delta for _ in range(int(n * K))))


def _lemma1_bounds(variances: Any, n: Number, delta: Number) -> tuple[list[Number], list[Number]]:
    """Equation almost.lb: how far sigma_p^2 / T_p may exceed Sigma / n, turned into pulls."""
    total, K, least = mp.fsum(variances), len(variances), min(variances)
    excess = 12 * mp.sqrt(-mp.log(delta)) / (least / total * n) ** 1.5 + 4 * K * total / n**2
    slack = excess * n**2 / total
    shares = [variance / total for variance in variances]
    return [share * n - share * slack for share in shares], [share * n + slack for share in shares]


def _theorem1(variances: Any, n: Number) -> Number:
    total = mp.fsum(variances)
    log_share, loglog = mp.log(min(variances)) - mp.log(total), mp.log(mp.log(n))
    first = mp.exp(mp.log(39) + loglog / 2 - 1.5 * mp.log(n) - 2.5 * log_share)
    second = mp.exp(mp.log(2900) + 1.5 * loglog - 2 * mp.log(n) - 5.5 * log_share)
    return first + second + second * mp.exp(-2.5 * mp.log(total))


def _conjectured_regret(lambda_min: Number, n: Number, fast: Number = 1, slow: Number = 1) -> Number:
    """The slow rate below the share at which the two rates meet, the fast one above."""
    meeting = _power(fast / slow, mp.mpf(2) / 5) / _power(n, mp.mpf(1) / 15)
    if lambda_min < meeting:
        return slow / (n * mp.cbrt(n))
    return fast / (n * mp.sqrt(n) * lambda_min**2 * mp.sqrt(lambda_min))


def _remark3(n: Number, delta: Number | None) -> Number:
    """The bonus of CH-AS after one pull."""
    return 3 * _hoeffding(mp.mpf(1), 1 / (n**2 * mp.sqrt(n)) if delta is None else delta)


def _remark3_pulls(n: Number, delta: Number | None = None, variance: Number = 0.25) -> Number:
    """Where the indices of the two arms balance: each is (its variance + its bonus) over its pulls."""
    bonus = _remark3(n, delta)

    def unbalance(pulls: Number) -> Number:
        rest = n - pulls
        return bonus / mp.sqrt(pulls) * rest - (variance + bonus / mp.sqrt(rest)) * pulls

    return _root(unbalance, n / 10**6, n * (1 - mp.mpf(10) ** -6))


def _remark3_leading(n: Number, delta: Number | None = None, variance: Number = 0.25) -> Number:
    """The same balance with the first arm's bonus and the second arm's pulls neglected."""
    bonus = _remark3(n, delta)
    return _root(lambda pulls: mp.log(bonus / mp.sqrt(pulls) / pulls) - mp.log(variance / n), n / 10**6, n * 10**6)


def _remark3_regret(n: Number, delta: Number | None = None, variance: Number = 0.25) -> Number:
    pulls = _remark3_pulls(n, delta, variance)
    return variance * pulls / (n * (n - pulls))


def _remark3_gafs_max_pulls(n: Number, alpha: Number = 1) -> Number:
    """The least T that forced exploration lets stand: (T - 1)^2 = alpha^2 n."""
    return _root(lambda pulls: (pulls - 1) ** 2 - alpha**2 * n, mp.mpf(1), 1 + 2 * alpha * n)


# Bernstein: Assumption 1, Lemmas 2, 4, 5 and 6, Theorems 2, 3 and 4


def _tail(epsilon: Number, c1: Number, c2: Number) -> Number:
    return mp.exp(mp.log(c2) - epsilon / c1 * epsilon)


def _variance_bound(c1: Number, c2: Number) -> Number:
    """E[S^2] as the integral of P(S^2 > x), bounded by Assumption 1."""
    return mp.quad(lambda x: c2 * mp.exp(-x / c1), [0, c1, 10 * c1, mp.inf])


def _lemma5_radius(pulls: Number, delta: Number, c1: Number, c2: Number) -> Number:
    """The last line of the proof of Lemma 4."""
    log = mp.log(c2) - mp.log(delta)
    truncation = mp.sqrt(2 * c1 * delta * (1 + c2 + log)) / (1 - delta)
    return 4 * mp.sqrt(c1 * log) * mp.sqrt(mp.log(2 / delta) / pulls) + truncation


def _a(c1: Number, c2: Number, delta: Number, n: Number) -> Number:
    """The same line at t = n, where it equals 2 a sqrt(log(2 / delta) / n)."""
    return _lemma5_radius(n, delta, c1, c2) / mp.sqrt(4 * mp.log(2 / delta) / n)


def _lemma4_radius(t: Number, delta: Number, c1: Number, c2: Number, n: Number) -> Number:
    """The line at t = n again: the radius falls as 1 / sqrt(t)."""
    return _lemma5_radius(n, delta, c1, c2) * mp.sqrt(n / t)


def _lemma4_event(samples: Any, variances: Any, delta: Number, c1: Number, c2: Number) -> bool:
    return all(
        abs(mp.sqrt(sum((x - y) ** 2 for x, y in product(row[:t], repeat=2)) / (2 * t * (t - 1))) - mp.sqrt(variance))
        <= _lemma4_radius(mp.mpf(t), delta, c1, c2, mp.mpf(len(row)))
        for row, variance in zip(samples, variances, strict=True)
        for t in range(2, len(row) + 1)
    )


def _lemma4_event_points(samples: list[list[float]], variances: list[float], delta: float, c2: float) -> list[Point]:
    """A c1 for which the event just holds and one for which it just fails: the radius grows as sqrt(c1)."""
    scales = [
        (mp.sqrt(mp.fsum((x - mp.fsum(row[:t]) / t) ** 2 for x in row[:t]) / (t - 1)) - mp.sqrt(variance))
        / _lemma4_radius(mp.mpf(t), mp.mpf(delta), mp.mpf(1), mp.mpf(c2), mp.mpf(len(row)))
        for row, variance in zip(samples, variances, strict=True)
        for t in range(2, len(row) + 1)
    ]
    data = {"samples": samples, "variances": variances, "delta": delta, "c2": c2}
    limits = [float(max(abs(scale) for scale in scales) ** 2 * (1 + margin)) for margin in (1e-9, -1e-9)]
    return _points(_lemma4_event, *({**data, "c1": c1} for c1 in limits))


def _lemma4_probability(n: Number, K: Number, delta: Number) -> Number:
    """The truncation and Maurer's inequality may each fail for every arm and time."""
    return max(mp.mpf(0), 1 - mp.fsum(delta + delta for _ in range(int(n * K))))


def _lemma2_least_pulls(variances: Any, n: Number, delta: Number, c1: Number, c2: Number) -> Number:
    """Equation lb.vloose."""
    A = _a(c1, c2, delta, n) * mp.sqrt(mp.log(2 / delta))
    return 2 * A / (mp.sqrt(mp.fsum(variances)) + 3 * A) * mp.sqrt(3 * n / (4 * len(variances)))


def _c(variances: Any, n: Number, delta: Number, c1: Number, c2: Number) -> Number:
    return _lemma2_least_pulls(variances, n, delta, c1, c2) / mp.sqrt(n)


def _lemma2_bounds(
    variances: Any, n: Number, delta: Number, c1: Number, c2: Number
) -> tuple[list[Number], list[Number]]:
    """Equations b-lower and b-upper, written out."""
    total, K = mp.fsum(variances), len(variances)
    a, c, log = _a(c1, c2, delta, n), _c(variances, n, delta, c1, c2), mp.log(2 / delta)
    bracket = (
        16 * a * mp.sqrt(log) / total * (mp.sqrt(total) + 2 * a * mp.sqrt(log) / c) * mp.sqrt(n)
        + 64 * mp.sqrt(2 * K) * a**2 * log / (total * mp.sqrt(c)) * mp.sqrt(mp.sqrt(n))
        + 2
    )
    shares = [variance / total for variance in variances]
    return [share * (n - K * bracket) for share in shares], [share * n + K * bracket for share in shares]


def _B_and_C(variances: Any, n: Number, delta: Number, c1: Number, c2: Number) -> tuple[Number, Number]:
    """
    From the first line of equation almost-lower-bound, Sigma + B / sqrt(x) + C / x^{3/4} at x = 1 and x = 16.

    a and c keep the budget n, so that two values of x are enough to solve for B and C.
    """
    K, a, c, log = len(variances), _a(c1, c2, delta, n), _c(variances, n, delta, c1, c2), mp.log(2 / delta)
    root = mp.sqrt(mp.fsum(variances))

    def beyond_sigma(x: int) -> Number:
        inner = root + 4 * mp.sqrt(K) * a * mp.sqrt(2 * log / (c * mp.sqrt(x)))
        return 16 * a * mp.sqrt(log) * K / mp.sqrt(x) * inner + 32 * K * a**2 * log / (c * mp.sqrt(x))

    at_1, at_16 = beyond_sigma(1), beyond_sigma(16)  # B + C and B / 4 + C / 8
    return 8 * at_16 - at_1, 2 * at_1 - 8 * at_16


def _B(**arguments: Any) -> Number:
    return _B_and_C(**arguments)[0]


def _C(**arguments: Any) -> Number:
    return _B_and_C(**arguments)[1]


def _a_bounds(c1: Number, c2: Number, n: Number) -> tuple[Number, Number]:
    return _power(c1, 0.5), mp.sqrt(16 * c1 * mp.log(n) + 16 * c1 * c2 * mp.log(n))


def _c_bound(K: Number, c2: Number) -> Number:
    """The stated bound with the root taken out of the denominator, at points where K c2 is not 3."""
    return (mp.sqrt(c2) - mp.sqrt(3 / K)) / (K * c2 - 3)


def _log_square(factor: int, K: Number, n: Number, c1: Number, c2: Number) -> Number:
    return mp.exp(mp.log(factor) + 2 * mp.log(K) + mp.log(c1) + mp.log(c2 + 1) + 2 * mp.log(mp.log(n)))


def _lemma6(n: Number, K: Number, delta: Number, c1: Number, c2: Number) -> Number:
    """The integral of P(S^2 > x, not xi), at most P(not xi) and at most Assumption 1's tail, n times."""
    outside = 2 * n * K * delta
    crossing = _root(lambda x: mp.log(c2) - x / c1 - mp.log(outside), mp.mpf(0), c1 * 10**6)
    tail = mp.quad(lambda x: c2 * mp.exp(-x / c1), [crossing, crossing + c1, crossing + 10 * c1, mp.inf])
    return n * (outside * crossing + tail)


def _lemma6_bound(n: Number, K: Number, c1: Number, c2: Number) -> Number:
    return mp.exp(mp.log(7 * c1 * K) + mp.log(mp.log(n) + c2 * mp.log(n)) - 1.5 * mp.log(n))


def _theorem2(variances: Any, n: Number, c1: Number, c2: Number) -> Number:
    """The last explicit line of the proof, its brackets multiplied out."""
    total, K, delta = mp.fsum(variances), len(variances), mp.exp(-3.5 * mp.log(n))
    B, C = _B_and_C(variances=variances, n=n, delta=delta, c1=c1, c2=c2)
    log_share = mp.log(min(variances) / total)
    leading = mp.exp(mp.log(9 * B) - 1.5 * mp.log(n) - log_share)
    next_term = mp.exp(mp.log(3 * K) + 3 * mp.log(B + C) - 1.75 * mp.log(n) - log_share)
    shape = 1 / total**2 + 1 / total + 21 + 21 * total
    return leading + next_term * shape + _lemma6(n, K, delta, c1, c2)


def _theorem2_leading(variances: Any, n: Number, c1: Number, c2: Number) -> Number:
    share = min(variances) / mp.fsum(variances)
    return _log_square(76400, len(variances), n, c1, c2) * mp.exp(-1.5 * mp.log(n) - mp.log(share))


def _theorem3(Sigma_bar: Number, n: Number, K: Number) -> Number:
    return mp.exp(mp.log(105000 * Sigma_bar) + 2 * mp.log(K * mp.log(n)) - 1.5 * mp.log(n))


def _theorem4(t: Number, delta: Number, width: Number) -> Number:
    """The two one-sided tails exp(-(t - 1) x^2 / (2 width^2)) add up to delta."""
    return _root(lambda x: mp.log(2) - (t - 1) * x**2 / (2 * width**2) - mp.log(delta), mp.mpf(0), 1000 * width)


# Losses and laws: Lemmas 3, 7 and 8, Wald's identity, the constants of Assumption 1


def _wald(paths: Sequence[tuple[Number, Number, int]]) -> tuple[Number, Number]:
    """E[(S_T - T mu)^2] and E[T] over paths of (probability, centred sum, pulls)."""
    return mp.fsum(p * s**2 for p, s, _ in paths), mp.fsum(p * t for p, _, t in paths)


def _stopped_at_a_one(success: Number, horizon: int) -> list[tuple[Number, Number, int]]:
    """Bernoulli samples up to the first 1, or up to the horizon: a stopping time that looks at the data."""
    paths = [(success * (1 - success) ** (t - 1), 1 - t * success, t) for t in range(1, horizon + 1)]
    return [*paths, ((1 - success) ** horizon, -horizon * success, horizon)]


def _wald_point(success: float, horizon: int) -> Point:
    paths = _stopped_at_a_one(mp.mpf(success), horizon)
    arguments = {"variance": float(success * (1 - success)), "expected_pulls": float(_wald(paths)[1])}

    def expected() -> Number:
        with mp.workdps(50):
            return _wald(_stopped_at_a_one(mp.mpf(success), horizon))[0]

    return arguments, expected


def _loss_on_event(variance: Number, least_pulls: Number, expected_pulls: Number) -> Number:
    """Of Wald's E[(S_T - T mu)^2] = sigma^2 E[T], divided by the square of the least T."""
    return (mp.sqrt(variance * expected_pulls) / least_pulls) ** 2


def _lemma3(variance: Number, pulls: Any) -> Number:
    """The proof's sum over t of sigma^2 / t times P(T = t)."""
    return mp.fsum(variance / t * pulls.count(t) / len(pulls) for t in set(pulls))


def _lemma7(mean: Number, variance: Number, t: Number) -> tuple[Number, Number]:
    """The proof's induction: the mean of t + 1 samples from the mean of t and one more."""
    law = variance
    for s in range(1, int(t)):
        law = (mp.mpf(s) / (s + 1)) ** 2 * law + variance / mp.mpf(s + 1) ** 2
    return mean, law


def _lemma8_point(samples: Sequence[float]) -> Point:
    """The unbiased variance of all samples, where the library sees the moments of all but the last."""

    def moments(values: Sequence[float]) -> tuple[Number, Number]:
        mean = mp.fsum(values) / len(values)
        return mean, mp.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)

    def expected() -> Number:
        with mp.workdps(50):
            return moments(samples)[1]

    mean, variance = moments(samples[:-1])
    arguments = {"t": len(samples) - 1, "variance": float(variance), "mean": float(mean), "x": samples[-1]}
    return arguments, expected


def _bounded_constants(low: Number, high: Number) -> tuple[Number, Number]:
    """With c2 = e, the tail has to reach 1 at the width of the interval: no deviation is larger."""
    c2 = mp.nsum(lambda i: 1 / mp.factorial(i), [0, mp.inf])
    return _root(lambda c1: mp.log(c2) - (high - low) ** 2 / c1, mp.mpf(10) ** -9, mp.mpf(10) ** 9), c2


def _gaussian_constants(variances: Any) -> tuple[Number, Number]:
    """c1 is the sum of the arms' own c1 = 2 sigma_k^2."""
    return mp.fsum(variance + variance for variance in variances), mp.mpf(1)


def _subgaussian_tail(epsilon: Number, c1: Number, c2: Number) -> Number:
    return _tail(epsilon, c1, c2)


THREE = [0.07, 0.21, 0.13]
WIDE = [3.0, 0.4, 1.7]

POINTS: dict[str, list[Point]] = {
    "lemma1_radius": _points(
        _lemma1_radius, {"t": 1, "delta": 0.3}, {"t": 17, "delta": 0.004}, {"t": 1000, "delta": 1e-9}
    ),
    # The binding prefix is the first sample, the whole second row, and one in the middle.
    "lemma1_event": [
        *_lemma1_event_points([[0.0, 0.8, 0.4, 1.0, 0.0]], [0.2]),
        *_lemma1_event_points([[0.0, 1.0, 0.3, 0.9, 0.1, 0.4], [0.5, 0.5, 0.6, 0.5, 0.4, 0.5]], [0.2, 0.25]),
        *_lemma1_event_points([[0.1, 0.2, 0.1, 0.3], [0.0, 1.0, 0.45, 0.5], [0.2, 0.9, 0.3, 0.1]], [0.01, 0.02, 0.1]),
    ],
    "lemma1_probability": _points(
        _lemma1_probability,
        {"n": 50, "K": 3, "delta": 1e-4},
        {"n": 7, "K": 2, "delta": 0.015},
        {"n": 300, "K": 5, "delta": 0.2},
    ),
    "lemma1_bounds": _points(
        _lemma1_bounds,
        {"variances": THREE, "n": 15, "delta": 0.4},
        {"variances": THREE, "n": 200000, "delta": 1e-6},
        {"variances": [0.25, 0.2], "n": 900, "delta": 0.01},
    ),
    "theorem1": _points(
        _theorem1,
        {"variances": THREE, "n": 15},
        {"variances": THREE, "n": 10**7},
        {"variances": [0.25, 0.2], "n": 10**5},
        {"variances": [0.25, 0.25, 0.25, 0.24, 0.25, 0.25, 0.2, 0.25], "n": 10**9},
    ),
    "conjectured_regret": _points(
        _conjectured_regret,
        {"lambda_min": 0.9, "n": 1000},
        {"lambda_min": 0.1, "n": 1000},
        {"lambda_min": 0.0, "n": 70},
        {"lambda_min": 0.3, "n": 500, "fast": 0.05, "slow": 7.0},
        {"lambda_min": 0.01, "n": 500, "fast": 2.0, "slow": 3.0},
    ),
    "remark3_pulls": _points(
        _remark3_pulls,
        {"n": 10},
        {"n": 1000},
        {"n": 10**6},
        {"n": 500, "delta": 0.3},
        {"n": 2000, "delta": 0.01, "variance": 0.03},
        {"n": 10, "delta": 0.99999},  # less than one pull
    ),
    "remark3_leading": _points(
        _remark3_leading,
        {"n": 1000},
        {"n": 10**6},
        {"n": 500, "delta": 0.3},
        {"n": 2000, "delta": 0.01, "variance": 0.03},
    ),
    "remark3_regret": _points(
        _remark3_regret,
        {"n": 10},
        {"n": 1000},
        {"n": 500, "delta": 0.3},
        {"n": 2000, "delta": 0.01, "variance": 0.03},
    ),
    "remark3_gafs_max_pulls": _points(
        _remark3_gafs_max_pulls, {"n": 10}, {"n": 1000}, {"n": 77, "alpha": 0.35}, {"n": 5000, "alpha": 2.5}
    ),
    "variance_bound": _points(_variance_bound, {"c1": 1.0, "c2": 2.7}, {"c1": 0.3, "c2": 0.4}, {"c1": 12.5, "c2": 1.0}),
    "a": _points(
        _a,
        {"c1": 1.0, "c2": 2.7, "delta": 0.3, "n": 50},
        {"c1": 2.5, "c2": 1.0, "delta": 0.02, "n": 15},
        {"c1": 0.4, "c2": 0.5, "delta": 0.3, "n": 700},
        {"c1": 7.0, "c2": 1.3, "delta": 1e-8, "n": 1000},
    ),
    "a_bounds": _points(
        _a_bounds,
        {"c1": 1.0, "c2": 2.7, "n": 10},
        {"c1": 2.5, "c2": 1.0, "n": 300},
        {"c1": 40.0, "c2": 3.3, "n": 10**5},
    ),
    "c": _points(
        _c,
        {"variances": WIDE, "n": 15, "delta": 0.3, "c1": 1.2, "c2": 2.7},
        {"variances": [9.0, 0.5], "n": 100, "delta": 0.7, "c1": 4.0, "c2": 2.5},
        {"variances": [0.2, 0.1, 0.05, 0.25], "n": 400, "delta": 1e-5, "c1": 1.0, "c2": 1.0},
    ),
    "c_bound": _points(_c_bound, {"K": 2, "c2": 1.0}, {"K": 3, "c2": 2.7}, {"K": 10, "c2": 5.5}),
    "theorem4": _points(
        _theorem4,
        {"t": 2, "delta": 0.3, "width": 1.0},
        {"t": 9, "delta": 0.004, "width": 2.5},
        {"t": 100, "delta": 1e-7, "width": 0.6},
    ),
    "lemma4_radius": _points(
        _lemma4_radius,
        {"t": 2, "delta": 0.3, "c1": 1.0, "c2": 2.7, "n": 50},
        {"t": 13, "delta": 0.02, "c1": 2.5, "c2": 1.0, "n": 15},
        {"t": 50, "delta": 0.3, "c1": 0.4, "c2": 0.5, "n": 700},
    ),
    "lemma5_radius": _points(
        _lemma5_radius,
        {"pulls": 2, "delta": 0.3, "c1": 1.0, "c2": 2.7},
        {"pulls": 13, "delta": 0.02, "c1": 2.5, "c2": 1.0},
        {"pulls": 50, "delta": 0.3, "c1": 0.4, "c2": 0.5},
    ),
    # The binding prefix is the first pair of the second row, a whole row, and one in the middle.
    "lemma4_event": [
        *_lemma4_event_points([[1.0, 2.0, 4.0, 1.0, 3.0], [0.0, 100.0, 50.0, 50.0, 45.0]], [1.0, 2.0], 0.1, 2.0),
        *_lemma4_event_points([[7.0] * 60, [0.0, 3.0] * 30], [25.0, 2.0], 0.01, 20.0),
        *_lemma4_event_points([[0.0, 1.0, 80.0, -70.0, 5.0, 3.0, 4.0]], [3.0], 0.02, 1.0),
        *_lemma4_event_points([[1e9, 1e9 + 1, 1e9 + 80, 1e9 - 70, 1e9 + 5]], [3.0], 0.02, 1.0),  # far from 0
    ],
    "lemma4_probability": _points(
        _lemma4_probability,
        {"n": 50, "K": 3, "delta": 1e-4},
        {"n": 7, "K": 2, "delta": 0.015},
        {"n": 300, "K": 5, "delta": 0.2},
    ),
    "lemma2_least_pulls": _points(
        _lemma2_least_pulls,
        {"variances": WIDE, "n": 15, "delta": 0.3, "c1": 1.2, "c2": 2.7},
        {"variances": [9.0, 0.5], "n": 100, "delta": 0.7, "c1": 4.0, "c2": 2.5},
        {"variances": [0.2, 0.1, 0.05, 0.25], "n": 400, "delta": 1e-5, "c1": 1.0, "c2": 1.0},
    ),
    "lemma2_bounds": _points(
        _lemma2_bounds,
        {"variances": WIDE, "n": 15, "delta": 0.3, "c1": 1.2, "c2": 2.7},
        {"variances": WIDE, "n": 10**8, "delta": 1e-3, "c1": 1.2, "c2": 2.7},
        {"variances": [9.0, 0.5], "n": 100, "delta": 0.7, "c1": 4.0, "c2": 2.5},
    ),
    "B": _points(
        _B,
        {"variances": WIDE, "n": 15, "delta": 0.3, "c1": 1.2, "c2": 2.7},
        {"variances": [9.0, 0.5], "n": 100, "delta": 0.7, "c1": 4.0, "c2": 2.5},
        {"variances": [0.2, 0.1, 0.05, 0.25], "n": 400, "delta": 1e-5, "c1": 1.0, "c2": 1.0},
    ),
    "C": _points(
        _C,
        {"variances": WIDE, "n": 15, "delta": 0.3, "c1": 1.2, "c2": 2.7},
        {"variances": [9.0, 0.5], "n": 100, "delta": 0.7, "c1": 4.0, "c2": 2.5},
        {"variances": [0.2, 0.1, 0.05, 0.25], "n": 400, "delta": 1e-5, "c1": 1.0, "c2": 1.0},
    ),
    "B_bound": _points(
        partial(_log_square, 8000),
        {"K": 2, "n": 10, "c1": 1.0, "c2": 1.0},
        {"K": 3, "n": 200, "c1": 2.5, "c2": 2.7},
        {"K": 7, "n": 10**6, "c1": 11.0, "c2": 1.9},
    ),
    "C_bound": _points(
        partial(_log_square, 14000),
        {"K": 2, "n": 10, "c1": 1.0, "c2": 1.0},
        {"K": 3, "n": 200, "c1": 2.5, "c2": 2.7},
        {"K": 7, "n": 10**6, "c1": 11.0, "c2": 1.9},
    ),
    "lemma6": _points(
        _lemma6,
        {"n": 15, "K": 3, "delta": 0.004, "c1": 1.2, "c2": 2.7},
        {"n": 100, "K": 2, "delta": 1e-7, "c1": 4.0, "c2": 1.0},
        {"n": 20, "K": 4, "delta": 0.002, "c1": 0.3, "c2": 0.5},
    ),
    "lemma6_bound": _points(
        _lemma6_bound,
        {"n": 10, "K": 2, "c1": 1.0, "c2": 1.0},
        {"n": 200, "K": 3, "c1": 2.5, "c2": 2.7},
        {"n": 10**6, "K": 7, "c1": 11.0, "c2": 1.9},
    ),
    # At n = 10^80 the two terms of order n^{-3/2} are not drowned by the one of order n^{-7/4}.
    "theorem2": _points(
        _theorem2,
        {"variances": WIDE, "n": 15, "c1": 1.2, "c2": 2.7},
        {"variances": [9.0, 0.5], "n": 10**80, "c1": 4.0, "c2": 2.5},
        {"variances": [0.2, 0.1, 0.05, 0.25], "n": 10**80, "c1": 1.0, "c2": 1.0},
    ),
    "theorem2_leading": _points(
        _theorem2_leading,
        {"variances": WIDE, "n": 15, "c1": 1.2, "c2": 2.7},
        {"variances": [9.0, 0.5], "n": 3000, "c1": 4.0, "c2": 2.5},
        {"variances": [0.2, 0.1, 0.05, 0.25], "n": 100, "c1": 1.0, "c2": 1.0},
    ),
    "theorem3": _points(
        _theorem3,
        {"Sigma_bar": 0.5, "n": 10, "K": 2},
        {"Sigma_bar": 5.0, "n": 1000, "K": 3},
        {"Sigma_bar": 77.7, "n": 10**6, "K": 12},
    ),
    "wald": [_wald_point(0.25, 3), _wald_point(0.5, 5), _wald_point(0.125, 2)],
    "loss_on_event": _points(
        _loss_on_event,
        {"variance": 0.25, "least_pulls": 3, "expected_pulls": 4.5},
        {"variance": 4.0, "least_pulls": 11.5, "expected_pulls": 70.0},
        {"variance": 0.03, "least_pulls": 2, "expected_pulls": 2.0},
    ),
    "lemma3": _points(
        _lemma3,
        {"variance": 4.0, "pulls": [2, 3, 3, 7]},
        {"variance": 0.3, "pulls": [5]},
        {"variance": 1.7, "pulls": [100, 2, 2, 2, 41, 41]},
    ),
    "lemma7": _points(
        _lemma7,
        {"mean": 0.0, "variance": 4.0, "t": 2},
        {"mean": -1.5, "variance": 0.3, "t": 7},
        {"mean": 12.0, "variance": 1.7, "t": 100},
    ),
    "lemma8": [
        _lemma8_point([1.0, 4.0, -2.5]),
        _lemma8_point([0.5, 0.5, 2.0, 7.25, 3.0, -4.0]),
        _lemma8_point([10.0, 11.0, 13.5, 10.25, 40.0]),
    ],
    "bounded_constants": _points(
        _bounded_constants, {"low": 0.0, "high": 1.0}, {"low": -2.0, "high": 1.5}, {"low": 3.0, "high": 3.5}
    ),
    "gaussian_constants": _points(
        _gaussian_constants, {"variances": [4.0, 1.0]}, {"variances": WIDE}, {"variances": [0.3]}
    ),
    "subgaussian_tail": _points(
        _subgaussian_tail,
        {"epsilon": 3.0, "c1": 1.2, "c2": 2.7},
        {"epsilon": 0.9, "c1": 0.6, "c2": 1.0},
        {"epsilon": 11.0, "c1": 40.0, "c2": 1.7},
        {"epsilon": 0.2, "c1": 2.0, "c2": 2.7},
    ),
}

# The paper has samples in [0, 1]; the strategy takes any width, and so does its radius.
RADIUS = _points(
    _radius,
    {"t": 1, "delta": 0.3, "width": 2.5},
    {"t": 17, "delta": 0.004, "width": 0.6},
    {"t": 1000, "delta": 1e-9, "width": 30.0},
)
