"""Losses that other ways of sampling would have had at the same cost, if the variances are those observed."""

from __future__ import annotations

import math

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.inference import finite
from equipoise.inference.known import Known


def oracle_loss(known: Known) -> float:
    """Return the loss of the best allocation."""
    if not known.samples:
        return math.nan
    if known.populations is not None:
        return finite.oracle_loss(known.objective, known.variances, known.populations, known.price)
    if known.objective.plain:
        return float(known.variances.sum()) / known.samples
    variances = np.where(known.objective.weight(len(known.arms)) > 0, known.variances, 0.0)
    return known.objective.optimal_loss(variances, known.price)


def regret(known: Known) -> float:
    """Return the loss less that of the best allocation; infinite with the loss."""
    return known.loss - oracle_loss(known) if known.loss < math.inf else known.loss


def uniform_loss(known: Known) -> float:
    """Return the loss of an even split."""
    if not known.samples:
        return math.nan
    each = math.fsum(known.objective.cost(len(known.arms)))
    if known.populations is not None:
        return known.objective.loss(_losses_of(known, np.full(len(known.arms), known.price / each)))
    return known.objective.loss(known.variances) * each / known.price


def proportional_loss(known: Known) -> float:
    """Return the loss of an allocation in proportion to the strata's shares; NaN where arms are not strata."""
    if known.objective.shares is None or not known.samples:
        return math.nan
    shares = np.array(known.objective.shares)
    pulls = shares * known.price / math.fsum(shares * known.objective.cost(len(known.arms)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return known.objective.loss(_losses_of(known, pulls))


def _losses_of(known: Known, pulls: Floats) -> Floats:
    """Return the arms' losses with these numbers of samples."""
    if known.populations is not None:
        return finite.losses(known.variances, pulls, known.populations)
    return np.asarray(known.variances / pulls)
