"""Samplers that raise, hang, return nonsense; workers that die, disks that fill: a sentence, and nothing is lost."""

from __future__ import annotations

import asyncio
import os
import random
import re
import resource
import signal
import subprocess
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client

import equipoise as eq
from equipoise.run import seeds
from equipoise.store import Log, replay
from tests.cluster import local_cluster
from tests.driving import Clock, drive
from tests.logs import events
from tests.waiting import HANG, until

ARMS = ["calm", "rough"]


def sample(arm: str, seed: int) -> float:
    return random.Random(seed).gauss(10, 4 if arm == "rough" else 1)


def failure(*args: Any, call: Callable[..., eq.Result] = eq.estimate, **kwargs: Any) -> eq.EquipoiseError:
    """The error that a call of `estimate` ends with, which is one sentence."""
    with pytest.raises(eq.EquipoiseError) as caught:
        call(*args, **kwargs)
    assert "\n" not in str(caught.value)
    return caught.value


# ---- samplers that raise


@pytest.mark.parametrize("executor", [None, 8])
def test_one_time_in_three(where: str, executor: Any) -> None:
    lock, calls = threading.Lock(), 0

    def measure(arm: str, seed: int) -> float:
        nonlocal calls
        with lock:
            calls += 1
            unlucky = calls % 3 == 0
        if unlucky:
            raise ConnectionError("the line is busy")
        return sample(arm, seed)

    result = eq.estimate(measure, budget=300, arms=ARMS, seed=1, retries=20, executor=executor, store=where)
    assert result.samples == 300
    kinds = Counter(line.kind for line in events(where))
    texts = {line.text for line in events(where) if line.kind == "fail"}
    # Every call was an answer or a failure; a ticket that failed was tried again, and not asked again.
    assert kinds["ask"] == kinds["tell"] == 300
    assert kinds["fail"] == calls - 300
    assert texts == {"ConnectionError: the line is busy"}
    if executor is None:  # a failure and another try change nothing
        assert dict(result.means) == dict(eq.estimate(sample, budget=300, arms=ARMS, seed=1).means)


@pytest.mark.parametrize("executor", [None, 3])
def test_past_the_retries(where: str, executor: Any) -> None:
    broken = threading.Event()
    lock, good = threading.Lock(), 0

    def measure(arm: str, seed: int) -> float:
        nonlocal good
        if arm == "rough" and broken.is_set():
            raise ZeroDivisionError("the sensor\nis off")
        with lock:
            good += 1
            if good == 60:
                broken.set()
        return sample(arm, seed)

    error = failure(measure, budget=200, arms=ARMS, retries=2, executor=executor, store=where)
    assert re.match(
        r"sampling arm 'rough' failed 3 times, the last time: ZeroDivisionError: the sensor is off; "
        r"\d+ samples? saved in .*; repeat the call to continue$",
        str(error),
    )
    assert "in measure" in error.__notes__[0]  # where it was raised
    assert error.study.result().samples == good
    assert error.study.in_flight >= 1  # the sample that failed, for another run
    assert replay(where).study.result().samples == good
    broken.clear()
    good = 1000
    result = eq.estimate(measure, budget=200, arms=ARMS, retries=2, executor=executor, store=where)
    assert result.samples == 200
    study = replay(where).study
    assert study.remaining == study.in_flight == 0


def test_without_a_store_the_error_has_the_study() -> None:
    calls = iter(range(1000))

    def measure(arm: str) -> float:
        if next(calls) == 30:
            raise KeyError("gone")
        return 1.0

    error = failure(measure, budget=100, arms=ARMS)
    assert str(error) == (
        "sampling arm 'calm' failed: KeyError: 'gone'; "
        "the `study` attribute of this error has the 30 samples taken before"
    )
    assert error.study.result().samples == 30


# ---- samplers that return what is no sample


