"""Two-stage sampling: a pilot, then fixed proportions."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.base.errors import InvalidInput
from equipoise.strategies.registry import register
from equipoise.strategies.strategy import Numbers, Strategy, Support, require_pulls


@register("two-stage")
@dataclass(frozen=True)
class TwoStage(Strategy):
    """
    Run a pilot, then sample in the best proportions for its variances.

    An arm's unbiased variance is frozen when its pilot is complete; later samples do not change it.

    Parameters
    ----------
    pilot
        Pulls per arm in the pilot, at least 2. The default is a fifth of the budget, shared evenly.
    """

    pilot: int | None = None

    own = ("frozen", "done")

    def __post_init__(self) -> None:
        require_pulls(self, "pilot")

    def params(self, budget: int | None, arms: int, support: Support) -> Numbers:
        if self.pilot is not None:
            return (float(self.pilot),)
        if budget is None:
            raise InvalidInput("two-stage: without a budget, the pilot must be given, as in TwoStage(pilot=20)")
        return (float(max(2, budget // (5 * arms))),)

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return own[0] if count >= params[0] and own[1] == 1.0 else m2 / (count - 1)

    @staticmethod
    def floor(t: float, arms: float, params: Numbers) -> float:
        return params[0]

    @staticmethod
    def keep(
        sample: float, count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers
    ) -> Numbers:
        # Moments of many samples may complete a pilot and go past it at once.
        if count == params[0] or (count > params[0] and own[1] == 0.0):
            return (m2 / (count - 1), 1.0)
        return own
