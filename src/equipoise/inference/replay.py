"""
What choosing the samples by looking at samples has done to the means.

An arm whose early samples vary little by chance is sampled less. So the squared error of a mean is larger than s²/T
says, and the mean of a skewed arm is biased. Both are measured by replaying the study: each arm's samples become its
law, and the same strategy spends the same budget on these laws some hundreds of times. There the truth is known: the
inflation f = E[(mean - μ)²] / E[s²/T] and the bias b = E[mean - μ]. Samples that are all 0 or 1 have laws that differ
less than they do (`fitted`).

Some of the replays are replayed in turn, with their samples as laws. What the first replay finds, f₁ and b₁, is off
because a law made of few samples is not the law they came from, and the second one, f₂ and b₂, is off from the first in
the same way; so 2 f₁ - f₂ and 2 b₁ - b₂ are reported (the iterated bootstrap [1]_).

An arm that was sampled until its own interval was narrow enough is replayed alone (`stop_replay`). Where neither is
possible, formulas of second order take over (`formulas`).

References
----------
.. [1] P. Hall (1992), The Bootstrap and Edgeworth Expansion, Springer, section 1.4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from equipoise.base.arrays import Bools, Floats, Ints
from equipoise.engine import cpu, streams
from equipoise.engine.setup import Setup
from equipoise.inference import linear_targets as sums
from equipoise.inference.arm_intervals import reached_by_arm
from equipoise.inference.corrections import BLIND, LEAST, MOST, MOST_ARMS, Adaptivity, enough, moderate, seed_of, shrunk
from equipoise.inference.formulas import formulas, second_order, stopping_biases
from equipoise.inference.known import Known, remembered
from equipoise.inference.replay_laws import fitted
from equipoise.inference.stop_corrections import stopped_alone
from equipoise.ledger.snapshot import Design
from equipoise.problem import Objective, money

# Larger studies are not replayed: with as many samples a formula is as good, and faster.
MOST_SAMPLES: Final = 20_000
# Replays of a study, and about how many pulls of few arms they should take; those of many arms take longer.
RUNS: Final = 2048
WORK: Final = 1_000_000
# How many of the replays are replayed, and how often: as many runs as the simulator has side by side.
AGAIN: Final = 16
RUNS_AGAIN: Final = cpu.LANES


@remembered
def adaptivity(known: Known) -> Adaptivity:
    """Return what adaptive sampling has done to the means of a known, by a replay where that is possible."""
    evidence, arms = known.evidence, len(known.arms)
    nothing = Adaptivity(np.ones(arms), np.zeros(arms), "not needed")
    # Samples that were not asked for were not chosen by the study.
    if evidence is None or not evidence.answered.asked:
        return nothing
    stopped, together = _stopped(known), sums.stopping_shares(known)
    blind = arms == 1 or known.strategy in BLIND
    if blind and not stopped.any() and not together.any():
        return nothing
    study = None if blind else _study(known)
    if study is not None:
        # The replay spends a budget; that the arms stopped together comes on top.
        found = replayed(*study)
        stops = second_order(known.counts, evidence.skewness, (together, np.ones(arms)))
        biases = found.biases + stopping_biases(known, together)
        return replace(found, inflations=found.inflations * stops, biases=biases)
    found = formulas(known, stopped, together)
    return stopped_alone(known, stopped, found) if stopped.any() else found


def _stopped(known: Known) -> Bools:
    """Return which arms were sampled until their own interval was narrow enough."""
    own = known.precision is not None and known.precision.sums is None
    return reached_by_arm(known) if own else np.zeros(len(known.arms), bool)


def _study(known: Known) -> tuple[Setup, list[Floats]] | None:
    """Return what a replay needs, the setup and the samples; None where a result cannot be replayed."""
    snapshot, counts = known.snapshot, known.counts
    design, evidence = snapshot.design, snapshot.evidence
    # A study of strata that stops at a precision of the combined mean closes all arms at once, as at a budget.
    asked = None if known.precision is None else known.precision.sums
    combined = asked is not None and asked.combined
    if design is None or evidence is None or (not combined and (design.retired.any() or known.precision is not None)):
        return None
    # Arms that were closed early, and populations that are used up, are not replayed.
    if known.populations is not None or len(counts) > MOST_ARMS or known.samples > MOST_SAMPLES:
        return None
    strategy, objective = design.strategy, snapshot.objective
    cost = objective.cost(len(counts))
    if "variance" in strategy.own or counts.min() < 2 or not moderate(known.variances):
        return None
    if money.limit(known.price, float(cost.min())) < strategy.warmup * math.fsum(cost):
        return None
    # What is left of the money in a replay may buy very many samples that cost next to nothing.
    if known.price > MOST_SAMPLES * float(cost.min()):
        return None
    samples = evidence.samples()
    if samples is None or not all(map(enough, samples, counts)):
        return None
    return setup_of(samples, counts, design, objective, known.price), samples


def setup_of(samples: Sequence[Floats], counts: Ints, design: Design, objective: Objective, price: float) -> Setup:
    """
    Return what the simulator replays.

    Parameters
    ----------
    samples, counts
        The samples of each arm that are known one by one, and the numbers of all.
    design, objective
        How the study chose its samples, and what it minimised.
    price
        What its samples cost; their number without costs.
    """
    problem = fitted(samples, design.strategy.uses_mean)
    seed = seed_of(samples, f"{design.strategy!r} {design.params} {objective} {counts.tolist()}")
    return Setup(problem, design.strategy, (price,), design.params, seed, 1, objective, one_kernel=True, replay=True)


def replayed(setup: Setup, samples: Sequence[Floats]) -> Adaptivity:
    """
    Return the inflations and biases that replays of a study have.

    Parameters
    ----------
    setup
        The study, with laws that stand for its arms.
    samples
        The samples of each arm.
    """
    n, arms = sum(map(len, samples)), len(samples)
    blocks = int(WORK / (n * (1 + arms / 32) * RUNS_AGAIN))
    first = _replay(setup, RUNS_AGAIN * min(max(blocks, 2), RUNS // RUNS_AGAIN))
    # What somebody would find who has a replay in hand and replays that.
    second = []
    for run in range(min(max(blocks, 4), AGAIN)):
        own = streams.samples_of_run(setup.problem, setup.seed, run, first.counts[:, run])
        problem = fitted(own, setup.strategy.uses_mean)
        second.append(_replay(replace(setup, problem=problem, seed=(setup.seed + run + 1) % 2**64), RUNS_AGAIN))
    inflations = _expected(setup, first) + _corrections(first, second)
    biases = 2 * first.biases - np.mean([each.biases for each in second], axis=0)
    return Adaptivity(np.clip(inflations, LEAST, MOST), biases, "replay", _price(setup, first))


@dataclass(frozen=True)
class _Replays:
    """
    What some replays of one study found.

    Attributes
    ----------
    inflations, noise, biases
        By arm, with the squared standard error of the inflations.
    errors
        By arm: the expected squared error of the mean.
    losses, counts
        By arm and replay: s²/T, and T.
    """

    inflations: Floats
    noise: Floats
    biases: Floats
    errors: Floats
    losses: Floats
    counts: Floats


def _replay(setup: Setup, runs: int) -> _Replays:
    """
    Replay a study.

    S, the sum of an arm's deviations from its mean, Q = Σ (X - μ)² - σ² T and S² - σ² T have the mean 0 (Wald), and
    each takes out much of the noise of what is averaged: of the bias, of s²/T and of the squared error.
    """
    ends = cpu.simulate(setup, 0, runs)
    counts, means, m2s = ends.counts[0], ends.means[0], ends.m2s[0]
    mean, variance = setup.problem.means[:, None], setup.problem.variances[:, None]
    typical = counts.mean(axis=1, keepdims=True)
    off = means - mean
    sums = off * counts
    # An arm with one sample has no variance; some strategies allow that.
    variances = np.where(counts >= 2, m2s / np.maximum(counts - 1, 1), variance)
    squares = m2s + off * sums - variance * counts
    errors = off**2 - (sums**2 - variance * counts) / typical**2
    losses = variances / counts
    reported = losses - squares / typical**2
    expected, plain = errors.mean(axis=1), reported.mean(axis=1)
    measured = (expected > 0) & (plain > 0)
    plain = np.where(measured, plain, 1.0)
    inflations = np.where(measured, np.clip(expected / plain, LEAST, MOST), 1.0)
    # Divided first: the square of a very small variance would be 0.
    noise = np.where(measured, ((errors - inflations[:, None] * reported) / plain[:, None]).var(axis=1) / runs, 0.0)
    return _Replays(inflations, noise, (off - sums / typical).mean(axis=1), np.maximum(expected, 0), losses, counts)


def _price(setup: Setup, found: _Replays) -> float:
    """
    Return the loss of some replays over that of the best allocation.

    The norm of the arms' losses is too large, as the largest of noisy numbers is; their mean with the weights of the
    best allocation is too small where some arms do worse than others. The geometric mean of both is returned: measured
    on the problems of docs/explanation/inference.md, it is right within a few percent on arms that differ.
    """
    objective, variances = setup.objective, setup.problem.variances
    best = objective.optimal_loss(variances, setup.checkpoints[0])
    if not best > 0:
        return math.nan
    average = float(objective.slopes(variances) @ found.errors)
    return max(math.sqrt(average * objective.loss(found.errors)) / best, 1.0)


def _expected(setup: Setup, found: _Replays) -> Floats:
    """Return the inflations, shrunk toward a multiple of those of second order by as much as noise explains."""
    counts, variances = found.counts.mean(axis=1), setup.problem.variances
    third = np.array([law.third for law in setup.problem.arms])
    skewness = np.where(variances > 0, third / np.where(variances > 0, variances, 1) ** 1.5, 0.0)
    price = setup.objective.cost(len(counts)) * counts
    excess = second_order(counts, skewness, (setup.objective.exponent, 1 - price / price.sum())) - 1
    return shrunk(found.inflations, 1 + excess * float((found.inflations - 1).sum() / excess.sum()), found.noise)


def _corrections(first: _Replays, second: Sequence[_Replays]) -> Floats:
    """Return f₁ - f₂ for each arm, shrunk toward the mean over the arms by as much as noise explains."""
    inflations = np.array([each.inflations for each in second])
    # Inflations multiply s²/T of the replay that was replayed, so that their mean is weighted with it.
    losses = first.losses[:, : len(second)].T + 1e-300
    share = losses / losses.sum(axis=0)
    mean = (share * inflations).sum(axis=0)
    noise = (share**2 * (inflations - mean) ** 2).sum(axis=0) * len(second) / (len(second) - 1)
    own = first.inflations - mean
    return shrunk(own, np.full(len(own), own.mean()), noise + first.noise)
