"""
What the formulas of the intervals have to give, worked out at 25 digits by another route wherever there is one.

Sums are replayed from the samples, a mixture over a prior is integrated, a binomial tail is summed, a quantile is the
root of an integrated density, and ends are roots of the capital as the product of all rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from mpmath import mp

from equipoise.compiled import jit

DIGITS = 25
Numbers = list[float]
# A module of a kind, as it is or with one thing changed: points take it and give back what it says.
Module = Any

# Scaled to [0, 1] these lie at both ends and between; the support is [-1, 3].
SAMPLES = (0.5, 2.9, -0.7, 1.1, 1.2, 2.4, -1.0, 3.0, 0.1, 1.6, 0.9, 0.2)
LOW, WIDTH, ALPHA = -1.0, 4.0, 0.03
CALM = tuple(1.0 + x / 50 for x in SAMPLES[:5])
MANY = SAMPLES[:4] * 40
EDGE = tuple(LOW + (x - LOW) / 200 for x in SAMPLES[:5])


def _root(function: Callable[[Any], Any], inside: Any, outside: Any) -> Any:
    """Where a function, not positive at `inside`, becomes positive towards `outside`: by halving, to 15 digits."""
    for _ in range(50):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if function(middle) > 0 else (middle, outside)
    return inside


def fold(module: Module, samples: Sequence[float], settings: Any) -> Any:
    """The state after these samples, in the second of three rows."""
    return fold_from(np.zeros(module.COLUMNS), module, samples, settings)


def fold_from(row: Any, module: Module, samples: Sequence[float], settings: Any) -> Any:
    """The state after these samples, in the second of three rows, which begins as `row`."""
    state = np.zeros((3, module.COLUMNS))
    state[1] = row
    for x in samples:
        module.update(state, 1, x, settings)
    assert not state[[0, 2]].any()
    return state[1]


# Betting on bounded arms

BETTING_CASES = ((SAMPLES, 0.03), (SAMPLES[:1], 0.4), (CALM * 3, 0.03), (MANY, 1e-4), (EDGE, 0.03), ((3.0,) * 9, 0.03))


def capital_exact(xs: Sequence[Any], m: Any) -> Any:
    """The capital as the product of all rounds, each as 1 + λ(X - m)."""
    times = {x: xs.count(x) for x in xs}
    total, shares = mp.mpf(0), mp.mpf(0)
    for j in range(16):
        share = 1 / (9 + mp.mpf(j - 4) ** 2)
        shares += 2 * share
        for theta in (mp.mpf(8) / 2**j, -mp.mpf(8) / 2**j):
            kappa = mp.exp(theta) - 1
            bet = kappa / (1 + kappa * m)
            rounds = mp.mpf(1)
            for x, count in times.items():
                rounds *= (1 + bet * (x - m)) ** count
            total += share * rounds
    return total / shares


def betting(module: Module) -> Numbers:
    settings = module.settings(LOW, WIDTH, ALPHA)
    found = [end for xs, a in BETTING_CASES for end in module.bounds(fold(module, xs, settings), a, settings)]
    row = fold(module, SAMPLES, settings)
    return [*found, *module.capital(row, 0.2), *module.bounds(fold(module, (), settings), ALPHA, settings)]


def betting_expected() -> Numbers:
    with mp.workdps(DIGITS):
        found = []
        for samples, alpha in BETTING_CASES:
            xs = [(mp.mpf(x) - mp.mpf(LOW)) / mp.mpf(WIDTH) for x in samples]
            mean = sum(xs) / len(xs)
            for end in (mp.mpf(0), mp.mpf(1)):

                def excess(m: Any, xs: Any = xs, alpha: float = alpha) -> Any:
                    return mp.log(capital_exact(xs, m)) + mp.log(mp.mpf(alpha))

                edge = end if excess(end) <= 0 else _root(excess, mean, end)
                found.append(float(mp.mpf(LOW) + mp.mpf(WIDTH) * edge))
        xs = [(mp.mpf(x) - mp.mpf(LOW)) / mp.mpf(WIDTH) for x in SAMPLES]
        slope = mp.diff(lambda m: mp.log(capital_exact(xs, m)), mp.mpf(0.2))
        return [*found, float(mp.log(capital_exact(xs, mp.mpf(0.2)))), float(slope), LOW, LOW + WIDTH]


# Betting on bounded populations: samples, the size, and the level. The last two orders leave no mean possible.

POOLS = (
    (SAMPLES, 20.0, 0.03),
    (SAMPLES, math.inf, 0.03),
    (SAMPLES[:1], 3.0, 0.4),
    (CALM * 3, 16.0, 0.03),
    (MANY[:60], 64.0, 1e-4),
    (EDGE * 4, 400.0, 0.03),
    ((2.9,) * 60 + (1.0,) * 8, 69.0, 0.4),
    ((-0.9,) * 60 + (1.0,) * 8, 69.0, 0.4),
)


def lines_exact(xs: Sequence[Any], size: float) -> Callable[[Any], Any]:
    """The log-capital against a mean, with the tangents instead of the logarithms, draw by draw."""
    half, total, squares = mp.mpf(1) / 2, mp.mpf(0), mp.mpf(0)
    draws = []
    for t, x in enumerate(xs):
        left = 1 - mp.mpf(t) / mp.mpf(size)
        mean, variance = (half + total) / (t + 1), (half**2 + squares) / (t + 1)
        draws.append((x, left, total / mp.mpf(size), mean, variance))
        total += x
        squares += (x - (half + total) / (t + 2)) ** 2

    @cache
    def line(theta: Any) -> tuple[Any, Any]:
        """The log-capital against a mean of 0, and what it loses with the mean."""
        kappa, base, against = mp.exp(theta) - 1, mp.mpf(0), mp.mpf(0)
        for x, left, drawn, mean, variance in draws:
            bet = mp.exp(max(min(theta / left, mp.mpf(8)), -mp.mpf(8))) - 1
            nearer = mean - kappa * variance / (1 + kappa * (1 - mean)) * half
            c = max(min((nearer - drawn) / left, mp.mpf(1)), mp.mpf(0))
            tangent = bet / (1 + bet * c)
            base += mp.log((1 + bet * x) / (1 + bet * c)) - tangent * (-drawn / left - c)
            against += tangent / left
        return base, against

    def log_capital(m: Any) -> Any:
        total, shares = mp.mpf(0), mp.mpf(0)
        for j in range(16):
            share = 1 / (9 + mp.mpf(j - 4) ** 2)
            shares += 2 * share
            for theta in (mp.mpf(8) / 2**j, -mp.mpf(8) / 2**j):
                base, against = line(theta)
                total += share * mp.exp(base - m * against)
        return mp.log(total / shares)

    return log_capital


def pool(module: Module) -> Numbers:
    settings = module.settings(LOW, WIDTH, ALPHA)
    found: Numbers = []
    for samples, size, alpha in POOLS:
        row = np.zeros(module.COLUMNS)
        row[module.SIZE] = size
        found += module.bounds(row, alpha, settings)
        row = fold_from(row, module, samples, settings)
        found += [*module.bounds(row, alpha, settings), *module.capital(row, 0.4)]
    row = np.zeros(module.COLUMNS)
    row[module.SIZE] = len(SAMPLES)
    return [*found, *module.bounds(fold_from(row, module, SAMPLES, settings), 0.03, settings)]


def pool_expected() -> Numbers:
    with mp.workdps(DIGITS):
        found: Numbers = []
        for samples, size, alpha in POOLS:
            found += [LOW, LOW + WIDTH]
            xs = [(mp.mpf(x) - mp.mpf(LOW)) / mp.mpf(WIDTH) for x in samples]
            log_capital = lines_exact(xs, size)
            least = sum(xs) / mp.mpf(size)
            ends = least, least + 1 - len(xs) / mp.mpf(size)
            lowest = _root(partial(mp.diff, log_capital), mp.mpf(-2), mp.mpf(3))
            for end in ends:

                def excess(m: Any, f: Any = log_capital, alpha: float = alpha) -> Any:
                    return f(m) + mp.log(mp.mpf(alpha))

                edge = end if excess(end) <= 0 else _root(excess, lowest, end)
                # The capital is convex: where it is too large at both ends, and lowest beyond one, none is possible.
                found.append(float(mp.mpf(LOW) + mp.mpf(WIDTH) * max(min(edge, ends[1]), ends[0])))
            m = mp.mpf(0.4)
            found += [float(log_capital(m)), float(mp.diff(log_capital, m))]
        return [*found, *[float(sum(map(mp.mpf, SAMPLES)) / len(SAMPLES))] * 2]


# Betting on binary arms

COINS = ((3, 9, 0.03), (0, 12, 0.03), (12, 0, 0.03), (130, 70, 1e-4), (1, 1, 0.5), (2, 900, 0.03))


def coin(module: Module) -> Numbers:
    found = []
    for ones, zeros, alpha in COINS:
        settings = module.settings(0.0, 1.0, ALPHA)
        found += module.bounds(fold(module, [1.0] * ones + [0.0] * zeros, settings), alpha, settings)
    # Less than one of many samples is expected to be a one.
    found.append(module.lower(1e-6, 20.0, ALPHA))
    return [*found, module.mixture(3.0, 9.0), *module.bounds(np.zeros(2), ALPHA, settings)]


def coin_expected() -> Numbers:
    with mp.workdps(DIGITS):

        def mixture(s: int, f: int) -> Any:
            """Over q = sin², whose law under Beta(1/2, 1/2) is an even angle."""
            return mp.quad(
                lambda angle: mp.sin(angle) ** (2 * s) * mp.cos(angle) ** (2 * f),
                mp.linspace(0, mp.pi / 2, 40),
            ) / (mp.pi / 2)

        found = []
        for ones, zeros, alpha in COINS:
            given = mixture(ones, zeros)
            mean = mp.mpf(ones) / (ones + zeros)
            for end in (mp.mpf(0), mp.mpf(1)):
                if end == mean:
                    found.append(float(end))
                    continue

                def excess(m: Any, s: int = ones, f: int = zeros, g: Any = given, a: float = alpha) -> Any:
                    return g * mp.mpf(a) - m**s * (1 - m) ** f

                found.append(float(_root(excess, mean, end)))
        return [*found, 0.0, float(mp.log(mixture(3, 9))), 0.0, 1.0]


# The asymptotic kind

TUNINGS = ((1000, 0.05), (30, 1e-5))
EARLY = tuple(x / 10 for x in MANY)


def asymptotic(module: Module) -> Numbers:
    found = []
    for target, alpha in TUNINGS:
        settings = module.settings(-1.0, 1.5, target, alpha)
        found += [settings[0], module.radius(77.0, settings[0], 0.01)]
        found += module.bounds(fold(module, SAMPLES * 3, settings), 0.02, settings)
    for t, alpha in ((20, 0.02), (19, 0.02), (10, 0.02), (9, 0.02)):
        found += module.bounds(fold(module, EARLY[:t], settings), alpha, settings)
    for t in (19, 20):
        found += module.bounds(fold(module, (0.5,) * t, settings), 0.02, settings)
    varied = module.with_deviations(np.array([[5.0, 1.0, 3.0, 7.0], [1.0, 2.0, 0.0, 8.0]]), np.array([3.0, 2.0]))
    return [*found, *varied.ravel().tolist()]


def asymptotic_expected() -> Numbers:
    with mp.workdps(DIGITS):
        found = []

        def radius(t: int, rho2: Any, alpha: float) -> Any:
            spread = t * rho2 + 1
            return mp.sqrt(2 * spread / (mp.mpf(t) ** 2 * rho2) * mp.log(mp.sqrt(spread) / mp.mpf(alpha)))

        def interval(samples: Sequence[float], rho2: Any) -> list[float]:
            xs = [mp.mpf(x) for x in samples]
            mean = sum(xs) / len(xs)
            deviation = mp.sqrt(sum((x - mean) ** 2 for x in xs) / (len(xs) - 1))
            t = len(xs)
            half = deviation * (radius(t, rho2, 0.02) if t >= 20 else mp.mpf(t_mixture_half_width(t, 0.02)))
            return [max(float(mean - half), -1.0), min(float(mean + half), 1.5)]

        for target, alpha in TUNINGS:
            rho2 = (-mp.lambertw(-(mp.mpf(alpha) ** 2) / mp.e, -1).real - 1) / target
            found += [float(rho2), float(radius(77, rho2, 0.01)), *interval(SAMPLES * 3, rho2)]
        for t in (20, 19, 10):
            found += interval(EARLY[:t], rho2)
        # Too few, too few that are all equal, and as many as it takes.
        return [*found, -1.0, 1.5, -1.0, 1.5, 0.5, 0.5, *(5.0, 1.0, 36.0, 7.0), *(1.0, 2.0, 0.0, 8.0)]


# A mixture of t-tests

FEW = ((9.0, 0.05), (19.0, 0.05), (12.0, 0.005), (15.0, 0.3), (16.0, 5e-4))
FIRSTS = ((0.05, 9.0), (0.005, 12.0), (0.0005, 16.0), (0.9, 5.0), (10 / 128, 8.0))


def t_mixture(module: Module) -> Numbers:
    return [*(module.half_width(t, alpha) for t, alpha in FEW), *(module.first(alpha) for alpha, _ in FIRSTS)]


@cache
def t_mixture_half_width(t: float, alpha: float) -> float:
    """Where the ratio of likelihoods is 10/alpha, which is integrated over scales as well."""
    with mp.workdps(DIGITS):
        g = mp.mpf("0.15")

        def squares(d: Any) -> tuple[Any, Any]:
            """Those of the samples less the candidate, and what is left of them after the mixture over effects."""
            whole = t - 1 + t * d * d
            return whole, whole - (t * d) ** 2 / (t + g)

        def ratio(d: Any) -> Any:
            whole, left = squares(d)
            return mp.sqrt(g / (t + g)) * mp.sqrt(whole / left) ** t

        def over_scales(of: Any) -> Any:
            """∫ u^(t-1) exp(-u² of/2) du, with u = 1/σ."""
            peak = mp.sqrt((t - 1) / of)
            return mp.quad(lambda u: u ** (t - 1) * mp.exp(-u * u * of / 2), [0, peak, 3 * peak, mp.inf])

        found = _root(lambda d: ratio(d) - 10 / mp.mpf(alpha), mp.mpf(0), mp.mpf(20))
        whole, left = squares(found)
        assert mp.almosteq(mp.sqrt(g / (t + g)) * over_scales(left) / over_scales(whole), 10 / mp.mpf(alpha), 1e-9)
        return float(found)


def t_mixture_expected() -> Numbers:
    return [*(t_mixture_half_width(t, alpha) for t, alpha in FEW), *(first for _, first in FIRSTS)]


# Fixed n

STUDENTS = ((1, 0.05), (2, 0.01), (3, 0.05), (8, 1e-6), (8, 0.6), (40, 0.03), (700, 0.01))
BINOMIALS = ((3, 9, 0.05), (0, 12, 0.05), (12, 0, 0.05), (60, 20, 1e-4), (1, 300, 0.3), (5, 1, 0.05))
TAILS = ((0.2, 3.0, 2.0), (0.8, 3.0, 2.0), (0.5, 1.5, 7.25), (0.0, 3.0, 2.0), (1.0, 3.0, 2.0))


def fixed_n(module: Module) -> Numbers:
    found = [module.student_quantile(float(df), alpha) for df, alpha in STUDENTS]
    for ones, zeros, alpha in BINOMIALS:
        row = fold(module, [1.0] * ones + [0.0] * zeros, (0.0, 1.0))
        found += module.clopper_pearson(row, alpha, (0.0, 1.0))
    found += [module.upper_tail(*tail) for tail in TAILS]
    found += module.student(fold(module, SAMPLES, (-9.0, 9.0)), 0.02, (-9.0, 9.0))
    found += module.student(fold(module, SAMPLES[:2], (-9.0, 9.0)), 0.02, (-9.0, 9.0))
    found += module.student(fold(module, SAMPLES[:2], (-9.0, 9.0)), 0.5, (-9.0, 9.0))
    found += module.student(fold(module, SAMPLES[:1], (-9.0, 9.0)), 0.02, (-9.0, 9.0))
    found += module.clopper_pearson(np.zeros(module.COLUMNS), 0.02, (0.0, 1.0))
    return found


def fixed_n_expected() -> Numbers:
    with mp.workdps(DIGITS):

        def quantile(df: int, alpha: float) -> Any:
            constant = mp.gamma(mp.mpf(df + 1) / 2) / mp.gamma(mp.mpf(df) / 2) / mp.sqrt(df * mp.pi)

            def tail(q: Any) -> Any:
                """Both sides, with x = sqrt(df) tan(angle)."""
                start = mp.atan(q / mp.sqrt(df))
                density = lambda angle: mp.cos(angle) ** (df - 1)  # noqa: E731
                return 2 * constant * mp.sqrt(df) * mp.quad(density, mp.linspace(start, mp.pi / 2, 5))

            return mp.findroot(lambda q: mp.log(tail(q)) - mp.log(mp.mpf(alpha)), (1, 4 if df > 2 else 10), tol=1e-50)

        def interval(samples: Sequence[float], alpha: float) -> list[float]:
            xs = [mp.mpf(x) for x in samples]
            mean, n = sum(xs) / len(xs), len(xs)
            half = quantile(n - 1, alpha) * mp.sqrt(sum((x - mean) ** 2 for x in xs) / (n - 1) / n)
            return [max(float(mean - half), -9.0), min(float(mean + half), 9.0)]

        def beyond(s: int, n: int, half: Any, p: Any) -> Any:
            """By how much s or more of n come with a probability above `half`."""
            return sum(mp.binomial(n, k) * p**k * (1 - p) ** (n - k) for k in range(s, n + 1)) - half

        found = [float(quantile(df, alpha)) for df, alpha in STUDENTS]
        for ones, zeros, alpha in BINOMIALS:
            low, high = (
                _root(partial(beyond, count, ones + zeros, mp.mpf(alpha) / 2), mp.mpf(0), mp.mpf(1)) if count else 0
                for count in (ones, zeros)
            )
            found += [float(low), float(1 - high)]
        for x, a, b in TAILS:
            density = lambda u, a=a, b=b: u ** (a - 1) * (1 - u) ** (b - 1)  # noqa: E731
            found.append(float(mp.quad(density, [x, 1]) / mp.quad(density, [0, 0.5, 1])))
        found += interval(SAMPLES, 0.02) + interval(SAMPLES[:2], 0.02) + interval(SAMPLES[:2], 0.5)
        return [*found, -9.0, 9.0, 0.0, 1.0]


@jit
def cosh_less_one(row: Any, m: float) -> tuple[float, float]:
    """A convex function of m, least at row[0], and its slope."""
    return math.cosh(m - row[0]) - 1, math.sinh(m - row[0])


def newton(module: Module) -> Numbers:
    edge = module.edge_of(cosh_less_one)
    row = np.array([0.5])
    # From below and from above; from where it is low enough, and from where it rises that way.
    starts = ((-9.0, 1.0, 2.0), (9.0, -1.0, 2.0), (0.0, 1.0, 2.0), (4.0, 1.0, 2.0), (-4.0, -1.0, 2.0))
    return [float(edge(row, *start)) for start in starts]


def newton_expected() -> Numbers:
    half = math.acosh(3)
    return [0.5 - half, 0.5 + half, 0.0, 4.0, -4.0]


POINTS: dict[str, tuple[Callable[[Module], Numbers], Callable[[], Numbers]]] = {
    "bounded_betting": (betting, betting_expected),
    "pool_betting": (pool, pool_expected),
    "newton": (newton, newton_expected),
    "t_mixture": (t_mixture, t_mixture_expected),
    "binary_betting": (coin, coin_expected),
    "asymptotic": (asymptotic, asymptotic_expected),
    "fixed_n": (fixed_n, fixed_n_expected),
}
