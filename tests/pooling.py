"""The strategies of several tests that pool the mean variance of the arms."""

from __future__ import annotations

from equipoise.strategies import Numbers, Strategy


class MeanVariance(Strategy):
    """Pools the mean of the unbiased variances; subclasses say what they make of it."""

    sums = ("variance",)
    pooled = ("mean",)

    @staticmethod
    def share(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> Numbers:
        return (m2 / (count - 1),)

    @staticmethod
    def pool(sums: Numbers, arms: float, pooled: Numbers, params: Numbers) -> Numbers:
        return (sums[0] / max(arms, 1.0),)
