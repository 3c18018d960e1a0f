"""Standard errors and biases of the means, with what adaptive sampling has done to them."""

from __future__ import annotations

import math

import numpy as np

from equipoise.base.arrays import Floats
from equipoise.inference import finite
from equipoise.inference.known import Known, remembered
from equipoise.inference.replay import adaptivity


@remembered
def errors(known: Known) -> Floats:
    """Return the standard errors in the arms' order, 0 where samples are all equal: the terms of errors of sums."""
    return np.asarray(np.sqrt(known.losses * adaptivity(known).inflations))


def standard_errors(known: Known) -> Floats:
    """Return the standard errors in the arms' order, NaN where samples are all equal."""
    return np.where(known.equal_samples, math.nan, errors(known))


def biases(known: Known) -> Floats:
    """Return by how much each mean is off on average because of how the samples were chosen."""
    return np.where(np.isnan(known.losses), math.nan, adaptivity(known).biases)


def corrected_means(known: Known) -> Floats:
    """Return the means less their biases."""
    return np.asarray(known.means - adaptivity(known).biases)


@remembered
def errors_of_strata(known: Known) -> Floats:
    """Return the standard errors of strata: of binary ones, not 0 where all samples are equal (Agresti and Coull)."""
    if known.sequences.support != "binary":
        return errors(known)
    counts = known.counts.astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):  # of arms without samples
        likely = (counts * known.means + 2) / (counts + 4)
        losses = finite.losses(likely * (1 - likely), counts, known.sizes)
    return np.where(known.equal_samples, np.sqrt(losses), errors(known))
