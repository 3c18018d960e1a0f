"""The greedy strategy: the plug-in variance, with a floor."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.strategies.registry import register
from equipoise.strategies.strategy import Numbers, Strategy, Support, require_pulls


@register("greedy")
@dataclass(frozen=True)
class Greedy(Strategy):
    """
    Pull the arm with the largest sample variance over its pulls, above a floor.

    The variance is the unbiased one, and every arm gets `least` pulls first.

    Parameters
    ----------
    least
        The least number of pulls of each arm. An arm whose first samples are equal by chance is not pulled again as
        long as any other arm varies; the floor makes that rarer, not impossible.
    """

    least: int = 5

    def __post_init__(self) -> None:
        require_pulls(self, "least")

    def params(self, budget: int | None, arms: int, support: Support) -> Numbers:
        return (float(self.least),)

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return m2 / (count - 1)

    @staticmethod
    def floor(t: float, arms: float, params: Numbers) -> float:
        return params[0]
