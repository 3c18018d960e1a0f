"""Workers: threads on demand, and executors that keep their word."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import equipoise as eq
from equipoise.run.workers import Threads
from tests.waiting import HANG


def sampler_threads() -> set[int]:
    return {t.ident or 0 for t in threading.enumerate() if t.name == "equipoise-sampler"}


def test_no_more_threads_are_started_than_there_are_samples() -> None:
    before, seen = sampler_threads(), set()

    def sample(arm: str, seed: int) -> float:
        seen.update(sampler_threads() - before)
        return float(seed % 7)

    result = eq.estimate(sample, arms=["a", "b"], budget=10, executor=2000, seed=1)
    assert sum(result.counts.values()) == 10
    assert 1 <= len(seen) <= 10


def test_a_thread_that_waits_is_used_again() -> None:
    before = sampler_threads()
    threads = Threads(8)
    for _ in range(20):
        threads.submit([]).result(timeout=HANG)
    assert len(sampler_threads() - before) <= 8
    threads.close()


def test_as_many_threads_work_at_once_as_were_asked_for() -> None:
    together = threading.Barrier(3)

    def sample(arm: str) -> float:
        together.wait(timeout=HANG)
        return 1.0

    eq.estimate(sample, arms=["a", "b"], budget=9, in_flight=3, executor=3)


@pytest.mark.parametrize("returned", [None, 7, [1.0]])
def test_an_executor_without_futures_is_refused(returned: Any) -> None:
    class Executor:
        def submit(self, *given: Any) -> Any:
            return returned

    with pytest.raises(TypeError, match=r"executor must return futures from submit\(\), got"):
        eq.estimate(lambda arm: 1.0, arms=["a"], budget=3, executor=Executor())


@pytest.mark.parametrize("about", [3, "seconds", [1]])
def test_a_description_that_is_no_mapping_is_refused(about: Any) -> None:
    with pytest.raises(TypeError, match="about must be a mapping of strings and numbers, got"):
        eq.estimate(lambda arm: 1.0, arms=["a"], budget=3, about=about)
