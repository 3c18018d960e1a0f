"""Uniform sampling, the common default elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.strategies.registry import register
from equipoise.strategies.strategy import Numbers, Strategy


@register("uniform")
@dataclass(frozen=True)
class EvenSplit(Strategy):
    """
    Sample every arm in turn.

    All variances are taken to be one, so that the least pulled arm has the largest key.
    """

    warmup = 1

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return 1.0
