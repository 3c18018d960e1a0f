"""Which arms are least precise, and which of many are shown."""

from __future__ import annotations

import math

import numpy as np

from equipoise.base import tables
from equipoise.base.arrays import Ints
from equipoise.inference.arm_intervals import ArmIntervals, intervals
from equipoise.inference.known import Known, remembered


def least_precise(known: Known) -> int:
    """Return the place of the least precise arm: what every sentence, table, chart and page calls so."""
    return int(worst_first(known)[0])


@remembered
def worst_first(known: Known) -> Ints:
    """
    Return the places of all arms, the least precise first.

    These are arms whose loss is unknown, then those with the widest intervals: relative to targets, or weighted.
    Arms that have no interval yet come before those that have one. Strata are in the order of their weighted
    losses, and so are arms whose intervals are equally wide.
    """
    losses = known.weighted_losses
    unknown = np.isnan(losses)
    wide = np.zeros(len(losses))
    if known.objective.shares is None and not unknown.all():
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = 1 / known.targets if known.by_target else np.sqrt(known.objective.weight(len(known.arms)))
            wide = np.where(scale > 0, intervals(known).margins * scale, 0.0)
    order = np.lexsort((-np.where(unknown, math.inf, losses), -np.nan_to_num(wide, nan=math.inf), ~unknown))
    return np.asarray(order)


def shown(known: Known) -> list[int]:
    """Return the places of the arms that tables and charts show: all in order, or the worst if there are many."""
    if len(known.arms) <= tables.MOST_ROWS:
        return list(range(len(known.arms)))
    return [int(k) for k in worst_first(known)[: tables.MOST_ROWS]]


def intervals_shown(known: Known) -> ArmIntervals:
    """Return the intervals of the arms that are shown."""
    places = shown(known)
    return intervals(known) if len(places) == len(known.arms) else intervals(known, places)
