"""The oracle, which knows the variances: the benchmark for all other strategies."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from equipoise.base.errors import InvalidInput
from equipoise.strategies.registry import register
from equipoise.strategies.strategy import Numbers, Strategy


@register("oracle")
@dataclass(frozen=True, init=False)
class Oracle(Strategy):
    """
    Pull the arm with the largest true variance over its pulls, σ²_k/T_k.

    Parameters
    ----------
    variances
        σ²_k, one for each arm. A simulation fills them in from its problem.

    References
    ----------
    .. [1] Carpentier et al., Upper-Confidence-Bound Algorithms for Active Learning in Multi-Armed Bandits, Section 2
       (A*).
    """

    variances: tuple[float, ...] | None = None

    warmup = 1
    own = ("variance",)
    scale_invariant = False

    def __init__(self, variances: Iterable[float] | None = None) -> None:
        values = None if variances is None else tuple(float(v) for v in variances)
        for v in values or ():
            if not 0 <= v < math.inf:
                raise InvalidInput(f"oracle: variances must be finite and non-negative, got {v!r}")
        object.__setattr__(self, "variances", values)

    @staticmethod
    def variance(count: float, mean: float, m2: float, pooled: Numbers, own: Numbers, params: Numbers) -> float:
        return own[0]

    def rescaled(self, c: float) -> Oracle:
        return Oracle(None if self.variances is None else [v * c * c for v in self.variances])