@pytest.mark.parametrize("executor", [None, 2])
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (float("nan"), "a sample must be a finite number, got nan"),
        (float("inf"), "a sample must be a finite number, got inf"),
        (None, "a sample must be a number, got None"),
        ("12", "a sample must be a number, got '12'"),
        ([1.0], r"a sample must be a number, got \[1.0\]"),
        (1e200, r"a sample must be a finite number, got 1e\+200; its square would overflow"),
    ],
)
def test_nonsense(value: Any, said: str, executor: Any) -> None:
    lock, calls = threading.Lock(), 0

    def measure(arm: str) -> Any:
        nonlocal calls
        with lock:
            calls += 1
            return value if calls == 40 else float(calls)

    error = failure(measure, budget=100, arms=ARMS, executor=executor)
    assert re.match(rf"sampling arm '(calm|rough)' failed: {said}", str(error))
    assert not hasattr(error, "__notes__")  # no trace of equipoise's own: the sampler raised nothing
    calls = 0
    assert eq.estimate(measure, budget=100, arms=ARMS, executor=executor, retries=1).samples == 100


def test_a_value_outside_the_support() -> None:
    error = failure(lambda arm: 2, budget=100, arms=ARMS, support="binary")
    assert str(error).startswith("sampling arm 'calm' failed: a sample must be 0 or 1, got 2.0; ")
    assert str(error).endswith("; no samples were taken before")


def test_nonsense_in_arrays() -> None:
    """What is good of an array is kept."""
    calls = 0

    def measure(arm: str, size: int) -> Any:
        nonlocal calls
        calls += 1
        values = np.random.default_rng(calls).normal(size=size)
        if calls % 5 == 0:
            values[-1] = np.nan
        return values

    assert eq.estimate(measure, budget=2000, arms=ARMS, retries=3).samples == 2000
    calls = 0
    assert "failed: a sample must be a finite number, got nan" in str(failure(measure, budget=2000, arms=ARMS))

    error = failure(lambda arm, size: np.zeros(size + 1), budget=100, arms=ARMS)
    assert "a sampler must return 1 value for size=1, got an array of shape (2,)" in str(error)
    error = failure(lambda arm, size: 0.5, budget=100, arms=ARMS)
    assert "a sampler must return 1 value for size=1, got 0.5" in str(error)
    error = failure(lambda arm, size: ["a"] * size, budget=100, arms=ARMS)
    assert "a sample must be a number, got 'a'" in str(error)


# ---- samplers that hang: the clock moves on by a lease once all workers hang, and stands still otherwise


@pytest.mark.parametrize("executor", [None, 3])
def test_a_lease_ends_the_waiting(where: str, executor: Any) -> None:
    """Twice, as many samples in a row hang as there are workers."""
    lock, calls, forever, clock = threading.Lock(), 0, threading.Event(), Clock()
    width = executor or 1

    def measure(arm: str, seed: int) -> float:
        nonlocal calls
        with lock:
            calls += 1
            mine = calls
        for first in (10, 20):
            if first <= mine < first + width:
                if mine == first + width - 1:
                    clock.jump(0.5)
                assert forever.wait(HANG)
        return sample(arm, seed)

    result = drive(measure, 60, arms=ARMS, lease=0.5, executor=executor, store=where, clock=clock)
    forever.set()
    assert result.samples == 60
    kinds = Counter(line.kind for line in events(where))
    why = {line.text for line in events(where) if line.kind == "forget"}
    assert (kinds["ask"], kinds["tell"], kinds["forget"]) == (60 + 2 * width, 60, 2 * width)
    assert why == {"no answer in 0.5 seconds"}


def test_awaited_samplers_are_cancelled() -> None:
    cancelled: list[str] = []
    calls, clock = 0, Clock()

    async def measure(arm: str) -> float:
        nonlocal calls
        calls += 1
        if calls == 7:
            clock.jump(0.5)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(arm)
                raise
        return 1.0

    assert drive(measure, 40, arms=ARMS, lease=0.5, executor=1, clock=clock).samples == 40
    assert len(cancelled) == 1


def test_an_arm_that_never_answers() -> None:
    forever, clock = threading.Event(), Clock()

    def measure(arm: str) -> float:
        if arm == "rough":
            clock.jump(0.02)
            forever.wait(HANG)
        return 1.0

    error = failure(measure, 40, arms=ARMS, lease=0.02, clock=clock, call=drive)
    forever.set()
    assert str(error).startswith("arm 'rough' gave no answer in 0.02 seconds, 10 times in a row; ")


def test_a_pool_all_of_whose_workers_hang() -> None:
    forever = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        error = failure(lambda arm: forever.wait(HANG), budget=40, arms=ARMS, lease=0.05, executor=pool)
        forever.set()
    assert str(error).startswith(
        "all workers of the executor hang, so that none is left to sample; no samples were taken before"
    )


