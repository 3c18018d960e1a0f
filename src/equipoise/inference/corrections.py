"""What choosing the samples by looking at samples has done to the means, however it was found."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from equipoise.base.arrays import Floats

How = Literal["not needed", "replay", "formula"]

# The decisions of these strategies do not depend on the samples.
BLIND: Final = ("uniform", "oracle")
# Larger studies are not replayed.
MOST_ARMS: Final = 2_000
# Inflations are kept within these factors, for laws of very few values.
LEAST, MOST = 0.8, 25.0
# Of an arm's samples, as many must be known one by one for it to be replayed.
_KNOWN: Final = 0.8


@dataclass(frozen=True)
class Adaptivity:
    """
    What choosing the samples by looking at samples has done to the means, in the arms' order.

    Attributes
    ----------
    inflations
        The expected squared error of a mean over the expected s²/T, corrected for a finite population in both.
    biases
        How far a mean is off on average.
    how
        "replay" or "formula", or "not needed" where which arms were sampled did not depend on the samples.
    price
        The loss of the replays over that of the best allocation for their laws: what it costs that the variances were
        not known; NaN where a study was not replayed.
    scatter
        The standard deviation of the number of samples at which each arm stops, NaN where its stop was not replayed;
        None where none was.
    """

    inflations: Floats
    biases: Floats
    how: How
    price: float = math.nan
    scatter: Floats | None = None


def enough(own: Floats, count: int) -> bool:
    """Return whether enough of an arm's samples are known one by one for it to be replayed."""
    return len(own) >= max(2, _KNOWN * count)


def moderate(variances: Floats) -> bool:
    """Return whether a float holds the square of the largest of these variances, as fourth moments need."""
    most = float(np.max(variances, initial=0.0))
    return most == 0 or 1e-140 < most < 1e140


def seed_of(samples: Sequence[Floats], setup: str) -> int:
    """Return a seed that depends on everything a replay does, so that the same result has the same numbers."""
    found = hashlib.blake2b(setup.encode(), digest_size=8)
    for own in samples:
        found.update(np.ascontiguousarray(own).tobytes())
    return int.from_bytes(found.digest(), "little")


def shrunk(found: Floats, toward: Floats, noise: Floats) -> Floats:
    """Return what was found, shrunk toward a guess by as much as its noise explains how far it is from that."""
    scatter = max(float(((found - toward) ** 2 - noise).mean()), 0.0)
    return np.asarray(toward + (scatter + 1e-300) / (scatter + noise + 1e-300) * (found - toward))
