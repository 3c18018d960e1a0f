"""
A strategy as the kernels take it, and the steps that all of them share.

A kernel defines where the arms' numbers lie and how the next arm is found. What happens to an arm's numbers when a
sample of it comes in, what its key is and what is pooled over arms is the same everywhere. It is built here, once: from
functions compiled for the CPU, or from device functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from equipoise.numeric import moments
from equipoise.numeric.tuples import adder
from equipoise.strategies import Strategy
from equipoise.strategies import key as keys

# Forms of objectives: the paper's, with key v/T; the largest loss with weights; other norms.
PLAIN, WEIGHTED, NORM = range(3)


class Rule(NamedTuple):
    """
    What a kernel is compiled for: a strategy and the form of the objective.

    Functions that the strategy does not have are None. `own`, `sums` and `pooled` are how many numbers there are of
    each.
    """

    variance: Any
    floor: Any
    keep: Any
    share: Any
    pool: Any
    own: int
    sums: int
    pooled: int
    form: int

    @classmethod
    def of(cls, strategy: Strategy, form: int) -> Rule:
        """Return the rule of a strategy for a form of objective."""
        pools = bool(strategy.pooled)
        return cls(
            strategy.variance,
            strategy.floor if strategy.has_floor() else None,
            strategy.keep if strategy.keeps() else None,
            strategy.share if pools else None,
            strategy.pool if pools else None,
            len(strategy.own),
            len(strategy.sums),
            len(strategy.pooled),
            form,
        )


class Numbers(NamedTuple):
    """
    The numbers of a strategy and an objective, which a kernel takes as arguments.

    Attributes
    ----------
    params, own, warmup
        The strategy's parameters, the own numbers that each arm starts with, and the warm-up.
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
    The steps of a rule, compiled; `own`, `pooled`, `sums` and `params` are tuples of numbers.

    - `take(x, count, mean, m2, own, pooled, params)`: an arm's count, mean, M2 and own numbers with one more sample;
    - `variance(count, mean, m2, pooled, own, params)`: the strategy's;
    - `weigh(v, pulls, scale, exponent)`: the key of an arm with this variance;
    - `key(count, mean, m2, own, pooled, params, scale, exponent)`: the key of an arm with no sample in flight;
    - `floor(t, arms, params)`: the strategy's, or None;
    - `add_share(count, mean, m2, own, pooled, params, sums, arms)`: the sums and the number of arms in them, with one
      more arm;
    - `pool(sums, arms, pooled, params)`: what is pooled.
    """

    take: Any
    variance: Any
    weigh: Any
    key: Any
    floor: Any
    add_share: Any
    pool: Any


def steps(rule: Rule, convert: Callable[[Any], Any], compiled: Callable[[Any], Any], one: Any = 1.0) -> Steps:
    """
    Return the steps of a rule, compiled for the CPU or for a GPU.

    `convert` compiles a plain function, and `compiled` one that calls functions compiled already; `one` is the number 1
    in the precision that they compute in.
    """
    add, norm, variance = convert(moments.add), convert(keys.key), convert(rule.variance)
    has_keep = rule.keep is not None
    keep, floor, share, pool = (
        function and convert(function) for function in (rule.keep, rule.floor, rule.share, rule.pool)
    )
    plus = adder(rule.sums, compiled)

    @compiled
    def take(x: Any, count: Any, mean: Any, m2: Any, own: Any, pooled: Any, params: Any) -> Any:
        count, mean, m2 = add(count, mean, m2, x)
        if has_keep:
            own = keep(x, count, mean, m2, pooled, own, params)
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
    def add_share(count: Any, mean: Any, m2: Any, own: Any, pooled: Any, params: Any, sums: Any, arms: Any) -> Any:
        if count < 2:
            return sums, arms
        return plus(sums, share(count, mean, m2, pooled, own, params)), arms + one

    return Steps(take, variance, weigh, key, floor, add_share, pool)
