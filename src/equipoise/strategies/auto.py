"""The default strategy: no constant to choose, no budget to know."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.strategies.strategy import Strategy, Support, register


@register("auto")
@dataclass(frozen=True)
class Auto(Strategy):
    """
    Never trust a small sample's variance, and trust a large one fully.

    With T samples of the arm, M2 their squared deviations and s²_max the largest sample variance of all arms::

        v = (M2 + κ s²_max) / (T - 1 + κ) · (1 + 3.5/T),      κ = 8 (40/(40 + T))²

    shrinks a young arm's variance to the largest one, so that an arm whose first samples agree by chance is not
    starved, and fades as evidence comes in. The last factor pays for the variance being known from T samples only:
    on Gaussian arms it makes the arms' excess losses equal to second order. Every arm has 4 pulls at least.

    For binary arms (support="binary") v is the mean of p(1-p) given the answers, with a Beta(2, 2) prior on p. With
    s ones and f zeros that is (2+s)(2+f)/((T+4)(T+5)); s f = T M2, so that only T and M2 are needed::

        v = (4 + 2T + T M2) / ((T + 4)(T + 5))

    Notes
    -----
    Where no sample of any arm differs from the others of its arm, all variances are zero; a minute term then keeps the
    arms in turn.
    """

    pool = "max"

    def params(self, budget: int | None, arms: int, support: Support) -> tuple[float, ...]:
        return (1.0 if support == "binary" else 0.0,)

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: float, own: float, params: tuple[float, ...]) -> float:
        if params[0] == 1.0:
            return (4 + 2 * count + count * m2) / ((count + 4) * (count + 5))
        fade = 40 / (40 + count)
        kappa = 8 * fade * fade
        return (m2 + kappa * pooled) / (count - 1 + kappa) * (1 + 3.5 / count) + 1e-300

    @staticmethod
    def floor(t: float, arms: float, params: tuple[float, ...]) -> float:
        return 4.0
