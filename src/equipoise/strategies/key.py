"""
From a strategy's variance to a decision, the same for studies and simulations.

The arm with the largest key is pulled, the lowest arm among equals, unless an arm has fewer pulls than the strategy's
floor: then the least pulled arm is, again the lowest among equals. `testing.strategies.Scan` is this definition, in
O(K). Studies and the simulator decide faster, with these same functions compiled.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from equipoise.strategies.strategy import Numbers, Strategy

# Above any key of an arm that is out of its warm-up, and far enough from infinity to be divided by the pulls.
HUGE = sys.float_info.max


def key(v: float, pulls: float, scale: float, exponent: float) -> float:
    """
    Return the key of an arm whose variance is taken to be v::

        (w v)^{p/(p+1)} c^{-1/(p+1)} / pulls        p = inf:  w v / pulls

    with the exponent p/(p+1) and the arm's scale w^{p/(p+1)} c^{-1/(p+1)} of the objective. Pulling the largest key
    drives the pulls to T_k ∝ ((w_k σ²_k)^p / c_k)^{1/(p+1)}, which minimises the p-norm of the losses w_k σ²_k/T_k for
    a given cost. p = inf, the largest loss, is the paper's objective, with B_{k,t} the key.
    """
    if exponent != 1.0:
        v = v**exponent
    return scale * v / pulls


def unseen(pulls: float, size: float, exponent: float) -> float:
    """
    Return the factor of the key of an arm that is a population of N, sampled without replacement::

        (1 - pulls/N)^{(p-1)/(p+1)}        p = inf:  1 - pulls/N;  p = 1:  1

    and 0 where the population is used up. The losses are then w_k σ²_k (1/T_k - 1/N_k). Where the sum of their p-th
    powers is smallest for a given cost, one more unit of money reduces it equally for every arm::

        (w_k σ²_k)^p (1/T_k - 1/N_k)^{p-1} / T_k²  ∝  c_k
        T_k  ∝  (w_k σ²_k)^{p/(p+1)} c_k^{-1/(p+1)} (1 - T_k/N_k)^{(p-1)/(p+1)}

    as 1/T - 1/N = (1 - T/N)/T. Dividing by T_k gives the key with this factor, equal for all arms. With p = inf the key
    is the weighted loss itself. For p < 1 the losses are not convex. `exponent` is (p-1)/(p+1).
    """
    if pulls >= size:
        return 0.0
    left = 1.0 - pulls / size
    return left if exponent == 1.0 else left**exponent


def warmup_key(pulls: float) -> float:
    """
    Return the key of an arm with fewer samples than the warm-up asks for, or with no pull yet.

    It is above all other keys, and largest for the arm with the fewest pulls.
    """
    return HUGE / pulls if pulls > 0 else math.inf


def silent_key(tops: float, arms: float, asked: float) -> float:
    """
    Return the key of a silent arm: one that declined, and has no answer or fewer than the warm-up asks for.

    Nothing is known of its variance, so it is compared as an average arm whose declines are pulls: `tops` is the sum
    over arms of the key times the pulls, where there is a key, and `asked` counts its pulls and declines. So an arm
    that never answers gets at most about an even split's share of the budget, and the others share the rest as they
    would without it. Where no key is positive, silent arms take turns after all others.
    """
    return tops / arms / asked if tops > 0 else -asked


def in_turn(warmup: int, arms: int) -> int:
    """Return how many pulls go to the arms in turn before keys decide: the warm-up, at least one for each arm."""
    return max(1, warmup) * arms


def pooled(
    strategy: Strategy,
    params: Numbers,
    counts: Sequence[int],
    means: Sequence[float],
    m2s: Sequence[float],
    own: Sequence[Numbers],
    before: Numbers,
) -> Numbers:
    """Return what is pooled over the arms with two samples or more, by the definition, given what was before."""
    if not strategy.pooled:
        return before
    sums, arms = [0.0] * len(strategy.sums), 0.0
    for k, count in enumerate(counts):
        if count >= 2:
            shares = strategy.share(float(count), means[k], m2s[k], before, own[k], params)
            sums = [total + share for total, share in zip(sums, shares, strict=True)]
            arms += 1.0
    return strategy.pool(tuple(sums), arms, before, params)


def next_refresh(samples: int, arms: int) -> int:
    """
    Return the number of samples at which the pooled numbers are computed next, after it was at `samples`.

    A refresh touches every arm. Waiting for a quarter of the arms, or of the samples where those are more, keeps the
    work per sample bounded and the pooled numbers never more than a quarter out of date.
    """
    return samples + max(1, max(arms, samples) // 4)
