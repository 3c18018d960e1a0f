"""Contrasts of arms' means: weighted sums such as differences."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import labelled, named, number, positive, shown

# More weights than this, contrasts times arms, are not taken.
MOST_WEIGHTS: Final = 10_000_000
# Steps toward the shares of contrasts; each is a product of a matrix with a vector.
_STEPS: Final = 60


@dataclass(frozen=True, init=False)
class Contrasts:
    """
    A precision that is asked of contrasts instead of means: every difference, or the weighted sums that are named.

    Parameters
    ----------
    half_width
        The half-width that is wanted of each contrast's interval; all hold simultaneously.
    to
        An arm, such as the control: the differences of every other arm to it. Without it, those of all pairs.
    of
        The contrasts themselves, as mappings from arms to weights: [{"a": 1, "b": -0.5, "c": -0.5}].

    Examples
    --------
    >>> import equipoise as eq
    >>> wanted = eq.Contrasts(0.02, to="control")
    >>> wanted = eq.Contrasts(0.02, of=[{"a": 1, "b": -0.5, "c": -0.5}])
    """

    half_width: float
    to: Any
    of: tuple[Mapping[Any, float], ...] | None

    def __init__(
        self, half_width: float, *, to: Hashable = None, of: Iterable[Mapping[Any, float]] | None = None
    ) -> None:
        if to is not None and of is not None:
            raise InvalidInput("Contrasts takes to or of, not both")
        object.__setattr__(self, "half_width", positive("half_width", half_width))
        object.__setattr__(self, "to", to)
        object.__setattr__(self, "of", None if of is None else tuple(map(_checked, of)))
        if self.of == ():
            raise InvalidInput("of must have at least one contrast, got none")

    def weights(self, arms: Sequence[Hashable]) -> Floats:
        """Return the weights, with a row for each contrast and a column for each arm of these names."""
        places = {arm: k for k, arm in enumerate(arms)}
        K = len(arms)
        pairs = K - 1 if self.to is not None else K * (K - 1) // 2
        rows = pairs if self.of is None else len(self.of)
        if not rows:
            raise InvalidInput(f"contrasts need at least 2 arms, got {K}")
        if rows * K > MOST_WEIGHTS:
            raise InvalidInput(
                f"contrasts times arms must be at most {MOST_WEIGHTS:,}, got {rows:,} contrasts of {K:,} arms; compare "
                "them to one arm, as in Contrasts(0.02, to='control')"
            )
        found = np.zeros((rows, K))
        if self.of is not None:
            for row, given in zip(found, self.of, strict=True):
                for arm, weight in given.items():
                    row[_place(places, arm)] = weight
            return found
        first, second = np.triu_indices(K, 1)
        if self.to is not None:
            control = _place(places, self.to)
            first = np.flatnonzero(np.arange(K) != control)
            second = np.full(rows, control)
        found[np.arange(rows), first] = 1.0
        found[np.arange(rows), second] = -1.0
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return what was given as plain data: `contrasts`, the half-width, with `to` or `of`."""
        found: dict[str, Any] = {"contrasts": self.half_width}
        if self.to is not None:
            found["to"] = self.to
        return found if self.of is None else found | {"of": [dict(each) for each in self.of]}

    @property
    def noun(self) -> str:
        """What there are several of, in one word."""
        return "contrast" if self.of is not None else "difference"

    @property
    def words(self) -> str:
        """All of them, in a few words that follow "every"."""
        return f"difference to {named(self.to)}" if self.to is not None else self.noun


def balanced(relative: Floats, variances: Floats, costs: Floats) -> Floats:
    """
    Return weights on the losses of arms with which the largest error of a contrast is as small as it can be.

    The largest of Σ_k r_jk v_k/T_k over the contrasts j is smallest for T_k ∝ sqrt(v_k w_k/cost_k), which minimise
    Σ_k w_k v_k/T_k, with w_k = Σ_j λ_j r_jk and some shares λ that are positive for the widest contrasts alone. They
    are found by multiplying each with its contrast's error, over and over.

    Parameters
    ----------
    relative
        r_jk, the squares of the weights in units of the targets: a row for each contrast, a column for each arm.
    variances, costs
        Of the arms.
    """
    needed = relative.any(0) & (variances > 0)
    shares = np.full(len(relative), 1 / len(relative))
    for _ in range(_STEPS):
        pulls = np.sqrt(variances * (shares @ relative) / costs)
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = relative @ np.where(needed, variances / pulls, 0.0)
        if not errors.any():
            break
        shares = shares * errors
        shares /= shares.sum()
    return np.asarray(shares @ relative)


def _checked(given: Any) -> dict[Any, float]:
    labels = labelled(given)
    if labels is None:
        raise TypeError(f"of must have mappings from arms to weights, got {shown(given)}")
    found = {arm: number("a weight", weight) for arm, weight in labels.items()}
    if not all(map(math.isfinite, found.values())) or not any(found.values()):
        raise InvalidInput(f"the weights of a contrast must be finite and not all zero, got {shown(given)}")
    return found


def _place(places: Mapping[Hashable, int], arm: Hashable) -> int:
    if arm not in places:
        raise InvalidInput(f"a contrast must be of arms of the study, got {shown(arm)}")
    return places[arm]
