"""Estimate the means of arms with the user's own samplers."""

from __future__ import annotations

import heapq
import math
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from equipoise.arrays import Ints
from equipoise.errors import EquipoiseError
from equipoise.inputs import integer, labelled, number, probability, shown
from equipoise.intervals.asymptotic import START
from equipoise.problem.objective import numbers_by_arm, objective
from equipoise.run.drive import Driver, Settings
from equipoise.run.progress import Progress, display
from equipoise.run.samplers import ENDLESS, Samplers
from equipoise.run.workers import count_of, workers
from equipoise.store import Header, Journal
from equipoise.store.fold import reweighed
from equipoise.store.plain import loads
from equipoise.strategies import Strategy, Support, check_support, resolve
from equipoise.study import Precision, Result
from equipoise.study.goal import precision as precision_of


def estimate(
    samplers: Mapping[Any, Any] | Callable[..., Any],
    budget: Any = None,
    *,
    arms: int | Iterable[Hashable] | None = None,
    precision: Any = None,
    level: float = 0.95,
    max_seconds: float | None = None,
    strategy: str | Strategy = "auto",
    support: Support = None,
    populations: Mapping[Any, Any] | Sequence[Any] | None = None,
    guess: Mapping[Any, float] | Sequence[float] | None = None,
    executor: Any = None,
    in_flight: int | None = None,
    rounds: int | None = None,
    retries: int = 0,
    lease: float | None = None,
    seed: int | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[Progress], Any] | None = None,
    about: Mapping[str, Any] | None = None,
    **options: Any,
) -> Result:
    """
    Sample arms until their means are known as well as the budget allows, or as well as is wanted.

    Parameters
    ----------
    samplers
        How to sample: a mapping from the arms' names to functions without arguments, or one function of an arm's name,
        with `arms`. A function with a parameter `size` returns an array of so many samples; one with a parameter `seed`
        gets a whole number (an array of them, with a size) that depends on the study's seed, the arm and the sample's
        place among the arm's samples alone. Functions may be awaited. In a mapping a list of samples, or any iterable,
        will do too: an arm whose samples are used up is closed.
    budget
        How many samples to take at most, or what they may cost, with `costs`.
    arms
        The arms' names, or their number, where there is one function.
    precision
        Stop when every mean is known to this half-width, all at once with probability `level`: a number, a share of the
        mean as in "3%", or one of these for each arm. An arm that is known well enough is not asked again. Until then
        errors are made small beside what is wanted of each arm, unless `weights` or an `objective` say otherwise.
    level
        See `precision`.
    max_seconds
        Ask for nothing more after so many seconds; what is in flight is waited for.
    strategy, support
        As in `Study`.
    populations
        The items of each arm, or their number, if an arm is a finite collection that is drawn from without replacement.
        The sampler is given an item (or the arm and an item), in an order of chance that the seed decides. Errors carry
        the finite population's correction: a population that is used up is known exactly.
    guess
        Guessed variances of the arms. They decide who is sampled first, ten times the number of arms or a tenth of the
        budget, whichever is less; they enter no estimate, and after that the strategy decides by what was seen.
    executor
        Where to sample: None for this thread, one at a time; a number of threads (of samples in flight, where
        functions are awaited); an executor of concurrent.futures; a Dask client. It is kept full.
    in_flight
        At most so many samples in flight. With 1 and a seed, the study is the same wherever it runs.
    rounds
        Ask every arm at least once in so many times as many asks as there are arms, for samples that drift: an arm that
        rests while a machine slows down would look less varying than the others, and rest for longer. An arm that is
        known well enough is not asked again all the same.
    retries
        How often to try a sample again that failed.
    lease
        Seconds after which a sample that does not come is given up. Should it come after all, it is taken.
    seed
        What seeds and the order of populations come from; None for one of chance.
    store
        A path (SQLite) or a postgresql:// URL. Everything is kept there, and the same call with the same store goes on
        from where it ended, however it ended; also with a larger budget or a finer precision.
    progress
        None for a bar if the standard error is a terminal, True, False, or a function of a `Progress`, which is called
        after commits.
    about
        What is sampled, by texts and numbers: it is kept in the store where a run begins, for who reads it later.
    **options
        As in `Study`: `objective`, `weights`, `costs`.

    Returns
    -------
    Result

    Raises
    ------
    EquipoiseError
        If a sampler fails more often than `retries`, or the store or the executor does. Its attribute `study` has all
        that was sampled; in a store it is kept too.

    Examples
    --------
    >>> import random
    >>> import equipoise as eq
    >>> def sample(arm, seed):
    ...     return random.Random(seed).gauss(10, 4 if arm == "rough" else 1)
    >>> result = eq.estimate(sample, budget=200, arms=["calm", "rough"], seed=1)
    >>> dict(result.counts)
    {'calm': 18, 'rough': 182}
    """
    given_seed = seed if seed is None else integer("seed", seed, least=0)
    settings = Settings(
        precision=None,
        max_seconds=_positive("max_seconds", max_seconds),
        retries=integer("retries", retries, least=0),
        lease=_positive("lease", lease),
        in_flight=None if in_flight is None else integer("in_flight", in_flight, least=1),
        rounds=None if rounds is None else integer("rounds", rounds, least=1),
        level=probability("level", level),
        timed=about is not None and about.get("measure") == "seconds",
    )
    if rounds is not None and options.get("costs") is not None:
        raise ValueError(f"rounds={rounds} will not do with costs; arms would be asked whatever they cost")
    # The store may know the seed; nothing is drawn with this one before it is asked.
    drawn = Samplers(samplers, arms, populations, 0 if given_seed is None else given_seed)
    if precision is not None:
        target = precision_of(precision, level, drawn.arms)
        settings = replace(settings, precision=target, weigh=target.followed(resolve(strategy), options))
    if budget is None and precision is None and max_seconds is None and bool((drawn.limits == ENDLESS).any()):
        raise ValueError("nothing says when to stop; give a budget, a precision or max_seconds")
    header = Header(
        arms=drawn.arms,
        strategy=resolve(strategy),
        support=check_support(support),
        budget=budget,
        seed=given_seed,
        options=options,
        populations=drawn.populations,
    )
    order = np.r_[_first_arms(guess, header), _first_rounds(header) if settings.weigh else np.zeros(0, np.int64)]
    journal = Journal(header, store)
    try:
        drawn.seed = journal.seed
        watcher = display(progress)
        try:
            if not settings.weigh and reweighed(journal.study, header):
                journal.set_weights(None)  # they followed what an earlier run was asked for
            settings = replace(settings, weighed=settings.weigh and _weighed(journal, settings.precision))
            driver = Driver(journal, drawn, settings, order, watcher)
            journal.started(
                {
                    "precision": precision if labelled(precision) is None else labelled(precision),
                    "level": level,
                    "executor": shown(executor),
                    "lease": lease,
                    **({} if about is None else {"about": about}),
                }
            )
            _drive(driver, journal, drawn, executor, settings)
            return driver.result()
        finally:
            if watcher is not None:
                watcher.close()
    finally:
        journal.close()


