"""
Betting on a contrast Σ c_k μ_k of arms with a bounded support.

With the samples scaled to [0, 1], a bet κ on arm k multiplies the capital by (1 + κX)/(1 + κm) with every sample of
that arm (`bounded_betting`). Bets on several arms at once multiply their capitals, and stay fair if all means are those
bet against, whatever arm is sampled next. The capital is split over bets that go up on the arms with c_k > 0 and down
on the others, or the other way round, with about the same θ = log(1 + κ) for all arms but for the weights::

    capital(m) = Σ_s Σ_j w_j Π_k Σ_o g_o exp( L_k(θ) - T_k log(1 + (e^θ - 1) m_k) ),    θ = s sign(c_k) θ_{j+h_k+o}

with the θ_j and the shares w_j of `bounded_betting`, h_k = log2(max|c|/|c_k|) rounded, and offsets o with shares
g_o ∝ 0.3^|o| for allocations that differ from arm to arm. A contrast is possible as long as some means m with that
contrast have a capital below 1/α (Ville): its interval is the range of c'm over {m: capital(m) < 1/α}. The logarithm
of the capital is convex, so the range is found by Newton's method for its ends. Convexity is what makes it safe: the
tangent plane at any point m is below the logarithm, so the range of c'm over the half-space where the plane is below
log(1/α), within [0, 1], contains the range wanted. The ends given are those, whether Newton's method has converged
or not.

An arm that is a finite population, drawn from without replacement, has lines in m for the logarithms of its capital
(`pool_betting`), and its mean lies between S/N and (S + N - t)/N. Half of the capital goes to bets that grow as a
population is used up, which is best if all are used up alike, and half to steady ones, on which a population that is
used up before the others costs little. All else is the same: the lines are below the logarithms of fair bets, and
convex. Places in these ranges, from 0 to 1, stand for the means; an arm that is known exactly has one.

References
----------
.. [1] I. Waudby-Smith, A. Ramdas (2024), Estimating means of bounded random variables by betting. Journal of the Royal
   Statistical Society B 86.
.. [2] I. Waudby-Smith, A. Ramdas (2020), Confidence sequences for sampling without replacement. NeurIPS 33.
.. [3] J. V. Spertus, M. Sridhar, P. B. Stark (2024), Sequential stratified inference for the mean. arXiv:2409.06680:
   products of capitals over strata, which are drawn from in any order, with or without replacement.
.. [4] D. P. Bertsekas (1982), Projected Newton methods for optimization problems with simple constraints. SIAM Journal
   on Control and Optimization 20; quoted from memory.
.. [5] J. Ville (1939), Étude critique de la notion de collectif: the inequality.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.compiled import jit
from equipoise.intervals import pool_betting
from equipoise.intervals.bounded_betting import BETS, COUNT, LOG_SHARES, LOGS

_LEVELS = len(BETS) // 2
_FAR = 4
_OFFSETS = 0.3 ** np.abs(np.arange(-_FAR, _FAR + 1.0))
LOG_OFFSETS = np.log(_OFFSETS / _OFFSETS.sum())

# Newton's method takes about twenty steps; an end on which it has not converged is too far out.
_STEPS = 200
# Where it does not converge, prices are tried.
_PRICES = 60
_SHORT = 1e-9
_CLOSE = 1e-9
_TINY = 1e-300
_FLAT = 1e-9


def of_binary(state: Floats) -> Floats:
    """Return the state that `bounded_betting` would have, from counts and ones."""
    return np.column_stack([state[:, 0], state[:, 1:] * np.log1p(BETS)])


@jit
def solve(matrix: Any, right: Any) -> None:
    """Solve matrix x = right in place for several columns, by elimination; the matrix is positive definite."""
    n = len(matrix)
    for i in range(n):
        for r in range(i + 1, n):
            factor = matrix[r, i] / matrix[i, i]
            for s in range(i, n):
                matrix[r, s] -= factor * matrix[i, s]
            for s in range(right.shape[1]):
                right[r, s] -= factor * right[i, s]
    for i in range(n - 1, -1, -1):
        for s in range(right.shape[1]):
            for r in range(i + 1, n):
                right[i, s] -= matrix[i, r] * right[r, s]
            right[i, s] /= matrix[i, i]


@jit
def cut(weights: Any, slope: Any, limit: float) -> float:
    """
    Return the largest weights'm over the m in [0, 1] with slope'm <= limit.

    By the dual: the least of ν limit + Σ max(0, c_k - ν slope_k) over ν >= 0, which is at 0 or where a term bends.
    """
    best = 0.0
    for c in weights:
        best += max(c, 0.0)
    for k in range(len(weights)):
        nu = weights[k] / slope[k] if slope[k] != 0 else 0.0
        if nu > 0:
            value = nu * limit
            for i in range(len(weights)):
                value += max(weights[i] - nu * slope[i], 0.0)
            best = min(best, value)
    return best


@jit
def step(weights: Any, m: Any, slope: Any, curve: Any, room: float) -> tuple[float, Any]:
    """
    Return the m in [0, 1] with the largest weights'm where the second-order expansion has not grown by `room`.

    Before it, what a unit of room is worth there; 0 where there is no such m. Arms that would leave [0, 1] are held at
    its ends.
    """
    arms = len(m)
    held = weights == 0
    move = np.zeros(arms)
    price = 0.0
    for _ in range(arms):
        free = np.flatnonzero(~held)
        n = len(free)
        if n == 0:
            return price, m + move
        # What is left to the free arms once the held ones have moved.
        left = room
        matrix = np.empty((n, n))
        right = np.empty((n, 2))
        for k in range(arms):
            left -= slope[k] * move[k]
            for i in range(arms):
                left -= curve[k, i] * move[k] * move[i] / 2
        for a in range(n):
            pull = slope[free[a]]
            for i in range(arms):
                pull += curve[free[a], i] * move[i]
            right[a, 0], right[a, 1] = pull, weights[free[a]]
            for b in range(n):
                matrix[a, b] = curve[free[a], free[b]]
            # Where one bet has nearly all the capital, lines have no curvature. Tangents make ends safe without it.
            matrix[a, a] += 1e-12 * matrix[a, a] + _FLAT * pull * pull + _TINY
        solve(matrix, right)
        form, gain = 0.0, 0.0
        for a in range(n):
            pull = slope[free[a]]
            for i in range(arms):
                pull += curve[free[a], i] * move[i]
            form += weights[free[a]] * right[a, 1]
            gain += pull * right[a, 0]
        inside = 2 * left + gain
        if not inside >= 0 or not form > 0:
            return 0.0, m
        far = math.sqrt(inside / form)
        price = 1 / max(far, _TINY)
        out = False
        trial = np.empty(n)
        for a in range(n):
            trial[a] = far * right[a, 1] - right[a, 0]
            goal = m[free[a]] + trial[a]
            if goal < 0 or goal > 1:
                held[free[a]] = True
                move[free[a]] = (0.0 if goal < 0 else 1.0) - m[free[a]]
                out = True
        if not out:
            for a in range(n):
                move[free[a]] = trial[a]
            return price, m + move
    return price, m + move


@jit
def _of_bounded(row: Any, j: int, m: float) -> tuple[float, float, float]:
    """Return the log-capital of bet j on a bounded arm against a mean of m, its slope, and slope² + curvature."""
    step = BETS[j] / (1 + BETS[j] * m)
    slope = -row[COUNT] * step
    return row[LOGS + j] - row[COUNT] * math.log1p(BETS[j] * m), slope, slope * slope + row[COUNT] * step * step


@jit
def _range_of_bounded(row: Any) -> tuple[float, float, float]:
    """Return which means are possible, the least and how many above it, and one with little capital against it."""
    # The logarithm of the smallest bet, 1 + κX, is nearly κX: so this is about the sample mean.
    mean = row[LOGS + _LEVELS - 1] / BETS[_LEVELS - 1] / row[COUNT] if row[COUNT] > 0 else 0.5
    return 0.0, 1.0, min(max(mean, 0.0), 1.0)


@jit
def _of_pool(row: Any, j: int, m: float) -> tuple[float, float, float]:
    """Return the same of an arm that is a finite population: lines of bets that grow, and then of steady ones."""
    slope = -row[pool_betting.LINES + 2 * j + 1]
    return row[pool_betting.LINES + 2 * j] + m * slope, slope, slope * slope


@jit
def _range_of_pool(row: Any) -> tuple[float, float, float]:
    """Return the same of an arm that is a finite population, of which the items drawn are known."""
    least = row[pool_betting.SUM] / row[pool_betting.SIZE]
    width = 1 - row[pool_betting.COUNT] / row[pool_betting.SIZE]
    mean = row[pool_betting.SUM] / row[pool_betting.COUNT] if row[pool_betting.COUNT] > 0 else 0.5
    return least, width, min(max(mean, least), least + width)


class Betting(NamedTuple):
    """The compiled functions for arms of one sort: `capital` at some means, and `bounds` of contrasts."""

    capital: Any
    bounds: Any


def _betting(of_arm: Any, range_of: Any, families: int) -> Betting:
    """Return the functions for arms with these log-capitals, of one or more families of bets, and possible means."""
    log_share = math.log(families)

    @jit
    def capital(rows: Any, tilts: Any, shifts: Any, m: Any, slope: Any, curve: Any) -> float:
        """
        Return the log-capital against the means m; its gradient and Hessian are put into `slope` and `curve`.

        `rows` has the state of each arm, `tilts` the signs of the weights, `shifts` the h_k.
        """
        arms, size = len(m), len(BETS)
        bets = families * size
        own = np.empty((arms, bets))
        first = np.empty((arms, bets))
        second = np.empty((arms, bets))
        for k in range(arms):
            for j in range(bets):
                own[k, j], first[k, j], second[k, j] = of_arm(rows[k], j, m[k])
        values = np.empty(bets)
        slopes = np.empty((bets, arms))
        curves = np.empty((bets, arms))
        for part in range(bets):
            family, place = divmod(part, size)
            sign, level = (1, place) if place < _LEVELS else (-1, place - _LEVELS)
            values[part] = LOG_SHARES[place] - log_share
            for k in range(arms):
                start = family * size + (0 if sign * tilts[k] > 0 else _LEVELS)
                largest = -math.inf
                for o in range(2 * _FAR + 1):
                    j = start + min(max(level + shifts[k] + o - _FAR, 0), _LEVELS - 1)
                    largest = max(largest, LOG_OFFSETS[o] + own[k, j])
                total, up, bend = 0.0, 0.0, 0.0
                for o in range(2 * _FAR + 1):
                    j = start + min(max(level + shifts[k] + o - _FAR, 0), _LEVELS - 1)
                    share = math.exp(LOG_OFFSETS[o] + own[k, j] - largest)
                    total += share
                    up += share * first[k, j]
                    bend += share * second[k, j]
                values[part] += largest + math.log(total)
                slopes[part, k] = up / total
                curves[part, k] = bend / total - slopes[part, k] ** 2
        largest = values.max()
        total = 0.0
        slope[:] = 0.0
        curve[:] = 0.0
        for part in range(bets):
            share = math.exp(values[part] - largest)
            if share == 0:
                continue
            total += share
            for k in range(arms):
                slope[k] += share * slopes[part, k]
                curve[k, k] += share * curves[part, k]
                for i in range(arms):
                    curve[k, i] += share * slopes[part, k] * slopes[part, i]
        for k in range(arms):
            slope[k] /= total
        for k in range(arms):
            for i in range(arms):
                curve[k, i] = curve[k, i] / total - slope[k] * slope[i]
        return float(largest + math.log(total))

    @jit
    def placed(rows: Any, tilts: Any, shifts: Any, spans: Any, u: Any, slope: Any, curve: Any) -> float:
        """Return the log-capital against the means at the places u, with its gradient and Hessian by u."""
        value = capital(rows, tilts, shifts, spans[0] + spans[1] * u, slope, curve)
        for k in range(len(u)):
            slope[k] *= spans[1, k]
            for i in range(len(u)):
                curve[k, i] *= spans[1, k] * spans[1, i]
        return value

    @jit
    def settled(
        rows: Any, weights: Any, tilts: Any, shifts: Any, spans: Any, start: Any, limit: float, best: float
    ) -> float:
        """
        Return what `highest` does, by its dual; `best` is an upper end that is known.

        For a price of the log-capital, the u in [0, 1] with the largest weights'u - price log-capital is found by
        projected Newton steps [4]_; the price is halved or doubled, and then bisected, until the log-capital there is
        `limit`.
        """
        arms = len(weights)
        slope, curve = np.empty(arms), np.empty((arms, arms))
        u, cheap, dear, price, here = start.copy(), 0.0, math.inf, 1.0, -math.inf
        for _ in range(_PRICES):
            value = placed(rows, tilts, shifts, spans, u, slope, curve)
            for _ in range(_STEPS):
                best = min(best, cut(weights, slope, limit - value + np.sum(slope * u)))
                down = weights - price * slope
                free = np.flatnonzero((weights != 0) & ~((u <= 0) & (down <= 0)) & ~((u >= 1) & (down >= 0)))
                if len(free) == 0:
                    break
                matrix, right = np.empty((len(free), len(free))), np.empty((len(free), 1))
                for a in range(len(free)):
                    right[a, 0] = down[free[a]]
                    for b in range(len(free)):
                        matrix[a, b] = price * curve[free[a], free[b]]
                    matrix[a, a] += 1e-9 * (matrix[a, a] + price * slope[free[a]] ** 2) + 1e-12
                solve(matrix, right)
                share, gain, further = 1.0, 0.0, 0.0
                trial = u.copy()
                while share > _SHORT:
                    for a in range(len(free)):
                        trial[free[a]] = min(max(u[free[a]] + share * right[a, 0], 0.0), 1.0)
                    further = placed(rows, tilts, shifts, spans, trial, slope, curve)
                    gain = np.sum(weights * (trial - u)) - price * (further - value)
                    if gain >= 1e-4 * np.sum(down * (trial - u)):
                        break
                    share /= 4
                if share <= _SHORT:
                    break
                u, value = trial, further
                if gain < _CLOSE / 100:
                    break
            if value <= limit:
                here = max(here, float(np.sum(weights * u)))
                dear = price
            else:
                cheap = price
            if best - here < _CLOSE:
                break
            price = price * 4 if dear == math.inf else price / 4 if cheap == 0 else math.sqrt(cheap * dear)
        return best

    @jit
    def highest(rows: Any, weights: Any, tilts: Any, shifts: Any, spans: Any, start: Any, limit: float) -> float:
        """
        Return the upper end of weights'u over the places u in [0, 1] of means whose log-capital is below `limit`.

        The means are low + width u, with both in `spans`; `start` is a place with a log-capital below it. A step is
        halved until it improves weights'u, less a penalty for being outside, and is not far outside.
        """
        arms = len(weights)
        slope, curve = np.empty(arms), np.empty((arms, arms))
        best = cut(weights, np.zeros(arms), 0.0)
        u, goal, trial, share = start, start, start, 1.0
        here, value, price, penalty = -math.inf, 0.0, 0.0, 0.0
        for _ in range(_STEPS):
            there, its_value = 0.0, placed(rows, tilts, shifts, spans, trial, slope, curve)
            bound = limit - its_value
            for k in range(arms):
                there += weights[k] * trial[k]
                bound += slope[k] * trial[k]
            best = min(best, cut(weights, slope, bound))
            gain = there - here - penalty * (max(its_value - limit, 0.0) - max(value - limit, 0.0))
            if price > 0 and not (gain > 0 and its_value - limit <= max(value - limit, 1.0)):
                share /= 2
                if share < _SHORT:
                    break
                trial = u + share * (goal - u)
                continue
            u, here, value = trial, there, its_value
            if best - here < _CLOSE and value - limit < _CLOSE:
                return best
            price, goal = step(weights, u, slope, curve, limit - value)
            if price == 0:
                goal = (u + start) / 2
            penalty = max(penalty, 2 * price)
            trial, share = goal, 1.0
        return settled(rows, weights, tilts, shifts, spans, start, limit, best)

    @jit
    def ends(rows: Any, weights: Any, alpha: float) -> tuple[float, float]:
        """Return the ends of the contrast's interval at level 1 - alpha, for samples scaled to [0, 1]."""
        arms = len(weights)
        largest = np.abs(weights).max()
        shifts = np.empty(arms, np.int64)
        spans = np.empty((2, arms))
        start = np.empty(arms)
        known, most = 0.0, 0.0
        for k in range(arms):
            shifts[k] = round(math.log2(largest / abs(weights[k])))
            low, width, mean = range_of(rows[k])
            spans[0, k], spans[1, k] = low, width
            start[k] = (mean - low) / width if width > 0 else 0.0
            known += weights[k] * low
            most = max(most, abs(weights[k]) * width)
        if most == 0:
            return known, known
        found = np.empty(2)
        for side in range(2):
            sign = 1.0 if side else -1.0
            scaled = sign * weights * spans[1] / most
            found[side] = highest(rows, scaled, sign * weights, shifts, spans, start, -math.log(alpha))
        low, high = known - most * found[0], known + most * found[1]
        return min(low, high), max(low, high)

    def each(state: Any, places: Any, weights: Any, alpha: float, low: Any, high: Any) -> None:
        for i in range(len(places)):
            low[i], high[i] = ends(state[places[i]], weights[i], alpha)

    over = jit(each, nogil=True)

    def bounds(state: Floats, places: Any, weights: Floats, alpha: float) -> tuple[Floats, Floats]:
        """
        Return the ends of contrasts at level 1 - alpha each, for samples scaled to [0, 1].

        Parameters
        ----------
        state
            Of `bounded_betting` or `pool_betting`, with a row for each arm.
        places, weights
            With a row for each contrast: the rows of its arms, and c.
        """
        low, high = np.empty((2, len(places)))
        over(state, places, weights, alpha, low, high)
        return low, high

    return Betting(capital, bounds)


BOUNDED = _betting(_of_bounded, _range_of_bounded, 1)
POOLS = _betting(_of_pool, _range_of_pool, 2)
