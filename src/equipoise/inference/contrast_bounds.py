"""Ends of the intervals of contrasts: weighted sums of arms' means."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.inference import finite
from equipoise.inference.known import Known
from equipoise.inference.sequence_bounds import bounds_of, too_few
from equipoise.intervals import Kind


class ContrastEnds(NamedTuple):
    """The ends of several intervals, and which of them are of fixed width instead of being confidence sequences."""

    low: Floats
    high: Floats
    fixed: Bools


def bounds(
    known: Known, places: Ints, weights: Floats, alpha: float, kind: Kind | None = None
) -> tuple[Floats, Floats]:
    """
    Return the lower and upper ends of several contrasts, each at level 1 - alpha, of a kind or the study's default.

    `places` and `weights` have a row for each contrast: its arms, and their weights, none of them zero.
    """
    if not len(places):
        return np.empty(0), np.empty(0)
    sequences = known.sequences_of(kind)
    arms, rows = np.unique(places, return_inverse=True)
    rows = rows.reshape(places.shape)
    some = None if len(arms) == len(known.arms) else arms.tolist()
    state = known.state_of(sequences.kind, some)
    deviations = _deviations(known, state) if sequences.kind in ("asymptotic", "fixed-n") else None

    def ends(alpha: float) -> tuple[Floats, Floats]:
        return bounds_of(known, sequences, arms.tolist(), alpha)

    pools = known.pools(sequences, some) if places.shape[1] > 1 else None
    if pools is not None:
        low, high = pools[0].contrasts(pools[1], rows, weights, alpha)
    elif known.populations is None:
        low, high = sequences.contrasts(state, rows, weights, alpha, deviations)
    else:
        sizes = known.populations[arms]
        low, high = finite.contrasts(sequences, rows, weights, alpha, state, deviations, sizes, ends)
    few = too_few(known, sequences, state, arms, alpha)[rows].any(axis=1)
    return np.where(few, -math.inf, low), np.where(few, math.inf, high)


def _deviations(known: Known, state: Floats) -> Floats:
    """Return standard deviations; that of the most varying arm for one whose samples are all equal."""
    count, m2 = state[:, 0], state[:, 2]
    most = float(np.nanmax(known.variances, initial=0.0))
    return np.sqrt(np.where(m2 > 0, m2 / np.maximum(count - 1, 1), most))
