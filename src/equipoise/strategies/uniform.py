"""Uniform sampling, what everybody does today."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.strategies.strategy import Strategy, register


@register("uniform")
@dataclass(frozen=True)
class Uniform(Strategy):
    """Every arm in turn: all variances are taken to be one, so that the least pulled arm has the largest key."""

    warmup = 1

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: float, own: float, params: tuple[float, ...]) -> float:
        return 1.0
