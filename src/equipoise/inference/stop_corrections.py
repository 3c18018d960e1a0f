"""
Bias and error inflation of arms that were sampled until their own intervals were narrow enough.

Which of the arms was sampled when makes no difference to where each of them stopped, so that each is replayed alone
(`stop_replay`), with its samples as its law. There the inflation f = E[(mean - μ)²] / E[s²/T] and the bias
b = E[mean - μ] are measured. As in `replay`, some of the replays are replayed in turn, and 2 f₁ - f₂ and 2 b₁ - b₂ are
reported: a law made of an arm's samples has a lighter tail than the law they came from, and samples of that law a
lighter one still.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from equipoise.base.arrays import Bools, Floats
from equipoise.inference.corrections import LEAST, MOST, MOST_ARMS, Adaptivity, How, enough, seed_of, shrunk
from equipoise.inference.known import Known
from equipoise.inference.stop_replay import Bias, Target, samples_of, stops
from equipoise.intervals.stop_rule import StopRule

# Stops are replayed of studies with at most this many samples.
MOST_STOPPED: Final = 200_000
# About how many samples are drawn for the replays, and once more for replays of these; and how many replays there are.
DRAWN: Final = 1_500_000
FEWEST_RUNS, RUNS = 64, 1024
# Betting takes longer to follow: a replay counts as this many, of binary arms and of others.
BINARY, BOUNDED = 2, 4
# How many of the replays are replayed.
FEWEST_AGAIN, AGAIN = 4, 16


def stopped_alone(known: Known, stopped: Bools, formula: Adaptivity) -> Adaptivity:
    """
    Return the inflations and biases of arms that were sampled until their own intervals were narrow enough.

    Inflations are shrunk toward those of second order by as much as the noise of the replays explains.

    Parameters
    ----------
    known
        The study.
    stopped
        Which arms were stopped so. The others keep the corrections of the formulas.
    formula
        The corrections of the formulas.
    """
    evidence, wanted, counts = known.evidence, known.precision, known.counts
    if evidence is None or wanted is None or wanted.sums is not None or known.populations is not None:
        return formula
    samples = evidence.samples() if len(counts) <= MOST_ARMS and known.samples <= MOST_STOPPED else None
    if samples is None:
        return formula
    rule = known.stop_rule
    betting = known.sequences.kind == "betting"
    cost = 1 if not betting else BINARY if known.sequences.support == "binary" else BOUNDED
    runs = max(min(DRAWN // known.samples, RUNS) // cost, FEWEST_RUNS)
    places = [k for k in np.flatnonzero(stopped).tolist() if enough(samples[k], counts[k]) and _varies(samples[k])]
    found, scatter = [], np.full(len(counts), math.nan)
    for k in places:
        target = Target(wanted.wanted[k], wanted.relative[k])
        own = samples[k] - (0.0 if target.relative or rule.sequences.support is not None else samples[k].mean())
        seed = seed_of([own], f"{target} {rule.alpha} {wanted.interval}")
        each, scatter[k] = twice(own, target, rule, runs, seed)
        found.append(each)
    if not found:
        return formula
    inflations, biases = formula.inflations.copy(), formula.biases.copy()
    measured, noise = (np.array([getattr(each, name) for each in found]) for name in ("inflation", "noise"))
    inflations[places] = np.clip(shrunk(measured, inflations[places], noise), LEAST, MOST)
    biases[places] = [each.bias for each in found]
    how: How = "replay" if len(places) == len(counts) else "formula"
    return Adaptivity(inflations, biases, how, scatter=scatter)


def twice(own: Floats, target: Target, rule: StopRule, runs: int, seed: int) -> tuple[Bias, float]:
    """
    Return the bias and inflation of an arm's mean, and the standard deviation of the number of samples.

    Parameters
    ----------
    own
        The arm's samples.
    target, rule
        The target, and the rule that stopped it.
    runs, seed
        The number of replays, and about that of replays of replays; and the seed of all.
    """
    first = stops(own, target, rule, runs, seed)
    found = first.against(own)
    again = min(max(runs // 64, FEWEST_AGAIN), AGAIN)
    laws = samples_of(own, first.counts[:again], seed)
    second = [
        stops(law, target, rule, max(runs // again, 16), seed + i + 1).against(law) if _varies(law) else Bias(1, 0, 0)
        for i, law in enumerate(laws)
    ]
    # Inflations multiply s²/T of the replay that was replayed, so that their mean is weighted with it.
    losses = first.variances[:again] / first.counts[:again] + 1e-300
    share = losses / losses.sum()
    inflations = np.array([each.inflation for each in second])
    mean = float(share @ inflations)
    noise = 4 * found.noise + float(share**2 @ (inflations - mean) ** 2) * again / (again - 1)
    bias = 2 * found.bias - float(np.mean([each.bias for each in second]))
    return Bias(2 * found.inflation - mean, noise, bias), float(first.counts.std())


def _varies(own: Floats) -> bool:
    return bool(own.min() < own.max())
