"""Estimate the means of arms with the user's own samplers."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from equipoise.base.errors import EquipoiseError, InvalidInput
from equipoise.base.inputs import integer, shown
from equipoise.base.keywords import suggests_keywords
from equipoise.base.tables import count
from equipoise.ledger.goal import Stopping
from equipoise.problem import Contrasts, Stratified
from equipoise.result import Result
from equipoise.run.drive import Driver, DriverOptions
from equipoise.run.progress import Progress, check_progress, display
from equipoise.run.samplers import ENDLESS, Samplers
from equipoise.run.workers import Workers, count_of, workers_for
from equipoise.store import Header, Log, inside
from equipoise.store.leases import DRIVER_SECONDS, Owner
from equipoise.store.memory import Memory
from equipoise.strategies import Strategy, Support
from equipoise.study.options import study_options


@suggests_keywords
def estimate(
    samplers: Mapping[Any, Any] | Callable[..., Any],
    budget: float | None = None,
    *,
    arms: int | Iterable[Hashable] | None = None,
    precision: float | str | Mapping[Any, float | str] | Iterable[float | str] | Contrasts | None = None,
    level: float = 0.95,
    interval: Stopping = "fixed-width",
    max_seconds: float | None = None,
    strategy: str | Strategy = "auto",
    support: Support = None,
    objective: float | Stratified = math.inf,
    weights: Iterable[float] | Mapping[Any, float] | None = None,
    costs: Iterable[float] | Mapping[Any, float] | None = None,
    populations: Mapping[Any, Any] | Sequence[Any] | None = None,
    guess: Mapping[Any, float] | Sequence[float] | None = None,
    executor: int | Executor | Any | None = None,
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
        budget; late answers are used as long as it has a place for them.
    arms
        The arms' names, or their number, if there is one function.
    precision
        Stop when every interval lies within its mean ± this, simultaneously with probability `level`: a number, a share
        of the mean such as "3%", or one of these for each arm. An arm that has reached its precision is not sampled any
        further. Until then, errors are made small relative to the precision, unless `weights` or `objective` are given.
        With `objective=Stratified(shares)`, a number or a share is that of the combined mean. `Contrasts(0.02)` asks it
        of the differences of all pairs, `Contrasts(0.02, to="control")` of those to one arm, and samples are allocated
        for these.
    level
        The probability that all intervals hold simultaneously.
    interval
        Which intervals decide whether the precision is reached. "fixed-width" is for a study that stops by the widths
        of its intervals and by nothing else, and takes about half of the samples; where that approximation cannot be
        trusted, the others decide (docs/explanation/inference.md). With "anytime" they always do: confidence sequences,
        which hold whenever you look, for people who may stop by what they see.
    max_seconds
        Start no more samples after this many seconds; those in flight are waited for.
    strategy
        The name of a strategy, or a strategy with its parameters. The default needs no tuning.
    support
        The possible values: "binary" (0 or 1), (low, high), or None for any number. Other values are refused.
    objective
        What to minimise: the p-norm of the arms' losses, by default p = infinity, the largest of them; or
        `Stratified(shares)`, the error of the strata's combined mean.
    weights
        Weights on the losses (squared errors), by arm or in the arms' order; None for 1 each.
    costs
        The cost of one sample, by arm or in the arms' order; None for 1 each. The budget is then money.
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
        Seconds after which a sample without an answer is given up. If the answer arrives later, it is used as long as
        the budget has a place for it.
    seed
        Decides the samplers' seeds and the order of populations; None for a random one.
    store
        A path (SQLite) or a postgresql:// URL. Everything is saved there, and the same call with the same store
        continues where the last one ended, however it ended, even with a larger budget or a finer precision.
    progress
        None for a bar in a terminal or a notebook, True or False to show or hide it, or a function of a `Progress`,
        which is called after commits.
    about
        A description of what is sampled, by strings and numbers, which is saved in the store and shown in reports.
        "cost_unit", such as "tokens", is what costs are counted in.

    Returns
    -------
    Result
        The mean of each arm with its interval and standard error, and how good they are.

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
    if about is not None and not isinstance(about, Mapping):
        raise TypeError(f"about must be a mapping of strings and numbers, got {shown(about)}")
    given_seed = seed if seed is None else integer("seed", seed, least=0)
    settings = DriverOptions.checked(max_seconds, retries, lease, in_flight)
    if rounds is not None and costs is not None:
        raise InvalidInput("rounds cannot be combined with costs: every arm would be sampled, whatever it costs")
    # The store may hold another seed; nothing is drawn before that is known.
    drawn = Samplers(samplers, arms, populations, 0 if given_seed is None else given_seed)
    if store is not None and drawn.local:
        raise InvalidInput(
            "with a store, every arm must have a function or a list of samples, got a generator or another iterator, "
            "which other processes cannot read and which cannot be read again"
        )
    if budget is None and precision is None and max_seconds is None and bool((drawn.limits == ENDLESS).any()):
        raise InvalidInput("no limit was given; set budget, precision or max_seconds")
    options = study_options(
        drawn.arms, budget, strategy=strategy, support=support, objective=objective, weights=weights, costs=costs,
        populations=drawn.populations, precision=precision, level=level, interval=interval, guess=guess, rounds=rounds,
        seed=given_seed, about=about,
    )  # fmt: skip
    header = Header.of(options)
    log = Memory(header) if store is None else Log(store, header, run=True)
    try:
        return _drive(log, store, drawn, executor, settings, progress)
    finally:
        log.close()


def _drive(
    log: Log | Memory,
    store: str | os.PathLike[str] | None,
    samplers: Samplers,
    executor: Any,
    settings: DriverOptions,
    progress: Any,
    clock: Callable[[], float] = time.perf_counter,
) -> Result:
    samplers.seed = log.header.seed or 0
    watcher = display(progress)
    # Without a lease, one sample at a time needs no thread but this one.
    alone = executor is None or count_of(executor) == 1
    here = alone and settings.lease is None and not samplers.awaited
    workers = None if here else workers_for(executor, samplers, log.header.identity)
    owner = Owner(log, store, settings.lease or DRIVER_SECONDS) if isinstance(log, Log) and store is not None else None
    driver = Driver(log, samplers, settings, watcher, owner, clock)
    try:
        inside.run(log.header.identity, lambda: _run(driver, workers))
        if driver.ending is not None:
            raise failure(*driver.ending, log)
        return driver.result()
    except InvalidInput:
        raise
    except EquipoiseError as error:
        explain(error, log)
        raise
    finally:
        if owner is not None:
            owner.close()
        if watcher is not None:
            watcher.close()


def _run(driver: Driver, workers: Workers | None) -> None:
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


def failure(reason: str, trace: str, kind: type[EquipoiseError], log: Log | Memory) -> EquipoiseError:
    """Return the error that ends a run: why, how many samples there are, and where they are."""
    samples = log.study.ledger.samples
    taken = count(samples, "sample")
    if isinstance(log, Log):
        kept = f"{taken} saved in {log.name}; repeat the call to continue"
    elif samples:
        kept = f"the `study` attribute of this error has the {taken} taken before"
    else:
        kept = "no samples were taken before"
    error = kind(f"{reason}; {kept}", reason=reason)
    if trace:
        error.add_note(trace)
    return error


def explain(error: EquipoiseError, log: Log | Memory) -> None:
    """Note in an error why sampling ended, and the study with all samples so far."""
    error.reason = error.reason or str(error)
    with contextlib.suppress(EquipoiseError):  # a store that is unavailable cannot be read
        error.study = log.study