# ---- workers that die


def mortal(arm: str, seed: int) -> float:
    if os.path.exists(os.environ["EQUIPOISE_TEST_DEATH"]) and seed % 50 == 0:
        os._exit(1)
    return sample(arm, seed)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning")
def test_a_process_that_dies(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    death = tmp_path / "death"
    monkeypatch.setenv("EQUIPOISE_TEST_DEATH", str(death))
    death.touch()
    with ProcessPoolExecutor(2) as pool:
        error = failure(mortal, budget=2000, arms=ARMS, seed=1, executor=pool, store=where)
    assert re.match(r"a worker died while sampling .*, and the executor with it; [\d,]+ samples? ", str(error))
    kept = replay(where).study.result().samples
    assert kept == error.study.result().samples
    death.unlink()
    with ProcessPoolExecutor(2) as pool:
        result = eq.estimate(mortal, budget=2000, arms=ARMS, executor=pool, store=where)
    assert result.samples == 2000
    asks = sum(line.kind == "ask" for line in events(where))
    assert asks == 2000  # what was in flight was sampled again, not asked again


def test_an_executor_that_was_shut_down() -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    error = failure(sample, budget=20, arms=ARMS, executor=pool)
    assert str(error).startswith(
        "the executor takes no more work: cannot schedule new futures after shutdown; no samples were taken before"
    )


# ---- Dask


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with local_cluster() as client:
        yield client


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_dask(client: Client) -> None:
    """The same samples; a failure on a worker is the same sentence as here."""

    def measure(arm: str, seed: int) -> float:
        return sample(arm, seed)

    here = eq.estimate(measure, budget=60, arms=ARMS, seed=5)
    there = eq.estimate(measure, budget=60, arms=ARMS, seed=5, executor=client, in_flight=1)
    assert dict(there.means) == dict(here.means)
    assert eq.estimate(measure, budget=3000, arms=ARMS, executor=client).samples == 3000

    def broken(arm: str) -> float:
        raise ValueError("not today")

    error = failure(broken, budget=60, arms=ARMS, executor=client)
    assert re.match(
        r"sampling arm '(calm|rough)' failed: ValueError: not today; no samples were taken before", str(error)
    )


# ---- disks and stores


def test_a_disk_that_fills(tmp_path: Path) -> None:
    """
    No file of this process may grow past 0.6 MB, then it may again.

    What was committed is there, what was not is in the error's study, and the study goes on.
    """
    where = tmp_path / "study.db"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, before[1]))
    try:
        error = failure(sample, budget=50_000, arms=ARMS, seed=1, store=where)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert re.search(r"study\.db: .*; what was committed is saved, free some space to continue$", str(error))
    kept = replay(where).study.result().samples
    assert 100 < kept <= error.study.result().samples < 50_000
    result = eq.estimate(sample, budget=50_000, arms=ARMS, seed=1, store=where)
    assert dict(result.means) == dict(eq.estimate(sample, budget=50_000, arms=ARMS, seed=1).means)


def test_two_at_once(where: str) -> None:
    """A second process joins the first one in the middle: the budget is handed out once, and both end with all."""
    script = (
        "import random, sys, equipoise as eq\n"
        "def sample(arm, seed):\n"
        "    print(arm, flush=True)\n    sys.stdin.read(1)\n"
        "    return random.Random(seed).gauss(10, 4 if arm == 'rough' else 1)\n"
        "done = eq.estimate(sample, budget=200, arms=['calm', 'rough'], seed=1, store=sys.argv[1], executor=2)\n"
        "print(done.samples)\n"
    )
    words = [sys.executable, "-c", script, where]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        child.stdout.readline()
        child.stdout.readline()
        with ThreadPoolExecutor(1) as pool:
            here = pool.submit(partial(eq.estimate, sample, budget=200, arms=ARMS, seed=1, store=where))
            until(lambda: replay(where).study.ledger.samples == 198, "all is done but what the child has in flight")
            assert child.poll() is None
            assert not here.done()
            said, _ = child.communicate("\n" * 200, timeout=HANG)
            assert here.result(HANG).samples == 200
    finally:
        child.kill()
        child.wait()
    assert said.split() == ["200"]
    assert Counter(line.kind for line in events(where)) == {"ask": 200, "tell": 200}


