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

References
----------
.. [1] I. Waudby-Smith, A. Ramdas (2024), Estimating means of bounded random variables by betting. Journal of the Royal
   Statistical Society B 86.
.. [2] J. Ville (1939), Étude critique de la notion de collectif: the inequality.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from equipoise.arrays import Floats
from equipoise.compiled import jit
from equipoise.intervals.bounded_betting import BETS, COUNT, LOG_SHARES, LOGS

_LEVELS = len(BETS) // 2
_FAR = 4
_OFFSETS = 0.3 ** np.abs(np.arange(-_FAR, _FAR + 1.0))
LOG_OFFSETS = np.log(_OFFSETS / _OFFSETS.sum())

# Newton's method takes about twenty steps; an end on which it has not converged is too far out.
_STEPS = 200
_SHORT = 1e-9
_CLOSE = 1e-9
_TINY = 1e-300


def of_binary(state: Floats) -> Floats:
    """Return the state that `bounded_betting` would have, from counts and ones."""
    return np.column_stack([state[:, 0], state[:, 1:] * np.log1p(BETS)])


@jit
def capital(logs: Any, counts: Any, tilts: Any, shifts: Any, m: Any, slope: Any, curve: Any) -> float:
    """
    Return the log-capital against the means m; its gradient and Hessian are put into `slope` and `curve`.

    `logs` and `counts` have a row for each arm, `tilts` the signs of the weights, `shifts` the h_k.
    """
    arms, bets = len(m), len(BETS)
    own = np.empty((arms, bets))
    first = np.empty((arms, bets))
    second = np.empty((arms, bets))
    for k in range(arms):
        for j in range(bets):
            own[k, j] = logs[k, j] - counts[k] * math.log1p(BETS[j] * m[k])
            step = BETS[j] / (1 + BETS[j] * m[k])
            first[k, j] = -counts[k] * step
            second[k, j] = first[k, j] * first[k, j] + counts[k] * step * step
    values = np.empty(bets)
    slopes = np.empty((bets, arms))
    curves = np.empty((bets, arms))
    for part in range(bets):
        sign, level = (1, part) if part < _LEVELS else (-1, part - _LEVELS)
        values[part] = LOG_SHARES[part]
        for k in range(arms):
            start = 0 if sign * tilts[k] > 0 else _LEVELS
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
    held = np.zeros(arms, np.bool_)
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
            matrix[a, a] *= 1 + 1e-12
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
def highest(logs: Any, counts: Any, weights: Any, shifts: Any, start: Any, limit: float) -> float:
    """
    Return the upper end of weights'm over the means whose log-capital is below `limit`.

    `start` is a point with a log-capital below it. A step is halved until it improves weights'm, less a penalty for
    being outside, and is not far outside.
    """
    arms = len(weights)
    slope, curve = np.empty(arms), np.empty((arms, arms))
    best = cut(weights, np.zeros(arms), 0.0)
    m, goal, trial, share = start, start, start, 1.0
    here, value, price, penalty = -math.inf, 0.0, 0.0, 0.0
    for _ in range(_STEPS):
        there, its_value = 0.0, capital(logs, counts, weights, shifts, trial, slope, curve)
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
            trial = m + share * (goal - m)
            continue
        m, here, value = trial, there, its_value
        if best - here < _CLOSE and value - limit < _CLOSE:
            break
        price, goal = step(weights, m, slope, curve, limit - value)
        if price == 0:
            goal = (m + start) / 2
        penalty = max(penalty, 2 * price)
        trial, share = goal, 1.0
    return best


@jit
def ends(logs: Any, counts: Any, weights: Any, alpha: float) -> tuple[float, float]:
    """Return the ends of the contrast's interval at level 1 - alpha, for samples scaled to [0, 1]."""
    arms = len(weights)
    largest = np.abs(weights).max()
    shifts = np.empty(arms, np.int64)
    start = np.empty(arms)
    for k in range(arms):
        shifts[k] = round(math.log2(largest / abs(weights[k])))
        # The logarithm of the smallest bet, 1 + κX, is nearly κX: so this is about the sample mean.
        mean = logs[k, _LEVELS - 1] / BETS[_LEVELS - 1] / counts[k] if counts[k] > 0 else 0.5
        start[k] = min(max(mean, 0.0), 1.0)
    found = np.empty(2)
    for side in range(2):
        scaled = weights / (largest if side else -largest)
        found[side] = highest(logs, counts, scaled, shifts, start, -math.log(alpha))
    return -largest * found[0], largest * found[1]


def _each(state: Any, places: Any, weights: Any, alpha: float, low: Any, high: Any) -> None:
    for i in range(len(places)):
        rows = state[places[i]]
        low[i], high[i] = ends(rows[:, LOGS:], rows[:, COUNT], weights[i], alpha)


_over = jit(_each, nogil=True)


def bounds(state: Floats, places: Any, weights: Floats, alpha: float) -> tuple[Floats, Floats]:
    """
    Return the ends of contrasts at level 1 - alpha each, for samples scaled to [0, 1].

    Parameters
    ----------
    state
        Of `bounded_betting`, with a row for each arm.
    places, weights
        With a row for each contrast: the rows of its arms, and c.
    """
    low, high = np.empty((2, len(places)))
    _over(state, places, weights, alpha, low, high)
    return low, high
