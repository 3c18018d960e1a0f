"""Contrasts of arms' means with their errors and intervals, and which arms differ."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, Final

import numpy as np

from equipoise.base.arrays import Floats, Ints
from equipoise.base.errors import InvalidInput
from equipoise.base.inputs import MISSING, labelled, number, plain_name, probability, shown
from equipoise.inference.contrast_bounds import ContrastEnds, bounds
from equipoise.inference.contrasts import Contrast, Differences
from equipoise.inference.errors import errors_of_strata, standard_errors
from equipoise.inference.known import Known
from equipoise.inference.linear_targets import look
from equipoise.intervals import Kind
from equipoise.ledger.goal import Sums

# More pairs than this are not compared at once.
MOST_PAIRS: Final = 500_000


def contrast(known: Known, weights: Mapping[Any, float], level: float | None, kind: Kind | None = None) -> Contrast:
    """Return the weighted sum of the means of the named arms, as `Result.contrast` documents it."""
    level = known.level if level is None else probability("level", level)
    given = labelled(weights)
    if given is None:
        raise TypeError(f"weights must be a mapping from arms to numbers, got {shown(weights)}")
    by_place = {known.names.find(arm): number("a weight", weight) for arm, weight in given.items()}
    c = np.array(list(by_place.values()))
    if not np.isfinite(c).all() or not c.any():
        raise InvalidInput(f"weights must be finite and not all zero, got {shown(weights)}")
    places, c = np.array(list(by_place))[c != 0], c[c != 0]
    asked = the_one_asked(known, places, c) if level == known.level and kind is None else None
    if asked is not None:
        return asked
    low, high = bounds(known, places[None], c[None], 1 - level, kind)
    return Contrast(
        float(c @ known.means[places]),
        math.hypot(*(c * standard_errors(known)[places])),
        float(low[0]),
        float(high[0]),
        level,
        known.sequences_of(kind).kind,
        {plain_name(known.arms[k]): float(each) for k, each in zip(places, c, strict=True)},
    )


def contrasts_of(known: Known, asked: Sums) -> list[Contrast]:
    """Return the sums with their standard errors and intervals."""
    found = look(known, asked, everything=True)
    of_arms = errors_of_strata(known) if asked.combined else standard_errors(known)
    errors = np.hypot.reduce(np.where(asked.weights != 0, asked.weights * of_arms, 0.0), axis=1)
    return [
        Contrast(
            float(found.values[j]),
            float(errors[j]),
            float(found.low[j]),
            float(found.high[j]),
            known.level,
            "fixed-width" if found.fixed[j] else known.interval_kind,
            # Positive weights first, as in a - control.
            {plain_name(known.arms[k]): float(row[k]) for k in np.argsort(-row, kind="stable").tolist() if row[k]},
        )
        for j, row in enumerate(asked.weights)
    ]


def pairs(known: Known, first: Ints, second: Ints) -> ContrastEnds | None:
    """Return the intervals of the differences first - second if the precision is asked of just these; else None."""
    asked = None if known.precision is None else known.precision.sums
    if asked is None or len(asked.weights) != len(first):
        return None
    plain = (np.sort(asked.weights, axis=1)[:, [0, -1]] == [-1, 1]).all(1) & ((asked.weights != 0).sum(1) == 2)
    if not plain.all():
        return None
    up, down = asked.weights.argmax(1), asked.weights.argmin(1)
    rows = {pair: j for j, pair in enumerate(zip(up.tolist(), down.tolist(), strict=True))}
    found = look(known, asked, everything=True)
    low, high = np.empty((2, len(first)))
    fixed = np.zeros(len(first), bool)
    for i, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        if (a, b) in rows:
            j = rows[a, b]
            low[i], high[i], fixed[i] = found.low[j], found.high[j], found.fixed[j]
        elif (b, a) in rows:
            j = rows[b, a]
            low[i], high[i], fixed[i] = -found.high[j], -found.low[j], found.fixed[j]
        else:
            return None
    return ContrastEnds(low, high, fixed)


def the_one_asked(known: Known, places: Ints, own: Floats) -> Contrast | None:
    """Return the contrast with these weights if the precision is asked of it, or of its opposite; else None."""
    asked = None if known.precision is None else known.precision.sums
    if asked is None:
        return None
    wanted = np.zeros(len(known.arms))
    wanted[places] = own
    for sign in (1, -1):
        rows = np.flatnonzero((asked.weights == sign * wanted).all(1))
        if len(rows):
            found = contrasts_of(known, asked)[int(rows[0])]
            return found if sign > 0 else found.opposite
    return None


def all_pairs(means: Floats) -> tuple[Ints, Ints]:
    """Return the places of all pairs of arms, the larger mean first."""
    K = len(means)
    if K * (K - 1) // 2 > MOST_PAIRS:
        raise InvalidInput(
            f"compare has at most {MOST_PAIRS:,} pairs, and {K:,} arms have {K * (K - 1) // 2:,}; compare them to one "
            "arm, as in compare(to='control')"
        )
    i, j = np.triu_indices(K, 1)
    larger = means[j] > means[i]
    return np.where(larger, j, i), np.where(larger, i, j)


def difference(known: Known, a: Hashable, b: Hashable, level: float | None, kind: Kind | None = None) -> Contrast:
    """Return the mean of `a` minus the mean of `b`, as `Result.difference` documents it."""
    if known.names.find(a) == known.names.find(b):
        level = known.level if level is None else probability("level", level)
        return Contrast(0.0, 0.0, 0.0, 0.0, level, known.sequences_of(kind).kind, {a: 0.0})
    return contrast(known, {a: 1.0, b: -1.0}, level, kind)


def compare(known: Known, level: float | None, to: Hashable, kind: Kind | None = None) -> Differences:
    """Return the differences of all pairs, or of each arm to one, as `Result.compare` documents it."""
    level = known.level if level is None else probability("level", level)
    if to is MISSING:
        first, second = all_pairs(known.means)
    else:
        control = known.names.find(to)
        first = np.flatnonzero(np.arange(len(known.arms)) != control)
        second = np.full(len(first), control)
    decided = pairs(known, first, second) if level == known.level and kind is None else None
    return _differences(known, first, second, level, to is not MISSING, decided, kind)


def _differences(
    known: Known,
    first: Ints,
    second: Ints,
    level: float,
    control: bool,
    decided: ContrastEnds | None,
    kind: Kind | None,
) -> Differences:
    """
    Return the differences first - second, simultaneous at this level (Bonferroni), the clearest first.

    `decided` are their intervals, where others than confidence sequences decided when to stop. Without
    them, they are of a kind, by default that of the study.
    """
    weights = np.tile([1.0, -1.0], (len(first), 1))
    places = np.column_stack([first, second])
    if decided is None:
        low, high = bounds(known, places, weights, (1 - level) / max(len(first), 1), kind)
        decided = ContrastEnds(low, high, np.zeros(len(first), bool))
    low, high, fixed = decided
    means, own = known.means, standard_errors(known)
    values, errors = means[first] - means[second], np.hypot(own[first], own[second])
    with np.errstate(invalid="ignore", divide="ignore"):
        # How far 0 is from the middle of the interval, in half-widths: above 1, it is outside.
        clear = np.nan_to_num(np.abs(high + low) / (high - low), nan=0.0)
        clear += np.nan_to_num(np.abs(values) / errors, nan=0.0, posinf=0.0) * 1e-9
    order = np.argsort(-clear, kind="stable")
    return Differences(
        known.names,
        first[order],
        second[order],
        values[order],
        errors[order],
        low[order],
        high[order],
        level,
        "fixed-width" if len(fixed) and fixed.all() else known.sequences_of(kind).kind,
        control,
        fixed[order],
        known.recognised,
    )
