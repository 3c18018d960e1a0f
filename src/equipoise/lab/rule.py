"""
A strategy as the kernels take it, and the steps that all of them share.

A kernel defines where the arms' numbers lie and how the next arm is found. What happens to an arm's numbers when a
sample of it comes in, what its key is and what is pooled over arms is the same everywhere. It is built here, once: from
functions compiled for the CPU, or from device functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from equipoise import moments
from equipoise.strategies import Strategy
from equipoise.strategies import key as keys

# Forms of objectives: the paper's, with key v/T; the largest loss with weights; other norms.
PLAIN, WEIGHTED, NORM = range(3)


class Rule(NamedTuple):
    """
    What a kernel is compiled for: a strategy and the form of the objective.

    Functions that the strategy does not have are None.
    """

    variance: Any
    floor: Any
    freeze: Any
    share: Any
    pool: int
    uses_own: bool
    form: int

    @classmethod
    def of(cls, strategy: Strategy, form: int) -> Rule:
        """Return the rule of a strategy for a form of objective."""
        return cls(
            strategy.variance,
            strategy.floor if strategy.has_floor() else None,
            strategy.freeze if strategy.own == "frozen" else None,
            strategy.share,
            keys.POOLS.index(strategy.pool),
            strategy.own != "none",
            form,
        )


class Numbers(NamedTuple):
    """
    The numbers of a strategy and an objective, which a kernel takes as arguments.

    Attributes
    ----------
    params, own, warmup
        The strategy's parameters, the own number that each arm starts with, and the warm-up.
    scales, exponent
        The objective's, by arm and for all.
    """

    params: Any
    own: Any
    warmup: Any
    scales: Any
    exponent: Any


class Steps(NamedTuple):
    """
    The steps of a rule, compiled.

    - `take(x, count, mean, m2, own, pooled, params)`: an arm's count, mean, M2 and own number with one more sample;
    - `variance(count, mean, m2, pooled, own, params)`: the strategy's;
    - `weigh(v, pulls, scale, exponent)`: the key of an arm with this variance;
    - `key(count, mean, m2, own, pooled, params, scale, exponent)`: the key of an arm with no sample in flight;
    - `floor(t, arms, params)`: the strategy's, or None;
    - `pool_arm(count, mean, m2, own, params, largest, total, arms)`: the sums that are pooled, with one more arm;
    - `pooled(largest, total, arms)`: what is pooled.
    """

    take: Any
    variance: Any
    weigh: Any
    key: Any
    floor: Any
    pool_arm: Any
    pooled: Any


def steps(rule: Rule, convert: Callable[[Any], Any], compiled: Callable[[Any], Any]) -> Steps:
    """
    Return the steps of a rule, compiled for the CPU or for a GPU.

    `convert` compiles a plain function, and `compiled` one that calls functions compiled already.
    """
    add, norm = convert(moments.add), convert(keys.key)
    add_share, of_sums, share = convert(keys.pool_arm), convert(keys.pooled_of), convert(rule.share)
    variance, pool, has_freeze = convert(rule.variance), rule.pool, rule.freeze is not None
    freeze: Any = convert(rule.freeze) if has_freeze else None
    floor = None if rule.floor is None else convert(rule.floor)

    @compiled
    def take(x: Any, count: Any, mean: Any, m2: Any, own: Any, pooled: Any, params: Any) -> Any:
        count, mean, m2 = add(count, mean, m2, x)
        if has_freeze:
            own = freeze(x, count, mean, m2, pooled, own, params)
        return count, mean, m2, own

    @compiled
    def plain(v: Any, pulls: Any, scale: Any, exponent: Any) -> Any:
        return v / pulls

    @compiled
    def weighted(v: Any, pulls: Any, scale: Any, exponent: Any) -> Any:
        return norm(v, pulls, scale, 1.0)

    weigh = (plain, weighted, norm)[rule.form]

    @compiled
    def key(count: Any, mean: Any, m2: Any, own: Any, pooled: Any, params: Any, scale: Any, exponent: Any) -> Any:
        return weigh(variance(count, mean, m2, pooled, own, params), count, scale, exponent)

    @compiled
    def pool_arm(count: Any, mean: Any, m2: Any, own: Any, params: Any, largest: Any, total: Any, arms: Any) -> Any:
        if count < 2:
            return largest, total, arms
        return add_share(share(count, mean, m2, own, params), largest, total, arms)

    @compiled
    def pooled(largest: Any, total: Any, arms: Any) -> Any:
        return of_sums(pool, largest, total, arms)

    return Steps(take, variance, weigh, key, floor, pool_arm, pooled)