def _drive(driver: Driver, journal: Journal, samplers: Samplers, executor: Any, settings: Settings) -> None:
    # Without a lease one at a time needs no thread but this.
    alone = executor is None or count_of(executor) == 1
    hands = None if alone and settings.lease is None and not samplers.awaited else workers(executor, samplers)
    try:
        try:
            if hands is None:
                driver.here()
            else:
                driver.elsewhere(hands)
        finally:
            if hands is not None:
                hands.close()
            driver.finish()
            # However it ended: who watched is told where it stands.
            driver.show()
        if driver.ending is not None:
            raise driver.ending
    except EquipoiseError as error:
        samples = journal.study.result().samples
        error.reason = str(error)
        if error is driver.ending:
            kept = (
                f"the {samples:,} samples so far are in {journal.store.name}, and the same call goes on from there"
                if journal.store is not None
                else f"the {samples:,} samples so far are in the study of this error, `error.study`"
            )
            error.args = (f"{error}; {kept}",)
        error.study = journal.study
        raise


def _weighed(journal: Journal, wanted: Precision | None) -> bool:
    """Whether the weights that a study has were set by a run that was asked for this precision."""
    if wanted is None or journal.store is None or journal.study.objective.weights is None:
        return False
    asked = followed = None
    for line in journal.store.events():
        if line.kind == "start":
            asked = line.text
        elif line.kind == "weights":
            followed = asked
    before = None if followed is None else loads(followed).get("precision")
    return before is not None and precision_of(before, wanted.level, journal.study.arms) == wanted


def _first_arms(guess: Any, header: Header) -> Ints:
    """The places of the arms that a guess sends the first tickets to."""
    if guess is None:
        return np.zeros(0, np.int64)
    arms = len(header.arms)
    variances = np.array(numbers_by_arm("guess", guess, header.arms))
    chosen = {name: header.options.get(name) for name in ("weights", "costs")}
    goal = objective(header.arms, header.options.get("objective", math.inf), **chosen)
    most = 10 * arms
    if header.budget is not None:
        most = min(most, int(number("budget", header.budget) / goal.cost(arms).max() / 10))
    # Whom an oracle with these variances would ask: the largest key, as if each arm had had one pull.
    scores = goal.scales(arms) * variances**goal.exponent
    heap = [(-score, k, 1) for k, score in enumerate(scores.tolist())]
    heapq.heapify(heap)
    order = []
    for _ in range(most):
        _, k, pulls = heap[0]
        order.append(k)
        heapq.heapreplace(heap, (-float(scores[k]) / (pulls + 1), k, pulls + 1))
    return np.array(order, np.int64)


def _first_rounds(header: Header) -> Ints:
    """
    The places of the arms in as many rounds as an interval takes that rests on the variance seen.

    An arm that matters little would otherwise be left without one. None where they would take half of the budget.
    """
    arms = len(header.arms)
    rests = header.support is None or (header.populations is not None and header.support != "binary")
    most = math.inf
    if header.budget is not None:
        costs = objective(header.arms, costs=header.options.get("costs")).cost(arms)
        most = number("budget", header.budget) / costs.sum() / 2
    return np.tile(np.arange(arms), START if rests and most >= START else 0)


def _positive(name: str, value: float | None) -> float | None:
    if value is None:
        return None
    found = number(name, value)
    if not found > 0:
        raise ValueError(f"{name}={value!r} will not do; it must be a positive number of seconds")
    return found
