"""One run of a setup in plain Python, by the definitions: every decision looks at every arm."""

from __future__ import annotations

import math
from collections import deque

import numpy as np
import numpy.typing as npt

from equipoise.engine import streams
from equipoise.engine.setup import Setup
from equipoise.numeric import moments
from equipoise.problem import money
from equipoise.strategies import key as keys
from equipoise.strategies import zeros

Floats = npt.NDArray[np.float64]


def replay(plan: Setup, run: int) -> tuple[Floats, Floats, Floats]:
    """Counts, means and M2 at the end of the last checkpoint's budget."""
    K, strategy, params = len(plan.problem), plan.strategy, plan.params or (0.0,)
    costs, scales, exponent = plan.objective.cost(K), plan.objective.scales(K), plan.objective.exponent
    budget = float(plan.checkpoints[-1])
    counts, pulls, means, m2s = [0] * K, [0] * K, [0.0] * K, [0.0] * K
    own = [tuple(row) or (0.0,) for row in plan.initial_own.tolist()]
    most = int(budget / costs.min()) + 1
    values = [streams.samples(plan.problem, plan.seed, run, k, most).tolist() for k in range(K)]
    pooled, refresh, told, spent, carry = zeros(strategy.pooled), keys.next_refresh(0, K), 0, 0.0, 0.0
    most_spent = money.limit(budget, float(costs.min()))
    waiting: deque[int] = deque()

    def key(k: int) -> float:
        if counts[k] < strategy.warmup or pulls[k] == 0:
            return keys.warmup_key(float(pulls[k]))
        v = strategy.variance(float(counts[k]), means[k], m2s[k], pooled, own[k], params)
        return keys.key(v, float(pulls[k]), float(scales[k]), exponent)

    while True:
        while len(waiting) < plan.in_flight:
            affordable = [k for k in range(K) if money.affordable(float(costs[k]), spent, carry, most_spent)]
            if not affordable:
                break
            k = min(affordable, key=lambda k: (pulls[k], k))
            if not pulls[k] < strategy.floor(float(sum(pulls)), float(K), params):
                k = max(affordable, key=lambda k: (key(k), -k))
            pulls[k] += 1
            spent, carry = money.spend(spent, carry, float(costs[k]))
            waiting.append(k)
        if not waiting:
            assert counts == pulls
            return np.array(counts, dtype=float), np.array(means), np.array(m2s)
        k = waiting.popleft()
        x = values[k][counts[k]]
        counts[k], means[k], m2s[k] = moments.add(counts[k], means[k], m2s[k], x)
        if strategy.keeps():
            own[k] = strategy.keep(x, float(counts[k]), means[k], m2s[k], pooled, own[k], params)
        told += 1
        if told >= refresh:
            refresh = keys.next_refresh(told, K)
            pooled = keys.pooled(strategy, params, counts, means, m2s, own, pooled)
        assert math.isfinite(m2s[k])
