"""
Expected half-widths of binary arms, and of sums of their means.

Of p and 1 - p, which have the same variance, an arm is taken to have the smaller one.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise.base.arrays import Floats, Ints
from equipoise.intervals import Intervals, fixed_width, populations, stop_rule
from equipoise.intervals.stop_rule import Moments, StopRule
from equipoise.problem.allocation import Terms


def largest_variance(sizes: Floats) -> Floats:
    """Return the largest variance that a binary arm can have, with the denominator N - 1 for a population of N."""
    with np.errstate(divide="ignore"):
        return np.asarray(0.25 / np.where(sizes == math.inf, 1.0, 1 - 1 / sizes))


def shares(terms: Terms) -> Floats:
    """Return the share of ones of each arm, at most one half."""
    return np.asarray((1 - np.sqrt(np.maximum(1 - terms.variances / largest_variance(terms.populations), 0))) / 2)


def fixed_width_of_arms(terms: Terms, counts: Floats, rule: StopRule) -> Floats:
    """Return the half-width of each arm's fixed-width interval, or of its sequence where that cannot be trusted."""
    state = np.zeros((len(counts), fixed_width.COLUMNS))
    state[:, fixed_width.COUNT], state[:, fixed_width.MEAN] = counts, shares(terms)
    half = stop_rule.of_arms(rule, Moments(state, terms.populations)).half
    return np.where(half < math.inf, half, sequences_of_arms(terms, counts, rule.alpha))


def sequences_of_arms(terms: Terms, counts: Floats, alpha: float) -> Floats:
    """Return how far each arm's confidence sequence reaches from the mean, by betting."""
    low, high = _ends(terms, counts, alpha)
    means = shares(terms)
    return np.asarray(np.maximum(means - low, high - means))


def sequences_of_sums(terms: Terms, counts: Floats, alpha: float, places: Ints, weights: Floats) -> Floats:
    """
    Return how far the confidence sequence of each sum reaches from its value, by betting.

    `places` and `weights` have a row for each sum: its arms, and their weights, none of them zero. For finite
    populations, it is about as many standard errors as it would be without.
    """
    low, high = Intervals(terms.arms, "binary").contrasts(_state(terms, counts), places, weights, alpha)
    values = (weights * shares(terms)[places]).sum(1)
    reach = np.asarray(np.maximum(values - low, high - values))
    if (terms.populations == math.inf).all():
        return reach
    # If none varies, all count.
    squares = weights**2 * (np.maximum(terms.variances, 1e-12) / np.maximum(counts, 1))[places]
    left = np.maximum(1 - counts / terms.populations, 0)[places]
    return np.asarray(reach * np.sqrt((squares * left).sum(1) / squares.sum(1)))


def _ends(terms: Terms, counts: Floats, alpha: float) -> tuple[Floats, Floats]:
    low, high = Intervals(terms.arms, "binary").bounds_at(_state(terms, counts), alpha)
    finite = np.flatnonzero(terms.populations < math.inf)
    drawn = np.rint(_state(terms, counts)[finite])  # whole items
    low[finite], high[finite] = populations.over_binary(drawn, terms.populations[finite], alpha)
    return low, high


def _state(terms: Terms, counts: Floats) -> Floats:
    """Return the state of betting after these counts: samples and ones by arm."""
    return np.column_stack([counts, counts * shares(terms)])
