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
from equipoise.inputs import integer, labelled, number, positive, probability, shown
from equipoise.intervals.asymptotic import START
from equipoise.keywords import suggests_keywords
from equipoise.problem import Stratified
from equipoise.problem.objective import numbers_by_arm
from equipoise.problem.objective import objective as objective_of
from equipoise.run.drive import Driver, Settings
from equipoise.run.progress import Progress, check_progress, display
from equipoise.run.samplers import ENDLESS, Samplers
from equipoise.run.workers import count_of, workers_for
from equipoise.store import Header, Journal
from equipoise.store.fold import reweighed
from equipoise.store.plain import loads
from equipoise.strategies import Strategy, Support, check_support, resolve
from equipoise.study import Precision, Result
from equipoise.study.goal import precision as precision_of
from equipoise.tables import count


@suggests_keywords
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
    objective: float | Stratified = math.inf,
    weights: Iterable[float] | Mapping[Any, float] | None = None,
    costs: Iterable[float] | Mapping[Any, float] | None = None,
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
) -> Result:
    """
    Sample arms with your functions until the budget is spent or the precision is reached.

    Parameters
    ----------
    samplers
        How to sample: a mapping from the arms' names to functions without arguments, or one function of an arm's name,
        together with `arms`. A function with a parameter `size` returns an array of that many samples. A function with
        a parameter `seed` is given an integer (with a size, an array of them) that depends only on the study's seed,
        the arm and the index of the sample among the arm's samples. Functions may be async. In a mapping, a list or
        any other iterable of samples is allowed too; the arm is retired when its samples are used up.
    budget
        The most samples to take or, with `costs`, the most to spend. Samples given up after `lease` are returned to the
        budget; their late answers are still used, so that the total can exceed it.
    arms
        The arms' names, or their number, if there is one function.
    precision
        Stop when every mean is known to this half-width, simultaneously with probability `level`: a number, a share of
        the mean such as "3%", or one of these for each arm. An arm that has reached its precision is not sampled any
        further. Until then, errors are made small relative to these half-widths, unless `weights` or `objective` are
        given.
    level
        The probability that all intervals hold simultaneously.
    max_seconds
        Start no more samples after this many seconds; those in flight are waited for.
    strategy, support, objective, weights, costs
        As in `Study`.
    populations
        The items of each arm, or their number, if an arm is a finite collection that is drawn without replacement. The
        sampler is given an item (or the arm and an item), in a random order that the seed decides. Errors include the
        finite population correction: a population that is used up is known exactly.
    guess
        Guessed variances of the arms. They decide which arms are sampled first, for ten times the number of arms or a
        tenth of the budget, whichever is less. They enter no estimate, and afterwards the strategy decides by the
        samples.
    executor
        Where to sample: None for this thread, one at a time; a number of threads (for async functions, of samples in
        flight); an executor of concurrent.futures; a Dask client. All its workers are kept busy.
    in_flight
        The most samples in flight. With 1 and a seed, the study is the same wherever it runs.
    rounds
        Sample every arm at least once in this many rounds, a round being as many samples as there are arms, for samples
        that drift: an arm that is left out while a machine slows down would seem less variable than the others, and be
        left out for longer. An arm that has reached its precision is not sampled any further all the same.
    retries
        How often to repeat a sample that failed.
    lease
        Seconds after which a sample without an answer is given up. If the answer arrives later, it is used.
    seed
        Decides the samplers' seeds and the order of populations; None for a random one.
    store
        A path (SQLite) or a postgresql:// URL. Everything is saved there, and the same call with the same store
        continues where the last one ended, however it ended, even with a larger budget or a finer precision.
    progress
        None for a bar in a terminal or a notebook, True or False to show or hide it, or a function of a `Progress`,
        which is called after commits.
    about
        A description of what is sampled, by strings and numbers, which is saved in the store.

    Returns
    -------
    Result

    Raises
    ------
    EquipoiseError
        If a sampler fails more often than `retries`, or the store or the executor fails. Its attribute `study` holds
        everything that was sampled, and so does the store, if there is one.

    Examples
    --------
    >>> import random
    >>> import equipoise as eq
    >>> def sample(arm, seed):
    ...     return random.Random(seed).gauss(10, 4 if arm == "rough" else 1)
    >>> result = eq.estimate(sample, budget=200, arms=["calm", "rough"], seed=1)
    >>> dict(result.counts)
    {'calm': 16, 'rough': 184}
    """
    if store is not None and not isinstance(store, str | os.PathLike):
        raise TypeError(f"store must be a path or a URL, got {shown(store)}")
    check_progress(progress)
    given_seed = seed if seed is None else integer("seed", seed, least=0)
    settings = Settings(
        precision=None,
        max_seconds=None if max_seconds is None else positive("max_seconds", max_seconds, "number of seconds"),
        retries=integer("retries", retries, least=0),
        lease=None if lease is None else positive("lease", lease, "number of seconds"),
        in_flight=None if in_flight is None else integer("in_flight", in_flight, least=1),
        rounds=None if rounds is None else integer("rounds", rounds, least=1),
        level=probability("level", level),
        timed=about is not None and about.get("measure") == "seconds",
    )
    if rounds is not None and costs is not None:
        raise ValueError("rounds cannot be combined with costs: every arm would be sampled, whatever it costs")
    options = _options(objective, weights, costs)
    # The store may hold another seed; nothing is drawn before that is known.
    drawn = Samplers(samplers, arms, populations, 0 if given_seed is None else given_seed)
    if precision is not None:
        target = precision_of(precision, level, drawn.arms)
        settings = replace(settings, precision=target, weigh=target.followed(resolve(strategy), options))
    if budget is None and precision is None and max_seconds is None and bool((drawn.limits == ENDLESS).any()):
        raise ValueError("no limit was given; set budget, precision or max_seconds")
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
                journal.set_weights(None)  # they followed the precision of an earlier run
            settings = replace(settings, weighed=settings.weigh and _weighed(journal, settings.precision))
            driver = Driver(journal, drawn, settings, order, watcher)
            journal.started(
                {
                    "precision": _savable(precision),
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
    # Without a lease, one sample at a time needs no thread but this one.
    alone = executor is None or count_of(executor) == 1
    workers = None if alone and settings.lease is None and not samplers.awaited else workers_for(executor, samplers)
    try:
        try:
            if workers is None:
                driver.here()
            else:
                driver.elsewhere(workers)
        finally:
            if workers is not None:
                workers.close()
            driver.finish()
            driver.show()  # however it ended
        if driver.ending is not None:
            raise driver.ending
    except EquipoiseError as error:
        samples = journal.study.result().samples
        error.reason = str(error)
        if error is driver.ending:
            taken = count(samples, "sample")
            kept = (
                f"{taken} saved in {journal.store.name}; repeat the call to continue"
                if journal.store is not None
                else f"{taken} taken so far; they are in the `study` attribute of this error"
            )
            error.args = (f"{error}; {kept}",)
        error.study = journal.study
        raise


def _weighed(journal: Journal, wanted: Precision | None) -> bool:
    """Whether the weights of a study were set by a run with this precision."""
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


def _options(objective: Any, weights: Any, costs: Any) -> dict[str, Any]:
    """Return the options of a study that are not the default, as they are saved in the log."""
    found = {} if isinstance(objective, float) and objective == math.inf else {"objective": objective}
    return found | {n: _savable(v) for n, v in (("weights", weights), ("costs", costs)) if v is not None}


def _savable(given: Any) -> Any:
    """Return what was given for each arm as a log can hold it: labels as a dict, other iterables as a list."""
    labels = labelled(given)
    if labels is not None:
        return dict(labels)
    plain = isinstance(given, str | bytes | list | tuple | np.ndarray) or not isinstance(given, Iterable)
    return given if plain else list(given)


def _first_arms(guess: Any, header: Header) -> Ints:
    """Return the places of the arms to sample first, by guessed variances."""
    if guess is None:
        return np.zeros(0, np.int64)
    arms = len(header.arms)
    variances = np.array(numbers_by_arm("guess", guess, header.arms))
    chosen = {name: header.options.get(name) for name in ("weights", "costs")}
    goal = objective_of(header.arms, header.options.get("objective", math.inf), **chosen)
    most = 10 * arms
    if header.budget is not None:
        most = min(most, int(number("budget", header.budget) / goal.cost(arms).max() / 10))
    # As an oracle with these variances would choose: the largest key, as if each arm had had one pull.
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
    Return the places of the arms for the first rounds, as many as an interval that rests on the sample variance needs.

    An arm of small weight would otherwise be left without one. Nothing if these rounds would take half of the budget.
    """
    arms = len(header.arms)
    rests = header.support is None or (header.populations is not None and header.support != "binary")
    most = math.inf
    if header.budget is not None:
        costs = objective_of(header.arms, costs=header.options.get("costs")).cost(arms)
        most = number("budget", header.budget) / costs.sum() / 2
    return np.tile(np.arange(arms), START if rests and most >= START else 0)