def test_an_interrupt(where: str) -> None:
    """
    Ctrl-C in a run with 8 workers: what came is kept, and the next run takes the rest, each sample once.

    All workers hang after 500 samples, so that the run does not end before.
    """
    script = (
        "import itertools, sys, threading, equipoise as eq\n"
        "calls, forever = itertools.count(), threading.Event()\n"
        "def sample(arm, seed):\n"
        "    if next(calls) >= 500:\n        forever.wait()\n"
        "    return seed / 2**64\n"
        "shown = lambda progress: print(progress.samples, flush=True)\n"
        "eq.estimate(sample, 10**4, arms=['calm', 'rough'], seed=3, executor=8, store=sys.argv[1], progress=shown)\n"
    )
    listen = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # ignored in the background of a shell
    words = [sys.executable, "-c", script, where]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=listen)
    assert child.stdout is not None
    while (acknowledged := int(child.stdout.readline())) < 50:
        pass
    child.send_signal(signal.SIGINT)
    said, trace = child.communicate(timeout=HANG)
    assert trace.strip().endswith("KeyboardInterrupt")
    kept = replay(where).study.result().samples
    assert kept >= max([acknowledged, *map(int, said.split())])
    result = eq.estimate(lambda arm, seed: seed / 2**64, 10**4, arms=ARMS, store=where, executor=8)
    assert result.samples == 10**4
    values = [line.value for line in events(where) if line.kind == "tell"]
    assert len(set(values)) == 10**4


CUT = threading.Lock()


def cut_connections(where: str) -> None:
    """The server ends the connections of all others; one at a time, or it would end those that are cutting too."""
    with CUT, Log(where, write=False) as log:
        log._database.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where pid <> pg_backend_pid() and backend_type = 'client backend'"
        )


@pytest.mark.parametrize("executor", [None, 4])
def test_the_connection_is_cut(postgres: str, executor: Any) -> None:
    """Five times in the middle of a run, with commits in between: it goes on, and every sample is there, once."""
    where = f"{postgres}#{uuid.uuid4().hex}"
    lock, calls, clock = threading.Lock(), 0, Clock()

    def measure(arm: str, seed: int) -> float:
        nonlocal calls
        with lock:
            calls += 1
            cut = calls % 150 == 0
            clock.now += 0.001
        if cut:
            cut_connections(where)
        return sample(arm, seed)

    result = drive(measure, 800, arms=ARMS, seed=1, store=where, executor=executor, clock=clock)
    assert result.samples == 800
    # Samples that were taken within a turn that was cut off are taken again: a turn of 50 ms has 50 of them.
    assert 800 <= calls <= (800 if executor else 800 + 50 * calls // 150)
    lines = events(where)
    assert replay(where).study.result().samples == 800
    for kind in ("ask", "tell"):
        assert sorted(line.ticket for line in lines if line.kind == kind) == list(range(800))  # type: ignore[type-var]
    assert {line.value for line in lines if line.kind == "tell"} == {
        sample(arm, seeds.seed(seeds.base(1, arm), i)) for arm in ARMS for i in range(int(result.counts[arm]))
    }
    if executor is None:
        assert dict(result.means) == dict(eq.estimate(sample, budget=800, arms=ARMS, seed=1).means)


def test_the_connection_is_cut_and_somebody_else_goes_on(postgres: str) -> None:
    """The second run takes all the rest while the first one samples: both end with all of it, each sample once."""
    where = f"{postgres}#{uuid.uuid4().hex}"
    calls, clock = 0, Clock()
    other = partial(eq.estimate, sample, budget=300, arms=ARMS, seed=1, store=where)

    def measure(arm: str, seed: int) -> float:
        nonlocal calls
        calls += 1
        clock.now += 0.01  # too slow for a turn, so that the other one can have its own
        if calls == 120:
            cut_connections(where)
            found.append(pool.submit(other))
            until(lambda: replay(where).study.ledger.samples == 299, "the other one has taken all the rest")
        return sample(arm, seed)

    found: list[Future[eq.Result]] = []
    with ThreadPoolExecutor(1) as pool:
        result = drive(measure, 300, arms=ARMS, seed=1, store=where, clock=clock)
        assert result.samples == found[0].result(HANG).samples == 300
    tickets = [line.ticket for line in events(where) if line.kind == "tell"]
    assert sorted(tickets) == list(range(300))  # type: ignore[type-var]
